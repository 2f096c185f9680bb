/*
 * api_key_hash.c: hashes of keys, and the secret they are computed with, the pepper.
 *
 * The pepper is in a file provided by the administrator or, generated on first use, in the data
 * store. The data store also keeps its HMAC of a fixed text: with another pepper no key would be
 * found, and it is better to report that at startup than to reject every valid key.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "data/data_internal.h"

#define PEPPER_BYTES 32
#define PEPPER_BYTES_MIN 16
#define PEPPER_BYTES_MAX 4096
#define CHECK_TEXT "interlock: is it this pepper?"
#define SESSION_TEXT "interlock: the key that signs sessions" /* (no API key looks like that) */

struct pepper {
    unsigned char bytes[PEPPER_BYTES_MAX + 1];
    size_t        n;
};

/* ---- from a file ----------------------------------------------------------------------------- */

static il_status
check_file(int fd, const char *path, il_error *reterr)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return il__error_set(reterr, IL_INVAL, "cannot read pepper file %.300s: %s", path,
                             strerror(errno));
    if (!S_ISREG(st.st_mode))
        return il__error_set(reterr, IL_INVAL, "pepper file %.300s is not a regular file", path);
    if ((st.st_mode & 077) != 0)
        return il__error_set(
            reterr, IL_INVAL,
            "pepper file %.300s is readable by other users (mode %03o); chmod 600 it", path,
            (unsigned)(st.st_mode & 0777));
    return IL_OK;
}

