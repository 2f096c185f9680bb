/*
 * run_start.c: every row of the start table in src/core/runs.md except those of the policies: an
 * existing run, and a new one whose key is free or held by something else. Also slots.
 */
#include "harness/run.h"
#include "harness/suite.h"

/* Found from the very moment it was started. */
T_TEST(a_start_is_a_run_and_a_lease)
{
    const il_op       *op = t_run_start(s, "k", "h", "r1", .ttl_ms = 5000, .trigger = "manual",
                                        .by = "me", .meta = "{}", .place = "here");
    const il_run_info *r  = T_RUN(op, IL_OK, IL_RUN_RUNNING);

    T_LESS(0, op->out.fence);
    T_EQU(r->fence, op->out.fence);
    T_EQ(op->out.remaining_ms, 5000);
    T_EQ(op->out.flags, 0);
    T_STREQ(r->tenant, "default");
    T_STREQ(r->id, "r1");
    T_STREQ(r->key, "k");
    T_STREQ(r->holder, "h");
    T_STREQ(r->trigger, "manual");
    T_STREQ(r->by, "me");
    T_STREQ(r->meta, "{}");
    T_STREQ(r->stage, "");
    T_STREQ(r->error, "");
    T_EQ(r->progress, -1);
    T_EQ(r->ttl_ms, 5000);
    T_EQ(r->remaining_ms, 5000);
    T_EQ(r->position, 0);
    T_EQ(r->n_joined, 0);
    T_EQ(r->cancelled, 0);
    T_TRUE(r->seq > 0 && r->created_at_ms != 0 && r->ended_at_ms == 0);
    T_EQ(r->started_at_ms, r->created_at_ms);
    T_EQ(r->updated_at_ms, r->created_at_ms);
    const il_lease_info *l = t_lease_of(s, "k", "h");
    T_EQU(l->fence, op->out.fence);
    T_EQ(l->state, IL_LEASE_HELD);
    T_EQ(l->mode, IL_MODE_EXCLUSIVE);
    T_STREQ(l->meta, "{}");
    T_STREQ(l->place, "here");
    t_pass(s, 1000);
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->remaining_ms, 4000);
    t_run_invariants(s, NULL);
}

T_TEST(an_id_with_another_key_is_a_mismatch)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_OK);
    const il_op *op = t_run_start(s, "other", "h", "r1");
    T_STREQ(T_RUN(op, IL_MISMATCH, IL_RUN_RUNNING)->key, "k");
    T_STREQ(op->out.detail, "the run already exists with key 'k'");
    (void)T_IS(t_get(s, "other"), IL_NOT_HELD);
    (void)T_RUN(t_run_start(s, "other", NULL, "r1", T_SLOT), IL_MISMATCH, IL_RUN_RUNNING);
}

T_TEST(an_id_that_has_ended_is_told_how)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED, .error = "exit 3"), IL_OK);
    const il_op *op = t_run_start(s, "k", "h", "r1");
    T_STREQ(T_RUN(op, IL_STATE, IL_RUN_FAILED)->error, "exit 3");
    T_STREQ(op->out.detail, "the run has already ended as FAILED: exit 3");
    (void)T_RUN(t_run_start(s, "k", "h2", "r1"), IL_STATE, IL_RUN_FAILED);
    (void)T_RUN(t_run_start(s, "k", NULL, "r1", T_SLOT), IL_STATE, IL_RUN_FAILED);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
}

/* An unknown outcome: repeating a start is an acquire repeated. */
T_TEST(a_repeated_start_renews)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 3000);
    const il_op       *op = t_run_start(s, "k", "h", "r1", .ttl_ms = 8000);
    const il_run_info *r  = T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQU(op->out.fence, fence);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQ(op->out.remaining_ms, 8000);
    T_EQ(r->remaining_ms, 8000);
    T_EQ(r->ttl_ms, 8000);
    t_run_invariants(s, NULL);
}

T_TEST(a_repeated_start_is_told_to_stop)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_RUN(t_run_cancel(s, "r1", "enough"), IL_OK, IL_RUN_RUNNING);
    const il_op *op = t_run_start(s, "k", "h", "r1");
    (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQU(op->out.fence, fence);
    T_EQ(op->out.flags, IL_OUT_RENEWED | IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "enough");
}

