/*
 * tick.c: schedules. Each server computes the ticks of its pipelines and triggers them. The id of
 * the run is derived from tenant, pipeline and tick, so of all servers that trigger a tick one
 * creates the run, and the others learn that it exists. No server is special, and none needs to
 * know of the others.
 *
 * Ticks that are due together are triggered together, in one commit. Those that may have to wait (a
 * probe, `reject` with retries) are *slow*: they are handled by separate threads, never by the
 * ticker, and each tenant has a share of these threads (runtime/fair.h). Until a thread takes it, a
 * slow tick waits in a line that holds at most one per pipeline: the newest.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/runner/runner_internal.h"
#include "apps/runner/trigger_plan.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/parse.h"
#include "core/limits.h"
#include "runtime/fair.h"

#define BATCH_MAX 256
#define SLOW_MAX 16 /* threads for slow triggers */
#define PAGE 256
#define SLEEP_MS_MAX 1000 /* the wall clock may be changed */
#define TOO_LATE "timed out waiting for triggers of other pipelines"

/* A pipeline with a schedule. node.at: its next tick. */
struct entry {
    struct il__heap_node node;
    struct pipeline     *pipeline;
};
/* A tick that is due. */
struct tick {
    struct tick     *next; /* of a slow tick: in the line */
    struct pipeline *pipeline;
    int64_t          at_ms;
    char             id[IL_ID_BYTES_MAX + 1];
};
struct slow_thread {
    struct ticker *ticker;
    pthread_t      id;
    const char    *tenant; /* tenant of its tick; NULL = none; under runner.mutex */
    bool           used;
    atomic_bool    done; /* it takes no more ticks and can be joined */
};
struct ticker {
    struct runner     *r;
    struct il__heap    heap;
    uint64_t           version; /* of the catalogue when last read */
    bool               read;
    int64_t            from_ms;      /* ticks up to this time have been handled */
    int64_t            slow_from_ms; /* slow ticks up to this time have been put into the line */
    struct slow_thread slow[SLOW_MAX];
    /* under runner.mutex: */
    struct tick *line; /* slow ticks not taken by a thread yet */
};

/* ---- due ticks ------------------------------------------------------------------------------- */

static void
forget_all(struct ticker *t)
{
    while (t->heap.first != NULL) {
        struct entry *entry = container_of(t->heap.first, struct entry, node);
        il__heap_remove(&t->heap, &entry->node);
        il__pipeline_unref(entry->pipeline);
        il__free(entry);
    }
}

static void
add_entry(struct ticker *t, struct pipeline *p, int64_t after_ms)
{
    int64_t       next_ms = il__pipeline_next_tick(p, after_ms);
    struct entry *entry   = next_ms != IL__NEVER ? il__calloc(1, sizeof *entry) : NULL;

    if (entry == NULL)
        return; /* out of memory: skipped until the next reload */
    entry->pipeline = il__pipeline_ref(p);
    entry->node.at  = next_ms;
    il__heap_add(&t->heap, &entry->node);
}

/* Read the catalogue again. The first time, ticks missed while no server was running are
 * considered as well, as far back as the pipeline allows. */
static void
read_catalogue(struct ticker *t, int64_t now_ms)
{
    struct pipeline *page[PAGE];
    char             tenant[IL_TENANT_BYTES_MAX + 1], id[PIPELINE_ID_BYTES_MAX + 1];
    size_t           n;
    bool             first = true;

    forget_all(t);
    t->version = il__catalogue_version(t->r->catalogue);
    do {
        n     = il__catalogue_list(t->r->catalogue, NULL, first ? NULL : tenant, first ? NULL : id,
                                   page, PAGE);
        first = false;
        for (size_t i = 0; i < n; i++) {
            if (page[i]->schedule_text != NULL)
                add_entry(t, page[i], t->read ? t->from_ms : now_ms - page[i]->catch_up_ms);
            (void)snprintf(tenant, sizeof tenant, "%s", page[i]->tenant);
            (void)snprintf(id, sizeof id, "%s", page[i]->id);
            il__pipeline_unref(page[i]);
        }
    } while (n == PAGE);
    t->read = true;
}

