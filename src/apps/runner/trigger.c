/*
 * trigger.c: what a trigger asks of the store, and what the answer means.
 *
 * A trigger is one op: RUN_START with IL_RUN_SLOT. The store decides, in one commit, whether there is a new run, which one is there already, and whether
 * the tenant may have one more. Nothing is executed by that: see dispatch.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

/* ---- parameters --------------------------------------------------------------------------------------------------------------- */

/* A scalar as text; NULL: no memory. Not for null. */
static const char *
scalar_text(const json_t *value, void **mem)
{
    char text[64];

    if (json_is_string(value))
        return il__arena_strdup(mem, json_string_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (json_is_integer(value)) {
        (void)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return il__arena_strdup(mem, text);
    }
    (void)snprintf(text, sizeof text, "%.17g", json_real_value(value));
    return il__arena_strdup(mem, text);
}

static il_status
check_parameter(const struct pipeline *p, const char *name, const json_t *value, il_error *reterr)
{
    if (!il__pipeline_parameter_ok(name))
        return il__error_set(reterr, IL_INVAL,
                             "pipeline '%s': '%.80s' cannot be the name of a parameter: letters, "
                             "digits and '_', at most 64, none of the runner's own",
                             p->id, name);
    if (json_is_object(value) || json_is_array(value))
        return il__error_set(reterr, IL_INVAL,
                             "pipeline '%s': parameter '%s' is an %s; it must be a text, a number, "
                             "true or false",
                             p->id, name, json_is_object(value) ? "object" : "array");
    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value))
        return il__error_set(reterr, IL_INVAL, "pipeline '%s': parameter '%s' holds a NUL", p->id,
                             name);
    return IL_OK;
}

static bool
is_given(const json_t *parameters, const char *name)
{
    const json_t *value = json_object_get(parameters, name);

    return value != NULL && !json_is_null(value);
}

il_status
runner_values(const struct pipeline *p, const json_t *parameters, void **mem,
              struct pipeline_values *ret, il_error *reterr)
{
    /* To iterate over it changes nothing, but the library's functions do not say so. */
    union {
        const json_t *given;
        json_t       *plain;
    } all = { .given = parameters };

    ret->n = 0;
    for (void *at = json_object_iter(all.plain); at != NULL; at = json_object_iter_next(all.plain, at)) {
        const char   *name  = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        if (check_parameter(p, name, value, reterr) != IL_OK)
            return IL_INVAL;
        if (json_is_null(value))
            continue; /* as if it were not there */
        if (ret->n == PIPELINE_PARAMETERS_MAX)
            return il__error_set(reterr, IL_INVAL, "pipeline '%s': more than %d parameters are given",
                                 p->id, PIPELINE_PARAMETERS_MAX);
        ret->items[ret->n].name  = il__arena_strdup(mem, name);
        ret->items[ret->n].value = scalar_text(value, mem);
        if (ret->items[ret->n].name == NULL || ret->items[ret->n].value == NULL)
            return il__error_set(reterr, IL_NOMEM, "no memory for the parameters");
        ret->n++;
    }
    for (size_t i = 0; i < p->n_parameters; i++) {
        const struct pipeline_parameter *known = &p->parameters[i];
        if (is_given(parameters, known->name))
            continue;
        if (known->fallback == NULL)
            return il__error_set(reterr, IL_INVAL,
                                 "pipeline '%s': parameter '%s' has no default and must be given",
                                 p->id, known->name);
        CHECK(ret->n < ARRAY_LEN(ret->items));
        ret->items[ret->n].name    = known->name; /* the pipeline's, which the run keeps */
        ret->items[ret->n++].value = known->fallback;
    }
    return IL_OK;
}

/* ---- the op ----------------------------------------------------------------------------------------------------------------------- */

static il_status
make_meta(const struct runner_trigger *t, void **mem, const char **ret, il_error *reterr)
{
    json_t   *meta = json_pack("{s:s, s:s, s:O}", "pipeline", t->pipeline->id, "version",
                             t->pipeline->version != NULL ? t->pipeline->version : "", "parameters",
                               t->parameters);
    char     *text = meta != NULL ? json_dumps(meta, JSON_COMPACT) : NULL;
    il_status st   = IL_OK;

    json_decref(meta);
    if (text == NULL)
        st = il__error_set(reterr, IL_NOMEM, "no memory for the parameters");
    else if (strlen(text) > RUNNER_META_BYTES_MAX)
        st = il__error_set(
            reterr, IL_LIMIT,
            "pipeline '%s': the parameters take %zu bytes as JSON; a run keeps at most %d",
            t->pipeline->id, strlen(text), RUNNER_META_BYTES_MAX);
    else if ((*ret = il__arena_strdup(mem, text)) == NULL)
        st = il__error_set(reterr, IL_NOMEM, "no memory for the parameters");
    free(text);
    return st;
}

