/*
 * body_fields.c: JSON tables of the request and response bodies that body_fields.h declares.
 */
#include "http/body_fields.h"

#include "core/names.h"
#include "http/samples.h"
#include "wire/table.h"

#define IS(field, mask, flag, text) BOOL(field, flag, is, HTTP_IS_##mask, text)
/* Without NONE, which is the first. */
#define STATE(names, text) CHOICE("state", 0, state, (names) + 1, 1, text)

/* ---- inputs ---------------------------------------------------------------------------------- */

#define STRUCT struct http_why
static const struct wire_field why_in[] = {
    BOUNDED("key", key, TEXT, WIRE_REQUIRED, 1, IL_KEY_BYTES_MAX, "the key"),
};
OBJECT(http_in_why, "WhyQuery", why_in, 0, "The key to explain");
#undef STRUCT

#define STRUCT struct http_batch_in
static const struct wire_field batch_in[] = {
    BOOL("raw", 0, raw, 1,
         "return payloads, results, values and meta as strings, exactly as stored, never as JSON"),
    BOUNDED("wait_ms", wait_ms, WAIT, 0, 0, IL_DELAY_MS_MAX,
            "with exactly one op that can wait: hold the request open this long, at most 60 s"),
};
OBJECT(http_in_batch, "Batch", batch_in, 0, "Ops to apply in order");
static const struct wire_field batch_ops[] = {
    { .name = "ops", .kind = WIRE_TEXT, .help = "the ops" }
};
OBJECT(http_in_batch_ops, "BatchOps", batch_ops, 0,
       "The ops; the fields of each depend on its type");
#undef STRUCT

#define STRUCT struct http_stream_in
static const struct wire_field stream_in[] = {
    { .name    = "types",
      .kind    = WIRE_SET,
      .offset  = AT(types),
      .choices = http_event_types,
      .help    = "only events of these types" },
    BOUNDED("prefix", prefix, TEXT, 0, 0, IL_KEY_BYTES_MAX,
            "only keys, queues, ... that start with this"),
};
OBJECT(http_in_stream, "StreamQuery", stream_in, 0, "The events to send");
#undef STRUCT

/* ---- the server ------------------------------------------------------------------------------ */

#define STRUCT struct http_status
static const struct wire_field root[] = {
    F("name", name, TEXT, 0, "interlock"),
    F("version", version, TEXT, 0, "version of the server"),
};
OBJECT(http_out_root, "Root", root, WIRE_ANSWER, "Name and version");

static const struct wire_field health[] = {
    F("status", store, TEXT, 0, "ok"),
};
OBJECT(http_out_health, "Health", health, WIRE_ANSWER, "The process is alive");

static const struct wire_field ready[] = {
    IS("ready", TRUE, 0, "whether the server is ready"),
    F("store", store, TEXT, 0, "ok"),
    F("data", data, TEXT, 0, "ok"),
};
OBJECT(http_out_ready, "Ready", ready, WIRE_ANSWER, "Store and data store are reachable");
#undef STRUCT

#define STRUCT il_queue_info
static const struct wire_field sums[] = {
    F("scheduled", n_scheduled, UINT64, WIRE_NOT_NULL, "jobs not due yet"),
    F("ready", n_ready, UINT64, WIRE_NOT_NULL, "jobs due now"),
    F("running", n_running, UINT64, WIRE_NOT_NULL, "jobs claimed by workers"),
    F("failed", n_failed, UINT64, WIRE_NOT_NULL, "jobs that failed for good"),
    F("workers", n_workers, UINT32, WIRE_NOT_NULL, "workers that claimed within the last minute"),
    F("oldest_ms", oldest_ms, INT64, WIRE_NOT_NULL, "how long the oldest ready job has been due"),
};
static OBJECT(queue_sums, "QueueSums", sums, WIRE_ANSWER, "Jobs in all queues of the tenant");
#undef STRUCT

