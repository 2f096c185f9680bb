/*
 * modes.c: shared leases and semaphores, alone and in the queue.
 */
#include "harness/suite.h"

T_TEST(shared_leases_get_along)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < 20; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        uint64_t fence = T_IS(t_acquire(s, "k", holder, T_SHARED), IL_OK)->out.fence;
        T_LESS(last, fence);
        last = fence;
    }
    T_EQ(T_IS(t_get(s, "k"), IL_OK)->out.n_items, 20);
    T_EQU(T_IS(t_get(s, "k"), IL_OK)->out.fence, last); /* the newest */
    (void)T_IS(t_acquire(s, "k", "x"), IL_HELD);
    (void)T_IS(t_acquire(s, "k", "p", T_PERMITS(50)), IL_HELD);
}

T_TEST(exclusive_keeps_everybody_out)
{
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    (void)T_IS(t_acquire(s, "k", "b", T_SHARED), IL_HELD);
    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(9)), IL_HELD);
}

T_TEST(n_permits_and_not_one_more)
{
    uint64_t fences[3];

    for (unsigned i = 0; i < 3; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        fences[i] = T_IS(t_acquire(s, "k", holder, T_PERMITS(3)), IL_OK)->out.fence;
    }
    const il_op *op = T_IS(t_acquire(s, "k", "x", T_PERMITS(3)), IL_HELD);
    T_EQU(op->out.items[0].fence, fences[0]); /* the smallest fence is shown */
    T_EQ(op->out.items[0].permits, 3);
    (void)T_IS(t_acquire(s, "k", "x"), IL_HELD);
    (void)T_IS(t_acquire(s, "k", "x", T_SHARED), IL_HELD);
    (void)T_IS(t_release(s, "k", "h1", fences[1]), IL_OK);
    (void)T_IS(t_acquire(s, "k", "x", T_PERMITS(3)), IL_OK);
    (void)T_IS(t_acquire(s, "k", "y", T_PERMITS(3)), IL_HELD);
}

T_TEST(another_n_on_a_live_semaphore_is_a_mismatch)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", T_PERMITS(3)), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(4)), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(2), .wait_ms = 1000), IL_MISMATCH);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(4)), IL_OK); /* nobody holds it any more */
}

T_TEST(an_expired_permit_is_free_again)
{
    (void)T_IS(t_acquire(s, "k", "a", T_PERMITS(2), .ttl_ms = 1000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(2), .ttl_ms = 5000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(2)), IL_HELD);
    t_pass(s, 1000);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(2)), IL_OK);
    (void)T_IS(t_acquire(s, "k", "d", T_PERMITS(2)), IL_HELD);
}

T_TEST(one_permit_is_like_exclusive)
{
    (void)T_IS(t_acquire(s, "k", "a", T_PERMITS(1)), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(1)), IL_HELD);
}

T_TEST(a_waiting_writer_is_not_passed_by_readers)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_SHARED), IL_OK)->out.fence;

    T_EQ(T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    (void)T_IS(t_acquire(s, "k", "b", T_SHARED), IL_HELD);
    T_EQ(T_IS(t_acquire(s, "k", "b", T_SHARED, .wait_ms = 60000), IL_QUEUED)->out.position, 2);
    uint64_t offer = T_IS(t_release(s, "k", "a", a), IL_OK)->out.fence;
    T_EQ(t_count(s, "k", 0), 1);
    T_EQU(T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_OK)->out.fence, offer);
    (void)T_IS(t_release(s, "k", "w", offer), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", T_SHARED), IL_OK);
}

T_TEST(readers_at_the_head_are_offered_together)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "r1", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "r2", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "r3", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    T_EQ(t_lease_of(s, "k", "r1")->state, IL_LEASE_OFFERED);
    T_EQ(t_lease_of(s, "k", "r2")->state, IL_LEASE_OFFERED);
    T_LESS(t_lease_of(s, "k", "r1")->fence, t_lease_of(s, "k", "r2")->fence);
    T_TRUE(t_lease_of(s, "k", "r3") == NULL);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 2);
}

