/*
 * order.c: violations of declared ranks are refused, naming both places; violations of the learned
 * order are reported, never refused.
 */
#include <stdio.h>

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
    /* Such an edge is only listed: the first direction stays right. */
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

/* ---- listing --------------------------------------------------------------------------------- */

/* A page of edges as text: "a(p1)>b(p2)!+ …"; '!': inverted, '+': declared. */
static const char *
edges(const il_op *op)
{
    static char text[4096];
    size_t      n = 0;

    (void)T_IS(op, IL_OK);
    text[0] = '\0';
    for (size_t i = 0; i < op->out.n_edges; i++) {
        const il_edge_info *e = &op->out.edges[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s(%s)>%s(%s)%s%s", i > 0 ? " " : "",
                              e->from, e->from_place, e->to, e->to_place,
                              (e->flags & IL_EDGE_INVERTED) != 0 ? "!" : "",
                              (e->flags & IL_EDGE_DECLARED) != 0 ? "+" : "");
        T_LESS(n, sizeof text);
    }
    return text;
}

T_TEST(edges_are_listed)
{
    T_STREQ(edges(t_order_list(s, NULL)), "");
    T_EQ(take_both(s, "j1", "b:1", "c:1")->out.flags, 0);
    T_EQ(take_both(s, "j2", "a:1", "b:1")->out.flags, 0);
    (void)T_IS(t_acquire(s, "a:7", "j3"), IL_OK);
    (void)T_IS(t_acquire(s, "b:7", "j3", .place = "elsewhere"), IL_OK); /* known: the first stays */
    (void)T_IS(t_acquire(s, "d:7", "j3"), IL_OK);
    const il_op *op = t_order_list(s, NULL);
    T_STREQ(edges(op), "a(p1)>b(p2) a()>d() b(p1)>c(p2) b(elsewhere)>d()");
    T_TRUE(op->out.next == NULL);
    T_STREQ(op->out.edges[0].tenant, "default");
    T_STREQ(edges(t_order_list(s, NULL, .tenant = "other")), "");
}

T_TEST(edges_are_listed_by_pages)
{
    static const char *const keys[] = { ":1", "a:1", "b:1", "c:1" }; /* a class may be empty */
    const il_op             *op     = NULL;
    char                     cursor[64];
    unsigned                 n = 0, n_pages = 0;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        (void)T_IS(t_acquire(s, keys[i], "j"), IL_OK);
    T_STREQ(edges(t_order_list(s, NULL)), "()>a() ()>b() ()>c() a()>b() a()>c() b()>c()");
    do {
        op = t_order_list(s, NULL, .limit = 1, .cursor = op != NULL ? cursor : NULL);
        n += (unsigned)T_IS(op, IL_OK)->out.n_edges;
        n_pages++;
        if (op->out.next != NULL)
            (void)snprintf(cursor, sizeof cursor, "%s", op->out.next);
    } while (op->out.next != NULL);
    T_EQU(n, 6);
    T_EQU(n_pages, 6);
    T_EQU(t_order_list(s, NULL, .limit = 6)->out.n_edges, 6);
    T_TRUE(t_order_list(s, NULL, .limit = 6)->out.next == NULL);
    (void)T_IS(t_order_list(s, NULL, .cursor = "a"), IL_INVAL);
    (void)T_IS(t_order_list(s, NULL, .limit = IL_PAGE_ITEMS_MAX + 1), IL_INVAL);
}

T_TEST(a_prefix_shows_only_classes_it_covers)
{
    static const char *const keys[] = { "ea:1", "eb:1", "f:1" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        (void)T_IS(t_acquire(s, keys[i], "j"), IL_OK);
    T_STREQ(edges(t_order_list(s, "e")), "ea()>eb()");
    T_STREQ(edges(t_order_list(s, "ea")), "");
    T_STREQ(edges(t_order_list(s, "ea:")), "");
    T_STREQ(edges(t_order_list(s, "ea:1")), "");
}

T_TEST(an_inversion_is_listed)
{
    T_EQ(take_both(s, "j1", "a:1", "b:1")->out.flags, 0);
    T_EQ(take_both(s, "j2", "b:1", "c:1")->out.flags, 0);
    T_STREQ(edges(t_order_list(s, NULL)), "a(p1)>b(p2) b(p1)>c(p2)");
    T_EQ(take_both(s, "j3", "b:3", "a:3")->out.flags, IL_OUT_ORDER_WARNING);
    T_STREQ(edges(t_order_list(s, NULL)), "a(p1)>b(p2)! b(p1)>a(p2)! b(p1)>c(p2)");
    T_EQ(take_both(s, "j4", "c:3", "a:3")->out.flags, IL_OUT_ORDER_WARNING);
    T_STREQ(edges(t_order_list(s, NULL)), "a(p1)>b(p2)! b(p1)>a(p2)! b(p1)>c(p2)! c(p1)>a(p2)!");
    /* What was learned against the order teaches nothing. */
    T_EQ(take_both(s, "j5", "b:4", "c:4")->out.flags, 0);
    T_EQ(take_both(s, "j6", "c:4", "a:4")->out.flags, IL_OUT_ORDER_WARNING);
}

T_TEST(declared_edges_are_marked)
{
    t_store_set_ranks(s, ranks, ARRAY_LEN(ranks));
    T_EQ(take_both(s, "j1", "event:1", "race:1")->out.flags, 0);
    T_EQ(take_both(s, "j2", "event:1", "free:1")->out.flags, 0);
    T_STREQ(edges(t_order_list(s, NULL)), "event(p1)>free(p2) event(p1)>race(p2)+");
    T_EQ(take_both(s, "j3", "free:1", "account:1")->out.flags, 0); /* learned edges know no ranks */
    T_STREQ(edges(t_order_list(s, NULL)),
            "event(p1)>free(p2)! event(p1)>race(p2)+ free(p1)>account(p2)!");
}

T_TEST(edges_survive_a_reopen)
{
    T_NEEDS(s, durable);
    T_EQ(take_both(s, "j1", "a:1", "b:1")->out.flags, 0);
    T_EQ(take_both(s, "j2", "b:2", "a:2")->out.flags, IL_OUT_ORDER_WARNING);
    t_store_reopen(s);
    T_STREQ(edges(t_order_list(s, NULL)), "a(p1)>b(p2)! b(p1)>a(p2)!");
    T_EQ(take_both(s, "j3", "b:3", "a:3")->out.flags, IL_OUT_ORDER_WARNING);
    T_EQ(take_both(s, "j4", "a:4", "b:4")->out.flags, 0);
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
        T_ROW(edges_are_listed),
        T_ROW(edges_are_listed_by_pages),
        T_ROW(a_prefix_shows_only_classes_it_covers),
        T_ROW(an_inversion_is_listed),
        T_ROW(declared_edges_are_marked),
        T_ROW(edges_survive_a_reopen),
    };

    return T_SUITE("order", tests);
}
