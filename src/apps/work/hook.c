/*
 * hook.c: calls on_success, on_failure or on_lost of a run that has ended. proc/hook.h has the
 * rules.
 */
#include <stdio.h>

#include "apps/work/work_internal.h"
#include "base/clock.h"
#include "proc/hook.h"

struct chosen {
    const char  *event;
    char *const *argv; /* NULL = none */
};

static struct chosen
choose(const struct work_execution *e)
{
    const struct work_plan *p    = &e->pub.plan;
    bool                    well = e->end_state == IL_RUN_COMPLETED && e->pub.alarm[0] == '\0';

    if (e->reason == WORK_LOST)
        return (struct chosen){ "lost", p->on_lost };
    return well ? (struct chosen){ "success", p->on_success }
                : (struct chosen){ "failure", p->on_failure };
}

void
work_call_hook(struct work_execution *e)
{
    const struct chosen   chosen = choose(e);
    const char           *why_so = e->pub.alarm[0] != '\0' ? e->pub.alarm : e->end_text;
    struct il__hook_facts f      = { .n = 0 };
    struct il__hook       h = { .argv = chosen.argv, .facts = &f, .served = true, .stop_fd = -1 };
    char                  why[IL__HOOK_WHY_BYTES];
    char                  text[IL__HOOK_WHY_BYTES + 200];

    if (chosen.argv == NULL)
        return;
    il__hook_text(&f, "event", chosen.event);
    il__hook_text(&f, "class", e->w->kind->class);
    il__hook_text(&f, "name", e->pub.plan.name);
    il__hook_text(&f, "tenant", e->tenant);
    il__hook_text(&f, "key", e->key);
    il__hook_text(&f, "run", e->id);
    il__hook_text(&f, "holder", e->holder);
    il__hook_number(&f, "fence", (int64_t)e->pub.fence);
    il__hook_text(&f, "outcome", il_run_state_name(e->end_state));
    il__hook_number(&f, "ran_ms", (il__clock_boot_ns() - e->began_ns) / IL__NS_PER_MS);
    il__hook_text(&f, "message", why_so);
    if (il__hook_run(&h, why))
        return;
    atomic_fetch_add(&e->w->n_hooks_failed, 1);
    (void)snprintf(text, sizeof text, "on_%s (%.100s): %s", chosen.event, chosen.argv[0], why);
    work_note(e->w, (struct work_note){ .event   = WORK_EVENT_hook_failed,
                                        .tenant  = e->tenant,
                                        .name    = e->pub.plan.name,
                                        .run     = e->id,
                                        .text    = text,
                                        .wait_ms = -1,
                                        .hold_ms = -1 });
}
