/*
 * queue.h: jobs, queues and schedules in the SQLite engine. A function that uses the database
 * returns false when the database fails; see sqlite_internal.h.
 */
#ifndef IL_STORE_SQLITE_QUEUE_H
#define IL_STORE_SQLITE_QUEUE_H

#include "store/sqlite/sqlite_internal.h"

/* Execute an op of this family in the open write transaction. */
bool il__sq_queue_op(struct sq_store *s, il_op *op);
/* The same for ops that change nothing, on either connection. `arena` holds data that lives for one
 * op. */
bool il__sq_queue_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; adds to op->out.sweep and sets
 * IL_OUT_MORE. */
bool il__sq_queue_sweep(struct sq_store *s, il_op *op);
/* Would a sweep have something to do? Works on either connection. */
bool il__sq_queue_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret);
/* What was gathered in the transaction: write it before the commit; clear it after the commit or a
 * rollback. */
bool il__sq_queue_save(struct sq_store *s);
void il__sq_queue_done(struct sq_store *s);
void il__sq_queue_release(struct sq_store *s);

#endif
