/*
 * guard_internal.h: declarations shared by the files of the guard kit. The interface is
 * include/interlock-guard.h; README.md explains fences and row locks.
 *
 *   database.c        handles: options, ranks, the pool of connections, interrupting
 *   event.c           events as lines of JSON
 *   tx.c              transactions: begin, commit, statements, savepoints, tags
 *   fence.c           fences of a transaction, and why a zombie cannot commit
 *   transact.c        whole transactions with retries, and idempotency keys
 *   lock_order.c      the rows that a transaction holds, and the order of locks
 *   row_lock.c        locking rows
 *   change.c          numbers, states, documents, aggregates
 *   insert.c          insert or get
 *   constraint.c      is a constraint in force?
 *   advisory.c        PostgreSQL advisory locks beside leases
 *   catalogue.c       tables, columns and primary keys as the catalogue has them
 *   sql.c             statements with names filled in
 *   value.c           typed values
 *   sql_scan.c        scans SQL text: several statements, words that begin or end transactions
 *   sqlite.c          SQLite
 *   sqlite_error.c    SQLite: which constraint failed
 *   sqlite_file.c     SQLite: files that Interlock's programs own
 *   postgres.c        PostgreSQL: transactions and fences
 *   postgres_wait.c   PostgreSQL: sends a statement, waits for it, cancels it
 *   postgres_store.c  PostgreSQL: is the store in the same database?
 */
#ifndef IL_GUARD_INTERNAL_H
#define IL_GUARD_INTERNAL_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/mutex.h"
#include "guard/guard.h"

/* to connect, to commit: steps that wait for no other transaction */
#define GUARD_ANSWER_MS_MAX 15000
#define GUARD_NUMBER_BYTES 40 /* a number as text */
#define GUARD_SQL_BYTES_MAX ((size_t)1 << 20)

/* ---- limits ---------------------------------------------------------------------------------- */

struct il_guard_stop {
    il_guard      *g;
    il_guard_stop *next; /* of the handle's */
    int            fd;   /* eventfd: readable once set */
    atomic_bool    set;
};

/* When a transaction has to end. */
struct guard_limit {
    int64_t        until_ns; /* its deadline; 0 = none */
    il_guard_stop *stop;     /* NULL: only il_guard_interrupt() */
};

/* ---- connections ----------------------------------------------------------------------------- */

/* A fence as statement parameters. */
struct guard_shown {
    const char *tenant, *key;
    uint64_t    number;
    char        text[24]; /* the number */
    const char *schema;   /* of the store, if it is in this database */
};

/* One statement: its text, its values, and the row callback. */
struct guard_statement {
    const char           *sql;
    const il_guard_value *values;
    size_t                n_values;
    il_guard_row_fn      *each; /* NULL: nobody */
    void                 *cookie;
    bool                  as_text;   /* values of rows as the database prints them */
    bool                  is_theirs; /* the user's own text */
    bool                  is_script; /* several statements, without values and rows */
    int64_t               n_changed; /* filled */
};

/* Our own statements that differ between the engines. */
enum guard_text {
    GUARD_TEXT_TABLE,       /* look up a table */
    GUARD_TEXT_COLUMN,      /* look up a column */
    GUARD_TEXT_PRIMARY_KEY, /* the columns of a primary key */
    GUARD_TEXT_CONSTRAINT,  /* look up a constraint */
    GUARD_TEXT_LOCK,        /* lock one row */
    GUARD_TEXT_LOCK_MANY,   /* lock rows in the order of their primary keys */
    GUARD_TEXT_DONE_MAKE,   /* create interlock_done */
    GUARD_TEXT_DONE_ADD,    /* record an idempotency key */
    GUARD_TEXT_COUNT
};

enum guard_savepoint {
    GUARD_SAVEPOINT_SET,
    GUARD_SAVEPOINT_RELEASE,
    GUARD_SAVEPOINT_UNDO /* roll back to it and release it */
};

struct guard_conn;

/* All callbacks: any thread, one at a time. A failed one leaves nothing locked, except run: the
 * caller then rolls back, to a savepoint or all of it. */
