/*
 * listen.c: wake-ups from other processes: they arrive, a loss of the channel is noticed, and
 * handled.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/postgres.h"
#include "harness/unit.h"
#include "runtime/handle.h"
#include "store/postgres/postgres_internal.h"

#define LIMIT_MS 20000
#define SLACK_MS 3000
#define OWN_ID "00000000000000aa"

static struct t_postgres server;
static struct t_bouncer  bouncer;

static int
start_server(void **state UNUSED)
{
    t_postgres_init(&server, false, false);
    t_postgres_start(&server, NULL);
    t_bouncer_start(&bouncer, server.url);
    return 0;
}

static int
stop_server(void **state UNUSED)
{
    t_bouncer_release(&bouncer);
    t_postgres_release(&server);
    return 0;
}

static il *
open_store(const char *url, const char *options)
{
    char         whole[2 * T_PATH_BYTES];
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;
    il_error     err  = { 0 };

    (void)snprintf(whole, sizeof whole, "%s%s", url, options);
    opts.flags = IL_OPEN_NO_SWEEP;
    if (il_open(whole, &opts, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return h;
}

static void
attend(il *h)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    while (il__store_attend(h->store) != 0) {
        T_TRUE(t_real_ms() < until_ms);
        (void)poll(NULL, 0, 5);
    }
}

static uint32_t
word(il *h, const char *key, const char *holder)
{
    return il__board_read(h->store->board, il__board_slot("default", key, holder));
}

static void
await_word(il *h, const char *key, const char *holder, uint32_t before, int64_t limit_ms)
{
    int64_t until_ms = t_real_ms() + limit_ms;

    while (word(h, key, holder) == before) {
        if (t_real_ms() > until_ms)
            T_FAIL("not woken within %d ms", (int)limit_ms);
        (void)poll(NULL, 0, 2);
    }
}

static uint64_t
acquire(il *h, const char *key, const char *holder, int64_t wait_ms, il_status expected)
{
    il_op    op  = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };
    il_error err = { 0 };

    op.in.lock.wait_ms = wait_ms;
    if (il_apply(h, &op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(op.status, expected);
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    return fence;
}

static void
release(il *h, const char *key, const char *holder, uint64_t fence)
{
    il_op    op  = { .type = IL_OP_RELEASE, .key = key, .holder = holder, .fence = fence };
    il_error err = { 0 };

    if (il_apply(h, &op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
}

/* One handle has a key, the other waits for it and is woken. */
static void
hand_over(il *a, il *b, const char *key, int64_t limit_ms)
{
    uint64_t fence = acquire(a, key, "a", 0, IL_OK);

    acquire(b, key, "b", 60000, IL_QUEUED);
    uint32_t before = word(b, key, "b");
    release(a, key, "a", fence);
    await_word(b, key, "b", before, limit_ms);
    release(b, key, "b", acquire(b, key, "b", 60000, IL_OK));
}

U_TEST(what_others_wake_arrives)
{
    il *a = open_store(server.url, "");
    il *b = open_store(server.url, "");

    attend(b);
    hand_over(a, b, "k", SLACK_MS);
    il_close(a);
    il_close(b);
}

U_TEST(a_lost_connection_is_made_again)
{
    il  *a = open_store(server.url, "");
    il  *b = open_store(server.url, "");
    char out[T_PG_TEXT_BYTES];

    attend(b);
    uint32_t before = word(b, "anything", "b");
    T_STREQ(t_postgres_ask(server.url,
                           "SELECT bool_and(pg_terminate_backend(pid))::text FROM pg_stat_activity "
                           "WHERE query LIKE 'LISTEN%'",
                           out),
            "true");
    /* everybody looks: something may have been missed */
    await_word(b, "anything", "b", before, LIMIT_MS);
    attend(b);
    hand_over(a, b, "again", SLACK_MS);
    il_close(a);
    il_close(b);
}

/* A pooler takes LISTEN and swallows what follows: that is noticed, and who waits looks by
 * himself. */
