/*
 * cmd_history.c: `interlock history`: lists what happened to a key in the last week.
 */
#include <stdio.h>

#include "cli/apply.h"
#include "cli/events.h"
#include "cli/print_item.h"

#define TEXT_BYTES_MAX ((size_t)1 << 20)

static int
print_text(struct cli *cli, const il_op *op)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, TEXT_BYTES_MAX);
    il__cli_escape(&b, op->key);
    il__buf_adds(&b, op->out.n_events > 0 ? ", newest first:\n"
                                          : ": nothing happened in the last week\n");
    for (size_t i = 0; i < op->out.n_events; i++)
        il__cli_event_text(&b, &op->out.events[i]);
    if (b.failed)
        return il__cli_fail_memory();
    (void)fputs(il__buf_str(&b), stdout); /* stdout remembers its errors */
    if (op->out.next != NULL)
        il__cli_note(cli, "more events: --cursor '%s'", op->out.next);
    return 0;
}

int
il__cli_cmd_history(struct cli *cli)
{
    const char *cursor = CLI_OPTION(cli, history, cursor)->text;
    uint32_t    limit  = (uint32_t)CLI_OPTION(cli, history, limit)->number;
    il_op       op     = { .type    = IL_OP_HISTORY,
                           .key     = cli->args.operands[0],
                           .in.list = { .cursor = cursor, .limit = limit } };
    il_error    err;
    int         status;

    il_status st = il__cli_check_key(cli, op.key, &err);
    if (st == IL_OK)
        st = il__cli_cursor_error(cli, il__cli_apply(cli, &op, &err), cursor, &err);
    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_page(&il__wire_event, op.out.events, op.out.n_events, op.out.next);
    else
        status = print_text(cli, &op);
    if (st == IL_OK && cli->store_missing)
        il__cli_note(cli, "the store does not exist yet");
    il_op_release(&op);
    return status;
}
