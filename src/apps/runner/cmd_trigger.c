/*
 * cmd_trigger.c: `interlock trigger`: starts a pipeline unless it is already running.
 *
 * Through a server this is an API call. On a store directly, the trigger leaves a run there that
 * waits to be executed (a slot), and a server on the same store executes it; with --here this
 * process does.
 */
#include <inttypes.h>
#include <unistd.h>

#include "apps/runner/options.h"
#include "base/error.h"
#include "cli/app_config.h"
#include "cli/data_store.h"
#include "cli/follow.h"
#include "cli/print_item.h"
#include "cli/request.h"
#include "cli/wrap/meta.h"

struct trigger {
    struct cli *cli;
    const char *pipeline;
    const char *by;
    json_t     *parameters;
    char        id[IL_ID_BYTES_MAX + 1]; /* of the run, or of an external job */
    bool        is_new;
    bool        here; /* this process executes it */
    bool        printed;
    bool        outside; /* not a run of ours: nothing to follow */
    json_t     *answer;  /* as of POST /pipelines/run/{pipeline_id} */
};

/* ---- the command line ------------------------------------------------------------------------ */

static il_status
take_parameters(struct trigger *t, il_error *reterr)
{
    const char *text;

    t->parameters = json_object();
    for (size_t i = 0; (text = il__cli_args_each(&t->cli->args, CLI_OPT_trigger_param, i)) != NULL;
         i++) {
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text)
            return il__error_set(reterr, IL_INVAL, "trigger: --param '%.80s' is not NAME=VALUE",
                                 text);
        AUTO_FREE char *name = il__strndup(text, (size_t)(equals - text));
        if (name != NULL && json_object_get(t->parameters, name) != NULL)
            return il__error_set(reterr, IL_INVAL, "trigger: --param '%.80s' was given twice",
                                 name);
        if (name != NULL && strcmp(name, "trigger_by") == 0)
            return il__error_set(reterr, IL_INVAL,
                                 "trigger: use --by instead of --param trigger_by");
        if (name == NULL || json_object_set_new(t->parameters, name, json_string(equals + 1)) != 0)
            return il__error_set(reterr, IL_INVAL, "trigger: --param '%.80s' is not UTF-8", text);
    }
    return t->parameters != NULL ? IL_OK : il__error_nomem(reterr);
}

/* Report the result, before waiting for anything. */
static int
print(struct trigger *t)
{
    if (t->printed)
        return 0;
    t->printed = true;
    if (t->cli->json)
        return il__cli_json_print(json_incref(t->answer));
    il__cli_puts(t->id);
    (void)printf("\n");
    const char *message = json_string_value(json_object_get(t->answer, "message"));
    il__cli_note(t->cli, "%s", message != NULL ? message : "");
    return fflush(stdout) == 0 ? 0 : CLI_EXIT_IO;
}

/* ---- through a server ------------------------------------------------------------------------ */

static il_status
ask_server(struct trigger *t, il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };
    json_t                 *body = json_deep_copy(t->parameters);

    if (CLI_GIVEN(t->cli, trigger, here)) {
        json_decref(body);
        return il__error_set(reterr, IL_INVAL, "trigger: --here and --server cannot be combined");
    }
    il__buf_init(&path, 4096);
    il__buf_adds(&path, "/pipelines/run/");
    il__buf_add_url(&path, t->pipeline);
    il_status st =
        body != NULL && !path.failed &&
                json_object_set_new(body, "trigger_by", json_string(t->by)) == 0
            ? il__cli_request(t->cli, "POST", il__buf_str(&path), body, 60000, &t->answer, reterr)
            : il__error_nomem(reterr);
    json_decref(body);
    if (st != IL_OK)
        return st;
    const char *id     = json_string_value(json_object_get(t->answer, "pipeline_logging_id"));
    const char *status = json_string_value(json_object_get(t->answer, "status"));
    if (id == NULL || status == NULL)
        return il__error_set(reterr, IL_STORE, "trigger: unexpected response from the server");
    (void)snprintf(t->id, sizeof t->id, "%s", id);
    t->is_new = strcmp(status, "PENDING") == 0;
    return IL_OK;
}

/* ---- on the store ---------------------------------------------------------------------------- */

static void
print_remark(void *cookie, const struct runner_note *note)
{
    const struct trigger *t = cookie;

    if (note->event == RUNNER_EVENT_file_refused)
        il__cli_note(t->cli, "%s", note->text);
}

