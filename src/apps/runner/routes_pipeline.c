/*
 * routes_pipeline.c: GET /pipelines: the configured pipelines with their last and next runs.
 */
#include "apps/runner/serve.h"
#include "base/clock.h"
#include "core/limits.h"
#include "http/auth.h"
#include "http/server.h"

#define PIPELINES_DEFAULT 100
_Static_assert(RUNNER_PAGE_MAX <= IL_BATCH_OPS_MAX, "their last runs are asked for at once");

struct list_work {
    struct runner_page_in in;
    struct pipeline *items[RUNNER_PAGE_MAX + 1]; /* referenced; the last one means more follow */
    size_t           n;
    il_op           *ops; /* the last run of each */
};

static void
end_list(struct http_request *r)
{
    struct list_work *w = r->ended_cookie;

    for (size_t i = 0; i < w->n; i++)
        il__pipeline_unref(w->items[i]);
}

/* The pipeline and its newest run. False: out of memory. */
static bool
show(struct http_request *r, const struct pipeline *p, const il_op *runs,
     struct runner_pipeline_out *ret)
{
    int64_t next_ms = il__pipeline_next_tick(p, il__clock_wall_ms());

    *ret = (struct runner_pipeline_out){
        .id              = p->id,
        .tenant          = p->tenant,
        .description     = p->description,
        .version         = p->version,
        .schedule        = p->schedule_text,
        .zone            = p->schedule_text != NULL && p->zone != NULL ? p->zone->name : NULL,
        .on_conflict     = il_policy_name(p->on_conflict),
        .next_at_ms      = next_ms != IL__NEVER ? next_ms : 0,
        .timeout_ms      = p->timeout_ms,
        .lock_timeout_ms = p->lock_timeout_ms,
        .has             = p->preflight != PIPELINE_NO_PROBE ? RUNNER_HAS_PREFLIGHT : 0,
    };
    if (runs->out.n_runs == 0)
        return true;
    ret->has |= RUNNER_HAS_LAST;
    return runner_run_show(&runs->out.runs[0], &r->mem, &ret->last);
}

/* False: the request has been answered. */
static bool
runs_came(struct http_request *r)
{
    for (size_t i = 0; i < r->n_ops; i++) {
        if (r->ops[i].status != IL_OK) {
            http_fail_op(r, &r->ops[i], runner_http_app.name);
            return false;
        }
    }
    return true;
}

