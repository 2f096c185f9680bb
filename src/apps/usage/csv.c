/*
 * csv.c: ranges as CSV (RFC 4180). See range_json.h.
 *
 * Names come from users, and spreadsheets evaluate what looks like a formula, even within quotes. A
 * text that begins like one gets an apostrophe, which they take for "this is text".
 */
#include <inttypes.h>

#include "apps/usage/range_json.h"
#include "base/decimal.h"
#include "base/parse.h"

#define LINE_END "\r\n"

/* Spreadsheets skip white space, and take the full-width forms for the plain ones. */
static bool
is_formula(const char *text)
{
#ifdef IL_MUTANT_usage_csv_formulas
    return false;
#endif
    static const char *const starts[] = {
        "=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"
    };
    const char *first = text + strspn(text, " \t\r\n\v\f");

    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        if (strncmp(first, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    return text[0] == '\t' || text[0] == '\r' || text[0] == '\n';
}

void
usage_csv_text(struct il__buf *b, const char *text)
{
    bool formula = is_formula(text);
    bool quoted  = strpbrk(text, ",;\"\t\r\n") != NULL || text[0] == ' ';

    il__buf_adds(b, quoted ? "\"" : "");
    il__buf_adds(b, formula ? "'" : "");
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"')
            il__buf_addc(b, '"');
        il__buf_addc(b, *p);
    }
    il__buf_adds(b, quoted ? "\"" : "");
}

static void
add_names(struct il__buf *b)
{
    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++)
        il__buf_addf(b, ",%s", usage_metric_list[i].name);
    il__buf_adds(b, LINE_END);
}

static void
add_metrics(struct il__buf *b, const struct usage_metrics *m)
{
    char money[IL__DECIMAL_TEXT_BYTES];

    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++) {
        int64_t value = usage_metric_of(m, &usage_metric_list[i]);
        if (usage_metric_is_money(&usage_metric_list[i]))
            il__buf_addf(b, ",%s", il__decimal_text(value, USAGE_MONEY_DIGITS, money));
        else
            il__buf_addf(b, ",%" PRId64, value);
    }
    il__buf_adds(b, LINE_END);
}

static void
add_day(struct il__buf *b, const struct usage_range_day *day)
{
    char date[IL__DATE_TEXT_BYTES], time[IL__TIME_TEXT_BYTES];
    bool has = usage_day_has_figures(day);

    il__buf_addf(b, "%s,%s,%s,%s", il__date_text(day->date, date), usage_state_names[day->state],
                 day->complete ? "true" : "false", has ? il__time_text(day->updated_ms, time) : "");
    if (has) {
        add_metrics(b, &day->metrics);
        return;
    }
    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++)
        il__buf_addc(b, ',');
    il__buf_adds(b, LINE_END);
}

void
usage_print_csv(struct il__buf *b, const struct usage_range *r, enum usage_by by)
{
    if (by == USAGE_BY_NONE) {
        il__buf_adds(b, "date,state,is_complete,updated_at");
        add_names(b);
        for (size_t i = 0; i < r->n; i++)
            add_day(b, &r->days[i]);
        return;
    }
    il__buf_adds(b, usage_by_names[by]);
    add_names(b);
    for (size_t i = 0; i < r->parts.n; i++) {
        usage_csv_text(b, r->parts.items[i].name);
        add_metrics(b, &r->parts.items[i].metrics);
    }
}
