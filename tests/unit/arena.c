/*
 * arena.c: arrays that grow in an arena, and on the heap.
 */
#include "base/arena.h"

#include "harness/unit.h"

static void *
no_alloc(void *cookie UNUSED, size_t n_bytes UNUSED)
{
    return NULL;
}

static void *
no_realloc(void *cookie UNUSED, void *p UNUSED, size_t n_bytes UNUSED)
{
    return NULL;
}

static void
plain_free(void *cookie UNUSED, void *p)
{
    free(p);
}

static const il_allocator none = { no_alloc, no_realloc, plain_free, NULL };

U_TEST(an_array_in_an_arena_keeps_its_items)
{
    void     *mem   = NULL;
    uint64_t *items = NULL;
    size_t    n     = 0;

    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t *item = il__arena_append(&mem, &items, &n, sizeof *item);
        T_TRUE(item == &items[i]);
        *item = i;
    }
    T_EQU(n, 5000);
    for (uint64_t i = 0; i < n; i++)
        T_EQU(items[i], i);

    uint64_t *before = items;
    n                = 0; /* emptied, it starts again */
    *(uint64_t *)il__arena_append(&mem, &items, &n, sizeof *items) = 7;
    T_EQU(n, 1);
    T_EQU(items[0], 7);
    T_EQU(before[0], 0);
    il__arena_free(&mem);
}

U_TEST(without_memory_an_array_in_an_arena_stays)
{
    struct wide {
        char bytes[4096];
    };
    void        *mem   = NULL;
    struct wide *items = NULL;
    size_t       n     = 0;

    T_TRUE(il__arena_append(&mem, &items, &n, sizeof *items) != NULL);
    struct wide *before = items;
    il_set_allocator(&none);
    T_TRUE(il__arena_append(&mem, &items, &n, sizeof *items) == NULL);
    il_set_allocator(NULL);
    T_EQU(n, 1);
    T_TRUE(items == before);
    il__arena_free(&mem);
}

U_TEST(an_array_on_the_heap_keeps_its_items)
{
    uint32_t *items    = NULL;
    size_t    capacity = 0;

    for (uint32_t n = 0; n < 5000; n++) {
        T_TRUE(il__grow(&items, n, &capacity, sizeof *items));
        T_TRUE(capacity > n);
        items[n] = n;
    }
    for (uint32_t i = 0; i < 5000; i++)
        T_EQU(items[i], i);
    T_EQU(capacity, 8192);
    const uint32_t *before = items;
    T_TRUE(il__grow(&items, 0, &capacity, sizeof *items)); /* emptied, it keeps its memory */
    T_TRUE(items == before);
    il__free(items);
}

U_TEST(without_memory_an_array_on_the_heap_stays)
{
    uint32_t *items    = NULL;
    size_t    capacity = 0;

    T_TRUE(il__grow(&items, 0, &capacity, sizeof *items));
    const uint32_t *before = items;
    size_t          n      = capacity;
    il_set_allocator(&none);
    T_TRUE(!il__grow(&items, n, &capacity, sizeof *items));
    il_set_allocator(NULL);
    T_TRUE(items == before);
    T_EQU(capacity, n);
    il__free(items);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(an_array_in_an_arena_keeps_its_items),
        U_ROW(without_memory_an_array_in_an_arena_stays),
        U_ROW(an_array_on_the_heap_keeps_its_items),
        U_ROW(without_memory_an_array_on_the_heap_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
