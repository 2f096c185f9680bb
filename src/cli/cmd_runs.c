/*
 * cmd_runs.c: `interlock runs`, `logs` and `cancel`: recorded runs.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/apply.h"
#include "cli/find_id.h"
#include "cli/follow.h"
#include "cli/input.h"
#include "cli/page.h"
#include "cli/print_item.h"
#include "cli/request.h"
#include "cli/run_kind.h"
#include "cli/run_show.h"

#define ERROR_COLUMN 6 /* may be truncated on a narrow terminal */

/* ---- runs ------------------------------------------------------------------------------------ */

static int
print_runs(const il_op *op)
{
    static const char *const  headers[] = { "ID",   "KEY",    "STATE",         ">AGE",
                                            ">RAN", ">FENCE", "STAGE OR ERROR" };
    AUTO_GRID struct cli_grid g         = { 0 };
    int64_t                   now_ms    = il__clock_wall_ms();

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = ERROR_COLUMN;
    for (size_t i = 0; i < op->out.n_runs; i++) {
        const il_run_info *info   = &op->out.runs[i];
        int64_t            end_ms = info->ended_at_ms != 0 ? info->ended_at_ms : now_ms;
        char               age[CLI_AGE_BYTES];
        il__cli_grid_add(&g, "%s", il__cli_short_id(info->id));
        il__cli_grid_add(&g, "%s", info->key);
        il__cli_grid_add(&g, "%s%s", il_run_state_name(info->state), il__cli_run_note(info));
        il__cli_grid_add(&g, "%s", il__cli_age(now_ms - info->created_at_ms, age));
        il__cli_grid_add(&g, "%s",
                         info->started_at_ms != 0 ? il__cli_age(end_ms - info->started_at_ms, age)
                                                  : "");
        if (info->fence != 0)
            il__cli_grid_add(&g, "%" PRIu64, info->fence);
        else
            il__cli_grid_add(&g, "%s", "");
        il__cli_grid_add(&g, "%s", il__cli_run_stage(info));
    }
    return il__cli_grid_print(&g);
}

static il_status
list(struct cli *cli, il_op *op, il_error *reterr)
{
    const char *key    = CLI_OPTION(cli, runs, key)->text;
    const char *prefix = cli->args.operands[0];
    const char *cursor = CLI_OPTION(cli, runs, cursor)->text;

    if (key != NULL && prefix != NULL)
        return il__error_set(reterr, IL_INVAL, "runs: --key and a prefix cannot be combined");
    op->type           = IL_OP_RUN_LIST;
    op->key            = key;
    op->in.list.prefix = prefix;
    op->in.list.cursor = cursor;
    op->in.list.limit  = (uint32_t)CLI_OPTION(cli, runs, limit)->number;
    il_status st =
        il__cli_run_states(cli, CLI_OPTION(cli, runs, state)->text, &op->in.list.states, reterr);
    if (st == IL_OK && key != NULL)
        st = il__cli_check_key(cli, key, reterr);
    if (st == IL_OK && prefix != NULL && prefix[0] != '\0')
        st = il__cli_check_key(cli, prefix, reterr);
    if (st != IL_OK)
        return st;
    return il__cli_cursor_error(cli, il__cli_apply(cli, op, reterr), cursor, reterr);
}

/* Was a name given that does not exist? A listing filtered by --state or --cursor may just be
 * empty. */
static bool
is_unknown(const struct cli *cli, const il_op *op)
{
#ifdef IL_MUTANT_unknown_run_is_listed
    return false;
#endif
    return cli->args.n_operands == 1 && cli->args.operands[0][0] != '\0' && op->out.n_runs == 0 &&
           !CLI_GIVEN(cli, runs, state) && !CLI_GIVEN(cli, runs, cursor);
}

/* `runs RUN`, `runs KEY`: show one run, unless the options are those of a listing. */
static bool
show_one(struct cli *cli, int *ret_exit_status)
{
    const char *id = cli->args.operands[0];
    char        found[IL_ID_BYTES_MAX + 1];
    il_error    err;
    bool        listing = CLI_GIVEN(cli, runs, key) || CLI_GIVEN(cli, runs, state) ||
                   CLI_GIVEN(cli, runs, limit) || CLI_GIVEN(cli, runs, cursor);

    if (cli->args.n_operands != 1 || listing)
        return false;
    if (il__cli_find_run(cli, &id, true, found, &err) != IL_OK) {
        *ret_exit_status = il__cli_fail(&err);
        return true;
    }
    return il__cli_run_show(cli, id, ret_exit_status);
}

