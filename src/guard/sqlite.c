/*
 * sqlite.c: guarded transactions on a SQLite file.
 *
 * The file belongs to the user: its journal mode and settings stay unchanged, unless it was opened
 * with IL_GUARD_OWN_FILE (sqlite_file.c). Three mechanisms prevent unauthorised commits: an
 * authorizer refuses to prepare statements that begin or end transactions, a commit hook refuses
 * every commit but ours (including the automatic one of a write after a failure that has rolled
 * everything back), and after each statement we check that the transaction is still open. A
 * connection of the caller's own keeps its hooks: there, the first words of a statement are looked
 * at instead, and the third mechanism remains.
 */
#include "guard/sqlite_internal.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"

#include "guard_sqlite_sql.inc"

#define LOOK_OPS 1000 /* SQLite VM steps between two checks whether to stop */
#define FENCE_TABLE "interlock_fence"
#define DONE_TABLE "interlock_done"

static struct sqlite_guard *
from(struct guard_conn *c)
{
    return container_of(c, struct sqlite_guard, base);
}

/* ---- callbacks of SQLite --------------------------------------------------------------------- */

/* Those that would change the connection for the transactions after this one; reading is fine. */
static bool
is_refused_pragma(const char *name, const char *value)
{
    static const char *const names[] = {
        "busy_timeout", "ignore_check_constraints", "journal_mode",    "locking_mode", "query_only",
        "synchronous",  "wal_autocheckpoint",       "writable_schema",
    };

    for (size_t i = 0; value != NULL && i < ARRAY_LEN(names); i++) {
        if (sqlite3_stricmp(name, names[i]) == 0)
            return true;
    }
    return sqlite3_stricmp(name, "wal_checkpoint") == 0;
}

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
        why = "ATTACH and DETACH are not allowed in a transaction";
        break;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_DROP_TABLE:
    case SQLITE_ALTER_TABLE:
        if (sqlite3_stricmp(action == SQLITE_ALTER_TABLE ? b : a, FENCE_TABLE) == 0)
            why = "the table " FENCE_TABLE " is reserved for Interlock";
        else if (action != SQLITE_DELETE && /* old rows may be purged */
                 sqlite3_stricmp(action == SQLITE_ALTER_TABLE ? b : a, DONE_TABLE) == 0)
            why = "the table " DONE_TABLE " is reserved for Interlock";
        break;
    case SQLITE_PRAGMA:
        if (is_refused_pragma(a, b))
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
should_stop(void *cookie)
{
    struct sqlite_guard *g = cookie;

    return !g->commits &&
           (il__guard_is_stopped(g->base.g, g->base.limit) || il__guard_is_late(&g->base));
}

/* Another connection has the lock. Wait a little, and check whether to stop. */
static int
wait_while_busy(void *cookie, int n_before)
{
    static const int     delays_ms[] = { 1, 2, 5, 10, 15, 20, 25, 50 };
    struct sqlite_guard *g           = cookie;
    struct pollfd stop = { .fd = il__guard_stop_fd(g->base.g, g->base.limit), .events = POLLIN };
    int64_t       timeout_ms = g->base.g->lock_timeout_ms;

    if (g->locked && g->commits) /* a checkpoint, or a commit that nobody but readers can hold up */
        timeout_ms = 0;
    if (n_before == 0)
        g->busy_until =
            il__clock_boot_ns() +
            (g->commits ? MIN(timeout_ms, GUARD_ANSWER_MS_MAX) : timeout_ms) * IL__NS_PER_MS;
    if (il__clock_boot_ns() >= g->busy_until || should_stop(g))
        return 0;
    (void)poll(&stop, g->commits ? 0 : 1, delays_ms[MIN(n_before, (int)ARRAY_LEN(delays_ms) - 1)]);
    return !should_stop(g);
}

/* ---- prepared statements --------------------------------------------------------------------- */

