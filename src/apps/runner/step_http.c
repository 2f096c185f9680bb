/*
 * step_http.c: http steps: one request (fetch.c). Its Idempotency-Key is the same for all attempts
 * of the step in this run, so the other side can recognise a retry.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/runner/step_run.h"
#include "wire/json.h"

static void
take_body(void *cookie, const void *data, size_t n_bytes)
{
    runner_attempt_output(cookie, 1, data, n_bytes);
}

static char *
details_of(const struct fetch_answer *answer)
{
    struct il__buf AUTO_BUF b = { 0 };

    il__buf_init(&b, 4096);
    il__buf_adds(&b, "{\"url\":");
    il__json_add_string(&b, answer->url, strlen(answer->url));
    il__buf_addf(
        &b, ",\"status\":%ld,\"bytes\":%" PRId64 ",\"duration_ms\":%" PRId64 ",\"redirects\":%u}",
        answer->status, answer->n_bytes, answer->took_ms, answer->n_redirects);
    return il__buf_take(&b); /* NULL: omitted */
}

void
runner_step_http(struct runner_attempt *a, struct runner_result *ret)
{
    char                key[IL_ID_BYTES_MAX + PIPELINE_ID_BYTES_MAX + 2];
    struct fetch        f = { .http            = &a->step->http,
                              .values          = a->values,
                              .idempotency_key = key,
                              .timeout_ms      = a->timeout_ms,
                              .a               = a,
                              .take            = take_body,
                              .cookie          = a };
    struct fetch_answer answer;

    *ret = (struct runner_result){ .outcome = RUNNER_STEP_FAILED, .exit_code = -1 };
    (void)snprintf(key, sizeof key, "%s-%s", a->run_id, a->step->id);
    runner_fetch(&f, &answer);
    ret->details = details_of(&answer);
    if (answer.status > 0)
        ret->exit_code = answer.status;
    if (answer.success) {
        ret->outcome = RUNNER_STEP_COMPLETED;
        return;
    }
    runner_result_fail(ret, answer.final, "%s", answer.error);
    ret->timed_out = answer.timed_out;
    if (answer.stopped)
        ret->outcome = RUNNER_STEP_STOPPED;
}
