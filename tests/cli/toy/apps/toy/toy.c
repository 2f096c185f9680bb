/* toy.c: the app as the server sees it: one route, which shows the settings. */
#include <stdio.h>

#include "apps/app.h"
#include "base/error.h"
#include "http/handler.h"

struct toy {
    char    greeting[128];
    int64_t retries, permille;
};

struct toy_out {
    const char *greeting, *name;
    int64_t     retries, permille;
};

#define F(text, member, kind_, help_)                                                   \
    {                                                                                   \
        .name = text, .kind = WIRE_##kind_, .offset = offsetof(struct toy_out, member), \
        .help = help_                                                                   \
    }
static const struct wire_field fields[] = {
    F("greeting", greeting, TEXT, "the greeting"),
    F("name", name, TEXT, "whom it greets"),
    F("retries", retries, INT64, "toy.source.retries"),
    F("permille", permille, INT64, "toy.source.share"),
};
static const struct wire_object toy_out = { .name     = "Toy",
                                            .fields   = fields,
                                            .n_fields = ARRAY_LEN(fields),
                                            .help     = "A greeting",
                                            .bytes    = sizeof(struct toy_out) };

static void
greet(struct http_request *r)
{
    const struct toy *toy = http_app_state(r->server, &toy_http_app);

    if (strcmp(r->args[0], "nobody") == 0) {
        http_fail(r, 404, "TOY_NOT_FOUND", toy_http_app.name, NULL, "Nobody to greet");
        return;
    }
    struct toy_out out = { .greeting = toy->greeting,
                           .name     = r->args[0],
                           .retries  = toy->retries,
                           .permille = toy->permille };
    http_say(r, 200, &toy_out, &out);
}

static const struct http_route routes[] = {
    { .method     = "GET",
      .path       = "/toy/{name}",
      .permission = HTTP_MAY_read,
      .fn         = greet,
      .answer     = &toy_out,
      .summary    = "Greet",
      .id         = "toy_greet" },
};
static const struct http_app_error errors[] = { { "TOY_NOT_FOUND", 404, IL_NOT_FOUND,
                                                  "nobody to greet" } };

static il_status
reload(void *state, const struct http_app_config *config, il_error *reterr)
{
    struct toy *toy      = state;
    const char *greeting = http_setting_text(config, "toy_greeting");

    if (greeting != NULL && strcmp(greeting, "rude") == 0)
        return il__error_set(reterr, IL_INVAL, "toy_greeting: must not be rude");
    (void)snprintf(toy->greeting, sizeof toy->greeting, "%s", greeting != NULL ? greeting : "");
    toy->retries  = http_setting_number(config, "toy.source.retries");
    toy->permille = http_setting_number(config, "toy.source.share");
    return IL_OK;
}

static il_status
toy_open(struct http_server *s UNUSED, const struct http_app_config *config, void **ret,
         il_error *reterr)
{
    static struct toy toy;

    il_status st = reload(&toy, config, reterr);
    if (st == IL_OK)
        *ret = &toy;
    return st;
}

static void
toy_close(void *state UNUSED)
{
}

const struct http_app toy_http_app = {
    .name     = "toy",
    .routes   = routes,
    .n_routes = ARRAY_LEN(routes),
    .errors   = errors,
    .n_errors = ARRAY_LEN(errors),
    .open     = toy_open,
    .close    = toy_close,
    .reload   = reload,
};
