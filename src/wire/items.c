/*
 * items.c: what the answers are made of: leases, runs, jobs, queues, schedules, and what an op ended with.
 *
 * Together with WIRE_RAW each table holds all that its struct holds, so that a client of the server gets exactly what a caller of the library
 * gets. Fields that exist are relied upon: they may be added to, never renamed.
 */
#include "core/op.h"
#include "wire/table.h"

const char *const il__wire_modes[]        = { "exclusive", "shared", "permit", NULL };
const char *const il__wire_lease_states[] = { "waiting",  "offered", "held",   "closing",
                                              "released", "expired", "broken", NULL };
const char *const il__wire_run_states[]   = { "PENDING",   "RUNNING", "COMPLETED",   "FAILED",
                                              "CANCELLED", "TIMEOUT", "INTERRUPTED", NULL };
const char *const il__wire_policies[]     = { "join",  "reject",          "skip",
                                              "queue", "replace-pending", "cancel-running",
                                              NULL };
const char *const il__wire_job_states[]   = { "SCHEDULED", "READY",     "RUNNING", "COMPLETED",
                                              "FAILED",    "CANCELLED", NULL };
const char *const il__wire_strategies[]   = { "pessimistic", "optimistic", NULL };
const char *const il__wire_missed[]       = { "skip", "one", "all", NULL };

#define SHOWN WIRE_NOT_NULL
#define COUNT(field, member, text) NUMBER(UINT64, field, SHOWN, member, 0, 0, text)
#define COUNT32(field, member, text) NUMBER(UINT32, field, SHOWN, member, 0, 0, text)

#define ANSWER(label, table, type, text)                                              \
    {                                                                                 \
        .name = label, .fields = (table), .n_fields = ARRAY_LEN(table), .help = text, \
        .bytes = sizeof(type), .flags = WIRE_ANSWER                                   \
    }

/* ---- leases and waiters ---------------------------------------------------------------------------------------- */

#define STRUCT il_lease_info

static const struct wire_field lease[] = {
    TEXT("key", SHOWN, key, 0, 0, "what is held"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "whose key"),
    TEXT("holder", SHOWN, holder, 0, 0, "who holds it"),
    NUMBER(UINT64, "fence", SHOWN, fence, 0, 0, "number of this grant; those of a key only grow"),
    CHOICE("mode", 0, mode, il__wire_modes, 0, "alone, with other shared ones, or one of some permits"),
    TIME("acquired_at", 0, acquired_at_ms, "since when"),
    TIME("expires_at", 0, expires_at_ms, "until when, unless it is renewed"),
    NUMBER(INT64, "age_ms", SHOWN, age_ms, 0, 0, "since the grant"),
    NUMBER(INT64, "ttl_ms", SHOWN, ttl_ms, 0, 0, "it ends so long after a renewal"),
    COUNT32("waiters", n_waiters, "who wait for the key"),
    META("meta", 0, meta, 0, "what the holder says of itself; as JSON if it is JSON"),
    CHOICE("state", 0, state, il__wire_lease_states,
           1, "held; offered: a waiter's turn; closing: broken or run out, and the key is not free yet"),
    COUNT32("permits", permits, "N of a semaphore, else 0"),
    TEXT("place", SHOWN, place, 0, 0, "where in the holder's program"),
    TEXT("reason", 0, reason, 0, 0, "why it was broken"),
    NUMBER(INT64, "renewed_ms", SHOWN, renewed_ms, 0, 0, "since the last renewal, or the grant"),
    NUMBER(INT64, "remaining_ms", WIRE_MINUS, remaining_ms, 0, 0, "to the expiry"),
    NUMBER(UINT64, "ticket", WIRE_HIDE, ticket, 0, 0, "of a waiter"),
};
static const struct wire_field waiter[] = {
    TEXT("key", SHOWN, key, 0, 0, "what is waited for"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "whose key"),
    TEXT("holder", SHOWN, holder, 0, 0, "who waits"),
    NUMBER(UINT64, "ticket", SHOWN, ticket, 0, 0, "the smallest comes first"),
    CHOICE("mode", 0, mode, il__wire_modes, 0, "alone, with other shared ones, or one of some permits"),
    TIME("queued_at", 0, acquired_at_ms, "since when"),
    TIME("gives_up_at", WIRE_MINUS, expires_at_ms, "until when; null: for ever"),
    NUMBER(INT64, "age_ms", SHOWN, age_ms, 0, 0, "since it queued"),
    NUMBER(INT64, "ttl_ms", SHOWN, ttl_ms, 0, 0, "of the lease that it waits for"),
    COUNT32("waiters", n_waiters, "who wait for the key, this one too"),
    META("meta", 0, meta, 0, "what it says of itself; as JSON if it is JSON"),
    CHOICE("state", 0, state, il__wire_lease_states, 1, "waiting"),
    COUNT32("permits", permits, "N of a semaphore, else 0"),
    TEXT("place", SHOWN, place, 0, 0, "where in its program"),
    TEXT("reason", WIRE_HIDE, reason, 0, 0, "of a lease"),
    NUMBER(INT64, "renewed_ms", SHOWN, renewed_ms, 0, 0, "since its last sign of life"),
    NUMBER(INT64, "remaining_ms", WIRE_MINUS, remaining_ms, 0, 0, "until it gives up; null: never"),
    NUMBER(UINT64, "fence", WIRE_HIDE, fence, 0, 0, "of a lease"),
};
const struct wire_object il__wire_lease =
    ANSWER("Lease", lease, il_lease_info, "one granted hold of a key");
