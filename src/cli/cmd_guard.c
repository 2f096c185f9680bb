/*
 * cmd_guard.c: `interlock guard`: makes the user's own tables reject writes without a current
 * fence. store/postgres/functions/guard.sql explains how.
 */
#include <inttypes.h>

#include "base/error.h"
#include "cli/cli.h"
#include "runtime/handle.h"

struct listing {
    json_t         *items; /* NULL: not as JSON */
    struct cli_grid grid;
    size_t          n;
    bool            failed; /* no memory */
};

static void
note_guard(void *cookie, const struct il__table_guard *g)
{
    struct listing *l = cookie;

    l->n++;
    if (l->items != NULL) {
        json_t *item = json_pack("{s:o, s:o, s:o, s:I}", "table", il__cli_json_text(g->table),
                                 "key", il__cli_json_text(g->key), "tenant",
                                 il__cli_json_text(g->tenant), "refused", (json_int_t)g->n_refused);
        l->failed    = json_array_append_new(l->items, item) != 0 || l->failed;
        return;
    }
    il__cli_grid_add(&l->grid, "%s", g->table);
    il__cli_grid_add(&l->grid, "%s", g->key);
    il__cli_grid_add(&l->grid, "%" PRIu64, g->n_refused);
}

static int
print(struct cli *cli, struct listing *l)
{
    if (l->failed)
        return il__cli_fail_memory();
    if (l->items != NULL)
        return il__cli_json_print(json_pack("{s:O, s:n}", "items", l->items, "next"));
    if (l->n == 0) {
        il__cli_note(cli, "no table has a guard");
        return 0;
    }
    return il__cli_grid_print(&l->grid);
}

static int
list(struct cli *cli)
{
    static const char *const headers[] = { "TABLE", "KEY", ">REFUSED" };
    struct listing           l         = { 0 };
    il_error                 err;
    int                      status;

    if (cli->json && (l.items = json_array()) == NULL)
        return il__cli_fail_memory();
    il__cli_grid_init(&l.grid, headers, ARRAY_LEN(headers));
    if (il__handle_guard_table(cli->store, NULL, note_guard, &l, &err) != IL_OK)
        status = il__cli_fail(&err);
    else
        status = print(cli, &l);
    json_decref(l.items);
    il__cli_grid_release(&l.grid);
    return status;
}

int
il__cli_cmd_guard(struct cli *cli)
{
    bool                   remove = CLI_GIVEN(cli, guard, remove);
    struct il__table_guard change = {
        .table  = cli->args.operands[0],
        .key    = CLI_OPTION(cli, guard, key)->text,
        .tenant = CLI_SETTING(cli, tenant)->text,
    };
    il_error err;

    if (change.table == NULL && change.key == NULL && !remove)
        return list(cli);
    if (change.table == NULL)
        return il__cli_usage("guard: TABLE is missing");
    if (remove == (change.key != NULL))
        return il__cli_usage(
            "guard: either --key (such as event:{event_id}) or --remove is required");
    if (il__handle_guard_table(cli->store, &change, NULL, NULL, &err) != IL_OK)
        return il__cli_fail(&err);
    if (remove)
        il__cli_note(cli, "removed the guard of %s; writes no longer need a fence", change.table);
    else
        il__cli_note(cli, "writes to %s now need the current fence of %s", change.table,
                     change.key);
    return 0;
}
