/*
 * work_kind.c: ingestions as a kind of work (apps/work/work.h): any well-formed name is a subject.
 * The refresh of recent events is the only one with a schedule.
 */
#include <stdio.h>

#include "apps/ingest/ingest_internal.h"
#include "base/clock.h"

#define CATCH_UP_MS 3600000 /* a refresh that was missed while no server was running */

_Static_assert(INGEST_RUN_NAME_BYTES_MAX <= WORK_NAME_BYTES_MAX, "a name is that of a subject");

/* ---- subjects -------------------------------------------------------------------------------- */

/* Is `name` the word `before`, and what follows it valid? */
static bool
is_name(const char *name, const char *before, bool (*valid)(const char *rest), const char **rest)
{
    size_t n = strlen(before);

    if (strncmp(name, before, n) != 0)
        return false;
    *rest = name + n;
    return valid != NULL ? valid(*rest) : **rest == '\0';
}

struct ingest_subject *
il__ingest_subject(const char *tenant, const char *name)
{
    const char            *rest = "";
    enum ingest_kind       kind = INGEST_RUN_COUNT;
    struct ingest_subject *s;

    if (is_name(name, INGEST_SOURCE ":", il__address_is_id, &rest))
        kind = INGEST_RUN_EVENT;
    else if (is_name(name, "events:", il__address_is_slug, &rest))
        kind = INGEST_RUN_EVENTS;
    else if (is_name(name, "tracks", NULL, &rest))
        kind = INGEST_RUN_TRACKS;
    else if (is_name(name, "recent", NULL, &rest))
        kind = INGEST_RUN_RECENT;
    if (kind == INGEST_RUN_COUNT || (s = il__calloc(1, sizeof *s)) == NULL)
        return NULL;
    atomic_init(&s->n_refs, 1);
    s->kind = kind;
    (void)snprintf(s->tenant, sizeof s->tenant, "%s", tenant);
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    s->id = s->name + (rest - name);
    return s;
}

static void *
find(void *cookie UNUSED, const char *tenant, const char *name)
{
    return il__ingest_subject(tenant, name);
}

static void *
ref(void *subject)
{
    atomic_fetch_add(&((struct ingest_subject *)subject)->n_refs, 1);
    return subject;
}

void
il__ingest_subject_drop(struct ingest_subject *s)
{
    if (atomic_fetch_sub(&s->n_refs, 1) == 1)
        il__free(s);
}

static void
drop(void *subject)
{
    il__ingest_subject_drop(subject);
}

static void
plan(void *cookie, const void *subject, struct work_plan *ret)
{
    const struct ingest         *in     = cookie;
    const struct ingest_subject *s      = subject;
    bool                         recent = s->kind == INGEST_RUN_RECENT;

    *ret = (struct work_plan){
        .tenant           = s->tenant,
        .name             = s->name,
        .version          = "",
        .timeout_ms       = in->o.max_ms,
        .stall_timeout_ms = in->o.stall_ms,
        .lock_timeout_ms  = in->o.slow_ms, /* reported, not enforced */
        .cron             = recent && in->scheduled ? &in->schedule : NULL,
        .zone             = in->utc,
        .catch_up_ms      = CATCH_UP_MS,
    };
}

static void
tenants(void *cookie, bool (*each)(void *each_cookie, const char *tenant), void *each_cookie)
{
    struct ingest *in   = cookie;
    bool           more = true;

    il__mutex_lock(&in->mutex);
    for (size_t i = 0; i < in->n_tenants && more; i++)
        more = each(each_cookie, in->tenants[i]);
    il__mutex_unlock(&in->mutex);
}

static void
tidy(void *cookie)
{
    il__ingest_tenants_read(cookie);
}

/* ---- schedule -------------------------------------------------------------------------------- */

static size_t
list(void *cookie, const char *after_tenant, const char *after_name UNUSED, void **subjects,
     size_t n)
{
    const struct ingest *in = cookie;

    if (!in->scheduled || after_tenant != NULL || n == 0)
        return 0;
    subjects[0] = il__ingest_subject(INGEST_TENANT, "recent");
    return subjects[0] != NULL ? 1 : 0;
}

static il_status
tick_op(void *cookie, const struct work_tick *tick, void **mem, il_op *op, il_error *reterr)
{
    const struct ingest *in = cookie;

    return il__ingest_start_op(&(struct ingest_start){ .kind    = INGEST_RUN_RECENT,
                                                       .tenant  = tick->plan.tenant,
                                                       .id      = tick->id,
                                                       .by      = "schedule",
                                                       .type    = "schedule",
                                                       .tracks  = in->tracks,
                                                       .days    = in->o.days,
                                                       .policy  = IL_POLICY_JOIN,
                                                       .keep_ms = tick->keep_ms },
                               mem, op, reterr);
}

static void
note(void *cookie, const struct work_note *n)
{
    il__ingest_note(
        cookie, &(struct ingest_note){
                    .type   = n->event == WORK_EVENT_expiring ? INGEST_NOTE_SLOW : INGEST_NOTE_WORK,
                    .work   = n,
                    .tenant = n->tenant,
                    .run    = n->run,
                    .name   = n->name,
                    .text   = n->text,
                    .duration_ns = n->hold_ms >= 0 ? n->hold_ms * IL__NS_PER_MS : -1,
                    .stage       = INGEST_STAGE_COUNT });
}

/* ---- executing ------------------------------------------------------------------------------- */

bool
il__ingestion_should_stop(void *cookie)
{
    struct ingestion *g = cookie;

    return work_run_should_stop(g->run) || atomic_load(&g->lost);
}

