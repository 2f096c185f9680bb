/*
 * routes_run.c: starts, shows and cancels ingestions. A trigger only leaves a run in the store; any
 * server with room executes it. These routes work even if no server has room.
 */
#include "apps/ingest/routes_run.h"

#include "apps/ingest/serve.h"
#include "base/error.h"
#include "http/admin.h"
#include "http/limits.h"
#include "http/server.h"

#define SOURCE "ingest"
#define DAYS_DEFAULT 7
#define BUSY_MS 5000 /* Retry-After of a conflict */

struct trigger {
    struct ingest_trigger_in in;
    struct ingest_start      start;
    struct ingest_known      known; /* of a trigger by event */
    il_status                status;
    il_error                 error;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void
say(struct http_request *r, const struct trigger *t, const il_run_info *run, bool joined)
{
    http_say(r, 202, &il__ingest_triggered_out,
             &(struct ingest_triggered){ .id              = run->id,
                                         .status          = il_run_state_name(run->state),
                                         .joined          = joined,
                                         .position        = run->position,
                                         .source_event_id = t->start.source_event_id,
                                         .track_slug      = t->start.track_slug,
                                         .event_id        = t->start.event_id });
}

static void
fail_running(struct http_request *r, const il_op *op)
{
    const il_run_info   *run     = op->out.n_runs > 0 ? &op->out.runs[0] : NULL;
    const il_lease_info *lease   = run == NULL && op->out.n_items > 0 ? &op->out.items[0] : NULL;
    const char          *details = il__ingest_conflict(run, lease, false, &r->mem);

    AUTO_BUF struct il__buf text = { 0 };

    if (details == NULL) {
        http_fail_nomem(r);
        return;
    }
    il__buf_init(&text, 2048);
    il__ingest_conflict_text(op->key, run, lease, &text);
    http_retry_after(r, BUSY_MS);
    http_fail(r, 409, "INGESTION_IN_PROGRESS", SOURCE, details, "%s", il__buf_str(&text));
}

static void
fail_limit(struct http_request *r, const il_op *op)
{
    http_limits_refused(r);
    http_retry_after(r, MAX(op->out.remaining_ms, 1000));
    http_fail(r, 429, "RATE_LIMIT_EXCEEDED", SOURCE, NULL,
              "too many ingestions were started; try again later");
}

static void
started(struct http_request *r)
{
    const struct trigger *t  = r->state;
    const il_op          *op = r->ops;
    const il_run_info    *run;
    enum ingest_answer    answer =
        il__ingest_answer(il__ingest_work(il__ingest_app_of(r)->ingest), op, &run);

    switch (answer) {
    case INGEST_TRIGGER_STARTED:
    case INGEST_TRIGGER_JOINED:
        say(r, t, run, answer == INGEST_TRIGGER_JOINED);
        return;
    case INGEST_TRIGGER_HELD: /* even if nobody executes it yet: all places for runs may be taken */
        fail_running(r, op);
        return;
    case INGEST_TRIGGER_LIMITED:
        fail_limit(r, op);
        return;
    case INGEST_TRIGGER_FAILED:
        http_fail_op(r, op, SOURCE);
        return;
    }
}

/* ---- triggers -------------------------------------------------------------------------------- */

static void
start(struct http_request *r)
{
    static const il_policy policies[] = { [INGEST_ON_REJECT] = IL_POLICY_REJECT,
                                          [INGEST_ON_JOIN]   = IL_POLICY_JOIN,
                                          [INGEST_ON_QUEUE]  = IL_POLICY_QUEUE };
    struct trigger        *t          = r->state;

    t->start.tenant = r->caller->tenant;
    t->start.by     = r->caller->key_id;
    t->start.type   = "api";
    t->start.force  = t->in.force != 0;
    t->start.policy = policies[t->in.on_conflict];
    t->start.wait   = t->in.on_conflict == INGEST_ON_QUEUE;
    t->start.id     = http_new_id(r, 0);
    if (t->start.id == NULL)
        return;
    http_limits_triggers(r, &t->start.minute_max, &t->start.hour_max);
    il_status st = il__ingest_start_op(&t->start, &r->mem, &r->op, &t->error);
    if (st == IL_OK)
        http_do_ops(r, &r->op, 1, 0, started);
    else if (st == IL_INVAL)
        http_fail(r, 400, "VALIDATION_ERROR", SOURCE, NULL, "%s", t->error.message);
    else
        http_fail_nomem(r);
}

/* Take the body. NULL: answered. */
static struct trigger *
begin(struct http_request *r, enum ingest_kind kind)
{
    struct trigger *t = http_calloc(r, sizeof *t);

    if (t == NULL || !http_limits_storage(r))
        return NULL;
    if (r->server->stopping) {
        http_retry_after(r, 1000);
        http_fail(r, 503, "SHUTTING_DOWN", "request", NULL, "the server is shutting down");
        return NULL;
    }
    t->in.days    = DAYS_DEFAULT;
    t->start.kind = kind;
    r->state      = t;
    if (!http_take_body(r, &t->in))
        return NULL;
    t->start.source_event_id = t->in.source_event_id;
    t->start.track_slug      = t->in.track_slug;
    t->start.event_id        = t->in.event_id;
    t->start.tracks          = t->in.tracks;
    t->start.days            = t->in.days;
    il_status st             = il__ingest_depth_check(t->in.depth, &t->error);
    if (st == IL_OK)
        return t;
    http_fail(r, st == IL_STATE ? 409 : 400,
              st == IL_STATE ? "STATE_MACHINE_ERROR" : "VALIDATION_ERROR", SOURCE, NULL, "%s",
              t->error.message);
    return NULL;
}

static void
start_kind(struct http_request *r, enum ingest_kind kind)
{
    if (begin(r, kind) != NULL)
        start(r);
}

void
il__ingest_http_source(struct http_request *r)
{
    start_kind(r, INGEST_RUN_EVENT);
}

void
il__ingest_http_tracks(struct http_request *r)
{
    start_kind(r, INGEST_RUN_TRACKS);
}

void
il__ingest_http_events_sync(struct http_request *r)
{
    start_kind(r, INGEST_RUN_EVENTS);
}

void
il__ingest_http_recent(struct http_request *r)
{
    start_kind(r, INGEST_RUN_RECENT);
}

/* By the event's own id: the site's is looked up first, so that both kinds of trigger meet. */
static void
look_up(struct http_request *r)
{
    struct trigger *t = r->state;

    t->status = il__ingest_known(il__ingest_app_of(r)->tables, r->caller->tenant, r->args[0],
                                 &r->mem, &t->known, &t->error);
}

static void
looked_up(struct http_request *r)
{
    struct trigger *t = r->state;

    if (t->status == IL_NOT_FOUND) {
        http_fail(r, 404, il_status_name(IL_NOT_FOUND), SOURCE, NULL, "event %.64s not found",
                  r->args[0]);
    } else if (t->status != IL_OK) {
        http_fail_data(r, &t->error);
    } else {
        t->start.event_id        = t->known.event_id;
        t->start.source_event_id = t->known.source_event_id;
        t->start.track_slug      = t->known.track_slug;
        start(r);
    }
}

void
il__ingest_http_event(struct http_request *r)
{
    if (begin(r, INGEST_RUN_EVENT) != NULL)
        http_pool(r, look_up, looked_up);
}

/* ---- a run ----------------------------------------------------------------------------------- */

struct showing {
    struct ingest_cancel_in in;
    struct ingest_run_out   out;
    il_status               status;
    il_error                error;
};

/* The run that an op returned; NULL: answered. */
static const il_run_info *
run_of(struct http_request *r)
{
    il_op *op = r->ops;

    if (op->status == IL_OK && op->out.n_runs > 0 && il__ingest_is_run(&op->out.runs[0]))
        return &op->out.runs[0];
    if (op->status == IL_OK)
        op->status = IL_NOT_FOUND; /* a run, but not an ingestion */
    http_fail_op(r, op, SOURCE);
    return NULL;
}

static void
read_history(struct http_request *r)
{
    struct showing *s = r->state;

    s->status =
        il__ingest_run_history(r->server->data, &r->ops->out.runs[0], &r->mem, &s->out, &s->error);
}

static void
show(struct http_request *r)
{
    const struct showing *s = r->state;

    if (s->status == IL_OK)
        http_say(r, 200, &il__ingest_run_out, &s->out);
    else
        http_fail_data(r, &s->error);
}

static void
got_run(struct http_request *r)
{
    struct showing    *s   = r->state;
    const il_run_info *run = run_of(r);

    if (run == NULL)
        return;
    if (il__ingest_run_show(run, &r->mem, &s->out))
        http_errand(r, read_history, show);
    else
        http_fail_nomem(r);
}

static void
get_run(struct http_request *r, int64_t wait_ms, http_fn *then)
{
    r->op = (il_op){ .type = IL_OP_RUN_GET, .in.run = { .id = r->args[0] } };
    http_do_ops(r, &r->op, 1, wait_ms, then);
}

static struct showing *
begin_showing(struct http_request *r)
{
    struct showing *s = http_calloc(r, sizeof *s);

    if (s == NULL)
        return NULL;
    r->state = s;
    return s;
}

void
il__ingest_http_status(struct http_request *r)
{
    if (begin_showing(r) != NULL && http_take_query(r, NULL))
        get_run(r, http_poll_ms(r), got_run);
}

static void
cancelled(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status == IL_OK && op->out.n_runs > 0)
        work_cancelled(il__ingest_work(il__ingest_app_of(r)->ingest), &op->out.runs[0]);
    got_run(r);
}

static void
found_for_cancel(struct http_request *r)
{
    const struct showing *s   = r->state;
    const il_run_info    *run = run_of(r);

    if (run == NULL)
        return;
    if (run->state > IL_RUN_RUNNING) {
        got_run(r);
        return;
    }
    il_op_release(r->ops);
    r->op = (il_op){ .type   = IL_OP_RUN_CANCEL,
                     .in.run = { .id    = r->args[0],
                                 .error = s->in.reason != NULL ? s->in.reason
                                                               : "cancelled through the API" } };
    http_do_ops(r, &r->op, 1, 0, cancelled);
}

void
il__ingest_http_cancel(struct http_request *r)
{
    struct showing *s = begin_showing(r);

    if (s != NULL && http_take_body(r, &s->in))
        get_run(r, 0, found_for_cancel);
}
