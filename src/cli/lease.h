/*
 * lease.h: leases as people see them.
 */
#ifndef IL_CLI_LEASE_H
#define IL_CLI_LEASE_H

#include "cli/out.h"

#define CLI_MODE_BYTES 40
/* "exclusive", "shared", "1 of 3 permits" */
const char *il__cli_mode_text(const il_lease_info *info, char out[CLI_MODE_BYTES]);

/*
 * A lock that a classic client has set in Redis (SET NX; classic=yes): Interlock sees it, but has not granted it, so it has no
 * fence, and nothing is known of when it was taken.
 */
bool il__cli_is_classic(const il_lease_info *info);

/* The meta as a JSON value when it is one, else as a string; null when there is none. */
json_t *il__cli_meta_json(const char *meta);

#endif
