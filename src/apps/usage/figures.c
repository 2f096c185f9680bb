/*
 * figures.c: the figures of a day: reading what a source gives, and the columns of a row. See
 * day.h.
 */
#include "apps/usage/day.h"

#include <inttypes.h>

#include "base/decimal.h"
#include "base/error.h"
#include "base/parse.h"
#include "wire/json.h"

#define PATH_BYTES 96 /* of a place in a document, for messages */

const char *const usage_by_names[USAGE_BY_COUNT + 1] = { "user", "model", "provider", NULL };

const struct usage_metric usage_metric_list[USAGE_METRIC_COUNT] = {
#define X(member, name) { name, offsetof(struct usage_metrics, member) },
    USAGE_METRICS(X)
#undef X
};

bool
usage_metrics_add(struct usage_metrics *to, const struct usage_metrics *more)
{
    struct usage_metrics sum = *to;

    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++) {
        int64_t *at = usage_metric_at(&sum, &usage_metric_list[i]);
        if (__builtin_add_overflow(*at, usage_metric_of(more, &usage_metric_list[i]), at))
            return false;
    }
    *to = sum;
    return true;
}

void
usage_figures_release(struct usage_figures *f)
{
    il__arena_free(&f->mem);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct usage_part *)a)->name, ((const struct usage_part *)b)->name);
}

static int
by_spend(const void *a, const void *b)
{
    int64_t x = ((const struct usage_part *)a)->metrics.spend;
    int64_t y = ((const struct usage_part *)b)->metrics.spend;

    return x != y ? (x < y ? 1 : -1) : by_name(a, b);
}

bool
usage_parts_fold(struct usage_parts *parts)
{
    size_t n = 0;

    if (parts->n > 0)
        qsort(parts->items, parts->n, sizeof *parts->items, by_name);
    for (size_t i = 0; i < parts->n; i++) {
        const struct usage_part *one = &parts->items[i];
        if (n == 0 || strcmp(parts->items[n - 1].name, one->name) != 0)
            parts->items[n++] = *one;
        else if (!usage_metrics_add(&parts->items[n - 1].metrics, &one->metrics))
            return false;
    }
    parts->n = n;
    return true;
}

void
usage_parts_rank(struct usage_parts *parts)
{
    if (parts->n > 0)
        qsort(parts->items, parts->n, sizeof *parts->items, by_spend);
}

/* ---- what a source gives --------------------------------------------------------------------- */

static il_status
refuse(il_error *reterr, const char *path, const char *name, const char *why)
{
    return il__error_set(reterr, IL_INVAL, "field '%.96s%s%.64s': %s", path,
                         path[0] != '\0' ? "." : "", name, why);
}

/* A whole number; of money, micro-units: a number, which is rounded to the nearest, or a decimal
 * text, which is exact. */
static il_status
read_number(const json_t *value, const struct usage_metric *which, const char *path, int64_t *ret,
            il_error *reterr)
{
    bool        money = usage_metric_is_money(which);
    const char *text  = il__json_number_text(value);

    if (value == NULL || json_is_null(value)) {
        *ret = 0;
        return IL_OK;
    }
    if (json_is_integer(value)) {
        if (json_integer_value(value) < 0)
            return refuse(reterr, path, which->name, "must not be negative");
        if (__builtin_mul_overflow(json_integer_value(value), money ? USAGE_MONEY : 1, ret))
            return refuse(reterr, path, which->name, "too large");
        return IL_OK;
    }
    if (text == NULL && money && json_is_string(value)) {
        if (il__decimal_parse(json_string_value(value), USAGE_MONEY_DIGITS, ret) !=
                IL__DECIMAL_OK ||
            *ret < 0)
            return refuse(reterr, path, which->name, "expected an amount such as \"12.345678\"");
        return IL_OK;
    }
    if (text == NULL)
        return refuse(reterr, path, which->name, "expected a number");
    switch (money ? il__decimal_round(text, USAGE_MONEY_DIGITS, ret)
                  : il__decimal_parse(text, 0, ret)) {
    case IL__DECIMAL_OK:
        return *ret >= 0 ? IL_OK : refuse(reterr, path, which->name, "must not be negative");
    case IL__DECIMAL_DIGITS:
        return refuse(reterr, path, which->name, "expected a non-negative integer");
    default:
        return refuse(reterr, path, which->name, "too large");
    }
}

static il_status
read_metrics(const json_t *object, const char *path, struct usage_metrics *ret, il_error *reterr)
{
    il_status st = IL_OK;

    *ret = (struct usage_metrics){ 0 };
    for (size_t i = 0; i < USAGE_METRIC_COUNT && st == IL_OK; i++) {
        const struct usage_metric *which = &usage_metric_list[i];
        int64_t                   *at    = usage_metric_at(ret, which);
        const json_t              *exact =
            usage_metric_is_money(which) ? json_object_get(object, "spend_micros") : NULL;
        if (exact == NULL || json_is_null(exact))
            st = read_number(json_object_get(object, which->name), which, path, at, reterr);
        else if (json_is_integer(exact) && json_integer_value(exact) >= 0)
            *at = (int64_t)json_integer_value(exact);
        else
            st = refuse(reterr, path, "spend_micros", "expected a non-negative integer");
    }
    return st;
}

