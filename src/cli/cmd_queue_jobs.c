/*
 * cmd_queue_jobs.c: `interlock queue list`, `show`, `retry`, `cancel`, `seal` and `purge`: existing
 * jobs.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/apply.h"
#include "cli/audit.h"
#include "cli/find_id.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/print_item.h"

#define ERROR_COLUMN 6 /* may be truncated on a narrow terminal */
#define RETRY_JOBS 100 /* in one batch */

/* ---- list ------------------------------------------------------------------------------------ */

static int
print_jobs(const il_op *op)
{
    static const char *const  headers[] = { "ID",   "STATE",     ">ATTEMPT",        ">PRIORITY",
                                            ">AGE", ">PROGRESS", "ERROR OR MESSAGE" };
    AUTO_GRID struct cli_grid g         = { 0 };
    int64_t                   now_ms    = il__clock_wall_ms();

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ERROR_COLUMN;
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        const il_job_info *info = &op->out.jobs[i];
        char               age[CLI_AGE_BYTES];
        il__cli_grid_add(&g, "%s", il__cli_short_id(info->id));
        il__cli_grid_add(&g, "%s%s", il_job_state_name(info->state),
                         info->is_parent ? " (parent)" : "");
        il__cli_grid_add(&g, "%" PRIu32 "/%" PRIu32, info->attempt, info->max_attempts);
        il__cli_grid_add(&g, "%" PRId32, info->priority);
        il__cli_grid_add(&g, "%s", il__cli_age(now_ms - info->created_at_ms, age));
        if (info->progress >= 0)
            il__cli_grid_add(&g, "%" PRId32 "%%", info->progress);
        else
            il__cli_grid_add(&g, "%s", "");
        il__cli_grid_add(&g, "%s", info->error[0] != '\0' ? info->error : info->message);
    }
    return il__cli_grid_print(&g);
}

int
il__cli_cmd_queue_list(struct cli *cli)
{
    const char *queue  = cli->args.operands[0];
    const char *cursor = CLI_OPTION(cli, queue_list, cursor)->text;
    int64_t     limit  = CLI_OPTION(cli, queue_list, limit)->number;
    il_op       op     = { .type    = IL_OP_JOB_LIST,
                           .key     = queue,
                           .in.list = { .cursor = cursor, .limit = (uint32_t)limit } };
    il_error    err;
    int         status;

    il_status st =
        il__cli_job_states(cli, CLI_OPTION(cli, queue_list, state)->text, &op.in.list.states, &err);
    if (st == IL_OK)
        st = il__cli_queue_exists(cli, queue, &err);
    if (st == IL_OK)
        st = il__cli_cursor_error(cli, il__cli_apply(cli, &op, &err), cursor, &err);
    if (st != IL_OK) {
        status = il__cli_fail(&err);
    } else if (cli->json) {
        status = il__cli_print_page(&il__wire_job, op.out.jobs, op.out.n_jobs, op.out.next);
    } else {
        if (op.out.n_jobs == 0)
            il__cli_note(cli, "no matching jobs in %s", queue);
        status = op.out.n_jobs > 0 ? print_jobs(&op) : 0;
        il__cli_note_next(cli, op.out.next);
    }
    il_op_release(&op);
    return status;
}

/* ---- show ------------------------------------------------------------------------------------ */

static void
print_blob(const char *name, const void *data, size_t n_bytes)
{
    if (data == NULL || n_bytes == 0)
        return;
    (void)printf("%s (%zu byte%s)\n", name, n_bytes, n_bytes == 1 ? "" : "s");
    il__cli_put_bytes(data, n_bytes);
    if (((const char *)data)[n_bytes - 1] != '\n')
        (void)putchar('\n');
}

