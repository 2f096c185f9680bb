/*
 * ask.h: helpers shared by the queue, run and cache commands: applying one op and reporting its
 * error, looking up names, parsing lists of states, reading bounded input.
 */
#ifndef IL_CLI_ASK_H
#define IL_CLI_ASK_H

#include "cli/cli.h"

/*
 * Apply one op on cli->store. Returns the op's status; unless that means success (il_status_exit()
 * 0), *reterr has a message that begins with the command's name. il_op_release() it in any case.
 */
MUST_USE il_status il__cli_apply(const struct cli *cli, il_op *op, il_error *reterr);

/* The next step of an op that answered IL_OUT_MORE. The audit log has one row per action,
 * however many steps it takes: that of the first. */
MUST_USE il_status il__cli_apply_more(const struct cli *cli, il_op *op, il_error *reterr);

/* As il__cli_apply(); NOT_FOUND is reported as a missing `what` (job, run) of that name. */
MUST_USE il_status il__cli_apply_to(const struct cli *cli, il_op *op, const char *what,
                                    const char *name, il_error *reterr);

/* Does the queue exist? IL_OK, or IL_NOT_FOUND with a message. */
MUST_USE il_status il__cli_queue_exists(const struct cli *cli, const char *queue, il_error *reterr);

/* If only the cursor of a listing can be at fault, report IL_INVAL as an invalid cursor. */
il_status il__cli_cursor_error(const struct cli *cli, il_status st, const char *cursor,
                               il_error *reterr);

/* Parse a comma-separated list of states, ignoring case, to bits 1 << state. NULL text gives 0:
 * all. */
MUST_USE il_status il__cli_job_states(const struct cli *cli, const char *text, uint32_t *ret,
                                      il_error *reterr);
MUST_USE il_status il__cli_run_states(const struct cli *cli, const char *text, uint32_t *ret,
                                      il_error *reterr);

/*
 * Read a file, or standard input (NULL or "-"), whole into *b, which is initialised here and
 * released by the caller. IL_OK, or IL_INVAL: it cannot be read, or is larger than `max` bytes.
 */
MUST_USE il_status il__cli_read(const struct cli *cli, const char *path, const char *what,
                                size_t n_bytes_max, struct il__buf *b, il_error *reterr);

/* The payload named by the arguments: the operand (NULL or "-": standard input), or the file.
 * *ret points to the operand or into *b. */
MUST_USE il_status il__cli_payload(const struct cli *cli, const char *operand, const char *file,
                                   struct il__buf *b, const char **ret, size_t *ret_bytes,
                                   il_error *reterr);

/*
 * The time between TERM and KILL: `option` if given, else from the configuration. It must fit
 * between the loss of a lease and its end: at most a third of the ttl. A value from the
 * configuration is reduced to that, a value from the command line is refused. option may be NULL.
 */
MUST_USE il_status il__cli_choose_grace(const struct cli *cli, const struct cli_value *option,
                                        int64_t ttl_ms, int64_t *ret_ms, il_error *reterr);

/* The store of a command that cooperates with other processes: IL_INVAL for one that lives in
 * this process only. It is not opened yet, but may be created. */
MUST_USE il_status il__cli_shared_store(struct cli *cli, il_open_opts *ret_opts,
                                        const char **ret_url, il_error *reterr);

#endif