U_TEST(behind_a_pooler)
{
    il             *a     = open_store(bouncer.url, "");
    il             *b     = open_store(bouncer.url, "");
    il_lease       *lease = NULL;
    il_error        err   = { 0 };
    il_acquire_opts opts  = IL_ACQUIRE_OPTS_INIT;

    for (int i = 0; i < 30; i++) { /* longer than a proof takes */
        T_LESS(0, il__store_attend(b->store));
        (void)poll(NULL, 0, 100);
    }
    uint64_t fence    = acquire(a, "pooled", "a", 0, IL_OK);
    int64_t  began_ms = t_real_ms();
    (void)acquire(b, "pooled", "b", 60000, IL_QUEUED);
    release(a, "pooled", "a", fence);
    opts.holder  = "b";
    opts.wait_ms = LIMIT_MS;
    T_EQ(il_acquire(b, "pooled", &opts, &lease, &err), IL_OK);
    T_LESS(t_real_ms() - began_ms, SLACK_MS);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    il_close(a);
    il_close(b);
}

U_TEST(past_a_pooler)
{
    char options[T_PATH_BYTES + 8], direct[T_PATH_BYTES];

    (void)snprintf(options, sizeof options, "&listen=%s", t_percent(server.url, direct));
    il *a = open_store(bouncer.url, options);
    il *b = open_store(bouncer.url, options);
    attend(b);
    hand_over(a, b, "past", SLACK_MS);
    il_close(a);
    il_close(b);
}

static void *
resume_bouncer(void *arg UNUSED)
{
    (void)poll(NULL, 0, 20);
    t_proc_signal(&bouncer.proc, SIGCONT);
    return NULL;
}

/* Wake somebody and close while the pooler is busy with something else. Does it arrive? */
static bool
wake_and_close(il *b, const char *options)
{
    il                  *a      = open_store(bouncer.url, options);
    struct remote_store *remote = il__remote_from(a->store);
    uint32_t             slot   = il__board_slot("default", "short", "b");
    uint32_t             before = word(b, "short", "b");
    int64_t              until_ms;
    pthread_t            thread;

    t_proc_signal(&bouncer.proc, SIGSTOP);
    remote->via->wake(remote, &slot, 1);
    T_EQ(pthread_create(&thread, NULL, resume_bouncer, NULL), 0);
    il_close(a);
    T_EQ(pthread_join(thread, NULL), 0);
    until_ms = t_real_ms() + SLACK_MS / 3;
    while (word(b, "short", "b") == before && t_real_ms() < until_ms)
        (void)poll(NULL, 0, 2);
    return word(b, "short", "b") != before;
}

/*
 * Who closes right behind a release, as `interlock run` does, waits a little for the pooler to pass
 * the wake-up on: it drops what a client sent that has gone. Not for ever, so a slow machine may
 * have more than one try.
 */
U_TEST(closed_behind_a_wake)
{
    char options[T_PATH_BYTES + 8], direct[T_PATH_BYTES];
    bool woken = false;

    (void)snprintf(options, sizeof options, "&listen=%s", t_percent(server.url, direct));
    il *b = open_store(bouncer.url, options);
    attend(b);
    for (int i = 0; i < 5 && !woken; i++)
        woken = wake_and_close(b, options);
    T_TRUE(woken);
    il_close(b);
}

/* An answer that is none, and does not end: it costs the connection, and not for ever the
 * processor. */
U_TEST(a_copy_is_no_answer)
{
    static const char *const statements[] = { "COPY (SELECT 1) TO STDOUT",
                                              "CREATE TEMP TABLE t (i int); COPY t FROM STDIN" };
    struct pg_url            u            = { 0 };
    struct pg_conn           c;

    T_EQ(il__pg_url_parse(&u, server.url, NULL), IL_OK);
    il__pg_conn_init(&c, u.server, u.shown);
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        T_TRUE(!il__pg_exec(&c, statements[i], il__pg_in_ms(LIMIT_MS)));
        T_EQ(c.outcome, PG_UNKNOWN);
        T_TRUE(c.pq == NULL);
        T_TRUE(il__pg_exec(&c, "SELECT 1", il__pg_in_ms(LIMIT_MS)));
    }
    il__pg_conn_close(&c);
    il__pg_url_release(&u);
}

U_TEST(not_at_all)
{
    il  *h = open_store(server.url, "&listen=no");
    char out[T_PG_TEXT_BYTES];

    T_LESS(0, il__store_attend(h->store));
    (void)poll(NULL, 0, 100);
    T_LESS(0, il__store_attend(h->store));
    T_STREQ(t_postgres_ask(server.url,
                           "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
                           out),
            "0");
    il_close(h);
}

