/*
 * history.h: the history of invariants in the app's tables: what each check found, and the runs
 * that were active when one broke. All functions take a handle on these tables, block, and may be
 * called from several threads.
 */
#ifndef IL_APPS_CHECK_HISTORY_H
#define IL_APPS_CHECK_HISTORY_H

#include "apps/check/check.h"
#include "apps/common/tables.h"
#include "base/base.h"
#include "interlock-guard.h"

#define CHECK_CLASS "check" /* of the keys of its runs */
#define CHECK_ACTIVE_MAX 20 /* active runs that a broken result names */

/* A result as it is kept; the texts live for the call that gives it. */
struct check_record {
    const char *id;
    const char *name, *severity, *outcome;
    int64_t     n_new, n_known;
    const char *offenders, *not_needed; /* JSON, as in il__check_result_json() */
    const char *runs;                   /* JSON: a list of ids */
    const char *error;                  /* "" = none */
    int64_t     started_ms, took_ms;
};
typedef void check_record_fn(void *cookie, const struct check_record *r);

extern const struct app_tables il__check_tables;

/* Add a result that passed, is broken or could not run, with this id (NULL: a new one). `runs`: a
 * JSON list of the ids of active runs; NULL: none. */
il_status il__check_history_add(il_guard *g, const struct check_result *r, const char *id,
                                const char *runs, il_error *reterr) MUST_USE;
/* The last result of a page, where the next page starts. */
struct check_cursor {
    int64_t     started_ms;
    const char *id;
};
/* Which results; NULL: no such condition. */
struct check_wanted {
    const char                *tenant;
    const char                *name;   /* of one invariant */
    const char                *prefix; /* of the names */
    const struct check_cursor *after;
    int64_t                    limit;
    const il_guard_tx_opts    *opts; /* of the transaction: its deadline */
};
/* List results of a tenant, newest first. */
il_status il__check_history_list(il_guard *g, const struct check_wanted *w, check_record_fn *each,
                                 void *cookie, il_error *reterr) MUST_USE;
/* One result by its id; each() is not called if it does not exist. opts may be NULL. */
il_status il__check_history_get(il_guard *g, const char *tenant, const char *id,
                                const il_guard_tx_opts *opts, check_record_fn *each, void *cookie,
                                il_error *reterr) MUST_USE;
/* What the last result of an invariant says about the data: CHECK_PASSED, CHECK_BROKEN, or
 * CHECK_NOT_RUN. One that could not run says nothing, and is passed over. */
il_status il__check_history_last(il_guard *g, const char *tenant, const char *name,
                                 enum check_outcome *ret, il_error *reterr) MUST_USE;
/* The last result of any kind; http_app.last_result. */
il_status il__check_history_newest(il_guard *g, const char *tenant, const char *name,
                                   struct invariant_last *ret, il_error *reterr) MUST_USE;
/* The invariants of all tenants that are broken, by the same rule. */
typedef void check_broken_fn(void *cookie, const char *tenant, const char *name);
il_status    il__check_history_broken(il_guard *g, check_broken_fn *each, void *cookie,
                                      il_error *reterr) MUST_USE;
/* Delete at most `limit` results that started before a time; *ret_n is how many. */
il_status il__check_history_purge(il_guard *g, int64_t before_ms, int64_t limit, int64_t *ret_n,
                                  il_error *reterr) MUST_USE;

/* The runs of a tenant that are active, as a JSON list of ids; those of invariants change nothing.
 * NULL: they cannot be listed, and the result is kept without them. free() it. */
char *il__check_active_runs(il *h, const char *tenant);

#endif
