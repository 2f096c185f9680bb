/*
 * app.c: race results as an app of the server. It has commands only.
 */
#include "apps/app.h"

static il_status
app_open(struct http_server *s UNUSED, const struct http_app_config *config UNUSED,
         void **ret UNUSED, il_error *reterr UNUSED)
{
    return IL_OK;
}

static void
app_close(void *state UNUSED)
{
}

const struct http_app ingest_http_app = { .name = "ingest", .open = app_open, .close = app_close };
