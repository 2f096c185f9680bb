/*
 * persist_race.c: writes a race whole: its row, drivers, results and laps in one transaction.
 *
 * The row of the event is locked, so the ids that are read here stay valid until the commit. A
 * result that exists keeps its id; the others get new ones. What is no longer on the page is
 * removed first, laps before results before drivers. The counts follow from the number of rows
 * before, the number of rows that a statement changed, and the number of rows on the page.
 */
#include "apps/ingest/persist_internal.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "wire/wire.h"

#include "apps/ingest/ingest_sql.inc"

#define JSON_BYTES_MAX ((size_t)1 << 20)
#define SEGMENTS_BYTES_MAX ((size_t)8 * LIVERC_SEGMENTS_MAX * LIVERC_TEXT_BYTES_MAX)

/* A result of the page, with what the tables say about it. */
struct racer {
    const struct liverc_result *result;
    const char                 *match_name;
    const char                 *driver_id; /* NULL: not in the tables yet */
    const char                 *race_driver_id, *result_id;
    bool                        renamed; /* the driver has another name in the tables */
};

struct race_write {
    struct ingest_tx              *t;
    const char                    *event_id;
    const struct liverc_race_link *link;
    const struct liverc_race      *race; /* NULL: only the link */
    const char                    *race_id;
    const char                    *digest; /* in the tables; NULL: the race is new */
    struct racer                  *racers;
    struct il__buf                 ids;      /* JSON: the source_driver_ids of the page */
    struct il__buf                 text;     /* JSON of one value */
    int64_t                        n_before; /* results in the tables */
    int64_t                        n_laps_before;
    size_t                         i, i_lap; /* the next row */
    bool                           no_memory;
};

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for a race");
}

static il_guard_value
tenant(const struct race_write *w)
{
    return il_guard_text(w->t->w->tenant);
}

/* The result of a driver; NULL: none. Results are few, and in an order of their own. */
static struct racer *
find(struct race_write *w, const char *source_driver_id)
{
    for (size_t i = 0; i < w->race->n_results; i++) {
        if (strcmp(w->racers[i].result->driver_id, source_driver_id) == 0)
            return &w->racers[i];
    }
    return NULL;
}

/* ---- the row of the race --------------------------------------------------------------------- */

static int
take_race(void *cookie, const il_guard_row *row)
{
    struct race_write *w = cookie;

    w->race_id   = il__arena_strdup(&w->t->mem, row->values[0].data);
    w->digest    = il__arena_strdup(&w->t->mem, row->values[1].data);
    w->no_memory = w->race_id == NULL || w->digest == NULL;
    return 0;
}

static il_status
get_race(struct race_write *w, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(race_get);

    il_status st = il__ingest_run(
        w->t, &get, APP_VALUES(tenant(w), il_guard_text(w->event_id), il_guard_text(w->link->id)),
        take_race, w, NULL, reterr);
    return st == IL_OK && w->no_memory ? no_memory(reterr) : st;
}

static il_status
put_race(struct race_write *w, const struct app_statement *s, bool whole, int64_t *ret_n,
         il_error *reterr)
{
    const struct liverc_race_link *l        = w->link;
    const struct liverc_race      *r        = w->race;
    const il_guard_value           values[] = {
                  tenant(w),
                  il_guard_text(w->event_id),
                  il_guard_text(l->id),
                  il_guard_text(w->race_id),
                  il_guard_int(w->t->now_ms),
                  il__ingest_number(l->order),
                  il_guard_text(l->class_name),
                  il_guard_text(l->label),
                  il_guard_text(l->section),
                  il_guard_text(il__liverc_sessions[l->session]),
                  il_guard_text(l->url),
                  il_guard_text(l->completed_at),
                  il_guard_text(whole ? r->round : ""),
                  il_guard_text(whole ? r->length : ""),
        whole ? il__ingest_number(r->length_ms) : il_guard_null(),
                  il_guard_int(whole && r->has_laps),
                  il_guard_text(whole ? r->digest : ""),
    };

    return il__ingest_run(w->t, s, values, whole ? ARRAY_LEN(values) : 12, NULL, NULL, ret_n,
                          reterr);
}

