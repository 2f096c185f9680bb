/*
 * inserts.c: insert or get, and constraints: those in force, and those that a statement violates.
 */
#include "guard/rows.h"

struct second {
    il_guard *c;
    int64_t   value;
};

static il_guard_tx *
begin(il_guard *c)
{
    return t_begin(c, NULL, false);
}

/* ---- insert or get --------------------------------------------------------------------------- */

static il_status
insert(il_guard_tx *tx, const char *email, const char *code, const char *state, int *inserted,
       int64_t *id, il_error *err)
{
    static const char *const unique[]  = { "email", "state" };
    const il_guard_column    columns[] = { { "email", R_TEXT(email) },
                                           { "code", R_TEXT(code) },
                                           { "state", R_TEXT(state) } };
    il_guard_id              got       = { NULL, 0 };

    *inserted    = -1;
    *id          = 0;
    *err         = (il_error){ .message = "" };
    il_status st = il_guard_insert_or_get(tx, "people", columns, 3, unique, 2, inserted, &got, err);
    if (st == IL_OK)
        *id = got.values[0].integer;
    return st;
}

static void
make_people(const struct t_ground *g)
{
    t_sql(g, g->is_postgres
                 ? "CREATE TABLE people (id SERIAL PRIMARY KEY, email TEXT, code TEXT, state TEXT)"
                 : "CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT, code TEXT, "
                   "state TEXT)");
    t_sql(g, "CREATE UNIQUE INDEX people_code ON people (code)");
    t_sql(g, "CREATE UNIQUE INDEX people_live ON people (email, state) WHERE state <> 'gone'");
}

G_TEST(a_row_is_inserted_or_found)
{
    struct t_row_events seen;
    il_guard           *c = t_rows_open(g, NULL, &seen);
    int                 inserted;
    int64_t             id = 0, first = 0;
    il_error            err;

    make_people(g);
    il_guard_tx *tx = begin(c);
    T_EQ(insert(tx, "a", "1", "on", &inserted, &first, &err), IL_OK);
    T_EQ(inserted, 1);
    T_TRUE(first > 0);
    T_EQ(insert(tx, "a", "2", "on", &inserted, &id, &err), IL_OK);
    T_EQ(inserted, 0);
    T_EQ(id, first);
    T_STREQ(err.message, ""); /* an answer is no failure */
    /* another unique constraint, and the transaction goes on */
    T_EQ(insert(tx, "b", "1", "on", &inserted, &id, &err), IL_UNIQUE);
    T_STREQ(err.constraint, "people_code");
    /* rows that the partial index does not cover */
    T_EQ(insert(tx, "a", "3", "gone", &inserted, &id, &err), IL_OK);
    T_EQ(inserted, 1);
    T_EQ(insert(tx, "a", "4", "gone", &inserted, &id, &err), IL_OK);
    T_EQ(inserted, 1);
    T_TRUE(id != first);
    /* NULLs are distinct */
    T_EQ(insert(tx, NULL, "5", "on", &inserted, &id, &err), IL_OK);
    T_EQ(inserted, 1);
    T_EQ(insert(tx, NULL, NULL, "on", &inserted, &id, &err), IL_OK);
    T_EQ(inserted, 1);
    t_commit(tx);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM people"), 5);
    T_EQ(seen.n, 0); /* new rows have no rank and are not locked */
    tx = begin(c);   /* which of two rows is meant? */
    T_EQ(insert(tx, "a", "1", "gone", &inserted, &id, &err), IL_INVAL);
    T_HAS(err.message, "several rows");
    il_guard_rollback(tx);
    il_guard_close(c);
}

static il_status
insert_twice(void *cookie, il_guard_tx *tx, il_error *err)
{
    int       inserted;
    int64_t   id, *ret = cookie;
    il_status st = insert(tx, "a", "1", "on", &inserted, &id, err);

    if (st == IL_OK)
        st = insert(tx, "a", "2", "on", &inserted, ret, err);
    if (st == IL_OK && (inserted != 0 || *ret != id))
        return IL_BUSY;
    return st == IL_OK ? insert(tx, "b", "1", "on", &inserted, &id, err) : st;
}

