/*
 * alloc_inject.h: makes a chosen allocation fail, the library's or SQLite's own.
 */
#ifndef T_ALLOC_INJECT_H
#define T_ALLOC_INJECT_H

#include "harness/check.h"

enum alloc_inject_mode {
    ALLOC_INJECT_ONCE,   /* the n-th allocation fails, later ones work */
    ALLOC_INJECT_FROM_ON /* the n-th fails and all that follow */
};

/* Whose memory. */
enum alloc_inject_of {
    ALLOC_INJECT_OURS,
    ALLOC_INJECT_SQLITE
};

/* Take over both allocators, for good; before anything else uses them. Nothing fails yet. */
void alloc_inject_install(void);

/* From now on count, and fail the n-th allocation (from 1). */
void alloc_inject_arm(enum alloc_inject_of of, enum alloc_inject_mode mode, unsigned n);
/* Nothing fails any more. */
void alloc_inject_disarm(void);
/* Has one failed since alloc_inject_arm()? */
bool alloc_inject_fired(void);

/* What the library has allocated and not freed. */
long alloc_inject_n_live(void);

#endif
