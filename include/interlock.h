/*
 * interlock.h: locks, runs, idempotency keys, queues and caches for work that must happen once.
 *
 * The public interface of libinterlock; interlock-guard.h adds transactions on users' own tables.
 * It compiles alone as C11 and as C++. docs/GLOSSARY.md defines the terms (key, class, tenant,
 * holder, lease, fence, permit, waiter); docs/GUARANTEES.md lists the guarantees.
 *
 * Conventions of every function below:
 *   - A function that can fail returns il_status and takes `il_error *reterr` last. reterr may be
 *     NULL; it is written only on failure. Out-parameters named ret are written only on IL_OK.
 *   - Strings are NUL-terminated UTF-8. Arguments are borrowed for the call unless noted.
 *   - Times are milliseconds. "Lease time" never moves when the wall clock is set.
 *   - All functions are safe to call from several threads on one handle, unless stated otherwise.
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

/* ---- version of this header; while MAJOR is 0, a new MINOR may change API and ABI ------------ */
#define IL_VERSION_MAJOR 0
#define IL_VERSION_MINOR 1
#define IL_VERSION_PATCH 0
#define IL_VERSION "0.1.0"

/* ---- limits; each has a test that reaches it ------------------------------------------------- */
#define IL_KEY_BYTES_MAX 512        /* bytes of a key, without the NUL */
#define IL_HOLDER_BYTES_MAX 256     /* bytes of a holder */
#define IL_TENANT_BYTES_MAX 64      /* bytes of a tenant */
#define IL_META_BYTES_MAX 4096      /* bytes of the meta text of a lease */
#define IL_PLACE_BYTES_MAX 256      /* bytes of a place or of a reason */
#define IL_TTL_MS_MIN 1000          /* 1 s */
#define IL_TTL_MS_MAX 86400000      /* 24 h */
#define IL_TTL_MS_DEFAULT 30000     /* 30 s */
#define IL_PERMITS_MAX 1000000      /* N of a semaphore */
#define IL_BATCH_OPS_MAX 4096       /* ops in one il_apply() */
#define IL_PAGE_ITEMS_MAX 1000      /* items in one listing page */
#define IL_RESULT_BYTES_MAX 8388608 /* bytes of the results of one il_apply(): 8 MiB */
#define IL_COUNT_MAX 1000           /* counts of waiters and workers stop here */
#define IL_PAGE_ITEMS_DEFAULT 100
#define IL_FOREVER (-1)             /* wait_ms: no deadline */
#define IL_ID_BYTES_MAX 64          /* bytes of the id of a run or job; a UUID has 36 */
#define IL_BLOB_BYTES_MAX 1048576   /* payload, result, response, cache value: 1 MiB */
#define IL_TEXT_BYTES_MAX 4096      /* bytes of an error, a stage, a progress message */
#define IL_LOG_BYTES_MAX 1048576    /* bytes kept of a run's log: its tail */
#define IL_ONCE_KEY_BYTES_MAX 255   /* bytes of an idempotency key */
#define IL_FINGERPRINT_BYTES_MAX 64 /* bytes of a request's fingerprint */
#define IL_QUEUE_BYTES_MAX 128      /* bytes of the name of a queue or of a cron entry */
#define IL_PRIORITY_MAX 1000        /* priorities are -1000..1000; lower numbers come first */
#define IL_ATTEMPTS_MAX 1000        /* max_attempts of a job; 5 by default */
#define IL_CLAIM_JOBS_MAX 1000      /* jobs in one claim */
#define IL_EVENTS_MAX 20            /* events in the history of a key */
#define IL_EVENT_KEYS_MAX 10000     /* keys of a tenant that have a history */
#define IL_CONSTRAINT_BYTES_MAX 63  /* bytes of a constraint's name in an error */
#define IL_DELAY_MS_MAX (INT64_C(366) * 86400000) /* longest delay, period or retention: a year */
#define IL_EVENT_KEEP_MS (INT64_C(7) * 86400000)  /* history of a key: a week */

/* ------------------------------------------------------------------------------------------------
 * Statuses: C name, number, wire name, HTTP status, exit status, retryable, text.
 * The numbers are part of the ABI and never change.
 */
/* clang-format off */
#define IL_STATUS_MAP(X)                                                                                           \
    X(OK,         0, "OK",                   200,  0, 0, "success")                                                \
    X(HELD,       1, "LOCK_HELD",            409, 75, 1, "the key is held")                                        \
    X(QUEUED,     2, "QUEUED",               202, 75, 1, "waiting in the key's queue")                             \
    X(LOST,       3, "LEASE_LOST",           409, 76, 0, "the lease has expired, was broken or was released")      \
    X(NOT_HELD,   4, "NOT_HELD",             404,  1, 0, "the key is not held")                                    \
    X(STALE,      5, "FENCE_STALE",          409, 76, 0, "the fence is not the current one")                       \
    X(DEADLOCK,   6, "DEADLOCK",             409, 75, 1, "waiting for the key would cause a deadlock")             \
    X(ORDER,      7, "LOCK_ORDER_VIOLATION", 409, 78, 0, "locking the key would violate the declared lock order")  \
    X(MISMATCH,   8, "MISMATCH",             422, 65, 0, "the key or id was used before with other arguments")     \
    X(CANCELLED,  9, "CANCELLED",            499, 75, 1, "cancelled by the caller")                                \
    X(TIMEOUT,   10, "TIMEOUT",              504, 77, 1, "timed out")                                              \
    X(INVAL,     11, "BAD_REQUEST",          400, 64, 0, "invalid argument")                                       \
    X(NOMEM,     12, "OUT_OF_MEMORY",        503, 71, 1, "out of memory")                                          \
    X(STORE,     13, "STORE_UNAVAILABLE",    503, 69, 1, "the store is unavailable")                               \
    X(FULL,      14, "STORE_FULL",           507, 69, 1, "the store has no space left")                            \
    X(CORRUPT,   15, "STORE_CORRUPT",        500, 69, 0, "the stored state is damaged")                            \
    X(NEWER,     16, "STORE_NEWER",          500, 69, 0, "the store was written by a newer version")               \
    X(LIMIT,     17, "LIMIT_EXCEEDED",       429, 75, 1, "a limit has been reached")                               \
    X(DUPLICATE, 18, "DUPLICATE",            200,  0, 0, "already exists")                                         \
    X(EMPTY,     19, "EMPTY",                204,  1, 1, "no job is due")                                          \
    X(BUSY,      20, "IN_PROGRESS",          409, 75, 1, "the first request with this key is still running")       \
    X(REPLAY,    21, "REPLAY",               200,  0, 0, "already answered; this is the stored response")          \
    X(HIT,       22, "HIT",                  200,  0, 0, "the cached value is fresh")                              \
    X(STALE_HIT, 23, "STALE_HIT",            200,  0, 0, "the cached value is stale but usable")                   \
    X(LEAD,      24, "LEAD",                 202,  0, 0, "the caller must build the value")                        \
    X(WAIT,      25, "WAIT",                 202, 75, 1, "another caller is building the value")                   \
    X(NOT_FOUND, 26, "NOT_FOUND",            404,  1, 0, "not found")                                              \
    X(STATE,     27, "WRONG_STATE",          409,  1, 0, "not allowed in the current state")                       \
    X(UNIQUE,    28, "UNIQUE_VIOLATION",     409,  1, 0, "a row with these values exists")                         \
    X(CHECK,     29, "CHECK_VIOLATION",      422, 65, 0, "the row violates a check constraint")                    \
    X(FOREIGN_KEY, 30, "FOREIGN_KEY_VIOLATION", 409, 1, 0, "the change violates a foreign key")                    \
    X(SERIALIZATION, 31, "SERIALIZATION_FAILURE", 409, 75, 1, "rolled back because of a concurrent transaction")   \
    X(UNKNOWN,   32, "OUTCOME_UNKNOWN",      503, 69, 0,                                                           \
      "connection lost during the commit; outcome unknown")
/* clang-format on */

typedef enum il_status {
#define X(name, num, wire, http, exit_status, retry, text) IL_##name = num,
    IL_STATUS_MAP(X)
#undef X
    IL_STATUS_COUNT = 33
} il_status;

/* The wire name, text, HTTP status, exit status and retryability of a status; never NULL. */
IL_API const char *il_status_name(il_status status);
IL_API const char *il_status_text(il_status status);
IL_API int         il_status_http(il_status status);
IL_API int         il_status_exit(il_status status);
IL_API int         il_status_retryable(il_status status);

