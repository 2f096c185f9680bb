/*
 * bodies.c: the tables of bodies.h.
 */
#include "http/bodies.h"

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

/* ---- inputs ----------------------------------------------------------------------------------------------------------------- */

static const struct wire_field why_in[] = {
    { .name   = "key",
      .kind   = WIRE_TEXT,
      .flags  = WIRE_REQUIRED,
      .offset = offsetof(struct http_why, key),
      .min    = 1,
      .max    = IL_KEY_BYTES_MAX,
      .help   = "the key" },
};
INPUT(http_in_why, "WhyQuery", struct http_why, why_in, "Which key");

static const struct wire_field batch_in[] = {
    { .name   = "raw",
      .kind   = WIRE_BOOL,
      .offset = offsetof(struct http_batch_in, raw),
      .bit    = 1,
      .help = "payloads, results, values and meta as strings exactly as they are, never as JSON" },
    { .name   = "wait_ms",
      .kind   = WIRE_WAIT,
      .offset = offsetof(struct http_batch_in, wait_ms),
      .min    = 0,
      .max    = IL_DELAY_MS_MAX,
      .help   = "with exactly one op that can be waited for: keep the request open this long, at "
                "most 60 s" },
};
INPUT(http_in_batch, "Batch", struct http_batch_in, batch_in, "Ops, applied in order as one commit");
static const struct wire_field batch_ops[] = { { .name = "ops", .kind = WIRE_TEXT, .help = "the ops" } };
INPUT(http_in_batch_ops, "BatchOps", struct http_batch_in, batch_ops,
      "The ops; each is checked by the table of its type");

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
      .help   = "only of keys, queues, ... that begin so" },
};
INPUT(http_in_stream, "StreamQuery", struct http_stream_in, stream_in, "Which events");

/* ---- the server --------------------------------------------------------------------------------------------------------------- */

#define S struct http_status
static const struct wire_field root[] = {
    FIELD(S, name, TEXT, 0, "interlock"),
    FIELD(S, version, TEXT, 0, "of the server"),
};
OBJECT(http_out_root, "Root", S, root, "What this is");

static const struct wire_field health[] = {
    NAMED(S, "status", store, TEXT, 0, "ok"),
};
OBJECT(http_out_health, "Health", S, health, "The process is alive");

static const struct wire_field ready[] = {
    IS(S, "ready", TRUE, 0, "it can do its work"),
    FIELD(S, store, TEXT, 0, "ok"),
    FIELD(S, data, TEXT, 0, "ok"),
};
OBJECT(http_out_ready, "Ready", S, ready, "Store and data store can be reached");

static const struct wire_field sums[] = {
    NAMED(il_queue_info, "scheduled", n_scheduled, UINT64, WIRE_NOT_NULL, "jobs that are due later"),
    NAMED(il_queue_info, "ready", n_ready, UINT64, WIRE_NOT_NULL, "jobs that are due"),
    NAMED(il_queue_info, "running", n_running, UINT64, WIRE_NOT_NULL, "jobs that are claimed"),
    NAMED(il_queue_info, "dead", n_dead, UINT64, WIRE_NOT_NULL, "jobs without attempts left"),
    NAMED(il_queue_info, "workers", n_workers, UINT32, WIRE_NOT_NULL,
          "that claimed within the last minute"),
    NAMED(il_queue_info, "oldest_ms", oldest_ms, INT64, WIRE_NOT_NULL,
          "how long the oldest ready job has been due"),
};
static OBJECT(queue_sums, "QueueSums", il_queue_info, sums, "Jobs of all queues of the tenant");