T_TEST(another_holder_is_a_duplicate)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_OK);
    const il_op *op = t_run_start(s, "k", "h2", "r1", .policy = IL_POLICY_REJECT);
    T_STREQ(T_RUN(op, IL_DUPLICATE, IL_RUN_RUNNING)->holder, "h");
    T_EQ(op->out.flags, 0);
    /* The same for one that waits. */
    (void)T_IS(t_run_start(s, "k", "h3", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_RUN(t_run_start(s, "k", "h4", "r2"), IL_DUPLICATE, IL_RUN_PENDING);
    (void)T_RUN(t_run_start(s, "k", NULL, "r1", T_SLOT), IL_DUPLICATE, IL_RUN_RUNNING);
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->n_joined, 0);
}

T_TEST(a_broken_run_is_lost_to_its_holder)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", fence), IL_OK);
    const il_op *op = t_run_start(s, "k", "h", "r1");
    T_STREQ(T_RUN(op, IL_LOST, IL_RUN_RUNNING)->error, "broken: test");
    T_HAS(op->out.detail, "test");
}

T_TEST(an_offer_is_confirmed_by_the_start)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    const il_op *op = t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE, .wait_ms = 60000,
                                  .ttl_ms = 5000);
    const il_run_info *r = T_RUN(op, IL_QUEUED, IL_RUN_PENDING);
    T_EQ(op->out.position, 1);
    T_EQ(op->out.remaining_ms, 60000);
    T_LESS(0, op->out.ticket);
    T_EQU(op->out.fence, 0);
    T_EQ(r->position, 1);
    T_STREQ(r->holder, "h2");
    T_EQ(r->started_at_ms, 0);
    t_pass(s, 1000);
    op = t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE, .wait_ms = 30000);
    (void)T_RUN(op, IL_QUEUED, IL_RUN_PENDING);
    T_EQ(op->out.remaining_ms, 30000);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    (void)T_RUN_NOW(s, "r2", IL_RUN_PENDING); /* offered */
    T_EQU(T_RUN_NOW(s, "r2", IL_RUN_PENDING)->fence, 0);
    t_pass(s, 1000);
    op = t_run_start(s, "k", "h2", "r2", .policy = IL_POLICY_QUEUE, .ttl_ms = 7000);
    r  = T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(op->out.flags, 0);
    T_LESS(fence, op->out.fence);
    T_EQU(r->fence, op->out.fence);
    T_EQ(r->ttl_ms, 7000);
    T_EQ(r->started_at_ms - r->created_at_ms, 2000);
    t_run_invariants(s, NULL);
}

/* ---- a new id -------------------------------------------------------------------------------- */

T_TEST(a_holder_that_ended_needs_a_new_name)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    const il_op *op = T_IS(t_run_start(s, "k", "h", "r2"), IL_LOST);
    T_EQ(op->out.n_runs, 0);
    T_HAS(op->out.detail, "use a new holder for a new attempt");
    (void)T_IS(t_run_get(s, "r2"), IL_NOT_FOUND);
    (void)T_RUN(t_run_start(s, "k", "h2", "r2"), IL_OK, IL_RUN_RUNNING);
}

T_TEST(a_holder_that_has_the_key_otherwise_is_a_mismatch)
{
    (void)T_IS(t_acquire(s, "k", "h"), IL_OK);
    const il_op *op = T_IS(t_run_start(s, "k", "h", "r1", .policy = IL_POLICY_QUEUE), IL_MISMATCH);
    T_STREQ(op->out.detail, "this holder holds the key, but not for this run");
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED);
    op = T_IS(t_run_start(s, "k", "w", "r1"), IL_MISMATCH);
    T_STREQ(op->out.detail, "this holder is waiting for the key, but not for this run");
    /* And of another run. */
    (void)T_IS(t_run_start(s, "k2", "h", "r2"), IL_OK);
    (void)T_IS(t_run_start(s, "k2", "h", "r3"), IL_MISMATCH);
    (void)T_IS(t_run_get(s, "r3"), IL_NOT_FOUND);
    /* A lease that closes cannot be used any more. */
    uint64_t fence = t_lease_of(s, "k", "h")->fence;
    (void)T_IS(t_break(s, "k", fence), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h", "r4"), IL_LOST);
}

