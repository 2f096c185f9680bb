/*
 * cache.c: the cache of daily usage on each store: one build, hits, midnight, failures, refreshes,
 * tenants, ranges, rows. The clock is the test's.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "usage/rig.h"

/* Advisory locks have no schema: days that no other test builds for the tenant default. */
#define DATE "2024-01-15"

/* ---- hits and builds ------------------------------------------------------------------------- */

R_TEST(a_day_is_built_once)
{
    struct node         n, other;
    struct usage_row    row, again;
    struct usage_counts c;

    node_init(&n, r);
    node_init(&other, r);
    node_open(&n);
    node_open(&other);
    int64_t at = node_must(&n, DATE, USAGE_TAKE, false);
    atomic_fetch_add(&other.now_ms, MINUTES(500000)); /* complete: for ever */
    T_EQ(node_must(&n, DATE, USAGE_TAKE, true), at);
    T_EQ(node_must(&other, DATE, USAGE_TAKE, true), at);
    c = node_counts(&n);
    T_EQU(c.hits, 1);
    T_EQU(c.misses, 1);
    T_EQU(c.rebuilds, 1);
    T_EQU(c.locks, 1);
    T_EQU(c.locks_held, 0);
    T_EQU(node_counts(&other).rebuilds, 0);
    T_TRUE(!node_is_locked(&n, DATE));

    /* forced: a new build, of which the other process hears; the same figures */
    T_TRUE(node_row(&n, "default", DATE, &row));
    T_TRUE(row.complete && row.updated_ms == at);
    atomic_fetch_add(&n.now_ms, 1000);
    T_EQ(node_must(&n, DATE, USAGE_FORCE, false), at + 1000);
    T_TRUE(node_row(&n, "default", DATE, &again));
    T_EQ(memcmp(&row.figures.total, &again.figures.total, sizeof row.figures.total), 0);
    T_EQ(node_must(&other, DATE, USAGE_TAKE, true), at + 1000);

    /* tenants do not meet */
    T_TRUE(!node_row(&n, "acme", DATE, &row));
    struct usage_result got = node_ask(&n, "acme", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_OK);
    rig_drop(&got);
    T_TRUE(node_row(&n, "acme", DATE, &again));
    node_close(&other);
    node_close(&n);
}

/* A process that has a copy of the day, and one that reads the row: both see a change at once. */
R_TEST(a_copy_is_as_new_as_its_marker)
{
    struct node a, b;
    il_op       op = { .type = IL_OP_CACHE_GET, .tenant = "default", .key = USAGE_KEY DATE };
    il_error    err;

    node_init(&a, r);
    node_init(&b, r);
    node_open(&a);
    node_open(&b);
    for (int i = 0; i < 3; i++) {
        struct node *writer = i % 2 != 0 ? &b : &a;
        struct node *reader = i % 2 != 0 ? &a : &b;
        int64_t      at     = node_must(writer, DATE, i == 0 ? USAGE_TAKE : USAGE_FORCE, false);
        T_EQ(node_must(reader, DATE, USAGE_TAKE, true), at);
        T_OK(il_apply(reader->h, &op, 1, &err), &err);
        T_EQ(op.status, IL_HIT);
        T_HAS(op.out.value, "\"is_complete\":true");
        struct usage_copy *c =
            usage_copy_find(reader->usage, "default", rig_date(DATE), op.out.fence);
        T_TRUE(c != NULL && c->updated_ms == at);
        usage_copy_unref(c);
        il_op_release(&op);
        atomic_fetch_add(&a.now_ms, 10);
        atomic_store(&b.now_ms, atomic_load(&a.now_ms));
    }
    node_close(&b);
    node_close(&a);
}

/* ---- midnight -------------------------------------------------------------------------------- */

