/*
 * query.c: reads events, races, results and laps; see query.h and sql/read.sql.
 */
#include "apps/ingest/query.h"

#include "apps/ingest/persist_internal.h"
#include "base/arena.h"
#include "base/error.h"

#include "apps/ingest/ingest_sql.inc"

const char *const il__ingest_sorts[INGEST_SORT_COUNT + 1] = { "date", "oldest", "name",
                                                              "ingested" };

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *
text(const il_guard_value *v)
{
    return v->type == IL_GUARD_NULL ? NULL : v->data;
}

static int64_t
number(const il_guard_value *v)
{
    return v->type == IL_GUARD_NULL ? LIVERC_NONE : v->integer;
}

/* A decimal on the wire. */
static int64_t
decimal(const il_guard_value *v)
{
    return v->type == IL_GUARD_NULL ? INGEST_NO_DECIMAL : v->integer;
}

static struct ingest_event_out
event_of(const il_guard_row *row)
{
    const il_guard_value *v = row->values;

    CHECK(row->n == 17);
    return (struct ingest_event_out){
        .id               = text(&v[0]),
        .source           = text(&v[1]),
        .source_event_id  = text(&v[2]),
        .track            = text(&v[3]),
        .track_name       = text(&v[4]),
        .name             = text(&v[5]),
        .club             = text(&v[6]),
        .meet             = text(&v[7]),
        .first_day        = text(&v[8]),
        .last_day         = text(&v[9]),
        .n_entries        = (int32_t)number(&v[10]),
        .n_drivers        = (int32_t)number(&v[11]),
        .n_laps           = (int32_t)number(&v[12]),
        .depth            = text(&v[13]),
        .is_complete      = il__ingest_depth(v[13].data) == INGEST_LAPS_FULL,
        .last_ingested_ms = MAX(number(&v[14]), 0),
        .updated_ms       = number(&v[15]),
        .n_races          = number(&v[16]),
    };
}

static struct ingest_race_out
race_of(const il_guard_row *row)
{
    const il_guard_value *v = row->values;

    CHECK(row->n == 17);
    return (struct ingest_race_out){
        .id             = text(&v[0]),
        .event_id       = text(&v[1]),
        .event_depth    = text(&v[2]),
        .is_complete    = il__ingest_depth(v[2].data) == INGEST_LAPS_FULL,
        .source_race_id = text(&v[3]),
        .order          = (int32_t)number(&v[4]),
        .class_name     = text(&v[5]),
        .label          = text(&v[6]),
        .section        = text(&v[7]),
        .session        = text(&v[8]),
        .url            = text(&v[9]),
        .completed_at   = text(&v[10]),
        .round          = text(&v[11]),
        .length         = text(&v[12]),
        .length_ms      = decimal(&v[13]),
        .has_laps       = number(&v[14]) == 1,
        .ingested_ms    = number(&v[15]),
        .n_results      = number(&v[16]),
    };
}

static struct ingest_result_out
result_of(const il_guard_row *row)
{
    const il_guard_value *v = row->values;

    CHECK(row->n == 23);
    return (struct ingest_result_out){
        .id                = text(&v[0]),
        .driver_id         = text(&v[1]),
        .source_driver_id  = text(&v[2]),
        .name              = text(&v[3]),
        .car_number        = text(&v[4]),
        .position          = (int32_t)number(&v[5]),
        .qualified         = (int32_t)number(&v[6]),
        .laps_completed    = (int32_t)number(&v[7]),
        .total_raw         = text(&v[8]),
        .total_ms          = decimal(&v[9]),
        .behind_raw        = text(&v[10]),
        .behind_ms         = decimal(&v[11]),
        .behind_laps       = (int32_t)number(&v[12]),
        .fastest_ms        = decimal(&v[13]),
        .fastest_lap       = (int32_t)number(&v[14]),
        .average_ms        = decimal(&v[15]),
        .consistency_milli = decimal(&v[16]),
        .extras            = { decimal(&v[17]), decimal(&v[18]), decimal(&v[19]), decimal(&v[20]),
                               decimal(&v[21]) },
        .n_laps            = number(&v[22]),
    };
}

