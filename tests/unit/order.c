/*
 * order.c: ranks and learned edges, without a store.
 */
#include "core/order.h"

#include "core/key.h"
#include "core/limits.h"
#include "core/op.h"
#include "harness/unit.h"

static void
learn_as(struct il__order *o, const char *first, const char *then, bool against)
{
    struct il__order_seen e = { "t", first, then, "here", "there", against };

    T_TRUE(il__order_add(o, &e));
}

static void
learn(struct il__order *o, const char *first, const char *then)
{
    learn_as(o, first, then, false);
}

static unsigned
judge(const struct il__order *o, const char *held, const char *key, struct il__buf *why)
{
    struct il__order_hold hold = { .key = held, .place = "h.c:1" };

    il__buf_clear(why);
    return il__order_judge(o, "t", &hold, key, "k.c:2", why);
}

U_TEST(ranks)
{
    static const char *const classes[] = { "a", "b", "c" };
    struct il__ranks         r         = { classes, 3 };
    struct il__ranks         none      = { NULL, 0 };
    struct il__order_hold    b         = { .key = "b:1", .place = "p" };
    struct il__order_hold    x         = { .key = "x:1", .place = NULL };
    struct il__buf AUTO_BUF  why       = { .n_bytes_max = 1000 };

    T_TRUE(il__order_rank_ok(&r, &b, "c:9", NULL, &why));
    T_TRUE(il__order_rank_ok(&r, &b, "b:9", NULL, &why));
    T_TRUE(il__order_rank_ok(&r, &b, "x:9", NULL, &why));
    T_TRUE(il__order_rank_ok(&r, &x, "a:9", NULL, &why));
    T_TRUE(il__order_rank_ok(&none, &b, "a:9", NULL, &why));
    T_TRUE(il__order_rank_ok(NULL, &b, "a:9", NULL, &why));
    T_STREQ(il__buf_str(&why), "");
    T_TRUE(!il__order_rank_ok(&r, &b, "a:9", "q", &why));
    T_HAS(il__buf_str(&why), "'a:9'");
    T_HAS(il__buf_str(&why), "'b:1'");
    /* the class itself as a key; no reason wanted */
    T_TRUE(!il__order_rank_ok(&r, &b, "a", NULL, NULL));
    T_TRUE(il__order_rank_ok(&r, &b, "ab:1", NULL, &why)); /* a prefix is another class */
}

U_TEST(learning)
{
    struct il__order        o   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };

    T_EQ(judge(&o, "a:1", "b:1", &why), IL__ORDER_LEARN);
    learn(&o, "a", "b");
    T_EQ(judge(&o, "a:1", "b:1", &why), 0);
    T_EQ(judge(&o, "a:2", "a:3", &why), 0);
    T_EQ(judge(&o, "b:1", "a:1", &why), IL__ORDER_AGAINST | IL__ORDER_LEARN);
    T_HAS(il__buf_str(&why), "k.c:2");
    T_HAS(il__buf_str(&why), "h.c:1");
    T_HAS(il__buf_str(&why), "here");
    learn(&o, "b", "c");
    learn(&o, "c", "d");
    T_EQ(judge(&o, "d:1", "a:1", &why), IL__ORDER_AGAINST | IL__ORDER_LEARN);
    T_EQ(judge(&o, "a:1", "d:1", &why), IL__ORDER_LEARN);
    T_EQ(judge(&o, "x:1", "a:1", &why), IL__ORDER_LEARN);
    struct il__order_hold other = { .key = "b:1", .place = NULL };
    T_EQ(il__order_judge(&o, "other tenant", &other, "a:1", NULL, &why), IL__ORDER_LEARN);
    il__order_release(&o);
    T_EQ(o.n, 0);
}

