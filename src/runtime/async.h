/*
 * async.h: ops for callers that must not block. An event loop submits a call and is notified when
 * its ops are committed or its wait is over: the loop never waits for a disk, and ten thousand
 * calls that wait for a key need no threads.
 *
 * A waiting call is *parked*: its op is repeated when its word on the board changes, when a
 * keep-alive is due, and when its time is over, just as il_wait() and the convenience calls do for
 * a blocking caller.
 *
 * Keep two times apart. An op's own wait (wait_ms of ACQUIRE and RUN_START) is how long it stays in
 * its queue. The call's wait_until_ns is how long the caller waits for this answer. If the op's own
 * wait ends first, or at the same time (give or take IL__ASYNC_SLACK_MS), the op leaves its queue
 * and returns HELD. If it ends later, the call returns QUEUED and the op keeps its place: the
 * caller must submit it again, with the same holder, within the 15 s after which a silent waiter is
 * dropped.
 */
#ifndef IL_RUNTIME_ASYNC_H
#define IL_RUNTIME_ASYNC_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/heap.h"
#include "runtime/batch_split.h"
#include "runtime/result_budget.h"

struct il__async;
struct il__call;

/* Called once for each submitted call; from then on the call belongs to the caller again. No mutex
 * is held; must not block. Runs on a thread of the il__async or, for a store that is called
 * directly (memory), on the submitting thread before il__async_submit() returns. Never from within
 * the other functions. */
typedef void il__call_fn(struct il__call *call);

#define IL__ASYNC_SLACK_MS 250

/* Zero-initialise. The caller owns it; it must stay valid and unchanged from the submit until
 * done() is called. */
struct il__call {
    il_op *ops; /* each with its own status afterwards; the caller releases them */
    size_t n;   /* 1..IL_BATCH_OPS_MAX, in this order; as il_apply() */
    /*
     * Limits the size of all results charged to it; NULL = no limit. While it is used up, calls
     * whose results may be large fail with IL_LIMIT; others pass. The caller returns this call's
     * share, n_held, with il__result_budget_change() after releasing the results.
     */
    struct il__result_budget *budget;
    size_t                    n_held;
    /*
     * For n == 1 and an op that can be waited for (il_wait()): repeat it until it gets another
     * answer, or until this time (CLOCK_BOOTTIME, ns; INT64_MAX = forever). 0: answer at once. On
     * timeout the op ends like the convenience calls: see above for one that queues; a claim is
     * EMPTY, a begin BUSY, a lookup WAIT, and a get shows the current state. An op whose OK can be
     * waited for is parked after its first read, and answered by the next read that follows a
     * wake-up or shows a change, or on timeout; but at once if no change can follow: RUN_GET and
     * JOB_GET of an ended run or job, RUN_LOG of an ended run or when there is output. The op's own
     * wait is counted down in it.
     */
    int64_t      wait_until_ns;
    il__call_fn *done;

    /* IL_OK: check each op; IL_CANCELLED: il__async_cancel() or closing; else the result of
     * il_apply() */
    il_status status;
    il_error  error;     /* unless status is IL_OK */
    int64_t   waited_ns; /* parked in all */

    /* il__async's own: */
    struct il__call     *next, *prev; /* of a batch, or parked at its word */
    struct il__heap_node due;    /* parked: when it is repeated at the latest; queued: its turn */
    size_t               n_done; /* ops executed */
    size_t               n_bytes_left; /* maximum size of the results of the others */
    struct il__piece     piece;        /* being applied */
    uint32_t             slot, seen; /* parked: its word, and its value before the op was applied */
    uint32_t             state, flags; /* see async_internal.h */
    atomic_bool          cancel;       /* no caller waits for the answer any more */
    int64_t              own_until_ns; /* when the op's own wait is over; 0 = it has none */
    int64_t              parked_ns;    /* since when */
    uint64_t             shown;        /* hash of the last answer shown; of the name, for a claim */
};

/*
 * Create one on top of a handle, which must outlive it. The number of threads depends on the
 * store's concurrency; each applies the calls gathered so far as one batch (group commit), reads
 * separately from writes. IL_OK, IL_NOMEM.
 */
il_status il__async_open(il *h, struct il__async **ret, il_error *reterr) MUST_USE;
/* End all parked calls (IL_CANCELLED, like il__async_cancel()), wait for the running ones, and free
 * it. No other function may be running. NULL is fine. */
void il__async_close(struct il__async *a);

void il__async_submit(struct il__async *a, struct il__call *call);
/*
 * The caller's client has disconnected before done() was called. A waiting call ends with
 * IL_CANCELLED as soon as its place in the queue is given up (its op is repeated without a wait, if
 * its own wait ends with the call's; a lease, claim or build granted by that is released). A call
 * that does not wait, or that already has another answer, completes normally.
 */
void il__async_cancel(struct il__async *a, struct il__call *call);
/* Shutdown: parked calls time out now, and so does every later wait. */
void il__async_hurry(struct il__async *a);

struct il__async_stats {
    uint64_t n_parked;  /* now */
    uint64_t n_queued;  /* calls submitted and not yet being applied */
    uint64_t n_wakes;   /* repeats because a word changed */
    uint64_t n_repeats; /* all repeats */
};
void il__async_stats(struct il__async *a, struct il__async_stats *ret);

/*
 * Hints for other users of the same store: `text` (one line of JSON, at most
 * IL__ANNOUNCE_BYTES_MAX) reaches every il__async on that store, in every process and including
 * this one, on a best-effort basis. fn is called on a thread of the receiver, one message at a
 * time, and must not block. text NULL: messages may have been missed. il__async_announce() does not
 * block and is thread-safe.
 */
#define IL__ANNOUNCE_BYTES_MAX 4000
typedef void il__announce_fn(void *cookie, const char *text);
void         il__async_listen(struct il__async *a, il__announce_fn *fn,
                              void *cookie); /* once, before the first submit */
void         il__async_announce(struct il__async *a, const char *text);

#endif
