/*
 * persist.c: transactions of an ingestion, and what it writes of an event as a whole: its row, its
 * entry list, the last step. persist_race.c writes races, persist_lists.c the lists of tracks and
 * events, match_users.c links. See persist.h and sql/persist.sql.
 */
#include "apps/ingest/persist_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "wire/wire.h"

#include "apps/ingest/ingest_sql.inc"

#define PIPELINE "ingest"
#define JSON_BYTES_MAX ((size_t)64 << 20)
#define EVENT_KEY 2 /* shared values that name an event: tenant, id */

static const char *const       sqlite_steps[] = { sql_ingest_sqlite_1 };
static const char *const       pg_steps[]     = { sql_ingest_postgres_1 };
static const struct il__schema sqlite         = IL__SCHEMA(1, sqlite_steps);
static const struct il__schema postgres       = IL__SCHEMA(1, pg_steps);
/* Everything else belongs to an event, or is written by single upserts. */
static const il_guard_rank ranks[]           = { { "event", 10 }, { "driver_link", 20 } };
const struct app_tables    il__ingest_tables = { .name     = "ingest",
                                                 .sqlite   = &sqlite,
                                                 .postgres = &postgres,
                                                 .ranks    = ranks,
                                                 .n_ranks  = ARRAY_LEN(ranks) };

const char *const il__ingest_depths[INGEST_DEPTH_COUNT + 1] = { "none", "laps_full" };

const char *const il__ingest_table_names[INGEST_TABLE_COUNT] = {
    [INGEST_TRACKS]             = "tracks",
    [INGEST_EVENTS]             = "events",
    [INGEST_EVENT_ENTRIES]      = "event_entries",
    [INGEST_RACES]              = "races",
    [INGEST_DRIVERS]            = "drivers",
    [INGEST_RACE_DRIVERS]       = "race_drivers",
    [INGEST_RACE_RESULTS]       = "race_results",
    [INGEST_LAPS]               = "laps",
    [INGEST_USERS]              = "users",
    [INGEST_USER_DRIVER_LINKS]  = "user_driver_links",
    [INGEST_EVENT_DRIVER_LINKS] = "event_driver_links",
};

enum ingest_depth
il__ingest_depth(const char *name)
{
    enum ingest_depth d = INGEST_NONE;

    while (d < INGEST_DEPTH_COUNT && strcmp(il__ingest_depths[d], name) != 0)
        d++;
    return d;
}

const char *
il__ingest_code(il_status status)
{
    switch (status) {
    case IL_NOT_FOUND:
        return il_status_name(IL_NOT_FOUND);
    case IL_STATE:
        return il__liverc_codes[LIVERC_STATE_MACHINE_ERROR];
    case IL_UNIQUE:
    case IL_CHECK:
    case IL_FOREIGN_KEY:
        return il__liverc_codes[LIVERC_CONSTRAINT_VIOLATION];
    case IL_INVAL:
        return il__liverc_codes[LIVERC_VALIDATION_ERROR];
    default:
        return il__liverc_codes[LIVERC_PERSISTENCE_ERROR];
    }
}

void
il__ingest_totals_add(struct ingest_totals *to, const struct ingest_totals *more)
{
    for (size_t i = 0; i < INGEST_TABLE_COUNT; i++) {
        to->of[i].n_inserted += more->of[i].n_inserted;
        to->of[i].n_updated += more->of[i].n_updated;
        to->of[i].n_unchanged += more->of[i].n_unchanged;
        to->of[i].n_removed += more->of[i].n_removed;
    }
}

/* ---- transactions ---------------------------------------------------------------------------- */

struct attempt {
    struct ingest_tx *t;
    ingest_fn        *fn;
    void             *cookie;
};

static il_status
put_validator(struct ingest_tx *t, const struct ingest_validator *v, il_error *reterr)
{
    static const struct app_statement put = APP_STATEMENT(validator_put);

    return il__ingest_run(t, &put,
                          APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(v->url),
                                     il_guard_text(v->etag), il_guard_text(v->last_modified),
                                     il_guard_int(t->now_ms)),
                          NULL, NULL, NULL, reterr);
}

static il_status
put_validators(struct ingest_tx *t, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; i < t->w->n_validators && st == IL_OK; i++)
        st = put_validator(t, &t->w->validators[i], reterr);
    return st;
}

