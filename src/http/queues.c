/*
 * queues.c: queues themselves: list, get, set, pause, resume, purge; push and claim.
 */
#include "http/auth.h"
#include "http/handler.h"

/* ---- queues ---------------------------------------------------------------------------------- */

void
http_queue_listed(struct http_request *r)
{
    const il_op *op = r->ops;

    http_say_page(r, &il__wire_queue, op->out.queues, sizeof *op->out.queues, op->out.n_queues,
                  op->out.next);
}

/* The queue of that name: it sorts before all longer names with the same beginning. */
static void
found(struct http_request *r)
{
    il_op *op = r->ops;

    if (op->status == IL_OK && op->out.n_queues > 0 &&
        strcmp(op->out.queues[0].name, r->args[0]) == 0) {
        http_say(r, 200, &il__wire_queue, &op->out.queues[0]);
        return;
    }
    if (op->status == IL_OK)
        op->status = IL_NOT_FOUND;
    http_fail_op(r, op, NULL);
}

void
http_queue_get(struct http_request *r)
{
    r->op = (il_op){ .type = IL_OP_QUEUE_LIST, .in.list = { .prefix = r->args[0], .limit = 1 } };
    http_do_ops(r, &r->op, 1, 0, found);
}

void
http_queue_shown(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_queues > 0)
        http_say(r, 200, &il__wire_queue, &op->out.queues[0]);
    else
        http_fail_op(r, op, NULL);
}

static void
paused(struct http_request *r)
{
    if (r->ops->status == IL_OK)
        http_queue_shown(r);
    else
        http_fail_op(r, r->ops, NULL);
}

void
http_queue_pause(struct http_request *r)
{
    if (!http_take_op(r))
        return;
    r->op.flags &= ~(uint32_t)IL_RESUME;
    http_do_ops(r, &r->op, 1, 0, paused);
}

void
http_queue_resume(struct http_request *r)
{
    r->op = (il_op){ .type = IL_OP_QUEUE_PAUSE, .flags = IL_RESUME, .key = r->args[0] };
    http_do_ops(r, &r->op, 1, 0, paused);
}

void
http_queue_purged(struct http_request *r)
{
    const il_op_out   *out = &r->ops->out;
    struct http_number n   = { .number = out->sweep.n_purged,
                               .is     = (out->flags & IL_OUT_MORE) != 0 ? HTTP_IS_MORE : 0U };

    http_say(r, 200, &http_out_purged, &n);
}

/* ---- push ------------------------------------------------------------------------------------ */

static bool
was_pushed(const il_op *op)
{
    return (op->status == IL_OK || op->status == IL_DUPLICATE) && op->out.n_jobs > 0;
}

static struct http_pushed
pushed_as(const il_op *op)
{
    const il_job_info *job = &op->out.jobs[0];

    return (struct http_pushed){
        .id        = job->id,
        .queue     = job->queue,
        .state     = (int32_t)job->state,
        .run_at_ms = job->run_at_ms,
        .is        = op->status == IL_DUPLICATE ? HTTP_IS_TRUE : 0U,
    };
}

static void
pushed(struct http_request *r)
{
    if (!was_pushed(r->ops)) {
        http_fail_op(r, r->ops, NULL);
        return;
    }
    struct http_pushed p = pushed_as(r->ops);
    http_say(r, r->ops->status == IL_DUPLICATE ? 200 : 201, &http_out_pushed, &p);
}

/* One of several results: the same as the answer to a single op, or {"status": CODE, "message"}. */
static void
add_pushed(struct http_request *r, const il_op *op, unsigned char verdict)
{
    if (verdict > HTTP_SCOPE_HIDDEN) {
        http_say_refused(r, verdict, op->type);
        return;
    }
    il__wire_open(&r->out, NULL);
    il__wire_put_text(&r->out, "status", http_code(op));
    if (was_pushed(op)) {
        struct http_pushed p = pushed_as(op);
        il__wire_print_fields(&r->out, &http_out_pushed, &p, 0);
    } else {
        il__wire_put_text(&r->out, "message",
                          op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
    }
    il__wire_close(&r->out);
}

static void
pushed_many(struct http_request *r)
{
    const struct http_each *e = r->state;
    bool new                  = false;

    il__buf_adds(&r->out, "{\"items\":[");
    for (size_t i = 0; i < e->n; i++) {
        if (i > 0)
            il__buf_addc(&r->out, ',');
        add_pushed(r, &e->ops[i], e->verdicts[i]);
        new = new || (e->verdicts[i] == HTTP_SCOPE_OK && e->ops[i].status == IL_OK);
    }
    il__buf_adds(&r->out, "]}");
    http_answer(r, new ? 201 : 200);
}

void
http_queue_push(struct http_request *r)
{
    struct http_each *e;

    if (!json_is_object(r->body) || json_object_get(r->body, "items") == NULL) {
        http_do(r, pushed);
        return;
    }
    if ((e = http_take_items(r)) == NULL)
        return;
    r->state = e;
    http_do_each(r, e, 0, pushed_many);
}

/* ---- claim ----------------------------------------------------------------------------------- */

static void
claimed(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status != IL_OK && op->status != IL_EMPTY) {
        http_fail_op(r, op, NULL);
        return;
    }
    struct http_claimed c = {
        .items          = op->out.jobs,
        .n_items        = op->status == IL_OK ? op->out.n_jobs : 0,
        .worker         = op->holder,
        .retry_after_ms = op->status == IL_EMPTY ? op->out.remaining_ms : 0,
        .is             = ((op->out.flags & IL_OUT_PAUSED) != 0 ? HTTP_IS_PAUSED : 0U) |
              ((op->out.flags & IL_OUT_LIMITED) != 0 ? HTTP_IS_LIMITED : 0U),
    };
    http_say(r, 200, &http_out_claimed, &c);
}

void
http_queue_claim(struct http_request *r)
{
    http_do(r, claimed);
}
