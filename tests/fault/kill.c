/*
 * kill.c: kill -9 of a writing process at a random moment, again and again. Each time the file is
 * intact and everything acknowledged is in it.
 */
#include <stdio.h>

#include "fault/load.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define ROUNDS 40U

U_TEST(a_writer_is_killed)
{
    struct load        l;
    struct load_worker w;
    struct t_rng       rng;
    uint64_t           seed = t_env_u64("IL_TEST_SEED", 1);
    size_t             n    = 0;

    print_message("# IL_TEST_SEED=%u\n", (unsigned)seed);
    t_rng_init(&rng, seed);
    load_init(&l);
    for (unsigned i = 0; i < ROUNDS; i++) {
        load_start(&l, &w, 1 + i % 8);
        load_await(&w, 1 + t_rng_below(&rng, i % 3 == 0 ? 2000 : 40000), 30000);
        load_kill(&w);
        n = load_judge(&l);
    }
    print_message("# %u kills, %zu acknowledged grants\n", ROUNDS, n);
    T_LESS(100, n);
    load_release(&l);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(a_writer_is_killed) };

    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
