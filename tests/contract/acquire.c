/*
 * acquire.c: every row of the acquire table of src/core/README.md, on a key without a queue. Rows
 * about waiting are in waiters.c, about lock order in order.c, about deadlock in deadlock.c.
 */
#include "harness/suite.h"

T_TEST(grants_a_free_key)
{
    const il_op *op = T_IS(t_acquire(s, "k", "a", .ttl_ms = 7000), IL_OK);

    T_TRUE(op->out.fence > 0);
    T_LESS(op->out.fence, UINT64_C(1) << 53);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.remaining_ms, 7000);
    T_EQ(op->out.n_items, 0);
    T_STREQ(op->out.detail, NULL);
}

T_TEST(default_ttl_is_30_s)
{
    T_EQ(T_IS(t_acquire(s, "k", "a"), IL_OK)->out.remaining_ms, IL_TTL_MS_DEFAULT);
}

T_TEST(held_by_another_is_held)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 7000, .meta = "m\n1", .place = "x.c:1"), IL_OK)
            ->out.fence;

    t_pass(s, 1000);
    const il_op *op = T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQ(op->out.n_items, 1);
    const il_lease_info *it = &op->out.items[0];
    T_STREQ(it->tenant, "default");
    T_STREQ(it->key, "k");
    T_STREQ(it->holder, "a");
    T_STREQ(it->meta, "m\n1");
    T_STREQ(it->place, "x.c:1");
    T_EQU(it->fence, fence);
    T_EQU(it->ticket, 0);
    T_EQ(it->mode, IL_MODE_EXCLUSIVE);
    T_EQ(it->permits, 0);
    T_EQ(it->state, IL_LEASE_HELD);
    T_EQ(it->n_waiters, 0);
    T_EQ(it->ttl_ms, 7000);
    T_EQ(it->age_ms, 1000);
    T_EQ(it->remaining_ms, 6000);
    T_EQ(it->renewed_ms, 1000);
    T_EQ(it->acquired_at_ms, T_WALL_MS_START);
    T_EQ(it->expires_at_ms, T_WALL_MS_START + 7000);
    /* Nothing was changed: the holder is the same, nobody waits. */
    T_EQ(t_count(s, "k", 0), 1);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
}

T_TEST(same_holder_renews)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 4000);
    const il_op *op = T_IS(t_acquire(s, "k", "a", .ttl_ms = 9000), IL_OK);
    T_EQU(op->out.fence, fence);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQ(op->out.remaining_ms, 9000);
    /* A shorter ttl counts too: the new one rules. */
    op = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK);
    T_EQU(op->out.fence, fence);
    T_EQ(op->out.remaining_ms, 1000);
    t_pass(s, 1000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(other_mode_or_permits_is_a_mismatch)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", T_PERMITS(3)), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "a"), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", "a", T_SHARED), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", "a", T_PERMITS(4)), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", "a", T_SHARED, .wait_ms = 1000), IL_MISMATCH);
    T_EQU(T_IS(t_acquire(s, "k", "a", T_PERMITS(3)), IL_OK)->out.fence, fence);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
}

T_TEST(mismatch_comes_before_closing)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", fence), IL_OK);
    (void)T_IS(t_acquire(s, "k", "a", T_SHARED), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
}

T_TEST(expiry_is_strict)
{
    uint64_t first = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 4999);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 1);
    t_pass(s, 1);
    T_TRUE(t_lease_of(s, "k", "a") == NULL);
    uint64_t second = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    T_LESS(first, second);
}

T_TEST(released_holder_is_refused_for_exactly_60_s)
{
    uint64_t first = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    t_pass(s, 10);
    (void)T_IS(t_release(s, "k", "a", first), IL_OK);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    (void)T_IS(t_acquire(s, "k", "a", .wait_ms = 5000), IL_LOST);
    t_pass(s, 59999);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    (void)T_IS(t_acquire(s, "other", "a"), IL_OK); /* only this key */
    t_pass(s, 1);
    T_LESS(first, T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence);
}

T_TEST(expired_holder_is_refused_for_60_s)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK);
    t_pass(s, 1000);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    t_pass(s, 59999);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
}

T_TEST(broken_holder_is_refused_for_60_s)
{
    uint64_t first = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", first, .flags = IL_BREAK_NOW), IL_OK);
    t_pass(s, 59999);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
}

T_TEST(a_refused_holder_does_not_disturb_the_next)
{
    uint64_t first  = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    uint64_t second = 0;

    (void)T_IS(t_release(s, "k", "a", first), IL_OK);
    second = T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence;
    (void)T_IS(t_acquire(s, "k", "a", .wait_ms = 1000), IL_LOST);
    T_EQU(T_IS(t_get(s, "k"), IL_OK)->out.fence, second);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
}

