/*
 * report.h: what a store reports about itself and its server, for `interlock doctor`.
 *
 * A finding is one setting or fact, its current value, and what it means for Interlock's
 * guarantees.
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

/* Where the findings of a report go. */
struct il__report {
    il__report_fn *each;
    void          *cookie;
};

static inline void
il__tell(const struct il__report *to, enum il__finding_level level, const char *name,
         const char *value, const char *means)
{
    to->each(to->cookie, &(struct il__finding){ level, name, value, means });
}

#endif
