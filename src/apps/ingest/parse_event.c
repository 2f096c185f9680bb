/*
 * parse_event.c: the page of an event: names, dates, counts, and the list of its races.
 */
#include <stdio.h>
#include <strings.h>

#include "apps/ingest/page_reader.h"

/* ---- the head -------------------------------------------------------------------------------- */

/* The first h1, h3 or h5 with the class page-header that has a text. */
static const char *
header_text(struct reader *r, const char *name)
{
    const xmlNode *top = il__html_top(&r->html);

    for (const xmlNode *n = il__html_next(top, top); n != NULL; n = il__html_next(top, n)) {
        if (!il__html_is(n, name) || !il__html_has_class(n, "page-header"))
            continue;
        const char *text = il__reader_text(r, n, NULL);
        if (text[0] != '\0')
            return text;
    }
    return "";
}

static il_status
read_head(struct reader *r, struct liverc_event *e)
{
    static const char *const pages[] = { "view_entry_list", "event_overall_ranking", "view_event",
                                         NULL };

    il_status st = il__reader_id(r, pages, &e->id);
    if (st != IL_OK)
        return st;
    e->club           = header_text(r, "h1");
    e->meet           = header_text(r, "h3");
    e->name           = il__liverc_event_name(e->club, e->meet);
    const char *dates = header_text(r, "h5");
    if (e->id == NULL)
        return il__reader_fail(r, r->format,
                               "cannot find the event's id: the page has no link to an entry list");
    if (e->name[0] == '\0')
        return il__reader_fail(r, r->format, "the event page has no name (h1 or h3.page-header)");
    if (dates[0] == '\0')
        return il__reader_fail(r, r->format, "the event page has no date (h5.page-header)");
    if (!il__liverc_days(dates, e->first_day, e->last_day))
        return il__reader_fail(r, LIVERC_NORMALISATION_ERROR,
                               "cannot read the date of the event: '%.80s'", dates);
    return IL_OK;
}

/* ---- the counts ------------------------------------------------------------------------------ */

/* The number after a label like "Entries:". */
static void
number_after(const char *text, const char *label, int32_t *ret)
{
    const char *at = strcasestr(text, label);
    char        digits[24];

    if (at == NULL)
        return;
    at += strlen(label);
    at += strspn(at, " ");
    size_t n = strspn(at, "0123456789,");
    if (n == 0 || n >= sizeof digits)
        return;
    memcpy(digits, at, n);
    digits[n] = '\0';
    int32_t value;
    if (il__liverc_count(digits, &value))
        *ret = value;
}

static void
read_counts(struct reader *r, struct liverc_event *e)
{
    const xmlNode *top   = il__html_top(&r->html);
    const xmlNode *table = il__html_find(top, "table", "table-sm");

    e->n_entries = e->n_drivers = e->n_laps = LIVERC_NONE;
    if (table == NULL)
        return;
    for (const xmlNode *n = il__html_next(table, table); n != NULL; n = il__html_next(table, n)) {
        if (!il__html_is(n, "tr"))
            continue;
        const char *text = il__reader_peek(r, n, NULL);
        number_after(text, "Entries:", &e->n_entries);
        number_after(text, "Drivers:", &e->n_drivers);
        number_after(text, "Total Race Laps", &e->n_laps);
    }
}

/* ---- the races ------------------------------------------------------------------------------- */

/* The text of a link: Race 14: CLASS (LABEL). Without parentheses, both are the whole. */
static void
split_title(struct reader *r, const char *title, struct liverc_race_link *race)
{
    int32_t order;

    race->order = LIVERC_NONE;
    if (strncasecmp(title, "Race ", 5) == 0) {
        const char *colon = strchr(title, ':');
        char        digits[12];
        size_t      n = colon != NULL ? (size_t)(colon - title) - 5 : 0;
        if (n > 0 && n < sizeof digits) {
            memcpy(digits, title + 5, n);
            digits[n] = '\0';
            if (il__liverc_count(digits, &order)) {
                race->order = order;
                title       = colon + 1;
                title += strspn(title, " ");
            }
        }
    }
    size_t      n     = strlen(title);
    const char *paren = strstr(title, " (");
    if (paren != NULL && paren > title && n > 3 && title[n - 1] == ')' && paren + 3 < title + n) {
        char text[LIVERC_TEXT_BYTES_MAX + 1];
        (void)snprintf(text, sizeof text, "%.*s", (int)(paren - title), title);
        race->class_name = il__reader_clean(r, text);
        (void)snprintf(text, sizeof text, "%.*s", (int)(title + n - 1 - (paren + 2)), paren + 2);
        race->label = il__reader_clean(r, text);
    } else {
        race->class_name = race->label = il__reader_keep(r, title);
    }
}

/* The link of a row to a race; its id in *ret_id. NULL = the row has none. */
static const xmlNode *
race_link(struct reader *r, const xmlNode *tr, const char **ret_id)
{
    for (const xmlNode *n = il__html_next(tr, tr); n != NULL; n = il__html_next(tr, n)) {
        const char *href = il__html_is(n, "a") ? il__html_attribute(n, "href") : NULL;
        *ret_id          = href != NULL ? il__reader_link_id(r, href, "view_race_result") : NULL;
        if (*ret_id != NULL)
            return n;
    }
    return NULL;
}

