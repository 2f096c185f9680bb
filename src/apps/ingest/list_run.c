/*
 * list_run.c: runs that read lists: all tracks, the events of a track, and the refresh of recent
 * events, which reads the lists of some tracks and starts an ingestion for each recent event. A
 * track that cannot be read fails the refresh, but only after the others were refreshed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/ingest/ingest_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

#define DAY_MS INT64_C(86400000)

/* A list: fetched, parsed. */
struct list {
    struct fetched                   page;
    struct liverc_page               mem;
    const struct liverc_tracks      *tracks;
    const struct liverc_event_links *events;
};

static void
list_release(struct list *l)
{
    il__fetched_release(&l->page);
    il__liverc_page_release(&l->mem);
}

/* A list that has not changed is in the tables. */
static il_status
get_list(struct ingestion *g, struct fetch_conn *c, const char *slug, struct list *l,
         il_error *reterr)
{
    enum liverc_kind kind = slug != NULL ? LIVERC_EVENTS : LIVERC_TRACKS;
    il_status        st;

    if (il__ingestion_get(g, c, kind, slug, NULL, true, &l->page, reterr, &st) &&
        !l->page.unchanged) {
        struct liverc_source s = { .body    = il__buf_str(&l->page.body),
                                   .n_bytes = l->page.body.n_bytes,
                                   .slug    = slug };
        st                     = slug != NULL ? il__liverc_events(&l->mem, &s, &l->events, reterr)
                                              : il__liverc_tracks(&l->mem, &s, &l->tracks, reterr);
        il__ingestion_warn(g, "list", &l->mem);
    }
    return st;
}

static il_status
write_list(struct ingestion *g, const char *slug, const struct list *l, il_error *reterr)
{
    struct ingestion_write w;

    if (l->page.unchanged)
        return IL_OK;
    il__ingestion_write(g, &w, NULL);
    il__ingestion_validator(&w, &l->page);
    il__ingestion_point(g, "list");
    return il__ingestion_wrote(g, &w,
                               slug != NULL
                                   ? il__ingest_events_write(g->g, &w.w, slug, l->events, reterr)
                                   : il__ingest_tracks_write(g->g, &w.w, l->tracks, reterr));
}

static const char *
code_of(const struct list *l, il_status st)
{
    enum liverc_code code = l->page.code != LIVERC_OK ? l->page.code : l->mem.code;

    return st == IL_INVAL && code != LIVERC_OK ? il__liverc_codes[code] : il__ingest_code(st);
}

static json_t *
list_result(struct ingestion *g, const char *slug, const struct list *l)
{
    size_t n = l->tracks != NULL ? l->tracks->n : l->events != NULL ? l->events->n : 0;

    return json_pack("{s:s, s:s*, s:I, s:o?}", "status",
                     l->page.unchanged ? "already_complete" : "updated", "track_slug", slug,
                     slug != NULL ? "events" : "tracks", (json_int_t)n, "rows",
                     il__ingestion_rows(&g->totals));
}

/* One list: of all tracks (slug NULL), or of a track's events. */
static bool
sync_list(struct ingestion *g, const char *slug, enum ingest_stage fetch, enum ingest_stage persist)
{
    AUTO(list_release) struct list l   = { .tracks = NULL };
    il_error                       err = { .message = "" };

    il__ingestion_stage(g, fetch);
    struct fetch_conn *c = il__ingestion_conn(g, il__ingestion_should_stop);
    if (c == NULL)
        return false;
    il_status st = get_list(g, c, slug, &l, &err);
    if (st == IL_OK) {
        il__ingestion_stage(g, persist);
        st = write_list(g, slug, &l, &err);
    }
    if (st == IL_INVAL)
        il__ingestion_fail(g, code_of(&l, st), NULL, "%s", err.message);
    else if (st != IL_OK)
        il__ingestion_fail_call(g, st, &err);
    else
        g->result = list_result(g, slug, &l);
    return st == IL_OK;
}

bool
il__ingestion_sync_tracks(struct ingestion *g)
{
    return sync_list(g, NULL, INGEST_STAGE_fetch_tracks, INGEST_STAGE_persist_tracks);
}

bool
il__ingestion_sync_events(struct ingestion *g, const char *slug)
{
    return sync_list(g, slug, INGEST_STAGE_fetch_events, INGEST_STAGE_persist_events);
}

/* ---- recent events --------------------------------------------------------------------------- */

struct slugs {
    const char **items;
    size_t       n;
};

/* Those of the parameters, or all tracks that are known. */
static bool
choose(struct ingestion *g, struct slugs *ret)
{
    il_error err = { .message = "" };

    if (g->tracks == NULL) {
        il_status st =
            il__ingest_track_slugs(g->g, g->run->tenant, &g->mem, &ret->items, &ret->n, &err);
        if (st != IL_OK)
            il__ingestion_fail_call(g, st, &err);
        return st == IL_OK;
    }
    size_t n_max = strlen(g->tracks) / 2 + 1;
    char  *text  = il__arena_strdup(&g->mem, g->tracks);
    ret->items   = il__arena_alloc(&g->mem, n_max * sizeof *ret->items);
    if (text == NULL || ret->items == NULL) {
        il__ingestion_fail(g, "PERSISTENCE_ERROR", NULL, "out of memory for the tracks");
        return false;
    }
    char *rest = text;
    for (char *one = strsep(&rest, ","); one != NULL; one = strsep(&rest, ",")) {
        if (one[0] != '\0' && ret->n < n_max)
            ret->items[ret->n++] = one;
    }
    return true;
}

