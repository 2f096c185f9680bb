/*
 * print_lease.c: prints leases as text.
 */
#include "cli/print_lease.h"

#include <inttypes.h>

#include "cli/wrap/meta.h"

json_t *
il__cli_meta_json(const char *meta)
{
    json_t *value;

    if (meta == NULL || meta[0] == '\0')
        return json_null();
    value = json_loads(meta, JSON_DECODE_ANY, NULL);
    return value != NULL ? value : il__cli_json_text(meta);
}

bool
il__cli_is_classic(const il_lease_info *info)
{
    return info->fence == 0;
}

const char *
il__cli_mode_text(const il_lease_info *info, char out[CLI_MODE_BYTES])
{
    if (info->mode == IL_MODE_PERMIT)
        (void)snprintf(out, CLI_MODE_BYTES, "1 of %u permits", info->permits);
    else
        (void)snprintf(out, CLI_MODE_BYTES, "%s", il_mode_name(info->mode));
    return out;
}

const char *
il__cli_lease_mode(const il_lease_info *info, char out[CLI_MODE_BYTES])
{
    return il__cli_is_classic(info) ? "classic client's" : il__cli_mode_text(info, out);
}

const char *
il__cli_lease_age(const il_lease_info *info, char out[CLI_AGE_BYTES])
{
    return il__cli_is_classic(info) ? "-" : il__cli_age(info->age_ms, out);
}

const char *
il__cli_lease_expiry(const il_lease_info *info, char out[CLI_EXPIRY_BYTES])
{
    char age[CLI_AGE_BYTES];

    il__cli_age(info->remaining_ms, age);
    if (info->state != IL_LEASE_HELD)
        (void)snprintf(out, CLI_EXPIRY_BYTES, "%s (%s)", age, il_lease_state_name(info->state));
    else /* a classic client's lock may never expire */
        (void)snprintf(out, CLI_EXPIRY_BYTES, "%s",
                       info->remaining_ms == IL_FOREVER ? "never" : age);
    return out;
}

const char *
il__cli_lease_who(const il_lease_info *info, char out[CLI_WHO_BYTES])
{
    struct wrap_meta_who who;

    wrap_meta_who(info->meta, &who);
    if (who.pid <= 0)
        return "-";
    (void)snprintf(out, CLI_WHO_BYTES, "pid %" PRId64 "%s%s%s%s%s", who.pid,
                   who.host[0] != '\0' ? " on " : "", who.host, who.command[0] != '\0' ? " (" : "",
                   who.command, who.command[0] != '\0' ? ")" : "");
    return out;
}

bool
il__cli_lease_is_late(const il_lease_info *info)
{
    return !il__cli_is_classic(info) && info->state == IL_LEASE_HELD &&
           info->renewed_ms > info->ttl_ms / 3 * 2;
}
