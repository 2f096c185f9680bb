/*
 * cmd_queue_cron.c: `interlock queue cron set`, `list` and `remove`: schedules that push jobs.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/apply.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/print_item.h"

/* The choices of --missed are passed on by index. */
_Static_assert(IL_MISSED_SKIP == 0 && IL_MISSED_ONE == 1 && IL_MISSED_ALL == 2,
               "options.def lists skip|one|all in the order of il_missed");

/* The zone is part of the schedule's text: `CRON_TZ=Europe/Berlin 0 6 * * *`. */
static il_status
schedule_text(const struct cli *cli, const char *text, char ret[IL_PLACE_BYTES_MAX + 1],
              il_error *reterr)
{
    const char *zone = CLI_OPTION(cli, queue_cron_set, timezone)->text;
    int         n;

    if (zone == NULL)
        n = snprintf(ret, IL_PLACE_BYTES_MAX + 1, "%s", text);
    else if (strncmp(text, "CRON_TZ=", 8) == 0)
        return il__error_set(reterr, IL_INVAL,
                             "queue cron set: --timezone and CRON_TZ= cannot be combined");
    else
        n = snprintf(ret, IL_PLACE_BYTES_MAX + 1, "CRON_TZ=%s %s", zone, text);
    if (n > IL_PLACE_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL,
                             "queue cron set: the schedule is longer than %d bytes",
                             IL_PLACE_BYTES_MAX);
    return IL_OK;
}

static void
print_set(const struct cli *cli, const il_cron_info *info)
{
    char text[IL__TIME_TEXT_BYTES];

    il__cli_puts(info->name);
    (void)printf(": next tick at %s\n", il__time_text(info->next_at_ms, text));
    if (cli->args.operands[3] == NULL && !CLI_GIVEN(cli, queue_cron_set, file) &&
        info->payload_bytes == 0)
        il__cli_note(cli, "queue cron set: the jobs of this schedule have no payload");
}

int
il__cli_cmd_queue_cron_set(struct cli *cli)
{
    const char *const      *operands = cli->args.operands;
    const char             *file     = CLI_OPTION(cli, queue_cron_set, file)->text;
    int64_t                 missed   = CLI_OPTION(cli, queue_cron_set, missed)->number;
    int64_t                 priority = CLI_OPTION(cli, queue_cron_set, priority)->number;
    int64_t                 attempts = CLI_OPTION(cli, queue_cron_set, max_attempts)->number;
    AUTO_BUF struct il__buf b        = { 0 };
    const char             *data     = NULL;
    char                    schedule[IL_PLACE_BYTES_MAX + 1];
    il_op                   op = {
                          .type    = IL_OP_CRON_SET,
                          .key     = operands[1],
                          .in.cron = { .name         = operands[0],
                                       .schedule     = schedule,
                                       .missed       = (il_missed)missed,
                                       .priority     = (int32_t)priority,
                                       .max_attempts = (uint32_t)attempts },
    };
    il_error  err;
    il_status st     = schedule_text(cli, operands[2], schedule, &err);
    int       status = 0;

    /* Unlike push, it reads standard input only on request: schedules are often typed. */
    if (st == IL_OK && (operands[3] != NULL || file != NULL))
        st = il__cli_payload(cli, operands[3], file, &b, &data, &op.in.cron.data_bytes, &err);
    op.in.cron.data = data;
    if (st == IL_OK)
        st = il__cli_apply(cli, &op, &err);
    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_item(&il__wire_cron, &op.out.crons[0]);
    else
        print_set(cli, &op.out.crons[0]);
    il_op_release(&op);
    return status;
}

static int
print_crons(const il_op *op)
{
    static const char *const headers[] = {
        "NAME", "QUEUE", "SCHEDULE", "MISSED", "NEXT", ">TICKS"
    };
    AUTO_GRID struct cli_grid g = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = 0;
    for (size_t i = 0; i < op->out.n_crons; i++) {
        const il_cron_info *info = &op->out.crons[i];
        char                text[IL__TIME_TEXT_BYTES];
        il__cli_grid_add(&g, "%s", info->name);
        il__cli_grid_add(&g, "%s", info->queue);
        il__cli_grid_add(&g, "%s", info->schedule);
        il__cli_grid_add(&g, "%s", il_missed_name(info->missed));
        il__cli_grid_add(&g, "%s", il__time_text(info->next_at_ms, text));
        il__cli_grid_add(&g, "%" PRIu64, info->n_ticks);
    }
    return il__cli_grid_print(&g);
}

int
il__cli_cmd_queue_cron_list(struct cli *cli)
{
    const char *queue  = cli->args.operands[0];
    const char *cursor = CLI_OPTION(cli, queue_cron_list, cursor)->text;
    int64_t     limit  = CLI_OPTION(cli, queue_cron_list, limit)->number;
    il_op       op     = { .type    = IL_OP_CRON_LIST,
                           .key     = queue,
                           .in.list = { .cursor = cursor, .limit = (uint32_t)limit } };
    il_error    err;
    int         status = 0;
    il_status   st     = queue != NULL ? il__cli_queue_exists(cli, queue, &err) : IL_OK;

    if (st == IL_OK)
        st = il__cli_cursor_error(cli, il__cli_apply(cli, &op, &err), cursor, &err);
    if (st != IL_OK) {
        status = il__cli_fail(&err);
    } else if (cli->json) {
        status = il__cli_print_page(&il__wire_cron, op.out.crons, op.out.n_crons, op.out.next);
    } else if (op.out.n_crons == 0) {
        il__cli_note(cli, "no schedules");
    } else {
        status = print_crons(&op);
        il__cli_note_next(cli, op.out.next);
    }
    il_op_release(&op);
    return status;
}

int
il__cli_cmd_queue_cron_remove(struct cli *cli)
{
    const char *name = cli->args.operands[0];
    il_op       op   = { .type = IL_OP_CRON_REMOVE, .in.cron = { .name = name } };
    il_error    err;
    il_status   st     = il__cli_apply_to(cli, &op, "schedule", name, &err);
    int         status = 0;

    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_json_print(json_pack("{s:o}", "removed", il__cli_json_text(name)));
    il_op_release(&op);
    return status;
}
