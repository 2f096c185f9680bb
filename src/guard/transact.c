/*
 * transact.c: whole transactions, tried again when they were undone because of others; and
 * idempotency keys, which make it safe to try again after a commit with an unknown outcome.
 *
 * An idempotency key is a row of table interlock_done, inserted by the transaction itself before
 * the caller's function runs. So the row exists exactly if the transaction committed. Two at once:
 * the unique index lets the second one wait for the first; then it finds the row, or inserts it.
 */
#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"

#define TRIES 5
#define PAUSE_MS_MIN 5
#define PAUSE_MS_MAX 1000

/* ---- idempotency keys ------------------------------------------------------------------------ */

/* Create the table in a transaction of its own, if it is missing. */
static il_status
make_table(il_guard *g, struct guard_limit limit, il_error *reterr)
{
    il_guard_tx        *tx = NULL;
    struct guard_table *t  = NULL;

    il_status st = il__guard_begin_attempt(g, NULL, 0, limit, &tx, reterr);
    if (st != IL_OK)
        return st;
    st = il__guard_table(tx, "interlock_done", &t, reterr);
    if (st != IL_NOT_FOUND) { /* it exists; who may not create tables needs no right to */
        il_guard_rollback(tx);
        return st;
    }
    struct guard_statement s = { .sql = tx->c->ops->texts[GUARD_TEXT_DONE_MAKE] };
    st                       = il__guard_run(tx, &s, reterr);
    if (st == IL_OK)
        return il_guard_commit(tx, reterr);
    il_guard_rollback(tx);
    return st;
}

static il_status
ensure_table(il_guard *g, struct guard_limit limit, il_error *reterr)
{
    il_error  err = { .message = "" };
    il_status st  = atomic_load(&g->has_done) ? IL_OK : make_table(g, limit, &err);

    /* Another connection may have created it at the same moment: then it is found now. */
    if (st == IL_INVAL || st == IL_UNIQUE)
        st = make_table(g, limit, &err);
    if (st == IL_OK)
        atomic_store(&g->has_done, true);
    else if (reterr != NULL)
        *reterr = err;
    return st;
}

/* Record the key. *ret_replayed: it was recorded before. */
static il_status
record(il_guard_tx *tx, const char *key, bool *ret_replayed, il_error *reterr)
{
    il_guard_value         values[] = { il_guard_text(key), il_guard_int(il__clock_wall_ms()) };
    struct guard_statement s        = { .sql      = tx->c->ops->texts[GUARD_TEXT_DONE_ADD],
                                        .values   = values,
                                        .n_values = ARRAY_LEN(values) };

    il_status st  = il__guard_run(tx, &s, reterr);
    *ret_replayed = st == IL_OK && s.n_changed == 0;
    return st;
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* What one attempt means for the next. */
struct attempt {
    il_status status;
    bool      again;    /* undone because of others, or unknown and safe to repeat */
    bool      replayed; /* done by an earlier attempt or call */
    bool      recorded; /* its key was new: no earlier attempt has committed */
    bool      unknown;  /* it may have committed */
};

static struct attempt
attempt(il_guard *g, const il_guard_tx_opts *o, unsigned n, struct guard_limit limit,
        il_guard_fn *fn, void *cookie, il_error *reterr)
{
    struct attempt a  = { .status = IL_OK };
    il_guard_tx   *tx = NULL;

    if (o->struct_size == sizeof *o && o->once_key != NULL)
        a.status = ensure_table(g, limit, reterr);
    if (a.status == IL_OK)
        a.status = il__guard_begin_attempt(g, o, n, limit, &tx, reterr);
    if (a.status != IL_OK) {
        if (a.status == IL_UNKNOWN) /* whether the table was created, or a fence shown */
            a.status = il__error_set(reterr, IL_STORE, "connection lost before the transaction");
        a.again = il__guard_is_conflict(a.status, reterr) || a.status == IL_STORE;
        return a;
    }
    if (o->once_key != NULL)
        a.status = record(tx, o->once_key, &a.replayed, reterr);
    if (a.status == IL_OK && a.replayed) {
        il_guard_rollback(tx);
        return a;
    }
    a.recorded = o->once_key != NULL && a.status == IL_OK;
    if (a.status == IL_OK)
        a.status = fn(cookie, tx, reterr);
    if (a.status == IL_OK) {
        a.status  = il_guard_commit(tx, reterr);
        a.unknown = a.status == IL_UNKNOWN;
        a.again   = il__guard_is_conflict(a.status, reterr) || a.status == IL_STORE ||
                  (a.unknown && o->once_key != NULL);
        return a;
    }
    /* Only what a call on the transaction has reported: fn may return such a status on its own.
     * After il_guard_try() has undone a conflict, fn decides whether it matters. */
    a.again = (tx->conflict && (tx->failed || il__guard_is_conflict(a.status, reterr))) ||
              (tx->first_failure == IL_STORE && tx->c->ops->is_lost(tx->c));
    il__guard_abort(tx, a.status);
    return a;
}

/* A random pause that grows; ends early when it is interrupted. */
static void
pause_before(const il_guard *g, struct guard_limit limit, unsigned n_tried)
{
    int64_t       most_ms = MIN((int64_t)PAUSE_MS_MIN << MIN(n_tried, 8), (int64_t)PAUSE_MS_MAX);
    struct pollfd stop    = { .fd = il__guard_stop_fd(g, limit), .events = POLLIN };

    /* the current microseconds are random enough */
    (void)poll(&stop, 1, (int)(il__clock_boot_ns() / 1000 % most_ms) + 1);
}

il_status
il_guard_transact(il_guard *g, const il_guard_tx_opts *opts, il_guard_fn *fn, void *cookie,
                  int *ret_replayed, il_error *reterr)
{
    static const il_guard_tx_opts defaults = IL_GUARD_TX_OPTS_INIT;
    il_error                      err      = { .message = "" };

    if (g == NULL || fn == NULL)
        return il__error_set(reterr, IL_INVAL, "no database handle or no function given");
    if (opts == NULL)
        opts = &defaults;
    unsigned           n_max = opts->tries_max != 0 ? opts->tries_max : TRIES;
    struct attempt     a;
    struct guard_limit limit   = il__guard_limit(opts);
    bool               unknown = false; /* an earlier attempt may have committed */
    for (unsigned n = 1;; n++) {
        a       = attempt(g, opts, n, limit, fn, cookie, &err);
        unknown = a.unknown || (unknown && !a.recorded);
        if (!a.again || n >= n_max ||
            (limit.until_ns != 0 && il__clock_boot_ns() >= limit.until_ns))
            break;
        pause_before(g, limit, n);
    }
    if (a.status != IL_OK && !a.unknown && unknown)
        a.status = il__error_set(&err, IL_UNKNOWN,
                                 "connection lost during the commit; the outcome is unknown");
    if (a.status != IL_OK && reterr != NULL)
        *reterr = err;
    if (a.status == IL_OK && ret_replayed != NULL)
        *ret_replayed = a.replayed;
    return a.status;
}
