/*
 * hash.c: hashes, and the words of the wake-up board derived from them.
 */
#include "base/hash.h"

#include "base/board.h"
#include "harness/unit.h"

U_TEST(equal_names_have_equal_hashes)
{
    T_EQU(il__hash_bytes("abc", 3), il__hash_bytes("abcd", 3));
    T_TRUE(il__hash_bytes("abc", 3) != il__hash_bytes("abd", 3));
    T_TRUE(il__hash_bytes("", 0) != il__hash_bytes("\0", 1));
    T_TRUE(il__hash_mix(1, 2) != il__hash_mix(2, 1));
}

U_TEST(lengths_matter)
{
    static const char zeros[64] = { 0 };

    for (size_t i = 0; i < 64; i++) {
        for (size_t j = i + 1; j < 64; j++)
            T_TRUE(il__hash_bytes(zeros, i) != il__hash_bytes(zeros, j));
    }
}

/* Shared through a file by processes of different builds: this number may never change. */
U_TEST(the_stable_hash_is_stable)
{
    T_TRUE(il__hash_stable("abc", 3, 0) == il__hash_stable("abc", 3, 0));
    T_TRUE(il__hash_stable("abc", 3, 0) != il__hash_stable("abc", 3, 1));
    T_TRUE(il__hash_stable("abc", 3, 0) != il__hash_stable("abd", 3, 0));
}

U_TEST(slots)
{
    unsigned used[IL__BOARD_WORDS] = { 0 };
    unsigned most                  = 0;

    for (unsigned i = 0; i < 40000; i++) {
        char holder[16];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        uint32_t slot = il__board_slot("default", "key", holder);
        T_TRUE(slot >= IL__BOARD_WAITER && slot < IL__BOARD_WORDS);
        most = MAX(most, ++used[slot]);
    }
    T_TRUE(most < 40); /* ten on average: they are spread */
    /* What is joined must not be confused. */
    T_TRUE(il__board_slot("a", "bc", "d") != il__board_slot("ab", "c", "d"));
}

U_TEST(a_board_wakes)
{
    struct il__board b;

    T_TRUE(il__board_init_private(&b));
    uint32_t seen = il__board_read(&b, 7);
    T_EQ(il__board_sleep(&b, 7, seen, 0), false);
    T_EQ(il__board_sleep(&b, 7, seen, 1000000), false);
    il__board_wake(&b, 7);
    T_EQ(il__board_sleep(&b, 7, seen, INT64_C(60000000000)), true); /* not slept over */
    T_TRUE(il__board_read(&b, 7) != seen);
    T_EQ(il__board_read(&b, 8), 0);
    il__board_release(&b);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(equal_names_have_equal_hashes),
        U_ROW(lengths_matter),
        U_ROW(the_stable_hash_is_stable),
        U_ROW(slots),
        U_ROW(a_board_wakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
