/*
 * reads.c: a row is locked and a query is run, in one round trip.
 */
#include "guard/rows.h"

struct read {
    int64_t value;
    int     n;
};

static int
take(void *cookie, const il_guard_row *row)
{
    struct read *r = cookie;

    r->value = row->values[0].integer;
    r->n++;
    return 1;
}

static il_status
read_row(il_guard_tx *tx, const il_guard_target *row, const char *sql, struct read *r,
         il_error *err)
{
    *r = (struct read){ .n = 0 };
    return il_guard_lock_read(tx, row, &(il_guard_query){ .sql = sql, .each = take, .cookie = r },
                              err);
}

#define BALANCE "SELECT balance FROM users WHERE id = 1"
#define ALL "SELECT id FROM users ORDER BY id"

G_TEST(a_row_is_locked_and_read)
{
    struct t_row_events  seen;
    il_guard            *c  = t_rows_open(g, NULL, &seen);
    il_guard_tx         *tx = NULL;
    const il_guard_value id = R_INT(1);
    struct read          r;

    t_rows_make(g);
    for (unsigned i = 0; i < 2; i++) { /* the first transaction looks names up */
        R_RUN(il_guard_begin(c, NULL, &tx, why));
        r = (struct read){ .n = 0 };
        R_RUN(il_guard_lock_read(tx, R_USER(1),
                                 &(il_guard_query){ .sql    = "SELECT balance FROM users WHERE id "
                                                              "= $1",
                                                    .values = &id,
                                                    .n_values = 1,
                                                    .each     = take,
                                                    .cookie   = &r },
                                 why));
        T_EQ(r.n, 1);
        T_EQ(r.value, 10);
        R_RUN(read_row(tx, R_USER(1), ALL, &r, why)); /* it is held: only read */
        T_EQ(r.n, 5);
        R_RUN(il_guard_set_json(tx, R_USER(1), "doc", "{}", why)); /* which needs the lock */
        t_commit(tx);
        T_EQ(seen.n, i + 1);
        T_STREQ(seen.rows[i].key, "1");
        T_EQ(seen.rows[i].outcome, IL_GUARD_COMMITTED);
    }
    T_EQ(seen.rows[1].n_queries, 3); /* under the lock: both reads, and the document */
    il_guard_close(c);
}

G_TEST(without_the_row_nothing_is_given)
{
    il_guard    *c  = t_rows_open(g, NULL, NULL);
    il_guard_tx *tx = NULL;
    struct read  r;
    il_error     err;

    t_rows_make(g);
    R_RUN(il_guard_begin(c, NULL, &tx, why));
    T_EQ(read_row(tx, R_USER(99), ALL, &r, &err), IL_NOT_FOUND);
    T_HAS(err.message, "users");
    T_EQ(r.n, 0);
    R_RUN(read_row(tx, R_USER(1), BALANCE, &r, why)); /* an answer: it goes on */
    T_EQ(r.value, 10);
    t_commit(tx);
    R_RUN(il_guard_begin(c, NULL, &tx, why));
    T_EQ(read_row(tx, R_ROW("User", "users", "state", R_TEXT("new")), ALL, &r, &err), IL_INVAL);
    T_HAS(err.message, "several rows");
    T_EQ(r.n, 0);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    il_guard_close(c);
}

