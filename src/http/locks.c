/* locks.c: acquire, renew, release, break, get, list, why; and checking a fence. */
#include "http/handler.h"

#include <stdio.h>

/* The details of a lease that the caller has. */
static void
fill_grant(const il_op *op, struct http_grant *g)
{
    *g = (struct http_grant){
        .key           = op->key,
        .holder        = op->holder,
        .fence         = op->out.fence,
        .ttl_ms        = op->in.lock.ttl_ms,
        .remaining_ms  = op->out.remaining_ms,
        .expires_at_ms = http_at_ms(op->out.remaining_ms),
        .is            = ((op->out.flags & IL_OUT_RENEWED) != 0 ? HTTP_IS_RENEWED : 0U) |
              ((op->out.flags & IL_OUT_CANCEL) != 0 ? HTTP_IS_CANCEL : 0U),
        .warning = (op->out.flags & IL_OUT_ORDER_WARNING) != 0 ? op->out.detail : "",
        .reason  = (op->out.flags & IL_OUT_CANCEL) != 0 ? op->out.detail : "",
    };
    /* RENEW without a TTL keeps the granted one, which is what remains now. */
    if (g->ttl_ms == 0)
        g->ttl_ms = op->out.remaining_ms;
}

static void
acquired(struct http_request *r)
{
    const il_op      *op = r->ops;
    struct http_grant g;

    fill_grant(op, &g);
    if (op->status == IL_OK) {
        http_say(r, 200, &http_out_grant, &g);
        return;
    }
    if (op->status != IL_QUEUED) {
        http_fail_op(r, op, NULL);
        return;
    }
    g.status   = il_status_name(IL_QUEUED);
    g.ticket   = op->out.ticket;
    g.position = op->out.position;
    http_say(r, il_status_http(IL_QUEUED), &http_out_queued, &g);
}

/*
 * {wait_ms: N}: the request is kept open for up to a minute, and ends as granted or held. With a
 * longer wait the holder stays queued, is told so, and calls again. ?wait=30s alone is the same as
 * wait_ms.
 */
void
http_lock_acquire(struct http_request *r)
{
    if (!http_take_op(r))
        return;
    if (r->op.in.lock.wait_ms == 0)
        r->op.in.lock.wait_ms = r->wait_ms;
    http_do_ops(r, &r->op, 1, http_poll_ms(r), acquired);
}

void
http_lock_renewed(struct http_request *r)
{
    struct http_grant g;

    fill_grant(r->ops, &g);
    g.is |= HTTP_IS_RENEWED;
    http_say(r, 200, &http_out_grant, &g);
}

void
http_lock_released(struct http_request *r)
{
    struct http_grant g = { .key = r->ops->key, .holder = r->ops->holder, .is = HTTP_IS_TRUE };

    http_say(r, 200, &http_out_released, &g);
}

/* ---- break ----------------------------------------------------------------------------------- */

/* The holder that loses its lease. */
struct broken_from {
    const char *holder;
    bool        closing; /* it has the key: it must release it first */
};

struct breaking {
    il_op               asked; /* as it was taken */
    il_op              *ops;
    struct broken_from *from; /* of each of them */
    size_t              n;
};

/* Report the outcome for the first lease; leases that ended meanwhile needed no breaking. */
static void
broken(struct http_request *r)
{
    struct breaking *b = r->state;

    for (size_t i = 0; i < b->n; i++) {
        const il_op *op = &r->ops[i];
        if (op->status != IL_OK)
            continue;
        struct http_grant g = {
            .key    = op->key,
            .holder = b->from[i].holder,
            .fence  = op->fence,
            .is     = HTTP_IS_TRUE | (b->from[i].closing ? HTTP_IS_CLOSING : 0U),
        };
        http_say(r, 200, &http_out_break, &g);
        return;
    }
    http_fail_op(r, &r->ops[0], NULL);
}

