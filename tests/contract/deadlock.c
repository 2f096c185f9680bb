/*
 * deadlock.c: cycles of waiting units of work are detected, reported and broken; anything else is
 * left alone.
 */
#include "harness/suite.h"

#define WAIT .wait_ms = 60000

static uint64_t
take(struct t_store *s, const char *key, const char *holder)
{
    return T_IS(t_acquire(s, key, holder, .ttl_ms = 3600000), IL_OK)->out.fence;
}

T_TEST(two_units)
{
    uint64_t y = 0;

    (void)take(s, "x", "a");
    y = take(s, "y", "b");
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_QUEUED);
    const il_op *op = T_IS(t_acquire(s, "x", "b", WAIT), IL_DEADLOCK);
    T_HAS(op->out.detail, "a");
    T_HAS(op->out.detail, "b");
    T_HAS(op->out.detail, "'x'");
    T_HAS(op->out.detail, "'y'");
    T_EQ(t_count(s, "x", IL_LIST_WAITERS), 0); /* it is gone */
    T_EQ(t_count(s, "y", IL_LIST_WAITERS), 1);
    /* b lets go, a goes on. */
    (void)T_IS(t_release(s, "y", "b", y), IL_OK);
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_OK);
    (void)T_IS(t_acquire(s, "x", "b", WAIT), IL_QUEUED);
}

T_TEST(a_ring_of_ten)
{
    char keys[10][8];
    char holders[10][8];

    for (unsigned i = 0; i < 10; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%u", i);
        (void)snprintf(holders[i], sizeof holders[i], "h%u", i);
        (void)take(s, keys[i], holders[i]);
    }
    for (unsigned i = 0; i < 9; i++)
        (void)T_IS(t_acquire(s, keys[i + 1], holders[i], WAIT), IL_QUEUED);
    const il_op *op = T_IS(t_acquire(s, keys[0], holders[9], WAIT), IL_DEADLOCK);
    for (unsigned i = 0; i < 10; i++)
        T_HAS(op->out.detail, holders[i]);
}

T_TEST(a_chain_is_no_cycle)
{
    (void)take(s, "x", "a");
    (void)take(s, "y", "b");
    (void)take(s, "z", "c");
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "z", "b", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "z", "a/1", WAIT), IL_QUEUED);
}

T_TEST(not_waiting_is_no_deadlock)
{
    (void)take(s, "x", "a");
    (void)take(s, "y", "b");
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "x", "b"), IL_HELD);
}

T_TEST(a_waiter_ahead_is_in_the_way)
{
    /* c holds x; a waits for x; b (who holds y) waits behind a; a's unit wants y: a cycle over a
     * place in the queue. */
    (void)take(s, "x", "c");
    (void)take(s, "y", "b");
    (void)T_IS(t_acquire(s, "x", "a/1", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "x", "b", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "y", "a/2", WAIT), IL_DEADLOCK);
}

T_TEST(readers_and_a_writer)
{
    (void)T_IS(t_acquire(s, "x", "a", T_SHARED), IL_OK);
    (void)T_IS(t_acquire(s, "x", "b", T_SHARED), IL_OK);
    (void)take(s, "y", "b");
    (void)T_IS(t_acquire(s, "x", "w", WAIT), IL_QUEUED); /* waits for a and b */
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_QUEUED); /* waits for b only: fine */
    /* b asks for what a holds alone. */
    (void)take(s, "z", "a/2");
    (void)T_IS(t_acquire(s, "z", "b", WAIT), IL_DEADLOCK);
}

T_TEST(a_free_permit_is_no_deadlock)
{
    uint64_t c = 0;

    (void)T_IS(t_acquire(s, "p", "a", T_PERMITS(2)), IL_OK);
    c = T_IS(t_acquire(s, "p", "c", T_PERMITS(2)), IL_OK)->out.fence;
    (void)take(s, "x", "b");
    (void)T_IS(t_acquire(s, "x", "a", WAIT), IL_QUEUED);
    /* b needs a permit; a never gives one, but c can finish. */
    (void)T_IS(t_acquire(s, "p", "b", T_PERMITS(2), WAIT), IL_QUEUED);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
    (void)T_IS(t_release(s, "p", "c", c), IL_OK);
    (void)T_IS(t_acquire(s, "p", "b", T_PERMITS(2), WAIT), IL_OK);
}

