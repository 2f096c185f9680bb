/*
 * guard_sqlite.c: the statements of a guarded transaction by hand on SQLite, prepared once.
 */
#include <sqlite3.h>

#include "bench.h"
#include "guard.h"

#include "bench_sql.inc"

enum stmt {
    STMT_BEGIN,
    STMT_LOCK,
    STMT_ADD,
    STMT_SAVEPOINT,
    STMT_INSERT,
    STMT_RELEASE,
    STMT_COMMIT,
    STMT_COUNT
};

static const char *const sql[] = { sql_raw_begin,       sql_guard_lock_sqlite, sql_guard_add,
                                   sql_guard_savepoint, sql_guard_insert,      sql_guard_release,
                                   sql_raw_commit };
_Static_assert(ARRAY_LEN(sql) == STMT_COUNT, "a text for each statement");

struct guard_sqlite {
    sqlite3      *db;
    sqlite3_stmt *stmts[STMT_COUNT];
};

static void
check(struct guard_sqlite *g, bool ok, const char *what)
{
    if (!ok)
        die("guard by hand on SQLite: %s: %s", what, sqlite3_errmsg(g->db));
}

static void
make(struct guard_sqlite *g, const char *path)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

    check(g, sqlite3_open_v2(path, &g->db, flags, NULL) == SQLITE_OK, "open");
    check(g, sqlite3_exec(g->db, sql_raw_connect, NULL, NULL, NULL) == SQLITE_OK, "connect");
    check(g, sqlite3_exec(g->db, sql_guard_make_sqlite, NULL, NULL, NULL) == SQLITE_OK, "create");
}

void
guard_sqlite_make(const char *path)
{
    struct guard_sqlite g = { 0 };

    make(&g, path);
    check(&g, sqlite3_close(g.db) == SQLITE_OK, "close");
}

struct guard_sqlite *
guard_sqlite_open(const char *path)
{
    struct guard_sqlite *g = must_calloc(1, sizeof *g);

    make(g, path);
    for (size_t i = 0; i < STMT_COUNT; i++) {
        int rc =
            sqlite3_prepare_v3(g->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &g->stmts[i], NULL);
        check(g, rc == SQLITE_OK, sql[i]);
    }
    return g;
}

void
guard_sqlite_close(struct guard_sqlite *g)
{
    for (size_t i = 0; i < STMT_COUNT; i++)
        (void)sqlite3_finalize(g->stmts[i]); /* repeats an error that was already fatal */
    check(g, sqlite3_close(g->db) == SQLITE_OK, "close");
    free(g);
}

/* Execute a statement with bound values; returns the number of rows. */
static unsigned
run(struct guard_sqlite *g, enum stmt i)
{
    unsigned n = 0;
    int      rc;

    while ((rc = sqlite3_step(g->stmts[i])) == SQLITE_ROW) {
        (void)sqlite3_column_int64(g->stmts[i], 0);
        n++;
    }
    check(g, rc == SQLITE_DONE && sqlite3_reset(g->stmts[i]) == SQLITE_OK, sql[i]);
    return n;
}

static void
bind_int(struct guard_sqlite *g, enum stmt stmt, int i, int64_t value)
{
    check(g, sqlite3_bind_int64(g->stmts[stmt], i, value) == SQLITE_OK, "bind");
}

unsigned
guard_sqlite_step(void *cookie, struct caller *c)
{
    struct guard_sqlite *g = cookie;

    CHECK(run(g, STMT_BEGIN) == 0);
    bind_int(g, STMT_LOCK, 1, c->names.i_key);
    check(g, run(g, STMT_LOCK) == 1, "no such user");
    bind_int(g, STMT_ADD, 1, 1); /* $2 comes first in its text */
    bind_int(g, STMT_ADD, 2, c->names.i_key);
    check(g, run(g, STMT_ADD) == 1, "the balance is too small");
    CHECK(run(g, STMT_SAVEPOINT) == 0);
    bind_int(g, STMT_INSERT, 1, c->names.i_key);
    bind_int(g, STMT_INSERT, 2, 1);
    check(g,
          sqlite3_bind_text(g->stmts[STMT_INSERT], 3, c->names.holder, -1, SQLITE_STATIC) ==
              SQLITE_OK,
          "bind");
    check(g, run(g, STMT_INSERT) == 1, "insert");
    CHECK(run(g, STMT_RELEASE) == 0);
    CHECK(run(g, STMT_COMMIT) == 0);
    names_next(&c->names);
    return 1;
}
