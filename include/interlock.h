/*
 * interlock.h: work that must happen once happens once.
 *
 * The public interface of libinterlock, and its only public header. It compiles alone as C11 and as
 * C++. What the words mean (key, class, tenant, holder, lease, fence, permit, waiter) is in
 * docs/GLOSSARY.md; what is promised, and the test that tries to break each promise, is in
 * docs/GUARANTEES.md.
 *
 * Conventions of every function below:
 *   - A function that can fail returns il_status and takes `il_error *reterr` last. reterr may be NULL;
 *     it is written only on failure. Out-parameters named ret are written only on IL_OK.
 *   - Strings are NUL-terminated UTF-8. Arguments are borrowed for the call unless it says otherwise.
 *   - Times are milliseconds. "Lease time" never moves when the wall clock is set.
 *   - All functions are safe to call from several threads on one handle, unless it says otherwise.
 */
#ifndef INTERLOCK_H
#define INTERLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IL_API __attribute__((visibility("default")))
#define IL_MUST_USE __attribute__((warn_unused_result))
#else
#define IL_API
#define IL_MUST_USE
#endif

/* ------------------------------------------------------------------------------------------------
 * Limits. Every one of them has a test that hits it.
 */
#define IL_KEY_BYTES_MAX 512    /* bytes of a key, without the NUL */
#define IL_HOLDER_BYTES_MAX 256 /* bytes of a holder */
#define IL_TENANT_BYTES_MAX 64  /* bytes of a tenant */
#define IL_META_BYTES_MAX 4096  /* bytes of a lease's meta */
#define IL_PLACE_BYTES_MAX 256  /* bytes of a place or of a reason */
#define IL_TTL_MS_MIN 1000      /* 1 s */
#define IL_TTL_MS_MAX 86400000  /* 24 h */
#define IL_TTL_MS_DEFAULT 30000 /* 30 s */
#define IL_PERMITS_MAX 1000000  /* N of a semaphore */
#define IL_BATCH_OPS_MAX 4096   /* ops in one il_apply() */
#define IL_PAGE_ITEMS_MAX 1000  /* items in one listing page */
#define IL_PAGE_ITEMS_DEFAULT 100
#define IL_FOREVER (-1)             /* wait_ms: no deadline */
#define IL_ID_BYTES_MAX 64          /* bytes of the id of a run or job; a UUID has 36 */
#define IL_BLOB_BYTES_MAX 1048576   /* payload, result, response, cache value: 1 MiB */
#define IL_TEXT_BYTES_MAX 4096      /* bytes of an error, a stage, a progress message */
#define IL_LOG_BYTES_MAX 1048576    /* of a run's log that are kept: its tail */
#define IL_ONCE_KEY_BYTES_MAX 255   /* bytes of an idempotency key */
#define IL_FINGERPRINT_BYTES_MAX 64 /* bytes of a request's fingerprint */
#define IL_QUEUE_BYTES_MAX 128      /* bytes of the name of a queue or of a cron entry */
#define IL_PRIORITY_MAX 1000        /* priorities are -1000..1000; the smallest comes first */
#define IL_ATTEMPTS_MAX 1000        /* max_attempts of a job; 5 by default */
#define IL_CLAIM_JOBS_MAX 1000      /* jobs in one claim */
#define IL_DELAY_MS_MAX (INT64_C(366) * 86400000) /* of a delay, a period, a retention: a year */

/* ------------------------------------------------------------------------------------------------
 * Statuses. One table: C name, number, wire name, HTTP status, exit status, worth retrying, text.
 * The numbers are part of the ABI and never change.
 */
/* clang-format off */
#define IL_STATUS_MAP(X)                                                                                           \
    X(OK,         0, "OK",                   200,  0, 0, "success")                                                \
    X(HELD,       1, "LOCK_HELD",            409, 75, 1, "the key is held by somebody else")                       \
    X(QUEUED,     2, "QUEUED",               202, 75, 1, "waiting in the key's queue")                             \
    X(LOST,       3, "LEASE_LOST",           409, 76, 0, "the lease has expired, was broken or was given back")    \
    X(NOT_HELD,   4, "NOT_HELD",             404,  1, 0, "nobody holds the key")                                   \
    X(STALE,      5, "FENCE_STALE",          409, 76, 0, "the fence is not the current one")                       \
    X(DEADLOCK,   6, "DEADLOCK",             409, 75, 1, "waiting would close a cycle of holders")                 \
    X(ORDER,      7, "LOCK_ORDER_VIOLATION", 409, 78, 0, "the key's class must be taken before one already held")  \
    X(MISMATCH,   8, "MISMATCH",             422, 65, 0, "the same request was made before with other arguments")  \
    X(CANCELLED,  9, "CANCELLED",            499, 75, 1, "the caller gave up")                                     \
    X(TIMEOUT,   10, "TIMEOUT",              504, 77, 1, "it took longer than allowed")                            \
    X(INVAL,     11, "BAD_REQUEST",          400, 64, 0, "an argument is not acceptable")                          \
    X(NOMEM,     12, "OUT_OF_MEMORY",        503, 71, 1, "out of memory")                                          \
    X(STORE,     13, "STORE_UNAVAILABLE",    503, 69, 1, "the store cannot be used")                               \
    X(FULL,      14, "STORE_FULL",           507, 69, 1, "the store has no space left")                            \
    X(CORRUPT,   15, "STORE_CORRUPT",        500, 69, 0, "the stored state is damaged")                            \
    X(NEWER,     16, "STORE_NEWER",          500, 69, 0, "the store was written by a newer version")               \
    X(LIMIT,     17, "LIMIT_EXCEEDED",       429, 75, 1, "a configured limit is reached")                          \
    X(DUPLICATE, 18, "DUPLICATE",            200,  0, 0, "it exists already")                                      \
    X(EMPTY,     19, "EMPTY",                204,  1, 1, "there is no job to do now")                              \
    X(BUSY,      20, "IN_PROGRESS",          409, 75, 1, "the first request with this key is still running")       \
    X(REPLAY,    21, "REPLAY",               200,  0, 0, "the request was answered before; this is the answer")    \
    X(HIT,       22, "HIT",                  200,  0, 0, "the cached value is fresh")                              \
    X(STALE_HIT, 23, "STALE_HIT",            200,  0, 0, "the cached value is old, but may still be used")         \
    X(LEAD,      24, "LEAD",                 202,  0, 0, "the caller is the one that builds the value")            \
    X(WAIT,      25, "WAIT",                 202, 75, 1, "somebody else is building the value")                    \
    X(NOT_FOUND, 26, "NOT_FOUND",            404,  1, 0, "there is no such thing")                                 \
    X(STATE,     27, "WRONG_STATE",          409,  1, 0, "its state does not allow that")
/* clang-format on */

typedef enum il_status {
#define X(name, num, wire, http, exit_status, retry, text) IL_##name = num,
    IL_STATUS_MAP(X)
#undef X
    IL_STATUS_COUNT = 28
} il_status;

/* The wire name, text, HTTP status, exit status and retryability of a status; never NULL. */
IL_API const char *il_status_name(il_status status);
IL_API const char *il_status_text(il_status status);
IL_API int         il_status_http(il_status status);
IL_API int         il_status_exit(il_status status);
IL_API int         il_status_retryable(il_status status);

/* What went wrong. Owned by the caller, of fixed size, so that reporting needs no memory. */
typedef struct il_error {
    il_status status;
    char      native[16];   /* the engine's own code (SQLite extended code, SQLSTATE), or "" */
    char      message[512]; /* fit to print as it is; names the thing; never holds a secret */
    char      holder[IL_HOLDER_BYTES_MAX + 1]; /* HELD: who holds the key; else "" */
    uint64_t  fence;                           /* HELD, STALE: the current fence; else 0 */
} il_error;

/* ------------------------------------------------------------------------------------------------
 * Modes and lease states.
 */
typedef enum il_mode {
    IL_MODE_EXCLUSIVE = 0, /* alone */
    IL_MODE_SHARED    = 1, /* with other shared ones */
    IL_MODE_PERMIT    = 2, /* one of N permits: a semaphore */
    IL_MODE_COUNT     = 3
} il_mode;

