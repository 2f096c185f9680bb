/*
 * cmd_complete.c: `interlock __complete KIND [PREFIX]` (hidden), called by the completion scripts:
 * prints names from the store that begin with PREFIX, one per line. Someone waits at a prompt, so
 * it gives up after a second, and says nothing about errors.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/complete.h"
#include "cli/request.h"

#define WORDS_MAX 200
#define SECONDS_MAX 1
#define PIPELINE "pipeline:"

static const struct {
    const char *command;
    const char *kind;
} kinds[] = {
    { "run", "keys" },
    { "lock", "keys" },
    { "unlock", "keys" },
    { "locks", "keys" },
    { "why", "keys" },
    { "break", "keys" },
    { "queue push", "queues" },
    { "queue work", "queues" },
    { "queue list", "queues" },
    { "queue pause", "queues" },
    { "queue resume", "queues" },
    { "queue purge", "queues" },
    { "queue stats", "queues" },
    { "queue set", "queues" },
    { "queue cron list", "queues" },
    { "runs", "runs" },
    { "logs", "runs" },
    { "cancel", "runs" },
    { "trigger", "pipelines" },
    { "pipelines graph", "pipelines" },
};

const char *
il__cli_complete_kind(const struct cli_command *command)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].command, command->name) == 0)
            return kinds[i].kind;
    }
    return NULL;
}

/* A word that a shell would not take apart, or take for an option; the others have to be typed. */
static void
print_word(const char *text, const char *prefix)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+=,-";

    if (text[0] != '\0' && text[0] != '-' && text[strspn(text, plain)] == '\0' &&
        strncmp(text, prefix, strlen(prefix)) == 0)
        (void)puts(text);
}

/* Does a listing go on? Waiters are not asked for: their keys are held. */
static il_status
print_listed(const struct cli *cli, il_op *op, const char *prefix)
{
    il_status st = il_apply(cli->store, op, 1, NULL);

    if (st != IL_OK || op->status != IL_OK)
        return IL_STORE;
    for (size_t i = 0; i < op->out.n_items; i++)
        print_word(op->out.items[i].key, prefix);
    for (size_t i = 0; i < op->out.n_queues; i++)
        print_word(op->out.queues[i].name, prefix);
    for (size_t i = 0; i < op->out.n_runs; i++) {
        const char *key = op->out.runs[i].key;
        if (op->in.list.prefix == NULL)
            print_word(op->out.runs[i].id, prefix);
        else if (strncmp(key, PIPELINE, strlen(PIPELINE)) == 0)
            print_word(key + strlen(PIPELINE), prefix);
    }
    return IL_OK;
}

/* The server knows its pipelines; a store knows those that have run. */
static void
print_pipelines(const struct cli *cli, const char *prefix)
{
    il_op   op = { .type = IL_OP_RUN_LIST, .in.list = { .prefix = PIPELINE, .limit = WORDS_MAX } };
    json_t *answer = NULL, *item;
    size_t  i;

    if (!il__cli_is_remote(cli)) {
        IGNORE(print_listed(cli, &op, prefix) != IL_OK);
        il_op_release(&op);
        return;
    }
    if (il__cli_request(cli, "GET", "/pipelines", NULL, 0, &answer, NULL) != IL_OK)
        return;
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        print_word(name != NULL ? name : "", prefix);
    }
    json_decref(answer);
}

static void
on_alarm(int signo UNUSED)
{
    _exit(0);
}

int
il__cli_cmd_complete(struct cli *cli)
{
    const char *kind   = cli->args.operands[0];
    const char *prefix = cli->args.operands[1] != NULL ? cli->args.operands[1] : "";
    il_op       op = { .type = IL_OP_LIST, .in.list = { .prefix = prefix, .limit = WORDS_MAX } };

    (void)signal(SIGALRM, on_alarm); /* cannot fail */
    (void)alarm(SECONDS_MAX);
    if (il__cli_store_open(cli, false, NULL) != IL_OK)
        return 0;
    if (strcmp(kind, "pipelines") == 0) {
        print_pipelines(cli, prefix);
        return 0;
    }
    if (strcmp(kind, "queues") == 0)
        op.type = IL_OP_QUEUE_LIST;
    if (strcmp(kind, "runs") == 0)
        op = (il_op){ .type = IL_OP_RUN_LIST, .in.list = { .limit = WORDS_MAX } };
    IGNORE(print_listed(cli, &op, prefix) != IL_OK);
    il_op_release(&op);
    return 0;
}
