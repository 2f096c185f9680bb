/*
 * liverc.h: what the pages of LiveRC say. Bytes in, structs out: nothing here does I/O, keeps state
 * or knows about stores. docs/contributing/LIVERC.md describes the pages and the rules.
 *
 * Every function but il__liverc_load() wants that one to have returned IL_OK. All are thread-safe;
 * none of them blocks. Strings of the results are normalised (il__liverc_normalise()) unless they
 * are called raw. A time is in integer milliseconds; LIVERC_NONE means a number that the page
 * does not give, NULL for a text.
 */
#ifndef IL_APPS_INGEST_LIVERC_H
#define IL_APPS_INGEST_LIVERC_H

#include "base/buf.h"

/* Limits. A page beyond one of them is refused. */
#define LIVERC_BODY_BYTES_MAX (2 << 20)
#define LIVERC_TEXT_BYTES_MAX 1024 /* one name, cell or string of the lap script */
#define LIVERC_ID_BYTES_MAX 20
#define LIVERC_RACES_MAX 4096    /* of an event */
#define LIVERC_ENTRIES_MAX 16384 /* of an entry list; of the list of tracks or events, too */
#define LIVERC_RESULTS_MAX 512   /* of a race */
#define LIVERC_LAPS_MAX 10000    /* of a driver in a race */
#define LIVERC_SEGMENTS_MAX 64   /* of a lap */
#define LIVERC_WARNINGS_MAX 64   /* kept; the others are only counted */

#define LIVERC_NONE (-1)
#define LIVERC_DATE_BYTES 11      /* 2025-11-16 */
#define LIVERC_TIME_BYTES 20      /* 2025-11-16T17:30:00, local, no zone; or only the date */
#define LIVERC_DIGEST_BYTES 65    /* SHA-256 in hexadecimal */
#define LIVERC_DRIVER_ID_BYTES 65 /* the site's number, or synthetic-HEX */

enum liverc_kind {
    LIVERC_EVENT,   /* ?p=view_event&id= */
    LIVERC_ENTRIES, /* ?p=view_entry_list&id= */
    LIVERC_RACE,    /* ?p=view_race_result&id= */
    LIVERC_EVENTS,  /* the events of a track */
    LIVERC_TRACKS,  /* all tracks */
    LIVERC_KIND_COUNT
};
extern const char *const il__liverc_kinds[LIVERC_KIND_COUNT];

enum liverc_session {
    LIVERC_SESSION_RACE,
    LIVERC_SESSION_SEEDING,
    LIVERC_SESSION_PRACTICE,
    LIVERC_SESSION_QUALIFYING,
    LIVERC_SESSION_MAIN,
    LIVERC_SESSION_HEAT,
    LIVERC_SESSION_COUNT
};
extern const char *const il__liverc_sessions[LIVERC_SESSION_COUNT];

enum liverc_code {
    LIVERC_OK,
#define X(code, http, status, text) LIVERC_##code,
#include "apps/ingest/errors.def"
#undef X
    LIVERC_CODE_COUNT
};
extern const char *const il__liverc_codes[LIVERC_CODE_COUNT];

/* A page as it was fetched. Borrowed for the call. */
struct liverc_source {
    const char *body;
    size_t      n_bytes;
    const char *id;   /* of the event or race, from the URL; NULL = unknown */
    const char *slug; /* of the track; NULL = unknown, then drivers get no synthetic ids */
};

/* The memory of one parsed page; start with { 0 }. A page can be reused after a release. */
struct liverc_page {
    void            *mem;
    enum liverc_code code; /* why the page was refused; LIVERC_OK if for another reason */
    const char      *warnings[LIVERC_WARNINGS_MAX];
    size_t           n_warnings; /* may exceed LIVERC_WARNINGS_MAX */
};

struct liverc_race_link {
    const char         *id;
    const char         *url;     /* as in the page */
    const char         *section; /* the header above it: Main Events; may be "" */
    const char         *class_name;
    const char         *label;
    int32_t             order;                           /* Race 14: ...; or LIVERC_NONE */
    char                completed_at[LIVERC_TIME_BYTES]; /* or "" */
    enum liverc_session session;
};

