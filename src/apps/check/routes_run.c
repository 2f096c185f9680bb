/*
 * routes_run.c: POST /checks/run, which starts runs, and GET /checks/results/{id}, which waits for
 * one.
 */
#include "apps/check/serve.h"

#include <stdio.h>

#include "base/error.h"
#include "http/admin.h"
#include "http/auth.h"
#include "http/server.h"

/* ---- starting -------------------------------------------------------------------------------- */

struct starting {
    struct check_current *current; /* ours */
    struct check_run_in   in;
    struct check_started  out;
    const struct check  **checks; /* of the ops */
    size_t               *items;  /* of each op: its item in `out` */
    il_op                *ops;
    size_t                n;
};

static void
end_start(struct http_request *r)
{
    struct starting *w = r->ended_cookie;

    for (size_t i = 0; i < w->n; i++)
        il_op_release(&w->ops[i]);
    il__check_current_unref(w->current);
}

static void
started(struct http_request *r)
{
    struct starting  *w   = r->ended_cookie;
    struct check_app *app = il__check_app_of(r);

    for (size_t i = 0; i < w->n; i++) {
        const il_op *op = &w->ops[i];
        if ((op->status != IL_OK && op->status != IL_DUPLICATE) || op->out.n_runs == 0) {
            http_fail_op(r, op, check_http_app.name);
            return;
        }
        w->out.runs[w->items[i]].run = op->out.runs[0].id;
    }
    for (size_t i = 0; i < w->n; i++) {
        if (w->ops[i].status == IL_OK)
            work_slot_created(app->work, w->checks[i]->tenant, w->ops[i].out.runs[0].id,
                              w->checks[i]->name);
    }
    http_say(r, 202, &il__check_started_out, &w->out);
}

/* Add the op of an invariant, or the fault in its definition. False: answered. */
static bool
add(struct http_request *r, struct starting *w, const struct check *c)
{
    struct check_started_one *item = &w->out.runs[w->out.n_runs++];
    il_error                  err  = { 0 };

    if (!http_may_see(r, c->name)) {
        http_refuse_op(r, HTTP_SCOPE_FORBIDDEN);
        return false;
    }
    *item = (struct check_started_one){ .name = c->name, .error = c->fault };
    if (c->fault != NULL)
        return true;
    const char *id = http_new_id(r, w->n);
    if (id == NULL)
        return false;
    if (il__check_start_op(c, id, r->caller->key_id, &r->mem, &w->ops[w->n], &err) != IL_OK) {
        http_fail_nomem(r);
        return false;
    }
    w->checks[w->n] = c;
    w->items[w->n]  = w->out.n_runs - 1;
    w->n++;
    return true;
}

static bool
is_wanted(const struct check_run_in *in, const char *name)
{
    for (size_t i = 0; i < in->n_names; i++) {
        if (strcmp(in->names[i], name) == 0)
            return true;
    }
    return in->n_names == 0;
}

/* They must exist. False: answered. */
static bool
check_names(struct http_request *r, const struct starting *w)
{
    for (size_t i = 0; i < w->in.n_names; i++) {
        const char *name = w->in.names[i];
        if (il__check_subject_get(w->current, r->caller->tenant, name) == NULL) {
            http_fail(r, 404, "CHECK_NOT_FOUND", check_http_app.name, NULL,
                      "invariant %.128s not found", name);
            return false;
        }
    }
    return true;
}

static bool
allocate(struct http_request *r, struct starting *w, size_t n)
{
    w->out.runs = http_alloc(r, (n + 1) * sizeof *w->out.runs);
    w->checks   = http_alloc(r, (n + 1) * sizeof(struct check *));
    w->items    = http_alloc(r, (n + 1) * sizeof *w->items);
    w->ops      = http_alloc(r, (n + 1) * sizeof *w->ops);
    return w->out.runs != NULL && w->checks != NULL && w->items != NULL && w->ops != NULL;
}

/* Build the ops. False: answered. */
static bool
prepare(struct http_request *r, struct starting *w)
{
    const char                 *tenant = r->caller->tenant;
    const struct check_subject *first  = il__check_subject_from(w->current, tenant, "", false);
    const struct check_subject *end = w->current->subjects + w->current->n, *last = first;

    size_t n = 0;

    for (; last < end && strcmp(last->check->tenant, tenant) == 0; last++)
        n += is_wanted(&w->in, last->check->name);
    if (n > IL_BATCH_OPS_MAX) {
        http_fail(r, 400, il_status_name(IL_INVAL), check_http_app.name, NULL,
                  "the tenant has more than %d invariants; list the names to check",
                  IL_BATCH_OPS_MAX);
        return false;
    }
    if (!allocate(r, w, n)) {
        http_fail_nomem(r);
        return false;
    }
    for (; first < last; first++) {
        if (is_wanted(&w->in, first->check->name) && !add(r, w, first->check))
            return false;
    }
    return true;
}

