/*
 * job_sweep.c: background recovery and retention of jobs; wall clock jumps; batches; reopening.
 */
#include "harness/job.h"
#include "harness/rng.h"
#include "harness/suite.h"

T_TEST(nothing_to_do)
{
    (void)T_IS(t_push(s, "q", "ready"), IL_OK);
    (void)T_IS(t_push(s, "q", "later", .delay_ms = 10), IL_OK);
    (void)t_claim_is(s, "q", "w", "ready");
    t_pass(s, 29999);
    const il_op *op = T_IS(t_sweep(s), IL_OK);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.sweep.n_jobs, 0);
    T_EQ(op->out.sweep.n_ticks, 0);
    T_EQ(op->out.sweep.n_purged, 0);
}

T_TEST(dead_claims_of_all_tenants)
{
    (void)T_IS(t_push(s, "q", "a", .tenant = "one"), IL_OK);
    (void)T_IS(t_push(s, "r", "a", .tenant = "two"), IL_OK);
    (void)T_IS(t_claim(s, "q", "w", .tenant = "one"), IL_OK);
    (void)T_IS(t_claim(s, "r", "w", .tenant = "two"), IL_OK);
    t_pass(s, 30000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 2);
    (void)T_IS(t_claim(s, "q", "w", .tenant = "one"), IL_OK);
}

/* Bounded, and by the time they died. */
T_TEST(a_sweep_is_bounded)
{
    t_push_many(s, "q", "j", 25, T_JOB());
    for (unsigned i = 0; i < 25; i++) {
        T_EQU(T_IS(t_claim(s, "q", "w"), IL_OK)->out.n_jobs, 1);
        t_pass(s, 1);
    }
    t_pass(s, 30000);
    const il_op *op = T_IS(t_sweep(s, .limit = 10), IL_OK);
    T_EQ(op->out.sweep.n_jobs, 10);
    T_TRUE((op->out.flags & IL_OUT_MORE) != 0);
    (void)t_job_is(s, "j9", IL_JOB_READY);
    (void)t_job_is(s, "j10", IL_JOB_RUNNING);
    T_EQ(T_IS(t_sweep(s, .limit = 10), IL_OK)->out.sweep.n_jobs, 10);
    op = T_IS(t_sweep(s, .limit = 10), IL_OK);
    T_EQ(op->out.sweep.n_jobs, 5);
    T_EQ(op->out.flags, 0);
    T_EQ(T_IS(t_sweep(s, .limit = 10), IL_OK)->out.sweep.n_jobs, 0);
    T_EQU(t_queue(s, "q")->recovered, 25);
}

T_TEST(two_sweeps_in_one_batch)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)t_claim_is(s, "q", "w", "j");
    t_pass(s, 30000);
    il_op ops[2] = {
        t_op(IL_OP_SWEEP, NULL, NULL, 0, T_ARGS()),
        t_op(IL_OP_SWEEP, NULL, NULL, 0, T_ARGS()),
    };
    t_batch(s, ops, 2);
    T_EQ(ops[0].out.sweep.n_jobs, 1);
    T_EQ(ops[1].out.sweep.n_jobs, 0);
    il_op_release(&ops[0]);
    il_op_release(&ops[1]);
}

/* ---- retention ------------------------------------------------------------------------------- */

T_TEST(history_is_kept_as_long_as_the_queue_says)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000, .keep_failed_ms = 3000), IL_OK);
    t_push_many(s, "q", "j", 3, T_JOB());
    (void)T_IS(t_finish(s, "j0", t_claim_is(s, "q", "w", "j0")), IL_OK);
    (void)T_IS(t_job_fail(s, "j1", t_claim_is(s, "q", "w", "j1"), .flags = IL_FAIL_FINAL), IL_OK);
    (void)T_IS(t_cancel(s, "j2"), IL_OK);
    t_pass(s, 999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 2);
    (void)T_IS(t_job_get(s, "j0"), IL_NOT_FOUND);
    (void)T_IS(t_job_get(s, "j2"), IL_NOT_FOUND);
    t_pass(s, 1999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)t_job_is(s, "j1", IL_JOB_FAILED);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 1);
}

T_TEST(for_ever)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = IL_FOREVER, .keep_failed_ms = IL_FOREVER), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)T_IS(t_cancel(s, "j"), IL_OK);
    t_pass(s, INT64_C(100) * 366 * 86400000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)t_job_is(s, "j", IL_JOB_CANCELLED);
}

