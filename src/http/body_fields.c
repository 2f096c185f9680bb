/*
 * body_fields.c: JSON tables of the request and response bodies that body_fields.h declares.
 */
#include "http/body_fields.h"

#include "http/samples.h"

#define FIELD(type, name_, kind_, flags_, help_)                                                \
    {                                                                                           \
        .name = #name_, .kind = WIRE_##kind_, .flags = flags_, .offset = offsetof(type, name_), \
        .help = help_                                                                           \
    }
#define NAMED(type, text, member, kind_, flags_, help_)                                        \
    {                                                                                          \
        .name = text, .kind = WIRE_##kind_, .flags = flags_, .offset = offsetof(type, member), \
        .help = help_                                                                          \
    }
#define IS(type, text, bit_, flags_, help_)                                             \
    {                                                                                   \
        .name = text, .kind = WIRE_BOOL, .flags = flags_, .offset = offsetof(type, is), \
        .bit = HTTP_IS_##bit_, .help = help_                                            \
    }
#define OBJECT(id, schema, struct_, fields_, help_)                 \
    const struct wire_object id = { .name     = schema,             \
                                    .fields   = fields_,            \
                                    .n_fields = ARRAY_LEN(fields_), \
                                    .help     = help_,              \
                                    .bytes    = sizeof(struct_),    \
                                    .flags    = WIRE_ANSWER }
#define INPUT(id, schema, struct_, fields_, help_)                  \
    const struct wire_object id = { .name     = schema,             \
                                    .fields   = fields_,            \
                                    .n_fields = ARRAY_LEN(fields_), \
                                    .help     = help_,              \
                                    .bytes    = sizeof(struct_) }

/* In the order of the enums, from `min` on. */
static const char *const run_states[]  = { "PENDING",   "RUNNING", "COMPLETED",   "FAILED",
                                           "CANCELLED", "TIMEOUT", "INTERRUPTED", NULL };
static const char *const job_states[]  = { "SCHEDULED", "READY",     "RUNNING", "COMPLETED",
                                           "FAILED",    "CANCELLED", NULL };
static const char *const event_types[] = { "lock", "run", "queue", "job", "cache", NULL };
_Static_assert(ARRAY_LEN(run_states) == IL_RUN_STATE_COUNT,
               "one name for each state but NONE, and NULL");
_Static_assert(ARRAY_LEN(job_states) == IL_JOB_STATE_COUNT,
               "one name for each state but NONE, and NULL");

#define STATE(type, choices_, help_)                                                     \
    {                                                                                    \
        .name = "state", .kind = WIRE_CHOICE, .offset = offsetof(type, state), .min = 1, \
        .choices = choices_, .help = help_                                               \
    }

/* ---- inputs ---------------------------------------------------------------------------------- */

static const struct wire_field why_in[] = {
    { .name   = "key",
      .kind   = WIRE_TEXT,
      .flags  = WIRE_REQUIRED,
      .offset = offsetof(struct http_why, key),
      .min    = 1,
      .max    = IL_KEY_BYTES_MAX,
      .help   = "the key" },
};
INPUT(http_in_why, "WhyQuery", struct http_why, why_in, "The key to explain");

static const struct wire_field batch_in[] = {
    { .name   = "raw",
      .kind   = WIRE_BOOL,
      .offset = offsetof(struct http_batch_in, raw),
      .bit    = 1,
      .help   = "return payloads, results, values and meta as strings, exactly as stored, never as "
                "JSON" },
    { .name   = "wait_ms",
      .kind   = WIRE_WAIT,
      .offset = offsetof(struct http_batch_in, wait_ms),
      .min    = 0,
      .max    = IL_DELAY_MS_MAX,
      .help   = "with exactly one op that can wait: hold the request open this long, at "
                "most 60 s" },
};
INPUT(http_in_batch, "Batch", struct http_batch_in, batch_in, "Ops to apply in order");
static const struct wire_field batch_ops[] = {
    { .name = "ops", .kind = WIRE_TEXT, .help = "the ops" }
};
INPUT(http_in_batch_ops, "BatchOps", struct http_batch_in, batch_ops,
      "The ops; the fields of each depend on its type");

