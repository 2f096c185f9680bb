/*
 * cmd_spawner.c: `interlock spawner`: hidden; what a server executes to start commands. See proc/proc.h.
 */
#include "cli/cli.h"
#include "proc/proc.h"

int
il__cli_cmd_spawner(struct cli *cli UNUSED)
{
    return il__proc_spawner_main();
}