struct guard_ops {
    const char *const *texts; /* by enum guard_text */
    void (*free)(struct guard_conn *c);
    il_status (*connect)(struct guard_conn *c, il_error *reterr);
    il_status (*begin)(struct guard_conn *c, bool read_only, il_error *reterr);
    /* In a transaction that may write: record the fences, in their order, and keep others from
     * showing higher ones until the end. first: the transaction has done nothing else yet.
     * IL_OK, IL_STALE. */
    il_status (*show)(struct guard_conn *c, const struct guard_shown *const *fences, size_t n,
                      bool first, il_error *reterr);
    /* IL_UNKNOWN: the connection broke. */
    il_status (*commit)(struct guard_conn *c, il_error *reterr);
    void (*rollback)(struct guard_conn *c);
    il_status (*run)(struct guard_conn *c, struct guard_statement *s, il_error *reterr);
    /* Run two in one round trip; if the first fails, the second is not run. NULL: there are no
     * round trips. */
    il_status (*run_both)(struct guard_conn *c, struct guard_statement *first,
                          struct guard_statement *second, il_error *reterr);
    /* depth: 1 is the outermost. */
    il_status (*savepoint)(struct guard_conn *c, enum guard_savepoint what, unsigned depth,
                           il_error *reterr);
    /* Run it in a savepoint of its own. If it fails, the savepoint was rolled back. */
    il_status (*run_in_savepoint)(struct guard_conn *c, struct guard_statement *s, unsigned depth,
                                  il_error *reterr);
    /* Is the transaction beyond repair, because the connection is lost? */
    bool (*is_lost)(const struct guard_conn *c);
    /* Are the leases of the store that issued the fence in this same database? NULL: never. Not in
     * a transaction. */
    il_status (*shares)(struct guard_conn *c, il *h, struct guard_shown *f, bool *ret,
                        il_error *reterr);
    /* If so: show the fence to guarded tables; check it, and lock the lease's row until the end. */
    il_status (*shared_show)(struct guard_conn *c, const struct guard_shown *f, il_error *reterr);
    il_status (*shared_check)(struct guard_conn *c, const struct guard_shown *f, il_error *reterr);
    bool is_postgres;
};

struct guard_table;

struct guard_conn {
    const struct guard_ops *ops;
    il_guard               *g;
    struct guard_conn      *next;     /* in the pool */
    struct guard_table     *tables;   /* looked up on this connection (catalogue.c) */
    struct guard_table     *outdated; /* the same, before the search_path was changed */
    bool                    read_only;
    struct guard_limit      limit; /* of its transaction */
    const char            **names; /* of the columns of a row; room for n_columns */
    il_guard_value         *values;
    size_t                  n_columns;
};

/* Room for a row of n columns in names and values; false: out of memory. */
bool il__guard_make_room(struct guard_conn *c, size_t n) MUST_USE;
void il__guard_release_room(struct guard_conn *c);

/* New, not connected. */
il_status il__guard_sqlite_new(il_guard *db, const char *path, struct guard_conn **ret,
                               il_error *reterr) MUST_USE;
il_status il__guard_sqlite_borrow(il_guard *db, struct sqlite3 *theirs, struct guard_conn **ret,
                                  il_error *reterr) MUST_USE;
il_status il__guard_postgres_new(il_guard *db, const char *url, struct guard_conn **ret,
                                 il_error *reterr) MUST_USE;
il_status il__guard_postgres_borrow(il_guard *db, struct pg_conn *pq, struct guard_conn **ret,
                                    il_error *reterr) MUST_USE;
/* IL_OK if the search_path is a list of plain names. */
il_status il__guard_check_path(const char *search_path, il_error *reterr) MUST_USE;

/* ---- database.c ------------------------------------------------------------------------------ */

struct guard_class {
    char name[IL_GUARD_NAME_BYTES_MAX + 1];
    int  rank;
};

struct il_guard {
    char                *url; /* NULL: a connection of the caller's own */
    struct guard_class   classes[IL_GUARD_RANKS_MAX];
    size_t               n_classes;
    int64_t              lock_timeout_ms;
    int64_t              statement_timeout_ms; /* IL_FOREVER: none of ours */
    int64_t              connect_timeout_ms;
    uint32_t             conns_max;
    uint32_t             flags;
    char                *search_path; /* NULL: the role's */
    il_guard_observe_fn *observe;
    void                *cookie;
    int                  stop_fd; /* eventfd: readable once interrupted */
    atomic_bool          interrupted;
    atomic_bool          has_done; /* table interlock_done exists */
    struct il__mutex     mutex;    /* protects the pool */
    pthread_cond_t       freed;
    struct guard_conn   *idle;
    uint32_t             n_conns; /* idle and in use */
    il_guard_tx         *txs;     /* open transactions */
    il_guard_stop       *stops;
};

