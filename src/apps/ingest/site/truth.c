/*
 * truth.c: what the pages of the site say, as JSON with whole numbers, for tests that compare it
 * with what they have read from the pages. See model.h.
 */
#include <stdio.h>

#include "apps/ingest/site/model.h"
#include "wire/wire.h"

/* A list ends with a comma less than il__wire_put_*() has left. */
static void
close_list(struct il__buf *b)
{
    if (!b->failed && b->n_bytes > 0 && b->data[b->n_bytes - 1] == ',')
        b->n_bytes--;
    il__buf_adds(b, "],");
}

static void
open_list(struct il__buf *b, const char *name)
{
    il__wire_name(b, name);
    il__buf_addc(b, '[');
}

static void
close_object(struct il__buf *b)
{
    il__wire_close(b);
    il__buf_addc(b, ',');
}

static void
put_day(struct il__buf *b, const char *name, unsigned day)
{
    il__wire_name(b, name);
    il__buf_addc(b, '"');
    il__site_add_iso_day(b, day);
    il__buf_adds(b, "\",");
}

/* A number that is on the page only if `any`. */
static void
put_if(struct il__buf *b, bool any, const char *name, int64_t number)
{
    if (any)
        il__wire_put_int(b, name, number);
    else
        il__wire_put_null(b, name);
}

/* ---- an event -------------------------------------------------------------------------------- */

static void
put_entries(struct il__buf *b, const struct site_options *o, const struct site_event *e)
{
    struct site_entry entry;
    char              name[SITE_TEXT_BYTES];
    bool              lines = site_has(e->styles, SITE_STYLE_NAME_LINES);

    open_list(b, "entries");
    for (unsigned i = 0; i < e->n_entries; i++) {
        il__site_entry(o, e, i, &entry);
        (void)snprintf(name, sizeof name, "%s%s%s", lines ? entry.last : entry.first,
                       lines ? ", " : " ", lines ? entry.first : entry.last);
        il__wire_open(b, NULL);
        il__wire_put_text(b, "class", il__site_class_name(entry.i_class));
        il__wire_put_int(b, "car", entry.car);
        il__wire_put_text(b, "name", name);
        put_if(b, entry.transponder != 0, "transponder", entry.transponder);
        close_object(b);
    }
    close_list(b);
}

static void
put_laps(struct il__buf *b, const struct site_result *result)
{
    open_list(b, "lap_ms");
    for (unsigned i = 0; result->listed && i < result->n_laps; i++)
        il__buf_addf(b, "%u,", result->lap_ms[i]);
    close_list(b);
    open_list(b, "lap_positions");
    for (unsigned i = 0; result->listed && i < result->n_laps; i++)
        il__buf_addf(b, "%u,", result->lap_position[i]);
    close_list(b);
}

