/*
 * cache_api.c: il_cache_lookup() and the build it returns, on the machine's own clock.
 */
#include <poll.h>
#include <stdio.h>

#include "harness/event.h"
#include "harness/suite.h"

#define LIMIT_MS 15000
#define SOON_MS 4000 /* sooner than the 5 s after which a sleeper looks by itself: it was woken */

static il_cache_opts
opts_of(int64_t lease_ms, int64_t wait_ms)
{
    il_cache_opts o = IL_CACHE_OPTS_INIT;

    o.lease_ms = lease_ms;
    o.wait_ms  = wait_ms;
    return o;
}

/* A lookup that must lead. */
static il_build *
lead(il *h, const char *key, int64_t lease_ms)
{
    il_cache_opts o     = opts_of(lease_ms, IL_FOREVER);
    il_build     *build = NULL;
    il_op         op    = { 0 };
    il_error      err   = { 0 };
    il_status     st    = il_cache_lookup(h, key, &o, &build, &op, &err);

    if (st != IL_LEAD)
        T_FAIL("il_cache_lookup '%s': %s, expected to lead", key, il_status_name(st));
    il_op_release(&op);
    return build;
}

static void
fill(il_build *build, const char *value, int64_t ttl_ms, int64_t grace_ms)
{
    il_error err = { 0 };

    if (il_build_fill(build, value, strlen(value), ttl_ms, grace_ms, 0, 0, &err) != IL_OK)
        T_FAIL("il_build_fill: %s: %s", il_status_name(err.status), err.message);
    il_build_free(build);
}

/* A lookup that must have this status and value, and does not lead. */
static void
expect(il *h, const char *key, il_status status, const char *value)
{
    il_build *build = NULL;
    il_op     op    = { 0 };
    il_status st    = il_cache_lookup(h, key, NULL, &build, &op, NULL);

    if (st != status)
        T_FAIL("%s, expected %s", il_status_name(st), il_status_name(status));
    T_STREQ(op.out.value, value);
    T_EQ(op.out.value_bytes, strlen(value));
    T_TRUE(build == NULL);
    il_op_release(&op);
}

/* A lookup in a thread. */
struct caller {
    il             *h;
    il_cache_opts   opts;
    pthread_t       thread;
    struct t_event *done;
    il_build       *build;
    il_status       status;
    il_op           op;
};

static void *
caller_main(void *arg)
{
    struct caller *c = arg;

    c->status = il_cache_lookup(c->h, "k", &c->opts, &c->build, &c->op, NULL);
    t_event_add(c->done);
    return NULL;
}

static void
caller_start(struct caller *c, il *h, struct t_event *done)
{
    *c = (struct caller){ .h = h, .opts = opts_of(20000, IL_FOREVER), .done = done };
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
    il_build_free(c->build);
}

static void
find_waits(void *cookie, const char *name, const char *help UNUSED, uint64_t value)
{
    uint64_t *n = cookie;

    if (strcmp(name, "interlock_cache_waits_total") == 0)
        *n = value;
}

/* Until lookups of this handle have met the build of somebody else, so that they wait or are about
 * to. */
static void
until_waiting(il *h, uint64_t n)
{
    int64_t  until = t_real_ms() + LIMIT_MS;
    uint64_t seen  = 0;

    do {
        il_metrics(h, find_waits, &seen);
        if (t_real_ms() > until)
            T_FAIL("%d lookups wait, expected %d", (int)seen, (int)n);
    } while (seen < n);
}

T_TEST(one_builds_and_all_have_it)
{
    il       *h     = t_store_open_real(s);
    il       *other = t_store_open_real(s);
    il_build *build = lead(h, "k", 20000);
    il_error  err   = { 0 };

    T_STREQ(il_lease_key(il_build_lease(build)), "k");
    T_EQ(il_lease_status(il_build_lease(build)), IL_OK);
    T_TRUE(il_lease_remaining_ms(il_build_lease(build)) > 9000);
    T_EQ(il_build_fill(build, "value", 5, 60000, 0, 0, 0, &err), IL_OK);
    T_EQ(il_build_fill(build, "value", 5, 60000, 0, 0, 0, &err), IL_OK); /* repeated */
    T_EQ(il_lease_status(il_build_lease(build)), IL_NOT_HELD);
    il_build_free(build);
    expect(h, "k", IL_HIT, "value");
    expect(other, "k", IL_HIT, "value");
    il_close(h);
    il_close(other);
}

