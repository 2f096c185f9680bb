/*
 * history.h: the histories of keys in the SQLite engine.
 */
#ifndef IL_STORE_SQLITE_HISTORY_H
#define IL_STORE_SQLITE_HISTORY_H

#include "store/sqlite/sqlite_internal.h"

/* A held lease has expired, or is broken by `op`: before it is changed. */
bool il__sq_history_expired(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h);
bool il__sq_history_broken(struct sq_store *s, const struct sq_key *k, const struct sq_hold *h,
                           const il_op *op);

/* The ops. */
bool il__sq_refused(struct sq_store *s, il_op *op);
bool il__sq_history(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);

/* As il__sq_once_sweep() and il__sq_once_overdue(). */
bool il__sq_history_sweep(struct sq_store *s, il_op *op);
bool il__sq_history_overdue(struct sq_conn *c, const struct sq_state *st, bool *ret);

#endif
