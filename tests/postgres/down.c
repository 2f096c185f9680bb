/*
 * down.c: a server that is missing, stops, restarts, does not answer, or takes too long: IL_STORE
 * at once or on timeout, never a hang, never a password in a message; and afterwards everything
 * recovers by itself.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "harness/clock.h"
#include "harness/postgres.h"
#include "harness/proxy.h"
#include "harness/redis.h"
#include "harness/unit.h"

#define TIMEOUT_MS 500
#define SLACK_MS 3000 /* of a loaded machine */
#define LIMIT_MS 20000

static struct t_postgres server;

static int
start_server(void **state UNUSED)
{
    t_postgres_init(&server, false, true);
    t_postgres_start(&server, NULL);
    return 0;
}

static int
stop_server(void **state UNUSED)
{
    t_postgres_release(&server);
    return 0;
}

static il_status
open_within(const char *url, il **ret, il_error *reterr, int64_t limit_ms)
{
    il_open_opts opts     = IL_OPEN_OPTS_INIT;
    int64_t      began_ms = t_real_ms();

    opts.timeout_ms = TIMEOUT_MS;
    opts.flags      = IL_OPEN_NO_SWEEP;
    il_status st    = il_open(url, &opts, ret, reterr);
    T_LESS(t_real_ms() - began_ms, limit_ms);
    return st;
}

static il *
open_store(const char *url)
{
    il      *h   = NULL;
    il_error err = { 0 };

    if (open_within(url, &h, &err, LIMIT_MS) != IL_OK) /* the first time it is installed */
        T_FAIL("%s", err.message);
    return h;
}

/* The outcome of one op, which must come in time. */
static il_status
apply_within(il *h, il_op_type type, const char *key, const char *holder, il_error *reterr,
             int64_t limit_ms)
{
    int64_t   began_ms = t_real_ms();
    il_op     op       = { .type = type, .key = key, .holder = holder };
    il_status st       = il_apply(h, &op, 1, reterr);

    T_LESS(t_real_ms() - began_ms, limit_ms);
    if (st == IL_OK)
        st = op.status;
    il_op_release(&op);
    return st;
}

/* Until it works again. */
static void
await_grant(il *h, const char *key, const char *holder)
{
    int64_t  until_ms = t_real_ms() + LIMIT_MS;
    il_error err      = { 0 };

    while (apply_within(h, IL_OP_ACQUIRE, key, holder, &err, LIMIT_MS) != IL_OK) {
        if (t_real_ms() > until_ms)
            T_FAIL("no grant: %s", err.message);
        (void)usleep(10000);
    }
}

U_TEST(nobody_is_there)
{
    char     url[T_PATH_BYTES];
    il      *h   = NULL;
    il_error err = { 0 };

    t_path(url, "postgres://me:sesame@127.0.0.1:%d/db", t_free_port());
    T_EQ(open_within(url, &h, &err, SLACK_MS), IL_STORE);
    T_STREQ(err.native, IL__NATIVE_BUSY); /* nothing can have happened */
    T_HAS(err.message, "refused");
    T_TRUE(strstr(err.message, "sesame") == NULL);
    t_path(url, "postgres://me:sesame@/db?host=/nowhere");
    T_EQ(open_within(url, &h, &err, SLACK_MS), IL_STORE);
    T_TRUE(strstr(err.message, "sesame") == NULL);
}

/* It takes connections, and says nothing. */
U_TEST(nobody_answers)
{
    struct sockaddr_in a   = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n   = sizeof a;
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    il                *h   = NULL;
    il_error           err = { 0 };
    char               url[T_PATH_BYTES];

    T_TRUE(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 8) == 0);
    T_TRUE(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    t_path(url, "postgres://me:sesame@127.0.0.1:%d/db?sslmode=disable", ntohs(a.sin_port));
    T_EQ(open_within(url, &h, &err, TIMEOUT_MS + SLACK_MS), IL_STORE);
    T_HAS(err.message, "does not respond");
    (void)close(fd);
}

