/*
 * cmd_debug.c: `interlock debug` (hidden): prints what the build and the documentation need from
 * the tables.
 */
#include "cli/cli.h"
#include "cli/debug.h"

/* debug man [COMMAND [PROSE]]; COMMAND `interlock` is the page of interlock itself, `options` that
 * of the common options. */
static int
man(const char *name, const char *prose_path)
{
    const struct cli_command *command = NULL;

    if (name != NULL && strcmp(name, "options") == 0)
        return il__cli_man_options(prose_path);
    if (name != NULL && strcmp(name, "interlock") != 0) {
        command = il__cli_command_below(NULL, name);
        if (command == NULL)
            return il__cli_usage("debug: unknown command '%.80s'", name);
    }
    return il__cli_man(command, prose_path);
}

int
il__cli_cmd_debug(struct cli *cli)
{
    const char *const *operands = cli->args.operands;

    if (strcmp(operands[0], "man") == 0)
        return man(operands[1], operands[2]);
    if (operands[1] == NULL)
        return il__cli_usage("debug: docs needs the name of a table");
    return il__cli_docs(operands[1], operands + 2, cli->args.n_operands - 2);
}
