/*
 * model.h: what the site knows: tracks, events, drivers, entries, races and their laps. Private to
 * this folder.
 *
 * Everything is drawn from the seed and ids. An event's entries are numbered from 0, class after
 * class; each class is divided into groups of drivers who race each other, and each round of the
 * event has one race per group.
 *
 *   event id  = 100000 + 1000 * track + index
 *   race id   = 1000 * event id + index + 1
 *   driver id = 300000 + driver
 */
#ifndef IL_APPS_INGEST_SITE_MODEL_H
#define IL_APPS_INGEST_SITE_MODEL_H

#include "apps/ingest/site/site.h"

#define SITE_TRACKS 4
#define SITE_CLASSES_MAX 12
#define SITE_GROUP_MAX 13
#define SITE_TEXT_BYTES 96

/* ---- draws ----------------------------------------------------------------------------------- */

enum site_draw {
    SITE_DRAW_STYLES,
    SITE_DRAW_SIZE,
    SITE_DRAW_NAME,
    SITE_DRAW_PACE,
    SITE_DRAW_LENGTH,
    SITE_DRAW_LAP,
    SITE_DRAW_STOP,
};

/* A number that depends on nothing but the seed and the arguments. */
uint64_t il__site_draw(const struct site_options *o, enum site_draw what, uint64_t a, uint64_t b);

static inline bool
site_has(uint64_t styles, enum site_style style)
{
    return (styles >> style & 1) != 0;
}

/* ---- tracks and events ----------------------------------------------------------------------- */

struct site_track {
    const char *slug, *name;
};
extern const struct site_track il__site_tracks[SITE_TRACKS];

struct site_event {
    uint64_t id;
    unsigned track, index;
    unsigned first_day, n_days; /* since 1970 */
    unsigned n_entries, n_drivers, n_classes, n_groups, n_races, n_laps;
    /* The entries and groups of class c are first_*[c] .. first_*[c + 1] - 1. */
    unsigned first_entry[SITE_CLASSES_MAX + 1];
    unsigned first_group[SITE_CLASSES_MAX + 1];
    uint64_t styles;
    char     h1[SITE_TEXT_BYTES], h3[SITE_TEXT_BYTES]; /* "": not on the page */
    char     name[SITE_TEXT_BYTES];                    /* the event's name by these headings */
};

/* False: no such event. */
bool     il__site_event(const struct site_options *o, uint64_t id, struct site_event *ret) MUST_USE;
uint64_t il__site_event_id(unsigned track, unsigned index);
const char *il__site_class_name(unsigned i_class);

/* ---- entries --------------------------------------------------------------------------------- */

struct site_entry {
    unsigned    i_class, car;
    unsigned    driver;
    unsigned    transponder; /* 0: none */
    const char *first, *last;
};

void     il__site_entry(const struct site_options *o, const struct site_event *e, unsigned entry,
                        struct site_entry *ret);
unsigned il__site_driver_id(unsigned driver);

/* ---- races ----------------------------------------------------------------------------------- */

/* A race as the event page lists it. */
struct site_race {
    uint64_t id;
    unsigned index, order; /* in the event; in its section, from 1 */
    unsigned i_class;
    unsigned first_entry, n_entries; /* its group */
    unsigned revision;               /* how often its results have changed */
    unsigned completed_minute;       /* since the beginning of the event's first day */
    uint64_t styles;
    char     section[SITE_TEXT_BYTES];
    char     label[SITE_TEXT_BYTES];
    bool     bare; /* the event page prints the label without the class */
};

/* Race number `index` of the event. */
void il__site_race(const struct site_options *o, const struct site_event *e, unsigned index,
                   struct site_race *ret);
/* The id of a race's event and the index of the race; false: not an id of a race. */
bool il__site_race_id(uint64_t id, uint64_t *ret_event, unsigned *ret_index) MUST_USE;

