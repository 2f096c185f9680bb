/*
 * fence.c: the fences of a transaction.
 *
 * Why a zombie cannot commit. A is a holder that has lost its lease without knowing it (it was
 * stopped, or its network was cut); B is the next holder, with a higher fence. Two cases:
 *
 * 1. The database does not hold the store's leases. interlock_fence records the highest fence shown
 *    for each key.
 *      begin    (a) fails if the key's row has a higher fence, else stores its own fence there;
 *               (b) keeps the row unchanged until the end of the transaction: in SQLite with the
 *               write lock of the file, in PostgreSQL with a share lock on the row. Transactions
 *               with the same fence share that lock; writing a higher fence has to wait for it.
 *      commit   (c) asks the store; (d) repeats (a) and (b), in case a statement has tampered with
 *               the table; (e) commits.
 *    Either A's (b) comes before B's (a): then B waits until A's transaction has ended before it
 *    reads or writes anything; A's commit, if any, precedes everything B does, as if A still had
 *    its lease. Or B's (a) comes before A's (b): then A finds a higher fence and is refused. There
 *    is no third case, and no clock is involved: A may be stopped between any two of these
 *    statements for any length of time. The proof does not need (c), which refuses an A that has no
 *    successor yet, or whose lease was broken.
 *    A read-only transaction also shows its fence, in a separate commit before its first read.
 *    Otherwise B could read, A commit, and B write (in another transaction) a result based on what
 *    it read: A's write would be lost, or B's be wrong.
 *
 * 2. The database holds the leases (PostgreSQL). check_fence(), just before the commit, refuses a
 *    fence that does not belong to a held lease, and locks the lease's row FOR KEY SHARE until the
 *    transaction has ended. Granting the key to B requires that row FOR UPDATE. So either A's check
 *    comes first, and B gets the key after A's commit; or the grant comes first, and A's check
 *    fails. The begin locks nothing: a stopped A must not keep the key from B.
 *
 * Not covered: statements with effects outside the database (a foreign table, a function that sends
 * a message); connections to one database with different search_paths, if interlock_fence then
 * resolves to two tables; a user who writes to interlock_fence by hand.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "guard/guard_internal.h"
#include "runtime/handle.h"

il_status
il__guard_stale(const struct guard_shown *f, uint64_t seen, il_error *reterr)
{
    il__error_set(reterr, IL_STALE, "fence %s of key '%.200s' is stale: %s", f->text, f->key,
                  seen > f->number ? "this database has seen a newer fence"
                                   : "the lease has ended");
    if (reterr != NULL)
        reterr->fence = seen > f->number ? seen : 0;
    return IL_STALE;
}

/* ---- taking them over ------------------------------------------------------------------------ */

static int
compare(const struct guard_shown *a, const struct guard_shown *b)
{
    int diff = strcmp(a->tenant, b->tenant);

    return diff != 0 ? diff : strcmp(a->key, b->key);
}

static il_status
take_one(il_guard_tx *tx, const il_guard_fence *f, struct guard_tx_fence *ret, il_error *reterr)
{
    if (f->h == NULL || f->key == NULL)
        return il__error_set(reterr, IL_INVAL, "a fence needs a handle and a key");
    il_status st = il_check_key(f->key, reterr);
    if (st == IL_OK && f->tenant != NULL)
        st = il_check_tenant(f->tenant, reterr);
    if (st != IL_OK)
        return st;
    *ret = (struct guard_tx_fence){
        .h     = f->h,
        .shown = { .tenant =
                       il__arena_strdup(&tx->mem, f->tenant != NULL ? f->tenant : f->h->tenant),
                   .key    = il__arena_strdup(&tx->mem, f->key),
                   .number = f->fence },
    };
    (void)snprintf(ret->shown.text, sizeof ret->shown.text, "%" PRIu64, f->fence);
    if (ret->shown.tenant == NULL || ret->shown.key == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a transaction");
    return IL_OK;
}

/* Sorted by tenant and key: all transactions lock the rows of interlock_fence in the same order. */
il_status
il__guard_fences_take(il_guard_tx *tx, const il_guard_fence *fences, size_t n, il_error *reterr)
{
    struct guard_tx_fence one = { .h = NULL };

    if (n > IL_GUARD_FENCES_MAX)
        return il__error_set(reterr, IL_INVAL, "too many fences: %zu (maximum %d)", n,
                             IL_GUARD_FENCES_MAX);
    for (size_t i = 0; i < n; i++) {
        il_status st = take_one(tx, &fences[i], &one, reterr);
        if (st != IL_OK)
            return st;
        CHECK(one.shown.tenant != NULL && one.shown.key != NULL);
        size_t at = tx->n_fences;
        for (; at > 0 && compare(&tx->fences[at - 1].shown, &one.shown) > 0; at--)
            tx->fences[at] = tx->fences[at - 1];
        if (at > 0 && compare(&tx->fences[at - 1].shown, &one.shown) == 0)
            return il__error_set(reterr, IL_INVAL, "key '%.200s' has more than one fence",
                                 one.shown.key);
        tx->fences[at] = one;
        tx->n_fences++;
    }
    return IL_OK;
}

/* ---- asking the store ------------------------------------------------------------------------ */

/* Does the fence belong to a held lease? */
static il_status
ask_store(const struct guard_tx_fence *f, il_error *reterr)
{
    il_op op = { .type   = IL_OP_CHECK_FENCE,
                 .tenant = f->shown.tenant,
                 .key    = f->shown.key,
                 .fence  = f->shown.number };

    il_status st = il_apply(f->h, &op, 1, reterr);
    if (st == IL_OK)
        st = op.status;
    if (st == IL_STALE || st == IL_NOT_HELD || st == IL_LOST) {
        st = il__guard_stale(&f->shown, 0, reterr);
        if (reterr != NULL)
            reterr->fence = op.out.fence;
    } else if (st != IL_OK && st == op.status) {
        il__error_set(reterr, st, "cannot check the fence of key '%.200s': %s", f->shown.key,
                      op.out.detail != NULL ? op.out.detail : il_status_text(st));
    }
    il_op_release(&op);
    return st;
}

static il_status
ask_stores(const il_guard_tx *tx, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; st == IL_OK && i < tx->n_fences; i++)
        st = ask_store(&tx->fences[i], reterr);
    return st;
}

