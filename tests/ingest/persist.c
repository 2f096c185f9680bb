/*
 * persist.c: what an ingestion leaves in the tables: everything that the pages say, once; the same
 * pages again change nothing; changed pages change what they should; failures leave nothing behind.
 */
#include "base/arena.h"
#include "ingest/data.h"

#include <stdio.h>
#include <stdlib.h>

#define T_ID char event_id[INGEST_EVENT_ID_BYTES_MAX + 1]

static int64_t
rows_on_pages(const struct t_event_pages *p, bool laps)
{
    int64_t n = 0;

    for (size_t i = 0; i < p->event->n_races; i++) {
        for (size_t k = 0; k < p->races[i]->n_results; k++)
            n += laps ? (int64_t)p->races[i]->results[k].n_laps : 1;
    }
    return n;
}

static void
expect_counts(const struct ingest_totals *t, enum ingest_table table, int64_t inserted,
              int64_t updated, int64_t unchanged, int64_t removed)
{
    const struct ingest_counts *c = &t->of[table];

    if (c->n_inserted != inserted || c->n_updated != updated || c->n_unchanged != unchanged ||
        c->n_removed != removed)
        T_FAIL("%s: %d inserted, %d updated, %d unchanged, %d removed; expected %d, %d, %d, %d",
               il__ingest_table_names[table], (int)c->n_inserted, (int)c->n_updated,
               (int)c->n_unchanged, (int)c->n_removed, (int)inserted, (int)updated, (int)unchanged,
               (int)removed);
}

/* ---- once and twice -------------------------------------------------------------------------- */

R_TEST(everything_on_the_pages_is_in_the_tables)
{
    struct site_options  o = t_small_site();
    struct t_event_pages p;
    struct ingest_totals t = { 0 };
    struct ingest_write  w = t_write_opts(&t);
    char                 out[4096], text[128];
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    t_ingest_must(g, &w, &p, T_SLUG, event_id);
    int64_t n_results = rows_on_pages(&p, false), n_laps = rows_on_pages(&p, true);
    T_TRUE(p.event->n_races == o.n_races && n_laps > n_results);
    expect_counts(&t, INGEST_EVENTS, 1, 1, 0, 0);
    expect_counts(&t, INGEST_RACES, o.n_races, 0, 0, 0);
    expect_counts(&t, INGEST_RACE_RESULTS, n_results, 0, 0, 0);
    expect_counts(&t, INGEST_LAPS, n_laps, 0, 0, 0);
    T_EQ(t.of[INGEST_EVENT_ENTRIES].n_inserted, p.entries->n_entries);
    (void)snprintf(text, sizeof text, "1 1 %zu %zu %d %d %d %d", p.entries->n_entries,
                   p.event->n_races, (int)t.of[INGEST_DRIVERS].n_inserted, (int)n_results,
                   (int)n_results, (int)n_laps);
    T_STREQ(t_counts(g, out), text);
    T_STREQ(t_sql(g, "SELECT ingest_depth FROM events", out), "laps_full");
    /* every class of the list has races, so all entries have met their drivers */
    T_STREQ(t_sql(g, "SELECT count(*) FROM event_entries WHERE driver_id IS NULL", out), "0");
    t_pages_release(&p);
    il_guard_close(g);
}

static int64_t
sum(const struct ingest_totals *t, size_t offset)
{
    int64_t n = 0;

    for (size_t i = 0; i < INGEST_TABLE_COUNT; i++)
        n += *(const int64_t *)((const char *)&t->of[i] + offset);
    return n;
}

