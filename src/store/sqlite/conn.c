/*
 * conn.c: one SQLite connection: its settings and prepared statements. No other file looks at
 * native result codes.
 */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "store/sqlite/sqlite_internal.h"

#include "sqlite_connect.inc"
#include "sqlite_sql.inc"

static const char *const sql[] = {
#define X(name) [SQ_##name] = sql_##name,
#include "sqlite_statements.inc"
#undef X
};

const char *
il__sq_sql(enum sq_stmt stmt)
{
    CHECK(stmt < SQ_STMT_COUNT);
    return sql[stmt];
}

void
il__store_sqlite_uncounted(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* if it fails, the bytes are counted */
}

/* Map a native result code to a status. A full disk shows in several codes, but always in errno. */
static il_status
status_of(int extended_rc, int system_errno)
{
    switch (extended_rc & 0xFF) {
    case SQLITE_OK:
        return IL_OK;
    case SQLITE_FULL:
        return IL_FULL;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return IL_CORRUPT;
    case SQLITE_NOMEM:
        return IL_NOMEM;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if ((extended_rc & 0xFF) == SQLITE_IOERR && extended_rc == SQLITE_IOERR_NOMEM)
            return IL_NOMEM;
        return system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG ? IL_FULL
                                                                                         : IL_STORE;
    default:
        return IL_STORE;
    }
}

il_status
il__sq_error(int extended_rc, int system_errno, const char *path, il_error *reterr)
{
    int         rc   = extended_rc != SQLITE_OK ? extended_rc : SQLITE_ERROR;
    const char *text = sqlite3_errstr(rc);

    il_status st = status_of(rc, system_errno);
    if (st == IL_FULL)
        text = system_errno == EFBIG ? "file size limit reached (ulimit -f)" : "disk full";
    if (system_errno == EMFILE && (rc & 0xFF) == SQLITE_CANTOPEN)
        text = "too many open files (ulimit -n)";
    if ((rc & 0xFF) == SQLITE_BUSY)
        text = "locked by another program";
    if ((rc & 0xFF) == SQLITE_READONLY)
        text = "not writable";
    il__error_set(reterr, st, "%s: %s", path, text);
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%d", rc);
    return st;
}

il_status
il__sq_conn_error(const struct sq_conn *c, const char *path, il_error *reterr)
{
    return il__sq_error(c->rc, c->db != NULL ? sqlite3_system_errno(c->db) : 0, path, reterr);
}

static bool
ok(struct sq_conn *c, int rc)
{
    if (rc != SQLITE_OK)
        c->rc = rc;
    return rc == SQLITE_OK;
}

static int
note_frames(void *cookie, sqlite3 *db UNUSED, const char *name UNUSED, int n_frames)
{
    struct sq_conn *c = cookie;

    c->n_frames = n_frames;
    return SQLITE_OK;
}

il_status
il__sq_conn_open(struct sq_conn *c, const char *path, bool read_only, int64_t timeout_ms,
                 il_error *reterr)
{
    int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    int on    = 1;

    *c = (struct sq_conn){ 0 };
    bool opened =
        ok(c, sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                              NULL)) &&
        ok(c, sqlite3_busy_timeout(c->db, (int)MIN(timeout_ms, INT32_MAX))) &&
        /* No checkpoint when the last connection closes: it would not be under the lock file. */
        ok(c, sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL)) &&
        ok(c, sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL)) &&
        ok(c, sqlite3_exec(c->db, sql_connect, NULL, NULL, NULL)) &&
        ok(c, sqlite3_file_control(c->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on));
    if (!opened) {
        il_status st = il__sq_conn_error(c, path, reterr);
        il__sq_conn_close(c);
        return st;
    }
    (void)sqlite3_wal_hook(c->db, note_frames, c); /* returns the hook before it: none */
    return IL_OK;
}

void
il__sq_conn_close(struct sq_conn *c)
{
    for (size_t i = 0; i < SQ_STMT_COUNT; i++)
        (void)sqlite3_finalize(c->stmts[i]); /* repeats the last error, already reported */
    CHECK(sqlite3_close(c->db) == SQLITE_OK);
    *c = (struct sq_conn){ 0 };
}

il_status
il__sq_conn_borrow(struct sq_conn *c, sqlite3 *db, const char *path, il_error *reterr)
{
    int on = 1;

    *c = (struct sq_conn){ .db = db };
    if (!ok(c, sqlite3_wal_autocheckpoint(db, 0)) ||
        !ok(c, sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL)) ||
        !ok(c, sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &on)))
        return il__sq_conn_error(c, path, reterr);
    (void)sqlite3_wal_hook(db, note_frames, c);
    return IL_OK;
}

