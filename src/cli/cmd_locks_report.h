/* cmd_locks_report.h: the part of `interlock locks` that reads a log instead of the store. */
#ifndef IL_CLI_CMD_LOCKS_REPORT_H
#define IL_CLI_CMD_LOCKS_REPORT_H

#include "cli/cli.h"

/* `interlock locks --report`; returns the exit status. */
int il__cli_locks_report(struct cli *cli);

#endif
