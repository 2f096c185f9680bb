/*
 * pages.c: events, entry lists, lists of events and tracks, in every variant that the site has had.
 */
#include "ingest/page.h"

#define EVENT_HEAD                                                                           \
    "<h1 class=\"page-header\"><span class=\"fa fa-road\"></span> Canberra Off Road</h1>"    \
    "<h3 class='page-header text-nowrap'><span class='fa'></span>\n  Clay&nbsp;Cup\n  Final" \
    "</h3><h5 class=page-header><span class='fa fa-calendar'></span> Nov 16, 2025</h5>"
#define EVENT_LINK "<a href=\"/results/?p=view_entry_list&id=486677\">Entry List</a>"

/* ---- events ---------------------------------------------------------------------------------- */

U_TEST(event_whole)
{
    const struct liverc_event *e = t_event(
        "<!DOCTYPE html><html><body>" EVENT_HEAD
        "<table class='table entry_list_data'><thead><tr><th>Race Lineups</th></tr></thead><tbody>"
        "<tr class=clickable-row data-href='x'><td>" EVENT_LINK "</td></tr>"
        "<tr><td><a href='/results/?p=view_heat_sheet&id=9811879'>Qualifier Round 3</a></td></tr>"
        "</tbody></table>"
        "<table class='entry_list_data'><thead><tr><th colspan=2>Race Results</th></tr></thead>"
        "<tbody><tr><th>Main Events</th><th>Time Completed</th></tr>"
        "<tr><td><a href='/results/?p=view_race_result&id=6304829' class=block><i class='fa'></i>"
        " Race 14: 1/8 Nitro Buggy (1/8 Nitro\n      Buggy A-Main)</a></td>"
        "<td>Nov 16, 2025 at 5:30pm</td></tr>"
        "<tr><th>Qualifier Round 3</th><th>Time Completed</th></tr>"
        "<tr><td><a href='/results/?p=view%5Frace%5Fresult&amp;id=6297913'>Race 2: Junior</a></td>"
        "<td>Nov 16, 2025 at 5pm</td></tr>"
        "<tr><td><a href='https://x.liverc.com/results/?p=view_race_result&id=6297912'>Stock</a>"
        "</td><td></td></tr>"
        "<tr><th>Time Completed</th></tr>"
        "<tr><td><a href='?id=5&p=view_race_result'>Race 1: Truggy (Q1)</a></td>"
        "<td>Nov 15, 2025</td></tr></tbody></table>"
        "<table class='table table-sm m-0'><tr><th>Registrations</th><td>Entries: 71<br/>Drivers:"
        " 60</td></tr><tr><th>Total Race Laps</th><td>4,129</td></tr></table>",
        "486677");

    T_STREQ(e->id, "486677");
    T_STREQ(e->name, "Clay Cup Final");
    T_STREQ(e->club, "Canberra Off Road");
    T_STREQ(e->first_day, "2025-11-16");
    T_EQ(e->n_entries, 71);
    T_EQ(e->n_drivers, 60);
    T_EQ(e->n_laps, 4129);
    T_EQU(e->n_races, 4);
    T_STREQ(e->races[0].id, "6304829");
    T_EQ(e->races[0].order, 14);
    T_STREQ(e->races[0].class_name, "1/8 Nitro Buggy");
    T_STREQ(e->races[0].label, "1/8 Nitro Buggy A-Main");
    T_STREQ(e->races[0].section, "Main Events");
    T_STREQ(e->races[0].completed_at, "2025-11-16T17:30:00");
    T_EQ(e->races[0].session, LIVERC_SESSION_MAIN);
    T_STREQ(e->races[1].id, "6297913");
    T_STREQ(e->races[1].class_name, "Junior");
    T_STREQ(e->races[1].label, "Junior");
    T_STREQ(e->races[1].completed_at, "2025-11-16T17:00:00");
    T_EQ(e->races[1].session, LIVERC_SESSION_QUALIFYING);
    T_EQ(e->races[2].order, LIVERC_NONE);
    T_STREQ(e->races[2].label, "Stock");
    T_STREQ(e->races[2].completed_at, "");
    T_STREQ(e->races[3].section, "Qualifier Round 3");
    T_STREQ(e->races[3].completed_at, "2025-11-15");
    T_EQU(t_page.n_warnings, 0);
}

