/*
 * cmd_run.c: parses and checks the command line of `interlock run` before anything starts; wrap/
 * does the work.
 */
#include "base/error.h"
#include "cli/input.h"
#include "cli/wrap/wrap.h"

static il_status
check_names(const struct cli *cli, il_error *reterr)
{
    const char *holder = CLI_OPTION(cli, run, holder)->text;
    il_error    why;
    il_status   st = il__cli_check_key(cli, cli->args.operands[0], reterr);

    if (st != IL_OK)
        return st;
    if (holder != NULL && (st = il_check_holder(holder, &why)) != IL_OK)
        return il__error_set(reterr, st, "run: --holder: %s", why.message);
    if (CLI_GIVEN(cli, run, shared) && CLI_GIVEN(cli, run, permits))
        return il__error_set(reterr, IL_INVAL, "run: --shared and --permits cannot be combined");
    return IL_OK;
}

/* --record, and the options that require or exclude it. */
static il_status
check_record(const struct cli *cli, il_error *reterr)
{
    const struct cli_value *conflict = CLI_OPTION(cli, run, on_conflict);
    bool                    record   = CLI_GIVEN(cli, run, record);

    if (record && (CLI_GIVEN(cli, run, shared) || CLI_GIVEN(cli, run, permits)))
        return il__error_set(reterr, IL_INVAL,
                             "run: --record cannot be combined with --shared or --permits");
    if (!record && conflict->number > WRAP_JOIN)
        return il__error_set(reterr, IL_INVAL, "run: --on-conflict %s needs --record",
                             conflict->text);
    if (!record &&
        (CLI_GIVEN(cli, run, trigger) || CLI_GIVEN(cli, run, by) || CLI_GIVEN(cli, run, keep)))
        return il__error_set(reterr, IL_INVAL, "run: --trigger, --by and --keep need --record");
    return IL_OK;
}

static const char *
text_or(const struct cli_value *value, const char *fallback)
{
    return value->given ? value->text : fallback;
}

static il_status
fill(struct cli *cli, il_open_opts *open_opts, struct cli_hooks *hooks, struct wrap_opts *run,
     il_error *reterr)
{
    bool      permits = CLI_GIVEN(cli, run, permits);
    bool      shared  = CLI_GIVEN(cli, run, shared);
    il_status st;

    *run = (struct wrap_opts){
        .open_opts     = open_opts,
        .key           = cli->args.operands[0],
        .holder        = CLI_OPTION(cli, run, holder)->text,
        .argv          = cli->args.tail,
        .ttl_ms        = CLI_SETTING(cli, ttl)->number,
        .wait_ms       = CLI_SETTING(cli, wait)->number,
        .timeout_ms    = CLI_OPTION(cli, run, timeout)->number,
        .settle_ms     = CLI_OPTION(cli, run, settle)->number,
        .mode          = permits  ? IL_MODE_PERMIT
                         : shared ? IL_MODE_SHARED
                                  : IL_MODE_EXCLUSIVE,
        .permits       = (uint32_t)CLI_OPTION(cli, run, permits)->number,
        .on_conflict   = (enum wrap_conflict)CLI_OPTION(cli, run, on_conflict)->number,
        .conflict_exit = (int)CLI_OPTION(cli, run, conflict_exit_code)->number,
        .quiet         = cli->quiet,
        .json          = cli->json,
        .kind          = CLI_GIVEN(cli, run, record) ? WRAP_RECORD : WRAP_LEASE,
        .keep_ms       = CLI_OPTION(cli, run, keep)->number,
        .record        = { text_or(CLI_OPTION(cli, run, trigger), "manual"),
                           CLI_OPTION(cli, run, by)->text },
    };
    run->hooks = hooks;
    st         = il__cli_hooks_take(cli, hooks, reterr);
    if (st == IL_OK)
        st = il__cli_choose_grace(cli, CLI_OPTION(cli, run, grace), run->ttl_ms, &run->grace_ms,
                                  reterr);
    if (st == IL_OK)
        st = il__cli_shared_store(cli, open_opts, &run->store_url, reterr);
    return st;
}

/* The choices of --on-conflict are passed on by index. */
_Static_assert(WRAP_REJECT == 0 && WRAP_SKIP == 1 && WRAP_JOIN == 2 && WRAP_QUEUE == 3 &&
                   WRAP_REPLACE_PENDING == 4 && WRAP_CANCEL_RUNNING == 5,
               "options.def lists reject|skip|join|… in the order of enum wrap_conflict");

int
il__cli_cmd_run(struct cli *cli)
{
    il_open_opts     open_opts;
    struct wrap_opts run;
    struct cli_hooks hooks = { { NULL } };
    il_error         err;
    il_status        st = check_names(cli, &err);

    if (st == IL_OK)
        st = check_record(cli, &err);
    if (st == IL_OK)
        st = fill(cli, &open_opts, &hooks, &run, &err);
    int status = st == IL_OK ? wrap_command(&run) : il__cli_fail(&err);
    il__cli_hooks_release(&hooks);
    return status;
}