#define STRUCT struct http_status
static const struct wire_field status[] = {
    F("name", name, TEXT, 0, "interlock"),
    F("version", version, TEXT, 0, "version of the server"),
    F("engine", engine, TEXT, 0, "memory, sqlite, postgres or redis"),
    F("tenant", tenant, TEXT, 0, "tenant of the caller"),
    F("now", now_ms, TIME, 0, "time by the server's clock"),
    F("uptime_ms", uptime_ms, INT64, WIRE_NOT_NULL, "uptime of the server"),
    IS("ready", TRUE, 0, "as reported by /ready"),
    F("store", store, TEXT, 0, "ok, or what is wrong"),
    F("data", data, TEXT, 0, "ok, or what is wrong"),
    F("connections", connections, UINT64, WIRE_NOT_NULL, "open connections"),
    F("requests", requests, UINT64, WIRE_NOT_NULL, "requests in progress"),
    F("waiters", waiters, UINT64, WIRE_NOT_NULL, "waiting requests"),
    F("streams", streams, UINT64, WIRE_NOT_NULL, "open event streams"),
    F("queues", n_queues, UINT64, WIRE_NOT_NULL, "queues of the tenant, counted up to 1,000"),
    ONE("jobs", sums, queue_sums, "jobs in these queues"),
};
OBJECT(http_out_status, "Status", status, WIRE_ANSWER, "The server and the tenant at a glance");
#undef STRUCT

#define STRUCT struct http_few
static const struct wire_field few[] = {
    F("n", n, UINT64, WIRE_NOT_NULL, "the number, at most 1,000"),
    IS("more", MORE, 0, "true if counting stopped at n"),
};
static OBJECT(few_object, "Count", few, WIRE_ANSWER, "A count up to 1,000");
#undef STRUCT

#define STRUCT struct http_expiring
static const struct wire_field expiring[] = {
    F("key", key, TEXT, 0, "the key"),
    F("holder", holder, TEXT, 0, "who holds it"),
    F("run_id", run, TEXT, 0, "the run that holds it; null: a plain lease"),
    F("ttl_ms", ttl_ms, INT64, WIRE_NOT_NULL, "the lease expires this long after a renewal"),
    F("remaining_ms", remaining_ms, INT64, WIRE_NOT_NULL, "time until expiry"),
};
static OBJECT(expiring_object, "ExpiringLease", expiring, WIRE_ANSWER,
              "A lease with little time left");
#undef STRUCT

#define STRUCT struct http_overview
#define FEW(field, member, text) ONE(field, member, few_object, text)
#define EXPIRING(member, text) OBJECTS(#member, 0, member, n_##member, expiring_object, text)
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
OBJECT(http_out_overview, "Overview", overview, WIRE_ANSWER,
       "Counts of the tenant's objects, within the API key's prefix");
#undef STRUCT

#define STRUCT struct http_sample
static const struct wire_field sample[] = {
    F("at_ms", at_ms, INT64, WIRE_NOT_NULL, "when it was taken, in ms since 1970"),
    F("locks", locks, UINT64, WIRE_NOT_NULL, "live leases, counted up to 1,000"),
    F("runs", runs, UINT64, WIRE_NOT_NULL, "runs that are RUNNING, counted up to 1,000"),
    F("jobs_ready", jobs_ready, UINT64, WIRE_NOT_NULL, "jobs due"),
    F("jobs_running", jobs_running, UINT64, WIRE_NOT_NULL, "jobs claimed by workers"),
    F("jobs_failed", jobs_failed, UINT64, WIRE_NOT_NULL, "jobs that failed for good"),
    F("acquires", acquires, UINT64, WIRE_NOT_NULL,
      "locks acquired through this server since the previous sample"),
    F("conflicts", conflicts, UINT64, WIRE_NOT_NULL,
      "acquires that found their key held, since the previous sample"),
    F("cache_hits", cache_hits, UINT64, WIRE_NOT_NULL,
      "cache lookups that found a value, since the previous sample"),
    F("cache_misses", cache_misses, UINT64, WIRE_NOT_NULL,
      "cache lookups that found none, since the previous sample"),
    F("requests", requests, UINT64, WIRE_NOT_NULL,
      "requests of the tenant, since the previous sample"),
};
static OBJECT(sample_object, "Sample", sample, WIRE_ANSWER, "A sample of a tenant's counts");
#undef STRUCT

#define STRUCT struct http_samples_shown
static const struct wire_field samples[] = {
    F("interval_ms", interval_ms, INT64, WIRE_NOT_NULL,
      "time between samples; longer while the store is slow or unreachable"),
    OBJECTS("samples", 0, samples, n, sample_object, "at most 360, oldest first"),
};
OBJECT(http_out_samples, "Samples", samples, WIRE_ANSWER,
       "The last hour of a tenant, as this server saw it");
#undef STRUCT

/* ---- locks ----------------------------------------------------------------------------------- */

