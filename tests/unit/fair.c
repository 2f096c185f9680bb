/*
 * fair.c: tenants take turns, whatever others have queued; short calls do not wait for long ones;
 * result budgets keep their limits.
 */
#include "runtime/fair.h"

#include "harness/unit.h"
#include "runtime/handle.h"
#include "runtime/result_budget.h"

struct entry {
    struct il__heap_node node;
    unsigned             share;
    unsigned             i;
};

static struct entry *
take(struct il__fair *f)
{
    struct entry *e = (struct entry *)(void *)f->heap.first;

    il__fair_take(f);
    return e;
}

/* A thousand entries of one tenant are queued; the first entry of another is among the next
 * taken. */
U_TEST(a_tenant_with_little_is_served_next)
{
    static struct il__fair f;
    static struct entry    many[1000], few[10];

    for (unsigned i = 0; i < 1000; i++) {
        many[i] = (struct entry){ .share = 1, .i = i };
        il__fair_add(&f, &many[i].node, 1, 256);
    }
    for (unsigned i = 0; i < 100; i++)
        T_EQ(take(&f)->share, 1);
    for (unsigned i = 0; i < 10; i++) {
        few[i] = (struct entry){ .share = 2, .i = i };
        il__fair_add(&f, &few[i].node, 2, 1);
        T_TRUE(take(&f) == &few[i]);
    }
}

/* The lanes of short calls and of long ones are never the same, however many callers there are. */
U_TEST(long_calls_have_their_own_lane)
{
    static il   h     = { .n_execs = IL__LANES_MAX };
    const il_op sweep = { .type = IL_OP_SWEEP };
    char        key[16];

    for (int stand = 0; stand < 2; stand++) {
        il_op    op     = { .type = IL_OP_ACQUIRE, .key = key };
        unsigned i_long = (unsigned)(stand + 1) * IL__LANES_MAX / 2 - 1;
        for (int i = 0; i < 1000; i++) {
            (void)snprintf(key, sizeof key, "key%d", i);
            unsigned i_short = il__lane_of(&h, &op, IL__LONG_OPS, stand, 10000);
            T_TRUE(i_short >= i_long + 1 - IL__LANES_MAX / 2 && i_short < i_long);
            T_EQ(il__lane_of(&h, &op, IL__LONG_OPS + 1, stand, 10000), i_long);
        }
        T_EQ(il__lane_of(&h, &sweep, 1, stand, 0), i_long);
    }
    h.n_execs = 1; /* SQLite: there is one writer */
    T_EQ(il__lane_of(&h, &sweep, 1, true, 10000), 0);
}

/* Two tenants that queue much get the same share of the work, each in its own order. */
U_TEST(shares_are_equal)
{
    static struct il__fair f;
    static struct entry    all[2][600];
    unsigned               n[2]   = { 0, 0 };
    unsigned               cost[] = { 1, 4 };

    for (unsigned i = 0; i < 600; i++) {
        for (unsigned t = 0; t < 2; t++) {
            all[t][i] = (struct entry){ .share = t, .i = i };
            il__fair_add(&f, &all[t][i].node, t, cost[t]);
        }
    }
    for (unsigned i = 0; i < 500; i++) {
        const struct entry *e = take(&f);
        T_EQ(e->i, n[e->share]);
        n[e->share]++;
    }
    T_TRUE(n[0] >= 3 * n[1] && n[0] <= 5 * n[1]);
}

U_TEST(a_budget_is_part_of_another)
{
    struct il__result_budget all = { .n_max = 100 };
    struct il__result_budget a   = { .above = &all, .n_max = 60 };
    struct il__result_budget b   = { .above = &all, .n_max = 60 };

    T_TRUE(il__result_budget_take(&a, 60));
    T_TRUE(!il__result_budget_take(&a, 1));
    T_TRUE(!il__result_budget_take(&b, 41)); /* its own has room, the one above has not */
    T_EQU(atomic_load(&b.n_bytes), 0);
    T_TRUE(il__result_budget_take(&b, 40));
    il__result_budget_change(&a, 60, 10);
    T_EQU(atomic_load(&all.n_bytes), 50);
    T_TRUE(il__result_budget_take(&b, 20));
    il__result_budget_change(&a, 10, 0);
    il__result_budget_change(&b, 60, 0);
    T_EQU(atomic_load(&all.n_bytes), 0);
    il__result_budget_change(NULL, 5, 0);
    T_TRUE(il__result_budget_take(NULL, 1000)); /* nobody's: not limited */
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(a_tenant_with_little_is_served_next),
        U_ROW(long_calls_have_their_own_lane),
        U_ROW(shares_are_equal),
        U_ROW(a_budget_is_part_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
