/*
 * routes_tables.c: JSON tables of the routes of invariants, and the routes.
 */
#include "apps/check/serve.h"
#include "wire/table.h"

#define STRUCT struct check_page_in
#define PAGE                                                                   \
    BOUNDED("cursor", cursor, TEXT, 0, 0, 512, "`next` of the previous page"), \
        BOUNDED("limit", limit, UINT32, 0, 1, CHECK_PAGE_MAX, "maximum number of items")
static const struct wire_field page_in[] = { PAGE };
OBJECT(il__check_in_page, "CheckPageQuery", page_in, 0, "Query of a page");
#define STRICT                             \
    BOOL("strict", 0, flags, CHECK_STRICT, \
         "set `failed` also for broken invariants of severity warning")
static const struct wire_field result_in[] = { STRICT };
OBJECT(il__check_in_result, "CheckResultQuery", result_in, 0, "Options of a result");
static const struct wire_field results_in[] = {
    PAGE,
    STRICT,
    BOUNDED("name", name, TEXT, 0, 1, 2 * CHECK_NAME_BYTES_MAX, "only results of this invariant"),
};
OBJECT(il__check_in_results, "CheckResultsQuery", results_in, 0,
       "Filter of the results; 20 by default");
#undef STRUCT

#define STRUCT struct check_run_in
static const struct wire_field run_in[] = {
    { .name    = "names",
      .kind    = WIRE_TEXTS,
      .offset  = AT(names),
      .offset2 = AT(n_names),
      .max     = IL_BATCH_OPS_MAX,
      .help    = "names of invariants; default: all of the tenant" },
};
OBJECT(il__check_in_run, "CheckRun", run_in, 0, "Invariants to check");
#undef STRUCT

#define STRUCT struct check_result_out
static const struct wire_field result_out[] = {
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the result, and of the run that found it"),
    F("tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns the invariant"),
    F("name", name, TEXT, WIRE_NOT_NULL, "name of the invariant"),
    F("severity", severity, TEXT, 0, "info, warning or error"),
    F("outcome", outcome, TEXT, WIRE_NOT_NULL,
      "passed, broken, error (could not run), skipped (its app has no tables), or not_run (yet)"),
    F("new", n_new, INT64, WIRE_NOT_NULL, "number of new offenders"),
    F("known", n_known, INT64, WIRE_NOT_NULL, "number of known offenders (in the baseline)"),
    F("offenders", offenders, META, WIRE_NOT_NULL, "the first 20 new offenders: `key` and `text`"),
    F("not_needed", not_needed, META, WIRE_NOT_NULL,
      "baseline keys that no longer offend: their `count` and the first 20 `keys`"),
    F("runs", runs, META, WIRE_NOT_NULL,
      "if broken: ids of up to 20 runs of the tenant active at that time"),
    BOOL("failed", 0, flags, CHECK_FAILED,
         "broken, with severity error (with ?strict, also warning)"),
    F("error", error, TEXT, 0, "why it could not run"),
    F("started_at", started_ms, TIME, 0, "when it started"),
    F("duration_ms", took_ms, INT64, WIRE_NOT_NULL, "how long it took"),
};
OBJECT(il__check_result_out, "CheckResult", result_out, WIRE_ANSWER, "The result of an invariant");
#undef STRUCT

#define STRUCT struct check_out
#define CHECK_FIELDS                                                                               \
    F("tenant", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns it"),                               \
        F("name", name, TEXT, WIRE_NOT_NULL, "name of the invariant"),                             \
        F("severity", severity, TEXT, WIRE_NOT_NULL, "info, warning or error"),                    \
        F("description", description, TEXT, WIRE_NOT_NULL, "description"),                         \
        F("connection", connection, TEXT, 0, "connection it queries; null: the tables of an app"), \
        F("schedule", schedule, TEXT, WIRE_NOT_NULL, "cron expression"),                           \
        F("timezone", zone, TEXT, WIRE_NOT_NULL, "time zone of the schedule"),                     \
        F("next_at", next_ms, TIME, WIRE_MINUS, "when it is due next"),                            \
        F("timeout_ms", timeout_ms, INT64, WIRE_NOT_NULL, "time after which it is interrupted"),   \
        F("baseline", n_baseline, INT64, WIRE_NOT_NULL, "number of known offenders"),              \
        F("path", path, TEXT, 0, "its file"),                                                      \
        F("error", error, TEXT, 0, "why its definition is invalid"),                               \
    {                                                                                              \
        .name = "last", .kind = WIRE_OBJECT, .offset = AT(last), .offset2 = AT(has),               \
        .bit = CHECK_HAS_LAST, .object = &il__check_result_out,                                    \
        .help = "its last result; null if it has none"                                             \
    }
static const struct wire_field check_out[] = { CHECK_FIELDS };
OBJECT(il__check_out, "Check", check_out, WIRE_ANSWER, "An invariant");
static const struct wire_field check_full_out[] = {
    CHECK_FIELDS,
    OBJECTS("results", 0, results, n_results, il__check_result_out,
            "its newest results, at most 20"),
};
OBJECT(il__check_full_out, "CheckFull", check_full_out, WIRE_ANSWER,
       "An invariant with its newest results");
#undef STRUCT

#define STRUCT struct check_started_one
static const struct wire_field started_one[] = {
    F("name", name, TEXT, WIRE_NOT_NULL, "name of the invariant"),
    F("run_id", run, TEXT, 0, "id of its run, which may have been running already"),
    F("error", error, TEXT, 0, "why no run was started: the definition is invalid"),
};
static OBJECT(started_object, "CheckStarted", started_one, WIRE_ANSWER, "An invariant that runs");
#undef STRUCT
#define STRUCT struct check_started
static const struct wire_field started_out[] = {
    OBJECTS("items", 0, runs, n_runs, started_object, "the invariants, ordered by name"),
};
OBJECT(il__check_started_out, "ChecksStarted", started_out, WIRE_ANSWER, "Invariants that run");
#undef STRUCT