U_TEST(event_range_and_missing_parts)
{
    const struct liverc_event *e =
        t_event("<h3 class=page-header>Nationals</h3>"
                "<h5 class=page-header>Mar 5, 2026 to Mar 8, 2026</h5>" EVENT_LINK,
                NULL);

    T_STREQ(e->id, "486677");
    T_STREQ(e->name, "Nationals");
    T_STREQ(e->first_day, "2026-03-05");
    T_STREQ(e->last_day, "2026-03-08");
    T_EQ(e->n_entries, LIVERC_NONE);
    T_EQU(e->n_races, 0);
    T_EQU(t_page.n_warnings, 0);
    e = t_event("<h1 class=page-header>Club</h1><h5 class=page-header>Mar 5, 2026</h5>", "7");
    T_STREQ(e->id, "7");
    T_STREQ(e->name, "Club");
}

U_TEST(event_refused)
{
    t_refused(LIVERC_EVENT, "<h5 class=page-header>Nov 16, 2025</h5>" EVENT_LINK, NULL,
              LIVERC_EVENT_PAGE_FORMAT_ERROR, "no name");
    t_refused(LIVERC_EVENT, "<h1 class=page-header>X</h1>" EVENT_LINK, NULL,
              LIVERC_EVENT_PAGE_FORMAT_ERROR, "no date");
    t_refused(LIVERC_EVENT, EVENT_HEAD, NULL, LIVERC_EVENT_PAGE_FORMAT_ERROR,
              "cannot find the event's id");
    t_refused(LIVERC_EVENT, "", NULL, LIVERC_EVENT_PAGE_FORMAT_ERROR, "cannot find the event's id");
    t_refused(LIVERC_EVENT, EVENT_HEAD EVENT_LINK, "1", LIVERC_VALIDATION_ERROR, "486677");
    t_refused(LIVERC_EVENT, "<h1 class=page-header>X</h1><h5 class=page-header>soon</h5>", "1",
              LIVERC_NORMALISATION_ERROR, "'soon'");
    t_refused(LIVERC_EVENT,
              EVENT_HEAD EVENT_LINK
              "<table class=entry_list_data><tr><td><a href='?p=view_race_result&id=5'>a</a></tr>"
              "<tr><td><a href='?p=view_race_result&id=5'>b</a></td></tr></table>",
              NULL, LIVERC_VALIDATION_ERROR, "race 5 is listed twice");
}

U_TEST(event_without_valid_race)
{
    const struct liverc_event *e =
        t_event(EVENT_HEAD EVENT_LINK "<table class=entry_list_data><tr><td>nothing yet</td></tr>"
                                      "<tr><td><a href='?p=view_race_result'>x</a></td></tr>"
                                      "</table>",
                NULL);

    T_EQU(e->n_races, 0);
    t_warned("2 rows but no races");
    e = t_event(EVENT_HEAD EVENT_LINK
                "<table class=entry_list_data><tr><td><a href='?p=view_race_result&id=5'>Race 1: "
                "x</a></td><td>yesterday</td></tr></table>",
                NULL);
    T_STREQ(e->races[0].completed_at, "");
    t_warned("'yesterday'");
}

static const char *
digest_of(const char *rows, char out[LIVERC_DIGEST_BYTES])
{
    char html[2048];

    (void)snprintf(html, sizeof html, "%s<table class=entry_list_data>%s</table>",
                   EVENT_HEAD EVENT_LINK, rows);
    memcpy(out, t_event(html, NULL)->digest, LIVERC_DIGEST_BYTES);
    return out;
}

#define ROW(id, at) "<tr><td><a href='?p=view_race_result&id=" id "'>x</a><td>" at "</tr>"

/* The order of the page does not matter; ids and completion times do. */
U_TEST(event_digest)
{
    char a[LIVERC_DIGEST_BYTES], b[LIVERC_DIGEST_BYTES];

    T_STREQ(digest_of(ROW("1", "Nov 1, 2025") ROW("2", ""), a),
            digest_of(ROW("2", "") ROW("1", "Nov 1, 2025"), b));
    T_TRUE(strcmp(a, digest_of(ROW("1", "Nov 2, 2025") ROW("2", ""), b)) != 0);
    T_TRUE(strcmp(a, digest_of(ROW("1", "Nov 1, 2025"), b)) != 0);
    T_TRUE(strcmp(a, digest_of("", b)) != 0);
}

/* ---- entry lists ----------------------------------------------------------------------------- */