T_TEST(a_rank_forbids_a_start)
{
    static const char *const ranks[] = { "a", "b" };

    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    (void)T_IS(t_acquire(s, "b:1", "h"), IL_OK);
    const il_op *op = T_IS(t_run_start(s, "a:1", "h", "r1"), IL_ORDER);
    T_EQ(op->out.n_runs, 0);
    T_TRUE(op->out.detail != NULL);
    (void)T_IS(t_run_get(s, "r1"), IL_NOT_FOUND);
    (void)T_IS(t_run_start(s, "a:1", NULL, "r1", T_SLOT), IL_OK); /* a slot takes nothing */
    (void)T_IS(t_run_start(s, "a:1", "h", "r1"), IL_ORDER);
    (void)T_RUN(t_run_start(s, "a:1", "h2", "r1"), IL_OK, IL_RUN_RUNNING);
}

/* Held by no run: only a policy that queues can wait for it. */
T_TEST(a_plain_lease_is_in_the_way)
{
    static const il_policy refused[] = { IL_POLICY_JOIN, IL_POLICY_SKIP, IL_POLICY_REJECT };
    uint64_t               fence     = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const il_op *op = T_IS(t_run_start(s, "k", "h", "r1", .policy = refused[i]), IL_HELD);
        T_EQ(op->out.n_runs, 0);
        T_EQ(op->out.n_items, 1);
        T_STREQ(op->out.items[0].holder, "a");
        T_EQU(op->out.fence, fence);
    }
    for (unsigned p = 0; p < IL_POLICY_COUNT; p++) {
        (void)T_IS(t_run_start(s, "k", NULL, "slot", T_SLOT, .policy = (il_policy)p), IL_HELD);
        (void)T_IS(t_run_get(s, "slot"), IL_NOT_FOUND);
    }
    (void)T_RUN(t_run_start(s, "k", "h", "r1", .policy = IL_POLICY_QUEUE), IL_QUEUED,
                IL_RUN_PENDING);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    (void)T_RUN(t_run_start(s, "k", "h", "r1", .policy = IL_POLICY_QUEUE), IL_OK, IL_RUN_RUNNING);
}

T_TEST(shared_leases_are_in_the_way_too)
{
    uint64_t a = T_IS(t_acquire(s, "k", "a", T_SHARED), IL_OK)->out.fence;
    uint64_t b = T_IS(t_acquire(s, "k", "b", T_SHARED), IL_OK)->out.fence;

    const il_op *op = T_IS(t_run_start(s, "k", "h", "r1"), IL_HELD);
    T_EQU(op->out.items[0].fence, a);
    (void)T_IS(t_run_start(s, "k", "h", "r1", .policy = IL_POLICY_REPLACE_PENDING), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", a), IL_OK);
    (void)T_RUN_NOW(s, "r1", IL_RUN_PENDING);
    (void)T_IS(t_release(s, "k", "b", b), IL_OK);
    (void)T_RUN(t_run_start(s, "k", "h", "r1"), IL_OK, IL_RUN_RUNNING);
}

/* ---- slots ----------------------------------------------------------------------------------- */

T_TEST(a_slot_holds_nothing)
{
    const il_op *op =
        t_run_start(s, "k", NULL, "r1", T_SLOT, .trigger = "cron", .meta = "m", .ttl_ms = 9000);
    const il_run_info *r = T_RUN(op, IL_OK, IL_RUN_PENDING);

    T_STREQ(r->holder, "");
    T_EQU(r->fence, 0);
    T_EQU(op->out.fence, 0);
    T_EQ(r->position, 1);
    T_EQ(r->ttl_ms, 9000);
    T_EQ(op->out.flags, 0);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD);
    t_pass(s, 86400000); /* nobody has to wait for it */
    (void)T_IS(t_sweep(s), IL_OK);
    (void)T_RUN_NOW(s, "r1", IL_RUN_PENDING);
    op = t_run_start(s, "k", NULL, "r1", T_SLOT);
    (void)T_RUN(op, IL_OK, IL_RUN_PENDING);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    /* An acquire of the key does not see it. */
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;
    op             = T_IS(t_run_start(s, "k", "h", "r1"), IL_HELD);
    T_EQ(op->out.n_runs, 0);
    T_STREQ(op->out.items[0].holder, "a");
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    op = t_run_start(s, "k", "h", "r1", .ttl_ms = 4000, .place = "p", .meta = "other");
    r  = T_RUN(op, IL_OK, IL_RUN_RUNNING);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.remaining_ms, 4000);
    T_STREQ(r->holder, "h");
    T_STREQ(r->trigger, "cron");
    T_STREQ(r->meta, "m"); /* as it was made */
    T_EQU(r->fence, op->out.fence);
    T_STREQ(t_lease_of(s, "k", "h")->meta, "m");
    T_STREQ(t_lease_of(s, "k", "h")->place, "p");
    t_run_invariants(s, NULL);
    (void)T_IS(t_run_finish(s, "r1", "h", op->out.fence, IL_RUN_COMPLETED), IL_OK);
}

