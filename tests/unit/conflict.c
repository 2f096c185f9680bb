/*
 * conflict.c: every pair of the mode conflict table.
 */
#include "core/conflict.h"

#include "harness/unit.h"

#define X IL_MODE_EXCLUSIVE
#define S IL_MODE_SHARED
#define P IL_MODE_PERMIT

U_TEST(every_pair)
{
    static const struct {
        il_mode  live;
        uint32_t live_n;
        il_mode  asked;
        uint32_t asked_n;
        bool     conflict; /* of the two leases by themselves */
    } rows[] = {
        { X, 0, X, 0, true },  { X, 0, S, 0, true }, { X, 0, P, 2, true },  { S, 0, X, 0, true },
        { S, 0, S, 0, false }, { S, 0, P, 2, true }, { P, 2, X, 0, true },  { P, 2, S, 0, true },
        { P, 2, P, 2, false }, { P, 2, P, 3, true }, { P, 1, P, 1, false },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool got = il__modes_conflict(rows[i].live, rows[i].live_n, rows[i].asked, rows[i].asked_n);
        if (got != rows[i].conflict)
            T_FAIL("%s/%u beside %s/%u", il_mode_name(rows[i].live), rows[i].live_n,
                   il_mode_name(rows[i].asked), rows[i].asked_n);
    }
}

U_TEST(nothing_live_is_compatible)
{
    struct il__occupancy none = { 0 };

    T_EQ(il__conflict(&none, X, 0), IL__COMPATIBLE);
    T_EQ(il__conflict(&none, S, 0), IL__COMPATIBLE);
    T_EQ(il__conflict(&none, P, 1), IL__COMPATIBLE);
}

U_TEST(loads)
{
    struct il__occupancy live = { 0 };

    il__occupancy_add(&live, X, 0);
    T_EQ(il__conflict(&live, X, 0), IL__CONFLICT);
    T_EQ(il__conflict(&live, S, 0), IL__CONFLICT);
    T_EQ(il__conflict(&live, P, 9), IL__CONFLICT);

    live = (struct il__occupancy){ 0 };
    for (unsigned i = 0; i < 100; i++) {
        T_EQ(il__conflict(&live, S, 0), IL__COMPATIBLE);
        il__occupancy_add(&live, S, 0);
    }
    T_EQ(il__conflict(&live, X, 0), IL__CONFLICT);
    T_EQ(il__conflict(&live, P, 200), IL__CONFLICT);

    live = (struct il__occupancy){ 0 };
    for (unsigned i = 0; i < 3; i++) {
        T_EQ(il__conflict(&live, P, 3), IL__COMPATIBLE);
        il__occupancy_add(&live, P, 3);
        T_EQ(il__conflict(&live, P, 4), IL__OTHER_N);
        T_EQ(il__conflict(&live, P, 2), IL__OTHER_N);
    }
    T_EQ(il__conflict(&live, P, 3), IL__CONFLICT);
    T_EQ(il__conflict(&live, X, 0), IL__CONFLICT);
    T_EQ(il__conflict(&live, S, 0), IL__CONFLICT);
}

U_TEST(names)
{
    T_STREQ(il_mode_name(X), "exclusive");
    T_STREQ(il_mode_name(S), "shared");
    T_STREQ(il_mode_name(P), "permit");
    T_STREQ(il_mode_name(IL_MODE_COUNT), "unknown");
    T_STREQ(il_mode_name((il_mode)-1), "unknown");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_pair),
        U_ROW(nothing_live_is_compatible),
        U_ROW(loads),
        U_ROW(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
