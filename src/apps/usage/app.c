/* app.c: the usage cache as an app of the server. See serve.h. */
#include <inttypes.h>

#include "apps/common/pipeline.h"
#include "apps/usage/serve.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/server.h"

#define REBUILDS_KEEP_MS (INT64_C(7) * 86400000)

struct usage_app *
usage_app_of(const struct http_request *r)
{
    return http_app_state(r->server, &usage_http_app);
}

bool
usage_require_served(struct http_request *r)
{
    if (usage_app_of(r)->usage != NULL)
        return true;
    http_fail(r, 503, "USAGE_NOT_SERVED", usage_http_app.name, NULL,
              "usage is not configured: set usage.source.type");
    return false;
}

/* ---- log lines and metrics ------------------------------------------------------------------- */

static const struct http_app_event events[USAGE_EVENT_COUNT] = {
    [USAGE_EVENT_built]      = { HTTP_LOG_INFO, "usage.built", "a day was built and stored" },
    [USAGE_EVENT_failed]     = { HTTP_LOG_WARN, "usage.source_failed",
                                 "the source of usage failed; older figures stay in use" },
    [USAGE_EVENT_contention] = { HTTP_LOG_WARN, "usage.contention",
                                 "more than 20 % of attempts to lease a day found it leased "
                                 "elsewhere" },
    [USAGE_EVENT_trouble]    = { HTTP_LOG_ERROR, "usage.trouble",
                                 "the store or the tables of usage failed" },
};

static void
on_note(void *cookie, const struct usage_note *n)
{
    const struct usage_app *app = cookie;

    http_app_log(app->server, &usage_http_app, n->event, HTTP_LOG_TEXT("tenant_id", n->tenant),
                 HTTP_LOG_TEXT("date", n->date), HTTP_LOG_TEXT("reason", n->text),
                 HTTP_LOG_MS("took_ms", n->took_ms * IL__NS_PER_MS));
}

void
usage_app_trouble(struct usage_app *app, const char *what, const char *text)
{
    http_app_log(app->server, &usage_http_app, USAGE_EVENT_trouble, HTTP_LOG_TEXT("what", what),
                 HTTP_LOG_TEXT("reason", text));
}

static void
print_metrics(void *state, struct il__buf *out)
{
    const struct usage_app *app    = state;
    struct usage_counts     counts = { 0 };

    if (app->usage != NULL)
        usage_counts(app->usage, &counts);
#define X(member, name, type, help)                                                            \
    il__buf_addf(out,                                                                          \
                 "# HELP " name " " help "\n# TYPE " name " " type "\n" name " %" PRIu64 "\n", \
                 counts.member);
#include "apps/usage/metrics.def"
#undef X
}

/* ---- open and close -------------------------------------------------------------------------- */

static void
app_close(void *state)
{
    struct usage_app *app = state;

    work_close(app->work);
    usage_setup_close(&app->setup);
    CHECK(pthread_cond_destroy(&app->landing) == 0);
    il__mutex_destroy(&app->mutex);
    il__arena_free(&app->tenants_mem);
    il__free(app);
}

static il_status
start_work(struct usage_app *app, il_error *reterr)
{
    struct work_options o  = { .kind     = &usage_kind,
                               .cookie   = app,
                               .h        = app->server->h,
                               .mode     = WORK_SERVE,
                               .keep_ms  = REBUILDS_KEEP_MS,
                               .runs_max = USAGE_REBUILDS_MAX };
    il_status           st = usage_tenants_read(app, reterr);

    if (st == IL_OK)
        st = work_open(&o, &app->work, reterr);
    return st == IL_OK ? work_start(app->work, reterr) : st;
}

