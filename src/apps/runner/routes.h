/*
 * routes.h: the runner as an app of the server: its routes, and what their files share. routes.c: the app's life and the pipelines; routes_trigger.c; routes_run.c: runs, cancel,
 * log, output; routes_lock.c; routes_tables.c: what is taken and answered; log.c: notes of the runner become lines of the log, metrics and events; metrics.c.
 */
#ifndef IL_APPS_RUNNER_ROUTES_H
#define IL_APPS_RUNNER_ROUTES_H

#include <pthread.h>
#include <stdatomic.h>

#include "apps/runner/run_view.h"
#include "http/app.h"
#include "http/metrics.h"
#include "http/one.h"

/*
 * What the app is opened with (http_options.app_cookies): the options of the runner but for h, data, store_url, note and limits, which the app sets. Whoever owns it may change it
 * in http_options.reload: the app's reload follows, and looks at defaults and connections.
 */
struct runner_setup {
    struct runner_options options;
};
extern const struct http_app runner_http_app;

struct runner_collecting; /* routes_reload.c */

#define RUNNER_PROBLEMS_MAX 100 /* faults of files that a reload tells */
#define RUNNER_PAGE_MAX 100
#define RUNNER_BY_BYTES_MAX 256

/* The loop's, unless it says otherwise. */
struct runner_app {
    pthread_mutex_t reload_mutex;                   /* one reload at a time: both of slow threads */
    _Atomic(struct runner_collecting *) collecting; /* faults that are found meanwhile; NULL = nobody wants to know */
    struct http_server        *server;
    struct runner             *runner;
    struct pipeline_catalogue *catalogue;
    struct runner_setup       *setup;
    bool                       lock_metrics;
    bool                       has_pipelines; /* a folder is configured */
    atomic_int_fast64_t runs, runs_per_day;   /* defaults of tenants, for the runner's threads */
    struct {                                  /* routes_reload.c: that of SIGHUP */
        struct http_job        job;
        bool                   busy, again; /* under way; and there is to be one more */
        void                  *mem;         /* of the options */
        struct runner_options  options;
        struct pipeline_loaded loaded;
        il_status              status;
        il_error               error;
    } hup;
};
struct runner_app *runner_app_of(const struct http_request *r);

/* The tenant's pipeline that a path names, referenced; NULL: it is answered with 404, the same for those of others. */
struct pipeline *runner_app_pipeline(struct http_request *r, const char *id) MUST_USE;

/* log.c */
void runner_app_note(void *cookie, const struct runner_note *note); /* any thread */
/* metrics.c */
void            runner_app_print(void *state, struct il__buf *out);
enum http_known runner_app_known(void *cookie, const char *tenant, const char *pipeline);

/* routes_reload.c */
void      runner_app_reload_begin(struct runner_app *app);             /* before all others */
il_status runner_app_reload(struct runner_app *app, il_error *reterr); /* SIGHUP */
void      runner_app_reload_end(struct runner_app *app);
/* A file was refused: if somebody waits for the reload that is under way, the answer says so. Any thread, one at a time. */
void runner_app_refused(struct runner_app *app, const char *tenant, const char *text);

/* ---- what the tables are of ------------------------------------------------------------------------------------------------- */

struct runner_page_in {
    const char *cursor, *pipeline;
    uint32_t    limit; /* 0 = not given */
    uint32_t    states;
};
struct runner_run_in {
    uint32_t output;
};
struct runner_output_in {
    uint32_t attempt; /* 0 = the last one */
};
struct runner_cancel_in {
    const char *reason;
};
struct runner_trigger_in {
    const char *by;
};

struct runner_triggered {
    const char *id, *pipeline, *tenant, *status, *message;
};

struct runner_lock_out {
    const char *id, *pipeline, *tenant, *by, *holder, *state, *ttl_used;
    int64_t     locked_at_ms, expires_at_ms, age_ms, ttl_ms, renewed_ms, remaining_ms;
    uint64_t    fence;
    uint32_t    expiring;
};

struct runner_parameter_out {
    const char *name, *fallback;
    uint32_t    required;
};
struct runner_step_about {
    const char *id, *type, *needs, *on_failure;
    uint32_t    level, retries;
    int64_t     timeout_ms;
};
struct runner_pipeline_out {
    const char *id, *tenant, *description, *version, *schedule, *zone, *on_conflict;
    int64_t     next_at_ms, timeout_ms, lock_timeout_ms;
    uint32_t    has; /* bits: RUNNER_HAS_* */
    struct runner_parameter_out *parameters;
    size_t                       n_parameters;
    struct runner_step_about    *steps;
    size_t                       n_steps;
    struct runner_run_out        last;
};
#define RUNNER_HAS_LAST (1U << 0)
#define RUNNER_HAS_PREFLIGHT (1U << 1)

struct runner_problem {
    const char *text, *tenant;
};
struct runner_loaded_out {
    uint64_t               pipelines, tenants, bad, kept, changed;
    struct runner_problem *problems;
    size_t                 n_problems;
};

extern const struct wire_object runner_in_trigger, runner_in_runs, runner_in_run, runner_in_cancel,
    runner_in_output, runner_in_page;
extern const struct wire_object runner_out_triggered, runner_out_output, runner_out_lock,
    runner_out_loaded, runner_out_pipeline, runner_out_pipeline_full;

#define R(method, path, permission, id, fn, query, body, answer, flags, summary, example) \
    http_fn runner_http_##fn;
#define LOG(method, path, permission, id, summary)
#include "apps/runner/routes.def"
#undef R
#undef LOG

#endif
