/*
 * sqlite.c: fenced transactions on the user's SQLite file.
 *
 * The file belongs to the user: its journal mode and settings stay unchanged. Three mechanisms
 * prevent unauthorised commits: an authorizer refuses to prepare statements that begin or end
 * transactions, a commit hook refuses every commit but ours (including the automatic one of a write
 * after a failure that has rolled everything back), and after each statement we check that the
 * transaction is still open.
 */
#include <limits.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "guard/guard_internal.h"
#include "store/sqlite/error.h"

#include "guard_sqlite_sql.inc"

#define LOOK_OPS 1000 /* SQLite VM steps between two checks for an interrupt */
#define FENCE_TABLE "interlock_fence"

struct sqlite_guard {
    struct guard_conn base;
    sqlite3          *db;
    char             *path;
    const char       *refused;    /* set by the authorizer: why */
    bool              is_theirs;  /* the statement is the user's */
    bool              commits;    /* our commit is running */
    int64_t           busy_until; /* of a wait for another connection's lock */
};

static struct sqlite_guard *
from(struct guard_conn *c)
{
    return container_of(c, struct sqlite_guard, base);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Translate SQLite's error for a statement; the statement's own fault is IL_INVAL. */
static il_status
fail(struct sqlite_guard *g, int rc, il_error *reterr)
{
    switch (rc & 0xFF) {
    case SQLITE_INTERRUPT:
        return il__guard_cancelled(reterr);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        if (atomic_load(&g->base.interrupted))
            return il__guard_cancelled(reterr);
        break;
    case SQLITE_AUTH:
    case SQLITE_CONSTRAINT:
    case SQLITE_ERROR:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
    case SQLITE_TOOBIG:
        il__error_set(reterr, IL_INVAL, "%s: %s", g->path,
                      g->refused != NULL ? g->refused : sqlite3_errmsg(g->db));
        if (reterr != NULL)
            (void)snprintf(reterr->native, sizeof reterr->native, "%d", rc);
        return IL_INVAL;
    default:
        break;
    }
    return il__sq_error(rc, g->db != NULL ? sqlite3_system_errno(g->db) : 0, g->path, reterr);
}

/* ---- callbacks of SQLite --------------------------------------------------------------------- */

/* What a statement is about to do; called while it is prepared. */
static int
authorize(void *cookie, int action, const char *a, const char *b, const char *c UNUSED,
          const char *d UNUSED)
{
    struct sqlite_guard *g   = cookie;
    const char          *why = NULL;

    if (!g->is_theirs)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        why = GUARD_REFUSE_TEXT;
        break;
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        why = "ATTACH and DETACH: a transaction is on one file";
        break;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_DROP_TABLE:
    case SQLITE_ALTER_TABLE:
        if (sqlite3_stricmp(action == SQLITE_ALTER_TABLE ? b : a, FENCE_TABLE) == 0)
            why = "the table " FENCE_TABLE " is Interlock's";
        break;
    case SQLITE_PRAGMA:
        if (sqlite3_stricmp(a, "journal_mode") == 0 || sqlite3_stricmp(a, "locking_mode") == 0 ||
            sqlite3_stricmp(a, "wal_checkpoint") == 0 || sqlite3_stricmp(a, "query_only") == 0)
            why = "this PRAGMA is not allowed in a transaction";
        break;
    default:
        break;
    }
    if (why == NULL)
        return SQLITE_OK;
    g->refused = why;
    return SQLITE_DENY;
}

static int
refuse_commit(void *cookie)
{
    const struct sqlite_guard *g = cookie;

    return !g->commits;
}

static int
was_interrupted(void *cookie)
{
    struct sqlite_guard *g = cookie;

    return atomic_load(&g->base.interrupted) && !g->commits;
}

