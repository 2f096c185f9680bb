/*
 * caller_tx.c: the caller's own transactions, on the caller's own connection to the store's file.
 *
 * The caller's statements and our ops form one SQLite transaction. Like every write, it holds the
 * lock file, but through a separate descriptor, so it excludes both the executor of the same handle
 * and other processes. Ops run through the same code as in a batch, on a shadow of the store whose
 * connection is the caller's. After each il_tx_apply() counters and totals are in the database, so
 * rolling back to a savepoint also reverts them.
 *
 * What keeps job and row together:
 *   - only il_tx_commit() can commit: while the transaction is open, a commit hook refuses every
 *     other commit on this connection, both the caller's own COMMIT and that of statements it runs
 *     after a rollback;
 *   - a hook notices any rollback, whatever caused it, and il_tx_commit() then refuses.
 *
 * What keeps the store available: a thread of the store (tx_watch) watches the open transaction.
 * When it is older than IL__TX_MS, this thread interrupts the running statement, waits for the
 * connection's mutex, rolls back and releases the lock file, whatever the owner is doing. If the
 * whole process is stopped (SIGSTOP), so is this thread: others then wait until their timeout, as
 * for any stopped writer.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "core/op.h"
#include "store/sqlite/queue.h"

#define RETRY_NS IL__NS_PER_MS /* until the connection's mutex is free */

struct sq_tx {
    struct il__store_tx base;
    struct sq_store    *store;
    struct sq_store     shadow; /* its connection is the caller's */
    int64_t             deadline_ns;
    atomic_bool         commits;   /* il_tx_commit() is running: let its commit through */
    atomic_bool         undone;    /* it was rolled back */
    bool                timed_out; /* set by tx_watch(); under the store's tx_mutex */
};

static struct sq_tx *
tx_from(struct il__store_tx *base)
{
    return container_of(base, struct sq_tx, base);
}

/* ---- hooks of the caller's connection -------------------------------------------------------- */

static int
refuse_commit(void *cookie)
{
    struct sq_tx *tx = cookie;

    return !atomic_load(&tx->commits);
}

static void
note_rollback(void *cookie)
{
    struct sq_tx *tx = cookie;

    atomic_store(&tx->undone, true);
}

static void
set_hooks(struct sq_tx *tx, bool on)
{
    sqlite3 *db = tx->shadow.conn.db;

    (void)sqlite3_commit_hook(db, on ? refuse_commit : NULL, tx); /* these return what was there */
    (void)sqlite3_rollback_hook(db, on ? note_rollback : NULL, tx);
}

/* ---- the watch ------------------------------------------------------------------------------- */

/*
 * Roll back a transaction that is too old. False: the connection is busy, or the rollback failed;
 * try again. The owner cannot be in il_tx_*(), which hold the store's tx_mutex; it may be in a
 * statement, which is interrupted and then releases the mutex.
 */
static bool
time_out(struct sq_tx *tx)
{
    struct sq_conn *c     = &tx->shadow.conn;
    sqlite3_mutex  *mutex = sqlite3_db_mutex(c->db);

    CHECK(il__mutex_held(&tx->store->tx_mutex));
    if (sqlite3_mutex_try(mutex) != SQLITE_OK) {
        sqlite3_interrupt(c->db);
        return false;
    }
    bool done = sqlite3_get_autocommit(c->db) != 0 || il__sq_exec(c, SQ_rollback);
    if (done) {
        tx->timed_out = true;
        il__sq_file_unlock(&tx->shadow.file);
    }
    sqlite3_mutex_leave(mutex);
    return done;
}

static void *
tx_watch(void *cookie)
{
    struct sq_store *s = cookie;

    il__mutex_lock(&s->tx_mutex);
    while (!s->tx_closing) {
        struct sq_tx *tx      = s->tx;
        int64_t       wait_ns = -1;
        if (tx != NULL && !tx->timed_out) {
            wait_ns = tx->deadline_ns - il__clock_boot_ns();
            if (wait_ns <= 0)
                wait_ns = time_out(tx) ? -1 : RETRY_NS;
        }
        (void)il__cond_wait(&s->tx_changed, &s->tx_mutex, wait_ns); /* in any case: check again */
    }
    il__mutex_unlock(&s->tx_mutex);
    return NULL;
}

/* Let the thread watch the transaction from now on. */
static bool
watch(struct sq_tx *tx)
{
    struct sq_store *s = tx->store;

    il__mutex_lock(&s->tx_mutex);
    CHECK(s->tx == NULL); /* it has the lock file */
    if (!s->tx_has_watcher)
        s->tx_has_watcher = il__thread_start(&s->tx_watcher, tx_watch, s) == 0;
    if (s->tx_has_watcher)
        s->tx = tx;
    CHECK(pthread_cond_broadcast(&s->tx_changed) == 0);
    bool watched = s->tx_has_watcher;
    il__mutex_unlock(&s->tx_mutex);
    return watched;
}

void
il__sq_tx_init(struct sq_store *s)
{
    il__mutex_init(&s->tx_mutex, IL__MUTEX_tx);
    il__cond_init(&s->tx_changed);
}

