/*
 * order.c: ranks and learned edges, without a store.
 */
#include "core/order.h"

#include "core/key.h"
#include "core/limits.h"
#include "harness/unit.h"

static void
learn(struct il__order *o, const char *first, const char *then)
{
    T_TRUE(il__order_add(o, "t", first, strlen(first), then, strlen(then), "here", "there"));
}

static enum il__order_verdict
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

    T_EQ(judge(&o, "a:1", "b:1", &why), IL__ORDER_NEW);
    learn(&o, "a", "b");
    T_EQ(judge(&o, "a:1", "b:1", &why), IL__ORDER_FINE);
    T_EQ(judge(&o, "a:2", "a:3", &why), IL__ORDER_FINE);
    T_EQ(judge(&o, "b:1", "a:1", &why), IL__ORDER_AGAINST);
    T_HAS(il__buf_str(&why), "k.c:2");
    T_HAS(il__buf_str(&why), "h.c:1");
    T_HAS(il__buf_str(&why), "here");
    learn(&o, "b", "c");
    learn(&o, "c", "d");
    T_EQ(judge(&o, "d:1", "a:1", &why), IL__ORDER_AGAINST);
    T_EQ(judge(&o, "a:1", "d:1", &why), IL__ORDER_NEW);
    T_EQ(judge(&o, "x:1", "a:1", &why), IL__ORDER_NEW);
    struct il__order_hold other = { .key = "b:1", .place = NULL };
    T_EQ(il__order_judge(&o, "other tenant", &other, "a:1", NULL, &why), IL__ORDER_NEW);
    il__order_release(&o);
    T_EQ(o.n, 0);
}

/* A graph with circles in it (made by hand: judged edges never close one) ends all the same. */
U_TEST(a_circle_ends)
{
    struct il__order        o   = { 0 };
    struct il__buf AUTO_BUF why = { .n_bytes_max = 1000 };

    learn(&o, "a", "b");
    learn(&o, "b", "c");
    learn(&o, "c", "a");
    T_EQ(judge(&o, "x:1", "a:1", &why), IL__ORDER_NEW);
    T_EQ(judge(&o, "c:1", "b:1", &why), IL__ORDER_AGAINST);
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
    T_EQ(judge(&o, "new:1", "newer:1", &why), IL__ORDER_FINE);
    T_EQ(judge(&o, "c4096:1", "c0:1", &why), IL__ORDER_AGAINST); /* the longest path there can be */
    il__order_release(&o);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(ranks),
        U_ROW(learning),
        U_ROW(a_circle_ends),
        U_ROW(a_full_table_learns_nothing_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
