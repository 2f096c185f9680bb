/*
 * once_api.c: il_once_begin() and the claim it returns, on the machine's own clock.
 */
#include <stdio.h>

#include "harness/event.h"
#include "harness/suite.h"

#define LIMIT_MS 15000
#define SOON_MS 4000 /* sooner than the 5 s after which a sleeper looks by itself: it was woken */

static il_once_opts
opts_of(const char *request, int64_t wait_ms)
{
    il_once_opts o = IL_ONCE_OPTS_INIT;

    o.fingerprint       = request;
    o.fingerprint_bytes = strlen(request);
    o.wait_ms           = wait_ms;
    return o;
}

static il_once *
begin(il *h, const char *key, const il_once_opts *o)
{
    il_once *once = NULL;
    il_op    op   = { 0 };
    il_error err  = { 0 };

    if (il_once_begin(h, key, o, &once, &op, &err) != IL_OK)
        T_FAIL("il_once_begin '%s': %s: %s", key, il_status_name(err.status), err.message);
    il_op_release(&op);
    return once;
}

/* A begin in a thread. */
struct caller {
    il             *h;
    il_once_opts    opts;
    pthread_t       thread;
    struct t_event *done;
    il_once        *once;
    il_status       status;
    il_op           op;
};

static void *
caller_main(void *arg)
{
    struct caller *c = arg;

    c->status = il_once_begin(c->h, "k", &c->opts, &c->once, &c->op, NULL);
    t_event_add(c->done);
    return NULL;
}

static void
caller_start(struct caller *c, il *h, il_once_opts opts, struct t_event *done)
{
    *c = (struct caller){ .h = h, .opts = opts, .done = done };
    CHECK(pthread_create(&c->thread, NULL, caller_main, c) == 0);
}

static void
caller_join(struct caller *c, il_status status)
{
    CHECK(pthread_join(c->thread, NULL) == 0);
    T_EQ(c->status, status);
}

static void
caller_release(struct caller *c)
{
    il_op_release(&c->op);
    il_once_free(c->once);
}

static uint64_t busy_count;

static void
note_busy(void *cookie UNUSED, const char *name, const char *help UNUSED, uint64_t value)
{
    if (strcmp(name, "interlock_once_busy_total") == 0)
        busy_count = value;
}

/* Until a begin through this handle has met the running attempt, so that it waits or is about
 * to. */
static void
until_busy(il *h, uint64_t n)
{
    int64_t until = t_real_ms() + LIMIT_MS;

    do {
        il_metrics(h, note_busy, NULL);
        if (t_real_ms() > until)
            T_FAIL("%d begins are busy, expected %d", (int)busy_count, (int)n);
    } while (busy_count < n);
}

T_TEST(one_effect_and_one_answer)
{
    il          *h     = t_store_open_real(s);
    il          *other = t_store_open_real(s);
    il_once_opts o     = opts_of("POST /orders", 0);
    il_once     *once  = begin(h, "k", &o);
    il_once     *more  = NULL;
    il_op        op    = { 0 };
    il_error     err   = { 0 };

    T_STREQ(il_lease_key(il_once_lease(once)), "k");
    T_EQ(il_lease_status(il_once_lease(once)), IL_OK);
    T_TRUE(il_lease_remaining_ms(il_once_lease(once)) > 40000); /* 60 s by default */
    T_TRUE(il_lease_fence(il_once_lease(once)) > 0);
    T_EQ(il_once_finish(once, 201, "order 17\0!", 10, &err), IL_OK);
    T_EQ(il_once_finish(once, 201, "order 17\0!", 10, &err), IL_OK); /* repeated */
    T_EQ(il_lease_status(il_once_lease(once)), IL_NOT_HELD);
    il_once_free(once);

    T_EQ(il_once_begin(other, "k", &o, &more, &op, &err), IL_REPLAY);
    T_TRUE(more == NULL);
    T_EQ(op.out.code, 201);
    T_EQ(op.out.value_bytes, 10);
    T_EQ(memcmp(op.out.value, "order 17\0!", 11), 0);
    il_op_release(&op);
    il_close(h);
    il_close(other);
}

T_TEST(another_request_is_refused)
{
    il          *h    = t_store_open_real(s);
    il_once_opts o    = opts_of("one request", 0);
    il_once     *more = NULL;
    il_op        op   = { 0 };
    il_error     err  = { 0 };

    o.meta        = "order 17";
    il_once *once = begin(h, "k", &o);
    o             = opts_of("another one", LIMIT_MS);
    T_EQ(il_once_begin(h, "k", &o, &more, &op, &err), IL_MISMATCH); /* at once, whatever the wait */
    T_STREQ(op.out.meta, "order 17");
    T_TRUE(strstr(err.message, "'k'") != NULL);
    il_op_release(&op);
    il_once_free(once);
    il_close(h);
}