/* Insert the row, or update it if anything differs. */
static il_status
write_race_row(struct race_write *w, il_error *reterr)
{
    static const struct app_statement insert      = APP_STATEMENT(race_insert);
    static const struct app_statement update      = APP_STATEMENT(race_update);
    static const struct app_statement update_link = APP_STATEMENT(race_update_link);
    static const struct app_statement seen        = APP_STATEMENT(race_seen);
    struct ingest_counts             *c           = &w->t->totals.of[INGEST_RACES];
    int64_t                           n           = 0;

    if (w->digest == NULL) {
        w->race_id = il__ingest_new_id(w->t, reterr);
        if (w->race_id == NULL)
            return IL_NOMEM;
        return put_race(w, &insert, true, &c->n_inserted, reterr);
    }
    bool      whole = w->race != NULL;
    il_status st    = put_race(w, whole ? &update : &update_link, whole, &n, reterr);
    c->n_updated    = n;
    c->n_unchanged  = 1 - n;
    if (st == IL_OK)
        st = il__ingest_run(
            w->t, &seen,
            APP_VALUES(tenant(w), il_guard_text(w->race_id), il_guard_int(w->t->now_ms)), NULL,
            NULL, NULL, reterr);
    return st;
}

/* ---- drivers --------------------------------------------------------------------------------- */

/* The racers of the page, and their ids as JSON. */
static il_status
begin_racers(struct race_write *w, il_error *reterr)
{
    size_t n = w->race->n_results;

    w->racers = il__arena_alloc(&w->t->mem, (n + 1) * sizeof *w->racers);
    if (w->racers == NULL)
        return no_memory(reterr);
    il__buf_clear(&w->ids);
    for (size_t i = 0; i < n; i++) {
        const struct liverc_result *r = &w->race->results[i];
        w->racers[i]                  = (struct racer){ .result = r };
        w->racers[i].match_name       = il__ingest_match_name(w->t, r->name, reterr);
        if (w->racers[i].match_name == NULL)
            return IL_NOMEM;
        il__buf_addc(&w->ids, i == 0 ? '[' : ',');
        il__wire_print_text(&w->ids, r->driver_id);
    }
    il__buf_adds(&w->ids, n == 0 ? "[]" : "]");
    return w->ids.failed ? no_memory(reterr) : IL_OK;
}

static int
take_driver(void *cookie, const il_guard_row *row)
{
    struct race_write *w = cookie;
    struct racer      *r = find(w, row->values[0].data);

    if (r == NULL)
        return 1;
    r->renamed   = strcmp(r->result->name, row->values[2].data) != 0;
    r->driver_id = il__arena_strdup(&w->t->mem, row->values[1].data);
    w->no_memory |= r->driver_id == NULL;
    return 1;
}

static il_status
get_drivers(struct race_write *w, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT_EACH(driver_ids);

    il_status st = il__ingest_run(
        w->t, &get,
        APP_VALUES(tenant(w), il_guard_text(INGEST_SOURCE), il_guard_json(il__buf_str(&w->ids))),
        take_driver, w, NULL, reterr);
    return st == IL_OK && w->no_memory ? no_memory(reterr) : st;
}

/* The drivers that are new, or have another name. */
static enum rows_next
next_driver(void *cookie, il_guard_value *v)
{
    struct race_write *w = cookie;

    while (w->i < w->race->n_results) {
        struct racer *r = &w->racers[w->i++];
        if (r->driver_id != NULL && !r->renamed)
            continue;
        const char *id = il__ingest_new_id(w->t, NULL);
        v[0]           = il_guard_text(r->result->driver_id);
        v[1]           = il_guard_text(id);
        v[2]           = il_guard_text(r->result->name);
        v[3]           = il_guard_text(r->match_name);
        return id != NULL ? ROWS_MORE : ROWS_NO_MEMORY;
    }
    return ROWS_END;
}

