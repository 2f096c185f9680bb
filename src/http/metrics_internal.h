/*
 * metrics_internal.h: shared by the files of the server's metrics.
 *
 *   metrics.c         counters, requests, pipelines
 *   metrics_print.c   the text of a scrape
 *   metrics_ops.c     what applied ops report: log lines of locks, waits, holds, conflicts
 *   app_metrics.c     metrics that apps declare
 *   metrics_gather.c  what only the store knows, gathered periodically
 */
#ifndef IL_HTTP_METRICS_INTERNAL_H
#define IL_HTTP_METRICS_INTERNAL_H

#include <stdatomic.h>

#include "base/heap.h"
#include "base/map.h"
#include "http/app.h"
#include "http/errands.h"
#include "http/metrics.h"

/* ---- histograms ------------------------------------------------------------------------------ */

#define HTTP_BOUNDS 14

extern const double http_took_bounds[HTTP_BOUNDS]; /* requests, in seconds */
extern const double http_lock_bounds[HTTP_BOUNDS]; /* waits and holds, in seconds */

struct http_histogram {
    uint64_t counts[HTTP_BOUNDS + 1]; /* the last one: beyond all bounds */
    double   sum;
};
static inline void
http_histogram_add(struct http_histogram *h, const double bounds[HTTP_BOUNDS], double value)
{
    size_t i = 0;

    while (i < HTTP_BOUNDS && value > bounds[i])
        i++;
    h->counts[i]++;
    h->sum += value;
}

/* ---- pipelines: locks whose key is pipeline:X ------------------------------------------------ */

enum http_result {
    HTTP_RESULT_success,
    HTTP_RESULT_conflict,
    HTTP_RESULT_error,
    HTTP_RESULT_COUNT
};

struct http_pipeline {
    char                 *tenant, *name; /* "other": everything beyond the limit */
    uint64_t              acquisitions[HTTP_RESULT_COUNT];
    struct http_histogram wait, hold;
    uint64_t              expirations;
    /* As last gathered: */
    uint64_t n_locks, n_runs;
    double   age, timeout; /* of the lock nearest to its timeout; timeout 0 = none */
};
/*
 * The pipeline of a key; NULL: not a pipeline's key, or one that is not counted. Created on first
 * use. The shared one if the pipeline is not configured, there are too many, or memory is short.
 */
struct http_pipeline *http_pipeline_of(struct http_metrics *m, const char *tenant, const char *key);
/* An attempt to get a lock has ended, after `wait` seconds. */
void http_metrics_lock_attempt(struct http_metrics *m, const char *tenant, const char *key,
                               enum http_result result, double wait);

/* ---- gathered values ------------------------------------------------------------------------- */

struct http_queue_row {
    char     tenant[IL_TENANT_BYTES_MAX + 1], name[IL_QUEUE_BYTES_MAX + 1];
    uint64_t scheduled, ready, running, n_failed, n_workers, n_paused;
    uint64_t pushed, claimed, completed, failed_attempts, failed, snoozed, cancelled, recovered,
        duplicates, stale;
    int64_t oldest_ms;
};
struct http_tenant_row {
    char     tenant[IL_TENANT_BYTES_MAX + 1];
    uint64_t n_locks, n_waiters;
};
struct http_guard_row {
    char     tenant[IL_TENANT_BYTES_MAX + 1], table[256];
    uint64_t n_refused;
};
struct http_pipeline_row {
    char    *tenant, *key; /* in mem */
    uint64_t n_locks, n_runs;
    double   age, timeout;
};
struct http_gathered {
    struct http_queue_row    *queues;
    struct http_tenant_row   *tenants;
    struct http_guard_row    *guards;
    struct http_pipeline_row *pipelines;
    size_t                    n_queues, n_tenants, n_guards, n_pipelines;
    uint64_t                  n_fds;
    bool                      store_up, data_up;
};

struct http_gather; /* a round in progress */

/* Cache lookups by how they were answered. */
enum http_look {
    HTTP_LOOK_hit,
    HTTP_LOOK_stale,
    HTTP_LOOK_lead,
    HTTP_LOOK_waited, /* waited for another caller's build, whatever the outcome */
    HTTP_LOOK_miss,
    HTTP_LOOK_COUNT
};

/* The values of an app's metrics: one cell per label value, those of one metric together. */
struct http_app_cell {
    atomic_int_fast64_t  value;                   /* of a histogram: the sum, in ns */
    atomic_uint_fast64_t counts[HTTP_BOUNDS + 1]; /* of a histogram */
};

struct http_metrics {
    struct http_server *server;
    /* One array per app. The pointers are set before an app is opened and freed after it was
     * closed, the cells are atomic: so the threads of apps need no lock. */
    struct http_app_cell *cells[HTTP_APPS_MAX];
    int64_t               counts[HTTP_COUNT_COUNT];
    struct http_route_stats {
        uint64_t              classes[6]; /* 1xx .. 5xx at 1 .. 5 */
        struct http_histogram took;
    } * routes; /* one per route, and one for requests without a route */
    uint64_t              acquisitions[HTTP_RESULT_COUNT];
    uint64_t              looks[HTTP_LOOK_COUNT];
    struct http_histogram wait, hold;
    struct il__map        pipelines;
    struct http_pipeline  other;
    bool                  other_used;
    http_known_fn        *known; /* NULL = any pipeline seen */
    void                 *known_cookie;
    int64_t               started_ms; /* wall clock */

    struct http_gather  *gather;                     /* in progress, or NULL */
    struct http_gathered seen;                       /* by the last round */
    int64_t gathered_ns, gather_took_ns, scraped_ns; /* when the last round began or ended */
};

/* app_metrics.c */
il_status http_app_metrics_open(struct http_metrics *m, il_error *reterr) MUST_USE;
void      http_app_metrics_close(struct http_metrics *m);

/* metrics_gather.c */
void http_gather_close(struct http_metrics *m);

#endif
