/*
 * routes_trigger.c: POST /pipelines/run/{pipeline} (R1.11, R1.7, R1.8, R1.17, R1.28).
 *
 * Mostly one op, which goes to the store with those of other requests, then the answer; executing it is the runner's business. With a probe: is there a live run of our own? If
 * not, the probe is asked by a slow thread, then the op. With on_conflict: reject, the request is kept and the op repeated some times.
 */
#include <stdio.h>

#include "apps/runner/routes.h"
#include "base/clock.h"
#include "http/limits.h"
#include "http/server.h"

struct trigger_work {
    struct runner_app      *app;
    struct pipeline        *pipeline;   /* ours */
    json_t                 *parameters; /* ours */
    const char             *by, *id;
    uint32_t                n_retries; /* left */
    il_op                   look;      /* has it a live run? */
    struct pipeline_values *values;
    il_status               preflight;
    il_error                error;
    char                   *outside; /* id of the outside job; ours */
};

static void
end_work(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    json_decref(w->parameters);
    il__pipeline_unref(w->pipeline);
    il__free(w->outside);
}

/* ---- answers ---------------------------------------------------------------------------------------------------------------------- */

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

/* on_conflict: reject, and the policies that queue when what is in the way is no run. */
static void
fail_running(struct http_request *r, const char *run, const char *holder)
{
    const struct trigger_work *w       = r->ended_cookie;
    AUTO_BUF struct il__buf    details = { 0 };
    int64_t                    ms      = MAX(w->pipeline->lock_retry_delay_ms, 1000);

    il__buf_init(&details, 4096);
    il__wire_open(&details, NULL);
    il__wire_put_text(&details, "pipeline_logging_id", run);
    il__wire_put_text(&details, "holder", holder);
    il__wire_put_int(&details, "retry_after_ms", ms);
    il__wire_close(&details);
    http_retry_after(r, ms);
    http_fail(r, 409, il_status_name(IL_HELD), runner_http_app.name, il__buf_str(&details),
              "Pipeline %s is already running", w->pipeline->id);
}

static void
fail_limit(struct http_request *r, const char *code, int64_t limit, int64_t retry_ms, const char *what)
{
    char details[160];

    http_limits_refused(r);
    (void)snprintf(details, sizeof details, "{\"quota\":\"%s\",\"limit\":%lld,\"retry_after_ms\":%lld}",
                   what, (long long)limit, (long long)retry_ms); /* there is room */
    http_retry_after(r, retry_ms);
    http_fail(r, 429, code, runner_http_app.name, details, "the tenant may have %lld %s",
              (long long)limit, what);
}

static void
joined(struct http_request *r, const char *run)
{
    struct trigger_work *w = r->ended_cookie;

    runner_joined(w->app->runner, &(struct il__data_join){ .tenant     = r->caller->tenant,
                                                           .run        = run,
                                                           .at_ms      = il__clock_wall_ms(),
                                                           .by         = w->by,
                                                           .trigger    = "api",
                                                           .request_id = r->id });
}

/* ---- the op ----------------------------------------------------------------------------------------------------------------------- */

static void triggered(struct http_request *r);

static void
go(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    r->ops         = NULL;
    r->n_ops       = 0;
    r->tries_again = w->n_retries > 0 && !r->server->stopping;
    http_go(r, 0, triggered);
}

static bool
joins(const struct pipeline *p)
{
    return p->on_conflict == IL_POLICY_JOIN || p->on_conflict == IL_POLICY_SKIP;
}

/* Somebody has the key, or a run is before this one (R1.7). */
static void
held(struct http_request *r, il_op *op)
{
    struct trigger_work *w      = r->ended_cookie;
    const char          *run    = op->out.n_runs > 0 ? op->out.runs[0].id : NULL;
    const char          *holder = op->out.n_items > 0 ? op->out.items[0].holder : run;

    /* A lock without a run of ours: of a classic client (R1.10), whose value is the id of its run; or of anybody else. */
    if (joins(w->pipeline) && holder != NULL) {
        say(r, holder, "RUNNING", false);
        return;
    }
    if (r->tries_again) {
        w->n_retries--;
        il_op_release(op);
        http_park(r, w->pipeline->lock_retry_delay_ms, go);
        return;
    }
    fail_running(r, run, holder);
}

static void
triggered(struct http_request *r)
{
    struct trigger_work *w   = r->ended_cookie;
    il_op               *op  = r->ops;
    const il_run_info   *run = op->out.n_runs > 0 ? &op->out.runs[0] : NULL;

    switch (runner_trigger_answer(op)) {
    case RUNNER_TRIGGERED:
        if (op->status == IL_OK)
            runner_take(w->app->runner, r->caller->tenant, w->id, il__pipeline_ref(w->pipeline));
        say(r, w->id, run != NULL ? il_run_state_name(run->state) : "PENDING", true);
        return;
    case RUNNER_RUNNING:
        CHECK(run != NULL); /* the store shows the one that is there */
        joined(r, run->id);
        say(r, run->id, "RUNNING", false);
        return;
    case RUNNER_SKIPPED:
        CHECK(run != NULL);
        say(r, run->id, "RUNNING", false);
        return;
    case RUNNER_REJECTED:
        held(r, op);
        return;
    case RUNNER_TOO_MANY:
        fail_limit(r, "CONCURRENT_LIMIT_EXCEEDED", op->in.run.live_max, 1000, "pipeline runs at once");
        return;
    case RUNNER_DAY_OVER:
        fail_limit(r, "QUOTA_EXCEEDED", op->in.run.day_max,
                   IL__DAY_MS - il__clock_wall_ms() % IL__DAY_MS, "pipeline runs per day (UTC)");
        return;
    case RUNNER_QUEUE_FULL:
    case RUNNER_FAILED:
        http_fail_op(r, op, runner_http_app.name);
        return;
    }
}

