/*
 * sqlite.c: a data store in a SQLite file, which is also a store (even if it only contains data),
 * or in memory.
 *
 * The file is opened twice: as a store (il_open()), and by our own connection. All writes happen in
 * a transaction of il_tx_begin(), that is, under the store's lock file and by its rules: no writer
 * collides with a checkpoint, ours (we run none) or anyone else's. Reads need no lock: one
 * statement is one snapshot.
 */
#include <sqlite3.h>

#include "base/error.h"
#include "data/data_internal.h"
#include "store/sqlite/error.h"

#include "data_sqlite_sql.inc"

#define SQLITE "sqlite:"

enum stmt {
#define X(name) STMT_##name,
#include "data_statements.inc"
#include "data_sqlite_statements.inc"
#undef X
    STMT_COUNT
};
_Static_assert((int)STMT_audit_purge == (int)DATA_audit_purge, "the common statements come first");

static const char *const sql[] = {
#define X(name) [STMT_##name] = sql_##name,
#include "data_statements.inc"
#include "data_sqlite_statements.inc"
#undef X
};

struct sqlite_data {
    struct data_engine base;
    il                *store; /* NULL: in memory */
    il_tx             *tx;    /* of the store, while one is open */
    sqlite3           *db;
    sqlite3_stmt      *stmts[STMT_COUNT];
    char              *url; /* for display */
    const char        *path;
};

static struct sqlite_data *
from(struct data_engine *e)
{
    return container_of(e, struct sqlite_data, base);
}

static il_status
fail(const struct sqlite_data *s, int rc, il_error *reterr)
{
    return il__sq_error(rc, s->db != NULL ? sqlite3_system_errno(s->db) : 0, s->path, reterr);
}

/* ---- statements ------------------------------------------------------------------------------ */

static int
prepare(struct sqlite_data *s, enum stmt stmt)
{
    if (s->stmts[stmt] != NULL)
        return SQLITE_OK;
    return sqlite3_prepare_v3(s->db, sql[stmt], -1, SQLITE_PREPARE_PERSISTENT, &s->stmts[stmt],
                              NULL);
}

/* Texts are bound without a copy: they outlive the execution. */
static int
bind(sqlite3_stmt *stmt, int i, const struct data_param *p)
{
    if (p->text == NULL)
        return sqlite3_bind_int64(stmt, i, p->number);
    return sqlite3_bind_text64(stmt, i, p->text, strlen(p->text), SQLITE_STATIC, SQLITE_UTF8);
}

/* False: no memory. */
static bool
take_row(sqlite3_stmt *stmt, struct data_row *row)
{
    int n = sqlite3_column_count(stmt);

    CHECK(n <= DATA_COLUMNS_MAX);
    *row = (struct data_row){ 0 };
    for (int i = 0; i < n; i++) {
        row->columns[i].text = "";
        if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER)
            row->columns[i].number = sqlite3_column_int64(stmt, i);
        else
            row->columns[i].text = (const char *)sqlite3_column_text(stmt, i);
        if (row->columns[i].text == NULL)
            return false;
    }
    return true;
}