static const struct wire_field status[] = {
    FIELD(S, name, TEXT, 0, "interlock"),
    FIELD(S, version, TEXT, 0, "of the server"),
    FIELD(S, engine, TEXT, 0, "memory, sqlite, postgres or redis"),
    FIELD(S, tenant, TEXT, 0, "the caller's"),
    NAMED(S, "now", now_ms, TIME, 0, "by the server's clock"),
    FIELD(S, uptime_ms, INT64, WIRE_NOT_NULL, "of the server"),
    IS(S, "ready", TRUE, 0, "as /ready says"),
    FIELD(S, store, TEXT, 0, "ok, or why not"),
    FIELD(S, data, TEXT, 0, "ok, or why not"),
    FIELD(S, connections, UINT64, WIRE_NOT_NULL, "open now"),
    FIELD(S, requests, UINT64, WIRE_NOT_NULL, "under way now"),
    FIELD(S, waiters, UINT64, WIRE_NOT_NULL, "long polls now"),
    FIELD(S, streams, UINT64, WIRE_NOT_NULL, "event streams now"),
    NAMED(S, "queues", n_queues, UINT64, WIRE_NOT_NULL, "of the tenant, counted up to 1,000"),
    { .name   = "jobs",
      .kind   = WIRE_OBJECT,
      .offset = offsetof(S, sums),
      .object = &queue_sums,
      .help   = "of these queues" },
};
OBJECT(http_out_status, "Status", S, status, "The server and the tenant at a glance");
#undef S

/* ---- locks -------------------------------------------------------------------------------------------------------------------- */

#define G struct http_grant
static const struct wire_field grant[] = {
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "who holds it; made by the server if none was given"),
    FIELD(G, fence, UINT64, WIRE_NOT_NULL, "grows with every grant of the key"),
    NAMED(G, "expires_at", expires_at_ms, TIME, 0, "unless it is renewed"),
    FIELD(G, ttl_ms, INT64, WIRE_NOT_NULL, "what a renewal extends it by"),
    FIELD(G, remaining_ms, INT64, WIRE_NOT_NULL, "to the expiry"),
    IS(G, "renewed", RENEWED, 0, "this holder had it before"),
    IS(G, "cancel", CANCEL, 0, "the work under it should stop"),
    FIELD(G, reason, TEXT, WIRE_HIDE, "why it should stop"),
    FIELD(G, warning, TEXT, WIRE_HIDE, "it was taken against the learned lock order"),
};
OBJECT(http_out_grant, "Grant", G, grant, "A lease that the caller has");

static const struct wire_field queued[] = {
    FIELD(G, status, TEXT, 0, "QUEUED"),
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "who waits; repeat the call with it within 15 s"),
    FIELD(G, ticket, UINT64, WIRE_NOT_NULL, "the place in the queue"),
    FIELD(G, position, UINT32, WIRE_NOT_NULL, "1 = next"),
    FIELD(G, remaining_ms, INT64, WIRE_MINUS, "to the end of the wait; null = without end"),
    FIELD(G, warning, TEXT, WIRE_HIDE, "it waits against the learned lock order"),
};
OBJECT(http_out_queued, "Queued", G, queued, "The caller waits for a key, and must call again");

static const struct wire_field released[] = {
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "who had it"),
    IS(G, "released", TRUE, 0, "true"),
};
OBJECT(http_out_released, "Released", G, released, "The lease was given back");

static const struct wire_field broken[] = {
    IS(G, "broken", TRUE, 0, "true"),
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, holder, TEXT, 0, "from whom it was taken"),
    FIELD(G, fence, UINT64, WIRE_NOT_NULL, "of the lease that was broken"),
    IS(G, "closing", CLOSING, 0, "the key stays closed until the holder has let go, or its time is over"),
};
OBJECT(http_out_break, "Broken", G, broken, "The lease was taken away");

static const struct wire_field fence[] = {
    IS(G, "valid", TRUE, 0, "true"),
    FIELD(G, key, TEXT, 0, "the key"),
    FIELD(G, fence, UINT64, WIRE_NOT_NULL, "the current fence"),
};
OBJECT(http_out_fence, "Fence", G, fence, "The fence is the current one of its key");
#undef G

static const struct wire_field lock[] = {
    FIELD(struct http_lock, key, TEXT, 0, "the key"),
    FIELD(struct http_lock, fence, UINT64, WIRE_NOT_NULL, "the newest of its live fences"),
    { .name    = "leases",
      .kind    = WIRE_OBJECTS,
      .offset  = offsetof(struct http_lock, leases),
      .offset2 = offsetof(struct http_lock, n_leases),
      .object  = &il__wire_lease,
      .help    = "who holds it" },
};
OBJECT(http_out_lock, "Lock", struct http_lock, lock, "A key that is held");