/* The newest due tick of an entry; *ret_next_ms: the one after it. */
static int64_t
newest(const struct pipeline *p, int64_t tick_ms, int64_t now_ms, int64_t *ret_next_ms)
{
    int64_t next_ms = il__pipeline_next_tick(p, tick_ms);

    while (next_ms <= now_ms) {
        tick_ms = next_ms;
        next_ms = il__pipeline_next_tick(p, tick_ms);
    }
    *ret_next_ms = next_ms;
    return tick_ms;
}

/* The id of a tick's run: a UUID (version 8), the same on every server. The tick's time comes
 * first, as in other run ids; the rest is a hash of tenant and pipeline. */
static void
make_id(const struct pipeline *p, int64_t tick_ms, char out[IL_ID_BYTES_MAX + 1])
{
    uint64_t ms   = (uint64_t)tick_ms;
    uint64_t seed = il__hash_stable(p->tenant, strlen(p->tenant), 0);
    uint64_t hash = il__hash_stable(p->key, strlen(p->key), seed);

    (void)snprintf(out, IL_ID_BYTES_MAX + 1, "%08x-%04x-8%03x-%04x-%012" PRIx64,
                   (unsigned)(ms >> 16), (unsigned)(ms & 0xFFFF), (unsigned)(seed & 0xFFF),
                   (unsigned)(0x8000 | (hash >> 48 & 0x3FFF)), hash & UINT64_C(0xFFFFFFFFFFFF));
    CHECK(il__is_uuid(out)); /* folder.c requires it */
}

/* Take due ticks, at most n; each holds a reference. */
static size_t
take_due(struct ticker *t, int64_t now_ms, struct tick *ticks, size_t n)
{
    size_t n_taken = 0;

    while (n_taken < n && il__heap_due(&t->heap, now_ms)) {
        struct entry          *entry = container_of(t->heap.first, struct entry, node);
        const struct pipeline *p     = entry->pipeline;
        int64_t                next_ms;
        int64_t                tick_ms = newest(p, entry->node.at, now_ms, &next_ms);
        if (now_ms - tick_ms <= MAX(p->catch_up_ms, SLEEP_MS_MAX)) {
            struct tick *tick = &ticks[n_taken++];
            tick->pipeline    = il__pipeline_ref(entry->pipeline);
            tick->at_ms       = tick_ms;
            make_id(p, tick_ms, tick->id);
        }
        if (next_ms != IL__NEVER) {
            il__heap_move(&t->heap, &entry->node, next_ms);
        } else {
            il__heap_remove(&t->heap, &entry->node);
            il__pipeline_unref(entry->pipeline);
            il__free(entry);
        }
    }
    return n_taken;
}

/* ---- triggering ------------------------------------------------------------------------------ */

/* How long a slow tick may wait in the line: until the next one. */
static int64_t
line_ms(const struct tick *tick)
{
    int64_t next_ms = il__pipeline_next_tick(tick->pipeline, tick->at_ms);

    return MAX(tick->pipeline->catch_up_ms, MIN(next_ms - tick->at_ms, IL__DAY_MS));
}

/* How long after its tick a server may still create the run. */
static int64_t
late_ms(const struct tick *tick)
{
    const struct pipeline *p = tick->pipeline;

    if (!trigger_is_slow(p))
        return p->catch_up_ms;
    return line_ms(tick) + p->preflight_timeout_ms + p->lock_retries * p->lock_retry_delay_ms;
}

static struct runner_trigger
trigger_of(struct runner *r, const struct tick *tick)
{
    struct runner_trigger t = {
        .tenant   = tick->pipeline->tenant,
        .pipeline = tick->pipeline,
        .id       = tick->id,
        .by       = "schedule",
        .type     = "schedule",
        /* The run must be kept for as long as a server may make up for its tick, or it would be
         * started again. The clocks of servers differ slightly. */
        .keep_ms = MAX(r->o.keep_ms, late_ms(tick) + RUNNER_CLOCKS_MS),
    };

    if (r->o.limits != NULL)
        r->o.limits(r->o.limits_cookie, t.tenant, &t.live_max, &t.day_max);
    return t;
}

