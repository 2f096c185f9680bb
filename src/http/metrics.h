/*
 * metrics.h: the server's counters, and /metrics in the text format of Prometheus. Used on the loop
 * only.
 *
 * Values that only the store knows (queue depths, live locks, running runs) are gathered every few
 * seconds and cached, so a scrape costs the store nothing. Labels are bounded: a tenant, queue or
 * pipeline beyond the first HTTP_LABELS_MAX is counted as "other".
 */
#ifndef IL_HTTP_METRICS_H
#define IL_HTTP_METRICS_H

#include "http/http.h"

#define HTTP_LABELS_MAX 1000   /* (tenant, queue) series of one kind */
#define HTTP_PIPELINES_MAX 200 /* (tenant, pipeline) pairs with series of their own */

struct http_metrics;

il_status http_metrics_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_metrics_close(struct http_server *s);
void      http_metrics_tick(struct http_server *s, int64_t now_ns); /* about four times a second */

/* Plain counters and gauges kept by the loop's files; http_count() adds, with negative values
 * for gauges. */
enum http_counter {
#define X(id, type, name, help) HTTP_COUNT_##id,
#include "http/metrics.def"
#undef X
    HTTP_COUNT_COUNT
};
void http_count(struct http_server *s, enum http_counter counter, int64_t n);

/* A request has ended (r->route may be NULL: "none"). */
void http_metrics_request(struct http_request *r);
/* The ops of r->call are done: write their log lines and update metrics (waits, holds, conflicts
 * per pipeline). Called before `then`; also when the call failed as a whole. */
void http_metrics_ops(struct http_request *r);

/* Which pipelines get series of their own: the configured ones. Without such a function (a
 * server without pipelines), the first HTTP_PIPELINES_MAX that are seen. */
enum http_known {
    HTTP_KNOWN_NOT,      /* "other" */
    HTTP_KNOWN,          /* its own */
    HTTP_KNOWN_NOT_MADE, /* count nothing: lock_metrics_enabled is off */
};
/* *ret_timeout_ms: how long a run of it is expected to hold its lock; may be NULL. */
typedef enum http_known http_known_fn(void *cookie, const char *tenant, const char *pipeline,
                                      int64_t *ret_timeout_ms);
void http_metrics_pipelines(struct http_server *s, http_known_fn *fn, void *cookie);

/* The outcome for a pipeline lock that an app handled itself, without a request. */
enum http_lock_seen {
    HTTP_LOCK_ACQUIRED,
    HTTP_LOCK_CONFLICT,
    HTTP_LOCK_FAILED,
    HTTP_LOCK_RELEASED,
    HTTP_LOCK_EXPIRED,
    HTTP_LOCK_BROKEN,
};
/* On the loop, at any time. ms: -1 = does not apply. */
void http_metrics_lock(struct http_server *s, enum http_lock_seen what, const char *tenant,
                       const char *key, int64_t wait_ms, int64_t hold_ms);

/* X of "pipeline:X"; NULL for other keys. */
const char *http_pipeline_name(const char *key);

/* GET /metrics */
void http_metrics(struct http_request *r);

#endif
