/*
 * sqlite.c: the SQLite engine: opening, freeing, and batches as transactions.
 *
 * A batch that changes something: lock file, BEGIN IMMEDIATE, the counters and the clock, the ops in order,
 * COMMIT (which syncs), a checkpoint when the WAL has grown, lock file given up, waiters woken. Replies leave
 * after the commit and never before. A batch that only reads takes neither lock: one read transaction on a
 * connection of its own.
 */
#include <errno.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"
#include "store/sqlite/cache.h"
#include "store/sqlite/once.h"
#include "store/sqlite/queue.h"
#include "store/sqlite/run.h"

#define CLOSE_FRAMES 40 /* checkpoint when the store is closed: four short runs */
#define ENDED_BYTES_MAX (64 * 1024 * 1024) /* what may end in one transaction, 24 bytes each */

static const struct il__store_ops sq_ops;

static struct sq_store *
sq_from(struct il__store *s)
{
    CHECK(s->ops == &sq_ops);
    return container_of(s, struct sq_store, base);
}

/* ---- one op, one transaction ----------------------------------------------------------------------------------- */

static bool
carry_out_family(struct sq_store *s, il_op *op)
{
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        return il__sq_run_op(s, op);
    case IL__FAMILY_ONCE:
        return il__sq_once_op(s, op);
    case IL__FAMILY_QUEUE:
        return il__sq_queue_op(s, op);
    case IL__FAMILY_CACHE:
        return il__sq_cache_op(s, op);
    case IL__FAMILY_LOCK:
    default:
        CHECK(false); /* il__op_prepare() lets none of these through */
        return false;
    }
}

static bool
carry_out(struct sq_store *s, il_op *op)
{
    il__arena_clear(&s->scratch);
    switch (op->type) {
    case IL_OP_ACQUIRE:
        return il__sq_acquire(s, op);
    case IL_OP_RENEW:
        return il__sq_renew(s, op);
    case IL_OP_RELEASE:
        return il__sq_release(s, op);
    case IL_OP_BREAK:
        return il__sq_break(s, op);
    case IL_OP_GET:
        return il__sq_get(&s->conn, &s->state, op);
    case IL_OP_LIST:
        return il__sq_list(&s->conn, &s->state, op);
    case IL_OP_CHECK_FENCE:
        return il__sq_check_fence(&s->conn, &s->state, op);
    case IL_OP_SWEEP:
        return il__sq_sweep(s, op) && il__sq_run_sweep(s, op) && il__sq_once_sweep(s, op) &&
               il__sq_queue_sweep(s, op) && il__sq_cache_sweep(s, op);
    default:
        return carry_out_family(s, op);
    }
}

/* What was gathered for the end of the transaction. */
static bool
save(struct sq_store *s)
{
    return il__sq_ended_save(s) && il__sq_queue_save(s) && il__sq_state_save(s);
}

/* The transaction was committed, or undone. */
static void
done(struct sq_store *s, bool committed)
{
    il__sq_ended_done(s, committed);
    il__sq_queue_done(s);
}

/* The ops as one transaction; undone when something failed. The lock file is held. */
static bool
transaction(struct sq_store *s, il_op *const *ops, size_t n)
{
    struct sq_conn *c = &s->conn;

    s->n_wakes     = 0;
    s->place.known = false;
    if (!il__sq_begin(c, SQ_begin_write))
        return false;
    bool ok = il__sq_state_load(c, s->clock, &s->state) && il__sq_ended_load(s) &&
              il__sq_ask(c, il__sq_use(c, SQ_waiter_any), &s->has_waiters);
    for (size_t i = 0; ok && i < n; i++)
        ok = il__op_refused(ops[i]) || carry_out(s, ops[i]);
#ifdef IL_MUTANT_reply_before_commit
    /* Acknowledged, but not committed: lost when the process dies now. */
    if (ok && s->n_uncommitted++ % 2 == 0) {
        done(s, false);
        return il__sq_exec(c, SQ_rollback);
    }
#endif
    if (ok && save(s) && il__sq_exec(c, SQ_commit)) {
        done(s, true);
        return true;
    }
    done(s, false);
    s->order_n = -1; /* what was learned in memory may not be in the file */
    il__sq_undo(c);
    return false;
}

/*
 * Move the WAL into the database. The lock file is held. Without waiting for readers: what cannot be done now is
 * done after a later commit, and its failure loses nothing, since the WAL stays.
 */
static void
checkpoint(struct sq_store *s, int mode)
{
    struct sq_conn *c = &s->conn;

    (void)sqlite3_busy_timeout(c->db, 0);
    if (sqlite3_wal_checkpoint_v2(c->db, "main", mode, NULL, NULL) == SQLITE_OK)
        c->n_frames = 0;
    (void)sqlite3_busy_timeout(c->db, (int)MIN(s->file.timeout_ms, INT32_MAX));
}