/* The first server of a list is silent, the second refuses, the third is the one. */
U_TEST(one_of_several)
{
    struct sockaddr_in a   = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n   = sizeof a;
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    il                *h   = NULL;
    il_error           err = { 0 };
    char               url[T_PATH_BYTES];
    il_open_opts       opts = IL_OPEN_OPTS_INIT;

    T_TRUE(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 8) == 0);
    T_TRUE(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    t_path(url,
           "postgres://postgres@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable",
           ntohs(a.sin_port), t_free_port(), server.port);
    opts.timeout_ms = 3 * TIMEOUT_MS;
    opts.flags      = IL_OPEN_NO_SWEEP;
    if (il_open(url, &opts, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "third", "a", &err, LIMIT_MS), IL_OK);
    il_close(h);
    (void)close(fd);
}

/* A standby is no store: what it says of a fence may be over. Of several servers it is passed
 * over. */
U_TEST(one_is_a_standby)
{
    struct t_postgres standby;
    il               *h   = NULL;
    il_error          err = { 0 };
    char              path[T_PATH_BYTES], url[T_PATH_BYTES];

    t_postgres_init(&standby, false, true);
    t_path(path, "%s/data/standby.signal", standby.dir);
    t_file_write(path, "", 0);
    T_EQ(chmod(path, 0666), 0); /* the server may be another user */
    t_postgres_start(&standby, NULL);
    T_EQ(open_within(standby.url, &h, &err, SLACK_MS), IL_STORE);
    T_HAS(err.message, "standby");
    t_path(url, "postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres", standby.port,
           server.port);
    h = open_store(url);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "primary", "a", &err, LIMIT_MS), IL_OK);
    T_EQ(apply_within(h, IL_OP_GET, "primary", NULL, &err, LIMIT_MS), IL_OK);
    il_close(h);
    t_path(url, "%s&target_session_attrs=any", standby.url); /* who says so gets it */
    T_EQ(open_within(url, &h, &err, SLACK_MS), IL_STORE);
    T_HAS(err.message, "read-only");
    t_postgres_release(&standby);
}

U_TEST(the_password_is_wrong)
{
    char     url[T_PATH_BYTES];
    il      *h   = NULL;
    il_error err = { 0 };

    t_path(url, "postgres://nobody:sesame@127.0.0.1:%d/postgres", server.port);
    T_EQ(open_within(url, &h, &err, SLACK_MS), IL_STORE);
    T_HAS(err.message, "nobody");
    T_TRUE(strstr(err.message, "sesame") == NULL);
}

U_TEST(it_crashes_and_comes_back)
{
    il      *h   = open_store(server.url);
    il_error err = { 0 };

    T_EQ(apply_within(h, IL_OP_ACQUIRE, "k", "a", &err, LIMIT_MS), IL_OK);
    T_EQ(apply_within(h, IL_OP_GET, "k", NULL, &err, LIMIT_MS), IL_OK);
    t_postgres_kill(&server);
    for (int i = 0; i < 20; i++) { /* also while it is not asked again at once */
        T_EQ(apply_within(h, IL_OP_ACQUIRE, "k", "a", &err, SLACK_MS), IL_STORE);
        T_EQ(apply_within(h, IL_OP_GET, "k", NULL, &err, SLACK_MS), IL_STORE);
    }
    t_postgres_start(&server, NULL);
    await_grant(h, "k", "a");
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "k", "b", &err, LIMIT_MS), IL_HELD);
    T_EQ(apply_within(h, IL_OP_GET, "k", NULL, &err, LIMIT_MS), IL_OK);
    il_close(h);
}

/* A restart between two calls is not even noticed: nothing had been sent when the old connection
 * was found dead. */
U_TEST(it_was_restarted_meanwhile)
{
    il      *h   = open_store(server.url);
    il_error err = { 0 };

    T_EQ(apply_within(h, IL_OP_ACQUIRE, "restarted", "a", &err, LIMIT_MS), IL_OK);
    t_postgres_kill(&server);
    t_postgres_start(&server, NULL);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "restarted", "b", &err, LIMIT_MS), IL_HELD);
    T_EQ(apply_within(h, IL_OP_GET, "restarted", NULL, &err, LIMIT_MS), IL_OK);
    il_close(h);
}

