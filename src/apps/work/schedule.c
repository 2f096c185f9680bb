/*
 * schedule.c: schedules. Each server computes the ticks of its subjects and triggers them. The id
 * of the run is derived from tenant, key and tick, so of all servers that trigger a tick one
 * creates the run, and the others learn that it exists. No server is special, and none needs to
 * know of the others.
 *
 * Ticks that are due together are triggered together, in one commit. Those that may have to wait
 * are *slow* (struct work_plan): they are handled by separate threads, never by the ticker, and
 * each tenant has a share of these threads (runtime/fair.h). Until a thread takes it, a slow tick
 * waits in a line that holds at most one per subject: the newest.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/work/work_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/parse.h"
#include "base/thread.h"
#include "core/limits.h"
#include "runtime/fair.h"

#define BATCH_MAX 256
#define SLOW_MAX 16 /* threads for slow triggers */
#define PAGE 256
#define SLEEP_MS_MAX 1000 /* the wall clock may be changed */
#define TOO_LATE "timed out waiting for other triggers"

/* A subject with a schedule. node.at: its next tick. */
struct entry {
    struct il__heap_node node;
    void                *subject; /* a reference */
    struct work_plan     plan;
};
/* A tick that is due; holds a reference to its subject. */
struct tick {
    struct tick     *next; /* of a slow tick: in the line */
    struct work_tick pub;
};
struct slow_thread {
    struct ticker *ticker;
    pthread_t      id;
    const char    *tenant; /* tenant of its tick; NULL = none; under work.mutex */
    bool           used;
    atomic_bool    done; /* it takes no more ticks and can be joined */
};
struct ticker {
    struct work       *w;
    struct il__heap    heap;
    uint64_t           version; /* of the subjects when last read */
    bool               read;
    int64_t            from_ms;      /* ticks up to this time have been handled */
    int64_t            slow_from_ms; /* slow ticks up to this time have been put into the line */
    struct slow_thread slow[SLOW_MAX];
    /* under work.mutex: */
    struct tick *line; /* slow ticks not taken by a thread yet */
};

/* ---- due ticks ------------------------------------------------------------------------------- */

static int64_t
next_tick(const struct work_plan *plan, int64_t after_ms)
{
    return plan->cron != NULL ? il__cron_next_in(plan->zone, plan->cron, after_ms) : IL__NEVER;
}

static void
free_entry(struct ticker *t, struct entry *entry)
{
    il__heap_remove(&t->heap, &entry->node);
    t->w->kind->drop(entry->subject);
    il__free(entry);
}

static void
forget_all(struct ticker *t)
{
    while (t->heap.first != NULL)
        free_entry(t, container_of(t->heap.first, struct entry, node));
}

static void
add_entry(struct ticker *t, void *subject, const struct work_plan *plan, int64_t after_ms)
{
    int64_t       next_ms = next_tick(plan, after_ms);
    struct entry *entry   = next_ms != IL__NEVER ? il__calloc(1, sizeof *entry) : NULL;

    if (entry == NULL)
        return; /* out of memory: skipped until the subjects change */
    entry->subject = t->w->kind->ref(subject);
    entry->plan    = *plan;
    entry->node.at = next_ms;
    il__heap_add(&t->heap, &entry->node);
}

/* Read the subjects again. The first time, ticks missed while no server was running are considered
 * as well, as far back as the plan allows. */
static void
read_subjects(struct ticker *t, int64_t now_ms)
{
    const struct work *w = t->w;
    void              *page[PAGE];
    char               tenant[IL_TENANT_BYTES_MAX + 1], name[WORK_NAME_BYTES_MAX + 1];
    size_t             n;
    bool               first = true;

    forget_all(t);
    do {
        n     = w->kind->list(w->o.cookie, first ? NULL : tenant, first ? NULL : name, page, PAGE);
        first = false;
        for (size_t i = 0; i < n; i++) {
            struct work_plan plan = { .tenant = NULL };
            w->kind->plan(w->o.cookie, page[i], &plan);
            add_entry(t, page[i], &plan, t->read ? t->from_ms : now_ms - plan.catch_up_ms);
            (void)snprintf(tenant, sizeof tenant, "%s", plan.tenant);
            (void)snprintf(name, sizeof name, "%s", plan.name);
            w->kind->drop(page[i]);
        }
    } while (n == PAGE);
    t->read = true;
}

/* The newest due tick of an entry; *ret_next_ms: the one after it. */
static int64_t
newest(const struct work_plan *plan, int64_t tick_ms, int64_t now_ms, int64_t *ret_next_ms)
{
    int64_t next_ms = next_tick(plan, tick_ms);

    while (next_ms <= now_ms) {
        tick_ms = next_ms;
        next_ms = next_tick(plan, tick_ms);
    }
    *ret_next_ms = next_ms;
    return tick_ms;
}

