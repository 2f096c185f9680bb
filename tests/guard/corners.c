/*
 * corners.c: what is rare in tables and statements, and must not give a wrong answer: names that
 * change their meaning, rows that are replaced, keys of odd types, settings that would stay.
 */
#include <unistd.h>

#include "rows.h"

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A search_path that a statement has set decides which table is meant, then and there only. */
G_TEST(a_search_path_is_set_in_a_transaction)
{
    char sql[160];

    if (!g->is_postgres)
        return;
    t_sql(g, "CREATE SCHEMA other_path");
    t_sql(g, "CREATE TABLE acc (id INTEGER PRIMARY KEY, n BIGINT)");
    t_sql(g, "CREATE TABLE other_path.acc (id INTEGER PRIMARY KEY, n BIGINT)");
    t_sql(g, "INSERT INTO acc VALUES (1, 0)");
    t_sql(g, "INSERT INTO other_path.acc VALUES (1, 0)");
    il_guard *c = t_rows_open(g, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        il_guard_tx *tx = begin(c);
        R_RUN(il_guard_add(tx, R_ROW("Term", "acc", "id", R_INT(1)), "n", 1, NULL, NULL, why));
        (void)snprintf(sql, sizeof sql, "SET LOCAL search_path = other_path");
        t_exec(tx, sql);
        T_EQ(il_guard_lock(tx, R_ROW("User", "acc", "id", R_INT(1)), NULL, NULL), IL_OK);
        R_RUN(il_guard_add(tx, R_ROW("User", "acc", "id", R_INT(1)), "n", 100, NULL, NULL, why));
        t_commit(tx);
    }
    T_EQ(t_ground_count(g, "SELECT n FROM acc"), 3);
    T_EQ(t_ground_count(g, "SELECT n FROM other_path.acc"), 300);
    il_guard_close(c);
    t_sql(g, "DROP SCHEMA other_path CASCADE");
}

/* A column that was renamed is an error, then found by its new name; never a text. */
G_TEST(a_column_is_renamed)
{
    il_guard *c = t_rows_open(g, NULL, NULL);

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_ROW("User", "users", "email", R_TEXT("a")), NULL, why));
    t_commit(tx);
    t_sql(g, "ALTER TABLE users RENAME COLUMN email TO mail");
    tx = begin(c);
    T_EQ(il_guard_lock(tx, R_ROW("User", "users", "email", R_TEXT("a")), NULL, NULL), IL_INVAL);
    il_guard_rollback(tx);
    tx = begin(c);
    R_RUN(il_guard_lock(tx, R_ROW("User", "users", "mail", R_TEXT("a")), NULL, why));
    t_commit(tx);
    il_guard_close(c);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct waiter {
    il_guard *c;
    int64_t   found;
};

static il_status
lock_first(void *cookie, il_error *err)
{
    struct waiter *w  = cookie;
    il_guard_tx   *tx = t_begin(w->c, NULL, false);
    il_status      st = il_guard_lock(tx, R_USER(1), NULL, err);

    il_guard_rollback(tx);
    return st;
}

static il_status
take_five(void *cookie, il_error *err)
{
    struct waiter *w   = cookie;
    int64_t        min = 0;
    il_guard_tx   *tx  = t_begin(w->c, NULL, false);
    il_status      st  = il_guard_add(tx, R_USER(1), "balance", -5, &min, &w->found, err);

    il_guard_rollback(tx);
    return st;
}

/* What waits for a row that is deleted and inserted again finds it. */
static void
replace(struct t_ground *g, t_task_fn *fn, int64_t balance)
{
    il_guard     *a = t_rows_open(g, NULL, NULL), *b = t_rows_open(g, NULL, NULL);
    struct waiter w = { .c = b };
    struct t_task task;
    char          sql[160];

    il_guard_tx *tx = begin(a);
    t_exec(tx, "DELETE FROM users WHERE id = 1");
    (void)snprintf(sql, sizeof sql, "INSERT INTO users (id, email, balance) VALUES (1, 'a', %d)",
                   (int)balance);
    t_exec(tx, sql);
    int64_t pid = t_pid_of(tx);
    t_task_start(&task, fn, &w);
    T_TRUE(t_is_waited_for(g, pid, &task));
    t_commit(tx);
    T_EQ(t_task_end(&task), IL_OK);
    il_guard_close(a);
    il_guard_close(b);
}

