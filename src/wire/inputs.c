/*
 * inputs.c: what each op takes. Limits are those of interlock.h; what depends on several fields at once is checked by il__op_prepare().
 */
#include "core/limits.h"
#include "wire/table.h"

#define STRUCT il_op

#define NEEDED WIRE_REQUIRED
#define FENCE_MAX ((int64_t)IL__FENCE_END - 1)

/* ---- rows that several ops have ---------------------------------------------------------------------------- */

#define KEY                                       \
    TEXT("key", NEEDED, key, 1, IL_KEY_BYTES_MAX, \
         "name of what is protected: its class, a colon, the rest")
#define HOLDER                                             \
    TEXT("holder", NEEDED, holder, 1, IL_HOLDER_BYTES_MAX, \
         "the caller's own name for this piece of work; a new one for each attempt")
#define HOLDER_IF(text) TEXT("holder", 0, holder, 1, IL_HOLDER_BYTES_MAX, text)
#define FENCE \
    NUMBER(UINT64, "fence", NEEDED, fence, 1, FENCE_MAX, "number that came with the grant")
#define TOKEN \
    NUMBER(UINT64, "token", NEEDED, fence, 1, FENCE_MAX, "number that came with the claim")
#define QUEUE TEXT("queue", NEEDED, key, 1, IL_QUEUE_BYTES_MAX, "name of the queue")
#define QUEUE_IF TEXT("queue", 0, key, 1, IL_QUEUE_BYTES_MAX, "only of this queue")
#define LEASE_MS(member, text) \
    NUMBER(INT64, "lease_ms", 0, member, IL_TTL_MS_MIN, IL_TTL_MS_MAX, text)
#define DELAY_MS(text) NUMBER(INT64, "delay_ms", 0, in.job.delay_ms, 0, IL_DELAY_MS_MAX, text)
#define PREFIX(most) TEXT("prefix", 0, in.list.prefix, 0, most, "only names that begin with this")
#define CURSOR \
    TEXT("cursor", 0, in.list.cursor, 1, IL_KEY_BYTES_MAX + 32, "`next` of the page before")
#define LIMIT \
    NUMBER(UINT32, "limit", 0, in.list.limit, 1, IL_PAGE_ITEMS_MAX, "items of a page; 100 by default")
#define BOUND                                                       \
    NUMBER(UINT32, "limit", 0, in.list.limit, 1, IL_PAGE_ITEMS_MAX, \
           "at most this many of each kind; 1000 by default")
#define WAIT(member, text) NUMBER(WAIT, "wait_ms", 0, member, 0, IL__WAIT_MS_MAX, text)
#define POLL WAIT(reserved[5], "keep the request open so long until there is something to tell")
#define PRIORITY(member)                                                    \
    NUMBER(INT32, "priority", 0, member, -IL_PRIORITY_MAX, IL_PRIORITY_MAX, \
           "the smallest comes first; 0 by default")
#define RUN_ID TEXT("id", NEEDED, in.run.id, 1, IL_ID_BYTES_MAX, "id of the run")
#define JOB_ID TEXT("id", NEEDED, in.job.id, 1, IL_ID_BYTES_MAX, "id of the job")

static int
choose_run_state(const char *text)
{
    return (int)il_run_state_parse(text);
}

static int
choose_job_state(const char *text)
{
    return (int)il_job_state_parse(text);
}

#define STATES(flag, names, other_names)                                                      \
    {                                                                                         \
        .name = "state", .kind = WIRE_SET, .flags = (flag), .offset = AT(in.list.states),     \
        .min = 1, .choices = (names), .choose = (other_names), .help = "only in these states" \
    }
#define LOG \
    BYTES("log", 0, in.run.log, in.run.log_bytes, IL_LOG_BYTES_MAX, "output to append to the run's log")
#define LOG_AT                                                                                    \
    {                                                                                             \
        .name = "offset", .kind = WIRE_UINT64, .offset = AT(in.run.offset), .offset2 = AT(flags), \
        .bit  = IL_LOG_AT,                                                                        \
        .help = "where the log begins: what is there already is passed over, so "                 \
                "that a repeated call writes nothing twice"                                       \
    }

