/*
 * memory_internal.h: the memory engine's tables, shared by its files.
 *
 * One mutex protects all of it. A hold is a waiter or a lease: the same object from the moment it queues
 * to the moment it ends. See ../README.md, "Memory".
 */
#ifndef IL_STORE_MEMORY_INTERNAL_H
#define IL_STORE_MEMORY_INTERNAL_H

#include "base/mutex.h"
#include "core/conflict.h"
#include "store/store.h"

struct mem_key;

/* A lease (OFFERED, HELD, CLOSING) or a waiter (WAITING). */
struct mem_hold {
    struct mem_key  *key;
    struct mem_hold *prev, *next;           /* in key->leases (by fence) or key->waiters (by ticket) */
    struct mem_hold *unit_prev, *unit_next; /* in its bucket of store->units */
    size_t           heap_i;                /* where it stands in store->due */
    uint64_t         holder_hash;
    uint64_t         unit_hash; /* of tenant and root */
    uint64_t         fence;     /* 0 for a waiter */
    uint64_t         ticket;    /* 0 for a lease that never waited */
    il_mode          mode;
    uint32_t         permits;
    il_lease_state   state;
    int64_t          ttl_ms;
    int64_t          settle_ms;
    int64_t          since_ms;   /* granted, offered or queued */
    int64_t          renewed_ms; /* last renewal; a waiter's last sign of life */
    int64_t          due_ms;     /* a lease's expiry; when a waiter is dead */
    int64_t          deadline_ms; /* a waiter's own */
    int64_t          since_wall_ms;
    char            *verdict; /* a cancelled waiter's cycle; owned */
    const char      *meta;    /* in data */
    const char      *place;   /* in data */
    char             holder[]; /* then meta and place */
};

struct mem_list {
    struct mem_hold *head, *tail;
    uint32_t         n;
};

/* A key that somebody holds or waits for; gone when nobody does. */
struct mem_key {
    uint64_t        hash;
    struct mem_list leases;
    struct mem_list waiters;
    const char     *key; /* in tenant[], after the tenant */
    char            tenant[];
};

/* The memory that (key, holder) ended. 128 bits of hash stand for the names: a collision would refuse a
 * holder for a minute, never grant anything, and does not happen. */
struct mem_ended {
    uint64_t key_hash;
    uint64_t holder_hash;
    uint64_t fence : 56;
    uint64_t how : 8; /* il_lease_state */
    int64_t  ended_ms;
    uint64_t older; /* the next of the bucket's chain: sequence number, see ended.c */
};

struct mem_ended_log {
    struct mem_ended *ring;    /* ended_ms grows along it */
    uint64_t         *buckets; /* sequence number of the youngest of a chain, 0 = none */
    size_t            n_slots; /* of the ring, and half the buckets; a power of two */
    uint64_t          first;   /* sequence number of the oldest, counted from 1 */
    size_t            n;
};

struct mem_due {
    int64_t          due_ms;
    struct mem_hold *hold;
};

struct mem_store {
    struct il__store  base;
    struct il__mutex  mutex;
    struct il__board  board;
    const il_clock   *clock;
    struct il__ranks  ranks; /* copied strings */
    char            **rank_names;

    struct mem_key  **keys; /* open addressing, linear probing */
    size_t            keys_size;
    size_t            n_keys;
    struct mem_hold **units; /* buckets of holds by (tenant, root) */
    size_t            units_size;
    struct mem_due   *due; /* heap: what is overdue first */
    size_t            n_due, due_capacity;

    struct mem_ended_log ended;
    struct il__order     order;

    uint64_t fence;  /* last drawn */
    uint64_t ticket; /* last drawn */
    uint32_t n_waiters;
    int64_t  now_ms; /* of the batch under way */
    int64_t  wall_ms;

    char             *name; /* of memory:NAME, else NULL */
    unsigned          n_refs;
    struct mem_store *next_named;
};

/* tables.c: keys, units, the heap */
uint64_t        il__mem_hash_key(const char *tenant, const char *key);
struct mem_key *il__mem_key_find(struct mem_store *m, uint64_t hash, const char *tenant,
                                 const char *key);
struct mem_key *il__mem_key_add(struct mem_store *m, uint64_t hash, const char *tenant,
                                const char *key);
void            il__mem_key_drop_if_idle(struct mem_store *m, struct mem_key *k);
struct mem_hold *il__mem_hold_new(struct mem_store *m, struct mem_key *k, const il_op *op);
void             il__mem_hold_free(struct mem_store *m, struct mem_hold *h);
void             il__mem_list_append(struct mem_list *list, struct mem_hold *h);
void             il__mem_list_remove(struct mem_list *list, struct mem_hold *h);
void             il__mem_due_set(struct mem_store *m, struct mem_hold *h, int64_t due_ms);
struct mem_hold *il__mem_unit_first(struct mem_store *m, const char *tenant, const char *holder);
struct mem_hold *il__mem_unit_next(struct mem_hold *h);
void             il__mem_tables_release(struct mem_store *m);

/* ended.c */
bool                    il__mem_ended_reserve(struct mem_store *m);
void                    il__mem_ended_add(struct mem_store *m, const struct mem_hold *h, il_lease_state how);
const struct mem_ended *il__mem_ended_find(const struct mem_store *m, uint64_t key_hash,
                                           uint64_t holder_hash);
uint32_t                il__mem_ended_purge(struct mem_store *m, uint32_t limit);

/* settle.c: ending holds, giving keys on */
void il__mem_end(struct mem_store *m, struct mem_hold *h, il_lease_state how);
void il__mem_settle(struct mem_store *m, struct mem_key *k, il_sweep_out *counts);
void il__mem_give_on(struct mem_store *m, struct mem_key *k, il_sweep_out *counts);
struct il__load il__mem_load(const struct mem_key *k);
bool            il__mem_dead(const struct mem_store *m, const struct mem_hold *h);

/* lock.c, show.c, sweep.c: the ops */
void      il__mem_acquire(struct mem_store *m, il_op *op);
void      il__mem_renew(struct mem_store *m, il_op *op);
void      il__mem_release(struct mem_store *m, il_op *op);
void      il__mem_break(struct mem_store *m, il_op *op);
void      il__mem_get(struct mem_store *m, il_op *op);
void      il__mem_list(struct mem_store *m, il_op *op);
void      il__mem_check_fence(struct mem_store *m, il_op *op);
void      il__mem_sweep(struct mem_store *m, il_op *op);
bool      il__mem_show(struct mem_store *m, il_op *op, const struct mem_hold *h);
il_status il__mem_search_deadlock(struct mem_store *m, const char *tenant, const char *holder,
                                  struct mem_hold **ret_victim, struct il__buf *why);
/* order.c */
il_status il__mem_order(struct mem_store *m, il_op *op);

#endif
