/*
 * input.h: reads what a command is given: payloads, lists of states, the grace time.
 */
#ifndef IL_CLI_INPUT_H
#define IL_CLI_INPUT_H

#include "cli/cli.h"

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

/* The payload named by the arguments: the operand (NULL or "-": standard input), or the file. *ret
 * points to the operand or into *b. */
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

#endif
