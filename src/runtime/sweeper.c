/*
 * sweeper.c: the thread that sweeps once a second. It is a thread of its own, since a sweep can
 * take longer than a lease lasts.
 */
#include "base/clock.h"
#include "base/thread.h"
#include "core/limits.h"
#include "runtime/keeper_internal.h"

#define SWEEPS_AT_ONCE 16 /* sweeps in a row while there is more to do */
#define GIVE_WAY_MS 2     /* between them */

/*
 * May a sweep begin, assuming it takes as long as the last one? Where calls are serialised, a
 * renewal waits until the sweep is over, so a lease with less than twice that time left goes first.
 */
static bool
may_sweep(il *h, int64_t took_ns)
{
    int64_t until_ns = il__clock_boot_ns() + 2 * took_ns; /* by then it has been renewed */
    bool    one_lane = h->n_execs == 1 && (h->store->ops->caps & IL__STORE_DIRECT) == 0;

    il__mutex_lock(&h->mutex);
    bool may = !h->closing;
    for (const il_lease *l = h->leases; may && one_lane && l != NULL; l = l->next)
        may = !l->renewed || atomic_load(&l->status) != IL_OK || il__lease_stop_ns(l) > until_ns;
    il__mutex_unlock(&h->mutex);
    return may;
}

/* Let calls that wait behind a sweep go now, instead of together with the next one. */
static void
give_way(il *h)
{
    il__mutex_lock(&h->mutex);
    if (!h->closing)
        (void)il__cond_wait(&h->stopped, &h->mutex, GIVE_WAY_MS * IL__NS_PER_MS);
    il__mutex_unlock(&h->mutex);
}

/* Sweep once, on the last lane, where it disturbs others least. True: there is more to do. */
static bool
sweep_once(il *h)
{
    il_op     op  = { .type = IL_OP_SWEEP };
    il_op    *ptr = &op;
    size_t    n_done;
    il_status st;

    (void)il__ops_prepare(h, &op, &ptr, 1);
    if ((h->store->ops->caps & IL__STORE_DIRECT) != 0)
        st = il__store_apply(h->store, &ptr, 1, &n_done, NULL);
    else
        st = il__ops_apply_on(h, h->n_execs - 1, &ptr, 1, &n_done, NULL);
    il__ops_done(h, &op, 1, st);
    /* An unreachable store is swept later, or by another process. */
    bool more = st == IL_OK && (op.out.flags & IL_OUT_MORE) != 0;
    il_op_release(&op);
    return more;
}

/* *took_ns: how long the last sweep took, 0 = not known. */
static void
sweep(il *h, int64_t *took_ns)
{
    bool more = il__store_overdue(h->store);

    for (unsigned i = 0; more && i < SWEEPS_AT_ONCE; i++) {
        int64_t began_ns = il__clock_boot_ns();
        if (!may_sweep(h, *took_ns)) {
            *took_ns /= 2; /* it may have been an exception: do not stop sweeping */
            return;
        }
        more     = sweep_once(h);
        *took_ns = il__clock_boot_ns() - began_ns;
        if (more)
            give_way(h);
    }
}

static void *
sweeper_main(void *arg)
{
    il     *h       = arg;
    int64_t took_ns = 0;
    int64_t next_ns = il__clock_boot_ns() + IL__SWEEP_MS * IL__NS_PER_MS;

    il__mutex_lock(&h->mutex);
    while (!h->closing) {
        int64_t now_ns = il__clock_boot_ns();
        if (now_ns < next_ns) {
            (void)il__cond_wait(&h->stopped, &h->mutex, next_ns - now_ns);
            continue;
        }
        il__mutex_unlock(&h->mutex);
        sweep(h, &took_ns);
        next_ns = now_ns + IL__SWEEP_MS * IL__NS_PER_MS;
        il__mutex_lock(&h->mutex);
    }
    il__mutex_unlock(&h->mutex);
    return NULL;
}

int
il__sweeper_start(il *h)
{
    il__cond_init(&h->stopped);
    int rc = il__thread_start(&h->sweeper, sweeper_main, h);
    if (rc != 0)
        CHECK(pthread_cond_destroy(&h->stopped) == 0);
    h->sweeper_started = rc == 0;
    return rc;
}