static const struct wire_field stream_in[] = {
    { .name    = "types",
      .kind    = WIRE_SET,
      .offset  = offsetof(struct http_stream_in, types),
      .choices = event_types,
      .help    = "only events of these types" },
    { .name   = "prefix",
      .kind   = WIRE_TEXT,
      .offset = offsetof(struct http_stream_in, prefix),
      .min    = 0,
      .max    = IL_KEY_BYTES_MAX,
      .help   = "only keys, queues, ... that start with this" },
};
INPUT(http_in_stream, "StreamQuery", struct http_stream_in, stream_in, "The events to send");

/* ---- the server ------------------------------------------------------------------------------ */

#define S struct http_status
static const struct wire_field root[] = {
    FIELD(S, name, TEXT, 0, "interlock"),
    FIELD(S, version, TEXT, 0, "version of the server"),
};
OBJECT(http_out_root, "Root", S, root, "Name and version");

static const struct wire_field health[] = {
    NAMED(S, "status", store, TEXT, 0, "ok"),
};
OBJECT(http_out_health, "Health", S, health, "The process is alive");

static const struct wire_field ready[] = {
    IS(S, "ready", TRUE, 0, "whether the server is ready"),
    FIELD(S, store, TEXT, 0, "ok"),
    FIELD(S, data, TEXT, 0, "ok"),
};
OBJECT(http_out_ready, "Ready", S, ready, "Store and data store are reachable");

static const struct wire_field sums[] = {
    NAMED(il_queue_info, "scheduled", n_scheduled, UINT64, WIRE_NOT_NULL, "jobs not due yet"),
    NAMED(il_queue_info, "ready", n_ready, UINT64, WIRE_NOT_NULL, "jobs due now"),
    NAMED(il_queue_info, "running", n_running, UINT64, WIRE_NOT_NULL, "jobs claimed by workers"),
    NAMED(il_queue_info, "failed", n_failed, UINT64, WIRE_NOT_NULL, "jobs that failed for good"),
    NAMED(il_queue_info, "workers", n_workers, UINT32, WIRE_NOT_NULL,
          "workers that claimed within the last minute"),
    NAMED(il_queue_info, "oldest_ms", oldest_ms, INT64, WIRE_NOT_NULL,
          "how long the oldest ready job has been due"),
};
static OBJECT(queue_sums, "QueueSums", il_queue_info, sums, "Jobs in all queues of the tenant");

static const struct wire_field status[] = {
    FIELD(S, name, TEXT, 0, "interlock"),
    FIELD(S, version, TEXT, 0, "version of the server"),
    FIELD(S, engine, TEXT, 0, "memory, sqlite, postgres or redis"),
    FIELD(S, tenant, TEXT, 0, "tenant of the caller"),
    NAMED(S, "now", now_ms, TIME, 0, "time by the server's clock"),
    FIELD(S, uptime_ms, INT64, WIRE_NOT_NULL, "uptime of the server"),
    IS(S, "ready", TRUE, 0, "as reported by /ready"),
    FIELD(S, store, TEXT, 0, "ok, or what is wrong"),
    FIELD(S, data, TEXT, 0, "ok, or what is wrong"),
    FIELD(S, connections, UINT64, WIRE_NOT_NULL, "open connections"),
    FIELD(S, requests, UINT64, WIRE_NOT_NULL, "requests in progress"),
    FIELD(S, waiters, UINT64, WIRE_NOT_NULL, "waiting requests"),
    FIELD(S, streams, UINT64, WIRE_NOT_NULL, "open event streams"),
    NAMED(S, "queues", n_queues, UINT64, WIRE_NOT_NULL,
          "queues of the tenant, counted up to 1,000"),
    { .name   = "jobs",
      .kind   = WIRE_OBJECT,
      .offset = offsetof(S, sums),
      .object = &queue_sums,
      .help   = "jobs in these queues" },
};
OBJECT(http_out_status, "Status", S, status, "The server and the tenant at a glance");
#undef S

static const struct wire_field few[] = {
    FIELD(struct http_few, n, UINT64, WIRE_NOT_NULL, "the number, at most 1,000"),
    IS(struct http_few, "more", MORE, 0, "true if counting stopped at n"),
};
static OBJECT(few_object, "Count", struct http_few, few, "A count up to 1,000");

#define N struct http_expiring
static const struct wire_field expiring[] = {
    FIELD(N, key, TEXT, 0, "the key"),
    FIELD(N, holder, TEXT, 0, "who holds it"),
    NAMED(N, "run_id", run, TEXT, 0, "the run that holds it; null: a plain lease"),
    FIELD(N, ttl_ms, INT64, WIRE_NOT_NULL, "the lease expires this long after a renewal"),
    FIELD(N, remaining_ms, INT64, WIRE_NOT_NULL, "time until expiry"),
};
static OBJECT(expiring_object, "ExpiringLease", N, expiring, "A lease with little time left");
#undef N

