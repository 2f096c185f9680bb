/*
 * stop.c: a switch ends the transactions that name it, wherever they are, and no others: in a
 * statement, waiting for a connection, for a lock, or to be tried again.
 */
#include <pthread.h>
#include <stdio.h>

#include "guard/ground.h"
#include "harness/clock.h"
#include "harness/event.h"

/* A transaction on a thread of its own. */
struct runner {
    il_guard        *c;
    il_guard_tx_opts opts;
    const char      *sql;
    struct t_event   begins, done;
    il_status        status;
    pthread_t        thread;
};

static il_status
work(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct runner *r = cookie;

    t_event_add(&r->begins);
    return t_guard_exec(tx, r->sql, NULL, 0, NULL, NULL, NULL, reterr);
}

static void *
run_main(void *arg)
{
    struct runner *r = arg;
    il_error       err;

    r->status = il_guard_transact(r->c, &r->opts, work, r, NULL, &err);
    t_event_add(&r->done);
    return NULL;
}

static void
start(struct runner *r, il_guard *c, il_guard_stop *stop, const char *sql)
{
    *r           = (struct runner){ .c = c, .opts = IL_GUARD_TX_OPTS_INIT, .sql = sql };
    r->opts.stop = stop;
    t_event_init(&r->begins);
    t_event_init(&r->done);
    T_EQ(pthread_create(&r->thread, NULL, run_main, r), 0);
}

static void
expect(struct runner *r, il_status status)
{
    T_WAIT(&r->done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(r->thread, NULL), 0);
    T_EQ(r->status, status);
    t_event_release(&r->begins);
    t_event_release(&r->done);
}

static il_guard *
open_with(const struct t_ground *g, uint32_t conns_max)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_guard     *c = NULL;

    o.conns_max       = conns_max;
    o.lock_timeout_ms = 600000;
    o.search_path     = g->is_postgres ? g->schema : NULL;
    T_EQ(il_guard_open(g->url, &o, &c, NULL), IL_OK);
    return c;
}

static il_guard_stop *
make_stop(il_guard *c)
{
    il_guard_stop *stop = NULL;
    il_error       err;

    T_EQ(il_guard_stop_new(c, &stop, &err), IL_OK);
    return stop;
}

static const char *
endless(const struct t_ground *g)
{
    return g->is_postgres ? "SELECT pg_sleep(600)"
                          : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                            "SELECT max(i) FROM n";
}

/* Only SQLite's readers run at the same time. */
static void
start_reading(struct runner *r, il_guard *c, il_guard_stop *stop, const struct t_ground *g)
{
    start(r, c, stop, endless(g));
    T_WAIT(&r->begins, 1, G_LIMIT_MS);
}

