/*
 * kill.c: PostgreSQL is stopped under load like `pg_ctl stop -m immediate` and restarted, again and
 * again: nothing acknowledged is lost, no key, job or answer had two owners, fences grow, and the
 * workers continue by themselves.
 */
#include "fault/load.h"
#include "harness/postgres.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define N_WORKERS 3
#define ROUNDS 4U

U_TEST(the_server_is_killed_under_load)
{
    struct t_postgres  p;
    struct load        l;
    struct load_worker w[N_WORKERS];
    struct t_rng       rng;

    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 1));
    t_postgres_init(&p, true, false);
    t_postgres_start(&p, NULL);
    load_init_at(&l, p.url);
    for (unsigned i = 0; i < N_WORKERS; i++)
        load_start(&l, &w[i], 1 + i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < N_WORKERS; i++)
            load_await(&w[i], 1 + t_rng_below(&rng, 5000), 60000);
        t_postgres_kill(&p);
        t_postgres_start(&p, NULL);
    }
    for (unsigned i = 0; i < N_WORKERS; i++)
        load_await(&w[i], 2000, 60000);
    for (unsigned i = 0; i < N_WORKERS; i++)
        load_kill(&w[i]);
    size_t n = load_judge(&l);
    print_message("# %u kills, %zu acknowledged grants\n", ROUNDS, n);
    T_LESS(100, n);
    load_release(&l);
    t_postgres_release(&p);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(the_server_is_killed_under_load) };

    return cmocka_run_group_tests_name("postgres-kill", tests, NULL, NULL);
}
