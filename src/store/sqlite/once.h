/*
 * once.h: idempotency keys in the SQLite engine. A function that uses the database returns false
 * when the database fails; see sqlite_internal.h.
 */
#ifndef IL_STORE_SQLITE_ONCE_H
#define IL_STORE_SQLITE_ONCE_H

#include "store/sqlite/sqlite_internal.h"

/* Execute an op of this family in the open write transaction. */
bool il__sq_once_op(struct sq_store *s, il_op *op);
/* The same for ops that change nothing, on either connection. `arena` holds data that lives for one
 * op. */
bool il__sq_once_read(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; adds to op->out.sweep and sets
 * IL_OUT_MORE. */
bool il__sq_once_sweep(struct sq_store *s, il_op *op);
/* Would a sweep have something to do? Works on either connection. */
bool il__sq_once_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret);

#endif
