/*
 * execute.c: the steps of one run, level by level, on the run's thread. apps/work starts and ends
 * the run, renews its lease and tells it when to stop; this passes that on to the attempts.
 *
 * The processes of commands are stopped before the lease can end, even if this process is stopped
 * or killed: their reapers know the deadline themselves.
 */
#include "apps/runner/runner_internal.h"
#include "base/arena.h"
#include "base/thread.h"

/* ---- callbacks ------------------------------------------------------------------------------- */

static void
on_stop(void *cookie)
{
    struct execution *e = cookie;

    il__mutex_lock(&e->mutex);
    for (struct attempt *a = e->attempts; a != NULL; a = a->next)
        runner_attempt_stop(a);
    CHECK(pthread_cond_broadcast(&e->changed) == 0);
    il__mutex_unlock(&e->mutex);
}

static void
on_renewed(void *cookie, int64_t deadline_ns)
{
    struct execution *e = cookie;

    il__mutex_lock(&e->mutex);
    e->lease_ns = deadline_ns;
    for (struct attempt *a = e->attempts; a != NULL; a = a->next) {
        if (a->child != NULL)
            il__proc_extend(a->child, deadline_ns);
    }
    il__mutex_unlock(&e->mutex);
}

/* The deadlines of attempts. */
static int64_t
on_watch(void *cookie, int64_t now_ns)
{
    struct execution *e       = cookie;
    int64_t           next_ns = INT64_MAX;

    il__mutex_lock(&e->mutex);
    for (struct attempt *a = e->attempts; a != NULL; a = a->next) {
        if (atomic_load(&a->stopping))
            continue;
        if (now_ns >= a->deadline_ns) {
            a->timed_out = true;
            runner_attempt_stop(a);
        } else {
            next_ns = MIN(next_ns, a->deadline_ns);
        }
    }
    il__mutex_unlock(&e->mutex);
    return next_ns;
}

static const struct work_callbacks callbacks = { .stop    = on_stop,
                                                 .renewed = on_renewed,
                                                 .watch   = on_watch };

/* ---- the current stage ----------------------------------------------------------------------- */

void
runner_execution_stage(struct execution *e)
{
    const struct pipeline  *p    = e->pipeline;
    AUTO_BUF struct il__buf text = { 0 };

    CHECK(p->n_steps > 0); /* a file without steps is refused */
    il__buf_init(&text, WORK_STAGE_BYTES_MAX);
    for (size_t i = 0; i < p->n_steps; i++) {
        if (e->steps[i].running)
            il__buf_addf(&text, "%s%s", text.n_bytes > 0 ? ", " : "", p->steps[i].id);
    }
    work_run_stage(e->run, il__buf_str(&text), (int32_t)(e->n_done * 100 / p->n_steps));
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The next step of the level that has not been started, or SIZE_MAX; none once the run is to
 * stop. */
static size_t
next_step(struct execution *e)
{
    const struct pipeline *p     = e->pipeline;
    size_t                 found = SIZE_MAX;

    il__mutex_lock(&e->mutex);
    while (!work_run_should_stop(e->run) && found == SIZE_MAX && e->n_begun < p->n_steps) {
        if (p->steps[e->n_begun].level == e->level) {
            found                   = e->n_begun;
            e->steps[found].running = true;
            runner_execution_stage(e);
        }
        e->n_begun++;
    }
    il__mutex_unlock(&e->mutex);
    return found;
}

static void *
level_main(void *arg)
{
    struct execution *e = arg;

    for (size_t i = next_step(e); i != SIZE_MAX; i = next_step(e))
        runner_step(e, i);
    return NULL;
}

/* Run all steps of a level, at most ten at once; this thread is one of the workers. If no others
 * can be started (no memory), it takes longer. */
static void
run_level(struct execution *e, uint32_t level)
{
    pthread_t threads[PIPELINE_LEVEL_STEPS_MAX - 1];
    size_t    n_threads = 0, n_steps = 0;

    for (size_t i = 0; i < e->pipeline->n_steps; i++)
        n_steps += e->pipeline->steps[i].level == level;
    il__mutex_lock(&e->mutex);
    e->level   = level;
    e->n_begun = 0;
    il__mutex_unlock(&e->mutex);
    while (n_threads < ARRAY_LEN(threads) && n_threads + 1 < n_steps &&
           il__thread_start(&threads[n_threads], level_main, e) == 0)
        n_threads++;
    (void)level_main(e);
    for (size_t i = 0; i < n_threads; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Something other than a step failed. */
static void
fail(struct execution *e, const char *text)
{
    work_run_fail(e->run, false, text);
    work_run_say(e->run, "%s", text);
}

static void
run_steps(struct execution *e)
{
    il_error error = { .message = "" };

    if (runner_values(e->pipeline, e->run->parameters, &e->mem, &e->values, &error) != IL_OK)
        fail(e, error.message);
    if (runner_folder_make(e, &error) != IL_OK)
        fail(e, error.message);
    for (uint32_t level = 1; level <= e->pipeline->n_levels && !work_run_should_stop(e->run);
         level++)
        run_level(e, level);
    for (size_t i = 0; i < e->pipeline->n_steps; i++) {
        if (!e->steps[i].ended) /* no other thread uses it any more */
            runner_step_skip(e, i);
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

bool
runner_execute(struct work_run *run)
{
    struct execution *e = il__calloc(1, sizeof *e);

    if (e == NULL) {
        work_run_fail(run, false, "out of memory for a run");
        return false;
    }
    *e = (struct execution){
        .r = run->cookie, .run = run, .pipeline = run->subject, .cwd_lock = -1
    };
    e->connections = runner_connections_ref(e->r);
    il__mutex_init(&e->mutex, IL__MUTEX_execution);
    il__cond_init(&e->changed);
    run->own = e;
    work_run_callbacks(run, &callbacks, e);
    run_steps(e);
    work_run_callbacks(run, NULL, NULL); /* no callback uses it any more */
    return e->n_done == e->pipeline->n_steps && !e->failed;
}

void
runner_ended(struct work_run *run)
{
    struct execution *e = run->own;

    if (e == NULL)
        return;
    runner_folder_remove(e);
    runner_connections_unref(e->r, e->connections);
    il__arena_free(&e->mem);
    CHECK(pthread_cond_destroy(&e->changed) == 0);
    il__mutex_destroy(&e->mutex);
    il__free(e);
}
