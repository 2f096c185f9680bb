/*
 * scenario_internal.h: shared by the files that each play one family.
 */
#ifndef T_SCENARIO_INTERNAL_H
#define T_SCENARIO_INTERNAL_H

#include "fault/scenario.h"

/* Has the call failed in the way that is being injected? Then heal, so that a repetition works. */
bool scenario_failed(struct scenario *s, il_status st, il_status op_status);
/* Apply, repeated once when it failed; fails the test when the status is not `expected`, or
 * `instead` after a repetition. The caller releases the op. */
il_op scenario_apply(struct scenario *s, il_op op, il_status expected, il_status instead);
/* The same, for ops of which only the fence is of interest: that is returned. */
uint64_t scenario_step(struct scenario *s, il_op op, il_status expected, il_status instead);
/* After a failure: do the invariants still hold? */
void scenario_look(struct scenario *s);

void scenario_run(struct scenario *s);
void scenario_once(struct scenario *s);
void scenario_job(struct scenario *s);
void scenario_cache(struct scenario *s);

#endif
