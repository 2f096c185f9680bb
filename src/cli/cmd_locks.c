/*
 * cmd_locks.c: `interlock locks`: lists leases and their holders, one page at a time.
 */
#include <inttypes.h>

#include "base/error.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/cmd_locks_report.h"
#include "cli/item.h"
#include "cli/lease.h"

#define HOLDER_COLUMN 1 /* of both tables: may be truncated on a narrow terminal */

static int
print_leases(const il_op *op)
{
    static const char *const  headers[] = { "KEY",  "HOLDER",   ">FENCE",  "MODE",
                                            ">AGE", ">EXPIRES", ">WAITERS" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = HOLDER_COLUMN;
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info *info = &op->out.items[i];
        char                 age[CLI_AGE_BYTES];
        char                 mode[CLI_MODE_BYTES];
        char                 expiry[CLI_EXPIRY_BYTES];
        il__cli_grid_add(&g, "%s", info->key);
        il__cli_grid_add(&g, "%s", info->holder);
        if (il__cli_is_classic(info))
            il__cli_grid_add(&g, "-");
        else
            il__cli_grid_add(&g, "%" PRIu64, info->fence);
        il__cli_grid_add(&g, "%s", il__cli_lease_mode(info, mode));
        il__cli_grid_add(&g, "%s", il__cli_lease_age(info, age));
        il__cli_grid_add(&g, "%s", il__cli_lease_expiry(info, expiry));
        il__cli_grid_add(&g, "%" PRIu32, info->n_waiters);
    }
    return il__cli_grid_print(&g);
}

static int
print_waiters(const il_op *op)
{
    static const char *const  headers[] = { "KEY",  "HOLDER",   ">TICKET",
                                            "MODE", ">WAITING", ">GIVES UP IN" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = HOLDER_COLUMN;
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info *info = &op->out.items[i];
        char                 age[CLI_AGE_BYTES];
        char                 rest[CLI_AGE_BYTES];
        char                 mode[CLI_MODE_BYTES];
        il__cli_grid_add(&g, "%s", info->key);
        il__cli_grid_add(&g, "%s", info->holder);
        il__cli_grid_add(&g, "%" PRIu64, info->ticket);
        il__cli_grid_add(&g, "%s", il__cli_mode_text(info, mode));
        il__cli_grid_add(&g, "%s", il__cli_age(info->age_ms, age));
        il__cli_grid_add(&g, "%s",
                         info->remaining_ms == IL_FOREVER ? "never"
                                                          : il__cli_age(info->remaining_ms, rest));
    }
    return il__cli_grid_print(&g);
}

static int
print_page(struct cli *cli, const il_op *op, bool waiters)
{
    if (cli->json)
        return il__cli_print_page(waiters ? &il__wire_waiter : &il__wire_lease, op->out.items,
                                  op->out.n_items, op->out.next);
    if (op->out.n_items == 0) {
        const char *prefix = cli->args.operands[0];
        il__cli_note(cli, "nobody %s a key%s%s%s", waiters ? "waits for" : "holds",
                     prefix != NULL ? " that starts with " : "", prefix != NULL ? prefix : "",
                     cli->store_missing ? "; the store does not exist yet" : "");
        return 0;
    }
    int status = waiters ? print_waiters(op) : print_leases(op);
    if (op->out.next != NULL)
        il__cli_note(cli, "more items: --cursor '%s'", op->out.next);
    return status;
}

static il_status
list(struct cli *cli, bool waiters, il_op *op, il_error *reterr)
{
    const char *prefix = cli->args.operands[0];
    const char *cursor = CLI_OPTION(cli, locks, cursor)->text;
    uint32_t    limit  = (uint32_t)CLI_OPTION(cli, locks, limit)->number;
    il_status   st     = IL_OK;

    if (prefix != NULL && prefix[0] != '\0')
        st = il__cli_check_key(cli, prefix, reterr);
    if (st != IL_OK)
        return st;
    *op = (il_op){ .type    = IL_OP_LIST,
                   .flags   = waiters ? IL_LIST_WAITERS : 0U,
                   .in.list = { .prefix = prefix, .cursor = cursor, .limit = limit } };
    return il__cli_cursor_error(cli, il__cli_apply(cli, op, reterr), cursor, reterr);
}

int
il__cli_cmd_locks(struct cli *cli)
{
    bool     waiters = CLI_GIVEN(cli, locks, waiters);
    il_op    op      = { 0 };
    il_error err;

    if (CLI_GIVEN(cli, locks, report))
        return il__cli_locks_report(cli);
    if (CLI_GIVEN(cli, locks, hold_p95) || CLI_GIVEN(cli, locks, critical) ||
        CLI_GIVEN(cli, locks, rollbacks))
        return il__cli_usage("locks: --hold-p95, --critical and --rollbacks need --report");
    il_status st = il__cli_store_open(cli, false, &err);
    if (st == IL_OK)
        st = list(cli, waiters, &op, &err);
    int status = st == IL_OK ? print_page(cli, &op, waiters) : il__cli_fail(&err);

    il_op_release(&op);
    return status;
}
