/*
 * caller_tx.c: ops inside the caller's own transactions: the public calls on top of the engine's
 * functions (store/sqlite/caller_tx.c).
 */
#include "base/error.h"
#include "core/op.h"
#include "runtime/handle.h"

struct il_tx {
    il                  *h;
    struct il__store_tx *inner;
};

il_status
il_tx_begin(il *h, struct sqlite3 *db, il_tx **ret, il_error *reterr)
{
    if (h == NULL || db == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "h, db and ret must not be NULL");
    il_tx *tx = il__calloc(1, sizeof *tx);
    if (tx == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a transaction");
    tx->h        = h;
    il_status st = il__store_tx_begin(h->store, db, &tx->inner, reterr);
    if (st != IL_OK) {
        il__free(tx);
        return st;
    }
    *ret = tx;
    return IL_OK;
}

/* Check an op as il_apply() does, and that it may be part of a transaction. */
static void
prepare(il_tx *tx, il_op *op)
{
    if (!il__op_prepare(op, tx->h->tenant, tx->h->tenant_bytes) || il__store_tx_takes(op->type))
        return;
    il__op_reset(op);
    il__op_end(op, IL_INVAL, "only push, job_finish and check_fence are allowed in a transaction");
}

il_status
il_tx_apply(il_tx *tx, il_op *ops, size_t n, il_error *reterr)
{
    if (tx == NULL)
        return il__error_set(reterr, IL_INVAL, "no transaction given");
    if (ops == NULL || n == 0 || n > IL_BATCH_OPS_MAX)
        return il__error_set(reterr, IL_INVAL, "a batch needs 1..%d operations, not %zu",
                             IL_BATCH_OPS_MAX, n);
    AUTO_FREE il_op **ptrs = il__alloc(n * sizeof *ptrs);
    if (ptrs == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch of %zu", n);
    for (size_t i = 0; i < n; i++) {
        ptrs[i] = &ops[i];
        prepare(tx, &ops[i]);
    }
    il_status st = tx->inner->apply(tx->inner, ptrs, n, reterr);
    for (size_t i = 0; i < n; i++) {
        if (st == IL_OK)
            il__count_op(tx->h, &ops[i]);
        if (ops[i].tenant == tx->h->tenant)
            ops[i].tenant = NULL;
    }
    return st;
}

il_status
il_tx_commit(il_tx *tx, il_error *reterr)
{
    if (tx == NULL)
        return il__error_set(reterr, IL_INVAL, "no transaction given");
    il_status st = tx->inner->commit(tx->inner, reterr);
    il__free(tx);
    return st;
}

void
il_tx_rollback(il_tx *tx)
{
    if (tx == NULL)
        return;
    tx->inner->rollback(tx->inner);
    il__free(tx);
}
