/*
 * step.c: one step of a run: its attempts, what stops them, and the effect of a failure on the run.
 *
 * While in progress, an attempt is in the list of its execution, so that whatever stops the run (a
 * cancel, a lost lease, the clock, a failed parallel step) reaches it. Commands are stopped
 * directly: il__proc_stop() never blocks. The stop functions of other kinds may block (a database
 * is cancelled through a separate connection), so they run on a separate thread.
 */
#include "apps/runner/step.h"

#include <inttypes.h>
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/thread.h"

#define RETRY_DELAY_MS_MAX INT64_C(300000)
#define LATE_MS 1000

/* ---- an attempt, for its kind ---------------------------------------------------------------- */

static struct attempt *
attempt_of(const struct runner_attempt *a)
{
    return a->own;
}

void
runner_attempt_output(struct runner_attempt *pub, int stream, const void *data, size_t n_bytes)
{
    struct attempt *a   = attempt_of(pub);
    bool            out = stream == 1;

    il__mutex_lock(&a->output_mutex);
    runner_tail_add(out ? &a->out : &a->err, data, n_bytes);
    work_lines_add(out ? &a->out_lines : &a->err_lines, a->e->run->live, pub->step->id,
                   out ? '|' : '!', data, n_bytes);
    il__mutex_unlock(&a->output_mutex);
}

bool
runner_attempt_should_stop(const struct runner_attempt *pub)
{
    return atomic_load(&attempt_of(pub)->stopping);
}

static void *
stop_main(void *arg)
{
    struct attempt *a = arg;

    a->call_fn(a->call_cookie); /* neither changes before this thread is joined */
    return NULL;
}

/* Start a thread that calls stop_fn. execution.mutex is held. */
static void
call_stop(struct attempt *a)
{
    if (a->stop_fn == NULL || a->stop_started)
        return;
    a->call_fn     = a->stop_fn;
    a->call_cookie = a->stop_cookie;
    /* Cannot start a thread: the kind still checks runner_attempt_should_stop(). */
    a->stop_started = il__thread_start(&a->stop_thread, stop_main, a) == 0;
}

void
runner_attempt_stop(struct attempt *a)
{
    atomic_store(&a->stopping, true);
    if (a->child != NULL)
        il__proc_stop(a->child);
    call_stop(a);
}

void
runner_attempt_on_stop(struct runner_attempt *pub, void (*fn)(void *cookie), void *cookie)
{
    struct attempt   *a = attempt_of(pub);
    struct execution *e = a->e;

    il__mutex_lock(&e->mutex);
    a->stop_fn = NULL; /* no call starts from now on */
    bool join  = a->stop_started;
    il__mutex_unlock(&e->mutex);
    if (join) /* in progress or done; only this thread, the attempt's, joins it */
        CHECK(pthread_join(a->stop_thread, NULL) == 0);
    il__mutex_lock(&e->mutex);
    a->stop_started = false;
    a->stop_fn      = fn;
    a->stop_cookie  = cookie;
    if (atomic_load(&a->stopping))
        call_stop(a);
    il__mutex_unlock(&e->mutex);
}

void
runner_attempt_child(struct attempt *a, struct proc_child *child)
{
    struct execution *e = a->e;

    il__mutex_lock(&e->mutex);
    a->child = child;
    if (child != NULL) {
        il__proc_extend(child, e->lease_ns); /* it may have been renewed meanwhile */
        if (atomic_load(&a->stopping))
            il__proc_stop(child);
    }
    il__mutex_unlock(&e->mutex);
}

/* ---- start and end of an attempt ------------------------------------------------------------- */

static void
add_value(struct pipeline_values *v, const char *name, const char *value)
{
    CHECK(v->n < ARRAY_LEN(v->items));
    v->items[v->n].name    = name;
    v->items[v->n++].value = value;
}