#define FEW(text, member, help_)                                                             \
    {                                                                                        \
        .name = text, .kind = WIRE_OBJECT, .offset = offsetof(struct http_overview, member), \
        .object = &few_object, .help = help_                                                 \
    }
#define EXPIRING(member, help_)                                                                  \
    {                                                                                            \
        .name = #member, .kind = WIRE_OBJECTS, .offset = offsetof(struct http_overview, member), \
        .offset2 = offsetof(struct http_overview, n_##member), .object = &expiring_object,       \
        .help = help_                                                                            \
    }
static const struct wire_field overview[] = {
    FEW("locks", locks, "live leases"),
    FEW("locks_expiring", expiring, "locks with less than a fifth of their TTL left"),
    FEW("waiters", waiters, "acquires queued for a key"),
    FEW("runs", runs, "runs that are RUNNING"),
    FEW("queues", queues, "queues"),
    FEW("jobs_scheduled", scheduled, "jobs not due yet"),
    FEW("jobs_ready", ready, "jobs due now"),
    FEW("jobs_running", running, "jobs claimed by workers"),
    FEW("jobs_failed", failed, "jobs that failed for good"),
    EXPIRING(leases_expiring, "the first of the leases that locks_expiring counts, at most 20"),
    EXPIRING(runs_expiring, "the first 20 runs whose lease has less than a fifth of its TTL left"),
};
OBJECT(http_out_overview, "Overview", struct http_overview, overview,
       "Counts of the tenant's objects, within the API key's prefix");

#define S struct http_sample
static const struct wire_field sample[] = {
    FIELD(S, at_ms, INT64, WIRE_NOT_NULL, "when it was taken, in ms since 1970"),
    FIELD(S, locks, UINT64, WIRE_NOT_NULL, "live leases, counted up to 1,000"),
    FIELD(S, runs, UINT64, WIRE_NOT_NULL, "runs that are RUNNING, counted up to 1,000"),
    FIELD(S, jobs_ready, UINT64, WIRE_NOT_NULL, "jobs due"),
    FIELD(S, jobs_running, UINT64, WIRE_NOT_NULL, "jobs claimed by workers"),
    FIELD(S, jobs_failed, UINT64, WIRE_NOT_NULL, "jobs that failed for good"),
    FIELD(S, acquires, UINT64, WIRE_NOT_NULL,
          "locks acquired through this server since the previous sample"),
    FIELD(S, conflicts, UINT64, WIRE_NOT_NULL,
          "acquires that found their key held, since the previous sample"),
    FIELD(S, cache_hits, UINT64, WIRE_NOT_NULL,
          "cache lookups that found a value, since the previous sample"),
    FIELD(S, cache_misses, UINT64, WIRE_NOT_NULL,
          "cache lookups that found none, since the previous sample"),
    FIELD(S, requests, UINT64, WIRE_NOT_NULL, "requests of the tenant, since the previous sample"),
};
static OBJECT(sample_object, "Sample", S, sample, "A sample of a tenant's counts");
#undef S

static const struct wire_field samples[] = {
    FIELD(struct http_samples_shown, interval_ms, INT64, WIRE_NOT_NULL,
          "time between samples; longer while the store is slow or unreachable"),
    { .name    = "samples",
      .kind    = WIRE_OBJECTS,
      .offset  = offsetof(struct http_samples_shown, samples),
      .offset2 = offsetof(struct http_samples_shown, n),
      .object  = &sample_object,
      .help    = "at most 360, oldest first" },
};
OBJECT(http_out_samples, "Samples", struct http_samples_shown, samples,
       "The last hour of a tenant, as this server saw it");

/* ---- locks ----------------------------------------------------------------------------------- */

#define G struct http_grant
static const struct wire_field grant[] = {
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "the holder; generated by the server if none was given"),
    FIELD(G, fence, UINT64, WIRE_NOT_NULL, "fencing token: grows with each grant of the key"),
    NAMED(G, "expires_at", expires_at_ms, TIME, 0, "when the lease expires unless it is renewed"),
    FIELD(G, ttl_ms, INT64, WIRE_NOT_NULL, "the lease expires this long after a renewal"),
    FIELD(G, remaining_ms, INT64, WIRE_NOT_NULL, "time until expiry"),
    IS(G, "renewed", RENEWED, 0, "this holder already had the lease"),
    IS(G, "cancel", CANCEL, 0, "the work under the lease should stop"),
    FIELD(G, reason, TEXT, WIRE_HIDE, "why it should stop"),
    FIELD(G, warning, TEXT, WIRE_HIDE, "set if the acquire violates the learned lock order"),
};
OBJECT(http_out_grant, "Grant", G, grant, "A lease held by the caller");

