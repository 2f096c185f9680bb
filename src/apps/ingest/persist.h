/*
 * persist.h: what an ingestion knows and writes, in the tables of sql/schema_*.sql. docs/INGEST.md
 * describes the model.
 *
 * Data: tracks, events, event_entries, races, drivers, race_drivers, race_results, laps; and page
 * validators (ETag, Last-Modified). Every row has a tenant and a natural key, on which it is
 * upserted. A row whose content is the same is not written again.
 *
 * Invariants:
 *   - a race is in the tables whole (race, drivers, results, laps) or not at all;
 *   - an event is laps_full only if every race of its page is in the tables;
 *   - the validators of a page are committed with its content, or not at all, so that a 304 always
 *     means that its content is here. The content of an event page is the whole event: its races,
 *     too. Its validator is committed by il__ingest_finish(), and by nothing before;
 *   - two writers of one event take turns: each transaction first locks the row of the event. A
 *     writer whose fence is stale is refused (IL_STALE), and nothing of it remains.
 *
 * All functions take a handle on the tables (il__tables_open(&il__ingest_tables, …)), block, and
 * may be called from several threads. An ingestion that must be stoppable opens a handle of its own
 * and interrupts that (il_guard_interrupt()); every later call on it returns IL_CANCELLED.
 *
 * Every write is one transaction (READ COMMITTED, no table lock above ROW EXCLUSIVE, a lock_timeout
 * on every statement), and idempotent: it can be repeated after any failure.
 *
 * Statuses of writes, besides those named at a function: IL_STALE (a fence), IL_CANCELLED,
 * IL_TIMEOUT, IL_UNIQUE, IL_CHECK, IL_FOREIGN_KEY, IL_STORE, IL_FULL, IL_CORRUPT, IL_NOMEM.
 * il__ingest_code() gives the code for users.
 */
#ifndef IL_APPS_INGEST_PERSIST_H
#define IL_APPS_INGEST_PERSIST_H

#include "apps/common/tables.h"
#include "apps/ingest/liverc.h"

#define INGEST_SOURCE "liverc"
#define INGEST_EVENT_ID_BYTES_MAX 64 /* a UUID has 36; an event may be created with another id */
#define INGEST_SLUG_BYTES_MAX 63

extern const struct app_tables il__ingest_tables;

/* How much of an event is in the tables. */
enum ingest_depth {
    INGEST_NONE,
    INGEST_LAPS_FULL, /* everything */
    INGEST_DEPTH_COUNT
};
extern const char *const il__ingest_depths[INGEST_DEPTH_COUNT + 1]; /* "none", "laps_full", NULL */
/* INGEST_DEPTH_COUNT: no such depth. */
enum ingest_depth il__ingest_depth(const char *name);

/* The code of errors.def for a failed read or write: "CONSTRAINT_VIOLATION", "STATE_MACHINE_ERROR",
 * "VALIDATION_ERROR", "NOT_FOUND", and "PERSISTENCE_ERROR" for everything else. IL_STALE and
 * IL_CANCELLED have codes, too, but belong to the run: its lease was lost, or it was stopped. */
const char *il__ingest_code(il_status status);

/* ---- counts ---------------------------------------------------------------------------------- */

enum ingest_table {
    INGEST_TRACKS,
    INGEST_EVENTS,
    INGEST_EVENT_ENTRIES,
    INGEST_RACES,
    INGEST_DRIVERS,
    INGEST_RACE_DRIVERS,
    INGEST_RACE_RESULTS,
    INGEST_LAPS,
    INGEST_USERS,
    INGEST_USER_DRIVER_LINKS,
    INGEST_EVENT_DRIVER_LINKS,
    INGEST_TABLE_COUNT
};
extern const char *const il__ingest_table_names[INGEST_TABLE_COUNT]; /* "tracks", … */

/* Rows of one table. A race whose digest is the same counts its results and laps as unchanged. A
 * changed timestamp is no change. */
struct ingest_counts {
    int64_t n_inserted, n_updated, n_unchanged, n_removed;
};
struct ingest_totals {
    struct ingest_counts of[INGEST_TABLE_COUNT];
};
void il__ingest_totals_add(struct ingest_totals *to, const struct ingest_totals *more);

/* ---- writes ---------------------------------------------------------------------------------- */

/* What a server sent with a page, to be sent back with the next request. */
struct ingest_validator {
    const char *url;
    const char *etag, *last_modified; /* "" = none */
};

/* How an ingestion writes. Borrowed for the call. */
struct ingest_write {
    const char           *tenant;
    const il_guard_fence *fences; /* shown and checked by the transaction */
    size_t                n_fences;
    int64_t               timeout_ms; /* of a transaction; 0 = no limit */
    /* Called between the statements of a transaction, which it must not use: a sign of life. False:
     * the transaction is rolled back, IL_CANCELLED. May be NULL. */
    bool (*go_on)(void *cookie);
    void                          *cookie;
    const struct ingest_validator *validators; /* of the pages whose content is written */
    size_t                         n_validators;
    struct ingest_totals          *totals; /* added to when it was committed; may be NULL */
};

/*
 * Find the row of an event, or create it with depth none (and its track, if that is new).
 *
 * event_id: the id that a new row gets; NULL = a new UUID. A row that exists must have this id, and
 * must belong to this track, else IL_UNIQUE and IL_INVAL. Two callers at once get the same row: the
 * natural key decides. *ret_created may be NULL.
 *
 * IL_INVAL also: an id or a slug is malformed.
 */
