/* events.h: the recorded expiries, breaks and refusals of a key, in words: for `interlock why` and
 * `interlock history`. */
#ifndef IL_CLI_EVENTS_H
#define IL_CLI_EVENTS_H

#include "cli/cli.h"

/* Add one event as a line, escaped, indented by two spaces. */
void il__cli_event_text(struct il__buf *b, const il_event_info *e);

#endif
