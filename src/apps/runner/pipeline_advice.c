/*
 * pipeline_advice.c: advice about valid pipeline files, shown by `interlock pipelines check`.
 * Advice never makes a file invalid.
 */
#include "apps/runner/pipeline_internal.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/parse.h"
#include "core/limits.h"

#define MINUTE_MS 60000
#define LOCK_TIMEOUT_DEFAULT_S 3600

static size_t
line_of(const struct doc_node *root, const char *key)
{
    const struct doc_node *node = il__doc_get(root, key);

    return node != NULL ? node->key_line : root->line;
}

/* By expected duration. */
static void
lock_timeout(struct reading *r, const struct doc_node *root)
{
    int64_t     timeout = own(r)->p->timeout_ms;
    int64_t     advised = timeout < 5 * MINUTE_MS ? 600 : timeout <= 30 * MINUTE_MS ? 3600 : 7200;
    int64_t     given   = own(r)->p->lock_timeout_ms / 1000;
    const char *length  = timeout < 5 * MINUTE_MS     ? "under 5 minutes"
                          : timeout <= 30 * MINUTE_MS ? "5 to 30 minutes"
                                                      : "over 30 minutes";

    if (!own(r)->own_timeout || (given > 0 ? given : LOCK_TIMEOUT_DEFAULT_S) == advised)
        return;
    il__reading_advise(r, line_of(root, given > 0 ? "lock_timeout_seconds" : "timeout_minutes"),
                       PLACE("", "lock_timeout_seconds"),
                       "recommended: %" PRId64 " for a timeout of %s (currently %" PRId64 "%s)",
                       advised, length, given > 0 ? given : LOCK_TIMEOUT_DEFAULT_S,
                       given > 0 ? "" : ", the default");
}

/* If the steps have timeouts: do the levels, one after the other, fit into the pipeline's
 * timeout? */
static void
step_timeouts(struct reading *r, const struct doc_node *root)
{
    int64_t                level_ms[PIPELINE_STEPS_MAX] = { 0 };
    int64_t                sum                          = 0;
    size_t                 i                            = 0;
    char                   sum_text[IL__DURATION_TEXT_BYTES];
    char                   own_text[IL__DURATION_TEXT_BYTES];
    const struct doc_node *list = il__doc_get(root, "steps");

    for (const struct doc_node *m = list->first; m != NULL; m = m->next, i++) {
        const struct pipeline_step *step = &own(r)->p->steps[i];
        if (il__doc_get(m, "timeout") != NULL || il__doc_get(m, "timeout_minutes") != NULL)
            level_ms[step->level - 1] = MAX(level_ms[step->level - 1], step->timeout_ms);
    }
    for (size_t level = 0; level < own(r)->p->n_levels; level++)
        sum += level_ms[level];
    if (sum > own(r)->p->timeout_ms)
        il__reading_advise(r, line_of(root, own(r)->own_timeout ? "timeout_minutes" : "steps"),
                           PLACE("", "timeout_minutes"),
                           "the steps may take %s in sequence, but the pipeline times out after %s",
                           il__duration_text(sum, sum_text),
                           il__duration_text(own(r)->p->timeout_ms, own_text));
}

static bool
is_local(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    return strncmp(host, "localhost", 9) == 0 || strncmp(host, "127.", 4) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

static void
plain_http(struct reading *r)
{
    for (size_t i = 0; i < own(r)->p->n_steps; i++) {
        const struct pipeline_step *step = &own(r)->p->steps[i];
        char                        at[32];
        if (step->type != PIPELINE_HTTP || strncmp(step->http.url.text, "http://", 7) != 0 ||
            is_local(step->http.url.text))
            continue;
        (void)snprintf(at, sizeof at, "steps[%zu]", i);
        il__reading_advise(r, step->line, PLACE(at, "url"),
                           "uses http; values and headers are sent unencrypted");
    }
}

/* Ticks that come while the run of the previous one may still be running. */
static void
schedule(struct reading *r, const struct doc_node *root)
{
    const struct pipeline *p    = own(r)->p;
    int64_t                tick = il__pipeline_next_tick(p, il__clock_wall_ms());
    int64_t                gap  = IL__NEVER;
    char                   gap_text[IL__DURATION_TEXT_BYTES];
    char                   own_text[IL__DURATION_TEXT_BYTES];

    if (p->schedule_text == NULL || !own(r)->own_timeout)
        return;
    for (int i = 0; i < 8 && tick != IL__NEVER; i++) {
        int64_t next = il__pipeline_next_tick(p, tick);
        gap          = next != IL__NEVER ? MIN(gap, next - tick) : gap;
        tick         = next;
    }
    if (gap < p->timeout_ms)
        il__reading_advise(r, line_of(root, "schedule"), PLACE("", "schedule"),
                           "scheduled every %s, but a run may take %s; overlapping runs follow "
                           "on_conflict",
                           il__duration_text(gap, gap_text),
                           il__duration_text(p->timeout_ms, own_text));
}

static void
unused(struct reading *r, const struct doc_node *root)
{
    if (own(r)->own_lock_retries && own(r)->p->on_conflict != IL_POLICY_REJECT)
        il__reading_advise(r, line_of(root, "lock_acquisition_retries"),
                           PLACE("", "lock_acquisition_retries"),
                           "has no effect unless on_conflict is reject");
    if (own(r)->p->queue_max > 0 && own(r)->p->on_conflict != IL_POLICY_QUEUE)
        il__reading_advise(r, line_of(root, "queue_max"), PLACE("", "queue_max"),
                           "has no effect unless on_conflict is queue");
}

void
il__pipeline_advise(struct reading *r, const struct doc_node *root)
{
    lock_timeout(r, root);
    step_timeouts(r, root);
    plain_http(r);
    schedule(r, root);
    unused(r, root);
}
