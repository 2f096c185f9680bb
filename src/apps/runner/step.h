/*
 * step.h: one attempt of one step: what its kind is given, and what it gives back. step.c calls; step_command.c, step_sql.c, step_http.c and step_check.c are the kinds.
 */
#ifndef IL_APPS_RUNNER_STEP_H
#define IL_APPS_RUNNER_STEP_H

#include "apps/runner/runner.h"

/* An attempt that is under way. The kind's functions run on the step's thread and may block. */
struct runner_attempt {
    const struct pipeline        *pipeline;
    const struct pipeline_step   *step;
    const struct pipeline_values *values;
    il                           *h;
    const char                   *tenant, *key, *run_id;
    uint64_t                      fence;
    uint32_t                      attempt; /* from 1 */
    int64_t timeout_ms; /* what is left for this attempt: the step's, or what the pipeline has left */
    const struct runner_connection *connections;
    size_t                          n_connections;
    void                           *own; /* step.c's */
};

/* Output of the attempt: captured, and streamed live. stream 1 = stdout, 2 = stderr. */
void runner_attempt_output(struct runner_attempt *pub, int stream, const void *data, size_t n_bytes);

/* Should it stop (cancel, lost lease, shutdown, timeout of the attempt or of the pipeline)? Cheap; step.c knows why and says so in the end. */
bool runner_attempt_should_stop(const struct runner_attempt *pub);
/* Have fn(cookie) called, on another thread, once, when it should stop; at once if it should already. Set NULL before what the cookie points to goes away: that waits for a call under way. */
void runner_attempt_on_stop(struct runner_attempt *pub, void (*fn)(void *cookie), void *cookie);

enum runner_outcome {
    RUNNER_STEP_COMPLETED,
    RUNNER_STEP_WARNING, /* a check of which some expectations failed */
    RUNNER_STEP_FAILED,
    RUNNER_STEP_STOPPED, /* it was told to */
};
struct runner_result {
    enum runner_outcome outcome;
    bool                final; /* FAILED: another attempt would fail, too (4xx, refused SQL, no such connection): no retry */
    bool                timed_out; /* FAILED: its time was over */
    int64_t             exit_code; /* -1 = none */
    char                error[1024];
    char               *details; /* JSON object (il__free by step.c); NULL = none */
};

void runner_step_command(struct runner_attempt *pub, struct runner_result *ret);
void runner_step_sql(struct runner_attempt *a, struct runner_result *ret);
void runner_step_http(struct runner_attempt *a, struct runner_result *ret);
void runner_step_check(struct runner_attempt *a, struct runner_result *ret);

#endif
