/*
 * job.c: the state machine of a job; names; backoff; settings of a queue.
 */
#include "core/job.h"

#include "core/limits.h"
#include "core/queue.h"
#include "harness/unit.h"

/* ---- edges ----------------------------------------------------------------------------------- */

static const struct {
    il_job_state       from;
    enum il__job_event event;
    il_job_state       to;
    const char        *name, *why;
} edges[] = {
#define X(from, event, to, why) { IL_JOB_##from, IL__JOB_EV_##event, IL_JOB_##to, #event, why },
#include "core/job_edges.def"
#undef X
};

U_TEST(every_state_is_reachable_and_can_end)
{
    bool reached[IL_JOB_STATE_COUNT] = { [IL_JOB_NONE] = true };
    bool ends[IL_JOB_STATE_COUNT]    = { false };

    for (size_t round = 0; round < IL_JOB_STATE_COUNT; round++) {
        for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
            if (reached[edges[i].from])
                reached[edges[i].to] = true;
            if (ends[edges[i].to] || il__job_ended(edges[i].to))
                ends[edges[i].from] = true;
        }
    }
    for (unsigned s = 0; s < IL_JOB_STATE_COUNT; s++) {
        if (!reached[s])
            T_FAIL("%s cannot be reached", il_job_state_name((il_job_state)s));
        T_TRUE(ends[s] || il__job_ended((il_job_state)s));
    }
}

U_TEST(one_edge_per_state_and_event)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        T_EQ(il__job_step(edges[i].from, edges[i].event), edges[i].to);
        T_TRUE(edges[i].why[0] != '\0');
        for (size_t j = i + 1; j < ARRAY_LEN(edges); j++) {
            if (edges[i].from == edges[j].from && edges[i].event == edges[j].event)
                T_FAIL("two edges leave %s on %s", il_job_state_name(edges[i].from), edges[i].name);
        }
    }
}

/* Invariant 6: an ended job changes only by retry. */
U_TEST(what_must_never_happen)
{
    for (unsigned s = IL_JOB_COMPLETED; s < IL_JOB_STATE_COUNT; s++) {
        T_TRUE(il__job_ended((il_job_state)s));
        for (unsigned e = 0; e < IL__JOB_EVENT_COUNT; e++) {
            bool retried = s != IL_JOB_COMPLETED && e == IL__JOB_EV_RETRY;
            T_EQ(il__job_step((il_job_state)s, (enum il__job_event)e) != IL_JOB_NONE, retried);
        }
    }
    T_EQ(il__job_step(IL_JOB_RUNNING, IL__JOB_EV_CLAIM), IL_JOB_NONE);
    T_EQ(il__job_step(IL_JOB_SCHEDULED, IL__JOB_EV_CLAIM), IL_JOB_NONE);
    T_EQ(il__job_step(IL_JOB_READY, IL__JOB_EV_FINISH), IL_JOB_NONE);
    T_EQ(il__job_step(IL_JOB_RUNNING, IL__JOB_EV_RETRY), IL_JOB_NONE);
}

/* ---- names ----------------------------------------------------------------------------------- */

