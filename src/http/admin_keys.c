/*
 * admin_keys.c: API keys over HTTP: create, list, revoke.
 */
#include "base/clock.h"
#include "http/admin.h"
#include "http/audit.h"
#include "http/auth.h"
#include "http/handler.h"
#include "http/server.h"

struct key_work {
    struct http_page_in  page;
    struct http_key_in   in;
    struct http_revoke   revoke;
    char                *permissions; /* separated by spaces */
    il_status            status;
    il_error             error;
    char                 id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct http_key_out  key;
    struct http_key_out *rows;
    size_t               n;
    void               **mem;
    bool                 nomem;
    /* Revoking: */
    const struct http_caller *caller;
    bool                      found;
    bool                      above; /* the key is an admin's and the caller is not an admin */
};

static struct key_work *
key_work(struct http_request *r)
{
    struct key_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return NULL;
    w->mem   = &r->mem;
    r->state = w;
    return w;
}

/* "a b" as ["a","b"]; NULL: no memory. Permissions have no characters that JSON would escape. */
static const char *
as_list(void **mem, const char *words)
{
    size_t n    = strlen(words);
    char  *list = il__arena_alloc(mem, 4 * n + 3);
    char  *at   = list;

    if (list == NULL)
        return NULL;
    *at++ = '[';
    for (const char *p = words; *p != '\0';) {
        size_t n_word = strcspn(p, " ");
        if (n_word > 0) {
            if (at[-1] != '[')
                *at++ = ',';
            *at++ = '"';
            memcpy(at, p, n_word);
            at += n_word;
            *at++ = '"';
        }
        p += n_word + (p[n_word] == ' ');
    }
    *at++ = ']';
    *at   = '\0';
    return list;
}

static void
copy_key(void *cookie, const struct il__data_key *k)
{
    struct key_work *w = cookie;

    w->key = (struct http_key_out){
        .id            = il__arena_strdup(w->mem, k->id),
        .tenant        = il__arena_strdup(w->mem, k->tenant),
        .name          = il__arena_strdup(w->mem, k->name),
        .role          = il__data_role_name(k->role),
        .permissions   = as_list(w->mem, k->permissions),
        .prefix        = il__arena_strdup(w->mem, k->prefix),
        .created_at_ms = k->created_at_ms,
        .expires_at_ms = k->expires_at_ms,
        .used_at_ms    = k->used_at_ms,
        .revoked_at_ms = k->revoked_at_ms,
    };
    w->nomem = w->key.id == NULL || w->key.tenant == NULL || w->key.name == NULL ||
               w->key.permissions == NULL || w->key.prefix == NULL;
}

/* ---- creating a key -------------------------------------------------------------------------- */

/* Convert the permissions of a body (a JSON array or words) to words. False: the request has
 * been answered. */
static bool
take_permissions(struct http_request *r, struct key_work *w)
{
    const char             *text = w->in.permissions != NULL ? w->in.permissions : "";
    size_t                  n    = w->in.permissions_bytes;
    AUTO_BUF struct il__buf words;

    il__buf_init(&words, DATA_PERMISSIONS_BYTES_MAX + 1);
    if (n == 0 || text[0] != '[') {
        il__buf_add(&words, text, n);
    } else {
        json_t *list = json_loadb(text, n, 0, NULL);
        bool    ok   = json_is_array(list);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *word = json_string_value(json_array_get(list, i));
            ok               = ok && word != NULL && word[0] != '\0' && strchr(word, ' ') == NULL;
            if (!ok)
                break;
            il__buf_addf(&words, "%s%s", i > 0 ? " " : "", word);
        }
        json_decref(list);
        if (!ok) {
            http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                      "field 'permissions': must be a list of names or a string");
            return false;
        }
    }
    if (words.failed) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field 'permissions': longer than %d bytes in total", DATA_PERMISSIONS_BYTES_MAX);
        return false;
    }
    w->permissions = il__arena_strdup(&r->mem, il__buf_str(&words));
    if (w->permissions == NULL)
        http_fail_nomem(r);
    return w->permissions != NULL;
}

