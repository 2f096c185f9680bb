/*
 * route.c: the route table (routes.def): every row is found by its own path only; arguments,
 * hostile paths, query strings.
 */
#include <stdio.h>

#include "http/route.h"
#include "http/ui.h"

#include "harness/unit.h"

struct found {
    const struct http_route *route;
    const char              *args[HTTP_PATH_ARGS_MAX];
    const char              *allow;
    void                    *mem;
};

static struct found
find(const char *method, const char *path)
{
    struct found f = { 0 };

    f.route = http_route_find(method, path, &f.mem, f.args, &f.allow);
    return f;
}

static void
end(struct found *f)
{
    il__arena_free(&f->mem);
}

/* The path of a row as a client writes it: {q} becomes `arg`. */
static void
path_of(const struct http_route *route, const char *arg, char out[512])
{
    bool        below = route->path[1] != '/';
    const char *at    = below ? route->path : route->path + 1;
    size_t      n     = (size_t)snprintf(out, 512, "%s", below ? HTTP_BASE : "");

    for (; *at != '\0'; at++) {
        if (*at == '{') {
            n += (size_t)snprintf(out + n, 512 - n, "%s", arg);
            at = strchr(at, '}');
        } else {
            out[n++] = *at;
        }
    }
    out[n] = '\0';
}

U_TEST(every_row_finds_itself)
{
    http_routes_init();
    for (size_t i = 0; i < http_n_routes; i++) {
        const struct http_route *route = http_route(i);
        char                     path[512];
        path_of(route, "x", path);
        struct found f = find(route->method, path);
        if (f.route != route)
            T_FAIL("%s %s found %s", route->method, path,
                   f.route != NULL ? f.route->id : "nothing");
        T_EQU(http_route_index(f.route), i);
        T_EQ(route->permission.role >= HTTP_MAY_open && route->permission.role <= HTTP_MAY_admin,
             true);
        T_EQ(route->fn != NULL && route->summary[0] != '\0', true);
        size_t n_bytes;
        if (http_route_arg(route->path, 0, &n_bytes) != NULL)
            T_STREQ(f.args[0], "x");
        end(&f);
        if (strcmp(route->method, "GET") == 0) {
            f = find("HEAD", path);
            T_EQ(f.route == route, true);
            end(&f);
        }
    }
}

static void
handler(struct http_request *r UNUSED)
{
}

/* Routes of apps: found like the others; HTTP_BARE ones also without the prefix; of two that fit,
 * the first. */
U_TEST(apps_have_routes)
{
    static const struct http_route more[] = {
        { .method     = "GET",
          .path       = "/things/all",
          .permission = HTTP_ACCESS(read, NONE),
          .fn         = handler,
          .flags      = HTTP_BARE,
          .summary    = "s",
          .id         = "thing_all" },
        { .method     = "GET",
          .path       = "/things/{id}",
          .permission = HTTP_ACCESS(read, NONE),
          .fn         = handler,
          .flags      = HTTP_BARE,
          .summary    = "s",
          .id         = "thing_get" },
        { .method     = "GET",
          .path       = "/others",
          .permission = HTTP_ACCESS(read, NONE),
          .fn         = handler,
          .summary    = "s",
          .id         = "other_list" },
    };
    static const struct {
        const char *path, *id; /* NULL: there is none */
    } rows[] = {
        { HTTP_BASE "/things/all", "thing_all" },
        { "/things/all", "thing_all" },
        { HTTP_BASE "/things/al", "thing_get" },
        { "/things/al", "thing_get" },
        { HTTP_BASE "/others", "other_list" },
        { "/others", NULL },
        { "/things", NULL },
        { "/things/", NULL },
        { HTTP_BASE HTTP_BASE "/things/al", NULL },
        { "/locks", NULL },
        { "/admin/tenants", "admin_tenant_list" },
        { HTTP_UI_BASE "/things/al", "thing_get" },
        { HTTP_UI_BASE "/locks", "lock_list" },
        { HTTP_UI_BASE HTTP_BASE "/locks", NULL },
        { HTTP_BASE HTTP_UI_BASE "/locks", NULL },
        { HTTP_UI_BASE "/health", NULL },
        { HTTP_UI_BASE "/", NULL },
        { "/ui", "ui_folder" },
        { "/ui/", "ui_index" },
        { "/ui//", NULL },
        { "/ui/session", "ui_session_get" },
        { "/ui/session/", NULL },
        { "/ui/app.js", "ui_file" },
    };
    size_t n_before;

    http_routes_init();
    n_before = http_n_routes;
    http_routes_add(NULL, more, ARRAY_LEN(more));
    T_EQU(http_n_routes, n_before + ARRAY_LEN(more));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct found f = find("GET", rows[i].path);
        if ((f.route == NULL) != (rows[i].id == NULL) ||
            (f.route != NULL && strcmp(f.route->id, rows[i].id) != 0))
            T_FAIL("%s found %s", rows[i].path, f.route != NULL ? f.route->id : "nothing");
        end(&f);
    }
    struct found f = find("POST", "/things/all");
    T_STREQ(f.allow, "GET, HEAD");
    end(&f);
    http_routes_init();
    T_EQU(http_n_routes, n_before);
}

