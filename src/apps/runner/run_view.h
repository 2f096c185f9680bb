/*
 * run_view.h: the view of a pipeline run, combined from the store and the history. The server's
 * routes and the CLI use the same view.
 */
#ifndef IL_APPS_RUNNER_RUN_VIEW_H
#define IL_APPS_RUNNER_RUN_VIEW_H

#include "apps/runner/runner.h"
#include "wire/wire.h"

struct runner_attempt_out {
    uint32_t    attempt;
    const char *status, *error;
    int64_t     started_at_ms, ended_at_ms, duration_ms, exit_code;
};
struct runner_step_out {
    const char *id, *type, *status, *error, *details, *out, *err;
    int64_t     level;
    uint32_t    n, attempt;
    int64_t     started_at_ms, ended_at_ms, duration_ms, exit_code, out_bytes, err_bytes;
    struct runner_attempt_out *attempts;
    size_t                     n_attempts;
};
struct runner_join_out {
    int64_t     at_ms;
    const char *by, *trigger, *request_id;
};
struct runner_run_out {
    const char *id, *pipeline, *tenant, *trigger, *by, *stage, *error, *parameters, *version, *node;
    int32_t     status, progress;
    uint32_t    position, joins, cancelling;
    uint64_t    fence, log_bytes;
    int64_t     created_at_ms, started_at_ms, ended_at_ms, duration_ms, renewals, renewed_at_ms;
    struct runner_join_out *joined;
    size_t                  n_joined;
    struct runner_step_out *steps;
    size_t                  n_steps;
};

/* Tables of the view: runner_out_run_full has all fields, runner_out_run omits node, renewals,
 * joined and steps. */
extern const struct wire_object runner_out_run, runner_out_run_full;

/* "x" of "pipeline:x"; NULL: not the key of a pipeline. */
const char *runner_pipeline_of_key(const char *key);
/* Fill in what the store knows. Texts belong to the run, except parameters and version, which
 * are in *mem. The key must be a pipeline's. False: out of memory. */
bool runner_run_show(const il_run_info *run, void **mem, struct runner_run_out *ret) MUST_USE;
/* Add what the history knows; blocks. output: also the output of the steps. */
il_status runner_run_history(struct il__data *data, bool output, void **mem,
                             struct runner_run_out *run, il_error *reterr) MUST_USE;
/* Add steps without a record, from the pipeline as it is now: for a live run, or one whose
 * server died. */
bool runner_run_pending(const struct pipeline *p, void **mem, struct runner_run_out *run) MUST_USE;
/* One step with its output: the given attempt, 0 = the last. IL_NOT_FOUND. Blocks. */
il_status runner_step_output(struct il__data *data, const char *tenant, const char *run,
                             const char *step, uint32_t attempt, void **mem,
                             struct runner_step_out *ret, il_error *reterr) MUST_USE;
/* {…} of one, {"items":[…],"next":…} of many. */
void runner_run_print(struct il__buf *out, const struct runner_run_out *run, bool full);
void runner_runs_print(struct il__buf *out, const struct runner_run_out *runs, size_t n,
                       const char *next);

#endif
