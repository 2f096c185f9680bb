/*
 * server_lost.c: a PostgreSQL server that stops and restarts; a connection cut in the middle; a
 * missing server.
 */
#include <stdio.h>

#include "data/place.h"
#include "harness/clock.h"
#include "harness/postgres.h"
#include "harness/proxy.h"
#include "harness/unit.h"

static struct t_postgres server;

static struct il__data *
open_at(const char *url, int64_t timeout_ms)
{
    struct il__data_open o = { .store_url = url, .timeout_ms = timeout_ms };
    struct il__data     *d = NULL;
    il_error             err;

    if (il__data_open(&o, &d, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return d;
}

U_TEST(a_server_that_is_restarted)
{
    char             id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct il__data *d = open_at(server.url, 0);
    struct t_key     k;
    il_error         err;
    uint64_t         n;

    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    t_postgres_kill(&server);
    T_EQ(il__data_ping(d, &err), IL_STORE);
    T_EQ(il__data_key_count(d, &n, &err), IL_STORE);
    t_postgres_start(&server, NULL);
    /* Nothing has to be opened anew. The first call may find that it is not time to try again
     * yet. */
    for (int64_t until_ms = t_real_ms() + 20000; il__data_ping(d, &err) != IL_OK;)
        T_TRUE(t_real_ms() < until_ms);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    il__data_close(d);
}

U_TEST(connections_that_are_ended)
{
    char              id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX], out[T_PG_TEXT_BYTES];
    struct il__data  *d = open_at(server.url, 0);
    struct t_key      k;
    static const char kill[] =
        "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity WHERE "
        "application_name = 'interlock' AND pid <> pg_backend_pid()";

    /* Neither a reader nor a writer notices. */
    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    (void)t_postgres_ask(server.url, kill, out);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    (void)t_postgres_ask(server.url, kill, out);
    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    il__data_close(d);
}

/* Lose the n-th request or answer, n = 1, 2, ... until a run has none left to lose: a key is either
 * there, with its secret known, or it is an error. */
static void
lose_each(enum t_proxy_loss what)
{
    char target[T_PATH_BYTES], url[T_PATH_BYTES], id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];

    t_path(target, "127.0.0.1:%d", server.port);
    struct t_proxy *proxy = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres", t_proxy_port(proxy));
    bool lost = true;
    for (unsigned n = 1; lost; n++) {
        struct il__data    *d   = open_at(url, 3000);
        struct il__data_key key = { .tenant = "t", .role = DATA_ROLE_READ };
        struct t_key        k;
        il_error            err;
        t_proxy_lose(proxy, what, n);
        il_status st = il__data_key_create(d, &key, true, id, secret, &err);
        lost         = t_proxy_lost(proxy);
        t_proxy_lose(proxy, what, 0);
        T_TRUE(st == IL_OK || (lost && st == IL_STORE));
        T_TRUE(n < 100);
        if (st == IL_OK)
            T_EQ(t_key_find(d, secret, &k), IL_OK);
        /* The next one works, on a connection without leftovers. */
        for (int64_t until_ms = t_real_ms() + 20000;
             il__data_key_create(d, &key, true, id, secret, &err) != IL_OK;)
            T_TRUE(t_real_ms() < until_ms);
        T_EQ(t_key_find(d, secret, &k), IL_OK);
        il__data_close(d);
    }
    t_proxy_free(proxy);
}

U_TEST(requests_that_are_lost)
{
    lose_each(T_PROXY_REQUEST);
}

U_TEST(answers_that_are_lost)
{
    lose_each(T_PROXY_ANSWER);
}

U_TEST(a_user_who_may_not)
{
    char     out[T_PG_TEXT_BYTES], url[T_PATH_BYTES];
    il_error err;

    (void)t_postgres_ask(server.url, "CREATE ROLE nobody LOGIN", out);
    t_path(url, "postgres://nobody@127.0.0.1:%d/postgres?schema=theirs", server.port);
    T_EQ(t_data_try(&(struct il__data_open){ .store_url = url }, &err), IL_STORE);
    T_HAS(err.message, "cannot create");
    (void)t_postgres_ask(server.url, "CREATE SCHEMA theirs_admin AUTHORIZATION nobody", out);
    T_EQ(t_data_try(&(struct il__data_open){ .store_url = url }, &err), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(a_server_that_is_restarted), U_ROW(connections_that_are_ended),
        U_ROW(requests_that_are_lost),     U_ROW(answers_that_are_lost),
        U_ROW(a_user_who_may_not),
    };

    t_postgres_init(&server, true, true);
    t_postgres_start(&server, NULL);
    int n_bad = cmocka_run_group_tests(tests, NULL, NULL);
    t_postgres_release(&server);
    return n_bad;
}
