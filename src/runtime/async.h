/*
 * async.h: ops for callers that must not block. An event loop hands a call over and is told when its ops are committed, or
 * when what it waits for has come: no thread waits for a disk, and ten thousand that wait for a key cost no thread.
 *
 * A call that waits is *parked*: its op is repeated when its word of the board changes, when a sign of life is due, and when its
 * time is over, as il_wait() and the convenience calls do it for a caller with a thread.
 *
 * Two times are different. An op's own wait (wait_ms of ACQUIRE and RUN_START) is how long it stays in its queue. wait_until_ns of the call is
 * how long its caller wants to wait for an answer now. If the op's own wait ends first, or at the same time (give or take IL__ASYNC_SLACK_MS), the op
 * leaves its queue and is HELD. If it ends later, the call is answered QUEUED, and the op keeps its place: its caller comes again, with the
 * same holder, before the 15 s after which a silent waiter is dropped.
 */
#ifndef IL_RUNTIME_ASYNC_H
#define IL_RUNTIME_ASYNC_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/heap.h"

struct il__async;
struct il__call;

/* Told once for each call that was submitted; from then on the call is the caller's again. Not under any mutex; must not block. On a thread of
 * the il__async; or, for a store that is called directly (memory), on the submitter's before il__async_submit() returns. Never within the other functions. */
typedef void il__call_fn(struct il__call *call);

#define IL__ASYNC_SLACK_MS 250

/* Zero-initialise; the caller's from before the submit until done() is called. */
struct il__call {
    il_op *ops; /* each with its own status afterwards; the caller releases them */
    size_t n;   /* 1..IL_BATCH_OPS_MAX: one commit, in this order */
    /*
     * n == 1 and an op that can be waited for (il_wait()): repeat it until it is answered otherwise, or until then (CLOCK_BOOTTIME, ns;
     * INT64_MAX = for ever). 0: answer at once. When the time is over the op ends as the convenience calls end: see above for one that queues; a claim is
     * EMPTY, a begin BUSY, a lookup WAIT, a get shows what is there. An op whose OK can be waited for is parked after its first look, and answered with the next look
     * that comes of a wake-up or shows something else, or when the time is over; but at once where nothing more is to come: RUN_GET and JOB_GET
     * of one that has ended, RUN_LOG of that and when there is output. The op's own wait is counted down in it.
     */
    int64_t      wait_until_ns;
    il__call_fn *done;
    void        *cookie;

    il_status status; /* IL_OK: look at each op; IL_CANCELLED: il__async_cancel() or the end; else what il_apply() returned */
    il_error  error;  /* unless status is IL_OK */
    int64_t   waited_ns; /* parked in all */

    /* il__async's own: */
    struct il__call     *next, *prev; /* in a lane's queue, or parked at its word */
    struct il__heap_node due;         /* parked: when it is repeated at the latest */
    uint32_t    slot, seen;   /* parked: its word, and what that was before the op was applied */
    uint32_t    state, flags; /* see async_internal.h */
    atomic_bool cancel;       /* nobody waits for the answer any more */
    int64_t     own_until_ns; /* when the op's own wait is over; 0 = it has none */
    int64_t     parked_ns;    /* since when */
    uint64_t    shown;        /* hash of what the last look showed; of the name, for a claim */
};

/*
 * Make one over a handle, which outlives it. The number of its threads follows from what the store can do at once; they apply what has
 * gathered as one batch (group commit), reads apart from writes. IL_OK, IL_NOMEM.
 */
il_status il__async_open(il *h, struct il__async **ret, il_error *reterr) MUST_USE;
/* Ends all parked calls (IL_CANCELLED, as il__async_cancel() does), waits for those under way, frees. No other call may be under way. NULL is fine. */
void il__async_close(struct il__async *a);

void il__async_submit(struct il__async *a, struct il__call *call);
/*
 * The caller's client is gone, and done() has not been called: a call that waits ends with IL_CANCELLED as soon as its place in the queue is given up (its op repeated
 * without a wait, if its own wait ends with the call's; a lease, claim or build that comes of that is given back). One that does not wait, or that was
 * answered otherwise, is done by itself.
 */
void il__async_cancel(struct il__async *a, struct il__call *call);
/* Shutdown: parked calls end as if their time were over, now, and so does every later wait. */
void il__async_hurry(struct il__async *a);

struct il__async_stats {
    uint64_t n_parked;  /* now */
    uint64_t n_queued;  /* calls handed over and not yet being applied */
    uint64_t n_wakes;   /* repeats because a word changed */
    uint64_t n_repeats; /* all repeats */
};
void il__async_stats(struct il__async *a, struct il__async_stats *ret);

/*
 * Hints for others that use the same store: `text` (one line of JSON, at most IL__ANNOUNCE_BYTES_MAX) reaches, at best effort, every il__async over the
 * same store, this one too, in every process; fn is called on a thread of theirs, one message after the other, and must not block. fn with text NULL: something
 * may have been missed. il__async_announce() does not block and is safe from any thread.
 */
#define IL__ANNOUNCE_BYTES_MAX 4000
typedef void il__announce_fn(void *cookie, const char *text);
void         il__async_listen(struct il__async *a, il__announce_fn *fn,
                              void *cookie); /* once, before the first submit */
void         il__async_announce(struct il__async *a, const char *text);

#endif
