/*
 * app.h: the interface between the server and an app, which adds its own routes and background
 * work. The server knows apps only through this table (http_options.apps). src/apps/apps.def lists
 * them; deleting a line there removes the app.
 */
#ifndef IL_HTTP_APP_H
#define IL_HTTP_APP_H

#include "http/route.h"

struct http_app_error {
    const char *code;
    int         http;
    il_status   status; /* that a client's call returns */
    const char *text;
};

struct app_tables;
struct app_invariant; /* apps/common/invariant.h */

#define HTTP_APPS_MAX 8

struct http_app {
    const char *name; /* `source` of its errors */
    /* The class of the keys of its runs, or NULL. Only the app's own routes may start or change
     * such runs; otherwise a client could bypass the app's checks, permissions and limits. */
    const char                  *run_class;
    const struct http_route     *routes;
    size_t                       n_routes;
    const struct http_app_error *errors; /* error codes in addition to errors.def */
    size_t                       n_errors;
    const struct app_tables     *tables;     /* its tables in the data store; NULL: none */
    const struct app_invariant  *invariants; /* of these tables */
    size_t                       n_invariants;
    /*
     * Called once store, data store and il__async are open, before clients can connect. `cookie` is
     * http_options.app_cookies[i]. *ret is passed to the other callbacks and returned by
     * http_app_state().
     */
    il_status (*open)(struct http_server *s, void *cookie, void **ret, il_error *reterr);
    /* SIGTERM: start to shut down. On the loop; does not block. */
    void (*stop)(void *state);
    /* At the end: blocks until the app is down. The il__async is already closed, store and data
     * store are still open. */
    void (*close)(void *state);
    /* SIGHUP. On the loop; must not block for long (it may start an errand). IL_INVAL: logged,
     * and nothing changed. */
    il_status (*reload)(void *state, void *cookie, il_error *reterr);
    /* Lines for /metrics, in the text format. On the loop. */
    void (*print_metrics)(void *state, struct il__buf *out);
    /* About four times a second, on the loop. May be NULL, as may the three callbacks above. */
    void (*tick)(void *state, int64_t now_ns);
};

/* Does this key belong to a run of an app? */
bool http_app_owns(const struct http_server *s, const char *key);

/* The state that open() returned. */
void *http_app_state(const struct http_server *s, const struct http_app *app);

#endif
