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
#define IL_FOREVER (-1) /* wait_ms: no deadline */

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
    X(LIMIT,     17, "LIMIT_EXCEEDED",       429, 75, 1, "a configured limit is reached")
/* clang-format on */

typedef enum il_status {
#define X(name, num, wire, http, exit_status, retry, text) IL_##name = num,
    IL_STATUS_MAP(X)
#undef X
    IL_STATUS_COUNT = 18
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
    X(SWEEP,       8, "sweep",       1, "one bounded pass of recovery")
/* clang-format on */

typedef enum il_op_type {
    IL_OP_NONE = 0,
#define X(name, num, wire, writes, text) IL_OP_##name = num,
    IL_OP_MAP(X)
#undef X
    IL_OP_COUNT = 9
} il_op_type;

IL_API const char *il_op_name(il_op_type type); /* the wire name; "none" for IL_OP_NONE */

enum il_op_flags {
    IL_BREAK_NOW = 1 << 0, /* BREAK: open the key at once instead of when the holder has let go */
    IL_LIST_WAITERS = 1 << 1, /* LIST: waiters (in queue order within a key) instead of leases */
};

enum il_out_flags {
    IL_OUT_RENEWED       = 1 << 0, /* ACQUIRE: the holder had the lease already */
    IL_OUT_ORDER_WARNING = 1 << 1, /* ACQUIRE: against the learned lock order; `detail` says which edge */
    IL_OUT_MORE          = 1 << 2, /* SWEEP: the bound was reached, there is more to do */
};

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

typedef struct il_list_in {
    const char *prefix; /* of the key; NULL = all */
    const char *cursor; /* `next` of the page before; NULL = first page */
    uint32_t    limit;  /* 0 = IL_PAGE_ITEMS_DEFAULT (LIST); SWEEP: bound per kind, 0 = 1000 */
} il_list_in;

typedef struct il_sweep_out {
    uint32_t n_expired;   /* leases that ran out */
    uint32_t n_offered;   /* waiters that got an offer */
    uint32_t n_dropped;   /* waiters whose deadline passed or who gave no sign of life */
    uint32_t n_deadlocks; /* waiters cancelled to open a cycle */
} il_sweep_out;

typedef struct il_op_out {
    uint32_t             flags;    /* enum il_out_flags */
    uint32_t             position; /* QUEUED: 1 = next */
    uint64_t             fence;  /* the lease's (ACQUIRE, RENEW); else the key's newest, 0 = none */
    uint64_t             ticket; /* QUEUED */
    int64_t              remaining_ms; /* OK: to the expiry; QUEUED: to the end of the wait */
    const il_lease_info *items;        /* HELD: one that is in the way; GET, LIST: the leases */
    size_t               n_items;
    const char          *next;   /* LIST: cursor of the next page, NULL = this was the last */
    const char          *detail; /* a sentence: the cycle, the edge, what is wrong; or NULL */
    il_sweep_out         sweep;
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
    uint64_t    fence; /* RENEW, RELEASE, BREAK, CHECK_FENCE */
    union {
        il_lock_in lock;
        il_list_in list;
        uint64_t   reserved[24];
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
 * that give the same name, and the same ranks and clock), or `sqlite:PATH`. opts may be NULL. On IL_OK *ret is a handle that the
 * caller ends with il_close().
 *
 * Returns IL_OK, IL_INVAL (bad URL or option), IL_STORE, IL_FULL, IL_CORRUPT, IL_NEWER, IL_NOMEM.
 * Blocks for I/O, at most opts->timeout_ms for a busy store. Do not fork() without exec with an open
 * handle: the child must not use it.
 */
IL_API IL_MUST_USE il_status il_open(const char *url, const il_open_opts *opts, il **ret,
                                     il_error *reterr);

/* Close: stops renewals, frees. Leases not released stay until they expire. No call may be under way
 * and every il_lease must have been freed. NULL is fine. */
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
 * Sleep until the queued ACQUIRE `op` (status IL_QUEUED) should be repeated: its turn has come, its
 * wait was cancelled, five seconds have passed (a waiter must give a sign of life), or its wait is over.
 * `timeout_ms` may shorten that; IL_FOREVER does not. Returns IL_OK (repeat it), IL_TIMEOUT (nothing
 * happened for timeout_ms), IL_CANCELLED (after il_interrupt()), IL_INVAL (not a queued op of this handle),
 * IL_NOMEM (no thread to be had for the sweeps that a wait relies on).
 */
IL_API IL_MUST_USE il_status il_wait(il *h, const il_op *op, int64_t timeout_ms);

/* Make every il_wait() and waiting il_acquire() of this handle return IL_CANCELLED, now and from now
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