static void
do_create(struct http_request *r)
{
    struct key_work    *w   = r->state;
    struct il__data_key key = { .tenant        = w->in.tenant,
                                .name          = w->in.name != NULL ? w->in.name : "",
                                .role          = w->in.role,
                                .permissions   = w->permissions,
                                .prefix        = w->in.prefix != NULL ? w->in.prefix : "",
                                .created_at_ms = il__clock_wall_ms(),
                                .expires_at_ms = w->in.expires_at_ms };

    w->status = il__data_key_create(r->server->data, &key, false, w->id, w->secret, &w->error);
    key.id    = w->id;
    copy_key(w, &key);
    w->key.key = w->secret;
}

static void
created(struct http_request *r)
{
    struct key_work *w = r->state;

    if (w->status == IL_NOT_FOUND)
        http_fail(r, 404, il_status_name(IL_NOT_FOUND), "request", NULL, "no such tenant: %s",
                  w->in.tenant);
    else if (w->status != IL_OK)
        http_fail_data(r, &w->error);
    else if (w->nomem)
        http_fail_nomem(r);
    else
        http_say(r, 201, &http_out_new_key, &w->key);
    il__data_forget(w->secret, sizeof w->secret);
}

static void
did_create(struct http_request *r)
{
    struct key_work *w       = r->state;
    char            *details = http_alloc(r, 64);

    if (w->status == IL_INVAL) { /* nothing was tried */
        created(r);
        return;
    }
    http_auth_forget(r->server); /* it may be cached as unknown */
    if (details != NULL) {
        AUTO_BUF struct il__buf b;
        il__buf_init(&b, 63);
        il__buf_addf(&b, "{\"role\":\"%s\"}", il__data_role_name(w->in.role));
        memcpy(details, il__buf_str(&b), b.n_bytes + 1);
    }
    http_audit(r,
               &(struct http_action){ .tenant  = w->in.tenant,
                                      .action  = "key.create",
                                      .what    = w->status == IL_OK ? w->id : "",
                                      .outcome = il_status_name(w->status),
                                      .details = details },
               created);
}

/* Is each of the words also among the caller's permissions? */
static bool
has_words(const char *mine, const char *words)
{
    for (const char *p = words; *p != '\0';) {
        size_t n     = strcspn(p, " ");
        bool   found = n == 0;
        for (const char *m = mine; !found && *m != '\0';) {
            size_t n_mine = strcspn(m, " ");
            found         = n_mine == n && strncmp(m, p, n) == 0;
            m += n_mine + (m[n_mine] == ' ');
        }
        if (!found)
            return false;
        p += n + (p[n] == ' ');
    }
    return true;
}

/* A key can only grant permissions it has itself. Otherwise a key that may only create keys, or
 * an admin key with a prefix, could obtain all permissions. */
static bool
may_give(const struct http_request *r, const struct key_work *w)
{
    const struct http_caller *c = r->caller;

    if (!http_may_see(r, w->in.prefix))
        return false;
    return c->role == DATA_ROLE_ADMIN ||
           (w->in.role <= c->role && http_may_reach(c, w->in.tenant) &&
            has_words(c->permissions, w->permissions));
}

/* A new key must not outlive its creator: otherwise a key valid for an hour could create one
 * that never expires. */
static bool
may_last(const struct http_caller *c, const struct key_work *w)
{
#ifdef IL_MUTANT_key_outlives_its_maker
    return true;
#endif
    return c->expires_at_ms == 0 ||
           (w->in.expires_at_ms != 0 && w->in.expires_at_ms <= c->expires_at_ms);
}

void
http_admin_key_create(struct http_request *r)
{
    struct key_work *w = key_work(r);

    if (w == NULL || !http_take_body(r, &w->in) || !take_permissions(r, w))
        return;
    if (!may_give(r, w)) {
        http_refuse(
            r, NULL,
            "a key can only be granted what its creator has (tenant, role, permissions, prefix)");
        return;
    }
    if (w->in.role == DATA_ROLE_NONE && w->permissions[0] == '\0') {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "either 'role' or 'permissions' is required");
        return;
    }
    if (w->in.expires_in_ms > 0 && w->in.expires_at_ms > 0) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field 'expires_in_ms': cannot be combined with 'expires_at'");
        return;
    }
    if (w->in.expires_in_ms > 0)
        w->in.expires_at_ms = il__clock_wall_ms() + w->in.expires_in_ms;
    if (w->in.expires_at_ms != 0 && w->in.expires_at_ms <= il__clock_wall_ms()) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL,
                  "field 'expires_at': is in the past");
        return;
    }
    if (!may_last(r->caller, w)) {
        http_refuse(r, NULL,
                    "field 'expires_at': must not be later than the expiry of the caller's key");
        return;
    }
    http_errand(r, do_create, did_create);
}

