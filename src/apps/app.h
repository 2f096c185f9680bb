/*
 * app.h: the list of apps built into this binary (apps.def). http/app.h defines the interface
 * between an app and the server.
 */
#ifndef IL_APPS_APP_H
#define IL_APPS_APP_H

#include "http/app.h"

#define X(name) extern const struct http_app name##_http_app;
#include "apps/apps.def"
#undef X

enum {
#define X(name) +1
    IL_APP_COUNT = 0
#include "apps/apps.def"
#undef X
};

/* The value of http_options.apps, with a NULL behind the last. */
extern const struct http_app *const il__apps[IL_APP_COUNT + 1];

#endif