struct liverc_event {
    const char              *id;
    const char              *name;
    const char              *club; /* h1; may be "" */
    const char              *meet; /* h3; may be "" */
    char                     first_day[LIVERC_DATE_BYTES];
    char                     last_day[LIVERC_DATE_BYTES];
    int32_t                  n_entries, n_drivers, n_laps; /* as the page says, or LIVERC_NONE */
    struct liverc_race_link *races;                        /* in the page's order: newest first */
    size_t                   n_races;
    char digest[LIVERC_DIGEST_BYTES]; /* of ids and completion times, in any order */
};

struct liverc_entry {
    const char *class_name;
    const char *car_number;  /* may be "" */
    const char *name;        /* FIRST LAST, or LAST, FIRST on older pages */
    const char *upper_name;  /* part of its key */
    const char *transponder; /* NULL = none */
};

struct liverc_entry_list {
    struct liverc_entry *entries;
    size_t               n_entries;
    size_t               n_classes; /* with entries */
};

struct liverc_lap {
    int32_t      number;   /* 1, 2, 3, ... */
    int32_t      position; /* or LIVERC_NONE */
    int64_t      time_ms;
    int64_t      elapsed_ms;
    const char  *time_raw;
    const char  *pace; /* may be "" */
    const char **segments;
    size_t       n_segments;
};

struct liverc_result {
    int32_t            position;
    const char        *car_number; /* may be "" */
    const char        *name;
    const char        *upper_name;
    char               driver_id[LIVERC_DRIVER_ID_BYTES];
    int32_t            qualified; /* LIVERC_NONE for all numbers: not given */
    int32_t            n_laps_completed;
    const char        *total_raw; /* 47/30:31.382 */
    int64_t            total_ms;
    const char        *behind_raw;
    int64_t            behind_ms;
    int32_t            behind_laps;
    int64_t            fastest_ms;
    int32_t            fastest_lap;
    int64_t            average_ms;
    int64_t            average_top_5_ms, average_top_10_ms, average_top_15_ms;
    int64_t            top_3_consecutive_ms;
    int64_t            deviation_ms;
    int32_t            consistency_milli; /* 92.82% = 92820 */
    struct liverc_lap *laps;
    size_t             n_laps; /* 0 if the page has none, or bad ones */
};

struct liverc_race {
    const char           *id;     /* NULL if neither the URL nor the page has it */
    const char           *label;  /* 1/8 Electric Buggy A3-Main; may be "" */
    const char           *round;  /* Main Events; may be "" */
    const char           *length; /* 30:00 Timed; may be "" */
    int64_t               length_ms;
    int32_t               number;   /* race_num, or LIVERC_NONE */
    bool                  has_laps; /* the page has a lap script: the race was run */
    struct liverc_result *results;
    size_t                n_results;
    char                  digest[LIVERC_DIGEST_BYTES];
};

struct liverc_event_link {
    const char *id;
    const char *name;
    char        first_day[LIVERC_DATE_BYTES]; /* or "" */
    int32_t     n_entries, n_drivers;
};

struct liverc_event_links {
    struct liverc_event_link *items;
    size_t                    n;
};

struct liverc_track {
    const char *slug;
    const char *name;
};

struct liverc_tracks {
    struct liverc_track *items;
    size_t               n;
};

/* Load the libraries, once per process. IL_OK, or IL_STORE: one is not installed. */
il_status il__liverc_load(il_error *reterr) MUST_USE;

void il__liverc_page_release(struct liverc_page *p);

/*
 * Parse a page. *ret lives in `p`. IL_OK; IL_INVAL with p->code and what is wrong where; IL_NOMEM.
 * Warnings may have been added in any case.
 */
il_status il__liverc_event(struct liverc_page *p, const struct liverc_source *s,
                           const struct liverc_event **ret, il_error *reterr) MUST_USE;
il_status il__liverc_entries(struct liverc_page *p, const struct liverc_source *s,
                             const struct liverc_entry_list **ret, il_error *reterr) MUST_USE;
il_status il__liverc_race(struct liverc_page *p, const struct liverc_source *s,
                          const struct liverc_race **ret, il_error *reterr) MUST_USE;
il_status il__liverc_events(struct liverc_page *p, const struct liverc_source *s,
                            const struct liverc_event_links **ret, il_error *reterr) MUST_USE;
