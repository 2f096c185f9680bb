/*
 * cron.c: parses schedules and computes their next tick, on the Gregorian calendar in days since
 * 1970.
 *
 * In a time zone, local time between two transitions is UTC plus a constant, so a tick is searched
 * in one such span after the other. Where local time jumps forward, ticks that fall into the gap
 * come once, at the jump; where it is set back, ticks that already came are not repeated. A
 * schedule for every hour (`*`) is about elapsed time, not about a time of day, so none of this
 * applies: it ticks whenever local time matches.
 */
#include "core/cron.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/parse.h"
#include "core/limits.h"

#define ZONE_PREFIX "CRON_TZ="
#define EVERY_HOUR 0xFFFFFFU
#define MINUTE_MS INT64_C(60000)
#define DAY_MINUTES 1440
/* The longest gap of any schedule that has ticks: a 1st of February on a given weekday, around a
 * year that is divisible by four but not a leap year, is 12 years away. */
#define GAP_DAYS_MAX (40 * 366)

/* ---- parsing --------------------------------------------------------------------------------- */

enum {
    MINUTE,
    HOUR,
    DAY,
    MONTH,
    WEEKDAY,
    N_FIELDS
};

static const struct field {
    const char *name;
    unsigned    min, max;
    const char *words; /* names of the values from min on, three letters each */
} fields[N_FIELDS] = {
    [MINUTE]  = { "minute", 0, 59, "" },
    [HOUR]    = { "hour", 0, 23, "" },
    [DAY]     = { "day of the month", 1, 31, "" },
    [MONTH]   = { "month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC" },
    [WEEKDAY] = { "weekday", 0, 7, "SUNMONTUEWEDTHUFRISAT" }, /* 7 is Sunday, too */
};

static const struct {
    const char *word;
    const char *schedule;
} shorthands[] = {
    { "@hourly", "0 * * * *" },   { "@daily", "0 0 * * *" },   { "@midnight", "0 0 * * *" },
    { "@weekly", "0 0 * * 0" },   { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
    { "@annually", "0 0 1 1 *" },
};

static il_status
refuse(const struct field *f, const char *item, size_t n_bytes, const char *why, il_error *reterr)
{
    return il__error_set(reterr, IL_INVAL, "the schedule's %s '%.*s' %s", f->name,
                         (int)MIN(n_bytes, 40), item, why);
}

/* A number or a name at *p, which is advanced past it. False: neither. */
static bool
parse_value(const struct field *f, const char **p, const char *end, unsigned *ret)
{
    const char *s      = *p;
    unsigned    number = 0;

    for (; s < end && *s >= '0' && *s <= '9' && s - *p < 4; s++)
        number = number * 10 + (unsigned)(*s - '0');
    if (s > *p) {
        *p   = s;
        *ret = number;
        return true;
    }
    for (unsigned i = 0; f->words[(size_t)i * 3] != '\0' && end - s >= 3; i++) {
        if (strncasecmp(s, f->words + (size_t)i * 3, 3) == 0) {
            *p   = s + 3;
            *ret = f->min + i;
            return true;
        }
    }
    return false;
}

/* One item of a list: `*`, `5`, `5-10`, `FRI`, each optionally followed by `/2`. `5/10` extends to
 * the largest value. */
static il_status
parse_item(const struct field *f, const char *item, const char *end, uint64_t *mask,
           il_error *reterr)
{
    const char *p    = item;
    unsigned    lo   = f->min;
    unsigned    hi   = f->max;
    unsigned    step = 1;

    if (p < end && *p == '*') {
        p++;
        hi = f == &fields[WEEKDAY] ? 6 : hi; /* or Sunday would count twice */
    } else if (parse_value(f, &p, end, &lo)) {
        bool stepped = p < end && *p == '/';
        hi           = stepped ? hi : lo;
        if (p < end && *p == '-') {
            p++;
            if (!parse_value(f, &p, end, &hi))
                return refuse(f, item, (size_t)(end - item), "is not a valid range", reterr);
            if (f == &fields[WEEKDAY] && hi == 0 && lo > 0)
                hi = 7; /* FRI-SUN */
        }
    } else {
        return refuse(f, item, (size_t)(end - item), "is not a number or name", reterr);
    }
    if (p < end && *p == '/') {
        p++;
        if (!parse_value(&fields[MINUTE], &p, end, &step) || step == 0)
            return refuse(f, item, (size_t)(end - item), "needs a step of at least 1", reterr);
    }
    if (p != end)
        return refuse(f, item, (size_t)(end - item), "is not a number or name", reterr);
    if (lo < f->min || hi > f->max || lo > hi)
        return refuse(f, item, (size_t)(end - item), "is out of range", reterr);
    for (unsigned v = lo; v <= hi; v += step)
        *mask |= UINT64_C(1) << v;
    return IL_OK;
}

static il_status
parse_field(const struct field *f, const char *text, size_t n_bytes, uint64_t *mask,
            il_error *reterr)
{
    const char *end = text + n_bytes;

    for (const char *item = text;; item++) {
        const char *comma = memchr(item, ',', (size_t)(end - item));
        const char *stop  = comma != NULL ? comma : end;
        if (parse_item(f, item, stop, mask, reterr) != IL_OK)
            return IL_INVAL;
        if (comma == NULL)
            return IL_OK;
        item = comma;
    }
}

static const char *
expand(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(shorthands); i++) {
        if (strcasecmp(text, shorthands[i].word) == 0)
            return shorthands[i].schedule;
    }
    return text;
}