const struct wire_object il__wire_waiter =
    ANSWER("Waiter", waiter, il_lease_info, "one who waits for a key");
#undef STRUCT

/* ---- runs ---------------------------------------------------------------------------------------------------------- */

#define STRUCT il_run_info

static const struct wire_field run[] = {
    TEXT("id", SHOWN, id, 0, 0, "its id"),
    TEXT("key", SHOWN, key, 0, 0, "the key that it holds"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "whose run"),
    CHOICE("state", 0, state, il__wire_run_states, 1, "PENDING and RUNNING are live"),
    TEXT("trigger", 0, trigger, 0, 0, "how it was started"),
    TEXT("by", 0, by, 0, 0, "by whom"),
    TEXT("stage", 0, stage, 0, 0, "what it does"),
    NUMBER(INT32, "progress", WIRE_MINUS, progress, 0, 0, "percent"),
    TEXT("error", 0, error, 0, 0, "why it failed or was cancelled; or why it should stop"),
    TEXT("holder", 0, holder, 0, 0, "who executes it"),
    META("meta", 0, meta, 0, "what it says of itself; as JSON if it is JSON"),
    BOOL("cancelled", 0, cancelled, 1, "a stop was asked for"),
    COUNT32("joined", n_joined, "starts that were told this run's id instead"),
    COUNT32("position", position, "PENDING: place in the queue, 1 = next"),
    COUNT("log_bytes", log_bytes, "of its log, written so far; the last 1 MiB is kept"),
    NUMBER(UINT64, "fence", 0, fence, 0, 0, "of its lease"),
    TIME("created_at", 0, created_at_ms, "when it was started or queued"),
    TIME("started_at", 0, started_at_ms, "when it got its key"),
    TIME("ended_at", 0, ended_at_ms, "when it ended"),
    TIME("updated_at", 0, updated_at_ms, "when it was changed last"),
    { .name    = "duration_ms",
      .kind    = WIRE_ELAPSED,
      .offset  = AT(ended_at_ms),
      .offset2 = AT(started_at_ms),
      .help    = "from started_at to ended_at" },
    NUMBER(INT64, "ttl_ms", SHOWN, ttl_ms, 0, 0, "of its lease"),
    NUMBER(INT64, "remaining_ms", SHOWN, remaining_ms, 0, 0, "RUNNING: to the expiry of its lease"),
    COUNT("seq", seq, "order of starts in the store"),
};
const struct wire_object il__wire_run =
    ANSWER("Run", run, il_run_info, "one execution that cannot start twice");
