/*
 * ahead.c: the pages of the races of an event, fetched and parsed ahead by a few threads while the
 * run's own thread writes the earlier ones.
 *
 * A ring of places, one per race, bounds how far ahead: race i uses place i % n_places. A place
 * belongs to the fetching thread that took the race's number, then (ready) to the run's thread, and
 * is free again when the race was written. So memory does not depend on the number of races.
 */
#include "apps/ingest/ingest_internal.h"
#include "base/thread.h"

#define PLACES_MAX (FETCH_PERMITS_MAX + 2)

struct place {
    struct ahead_race race;
    bool              ready;
};

/* Protected by the ingestion's mutex, except the races in the places. */
struct ahead {
    struct ingestion              *g;
    const struct liverc_race_link *links;
    size_t                         n, n_begun, n_taken;
    struct place                   places[PLACES_MAX];
    size_t                         n_places;
};

/* ---- fetching -------------------------------------------------------------------------------- */

/* Pages that are still on their way are of no use once nobody takes them. */
static bool
should_stop(void *cookie)
{
    struct ingestion *g = cookie;

    return atomic_load(&g->enough) || il__ingestion_should_stop(g);
}

static void
parse(struct ingestion *g, struct ahead_race *r)
{
    struct liverc_source s = { .body    = il__buf_str(&r->page.body),
                               .n_bytes = r->page.body.n_bytes,
                               .id      = r->link->id,
                               .slug    = g->track_slug };

    r->status = il__liverc_race(&r->parsed, &s, &r->race, &r->error);
    if (r->status != IL_OK)
        r->code = r->parsed.code;
    il__buf_release(&r->page.body); /* what was parsed does not refer to it */
}

static void
get(struct ahead *a, struct fetch_conn *c, size_t i)
{
    struct ingestion  *g = a->g;
    struct ahead_race *r = &a->places[i % a->n_places].race;

    *r         = (struct ahead_race){ .link = &a->links[i] };
    bool known = !g->force && il__ingest_known_race(&g->known, r->link->id);
    if (il__ingestion_get(g, c, LIVERC_RACE, g->track_slug, r->link->id, known, &r->page, &r->error,
                          &r->status)) {
        if (!r->page.unchanged)
            parse(g, r);
    } else {
        r->code = r->page.code;
    }
}

/* The number of the next race, once a place for it is free; SIZE_MAX: all were taken. */
static size_t
begin_next(struct ahead *a)
{
    struct ingestion *g = a->g;

    il__mutex_lock(&g->mutex);
    while (!should_stop(g) && a->n_begun < a->n && a->n_begun >= a->n_taken + a->n_places)
        (void)il__cond_wait(&g->changed, &g->mutex, -1);
    size_t i = !should_stop(g) && a->n_begun < a->n ? a->n_begun++ : SIZE_MAX;
    il__mutex_unlock(&g->mutex);
    return i;
}

struct worker {
    struct ahead      *a;
    struct fetch_conn *conn;
    pthread_t          thread;
};

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    struct ahead  *a = w->a;

    for (size_t i = begin_next(a); i != SIZE_MAX; i = begin_next(a)) {
        get(a, w->conn, i);
        il__mutex_lock(&a->g->mutex);
        a->places[i % a->n_places].ready = true;
        CHECK(pthread_cond_broadcast(&a->g->changed) == 0);
        il__mutex_unlock(&a->g->mutex);
    }
    return NULL;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool
await(struct ahead *a, const struct place *p)
{
    struct ingestion *g = a->g;

    il__mutex_lock(&g->mutex);
    while (!p->ready && !il__ingestion_should_stop(g))
        (void)il__cond_wait(&g->changed, &g->mutex, -1);
    bool ready = p->ready && !il__ingestion_should_stop(g);
    il__mutex_unlock(&g->mutex);
    return ready;
}

static void
free_place(struct ahead *a, struct place *p)
{
    il__fetched_release(&p->race.page);
    il__liverc_page_release(&p->race.parsed);
    il__mutex_lock(&a->g->mutex);
    p->ready = false;
    a->n_taken++;
    CHECK(pthread_cond_broadcast(&a->g->changed) == 0);
    il__mutex_unlock(&a->g->mutex);
}

static size_t
start_workers(struct ahead *a, struct worker *workers, size_t n)
{
    size_t n_started = 0;

    for (size_t i = 0; i < n; i++) {
        struct worker *w = &workers[n_started];
        *w               = (struct worker){ .a = a, .conn = il__ingestion_conn(a->g, should_stop) };
        if (w->conn == NULL || il__thread_start(&w->thread, worker_main, w) != 0)
            break; /* fewer, then */
        n_started++;
    }
    return n_started;
}

/* Whatever the workers wait for is cut short. */
static void
stop_workers(struct ingestion *g, const struct worker *workers, size_t n)
{
    il__mutex_lock(&g->mutex);
    atomic_store(&g->enough, true);
    CHECK(pthread_cond_broadcast(&g->changed) == 0);
    il__mutex_unlock(&g->mutex);
    for (size_t i = 0; i < n; i++)
        il__fetch_wake(workers[i].conn);
    for (size_t i = 0; i < n; i++)
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
}

bool
il__ahead_run(struct ingestion *g, const struct liverc_race_link *links, size_t n,
              bool (*each)(struct ingestion *g, struct ahead_race *race, void *cookie),
              void *cookie)
{
    struct ahead *a = il__calloc(1, sizeof *a);
    struct worker workers[FETCH_PERMITS_MAX];
    bool          more = a != NULL;

    if (a == NULL) {
        il__ingestion_fail(g, "PERSISTENCE_ERROR", NULL, "out of memory for the races");
        return false;
    }
    *a = (struct ahead){ .g = g, .links = links, .n = n, .n_places = g->in->o.fetch.permits + 2 };
    size_t n_workers = start_workers(a, workers, MIN((size_t)g->in->o.fetch.permits, n));
    if (n_workers == 0 && n > 0) {
        il__ingestion_fail(g, "PERSISTENCE_ERROR", NULL, "cannot start a thread");
        more = false;
    }
    for (size_t i = 0; i < n && more; i++) {
        struct place *p = &a->places[i % a->n_places];
        more            = await(a, p) && each(g, &p->race, cookie);
        if (more)
            free_place(a, p);
    }
    stop_workers(g, workers, n_workers);
    for (size_t i = 0; i < a->n_places; i++) {
        il__fetched_release(&a->places[i].race.page);
        il__liverc_page_release(&a->places[i].race.parsed);
    }
    il__free(a);
    return more;
}