/* ---- showing them ---------------------------------------------------------------------------- */

/* Case 1: show all fences whose leases are not in this database. */
static il_status
show(il_guard_tx *tx, bool first, il_error *reterr)
{
    const struct guard_shown *fences[IL_GUARD_FENCES_MAX];
    size_t                    n = 0;

    for (size_t i = 0; i < tx->n_fences; i++) {
        if (!tx->fences[i].shared)
            fences[n++] = &tx->fences[i].shown;
    }
    return n > 0 ? tx->c->ops->show(tx->c, fences, n, first, reterr) : IL_OK;
}

/* Case 1, a read-only transaction: its fences are committed before it reads. */
static il_status
show_alone(il_guard_tx *tx, il_error *reterr)
{
    struct guard_conn *c = tx->c;

#ifdef IL_MUTANT_reader_shows_no_fence
    if (tx->n_fences > 0)
        return IL_OK;
#endif
    il_status st = c->ops->begin(c, false, reterr);
    if (st != IL_OK)
        return st;
    st = show(tx, true, reterr);
    if (st == IL_OK)
        return c->ops->commit(c, reterr);
    c->ops->rollback(c);
    return st;
}

static il_status
find_shared(il_guard_tx *tx, bool *ret_all, il_error *reterr)
{
    const struct guard_ops *ops = tx->c->ops;
    il_status               st  = IL_OK;

    *ret_all = true;
    for (size_t i = 0; st == IL_OK && i < tx->n_fences; i++) {
        struct guard_tx_fence *f = &tx->fences[i];
        f->shared                = false;
        if (ops->shares != NULL)
            st = ops->shares(tx->c, f->h, &f->shown, &f->shared, reterr);
        *ret_all = *ret_all && f->shared;
    }
    return st;
}

/* Case 2: show them to guarded tables. */
static il_status
show_shared(il_guard_tx *tx, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; st == IL_OK && i < tx->n_fences; i++) {
        if (tx->fences[i].shared)
            st = tx->c->ops->shared_show(tx->c, &tx->fences[i].shown, reterr);
    }
    return st;
}

il_status
il__guard_fences_begin(il_guard_tx *tx, il_error *reterr)
{
    const struct guard_ops *ops        = tx->c->ops;
    bool                    all_shared = true;

    il_status st = ask_stores(tx, reterr);
    if (st == IL_OK)
        st = find_shared(tx, &all_shared, reterr);
    if (st == IL_OK && tx->read_only && !all_shared)
        st = show_alone(tx, reterr);
    if (st == IL_OK)
        st = ops->begin(tx->c, tx->read_only, reterr);
    if (st != IL_OK || tx->read_only || tx->n_fences == 0)
        return st;
    st = show(tx, true, reterr); /* may begin anew: what is only for this transaction follows */
    if (st == IL_OK)
        st = show_shared(tx, reterr);
    if (st != IL_OK)
        ops->rollback(tx->c);
    return st;
}

il_status
il__guard_fences_check(il_guard_tx *tx, il_error *reterr)
{
#ifdef IL_MUTANT_guard_commits_unchecked
    if (tx->n_fences > 0)
        return IL_OK;
#endif
    il_status st = ask_stores(tx, reterr);
    if (st != IL_OK || tx->read_only)
        return st;
    st = show(tx, false, reterr);
    for (size_t i = 0; st == IL_OK && i < tx->n_fences; i++) {
        if (tx->fences[i].shared)
            st = tx->c->ops->shared_check(tx->c, &tx->fences[i].shown, reterr);
    }
    return st;
}
