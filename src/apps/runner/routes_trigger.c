/*
 * routes_trigger.c: POST /pipelines/run/{pipeline}.
 *
 * trigger_plan.c decides what to do; this file does it without blocking and answers. Usually that
 * is one op, which goes to the store together with those of other requests; the runner executes the
 * run. A thread of the pool runs the probe; triggers of the same pipeline that arrive meanwhile
 * wait for its result. A retry delays the request.
 */
#include <stdio.h>

#include "apps/runner/serve.h"
#include "apps/runner/trigger_plan.h"
#include "base/clock.h"
#include "http/limits.h"
#include "http/server.h"

struct trigger_work {
    struct runner_app      *app;
    struct pipeline        *pipeline;   /* ours */
    json_t                 *parameters; /* ours */
    const char             *by, *id;
    struct trigger_plan     plan;
    il_op                   look; /* of TRIGGER_LOOK */
    struct pipeline_values *values;
    struct trigger_probe    probe;    /* in app->probes, or following one of them */
    bool                    followed; /* ... or one of the runner's own threads */
    il_status               probed;   /* result of the probe */
    il_error                error;
    char                   *outside; /* id of the outside job; owned */
    struct http_request    *r;
};

static void
end_work(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    json_decref(w->parameters);
    il__pipeline_unref(w->pipeline);
    il__free(w->outside);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
say(struct http_request *r, const char *id, const char *status, bool is_new)
{
    const struct trigger_work *w = r->ended_cookie;
    char                       message[RUNNER_MESSAGE_BYTES];

    runner_trigger_message(w->pipeline->id, is_new, message);
    http_say(r, 200, &runner_out_triggered,
             &(struct runner_triggered){ .id       = id,
                                         .pipeline = w->pipeline->id,
                                         .tenant   = r->caller->tenant,
                                         .status   = status,
                                         .message  = message });
}

/* on_conflict: reject, and the queueing policies when no run of ours is in the way. */
static void
fail_running(struct http_request *r, const char *run, const char *holder)
{
    const struct trigger_work *w       = r->ended_cookie;
    AUTO_BUF struct il__buf    details = { 0 };
    int64_t                    ms      = MAX(w->pipeline->lock_retry_delay_ms, 1000);
    char                       message[RUNNER_MESSAGE_BYTES];

    runner_refusal_message(RUNNER_REJECTED, w->pipeline->id, 0, 0, message);
    il__buf_init(&details, 4096);
    il__wire_open(&details, NULL);
    il__wire_put_text(&details, "pipeline_logging_id", run);
    il__wire_put_text(&details, "holder", holder);
    il__wire_put_int(&details, "retry_after_ms", ms);
    il__wire_close(&details);
    http_retry_after(r, ms);
    http_fail(r, 409, il_status_name(IL_HELD), runner_http_app.name, il__buf_str(&details), "%s",
              message);
}

static void
fail_limit(struct http_request *r, const char *code, int64_t retry_ms)
{
    const struct trigger_work *w    = r->ended_cookie;
    const il_run_in           *in   = &w->plan.op->in.run;
    const char                *what = "";
    int64_t limit = runner_trigger_limit(w->plan.answer, in->live_max, in->day_max, &what);
    char    message[RUNNER_MESSAGE_BYTES];
    char    details[160];

    runner_refusal_message(w->plan.answer, w->pipeline->id, in->live_max, in->day_max, message);
    http_limits_refused(r);
    (void)snprintf(details, sizeof details,
                   "{\"quota\":\"%s\",\"limit\":%lld,\"retry_after_ms\":%lld}", what,
                   (long long)limit, (long long)retry_ms); /* the buffer fits */
    http_retry_after(r, retry_ms);
    http_fail(r, 429, code, runner_http_app.name, details, "%s", message);
}

static void
joined(struct http_request *r, const char *run)
{
    struct trigger_work *w = r->ended_cookie;

    runner_record_join(w->app->runner, &(struct il__data_join){ .tenant     = r->caller->tenant,
                                                                .run        = run,
                                                                .at_ms      = il__clock_wall_ms(),
                                                                .by         = w->by,
                                                                .trigger    = "api",
                                                                .request_id = r->id });
}

/* The plan has an answer. */
static void
answer(struct http_request *r)
{
    struct trigger_work       *w    = r->ended_cookie;
    const struct trigger_plan *plan = &w->plan;
    const il_op               *op   = plan->op;

    if (plan->outside)
        http_metrics_lock(r->server, HTTP_LOCK_CONFLICT, r->caller->tenant, w->pipeline->key, 0,
                          -1);
    switch (plan->answer) {
    case RUNNER_TRIGGERED:
        if (plan->execute)
            runner_take(w->app->runner, r->caller->tenant, w->id, il__pipeline_ref(w->pipeline));
        say(r, w->id, op->out.n_runs > 0 ? il_run_state_name(op->out.runs[0].state) : "PENDING",
            true);
        return;
    case RUNNER_RUNNING:
        if (plan->run != NULL)
            joined(r, plan->run);
        say(r, plan->id, "RUNNING", false);
        return;
    case RUNNER_SKIPPED:
        say(r, plan->id, "RUNNING", false);
        return;
    case RUNNER_REJECTED:
        fail_running(r, plan->run, plan->holder);
        return;
    case RUNNER_TOO_MANY:
        fail_limit(r, "CONCURRENT_LIMIT_EXCEEDED", 1000);
        return;
    case RUNNER_DAY_OVER:
        fail_limit(r, "QUOTA_EXCEEDED", IL__DAY_MS - il__clock_wall_ms() % IL__DAY_MS);
        return;
    case RUNNER_TOO_OFTEN:
        http_limits_too_often(r, op);
        return;
    case RUNNER_UNPROBED:
        http_retry_after(r, 5000);
        http_fail(r, 503, "PREFLIGHT_FAILED", runner_http_app.name, NULL,
                  "Pipeline %s: preflight cannot determine whether it is running: %s",
                  w->pipeline->id, w->error.message);
        return;
    case RUNNER_QUEUE_FULL:
    case RUNNER_FAILED:
        http_fail_op(r, w->look.status != IL_OK ? &w->look : op, runner_http_app.name);
        return;
    }
}

/* ---- actions of the plan --------------------------------------------------------------------- */

static void act(struct http_request *r, enum trigger_do what);

static void
next(struct http_request *r, struct trigger_event e)
{
    struct trigger_work *w = r->ended_cookie;

    act(r, trigger_next(&w->plan, &e));
}

static void
started(struct http_request *r)
{
    next(r, (struct trigger_event){ .what = TRIGGER_STARTED, .status = IL_OK });
}

static void
start(struct http_request *r)
{
    const struct trigger_work *w = r->ended_cookie;

    r->tries_again = w->plan.n_retries > 0;
    http_do_ops(r, w->plan.op, 1, 0, started);
}

static void
paused(struct http_request *r)
{
    next(r, (struct trigger_event){ .what = TRIGGER_PAUSED, .stopping = r->server->stopping });
}

static void
looked(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;
    struct trigger_event e = { .what   = TRIGGER_LOOKED,
                               .status = w->look.status,
                               .live   = w->look.out.n_runs > 0 };

    if (e.status == IL_OK)
        il_op_release(&w->look);
    next(r, e);
}

static void
look(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    w->look = trigger_look_op(w->pipeline);
    http_do_ops(r, &w->look, 1, 0, looked);
}

/* ---- the probe ------------------------------------------------------------------------------- */

static void
ask_probe(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    w->probed =
        runner_probe(w->app->runner, w->pipeline, w->values, &w->followed, &w->outside, &w->error);
}

static void
followed(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    w->error   = w->probe.error;
    w->outside = w->probe.outside;
    next(r, (struct trigger_event){
                .what = TRIGGER_FOLLOWED, .status = w->probe.status, .outside = w->outside });
}

static void
probe_said(struct http_request *r)
{
    struct trigger_work  *w = r->ended_cookie;
    struct trigger_probe *followers =
        trigger_probe_end(&w->app->probes, &w->probe, w->probed, w->outside, &w->error);

    next(r, (struct trigger_event){ .what    = w->followed ? TRIGGER_FOLLOWED : TRIGGER_PROBED,
                                    .status  = w->probed,
                                    .outside = w->outside });
    while (followers != NULL) {
        struct trigger_work *f = container_of(followers, struct trigger_work, probe);
        followers              = followers->next;
        http_errand_resume(f->r); /* may free it */
    }
}

/*
 * The list is used on the loop only; each entry has an errand in progress, so its request stays
 * alive. When the server gives up on its requests, neither this function nor the list is used any
 * more.
 */
static void
probe(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    if (w->values == NULL)
        w->values = http_alloc(r, sizeof *w->values);
    if (w->values == NULL ||
        runner_values(w->pipeline, w->parameters, &r->mem, w->values, &w->error) != IL_OK) {
        http_fail_nomem(r); /* parameters were checked before */
        return;
    }
    w->probe = (struct trigger_probe){ .pipeline = w->pipeline, .values = w->values };
    if (trigger_probe_begin(&w->app->probes, &w->probe))
        http_errand_slow(r, ask_probe, probe_said);
    else
        http_errand_hold(r, followed);
}

static void
act(struct http_request *r, enum trigger_do what)
{
    struct trigger_work *w = r->ended_cookie;

    switch (what) {
    case TRIGGER_LOOK:
        look(r);
        return;
    case TRIGGER_PROBE:
        probe(r);
        return;
    case TRIGGER_START:
        start(r);
        return;
    case TRIGGER_PAUSE:
        il_op_release(w->plan.op);
        http_delay(r, w->pipeline->lock_retry_delay_ms, paused);
        return;
    case TRIGGER_END:
        answer(r);
        return;
    }
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool
refuse_field(struct http_request *r, const char *name, const char *why)
{
    http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "field '%.80s': %s", name, why);
    return false;
}

/* trigger_by, and all other fields as parameters. */
static bool
take_fields(struct http_request *r, struct trigger_work *w)
{
    const char *name;
    json_t     *value;
    json_t     *by;

    if (r->body != NULL && !json_is_object(r->body)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "expected an object");
        return false;
    }
    json_object_foreach(r->body, name, value)
    {
        if (strcmp(name, "trigger_by") != 0 && !json_is_string(value) && !json_is_number(value) &&
            !json_is_boolean(value))
            return refuse_field(r, name, "expected a string, a number or a boolean");
    }
    by = json_object_get(r->body, "trigger_by");
    if (by != NULL && !json_is_null(by) && !json_is_string(by))
        return refuse_field(r, "trigger_by", "expected a string");
    w->by = by != NULL && json_is_string(by) ? json_string_value(by) : "";
    if (strlen(w->by) > RUNNER_BY_BYTES_MAX)
        return refuse_field(r, "trigger_by", "longer than 256 bytes");
    w->parameters = r->body != NULL ? json_copy(r->body) : json_object();
    if (w->parameters == NULL) {
        http_fail_nomem(r);
        return false;
    }
    (void)json_object_del(w->parameters, "trigger_by"); /* it may be missing */
    return true;
}

