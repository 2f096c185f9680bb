/*
 * routes_run_tables.c: JSON tables of the routes that start and show ingestions. `interlock runs`
 * prints a run by the same table.
 */
#include "apps/ingest/routes_run.h"
#include "wire/table.h"

/* ---- requests -------------------------------------------------------------------------------- */

static const char *const on_conflicts[] = { [INGEST_ON_REJECT] = "reject",
                                            [INGEST_ON_JOIN]   = "join",
                                            [INGEST_ON_QUEUE]  = "queue",
                                            NULL };

#define STRUCT struct ingest_trigger_in
#define HOW                                                                                \
    BOUNDED("depth", depth, TEXT, 0, 1, 32, "laps_full (default)"),                        \
        BOOL("force", 0, force, 1,                                                         \
             "fetch and store everything, even if nothing seems to have changed"),         \
        CHOICE("on_conflict", 0, on_conflict, on_conflicts, 0,                             \
               "what to do if the event is being ingested: reject (default) returns 409, " \
               "join returns that run, queue waits")
#define SLUG(flag) \
    BOUNDED("track_slug", track_slug, TEXT, flag, 1, ADDRESS_SLUG_BYTES_MAX, "slug of the track")
static const struct wire_field event_in[] = { HOW };
OBJECT(il__ingest_in_event, "IngestEvent", event_in, 0, "Options of the ingestion");
static const struct wire_field source_in[] = {
    BOUNDED("source_event_id", source_event_id, TEXT, WIRE_REQUIRED, 1, LIVERC_ID_BYTES_MAX,
            "id of the event at the site"),
    SLUG(WIRE_REQUIRED),
    BOUNDED("event_id", event_id, TEXT, 0, 1, INGEST_EVENT_ID_BYTES_MAX,
            "id to store the event under if it is new; default: a UUID"),
    HOW,
};
OBJECT(il__ingest_in_source, "IngestSource", source_in, 0,
       "An event, and options of its ingestion");
static const struct wire_field sync_in[] = { HOW };
OBJECT(il__ingest_in_sync, "IngestSync", sync_in, 0, "Options of the request");
static const struct wire_field events_in[] = { SLUG(WIRE_REQUIRED), HOW };
OBJECT(il__ingest_in_events_sync, "IngestEvents", events_in, 0,
       "A track, and options of the request");
static const struct wire_field recent_in[] = {
    BOUNDED("days", days, UINT32, 0, 0, INGEST_DAYS_MAX,
            "ingest events of this many days; default 7"),
    BOUNDED("tracks", tracks, TEXT, 0, 1, INGEST_TRACKS_TEXT_BYTES_MAX,
            "slugs of tracks, separated by commas; default: all known tracks"),
    HOW,
};
OBJECT(il__ingest_in_recent, "IngestRecent", recent_in, 0, "Filter of the events to ingest");
#undef STRUCT

#define STRUCT struct ingest_cancel_in
static const struct wire_field cancel_in[] = {
    BOUNDED("reason", reason, TEXT, 0, 1, IL_PLACE_BYTES_MAX, "reason, shown in the error"),
};
OBJECT(il__ingest_in_cancel, "IngestCancel", cancel_in, 0, "Reason of a cancellation");
#undef STRUCT

/* ---- answers --------------------------------------------------------------------------------- */

#define STRUCT struct ingest_triggered
static const struct wire_field triggered[] = {
    F("job_id", id, TEXT, WIRE_NOT_NULL, "id of the run: see /ingestion/status/{job}"),
    F("status", status, TEXT, WIRE_NOT_NULL, "PENDING, or RUNNING if it joined a run"),
    BOOL("joined", 0, joined, 1, "whether it was already running (on_conflict: join)"),
    F("queue_position", position, UINT32, WIRE_NOT_NULL,
      "position in the queue; 1 is next, 0: not queued"),
    F("source_event_id", source_event_id, TEXT, 0, "id of the event at the site"),
    F("track_slug", track_slug, TEXT, 0, "slug of the track"),
    F("event_id", event_id, TEXT, 0, "id of the event, if it is known yet"),
};
OBJECT(il__ingest_triggered_out, "IngestTriggered", triggered, WIRE_ANSWER,
       "The run that was started or joined");
