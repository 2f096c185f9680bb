/* task.h: one job of a worker, from claim to end; and what the tasks and the worker share. */
#ifndef IL_CLI_WORKER_TASK_H
#define IL_CLI_WORKER_TASK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mutex.h"
#include "cli/defs.h"
#include "cli/worker/worker.h"
#include "proc/child.h"

struct il__worker;

/* What became of a job, as messages and --json name it. */
enum il__outcome {
    IL__OUTCOME_FINISHED,
    IL__OUTCOME_RETRYING,
    IL__OUTCOME_FAILED, /* for good */
    IL__OUTCOME_SNOOZED,
    IL__OUTCOME_RETURNED,
    IL__OUTCOME_CANCELLED,
    IL__OUTCOME_LOST,
    IL__OUTCOME_COUNT
};

/* One of the queues of a worker. */
struct il__worker_queue {
    const char *name;
    uint32_t    weight;
    int64_t     lease_ms;
    int64_t     credit; /* queues.c */
    bool        empty;  /* nothing was due when it was looked into last */
};

struct il__task {
    struct il__worker *worker;
    bool               busy; /* in use by a thread */
    pthread_t          thread;
    il_job            *job;   /* under the worker's mutex; NULL once it is being ended */
    uint64_t           token; /* of its claim: unique, unlike a job's address */
    bool               alive; /* under the mutex: the reaper has started and accepts orders */
    /* Set under the mutex by whatever stops it; the first reason counts. */
    bool             cancelled; /* the job was cancelled */
    bool             lost;      /* its claim was lost */
    bool             stopped;   /* the worker has no more time */
    struct il__child child;
    _Atomic int      reaper_pid; /* 0 = none; set while it must be told apart from an orphan */
    struct il__buf   result;     /* the first IL_BLOB_BYTES_MAX of stdout */
    bool             cut;        /* there was more */
    struct il__buf   tail;       /* the end of stderr */
    size_t           n_sent;     /* of the payload */
};

struct il__worker {
    const struct il__worker_opts *opts;
    il                           *store;
    char                         *path;     /* of the command */
    char                          name[37]; /* of this worker */
    struct il__worker_queue       queues[CLI_WORK_QUEUES_MAX];
    size_t                        n_queues;
    char                          names[128]; /* of the queues, for messages */
    int64_t                       lease_ms;   /* the shortest of the queues' */
    int64_t                       grace_ms;
    struct il__mutex              mutex; /* protects what follows, and tasks where noted */
    pthread_cond_t                cond;  /* a task has ended */
    struct il__task               tasks[CLI_WORK_MAX];
    uint32_t                      n_busy;
    uint64_t         early[CLI_WORK_MAX]; /* tokens of jobs cancelled before they had a task */
    size_t           n_early;
    bool             waiting;  /* the main thread's: it has been said that jobs are awaited */
    bool             stopping; /* claim no more */
    int              exit_status;
    uint32_t         n_jobs[IL__OUTCOME_COUNT];
    uint32_t         n_hooks_failed;
    int              last_signal;
    il_status        trouble;     /* why the last claim failed; IL_OK if it did not */
    struct il__mutex spawn_mutex; /* held while a reaper is started and while orphans are ended */
    struct il__mutex out_mutex;   /* keeps chunks of output apart */
    int              abort_fd;    /* readable: do not wait for the reader of our output */
};

static inline void
il__worker_lock(struct il__worker *w)
{
    il__mutex_lock(&w->mutex);
}

static inline void
il__worker_unlock(struct il__worker *w)
{
    il__mutex_unlock(&w->mutex);
}

/* ---- queues.c -------------------------------------------------------------------------------- */

/* The next queue to look into, among those that are not `empty`, by weight; NULL: all are. */
struct il__worker_queue *il__worker_next_queue(struct il__worker *w);
/* A job was found or time has passed: look into all of them again. */
void il__worker_look_again(struct il__worker *w);
/* Look up the queues and their leases, and choose the grace. IL_OK or an error. */
il_status il__worker_open_queues(struct il__worker *w, il_error *reterr) MUST_USE;
/* Tell the store that the worker has gone. Errors are ignored: it is forgotten in a minute. */
void il__worker_leave(struct il__worker *w);

/* ---- task.c ---------------------------------------------------------------------------------- */

/* The thread of a task; `arg` is a struct il__task with its job set. */
void *il__task_main(void *arg);

/* Stop claiming, and set the exit status unless one is set. Callable from any task. */
void il__worker_stop(struct il__worker *w, int exit_status);

#endif