static il_status
parse_fields(const char *text, struct il__cron *c, il_error *reterr)
{
    uint64_t masks[N_FIELDS] = { 0 };
    bool     stars[N_FIELDS] = { false };
    size_t   n               = 0;

    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        size_t n_bytes = strcspn(text, " ");
        if (n == N_FIELDS)
            return il__error_set(reterr, IL_INVAL, "the schedule has more than five fields");
        stars[n] = text[0] == '*';
        if (parse_field(&fields[n], text, n_bytes, &masks[n], reterr) != IL_OK)
            return IL_INVAL;
        text += n_bytes;
        n++;
    }
    if (n < N_FIELDS)
        return il__error_set(
            reterr, IL_INVAL,
            "the schedule has %zu fields, expected five (minute hour day month weekday)", n);
    *c = (struct il__cron){
        .minutes     = masks[MINUTE],
        .hours       = (uint32_t)masks[HOUR],
        .days        = (uint32_t)masks[DAY],
        .months      = (uint32_t)masks[MONTH],
        .weekdays    = (uint32_t)((masks[WEEKDAY] | masks[WEEKDAY] >> 7) & 0x7F),
        .any_day     = stars[DAY],
        .any_weekday = stars[WEEKDAY],
    };
    return IL_OK;
}

il_status
il__cron_parse(const char *text, struct il__cron *ret, il_error *reterr)
{
    struct il__cron c = { .minutes = 0 };

    text = expand(text);
    if (text[0] == '@')
        return il__error_set(reterr, IL_INVAL,
                             "'%.40s' is not one of @hourly, @daily, @weekly, @monthly, @yearly",
                             text);
    if (parse_fields(text, &c, reterr) != IL_OK)
        return IL_INVAL;
    if (il__cron_next(&c, 0) == IL__NEVER)
        return il__error_set(reterr, IL_INVAL, "schedule '%.40s' never matches", text);
    *ret = c;
    return IL_OK;
}

/* The zone in front of a schedule, or NULL; *text is advanced to the schedule. */
static il_status
parse_zone(const char **text, const struct il__zone **ret, il_error *reterr)
{
    char name[sizeof((struct il__zone *)NULL)->name];

    *ret = NULL;
    if (strncmp(*text, ZONE_PREFIX, strlen(ZONE_PREFIX)) != 0)
        return IL_OK;
    const char *from = *text + strlen(ZONE_PREFIX);
    size_t      n    = strcspn(from, " ");
    if (n >= sizeof name || from[n] == '\0')
        return il__error_set(
            reterr, IL_INVAL,
            "'%.60s' needs a time zone and a schedule, such as 'CRON_TZ=Europe/Berlin 0 6 * * *'",
            *text);
    (void)snprintf(name, sizeof name, "%.*s", (int)n, from);
    *text = from + n + strspn(from + n, " ");
    return il__zone_get(name, ret, reterr);
}

il_status
il__cron_parse_entry(const char *text, struct il__cron *ret, il_error *reterr)
{
    const struct il__zone *zone;
    il_status              st = parse_zone(&text, &zone, reterr);

    if (st == IL_OK)
        st = il__cron_parse(text, ret, reterr);
    if (st == IL_OK)
        ret->zone = zone;
    return st;
}

bool
il__cron_restore(const char *text, struct il__cron *ret)
{
    const struct il__zone *zone;
    const char            *schedule = text;
    bool                   known    = parse_zone(&schedule, &zone, NULL) == IL_OK;

    if (schedule == text && !known) /* a prefix without a schedule */
        return false;
    if (il__cron_parse(schedule, ret, NULL) != IL_OK)
        return false;
    ret->zone    = known ? zone : NULL;
    ret->no_zone = !known;
    return true;
}

/* ---- the calendar ---------------------------------------------------------------------------- */

static bool
day_matches(const struct il__cron *c, int64_t days)
{
    struct il__date d       = il__date_of(days);
    unsigned        weekday = (unsigned)((days + 4) % 7); /* 1970-01-01 was a Thursday */
    bool            day     = (c->days >> d.day & 1) != 0;
    bool            week    = (c->weekdays >> weekday & 1) != 0;

    if ((c->months >> d.month & 1) == 0)
        return false;
    return c->any_day || c->any_weekday ? day && week : day || week;
}

