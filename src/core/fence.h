/*
 * fence.h: the single counter of a store: fences of leases, tokens of jobs, answers and builds.
 *
 * No number is ever drawn twice, not even after restoring a backup, which turns the counter back:
 * before drawing, it is raised to the wall clock in microseconds. Numbers issued before the restore
 * are below that, unless the clock was ahead or more than a million numbers a second were drawn.
 * Setting the clock back has no effect: the counter keeps counting.
 */
#ifndef IL_CORE_FENCE_H
#define IL_CORE_FENCE_H

#include "base/base.h"
#include "core/limits.h"

/* A clock this close to the largest fence (from the year 2246 on) would exhaust the range. */
#define IL__FENCE_CLOCK_END (IL__FENCE_END - (UINT64_C(1) << 48))

/* `last`, the last number drawn, raised so that the next is not below the wall clock. */
static inline uint64_t
il__fence_floor(uint64_t last, int64_t wall_us)
{
#ifdef IL_MUTANT_fence_behind_clock
    if (last > 0)
        return last;
#endif
    return wall_us > 0 && (uint64_t)wall_us < IL__FENCE_CLOCK_END ? MAX(last, (uint64_t)wall_us - 1)
                                                                  : last;
}

/* Draw the next number. */
static inline uint64_t
il__fence_next(uint64_t *last)
{
    CHECK(*last + 1 < IL__FENCE_END);
    return ++*last;
}

#endif
