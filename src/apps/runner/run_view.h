/*
 * run_view.h: a run of a pipeline as people see it: what the store knows of it and what history does, put together. The server's routes and the CLI show the same.
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
    int64_t created_at_ms, started_at_ms, ended_at_ms, duration_ms, ttl_ms, renewals, renewed_at_ms;
    struct runner_join_out *joined;
    size_t                  n_joined;
    struct runner_step_out *steps;
    size_t                  n_steps;
};

/* Their tables: with all of it, and without node, renewals, joined and steps. */
extern const struct wire_object runner_out_run, runner_out_run_full;

/* "x" of "pipeline:x"; NULL: the key is none of a pipeline. */
const char *runner_pipeline_of_key(const char *key);
/* What the store knows. Texts are the run's own, but for parameters and version, which are in *mem. The key must be one of a pipeline. False: no memory. */
bool runner_run_show(const il_run_info *run, void **mem, struct runner_run_out *ret) MUST_USE;
/* And what history knows of it: blocks. output: also what its steps wrote. */
il_status runner_run_history(struct il__data *data, bool output, void **mem,
                             struct runner_run_out *run, il_error *reterr) MUST_USE;
/* Steps that nothing was recorded of yet, from the pipeline as it is now: for a run that is live. */
bool runner_run_pending(const struct pipeline *p, void **mem, struct runner_run_out *run) MUST_USE;
/* One step, with what it wrote: the given attempt, 0 = the last. IL_NOT_FOUND. Blocks. */
il_status runner_step_output(struct il__data *data, const char *tenant, const char *run,
                             const char *step, uint32_t attempt, void **mem,
                             struct runner_step_out *ret, il_error *reterr) MUST_USE;
/* {…} of one, {"items":[…],"next":…} of many. */
void runner_run_print(struct il__buf *out, const struct runner_run_out *run, bool full);
void runner_runs_print(struct il__buf *out, const struct runner_run_out *runs, size_t n,
                       const char *next);

#endif