/* The run is to stop: whatever it waits for is cut short. */
static void
on_stop(void *cookie)
{
    struct ingestion *g = cookie;

    il__mutex_lock(&g->mutex);
    g->stopped = true;
    if (g->g != NULL)
        il_guard_interrupt(g->g);
    for (size_t i = 0; i < g->n_conns; i++)
        il__fetch_wake(g->conns[i]);
    CHECK(pthread_cond_broadcast(&g->changed) == 0);
    il__mutex_unlock(&g->mutex);
}

/* About once a second: is the advisory lock still held? */
static int64_t
on_watch(void *cookie, int64_t now_ns)
{
    return il__ingestion_advisory_lost(cookie) ? INT64_MAX : now_ns + 1000 * IL__NS_PER_MS;
}

static const struct work_callbacks callbacks = { .stop = on_stop, .watch = on_watch };

static void
read_parameters(struct ingestion *g)
{
    const json_t *p = g->run->parameters;

    g->track_slug     = json_string_value(json_object_get(p, "track_slug"));
    g->asked_event_id = json_string_value(json_object_get(p, "event_id"));
    g->tracks         = json_string_value(json_object_get(p, "tracks"));
    g->days           = (uint32_t)json_integer_value(json_object_get(p, "days"));
    g->force          = json_is_true(json_object_get(p, "force"));
    g->wait           = json_is_true(json_object_get(p, "wait"));
}

/* A handle of our own, so that a stop can interrupt it: one that a run has left, or a new one. */
static il_status
take_tables(struct ingest *in, il_guard **ret, il_error *reterr)
{
    struct tables_opts opts = { .observe = in->o.observe, .cookie = in->o.observe_cookie };

    il__mutex_lock(&in->mutex);
    il_guard *own = in->n_spare > 0 ? in->spare[--in->n_spare] : NULL;
    il__mutex_unlock(&in->mutex);
    if (own == NULL)
        return il__tables_open(&il__ingest_tables, in->o.place, &opts, ret, reterr);
    *ret = own;
    return IL_OK;
}

/* Leave it for the next run, unless it was interrupted. */
static void
leave_tables(struct ingestion *g)
{
    struct ingest *in  = g->in;
    il_guard      *own = g->g;

    il__mutex_lock(&in->mutex);
    if (own != NULL && !g->stopped && !atomic_load(&g->lost) && in->n_spare < INGEST_SPARE_MAX) {
        in->spare[in->n_spare++] = own;
        own                      = NULL;
    }
    il__mutex_unlock(&in->mutex);
    il_guard_close(own);
}

static bool
open_tables(struct ingestion *g)
{
    il_guard *own = NULL;
    il_error  err = { .message = "" };
    il_status st  = take_tables(g->in, &own, &err);

    if (st != IL_OK) {
        il__ingestion_fail_call(g, st, &err);
        return false;
    }
    il__mutex_lock(&g->mutex);
    g->g = own;
    if (g->stopped)
        il_guard_interrupt(own);
    il__mutex_unlock(&g->mutex);
    return true;
}

static bool
perform(struct ingestion *g)
{
    switch (g->subject->kind) {
    case INGEST_RUN_EVENT:
        return il__ingestion_event(g);
    case INGEST_RUN_TRACKS:
        return il__ingestion_sync_tracks(g);
    case INGEST_RUN_EVENTS:
        return il__ingestion_sync_events(g, g->subject->id);
    default:
        return il__ingestion_recent(g);
    }
}

/* Everything that the run used is closed when this returns: no thread of it is left, and no
 * statement. Only then apps/work gives its place and its lease back. */
static void
release(struct ingestion *g)
{
    il__ingestion_unlock(g);
    work_run_callbacks(g->run, NULL, NULL); /* nobody else uses it any more */
    for (size_t i = 0; i < g->n_conns; i++)
        il__fetch_close(g->conns[i]);
    leave_tables(g);
    CHECK(pthread_cond_destroy(&g->changed) == 0);
    il__mutex_destroy(&g->mutex);
    il__arena_free(&g->mem);
}

static bool
execute(struct work_run *run)
{
    struct ingestion *g = il__calloc(1, sizeof *g);

    if (g == NULL) {
        work_run_fail(run, false, "PERSISTENCE_ERROR: out of memory for an ingestion");
        return false;
    }
    g->in = run->cookie, g->run = run, g->subject = run->subject;
    g->stage = INGEST_STAGE_COUNT;
    il__mutex_init(&g->mutex, IL__MUTEX_ingestion);
    il__cond_init(&g->changed);
    read_parameters(g);
    work_run_callbacks(run, &callbacks, g);
    bool done = open_tables(g) && perform(g);
    if (!done && atomic_load(&g->lost))
        il__ingestion_fail(g, il_status_name(IL_LOST), NULL,
                           "the connection with the advisory lock of the event was lost");
    release(g);
    il__ingestion_conclude(g, done);
    run->own = g;
    return done;
}

/* The end of the run is in the store. */
static void
ended(struct work_run *run)
{
    struct ingestion *g = run->own;

    if (g == NULL)
        return;
    il__ingestion_ended(g);
    json_decref(g->result);
    free(g->details); /* NOLINT: jansson allocated it */
    il__free(g);
}

const struct work_kind il__ingest_kind = {
    .class    = INGEST_CLASS,
    .presence = "interlock.ingest",
    .find     = find,
    .ref      = ref,
    .drop     = drop,
    .plan     = plan,
    .tenants  = tenants,
    .execute  = execute,
    .ended    = ended,
    .tidy     = tidy,
    .note     = note,
    .list     = list,
    .tick_op  = tick_op,
};
