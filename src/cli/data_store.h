/*
 * data_store.h: the data store (tenants, keys, audit) for commands that work without a server.
 */
#ifndef IL_CLI_DATA_STORE_H
#define IL_CLI_DATA_STORE_H

#include "cli/cli.h"

enum cli_data_for {
    CLI_DATA_LOOK,   /* nothing is created; *ret is NULL if nothing exists yet */
    CLI_DATA_CHANGE, /* it must exist */
    CLI_DATA_MAKE,   /* it is created if missing */
    CLI_DATA_KEYS,   /* and keys are created, for which the pepper is needed */
};

/* Open the data store of --data, or that of --store. il__data_close() it. */
MUST_USE il_status il__cli_data_open(struct cli *cli, enum cli_data_for what, struct il__data **ret,
                                     il_error *reterr);

/* As il__cli_fail(); for an argument error, the message begins with the command's name. */
int il__cli_data_fail(const struct cli *cli, const il_error *err);

#endif