int
il__cli_cmd_runs(struct cli *cli)
{
    il_op    op = { .type = IL_OP_NONE };
    il_error err;
    int      status = 0;

    if (show_one(cli, &status))
        return status;
    if (list(cli, &op, &err) != IL_OK) {
        status = il__cli_fail(&err);
    } else if (is_unknown(cli, &op)) {
        (void)il__error_set(&err, IL_NOT_FOUND,
                            "runs: no such run: '%.80s', and no runs with that key prefix",
                            cli->args.operands[0]);
        status = il__cli_fail(&err);
    } else if (cli->json) {
        status = il__cli_print_page(&il__wire_run, op.out.runs, op.out.n_runs, op.out.next);
    } else if (op.out.n_runs == 0) {
        il__cli_note(cli, "no matching runs%s",
                     cli->store_missing ? "; the store does not exist yet" : "");
    } else {
        status = print_runs(&op);
        il__cli_note_next(cli, op.out.next);
    }
    il_op_release(&op);
    return status;
}

/* ---- logs ------------------------------------------------------------------------------------ */

struct logs {
    struct cli *cli;
    const char *id;
    uint64_t    offset; /* output up to here has been handled */
    bool        ended;  /* the run has ended; all its output is there */
};

static il_status
look_at_run(struct logs *l, il_error *reterr)
{
    il_op     op = { .type = IL_OP_RUN_GET, .in.run = { .id = l->id } };
    il_status st = il__cli_apply_to(l->cli, &op, "run", l->id, reterr);

    if (st == IL_OK && op.out.n_runs > 0)
        l->ended = op.out.runs[0].state != IL_RUN_PENDING && op.out.runs[0].state != IL_RUN_RUNNING;
    il_op_release(&op);
    return st;
}

/* Only the tail is kept: say what is missing before it. */
static void
note_gap(struct logs *l, const il_op *op)
{
    if (op->out.value_bytes > 0 && op->out.offset > l->offset)
        il__cli_note(l->cli, "logs: the first %" PRIu64 " bytes were discarded",
                     op->out.offset - l->offset);
}

/* Print what is available; *op, the last lookup, is used to wait. */
static il_status
print_log(struct logs *l, il_op *op, il_error *reterr)
{
    for (;;) {
        op->in.run.offset = l->offset;
        il_status st      = il__cli_apply_to(l->cli, op, "run", l->id, reterr);
        if (st != IL_OK || op->out.value_bytes == 0)
            return st;
        note_gap(l, op);
        il__cli_put_bytes(op->out.value, op->out.value_bytes);
        l->offset = op->out.offset + op->out.value_bytes;
        il_op_release(op);
    }
}

static il_status
follow(struct logs *l, bool go_on, il_error *reterr)
{
    il_op     op = { .type = IL_OP_RUN_LOG, .in.run = { .id = l->id } };
    il_status st = IL_OK;

    while (st == IL_OK) {
        /* Check for the end before reading, so that the last output is printed as well. */
        st = look_at_run(l, reterr);
        if (st == IL_OK)
            st = print_log(l, &op, reterr);
        if (st != IL_OK || !go_on || l->ended)
            break;
        if (fflush(stdout) != 0)
            break; /* stdout is closed; il__cli_out_finish() reports it */
        il_status woken = il_wait(l->cli->store, &op, 1000);
        if (woken != IL_OK && woken != IL_TIMEOUT)
            st = il__error_set(reterr, woken, "logs: %s", il_status_text(woken));
        il_op_release(&op);
    }
    il_op_release(&op);
    return st;
}

il_status
il__cli_follow(struct cli *cli, const char *id, il_error *reterr)
{
    struct logs l = { .cli = cli, .id = id };

    return follow(&l, true, reterr);
}

