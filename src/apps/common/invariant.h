/*
 * invariant.h: an invariant that an app registers: a named query that must find nothing. `interlock
 * check` runs it (src/apps/check), with those of the users' own files.
 */
#ifndef IL_APPS_COMMON_INVARIANT_H
#define IL_APPS_COMMON_INVARIANT_H

#include "base/base.h"
#include "interlock-guard.h"

enum invariant_severity {
    INVARIANT_INFO,
    INVARIANT_WARNING,
    INVARIANT_ERROR
};

/* Where a query reports what it finds. `key` identifies the offender, the same each time; `text`
 * says what is wrong with it, or is NULL. All are counted, a few are kept. */
struct invariant_found;
void il__invariant_found(struct invariant_found *found, const char *key, const char *text);

/* Look for offenders of a tenant in the app's tables. tx only reads, and has a timeout. Returns
 * IL_OK also when something was found; anything else means that the check could not be made. */
typedef il_status app_invariant_fn(il_guard_tx *tx, const char *tenant,
                                   struct invariant_found *found, il_error *reterr);

/* Either SQL or a function. The SQL gets the tenant as $1 and returns a row per offender: its key,
 * then columns that say what is wrong. */
struct app_invariant {
    const char             *name; /* "booking_capacity"; unique within the app */
    const char             *summary;
    enum invariant_severity severity;
    const char             *sqlite, *postgres; /* the same text if one fits both */
    app_invariant_fn       *fn;
    const char *const      *baseline; /* keys of known offenders, NULL-terminated; NULL: none */
};

#endif