R_TEST(the_same_pages_change_nothing)
{
    struct site_options  o      = t_small_site();
    struct ingest_totals totals = { 0 };
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_ingest_site(g, &o, NULL, event_id);
    AUTO_FREE char *content = t_dump(g), *ids = t_dump_ids(g);
    t_ingest_site(g, &o, &totals, event_id);
    AUTO_FREE char *content_2 = t_dump(g), *ids_2 = t_dump_ids(g);
    t_same_lines("content", content_2, content);
    t_same_lines("ids", ids_2, ids);
    T_EQ(sum(&totals, offsetof(struct ingest_counts, n_inserted)), 0);
    T_EQ(sum(&totals, offsetof(struct ingest_counts, n_updated)), 0);
    T_EQ(sum(&totals, offsetof(struct ingest_counts, n_removed)), 0);
    T_TRUE(totals.of[INGEST_LAPS].n_unchanged > 0);
    il_guard_close(g);
}

/* The digest spares the comparison; without it the rows are compared one by one, and are equal. */
R_TEST(the_same_rows_are_not_written_again)
{
    struct site_options  o      = t_small_site();
    struct ingest_totals totals = { 0 };
    char                 out[4096];
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_ingest_site(g, &o, NULL, event_id);
    AUTO_FREE char *content = t_dump(g), *ids = t_dump_ids(g);
    (void)t_sql(g, "UPDATE races SET digest = 'another'", out);
    t_ingest_site(g, &o, &totals, event_id);
    AUTO_FREE char *content_2 = t_dump(g), *ids_2 = t_dump_ids(g);
    t_same_lines("content", content_2, content);
    t_same_lines("ids", ids_2, ids);
    expect_counts(&totals, INGEST_RACES, 0, o.n_races, 0, 0);
    T_EQ(totals.of[INGEST_LAPS].n_updated + totals.of[INGEST_LAPS].n_inserted, 0);
    T_EQ(totals.of[INGEST_RACE_RESULTS].n_updated + totals.of[INGEST_RACE_DRIVERS].n_updated, 0);
    T_TRUE(totals.of[INGEST_LAPS].n_unchanged > 0);
    il_guard_close(g);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Whatever was in the tables, they end up as if only the last pages had ever been read. */
R_TEST(changed_pages_overwrite)
{
    struct site_options  o         = t_small_site();
    struct ingest_totals totals    = { 0 };
    int64_t              n_removed = 0, n_changed = 0;
    struct t_rig         other;
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    for (o.revision = 0; o.revision < 8; o.revision++) {
        totals = (struct ingest_totals){ 0 };
        t_ingest_site(g, &o, &totals, event_id);
        n_changed += totals.of[INGEST_LAPS].n_updated;
        n_removed += totals.of[INGEST_LAPS].n_removed;
    }
    T_TRUE(n_changed > 0 && n_removed > 0);
    o.revision--;
    t_rig_make(&other);
    il_guard *fresh = t_tables_open(&other, &il__ingest_tables);
    t_ingest_site(fresh, &o, NULL, event_id);
    AUTO_FREE char *content = t_dump(g), *expected = t_dump(fresh);
    t_same_lines("content", content, expected);
    il_guard_close(fresh);
    il_guard_close(g);
    t_rig_release(&other);
}

/* A driver who is no longer listed goes with the laps; an entry, too. */
R_TEST(what_has_disappeared_is_removed)
{
    struct site_options      o = t_small_site();
    struct t_event_pages     p;
    struct ingest_totals     t = { 0 };
    struct ingest_write      w = t_write_opts(&t);
    struct liverc_race       race;
    struct liverc_result     results[2];
    struct liverc_entry_list list;
    il_error                 err;
    char                     sql[256], out[4096];
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    t_ingest_must(g, &w, &p, T_SLUG, event_id);
    race = *p.races[0];
    T_TRUE(race.n_results > 2 && race.results[0].n_laps > 2);
    size_t  n_results = race.n_results;
    int64_t n_laps    = 0;
    for (size_t i = 0; i < n_results; i++)
        n_laps += (int64_t)race.results[i].n_laps;
    memcpy(results, race.results, sizeof results);
    results[0].n_laps -= 2;
    results[1].position = 7;
    race.results        = results;
    race.n_results      = 2;
    (void)snprintf(race.digest, sizeof race.digest, "changed");
    t = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_race_write(g, &w, event_id, &p.event->races[0], &race, &err), IL_OK);
    int64_t n_left = (int64_t)(results[0].n_laps + results[1].n_laps);
    expect_counts(&t, INGEST_RACES, 0, 1, 0, 0);
    expect_counts(&t, INGEST_RACE_DRIVERS, 0, 0, 2, (int64_t)n_results - 2);
    expect_counts(&t, INGEST_RACE_RESULTS, 0, 1, 1, (int64_t)n_results - 2);
    expect_counts(&t, INGEST_LAPS, 0, 0, n_left, n_laps - n_left);
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM race_results rr JOIN races r ON r.id = rr.race_id "
                   "WHERE r.source_race_id = '%s'",
                   p.event->races[0].id);
    T_STREQ(t_sql(g, sql, out), "2");

    list = *p.entries;
    list.n_entries -= 3;
    t = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_event_write(g, &w, event_id, NULL, &list, &err), IL_OK);
    expect_counts(&t, INGEST_EVENT_ENTRIES, 0, 0, (int64_t)list.n_entries, 3);
    t_pages_release(&p);
    il_guard_close(g);
}