/* The statements are ours: one that the engine refuses (a table or a privilege is missing) is not
 * the fault of the caller, but of the tables. */
static il_status
blame_tables(il_status st, il_error *err)
{
    if (st == IL_INVAL && err != NULL && err->native[0] != '\0')
        st = err->status = IL_CORRUPT;
    return st;
}

static il_status
attempt(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    const struct attempt *a = cookie;
    struct ingest_tx     *t = a->t;

    il__arena_free(&t->mem);
    t->tx        = tx;
    t->now_ms    = il__clock_wall_ms();
    t->totals    = (struct ingest_totals){ 0 };
    il_status st = a->fn(t, a->cookie, reterr);
    return blame_tables(st == IL_OK ? put_validators(t, reterr) : st, reterr);
}

il_status
il__ingest_transact(il_guard *g, const struct ingest_write *w, const char *caller, ingest_fn *fn,
                    void *cookie, il_error *reterr)
{
    il_guard_tx_opts o  = IL_GUARD_TX_OPTS_INIT;
    struct ingest_tx t  = { .w = w };
    struct attempt   a  = { &t, fn, cookie };
    il_status        st = IL_UNKNOWN;

    o.pipeline = PIPELINE;
    o.caller   = caller;
    o.fences   = w->fences;
    o.n_fences = w->n_fences;
#ifdef IL_MUTANT_ingest_shows_no_fence
    o.n_fences = 0;
#endif
    o.timeout_ms = w->timeout_ms;
    for (int i = 0; i < 2 && st == IL_UNKNOWN; i++)
        st = il_guard_transact(g, &o, attempt, &a, NULL, reterr);
    il__arena_free(&t.mem);
    if (st == IL_OK && w->totals != NULL)
        il__ingest_totals_add(w->totals, &t.totals);
    return st;
}

il_status
il__ingest_read(il_guard *g, const char *tenant, ingest_fn *fn, void *cookie, il_error *reterr)
{
    const struct ingest_write w  = { .tenant = tenant };
    struct ingest_tx          t  = { .w = &w };
    il_guard_tx_opts          o  = IL_GUARD_TX_OPTS_INIT;
    il_status                 st = IL_OK;

    o.pipeline = PIPELINE;
    o.caller   = "read";
    o.flags    = IL_GUARD_READ_ONLY;
    st         = il_guard_begin(g, &o, &t.tx, reterr);
    if (st == IL_OK)
        st = fn(&t, cookie, reterr);
    il_guard_rollback(t.tx);
    il__arena_free(&t.mem);
    return blame_tables(st, reterr);
}

il_status
il__ingest_run(struct ingest_tx *t, const struct app_statement *s, const il_guard_value *values,
               size_t n_values, il_guard_row_fn *each, void *cookie, int64_t *ret_n_changed,
               il_error *reterr)
{
    if (t->w->go_on != NULL && !t->w->go_on(t->w->cookie))
        return il__error_set(reterr, IL_CANCELLED, "the ingestion was stopped");
    return il__tables_run(t->tx, s, values, n_values, each, cookie, ret_n_changed, reterr);
}

static int
take_number(void *cookie, const il_guard_row *row)
{
    *(int64_t *)cookie = row->values[0].integer;
    return 0;
}

il_status
il__ingest_count(struct ingest_tx *t, const struct app_statement *s, const il_guard_value *values,
                 size_t n_values, int64_t *ret, il_error *reterr)
{
    return il__ingest_run(t, s, values, n_values, take_number, ret, NULL, reterr);
}