static void
attempt_init(struct attempt *a, struct execution *e, const struct pipeline_step *step,
             uint32_t number)
{
    memset(a, 0, sizeof *a);
    a->e      = e;
    a->values = e->values;
    (void)snprintf(a->number, sizeof a->number, "%u", number);
    (void)snprintf(a->fence, sizeof a->fence, "%" PRIu64, e->run->fence);
    add_value(&a->values, "run_id", e->run->id);
    add_value(&a->values, "tenant", e->run->tenant);
    add_value(&a->values, "pipeline_id", e->pipeline->id);
    add_value(&a->values, "fence", a->fence);
    add_value(&a->values, "step_id", step->id);
    add_value(&a->values, "attempt", a->number);
    a->pub = (struct runner_attempt){
        .step          = step,
        .values        = &a->values,
        .h             = e->r->o.h,
        .tenant        = e->run->tenant,
        .key           = e->pipeline->key,
        .run_id        = e->run->id,
        .fence         = e->run->fence,
        .connections   = e->connections->items,
        .n_connections = e->connections->n,
        .own           = a,
    };
    il__mutex_init(&a->output_mutex, IL__MUTEX_attempt_out);
    runner_tail_init(&a->out);
    runner_tail_init(&a->err);
}

static void
attempt_release(struct attempt *a)
{
    runner_tail_release(&a->out);
    runner_tail_release(&a->err);
    il__mutex_destroy(&a->output_mutex);
}

/*
 * From now on it can be stopped; false: it should not even start. should_stop is set before
 * on_stop() takes the mutex: either it is seen here, or on_stop() finds the attempt in the list.
 */
static bool
attempt_enter(struct attempt *a)
{
    struct execution *e      = a->e;
    int64_t           now_ns = il__clock_boot_ns();
    bool              go     = work_run_may_begin(e->run);

    il__mutex_lock(&e->mutex);
    go = go && !work_run_should_stop(e->run);
    /* Slightly more than the pipeline has left: the watch ends the pipeline, and knows that it
     * was not the step's timeout. */
    int64_t left_ms   = MAX((e->run->deadline_ns - now_ns) / IL__NS_PER_MS, 0) + LATE_MS;
    a->pub.timeout_ms = MIN(a->pub.step->timeout_ms, left_ms);
    a->deadline_ns    = now_ns + a->pub.step->timeout_ms * IL__NS_PER_MS;
    if (go) {
        a->next     = e->attempts;
        e->attempts = a;
    }
    il__mutex_unlock(&e->mutex);
    if (go)
        work_run_poke(e->run);
    return go;
}

static void
attempt_leave(struct attempt *a)
{
    struct execution *e = a->e;

    runner_attempt_on_stop(&a->pub, NULL, NULL);
    il__mutex_lock(&e->mutex);
    CHECK(a->child == NULL);
    struct attempt **p = &e->attempts;
    while (*p != a)
        p = &(*p)->next;
    *p = a->next;
    il__mutex_unlock(&e->mutex);
}

/* ---- history --------------------------------------------------------------------------------- */

static struct il__data_step
record_of(const struct execution *e, size_t i, uint32_t attempt, const char *state)
{
    const struct pipeline_step *step = &e->pipeline->steps[i];

    return (struct il__data_step){
        .tenant    = e->run->tenant,
        .run       = e->run->id,
        .n         = (uint32_t)i,
        .attempt   = attempt,
        .step      = step->id,
        .type      = il__pipeline_step_types[step->type],
        .state     = state,
        .level     = step->level,
        .exit_code = -1,
    };
}

void
runner_step_skip(struct execution *e, size_t i)
{
    struct il__data_step rec = record_of(e, i, 0, "SKIPPED");

    work_record_step(work_recorder(e->r->work), &rec);
}

/* ---- how an attempt ended -------------------------------------------------------------------- */

/* How the attempt is recorded, and what it means for the step. */
struct verdict {
    const char *state;
    bool        good;    /* completed, or a check with a warning */
    bool        stopped; /* stopped because the run is to stop */
    bool        timed_out;
    bool        again; /* a retry may help */
};

