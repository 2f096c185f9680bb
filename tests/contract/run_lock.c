/*
 * run_lock.c: runs and plain locks on the same keys: acquires that meet a run's lease or waiter,
 * deadlocks and lock order through starts, tenants.
 */
#include "harness/run.h"
#include "harness/suite.h"

T_TEST(a_run_is_in_the_way_of_an_acquire)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "a"), IL_HELD);
    (void)T_IS(t_acquire(s, "k", "a", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    T_EQ(T_IS(t_run_start(s, "k", "h2", "r2"), IL_QUEUED)->out.position, 2);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    fence = T_IS(t_acquire(s, "k", "a", .wait_ms = 60000), IL_OK)->out.fence;
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_OK, IL_RUN_RUNNING);
}

/* The holder of a run is the holder of its lease: RENEW and a repeated acquire keep it. */
T_TEST(a_runs_lease_is_renewed_as_any)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 4000);
    T_EQ(T_IS(t_renew(s, "k", "h", fence), IL_OK)->out.flags, 0);
    t_pass(s, 4000);
    const il_op *op = T_IS(t_acquire(s, "k", "h", .ttl_ms = 8000), IL_OK);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    t_pass(s, 7000);
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->ttl_ms, 8000);
    (void)T_IS(t_run_cancel(s, "r1", "enough"), IL_OK);
    op = T_IS(t_acquire(s, "k", "h"), IL_OK);
    T_EQ(op->out.flags, IL_OUT_RENEWED | IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "enough");
    (void)T_IS(t_check(s, "k", fence), IL_OK);
    t_run_invariants(s, NULL);
}

/* A run that renews is never doubled, however long it takes. */
T_TEST(a_long_run_on_a_short_lease)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 30000), IL_OK)->out.fence;

    for (unsigned i = 0; i < 200; i++) {
        t_pass(s, 10000);
        (void)T_IS(t_renew(s, "k", "h", fence), IL_OK);
        if (i % 50 == 0)
            (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_DUPLICATE, IL_RUN_RUNNING);
    }
    (void)T_RUN(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK, IL_RUN_COMPLETED);
}

T_TEST(an_acquire_confirms_the_offer_of_a_run)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    fence = T_IS(t_acquire(s, "k", "h2", .wait_ms = 1000), IL_OK)->out.fence;
    T_EQU(T_RUN_NOW(s, "r2", IL_RUN_RUNNING)->fence, fence);
    t_run_invariants(s, NULL);
}

