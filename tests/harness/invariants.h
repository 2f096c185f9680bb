/*
 * invariants.h: the invariants of src/core/README.md, checked from outside through list.
 */
#ifndef T_INVARIANTS_H
#define T_INVARIANTS_H

#include "harness/store.h"

#define T_WHY_BYTES 512

/* What was seen of each key so far, for what may only grow. Zero-initialise. */
struct t_watch {
    struct t_watch_key *keys;
    size_t              n_keys;
};

void t_watch_release(struct t_watch *w);

/*
 * Look at every lease and waiter of the tenant; false and a sentence in `why` when an invariant does not
 * hold. `settled` says that a sweep was just completed at this very moment, so that nobody who could be
 * granted may be waiting.
 */
bool t_watch_look(struct t_watch *w, il *h, const char *tenant, bool settled, char why[T_WHY_BYTES]);

#endif
