/*
 * real.c: pages as they were saved from the site, in the folder $IL_TEST_LIVERC. They are not part
 * of the tree.
 */
#include <stdio.h>

#include "ingest/page.h"

static char body[LIVERC_BODY_BYTES_MAX];

static const char *
page(const char *name)
{
    const char *folder = getenv("IL_TEST_LIVERC");
    char        path[4096];

    T_TRUE(folder != NULL);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        T_FAIL("cannot open %s", path);
    size_t n = fread(body, 1, sizeof body - 1, file);
    T_TRUE(n > 0 && n < sizeof body - 1);
    body[n] = '\0';
    (void)fclose(file);
    return body;
}

U_TEST(event)
{
    const struct liverc_event *e = t_event(page("486677/event.html"), "486677");

    T_STREQ(e->name, "Cormcc 2025 Rudi Wensing Memorial, Clay Cup");
    T_STREQ(e->first_day, "2025-11-16");
    T_EQ(e->n_entries, 71);
    T_EQ(e->n_drivers, 60);
    T_EQ(e->n_laps, 4129);
    T_EQU(e->n_races, 32);
    T_STREQ(e->races[0].id, "6304829");
    T_STREQ(e->races[0].completed_at, "2025-11-16T17:30:00");
    T_STREQ(e->races[31].section, "Qualifier Round 1");
    T_EQ(e->races[31].session, LIVERC_SESSION_QUALIFYING);
    T_EQU(t_page.n_warnings, 0);
}

U_TEST(race)
{
    const struct liverc_race *r      = t_race(page("486677/race.6304822.html"), "6304822");
    size_t                    n_laps = 0;

    T_EQU(r->n_results, 10);
    for (size_t i = 0; i < r->n_results; i++) {
        const struct liverc_result *s = &r->results[i];
        n_laps += s->n_laps;
        T_EQ(s->n_laps, s->n_laps_completed);
        if (s->n_laps > 0)
            T_EQ(s->laps[s->n_laps - 1].elapsed_ms, s->total_ms);
    }
    T_EQU(n_laps, 96);
    T_STREQ(r->results[7].driver_id, "731648");
    T_EQU(t_page.n_warnings, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { U_ROW(event), U_ROW(race) };
    int                     failed  = cmocka_run_group_tests(tests, NULL, NULL);

    il__liverc_page_release(&t_page);
    return failed;
}
