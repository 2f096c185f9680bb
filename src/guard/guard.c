/*
 * guard.c: connections and fenced transactions: the part common to SQLite and PostgreSQL.
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
#include "guard/guard_internal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "runtime/handle.h"

#define TIMEOUT_MS 5000

/* ---- connections ----------------------------------------------------------------------------- */

bool
il__guard_init(struct guard_conn *c, const struct guard_ops *ops, int64_t timeout_ms)
{
    c->ops        = ops;
    c->timeout_ms = timeout_ms > 0 ? timeout_ms : TIMEOUT_MS;
    c->stop_fd    = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return c->stop_fd >= 0;
}

void
il__guard_release(struct guard_conn *c)
{
    if (c->stop_fd >= 0)
        (void)close(c->stop_fd);
    c->stop_fd = -1;
}

il_status
il__guard_new(const char *url, int64_t timeout_ms, struct guard_conn **ret, il_error *reterr)
{
    static const char sqlite[] = "sqlite:";

    CHECK(url != NULL && ret != NULL);
    if (strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0)
        return il__guard_postgres_new(url, timeout_ms, ret, reterr);
    if (strncmp(url, sqlite, sizeof sqlite - 1) == 0)
        url += sizeof sqlite - 1;
    else if (strstr(url, "://") != NULL) /* not shown: it may contain a password */
        return il__error_set(reterr, IL_INVAL,
                             "unsupported connection URL: use sqlite:PATH or postgres://...");
    return il__guard_sqlite_new(url, timeout_ms, ret, reterr);
}

il_status
il__guard_connect(struct guard_conn *c, il_error *reterr)
{
    CHECK(c != NULL);
    if (atomic_load(&c->interrupted))
        return il__guard_cancelled(reterr);
    return c->ops->connect(c, reterr);
}

void
il__guard_close(struct guard_conn *c)
{
    if (c == NULL)
        return;
    il__guard_rollback(c->tx);
    c->ops->free(c);
}

void
il__guard_interrupt(struct guard_conn *c)
{
    uint64_t one = 1;

    atomic_store(&c->interrupted, true);
    /* it can only fail if full, and then it is readable already */
    IGNORE(write(c->stop_fd, &one, sizeof one) < 0);
}

il_status
il__guard_cancelled(il_error *reterr)
{
    return il__error_set(reterr, IL_CANCELLED, "it was asked to stop");
}

/* ---- fences ---------------------------------------------------------------------------------- */

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

bool
il__guard_take_number(void *cookie, const struct guard_row *row)
{
    struct guard_number *n = cookie;

    n->there = row->n > 0 && row->values[0] != NULL &&
               il__parse_u64(row->values[0], UINT64_MAX, &n->number);
    return false;
}

