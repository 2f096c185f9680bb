/*
 * sqlite_internal.h: structures shared by the files of the SQLite engine.
 *
 *   sqlite.c         opening, freeing, batches as transactions
 *   file.c           the database file and the wake file
 *   lock_file.c      the lock file
 *   group_access.c   stores of a group: modes and who may
 *   conn.c           a connection: its settings, statements and errors
 *   schema.c         creates and migrates the schema
 *   schema_steps.c   the schema versions
 *   state.c          counters and clock: the single row of il_state
 *   lease_row.c      rows of leases
 *   waiters.c        rows of waiters: queues
 *   ended.c          remembers ended leases
 *   expire.c         ends overdue holds and hands keys to the next waiter
 *   lock.c           acquire, renew, release, break
 *   order.c          lock order
 *   history.c        recorded expiries, breaks and refusals
 *   once.c, cache.c  idempotency keys; cached values
 *   show.c           get, list, check_fence
 *   sweep.c          recovery and the deadlock search
 *   caller_tx.c      the caller's own transactions
 *   checkpoint.c     copies the WAL into the database
 *   doctor.c         the findings of doctor
 *   usage.c          how much a tenant stores
 *
 * Runs are in run.h, queues in queue_internal.h.
 *
 * Only sqlite.c knows about transactions; all other files work in the one that is open. A function
 * that uses the database returns false when the database fails; the connection's `rc` holds the
 * error, and the batch is rolled back.
 */
#ifndef IL_STORE_SQLITE_INTERNAL_H
#define IL_STORE_SQLITE_INTERNAL_H

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/mutex.h"
#include "base/buf.h"
#include "base/clock.h"
#include "core/conflict.h"
#include "core/ended.h"
#include "core/fence.h"
#include "core/limits.h"
#include "store/sqlite/error.h"
#include "store/store.h"

/* The statements of sql/. Each is prepared on first use, since a short-lived process needs few of
 * them; a unit test prepares all. */
enum sq_stmt {
#define X(name) SQ_##name,
#include "sqlite_statements.inc"
#undef X
    SQ_STMT_COUNT
};

/* conn.c: one connection. Used by one thread at a time. */
struct sq_conn {
    sqlite3      *db;
    sqlite3_stmt *stmts[SQ_STMT_COUNT];
    int           rc;       /* of the last failed call; SQLITE_OK if none has failed */
    int           n_frames; /* of the WAL after the last commit */
};

il_status il__sq_conn_open(struct sq_conn *c, const char *path, bool read_only, int64_t timeout_ms,
                           il_error *reterr) MUST_USE;
void      il__sq_conn_close(struct sq_conn *c);
/* Use a caller's connection as one of ours, with checkpoints taken only by us; and stop using
 * it. */
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
int  il__sq_step(struct sq_conn *c, sqlite3_stmt *s); /* SQLITE_ROW, SQLITE_DONE, or failed: 0 */
bool il__sq_stmt_run(struct sq_conn *c, sqlite3_stmt *s); /* to its end, rows ignored */
bool il__sq_exec(struct sq_conn *c, enum sq_stmt stmt);   /* one without parameters */
/* Bind a prefix (NULL = "") as parameter i, and the end of the range of strings that begin with it
 * as parameter i + 1. */
bool il__sq_bind_prefix(struct sq_conn *c, sqlite3_stmt *s, int i, const char *prefix);
/* The boolean result of a statement whose parameters are bound. */
bool il__sq_ask(struct sq_conn *c, sqlite3_stmt *s, bool *ret);
/* Does a statement whose parameters are bound return these bytes? No row means no. */
bool il__sq_has_blob(struct sq_conn *c, sqlite3_stmt *s, const void *data, size_t n, bool *ret);
/* Begin a transaction, and roll one back. Rolling back keeps c->rc: the first error is the one to
 * report. */
bool        il__sq_begin(struct sq_conn *c, enum sq_stmt begin);
void        il__sq_undo(struct sq_conn *c);
const char *il__sq_text(sqlite3_stmt *s, int column); /* never NULL */

/* Clamp stored numbers that can only be wrong if the file is damaged: a fence, token or ticket; a
 * time, which can be added to. */
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

/* We ran out of memory: returns false, and sets c->rc. */
static inline bool
il__sq_no_memory(struct sq_conn *c)
{
    c->rc = SQLITE_NOMEM;
    return false;
}

