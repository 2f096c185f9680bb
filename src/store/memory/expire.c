/*
 * expire.c: ends holds and hands keys to the next waiter. The rules are in src/core/README.md, "The
 * ops".
 */
#include "core/lease.h"
#include "core/limits.h"
#include "store/memory/history.h"
#include "store/memory/run.h"

/* Remove a hold from its key and free it. A lease is remembered, unless it was never confirmed. */
void
il__mem_hold_end(struct mem_store *m, struct mem_hold *h, il_lease_state how)
{
    CHECK(il__lease_ended(how));
    if (h->run != NULL)
        il__mem_run_lost(m, h, how);
    if (h->state == IL_LEASE_WAITING) {
        il__mem_wait_end(m, h);
    } else {
        il__mem_list_remove(&h->key->leases, h);
        if (h->state != IL_LEASE_OFFERED || how == IL_LEASE_RELEASED)
            il__ended_add(&m->ended, (struct il__ended_id){ h->key->hash, h->holder_hash },
                          h->fence, how, m->now_ms);
    }
    il__mem_hold_free(m, h);
}

bool
il__mem_hold_is_dead(const struct mem_store *m, const struct mem_hold *h)
{
    return il__lease_due(h->due.at, m->now_ms);
}

struct il__occupancy
il__mem_occupancy(const struct mem_key *k)
{
    struct il__occupancy live = { 0 };

    for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next)
        il__occupancy_add(&live, h->mode, h->permits);
    return live;
}

/* The head waiter's turn has come: it becomes an offered lease and is woken. */
static void
offer(struct mem_store *m, struct mem_key *k, struct mem_hold *h)
{
    il__mem_wait_end(m, h);
    h->state = il__lease_step(h->state, IL__EV_OFFER);
    CHECK(h->state == IL_LEASE_OFFERED);
    h->fence      = il__fence_next(&m->fence);
    h->since_ms   = m->now_ms;
    h->renewed_ms = m->now_ms;
    il__mem_list_append(&k->leases, h);
    il__heap_move(&m->due, &h->due, il__offer_expires_ms(m->now_ms, h->ttl_ms));
    il__board_wake(&m->board, il__board_slot(k->tenant, k->key, h->holder));
}

void
il__mem_offer_next(struct mem_store *m, struct mem_key *k, il_sweep_out *counts)
{
#ifdef IL_MUTANT_last_in_first_out
    struct mem_hold *h = k->waiters.tail;
#else
    struct mem_hold *h = k->waiters.head;
#endif
    struct il__occupancy live = il__mem_occupancy(k);

    while (h != NULL) {
        struct mem_hold *next = h->next;
        if (h->verdict == NULL) {
#ifndef IL_MUTANT_grant_without_recheck
            if (il__conflict(&live, h->mode, h->permits) != IL__COMPATIBLE)
                return; /* first in, first out: no overtaking */
#endif
            il__occupancy_add(&live, h->mode, h->permits);
            offer(m, k, h);
            if (counts != NULL)
                counts->n_offered++;
        }
        h = next;
    }
}

/* An overdue lease ends, or its key settles first. */
static void
expire(struct mem_store *m, struct mem_hold *h)
{
#ifndef IL_MUTANT_expiry_not_recorded
    if (h->state == IL_LEASE_HELD)
        il__mem_history_expired(m, h);
#endif
    if (h->state == IL_LEASE_HELD && h->settle_ms > 0) {
        int64_t opens_ms = h->due.at + h->settle_ms;
        if (h->run != NULL)
            il__mem_run_lost(m, h, IL_LEASE_EXPIRED); /* the key settles without it */
        h->state = il__lease_step(h->state, IL__EV_SETTLE);
        if (!il__lease_due(opens_ms, m->now_ms)) {
            il__heap_move(&m->due, &h->due, opens_ms);
            return;
        }
    }
    il__mem_hold_end(m, h, il__lease_step(h->state, IL__EV_EXPIRE));
}

/* Remove overdue holds from a key and hand it to the next waiters. The key may be left idle; the
 * caller drops it. */
void
il__mem_expire(struct mem_store *m, struct mem_key *k, il_sweep_out *counts)
{
    struct mem_hold *next;
    bool             changed = false;

    if (!il__heap_due(&m->due, m->now_ms))
        return; /* nothing is overdue anywhere */
    for (struct mem_hold *h = k->leases.head; h != NULL; h = next) {
        next = h->next;
        if (!il__mem_hold_is_dead(m, h))
            continue;
        changed = true;
        if (counts != NULL) {
            counts->n_expired++;
            counts->n_runs += h->run != NULL;
        }
        expire(m, h);
    }
    for (struct mem_hold *h = k->waiters.head; h != NULL; h = next) {
        next = h->next;
        if (!il__mem_hold_is_dead(m, h))
            continue;
        changed = true;
        if (counts != NULL) {
            counts->n_dropped++;
            counts->n_runs += h->run != NULL;
        }
        il__mem_hold_end(m, h, il__lease_step(h->state, IL__EV_LEAVE));
    }
    if (changed)
        il__mem_offer_next(m, k, counts);
}
