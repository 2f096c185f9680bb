/*
 * renew_release.c: renew and release, every row of their table, and repeating them.
 */
#include "harness/suite.h"

T_TEST(renew_extends_and_keeps_the_fence)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    for (unsigned i = 0; i < 10; i++) {
        t_pass(s, 4999);
        const il_op *op = T_IS(t_renew(s, "k", "a", fence), IL_OK);
        T_EQU(op->out.fence, fence);
        T_EQ(op->out.remaining_ms, 5000); /* as granted */
    }
    T_EQ(t_lease_of(s, "k", "a")->age_ms, 49990);
    T_EQ(t_lease_of(s, "k", "a")->renewed_ms, 0);
}

T_TEST(renew_with_another_ttl)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    T_EQ(T_IS(t_renew(s, "k", "a", fence, .ttl_ms = 60000), IL_OK)->out.remaining_ms, 60000);
    t_pass(s, 59999);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQ(T_IS(t_renew(s, "k", "a", fence, .ttl_ms = 1000), IL_OK)->out.remaining_ms, 1000);
    T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 1000);
    t_pass(s, 1000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(renew_at_the_expiry_is_lost)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 5000);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST);
    T_EQU(T_IS(t_release(s, "k", "a", fence), IL_LOST)->out.fence, 0);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(renew_repeated_is_the_same)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 100);
    const il_op *one = T_IS(t_renew(s, "k", "a", fence), IL_OK);
    const il_op *two = T_IS(t_renew(s, "k", "a", fence), IL_OK);
    T_EQU(one->out.fence, two->out.fence);
    T_EQ(one->out.remaining_ms, two->out.remaining_ms);
}

T_TEST(release_frees_the_key)
{
    uint64_t     fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    const il_op *op    = T_IS(t_release(s, "k", "a", fence), IL_OK);

    T_EQU(op->out.fence, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    T_EQ(t_count(s, "k", 0), 0);
    T_LESS(fence, T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence);
}

T_TEST(release_repeated_is_ok_again)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    for (unsigned i = 0; i < 3; i++)
        (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    t_pass(s, 59999);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    /* Also when somebody else has the key by now; and that one is left alone. */
    uint64_t other = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    T_EQU(T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence, other);
    T_EQU(T_IS(t_get(s, "k"), IL_OK)->out.fence, other);
    t_pass(s, 1);
    (void)T_IS(t_release(s, "k", "a", fence), IL_HELD); /* forgotten after 60 s */
}

T_TEST(renew_after_release_is_lost)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST);
    t_pass(s, 60000);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_NOT_HELD);
    (void)T_IS(t_release(s, "k", "a", fence), IL_NOT_HELD);
}

T_TEST(another_fence_of_a_live_lease_is_stale)
{
    uint64_t     fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    const il_op *op    = T_IS(t_release(s, "k", "a", fence + 1), IL_STALE);

    T_EQU(op->out.fence, fence);
    T_EQU(T_IS(t_renew(s, "k", "a", fence - 1), IL_STALE)->out.fence, fence);
    (void)T_IS(t_check(s, "k", fence), IL_OK);
}

T_TEST(the_holder_is_compared_too)
{
    uint64_t     fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;
    const il_op *op    = T_IS(t_release(s, "k", "b", fence), IL_HELD);

    T_EQ(op->out.n_items, 1);
    T_STREQ(op->out.items[0].holder, "a");
    T_EQU(op->out.fence, fence);
    t_pass(s, 1000);
    op = T_IS(t_renew(s, "k", "b", fence), IL_HELD);
    T_STREQ(op->out.items[0].holder, "a");
    T_EQ(op->out.items[0].remaining_ms, 4000); /* not extended */
    (void)T_IS(t_check(s, "k", fence), IL_OK);
}

T_TEST(an_old_fence_cannot_end_the_new_lease)
{
    uint64_t old = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;

    t_pass(s, 1000);
    (void)T_IS(t_sweep(s), IL_OK); /* the end counts from when it was noticed */
    t_pass(s, 60000);              /* forgotten: the holder may come again */
    uint64_t new = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;
    T_LESS(old, new);
    (void)T_IS(t_release(s, "k", "a", old), IL_STALE);
    (void)T_IS(t_renew(s, "k", "a", old), IL_STALE);
    (void)T_IS(t_check(s, "k", new), IL_OK);
}

T_TEST(a_free_key_is_not_held)
{
    T_EQU(T_IS(t_renew(s, "k", "a", 1), IL_NOT_HELD)->out.fence, 0);
    T_EQU(T_IS(t_release(s, "k", "a", 1), IL_NOT_HELD)->out.fence, 0);
    T_EQ(t_count(s, "k", 0), 0);
}

T_TEST(expired_then_taken_over)
{
    uint64_t old = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;

    t_pass(s, 1000);
    uint64_t new = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    /* The late one is told that it lost, and who has the key is not touched. */
    T_EQU(T_IS(t_renew(s, "k", "a", old), IL_LOST)->out.fence, new);
    T_EQU(T_IS(t_release(s, "k", "a", old), IL_LOST)->out.fence, new);
    (void)T_IS(t_check(s, "k", old), IL_STALE);
    (void)T_IS(t_check(s, "k", new), IL_OK);
}

T_TEST(renewing_for_hours)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 30000), IL_OK)->out.fence;

    for (unsigned i = 0; i < 200; i++) {
        t_pass(s, 10000 + i * 97);
        (void)T_IS(t_renew(s, "k", "a", fence), IL_OK);
        (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    }
}

T_TEST(renew_of_one_shared_lease_leaves_the_others)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_SHARED, .ttl_ms = 5000), IL_OK)->out.fence;
    uint64_t b = T_IS(t_acquire(s, "k", "b", T_SHARED, .ttl_ms = 5000), IL_OK)->out.fence;

    T_LESS(a, b);
    t_pass(s, 1000);
    T_EQU(T_IS(t_renew(s, "k", "a", a), IL_OK)->out.fence, a);
    T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 5000);
    T_EQ(t_lease_of(s, "k", "b")->remaining_ms, 4000);
    /* What remains on the key is b's. */
    T_EQU(T_IS(t_release(s, "k", "a", a), IL_OK)->out.fence, b);
    (void)T_IS(t_check(s, "k", b), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(renew_extends_and_keeps_the_fence),
        T_ROW(renew_with_another_ttl),
        T_ROW(renew_at_the_expiry_is_lost),
        T_ROW(renew_repeated_is_the_same),
        T_ROW(release_frees_the_key),
        T_ROW(release_repeated_is_ok_again),
        T_ROW(renew_after_release_is_lost),
        T_ROW(another_fence_of_a_live_lease_is_stale),
        T_ROW(the_holder_is_compared_too),
        T_ROW(an_old_fence_cannot_end_the_new_lease),
        T_ROW(a_free_key_is_not_held),
        T_ROW(expired_then_taken_over),
        T_ROW(renewing_for_hours),
        T_ROW(renew_of_one_shared_lease_leaves_the_others),
    };

    return T_SUITE("renew_release", tests);
}
