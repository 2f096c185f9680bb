/*
 * data_store.c: opens the data store for a command.
 */
#include "cli/data_store.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"

/* Is it the data store of a default store that has not been used yet? */
static bool
is_missing(const struct cli *cli, const char *data)
{
    const struct il__setting *store = CLI_SETTING(cli, store);

    return data[0] == '\0' && store->source == IL__FROM_DEFAULT &&
           access(store->text + strlen("sqlite:"), F_OK) != 0 && errno == ENOENT;
}

il_status
il__cli_data_open(struct cli *cli, enum cli_data_for what, struct il__data **ret, il_error *reterr)
{
    bool         make   = what >= CLI_DATA_MAKE;
    const char  *data   = CLI_SETTING(cli, data)->text;
    const char  *pepper = CLI_SETTING(cli, pepper_file)->text;
    il_open_opts opts;
    il_status    st = IL_OK;

    *ret = NULL;
    if (data[0] == '\0')
        st = il__cli_store_not_server(cli, "use --store or --data, or /api/v1/admin over HTTP",
                                      reterr);
    if (st == IL_OK)
        st = il__cli_store_prepare(cli, make, &opts, reterr);
    if (st != IL_OK || (what == CLI_DATA_LOOK && is_missing(cli, data)))
        return st;
    struct il__data_open o = {
        .store_url   = CLI_SETTING(cli, store)->text,
        .data_url    = data[0] != '\0' ? data : NULL,
        .pepper_file = pepper[0] != '\0' ? pepper : NULL,
        .timeout_ms  = opts.timeout_ms,
        .existing    = !make,
        .no_keys     = what != CLI_DATA_KEYS,
    };
    if (make && il__cli_store_is_private(o.data_url != NULL ? o.data_url : o.store_url))
        return il__error_set(
            reterr, IL_INVAL,
            "%s: a memory store is lost when this process exits; pass --store or --data",
            cli->command->name);
    st = il__data_open(&o, ret, reterr);
    return st == IL_NOT_FOUND && what == CLI_DATA_LOOK ? IL_OK : st;
}

int
il__cli_data_fail(const struct cli *cli, const il_error *err)
{
    bool blame = err->status == IL_INVAL || err->status == IL_NOT_FOUND;

    if (!blame || strncmp(err->message, cli->command->name, strlen(cli->command->name)) == 0)
        return il__cli_fail(err);
    il__cli_error("%s: %s", cli->command->name, err->message);
    return il_status_exit(err->status);
}