T_TEST(slots_are_started_in_order)
{
    (void)T_IS(t_run_start(s, "k", NULL, "r1", T_SLOT), IL_OK);
    (void)T_IS(t_run_start(s, "k", NULL, "r2", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    (void)T_IS(t_run_start(s, "k", NULL, "r3", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    T_EQ(T_RUN_NOW(s, "r3", IL_RUN_PENDING)->position, 3);
    const il_op *op = t_run_start(s, "k", "h2", "r2");
    T_STREQ(T_RUN(op, IL_HELD, IL_RUN_PENDING)->id, "r1");
    T_EQ(op->out.n_items, 0);
    T_STREQ(op->out.detail, "an older run of the key is pending");
    uint64_t fence = T_IS(t_run_start(s, "k", "h1", "r1"), IL_OK)->out.fence;
    op             = t_run_start(s, "k", "h2", "r2");
    T_STREQ(T_RUN(op, IL_HELD, IL_RUN_RUNNING)->id, "r1");
    T_STREQ(op->out.items[0].holder, "h1");
    T_EQU(op->out.fence, fence);
    (void)T_IS(t_run_finish(s, "r1", "h1", fence, IL_RUN_COMPLETED), IL_OK);
    (void)T_RUN(t_run_cancel(s, "r2", "no longer"), IL_OK, IL_RUN_CANCELLED);
    (void)T_RUN(t_run_start(s, "k", "h3", "r3"), IL_OK, IL_RUN_RUNNING);
    t_run_invariants(s, NULL);
}

/* The checks of a new start are made when a slot is started. */
T_TEST(a_slot_is_started_by_somebody_who_may)
{
    (void)T_IS(t_run_start(s, "k", NULL, "r1", T_SLOT), IL_OK);
    uint64_t fence = T_IS(t_acquire(s, "k", "h"), IL_OK)->out.fence;
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_MISMATCH);
    (void)T_IS(t_release(s, "k", "h", fence), IL_OK);
    (void)T_IS(t_run_start(s, "k", "h", "r1"), IL_LOST);
    (void)T_RUN(t_run_start(s, "k", "h2", "r1"), IL_OK, IL_RUN_RUNNING);
    /* Repeated, by whoever started it, and by whoever made it. */
    T_EQ(T_IS(t_run_start(s, "k", "h2", "r1"), IL_OK)->out.flags, IL_OUT_RENEWED);
    (void)T_RUN(t_run_start(s, "k", NULL, "r1", T_SLOT), IL_DUPLICATE, IL_RUN_RUNNING);
}

/* A slot's holder, should one be given, does not matter. */
T_TEST(the_maker_of_a_slot_is_not_its_holder)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "h"), IL_OK)->out.fence;

    (void)T_IS(t_release(s, "k", "h", fence), IL_OK);
    T_STREQ(T_RUN(t_run_start(s, "k", "h", "r1", T_SLOT), IL_OK, IL_RUN_PENDING)->holder, "");
    (void)T_RUN(t_run_start(s, "k", "h2", "r1"), IL_OK, IL_RUN_RUNNING);
    (void)T_RUN(t_run_start(s, "k", "h2", "r1", T_SLOT), IL_DUPLICATE, IL_RUN_RUNNING);
}