il_status
il__ingest_rows(struct ingest_tx *t, struct rows *r, enum ingest_table table,
                const struct app_statement *count, il_error *reterr)
{
    struct ingest_counts *to       = &t->totals.of[table];
    int64_t               n_before = 0, n_after = 0;
    struct rows_written   w  = { 0 };
    il_status             st = IL_OK;

    CHECK(count == NULL || r->n_shared >= EVENT_KEY);
    r->go_on        = t->w->go_on;
    r->go_on_cookie = t->w->cookie;
    if (count != NULL)
        st = il__ingest_count(t, count, r->shared, EVENT_KEY, &n_before, reterr);
    if (st == IL_OK)
        st = il__rows_write(t->tx, r, &w, reterr);
    if (st == IL_OK && count != NULL)
        st = il__ingest_count(t, count, r->shared, EVENT_KEY, &n_after, reterr);
    int64_t n_new = count != NULL ? n_after - n_before : w.n_new;
    to->n_inserted += n_new;
    to->n_updated += w.n_changed - n_new;
    to->n_unchanged += w.n - w.n_changed;
    return st;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *
il__ingest_new_id(struct ingest_tx *t, il_error *reterr)
{
    char *id = il__arena_alloc(&t->mem, INGEST_UUID_BYTES);

    if (id == NULL)
        (void)il__error_nomem(reterr);
    else if (il_uuid(id) != IL_OK) {
        (void)il__error_set(reterr, IL_NOMEM, "cannot read random bytes");
        id = NULL;
    }
    return id;
}

/* The text of a buffer, in t->mem. */
static const char *
keep(struct ingest_tx *t, const struct il__buf *b, il_error *reterr)
{
    const char *text = b->failed ? NULL : il__arena_strdup(&t->mem, il__buf_str(b));

    if (text == NULL)
        (void)il__error_nomem(reterr);
    return text;
}

const char *
il__ingest_match_name(struct ingest_tx *t, const char *name, il_error *reterr)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, INGEST_NAME_BYTES_MAX);
    il__liverc_match_name(name, &b);
    return keep(t, &b, reterr);
}

const char *
il__ingest_search_text(struct ingest_tx *t, const char *name, const char *slug,
                       const char *source_event_id, il_error *reterr)
{
    AUTO_BUF struct il__buf all = { 0 }, upper = { 0 };

    il__buf_init(&all, INGEST_NAME_BYTES_MAX);
    il__buf_init(&upper, (size_t)4 * INGEST_NAME_BYTES_MAX);
    il__buf_addf(&all, "%s %s %s", name, slug, source_event_id);
    il__liverc_upper(il__buf_str(&all), &upper);
    upper.failed |= all.failed;
    return keep(t, &upper, reterr);
}

bool
il__ingest_is_id(const char *text, size_t n_max)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && n <= n_max && text[n] == '\0' && text[0] != '.';
}

/* ---- the row of the event -------------------------------------------------------------------- */

/* Two texts and perhaps a depth of the row of an event. */
struct head_row {
    struct ingest_tx  *t;
    struct ingest_head head;
    const char        *id;
    bool               there;
};

static int
take_head(void *cookie, const il_guard_row *row)
{
    struct head_row *h = cookie;

    h->there                = true;
    h->head.source_event_id = il__arena_strdup(&h->t->mem, row->values[0].data);
    h->head.slug            = il__arena_strdup(&h->t->mem, row->values[1].data);
    h->head.depth           = il__ingest_depth(row->values[2].data);
    return 0;
}

il_status
il__ingest_lock_event(struct ingest_tx *t, const char *event_id, struct ingest_head *ret,
                      il_error *reterr)
{
    static const struct app_statement head  = APP_STATEMENT(event_head);
    const il_guard_column             key[] = { { "tenant", il_guard_text(t->w->tenant) },
                                                { "id", il_guard_text(event_id) } };
    const il_guard_target row = { "event", "events", key, ARRAY_LEN(key), IL_GUARD_PLACE };
    struct head_row       h   = { .t = t };

    il_status st = il_guard_lock(t->tx, &row, NULL, reterr);
    if (st == IL_OK)
        st = il__ingest_run(t, &head,
                            APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(event_id)),
                            take_head, &h, NULL, reterr);
    if (st == IL_NOT_FOUND || (st == IL_OK && !h.there))
        return il__error_set(reterr, IL_NOT_FOUND, "event %.64s not found", event_id);
    if (st != IL_OK)
        return st;
    if (h.head.source_event_id == NULL || h.head.slug == NULL)
        return il__error_nomem(reterr);
    *ret = h.head;
    return IL_OK;
}

