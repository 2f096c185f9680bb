/*
 * run_end.c: stage, finish and cancel, and every way in which a run ends without being finished:
 * each row of the tables of src/core/runs.md.
 */
#include "harness/run.h"
#include "harness/suite.h"

#define CRASHED "lease expired - worker may have crashed"

T_TEST(stage_tells_what_is_going_on)
{
    uint64_t     fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 10000), IL_OK)->out.fence;
    const il_op *op;

    t_pass(s, 1000);
    op                   = t_run_stage(s, "r1", "h", fence, .stage = "load", .percent = 31);
    const il_run_info *r = T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_STREQ(r->stage, "load");
    T_EQ(r->progress, 30);
    T_EQ(op->out.flags, 0);
    T_EQU(op->out.fence, fence);
    T_EQ(r->remaining_ms, 9000); /* the lease is not renewed */
    T_EQ(r->updated_at_ms - r->created_at_ms, 1000);
    r = T_RUN(t_run_stage(s, "r1", "h", fence, .percent = 1), IL_OK, IL_RUN_RUNNING);
    T_STREQ(r->stage, "load"); /* as before */
    T_EQ(r->progress, 0);
    r = T_RUN(t_run_stage(s, "r1", "h", fence, .stage = "store", .log = "hello", .log_bytes = 5),
              IL_OK, IL_RUN_RUNNING);
    T_EQ(r->progress, 0);
    T_EQ(r->log_bytes, 5);
    r = T_RUN_NOW(s, "r1", IL_RUN_RUNNING);
    T_STREQ(r->stage, "store");
    T_EQ(r->log_bytes, 5);
    r = T_RUN(t_run_stage(s, "r1", "h", fence, .stage = ""), IL_OK, IL_RUN_RUNNING);
    T_STREQ(r->stage, "");
}

T_TEST(finish_ends_the_run_and_gives_the_key_on)
{
    static const il_run_state states[] = { IL_RUN_COMPLETED, IL_RUN_FAILED, IL_RUN_CANCELLED,
                                           IL_RUN_TIMEOUT, IL_RUN_INTERRUPTED };

    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "r%zu", i);
        uint64_t fence = T_IS(t_run_start(s, "k", id, id), IL_OK)->out.fence;
        t_pass(s, 500);
        const il_op       *op = t_run_finish(s, id, id, fence, states[i], .error = "why\nso",
                                             .log = "bye", .log_bytes = 3);
        const il_run_info *r  = T_RUN(op, IL_OK, states[i]);
        T_STREQ(r->error, "why\nso");
        T_EQ(r->log_bytes, 3);
        T_EQ(r->remaining_ms, 0);
        T_EQU(r->fence, fence);
        T_STREQ(r->holder, id);
        T_EQ(r->ended_at_ms - r->started_at_ms, 500);
        T_EQ(r->updated_at_ms, r->ended_at_ms);
        (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
        r = T_RUN_NOW(s, id, states[i]);
        T_STREQ(r->error, "why\nso");
        T_EQU(r->fence, fence);
    }
    t_run_invariants(s, NULL);
}

/* After an unknown outcome everything may be repeated. */
T_TEST(finish_repeated)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_RUN(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED, .error = "first", .log = "x",
                             .log_bytes = 1),
                IL_OK, IL_RUN_FAILED);
    const il_run_info *r = T_RUN(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED, .error = "again",
                                              .log = "x", .log_bytes = 1),
                                 IL_OK, IL_RUN_FAILED);
    T_STREQ(r->error, "first"); /* an ended run never changes */
    T_EQ(r->log_bytes, 1);
    const il_op *op = t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED);
    (void)T_RUN(op, IL_MISMATCH, IL_RUN_FAILED);
    T_STREQ(op->out.detail, "the run has already ended as FAILED: first");
    op = t_run_finish(s, "r1", "h", fence + 1, IL_RUN_FAILED);
    (void)T_RUN(op, IL_STALE, IL_RUN_FAILED);
    op = t_run_stage(s, "r1", "h", fence);
    (void)T_RUN(op, IL_STALE, IL_RUN_FAILED);
    T_STREQ(op->out.detail, "the run has already ended as FAILED: first");
    /* The key is somebody else's by now, and nothing of that reaches it. */
    uint64_t next = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED), IL_OK);
    (void)T_IS(t_check(s, "k", next), IL_OK);
}

