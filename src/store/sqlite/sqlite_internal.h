/*
 * sqlite_internal.h: the SQLite engine's own structures, shared by its files.
 *
 *   sqlite.c    opening, freeing, batches as transactions
 *   file.c      the database file, the lock file, the wake file
 *   conn.c      a connection: its settings, statements and errors
 *   schema.c    creating and migrating
 *   state.c     counters and clock: the one row of il_state
 *   hold.c      rows of leases
 *   waiters.c   rows of waiters: queues
 *   ended.c     the memory of ended leases
 *   settle.c    what is overdue, and giving keys on
 *   lock.c      acquire, renew, release, break
 *   order.c     lock order
 *   show.c      get, list, check_fence
 *   sweep.c     recovery and the deadlock search
 *   tx.c        transactions of the caller's own
 *   report.c    what doctor says
 *
 * Only sqlite.c knows about transactions: everything else works in the one that is open. A function that
 * uses the database returns false when that failed; the connection's `rc` says how, and the batch is undone.
 */
#ifndef IL_STORE_SQLITE_INTERNAL_H
#define IL_STORE_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "base/mutex.h"
#include "base/buf.h"
#include "base/clock.h"
#include "core/conflict.h"
#include "core/ended.h"
#include "core/limits.h"
#include "store/sqlite/error.h"
#include "store/store.h"

enum sq_stmt {
#define X(name) SQ_##name,
#include "store/sqlite/statements.def"
#undef X
    SQ_STMT_COUNT
};

/* conn.c: one connection. Used by one thread at a time. */
struct sq_conn {
    sqlite3      *db;
    sqlite3_stmt *stmts[SQ_STMT_COUNT];
    int           rc;       /* of the last call that failed; SQLITE_OK while none has */
    int           n_frames; /* of the WAL after the last commit */
};

il_status il__sq_conn_open(struct sq_conn *c, const char *path, bool read_only, int64_t timeout_ms,
                           il_error *reterr) MUST_USE;
void      il__sq_conn_close(struct sq_conn *c);
/* Use somebody else's connection as one of ours, with checkpoints taken by us only; and stop using it. */
il_status il__sq_conn_borrow(struct sq_conn *c, sqlite3 *db, const char *path, il_error *reterr)
    MUST_USE;
void          il__sq_conn_return(struct sq_conn *c);
il_status     il__sq_conn_error(const struct sq_conn *c, const char *path, il_error *reterr);
const char   *il__sq_sql(enum sq_stmt stmt);
sqlite3_stmt *il__sq_use(struct sq_conn *c, enum sq_stmt stmt); /* ready to bind; NULL: failed */
bool          il__sq_bind_int(struct sq_conn *c, sqlite3_stmt *s, int i, int64_t value);
bool          il__sq_bind_text(struct sq_conn *c, sqlite3_stmt *s, int i, const char *text);
bool il__sq_bind_blob(struct sq_conn *c, sqlite3_stmt *s, int i, const void *data, size_t n);
bool il__sq_bind_bytes(struct sq_conn *c, sqlite3_stmt *s, int i, const char *text, size_t n);
int  il__sq_step(struct sq_conn *c, sqlite3_stmt *s);   /* SQLITE_ROW, SQLITE_DONE, or failed: 0 */
bool il__sq_run(struct sq_conn *c, sqlite3_stmt *s);    /* to its end, rows ignored */
bool il__sq_exec(struct sq_conn *c, enum sq_stmt stmt); /* one without parameters */
/* A prefix (NULL = "") as parameter i, and where the texts that begin with it end as parameter i + 1. */
bool il__sq_bind_prefix(struct sq_conn *c, sqlite3_stmt *s, int i, const char *prefix);
/* The yes or no of a statement whose parameters are bound. */
bool il__sq_ask(struct sq_conn *c, sqlite3_stmt *s, bool *ret);
/* Does a statement whose parameters are bound give these bytes? No row is a no. */
bool il__sq_has_blob(struct sq_conn *c, sqlite3_stmt *s, const void *data, size_t n, bool *ret);
/* Begin a transaction, and undo one. Undoing keeps c->rc: the first error is the one to tell. */
bool        il__sq_begin(struct sq_conn *c, enum sq_stmt begin);
void        il__sq_undo(struct sq_conn *c);
const char *il__sq_text(sqlite3_stmt *s, int column); /* never NULL */

/* Stored numbers that can only be wrong if the file is damaged come within their range: a fence, token or ticket; a time, which
 * can be added to. */
