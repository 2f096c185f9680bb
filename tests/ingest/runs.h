/*
 * runs.h: ingestions as runs, on a store and tables that are new for each test, in this process and
 * in others. IL_TEST_TABLES = sqlite or postgres; IL_TEST_STORE: a store elsewhere (a row of
 * t_engines), while the tables stay there.
 */
#ifndef T_INGEST_RUNS_H
#define T_INGEST_RUNS_H

#include "apps/ingest/ingest.h"
#include "harness/event.h"
#include "harness/proc.h"
#include "harness/store.h"
#include "ingest/data.h"
#include "ingest/site.h"

#define T_LIMIT_MS 60000
#define T_DEFAULT "default"

struct t_ground_of_runs {
    struct t_rig           rig;
    struct t_site          site;
    const struct t_engine *engine; /* of the store, if it is elsewhere */
    char                   store[T_PATH_BYTES];
    char                   other[T_PATH_BYTES]; /* t_engine_make() */
};
/* Starts the site as well; nothing is open yet, so that processes can be forked. */
void t_runs_make(struct t_ground_of_runs *g, const struct site_serve *how);
void t_runs_release(struct t_ground_of_runs *g);

/* An engine in this process. */
struct t_engine_of_runs {
    il                   *h;
    struct il__data      *data;
    struct tables_place  *place;
    struct ingest        *in;
    il_guard             *tables;
    struct ingest_options o;
    /* what it noted: */
    pthread_mutex_t    mutex;
    struct ingest_note last; /* of type ENDED; its texts are gone */
    char               event_id[100];
    unsigned           n[INGEST_NOTE_ENDED + 1];
};
/* Options other than zero in `o` are used; cookie and note are set here. */
void t_engine_open(struct t_engine_of_runs *e, const struct t_ground_of_runs *g,
                   struct ingest_options o);
void t_engine_close(struct t_engine_of_runs *e);

/* Trigger event 100000 of tenant default, or what `s` says; the op's status. The id of the run, or
 * of the one in the way, is left in `id`. */
il_status t_trigger(struct t_engine_of_runs *e, struct ingest_start s,
                    char id[IL_ID_BYTES_MAX + 1]);
/* Wait for its end: {"status": …, "error": …} as GET /ingestion/status shows it; decref it. */
json_t *t_await_run(struct t_engine_of_runs *e, const char *id);
json_t *t_await_run_of(struct t_engine_of_runs *e, const char *tenant, const char *id);
/* Both; its status must be this one. */
json_t     *t_run_to(struct t_engine_of_runs *e, struct ingest_start s, const char *status);
const char *t_text(const json_t *o, const char *a, const char *b); /* o[a][b], "" if missing */

/* Leases of all tenants that are held, but for those of runs. */
size_t t_leases(struct t_engine_of_runs *e);
/* End the leases of processes that are dead, at once. */
void t_break_all(struct t_engine_of_runs *e);

/* A process that ingests event 100000: it prints "at N" when it reaches its n-th point (of `where`;
 * NULL: all), and waits there for a line on stdin, then "ended STATUS CODE". */
struct t_ingester {
    struct t_proc                  proc;
    const struct t_ground_of_runs *g;
    const char                    *where;
    unsigned                       n;
    const char                    *tenant;
};
void t_ingester_start(struct t_ingester *p);

#endif
