/*
 * log.c: logs ingestion events and updates metrics.
 */
#include "apps/ingest/serve.h"
#include "base/clock.h"

enum {
    METRIC_TIMEOUTS,
    METRIC_DURATION,
    METRIC_RUNNING,
    METRIC_WAITING,
    METRIC_COUNT
};
const struct http_app_metric il__ingest_metrics[] = {
    [METRIC_TIMEOUTS] = { HTTP_METRIC_counter, "ingestion_lock_timeouts_total",
                          "ingestions that this server stopped because they took too long, by "
                          "stage",
                          "stage", il__ingest_stages, INGEST_STAGE_COUNT },
    [METRIC_DURATION] = { HTTP_METRIC_histogram, "ingestion_duration_seconds",
                          "duration of ingestions on this server, by outcome", "status",
                          il__ingest_statuses, INGEST_STATUS_COUNT },
    [METRIC_RUNNING]  = { HTTP_METRIC_gauge, "interlock_ingest_running",
                          "ingestions executing on this server", NULL, NULL, 0 },
    [METRIC_WAITING]  = { HTTP_METRIC_gauge, "interlock_ingest_waiting",
                          "ingestions waiting for room on this server (ingest_concurrency)", NULL,
                          NULL, 0 },
};
_Static_assert(ARRAY_LEN(il__ingest_metrics) == METRIC_COUNT, "serve.h");

enum {
    EVENT_STARTED,
    EVENT_LOCKED,
    EVENT_RELEASED,
    EVENT_RELEASE_FAILED,
    EVENT_SLOW,
    EVENT_COMPLETED,
    EVENT_FAILED,
    EVENT_TIMEOUT,
    EVENT_LOST,
    EVENT_TROUBLE,
    EVENT_COUNT
};
const struct http_app_event il__ingest_events[] = {
    [EVENT_STARTED]        = { HTTP_LOG_INFO, "ingest.started", "an ingestion started executing" },
    [EVENT_LOCKED]         = { HTTP_LOG_INFO, "ingest.lock_acquired",
                               "an ingestion acquired the lease of its event" },
    [EVENT_RELEASED]       = { HTTP_LOG_INFO, "ingest.lock_released",
                               "a lease was released and the store confirmed it" },
    [EVENT_RELEASE_FAILED] = { HTTP_LOG_WARN, "ingest.release_failed",
                               "cannot release the lease of an ingestion; it will expire" },
    [EVENT_SLOW]           = { HTTP_LOG_WARN, "ingest.slow",
                               "an ingestion is taking longer than expected (120 s)" },
    [EVENT_COMPLETED]      = { HTTP_LOG_INFO, "ingest.completed", "an ingestion is complete" },
    [EVENT_FAILED]         = { HTTP_LOG_WARN, "ingest.failed",
                               "an ingestion failed, was cancelled or interrupted" },
    [EVENT_TIMEOUT]        = { HTTP_LOG_ERROR, "ingest.timeout",
                               "an ingestion took too long and was stopped" },
    [EVENT_LOST]           = { HTTP_LOG_WARN, "ingest.lease_lost",
                               "the lease of an ingestion expired or was broken" },
    [EVENT_TROUBLE]        = { HTTP_LOG_ERROR, "ingest.trouble",
                               "an operation of the app failed; it will be retried" },
};
_Static_assert(ARRAY_LEN(il__ingest_events) == EVENT_COUNT, "serve.h");

static void
log_note(struct ingest_app *app, size_t event, const struct ingest_note *n)
{
    bool        ended  = n->type == INGEST_NOTE_ENDED;
    const char *stage  = n->stage < INGEST_STAGE_COUNT ? il__ingest_stages[n->stage] : NULL;
    const char *status = ended ? il__ingest_statuses[n->status] : NULL;
    const struct http_log_field fields[] = {
        HTTP_LOG_TEXT("tenant_id", n->tenant), HTTP_LOG_TEXT("run_id", n->run),
        HTTP_LOG_TEXT("ingestion", n->name),   HTTP_LOG_TEXT("event_id", n->event_id),
        HTTP_LOG_TEXT("stage", stage),         HTTP_LOG_TEXT("timer_status", status),
        HTTP_LOG_TEXT("message", n->text),     HTTP_LOG_MS("duration_ms", n->duration_ns),
    };

    /* the duration comes last: not every event has one */
    http_app_log_fields(app->server, &ingest_http_app, event, fields,
                        ARRAY_LEN(fields) - (n->duration_ns < 0 ? 1 : 0));
}

/* An ingestion has ended. */
static void
report_end(struct ingest_app *app, const struct ingest_note *n)
{
    static const size_t events[INGEST_STATUS_COUNT] = {
        [INGEST_COMPLETED] = EVENT_COMPLETED, [INGEST_FAILED] = EVENT_FAILED,
        [INGEST_TIMEOUT] = EVENT_TIMEOUT,     [INGEST_CANCELLED] = EVENT_FAILED,
        [INGEST_INTERRUPTED] = EVENT_FAILED,  [INGEST_LOST] = EVENT_LOST,
    };

    log_note(app, events[n->status], n);
    http_app_observe(app->server, &ingest_http_app, METRIC_DURATION, n->status, n->duration_ns);
    if (n->status == INGEST_TIMEOUT)
        http_app_count(app->server, &ingest_http_app, METRIC_TIMEOUTS, n->stage, 1);
}

/* Notes of apps/work that are not covered by our own. */
static void
report_work(struct ingest_app *app, const struct ingest_note *n)
{
    switch (n->work->event) {
    case WORK_EVENT_run_started:
        log_note(app, EVENT_STARTED, n);
        return;
    case WORK_EVENT_expired:
    case WORK_EVENT_broken:
    case WORK_EVENT_unrenewed:
        log_note(app, EVENT_LOST, n);
        return;
    case WORK_EVENT_release_failed:
        log_note(app, EVENT_RELEASE_FAILED, n);
        return;
    case WORK_EVENT_released:
        log_note(app, EVENT_RELEASED, n);
        return;
    case WORK_EVENT_trouble:
        log_note(app, EVENT_TROUBLE, n);
        return;
    default:
        return;
    }
}

void
il__ingest_report(void *cookie, const struct ingest_note *n)
{
    struct ingest_app *app = cookie;

    switch (n->type) {
    case INGEST_NOTE_WORK:
        report_work(app, n);
        return;
    case INGEST_NOTE_LOCKED:
        log_note(app, EVENT_LOCKED, n);
        return;
    case INGEST_NOTE_RELEASED:
        log_note(app, EVENT_RELEASED, n);
        return;
    case INGEST_NOTE_UNRELEASED:
        log_note(app, EVENT_RELEASE_FAILED, n);
        return;
    case INGEST_NOTE_SLOW:
        log_note(app, EVENT_SLOW, n);
        return;
    case INGEST_NOTE_ENDED:
        report_end(app, n);
        return;
    }
}

void
il__ingest_report_gauges(struct ingest_app *app)
{
    struct work_stats stats;

    work_stats(il__ingest_work(app->ingest), &stats);
    http_app_gauge(app->server, &ingest_http_app, METRIC_RUNNING, 0, (int64_t)stats.n_running);
    http_app_gauge(app->server, &ingest_http_app, METRIC_WAITING, 0, (int64_t)stats.n_waiting);
}
