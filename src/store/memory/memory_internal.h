/*
 * memory_internal.h: the tables of the memory engine, shared by its files.
 *
 * One mutex protects all of them. A hold is a waiter or a lease: the same object from the moment it
 * queues until it ends. See ../README.md, "Memory".
 *
 *   memory.c   opens and frees stores; batches
 *   tables.c   keys, units of work, lists and pools
 *   lock.c     acquire, renew, release, break
 *   expire.c   ends holds and offers keys to the next waiter
 *   order.c    lock order
 *   show.c     get, list, check_fence
 *   sweep.c    recovery, and the deadlock search
 *   history.c  the recorded expiries, breaks and refusals
 *   once.c     idempotency keys
 *   cache.c    cached values
 *   usage.c    how much a tenant stores
 *
 * Runs are in run.h, jobs, queues and schedules in queue_internal.h.
 */
#ifndef IL_STORE_MEMORY_INTERNAL_H
#define IL_STORE_MEMORY_INTERNAL_H

#include "base/heap.h"
#include "base/map.h"
#include "base/mutex.h"
#include "core/conflict.h"
#include "core/ended.h"
#include "core/fence.h"
#include "store/store.h"

struct mem_key;
struct mem_run;

/* A lease (OFFERED, HELD, CLOSING) or a waiter (WAITING). */
struct mem_hold {
    struct mem_key      *key;
    struct mem_hold     *prev, *next; /* in key->leases (by fence) or key->waiters (by ticket) */
    struct mem_hold     *unit_prev, *unit_next; /* of the same unit of work, younger and older */
    struct il__heap_node due; /* in store->due: expiry of a lease, death of a waiter */
    struct mem_hold     *wait_prev, *wait_next; /* of a waiter: in store->waiting, by ticket */
    uint64_t             holder_hash;
    uint64_t             unit_hash; /* of tenant and root */
    uint64_t             fence;     /* 0 for a waiter */
    uint64_t             ticket;    /* 0 for a lease that never waited */
    il_mode              mode;
    uint32_t             permits;
    il_lease_state       state;
    int64_t              ttl_ms;
    int64_t              settle_ms;
    int64_t              since_ms;    /* granted, offered or queued */
    int64_t              renewed_ms;  /* last renewal; a waiter's last sign of life */
    int64_t              deadline_ms; /* a waiter's own */
    struct mem_run      *run;         /* whose lease or waiter it is, or NULL */
    char                *verdict;  /* a cancelled waiter's cycle, a broken lease's reason; owned */
    const char          *meta;     /* in data */
    const char          *place;    /* in data */
    char                 holder[]; /* then meta and place */
};

struct mem_list {
    struct mem_hold *head, *tail;
    uint32_t         n;
};

/* A key with holders or waiters; removed when it has neither. */
struct mem_key {
    uint64_t        hash;
    struct mem_list leases;
    struct mem_list waiters;
    const char     *key; /* in tenant[], after the tenant */
    char            tenant[];
};

/* Freed small objects of one size, kept for reuse. */
struct mem_pool {
    void    *free; /* a list through their first word */
    unsigned n;
};

/* The hashes of the names of an op. */
struct mem_names {
    uint64_t key;    /* of tenant and key */
    uint64_t holder; /* of the holder */
    uint64_t unit;   /* of tenant and root */
};

struct mem_store {
    struct il__store base;
    struct il__mutex mutex;
    struct il__board board;
    const il_clock  *clock;
    struct il__ranks ranks; /* copied strings */

    struct il__map  keys;  /* struct mem_key by tenant and key */
    struct il__map  units; /* the youngest struct mem_hold of a unit of work, by tenant and root */
    struct il__heap due;   /* struct mem_hold: the first due comes first */
    size_t          n_holds;

    struct mem_pool key_pool, hold_pool;
    char     tenant[IL_TENANT_BYTES_MAX + 1]; /* of the last op, and its hash: usually the same */
    size_t   tenant_bytes;
    uint64_t tenant_hash;

    struct il__ended_log ended;
    struct il__order     order;

    uint64_t         fence;                  /* last drawn */
    uint64_t         ticket;                 /* last drawn */
    struct mem_hold *waiting, *waiting_last; /* all waiters, by ticket */
    uint32_t         n_waiters;
    int64_t          now_ms;  /* of the current batch */
    int64_t          wall_ms; /* the same on the wall clock */

    struct mem_runs   *runs;   /* run.c's own */
    struct mem_onces  *onces;  /* once.c's own */
    struct mem_queues *queues; /* queue.c's own */
    struct mem_caches *caches; /* cache.c's own */

