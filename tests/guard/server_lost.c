/*
 * server_lost.c: a PostgreSQL server that stops in the middle, cut connections, users without
 * permission. Unacknowledged work is not committed, or its outcome is reported as unknown.
 */
#include <pthread.h>
#include <stdio.h>

#include "guard/ground.h"
#include "harness/clock.h"
#include "harness/event.h"
#include "harness/postgres.h"
#include "harness/proxy.h"

static struct t_postgres server;
static il               *store;
static il_guard_fence    fence;

static const char *
ask(const char *sql, char out[T_PG_TEXT_BYTES])
{
    return t_postgres_ask(server.url, sql, out);
}

static il_guard *
open_at(const char *url, int64_t timeout_ms)
{
    il_guard *c = NULL;
    il_error  err;

    for (int64_t until_ms = t_real_ms() + G_LIMIT_MS;
         t_guard_open(url, timeout_ms, &c, &err) != IL_OK;)
        T_TRUE(t_real_ms() < until_ms);
    return c;
}

/* A guarded transaction that writes one row. */
static il_status
write_row(il_guard *c, unsigned n, il_error *err)
{
    il_guard_tx *tx = NULL;
    char         number[16];
    const char  *values[] = { number };

    *err = (il_error){ .message = "" };
    (void)snprintf(number, sizeof number, "%u", n);
    il_status st = t_guard_begin(c, &fence, false, &tx, err);
    if (st == IL_OK)
        st = t_guard_exec(tx, "INSERT INTO t VALUES ($1)", values, 1, NULL, NULL, NULL, err);
    if (st == IL_OK)
        return il_guard_commit(tx, err);
    il_guard_rollback(tx);
    return st;
}

static bool
is_there(unsigned n)
{
    char sql[128], out[T_PG_TEXT_BYTES];

    (void)snprintf(sql, sizeof sql, "SELECT count(*)::text FROM t WHERE id = %u", n);
    T_TRUE(strlen(ask(sql, out)) == 1);
    T_TRUE(out[0] == '0' || out[0] == '1');
    return out[0] == '1';
}

/* Lose the n-th request or answer, n = 1, 2, … until there is none left to lose. */
static void
lose_each(enum t_proxy_loss what, unsigned from)
{
    char     target[T_PATH_BYTES], url[T_PATH_BYTES];
    unsigned n_unknown = 0;
    bool     lost      = true;

    t_path(target, "127.0.0.1:%d", server.port);
    struct t_proxy *proxy = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres", t_proxy_port(proxy));
    for (unsigned n = 1; lost; n++) {
        il_guard *c = open_at(url, 3000);
        il_error  err;
        t_proxy_lose(proxy, what, n);
        il_status st = write_row(c, from + n, &err);
        lost         = t_proxy_lost(proxy);
        t_proxy_lose(proxy, what, 0);
        bool unknown = st == IL_UNKNOWN;
        n_unknown += unknown ? 1 : 0;
        if (st != IL_OK && !(lost && (st == IL_STORE || st == IL_UNKNOWN)))
            T_FAIL("%u: %s", n, err.message);
        if (!unknown)
            T_EQ(is_there(from + n), st == IL_OK);
        T_TRUE(n < 100);
        /* The next one works, on a connection without leftovers. */
        if (write_row(c, from + 50 + n, &err) != IL_OK)
            T_FAIL("%u: %s", n, err.message);
        T_TRUE(is_there(from + 50 + n));
        il_guard_close(c);
    }
    T_EQ(n_unknown, 1); /* the commit, and nothing else */
    t_proxy_free(proxy);
}

U_TEST(requests_that_are_lost)
{
    lose_each(T_PROXY_REQUEST, 1000);
}

U_TEST(answers_that_are_lost)
{
    lose_each(T_PROXY_ANSWER, 2000);
}