#define STRUCT struct http_grant
static const struct wire_field grant[] = {
    F("key", key, TEXT, 0, "the key"),
    F("holder", holder, TEXT, 0, "the holder; generated by the server if none was given"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "fencing token: grows with each grant of the key"),
    F("expires_at", expires_at_ms, TIME, 0, "when the lease expires unless it is renewed"),
    F("ttl_ms", ttl_ms, INT64, WIRE_NOT_NULL, "the lease expires this long after a renewal"),
    F("remaining_ms", remaining_ms, INT64, WIRE_NOT_NULL, "time until expiry"),
    IS("renewed", RENEWED, 0, "this holder already had the lease"),
    IS("cancel", CANCEL, 0, "the work under the lease should stop"),
    F("reason", reason, TEXT, WIRE_HIDE, "why it should stop"),
    F("warning", warning, TEXT, WIRE_HIDE, "set if the acquire violates the learned lock order"),
};
OBJECT(http_out_grant, "Grant", grant, WIRE_ANSWER, "A lease held by the caller");

static const struct wire_field queued[] = {
    F("status", status, TEXT, 0, "QUEUED"),
    F("key", key, TEXT, 0, "the key"),
    F("holder", holder, TEXT, 0, "the waiter; repeat the call with this holder within 15 s"),
    F("ticket", ticket, UINT64, WIRE_NOT_NULL, "ticket in the queue"),
    F("position", position, UINT32, WIRE_NOT_NULL, "1 = next"),
    F("remaining_ms", remaining_ms, INT64, WIRE_MINUS, "time until the wait ends; null: no end"),
    F("warning", warning, TEXT, WIRE_HIDE, "set if the acquire violates the learned lock order"),
};
OBJECT(http_out_queued, "Queued", queued, WIRE_ANSWER,
       "The caller is queued for a key and must repeat the call");

static const struct wire_field released[] = {
    F("key", key, TEXT, 0, "the key"),
    F("holder", holder, TEXT, 0, "the previous holder"),
    IS("released", TRUE, 0, "true"),
};
OBJECT(http_out_released, "Released", released, WIRE_ANSWER, "The lease was released");

static const struct wire_field broken[] = {
    IS("broken", TRUE, 0, "true"),
    F("key", key, TEXT, 0, "the key"),
    F("holder", holder, TEXT, 0, "holder of the broken lease"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "fence of the broken lease"),
    IS("closing", CLOSING, 0,
       "the key stays closed until the holder releases it or its lease expires"),
};
OBJECT(http_out_break, "Broken", broken, WIRE_ANSWER, "The lease was broken");

static const struct wire_field fence[] = {
    IS("valid", TRUE, 0, "true"),
    F("key", key, TEXT, 0, "the key"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "the current fence"),
};
OBJECT(http_out_fence, "Fence", fence, WIRE_ANSWER, "The fence is the current one of its key");

static const struct wire_field noted[] = {
    F("key", key, TEXT, 0, "the key"),
    IS("noted", TRUE, 0, "true"),
};
OBJECT(http_out_noted, "Noted", noted, WIRE_ANSWER, "The refusals were added to the key's history");
#undef STRUCT

#define STRUCT struct http_lock
static const struct wire_field lock[] = {
    F("key", key, TEXT, 0, "the key"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "newest fence among its leases"),
    OBJECTS("leases", 0, leases, n_leases, il__wire_lease, "the leases"),
};
OBJECT(http_out_lock, "Lock", lock, WIRE_ANSWER, "A key that is held");
#undef STRUCT

/* ---- runs ------------------------------------------------------------------------------------ */

#define STRUCT struct http_started
static const struct wire_field started[] = {
    F("id", id, TEXT, 0, "id of the run; generated by the server if none was given"),
    IS("duplicate", TRUE, 0, "this run already existed"),
    IS("skipped", SKIPPED, 0, "on_conflict skip: nothing was started"),
    IS("renewed", RENEWED, 0, "this start is a repeat"),
    STATE(il__run_state_names,
          "RUNNING: proceed; PENDING: queued, repeat the call with the same id and holder within "
          "15 s (not needed for a slot)"),
    F("key", key, TEXT, 0, "the key"),
    F("holder", holder, TEXT, 0, "holder that executes the run"),
    F("fence", fence, UINT64, 0, "fence of its lease; null until it runs"),
    F("expires_at", expires_at_ms, TIME, 0,
      "when its lease expires unless it is renewed (/locks/renew)"),
    F("ttl_ms", ttl_ms, INT64, WIRE_NOT_NULL, "TTL of its lease"),
    F("position", position, UINT32, WIRE_NOT_NULL, "PENDING: position in the queue, 1 = next"),
    IS("cancel", CANCEL, 0, "the run should stop"),
    F("reason", reason, TEXT, WIRE_HIDE, "why it should stop"),
    F("warning", warning, TEXT, WIRE_HIDE, "set if the acquire violates the learned lock order"),
    ONE("run", run, il__wire_run, "the run"),
};
OBJECT(http_out_started, "Started", started, WIRE_ANSWER,
       "The run that was started, or the existing one");
