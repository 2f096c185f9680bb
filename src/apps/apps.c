/*
 * apps.c: the table of apps, from apps.def.
 */
#include "apps/app.h"

const struct http_app *const il__apps[IL_APP_COUNT + 1] = {
#define X(name) &name##_http_app,
#include "apps/apps.def"
#undef X
    NULL,
};