G_TEST(inserts_in_a_savepoint)
{
    il_guard *c  = t_rows_open(g, NULL, NULL);
    int64_t   id = 0;
    int       inserted;
    il_error  err;

    make_people(g);
    il_guard_tx *tx = begin(c);
    T_EQ(insert(tx, "z", "z", "on", &inserted, &id, &err), IL_OK);
    T_EQ(il_guard_try(tx, insert_twice, &id, &err), IL_UNIQUE);
    T_STREQ(err.constraint, "people_code");
    T_EQ(insert(tx, "z", "y", "on", &inserted, &id, &err), IL_OK);
    T_EQ(inserted, 0);
    t_commit(tx);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM people"), 1);
    il_guard_close(c);
}

/* It fails for another reason: the transaction is good for rollback only. */
G_TEST(an_insert_that_fails)
{
    struct t_row_events      seen;
    il_guard                *c         = t_rows_open(g, NULL, &seen);
    static const char *const unique[]  = { "email" };
    const il_guard_column    columns[] = { { "id", R_INT(9) },
                                           { "email", R_TEXT("n") },
                                           { "balance", R_INT(-1) } };
    il_error                 err;

    t_rows_make(g);
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    T_EQ(il_guard_insert_or_get(tx, "users", columns, 3, unique, 1, NULL, NULL, &err), IL_CHECK);
    T_STREQ(err.constraint, "users_balance");
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    T_EQ(seen.n, 1);
    T_EQ(seen.rows[0].outcome, IL_GUARD_VIOLATION);
    T_STREQ(seen.rows[0].constraint, "users_balance");
    il_guard_close(c);
}

static il_status
insert_and_commit(void *cookie, il_error *err)
{
    struct second *s  = cookie;
    il_guard_tx   *tx = NULL;
    int            inserted;

    il_status st = il_guard_begin(s->c, NULL, &tx, err);
    if (st == IL_OK)
        st = insert(tx, "a", "2", "on", &inserted, &s->value, err);
    if (st == IL_OK && inserted != 0)
        st = IL_BUSY;
    if (st == IL_OK)
        return il_guard_commit(tx, err);
    il_guard_rollback(tx);
    return st;
}

G_TEST(two_inserts_at_once)
{
    il_guard     *a = t_rows_open(g, NULL, NULL);
    struct second b = { .c = t_rows_open(g, NULL, NULL) };
    struct t_task task;
    int           inserted;
    int64_t       id = 0;
    il_error      err;

    make_people(g);
    il_guard_tx *tx = begin(a);
    T_EQ(insert(tx, "a", "1", "on", &inserted, &id, &err), IL_OK);
    int64_t pid = g->is_postgres ? t_pid_of(tx) : 0;
    t_task_start(&task, insert_and_commit, &b);
    if (g->is_postgres)
        T_TRUE(t_is_waited_for(g, pid, &task));
    t_commit(tx);
    T_EQ(t_task_end(&task), IL_OK);
    T_EQ(b.value, id);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM people"), 1);
    il_guard_close(a);
    il_guard_close(b.c);
}

/* ---- constraints ----------------------------------------------------------------------------- */

G_TEST(constraints_in_force)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    il_error  err;

    t_rows_make(g);
    make_people(g);
    t_sql(g, "CREATE INDEX people_state ON people (state)");
    if (g->is_postgres)
        t_sql(g, "ALTER TABLE users ADD CONSTRAINT users_later CHECK (small > 5) NOT VALID");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_require_constraint(tx, "users", "users_email", why));
    R_RUN(il_guard_require_constraint(tx, "users", "users_balance", why));
    R_RUN(il_guard_require_constraint(tx, "people", "people_code", why));
    R_RUN(il_guard_require_constraint(tx, "people", "people_live", why));
    T_EQ(il_guard_require_constraint(tx, "people", "people_state", &err), IL_NOT_FOUND);
    T_EQ(il_guard_require_constraint(tx, "people", "users_email", &err), IL_NOT_FOUND);
    T_EQ(il_guard_require_constraint(tx, "users", "users_later", &err), IL_NOT_FOUND);
    T_HAS(err.message, "users_later");
    T_EQ(il_guard_require_constraint(tx, "nobody", "users_email", &err), IL_NOT_FOUND);
    t_commit(tx);
    il_guard_close(c);
}

/* ---- violations ------------------------------------------------------------------------------ */

/* A statement that violates a constraint, inside il_guard_try(): the transaction goes on. */
struct statement {
    const char *sql;
};

