/*
 * exec.c: statements: bound values, results, refused statements, cancelling; and identifiers.
 */
#include <pthread.h>
#include <unistd.h>

#include "guard/ground.h"
#include "harness/clock.h"
#include "harness/event.h"

static void
make(const struct t_ground *g, const char *sql)
{
    char out[4096];

    (void)t_ground_ask(g, sql, out);
}

/* ---- values and rows ------------------------------------------------------------------------- */

struct seen {
    unsigned n_rows, n_max;
    size_t   n_columns;
    char     names[256], values[256]; /* of the last row, separated by | */
};

static int
see(void *cookie, const il_guard_row *row)
{
    struct seen *s = cookie;

    s->n_rows++;
    s->n_columns = row->n;
    s->names[0] = s->values[0] = '\0';
    for (size_t i = 0; i < row->n; i++) {
        size_t a = strlen(s->names), b = strlen(s->values);
        (void)snprintf(s->names + a, sizeof s->names - a, "%s|", row->names[i]);
        (void)snprintf(s->values + b, sizeof s->values - b, "%s|",
                       t_guard_text(row, i) != NULL ? t_guard_text(row, i) : "<null>");
    }
    return s->n_max == 0 || s->n_rows < s->n_max;
}

static il_status
query(il_guard_tx *tx, const char *sql, const char *const *values, size_t n, struct seen *s,
      int64_t *n_changed, il_error *err)
{
    *s   = (struct seen){ .n_max = s->n_max };
    *err = (il_error){ .message = "" };
    return t_guard_exec(tx, sql, values, n, see, s, n_changed, err);
}

G_TEST(values_are_bound_not_pasted)
{
    il_guard   *c        = t_ground_open(g, 0);
    const char *values[] = { "it's \"$1\"; DROP TABLE t; --", NULL, "" };
    struct seen s        = { 0 };
    il_error    err;
    int64_t     n = -1;

    make(g, "CREATE TABLE t (id INTEGER, a TEXT, b TEXT, c TEXT)");
    il_guard_tx *tx = t_begin(c, NULL, false);
    T_EQ(query(tx, "INSERT INTO t VALUES (1, $1, $2, $3)", values, 3, &s, &n, &err), IL_OK);
    T_EQ(n, 1);
    T_EQ(query(tx, "SELECT a, b, c, id FROM t WHERE a = $1", values, 1, &s, &n, &err), IL_OK);
    T_EQ(s.n_rows, 1);
    T_EQ(n, 0);
    T_STREQ(s.names, "a|b|c|id|");
    T_STREQ(s.values, "it's \"$1\"; DROP TABLE t; --|<null>||1|");
    const char *number[] = { "1" };
    T_EQ(query(tx, "SELECT id FROM t WHERE id = $1", number, 1, &s, &n, &err),
         IL_OK); /* cast by the database */
    T_EQ(s.n_rows, 1);
    T_EQ(query(tx, "SELECT id FROM t WHERE a = $2 OR id = $1 OR b = $2", values, 1, &s, &n, &err),
         IL_INVAL);
    il_guard_rollback(tx);
    il_guard_close(c);
}

G_TEST(rows_changed_are_counted)
{
    il_guard   *c = t_ground_open(g, 0);
    struct seen s = { 0 };
    il_error    err;
    int64_t     n = -1;

    make(g, "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)");
    il_guard_tx *tx = t_begin(c, NULL, false);
    T_EQ(query(tx, "INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')", NULL, 0, &s, &n, &err),
         IL_OK);
    T_EQ(n, 3);
    T_EQ(query(tx, "UPDATE t SET a = 'z' WHERE a = 'x' RETURNING id", NULL, 0, &s, &n, &err),
         IL_OK);
    T_EQ(n, 2);
    T_EQ(s.n_rows, 2);
    T_EQ(query(tx, "SELECT * FROM t", NULL, 0, &s, &n, &err), IL_OK);
    T_EQ(n, 0);
    T_EQ(query(tx, "DELETE FROM t WHERE id = 99", NULL, 0, &s, &n, &err), IL_OK);
    T_EQ(n, 0);
    T_EQ(query(tx, "CREATE TABLE u (id INTEGER)", NULL, 0, &s, &n, &err), IL_OK);
    T_EQ(n, 0);
    T_EQ(il_guard_commit(tx, &err), IL_OK);
    il_guard_close(c);
}

