/*
 * call.c: what a request has done elsewhere: ops by the il__async, errands by the office thread. Both come back through the inbox, and the handler goes on. A
 * store that is called directly (memory) has done its ops before the submit returns; then the handler goes on at once.
 */
#include "base/clock.h"
#include "http/audit.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/office.h"
#include "http/route.h"
#include "http/scope.h"
#include "http/server.h"

/* ---- ops ---------------------------------------------------------------------------------------------------------------------- */

/* The server has given up on what is left: nothing is done for it any more, and nothing answered. */
static bool
is_cut_off(struct http_request *r)
{
    if (r->server->async != NULL)
        return false;
    r->answered = true;
    http_resume(r);
    return true;
}

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

static void
after_audit(struct http_request *r)
{
    if (r->call.status != IL_OK) {
        http_fail_call(r);
        return;
    }
    http_stream_saw(r->server, r->ops, r->n_ops);
    r->then(r);
}

static void
end_call(struct http_request *r)
{
    CHECK(r->in_call);
    r->in_call = false;
    if (is_cut_off(r))
        return;
    r->waited_ns += r->call.waited_ns;
    note_store(r->server, &r->call);
    http_limits_end(r);
    http_metrics_ops(r);
    http_audit_ops(r, after_audit);
}

static void
call_came(struct http_item *item)
{
    end_call(container_of(item, struct http_request, item));
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
    r->item.fn = call_came;
    http_inbox_put(r->server, &r->item);
}

/* Field by field: its error is large, and is set only when there is one. */
static void
set_up_call(struct http_request *r, int64_t wait_ms)
{
    struct il__call *call = &r->call;

    memset(call, 0, offsetof(struct il__call, error));
    memset(&call->waited_ns, 0, sizeof *call - offsetof(struct il__call, waited_ns));
    call->ops  = r->ops;
    call->n    = r->n_ops;
    call->done = on_done;
    if (wait_ms > 0)
        call->wait_until_ns = il__clock_boot_ns() + MIN(wait_ms, HTTP_WAIT_MS_MAX) * IL__NS_PER_MS;
}

/* To a store that is called directly: mostly it is done when the submit returns. */
static void
submit_here(struct http_request *r)
{
    struct http_server *s = r->server;

    s->hold = &r->call;
    il__async_submit(s->async, &r->call);
    s->hold = NULL;
    if (r->call_now) {
        r->call_now = false;
        end_call(r);
    }
}

/* To a store with commits: what comes in one turn is handed over at its end, so that a commit has more of it. */
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
http_submit(struct http_request *r, int64_t wait_ms, http_fn *then)
{
    struct http_server *s = r->server;

    CHECK(!r->in_call && !r->answered);
    if (is_cut_off(r))
        return;
    if (r->ops == NULL) {
        r->ops   = &r->op;
        r->n_ops = 1;
    }
    for (size_t i = 0; i < r->n_ops; i++) {
        if (r->ops[i].tenant == NULL)
            r->ops[i].tenant = r->caller != NULL ? r->caller->tenant : NULL;
    }
    if (!http_limits_ops(r) || (wait_ms > 0 && !http_limits_wait(r)))
        return;
    CHECK(!r->parked);
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
http_apply(struct http_request *r, int64_t wait_ms, http_fn *then)
{
    il_op *ops = r->ops != NULL ? r->ops : &r->op;
    size_t n   = r->ops != NULL ? r->n_ops : 1;

    for (size_t i = 0; r->caller != NULL && i < n; i++) {
        enum http_scope scope = http_scope(r->caller, &ops[i]);
        if (scope != HTTP_SCOPE_OK && scope != HTTP_SCOPE_BY_ID) {
            http_scope_refuse(r, scope);
            return;
        }
    }
    http_submit(r, wait_ms, then);
}

/* ---- errands ------------------------------------------------------------------------------------------------------------------ */

static void
errand_work(struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    r->work(r);
}

static void
errand_then(struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    r->in_errand = false;
    if (!is_cut_off(r))
        r->errand_then(r);
}

static void
set_up_errand(struct http_request *r, http_fn *work, http_fn *then)
{
    CHECK(!r->in_errand && !r->parked);
    r->in_errand   = true;
    r->work        = work;
    r->errand_then = then;
    r->job         = (struct http_job){ .work = errand_work, .then = errand_then };
}

void
http_errand(struct http_request *r, http_fn *work, http_fn *then)
{
    set_up_errand(r, work, then);
    http_office_send(r->server, &r->job);
}

void
http_errand_slow(struct http_request *r, http_fn *work, http_fn *then)
{
    set_up_errand(r, work, then);
    http_slow_send(r->server, &r->job);
}

/* ---- parked ------------------------------------------------------------------------------------------------------------------- */

static void
unpark(struct http_request *r)
{
    int64_t ns = il__clock_boot_ns() - r->park_began_ns;

    il__heap_remove(&r->server->parked, &r->park);
    r->parked = false;
    r->waited_ns += ns;
    r->parked_ns += ns;
    http_limits_end(r);
}

void
http_park(struct http_request *r, int64_t ms, http_fn *then)
{
    CHECK(!r->in_call && !r->in_errand && !r->answered && !r->parked);
    if (is_cut_off(r) || !http_limits_wait(r))
        return;
    r->parked        = true;
    r->park_then     = then;
    r->park_began_ns = il__clock_boot_ns();
    r->park          = (struct il__heap_node){ .at = r->park_began_ns + ms * IL__NS_PER_MS };
    il__heap_add(&r->server->parked, &r->park);
    if (r->c->hung_up)
        http_request_abandon(r);
}

void
http_parked_drop(struct http_request *r)
{
    if (!r->parked)
        return;
    unpark(r);
    if (!is_cut_off(r))
        http_fail(r, il_status_http(IL_CANCELLED), il_status_name(IL_CANCELLED), "request", NULL,
                  "the client has gone");
}

int64_t
http_parked_tick(struct http_server *s)
{
    int64_t now_ns = s->stopping ? INT64_MAX : s->now_ns;

    while (il__heap_due(&s->parked, now_ns)) {
        struct http_request *r = container_of(s->parked.first, struct http_request, park);
        unpark(r);
        r->park_then(r);
    }
    return s->parked.first != NULL ? s->parked.first->at : INT64_MAX;
}