void
il__sq_conn_return(struct sq_conn *c)
{
    for (size_t i = 0; i < SQ_STMT_COUNT; i++)
        (void)sqlite3_finalize(c->stmts[i]); /* repeats the last error, already reported */
    if (c->db != NULL)
        (void)sqlite3_wal_hook(c->db, NULL, NULL);
    *c = (struct sq_conn){ 0 };
}

sqlite3_stmt *
il__sq_use(struct sq_conn *c, enum sq_stmt stmt)
{
    if (c->stmts[stmt] == NULL)
        (void)ok(c, sqlite3_prepare_v3(c->db, il__sq_sql(stmt), -1, SQLITE_PREPARE_PERSISTENT,
                                       &c->stmts[stmt], NULL));
    return c->stmts[stmt];
}

bool
il__sq_bind_int(struct sq_conn *c, sqlite3_stmt *s, int i, int64_t value)
{
    return s != NULL && ok(c, sqlite3_bind_int64(s, i, value));
}

/* Strings are bound without a copy: they outlive the step, and are bound again before the next
 * one. */
bool
il__sq_bind_bytes(struct sq_conn *c, sqlite3_stmt *s, int i, const char *text, size_t n)
{
    return s != NULL && ok(c, sqlite3_bind_text(s, i, text, (int)n, SQLITE_STATIC));
}

bool
il__sq_bind_blob(struct sq_conn *c, sqlite3_stmt *s, int i, const void *data, size_t n)
{
    return s != NULL && ok(c, sqlite3_bind_blob64(s, i, data, n, SQLITE_STATIC));
}

bool
il__sq_bind_text(struct sq_conn *c, sqlite3_stmt *s, int i, const char *text)
{
    return il__sq_bind_bytes(c, s, i, text, strlen(text));
}

bool
il__sq_bind_prefix(struct sq_conn *c, sqlite3_stmt *s, int i, const char *prefix)
{
    char end[IL_KEY_BYTES_MAX + 2];
    /* The last byte never occurs in UTF-8. */
    int n = snprintf(end, sizeof end, "%s\xFF", prefix != NULL ? prefix : "");

    CHECK(n > 0 && (size_t)n < sizeof end);
    return il__sq_bind_bytes(c, s, i, prefix != NULL ? prefix : "", (size_t)n - 1) &&
           ok(c, sqlite3_bind_text(s, i + 1, end, n, SQLITE_TRANSIENT));
}

int
il__sq_step(struct sq_conn *c, sqlite3_stmt *s)
{
    if (s == NULL)
        return 0;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        return rc;
    (void)sqlite3_reset(s); /* gives the same code again */
    if (rc == SQLITE_DONE)
        return rc;
    c->rc = rc;
    return 0;
}

bool
il__sq_stmt_run(struct sq_conn *c, sqlite3_stmt *s)
{
    int rc;

    while ((rc = il__sq_step(c, s)) == SQLITE_ROW)
        ;
    return rc == SQLITE_DONE;
}

bool
il__sq_exec(struct sq_conn *c, enum sq_stmt stmt)
{
    return il__sq_stmt_run(c, il__sq_use(c, stmt));
}

bool
il__sq_ask(struct sq_conn *c, sqlite3_stmt *s, bool *ret)
{
    if (il__sq_step(c, s) != SQLITE_ROW)
        return false;
    *ret = sqlite3_column_int64(s, 0) != 0;
    return il__sq_stmt_run(c, s);
}

bool
il__sq_has_blob(struct sq_conn *c, sqlite3_stmt *s, const void *data, size_t n, bool *ret)
{
    int rc = il__sq_step(c, s);

    *ret = false;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    const void *stored  = sqlite3_column_blob(s, 0);
    size_t      n_bytes = (size_t)sqlite3_column_bytes(s, 0);
    *ret = n_bytes == n && (n == 0 || (stored != NULL && memcmp(stored, data, n) == 0));
    return il__sq_stmt_run(c, s);
}

bool
il__sq_begin(struct sq_conn *c, enum sq_stmt begin)
{
    c->rc = SQLITE_OK;
    /* A transaction that could not be rolled back for lack of memory is rolled back now. */
    if (!sqlite3_get_autocommit(c->db) && !il__sq_exec(c, SQ_rollback))
        return false;
    return il__sq_exec(c, begin);
}

void
il__sq_undo(struct sq_conn *c)
{
    int rc = c->rc;

    if (!sqlite3_get_autocommit(c->db))
        IGNORE(il__sq_exec(c, SQ_rollback));
    c->rc = rc;
}

const char *
il__sq_text(sqlite3_stmt *s, int column)
{
    const unsigned char *text = sqlite3_column_text(s, column);

    return text != NULL ? (const char *)text : "";
}
