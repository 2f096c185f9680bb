/*
 * ingest.h: ingestions as runs (apps/work): of an event, of the list of tracks, of the events of a
 * track, and of everything that is recent. A server and the commands use the same.
 *
 * A run of an event has the key ingest:liverc:{source_event_id}, whether it was asked for by the
 * event's own id or by the site's, so that both meet. Its leases, in this order:
 *
 *   ingest:liverc:{id}    the run's own, from its start to its end
 *   source_event:{id}     only while the row of a new event is created
 *   event:{event_id}      from before the first write to after the last
 *
 * Pages are fetched without a transaction. Every write shows the fences of the leases that it
 * needs. On PostgreSQL the tenant `default` holds the advisory locks of the last two keys, too, for
 * workers that know nothing else.
 *
 *   engine.c    opens and closes it; the ops of triggers
 *   kind.c      which runs there are, how long they may take, schedules
 *   stages.c    an event: from its page to the last commit; ahead.c fetches the pages of its races
 *   lock.c      the leases and advisory locks of an event
 *   sync.c      the lists
 *   timeline.c  what a run shows: stages, counts, the result, the error
 *   view.c      the same, read again
 */
#ifndef IL_APPS_INGEST_INGEST_H
#define IL_APPS_INGEST_INGEST_H

#include <stdatomic.h>

#include "apps/ingest/fetch.h"
#include "apps/ingest/persist.h"
#include "apps/work/work.h"

#define INGEST_CLASS "ingest"
#define INGEST_PREFIX INGEST_CLASS ":"
#define INGEST_RUN_NAME_BYTES_MAX \
    (sizeof INGEST_SOURCE + LIVERC_ID_BYTES_MAX + ADDRESS_SLUG_BYTES_MAX)
#define INGEST_SLOW_MS 120000 /* a run that takes longer is reported */
#define INGEST_KEEP_MS (INT64_C(30) * 86400000)
#define INGEST_RECENT_MAX 500 /* events that one refresh starts */
#define INGEST_DAYS_MAX 3650
#define INGEST_TRACKS_TEXT_BYTES_MAX 2000 /* "a,b" */
#define INGEST_TENANT "default"           /* that of the schedule, and of advisory locks */

enum ingest_stage {
#define X(id, label, from, to) INGEST_STAGE_##id,
#include "apps/ingest/stages.def"
#undef X
    INGEST_STAGE_COUNT
};
extern const char *const il__ingest_stages[INGEST_STAGE_COUNT]; /* "fetch_event_page", … */
extern const char *const il__ingest_stage_labels[INGEST_STAGE_COUNT];

/* ---- what is run ----------------------------------------------------------------------------- */

enum ingest_kind {
    INGEST_RUN_EVENT,  /* liverc:{source_event_id} */
    INGEST_RUN_TRACKS, /* tracks */
    INGEST_RUN_EVENTS, /* events:{slug} */
    INGEST_RUN_RECENT, /* recent */
    INGEST_RUN_COUNT
};

/* A subject of apps/work, from the name in its key. */
struct ingest_subject {
    atomic_uint      n_refs;
    enum ingest_kind kind;
    char             tenant[IL_TENANT_BYTES_MAX + 1];
    char             name[INGEST_RUN_NAME_BYTES_MAX + 1];
    const char      *id; /* in name: the event's id or the slug; "" */
};

/* A trigger. NULL or 0: not given. Ids and slugs are checked by il__ingest_start_op(). */
struct ingest_start {
    enum ingest_kind kind;
    const char      *tenant, *id, *by, *type; /* id: of the run */
    const char      *source_event_id, *track_slug, *event_id;
    const char      *tracks; /* RECENT: "a,b"; NULL = all known ones */
    uint32_t         days;
    bool             force;
    bool             wait; /* for an event that somebody else holds */
    il_policy        policy;
    uint32_t         minute_max, hour_max;
    int64_t          keep_ms; /* 0 = INGEST_KEEP_MS */
};
/* The RUN_START op; *mem owns what it points to. IL_OK, IL_INVAL, IL_NOMEM. */
il_status il__ingest_start_op(const struct ingest_start *s, void **mem, il_op *op, il_error *reterr)
    MUST_USE;
/* Names of tracks, separated by commas? */
bool il__ingest_are_slugs(const char *tracks);
/* "depth" of a trigger: only laps_full. IL_OK, IL_INVAL (no such depth), IL_STATE. NULL is fine. */
il_status il__ingest_depth_check(const char *depth, il_error *reterr) MUST_USE;

/* ---- the engine ------------------------------------------------------------------------------ */

/* What the owner logs and counts. Strings live until the callback returns; NULL = does not apply.
 */
