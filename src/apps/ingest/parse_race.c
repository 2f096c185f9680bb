/*
 * parse_race.c: the page of a race: its head and its result table. What the cells of the table look
 * like is described in docs/contributing/LIVERC.md.
 */
#include <stdio.h>
#include <strings.h>

#include "apps/ingest/parse_race_laps.h"

enum column {
#define X(id, head) COLUMN_##id,
#include "apps/ingest/columns.def"
#undef X
    COLUMN_COUNT
};

static const char *const column_heads[COLUMN_COUNT] = {
#define X(id, head) [COLUMN_##id] = head,
#include "apps/ingest/columns.def"
#undef X
};

struct table {
    struct reader      *r;
    struct liverc_race *race;
    const xmlNode      *node;
    size_t at[COLUMN_COUNT]; /* the index of each column's cell; HTML_CELLS_MAX = none */
};

/* ---- the head -------------------------------------------------------------------------------- */

/* The columns of a head row. False: this is no head of a result table. */
static bool
read_columns(struct table *t, const xmlNode *tr)
{
    struct html_row row;

    il__html_row(tr, &row);
    if (row.n < 2 || strncasecmp(il__reader_peek(t->r, row.cells[0], "sup"), "Pos", 3) != 0)
        return false;
    for (size_t c = 0; c < COLUMN_COUNT; c++)
        t->at[c] = HTML_CELLS_MAX;
    t->at[COLUMN_POSITION] = 0;
    for (size_t i = 1; i < row.n; i++) {
        const char *text = il__reader_peek(t->r, row.cells[i], "sup");
        for (size_t c = 1; c < COLUMN_COUNT; c++) {
            if (strcasecmp(text, column_heads[c]) == 0 && t->at[c] == HTML_CELLS_MAX)
                t->at[c] = i;
        }
    }
    return t->at[COLUMN_BEHIND] != HTML_CELLS_MAX;
}

static il_status
find_table(struct table *t)
{
    struct reader *r   = t->r;
    const xmlNode *top = il__html_top(&r->html);
    const xmlNode *n   = il__html_next(top, top);

    while (n != NULL && !(il__html_is(n, "tr") && read_columns(t, n)))
        n = il__html_next(top, n);
    while (n != NULL && n->type == XML_ELEMENT_NODE && !il__html_is(n, "table"))
        n = n->parent;
    if (n == NULL || n->type != XML_ELEMENT_NODE)
        return il__reader_fail(
            r, r->format, "no result table on the race page (expected columns Pos and Behind)");
    t->node = n;
    if (t->at[COLUMN_DRIVER] == HTML_CELLS_MAX || t->at[COLUMN_LAPS_TIME] == HTML_CELLS_MAX)
        return il__reader_fail(
            r, r->format, "the result table has no column '%s'",
            column_heads[t->at[COLUMN_DRIVER] == HTML_CELLS_MAX ? COLUMN_DRIVER
                                                                : COLUMN_LAPS_TIME]);
    return IL_OK;
}

/* An element of the table, or of the page if the table has none. */
static const xmlNode *
find_in(const struct table *t, const char *class_name)
{
    const xmlNode *n = il__html_find(t->node, NULL, class_name);

    return n != NULL ? n : il__html_find(il__html_top(&t->r->html), NULL, class_name);
}

/* "Round: Main Events", "Length: 30:00 Timed". */
static void
read_sub_header(struct table *t, const xmlNode *n)
{
    struct reader      *r    = t->r;
    struct liverc_race *race = t->race;
    const char         *text = il__reader_text(r, n, NULL);
    char                time[32];

    if (strncasecmp(text, "Round:", 6) == 0) {
        race->round = il__reader_clean(r, text + 6);
    } else if (strncasecmp(text, "Length:", 7) == 0) {
        race->length  = il__reader_clean(r, text + 7);
        size_t n_time = strcspn(race->length, " ");
        if (n_time < sizeof time && memchr(race->length, ':', n_time) != NULL) {
            memcpy(time, race->length, n_time);
            time[n_time] = '\0';
            if (!il__liverc_time_ms(time, &race->length_ms))
                race->length_ms = LIVERC_NONE;
        }
    }
}