static struct ingest_lap_out
lap_of(const il_guard_row *row)
{
    const il_guard_value *v = row->values;

    CHECK(row->n == 11);
    return (struct ingest_lap_out){
        .result_id        = text(&v[0]),
        .source_driver_id = text(&v[1]),
        .name             = text(&v[2]),
        .result_position  = (int32_t)number(&v[3]),
        .number           = (int32_t)number(&v[4]),
        .position         = (int32_t)number(&v[5]),
        .time_raw         = text(&v[6]),
        .time_ms          = decimal(&v[7]),
        .pace             = text(&v[8]),
        .elapsed_ms       = decimal(&v[9]),
        .segments         = text(&v[10]),
    };
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Replace the texts of a struct, at these offsets, by copies in *mem. False: out of memory. */
static bool
copy_texts(void **mem, void *of, const size_t *offsets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char **at = (const char **)((char *)of + offsets[i]);
        if (*at != NULL && (*at = il__arena_strdup(mem, *at)) == NULL)
            return false;
    }
    return true;
}
#define T(member) offsetof(STRUCT, member)

#define STRUCT struct ingest_event_out
static const size_t event_texts[] = { T(id),       T(source),     T(source_event_id),
                                      T(track),    T(track_name), T(name),
                                      T(club),     T(meet),       T(first_day),
                                      T(last_day), T(depth) };
#undef STRUCT
#define STRUCT struct ingest_race_out
static const size_t race_texts[] = {
    T(id),      T(event_id), T(event_depth), T(source_race_id), T(class_name), T(label),
    T(section), T(session),  T(url),         T(completed_at),   T(round),      T(length)
};
#undef STRUCT
#define STRUCT struct ingest_result_out
static const size_t result_texts[] = { T(id),         T(driver_id), T(source_driver_id), T(name),
                                       T(car_number), T(total_raw), T(behind_raw) };
#undef STRUCT
#undef T

/* Rows that are collected in an arena. */
struct collected {
    void **mem;
    void  *items;
    size_t n;
    bool   no_memory;
};

static void *
collect(struct collected *c, const void *item, size_t bytes, const size_t *offsets, size_t n)
{
    void *to = il__arena_append(c->mem, &c->items, &c->n, bytes);

    if (to == NULL) {
        c->no_memory = true;
        return NULL;
    }
    memcpy(to, item, bytes);
    c->no_memory |= !copy_texts(c->mem, to, offsets, n);
    return to;
}

static int
collect_event(void *cookie, const il_guard_row *row)
{
    struct ingest_event_out e = event_of(row);

    return collect(cookie, &e, sizeof e, event_texts, ARRAY_LEN(event_texts)) != NULL;
}

static int
collect_race(void *cookie, const il_guard_row *row)
{
    struct ingest_race_out r = race_of(row);

    return collect(cookie, &r, sizeof r, race_texts, ARRAY_LEN(race_texts)) != NULL;
}