#undef STRUCT

#define STRUCT struct ingest_stage_out
static const struct wire_field stage_out[] = {
    F("stage", stage, TEXT, WIRE_NOT_NULL, "name of the stage"),
    F("label", label, TEXT, WIRE_NOT_NULL, "display name of the stage"),
    F("status", status, TEXT, WIRE_NOT_NULL, "RUNNING, COMPLETED, or how the run ended there"),
    F("started_at", started_at_ms, TIME, 0, "when it began"),
    F("ended_at", ended_at_ms, TIME, 0, "when it ended"),
    F("duration_ms", duration_ms, INT64, WIRE_NOT_NULL | WIRE_MINUS, "how long it took"),
    F("rows", details, META, 0, "rows inserted, updated, unchanged and removed, by table"),
};
static OBJECT(stage_object, "IngestStage", stage_out, WIRE_ANSWER, "A stage of an ingestion");
#undef STRUCT

#define STRUCT struct ingest_progress
static const struct wire_field progress_out[] = {
    F("percent", percent, INT64, WIRE_NOT_NULL | WIRE_MINUS, "percentage of the whole run"),
    F("done", done, INT64, WIRE_NOT_NULL | WIRE_MINUS, "races (or lists) done"),
    F("total", total, INT64, WIRE_NOT_NULL | WIRE_MINUS, "races (or lists) in all"),
};
static OBJECT(progress_object, "IngestProgress", progress_out, WIRE_ANSWER, "Progress");
#undef STRUCT

#define STRUCT struct ingest_run_out
static const struct wire_field run_out[] = {
    F("job_id", id, TEXT, WIRE_NOT_NULL, "id of the run"),
    F("kind", kind, TEXT, WIRE_NOT_NULL, "event, tracks, events or recent"),
    F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns it"),
    F("status", status, TEXT, WIRE_NOT_NULL,
      "PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT or INTERRUPTED"),
    BOOL("cancelling", 0, cancelling, 1, "whether it was asked to stop"),
    F("stage", stage, TEXT, 0, "current stage, or the last one"),
    F("stage_label", stage_label, TEXT, 0, "display name of the stage"),
    ONE("progress", progress, progress_object, "progress"),
    F("queue_position", position, UINT32, WIRE_NOT_NULL,
      "position in the queue; 1 is next, 0: not queued"),
    F("source_event_id", source_event_id, TEXT, 0, "id of the event at the site"),
    F("track_slug", track_slug, TEXT, 0, "slug of the track"),
    F("event_id", event_id, TEXT, 0, "id of the event, once it is known"),
    F("trigger_type", trigger, TEXT, 0, "api, cli, schedule or recent"),
    F("trigger_by", by, TEXT, 0, "who started it"),
    F("created_at", created_at_ms, TIME, 0, "when it was requested"),
    F("started_at", started_at_ms, TIME, 0, "when it began"),
    F("ended_at", ended_at_ms, TIME, 0, "when it ended"),
    F("duration_ms", duration_ms, INT64, WIRE_NOT_NULL | WIRE_MINUS,
      "duration, so far if it is running"),
    OBJECTS("timeline", 0, stages, n_stages, stage_object, "its stages so far"),
    F("result", result, META, 0,
      "event_id, ingest_depth, last_ingested_at, races_ingested, results_ingested, laps_ingested, "
      "status (updated or already_complete), rows"),
    F("error", error, META, 0, "code, message and details of a failure"),
};
OBJECT(il__ingest_run_out, "IngestRun", run_out, WIRE_ANSWER, "An ingestion");
#undef STRUCT