T_TEST(a_negative_value_is_a_value)
{
    il       *h     = t_store_open_real(s);
    il_build *build = lead(h, "k", 20000);
    il_build *more  = NULL;
    il_op     op    = { 0 };

    T_EQ(il_build_fill(build, "no such day", 11, 60000, 0, IL_CACHE_NEGATIVE, 404, NULL), IL_OK);
    il_build_free(build);
    T_EQ(il_cache_lookup(h, "k", NULL, &more, &op, NULL), IL_HIT);
    T_TRUE((op.out.flags & IL_OUT_NEGATIVE) != 0);
    T_EQ(op.out.code, 404);
    T_STREQ(op.out.value, "no such day");
    il_op_release(&op);
    il_close(h);
}

T_TEST(who_may_not_build)
{
    il      *h   = t_store_open_real(s);
    il_op    op  = { 0 };
    il_error err = { 0 };

    T_EQ(il_cache_lookup(h, "k", NULL, NULL, &op, &err), IL_NOT_FOUND);
    T_TRUE(strstr(err.message, "'k'") != NULL);
    il_op_release(&op);
    fill(lead(h, "k", 20000), "value", 60000, 60000);
    T_EQ(il_cache_drop(h, "k", IL_DROP_STALE, &err), IL_OK);
    T_EQ(il_cache_lookup(h, "k", NULL, NULL, &op, &err), IL_STALE_HIT);
    T_STREQ(op.out.value, "value");
    il_op_release(&op);
    il_close(h);
}

/* The old value is served while somebody builds, and when that fails. */
T_TEST(a_stale_value_while_somebody_builds)
{
    il       *h     = t_store_open_real(s);
    il       *other = t_store_open_real(s);
    il_build *build = lead(h, "k", 20000);
    il_op     op    = { 0 };

    fill(build, "old", 60000, 60000);
    build = NULL;
    T_EQ(il_cache_drop(h, "k", IL_DROP_STALE, NULL), IL_OK);
    T_EQ(il_cache_lookup(h, "k", NULL, &build, &op, NULL), IL_LEAD);
    T_STREQ(op.out.value, "old"); /* shown to who builds, too */
    il_op_release(&op);
    expect(other, "k", IL_STALE_HIT, "old");
    T_EQ(il_build_abandon(build, NULL), IL_OK);
    T_EQ(il_build_abandon(build, NULL), IL_OK); /* repeated */
    il_build_free(build);
    fill(lead(other, "k", 20000), "new", 60000, 0);
    expect(h, "k", IL_HIT, "new");
    il_close(h);
    il_close(other);
}

T_TEST(a_wait_that_runs_out)
{
    il           *h     = t_store_open_real(s);
    il_build     *build = lead(h, "k", 20000);
    il_build     *more  = NULL;
    il_cache_opts o     = opts_of(0, 200);
    il_op         op    = { 0 };
    int64_t       began = t_real_ms();

    T_EQ(il_cache_lookup(h, "k", &o, &more, &op, NULL), IL_WAIT);
    T_TRUE(t_real_ms() - began >= 200);
    T_TRUE(op.out.remaining_ms > 0);
    T_TRUE(more == NULL);
    il_op_release(&op);
    il_build_free(build);
    il_close(h);
}

