/*
 * verify.h: run the invariants of the campus at once, without the app `check`: the verdict of a
 * storm and of tests.
 */
#ifndef IL_APPS_CAMPUS_VERIFY_H
#define IL_APPS_CAMPUS_VERIFY_H

#include "apps/campus/campus.h"

/* Called for each broken invariant, with its first offender. */
typedef void campus_broken_fn(void *cookie, const struct app_invariant *invariant, int64_t n,
                              const char *key, const char *text);
/* Run those whose name begins with `prefix`; *ret_n: how many of severity error are broken. */
il_status campus_verify(il_guard *db, const char *tenant, const char *prefix,
                        campus_broken_fn *broken, void *cookie, size_t *ret_n, il_error *reterr)
    MUST_USE;

#endif
