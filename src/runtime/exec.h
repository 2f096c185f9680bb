/*
 * exec.h: the executor: callers' ops gather while a batch is being committed, and are the next batch.
 *
 * There is no thread of its own. The caller that finds nobody at work leads: it applies its own ops at once
 * and alone. Whoever comes meanwhile queues; the first of them leads next, with everything that has
 * queued by then as one batch. So an op alone waits for nobody, and under load the batches grow by
 * themselves. Only the leader ever blocks in the store.
 */
#ifndef IL_RUNTIME_EXEC_H
#define IL_RUNTIME_EXEC_H

#include <stdatomic.h>

#include "base/mutex.h"
#include "store/store.h"

struct il__exec_request;

/* Told of each batch: how many ops, and how long the store took. On the leader's thread. */
typedef void il__exec_applied_fn(void *cookie, size_t n_ops, int64_t took_ns);

struct il__exec {
    struct il__store        *store;
    il__exec_applied_fn     *applied;
    void                    *cookie;
    struct il__mutex         mutex; /* protects what follows */
    bool                     leading;
    struct il__exec_request *head, *tail; /* queued for the next batch; the head will lead it */
    unsigned                 batch;       /* number of the batch that is queueing */
    _Atomic uint32_t done[2]; /* bumped when a batch is done; those of batch b sleep on b % 2 */
    _Atomic uint32_t lead[2]; /* the same for the head of the queue, who is woken alone */
};

void il__exec_init(struct il__exec *x, struct il__store *store, il__exec_applied_fn *applied,
                   void *cookie);
void il__exec_release(struct il__exec *x);

/* Apply n prepared ops, with those of other callers. As il__store_apply(). Blocks. */
il_status il__exec_apply(struct il__exec *x, il_op *const *ops, size_t n, il_error *reterr) MUST_USE;

#endif
