/*
 * runner.h: options of the pipeline runner from the configuration, and requests to a server about
 * pipelines.
 */
#ifndef IL_CLI_RUNNER_H
#define IL_CLI_RUNNER_H

#include "apps/runner/routes.h"
#include "cli/cli.h"

/* Storage that a struct runner_setup points to while it is used. */
struct cli_runner {
    struct runner_setup       setup;
    struct runner_connection *connections;
    char                     *env_text; /* `pipeline_env`, split into the names in env */
    const char              **env;
};

/* Build from the configuration, which must outlive it; release in any case. IL_OK; IL_INVAL: a
 * connection's URL cannot be found; IL_NOMEM. */
MUST_USE il_status il__cli_runner_init(struct cli_runner *r, const struct cli_config *config,
                                       il_error *reterr);
/* Reload connections and defaults for a running server; on failure the old ones stay. */
MUST_USE il_status il__cli_runner_again(struct cli_runner *r, const struct cli_config *config,
                                        il_error *reterr);
void               il__cli_runner_release(struct cli_runner *r);
#define AUTO_CLI_RUNNER AUTO(il__cli_runner_release)

/*
 * Call the server behind cli->store, path below /api/v1. `body` (may be NULL) is borrowed. IL_OK:
 * *ret is the response body (json_decref() it). Otherwise *reterr has the
 * server's message and details, and the status of its code (of the status table, errors.def or an
 * app).
 */
MUST_USE il_status il__cli_request(const struct cli *cli, const char *method, const char *path,
                                   const json_t *body, int64_t wait_ms, json_t **ret,
                                   il_error *reterr);
/* Append a text to *b, encoded as one segment of a path or a value of a query. */
void il__cli_path_add(struct il__buf *b, const char *text);

#endif
