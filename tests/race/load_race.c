/*
 * load_race.c: several processes on one SQLite file under load, one of them killed with kill -9
 * again and again while the others continue. Afterwards the file is intact and nothing acknowledged
 * is lost.
 */
#include <stdio.h>

#include "fault/load.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define PROCESSES 4U
#define KILLS 50U

U_TEST(some_are_killed_the_others_go_on)
{
    struct load         l;
    struct load_worker *w    = calloc(PROCESSES, sizeof *w);
    uint64_t            seed = t_env_u64("IL_TEST_SEED", 1);
    struct t_rng        rng;

    CHECK(w != NULL);
    print_message("# IL_TEST_SEED=%u\n", (unsigned)seed);
    t_rng_init(&rng, seed);
    load_init(&l);
    for (unsigned i = 0; i < PROCESSES; i++)
        load_start(&l, &w[i], 1 + i % 3);
    for (unsigned i = 0; i < KILLS; i++) {
        unsigned victim = t_rng_below(&rng, PROCESSES);
        load_await(&w[victim], 1 + t_rng_below(&rng, 6000), 60000);
        load_kill(&w[victim]);
        load_start(&l, &w[victim], 1 + i % 4);
        load_await(&w[(victim + 1) % PROCESSES], 1, 60000); /* the others were not held up */
    }
    for (unsigned i = 0; i < PROCESSES; i++)
        load_kill(&w[i]);
    print_message("# %u kills, %zu acknowledged grants\n", KILLS + PROCESSES, load_judge(&l));
    load_release(&l);
    free(w);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(some_are_killed_the_others_go_on) };

    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