/* Take a connection from the pool, connected. The limit stays with it until it is given back. */
il_status il__guard_conn_take(il_guard *g, struct guard_limit limit, struct guard_conn **ret,
                              il_error *reterr) MUST_USE;
void      il__guard_conn_give(struct guard_conn *c);
/* Note an open transaction, and its end: il_guard_close() rolls back what is open. */
void il__guard_tx_add(il_guard_tx *tx);
void il__guard_tx_remove(il_guard_tx *tx);
/* The class of this name; NULL: it has no rank. */
const struct guard_class *il__guard_class(const il_guard *g, const char *name);
il_status                 il__guard_cancelled(il_error *reterr); /* IL_CANCELLED */
/* Was the transaction, or the handle, interrupted? And a descriptor that is readable then. */
bool il__guard_is_stopped(const il_guard *g, struct guard_limit limit);
int  il__guard_stop_fd(const il_guard *g, struct guard_limit limit);
/* May the transaction go on? IL_OK, IL_CANCELLED, or IL_TIMEOUT: its deadline is over. */
bool      il__guard_is_late(const struct guard_conn *c);
il_status il__guard_check_deadline(const struct guard_conn *c, il_error *reterr) MUST_USE;

/* ---- tx.c ------------------------------------------------------------------------------------ */

struct guard_tx_fence {
    il                *h;
    struct guard_shown shown;
    bool               shared; /* the store is in the same database */
};

/* A row that a transaction holds, or has held. */
struct guard_held {
    const struct guard_class *class_;
    const struct guard_table *table;
    il_guard_id               id;
    const char               *asked; /* the table as the caller named it */
    const char               *key;   /* the id as text */
    const char               *place;
    int64_t                   wait_ns, since_ns, ended_ns; /* ended_ns 0: still held */
    unsigned                  n_queries_before;
    unsigned                  n_queries; /* while it was held, once it has ended */
};

struct il_guard_tx {
    il_guard             *g;
    il_guard_tx          *next; /* of the handle's */
    struct guard_conn    *c;
    void                 *mem; /* arena: ids, texts, tags */
    const char           *pipeline, *caller;
    struct guard_tx_fence fences[IL_GUARD_FENCES_MAX];
    size_t                n_fences;
    struct guard_held    *rows;
    size_t                n_rows, rows_capacity;
    il_guard_column       tags[IL_GUARD_TAGS_MAX];
    size_t                n_tags;
    bool                  read_only;
    bool                  path_changed; /* a statement may have set the search_path */
    bool                  failed;       /* good for rollback only */
    unsigned              depth;        /* of savepoints */
    unsigned              n_queries, n_attempt;
    int64_t               begin_wait_ns; /* of the file's write lock; the first row reports it */
    il_status             first_failure; /* of a call; IL_OK: none */
    bool                  conflict;      /* a call failed because of others: try again */
    char                  constraint[IL_CONSTRAINT_BYTES_MAX + 1];
};

/* Does the transaction take statements? Then IL_OK. */
il_status il__guard_usable(const il_guard_tx *tx, il_error *reterr) MUST_USE;
/* Was it undone because of others? Not a statement that took too long on its own. */
bool il__guard_is_conflict(il_status st, const il_error *err);
/* Note a failed call: the transaction is good for rollback only. Returns st. */
il_status il__guard_fail(il_guard_tx *tx, il_status st, const il_error *err);
/* Run a statement of our own. */
il_status il__guard_run(il_guard_tx *tx, struct guard_statement *s, il_error *reterr) MUST_USE;
/* The same after another one, in one round trip; the engine has run_both. */
il_status il__guard_run_both(il_guard_tx *tx, struct guard_statement *first,
                             struct guard_statement *second, il_error *reterr) MUST_USE;