static struct verdict
judge_stopped(enum work_reason why, const char *text, struct runner_result *res)
{
    struct verdict v = { .state = "CANCELLED", .stopped = true };

    switch (why) {
    case WORK_TIMEOUT:
        v.state = "TIMEOUT";
        break;
    case WORK_SHUTDOWN:
    case WORK_LOST:
        v.state = "INTERRUPTED";
        break;
    case WORK_FAILED:
    case WORK_CANCELLED:
    case WORK_GO:
        break;
    }
    (void)snprintf(res->error, sizeof res->error, "stopped: %.900s", text);
    return v;
}

/* A success stays a success, whatever was requested meanwhile. The attempt has left the list, so
 * that nothing changes it any more. */
static struct verdict
judge(const struct attempt *a, struct runner_result *res)
{
    char             text[IL__DURATION_TEXT_BYTES], said[WORK_TEXT_BYTES];
    enum work_reason why = work_run_reason(a->e->run, said);

    if (res->outcome == RUNNER_STEP_COMPLETED)
        return (struct verdict){ .state = "COMPLETED", .good = true };
    if (res->outcome == RUNNER_STEP_WARNING)
        return (struct verdict){ .state = "WARNING", .good = true };
    bool timed_out = a->timed_out || res->timed_out;
    /* Stopped because of the run, unless its own time was up before. */
    if (why != WORK_GO && !a->timed_out &&
        (res->outcome == RUNNER_STEP_STOPPED || atomic_load(&a->stopping)))
        return judge_stopped(why, said, res);
    if (timed_out) {
        (void)snprintf(res->error, sizeof res->error, "timed out after %s",
                       il__duration_text(a->pub.step->timeout_ms, text));
        return (struct verdict){ .state = "TIMEOUT", .timed_out = true, .again = true };
    }
    if (res->error[0] == '\0')
        (void)snprintf(res->error, sizeof res->error, "failed without an error message");
    return (struct verdict){ .state = "FAILED", .again = !res->final };
}

static void
run_kind(struct attempt *a, struct runner_result *res)
{
    switch (a->pub.step->type) {
    case PIPELINE_COMMAND:
        runner_step_command(&a->pub, res);
        break;
    case PIPELINE_SQL:
        runner_step_sql(&a->pub, res);
        break;
    case PIPELINE_HTTP:
        runner_step_http(&a->pub, res);
        break;
    case PIPELINE_CHECK:
        runner_step_check(&a->pub, res);
        break;
    case PIPELINE_STEP_TYPE_COUNT:
    default:
        (void)snprintf(res->error, sizeof res->error,
                       "this server does not support this type of step");
        res->final = true;
    }
}

/* One attempt from start to record. `last`: if it fails, the step has failed. error: of the
 * attempt. */
static struct verdict
run_attempt(struct execution *e, size_t i, uint32_t number, char error[1024])
{
    const struct pipeline_step *step = &e->pipeline->steps[i];
    struct runner_result        res  = { .outcome = RUNNER_STEP_FAILED, .exit_code = -1 };
    struct il__data_step        rec  = record_of(e, i, number, "RUNNING");
    struct attempt              a;

    attempt_init(&a, e, step, number);
    rec.started_at_ms = il__clock_wall_ms();
    if (!attempt_enter(&a)) {
        char             said[WORK_TEXT_BYTES];
        enum work_reason why = work_run_reason(e->run, said);
        struct verdict   v   = judge_stopped(why, said, &res);
        attempt_release(&a);
        v.state = NULL; /* it was never started */
        return v;
    }
    work_record_step(work_recorder(e->r->work), &rec);
    run_kind(&a, &res);
    attempt_leave(&a);
    runner_note(e->r, RUNNER_EVENT_step_ended, e, step->id, NULL);
    work_lines_end(&a.out_lines, e->run->live, step->id, '|');
    work_lines_end(&a.err_lines, e->run->live, step->id, '!');
    struct verdict v = judge(&a, &res);
    il__utf8_clean(res.error, strlen(res.error));
    bool warned = !v.good && !v.stopped && step->on_failure != PIPELINE_STOP &&
                  (!v.again || number > step->retries);
    rec.state       = warned ? "WARNING" : v.state;
    rec.ended_at_ms = il__clock_wall_ms();
    rec.exit_code   = res.exit_code;
    rec.error       = res.error;
    rec.out         = runner_tail_text(&a.out);
    rec.err         = runner_tail_text(&a.err);
    rec.out_bytes   = a.out.n_bytes;
    rec.err_bytes   = a.err.n_bytes;
    rec.details     = res.details;
    work_record_step(work_recorder(e->r->work), &rec);
    (void)snprintf(error, 1024, "%s", res.error);
    il__free(res.details);
    attempt_release(&a);
    return v;
}

