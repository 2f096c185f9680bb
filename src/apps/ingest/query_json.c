/*
 * query_json.c: the JSON of events, races, results, laps, links and users.
 */
#include "apps/ingest/query.h"
#include "apps/ingest/verify.h"
#include "wire/table.h"

/* Thousandths: a time in ms as seconds. */
#define SECONDS(field, member, text)                                                    \
    {                                                                                   \
        .name = field, .kind = WIRE_DECIMAL, .flags = WIRE_MINUS, .offset = AT(member), \
        .digits = 3, .help = text                                                       \
    }

/* ---- results --------------------------------------------------------------------------------- */

#define STRUCT struct ingest_extras_out
static const struct wire_field extras_out[] = {
    SECONDS("average_top_5", average_top_5_ms, "average of the five best laps, seconds"),
    SECONDS("average_top_10", average_top_10_ms, "average of the ten best laps, seconds"),
    SECONDS("average_top_15", average_top_15_ms, "average of the fifteen best laps, seconds"),
    SECONDS("top_3_consecutive", top_3_consecutive_ms, "best three consecutive laps, seconds"),
    SECONDS("deviation", deviation_ms, "standard deviation of the laps, seconds"),
};
static OBJECT(extras_object, "RaceResultExtras", extras_out, WIRE_ANSWER,
              "Other figures of a result");
#undef STRUCT

#define STRUCT struct ingest_result_out
static const struct wire_field result_out[] = {
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the result"),
    F("driver_id", driver_id, TEXT, WIRE_NOT_NULL, "id of the driver"),
    F("source_driver_id", source_driver_id, TEXT, WIRE_NOT_NULL, "the site's id of the driver"),
    F("name", name, TEXT, WIRE_NOT_NULL, "name of the driver in this race"),
    F("car_number", car_number, TEXT, 0, "number of the car"),
    F("position", position, INT32, WIRE_NOT_NULL, "1 is the winner"),
    F("qualified", qualified, INT32, WIRE_MINUS, "position on the grid"),
    F("laps_completed", laps_completed, INT32, WIRE_NOT_NULL, "number of laps"),
    F("total_raw", total_raw, TEXT, 0, "laps and time as on the page"),
    SECONDS("total_seconds", total_ms, "time of the race"),
    F("behind_raw", behind_raw, TEXT, 0, "distance to the one in front, as on the page"),
    SECONDS("behind_seconds", behind_ms, "as a time"),
    F("behind_laps", behind_laps, INT32, WIRE_MINUS, "in laps"),
    SECONDS("fastest_seconds", fastest_ms, "fastest lap"),
    F("fastest_lap", fastest_lap, INT32, WIRE_MINUS, "its number"),
    SECONDS("average_seconds", average_ms, "average lap"),
    SECONDS("consistency", consistency_milli, "percent"),
    ONE("extras", extras, extras_object, "other figures of the page"),
    F("laps", n_laps, INT64, WIRE_NOT_NULL, "number of laps that are stored"),
};
static OBJECT(result_object, "RaceResult", result_out, WIRE_ANSWER, "A driver's result of a race");
#undef STRUCT

#define STRUCT struct ingest_lap_out
static const struct wire_field lap_out[] = {
    F("result_id", result_id, TEXT, WIRE_NOT_NULL, "id of the result"),
    F("source_driver_id", source_driver_id, TEXT, WIRE_NOT_NULL, "the site's id of the driver"),
    F("name", name, TEXT, WIRE_NOT_NULL, "name of the driver in this race"),
    F("result_position", result_position, INT32, WIRE_NOT_NULL, "position in the result"),
    F("lap_number", number, INT32, WIRE_NOT_NULL, "1, 2, 3, …"),
    F("position", position, INT32, WIRE_MINUS, "position after this lap"),
    F("time_raw", time_raw, TEXT, WIRE_NOT_NULL, "its time as on the page"),
    SECONDS("seconds", time_ms, "its time"),
    F("pace", pace, TEXT, 0, "laps and time that this pace would give"),
    SECONDS("elapsed_seconds", elapsed_ms, "time of the race after this lap"),
    F("segments", segments, META, 0, "times of its segments, as on the page"),
};
OBJECT(il__ingest_lap_out, "RaceLap", lap_out, WIRE_ANSWER, "A lap");
#undef STRUCT

/* ---- races ----------------------------------------------------------------------------------- */