T_TEST(a_writer_that_gives_up_lets_the_readers_in)
{
    (void)T_IS(t_acquire(s, "k", "a", T_SHARED, .ttl_ms = 60000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "r", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "w"), IL_HELD); /* leaves */
    T_EQ(t_lease_of(s, "k", "r")->state, IL_LEASE_OFFERED);
    (void)T_IS(t_acquire(s, "k", "r", T_SHARED), IL_OK);
}

T_TEST(a_writer_whose_wait_is_over_lets_the_readers_in)
{
    (void)T_IS(t_acquire(s, "k", "a", T_SHARED, .ttl_ms = 60000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 3000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "r", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 3000);
    (void)T_IS(t_acquire(s, "k", "r", T_SHARED, .wait_ms = 60000), IL_OK);
}

T_TEST(permits_are_handed_out_in_order)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_PERMITS(2)), IL_OK)->out.fence;
    uint64_t b = T_IS(t_acquire(s, "k", "b", T_PERMITS(2)), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(2), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "d", T_PERMITS(2), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "b", b), IL_OK);
    T_EQ(t_lease_of(s, "k", "c")->state, IL_LEASE_OFFERED);
    T_TRUE(t_lease_of(s, "k", "d") == NULL);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    (void)T_IS(t_acquire(s, "k", "d", T_PERMITS(2), .wait_ms = 60000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(2), .wait_ms = 60000), IL_OK);
}

T_TEST(an_offer_takes_a_permit)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_PERMITS(1)), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(1), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(1)), IL_HELD);
}

/* Another N waits behind an exclusive lease: it conflicts with the permits granted before it. */
T_TEST(another_n_in_the_queue_waits_for_its_turn)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(2), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(3), .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    uint64_t b = T_IS(t_acquire(s, "k", "b", T_PERMITS(2), .wait_ms = 60000), IL_OK)->out.fence;
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 1);
    (void)T_IS(t_release(s, "k", "b", b), IL_OK);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(3), .wait_ms = 60000), IL_OK);
}

T_TEST(the_lease_in_the_way_has_the_smallest_fence)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_SHARED), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", T_SHARED), IL_OK);
    T_EQU(T_IS(t_acquire(s, "k", "x"), IL_HELD)->out.items[0].fence, a);
    /* Behind a queue nothing live conflicts with a reader: the smallest live one is shown. */
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED);
    T_EQU(T_IS(t_acquire(s, "k", "x", T_SHARED), IL_HELD)->out.items[0].fence, a);
}

T_TEST(a_thousand_permits)
{
    il_op ops[1000];
    char  holders[1000][16];

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(holders[i], sizeof holders[i], "h%u", i);
        ops[i] = t_op(IL_OP_ACQUIRE, "k", holders[i], 0, T_ARGS(T_PERMITS(1000)));
    }
    t_batch(s, ops, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        (void)T_IS(&ops[i], IL_OK);
        il_op_release(&ops[i]);
    }
    (void)T_IS(t_acquire(s, "k", "x", T_PERMITS(1000)), IL_HELD);
    T_EQ(T_IS(t_get(s, "k"), IL_OK)->out.n_items, 1000);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(shared_leases_get_along),
        T_ROW(exclusive_keeps_everybody_out),
        T_ROW(n_permits_and_not_one_more),
        T_ROW(another_n_on_a_live_semaphore_is_a_mismatch),
        T_ROW(an_expired_permit_is_free_again),
        T_ROW(one_permit_is_like_exclusive),
        T_ROW(a_waiting_writer_is_not_passed_by_readers),
        T_ROW(readers_at_the_head_are_offered_together),
        T_ROW(a_writer_that_gives_up_lets_the_readers_in),
        T_ROW(a_writer_whose_wait_is_over_lets_the_readers_in),
        T_ROW(permits_are_handed_out_in_order),
        T_ROW(an_offer_takes_a_permit),
        T_ROW(another_n_in_the_queue_waits_for_its_turn),
        T_ROW(the_lease_in_the_way_has_the_smallest_fence),
        T_ROW(a_thousand_permits),
    };

    return T_SUITE("modes", tests);
}
