/* break.h: breaks the leases of a key (cmd_break.c). */
#ifndef IL_CLI_BREAK_H
#define IL_CLI_BREAK_H

#include "cli/cli.h"

#define CLI_BREAK_NOTE "the key becomes free when the holder releases it or its lease expires"

struct cli_breaker {
    struct cli    *cli;
    const char    *key;
    const char    *reason;
    uint32_t       flags; /* IL_BREAK_NOW or 0 */
    uint64_t       only;  /* the fence to break; 0 = all */
    json_t        *items; /* --json: what was broken; NULL = added to `text` */
    struct il__buf text;  /* a line per lease, escaped; the caller releases it */
    uint64_t       done;  /* leases with fences up to this one have been dealt with */
    size_t         n_broken;
};

/* Break them, and audit it. IL_OK, or with a message: IL_NOT_HELD if none was held, and others. */
MUST_USE il_status il__cli_break(struct cli_breaker *b, il_error *reterr);

#endif