il_status il__liverc_tracks(struct liverc_page *p, const struct liverc_source *s,
                            const struct liverc_tracks **ret, il_error *reterr) MUST_USE;
/* Which kind of page it is. IL_INVAL: none of them. */
il_status il__liverc_detect(const struct liverc_source *s, enum liverc_kind *ret, il_error *reterr)
    MUST_USE;

/* ---- single values (normalise.c, session_type.c) --------------------------------------------- */

/* NFKC; white space becomes single spaces, none at the ends; control and ignorable characters are
 * dropped. `text` is valid UTF-8. Replaces the content of `out`, whose maximum applies; check
 * out->failed. False: out of memory. */
bool il__liverc_normalise(const char *text, size_t n_bytes, struct il__buf *out) MUST_USE;
/* In upper case; `text` is valid UTF-8. */
void il__liverc_upper(const char *text, struct il__buf *out);
/* 38.17, 1:23.45, 1:23:45.67 */
bool il__liverc_time_ms(const char *text, int64_t *ret_ms) MUST_USE;
/* 47/30:31.382, 47/1:00:31.382, 0; *ret_ms is LIVERC_NONE without a time and for 0 laps. */
bool il__liverc_laps_time(const char *text, int32_t *ret_laps, int64_t *ret_ms) MUST_USE;
/* 92.82 or 92.82% in thousandths; three digits are kept, the rest is rounded. */
bool il__liverc_milli(const char *text, int64_t *ret) MUST_USE;
/* 4,129 */
bool il__liverc_count(const char *text, int32_t *ret) MUST_USE;
/* Nov 16, 2025; or Mar 5, 2026 to Mar 8, 2026. */
bool il__liverc_days(const char *text, char first[LIVERC_DATE_BYTES], char last[LIVERC_DATE_BYTES])
    MUST_USE;
/* Nov 16, 2025 at 5:30pm; at 5pm; or only the date. */
bool il__liverc_completed(const char *text, char out[LIVERC_TIME_BYTES]) MUST_USE;

/* The type of a session from the header above it, its label and its URL. */
enum liverc_session il__liverc_session(const char *section, const char *label, const char *url);
/* The name of an event from h1 and h3, either of which may be "". Returns one of them. */
const char *il__liverc_event_name(const char *club, const char *meet);
/* The id of a driver without one: synthetic- and 16 digits of SHA-256(SLUG.liverc.com|UPPER NAME),
 * with |CAR NUMBER appended for a namesake (`car_number` not NULL). */
void il__liverc_synthetic_id(const char *slug, const char *upper_name, const char *car_number,
                             char out[LIVERC_DRIVER_ID_BYTES]);

/* ---- matching users with drivers (match.c) --------------------------------------------------- */

#define LIVERC_SCORE_CONFIRMED 0.95
#define LIVERC_SCORE_SUGGESTED 0.85

enum liverc_link {
    LIVERC_LINK_NONE,
    LIVERC_LINK_SUGGESTED,
    LIVERC_LINK_CONFIRMED,
    LIVERC_LINK_REJECTED,
    LIVERC_LINK_CONFLICT,
    LIVERC_LINK_COUNT
};
extern const char *const il__liverc_links[LIVERC_LINK_COUNT];

/* What a user and a driver have in common. */
struct liverc_likeness {
    bool     same_transponder;
    unsigned n_transponder_events; /* in how many events */
    bool     same_name;            /* after il__liverc_match_name() */
    double   score;                /* of the names; 1 if they are the same */
};

/* A name in the form that is compared: lower case, no punctuation, sorted tokens. Replaces the
 * content of `out`. */
void il__liverc_match_name(const char *name, struct il__buf *out);
/* Jaro-Winkler similarity of two texts in UTF-8, 0 to 1. */
double il__liverc_similarity(const char *a, const char *b);
/* Compare names as il__liverc_match_name() gives them; transponders may be NULL or "". */
struct liverc_likeness il__liverc_compare(const char *name_a, const char *transponder_a,
                                          const char *name_b, const char *transponder_b);
/* The state of a new link (NONE, SUGGESTED or CONFIRMED), and how sure it is (1 for equal names or
 * transponders). */
enum liverc_link il__liverc_link(const struct liverc_likeness *l, double *ret_score);

#endif
