/*
 * fence.c: the counter that fences and tokens are drawn from, and the wall clock.
 */
#include "core/fence.h"

#include "harness/unit.h"

#define NOW_US INT64_C(1800000000000000)

static uint64_t
draw(uint64_t *last, int64_t wall_us)
{
    *last = il__fence_floor(*last, wall_us);
    return il__fence_next(last);
}

U_TEST(not_below_the_clock)
{
    uint64_t last = 0;

    T_EQU(draw(&last, NOW_US), (uint64_t)NOW_US);
    T_EQU(draw(&last, NOW_US), (uint64_t)NOW_US + 1); /* the clock stands still */
    T_EQU(draw(&last, NOW_US + 1000), (uint64_t)NOW_US + 1000);
    last = (uint64_t)NOW_US - 5000; /* a backup was restored */
    T_EQU(draw(&last, NOW_US + 2000), (uint64_t)NOW_US + 2000);
}

U_TEST(a_clock_that_is_set_back_changes_nothing)
{
    static const int64_t clocks[] = { NOW_US - 1000000, 1, 0, -1, INT64_MIN };
    uint64_t             last     = (uint64_t)NOW_US;

    for (size_t i = 0; i < ARRAY_LEN(clocks); i++)
        T_EQU(draw(&last, clocks[i]), (uint64_t)NOW_US + 1 + i);
    last = 0;
    T_EQU(draw(&last, 0), 1);
}

/* It would leave no fences for later. */
U_TEST(a_clock_beyond_all_fences_is_ignored)
{
    static const int64_t clocks[] = { (int64_t)IL__FENCE_CLOCK_END, (int64_t)IL__FENCE_END - 1,
                                      (int64_t)IL__FENCE_END, INT64_MAX };
    uint64_t             last     = 7;

    for (size_t i = 0; i < ARRAY_LEN(clocks); i++)
        T_EQU(draw(&last, clocks[i]), 8 + i);
    T_EQU(draw(&last, (int64_t)IL__FENCE_CLOCK_END - 1), IL__FENCE_CLOCK_END - 1);
    T_EQU(draw(&last, INT64_MAX), IL__FENCE_CLOCK_END);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(not_below_the_clock),
                                               U_ROW(a_clock_that_is_set_back_changes_nothing),
                                               U_ROW(a_clock_beyond_all_fences_is_ignored) };

    return cmocka_run_group_tests_name("fence", tests, NULL, NULL);
}