G_TEST(rows_stop_when_no_more_are_wanted)
{
    il_guard   *c = t_ground_open(g, 0);
    struct seen s = { .n_max = 3 };
    il_error    err;

    make(g, "CREATE TABLE t (id INTEGER)");
    il_guard_tx *tx = t_begin(c, NULL, false);
    t_exec(tx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
               "INSERT INTO t SELECT i FROM n");
    T_EQ(query(tx, "SELECT id FROM t ORDER BY id", NULL, 0, &s, NULL, &err), IL_OK);
    T_EQ(s.n_rows, 3);
    T_STREQ(s.values, "3|");
    s.n_max = 0;
    T_EQ(query(tx, "SELECT id FROM t", NULL, 0, &s, NULL, &err), IL_OK); /* and it goes on */
    T_EQ(s.n_rows, 5000);
    T_EQ(il_guard_commit(tx, &err), IL_OK);
    il_guard_close(c);
}

/* ---- what is refused ------------------------------------------------------------------------- */

/* The statement is refused, nothing of the transaction stays, and the connection is good for the
 * next. */
static void
refused(struct t_ground *g, il_guard *c, const char *sql, const char *part)
{
    il_guard_tx *tx = t_begin(c, NULL, false);
    il_error     err;

    t_exec(tx, "INSERT INTO t VALUES (1)");
    if (t_try(tx, sql, &err) != IL_INVAL)
        T_FAIL("'%s' was not refused", sql);
    if (strstr(err.message, part) == NULL)
        T_FAIL("'%s': %s", sql, err.message);
    T_EQ(t_try(tx, "SELECT 1", &err), IL_STATE);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
}

G_TEST(a_transaction_is_not_the_statements_to_end)
{
    static const char *const texts[] = {
        "COMMIT",
        "commit work",
        "  COMMIT;",
        "END",
        "ROLLBACK",
        "BEGIN",
        "-- a comment\nCOMMIT",
        "/* one */ COMMIT",
        "; COMMIT",
        "/**/\t\r\n;;ROLLBACK",
        "SAVEPOINT a",
        "RELEASE a",
        "ROLLBACK TO a",
    };
    static const char *const postgres[] = { "ABORT",
                                            "START TRANSACTION",
                                            "COMMIT AND CHAIN",
                                            "PREPARE TRANSACTION 'x'",
                                            "prepare /* x */ transaction 'x'",
                                            "COMMIT PREPARED 'x'",
                                            "/* a /* nested */ comment */ COMMIT" };
    il_guard                *c          = t_ground_open(g, 0);

    make(g, "CREATE TABLE t (id INTEGER)");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        refused(g, c, texts[i], "");
    for (size_t i = 0; g->is_postgres && i < ARRAY_LEN(postgres); i++)
        refused(g, c, postgres[i], "transaction statements");
    refused(g, c, "COMMIT", "transaction statements");
    if (g->is_postgres)
        refused(g, c, "DO $$ BEGIN COMMIT; END $$", "");
    il_guard_close(c);
}

G_TEST(one_statement_at_a_time)
{
    il_guard *c = t_ground_open(g, 0);

    make(g, "CREATE TABLE t (id INTEGER)");
    refused(g, c, "INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)", "only one statement");
    refused(g, c, "SELECT 1; COMMIT", "only one statement");
    refused(g, c, "", "no statement");
    refused(g, c, " -- nothing\n", "no statement");
    refused(g, c, ";", "no statement");
    refused(g, c, "SELEC 1", "syntax");
    refused(g, c, "SELECT * FROM no_such_table", "no_such_table");
    il_guard_tx *tx = t_begin(c, NULL, false);
    t_exec(tx, "INSERT INTO t VALUES (2) ; -- what follows is a comment");
    il_guard_rollback(tx);
    il_guard_close(c);
}

