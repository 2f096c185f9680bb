/*
 * stored_state.c: reads what the tables already hold about an event; see persist.h.
 */
#include <stdlib.h>

#include "apps/ingest/persist_internal.h"
#include "base/arena.h"
#include "base/error.h"

#include "apps/ingest/ingest_sql.inc"

struct known_read {
    const char          *id, *source_event_id; /* one of them */
    void               **mem;
    struct ingest_known *ret;
    bool                 no_memory;
};

static const char *
copy(struct known_read *k, const il_guard_value *v)
{
    const char *text = il__arena_strdup(k->mem, v->type == IL_GUARD_NULL ? "" : v->data);

    k->no_memory |= text == NULL;
    return text;
}

static int
take_event(void *cookie, const il_guard_row *row)
{
    struct known_read   *k = cookie;
    struct ingest_known *e = k->ret;

    e->event_id         = copy(k, &row->values[0]);
    e->source_event_id  = copy(k, &row->values[1]);
    e->track_slug       = copy(k, &row->values[2]);
    e->depth            = il__ingest_depth(row->values[3].data);
    e->digest           = copy(k, &row->values[4]);
    e->last_ingested_ms = row->values[5].type == IL_GUARD_NULL ? 0 : row->values[5].integer;
    return 0;
}

static int
take_race(void *cookie, const il_guard_row *row)
{
    struct known_read   *k    = cookie;
    struct ingest_known *e    = k->ret;
    const char         **race = il__arena_append(k->mem, &e->races, &e->n_races, sizeof *race);

    if (race == NULL) {
        k->no_memory = true;
        return 0;
    }
    *race = copy(k, &row->values[0]);
    e->n_results += row->values[1].integer;
    e->n_laps += row->values[2].integer;
    return 1;
}

static int
take_id(void *cookie, const il_guard_row *row)
{
    struct known_read *k = cookie;

    k->id = copy(k, &row->values[0]);
    return 0;
}

static il_status
find_id(struct ingest_tx *t, struct known_read *k, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(event_of_source);

    il_status st =
        il__ingest_run(t, &get,
                       APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(INGEST_SOURCE),
                                  il_guard_text(k->source_event_id)),
                       take_id, k, NULL, reterr);
    if (st == IL_OK && k->id == NULL && !k->no_memory)
        st = il__error_set(reterr, IL_NOT_FOUND, "event %.20s of " INGEST_SOURCE " not found",
                           k->source_event_id);
    return st;
}

static il_status
read_known(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement event = APP_STATEMENT(known_event);
    static const struct app_statement races = APP_STATEMENT(known_races);
    struct known_read                *k     = cookie;
    il_status                         st    = k->id == NULL ? find_id(t, k, reterr) : IL_OK;
    const il_guard_value              key[] = { il_guard_text(t->w->tenant), il_guard_text(k->id) };

    if (st == IL_OK)
        st = il__ingest_run(t, &event, key, ARRAY_LEN(key), take_event, k, NULL, reterr);
    if (st == IL_OK && k->ret->event_id == NULL && !k->no_memory)
        st = il__error_set(reterr, IL_NOT_FOUND, "event %.64s not found", k->id);
    if (st == IL_OK)
        st = il__ingest_run(t, &races, key, ARRAY_LEN(key), take_race, k, NULL, reterr);
    if (st == IL_OK && k->no_memory)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for an event");
    return st;
}

static il_status
known(il_guard *g, const char *tenant, struct known_read k, struct ingest_known *ret,
      il_error *reterr)
{
    struct ingest_known e = { 0 };

    k.ret        = &e;
    il_status st = il__ingest_read(g, tenant, read_known, &k, reterr);
    if (st == IL_OK)
        *ret = e;
    return st;
}

il_status
il__ingest_known(il_guard *g, const char *tenant, const char *event_id, void **mem,
                 struct ingest_known *ret, il_error *reterr)
{
    return known(g, tenant, (struct known_read){ .id = event_id, .mem = mem }, ret, reterr);
}

il_status
il__ingest_known_source(il_guard *g, const char *tenant, const char *source_event_id, void **mem,
                        struct ingest_known *ret, il_error *reterr)
{
    struct known_read k = { .source_event_id = source_event_id, .mem = mem };

    return known(g, tenant, k, ret, reterr);
}

static int
compare_race(const void *key, const void *race)
{
    return strcmp(key, *(const char *const *)race);
}

bool
il__ingest_known_race(const struct ingest_known *k, const char *source_race_id)
{
    return k->n_races > 0 &&
           bsearch(source_race_id, k->races, k->n_races, sizeof *k->races, compare_race) != NULL;
}