#define STRUCT struct ingest_race_out
#define RACE_FIELDS                                                                             \
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the race"),                                         \
        F("event_id", event_id, TEXT, WIRE_NOT_NULL, "id of its event"),                        \
        F("event_ingest_depth", event_depth, TEXT, WIRE_NOT_NULL, "none or laps_full"),         \
        BOOL("event_complete", 0, is_complete, 1, "all races of the event have been ingested"), \
        F("source_race_id", source_race_id, TEXT, WIRE_NOT_NULL, "the site's id of the race"),  \
        F("order", order, INT32, WIRE_MINUS, "number of the race in the event"),                \
        F("class_name", class_name, TEXT, WIRE_NOT_NULL, "class of the cars"),                  \
        F("label", label, TEXT, 0, "name of the race"),                                         \
        F("section", section, TEXT, 0, "part of the event, such as Main Events"),               \
        F("session_type", session, TEXT, WIRE_NOT_NULL,                                         \
          "race, seeding, practice, qualifying, main or heat"),                                 \
        F("url", url, TEXT, 0, "its page, as the event page links it"),                         \
        F("completed_at", completed_at, TEXT, 0, "local time of the track, without a zone"),    \
        F("round", round, TEXT, 0, "round"),                                                    \
        F("length", length, TEXT, 0, "length as on the page, such as 30:00 Timed"),             \
        SECONDS("length_seconds", length_ms, "as a time"),                                      \
        BOOL("has_laps", 0, has_laps, 1, "the race was run: its page has laps"),                \
        F("ingested_at", ingested_ms, TIME, 0, "when its page was last seen"),                  \
        F("n_results", n_results, INT64, WIRE_NOT_NULL, "number of results")
static const struct wire_field race_out[] = { RACE_FIELDS };
static OBJECT(race_object, "Race", race_out, WIRE_ANSWER, "A race");
static const struct wire_field race_full_out[] = {
    RACE_FIELDS,
    OBJECTS("results", 0, results, n_shown, result_object, "its results, by position"),
};
OBJECT(il__ingest_race_full_out, "RaceFull", race_full_out, WIRE_ANSWER, "A race with its results");
#undef STRUCT

/* ---- events ---------------------------------------------------------------------------------- */

#define STRUCT struct ingest_event_out
#define EVENT_FIELDS                                                                              \
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the event"),                                          \
        F("source", source, TEXT, WIRE_NOT_NULL, "site that it comes from"),                      \
        F("source_event_id", source_event_id, TEXT, WIRE_NOT_NULL, "the site's id of the event"), \
        F("track_slug", track, TEXT, WIRE_NOT_NULL, "slug of the track"),                         \
        F("track_name", track_name, TEXT, 0, "name of the track"),                                \
        F("name", name, TEXT, 0, "name of the event; null until its page was read"),              \
        F("club", club, TEXT, 0, "club or series"), F("meet", meet, TEXT, 0, "meet"),             \
        F("first_day", first_day, TEXT, 0, "2025-11-16"),                                         \
        F("last_day", last_day, TEXT, 0, "the same for an event of one day"),                     \
        F("n_entries", n_entries, INT32, WIRE_MINUS, "entries, as the site says"),                \
        F("n_drivers", n_drivers, INT32, WIRE_MINUS, "drivers, as the site says"),                \
        F("n_laps", n_laps, INT32, WIRE_MINUS, "laps, as the site says"),                         \
        F("n_races", n_races, INT64, WIRE_NOT_NULL, "races that have been ingested"),             \
        F("ingest_depth", depth, TEXT, WIRE_NOT_NULL, "none or laps_full"),                       \
        BOOL("complete", 0, is_complete, 1, "whether it is fully ingested (laps_full)"),          \
        F("last_ingested_at", last_ingested_ms, TIME, 0, "when it last became complete"),         \
        F("updated_at", updated_ms, TIME, 0, "when its own data last changed")
static const struct wire_field event_out[] = { EVENT_FIELDS };
OBJECT(il__ingest_event_out, "RaceEvent", event_out, WIRE_ANSWER, "An event");
static const struct wire_field event_full_out[] = {
    EVENT_FIELDS,
    OBJECTS("races", 0, races, n_shown, race_object, "its races, in the order of completion"),
};
OBJECT(il__ingest_event_full_out, "RaceEventFull", event_full_out, WIRE_ANSWER,
       "An event with its races");
#undef STRUCT

#define STRUCT struct ingest_events_in
static const struct wire_field events_in[] = {
    BOUNDED("search", search, TEXT, 0, 0, INGEST_SEARCH_BYTES_MAX,
            "only events with this in their name, track or id; case does not matter"),
    BOUNDED("depth", depth, TEXT, 0, 0, 16, "only events with this ingest_depth: none, laps_full"),
    BOUNDED("track", track, TEXT, 0, 0, INGEST_SLUG_BYTES_MAX,
            "only events of the track with this slug"),
    CHOICE("sort", 0, sort, il__ingest_sorts, 0,
           "date (newest first, the default), oldest, name, ingested (last ingested first)"),
    BOUNDED("cursor", cursor, TEXT, 0, 0, 512, "`next` of the previous page"),
    BOUNDED("limit", limit, UINT32, 0, 1, INGEST_PAGE_MAX, "maximum number of items; default 50"),
};
OBJECT(il__ingest_in_events, "RaceEventsQuery", events_in, 0, "Filter and order of the events");
#undef STRUCT

