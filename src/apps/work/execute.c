/*
 * execute.c: one run, from the start of its slot to its finish, on its own thread; and the watch
 * thread, which checks the deadlines of all runs. outcome.c decides how a run has ended.
 *
 * One executor per run: il_run_start() with the slot's id makes it RUNNING for one holder. The
 * holder's name contains this process's nonce, so neither another server nor this one after a
 * restart can be mistaken for it. From then on the keeper renews the lease. Everything the run does
 * is to stop before the lease can end: on_lost is called stop_ms before the local deadline (which
 * is before the store's).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "apps/work/work_internal.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"

#define RENEWALS_NS (10 * WORK_NS_PER_S) /* history notes renewals at most this often */
/* check the clock at least this often: the machine may have slept */
#define WATCH_NS WORK_NS_PER_S

static struct work_execution *
execution_of(struct work_run *run)
{
    return container_of(run, struct work_execution, pub);
}

/* ---- requests to stop ------------------------------------------------------------------------ */

/*
 * The first reason stays, except that a lost lease overrides it. should_stop is set before the
 * callback is called, and the callback takes the app's mutex: a thread of the app that checks
 * should_stop under that mutex either sees it, or is seen by the callback.
 */
static void
stop_locked(struct work_execution *e, enum work_reason why, const char *text)
{
    if (e->concluded)
        return; /* the outcome is decided */
    if (e->reason == WORK_GO || (why == WORK_LOST && e->reason != WORK_LOST)) {
        e->reason = why;
        (void)snprintf(e->text, sizeof e->text, "%s", text != NULL ? text : "");
    }
    atomic_store(&e->should_stop, true);
    if (e->callbacks != NULL && e->callbacks->stop != NULL)
        e->callbacks->stop(e->callbacks_cookie);
}

static void
stop(struct work_execution *e, enum work_reason why, const char *text)
{
    il__mutex_lock(&e->mutex);
    stop_locked(e, why, text);
    il__mutex_unlock(&e->mutex);
}

bool
work_run_should_stop(const struct work_run *run)
{
    const struct work_execution *e = (const struct work_execution *)run; /* its first member */

    return atomic_load(&e->should_stop);
}

bool
work_run_may_begin(struct work_run *run)
{
    struct work_execution *e = execution_of(run);

    /* A process that was stopped for a while may get here before the watch has noticed that the
     * lease has ended. */
    if (il_lease_status(il_run_lease(e->run)) != IL_OK)
        stop(e, WORK_LOST, WORK_LEASE_OVER);
    return !atomic_load(&e->should_stop);
}

enum work_reason
work_run_reason(struct work_run *run, char text[WORK_TEXT_BYTES])
{
    struct work_execution *e = execution_of(run);

    il__mutex_lock(&e->mutex);
    enum work_reason reason = e->reason;
    (void)snprintf(text, WORK_TEXT_BYTES, "%s", e->text);
    il__mutex_unlock(&e->mutex);
    return reason;
}

void
work_run_fail(struct work_run *run, bool timed_out, const char *text)
{
    struct work_execution *e = execution_of(run);

    il__mutex_lock(&e->mutex);
    if (e->reason == WORK_GO)
        e->failed_by_timeout = timed_out;
    stop_locked(e, WORK_FAILED, text);
    il__mutex_unlock(&e->mutex);
}

void
work_run_lost(struct work_run *run)
{
    stop(execution_of(run), WORK_LOST, WORK_LEASE_OVER);
}

void
work_run_callbacks(struct work_run *run, const struct work_callbacks *callbacks, void *cookie)
{
    struct work_execution *e = execution_of(run);

    il__mutex_lock(&e->mutex);
    e->callbacks        = callbacks;
    e->callbacks_cookie = cookie;
    if (callbacks != NULL && callbacks->renewed != NULL)
        callbacks->renewed(cookie, e->lease_ns);
    if (callbacks != NULL && callbacks->stop != NULL && e->reason != WORK_GO)
        callbacks->stop(cookie);
    il__mutex_unlock(&e->mutex);
    if (callbacks != NULL)
        work_run_poke(run);
}

/* ---- signs of life --------------------------------------------------------------------------- */

void
work_run_stage(struct work_run *run, const char *stage, int32_t percent)
{
    work_live_stage(run->live, stage, percent);
}