/* `exists`: another server was first. */
static void
note_tick(struct runner *r, const struct tick *tick, enum runner_answer answer, bool exists,
          const char *why)
{
    struct runner_note note = { .event    = RUNNER_EVENT_tick,
                                .tenant   = tick->pipeline->tenant,
                                .pipeline = tick->pipeline->id,
                                .run      = tick->id,
                                .wait_ms  = -1,
                                .hold_ms  = -1 };

    if (exists)
        return;
    if (answer == RUNNER_TRIGGERED) {
        atomic_fetch_add(&r->n_schedule_ticks, 1);
    } else {
        atomic_fetch_add(&r->n_schedule_skipped, 1);
        note.event = RUNNER_EVENT_tick_skipped;
        note.run   = NULL;
        note.text  = why;
    }
    runner_note_full(r, note);
}

static const char *
why_not(enum runner_answer answer, const il_op *op)
{
    if (op->out.detail != NULL)
        return op->out.detail;
    return answer == RUNNER_RUNNING || answer == RUNNER_SKIPPED || answer == RUNNER_REJECTED
               ? "the pipeline is already running"
               : il_status_text(op->status);
}

/* The op reports that the run with this tick's id exists already. */
static bool
exists_already(const il_op *op, const char *id)
{
    return op->status != IL_OK ? op->out.n_runs > 0 && strcmp(op->out.runs[0].id, id) == 0
                               : (op->out.flags & IL_OUT_RENEWED) != 0;
}

static void
done_with(struct runner *r, const struct tick *tick, il_op *op)
{
    struct trigger_plan  plan;
    struct trigger_event e      = { .what = TRIGGER_STARTED, .status = IL_OK };
    bool                 exists = exists_already(op, tick->id);

    CHECK(trigger_begin(&plan, tick->pipeline, op) == TRIGGER_START); /* no slow ticks here */
    CHECK(trigger_next(&plan, &e) == TRIGGER_END);
    note_tick(r, tick, plan.answer, exists, why_not(plan.answer, op));
    if (plan.execute)
        runner_take(r, tick->pipeline->tenant, tick->id, il__pipeline_ref(tick->pipeline));
}

/* One commit for all. If the store is unreachable they are retried in the ticker's next round. */
static bool
trigger_batch(struct runner *r, const struct tick *ticks, size_t n)
{
    AUTO(il__arena_free) void *mem   = NULL;
    il_op                     *ops   = il__calloc(n, sizeof *ops);
    const struct tick        **of    = il__calloc(n, sizeof(struct tick *));
    size_t                     n_ops = 0;
    il_error                   error = { .message = "" };
    il_status                  st    = ops != NULL && of != NULL ? IL_OK : IL_NOMEM;

    for (size_t i = 0; st == IL_OK && i < n; i++) {
        struct runner_trigger t = trigger_of(r, &ticks[i]);
        if (runner_trigger_op(&t, &mem, &ops[n_ops], &error) == IL_OK)
            of[n_ops++] = &ticks[i];
        else /* a parameter without a default: the file cannot be scheduled */
            note_tick(r, &ticks[i], RUNNER_FAILED, false, error.message);
    }
    if (st == IL_OK && n_ops > 0)
        st = il_apply(r->o.h, ops, n_ops, &error);
    if (st != IL_OK)
        runner_trouble(r, "cannot start scheduled runs", &error);
    for (size_t i = 0; i < n_ops; i++) {
        if (st == IL_OK)
            done_with(r, of[i], &ops[i]);
        il_op_release(&ops[i]);
    }
    il__free(ops);
    il__free(of);
    return st == IL_OK;
}

/* ---- slow ticks ------------------------------------------------------------------------------ */

