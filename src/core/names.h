/*
 * names.h: the names of public enums, by value, and NULL after the last: for tables that list all
 * of them. il_mode_name() and the like have single ones.
 */
#ifndef IL_CORE_NAMES_H
#define IL_CORE_NAMES_H

#include "base/base.h"

extern const char *const il__mode_names[IL_MODE_COUNT + 1];               /* conflict.c */
extern const char *const il__lease_state_names[IL_LEASE_STATE_COUNT + 1]; /* lease.c */
extern const char *const il__run_state_names[IL_RUN_STATE_COUNT + 1];     /* run.c */
extern const char *const il__policy_names[IL_POLICY_COUNT + 1];           /* run.c */
extern const char *const il__job_state_names[IL_JOB_STATE_COUNT + 1];     /* job.c */
extern const char *const il__strategy_names[IL_STRATEGY_COUNT + 1];       /* queue.c */
extern const char *const il__missed_names[IL_MISSED_COUNT + 1];           /* queue.c */

#endif