/* WAITING, OFFERED, HELD and CLOSING are live; the others are ways of having ended. */
typedef enum il_lease_state {
    IL_LEASE_NONE    = 0,
    IL_LEASE_WAITING = 1, /* a queued acquire */
    IL_LEASE_OFFERED = 2, /* the waiter's turn; it must confirm by repeating its acquire */
    IL_LEASE_HELD    = 3,
    IL_LEASE_CLOSING =
        4, /* broken or expired uncleanly: nobody may use it, nobody else gets the key yet */
    IL_LEASE_RELEASED    = 5,
    IL_LEASE_EXPIRED     = 6,
    IL_LEASE_BROKEN      = 7,
    IL_LEASE_STATE_COUNT = 8
} il_lease_state;

IL_API const char *il_mode_name(il_mode mode);                /* "exclusive", "shared", "permit" */
IL_API const char *il_lease_state_name(il_lease_state state); /* "held", "offered", … */

/* One lease, or one waiter, as the store shows it. Strings live as long as the op they came with. */
typedef struct il_lease_info {
    const char    *tenant;
    const char    *key;
    const char    *holder;
    const char    *meta;   /* "" when none was given */
    const char    *place;  /* "" when none was given */
    const char    *reason; /* CLOSING: why it was broken; else "" */
    uint64_t       fence;  /* 0 for a waiter */
    uint64_t       ticket; /* waiters only; smaller is older */
    il_mode        mode;
    uint32_t       permits; /* N of a semaphore, else 0 */
    il_lease_state state;
    uint32_t       n_waiters; /* waiters of this key */
    int64_t        ttl_ms;
    int64_t        age_ms;       /* since the grant, or since the waiter queued, in lease time */
    int64_t        remaining_ms; /* to the expiry, or to the waiter's deadline (IL_FOREVER) */
    int64_t renewed_ms; /* since the last renewal (or the grant); for a waiter, since its last sign of life */
    int64_t acquired_at_ms; /* the same as age_ms and remaining_ms, on the wall clock of whoever looks: */
    int64_t expires_at_ms; /* ms since 1970, for people to read */
} il_lease_info;

/* ------------------------------------------------------------------------------------------------
 * Operations. Everything that coordinates is an op applied to a store; the functions further down are
 * convenience over il_apply(). Columns: C name, number, wire name, changes the store, what it does.
 */
/* clang-format off */
#define IL_OP_MAP(X)                                                                                               \
    X(ACQUIRE,     1, "acquire",     1, "take a key, confirm an offer, renew an own lease, or queue for it")       \
    X(RENEW,       2, "renew",       1, "extend a lease by its TTL")                                               \
    X(RELEASE,     3, "release",     1, "give a lease back")                                                       \
    X(BREAK,       4, "break",       1, "take a lease away from its holder")                                       \
    X(GET,         5, "get",         0, "show who holds a key")                                                    \
    X(LIST,        6, "list",        0, "page through leases or waiters by key prefix")                            \
    X(CHECK_FENCE, 7, "check_fence", 0, "is this fence the current one of its key")                                \
    X(SWEEP,       8, "sweep",       1, "one bounded pass of recovery")                                            \
    X(RUN_START,   9, "run_start",   1, "start a run: its row and the lease of its key, or what the policy says")  \
    X(RUN_STAGE,  10, "run_stage",   1, "tell stage, progress and output of a run; its lease is not renewed")       \
    X(RUN_FINISH, 11, "run_finish",  1, "end a run and give its lease back")                                       \
    X(RUN_CANCEL, 12, "run_cancel",  1, "end a pending run, ask a running one to stop")                            \
    X(RUN_GET,    13, "run_get",     0, "show a run")                                                              \
    X(RUN_LIST,   14, "run_list",    0, "page through runs, newest first")                                         \
    X(RUN_LOG,    15, "run_log",     0, "read a run's log from an offset")                                         \
    X(ONCE_BEGIN, 16, "once_begin",  1, "claim an idempotency key, or get the answer that was given")              \
    X(ONCE_FINISH, 17, "once_finish", 1, "store the answer")                                                       \
    X(ONCE_ABANDON, 18, "once_abandon", 1, "give the claim back without an answer")                                \
    X(ONCE_GET,   19, "once_get",    0, "show an idempotency key")                                                 \
    X(JOB_PUSH,   20, "push",        1, "add a job to a queue")                                                    \
    X(JOB_CLAIM,  21, "claim",       1, "take jobs that are due")                                                  \
    X(JOB_HEARTBEAT, 22, "heartbeat", 1, "extend a claim, tell progress")                                          \
    X(JOB_FINISH, 23, "job_finish",  1, "a job is done; store its result")                                         \
    X(JOB_FAIL,   24, "job_fail",    1, "an attempt failed: again later, or dead")                                 \
    X(JOB_SNOOZE, 25, "snooze",      1, "give a job back for later without counting the attempt")                  \
    X(JOB_CANCEL, 26, "job_cancel",  1, "cancel a job, or ask its worker to stop")                                 \
    X(JOB_RETRY,  27, "job_retry",   1, "make a dead, cancelled or delayed job due now")                           \
    X(JOB_SEAL,   28, "job_seal",    1, "no more children: a parent completes with its last child")                \
    X(JOB_GET,    29, "job_get",     0, "show a job")                                                              \
    X(JOB_LIST,   30, "job_list",    0, "page through the jobs of a queue, newest first")                          \
    X(JOB_PURGE,  31, "job_purge",   1, "delete jobs of a queue, by state")                                        \
    X(QUEUE_SET,  32, "queue_set",   1, "make a queue, or change its settings")                                    \
    X(QUEUE_PAUSE, 33, "queue_pause", 1, "pause a queue, or resume it")                                            \
    X(QUEUE_LIST, 34, "queue_list",  0, "show queues: settings, depth, totals")                                    \
    X(CRON_SET,   35, "cron_set",    1, "push a job whenever a schedule says so; makes the queue")                 \
    X(CRON_REMOVE, 36, "cron_remove", 1, "forget a schedule")                                                      \
    X(CRON_LIST,  37, "cron_list",   0, "page through schedules by name")                                          \
    X(CACHE_GET,  38, "cache_get",   0, "look a value up; never builds")                                           \
    X(CACHE_LOOKUP, 39, "cache_lookup", 1, "look a value up, and build it if nobody does")                         \
    X(CACHE_FILL, 40, "cache_fill",  1, "store the value that was built")                                          \
    X(CACHE_ABANDON, 41, "cache_abandon", 1, "give up building")                                                   \
    X(CACHE_DROP, 42, "cache_drop",  1, "invalidate a value, and what is being built")                             \
    X(CACHE_STATS, 43, "cache_stats", 0, "count values by key prefix")
/* clang-format on */

typedef enum il_op_type {
    IL_OP_NONE = 0,
#define X(name, num, wire, writes, text) IL_OP_##name = num,
    IL_OP_MAP(X)
#undef X
    IL_OP_COUNT = 44
} il_op_type;

IL_API const char *il_op_name(il_op_type type); /* the wire name; "none" for IL_OP_NONE */

enum il_op_flags {
    IL_BREAK_NOW = 1 << 0, /* BREAK: open the key at once instead of when the holder has let go */
    IL_LIST_WAITERS = 1 << 1, /* LIST: waiters (in queue order within a key) instead of leases */
    IL_RUN_SLOT = 1 << 2, /* RUN_START: only the run's place; somebody starts it for real later */
    IL_CLAIM_SILENT = 1 << 3, /* JOB_CLAIM: this worker sends no heartbeats; the queue's timeouts count */
    IL_FAIL_DEAD = 1 << 4, /* JOB_FAIL: do not try again */
    IL_CANCEL_NOW = 1 << 5, /* JOB_CANCEL: a running one too ends at once; its worker's token is void */
    IL_PUSH_PARENT = 1 << 6, /* JOB_PUSH: a parent: never claimed, completes after its children */
    IL_RESUME      = 1 << 7, /* QUEUE_PAUSE: resume */
    IL_CACHE_NEGATIVE = 1 << 8, /* CACHE_FILL: there is no value; `code` and the value say why */
    IL_DROP_STALE     = 1 << 9, /* CACHE_DROP: keep the value as a stale one within its grace */
    /* RUN_STAGE, RUN_FINISH: the log begins at `offset`: what is there already is passed over, so that a repeated op writes
     * nothing twice. Without it the log is appended each time. */
    IL_LOG_AT = 1 << 10,
};

