/*
 * api_key.c: API keys: creates them, finds them by their hash, lists and revokes them. The key
 * itself exists only in the response to its creation.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "core/key.h"
#include "data/data_internal.h"

#define SECRET_CHARS (DATA_TOKEN_BYTES - 1)
#define MINUTE_MS 60000
#define CREATE_PARAMS 9

_Static_assert(sizeof "sk__" + IL_TENANT_BYTES_MAX + SECRET_CHARS <= DATA_KEY_BYTES_MAX,
               "a key fits");

/* ---- roles and permissions ------------------------------------------------------------------- */

const char *const il__data_roles[DATA_ROLE_COUNT + 1] = {
    [DATA_ROLE_NONE] = "none",         [DATA_ROLE_READ] = "read",   [DATA_ROLE_WRITE] = "write",
    [DATA_ROLE_OPERATOR] = "operator", [DATA_ROLE_ADMIN] = "admin",
};

const char *
il__data_role_name(enum il__data_role role)
{
    CHECK(role < DATA_ROLE_COUNT);
    return il__data_roles[role];
}

enum il__data_role
il__data_role_parse(const char *name)
{
    enum il__data_role role = DATA_ROLE_NONE;

    while (role < DATA_ROLE_COUNT && (name == NULL || strcmp(name, il__data_roles[role]) != 0))
        role++;
    return role;
}

