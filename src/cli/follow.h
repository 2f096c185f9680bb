/* follow.h: prints the log of a run on stdout as it is written (cmd_runs.c). */
#ifndef IL_CLI_FOLLOW_H
#define IL_CLI_FOLLOW_H

#include "cli/cli.h"

/* Print it until the run has ended. */
MUST_USE il_status il__cli_follow(struct cli *cli, const char *id, il_error *reterr);

#endif