enum il_out_flags {
    IL_OUT_RENEWED       = 1 << 0, /* the caller had it already: nothing new was granted or made */
    IL_OUT_ORDER_WARNING = 1 << 1, /* ACQUIRE, RUN_START: against the learned lock order; see `detail` */
    IL_OUT_MORE = 1 << 2, /* SWEEP, JOB_PURGE: the bound was reached, there is more to do */
    IL_OUT_CANCEL = 1 << 3, /* a sign of life was taken, and the work should stop: `detail` says why */
    IL_OUT_SKIPPED = 1 << 4, /* RUN_START, policy skip: DUPLICATE, and nothing more was done */
    IL_OUT_PAUSED  = 1 << 5, /* JOB_CLAIM: EMPTY, for the queue is paused */
    IL_OUT_LIMITED = 1 << 6, /* JOB_CLAIM: EMPTY or fewer, for a rate or group limit is reached */
    IL_OUT_TAKEOVER = 1 << 7, /* ONCE_BEGIN: an earlier attempt ended without an answer; see `meta` */
    IL_OUT_NEGATIVE = 1 << 8, /* CACHE_*: the value says that there is none */
    IL_OUT_EARLY =
        1 << 9, /* CACHE_LOOKUP: LEAD, although the value is still fresh. CACHE_GET: HIT, and a lookup would lead */
    IL_OUT_OPTIMISTIC = 1 << 10, /* JOB_CLAIM: the queue's strategy is IL_STRATEGY_OPTIMISTIC */
    IL_OUT_LIVE_LIMIT = 1 << 11, /* RUN_START: LIMIT, for there are live_max live runs of the class */
    IL_OUT_DAY_LIMIT = 1 << 12, /* RUN_START: LIMIT, for day_max runs of the class were made today */
};

/* ---- runs ----------------------------------------------------------------------------------------- */

/* PENDING and RUNNING are live. The numbers are part of the ABI; the names are those of the wire. */
typedef enum il_run_state {
    IL_RUN_NONE        = 0,
    IL_RUN_PENDING     = 1,
    IL_RUN_RUNNING     = 2,
    IL_RUN_COMPLETED   = 3,
    IL_RUN_FAILED      = 4,
    IL_RUN_CANCELLED   = 5,
    IL_RUN_TIMEOUT     = 6,
    IL_RUN_INTERRUPTED = 7,
    IL_RUN_STATE_COUNT = 8
} il_run_state;

/* What a start does when its key has a live run already. */
typedef enum il_policy {
    IL_POLICY_JOIN            = 0, /* DUPLICATE with the live run */
    IL_POLICY_REJECT          = 1, /* HELD */
    IL_POLICY_SKIP            = 2, /* DUPLICATE, flagged SKIPPED: fine, nothing to do */
    IL_POLICY_QUEUE           = 3, /* wait for its turn, first in, first out; at most queue_max */
    IL_POLICY_REPLACE_PENDING = 4, /* cancel the pending ones and wait in their place */
    IL_POLICY_CANCEL_RUNNING  = 5, /* ask the running one to stop, and wait until it has */
    IL_POLICY_COUNT           = 6
} il_policy;

IL_API const char *il_run_state_name(il_run_state state); /* "PENDING", "RUNNING", … */
IL_API const char *il_policy_name(il_policy policy);      /* "join", "replace-pending", … */

/* One run. Strings live as long as the op they came with; "" when there is nothing to say. */
typedef struct il_run_info {
    const char  *tenant;
    const char  *id;
    const char  *key;
    const char  *holder;  /* who executes it; "" for a slot that nobody has started */
    const char  *trigger; /* how it was started: "manual", "schedule", … */
    const char  *by;      /* by whom */
    const char  *meta;
    const char  *stage;
    const char  *error; /* why it failed or was cancelled; or why it should stop */
    il_run_state state;
    uint32_t     cancelled; /* a stop was asked for */
    uint32_t     n_joined;  /* starts that were told this run's id instead */
    int32_t      progress;  /* percent; -1 = unknown */
    uint32_t     position;  /* PENDING: place in the queue, 1 = next; else 0 */
    uint64_t     fence;     /* 0 while PENDING */
    uint64_t     seq;       /* order of starts in the store */
    uint64_t     log_bytes; /* written so far; the last IL_LOG_BYTES_MAX of them are kept */
    int64_t      ttl_ms;
    int64_t      remaining_ms;  /* RUNNING: to the lease's expiry; else 0 */
    int64_t      created_at_ms; /* wall clock, ms since 1970; 0 = not yet */
    int64_t      started_at_ms;
    int64_t      ended_at_ms;
    int64_t      updated_at_ms;
} il_run_info;

typedef struct il_run_in { /* RUN_*; op.key and op.holder name the lock key and who executes (RUN_START) */
    const char  *id;        /* made by the caller (il_uuid()): what a repeated start is known by */
    il_policy    policy;    /* RUN_START */
    uint32_t     queue_max; /* RUN_START: pending runs of the key at most; 0 = 100 */
    int64_t      ttl_ms;    /* RUN_START; 0 = IL_TTL_MS_DEFAULT */
    int64_t      wait_ms;   /* RUN_START, policies that queue: 0 = IL_FOREVER */
    int64_t      settle_ms; /* RUN_START */
    int64_t      keep_ms;   /* RUN_START: history is kept this long after the end; 0 = 30 days */
    const char  *trigger;   /* RUN_START */
    const char  *by;        /* RUN_START */
    const char  *meta;      /* RUN_START */
    const char  *place;     /* RUN_START */
    const char  *stage;     /* RUN_STAGE; NULL = as before */
    int32_t      progress;  /* RUN_STAGE: 0..100; -1 = as before */
    il_run_state state;     /* RUN_FINISH: how it ended */
    const char  *error;     /* RUN_FINISH: why it failed; RUN_CANCEL: the reason, required */
    const void  *log;       /* RUN_STAGE, RUN_FINISH: output to append */
    size_t       log_bytes;
    uint64_t     offset; /* RUN_LOG: from which byte of all that was written; IL_LOG_AT: at which */
    uint32_t     live_max; /* RUN_START: live runs of the key's class at most; 0 = no limit */
    uint32_t     day_max;  /* ... and runs made since midnight, UTC, ended ones too; 0 = no limit */
} il_run_in;

/* ---- idempotency --------------------------------------------------------------------------------------- */

typedef struct il_once_in { /* ONCE_*; op.key is the idempotency key, op.holder the attempt, op.fence its token */
    const void *fingerprint; /* ONCE_BEGIN: what tells one request from another (a hash); may be NULL */
    size_t      fingerprint_bytes;
    int64_t     ttl_ms;  /* ONCE_BEGIN: of the claim; 0 = 60 s. Repeating the begin renews it */
    int64_t     keep_ms; /* ONCE_BEGIN: of the answer; 0 = 24 h */
    const char *meta; /* ONCE_BEGIN: told to whoever meets this claim: the id of what is being made */
    const void *response; /* ONCE_FINISH: kept byte for byte */
    size_t      response_bytes;
    int32_t     code; /* ONCE_FINISH: kept with it: a status, an exit code */
} il_once_in;

/* ---- jobs ------------------------------------------------------------------------------------------------ */

/* SCHEDULED, READY and RUNNING are live. */
typedef enum il_job_state {
    IL_JOB_NONE        = 0,
    IL_JOB_SCHEDULED   = 1,
    IL_JOB_READY       = 2,
    IL_JOB_RUNNING     = 3,
    IL_JOB_COMPLETED   = 4,
    IL_JOB_FAILED      = 5, /* dead: no attempts left */
    IL_JOB_CANCELLED   = 6,
    IL_JOB_STATE_COUNT = 7
} il_job_state;

