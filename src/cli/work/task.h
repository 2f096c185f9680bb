/*
 * task.h: one job of a worker, from its claim to its end; and what the tasks and the worker share.
 */
#ifndef IL_CLI_WORK_TASK_H
#define IL_CLI_WORK_TASK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "cli/table.h"
#include "proc/child.h"
#include "cli/work/work.h"

struct il__worker;

struct il__task {
    struct il__worker *worker;
    bool               busy; /* a thread has it */
    pthread_t          thread;
    il_job            *job;   /* under the worker's mutex; NULL once it is being ended */
    uint64_t           token; /* of its claim: no other job ever has it, unlike a job's address */
    bool               alive; /* under the mutex: the reaper has started and may be given orders */
    /* Set under the mutex by who stops it, the first reason counts. */
    bool             cancelled; /* somebody cancels the job */
    bool             lost;      /* its claim is lost */
    bool             stopped;   /* the worker has no more time */
    struct il__child child;
    _Atomic int      reaper_pid; /* 0 = none; while it is to be told from an orphan */
    struct il__buf   result;     /* the first IL_BLOB_BYTES_MAX of stdout */
    bool             cut;        /* there was more */
    struct il__buf   tail;       /* the end of stderr */
    size_t           n_sent;     /* of the payload */
};

struct il__worker {
    const struct il__work_opts *opts;
    il                         *store;
    char                       *path;     /* of the command */
    char                        name[37]; /* of this worker */
    int64_t                     lease_ms;
    int64_t                     grace_ms;
    pthread_mutex_t             mutex; /* protects what follows, and the tasks as they say */
    pthread_cond_t              cond;  /* a task has ended */
    struct il__task             tasks[CLI_WORK_MAX];
    uint32_t                    n_busy;
    uint64_t        early[CLI_WORK_MAX]; /* tokens of jobs cancelled before they had a task */
    size_t          n_early;
    bool            stopping; /* claim no more */
    int             exit_status;
    uint32_t        n_finished;
    int             last_signal;
    il_status       trouble;     /* how the last claim failed; IL_OK if it did not */
    pthread_mutex_t spawn_mutex; /* held while a reaper is started, and while orphans are ended */
    pthread_mutex_t out_mutex;   /* chunks of output do not mix */
    int             abort_fd;    /* readable: do not wait for whoever reads our output */
};

static inline void
il__worker_lock(struct il__worker *w)
{
    CHECK(pthread_mutex_lock(&w->mutex) == 0);
}

static inline void
il__worker_unlock(struct il__worker *w)
{
    CHECK(pthread_mutex_unlock(&w->mutex) == 0);
}

/* The thread of a task; `arg` is a struct il__task with its job set. */
void *il__task_main(void *arg);

/* No more claims, and the exit status if none was set yet. Callable from any task. */
void il__worker_stop(struct il__worker *w, int exit_status);

#endif
