/*
 * target.c: request targets: path and query string. A matched route is spelled as in the table;
 * decoded text is valid, and no longer than the input.
 */
#include "base/parse.h"
#include "fuzz/fuzz.h"
#include "http/route.h"

static void
check_clean(const char *text, size_t n_max)
{
    size_t n_bytes = strlen(text);

    CHECK(n_bytes <= n_max);
    CHECK(il__utf8_valid(text, n_bytes));
    CHECK(!il__utf8_has_control(text, n_bytes));
}

static void
check_path(const char *path)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH" };

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        void                    *mem                      = NULL;
        const char              *args[HTTP_PATH_ARGS_MAX] = { NULL };
        const char              *allow                    = NULL;
        const struct http_route *route = http_route_find(methods[i], path, &mem, args, &allow);
        CHECK(route == NULL || allow == NULL);
        size_t n_bytes;
        for (size_t k = 0; route != NULL && http_route_arg(route->path, k, &n_bytes) != NULL; k++) {
            CHECK(args[k] != NULL && args[k][0] != '\0');
            CHECK(strchr(args[k], '/') == NULL);
            check_clean(args[k], strlen(path));
        }
        il__arena_free(&mem);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static bool ready;
    char       *text  = fuzz_text(data, n_bytes);
    char       *query = strchr(text, '?');
    char       *name;
    char       *value;

    if (!ready)
        http_routes_init();
    ready = true;
    if (query != NULL)
        *query++ = '\0';
    check_path(text);
    while (query != NULL && http_query_next(&query, &name, &value) && name != NULL) {
        check_clean(name, n_bytes);
        check_clean(value, n_bytes);
    }
    free(text);
    return 0;
}
