/* app.c: the runner as an app of the server: open, stop, close. See serve.h. */
#include "apps/runner/serve.h"

#include "base/error.h"
#include "http/auth.h"
#include "http/metrics.h"
#include "http/scope.h"
#include "http/server.h"

static const char down[] = "Lock manager unavailable";

static const struct http_route routes[] = {
/* clang-format off */
#define R(method, path, permission, names, id, fn, query, body, answer, flags, summary, example) \
    { method,  path, { HTTP_MAY_##permission, HTTP_NAMES_##names }, runner_http_##fn, query, body, \
      answer, flags, summary, #id,  IL_OP_NONE,     example,   down, NULL, NULL, NULL },
/* The log of a run is that of the run in the store: the server's own handler. */
#define LOG(method, path, permission, id, summary) \
    { method, path, { HTTP_MAY_##permission, HTTP_NAMES_OPS }, http_do_route, NULL, NULL, \
      &http_out_log, HTTP_BARE | HTTP_WAITS, summary, #id, IL_OP_RUN_LOG, NULL, down, NULL, NULL, \
      http_run_log_read },
#include "apps/runner/routes.def"
#undef R
#undef LOG
    /* clang-format on */
};

static const struct http_app_error errors[] = {
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/runner/errors.def"
#undef X
};

struct runner_app *
runner_app_of(const struct http_request *r)
{
    return http_app_state(r->server, &runner_http_app);
}

struct pipeline *
runner_app_pipeline(struct http_request *r, const char *id)
{
    struct pipeline *p = il__catalogue_get(runner_app_of(r)->catalogue, r->caller->tenant, id);

    if (p != NULL && http_may_see(r, p->key))
        return p;
    il__pipeline_unref(p);
    http_fail(r, 404, "PIPELINE_NOT_FOUND", runner_http_app.name, NULL, "Pipeline %.128s not found",
              id);
    return NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* For triggers of schedules, on the runner's threads. A tenant that the data store does not
 * know, or cannot look up now, gets the server's limits. */
static void
limits_of(void *cookie, const char *tenant, uint32_t *live_max, uint32_t *day_max)
{
    struct runner_app     *app    = cookie;
    struct il__data_limits limits = { .runs         = atomic_load(&app->runs),
                                      .runs_per_day = atomic_load(&app->runs_per_day) };

    IGNORE(il__data_tenant_limits(app->server->data, tenant, &limits, NULL) != IL_OK);
    *live_max = (uint32_t)limits.runs;
    *day_max  = (uint32_t)limits.runs_per_day;
}

static void
learn_limits(struct runner_app *app)
{
    atomic_store(&app->runs, app->server->o->limits.runs);
    atomic_store(&app->runs_per_day, app->server->o->limits.runs_per_day);
}

static void
app_free(struct runner_app *app)
{
    runner_app_reload_end(app);
    runner_setup_release(&app->setup);
    il__free(app);
}

static il_status
app_open(struct http_server *s, const struct http_app_config *config, void **ret, il_error *reterr)
{
    struct runner_app *app = il__calloc(1, sizeof *app);

    if (app == NULL)
        return il__error_nomem(reterr);
    runner_app_reload_begin(app);
    app->server  = s;
    il_status st = runner_setup_init(&app->setup, config, reterr);
    if (st != IL_OK) {
        app_free(app);
        return st;
    }
    struct runner_options o = app->setup.options;
    app->lock_metrics       = o.defaults.lock_metrics;
    app->has_pipelines      = o.pipelines_dir != NULL;
    learn_limits(app);
    o.h             = s->h;
    o.data          = s->data;
    o.store_url     = s->o->store_url;
    o.note          = runner_app_note;
    o.note_cookie   = app;
    o.limits        = limits_of;
    o.limits_cookie = app;
    st              = runner_open(&o, &app->runner, reterr);
    if (st != IL_OK) {
        app_free(app);
        return st;
    }
    app->catalogue = runner_catalogue(app->runner);
    http_metrics_pipelines(s, runner_app_known, app);
    *ret = app;
    return IL_OK;
}

static void
app_stop(void *state)
{
    runner_stop(((struct runner_app *)state)->runner);
}

static void
app_close(void *state)
{
    struct runner_app *app = state;

    runner_close(app->runner);
    app_free(app);
}

static il_status
app_reload(void *state, const struct http_app_config *config, il_error *reterr)
{
    struct runner_app *app = state;

    il__mutex_lock(&app->setup_mutex);
    il_status st = runner_setup_reload(&app->setup, config, reterr);
    il__mutex_unlock(&app->setup_mutex);
    if (st != IL_OK)
        return st;
    app->lock_metrics = app->setup.options.defaults.lock_metrics;
    learn_limits(app);
    runner_app_reload(app);
    return IL_OK;
}

const struct http_app runner_http_app = {
    .name          = "pipeline",
    .run_class     = "pipeline",
    .routes        = routes,
    .n_routes      = ARRAY_LEN(routes),
    .errors        = errors,
    .n_errors      = ARRAY_LEN(errors),
    .open          = app_open,
    .stop          = app_stop,
    .close         = app_close,
    .reload        = app_reload,
    .print_metrics = runner_app_print,
};
