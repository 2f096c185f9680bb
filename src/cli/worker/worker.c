/*
 * worker.c: the worker: claims, signals and the exit status. task.c processes a job, queues.c
 * chooses a queue.
 *
 * The first INT, TERM, HUP or QUIT stops the claiming and lets running jobs finish; the second
 * stops the commands and gives their jobs back.
 */
#include "cli/worker/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/parse.h"
#include "cli/out.h"
#include "cli/store.h"
#include "cli/worker/task.h"
#include "proc/spawn.h"
#include "proc/sys.h"

#define CLAIM_WAIT_MS 60000  /* then the claim is repeated: nothing depends on it */
#define CLAIM_SLICE_MS 1000  /* the same with several queues */
#define LIMITED_WAIT_MS 1000 /* with --drain: jobs held back by a limit */
/* with --drain, while others are running: check for newly pushed jobs */
#define LOOK_AGAIN_NS INT64_C(1000000000)
#define RETRY_MS 1000 /* after a claim that the store did not answer */
#define REMIND_NS (60 * 1000 * (int64_t)IL__NS_PER_MS) /* while waiting for the store */

void
il__worker_stop(struct il__worker *w, int exit_status)
{
    il__worker_lock(w);
    w->stopping = true;
    if (w->exit_status == 0)
        w->exit_status = exit_status;
    il__worker_unlock(w);
    il_interrupt(w->store);
}

/* ---- callbacks, on threads of the library ---------------------------------------------------- */

/* The task of a job, under the mutex; NULL if it has none yet. */
static struct il__task *
task_of(struct il__worker *w, const il_job *job)
{
    uint64_t token = il_job_look(job)->token;

    for (size_t i = 0; i < w->opts->n_jobs; i++) {
        if (w->tasks[i].busy && w->tasks[i].token == token)
            return &w->tasks[i];
    }
    return NULL;
}

static void
on_lost(void *cookie, il_job *job, const char *why UNUSED)
{
    struct il__worker *w = cookie;

    il__worker_lock(w);
    struct il__task *t = task_of(w, job);
    if (t != NULL && t->job != NULL) {
        t->lost |= !t->cancelled && !t->stopped;
        if (t->alive)
            il__reaper_order(&t->child.reaper, IL__ORDER_STOP, 0);
    } /* otherwise its task finds the lease lost, or is finishing */
    il__worker_unlock(w);
}

static void
on_cancel(void *cookie, il_job *job, const char *reason UNUSED)
{
    struct il__worker *w = cookie;

    il__worker_lock(w);
    struct il__task *t = task_of(w, job);
    if (t == NULL && w->n_early < ARRAY_LEN(w->early)) {
        w->early[w->n_early++] = il_job_look(job)->token; /* just claimed */
    } else if (t != NULL && t->job != NULL) {
        t->cancelled |= !t->lost;
        if (t->alive)
            il__reaper_order(&t->child.reaper, IL__ORDER_STOP, 0);
    } /* otherwise its command has ended by itself */
    il__worker_unlock(w);
}

/* ---- signals and deadlines ------------------------------------------------------------------- */

struct watch {
    struct il__worker *worker;
    int                sig_fd;
    int                quit_fd;
};

/* Tells the reapers how long the claims live. A stopped worker tells them nothing, and they act
 * on their own. */
static void
publish_deadlines(struct il__worker *w)
{
    il__worker_lock(w);
    for (size_t i = 0; i < w->opts->n_jobs; i++) {
        struct il__task *t = &w->tasks[i];
        if (t->busy && t->alive)
            il__child_publish(&t->child, il_lease_deadline_ns(il_job_lease(t->job)));
    }
    il__worker_unlock(w);
}

static void
stop_commands(struct il__worker *w)
{
    CHECK(eventfd_write(w->abort_fd, 1) == 0);
    il__worker_lock(w);
    for (size_t i = 0; i < w->opts->n_jobs; i++) {
        struct il__task *t = &w->tasks[i];
        if (!t->busy || t->job == NULL)
            continue;
        t->stopped |= !t->cancelled && !t->lost;
        if (t->alive)
            il__reaper_order(&t->child.reaper, IL__ORDER_STOP, 0);
    }
    il__worker_unlock(w);
}

