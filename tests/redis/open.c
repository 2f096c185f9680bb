/*
 * open.c: opening a Redis store: addresses, passwords, databases, refused settings, missing
 * servers; the maximum lease time; and that no message ever shows a password.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/redis.h"
#include "harness/unit.h"

#define SECRET "hunter2"

static const char *const plain[] = { "--save", "", "--appendonly", "no", NULL };

static void
start(struct t_redis *r, bool has_port)
{
    t_redis_init(r, false, has_port);
    t_redis_start(r, plain);
}

/* Open and close; what is said never holds the password. */
static il_status
try_open(const char *url, int64_t timeout_ms, il_error *err)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;

    *err            = (il_error){ 0 };
    opts.timeout_ms = timeout_ms;
    il_status st    = il_open(url, &opts, &h, err);
    T_TRUE(strstr(err->message, SECRET) == NULL);
    if (st == IL_OK) {
        il_lease *l = NULL;
        T_EQ(il_acquire(h, "k", NULL, &l, err), IL_OK);
        T_EQ(il_lease_release(l, NULL), IL_OK);
        il_lease_free(l);
    }
    il_close(h);
    return st;
}

static void
refused(const char *url, il_status expected, const char *says)
{
    il_error err;
    int64_t  began_ms = t_real_ms();

    T_EQ(try_open(url, 1000, &err), expected);
    T_HAS(err.message, says);
    T_TRUE(t_real_ms() - began_ms < 3000);
}

static void
opens(const char *url)
{
    il_error err;

    if (try_open(url, 0, &err) != IL_OK)
        T_FAIL("%s: %s", url, err.message);
}

U_TEST(urls_that_make_no_sense)
{
    static const struct {
        const char *url, *says;
    } rows[] = {
        { "redis:localhost", "must be redis://" },
        { "redis://localhost:0/0", "host:port" },
        { "redis://localhost:65536/0", "host:port" },
        { "redis://localhost:x/0", "host:port" },
        { "redis://[::1/0", "host:port" },
        { "redis://[::1]x/0", "host:port" },
        { "redis://localhost/x", "number" },
        { "redis://localhost/0/1", "number" },
        { "redis://user:" SECRET "%zz@localhost/0", "%XX" },
        { "redis://user:" SECRET "%00@localhost/0", "%XX" },
        { "redis://:" SECRET "@localhost/0?prefix=A", "prefix" },
        { "redis://localhost/0?prefix=", "prefix" },
        { "redis://localhost/0?max_ttl=0", "max_ttl" },
        { "redis://localhost/0?max_ttl=86401", "max_ttl" },
        { "redis://localhost/0?max_ttl", "name=value" },
        { "redis://localhost/0?classic=maybe", "classic=maybe: the value must be yes or no" },
        { "redis://localhost/0?unsafe=all", "unsafe=all: the value must be eviction" },
        { "redis://localhost/0?fast=yes", "unknown option" },
        { "redis://a,b,c,d,e,f,g,h,i/0", "hosts" },
        { "redis://localhost,/0", "empty host" },
        { "redis://,localhost/0", "empty host" },
        { "redis://localhost,,localhost/0", "empty host" },
        { "redis+unix://relative.sock", "path" },
        { "redis+unix://:" SECRET "@relative.sock", "path" },
        { "rediss://localhost/0?cacert=", "file" },
        { "rediss://localhost/0?cert=/a.crt", "cert= also needs key=" },
        { "rediss://localhost/0?key=/a.key", "key= also needs cert=" },
        { "redis://localhost/0?cacert=/ca.crt", "rediss:" },
        { "redis://localhost/0?cert=/a.crt&key=/a.key", "rediss:" },
        { "redis+unix:///s?cacert=/ca.crt", "rediss:" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(rows[i].url, IL_INVAL, rows[i].says);
}

U_TEST(addresses)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];

    start(&r, true);
    t_path(url, "redis+unix://%s", r.socket);
    opens(url);
    t_path(url, "redis+unix://%s?db=5&prefix=a-b_0", r.socket);
    opens(url);
    t_path(url, "redis://127.0.0.1:%d", r.port);
    opens(url);
    t_path(url, "redis://localhost:%d/3", r.port);
    opens(url);
    t_path(url, "redis://127.0.0.1:1,127.0.0.1:%d/0", r.port); /* nobody is at the first */
    opens(url);
    t_path(url, "redis://127.0.0.1:%d/99", r.port);
    refused(url, IL_STORE, "no such database");
    t_redis_release(&r);
}

