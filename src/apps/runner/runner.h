/*
 * runner.h: pipelines of tenants, run in the background, each once at a time (requirements R1).
 *
 * What is where:
 *   the store      the run's row (RUN_*), its lease and its live log. A trigger makes a *slot* (PENDING); whoever executes it starts that slot by its id: the store lets one do so, and only when the key is free
 *   the data store steps, attempts, output, joined triggers (data/history.h)
 *   the files      what a pipeline is (pipeline.h)
 *
 * Threads: the *dispatcher* looks for slots that nobody executes (those of this server's own triggers are told to it at once; those made by others, by the CLI or by a server that died it finds in a listing, once a
 * second), for ticks of schedules, and starts runs while there is room. A *run thread* executes one run, level by level; a step of a level that has others beside it has a thread of its own. The *recorder* writes
 * history, what has gathered as one commit. Nothing waits for the recorder.
 *
 * Files: runner.c (open, close, options), dispatch.c (slots), tick.c (schedules), execute.c (one run), step.c (attempts of one step), step_command.c, step_sql.c, step_http.c, step_check.c, output.c (capture, tails, live log),
 * record.c (history), folder.c (working folders), trigger.c (what a trigger is, and what its answer means), preflight.c, pipeline*.c and catalogue.c (files), routes.c and its handlers (HTTP).
 */
#ifndef IL_APPS_RUNNER_RUNNER_H
#define IL_APPS_RUNNER_RUNNER_H

#include <jansson.h>

#include "apps/runner/pipeline.h"
#include "data/history.h"

struct runner;

/* A connection of sql and check steps. */
struct runner_connection {
    const char *name;
    const char *url; /* may hold a password: never shown */
};

enum runner_event {
#define X(id, level, name, text) RUNNER_EVENT_##id,
#include "apps/runner/events.def"
#undef X
    RUNNER_EVENT_COUNT
};
/* One thing that happened, for the log; strings live until the callback returns; NULL = does not apply. */
struct runner_note {
    enum runner_event event;
    const char       *tenant, *pipeline, *run, *step, *text;
    int64_t           wait_ms, hold_ms; /* -1 = does not apply */
    uint64_t          fence;
};
typedef void runner_note_fn(void *cookie, const struct runner_note *note); /* any thread; must not block */

/* What a runner is for. */
enum runner_mode {
    RUNNER_SERVE, /* all of it */
    RUNNER_HERE, /* execute only what its own runner_trigger() and runner_take() bring: no listing, no schedules */
    RUNNER_ASK, /* execute nothing: triggers, with their probes and retries, for others to execute */
};

struct runner_options {
    il              *h;    /* open handle; outlives the runner */
    struct il__data *data; /* outlives it, too */
    const char      *store_url;
    enum runner_mode mode;
    const char *pipelines_dir; /* NULL = none: nothing is executed, and nothing made for that */
    const char *work_dir;      /* folders of runs are made below it; NULL = $TMPDIR or /tmp */
    struct pipeline_defaults defaults;
    int64_t  lease_ms;        /* TTL of a run's lease: 30 s; cut to the pipeline's lock timeout */
    int64_t  lock_timeout_ms; /* pipeline_lock_timeout_seconds: 3600 */
    int64_t  grace_ms;        /* between TERM and KILL: 5 s, at most a third of the lease */
    int64_t  shutdown_ms;     /* running runs may go on for this long when it is closed: 30 s */
    int64_t  keep_ms;         /* history: 30 days */
    uint32_t runs_max;        /* of this server at once: 32 */
    int64_t  alert_permille;  /* lock_expiration_alert_threshold: 800 */
    const char *const              *pass_env; /* names of variables of the server that commands get beside PATH, HOME, LANG, LC_ALL, TZ, TMPDIR, USER, LOGNAME, SHELL; NULL-terminated; may be NULL */
    const struct runner_connection *connections;
    size_t                          n_connections;
    runner_note_fn                 *note;
    void                           *note_cookie;
    /* What a tenant may do (R1.17), asked for triggers of schedules; both are 0 (no limit) before. NULL: none has limits. Any thread; must not block. */
    void (*limits)(void *cookie, const char *tenant, uint32_t *live_max, uint32_t *day_max);
    void *limits_cookie;
};

/* Reads the pipelines (bad files are noted, the others count), starts spawner, dispatcher and recorder. Strings of *o must outlive it. */
il_status runner_open(const struct runner_options *o, struct runner **ret, il_error *reterr) MUST_USE;
/* Take no more runs; those that run go on. Does not block. */
void runner_stop(struct runner *r);
/* Waits for them, at most shutdown_ms from the stop; then they are stopped and end as INTERRUPTED (R1.24). Slots stay for others. */
void runner_close(struct runner *r);
/* Read the files again (R1.23). *connections may be others now. */
il_status                  runner_reload(struct runner *r, const struct runner_options *o,
                                         struct pipeline_loaded *ret, il_error *reterr) MUST_USE;