#undef STRUCT

#define STRUCT struct http_log_part
static const struct wire_field log_part[] = {
    F("id", id, TEXT, 0, "id of the run"),
    STATE(il__run_state_names, "state of the run"),
    F("offset", offset, UINT64, WIRE_NOT_NULL,
      "offset of the first byte of text; higher than requested if that part was discarded"),
    F("next_offset", next_offset, UINT64, WIRE_NOT_NULL, "offset to continue from"),
    BYTES("text", WIRE_NOT_NULL, text, text_bytes, IL_LOG_BYTES_MAX,
          "text of the log, at most 64 KiB"),
    IS("end", END, 0, "the run has ended and this is the last part"),
};
OBJECT(http_out_log, "Log", log_part, WIRE_ANSWER, "A part of a run's log");
#undef STRUCT

#define STRUCT struct http_sign
static const struct wire_field sign[] = {
    F("id", id, TEXT, 0, "id of the run"),
    STATE(il__run_state_names, "state of the run"),
    IS("cancel", CANCEL, 0, "the run should stop"),
    F("reason", reason, TEXT, WIRE_HIDE, "why it should stop"),
    F("log_bytes", log_bytes, UINT64, WIRE_NOT_NULL, "bytes written to the log so far"),
};
OBJECT(http_out_sign, "RunSign", sign, WIRE_ANSWER, "The report of a run was stored");

/* ---- queues ---------------------------------------------------------------------------------- */

static const struct wire_field beat[] = {
    F("id", id, TEXT, 0, "id of the job"),
    STATE(il__job_state_names, "state of the job"),
    F("token", token, UINT64, WIRE_NOT_NULL, "token of the attempt"),
    F("expires_at", expires_at_ms, TIME, 0, "when the claim expires unless a heartbeat renews it"),
    F("remaining_ms", remaining_ms, INT64, WIRE_NOT_NULL, "time until the claim expires"),
    IS("cancel", CANCEL, 0, "the job should stop"),
    F("reason", reason, TEXT, WIRE_HIDE, "why it should stop"),
};
OBJECT(http_out_beat, "Beat", beat, WIRE_ANSWER, "The claim was extended");
#undef STRUCT

#define STRUCT struct http_pushed
static const struct wire_field pushed[] = {
    F("id", id, TEXT, 0, "id of the job"),
    IS("duplicate", TRUE, 0, "the unique key is taken; this is the existing job"),
    F("queue", queue, TEXT, 0, "its queue"),
    STATE(il__job_state_names, "READY, or SCHEDULED until run_at"),
    F("run_at", run_at_ms, TIME, 0, "when it is due"),
};
OBJECT(http_out_pushed, "Pushed", pushed, WIRE_ANSWER, "The new job, or the existing one");
#undef STRUCT

#define STRUCT struct http_claimed
static const struct wire_field claimed[] = {
    OBJECTS("items", 0, items, n_items, il__wire_job,
            "the claimed jobs, each with the token of its attempt"),
    F("worker", worker, TEXT, 0, "the worker; generated by the server if none was given"),
    IS("paused", PAUSED, 0, "the queue is paused"),
    IS("limited", LIMITED, 0, "a rate or group limit holds jobs back"),
    F("retry_after_ms", retry_after_ms, INT64, WIRE_MINUS,
      "if items is empty: time until a job may be due; null if unknown"),
};
OBJECT(http_out_claimed, "Claimed", claimed, WIRE_ANSWER, "Claimed jobs");
#undef STRUCT

