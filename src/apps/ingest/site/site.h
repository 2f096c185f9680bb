/*
 * site.h: a generated site of race results in the manner of LiveRC, for demonstrations and tests.
 *
 * A page is a pure function of the options (seed and revision among them) and its URL: no clock, no
 * file, no state. The formats follow docs/contributing/LIVERC.md; the parsers of src/apps/ingest
 * share nothing with this folder, so that an error in one of them cannot hide in the other.
 *
 *   generate.c    from a URL to a page
 *   model.c       tracks, events, entries and the list of races (model.h)
 *   race.c        the laps of a race and the results that follow from them
 *   page_lists.c  the tracks, the events of a track, the entry list of an event
 *   page_event.c  the page of an event
 *   page_race.c   the page of a race
 *   page_laps.c   its script, which has the laps
 *   text.c        dates, times and HTML as the pages print them
 *   truth.c       what the pages say, as JSON, for tests
 *   serve.c       the server (serve.h)
 */
#ifndef IL_APPS_INGEST_SITE_SITE_H
#define IL_APPS_INGEST_SITE_SITE_H

#include "base/buf.h"

#define SITE_EVENTS_MAX 100 /* of a track */
#define SITE_ENTRIES_MAX 1000
#define SITE_RACES_MAX 200
#define SITE_LAPS_MAX 200
#define SITE_REVISION_MAX 1000000
#define SITE_DAY_MIN 1000 /* since 1970; older events are up to 700 days older */
#define SITE_DAY_MAX 100000
#define SITE_URL_BYTES_MAX 1024
#define SITE_PAGE_BYTES_MAX (2 << 20)
#define SITE_TRUTH_BYTES_MAX (16 << 20)

enum site_style {
#define X(id, name, help) SITE_STYLE_##id,
#include "apps/ingest/site/styles.def"
#undef X
    SITE_STYLE_COUNT
};
_Static_assert(SITE_STYLE_COUNT <= 64, "a set of styles is 64 bits");

enum site_robots {
    SITE_ROBOTS_ALLOW,
    SITE_ROBOTS_NONE, /* no robots.txt: 404 */
    SITE_ROBOTS_DENY
};

struct site_options {
    uint64_t seed;
    uint64_t revision; /* each one changes the results of a third of the races */
    /* The first event of the first track has these sizes; the others are smaller. */
    unsigned         n_entries, n_races, n_laps;
    unsigned         n_events;   /* of each track */
    unsigned         newest_day; /* of the newest event, since 1970 */
    bool             forced;     /* use `styles` for every page instead of drawing them */
    uint64_t         styles;     /* bits: 1 << enum site_style */
    enum site_robots robots;
};

#define SITE_OPTIONS_INIT                                                        \
    {                                                                            \
        .seed = 1, .n_entries = 150, .n_races = 60, .n_laps = 60, .n_events = 5, \
        .newest_day = 20520 /* 2026-03-08 */                                     \
    }

struct site_answer {
    unsigned    status; /* 200 or 404 */
    const char *content_type;
    /* Only with status 200. */
    char etag[24];          /* with its quotes */
    char last_modified[32]; /* as in HTTP */
};

/*
 * Append the page at `path_and_query` to the empty buffer `out`:
 *
 *   /                                             the tracks
 *   /SLUG/events                                  the events of a track
 *   /SLUG/results/?p=view_event&id=EVENT          an event with its races
 *   /SLUG/results/?p=view_entry_list&id=EVENT     its entry list
 *   /SLUG/results/?p=view_race_result&id=RACE     a race with its results and laps
 *   /robots.txt, /SLUG/robots.txt
 *   /truth/site.json, /truth/event/EVENT.json     what the pages say, as numbers
 *
 * The slug before /results is optional, as ids are unique in the whole site. Anything else is a
 * page with status 404. False: out of memory, or the buffer is too small (SITE_PAGE_BYTES_MAX and
 * SITE_TRUTH_BYTES_MAX are enough). Safe to call from several threads.
 */
bool il__site_page(const struct site_options *o, const char *path_and_query, struct il__buf *out,
                   struct site_answer *ret) MUST_USE;

/* The id of the event that has the sizes of the options. */
uint64_t il__site_large_event(void);

/* A set of styles from its names, separated by commas; `none` is the empty set. IL_OK or IL_INVAL.
 */
il_status il__site_styles_parse(const char *text, uint64_t *ret, il_error *reterr) MUST_USE;

#endif
