/*
 * check.h: invariants: named queries that must find nothing. They come from YAML files
 * (docs/CHECKS.md) and from the tables of apps (apps/common/invariant.h).
 *
 * load.c, execute.c, report.c and history.c need neither a store nor a server.
 *
 *   load.c              reads the files
 *   execute.c           runs the queries
 *   report.c            results as JSON and JUnit XML
 *   history.c           results in the app's tables
 *   app.c               the app in the server (serve.h)
 *   set.c               the current invariants of a server
 *   work_kind.c         invariants as a kind of work (apps/work)
 *   outcome.c           stores a result, logs changes, updates metrics
 *   routes.c            the routes that read
 *   routes_run.c        starts runs, and waits for results
 *   routes_tables.c     the JSON tables of the routes
 *   cmd_check.c         `interlock check`
 *   cmd_check_here.c    the same without a server
 *   cmd_check_server.c  the same with --server
 */
#ifndef IL_APPS_CHECK_CHECK_H
#define IL_APPS_CHECK_CHECK_H

#include <jansson.h>

#include "apps/common/invariant.h"
#include "apps/common/yaml.h"
#include "core/cron.h"
#include "base/buf.h"
#include "core/limits.h" /* IL__NEVER */
#include "http/app.h"

#define CHECK_FILE_BYTES_MAX (1 << 20)
#define CHECK_FILES_MAX 1000
#define CHECK_ITEMS_MAX 5000 /* invariants of a set */
#define CHECK_NAME_BYTES_MAX 64
#define CHECK_SQL_BYTES_MAX 65536
#define CHECK_BASELINE_MAX 10000 /* keys of one invariant */
#define CHECK_THREADS_MAX 8      /* invariants that run at the same time */
#define CHECK_TIMEOUT_MS 30000
#define CHECK_TIMEOUT_MS_MIN 100
#define CHECK_TIMEOUT_MS_MAX 3600000
#define CHECK_SCHEDULE "0 9 * * 1" /* Mondays at 09:00, UTC */

/* An invariant. Strings live as long as its set. */
struct check {
    const char             *tenant;
    const char             *name; /* of an app: "campus.booking_capacity" */
    const char             *description;
    enum invariant_severity severity;
    const char             *connection; /* NULL: an app's tables */
    const char             *sql;        /* NULL: see own */
    const char             *schedule_text;
    struct il__cron         schedule;
    const struct il__zone  *zone;
    char *const            *on_success; /* NULL = none */
    char *const            *on_failure; /* also of a violation */
    char *const            *on_lost;
    int64_t                 timeout_ms;
    const char *const      *baseline; /* sorted, without duplicates */
    size_t                  n_baseline;
    const char             *path; /* of its file; "" = an app's */
    size_t                  line;
    const char             *fault; /* why it cannot run: its definition is invalid; NULL: valid */
    const struct http_app  *app;   /* NULL: of a file */
    const struct app_invariant *own;
};

struct check_set {
    void         *mem; /* arena */
    struct check *items;
    size_t        n, capacity;
    size_t        n_files;
};
void il__checks_release(struct check_set *set);

/* Add an invariant with the defaults. *ret is valid until the next one is added. */
il_status il__checks_add(struct check_set *set, struct check **ret, il_error *reterr) MUST_USE;

/* ---- load.c ---------------------------------------------------------------------------------- */

/*
 * Add the invariants of DIR/TENANT/NAME.yml to a set (zeroed before its first use); of all tenants,
 * or only of `tenant` if it is not NULL. Every fault is passed to `remark`. An invalid invariant,
 * or a file that cannot be read, is an item with a fault, so that it cannot be mistaken for one
 * that holds. IL_OK even then; IL_INVAL: the folder cannot be read, or a limit is exceeded;
 * IL_NOMEM.
 */
il_status il__checks_load(struct check_set *set, const char *dir, const char *tenant,
                          doc_remark_fn *remark, void *cookie, il_error *reterr) MUST_USE;