U_TEST(ids_are_unique)
{
    for (size_t i = 0; i < http_n_routes; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(http_route(i)->id, http_route(k)->id) == 0)
                T_FAIL("two routes are %s", http_route(i)->id);
        }
    }
}

/* A path that is cut, or has something behind it, is another path: of another row, or of none. */
U_TEST(no_part_of_a_path_finds_it)
{
    for (size_t i = 0; i < http_n_routes; i++) {
        const struct http_route *route = http_route(i);
        char                     path[512];
        char                     other[520];
        path_of(route, "xyz", path);
        for (size_t n = 0; n < strlen(path); n++) {
            (void)snprintf(other, sizeof other, "%.*s", (int)n, path);
            struct found f = find(route->method, other);
            /* but for an argument at the end, which may be shorter */
            bool shorter = f.route == route && strlen(path) - n < 3 &&
                           route->path[strlen(route->path) - 1] == '}';
            if (f.route == route && !shorter)
                T_FAIL("%s finds %s", other, route->id);
            end(&f);
        }
        static const char *const tails[] = { "/",  "//",  "/x/y/z/x/y/z", ";a=b",
                                             "/.", "%00", "%2f",          " " };
        for (size_t k = 0; k < ARRAY_LEN(tails); k++) {
            (void)snprintf(other, sizeof other, "%s%s", path, tails[k]);
            struct found f = find(route->method, other);
            bool other_arg = f.route == route && (tails[k][0] == ';' || tails[k][0] == ' ') &&
                             route->path[strlen(route->path) - 1] == '}';
            if (f.route == route && !other_arg)
                T_FAIL("%s finds %s", other, route->id);
            end(&f);
        }
    }
}

U_TEST(other_methods_are_told_which_there_are)
{
    struct found f = find("DELETE", HTTP_BASE "/locks");

    T_EQ(f.route == NULL, true);
    T_STREQ(f.allow, "GET, HEAD");
    end(&f);
    f = find("PATCH", HTTP_BASE "/queues/mail");
    T_STREQ(f.allow, "GET, HEAD, PUT");
    end(&f);
    f = find("GET", HTTP_BASE "/nothing");
    T_EQ(f.route == NULL && f.allow == NULL, true);
    end(&f);
    f = find("get", HTTP_BASE "/locks");
    T_EQ(f.route == NULL && f.allow != NULL, true);
    end(&f);
}