/* A page of an entry list may have the same entry twice. */
R_TEST(an_entry_listed_twice_is_one)
{
    struct liverc_entry      e[]  = { { "Junior", "7", "ANNA B", "ANNA B", "123" },
                                      { "Junior", "7", "ANNA B", "ANNA B", NULL },
                                      { "Junior", "", "ANNA B", "ANNA B", NULL } };
    struct liverc_entry_list list = { e, ARRAY_LEN(e), 1 };
    struct ingest_write      w    = t_write_opts(NULL);
    il_error                 err;
    char                     out[4096];
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    T_EQ(il__ingest_event_make(g, &w, "1", T_SLUG, NULL, event_id, NULL, &err), IL_OK);
    T_EQ(il__ingest_event_write(g, &w, event_id, NULL, &list, &err), IL_OK);
    T_STREQ(t_sql(g, "SELECT count(*) || max(transponder) FROM event_entries", out), "2123");
    il_guard_close(g);
}

/* ---- the row of the event -------------------------------------------------------------------- */

R_TEST(an_event_is_found_or_made)
{
    struct ingest_write w = t_write_opts(NULL), other = { .tenant = "globex" };
    bool                created = false;
    char                id[65], again[65];
    struct ingest_known k;
    void               *mem = NULL;
    il_error            err;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    T_EQ(il__ingest_event_make(g, &w, "42", "claypit", NULL, id, &created, &err), IL_OK);
    T_TRUE(created && strlen(id) == 36);
    T_EQ(il__ingest_event_make(g, &w, "42", "claypit", NULL, again, &created, &err), IL_OK);
    T_TRUE(!created);
    T_STREQ(again, id);
    T_EQ(il__ingest_event_make(g, &w, "42", "claypit", id, again, &created, &err), IL_OK);
    T_EQ(il__ingest_event_make(g, &w, "42", "claypit", "101", again, &created, &err), IL_UNIQUE);
    T_STREQ(il__ingest_code(IL_UNIQUE), "CONSTRAINT_VIOLATION");
    T_HAS(err.message, id);
    T_EQ(il__ingest_event_make(g, &w, "42", "thebarn", NULL, again, &created, &err), IL_INVAL);
    T_HAS(err.message, "belongs to track claypit");
    T_EQ(il__ingest_event_make(g, &w, "43", "claypit", "101", again, &created, &err), IL_OK);
    T_STREQ(again, "101");
    T_EQ(il__ingest_event_make(g, &w, "44", "claypit", "101", again, &created, &err), IL_UNIQUE);
    T_EQ(il__ingest_event_make(g, &other, "42", "claypit", "101", again, &created, &err), IL_OK);
    T_EQ(il__ingest_event_make(g, &w, "4x", "claypit", NULL, again, &created, &err), IL_INVAL);
    T_EQ(il__ingest_event_make(g, &w, "45", "clay/pit", NULL, again, &created, &err), IL_INVAL);
    T_EQ(il__ingest_event_make(g, &w, "45", "claypit", "a b", again, &created, &err), IL_INVAL);

    T_EQ(il__ingest_known(g, T_TENANT, id, &mem, &k, &err), IL_OK);
    T_STREQ(k.source_event_id, "42");
    T_STREQ(k.track_slug, "claypit");
    T_TRUE(k.depth == INGEST_NONE && k.n_races == 0 && k.digest[0] == '\0');
    T_EQ(il__ingest_known_source(g, "globex", "42", &mem, &k, &err), IL_OK);
    T_STREQ(k.event_id, "101");
    T_EQ(il__ingest_known(g, "globex", id, &mem, &k, &err), IL_NOT_FOUND);
    T_EQ(il__ingest_known_source(g, T_TENANT, "44", &mem, &k, &err), IL_NOT_FOUND);
    il__arena_free(&mem);
    il_guard_close(g);
}

