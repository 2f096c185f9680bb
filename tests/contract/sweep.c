/*
 * sweep.c: recovery: what it finds, that it is bounded, and that repeating it does no harm.
 */
#include "harness/suite.h"

static void
take_many(struct t_store *s, const char *prefix, unsigned n, int64_t ttl_ms)
{
    for (unsigned i = 0; i < n; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%s%u", prefix, i);
        (void)T_IS(t_acquire(s, key, "h", .ttl_ms = ttl_ms), IL_OK);
    }
}

T_TEST(nothing_to_do)
{
    const il_op *op = T_IS(t_sweep(s), IL_OK);

    T_EQ(op->out.flags, 0);
    T_EQ(op->out.sweep.n_expired, 0);
    T_EQ(op->out.sweep.n_offered, 0);
    T_EQ(op->out.sweep.n_dropped, 0);
    T_EQ(op->out.sweep.n_deadlocks, 0);
    take_many(s, "k", 5, 60000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_expired, 0);
    T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 5);
}

T_TEST(expired_leases_end)
{
    take_many(s, "k", 5, 1000);
    take_many(s, "long", 5, 60000);
    t_pass(s, 999);
    T_EQ(t_sweep_all(s, 0).n_expired, 0);
    t_pass(s, 1);
    T_EQ(t_sweep_all(s, 0).n_expired, 5);
    T_EQ(t_sweep_all(s, 0).n_expired, 0);
    T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 5);
    (void)T_IS(t_acquire(s, "k0", "h"), IL_LOST); /* ended, and remembered */
}

T_TEST(waiters_are_offered_the_key)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 5000);
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_expired, 1);
    T_EQ(sum.n_offered, 1);
    T_EQ(t_lease_of(s, "k", "b")->state, IL_LEASE_OFFERED);
    T_LESS(fence, t_lease_of(s, "k", "b")->fence);
    /* An offer that nobody takes passes on too. */
    t_pass(s, 2000);
    sum = t_sweep_all(s, 0);
    T_EQ(sum.n_expired, 1);
    T_EQ(sum.n_offered, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
}

T_TEST(silent_waiters_are_dropped)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = IL_FOREVER), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = 3000), IL_QUEUED);
    t_pass(s, 3000);
    T_EQ(t_sweep_all(s, 0).n_dropped, 1);
    t_pass(s, 11999);
    T_EQ(t_sweep_all(s, 0).n_dropped, 0);
    t_pass(s, 1);
    T_EQ(t_sweep_all(s, 0).n_dropped, 1);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
}

T_TEST(a_dropped_writer_lets_the_readers_in)
{
    (void)T_IS(t_acquire(s, "k", "a", T_SHARED, .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 3000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "r", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 3000);
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_dropped, 1);
    T_EQ(sum.n_offered, 1);
    T_EQ(t_lease_of(s, "k", "r")->state, IL_LEASE_OFFERED);
}

T_TEST(settled_leases_close_then_end)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000, .settle_ms = 4000), IL_OK);
    t_pass(s, 1000);
    (void)t_sweep_all(s, 0);
    T_EQ(t_lease_of(s, "k", "a")->state, IL_LEASE_CLOSING);
    T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 4000);
    t_pass(s, 3999);
    (void)t_sweep_all(s, 0);
    T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 1);
    t_pass(s, 1);
    (void)t_sweep_all(s, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
}

T_TEST(memories_are_forgotten)
{
    for (unsigned i = 0; i < 10; i++) {
        char     key[16];
        uint64_t fence;
        (void)snprintf(key, sizeof key, "k%u", i);
        fence = T_IS(t_acquire(s, key, "h"), IL_OK)->out.fence;
        (void)T_IS(t_release(s, key, "h", fence), IL_OK);
    }
    t_pass(s, 59999);
    (void)t_sweep_all(s, 0);
    (void)T_IS(t_acquire(s, "k0", "h"), IL_LOST);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "k0", "h"), IL_OK); /* does not count any more, purged or not */
    (void)t_sweep_all(s, 3);
    (void)T_IS(t_acquire(s, "k1", "h"), IL_OK);
}

T_TEST(a_sweep_is_bounded)
{
    take_many(s, "k", 25, 1000);
    t_pass(s, 1000);
    unsigned n_expired = 0;
    unsigned n_sweeps  = 0;
    for (;; n_sweeps++) {
        const il_op *op = T_IS(t_sweep(s, .limit = 10), IL_OK);
        T_TRUE(op->out.sweep.n_expired <= 10);
        n_expired += op->out.sweep.n_expired;
        if ((op->out.flags & IL_OUT_MORE) == 0)
            break;
        T_TRUE(n_sweeps < 25);
    }
    T_EQ(n_expired, 25);
    T_TRUE(n_sweeps >= 2);
}

static bool
says_more(const il_op *op)
{
    return (T_IS(op, IL_OK)->out.flags & IL_OUT_MORE) != 0;
}