R_TEST(midnight)
{
    static const struct {
        const char *time;
        bool        complete;
    } rows[] = {
        { "2024-01-15T23:59:59Z", false }, { "2024-01-16T00:00:00Z", false },
        { "2024-01-16T00:03:00Z", false }, { "2024-01-16T00:05:59.999Z", false },
        { "2024-01-16T00:06:00Z", true },
    };
    struct node      n;
    struct usage_row row;

    CHECK(setenv("TZ", "Asia/Tokyo", 1) == 0);
    node_init(&n, r);
    node_open(&n);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        node_set_time(&n, rows[i].time);
        int64_t at = node_must(&n, DATE, USAGE_FORCE, false);
        T_EQ(at, atomic_load(&n.now_ms)); /* when it started */
        T_TRUE(node_row(&n, "default", DATE, &row));
        T_EQ(row.complete, rows[i].complete);
    }
    T_EQU(node_counts(&n).graces, 3); /* not today */
    node_set_time(&n, "2024-01-20T00:00:00Z");
    T_EQ(node_must(&n, "2024-01-15", USAGE_TAKE, true), row.updated_ms);
    struct usage_result future = node_ask(&n, "default", "2024-01-21", USAGE_TAKE);
    T_EQ(future.status, IL_INVAL);
    node_close(&n);
    CHECK(unsetenv("TZ") == 0);
}

/* What was built within the grace period is built again after its short life, and then kept. */
R_TEST(a_day_is_not_frozen_too_early)
{
    struct node n;

    node_init(&n, r);
    node_open(&n);
    node_set_time(&n, "2024-01-16T00:02:00Z");
    int64_t first = node_must(&n, DATE, USAGE_TAKE, false);
    node_set_time(&n, "2024-01-16T00:05:30Z");
    T_EQ(node_must(&n, DATE, USAGE_TAKE, true), first);
    node_set_time(&n, "2024-01-16T00:07:00Z");
    int64_t second = node_must(&n, DATE, USAGE_TAKE, false);
    T_EQ(second, atomic_load(&n.now_ms));
    node_set_time(&n, "2024-02-16T00:07:00Z");
    T_EQ(node_must(&n, DATE, USAGE_TAKE, true), second);
    node_close(&n);
}

/* ---- failures -------------------------------------------------------------------------------- */

R_TEST(a_failure_leaves_everything_as_it_was)
{
    struct node      n;
    struct usage_row row;

    node_init(&n, r);
    n.from.fail_percent = 100;
    node_open(&n);
    struct usage_result got = node_ask(&n, "default", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_STATE);
    T_HAS(got.text, "the source failed");
    T_TRUE(got.copy == NULL);
    T_TRUE(!node_is_locked(&n, DATE));
    T_TRUE(!node_row(&n, "default", DATE, &row));
    T_EQU(node_counts(&n).rebuilds, 0);
    T_EQU(atomic_load(&n.notes[USAGE_EVENT_failed]), 1);

    n.source->o.fail_percent = 0;
    node_set_time(&n, "2024-01-15T12:00:00Z");
    int64_t at               = node_must(&n, DATE, USAGE_TAKE, false);
    n.source->o.fail_percent = 100;
    node_set_time(&n, "2024-01-15T12:05:00Z"); /* its life is over */
    got = node_ask(&n, "default", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_STATE);
    T_TRUE(got.copy != NULL && got.copy->updated_ms == at); /* stale */
    rig_drop(&got);
    T_TRUE(node_row(&n, "default", DATE, &row) && row.updated_ms == at);
    T_TRUE(!node_is_locked(&n, DATE));
    n.source->o.fail_percent = 0;
    (void)node_must(&n, DATE, USAGE_TAKE, false);
    node_close(&n);
}

/* Those who waited in another process learn of the failure; they do not all try again. */
R_TEST(a_failure_is_told_to_those_who_wait)
{
    struct node         a, b;
    struct usage_result got;
    il_error            err;

    node_init(&a, r);
    node_init(&b, r);
    a.from.fail_percent = b.from.fail_percent = 100;
    node_open(&a);
    node_open(&b);
    atomic_store(&a.stop_at, USAGE_PHASE_FETCHED);
    T_OK(usage_join(a.usage, "default", rig_date(DATE), USAGE_TAKE, NULL, &err), &err);
    rig_take(&a.reached);
    atomic_store(&a.stop_at, -1);
    CHECK(sem_post(&a.go) == 0);
    got = node_ask(&b, "default", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_STATE);
    node_close(&b);
    node_close(&a);
}

