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

void
il_metrics(il *h, il_metric_fn *fn, void *cookie)
{
    if (h == NULL || fn == NULL)
        return;
    for (size_t i = 0; i < IL__METRIC_COUNT; i++)
        fn(cookie, rows[i].name, rows[i].help, atomic_load(&h->metrics[i]));
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
