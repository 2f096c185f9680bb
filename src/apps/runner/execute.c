/*
 * execute.c: one run, from the start of its slot to its finish, on its own thread; and the watch
 * thread, which checks the deadlines of all runs.
 *
 * One executor per run: il_run_start() with the slot's id makes it RUNNING for one holder. The
 * holder's name contains this process's nonce, so neither another server nor this one after a
 * restart can be mistaken for it. From then on the keeper renews the lease. Everything the run does
 * is stopped before the lease can end: on_lost is called stop_ms before the local deadline (which
 * is before the store's), and the reapers of commands know the deadline themselves, in case this
 * process is stopped or killed.
 *
 * The outcome is decided by whatever came first: a failed step, a cancel, the pipeline's timeout, a
 * shutdown. A lost lease overrides them all, because after that nothing reported about the run
 * counts any more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

#define FINISH_AGAIN_NS (INT64_C(200) * IL__NS_PER_MS) /* between two attempts to finish */
#define HISTORY_PATIENCE_MS 1000           /* wait at most this long for the steps to be recorded */
#define RENEWALS_NS (10 * RUNNER_NS_PER_S) /* history notes renewals at most this often */
/* check the clock at least this often: the machine may have slept */
#define WATCH_NS RUNNER_NS_PER_S

/* ---- requests to stop ------------------------------------------------------------------------ */

static void
stop_locked(struct execution *e, enum runner_stop why, const char *text)
{
    if (e->concluded)
        return; /* the outcome is decided */
    if (e->stop == RUNNER_GO || (why == RUNNER_STOP_LOST && e->stop != RUNNER_STOP_LOST)) {
        e->stop = why;
        (void)snprintf(e->stop_text, sizeof e->stop_text, "%s", text != NULL ? text : "");
    }
    for (struct attempt *a = e->attempts; a != NULL; a = a->next)
        runner_attempt_stop(a);
    CHECK(pthread_cond_broadcast(&e->changed) == 0);
}

void
runner_execution_stop(struct execution *e, enum runner_stop why, const char *text)
{
    runner_lock(&e->mutex);
    stop_locked(e, why, text);
    runner_unlock(&e->mutex);
}

static void
record_detail(struct execution *e)
{
    runner_lock(&e->mutex);
    struct il__data_detail d = {
        .tenant        = e->tenant,
        .run           = e->id,
        .pipeline      = e->pipeline->id,
        .version       = e->pipeline->version,
        .node          = e->r->node,
        .parameters    = e->parameters != NULL ? e->parameters : "{}",
        .renewals      = e->renewals,
        .renewed_at_ms = e->renewed_at_ms,
        .created_at_ms = e->created_at_ms,
    };
    runner_unlock(&e->mutex);
    work_record_detail(&e->r->recorder, &d);
}

/* The three callbacks of il_run. They run on threads of the keeper, which must not be blocked,
 * and may be called before il_run_start() has returned. */
static void
on_cancel(void *cookie, il_run *run UNUSED, const char *reason)
{
    runner_execution_stop(cookie, RUNNER_STOP_CANCEL, reason);
}

static void
on_lost(void *cookie, il_run *run UNUSED, const char *why)
{
    runner_execution_stop(cookie, RUNNER_STOP_LOST, why);
}

static void
on_renewed(void *cookie, il_run *run UNUSED, int64_t deadline_ns)
{
    struct execution *e = cookie;

    runner_lock(&e->mutex);
    e->renewals++;
    e->renewed_at_ms = il__clock_wall_ms();
    e->renewed_ns    = il__clock_boot_ns();
    e->unrenewed     = false;
    e->lease_ns      = deadline_ns;
    for (struct attempt *a = e->attempts; a != NULL; a = a->next) {
        if (a->child != NULL)
            il__proc_extend(a->child, deadline_ns);
    }
    bool tell = e->executing && (e->told_ns == 0 || e->renewed_ns - e->told_ns >= RENEWALS_NS);
    if (tell)
        e->told_ns = e->renewed_ns;
    runner_unlock(&e->mutex);
    if (tell)
        record_detail(e);
}

