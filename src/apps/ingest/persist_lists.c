/*
 * persist_lists.c: writes the lists of tracks and of a track's events. Nothing is removed: a track
 * or an event that is no longer listed keeps its results.
 */
#include "apps/ingest/persist_internal.h"

#include "base/error.h"

#include "apps/ingest/ingest_sql.inc"

struct list_write {
    struct ingest_tx                *t;
    const struct liverc_tracks      *tracks;
    const struct liverc_event_links *events;
    const char                      *slug;
    size_t                           i;
};

/* ---- tracks ---------------------------------------------------------------------------------- */

static enum rows_next
next_track(void *cookie, il_guard_value *v)
{
    struct list_write *w = cookie;

    if (w->i == w->tracks->n)
        return ROWS_END;
    const struct liverc_track *t  = &w->tracks->items[w->i++];
    const char                *id = il__ingest_new_id(w->t, NULL);
    v[0]                          = il_guard_text(t->slug);
    v[1]                          = il_guard_text(id);
    v[2]                          = il_guard_text(t->name);
    return id != NULL ? ROWS_MORE : ROWS_NO_MEMORY;
}

static il_status
write_tracks(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement write   = APP_STATEMENT_EACH(track_write);
    static const char *const          names[] = { "slug", "id", "name" };
    struct list_write                *w       = cookie;
    const il_guard_value shared[] = { il_guard_text(t->w->tenant), il_guard_text(INGEST_SOURCE),
                                      il_guard_int(t->now_ms) };
    struct rows          r        = { .statement = &write,
                                      .shared    = shared,
                                      .n_shared  = ARRAY_LEN(shared),
                                      .columns   = names,
                                      .n_columns = ARRAY_LEN(names),
                                      .next      = next_track,
                                      .cookie    = w };

    w->t = t;
    w->i = 0;
    return il__ingest_rows(t, &r, INGEST_TRACKS, NULL, reterr);
}

il_status
il__ingest_tracks_write(il_guard *g, const struct ingest_write *w,
                        const struct liverc_tracks *tracks, il_error *reterr)
{
    struct list_write l = { .tracks = tracks };

    return il__ingest_transact(g, w, "tracks_write", write_tracks, &l, reterr);
}

/* ---- events of a track ----------------------------------------------------------------------- */

static enum rows_next
next_event(void *cookie, il_guard_value *v)
{
    struct list_write *w = cookie;

    if (w->i == w->events->n)
        return ROWS_END;
    const struct liverc_event_link *e  = &w->events->items[w->i++];
    const char                     *id = il__ingest_new_id(w->t, NULL);
    const char *search = il__ingest_search_text(w->t, e->name, w->slug, e->id, NULL);
    v[0]               = il_guard_text(e->id);
    v[1]               = il_guard_text(id);
    v[2]               = il_guard_text(e->name);
    v[3]               = il_guard_text(e->first_day);
    v[4]               = il__ingest_number(e->n_entries);
    v[5]               = il__ingest_number(e->n_drivers);
    v[6]               = il_guard_text(search);
    return id != NULL && search != NULL ? ROWS_MORE : ROWS_NO_MEMORY;
}

static il_status
write_events(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement write = APP_STATEMENT_EACH(event_list_write);
    static const char *const names[] = { "source_event_id", "id",        "name",       "first_day",
                                         "n_entries",       "n_drivers", "search_text" };
    struct list_write       *w       = cookie;
    const char              *track   = NULL;

    w->t         = t;
    w->i         = 0;
    il_status st = il__ingest_track(t, w->slug, &track, reterr);
    if (st != IL_OK)
        return st;
    const il_guard_value shared[] = { il_guard_text(t->w->tenant), il_guard_text(INGEST_SOURCE),
                                      il_guard_int(t->now_ms), il_guard_text(track) };
    struct rows          r        = { .statement = &write,
                                      .shared    = shared,
                                      .n_shared  = ARRAY_LEN(shared),
                                      .columns   = names,
                                      .n_columns = ARRAY_LEN(names),
                                      .next      = next_event,
                                      .cookie    = w };
    return il__ingest_rows(t, &r, INGEST_EVENTS, NULL, reterr);
}

il_status
il__ingest_events_write(il_guard *g, const struct ingest_write *w, const char *track_slug,
                        const struct liverc_event_links *events, il_error *reterr)
{
    struct list_write l = { .events = events, .slug = track_slug };

    if (!il__ingest_is_id(track_slug, INGEST_SLUG_BYTES_MAX))
        return il__error_set(reterr, IL_INVAL, "'%.64s' is not a track slug", track_slug);
    return il__ingest_transact(g, w, "events_write", write_events, &l, reterr);
}