#undef STRUCT

/* ---- jobs -------------------------------------------------------------------------------------------------------------- */

#define STRUCT il_job_info

static const struct wire_field children[] = {
    COUNT32("total", n_children, "how many there are, or will be"),
    COUNT32("completed", n_children_completed, "of them"),
    COUNT32("failed", n_children_failed, "of them, for good"),
};
static const struct wire_object job_children =
    ANSWER("JobChildren", children, il_job_info, "children of a parent");

static const struct wire_field job[] = {
    TEXT("id", SHOWN, id, 0, 0, "its id"),
    TEXT("queue", SHOWN, queue, 0, 0, "its queue"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "whose job"),
    CHOICE("state", 0, state, il__wire_job_states, 1,
           "SCHEDULED, READY and RUNNING are live; FAILED is dead: no attempts left"),
    COUNT32("attempt", attempt, "claims so far"),
    COUNT32("max_attempts", max_attempts, "then it is dead"),
    NUMBER(INT32, "priority", SHOWN, priority, 0, 0, "the smallest comes first"),
    TIME("run_at", 0, run_at_ms, "due at"),
    TEXT("error", 0, error, 0, 0, "of the last attempt that failed, or of the cancellation"),
    NUMBER(INT32, "progress", WIRE_MINUS, progress, 0, 0, "percent"),
    TEXT("message", 0, message, 0, 0, "of the last heartbeat"),
    TEXT("group", 0, group, 0, 0, "its group"),
    TEXT("unique", 0, unique_key, 0, 0, "its unique key"),
    TEXT("parent", 0, parent, 0, 0, "id of its parent"),
    TEXT("worker", 0, worker, 0, 0, "who has it, or had it last"),
    COUNT("token", token, "of the last attempt; 0: never claimed"),
    BOOL("cancelled", 0, cancelled, 1, "its worker was asked to stop"),
    { .name    = "children",
      .kind    = WIRE_OBJECT,
      .offset  = 0,
      .offset2 = AT(is_parent),
      .bit     = 1,
      .object  = &job_children,
      .help    = "of a parent" },
    BYTES("payload", 0, payload, payload_bytes, 0,
          "what it is about; in listings null if it is larger than 4 KiB"),
    SIZE("payload_bytes", payload, payload_bytes, "how large it is"),
    BYTES("result", 0, result, result_bytes, 0,
          "what came of it; in listings null if it is larger than 4 KiB"),
    SIZE("result_bytes", result, result_bytes, "how large it is"),
    TIME("created_at", 0, created_at_ms, "when it was pushed"),
    TIME("started_at", 0, started_at_ms, "when its last attempt began"),
    TIME("completed_at", 0, completed_at_ms, "when it ended"),
    TIME("updated_at", 0, updated_at_ms, "when it was changed last"),
    NUMBER(INT64, "remaining_ms", SHOWN, remaining_ms, 0, 0, "RUNNING: to the end of the claim"),
    COUNT("seq", seq, "order of pushes in the store"),
};
const struct wire_object il__wire_job = ANSWER("Job", job, il_job_info, "one item of a queue");
#undef STRUCT

/* ---- queues ------------------------------------------------------------------------------------------------------------- */

#define STRUCT il_queue_opts
#define SPAN(member, text) NUMBER(INT64, #member, SHOWN, member, 0, 0, text)

