/*
 * cmd_ingest.c: `interlock ingest parse`: what a saved page of LiveRC says. It reads a file and
 * uses neither a store nor the network.
 */
#include <inttypes.h>

#include "apps/ingest/liverc.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/input.h"

/* A parsed page, of one of the kinds. */
struct parsed {
    enum liverc_kind                 kind;
    struct liverc_page               page;
    const struct liverc_event       *event;
    const struct liverc_entry_list  *entries;
    const struct liverc_race        *race;
    const struct liverc_event_links *events;
    const struct liverc_tracks      *tracks;
};

static void
parsed_release(struct parsed *p)
{
    il__liverc_page_release(&p->page);
}

static il_status
parse(struct parsed *p, const struct liverc_source *s, il_error *reterr)
{
    switch (p->kind) {
    case LIVERC_EVENT:
        return il__liverc_event(&p->page, s, &p->event, reterr);
    case LIVERC_ENTRIES:
        return il__liverc_entries(&p->page, s, &p->entries, reterr);
    case LIVERC_RACE:
        return il__liverc_race(&p->page, s, &p->race, reterr);
    case LIVERC_EVENTS:
        return il__liverc_events(&p->page, s, &p->events, reterr);
    default:
        return il__liverc_tracks(&p->page, s, &p->tracks, reterr);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* null for LIVERC_NONE */
static json_t *
number(int64_t value)
{
    return value != LIVERC_NONE ? json_integer(value) : json_null();
}

/* null for "" */
static const char *
text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* An array with an object for each of n items; NULL: out of memory. */
static json_t *
array_of(size_t n, json_t *(*item)(const void *items, size_t i), const void *items)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n && array != NULL; i++) {
        if (json_array_append_new(array, item(items, i)) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static json_t *
race_link_json(const void *items, size_t i)
{
    const struct liverc_race_link *r = (const struct liverc_race_link *)items + i;

    return json_pack("{s:s, s:o, s:s, s:s, s:s?, s:s?, s:s, s:s}", "source_race_id", r->id, "order",
                     number(r->order), "class_name", r->class_name, "label", r->label, "section",
                     text_or_null(r->section), "completed_at", text_or_null(r->completed_at),
                     "session_type", il__liverc_sessions[r->session], "url", r->url);
}

static json_t *
event_json(const struct liverc_event *e)
{
    return json_pack("{s:s, s:s, s:s?, s:s?, s:s, s:s, s:o, s:o, s:o, s:s, s:o}", "source_event_id",
                     e->id, "name", e->name, "club", text_or_null(e->club), "meet",
                     text_or_null(e->meet), "first_day", e->first_day, "last_day", e->last_day,
                     "entries", number(e->n_entries), "drivers", number(e->n_drivers),
                     "total_race_laps", number(e->n_laps), "digest", e->digest, "races",
                     array_of(e->n_races, race_link_json, e->races));
}

static json_t *
entry_json(const void *items, size_t i)
{
    const struct liverc_entry *e = (const struct liverc_entry *)items + i;

    return json_pack("{s:s, s:s?, s:s, s:s?}", "class_name", e->class_name, "car_number",
                     text_or_null(e->car_number), "name", e->name, "transponder", e->transponder);
}

static json_t *
segment_json(const void *items, size_t i)
{
    const char *const *segments = items;

    return json_string(segments[i]);
}

static json_t *
lap_json(const void *items, size_t i)
{
    const struct liverc_lap *l = (const struct liverc_lap *)items + i;

    return json_pack("{s:i, s:o, s:I, s:I, s:s?, s:o}", "lap_number", l->number, "position",
                     number(l->position), "time_ms", (json_int_t)l->time_ms, "elapsed_ms",
                     (json_int_t)l->elapsed_ms, "pace", text_or_null(l->pace), "segments",
                     array_of(l->n_segments, segment_json, l->segments));
}

static json_t *
result_json(const void *items, size_t i)
{
    const struct liverc_result *r = (const struct liverc_result *)items + i;

    json_t *o =
        json_pack("{s:i, s:s?, s:s, s:s?, s:o, s:i, s:s?, s:o, s:s?, s:o, s:o}", "position",
                  r->position, "car_number", text_or_null(r->car_number), "name", r->name,
                  "source_driver_id", text_or_null(r->driver_id), "qualified", number(r->qualified),
                  "laps_completed", r->n_laps_completed, "total_time", text_or_null(r->total_raw),
                  "total_ms", number(r->total_ms), "behind", text_or_null(r->behind_raw),
                  "behind_ms", number(r->behind_ms), "behind_laps", number(r->behind_laps));
    json_t *more = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "fastest_ms", number(r->fastest_ms),
        "fastest_lap", number(r->fastest_lap), "average_ms", number(r->average_ms),
        "average_top_5_ms", number(r->average_top_5_ms), "average_top_10_ms",
        number(r->average_top_10_ms), "average_top_15_ms", number(r->average_top_15_ms),
        "top_3_consecutive_ms", number(r->top_3_consecutive_ms), "deviation_ms",
        number(r->deviation_ms), "consistency_milli", number(r->consistency_milli), "laps",
        array_of(r->n_laps, lap_json, r->laps));
    if (o == NULL || more == NULL || json_object_update(o, more) != 0) {
        json_decref(o);
        o = NULL;
    }
    json_decref(more);
    return o;
}

static json_t *
race_json(const struct liverc_race *r)
{
    return json_pack("{s:s?, s:o, s:s?, s:s?, s:s?, s:o, s:b, s:s, s:o}", "source_race_id", r->id,
                     "number", number(r->number), "label", text_or_null(r->label), "round",
                     text_or_null(r->round), "length", text_or_null(r->length), "length_ms",
                     number(r->length_ms), "has_laps", r->has_laps ? 1 : 0, "digest", r->digest,
                     "results", array_of(r->n_results, result_json, r->results));
}

static json_t *
event_link_json(const void *items, size_t i)
{
    const struct liverc_event_link *e = (const struct liverc_event_link *)items + i;

    return json_pack("{s:s, s:s, s:s?, s:o, s:o}", "source_event_id", e->id, "name", e->name,
                     "first_day", text_or_null(e->first_day), "entries", number(e->n_entries),
                     "drivers", number(e->n_drivers));
}

static json_t *
track_json(const void *items, size_t i)
{
    const struct liverc_track *t = (const struct liverc_track *)items + i;

    return json_pack("{s:s, s:s}", "slug", t->slug, "name", t->name);
}

static json_t *
warning_json(const void *items, size_t i)
{
    const char *const *warnings = items;

    return json_string(warnings[i]);
}

static json_t *
content_json(const struct parsed *p)
{
    switch (p->kind) {
    case LIVERC_EVENT:
        return event_json(p->event);
    case LIVERC_ENTRIES:
        return array_of(p->entries->n_entries, entry_json, p->entries->entries);
    case LIVERC_RACE:
        return race_json(p->race);
    case LIVERC_EVENTS:
        return array_of(p->events->n, event_link_json, p->events->items);
    default:
        return array_of(p->tracks->n, track_json, p->tracks->items);
    }
}

static int
print_json(const struct parsed *p)
{
    const char *kind = il__liverc_kinds[p->kind];

    return il__cli_json_print(json_pack(
        "{s:s, s:o, s:o}", "page", kind, kind, content_json(p), "warnings",
        array_of(MIN(p->page.n_warnings, LIVERC_WARNINGS_MAX), warning_json, p->page.warnings)));
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* A title line; its texts come from the page, so they are escaped. */
static void
print_title(const char *a, const char *b, const char *c)
{
    il__cli_puts(a);
    (void)fputs(b[0] != '\0' ? ", " : "", stdout); /* errors are checked at the flush */
    il__cli_puts(b);
    (void)fputs(c[0] != '\0' ? ", " : "", stdout);
    il__cli_puts(c);
    (void)fputs("\n", stdout);
}

static void
print_event(const struct liverc_event *e, struct cli_grid *g)
{
    static const char *const headers[] = { "RACE", "COMPLETED", "SESSION", "SECTION", "LABEL" };

    print_title(e->name, e->first_day, strcmp(e->first_day, e->last_day) != 0 ? e->last_day : "");
    il__cli_grid_init(g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < e->n_races; i++) {
        il__cli_grid_add(g, "%s", e->races[i].id);
        il__cli_grid_add(g, "%s", e->races[i].completed_at);
        il__cli_grid_add(g, "%s", il__liverc_sessions[e->races[i].session]);
        il__cli_grid_add(g, "%s", e->races[i].section);
        il__cli_grid_add(g, "%s", e->races[i].label);
    }
}

static void
print_entries(const struct liverc_entry_list *l, struct cli_grid *g)
{
    static const char *const headers[] = { "CLASS", "CAR", "NAME", "TRANSPONDER" };

    il__cli_grid_init(g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < l->n_entries; i++) {
        const struct liverc_entry *e = &l->entries[i];
        il__cli_grid_add(g, "%s", e->class_name);
        il__cli_grid_add(g, "%s", e->car_number);
        il__cli_grid_add(g, "%s", e->name);
        il__cli_grid_add(g, "%s", e->transponder != NULL ? e->transponder : "");
    }
}

static void
print_race(const struct liverc_race *r, struct cli_grid *g)
{
    static const char *const headers[] = { ">POS",  "CAR",     "NAME", "DRIVER",
                                           ">TIME", ">BEHIND", ">LAPS" };

    print_title(r->label, r->round, r->length);
    il__cli_grid_init(g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < r->n_results; i++) {
        const struct liverc_result *s = &r->results[i];
        il__cli_grid_add(g, "%d", s->position);
        il__cli_grid_add(g, "%s", s->car_number);
        il__cli_grid_add(g, "%s", s->name);
        il__cli_grid_add(g, "%s", s->driver_id);
        il__cli_grid_add(g, "%s", s->total_raw);
        il__cli_grid_add(g, "%s", s->behind_raw);
        il__cli_grid_add(g, "%zu", s->n_laps);
    }
}

static void
print_events(const struct liverc_event_links *l, struct cli_grid *g)
{
    static const char *const headers[] = { "EVENT", "DAY", "NAME" };

    il__cli_grid_init(g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < l->n; i++) {
        il__cli_grid_add(g, "%s", l->items[i].id);
        il__cli_grid_add(g, "%s", l->items[i].first_day);
        il__cli_grid_add(g, "%s", l->items[i].name);
    }
}

static void
print_tracks(const struct liverc_tracks *t, struct cli_grid *g)
{
    static const char *const headers[] = { "TRACK", "NAME" };

    il__cli_grid_init(g, headers, ARRAY_LEN(headers));
    for (size_t i = 0; i < t->n; i++) {
        il__cli_grid_add(g, "%s", t->items[i].slug);
        il__cli_grid_add(g, "%s", t->items[i].name);
    }
}

static int
print(const struct cli *cli, const struct parsed *p)
{
    AUTO_GRID struct cli_grid g = { 0 };

    for (size_t i = 0; i < MIN(p->page.n_warnings, LIVERC_WARNINGS_MAX); i++)
        il__cli_note(cli, "warning: %s", p->page.warnings[i]);
    switch (p->kind) {
    case LIVERC_EVENT:
        print_event(p->event, &g);
        break;
    case LIVERC_ENTRIES:
        print_entries(p->entries, &g);
        break;
    case LIVERC_RACE:
        print_race(p->race, &g);
        break;
    case LIVERC_EVENTS:
        print_events(p->events, &g);
        break;
    default:
        print_tracks(p->tracks, &g);
    }
    return il__cli_grid_print(&g);
}

/* ---- the command ----------------------------------------------------------------------------- */

int
il__cli_cmd_ingest_parse(struct cli *cli)
{
    AUTO(parsed_release) struct parsed p    = { 0 };
    AUTO_BUF struct il__buf            body = { 0 };
    const char                        *path = cli->args.operands[0];
    const struct cli_value            *page = CLI_OPTION(cli, ingest_parse, page);
    struct liverc_source               s    = { 0 };
    il_error                           err;

    il_status st = il__liverc_load(&err);
    if (st == IL_OK)
        st = il__cli_read(cli, path, "page", LIVERC_BODY_BYTES_MAX, &body, &err);
    s.id      = CLI_OPTION(cli, ingest_parse, id)->text;
    s.slug    = CLI_OPTION(cli, ingest_parse, track)->text;
    s.body    = il__buf_str(&body);
    s.n_bytes = body.n_bytes;
    p.kind    = (enum liverc_kind)page->number;
    if (st == IL_OK && !page->given)
        st = il__liverc_detect(&s, &p.kind, &err);
    if (st == IL_OK)
        st = parse(&p, &s, &err);
    if (st == IL_INVAL && p.page.code != LIVERC_OK) {
        il__cli_error("%s: %s: %s", path, il__liverc_codes[p.page.code], err.message);
        return CLI_EXIT_PAGE;
    }
    if (st != IL_OK)
        return il__cli_fail(&err);
    return cli->json ? print_json(&p) : print(cli, &p);
}