G_TEST(a_statement_that_undoes_the_transaction)
{
    il_guard *c = t_ground_open(g, 0);
    il_error  err;

    make(g, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    il_guard_tx *tx = t_begin(c, NULL, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    T_EQ(t_try(tx,
               g->is_postgres ? "INSERT INTO t VALUES (1)" : "INSERT OR ROLLBACK INTO t VALUES (1)",
               &err),
         IL_UNIQUE);
    T_EQ(t_try(tx, "INSERT INTO t VALUES (2)", &err), IL_STATE);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    il_guard_close(c);
}

G_TEST(what_only_one_of_them_has)
{
    il_guard *c = t_ground_open(g, 0);

    make(g, "CREATE TABLE t (id INTEGER)");
    if (g->is_postgres) {
        refused(g, c, "COPY t FROM STDIN", "COPY");
        refused(g, c, "COPY t TO STDOUT", "COPY");
    } else {
        refused(g, c, "ATTACH 'x.db' AS x", "ATTACH");
        refused(g, c, "PRAGMA journal_mode = WAL", "PRAGMA");
        refused(g, c, "SELECT $name", "no value");
    }
    il_guard_close(c);
}

/* What is Interlock's own in a file of the user's is not for the user's statements; and not even
 * the whole of it stays without a fence. */
G_TEST(the_table_of_fences_is_not_the_users)
{
    il            *h = t_ground_store(g);
    il_guard      *c = t_ground_open(g, 0);
    il_guard_fence f = t_fence(h, t_take(h, "a", 30000));
    il_error       err;

    if (!g->is_shared) {
        T_EQ(il_guard_commit(t_begin(c, &f, false), &err), IL_OK);
        il_guard_tx *tx = t_begin(c, &f, false);
        il_status    st = t_try(tx, "DELETE FROM interlock_fence", &err);
        T_EQ(st, g->is_postgres ? IL_OK : IL_INVAL);
        st = il_guard_commit(tx, &err); /* shown again */
        T_EQ(st, g->is_postgres ? IL_OK : IL_STATE);
        T_EQ(t_ground_count(g, "SELECT fence FROM interlock_fence"), f.fence);
        tx = t_begin(c, &f, false);
        T_EQ(t_try(tx, "DROP TABLE interlock_fence", &err), g->is_postgres ? IL_OK : IL_INVAL);
        T_TRUE(il_guard_commit(tx, &err) != IL_OK);
        T_EQ(t_ground_count(g, "SELECT count(*) FROM interlock_fence"), 1);
    }
    il_guard_close(c);
    il_close(h);
}

/* ---- ending it from outside ------------------------------------------------------------------ */

struct runner {
    il_guard_tx   *tx;
    const char    *sql;
    struct t_event begins, done;
    il_status      status;
    il_error       err;
};

static void *
run_main(void *arg)
{
    struct runner *r = arg;

    t_event_add(&r->begins);
    r->status = t_guard_exec(r->tx, r->sql, NULL, 0, NULL, NULL, NULL, &r->err);
    t_event_add(&r->done);
    return NULL;
}

G_TEST(a_statement_is_interrupted)
{
    il_guard     *c = t_ground_open(g, 0);
    char          sleeps[128], sql[256];
    struct runner r = { .sql = sleeps };
    pthread_t     thread;
    il_guard_tx  *tx = NULL;
    il_error      err;

    if (g->is_postgres)
        (void)snprintf(sleeps, sizeof sleeps, "SELECT pg_sleep(600), 1 AS %s", g->schema);
    else
        (void)snprintf(
            sleeps, sizeof sleeps,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n");
    t_event_init(&r.begins);
    t_event_init(&r.done);
    r.tx = t_begin(c, NULL, false);
    T_EQ(pthread_create(&thread, NULL, run_main, &r), 0);
    T_WAIT(&r.begins, 1, G_LIMIT_MS);
    int64_t begun_ms = t_real_ms();
    il_guard_interrupt(c);
    T_WAIT(&r.done, 1, G_LIMIT_MS);
    T_TRUE(t_real_ms() - begun_ms < 5000);
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(r.status, IL_CANCELLED);
    T_EQ(il_guard_commit(r.tx, &err), IL_STATE);
    T_EQ(t_guard_begin(c, NULL, false, &tx, &err), IL_CANCELLED); /* and all that follows */
    if (g->is_postgres) { /* the server does not go on with it */
        int64_t until_ms = t_real_ms() + G_LIMIT_MS;
        (void)snprintf(
            sql, sizeof sql,
            "SELECT count(*) FROM pg_stat_activity WHERE query = '%s' AND state = 'active'",
            sleeps);
        while (t_ground_count(g, sql) != 0)
            T_TRUE(t_real_ms() < until_ms);
    }
    il_guard_close(c);
    t_event_release(&r.begins);
    t_event_release(&r.done);
}

/* Told to before it begins, or between two statements: nothing goes on. */
G_TEST(an_interrupted_transaction_is_not_committed)
{
    il_guard *c = t_ground_open(g, 0);
    il_error  err;

    make(g, "CREATE TABLE t (id INTEGER)");
    il_guard_tx *tx = t_begin(c, NULL, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    il_guard_interrupt(c);
    T_EQ(il_guard_commit(tx, &err), IL_CANCELLED);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    il_guard_close(c);
}

/* One that waits for a lock of somebody else's. */
static void *
begin_main(void *arg)
{
    struct runner *r  = arg;
    il_guard_tx   *tx = NULL;
    il_error       err;

    t_event_add(&r->begins);
    r->status = t_guard_begin((il_guard *)(void *)r->tx, NULL, false, &tx, &err);
    if (r->status == IL_OK)
        r->status = t_guard_exec(tx, "INSERT INTO t VALUES (1)", NULL, 0, NULL, NULL, NULL, &err);
    il_guard_rollback(tx);
    t_event_add(&r->done);
    return NULL;
}

G_TEST(a_wait_for_a_lock_is_interrupted)
{
    il_guard     *c     = t_ground_open(g, 600000);
    il_guard     *other = t_ground_open(g, 0);
    struct runner r     = { .tx = (il_guard_tx *)(void *)c };
    pthread_t     thread;

    make(g, "CREATE TABLE t (id INTEGER UNIQUE)");
    t_event_init(&r.begins);
    t_event_init(&r.done);
    il_guard_tx *tx = t_begin(other, NULL, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    T_EQ(pthread_create(&thread, NULL, begin_main, &r), 0);
    T_WAIT(&r.begins, 1, G_LIMIT_MS);
    T_TRUE(!t_event_wait(&r.done, 1, 100));
    il_guard_interrupt(c);
    T_WAIT(&r.done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(r.status, IL_CANCELLED);
    il_guard_close(other);
    il_guard_close(c);
    t_event_release(&r.begins);
    t_event_release(&r.done);
}

/* ---- names ----------------------------------------------------------------------------------- */

static il_status
quote(il_guard_tx *tx, const char *table, const char *column, char out[256], il_error *err)
{
    struct il__buf AUTO_BUF b = { 0 };

    *err = (il_error){ .message = "" };
    il__buf_init(&b, 4096);
    il_status st = il__guard_quote(tx, table, column, &b, err);
    (void)snprintf(out, 256, "%s", il__buf_str(&b));
    return st;
}

G_TEST(names_are_those_of_the_catalogue)
{
    il_guard   *c = t_ground_open(g, 0);
    char        out[256], want[256], sql[512];
    const char *schema = g->is_postgres ? g->schema : "main";
    il_error    err;

    make(g, "CREATE TABLE plain (id INTEGER, \"two words\" TEXT, \"quo\"\"te\" TEXT)");
    make(g, "CREATE TABLE \"we\"\"ird; DROP TABLE plain\" (id INTEGER)");
    make(g, "CREATE TABLE \"with.dot\" (id INTEGER)");
    make(g, "CREATE VIEW v AS SELECT 1 AS one");
    il_guard_tx *tx = t_begin(c, NULL, true);
    T_EQ(quote(tx, "plain", NULL, out, &err), IL_OK);
    (void)snprintf(want, sizeof want, "\"%s\".\"plain\"", schema);
    T_STREQ(out, want);
    (void)snprintf(sql, sizeof sql, "%s.plain", schema);
    T_EQ(quote(tx, sql, NULL, out, &err), IL_OK);
    T_STREQ(out, want);
    T_EQ(quote(tx, "plain", "two words", out, &err), IL_OK);
    T_STREQ(out, "\"two words\"");
    T_EQ(quote(tx, "plain", "quo\"te", out, &err), IL_OK);
    T_STREQ(out, "\"quo\"\"te\"");
    T_EQ(quote(tx, "we\"ird; DROP TABLE plain", NULL, out, &err), IL_OK);
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", out);
    t_exec(tx, sql);
    T_EQ(quote(tx, "with.dot", NULL, out, &err), IL_OK);
    T_HAS(out, "\"with.dot\"");
    T_EQ(quote(tx, "v", "one", out, &err), IL_OK);
    T_EQ(quote(tx, "missing", NULL, out, &err), IL_NOT_FOUND);
    T_HAS(err.message, "missing");
    T_STREQ(out, "");
    T_EQ(quote(tx, "plain", "missing", out, &err), IL_NOT_FOUND);
    T_HAS(err.message, "missing");
    T_EQ(quote(tx, "no.such.table", NULL, out, &err), IL_NOT_FOUND);
    T_EQ(quote(tx, "", NULL, out, &err), IL_NOT_FOUND);
    T_EQ(quote(tx, "plain; DROP TABLE plain", NULL, out, &err), IL_NOT_FOUND);
    T_EQ(quote(tx, "plain", "id FROM plain; --", out, &err), IL_NOT_FOUND);
    t_exec(tx, "SELECT count(*) FROM plain"); /* the transaction goes on */
    T_EQ(il_guard_commit(tx, &err), IL_OK);
    il_guard_close(c);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

G_TEST(urls_that_are_refused)
{
    static const char *const urls[] = { "mysql://u:geheim@h/db",
                                        "sqlite:",
                                        "",
                                        "sqlite::memory:",
                                        "sqlite:x.db?mode=memory",
                                        "postgres://u:geheim@h:port/db",
                                        "postgres://u:geheim@h/db?nonsense=1" };
    il_guard                *c      = NULL;
    il_error                 err;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        err          = (il_error){ .message = "" };
        il_status st = t_guard_open(urls[i], 200, &c, &err);
        if (st == IL_OK)
            T_FAIL("'%s' was not refused", urls[i]);
        T_TRUE(err.message[0] != '\0');
        T_TRUE(strstr(err.message, "geheim") == NULL);
    }
}

/* Nobody answers, or says no: the error has neither password nor user. */
G_TEST(passwords_are_not_told)
{
    il_guard *c   = NULL;
    il_error  err = { .message = "" };

    T_EQ(t_guard_open("postgres://user:geheim@127.0.0.1:1/db", 2000, &c, &err), IL_STORE);
    T_HAS(err.message, "127.0.0.1:1");
    T_TRUE(strstr(err.message, "geheim") == NULL);
    if (g->is_postgres) {
        char url[T_PATH_BYTES + 64];
        (void)snprintf(url, sizeof url, "%s&user=no_such_user&password=geheim", g->server);
        T_TRUE(t_guard_open(url, 5000, &c, &err) != IL_OK);
        T_TRUE(strstr(err.message, "geheim") == NULL);
    }
}

G_TEST(a_store_is_no_place_for_tables)
{
    il_guard *c = NULL;
    il       *h = NULL;
    char      url[T_PATH_BYTES];
    il_error  err = { .message = "" };

    t_path(url, "sqlite:%s/other.db", g->dir);
    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    T_EQ(t_guard_open(url, 0, &c, &err), IL_INVAL);
    T_HAS(err.message, "in another file");
    il_close(h);
    /* A file that becomes one after it was opened. */
    t_path(url, "sqlite:%s/later.db", g->dir);
    T_EQ(t_guard_open(url, 0, &c, &err), IL_OK);
    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    il_guard_tx *tx = NULL;
    T_EQ(t_guard_begin(c, NULL, false, &tx, &err), IL_INVAL);
    T_HAS(err.message, "in another file");
    il_guard_close(c);
    il_close(h);
}

/* The journal mode of a file is the user's. */
G_TEST(a_file_stays_as_it_is)
{
    static const char *const modes[] = { "delete", "wal", "truncate" };
    char                     out[4096], sql[64];

    for (size_t i = 0; !g->is_postgres && i < ARRAY_LEN(modes); i++) {
        (void)snprintf(sql, sizeof sql, "PRAGMA journal_mode = %s", modes[i]);
        T_STREQ(t_ground_ask(g, sql, out), modes[i]);
        il_guard *c = t_ground_open(g, 0);
        t_write(c, "CREATE TABLE IF NOT EXISTS t (id INTEGER)");
        t_write(c, "INSERT INTO t VALUES (1)");
        il_guard_close(c);
        const char *kept = t_ground_ask(g, "PRAGMA journal_mode", out);
        /* the file knows wal or not */
        T_STREQ(kept, strcmp(modes[i], "truncate") == 0 ? "delete" : modes[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(values_are_bound_not_pasted),
        G_ROW(rows_changed_are_counted),
        G_ROW(rows_stop_when_no_more_are_wanted),
        G_ROW(a_transaction_is_not_the_statements_to_end),
        G_ROW(one_statement_at_a_time),
        G_ROW(a_statement_that_undoes_the_transaction),
        G_ROW(what_only_one_of_them_has),
        G_ROW(the_table_of_fences_is_not_the_users),
        G_ROW(a_statement_is_interrupted),
        G_ROW(an_interrupted_transaction_is_not_committed),
        G_ROW(a_wait_for_a_lock_is_interrupted),
        G_ROW(names_are_those_of_the_catalogue),
        G_ROW(urls_that_are_refused),
        G_ROW(passwords_are_not_told),
        G_ROW(a_store_is_no_place_for_tables),
        G_ROW(a_file_stays_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
