/*
 * date.c: days of UTC, and how long the figures of a day are good for. See day.h.
 */
#include "apps/usage/day.h"

#define MINUTE_MS 60000
#define YEAR_MIN 2000 /* so that the period before a range has dates, too */
#define AGEING_PERCENT 80
/* The clocks of two servers may differ by this much; a row from further ahead was written by a
 * clock that was wrong, and says nothing about its age. */
#define AHEAD_MS MINUTE_MS

/* ---- the calendar ---------------------------------------------------------------------------- */

bool
usage_date_parse(const char *text, usage_date *ret)
{
    int64_t days;

    if (!il__date_parse(text, &days) || il__date_of(days).year < YEAR_MIN)
        return false;
    *ret = (usage_date)days;
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
    struct il__date d = il__date_of(date);

    return (int64_t)d.year * 10000 + (int64_t)d.month * 100 + d.day;
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
