/*
 * ingest_raw.c: see ingest_raw.h. On SQLite a prepared INSERT per row; on PostgreSQL one INSERT of
 * many rows per table and race.
 */
#include "ingest_raw.h"

#include <sqlite3.h>
#include <stdio.h>

#include "base/buf.h"
#include "bench.h"

#include "bench_sql.inc"

#define PARAMS_MAX 65535 /* of a statement of PostgreSQL */
#define STATEMENT_BYTES_MAX ((size_t)8 << 20)

static const struct {
    const char *read, *insert;
} tables[RAW_TABLE_COUNT] = {
    [RAW_TRACKS]       = { sql_ingest_read_tracks, sql_ingest_insert_tracks },
    [RAW_EVENTS]       = { sql_ingest_read_events, sql_ingest_insert_events },
    [RAW_RACES]        = { sql_ingest_read_races, sql_ingest_insert_races },
    [RAW_DRIVERS]      = { sql_ingest_read_drivers, sql_ingest_insert_drivers },
    [RAW_RACE_DRIVERS] = { sql_ingest_read_race_drivers, sql_ingest_insert_race_drivers },
    [RAW_RACE_RESULTS] = { sql_ingest_read_race_results, sql_ingest_insert_race_results },
    [RAW_LAPS]         = { sql_ingest_read_laps, sql_ingest_insert_laps },
};

static void
check(sqlite3 *db, bool ok, const char *what)
{
    if (!ok)
        die("ingestion by hand on SQLite: %s: %s", what, sqlite3_errmsg(db));
}

static sqlite3 *
open_file(const char *path)
{
    sqlite3 *db = NULL;

    check(db, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == 0,
          path);
    check(db, sqlite3_exec(db, sql_ingest_connect_sqlite, NULL, NULL, NULL) == 0, "connect");
    return db;
}

/* "INSERT INTO t VALUES ($1,$2),($3,$4)". */
static char *
insert_text(enum raw_table t, size_t n_rows, unsigned n_columns)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, STATEMENT_BYTES_MAX);
    il__buf_adds(&b, tables[t].insert);
    for (size_t i = 0; i < n_rows * n_columns; i++) {
        bool first = i % n_columns == 0, last = (i + 1) % n_columns == 0;
        il__buf_addf(&b, "%s$%zu%s", !first ? "," : i == 0 ? " (" : ",(", i + 1, last ? ")" : "");
    }
    CHECK(!b.failed);
    return il__buf_take(&b);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
read_rows(sqlite3 *db, enum raw_table t, const char *race_id, struct raw_rows *to)
{
    sqlite3_stmt *s = NULL;
    int           rc;

    check(db, sqlite3_prepare_v2(db, tables[t].read, -1, &s, NULL) == 0, tables[t].read);
    if (race_id != NULL)
        check(db, sqlite3_bind_text(s, 1, race_id, -1, SQLITE_STATIC) == 0, "bind");
    to->n_columns = (unsigned)sqlite3_column_count(s);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        if (to->n_rows == to->n_room) {
            to->n_room = MAX(to->n_room * 2, 64);
            to->values = realloc(to->values, to->n_room * to->n_columns * sizeof *to->values);
            CHECK(to->values != NULL);
        }
        struct raw_value *row = to->values + to->n_rows++ * to->n_columns;
        for (unsigned i = 0; i < to->n_columns; i++) {
            row[i].is_number = sqlite3_column_type(s, (int)i) == SQLITE_INTEGER;
            row[i].number    = sqlite3_column_int64(s, (int)i);
            const char *text = (const char *)sqlite3_column_text(s, (int)i);
            row[i].text      = text != NULL ? strdup(text) : NULL;
            CHECK((row[i].text != NULL) == (text != NULL));
        }
    }
    check(db, rc == SQLITE_DONE && sqlite3_finalize(s) == 0, tables[t].read);
}

void
raw_event_read(struct raw_event *e, const char *path)
{
    sqlite3      *db = open_file(path);
    sqlite3_stmt *s  = NULL;

    *e = (struct raw_event){ 0 };
    for (enum raw_table t = 0; t < RAW_RACES; t++)
        read_rows(db, t, NULL, &e->head.of[t]);
    check(db, sqlite3_prepare_v2(db, sql_ingest_read_races_of_event, -1, &s, NULL) == 0, "races");
    while (sqlite3_step(s) == SQLITE_ROW) {
        e->races = realloc(e->races, (e->n_races + 1) * sizeof *e->races);
        CHECK(e->races != NULL);
        struct raw_race *race = &e->races[e->n_races++];
        *race                 = (struct raw_race){ 0 };
        for (enum raw_table t = RAW_RACES; t < RAW_TABLE_COUNT; t++)
            read_rows(db, t, (const char *)sqlite3_column_text(s, 0), &race->of[t]);
        e->n_laps += race->of[RAW_LAPS].n_rows;
    }
    check(db, sqlite3_finalize(s) == 0 && sqlite3_close(db) == 0, "close");
}

static void
release_race(struct raw_race *race)
{
    for (enum raw_table t = 0; t < RAW_TABLE_COUNT; t++) {
        struct raw_rows *r = &race->of[t];
        for (size_t i = 0; i < r->n_rows * r->n_columns; i++)
            free(r->values[i].text);
        free(r->values);
    }
}

