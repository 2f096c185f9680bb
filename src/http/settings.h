/*
 * settings.h: GET /admin/config.
 */
#ifndef IL_HTTP_SETTINGS_H
#define IL_HTTP_SETTINGS_H

#include "wire/wire.h"

extern const struct wire_object http_out_setting;

#endif
