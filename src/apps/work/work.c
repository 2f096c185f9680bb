/* work.c: opens and closes an executor; its notes and counters. */
#include "apps/work/work.h"

#include <stdio.h>
#include <unistd.h>

#include "apps/work/work_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#define LEASE_MS 30000
#define GRACE_MS 5000
#define KEEP_MS (INT64_C(30) * 86400000)
#define RUNS_MAX 32
#define ALERT_PERMILLE 800
#define RECORDER_PATIENCE_MS 5000 /* time for the data store when the executor is closed */

/* ---- notes ----------------------------------------------------------------------------------- */

void
work_note(struct work *w, struct work_note note)
{
    w->kind->note(w->o.cookie, &note);
}

void
work_note_run(const struct work_execution *e, enum work_event event, const char *text)
{
    work_note(e->w, (struct work_note){ .event   = event,
                                        .tenant  = e->tenant,
                                        .name    = e->pub.plan.name,
                                        .run     = e->id,
                                        .text    = text,
                                        .wait_ms = -1,
                                        .hold_ms = -1,
                                        .fence   = e->pub.fence });
}

void
work_trouble(struct work *w, const char *what, const il_error *error)
{
    char    text[700];
    int64_t now_ns = il__clock_boot_ns();

    il__mutex_lock(&w->mutex);
    bool tell = w->trouble_ns == 0 || now_ns - w->trouble_ns >= WORK_NS_PER_S;
    if (tell)
        w->trouble_ns = now_ns;
    il__mutex_unlock(&w->mutex);
    if (!tell)
        return;
    (void)snprintf(text, sizeof text, "%s: %s", what, error->message);
    work_note(w, (struct work_note){
                     .event = WORK_EVENT_trouble, .text = text, .wait_ms = -1, .hold_ms = -1 });
}

