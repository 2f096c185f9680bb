/*
 * runner.h: the pipeline runner as the configuration wants it; and calls of a server about pipelines.
 */
#ifndef IL_CLI_RUNNER_H
#define IL_CLI_RUNNER_H

#include "apps/runner/routes.h"
#include "cli/cli.h"

/* What a struct runner_setup points to, as long as it is used. */
struct cli_runner {
    struct runner_setup       setup;
    struct runner_connection *connections;
    char                     *env_text; /* `pipeline_env`, cut into the names that env points to */
    const char              **env;
};

/*
 * From the configuration, which must outlive it; release in any case. IL_OK; IL_INVAL: a connection's URL cannot be found; IL_NOMEM.
 */
MUST_USE il_status il__cli_runner_init(struct cli_runner *r, const struct cli_config *config,
                                       il_error *reterr);
/* Connections and defaults anew, for a server that runs; what was there stays if that fails. */
MUST_USE il_status il__cli_runner_again(struct cli_runner *r, const struct cli_config *config,
                                        il_error *reterr);
void               il__cli_runner_release(struct cli_runner *r);
#define AUTO_CLI_RUNNER AUTO(il__cli_runner_release)

/*
 * A call of the server behind cli->store, path below /api/v1. `body` (may be NULL) is borrowed. IL_OK: *ret is the answer's body (json_decref() it). Else *reterr
 * has what the server said.
 */
MUST_USE il_status il__cli_request(const struct cli *cli, const char *method, const char *path,
                                   const json_t *body, int64_t wait_ms, json_t **ret,
                                   il_error *reterr);
/* A text as one segment of a path, or a value of a query, encoded, behind what is in *b. */
void il__cli_path_add(struct il__buf *b, const char *text);

#endif