/* An edge that was learned against the order is known, reported each time, and leads nowhere. */
U_TEST(against_the_order)
{
    struct il__order        o   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };

    learn(&o, "a", "b");
    learn(&o, "a", "c");
    learn_as(&o, "b", "a", true);
    T_EQ(judge(&o, "b:1", "a:1", &why), IL__ORDER_AGAINST);
    T_EQ(judge(&o, "a:1", "b:1", &why), 0);
    T_EQ(judge(&o, "c:1", "b:1", &why), IL__ORDER_LEARN); /* not by way of b, a, c */
    il__order_release(&o);
}

/* A graph with circles among edges that follow the order (two processes have learned them at the
 * same time) ends all the same. */
U_TEST(a_circle_ends)
{
    struct il__order        o   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };

    learn(&o, "a", "b");
    learn(&o, "b", "c");
    learn(&o, "c", "a");
    T_EQ(judge(&o, "x:1", "a:1", &why), IL__ORDER_LEARN);
    T_EQ(judge(&o, "c:1", "b:1", &why), IL__ORDER_AGAINST | IL__ORDER_LEARN);
    il__order_release(&o);
}

U_TEST(a_full_table_learns_nothing_more)
{
    struct il__order        o   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };

    for (unsigned i = 0; i < IL__ORDER_EDGES_MAX; i++) {
        char first[16];
        char then[16];
        (void)snprintf(first, sizeof first, "c%u", i);
        (void)snprintf(then, sizeof then, "c%u", i + 1);
        learn(&o, first, then);
    }
    T_EQ(judge(&o, "new:1", "newer:1", &why), 0);
    T_EQ(judge(&o, "c4096:1", "c0:1", &why), IL__ORDER_AGAINST); /* the longest path there can be */
    il__order_release(&o);
}

/* ---- listing --------------------------------------------------------------------------------- */

/* A page of the edges as text: "a>b!+ b>a!"; '!': inverted, '+': declared. */
static const char *
list(const struct il__order *o, const struct il__ranks *ranks, il_list_in in)
{
    static char text[1024];
    il_op       op = { .type = IL_OP_ORDER_LIST, .tenant = "t", .in.list = in };
    size_t      n  = 0;

    T_TRUE(il__op_prepare(&op, "t", 1));
    il__order_list(o, ranks, &op);
    T_EQ(op.status, IL_OK);
    text[0] = '\0';
    for (size_t i = 0; i < op.out.n_edges; i++) {
        const il_edge_info *e = &op.out.edges[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s>%s%s%s", i > 0 ? " " : "", e->from,
                              e->to, (e->flags & IL_EDGE_INVERTED) != 0 ? "!" : "",
                              (e->flags & IL_EDGE_DECLARED) != 0 ? "+" : "");
        T_LESS(n, sizeof text);
    }
    if (op.out.next != NULL)
        (void)snprintf(text + n, sizeof text - n, " ...%s", op.out.next);
    il_op_release(&op);
    return text;
}

static const struct il__ranks no_ranks;

U_TEST(a_list)
{
    struct il__order o = { 0 };

    T_STREQ(list(&o, &no_ranks, (il_list_in){ 0 }), "");
    learn(&o, "b", "c");
    learn(&o, "a", "b");
    learn(&o, "ab", "b");
    learn(&o, "a", "ab");
    struct il__order_seen other = { "other", "x", "y", NULL, NULL, false };
    T_TRUE(il__order_add(&o, &other));
    T_STREQ(list(&o, &no_ranks, (il_list_in){ 0 }), "a>ab a>b ab>b b>c");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .limit = 2 }), "a>ab a>b ...a:b");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .limit = 2, .cursor = "a:b" }), "ab>b b>c");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .cursor = "a:aa" }), "a>ab a>b ab>b b>c");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .cursor = "aa:a" }), "ab>b b>c");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .cursor = "b:c" }), "");
    /* classes whose keys all begin with it */
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .prefix = "a" }), "a>ab");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .prefix = "a:" }), "");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .prefix = "" }), "a>ab a>b ab>b b>c");
    learn(&o, "a", "a2");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .prefix = "a", .limit = 1 }), "a>a2 ...a:a2");
    il__order_release(&o);
}

