/*
 * ops.c: takes the ops of a request to the store and back.
 *
 *   http_submit()       limits; the call joins those of other requests of this turn of the loop
 *   http_calls_flush()  at the end of the turn, hands them to the il__async together, so that a
 *                       commit holds more of them
 *   on_done()           on any thread: the call is done, the request goes into the loop's inbox
 *   done()              on the loop: metrics, then the audit
 *   audited()           event streams, then the handler's `then`, or the answer of a failed call
 *
 * A store that is called directly (memory) has applied its ops before the submit returns; then
 * done() follows at once.
 */
#define HTTP_SUBMITS

#include "http/ops.h"

#include "base/clock.h"
#include "http/audit.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/route.h"
#include "http/server.h"

static void
note_store(struct http_server *s, const struct il__call *call)
{
    bool down = call->status == IL_STORE || call->status == IL_FULL || call->status == IL_CORRUPT ||
                call->status == IL_NEWER;

    if (down == s->store_down || call->status == IL_CANCELLED)
        return;
    s->store_down = down;
    if (down)
        http_log(s, HTTP_EVENT_store_down, "%s", call->error.message);
    else
        http_log(s, HTTP_EVENT_store_up, NULL);
}

/* Administrative actions are recorded before they are answered. */
static void
audited(struct http_request *r)
{
    if (r->call.status != IL_OK) {
        http_fail_call(r);
        return;
    }
    http_stream_ops_done(r->server, r->ops, r->n_ops);
    r->then(r);
}

static void
done(struct http_request *r)
{
    CHECK(r->in_call);
    r->in_call = false;
    r->n_held += r->call.n_held;
    if (http_request_is_cut_off(r))
        return;
    r->waited_ns += r->call.waited_ns;
    note_store(r->server, &r->call);
    http_limits_end(r);
    http_metrics_ops(r);
    http_audit_ops(r, audited);
}

static void
done_item(struct http_item *item)
{
    done(container_of(item, struct http_request, item));
}

/* On any thread; on the loop while the call is being submitted. */
static void
on_done(struct il__call *call)
{
    struct http_request *r = container_of(call, struct http_request, call);

    if (http_on_loop(r->server) && r->server->hold == call) {
        r->call_now = true;
        return;
    }
    r->item.fn = done_item;
    http_inbox_put(r->server, &r->item);
}

/* Field by field: the error is large, and is set only if there is one. */
static void
set_up_call(struct http_request *r, int64_t wait_ms)
{
    struct il__call *call = &r->call;

    memset(call, 0, offsetof(struct il__call, error));
    memset(&call->waited_ns, 0, sizeof *call - offsetof(struct il__call, waited_ns));
    call->ops    = r->ops;
    call->n      = r->n_ops;
    call->done   = on_done;
    call->budget = http_limits_results(r);
    if (wait_ms > 0)
        call->wait_until_ns = il__clock_boot_ns() + MIN(wait_ms, HTTP_WAIT_MS_MAX) * IL__NS_PER_MS;
}

/* For a store that is called directly: the call is usually done when the submit returns. */
static void
submit_here(struct http_request *r)
{
    struct http_server *s = r->server;

    s->hold = &r->call;
    il__async_submit(s->async, &r->call);
    s->hold = NULL;
    if (r->call_now) {
        r->call_now = false;
        done(r);
    }
}

/* For a store with commits: calls are collected and submitted at the end of the turn, so that a
 * commit holds more of them. */
static void
gather(struct http_request *r)
{
    struct http_server *s = r->server;

    r->next = NULL;
    if (s->gathered == NULL)
        s->gathered = r;
    else
        s->gathered_last->next = r;
    s->gathered_last = r;
}

void
http_calls_flush(struct http_server *s)
{
    struct http_request *r = TAKE(s->gathered);

    while (r != NULL) {
        struct http_request *next = r->next; /* it may come back on another thread at once */
        il__async_submit(s->async, &r->call);
        r = next;
    }
}

void
http_submit(struct http_request *r, il_op *ops, size_t n, int64_t wait_ms, http_fn *then)
{
    struct http_server *s = r->server;

    CHECK(!r->in_call && !r->answered && !r->delayed);
    if (http_request_is_cut_off(r))
        return;
    r->ops   = ops;
    r->n_ops = n;
    if (!http_limits_ops(r) || (wait_ms > 0 && !http_limits_wait(r)))
        return;
    r->then = then;
    set_up_call(r, wait_ms);
    r->in_call = true;
    if (s->direct)
        submit_here(r);
    else
        gather(r);
    if (r->in_call && wait_ms > 0 && r->c->hung_up)
        http_request_abandon(r);
}

void
http_results_drop(struct http_request *r, size_t n_bytes)
{
    il_op_release(&r->op);
    if (r->ops != NULL && r->ops != &r->op) {
        for (size_t i = 0; i < r->n_ops; i++)
            il_op_release(&r->ops[i]);
    }
    if (r->n_held == 0)
        return; /* too small to be counted */
    il__result_budget_change(http_limits_results(r), r->n_held, n_bytes);
    r->n_held = n_bytes;
}
