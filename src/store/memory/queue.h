/*
 * queue.h: jobs, queues and schedules in the memory engine.
 */
#ifndef IL_STORE_MEMORY_QUEUE_H
#define IL_STORE_MEMORY_QUEUE_H

#include "store/memory/memory_internal.h"

bool il__mem_queue_init(struct mem_store *m) MUST_USE; /* false: no memory */
void il__mem_queue_release(struct mem_store *m);       /* also after a failed init */
/* Execute an op of this family. */
void il__mem_queue_op(struct mem_store *m, il_op *op);
/* Recovery and retention, bounded by op->in.list.limit per kind; adds to op->out.sweep and sets
 * IL_OUT_MORE. */
void il__mem_queue_sweep(struct mem_store *m, il_op *op);
/* Would a sweep have something to do? m->now_ms and m->wall_ms are current. */
bool il__mem_queue_overdue(const struct mem_store *m);

#endif