/* Check a query of the caller's. */
il_status il__guard_query(il_guard_tx *tx, const il_guard_query *query, struct guard_statement *ret,
                          il_error *reterr) MUST_USE;
/* The limit of a transaction that begins now. */
struct guard_limit il__guard_limit(const il_guard_tx_opts *o);
il_status il__guard_begin_attempt(il_guard *g, const il_guard_tx_opts *opts, unsigned n_attempt,
                                  struct guard_limit limit, il_guard_tx **ret, il_error *reterr)
    MUST_USE;
/* Roll back because of st, which a call or the caller's function has returned. */
void il__guard_abort(il_guard_tx *tx, il_status st);

/* ---- fence.c --------------------------------------------------------------------------------- */

il_status il__guard_fences_take(il_guard_tx *tx, const il_guard_fence *fences, size_t n,
                                il_error *reterr) MUST_USE;
/* Ask the stores; begin; show the fences. On failure no transaction is open. */
il_status il__guard_fences_begin(il_guard_tx *tx, il_error *reterr) MUST_USE;
il_status il__guard_fences_check(il_guard_tx *tx, il_error *reterr)
    MUST_USE; /* before the commit */
/* "a higher fence was shown" */
il_status il__guard_stale(const struct guard_shown *f, uint64_t seen, il_error *reterr);

/* ---- lock_order.c ---------------------------------------------------------------------------- */

/* The held row with this primary key; NULL: none. */
struct guard_held *il__guard_row_held(il_guard_tx *tx, const struct guard_table *t,
                                      const il_guard_id *id);
/* May a row of this class be locked now? id NULL: not known yet, only the rank counts. IL_ORDER. */
il_status il__guard_order(il_guard_tx *tx, const il_guard_target *row, const struct guard_table *t,
                          const il_guard_id *id, il_error *reterr) MUST_USE;
/* Would the answer depend on the primary key, or may the row be held already? */
bool il__guard_order_needs_id(const il_guard_tx *tx, const il_guard_target *row);
/* Remember a row as held since now, or leave it as it is. The id is copied, *ret (may be NULL) is
 * the copy. */
il_status il__guard_row_hold(il_guard_tx *tx, const il_guard_target *row,
                             const struct guard_table *t, const il_guard_id *id, int64_t wait_ns,
                             il_guard_id *ret, il_error *reterr) MUST_USE;
/* The rows after the first n are no longer held. */
void il__guard_row_let_go(il_guard_tx *tx, size_t n);
void il__guard_report(il_guard_tx *tx, il_guard_outcome outcome);
int  il__guard_id_compare(const il_guard_id *a, const il_guard_id *b);

/* ---- catalogue.c ----------------------------------------------------------------------------- */

/* A table as this connection found it in the catalogue. */
struct guard_table {
    struct guard_table *next;
    char               *asked;  /* as the caller named it */
    char               *schema; /* as the catalogue has it */
    char               *name;
    char               *quoted; /* for SQL text */
    size_t              n_key;  /* columns of its primary key; 0 = none */
    char               *key[IL_GUARD_KEY_COLUMNS_MAX];
    char               *key_quoted[IL_GUARD_KEY_COLUMNS_MAX];
    bool                key_is_int[IL_GUARD_KEY_COLUMNS_MAX];
    bool                key_is_number[IL_GUARD_KEY_COLUMNS_MAX]; /* an integer, or a float */
    struct guard_name  *columns;                                 /* looked up so far */
};

/* IL_OK, IL_NOT_FOUND (the transaction continues), IL_INVAL (a name that is too long). */
il_status il__guard_table(il_guard_tx *tx, const char *name, struct guard_table **ret,
                          il_error *reterr) MUST_USE;
/* The column, quoted for SQL text. */
il_status il__guard_column(il_guard_tx *tx, struct guard_table *t, const char *name,
                           const char **ret, il_error *reterr) MUST_USE;
/* Forget what was looked up, between transactions: a name may mean something else now. */
void il__guard_names_release(struct guard_conn *c);
/* The same in a transaction, which may hold rows of tables that were looked up. */
void il__guard_names_outdate(struct guard_conn *c);

/* ---- sql.c ----------------------------------------------------------------------------------- */

#define GUARD_VALUES_FEW 16