void
il__sq_tx_release(struct sq_store *s)
{
    CHECK(s->tx == NULL);
    il__mutex_lock(&s->tx_mutex);
    s->tx_closing = true;
    CHECK(pthread_cond_broadcast(&s->tx_changed) == 0);
    il__mutex_unlock(&s->tx_mutex);
    if (s->tx_has_watcher)
        CHECK(pthread_join(s->tx_watcher, NULL) == 0);
    CHECK(pthread_cond_destroy(&s->tx_changed) == 0);
    il__mutex_destroy(&s->tx_mutex);
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* Is it a connection to the file of this store? Not through a hard link, which would have its own
 * WAL. */
static il_status
check_connection(struct sq_store *s, sqlite3 *db, il_error *reterr)
{
    const char *theirs = sqlite3_db_filename(db, "main");
    char       *a      = realpath(sqlite3_db_filename(s->conn.db, "main"), NULL);
    char       *b      = theirs != NULL ? realpath(theirs, NULL) : NULL;
    bool        same   = a != NULL && b != NULL && strcmp(a, b) == 0;

    free(a);
    free(b);
    if (!same)
        return il__error_set(reterr, IL_INVAL, "%s: the connection is open on another file",
                             s->file.path);
    if (!sqlite3_get_autocommit(db))
        return il__error_set(reterr, IL_INVAL, "%s: the connection has an open transaction",
                             s->file.path);
    if (sqlite3_db_mutex(db) == NULL)
        return il__error_set(reterr, IL_INVAL,
                             "%s: the connection must be opened with SQLITE_OPEN_FULLMUTEX",
                             s->file.path);
    return IL_OK;
}

/* Release everything that begin() took; the caller does the rollback. */
static void
tx_free(struct sq_tx *tx)
{
    struct sq_store *shadow = &tx->shadow;

    if (shadow->conn.db != NULL)
        set_hooks(tx, false);
    il__sq_queue_release(shadow);
    il__sq_conn_return(&shadow->conn);
    if (shadow->file.lock_fd >= 0)
        (void)close(shadow->file.lock_fd); /* gives the lock up, if it is still held */
    il__arena_free(&shadow->scratch);
    il__free(shadow->wakes);
    il__free(tx);
}

static il_status
begin(struct sq_tx *tx, il_error *reterr)
{
    struct sq_store *shadow = &tx->shadow;
    struct sq_conn  *c      = &shadow->conn;

    il_status st = il__sq_file_lock(&shadow->file, reterr);
    if (st != IL_OK)
        return st;
    st = il__sq_file_check(&tx->store->file, reterr);
    if (st != IL_OK) {
        il__sq_file_unlock(&shadow->file);
        return st;
    }
    /* Prepare the rollback first: it must not need memory. */
    bool ok = il__sq_use(c, SQ_rollback) != NULL && il__sq_begin(c, SQ_begin_write);
    if (ok) {
        tx->deadline_ns = il__clock_boot_ns() + IL__TX_MS * IL__NS_PER_MS;
        set_hooks(tx, true);
        ok = il__sq_state_load(c, shadow->clock, &shadow->state);
    }
    if (!ok)
        st = il__sq_conn_error(c, shadow->file.path, reterr);
    else if (!watch(tx))
        st = il__error_set(reterr, IL_NOMEM, "cannot start the thread that watches a transaction");
    if (st != IL_OK) {
        il__sq_undo(c);
        il__sq_file_unlock(&shadow->file);
    }
    return st;
}

static il_status tx_apply(struct il__store_tx *base, il_op *const *ops, size_t n, il_error *reterr);
static il_status tx_commit(struct il__store_tx *base, il_error *reterr);
static void      tx_rollback(struct il__store_tx *base);

il_status
il__sq_tx_begin(struct sq_store *s, sqlite3 *db, struct il__store_tx **ret, il_error *reterr)
{
    il_status st = check_connection(s, db, reterr);

    if (st != IL_OK)
        return st;
    struct sq_tx *tx = il__calloc(1, sizeof *tx);
    if (tx == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a transaction");
    tx->base         = (struct il__store_tx){ tx_apply, tx_commit, tx_rollback };
    tx->store        = s;
    tx->shadow.clock = s->clock;
    tx->shadow.file  = (struct sq_file){ .path       = s->file.path,
                                         .lock_fd    = -1,
                                         .board      = s->file.board,
                                         .timeout_ms = s->file.timeout_ms };
    st               = il__sq_file_open_lock(&tx->shadow.file, s->file.lock_fd, reterr);
    if (st == IL_OK)
        st = il__sq_conn_borrow(&tx->shadow.conn, db, s->file.path, reterr);
    if (st == IL_OK)
        st = begin(tx, reterr);
    if (st != IL_OK) {
        tx_free(tx);
        return st;
    }
    *ret = &tx->base;
    return IL_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

/* Is the transaction still the one that was begun? The store's tx_mutex is held. */
static il_status
check_open(struct sq_tx *tx, il_error *reterr)
{
    if (tx->timed_out || il__clock_boot_ns() >= tx->deadline_ns)
        return il__error_set(reterr, IL_TIMEOUT,
                             "the transaction was open for more than %d ms and was rolled back",
                             (int)IL__TX_MS);
    if (atomic_load(&tx->undone) || sqlite3_get_autocommit(tx->shadow.conn.db))
        return il__error_set(reterr, IL_STATE,
                             "the transaction was rolled back by a statement in it");
    return IL_OK;
}

static bool
apply_ops(struct sq_store *shadow, il_op *const *ops, size_t n)
{
    struct sq_conn *c  = &shadow->conn;
    bool            ok = il__sq_state_load(c, shadow->clock, &shadow->state);

    for (size_t i = 0; ok && i < n; i++) {
        il__arena_clear(&shadow->scratch);
        if (il__op_refused(ops[i]))
            continue;
        ok = ops[i]->type == IL_OP_CHECK_FENCE ? il__sq_check_fence(c, &shadow->state, ops[i])
                                               : il__sq_queue_op(shadow, ops[i]);
    }
    return ok && il__sq_queue_save(shadow) && il__sq_state_save(shadow);
}

/* Run the ops in a savepoint: all or none. */
static il_status
apply_saved(struct sq_tx *tx, il_op *const *ops, size_t n, il_error *reterr)
{
    struct sq_store *shadow  = &tx->shadow;
    struct sq_conn  *c       = &shadow->conn;
    size_t           n_wakes = shadow->n_wakes;

    c->rc = SQLITE_OK;
    if (!il__sq_exec(c, SQ_savepoint))
        return il__sq_conn_error(c, shadow->file.path, reterr);
    bool ok = apply_ops(shadow, ops, n);
    il__sq_queue_done(shadow);
    if (ok && il__sq_exec(c, SQ_savepoint_release))
        return IL_OK;
    il_status st    = il__sq_conn_error(c, shadow->file.path, reterr);
    shadow->n_wakes = n_wakes;
    /* Some failures have already rolled back everything. What cannot be undone alone is undone with
     * the rest. */
    if (!sqlite3_get_autocommit(c->db) &&
        (!il__sq_exec(c, SQ_savepoint_undo) || !il__sq_exec(c, SQ_savepoint_release)))
        il__sq_undo(c);
    for (size_t i = 0; i < n; i++) {
        if (!il__op_refused(ops[i]))
            il__op_reset(ops[i]);
    }
    return st;
}

static il_status
tx_apply(struct il__store_tx *base, il_op *const *ops, size_t n, il_error *reterr)
{
    struct sq_tx *tx = tx_from(base);

    il__mutex_lock(&tx->store->tx_mutex);
    il_status st = check_open(tx, reterr);
    if (st == IL_OK)
        st = apply_saved(tx, ops, n, reterr);
    il__mutex_unlock(&tx->store->tx_mutex);
    return st;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* On a connection of ours: waiting for readers sets a timeout, and the caller's connection keeps
 * its own. */
static void
move_wal(struct sq_store *s)
{
    struct sq_conn c;

    if (il__sq_file_check(&s->file, NULL) != IL_OK)
        return;
    if (il__sq_conn_open(&c, sqlite3_db_filename(s->conn.db, "main"), false, 0, NULL) != IL_OK)
        return; /* the next commit tries again */
    il__sq_checkpoint(&s->wal, &c, 0);
    il__sq_conn_close(&c);
}

/* Roll back what is still open, and detach it from the watch. Releases the lock file. */
static void
end(struct sq_tx *tx)
{
    struct sq_store *s = tx->store;
    struct sq_conn  *c = &tx->shadow.conn;

    CHECK(il__mutex_held(&s->tx_mutex));
    CHECK(s->tx == tx);
    il__sq_undo(c);
    s->tx = NULL;
    if (!tx->timed_out) {
        if (c->n_frames > 0 && il__sq_wal_is_large(&s->wal, c->n_frames))
            move_wal(s);
        il__sq_file_unlock(&tx->shadow.file);
    }
}

static il_status
tx_commit(struct il__store_tx *base, il_error *reterr)
{
    struct sq_tx    *tx     = tx_from(base);
    struct sq_store *shadow = &tx->shadow;

    il__mutex_lock(&tx->store->tx_mutex);
    il_status st = check_open(tx, reterr);
    if (st == IL_OK) {
        shadow->conn.rc = SQLITE_OK;
        atomic_store(&tx->commits, true);
        if (!il__sq_exec(&shadow->conn, SQ_commit))
            st = il__sq_conn_error(&shadow->conn, shadow->file.path, reterr);
    }
    end(tx);
    il__mutex_unlock(&tx->store->tx_mutex);
    for (size_t i = 0; st == IL_OK && i < shadow->n_wakes; i++)
        il__board_wake(&shadow->file.board, shadow->wakes[i]);
    tx_free(tx);
    return st;
}

static void
tx_rollback(struct il__store_tx *base)
{
    struct sq_tx *tx = tx_from(base);

    il__mutex_lock(&tx->store->tx_mutex);
    end(tx);
    il__mutex_unlock(&tx->store->tx_mutex);
    tx_free(tx);
}