U_TEST(arguments_are_decoded)
{
    static const struct {
        const char *sent, *means; /* NULL: no such path */
    } rows[] = {
        { "mail", "mail" },
        { "a%20b", "a b" },
        { "a+b", "a+b" },
        { "%C3%A9t%c3%a9", "\xC3\xA9t\xC3\xA9" },
        { "a:b@c.d-e_f~", "a:b@c.d-e_f~" },
        { "..", ".." },
        { "%2e%2e", ".." },
        { "{id}", "{id}" },
        { "%2F", NULL },
        { "a%2fb", NULL },
        { "%00", NULL },
        { "a%00b", NULL },
        { "%", NULL },
        { "%1", NULL },
        { "%zz", NULL },
        { "%0a", NULL },
        { "%7f", NULL },
        { "%C2%85", NULL },
        { "%ff", NULL },
        { "%c0%af", NULL },
        { "%ED%A0%80", NULL },
        { "", NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[256];
        (void)snprintf(path, sizeof path, HTTP_BASE "/queues/%s/claim", rows[i].sent);
        struct found f = find("POST", path);
        if ((f.route != NULL) != (rows[i].means != NULL))
            T_FAIL("'%s'", rows[i].sent);
        if (f.route != NULL)
            T_STREQ(f.args[0], rows[i].means);
        T_EQ(f.allow == NULL, true);
        end(&f);
    }
    struct found f = find("DELETE", HTTP_BASE "/admin/locks/acme/a%20b");
    T_STREQ(f.args[0], "acme");
    T_STREQ(f.args[1], "a b");
    end(&f);
}

U_TEST(hostile_paths)
{
    static const char *const paths[] = {
        "",
        "x",
        "*",
        "//",
        "///",
        "/api",
        "/api/",
        "/api/v1",
        "/api/v1/",
        "/api/v1//locks",
        "//api/v1/locks",
        "/API/v1/locks",
        "/api/v1/locks/",
        "/api/v1/./locks",
        "/api/v1/x/../locks",
        "/api/v2/locks",
        "/api/v1locks",
        "http://x/api/v1/locks",
        "/health/",
        "/health%20",
        "/%68ealth",
        "/api/v1/%6cocks",
        "/api/v1/locks%2Fget",
        "/api/v1/a/b/c/d/e/f/g/h/i/j/k/l/m",
        "/\xff\xfe",
        "/api/v1/queues//claim",
        "/api/v1/runs//log",
        "/metrics/",
        "/.",
        "/..",
        "/../health",
    };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct found f = find("GET", paths[i]);
        if (f.route != NULL || f.allow != NULL)
            T_FAIL("'%s' is found", paths[i]);
        end(&f);
    }
}

/* An op of a batch needs what its own route needs. */
U_TEST(every_op_has_a_permission)
{
    for (int type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        const struct http_route *route = http_route_of_op((il_op_type)type);
        T_EQ((int)route->op, type);
        T_EQ(route->permission.role >= HTTP_MAY_read, true);
        /* a read needs no more than read, and what changes something more than that */
        static const bool writes[IL_OP_COUNT] = {
#define X(name, num, wire, changes, text) [num] = changes,
            IL_OP_MAP(X)
#undef X
        };
        T_EQ(route->permission.role > HTTP_MAY_read, writes[type]);
    }
}

U_TEST(query_strings)
{
    static const struct {
        const char *sent;
        bool        ok;
        const char *pairs[4][2];
    } rows[] = {
        { "", true, { { NULL } } },
        { "&&", true, { { NULL } } },
        { "a=b", true, { { "a", "b" } } },
        { "a", true, { { "a", "" } } },
        { "a=", true, { { "a", "" } } },
        { "=b", true, { { "", "b" } } },
        { "a=b=c", true, { { "a", "b=c" } } },
        { "a=1&b=2&&c=3", true, { { "a", "1" }, { "b", "2" }, { "c", "3" } } },
        { "a+b=c+d", true, { { "a b", "c d" } } },
        { "%61=%62%2B", true, { { "a", "b+" } } },
        { "a=%", false, { { NULL } } },
        { "a=%4", false, { { NULL } } },
        { "a=%00", false, { { NULL } } },
        { "a=%0d%0a", false, { { NULL } } },
        { "a=%ff", false, { { NULL } } },
        { "%zz=1", false, { { NULL } } },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char  text[64];
        char *at = text;
        char *name;
        char *value;
        (void)snprintf(text, sizeof text, "%s", rows[i].sent);
        for (size_t k = 0;; k++) {
            bool ok = http_query_next(&at, &name, &value);
            if (ok != rows[i].ok)
                T_FAIL("'%s'", rows[i].sent);
            if (!ok || name == NULL) {
                if (ok && rows[i].pairs[k][0] != NULL)
                    T_FAIL("'%s' ends after %zu", rows[i].sent, k);
                break;
            }
            T_STREQ(name, rows[i].pairs[k][0]);
            T_STREQ(value, rows[i].pairs[k][1]);
        }
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_row_finds_itself),
        U_ROW(apps_have_routes),
        U_ROW(ids_are_unique),
        U_ROW(no_part_of_a_path_finds_it),
        U_ROW(other_methods_are_told_which_there_are),
        U_ROW(arguments_are_decoded),
        U_ROW(hostile_paths),
        U_ROW(every_op_has_a_permission),
        U_ROW(query_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
