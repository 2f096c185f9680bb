/*
 * model.c: tracks, events, entries and the list of races; see model.h.
 */
#include <stdio.h>

#include "apps/ingest/site/model.h"
#include "base/hash.h"

#define EVENT_ID 100000
#define TRACK_IDS 1000 /* of events */
#define EVENT_IDS 1000 /* of races */
#define DRIVER_ID 300000
#define TRANSPONDER 3000000
#define CLASS_ENTRIES 30 /* about so many */
#define TWO_CLASSES 16   /* an event with so many entries has two classes */
#define MORNING_MINUTE (9 * 60)
#define DAY_MINUTES (12 * 60)
#define RACE_MINUTES_MAX 12

const struct site_track il__site_tracks[SITE_TRACKS] = {
    { "hilltoprc", "Hilltop RC Raceway" },
    { "claypit", "Clay Pit Off Road" },
    { "riverside-mcc", "Riverside Model Car Club" },
    { "thebarn", "Fast Eddie's Barn & Hobby" },
};

static const char *const class_names[SITE_CLASSES_MAX] = {
    "1/8 Nitro Buggy",  "1/8 Electric Buggy", "Junior",       "1/10 2WD Stock",
    "1/8 Nitro Truggy", "40+ Masters",        "1/10 4WD Mod", "Stadium Truck",
    "1/8 E-Truggy",     "Vintage & Classic",  "Mini-T",       "Short Course",
};

static const char *const meets[] = {
    "Clay Cup",   "Winter Series",       "Club Day",
    "Night Race", "State Titles & Open", "Founders' Trophy",
};

/* Apostrophes, quotes, braces, accents, hyphens, ampersands: drivers have such names. */
static const char *const first_names[] = {
    "ALEX",  "MARTHA", "FELIX",       "NOAH",    "PRIYA",       "JONAS",  "ANNE-MARIE", "LEE",
    "SAM",   "TANNER", "ZOE \"ZIP\"", "RICARDO", "MEI",         "STEFAN", "GRACE",      "OLE",
    "AVA",   "BJÖRN",  "DIEGO",       "FATIMA",  "JAY {JJ}",    "HUGO",   "IRIS",       "KAI",
    "LUCÍA", "MARCUS", "NINA",        "OSCAR",   "TOM & JERRY", "QUINN",  "RHYS",       "UMA",
};
static const char *const last_names[] = {
    "BROWN",    "O'LOUGHLIN", "MÜLLER",   "DE LA CRUZ", "SMITH-JONES", "WHITE",   "NAKAMURA",
    "VAN DYK",  "ROSSI",      "KOWALSKI", "SINGH",      "ANDERSSON",   "D'ARCY",  "PETIT",
    "HOLT",     "MENDES",     "OKAFOR",   "LINDGREN",   "BAUER",       "COSTA",   "NGUYEN",
    "FISCHER",  "MORETTI",    "HUGHES",   "PATEL",      "VOGEL",       "SATO",    "LARSEN",
    "DUPONT",   "GARCÍA",     "WOLFE",    "ADEYEMI",    "MCKAY",       "ŠIMEK",   "TREVIÑO",
    "BLACK",    "YILMAZ",     "HANSEN",   "FERREIRA",   "KELLER",      "IVERSEN", "ORTIZ",
    "BERG JR.", "ST. CLAIR",  "ZHANG",    "QUIGLEY",    "EVANS",       "URBAN",
};
#define DRIVERS (ARRAY_LEN(first_names) * ARRAY_LEN(last_names))
_Static_assert(DRIVERS >= SITE_ENTRIES_MAX, "the drivers of an event have different names");

/* ---- draws ----------------------------------------------------------------------------------- */

uint64_t
il__site_draw(const struct site_options *o, enum site_draw what, uint64_t a, uint64_t b)
{
    uint64_t h = il__hash_mix(o->seed + 1, (uint64_t)what + 1);

    return il__hash_mix(il__hash_mix(h, a + 1), b + 1);
}