T_TEST(all_permits_stuck_is_a_deadlock)
{
    (void)T_IS(t_acquire(s, "p", "a", T_PERMITS(2)), IL_OK);
    (void)T_IS(t_acquire(s, "p", "c", T_PERMITS(2)), IL_OK);
    (void)take(s, "x", "b");
    (void)T_IS(t_acquire(s, "x", "a", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "x", "c", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "p", "b", T_PERMITS(2), WAIT), IL_DEADLOCK);
}

T_TEST(the_last_free_permit_holder_starts_to_wait)
{
    (void)T_IS(t_acquire(s, "p", "a", T_PERMITS(2)), IL_OK);
    (void)T_IS(t_acquire(s, "p", "c", T_PERMITS(2)), IL_OK);
    (void)take(s, "x", "b");
    (void)T_IS(t_acquire(s, "x", "a", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "p", "b", T_PERMITS(2), WAIT), IL_QUEUED);
    /* c closes it, but stands outside the cycle of a and b: b has the youngest ticket there. */
    (void)T_IS(t_acquire(s, "x", "c", WAIT), IL_QUEUED);
    T_EQ(t_count(s, "p", IL_LIST_WAITERS), 0);
    (void)T_IS(t_acquire(s, "p", "b", T_PERMITS(2), WAIT), IL_DEADLOCK);
}

T_TEST(siblings_are_not_a_deadlock)
{
    uint64_t y = 0;

    (void)take(s, "x", "job/1");
    y = take(s, "y", "job/2");
    (void)T_IS(t_acquire(s, "y", "job/1", WAIT), IL_QUEUED);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
    (void)T_IS(t_release(s, "y", "job/2", y), IL_OK);
    (void)T_IS(t_acquire(s, "y", "job/1", WAIT), IL_OK);
}

T_TEST(waiting_for_an_ancestor_is)
{
    (void)take(s, "x", "job");
    (void)T_IS(t_acquire(s, "x", "job/1", WAIT), IL_DEADLOCK);
    (void)T_IS(t_acquire(s, "x", "job/1/2", WAIT), IL_DEADLOCK);
    (void)T_IS(t_acquire(s, "x", "job2", WAIT), IL_QUEUED);
}

T_TEST(a_parent_may_wait_for_its_child)
{
    uint64_t x = take(s, "x", "job/1");

    (void)T_IS(t_acquire(s, "x", "job", WAIT), IL_QUEUED);
    (void)T_IS(t_release(s, "x", "job/1", x), IL_OK);
    (void)T_IS(t_acquire(s, "x", "job", WAIT), IL_OK);
}

T_TEST(a_cycle_through_nested_units)
{
    (void)take(s, "x", "job/1");
    (void)take(s, "y", "other");
    (void)T_IS(t_acquire(s, "y", "job/2", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "x", "other", WAIT), IL_DEADLOCK);
}

T_TEST(tenants_do_not_make_cycles)
{
    (void)T_IS(t_acquire(s, "x", "a", .tenant = "one"), IL_OK);
    (void)T_IS(t_acquire(s, "y", "b", .tenant = "one"), IL_OK);
    (void)T_IS(t_acquire(s, "x", "b", .tenant = "two"), IL_OK);
    (void)T_IS(t_acquire(s, "y", "b", .tenant = "two"), IL_OK);
    (void)T_IS(t_acquire(s, "y", "a", .tenant = "one", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "x", "a", .tenant = "two", WAIT), IL_QUEUED);
}

T_TEST(shared_with_shared_is_no_wait)
{
    (void)T_IS(t_acquire(s, "x", "a", T_SHARED), IL_OK);
    (void)T_IS(t_acquire(s, "y", "b", T_SHARED), IL_OK);
    (void)T_IS(t_acquire(s, "y", "a", T_SHARED, WAIT), IL_OK);
    (void)T_IS(t_acquire(s, "x", "b", T_SHARED, WAIT), IL_OK);
}

T_TEST(two_readers_that_both_want_to_write)
{
    /* The classic upgrade: under their own names it is a MISMATCH, as nested units a deadlock. */
    (void)T_IS(t_acquire(s, "x", "a", T_SHARED), IL_OK);
    (void)T_IS(t_acquire(s, "x", "b", T_SHARED), IL_OK);
    (void)T_IS(t_acquire(s, "x", "a", WAIT), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "x", "a/up", WAIT), IL_DEADLOCK); /* waits for its own ancestor */
}

