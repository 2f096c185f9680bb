/*
 * time.c: leases and clocks: the wall clock is set, the machine restarts, boot time jumps back.
 */
#include "harness/suite.h"

#define DAY_MS INT64_C(86400000)

T_TEST(the_wall_clock_neither_frees_nor_extends)
{
    static const int64_t steps[] = { DAY_MS, -DAY_MS, -2 * DAY_MS, 3 * DAY_MS, -1, 1 };
    uint64_t             fence   = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        t_clock_set_wall(&s->clock, steps[i]);
        t_pass(s, 1000);
        T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 10000 - 1000 * (int64_t)(i + 1));
        (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
        (void)T_IS(t_check(s, "k", fence), IL_OK);
    }
    t_pass(s, 3999);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    t_clock_set_wall(&s->clock, -DAY_MS);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(the_wall_clock_does_not_touch_queue_and_memory)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 60000), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 10000), IL_QUEUED);
    t_clock_set_wall(&s->clock, DAY_MS);
    T_EQ(t_sweep_all(s, 0).n_dropped, 0);
    uint64_t offer = T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence;
    t_clock_set_wall(&s->clock, 10 * DAY_MS);
    T_EQU(T_IS(t_acquire(s, "k", "b", .wait_ms = 10000), IL_OK)->out.fence, offer);
    t_clock_set_wall(&s->clock, DAY_MS);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
    t_clock_set_wall(&s->clock, -DAY_MS);
    (void)t_sweep_all(s, 0);
    (void)T_IS(t_acquire(s, "k", "a"), IL_LOST);
}

T_TEST(fences_grow_when_the_wall_clock_goes_back)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < 4; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        uint64_t fence = T_IS(t_acquire(s, "k", holder), IL_OK)->out.fence;
        T_LESS(last, fence);
        last = fence;
        (void)T_IS(t_release(s, "k", holder, fence), IL_OK);
        t_clock_set_wall(&s->clock, -400 * DAY_MS);
        if (s->engine->durable)
            t_store_reopen(s);
    }
}

T_TEST(the_times_for_people_follow_the_wall_clock)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK);
    t_clock_set_wall(&s->clock, DAY_MS);
    t_pass(s, 1000);
    const il_lease_info *it = t_lease_of(s, "k", "a");
    T_EQ(it->acquired_at_ms, T_WALL_MS_START + DAY_MS); /* on the clock of whoever looks */
    T_EQ(it->expires_at_ms, T_WALL_MS_START + DAY_MS + 10000);
}

/* A reboot: another boot id, boot time starts at 0. What remained of a lease is not shortened. */
T_TEST(leases_continue_after_a_reboot)
{
    T_NEEDS_BOOTS(s);
    uint64_t a = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;

    t_pass(s, 4000);
    (void)T_IS(t_acquire(s, "other", "x"), IL_OK); /* the last the store saw: 6 s remain */
    t_clock_reboot(&s->clock, 3600000, 0);
    t_store_reopen(s);
    const il_op *op = T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQU(op->out.items[0].fence, a);
    T_EQ(op->out.items[0].remaining_ms, 6000);
    t_pass(s, 5999);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    (void)T_IS(t_check(s, "k", a), IL_OK);
    t_pass(s, 1);
    T_LESS(a, T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence);
}