bool
il__ingest_is_complete(const struct ingest_known *k, const struct liverc_event *event)
{
    return k->depth == INGEST_LAPS_FULL && strcmp(k->digest, event->digest) == 0;
}

/* ---- validators ------------------------------------------------------------------------------ */

struct validator_read {
    const char              *url;
    void                   **mem;
    struct ingest_validator *ret;
    bool                     there;
};

static int
take_validator(void *cookie, const il_guard_row *row)
{
    struct validator_read *v = cookie;

    v->there              = true;
    v->ret->etag          = il__arena_strdup(v->mem, row->values[0].data);
    v->ret->last_modified = il__arena_strdup(v->mem, row->values[1].data);
    return 0;
}

static il_status
read_validator(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(validator_get);
    struct validator_read            *v   = cookie;

    il_status st =
        il__ingest_run(t, &get, APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(v->url)),
                       take_validator, v, NULL, reterr);
    if (st == IL_OK && !v->there)
        return il__error_set(reterr, IL_NOT_FOUND, "no stored validators for %.200s", v->url);
    if (st == IL_OK && (v->ret->etag == NULL || v->ret->last_modified == NULL))
        return il__error_nomem(reterr);
    return st;
}

il_status
il__ingest_validator_get(il_guard *g, const char *tenant, const char *url, void **mem,
                         struct ingest_validator *ret, il_error *reterr)
{
    struct ingest_validator found = { .url = url };
    struct validator_read   v     = { .url = url, .mem = mem, .ret = &found };
    il_status               st    = il__ingest_read(g, tenant, read_validator, &v, reterr);

    if (st == IL_OK)
        *ret = found;
    return st;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct list_read {
    const char *slug, *first_day;
    size_t      limit;
    void      **mem;
    void       *items;
    size_t      n;
    bool        no_memory;
};

static int
take_ref(void *cookie, const il_guard_row *row)
{
    struct list_read        *l = cookie;
    struct ingest_event_ref *e = il__arena_append(l->mem, &l->items, &l->n, sizeof *e);

    if (e == NULL) {
        l->no_memory = true;
        return 0;
    }
    const char **texts[] = { &e->event_id, &e->source_event_id, &e->track_slug, &e->name,
                             &e->first_day };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        *texts[i] = il__arena_strdup(l->mem, row->values[i].data);
        l->no_memory |= *texts[i] == NULL;
    }
    return !l->no_memory;
}

static il_status
read_refs(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(known_track_events);
    struct list_read                 *l   = cookie;

    return il__ingest_run(t, &get,
                          APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(INGEST_SOURCE),
                                     il_guard_text(l->slug), il_guard_text(l->first_day),
                                     il_guard_int((int64_t)l->limit)),
                          take_ref, l, NULL, reterr);
}

il_status
il__ingest_events_since(il_guard *g, const char *tenant, const char *track_slug,
                        const char *first_day, size_t limit, void **mem,
                        struct ingest_event_ref **ret, size_t *ret_n, il_error *reterr)
{
    struct list_read l = { .slug = track_slug, .first_day = first_day, .limit = limit, .mem = mem };
    il_status        st = il__ingest_read(g, tenant, read_refs, &l, reterr);

    if (st == IL_OK && l.no_memory)
        st = il__error_nomem(reterr);
    if (st == IL_OK) {
        *ret   = l.items;
        *ret_n = l.n;
    }
    return st;
}

static int
take_slug(void *cookie, const il_guard_row *row)
{
    struct list_read *l    = cookie;
    const char      **slug = il__arena_append(l->mem, &l->items, &l->n, sizeof *slug);

    if (slug != NULL)
        *slug = il__arena_strdup(l->mem, row->values[0].data);
    l->no_memory |= slug == NULL || *slug == NULL;
    return !l->no_memory;
}

static il_status
read_slugs(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(known_tracks);

    return il__ingest_run(t, &get,
                          APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(INGEST_SOURCE)),
                          take_slug, cookie, NULL, reterr);
}

il_status
il__ingest_track_slugs(il_guard *g, const char *tenant, void **mem, const char ***ret,
                       size_t *ret_n, il_error *reterr)
{
    struct list_read l  = { .mem = mem };
    il_status        st = il__ingest_read(g, tenant, read_slugs, &l, reterr);

    if (st == IL_OK && l.no_memory)
        st = il__error_nomem(reterr);
    if (st == IL_OK) {
        *ret   = l.items;
        *ret_n = l.n;
    }
    return st;
}
