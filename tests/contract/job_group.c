/*
 * job_group.c: at most group_limit jobs of a group run at once.
 */
#include "harness/job.h"
#include "harness/suite.h"

T_TEST(a_full_group_is_passed_over)
{
    (void)T_IS(t_queue_set(s, "q", .group_limit = 2), IL_OK);
    t_push_many(s, "q", "g", 4, T_JOB(.group = "g"));
    (void)T_IS(t_push(s, "q", "h", .group = "h"), IL_OK);
    (void)T_IS(t_push(s, "q", "none"), IL_OK);
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 10), IL_OK);
    T_EQU(op->out.n_jobs, 4);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    T_STREQ(op->out.jobs[0].id, "g0");
    T_STREQ(op->out.jobs[1].id, "g1");
    T_STREQ(op->out.jobs[2].id, "h");
    T_STREQ(op->out.jobs[3].id, "none");
    T_STREQ(op->out.jobs[0].group, "g");
    uint64_t token = op->out.jobs[1].token;
    op             = T_IS(t_claim(s, "q", "w2"), IL_EMPTY);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    T_EQ(op->out.remaining_ms, IL_FOREVER); /* whoever ends one wakes the others */
    (void)T_IS(t_finish(s, "g1", token), IL_OK);
    (void)t_claim_is(s, "q", "w2", "g2");
    t_claim_none(s, "q", "w2");
}

T_TEST(every_way_to_end_frees_the_slot)
{
    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    t_push_many(s, "q", "j", 7, T_JOB(.group = "g", .max_attempts = 1));
    (void)T_IS(t_finish(s, "j0", t_claim_is(s, "q", "w", "j0")), IL_OK);
    (void)T_IS(t_job_fail(s, "j1", t_claim_is(s, "q", "w", "j1")), IL_OK);
    uint64_t token = t_claim_is(s, "q", "w", "j2");
    (void)T_IS(t_snooze(s, "j2", token, .delay_ms = 3600000), IL_OK);
    (void)t_claim_is(s, "q", "w", "j3");
    (void)T_IS(t_cancel(s, "j3"), IL_OK);
    t_claim_none(s, "q", "w"); /* only asked to stop */
    (void)T_IS(t_cancel(s, "j3", .flags = IL_CANCEL_NOW), IL_OK);
    (void)t_claim_is(s, "q", "w", "j4");
    t_pass(s, 30000);
    (void)t_claim_is(s, "q", "w", "j5"); /* j4's worker is dead */
    (void)t_job_is(s, "j4", IL_JOB_FAILED);
    t_pass(s, 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 1);
    (void)t_claim_is(s, "q", "w", "j6");
}

T_TEST(limits_count_across_workers)
{
    (void)T_IS(t_queue_set(s, "q", .group_limit = 3), IL_OK);
    t_push_many(s, "q", "j", 10, T_JOB(.group = "g"));
    (void)t_claim_is(s, "q", "w1", "j0");
    (void)t_claim_is(s, "q", "w2", "j1");
    const il_op *op = T_IS(t_claim(s, "q", "w3", .limit = 5), IL_OK);
    T_EQU(op->out.n_jobs, 1);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    t_claim_none(s, "q", "w4");
    T_EQU(t_queue(s, "q")->n_running, 3);
}

T_TEST(the_best_of_a_group_comes_first)
{
    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    (void)T_IS(t_push(s, "q", "a", .group = "g"), IL_OK);
    uint64_t token = t_claim_is(s, "q", "w", "a");
    (void)T_IS(t_push(s, "q", "b", .group = "g"), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .group = "g", .priority = -5), IL_OK);
    (void)T_IS(t_push(s, "q", "x", .priority = -4), IL_OK);
    (void)t_claim_is(s, "q", "w", "x");
    (void)T_IS(t_push(s, "q", "y", .priority = -4), IL_OK);
    (void)T_IS(t_finish(s, "a", token), IL_OK);
    token = t_claim_is(s, "q", "w", "c");
    (void)t_claim_is(s, "q", "w", "y");
    t_claim_none(s, "q", "w");
    (void)T_IS(t_finish(s, "c", token), IL_OK);
    (void)t_claim_is(s, "q", "w", "b");
}

