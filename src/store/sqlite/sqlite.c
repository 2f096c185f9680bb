/*
 * sqlite.c: the SQLite engine: opening, freeing, and batches as transactions.
 *
 * A batch that changes something takes these steps: take the lock file, BEGIN IMMEDIATE, read the
 * counters and the clock, run the ops in order, COMMIT (which syncs), checkpoint if the WAL has
 * grown, release the lock file, wake the waiters. Replies never leave before the commit. A batch
 * that only reads takes neither lock: it runs in a read transaction on a separate connection, or in
 * several if it takes long.
 */
#include <errno.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"
#include "store/sqlite/cache.h"
#include "store/sqlite/history.h"
#include "store/sqlite/once.h"
#include "store/sqlite/queue.h"
#include "store/sqlite/run.h"

#define CLOSE_FRAMES 40 /* checkpoint when the store is closed: four short runs */
#define COMMIT_BYTES_MAX (16 * 1024 * 1024) /* of WAL, roughly: a commit cannot be divided */
/* a row and its index entries, each in a separate page */
#define ROW_BYTES ((size_t)5 * 4096)
#define PURGE_FULL_ROWS 20                 /* of one purge on a full disk: about 100 KiB of WAL */
#define ENDED_BYTES_MAX (64 * 1024 * 1024) /* leases that may end per transaction, 24 bytes each */

static const struct il__store_ops sq_ops;

static struct sq_store *
sq_from(struct il__store *s)
{
    CHECK(s->ops == &sq_ops);
    return container_of(s, struct sq_store, base);
}

/* ---- one op, one transaction ----------------------------------------------------------------- */

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
        CHECK(false); /* il__op_prepare() rejects these */
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
    case IL_OP_USAGE:
        return il__sq_usage(&s->conn, op);
    case IL_OP_ORDER_LIST:
        return il__sq_order_list(&s->conn, &s->ranks, op);
    case IL_OP_REFUSED:
        return il__sq_refused(s, op);
    case IL_OP_HISTORY:
        return il__sq_history(&s->conn, &s->state, &s->scratch, op);
    case IL_OP_SWEEP:
        return il__sq_sweep(s, op) && il__sq_run_sweep(s, op) && il__sq_once_sweep(s, op) &&
               il__sq_queue_sweep(s, op) && il__sq_cache_sweep(s, op) &&
               il__sq_history_sweep(s, op);
    default:
        return carry_out_family(s, op);
    }
}

/* Write what was gathered for the end of the transaction. */
static bool
save(struct sq_store *s)
{
    return il__sq_ended_save(s) && il__sq_queue_save(s) && il__sq_state_save(s);
}

/* The transaction was committed or rolled back. */
static void
done(struct sq_store *s, bool committed)
{
    il__sq_ended_done(s, committed);
    il__sq_queue_done(s);
}

/* Has a transaction, or a read, that began then used up its time? */
static bool
is_time_over(int64_t began_ns)
{
    return il__clock_boot_ns() - began_ns >= IL__COMMIT_MS * IL__NS_PER_MS;
}

/* Roughly what an op writes to the WAL: the pages of its rows, and its value. */
static size_t
wal_bytes_of(const il_op *op)
{
    size_t n_rows = op->type == IL_OP_JOB_CLAIM ? MIN(op->in.job.limit, IL_CLAIM_JOBS_MAX) : 1;

    return ROW_BYTES * MAX(n_rows, 1) + il__op_data_bytes(op);
}

/*
 * Run the first ops as one transaction, as many as its time and COMMIT_BYTES_MAX allow; rolled back
 * on failure. The lock file is held.
 */
