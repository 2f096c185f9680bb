/*
 * waiters.c: waiters: tickets, positions, offers of 2 s, keep-alives, deadlines; first in, first
 * out.
 */
#include "harness/suite.h"

/* `a` holds k; then each of the holders queues. */
static uint64_t
hold_and_queue(struct t_store *s, const char *const *holders, size_t n)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK)->out.fence;

    for (size_t i = 0; i < n; i++) {
        const il_op *op = T_IS(t_acquire(s, "k", holders[i], .wait_ms = 60000), IL_QUEUED);
        T_EQ(op->out.position, i + 1);
    }
    return fence;
}

static const char *const bcd[] = { "b", "c", "d" };

T_TEST(a_wait_is_queued)
{
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    const il_op *one = T_IS(t_acquire(s, "k", "b", .wait_ms = 9000), IL_QUEUED);
    T_EQ(one->out.position, 1);
    T_EQ(one->out.remaining_ms, 9000);
    T_TRUE(one->out.ticket > 0);
    const il_op *two = T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_QUEUED);
    T_EQ(two->out.position, 2);
    T_EQ(two->out.remaining_ms, IL_FOREVER);
    T_LESS(one->out.ticket, two->out.ticket);
    T_EQ(t_lease_of(s, "k", "a")->n_waiters, 2);
}

T_TEST(a_waiter_is_shown)
{
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    uint64_t ticket = T_IS(t_acquire(s, "k", "b", .wait_ms = 9000, .ttl_ms = 4000, .meta = "m",
                                     .place = "p", T_PERMITS(3)),
                           IL_QUEUED)
                          ->out.ticket;
    t_pass(s, 2000);
    const il_lease_info *it = t_waiter_of(s, "k", "b");
    T_TRUE(it != NULL);
    T_EQ(it->state, IL_LEASE_WAITING);
    T_EQU(it->ticket, ticket);
    T_EQU(it->fence, 0);
    T_EQ(it->mode, IL_MODE_PERMIT);
    T_EQ(it->permits, 3);
    T_EQ(it->ttl_ms, 4000);
    T_EQ(it->age_ms, 2000);
    T_EQ(it->renewed_ms, 2000);
    T_EQ(it->remaining_ms, 7000);
    T_STREQ(it->meta, "m");
    T_STREQ(it->place, "p");
    T_EQ(it->n_waiters, 1);
    T_EQ(t_count(s, "k", 0), 1); /* not among the leases */
}

T_TEST(repeating_keeps_the_ticket)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 60000), IL_OK);
    uint64_t ticket = T_IS(t_acquire(s, "k", "b", .wait_ms = 9000), IL_QUEUED)->out.ticket;
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = 9000), IL_QUEUED);
    for (unsigned i = 0; i < 5; i++) {
        t_pass(s, 4000);
        (void)T_IS(t_acquire(s, "k", "c", .wait_ms = 9000), IL_QUEUED);
        const il_op *op = T_IS(t_acquire(s, "k", "b", .wait_ms = 9000), IL_QUEUED);
        T_EQU(op->out.ticket, ticket);
        T_EQ(op->out.position, 1);
        T_EQ(op->out.remaining_ms, 9000); /* deadline = now + wait */
    }
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 2);
}

T_TEST(release_offers_to_the_head)
{
    uint64_t     fence = hold_and_queue(s, bcd, 3);
    uint64_t     offer = T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence;
    const il_op *op    = T_IS(t_get(s, "k"), IL_OK);

    T_LESS(fence, offer);
    T_EQ(op->out.n_items, 1);
    T_EQ(op->out.items[0].state, IL_LEASE_OFFERED);
    T_STREQ(op->out.items[0].holder, "b");
    T_EQU(op->out.items[0].fence, offer);
    T_EQ(op->out.items[0].remaining_ms, 2000);
    T_EQ(op->out.items[0].n_waiters, 2);
    (void)T_IS(t_check(s, "k", offer), IL_STALE); /* not confirmed: not usable */
    (void)T_IS(t_renew(s, "k", "b", offer), IL_LOST);
    T_TRUE(t_waiter_of(s, "k", "b") == NULL); /* a lease now, not both */
    /* Nobody passes: neither the next in the queue nor a newcomer. */
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    (void)T_IS(t_acquire(s, "k", "e"), IL_HELD);
    t_pass(s, 1999);
    op = T_IS(t_acquire(s, "k", "b", .wait_ms = 60000, .ttl_ms = 8000), IL_OK);
    T_EQU(op->out.fence, offer);
    T_EQ(op->out.remaining_ms, 8000);
    T_EQ(op->out.flags & IL_OUT_RENEWED, 0);
    T_EQ(t_lease_of(s, "k", "b")->state, IL_LEASE_HELD);
    (void)T_IS(t_check(s, "k", offer), IL_OK);
}

