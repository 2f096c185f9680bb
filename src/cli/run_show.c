/*
 * run_show.c: `interlock runs ID`: shows one run. The view of a pipeline run is built in one place
 * (apps/runner/run_view.h): by the server, or here from store and data store. The text output is
 * printed from that JSON, wherever it came from.
 */
#include "cli/run_show.h"

#include <inttypes.h>

#include "apps/runner/run_view.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "cli/ask.h"
#include "cli/data.h"
#include "cli/item.h"
#include "cli/runner.h"

/* ---- from JSON, for people ------------------------------------------------------------------- */

static const char *
text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

static const char *
took(const json_t *object, char out[CLI_AGE_BYTES])
{
    const json_t *ms = json_object_get(object, "duration_ms");

    return json_is_integer(ms) ? il__cli_age(json_integer_value(ms), out) : "";
}

static int
print_steps(const json_t *steps)
{
    static const char *const  headers[] = { "STEP",     "TYPE",  "STATUS", ">LEVEL",
                                            ">ATTEMPT", ">TOOK", ">EXIT",  "ERROR" };
    AUTO_GRID struct cli_grid g         = { 0 };
    size_t                    i;
    const json_t             *step;

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ARRAY_LEN(headers) - 1;
    json_array_foreach(steps, i, step)
    {
        const json_t *exit_code = json_object_get(step, "exit_code");
        char          age[CLI_AGE_BYTES];
        il__cli_grid_add(&g, "%s", text_of(step, "step_id"));
        il__cli_grid_add(&g, "%s", text_of(step, "type"));
        il__cli_grid_add(&g, "%s", text_of(step, "status"));
        il__cli_grid_add(&g, "%lld", (long long)json_integer_value(json_object_get(step, "level")));
        il__cli_grid_add(&g, "%lld",
                         (long long)json_integer_value(json_object_get(step, "attempt")));
        il__cli_grid_add(&g, "%s", took(step, age));
        if (json_is_integer(exit_code))
            il__cli_grid_add(&g, "%lld", (long long)json_integer_value(exit_code));
        else
            il__cli_grid_add(&g, "%s", "");
        il__cli_grid_add(&g, "%s", text_of(step, "error_message"));
    }
    return il__cli_grid_print(&g);
}

static void
print_joined(const json_t *joined)
{
    size_t        i;
    const json_t *join;

    json_array_foreach(joined, i, join)
    {
        il__cli_field("joined", "%s%s%s (%s)", text_of(join, "at"),
                      text_of(join, "trigger_by")[0] != '\0' ? " by " : "",
                      text_of(join, "trigger_by"), text_of(join, "trigger_type"));
    }
}

static int
print_run(const json_t *run)
{
    const json_t *renewals = json_object_get(run, "renewals");
    const json_t *fence    = json_object_get(run, "fence");
    const json_t *steps    = json_object_get(run, "steps");
    char          age[CLI_AGE_BYTES];

    il__cli_field("run", "%s", text_of(run, "pipeline_logging_id"));
    il__cli_field("pipeline", "%s/%s%s%s", text_of(run, "tenant_id"), text_of(run, "pipeline_id"),
                  text_of(run, "version")[0] != '\0' ? ", version " : "", text_of(run, "version"));
    il__cli_field("status", "%s%s", text_of(run, "status"),
                  json_is_true(json_object_get(run, "cancelling")) ? " (stopping)" : "");
    il__cli_field("error", "%s", text_of(run, "error_message"));
    il__cli_field("stage", "%s", text_of(run, "stage"));
    if (json_is_integer(json_object_get(run, "progress")))
        il__cli_field("progress", "%lld %%",
                      (long long)json_integer_value(json_object_get(run, "progress")));
    il__cli_field("triggered", "%s%s%s (%s)", text_of(run, "created_at"),
                  text_of(run, "trigger_by")[0] != '\0' ? " by " : "", text_of(run, "trigger_by"),
                  text_of(run, "trigger_type"));
    print_joined(json_object_get(run, "joined"));
    il__cli_field("started", "%s", text_of(run, "start_time"));
    il__cli_field("ended", "%s", text_of(run, "end_time"));
    il__cli_field("took", "%s", took(run, age));
    il__cli_field("node", "%s", text_of(run, "node"));
    if (json_is_integer(fence))
        il__cli_field("fence", "%lld", (long long)json_integer_value(fence));
    if (json_integer_value(renewals) > 0)
        il__cli_field("lease", "renewed %lld times, last at %s",
                      (long long)json_integer_value(renewals), text_of(run, "renewed_at"));
    if (json_array_size(steps) == 0)
        return 0;
    (void)printf("\n");
    return print_steps(steps);
}

/* ---- sources --------------------------------------------------------------------------------- */

static il_status
from_server(struct cli *cli, const char *id, json_t **ret, il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };

    il__buf_init(&path, 1024);
    il__buf_adds(&path, "/pipelines/runs/");
    il__cli_path_add(&path, id);
    return il__cli_request(cli, "GET", il__buf_str(&path), NULL, 0, ret, reterr);
}

static il_status
from_store(struct cli *cli, const il_run_info *info, json_t **ret, il_error *reterr)
{
    AUTO_BUF struct il__buf text = { 0 };
    struct il__data        *data = NULL;
    struct runner_run_out   run;
    void                   *mem = NULL;
    il_status               st  = runner_run_show(info, &mem, &run)
                                      ? il__cli_data_open(cli, CLI_DATA_LOOK, &data, reterr)
                                      : il__error_set(reterr, IL_NOMEM, "out of memory");

    if (st == IL_OK && data != NULL)
        st = runner_run_history(data, false, &mem, &run, reterr);
    if (st == IL_OK) {
        il__buf_init(&text, (size_t)16 << 20);
        runner_run_print(&text, &run, true);
        *ret = text.failed ? NULL : json_loadb(text.data, text.n_bytes, 0, NULL);
        if (*ret == NULL)
            st = il__error_set(reterr, IL_NOMEM, "out of memory");
    }
    il__data_close(data);
    il__arena_free(&mem);
    return st;
}

/* A run outside any pipeline: what the store knows. */
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
    bool plain = st == IL_OK && runner_pipeline_of_key(op.out.runs[0].key) == NULL;
    if (st == IL_OK && !plain)
        st = il__cli_store_is_server(CLI_SETTING(cli, store)->text)
                 ? from_server(cli, id, &json, &err)
                 : from_store(cli, &op.out.runs[0], &json, &err);
    if (st != IL_OK)
        *ret_exit_status = il__cli_fail(&err);
    else if (plain)
        *ret_exit_status = print_plain(cli, &op.out.runs[0]);
    else
        *ret_exit_status = cli->json ? il__cli_json_print(json_incref(json)) : print_run(json);
    json_decref(json);
    il_op_release(&op);
    return true;
}