static inline int64_t
il__sq_number(sqlite3_stmt *s, int column, int64_t min, int64_t max)
{
    int64_t value = sqlite3_column_int64(s, column);

    return MAX(MIN(value, max), min);
}

static inline uint64_t
il__sq_fence(sqlite3_stmt *s, int column)
{
    int64_t value = sqlite3_column_int64(s, column);

    return value >= 1 && (uint64_t)value < IL__FENCE_END ? (uint64_t)value : 1;
}

static inline int64_t
il__sq_time(sqlite3_stmt *s, int column)
{
    return il__sq_number(s, column, 0, INT64_C(1) << 60);
}

/* Memory of our own ran out: false, and c->rc says so. */
static inline bool
il__sq_no_memory(struct sq_conn *c)
{
    c->rc = SQLITE_NOMEM;
    return false;
}

/* What is stored does not fit together: false, and c->rc says so. */
static inline bool
il__sq_corrupt(struct sq_conn *c)
{
    c->rc = SQLITE_CORRUPT;
    return false;
}

/* vfs.c: the name of our VFS, to open a connection with */
const char *il__sq_vfs(void);
/* A transaction was undone: what it wrote to the WAL must not be written any more. */
void il__sq_vfs_forget(sqlite3 *db);

/* file.c */
struct sq_file {
    char            *path;
    int              lock_fd;
    struct il__board board;
    int64_t          timeout_ms;
    uint32_t         wanted_at; /* LOCK_WANTED when we took the lock */
    uint32_t         taken_at;  /* LOCK_TAKEN when we gave it to somebody who wanted it */
    bool             yields;    /* somebody wanted it: let him have it before we take it again */
};

il_status il__sq_file_open(struct sq_file *f, const char *path, bool existing, int64_t timeout_ms,
                           il_error *reterr) MUST_USE;
void      il__sq_file_close(struct sq_file *f);
/* A descriptor of its own for the lock file that `fd` has open: then they exclude each other. */
il_status il__sq_file_open_lock(struct sq_file *f, int fd, il_error *reterr) MUST_USE;
il_status il__sq_file_lock(struct sq_file *f, il_error *reterr) MUST_USE;
bool      il__sq_file_try_lock(struct sq_file *f); /* at once or not at all */
void      il__sq_file_unlock(struct sq_file *f);

/* state.c: counters and clock as a transaction sees them. */
struct sq_state {
    int64_t  version;
    int64_t  min_version;
    uint64_t fence;
    uint64_t ticket;
    char     boot_id[IL__BOOT_ID_BYTES];
    int64_t  offset_ms;
    int64_t  mark_ms;
    int64_t  order_n;
    uint64_t seed;
    int64_t  ended_seq;
    bool     test_clock;
    int64_t  now_ms; /* of this transaction */
    int64_t  wall_ms;
};

/* A place in a queue that was asked for in this transaction: see il__sq_waiters_before(). */
struct sq_place {
    bool     known;
    uint64_t ticket;
    uint32_t n_before;
    char     tenant[IL_TENANT_BYTES_MAX + 1];
    char     key[IL_KEY_BYTES_MAX + 1];
};

struct sq_store {
    struct il__store base;
    struct sq_file   file;
    const il_clock  *clock;
    struct il__ranks ranks;

    /* The write connection and what belongs to its transaction; one caller at a time (the executor). */
    struct sq_conn       conn;
    struct sq_state      state;
    bool                 has_waiters; /* does anybody wait? */
    struct sq_place      place;
    struct il__order     order;       /* learned edges, as far as read */
    int64_t              order_n;     /* of il_state when they were read */
    struct il__ended_log ended;       /* as far as read */
    int64_t              ended_seq;   /* last row of il_ended that is in it */
    struct il__buf       ended_new;   /* entries of this transaction */
    int64_t              purge_at_ms; /* when the front of il_ended is looked at again */
    uint32_t            *wakes;       /* words of the board to bump after the commit */
    size_t               n_wakes, wakes_capacity;
    void                *scratch; /* arena: what lives for one op */
    struct sq_runs      *runs;    /* run.c's own, and so on; NULL until it is used */
    struct sq_onces     *onces;
    struct sq_queues    *queues;
    struct sq_caches    *caches;
#ifdef IL_MUTANT_reply_before_commit
    unsigned n_uncommitted;
#endif

    struct il__mutex read_mutex; /* protects what follows */
    struct sq_conn   reader;
    bool             reader_open;