/* Half of the pages have a style; one page in sixteen has less content. */
static uint64_t
styles_of(const struct site_options *o, uint64_t id)
{
    static const uint64_t exceptions = UINT64_C(1) << SITE_STYLE_NO_RACES |
                                       UINT64_C(1) << SITE_STYLE_NOT_RUN |
                                       UINT64_C(1) << SITE_STYLE_ABSENT;
    uint64_t half = il__site_draw(o, SITE_DRAW_STYLES, id, 0);
    uint64_t few  = half;

    if (o->forced)
        return o->styles;
    for (unsigned i = 1; i < 4; i++)
        few &= il__site_draw(o, SITE_DRAW_STYLES, id, i);
    if (id == il__site_large_event())
        few &= ~(UINT64_C(1) << SITE_STYLE_NO_RACES);
    return (half & ~exceptions) | (few & exceptions);
}

/* ---- events ---------------------------------------------------------------------------------- */

const char *
il__site_class_name(unsigned i_class)
{
    CHECK(i_class < SITE_CLASSES_MAX);
    return class_names[i_class];
}

uint64_t
il__site_event_id(unsigned track, unsigned index)
{
    return EVENT_ID + (uint64_t)track * TRACK_IDS + index;
}

uint64_t
il__site_large_event(void)
{
    return il__site_event_id(0, 0);
}

static void
set_sizes(const struct site_options *o, struct site_event *e)
{
    uint64_t draw = il__site_draw(o, SITE_DRAW_SIZE, e->id, 0);

    e->n_entries = o->n_entries;
    e->n_races   = o->n_races;
    e->n_laps    = o->n_laps;
    if (e->id != il__site_large_event()) {
        e->n_entries = MIN(o->n_entries, 10 + (unsigned)(draw % 30));
        e->n_races   = MIN(o->n_races, 4 + (unsigned)(draw / 30 % 10));
        e->n_laps    = MIN(o->n_laps, 10 + (unsigned)(draw / 300 % 8));
    }
    if (site_has(e->styles, SITE_STYLE_NO_RACES))
        e->n_races = 0;
}

/* Divide the entries into classes of equal size, and each class into groups. */
static void
set_classes(struct site_event *e)
{
    unsigned n = MAX(e->n_entries >= TWO_CLASSES ? 2U : 1U, e->n_entries / CLASS_ENTRIES);

    e->n_classes = MIN(n, (unsigned)SITE_CLASSES_MAX);
    for (unsigned c = 0; c < e->n_classes; c++) {
        e->first_entry[c + 1] = e->n_entries * (c + 1) / e->n_classes;
        unsigned size         = e->first_entry[c + 1] - e->first_entry[c];
        e->first_group[c + 1] = e->first_group[c] + (size + SITE_GROUP_MAX - 1) / SITE_GROUP_MAX;
    }
    e->n_groups = e->first_group[e->n_classes];
}

/* The headings, and which of them names the event: h3, unless both hold the same words and
 * different years. */
static void
set_headings(const struct site_options *o, struct site_event *e, unsigned year)
{
    const char *meet = meets[il__site_draw(o, SITE_DRAW_NAME, e->id, 0) % ARRAY_LEN(meets)];

    (void)snprintf(e->h1, sizeof e->h1, "%s", il__site_tracks[e->track].name);
    (void)snprintf(e->h3, sizeof e->h3, "%s %u Round %u", meet, year, e->index + 1);
    (void)snprintf(e->name, sizeof e->name, "%s", e->h3);
    if (site_has(e->styles, SITE_STYLE_ONLY_H1)) {
        memcpy(e->h1, e->h3, sizeof e->h1);
        e->h3[0] = '\0';
    } else if (site_has(e->styles, SITE_STYLE_ONLY_H3)) {
        e->h1[0] = '\0';
    } else if (site_has(e->styles, SITE_STYLE_YEARS_DIFFER)) {
        (void)snprintf(e->h1, sizeof e->h1, "%s %u Round %u", meet, year + 1, e->index + 1);
        memcpy(e->name, e->h1, sizeof e->name);
    } else if (site_has(e->styles, SITE_STYLE_ALIKE)) {
        (void)snprintf(e->h1, sizeof e->h1, "The %s %u", meet, year);
    }
}

