/*
 * step.h: one attempt of one step: the inputs and the result of its kind. step.c is the caller;
 * step_command.c, step_sql.c, step_http.c and step_check.c are the kinds.
 */
#ifndef IL_APPS_RUNNER_STEP_H
#define IL_APPS_RUNNER_STEP_H

#include "apps/runner/runner.h"

/* An attempt in progress. The kind's functions run on the step's thread and may block. */
struct runner_attempt {
    const struct pipeline_step   *step;
    const struct pipeline_values *values;
    il                           *h;
    const char                   *tenant, *key, *run_id;
    uint64_t                      fence;
    /* time left for this attempt: the step's timeout, or what the pipeline has left */
    int64_t                      timeout_ms;
    const struct il__connection *connections;
    size_t                       n_connections;
    void                        *own; /* step.c's */
};

/* Output of the attempt: captured, and streamed live. stream 1 = stdout, 2 = stderr. */
void runner_attempt_output(struct runner_attempt *pub, int stream, const void *data,
                           size_t n_bytes);

/* Should it stop (cancel, lost lease, shutdown, timeout of the attempt or of the pipeline)?
 * Cheap; step.c knows the reason and reports it in the end. */
bool runner_attempt_should_stop(const struct runner_attempt *pub);
/*
 * Have fn(cookie) called once, on another thread, when the attempt should stop; at once if it
 * already should. Set NULL before what the cookie points to is freed: that waits for a call in
 * progress.
 */
void runner_attempt_on_stop(struct runner_attempt *pub, void (*fn)(void *cookie), void *cookie);

enum runner_outcome {
    RUNNER_STEP_COMPLETED,
    RUNNER_STEP_WARNING, /* a check of which some expectations failed */
    RUNNER_STEP_FAILED,
    RUNNER_STEP_STOPPED, /* stopped on request */
};
struct runner_result {
    enum runner_outcome outcome;
    /* FAILED: another attempt would fail as well (4xx, refused SQL, no such connection): no
     * retry */
    bool    final;
    bool    timed_out; /* FAILED: timed out */
    int64_t exit_code; /* -1 = none */
    char    error[1024];
    char   *details; /* JSON object (il__free by step.c); NULL = none */
};

void runner_step_command(struct runner_attempt *pub, struct runner_result *ret);
void runner_step_sql(struct runner_attempt *a, struct runner_result *ret);
void runner_step_http(struct runner_attempt *a, struct runner_result *ret);
void runner_step_check(struct runner_attempt *a, struct runner_result *ret);

#endif