    struct il__mutex tx_mutex; /* protects what follows, and what belongs to the transaction of a caller */
    struct sq_tx  *tx;         /* the one that is open; NULL = none */
    pthread_cond_t tx_changed;
    pthread_t      tx_guard;
    bool           tx_guarded, tx_closing;
};

#define SQ_CHECKPOINT_FRAMES 10000 /* 40 MB of WAL: scattered changes are written back together */

/* tx.c */
void      il__sq_tx_init(struct sq_store *s);
void      il__sq_tx_release(struct sq_store *s);
il_status il__sq_tx_begin(struct sq_store *s, sqlite3 *db, struct il__store_tx **ret,
                          il_error *reterr) MUST_USE;

/* report.c */
il_status il__sq_report(struct sq_store *s, const char *table, il__report_fn *each, void *cookie,
                        il_error *reterr) MUST_USE;

bool il__sq_state_load(struct sq_conn *c, const il_clock *clock, struct sq_state *st);
bool il__sq_state_save(struct sq_store *s);
bool il__sq_state_create(struct sq_conn *c, const il_clock *clock, bool test_clock);

/* schema.c: the version that this code writes. */
#define SQ_SCHEMA_VERSION 5
#define SQ_SCHEMA_MIN_VERSION 4 /* the oldest code that can use what we make */
il_status il__sq_schema_prepare(struct sq_store *s, bool test_clock, il_error *reterr) MUST_USE;

/* hold.c, waiters.c: a lease, or a waiter (state WAITING). Strings are in the scratch arena. */
struct sq_hold {
    uint64_t       number; /* fence, or ticket */
    const char    *holder;
    il_mode        mode;
    uint32_t       permits;
    il_lease_state state;
    int64_t        ttl_ms;
    int64_t        settle_ms;
    int64_t        since_ms;
    int64_t        renewed_ms;
    int64_t        deadline_ms; /* a waiter's own */
    int64_t        due_ms;      /* expiry; when a waiter is dead */
    const char    *meta;
    const char    *place;
    const char    *reason;  /* of a lease: why it was broken, or "" */
    const char    *verdict; /* of a waiter: the cycle it was cancelled for, or "" */
    uint64_t       run;     /* seq of the run that it belongs to; 0 = none */
    bool           gone;    /* ended in this op */
};

struct sq_holds {
    struct sq_hold *items;
    size_t          n;
};

/* A key as an op sees it. */
struct sq_key {
    const char     *tenant;
    const char     *key;
    struct sq_holds leases;
    struct sq_holds waiters; /* the first ones of its queue, in the order of tickets */
    bool            more;    /* there may be others behind them, which were not read (waiters.c) */
    uint64_t        read_to; /* ticket of the last one that was read */
    struct sq_hold *added;   /* a waiter that was added in this op, behind those; NULL = none */
    uint64_t        run;     /* seq of the run that a new lease or waiter belongs to; 0 = none */
};

bool il__sq_key_load(struct sq_store *s, struct sq_key *k);
bool il__sq_lease_add(struct sq_store *s, struct sq_key *k, const struct sq_hold *h);
bool il__sq_lease_change(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h);
bool il__sq_lease_end(struct sq_store *s, const struct sq_key *k, struct sq_hold *h,
                      il_lease_state how);
/* The run of a lease has ended, and the lease goes on without it. */
bool            il__sq_lease_detach(struct sq_store *s, const struct sq_key *k, struct sq_hold *h);
struct sq_hold *il__sq_find_holder(const struct sq_holds *holds, const char *holder);
uint64_t        il__sq_newest_fence(const struct sq_key *k);
bool            il__sq_wake(struct sq_store *s, uint32_t slot);
/* Read one row of a statement whose columns are those of lease_of_key, or of waiter_of_key. */
bool     il__sq_lease_row(void **arena, sqlite3_stmt *row, struct sq_hold *h);
bool     il__sq_waiter_row(void **arena, sqlite3_stmt *row, struct sq_hold *h);
il_mode  il__sq_mode(sqlite3_stmt *row, int column);
uint32_t il__sq_permits(sqlite3_stmt *row, int column, il_mode mode);
bool     il__sq_holds_add(void **arena, struct sq_holds *holds, const struct sq_hold *h); /* false: no memory */

/* Is there a lease of the key, or another one of the holder's unit of work? */
bool il__sq_lease_busy(struct sq_store *s, const struct sq_key *k, const char *holder, bool *ret_busy);
/* Release a current lease that nobody waits for; *ret_done when it was. */
bool il__sq_lease_release(struct sq_store *s, const il_op *op, bool *ret_done);