T_TEST(a_retried_job_is_not_purged)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)T_IS(t_cancel(s, "j"), IL_OK);
    (void)T_IS(t_retry(s, "j"), IL_OK);
    t_pass(s, 5000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)T_IS(t_cancel(s, "j"), IL_OK);
    t_pass(s, 1000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 1);
}

T_TEST(purging_is_bounded)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1), IL_OK);
    t_push_many(s, "q", "j", 25, T_JOB());
    const il_op *claim = T_IS(t_claim(s, "q", "w", .limit = 25), IL_OK);
    for (unsigned i = 0; i < 25; i++)
        (void)T_IS(t_finish(s, claim->out.jobs[i].id, claim->out.jobs[i].token), IL_OK);
    t_pass(s, 1);
    const il_op *op = T_IS(t_sweep(s, .limit = 10), IL_OK);
    T_EQ(op->out.sweep.n_purged, 10);
    T_TRUE((op->out.flags & IL_OUT_MORE) != 0);
    (void)T_IS(t_job_get(s, "j9"), IL_NOT_FOUND);
    (void)t_job_is(s, "j10", IL_JOB_COMPLETED);
    T_EQ(t_sweep_all(s, 10).n_purged, 15);
}

/* What a claim looks at does not grow with history. */
T_TEST(claims_beside_history)
{
    t_push_many(s, "q", "old", 3000, T_JOB());
    for (unsigned i = 0; i < 3; i++) {
        const il_op *claim = T_IS(t_claim(s, "q", "w", .limit = 1000), IL_OK);
        il_op       *ops   = calloc(1000, sizeof *ops);
        CHECK(ops != NULL);
        for (unsigned k = 0; k < 1000; k++)
            ops[k] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, claim->out.jobs[k].id,
                              claim->out.jobs[k].token, T_JOB());
        t_batch(s, ops, 1000);
        for (unsigned k = 0; k < 1000; k++)
            il_op_release(&ops[k]);
        free(ops);
    }
    t_claim_none(s, "q", "w");
    (void)T_IS(t_push(s, "q", "new"), IL_OK);
    (void)t_claim_is(s, "q", "w", "new");
    T_EQU(t_queue(s, "q")->completed, 3000);
    T_EQU(t_queue(s, "q")->n_ready, 0);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Claims live in lease time: setting the wall clock neither kills nor extends them. */
T_TEST(the_wall_clock_jumps_while_a_job_runs)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    uint64_t token = t_claim_is(s, "q", "w", "j");
    t_clock_set_wall(&s->clock, 86400000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 0);
    T_EQ(T_IS(t_heartbeat(s, "j", token), IL_OK)->out.remaining_ms, 30000);
    t_clock_set_wall(&s->clock, -2 * INT64_C(86400000));
    T_EQ(t_job_is(s, "j", IL_JOB_RUNNING)->remaining_ms, 30000);
    t_pass(s, 30000);
    (void)T_IS(t_finish(s, "j", token), IL_STALE);
}

/* run_at is on the wall clock. */
T_TEST(the_wall_clock_jumps_before_a_job_is_due)
{
    (void)T_IS(t_push(s, "q", "j", .delay_ms = 3600000), IL_OK);
    t_clock_set_wall(&s->clock, 3600000);
    (void)t_job_is(s, "j", IL_JOB_READY);
    t_clock_set_wall(&s->clock, -1);
    (void)t_job_is(s, "j", IL_JOB_SCHEDULED); /* nobody made it ready yet */
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 1);
    t_clock_set_wall(&s->clock, 1);
    (void)T_IS(t_pause(s, "q"), IL_OK);
    t_claim_none(s, "q", "w"); /* promotes */
    (void)T_IS(t_pause(s, "q", .flags = IL_RESUME), IL_OK);
    t_clock_set_wall(&s->clock, -3600000);
    (void)t_job_is(s, "j", IL_JOB_READY);
    (void)t_claim_is(s, "q", "w", "j");
}

T_TEST(the_machine_was_off)
{
    T_NEEDS_BOOTS(s);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    uint64_t token = t_claim_is(s, "q", "w", "j");
    (void)T_IS(t_push(s, "q", "k", .delay_ms = 60000), IL_OK);
    t_clock_reboot(&s->clock, 3600000, 5000);
    t_store_reopen(s);
    /* at least what is due by the wall clock */
    (void)T_IS(t_claim(s, "q", "w2", .limit = 9), IL_OK);
    t_pass(s, 30000);
    (void)T_IS(t_finish(s, "j", token), IL_STALE);
}

