/*
 * restart.c: the function library is missing, the server was restarted or flushed, a replica was
 * promoted: what is reloaded, which server is asked, and when nothing is granted.
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
acquire_for(il *h, const char *key, const char *holder, int64_t ttl_ms, il_status expected,
            char why[256])
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };

    op.in.lock.ttl_ms = ttl_ms;
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

static uint64_t
acquire(il *h, const char *key, const char *holder, il_status expected, char why[256])
{
    return acquire_for(h, key, holder, MAX_TTL_MS, expected, why);
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
    il_op batch[3] = {
        { .type = IL_OP_ACQUIRE, .key = "m", .holder = "a" },
        { .type = IL_OP_RELEASE, .key = "k", .holder = "a", .fence = fence },
        { .type = IL_OP_ACQUIRE, .key = "k", .holder = "b" },
    };
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
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES], why[256];

    start(&r, every_second, url);
    il      *h = open_at(url);
    uint64_t a = acquire(h, "k", "a", IL_OK, NULL);
    uint64_t b = acquire(h, "l", "a", IL_OK, NULL);
    await_written(&r);
    end(h, IL_OP_RENEW, "k", "a", a, IL_OK);
    end(h, IL_OP_RENEW, "l", "a", b, IL_OK);
    il_close(h);
    restart(&r, every_second);
    /* The counter of fences is an old one, too; the clock is not. */
    T_STREQ(T_REDIS(&r, reply, "HSET", "{il}:store", "fence", "7"), "0");
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

/* ---- connections that nobody cuts ------------------------------------------------------------ */

/* Two servers, the second a replica of the first, and a handle that knows both, with all its
 * connections at the first. */
struct pair {
    struct t_redis a, b;
    il            *h;
    uint64_t       fence; /* of "k", held by "a" */
};

static void
is_current(struct pair *p, il_status expected)
{
    end(p->h, IL_OP_CHECK_FENCE, "k", NULL, p->fence, expected);
}

static void
pair_start(struct pair *p)
{
    char url[T_PATH_BYTES];

    t_redis_init(&p->a, false, true);
    t_redis_init(&p->b, false, true);
    t_redis_start(&p->a, in_memory);
    t_redis_start(&p->b, in_memory);
    t_redis_follow(&p->b, &p->a);
    t_path(url, "redis://127.0.0.1:%d,127.0.0.1:%d/0", p->a.port, p->b.port);
    p->h     = open_at(url);
    p->fence = acquire_for(p->h, "k", "a", 60000, IL_OK, NULL); /* it outlasts the test */
    is_current(p, IL_OK);
}

static void
pair_release(struct pair *p)
{
    il_close(p->h);
    t_redis_release(&p->a);
    t_redis_release(&p->b);
}

/* Wait until the replica has what was acknowledged, and make it a master. */
static void
promote(struct pair *p)
{
    char    reply[T_REDIS_REPLY_BYTES];
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    while (strcmp(T_REDIS(&p->b, reply, "HEXISTS", "{il}:store", "fence"), "1") != 0) {
        T_TRUE(t_real_ms() < until_ms);
        (void)poll(NULL, 0, 5);
    }
    T_STREQ(T_REDIS(&p->b, reply, "REPLICAOF", "NO", "ONE"), "OK");
}

/* On the new master, by somebody else. */
static void
break_there(struct pair *p)
{
    char  url[T_PATH_BYTES];
    il_op op = { .type = IL_OP_BREAK, .flags = IL_BREAK_NOW, .key = "k", .fence = p->fence };

    op.in.lock.reason = "test";
    t_path(url, URL, p->b.socket);
    il *g = open_at(url);
    apply(g, &op);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    il_close(g);
}

/* Until that many clients of the server are subscribed. */
static void
await_listeners(struct t_redis *r, const char *n)
{
    char    reply[T_REDIS_REPLY_BYTES], wanted[64];
    int64_t until_ms = t_real_ms() + LIMIT_MS;

    (void)snprintf(wanted, sizeof wanted, "{il}:wake\n%s", n);
    while (strncmp(T_REDIS(r, reply, "PUBSUB", "NUMSUB", "{il}:wake"), wanted, strlen(wanted)) !=
           0) {
        if (t_real_ms() > until_ms)
            T_FAIL("not %s listeners, but: %s", n, reply);
        (void)poll(NULL, 0, 5);
    }
}

/* Nothing is written, and no connection is cut: the one that is a replica now must not go on
 * answering. */
