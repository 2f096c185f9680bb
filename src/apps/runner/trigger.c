/*
 * trigger.c: the op of a trigger, and triggers that may block (the CLI, schedules).
 *
 * A trigger is one op (work_start_op()), which executes nothing: see apps/work. trigger_plan.c
 * decides what happens around the op.
 */
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "apps/runner/trigger_plan.h"
#include "base/arena.h"
#include "base/error.h"

/* ---- parameters ------------------------------------------------------------------------------ */

/* A scalar as text; NULL: out of memory. Not for null. */
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
        return il__error_set(
            reterr, IL_INVAL,
            "pipeline '%s': invalid parameter name '%.80s' (use at most 64 letters, "
            "digits and '_', no reserved names)",
            p->id, name);
    if (json_is_object(value) || json_is_array(value))
        return il__error_set(
            reterr, IL_INVAL,
            "pipeline '%s': parameter '%s' is an %s; it must be a string, a number or a boolean",
            p->id, name, json_is_object(value) ? "object" : "array");
    if (json_is_string(value) && strlen(json_string_value(value)) != json_string_length(value))
        return il__error_set(reterr, IL_INVAL, "pipeline '%s': parameter '%s' contains a NUL",
                             p->id, name);
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
    /* Iterating does not modify the object, but the library's functions take it as non-const. */
    union {
        const json_t *given;
        json_t       *plain;
    } all = { .given = parameters };

    ret->n = 0;
    if (parameters != NULL && !json_is_object(parameters))
        return il__error_set(reterr, IL_INVAL, "pipeline '%s': the parameters must be an object",
                             p->id);
    for (void *at = json_object_iter(all.plain); at != NULL;
         at       = json_object_iter_next(all.plain, at)) {
        const char   *name  = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        if (check_parameter(p, name, value, reterr) != IL_OK)
            return IL_INVAL;
        if (json_is_null(value))
            continue; /* as if it were missing */
        if (ret->n == PIPELINE_PARAMETERS_MAX)
            return il__error_set(reterr, IL_INVAL, "pipeline '%s': more than %d parameters", p->id,
                                 PIPELINE_PARAMETERS_MAX);
        ret->items[ret->n].name  = il__arena_strdup(mem, name);
        ret->items[ret->n].value = scalar_text(value, mem);
        if (ret->items[ret->n].name == NULL || ret->items[ret->n].value == NULL)
            return il__error_set(reterr, IL_NOMEM, "out of memory for the parameters");
        ret->n++;
    }
    for (size_t i = 0; i < p->n_parameters; i++) {
        const struct pipeline_parameter *known = &p->parameters[i];
        if (is_given(parameters, known->name))
            continue;
        if (known->fallback == NULL)
            return il__error_set(reterr, IL_INVAL, "pipeline '%s': parameter '%s' is required",
                                 p->id, known->name);
        CHECK(ret->n < ARRAY_LEN(ret->items));
        ret->items[ret->n].name    = known->name; /* the pipeline's, which the run keeps */
        ret->items[ret->n++].value = known->fallback;
    }
    return IL_OK;
}

/* ---- the op ---------------------------------------------------------------------------------- */

il_status
runner_trigger_op(const struct runner_trigger *t, void **mem, il_op *op, il_error *reterr)
{
    struct pipeline_values values;
    struct work_start      start = {
             .tenant     = t->tenant,
             .class      = runner_kind.class,
             .name       = t->pipeline->id,
             .version    = t->pipeline->version,
             .id         = t->id,
             .by         = t->by,
             .type       = t->type,
             .parameters = t->parameters,
             .policy     = t->pipeline->on_conflict,
             .queue_max  = t->pipeline->queue_max,
             .live_max   = t->live_max,
             .day_max    = t->day_max,
             .minute_max = t->minute_max,
             .hour_max   = t->hour_max,
             .keep_ms    = t->keep_ms,
    };

    il_status st = runner_values(t->pipeline, t->parameters, mem, &values, reterr);
    if (st == IL_OK)
        st = work_start_op(&start, mem, op, reterr);
    return st;
}