U_TEST(entries_new)
{
    const struct liverc_entry_list *l = t_entries(
        "<a href='/results/?p=view_event&id=486677'>back</a>"
        "<table><thead><tr><th colspan=3><div class='class_header'>1/8 Nitro Buggy</div>"
        "<div class='class_sub_header'>Entries: 2</div></th></tr>"
        "<tr><th>#</th><th>Driver</th><th>Transponder #</th></tr></thead><tbody>"
        "<tr><td>1</td><td><span class=hidden>KOEGLER, FELIX</span>FELIX KOEGLER</td>"
        "<td>1234567</td></tr><tr><td>2</td><td><span class='hidden'>DOE, JO</span> Jo&nbsp;Doe"
        "</td><td></td></tr></tbody></table>"
        "<div class=class_header>Junior</div><div class=class_sub_header>Entries: 1</div>"
        "<table><tr><td></td><td>ANN LEE</td></tr></table>"
        "<table><tr><th><div class=class_header>Empty</div><div class=class_sub_header>Entries: 0"
        "</div></th></tr><tr><td colspan=3>No entries</td></tr></table>",
        "486677");

    T_EQU(l->n_entries, 3);
    T_EQU(l->n_classes, 2);
    T_STREQ(l->entries[0].class_name, "1/8 Nitro Buggy");
    T_STREQ(l->entries[0].car_number, "1");
    T_STREQ(l->entries[0].name, "FELIX KOEGLER");
    T_STREQ(l->entries[0].transponder, "1234567");
    T_STREQ(l->entries[1].name, "Jo Doe");
    T_STREQ(l->entries[1].upper_name, "JO DOE");
    T_TRUE(l->entries[1].transponder == NULL);
    T_STREQ(l->entries[2].class_name, "Junior");
    T_STREQ(l->entries[2].car_number, "");
    T_EQU(t_page.n_warnings, 0);
}

U_TEST(entries_old)
{
    const struct liverc_entry_list *l =
        t_entries("<table><tr><th colspan=3>1/8 Nitro Buggy\n Entries: 1</th></tr>"
                  "<tr><td>3<td>KOEGLER, FELIX<br>FELIX KOEGLER<td>77</tr></table>"
                  "<table><tr><th>Truggy<br>Entries: 2</th></tr><tr><td>1<td>LEE, ANN<br/>ANN LEE"
                  "</td></tr></table>",
                  NULL);

    T_EQU(l->n_entries, 2);
    T_STREQ(l->entries[0].class_name, "1/8 Nitro Buggy");
    T_STREQ(l->entries[0].name, "KOEGLER, FELIX");
    T_STREQ(l->entries[0].transponder, "77");
    T_STREQ(l->entries[1].class_name, "Truggy");
    T_STREQ(l->entries[1].name, "LEE, ANN");
    t_warned("'Truggy' lists 1 entries, but declares 2");
}

U_TEST(entries_refused)
{
    t_refused(LIVERC_ENTRIES, "", NULL, LIVERC_VALIDATION_ERROR,
              "no class on the entry list has entries");
    t_refused(LIVERC_ENTRIES,
              "<table><tr><th><div class=class_header>X</div></th></tr></table>"
              "<table><tr><td>1<td>not in a class? it is</table>"
              "<a href='?p=view_event&id=2'>x</a>",
              "1", LIVERC_VALIDATION_ERROR, "expected the page of id 1, got that of 2");
    t_refused(LIVERC_ENTRIES, "<table><tr><td>1<td>NO CLASS</table>", NULL, LIVERC_VALIDATION_ERROR,
              "no class on the entry list has entries");
    t_refused(LIVERC_ENTRIES, "<div class=class_header>X</div><table><tr><td>1<td> <td>5</table>",
              NULL, LIVERC_VALIDATION_ERROR, "row 1: missing driver name");
}

U_TEST(entries_twice)
{
    const struct liverc_entry_list *l =
        t_entries("<div class=class_header>X</div><table><tr><td>1<td>Ann Lee<td>5</tr>"
                  "<tr><td>1<td>ANN LEE<td>6</tr><tr><td>2<td>ANN LEE<td>6</tr></table>",
                  NULL);

    T_EQU(l->n_entries, 2);
    T_STREQ(l->entries[1].car_number, "2");
    t_warned("listed twice");
}

/* ---- lists ----------------------------------------------------------------------------------- */

static struct liverc_source
source(const char *html)
{
    il__liverc_page_release(&t_page);
    return (struct liverc_source){ .body = html, .n_bytes = strlen(html) };
}