T_TEST(first_in_first_out)
{
    uint64_t    last = hold_and_queue(s, bcd, 3);
    const char *prev = "a";

    for (size_t i = 0; i < 3; i++) {
        (void)T_IS(t_release(s, "k", prev, last), IL_OK);
        for (size_t j = i + 1; j < 3; j++) /* the others ask first, in the wrong order */
            T_EQ(T_IS(t_acquire(s, "k", bcd[j], .wait_ms = 60000), IL_QUEUED)->out.position, j - i);
        uint64_t fence = T_IS(t_acquire(s, "k", bcd[i], .wait_ms = 60000), IL_OK)->out.fence;
        T_LESS(last, fence);
        last = fence;
        prev = bcd[i];
    }
    T_EQU(T_IS(t_release(s, "k", prev, last), IL_OK)->out.fence, 0);
}

T_TEST(an_offer_of_a_short_ttl_is_short)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000, .ttl_ms = 1000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    T_EQ(t_lease_of(s, "k", "b")->remaining_ms, 1000);
}

T_TEST(an_unconfirmed_offer_passes_on_after_2_s)
{
    uint64_t fence = hold_and_queue(s, bcd, 3);
    uint64_t offer = T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence;

    t_pass(s, 1999);
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    t_pass(s, 1);
    const il_op *op = T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_OK);
    T_LESS(offer, op->out.fence);
    /* The one who slept never had it: it may queue again, behind the others. */
    (void)T_IS(t_release(s, "k", "b", offer), IL_HELD);
    (void)T_IS(t_renew(s, "k", "b", offer), IL_HELD);
    T_EQ(T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED)->out.position, 2);
}

T_TEST(an_offer_can_be_turned_down)
{
    uint64_t fence = hold_and_queue(s, bcd, 2);
    uint64_t offer = T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence;
    uint64_t next  = T_IS(t_release(s, "k", "b", offer), IL_OK)->out.fence;

    T_LESS(offer, next);
    T_EQU(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_OK)->out.fence, next);
    (void)T_IS(t_release(s, "k", "b", offer), IL_OK); /* repeated */
}

T_TEST(expiry_gives_the_key_on)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 4999);
    T_EQ(T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    t_pass(s, 1);
    T_LESS(fence, T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_OK)->out.fence);
    (void)T_IS(t_renew(s, "k", "a", fence), IL_LOST);
}

T_TEST(somebody_elses_op_offers_too)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 5000);
    /* A newcomer that does not wait settles the key: it belongs to b now. */
    T_STREQ(T_IS(t_acquire(s, "k", "z"), IL_HELD)->out.items[0].holder, "b");
    T_EQ(t_lease_of(s, "k", "b")->state, IL_LEASE_OFFERED);
    T_EQ(t_lease_of(s, "k", "b")->remaining_ms, 2000); /* from now, not from the expiry */
}

T_TEST(wait_0_leaves_the_queue)
{
    (void)hold_and_queue(s, bcd, 3);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_TRUE(t_waiter_of(s, "k", "b") == NULL);
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    /* Who comes back stands at the end. */
    T_EQ(T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED)->out.position, 3);
}

T_TEST(a_waiter_leaves_at_its_deadline)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 60000), IL_OK);
    uint64_t old = T_IS(t_acquire(s, "k", "b", .wait_ms = 3000), IL_QUEUED)->out.ticket;
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 2999);
    T_TRUE(t_waiter_of(s, "k", "b") != NULL);
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED)->out.position, 2);
    t_pass(s, 1);
    T_TRUE(t_waiter_of(s, "k", "b") == NULL); /* shown as gone, by a read that changes nothing */
    T_EQ(t_lease_of(s, "k", "a")->n_waiters, 1);
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    const il_op *op = T_IS(t_acquire(s, "k", "b", .wait_ms = 3000), IL_QUEUED);
    T_EQ(op->out.position, 2);
    T_LESS(old, op->out.ticket);
}

T_TEST(a_silent_waiter_is_dropped_after_15_s)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = IL_FOREVER), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_QUEUED);
    t_pass(s, 14999);
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_QUEUED)->out.position, 2);
    t_pass(s, 1);
    T_TRUE(t_waiter_of(s, "k", "b") == NULL);
    T_EQ(T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_QUEUED)->out.position, 1);
}

