/*
 * runner.h: runs the pipelines of tenants in the background, at most one run of each at a time.
 *
 * Where things are stored:
 *   the store      the run's row (RUN_*), its lease and its live log. A trigger creates a *slot*
 *                  (PENDING); an executor starts that slot by its id. The store lets only one do
 *                  so, and only when the key is free
 *   the data store steps, attempts, output, joined triggers (data/history.h)
 *   the files      the definition of a pipeline (pipeline.h)
 *
 * apps/work finds the slots, executes each on one server, renews leases, compares deadlines with
 * the clock, triggers schedules and keeps the history; its threads call runner_kind (work_kind.c).
 * The run's thread goes through the steps level by level; steps that run in parallel within a level
 * get threads of their own.
 *
 * The runner:
 *   runner.c        opens and closes it; settings, counters, notes
 *   options.c       its options from the configuration
 *   work_kind.c     pipelines as a kind of work (apps/work)
 *   execute.c       the levels of a run
 *   step.c          the attempts of one step
 *   step_command.c  command steps
 *   step_sql.c      sql steps
 *   step_check.c    check steps
 *   step_http.c     http steps
 *   step_run.c      what sql and check steps share
 *   fetch.c         the request of an http step or a probe
 *   output.c        the tails that are kept of the output of steps
 *   folder.c        working folders
 *   trigger_plan.c  the rules of a trigger
 *   trigger.c       the op of a trigger, and triggers that may block
 *   preflight.c     the probe of a pipeline
 *
 * Files of pipelines (pipeline.h), which need neither a store nor a server:
 *   catalogue.c        all pipelines of a folder
 *   catalogue_read.c   reads the folder
 *   pipeline_file.c    parses a file
 *   pipeline_step.c    parses its steps
 *   pipeline_action.c  parses commands and requests of steps and probes
 *   pipeline_check.c   parses check steps
 *   pipeline_field.c   parses texts with parameters
 *   pipeline_advice.c  advice about valid files
 *   template_parse.c   finds the parameters in a text
 *   expand.c           substitutes them
 *   graph.c            the order of steps
 *
 * The server (serve.h):
 *   app.c              the app
 *   routes_trigger.c   triggers
 *   routes_run.c       runs
 *   routes_pipeline.c  pipelines
 *   routes_lock.c      their locks
 *   routes_reload.c    reading the files again
 *   routes_tables.c    the JSON tables of all routes
 *   run_view.c         the view of a run, from store and history
 *   log.c              turns notes of the runner into log lines, metrics and events
 *   metrics.c          its own metrics
 *
 * Commands:
 *   cmd_pipelines.c     `interlock pipelines`
 *   cmd_pipeline_run.c  a run of a pipeline, for `interlock runs` and `cancel`
 *   cmd_trigger.c       `interlock trigger`
 */
#ifndef IL_APPS_RUNNER_RUNNER_H
#define IL_APPS_RUNNER_RUNNER_H

#include <jansson.h>

#include "apps/runner/pipeline.h"
#include "apps/work/work.h"
#include "base/connection.h"

struct runner;

enum runner_event {
#define X(id, level, name, text) RUNNER_EVENT_##id,
#include "apps/runner/events.def"
#undef X
    RUNNER_EVENT_COUNT
};
/* One event for the log. Strings live until the callback returns; NULL = does not apply. */
struct runner_note {
    enum runner_event event;
    const char       *tenant, *pipeline, *run, *step, *text;
    int64_t           wait_ms, hold_ms; /* -1 = does not apply */
    uint64_t          fence;
};
/* any thread; must not block */
typedef void runner_note_fn(void *cookie, const struct runner_note *note);