#define STRUCT struct http_number
static const struct wire_field purged[] = {
    F("purged", number, UINT64, WIRE_NOT_NULL, "number of deleted jobs"),
    IS("more", MORE, 0, "the limit was reached: repeat the call"),
};
OBJECT(http_out_purged, "Purged", purged, WIRE_ANSWER, "Jobs were deleted");

static const struct wire_field removed[] = {
    F("name", name, TEXT, 0, "name of the schedule"),
    IS("removed", TRUE, 0, "true"),
};
OBJECT(http_out_removed, "Removed", removed, WIRE_ANSWER, "The schedule was removed");
#undef STRUCT

/* ---- cache ----------------------------------------------------------------------------------- */

#define STRUCT struct http_cached
static const struct wire_field cached[] = {
    F("key", key, TEXT, 0, "the key"),
    IS("hit", TRUE, 0, "a usable value was found"),
    IS("stale", STALE, 0, "the value is stale"),
    IS("lead", LEAD, 0,
       "the caller must build the value, then call fill or abandon with token and holder"),
    IS("wait", WAIT, 0,
       "another caller is building the value and the wait timed out: repeat the call with this "
       "token"),
    F("token", token, UINT64, 0,
      "lead: token of the caller's build; wait: token of the build in progress"),
    F("holder", holder, TEXT, 0, "lead: the builder; generated by the server if none was given"),
    BYTES("value", 0, value, value_bytes, IL_BLOB_BYTES_MAX, "the value; null if none is usable"),
    F("age_ms", age_ms, INT64, WIRE_NOT_NULL, "age of the value, since its build started"),
    F("remaining_ms", remaining_ms, INT64, WIRE_MINUS,
      "hit: time the value stays fresh (stale: usable); lead, wait: time left for the build"),
    IS("negative", NEGATIVE, 0, "a negative entry: no value exists"),
    F("code", code, INT32, WIRE_NOT_NULL, "code of a negative entry"),
    IS("early", EARLY, 0,
       "fresh but due for refresh; with get: a lookup would make the caller the builder"),
};
OBJECT(http_out_cached, "Cached", cached, WIRE_ANSWER,
       "A cached value, or the request to build it");

static const struct wire_field filled[] = {
    F("key", key, TEXT, 0, "the key"),
    IS("ok", TRUE, 0, "true"),
};
OBJECT(http_out_filled, "Filled", filled, WIRE_ANSWER, "The call succeeded");
#undef STRUCT

#define STRUCT struct http_counted
static const struct wire_field counted[] = {
    F("entries", cache.n_entries, UINT64, WIRE_NOT_NULL, "usable values"),
    F("bytes", cache.n_bytes, UINT64, WIRE_NOT_NULL, "total size of the values"),
    F("fresh", cache.n_fresh, UINT64, WIRE_NOT_NULL, "fresh values"),
    F("stale", cache.n_stale, UINT64, WIRE_NOT_NULL, "stale values"),
    F("negative", cache.n_negative, UINT64, WIRE_NOT_NULL, "negative entries"),
    F("building", cache.n_building, UINT64, WIRE_NOT_NULL, "values being built"),
    F("next", next, TEXT, 0,
      "cursor of the next page of keys; null on the last page. Add up the pages"),
};
OBJECT(http_out_counted, "CacheCount", counted, WIRE_ANSWER,
       "Counts of cached values for one page of keys");
#undef STRUCT

/* ---- idempotency keys ------------------------------------------------------------------------ */

#define STRUCT struct http_once_shown
static const struct wire_field once_shown[] = {
    F("key", key, TEXT, 0, "the key"),
    F("status", status, TEXT, 0,
      "IN_PROGRESS: an attempt has claimed it; REPLAY: it has a response"),
    BYTES("response", 0, response, response_bytes, IL_BLOB_BYTES_MAX,
          "the stored response; null while in progress"),
    F("code", code, INT32, WIRE_NOT_NULL, "code stored with the response"),
    F("meta", meta, TEXT, 0, "meta of the attempt"),
    F("age_ms", age_ms, INT64, WIRE_NOT_NULL, "time since the key was first claimed"),
    F("remaining_ms", remaining_ms, INT64, WIRE_MINUS,
      "IN_PROGRESS: time until the claim expires; REPLAY: until the response is deleted"),
};
OBJECT(http_out_once, "IdempotencyKey", once_shown, WIRE_ANSWER, "An idempotency key");
#undef STRUCT

const struct wire_object http_out_results = { .name = "Results",
                                              .help = "The result of each op, in order" };
