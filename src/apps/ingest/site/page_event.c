/*
 * page_event.c: the page of an event: headings, other tables, races newest first, statistics; see
 * model.h.
 */
#include <stdio.h>

#include "apps/ingest/site/model.h"

#define WRAP_COLUMNS 24

static void
add_heading(struct il__buf *b, const char *tag, const char *icon, const char *text)
{
    if (text[0] == '\0')
        return;
    il__buf_addf(b, "<%s class=\"page-header\">\n\t<span class=\"fa fa-%s\"></span> ", tag, icon);
    il__site_add_html(b, text);
    il__buf_addf(b, "\n</%s>\n", tag);
}

static void
add_headings(struct il__buf *b, const struct site_event *e)
{
    add_heading(b, "h1", "road", e->h1);
    il__buf_adds(b, "<div class=\"clearfix\">\n");
    add_heading(b, "h3", "list-ol", e->h3);
    il__buf_adds(
        b, "<h5 class=\"page-header text-nowrap\">\n\t<span class=\"fa fa-calendar\"></span> ");
    il__site_add_day(b, e->first_day);
    if (e->n_days > 1) {
        il__buf_adds(b, " to ");
        il__site_add_day(b, e->first_day + e->n_days - 1);
    }
    il__buf_adds(b, "\n</h5>\n</div>\n<a href=\"/events/\"><u>View results from other "
                    "events</u></a>\n");
}

static const char *
ampersand(const struct site_event *e)
{
    return site_has(e->styles, SITE_STYLE_AMPERSAND) ? "&amp;" : "&";
}

static void
open_table(struct il__buf *b, const char *title)
{
    il__buf_addf(
        b,
        "<table class=\"table table-hover entry_list_data\">\n<thead>\n"
        "<tr><th colspan=\"2\"><span class=\"class_header\">%s</span></th></tr>\n</thead>\n"
        "<tbody>\n",
        title);
}

/* Tables that look like that of the races, but link to other pages. */
static void
add_other_tables(struct il__buf *b, const struct site_event *e)
{
    unsigned long long id = e->id;

    open_table(b, "Race Lineups &amp; Entry List");
    il__buf_addf(b,
                 "<tr class=\"clickable-row\" data-href=\"/results/?p=view_entry_list&id=%llu\">\n"
                 "\t<td><a href=\"/results/?p=view_entry_list%sid=%llu\" class=\"block\">"
                 "<i class=\"fa fa-bars\"></i> Entry List</a></td>\n</tr>\n"
                 "<tr>\n\t<td><a href=\"/results/?p=view_heat_sheet%sid=%llu1\" class=\"block\">"
                 "<i class=\"fa fa-list\"></i> Main Events</a></td>\n</tr>\n</tbody>\n</table>\n",
                 id, ampersand(e), id, ampersand(e), id);
    open_table(b, "Overall Results &amp; Rankings");
    il__buf_addf(b,
                 "<tr>\n\t<td><a href=\"/results/?p=event_overall_ranking%sid=%llu\" "
                 "class=\"block\"><i class=\"fa fa-trophy\"></i> Final Results</a></td>\n</tr>\n"
                 "<tr>\n\t<td><a href=\"/results/?p=view_round_ranking%sid=%llu2&o=laps_time\" "
                 "class=\"block\"><i class=\"fa fa-list-ol\"></i> Qualifier Round 1 Rankings</a>"
                 "</td>\n</tr>\n</tbody>\n</table>\n",
                 ampersand(e), id, ampersand(e), id);
}

/* ---- races ----------------------------------------------------------------------------------- */

/* The link's text; a long one can wrap at its spaces. */
static void
add_link_text(struct il__buf *b, const struct site_event *e, const struct site_race *r)
{
    char     text[3 * SITE_TEXT_BYTES];
    unsigned column = 0;
    char     one[2] = "";

    if (r->bare)
        (void)snprintf(text, sizeof text, "Race %u: %s", r->order, r->label);
    else
        (void)snprintf(text, sizeof text, "Race %u: %s (%s)", r->order,
                       il__site_class_name(r->i_class), r->label);
    if (!site_has(e->styles, SITE_STYLE_WRAPPED)) {
        il__site_add_html(b, text);
        return;
    }
    for (const char *at = text; *at != '\0'; at++) {
        column++;
        if (*at == ' ' && column >= WRAP_COLUMNS) {
            il__buf_adds(b, "\n\t\t\t");
            column = 0;
        } else {
            one[0] = *at;
            il__site_add_html(b, one);
        }
    }
}

