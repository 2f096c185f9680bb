/*
 * users.c: the users of a tenant: checks them and writes them. users_csv.c reads them from CSV.
 */
#include <stdlib.h>

#include "apps/ingest/links.h"
#include "apps/ingest/persist_internal.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"

#include "apps/ingest/ingest_sql.inc"

#define NO_MEMORY "out of memory for users"
#define TOO_LONG "a field is longer than %d bytes"
#define GROWTH_MAX 18 /* of a text in UTF-8 under NFKC, at most */

/* ---- checks ---------------------------------------------------------------------------------- */

static bool
is_email(const char *text)
{
    const char *at = strchr(text, '@');

    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == ',' || *c == ';')
            return false;
    }
    return at != NULL && at != text && at[1] != '\0' && strchr(at + 1, '@') == NULL &&
           strlen(text) <= INGEST_EMAIL_BYTES_MAX;
}

static bool
has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    }
    return false;
}

static il_status
check_user(const struct ingest_user *u, const char *transponder, il_error *reterr)
{
    if (u->email == NULL || u->email[0] == '\0')
        return il__error_set(reterr, IL_INVAL, "missing email");
    if (!is_email(u->email))
        return il__error_set(reterr, IL_INVAL, "'%.100s' is not an email address", u->email);
    if (u->name == NULL || u->name[strspn(u->name, " ")] == '\0')
        return il__error_set(reterr, IL_INVAL, "missing name");
    if (strlen(u->name) > LIVERC_TEXT_BYTES_MAX || strlen(transponder) > LIVERC_TEXT_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, TOO_LONG, LIVERC_TEXT_BYTES_MAX);
    if (has_control(u->name) || has_control(transponder))
        return il__error_set(reterr, IL_INVAL, "name or transponder contains control characters");
    if (!il__utf8_valid(u->name, strlen(u->name)) ||
        !il__utf8_valid(transponder, strlen(transponder)))
        return il__error_set(reterr, IL_INVAL, "name or transponder is not valid UTF-8");
    return IL_OK;
}

const char *
il__ingest_email(void **mem, const char *text)
{
    char *copy = il__arena_strdup(mem, text);

    for (char *c = copy; c != NULL && *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return copy;
}

/* A text as on the pages of the site, in *mem. A text of one code point can become one of 18. */
static il_status
normalise(void **mem, const char *text, const char **ret, il_error *reterr)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, GROWTH_MAX * LIVERC_TEXT_BYTES_MAX);
    bool ok = il__liverc_normalise(text, strlen(text), &b) && !b.failed;
    if (ok && b.n_bytes > LIVERC_TEXT_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, TOO_LONG, LIVERC_TEXT_BYTES_MAX);
    const char *copy = ok ? il__arena_strdup(mem, il__buf_str(&b)) : NULL;
    if (copy == NULL)
        return il__error_set(reterr, IL_NOMEM, NO_MEMORY);
    *ret = copy;
    return IL_OK;
}

il_status
il__ingest_user_take(const struct ingest_user *u, void **mem, struct ingest_user *ret,
                     il_error *reterr)
{
    const char        *transponder = u->transponder != NULL ? u->transponder : "";
    struct ingest_user taken       = { .name = "" };

    il_status st = check_user(u, transponder, reterr);
    if (st == IL_OK)
        st = normalise(mem, u->name, &taken.name, reterr);
    if (st == IL_OK && taken.name[0] == '\0')
        st = il__error_set(reterr, IL_INVAL, "missing name");
    if (st == IL_OK)
        st = normalise(mem, transponder, &taken.transponder, reterr);
    if (st == IL_OK && (taken.email = il__ingest_email(mem, u->email)) == NULL)
        st = il__error_set(reterr, IL_NOMEM, NO_MEMORY);
    if (st == IL_OK)
        *ret = taken;
    return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct user_write {
    struct ingest_tx         *t;
    const struct ingest_user *users; /* as taken, sorted by email */
    size_t                    n, i;
};

static int
order_users(const void *a, const void *b)
{
    return strcmp(((const struct ingest_user *)a)->email, ((const struct ingest_user *)b)->email);
}

static enum rows_next
next_user(void *cookie, il_guard_value *v)
{
    struct user_write *w = cookie;

    if (w->i == w->n)
        return ROWS_END;
    const struct ingest_user *u     = &w->users[w->i++];
    const char               *id    = il__ingest_new_id(w->t, NULL);
    const char               *match = il__ingest_match_name(w->t, u->name, NULL);
    v[0]                            = il_guard_text(id);
    v[1]                            = il_guard_text(u->email);
    v[2]                            = il_guard_text(u->name);
    v[3]                            = il_guard_text(match);
    v[4] = il_guard_text(u->transponder[0] != '\0' ? u->transponder : NULL);
    return id != NULL && match != NULL ? ROWS_MORE : ROWS_NO_MEMORY;
}

static il_status
write_users(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement write = APP_STATEMENT_EACH(user_write);
    static const char *const names[]  = { "id", "email", "name", "match_name", "transponder" };
    struct user_write       *w        = cookie;
    const il_guard_value     shared[] = { il_guard_text(t->w->tenant), il_guard_int(t->now_ms) };
    struct rows              r        = { .statement = &write,
                                          .shared    = shared,
                                          .n_shared  = ARRAY_LEN(shared),
                                          .columns   = names,
                                          .n_columns = ARRAY_LEN(names),
                                          .next      = next_user,
                                          .cookie    = w };

    w->t = t;
    w->i = 0;
    return il__ingest_rows(t, &r, INGEST_USERS, NULL, reterr);
}

/* Copies as they are stored, sorted by email. */
static il_status
prepare_users(const struct ingest_user *users, size_t n, void **mem, struct ingest_user **ret,
              il_error *reterr)
{
    struct ingest_user *all = il__arena_alloc(mem, (n + 1) * sizeof *all);

    if (all == NULL)
        return il__error_set(reterr, IL_NOMEM, NO_MEMORY);
    for (size_t i = 0; i < n; i++) {
        il_status st = il__ingest_user_take(&users[i], mem, &all[i], reterr);
        if (st != IL_OK)
            return st;
    }
    qsort(all, n, sizeof *all, order_users);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(all[i - 1].email, all[i].email) == 0)
            return il__error_set(reterr, IL_INVAL, "%.254s is listed twice", all[i].email);
    }
    *ret = all;
    return IL_OK;
}

il_status
il__ingest_users_write(il_guard *g, const struct ingest_write *w, const struct ingest_user *users,
                       size_t n, il_error *reterr)
{
    void               *mem = NULL;
    struct ingest_user *all = NULL;
    il_status           st  = il__liverc_load(reterr); /* names are normalised */

    if (st == IL_OK)
        st = prepare_users(users, n, &mem, &all, reterr);
    if (st == IL_OK) {
        struct user_write u = { .users = all, .n = n };
        st                  = il__ingest_transact(g, w, "users_write", write_users, &u, reterr);
    }
    il__arena_free(&mem);
    return st;
}
