/*
 * page_race.c: the page of a race: head, result table; page_laps.c has the script. See model.h.
 */
#include "apps/ingest/site/model.h"

static const char *const headers[SITE_COLUMN_COUNT] = {
    [SITE_POSITION]    = "Pos",
    [SITE_DRIVER]      = "Driver",
    [SITE_QUAL]        = "Qual",
    [SITE_LAPS]        = "Laps/Time",
    [SITE_BEHIND]      = "Behind",
    [SITE_FASTEST]     = "Fastest Lap",
    [SITE_AVERAGE]     = "Avg Lap",
    [SITE_TOP5]        = "Avg Top 5",
    [SITE_TOP10]       = "Avg Top 10",
    [SITE_TOP15]       = "Avg Top 15",
    [SITE_TOP3]        = "Top 3 Consecutive",
    [SITE_DEVIATION]   = "Std. Deviation",
    [SITE_CONSISTENCY] = "Consistency",
};

static const enum site_column all_columns[] = {
    SITE_POSITION, SITE_DRIVER,    SITE_QUAL,        SITE_LAPS,  SITE_BEHIND,
    SITE_FASTEST,  SITE_AVERAGE,   SITE_TOP5,        SITE_TOP10, SITE_TOP15,
    SITE_TOP3,     SITE_DEVIATION, SITE_CONSISTENCY,
};
static const enum site_column few_columns[] = {
    SITE_POSITION,    SITE_DRIVER,  SITE_LAPS,    SITE_BEHIND,
    SITE_CONSISTENCY, SITE_AVERAGE, SITE_FASTEST, SITE_QUAL,
};

static const enum site_column *
columns_of(const struct site_race *r, size_t *ret_n)
{
    bool few = site_has(r->styles, SITE_STYLE_COLUMNS);

    *ret_n = few ? ARRAY_LEN(few_columns) : ARRAY_LEN(all_columns);
    return few ? few_columns : all_columns;
}

bool
il__site_has_column(const struct site_race *r, enum site_column column)
{
    size_t                  n;
    const enum site_column *columns = columns_of(r, &n);

    for (size_t i = 0; i < n; i++) {
        if (columns[i] == column)
            return true;
    }
    return false;
}

/* ---- head ------------------------------------------------------------------------------------ */

