/*
 * cron.c: schedules: which are valid, and when they tick. Checked against the C library's calendar,
 * minute by minute.
 */
#include "core/cron.h"

#include <inttypes.h>
#include <time.h>

#include "core/limits.h"
#include "harness/rng.h"
#include "harness/unit.h"

static struct il__cron
parsed(const char *text)
{
    struct il__cron c;
    il_error        err = { 0 };

    if (il__cron_parse(text, &c, &err) != IL_OK)
        T_FAIL("'%s': %s", text, err.message);
    return c;
}

/* "2027-01-15 08:00" in ms since 1970. */
static int64_t
at(const char *text)
{
    struct tm tm = { 0 };

    T_TRUE(sscanf(text, "%d-%d-%d %d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
                  &tm.tm_min) == 5);
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t)timegm(&tm) * 1000;
}

static void
ticks(const char *schedule, const char *after, const char *expected)
{
    struct il__cron c    = parsed(schedule);
    int64_t         tick = il__cron_next(&c, at(after));

    if (tick != at(expected))
        T_FAIL("'%s' after %s: %" PRId64 ", not %s", schedule, after,
               tick / 60000 - at(after) / 60000, expected);
}

static void
refused(const char *text, const char *why)
{
    struct il__cron c;
    il_error        err = { 0 };

    if (il__cron_parse(text, &c, &err) != IL_INVAL)
        T_FAIL("'%s' is a schedule", text);
    T_HAS(err.message, why);
}

U_TEST(simple_ones)
{
    ticks("* * * * *", "2027-01-15 08:00", "2027-01-15 08:01");
    ticks("0 * * * *", "2027-01-15 08:00", "2027-01-15 09:00");
    ticks("30 2 * * *", "2027-01-15 08:00", "2027-01-16 02:30");
    ticks("59 23 31 12 *", "2027-01-15 08:00", "2027-12-31 23:59");
    ticks("0 0 1 * *", "2027-12-31 23:59", "2028-01-01 00:00");
    ticks("0 0 31 * *", "2027-01-31 00:00", "2027-03-31 00:00");
    ticks("  5   4  *  *  *  ", "2027-01-15 04:04", "2027-01-15 04:05");
}

U_TEST(strictly_after)
{
    struct il__cron c = parsed("* * * * *");
    int64_t         t = at("2027-01-15 08:00");

    T_EQ(il__cron_next(&c, t), t + 60000);
    T_EQ(il__cron_next(&c, t - 1), t);
    T_EQ(il__cron_next(&c, t + 1), t + 60000);
    T_EQ(il__cron_next(&c, t + 59999), t + 60000);
}

U_TEST(lists_ranges_steps)
{
    ticks("1,5,9 * * * *", "2027-01-15 08:05", "2027-01-15 08:09");
    ticks("10-12 * * * *", "2027-01-15 08:10", "2027-01-15 08:11");
    ticks("10-12 * * * *", "2027-01-15 08:12", "2027-01-15 09:10");
    ticks("*/15 * * * *", "2027-01-15 08:00", "2027-01-15 08:15");
    ticks("*/15 * * * *", "2027-01-15 08:45", "2027-01-15 09:00");
    ticks("5/20 * * * *", "2027-01-15 08:05", "2027-01-15 08:25");
    ticks("5/20 * * * *", "2027-01-15 08:45", "2027-01-15 09:05");
    ticks("10-30/10,55 * * * *", "2027-01-15 08:30", "2027-01-15 08:55");
    ticks("0 8-17/3 * * *", "2027-01-15 14:00", "2027-01-15 17:00");
    ticks("*/59 * * * *", "2027-01-15 08:00", "2027-01-15 08:59");
    ticks("*/100 * * * *", "2027-01-15 08:00", "2027-01-15 09:00");
    ticks("0 0 */31 * *", "2027-01-15 08:00", "2027-02-01 00:00");
}

U_TEST(names)
{
    ticks("0 0 1 FEB *", "2027-01-15 08:00", "2027-02-01 00:00");
    ticks("0 0 1 jan,dec *", "2027-01-15 08:00", "2027-12-01 00:00");
    ticks("0 0 * * SUN", "2027-01-15 08:00", "2027-01-17 00:00"); /* a Friday */
    ticks("0 0 * * 0", "2027-01-15 08:00", "2027-01-17 00:00");
    ticks("0 0 * * 7", "2027-01-15 08:00", "2027-01-17 00:00");
    ticks("0 0 * * mon-fri", "2027-01-15 08:00", "2027-01-18 00:00");
    ticks("0 0 * * FRI-SUN", "2027-01-15 08:00", "2027-01-16 00:00");
    ticks("0 0 * * FRI-SUN", "2027-01-17 00:00", "2027-01-22 00:00");
    ticks("0 0 * * 5-7", "2027-01-16 08:00", "2027-01-17 00:00");
    ticks("0 0 * * sun-tue", "2027-01-15 08:00", "2027-01-17 00:00");
    ticks("0 0 * * */2", "2027-01-15 08:00", "2027-01-16 00:00"); /* 0, 2, 4, 6 */
}

