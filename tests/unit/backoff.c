/*
 * backoff.c: how long a job waits before its next attempt.
 */
#include "core/job.h"
#include "core/queue.h"
#include "harness/unit.h"

U_TEST(it_doubles_up_to_the_cap)
{
    il_queue_opts opts = il__queue_defaults();
    int64_t       base = 1000;

    for (uint32_t n = 1; n <= IL_ATTEMPTS_MAX; n++) {
        int64_t ms = il__backoff_ms(&opts, "job", n);
        T_TRUE(ms >= base * 3 / 4 && ms <= base * 5 / 4);
        base = MIN(base * 2, 3600000);
    }
}

U_TEST(jobs_are_spread)
{
    il_queue_opts opts  = il__queue_defaults();
    unsigned      n[5]  = { 0 };
    int64_t       least = INT64_MAX;
    int64_t       most  = 0;

    for (unsigned i = 0; i < 10000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "j%u", i);
        int64_t ms = il__backoff_ms(&opts, id, 1);
        T_TRUE(ms >= 750 && ms <= 1250);
        least = MIN(least, ms);
        most  = MAX(most, ms);
        n[MIN((ms - 750) / 100, 4)]++;
    }
    T_EQ(least, 750);
    T_EQ(most, 1250);
    for (unsigned i = 0; i < ARRAY_LEN(n); i++)
        T_TRUE(n[i] > 1500); /* about evenly */
}

/* All engines and all versions agree: these numbers never change. */
U_TEST(it_is_stable)
{
    il_queue_opts opts = il__queue_defaults();

    T_EQ(il__backoff_ms(&opts, "job", 1), il__backoff_ms(&opts, "job", 1));
    T_EQ(il__backoff_ms(&opts, "job", 1), 1024);
    T_EQ(il__backoff_ms(&opts, "job", 2), 2020);
    T_EQ(il__backoff_ms(&opts, "other", 1), 851);
}

U_TEST(odd_settings)
{
    il_queue_opts opts = il__queue_defaults();

    opts.backoff_ms = opts.backoff_max_ms = 1;
    T_EQ(il__backoff_ms(&opts, "job", 1), 1); /* never none */
    opts.backoff_ms     = IL_DELAY_MS_MAX;
    opts.backoff_max_ms = IL_DELAY_MS_MAX;
    for (uint32_t n = 1; n <= IL_ATTEMPTS_MAX; n++) {
        int64_t ms = il__backoff_ms(&opts, "job", n);
        T_TRUE(ms >= IL_DELAY_MS_MAX / 4 * 3 && ms <= IL_DELAY_MS_MAX / 4 * 5);
    }
    opts.backoff_ms     = 5000;
    opts.backoff_max_ms = 100; /* the cap wins */
    T_TRUE(il__backoff_ms(&opts, "job", 1) <= 125);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(it_doubles_up_to_the_cap),
        U_ROW(jobs_are_spread),
        U_ROW(it_is_stable),
        U_ROW(odd_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
