/*
 * report.h: what a store reports about itself and its server, for `interlock doctor`.
 *
 * A finding is one setting or fact, its current value, and what it means for Interlock's
 * guarantees. Also: which indexes a table of jobs needs (report.c).
 */
#ifndef IL_STORE_REPORT_H
#define IL_STORE_REPORT_H

#include "base/base.h"

enum il__finding_level {
    IL__FINDING_GOOD,
    IL__FINDING_NOTE, /* nothing is wrong, but worth knowing */
    IL__FINDING_WARN, /* a guarantee is weaker, or something will go wrong one day */
    IL__FINDING_BAD,  /* a guarantee does not hold */
    IL__FINDING_LEVEL_COUNT
};

struct il__finding {
    enum il__finding_level level;
    const char            *name;  /* of the setting, as its server calls it */
    const char            *value; /* current value; never a secret */
    const char            *means;
};

/* Called for each finding, in display order; the strings live for the call. */
typedef void il__report_fn(void *cookie, const struct il__finding *f);

/* Does a partial index find the jobs that a worker looks for? */
enum il__serves {
    IL__SERVES_NOT,
    IL__SERVES_PERHAPS, /* its condition does not mention states that we know */
    IL__SERVES,
};

/* `where` is the condition of an index that begins with `column`, which holds the states of jobs.
 * running: jobs that are being processed are looked for, instead of those that are ready. */
enum il__serves il__report_serves(const char *where, const char *column, bool running);

#endif
