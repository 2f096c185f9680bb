/* cmd_usage_show.c: prints days and ranges for people. See show.h. */
#include <inttypes.h>
#include <unistd.h>

#include "apps/usage/show.h"
#include "base/decimal.h"
#include "cli/cli.h"
#include "cli/print_item.h"

#define BAR_WIDTH 24
#define CENT (USAGE_MONEY / 100)
#define PARTS_SHOWN 10 /* of each breakdown of a day */

/* ---- cells ----------------------------------------------------------------------------------- */

/* 1234567 as 1,234,567. */
static void
add_number(struct cli_grid *g, int64_t number)
{
    char digits[24], out[32];
    int  n = snprintf(digits, sizeof digits, "%" PRId64, number), k = 0;

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits[i - 1] != '-')
            out[k++] = ',';
        out[k++] = digits[i];
    }
    out[k] = '\0';
    il__cli_grid_add(g, "%s", out);
}

/* Money with two digits, for people; --json and --csv have all of them. */
static void
add_money(struct cli_grid *g, int64_t micros)
{
    char text[IL__DECIMAL_TEXT_BYTES];

    int64_t cents = micros / CENT + (micros % CENT >= CENT / 2);

    il__cli_grid_add(g, "%s", il__decimal_text(cents, 2, text));
}

static void
add_metrics(struct cli_grid *g, const struct usage_metrics *m)
{
    add_number(g, m->api_requests);
    add_number(g, m->failed_requests);
    add_number(g, m->total_tokens);
    add_money(g, m->spend);
}
#define METRICS_HEADERS ">REQUESTS", ">FAILED", ">TOKENS", ">SPEND"

/* A bar of the share of the largest value. */
static void
add_bar(struct cli_grid *g, int64_t value, int64_t largest)
{
    static const char bar[] = "########################";
    double            share = largest > 0 ? (double)value / (double)largest : 0;
    int64_t           n     = (int64_t)(share * BAR_WIDTH + 0.5);

    _Static_assert(sizeof bar - 1 == BAR_WIDTH, "a bar of full width");
    il__cli_grid_add(g, "%.*s", (int)MIN(MAX(n, value > 0 ? 1 : 0), BAR_WIDTH), bar);
}

/* ---- a day ----------------------------------------------------------------------------------- */

void
usage_show_read(const json_t *from, struct usage_metrics *ret)
{
    for (size_t i = 0; i < USAGE_METRIC_COUNT; i++) {
        const struct usage_metric *m = &usage_metric_list[i];
        *usage_metric_at(ret, m)     = json_integer_value(
                json_object_get(from, usage_metric_is_money(m) ? "spend_micros" : m->name));
    }
}

/* Those with the largest spend; names are borrowed from the answer. */
static int
show_parts(const char *header, const json_t *from)
{
    const char *const            headers[] = { header, METRICS_HEADERS };
    AUTO_GRID struct cli_grid    g         = { 0 };
    size_t                       n         = json_array_size(from), i;
    AUTO_FREE struct usage_part *items     = il__calloc(n + 1, sizeof *items);
    struct usage_parts           parts     = { items, n };
    const json_t                *part;

    if (items == NULL)
        return il__cli_fail_memory();
    if (n == 0)
        return 0;
    json_array_foreach(from, i, part)
    {
        const char *name = json_string_value(json_object_get(part, "name"));
        items[i].name    = name != NULL ? name : "";
        usage_show_read(part, &items[i].metrics);
    }
    usage_parts_rank(&parts);
    (void)printf("\n");
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    for (i = 0; i < MIN(n, PARTS_SHOWN); i++) {
        il__cli_grid_add(&g, "%s", items[i].name);
        add_metrics(&g, &items[i].metrics);
    }
    int status = il__cli_grid_print(&g);
    if (n > PARTS_SHOWN)
        (void)printf("and %zu more\n", n - PARTS_SHOWN);
    return status;
}

