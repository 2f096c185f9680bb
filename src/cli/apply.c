/*
 * apply.c: applies one op for a command; the contract is in apply.h.
 */
#include "cli/apply.h"

#include "base/error.h"
#include "cli/audit.h"

#define SHOWN_BYTES 80

/* An empty page of a listing that is not the last one. */
static bool
is_empty_page(const il_op *op)
{
    return op->status == IL_OK && op->out.next != NULL && op->type != IL_OP_CACHE_STATS &&
           op->out.n_items + op->out.n_edges + op->out.n_events + op->out.n_runs + op->out.n_jobs +
                   op->out.n_queues + op->out.n_crons ==
               0;
}

/* Apply the op for the next page. Its cursor is freed on return, when it is no longer used. */
static il_status
apply_next(const struct cli *cli, il_op *op, il_error *reterr)
{
    AUTO_FREE char *cursor = il__strdup(op->out.next);

    if (cursor == NULL)
        return il__error_nomem(reterr);
    il_op_release(op);
    op->in.list.cursor = cursor;
    il_status st       = il_apply(cli->store, op, 1, reterr);
    op->in.list.cursor = NULL;
    return st;
}

/* The status of an op that was applied with st. */
static il_status
outcome(const struct cli *cli, const il_op *op, il_status st, il_error *reterr)
{
    if (st != IL_OK || il_status_exit(op->status) == 0)
        return st != IL_OK ? st : op->status;
    return il__error_set(reterr, op->status, "%s: %s", cli->command->name,
                         op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
}

il_status
il__cli_apply(const struct cli *cli, il_op *op, il_error *reterr)
{
    il_status st = il_apply(cli->store, op, 1, reterr);

    il__cli_audit_ops(cli, op, 1, st);
    while (st == IL_OK && is_empty_page(op))
        st = apply_next(cli, op, reterr);
    return outcome(cli, op, st, reterr);
}

il_status
il__cli_apply_more(const struct cli *cli, il_op *op, il_error *reterr)
{
    il_op_release(op);
    il_status st = il_apply(cli->store, op, 1, reterr);

#ifdef IL_MUTANT_steps_audited
    il__cli_audit_ops(cli, op, 1, st);
#endif
    return outcome(cli, op, st, reterr);
}

il_status
il__cli_apply_to(const struct cli *cli, il_op *op, const char *what, const char *name,
                 il_error *reterr)
{
    il_status st = il__cli_apply(cli, op, reterr);

    if (st != IL_NOT_FOUND)
        return st;
    return il__error_set(reterr, st, "%s: no such %s: '%.*s'", cli->command->name, what,
                         SHOWN_BYTES, name);
}

il_status
il__cli_queue_exists(const struct cli *cli, const char *queue, il_error *reterr)
{
    il_op     op = { .type = IL_OP_QUEUE_LIST, .in.list = { .prefix = queue, .limit = 1 } };
    il_status st = il__cli_apply(cli, &op, reterr);

    /* Sorted by name, the prefix itself comes first. */
    if (st == IL_OK && (op.out.n_queues == 0 || strcmp(op.out.queues[0].name, queue) != 0))
        st = il__error_set(reterr, IL_NOT_FOUND, "%s: no such queue: '%.*s'", cli->command->name,
                           SHOWN_BYTES, queue);
    il_op_release(&op);
    return st;
}

il_status
il__cli_cursor_error(const struct cli *cli, il_status st, const char *cursor, il_error *reterr)
{
    if (st != IL_INVAL || cursor == NULL)
        return st;
    return il__error_set(reterr, st, "%s: --cursor: '%.*s' is not a cursor from a listing",
                         cli->command->name, SHOWN_BYTES, cursor);
}