T_TEST(a_reboot_with_a_later_boot_time)
{
    T_NEEDS_BOOTS(s);
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK);
    /* The new boot already counts days: it must not be taken for time that passed. */
    t_clock_reboot(&s->clock, 1000, T_BOOT_MS_START + 30 * DAY_MS);
    t_store_reopen(s);
    T_EQ(T_IS(t_acquire(s, "k", "b"), IL_HELD)->out.items[0].remaining_ms, 10000);
    t_pass(s, 10000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

/* The ids say that it is the same machine: then it has been up for as long as boot time says. */
T_TEST(a_reboot_of_the_same_machine_counts_from_the_boot)
{
    T_NEEDS_BOOTS(s);
    t_clock_set_boot_id(&s->clock, "first@machine");
    t_store_reopen(s);
    uint64_t a = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;

    t_clock_reboot(&s->clock, 1000, 4000);
    t_clock_set_boot_id(&s->clock, "second@machine");
    t_store_reopen(s);
    T_EQ(T_IS(t_get(s, "k"), IL_OK)->out.items[0].remaining_ms, 6000);
    T_EQ(T_IS(t_acquire(s, "k", "b"), IL_HELD)->out.items[0].remaining_ms, 6000);
    t_pass(s, 6000);
    T_LESS(a, T_IS(t_acquire(s, "k", "b"), IL_OK)->out.fence);
    t_clock_reboot(&s->clock, 1000, DAY_MS);
    t_clock_set_boot_id(&s->clock, "third@another");
    t_store_reopen(s);
    (void)T_IS(t_acquire(s, "k", "c"), IL_HELD);
}

/* The kernel is the same, so the time is, whatever each calls the machine. */
T_TEST(containers_of_one_machine_agree)
{
    T_NEEDS_BOOTS(s);
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK);
    for (unsigned i = 0; i < 10; i++) {
        t_clock_set_boot_id(&s->clock, i % 2 == 0 ? "boot@one" : "boot@two");
        t_store_reopen(s);
        (void)T_IS(t_acquire(s, "other", "x"), IL_OK); /* leaves a mark */
        t_pass(s, 100);
    }
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(many_reboots)
{
    T_NEEDS_BOOTS(s);
    uint64_t last = T_IS(t_acquire(s, "k", "a", .ttl_ms = 20000), IL_OK)->out.fence;

    for (unsigned i = 0; i < 10; i++) {
        t_pass(s, 1000);
        (void)T_IS(t_renew(s, "k", "a", last), IL_OK);
        t_clock_reboot(&s->clock, 100000, i * 7);
        t_store_reopen(s);
        T_EQ(t_lease_of(s, "k", "a")->remaining_ms, 20000);
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        T_LESS(last, T_IS(t_acquire(s, key, "a"), IL_OK)->out.fence);
    }
}

T_TEST(waiters_and_memories_continue_after_a_reboot)
{
    T_NEEDS_BOOTS(s);
    uint64_t a = T_IS(t_acquire(s, "k", "a", .ttl_ms = 60000), IL_OK)->out.fence;
    uint64_t z = T_IS(t_acquire(s, "z", "a"), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "z", "a", z), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    t_clock_reboot(&s->clock, DAY_MS, 0);
    t_store_reopen(s);
    T_EQ(T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    (void)T_IS(t_acquire(s, "z", "a"), IL_LOST);
    t_pass(s, 59999);
    (void)T_IS(t_acquire(s, "z", "a"), IL_LOST);
    t_pass(s, 1);
    (void)T_IS(t_acquire(s, "z", "a"), IL_OK);
    (void)T_IS(t_renew(s, "k", "a", a), IL_LOST);
}

/* A restored snapshot, a broken clock: the same boot id, but boot time is behind what was
 * stored. */
T_TEST(boot_time_below_the_mark)
{
    T_NEEDS_BOOTS(s);
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK);
    t_pass(s, 4000);
    (void)T_IS(t_acquire(s, "other", "x"), IL_OK);
    atomic_store(&s->clock.boot_ms, 5000);
    t_store_reopen(s);
    const il_op *op = T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_TRUE(op->out.items[0].remaining_ms >= 6000);
    T_TRUE(op->out.items[0].remaining_ms <= 10000);
    t_pass(s, 10000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

/* Reads after a reboot, before any write, must not see leases as expired either. */
T_TEST(reads_after_a_reboot)
{
    T_NEEDS_BOOTS(s);
    uint64_t a = T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK)->out.fence;

    t_clock_reboot(&s->clock, DAY_MS, 40 * DAY_MS);
    t_store_reopen(s);
    T_EQ(T_IS(t_get(s, "k"), IL_OK)->out.items[0].remaining_ms, 10000);
    (void)T_IS(t_check(s, "k", a), IL_OK);
    T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 1);
}

/* Time that passed while nobody had the store open counts: a dead holder frees its key. */
T_TEST(time_passes_while_closed)
{
    T_NEEDS(s, durable);
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK);
    t_pass(s, 9999);
    t_store_reopen(s);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    t_pass(s, 1);
    t_store_reopen(s);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

T_TEST(suspend_counts)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 10000), IL_OK);
    t_pass(s, 8 * 3600000); /* boot time counts while the machine sleeps */
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(the_wall_clock_neither_frees_nor_extends),
        T_ROW(the_wall_clock_does_not_touch_queue_and_memory),
        T_ROW(fences_grow_when_the_wall_clock_goes_back),
        T_ROW(the_times_for_people_follow_the_wall_clock),
        T_ROW(leases_continue_after_a_reboot),
        T_ROW(a_reboot_with_a_later_boot_time),
        T_ROW(a_reboot_of_the_same_machine_counts_from_the_boot),
        T_ROW(containers_of_one_machine_agree),
        T_ROW(many_reboots),
        T_ROW(waiters_and_memories_continue_after_a_reboot),
        T_ROW(boot_time_below_the_mark),
        T_ROW(reads_after_a_reboot),
        T_ROW(time_passes_while_closed),
        T_ROW(suspend_counts),
    };

    return T_SUITE("time", tests);
}
