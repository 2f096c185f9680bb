/*
 * row.h: rows of daily_usage_cache.
 */
#ifndef IL_APPS_USAGE_ROW_H
#define IL_APPS_USAGE_ROW_H

#include "apps/common/invariant.h"
#include "apps/common/tables.h"
#include "apps/usage/day.h"

extern const struct app_tables    usage_tables;
extern const struct app_invariant usage_invariants[1];

/* A stored day. Of a range, `figures` has the total and the part that was asked for. */
struct usage_row {
    usage_date           date;
    int64_t              updated_ms; /* when the build of these figures started */
    bool                 complete;
    struct usage_figures figures;
};
void usage_row_release(struct usage_row *row);

/* Read a day. IL_OK, IL_NOT_FOUND, IL_CORRUPT, IL_STORE and kin. Release *ret on IL_OK. */
il_status usage_row_get(il_guard *g, const char *tenant, usage_date date, struct usage_row *ret,
                        il_error *reterr) MUST_USE;

/* Read the days of a range in order; a damaged row is left out, as if it were not stored. The row
 * lives for the call; `mem` (may be NULL without a part) is where the names of its part are
 * allocated. */
typedef void usage_row_fn(void *cookie, const struct usage_row *row);
il_status    usage_row_range(il_guard *g, const char *tenant, usage_date from, usage_date to,
                             enum usage_by by, void **mem, usage_row_fn *each, void *cookie,
                             il_error *reterr) MUST_USE;

/* Write a day, with what the source gave. The fence is shown and checked. IL_OK, IL_STALE (the
 * lease is no longer held: nothing was written), IL_STORE and kin. */
il_status usage_row_put(il_guard *g, const il_guard_fence *fence, const struct usage_row *row,
                        const char *raw, il_error *reterr) MUST_USE;

/* Delete at most `limit` days before a date; *ret_n: how many. each(cookie, tenant, date). */
il_status usage_row_purge(il_guard *g, usage_date before, int64_t limit,
                          void (*each)(void *cookie, const char *tenant, const char *date),
                          void *cookie, int64_t *ret_n, il_error *reterr) MUST_USE;

#endif