void
il__check_http_run(struct http_request *r)
{
    struct starting *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    w->current      = il__check_app_current(il__check_app_of(r));
    r->ended        = end_start;
    r->ended_cookie = w;
    if (!http_take_body(r, &w->in) || !check_names(r, w) || !prepare(r, w))
        return;
    if (w->n > 0)
        http_do_ops(r, w->ops, w->n, 0, started);
    else
        http_say(r, 202, &il__check_started_out, &w->out);
}

/* ---- the result of a run --------------------------------------------------------------------- */

struct waiting {
    struct http_request    *r;
    struct check_page_in    in; /* only `strict` */
    struct check_result_out out;
    bool                    found, no_memory;
    il_status               status;
    il_error                error;
};

static void
take_result(void *cookie, const struct check_record *from)
{
    struct waiting *w = cookie;

    w->found     = true;
    w->no_memory = !il__check_result_show(w->r, from, (w->in.flags & CHECK_STRICT) != 0, &w->out);
}

static void
read_result(struct http_request *r)
{
    struct waiting  *w      = r->state;
    il_guard        *tables = il__check_app_of(r)->tables;
    il_guard_tx_opts opts   = IL_GUARD_TX_OPTS_INIT;

    http_bind_deadline(r, tables, &opts);
    w->status = il__check_history_get(tables, r->caller->tenant, r->args[0], &opts, take_result, w,
                                      &w->error);
}

static void
fail_not_found(struct http_request *r)
{
    http_fail(r, 404, "CHECK_RESULT_NOT_FOUND", check_http_app.name, NULL,
              "result %.128s not found", r->args[0]);
}

/* The run has no result: it has not ended, was stopped, or its app has no tables. */
static void
say_run(struct http_request *r, const il_run_info *run)
{
    const size_t       n_prefix = strlen(CHECK_CLASS ":");
    enum check_outcome outcome  = run->state <= IL_RUN_RUNNING     ? CHECK_NOT_RUN
                                  : run->state == IL_RUN_COMPLETED ? CHECK_SKIPPED
                                                                   : CHECK_ERROR;

    http_say(r, 200, &il__check_result_out,
             &(struct check_result_out){ .id         = run->id,
                                         .tenant     = run->tenant,
                                         .name       = run->key + n_prefix,
                                         .outcome    = il__check_outcome_name(outcome),
                                         .offenders  = "[]",
                                         .not_needed = "{\"count\":0,\"keys\":[]}",
                                         .runs       = "[]",
                                         .error      = run->error,
                                         .started_ms = run->started_at_ms });
}

static void
say_result(struct http_request *r)
{
    const struct waiting *w  = r->state;
    const il_op          *op = r->ops;

    if (w->status != IL_OK)
        http_fail_data(r, &w->error);
    else if (w->no_memory)
        http_fail_nomem(r);
    else if (w->found && http_may_see(r, w->out.name))
        http_say(r, 200, &il__check_result_out, &w->out);
    else if (!w->found && op->status == IL_OK)
        say_run(r, &op->out.runs[0]);
    else
        fail_not_found(r);
}

static void
got_run(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status != IL_OK && op->status != IL_NOT_FOUND)
        http_fail_op(r, op, check_http_app.name);
    else if (op->status == IL_OK &&
             strncmp(op->out.runs[0].key, CHECK_CLASS ":", strlen(CHECK_CLASS ":")) != 0)
        fail_not_found(r);
    else if (op->status == IL_OK && op->out.runs[0].state <= IL_RUN_RUNNING)
        say_run(r, &op->out.runs[0]);
    else
        http_pool(r, read_result, say_result);
}

/* A result is written before its run ends, and outlives it in the store. */
void
il__check_http_result(struct http_request *r)
{
    struct waiting *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    w->r     = r;
    r->state = w;
    if (!http_take_query(r, &w->in))
        return;
    if (il__check_app_of(r)->tables == NULL) {
        fail_not_found(r);
        return;
    }
    r->op = (il_op){ .type = IL_OP_RUN_GET, .in.run = { .id = r->args[0] } };
    http_do_ops(r, &r->op, 1, http_poll_ms(r), got_run);
}
