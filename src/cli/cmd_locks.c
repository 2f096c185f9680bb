/*
 * cmd_locks.c: `interlock locks`: lists leases and their holders, waiters, or the learned lock
 * order, one page at a time.
 */
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/apply.h"
#include "cli/cli.h"
#include "cli/cmd_locks_report.h"
#include "cli/page.h"
#include "cli/print_item.h"
#include "cli/print_lease.h"

#define WATCH_S 1
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
    static const char *const  headers[] = { "KEY",      "HOLDER",       ">TICKET", "MODE",
                                            ">WAITING", ">GIVES UP IN", "WHO" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = HOLDER_COLUMN;
    for (size_t i = 0; i < op->out.n_items; i++) {
        const il_lease_info *info = &op->out.items[i];
        char                 age[CLI_AGE_BYTES];
        char                 rest[CLI_AGE_BYTES];
        char                 mode[CLI_MODE_BYTES];
        char                 who[CLI_WHO_BYTES];
        il__cli_grid_add(&g, "%s", info->key);
        il__cli_grid_add(&g, "%s", info->holder);
        il__cli_grid_add(&g, "%" PRIu64, info->ticket);
        il__cli_grid_add(&g, "%s", il__cli_mode_text(info, mode));
        il__cli_grid_add(&g, "%s", il__cli_age(info->age_ms, age));
        il__cli_grid_add(&g, "%s",
                         info->remaining_ms == IL_FOREVER ? "never"
                                                          : il__cli_age(info->remaining_ms, rest));
        il__cli_grid_add(&g, "%s", il__cli_lease_who(info, who));
    }
    return il__cli_grid_print(&g);
}

static const char *
edge_mark(const il_edge_info *info)
{
    bool declared = (info->flags & IL_EDGE_DECLARED) != 0;

    if ((info->flags & IL_EDGE_INVERTED) != 0)
        return declared ? "declared, INVERTED" : "INVERTED";
    return declared ? "declared" : "learned";
}

static int
print_edges(struct cli *cli, const il_op *op)
{
    static const char *const  headers[] = { "HELD", "THEN", "ORDER", "HELD AT", "THEN AT" };
    AUTO_GRID struct cli_grid g         = { 0 };
    size_t                    n         = 0;

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ARRAY_LEN(headers) - 1;
    for (size_t i = 0; i < op->out.n_edges; i++) {
        const il_edge_info *info = &op->out.edges[i];
        il__cli_grid_add(&g, "%s", info->from);
        il__cli_grid_add(&g, "%s", info->to);
        il__cli_grid_add(&g, "%s", edge_mark(info));
        il__cli_grid_add(&g, "%s", info->from_place[0] != '\0' ? info->from_place : "-");
        il__cli_grid_add(&g, "%s", info->to_place[0] != '\0' ? info->to_place : "-");
        n += (info->flags & IL_EDGE_INVERTED) != 0;
    }
    int status = il__cli_grid_print(&g);
    if (n > 0)
        il__cli_note(
            cli, "%zu INVERTED: programs lock these classes in opposite orders and can deadlock",
            n);
    return status;
}

/* What is listed, and how. */
struct listing {
    const char               *none; /* what to say about an empty page */
    const char               *with; /* ... and about its prefix */
    const struct wire_object *item;
    il_op_type                type;
    uint32_t                  flags;
};

static const struct listing leases  = { "no leases", "on keys that start with", &il__wire_lease,
                                        IL_OP_LIST, 0 };
static const struct listing waiters = { "no waiters", "for keys that start with", &il__wire_waiter,
                                        IL_OP_LIST, IL_LIST_WAITERS };
static const struct listing order   = { "no lock order has been learned", "for classes within",
                                        &il__wire_edge, IL_OP_ORDER_LIST, 0 };

static int
print_table(struct cli *cli, const struct listing *l, const il_op *op)
{
    if (l == &order)
        return print_edges(cli, op);
    return l == &waiters ? print_waiters(op) : print_leases(op);
}

