/*
 * diff.c: the differential test. Random histories on the memory engine and on another one, compared
 * op by op. On a difference the history is reduced to the relevant steps, and the seed is printed.
 *
 *   IL_TEST_SEEDS=120   how many histories
 *   IL_TEST_SEED=N      only this one (as it was printed)
 *   IL_TEST_STEPS=400   steps of a history
 *   IL_TEST_STORE=NAME  the engine (sqlite)
 *   IL_TEST_FAMILIES=N  only these, bits of enum il__family; other histories then
 *   IL_TEST_COUNTS=1    say how often each op ended how
 */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "diff/world.h"
#include "harness/postgres.h"
#include "harness/server.h"

#define SHRINK_MS_MAX 30000

static uint64_t seed_now;

/* A failed CHECK ends the process: say which history it was. */
static void
on_abort(int signo UNUSED)
{
    char text[96];
    int n = snprintf(text, sizeof text, "aborted: IL_TEST_SEED=%" PRIu64 " replays it\n", seed_now);

    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(2);
}

/* Does the history without steps [from, from + n_out) still fail? Then it is the new one. */
static bool
try_without(const struct t_engine *e, bool ranked, struct step *steps, size_t *n, size_t from,
            size_t n_out, char why[T_WHY_BYTES * 4])
{
    struct step *fewer = calloc(*n, sizeof *fewer);
    size_t       n_now = *n - n_out;

    CHECK(fewer != NULL);
    memcpy(fewer, steps, from * sizeof *steps);
    memcpy(fewer + from, steps + from + n_out, (n_now - from) * sizeof *steps);
    size_t i_bad = world_run(e, ranked, fewer, n_now, why);
    bool   fails = i_bad < n_now;
    if (fails) {
        *n = i_bad + 1;
        memcpy(steps, fewer, *n * sizeof *steps);
    }
    free(fewer);
    return fails;
}

static void
shrink(const struct t_engine *e, bool ranked, struct step *steps, size_t *n,
       char why[T_WHY_BYTES * 4])
{
    char    try_why[T_WHY_BYTES * 4];
    int64_t until  = t_real_ms() + SHRINK_MS_MAX;
    size_t  chunk  = *n / 2;
    bool    shrank = false;

    while (chunk >= 1 && t_real_ms() < until) {
        for (size_t from = 0; from + chunk <= *n && *n > 1 && t_real_ms() < until;) {
            if (try_without(e, ranked, steps, n, from, chunk, try_why)) {
                memcpy(why, try_why, sizeof try_why);
                shrank = true;
            } else {
                from += chunk;
            }
        }
        if (chunk > 1 || !shrank) /* single steps as long as one more can go */
            chunk /= 2;
        shrank = false;
    }
}

static bool
run_seed(const struct t_engine *e, uint64_t seed, size_t n_steps)
{
    struct step *steps  = calloc(n_steps, sizeof *steps);
    bool         ranked = history_ranked(seed);
    char         why[T_WHY_BYTES * 4];

    CHECK(steps != NULL);
    seed_now = seed;
    history_make(seed, steps, n_steps);
    size_t n = world_run(e, ranked, steps, n_steps, why);
    if (n < n_steps) {
        (void)fprintf(stderr, "seed %" PRIu64 " differs at step %zu of %zu:\n%s\n", seed, n,
                      n_steps, why);
        n++;
        shrink(e, ranked, steps, &n, why);
        (void)fprintf(stderr, "%zu steps are enough%s:\n", n, ranked ? " (ranks a, b, c)" : "");
        for (size_t i = 0; i < n; i++)
            step_print(stderr, i, &steps[i]);
        (void)fprintf(stderr, "%s\nIL_TEST_SEED=%" PRIu64 " replays it\n", why, seed);
        free(steps);
        return false;
    }
    free(steps);
    return true;
}

int
main(void)
{
    const char            *name    = getenv("IL_TEST_STORE");
    const struct t_engine *e       = t_engine_find(name != NULL ? name : "sqlite");
    size_t                 n_steps = t_env_u64("IL_TEST_STEPS", 400);
    uint64_t               n_seeds = t_env_u64("IL_TEST_SEEDS", 120);
    uint64_t               only    = t_env_u64("IL_TEST_SEED", UINT64_MAX);
    uint64_t               n_bad   = 0;

    struct sigaction action = { .sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND };
    CHECK(sigaction(SIGABRT, &action, NULL) == 0);
    if (e->server == &t_server_postgres)
        t_postgres_reuse();
    if (only != UINT64_MAX)
        return run_seed(e, only, n_steps) ? EXIT_SUCCESS : EXIT_FAILURE;
    for (uint64_t seed = 0; seed < n_seeds && n_bad < 3; seed++)
        n_bad += !run_seed(e, seed, n_steps);
    if (t_env_u64("IL_TEST_COUNTS", 0) != 0)
        world_print_counts(stdout);
    (void)printf("%s: %" PRIu64 " histories of %zu steps, %" PRIu64 " differ\n", e->name, n_seeds,
                 n_steps, n_bad);
    return n_bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