static void
add_race_head(struct il__buf *b, const struct site_race *r, const struct site_results *results)
{
    unsigned s = results->length_s;

    il__buf_addf(b,
                 "<div class=\"race_num\" style=\"background: #00FA00;color: black;\">%u</div>\n"
                 "<div class=\"race_info\">\n\t<span class=\"class_header\">",
                 r->order);
    il__site_add_html(b, r->label);
    il__buf_addf(b,
                 "</span><br />\n\t<span class=\"class_sub_header\">Round: %s</span><br />\n"
                 "\t<span class=\"class_sub_header\">Length: ",
                 r->section);
    if (s >= 3600)
        il__buf_addf(b, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        il__buf_addf(b, "%u:%02u", s / 60, s % 60);
    il__buf_adds(b, " Timed</span>\n</div>\n");
}

static void
add_headers(struct il__buf *b, const struct site_race *r, bool foot)
{
    size_t                  n;
    const enum site_column *columns = columns_of(r, &n);

    il__buf_adds(b, "<tr>\n");
    for (size_t i = 0; i < n; i++)
        il__buf_addf(b, "\t<th>%s%s</th>\n", headers[columns[i]],
                     foot && columns[i] == SITE_FASTEST ? " <sup>(Lap #)</sup>" : "");
    il__buf_adds(b, "</tr>\n");
}

static void
open_table(struct il__buf *b, const struct site_race *r, const struct site_results *results)
{
    bool   outside = site_has(r->styles, SITE_STYLE_HEAD_OUTSIDE);
    size_t n;

    (void)columns_of(r, &n);
    if (outside)
        add_race_head(b, r, results);
    il__buf_addf(
        b, "<table class=\"table table-striped %s cellspacing=\"0\" width=\"100%%\">\n<thead>\n",
        site_has(r->styles, SITE_STYLE_DATATABLE) ? "dataTable\" id=\"DataTables_Table_0\""
                                                  : "race_result\"");
    if (!outside) {
        il__buf_addf(b, "<tr>\n<th colspan=\"%zu\">\n", n + 1);
        add_race_head(b, r, results);
        il__buf_adds(b, "</th>\n</tr>\n");
    }
    add_headers(b, r, false);
    il__buf_adds(b, "</thead>\n");
    if (!site_has(r->styles, SITE_STYLE_NO_FOOT)) {
        il__buf_adds(b, "<tfoot>\n");
        add_headers(b, r, true);
        il__buf_adds(b, "</tfoot>\n");
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

void
il__site_add_behind(struct il__buf *b, const struct site_results *results, unsigned row)
{
    if (row == 0)
        return;
    const struct site_result *before = &results->rows[row - 1], *here = &results->rows[row];
    unsigned                  laps = before->n_laps - here->n_laps;
    if (laps > 0)
        il__buf_addf(b, "%u Lap%s", laps, laps == 1 ? "" : "s");
    else
        il__site_add_seconds(b, here->total_ms - before->total_ms);
}

/* A time that the page sorts by its hidden text. */
static void
add_hidden(struct il__buf *b, uint32_t ms)
{
    il__buf_adds(b, "<div class=\"hidden\">");
    if (ms != 0)
        il__site_add_seconds(b, ms);
    il__buf_adds(b, "</div>");
    if (ms != 0)
        il__site_add_time(b, ms);
}

static void
add_driver(struct il__buf *b, const struct site_race *r, const struct site_entry *entry,
           const struct site_result *result)
{
    il__buf_addf(b, "\n\t\t<span class=\"car_num\">%u</span>\n\t\t<span class=\"driver_name\">",
                 entry->car);
    if (site_has(r->styles, SITE_STYLE_CAR_PREFIX))
        il__buf_addf(b, "%u ", entry->car);
    il__site_add_html(b, entry->first);
    il__buf_addc(b, ' ');
    il__site_add_html(b, entry->last);
    il__buf_adds(b, "</span>\n");
    if (site_linked(result))
        il__buf_addf(
            b,
            "\t\t<br /><span class=\"text-nowrap\"><small><small><a href=\"#\" "
            "data-driver-id=\"%u\" class=\"driver_laps\"><span class=\"fa fa-eye\"></span> "
            "View Laps</a></small></small></span>\n",
            il__site_driver_id(entry->driver));
    il__buf_addc(b, '\t');
}

static void
add_laps_and_time(struct il__buf *b, const struct site_result *result)
{
    il__buf_addf(b, "%u", result->n_laps);
    if (result->n_laps == 0)
        return;
    il__buf_addc(b, '/');
    il__site_add_time(b, result->total_ms);
}

static void
add_statistic(struct il__buf *b, const struct site_result *result, enum site_column column)
{
    switch (column) {
    case SITE_FASTEST:
        if (result->n_laps > 0) {
            il__site_add_time(b, result->fast_ms);
            il__buf_addf(b, "<sup>%u</sup>", result->fast_lap);
        }
        break;
    case SITE_AVERAGE:
        add_hidden(b, result->average_ms);
        break;
    case SITE_TOP5:
        add_hidden(b, result->top5_ms);
        break;
    case SITE_TOP10:
        add_hidden(b, result->top10_ms);
        break;
    case SITE_TOP15:
        add_hidden(b, result->top15_ms);
        break;
    case SITE_DEVIATION:
        if (result->n_laps > 0)
            il__buf_addf(b, "%u.%02u", result->deviation_cs / 100, result->deviation_cs % 100);
        break;
    case SITE_CONSISTENCY:
        if (result->n_laps > 0)
            il__buf_addf(b, "%u.%02u%%", result->consistency / 100, result->consistency % 100);
        break;
    default:
        CHECK(column == SITE_TOP3);
        add_hidden(b, result->top3_ms);
        break;
    }
}

void
il__site_add_race(struct il__buf *b, const struct site_options *o, const struct site_event *e,
                  const struct site_race *r, const struct site_results *results)
{
    struct site_entry       entry;
    size_t                  n;
    const enum site_column *columns = columns_of(r, &n);

    il__site_open_page(b, r->label);
    il__site_add_laps(b, o, e, r, results);
    il__buf_adds(b, "<div class=\"table-responsive\">\n");
    open_table(b, r, results);
    il__buf_adds(b, "<tbody>\n");
    for (unsigned row = 0; row < results->n; row++) {
        const struct site_result *result = &results->rows[row];
        il__site_entry(o, e, result->entry, &entry);
        il__buf_adds(b, "<tr>\n");
        for (size_t i = 0; i < n; i++) {
            il__buf_adds(b, "\t<td>");
            switch (columns[i]) {
            case SITE_POSITION:
                il__buf_addf(b, "%u", row + 1);
                break;
            case SITE_DRIVER:
                add_driver(b, r, &entry, result);
                break;
            case SITE_QUAL:
                il__buf_addf(b, "%u", result->grid + 1);
                break;
            case SITE_LAPS:
                add_laps_and_time(b, result);
                break;
            case SITE_BEHIND:
                il__site_add_behind(b, results, row);
                break;
            default:
                add_statistic(b, result, columns[i]);
                break;
            }
            il__buf_adds(b, "</td>\n");
        }
        il__buf_adds(b, "</tr>\n");
    }
    il__buf_adds(b, "</tbody>\n</table>\n</div>\n");
    il__site_close_page(b);
}
