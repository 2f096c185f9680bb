/*
 * order.c: lock order on the memory engine: what the unit of work holds is put to the core's judgement.
 */
#include "core/order.h"

#include "core/key.h"
#include "core/op.h"
#include "store/memory/memory_internal.h"

/* Against the learned order: say so once, the acquire goes on. New: learn it. */
static il_status
judge(struct mem_store *m, il_op *op, const struct mem_hold *h)
{
    struct il__order_hold   hold        = { .key = h->key->key, .place = h->place };
    struct il__buf AUTO_BUF why         = { .n_bytes_max = 4096 };
    const char             *place       = op->in.lock.place;
    enum il__order_verdict  verdict     = il__order_judge(&m->order, op->tenant, &hold, op->key, place, &why);

    if (verdict == IL__ORDER_NEW)
        return il__order_add(&m->order, op->tenant, hold.key, il__key_class_bytes(hold.key), op->key,
                             il__key_class_bytes(op->key), hold.place, place)
                   ? IL_OK
                   : IL_NOMEM;
    if (verdict == IL__ORDER_AGAINST && op->out.detail == NULL) {
        op->out.flags |= IL_OUT_ORDER_WARNING;
        op->out.detail = il__op_strdup(op, il__buf_str(&why));
    }
    return IL_OK;
}

/* Check a new request: IL_ORDER when a rank forbids it, with the reason in the op. */
il_status
il__mem_order(struct mem_store *m, il_op *op)
{
    struct mem_hold *first = il__mem_unit_first(m, op->tenant, op->holder);

    for (struct mem_hold *h = first; h != NULL; h = il__mem_unit_next(h)) {
        struct il__order_hold   hold        = { .key = h->key->key, .place = h->place };
        struct il__buf AUTO_BUF why         = { .n_bytes_max = 4096 };
        bool                    counts      = h->state != IL_LEASE_WAITING && !il__mem_dead(m, h);
        if (counts && !il__order_rank_ok(&m->ranks, &hold, op->key, op->in.lock.place, &why))
            return il__op_end(op, IL_ORDER, il__buf_str(&why));
    }
    for (struct mem_hold *h = first; h != NULL; h = il__mem_unit_next(h)) {
        if (h->state == IL_LEASE_WAITING || il__mem_dead(m, h))
            continue;
        il_status st = judge(m, op, h);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}