IL_API const char *il_job_state_name(il_job_state state); /* "SCHEDULED", "READY", … */
/* Also PENDING (READY), PROCESSING and EXECUTING (RUNNING); IL_JOB_NONE when it is none. */
IL_API il_job_state il_job_state_parse(const char *name);
/* Also COMPLETE (COMPLETED); IL_RUN_NONE when it is none. */
IL_API il_run_state il_run_state_parse(const char *name);

typedef struct il_job_info {
    const char *tenant;
    const char *queue;
    const char *id;
    const char *parent;     /* id of the parent; "" = none */
    const char *group;      /* group key; "" = none */
    const char *unique_key; /* "" = none */
    const char *worker;     /* RUNNING: who; later: who it was */
    const char *error;      /* of the last attempt that failed; of the cancellation */
    const char *message;    /* of the last progress report */
    const void *payload; /* JOB_GET, JOB_CLAIM; JOB_LIST: NULL if it has more than IL_TEXT_BYTES_MAX */
    size_t      payload_bytes;
    const void *result; /* JOB_GET; JOB_LIST: as the payload. Both end with a NUL, for those who print them */
    size_t       result_bytes;
    il_job_state state;
    int32_t      priority;
    uint32_t     attempt; /* claims so far */
    uint32_t     max_attempts;
    int32_t      progress;                                        /* percent; -1 = unknown */
    uint32_t     cancelled;                                       /* its worker was asked to stop */
    uint32_t     is_parent;                                       /* then: */
    uint32_t n_children, n_children_completed, n_children_failed; /* counted from the children */
    uint64_t token;        /* of the last attempt; 0 = never claimed */
    uint64_t seq;          /* order of pushes in the store */
    int64_t  remaining_ms; /* RUNNING: to the end of the claim, in lease time; else 0 */
    int64_t  run_at_ms;    /* wall clock, ms since 1970; 0 = not yet */
    int64_t  created_at_ms;
    int64_t  started_at_ms; /* of the last attempt */
    int64_t  updated_at_ms;
    int64_t  completed_at_ms;
} il_job_info;

typedef struct il_job_in { /* JOB_*; op.key is the queue (PUSH, CLAIM, LIST, PURGE), op.holder the worker (CLAIM), op.fence the token */
    const char *id; /* JOB_PUSH: made by the caller (il_uuid()); JOB_CLAIM: the claim's own id, new for each claim */
    const void *data; /* JOB_PUSH: payload; JOB_FINISH: result */
    size_t      data_bytes;
    const char *group;      /* JOB_PUSH: at most group_limit of these run at once */
    const char *unique_key; /* JOB_PUSH: a second one is a DUPLICATE while the first is live … */
    int64_t     unique_ms;  /* … or for this long after its push */
    const char *parent;     /* JOB_PUSH: id of the parent */
    uint32_t    n_children; /* JOB_PUSH of a parent: how many will come; 0 = until JOB_SEAL */
    int32_t     priority;   /* JOB_PUSH: the smallest comes first */
    int64_t     delay_ms;  /* JOB_PUSH, JOB_SNOOZE; JOB_FAIL: until the next attempt, 0 = backoff */
    int64_t     run_at_ms; /* JOB_PUSH: instead of a delay, on the wall clock; 0 = none */
    uint32_t    max_attempts; /* JOB_PUSH; 0 = the queue's */
    uint32_t    limit;        /* JOB_CLAIM: 1..IL_CLAIM_JOBS_MAX, 0 = 1 */
    int64_t     lease_ms; /* JOB_CLAIM, JOB_HEARTBEAT; 0 = the queue's (HEARTBEAT: as claimed) */
    int32_t     progress; /* JOB_HEARTBEAT: 0..100; -1 = as before */
    const char *text; /* JOB_HEARTBEAT: message; JOB_FAIL: error; JOB_CANCEL, QUEUE_PAUSE: reason. NULL = none */
} il_job_in;

typedef enum il_strategy {
    IL_STRATEGY_PESSIMISTIC = 0, /* find, lock and mark in one statement */
    IL_STRATEGY_OPTIMISTIC  = 1, /* read candidates, then compare and set each */
    IL_STRATEGY_COUNT       = 2
} il_strategy;

/* Settings of a queue. In QUEUE_SET 0 leaves a setting as it is (a new queue gets the default), and -1
 * (IL_FOREVER) takes a limit away or keeps for ever. */
typedef struct il_queue_opts {
    int32_t strategy;     /* 1 + enum il_strategy; 0 = as it is */
    int32_t max_attempts; /* default 5 */
    int64_t lease_ms;     /* of a claim; default 30 s */
    int64_t backoff_ms;   /* before the second attempt; then twice as long each time. Default 1 s */
    int64_t backoff_max_ms; /* default 1 h */
    int32_t group_limit;    /* running jobs of one group at most; default -1, none */
    int32_t rate_n;       /* at most this many claims … ; default -1, no limit; at most 10,000 */
    int64_t rate_ms;      /* … within any period of this length; default 1 s */
    int64_t keep_ms;      /* of completed and cancelled jobs; default 7 days */
    int64_t keep_dead_ms; /* of dead ones; default 30 days */
    int64_t processing_timeout_ms; /* pessimistic, IL_CLAIM_SILENT: since the last update; default 300 s */
    int64_t executing_timeout_ms; /* optimistic, IL_CLAIM_SILENT: since the start; default 120 s */
} il_queue_opts;

typedef struct il_queue_info {
    const char   *tenant;
    const char   *name;
    const char   *reason; /* why it is paused */
    uint32_t      paused;
    uint32_t      n_workers;   /* that claimed within the last minute */
    il_queue_opts opts;        /* strategy is enum il_strategy here, plus 1 */
    uint64_t      n_scheduled; /* jobs by state, counted from their rows */
    uint64_t      n_ready;
    uint64_t      n_running;
    uint64_t      n_dead;
    int64_t       oldest_ms; /* how long the oldest ready job has been due; 0 = none */
    uint64_t pushed, claimed, completed, failed, dead, snoozed, cancelled, recovered, duplicates,
        stale; /* totals since the queue was made */
} il_queue_info;

/* What to do about ticks that came while nobody was there. */
typedef enum il_missed {
    IL_MISSED_SKIP  = 0, /* go on with the next tick */
    IL_MISSED_ONE   = 1, /* one job for all of them */
    IL_MISSED_ALL   = 2, /* one job each */
    IL_MISSED_COUNT = 3
} il_missed;

IL_API const char *il_missed_name(il_missed missed);       /* "skip", "one", "all" */
IL_API const char *il_strategy_name(il_strategy strategy); /* "pessimistic", "optimistic" */

typedef struct il_cron_in { /* CRON_*; op.key is the queue (CRON_LIST: NULL = all) */
    const char *name;       /* of the entry, one per tenant */
    const char *schedule; /* five fields, UTC: minute hour day month weekday; or @hourly and kin */
    const void *data;     /* payload */
    size_t      data_bytes;
    il_missed   missed;
    int32_t     priority;
    uint32_t    max_attempts;
} il_cron_in;

typedef struct il_cron_info {
    const char *tenant;
    const char *name;
    const char *queue;
    const char *schedule;
    const void *payload;
    size_t      payload_bytes;
    il_missed   missed;
    int32_t     priority;
    uint32_t    max_attempts;
    uint64_t    n_ticks;    /* jobs pushed so far */
    int64_t     next_at_ms; /* wall clock */
    int64_t     last_at_ms; /* the tick that was pushed last; 0 = none */
} il_cron_info;

/* ---- cache ----------------------------------------------------------------------------------------------- */

typedef struct il_cache_in { /* CACHE_*; op.key is the key, op.holder who would build, op.fence the token */
    const void *value; /* CACHE_FILL */
    size_t      value_bytes;
    int64_t     ttl_ms;   /* CACHE_FILL: fresh for this long after the build *began* */
    int64_t     grace_ms; /* CACHE_FILL: usable as stale for this long after that */
    int64_t lease_ms; /* CACHE_LOOKUP: time to build; repeating renews it; 0 = IL_TTL_MS_DEFAULT */
    uint32_t chance; /* CACHE_GET, CACHE_LOOKUP: a random number for early refresh; 0 = never early */
    int32_t code;    /* CACHE_FILL, negative: why there is no value */
} il_cache_in;

