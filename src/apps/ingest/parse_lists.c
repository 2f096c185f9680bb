/*
 * parse_lists.c: the list of all tracks, the list of a track's events, and detects the kind of a
 * page.
 */
#include <strings.h>

#include "apps/ingest/page_reader.h"
#include "base/error.h"

/* ---- events ---------------------------------------------------------------------------------- */

static bool
is_listed(const struct liverc_event_links *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->items[i].id, id) == 0)
            return true;
    }
    return false;
}

/* The row that a link is in; NULL = none. */
static const xmlNode *
row_of(const xmlNode *n)
{
    while (n != NULL && (n->type != XML_ELEMENT_NODE || !il__html_is(n, "tr")))
        n = n->parent;
    return n;
}

/* The other cells of an event's row: its date, then entries and drivers. */
static void
read_event_row(struct reader *r, const xmlNode *tr, struct liverc_event_link *e)
{
    struct html_row row;
    char            last_day[LIVERC_DATE_BYTES];
    int32_t         count;

    il__html_row(tr, &row);
    for (size_t i = 0; i < row.n; i++) {
        const char *text = il__reader_peek(r, row.cells[i], ".hidden");
        if (e->first_day[0] == '\0') {
            if (!il__liverc_days(text, e->first_day, last_day))
                e->first_day[0] = '\0';
        } else if (il__liverc_count(text, &count)) {
            if (e->n_entries == LIVERC_NONE)
                e->n_entries = count;
            else if (e->n_drivers == LIVERC_NONE)
                e->n_drivers = count;
        }
    }
}

static il_status
read_events(struct reader *r, struct liverc_event_links *l)
{
    const xmlNode *top = il__html_top(&r->html);

    for (const xmlNode *n = il__html_next(top, top); n != NULL; n = il__html_next(top, n)) {
        const char *href = il__html_is(n, "a") ? il__html_attribute(n, "href") : NULL;
        const char *id   = href != NULL ? il__reader_link_id(r, href, "view_event") : NULL;
        const char *name = id != NULL ? il__reader_text(r, n, NULL) : "";
        if (name[0] == '\0' || is_listed(l, id))
            continue;
        if (l->n == LIVERC_RACES_MAX)
            return il__reader_fail(r, r->format, "the page lists more than %d events",
                                   LIVERC_RACES_MAX);
        struct liverc_event_link *e = il__reader_append(r, &l->items, &l->n, sizeof *e);
        if (e == NULL)
            break;
        *e = (struct liverc_event_link){
            .id = id, .name = name, .n_entries = LIVERC_NONE, .n_drivers = LIVERC_NONE
        };
        const xmlNode *tr = row_of(n);
        if (tr != NULL)
            read_event_row(r, tr, e);
    }
    if (l->n == 0)
        il__reader_warn(r, "the page lists no events");
    return IL_OK;
}

il_status
il__liverc_events(struct liverc_page *p, const struct liverc_source *s,
                  const struct liverc_event_links **ret, il_error *reterr)
{
    AUTO_READER struct reader  r;
    struct liverc_event_links *l = NULL;

    il_status st = il__reader_open(&r, p, s, LIVERC_EVENT_PAGE_FORMAT_ERROR, reterr);
    if (st == IL_OK)
        l = il__reader_alloc(&r, sizeof *l);
    if (l != NULL)
        st = read_events(&r, l);
    if (st == IL_OK)
        st = il__reader_finish(&r);
    if (st == IL_OK)
        *ret = l;
    return st;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

#define DOMAIN ".liverc.com"
#define SLUG_BYTES_MAX 63

/* The slug of a link to a track: //SLUG.liverc.com/. False: a link to something else. */
static bool
track_slug(const char *href, char slug[SLUG_BYTES_MAX + 1])
{
    static const char *const others[] = { "www", "live", "assets" };

    const char *host = strstr(href, "//");
    if (host == NULL)
        return false;
    host += 2;
    size_t n = strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    if (n == 0 || n > SLUG_BYTES_MAX || strncasecmp(host + n, DOMAIN, strlen(DOMAIN)) != 0)
        return false;
    const char *rest = host + n + strlen(DOMAIN);
    rest += *rest == '/' ? 1 : 0;
    if (strncmp(rest, "live/", 5) == 0)
        rest += 5;
    if (*rest != '\0')
        return false;
    for (size_t i = 0; i < n; i++)
        slug[i] = (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] | 0x20 : host[i]);
    slug[n] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (strcmp(slug, others[i]) == 0)
            return false;
    }
    return true;
}

static bool
has_track(const struct liverc_tracks *t, const char *slug)
{
    for (size_t i = 0; i < t->n; i++) {
        if (strcmp(t->items[i].slug, slug) == 0)
            return true;
    }
    return false;
}