/* One database does not see the other's locks, nor one prefix. */
U_TEST(stores_beside_each_other)
{
    static const char *const rests[] = { "", "?db=1", "?prefix=other", "?db=1&prefix=other" };
    struct t_redis           r;
    il                      *h[4];
    il_lease                *l[4];
    char                     url[T_PATH_BYTES];

    start(&r, false);
    for (size_t i = 0; i < ARRAY_LEN(rests); i++) {
        t_path(url, "redis+unix://%s%s", r.socket, rests[i]);
        T_EQ(il_open(url, NULL, &h[i], NULL), IL_OK);
        T_EQ(il_acquire(h[i], "k", NULL, &l[i], NULL), IL_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(rests); i++) {
        il_lease_free(l[i]);
        il_close(h[i]);
    }
    t_redis_release(&r);
}

U_TEST(passwords)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    start(&r, false);
    t_path(url, "redis+unix://:" SECRET "@%s", r.socket);
    refused(url, IL_STORE, "the server has none");
    T_STREQ(T_REDIS(&r, reply, "ACL", "SETUSER", "il", "on", ">" SECRET "/@:?", "~{il}*", "&{il}*",
                    "+@all"),
            "OK");
    T_STREQ(T_REDIS(&r, reply, "ACL", "SETUSER", "few", "on", ">" SECRET, "~{il}*", "&{il}*",
                    "+@all", "-config"),
            "OK");
    T_STREQ(T_REDIS(&r, reply, "ACL", "SETUSER", "deaf", "on", ">" SECRET, "~{il}*", "&{il}:wake",
                    "+@all", "-subscribe"),
            "OK");
    T_STREQ(T_REDIS(&r, reply, "ACL", "SETUSER", "mute", "on", ">" SECRET, "~{il}*",
                    "resetchannels", "+@all"),
            "OK");
    T_STREQ(T_REDIS(&r, reply, "ACL", "SETUSER", "poor", "on", ">" SECRET, "~other*", "+@all"),
            "OK");
    T_STREQ(T_REDIS(&r, reply, "CONFIG", "SET", "requirepass", SECRET), "OK");
    t_path(url, "redis+unix://%s", r.socket);
    refused(url, IL_STORE, "requires a password");
    t_path(url, "redis+unix://:wrong" SECRET "@%s", r.socket);
    refused(url, IL_STORE, "wrong user name or password");
    t_path(url, "redis+unix://:" SECRET "@%s", r.socket);
    opens(url);
    t_path(url, "redis+unix://default:" SECRET "@%s", r.socket);
    opens(url);
    t_path(url, "redis+unix://il:" SECRET "%%2F%%40%%3a%%3F@%s", r.socket);
    opens(url);
    t_path(url, "redis+unix://il:" SECRET "@%s", r.socket);
    refused(url, IL_STORE, "wrong user name or password");
    t_path(url, "redis+unix://few:" SECRET "@%s", r.socket); /* settings cannot be asked for */
    opens(url);
    /* wake-ups cannot be heard: polling */
    t_path(url, "redis+unix://deaf:" SECRET "@%s", r.socket);
    opens(url);
    t_path(url, "redis+unix://mute:" SECRET "@%s", r.socket); /* others would lose their turn */
    refused(url, IL_STORE, "&{il}:wake");
    t_path(url, "redis+unix://poor:" SECRET "@%s", r.socket);
    refused(url, IL_STORE, "permission denied");
    t_redis_release(&r);
}