typedef struct il_cache_info {
    uint64_t n_entries; /* with a value that may be used */
    uint64_t n_bytes;   /* of their values */
    uint64_t n_fresh;
    uint64_t n_stale;
    uint64_t n_negative;
    uint64_t n_building;
} il_cache_info;

typedef struct il_lock_in { /* ACQUIRE; RENEW uses ttl_ms, BREAK uses reason */
    int64_t  ttl_ms;        /* 0 = IL_TTL_MS_DEFAULT (RENEW: as granted) */
    int64_t  wait_ms;   /* 0 = do not queue; a queued holder that repeats with 0 leaves the queue */
    int64_t  settle_ms; /* keep the key closed this long after an expiry; 0..IL_TTL_MS_MAX */
    il_mode  mode;
    uint32_t permits;   /* IL_MODE_PERMIT: N, 1..IL_PERMITS_MAX; else 0 */
    const char *meta;   /* free text shown to whoever asks; NULL = none */
    const char *place;  /* where in the caller's program; NULL = none */
    const char *reason; /* BREAK: why; required */
} il_lock_in;

typedef struct il_list_in { /* LIST, SWEEP, RUN_LIST, JOB_LIST, JOB_PURGE, QUEUE_LIST, CRON_LIST, CACHE_STATS */
    const char *prefix; /* of the key (LIST, RUN_LIST, CACHE_STATS) or name (QUEUE_LIST, CRON_LIST); NULL = all */
    const char *cursor; /* `next` of the page before; NULL = first page */
    uint32_t    limit;  /* 0 = IL_PAGE_ITEMS_DEFAULT; SWEEP, JOB_PURGE: bound per kind, 0 = 1000 */
    uint32_t states; /* RUN_LIST, JOB_LIST, JOB_PURGE: 1 << state, or'ed; 0 = all (JOB_PURGE: required) */
    int64_t older_ms; /* JOB_PURGE: only what was changed last at least this long ago */
} il_list_in;

typedef struct il_sweep_out {
    uint32_t n_expired;   /* leases that ran out */
    uint32_t n_offered;   /* waiters that got an offer */
    uint32_t n_dropped;   /* waiters whose deadline passed or who gave no sign of life */
    uint32_t n_deadlocks; /* waiters cancelled to open a cycle */
    uint32_t n_runs;      /* runs that ended because their worker was gone */
    uint32_t n_jobs;      /* claims that ran out: their jobs are ready again, or dead */
    uint32_t n_ticks;     /* jobs pushed by schedules */
    uint32_t n_purged; /* rows of history, answers and cached values that were kept long enough */
} il_sweep_out;

typedef struct il_op_out {
    uint32_t flags;    /* enum il_out_flags */
    uint32_t position; /* QUEUED: 1 = next */
    uint64_t fence;    /* the lease's (ACQUIRE, RENEW) or token; else the key's newest, 0 = none */
    uint64_t ticket;   /* QUEUED */
    int64_t remaining_ms; /* OK: to the expiry; QUEUED: to the end of the wait; see src/core/README.md */
    const il_lease_info *items; /* HELD: one that is in the way; GET, LIST: the leases */
    size_t               n_items;
    const char          *next;   /* listings: cursor of the next page, NULL = this was the last */
    const char          *detail; /* a sentence: the cycle, the edge, what is wrong; or NULL */
    il_sweep_out         sweep;
    const il_run_info   *runs; /* RUN_*: the run; DUPLICATE, HELD: the one in the way */
    size_t               n_runs;
    const il_job_info *jobs; /* JOB_*: the job, or those claimed; DUPLICATE: the one that exists */
    size_t             n_jobs;
    const il_queue_info *queues; /* QUEUE_LIST, QUEUE_SET, QUEUE_PAUSE */
    size_t               n_queues;
    const il_cron_info  *crons; /* CRON_LIST, CRON_SET */
    size_t               n_crons;
    il_cache_info        cache; /* CACHE_STATS */
    const void          *value; /* REPLAY: the answer; CACHE_*: the value; RUN_LOG: the text */
    size_t               value_bytes; /* value[value_bytes] is a NUL, for those who print it */
    uint64_t offset; /* RUN_LOG: of the first byte of value: more than asked when that is gone */
    const char *meta; /* ONCE_*: as given to the begin that has the key; OK: to the one before, or "" */
    int32_t     code;   /* REPLAY, CACHE_* negative */
    int64_t     age_ms; /* CACHE_*: since the build of the value began; ONCE_*: since the begin */
} il_op_out;

/*
 * One operation: input, status and output together. Zero-initialise, set `type` and the inputs, apply,
 * read `status` and `out`, then il_op_release(). After a release the op can be applied again.
 */
typedef struct il_op {
    il_op_type  type;
    uint32_t    flags;  /* enum il_op_flags */
    const char *tenant; /* NULL = the handle's */
    const char *key;
    const char *holder;
    uint64_t fence; /* RENEW, RELEASE, BREAK, CHECK_FENCE; the token of a run, attempt, job or build */
    union {
        il_lock_in    lock;
        il_list_in    list;
        il_run_in     run;
        il_once_in    once;
        il_job_in     job;
        il_queue_opts queue;
        il_cron_in    cron;
        il_cache_in   cache;
        uint64_t      reserved[24];
    } in;
    il_status status;
    il_op_out out;
    void     *mem;     /* the library's; freed by il_op_release() */
    uint32_t  wake[2]; /* the library's; what il_wait() waits for */
    struct {
        uint16_t tenant, key, holder, root;
    } n_bytes; /* the library's; lengths of the names */
    uint64_t reserved[6];
} il_op;

/* Free what `out` points to and reset `status` and `out`. The inputs stay. Accepts a zeroed op. */
IL_API void il_op_release(il_op *op);

/* ------------------------------------------------------------------------------------------------
 * The handle.
 */
typedef struct il il;

/*
 * Where time comes from, for tests. `boot_ms` never jumps and counts while suspended, `wall_ms` is what
 * a wall clock shows, `boot_id` changes when `boot_ms` starts anew. Works only on a store that was
 * created with `?clock=test`, and such a store opens only with a clock.
 */
typedef struct il_clock {
    int64_t (*boot_ms)(void *cookie);
    int64_t (*wall_ms)(void *cookie);
    const char *(*boot_id)(void *cookie);
    void *cookie;
} il_clock;

/* One line per applied batch, for people who look for a fault. Called on the applying thread. */
typedef void il_trace_fn(void *cookie, const char *line);

typedef struct il_open_opts {
    size_t             struct_size; /* sizeof(il_open_opts) */
    const char        *tenant;      /* NULL = "default" */
    const char *const *ranks;       /* classes, first to be taken first; NULL = none declared */
    size_t             n_ranks;
    int64_t            timeout_ms; /* give up on a busy store after; 0 = 5,000 */
    const il_clock    *clock;      /* borrowed until il_close(); NULL = the machine's */
    il_trace_fn       *trace;      /* NULL = none */
    void              *trace_cookie;
    uint32_t           flags; /* enum il_open_flags */
} il_open_opts;

enum il_open_flags {
    IL_OPEN_EXISTING = 1 << 0, /* do not create a store that is not there */
    IL_OPEN_NO_SWEEP = 1 << 1, /* no recovery in the background; the caller applies IL_OP_SWEEP itself */
};

#define IL_OPEN_OPTS_INIT                                           \
    {                                                               \
        sizeof(il_open_opts), NULL, NULL, 0, 0, NULL, NULL, NULL, 0 \
    }

/*
 * Open a store: `memory:` (private to the handle), `memory:NAME` (shared by the handles of this process
 * that give the same name, and the same ranks and clock), `sqlite:PATH`, `postgres://…` or `redis://…` (docs/LIBRARY.md). opts may be NULL. On IL_OK *ret is a handle that the
 * caller ends with il_close().
 *
 * Returns IL_OK, IL_INVAL (bad URL or option), IL_STORE, IL_FULL, IL_CORRUPT, IL_NEWER, IL_NOMEM.
 * Blocks for I/O, at most opts->timeout_ms for a busy store. Do not fork() without exec with an open
 * handle: the child must not use it.
 */
