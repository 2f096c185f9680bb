/*
 * ingest_persist.c: writing the races of a large event, against inserts of the same rows by hand
 * (ingest_raw.c). Each round is the same event, of another tenant; the tables grow on both sides
 * alike.
 */
#include <stdio.h>

#include "apps/ingest/persist.h"
#include "apps/ingest/site/site.h"
#include "bench.h"
#include "ingest_raw.h"
#include "load.h"

#define SLUG "hilltoprc"
#define EVENT "100000"
#define TENANT_BYTES 16
#define ROUNDS_MAX 5 /* each takes seconds */

/* The pages of the event, parsed. */
struct pages {
    struct liverc_page         event_page;
    const struct liverc_event *event;
    struct liverc_page        *race_pages;
    const struct liverc_race **races;
};

static void
read_page(const struct site_options *o, const char *page, const char *id, struct il__buf *body)
{
    struct site_answer answer;
    char               url[256];

    (void)snprintf(url, sizeof url, "/" SLUG "/results/?p=%s&id=%s", page, id);
    il__buf_init(body, SITE_PAGE_BYTES_MAX);
    if (!il__site_page(o, url, body, &answer) || answer.status != 200)
        die("the generated site has no page %s", url);
}

static void
pages_make(struct pages *p, bool quick)
{
    AUTO_BUF struct il__buf body = { 0 };
    struct site_options     o    = SITE_OPTIONS_INIT;
    il_error                err  = { 0 };

    if (quick) {
        o.n_entries = 16;
        o.n_races   = 6;
        o.n_laps    = 8;
    }
    must(il__liverc_load(&err), "libraries", &err);
    read_page(&o, "view_event", EVENT, &body);
    struct liverc_source s = { il__buf_str(&body), body.n_bytes, EVENT, SLUG };
    must(il__liverc_event(&p->event_page, &s, &p->event, &err), "event page", &err);
    p->race_pages = must_calloc(p->event->n_races, sizeof *p->race_pages);
    p->races      = must_calloc(p->event->n_races, sizeof *p->races);
    for (size_t i = 0; i < p->event->n_races; i++) {
        il__buf_release(&body);
        read_page(&o, "view_race_result", p->event->races[i].id, &body);
        s = (struct liverc_source){ il__buf_str(&body), body.n_bytes, p->event->races[i].id, SLUG };
        must(il__liverc_race(&p->race_pages[i], &s, &p->races[i], &err), "race page", &err);
    }
}

static void
pages_release(struct pages *p)
{
    for (size_t i = 0; i < p->event->n_races; i++)
        il__liverc_page_release(&p->race_pages[i]);
    il__liverc_page_release(&p->event_page);
    free(p->race_pages);
    free(p->races);
}

/* ---- the two sides --------------------------------------------------------------------------- */

struct ours {
    const struct pages *pages;
    il_guard           *g;
    unsigned            n_rounds;
    int64_t             n_laps; /* of the last round */
};

static double
per_second(int64_t n, int64_t start_ns)
{
    return (double)n * (double)BENCH_NS_PER_S / (double)(il__clock_boot_ns() - start_ns);
}

static double
ours_round(void *cookie)
{
    struct ours               *o      = cookie;
    const struct liverc_event *event  = o->pages->event;
    struct ingest_totals       totals = { 0 };
    char                       tenant[TENANT_BYTES], id[INGEST_EVENT_ID_BYTES_MAX + 1];
    struct ingest_write        w   = { .tenant = tenant, .totals = &totals };
    il_error                   err = { 0 };

    (void)snprintf(tenant, sizeof tenant, "t%u", o->n_rounds++);
    must(il__ingest_event_make(o->g, &w, EVENT, SLUG, NULL, id, NULL, &err), "event", &err);
    must(il__ingest_event_write(o->g, &w, id, event, NULL, &err), "event", &err);
    int64_t start_ns = il__clock_boot_ns();
    for (size_t i = 0; i < event->n_races; i++)
        must(il__ingest_race_write(o->g, &w, id, &event->races[i], o->pages->races[i], &err),
             "race", &err);
    o->n_laps = totals.of[INGEST_LAPS].n_inserted;
    return per_second(o->n_laps, start_ns);
}

struct by_hand {
    const struct raw_event *event;
    void (*write)(void *w, const struct raw_race *race, const char *tenant);
    void    *writer;
    unsigned n_rounds;
};

