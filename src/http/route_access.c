/*
 * route_access.c: what a valid key may do: which routes it may call, by its role and permissions,
 * and by its prefix; which tenants it reaches. scope.c decides which names it may use. Whatever is
 * refused because of the key is counted, logged and worded here.
 */
#include "http/auth.h"

#include <stdio.h>

#include "http/log.h"
#include "http/metrics.h"

static const char *const permission_names[] = {
    [HTTP_MAY_open] = "open",   [HTTP_MAY_any] = "any",           [HTTP_MAY_read] = "read",
    [HTTP_MAY_write] = "write", [HTTP_MAY_operator] = "operator", [HTTP_MAY_admin] = "admin",
};

const char *
http_permission_name(enum http_permission permission)
{
    return (size_t)permission < ARRAY_LEN(permission_names) && permission_names[permission] != NULL
               ? permission_names[permission]
               : "none";
}

static enum il__data_role
role_for(enum http_permission permission)
{
    static const enum il__data_role roles[] = {
        [HTTP_MAY_open] = DATA_ROLE_NONE,         [HTTP_MAY_any] = DATA_ROLE_NONE,
        [HTTP_MAY_read] = DATA_ROLE_READ,         [HTTP_MAY_write] = DATA_ROLE_WRITE,
        [HTTP_MAY_operator] = DATA_ROLE_OPERATOR, [HTTP_MAY_admin] = DATA_ROLE_ADMIN,
    };

    /* A permission that is not in the table is granted to no one. */
    return permission >= HTTP_MAY_open && (size_t)permission < ARRAY_LEN(roles) ? roles[permission]
                                                                                : DATA_ROLE_COUNT;
}

/* Does one word of a key's permissions name the route? */
static bool
names_route(const char *word, size_t n, const char *id)
{
    const char *cut    = strchr(id, '_');
    size_t      n_area = cut != NULL ? (size_t)(cut - id) : strlen(id);

    if (n == strlen(id) && strncmp(word, id, n) == 0)
        return true;
    if (n <= n_area || strncmp(word, id, n_area) != 0 || word[n_area] != ':' || cut == NULL)
        return false;
    word += n_area + 1;
    n -= n_area + 1;
    return n == strlen(cut + 1) && strncmp(word, cut + 1, n) == 0;
}

/* "admin:usage:write" includes "admin:usage". */
static bool
includes_grant(const char *word, size_t n, const char *grant)
{
    size_t n_grant = strlen(grant);

    return n >= n_grant && strncmp(word, grant, n_grant) == 0 &&
           (n == n_grant || word[n_grant] == ':');
}

