/*
 * runner_internal.h: shared by the files of the runner. runner.h gives the overview.
 *
 * Mutexes, in locking order (enforced by src/base/mutex.def): runner.mutex, execution.mutex,
 * attempt.output_mutex, work_live.mutex, work_writers.mutex; recorder.mutex last. None is held
 * during a call that may wait for the store or the data store. Callbacks of il_run (on_cancel,
 * on_lost, on_renewed) take only execution.mutex.
 */
#ifndef IL_APPS_RUNNER_INTERNAL_H
#define IL_APPS_RUNNER_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "apps/runner/output.h"
#include "apps/runner/step.h"
#include "apps/work/live.h"
#include "apps/work/record.h"
#include "base/map.h"
#include "base/mutex.h"
#include "proc/proc.h"

#define RUNNER_NS_PER_S INT64_C(1000000000)
#define RUNNER_NODE_BYTES 96 /* a host name of 64, a pid */
/* wall clocks of servers, and of the store, may differ by this much */
#define RUNNER_CLOCKS_MS 60000

/* ---- helpers (runner.c) ---------------------------------------------------------------------- */

static inline void
runner_lock(struct il__mutex *m)
{
    il__mutex_lock(m);
}
static inline void
runner_unlock(struct il__mutex *m)
{
    il__mutex_unlock(m);
}
/* Wait for the condition, at most timeout_ns; negative: no limit. */
static inline void
runner_wait(pthread_cond_t *c, struct il__mutex *m, int64_t timeout_ns)
{
    (void)il__cond_wait(c, m, timeout_ns); /* callers check the clock themselves */
}
/* Start a thread with all signals blocked. Returns 0 or an errno. */
int runner_thread(pthread_t *ret, void *(*main)(void *), void *arg) MUST_USE;

/* Connections as they were when a run began; a reload creates new ones. */
struct runner_connections {
    unsigned                  n_refs; /* under runner.mutex */
    void                     *mem;
    struct runner_connection *items;
    size_t                    n;
};

/* ---- one run (execute.c) --------------------------------------------------------------------- */

#define LEASE_OVER "lease not renewed in time"
/* Why a run is to stop. */
enum runner_stop {
    RUNNER_GO,
    RUNNER_STOP_FAILED, /* a step failed */
    RUNNER_STOP_CANCEL,
    RUNNER_STOP_TIMEOUT,  /* the pipeline timed out */
    RUNNER_STOP_SHUTDOWN, /* the server's */
    RUNNER_STOP_LOST,     /* the lease was lost: overrides any earlier reason */
};

/* A step of a run; protected by execution.mutex. */
struct runner_step_state {
    bool running;
    bool ended;
};

/* An attempt in progress (step.c); in the list of its execution. */
struct attempt {
    struct runner_attempt  pub;
    struct execution      *e;
    struct pipeline_values values;
    char                   number[16], fence[24];
    struct runner_tail     out, err;
    struct work_lines      out_lines, err_lines;
    struct il__mutex       output_mutex; /* a kind may write from more than one thread */
    atomic_bool            stopping;
    /* under execution.mutex: */
    struct attempt    *next;
    int64_t            deadline_ns; /* CLOCK_BOOTTIME */
    bool               timed_out;   /* stopped by its own deadline */
    struct proc_child *child;       /* of a command */
    void (*stop_fn)(void *cookie);
    void *stop_cookie;
    void (*call_fn)(void *cookie); /* of the thread */
    void     *call_cookie;
    pthread_t stop_thread;
    bool      stop_started;
};

struct execution {
    struct runner             *r;
    struct execution          *next; /* of runner.executions, or of runner.ended */
    pthread_t                  thread;
    struct pipeline           *pipeline;
    struct runner_connections *connections;
    char                       tenant[IL_TENANT_BYTES_MAX + 1];
    char                       id[IL_ID_BYTES_MAX + 1];
    char                       holder[IL_HOLDER_BYTES_MAX + 1];
    char                       cwd[PATH_MAX]; /* "" = none */
    int                        cwd_lock;      /* descriptor: says that the folder is in use */
    il_run                    *run;
    uint64_t                   fence;
    int64_t                    ttl_ms, stop_ms;
    int64_t                    created_at_ms;
    int64_t                    began_ns;
    char                      *parameters; /* JSON text, for history */
    void                      *mem;        /* of the values */
    struct pipeline_values     values;     /* given ones and defaults; an attempt adds its own */
    struct work_live           live;
    bool                       live_ready;
    _Atomic int64_t            sign_ns; /* last step, output or progress; 0 = never */