/* A statement whose names are filled in and whose values are collected. Not to be moved. */
struct guard_sql {
    struct il__buf  text;
    il_guard_value *values; /* few, or room for IL_GUARD_VALUES_MAX */
    size_t          n_values;
    il_guard_value  few[GUARD_VALUES_FEW];
};
void il__guard_sql_init(struct guard_sql *q);
void il__guard_sql_release(struct guard_sql *q);
#define AUTO_SQL AUTO(il__guard_sql_release)
/* A part of the text: if it is incomplete (out of memory), so is the statement. */
void il__guard_sql_need(struct guard_sql *q, const struct il__buf *part);
/* Append a value's placeholder ($3). False: too many values, or one that is not initialized. */
bool il__guard_sql_value(struct guard_sql *q, struct il__buf *out, il_guard_value value) MUST_USE;
/* Append "a = $1 AND b IS NULL". */
il_status il__guard_sql_where(il_guard_tx *tx, struct guard_table *t, const il_guard_column *key,
                              size_t n, const char *prefix, struct guard_sql *q,
                              struct il__buf *out, il_error *reterr) MUST_USE;
/* A name of a template (@table) and its text. */
struct guard_fill {
    const char *name, *text;
};
/* Append `text` to *out with @names replaced; an unknown one is a programming error. */
void il__guard_sql_fill(const char *text, const struct guard_fill *fills, size_t n,
                        struct il__buf *out);
/* "a, b": the columns of the primary key; with prefix "t." before each. */
void il__guard_sql_key(const struct guard_table *t, struct il__buf *out);

/* ---- row_lock.c ------------------------------------------------------------------------------ */

/* Find out which row is meant, and whether it may be locked now. *ret_held: it is held already, or
 * NULL. *ret_table: its table. IL_NOT_FOUND. */
il_status il__guard_prepare(il_guard_tx *tx, const il_guard_target *row,
                            struct guard_table **ret_table, struct guard_held **ret_held,
                            il_error *reterr) MUST_USE;
/* A row function that copies the values of rows into the transaction; cookie: struct guard_rows. */
struct guard_rows {
    il_guard_tx    *tx;
    il_guard_value *values; /* of the first row */
    size_t          n_rows;
    il_guard_id    *ids; /* of all rows, if wanted: their first n_key values */
    size_t          n_key, ids_max;
    bool            failed; /* no memory */
};
int il__guard_take_rows(void *cookie, const il_guard_row *row);

/* ---- value.c --------------------------------------------------------------------------------- */

/* A copy in the arena; false: no memory. */
bool il__guard_value_copy(void **mem, const il_guard_value *value, il_guard_value *ret) MUST_USE;
int  il__guard_value_compare(const il_guard_value *a, const il_guard_value *b);
/* With a decimal point, whatever the locale. */
void   il__guard_print_double(double number, char out[GUARD_NUMBER_BYTES]);
double il__guard_parse_double(const char *text);
/* As text, for messages and events. */
void il__guard_value_print(const il_guard_value *value, struct il__buf *out);
bool il__guard_value_is_valid(const il_guard_value *value);

/* A row function that stores the first value of the first row as a number; cookie: struct
 * guard_number. */
struct guard_number {
    bool    there;
    int64_t number;
};
int il__guard_take_number(void *cookie, const il_guard_row *row);

/* ---- sql_scan.c ------------------------------------------------------------------------------ */

/* Skip spaces, comments and semicolons. nested: comments may nest (PostgreSQL). */
const char *il__guard_skip(const char *sql, bool nested);
/* Does this statement begin or end a transaction, or set a savepoint in it? Checks its first words:
 * no other statement of PostgreSQL's grammar does. */
bool il__guard_ends_transaction(const char *sql, bool nested);
/* May this statement change the search_path? */
bool il__guard_sets_path(const char *sql);
/* Does a CREATE TABLE text declare a constraint of this name? *ret_foreign: a foreign key. */
bool il__guard_declares(const char *sql, const char *constraint, bool *ret_foreign);
#define GUARD_REFUSE_TEXT \
    "transaction statements (BEGIN, COMMIT, SAVEPOINT, ...) are not allowed here"
#define GUARD_SEVERAL_TEXT "only one statement is allowed per call"
#define GUARD_EMPTY_TEXT "the text contains no statement"

#endif