U_TEST(a_session_that_is_ended)
{
    il_guard    *c = open_at(server.url, 0);
    il_guard_tx *tx;
    char         out[T_PG_TEXT_BYTES];
    il_error     err;

    tx = t_begin(c, &fence, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    (void)ask("SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE "
              "application_name = 'interlock' "
              "AND state = 'idle in transaction'",
              out);
    T_STREQ(out, "1");
    T_EQ(t_try(tx, "INSERT INTO t VALUES (1)", &err), IL_STORE);
    T_EQ(il_guard_commit(tx, &err), IL_STATE);
    T_TRUE(!is_there(1));
    tx = t_begin(c, &fence, false);
    t_exec(tx, "INSERT INTO t VALUES (1)");
    (void)ask("SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE "
              "application_name = 'interlock' "
              "AND state = 'idle in transaction'",
              out);
    T_EQ(il_guard_commit(tx, &err), IL_STORE);
    T_TRUE(!is_there(1));
    T_EQ(write_row(c, 1, &err), IL_OK);
    il_guard_close(c);
}

U_TEST(a_server_that_is_restarted)
{
    il_guard    *c  = open_at(server.url, 0);
    il_guard_tx *tx = t_begin(c, &fence, false);
    il_error     err;

    t_exec(tx, "INSERT INTO t VALUES (2)");
    t_postgres_kill(&server);
    T_EQ(il_guard_commit(tx, &err), IL_STORE);
    T_EQ(write_row(c, 2, &err), IL_STORE);
    t_postgres_start(&server, NULL);
    T_TRUE(!is_there(2));
    T_EQ(write_row(c, 2, &err), IL_OK);
    T_TRUE(is_there(2));
    il_guard_close(c);
}

/* A network that is cut: nothing comes, nothing is refused. Who is told to stop does not wait for
 * it. */
struct stuck {
    il_guard      *c;
    struct t_event begins, done;
    il_status      status;
    il_error       err;
};

static void *
stuck_main(void *arg)
{
    struct stuck *s = arg;

    t_event_add(&s->begins);
    s->status = write_row(s->c, 3, &s->err);
    t_event_add(&s->done);
    return NULL;
}

U_TEST(a_network_that_is_cut)
{
    char         target[T_PATH_BYTES], url[T_PATH_BYTES];
    struct stuck s = { 0 };
    pthread_t    thread;
    il_error     err;

    t_path(target, "127.0.0.1:%d", server.port);
    struct t_proxy *proxy = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres", t_proxy_port(proxy));
    s.c = open_at(url, 300);
    t_proxy_cut(proxy, true);
    T_EQ(write_row(s.c, 3, &err), IL_STORE); /* within its time */
    t_proxy_cut(proxy, false);
    il_guard_close(s.c);

    s.c = open_at(url, 600000);
    t_event_init(&s.begins);
    t_event_init(&s.done);
    t_proxy_cut(proxy, true);
    T_EQ(pthread_create(&thread, NULL, stuck_main, &s), 0);
    T_WAIT(&s.begins, 1, G_LIMIT_MS);
    il_guard_interrupt(s.c);
    T_WAIT(&s.done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(s.status, IL_CANCELLED);
    t_proxy_cut(proxy, false);
    il_guard_close(s.c);
    T_TRUE(!is_there(3));
    t_event_release(&s.begins);
    t_event_release(&s.done);
    t_proxy_free(proxy);
}

/* Connecting to a server that does not answer is interrupted, too. */
static void *
connect_main(void *arg)
{
    struct stuck *s = arg;

    t_event_add(&s->begins);
    s->status = il_guard_connect(s->c, &s->err);
    t_event_add(&s->done);
    return NULL;
}

U_TEST(connecting_is_interrupted)
{
    char         target[T_PATH_BYTES], url[T_PATH_BYTES];
    struct stuck s = { 0 };
    pthread_t    thread;

    t_path(target, "127.0.0.1:%d", server.port);
    struct t_proxy *proxy = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres", t_proxy_port(proxy));
    t_proxy_cut(proxy, true);
    T_EQ(t_guard_new(url, 600000, &s.c, &s.err), IL_OK);
    t_event_init(&s.begins);
    t_event_init(&s.done);
    T_EQ(pthread_create(&thread, NULL, connect_main, &s), 0);
    T_WAIT(&s.begins, 1, G_LIMIT_MS);
    T_TRUE(!t_event_wait(&s.done, 1, 100));
    il_guard_interrupt(s.c);
    T_WAIT(&s.done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(s.status, IL_CANCELLED);
    il_guard_close(s.c);
    t_event_release(&s.begins);
    t_event_release(&s.done);
    t_proxy_free(proxy);
}

U_TEST(users_who_may_not)
{
    char         out[T_PG_TEXT_BYTES], url[T_PATH_BYTES];
    il_guard    *c  = NULL;
    il_guard_tx *tx = NULL;
    il          *h  = NULL;
    il_error     err;

    /* May not make the table; once it is there and may be written, all is well. */
    (void)ask("CREATE ROLE guest LOGIN", out);
    (void)ask("CREATE SCHEMA guests AUTHORIZATION postgres", out);
    (void)ask("GRANT USAGE ON SCHEMA guests TO guest", out);
    t_path(url, "%s&user=guest&options=-csearch_path%%3Dguests", server.url);
    c = open_at(url, 0);
    T_EQ(t_guard_begin(c, &fence, false, &tx, &err), IL_INVAL);
    T_HAS(err.message, "interlock_fence");
    (void)ask("CREATE TABLE guests.interlock_fence (tenant text NOT NULL, key text NOT NULL, fence "
              "bigint NOT NULL, "
              "shown_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tenant, key))",
              out);
    (void)ask("GRANT SELECT, INSERT, UPDATE ON guests.interlock_fence TO guest", out);
    tx = t_begin(c, &fence, false);
    T_EQ(il_guard_commit(tx, &err), IL_OK);
    il_guard_close(c);

    /* The store is in the same database, and the user may not use it: not by another way, which the
     * others would not see. */
    T_EQ(il_open(server.url, NULL, &h, &err), IL_OK);
    il_guard_fence f = t_fence(h, t_take(h, "a", 60000));
    c                = open_at(url, 0);
    T_EQ(t_guard_begin(c, &f, false, &tx, &err), IL_INVAL);
    T_HAS(err.message, "check_fence()");
    (void)ask("GRANT USAGE ON SCHEMA interlock TO guest", out);
    (void)ask("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interlock TO guest",
              out);
    tx = t_begin(c, &f, false);
    t_exec(tx, "SELECT 1");
    if (il_guard_commit(tx, &err) != IL_OK)
        T_FAIL("%s", err.message);
    il_guard_close(c);
    il_close(h);
}

/* A server ends a transaction whose owner does nothing for long: what keeps the next holder waiting
 * has an end. */
static int
take_text(void *cookie, const il_guard_row *row)
{
    (void)snprintf(cookie, 64, "%s", t_guard_text(row, 0));
    return 1;
}

U_TEST(a_transaction_that_is_idle)
{
    il_guard    *c  = open_at(server.url, 0);
    il_guard_tx *tx = t_begin(c, &fence, false);
    char         text[64];
    il_error     err;

    T_EQ(t_guard_exec(tx, "SHOW idle_in_transaction_session_timeout", NULL, 0, take_text, text,
                      NULL, &err),
         IL_OK);
    T_STREQ(text, "30s");
    /* What the server does then, sooner. */
    t_exec(tx, "SET LOCAL idle_in_transaction_session_timeout = '50ms'");
    int64_t until_ms = t_real_ms() + G_LIMIT_MS;
    char    out[T_PG_TEXT_BYTES];
    do
        T_TRUE(t_real_ms() < until_ms);
    while (strcmp(ask("SELECT count(*)::text FROM pg_stat_activity WHERE application_name = "
                      "'interlock' AND pid <> pg_backend_pid()",
                      out),
                  "0") != 0);
    T_EQ(il_guard_commit(tx, &err), IL_STORE);
    il_guard_close(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(requests_that_are_lost),     U_ROW(answers_that_are_lost),
        U_ROW(a_session_that_is_ended),    U_ROW(a_server_that_is_restarted),
        U_ROW(a_network_that_is_cut),      U_ROW(connecting_is_interrupted),
        U_ROW(a_transaction_that_is_idle), U_ROW(users_who_may_not),
    };
    char     out[T_PG_TEXT_BYTES];
    il_error err;

    t_postgres_init(&server, true, true);
    t_postgres_start(&server, NULL);
    (void)ask("CREATE TABLE t (id int)", out);
    T_EQ(il_open("memory:", NULL, &store, &err), IL_OK);
    fence     = t_fence(store, t_take(store, "a", 600000));
    int n_bad = cmocka_run_group_tests(tests, NULL, NULL);
    il_close(store);
    t_postgres_release(&server);
    return n_bad;
}
