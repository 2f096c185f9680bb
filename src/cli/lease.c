/*
 * lease.c: leases and waiters as JSON.
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

/* A span of time, or null for one without end. */
static json_t *
span_json(int64_t ms)
{
    return ms == IL_FOREVER ? json_null() : json_integer(ms);
}

json_t *
il__cli_lease_json(const il_lease_info *info)
{
    return json_pack(
        "{s:o, s:o, s:o, s:I, s:s, s:o, s:o, s:I, s:I, s:I, s:o, s:s, s:I, s:o, s:I, s:o}", "key",
        il__cli_json_text(info->key), "tenant", il__cli_json_text(info->tenant), "holder",
        il__cli_json_text(info->holder), "fence", (json_int_t)info->fence, "mode",
        il_mode_name(info->mode), "acquired_at", il__cli_json_time(info->acquired_at_ms),
        "expires_at", il__cli_json_time(info->expires_at_ms), "age_ms", (json_int_t)info->age_ms,
        "ttl_ms", (json_int_t)info->ttl_ms, "waiters", (json_int_t)info->n_waiters, "meta",
        il__cli_meta_json(info->meta), "state", il_lease_state_name(info->state), "permits",
        (json_int_t)info->permits, "place", il__cli_json_text(info->place), "renewed_ms",
        (json_int_t)info->renewed_ms, "remaining_ms", span_json(info->remaining_ms));
}

json_t *
il__cli_waiter_json(const il_lease_info *info)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:s, s:o, s:I, s:I, s:o, s:s, s:I, s:o, s:I, s:o}",
                     "key", il__cli_json_text(info->key), "tenant", il__cli_json_text(info->tenant),
                     "holder", il__cli_json_text(info->holder), "ticket", (json_int_t)info->ticket,
                     "mode", il_mode_name(info->mode), "queued_at",
                     il__cli_json_time(info->acquired_at_ms), "age_ms", (json_int_t)info->age_ms,
                     "ttl_ms", (json_int_t)info->ttl_ms, "meta", il__cli_meta_json(info->meta),
                     "state", il_lease_state_name(info->state), "permits", (json_int_t)info->permits,
                     "place", il__cli_json_text(info->place), "renewed_ms",
                     (json_int_t)info->renewed_ms, "remaining_ms", span_json(info->remaining_ms));
}

json_t *
il__cli_lease_array(const il_lease_info *infos, size_t n, bool waiters)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < n; i++) {
        json_t *item = waiters ? il__cli_waiter_json(&infos[i]) : il__cli_lease_json(&infos[i]);
        if (json_array_append_new(array, item) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
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
