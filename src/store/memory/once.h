/*
 * once.h: idempotency keys in the memory engine.
 */
#ifndef IL_STORE_MEMORY_ONCE_H
#define IL_STORE_MEMORY_ONCE_H

#include "core/usage.h"
#include "store/memory/memory_internal.h"

bool il__mem_once_init(struct mem_store *m) MUST_USE; /* false: no memory */
void il__mem_once_release(struct mem_store *m);       /* also after a failed init */
/* Execute an op of this family. */
void il__mem_once_op(struct mem_store *m, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; adds to op->out.sweep and sets
 * IL_OUT_MORE. */
void il__mem_once_sweep(struct mem_store *m, il_op *op);
/* Would a sweep have something to do? m->now_ms and m->wall_ms are current. */
bool il__mem_once_overdue(const struct mem_store *m);
/* As il__mem_cache_usage(). */
uint32_t il__mem_once_usage(const struct mem_store *m, il_op *op, struct il__usage_place *place,
                            uint32_t n);

#endif