void
raw_event_release(struct raw_event *e)
{
    release_race(&e->head);
    for (size_t i = 0; i < e->n_races; i++)
        release_race(&e->races[i]);
    free(e->races);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */

struct raw_sqlite {
    sqlite3      *db;
    sqlite3_stmt *begin, *commit, *inserts[RAW_TABLE_COUNT]; /* those when they are first needed */
};

struct raw_sqlite *
raw_sqlite_open(const char *path)
{
    struct raw_sqlite *w = must_calloc(1, sizeof *w);

    w->db = open_file(path);
    check(w->db, sqlite3_prepare_v2(w->db, sql_raw_begin, -1, &w->begin, NULL) == 0, "begin");
    check(w->db, sqlite3_prepare_v2(w->db, sql_raw_commit, -1, &w->commit, NULL) == 0, "commit");
    return w;
}

void
raw_sqlite_close(struct raw_sqlite *w)
{
    (void)sqlite3_finalize(w->begin); /* each repeats an error that was already fatal */
    (void)sqlite3_finalize(w->commit);
    for (enum raw_table t = 0; t < RAW_TABLE_COUNT; t++)
        (void)sqlite3_finalize(w->inserts[t]);
    check(w->db, sqlite3_close(w->db) == 0, "close");
    free(w);
}

static void
step(struct raw_sqlite *w, sqlite3_stmt *s)
{
    check(w->db, sqlite3_step(s) == SQLITE_DONE && sqlite3_reset(s) == 0, sqlite3_sql(s));
}

static sqlite3_stmt *
insert_statement(struct raw_sqlite *w, enum raw_table t, unsigned n_columns)
{
    if (w->inserts[t] == NULL) {
        AUTO_FREE char *sql = insert_text(t, 1, n_columns);
        check(w->db, sqlite3_prepare_v2(w->db, sql, -1, &w->inserts[t], NULL) == 0, sql);
    }
    return w->inserts[t];
}

static void
bind_text(struct raw_sqlite *w, sqlite3_stmt *s, int i, const char *text)
{
    check(w->db, sqlite3_bind_text(s, i, text, -1, SQLITE_STATIC) == 0, "bind");
}

void
raw_sqlite_write(void *cookie, const struct raw_race *race, const char *tenant)
{
    struct raw_sqlite *w = cookie;

    step(w, w->begin);
    for (enum raw_table t = 0; t < RAW_TABLE_COUNT; t++) {
        const struct raw_rows *r = &race->of[t];
        for (size_t i = 0; i < r->n_rows; i++) {
            sqlite3_stmt *s = insert_statement(w, t, r->n_columns);
            bind_text(w, s, 1, tenant);
            for (unsigned k = 1; k < r->n_columns; k++) {
                const struct raw_value *v = &r->values[i * r->n_columns + k];
                if (v->is_number)
                    check(w->db, sqlite3_bind_int64(s, (int)k + 1, v->number) == 0, "bind");
                else
                    bind_text(w, s, (int)k + 1, v->text);
            }
            step(w, s);
        }
    }
    step(w, w->commit);
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

struct raw_postgres {
    PGconn *c;
};

struct raw_postgres *
raw_postgres_open(struct bench *b, const char *database)
{
    struct raw_postgres *w = must_calloc(1, sizeof *w);

    w->c = postgres_connect(b, database);
    postgres_exec(w->c, sql_ingest_connect_postgres);
    return w;
}

void
raw_postgres_close(struct raw_postgres *w)
{
    PQfinish(w->c);
    free(w);
}

void
raw_postgres_drop(struct bench *b, const char *database)
{
    PGconn *c = postgres_connect(b, database);

    postgres_exec(c, sql_ingest_drop_postgres);
    PQfinish(c);
}

/* Some rows of a table; as many as a statement can have. */
static void
insert_some(struct raw_postgres *w, enum raw_table t, const struct raw_value *values, size_t n_rows,
            unsigned n_columns, const char *tenant)
{
    AUTO_FREE char        *sql    = insert_text(t, n_rows, n_columns);
    size_t                 n      = n_rows * n_columns;
    AUTO_FREE const char **params = must_calloc(n, sizeof *params);

    for (size_t i = 0; i < n; i++)
        params[i] = i % n_columns == 0 ? tenant : values[i].text;
    PGresult *r = PQexecParams(w->c, sql, (int)n, NULL, params, NULL, NULL, 0);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        die("ingestion by hand on PostgreSQL: %s", PQerrorMessage(w->c));
    PQclear(r);
}

void
raw_postgres_write(void *cookie, const struct raw_race *race, const char *tenant)
{
    struct raw_postgres *w = cookie;

    postgres_exec(w->c, sql_guard_begin_postgres);
    for (enum raw_table t = 0; t < RAW_TABLE_COUNT; t++) {
        const struct raw_rows *r     = &race->of[t];
        size_t                 n_max = r->n_columns > 0 ? PARAMS_MAX / r->n_columns : 0;
        for (size_t i = 0; i < r->n_rows; i += n_max)
            insert_some(w, t, r->values + i * r->n_columns, MIN(r->n_rows - i, n_max), r->n_columns,
                        tenant);
    }
    postgres_exec(w->c, sql_raw_commit);
}
