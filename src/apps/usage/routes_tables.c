/*
 * routes_tables.c: JSON tables of the inputs of the routes of usage, and the routes.
 */
#include "apps/usage/range_json.h"
#include "apps/usage/serve.h"
#include "http/bucket.h"
#include "wire/table.h"

/* ---- inputs ---------------------------------------------------------------------------------- */

static const char *const yes_no[]  = { "yes", "no", NULL };
static const char *const formats[] = { "json", "csv", NULL };
static const char *const bys[]     = { "day", "user", "model", "provider", NULL };

#define STRUCT struct usage_day_in
static const struct wire_field day_in[] = {
    CHOICE("build", 0, build, yes_no, 0, "no: return 404 instead of building a missing day"),
};
static OBJECT(in_day, "UsageDayQuery", day_in, 0, "Options of a day");
#undef STRUCT

#define STRUCT struct usage_range_body
#define RANGE                                                                              \
    BOUNDED("startDate", start, TEXT, WIRE_REQUIRED, 1, 32, "first day, UTC: 2026-01-01"), \
        BOUNDED("endDate", end, TEXT, WIRE_REQUIRED, 1, 32, "last day, at most 90 days in all")
static const struct wire_field range_in[] = { RANGE };
static OBJECT(in_range, "UsageRange", range_in, 0, "A range of days");
static const struct wire_field page_in[] = {
    RANGE,
    BOUNDED("limit", limit, UINT32, 0, 1, USAGE_PAGE_MAX, "maximum number of items; default 100"),
    BOUNDED("cursor", cursor, TEXT, 0, 1, USAGE_NAME_BYTES_MAX + 32, "`next` of the previous page"),
};
static OBJECT(in_page, "UsagePage", page_in, 0, "A range of days, and a page of the result");
static const struct wire_field rebuild_in[] = {
    RANGE,
    BOOL("force", 0, force, 1, "also build days that are complete"),
};
static OBJECT(in_rebuild, "UsageRebuild", rebuild_in, 0, "Range of days to rebuild");
static const struct wire_field export_in[] = {
    RANGE,
    CHOICE("format", 0, format, formats, 0, "json (default) or csv"),
    CHOICE("by", 0, by, bys, 0, "rows of the export: day (default), user, model or provider"),
};
static OBJECT(in_export, "UsageExportQuery", export_in, 0,
              "A range of days, and the format of the export");
#undef STRUCT

/* ---- answers --------------------------------------------------------------------------------- */

#define STRUCT struct usage_rates
#define RATE(field, member, text)                                                                 \
    {                                                                                             \
        .name = field, .kind = WIRE_DECIMAL, .digits = USAGE_RATE_DIGITS, .flags = WIRE_NOT_NULL, \
        .offset = AT(member), .help = text                                                        \
    }
#define COUNT(field, member, text) F(field, counts.member, UINT64, WIRE_NOT_NULL, text)
static const struct wire_field metrics_out[] = {
    COUNT("cacheHits", hits, "days of usage answered from the cache"),
    COUNT("cacheMisses", misses, "days of usage that had to be built, or waited for"),
    COUNT("cacheRebuilds", rebuilds, "days of usage built and stored by this server"),
    COUNT("lockAcquisitionSuccesses", locks, "day leases acquired"),
    COUNT("lockAcquisitionFailures", locks_held,
          "day leases not acquired because another process held them"),
    COUNT("gracePeriodApplications", graces,
          "builds of yesterday during the grace period, which are not final"),
    RATE("cacheHitRate", hit_rate, "hits / (hits + misses); 0 without any"),
    RATE("lockContentionRate", contention_rate, "failures / (successes + failures); 0 without any"),
};
OBJECT(usage_out_metrics, "UsageCacheMetrics", metrics_out, WIRE_ANSWER,
       "Counters since this server started");
#undef STRUCT