/* The strings of the op that are the caller's or the pipeline's: the op may outlive both. */
static bool
copy_names(const struct runner_trigger *t, void **mem, il_op *op)
{
    op->tenant         = il__arena_strdup(mem, t->tenant);
    op->key            = il__arena_strdup(mem, t->pipeline->key);
    op->in.run.id      = il__arena_strdup(mem, t->id);
    op->in.run.trigger = il__arena_strdup(mem, t->type);
    op->in.run.by      = il__arena_strdup(mem, t->by != NULL ? t->by : "");
    return op->tenant != NULL && op->key != NULL && op->in.run.id != NULL &&
           op->in.run.trigger != NULL && op->in.run.by != NULL;
}

/* A run that counts for the day is there until the day is over, however short runs are kept. */
static int64_t
keep_ms(const struct runner_trigger *t)
{
    if (t->day_max == 0 || t->keep_ms == 0)
        return t->keep_ms;
    return MAX(t->keep_ms, IL__DAY_MS - il__clock_wall_ms() % IL__DAY_MS + RUNNER_CLOCKS_MS);
}

il_status
runner_trigger_op(const struct runner_trigger *t, void **mem, il_op *op, il_error *reterr)
{
    struct pipeline_values values;
    const char            *meta = NULL;
    json_t                *none = NULL;
    struct runner_trigger  full = *t;

    if (t->parameters != NULL && !json_is_object(t->parameters))
        return il__error_set(reterr, IL_INVAL, "pipeline '%s': the parameters are no object",
                             t->pipeline->id);
    if (t->parameters == NULL) {
        none = json_object();
        if (none == NULL)
            return il__error_set(reterr, IL_NOMEM, "no memory for a trigger");
        full.parameters = none;
    }
    il_status st = runner_values(t->pipeline, full.parameters, mem, &values, reterr);
    if (st == IL_OK)
        st = make_meta(&full, mem, &meta, reterr);
    json_decref(none);
    if (st != IL_OK)
        return st;
    *op = (il_op){ .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT };
    if (!copy_names(t, mem, op))
        return il__error_set(reterr, IL_NOMEM, "no memory for a trigger");
    op->in.run.policy    = t->pipeline->on_conflict;
    op->in.run.queue_max = t->pipeline->queue_max;
    op->in.run.keep_ms   = keep_ms(t);
    op->in.run.meta      = meta;
    op->in.run.live_max  = t->live_max;
    op->in.run.day_max   = t->day_max;
    return IL_OK;
}

enum runner_answer
runner_trigger_answer(const il_op *op)
{
    /* The run is there because of this trigger: it was repeated, for its answer was lost. */
    bool own = op->out.n_runs > 0 && strcmp(op->out.runs[0].id, op->in.run.id) == 0;

    switch (op->status) {
    case IL_OK:
        return RUNNER_TRIGGERED;
    case IL_DUPLICATE:
        if (own)
            return RUNNER_TRIGGERED;
        return (op->out.flags & IL_OUT_SKIPPED) != 0 ? RUNNER_SKIPPED : RUNNER_RUNNING;
    case IL_STATE:
        return own ? RUNNER_TRIGGERED : RUNNER_FAILED;
    case IL_HELD:
        return RUNNER_REJECTED;
    case IL_LIMIT:
        return (op->out.flags & IL_OUT_LIVE_LIMIT) != 0  ? RUNNER_TOO_MANY
               : (op->out.flags & IL_OUT_DAY_LIMIT) != 0 ? RUNNER_DAY_OVER
                                                         : RUNNER_QUEUE_FULL;
    default:
        return RUNNER_FAILED;
    }
}

void
runner_trigger_message(const char *pipeline_id, bool is_new, char out[RUNNER_MESSAGE_BYTES])
{
    (void)snprintf(out, RUNNER_MESSAGE_BYTES,
                   is_new ? "Pipeline %s triggered successfully (async mode)"
                          : "Pipeline %s already running - returning existing execution",
                   pipeline_id); /* there is room */
}

/* ---- the whole of it ------------------------------------------------------------------------------------------------------------- */

/* The store could not be asked: later it may well be. */
static bool
is_unheard(il_status st)
{
    return st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
}

