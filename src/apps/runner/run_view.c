/*
 * run_view.c: combines store and history into the view of a pipeline run; see run_view.h.
 */
#include "apps/runner/run_view.h"

#include "base/clock.h"
#include "base/error.h"

const char *
runner_pipeline_of_key(const char *key)
{
    size_t n = strlen(PIPELINE_KEY_PREFIX);

    return key != NULL && strncmp(key, PIPELINE_KEY_PREFIX, n) == 0 ? key + n : NULL;
}

/* The time between two wall-clock times; up to now if the second has not come; -1 = not begun. */
static int64_t
duration_ms(int64_t from_ms, int64_t to_ms)
{
    if (from_ms == 0)
        return -1;
    return MAX((to_ms != 0 ? to_ms : il__clock_wall_ms()) - from_ms, 0);
}

/* What a trigger noted: {"pipeline", "version", "parameters"}. A run started otherwise has
 * something else there, or nothing. */
static bool
take_meta(const char *text, void **mem, struct runner_run_out *ret)
{
    json_t     *meta       = text != NULL && text[0] == '{' ? json_loads(text, 0, NULL) : NULL;
    json_t     *parameters = json_object_get(meta, "parameters");
    const char *version    = json_string_value(json_object_get(meta, "version"));
    char       *shown = json_is_object(parameters) ? json_dumps(parameters, JSON_COMPACT) : NULL;
    bool        ok    = true;

    if (shown != NULL)
        ok = (ret->parameters = il__arena_strdup(mem, shown)) != NULL;
    if (version != NULL)
        ok = (ret->version = il__arena_strdup(mem, version)) != NULL && ok;
    free(shown);
    json_decref(meta);
    return ok;
}

bool
runner_run_show(const il_run_info *run, void **mem, struct runner_run_out *ret)
{
    *ret = (struct runner_run_out){
        .id            = run->id,
        .pipeline      = runner_pipeline_of_key(run->key),
        .tenant        = run->tenant,
        .trigger       = run->trigger,
        .by            = run->by,
        .stage         = run->stage,
        .error         = run->error,
        .status        = (int32_t)run->state,
        .progress      = run->progress,
        .position      = run->position,
        .joins         = run->n_joined,
        .cancelling    = run->cancelled != 0 && run->state <= IL_RUN_RUNNING,
        .fence         = run->fence,
        .log_bytes     = run->log_bytes,
        .created_at_ms = run->created_at_ms,
        .started_at_ms = run->started_at_ms,
        .ended_at_ms   = run->ended_at_ms,
        .duration_ms   = duration_ms(run->started_at_ms, run->ended_at_ms),
    };
    CHECK(ret->pipeline != NULL);
    return take_meta(run->meta, mem, ret);
}

/* ---- history --------------------------------------------------------------------------------- */

struct reading {
    void                  **mem;
    struct runner_run_out  *run;
    struct runner_step_out *one; /* of runner_step_output() */
    uint32_t                wanted;
    bool                    output, found, nomem;
};

static const char *
keep(struct reading *g, const char *text)
{
    char *copy = il__arena_strdup(g->mem, text != NULL ? text : "");

    g->nomem = g->nomem || copy == NULL;
    return copy;
}

/* Append a zeroed item to a list. NULL: out of memory. */
static void *
append(struct reading *g, void *list, size_t *n, size_t item_bytes)
{
    void *item = il__arena_append(g->mem, list, n, item_bytes);

    if (item != NULL)
        memset(item, 0, item_bytes);
    else
        g->nomem = true;
    return item;
}

static void
take_detail(void *cookie, const struct il__data_detail *d)
{
    struct reading *g = cookie;

    g->run->node          = keep(g, d->node);
    g->run->renewals      = d->renewals;
    g->run->renewed_at_ms = d->renewed_at_ms;
    if (g->run->parameters == NULL)
        g->run->parameters = keep(g, d->parameters);
    if (g->run->version == NULL || g->run->version[0] == '\0')
        g->run->version = keep(g, d->version);
}

static void
take_join(void *cookie, const struct il__data_join *j)
{
    struct reading         *g   = cookie;
    struct runner_join_out *out = append(g, &g->run->joined, &g->run->n_joined, sizeof *out);

    if (out != NULL)
        *out = (struct runner_join_out){ .at_ms      = j->at_ms,
                                         .by         = keep(g, j->by),
                                         .trigger    = keep(g, j->trigger),
                                         .request_id = keep(g, j->request_id) };
}

/* What a row says about its step: the last row read wins. */
static void
fill_step(struct reading *g, struct runner_step_out *s, const struct il__data_step *row)
{
    if (s->started_at_ms == 0)
        s->started_at_ms = row->started_at_ms;
    s->id          = keep(g, row->step);
    s->type        = keep(g, row->type);
    s->status      = keep(g, row->state);
    s->error       = keep(g, row->error);
    s->details     = keep(g, row->details);
    s->out         = g->output ? keep(g, row->out) : NULL;
    s->err         = g->output ? keep(g, row->err) : NULL;
    s->n           = row->n;
    s->level       = row->level;
    s->attempt     = row->attempt;
    s->ended_at_ms = row->ended_at_ms;
    s->duration_ms = duration_ms(s->started_at_ms, row->ended_at_ms);
    s->exit_code   = row->exit_code;
    s->out_bytes   = row->out_bytes;
    s->err_bytes   = row->err_bytes;
}