/* In odd classes, every sixth driver is one of the class before: a driver with two entries. */
static bool
is_second_entry(const struct site_event *e, unsigned entry, unsigned i_class)
{
    unsigned place = entry - e->first_entry[i_class];

    return i_class % 2 == 1 && place % 6 == 5 &&
           e->first_entry[i_class - 1] + place < e->first_entry[i_class];
}

static unsigned
class_of(const struct site_event *e, unsigned entry)
{
    unsigned i_class = 0;

    CHECK(entry < e->n_entries);
    while (entry >= e->first_entry[i_class + 1])
        i_class++;
    return i_class;
}

bool
il__site_event(const struct site_options *o, uint64_t id, struct site_event *ret)
{
    uint64_t from_first = id - EVENT_ID;
    unsigned year;

    if (id < EVENT_ID || from_first / TRACK_IDS >= SITE_TRACKS ||
        from_first % TRACK_IDS >= o->n_events)
        return false;
    *ret           = (struct site_event){ .id = id };
    ret->track     = (unsigned)(from_first / TRACK_IDS);
    ret->index     = (unsigned)(from_first % TRACK_IDS);
    ret->styles    = styles_of(o, id);
    ret->n_days    = site_has(ret->styles, SITE_STYLE_DATE_RANGE) ? 3 : 1;
    ret->first_day = o->newest_day - 7 * ret->index - 2 * ret->track;
    /* Near enough: a heading may name a year that the date does not. */
    year = 1970 + ret->first_day * 4 / 1461;
    set_sizes(o, ret);
    set_classes(ret);
    set_headings(o, ret, year);
    ret->n_drivers = ret->n_entries;
    for (unsigned i = 0; i < ret->n_entries; i++)
        ret->n_drivers -= is_second_entry(ret, i, class_of(ret, i));
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

unsigned
il__site_driver_id(unsigned driver)
{
    return DRIVER_ID + driver;
}

/* Group `group` of the class has the entries *ret_first and so on; returns how many. */
static unsigned
group_of(const struct site_event *e, unsigned i_class, unsigned group, unsigned *ret_first)
{
    unsigned n     = e->first_group[i_class + 1] - e->first_group[i_class];
    unsigned size  = e->first_entry[i_class + 1] - e->first_entry[i_class];
    unsigned first = size * group / n;

    *ret_first = e->first_entry[i_class] + first;
    return size * (group + 1) / n - first;
}

/* The entry whose name this one has: its own, or that of its namesake. */
static unsigned
name_of(const struct site_event *e, unsigned entry)
{
    unsigned first;
    unsigned n = group_of(e, 0, 0, &first);

    if (site_has(e->styles, SITE_STYLE_NAMESAKES) && n >= 6 && entry == first + n - 1)
        return entry - 1;
    return entry;
}

/* The same drivers come to a track again and again. */
static unsigned
driver_of(const struct site_event *e, unsigned entry)
{
    unsigned i_class = class_of(e, entry);

    if (is_second_entry(e, entry, i_class))
        entry = entry - e->first_entry[i_class] + e->first_entry[i_class - 1];
    return (e->track * 331 + e->index * 3 + entry) % DRIVERS;
}

void
il__site_entry(const struct site_options *o, const struct site_event *e, unsigned entry,
               struct site_entry *ret)
{
    unsigned named = driver_of(e, name_of(e, entry));

    ret->i_class = class_of(e, entry);
    ret->car     = entry - e->first_entry[ret->i_class] + 1;
    ret->driver  = driver_of(e, entry);
    ret->transponder =
        il__site_draw(o, SITE_DRAW_NAME, 0, ret->driver) % 5 == 0 ? 0 : TRANSPONDER + ret->driver;
    ret->first = first_names[named % ARRAY_LEN(first_names)];
    ret->last  = last_names[named / ARRAY_LEN(first_names)];
}

/* ---- races ----------------------------------------------------------------------------------- */

bool
il__site_race_id(uint64_t id, uint64_t *ret_event, unsigned *ret_index)
{
    *ret_event = id / EVENT_IDS;
    *ret_index = (unsigned)(id % EVENT_IDS) - 1;
    return id % EVENT_IDS != 0;
}

/* Rounds count back from the mains, so that an incomplete one is the first. */
static void
set_section(const struct site_event *e, struct site_race *r)
{
    unsigned n_rounds = (e->n_races + e->n_groups - 1) / e->n_groups;
    unsigned missing  = n_rounds * e->n_groups - e->n_races; /* from the first round */
    unsigned round    = (r->index + missing) / e->n_groups;
    unsigned warm_up  = n_rounds >= 4 ? 1 : 0;

    r->order = r->index + missing - round * e->n_groups + 1 - (round == 0 ? missing : 0);
    if (round == n_rounds - 1)
        (void)snprintf(r->section, sizeof r->section, "Main Events");
    else if (round < warm_up)
        (void)snprintf(r->section, sizeof r->section, "%s",
                       site_has(e->styles, SITE_STYLE_SEEDING) ? "Seeding Round 1" : "Practice");
    else
        (void)snprintf(r->section, sizeof r->section, "Qualifier Round %u", round - warm_up + 1);
}

static void
set_group(const struct site_event *e, struct site_race *r)
{
    unsigned n_rounds = (e->n_races + e->n_groups - 1) / e->n_groups;
    unsigned missing  = n_rounds * e->n_groups - e->n_races;
    unsigned group    = (r->index + missing) % e->n_groups;
    bool     main     = r->index + e->n_groups >= e->n_races;

    r->i_class = 0;
    while (group >= e->first_group[r->i_class + 1])
        r->i_class++;
    unsigned n = e->first_group[r->i_class + 1] - e->first_group[r->i_class];
    group -= e->first_group[r->i_class];
    r->n_entries     = group_of(e, r->i_class, group, &r->first_entry);
    const char *name = class_names[r->i_class];
    if (main) /* the A main comes last */
        (void)snprintf(r->label, sizeof r->label, "%s %c-Main", name, 'A' + (int)(n - 1 - group));
    else
        (void)snprintf(r->label, sizeof r->label, "%s (Heat %u/%u)", name, group + 1, n);
    r->bare = main && site_has(e->styles, SITE_STYLE_BARE_LABEL) && r->order % 3 == 1;
}

void
il__site_race(const struct site_options *o, const struct site_event *e, unsigned index,
              struct site_race *ret)
{
    CHECK(index < e->n_races);
    unsigned step = MIN(DAY_MINUTES / e->n_races, (unsigned)RACE_MINUTES_MAX) * e->n_days;
    unsigned minute;

    CHECK(step > 1);
    *ret = (struct site_race){ .id = e->id * EVENT_IDS + index + 1, .index = index };
    /* A revision changes every third race. */
    ret->revision = ((unsigned)o->revision + 2 - index % 3) / 3;
    ret->styles   = styles_of(o, ret->id);
    set_section(e, ret);
    set_group(e, ret);
    /* Corrected results are published later; the order of the races stays the same. */
    minute                = index * step + ret->revision % step;
    ret->completed_minute = minute / DAY_MINUTES * 24 * 60 + MORNING_MINUTE + minute % DAY_MINUTES;
}

enum site_precision
il__site_precision(const struct site_event *e, const struct site_race *r)
{
    if (!site_has(e->styles, SITE_STYLE_SHORT_TIME) || r->index % 3 == 0)
        return SITE_TO_MINUTE;
    return r->index % 3 == 1 ? SITE_TO_HOUR : SITE_TO_DAY;
}