static il_status
started(const struct ingestion *g, const struct ingest_event_ref *e, const il_op *op, json_t *items,
        il_error *reterr)
{
    const il_run_info *run;
    enum ingest_answer answer = il__ingest_answer(g->run->work, op, &run);

    if (answer != INGEST_TRIGGER_STARTED && answer != INGEST_TRIGGER_JOINED)
        return il__error_set(reterr, op->status, "cannot start the ingestion of event %s: %s",
                             e->source_event_id, il_status_text(op->status));
    if (answer == INGEST_TRIGGER_JOINED)
        IGNORE(il__ingest_adopt(g->in, run)); /* or somebody else executes it */
    IGNORE(json_array_append_new(items, json_pack("{s:s, s:s, s:b}", "source_event_id",
                                                  e->source_event_id, "job_id", run->id, "started",
                                                  answer == INGEST_TRIGGER_JOINED ? 0 : 1)));
    return IL_OK;
}

/* Start the ingestion of an event, unless it is running. False: it has failed. */
static bool
start(struct ingestion *g, const struct ingest_event_ref *e, json_t *items)
{
    struct ingest_start s   = { .kind            = INGEST_RUN_EVENT,
                                .tenant          = g->run->tenant,
                                .by              = g->run->id,
                                .type            = "recent",
                                .source_event_id = e->source_event_id,
                                .track_slug      = e->track_slug,
                                .event_id        = e->event_id,
                                .force           = g->force,
                                .wait            = g->wait,
                                .policy          = IL_POLICY_JOIN };
    il_op               op  = { .type = IL_OP_NONE };
    void               *mem = NULL;
    char                id[37];
    il_error            err = { .message = "" };

    s.id         = id;
    il_status st = il_uuid(id);
    if (st == IL_OK)
        st = il__ingest_start_op(&s, &mem, &op, &err);
    if (st == IL_OK)
        st = il_apply(g->run->h, &op, 1, &err);
    if (st == IL_OK)
        st = started(g, e, &op, items, &err);
    il_op_release(&op);
    il__arena_free(&mem);
    if (st != IL_OK)
        il__ingestion_fail_call(g, st, &err);
    return st == IL_OK;
}

static bool
start_track(struct ingestion *g, const char *slug, const char *since, json_t *items)
{
    struct ingest_event_ref *events = NULL;
    size_t                   n      = 0;
    il_error                 err    = { .message = "" };
    size_t                   left   = INGEST_RECENT_MAX - json_array_size(items);

    if (left == 0)
        return true;
    il_status st = il__ingest_events_since(g->g, g->run->tenant, slug, since, left, &g->mem,
                                           &events, &n, &err);
    if (st != IL_OK && st != IL_NOT_FOUND) {
        il__ingestion_fail_call(g, st, &err);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!start(g, &events[i], items))
            return false;
    }
    return true;
}

/* Tracks that failed are NULL afterwards. */
static bool
read_lists(struct ingestion *g, struct slugs *slugs, struct failures *failed)
{
    struct fetch_conn *c = il__ingestion_conn(g, il__ingestion_should_stop);

    for (size_t i = 0; i < slugs->n && c != NULL; i++) {
        AUTO(list_release) struct list l   = { .events = NULL };
        il_error                       err = { .message = "" };
        il_status                      st  = get_list(g, c, slugs->items[i], &l, &err);
        if (st == IL_OK)
            st = write_list(g, slugs->items[i], &l, &err);
        if (il__ingestion_is_partial(st)) {
            il__ingestion_part_failed(g, failed, "track_slug", slugs->items[i], code_of(&l, st),
                                      err.message);
            slugs->items[i] = NULL;
        } else if (st != IL_OK) {
            il__ingestion_fail_call(g, st, &err);
            return false;
        }
        il__ingestion_progress(g, i + 1, slugs->n);
    }
    return c != NULL;
}

bool
il__ingestion_recent(struct ingestion *g)
{
    struct slugs    slugs  = { .n = 0 };
    struct failures failed = { .n = 0 };
    json_t         *items  = json_array();
    char            since[LIVERC_DATE_BYTES];

    il__ingestion_stage(g, INGEST_STAGE_fetch_events);
    bool ok = items != NULL && choose(g, &slugs) && read_lists(g, &slugs, &failed);
    if (ok)
        il__ingestion_stage(g, INGEST_STAGE_start_ingestions);
    (void)il__date_text(il__clock_wall_ms() / DAY_MS - g->days, since);
    for (size_t i = 0; i < slugs.n && ok; i++)
        ok = slugs.items[i] == NULL || start_track(g, slugs.items[i], since, items);
    if (ok && failed.n > 0) {
        il__ingestion_fail(g, failed.code,
                           json_pack("{s:I, s:I, s:O*, s:O}", "tracks", (json_int_t)slugs.n,
                                     "failed_tracks", (json_int_t)failed.n, "failed", failed.list,
                                     "items", items),
                           "%zu of %zu tracks failed; first: %s", failed.n, slugs.n, failed.text);
        ok = false;
    } else if (ok) {
        g->result = json_pack("{s:s, s:s, s:I, s:O}", "status", "updated", "since", since, "tracks",
                              (json_int_t)slugs.n, "items", items);
    }
    json_decref(failed.list);
    json_decref(items);
    return ok;
}
