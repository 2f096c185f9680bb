/*
 * generate.c: from a URL to a page; see site.h.
 */
#include "apps/ingest/site/model.h"

#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/parse.h"

#define HTML "text/html; charset=UTF-8"
#define WORD_BYTES 64
#define NEW_YEAR_S INT64_C(1767225600) /* 2026-01-01: when revision 0 was written */

static const char *const style_names[SITE_STYLE_COUNT] = {
#define X(id, name, help) name,
#include "apps/ingest/site/styles.def"
#undef X
};

/* ---- styles ---------------------------------------------------------------------------------- */

il_status
il__site_styles_parse(const char *text, uint64_t *ret, il_error *reterr)
{
    uint64_t styles = 0;

    if (strcmp(text, "none") == 0) {
        *ret = 0;
        return IL_OK;
    }
    for (const char *at = text;; at++) {
        size_t   n = strcspn(at, ",");
        unsigned i = 0;
        while (i < SITE_STYLE_COUNT &&
               (strlen(style_names[i]) != n || memcmp(style_names[i], at, n) != 0))
            i++;
        if (i == SITE_STYLE_COUNT)
            return il__error_set(reterr, IL_INVAL, "no page style '%.*s'", (int)MIN(n, 40), at);
        styles |= UINT64_C(1) << i;
        at += n;
        if (*at == '\0')
            break;
    }
    *ret = styles;
    return IL_OK;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

enum kind {
    NOT_FOUND,
    TRACKS,
    EVENTS,
    EVENT,
    ENTRY_LIST,
    RACE,
    ROBOTS,
    TRUTH,
    EVENT_TRUTH,
};

struct target {
    enum kind kind;
    int       track; /* -1: not named */
    uint64_t  id;    /* of the event or race */
};

/* The value of a parameter of the query, decoded; "" if it is missing or too long. */
static void
query_value(const char *query, const char *name, char out[WORD_BYTES])
{
    size_t n_name = strlen(name), n = 0;

    out[0] = '\0';
    while (query[0] != '\0' && (strncmp(query, name, n_name) != 0 || query[n_name] != '=')) {
        query += strcspn(query, "&");
        query += query[0] == '&';
    }
    if (query[0] == '\0')
        return;
    for (const char *at = query + n_name + 1; *at != '\0' && *at != '&'; at++) {
        int byte = il__percent_byte(at);
        if (n + 1 == WORD_BYTES)
            return;
        out[n++] = byte >= 0 ? (char)byte : *at;
        at += byte >= 0 ? 2 : 0;
    }
    out[n] = '\0';
}

static struct target
parse_results(const char *query, int track)
{
    static const struct {
        const char *page;
        enum kind   kind;
    } pages[] = {
        { "view_event", EVENT },
        { "view_entry_list", ENTRY_LIST },
        { "view_race_result", RACE },
    };
    struct target t = { .track = track };
    char          page[WORD_BYTES], id[WORD_BYTES];

    query_value(query, "p", page);
    query_value(query, "id", id);
    if (!il__parse_u64(id, INT64_MAX, &t.id))
        return t;
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        if (strcmp(page, pages[i].page) == 0)
            t.kind = pages[i].kind;
    }
    return t;
}

/* /truth/event/ID.json */
static struct target
parse_truth(const char *path)
{
    static const char before[] = "event/", after[] = ".json";
    struct target     t = { .track = -1 };
    char              id[WORD_BYTES];
    size_t            n = strlen(path);

    if (strcmp(path, "site.json") == 0)
        t.kind = TRUTH;
    if (n <= sizeof before + sizeof after || n >= sizeof id ||
        strncmp(path, before, sizeof before - 1) != 0 ||
        strcmp(path + n - (sizeof after - 1), after) != 0)
        return t;
    (void)snprintf(id, sizeof id, "%.*s", (int)(n - (sizeof before - 1) - (sizeof after - 1)),
                   path + sizeof before - 1);
    if (il__parse_u64(id, INT64_MAX, &t.id))
        t.kind = EVENT_TRUTH;
    return t;
}

static bool
is_path(const char *path, const char *name)
{
    size_t n = strlen(name);

    return strncmp(path, name, n) == 0 && (path[n] == '\0' || strcmp(path + n, "/") == 0);
}