/* ---- locks --------------------------------------------------------------------------------------------------- */

static const struct wire_field acquire[] = {
    KEY,
    HOLDER_IF("the caller's own name for this piece of work, a new one for each attempt; made if "
              "left out"),
    NUMBER(INT64, "ttl_ms", 0, in.lock.ttl_ms, IL_TTL_MS_MIN, IL_TTL_MS_MAX,
           "the lease ends so long after its last renewal; 30 s by default"),
    WAIT(in.lock.wait_ms, "wait in the key's queue for so long; 0 by default: do not wait"),
    NUMBER(INT64, "settle_ms", 0, in.lock.settle_ms, 0, IL_TTL_MS_MAX,
           "keep the key closed so long after the lease has run out"),
    CHOICE("mode", 0, in.lock.mode, il__wire_modes, 0, "exclusive by default"),
    NUMBER(UINT32, "permits", 0, in.lock.permits, 1, IL_PERMITS_MAX,
           "mode permit: how many may hold the key at once"),
    TEXT("meta", 0, in.lock.meta, 0, IL_META_BYTES_MAX, "text that is shown to whoever asks"),
    TEXT("place", 0, in.lock.place, 0, IL_PLACE_BYTES_MAX,
         "where in the caller's program; told when the lock order is violated"),
};
static const struct wire_field renew[] = {
    KEY,
    HOLDER,
    FENCE,
    NUMBER(INT64, "ttl_ms", 0, in.lock.ttl_ms, IL_TTL_MS_MIN, IL_TTL_MS_MAX,
           "from now on; as granted by default"),
};
static const struct wire_field release[] = { KEY, HOLDER, FENCE };
static const struct wire_field break_[]  = {
     KEY,
     NUMBER(UINT64, "fence", 0, fence, 1, FENCE_MAX, "which lease of the key; required in a batch"),
     TEXT("reason", NEEDED, in.lock.reason, 1, IL_PLACE_BYTES_MAX, "told to the holder, and kept"),
     BOOL("now", 0, flags, IL_BREAK_NOW,
          "open the key at once, instead of when the holder has let go or its time is over"),
};
static const struct wire_field get[]  = { KEY };
static const struct wire_field list[] = {
    PREFIX(IL_KEY_BYTES_MAX),
    CURSOR,
    LIMIT,
    BOOL("waiters", 0, flags, IL_LIST_WAITERS, "those who wait, instead of those who hold"),
};
static const struct wire_field check_fence[] = { KEY, FENCE };
static const struct wire_field sweep[]       = { BOUND };

/* ---- runs ------------------------------------------------------------------------------------------------------ */