/* The stored data is inconsistent: returns false, and sets c->rc. */
static inline bool
il__sq_corrupt(struct sq_conn *c)
{
    c->rc = SQLITE_CORRUPT;
    return false;
}

/* file.c. The files that make up a store; without the wake file, which is only a hint. */
enum sq_part {
    SQ_PART_DB,
    SQ_PART_LOCK,
    SQ_PART_WAL,
    SQ_PART_SHM,
    SQ_PARTS
};

struct sq_id {
    dev_t dev;
    ino_t ino;
};

/* group_access.c: is the store one that the members of a group share? */
struct sq_group {
    bool  on;
    gid_t gid;
};

/* What the database of this path, with this status, says; IL_STORE: its folder does not allow
 * that. */
il_status il__sq_group_look(const char *path, const struct stat *db, struct sq_group *ret,
                            il_error *reterr) MUST_USE;
/* Give a file of ours, or any if we are root, the mode and the group. IL_STORE and errno if that
 * fails. */
il_status il__sq_group_adopt(const struct sq_group *group, int fd, const struct stat *st) MUST_USE;
/* `path` could not be used, for the reason in errno. IL_STORE with a message if that is because it
 * is for a group that we do not belong to; else IL_OK. */
il_status il__sq_group_denied(const char *path, il_error *reterr) MUST_USE;

struct sq_file {
    char            *path;                        /* as it was given: for messages */
    char            *names[SQ_PARTS], *wake_name; /* absolute */
    char            *real;                        /* the database without symbolic links */
    uid_t            owner;                       /* of the database */
    struct sq_id     ids[SQ_PARTS];               /* of what is open */
    bool             is_noted;                    /* the ids are known */
    atomic_bool      is_gone;                     /* deleted or replaced; remains so */
    atomic_bool      is_deaf;                     /* the wake file must be mapped again */
    struct sq_group  group;
    int              lock_fd;
    struct il__board board;
    _Atomic dev_t    wake_dev; /* of the wake file that is mapped */
    _Atomic ino_t    wake_ino;
    int64_t          timeout_ms;
    uint32_t         wanted_at; /* LOCK_WANTED when we took the lock */
    uint32_t         taken_at;  /* LOCK_TAKEN when we handed it to a waiter */
    bool             yields;    /* another process wanted it: let it have it first */
};

il_status il__sq_file_open(struct sq_file *f, const char *path, bool existing, int64_t timeout_ms,
                           il_error *reterr) MUST_USE;
void      il__sq_file_close(struct sq_file *f);
/* Remember which files are open; `db` is a connection that has read from them. */
il_status il__sq_file_note(struct sq_file *f, sqlite3 *db, il_error *reterr) MUST_USE;
/*
 * Are the files at the store's paths still the open ones? Otherwise IL_STORE, now and for as long
 * as the store is open. A read only checks the database; writers and sweeps check all files. Safe
 * from any thread.
 */
il_status il__sq_file_check(struct sq_file *f, il_error *reterr) MUST_USE;
il_status il__sq_file_check_read(struct sq_file *f, il_error *reterr) MUST_USE;
/* Was the wake file truncated or replaced? Then the next writer maps it again. */
void il__sq_file_check_wake(struct sq_file *f);
/* Map the wake file again, after it was extended or replaced. Under the lock file. */
void il__sq_file_mend_wake(struct sq_file *f);
/* The error of a failed call on one of the files, from errno. */
il_status il__sq_file_fail(il_error *reterr, const char *path);

/* ---- lock_file.c ----------------------------------------------------------------------------- */

/*
 * Disk blocks reserved for a purge on a full disk; they belong to the lock file. Reserve them if
 * the disk has plenty of space, and release them. The lock file is held, unless the store is being
 * opened.
 */
void il__sq_file_reserve(struct sq_file *f, bool anyhow);
void il__sq_file_unreserve(struct sq_file *f);
/* A separate descriptor for the lock file that `fd` has open, so that the two exclude each
 * other. */
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

/* The last place in a queue that was counted in this transaction: see il__sq_waiters_before(). */
struct sq_place {
    bool     known;
    uint64_t ticket;
    uint32_t n_before;
    char     tenant[IL_TENANT_BYTES_MAX + 1];
    char     key[IL_KEY_BYTES_MAX + 1];
};

/* checkpoint.c. Used under the lock file, which orders the threads of a handle; atomic because no
 * mutex does. */