static const char events_page[] =
    "<table><tr><td><a href='/results/?p=view_event&id=486677'>\nClay Cup</a></td><td><span"
    " class=hidden>2025-11-16 08:30:00</span>Nov 16, 2025</td><td>71</td><td>60</td></tr>"
    "<tr><td><a href='/results/?p=view_event&amp;id=2'>Other</a></td><td>Mar 5, 2026 to Mar 8,"
    " 2026</td></tr></table><p><a href='?p=view_event&id=2'>Other, again</a>"
    "<a href='?p=view_event&id=3'>No row</a><a href='?p=view_event&id=x'>no</a>";

U_TEST(events_of_a_track)
{
    const struct liverc_event_links *l = NULL;
    struct liverc_source             s = source(events_page);

    T_EQ(il__liverc_events(&t_page, &s, &l, &t_error), IL_OK);
    CHECK(l != NULL);
    T_EQU(l->n, 3);
    T_STREQ(l->items[0].id, "486677");
    T_STREQ(l->items[0].name, "Clay Cup");
    T_STREQ(l->items[0].first_day, "2025-11-16");
    T_EQ(l->items[0].n_entries, 71);
    T_EQ(l->items[0].n_drivers, 60);
    T_STREQ(l->items[1].first_day, "2026-03-05");
    T_EQ(l->items[1].n_entries, LIVERC_NONE);
    T_STREQ(l->items[2].name, "No row");
    T_STREQ(l->items[2].first_day, "");
}

static const char tracks_page[] =
    "<a href='//live.liverc.com'>Switch</a><a href='https://www.liverc.com/news/'>News</a>"
    "<table><tr><td><span class=hidden>x</span><a href='//canberraoffroad.liverc.com/'><strong>"
    "Canberra Off Road</strong><small>3 minutes ago</small></a></td></tr>"
    "<tr><td><a href='https://Silver-Dollar.liverc.com'>Silver Dollar</a></td></tr>"
    "<tr><td><a href='http://silver-dollar.liverc.com/live/'>Again</a></td></tr></table>"
    "<a href='https://example.com/'>x</a><a href='//evil.liverc.com.example.com/'>y</a>";

U_TEST(tracks)
{
    const struct liverc_tracks *t = NULL;
    struct liverc_source        s = source(tracks_page);

    T_EQ(il__liverc_tracks(&t_page, &s, &t, &t_error), IL_OK);
    CHECK(t != NULL);
    T_EQU(t->n, 2);
    T_STREQ(t->items[0].slug, "canberraoffroad");
    T_STREQ(t->items[0].name, "Canberra Off Road");
    T_STREQ(t->items[1].slug, "silver-dollar");
    t_refused(LIVERC_TRACKS, "<p>nothing", NULL, LIVERC_EVENT_PAGE_FORMAT_ERROR, "no link");
}

static void
detected(const char *html, enum liverc_kind expected)
{
    struct liverc_source s = source(html);
    enum liverc_kind     kind;

    T_EQ(il__liverc_detect(&s, &kind, &t_error), IL_OK);
    T_STREQ(il__liverc_kinds[kind], il__liverc_kinds[expected]);
}

U_TEST(detection)
{
    enum liverc_kind     kind;
    struct liverc_source s = source("<p>Hello");

    T_EQ(il__liverc_detect(&s, &kind, &t_error), IL_INVAL);
    detected(EVENT_HEAD "<table class=entry_list_data></table>", LIVERC_EVENT);
    detected(EVENT_HEAD "<table class=race_result></table>", LIVERC_RACE);
    detected("<table><tr><th>Pos<th>Behind</table>", LIVERC_RACE);
    detected(EVENT_HEAD "<table class=entry_list_data><tr><th>X Entries: 3</table>",
             LIVERC_ENTRIES);
    detected("<a href='?p=view_event&id=1'>x</a>", LIVERC_EVENTS);
    detected("<a href='//track.liverc.com/'>x</a>", LIVERC_TRACKS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(event_whole),   U_ROW(event_range_and_missing_parts),
        U_ROW(event_refused), U_ROW(event_without_valid_race),
        U_ROW(event_digest),  U_ROW(entries_new),
        U_ROW(entries_old),   U_ROW(entries_refused),
        U_ROW(entries_twice), U_ROW(events_of_a_track),
        U_ROW(tracks),        U_ROW(detection),
    };
    T_EQ(il__liverc_load(&t_error), IL_OK);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    il__liverc_page_release(&t_page);
    return failed;
}