/* The kept statement of this text that nobody uses, or NULL. */
static struct guard_prepared *
find_prepared(struct sqlite_guard *g, const char *sql, uint64_t hash)
{
    for (size_t i = 0; i < GUARD_STATEMENTS_MAX; i++) {
        struct guard_prepared *p = &g->prepared[i];
        if (p->stmt != NULL && p->hash == hash && p->is_theirs == g->is_theirs &&
            strcmp(p->sql, sql) == 0 && sqlite3_stmt_busy(p->stmt) == 0)
            return p;
    }
    return NULL;
}

static void
drop_prepared(struct guard_prepared *p)
{
    (void)sqlite3_finalize(p->stmt); /* repeats its last error */
    il__free(p->sql);
    *p = (struct guard_prepared){ .stmt = NULL };
}

/* Keep a statement in place of the one that was not used for the longest time. */
static struct guard_prepared *
keep(struct sqlite_guard *g, const char *sql, uint64_t hash, sqlite3_stmt *stmt)
{
    struct guard_prepared *oldest = NULL;
    char                  *copy   = il__strdup(sql);

    for (size_t i = 0; copy != NULL && i < GUARD_STATEMENTS_MAX; i++) {
        struct guard_prepared *p = &g->prepared[i];
        if (p->stmt != NULL && sqlite3_stmt_busy(p->stmt) != 0)
            continue;
        if (oldest == NULL || p->used < oldest->used)
            oldest = p;
    }
    if (oldest == NULL) {
        il__free(copy);
        return NULL;
    }
    drop_prepared(oldest);
    *oldest = (struct guard_prepared){
        .stmt = stmt, .sql = copy, .hash = hash, .is_theirs = g->is_theirs
    };
    return oldest;
}

/* *ret_kept NULL: to be finalized after use. */
static il_status
prepare(struct sqlite_guard *g, const char *sql, sqlite3_stmt **ret,
        struct guard_prepared **ret_kept, il_error *reterr)
{
    uint64_t    hash = il__hash_stable(sql, strlen(sql), 0);
    const char *tail = NULL;

    g->refused = NULL;
    *ret_kept  = find_prepared(g, sql, hash);
    if (*ret_kept != NULL) {
        (*ret_kept)->used = ++g->n_used;
        *ret              = (*ret_kept)->stmt;
        return IL_OK;
    }
    int rc = sqlite3_prepare_v2(g->db, sql, -1, ret, &tail);
    if (rc != SQLITE_OK)
        return il__guard_sqlite_fail(g, rc, reterr);
    if (*ret == NULL)
        return il__error_set(reterr, IL_INVAL, "%s", GUARD_EMPTY_TEXT);
    if (*il__guard_skip(tail, false) != '\0') {
        (void)sqlite3_finalize(*ret);
        return il__error_set(reterr, IL_INVAL, "%s", GUARD_SEVERAL_TEXT);
    }
    *ret_kept = keep(g, sql, hash, *ret);
    if (*ret_kept != NULL)
        (*ret_kept)->used = ++g->n_used;
    return IL_OK;
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
        if (*at < '0' || *at > '9' || n > IL_GUARD_VALUES_MAX)
            return 0;
        n = n * 10 + (size_t)(*at - '0');
    }
    return n;
}

static int
bind_value(sqlite3_stmt *stmt, int i, const il_guard_value *v)
{
    switch (v->type) {
    case IL_GUARD_INT:
        return sqlite3_bind_int64(stmt, i, v->integer);
    case IL_GUARD_DOUBLE:
        return sqlite3_bind_double(stmt, i, v->number);
    case IL_GUARD_TEXT:
    case IL_GUARD_JSON:
        return sqlite3_bind_text64(stmt, i, v->data, v->n_bytes, SQLITE_STATIC, SQLITE_UTF8);
    case IL_GUARD_BLOB:
        return v->n_bytes > 0 ? sqlite3_bind_blob64(stmt, i, v->data, v->n_bytes, SQLITE_STATIC)
                              : sqlite3_bind_zeroblob(stmt, i, 0);
    case IL_GUARD_NULL:
    case IL_GUARD_TYPE_COUNT:
        break;
    }
    return sqlite3_bind_null(stmt, i);
}