/* A store that is there can be opened to be looked at by `doctor`, but for nothing else. */
static void
looks_in_vain(struct t_redis *r)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_op        get  = { .type = IL_OP_GET, .key = "k" };
    il_op        take = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "a" };
    il          *h    = NULL;
    char         url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];
    il_error     err;

    opts.flags = IL_OPEN_EXISTING;
    t_path(url, "redis+unix://%s", r->socket);
    T_EQ(il_open(url, &opts, &h, &err), IL_OK);
    T_EQ(il_apply(h, &get, 1, &err), IL_STORE);
    T_HAS(err.message, "noeviction");
    T_EQ(il_apply(h, &take, 1, &err), IL_STORE);
    T_HAS(err.message, "noeviction");
    T_STREQ(T_REDIS(r, reply, "CONFIG", "SET", "maxmemory-policy", "noeviction"), "OK");
    T_EQ(il_apply(h, &take, 1, &err), IL_OK);
    T_EQ(take.status, IL_OK);
    il_op_release(&get);
    il_op_release(&take);
    il_close(h);
}

U_TEST(eviction_is_refused)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    start(&r, false);
    T_STREQ(T_REDIS(&r, reply, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), "OK");
    t_path(url, "redis+unix://%s", r.socket);
    refused(url, IL_STORE, "noeviction");
    t_path(url, "redis+unix://%s?unsafe=eviction", r.socket);
    opens(url);
    looks_in_vain(&r);
    T_STREQ(T_REDIS(&r, reply, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl"), "OK");
    t_path(url, "redis+unix://%s", r.socket);
    refused(url, IL_STORE, "volatile-ttl");
    t_redis_release(&r);
}

U_TEST(all_must_say_alike)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];
    il_open_opts   opts = IL_OPEN_OPTS_INIT;
    il            *h    = NULL;
    il_error       err;

    start(&r, false);
    opts.flags = IL_OPEN_EXISTING;
    t_path(url, "redis+unix://%s", r.socket);
    T_EQ(il_open(url, &opts, &h, &err), IL_STORE);
    T_HAS(err.message, "no store");
    opens(url);
    T_EQ(il_open(url, &opts, &h, &err), IL_OK);
    il_close(h);
    t_path(url, "redis+unix://%s?classic=yes", r.socket);
    refused(url, IL_INVAL, "classic");
    t_path(url, "redis+unix://%s?classic=no", r.socket);
    opens(url);
    t_redis_release(&r);
}

/* Rows are never misread: what was made otherwise is not opened. */
U_TEST(another_layout_is_refused)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];
    char           out[T_REDIS_REPLY_BYTES];

    start(&r, false);
    t_path(url, "redis+unix://%s", r.socket);
    opens(url);
    T_STREQ(T_REDIS(&r, out, "HGET", "{il}:store", "layout"), "1");
    IGNORE(T_REDIS(&r, out, "HSET", "{il}:store", "layout", "2") == NULL);
    refused(url, IL_NEWER, "a newer version");
    IGNORE(T_REDIS(&r, out, "HDEL", "{il}:store", "layout") == NULL);
    refused(url, IL_STORE, "an older version");
    t_redis_release(&r);
}

/* ---- servers that are not there -------------------------------------------------------------- */

U_TEST(nobody_is_there)
{
    char url[T_PATH_BYTES];

    t_path(url, "redis://:" SECRET "@127.0.0.1:%d/0", t_free_port());
    refused(url, IL_STORE, "cannot connect");
    refused("redis+unix://:" SECRET "@/nowhere/redis.sock", IL_STORE, "cannot connect");
    refused("redis://no-such-host.invalid/0", IL_STORE, "redis://no-such-host.invalid");
}

/* The command line says it at once, with the status of a store that cannot be used. */
U_TEST(the_command_line_says_so)
{
    struct t_proc p;
    char          url[T_PATH_BYTES], env[T_PATH_BYTES];
    const char   *bin      = getenv("INTERLOCK_BIN");
    int64_t       began_ms = t_real_ms();

    T_TRUE(bin != NULL);
    t_path(url, "redis://:" SECRET "@127.0.0.1:%d/0", t_free_port());
    t_path(env, "INTERLOCK_STORE=%s", url);
    t_proc_start(&p, (const char *const[]){ bin, "run", "k", "--", "true", NULL },
                 (const char *const[]){ env, NULL });
    T_EQ(t_proc_exit(&p, 5000), 69);
    T_TRUE(t_real_ms() - began_ms < 3000);
    T_HAS(p.text, "cannot connect");
    T_TRUE(strstr(p.text, SECRET) == NULL);
    t_proc_release(&p);
}

