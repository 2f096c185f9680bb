/*
 * heap.c: the heap returns the first node, whatever was added and removed before.
 */
#include "base/heap.h"

#include "harness/rng.h"
#include "harness/unit.h"

struct item {
    struct il__heap_node node;
    uint64_t             key;
    bool                 in;
};

static const struct item *
item_of(const struct il__heap_node *node)
{
    return (const struct item *)(const void *)node;
}

static bool
before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return item_of(a)->key < item_of(b)->key;
}

#define N 500

static uint64_t
least(const struct item *items)
{
    uint64_t key = UINT64_MAX;

    for (unsigned i = 0; i < N; i++) {
        if (items[i].in)
            key = MIN(key, items[i].key);
    }
    return key;
}

U_TEST(against_a_plain_search)
{
    static struct item items[N];
    struct il__heap    h = { .before = before };
    struct t_rng       rng;
    size_t             n = 0;

    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 3));
    for (unsigned i = 0; i < 20000; i++) {
        struct item *it = &items[t_rng_below(&rng, N)];
        if (it->in && t_rng_one_in(&rng, 3)) { /* changed, then taken out and put back */
            it->key = t_rng_below(&rng, 1000);
            il__heap_remove(&h, &it->node);
            il__heap_add(&h, &it->node);
        } else if (it->in) {
            il__heap_remove(&h, &it->node);
            it->in = false;
            n--;
        } else {
            it->key = t_rng_below(&rng, 1000);
            il__heap_add(&h, &it->node);
            it->in = true;
            n++;
        }
        T_EQU(h.n, n);
        T_EQ(h.first == NULL, n == 0);
        if (n > 0)
            T_EQU(item_of(h.first)->key, least(items));
    }
}

U_TEST(in_order)
{
    static struct item items[N];
    struct il__heap    h    = { .before = before };
    uint64_t           last = 0;

    for (unsigned i = 0; i < N; i++) {
        items[i].key = i * 7919 % N;
        il__heap_add(&h, &items[i].node);
    }
    for (unsigned i = 0; i < N; i++) {
        uint64_t key = item_of(h.first)->key;
        T_TRUE(key >= last);
        last = key;
        il__heap_remove(&h, h.first);
    }
    T_TRUE(h.first == NULL && h.n == 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(against_a_plain_search),
        U_ROW(in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