/* ---- listing --------------------------------------------------------------------------------- */

static void
add_key(void *cookie, const struct il__data_key *k)
{
    struct key_work *w = cookie;

    copy_key(w, k);
    if (!w->nomem)
        w->rows[w->n++] = w->key;
}

static void
do_list(struct http_request *r)
{
    struct key_work *w = r->state;

    w->status = il__data_key_list(r->server->data, w->page.tenant, w->page.cursor,
                                  w->page.limit + 1, add_key, w, &w->error);
}

static void
did_list(struct http_request *r)
{
    struct key_work *w = r->state;
    size_t           n = MIN(w->n, w->page.limit);

    if (w->status != IL_OK)
        http_fail_data(r, &w->error);
    else
        http_say_page(r, &http_out_key, w->rows, sizeof *w->rows, n,
                      w->n > n ? w->rows[n - 1].id : NULL);
}

void
http_admin_key_list(struct http_request *r)
{
    struct key_work *w = key_work(r);

    if (w == NULL || !http_take_query(r, &w->page) || !http_admin_narrow(r, &w->page.tenant))
        return;
    w->rows = http_page_rows(r, &w->page, sizeof *w->rows);
    if (w->rows != NULL)
        http_errand(r, do_list, did_list);
}

/* ---- revoking -------------------------------------------------------------------------------- */

static void
take_found(void *cookie, const struct il__data_key *k)
{
    struct key_work *w = cookie;

    w->found = true;
    w->above = k->role == DATA_ROLE_ADMIN && w->caller->role < DATA_ROLE_ADMIN;
    copy_key(w, k);
}

/* The role of a key never changes, so it may be read before the transaction that revokes it. */
static void
do_revoke(struct http_request *r)
{
    struct key_work *w      = r->state;
    const char      *tenant = w->page.tenant;

    w->status = il__data_key_get(r->server->data, tenant, w->revoke.id, take_found, w, &w->error);
    if (w->status != IL_OK)
        return;
    if (w->above)
        w->status = IL_STATE;
    else
        w->status = il__data_key_revoke(r->server->data, tenant, w->revoke.id, w->revoke.force == 0,
                                        &w->error);
}

static void
revoked(struct http_request *r)
{
    struct key_work *w = r->state;

    w->revoke.revoked = 1;
    if (w->above)
        http_refuse(r, "{\"role\":\"admin\"}",
                    "only keys with the role admin can revoke an admin key");
    else if (w->status == IL_STATE)
        http_fail(r, 409, "LAST_ADMIN_KEY", "auth", NULL,
                  "refusing to revoke the last valid admin key: without it, no admin key can be "
                  "created over HTTP; use ?force=true");
    else if (w->status != IL_OK)
        http_fail_data(r, &w->error);
    else
        http_say(r, 200, &http_out_revoked, &w->revoke);
}

static void
did_revoke(struct http_request *r)
{
    struct key_work *w = r->state;

    http_auth_forget(r->server);
    http_audit(r,
               &(struct http_action){ .tenant  = w->found && !w->nomem ? w->key.tenant : NULL,
                                      .action  = "key.revoke",
                                      .what    = w->revoke.id,
                                      .outcome = w->above ? "FORBIDDEN"
                                                 : w->status == IL_STATE
                                                     ? "LAST_ADMIN_KEY"
                                                     : il_status_name(w->status) },
               revoked);
}

void
http_admin_key_revoke(struct http_request *r)
{
    struct key_work *w = key_work(r);

    if (w == NULL || !http_take_query(r, &w->revoke))
        return;
    w->revoke.id = r->args[0];
    w->caller    = r->caller;
    if (http_admin_narrow(r, &w->page.tenant))
        http_errand(r, do_revoke, did_revoke);
}
