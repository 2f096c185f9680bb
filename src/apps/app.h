/*
 * app.h: the apps that this binary has (apps.def). What an app is to the server is in http/app.h.
 */
#ifndef IL_APPS_APP_H
#define IL_APPS_APP_H

#include "http/app.h"

/* Each app defines NAME_http_app; for whoever needs one of them by name. */
#define X(name) extern const struct http_app name##_http_app;
#include "apps/apps.def"
#undef X

enum il_app_id {
#define X(name) IL_APP_##name,
#include "apps/apps.def"
#undef X
    IL_APP_COUNT
};

/* By enum il_app_id: what http_options.apps is given. */
extern const struct http_app *const il__apps[IL_APP_COUNT];

#endif