/* The tenant's lease of the day is taken away. */
static void
break_lease(struct node *n, const char *tenant)
{
    il_op    op = { .type = IL_OP_GET, .tenant = tenant, .key = USAGE_KEY DATE };
    il_error err;

    T_OK(il_apply(n->h, &op, 1, &err), &err);
    T_EQ(op.out.n_items, 1);
    il_op end = { .type   = IL_OP_BREAK,
                  .tenant = tenant,
                  .key    = USAGE_KEY DATE,
                  .fence  = op.out.items[0].fence,
                  .flags  = IL_BREAK_NOW };
    il_op_release(&op);
    end.in.lock.reason = "test";
    T_OK(il_apply(n->h, &end, 1, &err), &err);
    T_EQ(end.status, IL_OK);
    il_op_release(&end);
}

/* A builder that has lost its lease cannot write, however late it comes. Not for the tenant
 * default, whose builder would still have the advisory lock of PostgreSQL. */
R_TEST(a_late_builder_cannot_write)
{
    struct node         slow, quick;
    struct usage_row    row;
    struct usage_result got;
    il_error            err;

    node_init(&slow, r);
    node_init(&quick, r);
    node_open(&slow);
    node_open(&quick);
    atomic_store(&slow.stop_at, USAGE_PHASE_FETCHED);
    T_OK(usage_join(slow.usage, "acme", rig_date(DATE), USAGE_TAKE, NULL, &err), &err);
    rig_take(&slow.reached);
    break_lease(&quick, "acme");
    atomic_fetch_add(&quick.now_ms, 5);
    got = node_ask(&quick, "acme", DATE, USAGE_FORCE);
    T_EQ(got.status, IL_OK);
    int64_t at = got.copy->updated_ms;
    rig_drop(&got);
    atomic_store(&slow.stop_at, -1);
    CHECK(sem_post(&slow.go) == 0);
    got = node_ask(&slow, "acme", DATE, USAGE_TAKE); /* joins that flight, or finds the row */
    T_EQ(got.status, IL_OK);
    T_EQ(got.copy->updated_ms, at);
    rig_drop(&got);
    T_TRUE(node_row(&quick, "acme", DATE, &row) && row.updated_ms == at);
    T_EQU(node_counts(&slow).rebuilds, 0);
    node_close(&quick);
    node_close(&slow);
}

/* ---- refresh --------------------------------------------------------------------------------- */

static bool
has_built(struct node *n)
{
    return node_counts(n).rebuilds > 0;
}

R_TEST(one_refresh_in_the_background)
{
    struct node      a, b;
    struct usage_row row;

    node_init(&a, r);
    node_init(&b, r);
    node_open(&a);
    node_open(&b);
    node_set_time(&a, "2024-01-15T12:00:00Z");
    int64_t at = node_must(&a, DATE, USAGE_TAKE, false);
    node_set_time(&b, "2024-01-15T12:04:00Z"); /* 80 %: not yet */
    T_EQ(node_must(&b, DATE, USAGE_TAKE, true), at);
    T_EQU(node_counts(&b).locks, 0);
    node_set_time(&a, "2024-01-15T12:04:01Z");
    node_set_time(&b, "2024-01-15T12:04:01Z");
    atomic_store(&b.stop_at, USAGE_PHASE_FETCHED);
    for (int i = 0; i < 5; i++)
        T_EQ(node_must(&b, DATE, USAGE_TAKE, true), at); /* nobody waits for it */
    rig_take(&b.reached);
    for (int i = 0; i < 5; i++)
        T_EQ(node_must(&a, DATE, USAGE_TAKE, true), at); /* the lease is held: no second one */
    atomic_store(&b.stop_at, -1);
    CHECK(sem_post(&b.go) == 0);
    node_until(&b, has_built, "the refresh");
    (void)node_must(&b, DATE, USAGE_REFRESH, false); /* after it: nothing is left to do */
    T_EQU(node_counts(&a).rebuilds, 1);
    T_EQU(node_counts(&b).rebuilds, 1);
    T_TRUE(node_row(&a, "default", DATE, &row));
    T_EQ(row.updated_ms, at + MINUTES(4) + 1000);
    T_EQ(node_must(&a, DATE, USAGE_TAKE, true), row.updated_ms);
    node_close(&b);
    node_close(&a);
}

/* ---- contention ------------------------------------------------------------------------------ */

