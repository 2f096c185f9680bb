/* range_json.c: ranges as JSON. See range_json.h. */
#include "apps/usage/range_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "wire/table.h"

#define LIST_BYTES_MAX ((size_t)4096) /* of a list of days */
#define SUGGESTED_MAX 12              /* ranges */
#define PERCENT_DIGITS 2
#define CURSOR_BYTES (USAGE_NAME_BYTES_MAX + 32)

/* ---- the structs behind the tables ----------------------------------------------------------- */

struct day_out {
    const char          *date, *state;
    uint32_t             complete, has; /* figures */
    int64_t              updated_ms;
    struct usage_metrics metrics;
};
struct change_out {
#define X(member, name) int64_t member;
    USAGE_METRICS(X)
#undef X
};
struct comparison_out {
    const char          *start, *end;
    struct usage_metrics metrics;
    struct change_out    change;
    const char          *missing;
};
struct analytics_out {
    const char           *start, *end;
    struct usage_metrics  metrics;
    struct day_out       *days;
    size_t                n_days;
    const char           *stale, *missing, *pending; /* JSON */
    const char           *error;
    struct comparison_out comparison;
};
struct parts_out {
    const struct usage_part *items;
    size_t                   n_items;
    const char              *next, *stale, *missing, *pending, *error;
};
struct export_out {
    const char              *start, *end;
    struct day_out          *days;
    size_t                   n_days;
    const struct usage_part *parts;
    size_t                   n_parts;
    struct usage_metrics     metrics;
    const char              *stale, *missing, *pending, *error;
};
/* GET /days/{date} is printed by day_copies.c; this is its schema. */
struct full_day_out {
    const char              *date;
    uint32_t                 complete, stale;
    int64_t                  updated_ms;
    struct usage_metrics     metrics;
    const struct usage_part *by[USAGE_BY_COUNT];
    size_t                   n_by[USAGE_BY_COUNT];
    const char              *error;
};

/* ---- the tables ------------------------------------------------------------------------------ */

#define LISTS                                                                            \
    F("stale", stale, META, WIRE_NOT_NULL, "days with old figures, which are included"), \
        F("missing", missing, META, WIRE_NOT_NULL, "days without figures"),              \
        F("pending", pending, META, WIRE_NOT_NULL, "days without figures that are being built")

#define STRUCT struct day_out
static const struct wire_field day_fields[] = {
    F("date", date, TEXT, WIRE_NOT_NULL, "date (UTC)"),
    F("state", state, TEXT, WIRE_NOT_NULL, "fresh, stale, pending or missing"),
    BOOL("is_complete", 0, complete, 1, "whether the day is complete and its figures are final"),
    F("updated_at", updated_ms, TIME, 0, "when the build of the figures started"),
    { .name    = "metrics",
      .kind    = WIRE_OBJECT,
      .offset  = AT(metrics),
      .offset2 = AT(has),
      .bit     = 1,
      .object  = &usage_wire_metrics,
      .help    = "figures of the day; null if pending or missing" },
};
static OBJECT(day_object, "UsageRangeDay", day_fields, WIRE_ANSWER, "A day of a range");
#undef STRUCT

#define STRUCT struct change_out
#define PERCENT(member, text)   \
    { .name   = text,           \
      .kind   = WIRE_DECIMAL,   \
      .digits = PERCENT_DIGITS, \
      .flags  = WIRE_MINUS,     \
      .offset = AT(member),     \
      .help   = "change in percent; null if the earlier value was 0 or missing" },
static const struct wire_field change_fields[] = { USAGE_METRICS(PERCENT) };
static OBJECT(change_object, "UsageChange", change_fields, WIRE_ANSWER,
              "Change from the previous period");
#undef STRUCT

#define STRUCT struct comparison_out
static const struct wire_field comparison_fields[] = {
    F("startDate", start, TEXT, WIRE_NOT_NULL, "first day"),
    F("endDate", end, TEXT, WIRE_NOT_NULL, "last day"),
    ONE("metrics", metrics, usage_wire_metrics, "figures of the days that are stored"),
    ONE("change_percent", change, change_object, "change from this period to the requested range"),
    F("missing", missing, META, WIRE_NOT_NULL, "days that are not stored; they are not built"),
};
static OBJECT(comparison_object, "UsageComparison", comparison_fields, WIRE_ANSWER,
              "The preceding period of the same length");
#undef STRUCT

#define STRUCT struct analytics_out
static const struct wire_field analytics_fields[] = {
    F("startDate", start, TEXT, WIRE_NOT_NULL, "first day"),
    F("endDate", end, TEXT, WIRE_NOT_NULL, "last day"),
    ONE("metrics", metrics, usage_wire_metrics, "sums of the range"),
    OBJECTS("days", 0, days, n_days, day_object, "every day of the range"),
    LISTS,
    F("error", error, TEXT, 0, "why a day is stale or missing"),
    ONE("comparison", comparison, comparison_object, "the preceding period of the same length"),
};
OBJECT(usage_out_analytics, "UsageAnalytics", analytics_fields, WIRE_ANSWER, "Usage of a range");
#undef STRUCT

