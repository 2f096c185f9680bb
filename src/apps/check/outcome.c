/*
 * outcome.c: stores a result, logs changes, updates metrics.
 */
#include <stdio.h>

#include "apps/check/serve.h"
#include "base/error.h"
#include "core/limits.h"

/* ---- tables ---------------------------------------------------------------------------------- */

enum {
    METRIC_PASSED,
    METRIC_BROKEN,
    METRIC_ERROR,
    METRIC_BROKEN_NOW,
    METRIC_INVALID,
    METRIC_COUNT
};
#define BY_SEVERITY "severity", il__invariant_severities, INVARIANT_SEVERITY_COUNT
const struct http_app_metric il__check_metrics[] = {
    [METRIC_PASSED]     = { HTTP_METRIC_counter, "interlock_check_passed_total",
                            "invariants checked by this server that passed", BY_SEVERITY },
    [METRIC_BROKEN]     = { HTTP_METRIC_counter, "interlock_check_broken_total",
                            "invariants checked by this server that are broken", BY_SEVERITY },
    [METRIC_ERROR]      = { HTTP_METRIC_counter, "interlock_check_errors_total",
                            "invariants that this server could not check", BY_SEVERITY },
    [METRIC_BROKEN_NOW] = { HTTP_METRIC_gauge, "interlock_checks_broken",
                            "invariants whose last result is broken", BY_SEVERITY },
    [METRIC_INVALID]    = { HTTP_METRIC_gauge, "interlock_checks_invalid",
                            "invariants with an invalid definition", NULL, NULL, 0 },
};
_Static_assert(ARRAY_LEN(il__check_metrics) == METRIC_COUNT, "serve.h");

enum {
    EVENT_LOADED,
    EVENT_REFUSED,
    EVENT_BROKEN,
    EVENT_BROKEN_WARNING,
    EVENT_BROKEN_INFO,
    EVENT_FIXED,
    EVENT_ERROR,
    EVENT_ERROR_WARNING,
    EVENT_ERROR_INFO,
    EVENT_TROUBLE,
    EVENT_COUNT
};
const struct http_app_event il__check_events[] = {
    [EVENT_LOADED]  = { HTTP_LOG_INFO, "checks.loaded", "invariant files loaded" },
    [EVENT_REFUSED] = { HTTP_LOG_ERROR, "checks.refused", "invalid definition of an invariant" },
    [EVENT_BROKEN] = { HTTP_LOG_ERROR, "check.broken", "an invariant of severity error is broken" },
    [EVENT_BROKEN_WARNING] = { HTTP_LOG_WARN, "check.broken",
                               "an invariant of severity warning is broken" },
    [EVENT_BROKEN_INFO]    = { HTTP_LOG_INFO, "check.broken",
                               "an invariant of severity info is broken" },
    [EVENT_FIXED]          = { HTTP_LOG_INFO, "check.fixed", "a broken invariant passes again" },
    [EVENT_ERROR]          = { HTTP_LOG_ERROR, "check.error",
                               "an invariant of severity error could not be checked" },
    [EVENT_ERROR_WARNING]  = { HTTP_LOG_WARN, "check.error",
                               "an invariant of severity warning could not be checked" },
    [EVENT_ERROR_INFO]     = { HTTP_LOG_INFO, "check.error",
                               "an invariant of severity info could not be checked" },
    [EVENT_TROUBLE]        = { HTTP_LOG_ERROR, "check.trouble",
                               "an operation of the app failed; it will be retried" },
};
_Static_assert(ARRAY_LEN(il__check_events) == EVENT_COUNT, "serve.h");

/* ---- log lines ------------------------------------------------------------------------------- */

void
il__check_trouble(struct check_app *app, const char *what, const char *text)
{
    char line[700];

    (void)snprintf(line, sizeof line, "%s%s%s", what != NULL ? what : "", what != NULL ? ": " : "",
                   text);
    http_app_log(app->server, &check_http_app, EVENT_TROUBLE, HTTP_LOG_TEXT("message", line));
}

void
il__check_refused(struct check_app *app, const char *tenant, const char *text)
{
    http_app_log(app->server, &check_http_app, EVENT_REFUSED, HTTP_LOG_TEXT("tenant_id", tenant),
                 HTTP_LOG_TEXT("message", text));
}