T_TEST(only_who_executes_it_may_stage_and_finish)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_stage(s, "none", "h", fence), IL_NOT_FOUND);
    (void)T_IS(t_run_finish(s, "none", "h", fence, IL_RUN_FAILED), IL_NOT_FOUND);
    const il_op *op = t_run_stage(s, "r1", "x", fence);
    (void)T_RUN(op, IL_STALE, IL_RUN_RUNNING);
    T_STREQ(op->out.detail, "the run belongs to 'h'");
    T_EQU(op->out.fence, fence);
    op = t_run_finish(s, "r1", "h", fence + 1, IL_RUN_COMPLETED);
    (void)T_RUN(op, IL_STALE, IL_RUN_RUNNING);
    T_STREQ(op->out.detail, "the run belongs to 'h' with another fence");
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    op = t_run_finish(s, "r2", "h2", fence, IL_RUN_COMPLETED);
    (void)T_RUN(op, IL_STALE, IL_RUN_PENDING);
    T_STREQ(op->out.detail, "the run has not been started yet");
    T_EQU(op->out.fence, 0);
    (void)T_RUN_NOW(s, "r1", IL_RUN_RUNNING);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

T_TEST(cancel_of_a_running_one_asks_for_a_stop)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    t_pass(s, 100);
    const il_op       *op = t_run_cancel(s, "r1", "first");
    const il_run_info *r  = T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(r->cancelled, 1);
    T_STREQ(r->error, "first");
    T_EQ(r->updated_at_ms - r->created_at_ms, 100);
    r = T_RUN(t_run_cancel(s, "r1", "second"), IL_OK, IL_RUN_RUNNING);
    T_STREQ(r->error, "first");
    op = t_run_stage(s, "r1", "h", fence, .percent = 51);
    (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(op->out.flags, IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "first");
    op = T_IS(t_renew(s, "k", "h", fence), IL_OK);
    T_EQ(op->out.flags, IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "first");
    r = T_RUN(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED, .error = "exit 143"), IL_OK,
              IL_RUN_CANCELLED);
    T_STREQ(r->error, "first");
    T_EQ(r->cancelled, 1);
    /* Repeated, in the same words and in others. */
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_CANCELLED), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_MISMATCH);
    T_STREQ(T_RUN(t_run_cancel(s, "r1", "late"), IL_OK, IL_RUN_CANCELLED)->error, "first");
}

T_TEST(a_stop_that_comes_too_late)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_cancel(s, "r1", "stop"), IL_OK);
    const il_run_info *r =
        T_RUN(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK, IL_RUN_COMPLETED);
    T_STREQ(r->error, "");
    T_EQ(r->cancelled, 1);
    fence = T_IS(t_run_start(s, "k", "h2", "r2"), IL_OK)->out.fence;
    (void)T_IS(t_run_cancel(s, "r2", "stop"), IL_OK);
    r = T_RUN(t_run_finish(s, "r2", "h2", fence, IL_RUN_TIMEOUT, .error = "30 min"), IL_OK,
              IL_RUN_TIMEOUT);
    T_STREQ(r->error, "30 min");
}

T_TEST(cancel_of_a_pending_one_ends_it)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", NULL, "slot", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    const il_run_info *r = T_RUN(t_run_cancel(s, "r2", "no need"), IL_OK, IL_RUN_CANCELLED);
    T_STREQ(r->error, "no need");
    T_EQ(r->cancelled, 0);
    T_EQU(r->fence, 0);
    T_TRUE(r->ended_at_ms != 0 && r->started_at_ms == 0);
    (void)T_RUN(t_run_cancel(s, "slot", "no need"), IL_OK, IL_RUN_CANCELLED);
    (void)T_RUN(t_run_cancel(s, "r2", "again"), IL_OK, IL_RUN_CANCELLED);
    T_TRUE(t_waiter_of(s, "k", "h2") == NULL);
    T_EQ(T_IS(t_run_start(s, "k", "h3", "r3"), IL_QUEUED)->out.position, 1);
    /* One that was offered the key: the next one has it. */
    (void)T_IS(t_run_start(s, "k", "h4", "r4", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    (void)T_RUN(t_run_cancel(s, "r3", "no need"), IL_OK, IL_RUN_CANCELLED);
    T_EQ(t_lease_of(s, "k", "h4")->state, IL_LEASE_OFFERED);
    (void)T_RUN(t_run_start(s, "k", "h4", "r4"), IL_OK, IL_RUN_RUNNING);
    (void)T_IS(t_run_cancel(s, "none", "x"), IL_NOT_FOUND);
    t_run_invariants(s, NULL);
}

/* ---- what ends with its lease ---------------------------------------------------------------- */

/* An orphan ends as FAILED, with a text that says why. By a sweep … */
T_TEST(a_lease_that_expires)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 4999);
    (void)T_RUN_NOW(s, "r1", IL_RUN_RUNNING);
    t_pass(s, 1);
    const il_run_info *r = T_RUN_NOW(s, "r1", IL_RUN_FAILED); /* shown as it will end */
    T_STREQ(r->error, CRASHED);
    T_EQU(r->fence, fence);
    T_TRUE(r->ended_at_ms != 0);
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_expired, 1);
    T_EQ(sum.n_runs, 1);
    int64_t ended = T_RUN_NOW(s, "r1", IL_RUN_FAILED)->ended_at_ms;
    t_pass(s, 1000);
    r = T_RUN_NOW(s, "r1", IL_RUN_FAILED);
    T_STREQ(r->error, CRASHED);
    T_EQ(r->ended_at_ms, ended);
    /* A worker that comes back late. */
    (void)T_RUN(t_run_stage(s, "r1", "h", fence), IL_STALE, IL_RUN_FAILED);
    const il_op *op = t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED);
    (void)T_RUN(op, IL_STALE, IL_RUN_FAILED); /* recovered, not finished */
    T_STREQ(op->out.detail, "the run has already ended as FAILED: " CRASHED);
    /* that is what it says, too */
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED), IL_OK);
    T_EQ(t_sweep_all(s, 0).n_runs, 0);
}