    struct mem_histories *histories; /* history.c's own */

    char             *name; /* of memory:NAME, else NULL */
    unsigned          n_refs;
    struct mem_store *next_named;
};

/* tables.c: keys, units, pools */
uint64_t         il__mem_hash_key(struct mem_store *m, const char *tenant, const char *key);
uint64_t         il__mem_hash_op(struct mem_store *m, const il_op *op);
struct mem_names il__mem_names(struct mem_store *m, const il_op *op);
struct mem_key  *il__mem_key_find(struct mem_store *m, uint64_t hash, const char *tenant,
                                  const char *key);
struct mem_key  *il__mem_key_add(struct mem_store *m, uint64_t hash, const il_op *op);
void             il__mem_key_drop_if_idle(struct mem_store *m, struct mem_key *k);
struct mem_hold *il__mem_hold_new(struct mem_store *m, struct mem_key *k, const il_op *op,
                                  const struct mem_names *names, il_lease_state state,
                                  int64_t due_ms);
il__heap_before  il__mem_hold_before;
void             il__mem_hold_free(struct mem_store *m, struct mem_hold *h);
void             il__mem_list_append(struct mem_list *list, struct mem_hold *h);
void             il__mem_list_remove(struct mem_list *list, struct mem_hold *h);
void             il__mem_wait_begin(struct mem_store *m, struct mem_hold *h);
void             il__mem_wait_end(struct mem_store *m, struct mem_hold *h);
struct mem_hold *il__mem_unit_first(struct mem_store *m, uint64_t unit_hash, const char *tenant,
                                    const char *holder);
uint64_t         il__mem_hash_unit(struct mem_store *m, const char *tenant, const char *holder);
struct mem_hold *il__mem_unit_next(struct mem_hold *h);
void             il__mem_tables_release(struct mem_store *m);

/* expire.c: ending holds, handing keys over */
void il__mem_hold_end(struct mem_store *m, struct mem_hold *h, il_lease_state how);
void il__mem_expire(struct mem_store *m, struct mem_key *k, il_sweep_out *counts);
void il__mem_offer_next(struct mem_store *m, struct mem_key *k, il_sweep_out *counts);
struct il__occupancy il__mem_occupancy(const struct mem_key *k);
bool                 il__mem_hold_is_dead(const struct mem_store *m, const struct mem_hold *h);

/* lock.c: the building blocks of acquires and of starts of runs; `op` is an acquire */
struct mem_hold        *il__mem_find_holder(struct mem_store *m, const struct mem_key *k,
                                            const struct mem_list *list, const char *holder);
bool                    il__mem_has_queue(const struct mem_key *k);
void                    il__mem_answer_held(struct mem_store *m, il_op *op, struct mem_key *k);
void                    il__mem_acquire_own(struct mem_store *m, il_op *op, struct mem_hold *h);
struct mem_hold        *il__mem_grant(struct mem_store *m, il_op *op, struct mem_key *k,
                                      const struct mem_names *names); /* NULL: no memory */
struct mem_hold        *il__mem_enqueue(struct mem_store *m, il_op *op, struct mem_key *k,
                                        const struct mem_names *names); /* NULL: no memory */
void                    il__mem_enqueued(struct mem_store *m, il_op *op, struct mem_hold *w,
                                         const struct mem_names *names);
const struct il__ended *il__mem_find_ended(const struct mem_store *m,
                                           const struct mem_names *names);

/* lock.c, show.c, sweep.c: the ops */
void      il__mem_acquire(struct mem_store *m, il_op *op, const struct mem_names *names);
void      il__mem_renew(struct mem_store *m, il_op *op);
void      il__mem_release(struct mem_store *m, il_op *op);
void      il__mem_break(struct mem_store *m, il_op *op);
void      il__mem_get(struct mem_store *m, il_op *op);
void      il__mem_list(struct mem_store *m, il_op *op);
void      il__mem_check_fence(struct mem_store *m, il_op *op);
void      il__mem_sweep(struct mem_store *m, il_op *op);
void      il__mem_usage(struct mem_store *m, il_op *op);
bool      il__mem_show(struct mem_store *m, il_op *op, const struct mem_hold *h);
il_status il__mem_search_deadlock(struct mem_store *m, const char *tenant,
                                  const char *const *holders, size_t n, uint64_t *ret_ticket,
                                  struct il__buf *why);
/* order.c */
bool il__mem_rank_ok(struct mem_store *m, il_op *op, const struct mem_names *names);
void il__mem_learn(struct mem_store *m, il_op *op, const struct mem_names *names);

#endif
