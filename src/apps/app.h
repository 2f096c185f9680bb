/*
 * app.h: the list of apps built into this binary (apps.def). http/app.h defines the interface
 * between an app and the server.
 */
#ifndef IL_APPS_APP_H
#define IL_APPS_APP_H

#include "http/app.h"

/* Each app defines NAME_http_app; for code that needs a particular one. */
#define X(name) extern const struct http_app name##_http_app;
#include "apps/apps.def"
#undef X

enum il_app_id {
#define X(name) IL_APP_##name,
#include "apps/apps.def"
#undef X
    IL_APP_COUNT
};

/* Indexed by enum il_app_id; the value of http_options.apps. */
extern const struct http_app *const il__apps[IL_APP_COUNT];

#endif
