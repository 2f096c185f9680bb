/*
 * app.c: invariants as an app of the server.
 */
#include "apps/check/check.h"

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

extern const struct http_app check_http_app;
const struct http_app        check_http_app = {
           .name  = "check",
           .open  = app_open,
           .close = app_close,
};
