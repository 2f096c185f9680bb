/*
 * cmd_ingest_show.c: an ingestion for `interlock runs`, `cancel` and `ingest status`. Its view is
 * built in one place (run_view.c): by the server, or here from store and data store. The text
 * output is printed from that JSON, wherever it came from.
 */
#include "apps/ingest/cmd_ingest.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/apply.h"
#include "cli/data_store.h"
#include "cli/find_id.h"
#include "cli/print_item.h"
#include "cli/request.h"
#include "cli/run_kind.h"
#include "cli/run_show.h"

const char *
il__cli_ingest_text(const json_t *object, const char *name)
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

/* "laps 5 inserted, 2 removed; races 1 updated" */
static void
rows_text(const json_t *rows, struct il__buf *out)
{
    static const char *const kinds[] = { "inserted", "updated", "removed" };
    const char              *table;
    json_t                  *counts;

    il__buf_init(out, 1024);
    json_object_foreach((json_t *)(uintptr_t)rows, table, counts)
    {
        bool first = true;
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            json_int_t n = json_integer_value(json_object_get(counts, kinds[i]));
            if (n == 0)
                continue;
            if (first)
                il__buf_addf(out, "%s%s", out->n_bytes > 0 ? "; " : "", table);
            il__buf_addf(out, "%s %lld %s", first ? "" : ",", (long long)n, kinds[i]);
            first = false;
        }
    }
}

static int
print_stages(const json_t *stages)
{
    static const char *const  headers[] = { "STAGE", "STATUS", ">TOOK", "ROWS" };
    AUTO_GRID struct cli_grid g         = { 0 };
    size_t                    i;
    const json_t             *stage;

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ARRAY_LEN(headers) - 1;
    json_array_foreach(stages, i, stage)
    {
        AUTO_BUF struct il__buf rows = { 0 };
        char                    age[CLI_AGE_BYTES];
        rows_text(json_object_get(stage, "rows"), &rows);
        il__cli_grid_add(&g, "%s", il__cli_ingest_text(stage, "stage"));
        il__cli_grid_add(&g, "%s", il__cli_ingest_text(stage, "status"));
        il__cli_grid_add(&g, "%s", took(stage, age));
        il__cli_grid_add(&g, "%s", il__buf_str(&rows));
    }
    return il__cli_grid_print(&g);
}

static void
print_progress(const json_t *run)
{
    const json_t *progress = json_object_get(run, "progress");
    const json_t *percent  = json_object_get(progress, "percent");
    const json_t *total    = json_object_get(progress, "total");

    if (json_is_integer(total))
        il__cli_field("progress", "%lld %%, %lld of %lld", (long long)json_integer_value(percent),
                      (long long)json_integer_value(json_object_get(progress, "done")),
                      (long long)json_integer_value(total));
    else if (json_is_integer(percent))
        il__cli_field("progress", "%lld %%", (long long)json_integer_value(percent));
}

static int
print_run(const json_t *run)
{
    const json_t *error  = json_object_get(run, "error");
    const json_t *result = json_object_get(run, "result");
    const json_t *stages = json_object_get(run, "timeline");
    char          age[CLI_AGE_BYTES];

    il__cli_field("job", "%s", il__cli_ingest_text(run, "job_id"));
    il__cli_field("ingestion", "%s %s%s%s", il__cli_ingest_text(run, "kind"),
                  il__cli_ingest_text(run, "source_event_id"),
                  il__cli_ingest_text(run, "track_slug")[0] != '\0' ? " at " : "",
                  il__cli_ingest_text(run, "track_slug"));
    il__cli_field("event", "%s", il__cli_ingest_text(run, "event_id"));
    il__cli_field("status", "%s%s", il__cli_ingest_text(run, "status"),
                  json_is_true(json_object_get(run, "cancelling")) ? " (stopping)" : "");
    if (json_is_object(error))
        il__cli_field("error", "%s: %s", il__cli_ingest_text(error, "code"),
                      il__cli_ingest_text(error, "message"));
    il__cli_field("result", "%s", il__cli_ingest_text(result, "status"));
    il__cli_field("stage", "%s", il__cli_ingest_text(run, "stage"));
    print_progress(run);
    il__cli_field("triggered", "%s%s%s (%s)", il__cli_ingest_text(run, "created_at"),
                  il__cli_ingest_text(run, "trigger_by")[0] != '\0' ? " by " : "",
                  il__cli_ingest_text(run, "trigger_by"), il__cli_ingest_text(run, "trigger_type"));
    il__cli_field("started", "%s", il__cli_ingest_text(run, "started_at"));
    il__cli_field("ended", "%s", il__cli_ingest_text(run, "ended_at"));
    il__cli_field("took", "%s", took(run, age));
    if (json_array_size(stages) == 0)
        return 0;
    (void)printf("\n");
    return print_stages(stages);
}

