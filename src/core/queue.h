/*
 * queue.h: internals of jobs, queues and schedules: input checks, and the settings of a queue. The
 * rules are in queue.md, the state machine of a job in job.h, schedules in cron.h.
 */
#ifndef IL_CORE_QUEUE_H
#define IL_CORE_QUEUE_H

#include "base/base.h"

/* Check the inputs of an op of this family and fill in defaults; tenant is checked. Lengths of
 * names checked with il__op_name() are recorded. Empty optional texts are NULL afterwards. IL_INVAL
 * names the input and the reason. */
il_status il__queue_check(il_op *op, il_error *reterr) MUST_USE;

/* The settings of a new queue; `strategy` is 1 + enum il_strategy, there and everywhere. */
il_queue_opts il__queue_defaults(void);
/* Apply a QUEUE_SET to them. */
void il__queue_merge(il_queue_opts *opts, const il_queue_opts *set);
bool il__queue_optimistic(const il_queue_opts *opts);
/* Check values read from a store: those out of range become the default. */
void il__queue_heal(il_queue_opts *opts);

/*
 * May a claim that has returned jobs of *n_bytes (0 = none yet) return one more with this payload?
 * Its answer must fit into op->bytes_left; the first job is always returned. True: *n_bytes has
 * grown.
 */
bool il__claim_fits(const il_op *op, size_t payload_bytes, uint64_t *n_bytes);

/* How many of `limit` jobs may start, given n_starts within the rate's period? */
uint32_t il__queue_rate_left(const il_queue_opts *opts, uint64_t n_starts, uint32_t limit);
/* May one more job of a group run, given n_running? */
bool il__queue_group_free(const il_queue_opts *opts, uint64_t n_running);

/* The shorter of two waits, where IL_FOREVER is the longest; and the time until at_ms (IL__NEVER:
 * forever). */
int64_t il__wait_min(int64_t a_ms, int64_t b_ms);
int64_t il__wait_until(int64_t at_ms, int64_t wall_ms);

#endif
