/*
 * interlock-guard.h: safe transactions on your own tables, in SQLite and PostgreSQL.
 *
 * Part of libinterlock; it compiles alone as C11 and as C++. docs/GUARDS.md explains the five
 * layers with an example each:
 *   1. lock rows before you read and change them, in one order        il_guard_lock()
 *   2. change numbers in the database, never in the program           il_guard_add()
 *   3. insert, or get the existing row                               il_guard_insert_or_get()
 *   4. rely only on constraints that exist                            il_guard_require_constraint()
 *   5. check invariants, which find what the other layers missed      check steps of pipelines
 * A transaction may also show fences: a holder that has lost its lease cannot commit.
 *
 * The conventions of interlock.h apply. A database handle (il_guard) is safe to use from several
 * threads. A transaction (il_guard_tx) belongs to one thread at a time.
 *
 * After a failed call a transaction can only be rolled back, unless the failure happened inside
 * il_guard_try() or is documented as an answer (such as IL_NOT_FOUND).
 *
 * Names of tables and columns are looked up in the database's catalogue and quoted; values are
 * always bound. "table" may be "schema.table".
 */
#ifndef INTERLOCK_GUARD_H
#define INTERLOCK_GUARD_H

#include "interlock.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3; /* of sqlite3.h */
struct pg_conn; /* PGconn of libpq-fe.h */

/* ------------------------------------------------------------------------------------------------
 * Limits. Each has a test that reaches it.
 */
#define IL_GUARD_NAME_BYTES_MAX 256 /* bytes of a table, column, class, pipeline or caller */
#define IL_GUARD_VALUES_MAX 256    /* values bound to one statement; keys of il_guard_lock_many() */
#define IL_GUARD_KEY_COLUMNS_MAX 8 /* columns of a key, and of a primary key */
#define IL_GUARD_FENCES_MAX 16     /* fences of one transaction */
#define IL_GUARD_ROWS_MAX 4096     /* rows that one transaction holds */
#define IL_GUARD_TAGS_MAX 8        /* tags of one transaction */
#define IL_GUARD_CONNS_MAX 64      /* connections of one handle */
#define IL_GUARD_RANKS_MAX 64      /* classes with a rank */
#define IL_GUARD_TRIES_MAX 20      /* attempts of il_guard_transact() */
#define IL_GUARD_EVENT_BYTES_MAX 40960 /* an event as JSON, with its NUL */

/* ------------------------------------------------------------------------------------------------
 * Values, to the database and from it.
 *
 * To the database: PostgreSQL infers the type of $1 from its context (add a cast where the context
 * does not determine it: $1::int); SQLite binds integers, doubles, texts and blobs as such.
 * From the database: integers and booleans (0, 1) are INT; floating point is DOUBLE; numeric, dates
 * and everything else is TEXT, as the database prints it; bytea and BLOB are BLOB; json and jsonb
 * are JSON (SQLite has no such type: TEXT).
 */
typedef enum il_guard_type {
    IL_GUARD_NULL       = 0,
    IL_GUARD_INT        = 1,
    IL_GUARD_DOUBLE     = 2,
    IL_GUARD_TEXT       = 3, /* UTF-8 without a NUL inside */
    IL_GUARD_BLOB       = 4,
    IL_GUARD_JSON       = 5, /* text; the database refuses invalid JSON where the column does */
    IL_GUARD_TYPE_COUNT = 6
} il_guard_type;

typedef struct il_guard_value {
    il_guard_type type;
    int64_t       integer; /* INT */
    double        number;  /* DOUBLE */
    const void   *data;    /* TEXT and JSON (NUL-terminated), BLOB; borrowed */
    size_t        n_bytes; /* of data, without the NUL */
} il_guard_value;

IL_API il_guard_value il_guard_null(void);
IL_API il_guard_value il_guard_int(int64_t integer);
IL_API il_guard_value il_guard_double(double number);
IL_API il_guard_value il_guard_text(const char *text); /* NULL gives SQL NULL; so do the next two */
IL_API il_guard_value il_guard_json(const char *json);
IL_API il_guard_value il_guard_blob(const void *data, size_t n_bytes);

