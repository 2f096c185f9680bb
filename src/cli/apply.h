/*
 * apply.h: applies one op for a command, and reports its error.
 */
#ifndef IL_CLI_APPLY_H
#define IL_CLI_APPLY_H

#include "cli/cli.h"

/*
 * Apply one op on cli->store. Returns the op's status; unless that means success (il_status_exit()
 * 0), *reterr has a message that begins with the command's name. il_op_release() it in any case.
 */
MUST_USE il_status il__cli_apply(const struct cli *cli, il_op *op, il_error *reterr);

/* The next step of an op that answered IL_OUT_MORE. The audit log has one row per action, however
 * many steps it takes: that of the first. */
MUST_USE il_status il__cli_apply_more(const struct cli *cli, il_op *op, il_error *reterr);

/* As il__cli_apply(); NOT_FOUND is reported as a missing `what` (job, run) of that name. */
MUST_USE il_status il__cli_apply_to(const struct cli *cli, il_op *op, const char *what,
                                    const char *name, il_error *reterr);

/* Does the queue exist? IL_OK, or IL_NOT_FOUND with a message. */
MUST_USE il_status il__cli_queue_exists(const struct cli *cli, const char *queue, il_error *reterr);

/* If only the cursor of a listing can be at fault, report IL_INVAL as an invalid cursor. */
il_status il__cli_cursor_error(const struct cli *cli, il_status st, const char *cursor,
                               il_error *reterr);

#endif