/* … and by somebody else's acquire, start, or by an op on the run itself. */
T_TEST(an_orphan_is_found_by_whoever_comes_by)
{
    (void)T_IS(t_run_start(s, "k1", "h", "r1", .ttl_ms = 5000), IL_OK);
    (void)T_IS(t_run_start(s, "k2", "h", "r2", .ttl_ms = 5000), IL_OK);
    uint64_t fence = T_IS(t_run_start(s, "k3", "h", "r3", .ttl_ms = 5000), IL_OK)->out.fence;
    (void)T_IS(t_run_start(s, "k4", "h", "r4", .ttl_ms = 5000), IL_OK);
    t_pass(s, 5000);
    (void)T_IS(t_acquire(s, "k1", "a"), IL_OK);
    (void)T_RUN(t_run_start(s, "k2", "h2", "r2b"), IL_OK, IL_RUN_RUNNING);
    (void)T_RUN(t_run_stage(s, "r3", "h", fence), IL_STALE, IL_RUN_FAILED);
    (void)T_RUN(t_run_cancel(s, "r4", "x"), IL_OK, IL_RUN_FAILED);
    T_EQ(t_sweep_all(s, 0).n_runs, 0);
    for (unsigned i = 1; i <= 4; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "r%u", i);
        const il_run_info *r = T_RUN_NOW(s, id, IL_RUN_FAILED);
        T_STREQ(r->error, CRASHED);
        T_EQ(r->cancelled, 0);
    }
    (void)T_RUN(t_run_start(s, "k3", "h", "r3"), IL_STATE, IL_RUN_FAILED);
    t_run_invariants(s, NULL);
}

T_TEST(an_orphan_that_should_have_stopped)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    (void)T_IS(t_run_cancel(s, "r1", "enough"), IL_OK);
    t_pass(s, 5000);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "enough (worker may have crashed)");
    (void)T_IS(t_sweep(s), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "enough (worker may have crashed)");
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_STALE);
}

T_TEST(an_orphan_that_was_replaced)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_CANCEL_RUNNING), IL_QUEUED);
    t_pass(s, 5000);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error,
            "replaced by run r2 (worker may have crashed)");
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_OK, IL_RUN_RUNNING);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error,
            "replaced by run r2 (worker may have crashed)");
}

/* With a settle time the run ends when its lease expires, and the key stays closed without it. */
T_TEST(a_settle_time_is_not_the_runs)
{
    uint64_t fence =
        T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000, .settle_ms = 10000), IL_OK)->out.fence;

    t_pass(s, 5000);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->error, CRASHED);
    T_EQ(t_sweep_all(s, 0).n_runs, 1);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->error, CRASHED);
    T_EQ(t_lease_of(s, "k", "h")->state, IL_LEASE_CLOSING);
    const il_op *op = T_IS(t_run_start(s, "k", "h2", "r2"), IL_HELD); /* held, but by no run */
    T_EQ(op->out.n_runs, 0);
    (void)T_IS(t_run_start(s, "k", "h", "r3"), IL_LOST);
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_break(s, "k", fence), IL_OK); /* it has no run to stop */
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->cancelled, 0);
    t_pass(s, 10000);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_OK, IL_RUN_RUNNING);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->error, CRASHED);
    t_run_invariants(s, NULL);
}

T_TEST(a_settle_time_that_is_over_too)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000, .settle_ms = 10000), IL_OK);
    t_pass(s, 15000);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->error, CRASHED);
    T_EQ(t_sweep_all(s, 0).n_runs, 1);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->error, CRASHED);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
}

