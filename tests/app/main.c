/*
 * main.c: toy-server --store URL --listen ADDRESS [--request-ms N] [--shutdown-ms N]: a server
 * whose only app is the toy. Logs JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http.h"
#include "toy.h"

struct opened {
    const char *url;
    il         *store;
};

static il_status
open_store(void *cookie, il **ret, il_error *reterr)
{
    struct opened *opened = cookie;
    il_status      st     = il_open(opened->url, NULL, &opened->store, reterr);

    if (st == IL_OK)
        *ret = opened->store;
    return st;
}

static bool
is_away(const char *url UNUSED, const il_error *err UNUSED)
{
    return false;
}

static const char *
option(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    }
    return fallback;
}

static int64_t
number(int argc, char **argv, const char *name, const char *fallback)
{
    return strtoll(option(argc, argv, name, fallback), NULL, 10);
}

int
main(int argc, char **argv)
{
    static const struct http_app *const apps[]    = { &toy_http_app };
    void *const                         cookies[] = { NULL };
    struct opened       opened = { .url = option(argc, argv, "--store", "memory:") };
    il_error            err    = { 0 };
    struct http_options o      = {
             .listen                    = option(argc, argv, "--listen", "127.0.0.1:0"),
             .store_url                 = opened.url,
             .open_store                = open_store,
             .is_away                   = is_away,
             .open_cookie               = &opened,
             .log_json                  = true,
             .log_level                 = HTTP_LOG_INFO,
             .request_ms                = number(argc, argv, "--request-ms", "0"),
             .shutdown_ms               = number(argc, argv, "--shutdown-ms", "10000"),
             .body_bytes_max            = 1 << 20,
             .body_bytes_max_large      = 1 << 24,
             .connections_max           = 2048,
             .connections_per_ip_max    = 2048,
             .login_failures_per_minute = 10,
             .audit_keep_ms             = INT64_C(86400000),
             .ready_fd                  = -1,
             .apps                      = apps,
             .app_cookies               = cookies,
             .n_apps                    = ARRAY_LEN(apps),
    };

    il__http_prepare();
    il_status st = il__http_serve(&o, &err);
    if (st != IL_OK)
        (void)fprintf(stderr, "toy-server: %s\n", err.message);
    il_close(opened.store);
    return st == IL_OK ? 0 : 1;
}
