/*
 * fetch.c: fetching pages from the generated site: what a hostile or broken site gets us to do, and
 * the permits of a host.
 */
#include "apps/ingest/fetch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/event.h"
#include "harness/unit.h"
#include "ingest/site.h"

#define LIMIT_MS 30000
#define SLUG "hilltoprc"

/* A store, a site, a fetcher. */
struct world {
    struct t_site      site;
    char               dir[T_PATH_BYTES];
    il                *h;
    struct fetcher    *f;
    struct fetch_conn *c;
    atomic_bool        stop;
    atomic_uint        n_waits;
    struct t_clock     clock; /* of the store, if it was asked for */
};

static bool
should_stop(void *cookie)
{
    const struct world *w = cookie;

    return atomic_load(&w->stop);
}

static void
waits(void *cookie)
{
    struct world *w = cookie;

    atomic_fetch_add(&w->n_waits, 1);
}

static void
make_at(struct world *w, const struct site_serve *how, struct fetch_options o, bool test_clock)
{
    char               url[T_PATH_BYTES];
    il_open_opts       opts  = IL_OPEN_OPTS_INIT;
    struct fetch_calls calls = { .should_stop = should_stop, .waits = waits, .cookie = w };
    il_error           err   = { .message = "" };

    *w = (struct world){ .h = NULL };
    t_site_start(&w->site, how);
    t_tmp_make(w->dir);
    t_path(url, "sqlite:%s/s.db%s", w->dir, test_clock ? "?clock=test" : "");
    t_clock_init(&w->clock);
    if (test_clock)
        opts.clock = &w->clock.il;
    o.base       = o.base != NULL ? o.base : w->site.base;
    o.permits    = o.permits != 0 ? o.permits : 1;
    o.backoff_ms = o.backoff_ms != 0 ? o.backoff_ms : 1;
    T_EQ(il_open(url, &opts, &w->h, &err), IL_OK);
    T_EQ(il__fetcher_open(w->h, &o, &w->f, &err), IL_OK);
    T_EQ(il__fetch_open(w->f, &calls, &w->c, &err), IL_OK);
}

static void
make(struct world *w, const struct site_serve *how, struct fetch_options o)
{
    make_at(w, how, o, false);
}

static void
release(struct world *w)
{
    il__fetch_close(w->c);
    il__fetcher_close(w->f);
    il_close(w->h);
    t_site_stop(&w->site);
    t_tmp_remove(w->dir);
}

/* Leases of the host that are held. */
static size_t
n_permits(struct world *w)
{
    il_op  op = { .type = IL_OP_LIST, .tenant = FETCH_TENANT };
    size_t n  = 0;

    T_EQ(il_apply(w->h, &op, 1, NULL), IL_OK);
    n = op.out.n_items;
    il_op_release(&op);
    return n;
}

static il_status
get(struct world *w, const struct fetch_what *what, struct fetched *ret, il_error *err)
{
    il_status st = il__fetch(w->c, what, ret, err);

    T_EQ(n_permits(w), 0); /* whatever happens, they are given back */
    return st;
}

static const struct fetch_what event = { .kind = LIVERC_EVENT, .slug = SLUG, .id = "100000" };

static struct site_serve
failing(enum site_failure how, uint64_t every)
{
    struct site_serve s = t_site_small();

    s.site.robots = SITE_ROBOTS_NONE;
    s.fail_how    = how;
    s.fail_every  = every;
    return s;
}

/* The site fails each request: no page, with a text that says why. */
static void
fails(enum site_failure how, const char *why, unsigned n_attempts)
{
    struct site_serve s = failing(how, 1);
    struct world      w;
    struct fetched    page;
    il_error          err = { .message = "" };

    make(&w, &s, (struct fetch_options){ .read_ms = 300, .total_ms = 600 });
    T_EQ(get(&w, &event, &page, &err), IL_INVAL);
    T_EQ(page.code, LIVERC_CONNECTOR_HTTP_ERROR);
    T_EQ(page.n_attempts, n_attempts);
    if (strstr(err.message, why) == NULL)
        T_FAIL("expected '%s' in: %s", why, err.message);
    il__fetched_release(&page);
    release(&w);
}

