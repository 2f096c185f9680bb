/*
 * limits.h: protocol constants that callers cannot configure.
 *
 * Names end in their unit: _MS, _BYTES, _CHARS; others are counts, except IL__FENCE_END,
 * IL__TICK_NEVER and IL__NEVER. Times in a store are lease time; those of schedules
 * (IL__TICK_LATE_MS, IL__TIME_MS_MAX) and of what is kept (IL__RUN_KEEP_MS, IL__ONCE_KEEP_MS,
 * IL__CACHE_KEEP_MS) are wall time. Limits marked "by default" can be overridden by an op. The
 * public limits (key length, TTL range, …) are in interlock.h.
 */
#ifndef IL_CORE_LIMITS_H
#define IL_CORE_LIMITS_H

/* fences and tickets stay below this: exact as JSON numbers */
#define IL__FENCE_END (UINT64_C(1) << 53)

#define IL__WAIT_MS_MAX (INT64_C(366) * 86400000) /* a longer wait has no deadline */
#define IL__OFFER_MS 2000          /* a waiter has min(TTL, this) to confirm its turn */
#define IL__WAITER_REFRESH_MS 5000 /* a waiter must report at least this often */
#define IL__WAITER_DROP_MS 15000   /* and is dropped after this much silence */
#define IL__ENDED_KEEP_MS 60000    /* how long an ended (key, holder) is remembered */
#define IL__ENDED_MAX 65536        /* and how many at most: the newest */
#define IL__SWEEP_MS 1000          /* between two background sweeps */
#define IL__LEASE_LOOK_MS 30000    /* PostgreSQL: a sweep first looks at a lease by then */
#define IL__SWEEP_ITEMS 1000       /* default bound of one sweep, per kind of thing */

/* rows that one page of a listing skips; then it ends, and the next page continues */
#define IL__LOOK_MAX 1000

#define IL__EVENT_TEXT_CHARS 2000  /* of a meta in the history of a key: its first characters */
#define IL__REFUSED_MAX 1000000000 /* refusals that are counted as one event */

#define IL__ORDER_EDGES_MAX 4096  /* learned edges per store; no more are learned */
#define IL__ORDER_HOLDS_MAX 64    /* holds of a unit of work that one acquire checks */
#define IL__GRAPH_WAITS_MAX 65536 /* waits a deadlock search visits before it gives up */

#define IL__DAY_MS INT64_C(86400000)
#define IL__RUN_KEEP_MS (30 * IL__DAY_MS) /* history of runs, by default */
#define IL__RUN_QUEUE_MAX 100             /* pending runs of a key, by default */
#define IL__LOG_PIECE_BYTES 65536         /* of a log that an engine stores in one row or key */
#define IL__LOG_READ_BYTES 65536          /* maximum that one RUN_LOG returns */

#define IL__ONCE_TTL_MS 60000       /* an idempotency key's claim, by default */
#define IL__ONCE_KEEP_MS IL__DAY_MS /* and its answer */

#define IL__CACHE_KEEP_MS 60000 /* a value is kept this long after its fill for waiters */

#define IL__PROMOTE_MAX 1000 /* due jobs that one claim makes ready, and a count treats as ready */
#define IL__RECOVER_MAX 1000 /* dead claims that one claim recovers */
#define IL__CANDIDATES 10    /* jobs an optimistic claim examines in one pass */
#define IL__TICKS_MAX 1000   /* jobs one pass pushes for one schedule */
#define IL__TICK_LATE_MS 60000       /* a tick later than this was missed */
#define IL__WORKER_SEEN_MS 60000     /* a worker that claimed within this is alive */
#define IL__POLL_PESSIMISTIC_MS 5000 /* a worker polls this often without a wake-up */
#define IL__POLL_OPTIMISTIC_MS 10000
#define IL__LEASE_BYTES 6144 /* maximum size of a listed lease */
#define IL__JOB_BYTES 1024   /* a claimed job counts as this plus its payload */
#define IL__RATE_MAX 10000   /* rate_n of a queue */

#define IL__COMMIT_OPS 256 /* ops of one commit, at most */
#define IL__COMMIT_MS 50   /* a commit that took longer leaves later ops to the next */

#define IL__TX_MS INT64_C(1000) /* a caller's own transaction is rolled back when it is older */

#define IL__NEVER INT64_MAX                      /* a deadline that never comes */
#define IL__TICK_NEVER ((int64_t)IL__FENCE_END)  /* of schedules in PostgreSQL and Redis */
#define IL__TIME_MS_MAX INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

#endif