/* ---- the watch ------------------------------------------------------------------------------- */

/* Has the run held its key for longer than expected? Only warns. */
static int64_t
watch_age(struct execution *e, int64_t now_ns)
{
    int64_t timeout_ms = runner_lock_timeout_ms(e->r, e->pipeline);
    int64_t at_ns      = e->began_ns + timeout_ms * IL__NS_PER_MS / 1000 * e->r->o.alert_permille;

    if (now_ns < at_ns)
        return at_ns;
    if (!e->expiring) {
        char text[120], held[IL__DURATION_TEXT_BYTES], timeout[IL__DURATION_TEXT_BYTES];
        (void)snprintf(text, sizeof text, "lock held for %s; lock_timeout_seconds is %s",
                       il__duration_text((now_ns - e->began_ns) / IL__NS_PER_MS, held),
                       il__duration_text(timeout_ms, timeout));
        e->expiring = true;
        runner_note(e->r, RUNNER_EVENT_expiring, e, NULL, text);
    }
    e->r->n_expiring++;
    return INT64_MAX;
}

/* Has the lease gone without renewal for too long? Measured against the time after which it is
 * given up: the TTL less the time needed to stop. */
static int64_t
watch_lease(struct execution *e, int64_t now_ns)
{
    int64_t share_ns = (e->ttl_ms - e->stop_ms) * IL__NS_PER_MS / 1000 * RUNNER_UNRENEWED_PERMILLE;
    int64_t at_ns    = e->renewed_ns + share_ns;

    if (now_ns < at_ns)
        return at_ns;
    if (!e->unrenewed) {
        char text[120];
        (void)snprintf(text, sizeof text, "not renewed for %" PRId64 " ms of %" PRId64,
                       (now_ns - e->renewed_ns) / IL__NS_PER_MS, e->ttl_ms);
        e->unrenewed = true;
        runner_note(e->r, RUNNER_EVENT_unrenewed, e, NULL, text);
    }
    e->r->n_unrenewed++;
    return INT64_MAX;
}

/* Has an active run shown no sign of life for too long? Returns when to check again. */
static int64_t
watch_signs(struct execution *e, int64_t now_ns)
{
    int64_t stall_ms = e->pipeline->stall_timeout_ms;
    char    text[160], duration[IL__DURATION_TEXT_BYTES];

    if (stall_ms == 0 || e->stop != RUNNER_GO)
        return INT64_MAX;
    int64_t at_ns = MAX(e->began_ns, atomic_load(&e->sign_ns)) + stall_ms * IL__NS_PER_MS;
    if (now_ns < at_ns)
        return at_ns;
    (void)snprintf(text, sizeof text, "stalled: no step, output or progress for %s",
                   il__duration_text(stall_ms, duration));
    stop_locked(e, RUNNER_STOP_TIMEOUT, text);
    return INT64_MAX;
}

int64_t
runner_execution_watch(struct execution *e, int64_t now_ns)
{
    char    text[160], duration[IL__DURATION_TEXT_BYTES];
    int64_t next_ns = INT64_MAX;

    if (!e->executing)
        return next_ns;
    int64_t lease_ns = watch_lease(e, now_ns), age_ns = watch_age(e, now_ns);
    int64_t signs_ns = watch_signs(e, now_ns);
    next_ns          = MIN(MIN(lease_ns, age_ns), signs_ns);
    if (e->stop == RUNNER_GO && now_ns >= e->deadline_ns) {
        (void)snprintf(text, sizeof text, "timed out after %s",
                       il__duration_text(e->pipeline->timeout_ms, duration));
        stop_locked(e, RUNNER_STOP_TIMEOUT, text);
    }
    if (e->stop == RUNNER_GO && e->r->stopping && now_ns >= e->r->stop_ns)
        stop_locked(e, RUNNER_STOP_SHUTDOWN, "the server was shut down");
    if (e->stop == RUNNER_GO) {
        next_ns = MIN(next_ns, e->deadline_ns);
        if (e->r->stopping)
            next_ns = MIN(next_ns, e->r->stop_ns);
    }
    for (struct attempt *a = e->attempts; a != NULL; a = a->next) {
        if (atomic_load(&a->stopping))
            continue;
        if (now_ns >= a->deadline_ns) {
            a->timed_out = true;
            runner_attempt_stop(a);
        } else {
            next_ns = MIN(next_ns, a->deadline_ns);
        }
    }
    return next_ns;
}