/* An error. Owned by the caller and of fixed size, so that reporting it needs no memory. */
typedef struct il_error {
    il_status status;
    char      native[16];   /* the engine's own code (SQLite extended code, SQLSTATE), or "" */
    char      message[512]; /* ready to print; names the object; never contains a secret */
    char      holder[IL_HOLDER_BYTES_MAX + 1]; /* HELD: who holds the key; else "" */
    uint64_t  fence;                           /* HELD, STALE: the current fence; else 0 */
    /* UNIQUE, CHECK, FOREIGN_KEY: the constraint, where the database gives its name; else "" */
    char constraint[IL_CONSTRAINT_BYTES_MAX + 1];
} il_error;

/* ---- modes and lease states ------------------------------------------------------------------ */
typedef enum il_mode {
    IL_MODE_EXCLUSIVE = 0, /* one holder */
    IL_MODE_SHARED    = 1, /* together with other shared leases */
    IL_MODE_PERMIT    = 2, /* one of N permits: a semaphore */
    IL_MODE_COUNT     = 3
} il_mode;

/* WAITING, OFFERED, HELD and CLOSING are live; the others are final. */
typedef enum il_lease_state {
    IL_LEASE_NONE        = 0,
    IL_LEASE_WAITING     = 1, /* a queued acquire */
    IL_LEASE_OFFERED     = 2, /* offered to a waiter, which must confirm by repeating its acquire */
    IL_LEASE_HELD        = 3,
    IL_LEASE_CLOSING     = 4, /* broken or expired, no longer valid; but the key is not free yet */
    IL_LEASE_RELEASED    = 5,
    IL_LEASE_EXPIRED     = 6,
    IL_LEASE_BROKEN      = 7,
    IL_LEASE_STATE_COUNT = 8
} il_lease_state;

IL_API const char *il_mode_name(il_mode mode);                /* "exclusive", "shared", "permit" */
IL_API const char *il_lease_state_name(il_lease_state state); /* "held", "offered", … */

/* One lease or waiter. The strings live as long as the op that returned them. */
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
    uint32_t       n_waiters; /* waiters of this key, counted up to IL_COUNT_MAX */
    int64_t        ttl_ms;
    int64_t        age_ms; /* time since the grant or since the waiter queued, in lease time */
    int64_t        remaining_ms; /* time until expiry or the waiter's deadline; IL_FOREVER = none */
    /* time since the last renewal (or the grant); of a waiter, since its last sign of life */
    int64_t renewed_ms;
    /* the same as age_ms and remaining_ms, on the wall clock of the caller: */
    int64_t acquired_at_ms;
    int64_t expires_at_ms; /* ms since 1970, for display */
} il_lease_info;

enum il_edge_flags {           /* ranks are those of the handle, or of the server it uses */
    IL_EDGE_INVERTED = 1 << 0, /* on a cycle of learned edges and declared ranks: can deadlock */
    IL_EDGE_DECLARED = 1 << 1, /* the declared ranks require this order */
};

/* One edge of the learned lock order: a key of class `from` was held when one of class `to` was
 * acquired or queued for. The strings live as long as the op that returned them. */
typedef struct il_edge_info {
    const char *tenant;
    const char *from;
    const char *to;
    const char *from_place; /* places of the two acquires that taught the edge; "" = not given */
    const char *to_place;
    uint32_t    flags; /* enum il_edge_flags */
} il_edge_info;

typedef enum il_event_kind {
    IL_EVENT_NONE       = 0,
    IL_EVENT_EXPIRED    = 1, /* a lease expired because it was not renewed */
    IL_EVENT_BROKEN     = 2, /* an operator broke a lease */
    IL_EVENT_REFUSED    = 3, /* callers were refused because the key was held */
    IL_EVENT_KIND_COUNT = 4
} il_event_kind;

/* What happened to a key. The strings live as long as the op that returned them. A meta is cut to
 * 2,000 characters. */
typedef struct il_event_info {
    const char   *tenant;
    const char   *key;
    const char   *holder; /* of the ended lease; REFUSED: of the conflicting lease; "" = unknown */
    const char   *meta;   /* of the ended lease; REFUSED: of the caller */
    const char   *other;  /* BROKEN: who broke it; REFUSED: meta of the conflicting lease */
    const char   *reason; /* BROKEN: why; REFUSED: what the caller did next */
    il_event_kind kind;
    uint32_t      count;       /* REFUSED: how many times; else 1 */
    uint64_t      fence;       /* of the lease; 0 = unknown */
    int64_t       since_at_ms; /* when the lease was granted, ms since 1970; 0 = unknown */
    int64_t       first_at_ms; /* when it happened; REFUSED: the first time */
    int64_t       last_at_ms;  /* REFUSED: the last time */
} il_event_info;

/* ------------------------------------------------------------------------------------------------
 * Operations. All coordination consists of ops applied to a store; the functions further down are
 * conveniences over il_apply(). Columns: C name, number, wire name, writes to the store, text.
 */
/* clang-format off */
#define IL_OP_MAP(X)                                                                                               \
    X(ACQUIRE,     1, "acquire",     1, "acquire a key, confirm an offer, renew a lease, or queue")                \
    X(RENEW,       2, "renew",       1, "extend a lease by its TTL")                                               \
    X(RELEASE,     3, "release",     1, "release a lease")                                                         \
    X(BREAK,       4, "break",       1, "break a lease")                                                           \
    X(GET,         5, "get",         0, "show who holds a key")                                                    \
    X(LIST,        6, "list",        0, "list leases or waiters by key prefix")                                    \
    X(CHECK_FENCE, 7, "check_fence", 0, "check that a fence is the current one of its key")                        \
    X(SWEEP,       8, "sweep",       1, "run one bounded recovery pass")                                           \
    X(RUN_START,   9, "run_start",   1, "start a run and acquire its key, or apply the conflict policy")           \
    X(RUN_STAGE,  10, "run_stage",   1, "report stage, progress and output of a run; does not renew its lease")    \
    X(RUN_FINISH, 11, "run_finish",  1, "finish a run and release its lease")                                      \
    X(RUN_CANCEL, 12, "run_cancel",  1, "cancel a pending run, or ask a running one to stop")                      \
    X(RUN_GET,    13, "run_get",     0, "show a run")                                                              \
    X(RUN_LIST,   14, "run_list",    0, "list runs, newest first")                                                 \
    X(RUN_LOG,    15, "run_log",     0, "read a run's log from an offset")                                         \
    X(ONCE_BEGIN, 16, "once_begin",  1, "claim an idempotency key, or get the stored response")                    \
    X(ONCE_FINISH, 17, "once_finish", 1, "store the response")                                                     \
    X(ONCE_ABANDON, 18, "once_abandon", 1, "release the claim without a response")                                 \
    X(ONCE_GET,   19, "once_get",    0, "show an idempotency key")                                                 \
    X(JOB_PUSH,   20, "push",        1, "add a job to a queue")                                                    \
    X(JOB_CLAIM,  21, "claim",       1, "claim due jobs")                                                          \
    X(JOB_HEARTBEAT, 22, "heartbeat", 1, "extend a claim and report progress")                                     \
    X(JOB_FINISH, 23, "job_finish",  1, "finish a job and store its result")                                       \
    X(JOB_FAIL,   24, "job_fail",    1, "report a failed attempt: retried later, or FAILED")                       \
    X(JOB_SNOOZE, 25, "snooze",      1, "return a job for later, without counting the attempt")                    \
    X(JOB_CANCEL, 26, "job_cancel",  1, "cancel a job, or ask its worker to stop")                                 \
    X(JOB_RETRY,  27, "job_retry",   1, "make a failed, cancelled or delayed job due now")                         \
    X(JOB_SEAL,   28, "job_seal",    1, "seal a parent: it completes after its last child")                        \
    X(JOB_GET,    29, "job_get",     0, "show a job")                                                              \
    X(JOB_LIST,   30, "job_list",    0, "list the jobs of a queue, newest first")                                  \
    X(JOB_PURGE,  31, "job_purge",   1, "delete jobs of a queue by state")                                         \
    X(QUEUE_SET,  32, "queue_set",   1, "create a queue or change its settings")                                   \
    X(QUEUE_PAUSE, 33, "queue_pause", 1, "pause or resume a queue")                                                \
    X(QUEUE_LIST, 34, "queue_list",  0, "list queues with settings, depth and totals")                             \
    X(CRON_SET,   35, "cron_set",    1, "create or change a schedule; creates the queue")                          \
    X(CRON_REMOVE, 36, "cron_remove", 1, "remove a schedule")                                                      \
    X(CRON_LIST,  37, "cron_list",   0, "list schedules by name")                                                  \
    X(CACHE_GET,  38, "cache_get",   0, "look up a value without building it")                                     \
    X(CACHE_LOOKUP, 39, "cache_lookup", 1, "look up a value, or become its builder")                               \
    X(CACHE_FILL, 40, "cache_fill",  1, "store a built value")                                                     \
    X(CACHE_ABANDON, 41, "cache_abandon", 1, "give up a build")                                                    \
    X(CACHE_DROP, 42, "cache_drop",  1, "invalidate a value and any build in progress")                            \
    X(CACHE_STATS, 43, "cache_stats", 0, "count cached values by key prefix")                                      \
    X(USAGE,      44, "usage",       0, "add up what a tenant stores, one page of rows at a time")                 \
    X(ORDER_LIST, 45, "order_list",  0, "list the learned lock order")                                             \
    X(REFUSED,    46, "refused",     1, "record in a key's history that callers were refused")                     \
    X(HISTORY,    47, "history",     0, "list what happened to a key, newest first")