il_status il__ingest_event_make(il_guard *g, const struct ingest_write *w,
                                const char *source_event_id, const char *track_slug,
                                const char *event_id, char ret_id[INGEST_EVENT_ID_BYTES_MAX + 1],
                                bool *ret_created, il_error *reterr) MUST_USE;

/* Write the event's own columns and its entry list; either may be NULL (304: unchanged). Entries
 * that are no longer listed are removed; entries keep their driver_id. IL_NOT_FOUND: no such event.
 * IL_INVAL: the page is that of another event.
 *
 * w->validators: that of the entry list, but not that of the event page, whose races are not
 * written yet: pass that to il__ingest_finish(). */
il_status il__ingest_event_write(il_guard *g, const struct ingest_write *w, const char *event_id,
                                 const struct liverc_event      *event,
                                 const struct liverc_entry_list *entries, il_error *reterr)
    MUST_USE;

/*
 * Write a race, as the event page lists it (link) and as its own page says (race; NULL: 304, the
 * race is in the tables). Whole or not at all: after a failure the old race stays as it was.
 * Results and laps that are no longer on the page are removed. If the digest is that of the tables,
 * only the race's own columns are compared. Entries of the event get the driver_id of the race's
 * drivers. IL_NOT_FOUND: no such event, or no race to keep. IL_INVAL: another race's page.
 */
il_status il__ingest_race_write(il_guard *g, const struct ingest_write *w, const char *event_id,
                                const struct liverc_race_link *link, const struct liverc_race *race,
                                il_error *reterr) MUST_USE;

/* Match the event's drivers with the tenant's users (links.h), in one commit. IL_NOT_FOUND. */
il_status il__ingest_match(il_guard *g, const struct ingest_write *w, const char *event_id,
                           il_error *reterr) MUST_USE;

/*
 * The last step: set depth, digest and last_ingested_at. Only none -> laps_full and laps_full ->
 * laps_full are allowed, and only if the page lists races and all of them are in the tables; else
 * IL_STATE, and nothing has changed. IL_NOT_FOUND. *ret_at_ms (may be NULL): last_ingested_at.
 *
 * w->validators: that of the event page. It is committed with depth and digest, so that after an
 * ingestion that failed halfway the page is fetched again and its races are compared.
 */
il_status il__ingest_finish(il_guard *g, const struct ingest_write *w, const char *event_id,
                            enum ingest_depth to, const struct liverc_event *event,
                            int64_t *ret_at_ms, il_error *reterr) MUST_USE;

/* Write the list of all tracks. Those that are no longer listed stay. */
il_status il__ingest_tracks_write(il_guard *g, const struct ingest_write *w,
                                  const struct liverc_tracks *tracks, il_error *reterr) MUST_USE;
/* Write the list of a track's events (the track is created if it is new). New events have depth
 * none. Events that were ingested keep what their own page said. */
il_status il__ingest_events_write(il_guard *g, const struct ingest_write *w, const char *track_slug,
                                  const struct liverc_event_links *events, il_error *reterr)
    MUST_USE;

/* ---- reads ----------------------------------------------------------------------------------- */

/* Reads never wait for a writer, and see only what was committed. Texts live in *mem (il__arena,
 * which starts as NULL). All: IL_OK, IL_NOT_FOUND, and those of il_guard_begin(). */

/* What is known of an event before anything is fetched. */
struct ingest_known {
    const char       *event_id;
    const char       *source_event_id, *track_slug;
    enum ingest_depth depth;
    const char       *digest;           /* of the last finished ingestion; "" = none */
    int64_t           last_ingested_ms; /* 0 = never */
    const char      **races;            /* their source_race_id, sorted (strcmp) */
    size_t            n_races;
    int64_t           n_results, n_laps;
};
il_status il__ingest_known(il_guard *g, const char *tenant, const char *event_id, void **mem,
                           struct ingest_known *ret, il_error *reterr) MUST_USE;
/* The same by the site's id. */
il_status il__ingest_known_source(il_guard *g, const char *tenant, const char *source_event_id,
                                  void **mem, struct ingest_known *ret, il_error *reterr) MUST_USE;
bool      il__ingest_known_race(const struct ingest_known *k, const char *source_race_id);
/* Is there nothing new on the site? True if the event is laps_full and the digests are equal. */
bool il__ingest_is_complete(const struct ingest_known *k, const struct liverc_event *event);

/* The validators of a URL. IL_NOT_FOUND: none are known. */
il_status il__ingest_validator_get(il_guard *g, const char *tenant, const char *url, void **mem,
                                   struct ingest_validator *ret, il_error *reterr) MUST_USE;

/* Events of a track since a day (2025-11-16; "" = all), newest first, at most `limit`. */
struct ingest_event_ref {
    const char *event_id, *source_event_id, *track_slug, *name, *first_day;
};
il_status il__ingest_events_since(il_guard *g, const char *tenant, const char *track_slug,
                                  const char *first_day, size_t limit, void **mem,
                                  struct ingest_event_ref **ret, size_t *ret_n, il_error *reterr)
    MUST_USE;

/* Slugs of all known tracks, sorted. */
il_status il__ingest_track_slugs(il_guard *g, const char *tenant, void **mem, const char ***ret,
                                 size_t *ret_n, il_error *reterr) MUST_USE;

#endif
