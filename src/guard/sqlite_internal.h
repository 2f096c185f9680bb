/*
 * sqlite_internal.h: declarations shared by the guard's SQLite files.
 */
#ifndef IL_GUARD_SQLITE_INTERNAL_H
#define IL_GUARD_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "guard/guard_internal.h"

#define GUARD_STATEMENTS_MAX 64 /* kept prepared, per connection */

/* A prepared statement that is kept. */
struct guard_prepared {
    sqlite3_stmt *stmt; /* NULL: free */
    char         *sql;
    uint64_t      hash, used; /* used: larger is later */
    bool          is_theirs;  /* checked by the authorizer as the user's own */
};

struct sqlite_guard {
    struct guard_conn     base;
    sqlite3              *db;
    bool                  is_borrowed; /* the caller's own: its hooks and settings stay */
    char                 *path;        /* for messages, too */
    const char           *refused;     /* set by the authorizer: why */
    bool                  is_theirs;   /* the statement is the user's */
    bool                  commits;     /* our commit is running */
    int64_t               busy_until;  /* of a wait for another connection's lock */
    struct guard_prepared prepared[GUARD_STATEMENTS_MAX];
    uint64_t              n_used;
    int                   lock_fd;          /* of a file that we own; -1 = none */
    bool                  locked;           /* we hold its lock */
    int                   n_frames, try_at; /* of its WAL; checkpoint when it has so many */
};

/* Run one statement. */
il_status il__guard_sqlite_run(struct sqlite_guard *g, struct guard_statement *s, il_error *reterr)
    MUST_USE;
/* One of ours without rows or values. */
il_status il__guard_sqlite_exec(struct sqlite_guard *g, const char *sql, il_error *reterr) MUST_USE;

/* ---- sqlite_error.c -------------------------------------------------------------------------- */

/* Translate SQLite's error for a statement; the statement's own fault is IL_INVAL. */
il_status il__guard_sqlite_fail(struct sqlite_guard *g, int rc, il_error *reterr);

/* ---- sqlite_file.c --------------------------------------------------------------------------- */

/* Settings of a file that we own, once per connection. */
il_status il__guard_file_set_up(struct sqlite_guard *g, il_error *reterr) MUST_USE;
/* Before a transaction that writes; after it. */
il_status il__guard_file_lock(struct sqlite_guard *g, il_error *reterr) MUST_USE;
void      il__guard_file_unlock(struct sqlite_guard *g);
void      il__guard_file_close(struct sqlite_guard *g);

#endif