static struct target
parse(const char *url)
{
    struct target t = { .track = -1 };
    char          path[SITE_URL_BYTES_MAX];
    size_t        n     = strcspn(url, "?");
    const char   *query = url[n] == '?' ? url + n + 1 : "";
    const char   *at    = path + 1;

    if (strlen(url) >= sizeof path || url[0] != '/')
        return t;
    (void)snprintf(path, sizeof path, "%.*s", (int)n, url);
    if (strncmp(at, "truth/", 6) == 0)
        return parse_truth(at + 6);
    for (int i = 0; i < SITE_TRACKS; i++) {
        size_t n_slug = strlen(il__site_tracks[i].slug);
        if (strncmp(at, il__site_tracks[i].slug, n_slug) == 0 && at[n_slug] == '/') {
            t.track = i;
            at += n_slug + 1;
            break;
        }
    }
    if (is_path(at, "results"))
        return parse_results(query, t.track);
    if (strcmp(at, "robots.txt") == 0)
        t.kind = ROBOTS;
    else if (t.track >= 0 && is_path(at, "events"))
        t.kind = EVENTS;
    else if (t.track < 0 && at[0] == '\0')
        t.kind = TRACKS;
    return t;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool
add_robots(struct il__buf *b, enum site_robots robots)
{
    if (robots == SITE_ROBOTS_NONE)
        return false;
    il__buf_addf(b, "User-agent: *\nDisallow: %s\n", robots == SITE_ROBOTS_DENY ? "/" : "/admin/");
    return true;
}

static unsigned
count_laps(const struct site_options *o, const struct site_event *e, struct site_results *room)
{
    struct site_race r;
    unsigned         n = 0;

    for (unsigned i = 0; i < e->n_races; i++) {
        il__site_race(o, e, i, &r);
        il__site_results(o, e, &r, room);
        for (unsigned j = 0; j < room->n; j++)
            n += room->rows[j].n_laps;
    }
    return n;
}

/* A page of an event or of one of its races; false: it does not exist. */
static bool
add_of_event(struct il__buf *b, const struct site_options *o, const struct target *t,
             struct site_results *room)
{
    struct site_event e;
    struct site_race  r;
    uint64_t          id    = t->id;
    unsigned          index = 0;

    if (t->kind == RACE && !il__site_race_id(t->id, &id, &index))
        return false;
    if (!il__site_event(o, id, &e) || (t->track >= 0 && (unsigned)t->track != e.track))
        return false;
    if (t->kind == EVENT_TRUTH) {
        il__site_add_event_truth(b, o, &e, room);
    } else if (t->kind == EVENT) {
        il__site_add_event(b, o, &e, count_laps(o, &e, room));
    } else if (t->kind == ENTRY_LIST) {
        il__site_add_entry_list(b, o, &e);
    } else {
        if (index >= e.n_races)
            return false;
        il__site_race(o, &e, index, &r);
        il__site_results(o, &e, &r, room);
        il__site_add_race(b, o, &e, &r, room);
    }
    return true;
}

static bool
add_page(struct il__buf *b, const struct site_options *o, const struct target *t,
         struct site_results *room)
{
    switch (t->kind) {
    case NOT_FOUND:
        return false;
    case TRACKS:
        il__site_add_tracks(b);
        return true;
    case EVENTS:
        il__site_add_events(b, o, (unsigned)t->track);
        return true;
    case ROBOTS:
        return add_robots(b, o->robots);
    case TRUTH:
        il__site_add_truth(b, o);
        return true;
    case EVENT:
    case ENTRY_LIST:
    case RACE:
    case EVENT_TRUTH:
        return add_of_event(b, o, t, room);
    }
    return false;
}

/* "Thu, 01 Jan 2026 00:00:00 GMT": one second later with each revision. Not strftime(), which
 * follows the locale. */
static void
set_last_modified(struct site_answer *ret, uint64_t revision)
{
    static const char days[7][4]    = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char months[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t            at            = (time_t)(NEW_YEAR_S + (int64_t)revision);
    struct tm         tm            = { 0 };

    CHECK(gmtime_r(&at, &tm) != NULL);
    (void)snprintf(ret->last_modified, sizeof ret->last_modified,
                   "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
                   months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

bool
il__site_page(const struct site_options *o, const char *path_and_query, struct il__buf *out,
              struct site_answer *ret)
{
    struct target                  t    = parse(path_and_query);
    AUTO_FREE struct site_results *room = il__calloc(1, sizeof *room);

    CHECK(out->n_bytes == 0);
    CHECK(o->n_events > 0 && o->n_events <= SITE_EVENTS_MAX);
    CHECK(o->n_entries > 0 && o->n_entries <= SITE_ENTRIES_MAX);
    CHECK(o->n_races > 0 && o->n_races <= SITE_RACES_MAX);
    CHECK(o->n_laps > 0 && o->n_laps <= SITE_LAPS_MAX);
    CHECK(o->newest_day >= SITE_DAY_MIN && o->newest_day <= SITE_DAY_MAX);
    CHECK(o->revision <= SITE_REVISION_MAX);
    if (room == NULL)
        return false;
    *ret = (struct site_answer){ .status = 200, .content_type = HTML };
    if (t.kind == TRUTH || t.kind == EVENT_TRUTH)
        ret->content_type = "application/json";
    else if (t.kind == ROBOTS)
        ret->content_type = "text/plain; charset=UTF-8";
    if (add_page(out, o, &t, room)) {
        (void)snprintf(ret->etag, sizeof ret->etag, "\"%016llx\"",
                       (unsigned long long)il__hash_stable(il__buf_str(out), out->n_bytes, 0));
        set_last_modified(ret, o->revision);
    } else {
        ret->status       = 404;
        ret->content_type = HTML;
        il__site_open_page(out, "Not Found");
        il__buf_adds(out, "<p>This page does not exist.</p>\n");
        il__site_close_page(out);
    }
    return !out->failed;
}