il_status
il__ingest_track(struct ingest_tx *t, const char *slug, const char **ret, il_error *reterr)
{
    static const char *const unique[] = { "tenant", "source", "slug" };
    const char              *id       = il__ingest_new_id(t, reterr);
    int                      inserted = 0;
    il_guard_id              found    = { 0 };

    if (id == NULL)
        return IL_NOMEM;
    const il_guard_column columns[] = {
        { "tenant", il_guard_text(t->w->tenant) },
        { "id", il_guard_text(id) },
        { "source", il_guard_text(INGEST_SOURCE) },
        { "slug", il_guard_text(slug) },
        { "name", il_guard_text("") },
        { "created_at_ms", il_guard_int(t->now_ms) },
        { "updated_at_ms", il_guard_int(t->now_ms) },
    };
    il_status st = il_guard_insert_or_get(t->tx, "tracks", columns, ARRAY_LEN(columns), unique,
                                          ARRAY_LEN(unique), &inserted, &found, reterr);
    if (st == IL_OK) {
        *ret = found.values[1].data; /* lives as long as the transaction */
        t->totals.of[INGEST_TRACKS].n_inserted += inserted;
    }
    return st;
}

struct make {
    const char *source_event_id, *slug, *event_id; /* event_id NULL: a new one */
    char       *ret_id;
    bool        created;
};

static int
take_source(void *cookie, const il_guard_row *row)
{
    struct head_row *h = cookie;

    h->there     = true;
    h->id        = il__arena_strdup(&h->t->mem, row->values[0].data);
    h->head.slug = il__arena_strdup(&h->t->mem, row->values[1].data);
    return 0;
}

/* The row exists: it must be the one that is meant. */
static il_status
found_event(const struct make *m, const struct head_row *h, il_error *reterr)
{
    if (h->id == NULL || h->head.slug == NULL)
        return il__error_nomem(reterr);
    if (strcmp(h->head.slug, m->slug) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "event %.20s of " INGEST_SOURCE " belongs to track %.63s, not %.63s",
                             m->source_event_id, h->head.slug, m->slug);
    if (m->event_id != NULL && strcmp(h->id, m->event_id) != 0)
        return il__error_set(reterr, IL_UNIQUE,
                             "event %.20s of " INGEST_SOURCE " already has the id %.64s, not %.64s",
                             m->source_event_id, h->id, m->event_id);
    (void)snprintf(m->ret_id, INGEST_EVENT_ID_BYTES_MAX + 1, "%s", h->id);
    return IL_OK;
}

static il_status
insert_event(struct ingest_tx *t, struct make *m, il_error *reterr)
{
    static const char *const unique[] = { "tenant", "source", "source_event_id" };
    const char              *track    = NULL;
    const char              *id = m->event_id != NULL ? m->event_id : il__ingest_new_id(t, reterr);
    const char *search   = il__ingest_search_text(t, "", m->slug, m->source_event_id, reterr);
    int         inserted = 0;

    if (id == NULL || search == NULL)
        return IL_NOMEM;
    il_status st = il__ingest_track(t, m->slug, &track, reterr);
    if (st != IL_OK)
        return st;
    const il_guard_column columns[] = {
        { "tenant", il_guard_text(t->w->tenant) },
        { "id", il_guard_text(id) },
        { "source", il_guard_text(INGEST_SOURCE) },
        { "source_event_id", il_guard_text(m->source_event_id) },
        { "track_id", il_guard_text(track) },
        { "name", il_guard_text("") },
        { "club", il_guard_text("") },
        { "meet", il_guard_text("") },
        { "first_day", il_guard_text("") },
        { "last_day", il_guard_text("") },
        { "search_text", il_guard_text(search) },
        { "ingest_depth", il_guard_text(il__ingest_depths[INGEST_NONE]) },
        { "digest", il_guard_text("") },
        { "created_at_ms", il_guard_int(t->now_ms) },
        { "updated_at_ms", il_guard_int(t->now_ms) },
    };
    st = il_guard_insert_or_get(t->tx, "events", columns, ARRAY_LEN(columns), unique,
                                ARRAY_LEN(unique), &inserted, NULL, reterr);
    t->totals.of[INGEST_EVENTS].n_inserted += st == IL_OK && inserted;
    m->created = st == IL_OK && inserted;
    return st;
}

