/*
 * guard_postgres.c: the statements of a guarded transaction by hand with libpq: five round trips,
 * as the guard kit needs; the savepoint, the insert and the release are one of them.
 */
#include <stdio.h>

#include "guard.h"

#include "bench_sql.inc"

struct guard_postgres {
    PGconn *c;
};

struct guard_postgres *
guard_postgres_open(struct bench *b, const char *database)
{
    struct guard_postgres *g = must_calloc(1, sizeof *g);

    g->c = postgres_connect(b, database);
    postgres_exec(g->c, sql_guard_make_postgres);
    return g;
}

void
guard_postgres_close(struct guard_postgres *g)
{
    PQfinish(g->c);
    free(g);
}

/* Takes a result, which must have n_rows. */
static void
take(struct guard_postgres *g, PGresult *r, ExecStatusType wanted, int n_rows, const char *what)
{
    if (PQresultStatus(r) != wanted || PQntuples(r) != n_rows)
        die("guard by hand on PostgreSQL: %s: %s", what, PQerrorMessage(g->c));
    PQclear(r);
}

static void
run(struct guard_postgres *g, const char *sql, const char *const *values, int n)
{
    take(g, PQexecParams(g->c, sql, n, NULL, values, NULL, NULL, 0), PGRES_TUPLES_OK, 1, sql);
}

/* One result of a pipeline, and the NULL after it. */
static void
take_next(struct guard_postgres *g, ExecStatusType wanted, int n_rows, const char *what)
{
    take(g, PQgetResult(g->c), wanted, n_rows, what);
    if (PQgetResult(g->c) != NULL)
        die("guard by hand on PostgreSQL: %s: one result too many", what);
}

static void
insert(struct guard_postgres *g, const char *const *values, int n)
{
    const char *before = sql_guard_savepoint, *after = sql_guard_release;

    if (PQenterPipelineMode(g->c) != 1 ||
        PQsendQueryParams(g->c, before, 0, NULL, NULL, NULL, NULL, 0) != 1 ||
        PQsendQueryParams(g->c, sql_guard_insert, n, NULL, values, NULL, NULL, 0) != 1 ||
        PQsendQueryParams(g->c, after, 0, NULL, NULL, NULL, NULL, 0) != 1 ||
        PQpipelineSync(g->c) != 1)
        die("guard by hand on PostgreSQL: %s", PQerrorMessage(g->c));
    take_next(g, PGRES_COMMAND_OK, 0, before);
    take_next(g, PGRES_TUPLES_OK, 1, sql_guard_insert);
    take_next(g, PGRES_COMMAND_OK, 0, after);
    take(g, PQgetResult(g->c), PGRES_PIPELINE_SYNC, 0, "sync");
    if (PQexitPipelineMode(g->c) != 1)
        die("guard by hand on PostgreSQL: %s", PQerrorMessage(g->c));
}

unsigned
guard_postgres_step(void *cookie, struct caller *c)
{
    struct guard_postgres *g = cookie;
    char                   id[16];

    (void)snprintf(id, sizeof id, "%u", c->names.i_key);
    const char *const values[] = { id, "1", c->names.holder };
    postgres_exec(g->c, sql_guard_begin_postgres);
    run(g, sql_guard_lock_postgres, values, 1);
    run(g, sql_guard_add, values, 2);
    insert(g, values, 3);
    postgres_exec(g->c, sql_raw_commit);
    names_next(&c->names);
    return 1;
}