/* ---- from the store -------------------------------------------------------------------------- */

il_status
il__cli_ingest_view(struct il__data *data, const il_run_info *info, json_t **ret, il_error *reterr)
{
    struct ingest_run_out run;
    void                 *mem = NULL;
    il_status st = il__ingest_run_show(info, &mem, &run) ? IL_OK : il__error_nomem(reterr);

    if (st == IL_OK && data != NULL)
        st = il__ingest_run_history(data, info, &mem, &run, reterr);
    if (st == IL_OK && (*ret = il__cli_item_json(&il__ingest_run_out, &run)) == NULL)
        st = il__error_nomem(reterr);
    il__arena_free(&mem);
    return st;
}

static il_status
load(struct cli *cli, const il_run_info *info, json_t **ret, il_error *reterr)
{
    struct il__data *data = NULL;
    il_status        st   = il__cli_data_open(cli, CLI_DATA_LOOK, &data, reterr);

    if (st == IL_OK)
        st = il__cli_ingest_view(data, info, ret, reterr);
    il__data_close(data);
    return st;
}

const struct cli_run_kind il__cli_runs_ingest = {
    .prefix = INGEST_PREFIX,
    .path   = "/ingestion/status/",
    .load   = load,
    .print  = print_run,
};

/* ---- ingest status --------------------------------------------------------------------------- */

static int
print_list(const il_op *op)
{
    static const char *const  headers[] = { "JOB", "INGESTION", "STATE", ">AGE", "STAGE OR ERROR" };
    AUTO_GRID struct cli_grid g         = { 0 };
    int64_t                   now_ms    = il__clock_wall_ms();

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ARRAY_LEN(headers) - 1;
    for (size_t i = 0; i < op->out.n_runs; i++) {
        const il_run_info *run = &op->out.runs[i];
        char               age[CLI_AGE_BYTES];
        il__cli_grid_add(&g, "%s", il__cli_short_id(run->id));
        il__cli_grid_add(&g, "%s", run->key + strlen(INGEST_PREFIX));
        il__cli_grid_add(&g, "%s", il_run_state_name(run->state));
        il__cli_grid_add(&g, "%s", il__cli_age(now_ms - run->created_at_ms, age));
        il__cli_grid_add(&g, "%s", run->error[0] != '\0' ? run->error : run->stage);
    }
    return il__cli_grid_print(&g);
}

int
il__cli_cmd_ingest_status(struct cli *cli)
{
    il_op    op     = { .type = IL_OP_RUN_LIST };
    il_error err    = { .message = "" };
    int      status = 0;

    if (cli->args.n_operands == 1) {
        const char *id = cli->args.operands[0];
        char        found[IL_ID_BYTES_MAX + 1];
        if (il__cli_find_run(cli, &id, false, found, &err) != IL_OK)
            return il__cli_fail(&err);
        if (il__cli_run_show(cli, id, &status))
            return status;
        il__cli_error("ingest status: no such ingestion: '%.80s'", cli->args.operands[0]);
        return il_status_exit(IL_NOT_FOUND);
    }
    op.in.list.prefix = INGEST_PREFIX;
    op.in.list.limit  = (uint32_t)CLI_OPTION(cli, ingest_status, limit)->number;
    if (!CLI_GIVEN(cli, ingest_status, all))
        op.in.list.states = 1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING;
    if (il__cli_apply(cli, &op, &err) != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_page(&il__wire_run, op.out.runs, op.out.n_runs, op.out.next);
    else if (op.out.n_runs == 0)
        il__cli_note(cli, "no ingestion is running");
    else
        status = print_list(&op);
    il_op_release(&op);
    return status;
}