/* Of two callers at once one inserts the row; the natural key makes the other find it. */
static il_status
make_event(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(event_of_source);
    struct make                      *m   = cookie;
    const il_guard_value key[] = { il_guard_text(t->w->tenant), il_guard_text(INGEST_SOURCE),
                                   il_guard_text(m->source_event_id) };
    struct head_row      h     = { .t = t };

    m->created   = false;
    il_status st = il__ingest_run(t, &get, key, ARRAY_LEN(key), take_source, &h, NULL, reterr);
    if (st == IL_OK && !h.there) {
        st = insert_event(t, m, reterr);
        if (st == IL_OK)
            st = il__ingest_run(t, &get, key, ARRAY_LEN(key), take_source, &h, NULL, reterr);
    }
    if (st == IL_OK && !h.there)
        st = il__error_set(reterr, IL_CORRUPT, "event %.20s is missing after its insert",
                           m->source_event_id);
    return st == IL_OK ? found_event(m, &h, reterr) : st;
}

il_status
il__ingest_event_make(il_guard *g, const struct ingest_write *w, const char *source_event_id,
                      const char *track_slug, const char *event_id,
                      char ret_id[INGEST_EVENT_ID_BYTES_MAX + 1], bool *ret_created,
                      il_error *reterr)
{
    char        id[INGEST_EVENT_ID_BYTES_MAX + 1];
    struct make m = { source_event_id, track_slug, event_id, id, false };

    if (!il__ingest_is_id(source_event_id, LIVERC_ID_BYTES_MAX) ||
        strspn(source_event_id, "0123456789") != strlen(source_event_id))
        return il__error_set(reterr, IL_INVAL,
                             "'%.64s' is not the id of an event of " INGEST_SOURCE
                             ": expected up to %d digits",
                             source_event_id, LIVERC_ID_BYTES_MAX);
    if (!il__ingest_is_id(track_slug, INGEST_SLUG_BYTES_MAX))
        return il__error_set(reterr, IL_INVAL, "'%.64s' is not a track slug", track_slug);
    if (event_id != NULL && !il__ingest_is_id(event_id, INGEST_EVENT_ID_BYTES_MAX))
        return il__error_set(reterr, IL_INVAL,
                             "'%.80s' is not an event id: expected 1 to %d of "
                             "A-Z a-z 0-9 . _ -",
                             event_id, INGEST_EVENT_ID_BYTES_MAX);
    il_status st = il__ingest_transact(g, w, "event_make", make_event, &m, reterr);
    if (st == IL_OK) {
        (void)snprintf(ret_id, INGEST_EVENT_ID_BYTES_MAX + 1, "%s", id);
        if (ret_created != NULL)
            *ret_created = m.created;
    }
    return st;
}

/* ---- the event page and the entry list ------------------------------------------------------- */

struct event_write {
    const char                     *event_id;
    const struct liverc_event      *event;
    const struct liverc_entry_list *list;
};

static il_status
update_event(struct ingest_tx *t, const char *event_id, const char *slug,
             const struct liverc_event *e, il_error *reterr)
{
    static const struct app_statement update = APP_STATEMENT(event_update);
    const char *search    = il__ingest_search_text(t, e->name, slug, e->id, reterr);
    int64_t     n_changed = 0;

    if (search == NULL)
        return IL_NOMEM;
    il_status st = il__ingest_run(
        t, &update,
        APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(event_id), il_guard_int(t->now_ms),
                   il_guard_text(e->name), il_guard_text(e->club), il_guard_text(e->meet),
                   il_guard_text(e->first_day), il_guard_text(e->last_day),
                   il__ingest_number(e->n_entries), il__ingest_number(e->n_drivers),
                   il__ingest_number(e->n_laps), il_guard_text(search)),
        NULL, NULL, &n_changed, reterr);
    t->totals.of[INGEST_EVENTS].n_updated += n_changed;
    t->totals.of[INGEST_EVENTS].n_unchanged += 1 - n_changed;
    return st;
}

/* The entries in the order of their keys, each once: of two with the same key the first counts. */
struct entries {
    struct ingest_tx           *t;
    const struct liverc_entry **sorted;
    size_t                      n, i;
};

static int
compare_entries(const struct liverc_entry *a, const struct liverc_entry *b)
{
    int c = strcmp(a->class_name, b->class_name);

    c = c != 0 ? c : strcmp(a->upper_name, b->upper_name);
    return c != 0 ? c : strcmp(a->car_number, b->car_number);
}

static int
order_entries(const void *a, const void *b)
{
    const struct liverc_entry *const *x = a, *const *y = b;
    int                               c = compare_entries(*x, *y);

    return c != 0 ? c : (*x > *y) - (*x < *y); /* elements of one array */
}

