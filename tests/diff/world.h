/*
 * world.h: two stores that play the same history, and the comparison of their results.
 */
#ifndef T_WORLD_H
#define T_WORLD_H

#include "diff/history.h"
#include "harness/invariants.h"

/* Run steps[n] on the memory engine and on `engine`; the number of the first step where they differ
 * or an invariant is broken, with the reason in `why`, or n when there is none. */
size_t world_run(const struct t_engine *engine, bool ranked, const struct step *steps, size_t n,
                 char why[T_WHY_BYTES * 4]);

/* How often each op ended how, in all histories so far: does what is generated get anywhere? */
void world_print_counts(FILE *out);

#endif
