/*
 * cmd_doctor.c: `interlock doctor`: explains what the settings of the store and its server mean for
 * the guarantees. Exit status 1 if a guarantee does not hold. The user's own databases
 * (--connection) are in doctor_*.c.
 */
#include "base/error.h"
#include "cli/app_tables.h"
#include "cli/doctor.h"

static const struct {
    const char    *name;
    enum cli_style style;
} levels[IL__FINDING_LEVEL_COUNT] = {
    [IL__FINDING_GOOD] = { "ok", CLI_GREEN },
    [IL__FINDING_NOTE] = { "note", CLI_PLAIN },
    [IL__FINDING_WARN] = { "warning", CLI_YELLOW },
    [IL__FINDING_BAD]  = { "bad", CLI_RED },
};

const char *
il__doctor_level_name(enum il__finding_level level)
{
    return levels[level].name;
}

struct doctor {
    json_t         *items; /* NULL: not as JSON */
    struct cli_grid grid;
    size_t          n[IL__FINDING_LEVEL_COUNT];
    bool            failed; /* no memory */
};

static void
note_finding(void *cookie, const struct il__finding *f)
{
    struct doctor *d = cookie;

    d->n[f->level]++;
    if (d->items != NULL) {
        json_t *item = json_pack("{s:s, s:o, s:o, s:o}", "level", levels[f->level].name, "name",
                                 il__cli_json_text(f->name), "value", il__cli_json_text(f->value),
                                 "means", il__cli_json_text(f->means));
        d->failed    = json_array_append_new(d->items, item) != 0 || d->failed;
        return;
    }
    il__cli_grid_add(&d->grid, "%s", levels[f->level].name);
    il__cli_grid_add(&d->grid, "%s", f->name);
    il__cli_grid_add(&d->grid, "%s", f->value);
    il__cli_grid_add(&d->grid, "%s", f->means);
}

/* Tables of an app whose version this binary cannot use. */
static il_status
check_tables(void *cookie, const struct app_tables *t, const struct tables_place *p,
             il_error *reterr UNUSED)
{
    struct il__migration m = { 0 };
    il_error             err;
    char                 name[64], value[64];
    il_status            st = il__tables_migrate(t, p, true, &m, &err);

    (void)snprintf(name, sizeof name, "tables of %s", t->name);
    (void)snprintf(value, sizeof value, "version %d", m.from);
    if (st == IL_NEWER)
        note_finding(cookie, &(struct il__finding){ IL__FINDING_WARN, name, "newer", err.message });
    else if (st == IL_OK && m.from != 0 && m.from != m.to)
        note_finding(cookie, &(struct il__finding){ IL__FINDING_WARN, name, value,
                                                    "older than this binary; run `interlock "
                                                    "migrate`" });
    else if (st != IL_OK)
        note_finding(cookie, &(struct il__finding){ IL__FINDING_WARN, name, "cannot be checked",
                                                    err.message });
    return IL_OK;
}

static int
print(struct cli *cli, struct doctor *d)
{
    int status;

    if (d->failed)
        return il__cli_fail_memory();
    if (d->items != NULL)
        status = il__cli_json_print(json_pack("{s:O, s:n}", "items", d->items, "next"));
    else
        status = il__cli_grid_print(&d->grid);
    if (status != 0)
        return status;
    if (d->n[IL__FINDING_BAD] > 0)
        il__cli_note(cli, "%zu %s not meet Interlock's guarantees", d->n[IL__FINDING_BAD],
                     d->n[IL__FINDING_BAD] == 1 ? "setting does" : "settings do");
    return d->n[IL__FINDING_BAD] > 0 ? 1 : 0;
}

static int
report_store(struct cli *cli)
{
    static const char *const headers[] = { "LEVEL", "SETTING", "VALUE", "MEANING" };
    struct doctor            d         = { 0 };
    il_error                 err;
    int                      status;

    if (il__cli_store_not_server(cli, "it reads the store directly; run it on the server's machine",
                                 &err) != IL_OK ||
        il__cli_store_open(cli, false, &err) != IL_OK)
        return il__cli_fail(&err);
    if (cli->store_missing) {
        il__cli_note(cli, "the store does not exist yet");
        return 0;
    }
    if (cli->json && (d.items = json_array()) == NULL)
        return il__cli_fail_memory();
    il__cli_grid_init(&d.grid, headers, ARRAY_LEN(headers));
    if (il__handle_report(cli->store, CLI_OPTION(cli, doctor, table)->text, note_finding, &d,
                          &err) != IL_OK ||
        il__cli_each_tables(cli, check_tables, &d, &err) != IL_OK)
        status = il__cli_fail(&err);
    else
        status = print(cli, &d);
    json_decref(d.items);
    il__cli_grid_release(&d.grid);
    return status;
}

int
il__cli_cmd_doctor(struct cli *cli)
{
    bool schema = CLI_GIVEN(cli, doctor, schema), table = CLI_GIVEN(cli, doctor, table);
    bool connection = CLI_GIVEN(cli, doctor, connection);

    if (schema && table)
        return il__cli_usage("doctor: --schema and --table cannot be combined");
    if (schema && !connection)
        return il__cli_usage("doctor: --schema needs --connection");
    if (connection)
        return il__doctor_database(cli);
    if (CLI_GIVEN(cli, doctor, checklist) && table)
        return il__cli_usage("doctor: --checklist with --table needs --connection");
    if (CLI_GIVEN(cli, doctor, checklist))
        return il__doctor_checklist(cli, NULL, NULL);
    return report_store(cli);
}