G_TEST(a_statement_ends_and_another_goes_on)
{
    il_guard      *c   = open_with(g, 2);
    il_guard_stop *one = make_stop(c), *other = make_stop(c);
    struct runner  a, b;
    char           out[4096];

    (void)t_ground_ask(g, "CREATE TABLE t (id INTEGER)", out);
    start_reading(&a, c, one, g);
    if (g->is_postgres)
        start_reading(&b, c, other, g);
    il_guard_stop_set(one);
    expect(&a, IL_CANCELLED);
    if (!g->is_postgres)
        start_reading(&b, c, other, g); /* the handle is as good as before */
    T_TRUE(!t_event_wait(&b.done, 1, 50));
    il_guard_stop_set(other);
    expect(&b, IL_CANCELLED);
    if (g->is_postgres) { /* the server does not go on with it */
        int64_t until_ms = t_real_ms() + G_LIMIT_MS;
        while (t_ground_count(g, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
                                 "query = 'SELECT pg_sleep(600)'") != 0)
            T_TRUE(t_real_ms() < until_ms);
    }
    il_guard_tx *tx = t_begin(c, NULL, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    T_EQ(il_guard_commit(tx, NULL), IL_OK);
    il_guard_stop_free(one);
    il_guard_stop_free(other);
    il_guard_close(c);
}

G_TEST(a_wait_for_a_lock_ends)
{
    il_guard      *c = t_ground_open(g, 600000), *other = t_ground_open(g, 0);
    il_guard_stop *stop = make_stop(c);
    struct runner  r;
    char           out[4096];

    (void)t_ground_ask(g, "CREATE TABLE t (id INTEGER UNIQUE)", out);
    il_guard_tx *tx = t_begin(other, NULL, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    start(&r, c, stop, "INSERT INTO t VALUES (1)");
    T_TRUE(!t_event_wait(&r.done, 1, 50));
    il_guard_stop_set(stop);
    expect(&r, IL_CANCELLED);
    il_guard_rollback(tx);
    il_guard_stop_free(stop);
    il_guard_close(other);
    il_guard_close(c);
}

G_TEST(a_wait_for_a_connection_ends)
{
    il_guard      *c    = open_with(g, 1);
    il_guard_stop *stop = make_stop(c);
    il_guard_tx   *tx   = t_begin(c, NULL, true);
    struct runner  r;

    start(&r, c, stop, "SELECT 1");
    T_TRUE(!t_event_wait(&r.done, 1, 50));
    il_guard_stop_set(stop);
    expect(&r, IL_CANCELLED);
    il_guard_rollback(tx);
    il_guard_stop_free(stop);
    il_guard_close(c);
}

G_TEST(before_the_begin_and_before_the_commit)
{
    il_guard        *c    = t_ground_open(g, 0);
    il_guard_stop   *stop = make_stop(c), *set = make_stop(c);
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx = NULL;
    il_error         err;
    char             out[4096];

    (void)t_ground_ask(g, "CREATE TABLE t (id INTEGER)", out);
    il_guard_stop_set(set);
    il_guard_stop_set(set);
    o.stop = set;
    T_EQ(il_guard_begin(c, &o, &tx, &err), IL_CANCELLED);
    o.stop = stop;
    T_EQ(il_guard_begin(c, &o, &tx, &err), IL_OK);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    il_guard_stop_set(stop);
    T_EQ(il_guard_commit(tx, &err), IL_CANCELLED);
    T_EQ(t_ground_count(g, "SELECT count(*) FROM t"), 0);
    il_guard_stop_free(stop);
    il_guard_stop_free(set);
    il_guard_close(c);
}

/* An interrupt of the handle ends those that wait for their switch, and those that are new. */
G_TEST(an_interrupt_sets_all)
{
    il_guard        *c    = t_ground_open(g, 600000);
    il_guard_stop   *stop = make_stop(c);
    il_guard_tx_opts o    = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx   = NULL;
    struct runner    r;

    start_reading(&r, c, stop, g);
    il_guard_interrupt(c);
    expect(&r, IL_CANCELLED);
    il_guard_stop_free(stop);
    o.stop = make_stop(c);
    T_EQ(il_guard_begin(c, &o, &tx, NULL), IL_CANCELLED);
    il_guard_stop_free(o.stop);
    il_guard_close(c);
}

G_TEST(what_is_refused)
{
    il_guard        *c = t_ground_open(g, 0), *other = t_ground_open(g, 0);
    il_guard_stop   *stop = make_stop(other);
    il_guard_tx_opts o    = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx     *tx   = NULL;
    il_error         err;

    o.stop = stop;
    T_EQ(il_guard_begin(c, &o, &tx, &err), IL_INVAL);
    T_HAS(err.message, "another handle");
    T_EQ(il_guard_stop_new(NULL, &stop, &err), IL_INVAL);
    T_EQ(il_guard_stop_new(c, NULL, &err), IL_INVAL);
    il_guard_stop_set(NULL);
    il_guard_stop_free(NULL);
    il_guard_stop_free(stop);
    il_guard_close(other);
    il_guard_close(c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        G_ROW(a_statement_ends_and_another_goes_on),
        G_ROW(a_wait_for_a_lock_ends),
        G_ROW(a_wait_for_a_connection_ends),
        G_ROW(before_the_begin_and_before_the_commit),
        G_ROW(an_interrupt_sets_all),
        G_ROW(what_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
