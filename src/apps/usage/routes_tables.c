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

/* The last arguments are members of the route. */
#define ROUTE(method_, path_, names_, grant_, id_, answer_, flags_, ...)                 \
    {                                                                                    \
        .method = method_, .path = BASE path_, .permission = HTTP_ACCESS(admin, names_), \
        .grant = grant_, .id = "usage_" #id_, .fn = usage_http_##id_, .answer = answer_, \
        .flags = HTTP_BARE | (flags_), __VA_ARGS__                                       \
    }

/* Handlers ask for days of the tenant, below USAGE_KEY. A rebuild also uses USAGE_RUN_KEY and
 * USAGE_LIMIT_KEY: all three begin with the class. */
const struct http_route usage_routes[] = {
    ROUTE("GET", "/days/{date}", UNDER(USAGE_KEY), READS, day, &usage_out_day, 0, .query = &in_day,
          .summary = "Show the usage of a day; it is built if it is not stored, or no longer "
                     "fresh"),
    ROUTE("POST", "/analytics", UNDER(USAGE_KEY), READS, analytics, &usage_out_analytics, 0,
          .body = &in_range, .bucket = &analytics, .example = EXAMPLE,
          .summary = "Add up a range of days, and compare it with the previous period"),
    ROUTE("POST", "/by-user", UNDER(USAGE_KEY), READS, by_user, &usage_out_parts, 0,
          .body = &in_page, .example = EXAMPLE, .summary = "Add up a range of days by user"),
    ROUTE("POST", "/by-model", UNDER(USAGE_KEY), READS, by_model, &usage_out_parts, 0,
          .body = &in_page, .example = EXAMPLE, .summary = "Add up a range of days by model"),
    ROUTE("POST", "/by-provider", UNDER(USAGE_KEY), READS, by_provider, &usage_out_parts, 0,
          .body = &in_page, .example = EXAMPLE, .summary = "Add up a range of days by provider"),
    ROUTE("POST", "/refresh-today", UNDER(USAGE_KEY), WRITES, refresh, &usage_out_day, 0,
          .summary = "Rebuild the current day now, even if it is fresh"),
    ROUTE("POST", "/rebuild-cache", UNDER(USAGE_CLASS), WRITES, rebuild, &usage_out_run,
          HTTP_ACCEPTS | HTTP_ONCE, .body = &in_rebuild, .example = EXAMPLE,
          .summary = "Rebuild a range of days in the background, as a run; complete days only with "
                     "`force`"),
    ROUTE("GET", "/cache/metrics", UNDER(USAGE_KEY), READS, metrics, &usage_out_metrics, 0,
          .summary = "Show the counters of this server"),
    ROUTE("GET", "/export", UNDER(USAGE_KEY), READS, export, &usage_out_export, HTTP_CSV,
          .query = &in_export, .bucket = &exports,
          .summary = "Export a range of days as JSON or, with ?format=csv, as CSV"),
};
