/*
 * run_policy.c: a start whose key already has a live run: each policy, with a running run, a
 * pending one and a slot.
 */
#include "harness/run.h"
#include "harness/suite.h"

/* Ten at once, one runs, the others get its id. */
T_TEST(join_gives_the_running_one)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_OK);
    for (unsigned i = 0; i < 9; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "other%u", i);
        const il_op       *op = t_run_start(s, "k", id, id);
        const il_run_info *r  = T_RUN(op, IL_DUPLICATE, IL_RUN_RUNNING);
        T_STREQ(r->id, "r1");
        T_EQ(r->n_joined, i + 1);
        T_EQ(op->out.flags, 0);
        T_EQU(op->out.fence, r->fence);
        (void)T_IS(t_run_get(s, id), IL_NOT_FOUND);
    }
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->n_joined, 9);
    (void)T_RUN(t_run_start(s, "k", NULL, "slot", T_SLOT), IL_DUPLICATE, IL_RUN_RUNNING);
}

T_TEST(join_gives_the_oldest_pending_one)
{
    (void)T_IS(t_run_start(s, "k", NULL, "r1", T_SLOT), IL_OK);
    (void)T_IS(t_run_start(s, "k", NULL, "r2", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    const il_run_info *r = T_RUN(t_run_start(s, "k", "h", "r3"), IL_DUPLICATE, IL_RUN_PENDING);
    T_STREQ(r->id, "r1");
    T_EQ(r->n_joined, 1);
    (void)T_IS(t_run_start(s, "k", "h1", "r1"), IL_OK);
    T_STREQ(T_RUN(t_run_start(s, "k", "h", "r3"), IL_DUPLICATE, IL_RUN_RUNNING)->id, "r1");
}

T_TEST(skip_is_a_duplicate_that_is_not_counted)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_OK);
    const il_op *op = t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_SKIP);
    T_EQ(T_RUN(op, IL_DUPLICATE, IL_RUN_RUNNING)->n_joined, 0);
    T_EQ(op->out.flags, IL_OUT_SKIPPED);
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->n_joined, 0);
}

T_TEST(reject_is_held)
{
    uint64_t     fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;
    const il_op *op    = t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_REJECT);

    T_STREQ(T_RUN(op, IL_HELD, IL_RUN_RUNNING)->id, "r1");
    T_EQ(op->out.n_items, 1);
    T_STREQ(op->out.items[0].holder, "h");
    T_EQU(op->out.fence, fence);
    (void)T_RUN(t_run_start(s, "k", NULL, "r2", T_SLOT, .policy = IL_POLICY_REJECT), IL_HELD,
                IL_RUN_RUNNING);
    /* A slot has no lease. */
    (void)T_IS(t_run_start(s, "k2", NULL, "slot", T_SLOT), IL_OK);
    op = t_run_start(s, "k2", "h2", "r3", .policy = IL_POLICY_REJECT);
    T_STREQ(T_RUN(op, IL_HELD, IL_RUN_PENDING)->id, "slot");
    T_EQ(op->out.n_items, 0);
    T_EQU(op->out.fence, 0);
}

T_TEST(queue_is_first_in_first_out)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h1", "r1"), IL_OK)->out.fence;

    for (unsigned i = 2; i <= 4; i++) {
        char id[16], holder[16];
        (void)snprintf(id, sizeof id, "r%u", i);
        (void)snprintf(holder, sizeof holder, "h%u", i);
        const il_op *op = t_run_start(s, "k", holder, id, .policy = IL_POLICY_QUEUE);
        T_EQ(T_RUN(op, IL_QUEUED, IL_RUN_PENDING)->position, i - 1);
        T_EQ(op->out.position, i - 1);
        T_EQ(op->out.remaining_ms, IL_FOREVER); /* by default */
    }
    t_run_invariants(s, NULL);
    for (unsigned i = 2; i <= 4; i++) {
        char id[16], holder[16], before[16], before_holder[16];
        (void)snprintf(id, sizeof id, "r%u", i);
        (void)snprintf(holder, sizeof holder, "h%u", i);
        (void)snprintf(before, sizeof before, "r%u", i - 1);
        (void)snprintf(before_holder, sizeof before_holder, "h%u", i - 1);
        (void)T_IS(t_run_finish(s, before, before_holder, fence, IL_RUN_COMPLETED), IL_OK);
        const il_op *op = t_run_start(s, "k", holder, id, .policy = IL_POLICY_QUEUE);
        (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
        T_LESS(fence, op->out.fence);
        fence = op->out.fence;
        t_run_invariants(s, NULL);
    }
}