/* Another connection has the lock. Wait a little, and check for an interrupt. */
static int
wait_while_busy(void *cookie, int n_before)
{
    static const int     delays_ms[] = { 1, 2, 5, 10, 15, 20, 25, 50 };
    struct sqlite_guard *g           = cookie;
    struct pollfd        stop        = { .fd = g->base.stop_fd, .events = POLLIN };

    if (n_before == 0)
        g->busy_until =
            il__clock_boot_ns() +
            (g->commits ? MIN(g->base.timeout_ms, GUARD_ANSWER_MS_MAX) : g->base.timeout_ms) *
                IL__NS_PER_MS; /* a commit is not interruptible */
    if (il__clock_boot_ns() >= g->busy_until || was_interrupted(g))
        return 0;
    (void)poll(&stop, g->commits ? 0 : 1, delays_ms[MIN(n_before, (int)ARRAY_LEN(delays_ms) - 1)]);
    return !was_interrupted(g);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* The number of a parameter named $3 or ?3; 0 = none. A bare ? counts by its position. */
static size_t
value_of(sqlite3_stmt *stmt, int i)
{
    const char *name = sqlite3_bind_parameter_name(stmt, i);
    size_t      n    = 0;

    if (name == NULL)
        return (size_t)i;
    if ((name[0] != '$' && name[0] != '?') || name[1] == '\0')
        return 0;
    for (const char *at = name + 1; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || n > GUARD_VALUES_MAX)
            return 0;
        n = n * 10 + (size_t)(*at - '0');
    }
    return n;
}

static il_status
bind(struct sqlite_guard *g, sqlite3_stmt *stmt, const char *const *values, size_t n,
     il_error *reterr)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
        size_t at = value_of(stmt, i);
        if (at == 0 || at > n)
            return il__error_set(reterr, IL_INVAL, "%s: no value for parameter %s", g->path,
                                 sqlite3_bind_parameter_name(stmt, i) != NULL
                                     ? sqlite3_bind_parameter_name(stmt, i)
                                     : "?");
        const char *value = values[at - 1];
        int         rc    = SQLITE_OK;

        if (value == NULL)
            rc = sqlite3_bind_null(stmt, i);
        else
            rc = sqlite3_bind_text64(stmt, i, value, strlen(value), SQLITE_STATIC, SQLITE_UTF8);
        if (rc != SQLITE_OK)
            return fail(g, rc, reterr);
    }
    return IL_OK;
}

/* Pass one row to the caller. False: out of memory. */
static bool
give_row(sqlite3_stmt *stmt, guard_row_fn *each, void *cookie, bool *more)
{
    int n = sqlite3_column_count(stmt);

    AUTO_FREE const char **texts = il__calloc((size_t)MAX(n, 1) * 2, sizeof *texts);
    if (texts == NULL)
        return false;
    for (int i = 0; i < n; i++) {
        texts[i]     = sqlite3_column_name(stmt, i);
        texts[n + i] = (const char *)sqlite3_column_text(stmt, i);
        if (texts[i] == NULL ||
            (texts[n + i] == NULL && sqlite3_column_type(stmt, i) != SQLITE_NULL))
            return false;
    }
    *more = each(cookie, &(struct guard_row){ (size_t)n, texts, texts + n });
    return true;
}

static int
step_all(sqlite3_stmt *stmt, guard_row_fn *each, void *cookie)
{
    bool more = true;
    int  rc   = SQLITE_ROW;

    while (more && rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW && each != NULL && !give_row(stmt, each, cookie, &more))
            return SQLITE_NOMEM;
    }
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Run one statement, ours or the user's. */
static il_status
run(struct sqlite_guard *g, const char *sql, const char *const *values, size_t n,
    guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr)
{
    sqlite3_stmt *stmt     = NULL;
    const char   *tail     = NULL;
    int64_t       n_before = sqlite3_total_changes64(g->db);

    g->refused = NULL;
    int rc     = sqlite3_prepare_v2(g->db, sql, -1, &stmt, &tail);
    if (rc != SQLITE_OK)
        return fail(g, rc, reterr);
    il_status st = IL_OK;
    if (stmt == NULL)
        st = il__error_set(reterr, IL_INVAL, "%s", GUARD_EMPTY_TEXT);
    else if (*il__guard_skip(tail, false) != '\0')
        st = il__error_set(reterr, IL_INVAL, "%s", GUARD_SEVERAL_TEXT);
    else if (g->is_theirs && g->base.read_only && sqlite3_stmt_readonly(stmt) == 0)
        st = il__error_set(reterr, IL_INVAL, "%s: read-only transaction", g->path);
    if (st == IL_OK)
        st = bind(g, stmt, values, n, reterr);
    if (st == IL_OK) {
        rc = step_all(stmt, each, cookie);
        if (rc != SQLITE_OK)
            st = fail(g, rc, reterr);
        else if (ret_n_changed != NULL && sqlite3_total_changes64(g->db) != n_before)
            *ret_n_changed = sqlite3_changes64(g->db);
    }
    (void)sqlite3_finalize(stmt); /* repeats the error */
    return st;
}

