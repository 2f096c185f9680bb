/*
 * crash.c: the process that builds a day is killed, in each phase of the build. Another one takes
 * over; a day that was already written is not built again, and no copy of an older one is served.
 */
#include <signal.h>
#include <unistd.h>

#include "usage/rig.h"

/* Advisory locks have no schema: a day that no other test builds. */
#define DATE "2025-02-20"
#define EARLIER "2025-02-20T12:00:00Z"
#define LATER "2025-02-20T12:04:30Z" /* more than 80 % of its life */

struct victim {
    const struct rig *rig;
    enum usage_phase  phase;
    enum usage_way    way;
};

static void
die_at(void *cookie, enum usage_phase phase, bool refresh UNUSED)
{
    const struct node *n = cookie;

    if (atomic_load(&n->stop_at) == (int)phase)
        CHECK(raise(SIGKILL) == 0);
}

static int
be_killed(void *arg)
{
    const struct victim *v = arg;
    struct node          n;

    node_init(&n, v->rig);
    n.opts.phase = die_at;
    atomic_store(&n.stop_at, (int)v->phase);
    if (v->way != USAGE_TAKE)
        node_set_time(&n, LATER);
    node_open(&n);
    struct usage_result got = node_ask(&n, "default", DATE, v->way);
    (void)got;
    return 0; /* not reached */
}

static void
kill_one(struct rig *r, enum usage_phase phase, enum usage_way way)
{
    struct victim v = { r, phase, way };
    struct t_proc p;

    t_proc_fork(&p, be_killed, &v);
    T_EQ(t_proc_exit(&p, RIG_LIMIT_MS), 128 + SIGKILL);
    t_proc_release(&p);
}

static void
take_over(struct rig *r, enum usage_phase phase)
{
    struct node n;

    kill_one(r, phase, USAGE_TAKE);
    node_init(&n, r);
    node_open(&n);
    (void)node_must(&n, DATE, USAGE_TAKE, phase >= USAGE_PHASE_WRITTEN);
    T_EQU(node_counts(&n).rebuilds, phase >= USAGE_PHASE_WRITTEN ? 0 : 1);
    node_close(&n);
}

R_TEST(killed_when_it_leads)
{
    take_over(r, USAGE_PHASE_LEADS);
}

R_TEST(killed_with_the_lease)
{
    take_over(r, USAGE_PHASE_LOCKED);
}

R_TEST(killed_before_it_writes)
{
    take_over(r, USAGE_PHASE_FETCHED);
}

R_TEST(killed_when_the_row_is_written)
{
    take_over(r, USAGE_PHASE_WRITTEN);
}

R_TEST(killed_when_the_marker_is_filled)
{
    take_over(r, USAGE_PHASE_FILLED);
}

/* The token of the current marker: a copy with this token is served. 0: none. */
static uint64_t
token_of(struct node *n)
{
    il_op    op = { .type = IL_OP_CACHE_GET, .tenant = "default", .key = USAGE_KEY DATE };
    il_error err;

    T_OK(il_apply(n->h, &op, 1, &err), &err);
    uint64_t token = op.status == IL_HIT ? op.out.fence : 0;
    il_op_release(&op);
    return token;
}

/* A day that is stored is built again, and the builder dies: copies are as new as the row. */
static void
keep_up(struct rig *r, enum usage_phase phase, enum usage_way way)
{
    struct node n;
    bool        written = phase >= USAGE_PHASE_WRITTEN;

    node_init(&n, r);
    node_set_time(&n, EARLIER);
    node_open(&n);
    int64_t  at    = node_must(&n, DATE, USAGE_TAKE, false);
    uint64_t token = token_of(&n);
    T_TRUE(token != 0);
    node_close(&n);
    kill_one(r, phase, way);
    node_init(&n, r);
    node_set_time(&n, LATER);
    node_open(&n);
    T_TRUE((token_of(&n) == token) != written);
    T_EQ(node_must(&n, DATE, USAGE_TAKE, true), written ? at + MINUTES(4) + 30000 : at);
    node_close(&n);
}

R_TEST(killed_before_it_writes_again)
{
    keep_up(r, USAGE_PHASE_FETCHED, USAGE_FORCE);
}

R_TEST(killed_when_the_row_is_written_again)
{
    keep_up(r, USAGE_PHASE_WRITTEN, USAGE_FORCE);
}

R_TEST(killed_when_the_marker_is_filled_again)
{
    keep_up(r, USAGE_PHASE_FILLED, USAGE_FORCE);
}

R_TEST(killed_in_the_background)
{
    keep_up(r, USAGE_PHASE_WRITTEN, USAGE_REFRESH);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(killed_when_it_leads),
        R_ROW(killed_with_the_lease),
        R_ROW(killed_before_it_writes),
        R_ROW(killed_when_the_row_is_written),
        R_ROW(killed_when_the_marker_is_filled),
        R_ROW(killed_before_it_writes_again),
        R_ROW(killed_when_the_row_is_written_again),
        R_ROW(killed_when_the_marker_is_filled_again),
        R_ROW(killed_in_the_background),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
