/*
 * order.c: lock order in the memory engine. It collects what the unit of work holds; the core
 * checks the order.
 */
#include "core/order.h"

#include "core/key.h"
#include "core/op.h"
#include "store/memory/memory_internal.h"

/* The next lease of the unit of work, starting at `h`. */
static struct mem_hold *
next_live(const struct mem_store *m, struct mem_hold *h)
{
    while (h != NULL && (h->state == IL_LEASE_WAITING || il__mem_dead(m, h)))
        h = il__mem_unit_next(h);
    return h;
}

/* Does a declared rank allow a new request? If not, sets the op's status and reason. */
bool
il__mem_rank_ok(struct mem_store *m, il_op *op, const struct mem_names *names)
{
    struct mem_hold *h =
        m->ranks.n == 0 ? NULL : il__mem_unit_first(m, names->unit, op->tenant, op->holder);

    for (h = next_live(m, h); h != NULL; h = next_live(m, il__mem_unit_next(h))) {
        struct il__order_hold   hold = { .key = h->key->key, .place = h->place };
        struct il__buf AUTO_BUF why  = { .n_bytes_max = 4096 };
        if (!il__order_rank_ok(&m->ranks, &hold, op->key, op->in.lock.place, &why)) {
            il__op_end(op, IL_ORDER, il__buf_str(&why));
            return false;
        }
    }
    return true;
}

static void
judge(struct mem_store *m, il_op *op, const struct mem_hold *h)
{
    struct il__order_hold   hold  = { .key = h->key->key, .place = h->place };
    struct il__buf AUTO_BUF why   = { .n_bytes_max = 4096 };
    const char             *place = op->in.lock.place;

    enum il__order_verdict verdict =
        il__order_judge(&m->order, op->tenant, &hold, op->key, place, &why);
    if (verdict == IL__ORDER_NEW)
        IGNORE(il__order_add(&m->order, op->tenant, hold.key, il__key_class_bytes(hold.key),
                             op->key, il__key_class_bytes(op->key), hold.place, place));
    if (verdict == IL__ORDER_AGAINST && op->out.detail == NULL) {
        op->out.flags |= IL_OUT_ORDER_WARNING;
        op->out.detail = il__op_strdup(op, il__buf_str(&why));
    }
}

/* Before a new request is granted, or after it was queued: learn from what the unit of work holds,
 * and report a violation of the known order. If memory runs out, the edge is learned another
 * time. */
void
il__mem_learn(struct mem_store *m, il_op *op, const struct mem_names *names)
{
    struct mem_hold *h = il__mem_unit_first(m, names->unit, op->tenant, op->holder);
    unsigned         n = 0;

    for (h = next_live(m, h); h != NULL && n < IL__ORDER_HOLDS_MAX;
         h = next_live(m, il__mem_unit_next(h)), n++)
        judge(m, op, h);
}
