/*
 * storm.c: processes that do everything at once, some of them killed; the invariants hold, balances
 * equal ledgers, counters equal recounts. IL_CAMPUS_CALLS: how many calls, at least; CI makes fewer
 * than `make torture-campus`.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/campus/seed.h"
#include "apps/campus/storm.h"
#include "base/arena.h"
#include "campus/field.h"
#include "harness/rng.h"

#define CALLS 10000
#define LONG 20000 /* then each act succeeds at least once */

static void
tell(void *cookie UNUSED, const struct app_invariant *invariant, int64_t n, const char *key,
     const char *text)
{
    (void)printf("%s: %d offenders, first %s: %s\n", invariant->name, (int)n, key,
                 text != NULL ? text : "");
}

/* A process of a storm that crashes is told, not only missing. */
static void
crash_one(void *cookie, uint64_t n_calls)
{
    bool *done = cookie;
    char  path[64];
    int   pid = 0;

    if (*done || n_calls < 10)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "r");
    T_TRUE(file != NULL);
    T_EQ(fscanf(file, "%d", &pid), 1); /* NOLINT: the kernel writes numbers */
    (void)fclose(file);
    T_EQ(kill(pid, SIGABRT), 0);
    *done = true;
}

C_TEST(a_crash_is_a_failure)
{
    bool                done = false;
    struct campus_call  c    = { .db = f->db, .tenant = F_TENANT };
    struct campus_seed  seed = { .seed = 1, .n_users = 16, .n_tournaments = 2, .n_sessions = 2 };
    struct campus_storm s    = { .store_url   = f->store_url,
                                 .data_url    = f->data_url,
                                 .tenant      = F_TENANT,
                                 .n_processes = 2,
                                 .time_ms     = 100000,
                                 .n_calls_max = 200,
                                 .kill_ms     = 300, /* not over before that */
                                 .n_users     = seed.n_users,
                                 .n_sessions  = seed.n_sessions,
                                 .progress    = crash_one,
                                 .cookie      = &done };
    struct campus_storm_result r;
    il_error                   err;

    T_EQ(campus_seed(&c, &seed, &err), IL_OK);
    il__arena_free(&c.mem);
    t_field_close(f);
    T_EQ(campus_storm(&s, &r, &err), IL_OK);
    T_TRUE(done);
    T_EQ(r.n_failed, 1);
    T_STREQ(r.failure, "a process was killed by signal 6");
    T_EQ(r.n_broken, 0);
}

C_TEST(a_storm_breaks_nothing)
{
    struct campus_call  c    = { .db = f->db, .tenant = F_TENANT };
    struct campus_seed  seed = { .seed = 1, .n_users = 32, .n_tournaments = 3, .n_sessions = 8 };
    struct campus_storm s    = { .store_url   = f->store_url,
                                 .data_url    = f->data_url,
                                 .tenant      = F_TENANT,
                                 .seed        = 7,
                                 .n_processes = 8,
                                 .time_ms     = 600000,
                                 .n_calls_max = t_env_u64("IL_CAMPUS_CALLS", CALLS),
                                 .kill_ms     = 200,
                                 .n_users     = seed.n_users,
                                 .n_sessions  = seed.n_sessions,
                                 .broken      = tell };
    struct campus_storm_result r;
    il_error                   err;

    T_EQ(campus_seed(&c, &seed, &err), IL_OK);
    il__arena_free(&c.mem);
    t_field_close(f);
    if (campus_storm(&s, &r, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_STREQ(r.failure, "");
    T_EQ(r.n_broken, 0);
    T_TRUE(r.n_calls >= s.n_calls_max);
    T_TRUE(r.n_killed > 0);
    for (unsigned i = 0; i < CAMPUS_ACT_COUNT; i++) {
        (void)printf("%s: %d done, %d refused\n", campus_act_names[i], (int)r.n_done[i],
                     (int)r.n_refused[i]);
        T_TRUE(r.n_done[i] > 0 || s.n_calls_max < LONG); /* a short one may miss a rare act */
    }
    T_TRUE(r.n_done[CAMPUS_ACT_enroll] > 0 && r.n_done[CAMPUS_ACT_book] > 0);
    t_field_open(f);
    t_verify(f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { C_ROW(a_crash_is_a_failure),
                                        C_ROW(a_storm_breaks_nothing) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