T_TEST(a_sign_of_life_keeps_a_waiter)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK);
    uint64_t ticket = T_IS(t_acquire(s, "k", "b", .wait_ms = IL_FOREVER), IL_QUEUED)->out.ticket;
    for (unsigned i = 0; i < 20; i++) {
        t_pass(s, 14999);
        T_EQ(t_waiter_of(s, "k", "b")->renewed_ms, 14999);
        T_EQU(T_IS(t_acquire(s, "k", "b", .wait_ms = IL_FOREVER), IL_QUEUED)->out.ticket, ticket);
        T_EQ(t_waiter_of(s, "k", "b")->renewed_ms, 0);
    }
}

T_TEST(a_dead_head_does_not_block_the_rest)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 20000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 1000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_QUEUED);
    t_pass(s, 10000);
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_QUEUED);
    t_pass(s, 10000);
    (void)T_IS(t_acquire(s, "k", "c", .wait_ms = IL_FOREVER), IL_OK);
}

T_TEST(dead_waiters_are_never_offered)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 60000), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 1000), IL_QUEUED);
    t_pass(s, 1000);
    T_EQU(T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    (void)T_IS(t_acquire(s, "k", "c"), IL_OK);
}

T_TEST(another_mode_while_waiting_is_a_mismatch)
{
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    uint64_t ticket = T_IS(t_acquire(s, "k", "b", .wait_ms = 9000), IL_QUEUED)->out.ticket;
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 9000, T_SHARED), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 9000, T_PERMITS(2)), IL_MISMATCH);
    T_EQU(t_waiter_of(s, "k", "b")->ticket, ticket); /* the waiter stays */
}

T_TEST(nobody_passes_the_queue_of_a_free_key)
{
    /* The key is free for a moment only on paper: the queue goes first. */
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    t_pass(s, 1000);
    T_EQ(T_IS(t_acquire(s, "k", "z", .wait_ms = 60000), IL_QUEUED)->out.position, 1);
    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_OK);
}

T_TEST(waiters_survive_a_reopen)
{
    T_NEEDS(s, durable);
    uint64_t fence = hold_and_queue(s, bcd, 3);

    t_store_reopen(s);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 3);
    uint64_t offer = T_IS(t_release(s, "k", "a", fence), IL_OK)->out.fence;
    t_store_reopen(s);
    T_EQU(T_IS(t_acquire(s, "k", "b", .wait_ms = 1000), IL_OK)->out.fence, offer);
}

T_TEST(a_waiter_that_asks_again_with_other_numbers)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000, .ttl_ms = 9000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    T_EQ(T_IS(t_acquire(s, "k", "b", .ttl_ms = 4000), IL_OK)->out.remaining_ms, 4000);
}

/* ---- long queues: an engine need not read all of one ----------------------------------------- */

#define MANY 40

/* Holders of a long queue, and what they ask for. */
static const char *
waiter(int i)
{
    static char names[MANY][8];

    (void)snprintf(names[i], sizeof names[i], "w%02d", i);
    return names[i];
}

static void
is_at(struct t_store *s, int i, uint32_t position)
{
    T_EQ(T_IS(t_acquire(s, "k", waiter(i), .wait_ms = 600000), IL_QUEUED)->out.position, position);
}

T_TEST(places_in_a_long_queue)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK)->out.fence;

    for (int i = 0; i < MANY; i++)
        is_at(s, i, (uint32_t)i + 1);
    is_at(s, 20, 21);
    is_at(s, 5, 6);
    is_at(s, 39, 40);
    T_EQ(T_IS(t_acquire(s, "k", "x"), IL_HELD)->out.items[0].n_waiters, MANY);
    (void)T_IS(t_acquire(s, "k", waiter(20), .wait_ms = 600000, T_SHARED), IL_MISMATCH);
    (void)T_IS(t_acquire(s, "k", waiter(10)), IL_HELD); /* it leaves, from the middle */
    is_at(s, 9, 10);
    is_at(s, 11, 11);
    is_at(s, 39, 39);
    T_EQ(T_IS(t_acquire(s, "k", "x"), IL_HELD)->out.items[0].n_waiters, MANY - 1);
    /* Two give no sign of life. */
    t_pass(s, 10000);
    for (int i = 0; i < MANY; i++) {
        if (i != 7 && i != 30 && i != 10)
            is_at(s, i, (uint32_t)(i < 10 ? i + 1 : i));
    }
    t_pass(s, 5000);
    is_at(s, 39, 37);
    is_at(s, 31, 29);
    is_at(s, 6, 7);
    is_at(s, 8, 8);
    is_at(s, 7, 38); /* it comes back, as a new one */
    T_EQ(t_lease_of(s, "k", "a")->n_waiters, MANY - 2);
    /* The others get the key one by one, in their order. */
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    for (int i = 0; i < MANY; i++) {
        if (i == 7 || i == 30 || i == 10)
            continue;
        fence = T_IS(t_acquire(s, "k", waiter(i), .wait_ms = 600000), IL_OK)->out.fence;
        (void)T_IS(t_release(s, "k", waiter(i), fence), IL_OK);
    }
    (void)T_IS(t_acquire(s, "k", waiter(7), .wait_ms = 600000), IL_OK);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
}

