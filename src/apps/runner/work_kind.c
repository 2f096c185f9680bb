/*
 * work_kind.c: pipelines as a kind of work (apps/work/work.h): which exist, what is planned for
 * them, how a tick is triggered, and what the log calls the events of their runs.
 */
#include "apps/runner/runner_internal.h"
#include "apps/runner/trigger_plan.h"

_Static_assert(PIPELINE_ID_BYTES_MAX <= WORK_NAME_BYTES_MAX, "an id is the name of a subject");

static void *
find(void *cookie, const char *tenant, const char *name)
{
    return il__catalogue_get(((struct runner *)cookie)->catalogue, tenant, name);
}

static void *
ref(void *subject)
{
    return il__pipeline_ref(subject);
}

static void
drop(void *subject)
{
    il__pipeline_unref(subject);
}

static void
plan(void *cookie, const void *subject, struct work_plan *ret)
{
    const struct pipeline *p = subject;

    *ret = (struct work_plan){
        .tenant           = p->tenant,
        .name             = p->id,
        .version          = p->version,
        .timeout_ms       = p->timeout_ms,
        .stall_timeout_ms = p->stall_timeout_ms,
        .lock_timeout_ms  = runner_lock_timeout_ms(cookie, p),
        .cron             = p->schedule_text != NULL ? &p->schedule : NULL,
        .zone             = p->zone,
        .catch_up_ms      = p->catch_up_ms,
        .slow             = trigger_is_slow(p),
        .on_success       = p->on_success,
        .on_failure       = p->on_failure,
        .on_lost          = p->on_lost,
        .slow_ms          = p->preflight_timeout_ms + p->lock_retries * p->lock_retry_delay_ms,
    };
}

static void
tenants(void *cookie, bool (*each)(void *each_cookie, const char *tenant), void *each_cookie)
{
    il__catalogue_tenants(((struct runner *)cookie)->catalogue, each, each_cookie);
}

static void
tidy(void *cookie)
{
    runner_folder_clean(cookie);
}

static void
note(void *cookie, const struct work_note *n)
{
    static const enum runner_event events[] = {
#define X(id, text) [WORK_EVENT_##id] = RUNNER_EVENT_##id,
#include "apps/work/events.def"
#undef X
    };

    runner_note_full(cookie, (struct runner_note){ .event    = events[n->event],
                                                   .tenant   = n->tenant,
                                                   .pipeline = n->name,
                                                   .run      = n->run,
                                                   .text     = n->text,
                                                   .wait_ms  = n->wait_ms,
                                                   .hold_ms  = n->hold_ms,
                                                   .fence    = n->fence });
}

/* ---- schedules ------------------------------------------------------------------------------- */

static size_t
list(void *cookie, const char *after_tenant, const char *after_name, void **subjects, size_t n)
{
    struct pipeline *page[256];

    n = il__catalogue_list(((struct runner *)cookie)->catalogue, NULL, after_tenant, after_name,
                           page, MIN(n, ARRAY_LEN(page)));
    for (size_t i = 0; i < n; i++)
        subjects[i] = page[i];
    return n;
}

static struct runner_trigger
trigger_of(const struct runner *r, const struct work_tick *tick)
{
    struct runner_trigger t = {
        .tenant   = tick->plan.tenant,
        .pipeline = tick->subject,
        .id       = tick->id,
        .by       = "schedule",
        .type     = "schedule",
        .keep_ms  = tick->keep_ms,
    };

    if (r->o.limits != NULL)
        r->o.limits(r->o.limits_cookie, t.tenant, &t.live_max, &t.day_max);
    return t;
}

static il_status
tick_op(void *cookie, const struct work_tick *tick, void **mem, il_op *op, il_error *reterr)
{
    struct runner_trigger t = trigger_of(cookie, tick);

    return runner_trigger_op(&t, mem, op, reterr);
}

static enum work_ticked
tick_slowly(void *cookie, const struct work_tick *tick, il_error *reterr)
{
    struct runner        *r       = cookie;
    struct runner_trigger t       = trigger_of(r, tick);
    AUTO_FREE char       *outside = NULL;
    bool                  unheard;
    il_op                 op;

    (void)runner_trigger_heard(r, &t, &op, &outside, &unheard, reterr); /* op says it all */
    enum work_ticked how = unheard ? WORK_TICK_UNHEARD : work_ticked(r->work, tick, &op, reterr);
    il_op_release(&op);
    return how;
}

const struct work_kind runner_kind = {
    .class       = "pipeline",
    .presence    = "interlock.runner",
    .find        = find,
    .ref         = ref,
    .drop        = drop,
    .plan        = plan,
    .tenants     = tenants,
    .execute     = runner_execute,
    .ended       = runner_ended,
    .tidy        = tidy,
    .note        = note,
    .list        = list,
    .tick_op     = tick_op,
    .tick_slowly = tick_slowly,
};