static const struct wire_field queued[] = {
    FIELD(G, status, TEXT, 0, "QUEUED"),
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "the waiter; repeat the call with this holder within 15 s"),
    FIELD(G, ticket, UINT64, WIRE_NOT_NULL, "ticket in the queue"),
    FIELD(G, position, UINT32, WIRE_NOT_NULL, "1 = next"),
    FIELD(G, remaining_ms, INT64, WIRE_MINUS, "time until the wait ends; null: no end"),
    FIELD(G, warning, TEXT, WIRE_HIDE, "set if the acquire violates the learned lock order"),
};
OBJECT(http_out_queued, "Queued", G, queued,
       "The caller is queued for a key and must repeat the call");

static const struct wire_field released[] = {
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "the previous holder"),
    IS(G, "released", TRUE, 0, "true"),
};
OBJECT(http_out_released, "Released", G, released, "The lease was released");

static const struct wire_field broken[] = {
    IS(G, "broken", TRUE, 0, "true"),
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "holder of the broken lease"),
    FIELD(G, fence, UINT64, WIRE_NOT_NULL, "fence of the broken lease"),
    IS(G, "closing", CLOSING, 0,
       "the key stays closed until the holder releases it or its lease expires"),
};
OBJECT(http_out_break, "Broken", G, broken, "The lease was broken");

static const struct wire_field fence[] = {
    IS(G, "valid", TRUE, 0, "true"),
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, fence, UINT64, WIRE_NOT_NULL, "the current fence"),
};
OBJECT(http_out_fence, "Fence", G, fence, "The fence is the current one of its key");

static const struct wire_field noted[] = {
    FIELD(G, key, TEXT, 0, "the key"),
    IS(G, "noted", TRUE, 0, "true"),
};
OBJECT(http_out_noted, "Noted", G, noted, "The refusals were added to the key's history");
#undef G

static const struct wire_field lock[] = {
    FIELD(struct http_lock, key, TEXT, 0, "the key"),
    FIELD(struct http_lock, fence, UINT64, WIRE_NOT_NULL, "newest fence among its leases"),
    { .name    = "leases",
      .kind    = WIRE_OBJECTS,
      .offset  = offsetof(struct http_lock, leases),
      .offset2 = offsetof(struct http_lock, n_leases),
      .object  = &il__wire_lease,
      .help    = "the leases" },
};
OBJECT(http_out_lock, "Lock", struct http_lock, lock, "A key that is held");

/* ---- runs ------------------------------------------------------------------------------------ */

#define T struct http_started
static const struct wire_field started[] = {
    FIELD(T, id, TEXT, 0, "id of the run; generated by the server if none was given"),
    IS(T, "duplicate", TRUE, 0, "this run already existed"),
    IS(T, "skipped", SKIPPED, 0, "on_conflict skip: nothing was started"),
    IS(T, "renewed", RENEWED, 0, "this start is a repeat"),
    STATE(T, run_states,
          "RUNNING: proceed; PENDING: queued, repeat the call with the same id and holder within "
          "15 s (not needed for a slot)"),
    FIELD(T, key, TEXT, 0, "the key"),
    FIELD(T, holder, TEXT, 0, "holder that executes the run"),
    FIELD(T, fence, UINT64, 0, "fence of its lease; null until it runs"),
    NAMED(T, "expires_at", expires_at_ms, TIME, 0,
          "when its lease expires unless it is renewed (/locks/renew)"),
    FIELD(T, ttl_ms, INT64, WIRE_NOT_NULL, "TTL of its lease"),
    FIELD(T, position, UINT32, WIRE_NOT_NULL, "PENDING: position in the queue, 1 = next"),
    IS(T, "cancel", CANCEL, 0, "the run should stop"),
    FIELD(T, reason, TEXT, WIRE_HIDE, "why it should stop"),
    FIELD(T, warning, TEXT, WIRE_HIDE, "set if the acquire violates the learned lock order"),
    { .name   = "run",
      .kind   = WIRE_OBJECT,
      .offset = offsetof(T, run),
      .object = &il__wire_run,
      .help   = "the run" },
};
OBJECT(http_out_started, "Started", T, started, "The run that was started, or the existing one");
#undef T

