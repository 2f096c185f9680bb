/* cron.c: routes for schedules. */
#include "http/handler.h"

void
http_cron_listed(struct http_request *r)
{
    const il_op *op = r->ops;

    http_say_page(r, &il__wire_cron, op->out.crons, sizeof *op->out.crons, op->out.n_crons,
                  op->out.next);
}

void
http_cron_shown(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->out.n_crons > 0)
        http_say(r, 200, &il__wire_cron, &op->out.crons[0]);
    else
        http_fail_op(r, op, NULL);
}

void
http_cron_removed(struct http_request *r)
{
    struct http_number gone = { .name = r->ops->in.cron.name, .is = HTTP_IS_TRUE };

    http_say(r, 200, &http_out_removed, &gone);
}
