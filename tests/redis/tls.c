/*
 * tls.c: rediss: with our own certificates: which are trusted, and that everything works over TLS.
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#include "harness/clock.h"
#include "harness/redis.h"
#include "harness/unit.h"

/* An authority, a certificate for localhost by it, and an authority that nobody knows. */
static void
make_certificates(const char *dir)
{
    static const char script[] = "set -e; cd \"$1\"; "
                                 "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out "
                                 "ca.crt -days 2 -subj /CN=ca; "
                                 "openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out "
                                 "other.crt -days 2 -subj /CN=other; "
                                 "openssl req -newkey rsa:2048 -nodes -keyout server.key -out "
                                 "server.csr -subj /CN=localhost; "
                                 "printf 'subjectAltName=DNS:localhost' > ext; "
                                 "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key "
                                 "-CAcreateserial -days 2 -extfile ext -out server.crt";
    struct t_proc     p;

    t_proc_start(&p, (const char *const[]){ "sh", "-c", script, "sh", dir, NULL }, NULL);
    int status = t_proc_exit(&p, 60000);
    if (status != 0)
        T_FAIL("openssl: %s", p.text);
    t_proc_release(&p);
}

static il_status
try_open(const char *url, il_error *err)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;

    *err            = (il_error){ 0 };
    opts.timeout_ms = 2000;
    il_status st    = il_open(url, &opts, &h, err);
    il_close(h);
    return st;
}

/* A large value goes both ways: it does not fit into one record of TLS. */
static void
exchange(il *h)
{
    static char value[300000];
    il_op       look = { .type = IL_OP_CACHE_LOOKUP, .key = "k", .holder = "b" };
    il_op       fill = { .type = IL_OP_CACHE_FILL, .key = "k", .holder = "b" };

    memset(value, 'x', sizeof value);
    T_EQ(il_apply(h, &look, 1, NULL), IL_OK);
    T_EQ(look.status, IL_LEAD);
    fill.fence                = look.out.fence;
    fill.in.cache.value       = value;
    fill.in.cache.value_bytes = sizeof value;
    fill.in.cache.ttl_ms      = 60000;
    T_EQ(il_apply(h, &fill, 1, NULL), IL_OK);
    T_EQ(fill.status, IL_OK);
    il_op_release(&look);
    T_EQ(il_apply(h, &look, 1, NULL), IL_OK);
    T_EQ(look.status, IL_HIT);
    T_EQ(look.out.value_bytes, sizeof value);
    T_EQ(memcmp(look.out.value, value, sizeof value), 0);
    il_op_release(&look);
    il_op_release(&fill);
}

/* OpenSSL keeps a list of errors for each thread. What the program has left there is no error of
 * this connection. */
static void
old_errors_do_no_harm(il *h)
{
    il_op    op = { .type = IL_OP_GET, .key = "lock" };
    il_error err;
    void    *crypto = dlopen("libcrypto.so.3", RTLD_NOW);
    void *(*open_file)(const char *, const char *);

    if (crypto == NULL)
        crypto = dlopen("libcrypto.so.1.1", RTLD_NOW);
    T_TRUE(crypto != NULL);
    *(void **)&open_file = dlsym(crypto, "BIO_new_file");
    T_TRUE(open_file != NULL);
    for (unsigned i = 0; i < 5; i++) {
        T_TRUE(open_file("/nowhere", "r") == NULL);
        if (il_apply(h, &op, 1, &err) != IL_OK)
            T_FAIL("%s", err.message);
        il_op_release(&op);
    }
    (void)dlclose(crypto);
}

struct waiting {
    il       *h;
    il_lease *lease;
};

static void *
wait_main(void *arg)
{
    struct waiting *w = arg;
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;

    o.wait_ms = 10000;
    CHECK(il_acquire(w->h, "lock", &o, &w->lease, NULL) == IL_OK);
    return NULL;
}

/* The wake-up comes through TLS, too. */
static void
hand_over(il *h, const char *url)
{
    struct waiting w    = { 0 };
    il_lease      *l    = NULL;
    il_op          list = { .type = IL_OP_LIST, .flags = IL_LIST_WAITERS };
    pthread_t      thread;

    T_EQ(il_open(url, NULL, &w.h, NULL), IL_OK);
    T_EQ(il_acquire(h, "lock", NULL, &l, NULL), IL_OK);
    CHECK(pthread_create(&thread, NULL, wait_main, &w) == 0);
    do {
        il_op_release(&list);
        T_EQ(il_apply(h, &list, 1, NULL), IL_OK);
    } while (list.out.n_items == 0);
    il_op_release(&list);
    int64_t began_ms = t_real_ms();
    T_EQ(il_lease_release(l, NULL), IL_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    T_TRUE(t_real_ms() - began_ms < 2000);
    il_lease_free(l);
    T_EQ(il_lease_release(w.lease, NULL), IL_OK);
    il_lease_free(w.lease);
    il_close(w.h);
}

U_TEST(through_tls)
{
    struct t_redis r;
    char     url[T_PATH_BYTES], port[16], cert[T_PATH_BYTES], key[T_PATH_BYTES], ca[T_PATH_BYTES];
    int      tls_port = t_free_port();
    il      *h        = NULL;
    il_error err;

    t_redis_init(&r, false, true);
    make_certificates(r.dir);
    (void)snprintf(port, sizeof port, "%d", tls_port);
    t_path(cert, "%s/server.crt", r.dir);
    t_path(key, "%s/server.key", r.dir);
    t_path(ca, "%s/ca.crt", r.dir);
    t_redis_start(&r, (const char *const[]){ "--tls-port", port, "--tls-cert-file", cert,
                                             "--tls-key-file", key, "--tls-ca-cert-file", ca,
                                             "--tls-auth-clients", "no", "--save", "", NULL });
    t_path(url, "rediss://localhost:%s/0", port);
    T_EQ(try_open(url, &err), IL_STORE); /* this machine does not know our authority */
    T_HAS(err.message, "certificate");
    t_path(url, "rediss://localhost:%s/0?cacert=%s/other.crt", port, r.dir);
    T_EQ(try_open(url, &err), IL_STORE);
    T_HAS(err.message, "certificate");
    t_path(url, "rediss://127.0.0.1:%s/0?cacert=%s", port, ca);
    T_EQ(try_open(url, &err), IL_STORE); /* it is not for this name */
    T_HAS(err.message, "certificate");
    t_path(url, "rediss://localhost:%d/0?cacert=%s", r.port, ca);
    T_EQ(try_open(url, &err), IL_STORE);
    T_HAS(err.message, "TLS");
    t_path(url, "redis://localhost:%s/0", port);
    T_EQ(try_open(url, &err), IL_STORE);
    t_path(url, "rediss://localhost:%s/0?cacert=%s/none.crt", port, r.dir);
    T_EQ(try_open(url, &err), IL_INVAL);
    T_HAS(err.message, "none.crt");
    t_path(url, "rediss://localhost:%s/0?cacert=%s", port, ca);
    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    exchange(h);
    old_errors_do_no_harm(h);
    hand_over(h, url);
    t_redis_kill(&r); /* no signal of a broken pipe */
    il_op op = { .type = IL_OP_GET, .key = "lock" };
    for (unsigned i = 0; i < 5; i++)
        T_EQ(il_apply(h, &op, 1, NULL), IL_STORE);
    il_op_release(&op);
    il_close(h);
    t_redis_release(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(through_tls) };

    return cmocka_run_group_tests_name("redis-tls", tests, NULL, NULL);
}
