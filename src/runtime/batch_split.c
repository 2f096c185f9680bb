/*
 * batch_split.c: splits batches into pieces; the rules are in batch_split.h.
 */
#include "runtime/batch_split.h"

#include "core/limits.h"
#include "core/op.h"

static bool
is_known(const il_op *op)
{
    return op->type != IL_OP_NONE && (unsigned)op->type < IL_OP_COUNT;
}

struct il__piece
il__piece_next(il_op *ops, size_t n, size_t n_bytes_left)
{
    struct il__piece p     = { 0 };
    bool             looks = false;

    CHECK(n > 0);
    for (; p.n < MIN(n, IL__COMMIT_OPS); p.n++) {
        il_op *op = &ops[p.n];
        if (!is_known(op))
            continue; /* it will be refused */
        bool   writes  = il__op_writes(op->type);
        size_t n_bytes = il__op_result_bytes_max(op);
        if ((writes && looks) || (p.writes && il__op_looks(op->type)))
            break;
        if (p.n > 0 && n_bytes > 0 && p.n_bytes + n_bytes > n_bytes_left)
            break;
        p.writes = p.writes || writes;
        looks    = looks || il__op_looks(op->type);
        p.n_bytes += MIN(n_bytes, n_bytes_left);
        op->bytes_left = MIN(n_bytes, n_bytes_left);
    }
    return p;
}

size_t
il__piece_bytes(const il_op *ops, size_t n)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < n; i++)
        n_bytes += il__op_result_bytes(&ops[i]);
    return n_bytes;
}

size_t
il__piece_left(size_t n_bytes_left, size_t n_bytes)
{
    return n_bytes + IL_BLOB_BYTES_MAX <= n_bytes_left ? n_bytes_left - n_bytes : 0;
}

void
il__piece_refuse(il_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        il__op_reset(&ops[i]);
        (void)il__op_end(&ops[i], IL_LIMIT,
                         "not applied: earlier results used up the size limit of the call");
    }
}
