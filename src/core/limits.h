/*
 * limits.h: the numbers of the lock protocol that are not the caller's to choose.
 *
 * All in milliseconds of lease time. The public limits (key length, TTL range, …) are in interlock.h.
 */
#ifndef IL_CORE_LIMITS_H
#define IL_CORE_LIMITS_H

#define IL__WAIT_MS_MAX (INT64_C(366) * 86400000) /* a longer wait is one without a deadline */
#define IL__OFFER_MS 2000          /* a waiter has min(TTL, this) to confirm its turn */
#define IL__WAITER_REFRESH_MS 5000 /* a waiter gives a sign of life at least this often */
#define IL__WAITER_DROP_MS 15000   /* and is dropped after this much silence */
#define IL__ENDED_KEEP_MS 60000    /* how long the end of a (key, holder) is remembered */
#define IL__FENCE_END \
    (UINT64_C(1) << 53)      /* fences and tickets stay below: JSON numbers are exact */
#define IL__ENDED_MAX 65536  /* and how many at most: the newest */
#define IL__SWEEP_MS 1000    /* between two background sweeps */
#define IL__SWEEP_ITEMS 1000 /* default bound of one sweep, per kind of thing */

#define IL__ORDER_EDGES_MAX 4096  /* learned edges per store; beyond that nothing is learned */
#define IL__GRAPH_WAITS_MAX 65536 /* waits one deadlock search looks at before it gives up */

#define IL__NEVER INT64_MAX /* a deadline that does not come */

#endif