void
runner_trigger_message(const char *pipeline_id, bool is_new, char out[RUNNER_MESSAGE_BYTES])
{
    (void)snprintf(out, RUNNER_MESSAGE_BYTES,
                   is_new ? "Pipeline %s triggered successfully (async mode)"
                          : "Pipeline %s already running - returning existing execution",
                   pipeline_id); /* the buffer fits */
}

int64_t
runner_trigger_limit(enum runner_answer answer, uint32_t live_max, uint32_t day_max,
                     const char **ret_what)
{
    switch (answer) {
    case RUNNER_TOO_MANY:
        *ret_what = "concurrent pipeline runs";
        return live_max;
    case RUNNER_DAY_OVER:
        *ret_what = "pipeline runs per day (UTC)";
        return day_max;
    default:
        return 0;
    }
}

void
runner_refusal_message(enum runner_answer answer, const char *pipeline_id, uint32_t live_max,
                       uint32_t day_max, char out[RUNNER_MESSAGE_BYTES])
{
    const char *what  = NULL;
    int64_t     limit = runner_trigger_limit(answer, live_max, day_max, &what);

    if (what != NULL)
        (void)snprintf(out, RUNNER_MESSAGE_BYTES, "the tenant has reached its limit of %lld %s",
                       (long long)limit, what);
    else
        (void)snprintf(out, RUNNER_MESSAGE_BYTES, "Pipeline %s is already running", pipeline_id);
}

/* ---- one probe of a pipeline at a time ----------------------------------------------------- */

/* True: it leads. False: the probe that it followed has ended, or the runner stops. */
static bool
lead_or_wait(struct runner *r, struct trigger_probe *me)
{
    il__mutex_lock(&r->mutex);
    bool leads = trigger_probe_begin(&r->probes, me);
    while (!leads && !me->ended && !work_is_stopping(r->work))
        (void)il__cond_wait(&r->idle, &r->mutex, -1);
    if (!leads && !me->ended)
        trigger_probe_leave(me);
    il__mutex_unlock(&r->mutex);
    return leads;
}

static void
end_probe(struct runner *r, struct trigger_probe *me, il_status st, const char *outside,
          const il_error *error)
{
    il__mutex_lock(&r->mutex);
    bool is_followed = trigger_probe_end(&r->probes, me, st, outside, error) != NULL;
    if (is_followed)
        CHECK(pthread_cond_broadcast(&r->idle) == 0);
    il__mutex_unlock(&r->mutex);
}

il_status
runner_probe(struct runner *r, const struct pipeline *p, const struct pipeline_values *v,
             bool *ret_followed, char **ret_id, il_error *reterr)
{
    struct trigger_probe me = { .pipeline = p, .values = v };

    *ret_followed = false;
    if (p->preflight == PIPELINE_NO_PROBE)
        return IL_OK;
    if (lead_or_wait(r, &me)) {
        il_status st = runner_preflight(r, p, v, ret_id, reterr);
        end_probe(r, &me, st, *ret_id, reterr);
        return st;
    }
    *ret_followed = true;
    if (!me.ended)
        return il__error_set(reterr, IL_CANCELLED, "pipeline %s: the server is shutting down",
                             p->id);
    *ret_id = me.outside;
    if (reterr != NULL)
        *reterr = me.error;
    return me.status;
}

/* ---- complete triggers ----------------------------------------------------------------------- */

static void
look(struct runner *r, const struct runner_trigger *t, struct trigger_event *e, il_error *reterr)
{
    il_op op = trigger_look_op(t->pipeline);

    op.tenant = t->tenant;
    e->what   = TRIGGER_LOOKED;
    e->status = il_apply(r->o.h, &op, 1, reterr);
    if (e->status == IL_OK && op.status != IL_OK)
        e->status =
            il__error_set(reterr, op.status, "%s: %s", t->pipeline->key,
                          op.out.detail != NULL ? op.out.detail : il_status_text(op.status));
    e->live = op.out.n_runs > 0;
    il_op_release(&op);
}

