/*
 * cmd_run.c: the command line of `interlock run`. Everything is checked here, before anything
 * starts; what happens then is in run/.
 */
#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/run/run.h"

/*
 * The time to stop must fit between the loss of the lease and its end: at most a third of the TTL.
 * A value from the configuration is cut to that, one that was typed for this run is refused.
 */
static il_status
choose_grace(const struct cli *cli, int64_t ttl_ms, int64_t *ret_ms, il_error *reterr)
{
    int64_t grace_ms = CLI_SETTING(cli, grace)->number;
    char    grace[IL__DURATION_TEXT_BYTES];
    char    ttl[IL__DURATION_TEXT_BYTES];

    if (grace_ms > ttl_ms / 3 && CLI_GIVEN(cli, run, grace))
        return il__error_set(reterr, IL_INVAL, "run: --grace %s is more than a third of the ttl of %s",
                             il__duration_text(grace_ms, grace), il__duration_text(ttl_ms, ttl));
    *ret_ms = MIN(grace_ms, ttl_ms / 3);
    return IL_OK;
}

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
        return il__error_set(reterr, IL_INVAL, "run: --shared and --permits exclude each other");
    return IL_OK;
}

static il_status
fill(struct cli *cli, il_open_opts *open_opts, struct il__run_opts *run, il_error *reterr)
{
    bool      permits = CLI_GIVEN(cli, run, permits);
    bool      shared  = CLI_GIVEN(cli, run, shared);
    il_status st;

    *run = (struct il__run_opts){
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
        .on_conflict   = (enum il__run_conflict)CLI_OPTION(cli, run, on_conflict)->number,
        .conflict_exit = (int)CLI_OPTION(cli, run, conflict_exit_code)->number,
        .quiet         = cli->quiet,
        .json          = cli->json,
    };
    st = choose_grace(cli, run->ttl_ms, &run->grace_ms, reterr);
    if (st == IL_OK)
        st = il__cli_store_prepare(cli, true, open_opts, reterr);
    run->store_url = CLI_SETTING(cli, store)->text;
    if (st == IL_OK && il__cli_store_is_private(run->store_url))
        st = il__error_set(reterr, IL_INVAL,
                           "run: the store '%s' lives in one process and cannot keep two apart; "
                           "use sqlite:PATH",
                           run->store_url);
    return st;
}

/* The choices of --on-conflict are handed on by their index. */
_Static_assert(IL__RUN_REJECT == 0 && IL__RUN_SKIP == 1 && IL__RUN_JOIN == 2,
               "options.def lists reject|skip|join in the order of enum il__run_conflict");

int
il__cli_cmd_run(struct cli *cli)
{
    il_open_opts        open_opts;
    struct il__run_opts run;
    il_error            err;
    il_status           st = check_names(cli, &err);

    if (st == IL_OK)
        st = fill(cli, &open_opts, &run, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    return il__run(&run);
}