static const struct wire_field settings[] = {
    CHOICE("strategy", 0, strategy, il__wire_strategies, 1, "how jobs are claimed"),
    NUMBER(INT32, "attempts", SHOWN, max_attempts, 0, 0, "of a job, until it is dead"),
    SPAN(lease_ms, "of a claim"),
    SPAN(backoff_ms, "before the second attempt; then twice as long each time"),
    SPAN(backoff_max_ms, "but no longer than this"),
    NUMBER(INT32, "group_limit", WIRE_MINUS, group_limit, 0, 0,
           "running jobs of one group at most; null: no limit"),
    NUMBER(INT32, "rate_n", WIRE_MINUS, rate_n, 0, 0,
           "at most so many claims within rate_ms; null: no limit"),
    SPAN(rate_ms, "see rate_n"),
    NUMBER(INT64, "keep_ms", WIRE_MINUS, keep_ms, 0, 0,
           "of completed and cancelled jobs; null: for ever"),
    NUMBER(INT64, "keep_dead_ms", WIRE_MINUS, keep_dead_ms, 0, 0, "of dead ones; null: for ever"),
    SPAN(processing_timeout_ms, "pessimistic, silent workers: since the last update"),
    SPAN(executing_timeout_ms, "optimistic, silent workers: since the start"),
};
const struct wire_object il__wire_queue_settings =
    ANSWER("QueueSettings", settings, il_queue_opts, "settings of a queue");
#undef STRUCT

#define STRUCT il_queue_info

static const struct wire_field totals[] = {
    COUNT("pushed", pushed, "jobs"),
    COUNT("claimed", claimed, "attempts that began"),
    COUNT("completed", completed, "jobs"),
    COUNT("failed", failed, "attempts"),
    COUNT("dead", dead, "jobs whose last attempt failed"),
    COUNT("snoozed", snoozed, "attempts given back for later"),
    COUNT("cancelled", cancelled, "jobs"),
    COUNT("recovered", recovered, "attempts whose worker was gone"),
    COUNT("duplicates", duplicates, "pushes that found their job"),
    COUNT("stale", stale, "late workers that were refused"),
};
static const struct wire_object queue_totals =
    ANSWER("QueueTotals", totals, il_queue_info, "since the queue was made");

static const struct wire_field queue[] = {
    TEXT("name", SHOWN, name, 0, 0, "its name"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "whose queue"),
    BOOL("paused", 0, paused, 1, "no job of it is claimed"),
    TEXT("reason", 0, reason, 0, 0, "why it is paused"),
    COUNT32("workers", n_workers, "that claimed within the last minute"),
    COUNT("scheduled", n_scheduled, "jobs that are not due yet"),
    COUNT("ready", n_ready, "jobs that are due"),
    COUNT("running", n_running, "jobs that are claimed"),
    COUNT("dead", n_dead, "jobs without attempts left"),
    NUMBER(INT64, "oldest_ms", SHOWN, oldest_ms, 0, 0, "how long the oldest ready job has been due"),
    { .name   = "totals",
      .kind   = WIRE_OBJECT,
      .offset = 0,
      .object = &queue_totals,
      .help   = "since the queue was made" },
    { .name   = "settings",
      .kind   = WIRE_OBJECT,
      .offset = AT(opts),
      .object = &il__wire_queue_settings,
      .help   = "as queue_set takes them" },
};
const struct wire_object il__wire_queue = ANSWER("Queue", queue, il_queue_info, "a queue of jobs");
#undef STRUCT

#define STRUCT il_cron_info

static const struct wire_field cron[] = {
    TEXT("name", SHOWN, name, 0, 0, "its name"),
    TEXT("queue", SHOWN, queue, 0, 0, "where its jobs go"),
    TEXT("tenant", SHOWN, tenant, 0, 0, "whose schedule"),
    TEXT("schedule", SHOWN, schedule, 0, 0, "when"),
    CHOICE("missed", 0, missed, il__wire_missed, 0,
           "what is done about ticks that came while nobody was there"),
    NUMBER(INT32, "priority", SHOWN, priority, 0, 0, "of its jobs"),
    NUMBER(UINT32, "attempts", 0, max_attempts, 0, 0, "of its jobs; null: the queue's"),
    COUNT("ticks", n_ticks, "jobs pushed so far"),
    TIME("next_at", 0, next_at_ms, "the next tick"),
    TIME("last_at", 0, last_at_ms, "the tick that was pushed last"),
    BYTES("payload", 0, payload, payload_bytes, 0, "of its jobs"),
};
const struct wire_object il__wire_cron =
    ANSWER("Cron", cron, il_cron_info, "a schedule that pushes jobs");