static void
wake_all(struct sq_store *s)
{
    for (size_t i = 0; i < s->n_wakes; i++)
        il__board_wake(&s->file.board, s->wakes[i]);
    s->n_wakes = 0;
}

static il_status
locked_transaction(struct sq_store *s, il_op *const *ops, size_t n, il_error *reterr)
{
    s->conn.rc   = SQLITE_OK;
    il_status st = il__sq_file_lock(&s->file, reterr);

    if (st != IL_OK)
        return st;
    /* RESTART, not TRUNCATE: under the lock file both are safe, but a truncated WAL has to be extended by
     * every following commit, which costs a lone caller 40 % of its rate. */
    bool done = transaction(s, ops, n);
    if (done && s->conn.n_frames >= SQ_CHECKPOINT_FRAMES)
        checkpoint(s, SQLITE_CHECKPOINT_RESTART);
    if (!done)
        st = il__sq_conn_error(&s->conn, s->file.path, reterr);
    il__sq_file_unlock(&s->file);
    if (st == IL_OK)
        wake_all(s);
    return st;
}

static void
reset_ops(il_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!il__op_refused(ops[i]))
            il__op_reset(ops[i]);
    }
}

/* Is the failure one of the op's own, such as a lack of memory for its answer? The others may go on then. */
static bool
is_of_one_op(il_status st, const struct sq_conn *c)
{
    int rc = c->rc & 0xFF;

    return st == IL_NOMEM || rc == SQLITE_CONSTRAINT || rc == SQLITE_TOOBIG || rc == SQLITE_MISMATCH;
}

static il_status
sq_apply(struct il__store *base, il_op *const *ops, size_t n, il_error *reterr)
{
    struct sq_store *s  = sq_from(base);
    il_status        st = locked_transaction(s, ops, n, reterr);

    if (st == IL_OK)
        return st;
    reset_ops(ops, n);
    if (n == 1 || !is_of_one_op(st, &s->conn))
        return st;
    /* Each alone, so that the one that fails does not take the others with it. */
    for (size_t i = 0; i < n; i++) {
        if (il__op_refused(ops[i]))
            continue;
        st = locked_transaction(s, &ops[i], 1, reterr);
        if (st == IL_OK)
            continue;
        reset_ops(&ops[i], 1);
        if (!is_of_one_op(st, &s->conn)) {
            if (reterr != NULL)
                reterr->native[0] = '\0'; /* not "busy", which means that nothing has happened */
            return st;
        }
        ops[i]->status = st; /* undone for certain: it was rolled back alone */
    }
    return IL_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

static bool
read_op(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op)
{
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        return il__sq_run_read(c, st, arena, op);
    case IL__FAMILY_ONCE:
        return il__sq_once_read(c, st, arena, op);
    case IL__FAMILY_QUEUE:
        return il__sq_queue_read(c, st, arena, op);
    case IL__FAMILY_CACHE:
        return il__sq_cache_read(c, st, arena, op);
    case IL__FAMILY_LOCK:
    default:
        if (op->type == IL_OP_GET)
            return il__sq_get(c, st, op);
        return op->type == IL_OP_LIST ? il__sq_list(c, st, op) : il__sq_check_fence(c, st, op);
    }
}

static bool
read_ops(struct sq_store *s, il_op *const *ops, size_t n)
{
    struct sq_conn *c     = &s->reader;
    void           *arena = NULL;
    struct sq_state st;

    bool ok = il__sq_begin(c, SQ_begin_read) && il__sq_state_load(c, s->clock, &st);
    for (size_t i = 0; ok && i < n; i++) {
        il_op *op = ops[i];
        if (il__op_refused(op))
            continue;
        ok = read_op(c, &st, &arena, op);
        il__arena_clear(&arena);
    }
    il__sq_undo(c); /* nothing was written */
    il__arena_free(&arena);
    return ok;
}

/*
 * Undoing must not need memory when that has run out. Only once the schema is there: a statement prepared before
 * it is made would be prepared again.
 */
static il_status
prepare_way_back(struct sq_store *s, struct sq_conn *c, il_error *reterr)
{
    return il__sq_use(c, SQ_rollback) != NULL ? IL_OK : il__sq_conn_error(c, s->file.path, reterr);
}

static il_status
open_reader(struct sq_store *s, il_error *reterr)
{
    if (s->reader_open)
        return IL_OK;
    /* The file that is open, wherever the process has gone meanwhile: file.path may be relative. */
    const char *path = sqlite3_db_filename(s->conn.db, "main");
    il_status   st   = il__sq_conn_open(&s->reader, path, true, s->file.timeout_ms, reterr);
    if (st != IL_OK)
        return st;
    st             = prepare_way_back(s, &s->reader, reterr);
    s->reader_open = st == IL_OK;
    if (st != IL_OK)
        il__sq_conn_close(&s->reader);
    return st;
}