static il_status
bind(struct sqlite_guard *g, sqlite3_stmt *stmt, const struct guard_statement *s, il_error *reterr)
{
    for (int i = 1; i <= sqlite3_bind_parameter_count(stmt); i++) {
        size_t at = value_of(stmt, i);
        if (at == 0 || at > s->n_values)
            return il__error_set(reterr, IL_INVAL, "%s: no value for parameter %s", g->path,
                                 sqlite3_bind_parameter_name(stmt, i) != NULL
                                     ? sqlite3_bind_parameter_name(stmt, i)
                                     : "?");
        int rc = bind_value(stmt, i, &s->values[at - 1]);
        if (rc != SQLITE_OK)
            return il__guard_sqlite_fail(g, rc, reterr);
    }
    return IL_OK;
}

/* False: out of memory. */
static bool
take_value(sqlite3_stmt *stmt, int i, bool as_text, il_guard_value *ret)
{
    int type = sqlite3_column_type(stmt, i);

    *ret = il_guard_null();
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER && !as_text) {
        *ret = il_guard_int(sqlite3_column_int64(stmt, i));
    } else if (type == SQLITE_FLOAT && !as_text) {
        *ret = il_guard_double(sqlite3_column_double(stmt, i));
    } else if (type == SQLITE_BLOB && !as_text) {
        const void *data = sqlite3_column_blob(stmt, i);
        *ret = il_guard_blob(data != NULL ? data : "", (size_t)sqlite3_column_bytes(stmt, i));
    } else {
        const void *text = sqlite3_column_text(stmt, i);
        if (text == NULL)
            return false;
        *ret = (il_guard_value){ .type    = IL_GUARD_TEXT,
                                 .data    = text,
                                 .n_bytes = (size_t)sqlite3_column_bytes(stmt, i) };
    }
    return true;
}

/* Pass one row to the caller. False: out of memory. */
static bool
give_row(struct sqlite_guard *g, sqlite3_stmt *stmt, const struct guard_statement *s, bool *more)
{
    int n = sqlite3_column_count(stmt);

    if (!il__guard_make_room(&g->base, (size_t)n))
        return false;
    for (int i = 0; i < n; i++) {
        g->base.names[i] = sqlite3_column_name(stmt, i);
        if (g->base.names[i] == NULL || !take_value(stmt, i, s->as_text, &g->base.values[i]))
            return false;
    }
    *more = s->each(s->cookie, &(il_guard_row){ (size_t)n, g->base.names, g->base.values }) != 0;
    return true;
}

static int
step_all(struct sqlite_guard *g, sqlite3_stmt *stmt, const struct guard_statement *s)
{
    bool reads = sqlite3_stmt_readonly(stmt) != 0; /* another one has to run to its end */
    bool more  = true;
    int  rc    = SQLITE_ROW;

    while ((more || !reads) && rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW && more && s->each != NULL && !give_row(g, stmt, s, &more))
            return SQLITE_NOMEM;
    }
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static il_status
execute(struct sqlite_guard *g, sqlite3_stmt *stmt, struct guard_statement *s, il_error *reterr)
{
    int64_t n_before = sqlite3_total_changes64(g->db);

    if (g->is_theirs && g->base.read_only && sqlite3_stmt_readonly(stmt) == 0)
        return il__error_set(reterr, IL_INVAL, "%s: write in a read-only transaction", g->path);
    il_status st = bind(g, stmt, s, reterr);
    if (st != IL_OK)
        return st;
    int rc = step_all(g, stmt, s);
    if (rc != SQLITE_OK)
        return il__guard_sqlite_fail(g, rc, reterr);
    if (sqlite3_total_changes64(g->db) != n_before)
        s->n_changed = sqlite3_changes64(g->db);
    return IL_OK;
}

il_status
il__guard_sqlite_run(struct sqlite_guard *g, struct guard_statement *s, il_error *reterr)
{
    sqlite3_stmt          *stmt = NULL;
    struct guard_prepared *kept = NULL;

    s->n_changed = 0;
    il_status st = prepare(g, s->sql, &stmt, &kept, reterr);
    if (st != IL_OK)
        return st;
    st = execute(g, stmt, s, reterr);
    if (kept == NULL) {
        (void)sqlite3_finalize(stmt); /* repeats the error */
    } else {
        (void)sqlite3_reset(stmt); /* the same */
        (void)sqlite3_clear_bindings(stmt);
    }
    return st;
}

