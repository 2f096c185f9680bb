/*
 * cron.h: schedules: five fields (minute hour day month weekday) or @daily and kin, in UTC.
 */
#ifndef IL_CORE_CRON_H
#define IL_CORE_CRON_H

#include "base/base.h"

/* One bit per value that matches. */
struct il__cron {
    uint64_t minutes;  /* 0..59 */
    uint32_t hours;    /* 0..23 */
    uint32_t days;     /* 1..31 */
    uint32_t months;   /* 1..12 */
    uint32_t weekdays; /* 0..6, Sunday is 0 */
    bool any_day; /* the field begins with '*'; if neither does, a day matches that matches either */
    bool any_weekday;
};

/* IL_INVAL with the field and the reason; also for a schedule that never comes, as the 30th of February. */
il_status il__cron_parse(const char *text, struct il__cron *ret, il_error *reterr) MUST_USE;

/* The first tick after after_ms (ms since 1970), which is a whole minute; IL__NEVER beyond the year 9999. */
int64_t il__cron_next(const struct il__cron *c, int64_t after_ms);

/*
 * An entry's tick *next_ms has come (wall_ms >= *next_ms): which one is pushed now, or IL__NEVER if none is; *next_ms is what comes
 * after it. To be called again while that has come, too: with IL_MISSED_ALL there may be many.
 */
int64_t il__cron_take(const struct il__cron *c, il_missed missed, int64_t wall_ms, int64_t *next_ms);

/* The id of the job of a tick, the same wherever it is made: so that no tick is pushed twice. */
void il__cron_job_id(const char *tenant, const char *name, int64_t tick_ms,
                     char out[IL_ID_BYTES_MAX + 1]);

#endif