/* A column with a value: part of a key (a NULL matches NULL), or of a new row. */
typedef struct il_guard_column {
    const char    *name;
    il_guard_value value;
} il_guard_column;

/* ------------------------------------------------------------------------------------------------
 * Events: one per locked row, when its transaction has ended.
 */
typedef enum il_guard_outcome {
    IL_GUARD_COMMITTED     = 0,
    IL_GUARD_ROLLED_BACK   = 1, /* by the caller, or after a failure */
    IL_GUARD_REFUSED       = 2, /* a stale fence, or a violation of the lock order */
    IL_GUARD_CONFLICT      = 3, /* a deadlock, a serialization failure, a timeout */
    IL_GUARD_VIOLATION     = 4, /* a unique, check or foreign-key constraint */
    IL_GUARD_UNKNOWN       = 5, /* the connection was lost during the commit */
    IL_GUARD_OUTCOME_COUNT = 6
} il_guard_outcome;

IL_API const char *il_guard_outcome_name(il_guard_outcome outcome); /* "committed", … */

typedef struct il_guard_event {
    const char            *pipeline; /* of the transaction; "" if it has none */
    const char            *caller;
    const char            *entity;    /* the class of the row */
    const char            *table;     /* as the caller named it */
    const char            *key;       /* the primary key, as text: "7", "7,football" */
    const char            *place;     /* file:line of the call */
    int64_t                wait_ns;   /* until the lock was granted */
    int64_t                hold_ns;   /* from then to the end of the transaction */
    unsigned               n_queries; /* of the transaction, while the lock was held */
    unsigned               n_attempt; /* of il_guard_transact(); 1 is the first */
    il_guard_outcome       outcome;
    const char            *constraint; /* VIOLATION: its name, or "" */
    const il_guard_column *tags;       /* of the transaction */
    size_t                 n_tags;
} il_guard_event;

/* Called on the thread that ends the transaction, after its end. Strings live for the call. It must
 * not use the handle. */
typedef void il_guard_observe_fn(void *cookie, const il_guard_event *event);

/*
 * An event as one line of JSON, without a newline, in the caller's buffer; at_ms is its time (ms
 * since 1970). Texts longer than 256 bytes are cut, so that IL_GUARD_EVENT_BYTES_MAX bytes are
 * always enough. docs/guard-event.schema.json describes the line; `interlock locks --report` reads
 * files of them. Returns IL_OK, IL_LIMIT (the buffer is too small), IL_INVAL, IL_NOMEM.
 */
IL_API IL_MUST_USE il_status il_guard_event_json(const il_guard_event *event, int64_t at_ms,
                                                 char *out, size_t n_bytes, il_error *reterr);
/*
 * An observer that writes these lines: il_guard_opts.observe = il_guard_log, cookie = an `int *` to
 * a file descriptor, which the caller opens and closes. Each line is one write(), so lines of
 * several threads do not mix, nor do those of several processes in a file opened with O_APPEND. A
 * line that cannot be written is lost; the transaction is not affected.
 */
IL_API void il_guard_log(void *cookie, const il_guard_event *event);

/* ------------------------------------------------------------------------------------------------
 * A database.
 */
typedef struct il_guard    il_guard;
typedef struct il_guard_tx il_guard_tx;

/* The place of a class in the one order in which rows are locked; smaller ranks come first. Several
 * classes may share a rank. */
typedef struct il_guard_rank {
    const char *entity; /* the class */
    int         rank;   /* 0 .. 1,000,000 */
} il_guard_rank;

enum il_guard_flags {
    /* SQLite: the file belongs to this program: WAL, synchronous=FULL, foreign keys on, and
     * checkpoints under a lock file (PATH-lock), so that packaged SQLite below 3.51.3 cannot damage
     * it. Every program that writes the file must then open it this way. Without the flag the
     * file's settings stay as they are. */
    IL_GUARD_OWN_FILE = 1 << 0,
};

