/*
 * own.c: connections of the caller's own, which keep their settings; and SQLite files that are
 * ours, which get settings of ours.
 */
#include <sqlite3.h>
#include <sys/stat.h>

#include "guard/rows.h"
#include "harness/proc.h"
#include "store/postgres/postgres_internal.h"

#define BALANCE "SELECT balance FROM users WHERE id = 1"

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

static il_status
work(void *cookie UNUSED, il_guard_tx *tx, il_error *err)
{
    return il_guard_add(tx, R_USER(1), "balance", 1, NULL, NULL, err);
}

/* ---- connections of the caller's own --------------------------------------------------------- */

static il_guard_opts
with_ranks(void)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;

    o.ranks   = t_ranks;
    o.n_ranks = ARRAY_LEN(t_ranks);
    return o;
}

static int
on_commit(void *cookie)
{
    (*(int *)cookie)++;
    return 0;
}

static int
take_number(void *cookie, int n UNUSED, char **values, char **names UNUSED)
{
    *(int *)cookie = (int)strtol(values[0], NULL, 10);
    return 0;
}

static int
number(sqlite3 *db, const char *sql)
{
    int value = -1;

    T_EQ(sqlite3_exec(db, sql, take_number, &value, NULL), SQLITE_OK);
    return value;
}

G_TEST(a_connection_to_sqlite_of_the_callers)
{
    sqlite3      *db        = NULL;
    il_guard     *c         = NULL;
    il_guard_opts o         = with_ranks();
    il_guard_tx  *tx        = NULL;
    int           n_commits = 0;
    il_error      err;

    if (g->is_postgres)
        return;
    t_rows_make(g);
    T_EQ(sqlite3_open(g->path, &db), SQLITE_OK);
    T_EQ(sqlite3_busy_timeout(db, 1234), SQLITE_OK);
    T_TRUE(sqlite3_commit_hook(db, on_commit, &n_commits) == NULL);
    T_EQ(sqlite3_exec(db, "PRAGMA foreign_keys = 1; PRAGMA synchronous = 1", NULL, NULL, NULL),
         SQLITE_OK);
    o.flags = IL_GUARD_OWN_FILE;
    T_EQ(il_guard_open_sqlite(db, &o, &c, &err), IL_INVAL);
    o.flags = 0;
    R_RUN(il_guard_open_sqlite(db, &o, &c, why));
    T_EQ(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
    T_EQ(il_guard_begin(c, NULL, &tx, &err), IL_STATE);
    T_HAS(err.message, "transaction is open");
    T_EQ(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    T_EQ(il_guard_transact(c, NULL, work, NULL, NULL, &err), IL_OK);
    T_EQ(n_commits, 1); /* the hook stays */
    /* SQLite skips a byte order mark, and its comments do not nest. */
    static const char *const ends[] = {
        "COMMIT",
        "\xEF\xBB\xBF\tCOMMIT",
        "\xEF\xBB\xBF /* a */ END",
        "/* a /* b */ COMMIT",
        "-- a\nROLLBACK",
        ";; commit",
        "SAVEPOINT a",
        "BEGIN",
    };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        tx = begin(c);
        if (t_try(tx, ends[i], &err) != IL_INVAL)
            T_FAIL("'%s' is not refused", ends[i]);
        T_EQ(sqlite3_get_autocommit(db), 0); /* and the transaction is still open */
        T_EQ(t_try(tx, "SELECT 1", &err), IL_STATE);
        il_guard_rollback(tx);
    }
    il_guard_close(c);
    T_EQ(number(db, "PRAGMA busy_timeout"), 1234);
    T_EQ(number(db, "PRAGMA foreign_keys"), 1);
    T_EQ(number(db, "PRAGMA synchronous"), 1);
    T_EQ(number(db, BALANCE), 11);
    T_EQ(sqlite3_exec(db, "UPDATE users SET balance = 5 WHERE id = 1", NULL, NULL, NULL),
         SQLITE_OK);
    T_EQ(n_commits, 2);
    T_EQ(sqlite3_close(db), SQLITE_OK); /* nothing of ours is left on it */
}

/* The first value of a query on a connection, "" if there is none. */
static const char *
say(PGconn *pq, const char *sql, char out[64])
{
    PGresult *r;

    out[0] = '\0';
    T_EQ(il__pq->PQsendQuery(pq, sql), 1);
    while ((r = il__pq->PQgetResult(pq)) != NULL) {
        if (il__pq->PQresultStatus(r) == PGRES_TUPLES_OK)
            (void)snprintf(out, 64, "%s", il__pq->PQgetvalue(r, 0, 0));
        else
            T_EQ(il__pq->PQresultStatus(r), PGRES_COMMAND_OK);
        il__pq->PQclear(r);
    }
    return out;
}

G_TEST(a_connection_to_postgres_of_the_callers)
{
    struct pg_url  url = { 0 };
    struct pg_conn conn;
    il_guard      *c  = NULL;
    il_guard_opts  o  = with_ranks();
    il_guard_tx   *tx = NULL;
    char           out[64];
    il_error       err;

    if (!g->is_postgres)
        return;
    t_rows_make(g);
    R_RUN(il__pg_url_parse(&url, g->url, why));
    il__pg_conn_init(&conn, url.server, url.shown);
    T_TRUE(il__pg_conn_ready(&conn, il__pg_in_ms(G_LIMIT_MS)));
    (void)say(conn.pq, "SET lock_timeout = 1234", out);
    (void)say(conn.pq, "SET default_transaction_isolation = 'serializable'", out);
    o.search_path = g->schema;
    R_RUN(il_guard_open_postgres(conn.pq, &o, &c, why));
    (void)say(conn.pq, "BEGIN", out);
    T_EQ(il_guard_begin(c, NULL, &tx, &err), IL_STATE);
    T_HAS(err.message, "transaction is open");
    (void)say(conn.pq, "ROLLBACK", out);
    T_EQ(il_guard_transact(c, NULL, work, NULL, NULL, &err), IL_OK);
    tx = begin(c);
    T_EQ(t_try(tx, "SELECT 1/0", &err), IL_INVAL);
    il_guard_rollback(tx);
    T_EQ(il_guard_transact(c, NULL, work, NULL, NULL, &err), IL_OK);
    il_guard_close(c);
    T_STREQ(say(conn.pq, "SHOW lock_timeout", out), "1234ms");
    T_STREQ(say(conn.pq, "SHOW statement_timeout", out), "0");
    T_STREQ(say(conn.pq, "SHOW transaction_isolation", out), "serializable");
    T_STREQ(say(conn.pq, "SHOW search_path", out), g->schema);
    T_STREQ(say(conn.pq, BALANCE, out), "12");
    il__pg_conn_close(&conn);
    il__pg_url_release(&url);
}

/* ---- files that are ours --------------------------------------------------------------------- */

static il_guard *
open_own(const struct t_ground *g)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;

    o.flags = IL_GUARD_OWN_FILE;
    return t_rows_open(g, &o, NULL);
}

