/*
 * presence.c: tells whether a server executes this class of runs on the store. Each such server
 * holds a shared lock, which `interlock trigger` checks: without a server a run would wait with no
 * explanation.
 *
 * The lock is in a tenant of its own (work_kind.presence), whose name no real tenant can have. A
 * server that died counts as alive until its lease expires.
 */
#include "apps/work/work_internal.h"
#include "base/clock.h"

#define KEY "serving"
#define TTL_MS 30000
#define RENEW_NS (10 * WORK_NS_PER_S)

static il_status
apply(struct work *w, il_op_type type)
{
    il_op op = { .type = type, .tenant = w->kind->presence, .key = KEY, .holder = w->instance };

    op.fence          = type != IL_OP_ACQUIRE ? w->presence_fence : 0;
    op.in.lock.ttl_ms = type != IL_OP_RELEASE ? TTL_MS : 0;
    op.in.lock.mode   = type == IL_OP_ACQUIRE ? IL_MODE_SHARED : IL_MODE_EXCLUSIVE;
    il_status st      = il_apply(w->o.h, &op, 1, NULL);
    if (st == IL_OK)
        st = op.status;
    if (st == IL_OK && type == IL_OP_ACQUIRE)
        w->presence_fence = op.out.fence;
    il_op_release(&op);
    return st;
}

void
work_presence_tell(struct work *w, int64_t now_ns)
{
    if (now_ns < w->presence_ns)
        return;
    w->presence_ns = now_ns + RENEW_NS;
    if (w->presence_fence != 0 && apply(w, IL_OP_RENEW) == IL_OK)
        return;
    w->presence_fence = 0; /* never held, or lost: the store was unreachable for long */
    if (apply(w, IL_OP_ACQUIRE) != IL_OK)
        w->presence_ns = now_ns; /* retried at the next check */
}

void
work_presence_end(struct work *w)
{
    if (w->presence_fence != 0)
        IGNORE(apply(w, IL_OP_RELEASE) != IL_OK); /* then it expires */
}

bool
work_is_served(il *h, const struct work_kind *kind)
{
    il_op op     = { .type = IL_OP_GET, .tenant = kind->presence, .key = KEY };
    bool  served = il_apply(h, &op, 1, NULL) != IL_OK; /* unknown: then no warning */

    for (size_t i = 0; i < op.out.n_items; i++)
        served = served || op.out.items[i].state == IL_LEASE_HELD;
    il_op_release(&op);
    return served;
}
