/*
 * order.c: violations of declared ranks are refused, naming both places; violations of the learned
 * order are reported, never refused.
 */
#include "harness/suite.h"

static const char *const ranks[] = { "account", "event", "race" };

T_TEST(a_rank_is_refused_naming_both_places)
{
    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    (void)T_IS(t_acquire(s, "event:1", "job", .place = "a.c:10"), IL_OK);
    const il_op *op = T_IS(t_acquire(s, "account:7", "job", .place = "b.c:20"), IL_ORDER);
    T_HAS(op->out.detail, "account:7");
    T_HAS(op->out.detail, "event:1");
    T_HAS(op->out.detail, "a.c:10");
    T_HAS(op->out.detail, "b.c:20");
    T_EQ(t_count(s, "account:7", 0), 0);
    /* Refused before it waits, too. */
    (void)T_IS(t_acquire(s, "account:7", "other"), IL_OK);
    (void)T_IS(t_acquire(s, "account:7", "job", .wait_ms = 60000), IL_ORDER);
    T_EQ(t_count(s, "account:7", IL_LIST_WAITERS), 0);
}

T_TEST(the_declared_order_is_fine)
{
    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    (void)T_IS(t_acquire(s, "account:1", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "event:1", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "race:1", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "race:2", "job"), IL_OK); /* one class: no order within it */
    (void)T_IS(t_acquire(s, "race:0", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "unranked:1", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "event:2", "job"), IL_ORDER);
}

T_TEST(a_rank_counts_for_the_whole_unit_of_work)
{
    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    (void)T_IS(t_acquire(s, "race:1", "job/1"), IL_OK);
    (void)T_IS(t_acquire(s, "event:1", "job/2"), IL_ORDER);
    (void)T_IS(t_acquire(s, "event:1", "job"), IL_ORDER);
    (void)T_IS(t_acquire(s, "event:1", "job2"), IL_OK);
    (void)T_IS(t_acquire(s, "event:2", "other", .tenant = "t"), IL_OK);
}

T_TEST(a_rank_counts_only_while_held)
{
    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    uint64_t fence = T_IS(t_acquire(s, "race:1", "job", .ttl_ms = 5000), IL_OK)->out.fence;
    (void)T_IS(t_acquire(s, "event:1", "job"), IL_ORDER);
    (void)T_IS(t_release(s, "race:1", "job", fence), IL_OK);
    fence = T_IS(t_acquire(s, "event:1", "job"), IL_OK)->out.fence;
    (void)T_IS(t_release(s, "event:1", "job", fence), IL_OK);
    (void)T_IS(t_acquire(s, "race:2", "job", .ttl_ms = 5000), IL_OK);
    t_pass(s, 5000); /* expired, not swept: gone all the same */
    (void)T_IS(t_acquire(s, "event:2", "job"), IL_OK);
}

T_TEST(a_repeat_is_not_a_new_request)
{
    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    (void)T_IS(t_acquire(s, "account:1", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "race:1", "job"), IL_OK);
    T_EQ(T_IS(t_acquire(s, "account:1", "job"), IL_OK)->out.flags, IL_OUT_RENEWED);
}

T_TEST(without_ranks_nothing_is_refused)
{
    (void)T_IS(t_acquire(s, "race:1", "job"), IL_OK);
    (void)T_IS(t_acquire(s, "account:1", "job"), IL_OK);
}

/* `holder` takes `first`, then `second`, and lets go of both; what the second acquire said. */
static const il_op *
take_both(struct t_store *s, const char *holder, const char *first, const char *second)
{
    uint64_t     one = T_IS(t_acquire(s, first, holder, .place = "p1"), IL_OK)->out.fence;
    const il_op *op  = T_IS(t_acquire(s, second, holder, .place = "p2"), IL_OK);

    (void)T_IS(t_release(s, second, holder, op->out.fence), IL_OK);
    (void)T_IS(t_release(s, first, holder, one), IL_OK);
    return op;
}

T_TEST(learned_order_is_reported)
{
    T_EQ(take_both(s, "j1", "a:1", "b:1")->out.flags, 0);
    T_EQ(take_both(s, "j2", "a:2", "b:2")->out.flags, 0);
    const il_op *op = take_both(s, "j3", "b:3", "a:3");
    T_EQ(op->out.flags, IL_OUT_ORDER_WARNING);
    T_HAS(op->out.detail, "a:3");
    T_HAS(op->out.detail, "b:3");
    /* Such an edge is never learned: the first direction stays right. */
    T_EQ(take_both(s, "j4", "a:4", "b:4")->out.flags, 0);
    T_EQ(take_both(s, "j5", "b:5", "a:5")->out.flags, IL_OUT_ORDER_WARNING);
}