/* clang-format on */

typedef enum il_op_type {
    IL_OP_NONE = 0,
#define X(name, num, wire, writes, text) IL_OP_##name = num,
    IL_OP_MAP(X)
#undef X
    IL_OP_COUNT = 48
} il_op_type;

IL_API const char *il_op_name(il_op_type type); /* the wire name; "none" for IL_OP_NONE */

enum il_op_flags {
    IL_BREAK_NOW    = 1 << 0, /* BREAK: free the key at once instead of when the holder lets go */
    IL_LIST_WAITERS = 1 << 1, /* LIST: waiters (in queue order within a key) instead of leases */
    IL_RUN_SLOT     = 1 << 2, /* RUN_START: only reserve the run; it is started later */
    IL_CLAIM_SILENT = 1 << 3, /* JOB_CLAIM: no heartbeats; the queue's timeouts apply */
    IL_FAIL_FINAL   = 1 << 4, /* JOB_FAIL: do not retry */
    /* JOB_CANCEL: cancel a running job at once; its worker's token becomes invalid */
    IL_CANCEL_NOW  = 1 << 5,
    IL_PUSH_PARENT = 1 << 6, /* JOB_PUSH: a parent: never claimed, completes after its children */
    IL_RESUME      = 1 << 7, /* QUEUE_PAUSE: resume */
    IL_CACHE_NEGATIVE = 1 << 8, /* CACHE_FILL: no value exists; `code` and `value` say why */
    IL_DROP_STALE     = 1 << 9, /* CACHE_DROP: keep the value as stale for the rest of its grace */
    /* RUN_STAGE, RUN_FINISH: `log` starts at `offset`; bytes already stored are skipped, so that a
     * repeated op writes nothing twice. Without this flag `log` is always appended. */
    IL_LOG_AT = 1 << 10,
    /* JOB_CLAIM: the worker is exiting: claim nothing and forget it; status EMPTY */
    IL_CLAIM_LEAVE = 1 << 11,
};

enum il_out_flags {
    IL_OUT_RENEWED = 1 << 0, /* the caller already had it; nothing new was granted or created */
    /* ACQUIRE, RUN_START: violates the learned lock order; see `detail` */
    IL_OUT_ORDER_WARNING = 1 << 1,
    /* SWEEP, JOB_PURGE: the limit was reached and more is left to do. JOB_CANCEL of a parent on
     * Redis: sweeps, or repeating the op, cancel the remaining children. */
    IL_OUT_MORE = 1 << 2,
    /* the report was stored, but the work should stop: `detail` says why */
    IL_OUT_CANCEL  = 1 << 3,
    IL_OUT_SKIPPED = 1 << 4, /* RUN_START, policy skip: DUPLICATE, and nothing was started */
    IL_OUT_PAUSED  = 1 << 5, /* JOB_CLAIM: EMPTY because the queue is paused */
    IL_OUT_LIMITED = 1 << 6, /* JOB_CLAIM: EMPTY or fewer jobs because of a rate or group limit */
    /* ONCE_BEGIN: an earlier attempt died without a response; see `meta` */
    IL_OUT_TAKEOVER = 1 << 7,
    IL_OUT_NEGATIVE = 1 << 8, /* CACHE_*: a negative entry: no value exists */
    /* CACHE_LOOKUP: LEAD although the value is fresh. CACHE_GET: HIT, but a lookup would lead */
    IL_OUT_EARLY      = 1 << 9,
    IL_OUT_OPTIMISTIC = 1 << 10, /* JOB_CLAIM: the queue's strategy is IL_STRATEGY_OPTIMISTIC */
    /* RUN_START: LIMIT because the class has live_max live runs */
    IL_OUT_LIVE_LIMIT = 1 << 11,
    /* RUN_START: LIMIT because day_max runs of the class were started today */
    IL_OUT_DAY_LIMIT = 1 << 12,
    IL_OUT_MINUTE_LIMIT =
        1 << 13, /* RUN_START: LIMIT because of minute_max; retry after remaining_ms */
    IL_OUT_HOUR_LIMIT = 1 << 14, /* the same for hour_max */
    IL_OUT_BROKEN     = 1 << 15, /* LOST because the lease was broken; it did not expire */
};

/* ---- runs ------------------------------------------------------------------------------------ */

/* PENDING and RUNNING are live. Numbers are part of the ABI, names part of the HTTP API. */
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

/* What a start does if its key already has a live run. */
typedef enum il_policy {
    IL_POLICY_JOIN            = 0, /* DUPLICATE with the live run */
    IL_POLICY_REJECT          = 1, /* HELD */
    IL_POLICY_SKIP            = 2, /* DUPLICATE with IL_OUT_SKIPPED: nothing to do */
    IL_POLICY_QUEUE           = 3, /* wait in a FIFO queue of at most queue_max runs */
    IL_POLICY_REPLACE_PENDING = 4, /* cancel the pending runs and queue instead */
    IL_POLICY_CANCEL_RUNNING  = 5, /* ask the running run to stop and wait until it has */
    IL_POLICY_COUNT           = 6
} il_policy;

IL_API const char *il_run_state_name(il_run_state state); /* "PENDING", "RUNNING", … */
IL_API const char *il_policy_name(il_policy policy);      /* "join", "replace-pending", … */

/* One run. The strings live as long as the op that returned them; "" if not set. */
typedef struct il_run_info {
    const char  *tenant;
    const char  *id;
    const char  *key;
    const char  *holder;  /* who executes it; "" for a slot that has not been started */
    const char  *trigger; /* what started it: "manual", "schedule", … */
    const char  *by;      /* who started it */
    const char  *meta;
    const char  *stage;
    const char  *error; /* why it failed, was cancelled or should stop */
    il_run_state state;
    uint32_t     cancelled; /* it was asked to stop */
    uint32_t     n_joined;  /* number of starts that joined this run */
    int32_t      progress;  /* percent; -1 = unknown */
    uint32_t     position;  /* PENDING: place in the queue, 1 = next; else 0 */
    uint64_t     fence;     /* 0 while PENDING */
    uint64_t     seq;       /* sequence number of the start in the store */
    uint64_t     log_bytes; /* written so far; the last IL_LOG_BYTES_MAX of them are kept */
    int64_t      ttl_ms;
    int64_t      remaining_ms;  /* RUNNING: time until the lease expires; else 0 */
    int64_t      created_at_ms; /* wall clock, ms since 1970; 0 = not yet */
    int64_t      started_at_ms;
    int64_t      ended_at_ms;
    int64_t      updated_at_ms;
} il_run_info;

/* RUN_*. RUN_START: op.key is the key to lock, op.holder who executes the run. */
typedef struct il_run_in {
    const char  *id;     /* chosen by the caller (il_uuid()); makes a repeated start idempotent */
    il_policy    policy; /* RUN_START */
    uint32_t     queue_max; /* RUN_START: maximum pending runs of the key; 0 = 100 */
    int64_t      ttl_ms;    /* RUN_START; 0 = IL_TTL_MS_DEFAULT */
    int64_t      wait_ms;   /* RUN_START, policies that queue: 0 = IL_FOREVER */
    int64_t      settle_ms; /* RUN_START */
    int64_t      keep_ms;   /* RUN_START: how long to keep the run after it ends; 0 = 30 days */
    const char  *trigger;   /* RUN_START */
    const char  *by;        /* RUN_START */
    const char  *meta;      /* RUN_START */
    const char  *place;     /* RUN_START */
    const char  *stage;     /* RUN_STAGE; NULL = unchanged */
    int32_t      progress;  /* RUN_STAGE: 0..100; -1 = unchanged */
    il_run_state state;     /* RUN_FINISH: final state */
    const char  *error;     /* RUN_FINISH: why it failed; RUN_CANCEL: the reason, required */
    const void  *log;       /* RUN_STAGE, RUN_FINISH: output to append */
    size_t       log_bytes;
    uint64_t     offset;   /* RUN_LOG: first byte to return; IL_LOG_AT: offset of `log` */
    uint32_t     live_max; /* RUN_START: maximum live runs of the key's class; 0 = no limit */
    uint32_t     day_max;  /* ... and runs started since midnight UTC; 0 = no limit */
    /* RUN_START: maximum starts of the class per minute, including those that start no run */
    uint32_t minute_max;
    uint32_t hour_max; /* ... and per hour; 0 = no limit. Starts without a limit do not count. */
} il_run_in;