/* Ask the store whether the fence belongs to a held lease. */
static il_status
ask_store(const struct guard_tx *tx, il_error *reterr)
{
    il_op op = { .type   = IL_OP_CHECK_FENCE,
                 .tenant = tx->fence.tenant,
                 .key    = tx->fence.key,
                 .fence  = tx->fence.number };

    il_status st = il_apply(tx->h, &op, 1, reterr);
    if (st == IL_OK)
        st = op.status;
    if (st == IL_STALE || st == IL_NOT_HELD || st == IL_LOST) {
        st = il__guard_stale(&tx->fence, 0, reterr);
        if (reterr != NULL)
            reterr->fence = op.out.fence;
    } else if (st != IL_OK && st == op.status) {
        il__error_set(reterr, st, "cannot check the fence of key '%.200s': %s", tx->fence.key,
                      op.out.detail != NULL ? op.out.detail : il_status_text(st));
    }
    il_op_release(&op);
    return st;
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void
tx_free(struct guard_tx *tx)
{
    CHECK(tx->c->tx == NULL || tx->c->tx == tx);
    tx->c->tx = NULL;
    il__free(tx->tenant);
    il__free(tx->key);
    il__free(tx);
}

static struct guard_tx *
tx_new(struct guard_conn *c, const struct guard_fence *fence, bool read_only)
{
    struct guard_tx *tx = il__calloc(1, sizeof *tx);

    if (tx == NULL)
        return NULL;
    tx->c         = c;
    tx->read_only = read_only;
    if (fence == NULL)
        return tx;
    tx->h      = fence->h;
    tx->tenant = il__strdup(fence->tenant != NULL ? fence->tenant : fence->h->tenant);
    tx->key    = il__strdup(fence->key);
    if (tx->tenant == NULL || tx->key == NULL) {
        tx_free(tx);
        return NULL;
    }
    tx->fence =
        (struct guard_shown){ .tenant = tx->tenant, .key = tx->key, .number = fence->fence };
    (void)snprintf(tx->fence.text, sizeof tx->fence.text, "%llu", (unsigned long long)fence->fence);
    return tx;
}

/* Case 1, a read-only transaction: its fence is committed before it reads. */
static il_status
show_alone(struct guard_conn *c, const struct guard_shown *f, il_error *reterr)
{
#ifdef IL_MUTANT_reader_shows_no_fence
    if (f->number > 0)
        return IL_OK;
#endif
    il_status st = c->ops->begin(c, false, reterr);
    if (st != IL_OK)
        return st;
    st = c->ops->show(c, f, reterr);
    if (st == IL_OK)
        return c->ops->commit(c, reterr);
    c->ops->rollback(c);
    return st;
}

static il_status
begin(struct guard_tx *tx, il_error *reterr)
{
    struct guard_conn      *c       = tx->c;
    const struct guard_ops *ops     = c->ops;
    bool                    is_ours = tx->h != NULL; /* it has a fence */

    il_status st = is_ours ? ask_store(tx, reterr) : IL_OK;
    if (st == IL_OK)
        st = il__guard_connect(c, reterr);
    if (st == IL_OK && is_ours && ops->shares != NULL)
        st = ops->shares(c, tx->h, &tx->fence, &tx->shared, reterr);
    if (st == IL_OK && is_ours && tx->read_only && !tx->shared)
        st = show_alone(c, &tx->fence, reterr);
    if (st != IL_OK)
        return st;
    st = ops->begin(c, tx->read_only, reterr);
    if (st != IL_OK || !is_ours || tx->read_only)
        return st;
    st = tx->shared ? ops->shared_show(c, &tx->fence, reterr) : ops->show(c, &tx->fence, reterr);
    if (st != IL_OK)
        ops->rollback(c);
    return st;
}

il_status
il__guard_begin(struct guard_conn *c, const struct guard_fence *fence, bool read_only,
                struct guard_tx **ret, il_error *reterr)
{
    CHECK(c != NULL && ret != NULL);
    CHECK(c->tx == NULL);
    CHECK(fence == NULL || (fence->h != NULL && fence->key != NULL));
    struct guard_tx *tx = tx_new(c, fence, read_only);
    if (tx == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a transaction");
    il_status st = begin(tx, reterr);
    if (st != IL_OK) {
        tx_free(tx);
        return st;
    }
    c->tx = tx;
    *ret  = tx;
    return IL_OK;
}

/* (c) and (d), or case 2. */
static il_status
check(struct guard_tx *tx, il_error *reterr)
{
    const struct guard_ops *ops = tx->c->ops;

    if (tx->failed)
        return il__error_set(reterr, IL_STATE,
                             "a statement of the transaction failed; rolled back");
    if (atomic_load(&tx->c->interrupted))
        return il__guard_cancelled(reterr);
#ifdef IL_MUTANT_guard_commits_unchecked
    if (tx->h != NULL)
        return IL_OK;
#endif
    il_status st = tx->h != NULL ? ask_store(tx, reterr) : IL_OK;
    if (st != IL_OK || tx->h == NULL || tx->read_only)
        return st;
    return tx->shared ? ops->shared_check(tx->c, &tx->fence, reterr)
                      : ops->show(tx->c, &tx->fence, reterr);
}

il_status
il__guard_commit(struct guard_tx *tx, il_error *reterr)
{
    CHECK(tx != NULL);
    struct guard_conn *c  = tx->c;
    il_status          st = check(tx, reterr);

    if (st == IL_OK && !tx->read_only)
        st = c->ops->commit(c, reterr);
    else
        c->ops->rollback(c);
    tx_free(tx);
    return st;
}

void
il__guard_rollback(struct guard_tx *tx)
{
    if (tx == NULL)
        return;
    tx->c->ops->rollback(tx->c);
    tx_free(tx);
}

il_status
il__guard_exec(struct guard_tx *tx, const char *sql, const char *const *values, size_t n_values,
               guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr)
{
    int64_t   n_changed = 0;
    il_status st;

    CHECK(tx != NULL && sql != NULL && (values != NULL || n_values == 0));
    if (tx->failed)
        return il__error_set(reterr, IL_STATE, "a statement of the transaction failed");
    if (n_values > GUARD_VALUES_MAX)
        st = il__error_set(reterr, IL_INVAL, "%zu values for one statement; the limit is %d",
                           n_values, GUARD_VALUES_MAX);
    else if (atomic_load(&tx->c->interrupted))
        st = il__guard_cancelled(reterr);
    else
        st = tx->c->ops->exec(tx->c, sql, values, n_values, each, cookie, &n_changed, reterr);
    tx->failed = st != IL_OK;
    if (st == IL_OK && ret_n_changed != NULL)
        *ret_n_changed = n_changed;
    return st;
}
