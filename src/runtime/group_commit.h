/*
 * group_commit.h: the executor: ops that arrive while a batch is being committed form the next
 * batch.
 *
 * It has no thread of its own. A caller that finds the executor idle becomes the leader and applies
 * its own ops at once. Callers that arrive meanwhile queue; the first of them leads next, with
 * everything queued by then as one batch, up to IL__COMMIT_OPS. So a lone op never waits, and under
 * load the batches grow by themselves. Only the leader ever blocks in the store.
 *
 * Keep-alives (renewals, heartbeats) queue ahead of all other requests, so that they wait for at
 * most one commit.
 */
#ifndef IL_RUNTIME_GROUP_COMMIT_H
#define IL_RUNTIME_GROUP_COMMIT_H

#include <stdatomic.h>

#include "base/mutex.h"
#include "store/store.h"

struct il__exec_request;

/* Called after each batch with its number of ops and the time the store took. On the leader's
 * thread. */
typedef void il__exec_applied_fn(void *cookie, size_t n_ops, int64_t took_ns);

struct il__exec {
    struct il__store        *store;
    il__exec_applied_fn     *applied;
    void                    *cookie;
    struct il__mutex         mutex; /* protects what follows */
    bool                     leading;
    struct il__exec_request *head, *tail; /* queued for the next batch; the head will lead it */
    unsigned                 batch;       /* number of the batch that is queueing */
    _Atomic uint32_t done[2]; /* bumped when a batch is done; callers in batch b sleep on b % 2 */
    _Atomic uint32_t lead[2]; /* the same for the head of the queue, which is woken alone */
};

void il__group_commit_init(struct il__exec *x, struct il__store *store,
                           il__exec_applied_fn *applied, void *cookie);
void il__group_commit_release(struct il__exec *x);

/*
 * Apply the first of n prepared ops, n <= IL__COMMIT_OPS, together with those of other callers.
 * Like il__store_apply() it applies at least one; *ret_done is the number. Blocks.
 */
il_status il__group_commit_apply(struct il__exec *x, il_op *const *ops, size_t n, size_t *ret_done,
                                 il_error *reterr) MUST_USE;

#endif
