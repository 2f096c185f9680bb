/*
 * objects.c: JSON tables of what the server returns: leases, runs, jobs, queues, schedules and
 * results of ops.
 *
 * With WIRE_RAW each table covers every member of its struct, so that a client of the server gets
 * exactly what a caller of the library gets. Clients rely on these names: add fields, never rename
 * them.
 */
#include "core/names.h"
#include "core/op.h"
#include "wire/table.h"

static const char *const event_kinds[] = { "expired", "broken", "refused", NULL };

#define SHOWN WIRE_NOT_NULL
#define COUNT(field, member, text) NUMBER(UINT64, field, SHOWN, member, 0, 0, text)
#define COUNT32(field, member, text) NUMBER(UINT32, field, SHOWN, member, 0, 0, text)

/* ---- leases and waiters ---------------------------------------------------------------------- */

#define STRUCT il_lease_info

static const struct wire_field lease[] = {
    TEXT("key", SHOWN, key, 0, 0, "the key"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the key"),
    TEXT("holder", SHOWN, holder, 0, 0, "the holder"),
    NUMBER(UINT64, "fence", SHOWN, fence, 0, 0, "fencing token: grows with each grant of the key"),
    CHOICE("mode", 0, mode, il__mode_names, 0, "exclusive, shared, or one of several permits"),
    TIME("acquired_at", 0, acquired_at_ms, "when it was granted"),
    TIME("expires_at", 0, expires_at_ms, "when the lease expires unless it is renewed"),
    NUMBER(INT64, "age_ms", SHOWN, age_ms, 0, 0, "time since the grant"),
    NUMBER(INT64, "ttl_ms", SHOWN, ttl_ms, 0, 0,
           "the lease expires this long after its last renewal"),
    COUNT32("waiters", n_waiters, "number of waiters for the key"),
    META("meta", 0, meta, 0, "text the holder supplied; as JSON if it is JSON"),
    CHOICE("state", 0, state, il__lease_state_names + 1, 1,
           "held; offered: granted to a waiter that has not confirmed yet; closing: broken or "
           "expired, but the key is not free yet"),
    COUNT32("permits", permits, "number of permits of a semaphore, else 0"),
    TEXT("place", SHOWN, place, 0, 0, "source location in the holder's program"),
    TEXT("reason", 0, reason, 0, 0, "why the lease was broken"),
    NUMBER(INT64, "renewed_ms", SHOWN, renewed_ms, 0, 0,
           "time since the last renewal, or since the grant"),
    NUMBER(INT64, "remaining_ms", WIRE_MINUS, remaining_ms, 0, 0, "time until expiry"),
    NUMBER(UINT64, "ticket", WIRE_HIDE, ticket, 0, 0, "ticket of a waiter"),
};
static const struct wire_field waiter[] = {
    TEXT("key", SHOWN, key, 0, 0, "the key"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the key"),
    TEXT("holder", SHOWN, holder, 0, 0, "who waits"),
    NUMBER(UINT64, "ticket", SHOWN, ticket, 0, 0, "lower numbers come first"),
    CHOICE("mode", 0, mode, il__mode_names, 0, "exclusive, shared, or one of several permits"),
    TIME("queued_at", 0, acquired_at_ms, "when it was queued"),
    TIME("gives_up_at", WIRE_MINUS, expires_at_ms, "when it gives up; null: never"),
    NUMBER(INT64, "age_ms", SHOWN, age_ms, 0, 0, "time since it was queued"),
    NUMBER(INT64, "ttl_ms", SHOWN, ttl_ms, 0, 0, "TTL of the lease it waits for"),
    COUNT32("waiters", n_waiters, "number of waiters for the key, including this one"),
    META("meta", 0, meta, 0, "text the caller supplied; as JSON if it is JSON"),
    CHOICE("state", 0, state, il__lease_state_names + 1, 1, "waiting"),
    COUNT32("permits", permits, "number of permits of a semaphore, else 0"),
    TEXT("place", SHOWN, place, 0, 0, "source location in its program"),
    TEXT("reason", WIRE_HIDE, reason, 0, 0, "unused: only leases have one"),
    NUMBER(INT64, "renewed_ms", SHOWN, renewed_ms, 0, 0, "time since it was last heard of"),
    NUMBER(INT64, "remaining_ms", WIRE_MINUS, remaining_ms, 0, 0,
           "time until it gives up; null: never"),
    NUMBER(UINT64, "fence", WIRE_HIDE, fence, 0, 0, "unused: only leases have one"),
};
OBJECT(il__wire_lease, "Lease", lease, WIRE_ANSWER, "one granted hold of a key");
OBJECT(il__wire_waiter, "Waiter", waiter, WIRE_ANSWER, "a waiter for a key");
#undef STRUCT

/* ---- lock order ------------------------------------------------------------------------------ */

#define STRUCT il_edge_info

static const struct wire_field edge[] = {
    TEXT("from", SHOWN, from, 0, 0, "class of the key that was held"),
    TEXT("to", SHOWN, to, 0, 0, "class of the key that was acquired while the other was held"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the keys"),
    TEXT("from_place", SHOWN, from_place, 0, 0,
         "source location that acquired the first key when the edge was learned"),
    TEXT("to_place", SHOWN, to_place, 0, 0,
         "source location that acquired the second key when the edge was learned"),
    BOOL("inverted", 0, flags, IL_EDGE_INVERTED,
         "whether it lies on a cycle of learned edges and declared ranks: a deadlock is possible"),
    BOOL("declared", 0, flags, IL_EDGE_DECLARED, "whether the declared ranks require this order"),
};
OBJECT(il__wire_edge, "Edge", edge, WIRE_ANSWER,
       "one edge of the learned lock order, between two classes");
#undef STRUCT

/* ---- history --------------------------------------------------------------------------------- */

#define STRUCT il_event_info

static const struct wire_field event[] = {
    CHOICE("event", 0, kind, event_kinds, 1,
           "expired: not renewed in time; broken: by an operator; refused: the key was held"),
    TEXT("key", SHOWN, key, 0, 0, "the key"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the key"),
    COUNT32("count", count, "refused: number of times; else 1"),
    TIME("first_at", 0, first_at_ms, "when it happened; refused: the first time"),
    TIME("last_at", 0, last_at_ms, "refused: the last time"),
    TEXT("holder", 0, holder, 0, 0,
         "holder of the lease that ended; refused: of the conflicting lease, the last time"),
    NUMBER(UINT64, "fence", 0, fence, 0, 0, "fence of that lease"),
    TIME("since", 0, since_at_ms, "when that lease was granted"),
    META("meta", 0, meta, 0, "meta of that lease; refused: the caller; as JSON if it is JSON"),
    META("other", 0, other, 0, "broken: who broke it; refused: meta of the conflicting lease"),
    TEXT("reason", 0, reason, 0, 0, "broken: the reason; refused: what the caller did next"),
};
OBJECT(il__wire_event, "Event", event, WIRE_ANSWER, "what happened to a key");
#undef STRUCT

/* ---- runs ------------------------------------------------------------------------------------ */

#define STRUCT il_run_info

static const struct wire_field run[] = {
    TEXT("id", SHOWN, id, 0, 0, "id of the run"),
    TEXT("key", SHOWN, key, 0, 0, "the key it holds"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the run"),
    CHOICE("state", 0, state, il__run_state_names + 1, 1, "PENDING and RUNNING are live"),
    TEXT("trigger", 0, trigger, 0, 0, "what started it: manual, schedule, ..."),
    TEXT("by", 0, by, 0, 0, "who started it"),
    TEXT("stage", 0, stage, 0, 0, "what it is doing"),
    NUMBER(INT32, "progress", WIRE_MINUS, progress, 0, 0, "progress in percent"),
    TEXT("error", 0, error, 0, 0, "why it failed, was cancelled or should stop"),
    TEXT("holder", 0, holder, 0, 0, "who executes it"),
    META("meta", 0, meta, 0, "text the caller supplied; as JSON if it is JSON"),
    BOOL("cancelled", 0, cancelled, 1, "whether it was asked to stop"),
    COUNT32("joined", n_joined, "number of starts that joined this run"),
    COUNT32("position", position, "PENDING: position in the queue, 1 = next"),
    COUNT("log_bytes", log_bytes, "bytes written to its log so far; the last 1 MiB is kept"),
    NUMBER(UINT64, "fence", 0, fence, 0, 0, "fence of its lease"),
    TIME("created_at", 0, created_at_ms, "when it was created"),
    TIME("started_at", 0, started_at_ms, "when it acquired its key"),
    TIME("ended_at", 0, ended_at_ms, "when it ended"),
    TIME("updated_at", 0, updated_at_ms, "when it last changed"),
    { .name    = "duration_ms",
      .kind    = WIRE_ELAPSED,
      .offset  = AT(ended_at_ms),
      .offset2 = AT(started_at_ms),
      .help    = "from started_at to ended_at" },
    NUMBER(INT64, "ttl_ms", SHOWN, ttl_ms, 0, 0, "TTL of its lease"),
    NUMBER(INT64, "remaining_ms", SHOWN, remaining_ms, 0, 0,
           "RUNNING: time until its lease expires"),
    COUNT("seq", seq, "sequence number of the start in the store"),
};
OBJECT(il__wire_run, "Run", run, WIRE_ANSWER,
       "one execution of a piece of work that must not run twice at once");
#undef STRUCT

/* ---- jobs ------------------------------------------------------------------------------------ */

#define STRUCT il_job_info

static const struct wire_field children[] = {
    COUNT32("total", n_children, "number of children, including those still expected"),
    COUNT32("completed", n_children_completed, "number that completed"),
    COUNT32("failed", n_children_failed, "number that failed for good"),
};
static OBJECT(job_children, "JobChildren", children, WIRE_ANSWER, "counts of a parent's children");

static const struct wire_field job[] = {
    TEXT("id", SHOWN, id, 0, 0, "id of the job"),
    TEXT("queue", SHOWN, queue, 0, 0, "its queue"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the job"),
    CHOICE("state", 0, state, il__job_state_names + 1, 1,
           "SCHEDULED, READY and RUNNING are live; FAILED: no attempts left"),
    COUNT32("attempt", attempt, "number of claims so far"),
    COUNT32("max_attempts", max_attempts, "number of attempts before it is FAILED"),
    NUMBER(INT32, "priority", SHOWN, priority, 0, 0, "lower numbers come first"),
    TIME("run_at", 0, run_at_ms, "when it is due"),
    TEXT("error", 0, error, 0, 0,
         "error of the last failed attempt, or reason of the cancellation"),
    NUMBER(INT32, "progress", WIRE_MINUS, progress, 0, 0, "progress in percent"),
    TEXT("message", 0, message, 0, 0, "message of the last heartbeat"),
    TEXT("group", 0, group, 0, 0, "its group"),
    TEXT("unique_key", 0, unique_key, 0, 0, "its unique key"),
    TEXT("parent", 0, parent, 0, 0, "id of its parent"),
    TEXT("worker", 0, worker, 0, 0, "worker that has it, or had it last"),
    COUNT("token", token, "token of the last attempt; 0: never claimed"),
    BOOL("cancelled", 0, cancelled, 1, "whether its worker was asked to stop"),
    { .name    = "children",
      .kind    = WIRE_OBJECT,
      .offset  = 0,
      .offset2 = AT(is_parent),
      .bit     = 1,
      .object  = &job_children,
      .help    = "counts of its children, if it is a parent" },
    BYTES("payload", 0, payload, payload_bytes, 0,
          "the payload; null in listings if larger than 4 KiB"),
    SIZE("payload_bytes", payload, payload_bytes, "its size in bytes"),
    BYTES("result", 0, result, result_bytes, 0,
          "the result; null before it is COMPLETED, and in listings if larger than 4 KiB"),
    SIZE("result_bytes", result, result_bytes, "its size in bytes; null before it is COMPLETED"),
    TIME("created_at", 0, created_at_ms, "when it was pushed"),
    TIME("started_at", 0, started_at_ms, "when its last attempt started"),
    TIME("completed_at", 0, completed_at_ms, "when it ended"),
    TIME("updated_at", 0, updated_at_ms, "when it last changed"),
    NUMBER(INT64, "remaining_ms", SHOWN, remaining_ms, 0, 0,
           "RUNNING: time until the claim expires"),
    COUNT("seq", seq, "sequence number of the push in the store"),
};
OBJECT(il__wire_job, "Job", job, WIRE_ANSWER, "a job in a queue");
#undef STRUCT

/* ---- queues ---------------------------------------------------------------------------------- */

#define STRUCT il_queue_opts
#define SPAN(member, text) NUMBER(INT64, #member, SHOWN, member, 0, 0, text)

static const struct wire_field settings[] = {
    CHOICE("strategy", 0, strategy, il__strategy_names, 1, "how workers claim jobs"),
    NUMBER(INT32, "max_attempts", SHOWN, max_attempts, 0, 0,
           "number of attempts before a job is FAILED"),
    SPAN(lease_ms, "lease of a claim"),
    SPAN(backoff_ms, "delay before the first retry, doubled for each further one"),
    SPAN(backoff_max_ms, "maximum delay before a retry"),
    NUMBER(INT32, "group_limit", WIRE_MINUS, group_limit, 0, 0,
           "maximum running jobs per group; null: no limit"),
    NUMBER(INT32, "rate_n", WIRE_MINUS, rate_n, 0, 0,
           "maximum claims within rate_ms; null: no limit"),
    SPAN(rate_ms, "period of rate_n"),
    NUMBER(INT64, "keep_ms", WIRE_MINUS, keep_ms, 0, 0,
           "how long completed and cancelled jobs are kept; null: forever"),
    NUMBER(INT64, "keep_failed_ms", WIRE_MINUS, keep_failed_ms, 0, 0,
           "how long failed jobs are kept; null: forever"),
    SPAN(processing_timeout_ms,
         "pessimistic queues, workers without heartbeats: timeout since the last update"),
    SPAN(executing_timeout_ms,
         "optimistic queues, workers without heartbeats: timeout since the start"),
};
OBJECT(il__wire_queue_settings, "QueueSettings", settings, WIRE_ANSWER, "settings of a queue");
#undef STRUCT

#define STRUCT il_queue_info

static const struct wire_field totals[] = {
    COUNT("pushed", pushed, "jobs pushed"),
    COUNT("claimed", claimed, "claims"),
    COUNT("completed", completed, "jobs completed"),
    COUNT("failed_attempts", failed_attempts, "attempts that failed"),
    COUNT("failed", failed, "jobs that failed for good"),
    COUNT("snoozed", snoozed, "jobs snoozed"),
    COUNT("cancelled", cancelled, "jobs cancelled"),
    COUNT("recovered", recovered, "claims recovered from dead workers"),
    COUNT("duplicates", duplicates, "pushes of a job that already existed"),
    COUNT("stale", stale, "requests rejected because the worker's claim was over"),
};
static OBJECT(queue_totals, "QueueTotals", totals, WIRE_ANSWER,
              "totals since the queue was created");

static const struct wire_field queue[] = {
    TEXT("name", SHOWN, name, 0, 0, "its name"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the queue"),
    BOOL("paused", 0, paused, 1, "whether it is paused: no jobs are handed out"),
    TEXT("reason", 0, reason, 0, 0, "why it is paused"),
    COUNT32("workers", n_workers, "workers that claimed within the last minute"),
    COUNT("scheduled", n_scheduled, "jobs not due yet"),
    COUNT("ready", n_ready, "jobs due now"),
    COUNT("running", n_running, "jobs claimed by workers"),
    COUNT("failed", n_failed, "jobs that failed for good"),
    NUMBER(INT64, "oldest_ms", SHOWN, oldest_ms, 0, 0,
           "how long the oldest ready job has been due"),
    { .name   = "totals",
      .kind   = WIRE_OBJECT,
      .offset = 0,
      .object = &queue_totals,
      .help   = "totals since the queue was created" },
    ONE("settings", opts, il__wire_queue_settings, "its settings"),
};
OBJECT(il__wire_queue, "Queue", queue, WIRE_ANSWER, "a queue of jobs");
#undef STRUCT

#define STRUCT il_cron_info

static const struct wire_field cron[] = {
    TEXT("name", SHOWN, name, 0, 0, "its name"),
    TEXT("queue", SHOWN, queue, 0, 0, "queue its jobs are pushed to"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "tenant that owns the schedule"),
    TEXT("schedule", SHOWN, schedule, 0, 0, "cron expression"),
    CHOICE("missed", 0, missed, il__missed_names, 0,
           "what happens to ticks missed while nothing was running"),
    NUMBER(INT32, "priority", SHOWN, priority, 0, 0, "priority of its jobs"),
    NUMBER(UINT32, "max_attempts", 0, max_attempts, 0, 0,
           "number of attempts of its jobs; null: the queue's setting"),
    COUNT("ticks", n_ticks, "jobs pushed so far"),
    TIME("next_at", 0, next_at_ms, "time of the next tick"),
    TIME("last_at", 0, last_at_ms, "time of the last tick"),
    BYTES("payload", 0, payload, payload_bytes, 0, "payload of its jobs"),
};
OBJECT(il__wire_cron, "Cron", cron, WIRE_ANSWER, "a schedule that pushes jobs");
#undef STRUCT

/* ---- numbers --------------------------------------------------------------------------------- */

#define STRUCT il_cache_info

static const struct wire_field cache_stats[] = {
    COUNT("entries", n_entries, "usable values"),
    COUNT("bytes", n_bytes, "total size of the values"),
    COUNT("fresh", n_fresh, "fresh values"),
    COUNT("stale", n_stale, "stale values"),
    COUNT("negative", n_negative, "negative entries"),
    COUNT("building", n_building, "values being built"),
};
OBJECT(il__wire_cache_stats, "CacheStats", cache_stats, WIRE_ANSWER,
       "counts of cached values for one page of keys");
#undef STRUCT

#define STRUCT il_usage_info

static const struct wire_field usage[] = {
    COUNT("rows", n_rows, "cached values, idempotency keys, jobs, runs"),
    COUNT("bytes", n_bytes, "size of their contents and names"),
};
static OBJECT(wire_usage, "Usage", usage, WIRE_ANSWER,
              "what a tenant stores, for one page of rows");
#undef STRUCT

#define STRUCT il_sweep_out

static const struct wire_field sweep[] = {
    COUNT32("expired", n_expired, "leases that expired"),
    COUNT32("offered", n_offered, "waiters that were offered a key"),
    COUNT32("dropped", n_dropped, "waiters dropped because they timed out or went silent"),
    COUNT32("deadlocks", n_deadlocks, "waiters cancelled to break a deadlock"),
    COUNT32("runs", n_runs, "runs ended because their worker died"),
    COUNT32("jobs", n_jobs, "claims that expired"),
    COUNT32("ticks", n_ticks, "jobs pushed by schedules"),
    COUNT32("purged", n_purged, "expired rows of history, results and cached values"),
};
OBJECT(il__wire_sweep, "Sweep", sweep, WIRE_ANSWER, "result of one recovery pass");
#undef STRUCT

/* ---- results of ops -------------------------------------------------------------------------- */

#define STRUCT il_op_out
#define MAYBE WIRE_HIDE
#define FLAG(field, mask, text) BOOL(field, MAYBE, flags, mask, text)
#define OUT_NUMBER(field, text) NUMBER(UINT64, field, MAYBE, fence, 0, 0, text)
#define POSITION NUMBER(UINT32, "position", MAYBE, position, 0, 0, "QUEUED: 1 = next")
#define TICKET NUMBER(UINT64, "ticket", MAYBE, ticket, 0, 0, "QUEUED: lower numbers come first")
#define REMAINING                                                         \
    NUMBER(INT64, "remaining_ms", MAYBE | WIRE_MINUS, remaining_ms, 0, 0, \
           "time until the expiry, the end of the wait or the next due job; null: no end")
#define RENEWED \
    FLAG("renewed", IL_OUT_RENEWED, "the caller already had it; nothing new was granted or created")
#define ORDER_WARNING \
    FLAG("order_warning", IL_OUT_ORDER_WARNING, "violates the learned lock order; see detail")
#define MORE FLAG("more", IL_OUT_MORE, "the limit was reached and more is left to do")
#define CANCEL FLAG("cancel", IL_OUT_CANCEL, "the work should stop; see detail")
#define BROKEN \
    FLAG("broken", IL_OUT_BROKEN, "LOST: the lease was broken by an operator; it did not expire")
#define SWEPT ONE("sweep", sweep, il__wire_sweep, "what the pass did")
#define AGE                                      \
    NUMBER(INT64, "age_ms", MAYBE, age_ms, 0, 0, \
           "time since the claim, or since the build of the value started")
#define CODE NUMBER(INT32, "code", MAYBE, code, 0, 0, "the stored code")
#define VALUE(field, text) BYTES(field, MAYBE, value, value_bytes, 0, text)
#define NEXT \
    TEXT("next", MAYBE | SHOWN, next, 0, 0, "cursor of the next page; missing on the last page")
#define DETAIL \
    TEXT("detail", MAYBE | SHOWN, detail, 0, 0, "the cycle, the edge or the reason, as a sentence")

static const struct wire_field lock_result[] = {
    OUT_NUMBER("fence", "fence of the lease, else the newest fence of the key"),
    REMAINING,
    RENEWED,
    CANCEL,
    BROKEN,
    ORDER_WARNING,
    TICKET,
    POSITION,
    OBJECTS("items", MAYBE, items, n_items, il__wire_lease,
            "the leases; HELD: the conflicting lease"),
    NEXT,
    DETAIL,
};
static const struct wire_field waiters_result[] = {
    OBJECTS("items", MAYBE, items, n_items, il__wire_waiter, "the waiters"),
    NEXT,
    DETAIL,
};
static const struct wire_field edges_result[] = {
    OBJECTS("items", MAYBE, edges, n_edges, il__wire_edge, "the edges"),
    NEXT,
    DETAIL,
};
static const struct wire_field events_result[] = {
    OBJECTS("items", MAYBE, events, n_events, il__wire_event, "the events"),
    NEXT,
    DETAIL,
};
static const struct wire_field sweep_result[] = { SWEPT, MORE, DETAIL };
static const struct wire_field run_result[]   = {
      OUT_NUMBER("fence", "fence of the run's lease, else the newest fence of the key"),
      REMAINING,
      RENEWED,
      ORDER_WARNING,
      CANCEL,
      BROKEN,
      FLAG("live_limit", IL_OUT_LIVE_LIMIT, "LIMIT: live_max is reached"),
      FLAG("day_limit", IL_OUT_DAY_LIMIT, "LIMIT: day_max is reached"),
      FLAG("skipped", IL_OUT_SKIPPED, "on_conflict skip: a run exists, so nothing was done"),
      TICKET,
      POSITION,
      OBJECTS("items", MAYBE, runs, n_runs, il__wire_run,
              "the runs; DUPLICATE, HELD: the conflicting run"),
      OBJECTS("leases", MAYBE, items, n_items, il__wire_lease,
              "HELD: the conflicting lease, if it belongs to no run"),
      VALUE("text", "text of the log"),
      NUMBER(UINT64, "offset", MAYBE, offset, 0, 0,
             "offset of the first byte of text; higher than requested if that part was discarded"),
      NEXT,
      DETAIL,
};
static const struct wire_field once_result[] = {
    OUT_NUMBER("token", "token of the claim"),
    REMAINING,
    RENEWED,
    FLAG("takeover", IL_OUT_TAKEOVER, "an earlier attempt died without a result; see meta"),
    VALUE("response", "the stored response, byte for byte"),
    CODE,
    TEXT("meta", MAYBE | SHOWN, meta, 0, 0,
         "meta of the attempt that holds the key; OK: of the previous attempt"),
    AGE,
    DETAIL,
};
static const struct wire_field queue_result[] = {
    OUT_NUMBER("token", "token of the last attempt"),
    REMAINING,
    RENEWED,
    CANCEL,
    FLAG("paused", IL_OUT_PAUSED, "EMPTY: the queue is paused"),
    FLAG("limited", IL_OUT_LIMITED, "EMPTY, or fewer jobs: a rate or group limit is reached"),
    FLAG("optimistic", IL_OUT_OPTIMISTIC, "the queue's strategy"),
    POSITION,
    OBJECTS("items", MAYBE, jobs, n_jobs, il__wire_job,
            "the job or the claimed jobs; DUPLICATE: the existing job"),
    NEXT,
    DETAIL,
};
static const struct wire_field purge_result[]  = { SWEPT, MORE, DETAIL };
static const struct wire_field queues_result[] = {
    OBJECTS("items", MAYBE, queues, n_queues, il__wire_queue, "the queues"),
    NEXT,
    DETAIL,
};
static const struct wire_field crons_result[] = {
    OBJECTS("items", MAYBE, crons, n_crons, il__wire_cron, "the schedules"),
    NEXT,
    DETAIL,
};
static const struct wire_field cache_result[] = {
    OUT_NUMBER("token", "token of a build. LEAD: the caller's; WAIT: the one in progress; HIT: the "
                        "one that filled it"),
    REMAINING,
    RENEWED,
    FLAG("negative", IL_OUT_NEGATIVE, "a negative entry: no value exists"),
    FLAG("early", IL_OUT_EARLY, "the value is still fresh"),
    VALUE("value", "the cached value"),
    CODE,
    AGE,
    DETAIL,
};
static const struct wire_field stats_result[] = {
    ONE("cache", cache, il__wire_cache_stats, "counts of cached values for one page of keys"),
    NEXT,
    DETAIL,
};

static const struct wire_field usage_result[] = {
    ONE("usage", usage, wire_usage, "what is stored, for one page of rows"),
    NEXT,
    DETAIL,
};

#define RESULT(rows, label) \
    static OBJECT(of_##rows, label, rows##_result, WIRE_ANSWER, "result of an op")
RESULT(lock, "LockResult");
RESULT(waiters, "WaitersResult");
RESULT(edges, "EdgesResult");
RESULT(events, "EventsResult");
RESULT(sweep, "SweepResult");
RESULT(run, "RunResult");
RESULT(once, "OnceResult");
RESULT(queue, "JobResult");
RESULT(purge, "PurgeResult");
RESULT(queues, "QueueResult");
RESULT(crons, "CronResult");
RESULT(cache, "CacheResult");
RESULT(stats, "CacheStatsResult");
RESULT(usage, "UsageResult");

const struct wire_object *
il__wire_result(il_op_type type, uint32_t flags)
{
    switch (type) {
    case IL_OP_LIST:
        return (flags & IL_LIST_WAITERS) != 0 ? &of_waiters : &of_lock;
    case IL_OP_SWEEP:
        return &of_sweep;
    case IL_OP_JOB_PURGE:
        return &of_purge;
    case IL_OP_QUEUE_SET:
    case IL_OP_QUEUE_PAUSE:
    case IL_OP_QUEUE_LIST:
        return &of_queues;
    case IL_OP_CRON_SET:
    case IL_OP_CRON_REMOVE:
    case IL_OP_CRON_LIST:
        return &of_crons;
    case IL_OP_CACHE_STATS:
        return &of_stats;
    case IL_OP_USAGE:
        return &of_usage;
    case IL_OP_ORDER_LIST:
        return &of_edges;
    case IL_OP_HISTORY:
        return &of_events;
    default:
        break;
    }
    switch (il__op_family(type)) {
    case IL__FAMILY_RUN:
        return &of_run;
    case IL__FAMILY_ONCE:
        return &of_once;
    case IL__FAMILY_QUEUE:
        return &of_queue;
    case IL__FAMILY_CACHE:
        return &of_cache;
    case IL__FAMILY_LOCK:
    default:
        return &of_lock;
    }
}
