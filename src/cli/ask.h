/*
 * ask.h: what the commands of queues, runs and caches share: one op and its error, names that must exist, lists of
 * states, and input of a bounded size.
 */
#ifndef IL_CLI_ASK_H
#define IL_CLI_ASK_H

#include "cli/cli.h"

/*
 * Apply one op on cli->store. Returns the op's status; unless it is one of success (il_status_exit() 0), *reterr has
 * a sentence that begins with the command's name. il_op_release() it in any case.
 */
MUST_USE il_status il__cli_apply(const struct cli *cli, il_op *op, il_error *reterr);

/* The same; what is NOT_FOUND is said to be the `what` (job, run) of that name. */
MUST_USE il_status il__cli_apply_to(const struct cli *cli, il_op *op, const char *what,
                                    const char *name, il_error *reterr);

/* Is there such a queue? IL_OK, or IL_NOT_FOUND with a sentence. */
MUST_USE il_status il__cli_queue_exists(const struct cli *cli, const char *queue, il_error *reterr);

/* IL_INVAL of a listing whose other inputs are fine is about its cursor: say so. */
il_status il__cli_cursor_error(const struct cli *cli, il_status st, const char *cursor,
                               il_error *reterr);

/*
 * A list of states, in any case, separated by commas, as bits 1 << state. NULL text gives 0: all. Of jobs `dead` is
 * FAILED.
 */
MUST_USE il_status il__cli_job_states(const struct cli *cli, const char *text, uint32_t *ret,
                                      il_error *reterr);
MUST_USE il_status il__cli_run_states(const struct cli *cli, const char *text, uint32_t *ret,
                                      il_error *reterr);

/*
 * Read a file, or standard input (NULL or "-"), whole into *b, which is initialised here and released by the caller.
 * IL_OK, or IL_INVAL: it cannot be read, or is larger than `max` bytes.
 */
MUST_USE il_status il__cli_read(const struct cli *cli, const char *path, const char *what,
                                size_t n_bytes_max, struct il__buf *b, il_error *reterr);

/*
 * The payload that the arguments name: the operand (NULL or "-": standard input), or the file. *ret points to the
 * operand or into *b.
 */
MUST_USE il_status il__cli_payload(const struct cli *cli, const char *operand, const char *file,
                                   struct il__buf *b, const char **ret, size_t *ret_bytes,
                                   il_error *reterr);

/*
 * The time between TERM and KILL: `option`, if it was given, else the configuration's. It must fit between the loss of
 * a lease and its end: at most a third of the ttl. A value from the configuration is cut to that, one that was typed is
 * refused. option may be NULL.
 */
MUST_USE il_status il__cli_choose_grace(const struct cli *cli, const struct cli_value *option,
                                        int64_t ttl_ms, int64_t *ret_ms, il_error *reterr);

/*
 * The store of a command that works together with other processes: IL_INVAL for one that lives in this process only.
 * It is not opened yet, but may be made.
 */
MUST_USE il_status il__cli_shared_store(struct cli *cli, il_open_opts *ret_opts,
                                        const char **ret_url, il_error *reterr);

#endif