static void
probe(struct runner *r, const struct runner_trigger *t, char **ret_id, struct trigger_event *e,
      il_error *reterr)
{
    AUTO(il__arena_free) void *mem = NULL;
    struct pipeline_values     values;
    bool                       followed = false;

    e->status = runner_values(t->pipeline, t->parameters, &mem, &values, reterr);
    if (e->status == IL_OK)
        e->status = runner_probe(r, t->pipeline, &values, &followed, ret_id, reterr);
    e->what    = followed ? TRIGGER_FOLLOWED : TRIGGER_PROBED;
    e->outside = *ret_id;
}

static void
start(struct runner *r, il_op *op, struct trigger_event *e, il_error *reterr)
{
    e->what   = TRIGGER_STARTED;
    e->status = il_apply(r->o.h, op, 1, reterr);
    if (e->status == IL_STORE) /* safe to repeat: its id is the same */
        e->status = il_apply(r->o.h, op, 1, reterr);
}

/* Follow the plan until it has an answer. IL_OK, or why the last step failed as a whole. */
static il_status
drive(struct runner *r, const struct runner_trigger *t, struct trigger_plan *plan, il_op *op,
      char **ret_outside_id, il_error *reterr)
{
    struct trigger_event e    = { .status = IL_OK };
    enum trigger_do      what = trigger_begin(plan, t->pipeline, op);

    while (what != TRIGGER_END) {
        if (what == TRIGGER_LOOK) {
            look(r, t, &e, reterr);
        } else if (what == TRIGGER_PROBE) {
            probe(r, t, ret_outside_id, &e, reterr);
        } else if (what == TRIGGER_PAUSE) {
            il_op_release(op);
            e.what     = TRIGGER_PAUSED;
            e.stopping = !work_pause(r->work, t->pipeline->lock_retry_delay_ms);
        } else {
            start(r, op, &e, reterr);
        }
        what = trigger_next(plan, &e);
    }
    return e.status;
}

/* A schedule, or a trigger on the command line, was refused: for the history of the pipeline's key,
 * sent without waiting for an answer. (The server reports its own refusals.) */
static void
report_refusal(struct runner *r, const struct runner_trigger *t, const struct trigger_plan *plan)
{
    json_t *caller = json_pack("{s:s, s:s, s:s}", "pipeline", t->pipeline->id, "trigger", t->type,
                               "by", t->by != NULL ? t->by : "");
    char   *meta   = caller != NULL ? json_dumps(caller, JSON_COMPACT) : NULL;
    bool    skips  = plan->answer == RUNNER_SKIPPED;
    il_op   op     = { .type       = IL_OP_REFUSED,
                       .tenant     = t->tenant,
                       .key        = t->pipeline->key,
                       .holder     = plan->holder,
                       .in.refused = { .meta = meta, .reason = skips ? "skipped" : NULL } };

    if (meta != NULL && (plan->answer == RUNNER_REJECTED || skips))
        IGNORE(il_apply(r->o.h, &op, 1, NULL) != IL_OK);
    il_op_release(&op);
    free(meta);
    json_decref(caller);
}

/* The answer is read after the op's inputs have been freed. */
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
    AUTO(il__arena_free) void *mem  = NULL;
    struct trigger_plan        plan = { .answer = RUNNER_FAILED };

    *op          = (il_op){ .type = IL_OP_NONE, .status = IL_INVAL };
    il_status st = runner_trigger_op(t, &mem, op, reterr);
    if (st == IL_OK)
        st = drive(r, t, &plan, op, ret_outside_id, reterr);
    if (st != IL_OK)
        op->status = st;
    else if (plan.answer == RUNNER_FAILED)
        (void)il__error_set(reterr, op->status, "pipeline '%s': %s", t->pipeline->id,
                            op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
    if (plan.id != NULL && plan.run == NULL && *ret_outside_id == NULL &&
        (*ret_outside_id = il__strdup(plan.id)) == NULL) {
        (void)il__error_set(reterr, IL_NOMEM, "out of memory for a trigger");
        plan.answer = RUNNER_FAILED;
    }
    if (plan.execute)
        work_slot_created(r->work, t->tenant, t->id, t->pipeline->id);
    report_refusal(r, t, &plan);
    *ret_unheard = plan.unheard;
    forget_inputs(op);
    return plan.answer;
}
