/*
 * cmd_migrate.c: `interlock migrate`: creates or upgrades the store in a database, and the tables
 * of the apps. It does not open the store, because opening refuses an older version.
 */
#include "base/error.h"
#include "cli/app_tables.h"
#include "cli/cli.h"
#include "data/data.h"
#include "runtime/handle.h"

static bool
is_to_do(const struct il__migration *m)
{
    return !m->by_itself && (m->from != m->to || m->functions);
}

/* prefix: "", or the app and a colon. */
static void
tell(const struct cli *cli, const char *prefix, const struct il__migration *m, bool check)
{
    const char *did = check ? "needs to be" : "was";

    if (m->by_itself)
        il__cli_note(cli, "%snothing to do: this store needs no migration", prefix);
    else if (!is_to_do(m))
        il__cli_note(cli, "%sup to date: version %d", prefix, m->to);
    else if (m->from == 0)
        il__cli_note(cli, "%sversion %d %s installed", prefix, m->to, did);
    else if (m->from != m->to)
        il__cli_note(cli, "%sversion %d %s upgraded to version %d", prefix, m->from, did, m->to);
    else
        il__cli_note(cli, "%sversion %d, functions %s reinstalled", prefix, m->to,
                     check ? "need to be" : "were");
}

/* The server's tables next to a store in a database: a user who may create the store should
 * create these as well. */
static il_status
migrate_data(const struct cli *cli, const il_open_opts *opts, il_error *reterr)
{
    const char          *data = CLI_SETTING(cli, data)->text;
    struct il__data_open o    = { .store_url  = CLI_SETTING(cli, store)->text,
                                  .data_url   = data[0] != '\0' ? data : NULL,
                                  .timeout_ms = opts->timeout_ms,
                                  .no_keys    = true };
    struct il__data     *d    = NULL;
    il_status            st   = il__data_open(&o, &d, reterr);

    il__data_close(d);
    return st;
}

/* ---- apps ------------------------------------------------------------------------------------ */

struct apps {
    const struct cli *cli;
    json_t           *items; /* NULL: printed as text */
    bool              check;
    bool              to_do; /* of any of them */
};

static il_status
migrate_app(void *cookie, const struct app_tables *t, const struct tables_place *p,
            il_error *reterr)
{
    struct apps         *a  = cookie;
    struct il__migration m  = { 0 };
    il_status            st = il__tables_migrate(t, p, a->check, &m, reterr);
    char                 prefix[APP_TABLES_NAME_BYTES_MAX + 3];

    /* A role for the store alone is enough for the store; an app that is used says the same. */
    if (st != IL_OK && reterr != NULL && strcmp(reterr->native, TABLES_NO_PRIVILEGE) == 0) {
        il__cli_note(a->cli, "%s", reterr->message);
        return IL_OK;
    }
    if (st != IL_OK || m.by_itself) /* the note about the store says so */
        return st;
    a->to_do = a->to_do || (a->check && is_to_do(&m));
    if (a->items == NULL) {
        (void)snprintf(prefix, sizeof prefix, "%s: ", t->name);
        tell(a->cli, prefix, &m, a->check);
        return IL_OK;
    }
    json_t *item = json_pack("{s:s, s:i, s:i, s:b}", "name", t->name, "from", m.from, "to", m.to,
                             "to_do", a->check && is_to_do(&m));
    return json_array_append_new(a->items, item) == 0 ? IL_OK : il__error_nomem(reterr);
}

/* ---- the command ----------------------------------------------------------------------------- */

static il_status
migrate(struct cli *cli, bool check, struct il__migration *ret, il_error *reterr)
{
    il_open_opts opts;
    il_status    st = il__cli_store_not_server(cli, "it changes a database directly", reterr);

    if (st == IL_OK)
        st = il__cli_store_prepare(cli, !check, &opts, reterr);
    if (st == IL_OK)
        st = il__migrate(CLI_SETTING(cli, store)->text, &opts, check, ret, reterr);
    if (st == IL_OK && !check && !ret->by_itself)
        st = migrate_data(cli, &opts, reterr);
    return st;
}

static int
print_json(const struct apps *a, const struct il__migration *m)
{
    return il__cli_json_print(json_pack("{s:i, s:i, s:b, s:b, s:O}", "from", m->from, "to", m->to,
                                        "functions", m->functions, "to_do", a->to_do, "apps",
                                        a->items));
}

/* A new store, so there is nothing to upgrade, and no tables of apps. */
static int
create_for(struct cli *cli, const char *group)
{
    const char  *url = CLI_SETTING(cli, store)->text;
    il_open_opts opts;
    il_error     err;

    if (CLI_GIVEN(cli, migrate, check) || CLI_SETTING(cli, store)->source == IL__FROM_DEFAULT)
        return il__cli_usage(
            CLI_GIVEN(cli, migrate, check)
                ? "migrate: --check and --group cannot be combined"
                : "migrate: --group needs --store; the default store is private to this user");
    il_status st = il__cli_store_not_server(cli, "it changes a database directly", &err);
    if (st == IL_OK)
        st = il__cli_store_prepare(cli, true, &opts, &err);
    if (st == IL_OK)
        st = il__create_for(url, &opts, group, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    il__cli_note(cli, "%s is shared by the members of group %s", url, group);
    if (!cli->json)
        return 0;
    return il__cli_json_print(json_pack("{s:s, s:s}", "store", url, "group", group));
}

int
il__cli_cmd_migrate(struct cli *cli)
{
    struct apps          a = { .cli = cli, .check = CLI_GIVEN(cli, migrate, check) };
    struct il__migration m = { 0 };
    il_error             err;
    int                  status = 0;

    if (CLI_GIVEN(cli, migrate, group))
        return create_for(cli, CLI_OPTION(cli, migrate, group)->text);
    if (cli->json && (a.items = json_array()) == NULL)
        return il__cli_fail_memory();
    il_status st = migrate(cli, a.check, &m, &err);
    a.to_do      = a.check && is_to_do(&m);
    if (st == IL_OK && !cli->json)
        tell(cli, "", &m, a.check);
    if (st == IL_OK)
        st = il__cli_each_tables(cli, migrate_app, &a, &err);
    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = print_json(&a, &m);
    json_decref(a.items);
    return status == 0 && a.to_do ? 1 : status;
}
