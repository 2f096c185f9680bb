/*
 * job_unique.c: unique keys, while their job is live or for a period.
 */
#include "harness/job.h"
#include "harness/suite.h"

T_TEST(a_second_one_is_a_duplicate)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .data = "1"), IL_OK);
    const il_op *op = T_IS(t_push(s, "q", "b", .unique_key = "u", .data = "2"), IL_DUPLICATE);
    T_EQU(op->out.n_jobs, 1);
    T_STREQ(op->out.jobs[0].id, "a");
    T_STREQ(op->out.jobs[0].unique_key, "u");
    (void)T_IS(t_job_get(s, "b"), IL_NOT_FOUND);
    const il_queue_info *q = t_queue(s, "q");
    T_EQU(q->duplicates, 1);
    T_EQU(q->pushed, 1);
    /* Its own repetition is not one. */
    T_EQ(T_IS(t_push(s, "q", "a", .unique_key = "u", .data = "1"), IL_OK)->out.flags,
         IL_OUT_RENEWED);
    T_EQU(t_queue(s, "q")->duplicates, 1);
}

T_TEST(other_keys_and_queues_are_free)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u"), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u2"), IL_OK);
    (void)T_IS(t_push(s, "r", "c", .unique_key = "u"), IL_OK);
    (void)T_IS(t_push(s, "q", "d"), IL_OK);
    (void)T_IS(t_push(s, "q", "e"), IL_OK);
}

T_TEST(in_every_live_state)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .delay_ms = 1000), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    t_pass(s, 1000);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    uint64_t token = t_claim_is(s, "q", "w", "a");
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    (void)T_IS(t_job_fail(s, "a", token, .delay_ms = 1000), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    T_EQU(t_queue(s, "q")->duplicates, 4);
}

T_TEST(free_again_when_it_has_ended)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u"), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
    (void)T_IS(t_job_fail(s, "b", t_claim_is(s, "q", "w", "b"), .flags = IL_FAIL_FINAL), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .unique_key = "u"), IL_OK);
    (void)T_IS(t_cancel(s, "c"), IL_OK);
    (void)T_IS(t_push(s, "q", "d", .unique_key = "u"), IL_OK);
    (void)T_IS(t_purge(s, "q", .states = T_STATE(READY)), IL_OK); /* it vanishes */
    (void)T_IS(t_push(s, "q", "e", .unique_key = "u"), IL_OK);
    (void)T_IS(t_push(s, "q", "f", .unique_key = "u"), IL_DUPLICATE);
}

T_TEST(for_a_period_after_the_push)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .unique_for_ms = 10000), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    t_pass(s, 9999);
    const il_op *op = T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    T_STREQ(op->out.jobs[0].id, "a");
    T_EQ(op->out.jobs[0].state, IL_JOB_COMPLETED);
    t_pass(s, 1);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .unique_key = "u"), IL_DUPLICATE);
}

T_TEST(the_period_is_over_but_the_job_lives)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .unique_for_ms = 1000), IL_OK);
    t_pass(s, 5000);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
}

/* Retention is no shorter than the promise. */
T_TEST(a_job_is_kept_as_long_as_its_key)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000), IL_OK);
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .unique_for_ms = 10000), IL_OK);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    t_pass(s, 9999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 1);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
}

T_TEST(an_operator_who_purges_frees_the_key)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .unique_for_ms = 10000), IL_OK);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    (void)T_IS(t_purge(s, "q", .states = T_STATE(CANCELLED)), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
}

T_TEST(retry_needs_the_key)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u"), IL_OK);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
    const il_op *op = T_IS(t_retry(s, "a"), IL_DUPLICATE);
    T_STREQ(op->out.jobs[0].id, "b");
    (void)t_job_is(s, "a", IL_JOB_CANCELLED);
    T_EQU(t_queue(s, "q")->duplicates, 0); /* these are pushes */
    (void)T_IS(t_cancel(s, "b"), IL_OK);
    (void)T_IS(t_retry(s, "a"), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .unique_key = "u"), IL_DUPLICATE); /* it has the key again */
    T_STREQ(T_IS(t_retry(s, "b"), IL_DUPLICATE)->out.jobs[0].id, "a");
}

T_TEST(retry_within_the_own_period)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u", .unique_for_ms = 5000), IL_OK);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    (void)T_IS(t_retry(s, "a"), IL_OK);
    t_pass(s, 6000);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_DUPLICATE);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
}

T_TEST(purging_an_old_holder_leaves_the_key_to_the_new_one)
{
    (void)T_IS(t_push(s, "q", "a", .unique_key = "u"), IL_OK);
    (void)T_IS(t_cancel(s, "a"), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .unique_key = "u"), IL_OK);
    (void)T_IS(t_purge(s, "q", .states = T_STATE(CANCELLED)), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .unique_key = "u"), IL_DUPLICATE);
}

T_TEST(parents_have_keys_too)
{
    (void)T_IS(t_push(s, "q", "p", .unique_key = "u", .flags = IL_PUSH_PARENT), IL_OK);
    (void)T_IS(t_push(s, "q", "p2", .unique_key = "u", .flags = IL_PUSH_PARENT), IL_DUPLICATE);
    (void)T_IS(t_seal(s, "p"), IL_OK);
    (void)T_IS(t_push(s, "q", "p2", .unique_key = "u", .flags = IL_PUSH_PARENT), IL_OK);
}

T_TEST(two_in_one_batch)
{
    il_op ops[2] = {
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "a", 0, T_JOB(.unique_key = "u")),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "b", 0, T_JOB(.unique_key = "u")),
    };

    t_batch(s, ops, 2);
    (void)T_IS(&ops[0], IL_OK);
    T_STREQ(T_IS(&ops[1], IL_DUPLICATE)->out.jobs[0].id, "a");
    il_op_release(&ops[0]);
    il_op_release(&ops[1]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_second_one_is_a_duplicate),
        T_ROW(other_keys_and_queues_are_free),
        T_ROW(in_every_live_state),
        T_ROW(free_again_when_it_has_ended),
        T_ROW(for_a_period_after_the_push),
        T_ROW(the_period_is_over_but_the_job_lives),
        T_ROW(a_job_is_kept_as_long_as_its_key),
        T_ROW(an_operator_who_purges_frees_the_key),
        T_ROW(retry_needs_the_key),
        T_ROW(retry_within_the_own_period),
        T_ROW(purging_an_old_holder_leaves_the_key_to_the_new_one),
        T_ROW(parents_have_keys_too),
        T_ROW(two_in_one_batch),
    };

    return T_SUITE("job_unique", tests);
}
