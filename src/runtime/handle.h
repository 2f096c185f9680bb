/*
 * handle.h: the struct behind `il`: a store, the executor in front of it, and the keeper, the
 * threads that keep leases.
 *
 *   handle.c                       open, close, apply, and the calls that are one op each
 *   batch_split.c                  splits batches into pieces that the store executes at once
 *   group_commit.c                 the executor: one commit for all waiting calls
 *   wait.c                         sleeps until an op should be repeated
 *   lease.c                        il_acquire() and il_lease
 *   run.c, once.c, job.c, cache.c  the other op families; an il_lease inside each object keeps it
 *   caller_tx.c                    the caller's own transactions
 *   advisory.c                     PostgreSQL advisory locks
 *   async.c                        the same for callers that must not block; see async_internal.h
 *   announce.c                     messages between the handles of a store
 *   fair.c                         a fair queue of tenants
 *   result_budget.c                the memory of results
 *   keeper.c                       what becomes of a lease; starts the next three, its threads
 *   renewer.c                      renews them
 *   sweeper.c                      sweeps
 *   watchdog.c                     compares local deadlines with the clock, and notifies holders
 *   metrics.c                      counters
 */
#ifndef IL_RUNTIME_HANDLE_H
#define IL_RUNTIME_HANDLE_H

#include <stdatomic.h>

#include "base/mutex.h"
#include "runtime/group_commit.h"
#include "runtime/metrics.h"
#include "store/partial_index.h"
#include "store/store.h"

enum il__metric {
#define X(id, name, help) IL__METRIC_##id,
#include "runtime/metrics.def"
#undef X
    IL__METRIC_COUNT
};

#define IL__LONG_OPS 64 /* a call with more ops takes long: it uses a lane without short ones */

/* One sleeping il_wait(). */
struct il__sleeper {
    struct il__sleeper *next;
    uint32_t            slot;
};

struct il__counters;

struct il {
    struct il__store    *store;
    struct il__exec      execs[IL__LANES_MAX];
    unsigned             n_execs;
    atomic_uint          n_applying; /* callers in an executor now */
    char                *tenant;
    size_t               tenant_bytes;
    bool                 sweeps;
    atomic_bool          interrupted;
    struct il__counters *counters; /* IL__COUNTER_SHARDS of them */

    struct il__mutex    mutex; /* protects what follows */
    struct il__sleeper *sleepers;
    struct il_lease    *leases;   /* leases that are renewed or watched */
    pthread_cond_t      unpinned; /* a lease is no longer used by a keeper thread */
    pthread_t           renewer, sweeper, watchdog;
    bool                renewer_started, sweeper_started, watchdog_started;
    bool                closing;
    pthread_cond_t      stopped;    /* signalled when closing is set, for the sweeper, if started */
    uint32_t            break_seen; /* the board's word for breaks, as last seen by the renewer */
    int64_t             renewer_wakes_ns; /* when the renewer checks next */
    _Atomic uint32_t    renewer_word;     /* bumped to make it check now */
    int                 watch_fd;         /* eventfd: makes the watchdog check now */
};

/*
 * What a lease belongs to: a lock, a run, an idempotency key's claim, a job's claim, a build. The
 * callbacks run on keeper threads, without the mutex; the lease is pinned meanwhile. Callbacks
 * without a comment may be NULL.
 */
struct il__lease_kind {
    /* The op that renews it; never NULL. */
    il_op (*renewal)(il_lease *lease);
    /* Does the answer mean that the lease continues? If not, it is lost. NULL: IL_OK does. */
    bool (*extended)(const il_lease *lease, const il_op *op);
    /* Clean up after an answer that lost the lease. */
    void (*refused)(il_lease *lease, const il_op *op);
    void (*on_renewed)(il_lease *lease, int64_t deadline_ns);
    void (*on_lost)(il_lease *lease, const char *why);
    void (*on_cancel)(il_lease *lease, const char *reason);
    /* why it is lost, if the answer has no detail; NULL = the status's text */
    const char *lost_text;
};