void
work_run_say(struct work_run *run, const char *fmt, ...)
{
    char    text[1400];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    work_live_line(run->live, NULL, 0, text, (size_t)MIN(MAX(n, 0), (int)sizeof text - 1));
}

void
work_run_alive(struct work_run *run)
{
    atomic_store(&execution_of(run)->sign_ns, il__clock_boot_ns());
}

void
work_execution_record(struct work_execution *e)
{
    if (e->w->o.data == NULL)
        return;
    il__mutex_lock(&e->mutex);
    struct il__data_detail d = {
        .tenant        = e->tenant,
        .run           = e->id,
        .pipeline      = e->pub.plan.name,
        .version       = e->pub.plan.version,
        .node          = e->w->node,
        .parameters    = e->parameters != NULL ? e->parameters : "{}",
        .renewals      = e->renewals,
        .renewed_at_ms = e->renewed_at_ms,
        .created_at_ms = e->created_at_ms,
    };
    il__mutex_unlock(&e->mutex);
    work_record_detail(&e->w->recorder, &d);
}

/* The three callbacks of il_run. They run on threads of the keeper, which must not be blocked,
 * and may be called before il_run_start() has returned. */
static void
on_cancel(void *cookie, il_run *run UNUSED, const char *reason)
{
    stop(cookie, WORK_CANCELLED, reason);
}

static void
on_lost(void *cookie, il_run *run UNUSED, const char *why)
{
    stop(cookie, WORK_LOST, why);
}

static void
on_renewed(void *cookie, il_run *run UNUSED, int64_t deadline_ns)
{
    struct work_execution *e = cookie;

    il__mutex_lock(&e->mutex);
    e->renewals++;
    e->renewed_at_ms = il__clock_wall_ms();
    e->renewed_ns    = il__clock_boot_ns();
    e->unrenewed     = false;
    e->lease_ns      = deadline_ns;
    if (e->callbacks != NULL && e->callbacks->renewed != NULL)
        e->callbacks->renewed(e->callbacks_cookie, deadline_ns);
    bool tell = e->executing && (e->told_ns == 0 || e->renewed_ns - e->told_ns >= RENEWALS_NS);
    if (tell)
        e->told_ns = e->renewed_ns;
    il__mutex_unlock(&e->mutex);
    if (tell)
        work_execution_record(e);
}

/* ---- the watch ------------------------------------------------------------------------------- */

/* Has the run held its key for longer than expected? Only warns. */
static int64_t
watch_age(struct work_execution *e, int64_t now_ns)
{
    int64_t timeout_ms = e->pub.plan.lock_timeout_ms;
    int64_t at_ns      = e->began_ns + timeout_ms * IL__NS_PER_MS / 1000 * e->w->o.alert_permille;

    if (timeout_ms == 0)
        return INT64_MAX;
    if (now_ns < at_ns)
        return at_ns;
    if (!e->expiring) {
        char text[120], held[IL__DURATION_TEXT_BYTES], timeout[IL__DURATION_TEXT_BYTES];
        (void)snprintf(text, sizeof text, "lock held for %s; lock_timeout_seconds is %s",
                       il__duration_text((now_ns - e->began_ns) / IL__NS_PER_MS, held),
                       il__duration_text(timeout_ms, timeout));
        e->expiring = true;
        work_note_run(e, WORK_EVENT_expiring, text);
    }
    e->w->n_expiring++;
    return INT64_MAX;
}

/* Has the lease gone without renewal for too long? Measured against the time after which it is
 * given up: the TTL less the time needed to stop. */
static int64_t
watch_lease(struct work_execution *e, int64_t now_ns)
{
    int64_t share_ns =
        (e->ttl_ms - e->pub.stop_ms) * IL__NS_PER_MS / 1000 * WORK_UNRENEWED_PERMILLE;
    int64_t at_ns = e->renewed_ns + share_ns;

    if (now_ns < at_ns)
        return at_ns;
    if (!e->unrenewed) {
        char text[120];
        (void)snprintf(text, sizeof text,
                       "lease not renewed for %" PRId64 " ms (TTL %" PRId64 " ms)",
                       (now_ns - e->renewed_ns) / IL__NS_PER_MS, e->ttl_ms);
        e->unrenewed = true;
        work_note_run(e, WORK_EVENT_unrenewed, text);
    }
    e->w->n_unrenewed++;
    return INT64_MAX;
}