/* The first matching minute of a day, from `from` on; DAY_MINUTES if none matches. */
static int64_t
minute_of_day(const struct il__cron *c, int64_t from)
{
    for (int64_t m = from; m < DAY_MINUTES; m++) {
        if ((c->hours >> (m / 60) & 1) == 0)
            m += 59 - m % 60; /* on to the next hour */
        else if ((c->minutes >> (m % 60) & 1) != 0)
            return m;
    }
    return DAY_MINUTES;
}

/* The first tick in local time, as if it were UTC. */
static int64_t
next_local(const struct il__cron *c, int64_t after_ms)
{
    int64_t after  = MAX(after_ms, -1); /* no schedules before 1970 */
    int64_t minute = after < 0 ? 0 : after / MINUTE_MS + 1;
    int64_t days   = minute / DAY_MINUTES;
    int64_t from   = minute % DAY_MINUTES;

    if (after >= IL__TIME_MS_MAX)
        return IL__NEVER;
    for (unsigned i = 0; i < GAP_DAYS_MAX; i++, days++, from = 0) {
        int64_t m = day_matches(c, days) ? minute_of_day(c, from) : DAY_MINUTES;
        int64_t t = (days * DAY_MINUTES + m) * MINUTE_MS;
        if (m < DAY_MINUTES)
            return t <= IL__TIME_MS_MAX ? t : IL__NEVER;
    }
    return IL__NEVER;
}

/* ---- time zones ------------------------------------------------------------------------------ */

static int64_t
offset_ms(const struct il__zone *z, size_t i)
{
    return (int64_t)z->transitions[i].offset_s * 1000;
}

/* Does a tick fall into the local times skipped by the i-th transition? */
static bool
left_out(const struct il__zone *z, const struct il__cron *c, size_t i)
{
    int64_t from = z->transitions[i].at_ms + offset_ms(z, i - 1);
    int64_t to   = z->transitions[i].at_ms + offset_ms(z, i);

#ifdef IL_MUTANT_skipped_hour_is_lost
    return false;
#endif
    return from < to && next_local(c, from - 1) < to;
}

int64_t
il__cron_next_in(const struct il__zone *z, const struct il__cron *c, int64_t after_ms)
{
    bool every_hour = c->hours == EVERY_HOUR;

    for (size_t i = il__zone_span(z, after_ms);; i++) {
        int64_t begin = z->transitions[i].at_ms;
        int64_t end   = i + 1 < z->n ? z->transitions[i + 1].at_ms : IL__NEVER;
        int64_t after = MAX(after_ms, begin - 1) + offset_ms(z, i);
        if (i > 0 && !every_hour) {
            if (begin > after_ms && left_out(z, c, i))
                return begin;
            after = MAX(after, begin + offset_ms(z, i - 1) - 1); /* set back: do not repeat */
        }
        int64_t local = next_local(c, after);
        if (local == IL__NEVER)
            return IL__NEVER;
        if (local - offset_ms(z, i) < end)
            return local - offset_ms(z, i);
    }
}

int64_t
il__cron_next(const struct il__cron *c, int64_t after_ms)
{
    CHECK(!c->no_zone);
    return c->zone != NULL ? il__cron_next_in(c->zone, c, after_ms) : next_local(c, after_ms);
}

/* ---- entries --------------------------------------------------------------------------------- */

int64_t
il__cron_take(const struct il__cron *c, il_missed missed, int64_t wall_ms, int64_t *next_ms)
{
    int64_t tick_ms = *next_ms;

    CHECK(tick_ms <= wall_ms);
#ifdef IL_MUTANT_tick_pushed_twice
    *next_ms = tick_ms % 60000 == 0 ? tick_ms + 1000 : il__cron_next(c, wall_ms);
    return tick_ms;
#endif
    if (c->no_zone) {
        *next_ms = wall_ms - wall_ms % MINUTE_MS + MINUTE_MS + 1;
        return tick_ms % MINUTE_MS == 0 ? tick_ms : IL__NEVER;
    }
    if (tick_ms % MINUTE_MS != 0) { /* what somebody without the zone has left */
        *next_ms = il__cron_next(c, tick_ms - MINUTE_MS - 1);
        return IL__NEVER;
    }
    if (missed == IL_MISSED_ALL) {
        *next_ms = il__cron_next(c, tick_ms);
        return tick_ms;
    }
    if (missed == IL_MISSED_SKIP) /* only one that is not late; ticks are a minute apart or more */
        tick_ms = MAX(tick_ms, il__cron_next(c, wall_ms - IL__TICK_LATE_MS));
    *next_ms = il__cron_next(c, wall_ms);
    return tick_ms <= wall_ms ? tick_ms : IL__NEVER;
}

void
il__cron_job_id(const char *tenant, const char *name, int64_t tick_ms,
                char out[IL_ID_BYTES_MAX + 1])
{
    uint64_t hash = il__hash_stable(name, strlen(name), il__hash_stable(tenant, strlen(tenant), 0));

    (void)snprintf(out, IL_ID_BYTES_MAX + 1, "cron-%016" PRIx64 "-%" PRId64, hash, tick_ms / 1000);
}