/* ---- states ---------------------------------------------------------------------------------- */

R_TEST(only_a_complete_event_becomes_laps_full)
{
    struct site_options  o = t_small_site();
    struct t_event_pages p;
    struct ingest_write  w = t_write_opts(NULL);
    struct ingest_known  k;
    struct liverc_event  none;
    void                *mem   = NULL;
    int64_t              at_ms = 0;
    il_error             err;
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    none         = *p.event;
    none.n_races = 0;
    T_EQ(il__ingest_event_make(g, &w, T_EVENT, T_SLUG, NULL, event_id, NULL, &err), IL_OK);
    T_EQ(il__ingest_event_write(g, &w, event_id, p.event, p.entries, &err), IL_OK);
    for (size_t i = 0; i + 1 < p.event->n_races; i++)
        T_EQ(il__ingest_race_write(g, &w, event_id, &p.event->races[i], p.races[i], &err), IL_OK);
    T_EQ(il__ingest_finish(g, &w, event_id, INGEST_LAPS_FULL, p.event, NULL, &err), IL_STATE);
    T_STREQ(il__ingest_code(IL_STATE), "STATE_MACHINE_ERROR");
    T_HAS(err.message, p.event->races[p.event->n_races - 1].id);
    T_EQ(il__ingest_finish(g, &w, event_id, INGEST_LAPS_FULL, &none, NULL, &err), IL_STATE);
    T_EQ(il__ingest_known(g, T_TENANT, event_id, &mem, &k, &err), IL_OK);
    T_TRUE(k.depth == INGEST_NONE && !il__ingest_is_complete(&k, p.event));
    T_TRUE(il__ingest_known_race(&k, p.event->races[0].id));
    T_TRUE(!il__ingest_known_race(&k, p.event->races[p.event->n_races - 1].id));

    t_ingest_must(g, &w, &p, T_SLUG, event_id);
    T_EQ(il__ingest_finish(g, &w, event_id, INGEST_LAPS_FULL, p.event, &at_ms, &err), IL_OK);
    T_EQ(il__ingest_finish(g, &w, event_id, INGEST_NONE, p.event, NULL, &err), IL_STATE);
    T_EQ(il__ingest_finish(g, &w, event_id, INGEST_DEPTH_COUNT, p.event, NULL, &err), IL_STATE);
    T_EQ(il__ingest_finish(g, &w, "nobody", INGEST_LAPS_FULL, p.event, NULL, &err), IL_NOT_FOUND);
    T_EQ(il__ingest_known(g, T_TENANT, event_id, &mem, &k, &err), IL_OK);
    T_TRUE(k.depth == INGEST_LAPS_FULL && k.last_ingested_ms == at_ms);
    T_TRUE(il__ingest_is_complete(&k, p.event) && k.n_races == p.event->n_races);
    T_EQ(k.n_results, rows_on_pages(&p, false));
    T_EQ(k.n_laps, rows_on_pages(&p, true));
    T_TRUE(!il__ingest_is_complete(&k, &none) || strcmp(none.digest, p.event->digest) == 0);
    il__arena_free(&mem);
    t_pages_release(&p);
    il_guard_close(g);
}