/* Has an active run shown no sign of life for too long? Returns when to check again. */
static int64_t
watch_signs(struct work_execution *e, int64_t now_ns)
{
    int64_t stall_ms = e->pub.plan.stall_timeout_ms;
    char    text[160], duration[IL__DURATION_TEXT_BYTES];

    if (stall_ms == 0 || e->reason != WORK_GO)
        return INT64_MAX;
    int64_t at_ns = MAX(e->began_ns, atomic_load(&e->sign_ns)) + stall_ms * IL__NS_PER_MS;
    if (now_ns < at_ns)
        return at_ns;
    (void)snprintf(text, sizeof text, "stalled: no step, output or progress for %s",
                   il__duration_text(stall_ms, duration));
    stop_locked(e, WORK_TIMEOUT, text);
    return INT64_MAX;
}

/* Check the clock: deadlines, leases that are not renewed, the end of a shutdown. Both mutexes are
 * held. Returns when to check again. */
static int64_t
watch(struct work_execution *e, int64_t now_ns)
{
    const struct work *w = e->w;
    char               text[160], duration[IL__DURATION_TEXT_BYTES];

    if (!e->executing)
        return INT64_MAX;
    int64_t lease_ns = watch_lease(e, now_ns), age_ns = watch_age(e, now_ns);
    int64_t signs_ns = watch_signs(e, now_ns);
    int64_t next_ns  = MIN(MIN(lease_ns, age_ns), signs_ns);
    if (e->reason == WORK_GO && now_ns >= e->pub.deadline_ns) {
        (void)snprintf(text, sizeof text, "timed out after %s",
                       il__duration_text(e->pub.plan.timeout_ms, duration));
        stop_locked(e, WORK_TIMEOUT, text);
    }
    if (e->reason == WORK_GO && w->stopping && now_ns >= w->stop_ns)
        stop_locked(e, WORK_SHUTDOWN, "the server was shut down");
    if (e->reason == WORK_GO) {
        next_ns = MIN(next_ns, e->pub.deadline_ns);
        if (w->stopping)
            next_ns = MIN(next_ns, w->stop_ns);
    }
    if (e->callbacks != NULL && e->callbacks->watch != NULL) {
        int64_t own_ns = e->callbacks->watch(e->callbacks_cookie, now_ns);
        next_ns        = MIN(next_ns, own_ns);
    }
    return next_ns;
}

void *
work_watch_main(void *arg)
{
    struct work *w = arg;

    il__mutex_lock(&w->mutex);
    while (!w->closing) {
        int64_t now_ns  = il__clock_boot_ns();
        int64_t next_ns = INT64_MAX;
        w->n_expiring = w->n_unrenewed = 0;
        for (struct work_execution *e = w->executions; e != NULL; e = e->next) {
            il__mutex_lock(&e->mutex);
            int64_t own_ns = watch(e, now_ns); /* counted once */
            il__mutex_unlock(&e->mutex);
            next_ns = MIN(next_ns, own_ns);
        }
        int64_t wait_ns = w->executions != NULL ? WATCH_NS : -1;
        if (next_ns != INT64_MAX)
            wait_ns = MIN(MAX(next_ns - now_ns, 0), WATCH_NS);
        work_wait(&w->watch, &w->mutex, wait_ns);
    }
    il__mutex_unlock(&w->mutex);
    return NULL;
}

