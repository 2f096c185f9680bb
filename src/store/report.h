/*
 * report.h: what a store says about itself and the server behind it: for `interlock doctor`.
 *
 * A finding is one setting or fact, how it is, and what that means for what Interlock promises.
 */
#ifndef IL_STORE_REPORT_H
#define IL_STORE_REPORT_H

#include "base/base.h"

enum il__finding_level {
    IL__FINDING_GOOD,
    IL__FINDING_NOTE, /* nothing is wrong, but worth to know */
    IL__FINDING_WARN, /* a promise is weaker, or something will go wrong one day */
    IL__FINDING_BAD,  /* a promise does not hold */
    IL__FINDING_LEVEL_COUNT
};

struct il__finding {
    enum il__finding_level level;
    const char            *name;  /* of the setting, as its server calls it */
    const char            *value; /* how it is; never holds a secret */
    const char            *means;
};

/* Called for each finding, in the order to be shown; the strings live for the call. */
typedef void il__report_fn(void *cookie, const struct il__finding *f);

#endif
