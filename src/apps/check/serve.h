/*
 * serve.h: invariants in the server: an app that executes them as runs (apps/work). check.h lists
 * the files.
 *
 * A run of an invariant has the key check:NAME in its tenant. Of several servers one executes it.
 * Its id is that of its result in the history.
 */
#ifndef IL_APPS_CHECK_SERVE_H
#define IL_APPS_CHECK_SERVE_H

#include <stdatomic.h>

#include "apps/check/check.h"
#include "apps/check/history.h"
#include "apps/work/work.h"
#include "base/mutex.h"
#include "http/app.h"
#include "http/handler.h"

#define CHECK_RUNS_MAX 16          /* invariants that run at the same time on a server */
#define CHECK_CATCH_UP_MS 86400000 /* a tick missed while no server was running */
#define CHECK_PAGE_MAX 100

extern const struct http_app check_http_app;

/* ---- the current invariants: set.c ----------------------------------------------------------- */

struct check_current;

/* A subject of apps/work: an invariant of a set that is kept as long as it has references. */
struct check_subject {
    struct check_current *set;
    const struct check   *check;
};

/* The invariants of all tenants, as they were read, and the connections. It does not change. */
struct check_current {
    atomic_uint            n_refs;
    struct check_set       set;
    struct check_subject  *subjects; /* sorted by tenant and name; of two, the valid one first */
    size_t                 n;
    struct il__connection *connections;
    size_t                 n_connections;
    void                  *mem;      /* the connections' texts */
    uint64_t               own_hash; /* of tenants, and of apps that have tables */
    size_t                 n_invalid;
};
struct check_current *il__check_current_ref(struct check_current *c);
void                  il__check_current_unref(struct check_current *c); /* NULL is fine */
/* The first subject of a tenant with this name, or after it; the end: set->subjects + set->n. */
const struct check_subject *il__check_subject_from(const struct check_current *c,
                                                   const char *tenant, const char *name,
                                                   bool after);
/* One invariant, valid or not; NULL: does not exist. Borrowed. */
const struct check_subject *il__check_subject_get(const struct check_current *c, const char *tenant,
                                                  const char *name);

struct check_app;
/* Read the files again, and replace the current set. Blocks; one call at a time. */
il_status il__check_app_load(struct check_app *app, il_error *reterr) MUST_USE;
/* Have the tenants changed, or the apps that have tables? Then load again. */
void il__check_app_look(struct check_app *app);
/* Which apps register invariants and have tables: bits, by their index. Blocks. */
il_status il__check_present(const struct check_app *app, uint32_t *ret, il_error *reterr) MUST_USE;

/* ---- the app: app.c -------------------------------------------------------------------------- */

struct check_app {
    struct http_server  *server;
    char                *dir; /* NULL: no files */
    int64_t              keep_ms;
    int64_t              purge_ns; /* work_kind.c: when to purge again */
    struct tables_place *place;
    il_guard            *tables; /* NULL: nothing to check, so no history either */
    struct work         *work;

    /* One load at a time: by SIGHUP on a thread of the pool, and when tenants have changed on a
     * thread of `work`. */
    struct il__mutex load_mutex;

    struct il__mutex       mutex; /* protects what follows; never held for long */
    struct check_current  *current;
    struct il__connection *connections; /* of the configuration; a load copies them */
    size_t                 n_connections;
    void                  *connections_mem;

    struct http_job hup; /* the load on SIGHUP; used on the loop */
    bool            hup_busy, hup_again;
    il_status       hup_status;
    il_error        hup_error;
};
struct check_app     *il__check_app_of(const struct http_request *r);
struct check_current *il__check_app_current(struct check_app *app); /* a reference */

/* ---- runs: work_kind.c ----------------------------------------------------------------------- */

extern const struct work_kind il__check_kind;
/* The op that starts an invariant now. */
il_status il__check_start_op(const struct check *c, const char *id, const char *by, void **mem,
                             il_op *op, il_error *reterr) MUST_USE;

/* ---- results: outcome.c ---------------------------------------------------------------------- */

/* Keep a result under the id of its run, and report it: log, metrics. */
il_status il__check_conclude(struct check_app *app, il *h, const struct check_result *r,
                             const char *run_id, il_error *reterr) MUST_USE;
/* Set the gauges of broken and of invalid invariants. */
void il__check_gauges(struct check_app *app);
/* The log lines and metrics of the app. */
extern const struct http_app_metric il__check_metrics[5];
extern const struct http_app_event  il__check_events[10];
void il__check_trouble(struct check_app *app, const char *what, const char *text);
void il__check_refused(struct check_app *app, const char *tenant, const char *text);
void il__check_loaded(struct check_app *app, const struct check_current *c);

/* ---- routes: routes.c, routes_run.c ---------------------------------------------------------- */

/* A result; NULL: printed as null. */
struct check_result_out {
    const char *id, *tenant, *name, *severity, *outcome;
    int64_t     n_new, n_known;
    const char *offenders, *not_needed, *runs; /* JSON */
    const char *error;
    uint32_t    flags; /* CHECK_FAILED */
    int64_t     started_ms, took_ms;
};
#define CHECK_FAILED 1U
struct check_out {
    const char              *tenant, *name, *severity, *description, *connection, *schedule, *zone;
    const char              *path, *error;
    int64_t                  next_ms, timeout_ms, n_baseline;
    uint32_t                 has; /* CHECK_HAS_LAST */
    struct check_result_out  last;
    struct check_result_out *results;
    size_t                   n_results;
};
#define CHECK_HAS_LAST 1U
struct check_started_one {
    const char *name, *run, *error;
};
struct check_started {
    struct check_started_one *runs;
    size_t                    n_runs;
};
struct check_page_in {
    const char *cursor, *name;
    uint32_t    limit; /* 0 = not given */
    uint32_t    flags; /* CHECK_STRICT */
};
#define CHECK_STRICT 1U
struct check_run_in {
    const char *const *names;
    size_t             n_names;
};
extern const struct wire_object il__check_in_page, il__check_in_results, il__check_in_result,
    il__check_in_run;
extern const struct wire_object il__check_out, il__check_full_out, il__check_result_out,
    il__check_started_out;

extern const struct http_route il__check_routes[5];
http_fn                        il__check_http_run, il__check_http_result;
/* Copy a record of the history into r->mem. False: out of memory. */
bool il__check_result_show(struct http_request *r, const struct check_record *from, bool strict,
                           struct check_result_out *ret) MUST_USE;

#endif