/* ---- idempotency ----------------------------------------------------------------------------- */

/* ONCE_*. op.key is the idempotency key, op.holder the attempt, op.fence its token. */
typedef struct il_once_in {
    /* ONCE_BEGIN: hash of the request, to detect a different request; may be NULL */
    const void *fingerprint;
    size_t      fingerprint_bytes;
    int64_t     lease_ms; /* ONCE_BEGIN: of the claim; 0 = 60 s. Repeating the op renews it */
    int64_t     keep_ms;  /* ONCE_BEGIN: how long to keep the response; 0 = 24 h */
    /* ONCE_BEGIN: shown to callers that find the claim: the id of the new resource, say */
    const char *meta;
    const void *response; /* ONCE_FINISH: stored byte for byte */
    size_t      response_bytes;
    int32_t     code; /* ONCE_FINISH: stored with it: an HTTP or exit status */
} il_once_in;

/* ---- jobs ------------------------------------------------------------------------------------ */

/* SCHEDULED, READY and RUNNING are live. */
typedef enum il_job_state {
    IL_JOB_NONE        = 0,
    IL_JOB_SCHEDULED   = 1,
    IL_JOB_READY       = 2,
    IL_JOB_RUNNING     = 3,
    IL_JOB_COMPLETED   = 4,
    IL_JOB_FAILED      = 5, /* no attempts left */
    IL_JOB_CANCELLED   = 6,
    IL_JOB_STATE_COUNT = 7
} il_job_state;

IL_API const char *il_job_state_name(il_job_state state); /* "SCHEDULED", "READY", … */
/* Also accepts PENDING (READY), PROCESSING and EXECUTING (RUNNING). IL_JOB_NONE if unknown. */
IL_API il_job_state il_job_state_parse(const char *name);
/* Also accepts COMPLETE (COMPLETED). IL_RUN_NONE if unknown. */
IL_API il_run_state il_run_state_parse(const char *name);

typedef struct il_job_info {
    const char *tenant;
    const char *queue;
    const char *id;
    const char *parent;     /* id of the parent; "" = none */
    const char *group;      /* group key; "" = none */
    const char *unique_key; /* "" = none */
    const char *worker;     /* worker that has the job, or had it last */
    const char *error;      /* of the last failed attempt, or reason of the cancellation */
    const char *message;    /* of the last progress report */
    /* JOB_GET, JOB_CLAIM; JOB_LIST: NULL if larger than IL_TEXT_BYTES_MAX */
    const void *payload;
    size_t      payload_bytes;
    /* JOB_GET; JOB_LIST: as the payload. NULL unless COMPLETED. Both are followed by a NUL, for
     * printing. */
    const void  *result;
    size_t       result_bytes;
    il_job_state state;
    int32_t      priority;
    uint32_t     attempt; /* number of claims so far */
    uint32_t     max_attempts;
    int32_t      progress;  /* percent; -1 = unknown */
    uint32_t     cancelled; /* its worker was asked to stop */
    uint32_t     is_parent; /* 1 = a parent; the next three count its children */
    uint32_t     n_children, n_children_completed, n_children_failed;
    uint64_t     token;        /* of the last attempt; 0 = never claimed */
    uint64_t     seq;          /* sequence number of the push in the store */
    int64_t      remaining_ms; /* RUNNING: time until the claim expires, in lease time; else 0 */
    int64_t      run_at_ms;    /* wall clock, ms since 1970; 0 = not yet */
    int64_t      created_at_ms;
    int64_t      started_at_ms; /* of the last attempt */
    int64_t      updated_at_ms;
    int64_t      completed_at_ms;
} il_job_info;

/* JOB_*. op.key: queue (PUSH, CLAIM, LIST, PURGE); op.holder: worker (CLAIM); op.fence: token. */
typedef struct il_job_in {
    /* JOB_PUSH: id of the job, chosen by the caller (il_uuid()). JOB_CLAIM: id of the claim, a new
     * one for each claim. */
    const char *id;
    const void *data; /* JOB_PUSH: payload; JOB_FINISH: result */
    size_t      data_bytes;
    const char *group; /* JOB_PUSH: at most group_limit jobs of a group run at once */
    /* JOB_PUSH: a push with the unique key of a live job is a DUPLICATE. */
    const char *unique_key;
    /* JOB_PUSH: it is also one for this long after the push of that job, live or not. */
    int64_t     unique_for_ms;
    const char *parent;     /* JOB_PUSH: id of the parent */
    uint32_t    n_children; /* JOB_PUSH of a parent: number of children; 0 = open until JOB_SEAL */
    int32_t     priority;   /* JOB_PUSH: lower numbers come first */
    int64_t     delay_ms;  /* JOB_PUSH, JOB_SNOOZE; JOB_FAIL: until the next attempt, 0 = backoff */
    int64_t     run_at_ms; /* JOB_PUSH: instead of a delay, on the wall clock; 0 = none */
    uint32_t    max_attempts; /* JOB_PUSH; 0 = the queue's */
    uint32_t    limit;        /* JOB_CLAIM: 1..IL_CLAIM_JOBS_MAX, 0 = 1 */
    int64_t     lease_ms; /* JOB_CLAIM, JOB_HEARTBEAT; 0 = the queue's (HEARTBEAT: as claimed) */
    int32_t     progress; /* JOB_HEARTBEAT: 0..100; -1 = unchanged */
    /* JOB_HEARTBEAT: message; JOB_FAIL: error; JOB_CANCEL, QUEUE_PAUSE: reason. NULL = none */
    const char *text;
} il_job_in;

typedef enum il_strategy {
    IL_STRATEGY_PESSIMISTIC = 0, /* find, lock and mark in one statement */
    IL_STRATEGY_OPTIMISTIC  = 1, /* read candidates, then compare and set each */
    IL_STRATEGY_COUNT       = 2
} il_strategy;

/* Settings of a queue. In QUEUE_SET 0 leaves a setting unchanged (a new queue gets the default) and
 * -1 (IL_FOREVER) removes a limit or keeps jobs forever. */
typedef struct il_queue_opts {
    int32_t strategy;       /* 1 + enum il_strategy; 0 = unchanged */
    int32_t max_attempts;   /* default 5 */
    int64_t lease_ms;       /* of a claim; default 30 s */
    int64_t backoff_ms;     /* delay before the first retry, doubled each time; default 1 s */
    int64_t backoff_max_ms; /* default 1 h */
    int32_t group_limit;    /* maximum running jobs per group; default -1, no limit */
    int32_t rate_n;         /* maximum claims per period, at most 10,000; default -1, no limit */
    int64_t rate_ms;        /* length of the period, which may start at any time; default 1 s */
    int64_t keep_ms;        /* of completed and cancelled jobs; default 7 days */
    int64_t keep_failed_ms; /* of failed jobs; default 30 days */
    /* pessimistic, IL_CLAIM_SILENT: timeout since the last update; default 300 s */
    int64_t processing_timeout_ms;
    int64_t executing_timeout_ms; /* optimistic, IL_CLAIM_SILENT: since the start; default 120 s */
} il_queue_opts;

typedef struct il_queue_info {
    const char   *tenant;
    const char   *name;
    const char   *reason; /* why it is paused */
    uint32_t      paused;
    uint32_t      n_workers; /* that claimed in the last minute, counted up to IL_COUNT_MAX */
    il_queue_opts opts;      /* strategy is 1 + enum il_strategy */
    /* jobs by state. A claim makes at most 1,000 due jobs ready, so n_ready counts at most that
     * many of the jobs that have become due */
    uint64_t n_scheduled;
    uint64_t n_ready;
    uint64_t n_running;
    uint64_t n_failed;
    int64_t  oldest_ms; /* how long the oldest ready job has been due; 0 = none */
    uint64_t pushed, claimed, completed, failed_attempts, failed, snoozed, cancelled, recovered,
        duplicates, stale; /* totals since the queue was created */
} il_queue_info;

/* What to do about ticks missed while nothing was running. */
typedef enum il_missed {
    IL_MISSED_SKIP  = 0, /* continue with the next tick */
    IL_MISSED_ONE   = 1, /* one job for all of them */
    IL_MISSED_ALL   = 2, /* one job each */
    IL_MISSED_COUNT = 3
} il_missed;

IL_API const char *il_missed_name(il_missed missed);       /* "skip", "one", "all" */
IL_API const char *il_strategy_name(il_strategy strategy); /* "pessimistic", "optimistic" */