static void
on_signal(struct il__worker *w, int sig)
{
    il__worker_lock(w);
    bool     again  = w->last_signal != 0;
    uint32_t n_busy = w->n_busy;
    w->last_signal  = sig;
    il__worker_unlock(w);
    if (!again) {
        il__worker_stop(w, 0);
        if (n_busy > 0 && !w->opts->quiet)
            il__proc_say("%s: exiting when %u job%s done; a second signal stops %s", w->names,
                         n_busy, n_busy == 1 ? " is" : "s are", n_busy == 1 ? "it" : "them");
        return;
    }
    il__worker_stop(w, 128 + sig);
    stop_commands(w);
}

static void *
watch_main(void *arg)
{
    struct watch *x       = arg;
    int           tick_ms = (int)MIN(MAX(x->worker->lease_ms / 16, 20), 1000);

    for (;;) {
        struct signalfd_siginfo info;
        struct pollfd           fds[] = { { x->sig_fd, POLLIN, 0 }, { x->quit_fd, POLLIN, 0 } };
        int                     n     = poll(fds, ARRAY_LEN(fds), tick_ms);
        publish_deadlines(x->worker);
        if (n > 0 && fds[1].revents != 0)
            return NULL;
        while (n > 0 && read(x->sig_fd, &info, sizeof info) == (ssize_t)sizeof info)
            on_signal(x->worker, (int)info.ssi_signo);
    }
}

/* Block the terminating signals and read them from a descriptor instead; ignored ones stay
 * ignored (HUP under nohup). */