U_TEST(names)
{
    for (unsigned s = IL_JOB_SCHEDULED; s < IL_JOB_STATE_COUNT; s++)
        T_EQ(il_job_state_parse(il_job_state_name((il_job_state)s)), s);
    T_STREQ(il_job_state_name(IL_JOB_FAILED), "FAILED");
    T_STREQ(il_job_state_name(IL_JOB_STATE_COUNT), "UNKNOWN");
    T_STREQ(il_job_state_name((il_job_state)-1), "UNKNOWN");
    T_EQ(il_job_state_parse("PENDING"), IL_JOB_READY);
    T_EQ(il_job_state_parse("PROCESSING"), IL_JOB_RUNNING);
    T_EQ(il_job_state_parse("EXECUTING"), IL_JOB_RUNNING);
    T_EQ(il_job_state_parse("NONE"), IL_JOB_NONE);
    T_EQ(il_job_state_parse("ready"), IL_JOB_NONE);
    T_EQ(il_job_state_parse(""), IL_JOB_NONE);
    T_EQ(il_job_state_parse(NULL), IL_JOB_NONE);
    T_STREQ(il_strategy_name(IL_STRATEGY_PESSIMISTIC), "pessimistic");
    T_STREQ(il_strategy_name(IL_STRATEGY_OPTIMISTIC), "optimistic");
    T_STREQ(il_strategy_name(IL_STRATEGY_COUNT), "unknown");
    T_STREQ(il_missed_name(IL_MISSED_SKIP), "skip");
    T_STREQ(il_missed_name(IL_MISSED_ONE), "one");
    T_STREQ(il_missed_name(IL_MISSED_ALL), "all");
    T_STREQ(il_missed_name(IL_MISSED_COUNT), "unknown");
}

/* ---- settings -------------------------------------------------------------------------------- */

U_TEST(bad_settings_become_defaults)
{
    il_queue_opts opts = { .strategy       = 99,
                           .max_attempts   = -5,
                           .lease_ms       = INT64_MAX,
                           .backoff_ms     = 77,
                           .group_limit    = -1,
                           .rate_n         = 3,
                           .keep_ms        = -7,
                           .keep_failed_ms = IL_FOREVER };
    il_queue_opts good = il__queue_defaults();

    il__queue_heal(&opts);
    T_EQ(opts.strategy, good.strategy);
    T_EQ(opts.max_attempts, 5);
    T_EQ(opts.lease_ms, 30000);
    T_EQ(opts.backoff_ms, 77);
    T_EQ(opts.group_limit, -1);
    T_EQ(opts.rate_n, 3);
    T_EQ(opts.keep_ms, good.keep_ms);
    T_EQ(opts.keep_failed_ms, IL_FOREVER);
    T_TRUE(!il__queue_optimistic(&opts));
    il__queue_merge(&opts, &(il_queue_opts){ .strategy = 2, .backoff_ms = 0 });
    T_TRUE(il__queue_optimistic(&opts));
    T_EQ(opts.backoff_ms, 77);
}

U_TEST(limits)
{
    il_queue_opts opts = il__queue_defaults();

    T_EQ(il__queue_rate_left(&opts, 1000000, 7), 7);
    T_TRUE(il__queue_group_free(&opts, UINT64_MAX));
    opts.rate_n      = 10;
    opts.group_limit = 2;
    T_EQ(il__queue_rate_left(&opts, 0, 7), 7);
    T_EQ(il__queue_rate_left(&opts, 4, 7), 6);
    T_EQ(il__queue_rate_left(&opts, 10, 7), 0);
    T_EQ(il__queue_rate_left(&opts, 11, 7), 0);
    T_TRUE(il__queue_group_free(&opts, 1));
    T_TRUE(!il__queue_group_free(&opts, 2));
    T_TRUE(!il__queue_group_free(&opts, 3));
    T_EQ(il__wait_min(5, 7), 5);
    T_EQ(il__wait_min(IL_FOREVER, 7), 7);
    T_EQ(il__wait_min(7, IL_FOREVER), 7);
    T_EQ(il__wait_min(0, IL_FOREVER), 0);
    T_EQ(il__wait_min(IL_FOREVER, IL_FOREVER), IL_FOREVER);
    T_EQ(il__wait_until(IL__NEVER, 5), IL_FOREVER);
    T_EQ(il__wait_until(9, 5), 4);
    T_EQ(il__wait_until(5, 9), 0);
}