static il_status
refused(const struct trigger *t, const struct runner_trigger *what, enum runner_answer answer,
        const il_op *op, const char *outside, il_error *reterr)
{
    char        message[RUNNER_MESSAGE_BYTES];
    const char *holder = outside != NULL       ? outside
                         : op->out.n_runs > 0  ? op->out.runs[0].id
                         : op->out.n_items > 0 ? op->out.items[0].holder
                                               : NULL;

    runner_refusal_message(answer, t->pipeline, what->live_max, what->day_max, message);
    switch (answer) {
    case RUNNER_REJECTED:
        return il__error_set(reterr, IL_HELD, "trigger: %s%s%s", message,
                             holder != NULL ? ": " : "", holder != NULL ? holder : "");
    case RUNNER_TOO_MANY:
    case RUNNER_DAY_OVER:
        return il__error_set(reterr, IL_LIMIT, "trigger: %s", message);
    default:
        return reterr->status != IL_OK
                   ? reterr->status
                   : il__error_set(reterr, op->status, "trigger: %s",
                                   op->out.detail != NULL ? op->out.detail
                                                          : il_status_text(op->status));
    }
}

static il_status
triggered(struct trigger *t, const struct runner_trigger *what, enum runner_answer answer,
          const il_op *op, const char *outside, il_error *reterr)
{
    if (answer > RUNNER_SKIPPED)
        return refused(t, what, answer, op, outside, reterr);
    t->is_new  = answer == RUNNER_TRIGGERED;
    t->outside = outside != NULL;
    (void)snprintf(t->id, sizeof t->id, "%s",
                   outside != NULL      ? outside
                   : op->out.n_runs > 0 ? op->out.runs[0].id
                                        : "");
    const il_run_info *run = op->out.n_runs > 0 ? &op->out.runs[0] : NULL;
    bool pending           = t->is_new || (!t->outside && run != NULL && run->holder[0] == '\0' &&
                                 run->state == IL_RUN_PENDING);
    char message[2 * RUNNER_MESSAGE_BYTES];
    t->here = pending && CLI_GIVEN(t->cli, trigger, here);
    if (t->here && !t->is_new)
        (void)snprintf(message, sizeof message,
                       "Pipeline %s was already triggered; executing that run", t->pipeline);
    else if (pending && !t->here && !runner_is_served(t->cli->store))
        (void)snprintf(message, sizeof message,
                       "Pipeline %s is queued: no server runs pipelines on this store; start one, "
                       "or use --here",
                       t->pipeline);
    else
        runner_trigger_message(t->pipeline, t->is_new, message);
    t->answer = json_pack("{s:s, s:s, s:s, s:s, s:s}", "pipeline_logging_id", t->id, "pipeline_id",
                          t->pipeline, "tenant_id", CLI_SETTING(t->cli, tenant)->text, "status",
                          t->is_new ? "PENDING" : "RUNNING", "message", message);
    return t->answer != NULL ? IL_OK : il__error_nomem(reterr);
}

static il_status
ask_runner(struct trigger *t, struct runner *runner, const struct il__data_limits *limits,
           struct pipeline *p, il_error *reterr)
{
    char                  uuid[37];
    char                 *outside = NULL;
    il_op                 op      = { .type = IL_OP_NONE };
    struct runner_trigger what    = { .tenant     = CLI_SETTING(t->cli, tenant)->text,
                                      .pipeline   = p,
                                      .id         = uuid,
                                      .by         = t->by,
                                      .type       = "cli",
                                      .parameters = t->parameters,
                                      .live_max   = (uint32_t)limits->runs,
                                      .day_max    = (uint32_t)limits->runs_per_day,
                                      .keep_ms    = CLI_SETTING(t->cli, runs_keep)->number };
    il_status             st      = il_uuid(uuid);

    reterr->status = IL_OK;
    if (st == IL_OK) {
        enum runner_answer answer = runner_trigger(runner, &what, &op, &outside, reterr);
        st                        = triggered(t, &what, answer, &op, outside, reterr);
    }
    il_op_release(&op);
    il__free(outside);
    return st;
}

/* With an open runner: trigger, and with --here stay until the run has ended. */
static il_status
use_runner(struct trigger *t, struct runner *runner, const struct il__data_limits *limits,
           il_error *reterr)
{
    struct pipeline *p =
        il__catalogue_get(runner_catalogue(runner), CLI_SETTING(t->cli, tenant)->text, t->pipeline);

    if (p == NULL)
        return il__error_set(
            reterr, IL_NOT_FOUND, "trigger: tenant %s has no pipeline '%.80s' in %s",
            CLI_SETTING(t->cli, tenant)->text, t->pipeline, CLI_SETTING(t->cli, pipelines)->text);
    il_status st = ask_runner(t, runner, limits, p, reterr);
    if (st == IL_OK && t->here && !t->is_new) /* a slot that has not been executed yet */
        runner_take(runner, CLI_SETTING(t->cli, tenant)->text, t->id, il__pipeline_ref(p));
    il__pipeline_unref(p);
    if (st == IL_OK && t->here) {
        il_op op = { .type = IL_OP_NONE };
        (void)print(t); /* a write error is reported at the end */
        st = CLI_GIVEN(t->cli, trigger, follow) && !t->cli->json
                 ? il__cli_follow(t->cli, t->id, reterr)
                 : il_run_wait(t->cli->store, t->id, IL_FOREVER, &op, reterr);
        il_op_release(&op);
    }
    return st;
}

