/*
 * graph.c: the order of steps: levels, cycles, and the graph as text. Steps of one level may run in
 * parallel; a level starts after the previous one has ended.
 */
#include "apps/runner/pipeline_internal.h"

#include <stdio.h>

enum colour {
    UNSEEN,
    UNDER_WAY,
    DONE
};

/* A walk along the dependencies, without recursion. */
struct walk {
    enum colour colours[PIPELINE_STEPS_MAX];
    uint32_t    path[PIPELINE_STEPS_MAX];   /* the current path: each is needed by the one before */
    size_t      n_seen[PIPELINE_STEPS_MAX]; /* number of needs of path[i] already followed */
    size_t      n_path;
};

/* Print the cycle path[from..] back to its first step; each waits for the next. */
static void
write_cycle(const struct pipeline *p, const struct walk *w, size_t from, char *out, size_t n_bytes)
{
    size_t n = 0;

    for (size_t i = from; i <= w->n_path && n < n_bytes; i++) {
        const char *id = p->steps[w->path[i < w->n_path ? i : from]].id;
        n += (size_t)snprintf(out + n, n_bytes - n, "%s%s", i > from ? " → " : "",
                              id != NULL ? id : "?");
    }
}

static void
finish_step(struct pipeline *p, struct walk *w)
{
    struct pipeline_step *step = &p->steps[w->path[--w->n_path]];

    step->level = 1;
    for (size_t i = 0; i < step->n_needs; i++)
        step->level = MAX(step->level, p->steps[step->needs[i]].level + 1);
    w->colours[w->path[w->n_path]] = DONE;
    p->n_levels                    = MAX(p->n_levels, step->level);
}

/* Visit everything that path[0] needs. False: a cycle; *ret_from is where on the path it begins. */
static bool
follow(struct pipeline *p, struct walk *w, size_t *ret_from)
{
    while (w->n_path > 0) {
        struct pipeline_step *step = &p->steps[w->path[w->n_path - 1]];
        size_t               *seen = &w->n_seen[w->n_path - 1];
        if (*seen == step->n_needs) {
            finish_step(p, w);
            continue;
        }
        uint32_t need = step->needs[(*seen)++];
        if (w->colours[need] == UNDER_WAY) {
            for (*ret_from = 0; w->path[*ret_from] != need; ++*ret_from)
                ;
            return false;
        }
        if (w->colours[need] == UNSEEN) {
            w->colours[need]     = UNDER_WAY;
            w->n_seen[w->n_path] = 0;
            w->path[w->n_path++] = need;
        }
    }
    return true;
}

bool
il__pipeline_levels(struct pipeline *p, char *cycle, size_t n_bytes, size_t *ret_step)
{
    struct walk w = { .n_path = 0 };
    size_t      from;

    CHECK(p->n_steps <= PIPELINE_STEPS_MAX);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (w.colours[i] != UNSEEN)
            continue;
        w.colours[i] = UNDER_WAY;
        w.path[0]    = i;
        w.n_seen[0]  = 0;
        w.n_path     = 1;
        if (!follow(p, &w, &from)) {
            write_cycle(p, &w, from, cycle, n_bytes);
            *ret_step = w.path[from];
            return false;
        }
    }
    return true;
}

/* ---- as text --------------------------------------------------------------------------------- */

static size_t
widest_id(const struct pipeline *p)
{
    size_t widest = 0;

    for (size_t i = 0; i < p->n_steps; i++)
        widest = MAX(widest, strlen(p->steps[i].id));
    return widest;
}

static void
add_step(const struct pipeline *p, const struct pipeline_step *step, size_t widest,
         struct il__buf *out)
{
    il__buf_addf(out, "  %-*s  %-7s", (int)widest, step->id, il__pipeline_step_types[step->type]);
    for (size_t i = 0; i < step->n_needs; i++)
        il__buf_addf(out, "%s%s", i == 0 ? "  ← " : ", ", p->steps[step->needs[i]].id);
    if (step->retries > 0)
        il__buf_addf(out, "  (%u %s)", step->retries, step->retries == 1 ? "retry" : "retries");
    if (step->on_failure != PIPELINE_STOP)
        il__buf_addf(out, "  (on failure: %s)",
                     step->on_failure == PIPELINE_ALERT ? "alert" : "continue");
    while (out->n_bytes > 0 && out->data[out->n_bytes - 1] == ' ')
        out->n_bytes--;
    il__buf_addc(out, '\n');
}

bool
il__pipeline_graph(const struct pipeline *p, struct il__buf *out)
{
    size_t widest = widest_id(p);

    il__buf_addf(out, "%s: %zu step%s, %u level%s\n", p->id, p->n_steps, p->n_steps == 1 ? "" : "s",
                 p->n_levels, p->n_levels == 1 ? "" : "s");
    for (uint32_t level = 1; level <= p->n_levels; level++) {
        size_t n = 0;
        for (size_t i = 0; i < p->n_steps; i++)
            n += p->steps[i].level == level;
        il__buf_addf(out, "level %u%s\n", level, n > 1 ? " (at once)" : "");
        for (size_t i = 0; i < p->n_steps; i++) {
            if (p->steps[i].level == level)
                add_step(p, &p->steps[i], widest, out);
        }
    }
    return !out->failed;
}
