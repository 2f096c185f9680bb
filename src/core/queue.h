/*
 * queue.h: jobs, queues and schedules from the inside: acceptable inputs, and the settings of a queue. The rules are in
 * queue.md, what becomes of a job in job.h, schedules in cron.h.
 */
#ifndef IL_CORE_QUEUE_H
#define IL_CORE_QUEUE_H

#include "base/base.h"

/* Check the inputs of an op of this family and fill in defaults; tenant is checked. Names that were checked with il__op_name() have their
 * lengths noted. Empty texts that are optional are NULL afterwards. IL_INVAL names the input and the reason. */
il_status il__queue_check(il_op *op, il_error *reterr) MUST_USE;

/* The settings of a new queue; `strategy` is 1 + enum il_strategy, there and everywhere. */
il_queue_opts il__queue_defaults(void);
/* What a QUEUE_SET makes of them. */
void il__queue_merge(il_queue_opts *opts, const il_queue_opts *set);
bool il__queue_optimistic(const il_queue_opts *opts);
/* Values that were read from a store: what is out of range becomes the default. */
void il__queue_heal(il_queue_opts *opts);

/* How many of `limit` jobs may start, when n_starts were within the rate's period? */
uint32_t il__queue_rate_left(const il_queue_opts *opts, uint64_t n_starts, uint32_t limit);
/* May one more job of a group run, when n_running do? */
bool il__queue_group_free(const il_queue_opts *opts, uint64_t n_running);

/* The earlier of two waits, where IL_FOREVER is the longest; and how long it is until at_ms (IL__NEVER: for ever). */
int64_t il__wait_min(int64_t a_ms, int64_t b_ms);
int64_t il__wait_until(int64_t at_ms, int64_t wall_ms);

#endif