static void
read_head(struct table *t)
{
    const xmlNode *top  = il__html_top(&t->r->html);
    const char    *text = il__reader_peek(t->r, find_in(t, "race_num"), NULL);

    t->race->length_ms = LIVERC_NONE;
    if (!il__liverc_count(text, &t->race->number))
        t->race->number = LIVERC_NONE;
    t->race->label = il__reader_text(t->r, find_in(t, "class_header"), NULL);
    t->race->round = t->race->length = "";
    for (const xmlNode *n = il__html_next(top, top); n != NULL; n = il__html_next(top, n)) {
        if (il__html_has_class(n, "class_sub_header"))
            read_sub_header(t, n);
    }
}

/* ---- cells ----------------------------------------------------------------------------------- */

static const xmlNode *
cell_of(const struct table *t, const struct html_row *row, enum column c)
{
    return t->at[c] < row->n ? row->cells[t->at[c]] : NULL;
}

/* What a cell means: the hidden text if it has one, which is the number that the site sorts by;
 * else the visible text, without a lap number above it. In scratch memory. */
static const char *
value_of(const struct table *t, const struct html_row *row, enum column c)
{
    const xmlNode *cell   = cell_of(t, row, c);
    const xmlNode *hidden = cell != NULL ? il__html_find(cell, NULL, "hidden") : NULL;

    return il__reader_peek(t->r, hidden != NULL ? hidden : cell, "sup");
}

static bool
is_blank(const char *text)
{
    return text[0] == '\0' || strcmp(text, "-") == 0;
}

static il_status
refuse_cell(const struct table *t, enum column c, const char *text)
{
    return il__reader_fail(t->r, LIVERC_NORMALISATION_ERROR,
                           "row %zu of the results: cannot read %s: '%.80s'", t->race->n_results,
                           column_heads[c], text);
}

/* A time that may be missing; 0 is what the site prints for one that does not exist. */
static il_status
read_time(const struct table *t, const struct html_row *row, enum column c, int64_t *ret)
{
    const char *text = value_of(t, row, c);

    *ret = LIVERC_NONE;
    if (is_blank(text))
        return IL_OK;
    if (!il__liverc_time_ms(text, ret))
        return refuse_cell(t, c, text);
    if (*ret == 0)
        *ret = LIVERC_NONE;
    return IL_OK;
}

static il_status
read_times(const struct table *t, const struct html_row *row, struct liverc_result *out)
{
    const struct {
        enum column column;
        int64_t    *ret;
    } times[] = {
        { COLUMN_FASTEST, &out->fastest_ms },       { COLUMN_AVERAGE, &out->average_ms },
        { COLUMN_TOP_5, &out->average_top_5_ms },   { COLUMN_TOP_10, &out->average_top_10_ms },
        { COLUMN_TOP_15, &out->average_top_15_ms }, { COLUMN_TOP_3, &out->top_3_consecutive_ms },
    };

    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        il_status st = read_time(t, row, times[i].column, times[i].ret);
        if (st != IL_OK)
            return st;
    }
    const char *text = value_of(t, row, COLUMN_DEVIATION);
    if (is_blank(text))
        out->deviation_ms = LIVERC_NONE;
    else if (!il__liverc_time_ms(text, &out->deviation_ms)) /* 0 is possible: all laps are equal */
        return refuse_cell(t, COLUMN_DEVIATION, text);
    return IL_OK;
}