void *
runner_watch_main(void *arg)
{
    struct runner *r = arg;

    runner_lock(&r->mutex);
    while (!r->closing) {
        int64_t now_ns  = il__clock_boot_ns();
        int64_t next_ns = INT64_MAX;
        r->n_expiring = r->n_unrenewed = 0;
        for (struct execution *e = r->executions; e != NULL; e = e->next) {
            runner_lock(&e->mutex);
            int64_t own_ns = runner_execution_watch(e, now_ns); /* counted once */
            runner_unlock(&e->mutex);
            next_ns = MIN(next_ns, own_ns);
        }
        int64_t wait_ns = r->executions != NULL ? WATCH_NS : -1;
        if (next_ns != INT64_MAX)
            wait_ns = MIN(MAX(next_ns - now_ns, 0), WATCH_NS);
        runner_wait(&r->watch, &r->mutex, wait_ns);
    }
    runner_unlock(&r->mutex);
    return NULL;
}

void
runner_watch_poke(struct runner *r)
{
    runner_lock(&r->mutex);
    CHECK(pthread_cond_signal(&r->watch) == 0);
    runner_unlock(&r->mutex);
}

/* ---- the current stage ----------------------------------------------------------------------- */

void
runner_execution_stage(struct execution *e)
{
    const struct pipeline  *p    = e->pipeline;
    AUTO_BUF struct il__buf text = { 0 };

    CHECK(p->n_steps > 0); /* a file without steps is refused */
    il__buf_init(&text, WORK_STAGE_BYTES_MAX);
    for (size_t i = 0; i < p->n_steps; i++) {
        if (e->steps[i].running)
            il__buf_addf(&text, "%s%s", text.n_bytes > 0 ? ", " : "", p->steps[i].id);
    }
    work_live_stage(&e->live, il__buf_str(&text), (int32_t)(e->n_done * 100 / p->n_steps));
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The next step of the level that has not been started, or SIZE_MAX; none once the run is to
 * stop. */
static size_t
next_step(struct execution *e)
{
    const struct pipeline *p     = e->pipeline;
    size_t                 found = SIZE_MAX;

    runner_lock(&e->mutex);
    while (e->stop == RUNNER_GO && found == SIZE_MAX && e->n_begun < p->n_steps) {
        if (p->steps[e->n_begun].level == e->level) {
            found                   = e->n_begun;
            e->steps[found].running = true;
            runner_execution_stage(e);
        }
        e->n_begun++;
    }
    runner_unlock(&e->mutex);
    return found;
}

static void *
level_main(void *arg)
{
    struct execution *e = arg;

    for (size_t i = next_step(e); i != SIZE_MAX; i = next_step(e))
        runner_step(e, i);
    return NULL;
}

/* Run all steps of a level, at most ten at once; this thread is one of the workers. If no others
 * can be started (no memory), it takes longer. */
static void
run_level(struct execution *e, uint32_t level)
{
    pthread_t threads[PIPELINE_LEVEL_STEPS_MAX - 1];
    size_t    n_threads = 0, n_steps = 0;

    for (size_t i = 0; i < e->pipeline->n_steps; i++)
        n_steps += e->pipeline->steps[i].level == level;
    runner_lock(&e->mutex);
    e->level   = level;
    e->n_begun = 0;
    runner_unlock(&e->mutex);
    while (n_threads < ARRAY_LEN(threads) && n_threads + 1 < n_steps &&
           runner_thread(&threads[n_threads], level_main, e) == 0)
        n_threads++;
    (void)level_main(e);
    for (size_t i = 0; i < n_threads; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static bool
should_go_on(struct execution *e)
{
    runner_lock(&e->mutex);
    bool go_on = e->stop == RUNNER_GO;
    runner_unlock(&e->mutex);
    return go_on;
}

/* Something other than a step failed. */
static void
fail(struct execution *e, const char *text)
{
    runner_lock(&e->mutex);
    if (!e->failed)
        (void)snprintf(e->error, sizeof e->error, "%s", text);
    e->failed = true;
    stop_locked(e, RUNNER_STOP_FAILED, text);
    runner_unlock(&e->mutex);
    work_live_line(&e->live, NULL, 0, text, strlen(text));
}

static void
run_steps(struct execution *e)
{
    il_error error = { .message = "" };

    if (runner_folder_make(e, &error) != IL_OK)
        fail(e, error.message);
    for (uint32_t level = 1; level <= e->pipeline->n_levels && should_go_on(e); level++)
        run_level(e, level);
    for (size_t i = 0; i < e->pipeline->n_steps; i++) {
        if (!e->steps[i].ended) /* no other thread uses it any more */
            runner_step_skip(e, i);
    }
}

/* ---- how it ended ---------------------------------------------------------------------------- */

static il_run_state
outcome(struct execution *e, char *error, size_t n_error)
{
    il_run_state state = IL_RUN_COMPLETED;

    runner_lock(&e->mutex);
    e->executing = false;
    e->concluded = true; /* callbacks from now on come too late */
    bool done    = e->n_done == e->pipeline->n_steps && !e->failed;
    error[0]     = '\0';
    switch (done ? RUNNER_GO : e->stop) {
    case RUNNER_GO: /* done before it could be stopped */
        break;
    case RUNNER_STOP_FAILED:
        state = e->failed_by_timeout ? IL_RUN_TIMEOUT : IL_RUN_FAILED;
        (void)snprintf(error, n_error, "%s", e->error);
        break;
    case RUNNER_STOP_CANCEL:
        state = IL_RUN_CANCELLED;
        (void)snprintf(error, n_error, "%s", e->stop_text);
        break;
    case RUNNER_STOP_TIMEOUT:
        state = IL_RUN_TIMEOUT;
        (void)snprintf(error, n_error, "%s", e->stop_text);
        break;
    case RUNNER_STOP_SHUTDOWN:
        state = IL_RUN_INTERRUPTED;
        (void)snprintf(error, n_error, "%s", e->stop_text);
        break;
    case RUNNER_STOP_LOST:
        state = IL_RUN_FAILED;
        (void)snprintf(error, n_error, "%s", e->stop_text);
        break;
    }
    runner_unlock(&e->mutex);
    return state;
}

/*
 * Write the rest of the log and finish the run in one commit. While the store is unreachable, retry
 * until the lease has expired. Repeating is safe: the log says where it begins, and the fence who
 * writes. The keeper does not know of it: a later renewal is refused, which no longer matters
 * (concluded), and il_run_free() ends the renewals.
 */
static il_status
finish_with_log(struct execution *e, const struct work_live_rest *rest, il_run_state state,
                const char *text, il_error *reterr)
{
    il_op ops[2] = { { .type = IL_OP_RUN_STAGE, .flags = IL_LOG_AT },
                     { .type = IL_OP_RUN_FINISH } };

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        ops[i].tenant    = e->tenant;
        ops[i].holder    = e->holder;
        ops[i].fence     = e->fence;
        ops[i].in.run.id = e->id;
    }
    ops[0].in.run.stage     = rest->stage;
    ops[0].in.run.progress  = rest->progress;
    ops[0].in.run.log       = rest->log;
    ops[0].in.run.log_bytes = rest->log_bytes;
    ops[0].in.run.offset    = rest->offset;
    ops[1].in.run.state     = state;
    ops[1].in.run.error     = text;
    for (;;) {
        il_status st = il_apply(e->r->o.h, ops, ARRAY_LEN(ops), reterr);
        if (st == IL_OK && ops[1].status != IL_OK)
            st = il__error_set(reterr, ops[1].status, "%s",
                               ops[1].out.detail != NULL ? ops[1].out.detail
                                                         : il_status_text(ops[1].status));
        bool unanswered = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
        il_op_release(&ops[0]);
        il_op_release(&ops[1]);
        if (!unanswered || il__clock_boot_ns() >= il_lease_deadline_ns(il_run_lease(e->run)))
            return st;
        runner_lock(&e->mutex);
        runner_wait(&e->changed, &e->mutex, FINISH_AGAIN_NS);
        runner_unlock(&e->mutex);
    }
}

/*
 * Did the lease expire, or was it taken away? The run's row says so, or else what the callbacks
 * reported. A run that was broken may have been cancelled before, by a forced release: then its row
 * has that reason.
 */
static bool
ran_out(const char *error)
{
    return strstr(error, RUNNER_CRASHED) != NULL || strstr(error, LEASE_OVER) != NULL ||
           strstr(error, "(expired)") != NULL;
}

/* The lease was lost. */
static il_run_state
note_loss(struct execution *e, struct runner_note note)
{
    il_op        op    = { .type = IL_OP_RUN_GET, .tenant = e->tenant };
    const char  *error = e->stop_text;
    il_run_state state = IL_RUN_FAILED;

    op.in.run.id = e->id;
    if (il_apply(e->r->o.h, &op, 1, NULL) == IL_OK && op.status == IL_OK && op.out.n_runs > 0) {
        error = op.out.runs[0].error;
        state = op.out.runs[0].state;
    }
    note.event = ran_out(error) ? RUNNER_EVENT_expired : RUNNER_EVENT_broken;
    note.text  = error;
    if (note.event == RUNNER_EVENT_broken || runner_tells_expiry(e->r, e->tenant, e->id))
        runner_note_full(e->r, note);
    il_op_release(&op);
    /* still RUNNING: it will be FAILED in a moment */
    return state > IL_RUN_RUNNING ? state : IL_RUN_FAILED;
}

static void
count_end(struct runner *r, il_run_state state)
{
    atomic_fetch_add(state == IL_RUN_COMPLETED     ? &r->n_completed
                     : state == IL_RUN_CANCELLED   ? &r->n_cancelled
                     : state == IL_RUN_TIMEOUT     ? &r->n_timeout
                     : state == IL_RUN_INTERRUPTED ? &r->n_interrupted
                                                   : &r->n_failed,
                     1);
}

static void
note_end(struct execution *e, il_run_state state, const char *text, il_status st,
         const il_error *error)
{
    struct runner_note note = { .tenant   = e->tenant,
                                .pipeline = e->pipeline->id,
                                .run      = e->id,
                                .fence    = e->fence,
                                .wait_ms  = -1 };
    char               said[1400];

    note.hold_ms = (il__clock_boot_ns() - e->began_ns) / IL__NS_PER_MS;
    if (st == IL_OK) {
        note.event = RUNNER_EVENT_released;
        /* broken but released before it ended; or renewed too late */
        if (e->stop == RUNNER_STOP_LOST)
            state = note_loss(e, note);
        else
            runner_note_full(e->r, note);
    } else if (st == IL_STALE || st == IL_NOT_FOUND || st == IL_MISMATCH) {
        state = note_loss(e, note);
    } else {
        note.event = RUNNER_EVENT_release_failed;
        note.text  = error->message;
        runner_note_full(e->r, note);
    }
    (void)snprintf(said, sizeof said, "%s%s%s", il_run_state_name(state),
                   text[0] != '\0' ? ": " : "", text);
    note.event = RUNNER_EVENT_run_ended;
    note.text  = said;
    count_end(e->r, state);
    runner_note_full(e->r, note);
}

static void
conclude(struct execution *e)
{
    char                  text[1200];
    il_error              error = { .message = "" };
    il_run_state          state = outcome(e, text, sizeof text);
    bool                  lost  = e->stop == RUNNER_STOP_LOST; /* it does not change any more */
    struct work_live_rest rest;

    if (!lost) {
        char line[1300];
        (void)snprintf(line, sizeof line, "%s%s%s", il_run_state_name(state),
                       text[0] != '\0' ? ": " : "", text);
        work_live_line(&e->live, NULL, 0, line, strlen(line));
        work_live_stage(&e->live, "", (int32_t)(e->n_done * 100 / e->pipeline->n_steps));
    }
    work_live_close(&e->live, &rest);
    record_detail(e);
    if (!lost) /* whoever sees that the run has ended must see its steps as well */
        work_record_wait(&e->r->recorder, HISTORY_PATIENCE_MS);
    il__utf8_clean(text, strlen(text));
    /* The store may still hold a lost lease; releasing it frees the key at once. One attempt is
     * enough. */
    il_status st = lost ? il_run_finish(e->run, state, text, &error)
                        : finish_with_log(e, &rest, state, text, &error);
    note_end(e, state, text, st, &error);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Read what the trigger noted, from the run's own row. */
static il_status
read_meta(struct execution *e, const char *meta, il_error *reterr)
{
    json_t   *root       = json_loads(meta, 0, NULL);
    json_t   *parameters = json_object_get(root, "parameters");
    il_status st         = IL_OK;

    if (!json_is_object(parameters))
        st = il__error_set(reterr, IL_INVAL,
                           "the run has no parameters: it was not started by a trigger");
    if (st == IL_OK)
        st = runner_values(e->pipeline, parameters, &e->mem, &e->values, reterr);
    if (st == IL_OK)
        e->parameters = json_dumps(parameters, JSON_COMPACT);
    json_decref(root);
    return st;
}

static void
begin(struct execution *e, const il_op *op)
{
    struct runner_note note  = { .event    = RUNNER_EVENT_acquired,
                                 .tenant   = e->tenant,
                                 .run      = e->id,
                                 .pipeline = e->pipeline->id,
                                 .hold_ms  = -1 };
    const il_run_info *info  = op->out.n_runs > 0 ? &op->out.runs[0] : NULL;
    il_error           error = { .message = "" };

    runner_lock(&e->mutex);
    e->fence         = op->out.fence;
    e->began_ns      = il__clock_boot_ns();
    e->deadline_ns   = e->began_ns + e->pipeline->timeout_ms * IL__NS_PER_MS;
    e->created_at_ms = info != NULL ? info->created_at_ms : il__clock_wall_ms();
    e->lease_ns      = MAX(e->lease_ns, il_lease_deadline_ns(il_run_lease(e->run)));
    e->executing     = true;
    runner_unlock(&e->mutex);
    runner_watch_poke(e->r);
    runner_running(e);
    atomic_fetch_add(&e->r->n_started, 1);
    note.fence   = e->fence;
    note.wait_ms = MAX(il__clock_wall_ms() - e->created_at_ms, 0);
    runner_note_full(e->r, note);
    runner_note(e->r, RUNNER_EVENT_run_started, e, NULL, e->pipeline->version);
    work_live_init(&e->live, &e->r->writers, e->run, info != NULL ? info->log_bytes : 0,
                   &e->sign_ns);
    e->live_ready = true;
    if (read_meta(e, info != NULL ? info->meta : "", &error) != IL_OK)
        fail(e, error.message);
    record_detail(e);
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
is_gone(const struct execution *e)
{
    il_op op = { .type = IL_OP_RUN_GET, .tenant = e->tenant };

    op.in.run.id = e->id;
    bool gone    = il_apply(e->r->o.h, &op, 1, NULL) == IL_OK && op.status == IL_NOT_FOUND;
    il_op_release(&op);
    return gone;
}

/* If the start created the run, end it. */
static bool
undo_made(struct execution *e, const il_op *op)
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
start(struct execution *e, il_op *op, enum runner_started *ret, char before[IL_ID_BYTES_MAX + 1])
{
    il_run_opts o     = IL_RUN_OPTS_INIT;
    il_error    error = { .message = "" };

    before[0] = '\0';
    *ret      = RUNNER_STARTED_OVER;
    if (is_gone(e))
        return false;
    o.id         = e->id;
    o.tenant     = e->tenant;
    o.holder     = e->holder;
    o.policy     = IL_POLICY_REJECT; /* a slot is started without its policy; never wait */
    o.ttl_ms     = e->ttl_ms;
    o.stop_ms    = e->stop_ms;
    o.place      = e->r->node;
    o.meta       = META_GONE; /* if the slot no longer exists; the same for keep_ms */
    o.keep_ms    = 1;
    o.on_cancel  = on_cancel;
    o.on_lost    = on_lost;
    o.on_renewed = on_renewed;
    o.cookie     = e;
    il_status st = il_run_start(e->r->o.h, e->pipeline->key, &o, &e->run, op, &error);
    switch (st) {
    case IL_OK:
        return !undo_made(e, op);
    case IL_HELD:
        if (op->out.n_runs > 0 && op->out.runs[0].state == IL_RUN_PENDING &&
            op->out.runs[0].holder[0] == '\0') /* a slot, like ours */
            (void)snprintf(before, IL_ID_BYTES_MAX + 1, "%s", op->out.runs[0].id);
        *ret = RUNNER_STARTED_LATER;
        return false;
    case IL_DUPLICATE: /* another server has it */
    case IL_STATE:     /* cancelled, or executed by another server and finished */
    case IL_MISMATCH:
        return false;
    default:
        runner_trouble(e->r, "cannot start a pending run", &error);
        *ret = RUNNER_STARTED_TROUBLE;
        return false;
    }
}

/* The thread's last act. */
static void
leave(struct execution *e)
{
    struct runner *r = e->r;

    runner_lock(&r->mutex);
    struct execution **p = &r->executions;
    while (*p != e)
        p = &(*p)->next;
    *p       = e->next;
    e->next  = r->ended;
    r->ended = e;
    r->n_executions--;
    CHECK(pthread_cond_signal(&r->wake) == 0);
    CHECK(pthread_cond_broadcast(&r->idle) == 0);
    runner_unlock(&r->mutex);
}

static void *
execution_main(void *arg)
{
    struct execution   *e   = arg;
    il_op               op  = { .type = IL_OP_NONE };
    enum runner_started how = RUNNER_STARTED_OVER;
    char                before[IL_ID_BYTES_MAX + 1];

    e->renewed_ns = il__clock_boot_ns();
    if (start(e, &op, &how, before)) {
        begin(e, &op);
        il_op_release(&op);
        run_steps(e);
        conclude(e);
        il_run_free(e->run); /* no callback is called after this */
        e->run = NULL;
        runner_started(e, RUNNER_STARTED_OVER, NULL);
        runner_folder_remove(e);
    } else {
        il_op_release(&op);
        runner_started(e, how, before[0] != '\0' ? before : NULL);
    }
    leave(e);
    return NULL;
}

int
runner_execute(struct runner *r, const char *tenant, const char *run_id, struct pipeline *p)
{
    struct execution *e = il__calloc(1, sizeof *e);

    if (e == NULL)
        return ENOMEM;
    e->r        = r;
    e->cwd_lock = -1;
    e->ttl_ms   = MAX(r->o.lease_ms, IL_TTL_MS_MIN);
    e->stop_ms  = MIN(r->o.grace_ms, e->ttl_ms / 3);
    (void)snprintf(e->tenant, sizeof e->tenant, "%s", tenant);
    (void)snprintf(e->id, sizeof e->id, "%s", run_id);
    (void)snprintf(e->holder, sizeof e->holder, "%s@%s", run_id, r->instance);
    il__mutex_init(&e->mutex, IL__MUTEX_execution);
    il__cond_init(&e->changed);
    e->pipeline    = il__pipeline_ref(p);
    e->connections = runner_connections_ref(r);
    int rc         = runner_thread(&e->thread, execution_main, e);
    if (rc != 0) {
        e->connections->n_refs--; /* the runner holds another reference */
        e->connections = NULL;
        runner_execution_free(e);
        return rc;
    }
    e->next       = r->executions; /* the thread takes r->mutex before it looks itself up there */
    r->executions = e;
    r->n_executions++;
    return 0;
}

void
runner_execution_free(struct execution *e)
{
    if (e->live_ready)
        work_live_release(&e->live);
    runner_connections_unref(e->r, e->connections);
    il__pipeline_unref(e->pipeline);
    il__arena_free(&e->mem);
    free(e->parameters);
    CHECK(pthread_cond_destroy(&e->changed) == 0);
    il__mutex_destroy(&e->mutex);
    il__free(e);
}