T_TEST(busy_while_the_first_attempt_runs)
{
    il          *h    = t_store_open_real(s);
    il_once_opts o    = opts_of("request", 0);
    il_once     *more = NULL;
    il_op        op   = { 0 };

    o.meta        = "order 17";
    il_once *once = begin(h, "k", &o);
    T_EQ(il_once_begin(h, "k", &o, &more, &op, NULL), IL_BUSY);
    T_STREQ(op.out.meta, "order 17");
    T_TRUE(op.out.remaining_ms > 40000 && op.out.remaining_ms <= 60000);
    il_op_release(&op);
    o.wait_ms     = 200;
    int64_t began = t_real_ms();
    T_EQ(il_once_begin(h, "k", &o, &more, &op, NULL), IL_BUSY); /* in vain */
    T_TRUE(t_real_ms() - began >= 200);
    il_op_release(&op);
    T_EQ(il_once_abandon(once, NULL), IL_OK);
    T_EQ(il_once_abandon(once, NULL), IL_OK); /* repeated */
    il_once_free(once);
    T_EQ(il_once_begin(h, "k", &o, &more, &op, NULL), IL_OK); /* free again */
    il_op_release(&op);
    il_once_free(more);
    il_close(h);
}

T_TEST(who_waits_gets_the_answer)
{
    il            *h    = t_store_open_real(s);
    il            *g    = t_store_open_real(s);
    il_once_opts   o    = opts_of("request", IL_FOREVER);
    il_once       *once = begin(h, "k", &o);
    struct t_event done;
    struct caller  c[2];

    t_event_init(&done);
    caller_start(&c[0], g, o, &done);
    caller_start(&c[1], g, o, &done);
    until_busy(g, 2);
    T_EQ(t_event_count(&done), 0);
    T_EQ(il_once_finish(once, 7, "answer", 6, NULL), IL_OK);
    T_WAIT(&done, 2, SOON_MS);
    for (size_t i = 0; i < 2; i++) {
        caller_join(&c[i], IL_REPLAY);
        T_EQ(c[i].op.out.code, 7);
        T_STREQ(c[i].op.out.value, "answer");
        caller_release(&c[i]);
    }
    il_once_free(once);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(who_waits_goes_on_when_the_first_gives_up)
{
    il            *h    = t_store_open_real(s);
    il            *g    = t_store_open_real(s);
    il_once_opts   o    = opts_of("request", IL_FOREVER);
    il_once       *once = begin(h, "k", &o);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    caller_start(&c, g, o, &done);
    until_busy(g, 1);
    T_EQ(il_once_abandon(once, NULL), IL_OK);
    T_WAIT(&done, 1, SOON_MS);
    caller_join(&c, IL_OK);
    caller_release(&c);
    il_once_free(once);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(the_claim_is_renewed)
{
    il          *h    = t_store_open_real(s);
    il_once_opts o    = opts_of("request", 0);
    il_once     *more = NULL;
    il_op        op   = { 0 };

    o.lease_ms     = 1000;
    il_once *once  = begin(h, "k", &o);
    int64_t  past  = il_lease_deadline_ns(il_once_lease(once)) + INT64_C(1000000000);
    int64_t  until = t_real_ms() + LIMIT_MS;
    while (il_lease_deadline_ns(il_once_lease(once)) < past) {
        if (t_real_ms() > until)
            T_FAIL("it is not renewed");
    }
    T_EQ(il_lease_status(il_once_lease(once)), IL_OK);
    T_EQ(il_once_begin(h, "k", &o, &more, &op, NULL), IL_BUSY);
    il_op_release(&op);
    T_EQ(il_once_finish(once, 0, NULL, 0, NULL), IL_OK);
    il_once_free(once);
    il_close(h);
}

T_TEST(a_dead_attempt_is_taken_over)
{
    il          *h  = t_store_open_real(s);
    il_once_opts o  = opts_of("request", IL_FOREVER);
    il_op        op = { 0 };
    char         attempt[37];

    o.lease_ms     = 1000;
    o.meta         = "order 17";
    il_once *first = begin(h, "k", &o);
    uint64_t token = il_lease_fence(il_once_lease(first));
    (void)snprintf(attempt, sizeof attempt, "%s", il_lease_holder(il_once_lease(first)));
    il_once_free(first); /* forgotten, as if it had crashed */
    il_once *second = NULL;
    o.meta          = NULL;
    T_EQ(il_once_begin(h, "k", &o, &second, &op, NULL), IL_OK);
    T_TRUE((op.out.flags & IL_OUT_TAKEOVER) != 0);
    T_STREQ(op.out.meta, "order 17"); /* what the first one was about to make */
    il_op_release(&op);

    il_op late = { .type = IL_OP_ONCE_FINISH, .key = "k", .holder = attempt, .fence = token };
    T_EQ(il_apply(h, &late, 1, NULL), IL_OK);
    T_EQ(late.status, IL_STALE);
    il_op_release(&late);
    T_EQ(il_once_finish(second, 0, "done", 4, NULL), IL_OK);
    il_once_free(second);
    il_close(h);
}

T_TEST(interrupted)
{
    il            *h    = t_store_open_real(s);
    il            *g    = t_store_open_real(s);
    il_once_opts   o    = opts_of("request", IL_FOREVER);
    il_once       *once = begin(h, "k", &o);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    caller_start(&c, g, o, &done);
    until_busy(g, 1);
    il_interrupt(g);
    T_WAIT(&done, 1, LIMIT_MS);
    caller_join(&c, IL_CANCELLED);
    T_TRUE(c.once == NULL);
    caller_release(&c);
    il_once_free(once);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define N_CALLERS 12

struct racer {
    il             *h;
    pthread_t       thread;
    unsigned        i;
    atomic_uint    *n_effects;
    struct t_event *done;
    char            answer[32];
};

static void *
racer_main(void *arg)
{
    struct racer *r    = arg;
    il_once_opts  o    = opts_of("request", IL_FOREVER);
    il_once      *once = NULL;
    il_op         op   = { 0 };

    il_status st = il_once_begin(r->h, "race", &o, &once, &op, NULL);
    if (st == IL_OK) {
        atomic_fetch_add(r->n_effects, 1);
        (void)snprintf(r->answer, sizeof r->answer, "made by %u", r->i);
        CHECK(il_once_finish(once, 0, r->answer, strlen(r->answer), NULL) == IL_OK);
    } else if (st == IL_REPLAY) {
        (void)snprintf(r->answer, sizeof r->answer, "%s", (const char *)op.out.value);
    }
    il_op_release(&op);
    il_once_free(once);
    t_event_add(r->done);
    return NULL;
}

T_TEST(many_callers_one_effect)
{
    il            *h[2]         = { t_store_open_real(s), t_store_open_real(s) };
    struct racer   r[N_CALLERS] = { 0 };
    atomic_uint    n_effects    = 0;
    struct t_event done;

    t_event_init(&done);
    for (unsigned i = 0; i < N_CALLERS; i++) {
        r[i] = (struct racer){ .h = h[i % 2], .i = i, .n_effects = &n_effects, .done = &done };
        CHECK(pthread_create(&r[i].thread, NULL, racer_main, &r[i]) == 0);
    }
    T_WAIT(&done, N_CALLERS, 2 * LIMIT_MS);
    for (unsigned i = 0; i < N_CALLERS; i++) {
        CHECK(pthread_join(r[i].thread, NULL) == 0);
        T_TRUE(strncmp(r[i].answer, "made by ", 8) == 0);
        T_STREQ(r[i].answer, r[0].answer);
    }
    T_EQ(atomic_load(&n_effects), 1);
    il_close(h[0]);
    il_close(h[1]);
    t_event_release(&done);
}

T_TEST(what_is_not_acceptable)
{
    il          *h    = t_store_open_real(s);
    il_once     *once = NULL;
    il_op        op   = { 0 };
    il_error     err  = { 0 };
    il_once_opts o    = opts_of("request", 0);
    char         key[IL_ONCE_KEY_BYTES_MAX + 2];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    T_EQ(il_once_begin(h, key, &o, &once, &op, &err), IL_INVAL); /* 256 bytes */
    il_op_release(&op);
    key[sizeof key - 2] = '\0';
    il_once_free(begin(h, key, &o));
    T_EQ(il_once_begin(h, NULL, &o, &once, &op, &err), IL_INVAL);
    T_EQ(il_once_begin(h, "k", &o, &once, NULL, &err), IL_INVAL);
    T_EQ(il_once_begin(h, "k", &o, NULL, &op, &err), IL_INVAL);
    o.fingerprint_bytes = IL_FINGERPRINT_BYTES_MAX + 1;
    T_EQ(il_once_begin(h, "k", &o, &once, &op, &err), IL_INVAL);
    o = opts_of("request", -7);
    T_EQ(il_once_begin(h, "k", &o, &once, &op, &err), IL_INVAL);
    o.struct_size = 0;
    T_EQ(il_once_begin(h, "k", &o, &once, &op, &err), IL_INVAL);
    T_TRUE(strstr(err.message, "IL_ONCE_OPTS_INIT") != NULL);
    T_EQ(il_once_finish(NULL, 0, NULL, 0, &err), IL_INVAL);
    T_EQ(il_once_abandon(NULL, &err), IL_INVAL);
    T_TRUE(il_once_lease(NULL) == NULL);
    il_once_free(NULL);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(one_effect_and_one_answer),
        T_ROW(another_request_is_refused),
        T_ROW(busy_while_the_first_attempt_runs),
        T_ROW(who_waits_gets_the_answer),
        T_ROW(who_waits_goes_on_when_the_first_gives_up),
        T_ROW(the_claim_is_renewed),
        T_ROW(a_dead_attempt_is_taken_over),
        T_ROW(interrupted),
        T_ROW(many_callers_one_effect),
        T_ROW(what_is_not_acceptable),
    };

    return T_SUITE("once_api", tests);
}