static const struct wire_field run_start[] = {
    KEY,
    TEXT("id", 0, in.run.id, 1, IL_ID_BYTES_MAX, "what a repeated start is known by; made if left out"),
    HOLDER_IF("who executes it; the id by default"),
    CHOICE("policy", 0, in.run.policy, il__wire_policies, 0,
           "what to do if the key has a live run already; join by default"),
    NUMBER(UINT32, "queue_max", 0, in.run.queue_max, 1, 0x7FFFFFFF,
           "pending runs of the key at most; 100 by default"),
    NUMBER(INT64, "ttl_ms", 0, in.run.ttl_ms, IL_TTL_MS_MIN, IL_TTL_MS_MAX,
           "of the run's lease; 30 s by default"),
    NUMBER(WAIT, "wait_ms", 0, in.run.wait_ms, 1, IL__WAIT_MS_MAX,
           "policies that queue: for so long; forever by default"),
    NUMBER(INT64, "settle_ms", 0, in.run.settle_ms, 0, IL_TTL_MS_MAX,
           "keep the key closed so long after the lease has run out"),
    NUMBER(INT64, "keep_ms", 0, in.run.keep_ms, 1, IL_DELAY_MS_MAX,
           "keep the run so long after its end; 30 days by default"),
    TEXT("trigger", 0, in.run.trigger, 0, IL_PLACE_BYTES_MAX, "how it was started: manual, schedule, …"),
    TEXT("by", 0, in.run.by, 0, IL_PLACE_BYTES_MAX, "by whom"),
    TEXT("meta", 0, in.run.meta, 0, IL_META_BYTES_MAX, "text that is shown to whoever asks"),
    TEXT("place", 0, in.run.place, 0, IL_PLACE_BYTES_MAX, "where in the caller's program"),
    BOOL("slot", 0, flags, IL_RUN_SLOT, "only the run's place: somebody starts it for real later"),
    NUMBER(UINT32, "live_max", 0, in.run.live_max, 1, 0x7FFFFFFF,
           "a new run only if the tenant has fewer live ones whose keys are of this class"),
    NUMBER(UINT32, "day_max", 0, in.run.day_max, 1, 0x7FFFFFFF,
           "... and has made fewer since midnight, UTC"),
};
static const struct wire_field run_stage[] = {
    RUN_ID,
    HOLDER_IF("who executes it; the id by default"),
    FENCE,
    TEXT("stage", 0, in.run.stage, 0, IL_TEXT_BYTES_MAX, "what it does now; as before if left out"),
    NUMBER(INT32, "progress", WIRE_MINUS, in.run.progress, 0, 100, "percent; as before if left out"),
    LOG,
    LOG_AT,
};
static const struct wire_field run_finish[] = {
    RUN_ID,
    HOLDER_IF("who executes it; the id by default"),
    FENCE,
    { .name    = "state",
      .kind    = WIRE_CHOICE,
      .flags   = NEEDED,
      .offset  = AT(in.run.state),
      .min     = 1,
      .choices = il__wire_run_states,
      .choose  = choose_run_state,
      .help    = "how it ended" },
    TEXT("error", 0, in.run.error, 0, IL_TEXT_BYTES_MAX, "why it failed"),
    LOG,
    LOG_AT,
};
static const struct wire_field run_cancel[] = {
    RUN_ID,
    TEXT("reason", NEEDED, in.run.error, 1, IL_TEXT_BYTES_MAX, "told to the run, and kept"),
};
static const struct wire_field run_get[]  = { RUN_ID, POLL };
static const struct wire_field run_list[] = {
    TEXT("key", 0, key, 1, IL_KEY_BYTES_MAX, "only of this key"),
    PREFIX(IL_KEY_BYTES_MAX),
    STATES(0, il__wire_run_states, choose_run_state),
    CURSOR,
    LIMIT,
};
static const struct wire_field run_log[] = {
    RUN_ID,
    NUMBER(UINT64, "offset", 0, in.run.offset, 0, 0, "from this byte of all that was written"),
    POLL,
};

/* ---- idempotency --------------------------------------------------------------------------------------------------- */

#define ONCE_KEY TEXT("key", NEEDED, key, 1, IL_ONCE_KEY_BYTES_MAX, "the idempotency key")
#define ATTEMPT                                             \
    TEXT("attempt", NEEDED, holder, 1, IL_HOLDER_BYTES_MAX, \
         "the caller's own name for this attempt; a new one for each")

static const struct wire_field once_begin[] = {
    ONCE_KEY,
    ATTEMPT,
    BYTES("fingerprint", 0, in.once.fingerprint, in.once.fingerprint_bytes,
          IL_FINGERPRINT_BYTES_MAX, "what tells one request from another: a hash of it"),
    NUMBER(INT64, "ttl_ms", 0, in.once.ttl_ms, IL_TTL_MS_MIN, IL_TTL_MS_MAX,
           "of the claim; repeating the begin renews it; 60 s by default"),
    NUMBER(INT64, "keep_ms", 0, in.once.keep_ms, 1, IL_DELAY_MS_MAX, "of the answer; 24 h by default"),
    TEXT("meta", 0, in.once.meta, 0, IL_META_BYTES_MAX,
         "told to whoever meets this claim: the id of what is being made"),
    POLL,
};
static const struct wire_field once_finish[] = {
    ONCE_KEY,
    ATTEMPT,
    TOKEN,
    BYTES("response", 0, in.once.response, in.once.response_bytes, IL_BLOB_BYTES_MAX,
          "the answer, kept byte for byte"),
    NUMBER(INT32, "code", 0, in.once.code, 0, 0, "kept with it: a status, an exit code"),
};
static const struct wire_field once_abandon[] = { ONCE_KEY, ATTEMPT, TOKEN };
static const struct wire_field once_get[]     = { ONCE_KEY };

