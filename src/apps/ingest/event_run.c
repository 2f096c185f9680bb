/*
 * event_run.c: an ingestion of an event, stage by stage. Commits: the row of a new event; the event
 * with its entry list; each race whole; the links of drivers; and last the depth. Whatever happens
 * in between, the next run starts from what was committed and writes the rest.
 */
#include <inttypes.h>
#include <stdio.h>

#include "apps/ingest/ingest_internal.h"
#include "base/error.h"
#include "base/parse.h"

#define AWAY_MAX 3 /* races in a row that cannot be fetched: then the site is away */

/* ---- pages ----------------------------------------------------------------------------------- */

/* A fair place in a long line is no stall. */
static void
waits(void *cookie)
{
    const struct ingestion *g = cookie;

    work_run_alive(g->run);
}

struct fetch_conn *
il__ingestion_conn(struct ingestion *g, bool (*stop)(void *cookie))
{
    struct fetch_calls calls = { .should_stop = stop, .waits = waits, .cookie = g };
    struct fetch_conn *c     = NULL;
    il_error           err   = { .message = "" };
    il_status          st    = il__fetch_open(g->in->fetcher, &calls, &c, &err);

    if (st != IL_OK) {
        il__ingestion_fail_call(g, st, &err);
        return NULL;
    }
    il__mutex_lock(&g->mutex);
    CHECK(g->n_conns < ARRAY_LEN(g->conns));
    g->conns[g->n_conns++] = c;
    il__mutex_unlock(&g->mutex);
    return c;
}

/* What came with the page when it was last written; without it the request is unconditional. */
static il_status
remember(struct ingestion *g, struct fetch_what *what, void **mem, il_error *reterr)
{
    struct address          at;
    struct ingest_validator v  = { .url = NULL };
    il_status               st = il__fetch_address(g->in->fetcher, what, &at, reterr);

    if (st == IL_OK)
        st = il__ingest_validator_get(g->g, g->run->tenant, at.url, mem, &v, reterr);
    if (st == IL_OK) {
        what->etag     = v.etag;
        what->modified = v.last_modified;
    }
    return st == IL_NOT_FOUND ? IL_OK : st;
}

bool
il__ingestion_get(struct ingestion *g, struct fetch_conn *c, enum liverc_kind kind,
                  const char *slug, const char *id, bool remembered, struct fetched *ret,
                  il_error *reterr, il_status *ret_status)
{
    struct fetch_what what = { .kind = kind, .slug = slug, .id = id };
    void             *mem  = NULL;

    *ret        = (struct fetched){ .code = LIVERC_OK };
    *ret_status = remembered ? remember(g, &what, &mem, reterr) : IL_OK;
    if (*ret_status == IL_OK)
        *ret_status = il__fetch(c, &what, ret, reterr);
    il__arena_free(&mem);
    work_run_alive(g->run);
    return *ret_status == IL_OK;
}

/* A page could not be fetched or parsed. */
static void
fail_page(struct ingestion *g, il_status st, enum liverc_code code, const il_error *err)
{
    if (st == IL_INVAL && code != LIVERC_OK)
        il__ingestion_fail(g, il__liverc_codes[code], NULL, "%s", err->message);
    else
        il__ingestion_fail_call(g, st, err);
}

void
il__ingestion_warn(struct ingestion *g, const char *what, const struct liverc_page *page)
{
    for (size_t i = 0; i < MIN(page->n_warnings, LIVERC_WARNINGS_MAX); i++)
        work_run_say(g->run, "warning: %s: %s", what, page->warnings[i]);
}

/* The two pages that are fetched before anything is locked. */
struct front {
    struct fetched                  event_page, entries_page;
    struct liverc_page              event_mem, entries_mem;
    const struct liverc_event      *event;   /* NULL: unchanged */
    const struct liverc_entry_list *entries; /* NULL: unchanged */
};

static void
front_release(struct front *f)
{
    il__fetched_release(&f->event_page);
    il__fetched_release(&f->entries_page);
    il__liverc_page_release(&f->event_mem);
    il__liverc_page_release(&f->entries_mem);
}