U_TEST(shorthands)
{
    ticks("@hourly", "2027-01-15 08:00", "2027-01-15 09:00");
    ticks("@daily", "2027-01-15 08:00", "2027-01-16 00:00");
    ticks("@midnight", "2027-01-15 08:00", "2027-01-16 00:00");
    ticks("@weekly", "2027-01-15 08:00", "2027-01-17 00:00");
    ticks("@monthly", "2027-01-15 08:00", "2027-02-01 00:00");
    ticks("@yearly", "2027-01-15 08:00", "2028-01-01 00:00");
    ticks("@ANNUALLY", "2027-01-15 08:00", "2028-01-01 00:00");
}

/* As in cron: both given, either matches; one of them begins with a star, both must. */
U_TEST(day_and_weekday)
{
    ticks("0 0 20 * MON", "2027-01-15 08:00", "2027-01-18 00:00");
    ticks("0 0 20 * MON", "2027-01-18 00:00", "2027-01-20 00:00");
    ticks("0 0 * * MON", "2027-01-18 00:00", "2027-01-25 00:00");
    ticks("0 0 20 * *", "2027-01-18 00:00", "2027-01-20 00:00");
    /* 1, 11, 21, 31 and a Monday */
    ticks("0 0 */10 * MON", "2027-01-15 08:00", "2027-02-01 00:00");
    ticks("0 0 30 2 MON", "2027-01-15 08:00", "2027-02-01 00:00"); /* comes on Mondays */
}

U_TEST(leap_days)
{
    ticks("0 0 29 2 *", "2027-01-15 08:00", "2028-02-29 00:00");
    ticks("0 0 29 2 *", "2028-02-29 00:00", "2032-02-29 00:00");
    ticks("0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00"); /* 2100 is none */
    ticks("0 0 29 2 *", "2396-02-29 00:00", "2400-02-29 00:00"); /* 2400 is one */
    ticks("0 0 28 2 *", "2099-03-01 00:00", "2100-02-28 00:00");
    ticks("59 23 28-31 2 *", "2100-02-28 23:59", "2101-02-28 23:59");
    /* the longest gaps there are */
    ticks("0 0 */31 2 MON", "2027-02-01 00:00", "2038-02-01 00:00");
    ticks("0 0 */31 2 MON", "2094-02-01 00:00", "2100-02-01 00:00");
}

U_TEST(the_ends_of_time)
{
    struct il__cron c = parsed("* * * * *");

    T_EQ(il__cron_next(&c, INT64_MIN), 0);
    T_EQ(il__cron_next(&c, -60000), 0);
    T_EQ(il__cron_next(&c, -1), 0);
    T_EQ(il__cron_next(&c, 0), 60000);
    T_EQ(il__cron_next(&c, at("9999-12-31 23:58")), at("9999-12-31 23:59"));
    T_EQ(il__cron_next(&c, at("9999-12-31 23:59")), IL__NEVER);
    T_EQ(il__cron_next(&c, INT64_MAX - 1), IL__NEVER);
    T_EQ(il__cron_next(&c, INT64_MAX), IL__NEVER);
    c = parsed("0 0 29 2 *");
    T_EQ(il__cron_next(&c, at("9996-02-29 00:00")), IL__NEVER);
}

U_TEST(what_is_refused)
{
    refused("", "has 0 fields, expected five");
    refused("   ", "has 0 fields, expected five");
    refused("* * * *", "has 4 fields, expected five");
    refused("* * * * * *", "more than five fields");
    refused("60 * * * *", "minute '60' is out of range");
    refused("* 24 * * *", "hour '24' is out of range");
    refused("* * 0 * *", "day of the month '0' is out of range");
    refused("* * 32 * *", "day of the month '32' is out of range");
    refused("* * * 0 *", "month '0' is out of range");
    refused("* * * 13 *", "month '13' is out of range");
    refused("* * * * 8", "weekday '8' is out of range");
    refused("9-5 * * * *", "minute '9-5' is out of range");
    refused("* * * * tue-mon", "weekday 'tue-mon' is out of range");
    refused("*/0 * * * *", "minute '*/0' needs a step of at least 1");
    refused("*/ * * * *", "step");
    refused("*/x * * * *", "step");
    refused("5- * * * *", "is not a valid range");
    refused("-5 * * * *", "is not a number or name");
    refused("1,,2 * * * *", "minute '' is not a number or name");
    refused("1, * * * *", "is not a number or name");
    refused("x * * * *", "minute 'x' is not a number or name");
    refused("1x * * * *", "is not a number or name");
    refused("** * * * *", "is not a number or name");
    refused("*5 * * * *", "is not a number or name");
    refused("JAN * * * *", "minute 'JAN' is not a number or name");
    refused("* * * MON *", "month 'MON' is not a number or name");
    refused("* * * JANUARY *", "is not a number or name");
    refused("99999999999999999999 * * * *", "is not a number or name");
    refused("1-2-3 * * * *", "is not a number or name");
    refused("1/2/3 * * * *", "is not a number or name");
    refused("@reboot", "not one of");
    refused("@", "not one of");
    refused("0 0 30 2 *", "never matches");
    refused("0 0 31 4,6,9,11 *", "never matches");
}