typedef struct il_guard_opts {
    size_t               struct_size;
    const il_guard_rank *ranks; /* copied */
    size_t               n_ranks;
    int64_t     lock_timeout_ms; /* maximum wait for a row, the file, a fence (default 5,000) */
    int64_t     statement_timeout_ms; /* PostgreSQL, of a statement (30,000), or IL_FOREVER */
    int64_t     connect_timeout_ms;   /* default 5,000; at most 15,000 */
    uint32_t    conns_max;            /* connections, opened when they are needed (default 8) */
    uint32_t    flags;                /* enum il_guard_flags */
    const char *search_path;          /* PostgreSQL: set in each transaction; NULL: the role's */
    il_guard_observe_fn *observe;
    void                *cookie;
} il_guard_opts;
#define IL_GUARD_OPTS_INIT                                              \
    {                                                                   \
        sizeof(il_guard_opts), NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL \
    }

/*
 * Open a database: sqlite:PATH (created if missing) or postgres://…. Connects lazily. opts may be
 * NULL. A file that is an Interlock store is refused. Returns IL_OK, IL_INVAL, IL_STORE (libpq is
 * missing), IL_NOMEM. Messages never contain a password.
 */
IL_API IL_MUST_USE il_status il_guard_open(const char *url, const il_guard_opts *opts,
                                           il_guard **ret, il_error *reterr);
/*
 * The same on the caller's own connection. It is borrowed until il_guard_close() and keeps its
 * settings; it must not be in a transaction when one is begun here, nor be used by others while one
 * is open. There is one connection, so one transaction at a time. An interrupt does not stop a
 * running SQLite statement (call sqlite3_interrupt()); on PostgreSQL it leaves a statement in
 * progress: reset the connection.
 */
IL_API IL_MUST_USE il_status il_guard_open_sqlite(struct sqlite3 *db, const il_guard_opts *opts,
                                                  il_guard **ret, il_error *reterr);
IL_API IL_MUST_USE il_status il_guard_open_postgres(struct pg_conn *conn, const il_guard_opts *opts,
                                                    il_guard **ret, il_error *reterr);
/* Rolls back open transactions, which no other thread may be using. Accepts NULL. */
IL_API void il_guard_close(il_guard *g);
/* From any thread, before the close; does not block. All running and later calls on the handle
 * return IL_CANCELLED. A commit that was already sent is waited for. */
IL_API void il_guard_interrupt(il_guard *g);
/*
 * A switch that interrupts the transactions that name it in il_guard_tx_opts.stop. Several
 * transactions of its handle may share it. Once set it stays set: create a new one for later
 * transactions. il_guard_interrupt() sets all switches of a handle. IL_OK, IL_INVAL, IL_NOMEM (also
 * if no descriptors are left).
 */
typedef struct il_guard_stop il_guard_stop;
IL_API IL_MUST_USE il_status il_guard_stop_new(il_guard *g, il_guard_stop **ret, il_error *reterr);
/* From any thread; does not block. Running and later calls of these transactions return
 * IL_CANCELLED, even while they wait for a connection, a lock or a retry; statements in progress
 * are cancelled as by il_guard_interrupt(). A commit that was already sent is waited for. */
