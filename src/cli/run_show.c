/*
 * run_show.c: `interlock runs ID`: shows one run. An app shows its own runs (run_kind.h), from the
 * server's answer or from the store; of any other run, the store's row is all there is.
 */
#include "cli/run_show.h"

#include <inttypes.h>

#include "base/error.h"
#include "cli/apply.h"
#include "cli/print_item.h"
#include "cli/request.h"
#include "cli/run_kind.h"

static const struct cli_run_kind *const kinds[] = {
#define X(name) &il__cli_runs_##name,
#include "apps/runs.inc"
#undef X
    NULL,
};

const struct cli_run_kind *
il__cli_run_kind(const char *key)
{
    for (const struct cli_run_kind *const *kind = kinds; *kind != NULL; kind++) {
        if (strncmp(key, (*kind)->prefix, strlen((*kind)->prefix)) == 0)
            return *kind;
    }
    return NULL;
}

const char *
il__cli_run_note(const il_run_info *info)
{
    return info->cancelled && info->state == IL_RUN_RUNNING ? " (stopping)" : "";
}

const char *
il__cli_run_stage(const il_run_info *info)
{
    return info->error[0] != '\0' ? info->error : info->stage;
}

static il_status
from_server(struct cli *cli, const struct cli_run_kind *kind, const char *id, json_t **ret,
            il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };

    il__buf_init(&path, 1024);
    il__buf_adds(&path, kind->path);
    il__buf_add_url(&path, id);
    return il__cli_request(cli, "GET", il__buf_str(&path), NULL, 0, ret, reterr);
}

/* A run of no app: what the store knows. */
static int
print_plain(const struct cli *cli, const il_run_info *run)
{
    if (cli->json)
        return il__cli_print_item(&il__wire_run, run);
    il__cli_field("run", "%s", run->id);
    il__cli_field("key", "%s", run->key);
    il__cli_field("status", "%s", il_run_state_name(run->state));
    il__cli_field("error", "%s", run->error);
    il__cli_field("stage", "%s", run->stage);
    il__cli_field("holder", "%s", run->holder);
    il__cli_field("trigger", "%s%s%s", run->trigger, run->by[0] != '\0' ? " by " : "", run->by);
    il__cli_field_time("created", run->created_at_ms);
    il__cli_field_time("started", run->started_at_ms);
    il__cli_field_time("ended", run->ended_at_ms);
    if (run->fence != 0)
        il__cli_field("fence", "%" PRIu64, run->fence);
    return 0;
}

bool
il__cli_run_show(struct cli *cli, const char *id, int *ret_exit_status)
{
    il_op    op   = { .type = IL_OP_RUN_GET, .in.run = { .id = id } };
    json_t  *json = NULL;
    il_error err;

    if (strlen(id) > IL_ID_BYTES_MAX)
        return false;
    il_status st = il__cli_apply_to(cli, &op, "run", id, &err);
    if (st == IL_NOT_FOUND || st == IL_INVAL) {
        il_op_release(&op);
        return false;
    }
    const struct cli_run_kind *kind = st == IL_OK ? il__cli_run_kind(op.out.runs[0].key) : NULL;
    if (kind != NULL)
        st = il__cli_is_remote(cli) ? from_server(cli, kind, id, &json, &err)
                                    : kind->load(cli, &op.out.runs[0], &json, &err);
    if (st != IL_OK)
        *ret_exit_status = il__cli_fail(&err);
    else if (kind == NULL)
        *ret_exit_status = print_plain(cli, &op.out.runs[0]);
    else
        *ret_exit_status = cli->json ? il__cli_json_print(json_incref(json)) : kind->print(json);
    json_decref(json);
    il_op_release(&op);
    return true;
}