IL_API IL_MUST_USE il_status il_open(const char *url, const il_open_opts *opts, il **ret,
                                     il_error *reterr);

/* Close: stops renewals, frees. Leases not released stay until they expire. No call may be under way
 * and every il_lease, il_run, il_once, il_job and il_build must have been freed. NULL is fine. */
IL_API void il_close(il *h);

/*
 * Apply a batch: each op atomic, all of them one commit. `n` is 1..IL_BATCH_OPS_MAX.
 *
 * IL_OK: every op has its own status and is as durable as the engine promises. Anything else: the
 * outcome of every op is unknown and all of them may be repeated as they are; repeating is safe.
 * IL_INVAL (n out of range) changes nothing. An op that is itself unacceptable gets IL_INVAL in its own
 * status and does not disturb the others. Never waits for a key: an ACQUIRE that must wait is QUEUED.
 */
IL_API IL_MUST_USE il_status il_apply(il *h, il_op *ops, size_t n, il_error *reterr);

/*
 * Sleep until an op should be repeated. A queued ACQUIRE or RUN_START (status IL_QUEUED): its turn has come, its
 * wait was cancelled, five seconds have passed (a waiter must give a sign of life), or its wait is over.
 * ONCE_BEGIN (IL_BUSY), CACHE_GET and CACHE_LOOKUP (IL_WAIT): the answer or value may be there, or the other may be gone. JOB_CLAIM
 * (IL_EMPTY): a job may be due. RUN_GET, RUN_LOG and JOB_GET (IL_OK): it may have changed.
 * `timeout_ms` may shorten that; IL_FOREVER does not. Returns IL_OK (repeat it), IL_TIMEOUT (nothing
 * happened for timeout_ms), IL_CANCELLED (after il_interrupt()), IL_INVAL (not such an op of this handle),
 * IL_NOMEM (no thread to be had for the sweeps that a wait relies on).
 */
IL_API IL_MUST_USE il_status il_wait(il *h, const il_op *op, int64_t timeout_ms);

/* Make every il_wait(), il_acquire() and other call that waits of this handle return IL_CANCELLED, now and from now
 * on. Other calls go on working. Callable from any thread, not from a signal handler. */
IL_API void il_interrupt(il *h);

/* ------------------------------------------------------------------------------------------------
 * Leases.
 */
typedef struct il_lease il_lease;

enum il_acquire_flags {
    IL_NO_RENEW = 1 << 0, /* do not renew in the background */
};

typedef struct il_acquire_opts {
    size_t      struct_size; /* sizeof(il_acquire_opts) */
    const char *holder;      /* NULL = a new UUIDv7 */
    int64_t     ttl_ms;      /* 0 = IL_TTL_MS_DEFAULT */
    int64_t     wait_ms;     /* 0 = try once, IL_FOREVER = no deadline */
    int64_t     settle_ms;
    il_mode     mode;
    uint32_t    permits;
    const char *meta;
    const char *place;
    uint32_t    flags; /* enum il_acquire_flags */
    int64_t stop_ms;   /* time the caller needs to stop its work; the lease counts as lost this much
                            before its local deadline. At most a third of the TTL. */
    /*
     * Called once, on the watchdog's thread, when the lease is lost: refused by the store, or the local
     * deadline minus stop_ms is reached without a renewal. Must not block, and must neither release nor free
     * the lease: both wait for this call to return.
     */
    void (*on_lost)(void *cookie, il_lease *lease, const char *why);
    /* Called after each renewal with the new local deadline (CLOCK_BOOTTIME, ns). Must not block. */
    void (*on_renewed)(void *cookie, il_lease *lease, int64_t deadline_ns);
    void *cookie;
} il_acquire_opts;

#define IL_ACQUIRE_OPTS_INIT                                                                             \
    {                                                                                                    \
        sizeof(il_acquire_opts), NULL, 0, 0, 0, IL_MODE_EXCLUSIVE, 0, NULL, NULL, 0, 0, NULL, NULL, NULL \
    }

/*
 * Take `key`, waiting at most opts->wait_ms for it, and keep it renewed from a thread of the handle.
 * opts may be NULL. On IL_OK *ret is a lease that the caller ends with il_lease_release() and then
 * il_lease_free().
 *
 * Returns IL_OK, IL_HELD (also when the wait ran out), IL_DEADLOCK, IL_ORDER, IL_MISMATCH, IL_LOST (this
 * holder's lease of this key ended less than a minute ago, and is still remembered), IL_CANCELLED, IL_INVAL, IL_STORE, IL_FULL,
 * IL_NOMEM. After any failure nothing is held and nothing is queued, as far as the store can be reached.
 */
IL_API IL_MUST_USE il_status il_acquire(il *h, const char *key, const il_acquire_opts *opts,
                                        il_lease **ret, il_error *reterr);

/* Renew now, beside the automatic renewals. IL_OK, IL_LOST, or IL_STORE and kin: then still uncertain. */
IL_API IL_MUST_USE il_status il_lease_renew(il_lease *lease, il_error *reterr);

/* Give the lease back. IL_OK also when repeated; IL_LOST when it had ended before. No more renewals
 * follow, whatever is returned. on_lost is not called any more. */
IL_API il_status il_lease_release(il_lease *lease, il_error *reterr);

/* Forget the lease: no more renewals, nothing is released. NULL is fine. */
IL_API void il_lease_free(il_lease *lease);

IL_API const char *il_lease_key(const il_lease *lease);
IL_API const char *il_lease_holder(const il_lease *lease);
IL_API uint64_t    il_lease_fence(const il_lease *lease);

/* IL_OK while held; IL_LOST once lost (also by the local deadline); IL_NOT_HELD after a release. */
IL_API il_status il_lease_status(const il_lease *lease);
/* A descriptor that polls readable once the lease is lost. The library's: do not read or close it. */
IL_API int il_lease_fd(const il_lease *lease);
/* The local deadline: when the last successful renewal was sent, plus TTL, minus a margin. */
IL_API int64_t il_lease_deadline_ns(const il_lease *lease); /* CLOCK_BOOTTIME */
IL_API int64_t il_lease_remaining_ms(const il_lease *lease); /* to the local deadline, never below 0 */

/* ------------------------------------------------------------------------------------------------
 * Single calls, each one op.
 */

/* Is `fence` the current one of `key`? IL_OK, IL_STALE (reterr->fence is the current one, 0 = free). */
IL_API IL_MUST_USE il_status il_check_fence(il *h, const char *key, uint64_t fence, il_error *reterr);

/* Take the lease `fence` of `key` away; `flags` may hold IL_BREAK_NOW. IL_OK, IL_NOT_HELD, IL_STALE. */
IL_API IL_MUST_USE il_status il_break(il *h, const char *key, uint64_t fence, const char *reason,
                                      uint32_t flags, il_error *reterr);

/* Who holds `key`: *op is filled (il_op_release() it). IL_OK or IL_NOT_HELD. */
IL_API IL_MUST_USE il_status il_get(il *h, const char *key, il_op *op, il_error *reterr);

/* A page of leases (or, with IL_LIST_WAITERS, waiters) whose key starts with `prefix` (NULL = all),
 * ordered by key, then fence (or ticket). *op is filled (il_op_release() it); op->out.next is the cursor. */
