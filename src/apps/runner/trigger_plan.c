/*
 * trigger_plan.c: the rules of a trigger; the contract is in trigger_plan.h.
 */
#include "apps/runner/trigger_plan.h"

static enum trigger_do
end(struct trigger_plan *plan, enum runner_answer answer)
{
    plan->answer = answer;
    return TRIGGER_END;
}

static bool
is_unheard(il_status st)
{
    return st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
}

/* Someone else runs it: join and skip report that run, the other policies refuse. */
static enum runner_answer
answer_by_policy(const struct pipeline *p)
{
    return p->on_conflict == IL_POLICY_JOIN   ? RUNNER_RUNNING
           : p->on_conflict == IL_POLICY_SKIP ? RUNNER_SKIPPED
                                              : RUNNER_REJECTED;
}

bool
trigger_is_slow(const struct pipeline *p)
{
    return p->preflight != PIPELINE_NO_PROBE ||
           (p->on_conflict == IL_POLICY_REJECT && p->lock_retries > 0);
}

il_op
trigger_look_op(const struct pipeline *p)
{
    return (il_op){
        .type    = IL_OP_RUN_LIST,
        .key     = p->key,
        .in.list = { .limit = 1, .states = 1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING },
    };
}

enum trigger_do
trigger_begin(struct trigger_plan *plan, const struct pipeline *p, il_op *op)
{
    *plan = (struct trigger_plan){
        .pipeline  = p,
        .op        = op,
        .n_retries = p->on_conflict == IL_POLICY_REJECT ? p->lock_retries : 0,
        .answer    = RUNNER_FAILED,
    };
    return p->preflight != PIPELINE_NO_PROBE ? TRIGGER_LOOK : TRIGGER_START;
}

/* With a live run there is no need for a probe: the store knows. */
static enum trigger_do
looked(struct trigger_plan *plan, const struct trigger_event *e)
{
    plan->unheard = is_unheard(e->status);
    if (e->status != IL_OK)
        return end(plan, RUNNER_FAILED);
    return e->live ? TRIGGER_START : TRIGGER_PROBE;
}

static enum trigger_do
probed(struct trigger_plan *plan, const struct trigger_event *e)
{
    if (e->status == IL_OK)
        return TRIGGER_START;
    if (e->status != IL_HELD)
        return end(plan, RUNNER_UNPROBED);
    plan->outside = true;
    plan->holder  = e->outside;
    plan->id      = e->outside != NULL ? e->outside : "";
    return end(plan, answer_by_policy(plan->pipeline));
}

static enum runner_answer
trigger_answer(const il_op *op)
{
    /* The run was created by this very trigger, repeated because its answer was lost. */
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
               : (op->out.flags & (IL_OUT_MINUTE_LIMIT | IL_OUT_HOUR_LIMIT)) != 0
                   ? RUNNER_TOO_OFTEN
                   : RUNNER_QUEUE_FULL;
    default:
        return RUNNER_FAILED;
    }
}

/* The key is held, or another run is ahead of this one. */
static enum trigger_do
held(struct trigger_plan *plan)
{
    const il_op_out *out = &plan->op->out;

    plan->run    = out->n_runs > 0 ? out->runs[0].id : NULL;
    plan->holder = out->n_items > 0 ? out->items[0].holder : plan->run;
    /* A lock without a run of ours belongs to a classic client, whose value is the id of its
     * run, or to some other holder. */
    enum runner_answer answer = answer_by_policy(plan->pipeline);
    if (answer != RUNNER_REJECTED && plan->holder != NULL) {
        plan->id  = plan->holder;
        plan->run = NULL;
        return end(plan, answer);
    }
    if (plan->n_retries == 0)
        return end(plan, RUNNER_REJECTED);
    plan->n_retries--;
    plan->run = plan->holder    = NULL; /* they point into the op, which is released */
    plan->op->in.run.minute_max = plan->op->in.run.hour_max = 0; /* it was counted */
    return TRIGGER_PAUSE;
}

static enum trigger_do
started(struct trigger_plan *plan, const struct trigger_event *e)
{
    const il_op       *op     = plan->op;
    enum runner_answer answer = e->status == IL_OK ? trigger_answer(op) : RUNNER_FAILED;

    plan->unheard = is_unheard(e->status != IL_OK ? e->status : op->status);
    if (answer == RUNNER_REJECTED)
        return held(plan);
    if (answer == RUNNER_RUNNING || answer == RUNNER_SKIPPED) {
        CHECK(op->out.n_runs > 0); /* the store shows the existing run */
        plan->id = plan->run = op->out.runs[0].id;
    }
    plan->execute = answer == RUNNER_TRIGGERED && op->status == IL_OK;
    return end(plan, answer);
}

enum trigger_do
trigger_next(struct trigger_plan *plan, const struct trigger_event *e)
{
    switch (e->what) {
    case TRIGGER_LOOKED:
        return looked(plan, e);
    case TRIGGER_PROBED:
        return probed(plan, e);
    case TRIGGER_FOLLOWED: /* a refusal applies to us as well; otherwise much may have changed */
        return e->status == IL_OK ? TRIGGER_LOOK : probed(plan, e);
    case TRIGGER_STARTED:
        return started(plan, e);
    case TRIGGER_PAUSED:
        if (e->stopping)
            plan->n_retries = 0;
        return TRIGGER_START;
    }
    CHECK(false);
    return TRIGGER_END;
}

/* ---- one probe of a pipeline at a time ------------------------------------------------------- */

static bool
are_of_one(const struct pipeline *a, const struct pipeline *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->tenant, b->tenant) == 0;
}

/* The same values, in whatever order. Names are unique. */
static bool
are_equal(const struct pipeline_values *a, const struct pipeline_values *b)
{
    for (size_t i = 0; i < a->n; i++) {
        size_t k = 0;
        while (k < b->n && strcmp(a->items[i].name, b->items[k].name) != 0)
            k++;
        if (k == b->n || strcmp(a->items[i].value, b->items[k].value) != 0)
            return false;
    }
    return a->n == b->n;
}

static void
unlink_probe(struct trigger_probe **at, const struct trigger_probe *me)
{
    while (*at != me)
        at = &(*at)->next;
    *at = me->next;
}

bool
trigger_probe_begin(struct trigger_probe **list, struct trigger_probe *me)
{
    struct trigger_probe *leader = *list;

    while (leader != NULL && !are_of_one(leader->pipeline, me->pipeline))
        leader = leader->next;
    struct trigger_probe **to = leader != NULL ? &leader->followers : list;
    me->leader                = leader;
    me->next                  = *to;
    *to                       = me;
    return leader == NULL;
}

struct trigger_probe *
trigger_probe_end(struct trigger_probe **list, struct trigger_probe *me, il_status status,
                  const char *outside, const il_error *error)
{
    unlink_probe(list, me);
    for (struct trigger_probe *f = me->followers; f != NULL; f = f->next) {
        f->ended  = true;
        f->leader = NULL;
        if (status == IL_OK || !are_equal(f->values, me->values))
            continue;
        f->status = status;
        if (error != NULL)
            f->error = *error;
        f->outside = outside != NULL ? il__strdup(outside) : NULL;
    }
    return TAKE(me->followers);
}

void
trigger_probe_leave(struct trigger_probe *me)
{
    CHECK(me->leader != NULL);
    unlink_probe(&me->leader->followers, me);
    me->leader = NULL;
}
