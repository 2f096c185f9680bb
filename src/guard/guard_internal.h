/*
 * guard_internal.h: declarations shared by the files of the guard.
 *
 *   guard.c           connections and transactions: the part common to both engines, and why a
 *                     zombie cannot commit
 *   name.c            identifiers
 *   text.c            scans SQL text: several statements, words that begin or end transactions
 *   sqlite.c          SQLite
 *   postgres.c        PostgreSQL: transactions and fences
 *   postgres_wait.c   PostgreSQL: sends a statement, waits for it, cancels it
 *   postgres_store.c  PostgreSQL: is the store in the same database?
 */
#ifndef IL_GUARD_INTERNAL_H
#define IL_GUARD_INTERNAL_H

#include <stdatomic.h>

#include "guard/guard.h"

/* to connect, to commit: steps that wait for no other transaction */
#define GUARD_ANSWER_MS_MAX 15000

/* A fence as statement parameters. */
struct guard_shown {
    const char *tenant, *key;
    uint64_t    number;
    char        text[24]; /* the number */
};

/* A query to the catalogue. */
enum guard_question {
    GUARD_TABLE,
    GUARD_COLUMN
};

/* All callbacks: any thread, one at a time. A failed one leaves nothing locked, except exec: the
 * caller then rolls the transaction back. */
struct guard_ops {
    void (*free)(struct guard_conn *c);
    il_status (*connect)(struct guard_conn *c, il_error *reterr);
    il_status (*begin)(struct guard_conn *c, bool read_only, il_error *reterr);
    /* In a transaction that may write: record the fence, and keep others from showing a higher one
     * until the end. IL_OK, IL_STALE. */
    il_status (*show)(struct guard_conn *c, const struct guard_shown *f, il_error *reterr);
    il_status (*commit)(struct guard_conn *c, il_error *reterr);
    void (*rollback)(struct guard_conn *c);
    il_status (*exec)(struct guard_conn *c, const char *sql, const char *const *values, size_t n,
                      guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr);
    il_status (*ask)(struct guard_conn *c, enum guard_question what, const char *const *values,
                     size_t n, guard_row_fn *each, void *cookie, il_error *reterr);
    /* Are the leases of the store that issued the fence in this same database? NULL: never. Not in
     * a transaction. */
    il_status (*shares)(struct guard_conn *c, il *h, const struct guard_shown *f, bool *ret,
                        il_error *reterr);
    /* If so: show the fence to guarded tables; check it, and lock the lease's row until the end. */
    il_status (*shared_show)(struct guard_conn *c, const struct guard_shown *f, il_error *reterr);
    il_status (*shared_check)(struct guard_conn *c, const struct guard_shown *f, il_error *reterr);
};

struct guard_conn {
    const struct guard_ops *ops;
    int64_t                 timeout_ms;
    int                     stop_fd; /* eventfd: readable once interrupted */
    atomic_bool             interrupted;
    struct guard_tx        *tx; /* the open one */
    bool                    read_only;
};

struct guard_tx {
    struct guard_conn *c;
    il                *h; /* NULL: no fence */
    struct guard_shown fence;
    char              *tenant, *key; /* owned */
    bool               read_only;
    bool               shared; /* the store is in the same database */
    bool               failed; /* can only be rolled back */
};

il_status il__guard_sqlite_new(const char *path, int64_t timeout_ms, struct guard_conn **ret,
                               il_error *reterr) MUST_USE;
il_status il__guard_postgres_new(const char *url, int64_t timeout_ms, struct guard_conn **ret,
                                 il_error *reterr) MUST_USE;
/* Initialise the common part; false: out of memory or descriptors. */
bool il__guard_init(struct guard_conn *c, const struct guard_ops *ops, int64_t timeout_ms) MUST_USE;
void il__guard_release(struct guard_conn *c);
/* "it was asked to stop" */
il_status il__guard_cancelled(il_error *reterr);
/* "a higher fence was shown" */
il_status il__guard_stale(const struct guard_shown *f, uint64_t seen, il_error *reterr);

/* A row function that stores the first value of the first row as a number; cookie: struct
 * guard_number. */
struct guard_number {
    bool     there;
    uint64_t number;
};
bool il__guard_take_number(void *cookie, const struct guard_row *row);

/* ---- text.c ---------------------------------------------------------------------------------- */

/* Skip spaces, comments and semicolons. nested: comments may nest (PostgreSQL). */
const char *il__guard_skip(const char *sql, bool nested);
/* Does this statement begin or end a transaction, or set a savepoint in it? Checks its first words:
 * no other statement of PostgreSQL's grammar does. */
bool il__guard_ends_transaction(const char *sql);
#define GUARD_REFUSE_TEXT                                                                        \
    "the transaction is Interlock's to begin and to end: no BEGIN, COMMIT, ROLLBACK, SAVEPOINT " \
    "and the like"
#define GUARD_SEVERAL_TEXT "several statements in one text; pass each separately"
#define GUARD_EMPTY_TEXT "the text contains no statement"

#endif