/* The id of a tick's run: a UUID (version 8), the same on every server. The tick's time comes
 * first, as in other run ids; the rest is a hash of tenant and key. */
static void
make_id(const struct work *w, const struct work_plan *plan, int64_t tick_ms,
        char out[IL_ID_BYTES_MAX + 1])
{
    char     key[IL_KEY_BYTES_MAX + 1];
    uint64_t ms = (uint64_t)tick_ms;

    (void)snprintf(key, sizeof key, "%s%s", w->prefix, plan->name);
    uint64_t seed = il__hash_stable(plan->tenant, strlen(plan->tenant), 0);
    uint64_t hash = il__hash_stable(key, strlen(key), seed);
    (void)snprintf(out, IL_ID_BYTES_MAX + 1, "%08x-%04x-8%03x-%04x-%012" PRIx64,
                   (unsigned)(ms >> 16), (unsigned)(ms & 0xFFFF), (unsigned)(seed & 0xFFF),
                   (unsigned)(0x8000 | (hash >> 48 & 0x3FFF)), hash & UINT64_C(0xFFFFFFFFFFFF));
    CHECK(il__is_uuid(out)); /* apps may rely on it */
}

/* How long a slow tick may wait in the line: until the next one. */
static int64_t
line_ms(const struct work_tick *tick)
{
    int64_t next_ms = next_tick(&tick->plan, tick->at_ms);

    return MAX(tick->plan.catch_up_ms, MIN(next_ms - tick->at_ms, IL__DAY_MS));
}

/* How long after its tick a server may still create the run. */
static int64_t
late_ms(const struct work_tick *tick)
{
    return tick->plan.slow ? line_ms(tick) + tick->plan.slow_ms : tick->plan.catch_up_ms;
}

/* Take due ticks, at most n. */
static size_t
take_due(struct ticker *t, int64_t now_ms, struct tick *ticks, size_t n)
{
    const struct work *w       = t->w;
    size_t             n_taken = 0;

    while (n_taken < n && il__heap_due(&t->heap, now_ms)) {
        struct entry *entry = container_of(t->heap.first, struct entry, node);
        int64_t       next_ms;
        int64_t       tick_ms = newest(&entry->plan, entry->node.at, now_ms, &next_ms);
        if (now_ms - tick_ms <= MAX(entry->plan.catch_up_ms, SLEEP_MS_MAX)) {
            struct work_tick *tick = &ticks[n_taken++].pub;
            tick->subject          = w->kind->ref(entry->subject);
            tick->plan             = entry->plan;
            tick->at_ms            = tick_ms;
            /* the clocks of servers differ slightly */
            tick->keep_ms = MAX(w->o.keep_ms, late_ms(tick) + WORK_CLOCKS_MS);
            make_id(w, &entry->plan, tick_ms, tick->id);
        }
        if (next_ms != IL__NEVER)
            il__heap_move(&t->heap, &entry->node, next_ms);
        else
            free_entry(t, entry);
    }
    return n_taken;
}

/* ---- triggering ------------------------------------------------------------------------------ */

