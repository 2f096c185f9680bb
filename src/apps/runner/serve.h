/*
 * serve.h: the runner as an app of the server; shared by app.c and the files of its routes.
 */
#ifndef IL_APPS_RUNNER_SERVE_H
#define IL_APPS_RUNNER_SERVE_H

#include <stdatomic.h>

#include "apps/runner/options.h"
#include "apps/runner/run_view.h"
#include "base/mutex.h"
#include "http/app.h"
#include "http/handler.h"
#include "http/metrics.h"

extern const struct http_app runner_http_app;

struct runner_collecting; /* routes_reload.c */
struct trigger_probe;     /* trigger_plan.h */

#define RUNNER_PROBLEMS_MAX 100 /* faults of files that a reload reports */
#define RUNNER_PAGE_MAX 100
#define RUNNER_BY_BYTES_MAX 256

/* Used on the loop only, unless stated otherwise. */
struct runner_app {
    struct il__mutex reload_mutex; /* one reload at a time, on threads of the pool */
    struct il__mutex setup_mutex;  /* held while the loop changes `setup`, and a reload copies it */
    /* collects the faults found meanwhile; NULL = not wanted */
    _Atomic(struct runner_collecting *) collecting;
    struct http_server                 *server;
    struct runner                      *runner;
    struct pipeline_catalogue          *catalogue;
    struct runner_setup                 setup; /* of the configuration */
    bool                                lock_metrics;
    bool                                has_pipelines; /* a folder is configured */
    atomic_int_fast64_t   runs, runs_per_day; /* tenant defaults, for the runner's threads */
    struct trigger_probe *probes;             /* routes_trigger.c: probes in progress */
    struct {                                  /* routes_reload.c: the reload on SIGHUP */
        struct http_job job;
        bool            busy, again; /* in progress; and one more requested */
        il_status       status;
        il_error        error;
    } hup;
};
struct runner_app *runner_app_of(const struct http_request *r);

/* The tenant's pipeline named by a path, referenced; NULL: answered with 404, also for those of
 * other tenants. */
struct pipeline *runner_app_pipeline(struct http_request *r, const char *id) MUST_USE;

/* log.c */
void runner_app_note(void *cookie, const struct runner_note *note); /* any thread */
/* metrics.c */
void            runner_app_print(void *state, struct il__buf *out);
enum http_known runner_app_known(void *cookie, const char *tenant, const char *pipeline,
                                 int64_t *ret_timeout_ms);

/* routes_reload.c */
void runner_app_reload_begin(struct runner_app *app); /* before all other routes */
void runner_app_reload(struct runner_app *app);       /* SIGHUP */
void runner_app_reload_end(struct runner_app *app);
/* A file was refused: if a caller waits for the current reload, its answer says so. Any thread,
 * one call at a time. */
void runner_app_refused(struct runner_app *app, const char *tenant, const char *text);

/* ---- structs behind the tables --------------------------------------------------------------- */

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
    const char *id, *pipeline, *tenant, *by, *holder, *state, *timeout_used;
    int64_t     locked_at_ms, expires_at_ms, age_ms, ttl_ms, renewed_ms, remaining_ms, timeout_ms;
    uint64_t    fence;
    uint32_t    expiring, unrenewed;
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
    const char *text;
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

#define R(method, path, permission, names, id, fn, query, body, answer, flags, summary, example) \
    http_fn runner_http_##fn;
#define LOG(method, path, permission, id, summary)
#include "apps/runner/routes.def"
#undef R
#undef LOG

#endif