/* A plain break asks the run to stop, and ends it when its lease ends. */
T_TEST(a_lease_that_is_broken)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", fence), IL_OK);
    const il_run_info *r = T_RUN_NOW(s, "r1", IL_RUN_RUNNING);
    T_EQ(r->cancelled, 1);
    T_STREQ(r->error, "broken: test");
    const il_op *op = t_run_stage(s, "r1", "h", fence, .stage = "stopping");
    (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(op->out.flags, IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "broken: test");
    (void)T_IS(t_renew(s, "k", "h", fence), IL_LOST);
    t_run_invariants(s, NULL);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_DUPLICATE, IL_RUN_RUNNING);
    t_pass(s, 5000);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "broken: test");
    T_EQ(t_sweep_all(s, 0).n_runs, 1);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "broken: test");
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_STALE);
}

T_TEST(a_broken_one_that_finishes)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", fence), IL_OK);
    T_STREQ(T_RUN(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED), IL_OK, IL_RUN_CANCELLED)->error,
            "broken: test");
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    /* One that is released, by whoever held it. */
    fence = T_IS(t_run_start(s, "k", "h2", "r2"), IL_OK)->out.fence;
    (void)T_IS(t_break(s, "k", fence), IL_OK);
    (void)T_IS(t_release(s, "k", "h2", fence), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r2", IL_RUN_CANCELLED)->error, "broken: test");
}

/* The first reason stays while it runs; that its lease was broken is how it ended. */
T_TEST(a_broken_one_that_was_cancelled)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    (void)T_IS(t_run_cancel(s, "r1", "enough"), IL_OK);
    (void)T_IS(t_break(s, "k", fence), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->error, "enough");
    t_pass(s, 5000);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "broken: test");
    (void)T_IS(t_sweep(s), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "broken: test");
}

T_TEST(a_lease_that_is_broken_now)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "broken: test");
    (void)T_RUN(t_run_stage(s, "r1", "h", fence), IL_STALE, IL_RUN_CANCELLED);
    /* The offer of the next one is broken, too. */
    uint64_t offer = t_lease_of(s, "k", "h2")->fence;
    (void)T_IS(t_break(s, "k", offer), IL_OK);
    const il_run_info *r = T_RUN_NOW(s, "r2", IL_RUN_CANCELLED);
    T_STREQ(r->error, "broken: test");
    T_EQU(r->fence, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    t_run_invariants(s, NULL);
}

T_TEST(a_lease_that_is_given_back)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "k", "h", fence), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_FAILED)->error,
            "its lease was released before it was finished");
    (void)T_IS(t_release(s, "k", "h", fence), IL_OK); /* repeated */
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_STALE);
    /* With others waiting for other keys, which is another path. */
    fence = T_IS(t_run_start(s, "k", "h2", "r2"), IL_OK)->out.fence;
    (void)T_IS(t_run_cancel(s, "r2", "enough"), IL_OK);
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "h2", fence), IL_OK);
    T_STREQ(T_RUN_NOW(s, "r2", IL_RUN_CANCELLED)->error, "enough");
    T_EQ(t_lease_of(s, "k", "w")->state, IL_LEASE_OFFERED);
}

/* What was refused or has ended stays what it was when the store is opened anew. */
T_TEST(runs_survive_a_restart)
{
    T_NEEDS(s, durable);
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 60000), IL_OK)->out.fence;
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", NULL, "r3", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    (void)T_IS(t_run_cancel(s, "r1", "enough"), IL_OK);
    t_store_reopen(s);
    const il_run_info *r = T_RUN_NOW(s, "r1", IL_RUN_RUNNING);
    T_EQ(r->cancelled, 1);
    T_EQU(r->fence, fence);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_CANCELLED), IL_OK);
    t_store_reopen(s);
    T_STREQ(T_RUN_NOW(s, "r1", IL_RUN_CANCELLED)->error, "enough");
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_OK, IL_RUN_RUNNING);
    (void)T_RUN_NOW(s, "r3", IL_RUN_PENDING);
    t_run_invariants(s, NULL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(stage_tells_what_is_going_on),
        T_ROW(finish_ends_the_run_and_gives_the_key_on),
        T_ROW(finish_repeated),
        T_ROW(only_who_executes_it_may_stage_and_finish),
        T_ROW(cancel_of_a_running_one_asks_for_a_stop),
        T_ROW(a_stop_that_comes_too_late),
        T_ROW(cancel_of_a_pending_one_ends_it),
        T_ROW(a_lease_that_expires),
        T_ROW(an_orphan_is_found_by_whoever_comes_by),
        T_ROW(an_orphan_that_should_have_stopped),
        T_ROW(an_orphan_that_was_replaced),
        T_ROW(a_settle_time_is_not_the_runs),
        T_ROW(a_settle_time_that_is_over_too),
        T_ROW(a_lease_that_is_broken),
        T_ROW(a_broken_one_that_finishes),
        T_ROW(a_broken_one_that_was_cancelled),
        T_ROW(a_lease_that_is_broken_now),
        T_ROW(a_lease_that_is_given_back),
        T_ROW(runs_survive_a_restart),
    };

    return T_SUITE("run_end", tests);
}
