/*
 * expire.c: ends overdue holds and hands keys to the next waiter in the SQLite engine. The rules
 * are in src/core/README.md, "The ops". Race-free because all of it happens inside one BEGIN
 * IMMEDIATE transaction: the key cannot change between reading its rows and the commit.
 */
#include "core/lease.h"
#include "store/sqlite/history.h"
#include "store/sqlite/run.h"

struct il__occupancy
il__sq_occupancy(const struct sq_key *k)
{
    struct il__occupancy live = { 0 };

    for (size_t i = 0; i < k->leases.n; i++) {
        if (!k->leases.items[i].gone)
            il__occupancy_add(&live, k->leases.items[i].mode, k->leases.items[i].permits);
    }
    return live;
}

/* The head waiter's turn has come: its row becomes an offered lease, and it is woken after the
 * commit. */
static bool
offer(struct sq_store *s, struct sq_key *k, struct sq_hold *w)
{
    struct sq_hold lease = *w;

    lease.state      = il__lease_step(w->state, IL__EV_OFFER);
    lease.number     = il__fence_next(&s->state.fence);
    lease.since_ms   = s->state.now_ms;
    lease.renewed_ms = s->state.now_ms;
    lease.due_ms     = il__offer_expires_ms(s->state.now_ms, w->ttl_ms);
    if (w->run != 0 && !il__sq_run_offered(s, w->run, lease.number))
        return false;
    return il__sq_waiter_end(s, k, w) && il__sq_lease_add(s, k, &lease) &&
           il__sq_wake(s, il__board_slot(k->tenant, k->key, lease.holder));
}

bool
il__sq_offer_next(struct sq_store *s, struct sq_key *k, il_sweep_out *counts)
{
    struct il__occupancy live = il__sq_occupancy(k);

#ifdef IL_MUTANT_last_in_first_out
    if (!il__sq_waiters_all(s, k))
        return false;
#endif
    for (size_t i = 0;; i++) {
        if (i == k->waiters.n && k->more && !il__sq_waiters_next(s, k))
            return false;
        if (i == k->waiters.n)
            return true;
#ifdef IL_MUTANT_last_in_first_out
        struct sq_hold *w = &k->waiters.items[k->waiters.n - 1 - i];
#else
        struct sq_hold *w = &k->waiters.items[i];
#endif
        if (w->gone || w->verdict[0] != '\0')
            continue;
#ifndef IL_MUTANT_grant_without_recheck
        if (il__conflict(&live, w->mode, w->permits) != IL__COMPATIBLE)
            return true; /* first in, first out: no overtaking */
#endif
        il__occupancy_add(&live, w->mode, w->permits);
        if (!offer(s, k, w))
            return false;
        if (counts != NULL)
            counts->n_offered++;
    }
}

/* An overdue lease ends, or its key settles first. */
static bool
expire(struct sq_store *s, struct sq_key *k, struct sq_hold *h)
{
#ifndef IL_MUTANT_expiry_not_recorded
    if (h->state == IL_LEASE_HELD && !il__sq_history_expired(s, k, h))
        return false;
#endif
    if (h->state == IL_LEASE_HELD && h->settle_ms > 0) {
        /* The key settles without the run. */
        if (h->run != 0 &&
            (!il__sq_run_lost(s, k, h, IL_LEASE_EXPIRED) || !il__sq_lease_detach(s, k, h)))
            return false;
        h->state = il__lease_step(h->state, IL__EV_SETTLE);
        h->due_ms += h->settle_ms;
        if (!il__lease_due(h->due_ms, s->state.now_ms))
            return il__sq_lease_change(s, k, h);
    }
    return il__sq_lease_end(s, k, h, il__lease_step(h->state, IL__EV_EXPIRE));
}

/* End overdue holds among the loaded rows of the key, and hand it to the next waiters if that
 * changed something. */
bool
il__sq_expire(struct sq_store *s, struct sq_key *k, il_sweep_out *counts)
{
    bool changed = false;
    bool overdue;

    for (size_t i = 0; i < k->leases.n; i++) {
        if (!il__lease_due(k->leases.items[i].due_ms, s->state.now_ms))
            continue;
        changed = true;
        if (counts != NULL) {
            counts->n_expired++;
            counts->n_runs += k->leases.items[i].run != 0;
        }
        if (!expire(s, k, &k->leases.items[i]))
            return false;
    }
    if (!il__sq_waiters_overdue(s, k, &overdue) || (overdue && !il__sq_waiters_all(s, k)))
        return false;
    for (size_t i = 0; overdue && i < k->waiters.n; i++) {
        if (!il__lease_due(k->waiters.items[i].due_ms, s->state.now_ms))
            continue;
        changed = true;
        if (counts != NULL) {
            counts->n_dropped++;
            counts->n_runs += k->waiters.items[i].run != 0;
        }
        if (!il__sq_waiter_leave(s, k, &k->waiters.items[i]))
            return false;
    }
    return !changed || il__sq_offer_next(s, k, counts);
}