/* The youngest ticket of the cycle is cancelled, whoever closed it. */
T_TEST(an_older_waiter_closes_the_cycle)
{
    (void)take(s, "x", "a");
    (void)take(s, "y", "b");
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_QUEUED); /* the older ticket */
    (void)T_IS(t_acquire(s, "x", "b", WAIT), IL_DEADLOCK);
    /* Asking again is the same again. */
    (void)T_IS(t_acquire(s, "x", "b", WAIT), IL_DEADLOCK);
    T_EQ(t_count(s, "y", IL_LIST_WAITERS), 1);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
}

/*
 * A cycle that no request closes but an offer: p (one permit) goes from x to p1, whose unit also
 * waits for what w holds, while w waits for the permit. The sweep finds it, cancels the youngest
 * and tells it.
 */
T_TEST(a_sweep_finds_what_an_offer_closed)
{
    uint64_t x = T_IS(t_acquire(s, "p", "x", T_PERMITS(1)), IL_OK)->out.fence;

    (void)take(s, "k", "w");
    (void)T_IS(t_acquire(s, "p", "u/1", T_PERMITS(1), WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "p", "w", T_PERMITS(1), WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "u/2", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "z", WAIT), IL_QUEUED);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0); /* x can finish: nothing is stuck yet */
    (void)T_IS(t_release(s, "p", "x", x), IL_OK);
    (void)T_IS(t_acquire(s, "p", "u/1", T_PERMITS(1), WAIT), IL_OK);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 1);
    T_EQ(t_sweep_all(s, 0).n_deadlocks, 0);
    /* The victim stands in nobody's way, and is told once. */
    T_EQ(T_IS(t_acquire(s, "k", "z", WAIT), IL_QUEUED)->out.position, 1);
    T_EQ(t_lease_of(s, "k", "w")->n_waiters, 1);
    const il_op *op = T_IS(t_acquire(s, "k", "u/2", WAIT), IL_DEADLOCK);
    T_HAS(op->out.detail, "'k'");
    T_HAS(op->out.detail, "'p'");
    T_TRUE(t_waiter_of(s, "k", "u/2") == NULL);
}

T_TEST(a_deadlock_ends_with_its_leases)
{
    (void)T_IS(t_acquire(s, "x", "a", .ttl_ms = 10000), IL_OK);
    (void)take(s, "y", "b");
    (void)T_IS(t_acquire(s, "y", "a", WAIT), IL_QUEUED);
    t_pass(s, 10000);
    (void)T_IS(t_acquire(s, "x", "b", WAIT), IL_OK); /* a lost x: no cycle */
}

T_TEST(strangers_queue_without_a_search)
{
    (void)take(s, "x", "a");
    for (unsigned i = 0; i < 300; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "w%u", i);
        T_EQ(T_IS(t_acquire(s, "x", holder, WAIT), IL_QUEUED)->out.position, i + 1);
    }
}

/* Nobody renews them any more, so the way will be free. */
T_TEST(what_is_over_is_no_deadlock)
{
    (void)T_IS(t_acquire(s, "k1", "a", .ttl_ms = 1000), IL_OK);
    (void)take(s, "k2", "b");
    (void)take(s, "k3", "c");
    (void)T_IS(t_acquire(s, "k2", "a", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k1", "c", WAIT), IL_QUEUED);
    t_pass(s, 1000);
    (void)T_IS(t_acquire(s, "k3", "b", WAIT), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k1", "c", WAIT), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(two_units),
        T_ROW(what_is_over_is_no_deadlock),
        T_ROW(a_ring_of_ten),
        T_ROW(a_chain_is_no_cycle),
        T_ROW(not_waiting_is_no_deadlock),
        T_ROW(a_waiter_ahead_is_in_the_way),
        T_ROW(readers_and_a_writer),
        T_ROW(a_free_permit_is_no_deadlock),
        T_ROW(all_permits_stuck_is_a_deadlock),
        T_ROW(the_last_free_permit_holder_starts_to_wait),
        T_ROW(siblings_are_not_a_deadlock),
        T_ROW(waiting_for_an_ancestor_is),
        T_ROW(a_parent_may_wait_for_its_child),
        T_ROW(a_cycle_through_nested_units),
        T_ROW(tenants_do_not_make_cycles),
        T_ROW(shared_with_shared_is_no_wait),
        T_ROW(two_readers_that_both_want_to_write),
        T_ROW(an_older_waiter_closes_the_cycle),
        T_ROW(a_sweep_finds_what_an_offer_closed),
        T_ROW(a_deadlock_ends_with_its_leases),
        T_ROW(strangers_queue_without_a_search),
    };

    return T_SUITE("deadlock", tests);
}
