/*
 * deadlock.h: is somebody waiting for himself?
 *
 * The engine delivers what it has (who waits where, who holds what); the reasoning is here, once, for
 * all engines. See "Deadlock" in src/core/README.md for why this finds all and only real deadlocks
 * among units of work.
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
 * How a search reads the store. Each callback adds what it finds with the functions below; false means
 * the store could not be read and ends the search.
 */
struct il__deadlock_source {
    /* Every waiter (not cancelled) of the unit of work `root`, with il__deadlock_add_wanted(). */
    bool (*waits_of)(void *cookie, const char *root, size_t root_bytes, struct il__deadlock *d);
    /* The live leases and the queue of `key`, in ticket order. */
    bool (*queue_of)(void *cookie, const char *key, struct il__deadlock *d);
    /* Optional: waits_of() is going to be asked for all of these, or queue_of(). For engines to which asking for many at once costs less. */
    bool (*expect)(void *cookie, enum il__deadlock_part part, const char *const *names, size_t n);
    void *cookie;
};

void il__deadlock_add_wanted(struct il__deadlock *d, const char *key);
void il__deadlock_add_lease(struct il__deadlock *d, const char *holder, il_mode mode, uint32_t permits);
void il__deadlock_add_wait(struct il__deadlock *d, uint64_t ticket, const char *holder,
                           il_mode mode, uint32_t permits);
/* The unit of a holder of the queue being read waits for no other key: waits_of() is not asked. For engines to which asking costs
 * more than looking. */
void il__deadlock_waits_nowhere_else(struct il__deadlock *d, const char *holder);

/*
 * Search from the units of work that the holders belong to, all at once. IL_OK: no deadlock. IL_DEADLOCK: *ret_ticket is
 * the youngest waiter of the cycle and `why` tells the cycle. IL_NOMEM, IL_STORE: not known.
 */
il_status il__deadlock_find(const struct il__deadlock_source *source, const char *const *holders,
                            size_t n, uint64_t *ret_ticket, struct il__buf *why) MUST_USE;

#endif
