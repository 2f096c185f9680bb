/*
 * guard.h: fenced transactions on the users' own databases: a holder that has lost its lease cannot
 * commit them. One interface for SQLite and PostgreSQL: connections, transactions, statements with
 * bound values.
 *
 * A transaction's fence is *shown* to the database when it begins and checked again just before it
 * commits:
 *   - where leases and data share a PostgreSQL database, interlock.check_fence() locks the lease's
 *     row until the commit: the key cannot be taken over in between;
 *   - elsewhere a row per (tenant, key) in our table interlock_fence in the user's database records
 *     the highest fence shown, by readers as well. The transaction locks the row first, so that a
 *     later holder's transaction waits for ours, and ours is refused once a higher fence was shown.
 *     The store is asked, too, before the commit.
 * README.md explains why that is enough, and what it does not cover.
 */
#ifndef IL_GUARD_GUARD_H
#define IL_GUARD_GUARD_H

#include "base/base.h"
#include "base/buf.h"

struct guard_conn;
struct guard_tx;

#define GUARD_VALUES_MAX 256 /* bound to one statement */
#define GUARD_NAME_BYTES_MAX 256

/* sqlite:PATH (or just a path; the file is created if missing) and postgres://…. Only parses the
 * URL, without connecting. timeout_ms (0 = 5,000): the maximum wait for another transaction's lock
 * on file or fence; also for connecting and for the answer to a commit, but at most 15 s for those.
 * IL_OK, IL_INVAL, IL_STORE (libpq is missing), IL_NOMEM. Messages, here and below, never contain a
 * password. */
il_status il__guard_new(const char *url, int64_t timeout_ms, struct guard_conn **ret,
                        il_error *reterr) MUST_USE;
/* Connect; may be called again; il__guard_begin() does it automatically. A file that is a store is
 * refused (IL_INVAL): stores are only written under their own lock. IL_OK, IL_INVAL, IL_STORE,
 * IL_CANCELLED, IL_NOMEM. */
il_status il__guard_connect(struct guard_conn *c, il_error *reterr) MUST_USE;
void      il__guard_close(struct guard_conn *c); /* NULL is fine; rolls back */
/* From another thread, any time before the close; does not block. The running call ends with
 * IL_CANCELLED, and so does every later one. A commit that was already sent is waited for. */
void il__guard_interrupt(struct guard_conn *c);
bool il__guard_is_postgres(const struct guard_conn *c);

struct guard_fence {
    il         *h;      /* the store that issued it */
    const char *tenant; /* NULL = the handle's */
    const char *key;
    uint64_t    fence;
};

/* Begin. `fence` NULL: a plain transaction. read_only: it will be rolled back; the fence is still
 * shown (and only that is committed). IL_OK, IL_STALE, IL_STORE, IL_CANCELLED, … One transaction
 * per connection at a time. A broken connection is reopened. The fence's strings are copied; its
 * handle must outlive the transaction. */
il_status il__guard_begin(struct guard_conn *c, const struct guard_fence *fence, bool read_only,
                          struct guard_tx **ret, il_error *reterr) MUST_USE;
/* Check the fence and commit. On any other result than IL_OK nothing was committed (IL_STALE: the
 * lease is lost; IL_STATE: one of its statements failed), except IL_STORE with GUARD_UNKNOWN as its
 * native code: the connection broke during the commit, and the outcome is unknown. Frees the
 * transaction. */
#define GUARD_UNKNOWN "commit?"
il_status il__guard_commit(struct guard_tx *tx, il_error *reterr) MUST_USE;
void      il__guard_rollback(struct guard_tx *tx); /* NULL is fine */

/* One row. Values are text. */
struct guard_row {
    size_t             n;
    const char *const *names;
    const char *const *values; /* NULL = SQL NULL */
};
/* false: no more rows wanted */
typedef bool guard_row_fn(void *cookie, const struct guard_row *row);

/*
 * Execute one statement with values for $1, $2, … (both engines; bound as text, NULL = SQL NULL;
 * the database casts them). IL_OK; IL_INVAL: the database refuses it (its message, SQLSTATE), it
 * contains several statements, or it begins or ends a transaction; then the transaction can only be
 * rolled back. IL_STALE: refused by the guard of a table. *ret_n_changed (may be NULL): rows
 * inserted, updated or deleted. each may be NULL.
 */
il_status il__guard_exec(struct guard_tx *tx, const char *sql, const char *const *values,
                         size_t n_values, guard_row_fn *each, void *cookie, int64_t *ret_n_changed,
                         il_error *reterr) MUST_USE;

/* Append an identifier ("table", "schema.table") to *out, quoted for SQL text, but only if it
 * exists in the catalogue (else IL_NOT_FOUND; the transaction continues). Identifiers cannot be
 * bound: this is the only place where a name becomes SQL text. column NULL: the table; else only
 * that column of it. */
il_status il__guard_quote(struct guard_tx *tx, const char *table, const char *column,
                          struct il__buf *out, il_error *reterr) MUST_USE;
/* Append `text` to *out with @table and @column replaced by the output of il__guard_quote() (column
 * NULL: none). */
void il__guard_fill(const char *text, const char *table, const char *column, struct il__buf *out);

#endif