/* A server that says `text` to whoever comes, and nothing more. */
struct fake {
    pthread_t   thread;
    int         fd, port;
    const char *text;
};

static void *
fake_main(void *arg)
{
    struct fake *f = arg;
    char         heard[4096];
    int          fd;

    while ((fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (f->text != NULL && recv(fd, heard, sizeof heard, 0) > 0)
            IGNORE(send(fd, f->text, strlen(f->text), MSG_NOSIGNAL) < 0);
        while (recv(fd, heard, sizeof heard, 0) > 0)
            continue;
        (void)close(fd);
    }
    return NULL;
}

static void
fake_start(struct fake *f, const char *text)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t          n = sizeof a;

    f->text = text;
    f->fd   = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(f->fd >= 0 && bind(f->fd, (struct sockaddr *)&a, n) == 0 && listen(f->fd, 8) == 0 &&
          getsockname(f->fd, (struct sockaddr *)&a, &n) == 0);
    f->port = ntohs(a.sin_port);
    CHECK(pthread_create(&f->thread, NULL, fake_main, f) == 0);
}

static void
fake_stop(struct fake *f)
{
    (void)shutdown(f->fd, SHUT_RDWR);
    CHECK(pthread_join(f->thread, NULL) == 0);
    (void)close(f->fd);
}

U_TEST(something_else_is_there)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { NULL, "timed out waiting for a reply" },
        { "HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak" },
        { "+OK\r\n$21\r\nredis_version:6.2.7\r\n\r\n*0\r\n", "7.0 or newer" },
        { "-ERR unknown command\r\n-ERR unknown command\r\n-ERR unknown command\r\n",
          "the server says" },
        { "-DENIED Redis is running in protected mode\r\n", "the server says" },
        { "-LOADING Redis is loading the dataset in memory\r\n-LOADING x\r\n-LOADING x\r\n",
          "loading its data" },
        { "-ERR \xff\x01 bad\r\n", "the server says" },
    };
    char url[T_PATH_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake f;
        fake_start(&f, rows[i].text);
        t_path(url, "redis://127.0.0.1:%d/0", f.port);
        refused(url, IL_STORE, rows[i].says);
        fake_stop(&f);
    }
}

/* Each host of a list has its share of the time: one that takes connections and says nothing does
 * not hide the next. */
U_TEST(a_host_that_hangs_hides_no_other)
{
    struct t_redis r;
    struct fake    f;
    char           url[T_PATH_BYTES];
    il_error       err;

    start(&r, true);
    fake_start(&f, NULL);
    t_path(url, "redis://127.0.0.1:%d,127.0.0.1:%d/0", f.port, r.port);
    if (try_open(url, 6000, &err) != IL_OK)
        T_FAIL("%s", err.message);
    fake_stop(&f);
    t_redis_release(&r);
}

/* What is wrong with the master is said, not that somebody behind it is no master or not there. */
U_TEST(the_error_of_a_master_counts)
{
    struct t_redis master, replica;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];

    start(&master, true);
    start(&replica, true);
    t_redis_follow(&replica, &master);
    T_STREQ(T_REDIS(&master, reply, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), "OK");
    t_path(url, "redis://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:1/0", master.port, replica.port);
    refused(url, IL_STORE, "noeviction");
    t_path(url, "redis://127.0.0.1:1,127.0.0.1:%d/0", replica.port);
    refused(url, IL_STORE, "is a replica");
    t_redis_release(&replica);
    t_redis_release(&master);
}

/* It was there, and hangs: an op is given up after the timeout, and goes on when the server
 * does. */