static il_status
check_permissions(const char *text, il_error *reterr)
{
    size_t n = 0;

    if (text == NULL || text[0] == '\0')
        return IL_OK;
    if (strlen(text) > DATA_PERMISSIONS_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "permissions longer than %d bytes",
                             DATA_PERMISSIONS_BYTES_MAX);
    for (;;) {
        size_t n_bytes = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789:_.-");
        if (n_bytes == 0 || n_bytes > DATA_PERMISSION_BYTES_MAX ||
            (text[n_bytes] != '\0' && text[n_bytes] != ' '))
            return il__error_set(reterr, IL_INVAL,
                                 "invalid permission; use 1 to %d lower-case letters, digits and "
                                 "characters of ':_.-'",
                                 DATA_PERMISSION_BYTES_MAX);
        if (++n > DATA_PERMISSIONS_MAX)
            return il__error_set(reterr, IL_INVAL, "a key can have at most %d permissions",
                                 DATA_PERMISSIONS_MAX);
        if (text[n_bytes] == '\0')
            return IL_OK;
        text += n_bytes + 1;
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

static il_status
check_new(const struct il__data_key *key, int64_t now_ms, il_error *reterr)
{
    il_status st = il__data_check_tenant(key->tenant, reterr);

    if (st == IL_OK)
        st = il__check_optional("name of the key", key->name, DATA_NAME_BYTES_MAX, false, reterr);
    if (st == IL_OK)
        st = il__check_optional("prefix", key->prefix, DATA_PREFIX_BYTES_MAX, false, reterr);
    if (st == IL_OK)
        st = check_permissions(key->permissions, reterr);
    if (st == IL_OK && (unsigned)key->role >= DATA_ROLE_COUNT)
        st = il__error_set(reterr, IL_INVAL, "unknown role");
    if (st == IL_OK && key->expires_at_ms != 0 && key->expires_at_ms <= now_ms)
        st = il__error_set(reterr, IL_INVAL, "the expiry time is in the past");
    return st;
}

static il_status
make_secret(const char *tenant, char ret[DATA_KEY_BYTES_MAX], il_error *reterr)
{
    char      text[DATA_TOKEN_BYTES] = "";
    il_status st                     = il__data_token(text, reterr);

    (void)snprintf(ret, DATA_KEY_BYTES_MAX, "sk_%s_%s", tenant, text);
    il__data_forget(text, sizeof text);
    return st;
}

struct creation {
    const char       *tenant;
    bool              make_tenant;
    int64_t           now_ms;
    struct data_param params[CREATE_PARAMS];
};

static il_status
create(struct il__data *d, void *cookie, il_error *reterr)
{
    struct creation  *c       = cookie;
    uint64_t          n_added = 0;
    struct data_param tenant[DATA_TENANT_PARAMS];

    il__data_tenant_params(tenant, &(struct il__data_tenant){ .id = c->tenant }, c->now_ms);
    il_status st = c->make_tenant ? il__data_run(d, DATA_tenant_add, tenant, ARRAY_LEN(tenant),
                                                 NULL, NULL, reterr)
                                  : IL_OK;
    if (st == IL_OK)
        st = il__data_run(d, DATA_key_add, c->params, CREATE_PARAMS, il__data_count_row, &n_added,
                          reterr);
    if (st == IL_OK && n_added == 0)
        st = il__error_set(reterr, IL_NOT_FOUND, "no such tenant: %s", c->tenant);
    return st;
}

il_status
il__data_key_create(struct il__data *d, const struct il__data_key *key, bool make_tenant,
                    char ret_id[DATA_ID_BYTES], char ret_secret[DATA_KEY_BYTES_MAX],
                    il_error *reterr)
{
    int64_t       now_ms = il__clock_wall_ms();
    unsigned char hash[DATA_HASH_BYTES];
    char          hex[DATA_HEX_BYTES(DATA_HASH_BYTES)];
    char          id[DATA_ID_BYTES];
    char          secret[DATA_KEY_BYTES_MAX] = "";
    il_status     st                         = check_new(key, now_ms, reterr);

    CHECK(d->has_pepper);
    if (st != IL_OK)
        return st;
    if (il_uuid(id) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    st = make_secret(key->tenant, secret, reterr);
    if (st != IL_OK)
        return st;
    il__data_key_hash(d, secret, strlen(secret), hash);
    il__hex_print(hash, sizeof hash, hex);
    struct creation c = {
        .tenant      = key->tenant,
        .make_tenant = make_tenant,
        .now_ms      = now_ms,
        .params      = { DATA_TEXT(id), DATA_TEXT(key->tenant),
                         DATA_TEXT(key->name != NULL ? key->name : ""),
                         DATA_TEXT(il__data_role_name(key->role)),
                         DATA_TEXT(key->permissions != NULL ? key->permissions : ""),
                         DATA_TEXT(key->prefix != NULL ? key->prefix : ""), DATA_TEXT(hex),
                         DATA_NUMBER(now_ms), DATA_NUMBER(key->expires_at_ms) },
    };
    st = il__data_transaction(d, create, &c, reterr);
    if (st == IL_OK) {
        memcpy(ret_id, id, sizeof id);
        memcpy(ret_secret, secret, sizeof secret);
    }
    il__sodium->sodium_memzero(secret, sizeof secret);
    return st;
}

/* ---- finding and listing --------------------------------------------------------------------- */

struct listing {
    il__data_key_fn *each;
    void            *cookie;
    uint64_t         n;
};

static void
take_key(void *cookie, const struct data_row *row)
{
    struct listing     *l   = cookie;
    struct il__data_key key = {
        .id            = row->columns[0].text,
        .tenant        = row->columns[1].text,
        .name          = row->columns[2].text,
        .role          = il__data_role_parse(row->columns[3].text),
        .permissions   = row->columns[4].text,
        .prefix        = row->columns[5].text,
        .created_at_ms = row->columns[6].number,
        .expires_at_ms = row->columns[7].number,
        .used_at_ms    = row->columns[8].number,
        .revoked_at_ms = row->columns[9].number,
    };

    if (key.role == DATA_ROLE_COUNT)
        key.role = DATA_ROLE_NONE; /* a role unknown to this version grants nothing */
    l->n++;
    if (l->each != NULL)
        l->each(l->cookie, &key);
}

il_status
il__data_key_find(struct il__data *d, const unsigned char hash[DATA_HASH_BYTES],
                  il__data_key_fn *each, void *cookie, il_error *reterr)
{
    struct listing l = { each, cookie, 0 };
    char           hex[DATA_HEX_BYTES(DATA_HASH_BYTES)];

    il__hex_print(hash, DATA_HASH_BYTES, hex);
    const struct data_param params[] = { DATA_TEXT(hex) };
    il_status st = il__data_read(d, DATA_key_find, params, ARRAY_LEN(params), take_key, &l, reterr);
    return st == IL_OK && l.n == 0 ? il__error_set(reterr, IL_NOT_FOUND, "no such API key") : st;
}

/* A UUID, as we generate them. */
static bool
is_id(const char *id)
{
    return id != NULL && strlen(id) == DATA_ID_BYTES - 1 &&
           strspn(id, "0123456789abcdef-") == DATA_ID_BYTES - 1;
}

static il_status
unknown(const char *id, il_error *reterr)
{
    return il__error_set(reterr, IL_NOT_FOUND, "no such API key: '%.40s'", id);
}

il_status
il__data_key_get(struct il__data *d, const char *tenant, const char *id, il__data_key_fn *each,
                 void *cookie, il_error *reterr)
{
    struct listing l  = { each, cookie, 0 };
    il_status      st = tenant != NULL ? il__data_check_tenant(tenant, reterr) : IL_OK;

    if (st == IL_OK && is_id(id)) {
        const struct data_param params[] = { DATA_TEXT(id),
                                             DATA_TEXT(tenant != NULL ? tenant : "") };
        st = il__data_read(d, DATA_key_get, params, ARRAY_LEN(params), take_key, &l, reterr);
    }
    return st == IL_OK && l.n == 0 ? unknown(id, reterr) : st;
}

il_status
il__data_key_list(struct il__data *d, const char *tenant, const char *after, uint32_t limit,
                  il__data_key_fn *each, void *cookie, il_error *reterr)
{
    struct listing l  = { each, cookie, 0 };
    il_status      st = tenant != NULL ? il__data_check_tenant(tenant, reterr) : IL_OK;

    if (st == IL_OK && after != NULL && after[0] != '\0' && !is_id(after))
        st = il__error_set(reterr, IL_INVAL, "invalid cursor");
    if (st != IL_OK)
        return st;
    const struct data_param params[] = { DATA_TEXT(tenant != NULL ? tenant : ""),
                                         DATA_TEXT(after != NULL ? after : ""),
                                         DATA_NUMBER(il__data_page(limit)) };
    return il__data_read(d, DATA_key_list, params, ARRAY_LEN(params), take_key, &l, reterr);
}

/* ---- changing -------------------------------------------------------------------------------- */

struct revocation {
    const char *tenant, *id;
    bool        keep_admin;
    uint64_t    n_admins; /* usable admin keys, if keep_admin */
    bool        is_admin; /* the key is one of them */
};

static void
take_admin(void *cookie, const struct data_row *row)
{
    struct revocation *r = cookie;

    r->n_admins++;
    r->is_admin = r->is_admin || strcmp(row->columns[0].text, r->id) == 0;
}

static il_status
revoke(struct il__data *d, void *cookie, il_error *reterr)
{
    struct revocation      *r         = cookie;
    uint64_t                n_revoked = 0;
    const struct data_param now       = DATA_NUMBER(il__clock_wall_ms());
    const struct data_param params[]  = { DATA_TEXT(r->id),
                                          DATA_TEXT(r->tenant != NULL ? r->tenant : ""), now };

    il_status st = r->keep_admin
                       ? il__data_run(d, DATA_key_lock_admins, &now, 1, take_admin, r, reterr)
                       : IL_OK;
    if (st == IL_OK)
        st = il__data_run(d, DATA_key_revoke, params, ARRAY_LEN(params), il__data_count_row,
                          &n_revoked, reterr);
    if (st == IL_OK && n_revoked == 0)
        st = unknown(r->id, reterr);
    if (st == IL_OK && r->is_admin && r->n_admins == 1)
        st = il__error_set(reterr, IL_STATE, "it is the last usable admin key"); /* roll back */
    return st;
}

il_status
il__data_key_revoke(struct il__data *d, const char *tenant, const char *id, bool keep_admin,
                    il_error *reterr)
{
    struct revocation r  = { .tenant = tenant, .id = id, .keep_admin = keep_admin };
    il_status         st = tenant != NULL ? il__data_check_tenant(tenant, reterr) : IL_OK;

    if (st == IL_OK && !is_id(id))
        st = unknown(id, reterr);
    return st == IL_OK ? il__data_transaction(d, revoke, &r, reterr) : st;
}

static void
take_number(void *cookie, const struct data_row *row)
{
    *(int64_t *)cookie = row->columns[0].number;
}

il_status
il__data_key_used(struct il__data *d, const char *id, int64_t at_ms, il_error *reterr)
{
    int64_t minute_ms = at_ms - at_ms % MINUTE_MS;
    int64_t known_ms  = INT64_MAX;

    if (!is_id(id))
        return IL_OK;
    /* Read first: usually there is nothing to write, and a write blocks others. */
    const struct data_param params[] = { DATA_TEXT(id), DATA_NUMBER(minute_ms) };
    il_status st = il__data_read(d, DATA_key_used, params, 1, take_number, &known_ms, reterr);
    if (st != IL_OK || known_ms >= minute_ms)
        return st;
    return il__data_write(d, DATA_key_use, params, 2, NULL, NULL, reterr);
}

il_status
il__data_key_count(struct il__data *d, uint64_t *ret, il_error *reterr)
{
    int64_t                 n        = 0;
    const struct data_param params[] = { DATA_NUMBER(il__clock_wall_ms()) };
    il_status st = il__data_read(d, DATA_key_count, params, 1, take_number, &n, reterr);

    if (st == IL_OK)
        *ret = (uint64_t)n;
    return st;
}
