/*
 * guard.h: transactions on the users' own databases that a holder which has lost its lease cannot commit. SQLite and PostgreSQL, one interface.
 *
 * (The first of the five layers to come; so far: connections, fenced transactions, statements with bound values.)
 *
 * The fence of a transaction is *shown* to the database when it begins and checked again just before it commits:
 *   - where leases and data share a PostgreSQL database, interlock.check_fence() locks the lease's row until the commit: nobody can take the key over in between;
 *   - elsewhere a row per (tenant, key) in a table of ours in the user's database (interlock_fence) remembers the highest fence that was shown, by readers too: taken first thing in the transaction, with a write
 *     lock on it, so that a later holder's transaction waits for ours, and ours is refused once a higher one was shown. The store is asked as well, before the commit.
 * README.md says why that is enough, and what it does not cover.
 */
#ifndef IL_GUARD_GUARD_H
#define IL_GUARD_GUARD_H

#include "base/base.h"
#include "base/buf.h"

struct guard_conn;
struct guard_tx;

#define GUARD_VALUES_MAX 256 /* bound to one statement */
#define GUARD_NAME_BYTES_MAX 256

/* sqlite:PATH (or just a path; the file is made if it is not there) and postgres://…. Touches nothing: only the URL is looked at. timeout_ms (0 = 5,000): the longest that waiting for somebody else's transaction on
 * file or fence may take; also connecting and the answer to a commit, but those 15 s at most. IL_OK, IL_INVAL, IL_STORE (libpq is not there), IL_NOMEM. What is said, here and below, never has a password. */
il_status il__guard_new(const char *url, int64_t timeout_ms, struct guard_conn **ret,
                        il_error *reterr) MUST_USE;
/* Connect; repeatable; il__guard_begin() does it by itself. A file that is a store is refused (IL_INVAL): those are written under a lock of their own. IL_OK, IL_INVAL, IL_STORE, IL_CANCELLED, IL_NOMEM. */
il_status il__guard_connect(struct guard_conn *c, il_error *reterr) MUST_USE;
/* Both. */
il_status il__guard_open(const char *url, int64_t timeout_ms, struct guard_conn **ret,
                         il_error *reterr) MUST_USE;
void      il__guard_close(struct guard_conn *c); /* NULL is fine; rolls back */
/* From another thread, any time before the close; does not block: what runs is ended (IL_CANCELLED), and so is all that follows. A commit that was sent already is waited for. */
void il__guard_interrupt(struct guard_conn *c);
bool il__guard_is_postgres(const struct guard_conn *c);

struct guard_fence {
    il         *h;      /* the store that gave it */
    const char *tenant; /* NULL = the handle's */
    const char *key;
    uint64_t    fence;
};

/* Begin. `fence` NULL: a plain transaction. read_only: it will be rolled back; the fence is shown all the same (and that alone committed). IL_OK, IL_STALE, IL_STORE, IL_CANCELLED, … One transaction per connection at a time.
 * A connection that broke is made anew. The fence's strings are copied; its handle must outlive the transaction. */
il_status il__guard_begin(struct guard_conn *c, const struct guard_fence *fence, bool read_only,
                          struct guard_tx **ret, il_error *reterr) MUST_USE;
/* Checks the fence, commits. Anything but IL_OK: nothing of it stays (IL_STALE: the lease is lost; IL_STATE: a statement of it failed), but for IL_STORE with GUARD_UNKNOWN as its native code: the connection broke during the commit.
 * Frees the transaction. */
#define GUARD_UNKNOWN "commit?"
il_status il__guard_commit(struct guard_tx *tx, il_error *reterr) MUST_USE;
void      il__guard_rollback(struct guard_tx *tx); /* NULL is fine */

/* One row. Values are text. */
struct guard_row {
    size_t             n;
    const char *const *names;
    const char *const *values; /* NULL = SQL NULL */
};
/* false: no more rows are wanted */
typedef bool guard_row_fn(void *cookie, const struct guard_row *row);

/*
 * One statement with values for $1, $2, … (both engines; bound as text, NULL = SQL NULL: the database casts). IL_OK; IL_INVAL: the database refuses it (its message, SQLSTATE); also several statements in one text, and one that ends or
 * begins a transaction: the transaction is then good for rollback only. IL_STALE: the table has a guard that says so. *ret_n_changed (may be NULL): rows inserted, changed, deleted. each may be NULL.
 */
il_status il__guard_exec(struct guard_tx *tx, const char *sql, const char *const *values,
                         size_t n_values, guard_row_fn *each, void *cookie, int64_t *ret_n_changed,
                         il_error *reterr) MUST_USE;

/* An identifier ("table", "schema.table") as it must stand in SQL text, quoted, appended to *out; only after the catalogue has said that it is there (IL_NOT_FOUND; the transaction goes on). Identifiers cannot be bound: this is the one
 * place where a name becomes SQL text. column NULL: the table; else that column of it, alone. */
il_status il__guard_quote(struct guard_tx *tx, const char *table, const char *column,
                          struct il__buf *out, il_error *reterr) MUST_USE;
/* `text` with @table and @column replaced by what il__guard_quote() made (column NULL: there is none), appended to *out. */
void il__guard_fill(const char *text, const char *table, const char *column, struct il__buf *out);

#endif