/* Retry while the store is unreachable, for as long as the ticker does so with the others. */
static void
trigger_slowly(struct runner *r, const struct tick *tick)
{
    struct runner_trigger t        = trigger_of(r, tick);
    int64_t               until_ms = tick->at_ms + MAX(tick->pipeline->catch_up_ms, SLEEP_MS_MAX);
    bool                  unheard;

    for (;;) {
        AUTO_FREE char    *outside = NULL;
        il_error           error   = { .message = "" };
        il_op              op;
        enum runner_answer answer = runner_trigger_heard(r, &t, &op, &outside, &unheard, &error);
        if (unheard)
            runner_trouble(r, "cannot start scheduled runs", &error);
        bool again = unheard && il__clock_wall_ms() < until_ms && runner_pause(r, SLEEP_MS_MAX);
        if (!again)
            note_tick(r, tick, answer, exists_already(&op, tick->id),
                      error.message[0] != '\0' ? error.message : why_not(answer, &op));
        il_op_release(&op);
        if (!again)
            return;
    }
}

static void
free_tick(struct tick *tick)
{
    il__pipeline_unref(tick->pipeline);
    il__free(tick);
}

/* May the tenant use one more thread? runner.mutex is held. */
static bool
has_thread(const struct ticker *t, const char *tenant)
{
    size_t n_own = 0, n_free = 0;

    for (size_t i = 0; i < SLOW_MAX; i++) {
        n_free += t->slow[i].tenant == NULL;
        n_own += t->slow[i].tenant != NULL && strcmp(t->slow[i].tenant, tenant) == 0;
    }
    return il__fair_may_take(n_own, n_free);
}

/* The first tick in the line that this thread may take; runner.mutex is held. */
static struct tick *
take_slow(struct slow_thread *me)
{
    for (struct tick **at = &me->ticker->line; *at != NULL; at = &(*at)->next) {
        struct tick *tick = *at;
        if (!has_thread(me->ticker, tick->pipeline->tenant))
            continue;
        me->tenant = tick->pipeline->tenant;
        *at        = tick->next;
        return tick;
    }
    return NULL;
}

/* Takes ticks from the line until none is left that it may take; a thread that gives a place
 * back checks again. */
static void *
slow_main(void *arg)
{
    struct slow_thread *me = arg;
    struct ticker      *t  = me->ticker;
    struct tick        *tick;

    runner_lock(&t->r->mutex);
    while (!t->r->stopping && (tick = take_slow(me)) != NULL) {
        runner_unlock(&t->r->mutex);
        if (il__clock_wall_ms() - tick->at_ms <= line_ms(tick) + SLEEP_MS_MAX)
            trigger_slowly(t->r, tick);
        else
            note_tick(t->r, tick, RUNNER_FAILED, false, TOO_LATE);
        runner_lock(&t->r->mutex);
        me->tenant = NULL;
        free_tick(tick);
    }
    atomic_store(&me->done, true); /* threads that add to the line from now on see it */
    runner_unlock(&t->r->mutex);
    return NULL;
}

/* Put a tick into the line, replacing a waiting tick of the same pipeline. */
static void
line_up(struct ticker *t, const struct tick *tick)
{
    struct tick *copy = il__alloc(sizeof *copy);
    struct tick *old;

    if (copy == NULL) {
        note_tick(t->r, tick, RUNNER_FAILED, false, il_status_text(IL_NOMEM));
        return;
    }
    *copy          = *tick;
    copy->pipeline = il__pipeline_ref(tick->pipeline);
    runner_lock(&t->r->mutex);
    struct tick **at = &t->line;
    while (*at != NULL && (strcmp((*at)->pipeline->tenant, tick->pipeline->tenant) != 0 ||
                           strcmp((*at)->pipeline->id, tick->pipeline->id) != 0))
        at = &(*at)->next;
    old        = *at;
    copy->next = old != NULL ? old->next : NULL;
    *at        = copy;
    runner_unlock(&t->r->mutex);
    if (old != NULL) {
        note_tick(t->r, old, RUNNER_FAILED, false, TOO_LATE);
        free_tick(old);
    }
}