static int
step_all(sqlite3_stmt *stmt, data_row_fn *each, void *cookie)
{
    struct data_row row;
    int             rc;

    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (!take_row(stmt, &row))
            return SQLITE_NOMEM;
        if (each != NULL)
            each(cookie, &row);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int
run_stmt(struct sqlite_data *s, enum stmt stmt, const struct data_param *params, size_t n,
         data_row_fn *each, void *cookie)
{
    int rc = prepare(s, stmt);

    for (size_t i = 0; rc == SQLITE_OK && i < n; i++)
        rc = bind(s->stmts[stmt], (int)i + 1, &params[i]);
    if (rc == SQLITE_OK)
        rc = step_all(s->stmts[stmt], each, cookie);
    if (s->stmts[stmt] != NULL) {
        (void)sqlite3_reset(s->stmts[stmt]); /* repeats the error */
        (void)sqlite3_clear_bindings(s->stmts[stmt]);
    }
    return rc;
}

static il_status
sqlite_run(struct data_engine *e, enum data_stmt stmt, const struct data_param *params, size_t n,
           data_row_fn *each, void *cookie, il_error *reterr)
{
    struct sqlite_data *s  = from(e);
    int                 rc = prepare(s, (enum stmt)stmt);

    if (rc == SQLITE_OK) {
        CHECK(!sqlite3_get_autocommit(s->db) || sqlite3_stmt_readonly(s->stmts[stmt]) != 0);
        rc = run_stmt(s, (enum stmt)stmt, params, n, each, cookie);
    }
    return rc == SQLITE_OK ? IL_OK : fail(s, rc, reterr);
}

/* ---- transactions ---------------------------------------------------------------------------- */

static il_status
sqlite_begin(struct data_engine *e, il_error *reterr)
{
    struct sqlite_data *s = from(e);

    if (s->store != NULL)
        return il_tx_begin(s->store, s->db, &s->tx, reterr);
    int rc = run_stmt(s, STMT_begin, NULL, 0, NULL, NULL);
    return rc == SQLITE_OK ? IL_OK : fail(s, rc, reterr);
}

static il_status
sqlite_commit(struct data_engine *e, il_error *reterr)
{
    struct sqlite_data *s = from(e);

    if (s->store != NULL)
        return il_tx_commit(TAKE(s->tx), reterr);
    int rc = run_stmt(s, STMT_commit, NULL, 0, NULL, NULL);
    if (rc == SQLITE_OK)
        return IL_OK;
    il_status st = fail(s, rc, reterr);
    (void)run_stmt(s, STMT_rollback, NULL, 0, NULL, NULL);
    return st;
}

static void
sqlite_rollback(struct data_engine *e)
{
    struct sqlite_data *s = from(e);

    if (s->store != NULL)
        il_tx_rollback(TAKE(s->tx));
    else if (!sqlite3_get_autocommit(s->db)) /* some failures have rolled back already */
        (void)run_stmt(s, STMT_rollback, NULL, 0, NULL, NULL);
}

/* ---- versions -------------------------------------------------------------------------------- */

static void
take_number(void *cookie, const struct data_row *row)
{
    *(int64_t *)cookie = row->columns[0].number;
}

static void
take_version(void *cookie, const struct data_row *row)
{
    int64_t *versions = cookie;

    versions[0] = row->columns[0].number;
    versions[1] = row->columns[1].number;
}

static il_status
sqlite_look(struct data_engine *e, int64_t *ret_version, int64_t *ret_min_version, il_error *reterr)
{
    struct sqlite_data *s           = from(e);
    int64_t             there       = 0;
    int64_t             versions[2] = { 0 };

    int rc = run_stmt(s, STMT_there, NULL, 0, take_number, &there);
    if (rc == SQLITE_OK && there != 0)
        rc = run_stmt(s, STMT_meta, NULL, 0, take_version, versions);
    *ret_version     = versions[0];
    *ret_min_version = versions[1];
    return rc == SQLITE_OK ? IL_OK : fail(s, rc, reterr);
}

static il_status
sqlite_upgrade(struct data_engine *e, int64_t version, il_error *reterr)
{
    struct sqlite_data *s = from(e);
    int rc = sqlite3_exec(s->db, il__data_sqlite_schema.steps[version], NULL, NULL, NULL);

    return rc == SQLITE_OK ? IL_OK : fail(s, rc, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
sqlite_free(struct data_engine *e)
{
    struct sqlite_data *s = from(e);

    for (size_t i = 0; i < STMT_COUNT; i++)
        (void)sqlite3_finalize(s->stmts[i]); /* repeats the statement's last error */
    CHECK(sqlite3_close(s->db) == SQLITE_OK);
    il_close(s->store);
    il__free(s->url);
    il__free(s);
}

static const struct data_engine_ops sqlite_ops = {
    .schema        = &il__data_sqlite_schema,
    .free          = sqlite_free,
    .begin         = sqlite_begin,
    .commit        = sqlite_commit,
    .rollback      = sqlite_rollback,
    .run           = sqlite_run,
    .look          = sqlite_look,
    .begin_upgrade = sqlite_begin,
    .upgrade       = sqlite_upgrade,
};

/* FULLMUTEX: required by il_tx_begin(), whose guard may roll back a transaction that takes too
 * long. */
static il_status
connect_to(struct sqlite_data *s, const char *file, int64_t timeout_ms, il_error *reterr)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_EXRESCODE;
    int on    = 1;

    int rc = sqlite3_open_v2(file, &s->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(s->db, (int)MIN(timeout_ms, INT32_MAX));
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, sql_connect, NULL, NULL, NULL);
    if (rc == SQLITE_OK && s->store != NULL)
        rc = sqlite3_file_control(s->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    return rc == SQLITE_OK ? IL_OK : fail(s, rc, reterr);
}

/* First as a store, which creates the file, its lock and its settings. Without sweeps: we only keep
 * our tables there. */
static il_status
open_file(struct sqlite_data *s, const struct data_engine_open *o, il_error *reterr)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;

    opts.timeout_ms = o->timeout_ms;
    opts.flags      = IL_OPEN_NO_SWEEP | (o->existing ? (uint32_t)IL_OPEN_EXISTING : 0);
    if (strchr(s->path, '?') != NULL)
        return il__error_set(reterr, IL_INVAL, "a sqlite: data store URL takes no options");
    il_status st = il_open(o->url, &opts, &s->store, reterr);
    return st == IL_OK ? connect_to(s, s->path, o->timeout_ms, reterr) : st;
}

il_status
il__data_sqlite_open(const struct data_engine_open *o, struct data_engine **ret, il_error *reterr)
{
    bool                file = strncmp(o->url, SQLITE, strlen(SQLITE)) == 0;
    struct sqlite_data *s    = il__calloc(1, sizeof *s);
    char               *url  = il__strdup(file ? o->url : "memory:");

    if (s == NULL || url == NULL) {
        il__free(s);
        il__free(url);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a data store");
    }
    s->base = (struct data_engine){ .ops = &sqlite_ops, .where = url };
    s->url  = url;
    s->path = file ? url + strlen(SQLITE) : url;
    il_status st =
        file ? open_file(s, o, reterr) : connect_to(s, ":memory:", o->timeout_ms, reterr);
    if (st != IL_OK) {
        sqlite_free(&s->base);
        return st;
    }
    *ret = &s->base;
    return IL_OK;
}

const char *
il__data_sqlite_version(void)
{
    return sqlite3_libversion();
}