/* One entry: its metrics, or an object with a member `metrics`. */
static il_status
read_part(const char *name, const json_t *value, const char *path, struct usage_part *ret,
          void **mem, il_error *reterr)
{
    const json_t *nested = json_object_get(value, "metrics");

    if (name == NULL || name[0] == '\0' || strlen(name) > USAGE_NAME_BYTES_MAX)
        return refuse(reterr, path, "name", "must have 1 to 512 bytes");
    if (!json_is_object(value) || (nested != NULL && !json_is_object(nested)))
        return refuse(reterr, path, name, "expected an object");
    ret->name = il__arena_strdup(mem, name);
    if (ret->name == NULL)
        return il__error_nomem(reterr);
    return read_metrics(nested != NULL ? nested : value, path, &ret->metrics, reterr);
}

/* {"ann": {…}}, or [{"name": "ann", …}]. */
static il_status
read_parts(const json_t *from, const char *path, struct usage_parts *ret, void **mem,
           il_error *reterr)
{
    size_t        n  = json_is_object(from) ? json_object_size(from) : json_array_size(from);
    il_status     st = IL_OK;
    const json_t *one;
    const char   *name;
    size_t        i;

    if (from == NULL || json_is_null(from))
        return IL_OK;
    if (!json_is_object(from) && !json_is_array(from))
        return refuse(reterr, "", path, "expected an object or a list");
    ret->items = il__arena_alloc(mem, (n + 1) * sizeof *ret->items);
    if (ret->items == NULL)
        return il__error_nomem(reterr);
    if (json_is_array(from)) {
        json_array_foreach(from, i, one)
        {
            name = json_string_value(json_object_get(one, "name"));
            st = st != IL_OK ? st : read_part(name, one, path, &ret->items[ret->n++], mem, reterr);
        }
    } else {
        json_t *object = (json_t *)(uintptr_t)from; /* the macro does not change it */
        json_t *value;
        json_object_foreach(object, name, value)
        {
            st =
                st != IL_OK ? st : read_part(name, value, path, &ret->items[ret->n++], mem, reterr);
        }
    }
    if (st == IL_OK && !usage_parts_fold(ret))
        st = il__error_set(reterr, IL_LIMIT, "%s: a sum is too large", path);
    return st;
}

static il_status
read_document(const json_t *doc, usage_date date, struct usage_figures *ret, il_error *reterr)
{
    const json_t *total = json_object_get(doc, "metrics"), *said = json_object_get(doc, "date");
    const json_t *breakdown = json_object_get(doc, "breakdown");
    char          text[IL__DATE_TEXT_BYTES], path[PATH_BYTES];

    if (!json_is_object(total))
        return refuse(reterr, "", "metrics", "missing or not an object");
    if (breakdown != NULL && !json_is_null(breakdown) && !json_is_object(breakdown))
        return refuse(reterr, "", "breakdown", "expected an object");
    if (said != NULL && !json_is_null(said) && !json_is_string(said))
        return refuse(reterr, "", "date", "expected a string such as \"2026-01-15\"");
    if (json_is_string(said) && strcmp(json_string_value(said), il__date_text(date, text)) != 0)
        return il__error_set(reterr, IL_INVAL, "field 'date': expected %s, not %.32s", text,
                             json_string_value(said));
    il_status st = read_metrics(total, "metrics", &ret->total, reterr);
    for (size_t i = 0; i < USAGE_BY_COUNT && st == IL_OK; i++) {
        (void)snprintf(path, sizeof path, "by_%s", usage_by_names[i]);
        const json_t *from = json_object_get(doc, path);
        if (from == NULL) {
            (void)snprintf(path, sizeof path, "%ss", usage_by_names[i]);
            from = json_object_get(breakdown, path);
        }
        st = read_parts(from, path, &ret->by[i], &ret->mem, reterr);
    }
    return st;
}

il_status
usage_figures_read(const char *text, size_t n_bytes, usage_date date, struct usage_figures *ret,
                   il_error *reterr)
{
    json_t *doc = NULL;

    *ret         = (struct usage_figures){ 0 };
    il_status st = il__wire_load_for(&usage_wire_metrics, text, n_bytes, &doc, reterr);
    if (st == IL_OK)
        st = read_document(doc, date, ret, reterr);
    json_decref(doc);
    return st;
}

/* ---- answers --------------------------------------------------------------------------------- */

#define COUNT(member, text)                                                         \
    {                                                                               \
        .name = #member, .kind = WIRE_INT64, .offset = offsetof(STRUCT, AT member), \
        .flags = WIRE_NOT_NULL, .help = text                                        \
    }
