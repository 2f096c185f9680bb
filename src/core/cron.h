/*
 * cron.h: cron schedules: five fields (minute hour day month weekday), or @daily and the like; in
 * UTC or in a time zone. The entries of queues name theirs in the text: `CRON_TZ=Europe/Berlin 0 6
 * * * *`. cron.c has the rules for the hours that a zone skips and repeats.
 */
#ifndef IL_CORE_CRON_H
#define IL_CORE_CRON_H

#include "base/base.h"
#include "base/zone.h"

/* One bit per matching value. */
struct il__cron {
    uint64_t minutes;  /* 0..59 */
    uint32_t hours;    /* 0..23 */
    uint32_t days;     /* 1..31 */
    uint32_t months;   /* 1..12 */
    uint32_t weekdays; /* 0..6, Sunday is 0 */
    /* the field begins with '*'; if neither does, a day may match either one */
    bool                   any_day;
    bool                   any_weekday;
    const struct il__zone *zone;    /* NULL = UTC */
    bool                   no_zone; /* its zone is not installed here: only for il__cron_take() */
};

/* IL_INVAL with the field and the reason; also for a schedule without any tick, like the 30th of
 * February. */
il_status il__cron_parse(const char *text, struct il__cron *ret, il_error *reterr) MUST_USE;

/* The same for an entry of a queue, which may begin with `CRON_TZ=ZONE `. IL_INVAL for an unknown
 * zone as well; IL_NOMEM. */
il_status il__cron_parse_entry(const char *text, struct il__cron *ret, il_error *reterr) MUST_USE;

/* A stored entry; false if it is damaged. Its zone may not be installed here: then `no_zone`. */
bool il__cron_restore(const char *text, struct il__cron *ret) MUST_USE;

/* The first tick, a whole minute, after after_ms (ms since 1970); IL__NEVER beyond the year
 * 9999. */
int64_t il__cron_next(const struct il__cron *c, int64_t after_ms);

/* The same in another zone than the schedule's own. */
int64_t il__cron_next_in(const struct il__zone *zone, const struct il__cron *c, int64_t after_ms);

/*
 * An entry's tick *next_ms is due (wall_ms >= *next_ms). Returns the tick to push now, or IL__NEVER
 * if none; *next_ms becomes the following tick. Call again while that is due, too: with
 * IL_MISSED_ALL there may be many.
 *
 * Where the entry's zone is not installed, the stored tick is right but the following one is not
 * known. *next_ms then becomes a time that is no whole minute, a minute from now: a request to look
 * again, which a process that knows the zone replaces by the following tick.
 */
int64_t il__cron_take(const struct il__cron *c, il_missed missed, int64_t wall_ms,
                      int64_t *next_ms);

/* The id of a tick's job. Every process computes the same id, so no tick is pushed twice. */
void il__cron_job_id(const char *tenant, const char *name, int64_t tick_ms,
                     char out[IL_ID_BYTES_MAX + 1]);

#endif