#undef STRUCT

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

#define STRUCT il_cache_info

static const struct wire_field cache_stats[] = {
    COUNT("entries", n_entries, "values that may be used"),
    COUNT("bytes", n_bytes, "of their values"),
    COUNT("fresh", n_fresh, "of them"),
    COUNT("stale", n_stale, "of them"),
    COUNT("negative", n_negative, "of them"),
    COUNT("building", n_building, "values that are being built"),
};
const struct wire_object il__wire_cache_stats =
    ANSWER("CacheStats", cache_stats, il_cache_info, "what is cached");
#undef STRUCT

#define STRUCT il_sweep_out

static const struct wire_field sweep[] = {
    COUNT32("expired", n_expired, "leases that ran out"),
    COUNT32("offered", n_offered, "waiters that got an offer"),
    COUNT32("dropped", n_dropped, "waiters whose deadline passed or who gave no sign of life"),
    COUNT32("deadlocks", n_deadlocks, "waiters cancelled to open a cycle"),
    COUNT32("runs", n_runs, "runs that ended because their worker was gone"),
    COUNT32("jobs", n_jobs, "claims that ran out"),
    COUNT32("ticks", n_ticks, "jobs pushed by schedules"),
    COUNT32("purged", n_purged, "rows of history, answers and cached values that were kept long enough"),
};
const struct wire_object il__wire_sweep =
    ANSWER("Sweep", sweep, il_sweep_out, "what a pass of recovery has done");
#undef STRUCT

/* ---- results of ops ---------------------------------------------------------------------------------------------------- */

#define STRUCT il_op_out
#define MAYBE WIRE_HIDE
#define FLAG(field, mask, text) BOOL(field, MAYBE, flags, mask, text)
#define OUT_NUMBER(field, text) NUMBER(UINT64, field, MAYBE, fence, 0, 0, text)
#define POSITION NUMBER(UINT32, "position", MAYBE, position, 0, 0, "QUEUED: 1 = next")
#define TICKET NUMBER(UINT64, "ticket", MAYBE, ticket, 0, 0, "QUEUED: the smallest comes first")
#define REMAINING                                                         \
    NUMBER(INT64, "remaining_ms", MAYBE | WIRE_MINUS, remaining_ms, 0, 0, \
           "to the expiry, the end of the wait, or the next due job; null: no end")
#define RENEWED \
    FLAG("renewed", IL_OUT_RENEWED, "the caller had it already: nothing new was granted or made")
#define ORDER_WARNING \
    FLAG("order_warning", IL_OUT_ORDER_WARNING, "against the learned lock order; see detail")
#define MORE FLAG("more", IL_OUT_MORE, "the bound was reached, there is more to do")
#define CANCEL FLAG("cancel", IL_OUT_CANCEL, "the work should stop; see detail")
#define SWEPT                                                                                 \
    {                                                                                         \
        .name = "sweep", .kind = WIRE_OBJECT, .offset = AT(sweep), .object = &il__wire_sweep, \
        .help = "what was done"                                                               \
    }
#define AGE                                      \
    NUMBER(INT64, "age_ms", MAYBE, age_ms, 0, 0, \
           "since the begin, or since the build of the value began")
#define CODE NUMBER(INT32, "code", MAYBE, code, 0, 0, "as it was stored")
#define VALUE(field, text) BYTES(field, MAYBE, value, value_bytes, 0, text)
#define NEXT \
    TEXT("next", MAYBE | SHOWN, next, 0, 0, "cursor of the next page; missing: this was the last")
#define DETAIL \
    TEXT("detail", MAYBE | SHOWN, detail, 0, 0, "a sentence: the cycle, the edge, what is wrong")