static il_status
read_all(int fd, const char *path, struct pepper *p, il_error *reterr)
{
    while (p->n < sizeof p->bytes) {
        ssize_t n = read(fd, p->bytes + p->n, sizeof p->bytes - p->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return il__error_set(reterr, IL_INVAL, "cannot read pepper file %.300s: %s", path,
                                 strerror(errno));
        if (n == 0)
            break;
        p->n += (size_t)n;
    }
    if (p->n > PEPPER_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "pepper file %.300s is longer than %d bytes", path,
                             PEPPER_BYTES_MAX);
    if (p->n > 0 && p->bytes[p->n - 1] == '\n')
        p->n--;
    if (p->n < PEPPER_BYTES_MIN)
        return il__error_set(reterr, IL_INVAL, "pepper file %.300s is shorter than %d bytes", path,
                             PEPPER_BYTES_MIN);
    return IL_OK;
}

static il_status
from_file(const char *path, struct pepper *p, il_error *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return il__error_set(reterr, IL_INVAL, "cannot read pepper file %.300s: %s", path,
                             strerror(errno));
    il_status st = check_file(fd, path, reterr);
    if (st == IL_OK)
        st = read_all(fd, path, p, reterr);
    (void)close(fd); /* it was only read */
    return st;
}

/* ---- from the data store --------------------------------------------------------------------- */

#define SECRET_CHARS (2 * PEPPER_BYTES) /* both secrets are 32 bytes in hex digits */

struct secret {
    char text[SECRET_CHARS + 1]; /* "" = there is none */
    bool bad;
};

static void
take_secret(void *cookie, const struct data_row *row)
{
    struct secret *s = cookie;

    s->bad = strlen(row->columns[0].text) != SECRET_CHARS;
    if (!s->bad)
        memcpy(s->text, row->columns[0].text, sizeof s->text);
}

static il_status
load_secret(struct il__data *d, const char *name, struct secret *s, il_error *reterr)
{
    const struct data_param params[] = { DATA_TEXT(name) };

    *s           = (struct secret){ 0 };
    il_status st = il__data_run(d, DATA_secret_get, params, 1, take_secret, s, reterr);
    if (st == IL_OK && s->bad)
        st =
            il__error_set(reterr, IL_CORRUPT, "%s: the stored secret is corrupt", d->engine->where);
    return st;
}

static il_status
put_secret(struct il__data *d, enum data_stmt stmt, const char *name, const char *value,
           il_error *reterr)
{
    const struct data_param params[] = { DATA_TEXT(name), DATA_TEXT(value) };

    return il__data_run(d, stmt, params, 2, NULL, NULL, reterr);
}

/* False: not hex digits. */
static bool
decode(const struct secret *s, struct pepper *p)
{
    for (size_t i = 0; i < PEPPER_BYTES; i++) {
        int high = il__hex_digit(s->text[2 * i]), low = il__hex_digit(s->text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        p->bytes[i] = (unsigned char)(high * 16 + low);
    }
    p->n = PEPPER_BYTES;
    return true;
}

/* `make`: in a transaction, create one if missing. Of several concurrent callers one creates it,
 * and the others find it. Else p->n stays 0. */
static il_status
from_store(struct il__data *d, bool make, struct pepper *p, il_error *reterr)
{
    struct secret s;
    il_status     st = load_secret(d, "pepper", &s, reterr);

    if (st == IL_OK && s.text[0] == '\0' && make) {
        il__sodium->randombytes_buf(p->bytes, PEPPER_BYTES);
        il__hex_print(p->bytes, PEPPER_BYTES, s.text);
        st = put_secret(d, DATA_secret_add, "pepper", s.text, reterr);
        if (st == IL_OK)
            st = load_secret(d, "pepper", &s, reterr);
    }
    if (st == IL_OK && s.text[0] != '\0' && !decode(&s, p))
        st =
            il__error_set(reterr, IL_CORRUPT, "%s: the stored secret is corrupt", d->engine->where);
    il__sodium->sodium_memzero(&s, sizeof s);
    return st;
}

/* ---- checking the pepper --------------------------------------------------------------------- */

/* The HMAC of the fixed text with the pepper. */
static void
make_check(struct il__data *d, char text[SECRET_CHARS + 1])
{
    unsigned char hash[DATA_HASH_BYTES];

    il__data_key_hash(d, CHECK_TEXT, strlen(CHECK_TEXT), hash);
    il__hex_print(hash, sizeof hash, text);
}

static bool
is_same(const struct secret *known, const char text[SECRET_CHARS + 1])
{
    return il__sodium->sodium_memcmp(known->text, text, SECRET_CHARS) == 0;
}

/* In a transaction: record this pepper, unless keys were created with another one. */
static il_status
remember(struct il__data *d, il_error *reterr)
{
    char          text[SECRET_CHARS + 1];
    struct secret known;
    uint64_t      n_keys = 0;

    make_check(d, text);
    il_status st = put_secret(d, DATA_secret_add, "pepper_check", text, reterr);
    if (st == IL_OK)
        st = load_secret(d, "pepper_check", &known, reterr);
    if (st != IL_OK || is_same(&known, text))
        return st;
    st = il__data_run(d, DATA_key_any, NULL, 0, il__data_count_row, &n_keys, reterr);
    if (st == IL_OK && n_keys > 0)
        return il__error_set(
            reterr, IL_INVAL,
            "%s: the API keys were created with a different pepper; check pepper_file",
            d->engine->where);
    return st == IL_OK ? put_secret(d, DATA_secret_set, "pepper_check", text, reterr) : st;
}

struct opening {
    const char   *file;
    struct pepper pepper;
};

static void
set_key(struct il__data *d, const struct pepper *p)
{
    unsigned char session[DATA_HASH_BYTES];

    CHECK(il__sodium->crypto_auth_hmacsha256_init(&d->keyed, p->bytes, p->n) == 0);
    il__data_hmac(&d->keyed, SESSION_TEXT, strlen(SESSION_TEXT), session);
    CHECK(il__sodium->crypto_auth_hmacsha256_init(&d->session_keyed, session, sizeof session) == 0);
    il__sodium->sodium_memzero(session, sizeof session);
    d->has_pepper = true;
}

/* All that most openers need, without a transaction. *ret_done is false if something must be
 * written. */
static il_status
look(struct il__data *d, struct opening *o, bool *ret_done, il_error *reterr)
{
    char          text[SECRET_CHARS + 1];
    struct secret known;
    il_status     st = o->file == NULL ? from_store(d, false, &o->pepper, reterr) : IL_OK;

    *ret_done = false;
    if (st != IL_OK || o->pepper.n == 0)
        return st;
    set_key(d, &o->pepper);
    make_check(d, text);
    st        = load_secret(d, "pepper_check", &known, reterr);
    *ret_done = st == IL_OK && is_same(&known, text);
    return st;
}

static il_status
open_in_transaction(struct il__data *d, void *cookie, il_error *reterr)
{
    struct opening *o  = cookie;
    il_status       st = o->file == NULL ? from_store(d, true, &o->pepper, reterr) : IL_OK;

    if (st != IL_OK)
        return st;
    set_key(d, &o->pepper);
    return remember(d, reterr);
}

il_status
il__data_pepper_open(struct il__data *d, const char *file, il_error *reterr)
{
    struct opening o    = { .file = file };
    bool           done = false;

    il_status st = il__data_sodium_load(reterr);
    if (st != IL_OK)
        return st;
    st = file != NULL ? from_file(file, &o.pepper, reterr) : IL_OK;
    if (st == IL_OK) {
        il__mutex_lock(&d->mutex);
        st = look(d, &o, &done, reterr);
        il__mutex_unlock(&d->mutex);
    }
    if (st == IL_OK && !done)
        st = il__data_transaction(d, open_in_transaction, &o, reterr);
    il__sodium->sodium_memzero(&o, sizeof o);
    return st;
}

void
il__data_pepper_close(struct il__data *d)
{
    if (!d->has_pepper)
        return;
    il__sodium->sodium_memzero(&d->keyed, sizeof d->keyed);
    il__sodium->sodium_memzero(&d->session_keyed, sizeof d->session_keyed);
}

/* ---- hashing --------------------------------------------------------------------------------- */

void
il__data_hmac(const crypto_auth_hmacsha256_state *keyed, const char *message, size_t n_bytes,
              unsigned char ret[DATA_HASH_BYTES])
{
    crypto_auth_hmacsha256_state state = *keyed;

    _Static_assert(DATA_HASH_BYTES == crypto_auth_hmacsha256_BYTES, "it is HMAC-SHA-256");
    /* These cannot fail. */
    (void)il__sodium->crypto_auth_hmacsha256_update(&state, (const unsigned char *)message,
                                                    n_bytes);
    (void)il__sodium->crypto_auth_hmacsha256_final(&state, ret);
    il__sodium->sodium_memzero(&state, sizeof state);
}

void
il__data_key_hash(struct il__data *d, const char *secret, size_t n_bytes,
                  unsigned char ret[DATA_HASH_BYTES])
{
    CHECK(d->has_pepper);
    il__data_hmac(&d->keyed, secret, n_bytes, ret);
}

void
il__data_forget(void *secret, size_t n_bytes)
{
    explicit_bzero(secret, n_bytes); /* libsodium need not have been loaded */
}