void
il__check_loaded(struct check_app *app, const struct check_current *c)
{
    if (app->tables == NULL)
        return; /* nothing to check */
    http_app_log(app->server, &check_http_app, EVENT_LOADED,
                 HTTP_LOG_INT("invariants", (int64_t)c->n),
                 HTTP_LOG_INT("invalid", (int64_t)c->n_invalid));
    http_app_gauge(app->server, &check_http_app, METRIC_INVALID, 0, (int64_t)c->n_invalid);
}

static void
report(struct check_app *app, const struct check_result *r, enum check_outcome before,
       const char *runs)
{
    static const size_t     broken[] = { [INVARIANT_INFO]    = EVENT_BROKEN_INFO,
                                         [INVARIANT_WARNING] = EVENT_BROKEN_WARNING,
                                         [INVARIANT_ERROR]   = EVENT_BROKEN };
    static const size_t     errors[] = { [INVARIANT_INFO]    = EVENT_ERROR_INFO,
                                         [INVARIANT_WARNING] = EVENT_ERROR_WARNING,
                                         [INVARIANT_ERROR]   = EVENT_ERROR };
    const struct check     *c        = r->check;
    AUTO_BUF struct il__buf text     = { 0 };
    size_t                  event    = EVENT_FIXED;

    if (r->outcome == CHECK_PASSED && before != CHECK_BROKEN)
        return;
    if (r->outcome != CHECK_PASSED)
        event = (r->outcome == CHECK_ERROR ? errors : broken)[c->severity];
    il__buf_init(&text, sizeof r->error.message + 200);
    il__check_summary(r, &text);
    http_app_log(app->server, &check_http_app, event, HTTP_LOG_TEXT("tenant_id", c->tenant),
                 HTTP_LOG_TEXT("check", c->name),
                 HTTP_LOG_TEXT("severity", il__invariant_severity_name(c->severity)),
                 HTTP_LOG_TEXT("message", text.n_bytes > 0 ? il__buf_str(&text) : NULL),
                 HTTP_LOG_TEXT("runs", r->outcome == CHECK_BROKEN ? runs : NULL));
}

/* ---- metrics --------------------------------------------------------------------------------- */

struct counting {
    const struct check_current *c;
    int64_t                     n[INVARIANT_SEVERITY_COUNT];
};

/* One that was removed from the files no longer counts. */
static void
count_broken(void *cookie, const char *tenant, const char *name)
{
    struct counting            *n = cookie;
    const struct check_subject *s = il__check_subject_get(n->c, tenant, name);

    if (s != NULL)
        n->n[s->check->severity]++;
}

/* Two threads may do this at once, and the one that read first may set last: that is put right
 * within a minute, when tidy() calls it. */
void
il__check_gauges(struct check_app *app)
{
    struct check_current *c   = il__check_app_current(app);
    struct counting       n   = { .c = c };
    il_error              err = { 0 };

    if (il__check_history_broken(app->tables, count_broken, &n, &err) == IL_OK) {
        for (size_t i = 0; i < INVARIANT_SEVERITY_COUNT; i++)
            http_app_gauge(app->server, &check_http_app, METRIC_BROKEN_NOW, i, n.n[i]);
    } else {
        il__check_trouble(app, "cannot count broken invariants", err.message);
    }
    il__check_current_unref(c);
}

/* ---- a result -------------------------------------------------------------------------------- */

il_status
il__check_conclude(struct check_app *app, il *h, const struct check_result *r, const char *run_id,
                   il_error *reterr)
{
    static const size_t counters[] = {
        [CHECK_PASSED] = METRIC_PASSED, [CHECK_BROKEN] = METRIC_BROKEN, [CHECK_ERROR] = METRIC_ERROR
    };
    enum check_outcome before = CHECK_NOT_RUN;
    char              *runs   = NULL;

    CHECK(r->outcome == CHECK_PASSED || r->outcome == CHECK_BROKEN || r->outcome == CHECK_ERROR);
    /* No other run of this invariant comes in between: this one holds its key. */
    il_status st =
        il__check_history_last(app->tables, r->check->tenant, r->check->name, &before, reterr);
    if (st == IL_OK && r->outcome == CHECK_BROKEN)
        runs = il__check_active_runs(h, r->check->tenant);
    if (st == IL_OK)
        st = il__check_history_add(app->tables, r, run_id, runs, reterr);
    if (st == IL_OK) {
        http_app_count(app->server, &check_http_app, counters[r->outcome], r->check->severity, 1);
        report(app, r, before, runs);
        il__check_gauges(app);
    }
    free(runs); /* NOLINT: jansson allocated it */
    return st;
}