/* Waiting for the build of another process counts as a lease that is held elsewhere. */
R_TEST(a_build_elsewhere_is_a_failure)
{
    struct node         a, b;
    struct usage_result got;
    il_error            err;

    node_init(&a, r);
    node_init(&b, r);
    b.opts.wait_ms = 50;
    node_open(&a);
    node_open(&b);
    atomic_store(&a.stop_at, USAGE_PHASE_FETCHED);
    T_OK(usage_join(a.usage, "acme", rig_date(DATE), USAGE_TAKE, NULL, &err), &err);
    rig_take(&a.reached);
    got = node_ask(&b, "acme", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_TIMEOUT);
    T_EQU(node_counts(&b).locks_held, 1);
    T_EQU(node_counts(&b).locks, 0);
    T_EQU(node_counts(&a).locks_held, 0);
    atomic_store(&a.stop_at, -1);
    CHECK(sem_post(&a.go) == 0);
    node_close(&b);
    node_close(&a);
}

/* A forced build that cannot have the lease answers with the stored day. */
R_TEST(a_forced_build_in_vain_has_the_old_day)
{
    struct node         n;
    il_acquire_opts     o     = IL_ACQUIRE_OPTS_INIT;
    il_lease           *lease = NULL;
    il_error            err;
    struct usage_result got;

    node_init(&n, r);
    n.opts.wait_ms = 50;
    node_open(&n);
    int64_t at = node_must(&n, DATE, USAGE_TAKE, false);
    atomic_fetch_add(&n.now_ms, 1000);
    T_OK(il_acquire(n.h, USAGE_KEY DATE, &o, &lease, &err), &err);
    got = node_ask(&n, "default", DATE, USAGE_FORCE);
    T_EQ(got.status, IL_TIMEOUT);
    T_TRUE(got.copy != NULL && got.copy->updated_ms == at);
    rig_drop(&got);
    il_lease_free(lease);
    node_close(&n);
}

R_TEST(a_lease_held_elsewhere_is_a_failure)
{
    struct node         n;
    il_acquire_opts     o     = IL_ACQUIRE_OPTS_INIT;
    il_lease           *lease = NULL;
    il_error            err;
    struct usage_result got;

    node_init(&n, r);
    n.opts.wait_ms = 200;
    node_open(&n);
    T_OK(il_acquire(n.h, USAGE_KEY DATE, &o, &lease, &err), &err);
    got = node_ask(&n, "default", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_TIMEOUT);
    T_EQU(node_counts(&n).locks_held, 1);
    T_EQU(node_counts(&n).locks, 0);
    T_EQU(atomic_load(&n.notes[USAGE_EVENT_contention]), 1);
    T_EQ(il_lease_release(lease, &err), IL_OK);
    il_lease_free(lease);
    (void)node_must(&n, DATE, USAGE_TAKE, false);
    T_EQU(node_counts(&n).locks, 1);
    T_EQU(node_counts(&n).locks_held, 1);
    node_close(&n);
}

/* A warning above 20 %, at most one in a minute. */
R_TEST(contention_is_logged_above_a_fifth)
{
    static const char *const built[] = { "2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04" };
    static const char *const held[]  = { "2024-01-05", "2024-01-06", "2024-01-07" };
    struct node              n;
    il_acquire_opts          o = IL_ACQUIRE_OPTS_INIT;
    il_error                 err;

    node_init(&n, r);
    n.opts.wait_ms = 50;
    node_open(&n);
    for (size_t i = 0; i < ARRAY_LEN(built); i++) {
        struct usage_result got = node_ask(&n, "acme", built[i], USAGE_TAKE);
        T_EQ(got.status, IL_OK);
        rig_drop(&got);
    }
    for (size_t i = 0; i < ARRAY_LEN(held); i++) { /* 1 of 5, 2 of 6, 3 of 7 */
        il_lease *lease = NULL;
        char      key[USAGE_KEY_BYTES];
        (void)snprintf(key, sizeof key, USAGE_KEY "%s", held[i]);
        o.tenant = "acme";
        T_OK(il_acquire(n.h, key, &o, &lease, &err), &err);
        T_EQ(node_ask(&n, "acme", held[i], USAGE_TAKE).status, IL_TIMEOUT);
        T_EQU(node_counts(&n).locks_held, i + 1);
        T_EQU(atomic_load(&n.notes[USAGE_EVENT_contention]), i == 0 ? 0 : 1);
        T_EQ(il_lease_release(lease, &err), IL_OK);
        il_lease_free(lease);
    }
    T_EQU(node_counts(&n).locks, ARRAY_LEN(built));
    node_close(&n);
}