U_TEST(a_reader_leaves_a_master_that_was_demoted)
{
    struct pair p;
    char        reply[T_REDIS_REPLY_BYTES];
    il_op       op       = { .type = IL_OP_CHECK_FENCE, .key = "k" };
    int64_t     until_ms = t_real_ms() + LIMIT_MS;

    pair_start(&p);
    await_listeners(&p.a, "1");
    promote(&p);
    T_STREQ(T_REDIS(&p.a, reply, "REPLICAOF", "127.0.0.1", "1"), "OK"); /* nobody is there */
    break_there(&p);
    op.fence = p.fence;
    while (op.status == IL_OK) { /* it looks whether it is a replica every 10 ms */
        T_TRUE(t_real_ms() < until_ms);
        il_op_release(&op);
        apply(p.h, &op);
    }
    T_STREQ(il_status_name(op.status), il_status_name(IL_STALE));
    il_op_release(&op);
    await_listeners(&p.a, "0");
    await_listeners(&p.b, "1");
    pair_release(&p);
}

/* "id=7 addr=… cmd=fcall user=…": the id of the client whose last command this was. */
static void
client_id(struct t_redis *r, const char *cmd, char id[24])
{
    char reply[T_REDIS_REPLY_BYTES], wanted[32];

    (void)snprintf(wanted, sizeof wanted, " cmd=%s ", cmd);
    char *at = strstr(T_REDIS(r, reply, "CLIENT", "LIST"), wanted);
    T_TRUE(at != NULL);
    while (at > reply && at[-1] != '\n')
        at--;
    T_EQ(sscanf(at, "id=%23[0-9]", id), 1);
}

/* Both are masters, and the first takes no new connections: where writes go, reads go, too. */
U_TEST(a_reader_follows_the_writer)
{
    struct pair p;
    char        reply[T_REDIS_REPLY_BYTES], id[24];

    pair_start(&p);
    promote(&p);
    client_id(&p.a, "fcall", id);
    T_STREQ(T_REDIS(&p.a, reply, "CLIENT", "KILL", "ID", id), "1");
    T_STREQ(T_REDIS(&p.a, reply, "CONFIG", "SET", "requirepass", "x"), "OK");
    break_there(&p);
    is_current(&p, IL_OK); /* as the first one sees it */
    acquire(p.h, "l", "a", IL_STORE, NULL);
    is_current(&p, IL_STALE);
    await_listeners(&p.b, "1");
    pair_release(&p);
}

/* Who does not find the library on a replica cannot load it there. */
U_TEST(a_replica_without_the_library_is_left)
{
    struct t_redis a, b;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES], why[256];

    t_redis_init(&a, false, true);
    t_redis_init(&b, false, true);
    t_redis_start(&a, in_memory);
    t_redis_start(&b, in_memory);
    t_path(url, "redis://127.0.0.1:%d,127.0.0.1:%d/0?max_ttl=2", a.port, b.port);
    il      *h = open_at(url);
    uint64_t f = acquire(h, "k", "a", IL_OK, NULL);
    end(h, IL_OP_CHECK_FENCE, "k", NULL, f, IL_OK);
    T_STREQ(T_REDIS(&a, reply, "FUNCTION", "FLUSH"), "OK");
    t_redis_follow(&a, &b);
    end(h, IL_OP_GET, "k", NULL, 0, IL_NOT_HELD); /* the connection that reads */
    acquire(h, "k", "b", IL_STORE, why);
    T_HAS(why, "lost the store");
    T_LESS(f, await_grant(h, "k", "b"));
    il_close(h);
    t_redis_release(&a);
    t_redis_release(&b);
}

/* ---- an emptied database --------------------------------------------------------------------- */

U_TEST(an_emptied_store_grants_nothing_at_first)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES], why[256];

    start(&r, in_memory, url);
    il      *h     = open_at(url);
    uint64_t fence = acquire(h, "k", "a", IL_OK, NULL);
    for (unsigned round = 0; round < 2; round++) {
        T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
        if (round == 1) /* it says hello again */
            (void)T_REDIS(&r, reply, "CLIENT", "KILL", "TYPE", "normal");
        int64_t began_ms = t_real_ms();
        acquire(h, "k", "b", IL_STORE, why);
        T_HAS(why, "flushed");
        T_HAS(why, "2 s");
        il *g = open_at(url); /* everybody is told */
        acquire(g, "k", "c", IL_STORE, why);
        T_HAS(why, "flushed");
        uint64_t next = await_grant(g, "k", "c");
        T_LESS(fence, next);
        T_TRUE(t_real_ms() - began_ms >= MAX_TTL_MS - 50);
        fence = next;
        il_close(g);
    }
    /* Another store of the server is new. */
    t_path(url, "redis+unix://%s?max_ttl=2&prefix=other", r.socket);
    il *g = open_at(url);
    acquire(g, "k", "a", IL_OK, NULL);
    il_close(g);
    il_close(h);
    t_redis_release(&r);
}

