/*
 * pipeline_zone.c: schedules in a time zone. The jumps of 2026: Berlin on 29 March at 01:00 UTC
 * (02:00 to 03:00) and on 25 October (03:00 back to 02:00); New York on 8 March (02:00 to 03:00)
 * and on 1 November (02:00 back to 01:00); Lord Howe, by half an hour, on 5 April (02:00 back to
 * 01:30) and on 4 October (02:00 to 02:30). Checked against the C library's calendar, too.
 */
#include "unit/pipeline.h"

#include <inttypes.h>
#include <time.h>

#include "apps/runner/pipeline_internal.h"
#include "base/parse.h"
#include "base/zone.h"
#include "core/cron.h"
#include "core/limits.h"
#include "harness/rng.h"

static const struct il__zone *
zone(const char *name)
{
    const struct il__zone *z   = NULL;
    il_error               err = { 0 };

    if (il__zone_get(name, &z, &err) != IL_OK)
        T_FAIL("%s: %s", name, err.message);
    return z;
}

static int64_t
at(const char *utc)
{
    char    text[40];
    int64_t ms;

    (void)snprintf(text, sizeof text, "%s:00Z", utc);
    if (!il__time_parse(text, &ms))
        T_FAIL("'%s' is no time", utc);
    return ms;
}

/* The ticks that follow `after`, in UTC, separated by spaces. */
static void
ticks(const char *zone_name, const char *schedule, const char *after, const char *expected)
{
    const struct il__zone  *z = zone(zone_name);
    struct il__cron         c;
    AUTO_BUF struct il__buf all = { 0 };
    int64_t                 t   = at(after);

    T_EQ(il__cron_parse(schedule, &c, NULL), IL_OK);
    il__buf_init(&all, 4096);
    for (size_t n = 0; all.n_bytes < strlen(expected) && n < 100; n++) {
        char text[IL__TIME_TEXT_BYTES];
        t = il__cron_next_in(z, &c, t);
        il__buf_addf(&all, "%s%.16s", n > 0 ? " " : "", il__time_text(t, text));
    }
    if (strcmp(il__buf_str(&all), expected) != 0)
        T_FAIL("'%s' in %s after %s:\n%s, not\n%s", schedule, zone_name, after, il__buf_str(&all),
               expected);
}

U_TEST(utc)
{
    ticks("UTC", "0 3 * * *", "2026-03-29T00:00", "2026-03-29T03:00 2026-03-30T03:00");
    ticks("Etc/UTC", "0 3 * * *", "2026-03-29T00:00", "2026-03-29T03:00 2026-03-30T03:00");
    ticks("Etc/GMT+5", "0 3 * * *", "2026-03-29T00:00", "2026-03-29T08:00 2026-03-30T08:00");
    ticks("Asia/Kolkata", "0 3 * * *", "2026-03-29T00:00", "2026-03-29T21:30 2026-03-30T21:30");
}

U_TEST(berlin_forward)
{
    ticks("Europe/Berlin", "0 3 * * *", "2026-03-27T12:00",
          "2026-03-28T02:00 2026-03-29T01:00 2026-03-30T01:00");
    /* 02:30 does not exist on the 29th: it comes at the jump */
    ticks("Europe/Berlin", "30 2 * * *", "2026-03-27T12:00",
          "2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30");
    /* several that do not exist come as one; one that comes then anyway is not doubled */
    ticks("Europe/Berlin", "*/15 2 * * *", "2026-03-28T12:00",
          "2026-03-29T01:00 2026-03-30T00:00 2026-03-30T00:15");
    ticks("Europe/Berlin", "0,30 2,3 * * *", "2026-03-28T12:00",
          "2026-03-29T01:00 2026-03-29T01:30 2026-03-30T00:00");
    /* every hour: time that passes */
    ticks("Europe/Berlin", "30 * * * *", "2026-03-28T23:45",
          "2026-03-29T00:30 2026-03-29T01:30 2026-03-29T02:30");
    ticks("Europe/Berlin", "*/30 * * * *", "2026-03-29T00:29",
          "2026-03-29T00:30 2026-03-29T01:00 2026-03-29T01:30");
    /* asked at the jump, and just before it */
    ticks("Europe/Berlin", "30 2 * * *", "2026-03-29T00:59", "2026-03-29T01:00");
    ticks("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00", "2026-03-30T00:30");
}

U_TEST(berlin_back)
{
    ticks("Europe/Berlin", "0 3 * * *", "2026-10-24T12:00", "2026-10-25T02:00 2026-10-26T02:00");
    /* 02:30 comes twice: the first one counts */
    ticks("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", "2026-10-25T00:30 2026-10-26T01:30");
    ticks("Europe/Berlin", "30 2 * * *", "2026-10-25T00:30", "2026-10-26T01:30");
    ticks("Europe/Berlin", "30 2 * * *", "2026-10-25T01:15", "2026-10-26T01:30");
    ticks("Europe/Berlin", "*/30 1-3 * * *", "2026-10-24T22:59",
          "2026-10-24T23:00 2026-10-24T23:30 2026-10-25T00:00 2026-10-25T00:30 2026-10-25T02:00 "
          "2026-10-25T02:30");
    /* every hour: each time */
    ticks("Europe/Berlin", "30 * * * *", "2026-10-25T00:00",
          "2026-10-25T00:30 2026-10-25T01:30 2026-10-25T02:30");
}