/* waiters.c. Reading: the first part of the queue (il__sq_key_load() does that), some more of it, all of it. */
bool il__sq_waiters_begin(struct sq_store *s, struct sq_key *k);
bool il__sq_waiters_next(struct sq_store *s, struct sq_key *k);
bool il__sq_waiters_all(struct sq_store *s, struct sq_key *k);
/* The waiter of a holder, wherever in the queue; NULL = none. */
bool il__sq_waiters_find(struct sq_store *s, const struct sq_key *k, const char *holder,
                         struct sq_hold **ret);
/* May somebody in the queue be overdue? */
bool il__sq_waiters_overdue(struct sq_store *s, const struct sq_key *k, bool *ret);
/* How many are before a ticket, and how many there are; cancelled ones left out. The key is settled. */
bool il__sq_waiters_before(struct sq_store *s, const char *tenant, const char *key, uint64_t ticket,
                           uint32_t *ret);
bool il__sq_waiters_count(struct sq_store *s, const struct sq_key *k, uint32_t *ret);
bool il__sq_waiter_add(struct sq_store *s, struct sq_key *k, const struct sq_hold *h);
bool il__sq_waiter_refresh(struct sq_store *s, const struct sq_hold *h);
bool il__sq_waiter_end(struct sq_store *s, struct sq_key *k,
                       struct sq_hold *h); /* it waits no longer, whatever it is now */
bool il__sq_waiter_leave(struct sq_store *s, struct sq_key *k, struct sq_hold *h); /* and its run ends */

/* ended.c */
const struct il__ended *il__sq_ended_find(const struct sq_store *s, const char *tenant,
                                          const char *key, const char *holder);
bool il__sq_ended_add(struct sq_store *s, const char *tenant, const char *key, const char *holder,
                      uint64_t fence, il_lease_state how);
bool il__sq_ended_load(struct sq_store *s);
bool il__sq_ended_save(struct sq_store *s);
void il__sq_ended_done(struct sq_store *s, bool committed);
bool il__sq_ended_purge(struct sq_store *s, uint32_t n_rows);

/* settle.c */
bool            il__sq_settle(struct sq_store *s, struct sq_key *k, il_sweep_out *counts);
bool            il__sq_give_on(struct sq_store *s, struct sq_key *k, il_sweep_out *counts);
struct il__load il__sq_load(const struct sq_key *k);

/* lock.c: what acquires are made of, and starts of runs too; `op` is an acquire */
bool il__sq_is_free(struct sq_store *s, struct sq_key *k, bool *ret); /* nobody holds it or waits for it */
bool il__sq_answer_held(struct sq_store *s, il_op *op, const struct sq_key *k);
bool il__sq_acquire_own(struct sq_store *s, il_op *op, struct sq_key *k, struct sq_hold *own);
bool il__sq_grant(struct sq_store *s, il_op *op, struct sq_key *k);
bool il__sq_enqueue(struct sq_store *s, il_op *op, struct sq_key *k, uint64_t *ret_ticket);
bool il__sq_enqueued(struct sq_store *s, il_op *op, struct sq_key *k, uint64_t ticket);

/* The ops; false: the database failed. */
bool il__sq_acquire(struct sq_store *s, il_op *op);
bool il__sq_renew(struct sq_store *s, il_op *op);
bool il__sq_release(struct sq_store *s, il_op *op);
bool il__sq_break(struct sq_store *s, il_op *op);
bool il__sq_sweep(struct sq_store *s, il_op *op);
bool il__sq_rank(struct sq_store *s, il_op *op);  /* op->status is IL_OK, or IL_ORDER */
bool il__sq_learn(struct sq_store *s, il_op *op); /* from what the unit of work holds */
bool il__sq_search_deadlock(struct sq_store *s, const char *tenant, const char *const *holders,
                            size_t n, uint64_t *ret_ticket, struct il__buf *why, bool *ret_found);
/* get, list and check_fence work on either connection. */
bool il__sq_get(struct sq_conn *c, const struct sq_state *st, il_op *op);
bool il__sq_list(struct sq_conn *c, const struct sq_state *st, il_op *op);
bool il__sq_check_fence(struct sq_conn *c, const struct sq_state *st, il_op *op);
bool il__sq_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const char *key,
                 const struct sq_hold *h, int64_t n_waiters);

#endif
