/*
 * lease.c: prints leases as text.
 */
#include "cli/lease.h"

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
