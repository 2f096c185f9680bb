/*
 * permissions.c: which routes a valid key may call: by its role and permissions, and by its prefix.
 * scope.c decides which names it may use.
 */
#include "http/auth.h"

#include <stdio.h>

#include "http/log.h"
#include "http/metrics.h"
#include "http/scope.h"

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

/* Count and log a refusal. `permission` is missing; or it is NULL, and the caller's prefix does not
 * cover `names` (NULL: no prefix does). */
static void
note(struct http_request *r, const char *permission, const char *names)
{
    http_count(r->server, HTTP_COUNT_forbidden, 1);
    if (!http_log_begin(r->server, HTTP_EVENT_forbidden))
        return;
    http_log_who(r->server, r);
    http_log_text(r->server, "permission", permission);
    http_log_text(r->server, "prefix", permission == NULL ? r->caller->prefix : NULL);
    http_log_text(r->server, "names", names);
    http_log_end(r->server);
}

void
http_note_forbidden(struct http_request *r, const struct http_route *route)
{
    char name[HTTP_PERMISSION_BYTES];

    http_permission_of(route, name);
    note(r, name, NULL);
}

void
http_forbid(struct http_request *r, const struct http_route *route)
{
    char                    name[HTTP_PERMISSION_BYTES];
    AUTO_BUF struct il__buf details;

    http_permission_of(route, name);
    http_note_forbidden(r, route);
    il__buf_init(&details, 256);
    il__buf_addf(&details, "{\"role\":\"%s\",\"permission\":\"%s\"}",
                 http_permission_name(route->permission.role), name);
    http_fail(r, 403, "FORBIDDEN", "auth", il__buf_str(&details),
              "the API key needs the role '%s' or the permission '%s'",
              http_permission_name(route->permission.role), name);
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

void
http_forbid_names(struct http_request *r, const struct http_route *route)
{
    const char             *under = route->permission.names.under;
    AUTO_BUF struct il__buf details;

    note(r, NULL, under);
    il__buf_init(&details, 128 + 8 * DATA_PREFIX_BYTES_MAX);
    il__wire_open(&details, NULL);
    il__wire_put_text(&details, "prefix", r->caller->prefix);
    il__wire_put_text(&details, "names", under);
    il__wire_close(&details);
    if (under != NULL)
        http_fail(r, 403, "FORBIDDEN", "auth", il__buf_str(&details),
                  "this call needs an API key without a prefix, or one whose prefix covers '%s'",
                  under);
    else
        http_fail(r, 403, "FORBIDDEN", "auth", il__buf_str(&details),
                  "this call needs an API key without a prefix");
}