static bool
has_met_another(struct node *n)
{
    return node_counts(n).locks_held > 0;
}

/* A process that is elected while the lease is held elsewhere looks at the row again once it has
 * the lease: it does not build, and this second look is no hit. */
R_TEST(a_second_look_is_no_hit)
{
    struct node         a, b;
    struct asking       asking;
    struct usage_result got;
    struct usage_counts c;
    il_error            err;

    node_init(&a, r);
    node_init(&b, r);
    node_open(&a);
    node_open(&b);
    atomic_store(&a.stop_at, USAGE_PHASE_FETCHED);
    T_OK(usage_join(a.usage, "default", rig_date(DATE), USAGE_FORCE, NULL, &err), &err);
    rig_take(&a.reached);
    asking_begin(&asking, &b, "default", DATE, USAGE_TAKE);
    node_until(&b, has_met_another, "the wait for the lease");
    atomic_store(&a.stop_at, -1);
    CHECK(sem_post(&a.go) == 0);
    got = asking_end(&asking);
    T_EQ(got.status, IL_OK);
    T_TRUE(!got.hit);
    rig_drop(&got);
    c = node_counts(&b);
    T_EQU(c.hits, 0);
    T_EQU(c.misses, 1);
    T_EQU(c.rebuilds, 0);
    T_EQU(c.locks, 1);
    T_EQU(c.locks_held, 1);
    T_EQU(node_counts(&a).rebuilds, 1);
    node_close(&b);
    node_close(&a);
}

/* The limit of flights: those beyond it are refused, and the others are made. */
R_TEST(flights_have_a_limit)
{
    struct node n;
    il_error    err;
    usage_date  first = rig_date("2000-01-01");

    node_init(&n, r);
    n.opts.n_threads = 1;
    node_open(&n);
    atomic_store(&n.stop_at, USAGE_PHASE_LEADS);
    for (int i = 0; i < USAGE_FLIGHTS_MAX; i++)
        T_OK(usage_join(n.usage, "default", first + i, USAGE_TAKE, NULL, &err), &err);
    T_EQ(usage_join(n.usage, "default", first - 1, USAGE_TAKE, NULL, &err), IL_LIMIT);
    T_OK(usage_join(n.usage, "default", first, USAGE_TAKE, NULL, &err), &err); /* joins */
    rig_take(&n.reached);
    atomic_store(&n.stop_at, -1);
    usage_stop(n.usage);
    CHECK(sem_post(&n.go) == 0);
    T_EQ(usage_join(n.usage, "default", first, USAGE_TAKE, NULL, &err), IL_CANCELLED);
    node_close(&n);
}

static sem_t was_told;

static void
note_done(struct usage_waiter *w UNUSED, struct usage_result *result)
{
    usage_copy_unref(result->copy);
    CHECK(sem_post(&was_told) == 0);
}

/* A waiter that was told cannot leave, not even a later flight at the same address. */
R_TEST(a_waiter_leaves_its_own_flight)
{
    struct node         n;
    struct usage_waiter first  = { .done = note_done };
    struct usage_waiter second = first;
    il_error            err;

    CHECK(sem_init(&was_told, 0, 0) == 0);
    node_init(&n, r);
    node_open(&n);
    for (int i = 0; i < 20; i++) {
        T_OK(usage_join(n.usage, "acme", rig_date(DATE), USAGE_TAKE, &first, &err), &err);
        rig_take(&was_told);
        T_OK(usage_join(n.usage, "acme", rig_date("2024-01-01") + i, USAGE_TAKE, &second, &err),
             &err);
        T_TRUE(!usage_leave(n.usage, &first, NULL));
        if (!usage_leave(n.usage, &second, NULL))
            rig_take(&was_told);
    }
    node_close(&n);
    CHECK(sem_destroy(&was_told) == 0);
}

/* ---- reads during a rebuild ------------------------------------------------------------------ */

struct reading_along {
    struct node *n;
    sem_t        has_read; /* posted after each read */
    atomic_bool  stop;
    bool         half;
};

