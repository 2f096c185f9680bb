/*
 * cache.h: cached values on the memory engine.
 */
#ifndef IL_STORE_MEMORY_CACHE_H
#define IL_STORE_MEMORY_CACHE_H

#include "store/memory/memory_internal.h"

bool il__mem_cache_init(struct mem_store *m) MUST_USE; /* false: no memory */
void il__mem_cache_release(struct mem_store *m);       /* also after a failed init */
/* Carry out an op of this family. */
void il__mem_cache_op(struct mem_store *m, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; counts into op->out.sweep, sets IL_OUT_MORE. */
void il__mem_cache_sweep(struct mem_store *m, il_op *op);
/* Would a sweep find something to do? m->now_ms and m->wall_ms are current. */
bool il__mem_cache_overdue(const struct mem_store *m);

#endif
