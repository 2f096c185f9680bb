/*
 * cmd_pipeline_run.c: a run of a pipeline, for `interlock runs` and `cancel`. Its view is built in
 * one place (run_view.h): by the server, or here from store and data store. The text output is
 * printed from that JSON, wherever it came from.
 */
#include "apps/runner/run_view.h"
#include "base/arena.h"
#include "base/error.h"
#include "cli/data_store.h"
#include "cli/print_item.h"
#include "cli/run_kind.h"

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

/* ---- from the store -------------------------------------------------------------------------- */

static il_status
load(struct cli *cli, const il_run_info *info, json_t **ret, il_error *reterr)
{
    AUTO_BUF struct il__buf text = { 0 };
    struct il__data        *data = NULL;
    struct runner_run_out   run;
    void                   *mem = NULL;
    il_status               st  = runner_run_show(info, &mem, &run)
                                      ? il__cli_data_open(cli, CLI_DATA_LOOK, &data, reterr)
                                      : il__error_nomem(reterr);

    if (st == IL_OK && data != NULL)
        st = runner_run_history(data, false, &mem, &run, reterr);
    if (st == IL_OK) {
        il__buf_init(&text, (size_t)16 << 20);
        runner_run_print(&text, &run, true);
        *ret = text.failed ? NULL : json_loadb(text.data, text.n_bytes, 0, NULL);
        if (*ret == NULL)
            st = il__error_nomem(reterr);
    }
    il__data_close(data);
    il__arena_free(&mem);
    return st;
}

const struct cli_run_kind il__cli_runs_pipeline = {
    .prefix = PIPELINE_KEY_PREFIX,
    .path   = "/pipelines/runs/",
    .load   = load,
    .print  = print_run,
};
