/*
 * crash.c: an ingesting process is killed after each of its commits and in the middle of one, or is
 * stopped while another takes its place. The next ingestion leaves the tables as if nothing had
 * happened.
 */
#include <signal.h>

#include "ingest/runs.h"

#define POINTS_MAX 30

/* What an undisturbed ingestion leaves. */
static char *
undisturbed(const struct site_serve *how)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;

    t_runs_make(&g, how);
    t_engine_open(&e, &g, (struct ingest_options){ .runs_max = 1 });
    json_decref(t_run_to(&e, (struct ingest_start){ .kind = INGEST_RUN_EVENT, .tenant = T_TENANT },
                         "COMPLETED"));
    char *dump = t_dump(e.tables);
    t_engine_close(&e);
    t_runs_release(&g);
    return dump;
}

/* No race without its results, no lap without one, and no event that seems complete. */
static void
check_partial(il_guard *tables)
{
    char out[4096];

    T_STREQ(t_sql(tables, "SELECT count(*) FROM events WHERE ingest_depth <> 'none'", out), "0");
    T_STREQ(t_sql(tables,
                  "SELECT count(*) FROM races r WHERE NOT EXISTS (SELECT 1 FROM race_results s "
                  "WHERE s.tenant = r.tenant AND s.race_id = r.id)",
                  out),
            "0");
    T_STREQ(t_sql(tables,
                  "SELECT count(*) FROM race_results s WHERE s.laps_completed <> (SELECT count(*) "
                  "FROM laps l WHERE l.tenant = s.tenant AND l.race_result_id = s.id)",
                  out),
            "0");
}

/* Kill one at its n-th point. False: it had fewer. */
static bool
kill_at(const struct site_serve *how, const char *where, unsigned n, const char *expected)
{
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct t_ingester       p = { .g = &g, .where = where, .n = n, .tenant = T_TENANT };
    char                    line[T_PROC_LINE_BYTES];

    t_runs_make(&g, how);
    t_ingester_start(&p);
    T_TRUE(t_proc_line(&p.proc, "at ", T_LIMIT_MS, line) || t_proc_end(&p.proc, T_LIMIT_MS));
    bool stopped = p.proc.pid != 0;
    if (stopped) {
        t_proc_signal(&p.proc, SIGKILL);
        T_TRUE(t_proc_end(&p.proc, T_LIMIT_MS));
    }
    t_proc_release(&p.proc);
    if (stopped) {
        t_engine_open(&e, &g, (struct ingest_options){ .runs_max = 1 });
        if (strcmp(where, "committed") != 0 || n < 6)
            check_partial(e.tables);
        t_break_all(&e);
        json_decref(t_run_to(&e,
                             (struct ingest_start){ .kind = INGEST_RUN_EVENT, .tenant = T_TENANT },
                             "COMPLETED"));
        char *dump = t_dump(e.tables);
        t_same_lines("after a crash", dump, expected);
        free(dump);
        T_EQ(t_leases(&e), 0);
        t_engine_close(&e);
    }
    t_runs_release(&g);
    return stopped;
}

static void
killed_at_every_commit(void **state)
{
    struct site_serve how      = t_site_small();
    char             *expected = undisturbed(&how);
    unsigned          n        = 1;

    (void)state;
    while (kill_at(&how, "committed", n, expected))
        n++;
    /* the event's row; event and entries; three races; links; depth */
    T_EQ(n - 1, 7);
    T_TRUE(kill_at(&how, "statement", 12, expected)); /* within a race */
    free(expected);
}

/* A process is paused before it writes a race. Its leases end, another one ingests the event; when
 * it goes on, its write is refused, and so is its end. */
static void
paused_and_resumed(void **state)
{
    struct site_serve       how = t_site_small();
    struct t_ground_of_runs g;
    struct t_engine_of_runs e;
    struct t_ingester       p = { .g = &g, .where = "race", .n = 2, .tenant = T_TENANT };
    char                    line[T_PROC_LINE_BYTES];

    (void)state;
    t_runs_make(&g, &how);
    t_ingester_start(&p);
    T_LINE(&p.proc, "at race", T_LIMIT_MS, line);
    t_proc_stop_outside(&p.proc, g.store, T_LIMIT_MS);
    t_engine_open(&e, &g, (struct ingest_options){ .runs_max = 1 });
    t_break_all(&e);
    json_decref(t_run_to(&e, (struct ingest_start){ .kind = INGEST_RUN_EVENT, .tenant = T_TENANT },
                         "COMPLETED"));
    char *before = t_dump(e.tables), *ids = t_dump_ids(e.tables);
    t_proc_say(&p.proc, "go on");
    t_proc_signal(&p.proc, SIGCONT);
    T_LINE(&p.proc, "ended", T_LIMIT_MS, line);
    T_TRUE(strstr(line, "COMPLETED") == NULL);
    T_EQ(t_proc_exit(&p.proc, T_LIMIT_MS), 0);
    t_proc_release(&p.proc);
    char *after = t_dump(e.tables), *ids_after = t_dump_ids(e.tables);
    t_same_lines("after the late writer", after, before);
    t_same_lines("ids after the late writer", ids_after, ids);
    free(before);
    free(after);
    free(ids);
    free(ids_after);
    t_engine_close(&e);
    t_runs_release(&g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_commit),
        cmocka_unit_test(paused_and_resumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
