/*
 * cmd_queue_work.c: parses the command line of `interlock queue work`; work/ does the work.
 */
#include "base/error.h"
#include "cli/ask.h"
#include "cli/work/work.h"

int
il__cli_cmd_queue_work(struct cli *cli)
{
    il_open_opts         open_opts;
    struct il__work_opts work = {
        .open_opts  = &open_opts,
        .queue      = cli->args.operands[0],
        .argv       = cli->args.tail,
        .n_jobs     = (uint32_t)CLI_OPTION(cli, queue_work, jobs)->number,
        .lease_ms   = CLI_OPTION(cli, queue_work, lease)->number,
        .grace_ms   = CLI_SETTING(cli, grace)->number,
        .strict     = CLI_GIVEN(cli, queue_work, grace),
        .timeout_ms = CLI_OPTION(cli, queue_work, timeout)->number,
        .snooze_ms  = CLI_OPTION(cli, queue_work, snooze)->number,
        .once       = CLI_GIVEN(cli, queue_work, once),
        .drain      = CLI_GIVEN(cli, queue_work, drain),
        .create     = CLI_GIVEN(cli, queue_work, create),
        .quiet      = cli->quiet,
        .json       = cli->json,
    };
    il_error  err;
    il_status st = IL_OK;

    if (work.once && work.n_jobs > 1)
        st = il__error_set(&err, IL_INVAL, "queue work: --once and --jobs cannot be combined");
    if (st == IL_OK)
        st = il__cli_shared_store(cli, &open_opts, &work.store_url, &err);
    return st == IL_OK ? il__work(&work) : il__cli_fail(&err);
}
