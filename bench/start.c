/*
 * start.c: the cost of putting `interlock run KEY --` in front of a command, compared with
 * flock(1). Both are started and waited for alternately. The store exists already.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define N_BLOCKS 5 /* rounds of the result: each the median of a block */
#define N_PER_BLOCK 40

extern char **environ;

/* Start a command without input and output, wait for its exit; returns how long it took. */
static int64_t
time_command(char *const argv[])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attr;
    sigset_t                   none;
    pid_t                      pid;
    int                        status;

    CHECK(posix_spawn_file_actions_init(&files) == 0 && posix_spawnattr_init(&attr) == 0);
    CHECK(posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0);
    CHECK(posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0) == 0);
    CHECK(sigemptyset(&none) == 0 && posix_spawnattr_setsigmask(&attr, &none) == 0);
    CHECK(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK) == 0);
    int64_t start_ns = il__clock_boot_ns();
    int     rc       = posix_spawnp(&pid, argv[0], &files, &attr, argv, environ);
    if (rc != 0)
        die("%s: %s", argv[0], strerror(rc));
    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    int64_t took_ns = il__clock_boot_ns() - start_ns;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("%s failed with status %d", argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    CHECK(posix_spawn_file_actions_destroy(&files) == 0 && posix_spawnattr_destroy(&attr) == 0);
    return took_ns;
}

/* Only set the store; the user's configuration must not matter. */
static void
set_environment(const struct bench *b)
{
    static const char *const theirs[] = { "INTERLOCK_CONFIG", "INTERLOCK_TENANT",
                                          "INTERLOCK_TTL",    "INTERLOCK_WAIT",
                                          "INTERLOCK_GRACE",  "INTERLOCK_RANKS",
                                          "INTERLOCK_SERVER", "INTERLOCK_STORE_TIMEOUT" };
    char                     path[BENCH_PATH_BYTES];
    char                     url[BENCH_PATH_BYTES + 16];

    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        CHECK(unsetenv(theirs[i]) == 0);
    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, "run.db", path));
    CHECK(setenv("INTERLOCK_STORE", url, 1) == 0);
    CHECK(setenv("HOME", b->dir, 1) == 0 && setenv("XDG_CONFIG_HOME", b->dir, 1) == 0);
    CHECK(setenv("XDG_STATE_HOME", b->dir, 1) == 0);
}

/* Ours and the baseline alternately, n times per block. */
static void
compare_commands(struct bench *b, struct result *r, char *const ours[], char *const baseline[])
{
    struct samples all[2] = { 0 };
    unsigned       n      = b->quick ? 1 : N_PER_BLOCK;

    r->n_rounds = b->quick ? 2 : N_BLOCKS;
    (void)time_command(ours); /* creates the store; both are in the page cache then */
    (void)time_command(baseline);
    for (unsigned i = 0; i < r->n_rounds; i++) {
        struct samples block[2] = { 0 };
        for (unsigned j = 0; j < n; j++) {
            samples_add(&block[0], time_command(ours));
            samples_add(&block[1], time_command(baseline));
        }
        r->ours[i]     = (double)samples_quantiles(&block[0]).p50_ns;
        r->baseline[i] = (double)samples_quantiles(&block[1]).p50_ns;
        for (size_t k = 0; k < 2; k++) {
            samples_add_all(&all[k], &block[k]);
            samples_release(&block[k]);
        }
    }
    r->ours_latency     = samples_quantiles(&all[0]);
    r->baseline_latency = samples_quantiles(&all[1]);
    samples_release(&all[0]);
    samples_release(&all[1]);
    report_add(&b->report, r);
}

/* posix_spawn() takes char *, but does not write to them. */
static char *
arg(const char *text, char out[BENCH_PATH_BYTES])
{
    int n = snprintf(out, BENCH_PATH_BYTES, "%s", text);

    if (n < 0 || n >= BENCH_PATH_BYTES)
        die("%s: the path is too long", text);
    return out;
}

void
bench_start(struct bench *b, unsigned unused UNUSED)
{
    char          binary[BENCH_PATH_BYTES];
    char          file[BENCH_PATH_BYTES];
    char          run[] = "run", key[] = "bench", dashes[] = "--", command[] = "true";
    char          flock[] = "flock", version[] = "--version";
    struct result r = { .name         = "run",
                        .what         = "interlock run KEY -- true",
                        .against      = "flock FILE true",
                        .durability   = BENCH_FULL,
                        .unit         = UNIT_NS,
                        .wanted       = WANTED_RATIO_AT_MOST,
                        .wanted_value = 3 };

    (void)arg(b->binary, binary);
    (void)temp_path(b, "flock", file);
    set_environment(b);
    compare_commands(b, &r, (char *[]){ binary, run, key, dashes, command, NULL },
                     (char *[]){ flock, file, command, NULL });
    r.name       = "version";
    r.what       = "interlock --version";
    r.against    = "true";
    r.durability = BENCH_MEMORY;
    r.wanted     = WANTED_NOTHING;
    compare_commands(b, &r, (char *[]){ binary, version, NULL }, (char *[]){ command, NULL });
}