static bool
transaction(struct sq_store *s, il_op *const *ops, size_t n, size_t *ret_done)
{
    struct sq_conn *c        = &s->conn;
    int64_t         began_ns = il__clock_boot_ns();
    size_t          n_bytes  = 0;
    size_t          i        = 0;

    s->n_wakes     = 0;
    s->place.known = false;
    if (!il__sq_begin(c, SQ_begin_write))
        return false;
    bool ok = il__sq_state_load(c, s->clock, &s->state) && il__sq_ended_load(s) &&
              il__sq_ask(c, il__sq_use(c, SQ_waiter_any), &s->has_waiters);
    while (ok && i < n) {
        n_bytes += wal_bytes_of(ops[i]);
        if (i > 0 && (n_bytes > COMMIT_BYTES_MAX || is_time_over(began_ns)))
            break;
        ok = il__op_refused(ops[i]) || carry_out(s, ops[i]);
        i++;
    }
    *ret_done = i;
#ifdef IL_MUTANT_reply_before_commit
    /* Acknowledged but not committed: lost if the process dies now. */
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

static void
wake_all(struct sq_store *s)
{
    for (size_t i = 0; i < s->n_wakes; i++)
        il__board_wake(&s->file.board, s->wakes[i]);
    s->n_wakes = 0;
}

static il_status
locked_transaction(struct sq_store *s, il_op *const *ops, size_t n, size_t *ret_done,
                   il_error *reterr)
{
    s->conn.rc   = SQLITE_OK;
    il_status st = il__sq_file_lock(&s->file, reterr);

    if (st != IL_OK)
        return st;
    st = il__sq_file_check(&s->file, reterr);
    if (st != IL_OK) {
        il__sq_file_unlock(&s->file);
        return st;
    }
    bool done = transaction(s, ops, n, ret_done);
    if (done && il__sq_wal_is_large(&s->wal, s->conn.n_frames))
        il__sq_checkpoint(&s->wal, &s->conn, s->file.timeout_ms);
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

/* Does the failure concern only the op, such as a lack of memory for its reply? Then the others may
 * proceed. */
static bool
is_of_one_op(il_status st, const struct sq_conn *c)
{
    int rc = c->rc & 0xFF;

    return st == IL_NOMEM || rc == SQLITE_CONSTRAINT || rc == SQLITE_TOOBIG ||
           rc == SQLITE_MISMATCH;
}

/* Run each op alone, so that a failing one does not take the others with it. */
static il_status
apply_each(struct sq_store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    int64_t began_ns = il__clock_boot_ns();
    size_t  n_one;
    size_t  i;

    for (i = 0; i < n && (i == 0 || !is_time_over(began_ns)); i++) {
        if (il__op_refused(ops[i]))
            continue;
        il_status st = locked_transaction(s, &ops[i], 1, &n_one, reterr);
        if (st == IL_OK)
            continue;
        reset_ops(&ops[i], 1);
        if (!is_of_one_op(st, &s->conn)) {
            if (reterr != NULL)
                reterr->native[0] = '\0'; /* not "busy": that means nothing has happened */
            return st;
        }
        ops[i]->status = st; /* certainly undone: it was rolled back alone */
    }
    *ret_done = i;
    return IL_OK;
}

/* ---- a full disk ----------------------------------------------------------------------------- */

/*
 * Purge a few jobs using the disk space reserved in the lock file, then checkpoint the WAL: its
 * pages can then be overwritten, and those of the purged jobs are free for others.
 */
static il_status
purge_in_reserve(struct sq_store *s, il_op *op, il_error *reterr)
{
    uint32_t limit = op->in.list.limit;
    size_t   n_done;

    s->conn.rc   = SQLITE_OK;
    il_status st = il__sq_file_lock(&s->file, reterr);
    if (st != IL_OK)
        return st;
    st = il__sq_file_check(&s->file, reterr);
    if (st == IL_OK) {
        il__sq_file_unreserve(&s->file);
        op->in.list.limit = MIN(limit, PURGE_FULL_ROWS);
        if (!transaction(s, &op, 1, &n_done))
            st = il__sq_conn_error(&s->conn, s->file.path, reterr);
        op->in.list.limit = limit;
        (void)sqlite3_busy_timeout(s->conn.db, 0); /* blocked by readers: the next purge does it */
        (void)sqlite3_wal_checkpoint_v2(s->conn.db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        (void)sqlite3_busy_timeout(s->conn.db, (int)MIN(s->file.timeout_ms, INT32_MAX));
        il__sq_file_reserve(&s->file, true);
    }
    il__sq_file_unlock(&s->file);
    if (st == IL_OK)
        wake_all(s);
    return st;
}

/* Nothing of the batch fits on the disk: execute purges, which free space; the others are FULL. */
static il_status
apply_full(struct sq_store *s, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        if (il__op_refused(ops[i]))
            continue;
        il_status st =
            ops[i]->type == IL_OP_JOB_PURGE ? purge_in_reserve(s, ops[i], reterr) : IL_FULL;
        if (st == IL_OK)
            continue;
        reset_ops(&ops[i], 1);
        if (st != IL_FULL)
            return st;
        ops[i]->status = st; /* undone for certain */
    }
    *ret_done = n;
    return IL_OK;
}

static bool
has_purge(il_op *const *ops, size_t n)
{
#ifdef IL_MUTANT_no_purge_on_a_full_disk
    n = 0;
#endif
    for (size_t i = 0; i < n; i++) {
        if (!il__op_refused(ops[i]) && ops[i]->type == IL_OP_JOB_PURGE)
            return true;
    }
    return false;
}

static il_status
sq_apply(struct il__store *base, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct sq_store *s  = sq_from(base);
    il_status        st = locked_transaction(s, ops, n, ret_done, reterr);

    if (st == IL_OK)
        return st;
    reset_ops(ops, n);
    if (st == IL_FULL && has_purge(ops, n))
        return apply_full(s, ops, n, ret_done, reterr);
    if (n == 1 || !is_of_one_op(st, &s->conn))
        return st;
    return apply_each(s, ops, n, ret_done, reterr);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool
read_op(struct sq_store *s, const struct sq_state *st, void **arena, il_op *op)
{
    struct sq_conn *c = &s->reader;

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
        if (op->type == IL_OP_USAGE)
            return il__sq_usage(c, op);
        if (op->type == IL_OP_ORDER_LIST)
            return il__sq_order_list(c, &s->ranks, op);
        if (op->type == IL_OP_HISTORY)
            return il__sq_history(c, st, arena, op);
        return op->type == IL_OP_LIST ? il__sq_list(c, st, op) : il__sq_check_fence(c, st, op);
    }
}

static bool
read_ops(struct sq_store *s, il_op *const *ops, size_t n, size_t *ret_done)
{
    struct sq_conn *c        = &s->reader;
    int64_t         began_ns = il__clock_boot_ns();
    void           *arena    = NULL;
    size_t          i;
    struct sq_state st;

    bool ok = il__sq_begin(c, SQ_begin_read) && il__sq_state_load(c, s->clock, &st);
    for (i = 0; ok && i < n && (i == 0 || !is_time_over(began_ns)); i++) {
        il_op *op = ops[i];
        if (il__op_refused(op))
            continue;
        ok = read_op(s, &st, &arena, op);
        il__arena_clear(&arena);
    }
    *ret_done = i;
    il__sq_undo(c); /* nothing was written */
    il__arena_free(&arena);
    return ok;
}

/*
 * Rolling back must not need memory when that has run out. Only once the schema exists: a statement
 * prepared before it is created would be prepared again.
 */
static il_status
prepare_way_back(struct sq_store *s, struct sq_conn *c, il_error *reterr)
{
    return il__sq_use(c, SQ_rollback) != NULL ? IL_OK : il__sq_conn_error(c, s->file.path, reterr);
}

static il_status
open_reader(struct sq_store *s, il_error *reterr)
{
    il_status st = il__sq_file_check_read(&s->file, reterr);
    if (st != IL_OK || s->reader_open)
        return st;
    /* The open file, even if the process has changed its directory: file.path may be relative. */
    const char *path = sqlite3_db_filename(s->conn.db, "main");
    st               = il__sq_conn_open(&s->reader, path, true, s->file.timeout_ms, reterr);
    if (st != IL_OK)
        return st;
    st = il__sq_file_check_read(&s->file, reterr); /* the reader has the same file open */
    if (st == IL_OK)
        st = prepare_way_back(s, &s->reader, reterr);
    s->reader_open = st == IL_OK;
    if (st != IL_OK)
        il__sq_conn_close(&s->reader);
    return st;
}

static il_status
sq_read(struct il__store *base, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    struct sq_store *s = sq_from(base);

    il__mutex_lock(&s->read_mutex);
    il_status st = open_reader(s, reterr);
    if (st == IL_OK && !read_ops(s, ops, n, ret_done)) {
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

/* If that cannot be determined, let a sweep try. */
static bool
sq_overdue(struct il__store *base)
{
    struct sq_store *s = sq_from(base);
    struct sq_conn  *c = &s->reader;
    struct sq_state  st;
    bool             overdue = false;

    il__sq_file_check_wake(&s->file);
    il__mutex_lock(&s->read_mutex);
    bool ok = il__sq_file_check(&s->file, NULL) == IL_OK && open_reader(s, NULL) == IL_OK &&
              il__sq_state_load(c, s->clock, &st) && locks_overdue(c, &st, &overdue) &&
              (overdue || il__sq_run_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_once_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_queue_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_cache_overdue(c, &st, &overdue)) &&
              (overdue || il__sq_history_overdue(c, &st, &overdue));
    il__mutex_unlock(&s->read_mutex);
    return overdue || !ok;
}

static il_status
sq_tx_begin(struct il__store *base, struct sqlite3 *db, struct il__store_tx **ret, il_error *reterr)
{
    return il__sq_tx_begin(sq_from(base), db, ret, reterr);
}

static il_status
sq_report(struct il__store *base, const char *table, il__report_fn *each, void *cookie,
          il_error *reterr)
{
    return il__sq_report(sq_from(base), table, each, cookie, reterr);
}

/* ---- opening and freeing --------------------------------------------------------------------- */

static void
sq_free(struct il__store *base)
{
    struct sq_store *s = sq_from(base);

    il__sq_tx_release(s);
    /* The next process to open the store alone has to read the whole WAL first, even what was
     * already copied into the database. So leave little of it, unless another process is active. If
     * readers are in the way, the WAL stays: nothing is lost. */
    if (s->conn.n_frames >= CLOSE_FRAMES && il__sq_file_check(&s->file, NULL) == IL_OK &&
        il__sq_file_try_lock(&s->file)) {
        (void)sqlite3_busy_timeout(s->conn.db, 0);
        (void)sqlite3_wal_checkpoint_v2(s->conn.db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
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
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    il_status st = il__sq_file_open(&s->file, o->path, o->existing, o->timeout_ms, reterr);
    if (st == IL_OK)
        st = il__sq_conn_open(&s->conn, o->path, false, o->timeout_ms, reterr);
    if (st == IL_OK && sqlite3_db_readonly(s->conn.db, "main") == 1)
        st = il__error_set(reterr, IL_STORE, "%s: not writable", o->path);
    if (st == IL_OK)
        st = il__sq_schema_prepare(s, o->test_clock, reterr);
    if (st == IL_OK)
        st = il__sq_file_note(&s->file, s->conn.db, reterr);
    if (st == IL_OK)
        st = prepare_way_back(s, &s->conn, reterr);
    return st;
}

il_status
il__store_sqlite_open(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    struct sq_store *s = il__calloc(1, sizeof *s);

    if (s == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    s->base         = (struct il__store){ .ops = &sq_ops, .board = &s->file.board };
    s->clock        = o->clock;
    s->order_n      = -1;
    s->file.lock_fd = -1;
    il__buf_init(&s->ended_new, ENDED_BYTES_MAX);
    il__mutex_init(&s->read_mutex, IL__MUTEX_reader);
    il__sq_wal_init(&s->wal);
    il__sq_tx_init(s);
    il_status st = open_store(s, o, reterr);
    if (st != IL_OK) {
        sq_free(&s->base);
        return st;
    }
    *ret = &s->base;
    return IL_OK;
}
