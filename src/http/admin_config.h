/*
 * admin_config.h: GET /admin/config.
 */
#ifndef IL_HTTP_ADMIN_CONFIG_H
#define IL_HTTP_ADMIN_CONFIG_H

#include "wire/wire.h"

extern const struct wire_object http_out_setting;

#endif
