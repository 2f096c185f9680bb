/*
 * kill.c: redis-server is killed under load, again and again, and restarted on the same files, with
 * `appendfsync always`: nothing acknowledged is lost, no key, job or answer had two owners, fences
 * grow, and the workers continue by themselves.
 */
#include "fault/load.h"
#include "harness/redis.h"
#include "harness/rng.h"
#include "harness/unit.h"

#define N_WORKERS 3
#define ROUNDS 8U

static const char *const synced[] = {
    "--appendonly", "yes", "--appendfsync", "always", "--save", "", NULL
};

U_TEST(the_server_is_killed_under_load)
{
    struct t_redis     r;
    struct load        l;
    struct load_worker w[N_WORKERS];
    struct t_rng       rng;
    char               url[T_PATH_BYTES];

    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 1));
    t_redis_init(&r, true, false);
    t_redis_start(&r, synced);
    t_path(url, "redis+unix://%s?max_ttl=86400", r.socket);
    load_init_at(&l, url);
    for (unsigned i = 0; i < N_WORKERS; i++)
        load_start(&l, &w[i], 1 + i);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < N_WORKERS; i++)
            load_await(&w[i], 1 + t_rng_below(&rng, 20000), 30000);
        t_redis_kill(&r);
        t_redis_start(&r, synced);
    }
    for (unsigned i = 0; i < N_WORKERS; i++)
        load_await(&w[i], 5000, 30000);
    for (unsigned i = 0; i < N_WORKERS; i++)
        load_kill(&w[i]);
    size_t n = load_judge(&l);
    print_message("# %u kills, %zu acknowledged grants\n", ROUNDS, n);
    T_LESS(500, n);
    load_release(&l);
    t_redis_release(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(the_server_is_killed_under_load) };

    return cmocka_run_group_tests_name("redis-kill", tests, NULL, NULL);
}
