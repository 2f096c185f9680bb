/*
 * lock.c: the leases of an event and the advisory locks beside them, and how a write shows their
 * fences; see ingest.h for the order.
 *
 * A lease says who may write, a fence proves it to the database. The source lease is held for one
 * transaction, so it cannot be part of a deadlock; that of the event is never waited for in its
 * queue: with `wait` it is asked for again each second.
 */
#include <poll.h>
#include <stdio.h>

#include "apps/ingest/ingest_internal.h"
#include "base/clock.h"
#include "base/error.h"

#define LEASE_MS 30000
#define STOP_MS 5000 /* time to stop before the lease can end */
#define AGAIN_MS 1000
#define SOURCE_TRIES 10

/* ---- writes ---------------------------------------------------------------------------------- */

static bool
go_on(void *cookie)
{
    struct ingestion *g = cookie;

    work_run_alive(g->run);
    il__ingestion_point(g, "statement");
    return !il__ingestion_should_stop(g);
}

void
il__ingestion_write(struct ingestion *g, struct ingestion_write *ret, const il_lease *lease)
{
    *ret           = (struct ingestion_write){ .w = { .tenant     = g->run->tenant,
                                                      .fences     = ret->fences,
                                                      .go_on      = go_on,
                                                      .cookie     = g,
                                                      .totals     = &ret->totals,
                                                      .validators = ret->validators } };
    ret->fences[0] = (il_guard_fence){
        .h = g->run->h, .tenant = g->run->tenant, .key = g->run->key, .fence = g->run->fence
    };
    ret->w.n_fences = 1;
    if (lease == NULL)
        return;
    (void)snprintf(ret->key, sizeof ret->key, "%s", il_lease_key(lease));
    ret->fences[1] = (il_guard_fence){
        .h = g->run->h, .tenant = g->run->tenant, .key = ret->key, .fence = il_lease_fence(lease)
    };
    ret->w.n_fences = 2;
}

void
il__ingestion_validator(struct ingestion_write *w, const struct fetched *page)
{
    if (page->unchanged || (page->etag[0] == '\0' && page->modified[0] == '\0'))
        return;
    CHECK(w->w.n_validators < ARRAY_LEN(w->validators));
    w->validators[w->w.n_validators++] = (struct ingest_validator){
        .url = page->address.url, .etag = page->etag, .last_modified = page->modified
    };
}

void
il__ingestion_point(struct ingestion *g, const char *where)
{
    if (g->in->o.point != NULL)
        g->in->o.point(g->in->o.cookie, where);
}

il_status
il__ingestion_wrote(struct ingestion *g, const struct ingestion_write *w, il_status st)
{
    if (st == IL_OK) {
        il__ingest_totals_add(&g->stages[g->stage].rows, &w->totals);
        il__ingest_totals_add(&g->totals, &w->totals);
        il__ingestion_point(g, "committed");
    }
    return st;
}

/* ---- who is in the way ----------------------------------------------------------------------- */

/* The run that holds the lease: its id is the meta of the lease. */
static void
look_at_run(struct ingestion *g, const il_lease_info *lease, il_op *op)
{
    *op           = (il_op){ .type = IL_OP_RUN_GET, .tenant = g->run->tenant };
    op->in.run.id = lease->meta;
    if (lease->meta[0] == '\0' || il_apply(g->run->h, op, 1, NULL) != IL_OK || op->status != IL_OK)
        op->out.n_runs = 0;
}

/* The lease of the event is held by somebody else. */
static void
fail_held(struct ingestion *g, const char *key)
{
    il_op                op    = { .type = IL_OP_GET, .tenant = g->run->tenant, .key = key };
    il_op                run   = { .type = IL_OP_NONE };
    const il_lease_info *lease = NULL;

    if (il_apply(g->run->h, &op, 1, NULL) == IL_OK && op.status == IL_OK && op.out.n_items > 0)
        lease = &op.out.items[0];
    if (lease != NULL)
        look_at_run(g, lease, &run);
    const char *details =
        il__ingest_conflict(run.out.n_runs > 0 ? &run.out.runs[0] : NULL, lease, false, &g->mem);
    il__ingestion_fail(g, "INGESTION_IN_PROGRESS",
                       json_loads(details != NULL ? details : "", 0, NULL), "%s is held by %s", key,
                       lease != NULL ? lease->holder : "another ingestion");
    il_op_release(&run);
    il_op_release(&op);
}