/* SQL knows names, not words. */
U_TEST(woken_from_sql)
{
    il  *h = open_store(server.url, "");
    char out[T_PG_TEXT_BYTES];

    attend(h);
    uint32_t first  = word(h, "k", "one");
    uint32_t second = word(h, "q", IL__WAKE_QUEUE);
    (void)t_postgres_ask(server.url,
                         "SELECT pg_notify('interlock_interlock', "
                         "E'default\\x1fk\\x1fone\\x1edefault\\x1fq\\x1f#queue')::text",
                         out);
    await_word(h, "k", "one", first, SLACK_MS);
    await_word(h, "q", IL__WAKE_QUEUE, second, SLACK_MS);
    il_close(h);
}

/* A server that says nothing while it is being connected to does not keep anybody from closing. */
U_TEST(closing_does_not_wait)
{
    struct sockaddr_in at   = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n_at = sizeof at;
    int                fd   = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char               options[128];
    struct pollfd      called = { .fd = fd, .events = POLLIN };

    T_TRUE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0);
    T_EQ(getsockname(fd, (struct sockaddr *)&at, &n_at), 0);
    (void)snprintf(options, sizeof options,
                   "&connect_timeout=60&listen=postgres%%3A%%2F%%2F127.0.0.1%%3A%u%%2Fdb",
                   ntohs(at.sin_port));
    il *h = open_store(server.url, options);
    T_LESS(0, il__store_attend(h->store));
    T_EQ(poll(&called, 1, LIMIT_MS), 1); /* it is calling, and nobody will answer */
    int64_t began_ms = t_real_ms();
    il_close(h);
    T_LESS(t_real_ms() - began_ms, SLACK_MS);
    (void)close(fd);
}

U_TEST(payloads)
{
    struct il__board b;

    T_TRUE(il__board_init_private(&b));
    uint32_t slot  = il__board_slot("t", "n", "s");
    uint32_t other = slot == 4711 % IL__BOARD_WORDS ? 20 : 4711 % IL__BOARD_WORDS;
    char     text[64];

    (void)snprintf(text, sizeof text, "00000000000000bb %u %u", slot, other);
    il__pg_listener_wake(&b, OWN_ID, text);
    T_EQ(il__board_read(&b, slot), 1);
    T_EQ(il__board_read(&b, other), 1);
    (void)snprintf(text, sizeof text, OWN_ID " %u", slot); /* our own */
    il__pg_listener_wake(&b, OWN_ID, text);
    T_EQ(il__board_read(&b, slot), 1);
    il__pg_listener_wake(&b, OWN_ID, "t\x1fn\x1fs");
    T_EQ(il__board_read(&b, slot), 2);
    il__pg_listener_wake(&b, OWN_ID, "\x1f\x1f"); /* those who hold */
    T_EQ(il__board_read(&b, IL__BOARD_BREAK), 1);
    il__pg_listener_wake(&b, OWN_ID, "00000000000000bb *");
    T_EQ(il__board_read(&b, slot), 3);
    T_EQ(il__board_read(&b, IL__BOARD_BREAK), 2);
    static const char *const nonsense[] = { "",
                                            " ",
                                            "17",
                                            "x 17 ",
                                            "x 99999999999999999999",
                                            "x -1",
                                            "x 1 2 3",
                                            "\x1f",
                                            "a\x1f",
                                            "\x1e\x1e",
                                            "x  4096 ",
                                            "* *x",
                                            "a\x1f\x1e\x1f",
                                            "probe 1",
                                            NULL };
    for (size_t i = 0; nonsense[i] != NULL; i++)
        il__pg_listener_wake(&b, OWN_ID, nonsense[i]);
    T_EQ(il__board_read(&b, slot), 3);
    for (uint32_t i = 0; i < IL__BOARD_BREAK; i++)
        T_EQ(il__board_read(&b, i), 0);
    il__board_release(&b);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(what_others_wake_arrives),
        U_ROW(a_lost_connection_is_made_again),
        U_ROW(behind_a_pooler),
        U_ROW(past_a_pooler),
        U_ROW(closed_behind_a_wake),
        U_ROW(a_copy_is_no_answer),
        U_ROW(not_at_all),
        U_ROW(woken_from_sql),
        U_ROW(closing_does_not_wait),
        U_ROW(payloads),
    };

    return cmocka_run_group_tests_name("postgres-listen", tests, start_server, stop_server);
}