U_TEST(a_server_that_hangs)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];
    il_open_opts   opts = IL_OPEN_OPTS_INIT;
    il            *h    = NULL;
    il_error       err;

    start(&r, true);
    opts.timeout_ms = 300;
    t_path(url, "redis://127.0.0.1:%d/0", r.port);
    T_EQ(il_open(url, &opts, &h, &err), IL_OK);
    il_op op = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "a" };
    T_EQ(il_apply(h, &op, 1, &err), IL_OK);
    T_EQ(op.status, IL_OK);
    uint64_t fence = op.out.fence;
    t_proc_signal(&r.proc, SIGSTOP);
    int64_t began_ms = t_real_ms();
    T_EQ(il_apply(h, &op, 1, &err), IL_STORE);
    T_HAS(err.message, "timed out");
    il_op get = { .type = IL_OP_GET, .key = "k" };
    T_EQ(il_apply(h, &get, 1, &err), IL_STORE);
    T_TRUE(t_real_ms() - began_ms < 2000);
    t_proc_signal(&r.proc, SIGCONT);
    while (il_apply(h, &op, 1, &err) != IL_OK) {
        T_TRUE(t_real_ms() - began_ms < 5000);
        (void)poll(NULL, 0, 10);
    }
    T_EQ(op.status, IL_OK); /* repeated: the same holder, the same fence */
    T_EQU(op.out.fence, fence);
    il_op_release(&op);
    il_op_release(&get);
    il_close(h);
    t_redis_release(&r);
}

/* ---- how long a lease may be ----------------------------------------------------------------- */

static void
ask_for(il *h, il_op_type type, int64_t ttl_ms, il_status expected)
{
    il_op op = { .type = type, .key = "k", .holder = "a" };

    if (type == IL_OP_RUN_START) {
        op.in.run.id     = "run";
        op.in.run.ttl_ms = ttl_ms;
    } else {
        op.in.lock.ttl_ms = ttl_ms;
    }
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    T_STREQ(il_status_name(op.status), il_status_name(expected));
    if (expected == IL_INVAL) {
        T_HAS(op.out.detail, "max_ttl=");
        T_HAS(op.out.detail, "60 s");
    }
    il_op_release(&op);
}

U_TEST(long_leases_are_refused)
{
    struct t_redis r;
    char           url[T_PATH_BYTES];
    il            *h = NULL, *g = NULL;

    start(&r, false);
    t_path(url, "redis+unix://%s", r.socket);
    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    t_path(url, "redis+unix://%s?max_ttl=120&prefix=long", r.socket);
    T_EQ(il_open(url, NULL, &g, NULL), IL_OK);
    ask_for(h, IL_OP_ACQUIRE, 60001, IL_INVAL);
    ask_for(h, IL_OP_RUN_START, 60001, IL_INVAL);
    ask_for(h, IL_OP_ACQUIRE, 60000, IL_OK);
    ask_for(g, IL_OP_ACQUIRE, 120000, IL_OK);
    /* In a batch the others are carried out. */
    il_op ops[2]          = { { .type = IL_OP_ACQUIRE, .key = "l", .holder = "a" },
                              { .type = IL_OP_ACQUIRE, .key = "m", .holder = "a" } };
    ops[0].in.lock.ttl_ms = 61000;
    T_EQ(il_apply(h, ops, 2, NULL), IL_OK);
    T_EQ(ops[0].status, IL_INVAL);
    T_EQ(ops[1].status, IL_OK);
    il_op_release(&ops[0]);
    il_op_release(&ops[1]);
    /* Claims of jobs, answers and builds are no leases. */
    il_op push            = { .type = IL_OP_JOB_PUSH, .key = "q" };
    il_op claim           = { .type = IL_OP_JOB_CLAIM, .key = "q", .holder = "w" };
    push.in.job.id        = "j";
    claim.in.job.id       = "c";
    claim.in.job.lease_ms = 3600000;
    T_EQ(il_apply(h, &push, 1, NULL), IL_OK);
    T_EQ(il_apply(h, &claim, 1, NULL), IL_OK);
    T_EQ(claim.status, IL_OK);
    il_op_release(&push);
    il_op_release(&claim);
    il_close(h);
    il_close(g);
    t_redis_release(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(urls_that_make_no_sense),
        U_ROW(addresses),
        U_ROW(stores_beside_each_other),
        U_ROW(passwords),
        U_ROW(eviction_is_refused),
        U_ROW(all_must_say_alike),
        U_ROW(nobody_is_there),
        U_ROW(the_command_line_says_so),
        U_ROW(something_else_is_there),
        U_ROW(a_server_that_hangs),
        U_ROW(long_leases_are_refused),
        U_ROW(another_layout_is_refused),
        U_ROW(a_host_that_hangs_hides_no_other),
        U_ROW(the_error_of_a_master_counts),
    };

    return cmocka_run_group_tests_name("redis-open", tests, NULL, NULL);
}