T_TEST(queue_has_a_limit)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE, .queue_max = 2),
               IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", NULL, "r3", T_SLOT, .policy = IL_POLICY_QUEUE, .queue_max = 2),
               IL_OK);
    const il_op *op =
        T_IS(t_run_start(s, "k", "h4", "r4", .policy = IL_POLICY_QUEUE, .queue_max = 2), IL_LIMIT);
    T_STREQ(op->out.detail, "the queue of the key is full: 2 runs are pending");
    T_EQ(op->out.n_runs, 0);
    (void)T_IS(t_run_get(s, "r4"), IL_NOT_FOUND);
    (void)T_IS(t_run_start(s, "k", NULL, "r4", T_SLOT, .policy = IL_POLICY_QUEUE, .queue_max = 2),
               IL_LIMIT);
    /* One that is queued already is not counted against itself. */
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE, .queue_max = 1),
               IL_QUEUED);
    (void)T_IS(t_run_cancel(s, "r2", "x"), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h4", "r4", .policy = IL_POLICY_QUEUE, .queue_max = 2),
               IL_QUEUED);
}

T_TEST(queue_has_a_limit_by_default)
{
    (void)T_IS(t_run_start(s, "k", "h", "r"), IL_OK);
    for (unsigned i = 0; i < 101; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "r%u", i);
        const il_op *op = t_run_start(s, "k", NULL, id, T_SLOT, .policy = IL_POLICY_QUEUE);
        (void)T_IS(op, i < 100 ? IL_OK : IL_LIMIT);
    }
}

/* A slot holds nothing, so a start that would wait behind slots alone need not wait. */
T_TEST(queue_behind_a_slot_alone_does_not_wait)
{
    (void)T_IS(t_run_start(s, "k", NULL, "slot", T_SLOT), IL_OK);
    (void)T_RUN(t_run_start(s, "k", "h", "r1", .policy = IL_POLICY_QUEUE), IL_OK, IL_RUN_RUNNING);
    T_STREQ(T_RUN(t_run_start(s, "k", "h2", "slot"), IL_HELD, IL_RUN_RUNNING)->id, "r1");
    t_run_invariants(s, NULL);
}

/* ---- replace-pending, cancel-running --------------------------------------------------------- */

/* One running, one that waits, one slot. */
static uint64_t
set_up(struct t_store *s)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "running"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "hw", "waits", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", NULL, "slot", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    return fence;
}

static void
are_replaced(struct t_store *s, const char *by)
{
    char text[80];

    (void)snprintf(text, sizeof text, "replaced by run %s", by);
    T_STREQ(T_RUN_NOW(s, "waits", IL_RUN_CANCELLED)->error, text);
    T_STREQ(T_RUN_NOW(s, "slot", IL_RUN_CANCELLED)->error, text);
    T_TRUE(t_waiter_of(s, "k", "hw") == NULL);
    /* Whoever waited is told by its own start. */
    (void)T_RUN(t_run_start(s, "k", "hw", "waits", .policy = IL_POLICY_QUEUE), IL_STATE,
                IL_RUN_CANCELLED);
}

T_TEST(replace_pending_takes_their_place)
{
    uint64_t     fence = set_up(s);
    const il_op *op    = t_run_start(s, "k", "hn", "new", .policy = IL_POLICY_REPLACE_PENDING);

    T_EQ(T_RUN(op, IL_QUEUED, IL_RUN_PENDING)->position, 1);
    T_EQ(op->out.position, 1);
    are_replaced(s, "new");
    const il_run_info *r = T_RUN_NOW(s, "running", IL_RUN_RUNNING);
    T_EQ(r->cancelled, 0);
    T_STREQ(r->error, "");
    (void)T_IS(t_run_finish(s, "running", "h", fence, IL_RUN_COMPLETED), IL_OK);
    (void)T_RUN(t_run_start(s, "k", "hn", "new"), IL_OK, IL_RUN_RUNNING);
    t_run_invariants(s, NULL);
}

T_TEST(a_slot_may_replace)
{
    (void)set_up(s);
    (void)T_RUN(t_run_start(s, "k", NULL, "new", T_SLOT, .policy = IL_POLICY_CANCEL_RUNNING), IL_OK,
                IL_RUN_PENDING);
    are_replaced(s, "new");
    T_STREQ(T_RUN_NOW(s, "running", IL_RUN_RUNNING)->error, "replaced by run new");
}

/* The one that is replaced had been offered the key: then the new one has it. */
T_TEST(replace_pending_takes_an_offer)
{
    uint64_t fence = set_up(s);

    (void)T_IS(t_run_finish(s, "running", "h", fence, IL_RUN_COMPLETED), IL_OK);
    T_EQ(t_lease_of(s, "k", "hw")->state, IL_LEASE_OFFERED);
    const il_op *op =
        t_run_start(s, "k", "hn", "new", .policy = IL_POLICY_REPLACE_PENDING, .ttl_ms = 5000);
    const il_run_info *r = T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(op->out.remaining_ms, 5000);
    T_EQ(r->remaining_ms, 5000);
    T_EQU(r->fence, op->out.fence);
    are_replaced(s, "new");
    t_run_invariants(s, NULL);
}