G_TEST(what_is_refused)
{
    static const char *const bad[] = { "SELECT no_such FROM users", "COMMIT", "SELECT 1; SELECT 2",
                                       "" };
    il_guard                *c     = t_rows_open(g, NULL, NULL);
    il_guard_tx             *tx    = NULL;
    il_guard_tx_opts         o     = IL_GUARD_TX_OPTS_INIT;
    struct read              r;
    il_error                 err;

    t_rows_make(g);
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        R_RUN(il_guard_begin(c, NULL, &tx, why));
        T_EQ(read_row(tx, R_USER(1), bad[i], &r, &err), IL_INVAL);
        T_EQ(il_guard_commit(tx, &err), IL_STATE);
    }
    R_RUN(il_guard_begin(c, NULL, &tx, why));
    T_EQ(il_guard_lock_read(tx, R_USER(1), NULL, &err), IL_INVAL);
    T_EQ(il_guard_lock_read(tx, NULL, &(il_guard_query){ .sql = ALL }, &err), IL_INVAL);
    T_EQ(il_guard_lock_read(NULL, R_USER(1), &(il_guard_query){ .sql = ALL }, &err), IL_INVAL);
    R_RUN(il_guard_lock(tx, R_USER(2), NULL, why));
    T_EQ(read_row(tx, R_USER(1), BALANCE, &r, &err), IL_ORDER); /* 1 comes before 2 */
    T_EQ(r.n, 0);
    il_guard_rollback(tx);
    o.flags = IL_GUARD_READ_ONLY;
    R_RUN(il_guard_begin(c, &o, &tx, why));
    T_EQ(read_row(tx, R_USER(1), BALANCE, &r, &err), IL_STATE);
    il_guard_rollback(tx);
    il_guard_close(c);
}

/* ---- two at once ----------------------------------------------------------------------------- */

struct second {
    il_guard   *c;
    struct read r;
};

static il_status
read_first(void *cookie, il_error *err)
{
    struct second *s  = cookie;
    il_guard_tx   *tx = NULL;

    il_status st = il_guard_begin(s->c, NULL, &tx, err);
    if (st == IL_OK)
        st = read_row(tx, R_ROW("User", "users", "email", R_TEXT("a")), BALANCE, &s->r, err);
    if (st == IL_OK)
        return il_guard_commit(tx, err);
    il_guard_rollback(tx);
    return st;
}

/* Lock row 1, let another transaction ask for it, change something, and commit. */
static void
meet(const struct t_ground *g, struct second *b, const char *const *changes, size_t n)
{
    il_guard     *a  = t_rows_open(g, NULL, NULL);
    il_guard_tx  *tx = NULL;
    struct t_task task;

    t_rows_make(g);
    R_RUN(il_guard_begin(a, NULL, &tx, why));
    R_RUN(il_guard_lock(tx, R_USER(1), NULL, why));
    int64_t pid = g->is_postgres ? t_pid_of(tx) : 0;
    t_task_start(&task, read_first, b);
    if (g->is_postgres)
        T_TRUE(t_is_waited_for(g, pid, &task));
    for (size_t i = 0; i < n; i++)
        t_exec(tx, changes[i]);
    t_commit(tx);
    T_EQ(t_task_end(&task), IL_OK);
    il_guard_close(a);
}

G_TEST(who_has_waited_reads_what_was_committed)
{
    static const char *const changes[] = { "UPDATE users SET balance = 77 WHERE id = 1" };
    struct second            b         = { .c = t_rows_open(g, NULL, NULL) };

    meet(g, &b, changes, ARRAY_LEN(changes));
    T_EQ(b.r.n, 1);
    T_EQ(b.r.value, 77);
    il_guard_close(b.c);
}

/* The row that it waited for is gone, but there is a new one with this key. */
G_TEST(a_row_that_was_replaced_meanwhile)
{
    static const char *const changes[] = { "DELETE FROM users WHERE id = 1",
                                           "INSERT INTO users (id, email, balance) VALUES (1, 'a', "
                                           "5)" };
    struct second            b         = { .c = t_rows_open(g, NULL, NULL) };

    meet(g, &b, changes, ARRAY_LEN(changes));
    T_EQ(b.r.n, 1);
    T_EQ(b.r.value, 5);
    il_guard_close(b.c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        G_ROW(a_row_is_locked_and_read),
        G_ROW(without_the_row_nothing_is_given),
        G_ROW(what_is_refused),
        G_ROW(who_has_waited_reads_what_was_committed),
        G_ROW(a_row_that_was_replaced_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
