/*
 * conflict.h: which modes get along on one key.
 */
#ifndef IL_CORE_CONFLICT_H
#define IL_CORE_CONFLICT_H

#include "base/base.h"

/* What is live on a key, counted from its lease rows; there is no counter that could drift. */
struct il__load {
    uint32_t n[IL_MODE_COUNT]; /* live leases by mode */
    uint32_t permits;          /* N of the live semaphore, when n[IL_MODE_PERMIT] > 0 */
};

/* Count one live lease in. */
void il__load_add(struct il__load *load, il_mode mode, uint32_t permits);

enum il__verdict {
    IL__COMPATIBLE,
    IL__CONFLICT,
    IL__OTHER_N, /* a semaphore with another N is live: MISMATCH for a caller, a conflict for a waiter */
};

/* Could a lease of this mode join what is live? */
enum il__verdict il__conflict(const struct il__load *load, il_mode mode, uint32_t permits);

/* Does one live lease stand in the way of a request? (Permits get along until N is reached.) */
bool il__modes_conflict(il_mode live, uint32_t live_permits, il_mode asked, uint32_t asked_permits);

#endif
