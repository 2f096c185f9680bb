/*
 * job_rate.c: no period of rate_ms has more than rate_n claims of a queue.
 */
#include "harness/job.h"
#include "harness/suite.h"

T_TEST(no_more_than_the_rate)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 3, .rate_ms = 1000), IL_OK);
    t_push_many(s, "q", "j", 10, T_JOB());
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 5), IL_OK);
    T_EQU(op->out.n_jobs, 3);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    op = T_IS(t_claim(s, "q", "w2"), IL_EMPTY);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    T_EQ(op->out.remaining_ms, 1000);
    t_pass(s, 999);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 1);
    t_pass(s, 1);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 5), IL_OK)->out.n_jobs, 3);
}

/* Any period, not only those that begin at a full second. */
T_TEST(the_window_slides)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 2, .rate_ms = 1000), IL_OK);
    t_push_many(s, "q", "j", 10, T_JOB());
    (void)t_claim_is(s, "q", "w", "j0"); /* at 0 */
    t_pass(s, 900);
    (void)t_claim_is(s, "q", "w", "j1"); /* at 900 */
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 100);
    t_pass(s, 100);
    (void)t_claim_is(s, "q", "w", "j2"); /* at 1000 */
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 900);
    t_pass(s, 899);
    t_claim_none(s, "q", "w");
    t_pass(s, 1);
    (void)t_claim_is(s, "q", "w", "j3"); /* at 1900 */
}

T_TEST(what_ended_counts_too)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 1, .rate_ms = 5000), IL_OK);
    t_push_many(s, "q", "j", 2, T_JOB());
    (void)T_IS(t_finish(s, "j0", t_claim_is(s, "q", "w", "j0")), IL_OK);
    (void)T_IS(t_purge(s, "q", .states = T_STATE(COMPLETED)), IL_OK);
    t_pass(s, 4999);
    t_claim_none(s, "q", "w");
    t_pass(s, 1);
    (void)t_claim_is(s, "q", "w", "j1");
}

/* Lease time: setting the wall clock gives nobody more. */
T_TEST(the_wall_clock_does_not_matter)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 1, .rate_ms = 1000), IL_OK);
    t_push_many(s, "q", "j", 3, T_JOB());
    (void)t_claim_is(s, "q", "w", "j0");
    t_clock_set_wall(&s->clock, 3600000);
    t_claim_none(s, "q", "w");
    t_clock_set_wall(&s->clock, -7200000);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 1000);
    t_pass(s, 1000);
    (void)t_claim_is(s, "q", "w", "j1");
}

T_TEST(nothing_to_hold_back)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 1, .rate_ms = 60000), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)t_claim_is(s, "q", "w", "j");
    const il_op *op = T_IS(t_claim(s, "q", "w"), IL_EMPTY);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.remaining_ms, IL_FOREVER);
    (void)T_IS(t_push(s, "q", "k", .delay_ms = 90000), IL_OK);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 90000);
    (void)T_IS(t_push(s, "q", "l"), IL_OK);
    op = T_IS(t_claim(s, "q", "w"), IL_EMPTY);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    T_EQ(op->out.remaining_ms, 60000);
}

T_TEST(rates_can_change)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 4, .rate_ms = 10000), IL_OK);
    t_push_many(s, "q", "j", 20, T_JOB());
    for (unsigned i = 0; i < 4; i++) {
        T_EQU(T_IS(t_claim(s, "q", "w"), IL_OK)->out.n_jobs, 1);
        t_pass(s, 1000);
    }
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 6000);
    (void)T_IS(t_queue_set(s, "q", .rate_n = 2), IL_OK); /* fewer: two must leave the window */
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 8000);
    (void)T_IS(t_queue_set(s, "q", .rate_n = 6), IL_OK);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 9), IL_OK)->out.n_jobs, 2);
    (void)T_IS(t_queue_set(s, "q", .rate_ms = 2000), IL_OK); /* three are older than that */
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 9), IL_OK)->out.n_jobs, 3);
    (void)T_IS(t_queue_set(s, "q", .rate_n = -1), IL_OK);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 3), IL_OK)->out.n_jobs, 3);
    /* What came without a rate is not counted. */
    (void)T_IS(t_queue_set(s, "q", .rate_n = 2), IL_OK);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 9), IL_OK)->out.n_jobs, 2);
}

T_TEST(rate_and_groups)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 2, .rate_ms = 1000, .group_limit = 1), IL_OK);
    t_push_many(s, "q", "g", 3, T_JOB(.group = "g"));
    (void)t_claim_is(s, "q", "w", "g0");
    const il_op *op = T_IS(t_claim(s, "q", "w"), IL_EMPTY); /* the group, not the rate */
    T_EQ(op->out.flags, IL_OUT_LIMITED);
    T_EQ(op->out.remaining_ms, IL_FOREVER);
    t_push_many(s, "q", "x", 2, T_JOB());
    op = T_IS(t_claim(s, "q", "w", .limit = 2), IL_OK);
    T_EQU(op->out.n_jobs, 1);
    T_EQ(op->out.flags, IL_OUT_LIMITED);
}

/* Of all claims, in any window, no more than the rate: a thousand claims at odd times. */
T_TEST(a_long_history)
{
    int64_t  starts[300];
    unsigned n = 0;

    (void)T_IS(t_queue_set(s, "q", .rate_n = 7, .rate_ms = 500), IL_OK);
    t_push_many(s, "q", "j", ARRAY_LEN(starts), T_JOB());
    for (unsigned i = 0; n < ARRAY_LEN(starts); i++) {
        const il_op *op = t_claim(s, "q", "w", .limit = 1 + i % 4);
        T_TRUE(op->status == IL_OK || op->status == IL_EMPTY);
        for (size_t k = 0; k < op->out.n_jobs; k++) {
            starts[n] = t_clock_boot(&s->clock);
            if (n >= 7)
                T_TRUE(starts[n] - starts[n - 7] >= 500);
            n++;
        }
        t_pass(s, op->status == IL_EMPTY ? op->out.remaining_ms : (int64_t)(i * 37 % 90));
    }
}

T_TEST(the_largest_rate)
{
    (void)T_IS(t_queue_set(s, "q", .rate_n = 10000, .rate_ms = 1000), IL_OK);
    t_push_many(s, "q", "j", 10050, T_JOB());
    for (unsigned i = 0; i < 10; i++)
        T_EQU(T_IS(t_claim(s, "q", "w", .limit = 1000), IL_OK)->out.n_jobs, 1000);
    T_EQ(T_IS(t_claim(s, "q", "w", .limit = 1000), IL_EMPTY)->out.flags, IL_OUT_LIMITED);
    t_pass(s, 1000);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 1000), IL_OK)->out.n_jobs, 50);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(no_more_than_the_rate), T_ROW(the_window_slides),
        T_ROW(what_ended_counts_too), T_ROW(the_wall_clock_does_not_matter),
        T_ROW(nothing_to_hold_back),  T_ROW(rates_can_change),
        T_ROW(rate_and_groups),       T_ROW(a_long_history),
        T_ROW(the_largest_rate),
    };

    return T_SUITE("job_rate", tests);
}
