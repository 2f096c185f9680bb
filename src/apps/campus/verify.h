/*
 * verify.h: runs the invariants of the campus at once, without the app `check`: the verdict of a
 * storm and of tests.
 */
#ifndef IL_APPS_CAMPUS_VERIFY_H
#define IL_APPS_CAMPUS_VERIFY_H

#include "apps/campus/campus.h"

/* Called for each broken invariant, with its first offender. */
typedef void campus_broken_fn(void *cookie, const struct app_invariant *invariant, int64_t n,
                              const char *key, const char *text);
/* *ret_n: how many invariants of severity error are broken. */
il_status campus_verify(il_guard *db, const char *tenant, campus_broken_fn *broken, void *cookie,
                        size_t *ret_n, il_error *reterr) MUST_USE;

#endif
