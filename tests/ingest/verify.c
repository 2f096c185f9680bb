/*
 * verify.c: each invariant of race results passes on what an ingestion leaves, and finds what is
 * planted, on each database.
 */
#include "apps/ingest/verify.h"

#include <stdio.h>

#include "ingest/data.h"

struct offenders {
    unsigned n;
    char     first[512];
};

static int
take(void *cookie, const il_guard_row *row)
{
    struct offenders *o = cookie;

    if (o->n++ == 0)
        (void)snprintf(o->first, sizeof o->first, "%s: %s", (const char *)row->values[0].data,
                       (const char *)row->values[1].data);
    return 1;
}

static struct offenders
look(il_guard *g, const char *name, const char *tenant)
{
    struct offenders o  = { 0 };
    il_guard_tx     *tx = NULL;
    il_guard_value   v  = il_guard_text(tenant);
    il_error         err;

    for (size_t i = 0; i < INGEST_INVARIANTS; i++) {
        const struct app_invariant *own = &il__ingest_invariants[i];
        const struct app_statement  s   = { own->sqlite, own->postgres };
        if (strcmp(own->name, name) != 0)
            continue;
        T_EQ(il_guard_begin(g, NULL, &tx, &err), IL_OK);
        if (il__tables_run(tx, &s, &v, 1, take, &o, NULL, &err) != IL_OK)
            T_FAIL("%s: %s", name, err.message);
        il_guard_rollback(tx);
        return o;
    }
    T_FAIL("no invariant %s", name);
}

/* Change what no ingestion would, past the foreign keys. */
static void
plant(const struct t_rig *r, il_guard *g, const char *constraint, const char *table,
      const char *sql)
{
    char out[4096], text[T_PATH_BYTES];

    if (r->is_postgres) {
        (void)snprintf(text, sizeof text, "ALTER TABLE %s DROP CONSTRAINT %s", table, constraint);
        (void)t_sql(g, text, out);
        (void)t_sql(g, sql, out);
        return;
    }
    il_guard *raw = NULL; /* does not switch foreign keys on */
    il_error  err;
    t_path(text, "sqlite:%s/x-ingest.db", r->dir);
    T_EQ(il_guard_open(text, NULL, &raw, &err), IL_OK);
    (void)t_sql(raw, sql, out);
    il_guard_close(raw);
}

static void
expect(il_guard *g, const char *name, unsigned n, const char *part)
{
    struct offenders o = look(g, name, T_TENANT);

    if (o.n != n || (part != NULL && strstr(o.first, part) == NULL))
        T_FAIL("%s: %u offenders, first '%s'; expected %u, '%s'", name, o.n, o.first, n,
               part != NULL ? part : "");
    T_EQ(look(g, name, "globex").n, 0);
}

#define ONE_RESULT "(SELECT max(race_result_id) FROM laps)"

/* All events of the site, with pages of every style. */
R_TEST(what_an_ingestion_leaves_is_right)
{
    struct site_options  o = t_small_site();
    struct ingest_write  w = t_write_opts(NULL);
    struct t_event_pages p;
    char                 id[INGEST_EVENT_ID_BYTES_MAX + 1], source[16];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    for (unsigned i = 0; i < o.n_events; i++) {
        (void)snprintf(source, sizeof source, "%u", 100000 + i);
        t_pages_make(&p, &o, T_SLUG, source);
        if (p.event->n_races > 0)
            t_ingest_must(g, &w, &p, T_SLUG, id);
        t_pages_release(&p);
    }
    for (size_t i = 0; i < INGEST_INVARIANTS; i++)
        expect(g, il__ingest_invariants[i].name, 0, NULL);
    il_guard_close(g);
}

R_TEST(what_is_wrong_is_found)
{
    struct site_options o = t_small_site();
    char                out[4096], id[INGEST_EVENT_ID_BYTES_MAX + 1];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_ingest_site(g, &o, NULL, id);
    (void)t_sql(g, "DELETE FROM laps WHERE race_result_id = " ONE_RESULT " AND lap_number = 1",
                out);
    expect(g, "lap_count", 1, " completed");
    expect(g, "lap_numbers", 1, "numbered up to");
    expect(g, "laps_missing", 0, NULL);
    (void)t_sql(g, "DELETE FROM laps WHERE race_result_id = " ONE_RESULT, out);
    expect(g, "lap_count", 0, NULL);
    expect(g, "laps_missing", 1, "no laps");
    (void)t_sql(g,
                "UPDATE race_results SET position = position + 1 WHERE race_id = "
                "(SELECT max(id) FROM races)",
                out);
    expect(g, "position_gaps", 1, "results");
    (void)t_sql(g,
                "UPDATE race_results SET position = 1 WHERE race_id = "
                "(SELECT max(id) FROM races)",
                out);
    expect(g, "position_gaps", 1, "1 different positions");
    (void)t_sql(g,
                "INSERT INTO events SELECT tenant, 'bare', source, 'x', track_id, name, club, "
                "meet, first_day, last_day, n_entries, n_drivers, n_laps, search_text, "
                "ingest_depth, digest, last_ingested_at_ms, created_at_ms, updated_at_ms "
                "FROM events",
                out);
    expect(g, "laps_full_without_races", 1, "event bare");
    expect(g, "orphans", 0, NULL);
    plant(r, g, "laps_race_result_id_fkey", "laps",
          "INSERT INTO laps SELECT tenant, 'gone', lap_number, position, time_raw, time_ms, pace, "
          "elapsed_ms, segments FROM laps WHERE race_result_id = " ONE_RESULT);
    expect(g, "orphans", 1, "laps of result gone");
    plant(r, g, "races_event_id_fkey", "races",
          "UPDATE races SET event_id = 'gone' WHERE id = (SELECT max(id) FROM races)");
    expect(g, "orphans", 2, "");
    plant(r, g, "event_entries_driver_id_fkey", "event_entries",
          "UPDATE event_entries SET driver_id = 'gone' WHERE class_name || upper_name = "
          "(SELECT max(class_name || upper_name) FROM event_entries)");
    T_TRUE(look(g, "orphans", T_TENANT).n >= 3);
    il_guard_close(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(what_an_ingestion_leaves_is_right),
        R_ROW(what_is_wrong_is_found),
    };

    return cmocka_run_group_tests_name("ingest-verify", tests, NULL, NULL);
}
