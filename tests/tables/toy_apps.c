/*
 * toy_apps.c: the table of apps with the made-up one, linked in place of src/apps/apps.c. Only
 * commands that look at an app's tables work: it has no routes.
 */
#include "apps/app.h"
#include "tables/toy.h"

static const struct http_app toy = {
    .name   = "toy",
    .tables = TOY_VERSION == 1 ? &t_toy : &t_toy_next,
};
static const struct http_app none = { .name = "none" };

const struct http_app *const il__apps[IL_APP_COUNT + 1] = {
    &toy,
#define X(name) IL_APP_COUNT == 1 ? NULL : &none,
#include "apps/apps.def"
#undef X
};
