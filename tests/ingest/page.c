/*
 * page.c: helpers of the tests of pages; see page.h.
 */
#include "ingest/page.h"

struct liverc_page t_page;
il_error           t_error;

static struct liverc_source
source(const char *html, const char *id)
{
    T_EQ(il__liverc_load(&t_error), IL_OK);
    il__liverc_page_release(&t_page);
    return (struct liverc_source){
        .body = html, .n_bytes = strlen(html), .id = id, .slug = "canberraoffroad"
    };
}

static void
must(il_status st)
{
    if (st != IL_OK)
        T_FAIL("refused: %s: %s", il__liverc_codes[t_page.code], t_error.message);
}

const struct liverc_event *
t_event(const char *html, const char *id)
{
    struct liverc_source       s = source(html, id);
    const struct liverc_event *e = NULL;

    must(il__liverc_event(&t_page, &s, &e, &t_error));
    CHECK(e != NULL);
    return e;
}

const struct liverc_entry_list *
t_entries(const char *html, const char *id)
{
    struct liverc_source            s = source(html, id);
    const struct liverc_entry_list *l = NULL;

    must(il__liverc_entries(&t_page, &s, &l, &t_error));
    CHECK(l != NULL);
    return l;
}

const struct liverc_race *
t_race(const char *html, const char *id)
{
    struct liverc_source      s = source(html, id);
    const struct liverc_race *r = NULL;

    must(il__liverc_race(&t_page, &s, &r, &t_error));
    CHECK(r != NULL);
    return r;
}

void
t_refused(enum liverc_kind kind, const char *html, const char *id, enum liverc_code code,
          const char *part)
{
    struct liverc_source             s  = source(html, id);
    il_status                        st = IL_OK;
    const struct liverc_event       *event;
    const struct liverc_entry_list  *entries;
    const struct liverc_race        *race;
    const struct liverc_event_links *events;
    const struct liverc_tracks      *tracks;

    switch (kind) {
    case LIVERC_EVENT:
        st = il__liverc_event(&t_page, &s, &event, &t_error);
        break;
    case LIVERC_ENTRIES:
        st = il__liverc_entries(&t_page, &s, &entries, &t_error);
        break;
    case LIVERC_RACE:
        st = il__liverc_race(&t_page, &s, &race, &t_error);
        break;
    case LIVERC_EVENTS:
        st = il__liverc_events(&t_page, &s, &events, &t_error);
        break;
    default:
        st = il__liverc_tracks(&t_page, &s, &tracks, &t_error);
    }
    T_EQ(st, IL_INVAL);
    T_STREQ(il__liverc_codes[t_page.code], il__liverc_codes[code]);
    T_HAS(t_error.message, part);
}

void
t_warned(const char *part)
{
    T_EQU(t_page.n_warnings, 1);
    T_HAS(t_page.warnings[0], part);
}
