/*
 * op_error.c: the error answer of a failed op: its code, its source, and `details` with what the
 * caller needs next.
 */
#include "http/handler.h"

#define DETAILS_BYTES_MAX 32768

/* The part of the server that an op belongs to, as `source` of its errors: "lock", "run", "queue",
 * "cache", "idempotency". */
static const char *
source_of(il_op_type type)
{
    if (type <= IL_OP_CHECK_FENCE || type >= IL_OP_ORDER_LIST)
        return "lock";
    if (type == IL_OP_SWEEP)
        return "store";
    if (type <= IL_OP_RUN_LOG)
        return "run";
    if (type <= IL_OP_ONCE_GET)
        return "idempotency";
    return type <= IL_OP_CRON_LIST ? "queue" : "cache";
}

static bool
is_job(il_op_type type)
{
    return type >= IL_OP_JOB_PUSH && type <= IL_OP_JOB_PURGE;
}

const char *
http_code(const il_op *op)
{
    return op->status == IL_STALE && is_job(op->type) ? "JOB_STALE" : il_status_name(op->status);
}

/* The current holder. */
static void
add_holder(struct il__buf *b, const il_lease_info *in_the_way)
{
    il__wire_put_text(b, "holder", in_the_way->holder);
    il__wire_put_int(b, "fence", (int64_t)in_the_way->fence);
    il__wire_put_text(b, "mode", il_mode_name(in_the_way->mode));
    il__wire_put_text(b, "state", il_lease_state_name(in_the_way->state));
    il__wire_put_time(b, "since", in_the_way->acquired_at_ms);
    il__wire_put_time(b, "expires_at", in_the_way->expires_at_ms);
    il__wire_put_int(b, "age_ms", in_the_way->age_ms);
    il__wire_put_int(b, "waiters", in_the_way->n_waiters);
}

static void
add_run(struct il__buf *b, const il_run_info *run)
{
    il__wire_put_text(b, "run_id", run->id);
    il__wire_put_text(b, "run_state", il_run_state_name(run->state));
    il__wire_put_text(b, "stage", run->stage != NULL && run->stage[0] != '\0' ? run->stage : NULL);
}

/* Without its token, with which the caller could end another caller's attempt. */
static void
add_job(struct il__buf *b, const il_job_info *job)
{
    il__wire_put_text(b, "id", job->id);
    il__wire_put_text(b, "queue", job->queue);
    il__wire_put_text(b, "job_state", il_job_state_name(job->state));
    il__wire_put_int(b, "attempt", job->attempt);
}

/* When a retry is worthwhile at the latest; 0 = unknown. */
static int64_t
retry_after(const il_op *op)
{
    int64_t ms = 0;

    if (!il_status_retryable(op->status))
        return 0;
    if (op->out.n_items > 0)
        ms = op->out.items[0].remaining_ms;
    else if (op->status == IL_BUSY || op->status == IL_WAIT)
        ms = op->out.remaining_ms;
    return MAX(ms, 1);
}

static void
add_details(struct il__buf *b, const il_op *op)
{
    int64_t retry_ms = retry_after(op);

    il__wire_open(b, NULL);
    if (op->key != NULL && !is_job(op->type) && op->status != IL_NOT_FOUND)
        il__wire_put_text(b, "key", op->key);
    if (op->out.n_items > 0)
        add_holder(b, &op->out.items[0]);
    if (op->out.n_runs > 0)
        add_run(b, &op->out.runs[0]);
    if (op->out.n_jobs > 0)
        add_job(b, &op->out.jobs[0]);
    if (op->status == IL_STALE && !is_job(op->type) && op->out.n_items == 0)
        il__wire_put_int(b, "fence", (int64_t)op->out.fence);
    if (retry_ms > 0)
        il__wire_put_int(b, "retry_after_ms", retry_ms);
    il__wire_close(b);
}

void
http_fail_op(struct http_request *r, const il_op *op, const char *source)
{
    AUTO_BUF struct il__buf details = { 0 };
    const char             *text    = op->out.detail;
    int64_t                 retry_ms;

    il__buf_init(&details, DETAILS_BYTES_MAX);
    /* An object that does not exist and one of another tenant must look the same. */
    if (op->status == IL_NOT_FOUND || op->status == IL_NOT_HELD || text == NULL)
        text = il_status_text(op->status);
    if (op->status != IL_NOT_FOUND && op->status != IL_NOT_HELD && op->status != IL_INVAL)
        add_details(&details, op);
    retry_ms = retry_after(op);
    if (retry_ms > 0 && op->status != IL_CANCELLED)
        http_retry_after(r, retry_ms);
    http_fail(r, il_status_http(op->status), http_code(op),
              source != NULL ? source : source_of(op->type),
              details.n_bytes > 0 && !details.failed ? il__buf_str(&details) : NULL, "%s", text);
}
