/*
 * ingest_internal.h: shared by the files that execute runs; see ingest.h.
 */
#ifndef IL_APPS_INGEST_INGEST_INTERNAL_H
#define IL_APPS_INGEST_INGEST_INTERNAL_H

#include "apps/ingest/ingest.h"
#include "base/arena.h"
#include "base/mutex.h"
#include "core/cron.h"

#define INGEST_SPARE_MAX 4

struct ingest {
    struct ingest_options  o;
    char                  *tracks; /* owned; NULL: all known ones */
    struct fetcher        *fetcher;
    struct work           *work;
    bool                   scheduled;
    struct il__cron        schedule;
    const struct il__zone *utc;
    struct il__mutex       mutex; /* protects what follows */
    /* handles on the tables that no run uses: opening one takes long, and cannot be interrupted */
    il_guard    *spare[INGEST_SPARE_MAX];
    size_t       n_spare;
    const char **tenants; /* sorted */
    size_t       n_tenants;
    void        *tenants_mem;
};
/* Read the list of tenants again: slots of each are looked for. */
void il__ingest_tenants_read(struct ingest *in);
void il__ingest_note(struct ingest *in, const struct ingest_note *note);

/* One stage of a run. */
struct stage_record {
    int64_t              started_at_ms, ended_at_ms; /* 0 = not yet */
    int64_t              started_ns, ended_ns;
    struct ingest_totals rows;
};

/* A run that is executed. */
struct ingestion {
    struct ingest               *in;
    struct work_run             *run;
    const struct ingest_subject *subject;
    /* of its parameters; NULL = not given */
    const char *track_slug, *asked_event_id, *tracks;
    uint32_t    days;
    bool        force, wait;

    struct il__mutex   mutex; /* protects what follows */
    pthread_cond_t     changed;
    bool               stopped;
    il_guard          *g; /* our own, so that it can be interrupted */
    struct fetch_conn *conns[FETCH_PERMITS_MAX + 1];
    size_t             n_conns;
    il_advisory       *advisory; /* one at a time: checked by the watch, too */
    atomic_bool        lost;     /* its connection: the run is to stop */
    atomic_bool        enough;   /* no more pages of races are needed */

    /* of the run's thread: */
    char                 event_id[INGEST_EVENT_ID_BYTES_MAX + 1]; /* "" = not known yet */
    il_lease            *lease;                                   /* of the event */
    unsigned             n_leases;
    int64_t              lease_ns;
    enum ingest_stage    stage; /* the current one */
    struct stage_record  stages[INGEST_STAGE_COUNT];
    struct ingest_totals totals;
    void                *mem;
    struct ingest_known  known;
    bool                 is_known;
    const char          *code;    /* why it failed; NULL = it has not */
    char                *details; /* JSON, from jansson; NULL = none */
    json_t              *result;
    enum ingest_status   status; /* at the end */
};

/* ---- timeline.c ------------------------------------------------------------------------------ */

void il__ingestion_stage(struct ingestion *g, enum ingest_stage stage);
void il__ingestion_stage_end(struct ingestion *g, enum ingest_stage stage);
/* Show how far the current stage is. A sign of life. */
void il__ingestion_progress(struct ingestion *g, size_t n_done, size_t n_total);
/* The run has failed. The first reason stays; details (consumed, may be NULL) is an object. */
void il__ingestion_fail(struct ingestion *g, const char *code, json_t *details, const char *fmt,
                        ...) PRINTF_LIKE(4, 5);
/* The same for a failed call. */
void il__ingestion_fail_call(struct ingestion *g, il_status st, const il_error *err);
/* Parts of a run that fail by themselves: races, tracks. The others go on. */
struct failures {
    size_t      n;
    json_t     *list; /* the first ones; NULL: none yet */
    const char *code; /* of the first */
    char        text[500];
};
/* What failed: `name` and `id` are its column and its id. */
void il__ingestion_part_failed(struct ingestion *g, struct failures *f, const char *name,
                               const char *id, const char *code, const char *text);
/* Is it a failure of one part, not of the run? */
bool il__ingestion_is_partial(il_status st);
/* Record how it ended. */
void il__ingestion_conclude(struct ingestion *g, bool done);
/* The end is in the store: report it. */
void il__ingestion_ended(struct ingestion *g);
/* {"laps": {"inserted": 5, …}, …}: tables with a row. NULL: out of memory. */
json_t *il__ingestion_rows(const struct ingest_totals *t);

/* ---- lock.c ---------------------------------------------------------------------------------- */

/* Find or create the row of the event; sets event_id. False: it has failed. */
bool il__ingestion_find_event(struct ingestion *g) MUST_USE;
/* Take the lease of the event, and its advisory lock. False: it has failed, or is to stop. */
bool il__ingestion_lock(struct ingestion *g) MUST_USE;
void il__ingestion_unlock(struct ingestion *g);
/* Has the connection with the advisory lock been lost? On the watch's thread, under its mutex. */
bool il__ingestion_advisory_lost(struct ingestion *g);

/* How to write now: with the fences of the run and of the event's lease, if it is held. */
struct ingestion_write {
    struct ingest_write     w;
    il_guard_fence          fences[2];
    struct ingest_validator validators[2];
    char                    key[IL_KEY_BYTES_MAX + 1];
    struct ingest_totals    totals;
};
void il__ingestion_write(struct ingestion *g, struct ingestion_write *ret, const il_lease *lease);
void il__ingestion_validator(struct ingestion_write *w, const struct fetched *page);
/* The write was made, or not: add up what it did, for the current stage. */
il_status il__ingestion_wrote(struct ingestion *g, const struct ingestion_write *w, il_status st);
void      il__ingestion_point(struct ingestion *g, const char *where);

/* ---- event_run.c, list_run.c ----------------------------------------------------------------- */

bool il__ingestion_should_stop(void *cookie);
/* A connection for this run, which a stop wakes; `stop` is asked with g. NULL: it has failed. */
struct fetch_conn *il__ingestion_conn(struct ingestion *g, bool (*stop)(void *cookie));
/* Get a page; with `remembered`, only if it has changed since it was last written. False: it has
 * failed, or is to stop. */
bool il__ingestion_get(struct ingestion *g, struct fetch_conn *c, enum liverc_kind kind,
                       const char *slug, const char *id, bool remembered, struct fetched *ret,
                       il_error *reterr, il_status *ret_status) MUST_USE;
void il__ingestion_warn(struct ingestion *g, const char *what, const struct liverc_page *page);
/* True: all of it was done. */
bool il__ingestion_event(struct ingestion *g) MUST_USE;
bool il__ingestion_sync_tracks(struct ingestion *g) MUST_USE;
bool il__ingestion_sync_events(struct ingestion *g, const char *slug) MUST_USE;
bool il__ingestion_recent(struct ingestion *g) MUST_USE;

/* ---- ahead.c: the pages of races, fetched ahead ---------------------------------------------- */

/* A race as it was fetched. */
struct ahead_race {
    const struct liverc_race_link *link;
    struct fetched                 page;
    struct liverc_page             parsed;
    const struct liverc_race      *race; /* NULL: unchanged, or failed */
    il_status                      status;
    il_error                       error;
    enum liverc_code               code;
};
/* Call `each` for each race of the list, in order, on this thread, while the pages of the next ones
 * are fetched by others. It stops when `each` returns false, or the run is to stop: then it returns
 * false. */
bool il__ahead_run(struct ingestion *g, const struct liverc_race_link *links, size_t n,
                   bool (*each)(struct ingestion *g, struct ahead_race *race, void *cookie),
                   void *cookie) MUST_USE;

#endif