static bool
get_front(struct ingestion *g, struct fetch_conn *c, struct front *f)
{
    bool      complete = g->is_known && g->known.depth == INGEST_LAPS_FULL;
    il_error  err      = { .message = "" };
    il_status st;

    il__ingestion_stage(g, INGEST_STAGE_fetch_event_page);
    if (!il__ingestion_get(g, c, LIVERC_EVENT, g->track_slug, g->subject->id, complete && !g->force,
                           &f->event_page, &err, &st)) {
        fail_page(g, st, f->event_page.code, &err);
        return false;
    }
    struct liverc_source s = { .id = g->subject->id, .slug = g->track_slug };
    if (!f->event_page.unchanged) {
        s.body    = il__buf_str(&f->event_page.body);
        s.n_bytes = f->event_page.body.n_bytes;
        st        = il__liverc_event(&f->event_mem, &s, &f->event, &err);
        il__ingestion_warn(g, "event page", &f->event_mem);
    }
    if (st != IL_OK) {
        fail_page(g, st, f->event_mem.code, &err);
        return false;
    }
    il__ingestion_stage(g, INGEST_STAGE_fetch_entry_list);
    if (!il__ingestion_get(g, c, LIVERC_ENTRIES, g->track_slug, g->subject->id,
                           g->is_known && !g->force, &f->entries_page, &err, &st)) {
        fail_page(g, st, f->entries_page.code, &err);
        return false;
    }
    if (!f->entries_page.unchanged) {
        s.body    = il__buf_str(&f->entries_page.body);
        s.n_bytes = f->entries_page.body.n_bytes;
        st        = il__liverc_entries(&f->entries_mem, &s, &f->entries, &err);
        il__ingestion_warn(g, "entry list", &f->entries_mem);
    }
    if (st != IL_OK)
        fail_page(g, st, f->entries_mem.code, &err);
    return st == IL_OK;
}

/* ---- what is known --------------------------------------------------------------------------- */