static void
fail_foreign(struct ingestion *g, const char *key)
{
    const char *details = il__ingest_conflict(NULL, NULL, true, &g->mem);

    il__ingestion_fail(g, "INGESTION_IN_PROGRESS",
                       json_loads(details != NULL ? details : "", 0, NULL),
                       "another program holds the advisory lock of %s", key);
}

/* ---- advisory locks -------------------------------------------------------------------------- */

/* The ids have no tenant, so only one tenant takes them; in other databases nobody else does. */
static il_status
take_advisory(struct ingestion *g, const char *key, il_error *reterr)
{
    il_advisory *own = NULL;

#ifdef IL_MUTANT_ingest_neighbour_ignored
    return IL_OK;
#endif
    if (strcmp(g->run->tenant, INGEST_TENANT) != 0)
        return IL_OK;
    il_status st = il_guard_advisory_take(g->g, key, &own, reterr);
    if (st == IL_INVAL)
        return IL_OK; /* not PostgreSQL */
    if (st == IL_OK) {
        il__mutex_lock(&g->mutex);
        g->advisory = own;
        il__mutex_unlock(&g->mutex);
    }
    return st;
}

static void
drop_advisory(struct ingestion *g)
{
    il__mutex_lock(&g->mutex);
    il_advisory *own = TAKE(g->advisory);
    il__mutex_unlock(&g->mutex);
    il_advisory_release(own);
}

/* The descriptor is readable when the server has closed the connection: asking then does not
 * block. The run stops as if its lease were lost. */
