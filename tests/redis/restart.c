/*
 * restart.c: the function library is gone, the server was restarted, a replica was promoted: what is loaded anew, and when nothing is
 * granted.
 */
#include <poll.h>
#include <stdio.h>

#include "harness/clock.h"
#include "harness/redis.h"
#include "harness/unit.h"

#define LIMIT_MS 10000
#define MAX_TTL_MS 2000
#define URL "redis+unix://%s?max_ttl=2"

static const char *const in_memory[] = {
    "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", NULL
};
static const char *const every_second[] = { "--save",   "",  "--appendonly", "yes", "--appendfsync",
                                            "everysec", NULL };
static const char *const always[]       = { "--save", "",  "--appendonly", "yes", "--appendfsync",
                                            "always", NULL };

static void
start(struct t_redis *r, const char *const args[], char url[T_PATH_BYTES])
{
    t_redis_init(r, false, false);
    t_redis_start(r, args);
    t_path(url, URL, r->socket);
}

static void
restart(struct t_redis *r, const char *const args[])
{
    t_redis_kill(r);
    t_redis_start(r, args);
}

static il *
open_at(const char *url)
{
    il      *h   = NULL;
    il_error err = { 0 };

    if (il_open(url, NULL, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return h;
}

/* Apply one op, again while the connection has to be made anew. */
static void
apply(il *h, il_op *op)
{
    int64_t   until_ms = t_real_ms() + LIMIT_MS;
    il_error  err;
    il_status st;

    while ((st = il_apply(h, op, 1, &err)) != IL_OK) {
        if (t_real_ms() > until_ms)
            T_FAIL("%s", err.message);
        (void)poll(NULL, 0, 5);
    }
}

/* Returns the fence, 0 when it was not granted; the detail of a refusal in `why`. */
static uint64_t
acquire(il *h, const char *key, const char *holder, il_status expected, char why[256])
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };

    op.in.lock.ttl_ms = MAX_TTL_MS;
    apply(h, &op);
    if (op.status != expected)
        T_FAIL("%s by %s is %s, not %s: %s", key, holder, il_status_name(op.status),
               il_status_name(expected), op.out.detail != NULL ? op.out.detail : "");
    if (why != NULL)
        (void)snprintf(why, 256, "%s", op.out.detail != NULL ? op.out.detail : "");
    uint64_t fence = op.status == IL_OK ? op.out.fence : 0;
    il_op_release(&op);
    return fence;
}

static void
end(il *h, il_op_type type, const char *key, const char *holder, uint64_t fence, il_status expected)
{
    il_op op = { .type = type, .key = key, .holder = holder, .fence = fence };

    apply(h, &op);
    T_STREQ(il_status_name(op.status), il_status_name(expected));
    il_op_release(&op);
}

/* Nothing is granted now; until it is, at most max_ttl passes. Returns the fence. */
static uint64_t
await_grant(il *h, const char *key, const char *holder)
{
    int64_t  until_ms = t_real_ms() + MAX_TTL_MS + 1500;
    uint64_t fence    = 0;

    while (fence == 0) {
        il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };
        T_TRUE(t_real_ms() < until_ms);
        op.in.lock.ttl_ms = MAX_TTL_MS;
        apply(h, &op);
        T_TRUE(op.status == IL_OK || op.status == IL_STORE);
        fence = op.status == IL_OK ? op.out.fence : 0;
        il_op_release(&op);
        (void)poll(NULL, 0, 20);
    }
    return fence;
}

U_TEST(the_library_is_loaded_again)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    start(&r, in_memory, url);
    il      *h     = open_at(url);
    uint64_t fence = acquire(h, "k", "a", IL_OK, NULL);
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    T_TRUE(acquire(h, "l", "a", IL_OK, NULL) > fence);
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    end(h, IL_OP_GET, "k", NULL, 0, IL_OK); /* the connection for reading */
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    il_op batch[3]          = { { .type = IL_OP_ACQUIRE, .key = "m", .holder = "a" },
                                { .type = IL_OP_RELEASE, .key = "k", .holder = "a", .fence = fence },
                                { .type = IL_OP_ACQUIRE, .key = "k", .holder = "b" } };
    batch[0].in.lock.ttl_ms = batch[2].in.lock.ttl_ms = MAX_TTL_MS;
    T_EQ(il_apply(h, batch, 3, NULL), IL_OK);
    for (unsigned i = 0; i < 3; i++) {
        T_EQ(batch[i].status, IL_OK);
        il_op_release(&batch[i]);
    }
    /* Another store, of a process that finds the library there. */
    il *g = open_at(url);
    acquire(g, "k", "c", IL_HELD, NULL);
    il_close(g);
    il_close(h);
    t_redis_release(&r);
}

U_TEST(a_fresh_store_grants_at_once)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];

    start(&r, every_second, url);
    il *h = open_at(url);
    acquire(h, "k", "a", IL_OK, NULL);
    il_close(h);
    t_redis_release(&r);
}

U_TEST(a_restart_without_a_file)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], why[256];

    start(&r, in_memory, url);
    il      *h     = open_at(url);
    uint64_t fence = acquire(h, "k", "a", IL_OK, NULL);
    restart(&r, in_memory);
    int64_t began_ms = t_real_ms();
    acquire(h, "k", "b", IL_STORE, why);
    T_HAS(why, "restarted");
    T_HAS(why, "2 s");
    il *g = open_at(url); /* by now everybody is told */
    acquire(g, "k", "c", IL_STORE, why);
    end(h, IL_OP_RENEW, "k", "a", fence, IL_NOT_HELD);
    T_LESS(fence, await_grant(g, "k", "c"));
    T_TRUE(t_real_ms() - began_ms >= MAX_TTL_MS - 50);
    il_close(g);
    il_close(h);
    t_redis_release(&r);
}

