/*
 * order.c: lock order in the memory engine. It collects what the unit of work holds; the core
 * checks the order.
 */
#include "core/order.h"

#include <stdlib.h>

#include "core/op.h"
#include "store/memory/memory_internal.h"

/* The next lease of the unit of work, starting at `h`. */
static struct mem_hold *
next_live(const struct mem_store *m, struct mem_hold *h)
{
    while (h != NULL && (h->state == IL_LEASE_WAITING || il__mem_hold_is_dead(m, h)))
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

    unsigned verdict = il__order_judge(&m->order, op->tenant, &hold, op->key, place, &why);
    bool     against = (verdict & IL__ORDER_AGAINST) != 0;
    if ((verdict & IL__ORDER_LEARN) != 0) {
        struct il__order_seen e = { .tenant      = op->tenant,
                                    .first       = hold.key,
                                    .then        = op->key,
                                    .first_place = hold.place,
                                    .then_place  = place,
                                    .against     = against };
        IGNORE(il__order_add(&m->order, &e));
    }
    if (against && op->out.detail == NULL) {
        op->out.flags |= IL_OUT_ORDER_WARNING;
        op->out.detail = il__op_strdup(op, il__buf_str(&why));
    }
}

/* By key, then by fence: the hold that is judged first gives its place to the edge. */
static int
compare_holds(const void *a, const void *b)
{
    const struct mem_hold *const *x = a;
    const struct mem_hold *const *y = b;
    int                           c = strcmp((*x)->key->key, (*y)->key->key);

    return c != 0 ? c : ((*x)->fence > (*y)->fence) - ((*x)->fence < (*y)->fence);
}

/* Before a new request is granted, or after it was queued: learn from what the unit of work holds,
 * and report a violation of the known order. If memory runs out, the edge is learned another
 * time. */
void
il__mem_learn(struct mem_store *m, il_op *op, const struct mem_names *names)
{
    struct mem_hold *h = il__mem_unit_first(m, names->unit, op->tenant, op->holder);
    struct mem_hold *holds[IL__ORDER_HOLDS_MAX];
    size_t           n = 0;

    for (h = next_live(m, h); h != NULL && n < IL__ORDER_HOLDS_MAX;
         h = next_live(m, il__mem_unit_next(h)))
        holds[n++] = h;
    if (n > 1)
        qsort(holds, n, sizeof *holds, compare_holds);
    for (size_t i = 0; i < n; i++)
        judge(m, op, holds[i]);
}