typedef struct il_cron_in { /* CRON_*. op.key is the queue (CRON_LIST: NULL = all) */
    const char *name;       /* of the entry, one per tenant */
    const char *schedule;   /* five fields, UTC: minute hour day month weekday; or @hourly, … */
    const void *data;       /* payload */
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
    int64_t     last_at_ms; /* time of the last tick; 0 = none */
} il_cron_info;

/* ---- cache ----------------------------------------------------------------------------------- */

/* CACHE_*. op.key is the key, op.holder the builder, op.fence the token. */
typedef struct il_cache_in {
    const void *value; /* CACHE_FILL */
    size_t      value_bytes;
    int64_t     ttl_ms;   /* CACHE_FILL: fresh for this long after the build *started* */
    int64_t     grace_ms; /* CACHE_FILL: usable as stale for this long after that */
    int64_t lease_ms; /* CACHE_LOOKUP: of the build; repeating renews it; 0 = IL_TTL_MS_DEFAULT */
    /* CACHE_GET, CACHE_LOOKUP: a random number for early refresh; 0 = never early */
    uint32_t chance;
    int32_t  code; /* CACHE_FILL, negative: why there is no value */
} il_cache_in;

typedef struct il_cache_info { /* of one page of keys; add up the pages */
    uint64_t n_entries;        /* with a usable value */
    uint64_t n_bytes;          /* of their values */
    uint64_t n_fresh;
    uint64_t n_stale;
    uint64_t n_negative;
    uint64_t n_building;
} il_cache_info;

typedef struct il_usage_info { /* of one page of rows; add up the pages */
    uint64_t n_rows;           /* cached values, idempotency keys, jobs, runs */
    uint64_t n_bytes; /* of their names, values, responses, payloads, results, logs and meta */
} il_usage_info;

typedef struct il_lock_in { /* ACQUIRE. RENEW uses ttl_ms, BREAK uses reason */
    int64_t  ttl_ms;        /* 0 = IL_TTL_MS_DEFAULT (RENEW: as granted) */
    int64_t  wait_ms;   /* 0 = do not queue; a queued holder that repeats with 0 leaves the queue */
    int64_t  settle_ms; /* keep the key closed this long after an expiry; 0..IL_TTL_MS_MAX */
    il_mode  mode;
    uint32_t permits;   /* IL_MODE_PERMIT: N, 1..IL_PERMITS_MAX; else 0 */
    const char *meta;   /* free text, shown in listings; BREAK: who breaks it; NULL = none */
    const char *place;  /* source location in the caller's program; NULL = none */
    const char *reason; /* BREAK: why; required */
} il_lock_in;

/* REFUSED. `holder` and `fence` are those of the conflicting lease; NULL and 0 = unknown. */
typedef struct il_refused_in {
    /* who was refused, without a process id: refusals with the same meta are merged */
    const char *meta;
    const char *other;   /* meta of the conflicting lease; NULL = unknown */
    const char *reason;  /* what the caller did next; NULL = unknown */
    int64_t     span_ms; /* time from the first refusal to the last; the last is now */
    int64_t     held_ms; /* how long the conflicting lease had been held; 0 = unknown */
    uint32_t    count;   /* 0 = 1 */
} il_refused_in;

/* Listings, HISTORY, CACHE_STATS, USAGE, SWEEP, JOB_PURGE */
typedef struct il_list_in {
    /* of the key (LIST, RUN_LIST, CACHE_STATS) or name (QUEUE_LIST, CRON_LIST); NULL = all.
     * ORDER_LIST: only edges between classes whose keys (CLASS:…) all begin with it */
    const char *prefix;
    const char *cursor; /* `next` of the previous page; NULL = first page */
    /* 0 = IL_PAGE_ITEMS_DEFAULT; CACHE_STATS: keys; USAGE: rows; SWEEP, JOB_PURGE: bound per kind,
     * 0 = 1000 */
    uint32_t limit;
    /* RUN_LIST, JOB_LIST, JOB_PURGE: 1 << state, or'ed; 0 = all (JOB_PURGE: required) */
    uint32_t states;
    int64_t  older_ms; /* JOB_PURGE: only jobs that have not changed for this long */
} il_list_in;

typedef struct il_sweep_out {
    uint32_t n_expired;   /* expired leases */
    uint32_t n_offered;   /* waiters that were offered a key */
    uint32_t n_dropped;   /* waiters dropped because they timed out or went silent */
    uint32_t n_deadlocks; /* waiters cancelled to break a deadlock */
    uint32_t n_runs;      /* runs ended because their worker died */
    uint32_t n_jobs;      /* expired claims: their jobs are ready again, or FAILED */
    uint32_t n_ticks;     /* jobs pushed by schedules */
    uint32_t n_purged;    /* expired rows of history, responses and cached values */
} il_sweep_out;

typedef struct il_op_out {
    uint32_t flags;    /* enum il_out_flags */
    uint32_t position; /* QUEUED: 1 = next */
    uint64_t fence;    /* of the lease, or the token; else the newest of the key, 0 = none */
    uint64_t ticket;   /* QUEUED */
    /* OK: until expiry; QUEUED: until the wait ends; LIMIT, EMPTY, BUSY: until a retry may help */
    int64_t              remaining_ms;
    const il_lease_info *items; /* HELD: the conflicting lease; GET, LIST: the leases */
    size_t               n_items;
    /* listings, CACHE_STATS, USAGE: cursor of the next page, NULL on the last page. A page may be
     * short or even empty and still have a next one: the work of one call is bounded. */
    const char          *next;
    const char          *detail; /* the cycle, the edge or the reason, as a sentence; or NULL */
    il_sweep_out         sweep;
    const il_run_info   *runs; /* RUN_*: the run; DUPLICATE, HELD: the conflicting run */
    size_t               n_runs;
    const il_job_info   *jobs; /* JOB_*: the job or the claimed jobs; DUPLICATE: the existing job */
    size_t               n_jobs;
    const il_queue_info *queues; /* QUEUE_LIST, QUEUE_SET, QUEUE_PAUSE */
    size_t               n_queues;
    const il_cron_info  *crons; /* CRON_LIST, CRON_SET */
    size_t               n_crons;
    il_cache_info        cache; /* CACHE_STATS */
    il_usage_info        usage; /* USAGE */
    const void          *value; /* REPLAY: the response; CACHE_*: the value; RUN_LOG: the text */
    size_t               value_bytes; /* value[value_bytes] is a NUL, for printing */
    uint64_t offset; /* RUN_LOG: of the first byte of value; higher than requested if discarded */
    /* ONCE_*: of the attempt that holds the key; OK: of the previous attempt, or "" */
    const char *meta;
    int32_t     code;   /* REPLAY, CACHE_* negative */
    int64_t     age_ms; /* CACHE_*: since the build of the value started; ONCE_*: since the claim */
    const il_edge_info  *edges; /* ORDER_LIST: ordered by `from`, then `to` */
    size_t               n_edges;
    const il_event_info *events; /* HISTORY: newest first */
    size_t               n_events;
} il_op_out;

/*
 * One operation: input, status and output together. Zero-initialise, set `type` and the inputs,
 * apply, read `status` and `out`, then il_op_release(). Then the op can be applied again.
 */
