/*
 * route.c: finds the route of a request. The table is routes.def; it is split into path segments at
 * start-up and grouped by their number, so a lookup compares only a handful of short strings.
 */
#include "http/route.h"

#include "base/parse.h"
#include "http/admin.h"
#include "http/admin_config.h"
#include "http/bucket.h"
#include "http/handler.h"
#include "http/metrics.h"
#include "http/row_locks.h"
#include "http/samples.h"
#include "http/scope.h"
#include "http/ui.h"

#define SEGMENTS_MAX 8

struct segment {
    const char *text; /* not terminated */
    size_t      n_bytes;
    bool        is_arg;
};

static const struct http_route first[] = {
/* clang-format off */
#define R(method, path, permission, names, id, fn, query, body, answer, flags, summary) \
    { method,  path, { HTTP_MAY_##permission, HTTP_NAMES_##names }, http_##fn, query, body, \
      answer, flags, summary, #id,  IL_OP_NONE,            NULL,      NULL, NULL, NULL, NULL },
#define OP(method, path, permission, id, fn, op, answer, flags, summary) \
    { method,  path, { HTTP_MAY_##permission, HTTP_NAMES_OPS }, http_##fn, NULL, NULL, \
      answer, flags, summary, #id,  IL_OP_##op,            NULL,      NULL, NULL, NULL, NULL },
#define DO(method, path, permission, id, then, op, answer, flags, summary) \
    { method,  path, { HTTP_MAY_##permission, HTTP_NAMES_OPS }, http_do_route, NULL, NULL, \
      answer, flags, summary, #id,  IL_OP_##op,     NULL,      NULL, NULL, NULL, http_##then },
#include "http/routes.def"
#undef R
#undef OP
#undef DO
    /* clang-format on */
};

static struct http_route routes[HTTP_ROUTES_MAX]; /* the server's routes, then those of the apps */
size_t                   http_n_routes;
_Static_assert(ARRAY_LEN(first) < HTTP_ROUTES_MAX, "there is room for those of the apps");

/* Permissions of ops in a batch that have no route of their own. */
static const struct http_route only_in_batches[] = {
    { .permission = HTTP_ACCESS(operator, OPS), .id = "store_sweep", .op = IL_OP_SWEEP },
    { .permission = HTTP_ACCESS(write, OPS), .id = "once_begin", .op = IL_OP_ONCE_BEGIN },
    { .permission = HTTP_ACCESS(write, OPS), .id = "once_finish", .op = IL_OP_ONCE_FINISH },
    { .permission = HTTP_ACCESS(write, OPS), .id = "once_abandon", .op = IL_OP_ONCE_ABANDON },
    { .permission = HTTP_ACCESS(read, OPS), .id = "store_usage", .op = IL_OP_USAGE },
};

static struct {
    size_t         n;
    bool           below; /* HTTP_BASE */
    bool           bare;  /* and without it */
    struct segment segments[SEGMENTS_MAX];
} cut[HTTP_ROUTES_MAX];

static const struct http_route *of_op[IL_OP_COUNT];

/* ---- splitting paths ------------------------------------------------------------------------- */

/* The segments of "/a/{b}/c"; "/a/" ends with an empty one. Returns their number; SEGMENTS_MAX + 1:
 * too many. */
static size_t
cut_path(const char *path, struct segment out[SEGMENTS_MAX])
{
    size_t n = 0;

    while (*path == '/') {
        const char *text    = path + 1;
        size_t      n_bytes = strcspn(text, "/");
        if (n == SEGMENTS_MAX)
            return SEGMENTS_MAX + 1;
        out[n++] = (struct segment){ text, n_bytes, text[0] == '{' };
        path     = text + n_bytes;
    }
    return n;
}

const char *
http_route_arg(const char *path, size_t i, size_t *ret_bytes)
{
    for (;; i--) {
        path = strchr(path, '{');
        if (path == NULL)
            return NULL;
        path++;
        *ret_bytes = strcspn(path, "}");
        if (i == 0)
            return path;
    }
}

const struct http_route *
http_route(size_t i)
{
    CHECK(i < http_n_routes);
    return &routes[i];
}

size_t
http_route_index(const struct http_route *route)
{
    CHECK(route >= routes);
    CHECK(route < routes + http_n_routes);
    return (size_t)(route - routes);
}

const struct http_route *
http_route_of_op(il_op_type type)
{
    CHECK(type > IL_OP_NONE);
    CHECK(type < IL_OP_COUNT);
    CHECK(of_op[type] != NULL);
    return of_op[type];
}

static size_t n_buckets; /* that all routes name */

static const struct http_app *owners[HTTP_ROUTES_MAX];

const struct http_app *
http_route_app(const struct http_route *route)
{
    return owners[http_route_index(route)];
}

/* Is the bucket of the i-th route none of the routes before it? */
static bool
is_new_bucket(size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (routes[k].bucket == routes[i].bucket)
            return false;
    }
    return routes[i].bucket != NULL;
}

static void
check_row(const struct http_route *route)
{
    const struct http_access *a = &route->permission;

    CHECK(a->role >= HTTP_MAY_open);
    CHECK(a->names.rule >= HTTP_NAMES_none);
    CHECK((a->names.rule == HTTP_NAMES_under) == (a->names.under != NULL));
    CHECK((a->names.rule == HTTP_NAMES_judged) == (a->names.judge != NULL));
    CHECK(route->grant == NULL || a->role == HTTP_MAY_admin);
    CHECK(route->bucket == NULL || a->role != HTTP_MAY_open);
    CHECK((route->fn == http_do_route) == (route->then != NULL));
}

void
http_routes_add(const struct http_app *app, const struct http_route *more, size_t n)
{
    CHECK(n <= HTTP_ROUTES_MAX - http_n_routes);
    for (size_t k = 0; k < n; k++) {
        size_t             i     = http_n_routes++;
        struct http_route *route = &routes[i];
        *route                   = more[k];
        owners[i]                = app;
        check_row(route);
        n_buckets += is_new_bucket(i);
        CHECK(n_buckets <= HTTP_BUCKETS_MAX);
        cut[i].below = route->path[1] != '/';
        cut[i].bare  = (route->flags & HTTP_BARE) != 0;
        cut[i].n     = cut_path(cut[i].below ? route->path : route->path + 1, cut[i].segments);
        CHECK(cut[i].n <= SEGMENTS_MAX);
        if (route->op == IL_OP_NONE)
            continue;
        if (strcmp(route->method, "GET") == 0)
            route->query = &il__wire_inputs[route->op];
        else
            route->body = &il__wire_inputs[route->op];
        if (of_op[route->op] == NULL)
            of_op[route->op] = route;
    }
}

void
http_routes_init(void)
{
    http_n_routes = 0;
    n_buckets     = 0;
    http_routes_add(NULL, first, ARRAY_LEN(first));
    for (size_t i = 0; i < ARRAY_LEN(only_in_batches); i++)
        of_op[only_in_batches[i].op] = &only_in_batches[i];
}

/* ---- finding --------------------------------------------------------------------------------- */

bool
http_decode(char *text, bool plus)
{
    char       *to = text;
    const char *at = text;

    for (; *at != '\0'; at++) {
        if (*at == '%') {
            int byte = il__percent_byte(at);
            if (byte <= 0)
                return false;
            *to++ = (char)byte;
            at += 2;
        } else {
            *to++ = *at == '+' && plus ? ' ' : *at;
        }
    }
    *to            = '\0';
    size_t n_bytes = (size_t)(to - text);
    return il__utf8_valid(text, n_bytes) && !il__utf8_has_control(text, n_bytes);
}

static bool
matches(size_t i_route, bool below, const struct segment *have, size_t n)
{
    if (cut[i_route].n != n || (cut[i_route].below != below && !(cut[i_route].bare && !below)))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct segment *want = &cut[i_route].segments[i];
        if (want->is_arg ? have[i].n_bytes == 0
                         : want->n_bytes != have[i].n_bytes ||
                               memcmp(want->text, have[i].text, want->n_bytes) != 0)
            return false;
    }
    return true;
}

static bool
decode_args(size_t i_route, const struct segment *have, void **mem,
            const char *args[HTTP_PATH_ARGS_MAX])
{
    size_t n_args = 0;

    for (size_t i = 0; i < cut[i_route].n; i++) {
        if (!cut[i_route].segments[i].is_arg)
            continue;
        CHECK(n_args < HTTP_PATH_ARGS_MAX);
        char *arg = il__arena_alloc(mem, have[i].n_bytes + 1);
        if (arg == NULL)
            return false;
        memcpy(arg, have[i].text, have[i].n_bytes);
        arg[have[i].n_bytes] = '\0';
        if (!http_decode(arg, false) || strchr(arg, '/') != NULL)
            return false;
        args[n_args++] = arg;
    }
    return true;
}

/* "GET, HEAD, POST": the methods of a path. */
static const char *
allowed(bool below, const struct segment *have, size_t n, void **mem)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 128);
    for (size_t i = 0; i < http_n_routes; i++) {
        if (!matches(i, below, have, n) || strstr(il__buf_str(&b), routes[i].method) != NULL)
            continue; /* (no method's name contains another's) */
        il__buf_addf(&b, "%s%s", b.n_bytes > 0 ? ", " : "", routes[i].method);
        if (strcmp(routes[i].method, "GET") == 0)
            il__buf_adds(&b, ", HEAD");
    }
    return b.n_bytes > 0 && !b.failed ? il__arena_strdup(mem, il__buf_str(&b)) : NULL;
}

/* The part of a path after one of the prefixes of the API; NULL: it has none. */
static const char *
below_base(const char *path)
{
    if (strncmp(path, HTTP_BASE "/", strlen(HTTP_BASE "/")) == 0)
        return path + strlen(HTTP_BASE);
    if (strncmp(path, HTTP_UI_BASE "/", strlen(HTTP_UI_BASE "/")) == 0)
        return path + strlen(HTTP_UI_BASE);
    return NULL;
}

const struct http_route *
http_route_find(const char *method, const char *path, void **mem,
                const char *args[HTTP_PATH_ARGS_MAX], const char **ret_allow)
{
    struct segment have[SEGMENTS_MAX];
    const char    *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    const char    *rest   = below_base(path);
    bool           below  = rest != NULL;

    *ret_allow = NULL;
    if (path[0] != '/')
        return NULL;
    size_t n = cut_path(below ? rest : path, have);
    if (n > SEGMENTS_MAX)
        return NULL;
    for (size_t i = 0; i < http_n_routes; i++) {
        if (!matches(i, below, have, n) || strcmp(routes[i].method, wanted) != 0)
            continue;
        return decode_args(i, have, mem, args) ? &routes[i] : NULL;
    }
    *ret_allow = allowed(below, have, n, mem);
    return NULL;
}