static int
take_int(void *cookie, const il_guard_row *row)
{
    *(int64_t *)cookie = row->values[0].integer;
    return 0;
}

static int64_t
pragma(il_guard_tx *tx, const char *sql)
{
    int64_t              value = -1;
    const il_guard_query q     = { .sql = sql, .each = take_int, .cookie = &value };

    R_RUN(il_guard_exec(tx, &q, NULL, why));
    return value;
}

#define WRITES 50

static int
writer_main(void *arg)
{
    const struct t_ground *g = arg;
    il_guard              *c = open_own(g);
    il_guard_tx_opts       o = IL_GUARD_TX_OPTS_INIT;
    il_error               err;

    o.tries_max = 1; /* waits are within the lock timeout: no conflict is seen */
    for (int i = 0; i < WRITES; i++) {
        if (il_guard_transact(c, &o, work, NULL, NULL, &err) != IL_OK) {
            (void)fprintf(stderr, "%s\n", err.message);
            return 1;
        }
    }
    il_guard_close(c);
    return 0;
}

G_TEST(two_processes_write_a_file_of_ours)
{
    struct t_proc writers[2];
    char          out[4096];

    if (g->is_postgres)
        return;
    t_rows_make(g);
    for (int i = 0; i < 2; i++)
        t_proc_fork(&writers[i], writer_main, g);
    for (int i = 0; i < 2; i++) {
        if (t_proc_exit(&writers[i], 4 * G_LIMIT_MS) != 0)
            T_FAIL("%s", writers[i].text);
        t_proc_release(&writers[i]);
    }
    T_EQ(t_ground_count(g, BALANCE), 10 + 2 * WRITES);
    T_STREQ(t_ground_ask(g, "PRAGMA journal_mode", out), "wal");
    T_STREQ(t_ground_ask(g, "PRAGMA integrity_check", out), "ok");
    il_guard    *c  = open_own(g);
    il_guard_tx *tx = begin(c);
    T_EQ(pragma(tx, "PRAGMA synchronous"), 2);
    T_EQ(pragma(tx, "PRAGMA foreign_keys"), 1);
    t_commit(tx);
    il_guard_close(c);
}

#define WAL_LIMIT (4 << 20) /* of src/guard/sqlite_file.c */

G_TEST(the_wal_of_a_file_of_ours_stays_small)
{
    char        path[T_PATH_BYTES];
    struct stat st;
    off_t       largest = 0, written = 0;

    if (g->is_postgres)
        return;
    t_sql(g, "CREATE TABLE b (id INTEGER PRIMARY KEY, data BLOB)");
    t_path(path, "%s-wal", g->path);
    il_guard *c = open_own(g);
    for (int i = 0; i < 100; i++) {
        il_guard_tx *tx = begin(c);
        t_exec(tx, "INSERT INTO b (data) VALUES (zeroblob(262144))");
        t_commit(tx);
        written += 262144;
        if (stat(path, &st) == 0 && st.st_size > largest)
            largest = st.st_size;
    }
    T_LESS(3 * WAL_LIMIT, written);
    T_LESS(0, largest);
    T_LESS(largest, 2 * WAL_LIMIT);
    il_guard_close(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(two_processes_write_a_file_of_ours), /* forks: before a handle is open */
        G_ROW(a_connection_to_sqlite_of_the_callers),
        G_ROW(a_connection_to_postgres_of_the_callers),
        G_ROW(the_wal_of_a_file_of_ours_stays_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