#define STRUCT struct parts_out
static const struct wire_field parts_fields[] = {
    OBJECTS("items", 0, items, n_items, usage_wire_part, "largest spend first, then by name"),
    F("next", next, TEXT, 0, "cursor of the next page"),
    LISTS,
    F("error", error, TEXT, 0, "why a day is stale or missing"),
};
OBJECT(usage_out_parts, "UsageParts", parts_fields, WIRE_ANSWER,
       "A page of users, models or providers");
#undef STRUCT

#define STRUCT struct export_out
static const struct wire_field export_fields[] = {
    F("startDate", start, TEXT, WIRE_NOT_NULL, "first day"),
    F("endDate", end, TEXT, WIRE_NOT_NULL, "last day"),
    ONE("metrics", metrics, usage_wire_metrics, "sums of the range"),
    OBJECTS("days", 0, days, n_days, day_object,
            "every day, unless another breakdown was requested"),
    OBJECTS("items", 0, parts, n_parts, usage_wire_part, "users, models or providers"),
    LISTS,
    F("error", error, TEXT, 0, "why a day is stale or missing"),
};
OBJECT(usage_out_export, "UsageExport", export_fields, WIRE_ANSWER, "All figures of a range");
#undef STRUCT

#define STRUCT struct full_day_out
static const struct wire_field full_day_fields[] = {
    F("date", date, TEXT, WIRE_NOT_NULL, "date (UTC)"),
    BOOL("is_complete", 0, complete, 1, "whether the day is complete and its figures are final"),
    F("updated_at", updated_ms, TIME, 0, "when the build of the figures started"),
    ONE("metrics", metrics, usage_wire_metrics, "figures of the day"),
    OBJECTS("by_user", 0, by[USAGE_BY_USER], n_by[USAGE_BY_USER], usage_wire_part, "by user"),
    OBJECTS("by_model", 0, by[USAGE_BY_MODEL], n_by[USAGE_BY_MODEL], usage_wire_part, "by model"),
    OBJECTS("by_provider", 0, by[USAGE_BY_PROVIDER], n_by[USAGE_BY_PROVIDER], usage_wire_part,
            "by provider"),
    BOOL("stale", 0, stale, 1,
         "whether these are old figures because the day could not be rebuilt in time"),
    F("error", error, TEXT, WIRE_HIDE, "if stale: the reason"),
};
OBJECT(usage_out_day, "UsageDay", full_day_fields, WIRE_ANSWER, "Usage of a day");
#undef STRUCT

/* ---- printing -------------------------------------------------------------------------------- */

size_t
usage_count_days_in(const struct usage_range *r, enum usage_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->days[i].state == state;
    return n;
}

void
usage_print_days_in(struct il__buf *b, const struct usage_range *r, enum usage_state state)
{
    char        date[IL__DATE_TEXT_BYTES];
    const char *comma = "";

    il__buf_addc(b, '[');
    for (size_t i = 0; i < r->n; i++) {
        if (r->days[i].state != state)
            continue;
        il__buf_addf(b, "%s\"%s\"", comma, il__date_text(r->days[i].date, date));
        comma = ",";
    }
    il__buf_addc(b, ']');
}

/* The lists of a range, and its dates as texts. */
struct texts {
    char           start[IL__DATE_TEXT_BYTES], end[IL__DATE_TEXT_BYTES];
    char           dates[USAGE_DAYS_MAX][IL__DATE_TEXT_BYTES];
    struct day_out days[USAGE_DAYS_MAX];
    struct il__buf lists[USAGE_MISSING + 1];
};

static void
texts_release(struct texts *t)
{
    for (size_t i = 0; i < ARRAY_LEN(t->lists); i++)
        il__buf_release(&t->lists[i]);
}

static void
texts_init(struct texts *t, const struct usage_range *r)
{
    il__date_text(r->from, t->start);
    il__date_text(r->to, t->end);
    for (size_t i = 0; i < ARRAY_LEN(t->lists); i++) {
        il__buf_init(&t->lists[i], LIST_BYTES_MAX);
        usage_print_days_in(&t->lists[i], r, (enum usage_state)i);
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct usage_range_day *day = &r->days[i];
        t->days[i] = (struct day_out){ .date       = il__date_text(day->date, t->dates[i]),
                                       .state      = usage_state_names[day->state],
                                       .complete   = day->complete,
                                       .has        = usage_day_has_figures(day),
                                       .updated_ms = day->updated_ms,
                                       .metrics    = day->metrics };
    }
}

/* In hundredths of a percent; INT64_MIN: nothing to compare with. */
static int64_t
change(int64_t now, int64_t before)
{
    double percent = before != 0 ? ((double)now - (double)before) / (double)before * 10000 : 0;

    if (before == 0 || percent > 1e15)
        return INT64_MIN;
    return (int64_t)(percent + (percent < 0 ? -0.5 : 0.5));
}

