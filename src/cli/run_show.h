/* run_show.h: shows one run, as its app shows it. */
#ifndef IL_CLI_RUN_SHOW_H
#define IL_CLI_RUN_SHOW_H

#include "cli/cli.h"

/* Columns of a listing of runs: what follows the state, "" or " (stopping)"; the stage, or the
 * error. */
const char *il__cli_run_note(const il_run_info *info);
const char *il__cli_run_stage(const il_run_info *info);

/* Show the run with this id; false: there is none, so it may be the prefix of a key. */
bool il__cli_run_show(struct cli *cli, const char *id, int *ret_exit_status);

#endif