static int
collect_result(void *cookie, const il_guard_row *row)
{
    struct ingest_result_out r = result_of(row);

    return collect(cookie, &r, sizeof r, result_texts, ARRAY_LEN(result_texts)) != NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

struct events_read {
    const struct ingest_events_in *in;
    const char                    *search; /* in upper case */
    ingest_event_fn               *each;
    void                          *cookie;
    void                         **mem;
    size_t                         limit, n;
    const char                    *last, *next; /* ids */
    bool                           stopped, no_memory, there;
};

static int
give_event(void *cookie, const il_guard_row *row)
{
    struct events_read     *r = cookie;
    struct ingest_event_out e = event_of(row);

    if (r->n++ == r->limit) { /* one more than wanted: another page follows */
        r->next = r->last;
        return 0;
    }
    if (r->n == r->limit && (r->last = il__arena_strdup(r->mem, e.id)) == NULL)
        r->no_memory = true;
    r->stopped = !r->each(r->cookie, &e);
    return !r->stopped && !r->no_memory;
}

static int
take_there(void *cookie, const il_guard_row *row UNUSED)
{
    *(bool *)cookie = true;
    return 0;
}

static il_status
read_events(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement get                      = APP_STATEMENT(event_get);
    static const struct app_statement lists[INGEST_SORT_COUNT] = {
        [INGEST_BY_DATE]     = APP_STATEMENT_EACH(events_by_date),
        [INGEST_BY_OLDEST]   = APP_STATEMENT_EACH(events_by_oldest),
        [INGEST_BY_NAME]     = APP_STATEMENT_EACH(events_by_name),
        [INGEST_BY_INGESTED] = APP_STATEMENT_EACH(events_by_ingested),
    };
    struct events_read            *r      = cookie;
    const struct ingest_events_in *in     = r->in;
    const char                    *cursor = in->cursor != NULL ? in->cursor : "";
    const il_guard_value           tenant = il_guard_text(t->w->tenant);
    il_status                      st     = IL_OK;

    r->there = cursor[0] == '\0';
    if (!r->there)
        st = il__ingest_run(t, &get, APP_VALUES(tenant, il_guard_text(cursor)), take_there,
                            &r->there, NULL, reterr);
    if (st == IL_OK && !r->there)
        return il__error_set(reterr, IL_INVAL, "field 'cursor': invalid");
    if (st == IL_OK)
        st = il__ingest_run(t, &lists[in->sort],
                            APP_VALUES(tenant, il_guard_text(in->depth != NULL ? in->depth : ""),
                                       il_guard_text(in->track != NULL ? in->track : ""),
                                       il_guard_text(cursor), il_guard_int((int64_t)r->limit + 1),
                                       il_guard_text(r->search)),
                            give_event, r, NULL, reterr);
    if (st == IL_OK && r->stopped)
        st = il__error_set(reterr, IL_CANCELLED, "the client disconnected");
    return st == IL_OK && r->no_memory ? il__error_nomem(reterr) : st;
}

il_status
il__ingest_events_list(il_guard *g, const char *tenant, const struct ingest_events_in *in,
                       ingest_event_fn *each, void *cookie, void **mem, const char **ret_next,
                       il_error *reterr)
{
    AUTO_BUF struct il__buf upper = { 0 };
    struct events_read      r     = { .in     = in,
                                      .each   = each,
                                      .cookie = cookie,
                                      .mem    = mem,
                                      .limit  = in->limit != 0 ? in->limit : INGEST_PAGE_DEFAULT };

    il__buf_init(&upper, (size_t)4 * INGEST_SEARCH_BYTES_MAX);
    if (in->search != NULL && in->search[0] != '\0') {
        il_status st = il__liverc_load(reterr);
        if (st != IL_OK)
            return st;
        il__liverc_upper(in->search, &upper);
    }
    if (upper.failed)
        return il__error_set(reterr, IL_INVAL, "field 'search': longer than %d bytes",
                             INGEST_SEARCH_BYTES_MAX);
    r.search     = il__buf_str(&upper);
    il_status st = il__ingest_read(g, tenant, read_events, &r, reterr);
    if (st == IL_OK)
        *ret_next = r.next;
    return st;
}

/* ---- one event, one race --------------------------------------------------------------------- */

/* A parent and its children. */
struct one_read {
    const char                 *what, *id;
    const struct app_statement *get, *list;
    il_guard_row_fn            *collect, *collect_child;
    struct collected            parent, children;
};

static il_status
read_one(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    struct one_read     *o     = cookie;
    const il_guard_value key[] = { il_guard_text(t->w->tenant), il_guard_text(o->id) };

    il_status st =
        il__ingest_run(t, o->get, key, ARRAY_LEN(key), o->collect, &o->parent, NULL, reterr);
    if (st == IL_OK && o->parent.n == 0 && !o->parent.no_memory)
        return il__error_set(reterr, IL_NOT_FOUND, "%s %.64s not found", o->what, o->id);
    if (st == IL_OK)
        st = il__ingest_run(t, o->list, key, ARRAY_LEN(key), o->collect_child, &o->children, NULL,
                            reterr);
    return st == IL_OK && (o->parent.no_memory || o->children.no_memory) ? il__error_nomem(reterr)
                                                                         : st;
}

il_status
il__ingest_event_get(il_guard *g, const char *tenant, const char *id, void **mem,
                     struct ingest_event_out *ret, il_error *reterr)
{
    static const struct app_statement get  = APP_STATEMENT(event_get);
    static const struct app_statement list = APP_STATEMENT(race_list);
    struct one_read                   o    = { .what          = "event",
                                               .id            = id,
                                               .get           = &get,
                                               .list          = &list,
                                               .collect       = collect_event,
                                               .collect_child = collect_race,
                                               .parent        = { .mem = mem },
                                               .children      = { .mem = mem } };
    il_status                         st   = il__ingest_read(g, tenant, read_one, &o, reterr);

    if (st == IL_OK) {
        *ret         = *(struct ingest_event_out *)o.parent.items;
        ret->races   = o.children.items;
        ret->n_shown = o.children.n;
    }
    return st;
}

il_status
il__ingest_race_get(il_guard *g, const char *tenant, const char *id, void **mem,
                    struct ingest_race_out *ret, il_error *reterr)
{
    static const struct app_statement get  = APP_STATEMENT(race_show);
    static const struct app_statement list = APP_STATEMENT(result_list);
    struct one_read                   o    = { .what          = "race",
                                               .id            = id,
                                               .get           = &get,
                                               .list          = &list,
                                               .collect       = collect_race,
                                               .collect_child = collect_result,
                                               .parent        = { .mem = mem },
                                               .children      = { .mem = mem } };
    il_status                         st   = il__ingest_read(g, tenant, read_one, &o, reterr);

    if (st == IL_OK) {
        *ret         = *(struct ingest_race_out *)o.parent.items;
        ret->results = o.children.items;
        ret->n_shown = o.children.n;
    }
    return st;
}

/* ---- laps ------------------------------------------------------------------------------------ */

struct laps_read {
    const char    *race_id;
    ingest_lap_fn *each;
    void          *cookie;
    bool           stopped, there;
};

static int
give_lap(void *cookie, const il_guard_row *row)
{
    struct laps_read     *l   = cookie;
    struct ingest_lap_out lap = lap_of(row);

    l->stopped = !l->each(l->cookie, &lap);
    return !l->stopped;
}

static il_status
read_laps(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    static const struct app_statement get  = APP_STATEMENT(race_show);
    static const struct app_statement list = APP_STATEMENT(lap_list);
    struct laps_read                 *l    = cookie;
    const il_guard_value key[] = { il_guard_text(t->w->tenant), il_guard_text(l->race_id) };

    il_status st =
        il__ingest_run(t, &get, key, ARRAY_LEN(key), take_there, &l->there, NULL, reterr);
    if (st == IL_OK && !l->there)
        return il__error_set(reterr, IL_NOT_FOUND, "race %.64s not found", l->race_id);
    if (st == IL_OK)
        st = il__ingest_run(t, &list, key, ARRAY_LEN(key), give_lap, l, NULL, reterr);
    return st == IL_OK && l->stopped
               ? il__error_set(reterr, IL_CANCELLED, "the client disconnected")
               : st;
}

il_status
il__ingest_laps_list(il_guard *g, const char *tenant, const char *race_id, ingest_lap_fn *each,
                     void *cookie, il_error *reterr)
{
    struct laps_read l = { .race_id = race_id, .each = each, .cookie = cookie };

    return il__ingest_read(g, tenant, read_laps, &l, reterr);
}