typedef struct il_op {
    il_op_type  type;
    uint32_t    flags;  /* enum il_op_flags */
    const char *tenant; /* NULL = the handle's */
    const char *key;
    const char *holder;
    /* RENEW, RELEASE, BREAK, CHECK_FENCE; the token of a run, attempt, job or build */
    uint64_t fence;
    union {
        il_lock_in    lock;
        il_refused_in refused;
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
    void     *mem;     /* internal; freed by il_op_release() */
    uint32_t  wake[2]; /* internal: what il_wait() waits for */
    struct {
        uint16_t tenant, key, holder, root;
    } n_bytes;           /* internal: lengths of the names */
    uint64_t bytes_left; /* internal: size limit of a claim or GET; 0 = the default */
    int64_t  poll_ms;    /* internal: maximum time for which a server holds the request open */
    uint64_t is_wide;    /* internal: `out` may have results behind `sweep` */
    uint64_t reserved[3];
} il_op;

/* Free what `out` points to and reset `status` and `out`. The inputs stay. Accepts a zeroed op. */
IL_API void il_op_release(il_op *op);

/* ---- the handle ------------------------------------------------------------------------------ */
typedef struct il il;

/*
 * The source of time, for tests. `boot_ms` never jumps and includes time spent suspended, `wall_ms`
 * is wall-clock time, `boot_id` changes when `boot_ms` restarts. Works only on a store created with
 * `?clock=test`, and such a store can be opened only with a clock.
 */
typedef struct il_clock {
    int64_t (*boot_ms)(void *cookie);
    int64_t (*wall_ms)(void *cookie);
    const char *(*boot_id)(void *cookie);
    void *cookie;
} il_clock;

/* Receives one line per applied batch, for debugging. Called on the applying thread. */
typedef void il_trace_fn(void *cookie, const char *line);

typedef struct il_open_opts {
    size_t             struct_size; /* sizeof(il_open_opts) */
    const char        *tenant;      /* NULL = "default" */
    const char *const *ranks;       /* classes in locking order; NULL = none declared */
    size_t             n_ranks;
    int64_t            timeout_ms; /* give up on a busy store after this long; 0 = 5,000 */
    const il_clock    *clock;      /* borrowed until il_close(); NULL = the machine's */
    il_trace_fn       *trace;      /* NULL = none */
    void              *trace_cookie;
    uint32_t           flags; /* enum il_open_flags */
} il_open_opts;

enum il_open_flags {
    IL_OPEN_EXISTING = 1 << 0, /* do not create a missing store */
    /* no background recovery; the caller applies IL_OP_SWEEP itself */
    IL_OPEN_NO_SWEEP = 1 << 1,
};

#define IL_OPEN_OPTS_INIT                                           \
    {                                                               \
        sizeof(il_open_opts), NULL, NULL, 0, 0, NULL, NULL, NULL, 0 \
    }

/*
 * Open a store: `memory:` (private to the handle), `memory:NAME` (shared by the handles of this
 * process that give the same name, and the same ranks and clock), `sqlite:PATH`, `postgres://…` or
 * `redis://…` (docs/LIBRARY.md). opts may be NULL. On IL_OK *ret is a handle that the caller closes
 * with il_close().
 *
 * If url is NULL, this opens the store that the command `interlock` would open. Sources, each
 * overriding those before it: the default, a SQLite file `interlock/interlock.db` in the user's
 * state folder; /etc/interlock/config.yml; $XDG_CONFIG_HOME/interlock/config.yml; the file
 * $INTERLOCK_CONFIG; the environment ($INTERLOCK_STORE, $INTERLOCK_SERVER, $INTERLOCK_TENANT,
 * $INTERLOCK_STORE_TIMEOUT, $INTERLOCK_RANKS); tenant, ranks and timeout_ms of opts. Other keys in
 * a file are ignored. The folder of the default store is created, unless IL_OPEN_EXISTING is set.
 * Any invalid value or unreadable file is IL_INVAL, even if a later source overrides it; the
 * message names the file, line and key, or the variable. Reading a file loads libyaml (IL_STORE if
 * it is missing). No other thread may change the environment during the call.
 *
 * Returns IL_OK, IL_INVAL (bad URL, option or configuration), IL_STORE, IL_FULL, IL_CORRUPT,
 * IL_NEWER, IL_NOMEM.
 * Blocks for I/O, at most opts->timeout_ms for a busy store. Do not fork() without exec with an
 * open handle: the child must not use it.
 */
IL_API IL_MUST_USE il_status il_open(const char *url, const il_open_opts *opts, il **ret,
                                     il_error *reterr);

/* Close the handle: stop renewals and free it. Unreleased leases stay until they expire. No call
 * may be in progress, and every il_lease, il_run, il_once, il_job and il_build must have been
 * freed. Accepts NULL. */
IL_API void il_close(il *h);

/*
 * Apply a batch in order, each op atomic. `n` is 1..IL_BATCH_OPS_MAX.
 *
 * A batch takes as few commits as its budget allows: a commit holds at most 256 ops and 50 ms of
 * work, so that no other caller waits long for the store. Lists and counts are read between two
 * commits and see what the ops before them changed. Other callers' ops may be applied in between.
 *
 * The results of a call take at most IL_RESULT_BYTES_MAX. When less than IL_BLOB_BYTES_MAX of that
 * is left, the remaining ops are not applied and get IL_LIMIT: apply them in another call. A
 * claim stops before the limit, with at least one job. A single listing is limited by its page.
 *
 * IL_OK: every op has its own status and is as durable as the engine promises. Any other status:
 * the outcome of every op is unknown; it is safe to repeat all of them unchanged.
 * IL_INVAL (n out of range) changes nothing. An invalid op gets IL_INVAL in its own status and does
 * not affect the others. Never waits for a key: an ACQUIRE that must wait is QUEUED.
 */
IL_API IL_MUST_USE il_status il_apply(il *h, il_op *ops, size_t n, il_error *reterr);

/*
 * Sleep until an op should be repeated. A queued ACQUIRE or RUN_START (status IL_QUEUED): its turn
 * has come, its wait was cancelled, five seconds have passed (a waiter must show that it is alive),
 * or its wait timed out. ONCE_BEGIN (IL_BUSY), CACHE_GET and CACHE_LOOKUP (IL_WAIT): the response
 * or value may exist now, or its builder may have died. JOB_CLAIM (IL_EMPTY): a job may be due.
 * RUN_GET, RUN_LOG and JOB_GET (IL_OK): it may have changed. `timeout_ms` limits the sleep;
 * IL_FOREVER does not. Returns IL_OK (repeat the op), IL_TIMEOUT (nothing happened for timeout_ms),
 * IL_CANCELLED (after il_interrupt()), IL_INVAL (not a waiting op of this handle), IL_NOMEM (cannot
 * start the thread for the sweeps that a wait relies on).
 */
IL_API IL_MUST_USE il_status il_wait(il *h, const il_op *op, int64_t timeout_ms);

/* Make every waiting call of this handle (il_wait(), il_acquire(), …) return IL_CANCELLED, now and
 * in the future. Other calls keep working. From any thread, but not from a signal handler. */
IL_API void il_interrupt(il *h);

/* ---- leases ---------------------------------------------------------------------------------- */
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
     * Called once, on the watchdog's thread, when the lease is lost: refused by the store, or the
     * local deadline minus stop_ms is reached without a renewal. Must not block, and must neither
     * release nor free the lease: both wait for this call to return.
     */
    void (*on_lost)(void *cookie, il_lease *lease, const char *why);
    /* Called after each renewal: the new local deadline (CLOCK_BOOTTIME, ns). Must not block. */
    void (*on_renewed)(void *cookie, il_lease *lease, int64_t deadline_ns);
    void       *cookie;
    const char *tenant; /* tenant of the key; NULL = the handle's */
} il_acquire_opts;

#define IL_ACQUIRE_OPTS_INIT                                                                  \
    {                                                                                         \
        sizeof(il_acquire_opts), NULL, 0, 0, 0, IL_MODE_EXCLUSIVE, 0, NULL, NULL, 0, 0, NULL, \
            NULL, NULL, NULL                                                                  \
    }

/*
 * Acquire `key`, waiting at most opts->wait_ms for it, and renew it from a thread of the handle.
 * opts may be NULL. On IL_OK *ret is a lease that the caller ends with il_lease_release() and then
 * il_lease_free().
 *
 * Returns IL_OK, IL_HELD (also when the wait timed out), IL_DEADLOCK, IL_ORDER, IL_MISMATCH,
 * IL_LOST (this holder's lease of this key ended less than a minute ago, and is still remembered),
 * IL_CANCELLED, IL_INVAL, IL_STORE, IL_FULL, IL_NOMEM. After any failure nothing is held and
 * nothing is queued, provided that the store is reachable.
 */
IL_API IL_MUST_USE il_status il_acquire(il *h, const char *key, const il_acquire_opts *opts,
                                        il_lease **ret, il_error *reterr);

/* Renew now, in addition to the automatic renewals. IL_OK, IL_LOST, or IL_STORE (outcome
 * unknown). */
IL_API IL_MUST_USE il_status il_lease_renew(il_lease *lease, il_error *reterr);

/* Release the lease. IL_OK also when repeated; IL_LOST if it had already ended. Whatever is
 * returned, renewals stop and on_lost is no longer called. */
IL_API il_status il_lease_release(il_lease *lease, il_error *reterr);

/* Free the lease without releasing it; renewals stop. Accepts NULL. */
IL_API void il_lease_free(il_lease *lease);

IL_API const char *il_lease_key(const il_lease *lease);
IL_API const char *il_lease_holder(const il_lease *lease);
IL_API uint64_t    il_lease_fence(const il_lease *lease);

/* IL_OK while held; IL_LOST once lost (also by the local deadline); IL_NOT_HELD after a release. */
IL_API il_status il_lease_status(const il_lease *lease);
/* A descriptor that polls readable once the lease is lost. Do not read or close it. */
IL_API int il_lease_fd(const il_lease *lease);
/* The local deadline: when the last successful renewal was sent, plus TTL, minus a margin. */
IL_API int64_t il_lease_deadline_ns(const il_lease *lease); /* CLOCK_BOOTTIME */
/* time until the local deadline, never below 0 */
IL_API int64_t il_lease_remaining_ms(const il_lease *lease);