#define SQ_CHECKPOINT_FRAMES 10000 /* 41 MB of WAL: scattered changes are written back together */
struct sq_wal {
    _Atomic int n_frames; /* after the last commit of this handle */
    _Atomic int try_at;   /* number of frames at which a checkpoint is due */
    _Atomic int wait_at;  /* with how many it waits for readers */
};

void il__sq_wal_init(struct sq_wal *w);
/* After a commit that left n_frames: is a checkpoint due? */
bool il__sq_wal_is_large(struct sq_wal *w, int n_frames);
/* Take a checkpoint. The lock file is held, and the connection has no transaction. */
void il__sq_checkpoint(struct sq_wal *w, struct sq_conn *c, int64_t timeout_ms);

struct sq_store {
    struct il__store base;
    struct sq_file   file;
    struct sq_wal    wal;
    const il_clock  *clock;
    struct il__ranks ranks;

    /* The write connection and the state of its transaction; one caller at a time (the
     * executor). */
    struct sq_conn       conn;
    struct sq_state      state;
    bool                 has_waiters; /* are there any waiters? */
    struct sq_place      place;
    struct il__order     order;       /* learned edges, as far as read */
    int64_t              order_n;     /* of il_state when they were read */
    struct il__ended_log ended;       /* as far as read */
    int64_t              ended_seq;   /* last row of il_ended that is in it */
    struct il__buf       ended_new;   /* entries of this transaction */
    int64_t              purge_at_ms; /* when the front of il_ended is checked again */
    uint32_t            *wakes;       /* words of the board to bump after the commit */
    size_t               n_wakes, wakes_capacity;
    void                *scratch; /* arena: what lives for one op */
    struct sq_queues    *queues;
#ifdef IL_MUTANT_reply_before_commit
    unsigned n_uncommitted;
#endif

    struct il__mutex read_mutex; /* protects what follows */
    struct sq_conn   reader;
    bool             reader_open;

    /* protects the following, and the state of a caller's transaction */
    struct il__mutex tx_mutex;
    struct sq_tx    *tx; /* the one that is open; NULL = none */
    pthread_cond_t   tx_changed;
    pthread_t        tx_watcher;
    bool             tx_has_watcher, tx_closing;
};

/* caller_tx.c */
void      il__sq_tx_init(struct sq_store *s);
void      il__sq_tx_release(struct sq_store *s);
il_status il__sq_tx_begin(struct sq_store *s, sqlite3 *db, struct il__store_tx **ret,
                          il_error *reterr) MUST_USE;

/* doctor.c */
il_status il__sq_report(struct sq_store *s, const char *table, il__report_fn *each, void *cookie,
                        il_error *reterr) MUST_USE;

bool il__sq_state_load(struct sq_conn *c, const il_clock *clock, struct sq_state *st);
bool il__sq_state_save(struct sq_store *s);
bool il__sq_state_create(struct sq_conn *c, const il_clock *clock, bool test_clock);

/* schema_steps.c, schema.c */
extern const struct il__schema il__sq_schema;
il_status il__sq_schema_prepare(struct sq_store *s, bool test_clock, il_error *reterr) MUST_USE;

/* lease_row.c, waiters.c: a lease, or a waiter (state WAITING). Strings are in the scratch
 * arena. */
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
    struct sq_holds waiters; /* the first waiters of its queue, by ticket */
    bool            more;    /* there may be more that were not read (waiters.c) */
    uint64_t        read_to; /* ticket of the last one that was read */
    struct sq_hold *added;   /* a waiter added in this op, after those; NULL = none */
    uint64_t        run;     /* seq of the run that a new lease or waiter belongs to; 0 = none */
};

bool il__sq_key_load(struct sq_store *s, struct sq_key *k);
bool il__sq_lease_add(struct sq_store *s, struct sq_key *k, const struct sq_hold *h);
bool il__sq_lease_change(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h);
bool il__sq_lease_end(struct sq_store *s, const struct sq_key *k, struct sq_hold *h,
                      il_lease_state how);