T_TEST(everything_survives)
{
    T_NEEDS(s, durable);
    (void)T_IS(t_queue_set(s, "q", .group_limit = 1, .rate_n = 5, .rate_ms = 60000), IL_OK);
    (void)T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT), IL_OK);
    t_push_many(s, "q", "g", 3, T_JOB(.group = "g", .parent = "p", .data = "x"));
    (void)T_IS(t_push(s, "q", "u", .unique_key = "u", .delay_ms = 1000), IL_OK);
    const il_op *op    = T_IS(t_claim(s, "q", "w", .claim = "c"), IL_OK);
    uint64_t     token = op->out.fence;
    (void)T_IS(t_heartbeat(s, "g0", token, T_PROGRESS(7), .text = "m"), IL_OK);
    t_store_reopen(s);
    const il_job_info *j = t_job_is(s, "g0", IL_JOB_RUNNING);
    T_EQ(j->progress, 7);
    T_STREQ(j->message, "m");
    T_STREQ(j->worker, "w");
    op = T_IS(t_claim(s, "q", "w", .claim = "c"), IL_OK);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQU(op->out.fence, token);
    T_EQ(T_IS(t_claim(s, "q", "w2"), IL_EMPTY)->out.flags, IL_OUT_LIMITED);
    (void)T_IS(t_push(s, "q", "u2", .unique_key = "u"), IL_DUPLICATE);
    (void)T_IS(t_finish(s, "g0", token, .data = "r"), IL_OK);
    t_store_reopen(s);
    T_STREQ(t_job_is(s, "g0", IL_JOB_COMPLETED)->result, "r");
    T_EQ(t_job_is(s, "p", IL_JOB_RUNNING)->n_children_completed, 1);
    T_LESS(token, t_claim_is(s, "q", "w2", "g1"));
    T_EQU(t_queue(s, "q")->completed, 1);
    T_EQ(t_queue(s, "q")->opts.rate_n, 5);
}

/* ---- batches --------------------------------------------------------------------------------- */

T_TEST(push_and_claim_in_one_batch)
{
    il_op ops[4] = {
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "a", 0, T_JOB(.data = "x")),
        t_job_op(IL_OP_JOB_CLAIM, "q", "w", NULL, 0, T_JOB(.limit = 5)),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "b", 0, T_JOB()),
        t_job_op(IL_OP_JOB_GET, NULL, NULL, "a", 0, T_JOB()),
    };

    t_batch(s, ops, 4);
    T_EQU(T_IS(&ops[1], IL_OK)->out.n_jobs, 1);
    T_STREQ(ops[1].out.jobs[0].payload, "x");
    T_EQ(T_IS(&ops[3], IL_OK)->out.jobs[0].state, IL_JOB_RUNNING);
    uint64_t token = ops[1].out.fence;
    for (unsigned i = 0; i < 4; i++)
        il_op_release(&ops[i]);
    /* And an end: finish, repeated finish, late ones, the next claim. */
    il_op ends[5] = {
        t_job_op(IL_OP_JOB_HEARTBEAT, NULL, NULL, "a", token, T_JOB(T_PROGRESS(50))),
        t_job_op(IL_OP_JOB_FINISH, NULL, NULL, "a", token, T_JOB(.data = "r")),
        t_job_op(IL_OP_JOB_FINISH, NULL, NULL, "a", token, T_JOB(.data = "r")),
        t_job_op(IL_OP_JOB_FAIL, NULL, NULL, "a", token, T_JOB()),
        t_job_op(IL_OP_JOB_CLAIM, "q", "w", NULL, 0, T_JOB()),
    };
    t_batch(s, ends, 5);
    T_EQ(T_IS(&ends[0], IL_OK)->out.jobs[0].progress, 50);
    T_EQ(T_IS(&ends[1], IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
    (void)T_IS(&ends[2], IL_OK);
    (void)T_IS(&ends[3], IL_STALE);
    T_STREQ(T_IS(&ends[4], IL_OK)->out.jobs[0].id, "b");
    for (unsigned i = 0; i < 5; i++)
        il_op_release(&ends[i]);
}

T_TEST(two_workers_in_one_batch)
{
    t_push_many(s, "q", "j", 3, T_JOB());
    il_op ops[3] = {
        t_job_op(IL_OP_JOB_CLAIM, "q", "w1", NULL, 0, T_JOB(.limit = 2)),
        t_job_op(IL_OP_JOB_CLAIM, "q", "w2", NULL, 0, T_JOB(.limit = 2)),
        t_job_op(IL_OP_JOB_CLAIM, "q", "w3", NULL, 0, T_JOB(.limit = 2)),
    };
    t_batch(s, ops, 3);
    T_EQU(T_IS(&ops[0], IL_OK)->out.n_jobs, 2);
    T_EQU(T_IS(&ops[1], IL_OK)->out.n_jobs, 1);
    (void)T_IS(&ops[2], IL_EMPTY);
    T_LESS(ops[0].out.jobs[1].token, ops[1].out.jobs[0].token);
    for (unsigned i = 0; i < 3; i++)
        il_op_release(&ops[i]);
}

T_TEST(settings_in_the_middle_of_a_batch)
{
    il_op ops[5] = {
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "a", 0, T_JOB(.group = "g")),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "b", 0, T_JOB(.group = "g")),
        { .type = IL_OP_QUEUE_SET, .key = "q", .in.queue = { .group_limit = 1 } },
        t_job_op(IL_OP_JOB_CLAIM, "q", "w", NULL, 0, T_JOB(.limit = 2)),
        { .type = IL_OP_QUEUE_LIST },
    };

    t_batch(s, ops, 5);
    T_EQU(T_IS(&ops[3], IL_OK)->out.n_jobs, 1);
    T_EQ(ops[3].out.flags, IL_OUT_LIMITED);
    T_EQU(T_IS(&ops[4], IL_OK)->out.queues[0].n_running, 1);
    T_EQU(ops[4].out.queues[0].pushed, 2);
    for (unsigned i = 0; i < 5; i++)
        il_op_release(&ops[i]);
}

