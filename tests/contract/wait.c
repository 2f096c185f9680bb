/*
 * wait.c: waiting il_acquire() calls, from threads: granted, timed out, interrupted, many at once.
 */
#include "harness/event.h"
#include "harness/suite.h"

#define LIMIT_MS 20000

struct caller {
    il             *h;
    const char     *key;
    il_acquire_opts opts;
    pthread_t       thread;
    struct t_event *done;
    il_lease       *lease;
    il_status       status;
    il_error        err;
};

static void *
caller_main(void *arg)
{
    struct caller *c = arg;

    c->status = il_acquire(c->h, c->key, &c->opts, &c->lease, &c->err);
    t_event_add(c->done);
    return NULL;
}

static void
caller_start(struct caller *c, il *h, const char *holder, int64_t wait_ms, struct t_event *done)
{
    *c = (struct caller){ .h = h, .key = "k", .opts = IL_ACQUIRE_OPTS_INIT, .done = done };
    c->opts.holder  = holder;
    c->opts.ttl_ms  = 10000;
    c->opts.wait_ms = wait_ms;
    CHECK(pthread_create(&c->thread, NULL, caller_main, c) == 0);
}

static size_t
n_waiters(il *h)
{
    il_op    op = { 0 };
    il_error err;

    T_EQ(il_list(h, "k", NULL, 0, IL_LIST_WAITERS, &op, &err), IL_OK);
    size_t n = op.out.n_items;
    il_op_release(&op);
    return n;
}

/* Until n wait for the key; looking is the event, since a queue does not announce itself. */
static void
until_waiting(il *h, size_t n)
{
    int64_t until = t_real_ms() + LIMIT_MS;

    while (n_waiters(h) != n) {
        if (t_real_ms() > until)
            T_FAIL("%zu wait, expected %zu", n_waiters(h), n);
    }
}

static il_lease *
take(il *h, const char *holder)
{
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;
    il_error        err   = { 0 };

    o.holder = holder;
    if (il_acquire(h, "k", &o, &lease, &err) != IL_OK)
        T_FAIL("il_acquire: %s", err.message);
    return lease;
}

T_TEST(granted_when_released)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    il_lease *lease = take(h, "a");
    caller_start(&c, g, "b", IL_FOREVER, &done);
    until_waiting(h, 1);
    T_EQ(t_event_count(&done), 0);
    int64_t began = t_real_ms();
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    T_WAIT(&done, 1, 4000); /* sooner than the 5 s of a sign of life: it was woken */
    print_message("# handed over after %d ms\n", (int)(t_real_ms() - began));
    CHECK(pthread_join(c.thread, NULL) == 0);
    T_EQ(c.status, IL_OK);
    T_LESS(il_lease_fence(lease), il_lease_fence(c.lease));
    il_lease_free(c.lease);
    il_lease_free(lease);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(held_when_the_wait_ran_out)
{
    il            *h = t_store_open_real(s);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    il_lease *lease = take(h, "a");
    int64_t   began = t_real_ms();
    caller_start(&c, h, "b", 300, &done);
    T_WAIT(&done, 1, LIMIT_MS);
    T_TRUE(t_real_ms() - began >= 300);
    CHECK(pthread_join(c.thread, NULL) == 0);
    T_EQ(c.status, IL_HELD);
    T_TRUE(c.lease == NULL);
    T_STREQ(c.err.holder, "a");
    T_EQU(c.err.fence, il_lease_fence(lease));
    T_EQ(n_waiters(h), 0); /* nothing is left behind */
    il_lease_free(lease);
    il_close(h);
    t_event_release(&done);
}