/* ---- queues -------------------------------------------------------------------------------------------------------- */

static const struct wire_field push[] = {
    QUEUE,
    TEXT("id", 0, in.job.id, 1, IL_ID_BYTES_MAX, "what a repeated push is known by; made if left out"),
    BYTES("payload", 0, in.job.data, in.job.data_bytes, IL_BLOB_BYTES_MAX, "what the job is about"),
    TEXT("group", 0, in.job.group, 0, IL_KEY_BYTES_MAX, "at most group_limit of these run at once"),
    TEXT("key", 0, in.job.unique_key, 0, IL_KEY_BYTES_MAX,
         "a second job with this key is a duplicate while the first is live"),
    TEXT("unique_key", WIRE_ALIAS, in.job.unique_key, 0, IL_KEY_BYTES_MAX, "the same as key"),
    NUMBER(INT64, "unique_ms", 0, in.job.unique_ms, 0, IL_DELAY_MS_MAX,
           "and for so long after the first was pushed"),
    TEXT("parent", 0, in.job.parent, 0, IL_ID_BYTES_MAX, "id of the parent"),
    BOOL("is_parent", 0, flags, IL_PUSH_PARENT, "a parent: never claimed, completes after its children"),
    NUMBER(UINT32, "n_children", 0, in.job.n_children, 0, 0x7FFFFFFF,
           "of a parent: how many will come; 0: until it is sealed"),
    PRIORITY(in.job.priority),
    DELAY_MS("due so long from now"),
    TIME("run_at", 0, in.job.run_at_ms, "due at this time, instead of after a delay"),
    NUMBER(UINT32, "max_attempts", 0, in.job.max_attempts, 1, IL_ATTEMPTS_MAX, "the queue's by default"),
};
static const struct wire_field claim[] = {
    QUEUE,
    TEXT("worker", 0, holder, 1, IL_HOLDER_BYTES_MAX,
         "name of this worker, which claims one after another; made if left out"),
    TEXT("claim_id", 0, in.job.id, 1, IL_ID_BYTES_MAX,
         "what a repeated claim is known by, new for each claim; made if left out"),
    NUMBER(UINT32, "limit", 0, in.job.limit, 1, IL_CLAIM_JOBS_MAX, "jobs at most; 1 by default"),
    LEASE_MS(in.job.lease_ms, "of the claim; the queue's by default"),
    BOOL("silent", 0, flags, IL_CLAIM_SILENT,
         "this worker sends no heartbeats; the queue's timeouts count"),
    POLL,
};
static const struct wire_field heartbeat[] = {
    JOB_ID,
    TOKEN,
    LEASE_MS(in.job.lease_ms, "from now on; as claimed by default"),
    NUMBER(INT32, "progress", WIRE_MINUS, in.job.progress, 0, 100, "percent; as before if left out"),
    TEXT("message", 0, in.job.text, 0, IL_TEXT_BYTES_MAX, "what it does now"),
};
static const struct wire_field job_finish[] = {
    JOB_ID,
    TOKEN,
    BYTES("result", 0, in.job.data, in.job.data_bytes, IL_BLOB_BYTES_MAX, "what came of it"),
};
static const struct wire_field job_fail[] = {
    JOB_ID,
    TOKEN,
    TEXT("error", 0, in.job.text, 0, IL_TEXT_BYTES_MAX, "why"),
    BOOL("dead", 0, flags, IL_FAIL_DEAD, "do not try again"),
    DELAY_MS("until the next attempt; by default longer each time"),
};
static const struct wire_field snooze[] = { JOB_ID, TOKEN, DELAY_MS("due again so long from now") };
static const struct wire_field job_cancel[] = {
    JOB_ID,
    TEXT("reason", 0, in.job.text, 0, IL_PLACE_BYTES_MAX, "told to its worker, and kept"),
    BOOL("now", 0, flags, IL_CANCEL_NOW, "a running one too ends at once; its worker's token is void"),
};
static const struct wire_field job_id[]   = { JOB_ID };
static const struct wire_field job_get[]  = { JOB_ID, POLL };
static const struct wire_field job_list[] = {
    QUEUE,
    STATES(0, il__wire_job_states, choose_job_state),
    CURSOR,
    LIMIT,
};
static const struct wire_field job_purge[] = {
    QUEUE,
    STATES(NEEDED, il__wire_job_states, choose_job_state),
    NUMBER(INT64, "older_ms", 0, in.list.older_ms, 0, IL_DELAY_MS_MAX,
           "only what was changed last at least so long ago"),
    BOUND,
};

