/*
 * runs.c: the runs of the toy (apps/work/work.h). Every tenant has one subject, "play"; a run of it
 * counts what its trigger asked for.
 *
 *   POST /toy/runs?n=N   starts one; `break`: it fails
 */
#include "apps/work/work.h"

#include "base/error.h"
#include "http/handler.h"
#include "http/server.h"
#include "toy.h"

#define KEEP_MS 3600000

/* ---- the kind -------------------------------------------------------------------------------- */

/* A subject is the name of its tenant. */
static void *
find(void *cookie UNUSED, const char *tenant, const char *name)
{
    return strcmp(name, TOY_SUBJECT) == 0 ? il__strdup(tenant) : NULL;
}

static void *
ref(void *subject)
{
    char *copy = il__strdup(subject);

    CHECK(copy != NULL);
    return copy;
}

static void
plan(void *cookie UNUSED, const void *subject, struct work_plan *ret)
{
    *ret = (struct work_plan){ .tenant = subject, .name = TOY_SUBJECT, .version = "1" };
}

/* Where slots of other processes are looked for: the tests use no other tenant. */
static void
tenants(void *cookie UNUSED, bool (*each)(void *each_cookie, const char *tenant), void *each_cookie)
{
    IGNORE(each(each_cookie, "default"));
}

static bool
execute(struct work_run *run)
{
    const struct toy *toy = run->cookie;
    json_int_t        n   = json_integer_value(json_object_get(run->parameters, "n"));

    work_run_stage(run, "counting", 50);
    if (json_is_true(json_object_get(run->parameters, "break"))) {
        work_run_fail(run, false, "the toy is broken");
        return false;
    }
    http_app_count(toy->server, &toy_http_app, TOY_METRIC_RUNS, 0, n);
    return true;
}

static void
note(void *cookie UNUSED, const struct work_note *n UNUSED)
{
}

static const struct work_kind kind = {
    .class    = TOY_CLASS,
    .presence = "interlock.toy",
    .find     = find,
    .ref      = ref,
    .drop     = il__free,
    .plan     = plan,
    .tenants  = tenants,
    .execute  = execute,
    .note     = note,
};

il_status
toy_start_work(struct toy *toy, il_error *reterr)
{
    struct work_options o  = { .kind   = &kind,
                               .cookie = toy,
                               .h      = toy->server->h,
                               .data   = toy->server->data,
                               .mode   = WORK_SERVE };
    il_status           st = work_open(&o, &toy->work, reterr);

    return st == IL_OK ? work_start(toy->work, reterr) : st;
}

/* ---- POST /toy/runs -------------------------------------------------------------------------- */

static void
end_start(struct http_request *r)
{
    il_op_release(r->ended_cookie);
}

static void
started(struct http_request *r)
{
    const il_op *op = r->ended_cookie;

    if (op->status != IL_OK || op->out.n_runs == 0) {
        http_fail_op(r, op, toy_http_app.name);
        return;
    }
    work_slot_created(toy_of(r)->work, r->caller->tenant, op->out.runs[0].id, TOY_SUBJECT);
    toy_say(r, op->out.runs[0].id, 0);
}

void
toy_run(struct http_request *r)
{
    const struct toy_in *in         = toy_take(r);
    const char          *id         = in != NULL ? http_new_id(r, 0) : NULL;
    il_op               *op         = http_alloc(r, sizeof *op);
    json_t              *parameters = NULL;
    il_error             err;

    if (id == NULL)
        return; /* answered */
    if (op != NULL)
        parameters =
            json_pack("{s:I, s:b}", "n", (json_int_t)in->n, "break", (in->flags & TOY_BREAK) != 0);
    struct work_start s  = { .tenant     = r->caller->tenant,
                             .class      = TOY_CLASS,
                             .name       = TOY_SUBJECT,
                             .id         = id,
                             .by         = r->caller->key_id,
                             .type       = "api",
                             .parameters = parameters,
                             .policy     = IL_POLICY_QUEUE,
                             .queue_max  = 100,
                             .keep_ms    = KEEP_MS };
    il_status         st = parameters != NULL ? work_start_op(&s, &r->mem, op, &err) : IL_NOMEM;
    json_decref(parameters);
    if (st != IL_OK) {
        http_fail_nomem(r);
        return;
    }
    r->ended        = end_start;
    r->ended_cookie = op;
    http_do_ops(r, op, 1, 0, started);
}