IL_API IL_MUST_USE il_status il_list(il *h, const char *prefix, const char *cursor, uint32_t limit,
                                     uint32_t flags, il_op *op, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Runs: executions that cannot start twice.
 */
typedef struct il_run il_run;

typedef struct il_run_opts {
    size_t      struct_size; /* sizeof(il_run_opts) */
    const char *id;          /* NULL = a new UUIDv7 */
    const char *holder;      /* NULL = the id */
    il_policy   policy;
    uint32_t    queue_max;
    int64_t     ttl_ms;
    int64_t     wait_ms; /* of the policies that queue; 0 = IL_FOREVER */
    int64_t     settle_ms;
    int64_t     keep_ms;
    const char *trigger;
    const char *by;
    const char *meta;
    const char *place;
    int64_t     stop_ms; /* as in il_acquire_opts */
    /* Each called at most once, on the watchdog's thread: the lease is lost; somebody asks the run to stop. Neither may
     * block, nor finish or free the run: both wait for this call to return. */
    void (*on_lost)(void *cookie, il_run *run, const char *why);
    void (*on_cancel)(void *cookie, il_run *run, const char *reason);
    void (*on_renewed)(void *cookie, il_run *run, int64_t deadline_ns);
    void       *cookie;
    const char *tenant; /* whose run it is; NULL = the handle's */
} il_run_opts;

#define IL_RUN_OPTS_INIT                                                                           \
    {                                                                                              \
        sizeof(il_run_opts), NULL, NULL, IL_POLICY_JOIN, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, \
            NULL, NULL, NULL, NULL, NULL                                                           \
    }

/*
 * Start a run of `key` and keep its lease renewed. IL_OK: *ret is a run that the caller ends with
 * il_run_finish() and then il_run_free(). Else nothing was started: IL_DUPLICATE (policies join and skip), IL_HELD
 * (reject; somebody holds the key without a run; or the wait ran out), IL_LIMIT (too many pending), IL_CANCELLED (cancelled
 * while it was pending, or il_interrupt()), IL_STATE (a run with this id has ended), and what il_acquire() returns. op may be
 * NULL; else it is filled, and op->out.runs shows the run that is in the way (il_op_release() it).
 */
IL_API IL_MUST_USE il_status il_run_start(il *h, const char *key, const il_run_opts *opts,
                                          il_run **ret, il_op *op, il_error *reterr);

/* Tell stage (NULL = as before), progress (-1 = as before) and output, which is appended to the run's log. IL_OK,
 * IL_STALE (the run has ended otherwise), or IL_STORE and kin: then it may be repeated, also with more output behind that
 * which it had, and nothing is written twice. The log is this il_run's alone: who writes to it otherwise mixes it up. */
IL_API IL_MUST_USE il_status il_run_stage(il_run *run, const char *stage, int32_t progress,
                                          const void *log, size_t log_bytes, il_error *reterr);

/* End the run (COMPLETED, FAILED, CANCELLED, TIMEOUT or INTERRUPTED) and give its lease back, in one op. IL_OK also
 * when repeated; IL_STALE when it had ended otherwise. No more renewals follow, whatever is returned. */
IL_API IL_MUST_USE il_status il_run_finish(il_run *run, il_run_state state, const char *error,
                                           il_error *reterr);

/* Forget the run: no more renewals, nothing is finished. NULL is fine. */
IL_API void        il_run_free(il_run *run);
IL_API const char *il_run_id(const il_run *run);
/* Its lease, for il_lease_fence(), il_lease_status(), il_lease_fd() and kin. The run's: do not free it. */
IL_API const il_lease *il_run_lease(const il_run *run);

/* One op each. il_run_get() and il_run_wait() fill *op (il_op_release() it); il_run_wait() returns when the run has ended,
 * or IL_TIMEOUT. */
IL_API IL_MUST_USE il_status il_run_cancel(il *h, const char *id, const char *reason, il_error *reterr);
IL_API IL_MUST_USE il_status il_run_get(il *h, const char *id, il_op *op, il_error *reterr);
IL_API IL_MUST_USE il_status il_run_wait(il *h, const char *id, int64_t timeout_ms, il_op *op,
                                         il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Idempotency: one effect and one answer per key.
 */
typedef struct il_once il_once;

typedef struct il_once_opts {
    size_t      struct_size; /* sizeof(il_once_opts) */
    const void *fingerprint; /* of the request; at most IL_FINGERPRINT_BYTES_MAX */
    size_t      fingerprint_bytes;
    int64_t     ttl_ms;  /* of the claim, which is renewed; 0 = 60 s */
    int64_t     keep_ms; /* of the answer; 0 = 24 h */
    int64_t     wait_ms; /* for the answer of a running first attempt; 0 = do not wait */
    const char *meta;
} il_once_opts;

#define IL_ONCE_OPTS_INIT                            \
    {                                                \
        sizeof(il_once_opts), NULL, 0, 0, 0, 0, NULL \
    }

/*
 * Begin what must happen once for `key`. IL_OK: do it, then il_once_finish() (or il_once_abandon()) and il_once_free().
 * IL_REPLAY: it was done; op->out.value and op->out.code are the answer. IL_BUSY: the first attempt is still running (after
 * wait_ms). IL_MISMATCH: the key was used for another request. *op is filled in each case (il_op_release() it).
 */
IL_API IL_MUST_USE il_status il_once_begin(il *h, const char *key, const il_once_opts *opts,
                                           il_once **ret, il_op *op, il_error *reterr);
/* IL_OK, or IL_STALE: the claim had run out, and the answer was not stored. The claim is not renewed any more, whatever
 * is returned; what could not be stored may be tried again until it has run out. */
IL_API IL_MUST_USE il_status il_once_finish(il_once *once, int32_t code, const void *response,
                                            size_t response_bytes, il_error *reterr);
IL_API il_status             il_once_abandon(il_once *once, il_error *reterr);
IL_API void                  il_once_free(il_once *once);
IL_API const il_lease       *il_once_lease(const il_once *once);

/* ------------------------------------------------------------------------------------------------
 * Queues.
 */
typedef struct il_job il_job;

typedef struct il_push_opts {
    size_t      struct_size; /* sizeof(il_push_opts) */
    const char *id;          /* NULL = a new UUIDv7 */
    const char *group;
    const char *unique_key;
    int64_t     unique_ms;
    const char *parent;
    uint32_t    n_children;
    int32_t     priority;
    int64_t     delay_ms;
    int64_t     run_at_ms;
    uint32_t    max_attempts;
    uint32_t    flags; /* IL_PUSH_PARENT */
} il_push_opts;

#define IL_PUSH_OPTS_INIT                                                 \
    {                                                                     \
        sizeof(il_push_opts), NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, 0, 0 \
    }

/* Push a job; the queue is made if it is not there. ret_id (may be NULL) gets the id: of the new job (IL_OK), or
 * of the one that exists (IL_DUPLICATE). */
IL_API IL_MUST_USE il_status il_push(il *h, const char *queue, const void *payload,
                                     size_t payload_bytes, const il_push_opts *opts,
                                     char ret_id[IL_ID_BYTES_MAX + 1], il_error *reterr);

typedef struct il_claim_opts {
    size_t      struct_size; /* sizeof(il_claim_opts) */
    const char *worker; /* name of this worker, which claims one after another; NULL = a new UUIDv7 */
    uint32_t    limit;    /* jobs at most; 0 = 1 */
    int64_t     lease_ms; /* 0 = the queue's */
    int64_t     wait_ms;  /* for a job to be due; 0 = do not wait */
    uint32_t    flags;    /* IL_CLAIM_SILENT: do not send heartbeats */
    /* The claim is lost; somebody cancels the job. As in il_run_opts. */
    void (*on_lost)(void *cookie, il_job *job, const char *why);
    void (*on_cancel)(void *cookie, il_job *job, const char *reason);
    void *cookie;
} il_claim_opts;

#define IL_CLAIM_OPTS_INIT                                        \
    {                                                             \
        sizeof(il_claim_opts), NULL, 0, 0, 0, 0, NULL, NULL, NULL \
    }

/*
 * Claim up to opts->limit jobs into ret[]; heartbeats are sent in the background until a job is finished or freed.
 * IL_OK with *ret_n >= 1, IL_EMPTY (also after wait_ms), IL_NOT_FOUND (there is no such queue), IL_CANCELLED. Jobs for which
 * there is no memory or descriptor are given back; IL_NOMEM when that was all of them.
 */
IL_API IL_MUST_USE il_status il_claim(il *h, const char *queue, const il_claim_opts *opts,
                                      il_job **ret, size_t *ret_n, il_error *reterr);

IL_API const il_job_info *il_job_look(const il_job *job); /* as it was claimed */
IL_API const il_lease    *il_job_lease(const il_job *job);
/* Each IL_OK, IL_STALE (the claim is not this worker's any more), or IL_STORE and kin. After the last three no more heartbeats
 * are sent, whatever is returned; they may be repeated until the claim has run out. */
IL_API IL_MUST_USE il_status il_job_progress(il_job *job, int32_t percent, const char *message,
                                             il_error *reterr);
IL_API IL_MUST_USE il_status il_job_finish(il_job *job, const void *result, size_t result_bytes,
                                           il_error *reterr);
IL_API IL_MUST_USE il_status il_job_fail(il_job *job, const char *error, uint32_t flags,
                                         int64_t delay_ms, il_error *reterr);
IL_API IL_MUST_USE il_status il_job_snooze(il_job *job, int64_t delay_ms, il_error *reterr);
IL_API void                  il_job_free(il_job *job); /* no more heartbeats; NULL is fine */

/* ------------------------------------------------------------------------------------------------
 * Cache: one builds, the others wait or get the stale value.
 */
typedef struct il_build il_build;

typedef struct il_cache_opts {
    size_t  struct_size; /* sizeof(il_cache_opts) */
    int64_t lease_ms;    /* time to build, renewed in the background; 0 = IL_TTL_MS_DEFAULT */
    int64_t wait_ms;     /* for somebody else's build; 0 = 30 s, IL_FOREVER = no deadline */
    int     never_early; /* no early refresh */
} il_cache_opts;

#define IL_CACHE_OPTS_INIT             \
    {                                  \
        sizeof(il_cache_opts), 0, 0, 0 \
    }

/*
 * Look `key` up. IL_HIT, IL_STALE_HIT: op->out.value. IL_LEAD: this caller builds; *ret is ended with il_build_fill() or
 * il_build_abandon(), then il_build_free(); op->out.value is the old value, if there is one that may be used. IL_WAIT: the
 * build of somebody else took longer than wait_ms. ret NULL: never lead; then IL_NOT_FOUND is possible.
 * *op is filled (il_op_release() it).
 */
IL_API IL_MUST_USE il_status il_cache_lookup(il *h, const char *key, const il_cache_opts *opts,
                                             il_build **ret, il_op *op, il_error *reterr);
/* IL_OK, or IL_STALE: dropped meanwhile, or the build took longer than its lease. flags: IL_CACHE_NEGATIVE. The build is not
 * renewed any more, whatever is returned. */
IL_API IL_MUST_USE il_status il_build_fill(il_build *build, const void *value, size_t value_bytes,
                                           int64_t ttl_ms, int64_t grace_ms, uint32_t flags,
                                           int32_t code, il_error *reterr);
IL_API il_status             il_build_abandon(il_build *build, il_error *reterr);
IL_API void                  il_build_free(il_build *build);
IL_API const il_lease       *il_build_lease(const il_build *build);
/* flags: IL_DROP_STALE. IL_OK also when there was nothing. */
IL_API IL_MUST_USE il_status il_cache_drop(il *h, const char *key, uint32_t flags, il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * Transactions of the caller's own, on a SQLite store: a job that is pushed in one exists exactly if it commits.
 */
struct sqlite3;
typedef struct il_tx il_tx;

/*
 * Begin a write transaction on `db`, the caller's own connection to the store's own file (opened with SQLITE_OPEN_FULLMUTEX, the default), under
 * the store's lock. Until il_tx_commit() or il_tx_rollback() the caller uses `db` for its statements, savepoints too; every other writer of
 * the store waits, so it is rolled back after 1 s, by a thread of the library, whatever its owner does: a statement that runs is
 * interrupted, and what the connection tries to write after that fails. Only il_tx_commit() commits. For that its commit, rollback and WAL hooks are taken
 * until the end; and from now on it makes no checkpoints of its own. While it is open this thread must not use the handle.
 * Returns IL_OK, IL_INVAL (not the file of this store, not such a connection, or a transaction is open on it), IL_STORE and kin.
 */
IL_API IL_MUST_USE il_status il_tx_begin(il *h, struct sqlite3 *db, il_tx **ret, il_error *reterr);
/* Apply JOB_PUSH, JOB_FINISH and CHECK_FENCE ops in it, all of them or, on failure, none. Others are refused with IL_INVAL in their own status. IL_OK, IL_TIMEOUT
 * (it was open for too long), IL_STATE (a statement of the caller has ended it), IL_STORE and kin. */
IL_API IL_MUST_USE il_status il_tx_apply(il_tx *tx, il_op *ops, size_t n, il_error *reterr);
/* Both end the transaction and free tx, whatever is returned. Workers that wait for a pushed job are woken by the commit, which is as durable as the connection's
 * PRAGMA synchronous says (FULL by default). Anything but IL_OK (as of il_tx_apply()): nothing of it stays. */
IL_API IL_MUST_USE il_status il_tx_commit(il_tx *tx, il_error *reterr);
IL_API void                  il_tx_rollback(il_tx *tx);

/* ------------------------------------------------------------------------------------------------
 * Advisory locks of PostgreSQL, for a fleet in which some programs know only those: hold one beside a lease, from the first write to the last,
 * and both kinds exclude each other. Only on a PostgreSQL store.
 */
typedef struct il_advisory il_advisory;

/*
 * Take the advisory lock of a key: its id is the first 8 bytes of SHA-256(key), big-endian, mod 2^31. Or the one with a given id. It is taken with
 * pg_try_advisory_xact_lock() in a transaction that does nothing else, on a connection of its own, and held until il_advisory_release() or until
 * that connection is lost. Never waits for the lock. Returns IL_OK, IL_HELD (somebody has it), IL_INVAL (another kind of store, or a bad key), IL_STORE.
 * Release it before il_close().
 */
IL_API IL_MUST_USE il_status il_advisory_take(il *h, const char *key, il_advisory **ret,
                                              il_error *reterr);
IL_API IL_MUST_USE il_status il_advisory_take_id(il *h, int64_t id, il_advisory **ret,
                                                 il_error *reterr);
/* IL_OK, or IL_LOST: then stop the work as if its lease were lost. One thread at a time. */
IL_API IL_MUST_USE il_status il_advisory_check(il_advisory *a, il_error *reterr);
/* A descriptor that polls readable when it may be lost: then check. */
IL_API int  il_advisory_fd(const il_advisory *a);
IL_API void il_advisory_release(il_advisory *a); /* accepts NULL */

/* ------------------------------------------------------------------------------------------------
 * The rest.
 */

/* Counters of this handle. Calls `fn` once per metric of docs/METRICS.md. */
typedef void il_metric_fn(void *cookie, const char *name, const char *help, uint64_t value);
IL_API void  il_metrics(il *h, il_metric_fn *fn, void *cookie);

/* A new UUIDv7, 36 characters and a NUL. IL_STORE when the machine has no randomness to give. */
IL_API IL_MUST_USE il_status il_uuid(char out[37]);

/* Is `text` acceptable as a key, holder, tenant? IL_OK or IL_INVAL with the reason. */
IL_API IL_MUST_USE il_status il_check_key(const char *key, il_error *reterr);
IL_API IL_MUST_USE il_status il_check_holder(const char *holder, il_error *reterr);
IL_API IL_MUST_USE il_status il_check_tenant(const char *tenant, il_error *reterr);

/* Parse a duration: `250ms`, `30s`, `5m`, `1h`, `1d`, `0`; `forever` gives IL_FOREVER. */
IL_API IL_MUST_USE il_status il_parse_duration(const char *text, int64_t *ret_ms, il_error *reterr);

/* All memory of the library comes from here. Set it before any other call; NULL restores malloc. */
typedef struct il_allocator {
    void *(*alloc)(void *cookie, size_t n_bytes);
    void *(*realloc)(void *cookie, void *p, size_t n_bytes);
    void (*free)(void *cookie, void *p);
    void *cookie;
} il_allocator;
IL_API void il_set_allocator(const il_allocator *allocator);

IL_API const char *il_version(void);

#ifdef __cplusplus
}
#endif

#endif