/* ---- against the C library ------------------------------------------------------------------- */

static bool
matches(const struct il__cron *c, int64_t ms)
{
    time_t    sec = (time_t)(ms / 1000);
    struct tm tm;

    T_TRUE(gmtime_r(&sec, &tm) != NULL);
    bool day     = (c->days >> tm.tm_mday & 1) != 0;
    bool weekday = (c->weekdays >> tm.tm_wday & 1) != 0;
    bool either  = c->any_day || c->any_weekday ? day && weekday : day || weekday;
    return (c->minutes >> tm.tm_min & 1) != 0 && (c->hours >> tm.tm_hour & 1) != 0 &&
           (c->months >> (tm.tm_mon + 1) & 1) != 0 && either;
}

U_TEST(every_minute_of_some_days)
{
    static const char *const schedules[] = {
        "*/7 */5 * * *", "13 3 1-7 * MON",      "0 0 29 2 *",
        "59 23 31 * 6",  "1-3,50 0,23 * 2,3 *", "0 12 */2 * 1-5",
    };
    static const char *const days[] = { "2027-12-30 00:00", "2028-02-27 00:00", "2100-02-27 00:00",
                                        "1970-01-01 00:00" };

    for (unsigned i = 0; i < ARRAY_LEN(schedules); i++) {
        struct il__cron c = parsed(schedules[i]);
        for (unsigned k = 0; k < ARRAY_LEN(days); k++) {
            int64_t from = at(days[k]);
            int64_t next = il__cron_next(&c, from - 1);
            for (int64_t t = from; t < from + 5 * IL__DAY_MS; t += 60000) {
                if (matches(&c, t) != (t == next))
                    T_FAIL("'%s' at %" PRId64 ": next is %" PRId64, schedules[i], t, next);
                if (t == next)
                    next = il__cron_next(&c, t);
            }
        }
    }
}