int
usage_show_day(const struct cli *cli, const json_t *day)
{
    static const char *const  headers[] = { "DATE", "COMPLETE", "UPDATED", METRICS_HEADERS };
    AUTO_GRID struct cli_grid g         = { 0 };
    const char               *date      = json_string_value(json_object_get(day, "date"));
    const char               *updated   = json_string_value(json_object_get(day, "updated_at"));
    const char               *why       = json_string_value(json_object_get(day, "error"));
    struct usage_metrics      m;

    usage_show_read(json_object_get(day, "metrics"), &m);
    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    il__cli_grid_add(&g, "%s", date != NULL ? date : "");
    il__cli_grid_add(&g, "%s", json_is_true(json_object_get(day, "is_complete")) ? "yes" : "no");
    il__cli_grid_add(&g, "%s", updated != NULL ? updated : "");
    add_metrics(&g, &m);
    int status = il__cli_grid_print(&g);
    if (status == 0)
        status = show_parts("USER", json_object_get(day, "by_user"));
    if (status == 0)
        status = show_parts("MODEL", json_object_get(day, "by_model"));
    if (status == 0)
        status = show_parts("PROVIDER", json_object_get(day, "by_provider"));
    if (json_is_true(json_object_get(day, "stale")))
        il__cli_note(cli, "figures are out of date%s%s", why != NULL ? ": " : "",
                     why != NULL ? why : "");
    return status;
}

/* ---- a range --------------------------------------------------------------------------------- */

static int64_t
largest_spend(const struct usage_range *r, enum usage_by by)
{
    int64_t largest = 0;

    for (size_t i = 0; by == USAGE_BY_NONE && i < r->n; i++)
        largest = MAX(largest, r->days[i].metrics.spend);
    for (size_t i = 0; by != USAGE_BY_NONE && i < r->parts.n; i++)
        largest = MAX(largest, r->parts.items[i].metrics.spend);
    return largest;
}

static void
add_days(struct cli_grid *g, const struct usage_range *r, bool bars, int64_t largest)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct usage_range_day *day = &r->days[i];
        char                          date[IL__DATE_TEXT_BYTES];
        bool                          has = usage_day_has_figures(day);
        il__cli_grid_add(g, "%s", il__date_text(day->date, date));
        il__cli_grid_add(g, "%s",
                         day->state != USAGE_FRESH ? usage_state_names[day->state]
                         : day->complete           ? "complete"
                                                   : "partial");
        if (has)
            add_metrics(g, &day->metrics);
        for (size_t k = 0; !has && k < 4; k++)
            il__cli_grid_add(g, "-");
        if (bars)
            add_bar(g, day->metrics.spend, largest);
    }
}

int
usage_show_range(const struct cli *cli UNUSED, const struct usage_range *r, enum usage_by by)
{
    static const char *const names[] = { "USER", "MODEL", "PROVIDER" };
    const char *const        days[]  = { "DATE", "STATE", METRICS_HEADERS, "" };
    const char *const parts[]      = { by != USAGE_BY_NONE ? names[by] : "", METRICS_HEADERS, "" };
    AUTO_GRID struct cli_grid g    = { 0 };
    bool                      bars = isatty(STDOUT_FILENO) == 1;
    size_t                    n_columns = by == USAGE_BY_NONE ? ARRAY_LEN(days) : ARRAY_LEN(parts);
    int64_t                   largest   = largest_spend(r, by);

    il__cli_grid_init(&g, by == USAGE_BY_NONE ? days : parts, bars ? n_columns : n_columns - 1);
    if (by == USAGE_BY_NONE)
        add_days(&g, r, bars, largest);
    for (size_t i = 0; by != USAGE_BY_NONE && i < r->parts.n; i++) {
        il__cli_grid_add(&g, "%s", r->parts.items[i].name);
        add_metrics(&g, &r->parts.items[i].metrics);
        if (bars)
            add_bar(&g, r->parts.items[i].metrics.spend, largest);
    }
    il__cli_grid_add(&g, "total");
    if (by == USAGE_BY_NONE)
        il__cli_grid_add(&g, "%s", "");
    add_metrics(&g, &r->total);
    if (bars)
        il__cli_grid_add(&g, "%s", "");
    return il__cli_grid_print(&g);
}

int
usage_show_gaps(const struct cli *cli, const struct usage_range *r)
{
    int status = 0;

    for (enum usage_state state = USAGE_STALE; state <= USAGE_MISSING; state++) {
        AUTO_BUF struct il__buf days = { 0 };
        size_t                  n    = usage_count_days_in(r, state);
        if (n == 0)
            continue;
        il__buf_init(&days, 4096);
        usage_print_days_in(&days, r, state);
        il__cli_note(cli, "%zu %s: %s", n, usage_state_names[state], il__buf_str(&days));
        status = CLI_EXIT_USAGE_DAYS;
    }
    if (r->error[0] != '\0')
        il__cli_note(cli, "%s", r->error);
    return status;
}
