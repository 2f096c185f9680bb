/*
 * jobs.c: jobs: get, list, heartbeat, finish, fail, snooze, cancel, retry, seal; one or several at
 * once.
 */
#include "http/handler.h"

/* The current state of the job. */
void
http_job_shown(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_jobs > 0)
        http_say(r, 200, &il__wire_job, &op->out.jobs[0]);
    else
        http_fail_op(r, op, NULL);
}

/* DUPLICATE: another job has its unique key. */
static void
retried(struct http_request *r)
{
    if (r->ops->status == IL_OK) {
        http_job_shown(r);
        return;
    }
    if (r->ops->status != IL_DUPLICATE) {
        http_fail_op(r, r->ops, NULL);
        return;
    }
    AUTO_BUF struct il__buf details = { 0 };
    il__buf_init(&details, 4096);
    il__wire_open(&details, NULL);
    il__wire_put_text(&details, "id", r->ops->out.n_jobs > 0 ? r->ops->out.jobs[0].id : NULL);
    il__wire_close(&details);
    http_fail(r, 409, il_status_name(IL_DUPLICATE), "queue", il__buf_str(&details),
              "cannot retry: the job's unique key is in use by another job");
}

void
http_job_retry(struct http_request *r)
{
    http_do(r, retried);
}

void
http_job_beaten(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_jobs == 0) {
        http_fail_op(r, op, NULL);
        return;
    }
    bool             stop = (op->out.flags & IL_OUT_CANCEL) != 0;
    struct http_sign sign = {
        .id            = op->out.jobs[0].id,
        .state         = (int32_t)op->out.jobs[0].state,
        .token         = op->out.fence,
        .remaining_ms  = op->out.remaining_ms,
        .expires_at_ms = http_at_ms(op->out.remaining_ms),
        .is            = stop ? HTTP_IS_CANCEL : 0U,
        .reason        = stop ? op->out.detail : "",
    };
    http_say(r, 200, &http_out_beat, &sign);
}

void
http_job_listed(struct http_request *r)
{
    const il_op *op = r->ops;

    http_say_page(r, &il__wire_job, op->out.jobs, sizeof *op->out.jobs, op->out.n_jobs,
                  op->out.next);
}

/* ---- several jobs ---------------------------------------------------------------------------- */

void
http_job_many(struct http_request *r)
{
    struct http_each *e = http_take_items(r);

    if (e == NULL)
        return;
    r->state = e;
    http_do_each(r, e, 0, http_say_results);
}
