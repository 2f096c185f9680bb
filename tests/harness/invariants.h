/*
 * invariants.h: the invariants of src/core/README.md, runs.md, queue.md, once.md and cache.md,
 * checked from outside: through listings and the results of ops.
 */
#ifndef T_INVARIANTS_H
#define T_INVARIANTS_H

#include "harness/seen.h"
#include "harness/store.h"

#define T_WHY_BYTES 512

/* What was seen so far, for what may only grow or never change. Zero-initialise. */
struct t_watch {
    struct t_watch_key *keys; /* of leases */
    size_t              n_keys;
    struct t_seen_map   seen;
};

void t_watch_release(struct t_watch *w);

/*
 * Look at all leases, waiters, runs, jobs and queues of the tenant; false and a sentence in `why`
 * when an invariant does not hold. `settled` says that a sweep was just completed at this very
 * moment, so that nobody who could be granted may be waiting. Nothing else may happen to the store
 * meanwhile.
 */
bool t_watch_look(struct t_watch *w, il *h, const char *tenant, bool settled,
                  char why[T_WHY_BYTES]);

/* The same for what one op was told at `now_ms` of lease time: tokens grow, a rate is kept, a job
 * is finished by one token. */
bool t_watch_op(struct t_watch *w, const il_op *op, int64_t now_ms, char why[T_WHY_BYTES]);

#endif
