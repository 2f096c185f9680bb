/*
 * runs.c: runs: start, stage, finish, cancel, get, list, log.
 */
#include "http/handler.h"

static void
started(struct http_request *r)
{
    const il_op *op  = r->ops;
    bool         dup = op->status == IL_DUPLICATE;

    if ((op->status != IL_OK && op->status != IL_QUEUED && !dup) || op->out.n_runs == 0) {
        http_fail_op(r, op, NULL);
        return;
    }
    const il_run_info  *run  = &op->out.runs[0];
    bool                stop = (op->out.flags & IL_OUT_CANCEL) != 0;
    struct http_started s    = {
           .id            = run->id,
           .key           = run->key,
           .holder        = run->holder,
           .state         = (int32_t)run->state,
           .position      = run->position,
           .fence         = run->fence,
           .expires_at_ms = run->state == IL_RUN_RUNNING ? http_at_ms(run->remaining_ms) : 0,
           .ttl_ms        = run->ttl_ms,
           .warning       = (op->out.flags & IL_OUT_ORDER_WARNING) != 0 ? op->out.detail : "",
           .reason        = stop ? op->out.detail : "",
           .is            = (dup ? HTTP_IS_TRUE : 0U) |
                 ((op->out.flags & IL_OUT_SKIPPED) != 0 ? HTTP_IS_SKIPPED : 0U) |
                 ((op->out.flags & IL_OUT_RENEWED) != 0 ? HTTP_IS_RENEWED : 0U) |
                 (stop ? HTTP_IS_CANCEL : 0U),
           .run = *run,
    };
    http_say(r, dup ? 200 : 201, &http_out_started, &s);
}

void
http_run_start(struct http_request *r)
{
    http_do(r, started);
}

/* The current state of the run. */
void
http_run_shown(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_runs > 0)
        http_say(r, 200, &il__wire_run, &op->out.runs[0]);
    else
        http_fail_op(r, op, NULL);
}

void
http_run_staged(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_runs == 0) {
        http_fail_op(r, op, NULL);
        return;
    }
    bool             stop = (op->out.flags & IL_OUT_CANCEL) != 0;
    struct http_sign sign = {
        .id        = op->out.runs[0].id,
        .state     = (int32_t)op->out.runs[0].state,
        .log_bytes = op->out.runs[0].log_bytes,
        .is        = stop ? HTTP_IS_CANCEL : 0U,
        .reason    = stop ? op->out.detail : "",
    };
    http_say(r, 200, &http_out_sign, &sign);
}

void
http_run_listed(struct http_request *r)
{
    const il_op *op = r->ops;

    http_say_page(r, &il__wire_run, op->out.runs, sizeof *op->out.runs, op->out.n_runs,
                  op->out.next);
}

void
http_run_log_read(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_runs == 0) {
        http_fail_op(r, op, NULL);
        return;
    }
    const il_run_info   *run  = &op->out.runs[0];
    uint64_t             next = op->out.offset + op->out.value_bytes;
    bool                 end  = run->state > IL_RUN_RUNNING && next >= run->log_bytes;
    struct http_log_part part = {
        .id          = run->id,
        .state       = (int32_t)run->state,
        .offset      = op->out.offset,
        .next_offset = next,
        .text        = op->out.value != NULL ? op->out.value : "",
        .text_bytes  = op->out.value_bytes,
        .is          = end ? HTTP_IS_END : 0U,
    };
    /* Always text, even if it looks like a JSON object. */
    il__wire_print(&r->out, &http_out_log, &part, WIRE_RAW);
    http_answer(r, 200);
}
