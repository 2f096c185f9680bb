/*
 * conflict.h: which lock modes are compatible on one key.
 */
#ifndef IL_CORE_CONFLICT_H
#define IL_CORE_CONFLICT_H

#include "base/base.h"

/* The live leases of a key, counted from its lease rows, so that no counter can drift. */
struct il__occupancy {
    uint32_t n[IL_MODE_COUNT]; /* live leases by mode */
    uint32_t permits;          /* N of the live semaphore, when n[IL_MODE_PERMIT] > 0 */
};

/* Add one live lease. */
void il__occupancy_add(struct il__occupancy *occupancy, il_mode mode, uint32_t permits);

enum il__compatibility {
    IL__COMPATIBLE,
    IL__CONFLICT,
    /* a semaphore with another N is live: MISMATCH for a caller, a conflict for a waiter */
    IL__OTHER_N,
};

/* Is a lease of this mode compatible with the live ones? */
enum il__compatibility il__conflict(const struct il__occupancy *occupancy, il_mode mode,
                                    uint32_t permits);

/* Does one live lease conflict with a request? (Permits are compatible until N is reached.) */
bool il__modes_conflict(il_mode live, uint32_t live_permits, il_mode asked, uint32_t asked_permits);

#endif