/* The run of a lease has ended, and the lease continues without it. */
bool            il__sq_lease_detach(struct sq_store *s, const struct sq_key *k, struct sq_hold *h);
struct sq_hold *il__sq_find_holder(const struct sq_holds *holds, const char *holder);
uint64_t        il__sq_newest_fence(const struct sq_key *k);
bool            il__sq_wake(struct sq_store *s, uint32_t slot);
/* Read one row of a statement with the columns of lease_of_key or waiter_of_key. */
bool     il__sq_lease_row(void **arena, sqlite3_stmt *row, struct sq_hold *h);
bool     il__sq_waiter_row(void **arena, sqlite3_stmt *row, struct sq_hold *h);
il_mode  il__sq_mode(sqlite3_stmt *row, int column);
uint32_t il__sq_permits(sqlite3_stmt *row, int column, il_mode mode);
/* false: no memory */
bool il__sq_holds_add(void **arena, struct sq_holds *holds, const struct sq_hold *h);

/* Does the key have a lease, or the holder's unit of work another one? */
bool il__sq_lease_busy(struct sq_store *s, const struct sq_key *k, const char *holder,
                       bool *ret_busy);
/* Release a current lease that has no waiters; *ret_done if it was. */
bool il__sq_lease_release(struct sq_store *s, const il_op *op, bool *ret_done);

/* waiters.c. Read the first part of the queue (il__sq_key_load() does that), some more of it, or
 * all of it. */
bool il__sq_waiters_begin(struct sq_store *s, struct sq_key *k);
bool il__sq_waiters_next(struct sq_store *s, struct sq_key *k);
bool il__sq_waiters_all(struct sq_store *s, struct sq_key *k);
/* The waiter of a holder, anywhere in the queue; NULL = none. */
bool il__sq_waiters_find(struct sq_store *s, const struct sq_key *k, const char *holder,
                         struct sq_hold **ret);
/* Can a waiter in the queue be overdue? */
bool il__sq_waiters_overdue(struct sq_store *s, const struct sq_key *k, bool *ret);
/* How many waiters are before a ticket, and how many there are, without cancelled ones. The key is
 * expired. */
bool il__sq_waiters_before(struct sq_store *s, const char *tenant, const char *key, uint64_t ticket,
                           uint32_t *ret);
bool il__sq_waiters_count(struct sq_store *s, const struct sq_key *k, uint32_t *ret);
bool il__sq_waiter_add(struct sq_store *s, struct sq_key *k, const struct sq_hold *h);
bool il__sq_waiter_refresh(struct sq_store *s, const struct sq_hold *h);
bool il__sq_waiter_end(struct sq_store *s, struct sq_key *k,
                       struct sq_hold *h); /* it no longer waits, whatever its state */
/* and its run ends */
bool il__sq_waiter_leave(struct sq_store *s, struct sq_key *k, struct sq_hold *h);

/* ended.c */
const struct il__ended *il__sq_ended_find(const struct sq_store *s, const char *tenant,
                                          const char *key, const char *holder);
bool il__sq_ended_add(struct sq_store *s, const char *tenant, const char *key, const char *holder,
                      uint64_t fence, il_lease_state how);
bool il__sq_ended_load(struct sq_store *s);
bool il__sq_ended_save(struct sq_store *s);
void il__sq_ended_done(struct sq_store *s, bool committed);
bool il__sq_ended_purge(struct sq_store *s, uint32_t n_rows);

/* expire.c */
bool                 il__sq_expire(struct sq_store *s, struct sq_key *k, il_sweep_out *counts);
bool                 il__sq_offer_next(struct sq_store *s, struct sq_key *k, il_sweep_out *counts);
struct il__occupancy il__sq_occupancy(const struct sq_key *k);

/* lock.c: the building blocks of acquires and of starts of runs; `op` is an acquire */
/* it has no holders or waiters */
bool il__sq_is_free(struct sq_store *s, struct sq_key *k, bool *ret);
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
bool il__sq_order_list(struct sq_conn *c, const struct il__ranks *ranks, il_op *op);
bool il__sq_search_deadlock(struct sq_store *s, const char *tenant, const char *const *holders,
                            size_t n, uint64_t *ret_ticket, struct il__buf *why, bool *ret_found);
/* get, list and check_fence work on either connection. */
bool il__sq_get(struct sq_conn *c, const struct sq_state *st, il_op *op);
bool il__sq_list(struct sq_conn *c, const struct sq_state *st, il_op *op);
bool il__sq_usage(struct sq_conn *c, il_op *op);
bool il__sq_check_fence(struct sq_conn *c, const struct sq_state *st, il_op *op);
bool il__sq_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const char *key,
                 const struct sq_hold *h, int64_t n_waiters);

#endif