static bool
look(struct ingestion *g, bool by_source)
{
    il_error  err = { .message = "" };
    il_status st =
        by_source ? il__ingest_known_source(g->g, g->run->tenant, g->subject->id, &g->mem,
                                            &g->known, &err)
                  : il__ingest_known(g->g, g->run->tenant, g->event_id, &g->mem, &g->known, &err);

    g->is_known = st == IL_OK;
    if (st == IL_OK || (st == IL_NOT_FOUND && by_source))
        return true;
    il__ingestion_fail_call(g, st, &err);
    return false;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The event and its entry list are one commit. The validators of the event's page stand for its
 * races as well: unless all of them are there already, they come last, with the depth. */
static bool
write_front(struct ingestion *g, const struct front *f, bool complete)
{
    struct ingestion_write w;
    il_error               err = { .message = "" };

    il__ingestion_stage(g, INGEST_STAGE_persist_event);
    il__ingestion_write(g, &w, g->lease);
    if (complete)
        il__ingestion_validator(&w, &f->event_page);
    il__ingestion_validator(&w, &f->entries_page);
    il__ingestion_point(g, "event");
    il_status st = il__ingestion_wrote(
        g, &w, il__ingest_event_write(g->g, &w.w, g->event_id, f->event, f->entries, &err));
    if (st != IL_OK) {
        il__ingestion_fail_call(g, st, &err);
        return false;
    }
    il__ingestion_stage(g, INGEST_STAGE_persist_entry_list);
    return true;
}

/* The races of the event, as they are written. */
struct races {
    size_t          n, n_done, n_away;
    struct failures failed;
};

/* The race stays as it was; the others go on, unless the site or the database is away. */
static bool
race_failed(struct ingestion *g, struct races *all, const struct ahead_race *r, const char *code,
            const char *text)
{
    il__ingestion_part_failed(g, &all->failed, "source_race_id", r->link->id, code, text);
    all->n_away = r->code == LIVERC_CONNECTOR_HTTP_ERROR ? all->n_away + 1 : 0;
    return all->n_away < AWAY_MAX;
}

static bool
write_race(struct ingestion *g, struct ahead_race *r, void *cookie)
{
    struct races          *all = cookie;
    struct ingestion_write w;
    il_error               err = { .message = "" };

    if (g->stage == INGEST_STAGE_fetch_race_pages) { /* it continues in parallel */
        g->stage = INGEST_STAGE_COUNT;
        il__ingestion_stage(g, INGEST_STAGE_ingest_laps);
    }
    all->n_done++;
    if (r->status == IL_OK) {
        il__ingestion_warn(g, r->link->id, &r->parsed);
        il__ingestion_write(g, &w, g->lease);
        il__ingestion_validator(&w, &r->page);
        il__ingestion_point(g, "race");
        r->status = il__ingestion_wrote(
            g, &w, il__ingest_race_write(g->g, &w.w, g->event_id, r->link, r->race, &err));
        if (r->status == IL_OK)
            all->n_away = 0;
        else if (il__ingestion_is_partial(r->status))
            return race_failed(g, all, r, il__ingest_code(r->status), err.message);
    } else if (r->status == IL_INVAL && r->code != LIVERC_OK) {
        return race_failed(g, all, r, il__liverc_codes[r->code], r->error.message);
    } else {
        err = r->error;
    }
    if (r->status != IL_OK) {
        il__ingestion_fail_call(g, r->status, &err);
        return false;
    }
    if (all->n_done == all->n)
        il__ingestion_stage_end(g, INGEST_STAGE_fetch_race_pages);
    il__ingestion_progress(g, all->n_done, all->n);
    return true;
}

static bool
write_races(struct ingestion *g, const struct liverc_event *event)
{
    struct races all = { .n = event->n_races };

    il__ingestion_stage(g, INGEST_STAGE_fetch_race_pages);
    bool done = il__ahead_run(g, event->races, event->n_races, write_race, &all);
    if (all.failed.n > 0)
        il__ingestion_fail(g, all.failed.code,
                           json_pack("{s:I, s:I, s:O*}", "races", (json_int_t)all.n, "failed_races",
                                     (json_int_t)all.failed.n, "failed", all.failed.list),
                           "%zu of %zu races failed, depth unchanged; first: race %s", all.failed.n,
                           all.n, all.failed.text);
    json_decref(all.failed.list);
    return done && all.failed.n == 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool
match(struct ingestion *g)
{
    struct ingestion_write w;
    il_error               err = { .message = "" };

    il__ingestion_stage(g, INGEST_STAGE_driver_matching);
    il__ingestion_write(g, &w, g->lease);
    il__ingestion_point(g, "matching");
    il_status st = il__ingestion_wrote(g, &w, il__ingest_match(g->g, &w.w, g->event_id, &err));
    if (st != IL_OK)
        il__ingestion_fail_call(g, st, &err);
    return st == IL_OK;
}

static json_t *
result_of(struct ingestion *g, bool complete)
{
    char at[IL__TIME_TEXT_BYTES];

    return json_pack(
        "{s:s, s:s, s:s, s:s?, s:I, s:I, s:I, s:s, s:o?}", "event_id", g->event_id,
        "source_event_id", g->subject->id, "ingest_depth", il__ingest_depths[g->known.depth],
        "last_ingested_at",
        g->known.last_ingested_ms != 0 ? il__time_text(g->known.last_ingested_ms, at) : NULL,
        "races_ingested", (json_int_t)g->known.n_races, "results_ingested",
        (json_int_t)g->known.n_results, "laps_ingested", (json_int_t)g->known.n_laps, "status",
        complete ? "already_complete" : "updated", "rows", il__ingestion_rows(&g->totals));
}

static bool
finish(struct ingestion *g, const struct front *f, bool complete)
{
    struct ingestion_write w;
    il_error               err = { .message = "" };
    il_status              st  = IL_OK;

    il__ingestion_stage(g, INGEST_STAGE_finalize);
    bool upcoming = !complete && f->event->n_races == 0 && g->known.depth == INGEST_NONE;
    if (upcoming) /* not a failure, but not complete either */
        work_run_say(g->run, "the event has no races yet; its depth stays unchanged");
    if (!complete && !upcoming) {
        il__ingestion_write(g, &w, g->lease);
        il__ingestion_validator(&w, &f->event_page);
        il__ingestion_point(g, "finishing");
        st = il__ingestion_wrote(
            g, &w,
            il__ingest_finish(g->g, &w.w, g->event_id, INGEST_LAPS_FULL, f->event, NULL, &err));
    }
    if (st != IL_OK) {
        il__ingestion_fail_call(g, st, &err);
        return false;
    }
    if (!look(g, false))
        return false;
    g->result = result_of(g, complete);
    return true;
}

bool
il__ingestion_event(struct ingestion *g)
{
    AUTO(front_release) struct front f = { .event = NULL };

    if (g->track_slug == NULL) {
        il__ingestion_fail(g, "VALIDATION_ERROR", NULL,
                           "missing track in the parameters of the run");
        return false;
    }
    struct fetch_conn *c = il__ingestion_conn(g, il__ingestion_should_stop);
    if (c == NULL || !look(g, true) || !get_front(g, c, &f))
        return false;
    il__ingestion_stage(g, INGEST_STAGE_await_event_lock);
    if (!il__ingestion_find_event(g) || !il__ingestion_lock(g) || !look(g, false))
        return false;
    /* Under the lease nobody else changes what is known. */
    bool complete = !g->force && g->known.depth == INGEST_LAPS_FULL &&
                    (f.event == NULL || il__ingest_is_complete(&g->known, f.event));
    if (f.event == NULL && !complete) {
        il__ingestion_fail(g, "STATE_MACHINE_ERROR", NULL,
                           "event %s was changed by another program; ingest it again", g->event_id);
        return false;
    }
    return write_front(g, &f, complete) && (complete || write_races(g, f.event)) && match(g) &&
           finish(g, &f, complete);
}
