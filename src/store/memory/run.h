/*
 * run.h: runs in the memory engine.
 *
 *   run.c         stage, finish, cancel, log; the sweep
 *   run_start.c   start
 *   run_show.c    formats a run for replies; get and list
 *   run_tables.c  the runs themselves: by id, by key, by age; how they end
 */
#ifndef IL_STORE_MEMORY_RUN_H
#define IL_STORE_MEMORY_RUN_H

#include "base/tree.h"
#include "core/lease.h"
#include "core/run.h"
#include "store/memory/memory_internal.h"

/* The live runs of a key; removed when there are none. */
struct mem_run_key {
    uint64_t        hash;
    struct mem_run *oldest, *newest;
    uint32_t        n_pending;
};

/* The runs of a tenant whose keys are of one class, live and ended; removed when there are none. */
struct mem_run_class {
    uint64_t        hash;
    struct mem_run *live; /* those that are live */
    struct mem_run *last; /* all of them: the newest by the wall clock */
};

/* Admitted starts of a tenant and class; created by the first with a rate, removed by a sweep. */
struct mem_rate {
    struct mem_rate *later; /* used after this one, at once or since */
    struct mem_rate *sooner;
    int64_t          used_ms; /* by the last start, in lease time */
    uint64_t         hash;
    int64_t          slots[IL__RATE_COUNT][IL__RATE_SLOTS];
    uint64_t         n[IL__RATE_COUNT][IL__RATE_SLOTS];
    size_t           n_class;
    char *class; /* in tenant[] */
    char tenant[];
};

/* The tail of a log: byte i of everything written is data[i % capacity]. */
struct mem_log {
    unsigned char *data;
    size_t         capacity; /* doubles up to IL_LOG_BYTES_MAX; nothing is dropped before */
    uint64_t       n_bytes;  /* written so far */
};

struct mem_run {
    uint64_t              hash;          /* of tenant and id */
    struct mem_run       *newer, *older; /* all runs, by seq */
    struct il__tree_node  by_state;      /* in runs->in_state */
    struct il__tree_node  by_key;        /* in runs->of_key */
    struct mem_run_key   *of_key;        /* while it is live */
    struct mem_run       *prev, *next;   /* in of_key, by seq */
    struct mem_run_class *of_class;
    struct mem_run       *class_prev, *class_next;  /* in of_class->live, while it is live */
    struct mem_run       *made_before, *made_after; /* in of_class, by created_ms */
    struct mem_hold      *hold; /* its waiter or lease; NULL: a slot, or ended */
    uint64_t              seq;
    uint64_t              fence; /* of its lease, once it was started */
    il_run_state          state;
    bool                  cancelled;
    bool                  finished; /* ended by a finish */
    struct il__run_error  error;
    char                 *text;   /* error.text, if it is the run's own */
    char                 *holder; /* owned; NULL while it has no executor */
    char                 *stage;  /* owned; NULL = none */
    int32_t               progress;
    uint32_t              n_joined;
    struct mem_log        log;
    int64_t               ttl_ms;
    int64_t               keep_ms;
    int64_t               created_ms, started_ms, ended_ms, updated_ms; /* wall clock */
    struct il__heap_node  purge; /* of an ended run, in runs->purge: when, on the wall clock */
    char        replaced_by[IL_ID_BYTES_MAX + 1]; /* error.text of one that was replaced */
    const char *id, *key, *trigger, *by, *meta;   /* in tenant[] */
    char        tenant[];
};

struct mem_runs {
    struct il__map   by_id;                        /* struct mem_run */
    struct il__map   by_key;                       /* struct mem_run_key */
    struct il__map   by_class;                     /* struct mem_run_class */
    struct il__map   rates;                        /* struct mem_rate, by tenant and class */
    struct mem_rate *rate_first, *rate_last;       /* by used_ms */
    struct il__tree  in_state[IL_RUN_STATE_COUNT]; /* by tenant, seq */
    struct il__tree  of_key[IL_RUN_STATE_COUNT];   /* by tenant, key, seq */
    struct mem_run  *newest;
    size_t           n;
    struct il__heap  purge; /* struct mem_run: ended runs, by purge time, then seq */
};

