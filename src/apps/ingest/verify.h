/*
 * verify.h: the invariants of race results: `interlock check` and `interlock ingest verify` run
 * them.
 */
#ifndef IL_APPS_INGEST_VERIFY_H
#define IL_APPS_INGEST_VERIFY_H

#include "apps/common/invariant.h"
#include "wire/wire.h"

#define INGEST_INVARIANTS 6
extern const struct app_invariant il__ingest_invariants[INGEST_INVARIANTS];

/* What one of them found. */
struct ingest_offender {
    const char *key, *text;
};
struct ingest_verdict {
    const char             *name, *summary, *severity;
    int64_t                 n;
    struct ingest_offender *offenders; /* the first INVARIANT_OFFENDERS_MAX */
    size_t                  n_offenders;
};
extern const struct wire_object il__ingest_verdict_out;

/* Check all of them, in one snapshot; each() gets what each of them found, until it returns false:
 * IL_CANCELLED. The texts live for the call. Blocks. */
typedef bool ingest_verdict_fn(void *cookie, const struct ingest_verdict *v);
il_status il__ingest_verify(il_guard *g, const char *tenant, ingest_verdict_fn *each, void *cookie,
                            il_error *reterr) MUST_USE;

#endif