static const struct wire_field lock_result[] = {
    OUT_NUMBER("fence", "of the lease; else the key's newest"),
    REMAINING,
    RENEWED,
    CANCEL,
    ORDER_WARNING,
    TICKET,
    POSITION,
    OBJECTS("items", MAYBE, items, n_items, il__wire_lease, "the leases; HELD: one that is in the way"),
    NEXT,
    DETAIL,
};
static const struct wire_field waiters_result[] = {
    OBJECTS("items", MAYBE, items, n_items, il__wire_waiter, "who wait"),
    NEXT,
    DETAIL,
};
static const struct wire_field sweep_result[] = { SWEPT, MORE, DETAIL };
static const struct wire_field run_result[]   = {
      OUT_NUMBER("fence", "of the run's lease; else the key's newest"),
      REMAINING,
      RENEWED,
      ORDER_WARNING,
      CANCEL,
      FLAG("live_limit", IL_OUT_LIVE_LIMIT, "LIMIT, for live_max is reached"),
      FLAG("day_limit", IL_OUT_DAY_LIMIT, "LIMIT, for day_max is reached"),
      FLAG("skipped", IL_OUT_SKIPPED, "policy skip: there is one already, and nothing more was done"),
      TICKET,
      POSITION,
      OBJECTS("items", MAYBE, runs, n_runs, il__wire_run, "the runs; DUPLICATE, HELD: the one in the way"),
      OBJECTS("leases", MAYBE, items, n_items, il__wire_lease,
              "HELD: the lease in the way, if it belongs to no run"),
      VALUE("text", "of the log"),
      NUMBER(UINT64, "offset", MAYBE, offset, 0, 0,
             "of the first byte of text: more than asked for when that is gone"),
      NEXT,
      DETAIL,
};
static const struct wire_field once_result[] = {
    OUT_NUMBER("token", "of the claim"),
    REMAINING,
    RENEWED,
    FLAG("takeover", IL_OUT_TAKEOVER, "an earlier attempt ended without an answer; see meta"),
    VALUE("response", "the answer, byte for byte"),
    CODE,
    TEXT("meta", MAYBE | SHOWN, meta, 0, 0,
         "as given to the begin that has the key; OK: to the one before"),
    AGE,
    DETAIL,
};
static const struct wire_field queue_result[] = {
    OUT_NUMBER("token", "of the last attempt"),
    REMAINING,
    RENEWED,
    CANCEL,
    FLAG("paused", IL_OUT_PAUSED, "EMPTY, for the queue is paused"),
    FLAG("limited", IL_OUT_LIMITED, "EMPTY or fewer, for a rate or group limit is reached"),
    FLAG("optimistic", IL_OUT_OPTIMISTIC, "the queue's strategy"),
    POSITION,
    OBJECTS("items", MAYBE, jobs, n_jobs, il__wire_job,
            "the job, or those claimed; DUPLICATE: the one that exists"),
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
    OUT_NUMBER(
        "token",
        "LEAD: of the caller's build; WAIT: of the one under way; HIT: of the one that filled it"),
    REMAINING,
    RENEWED,
    FLAG("negative", IL_OUT_NEGATIVE, "the value says that there is none"),
    FLAG("early", IL_OUT_EARLY, "the value is still fresh"),
    VALUE("value", "what is cached"),
    CODE,
    AGE,
    DETAIL,
};
static const struct wire_field stats_result[] = {
    { .name   = "cache",
      .kind   = WIRE_OBJECT,
      .offset = AT(cache),
      .object = &il__wire_cache_stats,
      .help   = "what is cached" },
    DETAIL,
};

#define RESULT(name, text)                      \
    static const struct wire_object of_##name = \
        ANSWER(text, name##_result, il_op_out, "what an op ended with")
RESULT(lock, "LockResult");
RESULT(waiters, "WaitersResult");
RESULT(sweep, "SweepResult");
RESULT(run, "RunResult");
RESULT(once, "OnceResult");
RESULT(queue, "JobResult");
RESULT(purge, "PurgeResult");
RESULT(queues, "QueueResult");
RESULT(crons, "CronResult");
RESULT(cache, "CacheResult");
RESULT(stats, "CacheStatsResult");

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
