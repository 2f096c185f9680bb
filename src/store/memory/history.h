/*
 * history.h: the histories of keys in the memory engine.
 */
#ifndef IL_STORE_MEMORY_HISTORY_H
#define IL_STORE_MEMORY_HISTORY_H

#include "store/memory/memory_internal.h"

bool il__mem_history_init(struct mem_store *m) MUST_USE; /* false: no memory */
void il__mem_history_release(struct mem_store *m);       /* also after a failed init */

/* A held lease has expired, or is broken by `op`: before it is changed. */
void il__mem_history_expired(struct mem_store *m, const struct mem_hold *h);
void il__mem_history_broken(struct mem_store *m, const struct mem_hold *h, const il_op *op);

/* The ops. */
void il__mem_refused(struct mem_store *m, il_op *op);
void il__mem_history(struct mem_store *m, il_op *op);

/* As il__mem_once_sweep() and il__mem_once_overdue(). */
void il__mem_history_sweep(struct mem_store *m, il_op *op);
bool il__mem_history_overdue(const struct mem_store *m);

#endif