U_TEST(cycles_in_a_list)
{
    static const char *const classes[] = { "a", "b", "c" };
    struct il__ranks         ranks     = { classes, 3 };
    struct il__order         o         = { 0 };

    learn(&o, "a", "b");
    learn(&o, "b", "x");
    learn(&o, "x", "y");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ 0 }), "a>b b>x x>y");
    learn_as(&o, "x", "a", true);
    T_STREQ(list(&o, &no_ranks, (il_list_in){ 0 }), "a>b! b>x! x>a! x>y");
    learn(&o, "y", "z");
    learn_as(&o, "z", "y", true); /* a second cycle, behind the first one */
    T_STREQ(list(&o, &no_ranks, (il_list_in){ 0 }), "a>b! b>x! x>a! x>y y>z! z>y!");
    /* found by the whole graph, not by the page */
    T_STREQ(list(&o, &no_ranks, (il_list_in){ .limit = 1 }), "a>b! ...a:b");
    T_STREQ(list(&o, &ranks, (il_list_in){ .limit = 1 }), "a>b!+ ...a:b");
    il__order_release(&o);

    /* The ranks belong to the graph: c after b after a. */
    learn(&o, "c", "a");
    learn(&o, "a", "c");
    learn(&o, "p", "q");
    T_STREQ(list(&o, &ranks, (il_list_in){ 0 }), "a>c!+ c>a! p>q");
    il__order_release(&o);
    learn(&o, "c", "p");
    learn(&o, "p", "a");
    T_STREQ(list(&o, &no_ranks, (il_list_in){ 0 }), "c>p p>a");
    T_STREQ(list(&o, &ranks, (il_list_in){ 0 }), "c>p! p>a!");
    il__order_release(&o);
}

/* One cycle through as many classes as there can be. */
U_TEST(the_longest_cycle)
{
    struct il__order o  = { 0 };
    il_op            op = { .type = IL_OP_ORDER_LIST, .in.list.limit = IL_PAGE_ITEMS_MAX };

    for (unsigned i = 0; i < IL__ORDER_EDGES_MAX; i++) {
        char first[16];
        char then[16];
        (void)snprintf(first, sizeof first, "c%u", i);
        (void)snprintf(then, sizeof then, "c%u", (i + 1) % IL__ORDER_EDGES_MAX);
        learn(&o, first, then);
    }
    T_TRUE(il__op_prepare(&op, "t", 1));
    il__order_list(&o, &no_ranks, &op);
    T_EQU(op.out.n_edges, IL_PAGE_ITEMS_MAX);
    T_TRUE(op.out.next != NULL);
    for (size_t i = 0; i < op.out.n_edges; i++)
        T_EQU(op.out.edges[i].flags, IL_EDGE_INVERTED);
    il_op_release(&op);
    il__order_release(&o);
}

U_TEST(bad_lists)
{
    static const char *const cursors[] = { "", "a", "a:b:c", "a\n:b", "\xff:b" };
    il_op                    op;

    for (size_t i = 0; i < ARRAY_LEN(cursors); i++) {
        op = (il_op){ .type = IL_OP_ORDER_LIST, .in.list.cursor = cursors[i] };
        if (il__op_prepare(&op, "t", 1))
            T_FAIL("'%s'", cursors[i]);
        T_STREQ(op.out.detail, "invalid cursor");
        il_op_release(&op);
    }
    op = (il_op){ .type = IL_OP_ORDER_LIST, .in.list.limit = IL_PAGE_ITEMS_MAX + 1 };
    T_TRUE(!il__op_prepare(&op, "t", 1));
    il_op_release(&op);
    op = (il_op){ .type = IL_OP_ORDER_LIST, .in.list.prefix = "a\nb" };
    T_TRUE(!il__op_prepare(&op, "t", 1));
    il_op_release(&op);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(ranks),
        U_ROW(learning),
        U_ROW(against_the_order),
        U_ROW(a_circle_ends),
        U_ROW(a_full_table_learns_nothing_more),
        U_ROW(a_list),
        U_ROW(cycles_in_a_list),
        U_ROW(the_longest_cycle),
        U_ROW(bad_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