il_status
il__guard_sqlite_exec(struct sqlite_guard *g, const char *sql, il_error *reterr)
{
    struct guard_statement s = { .sql = sql };

    return il__guard_sqlite_run(g, &s, reterr);
}

static il_status
run_script(struct sqlite_guard *g, const char *sql, il_error *reterr)
{
    int rc = sqlite3_exec(g->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? IL_OK : il__guard_sqlite_fail(g, rc, reterr);
}

static il_status
sqlite_run(struct guard_conn *c, struct guard_statement *s, il_error *reterr)
{
    struct sqlite_guard *g = from(c);

    if (s->is_theirs && g->is_borrowed && il__guard_ends_transaction(s->sql, false))
        return il__error_set(reterr, IL_INVAL, "%s: %s", g->path, GUARD_REFUSE_TEXT);
    g->is_theirs = s->is_theirs;
    il_status st =
        s->is_script ? run_script(g, s->sql, reterr) : il__guard_sqlite_run(g, s, reterr);
    g->is_theirs = false;
    /* Some failures roll everything back; later statements would run in their own transactions. */
    if (st == IL_OK && sqlite3_get_autocommit(g->db) != 0)
        st = il__error_set(reterr, IL_INVAL, "%s: the statement ended the transaction", g->path);
    return st;
}

/* ---- transactions ---------------------------------------------------------------------------- */

static void
sqlite_rollback(struct guard_conn *c)
{
    struct sqlite_guard *g = from(c);

    if (g->db != NULL && sqlite3_get_autocommit(g->db) == 0) {
        g->commits = true; /* a rollback is not interruptible either */
        IGNORE(il__guard_sqlite_exec(g, sql_sqlite_rollback, NULL) !=
               IL_OK); /* can only run out of memory; the close undoes it then */
        g->commits = false;
    }
    il__guard_file_unlock(g);
}

/* A query of our own that returns a number. */
static il_status
ask_number(struct sqlite_guard *g, const char *sql, const il_guard_value *values, size_t n,
           struct guard_number *ret, il_error *reterr)
{
    struct guard_statement s = {
        .sql = sql, .values = values, .n_values = n, .each = il__guard_take_number, .cookie = ret
    };

    return il__guard_sqlite_run(g, &s, reterr);
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

    if (!g->is_borrowed)
        sqlite_rollback(c); /* if one that had no memory for it left a transaction */
    if (sqlite3_get_autocommit(g->db) == 0)
        return il__error_set(reterr, IL_STATE, "%s: a transaction is open on this connection",
                             g->path);
    il_status st = g->lock_fd >= 0 && !read_only ? il__guard_file_lock(g, reterr) : IL_OK;
    if (st == IL_OK)
        st = il__guard_sqlite_exec(g, read_only ? sql_sqlite_begin_read : sql_sqlite_begin, reterr);
    c->read_only = read_only;
    if (st == IL_OK)
        st = refuse_store(g, reterr); /* it may have become one since */
    if (st != IL_OK)
        sqlite_rollback(c);
    return st;
}

static il_status
show_one(struct sqlite_guard *g, const struct guard_shown *f, il_error *reterr)
{
    struct guard_number taken = { 0 }, seen = { 0 };
    il_guard_value      values[] = { il_guard_text(f->tenant), il_guard_text(f->key),
                                     il_guard_int((int64_t)f->number),
                                     il_guard_int(il__clock_wall_ms()) };

    il_status st = ask_number(g, sql_sqlite_fence_show, values, 4, &taken, reterr);
    if (st != IL_OK || taken.there)
        return st;
    st = ask_number(g, sql_sqlite_fence_seen, values, 2, &seen, reterr);
    return st == IL_OK ? il__guard_stale(f, (uint64_t)seen.number, reterr) : st;
}

static il_status
sqlite_show(struct guard_conn *c, const struct guard_shown *const *fences, size_t n,
            bool first UNUSED, il_error *reterr)
{
    struct sqlite_guard *g     = from(c);
    struct guard_number  there = { 0 };

    il_status st = ask_number(g, sql_sqlite_fence_there, NULL, 0, &there, reterr);
    if (st == IL_OK && there.number == 0)
        st = il__guard_sqlite_exec(g, sql_sqlite_fence_make, reterr);
    for (size_t i = 0; st == IL_OK && i < n; i++)
        st = show_one(g, fences[i], reterr);
    return st;
}

static il_status
sqlite_commit(struct guard_conn *c, il_error *reterr)
{
    struct sqlite_guard *g = from(c);

    if (sqlite3_get_autocommit(g->db) != 0) {
        il__guard_file_unlock(g);
        return il__error_set(reterr, IL_STATE, "%s: a statement rolled the transaction back",
                             g->path);
    }
    g->commits   = true;
    il_status st = il__guard_sqlite_exec(g, sql_sqlite_commit, reterr);
    g->commits   = false;
    if (st != IL_OK) /* busy, or the disk is full: nothing is committed */
        sqlite_rollback(c);
    else
        il__guard_file_unlock(g);
    return st;
}

/* ---- savepoints ------------------------------------------------------------------------------ */

static il_status
savepoint(struct sqlite_guard *g, const char *text, unsigned depth, il_error *reterr)
{
    AUTO_BUF struct il__buf sql = { 0 };
    char                    name[32];

    (void)snprintf(name, sizeof name, "il_%u", depth);
    il__buf_init(&sql, 128);
    il__guard_sql_fill(text, &(struct guard_fill){ "name", name }, 1, &sql);
    return il__guard_sqlite_exec(g, il__buf_str(&sql), reterr);
}

static il_status
sqlite_savepoint(struct guard_conn *c, enum guard_savepoint what, unsigned depth, il_error *reterr)
{
    struct sqlite_guard *g = from(c);

    if (what == GUARD_SAVEPOINT_SET)
        return savepoint(g, sql_sqlite_savepoint, depth, reterr);
    if (sqlite3_get_autocommit(g->db) != 0)
        return il__error_set(reterr, IL_INVAL, "%s: the statement ended the transaction", g->path);
    il_status st = what == GUARD_SAVEPOINT_UNDO
                       ? savepoint(g, sql_sqlite_savepoint_undo, depth, reterr)
                       : IL_OK;
    return st == IL_OK ? savepoint(g, sql_sqlite_savepoint_release, depth, reterr) : st;
}

static il_status
sqlite_run_in_savepoint(struct guard_conn *c, struct guard_statement *s, unsigned depth,
                        il_error *reterr)
{
    il_status st = sqlite_savepoint(c, GUARD_SAVEPOINT_SET, depth, reterr);

    if (st != IL_OK)
        return st;
    st = sqlite_run(c, s, reterr);
    il_status after =
        sqlite_savepoint(c, st == IL_OK ? GUARD_SAVEPOINT_RELEASE : GUARD_SAVEPOINT_UNDO, depth,
                         st == IL_OK ? reterr : NULL);
    /* a failure that could not be undone is no answer */
    return after == IL_OK || (st != IL_OK && st != IL_UNIQUE) ? st : after;
}

static bool
sqlite_is_lost(const struct guard_conn *c)
{
    return sqlite3_get_autocommit(const_container_of(c, struct sqlite_guard, base)->db) != 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
sqlite_free(struct guard_conn *c)
{
    struct sqlite_guard *g = from(c);

    for (size_t i = 0; i < GUARD_STATEMENTS_MAX; i++)
        drop_prepared(&g->prepared[i]);
    if (!g->is_borrowed)
        CHECK(sqlite3_close(g->db) == SQLITE_OK);
    il__guard_file_close(g);
    il__guard_release_room(&g->base);
    il__free(g->path);
    il__free(g);
}

static int
set_up(struct sqlite_guard *g)
{
    int rc = sqlite3_busy_handler(g->db, wait_while_busy, g);

    if (rc == SQLITE_OK)
        rc = sqlite3_set_authorizer(g->db, authorize, g);
    if (rc == SQLITE_OK) /* the schema stays trusted: else 3.40 refuses CHECK (json_valid(a)) */
        rc = sqlite3_db_config(g->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return rc;
}

static void
set_hooks(struct sqlite_guard *g)
{
    (void)sqlite3_commit_hook(g->db, refuse_commit, g); /* returns the previous hook: none */
    sqlite3_progress_handler(g->db, LOOK_OPS, should_stop, g);
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
    il_status st = rc == SQLITE_OK ? refuse_store(g, reterr) : il__guard_sqlite_fail(g, rc, reterr);
    if (st == IL_OK && (c->g->flags & IL_GUARD_OWN_FILE) != 0)
        st = il__guard_file_set_up(g, reterr);
    if (st == IL_OK) {
        set_hooks(g);
        return IL_OK;
    }
    for (size_t i = 0; i < GUARD_STATEMENTS_MAX; i++)
        drop_prepared(&g->prepared[i]);
    CHECK(sqlite3_close(g->db) == SQLITE_OK);
    g->db = NULL;
    il__guard_file_close(g);
    return st;
}

static const char *const sqlite_texts[GUARD_TEXT_COUNT] = {
    [GUARD_TEXT_TABLE]       = sql_sqlite_table,
    [GUARD_TEXT_COLUMN]      = sql_sqlite_column,
    [GUARD_TEXT_PRIMARY_KEY] = sql_sqlite_primary_key,
    [GUARD_TEXT_CONSTRAINT]  = sql_sqlite_constraint,
    [GUARD_TEXT_LOCK]        = sql_sqlite_lock,
    [GUARD_TEXT_LOCK_MANY]   = sql_sqlite_lock_many,
    [GUARD_TEXT_DONE_MAKE]   = sql_sqlite_done_make,
    [GUARD_TEXT_DONE_ADD]    = sql_sqlite_done_add,
};

static const struct guard_ops sqlite_ops = {
    .texts            = sqlite_texts,
    .free             = sqlite_free,
    .connect          = sqlite_connect,
    .begin            = sqlite_begin,
    .show             = sqlite_show,
    .commit           = sqlite_commit,
    .rollback         = sqlite_rollback,
    .run              = sqlite_run,
    .savepoint        = sqlite_savepoint,
    .run_in_savepoint = sqlite_run_in_savepoint,
    .is_lost          = sqlite_is_lost,
};

static struct sqlite_guard *
sqlite_new(il_guard *db)
{
    struct sqlite_guard *g = il__calloc(1, sizeof *g);

    if (g != NULL) {
        g->base.ops = &sqlite_ops;
        g->base.g   = db;
        g->lock_fd  = -1;
    }
    return g;
}

il_status
il__guard_sqlite_new(il_guard *db, const char *path, struct guard_conn **ret, il_error *reterr)
{
    if (path[0] == '\0' || path[0] == ':')
        return il__error_set(reterr, IL_INVAL, "a sqlite: URL needs a file, sqlite:PATH");
    if (strchr(path, '?') != NULL)
        return il__error_set(reterr, IL_INVAL, "a sqlite: URL takes no options");
    struct sqlite_guard    *g    = sqlite_new(db);
    struct il__buf AUTO_BUF name = { 0 };
    il__buf_init(&name, PATH_MAX);
    /* Make sure that SQLite, however built, treats the path neither as a URI nor as a special
     * name. */
    il__buf_adds(&name, path[0] == '/' ? "" : "./");
    il__buf_adds(&name, path);
    if (g == NULL || (g->path = il__buf_take(&name)) == NULL) {
        il__free(g);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    *ret = &g->base;
    return IL_OK;
}

il_status
il__guard_sqlite_borrow(il_guard *db, sqlite3 *theirs, struct guard_conn **ret, il_error *reterr)
{
    struct sqlite_guard *g    = sqlite_new(db);
    const char          *path = sqlite3_db_filename(theirs, "main");

    if (g == NULL ||
        (g->path = il__strdup(path != NULL && path[0] != '\0' ? path : "(memory)")) == NULL) {
        il__free(g);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a connection");
    }
    g->db          = theirs;
    g->is_borrowed = true;
    il_status st   = refuse_store(g, reterr);
    if (st == IL_OK)
        *ret = &g->base;
    else
        sqlite_free(&g->base);
    return st;
}
