/*
 * app.c: the demo's app in the server. It has nothing but its routes: everything else of the demo
 * is configuration of other apps, and processes beside the server.
 */
#include <stdio.h>

#include "apps/demo/demo.h"
#include "base/arena.h"
#include "base/error.h"

static il_status
app_open(struct http_server *s UNUSED, const struct http_app_config *config, void **ret,
         il_error *reterr)
{
    const char      *listen = http_setting_text(config, "listen");
    struct demo_app *app    = il__calloc(1, sizeof *app);
    char             url[512];

    if (app == NULL)
        return il__error_set(reterr, IL_NOMEM, "demo.folder: out of memory");
    (void)snprintf(url, sizeof url, "http://%s", listen);
    app->folder = il__arena_strdup(&app->mem, http_setting_text(config, "demo.folder"));
    app->url    = il__arena_strdup(&app->mem, url);
    if (app->folder == NULL || app->url == NULL) {
        il__arena_free(&app->mem);
        il__free(app);
        return il__error_set(reterr, IL_NOMEM, "demo.folder: out of memory");
    }
    *ret = app;
    return IL_OK;
}

static void
app_close(void *state)
{
    struct demo_app *app = state;

    il__arena_free(&app->mem);
    il__free(app);
}

static const struct http_app_error errors[] = {
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/demo/errors.def"
#undef X
};

const struct http_app demo_http_app = {
    .name     = "demo",
    .setting  = "demo.folder",
    .routes   = demo_routes,
    .n_routes = DEMO_ROUTES,
    .errors   = errors,
    .n_errors = ARRAY_LEN(errors),
    .open     = app_open,
    .close    = app_close,
};