/* What was acknowledged is in the file, and synced. */
static void
await_written(struct t_redis *r)
{
    char        out[T_REDIS_REPLY_BYTES];
    int64_t     until_ms = t_real_ms() + LIMIT_MS;
    const char *info     = T_REDIS(r, out, "INFO", "persistence");

    while (strstr(info, "aof_buffer_length:0") == NULL ||
           strstr(info, "aof_pending_bio_fsync:0") == NULL) {
        T_LESS(t_real_ms(), until_ms);
        (void)poll(NULL, 0, 5);
        info = T_REDIS(r, out, "INFO", "persistence");
    }
}

U_TEST(a_restart_that_may_have_lost_a_second)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], why[256];

    start(&r, every_second, url);
    il      *h = open_at(url);
    uint64_t a = acquire(h, "k", "a", IL_OK, NULL);
    uint64_t b = acquire(h, "l", "a", IL_OK, NULL);
    await_written(&r);
    end(h, IL_OP_RENEW, "k", "a", a, IL_OK);
    end(h, IL_OP_RENEW, "l", "a", b, IL_OK);
    il_close(h);
    restart(&r, every_second);
    il *g = open_at(url); /* a process that knows nothing of the restart */
    acquire(g, "free", "c", IL_STORE, why);
    T_HAS(why, "restarted");
    /* What is known goes on: holders renew and give back; but nothing is given on. */
    end(g, IL_OP_RENEW, "k", "a", a, IL_OK);
    end(g, IL_OP_RELEASE, "l", "a", b, IL_OK);
    acquire(g, "l", "c", IL_STORE, why);
    acquire(g, "k", "a", IL_OK, NULL); /* it has it */
    T_LESS(b, await_grant(g, "l", "c"));
    il_close(g);
    t_redis_release(&r);
}

U_TEST(a_waiter_gets_its_turn_afterwards)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];

    start(&r, every_second, url);
    il *h = open_at(url);
    acquire(h, "k", "a", IL_OK, NULL);
    await_written(&r);
    restart(&r, every_second);
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;
    il_lease       *l = NULL;
    il_error        err;
    o.wait_ms    = LIMIT_MS;
    o.ttl_ms     = MAX_TTL_MS;
    il_status st = il_acquire(h, "k", &o, &l, &err);
    for (unsigned i = 0; st == IL_STORE && i < 500; i++) { /* as its caller is told to: not now */
        (void)poll(NULL, 0, 10);
        st = il_acquire(h, "k", &o, &l, &err);
    }
    if (st != IL_OK)
        T_FAIL("%s", err.message);
    il_lease_free(l);
    il_close(h);
    t_redis_release(&r);
}

U_TEST(a_restart_that_loses_nothing)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];

    start(&r, always, url);
    il      *h = open_at(url);
    uint64_t a = acquire(h, "k", "a", IL_OK, NULL);
    restart(&r, always);
    T_TRUE(acquire(h, "l", "a", IL_OK, NULL) > a);
    acquire(h, "k", "b", IL_HELD, NULL);
    end(h, IL_OP_RELEASE, "k", "a", a, IL_OK);
    il_close(h);
    t_redis_release(&r);
}

/* There and back again: the connection of the first handle is never cut. */
U_TEST(a_promotion_under_a_living_connection)
{
    struct t_redis a, b;
    char           url_a[T_PATH_BYTES], url_b[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES], why[256];
    il            *none = NULL;
    il_error       err;

    t_redis_init(&a, false, true);
    t_redis_init(&b, false, true);
    t_redis_start(&a, in_memory);
    t_redis_start(&b, in_memory);
    t_path(url_a, URL, a.socket);
    t_path(url_b, URL, b.socket);
    il      *h = open_at(url_a);
    uint64_t f = acquire(h, "k", "a", IL_OK, NULL);
    t_redis_follow(&b, &a);
    T_EQ(il_open(url_b, NULL, &none, &err), IL_STORE);
    T_HAS(err.message, "replica");
    T_STREQ(T_REDIS(&b, reply, "REPLICAOF", "NO", "ONE"), "OK");
    il *g = open_at(url_b);
    acquire(g, "free", "b", IL_STORE, why);
    T_HAS(why, "promoted");
    T_LESS(f, await_grant(g, "free", "b"));
    t_redis_follow(&a, &b);
    il_op op          = { .type = IL_OP_ACQUIRE, .key = "l", .holder = "a" };
    op.in.lock.ttl_ms = MAX_TTL_MS;
    T_EQ(il_apply(h, &op, 1, &err), IL_STORE); /* a replica takes no writes */
    T_HAS(err.message, "replica");
    T_STREQ(T_REDIS(&a, reply, "REPLICAOF", "NO", "ONE"), "OK");
    acquire(h, "l", "a", IL_STORE, why);
    T_HAS(why, "promoted");
    T_LESS(f, await_grant(h, "l", "a"));
    il_close(g);
    il_close(h);
    t_redis_release(&a);
    t_redis_release(&b);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(the_library_is_loaded_again),
        U_ROW(a_fresh_store_grants_at_once),
        U_ROW(a_restart_without_a_file),
        U_ROW(a_restart_that_may_have_lost_a_second),
        U_ROW(a_waiter_gets_its_turn_afterwards),
        U_ROW(a_restart_that_loses_nothing),
        U_ROW(a_promotion_under_a_living_connection),
    };

    return cmocka_run_group_tests_name("redis-restart", tests, NULL, NULL);
}