/* Behind il_lease. Members without a comment never change after the grant. */
struct il_lease {
    il                          *h;
    const struct il__lease_kind *kind;
    char                        *tenant; /* NULL = the handle's */
    char                        *key;    /* or a job's id */
    char                        *holder;
    uint64_t                     fence;
    int64_t                      ttl_ms;
    int64_t                      stop_ms;
    bool                         renewed; /* by the renewer */
    int                          fd;      /* eventfd: readable once lost */
    atomic_int                   status;  /* IL_OK, IL_LOST, IL_NOT_HELD */
    _Atomic int64_t              deadline_ns;

    /* Under h->mutex: */
    struct il_lease *next;
    int64_t          renew_at_ns;
    unsigned         n_pins;       /* number of keeper threads using it */
    char             why[160];     /* why it is lost; "" while it is not */
    char             trouble[120]; /* why the last renewal was not answered; "" if it was */
    char             cancel[260];  /* why its work should stop; "" while not requested */
    bool             told;         /* on_lost was called, or will not be */
    bool             cancel_told;  /* the same for on_cancel */
};

/* For our own programs, before their first handle: change settings of libraries that apply to the
 * whole process, which is not for a library to decide. */
void il__configure_process(void);

/* Create a handle on a store, which it owns from then on (on IL_OK only). il_open() does this for a
 * URL. */
il_status il__handle_new(struct il__store *store, const il_open_opts *opts, il **ret,
                         il_error *reterr) MUST_USE;

/* Bring a store up to date; see core/schema.h. */
il_status il__migrate(const char *url, const il_open_opts *opts, bool check,
                      struct il__migration *ret, il_error *reterr) MUST_USE;

/* Create a store for a group; see store/store.h. */
il_status il__create_for(const char *url, const il_open_opts *opts, const char *group,
                         il_error *reterr) MUST_USE;

/* The store's report about itself; see store/report.h. */
il_status il__handle_report(il *h, const char *table, il__report_fn *each, void *cookie,
                            il_error *reterr) MUST_USE;

/* Send a request to the server behind the handle; see store/request.h. */
il_status il__handle_request(il *h, struct il__request *r, il_error *reterr) MUST_USE;

/* Guards on the user's tables; see store/table_guard.h. Not thread-safe. */
il_status il__handle_guard_table(il *h, const struct il__table_guard *change,
                                 il__table_guard_fn *each, void *cookie, il_error *reterr) MUST_USE;

/*
 * The first threads of a process have their own counter shards, which no other thread writes: a
 * load and a store are enough, without cache-line contention. The others share the last shard.
 */
#define IL__COUNTER_SHARDS 64
struct il__counters {
    _Alignas(64) atomic_ullong values[IL__METRIC_COUNT];
    /* batches by their size; the last one: beyond all bounds */
    atomic_ullong batch_ops[IL__BATCH_BOUNDS + 1];
    atomic_ullong commits[IL__COMMIT_BOUNDS + 1]; /* ... by the time they took */
};
unsigned il__counter_shard(void);

static inline void
il__count_on(unsigned shard, atomic_ullong *value, uint64_t n)
{
    if (shard < IL__COUNTER_SHARDS - 1)
        atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(value, n, memory_order_relaxed);
}

static inline void
il__count(il *h, enum il__metric metric, uint64_t n)
{
    unsigned shard = il__counter_shard();

    il__count_on(shard, &h->counters[shard].values[metric], n);
}
void il__count_op(il *h, const il_op *op);
/* A batch was committed. */
void il__count_batch(il *h, size_t n_ops, int64_t took_ns);

/* Fill in *reterr from an op that was applied but did not succeed. Returns its status. */
il_status il__error_of_op(const il_op *op, il_error *reterr);

/* Apply one op and turn its status into the function's. */
il_status il__apply_one(il *h, il_op *op, il_error *reterr) MUST_USE;
/* Apply one op, and repeat it once if its outcome is unknown, which is harmless. Otherwise like
 * il_apply(). */
il_status il__apply_sure(il *h, il_op *op, il_error *reterr) MUST_USE;
/* Move the results of `from` to the caller's *to (may be NULL: then they are freed). Of the inputs
 * only `key` is kept: the others may belong to freed memory. */
void il__op_give(il_op *from, const char *key, il_op *to);