static void
print_job(const il_job_info *info)
{
    il__cli_field("id", "%s", info->id);
    il__cli_field("queue", "%s", info->queue);
    il__cli_field("state", "%s%s", il_job_state_name(info->state),
                  info->cancelled && info->state == IL_JOB_RUNNING ? " (asked to stop)" : "");
    il__cli_field("attempt", "%" PRIu32 " of %" PRIu32, info->attempt, info->max_attempts);
    il__cli_field("priority", "%" PRId32, info->priority);
    il__cli_field("group", "%s", info->group);
    il__cli_field("unique-key", "%s", info->unique_key);
    il__cli_field("parent", "%s", info->parent);
    if (info->is_parent)
        il__cli_field("children", "%" PRIu32 ", %" PRIu32 " completed, %" PRIu32 " failed",
                      info->n_children, info->n_children_completed, info->n_children_failed);
    il__cli_field("worker", "%s", info->worker);
    if (info->progress >= 0)
        il__cli_field("progress", "%" PRId32 "%%", info->progress);
    il__cli_field("message", "%s", info->message);
    il__cli_field_time("created", info->created_at_ms);
    il__cli_field_time("not before", info->run_at_ms);
    il__cli_field_time("started", info->started_at_ms);
    il__cli_field_time("completed", info->completed_at_ms);
    il__cli_field_time("updated", info->updated_at_ms);
    if (info->error[0] != '\0')
        print_blob("error", info->error, strlen(info->error));
    print_blob("payload", info->payload, info->payload_bytes);
    print_blob("result", info->result, info->result_bytes);
}

int
il__cli_cmd_queue_show(struct cli *cli)
{
    const char *id = cli->args.operands[0];
    il_op       op = { .type = IL_OP_JOB_GET };
    char        found[IL_ID_BYTES_MAX + 1];
    il_error    err;
    il_status   st     = il__cli_find_job(cli, &id, found, &err);
    int         status = 0;

    op.in.job = (il_job_in){ .id = id };
    if (st == IL_OK)
        st = il__cli_apply_to(cli, &op, "job", id, &err);

    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_item(&il__wire_job, &op.out.jobs[0]);
    else
        print_job(&op.out.jobs[0]);
    il_op_release(&op);
    return status;
}

/* ---- retry, cancel, seal --------------------------------------------------------------------- */

/* Apply an op on one job and print the result. */
static int
change(struct cli *cli, il_op *op)
{
    char      found[IL_ID_BYTES_MAX + 1];
    il_error  err;
    il_status st     = il__cli_find_job(cli, &op->in.job.id, found, &err);
    int       status = 0;

    if (st == IL_OK)
        st = il__cli_apply_to(cli, op, "job", op->in.job.id, &err);
    while (st == IL_OK && (op->out.flags & IL_OUT_MORE) != 0) /* the next children of a parent */
        st = il__cli_apply_more(cli, op, &err);
    if (st == IL_DUPLICATE) /* the result is the other job */
        st = il__error_set(&err, IL_STATE, "%s: unique key of job %.80s is in use by job %s",
                           cli->command->name, op->in.job.id, op->out.jobs[0].id);
    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_item(&il__wire_job, &op->out.jobs[0]);
    else
        (void)printf("%s %s\n", op->out.jobs[0].id, il_job_state_name(op->out.jobs[0].state));
    il_op_release(op);
    return status;
}

struct retrying {
    size_t n_jobs;
    size_t n_duplicates; /* their unique key has been taken meanwhile */
};

/* Retry the jobs of a page in one batch. Jobs retried or purged meanwhile are skipped. */
static il_status
retry_page(struct cli *cli, const il_op *page, struct retrying *r, il_error *reterr)
{
    size_t           n   = page->out.n_jobs;
    AUTO_FREE il_op *ops = il__calloc(MAX(n, 1), sizeof *ops);

    if (ops == NULL)
        return il__error_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        ops[i].type      = IL_OP_JOB_RETRY;
        ops[i].in.job.id = page->out.jobs[i].id;
    }
    il_status st = n > 0 ? il_apply(cli->store, ops, n, reterr) : IL_OK;
    il__cli_audit_ops(cli, ops, n, st);
    for (size_t i = 0; i < n; i++) {
        r->n_jobs += st == IL_OK && ops[i].status == IL_OK;
        r->n_duplicates += st == IL_OK && ops[i].status == IL_DUPLICATE;
        il_op_release(&ops[i]);
    }
    return st;
}