/* Any date: the tick matches, and nothing between does (looked at from behind, a few days far). */
U_TEST(random_dates)
{
    struct il__cron c = parsed("17 5 3,30 2-11/3 TUE");
    struct t_rng    rng;

    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 7));
    for (unsigned i = 0; i < 2000; i++) {
        int64_t after = (int64_t)(t_rng_next(&rng) % (uint64_t)at("9990-01-01 00:00"));
        int64_t next  = il__cron_next(&c, after);
        T_TRUE(next > after && matches(&c, next));
        for (int64_t t = next - 60000; t > after && t > next - 2 * IL__DAY_MS; t -= 60000)
            T_TRUE(!matches(&c, t));
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

U_TEST(missed_ticks)
{
    struct il__cron c    = parsed("0 * * * *");
    int64_t         t    = at("2027-01-15 09:00");
    int64_t         hour = 3600000;
    int64_t         next = t;

    T_EQ(il__cron_take(&c, IL_MISSED_SKIP, t, &next), t);
    T_EQ(next, t + hour);
    next = t;
    T_EQ(il__cron_take(&c, IL_MISSED_SKIP, t + 59999, &next), t);
    T_EQ(next, t + hour);
    next = t;
    T_EQ(il__cron_take(&c, IL_MISSED_SKIP, t + 60000, &next), IL__NEVER);
    T_EQ(next, t + hour);
    next = t;
    T_EQ(il__cron_take(&c, IL_MISSED_SKIP, t + 5 * hour + 10, &next), t + 5 * hour);
    T_EQ(next, t + 6 * hour);
    next = t;
    T_EQ(il__cron_take(&c, IL_MISSED_ONE, t + 5 * hour + 10, &next), t);
    T_EQ(next, t + 6 * hour);
    next = t;
    T_EQ(il__cron_take(&c, IL_MISSED_ALL, t + 5 * hour + 10, &next), t);
    T_EQ(next, t + hour);
    /* Never back behind what was next. */
    c    = parsed("* * * * *");
    next = t;
    T_EQ(il__cron_take(&c, IL_MISSED_SKIP, t + 1, &next), t);
}

U_TEST(entries_with_a_zone)
{
    struct il__cron c;
    il_error        err = { 0 };

    T_EQ(il__cron_parse_entry("CRON_TZ=Europe/Berlin  30 2 * * *", &c, &err), IL_OK);
    T_STREQ(c.zone->name, "Europe/Berlin");
    T_EQ(il__cron_next(&c, at("2027-03-27 12:00")), at("2027-03-28 01:00")); /* at the jump */
    T_EQ(il__cron_next(&c, at("2027-03-28 01:00")), at("2027-03-29 00:30"));
    T_EQ(il__cron_next(&c, at("2027-10-30 12:00")), at("2027-10-31 00:30")); /* the first 02:30 */
    T_EQ(il__cron_next(&c, at("2027-10-31 00:30")), at("2027-11-01 01:30"));
    T_EQ(il__cron_parse_entry("30 2 * * *", &c, &err), IL_OK);
    T_TRUE(c.zone == NULL);
    T_EQ(il__cron_parse_entry("CRON_TZ=Europe/Berlin", &c, &err), IL_INVAL);
    T_HAS(err.message, "needs a time zone and a schedule");
    T_EQ(il__cron_parse_entry("CRON_TZ= @daily", &c, &err), IL_INVAL);
    T_EQ(il__cron_parse_entry("CRON_TZ=Mars/Base @daily", &c, &err), IL_INVAL);
    T_HAS(err.message, "Mars/Base");
    T_EQ(il__cron_parse_entry("CRON_TZ=UTC @never", &c, &err), IL_INVAL);
    T_EQ(il__cron_parse_entry("TZ=UTC @daily", &c, &err), IL_INVAL);
    /* Schedules of pipelines have their zone beside them. */
    T_EQ(il__cron_parse("CRON_TZ=UTC @daily", &c, &err), IL_INVAL);
}

/* Who does not know a zone pushes the tick that is stored, and leaves the next one to others. */
U_TEST(a_zone_that_is_not_installed)
{
    struct il__cron here;
    struct il__cron there;
    int64_t         t    = at("2027-01-15 09:00");
    int64_t         next = t;

    T_TRUE(il__cron_restore("CRON_TZ=Mars/Base 0 9,10 * * *", &there));
    T_TRUE(there.no_zone);
    T_EQ(il__cron_take(&there, IL_MISSED_SKIP, t + 10, &next), t);
    T_EQ(next, t + 60001);
    T_EQ(il__cron_take(&there, IL_MISSED_SKIP, next, &next), IL__NEVER); /* again and again */
    T_EQ(next, t + 120001);
    T_TRUE(il__cron_restore("CRON_TZ=Etc/UTC 0 9,10 * * *", &here));
    T_TRUE(!here.no_zone);
    T_EQ(il__cron_take(&here, IL_MISSED_SKIP, next + 5, &next), IL__NEVER);
    T_EQ(next, at("2027-01-15 10:00"));
    next = t + 60001; /* a tick that has come since is found, too */
    T_EQ(il__cron_take(&here, IL_MISSED_SKIP, at("2027-01-15 10:00"), &next), IL__NEVER);
    T_EQ(next, at("2027-01-15 10:00"));
    T_TRUE(!il__cron_restore("CRON_TZ=Etc/UTC", &here));
    T_TRUE(!il__cron_restore("CRON_TZ=Mars/Base x", &here));
    T_TRUE(!il__cron_restore("x", &here));
}

U_TEST(ids_of_ticks)
{
    char a[IL_ID_BYTES_MAX + 1];
    char b[IL_ID_BYTES_MAX + 1];

    il__cron_job_id("t", "n", 60000, a);
    T_TRUE(strlen(a) <= IL_ID_BYTES_MAX);
    T_HAS(a, "cron-");
    il__cron_job_id("t", "n", 60000, b);
    T_STREQ(a, b);
    il__cron_job_id("t", "n", 120000, b);
    T_TRUE(strcmp(a, b) != 0);
    il__cron_job_id("t", "m", 60000, b);
    T_TRUE(strcmp(a, b) != 0);
    il__cron_job_id("n", "t", 60000, b);
    T_TRUE(strcmp(a, b) != 0);
    il__cron_job_id("t", "n", INT64_MAX, b);
    T_TRUE(strlen(b) <= IL_ID_BYTES_MAX);
    /* Shared through stores: it must never change. */
    T_STREQ(a, "cron-aadbc9d599141902-60");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(simple_ones),         U_ROW(strictly_after),
        U_ROW(lists_ranges_steps),  U_ROW(names),
        U_ROW(shorthands),          U_ROW(day_and_weekday),
        U_ROW(leap_days),           U_ROW(the_ends_of_time),
        U_ROW(what_is_refused),     U_ROW(every_minute_of_some_days),
        U_ROW(random_dates),        U_ROW(missed_ticks),
        U_ROW(entries_with_a_zone), U_ROW(a_zone_that_is_not_installed),
        U_ROW(ids_of_ticks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