static void
ask_runs(struct http_request *r, size_t n, http_fn *then)
{
    struct list_work *w = r->ended_cookie;

    w->ops = http_calloc(r, n * sizeof *w->ops);
    if (w->ops == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        w->ops[i] =
            (il_op){ .type = IL_OP_RUN_LIST, .key = w->items[i]->key, .in.list = { .limit = 1 } };
    http_do_ops(r, w->ops, n, 0, then);
}

static struct list_work *
new_work(struct http_request *r)
{
    struct list_work *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return NULL;
    r->ended        = end_list;
    r->ended_cookie = w;
    return w;
}

/* ---- several pipelines ----------------------------------------------------------------------- */

static void
answer_list(struct http_request *r)
{
    const struct list_work     *w     = r->ended_cookie;
    size_t                      n     = MIN(w->n, w->in.limit);
    struct runner_pipeline_out *items = http_alloc(r, (n + 1) * sizeof *items);

    if (!runs_came(r))
        return;
    for (size_t i = 0; items != NULL && i < n; i++) {
        if (!show(r, w->items[i], &w->ops[i], &items[i]))
            items = NULL;
    }
    if (items == NULL) {
        http_fail_nomem(r);
        return;
    }
    http_say_page(r, &runner_out_pipeline, items, sizeof *items, n,
                  w->n > n ? w->items[n - 1]->id : NULL);
}

/* A page of the pipelines visible to the caller, and one more. */
static void
gather(struct http_request *r, struct list_work *w)
{
    struct pipeline_catalogue *c     = runner_app_of(r)->catalogue;
    const char                *after = w->in.cursor;
    size_t                     want  = w->in.limit + 1;

    while (w->n < want) {
        size_t got =
            il__catalogue_list(c, r->caller->tenant, after != NULL ? r->caller->tenant : NULL,
                               after, &w->items[w->n], want - w->n);
        size_t end = w->n + got;
        bool   all = got < want - w->n;
        if (got == 0)
            return;
        after = il__arena_strdup(&r->mem, w->items[end - 1]->id);
        for (size_t i = w->n; i < end; i++) {
            if (http_may_see(r, w->items[i]->key))
                w->items[w->n++] = w->items[i];
            else
                il__pipeline_unref(w->items[i]);
        }
        if (all || after == NULL)
            return;
    }
}

void
runner_http_pipeline_list(struct http_request *r)
{
    struct list_work *w = new_work(r);

    if (w == NULL || !http_take_query(r, &w->in))
        return;
    if (w->in.limit == 0)
        w->in.limit = PIPELINES_DEFAULT;
    gather(r, w);
    if (w->n == 0)
        http_say_page(r, &runner_out_pipeline, NULL, sizeof(struct runner_pipeline_out), 0, NULL);
    else
        ask_runs(r, MIN(w->n, w->in.limit), answer_list);
}

/* ---- one pipeline ---------------------------------------------------------------------------- */

/* ["a","b"]: the dependencies of a step. NULL: out of memory. */
static const char *
needs_of(struct http_request *r, const struct pipeline *p, const struct pipeline_step *s)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, (size_t)PIPELINE_STEPS_MAX * (PIPELINE_ID_BYTES_MAX + 4) + 4);
    il__buf_addc(&b, '[');
    for (size_t i = 0; i < s->n_needs; i++) {
        if (i > 0)
            il__buf_addc(&b, ',');
        il__wire_print_text(&b, p->steps[s->needs[i]].id);
    }
    il__buf_addc(&b, ']');
    return b.failed ? NULL : il__arena_strdup(&r->mem, il__buf_str(&b));
}

static bool
show_steps(struct http_request *r, const struct pipeline *p, struct runner_pipeline_out *out)
{
    static const char *const on_failure[] = {
        [PIPELINE_STOP] = "stop", [PIPELINE_CONTINUE] = "continue", [PIPELINE_ALERT] = "alert"
    };
    struct runner_step_about    *steps = http_alloc(r, (p->n_steps + 1) * sizeof *steps);
    struct runner_parameter_out *parameters =
        http_alloc(r, (p->n_parameters + 1) * sizeof *parameters);

    if (steps == NULL || parameters == NULL)
        return false;
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct pipeline_step *s = &p->steps[i];
        steps[i]                      = (struct runner_step_about){
                                 .id         = s->id,
                                 .type       = il__pipeline_step_types[s->type],
                                 .needs      = needs_of(r, p, s),
                                 .on_failure = on_failure[s->on_failure],
                                 .level      = s->level,
                                 .retries    = s->retries,
                                 .timeout_ms = s->timeout_ms,
        };
        if (steps[i].needs == NULL)
            return false;
    }
    for (size_t i = 0; i < p->n_parameters; i++)
        parameters[i] =
            (struct runner_parameter_out){ .name     = p->parameters[i].name,
                                           .fallback = p->parameters[i].fallback,
                                           .required = p->parameters[i].fallback == NULL };
    out->steps        = steps;
    out->n_steps      = p->n_steps;
    out->parameters   = parameters;
    out->n_parameters = p->n_parameters;
    return true;
}

static void
answer_one(struct http_request *r)
{
    const struct list_work    *w = r->ended_cookie;
    struct runner_pipeline_out out;

    if (!runs_came(r))
        return;
    if (!show(r, w->items[0], &w->ops[0], &out) || !show_steps(r, w->items[0], &out))
        http_fail_nomem(r);
    else
        http_say(r, 200, &runner_out_pipeline_full, &out);
}

void
runner_http_pipeline_get(struct http_request *r)
{
    struct list_work *w = new_work(r);

    if (w == NULL)
        return;
    w->items[0] = runner_app_pipeline(r, r->args[0]);
    w->n        = w->items[0] != NULL;
    if (w->n > 0)
        ask_runs(r, 1, answer_one);
}