T_TEST(learned_order_goes_over_several_classes)
{
    T_EQ(take_both(s, "j1", "a:1", "b:1")->out.flags, 0);
    T_EQ(take_both(s, "j2", "b:1", "c:1")->out.flags, 0);
    T_EQ(take_both(s, "j3", "c:1", "d:1")->out.flags, 0);
    T_EQ(take_both(s, "j4", "d:1", "a:1")->out.flags, IL_OUT_ORDER_WARNING);
    T_EQ(take_both(s, "j5", "a:1", "d:1")->out.flags, 0);
}

T_TEST(one_class_has_no_order)
{
    T_EQ(take_both(s, "j1", "a:1", "a:2")->out.flags, 0);
    T_EQ(take_both(s, "j2", "a:2", "a:1")->out.flags, 0);
    T_EQ(take_both(s, "j3", "x", "y")->out.flags, 0); /* without ':' the key is its own class */
    T_EQ(take_both(s, "j4", "y", "x")->out.flags, IL_OUT_ORDER_WARNING);
}

T_TEST(tenants_learn_apart)
{
    uint64_t fence = T_IS(t_acquire(s, "a:1", "j", .tenant = "one"), IL_OK)->out.fence;

    T_TRUE(fence > 0);
    (void)T_IS(t_acquire(s, "b:1", "j", .tenant = "one"), IL_OK);
    T_EQ(take_both(s, "j", "b:1", "a:1")->out.flags, 0);
}

T_TEST(a_queued_request_learns)
{
    (void)T_IS(t_acquire(s, "b:1", "other"), IL_OK);
    (void)T_IS(t_acquire(s, "a:1", "j1"), IL_OK);
    T_EQ(T_IS(t_acquire(s, "b:1", "j1", .wait_ms = 1000), IL_QUEUED)->out.flags, 0);
    (void)T_IS(t_acquire(s, "b:2", "j2"), IL_OK);
    T_EQ(T_IS(t_acquire(s, "a:2", "j2"), IL_OK)->out.flags, IL_OUT_ORDER_WARNING);
}

T_TEST(a_queued_request_is_warned)
{
    T_EQ(take_both(s, "j1", "a:1", "b:1")->out.flags, 0);
    (void)T_IS(t_acquire(s, "a:2", "other"), IL_OK);
    (void)T_IS(t_acquire(s, "b:2", "j2"), IL_OK);
    const il_op *op = T_IS(t_acquire(s, "a:2", "j2", .wait_ms = 1000), IL_QUEUED);
    T_EQ(op->out.flags, IL_OUT_ORDER_WARNING);
    T_TRUE(op->out.detail != NULL);
}

T_TEST(a_refused_request_learns_nothing)
{
    (void)T_IS(t_acquire(s, "b:1", "other"), IL_OK);
    (void)T_IS(t_acquire(s, "a:1", "j1"), IL_OK);
    (void)T_IS(t_acquire(s, "b:1", "j1"), IL_HELD);
    (void)T_IS(t_acquire(s, "b:2", "j2"), IL_OK);
    T_EQ(T_IS(t_acquire(s, "a:2", "j2"), IL_OK)->out.flags, 0);
}

T_TEST(learned_order_survives_a_reopen)
{
    T_NEEDS(s, durable);
    T_EQ(take_both(s, "j1", "a:1", "b:1")->out.flags, 0);
    t_store_reopen(s);
    T_EQ(take_both(s, "j2", "b:2", "a:2")->out.flags, IL_OUT_ORDER_WARNING);
}

T_TEST(siblings_teach_too)
{
    (void)T_IS(t_acquire(s, "a:1", "job/1"), IL_OK);
    (void)T_IS(t_acquire(s, "b:1", "job/2"), IL_OK);
    T_EQ(take_both(s, "other", "b:2", "a:2")->out.flags, IL_OUT_ORDER_WARNING);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_rank_is_refused_naming_both_places),
        T_ROW(the_declared_order_is_fine),
        T_ROW(a_rank_counts_for_the_whole_unit_of_work),
        T_ROW(a_rank_counts_only_while_held),
        T_ROW(a_repeat_is_not_a_new_request),
        T_ROW(without_ranks_nothing_is_refused),
        T_ROW(learned_order_is_reported),
        T_ROW(learned_order_goes_over_several_classes),
        T_ROW(one_class_has_no_order),
        T_ROW(tenants_learn_apart),
        T_ROW(a_queued_request_learns),
        T_ROW(a_queued_request_is_warned),
        T_ROW(a_refused_request_learns_nothing),
        T_ROW(learned_order_survives_a_reopen),
        T_ROW(siblings_teach_too),
    };

    return T_SUITE("order", tests);
}
