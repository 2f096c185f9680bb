/*
 * routes_run.h: the routes that start, show and cancel ingestions: routes_run.c; their bodies are
 * in routes_run_tables.c.
 */
#ifndef IL_APPS_INGEST_ROUTES_RUN_H
#define IL_APPS_INGEST_ROUTES_RUN_H

#include "apps/ingest/ingest.h"
#include "http/handler.h"

/* on_conflict of a trigger: what to do if the event is being ingested. */
enum ingest_on_conflict {
    INGEST_ON_REJECT, /* 409 */
    INGEST_ON_JOIN,   /* 202 with that run */
    INGEST_ON_QUEUE,  /* 202 with a position in the queue */
};

/* The body of any trigger; a route accepts some of the fields. */
struct ingest_trigger_in {
    const char *source_event_id, *track_slug, *event_id, *depth, *tracks;
    uint32_t    force, days;
    int32_t     on_conflict;
};
struct ingest_cancel_in {
    const char *reason;
};
struct ingest_triggered {
    const char *id, *status, *source_event_id, *track_slug, *event_id;
    uint32_t    position, joined;
};

extern const struct wire_object il__ingest_in_event, il__ingest_in_source, il__ingest_in_sync,
    il__ingest_in_events_sync, il__ingest_in_recent, il__ingest_in_cancel;
extern const struct wire_object il__ingest_triggered_out, il__ingest_run_out;

http_fn il__ingest_http_event, il__ingest_http_source, il__ingest_http_tracks,
    il__ingest_http_events_sync, il__ingest_http_recent, il__ingest_http_status,
    il__ingest_http_cancel;

#endif
