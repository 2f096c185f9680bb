/*
 * admin_config.c: GET /admin/config: the configuration in force, and where each value comes from.
 */
#include "http/admin_config.h"

#include "http/handler.h"
#include "http/server.h"

#define FIELD(text, member, help_)                                   \
    {                                                                \
        .name = text, .kind = WIRE_TEXT, .flags = WIRE_NOT_NULL,     \
        .offset = offsetof(struct http_shown, member), .help = help_ \
    }
static const struct wire_field setting_fields[] = {
    FIELD("key", name, "configuration key"),
    FIELD("value", value, "value in force; URLs without their passwords"),
    FIELD("source", origin,
          "where it comes from: a file and its line, a variable, an option, or default"),
    FIELD("env", env, "environment variable that sets it"),
};
const struct wire_object http_out_setting = { .name     = "Setting",
                                              .fields   = setting_fields,
                                              .n_fields = ARRAY_LEN(setting_fields),
                                              .bytes    = sizeof(struct http_shown),
                                              .flags    = WIRE_ANSWER,
                                              .help     = "A configuration key" };

/* Race-free: a reload replaces the settings on the loop, where this runs. */
void
http_admin_config(struct http_request *r)
{
    const struct http_options *o = r->server->o;

    http_say_page(r, &http_out_setting, o->settings, sizeof *o->settings, o->n_settings, NULL);
}