/* ---- pages ----------------------------------------------------------------------------------- */

U_TEST(a_page)
{
    struct site_serve s = t_site_small();
    struct world      w;
    struct fetched    page, again;
    il_error          err;

    make(&w, &s, (struct fetch_options){ .permits = 3 });
    T_EQ(get(&w, &event, &page, &err), IL_OK);
    T_TRUE(strstr(il__buf_str(&page.body), "page-header") != NULL);
    T_TRUE(page.etag[0] != '\0' && page.modified[0] != '\0');
    T_TRUE(!page.unchanged);
    struct fetch_what what = event;
    what.etag              = page.etag;
    T_EQ(get(&w, &what, &again, &err), IL_OK);
    T_TRUE(again.unchanged);
    il__fetched_release(&again);
    what.etag     = NULL;
    what.modified = page.modified;
    T_EQ(get(&w, &what, &again, &err), IL_OK);
    T_TRUE(again.unchanged);
    il__fetched_release(&again);
    what = (struct fetch_what){ .kind = LIVERC_RACE, .slug = SLUG, .id = "99" };
    T_EQ(get(&w, &what, &again, &err), IL_INVAL);
    T_HAS(err.message, "404");
    T_EQ(again.n_attempts, 1); /* it would be the same again */
    il__fetched_release(&again);
    what.slug = "../x";
    T_EQ(get(&w, &what, &again, &err), IL_INVAL);
    T_EQ(again.code, LIVERC_VALIDATION_ERROR);
    T_EQ(again.n_attempts, 0);
    il__fetched_release(&again);
    il__fetched_release(&page);
    release(&w);
}

U_TEST(robots_are_honoured)
{
    struct site_serve s = t_site_small();
    struct world      w;
    struct fetched    page;
    il_error          err;

    s.site.robots = SITE_ROBOTS_DENY;
    make(&w, &s, (struct fetch_options){ .permits = 1 });
    T_EQ(get(&w, &event, &page, &err), IL_INVAL);
    T_EQ(page.code, LIVERC_CONNECTOR_HTTP_ERROR);
    T_TRUE(strstr(err.message, "disallowed by robots.txt") != NULL);
    il__fetched_release(&page);
    release(&w);
    /* without the file, everything is allowed */
    s.site.robots = SITE_ROBOTS_NONE;
    make(&w, &s, (struct fetch_options){ .permits = 1 });
    T_EQ(get(&w, &event, &page, &err), IL_OK);
    il__fetched_release(&page);
    release(&w);
}

/* ---- hostile sites --------------------------------------------------------------------------- */

U_TEST(a_site_that_is_down)
{
    fails(SITE_FAIL_503, "cannot read robots.txt of the host", FETCH_ATTEMPTS);
}

U_TEST(a_site_that_cuts_connections)
{
    fails(SITE_FAIL_CUT, "(after retries)", FETCH_ATTEMPTS);
}

U_TEST(a_site_that_truncates_answers)
{
    fails(SITE_FAIL_TRUNCATE, "(after retries)", FETCH_ATTEMPTS);
}

U_TEST(a_site_that_redirects_elsewhere)
{
    fails(SITE_FAIL_REDIRECT, "redirect to another host", 1);
}

U_TEST(a_site_that_is_slow)
{
    struct site_serve s = t_site_small();
    struct world      w;
    struct fetched    page;
    il_error          err;

    s.delay_ms = 60000;
    make(&w, &s, (struct fetch_options){ .read_ms = 100, .total_ms = 2000 });
    T_EQ(get(&w, &event, &page, &err), IL_INVAL);
    T_TRUE(strstr(err.message, "no progress for 100 ms") != NULL);
    T_EQ(page.n_attempts, FETCH_ATTEMPTS);
    il__fetched_release(&page);
    release(&w);
}

