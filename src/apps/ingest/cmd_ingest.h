/* cmd_ingest.h: shared by the commands that start and show ingestions. */
#ifndef IL_APPS_INGEST_CMD_INGEST_H
#define IL_APPS_INGEST_CMD_INGEST_H

#include "apps/ingest/routes_run.h"
#include "cli/cli.h"

/* A text of an object; "" if it has none. */
const char *il__cli_ingest_text(const json_t *object, const char *name);
/* The view of a run, from the store and the history; data may be NULL. json_decref() it. */
il_status il__cli_ingest_view(struct il__data *data, const il_run_info *info, json_t **ret,
                              il_error *reterr) MUST_USE;

#endif
