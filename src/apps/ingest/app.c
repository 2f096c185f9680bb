/*
 * app.c: race results as an app of the server: open, start and close, and its tables.
 */
#include "apps/ingest/options.h"
#include "apps/ingest/routes_read.h"
#include "apps/ingest/routes_run.h"
#include "apps/ingest/serve.h"
#include "apps/ingest/verify.h"
#include "base/arena.h"
#include "base/error.h"
#include "http/server.h"

struct ingest_app *
il__ingest_app_of(const struct http_request *r)
{
    return http_app_state(r->server, &ingest_http_app);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void
app_free(struct ingest_app *app)
{
    il__ingest_close(app->ingest);
    il_guard_close(app->tables);
    il__tables_place_unshare(app->place);
    il__arena_free(&app->mem);
    il__free(app);
}

/* The texts of a configuration live only as long as the call that passes it. */
static bool
keep_text(struct ingest_app *app, const char **text)
{
    if (*text != NULL)
        *text = il__arena_strdup(&app->mem, *text);
    return *text != NULL;
}

static il_status
read_config(struct ingest_app *app, const struct http_app_config *config, il_error *reterr)
{
    struct ingest_options *o   = &app->options;
    il_status              st  = il__ingest_options_read(config, o, reterr);
    const char *const schedule = o->schedule, *const tracks = o->tracks;

    if (st != IL_OK)
        return st;
    if (!keep_text(app, &o->fetch.base) || (schedule != NULL && !keep_text(app, &o->schedule)) ||
        (tracks != NULL && !keep_text(app, &o->tracks)))
        return il__error_set(reterr, IL_NOMEM, "ingest: out of memory");
    o->h              = app->server->h;
    o->data           = app->server->data;
    o->mode           = WORK_SERVE;
    o->note           = il__ingest_report;
    o->cookie         = app;
    o->observe        = http_row_lock;
    o->observe_cookie = app->server;
    return IL_OK;
}

static il_status
app_open(struct http_server *s, const struct http_app_config *config, void **ret, il_error *reterr)
{
    struct ingest_app *app = il__calloc(1, sizeof *app);

    if (app == NULL)
        return il__error_set(reterr, IL_NOMEM, "ingest: out of memory");
    app->server  = s;
    il_status st = read_config(app, config, reterr);
    if (st != IL_OK) {
        app_free(app);
        return st;
    }
    *ret = app;
    return IL_OK;
}

/* Somebody has ingested here before, or the schedule will: then runs may wait for a server. */
static il_status
app_in_use(void *state, bool *ret, il_error *reterr)
{
    const struct ingest_app   *app = state;
    const struct http_options *o   = app->server->o;

    *ret = app->options.schedule != NULL && app->options.schedule[0] != '\0';
    return *ret ? IL_OK
                : il__tables_exist(&il__ingest_tables, o->store_url, o->data_url, ret, reterr);
}

/* It may have failed before, half-way. */
static il_status
app_start(void *state, il_error *reterr)
{
    struct ingest_app         *app  = state;
    const struct http_options *o    = app->server->o;
    struct tables_opts         opts = { .observe = http_row_lock, .cookie = app->server };
    il_status                  st   = IL_OK;

    if (app->place == NULL)
        st = il__tables_place_share(o->store_url, o->data_url, false, &app->place, reterr);
    if (st == IL_OK && app->tables == NULL)
        st = il__tables_open(&il__ingest_tables, app->place, &opts, &app->tables, reterr);
    app->options.place = app->place;
    return st == IL_OK ? il__ingest_open(&app->options, &app->ingest, reterr) : st;
}

static void
app_stop(void *state)
{
    il__ingest_stop(((struct ingest_app *)state)->ingest);
}

static void
app_close(void *state)
{
    app_free(state);
}

static void
app_tick(void *state, int64_t now_ns UNUSED)
{
    il__ingest_report_gauges(state);
}

/* ---- the app --------------------------------------------------------------------------------- */

/* Events, races, links and users are rows of tables: no prefix says which of them a key may use. */
static const struct http_route routes[] = {
#define R(method_, path_, permission_, id_, fn_, query_, body_, answer_, flags_, summary_, \
          example_)                                                                        \
    { .method     = method_,                                                               \
      .path       = path_,                                                                 \
      .permission = { HTTP_MAY_##permission_, HTTP_NAMES_ALL },                            \
      .id         = #id_,                                                                  \
      .fn         = fn_,                                                                   \
      .query      = query_,                                                                \
      .body       = body_,                                                                 \
      .answer     = answer_,                                                               \
      .flags      = flags_,                                                                \
      .summary    = summary_,                                                              \
      .example    = example_ },
#include "apps/ingest/routes_run.def"
#include "apps/ingest/routes_read.def"
#undef R
};

static const struct http_app_error errors[] = {
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/ingest/errors.def"
#undef X
};

const struct http_app ingest_http_app = {
    .name         = "ingest",
    .run_class    = INGEST_CLASS,
    .routes       = routes,
    .n_routes     = ARRAY_LEN(routes),
    .errors       = errors,
    .n_errors     = ARRAY_LEN(errors),
    .metrics      = il__ingest_metrics,
    .n_metrics    = ARRAY_LEN(il__ingest_metrics),
    .events       = il__ingest_events,
    .n_events     = ARRAY_LEN(il__ingest_events),
    .tables       = &il__ingest_tables,
    .invariants   = il__ingest_invariants,
    .n_invariants = INGEST_INVARIANTS,
    .open         = app_open,
    .in_use       = app_in_use,
    .start        = app_start,
    .stop         = app_stop,
    .close        = app_close,
    .tick         = app_tick,
};
