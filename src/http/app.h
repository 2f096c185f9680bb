/*
 * app.h: the interface between the server and an app, which adds its own routes and background
 * work. The server knows apps only through this table (http_options.apps). src/apps/apps.def lists
 * them; deleting a line there removes the app.
 */
#ifndef IL_HTTP_APP_H
#define IL_HTTP_APP_H

#include "base/connection.h"
#include "http/route.h"
#include "interlock-guard.h"

struct http_app_error {
    const char *code;
    int         http;
    il_status   status; /* that a client's call returns */
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
struct app_invariant;  /* apps/common/invariant.h */
struct invariant_last; /* apps/common/invariant.h */
struct app_pipeline;   /* apps/common/pipeline.h */

#define HTTP_APPS_MAX 8

/* A key of the configuration. Its value has passed the checks of its row in config.def. */
struct http_setting {
    const char *name; /* as in a file; nested: "usage.source.type" */
    const char *text;
    int64_t     number; /* of a duration in ms; of a choice its index */
};

/* The configuration, for open() and reload(). Valid during the call: an app copies what it
 * keeps. */
struct http_app_config {
    const struct http_setting   *settings;
    size_t                       n_settings;
    const struct il__connection *connections; /* `connections`: databases by name */
    size_t                       n_connections;
};

/* The value of a key, which must be one of config.def; NULL: empty. */
const char *http_setting_text(const struct http_app_config *config, const char *name);
int64_t     http_setting_number(const struct http_app_config *config, const char *name);

/* The query of an invariant that is kept in a file, and the connection that it looks at. */
struct http_query {
    const char *name, *connection, *sql;
};
typedef void http_query_fn(void *cookie, const struct http_query *q);

struct http_app {
    const char *name; /* `source` of its errors */
    /* A key of the configuration that decides whether a server has the app at all, and so its
     * routes: only if it is set. NULL: every server has it. */
    const char *setting;
    /* The class of the keys of its runs, or NULL. Only the app's own routes may start or change
     * such runs; otherwise a client could bypass the app's checks, permissions and limits. */
    const char *run_class;
    /* Prefixes of keys, ended by NULL, or NULL: leases and cached values that coordinate the app's
     * processes. Only the app's own routes may take or change them; otherwise a client could hold
     * up its work, or reset its limits. */
    const char *const           *keys;
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
    const struct app_pipeline    *pipelines; /* for `interlock doctor --checklist` */
    size_t                        n_pipelines;
    /*
     * Called once store, data store and il__async are open, before clients can connect. *ret is
     * passed to the other callbacks and returned by http_app_state(). IL_INVAL: a setting is bad;
     * the message begins with the name of its key.
     */
    il_status (*open)(struct http_server *s, const struct http_app_config *config, void **ret,
                      il_error *reterr);
    /*
     * Open what costs something: tables, threads, leases. An app that is not used has none of them:
     * in_use() is asked after open(), whenever another app has started, and by the first request
     * for one of the app's routes, which starts it in any case. One call of either at a time, not
     * on the loop once the server is up. A failed start is tried again by the next request. stop,
     * print_metrics and tick are called only for apps that have started. Both NULL: open() does all
     * of it.
     */
    il_status (*in_use)(void *state, bool *ret, il_error *reterr);
    il_status (*start)(void *state, il_error *reterr);
    /* Requests do not start it unless it is in use: it answers them without what start() opens. */
    bool passive;
    /* SIGTERM: start to shut down. On the loop; does not block. */
    void (*stop)(void *state);
    /* At the end: blocks until the app is down. The il__async is already closed, store and data
     * store are still open. */
    void (*close)(void *state);
    /* SIGHUP. On the loop; must not block for long (it may start an errand). Keys that need a
     * restart (config.def) may differ from those of open(): ignore them. IL_INVAL: as open(); it is
     * logged, and nothing changed. */
    il_status (*reload)(void *state, const struct http_app_config *config, il_error *reterr);
    /* Lines for /metrics beside those of `metrics`, in the text format. On the loop. */
    void (*print_metrics)(void *state, struct il__buf *out);
    /* About four times a second, on the loop. May be NULL, as may the three callbacks above. */
    void (*tick)(void *state, int64_t now_ns);
    /* Of the app that keeps the history of invariants: the last result of one of a tenant. Blocks;
     * `tables` are the app's own. NULL for all others. */
    il_status (*last_result)(il_guard *tables, const char *tenant, const char *name,
                             struct invariant_last *ret, il_error *reterr);
    /* Of the app that reads invariants from files: the queries of all tenants. Needs no server.
     * IL_INVAL: the folder cannot be read. NULL for all others. */
    il_status (*queries)(const struct http_app_config *config, http_query_fn *each, void *cookie,
                         il_error *reterr);
    /* One of its invariants was found broken: record it in its own tables. `text` says how many
     * offenders there are. Blocks, on any thread; best effort, since the history has the result as
     * well. May be NULL. */
    void (*broken)(il_guard *tables, const char *tenant, const struct app_invariant *invariant,
                   const char *text);
};

/* The observer of an app's guarded transactions: il_guard_opts.observe, with the server as cookie.
 * Row locks become log lines and histograms, and `interlock locks --report` shows the newest. */
void http_row_lock(void *cookie, const il_guard_event *event);

/*
 * In work(r) of http_pool(): let a transaction of this handle end with the request, that is at its
 * deadline and when its client hangs up (IL_CANCELLED). One line before each il_guard_begin() or
 * il_guard_transact(), after the end of the transaction before. Takes the place of
 * http_on_disconnect().
 */
void http_bind_deadline(struct http_request *r, il_guard *g, il_guard_tx_opts *opts);

/* Does this key belong to a run of an app? */
bool http_app_owns(const struct http_server *s, const char *key);
/* Does it begin with one of the `keys` of an app? */
bool http_app_keeps(const struct http_server *s, const char *key);

/* Has it started? On the loop. */
bool http_app_is_started(const struct http_server *s, const struct http_app *app);

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