/* Rows are ordered by n and attempt, so those of a step are adjacent. */
static void
take_step(void *cookie, const struct il__data_step *row)
{
    struct reading         *g   = cookie;
    struct runner_run_out  *run = g->run;
    struct runner_step_out *s   = run->n_steps > 0 ? &run->steps[run->n_steps - 1] : NULL;

    if (s == NULL || s->n != row->n) {
        s = append(g, &run->steps, &run->n_steps, sizeof *s);
        if (s == NULL)
            return;
    }
    fill_step(g, s, row);
    if (row->attempt == 0)
        return;
    struct runner_attempt_out *a = append(g, &s->attempts, &s->n_attempts, sizeof *a);
    if (a == NULL)
        return;
    *a = (struct runner_attempt_out){ .attempt       = row->attempt,
                                      .status        = s->status,
                                      .error         = s->error,
                                      .started_at_ms = row->started_at_ms,
                                      .ended_at_ms   = row->ended_at_ms,
                                      .duration_ms =
                                          duration_ms(row->started_at_ms, row->ended_at_ms),
                                      .exit_code = row->exit_code };
}

/* The run has ended, but its executor died before recording the outcome of its steps. */
static void
interrupt_steps(struct runner_run_out *run)
{
    static const char gone[] = "the server that executed it died";

    for (size_t i = 0; run->ended_at_ms != 0 && i < run->n_steps; i++) {
        struct runner_step_out    *s = &run->steps[i];
        struct runner_attempt_out *a = s->n_attempts > 0 ? &s->attempts[s->n_attempts - 1] : NULL;
        if (s->status == NULL || strcmp(s->status, "RUNNING") != 0)
            continue;
        s->status      = "INTERRUPTED";
        s->error       = gone;
        s->ended_at_ms = run->ended_at_ms;
        s->duration_ms = duration_ms(s->started_at_ms, run->ended_at_ms);
        if (a == NULL)
            continue;
        a->status      = s->status;
        a->error       = gone;
        a->ended_at_ms = run->ended_at_ms;
        a->duration_ms = duration_ms(a->started_at_ms, run->ended_at_ms);
    }
}

il_status
runner_run_history(struct il__data *data, bool output, void **mem, struct runner_run_out *run,
                   il_error *reterr)
{
    struct reading g = { .mem = mem, .run = run, .output = output };
    il_status st     = il__data_history_detail(data, run->tenant, run->id, take_detail, &g, reterr);

    if (st == IL_OK)
        st = il__data_history_steps(data, run->tenant, run->id, output, take_step, &g, reterr);
    if (st == IL_OK)
        st = il__data_history_joins(data, run->tenant, run->id, take_join, &g, reterr);
    if (st != IL_OK || g.nomem)
        return st != IL_OK ? st : il__error_nomem(reterr);
    interrupt_steps(run);
    return IL_OK;
}

static bool
is_known(const struct runner_run_out *run, const char *step)
{
    for (size_t i = 0; i < run->n_steps; i++) {
        if (strcmp(run->steps[i].id, step) == 0)
            return true;
    }
    return false;
}

static int
by_place(const void *a, const void *b)
{
    const struct runner_step_out *x = a, *y = b;

    return x->n < y->n ? -1 : x->n > y->n;
}

bool
runner_run_pending(const struct pipeline *p, void **mem, struct runner_run_out *run)
{
    bool   live    = run->status <= (int32_t)IL_RUN_RUNNING;
    bool   crashed = !live && run->started_at_ms != 0 && strstr(run->error, WORK_CRASHED) != NULL;
    size_t n       = run->n_steps;

    if (!live && !crashed)
        return true; /* its executor has recorded all of them */
    struct runner_step_out *all = il__arena_alloc(mem, (n + p->n_steps) * sizeof *all);
    if (all == NULL)
        return false;
    if (n > 0)
        memcpy(all, run->steps, n * sizeof *all);
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct pipeline_step *s = &p->steps[i];
        if (is_known(run, s->id))
            continue;
        all[n] = (struct runner_step_out){ .id          = s->id,
                                           .type        = il__pipeline_step_types[s->type],
                                           .status      = live ? "PENDING" : "SKIPPED",
                                           .n           = (uint32_t)i,
                                           .level       = s->level,
                                           .duration_ms = -1,
                                           .exit_code   = -1 };
        n++;
    }
    qsort(all, n, sizeof *all, by_place);
    run->steps   = all;
    run->n_steps = n;
    return true;
}

static void
take_output(void *cookie, const struct il__data_step *row)
{
    struct reading *g = cookie;

    if (g->wanted != 0 && row->attempt != g->wanted)
        return;
    *g->one = (struct runner_step_out){ .n = 0 };
    fill_step(g, g->one, row);
    g->found = true;
}

il_status
runner_step_output(struct il__data *data, const char *tenant, const char *run, const char *step,
                   uint32_t attempt, void **mem, struct runner_step_out *ret, il_error *reterr)
{
    struct reading g  = { .mem = mem, .one = ret, .wanted = attempt, .output = true };
    il_status      st = il__data_history_step(data, tenant, run, step, take_output, &g, reterr);

    if (st != IL_OK)
        return st;
    if (!g.found)
        return il__error_set(reterr, IL_NOT_FOUND, "no record of step '%.128s'%s", step,
                             attempt != 0 ? " in this attempt" : "");
    return g.nomem ? il__error_nomem(reterr) : IL_OK;
}

/* ---- as text --------------------------------------------------------------------------------- */

void
runner_run_print(struct il__buf *out, const struct runner_run_out *run, bool full)
{
    il__wire_print(out, full ? &runner_out_run_full : &runner_out_run, run, 0);
}

void
runner_runs_print(struct il__buf *out, const struct runner_run_out *runs, size_t n,
                  const char *next)
{
    il__wire_print_page(out, &runner_out_run, runs, sizeof *runs, n, next);
}
