/*
 * conflict.c: the lock mode conflict table.
 */
#include "core/conflict.h"

#include "core/names.h"

/* For each requested mode, the live modes that conflict with it (compare LockConflicts[] in
 * PostgreSQL). */
static const bool conflicts[IL_MODE_COUNT][IL_MODE_COUNT] = {
#define X(asked, live) [IL_MODE_##asked][IL_MODE_##live] = true,
#include "core/conflicts.def"
#undef X
};

const char *const il__mode_names[IL_MODE_COUNT + 1] = { "exclusive", "shared", "permit" };

const char *
il_mode_name(il_mode mode)
{
    return (unsigned)mode < IL_MODE_COUNT ? il__mode_names[mode] : "unknown";
}

void
il__occupancy_add(struct il__occupancy *occupancy, il_mode mode, uint32_t permits)
{
    CHECK((unsigned)mode < IL_MODE_COUNT);
    CHECK((mode == IL_MODE_PERMIT) == (permits > 0));
    occupancy->n[mode]++;
    if (mode == IL_MODE_PERMIT)
        occupancy->permits = permits;
}

enum il__compatibility
il__conflict(const struct il__occupancy *occupancy, il_mode mode, uint32_t permits)
{
    CHECK((unsigned)mode < IL_MODE_COUNT);
    for (unsigned live = 0; live < IL_MODE_COUNT; live++) {
        if (occupancy->n[live] > 0 && conflicts[mode][live])
            return IL__CONFLICT;
    }
    if (mode != IL_MODE_PERMIT || occupancy->n[IL_MODE_PERMIT] == 0)
        return IL__COMPATIBLE;
    if (occupancy->permits != permits)
        return IL__OTHER_N;
    return occupancy->n[IL_MODE_PERMIT] < permits ? IL__COMPATIBLE : IL__CONFLICT;
}

bool
il__modes_conflict(il_mode live, uint32_t live_permits, il_mode asked, uint32_t asked_permits)
{
    if (conflicts[asked][live])
        return true;
    return asked == IL_MODE_PERMIT && live == IL_MODE_PERMIT && live_permits != asked_permits;
}
