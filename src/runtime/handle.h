/*
 * handle.h: what is behind `il`: a store, the executor in front of it, and the keeper that renews.
 *
 *   handle.c   open, close, apply, and the single calls
 *   exec.c     group commit
 *   wait.c     sleeping for a turn
 *   lease.c    il_acquire() and il_lease
 *   keeper.c   the two threads: renewal and sweeps; the watchdog
 *   metrics.c  counters
 */
#ifndef IL_RUNTIME_HANDLE_H
#define IL_RUNTIME_HANDLE_H

#include <stdatomic.h>

#include "base/mutex.h"
#include "runtime/exec.h"
#include "store/store.h"

enum il__metric {
#define X(id, name, help) IL__METRIC_##id,
#include "runtime/metrics.def"
#undef X
    IL__METRIC_COUNT
};

/* One sleeping il_wait(). */
struct il__sleeper {
    struct il__sleeper *next;
    uint32_t            slot;
};

struct il__counters;

struct il {
    struct il__store    *store;
    struct il__exec      exec;
    char                *tenant;
    size_t               tenant_bytes;
    bool                 sweeps;
    atomic_bool          interrupted;
    struct il__counters *counters; /* IL__COUNTER_SHARDS of them */

    struct il__mutex    mutex; /* protects what follows */
    struct il__sleeper *sleepers;
    struct il_lease    *leases;   /* those that are kept renewed or watched */
    pthread_cond_t      unpinned; /* a lease is no longer used by a thread of the keeper */
    pthread_t           keeper, watchdog;
    bool                keeper_started, watchdog_started;
    bool                closing;
    uint32_t         break_seen; /* the board's word for breaks, as far as the keeper has looked */
    int64_t          keeper_wakes_ns; /* when the keeper will look again */
    _Atomic uint32_t keeper_word;     /* bumped to make it look now */
    int              watch_fd;        /* eventfd: makes the watchdog look now */
};

/* Behind il_lease. What has no comment is fixed at the grant. */
struct il_lease {
    il             *h;
    char           *key;
    char           *holder;
    uint64_t        fence;
    int64_t         ttl_ms;
    int64_t         stop_ms;
    bool            renewed; /* by the keeper */
    il_acquire_opts opts;    /* the callbacks; its strings are not used */
    int             fd;      /* eventfd: readable once lost */
    atomic_int      status;  /* IL_OK, IL_LOST, IL_NOT_HELD */
    _Atomic int64_t deadline_ns;

    /* Under h->mutex: */
    struct il_lease *next;
    int64_t          renew_at_ns;
    unsigned         n_pins;   /* threads of the keeper that use it right now */
    char             why[160]; /* why it is lost; "" while it is not */
    bool             told;     /* on_lost was called, or will not be */
};

/* A handle over a store, which it owns from then on (on IL_OK only). il_open() is this over a URL. */
il_status il__handle_new(struct il__store *store, const il_open_opts *opts, il **ret,
                         il_error *reterr) MUST_USE;

/*
 * The first threads of a process count on shards of their own, where nobody else writes: a load and a store
 * are enough, and no line is fought for. The others share the last shard.
 */
#define IL__COUNTER_SHARDS 64
struct il__counters {
    _Alignas(64) atomic_ullong values[IL__METRIC_COUNT];
};
unsigned il__counter_shard(void);

static inline void
il__count(il *h, enum il__metric metric, uint64_t n)
{
    unsigned       shard = il__counter_shard();
    atomic_ullong *value = &h->counters[shard].values[metric];

    if (shard < IL__COUNTER_SHARDS - 1)
        atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(value, n, memory_order_relaxed);
}
void il__count_op(il *h, const il_op *op);

/* Fill *reterr from an op that was applied and did not end as hoped. Returns its status. */
il_status il__error_of_op(const il_op *op, il_error *reterr);

/* keeper.c */
il_status il__keeper_start(il *h, bool with_watchdog, il_error *reterr) MUST_USE;
void      il__keeper_stop(il *h);
void      il__keeper_add(il *h, il_lease *lease);    /* from now on it is renewed and watched */
void      il__keeper_remove(il *h, il_lease *lease); /* waits until no thread uses it; repeatable */

/* Take the answer to a renewal or repeated acquire that was sent at sent_ns. */
void il__lease_renewal_sent(il_lease *lease, int64_t sent_ns);
/* The store has refused it: mark it as lost, and have on_lost called. */
void il__lease_lost(il_lease *lease, const char *why);

#endif
