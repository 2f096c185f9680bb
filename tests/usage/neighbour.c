/*
 * neighbour.c: programs of an older fleet, which know only the advisory lock of a day, and
 * Interlock exclude each other. Only PostgreSQL has such locks.
 */
#include <stdio.h>

#include "usage/rig.h"

#define DATE "2025-01-15"

static int
keep_integer(void *cookie, const il_guard_row *row)
{
    *(int64_t *)cookie = row->values[0].integer;
    return 1;
}

/* A session of an older program: it has one connection, and what it locks stays locked. */
static bool
say(il_guard *neighbour, const char *sql)
{
    il_guard_tx *tx  = NULL;
    int64_t      yes = -1;
    il_error     err;

    T_OK(il_guard_begin(neighbour, NULL, &tx, &err), &err);
    T_OK(il_guard_exec(tx, &(il_guard_query){ .sql = sql, .each = keep_integer, .cookie = &yes },
                       NULL, &err),
         &err);
    T_OK(il_guard_commit(tx, &err), &err);
    return yes == 1;
}

#define LOCKS "SELECT pg_try_advisory_lock(20250115)"
#define UNLOCKS "SELECT pg_advisory_unlock(20250115)"

static void
neighbour_open(il_guard **g, const struct rig *r)
{
    il_guard_opts o = IL_GUARD_OPTS_INIT;
    il_error      err;

    o.conns_max = 1;
    T_OK(il_guard_open(r->url, &o, g, &err), &err);
}

R_TEST(their_lock_keeps_us_out)
{
    struct node         n;
    il_guard           *one = NULL, *two = NULL;
    struct usage_result got;

    neighbour_open(&one, r);
    neighbour_open(&two, r);
    node_init(&n, r);
    n.opts.wait_ms = 300;
    node_open(&n);
    T_TRUE(say(one, LOCKS));
    T_TRUE(!say(two, LOCKS));

    /* to the deadline, for the tenant default and this day only */
    got = node_ask(&n, "default", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_TIMEOUT);
    T_HAS(got.text, "another program is building this day");
    got = node_ask(&n, "default", DATE, USAGE_FORCE);
    T_EQ(got.status, IL_TIMEOUT);
    got = node_ask(&n, "default", DATE, USAGE_REFRESH);
    T_EQ(got.status, IL_TIMEOUT);
    T_EQU(node_counts(&n).rebuilds, 0);
    T_TRUE(!node_is_locked(&n, DATE));
    got = node_ask(&n, "acme", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_OK);
    rig_drop(&got);
    (void)node_must(&n, "2025-01-16", USAGE_TAKE, false);

    /* the next one has it, too */
    T_TRUE(say(one, UNLOCKS));
    T_TRUE(say(two, LOCKS));
    got = node_ask(&n, "default", DATE, USAGE_TAKE);
    T_EQ(got.status, IL_TIMEOUT);
    T_TRUE(say(two, UNLOCKS));
    (void)node_must(&n, DATE, USAGE_TAKE, false);
    node_close(&n);
    il_guard_close(two);
    il_guard_close(one);
}

/* From before the build until after the write. */
R_TEST(our_lock_keeps_them_out)
{
    static const enum usage_phase phases[] = { USAGE_PHASE_FETCHED, USAGE_PHASE_WRITTEN,
                                               USAGE_PHASE_FILLED };
    struct node                   n;
    il_guard                     *one = NULL, *two = NULL;
    il_error                      err;

    neighbour_open(&one, r);
    neighbour_open(&two, r);
    node_init(&n, r);
    node_open(&n);
    atomic_store(&n.stop_at, phases[0]);
    T_OK(usage_join(n.usage, "default", rig_date(DATE), USAGE_TAKE, NULL, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        rig_take(&n.reached);
        T_TRUE(!say(one, LOCKS));
        T_TRUE(!say(two, LOCKS));
        atomic_store(&n.stop_at, i + 1 < ARRAY_LEN(phases) ? (int)phases[i + 1] : -1);
        CHECK(sem_post(&n.go) == 0);
    }
    (void)node_must(&n, DATE, USAGE_FORCE, false); /* so the flight before it has landed */
    T_TRUE(say(one, LOCKS));
    T_TRUE(say(one, UNLOCKS));
    node_close(&n);
    il_guard_close(two);
    il_guard_close(one);
}

static bool
has_lease(struct node *n)
{
    return node_is_locked(n, DATE);
}

/* What an older program writes while we wait for its lock is taken: after it has unlocked, or at
 * the deadline if it never does. */
static void
is_taken(struct rig *r, bool unlocks)
{
    struct node         n;
    il_guard           *one = NULL;
    struct asking       asking;
    struct usage_result got;
    char                none[2];

    neighbour_open(&one, r);
    node_init(&n, r);
    n.opts.wait_ms = unlocks ? RIG_WAIT_MS : 1000;
    node_open(&n);
    T_TRUE(say(one, LOCKS));
    asking_begin(&asking, &n, "default", DATE, USAGE_TAKE);
    node_until(&n, has_lease, "the wait for the lock");
    node_sql(&n,
             "INSERT INTO daily_usage_cache VALUES ($1, '" DATE "', '{}', '{}', '{}', '{}',"
             " '{\"api_requests\":7,\"total_tokens\":0,\"prompt_tokens\":0,"
             "\"completion_tokens\":0,\"spend_micros\":0,\"successful_requests\":0,"
             "\"failed_requests\":0}', now(), true)",
             "default", none, sizeof none);
    if (unlocks)
        T_TRUE(say(one, UNLOCKS));
    got = asking_end(&asking);
    T_EQ(got.status, IL_OK);
    T_HAS(got.copy->body, "\"api_requests\":7");
    rig_drop(&got);
    T_EQU(node_counts(&n).rebuilds, 0);
    T_TRUE(!node_is_locked(&n, DATE));
    if (!unlocks)
        T_TRUE(say(one, UNLOCKS));
    node_close(&n);
    il_guard_close(one);
}

R_TEST(what_they_write_is_taken)
{
    is_taken(r, true);
}

R_TEST(what_they_write_is_taken_at_the_deadline)
{
    is_taken(r, false);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(their_lock_keeps_us_out),
        R_ROW(our_lock_keeps_them_out),
        R_ROW(what_they_write_is_taken),
        R_ROW(what_they_write_is_taken_at_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
