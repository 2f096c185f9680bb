/*
 * app.c: the campus as an app of the server: open, start and close, and its tables.
 */
#include "apps/campus/serve.h"
#include "base/error.h"
#include "http/server.h"

/* ---- open and close -------------------------------------------------------------------------- */

static il_status
app_open(struct http_server *s, const struct http_app_config *config UNUSED, void **ret,
         il_error *reterr)
{
    struct campus_app *app = il__calloc(1, sizeof *app);

    if (app == NULL)
        return il__error_set(reterr, IL_NOMEM, "campus: out of memory");
    app->server = s;
    *ret        = app;
    return IL_OK;
}

static il_status
app_in_use(void *state, bool *ret, il_error *reterr)
{
    const struct http_options *o = ((const struct campus_app *)state)->server->o;

    return il__tables_exist(&campus_tables, o->store_url, o->data_url, ret, reterr);
}

/* It may have failed before, half-way. */
static il_status
app_start(void *state, il_error *reterr)
{
    struct campus_app         *app  = state;
    const struct http_options *o    = app->server->o;
    struct tables_opts         opts = { .observe   = http_row_lock,
                                        .cookie    = app->server,
                                        .conns_max = CAMPUS_CONNS_MAX };
    il_status                  st   = IL_OK;

    if (app->place == NULL)
        st = il__tables_place_share(o->store_url, o->data_url, false, &app->place, reterr);
    return st == IL_OK ? il__tables_open(&campus_tables, app->place, &opts, &app->db, reterr) : st;
}

static void
app_close(void *state)
{
    struct campus_app *app = state;

    il_guard_close(app->db);
    il__tables_place_unshare(app->place);
    il__free(app);
}

/* ---- the app --------------------------------------------------------------------------------- */

static const struct http_app_error errors[] = {
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/campus/errors.def"
#undef X
};

static const struct http_app_metric metrics[] = {
    [CAMPUS_METRIC_RACES] = { HTTP_METRIC_counter, "interlock_campus_integrity_rollbacks_total",
                              "writes that a constraint refused because another call was first",
                              "race", campus_race_names, CAMPUS_RACE_COUNT },
    [CAMPUS_METRIC_NULLS] = { HTTP_METRIC_gauge, "interlock_campus_null_deltas_permille",
                              "participations without skill_rating_delta, in thousandths", NULL,
                              NULL, 0 },
};

const struct http_app campus_http_app = {
    .name         = "campus",
    .routes       = campus_routes,
    .n_routes     = CAMPUS_OP_COUNT,
    .errors       = errors,
    .n_errors     = ARRAY_LEN(errors),
    .metrics      = metrics,
    .n_metrics    = ARRAY_LEN(metrics),
    .tables       = &campus_tables,
    .invariants   = campus_invariants,
    .n_invariants = CAMPUS_INVARIANTS,
    .pipelines    = campus_pipelines,
    .n_pipelines  = CAMPUS_PIPELINES,
    .in_use       = app_in_use,
    .start        = app_start,
    .open         = app_open,
    .close        = app_close,
    .broken       = campus_broken,
};
