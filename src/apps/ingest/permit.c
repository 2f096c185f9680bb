/*
 * permit.c: permits of a host; see permit.h. They are leases in a tenant of our own, so that all
 * tenants share them and no client can hold one.
 */
#include "apps/ingest/permit.h"

#include <poll.h>
#include <stdio.h>

#include "apps/ingest/fetch.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"

#define LOOK_MS 100 /* how often `stop` is asked */
/* How often a waiter reports. Each wait of LOOK_MS is a new one to il_wait(), so that we count. */
#define REPORT_NS (INT64_C(1) * IL__WAITER_REFRESH_MS / 2 * IL__NS_PER_MS)

static il_op
make_op(const struct permit *p, il_op_type type)
{
    return (il_op){
        .type = type, .tenant = FETCH_TENANT, .key = p->key, .holder = p->holder, .fence = p->fence
    };
}

static il_status
acquire(const struct permit *p, il_op *op, uint32_t n, int64_t wait_ms, il_error *reterr)
{
    il_op_release(op);
    *op                 = make_op(p, IL_OP_ACQUIRE);
    op->in.lock.ttl_ms  = PERMIT_TTL_MS;
    op->in.lock.mode    = IL_MODE_PERMIT;
    op->in.lock.permits = n;
    op->in.lock.wait_ms = wait_ms;
    il_status st        = il_apply(p->h, op, 1, reterr);
    return st != IL_OK ? st : op->status;
}

/* Queued: our place in the line moves on by itself. Repeating the op keeps it, and takes what is
 * offered. */
static il_status
await_turn(struct permit *p, il_op *op, uint32_t n, bool (*stop)(void *cookie), void *cookie,
           il_error *reterr)
{
    il_status st = IL_QUEUED;

    while (st == IL_QUEUED) {
        il_status woken    = IL_TIMEOUT;
        int64_t   until_ns = il__clock_boot_ns() + REPORT_NS;
        bool      stopped  = stop(cookie);
        while (woken == IL_TIMEOUT && !stopped && il__clock_boot_ns() < until_ns) {
            woken   = il_wait(p->h, op, LOOK_MS);
            stopped = stop(cookie);
        }
        if (stopped || (woken != IL_OK && woken != IL_TIMEOUT)) { /* leave the line */
            IGNORE(acquire(p, op, n, 0, NULL));
            p->fence = op->status == IL_OK ? op->out.fence : 0;
            if (p->fence != 0)
                il__permit_release(p); /* it was our turn just now */
            return il__error_set(reterr, IL_CANCELLED, "asked to stop");
        }
        st = acquire(p, op, n, IL_FOREVER, reterr);
    }
    return st;
}

/* Of how many the key is in use now. Whoever insisted on another number would have to find the key
 * free between two looks, and on a busy host never would. */
static uint32_t
number_in_use(const struct permit *p, uint32_t n)
{
    il_op op = make_op(p, IL_OP_GET);

    op.holder = NULL;
    if (il_apply(p->h, &op, 1, NULL) == IL_OK && op.status == IL_OK && op.out.n_items > 0 &&
        op.out.items[0].permits > 0)
        n = op.out.items[0].permits;
    il_op_release(&op);
    return n;
}

il_status
il__permit_take(struct permit *p, il *h, const char *key, uint32_t n, bool (*stop)(void *cookie),
                void *cookie, il_error *reterr)
{
    il_op     op     = { .type = IL_OP_NONE };
    il_status st     = IL_MISMATCH;
    uint32_t  number = n;

    *p = (struct permit){ .h = h };
    (void)snprintf(p->key, sizeof p->key, "%s", key);
    while (st == IL_MISMATCH || st == IL_HELD) {
        if (stop(cookie)) {
            st = il__error_set(reterr, IL_CANCELLED, "asked to stop");
            break;
        }
        st = il_uuid(p->holder);
        if (st != IL_OK) {
            st = il__error_set(reterr, st, "cannot read random bytes");
            break;
        }
        st = acquire(p, &op, number, IL_FOREVER, reterr);
        if (st == IL_QUEUED)
            st = await_turn(p, &op, number, stop, cookie, reterr);
        if (st == IL_MISMATCH)
            number = number_in_use(p, n);
        if (st == IL_MISMATCH || st == IL_HELD)
            (void)poll(NULL, 0, LOOK_MS); /* no line can be joined yet: look again */
    }
    if (st == IL_OK)
        p->fence = op.out.fence;
    else if (st != IL_CANCELLED && op.status == st)
        (void)il__error_set(reterr, st, "cannot get a permit of %s: %s", key,
                            op.out.detail != NULL ? op.out.detail : il_status_text(st));
    il_op_release(&op);
    return st;
}

void
il__permit_release(struct permit *p)
{
    il_op op = make_op(p, IL_OP_RELEASE);

    if (p->fence != 0)
        IGNORE(il_apply(p->h, &op, 1, NULL)); /* else it expires */
    il_op_release(&op);
    p->fence = 0;
}