/* ---- runs --------------------------------------------------------------------------------------------------------------------- */

#define T struct http_started
static const struct wire_field started[] = {
    FIELD(T, id, TEXT, 0, "of the run; made by the server if none was given"),
    IS(T, "duplicate", TRUE, 0, "this is the run that was there already"),
    IS(T, "skipped", SKIPPED, 0, "policy skip: there is nothing to do"),
    IS(T, "renewed", RENEWED, 0, "this start was made before"),
    STATE(T, run_states, "RUNNING: go on; PENDING: it waits for its turn: repeat the call with its id and holder within 15 s (a slot need not)"),
    FIELD(T, key, TEXT, 0, "the key"),
    FIELD(T, holder, TEXT, 0, "who executes it"),
    FIELD(T, fence, UINT64, 0, "of its lease; null until it runs"),
    NAMED(T, "expires_at", expires_at_ms, TIME, 0, "of its lease, unless it is renewed (/locks/renew)"),
    FIELD(T, ttl_ms, INT64, WIRE_NOT_NULL, "of its lease"),
    FIELD(T, position, UINT32, WIRE_NOT_NULL, "PENDING: place in the queue, 1 = next"),
    IS(T, "cancel", CANCEL, 0, "the run should stop"),
    FIELD(T, reason, TEXT, WIRE_HIDE, "why it should stop"),
    FIELD(T, warning, TEXT, WIRE_HIDE, "it was taken against the learned lock order"),
    { .name = "run", .kind = WIRE_OBJECT, .offset = offsetof(T, run), .object = &il__wire_run, .help = "the run" },
};
OBJECT(http_out_started, "Started", T, started, "A run that was started, or the one that was there");
#undef T

static const struct wire_field log_part[] = {
    FIELD(struct http_log_part, id, TEXT, 0, "of the run"),
    STATE(struct http_log_part, run_states, "of the run"),
    FIELD(struct http_log_part, offset, UINT64, WIRE_NOT_NULL,
          "of the first byte of text: more than was asked for when that is gone"),
    FIELD(struct http_log_part, next_offset, UINT64, WIRE_NOT_NULL, "where to go on"),
    { .name    = "text",
      .kind    = WIRE_BYTES,
      .flags   = WIRE_NOT_NULL,
      .offset  = offsetof(struct http_log_part, text),
      .offset2 = offsetof(struct http_log_part, text_bytes),
      .max     = IL_LOG_BYTES_MAX,
      .help    = "at most 64 KiB" },
    IS(struct http_log_part, "end", END, 0, "the run has ended and this is the rest"),
};
OBJECT(http_out_log, "Log", struct http_log_part, log_part, "A part of a run's log");

#define N struct http_sign
static const struct wire_field sign[] = {
    FIELD(N, id, TEXT, 0, "of the run"),
    STATE(N, run_states, "of the run"),
    IS(N, "cancel", CANCEL, 0, "the run should stop"),
    FIELD(N, reason, TEXT, WIRE_HIDE, "why it should stop"),
    FIELD(N, log_bytes, UINT64, WIRE_NOT_NULL, "written so far"),
};
OBJECT(http_out_sign, "RunSign", N, sign, "What a run told was taken");

/* ---- queues ------------------------------------------------------------------------------------------------------------------- */

static const struct wire_field beat[] = {
    FIELD(N, id, TEXT, 0, "of the job"),
    STATE(N, job_states, "of the job"),
    FIELD(N, token, UINT64, WIRE_NOT_NULL, "of the attempt"),
    NAMED(N, "expires_at", expires_at_ms, TIME, 0, "of the claim, unless there is another heartbeat"),
    FIELD(N, remaining_ms, INT64, WIRE_NOT_NULL, "to the end of the claim"),
    IS(N, "cancel", CANCEL, 0, "the job should stop"),
    FIELD(N, reason, TEXT, WIRE_HIDE, "why it should stop"),
};
OBJECT(http_out_beat, "Beat", N, beat, "The claim was extended");
#undef N