struct runner_options {
    il              *h;    /* open handle; outlives the runner */
    struct il__data *data; /* outlives it as well */
    const char      *store_url;
    enum work_mode   mode;          /* HERE: its own runner_trigger() and runner_take() */
    const char      *pipelines_dir; /* NULL = none: nothing is executed, nothing is set up for it */
    const char      *work_dir;      /* parent of the runs' folders; NULL = $TMPDIR or /tmp */
    struct pipeline_defaults defaults;
    int64_t                  lease_ms; /* TTL of a run's lease: 30 s */
    /* pipeline_lock_timeout_seconds: 3600; how long a run should hold its key */
    int64_t  lock_timeout_ms;
    int64_t  grace_ms;       /* between TERM and KILL: 5 s, at most a third of the lease */
    int64_t  shutdown_ms;    /* time for active runs to finish when it is closed: 30 s */
    int64_t  keep_ms;        /* history: 30 days */
    uint32_t runs_max;       /* concurrent runs of this server: 32 */
    int64_t  alert_permille; /* lock_expiration_alert_threshold: 800 */
    /* names of the server's environment variables that commands get in addition to PATH, HOME,
     * LANG, LC_ALL, TZ, TMPDIR, USER, LOGNAME, SHELL; NULL-terminated; may be NULL */
    const char *const           *pass_env;
    const struct il__connection *connections; /* databases of sql and check steps */
    size_t                       n_connections;
    runner_note_fn              *note;
    void                        *note_cookie;
    /* The limits of a tenant, asked for triggers of schedules; both are preset to 0 (no limit).
     * NULL: no limits. Any thread; must not block. */
    void (*limits)(void *cookie, const char *tenant, uint32_t *live_max, uint32_t *day_max);
    void *limits_cookie;
};

/* Reads the pipelines (bad files are noted, the others are used), starts spawner, dispatcher and
 * recorder. Strings of *o must outlive it. */
il_status runner_open(const struct runner_options *o, struct runner **ret, il_error *reterr)
    MUST_USE;
/* Start no more runs; active ones continue. Does not block. */
void runner_stop(struct runner *r);
/* Waits for active runs, at most shutdown_ms from the stop; then they are stopped and end as
 * INTERRUPTED. Slots are left for other servers. */
void runner_close(struct runner *r);
/* Reload the files. *connections may have changed. */
il_status                  runner_reload(struct runner *r, const struct runner_options *o,
                                         struct pipeline_loaded *ret, il_error *reterr) MUST_USE;
struct pipeline_catalogue *runner_catalogue(struct runner *r);

/* ---- triggers (trigger.c) -------------------------------------------------------------------- */

/* A request to run a pipeline. Strings are borrowed while it is used. */
struct runner_trigger {
    const char            *tenant;
    const struct pipeline *pipeline;
    const char            *id;         /* of the new run: il_uuid() */
    const char            *by;         /* trigger_by; "" = unknown */
    const char            *type;       /* "api", "cli", "schedule" */
    const json_t          *parameters; /* object of scalars; NULL = none */
    uint32_t               live_max;   /* concurrent runs of the tenant; 0 = no limit */
    uint32_t               day_max;    /* runs of the tenant since midnight UTC; 0 = no limit */
    uint32_t               minute_max, hour_max; /* triggers of the tenant; 0 = no limit */
    int64_t                keep_ms;
};
/*
 * Build the RUN_START op (IL_RUN_SLOT) of a trigger; *mem owns what it points to (il__arena).
 * Parameters are checked: required ones given, names and types valid; IL_INVAL names the parameter
 * and the reason. IL_LIMIT: they are too long.
 */
il_status runner_trigger_op(const struct runner_trigger *t, void **mem, il_op *op, il_error *reterr)
    MUST_USE;

