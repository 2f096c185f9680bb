/*
 * cmd_migrate.c: `interlock migrate`: creates or upgrades the store in a database. It does not open
 * the store, because opening refuses an older version.
 */
#include "cli/cli.h"
#include "data/data.h"
#include "runtime/handle.h"

static bool
is_to_do(const struct il__migration *m)
{
    return !m->by_itself && (m->from != m->to || m->functions);
}

static void
tell(const struct cli *cli, const struct il__migration *m, bool check)
{
    const char *did = check ? "is to be" : "was";

    if (m->by_itself)
        il__cli_note(cli, "nothing to do: this kind of store is prepared when it is opened");
    else if (!is_to_do(m))
        il__cli_note(cli, "up to date: version %d", m->to);
    else if (m->from == 0)
        il__cli_note(cli, "version %d %s installed", m->to, did);
    else if (m->from != m->to)
        il__cli_note(cli, "version %d %s upgraded to version %d", m->from, did, m->to);
    else
        il__cli_note(cli, "version %d, functions %s reinstalled", m->to,
                     check ? "must be" : "were");
}

/* The server's tables next to a store in a database: a user who may create the store should
 * create these as well. */
static il_status
migrate_data(const struct cli *cli, const il_open_opts *opts, il_error *reterr)
{
    struct il__data_open o  = { .store_url  = CLI_SETTING(cli, store)->text,
                                .timeout_ms = opts->timeout_ms,
                                .no_keys    = true };
    struct il__data     *d  = NULL;
    il_status            st = il__data_open(&o, &d, reterr);

    il__data_close(d);
    return st;
}

int
il__cli_cmd_migrate(struct cli *cli)
{
    bool                 check = CLI_GIVEN(cli, migrate, check);
    il_open_opts         opts;
    il_error             err;
    struct il__migration m = { 0 };
    il_status st           = il__cli_store_not_server(cli, "it works on a database directly", &err);

    if (st == IL_OK)
        st = il__cli_store_prepare(cli, !check, &opts, &err);

    if (st == IL_OK)
        st = il__migrate(CLI_SETTING(cli, store)->text, &opts, check, &m, &err);
    if (st == IL_OK && !check && !m.by_itself)
        st = migrate_data(cli, &opts, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    int status = 0;
    if (cli->json)
        status =
            il__cli_json_print(json_pack("{s:i, s:i, s:b, s:b}", "from", m.from, "to", m.to,
                                         "functions", m.functions, "to_do", check && is_to_do(&m)));
    else
        tell(cli, &m, check);
    return status == 0 && check && is_to_do(&m) ? 1 : status;
}
