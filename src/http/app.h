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
    int         status;
    const char *text;
};

/* A metric of an app, shown by /metrics. `values` are those that its only label can have. */
enum http_metric_type {
    HTTP_METRIC_counter,
    HTTP_METRIC_gauge,
    HTTP_METRIC_histogram, /* of times: its name ends in _seconds */
};
struct http_app_metric {
    enum http_metric_type type;
    const char           *name, *help;
    const char           *label; /* NULL = none */
    const char *const    *values;
    size_t                n_values;
};

/* A log event of an app. */
struct http_app_event {
    enum http_log_level level;
    const char         *name, *text;
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
    /* What its threads count and log: http_app_count() and http_app_log() below take the index of
     * a row. */
    const struct http_app_metric *metrics;
    size_t                        n_metrics;
    const struct http_app_event  *events;
    size_t                        n_events;
    const struct app_tables      *tables;     /* its tables in the data store; NULL: none */
    const struct app_invariant   *invariants; /* of these tables */
    size_t                        n_invariants;
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
    /* Lines for /metrics beside those of `metrics`, in the text format. On the loop. */
    void (*print_metrics)(void *state, struct il__buf *out);
    /* About four times a second, on the loop. May be NULL, as may the three callbacks above. */
    void (*tick)(void *state, int64_t now_ns);
};

/* Does this key belong to a run of an app? */
bool http_app_owns(const struct http_server *s, const char *key);

/* The state that open() returned. */
void *http_app_state(const struct http_server *s, const struct http_app *app);

/* ---- metrics and log lines: from any thread, from open() until close() has returned ---------- */

/* Add to a counter or a gauge (to the latter also less than 0), set a gauge, add a time to a
 * histogram. `metric` is an index of app->metrics,
 * `value` one of its label's values; 0 without a label. */
void http_app_count(struct http_server *s, const struct http_app *app, size_t metric, size_t value,
                    int64_t n);
void http_app_gauge(struct http_server *s, const struct http_app *app, size_t metric, size_t value,
                    int64_t now);
void http_app_observe(struct http_server *s, const struct http_app *app, size_t metric,
                      size_t value, int64_t ns);

/* A field of a log line. Names are constants; texts are copied. */
struct http_log_field {
    enum {
        HTTP_FIELD_TEXT,
        HTTP_FIELD_INT,
        HTTP_FIELD_MS
    } kind;
    const char *name;
    const char *text;
    int64_t     number;
};
#define HTTP_LOG_TEXT(name, text)      \
    {                                  \
        HTTP_FIELD_TEXT, name, text, 0 \
    } /* NULL: left out */
#define HTTP_LOG_INT(name, number)         \
    {                                      \
        HTTP_FIELD_INT, name, NULL, number \
    }
#define HTTP_LOG_MS(name, ns)         \
    {                                 \
        HTTP_FIELD_MS, name, NULL, ns \
    }
#define HTTP_LOG_FIELDS_MAX 16

/*
 * Log an event of the app: an index of app->events, and fields. The loop writes the line later.
 * Lines that come faster than it writes them are dropped and counted, as other lines are.
 *
 *     http_app_log(s, &toy_http_app, TOY_EVENT_done, HTTP_LOG_TEXT("tenant_id", tenant),
 *                  HTTP_LOG_INT("rows", n));
 */
#define http_app_log(s, app, event, ...)                                               \
    http_app_log_fields(s, app, event, (const struct http_log_field[]){ __VA_ARGS__ }, \
                        ARRAY_LEN(((const struct http_log_field[]){ __VA_ARGS__ })))
void http_app_log_fields(struct http_server *s, const struct http_app *app, size_t event,
                         const struct http_log_field *fields, size_t n_fields);

#endif
