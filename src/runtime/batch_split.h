/*
 * batch_split.h: splits a batch into pieces. A piece is what the store executes at once: one
 * commit, or one read. Other callers get a turn between two pieces, so no batch occupies the store
 * for long.
 */
#ifndef IL_RUNTIME_BATCH_SPLIT_H
#define IL_RUNTIME_BATCH_SPLIT_H

#include "base/base.h"

struct il__piece {
    size_t n;       /* the next n ops, at least one */
    bool   writes;  /* false: read them in parallel with the writer */
    size_t n_bytes; /* maximum size of their results */
};

/*
 * The next piece of n ops, n > 0, of a call whose results may still take n_bytes_left:
 *   - at most IL__COMMIT_OPS ops;
 *   - lists and counts never stand beside an op that writes;
 *   - results that fit into what is left, whatever they turn out to be.
 * Sets op->bytes_left of its ops.
 */
struct il__piece il__piece_next(il_op *ops, size_t n, size_t n_bytes_left);

/* Size of the results of these ops. */
size_t il__piece_bytes(const il_op *ops, size_t n);
/* What is left of n_bytes_left after n_bytes of results; 0: no more ops may be executed. */
size_t il__piece_left(size_t n_bytes_left, size_t n_bytes);

/* The call may return no more: these ops are not executed, and their status says so. */
void il__piece_refuse(il_op *ops, size_t n);

#endif