static const struct wire_field log_part[] = {
    FIELD(struct http_log_part, id, TEXT, 0, "id of the run"),
    STATE(struct http_log_part, run_states, "state of the run"),
    FIELD(struct http_log_part, offset, UINT64, WIRE_NOT_NULL,
          "offset of the first byte of text; higher than requested if that part was discarded"),
    FIELD(struct http_log_part, next_offset, UINT64, WIRE_NOT_NULL, "offset to continue from"),
    { .name    = "text",
      .kind    = WIRE_BYTES,
      .flags   = WIRE_NOT_NULL,
      .offset  = offsetof(struct http_log_part, text),
      .offset2 = offsetof(struct http_log_part, text_bytes),
      .max     = IL_LOG_BYTES_MAX,
      .help    = "text of the log, at most 64 KiB" },
    IS(struct http_log_part, "end", END, 0, "the run has ended and this is the last part"),
};
OBJECT(http_out_log, "Log", struct http_log_part, log_part, "A part of a run's log");

#define N struct http_sign
static const struct wire_field sign[] = {
    FIELD(N, id, TEXT, 0, "id of the run"),
    STATE(N, run_states, "state of the run"),
    IS(N, "cancel", CANCEL, 0, "the run should stop"),
    FIELD(N, reason, TEXT, WIRE_HIDE, "why it should stop"),
    FIELD(N, log_bytes, UINT64, WIRE_NOT_NULL, "bytes written to the log so far"),
};
OBJECT(http_out_sign, "RunSign", N, sign, "The report of a run was stored");

/* ---- queues ---------------------------------------------------------------------------------- */

static const struct wire_field beat[] = {
    FIELD(N, id, TEXT, 0, "id of the job"),
    STATE(N, job_states, "state of the job"),
    FIELD(N, token, UINT64, WIRE_NOT_NULL, "token of the attempt"),
    NAMED(N, "expires_at", expires_at_ms, TIME, 0,
          "when the claim expires unless a heartbeat renews it"),
    FIELD(N, remaining_ms, INT64, WIRE_NOT_NULL, "time until the claim expires"),
    IS(N, "cancel", CANCEL, 0, "the job should stop"),
    FIELD(N, reason, TEXT, WIRE_HIDE, "why it should stop"),
};
OBJECT(http_out_beat, "Beat", N, beat, "The claim was extended");
#undef N

static const struct wire_field pushed[] = {
    FIELD(struct http_pushed, id, TEXT, 0, "id of the job"),
    IS(struct http_pushed, "duplicate", TRUE, 0,
       "the unique key is taken; this is the existing job"),
    FIELD(struct http_pushed, queue, TEXT, 0, "its queue"),
    STATE(struct http_pushed, job_states, "READY, or SCHEDULED until run_at"),
    NAMED(struct http_pushed, "run_at", run_at_ms, TIME, 0, "when it is due"),
};
OBJECT(http_out_pushed, "Pushed", struct http_pushed, pushed, "The new job, or the existing one");

static const struct wire_field claimed[] = {
    { .name    = "items",
      .kind    = WIRE_OBJECTS,
      .offset  = offsetof(struct http_claimed, items),
      .offset2 = offsetof(struct http_claimed, n_items),
      .object  = &il__wire_job,
      .help    = "the claimed jobs, each with the token of its attempt" },
    FIELD(struct http_claimed, worker, TEXT, 0,
          "the worker; generated by the server if none was given"),
    IS(struct http_claimed, "paused", PAUSED, 0, "the queue is paused"),
    IS(struct http_claimed, "limited", LIMITED, 0, "a rate or group limit holds jobs back"),
    FIELD(struct http_claimed, retry_after_ms, INT64, WIRE_MINUS,
          "if items is empty: time until a job may be due; null if unknown"),
};
OBJECT(http_out_claimed, "Claimed", struct http_claimed, claimed, "Claimed jobs");

static const struct wire_field purged[] = {
    NAMED(struct http_number, "purged", number, UINT64, WIRE_NOT_NULL, "number of deleted jobs"),
    IS(struct http_number, "more", MORE, 0, "the limit was reached: repeat the call"),
};
OBJECT(http_out_purged, "Purged", struct http_number, purged, "Jobs were deleted");