/* Every second request: robots.txt comes, then the page fails. */
static void
page_fails(enum site_failure how, const char *why, bool final)
{
    struct site_serve s = failing(how, 2);
    struct world      w;
    struct fetched    page;
    il_error          err = { .message = "" };

    make(&w, &s, (struct fetch_options){ .total_ms = how == SITE_FAIL_SLOW ? 300 : 0 });
    il_status st = get(&w, &event, &page, &err);
    T_EQ(st, final ? IL_INVAL : IL_OK);
    if (final && strstr(err.message, why) == NULL)
        T_FAIL("expected '%s' in: %s", why, err.message);
    T_EQ(page.n_attempts, final ? 1 : 2);
    il__fetched_release(&page);
    release(&w);
}

U_TEST(a_page_that_is_huge)
{
    page_fails(SITE_FAIL_HUGE, "response too large", true);
}

U_TEST(a_page_of_another_type)
{
    page_fails(SITE_FAIL_TYPE, "expected an HTML page, got image/", true);
}

U_TEST(a_failure_that_passes)
{
    page_fails(SITE_FAIL_503, "", false);
    page_fails(SITE_FAIL_TRUNCATE, "", false);
    page_fails(SITE_FAIL_SLOW, "", false);
    page_fails(SITE_FAIL_429, "", false); /* after Retry-After: 1 */
}

/* ---- permits and stops ----------------------------------------------------------------------- */

struct fetching {
    struct world  *w;
    struct t_event done;
    il_status      status;
    pthread_t      thread;
};

static void *
fetch_main(void *arg)
{
    struct fetching *f = arg;
    struct fetched   page;
    il_error         err;

    f->status = il__fetch(f->w->c, &event, &page, &err);
    il__fetched_release(&page);
    t_event_add(&f->done);
    return NULL;
}

static void
begin(struct fetching *f, struct world *w)
{
    *f = (struct fetching){ .w = w };
    t_event_init(&f->done);
    T_EQ(pthread_create(&f->thread, NULL, fetch_main, f), 0);
}

static il_status
end(struct fetching *f)
{
    T_WAIT(&f->done, 1, LIMIT_MS);
    T_EQ(pthread_join(f->thread, NULL), 0);
    t_event_release(&f->done);
    return f->status;
}

