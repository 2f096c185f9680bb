/*
 * serve.h: the app as a part of the server. Routes that start and show ingestions are in
 * routes_run.c, those that read in routes_read.c, those of links and users in routes_links.c.
 */
#ifndef IL_APPS_INGEST_SERVE_H
#define IL_APPS_INGEST_SERVE_H

#include "apps/app.h"
#include "apps/common/tables.h"
#include "apps/ingest/ingest.h"
#include "http/handler.h"

struct ingest_app {
    struct http_server   *server;
    struct ingest_options options;
    void                 *mem; /* their texts */
    /* from the start on: */
    struct tables_place *place;
    il_guard            *tables; /* for reads, and for writes that are no ingestion */
    struct ingest       *ingest;
};
struct ingest_app *il__ingest_app_of(const struct http_request *r);

/* What happens to ingestions: log lines and metrics (log.c). */
extern const struct http_app_metric il__ingest_metrics[4];
extern const struct http_app_event  il__ingest_events[10];
void                                il__ingest_report(void *cookie, const struct ingest_note *note);
void                                il__ingest_report_gauges(struct ingest_app *app);

#endif