/* The holders of the key are known: break them all, or the one with the fence named. */
static void
found_for_break(struct http_request *r)
{
    struct breaking     *b     = r->state;
    size_t               n     = r->ops->out.n_items;
    const il_lease_info *items = r->ops->out.items;
    /* GET shows a limited number of leases, in the order of fences, and the newest fence. */
    uint64_t last = n > 0 ? items[n - 1].fence : 0;

    if (r->ops->status != IL_OK) {
        http_fail_op(r, r->ops, NULL);
        return;
    }
    if (b->asked.fence == 0 && b->asked.holder == NULL && r->ops->out.fence > last) {
        http_fail(r, 409, "WRONG_STATE", "request", NULL,
                  "the key has too many holders to break at once; give a fence or a holder");
        return;
    }
    b->ops  = http_calloc(r, n * sizeof *b->ops);
    b->from = b->ops != NULL ? http_calloc(r, n * sizeof *b->from) : NULL;
    if (b->from == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        if ((b->asked.fence != 0 && items[i].fence != b->asked.fence) ||
            (b->asked.holder != NULL && strcmp(items[i].holder, b->asked.holder) != 0))
            continue;
        b->from[b->n] = (struct broken_from){
            .holder  = il__arena_strdup(&r->mem, items[i].holder),
            .closing = (b->asked.flags & IL_BREAK_NOW) == 0 && items[i].state != IL_LEASE_OFFERED,
        };
        b->ops[b->n]        = b->asked;
        b->ops[b->n].fence  = items[i].fence;
        b->ops[b->n].holder = b->from[b->n].holder; /* names a lock without a fence */
        b->n++;
    }
    if (b->n == 0) { /* another fence is live: the store reports it */
        b->from[0]     = (struct broken_from){ .holder = "" };
        b->ops[b->n++] = b->asked;
    }
    http_do_ops(r, b->ops, b->n, 0, broken);
}

/* Who breaks it, for the history of the key; NULL: no memory, so it is left out. */
static const char *
meta_of_caller(struct http_request *r)
{
    size_t n_bytes = DATA_ID_BYTES + 16;
    char  *text    = r->caller != NULL ? http_alloc(r, n_bytes) : NULL;

    if (text != NULL)
        (void)snprintf(text, n_bytes, "{\"api_key\":\"%s\"}", r->caller->key_id);
    return text;
}

void
http_lock_break(struct http_request *r)
{
    struct breaking *b = http_calloc(r, sizeof *b);

    if (b == NULL)
        return;
    if (!http_take_op(r))
        return;
    b->asked = r->op;
    if (b->asked.in.lock.meta == NULL)
        b->asked.in.lock.meta = meta_of_caller(r);
    r->state = b;
    r->op    = (il_op){ .type = IL_OP_GET, .key = b->asked.key };
    http_do_ops(r, &r->op, 1, 0, found_for_break);
}

/* ---- lookups --------------------------------------------------------------------------------- */

void
http_lock_listed(struct http_request *r)
{
    const il_op *op = r->ops;

    http_say_page(r, (op->flags & IL_LIST_WAITERS) != 0 ? &il__wire_waiter : &il__wire_lease,
                  op->out.items, sizeof *op->out.items, op->out.n_items, op->out.next);
}

void
http_lock_order_listed(struct http_request *r)
{
    const il_op_out *out = &r->ops->out;

    http_say_page(r, &il__wire_edge, out->edges, sizeof *out->edges, out->n_edges, out->next);
}

void
http_lock_history_listed(struct http_request *r)
{
    const il_op_out *out = &r->ops->out;

    http_say_page(r, &il__wire_event, out->events, sizeof *out->events, out->n_events, out->next);
}

void
http_lock_noted(struct http_request *r)
{
    struct http_grant g = { .key = r->ops->key, .is = HTTP_IS_TRUE };

    http_say(r, 200, &http_out_noted, &g);
}

void
http_lock_shown(struct http_request *r)
{
    const il_op_out *out  = &r->ops->out;
    struct http_lock lock = {
        .key = r->ops->key, .fence = out->fence, .leases = out->items, .n_leases = out->n_items
    };

    http_say(r, 200, &http_out_lock, &lock);
}

static void
explained(struct http_request *r)
{
    struct il__why why;

    if (r->ops[0].status != IL_OK && r->ops[0].status != IL_NOT_HELD) {
        http_fail_op(r, &r->ops[0], NULL);
        return;
    }
    il__why_answer(r->ops[0].key, r->ops, &why);
    http_say(r, 200, &il__wire_why, &why);
}

void
http_lock_why(struct http_request *r)
{
    struct http_why asked = { 0 };
    il_op          *ops   = http_calloc(r, IL__WHY_OPS * sizeof *ops);

    if (ops == NULL || !http_take_query(r, &asked))
        return;
    il__why_ask(asked.key, ops);
    http_do_ops(r, ops, IL__WHY_OPS, 0, explained);
}

void
http_fence_checked(struct http_request *r)
{
    struct http_grant g = { .key = r->ops->key, .fence = r->ops->fence, .is = HTTP_IS_TRUE };

    http_say(r, 200, &http_out_fence, &g);
}
