/*
 * data.c: ingest generated pages; see data.h.
 */
#include "ingest/data.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "ingest_dump_sql.inc"

#define DUMP_BYTES_MAX ((size_t)64 << 20)

/* ---- pages ----------------------------------------------------------------------------------- */

/* The page at /SLUG/results/?p=PAGE&id=ID. */
static struct liverc_source
fetch(const struct site_options *o, const char *slug, const char *page, const char *id,
      struct il__buf *body)
{
    struct site_answer answer;
    char               url[256];

    (void)snprintf(url, sizeof url, "/%s/results/?p=%s&id=%s", slug, page, id);
    il__buf_init(body, SITE_PAGE_BYTES_MAX);
    T_TRUE(il__site_page(o, url, body, &answer));
    T_EQ(answer.status, 200);
    return (struct liverc_source){ il__buf_str(body), body->n_bytes, id, slug };
}

static void
parsed(il_status st, const char *what, const char *id, const il_error *err)
{
    if (st != IL_OK)
        T_FAIL("%s %s: %s", what, id, err->message);
}

void
t_pages_make(struct t_event_pages *p, const struct site_options *o, const char *slug,
             const char *event_id)
{
    AUTO_BUF struct il__buf body = { 0 };
    il_error                err;

    *p = (struct t_event_pages){ .races = NULL };
    T_EQ(il__liverc_load(&err), IL_OK);
    struct liverc_source s = fetch(o, slug, "view_event", event_id, &body);
    parsed(il__liverc_event(&p->event_page, &s, &p->event, &err), "event", event_id, &err);
    il__buf_release(&body);
    s = fetch(o, slug, "view_entry_list", event_id, &body);
    parsed(il__liverc_entries(&p->list_page, &s, &p->entries, &err), "entries", event_id, &err);
    p->race_pages = calloc(p->event->n_races + 1, sizeof *p->race_pages);
    p->races      = calloc(p->event->n_races + 1, sizeof *p->races);
    T_TRUE(p->race_pages != NULL && p->races != NULL);
    for (size_t i = 0; i < p->event->n_races; i++) {
        const char *id = p->event->races[i].id;
        il__buf_release(&body);
        s = fetch(o, slug, "view_race_result", id, &body);
        parsed(il__liverc_race(&p->race_pages[i], &s, &p->races[i], &err), "race", id, &err);
    }
}

void
t_pages_release(struct t_event_pages *p)
{
    for (size_t i = 0; p->event != NULL && i < p->event->n_races; i++)
        il__liverc_page_release(&p->race_pages[i]);
    il__liverc_page_release(&p->event_page);
    il__liverc_page_release(&p->list_page);
    free(p->race_pages);
    free(p->races);
    *p = (struct t_event_pages){ .races = NULL };
}

struct site_options
t_small_site(void)
{
    struct site_options o = SITE_OPTIONS_INIT;

    o.n_entries = 16;
    o.n_races   = 6;
    o.n_laps    = 8;
    return o;
}

/* ---- ingestion ------------------------------------------------------------------------------- */

struct ingest_write
t_write_opts(struct ingest_totals *totals)
{
    return (struct ingest_write){ .tenant = T_TENANT, .totals = totals };
}

il_status
t_ingest(il_guard *g, const struct ingest_write *w, const struct t_event_pages *p, const char *slug,
         char event_id[INGEST_EVENT_ID_BYTES_MAX + 1], il_error *err)
{
    il_status st = il__ingest_event_make(g, w, p->event->id, slug, NULL, event_id, NULL, err);

    if (st == IL_OK)
        st = il__ingest_event_write(g, w, event_id, p->event, p->entries, err);
    for (size_t i = 0; i < p->event->n_races && st == IL_OK; i++)
        st = il__ingest_race_write(g, w, event_id, &p->event->races[i], p->races[i], err);
    if (st == IL_OK)
        st = il__ingest_match(g, w, event_id, err);
    if (st == IL_OK)
        st = il__ingest_finish(g, w, event_id, INGEST_LAPS_FULL, p->event, NULL, err);
    return st;
}

void
t_ingest_must(il_guard *g, const struct ingest_write *w, const struct t_event_pages *p,
              const char *slug, char event_id[INGEST_EVENT_ID_BYTES_MAX + 1])
{
    il_error err = { .message = "" };

    if (t_ingest(g, w, p, slug, event_id, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

void
t_ingest_site(il_guard *g, const struct site_options *o, struct ingest_totals *totals,
              char event_id[INGEST_EVENT_ID_BYTES_MAX + 1])
{
    struct ingest_write  w = t_write_opts(totals);
    struct t_event_pages p;

    t_pages_make(&p, o, T_SLUG, T_EVENT);
    t_ingest_must(g, &w, &p, T_SLUG, event_id);
    t_pages_release(&p);
}

/* ---- what is in the tables ------------------------------------------------------------------- */

static int
add_line(void *cookie, const il_guard_row *row)
{
    il__buf_addf(cookie, "%s\n", (const char *)row->values[0].data);
    return 1;
}

static char *
lines(il_guard *g, const char *sql)
{
    AUTO_BUF struct il__buf text = { 0 };
    il_guard_tx_opts        o    = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx            *tx   = NULL;
    const il_guard_query    q    = { .sql = sql, .each = add_line, .cookie = &text };
    il_error                err  = { .message = "" };

    o.flags = IL_GUARD_READ_ONLY;
    il__buf_init(&text, DUMP_BYTES_MAX);
    if (il_guard_begin(g, &o, &tx, &err) != IL_OK || il_guard_exec(tx, &q, NULL, &err) != IL_OK)
        T_FAIL("%s", err.message);
    il_guard_rollback(tx);
    char *taken = text.n_bytes > 0 ? il__buf_take(&text) : il__strdup("");
    T_TRUE(taken != NULL);
    return taken;
}

char *
t_dump(il_guard *g)
{
    return lines(g, sql_dump_content);
}

char *
t_dump_ids(il_guard *g)
{
    return lines(g, sql_dump_ids);
}

void
t_same_lines(const char *what, const char *actual, const char *expected)
{
    while (*actual != '\0' || *expected != '\0') {
        size_t n = strcspn(actual, "\n"), m = strcspn(expected, "\n");
        if (n != m || memcmp(actual, expected, n) != 0)
            T_FAIL("%s: '%.*s', expected '%.*s'", what, (int)n, actual, (int)m, expected);
        actual += n + (actual[n] == '\n');
        expected += m + (expected[m] == '\n');
    }
}

const char *
t_sql(il_guard *g, const char *sql, char out[4096])
{
    const struct app_statement s = { sql, sql };

    return t_run(g, &s, APP_NO_VALUES, out);
}

const char *
t_counts(il_guard *g, char out[4096])
{
    return t_sql(g, sql_dump_counts, out);
}
