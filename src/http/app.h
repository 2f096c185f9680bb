/*
 * app.h: an app: routes of its own, and what it wants to do while the server runs. The server knows apps by this table only (http_options.apps); src/apps/apps.def lists them, and deleting one from there deletes it.
 */
#ifndef IL_HTTP_APP_H
#define IL_HTTP_APP_H

#include "http/route.h"

struct http_app_error {
    const char *code;
    int         status;
    const char *text;
};

#define HTTP_APPS_MAX 8

struct http_app {
    const char                  *name; /* `source` of its errors */
    const struct http_route     *routes;
    size_t                       n_routes;
    const struct http_app_error *errors; /* codes beside those of errors.def */
    size_t                       n_errors;
    /* After store, data store and the il__async are open, before anybody can connect. `cookie` is http_options.app_cookies[i]. *ret is what the others get, and http_app_state(). */
    il_status (*open)(struct http_server *s, void *cookie, void **ret, il_error *reterr);
    /* SIGTERM: begin to end. On the loop; does not block. */
    void (*stop)(void *state);
    /* At the end: waits until it is down. The il__async is closed already, store and data store are open. */
    void (*close)(void *state);
    /* SIGHUP: on the loop; does not block for long (it may start an errand). IL_INVAL: said in the log; nothing changed. */
    il_status (*reload)(void *state, void *cookie, il_error *reterr);
    /* Lines for /metrics, in the text format. On the loop. */
    void (*print_metrics)(void *state, struct il__buf *out);
    /* About four times a second, on the loop. May be NULL, as the three above. */
    void (*tick)(void *state, int64_t now_ns);
};

/* What open() gave. */
void *http_app_state(const struct http_server *s, const struct http_app *app);

#endif
