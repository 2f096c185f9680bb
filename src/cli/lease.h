/*
 * lease.h: leases and waiters as people and programs see them.
 */
#ifndef IL_CLI_LEASE_H
#define IL_CLI_LEASE_H

#include "cli/out.h"

/* A lock item with the fields that docs/CLI.md names; NULL = out of memory. */
json_t *il__cli_lease_json(const il_lease_info *info);
/* A waiter, with the same names where they mean the same. */
json_t *il__cli_waiter_json(const il_lease_info *info);
/* A JSON array of n of them. */
json_t *il__cli_lease_array(const il_lease_info *infos, size_t n, bool waiters);

#define CLI_MODE_BYTES 40
/* "exclusive", "shared", "1 of 3 permits" */
const char *il__cli_mode_text(const il_lease_info *info, char out[CLI_MODE_BYTES]);

/* The meta as a JSON value when it is one, else as a string; null when there is none. */
json_t *il__cli_meta_json(const char *meta);

#endif
