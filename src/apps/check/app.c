/*
 * app.c: invariants as an app of the server. It has tables and threads only if there is something
 * to check: a folder of files (`checks`), or tables of an app that registers invariants.
 */
#include "apps/check/serve.h"
#include "base/arena.h"
#include "base/error.h"
#include "http/log.h"
#include "http/pool.h"
#include "http/server.h"

#define SHUTDOWN_MS 0 /* invariants can be checked again: they are interrupted at once */

struct check_app *
il__check_app_of(const struct http_request *r)
{
    return http_app_state(r->server, &check_http_app);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void
forget_connections(struct il__connection *all, size_t n, void **mem)
{
    for (size_t i = 0; i < n; i++) {
        char *url = (char *)(uintptr_t)all[i].url; /* ours: in mem */
        explicit_bzero(url, strlen(url));
    }
    il__arena_free(mem);
}

static il_status
learn_connections(struct check_app *app, const struct http_app_config *config, il_error *reterr)
{
    size_t                 n   = config->n_connections;
    void                  *mem = NULL;
    struct il__connection *all = il__arena_alloc(&mem, (n + 1) * sizeof *all);

    for (size_t i = 0; i < n && all != NULL; i++) {
        all[i].name = il__arena_strdup(&mem, config->connections[i].name);
        all[i].url  = il__arena_strdup(&mem, config->connections[i].url);
        if (all[i].name == NULL || all[i].url == NULL)
            all = NULL;
    }
    if (all == NULL) {
        il__arena_free(&mem);
        return il__error_set(reterr, IL_NOMEM, "checks: out of memory");
    }
    il__mutex_lock(&app->mutex); /* a load may be copying them */
    forget_connections(app->connections, app->n_connections, &app->connections_mem);
    app->connections     = all;
    app->n_connections   = n;
    app->connections_mem = mem;
    il__mutex_unlock(&app->mutex);
    return IL_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static void
app_free(struct check_app *app)
{
    work_close(app->work);
    il_guard_close(app->tables);
    il__tables_place_unshare(app->place);
    il__check_current_unref(app->current);
    forget_connections(app->connections, app->n_connections, &app->connections_mem);
    il__mutex_destroy(&app->mutex);
    il__mutex_destroy(&app->load_mutex);
    il__free(app->dir);
    il__free(app);
}

static il_status
open_tables(struct check_app *app, il_error *reterr)
{
    const struct http_options *o    = app->server->o;
    struct tables_opts         opts = { .observe = http_row_lock, .cookie = app->server };
    il_status                  st   = IL_OK;

    if (app->place == NULL)
        st = il__tables_place_share(o->store_url, o->data_url, false, &app->place, reterr);
    return st == IL_OK ? il__tables_open(&il__check_tables, app->place, &opts, &app->tables, reterr)
                       : st;
}

static il_status
start_work(struct check_app *app, il_error *reterr)
{
    struct work_options o  = { .kind        = &il__check_kind,
                               .cookie      = app,
                               .h           = app->server->h,
                               .mode        = WORK_SERVE,
                               .shutdown_ms = SHUTDOWN_MS,
                               .keep_ms     = CHECK_CATCH_UP_MS,
                               .runs_max    = CHECK_RUNS_MAX };
    il_status           st = work_open(&o, &app->work, reterr);

    if (st == IL_OK)
        st = work_start(app->work, reterr);
    if (st != IL_OK) {
        work_close(app->work);
        app->work = NULL;
    }
    return st;
}

static il_status
app_open(struct http_server *s, const struct http_app_config *config, void **ret, il_error *reterr)
{
    struct check_app *app = il__calloc(1, sizeof *app);
    const char       *dir = http_setting_text(config, "checks");

    if (app == NULL)
        return il__error_set(reterr, IL_NOMEM, "checks: out of memory");
    il__mutex_init(&app->load_mutex, IL__MUTEX_app_reload);
    il__mutex_init(&app->mutex, IL__MUTEX_check_set);
    app->server  = s;
    app->keep_ms = http_setting_number(config, "check_keep");
    app->dir     = dir != NULL ? il__strdup(dir) : NULL;
    il_status st = dir != NULL && app->dir == NULL
                       ? il__error_set(reterr, IL_NOMEM, "checks: out of memory")
                       : learn_connections(app, config, reterr);
    if (st == IL_OK)
        st = il__check_app_load(app, reterr);
    if (st != IL_OK) {
        app_free(app);
        return st;
    }
    *ret = app;
    return IL_OK;
}

static il_status
app_in_use(void *state, bool *ret, il_error *reterr)
{
    const struct check_app *app     = state;
    uint32_t                present = 0;
    il_status st = app->dir != NULL ? IL_OK : il__check_present(app, &present, reterr);

    *ret = app->dir != NULL || present != 0;
    return st;
}

/* It may have failed before, half-way. */
static il_status
app_start(void *state, il_error *reterr)
{
    struct check_app *app = state;
    il_status         st  = app->tables != NULL ? IL_OK : open_tables(app, reterr);

    if (st == IL_OK)
        st = il__check_app_load(app, reterr);
    return st == IL_OK ? start_work(app, reterr) : st;
}

static void
app_stop(void *state)
{
    work_stop(((struct check_app *)state)->work);
}

static void
app_close(void *state)
{
    app_free(state);
}

/* ---- reload ---------------------------------------------------------------------------------- */

static void send_load(struct check_app *app);

static void
do_load(struct http_job *job)
{
    struct check_app *app = container_of(job, struct check_app, hup);

    app->hup_status = il__check_app_load(app, &app->hup_error);
}

static void
did_load(struct http_job *job)
{
    struct check_app *app = container_of(job, struct check_app, hup);

    if (app->hup_status != IL_OK)
        http_log(app->server, HTTP_EVENT_reload_refused, "%s", app->hup_error.message);
    app->hup_busy = false;
    if (app->hup_again)
        send_load(app);
}

/* One at a time: a signal that comes meanwhile repeats it, since it may have missed changes. */
static void
send_load(struct check_app *app)
{
    app->hup_again = app->hup_busy;
    if (app->hup_busy)
        return;
    app->hup_busy = true;
    app->hup      = (struct http_job){ .work = do_load, .then = did_load };
    http_pool_send(app->server, &app->hup);
}

static il_status
app_reload(void *state, const struct http_app_config *config, il_error *reterr)
{
    struct check_app *app = state;
    il_status         st  = learn_connections(app, config, reterr);

    if (st == IL_OK && http_app_is_started(app->server, &check_http_app))
        send_load(app);
    return st;
}

/* ---- for other commands ---------------------------------------------------------------------- */

/* `interlock check` reports what is wrong with a file. */
static void
ignore_remark(void *cookie UNUSED, const struct doc_remark *m UNUSED)
{
}

static il_status
each_query(const struct http_app_config *config, http_query_fn *each, void *cookie,
           il_error *reterr)
{
    const char      *dir = http_setting_text(config, "checks");
    struct check_set set = { .mem = NULL };

    if (dir == NULL)
        return IL_OK;
    il_status st = il__checks_load(&set, dir, NULL, ignore_remark, NULL, reterr);
    for (size_t i = 0; i < set.n && st == IL_OK; i++) {
        const struct check *c = &set.items[i];
        if (c->fault == NULL)
            each(cookie, &(struct http_query){ c->name, c->connection, c->sql });
    }
    il__checks_release(&set);
    return st;
}

/* ---- the app --------------------------------------------------------------------------------- */

static const struct http_app_error errors[] = {
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/check/errors.def"
#undef X
};

const struct http_app check_http_app = {
    .name      = "check",
    .run_class = CHECK_CLASS,
    .routes    = il__check_routes,
    .n_routes  = ARRAY_LEN(il__check_routes),
    .errors    = errors,
    .n_errors  = ARRAY_LEN(errors),
    .metrics   = il__check_metrics,
    .n_metrics = ARRAY_LEN(il__check_metrics),
    .events    = il__check_events,
    .n_events  = ARRAY_LEN(il__check_events),
    .tables    = &il__check_tables,
    .open      = app_open,
    .in_use    = app_in_use,
    .start     = app_start,
    .passive   = true,
    .stop      = app_stop,
    .close     = app_close,
    .reload    = app_reload,

    .last_result = il__check_history_newest,
    .queries     = each_query,
};
