/*
 * routes_run.c: routes about pipeline runs: show, list, cancel, output of a step.
 */
#include "apps/runner/serve.h"
#include "http/admin.h"
#include "http/server.h"

#define RUNS_DEFAULT 20

/* The run that an op returned, if it belongs to a pipeline; NULL: answered. */
static const il_run_info *
run_of(struct http_request *r)
{
    il_op *op = r->ops;

    if (op->status == IL_OK && op->out.n_runs > 0 &&
        runner_pipeline_of_key(op->out.runs[0].key) != NULL)
        return &op->out.runs[0];
    if (op->status == IL_OK)
        op->status = IL_NOT_FOUND; /* a run, but not of a pipeline */
    http_fail_op(r, op, runner_http_app.name);
    return NULL;
}

static void
get_run(struct http_request *r, int64_t wait_ms, http_fn *then)
{
    r->op = (il_op){ .type = IL_OP_RUN_GET, .in.run = { .id = r->args[0] } };
    http_do_ops(r, &r->op, 1, wait_ms, then);
}

/* ---- one run --------------------------------------------------------------------------------- */

struct get_work {
    struct runner_run_in  in;
    struct runner_run_out run;
    struct pipeline      *pipeline; /* ours */
    il_status             status;
    il_error              error;
};

static void
end_get(struct http_request *r)
{
    struct get_work *w = r->ended_cookie;

    il__pipeline_unref(w->pipeline);
}

/* On the errand thread, which owns the request until it returns. */
static void
read_history(struct http_request *r)
{
    struct get_work *w = r->ended_cookie;

    w->status = runner_run_history(r->server->data, w->in.output != 0, &r->mem, &w->run, &w->error);
}

static void
answer_run(struct http_request *r)
{
    struct get_work *w = r->ended_cookie;

    if (w->status != IL_OK) {
        http_fail_data(r, &w->error);
        return;
    }
    if (w->pipeline != NULL && !runner_run_pending(w->pipeline, &r->mem, &w->run)) {
        http_fail_nomem(r);
        return;
    }
    runner_run_print(&r->out, &w->run, true);
    http_answer(r, 200);
}

static void
got_run(struct http_request *r)
{
    struct get_work   *w   = r->ended_cookie;
    const il_run_info *run = run_of(r);

    if (run == NULL)
        return;
    if (!runner_run_show(run, &r->mem, &w->run)) {
        http_fail_nomem(r);
        return;
    }
    w->pipeline = il__catalogue_get(runner_app_of(r)->catalogue, w->run.tenant, w->run.pipeline);
    http_errand(r, read_history, answer_run);
}

void
runner_http_pipeline_run_get(struct http_request *r)
{
    struct get_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    r->ended        = end_get;
    r->ended_cookie = w;
    if (http_take_query(r, &w->in))
        get_run(r, http_poll_ms(r), got_run);
}

/* ---- several runs ---------------------------------------------------------------------------- */

static void
listed(struct http_request *r)
{
    const il_op           *op   = r->ops;
    struct runner_run_out *runs = http_alloc(r, (op->out.n_runs + 1) * sizeof *runs);

    if (op->status != IL_OK) {
        http_fail_op(r, op, runner_http_app.name);
        return;
    }
    for (size_t i = 0; runs != NULL && i < op->out.n_runs; i++) {
        if (!runner_run_show(&op->out.runs[i], &r->mem, &runs[i]))
            runs = NULL;
    }
    if (runs == NULL) {
        http_fail_nomem(r);
        return;
    }
    runner_runs_print(&r->out, runs, op->out.n_runs, op->out.next);
    http_answer(r, 200);
}

void
runner_http_pipeline_runs(struct http_request *r)
{
    struct runner_page_in in = { .limit = 0 };

    if (!http_take_query(r, &in))
        return;
    r->op = (il_op){ .type    = IL_OP_RUN_LIST,
                     .in.list = { .prefix = PIPELINE_KEY_PREFIX,
                                  .cursor = in.cursor,
                                  .limit  = in.limit != 0 ? in.limit : RUNS_DEFAULT,
                                  .states = in.states } };
    if (in.pipeline != NULL) {
        size_t n   = sizeof PIPELINE_KEY_PREFIX + strlen(in.pipeline);
        char  *key = http_calloc(r, n);
        if (key == NULL)
            return;
        memcpy(key, PIPELINE_KEY_PREFIX, sizeof PIPELINE_KEY_PREFIX - 1);
        memcpy(key + sizeof PIPELINE_KEY_PREFIX - 1, in.pipeline, strlen(in.pipeline) + 1);
        r->op.key            = key;
        r->op.in.list.prefix = NULL;
    }
    http_do_ops(r, &r->op, 1, 0, listed);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

static void
show_run(struct http_request *r)
{
    const il_run_info    *run = run_of(r);
    struct runner_run_out out;

    if (run == NULL)
        return;
    if (!runner_run_show(run, &r->mem, &out)) {
        http_fail_nomem(r);
        return;
    }
    runner_run_print(&r->out, &out, false);
    http_answer(r, 200);
}

static void
cancelled(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status == IL_OK && op->out.n_runs > 0)
        runner_cancelled(runner_app_of(r)->runner, &op->out.runs[0]);
    show_run(r);
}

static void
found_for_cancel(struct http_request *r)
{
    const struct runner_cancel_in *in  = r->state;
    const il_run_info             *run = run_of(r);

    if (run == NULL)
        return;
    if (run->state > IL_RUN_RUNNING) {
        show_run(r);
        return;
    }
    il_op_release(r->ops);
    r->op = (il_op){ .type   = IL_OP_RUN_CANCEL,
                     .in.run = { .id    = r->args[0],
                                 .error = in->reason != NULL ? in->reason
                                                             : "cancelled through the API" } };
    http_do_ops(r, &r->op, 1, 0, cancelled);
}

void
runner_http_pipeline_run_cancel(struct http_request *r)
{
    struct runner_cancel_in *in = http_calloc(r, sizeof *in);

    if (in == NULL)
        return;
    if (!http_take_body(r, in))
        return;
    r->state = in;
    get_run(r, 0, found_for_cancel);
}

/* ---- output ---------------------------------------------------------------------------------- */

struct output_work {
    struct runner_output_in in;
    struct runner_step_out  step;
    il_status               status;
    il_error                error;
};

static void
read_output(struct http_request *r)
{
    struct output_work *w = r->state;

    w->status = runner_step_output(r->server->data, r->caller->tenant, r->args[0], r->args[1],
                                   w->in.attempt, &r->mem, &w->step, &w->error);
}

static void
answer_output(struct http_request *r)
{
    const struct output_work *w = r->state;

    if (w->status == IL_OK)
        http_say(r, 200, &runner_out_output, &w->step);
    else if (w->status == IL_NOT_FOUND)
        http_fail(r, 404, il_status_name(IL_NOT_FOUND), runner_http_app.name, NULL, "%s",
                  w->error.message);
    else
        http_fail_data(r, &w->error);
}

static void
found_for_output(struct http_request *r)
{
    if (run_of(r) != NULL)
        http_errand(r, read_output, answer_output);
}

void
runner_http_pipeline_step_output(struct http_request *r)
{
    struct output_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    if (!http_take_query(r, &w->in))
        return;
    r->state = w;
    get_run(r, 0, found_for_output);
}