/* ---- links and users ------------------------------------------------------------------------- */

#define STRUCT struct ingest_link
static const struct wire_field link_out[] = {
    F("id", id, TEXT, WIRE_NOT_NULL, "id of the link"),
    F("state", state, TEXT, WIRE_NOT_NULL, "suggested, confirmed, rejected or conflict"),
    SECONDS("score", score_milli, "similarity, 0 to 1"),
    F("email", email, TEXT, WIRE_NOT_NULL, "email address of the user"),
    F("user_name", user_name, TEXT, WIRE_NOT_NULL, "name of the user"),
    F("driver_id", driver_id, TEXT, WIRE_NOT_NULL, "id of the driver"),
    F("source_driver_id", source_driver_id, TEXT, WIRE_NOT_NULL, "the site's id of the driver"),
    F("driver_name", driver_name, TEXT, WIRE_NOT_NULL, "name of the driver"),
    F("rival", rival, TEXT, 0, "if in conflict: email address of the other user"),
    F("n_events", n_events, INT64, WIRE_NOT_NULL, "events in which the two matched"),
    F("updated_at", updated_ms, TIME, 0, "when it last changed"),
};
OBJECT(il__ingest_link_out, "DriverLink", link_out, WIRE_ANSWER, "A user who may be a driver");
#undef STRUCT

#define STRUCT struct ingest_links_in
static const struct wire_field links_in[] = {
    BOUNDED("state", state, TEXT, 0, 0, 16,
            "only links in this state: suggested, confirmed, rejected, conflict"),
    BOUNDED("cursor", cursor, TEXT, 0, 0, 512, "`next` of the previous page"),
    BOUNDED("limit", limit, UINT32, 0, 1, INGEST_PAGE_MAX, "maximum number of items; default 50"),
};
OBJECT(il__ingest_in_links, "DriverLinksQuery", links_in, 0, "Filter of the links");
#undef STRUCT

#define STRUCT struct ingest_link_in
static const struct wire_field link_in[] = {
    BOUNDED("email", email, TEXT, 0, 1, INGEST_EMAIL_BYTES_MAX,
            "email of the user to confirm it for; default: the user of the link"),
};
OBJECT(il__ingest_in_link, "DriverLinkDecision", link_in, 0, "User for whom a link is confirmed");
#undef STRUCT

#define STRUCT struct ingest_user
static const struct wire_field user_in[] = {
    BOUNDED("email", email, TEXT, WIRE_REQUIRED, 1, INGEST_EMAIL_BYTES_MAX,
            "email address; identifies the user"),
    BOUNDED("name", name, TEXT, WIRE_REQUIRED, 1, LIVERC_TEXT_BYTES_MAX, "name"),
    BOUNDED("transponder", transponder, TEXT, 0, 0, LIVERC_TEXT_BYTES_MAX, "transponder number"),
};
static OBJECT(user_object, "RaceUser", user_in, 0, "A user");
#undef STRUCT

#define STRUCT struct ingest_users_in
static const struct wire_field users_in[] = {
    OBJECTS("users", 0, users, n, user_object, "users to add or change; others are not changed"),
};
OBJECT(il__ingest_in_users, "RaceUsers", users_in, 0, "Users of the tenant");
#undef STRUCT

#define STRUCT struct ingest_counts
static const struct wire_field users_out[] = {
    F("inserted", n_inserted, INT64, WIRE_NOT_NULL, "number of new users"),
    F("updated", n_updated, INT64, WIRE_NOT_NULL, "number of changed users"),
    F("unchanged", n_unchanged, INT64, WIRE_NOT_NULL, "number of unchanged users"),
};
OBJECT(il__ingest_users_out, "RaceUsersWritten", users_out, WIRE_ANSWER,
       "Result of importing users");
#undef STRUCT

/* ---- invariants ------------------------------------------------------------------------------ */

#define STRUCT struct ingest_offender
static const struct wire_field offender_out[] = {
    F("key", key, TEXT, WIRE_NOT_NULL, "key of the row"),
    F("text", text, TEXT, 0, "the problem"),
};
static OBJECT(offender_object, "RaceOffender", offender_out, WIRE_ANSWER,
              "A row that breaks the invariant");
#undef STRUCT

#define STRUCT struct ingest_verdict
static const struct wire_field verdict_out[] = {
    F("name", name, TEXT, WIRE_NOT_NULL, "name of the invariant"),
    F("summary", summary, TEXT, WIRE_NOT_NULL, "what must hold"),
    F("severity", severity, TEXT, WIRE_NOT_NULL, "warning or error"),
    F("found", n, INT64, WIRE_NOT_NULL, "number of rows that break it"),
    OBJECTS("offenders", 0, offenders, n_offenders, offender_object, "the first 20 of them"),
};
OBJECT(il__ingest_verdict_out, "RaceVerdict", verdict_out, WIRE_ANSWER, "An invariant");
#undef STRUCT