void
work_run_poke(struct work_run *run)
{
    struct work *w = run->work;

    il__mutex_lock(&w->mutex);
    CHECK(pthread_cond_signal(&w->watch) == 0);
    il__mutex_unlock(&w->mutex);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Read what the trigger noted, from the run's own row. */
static void
read_meta(struct work_execution *e, const char *meta)
{
    static const char none[] = "the run has no parameters because it was not started by a trigger";

    e->meta           = json_loads(meta, 0, NULL);
    e->pub.parameters = json_object_get(e->meta, "parameters");
    if (!json_is_object(e->pub.parameters)) {
        json_decref(e->meta);
        e->meta           = json_object(); /* the app always gets an object */
        e->pub.parameters = e->meta;
        work_run_fail(&e->pub, false, none);
        work_run_say(&e->pub, "%s", none);
    }
    char *text = json_dumps(e->pub.parameters, JSON_COMPACT);
    /* on_renewed() may already record the run. Set once, so that a reader that has seen the text
     * under the mutex may use it without. */
    il__mutex_lock(&e->mutex);
    e->parameters = text;
    il__mutex_unlock(&e->mutex);
}

static void
begin(struct work_execution *e, const il_op *op)
{
    const il_run_info *info       = op->out.n_runs > 0 ? &op->out.runs[0] : NULL;
    int64_t            timeout_ms = e->pub.plan.timeout_ms;
    struct work_note   note       = { .event   = WORK_EVENT_acquired,
                                      .tenant  = e->tenant,
                                      .name    = e->pub.plan.name,
                                      .run     = e->id,
                                      .hold_ms = -1 };

    work_live_init(&e->live, &e->w->writers, e->run, info != NULL ? info->log_bytes : 0,
                   &e->sign_ns);
    e->live_ready = true;
    il__mutex_lock(&e->mutex);
    e->pub.fence       = op->out.fence;
    e->began_ns        = il__clock_boot_ns();
    e->pub.deadline_ns = timeout_ms != 0 ? e->began_ns + timeout_ms * IL__NS_PER_MS : INT64_MAX;
    e->created_at_ms   = info != NULL ? info->created_at_ms : il__clock_wall_ms();
    e->lease_ns        = MAX(e->lease_ns, il_lease_deadline_ns(il_run_lease(e->run)));
    e->executing       = true;
    il__mutex_unlock(&e->mutex);
    work_run_poke(&e->pub);
    work_running(e);
    atomic_fetch_add(&e->w->n_started, 1);
    note.fence   = e->pub.fence;
    note.wait_ms = MAX(il__clock_wall_ms() - e->created_at_ms, 0);
    work_note(e->w, note);
    work_note_run(e, WORK_EVENT_run_started, e->pub.plan.version);
    read_meta(e, info != NULL ? info->meta : "");
    work_execution_record(e);
}

/*
 * A cancelled slot is purged keep_ms after its end, and starting an unknown id creates a run. So
 * the slot is looked up first: if it existed then and is missing when it is started, it was
 * cancelled and purged in between. To detect that, a start carries its own meta: a slot keeps the
 * meta it was created with, so a run with this meta was created by the start. It is ended at once;
 * nothing of it is executed or recorded, and it is not kept. If the store cannot be reached, its
 * lease ends it.
 */
#define META_GONE "{\"gone\":true}"

static bool
is_gone(const struct work_execution *e)
{
    il_op op = { .type = IL_OP_RUN_GET, .tenant = e->tenant };

    op.in.run.id = e->id;
    bool gone    = il_apply(e->w->o.h, &op, 1, NULL) == IL_OK && op.status == IL_NOT_FOUND;
    il_op_release(&op);
    return gone;
}

/* If the start created the run, end it. */
static bool
undo_made(struct work_execution *e, const il_op *op)
{
    if (op->out.n_runs == 0 || strcmp(op->out.runs[0].meta, META_GONE) != 0)
        return false;
    IGNORE(il_run_finish(e->run, IL_RUN_CANCELLED, "cancelled before it was started", NULL));
    il_run_free(e->run);
    e->run = NULL;
    return true;
}

/* Make the slot RUNNING. Any other answer of the store means that it is not ours, or not yet. */
static bool
start(struct work_execution *e, il_op *op, enum work_started *ret, char before[IL_ID_BYTES_MAX + 1])
{
    il_run_opts o     = IL_RUN_OPTS_INIT;
    il_error    error = { .message = "" };

    before[0] = '\0';
    *ret      = WORK_STARTED_OVER;
    if (is_gone(e))
        return false;
    o.id         = e->id;
    o.tenant     = e->tenant;
    o.holder     = e->holder;
    o.policy     = IL_POLICY_REJECT; /* a slot is started without its policy; never wait */
    o.ttl_ms     = e->ttl_ms;
    o.stop_ms    = e->pub.stop_ms;
    o.place      = e->w->node;
    o.meta       = META_GONE; /* if the slot no longer exists; the same for keep_ms */
    o.keep_ms    = 1;
    o.on_cancel  = on_cancel;
    o.on_lost    = on_lost;
    o.on_renewed = on_renewed;
    o.cookie     = e;
    il_status st = il_run_start(e->w->o.h, e->key, &o, &e->run, op, &error);
    switch (st) {
    case IL_OK:
        return !undo_made(e, op);
    case IL_HELD:
        if (op->out.n_runs > 0 && op->out.runs[0].state == IL_RUN_PENDING &&
            op->out.runs[0].holder[0] == '\0') /* a slot, like ours */
            (void)snprintf(before, IL_ID_BYTES_MAX + 1, "%s", op->out.runs[0].id);
        *ret = WORK_STARTED_LATER;
        return false;
    case IL_DUPLICATE: /* another server has it */
    case IL_STATE:     /* cancelled, or executed by another server and finished */
    case IL_MISMATCH:
        return false;
    default:
        work_trouble(e->w, "cannot start a pending run", &error);
        *ret = WORK_STARTED_TROUBLE;
        return false;
    }
}

/* The thread's last act. */
static void
leave(struct work_execution *e)
{
    struct work *w = e->w;

    il__mutex_lock(&w->mutex);
    struct work_execution **p = &w->executions;
    while (*p != e)
        p = &(*p)->next;
    *p       = e->next;
    e->next  = w->ended;
    w->ended = e;
    w->n_executions--;
    CHECK(pthread_cond_signal(&w->wake) == 0);
    CHECK(pthread_cond_broadcast(&w->idle) == 0);
    il__mutex_unlock(&w->mutex);
}

static void *
execution_main(void *arg)
{
    struct work_execution  *e    = arg;
    const struct work_kind *kind = e->w->kind;
    il_op                   op   = { .type = IL_OP_NONE };
    enum work_started       how  = WORK_STARTED_OVER;
    char                    before[IL_ID_BYTES_MAX + 1];

    e->renewed_ns = il__clock_boot_ns();
    if (start(e, &op, &how, before)) {
        begin(e, &op);
        il_op_release(&op);
        bool done = kind->execute(&e->pub);
        work_run_callbacks(&e->pub, NULL, NULL);
        work_conclude(e, done);
        il_run_free(e->run); /* no callback is called after this */
        e->run = NULL;
        work_started(e, WORK_STARTED_OVER, NULL);
        work_call_hook(e);
        if (kind->ended != NULL)
            kind->ended(&e->pub);
    } else {
        il_op_release(&op);
        work_started(e, how, before[0] != '\0' ? before : NULL);
    }
    leave(e);
    return NULL;
}

static void
make_holder(const struct work *w, const char *run_id, char ret[IL_HOLDER_BYTES_MAX + 1])
{
    (void)snprintf(ret, IL_HOLDER_BYTES_MAX + 1, "%s@%s", run_id, w->instance);
}

bool
work_executes(const struct work *w, const il_run_info *run)
{
    char holder[IL_HOLDER_BYTES_MAX + 1];

    make_holder(w, run->id, holder);
    return run->state == IL_RUN_RUNNING && strcmp(run->holder, holder) == 0;
}

int
work_execute(struct work *w, const char *run_id, void *subject)
{
    struct work_execution *e = il__calloc(1, sizeof *e);

    if (e == NULL)
        return ENOMEM;
    e->w   = w;
    e->pub = (struct work_run){
        .work    = w,
        .cookie  = w->o.cookie,
        .subject = w->kind->ref(subject),
        .h       = w->o.h,
        .tenant  = e->tenant,
        .key     = e->key,
        .id      = e->id,
        .holder  = e->holder,
        .live    = &e->live,
    };
    w->kind->plan(w->o.cookie, subject, &e->pub.plan);
    e->ttl_ms      = MAX(w->o.lease_ms, IL_TTL_MS_MIN);
    e->pub.stop_ms = MIN(w->o.grace_ms, e->ttl_ms / 3);
    (void)snprintf(e->tenant, sizeof e->tenant, "%s", e->pub.plan.tenant);
    (void)snprintf(e->key, sizeof e->key, "%s%s", w->prefix, e->pub.plan.name);
    (void)snprintf(e->id, sizeof e->id, "%s", run_id);
    make_holder(w, run_id, e->holder);
    il__mutex_init(&e->mutex, IL__MUTEX_work_run);
    int rc = il__thread_start(&e->thread, execution_main, e);
    if (rc != 0) {
        work_execution_free(e);
        return rc;
    }
    e->next       = w->executions; /* the thread takes w->mutex before it looks itself up there */
    w->executions = e;
    w->n_executions++;
    return 0;
}

void
work_execution_free(struct work_execution *e)
{
    if (e->live_ready)
        work_live_release(&e->live);
    e->w->kind->drop(e->pub.subject);
    json_decref(e->meta);
    free(e->parameters);
    il__mutex_destroy(&e->mutex);
    il__free(e);
}