struct races {
    struct reader       *r;
    struct liverc_event *e;
    size_t               n_rows; /* that could be races */
    const char          *section;
};

static il_status
add_race(struct races *all, const xmlNode *link, const char *id, const struct html_row *row)
{
    struct reader       *r     = all->r;
    struct liverc_event *e     = all->e;
    const char          *title = il__reader_text(r, link, NULL);

    if (title[0] == '\0') {
        il__reader_warn(r, "race %s is ignored: its link has no text", id);
        return IL_OK;
    }
    if (e->n_races == LIVERC_RACES_MAX)
        return il__reader_fail(r, r->format, "the event has more than %d races", LIVERC_RACES_MAX);
    struct liverc_race_link *race = il__reader_append(r, &e->races, &e->n_races, sizeof *race);
    if (race == NULL)
        return IL_OK; /* remembered by the reader */
    race->id      = id;
    race->url     = il__reader_clean(r, il__html_attribute(link, "href"));
    race->section = all->section;
    split_title(r, title, race);
    race->session         = il__liverc_session(race->section, race->label, race->url);
    const char *completed = il__reader_peek(r, row->n > 1 ? row->cells[1] : NULL, ".hidden");
    if (completed[0] != '\0' && !il__liverc_completed(completed, race->completed_at))
        il__reader_warn(r, "race %s: cannot read when it was completed: '%.80s'", id, completed);
    return IL_OK;
}

static il_status
read_row(struct races *all, const xmlNode *tr)
{
    struct html_row row;
    const char     *id = NULL;

    il__html_row(tr, &row);
    if (row.n == 0)
        return IL_OK;
    if (row.is_head) {
        const char *text = il__reader_text(all->r, row.cells[0], NULL);
        if (text[0] != '\0' && strcasecmp(text, "Time Completed") != 0)
            all->section = text;
        return IL_OK;
    }
    all->n_rows++;
    const xmlNode *link = race_link(all->r, tr, &id);
    return link != NULL ? add_race(all, link, id, &row) : IL_OK;
}

static int
by_id(const void *a, const void *b)
{
    const struct liverc_race_link *p = *(const struct liverc_race_link *const *)a;
    const struct liverc_race_link *q = *(const struct liverc_race_link *const *)b;

    return strcmp(p->id, q->id);
}

/* The digest does not depend on the order of the page; ids must differ. */
static il_status
check_races(struct reader *r, struct liverc_event *e)
{
    AUTO_BUF struct il__buf         text   = { 0 };
    const struct liverc_race_link **sorted = NULL;

    il__buf_init(&text, LIVERC_RACES_MAX * (LIVERC_ID_BYTES_MAX + LIVERC_TIME_BYTES + 2) + 1);
    if (e->n_races > 0)
        sorted = il__reader_alloc(r, e->n_races * sizeof *sorted);
    if (sorted != NULL) {
        for (size_t i = 0; i < e->n_races; i++)
            sorted[i] = &e->races[i];
        qsort(sorted, e->n_races, sizeof *sorted, by_id);
    }
    for (size_t i = 0; sorted != NULL && i < e->n_races; i++) {
        if (i > 0 && strcmp(sorted[i]->id, sorted[i - 1]->id) == 0)
            return il__reader_fail(r, LIVERC_VALIDATION_ERROR, "race %s is listed twice",
                                   sorted[i]->id);
        il__buf_addf(&text, "%s\t%s\n", sorted[i]->id, sorted[i]->completed_at);
    }
    r->no_memory |= text.failed;
    il__liverc_digest(il__buf_str(&text), text.n_bytes, e->digest);
    return IL_OK;
}

static il_status
read_races(struct reader *r, struct liverc_event *e)
{
    const xmlNode *top = il__html_top(&r->html);
    struct races   all = { .r = r, .e = e, .section = "" };
    const xmlNode *table;
    il_status      st = IL_OK;

    for (table = il__html_next(top, top); table != NULL; table = il__html_next(top, table)) {
        if (!il__html_is(table, "table") || !il__html_has_class(table, "entry_list_data"))
            continue;
        all.section = "";
        for (const xmlNode *n = il__html_next(table, table); n != NULL && st == IL_OK;
             n                = il__html_next(table, n)) {
            if (il__html_is(n, "tr") && !il__html_inside(n, table, "thead") &&
                !il__html_inside(n, table, "table"))
                st = read_row(&all, n);
        }
        if (st != IL_OK)
            return st;
    }
    if (e->n_races == 0 && all.n_rows > 0)
        il__reader_warn(r, "the event page has %zu rows but no races", all.n_rows);
    return check_races(r, e);
}

il_status
il__liverc_event(struct liverc_page *p, const struct liverc_source *s,
                 const struct liverc_event **ret, il_error *reterr)
{
    AUTO_READER struct reader r;
    struct liverc_event      *e = NULL;

    il_status st = il__reader_open(&r, p, s, LIVERC_EVENT_PAGE_FORMAT_ERROR, reterr);
    if (st == IL_OK) {
        e = il__reader_alloc(&r, sizeof *e);
        if (e != NULL) {
            st = read_head(&r, e);
            read_counts(&r, e);
        }
    }
    if (st == IL_OK && e != NULL)
        st = read_races(&r, e);
    if (st == IL_OK)
        st = il__reader_finish(&r);
    if (st == IL_OK)
        *ret = e;
    return st;
}