/* The total of a row is that of its only user: 1, 2, 3, … */
static void
compare(void *cookie, const struct usage_row *row)
{
    struct reading_along     *a     = cookie;
    const struct usage_parts *users = &row->figures.by[USAGE_BY_USER];

    a->half = a->half || users->n != 1 ||
              users->items[0].metrics.api_requests != row->figures.total.api_requests;
}

static void *
read_along(void *arg)
{
    struct reading_along *a    = arg;
    usage_date            date = rig_date(DATE);

    while (!atomic_load(&a->stop)) {
        void    *mem = NULL;
        il_error err;
        CHECK(usage_row_range(a->n->tables, "default", date, date, USAGE_BY_USER, &mem, compare, a,
                              &err) == IL_OK);
        il__arena_free(&mem);
        CHECK(sem_post(&a->has_read) == 0);
    }
    return NULL;
}

static void
set_source(il_guard *g, int i)
{
    il_guard_tx   *tx = NULL;
    char           json[160];
    il_error       err;
    il_guard_value value;

    (void)snprintf(json, sizeof json,
                   "{\"metrics\":{\"api_requests\":%d},\"by_user\":{\"u\":{\"api_requests\":%d}}}",
                   i, i);
    value = il_guard_text(json);
    T_OK(il_guard_begin(g, NULL, &tx, &err), &err);
    T_OK(il_guard_exec(tx,
                       &(il_guard_query){
                           .sql = "UPDATE day SET json = $1", .values = &value, .n_values = 1 },
                       NULL, &err),
         &err);
    T_OK(il_guard_commit(tx, &err), &err);
}

