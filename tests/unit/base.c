/*
 * base.c: MIN and MAX; the beginning of a file.
 */
#include "base/base.h"

#include "harness/tmp.h"
#include "harness/unit.h"

/* What a clock gives: more with each look. */
static int64_t
look(int64_t *at)
{
    return ++*at;
}

U_TEST(min_and_max_look_once)
{
    int64_t at      = 0;
    size_t  n_bytes = 5000;

    T_EQ(MIN(look(&at), 10), 1);
    T_EQ(MAX(10 - look(&at), 0), 8);
    T_EQ(MIN(MAX(look(&at), 1), 10), 3);
    T_EQ(MAX(0, MIN(7, look(&at))), 4);
    T_EQ(at, 4);
    T_EQU(MIN(n_bytes, 4096), 4096);
    T_EQ(MAX(-1, INT64_C(-2)), -1);
}

U_TEST(the_beginning_of_a_file)
{
    char dir[T_PATH_BYTES], path[T_PATH_BYTES], text[8] = "before";

    T_EQU(il__read_small("/nowhere/at/all", text, sizeof text), 0);
    T_STREQ(text, "");

    t_tmp_make(dir);
    t_path(path, "%s/small", dir);
    t_file_write(path, "0123456", 7);
    T_EQU(il__read_small(path, text, sizeof text), 7);
    T_STREQ(text, "0123456");
    T_EQU(il__read_small(path, text, 5), 4);
    T_STREQ(text, "0123");
    T_EQU(il__read_small("/dev/null", text, sizeof text), 0);
    T_STREQ(text, "");
    T_EQU(il__read_small(dir, text, sizeof text), 0);
    t_tmp_remove(dir);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(min_and_max_look_once),
        U_ROW(the_beginning_of_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
