/*
 * op.c: one-line helpers for ops, and their results as text.
 */
#include "harness/store.h"

#include <inttypes.h>
#include <stdio.h>

il_op
t_op(il_op_type type, const char *key, const char *holder, uint64_t fence, struct t_args a)
{
    il_op op = {
        .type = type, .flags = a.flags, .tenant = a.tenant, .holder = holder, .fence = fence
    };

    if (type == IL_OP_LIST || type == IL_OP_SWEEP || type == IL_OP_ORDER_LIST) {
        op.in.list = (il_list_in){ .prefix = key, .cursor = a.cursor, .limit = a.limit };
        return op;
    }
    op.key     = key;
    op.in.lock = (il_lock_in){
        .ttl_ms    = a.ttl_ms,
        .wait_ms   = a.wait_ms,
        .settle_ms = a.settle_ms,
        .mode      = a.mode,
        .permits   = a.permits,
        .meta      = a.meta,
        .place     = a.place,
        .reason    = a.reason,
    };
    return op;
}

const il_op *
t_op_run(struct t_store *s, il *h, il_op op)
{
    il_op   *result = &s->results[s->i_result++ % T_RESULTS_MAX];
    il_error err    = { 0 };

    il_op_release(result);
    *result = op;
    if (il_apply(h != NULL ? h : t_handle(s), result, 1, &err) != IL_OK)
        T_FAIL("il_apply: %s: %s", il_status_name(err.status), err.message);
    return result;
}

void
t_batch(struct t_store *s, il_op *ops, size_t n)
{
    il_error err = { 0 };

    if (il_apply(t_handle(s), ops, n, &err) != IL_OK)
        T_FAIL("il_apply of %zu: %s: %s", n, il_status_name(err.status), err.message);
}

const char *
t_op_text(const il_op *op, char out[T_OP_TEXT_BYTES])
{
    bool lists = op->type == IL_OP_LIST || op->type == IL_OP_SWEEP || op->type == IL_OP_ORDER_LIST;
    const char *key    = lists ? op->in.list.prefix : op->key;
    const char *holder = op->holder != NULL ? op->holder : "";
    const char *detail = op->out.detail != NULL ? op->out.detail : "";
    int         n;

    n = snprintf(out, T_OP_TEXT_BYTES,
                 "%s '%.80s' by '%.80s' fence %" PRIu64 ": %s, fence %" PRIu64 ", flags %x, "
                 "position %u, remaining %" PRId64 " ms, detail '%s'",
                 il_op_name(op->type), key != NULL ? key : "", holder, op->fence,
                 il_status_name(op->status), op->out.fence, op->out.flags, op->out.position,
                 op->out.remaining_ms, detail);
    for (size_t i = 0; i < op->out.n_items && n > 0 && n < T_OP_TEXT_BYTES; i++) {
        const il_lease_info *it = &op->out.items[i];
        n += snprintf(out + n, (size_t)(T_OP_TEXT_BYTES - n),
                      "\n    '%.80s' %s %s by '%.80s' fence %" PRIu64 " ticket %" PRIu64
                      " remaining %" PRId64 " ms",
                      it->key, il_lease_state_name(it->state), il_mode_name(it->mode), it->holder,
                      it->fence, it->ticket, it->remaining_ms);
    }
    return out;
}

const il_op *
t_is(const il_op *op, il_status status, const char *file, int line)
{
    char text[T_OP_TEXT_BYTES];

    if (op->status != status)
        t_fail(file, line, "expected %s: %s", il_status_name(status), t_op_text(op, text));
    return op;
}

il_sweep_out
t_sweep_all(struct t_store *s, uint32_t limit)
{
    il_sweep_out sum = { 0 };

    for (unsigned i = 0; i < 10000; i++) {
        const il_op *op = T_IS(t_sweep(s, .limit = limit), IL_OK);
        sum.n_expired += op->out.sweep.n_expired;
        sum.n_offered += op->out.sweep.n_offered;
        sum.n_dropped += op->out.sweep.n_dropped;
        sum.n_deadlocks += op->out.sweep.n_deadlocks;
        sum.n_runs += op->out.sweep.n_runs;
        sum.n_jobs += op->out.sweep.n_jobs;
        sum.n_ticks += op->out.sweep.n_ticks;
        sum.n_purged += op->out.sweep.n_purged;
        if ((op->out.flags & IL_OUT_MORE) == 0)
            return sum;
    }
    T_FAIL("10,000 sweeps with limit %u and still MORE", limit);
}

size_t
t_count(struct t_store *s, const char *key, uint32_t flags)
{
    const il_op *op = T_IS(t_list(s, key, .flags = flags, .limit = IL_PAGE_ITEMS_MAX), IL_OK);
    size_t       n  = 0;

    for (size_t i = 0; i < op->out.n_items; i++)
        n += strcmp(op->out.items[i].key, key) == 0;
    return n;
}

static const il_lease_info *
find(const il_op *op, const char *key, const char *holder)
{
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info *it = &op->out.items[i];
        if (strcmp(it->key, key) == 0 && strcmp(it->holder, holder) == 0)
            return it;
    }
    return NULL;
}

const il_lease_info *
t_lease_of(struct t_store *s, const char *key, const char *holder)
{
    return find(t_get(s, key), key, holder);
}

const il_lease_info *
t_waiter_of(struct t_store *s, const char *key, const char *holder)
{
    const il_op *op =
        T_IS(t_list(s, key, .flags = IL_LIST_WAITERS, .limit = IL_PAGE_ITEMS_MAX), IL_OK);

    return find(op, key, holder);
}

void
t_quiet(il *h, il_op *op)
{
    int n = 0;

    /* Behind a server the news of what was seen already may come a moment later: that is worth a
     * look, not an error. */
    while (il_wait(h, op, 50) == IL_OK) {
        T_LESS(n++, 20);
        il_op_release(op);
        T_EQ(il_apply(h, op, 1, NULL), IL_OK);
    }
}