T_TEST(a_holder_that_stops_waiting)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "h2"), IL_HELD); /* leaves the queue */
    T_STREQ(T_RUN_NOW(s, "r2", IL_RUN_CANCELLED)->error, "its holder stopped waiting");
    (void)T_IS(t_run_start(s, "k", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    uint64_t offer = t_lease_of(s, "k", "h3")->fence;
    (void)T_IS(t_release(s, "k", "h3", offer), IL_OK); /* turns its offer down */
    const il_run_info *r = T_RUN_NOW(s, "r3", IL_RUN_FAILED);
    T_STREQ(r->error, "its lease was released before it was finished");
    T_EQU(r->fence, 0);
}

/* ---- deadlock, lock order -------------------------------------------------------------------- */

T_TEST(a_start_that_closes_a_cycle)
{
    (void)T_IS(t_run_start(s, "a", "h1", "r1"), IL_OK);
    (void)T_IS(t_run_start(s, "b", "h2", "r2"), IL_OK);
    (void)T_IS(t_run_start(s, "b", "h1", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    const il_op       *op = t_run_start(s, "a", "h2", "r4", .policy = IL_POLICY_QUEUE);
    const il_run_info *r  = T_RUN(op, IL_DEADLOCK, IL_RUN_CANCELLED);
    T_STREQ(r->id, "r4");
    T_STREQ(r->error, op->out.detail);
    T_TRUE(r->error[0] != '\0' && r->ended_at_ms != 0);
    T_TRUE(t_waiter_of(s, "a", "h2") == NULL);
    T_STREQ(T_RUN(t_run_start(s, "a", "h2", "r4"), IL_STATE, IL_RUN_CANCELLED)->error, r->error);
    (void)T_RUN_NOW(s, "r3", IL_RUN_PENDING);
    t_run_invariants(s, NULL);
}

/*
 * A cycle that no request closes but an offer, as in deadlock.c: p goes from x to u/1, whose unit
 * also waits for what w holds, as a run, while w waits for p. The sweep finds it, and the run ends.
 */
T_TEST(a_cycle_that_a_sweep_finds)
{
    uint64_t x = T_IS(t_acquire(s, "p", "x", T_PERMITS(1)), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "w"), IL_OK);
    (void)T_IS(t_acquire(s, "p", "u/1", T_PERMITS(1), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "p", "w", T_PERMITS(1), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", "u/2", "r1", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", "z", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
    (void)T_IS(t_release(s, "p", "x", x), IL_OK);
    (void)T_IS(t_acquire(s, "p", "u/1", T_PERMITS(1), .wait_ms = 60000), IL_OK);
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_deadlocks, 1);
    T_EQ(sum.n_runs, 0);
    const il_run_info *r = T_RUN_NOW(s, "r1", IL_RUN_CANCELLED);
    T_HAS(r->error, "'k'");
    T_HAS(r->error, "'p'");
    T_TRUE(t_waiter_of(s, "k", "u/2") == NULL);
    (void)T_RUN(t_run_start(s, "k", "u/2", "r1"), IL_STATE, IL_RUN_CANCELLED);
    T_EQ(T_RUN(t_run_start(s, "k", "z", "r2"), IL_QUEUED, IL_RUN_PENDING)->position, 1);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
    t_run_invariants(s, NULL);
}

/* c closes the cycle of a and b, but stands outside: a, whose run waits, has the youngest ticket
 * there. */
T_TEST(a_cycle_closed_by_another_ends_the_youngest)
{
    (void)T_IS(t_acquire(s, "p", "a", T_PERMITS(2)), IL_OK);
    (void)T_IS(t_acquire(s, "p", "c", T_PERMITS(2)), IL_OK);
    (void)T_IS(t_acquire(s, "x", "b"), IL_OK);
    (void)T_IS(t_acquire(s, "p", "b", T_PERMITS(2), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_run_start(s, "x", "a", "ra", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    const il_op *op = t_run_start(s, "x", "c", "rc", .policy = IL_POLICY_QUEUE);
    T_EQ(T_RUN(op, IL_QUEUED, IL_RUN_PENDING)->position, 1);
    T_EQ(op->out.position, 1);
    (void)T_RUN_NOW(s, "ra", IL_RUN_CANCELLED);
    T_TRUE(t_waiter_of(s, "x", "a") == NULL);
    t_run_invariants(s, NULL);
}

/* Who is replaced is in nobody's way any more, so no cycle is closed over its place in the
 * queue. */
T_TEST(what_is_replaced_is_no_deadlock)
{
    (void)T_IS(t_run_start(s, "x", "c", "rc"), IL_OK);
    (void)T_IS(t_acquire(s, "y", "b"), IL_OK);
    (void)T_IS(t_acquire(s, "y", "a/2", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_run_start(s, "x", "a/1", "ra", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    const il_op *op = t_run_start(s, "x", "b", "rb", .policy = IL_POLICY_REPLACE_PENDING);
    (void)T_RUN(op, IL_QUEUED, IL_RUN_PENDING);
    T_STREQ(T_RUN_NOW(s, "ra", IL_RUN_CANCELLED)->error, "replaced by run rb");
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
    /* With a place behind it, it is one. */
    (void)T_IS(t_run_start(s, "x2", "c", "rc2"), IL_OK);
    (void)T_IS(t_run_start(s, "x2", "a/1", "ra2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "x2", "b", "rb2", .policy = IL_POLICY_QUEUE), IL_DEADLOCK);
}

T_TEST(a_start_learns_lock_order)
{
    uint64_t a = T_IS(t_run_start(s, "a:1", "h", "r1"), IL_OK)->out.fence;
    uint64_t b = T_IS(t_run_start(s, "b:1", "h", "r2"), IL_OK)->out.fence;

    (void)T_IS(t_run_finish(s, "r2", "h", b, IL_RUN_COMPLETED), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", a, IL_RUN_COMPLETED), IL_OK);
    (void)T_IS(t_run_start(s, "b:1", "g", "r3"), IL_OK);
    const il_op *op = t_run_start(s, "a:1", "g", "r4");
    (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(op->out.flags, IL_OUT_ORDER_WARNING);
    T_TRUE(op->out.detail != NULL);
    /* One that queues is told too. */
    (void)T_IS(t_run_start(s, "b:2", "f", "r5"), IL_OK);
    op = T_IS(t_run_start(s, "a:1", "f", "r6", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    T_EQ(op->out.flags, IL_OUT_ORDER_WARNING);
}

/* ---- tenants --------------------------------------------------------------------------------- */

/* `a:b` + `c` and `a` + `b:c` are different, and another tenant's run is not there. */
T_TEST(tenants_are_apart)
{
    uint64_t f1 = T_IS(t_run_start(s, "k", "h", "r1", .tenant = "a"), IL_OK)->out.fence;
    uint64_t f2 = T_IS(t_run_start(s, "k", "h", "r1", .tenant = "b"), IL_OK)->out.fence;

    T_STREQ(T_RUN(t_run_get(s, "r1", .tenant = "a"), IL_OK, IL_RUN_RUNNING)->tenant, "a");
    (void)T_IS(t_run_get(s, "r1", .tenant = "c"), IL_NOT_FOUND);
    (void)T_IS(t_run_get(s, "r1"), IL_NOT_FOUND);
    (void)T_IS(t_run_cancel(s, "r1", "x", .tenant = "c"), IL_NOT_FOUND);
    (void)T_IS(t_run_stage(s, "r1", "h", f1, .tenant = "b"), IL_STALE);
    (void)T_IS(t_run_stage(s, "r1", "h", f2, .tenant = "b"), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", f1, IL_RUN_COMPLETED, .tenant = "a"), IL_OK);
    (void)T_RUN(t_run_get(s, "r1", .tenant = "b"), IL_OK, IL_RUN_RUNNING);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2", .tenant = "b"), IL_DUPLICATE, IL_RUN_RUNNING);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2", .tenant = "a"), IL_OK, IL_RUN_RUNNING);
    T_EQ(T_IS(t_run_list(s, NULL, .tenant = "a"), IL_OK)->out.n_runs, 2);
    T_EQ(T_IS(t_run_list(s, NULL, .tenant = "b"), IL_OK)->out.n_runs, 1);
    T_EQ(T_IS(t_run_list(s, NULL), IL_OK)->out.n_runs, 0);
    (void)T_IS(t_run_start(s, "b:c", "h", "x", .tenant = "a"), IL_OK);
    (void)T_IS(t_run_start(s, "c", "h", "x", .tenant = "a:b"), IL_OK);
    t_run_invariants(s, "a");
    t_run_invariants(s, "b");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_run_is_in_the_way_of_an_acquire),
        T_ROW(a_runs_lease_is_renewed_as_any),
        T_ROW(a_long_run_on_a_short_lease),
        T_ROW(an_acquire_confirms_the_offer_of_a_run),
        T_ROW(a_holder_that_stops_waiting),
        T_ROW(a_start_that_closes_a_cycle),
        T_ROW(a_cycle_that_a_sweep_finds),
        T_ROW(a_cycle_closed_by_another_ends_the_youngest),
        T_ROW(what_is_replaced_is_no_deadlock),
        T_ROW(a_start_learns_lock_order),
        T_ROW(tenants_are_apart),
    };

    return T_SUITE("run_lock", tests);
}
