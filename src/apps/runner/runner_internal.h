/*
 * runner_internal.h: shared by the files of the runner. runner.h gives the overview.
 *
 * Mutexes, in locking order (enforced by src/base/mutex.def): runner.mutex, those of apps/work,
 * execution.mutex, attempt.output_mutex; then those of a live log. None is held during a call that
 * may wait for the store or the data store. Hooks of a run take only execution.mutex.
 */
#ifndef IL_APPS_RUNNER_INTERNAL_H
#define IL_APPS_RUNNER_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "apps/runner/output.h"
#include "apps/runner/step.h"
#include "apps/work/work.h"
#include "base/mutex.h"
#include "proc/proc.h"

/* Connections as they were when a run began; a reload creates new ones. */
struct runner_connections {
    unsigned               n_refs; /* under runner.mutex */
    void                  *mem;
    struct il__connection *items;
    size_t                 n;
};

/* ---- one run (execute.c) --------------------------------------------------------------------- */

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
    struct work_run           *run;
    struct pipeline           *pipeline; /* the run's subject */
    struct runner_connections *connections;
    char                       cwd[PATH_MAX]; /* "" = none */
    int                        cwd_lock;      /* descriptor: says that the folder is in use */
    void                      *mem;           /* of the values */
    struct pipeline_values     values;        /* given ones and defaults; an attempt adds its own */

    struct il__mutex         mutex; /* protects what follows */
    pthread_cond_t           changed;
    struct attempt          *attempts;
    struct runner_step_state steps[PIPELINE_STEPS_MAX];
    size_t                   n_done; /* steps that ended by themselves and let the run continue */
    uint32_t                 level;
    size_t                   n_begun; /* steps of this level with a lower index have been started */
    bool                     failed;
    int64_t                  lease_ns; /* the last known local deadline of its lease */
};

/* Of runner_kind. */
bool runner_execute(struct work_run *run);
void runner_ended(struct work_run *run);
/* Update the stage shown for the run; execution.mutex is held. */
void runner_execution_stage(struct execution *e);

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

/* ---- triggers (trigger.c) -------------------------------------------------------------------- */

/* As runner_trigger(). *ret_unheard: it failed because the store could not be reached; then it
 * may be retried. */
enum runner_answer runner_trigger_heard(struct runner *r, const struct runner_trigger *t, il_op *op,
                                        char **ret_outside_id, bool *ret_unheard, il_error *reterr);

/* ---- pipelines as a kind of work (work_kind.c) ----------------------------------------------- */

extern const struct work_kind runner_kind;

/* ---- the runner ------------------------------------------------------------------------------ */

/* clang-format off */
#define RUNNER_COUNTERS(X) X(reloads) X(steps) X(steps_failed) X(retries) X(alerts)
/* clang-format on */

struct probing;
struct runner {
    struct runner_options      o;   /* its strings belong to the caller */
    char                     **env; /* NAME=VALUE passed to commands; NULL-terminated */
    size_t                     n_env;
    void                      *env_mem;
    char                       work_dir[PATH_MAX];
    char                       folder_tag[24]; /* of folders of this store's runs */
    struct pipeline_catalogue *catalogue;
    struct proc_spawner       *spawner;
    struct work               *work;

    struct il__mutex           mutex; /* protects what follows */
    pthread_cond_t             idle;  /* a probe has ended, or the runner stops */
    struct runner_connections *connections;
    struct trigger_probe      *probes; /* trigger.c: probes in progress */
    size_t                     n_bad_files, n_pipelines;

#define X(name) _Atomic uint64_t n_##name;
    RUNNER_COUNTERS(X)
#undef X
};

/* Log an event. */
void runner_note(struct runner *r, enum runner_event event, const struct execution *e,
                 const char *step, const char *text);
void runner_note_full(struct runner *r, struct runner_note note);

struct runner_connections *runner_connections_ref(struct runner *r);
void                       runner_connections_unref(struct runner *r, struct runner_connections *c);

/* For the probe of a pipeline (preflight.c), which has no run: the spawner, a folder to run in,
 * and an environment whose array and strings are freed with il__free (NULL: see reterr). */
bool                 runner_is_stopping(struct runner *r); /* then a probe should end early */
struct proc_spawner *runner_spawner(struct runner *r);
const char          *runner_work_dir(struct runner *r);
char **runner_probe_env(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
                        il_error *reterr);

#endif
