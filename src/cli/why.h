/* why.h: explains why a key is not free (cmd_why.c). */
#ifndef IL_CLI_WHY_H
#define IL_CLI_WHY_H

#include "cli/cli.h"

/* The text of `interlock why` without colours; il__free() it. NULL: *reterr says why. */
char *il__cli_why(struct cli *cli, const char *key, il_error *reterr);

#endif