enum work_ticked
work_ticked(const struct work *w, const struct work_tick *tick, const il_op *op, il_error *reterr)
{
    bool own = op->out.n_runs > 0 && strcmp(op->out.runs[0].id, tick->id) == 0;

    if (op->status == IL_OK)
        return (op->out.flags & IL_OUT_RENEWED) != 0 ? WORK_TICK_EXISTS : WORK_TICK_STARTED;
    if (own)
        return WORK_TICK_EXISTS;
    if (reterr->message[0] != '\0')
        return WORK_TICK_SKIPPED;
    if (op->out.detail == NULL && (op->status == IL_DUPLICATE || op->status == IL_HELD))
        (void)il__error_set(reterr, op->status, "the %s is already running", w->kind->class);
    else
        (void)il__error_set(reterr, op->status, "%s",
                            op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
    return WORK_TICK_SKIPPED;
}

static void
note_tick(struct work *w, const struct work_tick *tick, enum work_ticked how, const char *why)
{
    struct work_note note = { .event   = WORK_EVENT_tick,
                              .tenant  = tick->plan.tenant,
                              .name    = tick->plan.name,
                              .run     = tick->id,
                              .wait_ms = -1,
                              .hold_ms = -1 };

    if (how == WORK_TICK_EXISTS) /* another server was first */
        return;
    if (how == WORK_TICK_STARTED) {
        atomic_fetch_add(&w->n_schedule_ticks, 1);
    } else {
        atomic_fetch_add(&w->n_schedule_skipped, 1);
        note.event = WORK_EVENT_tick_skipped;
        note.run   = NULL;
        note.text  = why;
    }
    work_note(w, note);
}

static void
done_with(struct work *w, const struct work_tick *tick, const il_op *op)
{
    il_error         error = { .message = "" };
    enum work_ticked how   = work_ticked(w, tick, op, &error);

    note_tick(w, tick, how, error.message);
    if (op->status == IL_OK)
        work_slot_created(w, tick->plan.tenant, tick->id, tick->plan.name);
}

/* One commit for all. If the store is unreachable they are retried in the ticker's next round. */
static bool
trigger_batch(struct work *w, const struct tick *ticks, size_t n)
{
    AUTO(il__arena_free) void *mem   = NULL;
    il_op                     *ops   = il__calloc(n, sizeof *ops);
    const struct work_tick   **of    = il__calloc(n, sizeof(struct work_tick *));
    size_t                     n_ops = 0;
    il_error                   error = { .message = "" };
    il_status                  st    = ops != NULL && of != NULL ? IL_OK : IL_NOMEM;

    for (size_t i = 0; st == IL_OK && i < n; i++) {
        const struct work_tick *tick = &ticks[i].pub;
        if (w->kind->tick_op(w->o.cookie, tick, &mem, &ops[n_ops], &error) == IL_OK)
            of[n_ops++] = tick;
        else /* a parameter without a default: the subject cannot be scheduled */
            note_tick(w, tick, WORK_TICK_SKIPPED, error.message);
    }
    if (st == IL_OK && n_ops > 0)
        st = il_apply(w->o.h, ops, n_ops, &error);
    if (st != IL_OK)
        work_trouble(w, "cannot start scheduled runs", &error);
    for (size_t i = 0; i < n_ops; i++) {
        if (st == IL_OK)
            done_with(w, of[i], &ops[i]);
        il_op_release(&ops[i]);
    }
    il__free(ops);
    il__free(of);
    return st == IL_OK;
}

/* ---- slow ticks ------------------------------------------------------------------------------ */

/* Retry while the store is unreachable, for as long as the ticker does so with the others. */
static void
trigger_slowly(struct work *w, const struct work_tick *tick)
{
    int64_t until_ms = tick->at_ms + MAX(tick->plan.catch_up_ms, SLEEP_MS_MAX);

    for (;;) {
        il_error         error = { .message = "" };
        enum work_ticked how   = w->kind->tick_slowly(w->o.cookie, tick, &error);
        if (how == WORK_TICK_UNHEARD)
            work_trouble(w, "cannot start scheduled runs", &error);
        if (how == WORK_TICK_UNHEARD && il__clock_wall_ms() < until_ms &&
            work_pause(w, SLEEP_MS_MAX))
            continue;
        note_tick(w, tick, how, error.message);
        return;
    }
}

static void
free_tick(const struct work *w, struct tick *tick)
{
    w->kind->drop(tick->pub.subject);
    il__free(tick);
}

/* May the tenant use one more thread? work.mutex is held. */
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

/* The first tick in the line that this thread may take; work.mutex is held. */
static struct tick *
take_slow(struct slow_thread *me)
{
    for (struct tick **at = &me->ticker->line; *at != NULL; at = &(*at)->next) {
        struct tick *tick = *at;
        if (!has_thread(me->ticker, tick->pub.plan.tenant))
            continue;
        me->tenant = tick->pub.plan.tenant;
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
    struct work        *w  = t->w;
    struct tick        *tick;

    il__mutex_lock(&w->mutex);
    while (!w->stopping && (tick = take_slow(me)) != NULL) {
        il__mutex_unlock(&w->mutex);
        if (il__clock_wall_ms() - tick->pub.at_ms <= line_ms(&tick->pub) + SLEEP_MS_MAX)
            trigger_slowly(w, &tick->pub);
        else
            note_tick(w, &tick->pub, WORK_TICK_SKIPPED, TOO_LATE);
        il__mutex_lock(&w->mutex);
        me->tenant = NULL;
        free_tick(w, tick);
    }
    atomic_store(&me->done, true); /* threads that add to the line from now on see it */
    il__mutex_unlock(&w->mutex);
    return NULL;
}

/* Put a tick into the line, replacing a waiting tick of the same subject. */
static void
line_up(struct ticker *t, const struct tick *tick)
{
    struct work            *w    = t->w;
    const struct work_plan *plan = &tick->pub.plan;
    struct tick            *copy = il__alloc(sizeof *copy);

    if (copy == NULL) {
        note_tick(w, &tick->pub, WORK_TICK_SKIPPED, il_status_text(IL_NOMEM));
        return;
    }
    *copy             = *tick;
    copy->pub.subject = w->kind->ref(tick->pub.subject);
    il__mutex_lock(&w->mutex);
    struct tick **at = &t->line;
    while (*at != NULL && (strcmp((*at)->pub.plan.tenant, plan->tenant) != 0 ||
                           strcmp((*at)->pub.plan.name, plan->name) != 0))
        at = &(*at)->next;
    struct tick *old = *at;
    copy->next       = old != NULL ? old->next : NULL;
    *at              = copy;
    il__mutex_unlock(&w->mutex);
    if (old != NULL) {
        note_tick(w, &old->pub, WORK_TICK_SKIPPED, TOO_LATE);
        free_tick(w, old);
    }
}

/* Start threads for the line as far as possible; a busy thread takes the rest when it is done. */
static void
serve_line(struct ticker *t)
{
    size_t n = 0;

    il__mutex_lock(&t->w->mutex);
    for (const struct tick *tick = t->line; tick != NULL; tick = tick->next)
        n++;
    il__mutex_unlock(&t->w->mutex);
    for (size_t i = 0; i < SLOW_MAX && n > 0; i++) {
        struct slow_thread *slow = &t->slow[i];
        if (slow->used && !atomic_load(&slow->done))
            continue;
        if (slow->used)
            CHECK(pthread_join(slow->id, NULL) == 0);
        slow->ticker = t;
        atomic_store(&slow->done, false);
        slow->used = il__thread_start(&slow->id, slow_main, slow) == 0; /* else next round */
        n--;
    }
}

/* The executor stops. */
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
        free_tick(t->w, tick);
    }
}

