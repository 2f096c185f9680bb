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
    INVARIANT_ERROR,
    INVARIANT_SEVERITY_COUNT
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

/* The last result of an invariant, as the app that keeps their history (http_app.last_result) gives
 * it. */
struct invariant_last {
    int64_t started_ms;  /* 0: it has never been checked */
    char    outcome[16]; /* passed, broken, or error: it could not be checked */
};

/* ---- what was found -------------------------------------------------------------------------- */

#define INVARIANT_OFFENDERS_MAX 20 /* that are kept; all are counted */
#define INVARIANT_KEY_BYTES_MAX 200
#define INVARIANT_TEXT_BYTES_MAX 1000

struct invariant_offender {
    char *key, *text; /* cut to the limits above; text may be NULL */
};

struct invariant_found {
    const char *const        *baseline; /* borrowed; sorted, without duplicates */
    size_t                    n_baseline;
    bool                     *met;            /* of the baseline: it still offends */
    int64_t                   n_new, n_known; /* offenders that are not in the baseline, and are */
    struct invariant_offender offenders[INVARIANT_OFFENDERS_MAX]; /* the first new ones */
    size_t                    n_offenders;
    bool                      no_memory;
};

/* False: out of memory. Release in any case. */
bool il__invariant_found_init(struct invariant_found *f, const char *const *baseline,
                              size_t n_baseline) MUST_USE;
void il__invariant_found_release(struct invariant_found *f);
/* The keys of the baseline that were not found: how many, and the first n_max of them. */
size_t il__invariant_not_needed(const struct invariant_found *f, const char **ret, size_t n_max);
/* Sort the keys of a baseline and drop duplicates; returns how many are left. */
size_t il__invariant_baseline_sort(const char **keys, size_t n);

/* "info", "warning", "error", and NULL */
extern const char *const il__invariant_severities[INVARIANT_SEVERITY_COUNT + 1];

const char *il__invariant_severity_name(enum invariant_severity severity);

#endif
