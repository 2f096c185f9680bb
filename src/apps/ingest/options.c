/*
 * options.c: the options of ingestions from the configuration, for the server and for commands.
 */
#include <stdio.h>

#include "apps/ingest/options.h"
#include "base/error.h"

#define SHUTDOWN_MS 10000

/* config.def names these numbers. */
_Static_assert(FETCH_PERMITS_MAX == 16 && FETCH_DELAY_MS_MAX == 10000 && INGEST_DAYS_MAX == 3650,
               "config.def");

il_status
il__ingest_options_read(const struct http_app_config *config, struct ingest_options *ret,
                        il_error *reterr)
{
    il_error    why    = { .message = "" };
    const char *base   = http_setting_text(config, "liverc_url");
    const char *tracks = http_setting_text(config, "ingest.tracks");

    *ret = (struct ingest_options){
        .fetch       = { .base = base != NULL ? base : ADDRESS_BASE_DEFAULT,
                         .permits =
                             (uint32_t)http_setting_number(config, "ingest_race_fetch_concurrency"),
                         .delay_ms = http_setting_number(config, "ingest_request_delay_ms") },
        .stall_ms    = 1000 * http_setting_number(config, "ingest_lock_timeout_seconds"),
        .max_ms      = 1000 * http_setting_number(config, "ingest_max_duration_seconds"),
        .runs_max    = (uint32_t)http_setting_number(config, "ingest_concurrency"),
        .shutdown_ms = SHUTDOWN_MS,
        .schedule    = http_setting_text(config, "ingest.schedule"),
        .tracks      = tracks,
        .days        = (uint32_t)http_setting_number(config, "ingest.days"),
    };
    if (il__address_check(ret->fetch.base, &why) != IL_OK)
        return il__error_set(reterr, IL_INVAL, "liverc_url: %s", why.message);
    if (tracks != NULL && !il__ingest_are_slugs(tracks))
        return il__error_set(reterr, IL_INVAL,
                             "ingest.tracks: expected track slugs, separated by commas");
    return IL_OK;
}
