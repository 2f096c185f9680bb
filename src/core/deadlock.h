/*
 * deadlock.h: finds cycles in the waits-for graph.
 *
 * The engine supplies the data (waiters and holders); the algorithm is shared by all engines. See
 * "Deadlock" in src/core/README.md for why it finds all and only real deadlocks among units of
 * work.
 */
#ifndef IL_CORE_DEADLOCK_H
#define IL_CORE_DEADLOCK_H

#include "base/base.h"
#include "base/buf.h"

struct il__deadlock; /* one search */

enum il__deadlock_part {
    IL__DEADLOCK_WAITS,
    IL__DEADLOCK_QUEUES
};

/*
 * How a search reads the store. Each callback adds its findings with the functions below; false
 * means that the store could not be read and stops the search.
 */
struct il__deadlock_source {
    /* Every waiter (not cancelled) of the unit of work `root`, with il__deadlock_add_wanted(). */
    bool (*waits_of)(void *cookie, const char *root, size_t root_bytes, struct il__deadlock *d);
    /* The live leases and the queue of `key`, in ticket order. */
    bool (*queue_of)(void *cookie, const char *key, struct il__deadlock *d);
    /* Optional: waits_of() or queue_of() will be called for all of these. For engines where one
     * combined request is cheaper. */
    bool (*expect)(void *cookie, enum il__deadlock_part part, const char *const *names, size_t n);
    void *cookie;
};

void il__deadlock_add_wanted(struct il__deadlock *d, const char *key);
void il__deadlock_add_lease(struct il__deadlock *d, const char *holder, il_mode mode,
                            uint32_t permits);
void il__deadlock_add_wait(struct il__deadlock *d, uint64_t ticket, const char *holder,
                           il_mode mode, uint32_t permits);
/* The unit of a holder in the queue being read waits for no other key, so waits_of() need not be
 * called. For engines where that call costs more than this check. */
void il__deadlock_waits_nowhere_else(struct il__deadlock *d, const char *holder);

/*
 * Search from the units of work that the holders belong to, all at once. IL_OK: no deadlock.
 * IL_DEADLOCK: *ret_ticket is the youngest waiter of the cycle and `why` describes the cycle.
 * IL_NOMEM, IL_STORE: unknown.
 */
il_status il__deadlock_find(const struct il__deadlock_source *source, const char *const *holders,
                            size_t n, uint64_t *ret_ticket, struct il__buf *why) MUST_USE;

#endif
