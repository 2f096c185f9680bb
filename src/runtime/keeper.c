/*
 * keeper.c: keeps leases: what becomes of a lease, and the three threads of a handle that holds
 * leases or waits for some, started and stopped here.
 *
 * Locks, runs, claims and builds are kept alike: each has a lease, and a kind that defines the op
 * that renews it. The renewer (renewer.c) renews them, the sweeper (sweeper.c) sweeps, the watchdog
 * (watchdog.c) compares local deadlines with the clock. The holder's work cannot block any of them.
 *
 * A lease that a thread uses outside the mutex is pinned; il__keeper_remove() waits until it is
 * not, so a callback never sees a freed lease.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/lease.h"
#include "runtime/keeper_internal.h"

#define USELESS_MS 40 /* a lease that lasts no longer than this */

/* ---- what becomes of a lease ----------------------------------------------------------------- */

void
il__lease_extended(il_lease *lease, int64_t sent_ns, int64_t remaining_ms)
{
    int64_t known_ns = atomic_load(&lease->deadline_ns);
    /* With so little time left (the answer to a repeated claim, long after the first) it is
     * over. */
    int64_t deadline_ns =
        remaining_ms > USELESS_MS ? il__lease_local_deadline_ns(sent_ns, remaining_ms) : sent_ns;

    /* An answer overtaken by a later one must not move the deadline back, and a late answer must
     * not revive a lease whose deadline has passed: its holder may already know. */
    if (known_ns != 0 && il__clock_boot_ns() >= known_ns)
        return;
    while (deadline_ns > known_ns &&
           !atomic_compare_exchange_weak(&lease->deadline_ns, &known_ns, deadline_ns))
        ;
}

void
il__lease_lose_locked(il_lease *lease, const char *why)
{
    uint64_t one      = 1;
    int      expected = IL_OK;

    CHECK(il__mutex_held(&lease->h->mutex));
    /* reported even if there was no memory for the reason */
    if (why == NULL || why[0] == '\0')
        why = il_status_text(IL_LOST);
    if (!atomic_compare_exchange_strong(&lease->status, &expected, IL_LOST))
        return;
    (void)snprintf(lease->why, sizeof lease->why, "%s", why); /* cut when long */
    if (write(lease->fd, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
    il__watchdog_poke(lease->h);
}

void
il__lease_lost(il_lease *lease, const char *why)
{
    il__mutex_lock(&lease->h->mutex);
    il__lease_lose_locked(lease, why);
    il__mutex_unlock(&lease->h->mutex);
}

void
il__lease_cancel_locked(il_lease *lease, const char *reason)
{
    CHECK(il__mutex_held(&lease->h->mutex));
    if (lease->cancel[0] != '\0')
        return; /* the first reason stays */
    if (reason == NULL || reason[0] == '\0')
        reason = il_status_text(IL_CANCELLED);
    (void)snprintf(lease->cancel, sizeof lease->cancel, "%s", reason); /* cut when long */
    il__watchdog_poke(lease->h);
}

void
il__lease_cancel(il_lease *lease, const char *reason)
{
    il__mutex_lock(&lease->h->mutex);
    il__lease_cancel_locked(lease, reason);
    il__mutex_unlock(&lease->h->mutex);
}

void
il__lease_answered(il_lease *lease, il_status st, const il_op *op)
{
    if (st == IL_OK && (op->out.flags & IL_OUT_CANCEL) != 0)
        il__lease_cancel(lease, op->out.detail);
    if (st == IL_STALE || st == IL_NOT_FOUND)
        il__lease_lost(lease, op->out.detail);
}

void
il__lease_unpin(il *h, il_lease *lease)
{
    CHECK(lease->n_pins > 0);
    if (--lease->n_pins == 0)
        CHECK(pthread_cond_broadcast(&h->unpinned) == 0);
}

int64_t
il__lease_stop_ns(const il_lease *l)
{
    return il_lease_deadline_ns(l) - l->stop_ms * IL__NS_PER_MS;
}

/* ---- starting, stopping, adding, removing ---------------------------------------------------- */

il_status
il__keeper_start(il *h, bool with_leases, il_error *reterr)
{
    int rc = 0;

    il__mutex_lock(&h->mutex);
    if (with_leases && !h->watchdog_started)
        rc = il__watchdog_start(h);
    if (rc == 0 && with_leases && !h->renewer_started)
        rc = il__renewer_start(h);
    if (rc == 0 && h->sweeps && !h->sweeper_started)
        rc = il__sweeper_start(h);
    il__mutex_unlock(&h->mutex);
    if (rc != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the lease threads: %s", strerror(rc));
    return IL_OK;
}

void
il__keeper_stop(il *h)
{
    il__mutex_lock(&h->mutex);
    h->closing = true;
    if (h->sweeper_started)
        CHECK(pthread_cond_signal(&h->stopped) == 0);
    il__mutex_unlock(&h->mutex);
    il__word_wake(&h->renewer_word);
    il__watchdog_poke(h);
    if (h->sweeper_started) {
        CHECK(pthread_join(h->sweeper, NULL) == 0);
        CHECK(pthread_cond_destroy(&h->stopped) == 0);
    }
    if (h->renewer_started)
        CHECK(pthread_join(h->renewer, NULL) == 0);
    if (h->watchdog_started)
        CHECK(pthread_join(h->watchdog, NULL) == 0);
    if (h->watch_fd >= 0)
        (void)close(h->watch_fd);
}

void
il__keeper_add(il *h, il_lease *lease)
{
    il__mutex_lock(&h->mutex);
    int64_t deadline_ns = il_lease_deadline_ns(lease);
    lease->renew_at_ns  = il__clock_boot_ns() + lease->ttl_ms / 3 * IL__NS_PER_MS;
    lease->next         = h->leases;
    h->leases           = lease;
    bool earlier        = lease->renewed && lease->renew_at_ns < h->renewer_wakes_ns;
    il__mutex_unlock(&h->mutex);
    CHECK(deadline_ns > 0);
    if (earlier)
        il__word_wake(&h->renewer_word);
    il__watchdog_poke(h);
}

void
il__keeper_remove(il *h, il_lease *lease)
{
    il__mutex_lock(&h->mutex);
    lease->told        = true; /* no more notifications */
    lease->cancel_told = true;
    for (il_lease **p = &h->leases; *p != NULL; p = &(*p)->next) {
        if (*p == lease) {
            *p = lease->next;
            break;
        }
    }
    while (lease->n_pins > 0)
        (void)il__cond_wait(&h->unpinned, &h->mutex, -1);
    il__mutex_unlock(&h->mutex);
}