enum ingest_note_type {
    INGEST_NOTE_WORK,     /* see work.event */
    INGEST_NOTE_LOCKED,   /* the lease of the event was acquired */
    INGEST_NOTE_RELEASED, /* and released; the store has confirmed it */
    INGEST_NOTE_UNRELEASED,
    INGEST_NOTE_SLOW,  /* running for longer than INGEST_SLOW_MS */
    INGEST_NOTE_ENDED, /* status is set */
};
enum ingest_status {
    INGEST_COMPLETED,
    INGEST_FAILED,
    INGEST_TIMEOUT,
    INGEST_CANCELLED,
    INGEST_INTERRUPTED,
    INGEST_LOST,
    INGEST_STATUS_COUNT
};
extern const char *const il__ingest_statuses[INGEST_STATUS_COUNT];
struct ingest_note {
    enum ingest_note_type   type;
    const struct work_note *work;
    const char             *tenant, *run, *name, *event_id, *text;
    enum ingest_stage       stage;
    enum ingest_status      status;
    int64_t                 duration_ns;
    uint64_t                fence;
};

struct ingest_options {
    il                  *h;
    struct il__data     *data;
    struct tables_place *place; /* outlives it */
    enum work_mode       mode;
    struct fetch_options fetch;
    int64_t              stall_ms, max_ms; /* without progress; in all */
    int64_t              slow_ms;          /* 0 = INGEST_SLOW_MS */
    uint32_t             runs_max;
    int64_t              shutdown_ms;
    /* the refresh; NULL: none */
    const char *schedule;
    const char *tracks;
    uint32_t    days;
    void (*note)(void *cookie, const struct ingest_note *note); /* any thread; must not block */
    void                *cookie;
    il_guard_observe_fn *observe;
    void                *observe_cookie;
    /* For tests: called before, within and after each commit of an ingestion; may be NULL. */
    void (*point)(void *cookie, const char *where);
};

struct ingest;
/* IL_OK, IL_INVAL (the schedule), IL_NOMEM, IL_STORE. Nothing runs before il__ingest_work(). */
il_status il__ingest_open(const struct ingest_options *o, struct ingest **ret, il_error *reterr)
    MUST_USE;
void         il__ingest_stop(struct ingest *in);  /* start no more runs; does not block */
void         il__ingest_close(struct ingest *in); /* NULL is fine */
struct work *il__ingest_work(struct ingest *in);
extern const struct work_kind il__ingest_kind;

/* The subject of a name; NULL: not one of ours, or out of memory. */
struct ingest_subject *il__ingest_subject(const char *tenant, const char *name);
void                   il__ingest_subject_drop(struct ingest_subject *s);

/* ---- what a run shows: view.c ---------------------------------------------------------------- */

struct ingest_stage_out {
    const char *stage, *label, *status, *details;
    int64_t     started_at_ms, ended_at_ms, duration_ms;
};
struct ingest_run_out {
    const char *id, *kind, *tenant, *key, *status, *stage, *stage_label, *trigger, *by;
    const char *event_id, *source_event_id, *track_slug;
    struct ingest_progress {
        int64_t percent, done, total; /* -1 = unknown */
    } progress;
    uint32_t                 position, cancelling;
    int64_t                  created_at_ms, started_at_ms, ended_at_ms, duration_ms;
    const char              *result, *error; /* JSON; NULL = none */
    struct ingest_stage_out *stages;
    size_t                   n_stages;
};
/* Is it a run of an ingestion? */
bool il__ingest_is_run(const il_run_info *run);
/* Fill in what the store knows; texts are in *mem or belong to the run. False: out of memory. */
bool il__ingest_run_show(const il_run_info *run, void **mem, struct ingest_run_out *ret) MUST_USE;
/* Add what the history knows: stages, result, error. Blocks. */
il_status il__ingest_run_history(struct il__data *data, const il_run_info *run, void **mem,
                                 struct ingest_run_out *ret, il_error *reterr) MUST_USE;

/* Who is in the way: {run_id, stage, holder, age_ms, hint} as JSON, in *mem; NULL: out of memory.
 * One of run and lease may be NULL. */
#define INGEST_HINT_RUNNING "ingestion_running"
#define INGEST_HINT_STALE "stale_lock_suspected"
#define INGEST_HINT_FOREIGN "foreign_lock"
const char *il__ingest_conflict(const il_run_info *run, const il_lease_info *lease, bool foreign,
                                void **mem);
/* The same for people: "ingest:liverc:7 is being ingested by … for 12s, at ingest_laps 3/60". */
void il__ingest_conflict_text(const char *key, const il_run_info *run, const il_lease_info *lease,
                              struct il__buf *out);

#endif
