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
 * Runs:
 *   ingest.c     opens and closes ingestions; the ops of triggers
 *   options.c    the options from the configuration
 *   work_kind.c  which runs there are, how long they may take, schedules
 *   event_run.c  an event: from its page to the last commit
 *   ahead.c      fetches the pages of its races ahead
 *   lock.c       the leases and advisory locks of an event
 *   list_run.c   the lists, and the refresh of recent events
 *   timeline.c   records a run's stages, counts, result and error
 *   run_view.c   rebuilds the view of a run from store and history
 *
 * Fetching:
 *   fetch.c    fetches pages
 *   address.c  their addresses
 *   permit.c   how many requests may run at once per host
 *   robots.c   robots.txt
 *
 * Pages (liverc.h): bytes in, structs out:
 *   scan.c              checks a page before libxml2 sees it
 *   html.c              a page as a tree
 *   page_reader.c       what all parsers share
 *   parse_lists.c       lists of tracks and of events; the kind of a page
 *   parse_event.c       the page of an event
 *   parse_entries.c     its entry list
 *   parse_race.c        the page of a race: its head and its result table
 *   parse_race_laps.c   driver ids and laps
 *   parse_lap_script.c  the script that has the laps
 *   normalise.c         texts, times, numbers and dates
 *   session_type.c      infers the session type and the event name
 *   match.c             decides whether a user and a driver are the same person
 *   libraries.c         loads libxml2, utf8proc and libsodium
 *
 * Tables (persist.h):
 *   stored_state.c   reads what the tables hold about an event
 *   persist.c        transactions, and what is written of an event as a whole
 *   persist_race.c   writes a race
 *   persist_lists.c  writes the lists of tracks and events
 *   rows.c           writes many rows
 *   match_users.c    matches drivers with users
 *   links.c          lists links, and decides about one
 *   users.c          users
 *   users_csv.c      reads them from CSV
 *   query.c          reads events, races, results and laps
 *   query_json.c     their JSON
 *   verify.c         the invariants
 *
 * The server (serve.h):
 *   app.c                the app
 *   routes_run.c         starts, shows and cancels ingestions
 *   routes_run_tables.c  the JSON tables of these routes
 *   routes_read.c        events, races, results, laps
 *   routes_links.c       users and links
 *   log.c                log lines and metrics
 *
 * Commands:
 *   cmd_ingest.c       `ingest parse`
 *   cmd_ingest_run.c   starts ingestions
 *   cmd_ingest_show.c  shows one
 *   cmd_ingest_data.c  export, links, users, verify
 *   cmd_demo_site.c    `demo-site`, with the generated site in site/
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

/* What the store has answered to a trigger. */
enum ingest_answer {
    INGEST_TRIGGER_STARTED, /* a new run; or the run of this trigger, which was repeated */
    INGEST_TRIGGER_JOINED,  /* policy join: the run that exists */
    INGEST_TRIGGER_HELD,    /* policy reject: another run exists, or somebody else holds its key */
    INGEST_TRIGGER_LIMITED, /* too many triggers within a minute or an hour */
    INGEST_TRIGGER_FAILED,  /* anything else: op->status */
};
/*
 * Judge an applied op of il__ingest_start_op(), and hand a new run to `w`, the engine's executor.
 * *ret_run: the new run or the one that exists, within op; NULL: the op names none.
 */
enum ingest_answer il__ingest_answer(struct work *w, const il_op *op, const il_run_info **ret_run);
/* Names of tracks, separated by commas? */
bool il__ingest_are_slugs(const char *tracks);
/* "depth" of a trigger: only laps_full. IL_OK, IL_INVAL (no such depth), IL_STATE. NULL is fine. */
il_status il__ingest_depth_check(const char *depth, il_error *reterr) MUST_USE;

/* ---- ingest.c -------------------------------------------------------------------------------- */

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
/*
 * Execute a run that exists if nobody else will: it has waited for 10 s without a holder, and no
 * server executes ingestions. A command that was to execute it may still be alive and short of
 * room; the store lets only one execute it. Waits for the store.
 */
bool il__ingest_adopt(struct ingest *in, const il_run_info *run);

/* The subject of a name; NULL: not one of ours, or out of memory. */
struct ingest_subject *il__ingest_subject(const char *tenant, const char *name);
void                   il__ingest_subject_drop(struct ingest_subject *s);

/* ---- what a run shows: run_view.c ------------------------------------------------------------ */

struct ingest_stage_out {
    const char *stage, *label, *status, *details;
    int64_t     started_at_ms, ended_at_ms, duration_ms;
};
struct ingest_run_out {
    const char *id, *kind, *tenant, *status, *stage, *stage_label, *trigger, *by;
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
/* The same for people: "ingest:liverc:7 is already running: run …, held by …, for 12 s, at …". */
void il__ingest_conflict_text(const char *key, const il_run_info *run, const il_lease_info *lease,
                              struct il__buf *out);

#endif