U_TEST(the_network_is_cut)
{
    char     target[T_PATH_BYTES], url[T_PATH_BYTES];
    il_error err = { 0 };

    t_path(target, "127.0.0.1:%d", server.port);
    struct t_proxy *p = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable", t_proxy_port(p));
    il *h = open_store(url);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "cut", "a", &err, LIMIT_MS), IL_OK);
    t_proxy_cut(p, true);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "cut", "a", &err, TIMEOUT_MS + SLACK_MS), IL_STORE);
    T_EQ(apply_within(h, IL_OP_GET, "cut", NULL, &err, TIMEOUT_MS + SLACK_MS), IL_STORE);
    t_proxy_cut(p, false);
    await_grant(h, "cut", "a");
    il_close(h);
    t_proxy_free(p);
}

/* The answer is lost: whether it happened is unknown, and to repeat it is safe. */
U_TEST(an_answer_is_lost)
{
    char     target[T_PATH_BYTES], url[T_PATH_BYTES];
    il_error err = { 0 };

    t_path(target, "127.0.0.1:%d", server.port);
    struct t_proxy *p = t_proxy_new(target);
    t_path(url, "postgres://postgres@127.0.0.1:%u/postgres?sslmode=disable", t_proxy_port(p));
    il *h = open_store(url);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "lost", "a", &err, LIMIT_MS), IL_OK);
    t_proxy_lose(p, T_PROXY_ANSWER, 1);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "lost-2", "a", &err, LIMIT_MS), IL_STORE);
    T_TRUE(strcmp(err.native, IL__NATIVE_BUSY) != 0); /* it may have happened */
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "lost-2", "b", &err, LIMIT_MS), IL_HELD); /* it has */
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "lost-2", "a", &err, LIMIT_MS), IL_OK);   /* once */
    il_close(h);
    t_proxy_free(p);
}

/* Somebody keeps a table locked: the statement is cancelled, and nothing of it happens later. */
U_TEST(it_takes_too_long)
{
    il      *h   = open_store(server.url);
    il_error err = { 0 };
    char     out[T_PG_TEXT_BYTES];

    struct t_proc AUTO(t_proc_release) psql = { .in = -1, .out = -1 };
    char          host[T_PATH_BYTES], port[16];
    t_path(host, "%s", server.dir);
    (void)snprintf(port, sizeof port, "%d", server.port);
    t_proc_start(&psql,
                 (const char *const[]){
                     "psql", "-X", "-U", "postgres", "-h", host, "-p", port, "-c",
                     "BEGIN; LOCK TABLE interlock.lease; SELECT 'locked'; SELECT pg_sleep(60)",
                     NULL },
                 NULL);
    t_postgres_ask(server.url, "SELECT 'up'", out);
    int64_t until_ms = t_real_ms() + LIMIT_MS;
    while (strcmp(t_postgres_ask(server.url,
                                 "SELECT count(*)::text FROM pg_locks WHERE relation = "
                                 "'interlock.lease'::regclass AND "
                                 "mode = 'AccessExclusiveLock' AND granted",
                                 out),
                  "1") != 0) {
        T_TRUE(t_real_ms() < until_ms);
        (void)usleep(10000);
    }
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "slow", "a", &err, TIMEOUT_MS + SLACK_MS), IL_STORE);
    T_HAS(err.message, "timed out");
    T_STREQ(err.native, "57014");
    (void)t_postgres_ask(server.url,
                         "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE query "
                         "LIKE 'BEGIN; LOCK%'",
                         out);
    await_grant(h, "slow", "b"); /* and not HELD by a */
    il_close(h);
}

/* Somebody else is migrating: who opens the store waits for no longer than he said, and knows
 * why. */
U_TEST(a_migration_is_under_way)
{
    char     url[T_PATH_BYTES], out[T_PG_TEXT_BYTES], port[16];
    il      *h   = NULL;
    il_error err = { 0 };

    struct t_proc AUTO(t_proc_release) psql = { .in = -1, .out = -1 };
    (void)snprintf(port, sizeof port, "%d", server.port);
    t_proc_start(&psql,
                 (const char *const[]){ "psql", "-X", "-U", "postgres", "-h", server.dir, "-p",
                                        port, "-c",
                                        "SELECT pg_advisory_lock(hashtextextended('interlock "
                                        "migrate busy', 0)); SELECT pg_sleep(60)",
                                        NULL },
                 NULL);
    int64_t until_ms = t_real_ms() + LIMIT_MS;
    while (strcmp(t_postgres_ask(
                      server.url,
                      "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND granted",
                      out),
                  "1") != 0) {
        T_TRUE(t_real_ms() < until_ms);
        (void)usleep(10000);
    }
    t_path(url, "%s&schema=busy", server.url);
    T_EQ(open_within(url, &h, &err, TIMEOUT_MS + SLACK_MS), IL_STORE);
    T_HAS(err.message, "is migrating schema");
    T_STREQ(err.native, "55P03");
    (void)t_postgres_ask(server.url,
                         "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE query "
                         "LIKE '%pg_advisory_lock%' AND pid <> pg_backend_pid()",
                         out);
    il_close(open_store(url));
}