R_TEST(a_page_of_something_else_is_refused)
{
    struct site_options  o = t_small_site();
    struct t_event_pages p;
    struct ingest_write  w = t_write_opts(NULL);
    il_error             err;
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    T_EQ(il__ingest_event_make(g, &w, "7", T_SLUG, NULL, event_id, NULL, &err), IL_OK);
    T_EQ(il__ingest_event_write(g, &w, event_id, p.event, NULL, &err), IL_INVAL);
    T_HAS(err.message, "the page is that of " T_EVENT);
    T_EQ(il__ingest_race_write(g, &w, event_id, &p.event->races[0], p.races[1], &err), IL_INVAL);
    T_EQ(il__ingest_race_write(g, &w, event_id, &p.event->races[0], NULL, &err), IL_NOT_FOUND);
    T_EQ(il__ingest_race_write(g, &w, "nobody", &p.event->races[0], p.races[0], &err),
         IL_NOT_FOUND);
    T_EQ(il__ingest_event_write(g, &w, "nobody", p.event, NULL, &err), IL_NOT_FOUND);
    t_pages_release(&p);
    il_guard_close(g);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A row that a constraint refuses takes the whole race with it; the old one stays. */
R_TEST(a_race_that_fails_leaves_the_old_one)
{
    struct site_options  o = t_small_site();
    struct t_event_pages p;
    struct ingest_totals t = { 0 };
    struct ingest_write  w = t_write_opts(&t);
    struct liverc_race   race;
    struct liverc_lap    laps[3];
    il_error             err;
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    t_ingest_must(g, &w, &p, T_SLUG, event_id);
    AUTO_FREE char *before = t_dump(g), *ids = t_dump_ids(g);
    race                          = *p.races[0];
    struct liverc_result *results = calloc(race.n_results, sizeof *results);
    T_TRUE(results != NULL);
    memcpy(results, race.results, race.n_results * sizeof *results);
    T_TRUE(results[race.n_results - 1].n_laps >= 3 || results[0].n_laps >= 3);
    size_t i = results[race.n_results - 1].n_laps >= 3 ? race.n_results - 1 : 0;
    memcpy(laps, results[i].laps, sizeof laps);
    laps[2].time_ms     = 0; /* refused by a check constraint */
    results[i].laps     = laps;
    results[i].n_laps   = 3;
    results[0].position = 99;
    race.results        = results;
    (void)snprintf(race.digest, sizeof race.digest, "changed");
    t = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_race_write(g, &w, event_id, &p.event->races[0], &race, &err), IL_CHECK);
    T_STREQ(il__ingest_code(err.status), "CONSTRAINT_VIOLATION");
    T_EQ(t.of[INGEST_LAPS].n_removed, 0);
    AUTO_FREE char *after = t_dump(g), *ids_after = t_dump_ids(g);
    t_same_lines("content", after, before);
    t_same_lines("ids", ids_after, ids);
    free(results);
    t_pages_release(&p);
    il_guard_close(g);
}

static bool
stop_at(void *cookie)
{
    int *n = cookie;

    return --*n > 0;
}

/* Stopped after 1, 2, 3, … statements, until it gets through: nothing, or all of it. */
R_TEST(a_stopped_race_leaves_nothing)
{
    struct site_options  o = t_small_site();
    struct t_event_pages p;
    struct ingest_write  w  = t_write_opts(NULL);
    il_status            st = IL_CANCELLED;
    il_error             err;
    int                  n_stops = 0;
    T_ID;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    T_EQ(il__ingest_event_make(g, &w, T_EVENT, T_SLUG, NULL, event_id, NULL, &err), IL_OK);
    AUTO_FREE char *before = t_dump(g);
    for (int n = 1; st == IL_CANCELLED; n++) {
        int left = n;
        w.go_on  = stop_at;
        w.cookie = &left;
        st       = il__ingest_race_write(g, &w, event_id, &p.event->races[0], p.races[0], &err);
        AUTO_FREE char *after = t_dump(g);
        if (st == IL_CANCELLED)
            t_same_lines("content", after, before);
        n_stops += st == IL_CANCELLED;
    }
    T_EQ(st, IL_OK);
    T_TRUE(n_stops > 5);
    t_pages_release(&p);
    il_guard_close(g);
}