static bool
sort_entries(struct entries *s, const struct liverc_entry_list *l)
{
    size_t n = 0;

    s->sorted = il__arena_alloc(&s->t->mem, (l->n_entries + 1) * sizeof(void *));
    if (s->sorted == NULL)
        return false;
    for (size_t i = 0; i < l->n_entries; i++)
        s->sorted[i] = &l->entries[i];
    qsort(s->sorted, l->n_entries, sizeof(void *), order_entries);
    for (size_t i = 0; i < l->n_entries; i++) {
        if (n == 0 || compare_entries(s->sorted[n - 1], s->sorted[i]) != 0)
            s->sorted[n++] = s->sorted[i];
    }
    s->n = n;
    return true;
}

static enum rows_next
next_entry(void *cookie, il_guard_value *v)
{
    struct entries *s = cookie;

    if (s->i == s->n)
        return ROWS_END;
    const struct liverc_entry *e     = s->sorted[s->i++];
    const char                *match = il__ingest_match_name(s->t, e->name, NULL);
    if (match == NULL)
        return ROWS_NO_MEMORY;
    v[0] = il_guard_text(e->class_name);
    v[1] = il_guard_text(e->upper_name);
    v[2] = il_guard_text(e->car_number);
    v[3] = il_guard_text(e->name);
    v[4] = il_guard_text(match);
    v[5] = il_guard_text(e->transponder);
    return ROWS_MORE;
}

/* Remove entries that are no longer listed. */
static il_status
prune_entries(struct ingest_tx *t, const char *event_id, const struct entries *s, int64_t *ret_n,
              il_error *reterr)
{
    static const struct app_statement prune = APP_STATEMENT_EACH(entry_prune);
    AUTO_BUF struct il__buf           json  = { 0 };

    il__buf_init(&json, JSON_BYTES_MAX);
    il__buf_addc(&json, '[');
    for (size_t i = 0; i < s->n; i++) {
        il__buf_adds(&json, i == 0 ? "[" : ",[");
        il__wire_print_text(&json, s->sorted[i]->class_name);
        il__buf_addc(&json, ',');
        il__wire_print_text(&json, s->sorted[i]->upper_name);
        il__buf_addc(&json, ',');
        il__wire_print_text(&json, s->sorted[i]->car_number);
        il__buf_addc(&json, ']');
    }
    il__buf_addc(&json, ']');
    if (json.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for an entry list");
    return il__ingest_run(t, &prune,
                          APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(event_id),
                                     il_guard_json(il__buf_str(&json))),
                          NULL, NULL, ret_n, reterr);
}

static il_status
write_entries(struct ingest_tx *t, const char *event_id, const struct liverc_entry_list *l,
              il_error *reterr)
{
    static const struct app_statement count   = APP_STATEMENT(entry_count);
    static const struct app_statement write   = APP_STATEMENT_EACH(entry_write);
    static const char *const          names[] = { "class_name", "upper_name", "car_number",
                                                  "name",       "match_name", "transponder" };
    struct entries                    s       = { .t = t };
    const il_guard_value shared[] = { il_guard_text(t->w->tenant), il_guard_text(event_id),
                                      il_guard_int(t->now_ms) };
    struct rows          r        = { .statement = &write,
                                      .shared    = shared,
                                      .n_shared  = ARRAY_LEN(shared),
                                      .columns   = names,
                                      .n_columns = ARRAY_LEN(names),
                                      .next      = next_entry,
                                      .cookie    = &s };

    if (!sort_entries(&s, l))
        return il__error_set(reterr, IL_NOMEM, "out of memory for an entry list");
    il_status st =
        prune_entries(t, event_id, &s, &t->totals.of[INGEST_EVENT_ENTRIES].n_removed, reterr);
    return st == IL_OK ? il__ingest_rows(t, &r, INGEST_EVENT_ENTRIES, &count, reterr) : st;
}

