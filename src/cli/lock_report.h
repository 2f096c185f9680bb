/*
 * lock_report.h: waits and holds of row locks, read from lines of JSON as il_guard_log() writes
 * them (docs/guard-event.schema.json), grouped by pipeline, entity and caller.
 *
 * Percentiles are exact, in microseconds, for groups of up to CLI_LOCKS_KEPT_MAX locks. Of a larger
 * group, that many are kept at random; its count, maximum and integrity rollbacks stay exact.
 */
#ifndef IL_CLI_LOCK_REPORT_H
#define IL_CLI_LOCK_REPORT_H

#include <stdio.h>

#include "base/base.h"
#include "base/map.h"

#define CLI_LOCKS_KEPT_MAX 1000000 /* per group; they take 8 MB */
#define CLI_LOCKS_GROUPS_MAX 4096
#define CLI_LOCKS_LINE_BYTES_MAX 65536
#define CLI_LOCKS_BAD_MAX 100 /* bad lines that are kept with a reason */

/* Times of one kind, in microseconds. */
struct lock_times {
    uint32_t *us;     /* those kept; more than an hour counts as UINT32_MAX */
    uint64_t  max_us; /* exact */
    uint64_t  max_line;
};

struct lock_group {
    char             *pipeline, *entity, *caller; /* in one allocation, at pipeline */
    uint64_t          n, n_violations;
    size_t            n_kept, capacity; /* of both times */
    struct lock_times wait, hold;
};

struct lock_report {
    struct lock_group **groups; /* sorted once all is read */
    size_t              n_groups;
    struct il__map      map; /* of the groups */
    uint64_t            n_lines, n_locks;
    uint64_t            n_other;   /* lines of JSON that are not about a lock */
    uint64_t            n_dropped; /* locks of more groups than there may be */
    uint64_t            n_bad;
    struct {
        uint64_t line;
        char     why[80];
    } bad[CLI_LOCKS_BAD_MAX]; /* the first ones */
    uint64_t random;
};

/* Read all of `file`. Lines that are not valid are counted and skipped. IL_OK, IL_NOMEM, IL_STORE
 * (cannot read). */
MUST_USE il_status il__cli_lock_report_read(struct lock_report *r, FILE *file, il_error *reterr);
/* The same from a server: the row locks of its apps. */
struct cli;
MUST_USE il_status il__cli_lock_report_ask(const struct cli *cli, struct lock_report *r,
                                           il_error *reterr);
void               il__cli_lock_report_release(struct lock_report *r);
#define AUTO_LOCK_REPORT AUTO(il__cli_lock_report_release)

/* The smallest time that at least `percent` of those kept do not exceed. They are sorted since
 * il__cli_lock_report_read(). */
uint32_t il__cli_lock_percentile(const struct lock_group *g, const struct lock_times *t,
                                 unsigned percent);

#endif