#define SETTING(type, field, member, flag, least, most, text) \
    NUMBER(type, field, flag, in.queue.member, least, most, text)
#define SPAN(member, text) SETTING(INT64, #member, member, 0, 1, IL_DELAY_MS_MAX, text)

static const struct wire_field queue_set[] = {
    QUEUE,
    CHOICE("strategy", 0, in.queue.strategy, il__wire_strategies, 1,
           "how jobs are claimed; pessimistic by default"),
    SETTING(INT32, "attempts", max_attempts, 0, 1, IL_ATTEMPTS_MAX,
            "of a job, until it is dead; 5 by default"),
    SETTING(INT32, "max_attempts", max_attempts, WIRE_ALIAS, 1, IL_ATTEMPTS_MAX, "the same as attempts"),
    SETTING(INT64, "lease_ms", lease_ms, 0, IL_TTL_MS_MIN, IL_TTL_MS_MAX, "of a claim; 30 s by default"),
    SPAN(backoff_ms, "before the second attempt; then twice as long each time; 1 s by default"),
    SPAN(backoff_max_ms, "but no longer than this; 1 h by default"),
    SETTING(INT32, "group_limit", group_limit, WIRE_MINUS, 1, INT32_MAX,
            "running jobs of one group at most; null: no limit, the default"),
    SETTING(INT32, "rate_n", rate_n, WIRE_MINUS, 1, IL__RATE_MAX,
            "at most so many claims within rate_ms; null: no limit, the default"),
    SPAN(rate_ms, "1 s by default"),
    SETTING(INT64, "keep_ms", keep_ms, WIRE_MINUS, 1, IL_DELAY_MS_MAX,
            "of completed and cancelled jobs; null: for ever; 7 days by default"),
    SETTING(INT64, "keep_dead_ms", keep_dead_ms, WIRE_MINUS, 1, IL_DELAY_MS_MAX,
            "of dead ones; null: for ever; 30 days by default"),
    SETTING(INT64, "processing_timeout_ms", processing_timeout_ms, 0, IL_TTL_MS_MIN, IL_TTL_MS_MAX,
            "pessimistic, silent workers: since the last update; 300 s by default"),
    SETTING(INT64, "executing_timeout_ms", executing_timeout_ms, 0, IL_TTL_MS_MIN, IL_TTL_MS_MAX,
            "optimistic, silent workers: since the start; 120 s by default"),
};
static const struct wire_field queue_pause[] = {
    QUEUE,
    TEXT("reason", 0, in.job.text, 0, IL_PLACE_BYTES_MAX, "shown with the queue"),
    BOOL("resume", 0, flags, IL_RESUME, "resume it"),
};
static const struct wire_field queue_list[] = { QUEUE_IF, PREFIX(IL_QUEUE_BYTES_MAX), CURSOR, LIMIT };