/* Somebody has been at the row that says what is installed. */
U_TEST(its_state_makes_no_sense)
{
    static const char *const damages[] = { "UPDATE damaged.state SET version = NULL",
                                           "UPDATE damaged.state SET test_clock = NULL",
                                           "DELETE FROM damaged.state" };
    char                     url[T_PATH_BYTES], out[T_PG_TEXT_BYTES];
    il                      *h   = NULL;
    il_error                 err = { 0 };

    t_path(url, "%s&schema=damaged", server.url);
    il_close(open_store(url));
    (void)t_postgres_ask(server.url,
                         "ALTER TABLE damaged.state ALTER version DROP NOT NULL, "
                         "ALTER test_clock DROP NOT NULL",
                         out);
    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        (void)t_postgres_ask(server.url, damages[i], out);
        T_EQ(open_within(url, &h, &err, TIMEOUT_MS + SLACK_MS), IL_STORE);
        T_HAS(err.message, "unexpected contents");
    }
}

static void
set_standby(const char *name)
{
    char sql[128], out[T_PG_TEXT_BYTES];

    (void)snprintf(sql, sizeof sql, "ALTER SYSTEM SET synchronous_standby_names = '%s'", name);
    (void)t_postgres_ask(server.url, sql, out);
    (void)t_postgres_ask(server.url, "SELECT pg_reload_conf()::text", out);
}

/* Acquire something new until it is not granted: the server takes its time to read its settings. */
static il_status
acquire_until_refused(il *h, char key[16], il_error *reterr)
{
    int64_t   until_ms = t_real_ms() + LIMIT_MS;
    il_status st       = IL_OK;

    for (int i = 0; st == IL_OK && t_real_ms() < until_ms; i++) {
        (void)snprintf(key, 16, "sync-%d", i);
        st = apply_within(h, IL_OP_ACQUIRE, key, "a", reterr, LIMIT_MS);
    }
    return st;
}

/* The standby that commits wait for is gone. A request to cancel ends only the wait, and the server
 * says that all is well: but a fail-over would lose it. */
U_TEST(no_standby_confirms)
{
    il      *h   = open_store(server.url);
    il_error err = { 0 };
    char     key[16];

    set_standby("gone");
    T_EQ(acquire_until_refused(h, key, &err), IL_STORE);
    T_HAS(err.message, "timed out");
    T_TRUE(strcmp(err.native, IL__NATIVE_BUSY) != 0); /* it may have happened */
    set_standby("");
    await_grant(h, key, "a"); /* and can be repeated */
    il_close(h);
}

struct second {
    il       *h;
    char      key[16];
    il_error  err;
    il_status st;
};

static void *
second_main(void *arg)
{
    struct second *s = arg;

    s->st = acquire_until_refused(s->h, s->key, &s->err);
    return NULL;
}

/* The same if it is an administrator who has enough of the wait. */
U_TEST(the_wait_for_a_standby_is_cancelled)
{
    struct second s    = { .st = IL_OK };
    il_open_opts  opts = IL_OPEN_OPTS_INIT;
    pthread_t     thread;
    char          out[T_PG_TEXT_BYTES];
    int64_t       until_ms = t_real_ms() + LIMIT_MS;

    opts.timeout_ms = LIMIT_MS;
    opts.flags      = IL_OPEN_NO_SWEEP;
    T_EQ(il_open(server.url, &opts, &s.h, &s.err), IL_OK);
    set_standby("gone");
    T_EQ(pthread_create(&thread, NULL, second_main, &s), 0);
    while (strcmp(t_postgres_ask(server.url,
                                 "SELECT count(pg_cancel_backend(pid))::text FROM pg_stat_activity "
                                 "WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'",
                                 out),
                  "0") == 0) {
        T_TRUE(t_real_ms() < until_ms);
        (void)usleep(10000);
    }
    T_EQ(pthread_join(thread, NULL), 0);
    set_standby("");
    T_EQ(s.st, IL_STORE);
    T_HAS(s.err.message, "standby");
    il_close(s.h);
}