static int
signals_open(void)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    sigset_t         read;
    sigset_t         blocked;

    (void)signal(SIGCHLD, SIG_DFL); /* if ignored, we could not wait for a reaper */
    CHECK(sigemptyset(&read) == 0);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++) {
        struct sigaction action;
        CHECK(sigaction(ending[i], NULL, &action) == 0);
        if (action.sa_handler != SIG_IGN)
            CHECK(sigaddset(&read, ending[i]) == 0);
    }
    blocked = read;
    CHECK(sigaddset(&blocked, SIGPIPE) == 0);
    CHECK(sigaddset(&blocked, SIGXFSZ) == 0);
    CHECK(sigaddset(&blocked, SIGTTOU) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    return signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- claiming -------------------------------------------------------------------------------- */

/* Wait for free places. Returns their number, or 0: time to stop. */
static uint32_t
await_room(struct il__worker *w)
{
    il__worker_lock(w);
    while (!w->stopping && w->n_busy == w->opts->n_jobs)
        (void)il__cond_wait(&w->cond, &w->mutex, -1);
    uint32_t room = w->stopping ? 0 : w->opts->n_jobs - w->n_busy;
    il__worker_unlock(w);
    return room;
}

/* Wait until a task has ended, or it is time to look for more; false if none is running. */
static bool
await_task(struct il__worker *w)
{
    il__worker_lock(w);
    bool     any      = w->n_busy > 0;
    uint32_t before   = w->n_busy;
    int64_t  until_ns = il__clock_boot_ns() + LOOK_AGAIN_NS;
    for (int64_t left_ns = LOOK_AGAIN_NS; any && w->n_busy == before && left_ns > 0;
         left_ns         = until_ns - il__clock_boot_ns())
        (void)il__cond_wait(&w->cond, &w->mutex, left_ns);
    il__worker_unlock(w);
    return any;
}

/* Was it cancelled before it had a task? Under the mutex. */
static bool
was_cancelled_early(struct il__worker *w, uint64_t token)
{
    for (size_t i = 0; i < w->n_early; i++) {
        if (w->early[i] != token)
            continue;
        w->early[i] = w->early[--w->n_early];
        return true;
    }
    return false;
}

static struct il__task *
free_task(struct il__worker *w)
{
    for (size_t i = 0; i < w->opts->n_jobs; i++) {
        if (!w->tasks[i].busy)
            return &w->tasks[i];
    }
    il__check_failed("no more jobs are claimed than there is room for", __FILE__, __LINE__,
                     __func__);
}

/* Start a job's thread; give the job back if it is time to stop or no thread can be started. */
static void
begin(struct il__worker *w, il_job *job)
{
    uint64_t       token = il_job_look(job)->token;
    il_error       error;
    pthread_attr_t attr;

    il__worker_lock(w);
    bool             stop = w->stopping;
    struct il__task *t    = free_task(w);
    if (!stop) {
        *t = (struct il__task){ .worker    = w,
                                .busy      = true,
                                .job       = job,
                                .token     = token,
                                .cancelled = was_cancelled_early(w, token),
                                .child     = IL__CHILD_NONE };
        w->n_busy++;
    }
    il__worker_unlock(w);
    if (!stop) {
        CHECK(pthread_attr_init(&attr) == 0);
        CHECK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
        int made = pthread_create(&t->thread, &attr, il__task_main, t);
        CHECK(pthread_attr_destroy(&attr) == 0);
        if (made == 0)
            return;
        il__worker_lock(w);
        t->busy = false;
        w->n_busy--;
        il__worker_unlock(w);
        il__proc_say("%s: cannot start a thread for a job", il_job_look(job)->queue);
        il__worker_stop(w, il_status_exit(IL_NOMEM));
    }
    (void)!il_job_snooze(job, 0, &error); /* at worst its claim expires */
    il_job_free(job);
}

/* With --drain, after empty claims: is a job due that a limit, not a pause, holds back? */
static bool
is_held_back(struct il__worker *w)
{
    bool held = false;

    for (size_t i = 0; i < w->n_queues && !held; i++) {
        const char *name = w->queues[i].name;
        il_op       op   = { .type = IL_OP_QUEUE_LIST, .in.list = { .prefix = name, .limit = 1 } };
        held             = il_apply(w->store, &op, 1, NULL) == IL_OK && op.status == IL_OK &&
               op.out.n_queues > 0 && strcmp(op.out.queues[0].name, name) == 0 &&
               op.out.queues[0].n_ready > 0 && !op.out.queues[0].paused;
        il_op_release(&op);
    }
    return held;
}

/* Nothing is due in any queue. Returns whether to continue, and how long to wait for a job. */
static bool
on_empty(struct il__worker *w, int64_t *wait_ms)
{
    const struct il__worker_opts *o = w->opts;

    *wait_ms = w->n_queues == 1 ? CLAIM_WAIT_MS : CLAIM_SLICE_MS;
    if (!o->drain) {
        if (!w->waiting && !o->quiet && !o->json && isatty(STDERR_FILENO) != 0)
            il__proc_say("waiting for jobs in %s", w->names);
        w->waiting = true;
        return true;
    }
    if (await_task(w)) { /* running or finished jobs may have pushed more */
        *wait_ms = 0;
        return true;
    }
    *wait_ms = is_held_back(w) ? LIMITED_WAIT_MS : 0;
    return *wait_ms > 0;
}

/* A claim failed. Returns whether to continue: a busy store may recover. Not with --once or
 * --drain, whose caller waits for us to exit. */
static bool
on_failure(struct il__worker *w, const char *queue, il_status st, const il_error *error)
{
    const struct il__worker_opts *o = w->opts;

    if (st == IL_CANCELLED)
        return false;
    if (st != w->trouble) /* once, not once a second */
        il__proc_say("%s: %s", queue, st == IL_NOT_FOUND ? "no such queue" : error->message);
    w->trouble = st;
    if (il_status_retryable(st) != 0 && !o->once && !o->drain) {
        (void)poll(NULL, 0, RETRY_MS);
        return true;
    }
    il__worker_stop(w, il_status_exit(st));
    return false;
}

/* Claim from one queue, waiting for a job, and start what was given. */
static il_status
claim(struct il__worker *w, struct il__worker_queue *q, uint32_t n_max, int64_t wait_ms,
      il_error *reterr)
{
    il_job       *jobs[CLI_WORK_MAX];
    size_t        n    = 0;
    il_claim_opts opts = IL_CLAIM_OPTS_INIT;

    opts.worker    = w->name;
    opts.limit     = n_max;
    opts.lease_ms  = w->opts->lease_ms;
    opts.wait_ms   = wait_ms;
    opts.on_lost   = on_lost;
    opts.on_cancel = on_cancel;
    opts.cookie    = w;
    il_status st   = il_claim(w->store, q->name, &opts, jobs, &n, reterr);
    for (size_t i = 0; st == IL_OK && i < n; i++)
        begin(w, jobs[i]);
    if (st == IL_OK || st == IL_EMPTY)
        w->trouble = IL_OK;
    return st;
}

/*
 * One queue after the other is claimed from, without waiting; when all are empty, the next one for
 * a while. So with several queues a job that comes while the worker waits for another one may wait
 * that long as well.
 */
static void
claim_loop(struct il__worker *w)
{
    const struct il__worker_opts *o       = w->opts;
    bool                          single  = o->once || w->n_queues > 1;
    int64_t                       wait_ms = 0;
    uint32_t                      room;

    while ((room = await_room(w)) > 0) {
        struct il__worker_queue *q = il__worker_next_queue(w);
        il_error                 error;
        if (q == NULL) { /* all were empty */
            if (!on_empty(w, &wait_ms))
                return;
            il__worker_look_again(w);
            continue;
        }
        il_status st = claim(w, q, single ? 1 : room, wait_ms, &error);
        wait_ms      = 0;
        if (st == IL_OK && o->once)
            return;
        if (st == IL_OK)
            il__worker_look_again(w);
        else if (st == IL_EMPTY)
            q->empty = true;
        else if (!on_failure(w, q->name, st, &error))
            return;
    }
}

/* ---- the worker as a whole ------------------------------------------------------------------- */

static int
fail(const il_error *error)
{
    il__proc_say("%s", error->message);
    return il_status_exit(error->status);
}

/* mails, reports: 12 jobs in 3m: 10 finished, 1 will be retried, 1 failed */
static void
summarize(const struct il__worker *w, int64_t took_ns)
{
    static const char *const texts[IL__OUTCOME_COUNT] = {
        "finished", "will be retried", "failed", "snoozed", "returned to the queue", "cancelled",
        "lost"
    };
    const struct il__worker_opts *o = w->opts;
    char                          took[CLI_AGE_BYTES];
    char                          text[256] = "";
    size_t                        n_bytes   = 0;
    uint32_t                      n         = 0;

    for (size_t i = 0; i < IL__OUTCOME_COUNT; i++) {
        n += w->n_jobs[i];
        if (w->n_jobs[i] > 0)
            n_bytes += (size_t)snprintf(text + n_bytes, sizeof text - n_bytes, "%s%" PRIu32 " %s",
                                        n_bytes > 0 ? ", " : ": ", w->n_jobs[i], texts[i]);
    }
    if (w->n_hooks_failed > 0)
        (void)snprintf(text + n_bytes, sizeof text - n_bytes, "; %" PRIu32 " hook%s failed",
                       w->n_hooks_failed, w->n_hooks_failed == 1 ? "" : "s");
    /* Off a terminal, a queue that was drained without trouble gives cron nothing to mail. */
    bool well = n == w->n_jobs[IL__OUTCOME_FINISHED] && w->n_hooks_failed == 0;
    if (o->quiet || o->json || o->once ||
        (isatty(STDERR_FILENO) == 0 && (n == 0 || (o->drain && well))))
        return;
    il__proc_say("%s: %" PRIu32 " job%s in %s%s", w->names, n, n == 1 ? "" : "s",
                 il__cli_age(took_ns / IL__NS_PER_MS, took), text);
}

/* Claim until it is time to stop, then wait for running tasks. */
static int
work(struct il__worker *w, int sig_fd)
{
    const struct il__worker_opts *o        = w->opts;
    AUTO_FD int                   quit_fd  = eventfd(0, EFD_CLOEXEC);
    struct watch                  watch    = { w, sig_fd, quit_fd };
    int64_t                       began_ns = il__clock_boot_ns();
    pthread_t                     thread;

    int rc = quit_fd < 0 ? errno : pthread_create(&thread, NULL, watch_main, &watch);
    if (quit_fd < 0 || rc != 0) {
        il__proc_say("queue work: cannot start the thread that watches for signals: %s",
                     strerror(rc));
        return il_status_exit(IL_NOMEM);
    }
    claim_loop(w);
    while (await_task(w))
        continue;
    CHECK(eventfd_write(quit_fd, 1) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    if (w->trouble == IL_OK)
        il__worker_leave(w);
    summarize(w, il__clock_boot_ns() - began_ns);
    bool died = o->fail_on_failed && w->n_jobs[IL__OUTCOME_FAILED] > 0;
    bool idle = o->once && w->n_jobs[IL__OUTCOME_FINISHED] == 0 && w->last_signal == 0;
    return w->exit_status == 0 && (died || idle) ? il_status_exit(IL_EMPTY) : w->exit_status;
}

static il_status
open_store(struct il__worker *w, il_error *reterr)
{
    const struct il__worker_opts *o  = w->opts;
    il_status                     st = il_open(o->store_url, o->open_opts, &w->store, reterr);

    if (st == IL_OK)
        st = il__worker_open_queues(w, reterr);
    if (st != IL_OK) {
        il_close(w->store);
        w->store = NULL;
    }
    return st;
}

/*
 * Open the store, and wait for one that is unreachable: a worker may be started before its
 * database. Not with --once and --drain, whose caller waits for us to exit. *ret_stopped: a signal
 * came first.
 */
static il_status
open_patiently(struct il__worker *w, int sig_fd, bool *ret_stopped, il_error *reterr)
{
    const struct il__worker_opts *o       = w->opts;
    int64_t                       said_ns = 0;
    il_status                     st;

    while ((st = open_store(w, reterr)) != IL_OK) {
        struct pollfd fd = { sig_fd, POLLIN, 0 };
        if (o->once || o->drain || !il__cli_store_is_unreachable(o->store_url, reterr))
            return st;
        if (said_ns == 0 || il__clock_boot_ns() - said_ns >= REMIND_NS) {
            said_ns = il__clock_boot_ns();
            il__proc_say("%s: waiting for the store: %s", w->names, reterr->message);
        }
        *ret_stopped = poll(&fd, 1, RETRY_MS) > 0;
        if (*ret_stopped)
            return st;
    }
    if (said_ns != 0)
        il__proc_say("%s: the store is available again", w->names);
    return IL_OK;
}

static int
prepare_and_work(struct il__worker *w)
{
    const struct il__worker_opts *o = w->opts;
    il_error                      error;
    int                           missing = il__proc_find(o->argv[0], &w->path);
    AUTO_FD int                   sig_fd  = -1;

    if (missing != 0)
        return il__proc_exec_failed(o->argv[0], NULL, missing);
    sig_fd      = signals_open();
    w->abort_fd = eventfd(0, EFD_CLOEXEC);
    /* Become a subreaper: if a reaper is killed, its descendants become our children. */
    if (sig_fd < 0 || w->abort_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
        il_uuid(w->name) != IL_OK) {
        (void)il__error_set(&error, IL_NOMEM, "queue work: cannot start: %s", strerror(errno));
        return fail(&error);
    }
    bool stopped = false;
    if (open_patiently(w, sig_fd, &stopped, &error) != IL_OK)
        return stopped ? 0 : fail(&error);
    return work(w, sig_fd);
}

static void
name_queues(struct il__worker *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_queues; i++) {
        const struct il__worker_named *q = &w->opts->queues[i];
        w->queues[i] = (struct il__worker_queue){ .name = q->name, .weight = q->weight };
        if (n < sizeof w->names)
            n += (size_t)snprintf(w->names + n, sizeof w->names - n, "%s%s", i > 0 ? ", " : "",
                                  q->name);
    }
}

int
il__worker_run(const struct il__worker_opts *opts)
{
    static struct il__worker w; /* static: it is large */

    CHECK(opts->n_jobs >= 1 && opts->n_jobs <= CLI_WORK_MAX);
    CHECK(opts->n_queues >= 1 && opts->n_queues <= CLI_WORK_QUEUES_MAX);
    w = (struct il__worker){ .opts = opts, .abort_fd = -1, .n_queues = opts->n_queues };
    name_queues(&w);
    il__mutex_init(&w.mutex, IL__MUTEX_worker);
    il__mutex_init(&w.spawn_mutex, IL__MUTEX_worker_spawn);
    il__mutex_init(&w.out_mutex, IL__MUTEX_worker_out);
    il__cond_init(&w.cond);
    il__proc_fds_ensure();
    int status = prepare_and_work(&w);
    il_close(w.store);
    il__proc_fd_close(&w.abort_fd);
    il__free(w.path);
    return status;
}