/* ---- the probe (R1.28) ------------------------------------------------------------------------------------------------------------ */

static void
ask_probe(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    w->preflight = runner_preflight(w->app->runner, w->pipeline, w->values, &w->outside, &w->error);
}

static void
probe_said(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    if (w->preflight == IL_OK) {
        go(r);
        return;
    }
    if (w->preflight != IL_HELD) {
        http_retry_after(r, 5000);
        http_fail(r, 503, "PREFLIGHT_FAILED", runner_http_app.name, NULL,
                  "Pipeline %s: its probe cannot tell whether it is running: %s", w->pipeline->id,
                  w->error.message);
        return;
    }
    http_metrics_lock(r->server, HTTP_LOCK_CONFLICT, r->caller->tenant, w->pipeline->key, 0, -1);
    if (joins(w->pipeline))
        say(r, w->outside != NULL ? w->outside : "", "RUNNING", false);
    else
        fail_running(r, NULL, w->outside);
}

static void
looked(struct http_request *r)
{
    struct trigger_work *w    = r->ended_cookie;
    bool                 live = w->look.out.n_runs > 0;

    if (w->look.status != IL_OK) {
        http_fail_op(r, &w->look, runner_http_app.name);
        return;
    }
    il_op_release(&w->look);
    r->ops   = NULL;
    r->n_ops = 0;
    if (live)
        go(r);
    else
        http_errand_slow(r, ask_probe, probe_said);
}

static void
preflight(struct http_request *r)
{
    struct trigger_work *w = r->ended_cookie;

    w->values = http_alloc(r, sizeof *w->values);
    if (w->values == NULL ||
        runner_values(w->pipeline, w->parameters, &r->mem, w->values, &w->error) != IL_OK) {
        http_fail_nomem(r); /* what is wrong with parameters was found before */
        return;
    }
    w->look =
        (il_op){ .type    = IL_OP_RUN_LIST,
                 .key     = w->pipeline->key,
                 .in.list = { .limit = 1, .states = 1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING } };
    r->ops   = &w->look;
    r->n_ops = 1;
    http_apply(r, 0, looked);
}

/* ---- the request ------------------------------------------------------------------------------------------------------------------ */

static bool
refuse_field(struct http_request *r, const char *name, const char *why)
{
    http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "field '%.80s': %s", name, why);
    return false;
}

/* trigger_by, and parameters: all the other fields. */
static bool
take_fields(struct http_request *r, struct trigger_work *w)
{
    const char *name;
    json_t     *value;
    json_t     *by;

    if (r->body != NULL && !json_is_object(r->body)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "request", NULL, "an object is expected");
        return false;
    }
    json_object_foreach(r->body, name, value)
    {
        if (strcmp(name, "trigger_by") != 0 && !json_is_string(value) && !json_is_number(value) &&
            !json_is_boolean(value))
            return refuse_field(r, name, "a text, a number or a boolean is expected");
    }
    by = json_object_get(r->body, "trigger_by");
    if (by != NULL && !json_is_null(by) && !json_is_string(by))
        return refuse_field(r, "trigger_by", "a text is expected");
    w->by = by != NULL && json_is_string(by) ? json_string_value(by) : "";
    if (strlen(w->by) > RUNNER_BY_BYTES_MAX)
        return refuse_field(r, "trigger_by", "it is longer than 256 bytes");
    w->parameters = r->body != NULL ? json_copy(r->body) : json_object();
    if (w->parameters == NULL) {
        http_fail_nomem(r);
        return false;
    }
    (void)json_object_del(w->parameters, "trigger_by"); /* it may not be there */
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
                                .keep_ms    = w->app->setup->options.keep_ms };

    http_limits_runs(r, &t.live_max, &t.day_max);
    il_status st = runner_trigger_op(&t, &r->mem, &r->op, &w->error);
    if (st == IL_OK)
        return true;
    if (st == IL_LIMIT)
        http_fail(r, 413, "PARAMETERS_TOO_LARGE", runner_http_app.name, NULL, "%s", w->error.message);
    else
        http_fail(r, il_status_http(st), il_status_name(st), "request", NULL, "%s", w->error.message);
    return false;
}

void
runner_http_pipeline_run(struct http_request *r)
{
    struct trigger_work *w = http_alloc(r, sizeof *w);

    if (w == NULL) {
        http_fail_nomem(r);
        return;
    }
    if (!http_limits_trigger(r))
        return;
    if (r->server->stopping) {
        http_retry_after(r, 1000);
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is being stopped");
        return;
    }
    *w              = (struct trigger_work){ .app = runner_app_of(r) };
    r->ended        = end_work;
    r->ended_cookie = w;
    r->store_text   = "Lock manager unavailable"; /* R1.8 */
    if (!take_fields(r, w) || (w->pipeline = runner_app_pipeline(r, r->args[0])) == NULL ||
        (w->id = http_new_id(r, 0)) == NULL || !make_op(r, w))
        return;
    if (w->pipeline->on_conflict == IL_POLICY_REJECT)
        w->n_retries = w->pipeline->lock_retries;
    if (w->pipeline->preflight != PIPELINE_NO_PROBE)
        preflight(r);
    else
        go(r);
}