static void
put_statistics(struct il__buf *b, const struct site_race *r, const struct site_result *result)
{
    const struct {
        const char      *name;
        enum site_column column;
        bool             any;
        int64_t          number;
    } rows[] = {
        { "qual", SITE_QUAL, true, result->grid + 1 },
        { "fast_ms", SITE_FASTEST, result->n_laps > 0, result->fast_ms },
        { "fast_lap", SITE_FASTEST, result->n_laps > 0, result->fast_lap },
        { "average_ms", SITE_AVERAGE, result->n_laps > 0, result->average_ms },
        { "top5_ms", SITE_TOP5, result->top5_ms != 0, result->top5_ms },
        { "top10_ms", SITE_TOP10, result->top10_ms != 0, result->top10_ms },
        { "top15_ms", SITE_TOP15, result->top15_ms != 0, result->top15_ms },
        { "top3_ms", SITE_TOP3, result->top3_ms != 0, result->top3_ms },
        { "deviation_hundredths", SITE_DEVIATION, result->n_laps > 0, result->deviation_cs },
        { "consistency_hundredths", SITE_CONSISTENCY, result->n_laps > 0, result->consistency },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        put_if(b, rows[i].any && il__site_has_column(r, rows[i].column), rows[i].name,
               rows[i].number);
}

static void
put_result(struct il__buf *b, const struct site_options *o, const struct site_event *e,
           const struct site_race *r, const struct site_results *results, unsigned row)
{
    const struct site_result *result = &results->rows[row];
    struct site_entry         entry;
    char                      name[SITE_TEXT_BYTES];

    il__site_entry(o, e, result->entry, &entry);
    (void)snprintf(name, sizeof name, "%s %s", entry.first, entry.last);
    il__wire_open(b, NULL);
    il__wire_put_int(b, "position", row + 1);
    il__wire_put_int(b, "car", entry.car);
    il__wire_put_text(b, "name", name);
    put_if(b, site_linked(result) || result->listed, "driver_id", il__site_driver_id(entry.driver));
    il__wire_put_int(b, "laps", result->n_laps);
    put_if(b, result->n_laps > 0, "total_ms", result->total_ms);
    il__wire_name(b, "behind");
    il__buf_addc(b, '"');
    il__site_add_behind(b, results, row);
    il__buf_adds(b, "\",");
    put_statistics(b, r, result);
    put_laps(b, result);
    close_object(b);
}

static void
put_completed(struct il__buf *b, const struct site_event *e, const struct site_race *r)
{
    unsigned            minute    = r->completed_minute % (24 * 60);
    enum site_precision precision = il__site_precision(e, r);

    il__wire_name(b, "completed");
    il__buf_addc(b, '"');
    il__site_add_iso_day(b, e->first_day + r->completed_minute / (24 * 60));
    if (precision != SITE_TO_DAY)
        il__buf_addf(b, " %02u:%02u", minute / 60, precision == SITE_TO_MINUTE ? minute % 60 : 0);
    il__buf_adds(b, "\",");
}

static void
put_race(struct il__buf *b, const struct site_options *o, const struct site_event *e,
         const struct site_race *r, const struct site_results *results)
{
    il__wire_open(b, NULL);
    il__wire_put_int(b, "id", (int64_t)r->id);
    il__wire_put_int(b, "order", r->order);
    il__wire_put_text(b, "section", r->section);
    il__wire_put_text(b, "class", r->bare ? r->label : il__site_class_name(r->i_class));
    il__wire_put_text(b, "label", r->label);
    put_completed(b, e, r);
    il__wire_put_int(b, "length_s", results->length_s);
    open_list(b, "results");
    for (unsigned i = 0; i < results->n; i++)
        put_result(b, o, e, r, results, i);
    close_list(b);
    close_object(b);
}

void
il__site_add_event_truth(struct il__buf *b, const struct site_options *o,
                         const struct site_event *e, struct site_results *room)
{
    struct site_race r;

    il__wire_open(b, NULL);
    il__wire_put_int(b, "id", (int64_t)e->id);
    il__wire_put_text(b, "slug", il__site_tracks[e->track].slug);
    il__wire_put_int(b, "revision", (int64_t)o->revision);
    il__wire_put_text(b, "name", e->name);
    put_day(b, "first_day", e->first_day);
    put_day(b, "last_day", e->first_day + e->n_days - 1);
    il__wire_put_int(b, "n_entries", e->n_entries);
    il__wire_put_int(b, "n_drivers", e->n_drivers);
    put_entries(b, o, e);
    open_list(b, "races");
    for (unsigned i = 0; i < e->n_races; i++) {
        il__site_race(o, e, i, &r);
        il__site_results(o, e, &r, room);
        put_race(b, o, e, &r, room);
    }
    close_list(b);
    il__wire_close(b);
    il__buf_addc(b, '\n');
}

/* ---- the site -------------------------------------------------------------------------------- */

void
il__site_add_truth(struct il__buf *b, const struct site_options *o)
{
    struct site_event e;

    il__wire_open(b, NULL);
    il__wire_put_int(b, "revision", (int64_t)o->revision);
    open_list(b, "tracks");
    for (unsigned t = 0; t < SITE_TRACKS; t++) {
        il__wire_open(b, NULL);
        il__wire_put_text(b, "slug", il__site_tracks[t].slug);
        il__wire_put_text(b, "name", il__site_tracks[t].name);
        open_list(b, "events");
        for (unsigned i = 0; i < o->n_events; i++) {
            CHECK(il__site_event(o, il__site_event_id(t, i), &e));
            il__wire_open(b, NULL);
            il__wire_put_int(b, "id", (int64_t)e.id);
            il__wire_put_text(b, "name", e.name);
            put_day(b, "date", e.first_day);
            il__wire_put_int(b, "n_entries", e.n_entries);
            il__wire_put_int(b, "n_drivers", e.n_drivers);
            close_object(b);
        }
        close_list(b);
        close_object(b);
    }
    close_list(b);
    il__wire_close(b);
    il__buf_addc(b, '\n');
}