/* Another event may insert the same drivers meanwhile, so their ids are read afterwards. */
static il_status
write_drivers(struct race_write *w, il_error *reterr)
{
    static const struct app_statement write    = APP_STATEMENT_EACH(driver_write);
    static const char *const          names[]  = { "source_driver_id", "id", "name", "match_name" };
    const il_guard_value              shared[] = { tenant(w), il_guard_text(INGEST_SOURCE),
                                                   il_guard_int(w->t->now_ms) };
    struct ingest_counts             *c        = &w->t->totals.of[INGEST_DRIVERS];
    struct rows                       r        = { .statement = &write,
                                                   .shared    = shared,
                                                   .n_shared  = ARRAY_LEN(shared),
                                                   .columns   = names,
                                                   .n_columns = ARRAY_LEN(names),
                                                   .next      = next_driver,
                                                   .cookie    = w };
    struct rows_written               done     = { 0 };
    bool                              writes   = false;

    il_status st = get_drivers(w, reterr);
    for (size_t i = 0; i < w->race->n_results; i++)
        writes |= w->racers[i].driver_id == NULL || w->racers[i].renamed;
    w->i = 0;
    if (st == IL_OK && writes)
        st = il__rows_write(w->t->tx, &r, &done, reterr);
    c->n_inserted  = done.n_new;
    c->n_updated   = done.n_changed - done.n_new;
    c->n_unchanged = (int64_t)w->race->n_results - done.n_changed;
    return st == IL_OK && writes ? get_drivers(w, reterr) : st;
}

/* ---- ids of results -------------------------------------------------------------------------- */

static int
take_ids(void *cookie, const il_guard_row *row)
{
    struct race_write *w = cookie;
    struct racer      *r = find(w, row->values[0].data);

    w->n_before++;
    w->n_laps_before += row->values[3].integer;
    if (r == NULL)
        return 1;
    r->race_driver_id = il__arena_strdup(&w->t->mem, row->values[1].data);
    if (row->values[2].type == IL_GUARD_TEXT)
        r->result_id = il__arena_strdup(&w->t->mem, row->values[2].data);
    w->no_memory |= r->race_driver_id == NULL;
    return 1;
}

/* Results that exist keep their ids. */
static il_status
assign_ids(struct race_write *w, il_error *reterr)
{
    static const struct app_statement get = APP_STATEMENT(race_ids);
    il_status                         st  = IL_OK;

    if (w->digest != NULL)
        st = il__ingest_run(w->t, &get, APP_VALUES(tenant(w), il_guard_text(w->race_id)), take_ids,
                            w, NULL, reterr);
    if (st == IL_OK && w->no_memory)
        st = no_memory(reterr);
    for (size_t i = 0; i < w->race->n_results && st == IL_OK; i++) {
        struct racer *r = &w->racers[i];
        if (r->race_driver_id == NULL)
            r->race_driver_id = il__ingest_new_id(w->t, reterr);
        if (r->result_id == NULL)
            r->result_id = il__ingest_new_id(w->t, reterr);
        if (r->race_driver_id == NULL || r->result_id == NULL)
            st = IL_NOMEM;
    }
    return st;
}

/* ---- what is gone ---------------------------------------------------------------------------- */

static il_status
prune_laps(struct race_write *w, int64_t *ret_n, il_error *reterr)
{
    static const struct app_statement prune = APP_STATEMENT_EACH(lap_prune);
    AUTO_BUF struct il__buf           kept  = { 0 };

    il__buf_init(&kept, JSON_BYTES_MAX);
    il__buf_addc(&kept, '[');
    for (size_t i = 0; i < w->race->n_results; i++)
        il__buf_addf(&kept, "%s[\"%s\",%zu]", i == 0 ? "" : ",", w->racers[i].result_id,
                     w->racers[i].result->n_laps);
    il__buf_addc(&kept, ']');
    if (kept.failed)
        return no_memory(reterr);
    return il__ingest_run(
        w->t, &prune,
        APP_VALUES(tenant(w), il_guard_text(w->race_id), il_guard_json(il__buf_str(&kept))), NULL,
        NULL, ret_n, reterr);
}