static const struct wire_field pushed[] = {
    FIELD(struct http_pushed, id, TEXT, 0, "of the job"),
    IS(struct http_pushed, "duplicate", TRUE, 0, "its unique key is taken: this is the job that has it"),
    FIELD(struct http_pushed, queue, TEXT, 0, "its queue"),
    STATE(struct http_pushed, job_states, "READY, or SCHEDULED until run_at"),
    NAMED(struct http_pushed, "run_at", run_at_ms, TIME, 0, "not before"),
};
OBJECT(http_out_pushed, "Pushed", struct http_pushed, pushed,
       "A job that was added, or the one that was there");

static const struct wire_field claimed[] = {
    { .name    = "items",
      .kind    = WIRE_OBJECTS,
      .offset  = offsetof(struct http_claimed, items),
      .offset2 = offsetof(struct http_claimed, n_items),
      .object  = &il__wire_job,
      .help    = "the jobs, with the token of this attempt" },
    FIELD(struct http_claimed, worker, TEXT, 0, "who claimed; made by the server if none was given"),
    IS(struct http_claimed, "paused", PAUSED, 0, "the queue is paused"),
    IS(struct http_claimed, "limited", LIMITED, 0, "a rate or group limit holds jobs back"),
    FIELD(struct http_claimed, retry_after_ms, INT64, WIRE_MINUS,
          "without items: when a job may be due; null = not known"),
};
OBJECT(http_out_claimed, "Claimed", struct http_claimed, claimed, "Jobs to do");

static const struct wire_field purged[] = {
    NAMED(struct http_number, "purged", number, UINT64, WIRE_NOT_NULL, "jobs that were deleted"),
    IS(struct http_number, "more", MORE, 0, "the limit was reached: call again"),
};
OBJECT(http_out_purged, "Purged", struct http_number, purged, "Jobs were deleted");

static const struct wire_field removed[] = {
    FIELD(struct http_number, name, TEXT, 0, "of the schedule"),
    IS(struct http_number, "removed", TRUE, 0, "true"),
};
OBJECT(http_out_removed, "Removed", struct http_number, removed, "The schedule is gone");

/* ---- cache -------------------------------------------------------------------------------------------------------------------- */

#define C struct http_cached
static const struct wire_field cached[] = {
    FIELD(C, key, TEXT, 0, "the key"),
    IS(C, "hit", TRUE, 0, "there is a value that may be used"),
    IS(C, "stale", STALE, 0, "it is old"),
    IS(C, "lead", LEAD, 0, "the caller must build the value, and fill or abandon with token and holder"),
    IS(C, "wait", WAIT,
       0, "somebody else is building it, and the wait is over: repeat the call with this token, to get what was waited for"),
    FIELD(C, token, UINT64, 0, "lead: of the build; wait: of the build that is waited for"),
    FIELD(C, holder, TEXT, 0, "lead: who builds; made by the server if none was given"),
    { .name    = "value",
      .kind    = WIRE_BYTES,
      .offset  = offsetof(C, value),
      .offset2 = offsetof(C, value_bytes),
      .max     = IL_BLOB_BYTES_MAX,
      .help    = "null when there is none that may be used" },
    FIELD(C, age_ms, INT64, WIRE_NOT_NULL, "of the value, since its build began"),
    FIELD(C, remaining_ms, INT64, WIRE_MINUS,
          "hit: while it is fresh (stale: usable); lead: to build; wait: of the build"),
    IS(C, "negative", NEGATIVE, 0, "the value says that there is none"),
    FIELD(C, code, INT32, WIRE_NOT_NULL, "negative: why"),
    IS(C, "early", EARLY, 0, "lead, although the value is fresh: refresh it; get: a lookup would lead"),
};
OBJECT(http_out_cached, "Cached", C, cached, "A cached value, or the order to build it");

static const struct wire_field filled[] = {
    FIELD(C, key, TEXT, 0, "the key"),
    IS(C, "ok", TRUE, 0, "true"),
};
OBJECT(http_out_filled, "Filled", C, filled, "It is done");
#undef C

const struct wire_object http_out_results = { .name = "Results",
                                              .help = "What became of each op, in order" };