static bool
make_op(struct http_request *r, struct trigger_work *w)
{
    struct runner_trigger t = { .tenant     = r->caller->tenant,
                                .pipeline   = w->pipeline,
                                .id         = w->id,
                                .by         = w->by,
                                .type       = "api",
                                .parameters = w->parameters,
                                .keep_ms    = w->app->setup.options.keep_ms };

    http_limits_runs(r, &t.live_max, &t.day_max);
    http_limits_triggers(r, &t.minute_max, &t.hour_max);
    il_status st = runner_trigger_op(&t, &r->mem, &r->op, &w->error);
    if (st == IL_OK)
        return true;
    if (st == IL_LIMIT)
        http_fail(r, 413, "PARAMETERS_TOO_LARGE", runner_http_app.name, NULL, "%s",
                  w->error.message);
    else
        http_fail(r, il_status_http(st), il_status_name(st), "request", NULL, "%s",
                  w->error.message);
    return false;
}

void
runner_http_pipeline_run(struct http_request *r)
{
    struct trigger_work *w = http_calloc(r, sizeof *w);

    if (w == NULL || !http_limits_storage(r))
        return;
    if (r->server->stopping) {
        http_retry_after(r, 1000);
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is shutting down");
        return;
    }
    w->app          = runner_app_of(r);
    w->r            = r;
    r->ended        = end_work;
    r->ended_cookie = w;
    if (!take_fields(r, w) || (w->pipeline = runner_app_pipeline(r, r->args[0])) == NULL ||
        (w->id = http_new_id(r, 0)) == NULL || !make_op(r, w))
        return;
    act(r, trigger_begin(&w->plan, w->pipeline, &r->op));
}