static il_status
app_open(struct http_server *s, const struct http_app_config *config, void **ret, il_error *reterr)
{
    struct usage_app             *app = il__calloc(1, sizeof *app);
    const struct usage_setup_opts o   = { .h              = s->h,
                                          .store_url      = s->o->store_url,
                                          .data_url       = s->o->data_url,
                                          .note           = on_note,
                                          .cookie         = app,
                                          .observe        = http_row_lock,
                                          .observe_cookie = s };

    if (app == NULL)
        return il__error_set(reterr, IL_NOMEM, "usage: out of memory");
    il__mutex_init(&app->mutex, IL__MUTEX_usage_app);
    il__cond_init(&app->landing);
    app->server  = s;
    il_status st = usage_setup_open(&app->setup, config, &o, reterr);
    app->usage   = app->setup.usage;
    if (st == IL_OK && app->usage != NULL)
        st = start_work(app, reterr);
    if (st != IL_OK) {
        app_close(app);
        return st;
    }
    *ret = app;
    return IL_OK;
}

/* Builds are interrupted at once: those who wait can ask another server, and nothing is lost. */
static void
app_stop(void *state)
{
    struct usage_app *app = state;

    if (app->work != NULL)
        work_stop(app->work);
    if (app->usage != NULL)
        usage_stop(app->usage);
}

static void
app_tick(void *state, int64_t now_ns)
{
    usage_held_tick(state, now_ns);
}

/* ---- the app --------------------------------------------------------------------------------- */

static const struct http_app_error errors[] = {
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/usage/errors.def"
#undef X
};

static const struct app_pipeline pipelines[] = {
    { .name       = "build",
      .summary    = "fetches a day of usage and writes its row",
      .entities   = (const char *const[]){ NULL },
      .invariants = (const char *const[]){ "complete_early", NULL },
      .checklist  = {
          [CHECKLIST_row_lock]  = { PIPELINE_NOT_APPLICABLE, "the row is replaced as a whole" },
          [CHECKLIST_counters]  = { PIPELINE_NOT_APPLICABLE, "figures come from the source" },
          [CHECKLIST_repeats]   = { PIPELINE_YES, "primary key (tenant, date), upserted" },
          [CHECKLIST_constraints] = { PIPELINE_YES, "src/apps/usage/sql/schema_sqlite.sql" },
          [CHECKLIST_json]      = { PIPELINE_YES, "under the lease of the day, with its fence" },
          [CHECKLIST_replay]    = { PIPELINE_NOT_APPLICABLE, "nothing is replayed" },
          [CHECKLIST_invariant] = { PIPELINE_YES, "complete_early" },
          [CHECKLIST_freeze]    = { PIPELINE_YES, "src/apps/usage/build.c" },
          [CHECKLIST_race_test] = { PIPELINE_YES, "tests/usage/cache.c" },
          [CHECKLIST_claim]     = { PIPELINE_NOT_APPLICABLE, "no queue" },
          [CHECKLIST_aggregates] = { PIPELINE_NOT_APPLICABLE, "computed once, from the raw data" },
          [CHECKLIST_timeouts]  = { PIPELINE_YES, "the lease expires; tests/usage/crash.c" },
          [CHECKLIST_indexes]   = { PIPELINE_NOT_APPLICABLE, "no table of jobs" },
      } },
};

const struct http_app usage_http_app = {
    .name          = "usage",
    .run_class     = USAGE_CLASS,
    .keys          = (const char *const[]){ USAGE_KEY, USAGE_LIMIT_KEY, USAGE_RUN_KEY, NULL },
    .routes        = usage_routes,
    .n_routes      = ARRAY_LEN(usage_routes),
    .errors        = errors,
    .n_errors      = ARRAY_LEN(errors),
    .events        = events,
    .n_events      = ARRAY_LEN(events),
    .tables        = &usage_tables,
    .invariants    = usage_invariants,
    .n_invariants  = ARRAY_LEN(usage_invariants),
    .pipelines     = pipelines,
    .n_pipelines   = ARRAY_LEN(pipelines),
    .open          = app_open,
    .stop          = app_stop,
    .close         = app_close,
    .print_metrics = print_metrics,
    .tick          = app_tick,
};
