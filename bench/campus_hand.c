/*
 * campus_hand.c: an enrollment by hand: on SQLite with prepared statements, on PostgreSQL with
 * libpq. It writes what campus_enroll() writes, and has no ranks, timeouts, events or retries.
 */
#include "campus.h"

#include <sqlite3.h>

#include "bench_sql.inc"

#define BUSY_MS 60000

enum stmt {
    STMT_BEGIN,
    STMT_LOCK,
    STMT_ENROLL,
    STMT_CHARGE,
    STMT_LEDGER,
    STMT_COUNT_UP,
    STMT_COMMIT,
    STMT_COUNT
};

static const char *const sqlite_sql[] = { sql_raw_begin,     sql_campus_lock_sqlite,
                                          sql_campus_enroll, sql_campus_charge,
                                          sql_campus_ledger, sql_campus_count,
                                          sql_raw_commit };
_Static_assert(ARRAY_LEN(sqlite_sql) == STMT_COUNT, "a text for each statement");

struct campus_hand {
    sqlite3      *db; /* NULL: PostgreSQL */
    sqlite3_stmt *stmts[STMT_COUNT];
    PGconn       *c;
};

static void
check(struct campus_hand *h, bool ok, const char *what)
{
    if (!ok)
        die("campus by hand: %s: %s", what,
            h->db != NULL ? sqlite3_errmsg(h->db) : PQerrorMessage(h->c));
}

static struct campus_hand *
connect_to(const struct campus_site *s)
{
    struct campus_hand *h     = must_calloc(1, sizeof *h);
    int                 flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;

    if (s->is_postgres) {
        h->c = postgres_connect(s->b, s->database.name);
        postgres_exec(h->c, "SET search_path = interlock_campus");
        return h;
    }
    check(h, sqlite3_open_v2(s->path, &h->db, flags, NULL) == SQLITE_OK, "open");
    check(h, sqlite3_busy_timeout(h->db, BUSY_MS) == SQLITE_OK, "busy_timeout");
    check(h, sqlite3_exec(h->db, sql_raw_connect, NULL, NULL, NULL) == SQLITE_OK, "connect");
    return h;
}

struct campus_hand *
campus_hand_open(const struct campus_site *s)
{
    struct campus_hand *h = connect_to(s);

    for (size_t i = 0; h->db != NULL && i < STMT_COUNT; i++) {
        int rc = sqlite3_prepare_v3(h->db, sqlite_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &h->stmts[i], NULL);
        check(h, rc == SQLITE_OK, sqlite_sql[i]);
    }
    return h;
}

void
campus_hand_close(struct campus_hand *h)
{
    for (size_t i = 0; i < STMT_COUNT; i++)
        (void)sqlite3_finalize(h->stmts[i]); /* repeats an error that was already fatal */
    if (h->db != NULL)
        check(h, sqlite3_close(h->db) == SQLITE_OK, "close");
    PQfinish(h->c);
    free(h);
}

void
campus_hand_fill(const struct campus_site *s)
{
    struct campus_hand *h      = connect_to(s);
    const char *const   both[] = { s->is_postgres ? sql_campus_users_postgres
                                                  : sql_campus_users_sqlite,
                                 sql_campus_tournament };

    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        if (s->is_postgres)
            postgres_exec(h->c, both[i]);
        else
            check(h, sqlite3_exec(h->db, both[i], NULL, NULL, NULL) == SQLITE_OK, both[i]);
    }
    campus_hand_close(h);
}

/* Execute a statement with n values, all of them text; it returns n_rows. *ret: the first value. */
static void
run_sqlite(struct campus_hand *h, enum stmt i, const char *const *values, int n, unsigned n_rows,
           int64_t *ret)
{
    sqlite3_stmt *s     = h->stmts[i];
    unsigned      n_got = 0;
    int           rc;

    for (int k = 0; k < n; k++) {
        int at = k + 1;
        rc     = at == 3 ? sqlite3_bind_int64(s, at, *ret)
                         : sqlite3_bind_text(s, at, values[k], -1, SQLITE_STATIC);
        check(h, rc == SQLITE_OK, "bind");
    }
    for (; (rc = sqlite3_step(s)) == SQLITE_ROW; n_got++)
        *ret = sqlite3_column_int64(s, 0);
    check(h, rc == SQLITE_DONE && sqlite3_reset(s) == SQLITE_OK && n_got == n_rows, sqlite_sql[i]);
}

static void
enroll_sqlite(struct campus_hand *h, const char *user, const char *id)
{
    /* SQLite numbers $1 by its first use in a text, and $2 comes first in two of them. */
    const char *const by_user[] = { user }, *const by_id[] = { id, user, NULL };
    int64_t balance = 0, unused = 0;

    run_sqlite(h, STMT_BEGIN, NULL, 0, 0, &unused);
    run_sqlite(h, STMT_LOCK, NULL, 0, 1, &unused);
    run_sqlite(h, STMT_ENROLL, by_id, 2, 1, &unused);
    run_sqlite(h, STMT_CHARGE, by_user, 1, 1, &balance);
    run_sqlite(h, STMT_LEDGER, by_id, 3, 1, &balance);
    run_sqlite(h, STMT_COUNT_UP, NULL, 0, 1, &unused);
    run_sqlite(h, STMT_COMMIT, NULL, 0, 0, &unused);
}

/* One round trip; it returns a row, whose first value is kept in `ret` if that is not NULL. */
static void
run_postgres(struct campus_hand *h, const char *sql, const char *const *values, int n, char ret[32])
{
    PGresult *r = PQexecParams(h->c, sql, n, NULL, values, NULL, NULL, 0);

    check(h, PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1, sql);
    if (ret != NULL)
        (void)snprintf(ret, 32, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
}

static void
enroll_postgres(struct campus_hand *h, const char *user, const char *id)
{
    char              balance[32];
    const char *const values[] = { user, id, balance };

    postgres_exec(h->c, sql_campus_begin_postgres);
    run_postgres(h, sql_campus_lock_postgres, NULL, 0, NULL);
    run_postgres(h, sql_campus_enroll, values, 2, NULL);
    run_postgres(h, sql_campus_charge, values, 1, balance);
    run_postgres(h, sql_campus_ledger, values, 3, NULL);
    run_postgres(h, sql_campus_count, NULL, 0, NULL);
    postgres_exec(h->c, sql_raw_commit);
}

void
campus_hand_enroll(struct campus_hand *h, const char *user, const char *id)
{
    if (h->db != NULL)
        enroll_sqlite(h, user, id);
    else
        enroll_postgres(h, user, id);
}