static il_status
retry_failed(struct cli *cli, const char *queue, struct retrying *r, il_error *reterr)
{
    il_op page   = { .type    = IL_OP_JOB_LIST,
                     .key     = queue,
                     .in.list = { .limit = RETRY_JOBS, .states = 1U << IL_JOB_FAILED } };
    char *cursor = NULL;

    for (;;) {
        page.in.list.cursor = cursor;
        il_status st        = il__cli_apply(cli, &page, reterr);
        if (st == IL_OK)
            st = retry_page(cli, &page, r, reterr);
        il__free(cursor);
        bool more = st == IL_OK && page.out.next != NULL;
        cursor    = more ? il__strdup(page.out.next) : NULL;
        il_op_release(&page);
        if (more && cursor == NULL)
            return il__error_nomem(reterr);
        if (!more)
            return st;
    }
}

static int
retry_all_failed(struct cli *cli)
{
    const char     *queue = cli->args.operands[0];
    struct retrying r     = { 0 };
    il_error        err;
    il_status       st = il__cli_queue_exists(cli, queue, &err);

    if (st == IL_OK)
        st = retry_failed(cli, queue, &r, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_json_print(json_pack("{s:I, s:I}", "retried", (json_int_t)r.n_jobs,
                                            "duplicates", (json_int_t)r.n_duplicates));
    (void)printf("%zu job%s due now\n", r.n_jobs, r.n_jobs == 1 ? "" : "s");
    if (r.n_duplicates > 0)
        il__cli_note(cli, "queue retry: %zu not retried because their unique keys are in use",
                     r.n_duplicates);
    return 0;
}

int
il__cli_cmd_queue_retry(struct cli *cli)
{
    il_op op = { .type = IL_OP_JOB_RETRY, .in.job = { .id = cli->args.operands[0] } };

    return CLI_GIVEN(cli, queue_retry, all_failed) ? retry_all_failed(cli) : change(cli, &op);
}

int
il__cli_cmd_queue_cancel(struct cli *cli)
{
    const struct cli_value *reason = CLI_OPTION(cli, queue_cancel, reason);
    const char             *text   = reason->given ? reason->text : "cancelled";
    bool                    now    = CLI_GIVEN(cli, queue_cancel, now);
    il_op                   op     = { .type   = IL_OP_JOB_CANCEL,
                                       .flags  = now ? IL_CANCEL_NOW : 0,
                                       .in.job = { .id = cli->args.operands[0], .text = text } };

    return change(cli, &op);
}

int
il__cli_cmd_queue_seal(struct cli *cli)
{
    il_op op = { .type = IL_OP_JOB_SEAL, .in.job = { .id = cli->args.operands[0] } };

    return change(cli, &op);
}

/* ---- purge ----------------------------------------------------------------------------------- */

/* Repeat a bounded op until nothing is left. */
static il_status
purge(struct cli *cli, il_op *op, uint64_t *ret_n, il_error *reterr)
{
    il_status st = il__cli_apply(cli, op, reterr);

    *ret_n = op->out.sweep.n_purged;
    while (st == IL_OK && (op->out.flags & IL_OUT_MORE) != 0) {
        st = il__cli_apply_more(cli, op, reterr);
        *ret_n += op->out.sweep.n_purged;
    }
    il_op_release(op);
    return st;
}

int
il__cli_cmd_queue_purge(struct cli *cli)
{
    const char *queue = cli->args.operands[0];
    il_op       op    = { .type    = IL_OP_JOB_PURGE,
                          .key     = queue,
                          .in.list = { .older_ms = CLI_OPTION(cli, queue_purge, older)->number } };
    il_error    err;
    uint64_t    n;

    il_status st = il__cli_job_states(cli, CLI_OPTION(cli, queue_purge, state)->text,
                                      &op.in.list.states, &err);
    if (st == IL_OK)
        st = il__cli_queue_exists(cli, queue, &err);
    if (st == IL_OK)
        st = purge(cli, &op, &n, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_json_print(json_pack("{s:I}", "purged", (json_int_t)n));
    (void)printf("%" PRIu64 " job%s deleted\n", n, n == 1 ? "" : "s");
    return 0;
}
