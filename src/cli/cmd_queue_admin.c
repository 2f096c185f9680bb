/*
 * cmd_queue_admin.c: `interlock queue pause`, `resume`, `stats` and `set`: queues and their
 * settings.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/apply.h"
#include "cli/page.h"
#include "cli/print_item.h"

/* ---- pause, resume --------------------------------------------------------------------------- */

static int
pause_or_resume(struct cli *cli, il_op *op)
{
    il_error  err;
    il_status st     = il__cli_apply_to(cli, op, "queue", op->key, &err);
    int       status = 0;

    if (st != IL_OK) {
        status = il__cli_fail(&err);
    } else if (cli->json) {
        status = il__cli_print_item(&il__wire_queue, &op->out.queues[0]);
    } else {
        il__cli_puts(op->key);
        (void)printf(" %s\n", op->out.queues[0].paused ? "paused" : "resumed");
    }
    il_op_release(op);
    return status;
}

int
il__cli_cmd_queue_pause(struct cli *cli)
{
    il_op op = { .type   = IL_OP_QUEUE_PAUSE,
                 .key    = cli->args.operands[0],
                 .in.job = { .text = CLI_OPTION(cli, queue_pause, reason)->text } };

    return pause_or_resume(cli, &op);
}

int
il__cli_cmd_queue_resume(struct cli *cli)
{
    il_op op = { .type = IL_OP_QUEUE_PAUSE, .flags = IL_RESUME, .key = cli->args.operands[0] };

    return pause_or_resume(cli, &op);
}

/* ---- stats ----------------------------------------------------------------------------------- */

static int
print_queues(const il_op *op)
{
    static const char *const  headers[] = { "QUEUE",    ">SCHEDULED", ">READY",
                                            ">RUNNING", ">FAILED",    ">OLDEST",
                                            ">WORKERS", ">COMPLETED", "STATE" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = 0;
    for (size_t i = 0; i < op->out.n_queues; i++) {
        const il_queue_info *info = &op->out.queues[i];
        char                 age[CLI_AGE_BYTES];
        il__cli_grid_add(&g, "%s", info->name);
        il__cli_grid_add(&g, "%" PRIu64, info->n_scheduled);
        il__cli_grid_add(&g, "%" PRIu64, info->n_ready);
        il__cli_grid_add(&g, "%" PRIu64, info->n_running);
        il__cli_grid_add(&g, "%" PRIu64, info->n_failed);
        il__cli_grid_add(&g, "%s", info->n_ready > 0 ? il__cli_age(info->oldest_ms, age) : "");
        il__cli_grid_add(&g, "%" PRIu32, info->n_workers);
        il__cli_grid_add(&g, "%" PRIu64, info->completed);
        il__cli_grid_add(&g, "%s", info->paused ? "paused" : "");
    }
    return il__cli_grid_print(&g);
}

/* A setting that may be unlimited. */
static void
field_limit(const char *name, int64_t number)
{
    if (number < 0)
        il__cli_field(name, "none");
    else
        il__cli_field(name, "%" PRId64, number);
}

static void
field_duration(const char *name, int64_t ms)
{
    char text[IL__DURATION_TEXT_BYTES];

    il__cli_field(name, "%s", ms == IL_FOREVER ? "forever" : il__duration_text(ms, text));
}

static void
print_settings(const il_queue_opts *o)
{
    char text[IL__DURATION_TEXT_BYTES];

    il__cli_field("strategy", "%s",
                  il_strategy_name(o->strategy == 1 + IL_STRATEGY_OPTIMISTIC
                                       ? IL_STRATEGY_OPTIMISTIC
                                       : IL_STRATEGY_PESSIMISTIC));
    il__cli_field("max-attempts", "%" PRId32, o->max_attempts);
    field_duration("lease", o->lease_ms);
    field_duration("backoff", o->backoff_ms);
    field_duration("backoff-max", o->backoff_max_ms);
    field_limit("group-limit", o->group_limit);
    if (o->rate_n < 0)
        il__cli_field("rate", "none");
    else
        il__cli_field("rate", "%" PRId32 "/%s", o->rate_n, il__duration_text(o->rate_ms, text));
    field_duration("keep", o->keep_ms);
    field_duration("keep-failed", o->keep_failed_ms);
}

static void
print_queue(const il_queue_info *info)
{
    char age[CLI_AGE_BYTES];

    il__cli_field("queue", "%s", info->name);
    if (info->paused)
        il__cli_field("paused", "%s", info->reason[0] != '\0' ? info->reason : "yes");
    il__cli_field("scheduled", "%" PRIu64, info->n_scheduled);
    il__cli_field("ready", "%" PRIu64, info->n_ready);
    il__cli_field("running", "%" PRIu64, info->n_running);
    il__cli_field("failed", "%" PRIu64, info->n_failed);
    if (info->n_ready > 0)
        il__cli_field("oldest", "%s", il__cli_age(info->oldest_ms, age));
    il__cli_field("workers", "%" PRIu32, info->n_workers);
    il__cli_field("totals",
                  "%" PRIu64 " pushed, %" PRIu64 " claimed, %" PRIu64 " completed, %" PRIu64
                  " failed (%" PRIu64 " failed attempts)",
                  info->pushed, info->claimed, info->completed, info->failed,
                  info->failed_attempts);
    il__cli_field("",
                  "%" PRIu64 " snoozed, %" PRIu64 " cancelled, %" PRIu64 " recovered, %" PRIu64
                  " duplicates, %" PRIu64 " stale",
                  info->snoozed, info->cancelled, info->recovered, info->duplicates, info->stale);
    print_settings(&info->opts);
}

static int
print_stats(struct cli *cli, const il_op *op)
{
    if (cli->json)
        return il__cli_print_page(&il__wire_queue, op->out.queues, op->out.n_queues, op->out.next);
    if (cli->args.operands[0] != NULL) {
        print_queue(&op->out.queues[0]);
        return 0;
    }
    if (op->out.n_queues == 0) {
        il__cli_note(cli, "no queues%s",
                     cli->store_missing ? "; the store does not exist yet" : "");
        return 0;
    }
    int status = print_queues(op);
    il__cli_note_next(cli, op->out.next);
    return status;
}

int
il__cli_cmd_queue_stats(struct cli *cli)
{
    const char *queue  = cli->args.operands[0];
    const char *cursor = CLI_OPTION(cli, queue_stats, cursor)->text;
    uint32_t    limit  = (uint32_t)CLI_OPTION(cli, queue_stats, limit)->number;
    il_op       op     = { .type    = IL_OP_QUEUE_LIST,
                           .in.list = { .prefix = queue,
                                        .cursor = queue == NULL ? cursor : NULL,
                                        .limit  = queue == NULL ? limit : 1 } };
    il_error    err;

    il_status st = queue != NULL ? il__cli_queue_exists(cli, queue, &err) : IL_OK;
    if (st == IL_OK)
        st = il__cli_cursor_error(cli, il__cli_apply(cli, &op, &err), cursor, &err);
    /* Of the names with this prefix, the queue of exactly that name comes first. */
    if (st == IL_OK && queue != NULL) {
        op.out.n_queues = MIN(op.out.n_queues, 1);
        op.out.next     = NULL;
    }
    int status = st == IL_OK ? print_stats(cli, &op) : il__cli_fail(&err);
    il_op_release(&op);
    return status;
}

/* ---- set ------------------------------------------------------------------------------------- */

/* `100/1m`, `5/s`, or `none`. */
static il_status
parse_rate(const char *text, il_queue_opts *o, il_error *reterr)
{
    if (strcmp(text, "none") == 0) {
        o->rate_n = IL_FOREVER;
        return IL_OK;
    }
    if (il__parse_rate(text, &o->rate_n, &o->rate_ms))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL,
                         "queue set: --rate: '%.40s' is not a rate such as 100/1m or 5/s", text);
}

