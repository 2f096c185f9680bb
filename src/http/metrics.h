/*
 * metrics.h: what the server counts, and /metrics: the text format of Prometheus. The loop's alone.
 *
 * What is known only to the store (depths of queues, live locks, running runs) is gathered every few seconds and remembered: a scrape costs the
 * store nothing. Labels are bounded: a tenant, queue or pipeline beyond the first HTTP_LABELS_MAX is counted as "other".
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

/* Plain counters and gauges that the loop's files keep; http_count() adds, negative for gauges that fall. */
enum http_counter {
#define X(id, type, name, help) HTTP_COUNT_##id,
#include "http/metrics.def"
#undef X
    HTTP_COUNT_COUNT
};
void http_count(struct http_server *s, enum http_counter counter, int64_t n);

/* A request is over (r->route may be NULL: "none"). */
void http_metrics_request(struct http_request *r);
/* The ops of r->call are done: their log lines and metrics (waits, holds, conflicts per pipeline). Before `then` is called; also when the call failed as a whole. */
void http_metrics_ops(struct http_request *r);

/* GET /metrics, and its text. */
void http_metrics(struct http_request *r);
void http_metrics_print(struct http_server *s, struct il__buf *b);

#endif