U_TEST(which_comes_first)
{
    struct il__job a = { .priority = 0, .run_at_ms = 5, .seq = 1 };
    struct il__job b = a;

    b.seq = 2;
    T_TRUE(il__job_before(&a, &b) && !il__job_before(&b, &a));
    b.run_at_ms = 4;
    T_TRUE(il__job_before(&b, &a) && !il__job_before(&a, &b));
    a.priority = -1;
    T_TRUE(il__job_before(&a, &b) && !il__job_before(&b, &a));
    T_TRUE(!il__job_before(&a, &a));
}

/* ---- parents --------------------------------------------------------------------------------- */

U_TEST(when_a_parent_ends)
{
    static const struct {
        bool                sealed, cancelled;
        uint32_t            n_children;
        struct il__children c;
        il_job_state        state;
        const char         *error;
    } rows[] = {
        { false, false, 0, { 3, 3, 0 }, IL_JOB_RUNNING, NULL },
        { true, false, 0, { 3, 3, 0 }, IL_JOB_COMPLETED, NULL },
        { true, false, 0, { 0, 0, 0 }, IL_JOB_COMPLETED, NULL },
        { true, false, 0, { 3, 2, 0 }, IL_JOB_RUNNING, NULL },
        { true, false, 0, { 3, 2, 1 }, IL_JOB_FAILED, "1 of 3 children failed" },
        { false, false, 3, { 2, 2, 0 }, IL_JOB_RUNNING, NULL },
        { false, false, 3, { 3, 3, 0 }, IL_JOB_COMPLETED, NULL },
        { false, false, 3, { 3, 0, 3 }, IL_JOB_FAILED, "3 of 3 children failed" },
        { true, true, 3, { 2, 2, 0 }, IL_JOB_CANCELLED, NULL },
        { true, true, 3, { 2, 1, 0 }, IL_JOB_RUNNING, NULL },
        { true, true, 0, { 2, 0, 2 }, IL_JOB_CANCELLED, NULL },
    };
    il_queue_opts opts = il__queue_defaults();

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        struct il__totals  totals = { 0 };
        struct il__job_env env    = { .opts = &opts, .totals = &totals, .wall_ms = 1000 };
        struct il__job     j      = { .state      = IL_JOB_RUNNING,
                                      .is_parent  = true,
                                      .is_sealed  = rows[i].sealed,
                                      .cancelled  = rows[i].cancelled,
                                      .n_children = rows[i].n_children };
        char               text[IL__CHILDREN_TEXT_BYTES];
        const char        *error;
        bool               ended = il__job_end_parent(&j, &env, &rows[i].c, text, &error);
        T_EQ(ended, rows[i].state != IL_JOB_RUNNING);
        T_EQ(j.state, rows[i].state);
        T_STREQ(error, rows[i].error);
        T_EQU(totals.completed + totals.failed + totals.cancelled, ended);
        T_TRUE(!il__job_end_parent(&j, &env, &rows[i].c, text, &error) || !ended); /* once */
    }
}

U_TEST(retention)
{
    il_queue_opts  opts = { .keep_ms = 100, .keep_failed_ms = IL_FOREVER };
    struct il__job j    = { .state = IL_JOB_COMPLETED };

    il__job_unkeep(&j, &opts, 1000);
    T_EQ(j.purge_at_ms, 1100);
    j.unique_until_ms = 5000;
    il__job_unkeep(&j, &opts, 1000);
    T_EQ(j.purge_at_ms, 5000);
    j.state = IL_JOB_FAILED;
    il__job_unkeep(&j, &opts, 1000);
    T_EQ(j.purge_at_ms, IL__NEVER);
    j.state = IL_JOB_CANCELLED;
    il__job_unkeep(&j, &opts, 9000);
    T_EQ(j.purge_at_ms, 9100);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_state_is_reachable_and_can_end),
        U_ROW(one_edge_per_state_and_event),
        U_ROW(what_must_never_happen),
        U_ROW(names),
        U_ROW(bad_settings_become_defaults),
        U_ROW(limits),
        U_ROW(which_comes_first),
        U_ROW(when_a_parent_ends),
        U_ROW(retention),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
