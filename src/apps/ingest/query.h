/*
 * query.h: what is in the tables, for routes and commands: events, races, results, laps, and their
 * JSON (query_json.c).
 *
 * Each call is one read-only transaction with one snapshot. It never waits for an ingestion, and
 * sees each race whole. Texts live for the call that gives them, until the next row. All functions
 * block, and may be called from several threads. IL_OK, IL_NOT_FOUND, IL_INVAL (a cursor), and
 * those of il_guard_begin().
 */
#ifndef IL_APPS_INGEST_QUERY_H
#define IL_APPS_INGEST_QUERY_H

#include "apps/ingest/links.h"
#include "apps/ingest/persist.h"
#include "wire/wire.h"

#define INGEST_PAGE_DEFAULT 50
#define INGEST_PAGE_MAX 500
#define INGEST_SEARCH_BYTES_MAX 200

enum ingest_sort {
    INGEST_BY_DATE, /* newest first */
    INGEST_BY_OLDEST,
    INGEST_BY_NAME,
    INGEST_BY_INGESTED, /* the last ingested first */
    INGEST_SORT_COUNT
};
extern const char *const il__ingest_sorts[INGEST_SORT_COUNT + 1];

struct ingest_race_out;
/* Counts and places that the page does not give are -1; times, INGEST_NO_DECIMAL. */
#define INGEST_NO_DECIMAL INT64_MIN
struct ingest_event_out {
    const char             *id, *source, *source_event_id;
    const char             *track, *track_name;
    const char             *name, *club, *meet, *first_day, *last_day;
    int32_t                 n_entries, n_drivers, n_laps; /* as the site says */
    const char             *depth;
    uint32_t                is_complete; /* the event is laps_full: 1 or 0 */
    int64_t                 last_ingested_ms, updated_ms;
    int64_t                 n_races; /* in the tables */
    struct ingest_race_out *races;   /* of il__ingest_event_get() */
    size_t                  n_shown;
};

struct ingest_extras_out {
    int64_t average_top_5_ms, average_top_10_ms, average_top_15_ms, top_3_consecutive_ms,
        deviation_ms;
};
struct ingest_result_out {
    const char              *id, *driver_id, *source_driver_id, *name, *car_number;
    int32_t                  position, qualified, laps_completed;
    const char              *total_raw;
    int64_t                  total_ms;
    const char              *behind_raw;
    int64_t                  behind_ms;
    int32_t                  behind_laps;
    int64_t                  fastest_ms;
    int32_t                  fastest_lap;
    int64_t                  average_ms;
    int64_t                  consistency_milli;
    struct ingest_extras_out extras;
    int64_t                  n_laps;
};
struct ingest_race_out {
    const char               *id, *event_id, *event_depth;
    uint32_t                  is_complete; /* its event is */
    const char               *source_race_id;
    int32_t                   order;
    const char               *class_name, *label, *section, *session, *url, *completed_at;
    const char               *round, *length;
    int64_t                   length_ms;
    uint32_t                  has_laps;
    int64_t                   ingested_ms, n_results;
    struct ingest_result_out *results; /* of il__ingest_race_get() */
    size_t                    n_shown;
};
struct ingest_lap_out {
    const char *result_id, *source_driver_id, *name;
    int32_t     result_position, number, position;
    const char *time_raw;
    int64_t     time_ms;
    const char *pace;
    int64_t     elapsed_ms;
    const char *segments; /* JSON, or NULL */
};
struct ingest_events_in {
    const char *search, *depth, *track, *cursor; /* NULL = not given */
    int32_t     sort;                            /* enum ingest_sort */
    uint32_t    limit;                           /* 0 = not given */
};

struct ingest_links_in {
    const char *state, *cursor;
    uint32_t    limit;
};
struct ingest_link_in {
    const char *email; /* NULL = not given */
};
struct ingest_users_in {
    struct ingest_user *users;
    size_t              n;
};

/* Events, at most in->limit. *ret_next (in *mem): the cursor of the next page, or NULL. Stops when
 * each() returns false: IL_CANCELLED. */
typedef bool ingest_event_fn(void *cookie, const struct ingest_event_out *event);
il_status il__ingest_events_list(il_guard *g, const char *tenant, const struct ingest_events_in *in,
                                 ingest_event_fn *each, void *cookie, void **mem,
                                 const char **ret_next, il_error *reterr) MUST_USE;
/* One event with its races; one race with its results. Everything lives in *mem. */
il_status il__ingest_event_get(il_guard *g, const char *tenant, const char *id, void **mem,
                               struct ingest_event_out *ret, il_error *reterr) MUST_USE;
il_status il__ingest_race_get(il_guard *g, const char *tenant, const char *id, void **mem,
                              struct ingest_race_out *ret, il_error *reterr) MUST_USE;
/* The laps of a race, result by result. IL_CANCELLED: each() returned false. */
typedef bool ingest_lap_fn(void *cookie, const struct ingest_lap_out *lap);
il_status    il__ingest_laps_list(il_guard *g, const char *tenant, const char *race_id,
                                  ingest_lap_fn *each, void *cookie, il_error *reterr) MUST_USE;

/* Times are decimals of seconds. */
extern const struct wire_object il__ingest_event_out, il__ingest_event_full_out,
    il__ingest_race_full_out, il__ingest_lap_out, il__ingest_link_out;
extern const struct wire_object il__ingest_in_events, il__ingest_in_links, il__ingest_in_link,
    il__ingest_in_users, il__ingest_users_out;

#endif
