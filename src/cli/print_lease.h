/* print_lease.h: prints leases as text. */
#ifndef IL_CLI_PRINT_LEASE_H
#define IL_CLI_PRINT_LEASE_H

#include "cli/out.h"

#define CLI_MODE_BYTES 40
/* "exclusive", "shared", "1 of 3 permits" */
const char *il__cli_mode_text(const il_lease_info *info, char out[CLI_MODE_BYTES]);

#define CLI_EXPIRY_BYTES 48
/* Columns of a listing of leases: the mode, or "classic client's"; the age, "-" if unknown; when it
 * ends, and anything unusual about it: "12s", "never", "3s (closing)". */
const char *il__cli_lease_mode(const il_lease_info *info, char out[CLI_MODE_BYTES]);
const char *il__cli_lease_age(const il_lease_info *info, char out[CLI_AGE_BYTES]);
const char *il__cli_lease_expiry(const il_lease_info *info, char out[CLI_EXPIRY_BYTES]);
#define CLI_WHO_BYTES 160
/* Whose it is, as far as its meta says: "pid 4711 on vm (sleep 3)", or "-". */
const char *il__cli_lease_who(const il_lease_info *info, char out[CLI_WHO_BYTES]);
/* Renewals are due every third of the TTL: one missed may be chance, two are a sign of trouble. */
bool il__cli_lease_is_late(const il_lease_info *info);

/* A lock set in Redis by a classic client (SET NX; classic=yes): Interlock sees it but did not
 * grant it, so it has no fence, and the time when it was taken is unknown. */
bool il__cli_is_classic(const il_lease_info *info);

/* The meta as a JSON value if it is one, else as a string; null if empty. */
json_t *il__cli_meta_json(const char *meta);

#endif