static il_status
parse_group_limit(const char *text, il_queue_opts *o, il_error *reterr)
{
    uint64_t number;

    if (strcmp(text, "none") == 0) {
        o->group_limit = IL_FOREVER;
        return IL_OK;
    }
    if (!il__parse_u64(text, INT32_MAX, &number) || number == 0)
        return il__error_set(
            reterr, IL_INVAL,
            "queue set: --group-limit: '%.40s' is neither a positive number nor `none`", text);
    o->group_limit = (int32_t)number;
    return IL_OK;
}

static il_status
parse_settings(struct cli *cli, il_queue_opts *o, il_error *reterr)
{
    const struct cli_value *rate     = CLI_OPTION(cli, queue_set, rate);
    const struct cli_value *limit    = CLI_OPTION(cli, queue_set, group_limit);
    const struct cli_value *strategy = CLI_OPTION(cli, queue_set, strategy);
    il_status               st       = IL_OK;

    *o = (il_queue_opts){
        .strategy              = strategy->given ? 1 + (int32_t)strategy->number : 0,
        .max_attempts          = (int32_t)CLI_OPTION(cli, queue_set, max_attempts)->number,
        .lease_ms              = CLI_OPTION(cli, queue_set, lease)->number,
        .backoff_ms            = CLI_OPTION(cli, queue_set, backoff)->number,
        .backoff_max_ms        = CLI_OPTION(cli, queue_set, backoff_max)->number,
        .keep_ms               = CLI_OPTION(cli, queue_set, keep)->number,
        .keep_failed_ms        = CLI_OPTION(cli, queue_set, keep_failed)->number,
        .processing_timeout_ms = CLI_OPTION(cli, queue_set, processing_timeout)->number,
        .executing_timeout_ms  = CLI_OPTION(cli, queue_set, executing_timeout)->number,
    };
    if (rate->given)
        st = parse_rate(rate->text, o, reterr);
    if (st == IL_OK && limit->given)
        st = parse_group_limit(limit->text, o, reterr);
    return st;
}

/* The choices of --strategy are passed on by index. */
_Static_assert(IL_STRATEGY_PESSIMISTIC == 0 && IL_STRATEGY_OPTIMISTIC == 1,
               "options.def lists pessimistic|optimistic in the order of il_strategy");

int
il__cli_cmd_queue_set(struct cli *cli)
{
    il_op     op = { .type = IL_OP_QUEUE_SET, .key = cli->args.operands[0] };
    il_error  err;
    il_status st     = parse_settings(cli, &op.in.queue, &err);
    int       status = 0;

    if (st == IL_OK)
        st = il__cli_apply(cli, &op, &err);
    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_item(&il__wire_queue, &op.out.queues[0]);
    else if (!cli->quiet)
        print_settings(&op.out.queues[0].opts);
    il_op_release(&op);
    return status;
}