T_TEST(who_waits_leads_when_the_builder_gives_up)
{
    il            *h     = t_store_open_real(s);
    il            *g     = t_store_open_real(s);
    il_build      *build = lead(h, "k", 20000);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    caller_start(&c, g, &done);
    until_waiting(g, 1);
    T_EQ(il_build_abandon(build, NULL), IL_OK);
    T_WAIT(&done, 1, SOON_MS);
    caller_join(&c, IL_LEAD);
    caller_release(&c);
    il_build_free(build);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

/* R5: leader killed: the next takes over. */
T_TEST(who_waits_leads_when_the_builder_dies)
{
    il            *h     = t_store_open_real(s);
    il            *g     = t_store_open_real(s);
    il_build      *build = lead(h, "k", 1000);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    caller_start(&c, g, &done);
    il_build_free(build);      /* forgotten: no more renewals */
    T_WAIT(&done, 1, SOON_MS); /* its lease, not the look after 5 s */
    caller_join(&c, IL_LEAD);
    caller_release(&c);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(the_build_is_renewed)
{
    il       *h     = t_store_open_real(s);
    il_build *build = lead(h, "k", 1000);
    int64_t   past  = il_lease_deadline_ns(il_build_lease(build)) + INT64_C(1000000000);
    int64_t   until = t_real_ms() + LIMIT_MS;

    while (il_lease_deadline_ns(il_build_lease(build)) < past) {
        if (t_real_ms() > until)
            T_FAIL("it is not renewed");
    }
    T_EQ(il_lease_status(il_build_lease(build)), IL_OK);
    fill(build, "value", 60000, 0);
    expect(h, "k", IL_HIT, "value");
    il_close(h);
}

/* The renewal of a lease of 30 s is 10 s away: who learns it sooner was woken. */
T_TEST(a_dropped_build_is_void_and_its_builder_is_told)
{
    il      *h     = t_store_open_real(s);
    il      *other = t_store_open_real(s);
    il_error err   = { 0 };

    for (unsigned i = 0; i < 2; i++) {
        il_build     *build = lead(h, "k", 30000);
        struct pollfd lost  = { .fd = il_lease_fd(il_build_lease(build)), .events = POLLIN };
        T_EQ(il_cache_drop(other, "k", i == 0 ? 0 : IL_DROP_STALE, &err), IL_OK);
        T_EQ(poll(&lost, 1, SOON_MS), 1);
        T_EQ(il_lease_status(il_build_lease(build)), IL_LOST);
        T_EQ(il_build_fill(build, "too old", 7, 60000, 0, 0, 0, &err), IL_STALE);
        il_build_free(build);
    }
    fill(lead(h, "k", 20000), "new", 60000, 0); /* its renewal has left nothing behind */
    T_EQ(il_cache_drop(h, "k", IL_DROP_STALE, &err), IL_OK);
    T_EQ(il_cache_drop(h, "k", 0, &err), IL_OK);
    T_EQ(il_cache_drop(h, "k", 0, &err), IL_OK); /* nothing there */
    il_close(h);
    il_close(other);
}

T_TEST(interrupted)
{
    il            *h     = t_store_open_real(s);
    il            *g     = t_store_open_real(s);
    il_build      *build = lead(h, "k", 20000);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    caller_start(&c, g, &done);
    until_waiting(g, 1);
    il_interrupt(g);
    T_WAIT(&done, 1, LIMIT_MS);
    caller_join(&c, IL_CANCELLED);
    caller_release(&c);
    il_build_free(build);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

/* ---- early refresh --------------------------------------------------------------------------- */

/* A value that took 200 ms to build and is fresh for 400 ms more. */
static void
fill_slowly(il *h, const char *key)
{
    il_build *build = lead(h, key, 20000);

    (void)poll(NULL, 0, 200); /* the time that a build takes is what the chance is made of */
    fill(build, "slow", 600, 60000);
}

T_TEST(one_refreshes_early_when_that_is_due)
{
    il           *h     = t_store_open_real(s);
    il_cache_opts never = opts_of(0, 0);
    unsigned      early = 0;

    never.never_early = 1;
    /* A machine that stands still may miss the 400 ms: then another key is tried. */
    for (unsigned i = 0; i < 20 && early == 0; i++) {
        char      key[16];
        il_status st = IL_HIT;
        (void)snprintf(key, sizeof key, "k%u", i);
        fill_slowly(h, key);
        while (st == IL_HIT) {
            il_build *build = NULL;
            il_op     op    = { 0 };
            st              = il_cache_lookup(h, key, &never, &build, &op, NULL);
            T_TRUE(st != IL_LEAD || (op.out.flags & IL_OUT_EARLY) == 0);
            il_op_release(&op);
            il_build_free(build);
            if (st != IL_HIT)
                break;
            st = il_cache_lookup(h, key, NULL, &build, &op, NULL);
            if (st == IL_LEAD && (op.out.flags & IL_OUT_EARLY) != 0) {
                T_STREQ(op.out.value, "slow");
                expect(h, key, IL_HIT, "slow"); /* the others do not notice */
                early++;
            }
            il_op_release(&op);
            il_build_free(build);
        }
    }
    T_EQ(early, 1);
    il_close(h);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define N_CALLERS 12

struct racer {
    il             *h;
    pthread_t       thread;
    unsigned        i;
    atomic_uint    *n_builds;
    struct t_event *done;
    char            value[32];
};

static void *
racer_main(void *arg)
{
    struct racer *r     = arg;
    il_build     *build = NULL;
    il_op         op    = { 0 };
    il_status     st    = il_cache_lookup(r->h, "race", NULL, &build, &op, NULL);

    if (st == IL_LEAD) {
        atomic_fetch_add(r->n_builds, 1);
        (void)snprintf(r->value, sizeof r->value, "built by %u", r->i);
        CHECK(il_build_fill(build, r->value, strlen(r->value), 60000, 0, 0, 0, NULL) == IL_OK);
    } else if (st == IL_HIT) {
        (void)snprintf(r->value, sizeof r->value, "%s", (const char *)op.out.value);
    }
    il_op_release(&op);
    il_build_free(build);
    t_event_add(r->done);
    return NULL;
}

T_TEST(many_callers_one_build)
{
    il            *h[2]         = { t_store_open_real(s), t_store_open_real(s) };
    struct racer   r[N_CALLERS] = { 0 };
    atomic_uint    n_builds     = 0;
    struct t_event done;

    t_event_init(&done);
    for (unsigned i = 0; i < N_CALLERS; i++) {
        r[i] = (struct racer){ .h = h[i % 2], .i = i, .n_builds = &n_builds, .done = &done };
        CHECK(pthread_create(&r[i].thread, NULL, racer_main, &r[i]) == 0);
    }
    T_WAIT(&done, N_CALLERS, 2 * LIMIT_MS);
    for (unsigned i = 0; i < N_CALLERS; i++) {
        CHECK(pthread_join(r[i].thread, NULL) == 0);
        T_TRUE(strncmp(r[i].value, "built by ", 9) == 0);
        T_STREQ(r[i].value, r[0].value);
    }
    T_EQ(atomic_load(&n_builds), 1);
    il_close(h[0]);
    il_close(h[1]);
    t_event_release(&done);
}

T_TEST(what_is_not_acceptable)
{
    il           *h     = t_store_open_real(s);
    il_build     *build = NULL;
    il_op         op    = { 0 };
    il_error      err   = { 0 };
    il_cache_opts o     = opts_of(0, -2);

    T_EQ(il_cache_lookup(h, "k", &o, &build, &op, &err), IL_INVAL);
    o = opts_of(IL_TTL_MS_MAX + 1, 0);
    T_EQ(il_cache_lookup(h, "k", &o, &build, &op, &err), IL_INVAL);
    il_op_release(&op);
    o.struct_size = 1;
    T_EQ(il_cache_lookup(h, "k", &o, &build, &op, &err), IL_INVAL);
    T_TRUE(strstr(err.message, "IL_CACHE_OPTS_INIT") != NULL);
    T_EQ(il_cache_lookup(h, NULL, NULL, &build, &op, &err), IL_INVAL);
    T_EQ(il_cache_lookup(h, "", NULL, &build, &op, &err), IL_INVAL);
    il_op_release(&op);
    T_EQ(il_cache_lookup(h, "k", NULL, &build, NULL, &err), IL_INVAL);
    T_TRUE(build == NULL);
    build = lead(h, "k", 20000);
    T_EQ(il_build_fill(build, "value", 5, 0, 0, 0, 0, &err), IL_INVAL); /* a ttl of nothing */
    fill(build, "value", 60000, 0);                                     /* and once more, better */
    T_EQ(il_build_fill(NULL, "value", 5, 1, 0, 0, 0, &err), IL_INVAL);
    T_EQ(il_build_abandon(NULL, &err), IL_INVAL);
    T_TRUE(il_build_lease(NULL) == NULL);
    il_build_free(NULL);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(one_builds_and_all_have_it),
        T_ROW(a_negative_value_is_a_value),
        T_ROW(who_may_not_build),
        T_ROW(a_stale_value_while_somebody_builds),
        T_ROW(a_wait_that_runs_out),
        T_ROW(who_waits_leads_when_the_builder_gives_up),
        T_ROW(who_waits_leads_when_the_builder_dies),
        T_ROW(the_build_is_renewed),
        T_ROW(a_dropped_build_is_void_and_its_builder_is_told),
        T_ROW(interrupted),
        T_ROW(one_refreshes_early_when_that_is_due),
        T_ROW(many_callers_one_build),
        T_ROW(what_is_not_acceptable),
    };

    return T_SUITE("cache_api", tests);
}