T_TEST(fences_grow_over_keys_and_holders)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < 200; i++) {
        char key[16];
        char holder[16];
        (void)snprintf(key, sizeof key, "k%u", i % 7);
        (void)snprintf(holder, sizeof holder, "h%u", i);
        uint64_t fence = T_IS(t_acquire(s, key, holder), IL_OK)->out.fence;
        T_LESS(last, fence);
        last = fence;
        (void)T_IS(t_release(s, key, holder, fence), IL_OK);
    }
}

T_TEST(fences_grow_over_a_reopen)
{
    uint64_t first = T_IS(t_acquire(s, "k", "a", .ttl_ms = 2000), IL_OK)->out.fence;

    for (unsigned i = 0; i < 5; i++) {
        t_pass(s, 2000);
        t_store_reopen(s);
        char holder[16];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        uint64_t next = T_IS(t_acquire(s, "k", holder, .ttl_ms = 2000), IL_OK)->out.fence;
        T_LESS(first, next);
        first = next;
    }
}

T_TEST(leases_survive_a_reopen)
{
    T_NEEDS(s, durable);
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000, .meta = "m"), IL_OK)->out.fence;

    t_pass(s, 1000);
    t_store_reopen(s);
    const il_op *op = T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQU(op->out.items[0].fence, fence);
    T_EQ(op->out.items[0].remaining_ms, 4000);
    T_STREQ(op->out.items[0].meta, "m");
    (void)T_IS(t_renew(s, "k", "a", fence), IL_OK);
}

T_TEST(the_end_of_a_lease_survives_a_reopen)
{
    T_NEEDS(s, durable);
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    t_store_reopen(s);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
}

T_TEST(keys_differ_by_any_byte)
{
    static const char *const keys[] = { "k", "K", "k ", "k:", "k/", "ke", "\xc3\xa9", "e\xcc\x81" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        (void)T_IS(t_acquire(s, keys[i], "a"), IL_OK);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        T_STREQ(T_IS(t_acquire(s, keys[i], "b"), IL_HELD)->out.items[0].key, keys[i]);
}

T_TEST(tenants_never_meet)
{
    uint64_t one = T_IS(t_acquire(s, "k", "a", .tenant = "one"), IL_OK)->out.fence;
    uint64_t two = T_IS(t_acquire(s, "k", "a", .tenant = "two", T_SHARED), IL_OK)->out.fence;

    T_TRUE(one != two);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
    (void)T_IS(t_release(s, "k", "a", one, .tenant = "two"), IL_STALE);
    (void)T_IS(t_renew(s, "k", "a", two, .tenant = "three"), IL_NOT_HELD);
    (void)T_IS(t_break(s, "k", one, .tenant = "two"), IL_STALE);
    (void)T_IS(t_check(s, "k", one, .tenant = "two"), IL_STALE);
    T_EQ(T_IS(t_list(s, NULL, .tenant = "one"), IL_OK)->out.n_items, 1);
    T_STREQ(T_IS(t_list(s, NULL, .tenant = "one"), IL_OK)->out.items[0].tenant, "one");
    T_EQ(T_IS(t_list(s, NULL, .tenant = "three"), IL_OK)->out.n_items, 0);
    (void)T_IS(t_release(s, "k", "a", one, .tenant = "one"), IL_OK);
    (void)T_IS(t_check(s, "k", two, .tenant = "two"), IL_OK);
}

T_TEST(a_joined_name_does_not_cross_tenants)
{
    (void)T_IS(t_acquire(s, "b:c", "h", .tenant = "a"), IL_OK);
    (void)T_IS(t_acquire(s, "c", "h", .tenant = "a:b"), IL_OK);
    (void)T_IS(t_acquire(s, ":c", "h", .tenant = "a:b"), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(grants_a_free_key),
        T_ROW(default_ttl_is_30_s),
        T_ROW(held_by_another_is_held),
        T_ROW(same_holder_renews),
        T_ROW(other_mode_or_permits_is_a_mismatch),
        T_ROW(mismatch_comes_before_closing),
        T_ROW(expiry_is_strict),
        T_ROW(released_holder_is_refused_for_exactly_60_s),
        T_ROW(expired_holder_is_refused_for_60_s),
        T_ROW(broken_holder_is_refused_for_60_s),
        T_ROW(a_refused_holder_does_not_disturb_the_next),
        T_ROW(fences_grow_over_keys_and_holders),
        T_ROW(fences_grow_over_a_reopen),
        T_ROW(leases_survive_a_reopen),
        T_ROW(the_end_of_a_lease_survives_a_reopen),
        T_ROW(keys_differ_by_any_byte),
        T_ROW(tenants_never_meet),
        T_ROW(a_joined_name_does_not_cross_tenants),
    };

    return T_SUITE("acquire", tests);
}