T_TEST(interrupted)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    struct t_event done;
    struct caller  c[3];

    t_event_init(&done);
    il_lease *lease = take(h, "a");
    caller_start(&c[0], g, "b", IL_FOREVER, &done);
    caller_start(&c[1], g, "c", IL_FOREVER, &done);
    until_waiting(h, 2);
    il_interrupt(g);
    T_WAIT(&done, 2, LIMIT_MS);
    caller_start(&c[2], g, "d", IL_FOREVER, &done); /* from now on, too */
    T_WAIT(&done, 3, LIMIT_MS);
    for (size_t i = 0; i < 3; i++) {
        CHECK(pthread_join(c[i].thread, NULL) == 0);
        T_EQ(c[i].status, IL_CANCELLED);
    }
    T_EQ(n_waiters(h), 0);
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
    lease = take(g, "e"); /* the handle still works */
    il_lease_free(lease);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(granted_when_the_holder_dies)
{
    il             *h = t_store_open_real(s);
    il             *g = t_store_open_real(s);
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;
    struct t_event  done;
    struct caller   c;
    il_lease       *lease = NULL;

    t_event_init(&done);
    o.holder = "a";
    o.ttl_ms = 1000;
    o.flags  = IL_NO_RENEW;
    T_EQ(il_acquire(h, "k", &o, &lease, NULL), IL_OK);
    caller_start(&c, g, "b", IL_FOREVER, &done);
    il_lease_free(lease);   /* forgotten: nothing is released */
    T_WAIT(&done, 1, 4500); /* TTL and a sweep, not the sign of life after 5 s */
    CHECK(pthread_join(c.thread, NULL) == 0);
    T_EQ(c.status, IL_OK);
    il_lease_free(c.lease);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

#define N_THREADS 8
#define N_ROUNDS 25

struct worker {
    il             *h;
    pthread_t       thread;
    unsigned        i;
    unsigned       *counter; /* only touched under the lease */
    uint64_t       *last_fence;
    struct t_event *done;
    const char     *wrong;
};

static void *
worker_main(void *arg)
{
    struct worker *w = arg;

    for (unsigned i = 0; i < N_ROUNDS && w->wrong == NULL; i++) {
        il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
        il_lease       *lease = NULL;
        o.wait_ms             = IL_FOREVER;
        if (il_acquire(w->h, "k", &o, &lease, NULL) != IL_OK) {
            w->wrong = "not granted";
            break;
        }
        if (il_lease_fence(lease) <= *w->last_fence)
            w->wrong = "a fence did not grow";
        *w->last_fence = il_lease_fence(lease);
        *w->counter += 1;
        if (il_lease_release(lease, NULL) != IL_OK)
            w->wrong = "not released";
        il_lease_free(lease);
    }
    t_event_add(w->done);
    return NULL;
}

T_TEST(many_threads_one_key)
{
    struct worker  w[N_THREADS];
    struct t_event done;
    unsigned       counter    = 0;
    uint64_t       last_fence = 0;
    il            *handles[2] = { t_store_open_real(s), t_store_open_real(s) };

    t_event_init(&done);
    for (unsigned i = 0; i < N_THREADS; i++) {
        w[i] = (struct worker){ .h          = handles[i % 2],
                                .i          = i,
                                .counter    = &counter,
                                .last_fence = &last_fence,
                                .done       = &done };
        CHECK(pthread_create(&w[i].thread, NULL, worker_main, &w[i]) == 0);
    }
    T_WAIT(&done, N_THREADS, 60000);
    for (unsigned i = 0; i < N_THREADS; i++) {
        CHECK(pthread_join(w[i].thread, NULL) == 0);
        T_STREQ(w[i].wrong, NULL);
    }
    T_EQ(counter, N_THREADS * N_ROUNDS);
    T_EQ(n_waiters(handles[0]), 0);
    il_close(handles[0]);
    il_close(handles[1]);
    t_event_release(&done);
}

T_TEST(refusals_of_il_acquire)
{
    il             *h     = t_store_open_real(s);
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = take(h, "a");
    il_lease       *other = NULL;
    il_error        err   = { 0 };

    o.holder = "b";
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_HELD);
    T_STREQ(err.holder, "a");
    T_HAS(err.message, "k");
    o.holder = "a";
    o.mode   = IL_MODE_SHARED;
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_MISMATCH);
    o.mode = IL_MODE_EXCLUSIVE;
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_LOST);
    o.holder  = "c";
    o.stop_ms = 10001; /* more than a third of 30 s */
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_INVAL);
    o.stop_ms = -1;
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_INVAL);
    o.stop_ms = 0;
    o.ttl_ms  = 1;
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_INVAL);
    o.ttl_ms      = 0;
    o.struct_size = 3;
    T_EQ(il_acquire(h, "k", &o, &other, &err), IL_INVAL);
    T_EQ(il_acquire(h, "", NULL, &other, &err), IL_INVAL);
    T_EQ(il_acquire(h, NULL, NULL, &other, &err), IL_INVAL);
    T_TRUE(other == NULL);
    T_EQ(il_check_fence(h, "k", 1, &err), IL_STALE);
    T_EQU(err.fence, 0); /* nothing is held */
    il_lease_free(lease);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(granted_when_released), T_ROW(held_when_the_wait_ran_out),
        T_ROW(interrupted),           T_ROW(granted_when_the_holder_dies),
        T_ROW(many_threads_one_key),  T_ROW(refusals_of_il_acquire),
    };

    return T_SUITE("wait", tests);
}