static int
print_page(struct cli *cli, const struct listing *l, const il_op *op)
{
    bool        edges = l == &order;
    size_t      n     = edges ? op->out.n_edges : op->out.n_items;
    const void *items = edges ? (const void *)op->out.edges : op->out.items;

    if (cli->json)
        return il__cli_print_page(l->item, items, n, op->out.next);
    if (n == 0) {
        const char *prefix = cli->args.operands[0];
        il__cli_note(cli, "%s%s%s%s%s%s", l->none, prefix != NULL ? " " : "",
                     prefix != NULL ? l->with : "", prefix != NULL ? " " : "",
                     prefix != NULL ? prefix : "",
                     cli->store_missing ? "; the store does not exist yet" : "");
        return 0;
    }
    int status = print_table(cli, l, op);
    il__cli_note_next(cli, op->out.next);
    return status;
}

static il_status
list(struct cli *cli, const struct listing *l, il_op *op, il_error *reterr)
{
    const char *prefix = cli->args.operands[0];
    const char *cursor = CLI_OPTION(cli, locks, cursor)->text;
    uint32_t    limit  = (uint32_t)CLI_OPTION(cli, locks, limit)->number;
    il_status   st     = IL_OK;

    if (prefix != NULL && prefix[0] != '\0')
        st = il__cli_check_key(cli, prefix, reterr);
    if (st != IL_OK)
        return st;
    *op = (il_op){ .type    = l->type,
                   .flags   = l->flags,
                   .in.list = { .prefix = prefix, .cursor = cursor, .limit = limit } };
    return il__cli_cursor_error(cli, il__cli_apply(cli, op, reterr), cursor, reterr);
}

/* Print the page again and again, on a terminal in the same place, until a signal ends this. */
static int
watch(struct cli *cli, const struct listing *l, il_op *op)
{
    const struct timespec pause  = { WATCH_S, 0 };
    bool                  screen = isatty(STDOUT_FILENO) != 0 && !cli->json;
    il_error              err;

    for (;;) {
        (void)fputs(screen ? "\033[H\033[J" : "", stdout);
        int status = print_page(cli, l, op);
        if (status != 0 || fflush(stdout) != 0)
            return status;
        (void)nanosleep(&pause, NULL);
        il_op_release(op);
        if (list(cli, l, op, &err) != IL_OK)
            return il__cli_fail(&err);
    }
}

int
il__cli_cmd_locks(struct cli *cli)
{
    const struct listing *l  = CLI_GIVEN(cli, locks, order)     ? &order
                               : CLI_GIVEN(cli, locks, waiters) ? &waiters
                                                                : &leases;
    il_op                 op = { 0 };
    il_error              err;

    if (CLI_GIVEN(cli, locks, order) &&
        (CLI_GIVEN(cli, locks, waiters) || CLI_GIVEN(cli, locks, report)))
        return il__cli_usage("locks: --order cannot be combined with --waiters or --report");
    if (CLI_GIVEN(cli, locks, watch) && CLI_GIVEN(cli, locks, report))
        return il__cli_usage("locks: --watch cannot be combined with --report");
    if (CLI_GIVEN(cli, locks, report))
        return il__cli_locks_report(cli);
    if (CLI_GIVEN(cli, locks, hold_p95) || CLI_GIVEN(cli, locks, critical) ||
        CLI_GIVEN(cli, locks, rollbacks))
        return il__cli_usage("locks: --hold-p95, --critical and --rollbacks need --report");
    il_status st = il__cli_store_open(cli, false, &err);
    if (st == IL_OK)
        st = list(cli, l, &op, &err);
    int status = st != IL_OK                    ? il__cli_fail(&err)
                 : CLI_GIVEN(cli, locks, watch) ? watch(cli, l, &op)
                                                : print_page(cli, l, &op);

    il_op_release(&op);
    return status;
}
