/*
 * run_kind.h: what `runs` and `cancel` know about the runs of an app. An app with runs of its own
 * has a file runs.def with a row X(name), and defines il__cli_runs_NAME in one of its cmd_*.c.
 */
#ifndef IL_CLI_RUN_KIND_H
#define IL_CLI_RUN_KIND_H

#include "cli/cli.h"

struct cli_run_kind {
    const char *prefix; /* of its keys: "pipeline:" */
    /* Its routes below /api/v1: GET PATH/ID shows a run, DELETE PATH/ID cancels it. */
    const char *path;
    /* The answer of that GET, from the store and the data store. *ret: json_decref() it. */
    il_status (*load)(struct cli *cli, const il_run_info *run, json_t **ret, il_error *reterr);
    /* Print it for people; returns the exit status. */
    int (*print)(const json_t *run);
};

#define X(name) extern const struct cli_run_kind il__cli_runs_##name;
#include "apps/runs.inc"
#undef X

/* The kind of the runs of a key; NULL: of no app. */
const struct cli_run_kind *il__cli_run_kind(const char *key);

#endif