/* Everything that is kept, as one object. */
static int
log_json(struct logs *l)
{
    AUTO_BUF struct il__buf b     = { 0 };
    il_op                   op    = { .type = IL_OP_RUN_LOG, .in.run = { .id = l->id } };
    uint64_t                first = 0;
    il_error                err;
    il_status               st = look_at_run(l, &err);

    il__buf_init(&b, (size_t)4 * IL_LOG_BYTES_MAX);
    while (st == IL_OK) {
        op.in.run.offset = l->offset;
        st               = il__cli_apply_to(l->cli, &op, "run", l->id, &err);
        if (st != IL_OK || op.out.value_bytes == 0)
            break;
        if (b.n_bytes == 0)
            first = op.out.offset;
        il__buf_add(&b, op.out.value, op.out.value_bytes);
        l->offset = op.out.offset + op.out.value_bytes;
        il_op_release(&op);
    }
    il_op_release(&op);
    if (st != IL_OK)
        return il__cli_fail(&err);
    json_t *log = json_pack("{s:o, s:I, s:b}", "id", il__cli_json_text(l->id), "offset",
                            (json_int_t)first, "ended", (int)l->ended);
    if (b.failed || log == NULL ||
        !il__cli_json_set_bytes(log, "text", il__buf_str(&b), b.n_bytes)) {
        json_decref(log);
        return il__cli_fail_memory();
    }
    return il__cli_json_print(log);
}

int
il__cli_cmd_logs(struct cli *cli)
{
    struct logs l = { .cli = cli, .id = cli->args.operands[0] };
    char        found[IL_ID_BYTES_MAX + 1];
    il_error    err;

    if (cli->json && CLI_GIVEN(cli, logs, follow))
        return il__cli_usage("logs: --json and --follow cannot be combined");
    if (il__cli_find_run(cli, &l.id, true, found, &err) != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return log_json(&l);
    return follow(&l, CLI_GIVEN(cli, logs, follow), &err) == IL_OK ? 0 : il__cli_fail(&err);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

/* Through a server, runs of an app have their own cancel call: whoever may trigger them may cancel
 * them. False: not a run of an app. */
static bool
cancel_through_app(struct cli *cli, const char *id, il_op *op, il_status *ret, il_error *reterr)
{
    AUTO_BUF struct il__buf path   = { 0 };
    json_t                 *body   = NULL;
    json_t                 *answer = NULL;
    il_op                   look   = { .type = IL_OP_RUN_GET, .in.run = { .id = id } };

    if (!il__cli_is_remote(cli))
        return false;
    *ret                            = il__cli_apply_to(cli, &look, "run", id, reterr);
    const struct cli_run_kind *kind = *ret == IL_OK ? il__cli_run_kind(look.out.runs[0].key) : NULL;
    il_op_release(&look);
    if (kind == NULL)
        return false;
    il__buf_init(&path, 1024);
    il__buf_adds(&path, kind->path);
    il__buf_add_url(&path, id);
    body = json_pack("{s:s}", "reason", op->in.run.error);
    *ret = body != NULL
               ? il__cli_request(cli, "DELETE", il__buf_str(&path), body, 0, &answer, reterr)
               : il__error_nomem(reterr);
    json_decref(body);
    json_decref(answer);
    if (*ret == IL_OK) {
        op->type = IL_OP_RUN_GET;
        *ret     = il__cli_apply_to(cli, op, "run", id, reterr);
    }
    return true;
}

static il_status
cancel_and_wait(struct cli *cli, const char *id, il_op *op, il_error *reterr)
{
    int64_t   wait_ms = CLI_OPTION(cli, cancel, wait)->number;
    il_status st;
    il_error  why;

    if (!cancel_through_app(cli, id, op, &st, reterr))
        st = il__cli_apply_to(cli, op, "run", id, reterr);

    if (st != IL_OK || wait_ms == 0)
        return st;
    il_op_release(op);
    st = il_run_wait(cli->store, id, wait_ms, op, &why);
    if (st == IL_OK)
        return st;
    return il__error_set(reterr, st, "cancel: %s",
                         st == IL_TIMEOUT ? "the run did not end within --wait" : why.message);
}

int
il__cli_cmd_cancel(struct cli *cli)
{
    const char *id = cli->args.operands[0];
    il_op       op = { .type = IL_OP_RUN_CANCEL };
    char        found[IL_ID_BYTES_MAX + 1];
    il_error    err;
    il_status   st     = il__cli_find_run(cli, &id, false, found, &err);
    int         status = 0;

    op.in.run = (il_run_in){ .id = id, .error = CLI_OPTION(cli, cancel, reason)->text };
    if (st == IL_OK)
        st = cancel_and_wait(cli, id, &op, &err);

    if (st != IL_OK)
        status = il__cli_fail(&err);
    else if (cli->json)
        status = il__cli_print_item(&il__wire_run, &op.out.runs[0]);
    else
        (void)printf("%s %s%s\n", op.out.runs[0].id, il_run_state_name(op.out.runs[0].state),
                     op.out.runs[0].state == IL_RUN_RUNNING ? " (asked to stop)" : "");
    il_op_release(&op);
    return status;
}
