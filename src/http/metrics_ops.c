/*
 * metrics_ops.c: what applied ops report: a log line for each acquire, conflict, release, lost
 * lease and break, and how long callers waited and held.
 */
#include "base/clock.h"
#include "http/granted_leases.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics_internal.h"
#include "http/refusal_report.h"
#include "http/samples.h"
#include "http/server.h"

/* The fields of a log line about a lock; NULL, 0 and -1 are omitted. */
struct line {
    const char *key, *holder, *run, *code, *reason;
    uint64_t    fence;
    int64_t     wait_ns, hold_ns;
};

static void
say(const struct http_request *r, const char *tenant, enum http_event event, const struct line *l)
{
    struct http_server *s = r->server;

    if (!http_log_begin(s, event))
        return;
    http_log_text(s, "request_id", r->id);
    http_log_text(s, "tenant_id", tenant);
    http_log_text(s, "key_id", r->caller != NULL ? r->caller->key_id : NULL);
    http_log_text(s, "pipeline_id", http_pipeline_name(l->key));
    http_log_text(s, "key", l->key);
    http_log_text(s, "holder", l->holder != NULL && l->holder[0] != '\0' ? l->holder : NULL);
    http_log_text(s, "run_id", l->run);
    if (l->fence != 0)
        http_log_int(s, "fence", (int64_t)l->fence);
    http_log_text(s, "code", l->code);
    http_log_text(s, "reason", l->reason);
    if (l->wait_ns >= 0)
        http_log_ms(s, "lock_wait_ms", l->wait_ns);
    if (l->hold_ns >= 0)
        http_log_ms(s, "lock_hold_ms", l->hold_ns);
    http_log_end(s);
}

static const char *
tenant_of(const struct http_request *r, const il_op *op)
{
    return op->tenant != NULL ? op->tenant : r->caller != NULL ? r->caller->tenant : "default";
}

/* ---- acquires, and starts of runs ------------------------------------------------------------ */

/* The outcome of an attempt to get a lock; HTTP_RESULT_COUNT: still waiting, or not a new
 * attempt. */
static enum http_result
result_of(const il_op *op, il_status call)
{
    if (call != IL_OK)
        return call == IL_INVAL ? HTTP_RESULT_COUNT : HTTP_RESULT_error;
    switch (op->status) {
    /* a client's mistake, reported to it: nothing was attempted, so it is not counted */
    case IL_INVAL:
        return HTTP_RESULT_COUNT;
    case IL_OK:
        if ((op->out.flags & IL_OUT_RENEWED) != 0)
            return HTTP_RESULT_COUNT;
        return op->type == IL_OP_RUN_START &&
                       (op->out.n_runs == 0 || op->out.runs->state != IL_RUN_RUNNING)
                   ? HTTP_RESULT_COUNT
                   : HTTP_RESULT_success;
    case IL_QUEUED:
        return HTTP_RESULT_COUNT;
    case IL_LIMIT: /* a tenant's quota says nothing about the lock */
        return (op->out.flags & (IL_OUT_LIVE_LIMIT | IL_OUT_DAY_LIMIT | IL_OUT_MINUTE_LIMIT |
                                 IL_OUT_HOUR_LIMIT)) != 0
                   ? HTTP_RESULT_COUNT
                   : HTTP_RESULT_conflict;
    case IL_HELD:
    case IL_DUPLICATE:
        return HTTP_RESULT_conflict;
    default:
        return HTTP_RESULT_error;
    }
}

static enum http_event
event_of(const il_op *op, enum http_result result)
{
    if (result == HTTP_RESULT_success)
        return HTTP_EVENT_lock_acquired;
    if (result == HTTP_RESULT_conflict)
        return HTTP_EVENT_lock_conflict;
    return op->status == IL_DEADLOCK ? HTTP_EVENT_lock_deadlock
           : op->status == IL_ORDER  ? HTTP_EVENT_lock_order
                                     : HTTP_EVENT_lock_error;
}

static void
saw_attempt(struct http_request *r, const il_op *op)
{
    struct http_metrics *m       = r->server->metrics;
    const char          *tenant  = tenant_of(r, op);
    enum http_result     result  = result_of(op, r->call.status);
    bool                 is_run  = op->type == IL_OP_RUN_START;
    const il_run_info   *run     = is_run && op->out.n_runs > 0 ? op->out.runs : NULL;
    int64_t              wait_ns = r->call.waited_ns + r->delayed_ns;

    if (r->call.status == IL_CANCELLED || (r->tries_again && result == HTTP_RESULT_conflict))
        return;
    if (result == HTTP_RESULT_COUNT) {
        if (op->status == IL_OK && !is_run)
            http_lease_renewed(r->server, op->out.fence, op->out.remaining_ms);
        return;
    }
    http_metrics_lock_attempt(m, tenant, op->key, result, (double)wait_ns / 1e9);
    struct line l = { .key     = op->key,
                      .holder  = op->holder,
                      .run     = run != NULL && result == HTTP_RESULT_conflict ? run->id
                                 : is_run                                      ? op->in.run.id
                                                                               : NULL,
                      .wait_ns = wait_ns,
                      .hold_ns = -1,
                      .code    = result == HTTP_RESULT_success ? NULL
                                 : r->call.status != IL_OK     ? il_status_name(r->call.status)
                                                               : il_status_name(op->status) };
    if (result == HTTP_RESULT_success) {
        l.fence = run != NULL ? run->fence : op->out.fence;
        http_lease_granted(r->server, tenant, op->key, op->holder, l.run, l.fence,
                           run != NULL ? run->remaining_ms : op->out.remaining_ms);
    }
    say(r, tenant, event_of(op, result), &l);
    if (result == HTTP_RESULT_conflict)
        http_refused(r, tenant, op);
    if (r->call.status == IL_OK && (op->out.flags & IL_OUT_ORDER_WARNING) != 0)
        say(r, tenant, HTTP_EVENT_lock_order_warning,
            &(struct line){ .key = op->key, .holder = op->holder, .wait_ns = -1, .hold_ns = -1 });
}

