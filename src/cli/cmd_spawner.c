/*
 * cmd_spawner.c: `interlock spawner` (hidden): the process that starts a server's commands. See
 * proc/proc.h.
 */
#include "cli/cli.h"
#include "proc/proc.h"

int
il__cli_cmd_spawner(struct cli *cli UNUSED)
{
    return il__proc_spawner_main();
}