/* The lap of the fastest time: 37.234<sup>10</sup>. */
static int32_t
read_fastest_lap(const struct table *t, const struct html_row *row)
{
    const xmlNode *cell = cell_of(t, row, COLUMN_FASTEST);
    int32_t        lap;

    for (const xmlNode *n = cell; n != NULL; n = il__html_next(cell, n)) {
        if (il__html_is(n, "sup") && il__liverc_count(il__reader_peek(t->r, n, NULL), &lap))
            return lap;
    }
    return LIVERC_NONE;
}

static void
read_consistency(const struct table *t, const struct html_row *row, struct liverc_result *out)
{
    const char *text = value_of(t, row, COLUMN_CONSISTENCY);
    int64_t     milli;

    out->consistency_milli = LIVERC_NONE;
    if (is_blank(text))
        return;
    if (il__liverc_milli(text, &milli) && milli <= 100 * 1000)
        out->consistency_milli = (int32_t)milli;
    else
        il__reader_warn(t->r, "row %zu of the results: consistency '%.20s' is ignored",
                        t->race->n_results, text);
}

/* Blank, 12.052, 1 Lap, or 2 Laps. */
static il_status
read_behind(const struct table *t, const struct html_row *row, struct liverc_result *out)
{
    const char *text = out->behind_raw = il__reader_keep(t->r, value_of(t, row, COLUMN_BEHIND));
    char        digits[12];
    size_t      n = strspn(text, "0123456789");

    out->behind_ms   = LIVERC_NONE;
    out->behind_laps = LIVERC_NONE;
    if (is_blank(text) || il__liverc_time_ms(text, &out->behind_ms))
        return IL_OK;
    if (n > 0 && n < sizeof digits && strncasecmp(text + n, " Lap", 4) == 0) {
        memcpy(digits, text, n);
        digits[n] = '\0';
        if (il__liverc_count(digits, &out->behind_laps))
            return IL_OK;
    }
    return refuse_cell(t, COLUMN_BEHIND, text);
}

/* ---- drivers --------------------------------------------------------------------------------- */

/* 23 JOHN DOE: the number, and the name without it. */
static void
split_number(struct reader *r, struct liverc_result *out)
{
    size_t n = strspn(out->name, "0123456789");
    char   number[12];

    if (n == 0 || out->name[n] != ' ')
        return;
    if (out->car_number[0] == '\0' && n < sizeof number) {
        memcpy(number, out->name, n);
        number[n]       = '\0';
        out->car_number = il__reader_keep(r, number);
    }
    out->name += n + 1;
}