enum runner_answer {
    /* a new run: PENDING; also when this very trigger is repeated: then out.runs shows its
     * current state */
    RUNNER_TRIGGERED,
    RUNNER_RUNNING,    /* join: the id of the existing run */
    RUNNER_SKIPPED,    /* skip: the same, nothing was recorded */
    RUNNER_REJECTED,   /* reject: 409 */
    RUNNER_QUEUE_FULL, /* queue: 429 */
    RUNNER_TOO_MANY,   /* live_max: 429 CONCURRENT_LIMIT_EXCEEDED */
    RUNNER_DAY_OVER,   /* day_max: 429 QUOTA_EXCEEDED */
    RUNNER_TOO_OFTEN,  /* minute_max, hour_max: 429 RATE_LIMITED */
    RUNNER_UNPROBED,   /* the probe failed: 503 PREFLIGHT_FAILED */
    RUNNER_FAILED,     /* any other error: see op->status */
};

/* The answer to the caller of a trigger. */
#define RUNNER_MESSAGE_BYTES (PIPELINE_ID_BYTES_MAX + 80)
void runner_trigger_message(const char *pipeline_id, bool is_new, char out[RUNNER_MESSAGE_BYTES]);
/* The limit of TOO_MANY and DAY_OVER: which of the two it is, and what it counts; else 0. */
int64_t runner_trigger_limit(enum runner_answer answer, uint32_t live_max, uint32_t day_max,
                             const char **ret_what);
/* The answer to the caller of a trigger that was refused: REJECTED, TOO_MANY or DAY_OVER. */
void runner_refusal_message(enum runner_answer answer, const char *pipeline_id, uint32_t live_max,
                            uint32_t day_max, char out[RUNNER_MESSAGE_BYTES]);

/* Parameters (an object of scalars; NULL = none) as values, then the pipeline's defaults;
 * strings in *mem (il__arena). IL_INVAL names the parameter and the reason. */
il_status runner_values(const struct pipeline *p, const json_t *parameters, void **mem,
                        struct pipeline_values *ret, il_error *reterr) MUST_USE;

/* A slot was created by this process: execute it as soon as there is room. Takes over the
 * reference to `p`. Any thread; never waits for the store. */
void runner_take(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p);
/* Record that a trigger joined a run. */
void runner_record_join(struct runner *r, const struct il__data_join *join);
/* A run was cancelled through this process: it is not started any more, and the next one of its
 * pipeline is tried at once. Any thread; never waits for the store. */
void runner_cancelled(struct runner *r, const il_run_info *run);

/* Is the external job of the pipeline running? IL_OK: no. IL_HELD: yes, *ret_id is its id
 * (il__free). Otherwise unknown, and nothing may start. Blocks up to preflight_timeout_ms. */
il_status runner_preflight(struct runner *r, const struct pipeline *p,
                           const struct pipeline_values *v, char **ret_id, il_error *reterr)
    MUST_USE;

/* The same, one probe per pipeline at a time (trigger_plan.h). *ret_followed: another thread was
 * probing it, and this is what its outcome means for us. IL_CANCELLED: the runner stops. */
il_status runner_probe(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
                       bool *ret_followed, char **ret_id, il_error *reterr) MUST_USE;

/*
 * The whole trigger for callers that may block: preflight, op, retries of `reject`, runner_take().
 * *op is filled in (il_op_release()). RUNNING, SKIPPED, REJECTED: *ret_outside_id (il__free()) is
 * the id of the running job if it is not a run of ours. Used for ticks and by the CLI.
 */
enum runner_answer runner_trigger(struct runner *r, const struct runner_trigger *t, il_op *op,
                                  char **ret_outside_id, il_error *reterr);

/* Does a server execute pipelines on this store? True if the store cannot be reached. Waits for
 * the store. */
bool runner_is_served(il *h);

/* ---- for metrics and status ------------------------------------------------------------------ */

struct runner_stats {
    struct work_stats work;
    uint64_t          n_pipelines, n_bad_files, n_reloads;
    uint64_t          n_steps, n_steps_failed, n_retries, n_alerts;
};
void runner_stats(struct runner *r, struct runner_stats *ret);
/* How long a run of the pipeline is expected to hold its key; NULL: an unconfigured pipeline. */
int64_t runner_lock_timeout_ms(const struct runner *r, const struct pipeline *p);

#endif