/*
 * The steps of il_apply(), for callers that build batches themselves (async.c). Prepare: check the
 * ops and record what a waiter will sleep on (il__wake_note()), before anything can wake it; true
 * if one of them changes the store. Then apply them, all at once, and finish each call's ops: they
 * are counted, and belong to the caller again.
 */
bool il__ops_prepare(il *h, il_op *ops, il_op **ptrs, size_t n);
void il__ops_done(il *h, il_op *ops, size_t n, il_status st);
/* Through this executor. */
il_status il__ops_apply_on(il *h, unsigned lane, il_op *const *ops, size_t n, size_t *ret_done,
                           il_error *reterr) MUST_USE;
/* May an op of this type have to wait for a caller's own transaction? */
bool il__op_may_block_on_tx(il_op_type type);
/* The executor for a call of n ops with this first one, while n_callers are in executors. */
unsigned il__lane_of(const il *h, const il_op *first, size_t n, bool may_block, unsigned n_callers);

/* wait.c: can this op, as answered, be waited for? And how long at most without a wake-up. */
bool    il__wait_can(const il_op *op);
int64_t il__wait_longest_ms(const il_op *op);
/* Record what il_wait() will sleep on, if this op can be waited for. Call before applying it. */
void il__wake_note(il *h, il_op *op);
/* When a caller's wait ends (CLOCK_BOOTTIME), and how much of it is left: 0 = nothing, IL_FOREVER =
 * no end. */
int64_t il__wait_until_ns(int64_t wait_ms);
int64_t il__wait_left_ms(int64_t until_ns);
/* IL_INVAL if it is neither a time nor IL_FOREVER. */
il_status il__check_wait(int64_t wait_ms, il_error *reterr) MUST_USE;
/* The caller's wait for `what` ended without its answer. Returns `status`. */
il_status il__gave_up(const char *what, il_status status, il_error *reterr);

/* keeper.c. Starts the sweeper, if the handle sweeps, and the threads that keep leases, if it will
 * have any. */
il_status il__keeper_start(il *h, bool with_leases, il_error *reterr) MUST_USE;
void      il__keeper_stop(il *h);
void      il__keeper_add(il *h, il_lease *lease);    /* from now on it is renewed and watched */
void      il__keeper_remove(il *h, il_lease *lease); /* waits until no thread uses it; repeatable */

/* Process the answer to a grant or renewal sent at sent_ns: it lasts remaining_ms from its
 * execution. */
void il__lease_extended(il_lease *lease, int64_t sent_ns, int64_t remaining_ms);
/* The store has refused it: mark it as lost and have on_lost called. */
void il__lease_lost(il_lease *lease, const char *why);
/* A stop of its work was requested: have on_cancel called, the first time only. */
void il__lease_cancel(il_lease *lease, const char *reason);
/* The renewal of a lock's lease, and of a run's, which works the same. */
il_op il__lock_renewal(il_lease *lease);
/* The answer to one of the holder's ops says that it should stop or has lost the lease. */
void il__lease_answered(il_lease *lease, il_status st, const il_op *op);

/*
 * lease.c: the lease inside an object of a family. init: names are copied; false if out of memory
 * or descriptors, but release must be called all the same. Keep: the store has granted it; from now
 * on the renewer renews it, until the object is ended. On failure it is not kept, and the caller
 * gives it back.
 */
bool      il__lease_init(il_lease *lease, il *h, const struct il__lease_kind *kind, const char *key,
                         const char *holder, int64_t ttl_ms) MUST_USE;
void      il__lease_release(il_lease *lease);
il_status il__lease_keep(il_lease *lease, const il_op *granted, int64_t sent_ns, il_error *reterr)
    MUST_USE;
/* Apply an op that ends it, after the last renewal. IL_OK: released. Refused: it was lost. */
il_status il__lease_end(il_lease *lease, il_op *op, il_error *reterr);
il_status il__check_stop(int64_t stop_ms, int64_t ttl_ms, il_error *reterr) MUST_USE;

/* After il_job_fail() or il_job_snooze(): in how many ms the job is due again; -1 = not at all, or
 * unknown. */
int64_t il__job_due_ms(const il_job *job);

/* The public form of an advisory lock, which it owns; on failure it is released. */
il_status il__advisory_new(struct il__store_advisory *inner, il_advisory **ret, il_error *reterr)
    MUST_USE;

#endif