R_TEST(readers_see_old_or_new)
{
    struct node          n;
    struct reading_along a  = { .n = &n };
    il_guard            *g  = NULL;
    il_guard_tx         *tx = NULL;
    pthread_t            thread;
    char                 url[T_PATH_BYTES + 32];
    il_error             err;

    (void)snprintf(url, sizeof url, "sqlite:%s/source.db", r->dir);
    T_OK(il_guard_open(url, NULL, &g, &err), &err);
    T_OK(il_guard_begin(g, NULL, &tx, &err), &err);
    T_OK(il_guard_exec(tx, &(il_guard_query){ .sql = "CREATE TABLE day (json TEXT)" }, NULL, &err),
         &err);
    T_OK(il_guard_exec(tx, &(il_guard_query){ .sql = "INSERT INTO day VALUES ('')" }, NULL, &err),
         &err);
    T_OK(il_guard_commit(tx, &err), &err);
    node_init(&n, r);
    n.from = (struct usage_source_opts){ .type       = USAGE_SOURCE_sql,
                                         .timeout_ms = RIG_LIMIT_MS,
                                         .database   = url,
                                         .query      = "SELECT json FROM day WHERE $1 <> ''" };
    node_open(&n);
    CHECK(sem_init(&a.has_read, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, read_along, &a) == 0);
    for (int i = 1; i <= 30; i++) {
        while (sem_wait(&a.has_read) != 0)
            CHECK(errno == EINTR);
        set_source(g, i);
        (void)node_must(&n, DATE, USAGE_FORCE, false);
        atomic_fetch_add(&n.now_ms, 1);
    }
    atomic_store(&a.stop, true);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(sem_destroy(&a.has_read) == 0);
    T_TRUE(!a.half);
    node_close(&n);
    il_guard_close(g);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

R_TEST(a_range_leaves_no_day_out)
{
    struct node           n;
    struct usage_range    range;
    struct usage_range_in in  = { .tenant   = "default",
                                  .from     = rig_date("2024-01-01"),
                                  .to       = rig_date("2024-01-31"),
                                  .by       = USAGE_BY_MODEL,
                                  .until_ns = INT64_MAX };
    struct usage_metrics  sum = { 0 };
    il_error              err;

    node_init(&n, r);
    node_open(&n);
    T_OK(usage_range_load(n.usage, &in, &range, &err), &err); /* only looks */
    T_EQ(range.n, 31);
    T_EQ(range.days[30].state, USAGE_MISSING);
    T_EQU(node_counts(&n).rebuilds, 0);
    usage_range_release(&range);
    in.build = true;
    T_OK(usage_range_load(n.usage, &in, &range, &err), &err);
    T_EQU(node_counts(&n).rebuilds, 31);
    for (size_t i = 0; i < range.n; i++) {
        T_EQ(range.days[i].state, USAGE_FRESH);
        T_TRUE(usage_metrics_add(&sum, &range.days[i].metrics));
    }
    T_EQ(memcmp(&sum, &range.total, sizeof sum), 0);
    memset(&sum, 0, sizeof sum);
    for (size_t i = 0; i < range.parts.n; i++)
        T_TRUE(usage_metrics_add(&sum, &range.parts.items[i].metrics));
    T_EQ(memcmp(&sum, &range.total, sizeof sum), 0);
    usage_range_release(&range);

    /* a source that fails, and one that is too slow */
    n.source->o.fail_percent = 100;
    in.to                    = rig_date("2024-02-02");
    T_OK(usage_range_load(n.usage, &in, &range, &err), &err);
    T_EQ(range.days[30].state, USAGE_FRESH);
    T_EQ(range.days[31].state, USAGE_MISSING);
    T_HAS(range.error, "the source failed");
    usage_range_release(&range);
    n.source->o.fail_percent = 0;
    n.source->o.cost_ms      = RIG_LIMIT_MS;
    in.until_ns              = 0;
    T_OK(usage_range_load(n.usage, &in, &range, &err), &err);
    T_EQ(range.days[31].state, USAGE_PENDING);
    usage_range_release(&range);
    node_close(&n); /* interrupts the builds */
}

struct purged {
    struct node *n;
    int          n_seen;
};

static void
count_purged(void *cookie, const char *tenant, const char *date)
{
    struct purged   *p = cookie;
    struct usage_row row;

    T_STREQ(tenant, "default");
    T_TRUE(strcmp(date, "2024-01-03") < 0);
    T_TRUE(!node_row(p->n, tenant, date, &row)); /* for everybody: it is committed */
    p->n_seen++;
}

R_TEST(old_days_are_deleted)
{
    struct node      n;
    struct usage_row row;
    struct purged    p      = { .n = &n };
    int64_t          n_rows = 0;
    il_error         err;

    node_init(&n, r);
    node_open(&n);
    (void)node_must(&n, "2024-01-01", USAGE_TAKE, false);
    (void)node_must(&n, "2024-01-02", USAGE_TAKE, false);
    (void)node_must(&n, "2024-01-03", USAGE_TAKE, false);
    T_OK(usage_row_purge(n.tables, rig_date("2024-01-03"), 10, count_purged, &p, &n_rows, &err),
         &err);
    T_EQ(p.n_seen, 2);
    T_EQ(n_rows, 2);
    T_TRUE(!node_row(&n, "default", "2024-01-02", &row));
    T_TRUE(node_row(&n, "default", "2024-01-03", &row));
    (void)node_must(&n, "2024-01-02", USAGE_TAKE, false); /* although its marker is there */
    node_close(&n);
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define ROW_BYTES 16384

/* All but when it was built. */
R_TEST(equal_figures_give_an_equal_row)
{
    static const char sql[] =
        "SELECT CAST(raw_data AS text) || CAST(aggregated_by_user AS text)"
        " || CAST(aggregated_by_model AS text) || CAST(aggregated_by_provider AS text)"
        " || CAST(total_metrics AS text) || CAST(is_complete AS text) FROM daily_usage_cache";
    struct node n;
    char       *first = il__calloc(2, ROW_BYTES), *second = first + ROW_BYTES;

    CHECK(first != NULL);
    node_init(&n, r);
    node_open(&n);
    int64_t at = node_must(&n, DATE, USAGE_TAKE, false);
    node_sql(&n, sql, NULL, first, ROW_BYTES);
    T_TRUE(strstr(first, "dora") != NULL && strlen(first) < ROW_BYTES - 1);
    atomic_fetch_add(&n.now_ms, MINUTES(1));
    T_EQ(node_must(&n, DATE, USAGE_FORCE, false), at + MINUTES(1));
    node_sql(&n, sql, NULL, second, ROW_BYTES);
    T_STREQ(first, second);
    node_close(&n);
    il__free(first);
}

/* A row that cannot be read is no day: it is missing, and built again. */
R_TEST(a_damaged_row_is_built_again)
{
    struct node           n, other;
    struct usage_range    range;
    struct usage_range_in in = { .tenant   = "default",
                                 .from     = rig_date(DATE),
                                 .to       = rig_date(DATE) + 1,
                                 .by       = USAGE_BY_USER,
                                 .until_ns = INT64_MAX };
    char                  none[2];
    il_error              err;

    node_init(&n, r);
    node_init(&other, r);
    node_open(&n);
    node_open(&other);
    for (int i = 0; i < 2; i++) {
        (void)node_must(&n, DATE, USAGE_FORCE, false);
        (void)node_must(&n, "2024-01-16", USAGE_FORCE, false);
        node_sql(&n,
                 i == 0 ? "UPDATE daily_usage_cache SET total_metrics = '{}' WHERE tenant = $1"
                          " AND date = '" DATE "'"
                        : "UPDATE daily_usage_cache SET aggregated_by_user = '[1]'"
                          " WHERE tenant = $1 AND date = '" DATE "'",
                 "default", none, sizeof none);
        T_OK(usage_range_load(other.usage, &in, &range, &err), &err);
        T_EQ(range.days[0].state, USAGE_MISSING);
        T_EQ(range.days[1].state, USAGE_FRESH);
        usage_range_release(&range);
        if (i == 0) {
            (void)node_must(&other, DATE, USAGE_TAKE, false);
            continue;
        }
        in.build = true;
        T_OK(usage_range_load(other.usage, &in, &range, &err), &err);
        T_EQ(range.days[0].state, USAGE_FRESH);
        usage_range_release(&range);
    }
    T_EQU(node_counts(&other).rebuilds, 2);
    T_EQU(atomic_load(&other.notes[USAGE_EVENT_trouble]), 2);
    node_close(&other);
    node_close(&n);
}

/* The invariant, whatever the time zone of the session is. */
R_TEST(days_that_were_complete_too_early_are_found)
{
    static const char *const    times[][2] = { { "1705363199999", "2024-01-15 23:59:59.999+00" },
                                               { "1705363200000", "2024-01-16 00:00:00+00" } };
    const struct app_invariant *early      = &usage_invariants[0];
    struct node                 n;
    char                        sql[512], found[32];

    CHECK(setenv("PGTZ", "Asia/Tokyo", 1) == 0 && setenv("TZ", "Asia/Tokyo", 1) == 0);
    node_init(&n, r);
    node_open(&n);
    (void)node_must(&n, DATE, USAGE_TAKE, false);
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        const char *before = r->is_postgres ? "'" : "", *at = times[i][r->is_postgres];
        (void)snprintf(sql, sizeof sql, "UPDATE daily_usage_cache SET updated_at = %s%s%s", before,
                       at, before);
        node_sql(&n, sql, NULL, found, sizeof found);
        node_sql(&n, r->is_postgres ? early->postgres : early->sqlite, "default", found,
                 sizeof found);
        T_STREQ(found, i == 0 ? DATE : "");
    }
    node_close(&n);
    CHECK(unsetenv("TZ") == 0 && unsetenv("PGTZ") == 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(a_day_is_built_once),
        R_ROW(a_copy_is_as_new_as_its_marker),
        R_ROW(midnight),
        R_ROW(a_day_is_not_frozen_too_early),
        R_ROW(a_failure_leaves_everything_as_it_was),
        R_ROW(a_failure_is_told_to_those_who_wait),
        R_ROW(a_late_builder_cannot_write),
        R_ROW(one_refresh_in_the_background),
        R_ROW(a_build_elsewhere_is_a_failure),
        R_ROW(a_forced_build_in_vain_has_the_old_day),
        R_ROW(a_lease_held_elsewhere_is_a_failure),
        R_ROW(contention_is_logged_above_a_fifth),
        R_ROW(a_second_look_is_no_hit),
        R_ROW(flights_have_a_limit),
        R_ROW(a_waiter_leaves_its_own_flight),
        R_ROW(readers_see_old_or_new),
        R_ROW(a_range_leaves_no_day_out),
        R_ROW(old_days_are_deleted),
        R_ROW(equal_figures_give_an_equal_row),
        R_ROW(a_damaged_row_is_built_again),
        R_ROW(days_that_were_complete_too_early_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