/* As many as are compatible, and nobody else. */
T_TEST(many_pass_at_once)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK)->out.fence;

    for (int i = 0; i < MANY; i++)
        T_EQ(T_IS(t_acquire(s, "k", waiter(i), .wait_ms = 600000,
                            .mode = i == 30 ? IL_MODE_EXCLUSIVE : IL_MODE_SHARED),
                  IL_QUEUED)
                 ->out.position,
             i + 1);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    T_EQ(t_count(s, "k", 0), 30);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), MANY - 30);
    for (int i = 0; i < 30; i++)
        (void)T_IS(t_acquire(s, "k", waiter(i), .wait_ms = 600000, T_SHARED), IL_OK);
    T_EQ(T_IS(t_acquire(s, "k", waiter(39), .wait_ms = 600000, T_SHARED), IL_QUEUED)->out.position,
         10);
    /* it leaves, and lets those behind it pass */
    (void)T_IS(t_acquire(s, "k", waiter(30)), IL_HELD);
    T_EQ(t_count(s, "k", 0), MANY - 1);
    T_EQ(t_count(s, "k", IL_LIST_WAITERS), 0);
}

/* In one batch, among others: places are those of the moment. */
T_TEST(a_batch_joins_a_long_queue)
{
    il_op ops[MANY + 3];

    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 3600000), IL_OK);
    (void)T_IS(t_acquire(s, "l", "a", .ttl_ms = 3600000), IL_OK);
    for (int i = 0; i < MANY; i++)
        ops[i] = t_op(IL_OP_ACQUIRE, i == 20 ? "l" : "k", waiter(i), 0, T_ARGS(.wait_ms = 600000));
    ops[MANY]     = t_op(IL_OP_ACQUIRE, "k", waiter(3), 0, T_ARGS(.ttl_ms = 0)); /* leaves */
    ops[MANY + 1] = t_op(IL_OP_ACQUIRE, "k", waiter(39), 0, T_ARGS(.wait_ms = 600000));
    ops[MANY + 2] = t_op(IL_OP_ACQUIRE, "k", waiter(2), 0, T_ARGS(.wait_ms = 600000));
    t_batch(s, ops, ARRAY_LEN(ops));
    for (int i = 0; i < MANY; i++)
        T_EQ(T_IS(&ops[i], IL_QUEUED)->out.position, i == 20 ? 1 : i < 20 ? i + 1 : i);
    (void)T_IS(&ops[MANY], IL_HELD);
    T_EQ(T_IS(&ops[MANY + 1], IL_QUEUED)->out.position, MANY - 2);
    T_EQ(T_IS(&ops[MANY + 2], IL_QUEUED)->out.position, 3);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        il_op_release(&ops[i]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_wait_is_queued),
        T_ROW(a_waiter_is_shown),
        T_ROW(repeating_keeps_the_ticket),
        T_ROW(release_offers_to_the_head),
        T_ROW(first_in_first_out),
        T_ROW(an_offer_of_a_short_ttl_is_short),
        T_ROW(an_unconfirmed_offer_passes_on_after_2_s),
        T_ROW(an_offer_can_be_turned_down),
        T_ROW(expiry_gives_the_key_on),
        T_ROW(somebody_elses_op_offers_too),
        T_ROW(wait_0_leaves_the_queue),
        T_ROW(a_waiter_leaves_at_its_deadline),
        T_ROW(a_silent_waiter_is_dropped_after_15_s),
        T_ROW(a_sign_of_life_keeps_a_waiter),
        T_ROW(a_dead_head_does_not_block_the_rest),
        T_ROW(dead_waiters_are_never_offered),
        T_ROW(another_mode_while_waiting_is_a_mismatch),
        T_ROW(nobody_passes_the_queue_of_a_free_key),
        T_ROW(waiters_survive_a_reopen),
        T_ROW(a_waiter_that_asks_again_with_other_numbers),
        T_ROW(places_in_a_long_queue),
        T_ROW(many_pass_at_once),
        T_ROW(a_batch_joins_a_long_queue),
    };

    return T_SUITE("waiters", tests);
}