bool
http_may_call(const struct http_caller *c, const struct http_route *route)
{
    if (c->role >= role_for(route->permission.role) && c->role < DATA_ROLE_COUNT)
        return true;
    for (const char *p = c->permissions; *p != '\0';) {
        size_t n = strcspn(p, " ");
        if (n > 0 && (route->grant != NULL ? includes_grant(p, n, route->grant)
                                           : names_route(p, n, route->id)))
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

void
http_permission_of(const struct http_route *route, char ret[HTTP_PERMISSION_BYTES])
{
    /* Both are short. */
    (void)snprintf(ret, HTTP_PERMISSION_BYTES, "%s",
                   route->grant != NULL ? route->grant : route->id);
    if (route->grant != NULL)
        return;
    char *cut = strchr(ret, '_');
    if (cut != NULL)
        *cut = ':';
}

/* ---- keys with a prefix ---------------------------------------------------------------------- */

bool
http_may_names(const struct http_caller *c, const struct http_route *route)
{
    const struct http_names *names = &route->permission.names;

#ifdef IL_MUTANT_prefix_of_route_ignored
    return true;
#endif
    switch (names->rule) {
    case HTTP_NAMES_none:
    case HTTP_NAMES_ops:
    case HTTP_NAMES_judged:
        return true;
    case HTTP_NAMES_under:
        return http_scope_has(c, names->under);
    case HTTP_NAMES_all:
    default: /* A rule that is not in the table is for nobody with a prefix. */
        return c->prefix[0] == '\0';
    }
}

bool
http_may_see(const struct http_request *r, const char *name)
{
    const struct http_names *names = &r->route->permission.names;

    CHECK(names->rule == HTTP_NAMES_judged);
    return names->judge(r, name);
}

/* ---- tenants --------------------------------------------------------------------------------- */

bool
http_may_reach(const struct http_caller *c, const char *tenant)
{
#ifdef IL_MUTANT_named_admin_of_all
    return true;
#endif
    return c->role == DATA_ROLE_ADMIN || (tenant != NULL && strcmp(tenant, c->tenant) == 0);
}

/* ---- refusals -------------------------------------------------------------------------------- */

struct refusal {
    const char *code;                              /* of errors.def */
    char        permission[HTTP_PERMISSION_BYTES]; /* that the key lacks; "": that is not why */
    const char *prefix; /* of the key, if it does not cover `names`; else NULL */
    const char *names;  /* NULL: no prefix would do */
    char        message[256];
};

/* Every refusal passes here once. */
static void
note(struct http_request *r, const struct refusal *f)
{
    http_count(r->server, HTTP_COUNT_forbidden, 1);
    if (!http_log_begin(r->server, HTTP_EVENT_forbidden))
        return;
    http_log_who(r->server, r);
    http_log_text(r->server, "permission", f->permission[0] != '\0' ? f->permission : NULL);
    http_log_text(r->server, "prefix", f->prefix);
    http_log_text(r->server, "names", f->names);
    http_log_text(r->server, "reason", f->message);
    http_log_end(r->server);
}

static void
refuse(struct http_request *r, const struct refusal *f, const char *details)
{
    note(r, f);
    http_fail(r, 403, f->code, "auth", details, "%s", f->message);
}

void
http_refuse(struct http_request *r, const char *details, const char *message)
{
    struct refusal f = { .code = "FORBIDDEN" };

    (void)snprintf(f.message, sizeof f.message, "%s", message);
    refuse(r, &f, details);
}

static struct refusal
lacks(const struct http_route *route)
{
    struct refusal f = { .code = "FORBIDDEN" };

    http_permission_of(route, f.permission);
    (void)snprintf(f.message, sizeof f.message,
                   "the API key needs the role '%s' or the permission '%s'",
                   http_permission_name(route->permission.role), f.permission);
    return f;
}

void
http_forbid(struct http_request *r, const struct http_route *route)
{
    struct refusal          f = lacks(route);
    AUTO_BUF struct il__buf details;

    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"role\":\"%s\",\"permission\":\"%s\"}",
                 http_permission_name(route->permission.role), f.permission);
    refuse(r, &f, il__buf_str(&details));
}

void
http_forbid_names(struct http_request *r, const struct http_route *route)
{
    const char    *under = route->permission.names.under;
    struct refusal f     = { .code = "FORBIDDEN", .prefix = r->caller->prefix, .names = under };
    AUTO_BUF struct il__buf details;

    il__buf_init(&details, 128 + 8 * DATA_PREFIX_BYTES_MAX);
    il__wire_open(&details, NULL);
    il__wire_put_text(&details, "prefix", f.prefix);
    il__wire_put_text(&details, "names", f.names);
    il__wire_close(&details);
    (void)snprintf(f.message, sizeof f.message, "this call needs an API key without a prefix%s%s%s",
                   under != NULL ? ", or one whose prefix covers '" : "",
                   under != NULL ? under : "", under != NULL ? "'" : "");
    refuse(r, &f, il__buf_str(&details));
}

static struct refusal
refused_op(const struct http_request *r, enum http_scope verdict, const struct http_route *route)
{
    if (verdict == HTTP_SCOPE_NO_PERMISSION)
        return lacks(route);
    if (verdict == HTTP_SCOPE_RESERVED)
        return (struct refusal){
            .code    = "KEY_RESERVED",
            .message = "the key is reserved for an app (use its routes, /pipelines/... or "
                       "/admin/usage/...) or for Idempotency-Key responses"
        };
    return (struct refusal){ .code    = "FORBIDDEN",
                             .prefix  = r->caller->prefix,
                             .message = "this API key cannot change names outside its prefix" };
}

void
http_refuse_op(struct http_request *r, enum http_scope verdict)
{
    struct refusal f = refused_op(r, verdict, r->route);

    refuse(r, &f, NULL);
}

void
http_say_refused(struct http_request *r, enum http_scope verdict, il_op_type type)
{
    struct refusal f = refused_op(r, verdict, http_route_of_op(type));

    note(r, &f);
    il__wire_open(&r->out, NULL);
    il__wire_put_text(&r->out, "status", f.code);
    il__wire_put_text(&r->out, "message", f.message);
    il__wire_close(&r->out);
}