IL_API void il_guard_stop_set(il_guard_stop *stop);
/* After the end of the transactions that name it, before il_guard_close(). Accepts NULL. */
IL_API void il_guard_stop_free(il_guard_stop *stop);
/* Connect once to test the connection; optional. */
IL_API IL_MUST_USE il_status il_guard_connect(il_guard *g, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Transactions.
 */
typedef struct il_guard_fence {
    il         *h;      /* the store that issued it; must outlive the transaction */
    const char *tenant; /* NULL: the handle's */
    const char *key;
    uint64_t    fence;
} il_guard_fence;

enum il_guard_tx_flags {
    /* Read only. The fences are still shown, and nothing else is committed. */
    IL_GUARD_READ_ONLY = 1 << 0,
};

typedef struct il_guard_tx_opts {
    size_t                struct_size;
    const char           *pipeline; /* for events and errors; NULL: none */
    const char           *caller;
    const il_guard_fence *fences; /* shown in key order before the first read, checked at commit */
    size_t                n_fences;
    /* An idempotency key (1 to 255 bytes): recorded in table interlock_done by the same
     * transaction. If it is already recorded, fn is not run. Only il_guard_transact(). */
    const char *once_key;
    uint32_t    flags;     /* enum il_guard_tx_flags */
    uint32_t    tries_max; /* il_guard_transact(): attempts (default 5, at most 20) */
    /* Maximum time from the begin to the commit, with all attempts; 0 = no limit. After it a
     * statement in progress is cancelled and the transaction fails with IL_TIMEOUT; a commit that
     * was sent is waited for. On the caller's own connection a running SQLite statement is not
     * stopped, and on PostgreSQL a statement stays in progress: reset the connection. */
    int64_t        timeout_ms;
    il_guard_stop *stop; /* interrupts it; borrowed until its end; NULL: none */
} il_guard_tx_opts;
#define IL_GUARD_TX_OPTS_INIT                                              \
    {                                                                      \
        sizeof(il_guard_tx_opts), NULL, NULL, NULL, 0, NULL, 0, 0, 0, NULL \
    }

/* The work of a transaction. Any status but IL_OK rolls it back; after a deadlock, a serialization
 * failure or a lock timeout the function is called again in a new transaction. So it must not have
 * other effects. It neither commits nor rolls back. */
typedef il_status il_guard_fn(void *cookie, il_guard_tx *tx, il_error *reterr);

/*
 * Run fn in a transaction and commit. Serialization failures, deadlocks, lock timeouts and a
 * connection that was lost before the commit are retried as a whole, after a short random pause
 * that grows.
 *
 * If the connection is lost during the commit, its outcome is unknown. With a once_key the
 * transaction is tried again: if its key is already recorded, *ret_replayed (may be NULL) is 1 and
 * the result IL_OK, without another call of fn. Without a once_key the result is IL_UNKNOWN.
 *
 * Returns IL_OK, fn's own status, IL_STALE (a fence), IL_UNKNOWN, IL_STORE, IL_CANCELLED, IL_NOMEM,
 * or the last failure when all attempts are used up.
 */
IL_API IL_MUST_USE il_status il_guard_transact(il_guard *g, const il_guard_tx_opts *opts,
                                               il_guard_fn *fn, void *cookie, int *ret_replayed,
                                               il_error *reterr);

/* Begin one transaction, without retries. Waits at most lock_timeout_ms for a free connection. */
IL_API IL_MUST_USE il_status il_guard_begin(il_guard *g, const il_guard_tx_opts *opts,
                                            il_guard_tx **ret, il_error *reterr);
/* Checks the fences, commits and frees tx. On any result but IL_OK nothing was committed, except
 * IL_UNKNOWN: the connection was lost, and the outcome is unknown. */
IL_API IL_MUST_USE il_status il_guard_commit(il_guard_tx *tx, il_error *reterr);
IL_API void                  il_guard_rollback(il_guard_tx *tx); /* accepts NULL */

/* Run fn in a savepoint. If it fails, its changes are undone, its status is returned, and the
 * transaction continues. Rows that it locked are no longer held. Can be nested. */
IL_API IL_MUST_USE il_status il_guard_try(il_guard_tx *tx, il_guard_fn *fn, void *cookie,
                                          il_error *reterr);

/* Add a name and a value to the events of this transaction ("user_id", 7). Copied. */
IL_API IL_MUST_USE il_status il_guard_tag(il_guard_tx *tx, const char *name, il_guard_value value,
                                          il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Statements.
 */
typedef struct il_guard_row {
    size_t                n;
    const char *const    *names;
    const il_guard_value *values;
} il_guard_row;
/* Rows live for the call, which must not use the transaction. Return 0 to stop. */
typedef int il_guard_row_fn(void *cookie, const il_guard_row *row);

enum il_guard_query_flags {
    IL_GUARD_AS_TEXT =
        1 << 0, /* return every value that is not NULL as TEXT, as the database prints it */
};

typedef struct il_guard_query {
    const char           *sql;    /* one statement, with $1, $2, … */
    const il_guard_value *values; /* for $1, $2, … */
    size_t                n_values;
    uint32_t              flags; /* enum il_guard_query_flags */
    il_guard_row_fn      *each;  /* may be NULL */
    void                 *cookie;
} il_guard_query;

/*
 * Execute one statement. *ret_n_changed (may be NULL): rows inserted, updated or deleted.
 * Statements that begin or end a transaction, or set savepoints, are refused.
 *
 * IL_OK; IL_UNIQUE, IL_CHECK (also NOT NULL), IL_FOREIGN_KEY: a constraint, named in
 * reterr->constraint where the database gives its name; IL_SERIALIZATION, IL_DEADLOCK, IL_TIMEOUT
 * (the wait for a lock, or the statement, took too long); IL_STALE: refused by the guard of a table
 * (`interlock guard`); IL_INVAL: refused by the database for another reason.
 */
IL_API IL_MUST_USE il_status il_guard_exec(il_guard_tx *tx, const il_guard_query *query,
                                           int64_t *ret_n_changed, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Layer 1: row locks, in rank order.
 *
 * Every call that locks a row names its class (entity). The rank of the class must not be smaller
 * than that of any row that this transaction holds, and among rows of one rank the table and
 * primary key must grow: otherwise IL_ORDER, naming both places in the code. A class without a rank
 * is IL_ORDER, too. Locking a row that is already held is never a violation, by whichever key.
 *
 * PostgreSQL: FOR NO KEY UPDATE, so that foreign keys can still refer to the row. SQLite: a
 * transaction has the file's write lock from its begin; the first lock reports the wait for it.
 */

/* The primary key of a row. Lives until the end of the transaction. */
typedef struct il_guard_id {
    const il_guard_value *values;
    size_t                n;
} il_guard_id;

/* The place in the caller's code, for error messages and events. */
#define IL_GUARD_TEXT_1(x) #x
#define IL_GUARD_TEXT_2(x) IL_GUARD_TEXT_1(x)
#define IL_GUARD_PLACE __FILE__ ":" IL_GUARD_TEXT_2(__LINE__)

/* A row: its class, its table, and columns that identify it. */
typedef struct il_guard_target {
    const char            *entity;
    const char            *table;
    const il_guard_column *key;
    size_t                 n_key;
    const char            *place; /* IL_GUARD_PLACE, or NULL */
} il_guard_target;

/* Lock one row. *ret_id (may be NULL) is its primary key. IL_OK, IL_NOT_FOUND (an answer),
 * IL_ORDER, IL_INVAL (several rows match; no primary key), and as il_guard_exec(). */
IL_API IL_MUST_USE il_status il_guard_lock(il_guard_tx *tx, const il_guard_target *row,
                                           il_guard_id *ret_id, il_error *reterr);
/* Lock one row, then run a query that reads: il_guard_lock() and il_guard_exec(), on PostgreSQL in
 * one round trip if the row is not held yet. The query sees all changes committed before the lock
 * was granted. It must not write: it may run twice, or although the row does not exist
 * (IL_NOT_FOUND; no rows are passed on). */
IL_API IL_MUST_USE il_status il_guard_lock_read(il_guard_tx *tx, const il_guard_target *row,
                                                const il_guard_query *query, il_error *reterr);
/* Lock all rows whose `column` has one of the values, in the order of their primary keys.
 * row->key are further conditions (n_key may be 0). A NULL matches nothing here. *ret_n: number of
 * rows found. */
IL_API IL_MUST_USE il_status il_guard_lock_many(il_guard_tx *tx, const il_guard_target *row,
                                                const char *column, const il_guard_value *values,
                                                size_t n_values, size_t *ret_n, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Layer 2: numbers, states and documents. Each counts as locking the row.
 */

/* Add delta to an integer column. With `min` (may be NULL) the result must not be smaller: else
 * IL_STATE, *ret_value is the value found, and nothing has changed. IL_NOT_FOUND: no such row.
 * Both are answers. *ret_value (may be NULL) is the new value. */
IL_API IL_MUST_USE il_status il_guard_add(il_guard_tx *tx, const il_guard_target *row,
                                          const char *column, int64_t delta, const int64_t *min,
                                          int64_t *ret_value, il_error *reterr);

/* Change a column from one value to another. IL_STATE: it had another value; the error names it and
 * *ret_found (may be NULL; valid until the end of the transaction) receives it. IL_NOT_FOUND: no
 * such row. Both are answers. */
IL_API IL_MUST_USE il_status il_guard_transition(il_guard_tx *tx, const il_guard_target *row,
                                                 const char *column, il_guard_value from,
                                                 il_guard_value to, il_guard_value *ret_found,
                                                 il_error *reterr);

/* Replace a JSON document. IL_STATE unless this transaction already holds the row: the new document
 * must have been computed from what was read under the lock. */
IL_API IL_MUST_USE il_status il_guard_set_json(il_guard_tx *tx, const il_guard_target *row,
                                               const char *column, const char *json,
                                               il_error *reterr);

typedef enum il_guard_aggregate {
    IL_GUARD_COUNT           = 0,
    IL_GUARD_SUM             = 1, /* 0 without rows; NULLs are ignored */
    IL_GUARD_MIN             = 2, /* NULL without rows */
    IL_GUARD_MAX             = 3,
    IL_GUARD_AGGREGATE_COUNT = 4
} il_guard_aggregate;

/* The rows of an aggregate: those of `table` whose `parent` column equals the primary key of the
 * row (which must have one column), and which match all of `where`. */
typedef struct il_guard_children {
    il_guard_aggregate     aggregate;
    const char            *table;
    const char            *parent;
    const char            *column; /* not for COUNT */
    const il_guard_column *where;
    size_t                 n_where;
} il_guard_children;

/* Set a column to an aggregate of the row's children. IL_STATE unless this transaction already
 * holds the row: a child that was added meanwhile would be missed. *ret_value (may be NULL; only
 * for an integer column) is 0 if the aggregate is NULL. */
IL_API IL_MUST_USE il_status il_guard_recompute(il_guard_tx *tx, const il_guard_target *row,
                                                const char              *column,
                                                const il_guard_children *children,
                                                int64_t *ret_value, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Layer 3: insert or get.
 */

/*
 * Insert a row, in a savepoint. If a row with the same values in the columns `unique` exists,
 * *ret_inserted is 0 and *ret_id the existing row's primary key: an answer. New rows have no rank;
 * they need no lock, because no other transaction can see them. IL_UNIQUE: another unique
 * constraint is violated; the transaction continues. ret_inserted and ret_id may be NULL.
 */
IL_API IL_MUST_USE il_status il_guard_insert_or_get(il_guard_tx *tx, const char *table,
                                                    const il_guard_column *columns,
                                                    size_t n_columns, const char *const *unique,
                                                    size_t n_unique, int *ret_inserted,
                                                    il_guard_id *ret_id, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Layer 4: constraints.
 */

/* IL_OK if the table has a constraint or a unique index of this name that is in force (PostgreSQL:
 * valid), else IL_NOT_FOUND, which is an answer. */
IL_API IL_MUST_USE il_status il_guard_require_constraint(il_guard_tx *tx, const char *table,
                                                         const char *name, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Advisory locks of PostgreSQL in this database, for fleets in which some programs use only those:
 * as il_advisory_take() and il_advisory_take_id(), with their check, descriptor and release. Only
 * for a handle that was opened with a postgres:// URL, else IL_INVAL. Each uses a separate
 * connection, which does not count against conns_max.
 */
IL_API IL_MUST_USE il_status il_guard_advisory_take(il_guard *g, const char *key, il_advisory **ret,
                                                    il_error *reterr);
IL_API IL_MUST_USE il_status il_guard_advisory_take_id(il_guard *g, int64_t id, il_advisory **ret,
                                                       il_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
