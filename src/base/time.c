/*
 * time.c: the Gregorian calendar; printing and parsing RFC 3339 dates and times.
 */
#include "base/parse.h"

#include <stdio.h>
#include <time.h>

#define TIME_MS_END INT64_C(253402300800000) /* the year 10000 */

/* ---- the calendar ---------------------------------------------------------------------------- */

struct il__date
il__date_of(int64_t days)
{
    int64_t z   = days + 719468; /* days since 0000-03-01: the leap day is the last of its year */
    int64_t era = z / 146097 - (z % 146097 < 0); /* 400 years; rounded down */
    int     of_era = (int)(z - era * 146097);
    int     y      = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int     of_y   = of_era - (365 * y + y / 4 - y / 100);
    int     m      = (5 * of_y + 2) / 153;
    int     month  = m < 10 ? m + 3 : m - 9;

    return (struct il__date){ .year  = (int)(era * 400) + y + (month <= 2),
                              .month = month,
                              .day   = of_y - (153 * m + 2) / 5 + 1 };
}

bool
il__date_is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int64_t
il__date_days(int year, int month, int day)
{
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 };
    int              y        = year - 1;

    if (year < 1970 || month < 1 || month > 12)
        return -1;
    bool leap   = il__date_is_leap(year);
    int  n_days = before[month] - before[month - 1] + (month == 2 && leap ? 1 : 0);
    if (day < 1 || day > n_days)
        return -1;
    return (int64_t)365 * (year - 1970) + (y / 4 - y / 100 + y / 400) -
           (1969 / 4 - 1969 / 100 + 1969 / 400) + before[month - 1] + (month > 2 && leap ? 1 : 0) +
           day - 1;
}

/* ---- printing -------------------------------------------------------------------------------- */

static char *
put_digits(char *at, int64_t number, int n)
{
    for (int i = n; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    return at + n;
}

static char *
put_date(char *at, int64_t days)
{
    struct il__date date = il__date_of(days);

    at    = put_digits(at, date.year, 4);
    *at++ = '-';
    at    = put_digits(at, date.month, 2);
    *at++ = '-';
    return put_digits(at, date.day, 2);
}

const char *
il__date_text(int64_t days, char out[IL__DATE_TEXT_BYTES])
{
    *put_date(out, days) = '\0';
    return out;
}

/* For four-digit years: every server response contains a few times, and gmtime_r() is slow. */
static void
common_text(int64_t wall_ms, char *at)
{
    int64_t ms = wall_ms % 86400000;

    at    = put_date(at, wall_ms / 86400000);
    *at++ = 'T';
    at    = put_digits(at, ms / 3600000, 2);
    *at++ = ':';
    at    = put_digits(at, ms / 60000 % 60, 2);
    *at++ = ':';
    at    = put_digits(at, ms / 1000 % 60, 2);
    *at++ = '.';
    at    = put_digits(at, ms % 1000, 3);
    *at++ = 'Z';
    *at   = '\0';
}

const char *
il__time_text(int64_t wall_ms, char out[IL__TIME_TEXT_BYTES])
{
    /* Division rounding down, so that the milliseconds of times before 1970 are right, too. */
    int64_t   ms_part = wall_ms % 1000;
    time_t    sec     = (time_t)(wall_ms / 1000 - (ms_part < 0));
    struct tm tm;
    char      date[24];

    if (wall_ms >= 0 && wall_ms < TIME_MS_END) {
        common_text(wall_ms, out);
        return out;
    }
    if (gmtime_r(&sec, &tm) == NULL || strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        out[0] = '\0';
        return out;
    }
    (void)snprintf(out, IL__TIME_TEXT_BYTES, "%s.%03dZ", date,
                   (int)(ms_part < 0 ? ms_part + 1000 : ms_part));
    return out;
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* Exactly `n` digits at *p, which is advanced. */
static bool
digits(const char **p, int n, int *ret)
{
    int number = 0;

    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        number = number * 10 + (**p - '0');
    }
    *ret = number;
    return true;
}

static bool
literal(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

/* 2026-11-15 at *p, which is advanced. */
static bool
take_date(const char **p, int64_t *ret_days)
{
    int year, month, day;

    if (!digits(p, 4, &year) || !literal(p, '-') || !digits(p, 2, &month) || !literal(p, '-') ||
        !digits(p, 2, &day))
        return false;
    int64_t days = il__date_days(year, month, day);
    if (days >= 0)
        *ret_days = days;
    return days >= 0;
}

bool
il__date_parse(const char *text, int64_t *ret_days)
{
    int64_t days;

    if (!take_date(&text, &days) || *text != '\0')
        return false;
    *ret_days = days;
    return true;
}

/* `.5`, `.250`: truncated to milliseconds. */
static bool
fraction(const char **p, int64_t *ret_ms)
{
    int64_t unit = 100;

    *ret_ms = 0;
    if (**p != '.')
        return true;
    (*p)++;
    if (**p < '0' || **p > '9')
        return false;
    for (; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
        *ret_ms += unit * (**p - '0');
    return true;
}

/* `Z`, `+02:00`: minutes east of Greenwich. */
static bool
zone(const char **p, int *ret_minutes)
{
    int hours;
    int minutes;
    int sign = **p == '-' ? -1 : 1;

    *ret_minutes = 0;
    if (literal(p, 'Z') || literal(p, 'z'))
        return true;
    if (!literal(p, sign < 0 ? '-' : '+') || !digits(p, 2, &hours) || !literal(p, ':') ||
        !digits(p, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

bool
il__time_parse(const char *text, int64_t *ret_ms)
{
    const char *p = text;
    int         hour;
    int         minute;
    int         second;
    int         east;
    int64_t     days;
    int64_t     ms;

    if (!take_date(&p, &days))
        return false;
    if (!literal(&p, 'T') && !literal(&p, 't') && !literal(&p, ' '))
        return false;
    if (!digits(&p, 2, &hour) || !literal(&p, ':') || !digits(&p, 2, &minute) ||
        !literal(&p, ':') || !digits(&p, 2, &second) || !fraction(&p, &ms) || !zone(&p, &east) ||
        *p != '\0')
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    *ret_ms = (((days * 24 + hour) * 60 + minute - east) * 60 + second) * 1000 + ms;
    return true;
}
