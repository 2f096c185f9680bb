/*
 * lease.h: leases as people see them.
 */
#ifndef IL_CLI_LEASE_H
#define IL_CLI_LEASE_H

#include "cli/out.h"

#define CLI_MODE_BYTES 40
/* "exclusive", "shared", "1 of 3 permits" */
const char *il__cli_mode_text(const il_lease_info *info, char out[CLI_MODE_BYTES]);

/* The meta as a JSON value when it is one, else as a string; null when there is none. */
json_t *il__cli_meta_json(const char *meta);

#endif