static il_status
ask_store(struct trigger *t, il_error *reterr)
{
    struct cli                               *cli    = t->cli;
    struct il__data                          *data   = NULL;
    struct runner                            *runner = NULL;
    AUTO_CLI_APP_CONFIG struct cli_app_config config = { .connections = NULL };
    AUTO_RUNNER_SETUP struct runner_setup     setup  = { .mem = NULL };

    if (CLI_SETTING(cli, pipelines)->text[0] == '\0')
        return il__error_set(reterr, IL_INVAL,
                             "trigger: no pipelines folder; pass --pipelines DIR or --server URL");
    il_status st = il__cli_app_config_init(&config, &cli->config, reterr);
    if (st == IL_OK)
        st = runner_setup_init(&setup, &config.config, reterr);
    if (st == IL_OK)
        st = il__cli_data_open(cli, CLI_DATA_MAKE, &data, reterr);
    struct il__data_limits limits = { .runs = CLI_SETTING(cli, limit_runs)->number,
                                      .runs_per_day =
                                          CLI_SETTING(cli, limit_runs_per_day)->number };
    if (st == IL_OK)
        st = il__data_tenant_limits(data, CLI_SETTING(cli, tenant)->text, &limits, reterr);
    if (st == IL_OK) {
        struct runner_options *o = &setup.options;
        o->h                     = cli->store;
        o->data                  = data;
        o->store_url             = CLI_SETTING(cli, store)->text;
        o->mode                  = CLI_GIVEN(cli, trigger, here) ? WORK_HERE : WORK_ASK;
        o->note                  = print_remark;
        o->note_cookie           = t;
        st                       = runner_open(o, &runner, reterr);
    }
    if (st == IL_OK) {
        st = use_runner(t, runner, &limits, reterr);
        runner_stop(runner);
        runner_close(runner);
    }
    il__data_close(data);
    return st;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Wait for the run as the options say, and report how it ended. */
static int
await_end(struct trigger *t)
{
    struct cli *cli     = t->cli;
    int64_t     wait_ms = CLI_OPTION(cli, trigger, wait)->number;
    il_op       op      = { .type = IL_OP_NONE };
    il_error    err     = { 0 };
    il_status   st      = IL_OK;
    bool        here    = t->here;

    if (CLI_GIVEN(cli, trigger, follow) && !cli->json && !here)
        st = il__cli_follow(cli, t->id, &err);
    if (st == IL_OK)
        st = il_run_wait(cli->store, t->id,
                         CLI_GIVEN(cli, trigger, follow) || here ? IL_FOREVER : wait_ms, &op, &err);
    if (st != IL_OK) {
        il_op_release(&op);
        if (st == IL_TIMEOUT)
            il__cli_error("trigger: run %s did not end within --wait", t->id);
        return st == IL_TIMEOUT ? CLI_EXIT_RUN_LATE : il__cli_fail(&err);
    }
    const il_run_info *run    = &op.out.runs[0];
    int                status = run->state == IL_RUN_COMPLETED ? 0 : CLI_EXIT_RUN;
    il__cli_note(cli, "run %s: %s%s%s", run->id, il_run_state_name(run->state),
                 run->error[0] != '\0' ? ": " : "", run->error);
    il_op_release(&op);
    return status;
}

int
il__cli_cmd_trigger(struct cli *cli)
{
    const char    *given = CLI_OPTION(cli, trigger, by)->text;
    char           user[64];
    struct trigger t      = { .cli      = cli,
                              .pipeline = cli->args.operands[0],
                              .by       = CLI_GIVEN(cli, trigger, by) ? given : user };
    il_error       err    = { 0 };
    bool           server = il__cli_is_remote(cli);

    wrap_user(user, sizeof user);
    il_status st     = take_parameters(&t, &err);
    int       status = 0;

    if (st == IL_OK)
        st = server ? ask_server(&t, &err) : ask_store(&t, &err);
    if (st != IL_OK)
        status = il__cli_data_fail(cli, &err);
    else
        status = print(&t);
    bool waits = CLI_GIVEN(cli, trigger, here) || CLI_GIVEN(cli, trigger, follow) ||
                 CLI_OPTION(cli, trigger, wait)->number != 0;
    if (st == IL_OK && status == 0 && waits && !t.outside)
        status = await_end(&t);
    json_decref(t.parameters);
    json_decref(t.answer);
    return status;
}