static double
by_hand_round(void *cookie)
{
    struct by_hand *h = cookie;
    char            tenant[TENANT_BYTES];

    (void)snprintf(tenant, sizeof tenant, "t%u", h->n_rounds++);
    h->write(h->writer, &h->event->head, tenant);
    int64_t start_ns = il__clock_boot_ns();
    for (size_t i = 0; i < h->event->n_races; i++)
        h->write(h->writer, &h->event->races[i], tenant);
    return per_second((int64_t)h->event->n_laps, start_ns);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct tables {
    struct tables_place *place;
    il_guard            *g;
};

static struct tables
tables_make(const char *url)
{
    struct tables t   = { 0 };
    il_error      err = { 0 };

    must(il__tables_place_open(url, NULL, false, &t.place, &err), "tables", &err);
    must(il__tables_open(&il__ingest_tables, t.place, NULL, &t.g, &err), "tables", &err);
    return t;
}

static void
tables_close(struct tables *t)
{
    il_guard_close(t->g);
    il__tables_place_close(t->place);
}

/* New tables in a SQLite file of the temporary folder; *path is the file. */
static struct tables
file_make(const struct bench *b, const char *name, char path[BENCH_PATH_BYTES])
{
    char file[64], url[BENCH_PATH_BYTES + 16];

    (void)snprintf(file, sizeof file, "%s.db", name);
    (void)snprintf(url, sizeof url, "sqlite:%s", temp_path(b, file, path));
    (void)snprintf(file, sizeof file, "%s-ingest.db", name);
    (void)temp_path(b, file, path);
    return tables_make(url);
}

/* The rows that ours writes. */
static void
read_rows(const struct bench *b, const struct pages *p, struct raw_event *ret)
{
    char          path[BENCH_PATH_BYTES];
    struct tables t = file_make(b, "rows", path);
    struct ours   o = { .pages = p, .g = t.g };

    (void)ours_round(&o);
    tables_close(&t);
    raw_event_read(ret, path);
    temp_remove_database(path);
    CHECK(ret->n_races == p->event->n_races && (int64_t)ret->n_laps == o.n_laps);
}

static void
measure(struct bench *b, struct result *r, struct ours *ours, struct by_hand *hand)
{
    r->what         = "races of a large event: 60 races, about 30,000 laps; laps";
    r->unit         = UNIT_OPS_PER_S;
    r->wanted       = WANTED_RATIO_AT_LEAST;
    r->wanted_value = 0.5;
    compare(r, MIN(b->n_rounds, ROUNDS_MAX), (struct side){ ours_round, ours },
            (struct side){ by_hand_round, hand });
    report_add(&b->report, r);
}

static void
sqlite_row(struct bench *b, const struct pages *p, const struct raw_event *e)
{
    struct result r = { .name       = "ingest-persist-sqlite",
                        .against    = "prepared INSERTs of the same rows, a commit per race",
                        .durability = BENCH_FULL };
    char          path[BENCH_PATH_BYTES], raw_path[BENCH_PATH_BYTES];
    struct tables t = file_make(b, "persist", path), raw = file_make(b, "persist-raw", raw_path);

    tables_close(&raw);
    struct raw_sqlite *w    = raw_sqlite_open(raw_path);
    struct ours        ours = { .pages = p, .g = t.g };
    struct by_hand     hand = { .event = e, .write = raw_sqlite_write, .writer = w };
    measure(b, &r, &ours, &hand);
    raw_sqlite_close(w);
    tables_close(&t);
    temp_remove_database(path);
    temp_remove_database(raw_path);
}

static struct tables
schema_make(struct bench *b, const struct database *d)
{
    char url[BENCH_URL_BYTES];

    (void)snprintf(url, sizeof url, "postgres://postgres@/%s?host=%s", d->name, postgres_dir(b));
    return tables_make(url);
}

static void
schema_drop(struct bench *b, const struct database *d)
{
    raw_postgres_drop(b, d->name);
    postgres_drop(b, d);
}

static void
postgres_row(struct bench *b, const struct pages *p, const struct raw_event *e)
{
    struct result   r    = { .name       = "ingest-persist-postgres",
                             .against    = "INSERTs of many of the same rows, a commit per race",
                             .durability = BENCH_POSTGRES };
    struct database mine = postgres_database(b, 0), peer = postgres_database(b, 1);
    struct tables   t = schema_make(b, &mine), raw = schema_make(b, &peer);

    tables_close(&raw);
    struct raw_postgres *w    = raw_postgres_open(b, peer.name);
    struct ours          ours = { .pages = p, .g = t.g };
    struct by_hand       hand = { .event = e, .write = raw_postgres_write, .writer = w };
    measure(b, &r, &ours, &hand);
    raw_postgres_close(w);
    tables_close(&t);
    schema_drop(b, &mine);
    schema_drop(b, &peer);
}

void
bench_ingest_persist(struct bench *b, unsigned is_postgres)
{
    struct pages     p = { .race_pages = NULL };
    struct raw_event e;
    const char      *why = NULL;

    if (is_postgres != 0 && !postgres_ready(b, &why)) {
        report_leave_out(&b->report, "ingest-persist-postgres", why);
        return;
    }
    pages_make(&p, b->quick);
    read_rows(b, &p, &e);
    if (is_postgres != 0)
        postgres_row(b, &p, &e);
    else
        sqlite_row(b, &p, &e);
    raw_event_release(&e);
    pages_release(&p);
}