bool
il__ingestion_advisory_lost(struct ingestion *g)
{
    il__mutex_lock(&g->mutex);
    struct pollfd p = { .fd = il_advisory_fd(g->advisory), .events = POLLIN };
    if (g->advisory != NULL && poll(&p, 1, 0) > 0 &&
        il_advisory_check(g->advisory, NULL) != IL_OK) {
        atomic_store(&g->lost, true);
        if (g->g != NULL)
            il_guard_interrupt(g->g);
        for (size_t i = 0; i < g->n_conns; i++)
            il__fetch_wake(g->conns[i]);
        CHECK(pthread_cond_broadcast(&g->changed) == 0);
    }
    bool lost = atomic_load(&g->lost);
    il__mutex_unlock(&g->mutex);
    return lost;
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* On the watchdog's thread: before the lease can pass to another holder. */
static void
on_lost(void *cookie, il_lease *lease UNUSED, const char *why)
{
    struct ingestion *g = cookie;
    char              text[300];

    (void)snprintf(text, sizeof text, "%s: lost the event's lease: %.200s", il_status_name(IL_LOST),
                   why != NULL ? why : "it has expired");
    work_run_fail(g->run, false, text);
}

/* A new holder each time: one whose lease has ended is refused for a while. */
static il_status
acquire(struct ingestion *g, const char *key, il_lease **ret, il_error *reterr)
{
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;
    char            holder[IL_HOLDER_BYTES_MAX + 1];

    (void)snprintf(holder, sizeof holder, "%s/%u", g->run->holder, ++g->n_leases);
    o.holder  = holder;
    o.tenant  = g->run->tenant;
    o.ttl_ms  = LEASE_MS;
    o.stop_ms = STOP_MS;
    o.meta    = g->run->id;
    o.on_lost = on_lost;
    o.cookie  = g;
    return il_acquire(g->run->h, key, &o, ret, reterr);
}

static bool
rest(struct ingestion *g, int64_t ms)
{
    int64_t until_ns = il__clock_boot_ns() + ms * IL__NS_PER_MS;
    int64_t left_ns  = ms * IL__NS_PER_MS;

    il__mutex_lock(&g->mutex);
    while (!il__ingestion_should_stop(g) && left_ns > 0) {
        (void)il__cond_wait(&g->changed, &g->mutex, left_ns);
        left_ns = until_ns - il__clock_boot_ns();
    }
    il__mutex_unlock(&g->mutex);
    return !il__ingestion_should_stop(g);
}

static void
note_lease(struct ingestion *g, enum ingest_note_type type, const char *text)
{
    il__ingest_note(g->in,
                    &(struct ingest_note){ .type     = type,
                                           .tenant   = g->run->tenant,
                                           .run      = g->run->id,
                                           .name     = g->run->plan.name,
                                           .event_id = g->event_id[0] != '\0' ? g->event_id : NULL,
                                           .text     = text,
                                           .stage    = g->stage,
                                           .duration_ns = il__clock_boot_ns() - g->lease_ns });
}

/* The store confirms a release, or the lease expires. */
static void
drop_lease(struct ingestion *g)
{
    il_error err = { .message = "" };

    if (g->lease == NULL)
        return;
    il_status st = il_lease_release(g->lease, &err);
    note_lease(g, st == IL_OK ? INGEST_NOTE_RELEASED : INGEST_NOTE_UNRELEASED,
               st == IL_OK ? il_lease_key(g->lease) : err.message);
    il_lease_free(TAKE(g->lease));
}

void
il__ingestion_unlock(struct ingestion *g)
{
    drop_advisory(g);
    drop_lease(g);
}

/* Both locks of a key. IL_HELD: by somebody else; *ret_foreign: by an advisory lock. */
static il_status
lock_both(struct ingestion *g, const char *key, bool *ret_foreign, il_error *reterr)
{
    *ret_foreign = false;
    il_status st = acquire(g, key, &g->lease, reterr);
    if (st != IL_OK)
        return st;
    g->lease_ns = il__clock_boot_ns();
    st          = take_advisory(g, key, reterr);
    if (st == IL_OK) {
        note_lease(g, INGEST_NOTE_LOCKED, key);
        return IL_OK;
    }
    *ret_foreign = st == IL_HELD;
    il__ingestion_unlock(g);
    return st;
}

/* Lock a key; asks `tries` times, or for as long as the run may wait. */
static bool
lock_key(struct ingestion *g, const char *key, unsigned tries)
{
    bool     foreign = false, said = false;
    il_error err = { .message = "" };

    for (;;) {
        il_status st = lock_both(g, key, &foreign, &err);
        if (st == IL_OK)
            return true;
        if (st != IL_HELD) {
            il__ingestion_fail_call(g, st, &err);
            return false;
        }
        if (tries > 0)
            tries--;
        if (tries == 0 && !g->wait) {
            foreign ? fail_foreign(g, key) : fail_held(g, key);
            return false;
        }
        if (!said)
            work_run_say(g->run, "waiting for %s: %s", key, err.message);
        said = true;
        work_run_alive(g->run); /* waiting for another ingestion is no stall */
        if (!rest(g, AGAIN_MS))
            return false;
    }
}

bool
il__ingestion_lock(struct ingestion *g)
{
    char key[IL_KEY_BYTES_MAX + 1];

    (void)snprintf(key, sizeof key, "event:%s", g->event_id);
#ifdef IL_MUTANT_ingest_event_unlocked
    return true;
#endif
    return lock_key(g, key, 1);
}

/* ---- the row of the event -------------------------------------------------------------------- */

/* Is the row that was found the one that was asked for? Else il__ingest_event_make() says why. */
static bool
is_asked_for(const struct ingestion *g)
{
    return g->is_known &&
           (g->asked_event_id == NULL || strcmp(g->known.event_id, g->asked_event_id) == 0) &&
           strcmp(g->known.track_slug, g->track_slug) == 0;
}

bool
il__ingestion_find_event(struct ingestion *g)
{
    struct ingestion_write w;
    char                   key[IL_KEY_BYTES_MAX + 1];
    il_error               err = { .message = "" };

    if (is_asked_for(g)) {
        (void)snprintf(g->event_id, sizeof g->event_id, "%s", g->known.event_id);
        return true;
    }
    (void)snprintf(key, sizeof key, "source_event:%s", g->subject->id);
    if (!lock_key(g, key, SOURCE_TRIES))
        return false;
    il__ingestion_write(g, &w, g->lease);
    il__ingestion_point(g, "creating");
    il_status st =
        il__ingestion_wrote(g, &w,
                            il__ingest_event_make(g->g, &w.w, g->subject->id, g->track_slug,
                                                  g->asked_event_id, g->event_id, NULL, &err));
    il__ingestion_unlock(g);
    if (st != IL_OK)
        il__ingestion_fail_call(g, st, &err);
    return st == IL_OK;
}
