/*
 * tree.c: the tree finds the neighbours of a name, whatever was added and removed before.
 */
#include "base/tree.h"

#include <stdio.h>

#include "harness/rng.h"
#include "harness/unit.h"

#define N 200

static struct il__tree_node nodes[N];
static bool                 is_in[N];
static char                 names[N][8];

static int
order(const struct il__tree_node *a, const struct il__tree_node *b)
{
    int c = strcmp(a->first, b->first);

    if (c == 0)
        c = strcmp(a->second, b->second);
    return c != 0 ? c : a->number < b->number ? -1 : a->number > b->number;
}

/* By looking at all of them. */
static const struct il__tree_node *
neighbour(const struct il__tree_node *of, int side)
{
    const struct il__tree_node *best = NULL;

    for (unsigned i = 0; i < N; i++) {
        if (is_in[i] && order(&nodes[i], of) * side > 0 &&
            (best == NULL || order(&nodes[i], best) * side < 0))
            best = &nodes[i];
    }
    return best;
}

U_TEST(against_a_plain_search)
{
    struct il__tree t = { 0 };
    struct t_rng    rng;
    size_t          n = 0;

    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 5));
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof names[i], "%u", i % 20);
        nodes[i] = (struct il__tree_node){ .first  = i % 2 == 0 ? "a" : "b",
                                           .second = names[i],
                                           .number = i };
    }
    for (unsigned i = 0; i < 2000; i++) {
        unsigned k = (unsigned)t_rng_below(&rng, N);
        if (is_in[k])
            il__tree_remove(&t, &nodes[k]);
        else
            il__tree_add(&t, &nodes[k]);
        is_in[k] = !is_in[k];
        n += is_in[k] ? 1 : (size_t)-1;
        T_EQU(t.n, n);
        const struct il__tree_node *of = &nodes[t_rng_below(&rng, N)];
        T_TRUE(il__tree_after(&t, of->first, of->second, of->number) == neighbour(of, 1));
        T_TRUE(il__tree_before(&t, of->first, of->second, of->number) == neighbour(of, -1));
    }
}

static unsigned
depth(const struct il__tree_node *node)
{
    if (node == NULL)
        return 0;
    unsigned before = depth(node->before);
    unsigned after  = depth(node->after);
    return 1 + MAX(before, after);
}

/* Names that come in their order do not make it a list. */
U_TEST(it_stays_flat)
{
    static struct il__tree_node many[10000];
    struct il__tree             t = { 0 };

    for (unsigned i = 0; i < ARRAY_LEN(many); i++) {
        many[i] = (struct il__tree_node){ .first = "", .second = "", .number = i };
        il__tree_add(&t, &many[i]);
    }
    T_LESS(depth(t.root), 60);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(against_a_plain_search),
                                               U_ROW(it_stays_flat) };

    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
