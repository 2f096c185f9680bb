/*
 * routes_reload.c: reloads the pipeline files on POST /pipelines/reload and on SIGHUP. A thread
 * of the server's pool does the work, one reload at a time.
 */
#include "apps/runner/serve.h"
#include "base/error.h"
#include "http/admin.h"
#include "http/audit.h"
#include "http/auth.h"
#include "http/log.h"
#include "http/pool.h"
#include "http/server.h"

/* Where faults are reported. */
struct runner_collecting {
    struct http_request     *r;
    struct runner_loaded_out out;
};

void
runner_app_refused(struct runner_app *app, const char *tenant, const char *text)
{
    struct runner_collecting *c = atomic_load(&app->collecting);

    if (c == NULL || c->out.n_problems == RUNNER_PROBLEMS_MAX || text == NULL)
        return;
    if (!http_may_reach(c->r->caller, tenant))
        return; /* file names of other tenants are not shown */
    struct runner_problem *p = &c->out.problems[c->out.n_problems];
    p->text                  = il__arena_strdup(&c->r->mem, text);
    if (p->text != NULL)
        c->out.n_problems++;
}

static bool
copy_options(const struct runner_options *o, void **mem, struct runner_options *ret)
{
    struct il__connection *all =
        o->n_connections > 0 ? il__arena_alloc(mem, o->n_connections * sizeof *all) : NULL;

    *ret             = *o;
    ret->connections = all;
    if (o->n_connections > 0 && all == NULL)
        return false;
    for (size_t i = 0; i < o->n_connections; i++) {
        all[i].name = il__arena_strdup(mem, o->connections[i].name);
        all[i].url  = il__arena_strdup(mem, o->connections[i].url);
        if (all[i].name == NULL || all[i].url == NULL)
            return false;
    }
    return true;
}

/* On a thread of the pool. With the options as they are when its turn comes: those of an earlier
 * time might be older than the ones of the reload before. */
static il_status
read_again(struct runner_app *app, struct runner_collecting *collecting,
           struct pipeline_loaded *loaded, il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    struct runner_options      o;
    il_status                  st = IL_OK;

    il__mutex_lock(&app->reload_mutex);
    il__mutex_lock(&app->setup_mutex);
    if (!copy_options(&app->setup.options, &mem, &o))
        st = il__error_nomem(reterr);
    il__mutex_unlock(&app->setup_mutex);
    atomic_store(&app->collecting, collecting);
    if (st == IL_OK)
        st = runner_reload(app->runner, &o, loaded, reterr);
    atomic_store(&app->collecting, NULL);
    il__mutex_unlock(&app->reload_mutex);
    return st;
}

/* ---- POST /pipelines/reload ------------------------------------------------------------------ */

struct reload_work {
    struct runner_collecting collecting;
    il_status                status;
    il_error                 error;
};

static void
do_reload(struct http_request *r)
{
    struct reload_work    *w      = r->state;
    struct pipeline_loaded loaded = { .n_pipelines = 0 };

    w->status                   = read_again(runner_app_of(r), &w->collecting, &loaded, &w->error);
    w->collecting.out.pipelines = loaded.n_pipelines;
    w->collecting.out.tenants   = loaded.n_tenants;
    w->collecting.out.bad       = loaded.n_bad;
    w->collecting.out.kept      = loaded.n_kept;
    w->collecting.out.changed   = loaded.n_changed;
}

static void
recorded(struct http_request *r)
{
    const struct reload_work *w = r->state;

    if (w->status == IL_OK)
        http_say(r, 200, &runner_out_loaded, &w->collecting.out);
    else
        http_fail(r, il_status_http(w->status), il_status_name(w->status), runner_http_app.name,
                  NULL, "%s",
                  http_may_reach(r->caller, NULL) ? w->error.message
                                                  : "cannot read the pipelines folder");
}

static void
did_reload(struct http_request *r)
{
    const struct reload_work *w = r->state;

    http_audit(r,
               &(struct http_action){ .action  = "pipelines.reload",
                                      .what    = "pipelines",
                                      .outcome = il_status_name(w->status) },
               recorded);
}

void
runner_http_pipeline_reload(struct http_request *r)
{
    struct reload_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    w->collecting.r = r;
    w->collecting.out.problems =
        http_alloc(r, RUNNER_PROBLEMS_MAX * sizeof *w->collecting.out.problems);
    if (w->collecting.out.problems == NULL) {
        http_fail_nomem(r);
        return;
    }
    r->state = w;
    http_errand_slow(r, do_reload, did_reload);
}

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

static void
hup_work(struct http_job *job)
{
    struct runner_app *app = container_of(job, struct runner_app, hup.job);

    app->hup.status = read_again(app, NULL, NULL, &app->hup.error);
}

static void
hup_done(struct http_job *job)
{
    struct runner_app *app = container_of(job, struct runner_app, hup.job);

    if (app->hup.status != IL_OK)
        http_log(app->server, HTTP_EVENT_reload_refused, "pipelines: %s", app->hup.error.message);
    app->hup.busy = false;
    if (app->hup.again)
        runner_app_reload(app);
}

void
runner_app_reload(struct runner_app *app)
{
    app->hup.again = app->hup.busy;
    if (app->hup.busy)
        return; /* repeat when that one is done: it may have missed later changes */
    app->hup.busy = true;
    app->hup.job  = (struct http_job){ .work = hup_work, .then = hup_done };
    http_pool_send(app->server, &app->hup.job);
}

void
runner_app_reload_begin(struct runner_app *app)
{
    il__mutex_init(&app->reload_mutex, IL__MUTEX_app_reload);
    il__mutex_init(&app->setup_mutex, IL__MUTEX_app_setup);
}

/* No one else uses them any more. */
void
runner_app_reload_end(struct runner_app *app)
{
    il__mutex_destroy(&app->setup_mutex);
    il__mutex_destroy(&app->reload_mutex);
}
