/*
 * body_fields.h: request and response bodies of the routes, except for ops and stored objects
 * (wire.h): structs, and their tables for printing and /openapi.json.
 */
#ifndef IL_HTTP_BODY_FIELDS_H
#define IL_HTTP_BODY_FIELDS_H

#include "http/http.h"
#include "wire/why.h"

extern const struct wire_object http_in_why, http_in_batch, http_in_batch_ops, http_in_stream;

extern const struct wire_object http_out_root, http_out_health, http_out_ready, http_out_status,
    http_out_overview;
extern const struct wire_object http_out_grant, http_out_queued, http_out_released, http_out_break,
    http_out_noted, http_out_lock, http_out_fence;
extern const struct wire_object http_out_started, http_out_log, http_out_sign;
extern const struct wire_object http_out_pushed, http_out_claimed, http_out_beat, http_out_purged,
    http_out_removed;
extern const struct wire_object http_out_once;
extern const struct wire_object http_out_cached, http_out_filled, http_out_counted;
/* {"results":[…]}: written by hand, see batch.c and openapi.c */
extern const struct wire_object http_out_results;

/* Bits of `is` in the structs below. */
enum {
    HTTP_IS_TRUE     = 1 << 0, /* the call did what it was asked to do */
    HTTP_IS_RENEWED  = 1 << 1, /* nothing new: the caller already had it */
    HTTP_IS_CANCEL   = 1 << 2, /* the work should stop: `reason` says why */
    HTTP_IS_CLOSING  = 1 << 3, /* the key stays closed until its holder releases it */
    HTTP_IS_SKIPPED  = 1 << 4,
    HTTP_IS_PAUSED   = 1 << 5,
    HTTP_IS_LIMITED  = 1 << 6,
    HTTP_IS_MORE     = 1 << 7,
    HTTP_IS_STALE    = 1 << 8,
    HTTP_IS_LEAD     = 1 << 9,
    HTTP_IS_WAIT     = 1 << 10,
    HTTP_IS_NEGATIVE = 1 << 11,
    HTTP_IS_EARLY    = 1 << 12,
    HTTP_IS_END      = 1 << 13,
};

struct http_why {
    const char *key;
};
struct http_batch_in {
    uint32_t raw;
    int64_t  wait_ms;
};
extern const char *const http_event_types[]; /* and NULL; stream.c */
struct http_stream_in {
    uint32_t    types; /* 1 << index of http_event_types; 0 = all */
    const char *prefix;
};

/* The state of a lease: granted, renewed, queued, released, broken, checked. */
struct http_grant {
    const char *status, *key, *holder, *warning, *reason;
    uint64_t    fence, ticket;
    int64_t     expires_at_ms, ttl_ms, remaining_ms;
    uint32_t    position, is;
};

struct http_lock {
    const char          *key;
    uint64_t             fence;
    const il_lease_info *leases;
    size_t               n_leases;
};

struct http_started {
    const char *id, *key, *holder, *warning, *reason;
    int32_t     state;
    uint32_t    position, is;
    uint64_t    fence;
    int64_t     expires_at_ms, ttl_ms;
    il_run_info run;
};

struct http_log_part {
    const char *id;
    int32_t     state;
    uint32_t    is;
    uint64_t    offset, next_offset;
    const void *text;
    size_t      text_bytes;
};

/* A progress report of a run, or a heartbeat of a job. */
struct http_sign {
    const char *id, *reason;
    int32_t     state;
    uint32_t    is;
    uint64_t    token, log_bytes;
    int64_t     expires_at_ms, remaining_ms;
};

struct http_pushed {
    const char *id, *queue;
    int32_t     state;
    uint32_t    is;
    int64_t     run_at_ms;
};

struct http_claimed {
    const il_job_info *items;
    size_t             n_items;
    uint32_t           is;
    int64_t            retry_after_ms;
    const char        *worker;
};

struct http_number {
    const char *name;
    uint64_t    number;
    uint32_t    is;
};

struct http_counted {
    il_cache_info cache;
    const char   *next;
};

struct http_cached {
    const char *key, *holder;
    uint32_t    is;
    uint64_t    token;
    const void *value;
    size_t      value_bytes;
    int32_t     code;
    int64_t     age_ms, remaining_ms;
};

/* A count that ends at a limit: HTTP_IS_MORE. */
struct http_few {
    uint64_t n;
    uint32_t is;
};
/* A lease, or that of a run, which was not renewed as it should have been. */
struct http_expiring {
    const char *key, *holder, *run;
    int64_t     ttl_ms, remaining_ms;
};
struct http_overview {
    struct http_few       locks, expiring, waiters, runs, queues;
    struct http_few       scheduled, ready, running, failed; /* jobs */
    struct http_expiring *leases_expiring, *runs_expiring;
    size_t                n_leases_expiring, n_runs_expiring;
};

/* An idempotency key. */
struct http_once_shown {
    const char *key, *status, *meta;
    const void *response;
    size_t      response_bytes;
    int32_t     code;
    int64_t     age_ms, remaining_ms;
};

struct http_status {
    const char   *name, *version, *engine, *tenant;
    const char   *store, *data; /* "ok", or the reason */
    int64_t       uptime_ms, now_ms;
    uint64_t      connections, requests, waiters, streams;
    il_queue_info sums; /* of the tenant's queues: only the counts */
    uint64_t      n_queues;
    uint32_t      is;
};

#endif