static void
on_trouble(void *cookie, const char *what, const il_error *error)
{
    work_trouble(cookie, what, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
fill_defaults(struct work_options *o)
{
    if (o->lease_ms == 0)
        o->lease_ms = LEASE_MS;
    o->lease_ms = MAX(o->lease_ms, IL_TTL_MS_MIN);
    if (o->grace_ms == 0)
        o->grace_ms = GRACE_MS;
    if (o->keep_ms == 0)
        o->keep_ms = KEEP_MS;
    if (o->runs_max == 0)
        o->runs_max = RUNS_MAX;
    if (o->alert_permille == 0)
        o->alert_permille = ALERT_PERMILLE;
}

/* Our identity. The nonce distinguishes this process from one that had the same pid before, or
 * has it in another container. */
static il_status
make_names(struct work *w, il_error *reterr)
{
    char host[65] = "localhost";
    char nonce[37];

    if (gethostname(host, sizeof host) != 0 || host[0] == '\0')
        (void)snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    if (il_uuid(nonce) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    (void)snprintf(w->node, sizeof w->node, "%s:%ld", host, (long)getpid());
    (void)snprintf(w->instance, sizeof w->instance, "%s:%s", w->node, nonce + 24);
    int n = snprintf(w->prefix, sizeof w->prefix, "%s:", w->kind->class);
    CHECK(n > 1 && (size_t)n < sizeof w->prefix);
    w->n_prefix = (size_t)n;
    return IL_OK;
}

static void
init_sync(struct work *w)
{
    il__mutex_init(&w->mutex, IL__MUTEX_work);
    il__cond_init(&w->wake);
    il__cond_init(&w->watch);
    il__cond_init(&w->tick);
    il__cond_init(&w->idle);
}

il_status
work_open(const struct work_options *o, struct work **ret, il_error *reterr)
{
    struct work *w = il__calloc(1, sizeof *w);

    if (w == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for an executor of runs");
    w->o    = *o;
    w->kind = o->kind;
    CHECK((w->kind->list == NULL) == (w->kind->tick_op == NULL));
    fill_defaults(&w->o);
    init_sync(w);
    w->recorder.data      = w->o.data;
    w->recorder.run_class = w->kind->class;
    w->recorder.keep_ms   = w->o.keep_ms;
    w->recorder.purges    = w->o.mode == WORK_SERVE;
    w->recorder.trouble   = on_trouble;
    w->recorder.cookie    = w;
    il_status st          = make_names(w, reterr);
    if (st != IL_OK) {
        work_close(w);
        return st;
    }
    *ret = w;
    return IL_OK;
}

il_status
work_start(struct work *w, il_error *reterr)
{
    il_status st = work_recorder_start(&w->recorder, reterr);

    if (st != IL_OK || w->o.mode == WORK_ASK)
        return st;
    int rc = work_writers_start(&w->writers);
    if (rc == 0) {
        rc               = il__thread_start(&w->watcher, work_watch_main, w);
        w->watch_started = rc == 0;
    }
    if (rc == 0) {
        rc                  = il__thread_start(&w->dispatcher, work_dispatch_main, w);
        w->dispatch_started = rc == 0;
    }
    if (rc == 0 && w->o.mode == WORK_SERVE && w->kind->list != NULL) {
        rc              = il__thread_start(&w->ticker, work_tick_main, w);
        w->tick_started = rc == 0;
    }
    if (rc != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the threads that execute runs: %s",
                             strerror(rc));
    return IL_OK;
}

void
work_rescan(struct work *w)
{
    il__mutex_lock(&w->mutex);
    w->version++;
    w->rescan = true;
    CHECK(pthread_cond_signal(&w->wake) == 0);
    CHECK(pthread_cond_signal(&w->tick) == 0);
    il__mutex_unlock(&w->mutex);
}

/* ---- closing --------------------------------------------------------------------------------- */

void
work_stop(struct work *w)
{
    il__mutex_lock(&w->mutex);
    if (!w->stopping) {
        w->stopping = true;
        w->stop_ns  = il__clock_boot_ns() + w->o.shutdown_ms * IL__NS_PER_MS;
    }
    CHECK(pthread_cond_broadcast(&w->wake) == 0);
    CHECK(pthread_cond_broadcast(&w->watch) == 0);
    CHECK(pthread_cond_broadcast(&w->tick) == 0);
    CHECK(pthread_cond_broadcast(&w->idle) == 0);
    il__mutex_unlock(&w->mutex);
}

/* Stop every thread except the recorder, which still has to write how the runs ended. */
static void
end_threads(struct work *w)
{
    il__mutex_lock(&w->mutex);
    while (w->n_executions > 0)
        work_wait(&w->idle, &w->mutex, -1);
    w->closing = true;
    CHECK(pthread_cond_broadcast(&w->wake) == 0);
    CHECK(pthread_cond_broadcast(&w->watch) == 0);
    CHECK(pthread_cond_broadcast(&w->tick) == 0);
    il__mutex_unlock(&w->mutex);
    if (w->tick_started)
        CHECK(pthread_join(w->ticker, NULL) == 0);
    if (w->dispatch_started)
        CHECK(pthread_join(w->dispatcher, NULL) == 0); /* it has joined the run threads */
    if (w->watch_started)
        CHECK(pthread_join(w->watcher, NULL) == 0);
    work_writers_stop(&w->writers);
    work_recorder_stop(&w->recorder, RECORDER_PATIENCE_MS);
}

void
work_close(struct work *w)
{
    if (w == NULL)
        return;
    work_stop(w);
    end_threads(w);
    work_slots_release(&w->slots);
    CHECK(pthread_cond_destroy(&w->wake) == 0);
    CHECK(pthread_cond_destroy(&w->watch) == 0);
    CHECK(pthread_cond_destroy(&w->tick) == 0);
    CHECK(pthread_cond_destroy(&w->idle) == 0);
    il__mutex_destroy(&w->mutex);
    il__free(w);
}

bool
work_is_stopping(struct work *w)
{
    il__mutex_lock(&w->mutex);
    bool stopping = w->stopping;
    il__mutex_unlock(&w->mutex);
    return stopping;
}

bool
work_pause(struct work *w, int64_t ms)
{
    int64_t until_ns = il__clock_boot_ns() + ms * IL__NS_PER_MS;

    il__mutex_lock(&w->mutex);
    for (;;) {
        int64_t left_ns = until_ns - il__clock_boot_ns();
        if (left_ns <= 0 || w->stopping)
            break;
        work_wait(&w->idle, &w->mutex, left_ns);
    }
    bool go_on = !w->stopping;
    il__mutex_unlock(&w->mutex);
    return go_on;
}

/* ---- counters -------------------------------------------------------------------------------- */

struct work_recorder *
work_recorder(struct work *w)
{
    return &w->recorder;
}

void
work_stats(struct work *w, struct work_stats *ret)
{
    *ret = (struct work_stats){ 0 };
    il__mutex_lock(&w->mutex);
    ret->n_running   = w->n_executions;
    ret->n_waiting   = w->slots.n;
    ret->n_expiring  = w->n_expiring;
    ret->n_unrenewed = w->n_unrenewed;
    il__mutex_unlock(&w->mutex);
#define X(name) ret->n_##name = atomic_load(&w->n_##name);
    WORK_COUNTERS(X)
#undef X
    ret->n_history_dropped = work_records_dropped(&w->recorder);
}
