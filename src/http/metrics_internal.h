/*
 * metrics_internal.h: what the files of the server's metrics share.
 *
 *   metrics.c         counters, requests, pipelines
 *   metrics_print.c   the text of a scrape
 *   metrics_ops.c     what ops that are done tell: log lines of locks, waits, holds, conflicts
 *   metrics_held.c    leases that this server granted: how long they were held, which ran out
 *   metrics_gather.c  what only the store knows, gathered now and then
 */
#ifndef IL_HTTP_METRICS_INTERNAL_H
#define IL_HTTP_METRICS_INTERNAL_H

#include "base/heap.h"
#include "base/map.h"
#include "http/metrics.h"
#include "http/office.h"

/* ---- histograms ---------------------------------------------------------------------------------------------------------- */

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

/* ---- pipelines: locks whose key is pipeline:X ---------------------------------------------------------------------------- */

enum http_result {
    HTTP_RESULT_success,
    HTTP_RESULT_conflict,
    HTTP_RESULT_error,
    HTTP_RESULT_COUNT
};

struct http_pipeline {
    char                 *tenant, *name; /* "other": of all that are too many */
    uint64_t              acquisitions[HTTP_RESULT_COUNT];
    struct http_histogram wait, hold;
    uint64_t              expirations;
    /* As they were gathered last: */
    uint64_t n_locks, n_runs;
    double   age, timeout; /* of the lock that was renewed longest ago; timeout 0 = there is none */
};
/* The pipeline of a key, or NULL: it is none of a pipeline, or one that is not counted. Made when it is new; the shared one when nobody configured it, when there are too many, or no memory. */
struct http_pipeline *http_pipeline_of(struct http_metrics *m, const char *tenant, const char *key);
/* An attempt to get a lock has ended, after `wait` seconds. */
void http_attempted(struct http_metrics *m, const char *tenant, const char *key,
                    enum http_result result, double wait);
/* X of "pipeline:X"; NULL for other keys. */
const char *http_pipeline_name(const char *key);

/* ---- what was gathered --------------------------------------------------------------------------------------------------- */

struct http_queue_row {
    char     tenant[IL_TENANT_BYTES_MAX + 1], name[IL_QUEUE_BYTES_MAX + 1];
    uint64_t scheduled, ready, running, dead, n_workers, n_paused;
    uint64_t pushed, claimed, completed, failed, died, snoozed, cancelled, recovered, duplicates, stale;
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

struct http_gather; /* one that is under way */

struct http_held_check;
struct http_held {
    struct il__map          map;   /* by fence */
    struct il__heap         due;   /* by when they run out, as far as is known */
    struct http_held_check *check; /* under way, or NULL */
};

/* Cache lookups by how they were answered. */
enum http_look {
    HTTP_LOOK_hit,
    HTTP_LOOK_stale,
    HTTP_LOOK_lead,
    HTTP_LOOK_waited, /* for the build of somebody else, whatever came of it */
    HTTP_LOOK_miss,
    HTTP_LOOK_COUNT
};

struct http_metrics {
    struct http_server *server;
    int64_t             counts[HTTP_COUNT_COUNT];
    struct http_route_stats {
        uint64_t              classes[6]; /* 1xx .. 5xx at 1 .. 5 */
        struct http_histogram took;
    } * routes; /* one for each, and one more for requests without a route */
    uint64_t              acquisitions[HTTP_RESULT_COUNT];
    uint64_t              looks[HTTP_LOOK_COUNT];
    struct http_histogram wait, hold;
    struct il__map        pipelines;
    struct http_pipeline  other;
    bool                  other_used;
    http_known_fn        *known; /* NULL = whatever is seen */
    void                 *known_cookie;
    struct http_held      held;
    int64_t               started_ms; /* wall clock */

    struct http_gather  *gather;                     /* one that is under way, or NULL */
    struct http_gathered seen;                       /* by the last one */
    int64_t gathered_ns, gather_took_ns, scraped_ns; /* when the last one began or ended */
};

/* metrics_held.c */
void http_held_add(struct http_metrics *m, const char *tenant, const char *key, const char *holder,
                   const char *run, uint64_t fence, int64_t remaining_ms);
void http_held_renew(struct http_metrics *m, uint64_t fence, int64_t remaining_ms);
/* It was given back: how long it was held, or -1: this server did not grant it. */
int64_t http_held_end(struct http_metrics *m, uint64_t fence);
void    http_held_tick(struct http_metrics *m, int64_t now_ns);
void    http_held_release(struct http_held *h);

/* metrics_gather.c */
void http_gather_tick(struct http_metrics *m, int64_t now_ns);
void http_gather_close(struct http_metrics *m);

#endif