/* Has the pipeline a live run? Then the outside world need not be asked: the store knows. */
static il_status
has_live_run(struct runner *r, const struct runner_trigger *t, bool *ret, il_error *reterr)
{
    il_op op = { .type = IL_OP_RUN_LIST, .tenant = t->tenant, .key = t->pipeline->key };

    op.in.list.states = 1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING;
    op.in.list.limit  = 1;
    il_status st      = il_apply(r->o.h, &op, 1, reterr);
    if (st == IL_OK && op.status != IL_OK)
        st = il__error_set(reterr, op.status, "%s: %s", t->pipeline->key,
                           op.out.detail != NULL ? op.out.detail : il_status_text(op.status));
    if (st == IL_OK)
        *ret = op.out.n_runs > 0;
    il_op_release(&op);
    return st;
}

/* *ret_unheard: the store did not answer. A probe that cannot tell is another matter. */
static il_status
ask_outside(struct runner *r, const struct runner_trigger *t, char **ret_outside_id,
            bool *ret_unheard, il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    struct pipeline_values     values;
    bool                       live = false;

    if (t->pipeline->preflight == PIPELINE_NO_PROBE)
        return IL_OK;
    il_status st = has_live_run(r, t, &live, reterr);
    *ret_unheard = is_unheard(st);
    if (st != IL_OK || live)
        return st;
    st = runner_values(t->pipeline, t->parameters, &mem, &values, reterr);
    return st == IL_OK ? runner_preflight(r, t->pipeline, &values, ret_outside_id, reterr) : st;
}

bool
runner_pause(struct runner *r, int64_t ms)
{
    int64_t until_ns = il__clock_boot_ns() + ms * IL__NS_PER_MS;

    runner_lock(&r->mutex);
    for (;;) {
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (left_ns <= 0 || r->stopping)
            break;
        runner_wait(&r->idle, &r->mutex, left_ns);
    }
    bool go_on = !r->stopping;
    runner_unlock(&r->mutex);
    return go_on;
}

/* Give an op its own strings' owner: the answer is read after *mem is gone, so inputs are cut off. */
static void
forget_inputs(il_op *op)
{
    op->tenant = op->key = NULL;
    op->in.run           = (il_run_in){ .id = NULL };
}

enum runner_answer
runner_trigger(struct runner *r, const struct runner_trigger *t, il_op *op, char **ret_outside_id,
               il_error *reterr)
{
    bool unheard;

    return runner_trigger_heard(r, t, op, ret_outside_id, &unheard, reterr);
}

enum runner_answer
runner_trigger_heard(struct runner *r, const struct runner_trigger *t, il_op *op,
                     char **ret_outside_id, bool *ret_unheard, il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    uint32_t retries = t->pipeline->on_conflict == IL_POLICY_REJECT ? t->pipeline->lock_retries : 0;
    enum runner_answer answer = RUNNER_FAILED;

    *ret_unheard = false;
    *op          = (il_op){ .type = IL_OP_NONE, .status = IL_INVAL };
    il_status st = runner_trigger_op(t, &mem, op, reterr);
    if (st == IL_OK)
        st = ask_outside(r, t, ret_outside_id, ret_unheard, reterr);
    if (st == IL_HELD && *ret_outside_id != NULL) {
        forget_inputs(op);
        op->status = IL_HELD;
        return t->pipeline->on_conflict == IL_POLICY_JOIN   ? RUNNER_RUNNING
               : t->pipeline->on_conflict == IL_POLICY_SKIP ? RUNNER_SKIPPED
                                                            : RUNNER_REJECTED;
    }
    while (st == IL_OK) {
        st = il_apply(r->o.h, op, 1, reterr);
        if (st == IL_STORE) /* repeating it does no harm: its id is the same */
            st = il_apply(r->o.h, op, 1, reterr);
        answer       = st == IL_OK ? runner_trigger_answer(op) : RUNNER_FAILED;
        *ret_unheard = is_unheard(st != IL_OK ? st : op->status);
        if (answer != RUNNER_REJECTED || retries == 0)
            break;
        retries--;
        if (!runner_pause(r, t->pipeline->lock_retry_delay_ms))
            break;
        il_op_release(op);
    }
    if (st != IL_OK)
        op->status = st;
    else if (answer == RUNNER_FAILED)
        (void)il__error_set(reterr, op->status, "pipeline '%s': %s", t->pipeline->id,
                            op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
    if (answer == RUNNER_TRIGGERED && op->status == IL_OK)
        runner_want(r, t->tenant, t->id, t->pipeline->id);
    forget_inputs(op);
    return answer;
}