/* Start threads for the line as far as possible; a busy thread takes the rest when it is done. */
static void
serve_line(struct ticker *t)
{
    size_t n = 0;

    runner_lock(&t->r->mutex);
    for (const struct tick *tick = t->line; tick != NULL; tick = tick->next)
        n++;
    runner_unlock(&t->r->mutex);
    for (size_t i = 0; i < SLOW_MAX && n > 0; i++) {
        struct slow_thread *slow = &t->slow[i];
        if (slow->used && !atomic_load(&slow->done))
            continue;
        if (slow->used)
            CHECK(pthread_join(slow->id, NULL) == 0);
        slow->ticker = t;
        atomic_store(&slow->done, false);
        slow->used = runner_thread(&slow->id, slow_main, slow) == 0; /* else in the next round */
        n--;
    }
}

/* The runner stops. */
static void
end_slow(struct ticker *t)
{
    for (size_t i = 0; i < SLOW_MAX; i++) {
        if (t->slow[i].used)
            CHECK(pthread_join(t->slow[i].id, NULL) == 0);
    }
    while (t->line != NULL) { /* no other thread uses it any more */
        struct tick *tick = t->line;
        t->line           = tick->next;
        free_tick(tick);
    }
}

/* ---- the ticker ------------------------------------------------------------------------------ */

/* Sort quick ticks first; returns their number. */
static size_t
part(struct tick *ticks, size_t n)
{
    size_t n_quick = 0;

    for (size_t i = 0; i < n; i++) {
        if (!trigger_is_slow(ticks[i].pipeline)) {
            struct tick quick = ticks[i];
            ticks[i]          = ticks[n_quick];
            ticks[n_quick++]  = quick;
        }
    }
    return n_quick;
}

/* Trigger all that are due. False: the store was unreachable, and ticks not triggered are due
 * again; not slow ones, which their threads retry. */
static bool
trigger_due(struct ticker *t, int64_t now_ms)
{
    struct tick ticks[BATCH_MAX];
    size_t      n;
    bool        good = true;

    do {
        n              = take_due(t, now_ms, ticks, BATCH_MAX);
        size_t n_quick = part(ticks, n);
        if (n_quick > 0)
            good &= trigger_batch(t->r, ticks, n_quick);
        for (size_t i = n_quick; i < n; i++) {
            if (ticks[i].at_ms > t->slow_from_ms)
                line_up(t, &ticks[i]);
        }
        for (size_t i = 0; i < n; i++)
            il__pipeline_unref(ticks[i].pipeline);
    } while (n == BATCH_MAX);
    t->slow_from_ms = now_ms;
    serve_line(t);
    return good;
}

void *
runner_tick_main(void *arg)
{
    struct runner *r = arg;
    struct ticker *t = il__calloc(1, sizeof *t);

    if (t == NULL) {
        il_error error;
        (void)il__error_set(&error, IL_NOMEM, "no memory");
        runner_trouble(r, "cannot process schedules", &error);
        return NULL;
    }
    t->r = r;
    runner_lock(&r->mutex);
    while (!r->stopping) {
        int64_t now_ms = il__clock_wall_ms();
        runner_unlock(&r->mutex);
        if (!t->read || t->version != il__catalogue_version(r->catalogue))
            read_catalogue(t, now_ms);
        if (trigger_due(t, now_ms)) {
            t->from_ms = now_ms;
        } else { /* repeat from the same time; runs already created say so */
            t->read    = t->from_ms != 0;
            t->version = UINT64_MAX;
        }
        runner_lock(&r->mutex);
        int64_t next_ms = t->heap.first != NULL ? t->heap.first->at : IL__NEVER;
        int64_t wait_ms = MIN(MAX(next_ms - il__clock_wall_ms(), 1), SLEEP_MS_MAX);
        if (!r->stopping)
            runner_wait(&r->tick, &r->mutex, wait_ms * IL__NS_PER_MS);
    }
    runner_unlock(&r->mutex);
    end_slow(t);
    forget_all(t);
    il__free(t);
    return NULL;
}