static il_status
read_driver(const struct table *t, const struct html_row *row, struct liverc_result *out)
{
    struct reader *r    = t->r;
    const xmlNode *cell = cell_of(t, row, COLUMN_DRIVER);

    out->name = out->car_number = "";
    if (cell != NULL) {
        const xmlNode *name = il__html_find(cell, NULL, "driver_name");
        out->car_number     = il__reader_text(r, il__html_find(cell, NULL, "car_num"), NULL);
        out->name           = name != NULL ? il__reader_text(r, name, NULL)
                                           : il__reader_text(r, cell, "a .car_num .hidden");
    }
    split_number(r, out);
    if (out->name[0] == '\0')
        return il__reader_fail(r, LIVERC_VALIDATION_ERROR,
                               "row %zu of the results: missing driver name", t->race->n_results);
    out->upper_name = il__reader_upper(r, out->name);
    for (const xmlNode *n = cell; n != NULL; n = il__html_next(cell, n)) {
        const char *id = il__html_attribute(n, "data-driver-id");
        if (id == NULL || id[0] == '\0')
            continue;
        if (strspn(id, "0123456789") != strlen(id) || strlen(id) > LIVERC_ID_BYTES_MAX)
            return il__reader_fail(r, LIVERC_NORMALISATION_ERROR,
                                   "row %zu of the results: '%.40s' is not the id of a driver",
                                   t->race->n_results, id);
        (void)snprintf(out->driver_id, sizeof out->driver_id, "%s", id);
        break;
    }
    return IL_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static il_status
read_counts(const struct table *t, const struct html_row *row, struct liverc_result *out)
{
    const char *text = value_of(t, row, COLUMN_POSITION);

    if (!il__liverc_count(text, &out->position))
        return refuse_cell(t, COLUMN_POSITION, text);
    if (out->position < 1)
        return il__reader_fail(t->r, LIVERC_VALIDATION_ERROR,
                               "row %zu of the results: invalid position %d", t->race->n_results,
                               out->position);
    text           = value_of(t, row, COLUMN_QUALIFIED);
    out->qualified = LIVERC_NONE;
    if (!is_blank(text) && !il__liverc_count(text, &out->qualified))
        return refuse_cell(t, COLUMN_QUALIFIED, text);
    text = out->total_raw = il__reader_keep(t->r, value_of(t, row, COLUMN_LAPS_TIME));
    if (is_blank(text))
        out->total_ms = LIVERC_NONE;
    else if (!il__liverc_laps_time(text, &out->n_laps_completed, &out->total_ms))
        return refuse_cell(t, COLUMN_LAPS_TIME, text);
    if (out->total_ms == 0)
        return il__reader_fail(t->r, LIVERC_VALIDATION_ERROR,
                               "row %zu of the results: %d laps, but a total time of 0",
                               t->race->n_results, out->n_laps_completed);
    return IL_OK;
}

static il_status
read_row(struct table *t, const xmlNode *tr)
{
    struct html_row row;

    il__html_row(tr, &row);
    /* A single cell is a remark such as "No data available in table". */
    if (row.is_head || row.n < 2 || il__html_has_class(tr, "child"))
        return IL_OK;
    if (t->race->n_results == LIVERC_RESULTS_MAX)
        return il__reader_fail(t->r, t->r->format, "the race has more than %d results",
                               LIVERC_RESULTS_MAX);
    struct liverc_result *out =
        il__reader_append(t->r, &t->race->results, &t->race->n_results, sizeof *out);
    if (out == NULL)
        return IL_OK; /* remembered by the reader */
    il_status st = read_counts(t, &row, out);
    if (st == IL_OK)
        st = read_driver(t, &row, out);
    if (st == IL_OK)
        st = read_behind(t, &row, out);
    if (st == IL_OK)
        st = read_times(t, &row, out);
    out->fastest_lap = read_fastest_lap(t, &row);
    read_consistency(t, &row, out);
    return st;
}

static il_status
read_rows(struct table *t)
{
    il_status st = IL_OK;

    for (const xmlNode *n = il__html_next(t->node, t->node); n != NULL && st == IL_OK;
         n                = il__html_next(t->node, n)) {
        if (il__html_is(n, "tr") && !il__html_inside(n, t->node, "thead") &&
            !il__html_inside(n, t->node, "tfoot") && !il__html_inside(n, t->node, "table"))
            st = read_row(t, n);
    }
    return st;
}

il_status
il__liverc_race(struct liverc_page *p, const struct liverc_source *s,
                const struct liverc_race **ret, il_error *reterr)
{
    static const char *const  pages[] = { "view_race_result", NULL };
    AUTO_READER struct reader r;
    struct table              t = { .r = &r };

    il_status st = il__reader_open(&r, p, s, LIVERC_RACE_PAGE_FORMAT_ERROR, reterr);
    if (st == IL_OK)
        t.race = il__reader_alloc(&r, sizeof *t.race);
    if (t.race != NULL) {
        st = il__reader_id(&r, pages, &t.race->id);
        if (st == IL_OK)
            st = find_table(&t);
        if (st == IL_OK) {
            read_head(&t);
            st = read_rows(&t);
        }
        if (st == IL_OK)
            st = il__race_add_laps(&r, t.race);
        if (st == IL_OK)
            il__race_digest(&r, t.race);
    }
    if (st == IL_OK)
        st = il__reader_finish(&r);
    if (st == IL_OK)
        *ret = t.race;
    return st;
}
