/*
 * cmd_queue_work.c: parses the command line of `interlock queue work`; worker/ does the work.
 */
#include "base/error.h"
#include "base/parse.h"
#include "cli/worker/worker.h"

/* `--weight QUEUE=N` applies to one of the queues. The last `=` counts: a queue's name may have
 * one. */
static il_status
take_weight(struct il__worker_opts *work, const char *text, il_error *reterr)
{
    const char *equals = strrchr(text, '=');
    uint64_t    weight;

    if (equals == NULL || !il__parse_u64(equals + 1, CLI_WORK_WEIGHT_MAX, &weight) || weight == 0)
        return il__error_set(reterr, IL_INVAL,
                             "queue work: --weight '%.80s' is not QUEUE=N with N from 1 to %d",
                             text, CLI_WORK_WEIGHT_MAX);
    for (size_t i = 0; i < work->n_queues; i++) {
        const char *name = work->queues[i].name;
        if (strlen(name) == (size_t)(equals - text) && strncmp(name, text, strlen(name)) == 0) {
            work->queues[i].weight = (uint32_t)weight;
            return IL_OK;
        }
    }
    return il__error_set(reterr, IL_INVAL,
                         "queue work: --weight '%.80s': not one of the given queues", text);
}

static il_status
take_queues(const struct cli *cli, struct il__worker_opts *work, il_error *reterr)
{
    const char *text;

    for (size_t i = 0; i < cli->args.n_operands; i++) {
        const char *name = cli->args.operands[i];
        for (size_t k = 0; k < i; k++) {
            if (strcmp(work->queues[k].name, name) == 0)
                return il__error_set(reterr, IL_INVAL, "queue work: queue '%.80s' is named twice",
                                     name);
        }
        work->queues[work->n_queues++] = (struct il__worker_named){ name, 1 };
    }
    for (size_t i = 0; (text = il__cli_args_each(&cli->args, CLI_OPT_queue_work_weight, i)) != NULL;
         i++) {
        if (take_weight(work, text, reterr) != IL_OK)
            return IL_INVAL;
    }
    return IL_OK;
}

int
il__cli_cmd_queue_work(struct cli *cli)
{
    il_open_opts           open_opts;
    struct il__worker_opts work = {
        .open_opts      = &open_opts,
        .argv           = cli->args.tail,
        .n_jobs         = (uint32_t)CLI_OPTION(cli, queue_work, jobs)->number,
        .lease_ms       = CLI_OPTION(cli, queue_work, lease)->number,
        .grace_ms       = CLI_SETTING(cli, grace)->number,
        .strict         = CLI_GIVEN(cli, queue_work, grace),
        .timeout_ms     = CLI_OPTION(cli, queue_work, timeout)->number,
        .snooze_ms      = CLI_OPTION(cli, queue_work, snooze)->number,
        .once           = CLI_GIVEN(cli, queue_work, once),
        .drain          = CLI_GIVEN(cli, queue_work, drain),
        .fail_on_failed = CLI_GIVEN(cli, queue_work, fail_on_failed),
        .create         = CLI_GIVEN(cli, queue_work, create),
        .quiet          = cli->quiet,
        .json           = cli->json,
    };
    il_error         err;
    struct cli_hooks hooks = { { NULL } };
    il_status        st    = take_queues(cli, &work, &err);

    if (st == IL_OK && work.once && work.n_jobs > 1)
        st = il__error_set(&err, IL_INVAL, "queue work: --once and --jobs cannot be combined");
    work.hooks = &hooks;
    if (st == IL_OK)
        st = il__cli_hooks_take(cli, &hooks, &err);
    if (st == IL_OK)
        st = il__cli_shared_store(cli, &open_opts, &work.store_url, &err);
    int status = st == IL_OK ? il__worker_run(&work) : il__cli_fail(&err);
    il__cli_hooks_release(&hooks);
    return status;
}
