/*
 * early_refresh.c: the probability of an early refresh, which must be the same on every machine,
 * compared with the formula.
 */
#include "core/cache.h"

#include <math.h>

#include "harness/rng.h"
#include "harness/unit.h"

U_TEST(known_answers)
{
    static const struct {
        int64_t  left_ms, build_ms;
        uint32_t chance;
        bool     early;
    } rows[] = {
        { 1, 1000, 0, false },                  /* no chance */
        { 1, 1, UINT32_MAX, false },            /* the smallest time there is */
        { 1, 1000, UINT32_MAX, false },         /* -ln(1 - 2^-32) is next to nothing */
        { 693, 1000, UINT32_C(1) << 31, true }, /* ln(2) */
        { 694, 1000, UINT32_C(1) << 31, false },
        { 22180, 1000, 1, true }, /* 32 ln(2) = 22.18 */
        { 22181, 1000, 1, false },
        { 23000, 1000, 1, false },
        { 1, 1, 1, true },
        { INT64_MAX, 1, 1, false },
        { INT64_MAX, INT64_MAX, 1, false },
        { 1, INT64_MAX, 1, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (il__cache_is_early(rows[i].left_ms, rows[i].build_ms, rows[i].chance) != rows[i].early)
            T_FAIL("row %zu", i);
    }
}

/* The threshold lies within a thousandth of the formula's, or a millisecond. */
U_TEST(follows_the_formula)
{
    struct t_rng r;

    t_rng_init(&r, 1);
    for (unsigned i = 0; i < 100000; i++) {
        uint32_t chance   = (uint32_t)(t_rng_next(&r) >> (32 + t_rng_below(&r, 32))) + 1;
        int64_t  build_ms = 1 + t_rng_below(&r, 1000000);
        double   exact    = (double)build_ms * -log((double)chance / 4294967296.0);
        int64_t  slack    = (int64_t)(exact / 1000 + (double)build_ms / 30000) + 1;
        if (chance == 0)
            continue;
        if ((int64_t)exact - slack > 0)
            T_TRUE(il__cache_is_early((int64_t)exact - slack, build_ms, chance));
        T_TRUE(!il__cache_is_early((int64_t)exact + slack, build_ms, chance));
    }
}

/* Over all chances it happens as often as it should. */
U_TEST(happens_as_often_as_it_should)
{
    for (int64_t left_ms = 100; left_ms <= 6400; left_ms *= 2) {
        unsigned n       = 0;
        unsigned n_early = 0;
        for (uint64_t chance = 1; chance <= UINT32_MAX; chance += 65537, n++)
            n_early += il__cache_is_early(left_ms, 1000, (uint32_t)chance);
        double share = (double)n_early / (double)n;
        T_TRUE(fabs(share - exp(-(double)left_ms / 1000)) < 0.001);
    }
}

/* The less time is left, and the longer a build takes, the more likely. */
U_TEST(is_monotonic)
{
    for (uint64_t chance = 1; chance <= UINT32_MAX; chance = chance * 3 + 1) {
        bool before = true;
        for (int64_t left_ms = 1; left_ms < 30000; left_ms += 7) {
            bool early = il__cache_is_early(left_ms, 1000, (uint32_t)chance);
            T_TRUE(before || !early);
            T_TRUE(!early || il__cache_is_early(left_ms, 1001, (uint32_t)chance));
            before = early;
        }
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(known_answers),
        U_ROW(follows_the_formula),
        U_ROW(happens_as_often_as_it_should),
        U_ROW(is_monotonic),
    };

    return cmocka_run_group_tests_name("early_refresh", tests, NULL, NULL);
}
