/*
 * readers.c: what readers see while an event is ingested: at every point of the run, also between
 * the statements of a transaction, each race is there whole or not at all, and the event is
 * complete only after its last commit.
 */
#include <stdio.h>

#include "apps/ingest/query.h"
#include "base/arena.h"
#include "ingest/runs.h"

#define EVENT_ID "readers"
#define RACES 3

/* Of the run's thread, which stands still meanwhile; the test looks at it after the run. */
static struct {
    il_guard *tables;
    bool      was_complete, finishing, finished;
    unsigned  n_looks, n_within;
    struct seen {
        char     id[40];
        uint64_t hash;      /* of what it said at the last look */
        unsigned n_changes; /* between two looks */
    } races[RACES];
    char problem[300]; /* the first; "" = none */
} reader;

static void
complain(const char *where, const char *what)
{
    if (reader.problem[0] == '\0')
        (void)snprintf(reader.problem, sizeof reader.problem, "at %s: %.200s", where, what);
}

/* FNV-1a */
static void
mix(uint64_t *hash, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        *hash = (*hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
}

struct laps {
    int64_t  n;
    uint64_t hash;
};

static bool
take_lap(void *cookie, const struct ingest_lap_out *lap)
{
    struct laps *l = cookie;
    char         text[100];

    (void)snprintf(text, sizeof text, "%d %d %lld;", lap->number, lap->position,
                   (long long)lap->time_ms);
    mix(&l->hash, text);
    l->n++;
    return true;
}

/* The place of a race, which may be new. */
static struct seen *
place_of(const char *where, const char *id)
{
    for (size_t i = 0; i < RACES; i++) {
        struct seen *s = &reader.races[i];
        if (s->id[0] == '\0')
            (void)snprintf(s->id, sizeof s->id, "%s", id);
        if (strcmp(s->id, id) == 0)
            return s;
    }
    complain(where, "a race too many");
    return &reader.races[0];
}

static void
look_at_race(const char *where, const char *id, void **mem)
{
    struct ingest_race_out race;
    struct seen           *s      = place_of(where, id);
    struct laps            laps   = { .hash = UINT64_C(14695981039346656037) };
    int64_t                n_laps = 0;
    char                   text[300];
    il_error               err = { .message = "" };

    if (il__ingest_race_get(reader.tables, T_TENANT, id, mem, &race, &err) != IL_OK ||
        il__ingest_laps_list(reader.tables, T_TENANT, id, take_lap, &laps, &err) != IL_OK) {
        complain(where, err.message);
        return;
    }
    for (size_t k = 0; k < race.n_shown; k++) {
        const struct ingest_result_out *r = &race.results[k];
        if (r->n_laps != r->laps_completed)
            complain(where, "a result without all of its laps");
        n_laps += r->n_laps;
        (void)snprintf(text, sizeof text, "%s %d %d %lld;", r->name, r->position, r->laps_completed,
                       (long long)r->total_ms);
        mix(&laps.hash, text);
    }
    if (race.n_shown == 0 || race.n_results != (int64_t)race.n_shown)
        complain(where, "a race without all of its results");
    if (laps.n != n_laps)
        complain(where, "a race without all of its laps");
    if (laps.hash != s->hash)
        s->n_changes++;
    s->hash = laps.hash;
}

static void
look(const char *where)
{
    struct ingest_event_out event;
    void                   *mem = NULL;
    il_error                err = { .message = "" };
    il_status st = il__ingest_event_get(reader.tables, T_TENANT, EVENT_ID, &mem, &event, &err);

    if (st == IL_OK) {
        bool complete = event.is_complete != 0;
        if (complete != (strcmp(event.depth, "laps_full") == 0))
            complain(where, "depth and completeness differ");
        if (complete && event.n_races != RACES)
            complain(where, "complete without all races");
        if (complete != (reader.was_complete || reader.finished))
            complain(where, complete ? "complete too early" : "not complete any more");
        for (size_t i = 0; i < event.n_shown && i < RACES; i++)
            look_at_race(where, event.races[i].id, &mem);
        reader.n_looks++;
    } else if (st != IL_NOT_FOUND) {
        complain(where, err.message);
    }
    il__arena_free(&mem);
}

static void
at_point(void *cookie UNUSED, const char *where)
{
    if (reader.tables == NULL)
        return;
    reader.n_within += strcmp(where, "statement") == 0;
    if (strcmp(where, "committed") == 0 && reader.finishing)
        reader.finished = true;
    look(where);
    if (strcmp(where, "finishing") == 0)
        reader.finishing = true;
}

/* Ingest the event, and look at it all the while. */
static void
ingest(struct t_engine_of_runs *e, bool was_complete)
{
    struct ingest_start s = { .kind = INGEST_RUN_EVENT, .tenant = T_TENANT, .event_id = EVENT_ID };

    reader.tables       = e->tables;
    reader.was_complete = was_complete;
    reader.finishing    = false;
    reader.finished     = false;
    reader.n_looks      = 0;
    reader.n_within     = 0;
    for (size_t i = 0; i < RACES; i++)
        reader.races[i].n_changes = 0;
    json_t *run = t_run_to(e, s, "COMPLETED");
    T_STREQ(t_text(run, "result", "status"), "updated");
    json_decref(run);
    T_STREQ(reader.problem, "");
    T_TRUE(reader.finished);
    T_TRUE(reader.n_within > RACES && reader.n_looks > RACES);
}

static void
readers_see_whole_races(void **state UNUSED)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct site_serve       how = t_site_small();

    how.change_every = 7; /* after robots, event, entries and three races */
    t_runs_make(&g, &how);
    t_engine_open(&e, &g, (struct ingest_options){ .point = at_point, .fetch.permits = 1 });
    ingest(&e, false);
    for (size_t i = 0; i < RACES; i++)
        T_EQ(reader.races[i].n_changes, 1); /* it came, whole */
    ingest(&e, true);
    unsigned n = 0;
    for (size_t i = 0; i < RACES; i++) {
        T_TRUE(reader.races[i].n_changes <= 1); /* the old one, then the new one */
        n += reader.races[i].n_changes;
    }
    T_TRUE(n > 0);
    reader.tables = NULL;
    t_engine_close(&e);
    t_runs_release(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_races),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
