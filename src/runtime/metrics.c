/*
 * metrics.c: counters of a handle; the table is metrics.def.
 */
#include "runtime/handle.h"

static const struct {
    const char *name;
    const char *help;
} rows[] = {
#define X(id, name, help) { name, help },
#include "runtime/metrics.def"
#undef X
};

unsigned
il__counter_shard(void)
{
    static atomic_uint            n_threads;
    static _Thread_local unsigned shard; /* counted from 1; 0 = not chosen yet */

    if (shard == 0)
        shard = MIN(1 + atomic_fetch_add(&n_threads, 1), IL__COUNTER_SHARDS);
    return shard - 1;
}

void
il_metrics(il *h, il_metric_fn *fn, void *cookie)
{
    if (h == NULL || fn == NULL)
        return;
    for (size_t i = 0; i < IL__METRIC_COUNT; i++) {
        uint64_t sum = 0;
        for (size_t shard = 0; shard < IL__COUNTER_SHARDS; shard++)
            sum += atomic_load_explicit(&h->counters[shard].values[i], memory_order_relaxed);
        fn(cookie, rows[i].name, rows[i].help, sum);
    }
}

static void
count_acquire(il *h, const il_op *op)
{
    if (op->status == IL_OK)
        il__count(h, IL__METRIC_acquired, 1);
    if (op->status == IL_HELD)
        il__count(h, IL__METRIC_held, 1);
    if (op->status == IL_QUEUED)
        il__count(h, IL__METRIC_queued, 1);
    if ((op->out.flags & IL_OUT_ORDER_WARNING) != 0)
        il__count(h, IL__METRIC_order_warned, 1);
}

void
il__count_op(il *h, const il_op *op)
{
    if (op->type == IL_OP_ACQUIRE)
        count_acquire(h, op);
    if (op->type == IL_OP_RENEW && op->status == IL_OK)
        il__count(h, IL__METRIC_renewed, 1);
    if (op->type == IL_OP_RELEASE && op->status == IL_OK)
        il__count(h, IL__METRIC_released, 1);
    if (op->type == IL_OP_SWEEP) {
        il__count(h, IL__METRIC_sweeps, 1);
        il__count(h, IL__METRIC_expired, op->out.sweep.n_expired);
        il__count(h, IL__METRIC_deadlocks, op->out.sweep.n_deadlocks);
    }
    if (op->status == IL_LOST)
        il__count(h, IL__METRIC_lost, 1);
    if (op->status == IL_STALE)
        il__count(h, IL__METRIC_stale, 1);
    if (op->status == IL_DEADLOCK)
        il__count(h, IL__METRIC_deadlocks, 1);
    if (op->status == IL_ORDER)
        il__count(h, IL__METRIC_order_refused, 1);
}
