/*
 * hold_record.c: `interlock run --record`: records the run in the store: who, when, how it ended
 * and the end of its output. `interlock cancel` stops it.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/wrap/meta.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

#define JOIN_TRIES_MAX 16 /* runs that come and go between our start and our lookup */
#define LOOK_MS 1000      /* how often a pending run is polled, in addition to wake-ups */

/* ---- callbacks, on the watchdog's thread ----------------------------------------------------- */

static void
on_renewed(void *cookie, il_run *run UNUSED, int64_t deadline_ns)
{
    wrap_publish_deadline(cookie, deadline_ns);
}

static void
on_lost(void *cookie, il_run *run, const char *why)
{
    wrap_on_lost(cookie, il_run_lease(run), why);
}

static void
on_cancel(void *cookie, il_run *run UNUSED, const char *reason)
{
    struct wrap *r = cookie;

    (void)snprintf(r->cancel_why, sizeof r->cancel_why, "%s", reason);
    atomic_store(&r->cancelled, true);
    il__reaper_order(&r->reaper, IL__ORDER_STOP, 0);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* With --wait, fail and skip apply after the wait: so it queues first. */
static il_policy
policy_of(const struct wrap_opts *o, int64_t wait_ms)
{
    switch (o->on_conflict) {
    case WRAP_REJECT:
        return wait_ms != 0 ? IL_POLICY_QUEUE : IL_POLICY_REJECT;
    case WRAP_SKIP:
        return wait_ms != 0 ? IL_POLICY_QUEUE : IL_POLICY_SKIP;
    case WRAP_JOIN:
        return wait_ms != 0 ? IL_POLICY_QUEUE : IL_POLICY_JOIN;
    case WRAP_QUEUE:
        return IL_POLICY_QUEUE;
    case WRAP_REPLACE_PENDING:
        return IL_POLICY_REPLACE_PENDING;
    case WRAP_CANCEL_RUNNING:
        return IL_POLICY_CANCEL_RUNNING;
    }
    il__check_failed("a policy for each choice", __FILE__, __LINE__, __func__);
}

struct start {
    int64_t wait_ms;
    il_op   op;
};

static il_status
start_now(struct wrap *r, void *cookie, il_error *reterr)
{
    const struct wrap_opts *o     = r->opts;
    struct start           *start = cookie;
    il_run_opts             run   = IL_RUN_OPTS_INIT;
    char                    by[IL_PLACE_BYTES_MAX + 1];

    wrap_user(by, sizeof by);
    run.id         = r->id;
    run.holder     = r->holder;
    run.policy     = policy_of(o, start->wait_ms);
    run.ttl_ms     = r->ttl_ms;
    run.wait_ms    = start->wait_ms;
    run.settle_ms  = o->settle_ms;
    run.keep_ms    = o->keep_ms;
    run.trigger    = o->record.trigger;
    run.by         = o->record.by != NULL ? o->record.by : by;
    run.meta       = r->meta;
    run.place      = "interlock run";
    run.stop_ms    = r->grace_ms;
    run.on_lost    = on_lost;
    run.on_cancel  = on_cancel;
    run.on_renewed = on_renewed;
    run.cookie     = r;
    return il_run_start(r->store, o->key, &run, &r->run, &start->op, reterr);
}

static bool
queues(const struct wrap_opts *o)
{
    return o->on_conflict == WRAP_QUEUE || o->on_conflict == WRAP_REPLACE_PENDING ||
           o->on_conflict == WRAP_CANCEL_RUNNING;
}

/* The key has a live run, and that is fine. */
static int
skip(struct wrap *r, const il_run_info *other)
{
    il_error error = { .status = IL_HELD };

    r->outcome = "skipped";
    if (!r->opts->quiet || r->opts->json)
        wrap_tell(r, "%s: run %s is %s; skipped", r->opts->key, other->id,
                  other->state == IL_RUN_PENDING ? "waiting to start" : "running");
    error.fence = other->fence;
    (void)snprintf(error.holder, sizeof error.holder, "%s", other->holder);
    wrap_report_refusal(r, &error);
    return 0;
}

/* Wait until a pending run is running or over; its holder and fence are then known. IL_OK, or
 * IL_CANCELLED after a signal. */
static il_status
await_start(struct wrap *r, void *cookie, il_error *reterr)
{
    struct start *start  = cookie;
    il_op         op     = { .type = IL_OP_NONE };
    il_status     status = start->op.out.n_runs > 0
                               ? il_run_get(r->store, start->op.out.runs[0].id, &op, reterr)
                               : IL_OK;

    while (status == IL_OK && op.out.n_runs > 0 && op.out.runs[0].state == IL_RUN_PENDING) {
        status = il_wait(r->store, &op, LOOK_MS);
        if (status == IL_OK || status == IL_TIMEOUT)
            status = il_run_get(r->store, start->op.out.runs[0].id, &op, reterr);
    }
    if (status == IL_OK) {
        il_op_release(&start->op);
        start->op = op;
        return IL_OK;
    }
    il_op_release(&op);
    return status;
}

/* Follow the run in our way. WRAP_GO_ON: it no longer exists, or cannot be followed
 * (*ret_cannot). */
static int
join(struct wrap *r, struct start *start, bool *ret_cannot)
{
    il_error error = { .status = IL_HELD };
    int      sig;
    int      result;

    *ret_cannot      = false;
    il_status status = wrap_signals_take(r, true, await_start, start, &sig, &error);
    if (sig != 0)
        return wrap_interrupted(r, sig);
    if (status != IL_OK)
        return status == IL_NOT_FOUND ? WRAP_GO_ON : wrap_give_up(r, &error);
    if (start->op.out.n_runs == 0 || start->op.out.runs[0].fence == 0)
        return WRAP_GO_ON; /* cancelled before it began */
    const il_run_info *other = &start->op.out.runs[0];
    (void)snprintf(error.holder, sizeof error.holder, "%s", other->holder);
    error.fence             = other->fence;
    enum wrap_joined joined = wrap_join(r, &error, &result);
    *ret_cannot             = joined == IL__JOIN_CANNOT;
    return joined == IL__JOIN_DONE ? result : WRAP_GO_ON;
}

/* What a start without a run means. WRAP_GO_ON: try again. */
static int
refused(struct wrap *r, il_status status, struct start *start, const il_error *error)
{
    const struct wrap_opts *o = r->opts;
    bool                    cannot;

    if (start->op.out.n_runs > 0 && strcmp(start->op.out.runs[0].id, r->id) != 0)
        (void)snprintf(r->in_the_way, sizeof r->in_the_way, "%s", start->op.out.runs[0].id);
    if (status == IL_DUPLICATE && start->op.out.n_runs > 0 && o->on_conflict == WRAP_JOIN) {
        int result = join(r, start, &cannot);
        if (result != WRAP_GO_ON)
            return result;
        if (cannot && o->wait_ms == 0)
            return wrap_conflict(r, error);
        if (cannot)
            start->wait_ms = o->wait_ms;
        return WRAP_GO_ON;
    }
    if (status == IL_DUPLICATE && start->op.out.n_runs > 0)
        return skip(r, &start->op.out.runs[0]);
    if (status == IL_HELD)
        return wrap_conflict(r, error);
    if (status != IL_CANCELLED)
        return wrap_give_up(r, error);
    r->outcome = "cancelled";
    wrap_tell(r, "%s", error->message);
    return il_status_exit(status);
}

static int
take(struct wrap *r)
{
    const struct wrap_opts *o      = r->opts;
    struct start            start  = { .wait_ms = o->wait_ms };
    int                     result = WRAP_GO_ON;
    il_error                error;

    if (queues(o) && start.wait_ms == 0)
        start.wait_ms = IL_FOREVER; /* queueing implies waiting */
    if (o->on_conflict == WRAP_JOIN)
        start.wait_ms = 0; /* a joinable run is not waited for */
    for (int tries = 0; r->run == NULL && result == WRAP_GO_ON; tries++) {
        int sig;
        if (tries == JOIN_TRIES_MAX) {
            il__error_set(&error, IL_HELD,
                          "%s: cannot join: runs start and end too quickly; try again", o->key);
            return wrap_give_up(r, &error);
        }
        if (start.wait_ms != 0)
            wrap_say_waiting(r);
        il_status status =
            wrap_signals_take(r, start.wait_ms != 0, start_now, &start, &sig, &error);
        if (sig != 0)
            result = wrap_interrupted(r, sig);
        else if (status != IL_OK)
            result = refused(r, status, &start, &error);
        il_op_release(&start.op);
    }
    if (r->run == NULL || result != WRAP_GO_ON)
        return result;
    r->in_the_way[0] = '\0'; /* it has ended meanwhile */
    r->lease         = il_run_lease(r->run);
    if (wrap_log_start(&r->log, r->run))
        return WRAP_GO_ON;
    il__proc_say("%s: cannot start the log thread", o->key);
    return IL__EXIT_OS;
}

/* ---- ending ---------------------------------------------------------------------------------- */

struct ending {
    il_run_state state;
    char         error[IL_PLACE_BYTES_MAX + 1];
};

static struct ending
own_ending(const struct wrap *r, int wait_status)
{
    struct ending e = { .state = IL_RUN_COMPLETED };

    if (wait_status >= 0 && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        return e;
    e.state = r->reaper.asked_to_end ? IL_RUN_INTERRUPTED : IL_RUN_FAILED;
    if (wait_status < 0)
        (void)snprintf(e.error, sizeof e.error, "exit status unknown");
    else if (WIFSIGNALED(wait_status))
        (void)snprintf(e.error, sizeof e.error, "killed by signal %d", WTERMSIG(wait_status));
    else
        (void)snprintf(e.error, sizeof e.error, "exit status %d", WEXITSTATUS(wait_status));
    return e;
}

static struct ending
ending_of(const struct wrap *r, const struct il__reaper_report *report)
{
    struct ending e = { .state = IL_RUN_FAILED };
    char          text[IL__DURATION_TEXT_BYTES];

    switch ((enum il__reaper_end)report->end) {
    case IL__END_EXITED:
    case IL__END_REAPER:
        return own_ending(r, report->wait_status);
    case IL__END_TIMEOUT:
        e.state = IL_RUN_TIMEOUT;
        (void)snprintf(e.error, sizeof e.error, "timed out after %s",
                       il__duration_text(r->opts->timeout_ms, text));
        return e;
    case IL__END_FAILED:
        (void)snprintf(e.error, sizeof e.error, "cannot start the command: %s",
                       strerror(report->error));
        return e;
    case IL__END_LOST:
        if (!atomic_load(&r->cancelled))
            break;
        e.state = IL_RUN_CANCELLED;
        (void)snprintf(e.error, sizeof e.error, "%s", r->cancel_why);
        return e;
    case IL__END_DEADLINE:
    case IL__END_NONE:
    case IL__END_ORPHANED:
        break;
    }
    (void)snprintf(e.error, sizeof e.error, "lease lost");
    return e;
}

static il_status
finish_now(struct wrap *r, void *cookie, il_error *reterr)
{
    const struct ending *e = cookie;

    wrap_log_finish(&r->log);
    return il_run_finish(r->run, e->state, e->error[0] != '\0' ? e->error : NULL, reterr);
}

static int
give(struct wrap *r, const struct il__reaper_report *report, int status)
{
    static struct ending e; /* wrap_bounded_call() */
    bool                 lost = atomic_load(&r->lost) || report->end == IL__END_DEADLINE;
    il_status            finished;
    il_error             error;

    e = ending_of(r, report);
    do
        finished = wrap_bounded_call(r, finish_now, &e, &error);
    while (wrap_try_again(r, finished, &error));
    r->released = true;
    if (finished == IL_OK || lost)
        return status;
    if (finished == IL_STALE || finished == IL_LOST || finished == IL_NOT_FOUND)
        return wrap_report_lost(r);
    il__proc_say("%s: cannot record the end of the run, its lease will expire: %s", r->opts->key,
                 error.message);
    return status;
}

static void
drop(struct wrap *r)
{
    wrap_log_finish(&r->log);
    if (r->run != NULL && !r->released) /* nothing was run; at worst its lease expires */
        (void)!il_run_finish(r->run, IL_RUN_INTERRUPTED, "cancelled before it started", NULL);
    il_run_free(r->run);
}

static bool
add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct wrap *r = cookie;

    wrap_log_add(&r->log, data, n_bytes);
    return wrap_spool_add(cookie, stream, data, n_bytes);
}

const struct wrap_hold wrap_hold_record = {
    .take = take,
    .give = give,
    .drop = drop,
    .sink = { add, wrap_spool_mark_incomplete },
    .told = true,
};