static il_status
run_statement(void *cookie, il_guard_tx *tx, il_error *err)
{
    const struct statement *s = cookie;
    const il_guard_query    q = { .sql = s->sql };

    return il_guard_exec(tx, &q, NULL, err);
}

G_TEST(violated_constraints_have_names)
{
    il_guard *c = t_rows_open(g, NULL, NULL);
    const struct {
        const char *sql;
        il_status   status;
        const char *sqlite, *postgres;
    } rows[] = {
        { "INSERT INTO t (id) VALUES (1)", IL_UNIQUE, "", "t_pkey" },
        { "INSERT INTO t (id, a, b) VALUES (2, 1, 1)", IL_UNIQUE, "t_ab", "t_ab" },
        { "INSERT INTO t (id, name) VALUES (2, 'LIVE')", IL_UNIQUE, "t_name", "t_name" },
        { "INSERT INTO t (id, n) VALUES (2, -1)", IL_CHECK, "t_n", "t_n" },
        { "INSERT INTO t (id, must) VALUES (2, NULL)", IL_CHECK, NULL, NULL },
        { "INSERT INTO t (id, up) VALUES (2, 99)", IL_FOREIGN_KEY, "", "t_up" },
        { "UPDATE t SET id = 9 WHERE id = 1", IL_FOREIGN_KEY, "", NULL },
    };

    t_sql(g, "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, name TEXT, "
             "n INTEGER CONSTRAINT t_n CHECK (n >= 0), must INTEGER NOT NULL DEFAULT 1, "
             "up INTEGER CONSTRAINT t_up REFERENCES t (id))");
    t_sql(g, "CREATE UNIQUE INDEX t_ab ON t (a, b)");
    t_sql(g, "CREATE UNIQUE INDEX t_name ON t (lower(name))");
    t_sql(g, "INSERT INTO t (id, a, b, name, up) VALUES (1, 1, 1, 'live', NULL)");
    t_sql(g, "INSERT INTO t (id, up) VALUES (5, 1)");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_error         err = { .message = "" };
        struct statement s   = { rows[i].sql };
        if (rows[i].status == IL_FOREIGN_KEY && !g->is_postgres)
            continue; /* SQLite checks them on request only: the next test */
        il_guard_tx *tx = begin(c);
        if (il_guard_try(tx, run_statement, &s, &err) != rows[i].status)
            T_FAIL("%s: %s: %s", s.sql, il_status_name(err.status), err.message);
        const char *name = g->is_postgres ? rows[i].postgres : rows[i].sqlite;
        if (name != NULL)
            T_STREQ(err.constraint, name);
        t_exec(tx, "SELECT 1");
        t_commit(tx);
    }
    il_guard_close(c);
}

/* A deferred constraint is checked by the commit. */
G_TEST(a_deferred_constraint_fails_the_commit)
{
    struct t_row_events seen;
    il_guard_opts       o = IL_GUARD_OPTS_INIT;
    il_error            err;

    o.flags     = g->is_postgres ? 0 : IL_GUARD_OWN_FILE; /* foreign keys on */
    il_guard *c = t_rows_open(g, &o, &seen);
    t_rows_make(g);
    t_sql(g, "CREATE TABLE kids (id INTEGER PRIMARY KEY, user_id INTEGER "
             "CONSTRAINT kids_user REFERENCES users (id) DEFERRABLE INITIALLY DEFERRED)");
    il_guard_tx *tx = begin(c);
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    t_exec(tx, "INSERT INTO kids VALUES (1, 99)");
    T_EQ(il_guard_commit(tx, &err), IL_FOREIGN_KEY);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM kids"), 0);
    T_EQ(seen.n, 1);
    T_EQ(seen.rows[0].outcome, IL_GUARD_VIOLATION);
    T_STREQ(seen.rows[0].constraint, g->is_postgres ? "kids_user" : "");
    tx = begin(c); /* the connection is good for the next */
    t_exec(tx, "INSERT INTO kids VALUES (1, 1)");
    t_commit(tx);
    il_guard_close(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_row_is_inserted_or_found),
        G_ROW(inserts_in_a_savepoint),
        G_ROW(an_insert_that_fails),
        G_ROW(two_inserts_at_once),
        G_ROW(constraints_in_force),
        G_ROW(violated_constraints_have_names),
        G_ROW(a_deferred_constraint_fails_the_commit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