T_TEST(the_limit_can_change)
{
    t_push_many(s, "q", "j", 10, T_JOB(.group = "g"));
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 4), IL_OK)->out.n_jobs, 4); /* none by default */
    (void)T_IS(t_queue_set(s, "q", .group_limit = 2), IL_OK);            /* takes nothing away */
    T_EQU(t_queue(s, "q")->n_running, 4);
    t_claim_none(s, "q", "w");
    (void)T_IS(t_queue_set(s, "q", .group_limit = 5), IL_OK);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 4), IL_OK)->out.n_jobs, 1);
    (void)T_IS(t_queue_set(s, "q", .group_limit = -1), IL_OK);
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 10), IL_OK);
    T_EQU(op->out.n_jobs, 5);
    T_EQ(op->out.flags, 0);
}

T_TEST(groups_of_queues_are_apart)
{
    (void)T_IS(t_queue_set(s, "a", .group_limit = 1), IL_OK);
    (void)T_IS(t_queue_set(s, "b", .group_limit = 1), IL_OK);
    (void)T_IS(t_push(s, "a", "ja", .group = "g"), IL_OK);
    (void)T_IS(t_push(s, "b", "jb", .group = "g"), IL_OK);
    (void)t_claim_is(s, "a", "w", "ja");
    (void)t_claim_is(s, "b", "w", "jb");
}

T_TEST(limited_is_not_said_when_all_was_given)
{
    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    t_push_many(s, "q", "g", 2, T_JOB(.group = "g"));
    (void)T_IS(t_push(s, "q", "x"), IL_OK);
    /* g0 and x: as many as asked */
    T_EQ(T_IS(t_claim(s, "q", "w", .limit = 2), IL_OK)->out.flags, 0);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.flags, IL_OUT_LIMITED);
}

/* A claim does not look at what waits behind a full group. */
static void
many_blocked(struct t_store *s, il_strategy strategy)
{
    (void)T_IS(t_queue_set(s, "q", .group_limit = 1, .strategy = 1 + (int32_t)strategy), IL_OK);
    t_push_many(s, "q", "g", 10000, T_JOB(.group = "g"));
    uint64_t token = t_claim_is(s, "q", "w", "g0");
    t_push_many(s, "q", "x", 50, T_JOB(.priority = 1));
    for (unsigned i = 0; i < 50; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "x%u", i);
        (void)t_claim_is(s, "q", "w", id);
    }
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 100), IL_EMPTY);
    T_TRUE((op->out.flags & IL_OUT_LIMITED) != 0);
    T_EQU(t_queue(s, "q")->n_ready, 9999);
    (void)T_IS(t_finish(s, "g0", token), IL_OK);
    (void)t_claim_is(s, "q", "w", "g1");
    t_claim_none(s, "q", "w");
}

T_TEST(ten_thousand_blocked_jobs_pessimistic)
{
    many_blocked(s, IL_STRATEGY_PESSIMISTIC);
}

T_TEST(ten_thousand_blocked_jobs_optimistic)
{
    many_blocked(s, IL_STRATEGY_OPTIMISTIC);
}

T_TEST(many_full_groups)
{
    char group[16];

    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    for (unsigned i = 0; i < 40; i++) {
        char prefix[16];
        (void)snprintf(group, sizeof group, "g%u", i);
        (void)snprintf(prefix, sizeof prefix, "j%u-", i);
        t_push_many(s, "q", prefix, 3, T_JOB(.group = group));
    }
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 100), IL_OK);
    T_EQU(op->out.n_jobs, 40); /* one of each */
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(group, sizeof group, "g%u", i);
        T_STREQ(op->out.jobs[i].group, group);
    }
    t_claim_none(s, "q", "w");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_full_group_is_passed_over),
        T_ROW(every_way_to_end_frees_the_slot),
        T_ROW(limits_count_across_workers),
        T_ROW(the_best_of_a_group_comes_first),
        T_ROW(the_limit_can_change),
        T_ROW(groups_of_queues_are_apart),
        T_ROW(limited_is_not_said_when_all_was_given),
        T_ROW(ten_thousand_blocked_jobs_pessimistic),
        T_ROW(ten_thousand_blocked_jobs_optimistic),
        T_ROW(many_full_groups),
    };

    return T_SUITE("job_group", tests);
}
