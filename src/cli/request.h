/*
 * request.h: requests to the server of --server other than ops: how a command calls the routes of
 * an app.
 */
#ifndef IL_CLI_REQUEST_H
#define IL_CLI_REQUEST_H

#include "cli/cli.h"

/* Does the command work through a server (--server), whatever its store is? */
bool il__cli_is_remote(const struct cli *cli);

/*
 * Call the server behind cli->store (open it first: CLI_STORE, or il__cli_store_open()), path below
 * /api/v1. `body` (may be NULL) is borrowed. IL_OK: *ret is the response body (json_decref() it).
 * Otherwise *reterr has the server's message and details, and the status that belongs to its code
 * (of the status table, errors.def or an app).
 */
MUST_USE il_status il__cli_request(const struct cli *cli, const char *method, const char *path,
                                   const json_t *body, int64_t wait_ms, json_t **ret,
                                   il_error *reterr);

#endif
