/*
 * find_id.h: short ids. Ids are UUIDv7, whose first digits are a time and whose last are random, so
 * tables for people show the last 8 digits, and commands accept them.
 */
#ifndef IL_CLI_FIND_ID_H
#define IL_CLI_FIND_ID_H

#include "cli/cli.h"

/* What tables show: the last 8 digits of a UUID; any other id as it is. */
const char *il__cli_short_id(const char *id);

/*
 * Replace *name by the id that it means, in `buf`: 8 hexadecimal digits mean the only id that ends
 * so, among those of the live and of the newest 1,000; with `or_key`, a key means its newest run.
 * An id comes first, then a key, then a short id. A name that means nothing stays as it is: the
 * command that uses it will see.
 *
 * IL_OK, IL_INVAL (it is short for several, which are listed on stderr), or what the store
 * answered.
 */
MUST_USE il_status il__cli_find_run(const struct cli *cli, const char **name, bool or_key,
                                    char buf[IL_ID_BYTES_MAX + 1], il_error *reterr);
MUST_USE il_status il__cli_find_job(const struct cli *cli, const char **name,
                                    char buf[IL_ID_BYTES_MAX + 1], il_error *reterr);

#endif