G_TEST(a_row_is_replaced)
{
    t_rows_make(g);
    if (!g->is_postgres)
        return;
    replace(g, lock_first, 10);
    t_sql(g, "UPDATE users SET balance = 1 WHERE id = 1");
    replace(g, take_five, 10);
}

static int
take_text(void *cookie, const il_guard_row *row)
{
    (void)snprintf(cookie, 64, "%s", (const char *)row->values[0].data);
    return 0;
}

/* Keys whose type is a domain over a number are locked in the order in which they are compared. */
G_TEST(keys_of_a_domain)
{
    il_guard_value      ids[] = { R_INT(10), R_INT(9) };
    size_t              n     = 0;
    struct t_row_events seen;

    if (!g->is_postgres)
        return;
    t_sql(g, "CREATE DOMAIN number AS bigint");
    t_sql(g, "CREATE TABLE d (id number PRIMARY KEY, x float8)");
    t_sql(g, "INSERT INTO d VALUES (9, 1.5), (10, 2.5)");
    il_guard    *c  = t_rows_open(g, NULL, &seen);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock_many(tx, &(il_guard_target){ .entity = "User", .table = "d" }, "id", ids, 2,
                             &n, why));
    T_EQ(n, 2);
    t_commit(tx);
    T_STREQ(seen.rows[0].key, "9");
    T_STREQ(seen.rows[1].key, "10");
    T_EQ(t_ground_count(g, "SELECT count(*) FROM d"), 2);
    il_guard_close(c);
}

G_TEST(a_key_that_matches_two_rows)
{
    il_guard *c = t_rows_open(g, NULL, NULL);

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_TERM(1), NULL, why));
    T_EQ(il_guard_lock(tx, R_ROW("Term", "terms", "code", R_TEXT("x")), NULL, NULL), IL_INVAL);
    il_guard_rollback(tx);
    il_guard_close(c);
}

/* SQLite allows NULL in a primary key: such a row cannot be told from another. */
G_TEST(a_key_that_is_null)
{
    il_guard *c = t_rows_open(g, NULL, NULL);

    if (!g->is_postgres) {
        t_sql(g, "CREATE TABLE n (id TEXT PRIMARY KEY, x TEXT)");
        t_sql(g, "INSERT INTO n VALUES (NULL, 'a'), (NULL, 'b')");
        il_guard_tx *tx = begin(c);
        T_EQ(il_guard_lock(tx, R_ROW("User", "n", "x", R_TEXT("a")), NULL, NULL), IL_INVAL);
        il_guard_rollback(tx);
    }
    il_guard_close(c);
}

/* ---- answers --------------------------------------------------------------------------------- */

G_TEST(an_aggregate_that_is_no_integer)
{
    il_guard               *c     = t_rows_open(g, NULL, NULL);
    int64_t                 value = 7;
    const il_guard_children sum   = {
          .aggregate = IL_GUARD_SUM, .table = "kids", .parent = "term", .column = "x"
    };
    const il_guard_children most = {
        .aggregate = IL_GUARD_MAX, .table = "kids", .parent = "term", .column = "x"
    };

    t_rows_make(g);
    t_sql(g, "CREATE TABLE kids (id INTEGER PRIMARY KEY, term INTEGER, x NUMERIC)");
    t_sql(g, "ALTER TABLE terms ADD COLUMN worth NUMERIC");
    t_sql(g, "INSERT INTO kids VALUES (1, 1, 1.5), (2, 1, 2.25)");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_TERM(1), NULL, why));
    R_RUN(il_guard_recompute(tx, R_TERM(1), "worth", &sum, NULL, why));
    R_RUN(il_guard_lock(tx, R_TERM(2), NULL, why));
    R_RUN(il_guard_recompute(tx, R_TERM(2), "worth", &most, &value, why)); /* no child */
    T_EQ(value, 0);
    T_EQ(il_guard_recompute(tx, R_TERM(1), "worth", &sum, &value, NULL), IL_INVAL);
    il_guard_rollback(tx);
    il_guard_close(c);
}