/* ---- ends of leases -------------------------------------------------------------------------- */

static void
observe_hold(struct http_metrics *m, const char *tenant, const char *key, int64_t hold_ns)
{
    struct http_pipeline *p = hold_ns >= 0 ? http_pipeline_of(m, tenant, key) : NULL;

    if (hold_ns >= 0)
        http_histogram_add(&m->hold, http_lock_bounds, (double)hold_ns / 1e9);
    if (p != NULL)
        http_histogram_add(&p->hold, http_lock_bounds, (double)hold_ns / 1e9);
}

static void
saw_end(struct http_request *r, const il_op *op)
{
    struct http_metrics *m      = r->server->metrics;
    const char          *tenant = tenant_of(r, op);
    const il_run_info   *run    = op->out.n_runs > 0 ? op->out.runs : NULL;
    struct line          l      = {
                      .key     = run != NULL ? run->key : op->key,
                      .holder  = run != NULL ? run->holder : op->holder,
                      .run     = op->type == IL_OP_RUN_FINISH ? op->in.run.id : NULL,
                      .fence   = op->fence != 0 || run == NULL ? op->fence : run->fence,
                      .wait_ns = -1,
    };

    /* A refused release ends nothing: its fence is whatever the caller sent, perhaps another's. */
#ifndef IL_MUTANT_refused_release_forgets
    l.hold_ns = op->status == IL_OK ? http_lease_ended(r->server, l.fence) : -1;
#else
    l.hold_ns = http_lease_ended(r->server, l.fence);
#endif
    if (op->status == IL_OK) {
        if ((op->out.flags & IL_OUT_RENEWED) != 0)
            return; /* repeated: already reported the first time */
        observe_hold(m, tenant, l.key, l.hold_ns);
        say(r, tenant, HTTP_EVENT_lock_released, &l);
        return;
    }
    l.code = il_status_name(op->status);
    say(r, tenant, HTTP_EVENT_lock_release_failed, &l);
}

static void
saw_renewal(struct http_request *r, const il_op *op)
{
    struct line l = {
        .key = op->key, .holder = op->holder, .fence = op->fence, .wait_ns = -1, .hold_ns = -1
    };

    if (op->status == IL_OK) {
        http_lease_renewed(r->server, op->fence, op->out.remaining_ms);
        say(r, tenant_of(r, op), HTTP_EVENT_lock_renewed, &l);
        return;
    }
    l.code = il_status_name(op->status);
    say(r, tenant_of(r, op), HTTP_EVENT_lock_lost, &l);
}

static void
saw_break(struct http_request *r, const il_op *op)
{
    struct http_metrics *m = r->server->metrics;
    struct line          l = { .key     = op->key,
                               .holder  = op->out.n_items > 0 ? op->out.items->holder : NULL,
                               .fence   = op->fence,
                               .reason  = op->in.lock.reason,
                               .wait_ns = -1 };

    if (op->status != IL_OK)
        return;
    l.hold_ns = http_lease_ended(r->server, op->fence);
    observe_hold(m, tenant_of(r, op), op->key, l.hold_ns);
    say(r, tenant_of(r, op), HTTP_EVENT_lock_broken, &l);
}

static void
saw_look(struct http_request *r, const il_op *op)
{
    uint64_t *looks = r->server->metrics->looks;

    if (r->call.waited_ns > 0)
        looks[HTTP_LOOK_waited]++;
    else if (op->status == IL_HIT)
        looks[HTTP_LOOK_hit]++;
    else if (op->status == IL_STALE_HIT)
        looks[HTTP_LOOK_stale]++;
    else if (op->status == IL_LEAD)
        looks[HTTP_LOOK_lead]++;
    else if (op->status == IL_WAIT)
        looks[HTTP_LOOK_waited]++;
    else if (op->status == IL_NOT_FOUND)
        looks[HTTP_LOOK_miss]++;
    /* a hit: answered with a value, fresh, stale or after a wait */
    struct http_sample *sample = http_sample_of(r->server, tenant_of(r, op));
    if (op->status == IL_HIT || op->status == IL_STALE_HIT)
        sample->cache_hits++;
    else if (op->status == IL_LEAD || op->status == IL_NOT_FOUND)
        sample->cache_misses++;
}

static void
saw(struct http_request *r, const il_op *op)
{
    if (op->type == IL_OP_ACQUIRE || op->type == IL_OP_RUN_START) {
        saw_attempt(r, op);
        return;
    }
    if (r->call.status != IL_OK)
        return;
    switch (op->type) {
    case IL_OP_RELEASE:
    case IL_OP_RUN_FINISH:
        saw_end(r, op);
        break;
    case IL_OP_RENEW:
        saw_renewal(r, op);
        break;
    case IL_OP_BREAK:
        saw_break(r, op);
        break;
    case IL_OP_CHECK_FENCE:
        if (op->status == IL_STALE)
            say(r, tenant_of(r, op), HTTP_EVENT_fence_stale,
                &(struct line){ .key = op->key, .fence = op->fence, .wait_ns = -1, .hold_ns = -1 });
        break;
    case IL_OP_CACHE_GET:
    case IL_OP_CACHE_LOOKUP:
        saw_look(r, op);
        break;
    default:
        break;
    }
}

void
http_metrics_ops(struct http_request *r)
{
    for (size_t i = 0; i < r->call.n; i++)
        saw(r, &r->call.ops[i]);
    http_limits_applied(r);
}