/* Is any run stored, live or ended? */
static inline bool
il__mem_run_any(const struct mem_store *m)
{
    return m->runs->n > 0;
}

bool il__mem_run_init(struct mem_store *m) MUST_USE; /* false: no memory */
void il__mem_run_release(struct mem_store *m);       /* also after a failed init */
/* Execute an op of this family. */
void il__mem_run_op(struct mem_store *m, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; adds to op->out.sweep and sets
 * IL_OUT_MORE. */
void il__mem_run_sweep(struct mem_store *m, il_op *op);
/* Would a sweep have something to do? m->now_ms and m->wall_ms are current. */
bool il__mem_run_overdue(const struct mem_store *m);

/* Events from the locks. `h` is a lease or waiter with a run. */

/* It was confirmed or renewed: the run is RUNNING; tells `op` if the run should stop. */
void il__mem_run_held(struct mem_store *m, il_op *op, const struct mem_hold *h);
/* It will be broken, and the run should stop. False: no memory. */
bool il__mem_run_broken(struct mem_store *m, const struct mem_hold *h, const char *reason) MUST_USE;
/* It ends, and so does the run, which takes h->verdict. h->run is NULL afterwards. */
void il__mem_run_lost(struct mem_store *m, struct mem_hold *h, il_lease_state how);

/* run_tables.c */
struct mem_run     *il__mem_run_find(struct mem_store *m, const char *tenant, const char *id);
struct mem_run_key *il__mem_run_key_find(struct mem_store *m, uint64_t hash, const il_op *op);
/* The runs of the class of the op's key; NULL when there are none. */
struct mem_run_class *il__mem_run_class_find(struct mem_store *m, const il_op *op);
/* The rates of the op's tenant and class; NULL: no memory. */
/* Is there a rate with no slot that still counts? */
bool il__mem_run_rate_overdue(const struct mem_store *m);
/* Drop one of these; false: none left. */
bool il__mem_run_rate_drop(struct mem_store *m);
/* The rate of a start, created if missing; NULL: no memory. */
struct mem_rate *il__mem_run_rate(struct mem_store *m, const il_op *op);
/* A new run, not yet in a table but with room in all of them; NULL: no memory. The caller then adds
 * or drops it. */
struct mem_run *il__mem_run_new(struct mem_store *m, const il_op *op) MUST_USE;
void            il__mem_run_add(struct mem_store *m, struct mem_run *r, enum il__run_event event);
void            il__mem_run_drop(struct mem_run *r);
void            il__mem_run_begin(struct mem_store *m, struct mem_run *r); /* PENDING to RUNNING */
/* End a run. Takes ownership of `text` (may be NULL) and detaches its hold, which the caller
 * ends. */
void il__mem_run_end(struct mem_store *m, struct mem_run *r, enum il__run_event event, char *text);
/* Ask a running run to stop, for a reason whose text is `owned` (taken over) or stored elsewhere in
 * the run. */
void il__mem_run_stop(struct mem_store *m, struct mem_run *r, struct il__run_error error,
                      char *owned);
void il__mem_run_changed(struct mem_store *m, struct mem_run *r); /* now; wakes the waiters */
bool il__mem_run_purge(struct mem_store *m); /* the next one; false: none is due */

/* End the hold of a pending run that was cancelled. */
enum il__lease_event il__mem_run_leave_event(const struct mem_hold *h);

/* run_start.c, run_show.c */
void il__mem_run_start(struct mem_store *m, il_op *op);
void il__mem_run_get(struct mem_store *m, il_op *op, const struct mem_run *r);
void il__mem_run_list(struct mem_store *m, il_op *op);
/* A copy of a run as stored, to be changed and shown. */
struct mem_run_look {
    il_run_info          info;
    struct il__run_error error;
    struct il__run_hold  hold;
};
struct mem_run_look il__mem_run_look(const struct mem_store *m, const struct mem_run *r);
/* Show it; NULL: no memory, and the op says so. */
il_run_info *il__mem_run_show_look(const struct mem_store *m, il_op *op,
                                   const struct mem_run_look *l);
il_run_info *il__mem_run_show(const struct mem_store *m, il_op *op, const struct mem_run *r);

#endif