/* ---- validators and lists -------------------------------------------------------------------- */

R_TEST(validators_are_kept_with_their_page)
{
    const struct ingest_validator v[] = { { "http://x/1", "\"a\"", "" },
                                          { "http://x/2", "", "now" } };
    struct ingest_write           w   = t_write_opts(NULL);
    struct ingest_validator       found;
    void                         *mem = NULL;
    il_error                      err;
    char                          id[65];

    il_guard *g    = t_tables_open(r, &il__ingest_tables);
    w.validators   = v;
    w.n_validators = ARRAY_LEN(v);
    T_EQ(il__ingest_event_write(g, &w, "nobody", NULL, NULL, &err), IL_NOT_FOUND);
    T_EQ(il__ingest_validator_get(g, T_TENANT, v[0].url, &mem, &found, &err), IL_NOT_FOUND);
    T_EQ(il__ingest_event_make(g, &w, "1", T_SLUG, NULL, id, NULL, &err), IL_OK);
    T_EQ(il__ingest_validator_get(g, T_TENANT, v[0].url, &mem, &found, &err), IL_OK);
    T_STREQ(found.etag, "\"a\"");
    T_STREQ(found.last_modified, "");
    T_EQ(il__ingest_validator_get(g, T_TENANT, v[1].url, &mem, &found, &err), IL_OK);
    T_STREQ(found.last_modified, "now");
    T_EQ(il__ingest_validator_get(g, "globex", v[1].url, &mem, &found, &err), IL_NOT_FOUND);
    il__arena_free(&mem);
    il_guard_close(g);
}

/* The validator of an event page is committed by the last step alone, with the depth. */
R_TEST(the_event_page_is_known_when_all_is_written)
{
    const struct ingest_validator v = { "http://x/event", "\"a\"", "" };
    const struct site_options     o = t_small_site();
    struct ingest_write           w = t_write_opts(NULL);
    struct ingest_validator       found;
    struct t_event_pages          p;
    void                         *mem = NULL;
    il_error                      err;
    char                          id[65];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    T_EQ(il__ingest_event_make(g, &w, T_EVENT, T_SLUG, NULL, id, NULL, &err), IL_OK);
    T_EQ(il__ingest_event_write(g, &w, id, p.event, p.entries, &err), IL_OK);
    w.validators   = &v;
    w.n_validators = 1;
    T_EQ(il__ingest_finish(g, &w, id, INGEST_LAPS_FULL, p.event, NULL, &err), IL_STATE);
    T_EQ(il__ingest_validator_get(g, T_TENANT, v.url, &mem, &found, &err), IL_NOT_FOUND);
    w.n_validators = 0;
    for (size_t i = 0; i < p.event->n_races; i++)
        T_EQ(il__ingest_race_write(g, &w, id, &p.event->races[i], p.races[i], &err), IL_OK);
    w.n_validators = 1;
    T_EQ(il__ingest_finish(g, &w, id, INGEST_LAPS_FULL, p.event, NULL, &err), IL_OK);
    T_EQ(il__ingest_validator_get(g, T_TENANT, v.url, &mem, &found, &err), IL_OK);
    T_STREQ(found.etag, "\"a\"");
    il__arena_free(&mem);
    t_pages_release(&p);
    il_guard_close(g);
}

