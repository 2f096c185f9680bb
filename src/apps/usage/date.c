/*
 * date.c: days of UTC, and how long the figures of a day are good for. See day.h.
 */
#include "apps/usage/day.h"

#include <stdio.h>

#define MINUTE_MS 60000
#define YEAR_MIN 2000 /* so that the period before a range has dates, too */
#define AGEING_PERCENT 80
/* The clocks of two servers may differ by this much; a row from further ahead was written by a
 * clock that was wrong, and says nothing about its age. */
#define AHEAD_MS MINUTE_MS

/* ---- the calendar ---------------------------------------------------------------------------- */

/* Days since 1970-01-01 of a date of the Gregorian calendar, counted in years that begin in March,
 * so that the leap day is the last one. */
static usage_date
days_of(int year, int month, int day)
{
    int y   = month > 2 ? year : year - 1;
    int era = y / 400, of_era = y % 400;
    int of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void
split(usage_date date, int *year, int *month, int *day)
{
    int days = date + 719468;
    int era = days / 146097, of_era = days % 146097;
    int y       = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int of_year = of_era - (365 * y + y / 4 - y / 100);
    int m       = (5 * of_year + 2) / 153;

    *day   = of_year - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year  = era * 400 + y + (*month <= 2 ? 1 : 0);
}

const char *
usage_date_text(usage_date date, char out[USAGE_DATE_BYTES])
{
    int year, month, day;

    CHECK(date >= 0);
    split(date, &year, &month, &day);
    (void)snprintf(out, USAGE_DATE_BYTES, "%04u-%02u-%02u", (unsigned)year % 10000,
                   (unsigned)month % 100, (unsigned)day % 100);
    return out;
}

bool
usage_date_parse(const char *text, usage_date *ret)
{
    int  digits[8], n = 0;
    char again[USAGE_DATE_BYTES];

    for (size_t i = 0; i < USAGE_DATE_BYTES - 1; i++) {
        if (i == 4 || i == 7) {
            if (text[i] != '-')
                return false;
        } else if (text[i] < '0' || text[i] > '9') {
            return false;
        } else {
            digits[n++] = text[i] - '0';
        }
    }
    if (text[USAGE_DATE_BYTES - 1] != '\0')
        return false;
    int year  = digits[0] * 1000 + digits[1] * 100 + digits[2] * 10 + digits[3];
    int month = digits[4] * 10 + digits[5], day = digits[6] * 10 + digits[7];
    if (year < YEAR_MIN || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    usage_date date = days_of(year, month, day);
    if (strcmp(usage_date_text(date, again), text) != 0) /* 2026-02-30 is 2026-03-02 */
        return false;
    *ret = date;
    return true;
}

usage_date
usage_date_of(int64_t wall_ms)
{
    return (usage_date)(wall_ms / USAGE_DAY_MS);
}

int64_t
usage_date_id(usage_date date)
{
    int year, month, day;

    split(date, &year, &month, &day);
    return (int64_t)year * 10000 + (int64_t)month * 100 + day;
}

/* ---- how long a build is good for ------------------------------------------------------------ */

enum usage_keep
usage_keep(usage_date date, int64_t started_ms, int64_t grace_minutes)
{
    usage_date today   = usage_date_of(started_ms);
    int64_t    minutes = started_ms % USAGE_DAY_MS / MINUTE_MS; /* since midnight UTC */

    if (date > today)
        return USAGE_KEEP_FUTURE;
    if (date == today)
        return USAGE_KEEP_TODAY;
#ifdef IL_MUTANT_usage_without_grace
    (void)minutes;
    (void)grace_minutes;
    return USAGE_KEEP_GOOD;
#else
    return date == today - 1 && minutes <= grace_minutes ? USAGE_KEEP_GRACE : USAGE_KEEP_GOOD;
#endif
}

static int64_t
life_ms(const struct usage_life *life, bool complete)
{
    return complete ? life->historical_ttl_ms : life->current_ttl_ms;
}

bool
usage_is_fresh(const struct usage_life *life, bool complete, int64_t updated_ms, int64_t now_ms)
{
    int64_t ttl_ms = life_ms(life, complete);

    if (ttl_ms == 0)
        return true;
    return now_ms - updated_ms < ttl_ms && updated_ms - now_ms <= AHEAD_MS;
}

bool
usage_is_ageing(const struct usage_life *life, bool complete, int64_t updated_ms, int64_t now_ms)
{
    int64_t ttl_ms = life_ms(life, complete);

    return ttl_ms != 0 && now_ms - updated_ms > ttl_ms / 100 * AGEING_PERCENT;
}

int64_t
usage_life_left(const struct usage_life *life, bool complete, int64_t updated_ms, int64_t now_ms)
{
    int64_t ttl_ms = life_ms(life, complete);

    if (ttl_ms == 0)
        return IL_DELAY_MS_MAX;
    return MIN(MAX(updated_ms + ttl_ms - now_ms, 1), IL_DELAY_MS_MAX);
}
