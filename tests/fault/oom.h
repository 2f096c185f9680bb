/*
 * oom.h: makes a chosen allocation fail, the library's or SQLite's own.
 */
#ifndef T_OOM_H
#define T_OOM_H

#include "harness/check.h"

enum oom_mode {
    OOM_ONCE,   /* the n-th allocation fails, later ones work */
    OOM_FROM_ON /* the n-th fails and all that follow */
};

/* Whose memory. */
enum oom_of {
    OOM_OURS,
    OOM_SQLITE
};

/* Take over both allocators, for good; before anything else uses them. Nothing fails yet. */
void oom_install(void);

/* From now on count, and fail the n-th allocation (from 1). */
void oom_arm(enum oom_of of, enum oom_mode mode, unsigned n);
/* Nothing fails any more. */
void oom_disarm(void);
/* Has one failed since oom_arm()? */
bool oom_fired(void);

/* What the library has allocated and not freed. */
long oom_n_live(void);

#endif