struct pipeline_catalogue *runner_catalogue(struct runner *r);

/* ---- triggers (trigger.c) -------------------------------------------------------------------------------------------------- */

/* Who wants which pipeline to run, with what. Strings are borrowed as long as it is used. */
struct runner_trigger {
    const char            *tenant;
    const struct pipeline *pipeline;
    const char            *id;         /* of the run to be: il_uuid() */
    const char            *by;         /* trigger_by; "" = nobody said */
    const char            *type;       /* "api", "cli", "schedule" */
    const json_t          *parameters; /* object of scalars; NULL = none */
    uint32_t               live_max;   /* concurrent runs of the tenant; 0 = no limit (R1.17) */
    uint32_t               day_max;    /* runs of the tenant since midnight UTC; 0 = no limit */
    int64_t                keep_ms;
};
#define RUNNER_META_BYTES_MAX IL_META_BYTES_MAX
/* The RUN_START op (IL_RUN_SLOT) of a trigger; *mem owns what it points to (il__arena). Parameters are checked: required ones given, names and types good; IL_INVAL says which and why. IL_LIMIT: they are too long. */
il_status runner_trigger_op(const struct runner_trigger *t, void **mem, il_op *op, il_error *reterr)
    MUST_USE;

enum runner_answer {
    RUNNER_TRIGGERED, /* a new run: PENDING; also when this very trigger is repeated: then out.runs shows what has become of it */
    RUNNER_RUNNING,   /* join: the id of the one that is there */
    RUNNER_SKIPPED,   /* skip: the same, nothing was noted */
    RUNNER_REJECTED,  /* reject: 409 */
    RUNNER_QUEUE_FULL, /* queue: 429 */
    RUNNER_TOO_MANY,   /* live_max: 429 CONCURRENT_LIMIT_EXCEEDED */
    RUNNER_DAY_OVER,   /* day_max: 429 QUOTA_EXCEEDED */
    RUNNER_FAILED,     /* op->status says what else: the usual error of an op */
};
enum runner_answer runner_trigger_answer(const il_op *op);

/* What whoever triggered it is told (R1.11). */
#define RUNNER_MESSAGE_BYTES (PIPELINE_ID_BYTES_MAX + 80)
void runner_trigger_message(const char *pipeline_id, bool is_new, char out[RUNNER_MESSAGE_BYTES]);

/* Parameters (an object of scalars; NULL = none) as values, then the pipeline's defaults; strings in *mem (il__arena). IL_INVAL names the parameter and says what is wrong. */
il_status runner_values(const struct pipeline *p, const json_t *parameters, void **mem,
                        struct pipeline_values *ret, il_error *reterr) MUST_USE;

/* A slot of ours was made: execute it as soon as there is room. Takes the reference to `p` over. Any thread, never blocks for the store. */
void runner_take(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p);
/* A trigger joined a run: to be recorded. */
void runner_joined(struct runner *r, const struct il__data_join *join);
/* A run may have been cancelled, or ended: look again soon. */
void runner_poke(struct runner *r);

/* R1.28. Is the outside job of the pipeline running? IL_OK: no. IL_HELD: yes, *ret_id is its id (il__free). Else: it cannot be told (nothing may start). Blocks up to preflight_timeout_ms. */
il_status runner_preflight(struct runner *r, const struct pipeline *p,
                           const struct pipeline_values *v, char **ret_id, il_error *reterr) MUST_USE;

/* The whole of it for who may block: preflight, op, retries of `reject` (R1.7), runner_take(). *op is filled (il_op_release()). Used for ticks and by the CLI. */
enum runner_answer runner_trigger(struct runner *r, const struct runner_trigger *t, il_op *op,
                                  char **ret_outside_id, il_error *reterr);

/* ---- for metrics and status ------------------------------------------------------------------------------------------------- */

struct runner_stats {
    uint64_t n_pipelines, n_bad_files, n_reloads;
    uint64_t n_running, n_waiting; /* runs of this server: executing; wanted, but there is no room */
    uint64_t n_started, n_completed, n_failed, n_cancelled, n_timeout, n_interrupted;
    uint64_t n_steps, n_steps_failed, n_retries, n_alerts;
    uint64_t n_schedule_ticks, n_schedule_skipped;
    uint64_t n_expiring; /* leases of ours that are beyond alert_permille of their TTL now (R1.29) */
    uint64_t n_history_dropped;
};
void runner_stats(struct runner *r, struct runner_stats *ret);

#endif