/* Children before their parents. */
static il_status
prune(struct race_write *w, il_error *reterr)
{
    static const struct app_statement results  = APP_STATEMENT_EACH(result_prune);
    static const struct app_statement drivers  = APP_STATEMENT_EACH(race_driver_prune);
    struct ingest_counts             *c        = w->t->totals.of;
    const il_guard_value              values[] = { tenant(w), il_guard_text(w->race_id),
                                                   il_guard_json(il__buf_str(&w->ids)) };

    il_status st = prune_laps(w, &c[INGEST_LAPS].n_removed, reterr);
    if (st == IL_OK)
        st = il__ingest_run(w->t, &results, values, ARRAY_LEN(values), NULL, NULL,
                            &c[INGEST_RACE_RESULTS].n_removed, reterr);
    if (st == IL_OK)
        st = il__ingest_run(w->t, &drivers, values, ARRAY_LEN(values), NULL, NULL,
                            &c[INGEST_RACE_DRIVERS].n_removed, reterr);
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static enum rows_next
next_race_driver(void *cookie, il_guard_value *v)
{
    struct race_write *w = cookie;

    if (w->i == w->race->n_results)
        return ROWS_END;
    const struct racer *r = &w->racers[w->i++];
    v[0]                  = il_guard_text(r->result->driver_id);
    v[1]                  = il_guard_text(r->race_driver_id);
    v[2]                  = il_guard_text(r->driver_id);
    v[3]                  = il_guard_text(r->result->name);
    v[4]                  = il_guard_text(r->match_name);
    v[5]                  = il_guard_text(r->result->car_number);
    return ROWS_MORE;
}

static void
add_extra(struct il__buf *out, const char *name, int64_t ms)
{
    if (ms != LIVERC_NONE)
        il__buf_addf(out, "%s\"%s\":%lld", out->n_bytes > 1 ? "," : "", name, (long long)ms);
}

static const char *
print_extras(struct il__buf *out, const struct liverc_result *r)
{
    il__buf_clear(out);
    il__buf_addc(out, '{');
    add_extra(out, "average_top_5_ms", r->average_top_5_ms);
    add_extra(out, "average_top_10_ms", r->average_top_10_ms);
    add_extra(out, "average_top_15_ms", r->average_top_15_ms);
    add_extra(out, "top_3_consecutive_ms", r->top_3_consecutive_ms);
    add_extra(out, "deviation_ms", r->deviation_ms);
    il__buf_addc(out, '}');
    return il__buf_str(out);
}

static enum rows_next
next_result(void *cookie, il_guard_value *v)
{
    struct race_write *w = cookie;

    if (w->i == w->race->n_results)
        return ROWS_END;
    const struct racer         *racer = &w->racers[w->i++];
    const struct liverc_result *r     = racer->result;
    v[0]                              = il_guard_text(racer->result_id);
    v[1]                              = il_guard_text(racer->race_driver_id);
    v[2]                              = il_guard_int(r->position);
    v[3]                              = il__ingest_number(r->qualified);
    v[4]                              = il_guard_int(r->n_laps_completed);
    v[5]                              = il_guard_text(r->total_raw);
    v[6]                              = il__ingest_number(r->total_ms);
    v[7]                              = il_guard_text(r->behind_raw);
    v[8]                              = il__ingest_number(r->behind_ms);
    v[9]                              = il__ingest_number(r->behind_laps);
    v[10]                             = il__ingest_number(r->fastest_ms);
    v[11]                             = il__ingest_number(r->fastest_lap);
    v[12]                             = il__ingest_number(r->average_ms);
    v[13]                             = il__ingest_number(r->consistency_milli);
    v[14]                             = il_guard_json(print_extras(&w->text, r));
    return w->text.failed ? ROWS_NO_MEMORY : ROWS_MORE;
}

static il_guard_value
segments(struct il__buf *out, const struct liverc_lap *l)
{
    if (l->n_segments == 0)
        return il_guard_null();
    il__buf_clear(out);
    for (size_t i = 0; i < l->n_segments; i++) {
        il__buf_addc(out, i == 0 ? '[' : ',');
        il__wire_print_text(out, l->segments[i]);
    }
    il__buf_addc(out, ']');
    return il_guard_json(il__buf_str(out));
}

static enum rows_next
next_lap(void *cookie, il_guard_value *v)
{
    struct race_write *w = cookie;

    while (w->i < w->race->n_results && w->i_lap == w->racers[w->i].result->n_laps) {
        w->i++;
        w->i_lap = 0;
    }
    if (w->i == w->race->n_results)
        return ROWS_END;
    const struct liverc_lap *l = &w->racers[w->i].result->laps[w->i_lap++];
    v[0]                       = il_guard_text(w->racers[w->i].result_id);
    v[1]                       = il_guard_int(l->number);
    v[2]                       = il__ingest_number(l->position);
    v[3]                       = il_guard_text(l->time_raw);
    v[4]                       = il_guard_int(l->time_ms);
    v[5]                       = il_guard_text(l->pace);
    v[6]                       = il_guard_int(l->elapsed_ms);
    v[7]                       = segments(&w->text, l);
    return w->text.failed ? ROWS_NO_MEMORY : ROWS_MORE;
}

/* What of a race is written by many rows. */
struct part {
    enum ingest_table    table;
    struct app_statement write;
    const char *const   *names;
    size_t               n_names;
    rows_next_fn        *next;
    size_t               n_shared; /* the tenant, then the race */
};

static il_status
write_part(struct race_write *w, const struct part *p, int64_t n_before, il_error *reterr)
{
    const il_guard_value  shared[] = { tenant(w), il_guard_text(w->race_id) };
    struct rows           r        = { .statement = &p->write,
                                       .shared    = shared,
                                       .n_shared  = p->n_shared,
                                       .columns   = p->names,
                                       .n_columns = p->n_names,
                                       .next      = p->next,
                                       .cookie    = w };
    struct ingest_counts *c        = &w->t->totals.of[p->table];
    struct rows_written   done     = { 0 };

    w->i = w->i_lap = 0;
    r.go_on         = w->t->w->go_on;
    r.go_on_cookie  = w->t->w->cookie;
    il_status st    = il__rows_write(w->t->tx, &r, &done, reterr);
    /* Of the rows before, those that were not removed are still on the page. */
    c->n_inserted  = done.n - (n_before - c->n_removed);
    c->n_updated   = done.n_changed - c->n_inserted;
    c->n_unchanged = done.n - done.n_changed;
    return st;
}

static int64_t
count_laps(const struct liverc_race *race)
{
    int64_t n = 0;

    for (size_t i = 0; i < race->n_results; i++)
        n += (int64_t)race->results[i].n_laps;
    return n;
}

static il_status
write_rows(struct race_write *w, il_error *reterr)
{
    static const char *const driver_names[] = { "source_driver_id", "id",
                                                "driver_id",        "name",
                                                "match_name",       "car_number" };
    static const char *const result_names[] = { "id",          "race_driver_id",    "position",
                                                "qualified",   "laps_completed",    "total_raw",
                                                "total_ms",    "behind_raw",        "behind_ms",
                                                "behind_laps", "fastest_ms",        "fastest_lap",
                                                "average_ms",  "consistency_milli", "extras" };
    static const char *const lap_names[]    = { "race_result_id", "lap_number", "position",
                                                "time_raw",       "time_ms",    "pace",
                                                "elapsed_ms",     "segments" };
    static const struct part drivers = { INGEST_RACE_DRIVERS, APP_STATEMENT_EACH(race_driver_write),
                                         driver_names,        ARRAY_LEN(driver_names),
                                         next_race_driver,    2 };
    static const struct part results = { INGEST_RACE_RESULTS, APP_STATEMENT_EACH(result_write),
                                         result_names,        ARRAY_LEN(result_names),
                                         next_result,         2 };
    static const struct part laps    = { INGEST_LAPS, APP_STATEMENT_EACH(lap_write),
                                         lap_names,   ARRAY_LEN(lap_names),
                                         next_lap,    1 };

    il_status st = write_part(w, &drivers, w->n_before, reterr);
    if (st == IL_OK)
        st = write_part(w, &results, w->n_before, reterr);
    if (st == IL_OK)
        st = write_part(w, &laps, w->n_laps_before, reterr);
    return st;
}

/* ---- the race -------------------------------------------------------------------------------- */

static il_status
write_content(struct race_write *w, il_error *reterr)
{
    static const struct app_statement link = APP_STATEMENT(entry_drivers_of_race);

    il_status st = begin_racers(w, reterr);
    if (st == IL_OK)
        st = write_drivers(w, reterr);
    if (st == IL_OK)
        st = assign_ids(w, reterr);
    if (st == IL_OK && w->n_before > 0)
        st = prune(w, reterr);
    if (st == IL_OK)
        st = write_rows(w, reterr);
    if (st == IL_OK)
        st = il__ingest_run(
            w->t, &link,
            APP_VALUES(tenant(w), il_guard_text(w->event_id), il_guard_int(w->t->now_ms),
                       il_guard_text(w->link->class_name), il_guard_text(w->race_id)),
            NULL, NULL, NULL, reterr);
    return st;
}

static void
count_unchanged(struct ingest_totals *to, const struct liverc_race *race)
{
    to->of[INGEST_RACE_DRIVERS].n_unchanged = (int64_t)race->n_results;
    to->of[INGEST_RACE_RESULTS].n_unchanged = (int64_t)race->n_results;
    to->of[INGEST_LAPS].n_unchanged         = count_laps(race);
}

static il_status
write_race(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    struct race_write        *w = cookie;
    const struct liverc_race *r = w->race;
    struct ingest_head        head;

    /* An attempt before this one may have left something. */
    w->t       = t;
    w->race_id = w->digest = NULL;
    w->n_before = w->n_laps_before = 0;
    w->no_memory                   = false;
    il_status st                   = il__ingest_lock_event(t, w->event_id, &head, reterr);
    if (st == IL_OK)
        st = get_race(w, reterr);
    if (st == IL_OK && w->digest == NULL && r == NULL)
        st = il__error_set(reterr, IL_NOT_FOUND, "race %.20s of event %.64s not found", w->link->id,
                           w->event_id);
    bool same = st == IL_OK && r != NULL && w->digest != NULL && strcmp(w->digest, r->digest) == 0;
#ifdef IL_MUTANT_race_in_two_commits
    same = false; /* its row exists already */
#endif
    if (st == IL_OK)
        st = write_race_row(w, reterr);
    if (st == IL_OK && same)
        count_unchanged(&t->totals, r);
    else if (st == IL_OK && r != NULL)
        st = write_content(w, reterr);
    return st;
}

#ifdef IL_MUTANT_race_in_two_commits
static il_status
write_row_alone(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    struct race_write *w = cookie;
    struct ingest_head head;

    w->t         = t;
    il_status st = il__ingest_lock_event(t, w->event_id, &head, reterr);
    if (st == IL_OK)
        st = get_race(w, reterr);
    return st == IL_OK && w->race != NULL ? write_race_row(w, reterr) : st;
}
#endif

il_status
il__ingest_race_write(il_guard *g, const struct ingest_write *w, const char *event_id,
                      const struct liverc_race_link *link, const struct liverc_race *race,
                      il_error *reterr)
{
    struct race_write r = { .event_id = event_id, .link = link, .race = race };

    if (race != NULL && race->id != NULL && strcmp(race->id, link->id) != 0)
        return il__error_set(reterr, IL_INVAL, "race %.20s: the page is that of race %.20s",
                             link->id, race->id);
    il__buf_init(&r.ids, JSON_BYTES_MAX);
    il__buf_init(&r.text, SEGMENTS_BYTES_MAX);
    il_status st = IL_OK;
#ifdef IL_MUTANT_race_in_two_commits
    st = il__ingest_transact(g, w, "race_write", write_row_alone, &r, reterr);
    if (st == IL_OK)
#endif
        st = il__ingest_transact(g, w, "race_write", write_race, &r, reterr);
    il__buf_release(&r.ids);
    il__buf_release(&r.text);
    return st;
}