/* Add the invariants that an app registers, for one tenant. IL_OK, IL_NOMEM. */
il_status il__checks_add_app(struct check_set *set, const struct http_app *app, const char *tenant,
                             il_error *reterr) MUST_USE;
/* When it is due next; IL__NEVER: it has no schedule, or is invalid. */
int64_t il__check_next_tick(const struct check *c, int64_t after_ms);

/* ---- execute.c ------------------------------------------------------------------------------- */

enum check_outcome {
    CHECK_NOT_RUN, /* until it has ended */
    CHECK_PASSED,
    CHECK_BROKEN,  /* offenders that are not in its baseline */
    CHECK_ERROR,   /* could not run */
    CHECK_SKIPPED, /* of an app that has no tables here */
    CHECK_OUTCOME_COUNT
};
const char *il__check_outcome_name(enum check_outcome outcome); /* "broken" */

struct check_result {
    const struct check    *check;
    enum check_outcome     outcome;
    struct invariant_found found;      /* empty unless it passed or is broken */
    int64_t                started_ms; /* wall clock */
    int64_t                took_ms;
    il_error               error; /* CHECK_ERROR: why */
};

/* Where invariants look, and where reports go. */
struct check_how {
    /* The URL of a connection (the caller frees it with il__free()); called from several threads.
     * IL_NOT_FOUND: no such connection. */
    il_status (*url)(void *cookie, const char *connection, char **ret, il_error *reterr);
    /* The tables of an app: a new handle, which is closed after use; called from several threads.
     * IL_NOT_FOUND: it has none, so its invariants are skipped. May be NULL: no app has any. */
    il_status (*tables)(void *cookie, const struct http_app *app, il_guard **ret, il_error *reterr);
    /* Called on the caller's thread when one has ended; may be NULL. */
    void (*ended)(void *cookie, const struct check_result *result, size_t n_ended, size_t n);
    void *cookie;
};

/* Called when the handle of an invariant is open, and with NULL before it is closed: in between it
 * may be interrupted (il_guard_interrupt()), and should be at its deadline, CLOCK_BOOTTIME. */
struct check_watch {
    void (*fn)(void *cookie, il_guard *g, int64_t deadline_ns);
    void *cookie;
};
/* Run one invariant on this thread; release the result. One that was interrupted before its
 * deadline has timed out as well: only the caller knows better. */
void il__check_run(const struct check *c, const struct check_how *how, const struct check_watch *w,
                   struct check_result *ret);

/*
 * Run invariants: each in a read-only transaction of its own that is ended after its timeout,
 * several at a time. results[i] is for checks[i]; release each with il__check_result_release().
 * Blocks until all have ended. IL_OK, whatever they found; IL_NOMEM: nothing ran.
 */
il_status il__checks_run(const struct check *const *checks, size_t n, const struct check_how *how,
                         struct check_result *results, il_error *reterr) MUST_USE;
void      il__check_result_release(struct check_result *r);

/* ---- report.c -------------------------------------------------------------------------------- */

/* An invariant, or a result; NULL = out of memory. */
json_t *il__check_json(const struct check *c, int64_t now_ms);
json_t *il__check_result_json(const struct check_result *r);
/* Parts of a result: [{"key", "text"}], and {"count", "keys"}. */
json_t *il__check_offenders_json(const struct invariant_found *f);
json_t *il__check_not_needed_json(const struct invariant_found *f);
/* Append all results as JUnit XML; with `strict`, broken warnings are failures, too. */
void il__check_junit(const struct check_result *results, size_t n, bool strict,
                     struct il__buf *out);
/* Append "3 new offenders, 2 known", or the reason of an error. */
void il__check_summary(const struct check_result *r, struct il__buf *out);
/* Does this result make the whole fail: broken, and an error (with `strict` also a warning)? */
bool il__check_fails(const struct check_result *r, bool strict);

#endif
