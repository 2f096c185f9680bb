/*
 * fair.h: fair queueing between tenants. Each gets its turn, however much the others have queued.
 *
 * Start-time fair queueing: an entry is tagged with its tenant's virtual time, which advances by
 * the cost of each entry but never lags behind the queue's own time, the tag of the last entry
 * taken. The smallest tag is taken first. So entries of a light tenant are tagged just ahead of the
 * queue's time and taken next, while a heavy tenant waits behind its own entries. Entries of one
 * tenant keep their order. Tenants are distinguished by a hash: two that collide share a turn.
 */
#ifndef IL_RUNTIME_FAIR_H
#define IL_RUNTIME_FAIR_H

#include "base/heap.h"

#define IL__FAIR_SHARES 256

/*
 * May a tenant with n_own places of a pool take one of the n_free free ones? Only while it has
 * fewer than are free: so one tenant gets at most half of a pool, a second one half of the rest,
 * and the next tenant still finds a place, however long the others keep theirs.
 */
static inline bool
il__fair_may_take(size_t n_own, size_t n_free)
{
#ifdef IL_MUTANT_pool_without_shares
    return n_free > 0;
#endif
    return n_own < n_free;
}

struct il__fair {
    struct il__heap heap; /* by tag */
    int64_t         now;
    int64_t         ahead[IL__FAIR_SHARES];
};

/* Which share is this tenant's? */
unsigned il__fair_share(const char *tenant);

/* Add a node that is in no heap. `cost` is at least 1. */
void il__fair_add(struct il__fair *f, struct il__heap_node *node, unsigned share, size_t cost);
/* Remove the first node, `f->heap.first`. */
void il__fair_take(struct il__fair *f);

#endif