/* ---- results and laps ------------------------------------------------------------------------ */

struct site_result {
    unsigned entry, grid, n_laps;
    uint32_t total_ms;
    uint32_t fast_ms;  /* these are 0 if there are too few laps */
    unsigned fast_lap; /* from 1 */
    uint32_t average_ms, top5_ms, top10_ms, top15_ms, top3_ms;
    unsigned deviation_cs,
        consistency; /* hundredths of a second, of a percent; with 1 lap or more */
    bool     listed; /* in the lap script */
    uint32_t lap_ms[SITE_LAPS_MAX];
    unsigned lap_position[SITE_LAPS_MAX];
};

struct site_results {
    unsigned           length_s; /* of the race */
    unsigned           n;
    struct site_result rows[SITE_GROUP_MAX]; /* by position */
};

/* Race it. */
void il__site_results(const struct site_options *o, const struct site_event *e,
                      const struct site_race *r, struct site_results *ret);

/* ---- text ------------------------------------------------------------------------------------ */

/* "Nov 16, 2025", "2025-11-16" */
void il__site_add_day(struct il__buf *b, unsigned day);
void il__site_add_iso_day(struct il__buf *b, unsigned day);
/* "38.170", "1:23.450", "1:00:31.382" */
void il__site_add_time(struct il__buf *b, uint32_t ms);
/* "112.036" */
void il__site_add_seconds(struct il__buf *b, uint32_t ms);
/* Text of HTML, escaped. */
void il__site_add_html(struct il__buf *b, const char *text);

/* The beginning and the end that all pages share. */
void il__site_open_page(struct il__buf *b, const char *title);
void il__site_close_page(struct il__buf *b);

/* ---- pages ----------------------------------------------------------------------------------- */

void il__site_add_tracks(struct il__buf *b);
void il__site_add_events(struct il__buf *b, const struct site_options *o, unsigned track);
void il__site_add_entry_list(struct il__buf *b, const struct site_options *o,
                             const struct site_event *e);
/* `n_laps`: of all its races. */
void il__site_add_event(struct il__buf *b, const struct site_options *o, const struct site_event *e,
                        unsigned n_laps);
void il__site_add_race(struct il__buf *b, const struct site_options *o, const struct site_event *e,
                       const struct site_race *r, const struct site_results *results);
/* Its <script>. */
void il__site_add_laps(struct il__buf *b, const struct site_options *o, const struct site_event *e,
                       const struct site_race *r, const struct site_results *results);

/* Is a result's driver linked on the race page? */
static inline bool
site_linked(const struct site_result *result)
{
    return result->n_laps > 0;
}

/* Columns of the result table. */
enum site_column {
    SITE_POSITION,
    SITE_DRIVER,
    SITE_QUAL,
    SITE_LAPS,
    SITE_BEHIND,
    SITE_FASTEST,
    SITE_AVERAGE,
    SITE_TOP5,
    SITE_TOP10,
    SITE_TOP15,
    SITE_TOP3,
    SITE_DEVIATION,
    SITE_CONSISTENCY,
    SITE_COLUMN_COUNT
};
/* Is it on this race's page? */
bool il__site_has_column(const struct site_race *r, enum site_column column);
/* "", "12.052", "1 Lap", "2 Laps" */
void il__site_add_behind(struct il__buf *b, const struct site_results *results, unsigned row);

/* What the pages say. `room` is for the results of each race in turn. */
void il__site_add_truth(struct il__buf *b, const struct site_options *o);
void il__site_add_event_truth(struct il__buf *b, const struct site_options *o,
                              const struct site_event *e, struct site_results *room);

/* What the event page prints as a race's completion time: "2025-11-16 17:30", or less of it. */
enum site_precision {
    SITE_TO_MINUTE,
    SITE_TO_HOUR,
    SITE_TO_DAY
};
enum site_precision il__site_precision(const struct site_event *e, const struct site_race *r);

#endif