static const struct wire_field removed[] = {
    FIELD(struct http_number, name, TEXT, 0, "name of the schedule"),
    IS(struct http_number, "removed", TRUE, 0, "true"),
};
OBJECT(http_out_removed, "Removed", struct http_number, removed, "The schedule was removed");

/* ---- cache ----------------------------------------------------------------------------------- */

#define C struct http_cached
static const struct wire_field cached[] = {
    FIELD(C, key, TEXT, 0, "the key"),
    IS(C, "hit", TRUE, 0, "a usable value was found"),
    IS(C, "stale", STALE, 0, "the value is stale"),
    IS(C, "lead", LEAD, 0,
       "the caller must build the value, then call fill or abandon with token and holder"),
    IS(C, "wait", WAIT, 0,
       "another caller is building the value and the wait timed out: repeat the call with this "
       "token"),
    FIELD(C, token, UINT64, 0,
          "lead: token of the caller's build; wait: token of the build in progress"),
    FIELD(C, holder, TEXT, 0, "lead: the builder; generated by the server if none was given"),
    { .name    = "value",
      .kind    = WIRE_BYTES,
      .offset  = offsetof(C, value),
      .offset2 = offsetof(C, value_bytes),
      .max     = IL_BLOB_BYTES_MAX,
      .help    = "the value; null if none is usable" },
    FIELD(C, age_ms, INT64, WIRE_NOT_NULL, "age of the value, since its build started"),
    FIELD(C, remaining_ms, INT64, WIRE_MINUS,
          "hit: time the value stays fresh (stale: usable); lead, wait: time left for the build"),
    IS(C, "negative", NEGATIVE, 0, "a negative entry: no value exists"),
    FIELD(C, code, INT32, WIRE_NOT_NULL, "code of a negative entry"),
    IS(C, "early", EARLY, 0,
       "fresh but due for refresh; with get: a lookup would make the caller the builder"),
};
OBJECT(http_out_cached, "Cached", C, cached, "A cached value, or the request to build it");

static const struct wire_field filled[] = {
    FIELD(C, key, TEXT, 0, "the key"),
    IS(C, "ok", TRUE, 0, "true"),
};
OBJECT(http_out_filled, "Filled", C, filled, "The call succeeded");
#undef C

#define C struct http_counted
static const struct wire_field counted[] = {
    NAMED(C, "entries", cache.n_entries, UINT64, WIRE_NOT_NULL, "usable values"),
    NAMED(C, "bytes", cache.n_bytes, UINT64, WIRE_NOT_NULL, "total size of the values"),
    NAMED(C, "fresh", cache.n_fresh, UINT64, WIRE_NOT_NULL, "fresh values"),
    NAMED(C, "stale", cache.n_stale, UINT64, WIRE_NOT_NULL, "stale values"),
    NAMED(C, "negative", cache.n_negative, UINT64, WIRE_NOT_NULL, "negative entries"),
    NAMED(C, "building", cache.n_building, UINT64, WIRE_NOT_NULL, "values being built"),
    FIELD(C, next, TEXT, 0,
          "cursor of the next page of keys; null on the last page. Add up the pages"),
};
OBJECT(http_out_counted, "CacheCount", C, counted, "Counts of cached values for one page of keys");
#undef C

/* ---- idempotency keys ------------------------------------------------------------------------ */

#define O struct http_once_shown
static const struct wire_field once_shown[] = {
    FIELD(O, key, TEXT, 0, "the key"),
    FIELD(O, status, TEXT, 0, "IN_PROGRESS: an attempt has claimed it; REPLAY: it has a response"),
    { .name    = "response",
      .kind    = WIRE_BYTES,
      .offset  = offsetof(O, response),
      .offset2 = offsetof(O, response_bytes),
      .max     = IL_BLOB_BYTES_MAX,
      .help    = "the stored response; null while in progress" },
    FIELD(O, code, INT32, WIRE_NOT_NULL, "code stored with the response"),
    FIELD(O, meta, TEXT, 0, "meta of the attempt"),
    FIELD(O, age_ms, INT64, WIRE_NOT_NULL, "time since the key was first claimed"),
    FIELD(O, remaining_ms, INT64, WIRE_MINUS,
          "IN_PROGRESS: time until the claim expires; REPLAY: until the response is deleted"),
};
OBJECT(http_out_once, "IdempotencyKey", O, once_shown, "An idempotency key");
#undef O

const struct wire_object http_out_results = { .name = "Results",
                                              .help = "The result of each op, in order" };