U_TEST(new_york)
{
    ticks("America/New_York", "30 2 * * *", "2026-03-07T12:00",
          "2026-03-08T07:00 2026-03-09T06:30");
    ticks("America/New_York", "0 9 * * 1-5", "2026-03-06T15:00",
          "2026-03-09T13:00 2026-03-10T13:00");
    ticks("America/New_York", "30 1 * * *", "2026-10-31T12:00",
          "2026-11-01T05:30 2026-11-02T06:30");
    ticks("America/New_York", "30 * * * *", "2026-11-01T05:00",
          "2026-11-01T05:30 2026-11-01T06:30 2026-11-01T07:30");
}

U_TEST(lord_howe)
{
    ticks("Australia/Lord_Howe", "45 1 * * *", "2026-04-03T20:00",
          "2026-04-04T14:45 2026-04-05T15:15");
    ticks("Australia/Lord_Howe", "15 2 * * *", "2026-10-02T20:00",
          "2026-10-03T15:30 2026-10-04T15:15");
    ticks("Australia/Lord_Howe", "*/15 * * * *", "2026-10-03T15:14",
          "2026-10-03T15:15 2026-10-03T15:30 2026-10-03T15:45");
}

U_TEST(rare_days)
{
    ticks("Europe/Berlin", "0 0 29 2 *", "2026-01-01T00:00", "2028-02-28T23:00 2032-02-28T23:00");
    ticks("America/New_York", "0 0 1 1 *", "2026-06-01T00:00", "2027-01-01T05:00 2028-01-01T05:00");
    ticks("Europe/Berlin", "0 12 1 7 *", "2090-01-01T00:00", "2090-07-01T10:00"); /* by the rule */
    ticks("Europe/Dublin", "0 12 1 7 *", "2050-01-01T00:00",
          "2050-07-01T11:00"); /* whose winter is the exception */
}

U_TEST(no_such_zone)
{
    static const char *const names[] = {
        "Europe/Berln",
        "",
        "/etc/passwd",
        "../zoneinfo/UTC",
        "Europe",
        "a//b",
        "zone.tab",
        "Europe/",
        "-x",
        "x x",
        "0123456789012345678901234567890123456789012345678901234567890123"
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct il__zone *z;
        il_error               err = { 0 };
        if (il__zone_get(names[i], &z, &err) != IL_INVAL)
            T_FAIL("'%s' is a zone", names[i]);
        T_HAS(err.message, "time zone");
    }
}

/* The transitions against localtime_r(), which knows one zone at a time. */
U_TEST(as_the_c_library_says)
{
    static const char *const names[] = {
        "Europe/Berlin",     "America/New_York",  "Australia/Lord_Howe", "Europe/Dublin",
        "America/Sao_Paulo", "Africa/Casablanca", "Asia/Gaza",           "America/Nuuk",
        "Pacific/Apia",      "Asia/Tehran",       "Europe/London",       "America/St_Johns",
        "Antarctica/Troll",  "Pacific/Chatham",   "Asia/Kathmandu"
    };
    struct t_rng rng;

    t_rng_init(&rng, 1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct il__zone *z = zone(names[i]);
        T_EQ(setenv("TZ", names[i], 1), 0);
        tzset();
        for (int n = 0; n < 20000; n++) {
            time_t    s = (time_t)(t_rng_below(&rng, 4070908800U)); /* to 2099 */
            struct tm tm;
            size_t    j = 0;
            while (j + 1 < z->n && z->transitions[j + 1].at_ms <= (int64_t)s * 1000)
                j++;
            T_TRUE(localtime_r(&s, &tm) != NULL);
            if (tm.tm_gmtoff != z->transitions[j].offset_s)
                T_FAIL("%s at %lld: %d, not %ld", names[i], (long long)s,
                       z->transitions[j].offset_s, tm.tm_gmtoff);
        }
    }
    T_EQ(unsetenv("TZ"), 0);
    tzset();
}

/* Files that are cut off or changed are refused or read, never beyond their end. */
U_TEST(bad_files)
{
    static struct il__zone_transition out[IL__ZONE_TRANSITIONS_MAX];
    unsigned char                     data[4096];
    struct t_rng                      rng;
    FILE                             *f = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");

    T_TRUE(f != NULL);
    size_t n = fread(data, 1, sizeof data, f);
    (void)fclose(f);
    T_TRUE(il__zone_parse(data, n, out) > 100);
    for (size_t i = 0; i < n; i++) {
        unsigned char *cut = malloc(i + 1); /* so that a sanitizer sees what is read beyond */
        T_TRUE(cut != NULL);
        memcpy(cut, data, i);
        (void)il__zone_parse(cut, i, out); /* any answer is fine */
        free(cut);
    }
    t_rng_init(&rng, 2);
    for (int i = 0; i < 20000; i++) {
        size_t        where = t_rng_below(&rng, (uint32_t)n);
        unsigned char was   = data[where];
        data[where]         = (unsigned char)t_rng_below(&rng, 256);
        T_TRUE(il__zone_parse(data, n, out) <= IL__ZONE_TRANSITIONS_MAX);
        data[where] = was;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(utc),       U_ROW(berlin_forward), U_ROW(berlin_back),  U_ROW(new_york),
        U_ROW(lord_howe), U_ROW(rare_days),      U_ROW(no_such_zone), U_ROW(as_the_c_library_says),
        U_ROW(bad_files),
    };

    return cmocka_run_group_tests_name("pipeline_zone", tests, NULL, NULL);
}