T_TEST(a_bad_op_does_not_disturb_the_others)
{
    il_op ops[3] = {
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "a", 0, T_JOB()),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "b", 0, T_JOB(.priority = 5000)),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "c", 0, T_JOB()),
    };

    t_batch(s, ops, 3);
    (void)T_IS(&ops[0], IL_OK);
    (void)T_IS(&ops[1], IL_INVAL);
    (void)T_IS(&ops[2], IL_OK);
    for (unsigned i = 0; i < 3; i++)
        il_op_release(&ops[i]);
    T_EQU(t_queue(s, "q")->n_ready, 2);
}

/* N workers, M jobs, each finished once; a third of the attempts crash, a third fail. */
T_TEST(each_job_is_finished_once)
{
    struct t_rng rng;
    unsigned     n_done = 0;

    t_rng_init(&rng, 1);
    (void)T_IS(t_queue_set(s, "q", .max_attempts = 1000, .backoff_ms = 1, .backoff_max_ms = 10),
               IL_OK);
    t_push_many(s, "q", "j", 60, T_JOB());
    for (unsigned round = 0; n_done < 60; round++) {
        char worker[8];
        T_TRUE(round < 2000);
        (void)snprintf(worker, sizeof worker, "w%u", t_rng_below(&rng, 4));
        const il_op *op =
            t_claim(s, "q", worker, .limit = 1 + t_rng_below(&rng, 3), .lease_ms = 1000);
        for (size_t i = 0; i < op->out.n_jobs; i++) {
            const il_job_info *j   = &op->out.jobs[i];
            uint32_t           how = t_rng_below(&rng, 3);
            if (how == 0)
                (void)T_IS(t_finish(s, j->id, j->token), IL_OK);
            else if (how == 1)
                (void)T_IS(t_job_fail(s, j->id, j->token), IL_OK);
            n_done += how == 0;
        }
        t_pass(s, op->status == IL_EMPTY ? 500 : 20);
    }
    const il_queue_info *q = t_queue(s, "q");
    T_EQU(q->completed, 60);
    T_EQU(q->n_ready + q->n_running + q->n_scheduled, 0);
    T_EQU(q->claimed, q->completed + q->failed_attempts + q->recovered);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(nothing_to_do),
        T_ROW(dead_claims_of_all_tenants),
        T_ROW(a_sweep_is_bounded),
        T_ROW(two_sweeps_in_one_batch),
        T_ROW(history_is_kept_as_long_as_the_queue_says),
        T_ROW(for_ever),
        T_ROW(a_retried_job_is_not_purged),
        T_ROW(purging_is_bounded),
        T_ROW(claims_beside_history),
        T_ROW(the_wall_clock_jumps_while_a_job_runs),
        T_ROW(the_wall_clock_jumps_before_a_job_is_due),
        T_ROW(the_machine_was_off),
        T_ROW(everything_survives),
        T_ROW(push_and_claim_in_one_batch),
        T_ROW(two_workers_in_one_batch),
        T_ROW(settings_in_the_middle_of_a_batch),
        T_ROW(a_bad_op_does_not_disturb_the_others),
        T_ROW(each_job_is_finished_once),
    };

    return T_SUITE("job_sweep", tests);
}
