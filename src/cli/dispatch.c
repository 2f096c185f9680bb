/*
 * dispatch.c: from argv to a command: sets up options, configuration and store as the command's row
 * in commands.def requires, runs the command, and flushes its output.
 */
#include <signal.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/cli.h"

il_status
il__cli_check_key(const struct cli *cli, const char *key, il_error *reterr)
{
    enum {
        SHOWN_BYTES = 40
    };
    il_error  why;
    il_status st = il_check_key(key, &why);

    if (st == IL_OK)
        return IL_OK;
    return il__error_set(reterr, st, "%s: '%.*s%s': %s", cli->command->name, SHOWN_BYTES, key,
                         strlen(key) > SHOWN_BYTES ? "..." : "", why.message);
}

/* Set up what the command's row requires. */
static il_status
set_up(struct cli *cli, il_error *reterr)
{
    unsigned  flags = cli->command->flags;
    il_status st    = il__cli_args_complete(&cli->args, cli->command, reterr);

    if ((flags & CLI_EXEC) != 0) {
        (void)signal(SIGPIPE, cli->sigpipe); /* these cannot fail */
        (void)signal(SIGXFSZ, cli->sigxfsz);
    }
    if (st == IL_OK && (flags & CLI_NO_CONFIG) == 0)
        st = il__cli_config_load(&cli->config, &cli->args, reterr);
    if (st == IL_OK && (flags & CLI_STORE) != 0)
        st = il__cli_store_open(cli, (flags & CLI_CREATE) != 0, reterr);
    return st;
}

static int
dispatch(struct cli *cli, char **argv)
{
    il_error  err   = { 0 };
    int       i_arg = argv[0] != NULL ? 1 : 0;
    il_status st    = il__cli_args_command(&cli->args, argv, &i_arg, &cli->command, &err);

    if (st != IL_OK)
        return il__cli_fail(&err);
    cli->json  = CLI_GIVEN(cli, common, json);
    cli->quiet = CLI_GIVEN(cli, common, quiet);

    if (CLI_GIVEN(cli, common, version))
        return il__cli_print_version(cli);
    if (cli->command == NULL && CLI_GIVEN(cli, common, help)) {
        il__cli_help();
        return 0;
    }
    if (cli->command == NULL)
        return il__cli_usage("no command given; see interlock --help");
    if (CLI_GIVEN(cli, common, help)) {
        il__cli_help_command(cli->command);
        return 0;
    }
    if ((cli->command->flags & CLI_FAMILY) != 0)
        return il__cli_usage("%s: no command given; see interlock %s --help", cli->command->name,
                             cli->command->name);
    st = set_up(cli, &err);
    return st == IL_OK ? cli->command->fn(cli) : il__cli_fail(&err);
}

int
il__cli_main(char **argv)
{
    struct cli *cli;
    int         status;

    il__cli_out_init();
    cli = il__calloc(1, sizeof *cli);
    if (cli == NULL)
        return il__cli_fail_memory();
    il__cli_args_init(&cli->args);
    /* A closed pipe or a file that may not grow (ulimit -f) then causes a failed write with an
     * error message instead of a fatal signal. */
    cli->sigpipe = signal(SIGPIPE, SIG_IGN);
    cli->sigxfsz = signal(SIGXFSZ, SIG_IGN);

    status = il__cli_out_finish(dispatch(cli, argv));
    il_close(cli->store);
    il__cli_config_release(&cli->config);
    il__config_ranks_release(&cli->ranks);
    il__free(cli);
    return status;
}