    struct il__mutex         mutex; /* protects what follows */
    pthread_cond_t           changed;
    bool                     executing; /* between start and finish: it can be stopped */
    bool                     concluded; /* the outcome is decided */
    enum runner_stop         stop;
    char                     stop_text[800];
    int64_t                  deadline_ns; /* of the pipeline */
    struct attempt          *attempts;
    struct runner_step_state steps[PIPELINE_STEPS_MAX];
    size_t                   n_done; /* steps that ended by themselves and let the run continue */
    uint32_t                 level;
    size_t                   n_begun; /* steps of this level with a lower index have been started */
    bool                     failed, failed_by_timeout;
    char                     error[1200]; /* of the step that failed first */
    int64_t                  renewals, renewed_at_ms, renewed_ns;
    int64_t                  lease_ns;  /* its last known local deadline */
    int64_t                  told_ns;   /* when renewals were last recorded in the history */
    bool                     unrenewed; /* the warning was given for this lapse */
    bool                     expiring;  /* was noted */
};

/* Start executing a slot on its own thread. runner.mutex is held. Returns 0, or an errno:
 * nothing was started. */
int runner_execute(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p)
    MUST_USE;
/* After its thread was joined. */
void runner_execution_free(struct execution *e);
/* Ask everything in the run to stop. The first reason stays, except that a lost lease overrides
 * it. Never blocks. */
void runner_execution_stop(struct execution *e, enum runner_stop why, const char *text);
/* Check the clock: deadlines, leases that are not renewed, the end of a shutdown. Both mutexes
 * are held. Returns when to check again. */
int64_t runner_execution_watch(struct execution *e, int64_t now_ns);
/* Update the stage shown for the run; execution.mutex is held. */
void runner_execution_stage(struct execution *e);

/* The watch thread: compares deadlines with the clock and never blocks on anything else
 * (execute.c). */
void *runner_watch_main(void *arg);
void  runner_watch_poke(struct runner *r);

/* Steps (step.c): run all attempts of one. */
void runner_step(struct execution *e, size_t i);
/* Record a step that was not started and will not be. */
void runner_step_skip(struct execution *e, size_t i);
/* Stop an attempt; execution.mutex is held. */
void runner_attempt_stop(struct attempt *a);
/* The command of an attempt exists, or (NULL) is about to be finished. */
void runner_attempt_child(struct attempt *a, struct proc_child *child);

/* Folders of runs (folder.c). */
il_status runner_folder_open(struct runner *r, il_error *reterr) MUST_USE; /* r->work_dir */
il_status runner_folder_make(struct execution *e, il_error *reterr) MUST_USE;
void      runner_folder_remove(struct execution *e);
/* Remove the folders of ended runs whose server is gone. Waits for the store. */
void runner_folder_clean(struct runner *r);

/* ---- slots (dispatch.c) ---------------------------------------------------------------------- */

struct probing;
struct want;
struct want_group;
struct want_tenant;
struct wants {
    struct il__map      ids;    /* struct want by (tenant, id) */
    struct il__map      groups; /* struct want_group by (tenant, pipeline) */
    struct want_tenant *turn;   /* a ring; points to the tenant whose turn it is */
    size_t              n;
    uint64_t            n_arrived;
};
/* Note a slot for execution. */
void runner_want(struct runner *r, const char *tenant, const char *run_id, const char *pipeline);
/* The slot is RUNNING here and no longer waits; others of its pipeline do until
 * runner_started(). */
void runner_running(struct execution *e);
/* The outcome of executing a slot; called on the run thread. */
enum runner_started {
    RUNNER_STARTED_OVER,    /* executed, or not ours to execute: forget it */
    RUNNER_STARTED_LATER,   /* the key is held: try again */
    RUNNER_STARTED_TROUBLE, /* the store could not be reached: try again later */
};
void  runner_started(struct execution *e, enum runner_started how, const char *before_id);
void *runner_dispatch_main(void *arg);
void  runner_wants_release(struct runner *r);

/* Apply listings, repeating the call for those that it left out because of large pages. */
il_status runner_list_all(struct runner *r, il_op *ops, size_t n, il_error *reterr);
/* Is it being started or executed here? runner.mutex is held. */
bool runner_is_executing(const struct runner *r, const char *tenant, const char *id);

/* ---- runs of servers that died (orphan.c) ---------------------------------------------------- */

struct orphans *runner_orphans_new(struct runner *r);
void            runner_orphans_free(struct orphans *o);
/* Scan the runs of these tenants for those that another server executed and no server does any
 * more. Waits for the store. */
void runner_orphans_look(struct orphans *o, char (*tenants)[IL_TENANT_BYTES_MAX + 1], size_t n);
/* Should this server report that the run's lease expired? Of all servers that ask within a
 * minute, one gets true. */
