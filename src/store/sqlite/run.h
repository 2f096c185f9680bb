/*
 * run.h: runs in the SQLite engine. A function that uses the database returns false when the
 * database fails; see sqlite_internal.h.
 *
 *   run.c        stage, finish, cancel; the sweep; what locks report about their runs
 *   run_start.c  start
 *   run_show.c   formats a run for replies; get and list
 *   run_row.c    rows of il_run
 *   run_log.c    the log, stored in pieces
 */
#ifndef IL_STORE_SQLITE_RUN_H
#define IL_STORE_SQLITE_RUN_H

#include "core/run.h"
#include "store/sqlite/sqlite_internal.h"

/* Execute an op of this family in the open write transaction. */
bool il__sq_run_op(struct sq_store *s, il_op *op);
/* The same for ops that change nothing, on either connection. `arena` holds data that lives for one
 * op. */
bool il__sq_run_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; adds to op->out.sweep and sets
 * IL_OUT_MORE. */
bool il__sq_run_sweep(struct sq_store *s, il_op *op);
/* Would a sweep have something to do? Works on either connection. */
bool il__sq_run_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret);

/* Events from the locks. `h` is a lease or waiter with a run. */

/* The waiter of the run has become an offered lease. */
bool il__sq_run_offered(struct sq_store *s, uint64_t seq, uint64_t fence);
/* It was confirmed or renewed: the run is RUNNING; tells `op` if the run should stop. */
bool il__sq_run_held(struct sq_store *s, il_op *op, const struct sq_key *k,
                     const struct sq_hold *h);
/* It will be broken for h->reason, and the run should stop. */
bool il__sq_run_broken(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h);
/* It ends, and with it the run. */
bool il__sq_run_lost(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h,
                     il_lease_state how);

/* A run; strings are in an arena. */
struct sq_run {
    il_run_info          info;     /* as stored: also the fence of a lease that is only offered */
    struct il__run_error error;    /* of info */
    struct il__run_hold  hold;     /* its lease or waiter, if it is live */
    uint64_t             ticket;   /* of its waiter; 0 = none */
    bool                 finished; /* it ended by a finish */
    int64_t              keep_ms;
};

struct sq_live {
    struct sq_run *items;
    size_t         n;
    uint32_t       n_pending;
};

/* run_row.c */
bool il__sq_run_find(struct sq_conn *c, void **arena, const char *tenant, const char *id,
                     struct sq_run *r, bool *ret_found);
bool il__sq_run_find_seq(struct sq_conn *c, void **arena, const char *tenant, uint64_t seq,
                         struct sq_run *r, bool *ret_found);
/* The live runs of a key, oldest first; in the scratch arena. */
bool il__sq_run_live(struct sq_store *s, const char *tenant, const char *key, struct sq_live *ret);
bool il__sq_run_add(struct sq_store *s, const struct sq_run *r);
bool il__sq_run_change(struct sq_store *s, struct sq_run *r); /* now; wakes the waiters */
bool il__sq_run_joined(struct sq_store *s, struct sq_run *r);
/* PENDING to RUNNING */
bool il__sq_run_begin(struct sq_store *s, struct sq_run *r, uint64_t fence);
/* End a run; the caller ends its lease or waiter. */
bool il__sq_run_end(struct sq_store *s, struct sq_run *r, enum il__run_event event,
                    const char *text);
/* Ask a running run to stop. The first reason stays. */
bool il__sq_run_stop(struct sq_store *s, struct sq_run *r, struct il__run_error error);

/* run_start.c, run_show.c, run_log.c */
bool il__sq_run_start(struct sq_store *s, il_op *op);
bool il__sq_run_show(struct sq_conn *c, const struct sq_state *st, il_op *op,
                     const struct sq_run *r);
/* The same if its place among the pending runs of its key is known; 0: not pending. */
bool il__sq_run_show_at(struct sq_conn *c, const struct sq_state *st, il_op *op,
                        const struct sq_run *r, uint32_t position);
bool il__sq_run_log_append(struct sq_store *s, struct sq_run *r, const struct il__log_part *log);
bool il__sq_run_log_read(struct sq_conn *c, il_op *op, const struct sq_run *r);
bool il__sq_run_log_remove(struct sq_store *s, uint64_t seq);

/* End the waiter or offer of a pending run that has ended in this op. The key is loaded; the caller
 * hands it to the next waiter. */
bool il__sq_run_leave(struct sq_store *s, struct sq_key *k, const struct sq_run *r);

#endif