#define CRON_NAME TEXT("name", NEEDED, in.cron.name, 1, IL_QUEUE_BYTES_MAX, "name of the schedule")

static const struct wire_field cron_set[] = {
    CRON_NAME,
    QUEUE,
    TEXT("schedule", NEEDED, in.cron.schedule, 1, IL_PLACE_BYTES_MAX,
         "minute hour day month weekday, UTC; or @hourly and kin"),
    BYTES("payload", 0, in.cron.data, in.cron.data_bytes, IL_BLOB_BYTES_MAX, "of each job"),
    CHOICE("missed", 0, in.cron.missed, il__wire_missed,
           0, "ticks that came while nobody was there: skip them, one job for all, or all; skip by default"),
    PRIORITY(in.cron.priority),
    NUMBER(UINT32, "attempts", 0, in.cron.max_attempts, 1, IL_ATTEMPTS_MAX,
           "of each job; the queue's by default"),
    NUMBER(UINT32, "max_attempts", WIRE_ALIAS, in.cron.max_attempts, 1, IL_ATTEMPTS_MAX,
           "the same as attempts"),
};
static const struct wire_field cron_remove[] = { CRON_NAME };
static const struct wire_field cron_list[] = { QUEUE_IF, PREFIX(IL_QUEUE_BYTES_MAX), CURSOR, LIMIT };

/* ---- cache ------------------------------------------------------------------------------------------------------------- */

#define CACHE_KEY TEXT("key", NEEDED, key, 1, IL_KEY_BYTES_MAX, "name of the value")
#define BUILDER                                            \
    TEXT("holder", NEEDED, holder, 1, IL_HOLDER_BYTES_MAX, \
         "the caller's own name, should it be the one that builds")
#define SEEN                                     \
    NUMBER(                                      \
        UINT64, "token", 0, fence, 1, FENCE_MAX, \
        "that a WAIT told before: the value of that build, or a newer one, is a hit however old")
#define CHANCE                                      \
    NUMBER(UINT32, "chance", 0, in.cache.chance, 0, \
           0, "a random number, for refreshing before the value is stale; 0, the default: never early")

static const struct wire_field cache_get[]    = { CACHE_KEY, SEEN, CHANCE, POLL };
static const struct wire_field cache_lookup[] = {
    CACHE_KEY,
    HOLDER_IF("the caller's own name, should it be the one that builds; made if left out"),
    SEEN,
    LEASE_MS(in.cache.lease_ms, "time to build; repeating renews it; 30 s by default"),
    CHANCE,
    POLL,
};
static const struct wire_field cache_fill[] = {
    CACHE_KEY,
    BUILDER,
    TOKEN,
    BYTES("value", 0, in.cache.value, in.cache.value_bytes, IL_BLOB_BYTES_MAX, "what was built"),
    NUMBER(INT64, "ttl_ms", NEEDED, in.cache.ttl_ms, 1, IL_DELAY_MS_MAX,
           "fresh for so long after the build began"),
    NUMBER(INT64, "grace_ms", 0, in.cache.grace_ms, 0, IL_DELAY_MS_MAX,
           "usable as a stale one for so long after that"),
    BOOL("negative", 0, flags, IL_CACHE_NEGATIVE, "there is no value; code and value say why"),
    NUMBER(INT32, "code", 0, in.cache.code, 0, 0, "of a negative one"),
};
static const struct wire_field cache_abandon[] = { CACHE_KEY, BUILDER, TOKEN };
static const struct wire_field cache_drop[]    = {
       CACHE_KEY,
       BOOL("stale", 0, flags, IL_DROP_STALE, "keep the value as a stale one within its grace"),
};
static const struct wire_field cache_stats[] = { PREFIX(IL_KEY_BYTES_MAX) };

/* ---- all of them ------------------------------------------------------------------------------------------------------- */

#define ROW(type, label, table, text)                \
    [IL_OP_##type] = { .name     = label,            \
                       .fields   = (table),          \
                       .n_fields = ARRAY_LEN(table), \
                       .help     = text,             \
                       .bytes    = sizeof(il_op) }