T_TEST(all_of_a_batch_see_each_other)
{
    il_op ops[4] = {
        t_run_op(IL_OP_RUN_START, "k", "a", "r1", 0, T_RUN_ARGS(.ttl_ms = 5000)),
        t_run_op(IL_OP_RUN_START, "k", "b", "r2", 0, T_RUN_ARGS(.ttl_ms = 5000)),
        t_run_op(IL_OP_RUN_GET, NULL, NULL, "r1", 0, T_RUN_ARGS(.flags = 0)),
        t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "r1", 0, T_RUN_ARGS(.error = "x")),
    };

    t_batch(s, ops, ARRAY_LEN(ops));
    (void)T_RUN(&ops[0], IL_OK, IL_RUN_RUNNING);
    T_STREQ(T_RUN(&ops[1], IL_DUPLICATE, IL_RUN_RUNNING)->id, "r1");
    T_EQ(T_RUN(&ops[2], IL_OK, IL_RUN_RUNNING)->n_joined, 1);
    T_EQ(T_RUN(&ops[3], IL_OK, IL_RUN_RUNNING)->cancelled, 1);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        il_op_release(&ops[i]);
}

/* R1: 1000 pipelines, 1000 locks, none. */
T_TEST(a_thousand_keys)
{
    static il_op ops[1000];
    static char  names[1000][16];
    uint64_t     fences[1000];

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(names[i], sizeof names[i], "p%u", i);
        ops[i] =
            t_run_op(IL_OP_RUN_START, names[i], names[i], names[i], 0, T_RUN_ARGS(.ttl_ms = 0));
    }
    t_batch(s, ops, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        (void)T_RUN(&ops[i], IL_OK, IL_RUN_RUNNING);
        fences[i] = ops[i].out.fence;
        il_op_release(&ops[i]);
    }
    T_EQ(T_IS(t_list(s, NULL, .limit = IL_PAGE_ITEMS_MAX), IL_OK)->out.n_items, 1000);
    t_run_invariants(s, NULL);
    for (unsigned i = 0; i < 1000; i++)
        ops[i] = t_run_finish_op(
            t_run_op(IL_OP_RUN_FINISH, NULL, names[i], names[i], fences[i], T_RUN_ARGS(.flags = 0)),
            IL_RUN_COMPLETED);
    t_batch(s, ops, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        (void)T_RUN(&ops[i], IL_OK, IL_RUN_COMPLETED);
        il_op_release(&ops[i]);
    }
    T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_start_is_a_run_and_a_lease),
        T_ROW(an_id_with_another_key_is_a_mismatch),
        T_ROW(an_id_that_has_ended_is_told_how),
        T_ROW(a_repeated_start_renews),
        T_ROW(a_repeated_start_is_told_to_stop),
        T_ROW(another_holder_is_a_duplicate),
        T_ROW(a_broken_run_is_lost_to_its_holder),
        T_ROW(an_offer_is_confirmed_by_the_start),
        T_ROW(a_holder_that_ended_needs_a_new_name),
        T_ROW(a_holder_that_has_the_key_otherwise_is_a_mismatch),
        T_ROW(a_rank_forbids_a_start),
        T_ROW(a_plain_lease_is_in_the_way),
        T_ROW(shared_leases_are_in_the_way_too),
        T_ROW(a_slot_holds_nothing),
        T_ROW(slots_are_started_in_order),
        T_ROW(a_slot_is_started_by_somebody_who_may),
        T_ROW(the_maker_of_a_slot_is_not_its_holder),
        T_ROW(all_of_a_batch_see_each_other),
        T_ROW(a_thousand_keys),
    };

    return T_SUITE("run_start", tests);
}