/* ---- the step -------------------------------------------------------------------------------- */

/* Wait before attempt `number`; false: the run is to stop. */
static bool
wait_before(struct execution *e, const struct pipeline_step *step, uint32_t number)
{
    int64_t delay_ms = step->retry_delay_ms;

    for (uint32_t i = 2; i < number && delay_ms < RETRY_DELAY_MS_MAX; i++)
        delay_ms *= 2;
    int64_t until_ns = il__clock_boot_ns() + MIN(delay_ms, RETRY_DELAY_MS_MAX) * IL__NS_PER_MS;
    il__mutex_lock(&e->mutex);
    for (;;) {
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (work_run_should_stop(e->run) || left_ns <= 0)
            break;
        (void)il__cond_wait(&e->changed, &e->mutex, left_ns);
    }
    bool go = !work_run_should_stop(e->run);
    il__mutex_unlock(&e->mutex);
    return go;
}

/* The step has finally failed: apply its on_failure. */
static void
failed(struct execution *e, const struct pipeline_step *step, const struct verdict *v,
       const char *error)
{
    char text[1200];

    atomic_fetch_add(&e->r->n_steps_failed, 1);
    (void)snprintf(text, sizeof text, "step '%s': %s", step->id, error);
    if (step->on_failure == PIPELINE_STOP) {
        il__mutex_lock(&e->mutex);
        e->failed = true;
        il__mutex_unlock(&e->mutex);
        work_run_fail(e->run, v->timed_out, text);
        return;
    }
    work_run_say(e->run, "%s; the run continues", text);
}

static void
alert(struct execution *e, const struct pipeline_step *step, const char *error)
{
    if (step->on_failure != PIPELINE_ALERT)
        return;
    atomic_fetch_add(&e->r->n_alerts, 1);
    runner_note(e->r, RUNNER_EVENT_step_alert, e, step->id, error);
}

static void
ended(struct execution *e, size_t i, bool done)
{
    il__mutex_lock(&e->mutex);
    e->steps[i].running = false;
    e->steps[i].ended   = true;
    e->n_done += done;
    runner_execution_stage(e);
    il__mutex_unlock(&e->mutex);
}

void
runner_step(struct execution *e, size_t i)
{
    const struct pipeline_step *step        = &e->pipeline->steps[i];
    char                        error[1024] = "";
    struct verdict              v           = { .state = NULL };

    atomic_fetch_add(&e->r->n_steps, 1);
    for (uint32_t number = 1;; number++) {
        v = run_attempt(e, i, number, error);
        if (v.good || v.stopped)
            break;
        runner_note(e->r, RUNNER_EVENT_step_failed, e, step->id, error);
        if (!v.again || number > step->retries)
            break;
        atomic_fetch_add(&e->r->n_retries, 1);
        work_run_say(e->run, "step '%s': attempt %u: %s; retrying", step->id, number, error);
        if (!wait_before(e, step, number + 1)) {
            v.stopped = true;
            break;
        }
    }
    if (v.stopped) {
        if (v.state == NULL && error[0] == '\0')
            runner_step_skip(e, i); /* not even its first attempt was started */
        ended(e, i, false);
        return;
    }
    if (!v.good)
        failed(e, step, &v, error);
    if (!v.good || strcmp(v.state, "WARNING") == 0)
        alert(e, step, error);
    ended(e, i, v.good || step->on_failure != PIPELINE_STOP);
}