const struct wire_object il__wire_inputs[IL_OP_COUNT] = {
    ROW(ACQUIRE, "Acquire", acquire, "take a key"),
    ROW(RENEW, "Renew", renew, "extend a lease"),
    ROW(RELEASE, "Release", release, "give a lease back"),
    ROW(BREAK, "Break", break_, "take a lease away from its holder"),
    ROW(GET, "Get", get, "who holds a key"),
    ROW(LIST, "List", list, "leases or waiters"),
    ROW(CHECK_FENCE, "CheckFence", check_fence, "is this the current fence of its key"),
    ROW(SWEEP, "SweepPass", sweep, "one bounded pass of recovery"),
    ROW(RUN_START, "RunStart", run_start, "start a run"),
    ROW(RUN_STAGE, "RunStage", run_stage, "tell what a run does"),
    ROW(RUN_FINISH, "RunFinish", run_finish, "end a run"),
    ROW(RUN_CANCEL, "RunCancel", run_cancel, "ask a run to stop"),
    ROW(RUN_GET, "RunGet", run_get, "show a run"),
    ROW(RUN_LIST, "RunList", run_list, "runs, newest first"),
    ROW(RUN_LOG, "RunLog", run_log, "read a run's log"),
    ROW(ONCE_BEGIN, "OnceBegin", once_begin, "claim an idempotency key"),
    ROW(ONCE_FINISH, "OnceFinish", once_finish, "store the answer"),
    ROW(ONCE_ABANDON, "OnceAbandon", once_abandon, "give the claim back without an answer"),
    ROW(ONCE_GET, "OnceGet", once_get, "show an idempotency key"),
    ROW(JOB_PUSH, "Push", push, "add a job to a queue"),
    ROW(JOB_CLAIM, "Claim", claim, "take jobs that are due"),
    ROW(JOB_HEARTBEAT, "Heartbeat", heartbeat, "extend a claim, tell progress"),
    ROW(JOB_FINISH, "JobFinish", job_finish, "a job is done"),
    ROW(JOB_FAIL, "JobFail", job_fail, "an attempt failed"),
    ROW(JOB_SNOOZE, "Snooze", snooze, "give a job back for later"),
    ROW(JOB_CANCEL, "JobCancel", job_cancel, "cancel a job"),
    ROW(JOB_RETRY, "JobRetry", job_id, "make a job due now"),
    ROW(JOB_SEAL, "JobSeal", job_id, "no more children"),
    ROW(JOB_GET, "JobGet", job_get, "show a job"),
    ROW(JOB_LIST, "JobList", job_list, "jobs of a queue, newest first"),
    ROW(JOB_PURGE, "JobPurge", job_purge, "delete jobs of a queue, by state"),
    ROW(QUEUE_SET, "QueueSet", queue_set,
        "make a queue, or change its settings; what is left out stays as it is"),
    ROW(QUEUE_PAUSE, "QueuePause", queue_pause, "pause a queue, or resume it"),
    ROW(QUEUE_LIST, "QueueList", queue_list, "queues by name"),
    ROW(CRON_SET, "CronSet", cron_set, "push a job whenever a schedule says so"),
    ROW(CRON_REMOVE, "CronRemove", cron_remove, "forget a schedule"),
    ROW(CRON_LIST, "CronList", cron_list, "schedules by name"),
    ROW(CACHE_GET, "CacheGet", cache_get, "look a value up; never builds"),
    ROW(CACHE_LOOKUP, "CacheLookup", cache_lookup, "look a value up, and build it if nobody does"),
    ROW(CACHE_FILL, "CacheFill", cache_fill, "store the value that was built"),
    ROW(CACHE_ABANDON, "CacheAbandon", cache_abandon, "give up building"),
    ROW(CACHE_DROP, "CacheDrop", cache_drop, "invalidate a value"),
    ROW(CACHE_STATS, "CacheStatsOf", cache_stats, "count values"),
};