/* Plain waiters keep their place. */
T_TEST(replace_pending_lets_others_be)
{
    uint64_t fence = set_up(s);

    (void)T_IS(t_acquire(s, "k", "plain", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_run_finish(s, "running", "h", fence, IL_RUN_COMPLETED), IL_OK);
    const il_op *op = t_run_start(s, "k", "hn", "new", .policy = IL_POLICY_REPLACE_PENDING);
    (void)T_RUN(op, IL_QUEUED, IL_RUN_PENDING);
    T_EQ(op->out.position, 1);
    T_EQ(t_lease_of(s, "k", "plain")->state, IL_LEASE_OFFERED);
    are_replaced(s, "new");
}

T_TEST(replace_pending_of_slots_alone_has_the_key)
{
    (void)T_IS(t_run_start(s, "k", NULL, "slot", T_SLOT), IL_OK);
    (void)T_RUN(t_run_start(s, "k", "h", "new", .policy = IL_POLICY_REPLACE_PENDING), IL_OK,
                IL_RUN_RUNNING);
    T_STREQ(T_RUN_NOW(s, "slot", IL_RUN_CANCELLED)->error, "replaced by run new");
}

T_TEST(cancel_running_asks_for_a_stop)
{
    uint64_t     fence = set_up(s);
    const il_op *op    = t_run_start(s, "k", "hn", "new", .policy = IL_POLICY_CANCEL_RUNNING);

    (void)T_RUN(op, IL_QUEUED, IL_RUN_PENDING);
    are_replaced(s, "new");
    const il_run_info *r = T_RUN_NOW(s, "running", IL_RUN_RUNNING);
    T_EQ(r->cancelled, 1);
    T_STREQ(r->error, "replaced by run new");
    op = T_IS(t_renew(s, "k", "h", fence), IL_OK);
    T_EQ(op->out.flags, IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "replaced by run new");
    /* A third one: the first reason stays. */
    (void)T_IS(t_run_start(s, "k", "h3", "third", .policy = IL_POLICY_CANCEL_RUNNING), IL_QUEUED);
    T_STREQ(T_RUN_NOW(s, "running", IL_RUN_RUNNING)->error, "replaced by run new");
    T_STREQ(T_RUN_NOW(s, "new", IL_RUN_CANCELLED)->error, "replaced by run third");
    (void)T_RUN(t_run_finish(s, "running", "h", fence, IL_RUN_FAILED), IL_OK, IL_RUN_CANCELLED);
    (void)T_RUN(t_run_start(s, "k", "h3", "third"), IL_OK, IL_RUN_RUNNING);
    t_run_invariants(s, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------- */

T_TEST(a_wait_has_a_deadline)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 60000), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE, .wait_ms = 5000),
               IL_QUEUED);
    t_pass(s, 4999);
    (void)T_RUN_NOW(s, "r2", IL_RUN_PENDING);
    t_pass(s, 1);
    /* as it will end */
    T_STREQ(T_RUN_NOW(s, "r2", IL_RUN_CANCELLED)->error, "timed out while waiting");
    T_STREQ(T_RUN(t_run_start(s, "k", "h2", "r2"), IL_STATE, IL_RUN_CANCELLED)->error,
            "timed out while waiting");
    T_TRUE(t_waiter_of(s, "k", "h2") == NULL);
}

T_TEST(a_waiter_gives_signs_of_life)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 60000), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    t_pass(s, 14000);
    (void)T_IS(t_run_start(s, "k", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    t_pass(s, 1000);
    T_EQ(T_RUN_NOW(s, "r3", IL_RUN_PENDING)->position, 1); /* the one ahead is as good as gone */
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_dropped, 1);
    T_EQ(sum.n_runs, 1);
    T_STREQ(T_RUN_NOW(s, "r2", IL_RUN_FAILED)->error,
            "did not take its turn - worker may have crashed");
    (void)T_RUN_NOW(s, "r3", IL_RUN_PENDING);
}

T_TEST(an_offer_is_not_kept_for_ever)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    t_pass(s, 2000);
    const il_run_info *r = T_RUN_NOW(s, "r2", IL_RUN_FAILED);
    T_STREQ(r->error, "did not take its turn - worker may have crashed");
    T_EQU(r->fence, 0);
    T_EQ(r->started_at_ms, 0);
    /* Somebody else's start settles the key. */
    (void)T_RUN(t_run_start(s, "k", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_OK, IL_RUN_RUNNING);
    r = T_RUN_NOW(s, "r2", IL_RUN_FAILED);
    T_EQU(r->fence, 0);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_STATE, IL_RUN_FAILED);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(join_gives_the_running_one),
        T_ROW(join_gives_the_oldest_pending_one),
        T_ROW(skip_is_a_duplicate_that_is_not_counted),
        T_ROW(reject_is_held),
        T_ROW(queue_is_first_in_first_out),
        T_ROW(queue_has_a_limit),
        T_ROW(queue_has_a_limit_by_default),
        T_ROW(queue_behind_a_slot_alone_does_not_wait),
        T_ROW(replace_pending_takes_their_place),
        T_ROW(a_slot_may_replace),
        T_ROW(replace_pending_takes_an_offer),
        T_ROW(replace_pending_lets_others_be),
        T_ROW(replace_pending_of_slots_alone_has_the_key),
        T_ROW(cancel_running_asks_for_a_stop),
        T_ROW(a_wait_has_a_deadline),
        T_ROW(a_waiter_gives_signs_of_life),
        T_ROW(an_offer_is_not_kept_for_ever),
    };

    return T_SUITE("run_policy", tests);
}