bool runner_tells_expiry(struct runner *r, const char *tenant, const char *run);

/* ---- presence of a server (presence.c); dispatcher only -------------------------------------- */

void runner_presence_tell(struct runner *r, int64_t now_ns);
void runner_presence_end(struct runner *r);

/* ---- triggers (trigger.c) -------------------------------------------------------------------- */

/* As runner_trigger(). *ret_unheard: it failed because the store could not be reached; then it
 * may be retried. */
enum runner_answer runner_trigger_heard(struct runner *r, const struct runner_trigger *t, il_op *op,
                                        char **ret_outside_id, bool *ret_unheard, il_error *reterr);
/* Sleep between two attempts; false: the runner is closing. */
bool runner_pause(struct runner *r, int64_t ms);

/* ---- schedules (tick.c) ---------------------------------------------------------------------- */

void *runner_tick_main(void *arg);

/* ---- the runner ------------------------------------------------------------------------------ */

/* clang-format off */
#define RUNNER_COUNTERS(X) \
    X(reloads) X(started) X(completed) X(failed) X(cancelled) X(timeout) X(interrupted) X(steps) \
    X(steps_failed) X(retries) X(alerts) X(schedule_ticks) X(schedule_skipped)
/* clang-format on */

struct runner {
    struct runner_options o;                       /* its strings belong to the caller */
    char                  node[RUNNER_NODE_BYTES]; /* host:pid */
    char   instance[RUNNER_NODE_BYTES + 16]; /* host:pid:nonce: never used by another process */
    char **env;                              /* NAME=VALUE passed to commands; NULL-terminated */
    size_t n_env;
    void  *env_mem;
    char   work_dir[PATH_MAX];
    char   folder_tag[24]; /* of folders of this store's runs */
    struct pipeline_catalogue *catalogue;
    struct proc_spawner       *spawner;
    struct work_recorder       recorder;
    struct work_writers        writers;
    uint64_t                   presence_fence; /* the dispatcher's, like presence_ns; 0 = none */
    int64_t                    presence_ns;

    struct il__mutex           mutex; /* protects what follows */
    pthread_cond_t             wake;  /* the dispatcher */
    pthread_cond_t             watch; /* the watch */
    pthread_cond_t             tick;  /* the ticker */
    pthread_cond_t             idle;  /* an execution has ended */
    struct runner_connections *connections;
    struct wants               wants;
    struct execution          *executions; /* threads that run */
    struct execution          *ended;      /* threads to be joined */
    size_t                     n_executions;
    struct probing            *probes;   /* trigger.c: probes in progress */
    bool                       look;     /* list, and try everything again, now */
    bool                       changed;  /* something may be started */
    bool                       stopping; /* no more runs */
    bool                       closing;  /* threads end */
    int64_t                    stop_ns;  /* when active runs are stopped */
    size_t                     n_bad_files, n_pipelines;
    size_t                     n_expiring, n_unrenewed;
    bool                       dispatch_started, watch_started, tick_started;
    pthread_t                  dispatcher, watcher, ticker;
    int64_t                    trouble_ns; /* the last one noted */

#define X(name) _Atomic uint64_t n_##name;
    RUNNER_COUNTERS(X)
#undef X
};

/* Log an event. */
void runner_note(struct runner *r, enum runner_event event, const struct execution *e,
                 const char *step, const char *text);
void runner_note_full(struct runner *r, struct runner_note note);
/* Log an error that will be retried; at most once a second. */
void runner_trouble(struct runner *r, const char *what, const il_error *error);

struct runner_connections *runner_connections_ref(struct runner *r); /* runner.mutex is held */
void                       runner_connections_unref(struct runner *r, struct runner_connections *c);

/*
 * The environment of a command: the variables passed on by the server; INTERLOCK_… from `own`
 * (name, value, name, …, NULL); INTERLOCK_PARAM_… from v's first n_params values; env: of the file.
 * *mem owns it. (step_command.c)
 */
il_status runner_env_build(struct runner *r, const char *const *own,
                           const struct pipeline_values *v, size_t n_params,
                           const struct pipeline_command *c, void **mem, char ***ret,
                           il_error *reterr) MUST_USE;

/* For the probe of a pipeline (preflight.c), which has no run: the spawner, a folder to run in,
 * and an environment whose array and strings are freed with il__free (NULL: see reterr). */
bool                 runner_is_stopping(struct runner *r); /* then a probe should end early */
struct proc_spawner *runner_spawner(struct runner *r);
const char          *runner_work_dir(struct runner *r);
char **runner_probe_env(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
                        il_error *reterr);

#endif
