/*
 * app_tables.h: the tables of the apps, for commands that work on a database directly.
 */
#ifndef IL_CLI_APP_TABLES_H
#define IL_CLI_APP_TABLES_H

#include "apps/common/tables.h"
#include "cli/cli.h"

/* The place of the apps' tables, by --store and --data, where nothing is created by this. *ret
 * stays NULL for a memory store: it has no tables that could be found. Close it. */
MUST_USE il_status il__cli_tables_place(const struct cli *cli, struct tables_place **ret,
                                        il_error *reterr);

typedef il_status cli_tables_fn(void *cookie, const struct app_tables *t,
                                const struct tables_place *p, il_error *reterr);

/* Call fn for each app that has tables, at this place. Stops at the first failure and returns
 * it. */
MUST_USE il_status il__cli_each_tables(const struct cli *cli, cli_tables_fn *fn, void *cookie,
                                       il_error *reterr);

#endif