static il_status
sq_read(struct il__store *base, il_op *const *ops, size_t n, il_error *reterr)
{
    struct sq_store *s = sq_from(base);

    il__mutex_lock(&s->read_mutex);
    il_status st = open_reader(s, reterr);
    if (st == IL_OK && !read_ops(s, ops, n)) {
        st = il__sq_conn_error(&s->reader, s->file.path, reterr);
        reset_ops(ops, n);
    }
    il__mutex_unlock(&s->read_mutex);
    return st;
}

static bool
locks_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_overdue);

    return il__sq_bind_int(c, row, 1, st->now_ms) &&
           il__sq_bind_int(c, row, 2, st->now_ms - IL__ENDED_KEEP_MS) && il__sq_ask(c, row, ret);
}

/* When that cannot be found out, a sweep is to try. */
static bool
sq_overdue(struct il__store *base)
{
    struct sq_store *s = sq_from(base);
    struct sq_conn  *c = &s->reader;
    struct sq_state  st;
    bool             overdue = false;

    il__mutex_lock(&s->read_mutex);
    bool ok = open_reader(s, NULL) == IL_OK && il__sq_state_load(c, s->clock, &st) &&
              locks_overdue(c, &st, &overdue) && (overdue || il__sq_run_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_once_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_queue_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_cache_overdue(c, &st, &overdue));
    il__mutex_unlock(&s->read_mutex);
    return overdue || !ok;
}

static il_status
sq_tx_begin(struct il__store *base, struct sqlite3 *db, struct il__store_tx **ret, il_error *reterr)
{
    return il__sq_tx_begin(sq_from(base), db, ret, reterr);
}

static il_status
sq_report(struct il__store *base, const char *table, il__report_fn *each, void *cookie, il_error *reterr)
{
    return il__sq_report(sq_from(base), table, each, cookie, reterr);
}

/* ---- opening and freeing -------------------------------------------------------------------------------------------- */

static void
sq_free(struct il__store *base)
{
    struct sq_store *s = sq_from(base);

    il__sq_tx_release(s);
    /* Whoever opens the store next, with nobody else there, has to read the whole WAL first, also what was moved
     * into the database already: leave him little of it, unless somebody else is at work. */
    if (s->conn.n_frames >= CLOSE_FRAMES && il__sq_file_try_lock(&s->file)) {
        checkpoint(s, SQLITE_CHECKPOINT_TRUNCATE);
        il__sq_file_unlock(&s->file);
    }
    il__sq_queue_release(s);
    il__sq_conn_close(&s->reader);
    il__sq_conn_close(&s->conn);
    il__sq_file_close(&s->file);
    il__order_release(&s->order);
    il__ended_release(&s->ended);
    il__buf_release(&s->ended_new);
    il__arena_free(&s->scratch);
    il__ranks_release(&s->ranks);
    il__free(s->wakes);
    il__mutex_destroy(&s->read_mutex);
    il__free(s);
}

static const struct il__store_ops sq_ops = {
    .name     = "sqlite",
    .caps     = IL__STORE_DURABLE | IL__STORE_SHARED,
    .free     = sq_free,
    .apply    = sq_apply,
    .read     = sq_read,
    .overdue  = sq_overdue,
    .tx_begin = sq_tx_begin,
    .report   = sq_report,
};

static il_status
open_store(struct sq_store *s, const struct il__store_open *o, il_error *reterr)
{
    if (!il__ranks_copy(&o->ranks, &s->ranks))
        return il__error_set(reterr, IL_NOMEM, "no memory for a store");
    il_status st = il__sq_file_open(&s->file, o->path, o->existing, o->timeout_ms, reterr);
    if (st == IL_OK)
        st = il__sq_conn_open(&s->conn, o->path, false, o->timeout_ms, reterr);
    if (st == IL_OK && sqlite3_db_readonly(s->conn.db, "main") == 1)
        st = il__error_set(reterr, IL_STORE, "%s: it cannot be written", o->path);
    if (st == IL_OK)
        st = il__sq_schema_prepare(s, o->test_clock, reterr);
    if (st == IL_OK)
        st = prepare_way_back(s, &s->conn, reterr);
    return st;
}

il_status
il__store_sqlite_open(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    struct sq_store *s = il__calloc(1, sizeof *s);

    if (s == NULL)
        return il__error_set(reterr, IL_NOMEM, "no memory for a store");
    s->base         = (struct il__store){ .ops = &sq_ops, .board = &s->file.board };
    s->clock        = o->clock;
    s->order_n      = -1;
    s->file.lock_fd = -1;
    il__buf_init(&s->ended_new, ENDED_BYTES_MAX);
    il__mutex_init(&s->read_mutex, IL__MUTEX_reader);
    il__sq_tx_init(s);
    il_status st = open_store(s, o, reterr);
    if (st != IL_OK) {
        sq_free(&s->base);
        return st;
    }
    *ret = &s->base;
    return IL_OK;
}