/* ---- single calls, each one op --------------------------------------------------------------- */

/* Check that `fence` is the current one of `key`. IL_OK, IL_STALE (reterr->fence is the current
 * one, 0 = free). */
IL_API IL_MUST_USE il_status il_check_fence(il *h, const char *key, uint64_t fence,
                                            il_error *reterr);

/*
 * Break the lease `fence` of `key`; `flags` may be IL_BREAK_NOW. IL_OK, IL_NOT_HELD,
 * IL_STALE. The lock of a classic client of Redis has no fence: IL_OP_BREAK with fence 0, its
 * holder and IL_BREAK_NOW (else IL_STATE) deletes it.
 */
IL_API IL_MUST_USE il_status il_break(il *h, const char *key, uint64_t fence, const char *reason,
                                      uint32_t flags, il_error *reterr);

/* Show who holds `key` in *op (il_op_release() it). IL_OK or IL_NOT_HELD. */
IL_API IL_MUST_USE il_status il_get(il *h, const char *key, il_op *op, il_error *reterr);

/* A page of leases (or, with IL_LIST_WAITERS, waiters) whose key starts with `prefix` (NULL = all),
 * ordered by key, then fence (or ticket). *op is filled (il_op_release() it); op->out.next is the
 * cursor: the listing is complete when it is NULL, not when a page is short. */
IL_API IL_MUST_USE il_status il_list(il *h, const char *prefix, const char *cursor, uint32_t limit,
                                     uint32_t flags, il_op *op, il_error *reterr);

/* ---- runs: at most one execution per key at a time ------------------------------------------- */
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
    /* Each is called at most once, on the watchdog's thread: when the lease is lost, and when the
     * run is asked to stop. They must not block, and must neither finish nor free the run, which
     * wait for the callback to return. */
    void (*on_lost)(void *cookie, il_run *run, const char *why);
    void (*on_cancel)(void *cookie, il_run *run, const char *reason);
    void (*on_renewed)(void *cookie, il_run *run, int64_t deadline_ns);
    void       *cookie;
    const char *tenant; /* tenant of the run; NULL = the handle's */
} il_run_opts;

#define IL_RUN_OPTS_INIT                                                                           \
    {                                                                                              \
        sizeof(il_run_opts), NULL, NULL, IL_POLICY_JOIN, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0, \
            NULL, NULL, NULL, NULL, NULL                                                           \
    }

/*
 * Start a run of `key` and keep its lease renewed. IL_OK: *ret is a run that the caller ends with
 * il_run_finish() and then il_run_free(). Else nothing was started: IL_DUPLICATE (policies join and
 * skip), IL_HELD (reject; the key is held without a run; or the wait timed out), IL_LIMIT (too many
 * pending), IL_CANCELLED (cancelled while it was pending, or il_interrupt()), IL_STATE (a run
 * with this id has ended), and what il_acquire() returns. op may be NULL; else it is filled, and
 * op->out.runs shows the conflicting run (il_op_release() it).
 */
IL_API IL_MUST_USE il_status il_run_start(il *h, const char *key, const il_run_opts *opts,
                                          il_run **ret, il_op *op, il_error *reterr);

/* Report stage (NULL = unchanged), progress (-1 = unchanged) and output, which is appended to the
 * run's log. IL_OK or IL_STALE (the run has already ended). On IL_STORE and similar, repeat the
 * call, with more output appended if needed; nothing is written twice. Only this il_run may write
 * to the log. */
IL_API IL_MUST_USE il_status il_run_stage(il_run *run, const char *stage, int32_t progress,
                                          const void *log, size_t log_bytes, il_error *reterr);

/* Finish the run (COMPLETED, FAILED, CANCELLED, TIMEOUT or INTERRUPTED) and release its lease in
 * one op. IL_OK also when repeated; IL_STALE if it had already ended. Renewals stop in any case. */
IL_API IL_MUST_USE il_status il_run_finish(il_run *run, il_run_state state, const char *error,
                                           il_error *reterr);

/* Free the run without finishing it; renewals stop. Accepts NULL. */
IL_API void        il_run_free(il_run *run);
IL_API const char *il_run_id(const il_run *run);
/* The lease of the run, for il_lease_fence(), il_lease_status(), il_lease_fd() and so on. Owned by
 * the run: do not free it. */
IL_API const il_lease *il_run_lease(const il_run *run);

/* One op each. il_run_get() and il_run_wait() fill *op (il_op_release() it); il_run_wait() returns
 * when the run has ended, or IL_TIMEOUT. */
IL_API IL_MUST_USE il_status il_run_cancel(il *h, const char *id, const char *reason,
                                           il_error *reterr);
IL_API IL_MUST_USE il_status il_run_get(il *h, const char *id, il_op *op, il_error *reterr);
IL_API IL_MUST_USE il_status il_run_wait(il *h, const char *id, int64_t timeout_ms, il_op *op,
                                         il_error *reterr);

/* ---- idempotency: one effect and one response per key ---------------------------------------- */
typedef struct il_once il_once;

typedef struct il_once_opts {
    size_t      struct_size; /* sizeof(il_once_opts) */
    const void *fingerprint; /* of the request; at most IL_FINGERPRINT_BYTES_MAX */
    size_t      fingerprint_bytes;
    int64_t     lease_ms; /* of the claim, renewed in the background; 0 = 60 s */
    int64_t     keep_ms;  /* how long to keep the response; 0 = 24 h */
    int64_t     wait_ms;  /* for the response of a running first attempt; 0 = do not wait */
    const char *meta;
} il_once_opts;

#define IL_ONCE_OPTS_INIT                            \
    {                                                \
        sizeof(il_once_opts), NULL, 0, 0, 0, 0, NULL \
    }

/*
 * Begin work that must happen once per `key`. IL_OK: do the work, then call il_once_finish() (or
 * il_once_abandon()) and il_once_free(). IL_REPLAY: it was already done; op->out.value and
 * op->out.code are the response.
 * IL_BUSY: the first attempt is still running (after wait_ms). IL_MISMATCH: the key was used for
 * another request. *op is filled in each case (il_op_release() it).
 */
IL_API IL_MUST_USE il_status il_once_begin(il *h, const char *key, const il_once_opts *opts,
                                           il_once **ret, il_op *op, il_error *reterr);
/* Store the response. IL_OK, or IL_STALE: the claim had expired and the response was not stored.
 * Renewals of the claim stop, whatever is returned; a call that failed may be repeated until the
 * claim expires. */
IL_API IL_MUST_USE il_status il_once_finish(il_once *once, int32_t code, const void *response,
                                            size_t response_bytes, il_error *reterr);
IL_API il_status             il_once_abandon(il_once *once, il_error *reterr);
IL_API void                  il_once_free(il_once *once);
IL_API const il_lease       *il_once_lease(const il_once *once);

/* ---- queues ---------------------------------------------------------------------------------- */
typedef struct il_job il_job;