/* ---- clients with another max_ttl ------------------------------------------------------------ */

/* For how many seconds more nothing is granted. */
static int
closed_s(il *h)
{
    char why[256];
    int  s = 0;

    acquire(h, "k", "b", IL_STORE, why);
    T_EQ(sscanf(why, "no leases are granted for another %d s", &s), 1);
    return s;
}

/* Whoever comes first, and whatever else is gone: the longest lease that may be held counts. */
U_TEST(the_longest_max_ttl_counts)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], long_url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    start(&r, in_memory, url);
    t_path(long_url, "redis+unix://%s?max_ttl=3600", r.socket);
    il *a = open_at(long_url);
    il *b = open_at(url);
    acquire_for(a, "k", "a", 3600000, IL_OK, NULL);
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    acquire(a, "l", "a", IL_OK, NULL);
    T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
    T_LESS(3500, closed_s(a));
    T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    T_LESS(3500, closed_s(b));
    /* The library is back, but through a connection that reads, which tells it nothing. */
    T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    end(b, IL_OP_GET, "k", NULL, 0, IL_NOT_HELD);
    T_LESS(3500, closed_s(b));
    T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
    (void)T_REDIS(&r, reply, "CLIENT", "KILL", "TYPE", "normal");
    T_LESS(3500, closed_s(b));
    restart(&r, in_memory);
    T_LESS(3500, closed_s(b));
    il_close(a);
    il_close(b);
    t_redis_release(&r);
}

/* Everybody who listens is told of a longer one, be it of a client that has gone since. */
U_TEST(a_longer_max_ttl_is_heard)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];
    int64_t        until_ms = t_real_ms() + LIMIT_MS;

    start(&r, in_memory, url);
    il *b = open_at(url);
    acquire(b, "k", "b", IL_OK, NULL); /* it listens by now */
    t_path(url, "redis+unix://%s?max_ttl=3600", r.socket);
    il_close(open_at(url));
    do {
        T_TRUE(t_real_ms() < until_ms);
        T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
        T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    } while (closed_s(b) < 3500);
    il_close(b);
    t_redis_release(&r);
}

/* One that could not hear of it came first: the other one prolongs it. One that has come since does
 * not. */
U_TEST(a_longer_max_ttl_prolongs)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], long_url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    start(&r, in_memory, url);
    T_STREQ(
        T_REDIS(&r, reply, "ACL", "SETUSER", "deaf", "on", ">x", "~*", "&*", "+@all", "-subscribe"),
        "OK");
    t_path(url, "redis+unix://deaf:x@%s?max_ttl=60", r.socket);
    t_path(long_url, "redis+unix://%s?max_ttl=3600", r.socket);
    il *b = open_at(url);
    acquire(b, "k", "b", IL_OK, NULL);
    il *a = open_at(long_url);
    T_STREQ(T_REDIS(&r, reply, "FLUSHALL"), "OK");
    T_STREQ(T_REDIS(&r, reply, "FUNCTION", "FLUSH"), "OK");
    T_TRUE(closed_s(b) <= 60);
    t_path(url, "redis+unix://%s?max_ttl=7200", r.socket);
    il *c = open_at(url);
    (void)T_REDIS(&r, reply, "CLIENT", "KILL", "TYPE", "normal");
    T_TRUE(closed_s(c) <= 60);
    int s = closed_s(a);
    T_LESS(3500, s);
    T_TRUE(s <= 3600);
    T_LESS(3500, closed_s(b));
    il_close(a);
    il_close(b);
    il_close(c);
    t_redis_release(&r);
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
        U_ROW(a_reader_leaves_a_master_that_was_demoted),
        U_ROW(a_reader_follows_the_writer),
        U_ROW(a_replica_without_the_library_is_left),
        U_ROW(an_emptied_store_grants_nothing_at_first),
        U_ROW(the_longest_max_ttl_counts),
        U_ROW(a_longer_max_ttl_is_heard),
        U_ROW(a_longer_max_ttl_prolongs),
    };

    return cmocka_run_group_tests_name("redis-restart", tests, NULL, NULL);
}
