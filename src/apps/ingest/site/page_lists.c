/*
 * page_lists.c: the tracks, the events of a track, the entry list of an event; see model.h.
 */
#include "apps/ingest/site/model.h"

void
il__site_add_tracks(struct il__buf *b)
{
    il__site_open_page(b, "Tracks");
    il__buf_adds(b, "<table class=\"table table-striped track_list\">\n<thead>\n"
                    "<tr><th>Status</th><th>Track</th></tr>\n</thead>\n<tbody>\n");
    for (unsigned i = 0; i < SITE_TRACKS; i++) {
        const struct site_track *track = &il__site_tracks[i];
        il__buf_addf(b,
                     "<tr class=\"clickable-row\" data-href=\"//%s.liverc.com/live/\">\n"
                     "\t<td class=\"text-nowrap\">\n"
                     "\t\t<i class=\"fa fa-video-camera fa-fw status_video_%u\"></i>\n"
                     "\t\t<br /><small><small>%u minutes ago</small></small>\n\t</td>\n"
                     "\t<td>\n\t\t<span class=\"hidden\">seRC</span>\n"
                     "\t\t<a href=\"//%s.liverc.com/\"><strong>",
                     track->slug, i % 2, 2 + 7 * i, track->slug);
        il__site_add_html(b, track->name);
        il__buf_adds(b, "</strong></a>\n\t\t<div class=\"indent\"><small>Practice</small></div>\n"
                        "\t</td>\n</tr>\n");
    }
    il__buf_adds(b, "</tbody>\n</table>\n");
    il__site_close_page(b);
}

void
il__site_add_events(struct il__buf *b, const struct site_options *o, unsigned track)
{
    struct site_event e;

    il__site_open_page(b, il__site_tracks[track].name);
    il__buf_adds(b,
                 "<table id=\"events\" class=\"table table-striped\">\n<thead>\n<tr><th>Event</th>"
                 "<th>Date</th><th>Entries</th><th>Drivers</th></tr>\n</thead>\n<tbody>\n");
    for (unsigned i = 0; i < o->n_events; i++) {
        CHECK(il__site_event(o, il__site_event_id(track, i), &e));
        il__buf_addf(b,
                     "<tr>\n\t<td><a href=\"/results/?p=view_event&id=%llu\">\n"
                     "\t\t",
                     (unsigned long long)e.id);
        il__site_add_html(b, e.name);
        il__buf_adds(b, "\n\t</a></td>\n\t<td><span class=\"hidden\">");
        il__site_add_iso_day(b, e.first_day);
        il__buf_adds(b, " 08:30:00</span>");
        il__site_add_day(b, e.first_day);
        il__buf_addf(b, "</td>\n\t<td>%u</td>\n\t<td>%u</td>\n</tr>\n", e.n_entries, e.n_drivers);
    }
    il__buf_adds(b, "</tbody>\n</table>\n");
    il__site_close_page(b);
}

/* ---- entry list ------------------------------------------------------------------------------ */

static void
add_class_head(struct il__buf *b, const struct site_event *e, unsigned i_class)
{
    unsigned n = e->first_entry[i_class + 1] - e->first_entry[i_class];

    il__buf_adds(b, "<table class=\"table table-striped\">\n<thead>\n<tr>\n\t<th colspan=\"3\">");
    if (site_has(e->styles, SITE_STYLE_OLD_HEADER)) {
        il__site_add_html(b, il__site_class_name(i_class));
        il__buf_addf(b, " Entries: %u", n);
    } else {
        il__buf_adds(b, "\n\t\t<div class=\"class_header\">");
        il__site_add_html(b, il__site_class_name(i_class));
        il__buf_addf(b,
                     "</div>\n\t\t<div class=\"class_sub_header\">Entries: %u</div>\n"
                     "\t",
                     n);
    }
    il__buf_adds(b, "</th>\n</tr>\n<tr><th>#</th><th>Driver</th><th>Transponder #</th></tr>\n"
                    "</thead>\n<tbody>\n");
}

static void
add_entry(struct il__buf *b, const struct site_event *e, const struct site_entry *entry)
{
    bool lines = site_has(e->styles, SITE_STYLE_NAME_LINES);

    il__buf_addf(b, "<tr>\n\t<td>%u</td>\n\t<td>%s", entry->car,
                 lines ? "" : "<span class=\"hidden\">");
    il__site_add_html(b, entry->last);
    il__buf_adds(b, ", ");
    il__site_add_html(b, entry->first);
    il__buf_adds(b, lines ? "<br />" : "</span>");
    il__site_add_html(b, entry->first);
    il__buf_addc(b, ' ');
    il__site_add_html(b, entry->last);
    il__buf_adds(b, "</td>\n\t<td>");
    if (entry->transponder != 0)
        il__buf_addf(b, "%u", entry->transponder);
    il__buf_adds(b, "</td>\n</tr>\n");
}

void
il__site_add_entry_list(struct il__buf *b, const struct site_options *o, const struct site_event *e)
{
    struct site_entry entry;

    il__site_open_page(b, e->name);
    for (unsigned i_class = 0; i_class < e->n_classes; i_class++) {
        add_class_head(b, e, i_class);
        for (unsigned i = e->first_entry[i_class]; i < e->first_entry[i_class + 1]; i++) {
            il__site_entry(o, e, i, &entry);
            add_entry(b, e, &entry);
        }
        il__buf_adds(b, "</tbody>\n</table>\n");
    }
    il__site_close_page(b);
}