/* The bound may be reached with the last one: then there is no more. */
T_TEST(more_is_said_exactly_when_something_is_left)
{
    take_many(s, "k", 4, 1000);
    t_pass(s, 1000);
    T_TRUE(says_more(t_sweep(s, .limit = 3)));
    T_TRUE(!says_more(t_sweep(s, .limit = 1)));
    (void)T_IS(t_acquire(s, "w", "a", .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "w", "b", .wait_ms = 2000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "v", "a", .ttl_ms = 2000), IL_OK);
    t_pass(s, 2000);
    T_TRUE(says_more(t_sweep(s, .limit = 1))); /* a waiter is left */
    T_TRUE(!says_more(t_sweep(s, .limit = 1)));
    T_TRUE(!says_more(t_sweep(s, .limit = 1)));
}

/* What is overdue longest, then leases by key, then waiters by ticket: the same on every engine. */
T_TEST(a_sweep_has_an_order)
{
    static const struct {
        unsigned n_expired, n_dropped, n_offered;
    } passes[] = {
        { 1, 0, 0 }, /* old */
        { 0, 1, 0 }, /* old wait */
        { 1, 0, 0 }, /* a */
        { 1, 0, 1 }, /* b, which somebody waits for */
        { 0, 1, 1 }, /* wait 2, where a reader stands behind the writer */
        { 0, 1, 0 }, /* wait 1 */
    };

    (void)T_IS(t_acquire(s, "wait 1", "x", T_SHARED, .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "wait 2", "x", T_SHARED, .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "old wait", "x", .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "wait 2", "y", .wait_ms = 2000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "wait 1", "y", .wait_ms = 2000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "wait 2", "z", T_SHARED, .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "old wait", "y", .wait_ms = 1500), IL_QUEUED);
    (void)T_IS(t_acquire(s, "b", "x", .ttl_ms = 2000), IL_OK);
    (void)T_IS(t_acquire(s, "b", "y", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "a", "x", .ttl_ms = 2000), IL_OK);
    (void)T_IS(t_acquire(s, "old", "x", .ttl_ms = 1000), IL_OK);
    t_pass(s, 2000);
    for (unsigned i = 0; i < ARRAY_LEN(passes); i++) {
        const il_op *op = T_IS(t_sweep(s, .limit = 1), IL_OK);
        T_EQ((op->out.flags & IL_OUT_MORE) != 0, i + 1 < ARRAY_LEN(passes));
        T_EQ(op->out.sweep.n_expired, passes[i].n_expired);
        T_EQ(op->out.sweep.n_dropped, passes[i].n_dropped);
        T_EQ(op->out.sweep.n_offered, passes[i].n_offered);
    }
}

T_TEST(a_sweep_of_one_key_at_a_time)
{
    take_many(s, "k", 3, 1000);
    t_pass(s, 1000);
    T_EQ(t_sweep_all(s, 1).n_expired, 3);
}

T_TEST(sweep_settles_every_tenant)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000, .tenant = "one"), IL_OK);
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000, .tenant = "two"), IL_OK);
    t_pass(s, 1000);
    T_EQ(t_sweep_all(s, 0).n_expired, 2);
}

T_TEST(a_key_with_many_overdue_things_counts_once)
{
    for (unsigned i = 0; i < 20; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        (void)T_IS(t_acquire(s, "k", holder, T_SHARED, .ttl_ms = 1000), IL_OK);
    }
    t_pass(s, 1000);
    T_EQ(t_sweep_all(s, 1).n_expired, 20);
}

T_TEST(two_sweeps_in_one_batch)
{
    take_many(s, "k", 5, 1000);
    t_pass(s, 1000);
    il_op ops[2] = {
        t_op(IL_OP_SWEEP, NULL, NULL, 0, T_ARGS()),
        t_op(IL_OP_SWEEP, NULL, NULL, 0, T_ARGS()),
    };
    t_batch(s, ops, 2);
    T_EQ(ops[0].out.sweep.n_expired, 5);
    T_EQ(ops[1].out.sweep.n_expired, 0);
    il_op_release(&ops[0]);
    il_op_release(&ops[1]);
}

T_TEST(fences_grow_after_everything_was_purged)
{
    uint64_t first = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;

    t_pass(s, 1000);
    (void)t_sweep_all(s, 0);
    t_pass(s, 60000);
    (void)t_sweep_all(s, 0);
    T_LESS(first, T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(nothing_to_do),
        T_ROW(expired_leases_end),
        T_ROW(waiters_are_offered_the_key),
        T_ROW(silent_waiters_are_dropped),
        T_ROW(a_dropped_writer_lets_the_readers_in),
        T_ROW(settled_leases_close_then_end),
        T_ROW(memories_are_forgotten),
        T_ROW(a_sweep_is_bounded),
        T_ROW(more_is_said_exactly_when_something_is_left),
        T_ROW(a_sweep_has_an_order),
        T_ROW(a_sweep_of_one_key_at_a_time),
        T_ROW(sweep_settles_every_tenant),
        T_ROW(a_key_with_many_overdue_things_counts_once),
        T_ROW(two_sweeps_in_one_batch),
        T_ROW(fences_grow_after_everything_was_purged),
    };

    return T_SUITE("sweep", tests);
}