/* "Nov 16, 2025 at 5:30pm", "Nov 16, 2025 at 5pm", "Nov 16, 2025" */
static void
add_completed(struct il__buf *b, const struct site_event *e, const struct site_race *r)
{
    unsigned            minute    = r->completed_minute % (24 * 60);
    unsigned            hour      = minute / 60;
    enum site_precision precision = il__site_precision(e, r);

    il__site_add_day(b, e->first_day + r->completed_minute / (24 * 60));
    if (precision == SITE_TO_DAY)
        return;
    il__buf_addf(b, " at %u", (hour + 11) % 12 + 1);
    if (precision == SITE_TO_MINUTE)
        il__buf_addf(b, ":%02u", minute % 60);
    il__buf_adds(b, hour < 12 ? "am" : "pm");
}

static void
add_race_row(struct il__buf *b, const struct site_event *e, const struct site_race *r)
{
    il__buf_addf(b,
                 "<tr>\n\t<td>\n\t\t<a href=\"/results/?p=%s%sid=%llu\" class=\"block\"\n"
                 "\t\t\t><i class=\"fa fa-trophy\"></i> ",
                 site_has(e->styles, SITE_STYLE_PERCENT) ? "view%5Frace%5Fresult"
                                                         : "view_race_result",
                 ampersand(e), (unsigned long long)r->id);
    add_link_text(b, e, r);
    il__buf_adds(b, "</a\n\t\t>\n\t</td>\n\t<td>");
    add_completed(b, e, r);
    il__buf_adds(b, "</td>\n</tr>\n");
}

static void
add_races(struct il__buf *b, const struct site_options *o, const struct site_event *e)
{
    struct site_race r;
    char             section[SITE_TEXT_BYTES] = "";

    open_table(b, "Race Results");
    for (unsigned i = e->n_races; i-- > 0;) {
        il__site_race(o, e, i, &r);
        if (strcmp(r.section, section) != 0) {
            memcpy(section, r.section, sizeof section);
            il__buf_addf(b, "<tr>\n\t<th>%s</th>\n\t<th>Time Completed</th>\n</tr>\n", section);
        }
        add_race_row(b, e, &r);
    }
    if (e->n_races == 0)
        il__buf_adds(b, "<tr>\n\t<th>Main Events</th>\n\t<th>Time Completed</th>\n</tr>\n"
                        "<tr>\n\t<td>Results follow after the races</td>\n\t<td></td>\n</tr>\n");
    il__buf_adds(b, "</tbody>\n</table>\n");
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void
add_thousands(struct il__buf *b, unsigned n)
{
    if (n >= 1000)
        il__buf_addf(b, "%u,%03u", n / 1000, n % 1000);
    else
        il__buf_addf(b, "%u", n);
}

static void
add_statistics(struct il__buf *b, const struct site_event *e, unsigned n_laps)
{
    il__buf_addf(b,
                 "<table class=\"table table-sm table-borderless m-0\">\n<tbody>\n"
                 "<tr>\n\t<th>Race Track</th>\n\t<td>Offroad</td>\n</tr>\n"
                 "<tr>\n\t<th>Registrations</th>\n\t<td>\n\t\tEntries: %u<br />\n"
                 "\t\tDrivers: %u\n\t</td>\n</tr>\n"
                 "<tr>\n\t<th>Total Race Laps</th>\n\t<td>",
                 e->n_entries, e->n_drivers);
    add_thousands(b, n_laps);
    il__buf_adds(b, "</td>\n</tr>\n</tbody>\n</table>\n");
}

void
il__site_add_event(struct il__buf *b, const struct site_options *o, const struct site_event *e,
                   unsigned n_laps)
{
    il__site_open_page(b, e->name);
    add_headings(b, e);
    if (!site_has(e->styles, SITE_STYLE_ONE_TABLE))
        add_other_tables(b, e);
    add_races(b, o, e);
    add_statistics(b, e, n_laps);
    il__site_close_page(b);
}