#define STRUCT struct usage_run_out
static const struct wire_field run_out[] = {
    F("run_id", id, TEXT, WIRE_NOT_NULL, "id of the run: GET /runs/{id} has progress"),
    F("status", status, TEXT, WIRE_NOT_NULL, "PENDING"),
};
OBJECT(usage_out_run, "UsageRebuildRun", run_out, WIRE_ANSWER, "A rebuild that was started");
#undef STRUCT

/* ---- the routes ------------------------------------------------------------------------------ */

#define MINUTE_MS 60000
static const struct http_bucket analytics = { .name      = "usage analytics",
                                              .tokens    = 10,
                                              .period_ms = MINUTE_MS };
static const struct http_bucket exports   = { .name      = "usage exports",
                                              .tokens    = 5,
                                              .period_ms = MINUTE_MS };

#define BASE "/admin/usage"
#define READS "admin:usage"
#define WRITES "admin:usage:write"
#define EXAMPLE "{\"startDate\":\"2025-01-01\",\"endDate\":\"2025-01-31\"}"

const struct http_route usage_routes[] = {
    { .method     = "GET",
      .path       = BASE "/days/{date}",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_day",
      .fn         = usage_http_day,
      .query      = &in_day,
      .answer     = &usage_out_day,
      .flags      = HTTP_BARE,
      .summary = "Show the usage of a day; it is built if it is not stored, or no longer fresh" },
    { .method     = "POST",
      .path       = BASE "/analytics",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_analytics",
      .fn         = usage_http_analytics,
      .body       = &in_range,
      .answer     = &usage_out_analytics,
      .flags      = HTTP_BARE,
      .bucket     = &analytics,
      .example    = EXAMPLE,
      .summary    = "Add up a range of days, and compare it with the previous period" },
    { .method     = "POST",
      .path       = BASE "/by-user",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_by_user",
      .fn         = usage_http_by_user,
      .body       = &in_page,
      .answer     = &usage_out_parts,
      .flags      = HTTP_BARE,
      .example    = EXAMPLE,
      .summary    = "Add up a range of days by user" },
    { .method     = "POST",
      .path       = BASE "/by-model",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_by_model",
      .fn         = usage_http_by_model,
      .body       = &in_page,
      .answer     = &usage_out_parts,
      .flags      = HTTP_BARE,
      .example    = EXAMPLE,
      .summary    = "Add up a range of days by model" },
    { .method     = "POST",
      .path       = BASE "/by-provider",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_by_provider",
      .fn         = usage_http_by_provider,
      .body       = &in_page,
      .answer     = &usage_out_parts,
      .flags      = HTTP_BARE,
      .example    = EXAMPLE,
      .summary    = "Add up a range of days by provider" },
    { .method     = "POST",
      .path       = BASE "/refresh-today",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = WRITES,
      .id         = "usage_refresh",
      .fn         = usage_http_refresh,
      .answer     = &usage_out_day,
      .flags      = HTTP_BARE,
      .summary    = "Rebuild the current day now, even if it is fresh" },
    { .method     = "POST",
      .path       = BASE "/rebuild-cache",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = WRITES,
      .id         = "usage_rebuild",
      .fn         = usage_http_rebuild,
      .body       = &in_rebuild,
      .answer     = &usage_out_run,
      .flags      = HTTP_BARE | HTTP_ACCEPTS | HTTP_ONCE,
      .example    = EXAMPLE,
      .summary    = "Rebuild a range of days in the background, as a run; complete days only with "
                    "`force`" },
    { .method     = "GET",
      .path       = BASE "/cache/metrics",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_metrics",
      .fn         = usage_http_metrics,
      .answer     = &usage_out_metrics,
      .flags      = HTTP_BARE,
      .summary    = "Show the counters of this server" },
    { .method     = "GET",
      .path       = BASE "/export",
      .permission = HTTP_ACCESS(admin, UNDER(USAGE_KEY)),
      .grant      = READS,
      .id         = "usage_export",
      .fn         = usage_http_export,
      .query      = &in_export,
      .answer     = &usage_out_export,
      .flags      = HTTP_BARE | HTTP_CSV,
      .bucket     = &exports,
      .summary    = "Export a range of days as JSON or, with ?format=csv, as CSV" },
};
