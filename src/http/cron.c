/* cron.c: routes for schedules. */
#include "http/handler.h"

static void
listed(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status == IL_OK)
        http_say_page(r, &il__wire_cron, op->out.crons, sizeof *op->out.crons, op->out.n_crons,
                      op->out.next);
    else
        http_fail_op(r, op, NULL);
}

void
http_cron_list(struct http_request *r)
{
    http_do(r, listed);
}

static void
set(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status == IL_OK && op->out.n_crons > 0)
        http_say(r, 200, &il__wire_cron, &op->out.crons[0]);
    else
        http_fail_op(r, op, NULL);
}

void
http_cron_set(struct http_request *r)
{
    http_do(r, set);
}

static void
removed(struct http_request *r)
{
    struct http_number gone = { .name = r->ops->in.cron.name, .is = HTTP_IS_TRUE };

    if (r->ops->status == IL_OK)
        http_say(r, 200, &http_out_removed, &gone);
    else
        http_fail_op(r, r->ops, NULL);
}

void
http_cron_remove(struct http_request *r)
{
    http_do(r, removed);
}