/* A caller who wants no more rows of a change still gets all of it. */
G_TEST(a_change_whose_rows_are_not_read)
{
    il_guard            *c       = t_rows_open(g, NULL, NULL);
    int64_t              changed = -1;
    char                 text[64];
    const il_guard_query q = { .sql    = "UPDATE users SET state = 'x' RETURNING email",
                               .each   = take_text,
                               .cookie = text };

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_exec(tx, &q, &changed, why));
    T_EQ(changed, 5);
    t_commit(tx);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM users WHERE state = 'x'"), 5);
    il_guard_close(c);
}

/* ---- settings -------------------------------------------------------------------------------- */

G_TEST(foreign_keys_that_are_not_enforced)
{
    il_guard *c = t_rows_open(g, NULL, NULL);

    t_rows_make(g);
    t_sql(g, "CREATE TABLE seats (id INTEGER PRIMARY KEY, term INTEGER, "
             "CONSTRAINT seats_term FOREIGN KEY (term) REFERENCES terms (id))");
    il_guard_tx *tx = begin(c);
    T_EQ(il_guard_require_constraint(tx, "seats", "seats_term", NULL),
         g->is_postgres ? IL_OK : IL_NOT_FOUND);
    T_EQ(il_guard_require_constraint(tx, "users", "users_balance", NULL), IL_OK);
    t_commit(tx);
    il_guard_close(c);
}

G_TEST(settings_that_would_stay)
{
    static const char *const texts[] = { "PRAGMA ignore_check_constraints = on",
                                         "PRAGMA busy_timeout = 1", "PRAGMA wal_autocheckpoint = 9",
                                         "PRAGMA synchronous = off" };
    il_guard                *c       = t_rows_open(g, NULL, NULL);
    il_error                 err;

    for (size_t i = 0; !g->is_postgres && i < ARRAY_LEN(texts); i++) {
        il_guard_tx *tx = begin(c);
        T_EQ(t_try(tx, texts[i], &err), IL_INVAL);
        il_guard_rollback(tx);
        tx = begin(c);
        t_exec(tx, "PRAGMA synchronous"); /* to read it is fine */
        t_commit(tx);
    }
    il_guard_close(c);
}

/* The lock file is the database's, whatever name it was opened by. */
G_TEST(a_file_behind_a_symbolic_link)
{
    char          link[T_PATH_BYTES], url[T_PATH_BYTES], lock[T_PATH_BYTES];
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_guard     *c = NULL;

    if (g->is_postgres)
        return;
    t_rows_make(g);
    t_path(link, "%s/link.db", g->dir);
    t_path(url, "sqlite:%s", link);
    t_path(lock, "%s-lock", link);
    T_EQ(symlink(g->path, link), 0);
    o.flags = IL_GUARD_OWN_FILE;
    R_RUN(il_guard_open(url, &o, &c, why));
    il_guard_tx *tx = begin(c);
    t_exec(tx, "UPDATE users SET small = 2");
    t_commit(tx);
    il_guard_close(c);
    T_TRUE(access(lock, F_OK) != 0);
    t_path(lock, "%s-lock", g->path);
    T_TRUE(access(lock, F_OK) == 0);
}

/* ---- a commit that was refused --------------------------------------------------------------- */

/* The connection is not given to the next transaction with this one still open. */
G_TEST(a_refused_commit)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    il_error  err;

    t_rows_make(g);
    if (g->is_postgres) {
        t_sql(g, "CREATE TABLE later (id INTEGER PRIMARY KEY, term INTEGER REFERENCES terms (id) "
                 "DEFERRABLE INITIALLY DEFERRED)");
        for (int i = 0; i < 3; i++) {
            il_guard_tx *tx = begin(c);
            t_exec(tx, "INSERT INTO later VALUES (1, 99)");
            T_EQ(il_guard_commit(tx, &err), IL_FOREIGN_KEY);
        }
        T_EQ(t_ground_count(g, "SELECT count(*) FROM later"), 0);
    }
    il_guard_close(c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        G_ROW(a_search_path_is_set_in_a_transaction),
        G_ROW(a_column_is_renamed),
        G_ROW(a_row_is_replaced),
        G_ROW(keys_of_a_domain),
        G_ROW(a_key_that_matches_two_rows),
        G_ROW(a_key_that_is_null),
        G_ROW(an_aggregate_that_is_no_integer),
        G_ROW(a_change_whose_rows_are_not_read),
        G_ROW(foreign_keys_that_are_not_enforced),
        G_ROW(settings_that_would_stay),
        G_ROW(a_file_behind_a_symbolic_link),
        G_ROW(a_refused_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