#define METRICS_ROWS                                                \
    COUNT(api_requests, "requests"), COUNT(total_tokens, "tokens"), \
        COUNT(prompt_tokens, "tokens of prompts"),                  \
        COUNT(completion_tokens, "tokens of completions"),          \
        { .name   = "spend",                                        \
          .kind   = WIRE_DECIMAL,                                   \
          .digits = USAGE_MONEY_DIGITS,                             \
          .offset = offsetof(STRUCT, AT spend),                     \
          .flags  = WIRE_NOT_NULL,                                  \
          .help   = "money" },                                        \
        { .name   = "spend_micros",                                 \
          .kind   = WIRE_INT64,                                     \
          .offset = offsetof(STRUCT, AT spend),                     \
          .flags  = WIRE_NOT_NULL,                                  \
          .help   = "the same in micro-units, for exact sums" },      \
        COUNT(successful_requests, "requests that succeeded"),      \
        COUNT(failed_requests, "requests that failed")

#define STRUCT struct usage_metrics
#define AT
static const struct wire_field metrics_fields[]   = { METRICS_ROWS };
const struct wire_object       usage_wire_metrics = { .name     = "UsageMetrics",
                                                      .fields   = metrics_fields,
                                                      .n_fields = ARRAY_LEN(metrics_fields),
                                                      .help     = "Usage",
                                                      .bytes    = sizeof(STRUCT),
                                                      .flags    = WIRE_ANSWER };
#undef STRUCT
#undef AT
#define STRUCT struct usage_part
#define AT metrics.
static const struct wire_field part_fields[] = {
    { .name   = "name",
      .kind   = WIRE_TEXT,
      .offset = offsetof(STRUCT, name),
      .flags  = WIRE_NOT_NULL,
      .help   = "user, model or provider" },
    METRICS_ROWS,
};
const struct wire_object usage_wire_part = { .name     = "UsagePart",
                                             .fields   = part_fields,
                                             .n_fields = ARRAY_LEN(part_fields),
                                             .help     = "Usage of one user, model or provider",
                                             .bytes    = sizeof(STRUCT),
                                             .flags    = WIRE_ANSWER };
#undef STRUCT
#undef AT

/* ---- the columns of a row -------------------------------------------------------------------- */

void
usage_metrics_store(struct il__buf *b, const struct usage_metrics *m)
{
    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++)
        il__buf_addf(b, "%c\"%s%s\":%" PRId64, i == 0 ? '{' : ',', usage_metric_list[i].name,
                     usage_metric_is_money(&usage_metric_list[i]) ? "_micros" : "",
                     usage_metric_of(m, &usage_metric_list[i]));
    il__buf_addc(b, '}');
}

void
usage_parts_store(struct il__buf *b, const struct usage_parts *parts)
{
    il__buf_addc(b, '{');
    for (size_t i = 0; i < parts->n; i++) {
        il__buf_adds(b, i > 0 ? "," : "");
        il__wire_print_text(b, parts->items[i].name);
        il__buf_addc(b, ':');
        usage_metrics_store(b, &parts->items[i].metrics);
    }
    il__buf_addc(b, '}');
}

static bool
load_metrics(const json_t *object, struct usage_metrics *ret)
{
    char name[64];

    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++) {
        (void)snprintf(name, sizeof name, "%s%s", usage_metric_list[i].name,
                       usage_metric_is_money(&usage_metric_list[i]) ? "_micros" : "");
        const json_t *value = json_object_get(object, name);
        if (!json_is_integer(value))
            return false;
        *usage_metric_at(ret, &usage_metric_list[i]) = json_integer_value(value);
    }
    return true;
}

il_status
usage_metrics_load(const char *text, size_t n_bytes, struct usage_metrics *ret, il_error *reterr)
{
    json_t *object = json_loadb(text, n_bytes, 0, NULL);
    bool    ok     = object != NULL && load_metrics(object, ret);

    json_decref(object);
    return ok ? IL_OK : il__error_set(reterr, IL_CORRUPT, "corrupt total_metrics of a stored day");
}

il_status
usage_parts_load(const char *text, size_t n_bytes, struct usage_parts *ret, void **mem,
                 il_error *reterr)
{
    json_t     *object = json_loadb(text, n_bytes, 0, NULL);
    bool        ok     = json_is_object(object);
    const char *name;
    json_t     *value;

    *ret = (struct usage_parts){ .items = il__arena_alloc(mem, (json_object_size(object) + 1) *
                                                                   sizeof *ret->items) };
    bool enough = ret->items != NULL;
    json_object_foreach(object, name, value)
    {
        if (!ok || !enough)
            break;
        struct usage_part *to = &ret->items[ret->n++];
        to->name              = il__arena_strdup(mem, name);
        enough                = to->name != NULL;
        ok                    = load_metrics(value, &to->metrics);
    }
    json_decref(object);
    if (!enough)
        return il__error_nomem(reterr);
    if (ok && usage_parts_fold(ret)) /* a database may return the names in an order of its own */
        return IL_OK;
    return il__error_set(reterr, IL_CORRUPT, "corrupt breakdown of a stored day");
}