/* What others did made it fail: it is tried again, and the caller does not notice. */
U_TEST(it_is_tried_again)
{
    il      *h   = open_store(server.url);
    il_error err = { 0 };
    char     out[T_PG_TEXT_BYTES];

    /* A sequence is not rolled back, so it counts the tries. */
    (void)t_postgres_ask(server.url, "CREATE SEQUENCE tries", out);
    (void)t_postgres_ask(
        server.url,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF "
        "nextval('public.tries') < 3 THEN "
        "RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$",
        out);
    (void)t_postgres_ask(
        server.url,
        "CREATE TRIGGER fail BEFORE INSERT ON interlock.lease FOR EACH ROW EXECUTE FUNCTION fail()",
        out);
    T_EQ(apply_within(h, IL_OP_ACQUIRE, "again", "a", &err, LIMIT_MS), IL_OK);
    T_STREQ(t_postgres_ask(server.url, "SELECT last_value::text FROM tries", out), "3");
    /* What fails for ever fails. One alone does not take the others of its batch with it. */
    (void)t_postgres_ask(server.url,
                         "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ "
                         "BEGIN IF NEW.key = 'bad' THEN "
                         "RAISE EXCEPTION 'not this one' USING ERRCODE = '23514', DETAIL = "
                         "'sesame'; END IF; RETURN NEW; END $$",
                         out);
    il_op ops[3] = { { .type = IL_OP_ACQUIRE, .key = "good", .holder = "a" },
                     { .type = IL_OP_ACQUIRE, .key = "bad", .holder = "a" },
                     { .type = IL_OP_ACQUIRE, .key = "good-2", .holder = "a" } };
    T_EQ(il_apply(h, ops, 3, &err), IL_OK);
    T_EQ(ops[0].status, IL_OK);
    T_EQ(ops[1].status, IL_STORE);
    T_HAS(ops[1].out.detail, "not this one");
    T_TRUE(strstr(ops[1].out.detail, "sesame") == NULL);
    T_EQ(ops[2].status, IL_OK);
    for (size_t i = 0; i < 3; i++)
        il_op_release(&ops[i]);
    (void)t_postgres_ask(server.url, "DROP TRIGGER fail ON interlock.lease", out);
    il_close(h);
}

/* In transactions that look at an old state of things a mutex is no use: ours begin otherwise. */
U_TEST(transactions_are_read_committed)
{
    il      *h   = open_store(server.url);
    il_error err = { 0 };
    char     out[T_PG_TEXT_BYTES];

    (void)t_postgres_ask(
        server.url, "ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'",
        out);
    il *g = open_store(server.url);
    T_EQ(apply_within(g, IL_OP_ACQUIRE, "isolated", "a", &err, LIMIT_MS), IL_OK);
    T_EQ(apply_within(g, IL_OP_ACQUIRE, "isolated", "b", &err, LIMIT_MS), IL_HELD);
    (void)t_postgres_ask(server.url, "ALTER DATABASE postgres RESET default_transaction_isolation",
                         out);
    il_close(g);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(nobody_is_there),
        U_ROW(nobody_answers),
        U_ROW(one_of_several),
        U_ROW(one_is_a_standby),
        U_ROW(the_password_is_wrong),
        U_ROW(it_crashes_and_comes_back),
        U_ROW(it_was_restarted_meanwhile),
        U_ROW(the_network_is_cut),
        U_ROW(an_answer_is_lost),
        U_ROW(it_takes_too_long),
        U_ROW(a_migration_is_under_way),
        U_ROW(its_state_makes_no_sense),
        U_ROW(no_standby_confirms),
        U_ROW(the_wait_for_a_standby_is_cancelled),
        U_ROW(it_is_tried_again),
        U_ROW(transactions_are_read_committed),
    };

    return cmocka_run_group_tests_name("postgres-down", tests, start_server, stop_server);
}
