/*
 * admin_config.c: GET /admin/config: the configuration in force, and where each value comes from.
 */
#include "http/admin_config.h"

#include "http/handler.h"
#include "http/server.h"
#include "wire/table.h"

#define STRUCT struct http_shown
static const struct wire_field setting_fields[] = {
    F("key", name, TEXT, WIRE_NOT_NULL, "configuration key"),
    F("value", value, TEXT, WIRE_NOT_NULL, "value in force; URLs without their passwords"),
    F("source", origin, TEXT, WIRE_NOT_NULL,
      "where it comes from: a file and its line, a variable, an option, or default"),
    F("env", env, TEXT, WIRE_NOT_NULL, "environment variable that sets it"),
};
OBJECT(http_out_setting, "Setting", setting_fields, WIRE_ANSWER, "A configuration key");
#undef STRUCT

/* Race-free: a reload replaces the settings on the loop, where this runs. */
void
http_admin_config(struct http_request *r)
{
    const struct http_options *o = r->server->o;

    http_say_page(r, &http_out_setting, o->settings, sizeof *o->settings, o->n_settings, NULL);
}