static il_status
read_tracks(struct reader *r, struct liverc_tracks *t)
{
    const xmlNode *top = il__html_top(&r->html);
    char           slug[SLUG_BYTES_MAX + 1];

    for (const xmlNode *n = il__html_next(top, top); n != NULL; n = il__html_next(top, n)) {
        const char *href = il__html_is(n, "a") ? il__html_attribute(n, "href") : NULL;
        if (href == NULL || !track_slug(href, slug) || has_track(t, slug))
            continue;
        /* The name is in bold where a link holds more than that. */
        const xmlNode *bold = NULL;
        for (const xmlNode *c = il__html_next(n, n); c != NULL && bold == NULL;
             c                = il__html_next(n, c))
            bold = il__html_is(c, "strong") || il__html_is(c, "b") ? c : NULL;
        const char *name = il__reader_text(r, bold != NULL ? bold : n, ".hidden small");
        if (name[0] == '\0')
            continue;
        if (t->n == LIVERC_RACES_MAX)
            return il__reader_fail(r, r->format, "the page lists more than %d tracks",
                                   LIVERC_RACES_MAX);
        struct liverc_track *track = il__reader_append(r, &t->items, &t->n, sizeof *track);
        if (track == NULL)
            break;
        track->name = name;
        track->slug = il__reader_keep(r, slug);
    }
    if (t->n == 0 && !r->no_memory)
        return il__reader_fail(r, r->format, "the page has no link to a track");
    return IL_OK;
}

il_status
il__liverc_tracks(struct liverc_page *p, const struct liverc_source *s,
                  const struct liverc_tracks **ret, il_error *reterr)
{
    AUTO_READER struct reader r;
    struct liverc_tracks     *t = NULL;

    il_status st = il__reader_open(&r, p, s, LIVERC_EVENT_PAGE_FORMAT_ERROR, reterr);
    if (st == IL_OK)
        t = il__reader_alloc(&r, sizeof *t);
    if (t != NULL)
        st = read_tracks(&r, t);
    if (st == IL_OK)
        st = il__reader_finish(&r);
    if (st == IL_OK)
        *ret = t;
    return st;
}

/* ---- which page ------------------------------------------------------------------------------ */

/* What a page has that tells its kind. */
struct signs {
    bool result, entries, races, header, event_links, tracks;
};

static void
look_at(struct reader *r, const xmlNode *n, struct signs *s)
{
    char        slug[SLUG_BYTES_MAX + 1];
    const char *href = il__html_is(n, "a") ? il__html_attribute(n, "href") : NULL;

    if (href != NULL) {
        s->event_links |= il__reader_link_id(r, href, "view_event") != NULL;
        s->tracks |= track_slug(href, slug);
    } else if (il__html_is(n, "table")) {
        s->result |= il__html_has_class(n, "race_result");
        s->races |= il__html_has_class(n, "entry_list_data");
    } else if (il__html_is(n, "h5")) {
        s->header |= il__html_has_class(n, "page-header");
    } else if (il__html_has_class(n, "race_num")) {
        s->result = true;
    } else if (il__html_is(n, "th") || il__html_is(n, "div")) {
        bool is_class = il__html_has_class(n, "class_sub_header") || il__html_is(n, "th");
        if (is_class) {
            const char *text = il__reader_peek(r, n, NULL);
            s->entries |= strcasestr(text, "Entries:") != NULL;
            s->result |= strcasecmp(text, "Behind") == 0;
        }
    }
}

il_status
il__liverc_detect(const struct liverc_source *s, enum liverc_kind *ret, il_error *reterr)
{
    AUTO_READER struct reader r;
    struct liverc_page        page  = { 0 };
    struct signs              signs = { 0 };

    il_status st = il__reader_open(&r, &page, s, LIVERC_EVENT_PAGE_FORMAT_ERROR, reterr);
    if (st == IL_OK) {
        const xmlNode *top = il__html_top(&r.html);
        for (const xmlNode *n = il__html_next(top, top); n != NULL; n = il__html_next(top, n))
            look_at(&r, n, &signs);
    }
    il__liverc_page_release(&page);
    if (st != IL_OK)
        return st;
    if (signs.result)
        *ret = LIVERC_RACE;
    else if (signs.entries)
        *ret = LIVERC_ENTRIES;
    else if (signs.races || signs.header)
        *ret = LIVERC_EVENT;
    else if (signs.event_links)
        *ret = LIVERC_EVENTS;
    else if (signs.tracks)
        *ret = LIVERC_TRACKS;
    else
        return il__error_set(reterr, IL_INVAL,
                             "cannot detect the kind of page; is it from LiveRC? Pass --page");
    return IL_OK;
}
