/*
 * run.h: runs on the SQLite engine. A function that uses the database returns false when that failed; see
 * sqlite_internal.h.
 *
 *   run.c        stage, finish, cancel; the sweep; what locks tell of their runs
 *   run_start.c  start
 *   run_show.c   how a run looks; get and list
 *   run_row.c    rows of il_run
 *   run_mend.c   what processes of older versions leave
 *   run_log.c    the log in pieces
 */
#ifndef IL_STORE_SQLITE_RUN_H
#define IL_STORE_SQLITE_RUN_H

#include "core/run.h"
#include "store/sqlite/sqlite_internal.h"

/* Carry out an op of this family in the open write transaction. */
bool il__sq_run_op(struct sq_store *s, il_op *op);
/* The same for ops that change nothing, on either connection. `arena` holds what lives for one op. */
bool il__sq_run_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; counts into op->out.sweep, sets IL_OUT_MORE. */
bool il__sq_run_sweep(struct sq_store *s, il_op *op);
/* Would a sweep find something to do? On either connection. */
bool il__sq_run_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret);

/* What the locks tell. `h` is a lease or waiter with a run. */

/* The waiter of the run has become an offered lease. */
bool il__sq_run_offered(struct sq_store *s, uint64_t seq, uint64_t fence);
/* It was confirmed or renewed: the run is RUNNING; `op` is told if it should stop. */
bool il__sq_run_held(struct sq_store *s, il_op *op, const struct sq_key *k, const struct sq_hold *h);
/* It is to be broken for h->reason, and the run should stop. */
bool il__sq_run_broken(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h);
/* It ends, and with it the run. */
bool il__sq_run_lost(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h,
                     il_lease_state how);

/* A run; strings are in an arena. */
struct sq_run {
    il_run_info          info;     /* as stored: fence also of a lease that is only offered */
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
bool il__sq_run_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, const char *tenant,
                    struct sq_run *r);
bool il__sq_run_find(struct sq_conn *c, void **arena, const char *tenant, const char *id,
                     struct sq_run *r, bool *ret_found);
/* The live runs of a key, oldest first; in the scratch arena. */
bool il__sq_run_live(struct sq_store *s, const char *tenant, const char *key, struct sq_live *ret);
bool il__sq_run_add(struct sq_store *s, const struct sq_run *r);
bool il__sq_run_change(struct sq_store *s, struct sq_run *r); /* now; who waits is woken */
bool il__sq_run_joined(struct sq_store *s, struct sq_run *r);
bool il__sq_run_begin(struct sq_store *s, struct sq_run *r, uint64_t fence); /* PENDING to RUNNING */
/* End a run; its lease or waiter is the caller's to end. */
bool il__sq_run_end(struct sq_store *s, struct sq_run *r, enum il__run_event event, const char *text);
/* Ask a running one to stop. The first reason stays. */
bool il__sq_run_stop(struct sq_store *s, struct sq_run *r, struct il__run_error error);

/* run_start.c, run_show.c, run_log.c */
bool il__sq_run_start(struct sq_store *s, il_op *op);
bool il__sq_run_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const struct sq_run *r);
/* The same if its place among the pending runs of its key is known; 0: it is not pending. */
bool il__sq_run_show_at(struct sq_conn *c, const struct sq_state *st, il_op *op,
                        const struct sq_run *r, uint32_t position);
bool il__sq_run_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
bool il__sq_run_log_append(struct sq_store *s, struct sq_run *r, const struct il__log_part *log);
bool il__sq_run_log_read(struct sq_conn *c, il_op *op, const struct sq_run *r);
bool il__sq_run_log_remove(struct sq_store *s, uint64_t seq);

/* End the waiter or offer of a pending run, which has ended in this op. The key is loaded; the caller gives it on. */
bool il__sq_run_leave(struct sq_store *s, struct sq_key *k, const struct sq_run *r);

/* Put right those live runs of a key, which is loaded and settled, whose lease or waiter went without them (run_mend.c). *ret_live: the live runs of the key
 * afterwards, in the scratch arena. */
bool il__sq_run_mend(struct sq_store *s, const struct sq_key *k, struct sq_live *ret_live,
                     bool *ret_mended);

#endif