typedef struct il_push_opts {
    size_t      struct_size; /* sizeof(il_push_opts) */
    const char *id;          /* NULL = a new UUIDv7 */
    const char *group;
    const char *unique_key;
    int64_t     unique_for_ms;
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

/* Push a job, creating the queue if needed. ret_id (may be NULL) receives the id of the new job
 * (IL_OK) or of the existing one (IL_DUPLICATE). */
IL_API IL_MUST_USE il_status il_push(il *h, const char *queue, const void *payload,
                                     size_t payload_bytes, const il_push_opts *opts,
                                     char ret_id[IL_ID_BYTES_MAX + 1], il_error *reterr);

typedef struct il_claim_opts {
    size_t      struct_size; /* sizeof(il_claim_opts) */
    const char *worker;      /* its name; NULL = a new UUIDv7 */
    uint32_t    limit;       /* maximum number of jobs; 0 = 1 */
    int64_t     lease_ms;    /* 0 = the queue's */
    int64_t     wait_ms;     /* for a job to be due; 0 = do not wait */
    uint32_t    flags;       /* IL_CLAIM_SILENT: do not send heartbeats */
    /* Called when the claim is lost, and when the job is cancelled. As in il_run_opts. */
    void (*on_lost)(void *cookie, il_job *job, const char *why);
    void (*on_cancel)(void *cookie, il_job *job, const char *reason);
    void *cookie;
} il_claim_opts;

#define IL_CLAIM_OPTS_INIT                                        \
    {                                                             \
        sizeof(il_claim_opts), NULL, 0, 0, 0, 0, NULL, NULL, NULL \
    }

/*
 * Claim up to opts->limit jobs into ret[]; heartbeats are sent in the background until a job is
 * finished or freed. IL_OK with *ret_n >= 1, IL_EMPTY (also after wait_ms), IL_NOT_FOUND (no such
 * queue), IL_CANCELLED. Jobs that cannot be held for lack of memory or descriptors are returned to
 * the queue; IL_NOMEM if no job is left.
 */
IL_API IL_MUST_USE il_status il_claim(il *h, const char *queue, const il_claim_opts *opts,
                                      il_job **ret, size_t *ret_n, il_error *reterr);

IL_API const il_job_info *il_job_look(const il_job *job); /* as it was claimed */
IL_API const il_lease    *il_job_lease(const il_job *job);
/* Each returns IL_OK, IL_STALE (the claim is no longer this worker's), or IL_STORE and similar. The
 * last three stop the heartbeats, whatever they return; they may be repeated until the claim
 * expires. */
IL_API IL_MUST_USE il_status il_job_progress(il_job *job, int32_t percent, const char *message,
                                             il_error *reterr);
IL_API IL_MUST_USE il_status il_job_finish(il_job *job, const void *result, size_t result_bytes,
                                           il_error *reterr);
IL_API IL_MUST_USE il_status il_job_fail(il_job *job, const char *error, uint32_t flags,
                                         int64_t delay_ms, il_error *reterr);
IL_API IL_MUST_USE il_status il_job_snooze(il_job *job, int64_t delay_ms, il_error *reterr);
IL_API void                  il_job_free(il_job *job); /* stops the heartbeats; accepts NULL */

/* ---- cache: one caller builds a value, the others wait or get the stale value ---------------- */
typedef struct il_build il_build;

typedef struct il_cache_opts {
    size_t      struct_size; /* sizeof(il_cache_opts) */
    int64_t     lease_ms;    /* of the build, renewed in the background; 0 = IL_TTL_MS_DEFAULT */
    int64_t     wait_ms;     /* for another caller's build; 0 = 30 s, IL_FOREVER = no deadline */
    int         never_early; /* no early refresh */
    const char *tenant;      /* tenant of the key; NULL = the handle's */
} il_cache_opts;

#define IL_CACHE_OPTS_INIT                   \
    {                                        \
        sizeof(il_cache_opts), 0, 0, 0, NULL \
    }

/*
 * Look up `key`. IL_HIT, IL_STALE_HIT: the value is op->out.value. IL_LEAD: this caller must build
 * it and end *ret with il_build_fill() or il_build_abandon(), then il_build_free(); op->out.value
 * is the old value if one is usable. IL_WAIT: another caller's build took longer than wait_ms. With
 * ret NULL the call never leads and may return IL_NOT_FOUND. *op is filled (il_op_release() it).
 */
IL_API IL_MUST_USE il_status il_cache_lookup(il *h, const char *key, const il_cache_opts *opts,
                                             il_build **ret, il_op *op, il_error *reterr);
/* Store the value. IL_OK, or IL_STALE: dropped in the meantime, or the build outlived its lease.
 * flags: IL_CACHE_NEGATIVE. Renewals of the build stop, whatever is returned. */
IL_API IL_MUST_USE il_status il_build_fill(il_build *build, const void *value, size_t value_bytes,
                                           int64_t ttl_ms, int64_t grace_ms, uint32_t flags,
                                           int32_t code, il_error *reterr);
IL_API il_status             il_build_abandon(il_build *build, il_error *reterr);
IL_API void                  il_build_free(il_build *build);
IL_API const il_lease       *il_build_lease(const il_build *build);
/* Invalidate a value. flags: IL_DROP_STALE. IL_OK also if it does not exist. */
IL_API IL_MUST_USE il_status il_cache_drop(il *h, const char *key, uint32_t flags,
                                           il_error *reterr);

/* ------------------------------------------------------------------------------------------------
 * The caller's own transactions on a SQLite store: a job pushed in one exists if and only if it
 * commits.
 */
struct sqlite3;
typedef struct il_tx il_tx;

/*
 * Begin a write transaction on `db`, the caller's own connection to the store's own file (opened
 * with SQLITE_OPEN_FULLMUTEX, the default), under the store's lock. Until il_tx_commit() or
 * il_tx_rollback() the caller uses `db` for its statements and savepoints. Every other writer of
 * the store waits meanwhile, so a thread of the library rolls the transaction back after 1 s: a
 * running statement is interrupted, and later writes fail. Only il_tx_commit() commits: until the
 * end of the transaction it takes over the connection's commit, rollback and WAL hooks. Automatic
 * checkpoints stay off on the connection from then on. While the transaction is open, this thread
 * must not use the handle. Returns IL_OK, IL_INVAL (not the file of this store, not such a
 * connection, or a transaction is open on it), IL_STORE and similar.
 */
IL_API IL_MUST_USE il_status il_tx_begin(il *h, struct sqlite3 *db, il_tx **ret, il_error *reterr);
/* Apply JOB_PUSH, JOB_FINISH and CHECK_FENCE ops in the transaction, all of them or, on failure,
 * none. Other ops are refused with IL_INVAL in their own status. IL_OK, IL_TIMEOUT (the transaction
 * was open for too long), IL_STATE (a statement of the caller has ended it), IL_STORE and
 * similar. */
IL_API IL_MUST_USE il_status il_tx_apply(il_tx *tx, il_op *ops, size_t n, il_error *reterr);
/* Both end the transaction and free tx, whatever is returned. The commit wakes workers that wait
 * for a pushed job; it is as durable as the connection's PRAGMA synchronous says (FULL by default).
 * On any other status than IL_OK (those of il_tx_apply()), nothing of the transaction remains. */
IL_API IL_MUST_USE il_status il_tx_commit(il_tx *tx, il_error *reterr);
IL_API void                  il_tx_rollback(il_tx *tx);

/* ------------------------------------------------------------------------------------------------
 * PostgreSQL advisory locks, for fleets in which some programs use only those: hold one together
 * with a lease, from the first write to the last, and both kinds exclude each other. Only on a
 * PostgreSQL store.
 */
typedef struct il_advisory il_advisory;

/*
 * Take the advisory lock of a key, whose id is the first 8 bytes of SHA-256(key), big-endian, mod
 * 2^31, or the one with the given id. It is taken with pg_try_advisory_xact_lock() in a transaction
 * that does nothing else, on a separate connection. It is held until il_advisory_release(), until
 * that connection is lost, or until the process has been stopped for 30 s; release it before
 * il_close().
 * Never waits for the lock. IL_OK, IL_HELD, IL_INVAL (store or key), IL_STORE, IL_NOMEM.
 */
IL_API IL_MUST_USE il_status il_advisory_take(il *h, const char *key, il_advisory **ret,
                                              il_error *reterr);
IL_API IL_MUST_USE il_status il_advisory_take_id(il *h, int64_t id, il_advisory **ret,
                                                 il_error *reterr);
/* IL_OK, or IL_LOST: then stop the work as if its lease were lost. One thread at a time. */
IL_API IL_MUST_USE il_status il_advisory_check(il_advisory *a, il_error *reterr);
/* A descriptor that polls readable when the lock may be lost: then call il_advisory_check(). */
IL_API int  il_advisory_fd(const il_advisory *a);
IL_API void il_advisory_release(il_advisory *a); /* accepts NULL */

/* ---- utilities ------------------------------------------------------------------------------- */

/* Counters of this handle. Calls `fn` once per metric of docs/METRICS.md. */
typedef void il_metric_fn(void *cookie, const char *name, const char *help, uint64_t value);
IL_API void  il_metrics(il *h, il_metric_fn *fn, void *cookie);

/* Create a UUIDv7: 36 characters and a NUL. IL_STORE if random bytes cannot be read. */
IL_API IL_MUST_USE il_status il_uuid(char out[37]);

/* Validate a key, holder or tenant. IL_OK, or IL_INVAL with the reason. */
IL_API IL_MUST_USE il_status il_check_key(const char *key, il_error *reterr);
IL_API IL_MUST_USE il_status il_check_holder(const char *holder, il_error *reterr);
IL_API IL_MUST_USE il_status il_check_tenant(const char *tenant, il_error *reterr);

/* Parse a duration: `250ms`, `30s`, `5m`, `1h30m`, `1d`, `0`; `forever` gives IL_FOREVER. */
IL_API IL_MUST_USE il_status il_parse_duration(const char *text, int64_t *ret_ms, il_error *reterr);

/* The allocator of the library. Set it before any other call; NULL restores malloc(). */
typedef struct il_allocator {
    void *(*alloc)(void *cookie, size_t n_bytes);
    void *(*realloc)(void *cookie, void *p, size_t n_bytes);
    void (*free)(void *cookie, void *p);
    void *cookie;
} il_allocator;
IL_API void il_set_allocator(const il_allocator *allocator);

/* Version of the loaded library; IL_VERSION is that of this header. */
IL_API const char *il_version(void);

#ifdef __cplusplus
}
#endif
#endif
