/*
 * break.c: breaking a lease, and the settle time after an unclean expiry.
 */
#include "harness/suite.h"

T_TEST(break_closes_the_key_until_the_holder_lets_go)
{
    uint64_t     fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;
    const il_op *op    = T_IS(t_break(s, "k", fence), IL_OK);

    T_EQU(op->out.fence, fence);
    T_EQ(t_lease_of(s, "k", "a")->state, IL_LEASE_CLOSING);
    (void)T_IS(t_check(s, "k", fence), IL_STALE);     /* nobody may use it */
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST); /* the holder is told */
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    op = T_IS(t_acquire(s, "k", "b"), IL_HELD); /* nobody else gets it yet */
    T_EQ(op->out.items[0].state, IL_LEASE_CLOSING);
    T_EQU(T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence, 0);
    T_LESS(fence, T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence);
}

T_TEST(break_opens_when_the_time_is_over)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;

    t_pass(s, 4000);
    (void)T_IS(t_break(s, "k", fence), IL_OK);
    T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 6000); /* the rest of its TTL */
    t_pass(s, 5999);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
    (void)T_IS(t_release(s, "k", "a", fence), IL_LOST); /* ended as broken, not as released */
}

T_TEST(break_repeated_does_no_harm)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;

    for (unsigned i = 0; i < 3; i++) {
        (void)T_IS(t_break(s, "k", fence), IL_OK);
        T_EQ(t_lease_of(s, "k", "a")->state, IL_LEASE_CLOSING);
        T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 10000);
    }
    T_EQU(T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_OK)->out.fence, 0);
    T_EQU(T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_NOT_HELD)->out.fence, 0);
    /* A late copy never hits the next holder. */
    uint64_t next = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    T_EQU(T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_STALE)->out.fence, next);
    T_EQU(T_IS(t_break(s, "k", fence), IL_STALE)->out.fence, next);
    (void)T_IS(t_check(s, "k", next), IL_OK);
}

T_TEST(break_now_opens_at_once)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    T_EQU(T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_OK)->out.fence, 0);
    uint64_t next = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    T_LESS(fence, next);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST);
    (void)T_IS(t_release(s, "k", "a", fence), IL_LOST);
    (void)T_IS(t_check(s, "k", next), IL_OK);
}

T_TEST(break_now_ends_a_closing_one)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", fence), IL_OK);
    (void)T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(break_names_the_fence_it_breaks)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    T_EQU(T_IS(t_break(s, "k", fence + 1), IL_STALE)->out.fence, fence);
    T_EQU(T_IS(t_break(s, "k", fence + 1, .flags = IL_BREAK_NOW), IL_STALE)->out.fence, fence);
    (void)T_IS(t_check(s, "k", fence), IL_OK);
    T_EQU(T_IS(t_break(s, "free", fence), IL_NOT_HELD)->out.fence, 0);
}

T_TEST(break_of_a_released_lease_does_not_hit_the_next)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_IS(t_break(s, "k", fence), IL_NOT_HELD);
    uint64_t next = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    (void)T_IS(t_break(s, "k", fence), IL_STALE);
    (void)T_IS(t_check(s, "k", next), IL_OK);
}

T_TEST(break_of_an_expired_lease_is_not_held)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;

    t_pass(s, 1000);
    (void)T_IS(t_break(s, "k", fence), IL_NOT_HELD);
}

T_TEST(break_of_an_offer_ends_it)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED);
    uint64_t offer = T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence;
    T_LESS(fence, offer);
    uint64_t next = T_IS(t_break(s, "k", offer), IL_OK)->out.fence;
    T_LESS(offer, next); /* c's offer, in the same op */
    T_EQU(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_OK)->out.fence, next);
    /* b never confirmed, so there is nothing to be late with: it may queue again. */
    T_EQ(T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
}

T_TEST(break_now_gives_the_key_on)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    uint64_t offer = T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_OK)->out.fence;
    T_LESS(fence, offer);
    T_EQU(T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_OK)->out.fence, offer);
}

T_TEST(break_of_one_shared_lease_leaves_the_others)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_SHARED), IL_OK)->out.fence;
    uint64_t b = T_IS(t_acquire(s, "k", "b", T_SHARED), IL_OK)->out.fence;

    T_EQU(T_IS(t_break(s, "k", a, .flags = IL_BREAK_NOW), IL_OK)->out.fence, b);
    (void)T_IS(t_check(s, "k", b), IL_OK);
    (void)T_IS(t_check(s, "k", a), IL_STALE);
}

T_TEST(a_closing_lease_takes_its_place)
{
    /* A broken permit counts until its holder has let go. */
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_PERMITS(2)), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(2)), IL_OK);
    (void)T_IS(t_break(s, "k", a), IL_OK);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(2)), IL_HELD);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    (void)T_IS(t_acquire(s, "k", "c", T_PERMITS(2)), IL_OK);
}

T_TEST(settle_keeps_the_key_closed_after_an_expiry)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 2000, .settle_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 2000);
    (void)T_IS(t_check(s, "k", fence), IL_STALE);
    const il_op *op = T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQ(op->out.items[0].state, IL_LEASE_CLOSING);
    T_EQ(op->out.items[0].remaining_ms, 5000);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    t_pass(s, 4999);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(settle_counts_from_the_expiry_not_from_when_it_was_seen)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 2000, .settle_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 4000);
    /* Reads change nothing, but they tell the truth: closed, not free. */
    const il_op *op = T_IS(t_get(s, "k"), IL_OK);
    T_EQ(op->out.items[0].state, IL_LEASE_CLOSING);
    T_EQ(op->out.items[0].remaining_ms, 3000);
    T_EQU(op->out.fence, fence);
    T_EQ(T_IS(t_acquire(s, "k", "b"), IL_HELD)->out.items[0].remaining_ms, 3000);
    t_pass(s, 3000);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(settle_over_before_anybody_looked)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 2000, .settle_ms = 5000), IL_OK);
    t_pass(s, 7000);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(settle_ends_when_the_holder_lets_go)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 2000, .settle_ms = 60000), IL_OK)->out.fence;

    t_pass(s, 2500);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(a_clean_release_does_not_settle)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 2000, .settle_ms = 60000), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(an_offer_does_not_settle)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000, .settle_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    t_pass(s, 2000);
    (void)T_IS(t_acquire(s, "k", "c"), IL_OK); /* never confirmed, so nobody worked */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(break_closes_the_key_until_the_holder_lets_go),
        T_ROW(break_opens_when_the_time_is_over),
        T_ROW(break_repeated_does_no_harm),
        T_ROW(break_now_opens_at_once),
        T_ROW(break_now_ends_a_closing_one),
        T_ROW(break_names_the_fence_it_breaks),
        T_ROW(break_of_a_released_lease_does_not_hit_the_next),
        T_ROW(break_of_an_expired_lease_is_not_held),
        T_ROW(break_of_an_offer_ends_it),
        T_ROW(break_now_gives_the_key_on),
        T_ROW(break_of_one_shared_lease_leaves_the_others),
        T_ROW(a_closing_lease_takes_its_place),
        T_ROW(settle_keeps_the_key_closed_after_an_expiry),
        T_ROW(settle_counts_from_the_expiry_not_from_when_it_was_seen),
        T_ROW(settle_over_before_anybody_looked),
        T_ROW(settle_ends_when_the_holder_lets_go),
        T_ROW(a_clean_release_does_not_settle),
        T_ROW(an_offer_does_not_settle),
    };

    return T_SUITE("break", tests);
}