R_TEST(lists_of_tracks_and_events)
{
    struct liverc_track       tracks[] = { { "b", "B" }, { "a", "A" } };
    struct liverc_tracks      list     = { tracks, 2 };
    struct liverc_event_link  events[] = { { "2", "Spring", "2026-03-01", 10, 8 },
                                           { "1", "Winter", "2025-12-01", LIVERC_NONE, 8 } };
    struct liverc_event_links links    = { events, 2 };
    struct ingest_totals      t        = { 0 };
    struct ingest_write       w        = t_write_opts(&t);
    struct ingest_event_ref  *refs     = NULL;
    const char              **slugs    = NULL;
    size_t                    n        = 0;
    void                     *mem      = NULL;
    il_error                  err;
    char                      out[4096];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    T_EQ(il__ingest_tracks_write(g, &w, &list, &err), IL_OK);
    expect_counts(&t, INGEST_TRACKS, 2, 0, 0, 0);
    tracks[0].name = "Bee";
    t              = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_tracks_write(g, &w, &list, &err), IL_OK);
    expect_counts(&t, INGEST_TRACKS, 0, 1, 1, 0);
    T_EQ(il__ingest_events_write(g, &w, "b", &links, &err), IL_OK);
    expect_counts(&t, INGEST_EVENTS, 2, 0, 0, 0);
    events[1].n_drivers = 9;
    t                   = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_events_write(g, &w, "b", &links, &err), IL_OK);
    expect_counts(&t, INGEST_EVENTS, 0, 1, 1, 0);
    /* one whose own page was ingested keeps what that said */
    (void)t_sql(g,
                "UPDATE events SET ingest_depth = 'laps_full', digest = 'x', "
                "last_ingested_at_ms = 1 WHERE source_event_id = '2'",
                out);
    events[0].name = "Other";
    T_EQ(il__ingest_events_write(g, &w, "b", &links, &err), IL_OK);
    T_STREQ(t_sql(g, "SELECT name FROM events WHERE source_event_id = '2'", out), "Spring");
    T_EQ(il__ingest_events_write(g, &w, "new", &(struct liverc_event_links){ NULL, 0 }, &err),
         IL_OK);
    T_EQ(il__ingest_track_slugs(g, T_TENANT, &mem, &slugs, &n, &err), IL_OK);
    T_TRUE(n == 3 && strcmp(slugs[0], "a") == 0 && strcmp(slugs[2], "new") == 0);
    T_EQ(il__ingest_events_since(g, T_TENANT, "b", "", 10, &mem, &refs, &n, &err), IL_OK);
    T_TRUE(n == 2 && strcmp(refs[0].name, "Spring") == 0);
    T_EQ(il__ingest_events_since(g, T_TENANT, "b", "2026-01-01", 10, &mem, &refs, &n, &err), IL_OK);
    T_EQ(n, 1);
    il__arena_free(&mem);
    il_guard_close(g);
}

/* The rules for tables of apps: the tenant leads every key. */
R_TEST(the_tenant_leads_every_key)
{
    il_guard       *g    = t_tables_open(r, &il__ingest_tables);
    AUTO_FREE char *keys = t_look_keys(g);

    T_STREQ(keys, "");
    il_guard_close(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(everything_on_the_pages_is_in_the_tables),
        R_ROW(the_same_pages_change_nothing),
        R_ROW(the_same_rows_are_not_written_again),
        R_ROW(changed_pages_overwrite),
        R_ROW(what_has_disappeared_is_removed),
        R_ROW(an_entry_listed_twice_is_one),
        R_ROW(an_event_is_found_or_made),
        R_ROW(only_a_complete_event_becomes_laps_full),
        R_ROW(a_page_of_something_else_is_refused),
        R_ROW(a_race_that_fails_leaves_the_old_one),
        R_ROW(a_stopped_race_leaves_nothing),
        R_ROW(validators_are_kept_with_their_page),
        R_ROW(the_event_page_is_known_when_all_is_written),
        R_ROW(lists_of_tracks_and_events),
        R_ROW(the_tenant_leads_every_key),
    };

    return cmocka_run_group_tests_name("ingest-persist", tests, NULL, NULL);
}