void
usage_print_analytics(struct il__buf *b, const struct usage_range *r,
                      const struct usage_range *before)
{
    AUTO(texts_release) struct texts now = { .start = "" }, then = { .start = "" };
    struct analytics_out             out;

    texts_init(&now, r);
    texts_init(&then, before);
    out = (struct analytics_out){
        .start      = now.start,
        .end        = now.end,
        .metrics    = r->total,
        .days       = now.days,
        .n_days     = r->n,
        .stale      = il__buf_str(&now.lists[USAGE_STALE]),
        .missing    = il__buf_str(&now.lists[USAGE_MISSING]),
        .pending    = il__buf_str(&now.lists[USAGE_PENDING]),
        .error      = r->error,
        .comparison = { .start   = then.start,
                        .end     = then.end,
                        .metrics = before->total,
                        .missing = il__buf_str(&then.lists[USAGE_MISSING]) },
    };
#define X(member, name) \
    out.comparison.change.member = change(r->total.member, before->total.member);
    USAGE_METRICS(X)
#undef X
    il__wire_print(b, &usage_out_analytics, &out, 0);
}

/* SPEND:NAME of the last part of the page before. */
static bool
read_cursor(const char *text, int64_t *ret_spend, const char **ret_name)
{
    const char *colon = strchr(text, ':');
    char        digits[24];
    uint64_t    spend;

    if (colon == NULL || (size_t)(colon - text) >= sizeof digits)
        return false;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(colon - text), text);
    if (!il__parse_u64(digits, INT64_MAX, &spend))
        return false;
    *ret_spend = (int64_t)spend;
    *ret_name  = colon + 1;
    return true;
}

bool
usage_cursor_is_valid(const char *cursor)
{
    int64_t     spend;
    const char *name;

    return read_cursor(cursor, &spend, &name);
}

void
usage_print_parts(struct il__buf *b, const struct usage_range *r, const char *cursor, size_t limit)
{
    AUTO(texts_release) struct texts t     = { .start = "" };
    int64_t                          spend = 0;
    const char                      *name  = NULL;
    size_t                           from  = 0;
    char                             next[CURSOR_BYTES];

    CHECK(cursor == NULL || read_cursor(cursor, &spend, &name));
    /* behind the cursor in the order of usage_parts_rank(), also if that part is gone */
    while (name != NULL && from < r->parts.n &&
           (r->parts.items[from].metrics.spend > spend ||
            (r->parts.items[from].metrics.spend == spend &&
             strcmp(r->parts.items[from].name, name) <= 0)))
        from++;
    size_t n = MIN(limit, r->parts.n - from);
    texts_init(&t, r);
    struct parts_out out = { .items   = r->parts.items + from,
                             .n_items = n,
                             .stale   = il__buf_str(&t.lists[USAGE_STALE]),
                             .missing = il__buf_str(&t.lists[USAGE_MISSING]),
                             .pending = il__buf_str(&t.lists[USAGE_PENDING]),
                             .error   = r->error };
    if (from + n < r->parts.n && n > 0) {
        const struct usage_part *last = &r->parts.items[from + n - 1];
        (void)snprintf(next, sizeof next, "%" PRId64 ":%s", last->metrics.spend, last->name);
        out.next = next;
    }
    il__wire_print(b, &usage_out_parts, &out, 0);
}

void
usage_print_export(struct il__buf *b, const struct usage_range *r, enum usage_by by)
{
    AUTO(texts_release) struct texts t = { .start = "" };

    texts_init(&t, r);
    il__wire_print(b, &usage_out_export,
                   &(struct export_out){ .start   = t.start,
                                         .end     = t.end,
                                         .days    = t.days,
                                         .n_days  = by == USAGE_BY_NONE ? r->n : 0,
                                         .parts   = r->parts.items,
                                         .n_parts = r->parts.n,
                                         .metrics = r->total,
                                         .error   = r->error,
                                         .stale   = il__buf_str(&t.lists[USAGE_STALE]),
                                         .missing = il__buf_str(&t.lists[USAGE_MISSING]),
                                         .pending = il__buf_str(&t.lists[USAGE_PENDING]) },
                   0);
}

void
usage_print_too_large(struct il__buf *b, usage_date from, usage_date to)
{
    char start[IL__DATE_TEXT_BYTES], end[IL__DATE_TEXT_BYTES];

    il__buf_addf(b, "{\"requestedDays\":%d,\"maxAllowedDays\":%d,\"suggestedRanges\":[",
                 (int)(to - from) + 1, USAGE_DAYS_MAX);
    for (size_t i = 0; i < SUGGESTED_MAX && from <= to; i++) {
        usage_date last = MIN(from + USAGE_DAYS_MAX - 1, to);
        il__buf_addf(b, "%s{\"startDate\":\"%s\",\"endDate\":\"%s\"}", i > 0 ? "," : "",
                     il__date_text(from, start), il__date_text(last, end));
        from = last + 1;
    }
    il__buf_adds(b, "]}");
}
