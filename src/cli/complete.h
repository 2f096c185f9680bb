/* complete.h: words that only the store knows, for the completion scripts of shells. */
#ifndef IL_CLI_COMPLETE_H
#define IL_CLI_COMPLETE_H

#include "cli/defs.h"

/* What the first operand of a command names: "keys", "queues", …, as `interlock __complete` wants
 * it; NULL: nothing that the store knows. */
const char *il__cli_complete_kind(const struct cli_command *command);

#endif