static il_status
run_ours(struct sqlite_guard *g, const char *sql, il_error *reterr)
{
    return run(g, sql, NULL, 0, NULL, NULL, NULL, reterr);
}

static il_status
sqlite_exec(struct guard_conn *c, const char *sql, const char *const *values, size_t n,
            guard_row_fn *each, void *cookie, int64_t *ret_n_changed, il_error *reterr)
{
    struct sqlite_guard *g = from(c);

    g->is_theirs = true;
    il_status st = run(g, sql, values, n, each, cookie, ret_n_changed, reterr);
    g->is_theirs = false;
    /* Some failures roll everything back; later statements would run in their own transactions. */
    if (st == IL_OK && sqlite3_get_autocommit(g->db) != 0)
        st = il__error_set(reterr, IL_INVAL, "%s: the statement ended the transaction", g->path);
    return st;
}

static il_status
sqlite_ask(struct guard_conn *c, enum guard_question what, const char *const *values, size_t n,
           guard_row_fn *each, void *cookie, il_error *reterr)
{
    static const char *const texts[] = {
        [GUARD_TABLE] = sql_sqlite_table, [GUARD_COLUMN] = sql_sqlite_column
    };

    return run(from(c), texts[what], values, n, each, cookie, NULL, reterr);
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void
sqlite_rollback(struct guard_conn *c)
{
    struct sqlite_guard *g = from(c);

    if (g->db == NULL || sqlite3_get_autocommit(g->db) != 0)
        return;
    g->commits = true; /* a rollback is not interruptible either */
    IGNORE(run_ours(g, sql_sqlite_rollback, NULL) !=
           IL_OK); /* can only run out of memory; the close undoes it then */
    g->commits = false;
}

/* A yes/no query of our own. */
static il_status
ask_number(struct sqlite_guard *g, const char *sql, const char *const *values, size_t n,
           struct guard_number *ret, il_error *reterr)
{
    return run(g, sql, values, n, il__guard_take_number, ret, NULL, reterr);
}

static il_status
refuse_store(struct sqlite_guard *g, il_error *reterr)
{
    struct guard_number is_store = { 0 };

    il_status st = ask_number(g, sql_sqlite_is_store, NULL, 0, &is_store, reterr);
    if (st == IL_OK && is_store.number != 0)
        return il__error_set(
            reterr, IL_INVAL,
            "%s: this file is an Interlock store; keep your tables in another file", g->path);
    return st;
}

static il_status
sqlite_begin(struct guard_conn *c, bool read_only, il_error *reterr)
{
    struct sqlite_guard *g = from(c);

    il_status st = run_ours(g, read_only ? sql_sqlite_begin_read : sql_sqlite_begin, reterr);
    if (st != IL_OK)
        return st;
    c->read_only = read_only;
    st           = refuse_store(g, reterr); /* it may have become one since */
    if (st != IL_OK)
        sqlite_rollback(c);
    return st;
}

static il_status
sqlite_show(struct guard_conn *c, const struct guard_shown *f, il_error *reterr)
{
    struct sqlite_guard *g     = from(c);
    struct guard_number  there = { 0 }, taken = { 0 }, seen = { 0 };
    char                 now[24];
    const char          *values[] = { f->tenant, f->key, f->text, now };

    (void)snprintf(now, sizeof now, "%lld", (long long)il__clock_wall_ms());
    il_status st = ask_number(g, sql_sqlite_fence_there, NULL, 0, &there, reterr);
    if (st == IL_OK && there.number == 0)
        st = run_ours(g, sql_sqlite_fence_make, reterr);
    if (st == IL_OK)
        st = ask_number(g, sql_sqlite_fence_show, values, 4, &taken, reterr);
    if (st != IL_OK || taken.there)
        return st;
    st = ask_number(g, sql_sqlite_fence_seen, values, 2, &seen, reterr);
    return st == IL_OK ? il__guard_stale(f, seen.number, reterr) : st;
}

static il_status
sqlite_commit(struct guard_conn *c, il_error *reterr)
{
    struct sqlite_guard *g = from(c);

    if (sqlite3_get_autocommit(g->db) != 0)
        return il__error_set(reterr, IL_STATE,
                             "%s: the transaction was rolled back by a statement in it", g->path);
    g->commits   = true;
    il_status st = run_ours(g, sql_sqlite_commit, reterr);
    g->commits   = false;
    if (st != IL_OK) /* busy, or the disk is full: nothing is committed */
        sqlite_rollback(c);
    return st;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
sqlite_free(struct guard_conn *c)
{
    struct sqlite_guard *g = from(c);

    CHECK(sqlite3_close(g->db) == SQLITE_OK);
    il__guard_release(c);
    il__free(g->path);
    il__free(g);
}

static int
set_up(struct sqlite_guard *g)
{
    int rc = sqlite3_busy_handler(g->db, wait_while_busy, g);

    if (rc == SQLITE_OK)
        rc = sqlite3_set_authorizer(g->db, authorize, g);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(g->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(g->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_commit_hook(g->db, refuse_commit, g); /* returns the previous hook: none */
    sqlite3_progress_handler(g->db, LOOK_OPS, was_interrupted, g);
    return rc;
}

static il_status
sqlite_connect(struct guard_conn *c, il_error *reterr)
{
    struct sqlite_guard *g = from(c);
    int                  flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

    if (g->db != NULL)
        return IL_OK;
    int rc = sqlite3_open_v2(g->path, &g->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = set_up(g);
    il_status st = rc == SQLITE_OK ? refuse_store(g, reterr) : fail(g, rc, reterr);
    if (st != IL_OK) {
        CHECK(sqlite3_close(g->db) == SQLITE_OK);
        g->db = NULL;
    }
    return st;
}

static const struct guard_ops sqlite_ops = {
    .free     = sqlite_free,
    .connect  = sqlite_connect,
    .begin    = sqlite_begin,
    .show     = sqlite_show,
    .commit   = sqlite_commit,
    .rollback = sqlite_rollback,
    .exec     = sqlite_exec,
    .ask      = sqlite_ask,
};

il_status
il__guard_sqlite_new(const char *path, int64_t timeout_ms, struct guard_conn **ret,
                     il_error *reterr)
{
    if (path[0] == '\0' || path[0] == ':')
        return il__error_set(reterr, IL_INVAL, "a SQLite connection needs a file: sqlite:PATH");
    if (strchr(path, '?') != NULL)
        return il__error_set(reterr, IL_INVAL, "a SQLite connection takes no options after '?'");
    struct sqlite_guard    *g    = il__calloc(1, sizeof *g);
    struct il__buf AUTO_BUF name = { 0 };
    il__buf_init(&name, PATH_MAX);
    /* Make sure that SQLite, however built, treats the path neither as a URI nor as a special
     * name. */
    il__buf_adds(&name, path[0] == '/' ? "" : "./");
    il__buf_adds(&name, path);
    if (g == NULL || (g->path = il__buf_take(&name)) == NULL ||
        !il__guard_init(&g->base, &sqlite_ops, timeout_ms)) {
        if (g != NULL)
            il__free(g->path);
        il__free(g);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    *ret = &g->base;
    return IL_OK;
}

bool
il__guard_is_postgres(const struct guard_conn *c)
{
    return c->ops != &sqlite_ops;
}