static il_status
write_event(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    const struct event_write *e    = cookie;
    struct ingest_head        head = { .source_event_id = "", .slug = "" };

    il_status st = il__ingest_lock_event(t, e->event_id, &head, reterr);
    if (st == IL_OK && e->event != NULL && strcmp(e->event->id, head.source_event_id) != 0)
        st = il__error_set(reterr, IL_INVAL,
                           "event %.64s is %.20s of " INGEST_SOURCE
                           ", but the page is that of %.20s",
                           e->event_id, head.source_event_id, e->event->id);
    if (st == IL_OK && e->event != NULL)
        st = update_event(t, e->event_id, head.slug, e->event, reterr);
    if (st == IL_OK && e->list != NULL)
        st = write_entries(t, e->event_id, e->list, reterr);
    return st;
}

il_status
il__ingest_event_write(il_guard *g, const struct ingest_write *w, const char *event_id,
                       const struct liverc_event *event, const struct liverc_entry_list *entries,
                       il_error *reterr)
{
    struct event_write e = { event_id, event, entries };

    return il__ingest_transact(g, w, "event_write", write_event, &e, reterr);
}

/* ---- the last step --------------------------------------------------------------------------- */

struct finish {
    const char                *event_id;
    enum ingest_depth          to;
    const struct liverc_event *event;
    int64_t                    at_ms;
};

static int
take_missing(void *cookie, const il_guard_row *row)
{
    (void)snprintf(cookie, LIVERC_ID_BYTES_MAX + 1, "%s", (const char *)row->values[0].data);
    return 0;
}

/* IL_STATE unless all races of the page are in the tables. */
static il_status
require_all(struct ingest_tx *t, const struct finish *f, il_error *reterr)
{
    static const struct app_statement missing = APP_STATEMENT_EACH(races_missing);
    AUTO_BUF struct il__buf           json    = { 0 };
    char                              id[LIVERC_ID_BYTES_MAX + 1] = "";

    if (f->event->n_races == 0)
        return il__error_set(reterr, IL_STATE, "event %.64s cannot become %s: it has no races",
                             f->event_id, il__ingest_depths[f->to]);
    il__buf_init(&json, JSON_BYTES_MAX);
    for (size_t i = 0; i < f->event->n_races; i++) {
        il__buf_addc(&json, i == 0 ? '[' : ',');
        il__wire_print_text(&json, f->event->races[i].id);
    }
    il__buf_addc(&json, ']');
    if (json.failed)
        return il__error_nomem(reterr);
    il_status st =
        il__ingest_run(t, &missing,
                       APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(f->event_id),
                                  il_guard_json(il__buf_str(&json))),
                       take_missing, id, NULL, reterr);
    if (st == IL_OK && id[0] != '\0')
        st = il__error_set(reterr, IL_STATE, "event %.64s cannot become %s: race %s is missing",
                           f->event_id, il__ingest_depths[f->to], id);
    return st;
}

static il_status
finish(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement set  = APP_STATEMENT(event_finish);
    struct finish                    *f    = cookie;
    struct ingest_head                head = { 0 };

    il_status st = il__ingest_lock_event(t, f->event_id, &head, reterr);
    /* none -> laps_full and laps_full -> laps_full; the source is one of the two in any case */
    if (st == IL_OK && f->to != INGEST_LAPS_FULL)
        st =
            il__error_set(reterr, IL_STATE, "event %.64s cannot go from depth %s to %s",
                          f->event_id, il__ingest_depths[head.depth],
                          f->to < INGEST_DEPTH_COUNT ? il__ingest_depths[f->to] : "an unknown one");
#ifndef IL_MUTANT_ingest_complete_anyway
    if (st == IL_OK)
        st = require_all(t, f, reterr);
#endif
    f->at_ms = t->now_ms;
    if (st == IL_OK)
        st = il__ingest_run(t, &set,
                            APP_VALUES(il_guard_text(t->w->tenant), il_guard_text(f->event_id),
                                       il_guard_int(t->now_ms),
                                       il_guard_text(il__ingest_depths[f->to]),
                                       il_guard_text(f->event->digest)),
                            NULL, NULL, NULL, reterr);
    return st;
}

il_status
il__ingest_finish(il_guard *g, const struct ingest_write *w, const char *event_id,
                  enum ingest_depth to, const struct liverc_event *event, int64_t *ret_at_ms,
                  il_error *reterr)
{
    struct finish f  = { event_id, to, event, 0 };
    il_status     st = il__ingest_transact(g, w, "finish", finish, &f, reterr);

    if (st == IL_OK && ret_at_ms != NULL)
        *ret_at_ms = f.at_ms;
    return st;
}