/* Hold a permit of the host, one of n. */
static uint64_t
hold_as(struct world *w, const char *holder, uint32_t n, il_op_type type, uint64_t fence)
{
    char  key[200];
    il_op op = { .type = type, .tenant = FETCH_TENANT, .key = key, .fence = fence };

    (void)snprintf(key, sizeof key, FETCH_KEY "%s", w->site.host);
    op.holder = holder;
    if (type == IL_OP_ACQUIRE) {
        op.in.lock.ttl_ms  = 60000;
        op.in.lock.mode    = IL_MODE_PERMIT;
        op.in.lock.permits = n;
    }
    T_EQ(il_apply(w->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    fence = op.out.fence;
    il_op_release(&op);
    return fence;
}

static uint64_t
hold(struct world *w, uint32_t n, il_op_type type, uint64_t fence)
{
    return hold_as(w, n == 1 ? "me" : "somebody else", n, type, fence);
}

/* Until somebody who was heard of less than this time ago queues for a permit. */
static void
await_report(struct world *w, int64_t ms)
{
    bool there = false;

    for (int i = 0; i < LIMIT_MS / 10 && !there; i++) {
        il_op op = { .type = IL_OP_LIST, .flags = IL_LIST_WAITERS, .tenant = FETCH_TENANT };
        T_EQ(il_apply(w->h, &op, 1, NULL), IL_OK);
        there = op.out.n_items > 0 && op.out.items[0].renewed_ms < ms;
        il_op_release(&op);
        if (!there)
            T_EQ(usleep(10000), 0); /* between two looks */
    }
    T_TRUE(there);
}

static void
await_waiter(struct world *w)
{
    await_report(w, INT64_MAX);
}

U_TEST(one_request_at_a_time_per_host)
{
    struct site_serve s = t_site_small();
    struct world      w;
    struct fetching   f;

    make(&w, &s, (struct fetch_options){ .permits = 1 });
    uint64_t fence = hold(&w, 1, IL_OP_ACQUIRE, 0);
    begin(&f, &w);
    await_waiter(&w);
    T_EQ(t_event_count(&f.done), 0);
    (void)hold(&w, 1, IL_OP_RELEASE, fence);
    T_EQ(end(&f), IL_OK);
    T_EQ(n_permits(&w), 0);
    /* another process is configured with another number: we take our place in its line */
    fence          = hold(&w, 2, IL_OP_ACQUIRE, 0);
    uint64_t other = hold_as(&w, "a third", 2, IL_OP_ACQUIRE, 0);
    begin(&f, &w);
    await_waiter(&w);
    (void)hold(&w, 2, IL_OP_RELEASE, fence);
    T_EQ(end(&f), IL_OK);
    (void)hold_as(&w, "a third", 2, IL_OP_RELEASE, other);
    release(&w);
}

/* A waiter that is not heard of for 15 s loses its place: ours reports, however long the line. */
U_TEST(a_long_wait_for_a_permit)
{
    struct site_serve s = t_site_small();
    struct world      w;
    struct fetching   f;

    make_at(&w, &s, (struct fetch_options){ .permits = 1 }, true);
    uint64_t fence = hold(&w, 1, IL_OP_ACQUIRE, 0);
    begin(&f, &w);
    await_waiter(&w);
    t_clock_step(&w.clock, 12000);
    await_report(&w, 12000);
    t_clock_step(&w.clock, 12000);
    T_TRUE(atomic_load(&w.n_waits) > 1);
    (void)hold(&w, 1, IL_OP_RELEASE, fence);
    T_EQ(end(&f), IL_OK);
    T_EQ(n_permits(&w), 0);
    release(&w);
}

U_TEST(a_stop_ends_every_wait)
{
    struct site_serve s = t_site_small();
    struct world      w;
    struct fetching   f;

    /* for a permit */
    make(&w, &s, (struct fetch_options){ .permits = 1 });
    uint64_t fence = hold(&w, 1, IL_OP_ACQUIRE, 0);
    begin(&f, &w);
    await_waiter(&w);
    atomic_store(&w.stop, true);
    il__fetch_wake(w.c);
    T_EQ(end(&f), IL_CANCELLED);
    (void)hold(&w, 1, IL_OP_RELEASE, fence);
    T_EQ(n_permits(&w), 0);
    release(&w);
    /* for the site */
    s.delay_ms = 600000;
    make(&w, &s, (struct fetch_options){ .permits = 1 });
    begin(&f, &w);
    while (n_permits(&w) == 0)
        T_EQ(usleep(1000), 0); /* between two looks */
    atomic_store(&w.stop, true);
    il__fetch_wake(w.c);
    T_EQ(end(&f), IL_CANCELLED);
    T_EQ(n_permits(&w), 0);
    release(&w);
    /* for the pause after a request, which keeps the permit */
    s.delay_ms = 0;
    make(&w, &s, (struct fetch_options){ .permits = 1, .delay_ms = FETCH_DELAY_MS_MAX });
    begin(&f, &w);
    while (n_permits(&w) == 0)
        T_EQ(usleep(1000), 0);
    T_TRUE(!t_event_wait(&f.done, 1, 200));
    T_EQ(n_permits(&w), 1);
    atomic_store(&w.stop, true);
    il__fetch_wake(w.c);
    T_EQ(end(&f), IL_CANCELLED);
    release(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(a_page),
        U_ROW(robots_are_honoured),
        U_ROW(a_site_that_is_down),
        U_ROW(a_site_that_cuts_connections),
        U_ROW(a_site_that_truncates_answers),
        U_ROW(a_site_that_redirects_elsewhere),
        U_ROW(a_site_that_is_slow),
        U_ROW(a_page_that_is_huge),
        U_ROW(a_page_of_another_type),
        U_ROW(a_failure_that_passes),
        U_ROW(one_request_at_a_time_per_host),
        U_ROW(a_long_wait_for_a_permit),
        U_ROW(a_stop_ends_every_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