/* ---- the ticker ------------------------------------------------------------------------------ */

/* Sort quick ticks first; returns their number. */
static size_t
part(struct tick *ticks, size_t n)
{
    size_t n_quick = 0;

    for (size_t i = 0; i < n; i++) {
        if (!ticks[i].pub.plan.slow) {
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
trigger_due(struct ticker *t, struct tick *ticks, int64_t now_ms)
{
    size_t n;
    bool   good = true;

    do {
        n              = take_due(t, now_ms, ticks, BATCH_MAX);
        size_t n_quick = part(ticks, n);
        if (n_quick > 0)
            good &= trigger_batch(t->w, ticks, n_quick);
        for (size_t i = n_quick; i < n; i++) {
            if (ticks[i].pub.at_ms > t->slow_from_ms)
                line_up(t, &ticks[i]);
        }
        for (size_t i = 0; i < n; i++)
            t->w->kind->drop(ticks[i].pub.subject);
    } while (n == BATCH_MAX);
    t->slow_from_ms = now_ms;
    serve_line(t);
    return good;
}

static void
tick_until_stopped(struct ticker *t, struct tick *ticks)
{
    struct work *w = t->w;

    il__mutex_lock(&w->mutex);
    while (!w->stopping) {
        int64_t now_ms  = il__clock_wall_ms();
        bool    changed = !t->read || t->version != w->version;
        t->version      = w->version;
        il__mutex_unlock(&w->mutex);
        if (changed)
            read_subjects(t, now_ms);
        if (trigger_due(t, ticks, now_ms)) {
            t->from_ms = now_ms;
        } else { /* repeat from the same time; runs already created say so */
            t->read    = t->from_ms != 0;
            t->version = UINT64_MAX;
        }
        il__mutex_lock(&w->mutex);
        int64_t next_ms = t->heap.first != NULL ? t->heap.first->at : IL__NEVER;
        int64_t wait_ms = MIN(MAX(next_ms - il__clock_wall_ms(), 1), SLEEP_MS_MAX);
        if (!w->stopping)
            work_wait(&w->tick, &w->mutex, wait_ms * IL__NS_PER_MS);
    }
    il__mutex_unlock(&w->mutex);
}

void *
work_tick_main(void *arg)
{
    struct work   *w     = arg;
    struct ticker *t     = il__calloc(1, sizeof *t);
    struct tick   *ticks = il__calloc(BATCH_MAX, sizeof *ticks);

    if (t != NULL && ticks != NULL) {
        t->w = w;
        tick_until_stopped(t, ticks);
        end_slow(t);
        forget_all(t);
    } else {
        il_error error;
        (void)il__error_nomem(&error);
        work_trouble(w, "cannot process schedules", &error);
    }
    il__free(ticks);
    il__free(t);
    return NULL;
}
