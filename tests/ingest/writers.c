/*
 * writers.c: an ingestion is killed, refused or slow in the middle of a transaction, while others
 * read and write.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "apps/ingest/links.h"
#include "apps/ingest/query.h"
#include "base/arena.h"
#include "harness/postgres.h"
#include "harness/proc.h"
#include "ingest/data.h"

#define KEY "event:x"

/* A process that writes the first race and waits in the middle of it, at its n-th statement. */
struct writer {
    const char *url;
    int         n;
    char        event_id[INGEST_EVENT_ID_BYTES_MAX + 1];
};

/* The parent opens its handle after the fork, and before this one writes. */
static void
wait_for_word(void)
{
    char word[16];

    (void)printf("ready\n");
    (void)fflush(stdout);
    T_TRUE(fgets(word, sizeof word, stdin) != NULL);
}

static bool
wait_inside(void *cookie)
{
    struct writer *w = cookie;
    char           word[16];

    if (--w->n != 0)
        return true;
    (void)printf("inside\n");
    (void)fflush(stdout);
    return fgets(word, sizeof word, stdin) != NULL;
}

static int
write_slowly(void *arg)
{
    struct writer       *w   = arg;
    struct ingest_write  how = t_write_opts(NULL);
    struct site_options  o   = t_small_site();
    struct tables_place *p   = NULL;
    il_guard            *g   = NULL;
    il_error             err = { .message = "" };
    struct t_event_pages pages;

    o.revision = 1;
    t_pages_make(&pages, &o, T_SLUG, T_EVENT);
    how.go_on  = wait_inside;
    how.cookie = w;
    wait_for_word();
    il_status st = il__tables_place_open(w->url, NULL, true, &p, &err);
    if (st == IL_OK)
        st = il__tables_open(&il__ingest_tables, p, NULL, &g, &err);
    for (size_t i = 0; i < pages.event->n_races && st == IL_OK; i++)
        st = il__ingest_race_write(g, &how, w->event_id, &pages.event->races[i], pages.races[i],
                                   &err);
    (void)printf("%s %s\n", il_status_name(st), err.message);
    (void)fflush(stdout);
    il_guard_close(g);
    il__tables_place_close(p);
    t_pages_release(&pages);
    return st != IL_OK;
}

/* Every table lock of the sessions that write is at most ROW EXCLUSIVE. */
static void
look_at_locks(const struct t_rig *r)
{
    char sql[512], out[T_PG_TEXT_BYTES];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) || ' ' || count(*) FILTER (WHERE mode NOT IN "
                   "('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')) FROM pg_locks k "
                   "JOIN pg_class c ON c.oid = k.relation "
                   "WHERE c.relnamespace = '%s_ingest'::regnamespace",
                   r->schema);
    (void)t_postgres_ask(r->server, sql, out);
    T_HAS(out, " 0");
    T_TRUE(out[0] != '0');
}

/* Killed at any statement of a transaction: readers see what was there before, and another
 * ingestion completes it. */
R_TEST(killed_inside_a_transaction)
{
    struct site_options o = t_small_site();
    struct writer       w = { .url = r->url };
    struct t_proc       p;
    struct t_rig        other;
    char                id[INGEST_EVENT_ID_BYTES_MAX + 1];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_ingest_site(g, &o, NULL, w.event_id);
    AUTO_FREE char *before = t_dump(g);
    il_guard_close(g); /* before a fork */
    for (w.n = 3; w.n <= 13; w.n += 5) {
        t_proc_fork(&p, write_slowly, &w);
        T_LINE(&p, "ready", R_LIMIT_MS, NULL);
        g = t_tables_open(r, &il__ingest_tables);
        T_EQ(il_guard_connect(g, NULL), IL_OK); /* a new connection waits for the writer */
        t_proc_say(&p, "go");
        T_LINE(&p, "inside", R_LIMIT_MS, NULL);
        if (r->is_postgres)
            look_at_locks(r);
        AUTO_FREE char *during = t_dump(g); /* does not wait */
        t_same_lines("during", during, before);
        t_proc_signal(&p, SIGKILL);
        T_TRUE(t_proc_end(&p, R_LIMIT_MS));
        t_proc_release(&p);
        AUTO_FREE char *after = t_dump(g);
        t_same_lines("after", after, before);
        il_guard_close(g);
    }
    o.revision = 1;
    g          = t_tables_open(r, &il__ingest_tables);
    t_ingest_site(g, &o, NULL, id);
    t_rig_make(&other);
    il_guard *fresh = t_tables_open(&other, &il__ingest_tables);
    t_ingest_site(fresh, &o, NULL, id);
    AUTO_FREE char *content = t_dump(g), *expected = t_dump(fresh);
    t_same_lines("completed", content, expected);
    il_guard_close(fresh);
    il_guard_close(g);
    t_rig_release(&other);
}

/* ---- readers --------------------------------------------------------------------------------- */

static bool
count_lap(void *cookie, const struct ingest_lap_out *lap)
{
    struct ingest_result_out *r = cookie;

    r->n_laps += strcmp(lap->result_id, r->id) == 0;
    return true;
}

/* Read a race, then its laps: each is one snapshot. Every result of a race that was run has all of
 * its laps, and positions have no gaps. */
static void
read_race(il_guard *g, const char *race_id, unsigned *n_seen)
{
    struct ingest_race_out race;
    void                  *mem = NULL;
    il_error               err;

    T_EQ(il__ingest_race_get(g, T_TENANT, race_id, &mem, &race, &err), IL_OK);
    T_EQ(race.n_results, race.n_shown);
    for (size_t i = 0; i < race.n_shown; i++) {
        struct ingest_result_out *x = &race.results[i];
        T_EQ(x->position, i + 1);
        if (race.has_laps)
            T_EQ(x->n_laps, x->laps_completed);
    }
    if (race.n_shown > 0) {
        struct ingest_result_out first = { .id = race.results[0].id };
        T_EQ(il__ingest_laps_list(g, T_TENANT, race_id, count_lap, &first, &err), IL_OK);
        (*n_seen)++;
    }
    il__arena_free(&mem);
}

/* The event is laps_full only once all of its races can be seen. */
static bool
read_all(il_guard *g, const char *event_id, size_t n_races, unsigned *n_seen)
{
    struct ingest_event_out e;
    void                   *mem = NULL;
    il_error                err;

    il_status st   = il__ingest_event_get(g, T_TENANT, event_id, &mem, &e, &err);
    bool      done = false;
    T_TRUE(st == IL_OK || st == IL_NOT_FOUND);
    if (st == IL_OK) {
        T_TRUE(e.is_complete == 0 || e.n_shown == n_races);
        T_EQ(e.n_races, e.n_shown);
        done = e.is_complete != 0;
        for (size_t i = 0; i < e.n_shown; i++)
            read_race(g, e.races[i].id, n_seen);
    }
    il__arena_free(&mem);
    return done;
}

#define GIVEN_ID "readers"

static int
ingest_three_times(void *arg)
{
    const struct writer *w   = arg;
    struct ingest_write  how = t_write_opts(NULL);
    struct site_options  o   = t_small_site();
    struct tables_place *p   = NULL;
    il_guard            *g   = NULL;
    char                 id[INGEST_EVENT_ID_BYTES_MAX + 1], word[16];
    il_error             err;

    wait_for_word();
    il_status st = il__tables_place_open(w->url, NULL, true, &p, &err);
    if (st == IL_OK)
        st = il__tables_open(&il__ingest_tables, p, NULL, &g, &err);
    T_EQ(st, IL_OK);
    T_EQ(il__ingest_event_make(g, &how, T_EVENT, T_SLUG, GIVEN_ID, id, NULL, &err), IL_OK);
    for (o.revision = 0; o.revision < 3; o.revision++) {
        t_ingest_site(g, &o, NULL, id);
        (void)printf("revision\n");
        (void)fflush(stdout);
        if (fgets(word, sizeof word, stdin) == NULL)
            break;
    }
    il_guard_close(g);
    il__tables_place_close(p);
    return 0;
}

R_TEST(readers_see_whole_races)
{
    struct writer w = { .url = r->url };
    struct t_proc p;
    unsigned      n_seen = 0;

    il_guard_close(t_tables_open(r, &il__ingest_tables));
    t_proc_fork(&p, ingest_three_times, &w);
    T_LINE(&p, "ready", R_LIMIT_MS, NULL);
    il_guard *g = t_tables_open(r, &il__ingest_tables);
    t_proc_say(&p, "go");
    size_t n = t_small_site().n_races;
    for (int i = 0; i < 3; i++) {
        while (!t_proc_line(&p, "revision", 1, NULL))
            (void)read_all(g, GIVEN_ID, n, &n_seen);
        T_TRUE(read_all(g, GIVEN_ID, n, &n_seen));
        t_proc_say(&p, "go");
    }
    T_EQ(t_proc_exit(&p, R_LIMIT_MS), 0);
    T_TRUE(n_seen > 0);
    t_proc_release(&p);
    il_guard_close(g);
}

/* ---- fences ---------------------------------------------------------------------------------- */

static uint64_t
take_lease(il *h)
{
    il_acquire_opts o     = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease = NULL;
    il_error        err;

    o.wait_ms = 0;
    if (il_acquire(h, KEY, &o, &lease, &err) != IL_OK)
        T_FAIL("%s", err.message);
    uint64_t fence = il_lease_fence(lease);
    il_lease_free(lease);
    return fence;
}

/* Every write of an ingestion whose lease has passed to another one is refused. */
R_TEST(a_stale_fence_is_refused)
{
    struct site_options  o   = t_small_site();
    struct ingest_totals t   = { 0 };
    struct ingest_write  old = t_write_opts(&t), new = t_write_opts(NULL);
    struct t_event_pages p;
    il                  *h = NULL;
    il_error             err;
    char                 id[INGEST_EVENT_ID_BYTES_MAX + 1], store[T_PATH_BYTES];

    t_path(store, "sqlite:%s/leases.db", r->dir);
    T_EQ(il_open(store, NULL, &h, &err), IL_OK);
    il_guard_fence first = { .h = h, .key = KEY, .fence = take_lease(h) };
    old.fences           = &first;
    old.n_fences         = 1;
    il_guard *g          = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    t_ingest_must(g, &old, &p, T_SLUG, id);
    T_EQ(il_break(h, KEY, first.fence, "a test", IL_BREAK_NOW, &err), IL_OK);
    il_guard_fence second = { .h = h, .key = KEY, .fence = take_lease(h) };
    new.fences            = &second;
    new.n_fences          = 1;
    T_EQ(il__ingest_event_write(g, &new, id, p.event, p.entries, &err), IL_OK);
    AUTO_FREE char *before = t_dump(g);

    t_pages_release(&p);
    o.revision = 1;
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    t = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_event_make(g, &old, "5", T_SLUG, NULL, id, NULL, &err), IL_STALE);
    T_EQ(il__ingest_event_write(g, &old, id, p.event, p.entries, &err), IL_STALE);
    for (size_t i = 0; i < p.event->n_races; i++)
        T_EQ(il__ingest_race_write(g, &old, id, &p.event->races[i], p.races[i], &err), IL_STALE);
    T_EQ(il__ingest_match(g, &old, id, &err), IL_STALE);
    T_EQ(il__ingest_finish(g, &old, id, INGEST_LAPS_FULL, p.event, NULL, &err), IL_STALE);
    AUTO_FREE char *after = t_dump(g);
    t_same_lines("refused", after, before);
    T_EQ(t.of[INGEST_LAPS].n_inserted + t.of[INGEST_LAPS].n_updated, 0);
    t_ingest_must(g, &new, &p, T_SLUG, id);
    t_pages_release(&p);
    il_guard_close(g);
    il_close(h);
}

/* A transaction that takes too long is undone, and so is one whose handle is interrupted. */
static bool
interrupt(void *cookie)
{
    il_guard_interrupt(cookie);
    return true;
}

R_TEST(an_interrupted_write_leaves_nothing)
{
    struct site_options  o = t_small_site();
    struct ingest_write  w = t_write_opts(NULL);
    struct t_event_pages p;
    il_error             err;
    char                 id[INGEST_EVENT_ID_BYTES_MAX + 1];

    il_guard *g = t_tables_open(r, &il__ingest_tables), *own = t_tables_open(r, &il__ingest_tables);
    t_pages_make(&p, &o, T_SLUG, T_EVENT);
    T_EQ(il__ingest_event_make(g, &w, T_EVENT, T_SLUG, NULL, id, NULL, &err), IL_OK);
    AUTO_FREE char *before = t_dump(g);
    w.go_on                = interrupt;
    w.cookie               = own;
    T_EQ(il__ingest_race_write(own, &w, id, &p.event->races[0], p.races[0], &err), IL_CANCELLED);
    T_EQ(il__ingest_race_write(own, &w, id, &p.event->races[0], p.races[0], &err), IL_CANCELLED);
    AUTO_FREE char *after = t_dump(g);
    t_same_lines("interrupted", after, before);
    t_pages_release(&p);
    il_guard_close(own);
    il_guard_close(g);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Two connections write the same rows; those of `second` have other names. */
typedef il_status write_fn(il_guard *g, const struct ingest_write *w, unsigned round, bool second);

static il_status
write_some_tracks(il_guard *g, const struct ingest_write *w, unsigned round, bool second)
{
    char                       slugs[2][16];
    struct liverc_track        items[2];
    const struct liverc_tracks all = { .items = items, .n = 2 };
    il_error                   err;

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(slugs[i], sizeof slugs[i], "t%u-%zu", round, i);
        items[i] = (struct liverc_track){ slugs[i], second ? "Second" : "First" };
    }
    return il__ingest_tracks_write(g, w, &all, &err);
}

static il_status
write_some_events(il_guard *g, const struct ingest_write *w, unsigned round, bool second)
{
    char                            ids[2][16];
    struct liverc_event_link        items[2];
    const struct liverc_event_links all = { .items = items, .n = 2 };
    il_error                        err;

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%u%zu", round, i);
        items[i] = (struct liverc_event_link){ .id        = ids[i],
                                               .name      = second ? "Second" : "First",
                                               .first_day = "2026-01-01",
                                               .n_entries = LIVERC_NONE,
                                               .n_drivers = LIVERC_NONE };
    }
    return il__ingest_events_write(g, w, T_SLUG, &all, &err);
}

static il_status
write_some_users(il_guard *g, const struct ingest_write *w, unsigned round, bool second)
{
    char               emails[2][32];
    struct ingest_user users[2];
    il_error           err;

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(emails[i], sizeof emails[i], "%u-%zu@example.org", round, i);
        users[i] = (struct ingest_user){ emails[i], second ? "Second" : "First", NULL };
    }
    return il__ingest_users_write(g, w, users, 2, &err);
}

/* Before its n-th statement, and on SQLite, where the writer would wait for itself, before all. */
struct intruder {
    il_guard *g;
    write_fn *write;
    unsigned  round;
    int       n;
    unsigned  n_intrusions;
};

static bool
intrude(void *cookie)
{
    struct intruder          *i      = cookie;
    struct ingest_totals      totals = { 0 };
    const struct ingest_write w      = t_write_opts(&totals);

    if (--i->n == 0) {
        T_EQ(i->write(i->g, &w, i->round, false), IL_OK);
        i->n_intrusions++;
    }
    return true;
}

static void
count_beside(const struct t_rig *r, il_guard *g, il_guard *other, write_fn *write,
             enum ingest_table table)
{
    struct intruder i = { .g = other, .write = write, .n = 0 };

    for (i.round = 1; i.n <= 0; i.round++) {
        struct ingest_totals totals = { 0 };
        struct ingest_write  w      = t_write_opts(&totals);
        i.n                         = (int)i.round;
        if (r->is_postgres) {
            w.go_on  = intrude;
            w.cookie = &i;
        } else {
            i.n = 1;
            T_TRUE(intrude(&i));
        }
        T_EQ(write(g, &w, i.round, true), IL_OK);
        T_EQ(totals.of[table].n_inserted, i.n <= 0 ? 0 : 2); /* > 0: it had no n-th statement */
        T_EQ(totals.of[table].n_updated, i.n <= 0 ? 2 : 0);
        T_EQ(totals.of[table].n_unchanged, 0);
        if (!r->is_postgres)
            break;
    }
    T_TRUE(i.n_intrusions > 0);
}

/* Rows that another connection inserts while a transaction is open are not counted as its own. */
R_TEST(rows_of_others_are_not_counted)
{
    static const struct {
        write_fn         *write;
        enum ingest_table table;
    } rows[]                  = { { write_some_tracks, INGEST_TRACKS },
                                  { write_some_events, INGEST_EVENTS },
                                  { write_some_users, INGEST_USERS } };
    struct ingest_write how   = t_write_opts(NULL);
    il_guard           *g     = t_tables_open(r, &il__ingest_tables);
    il_guard           *other = t_tables_open(r, &il__ingest_tables);

    T_EQ(write_some_events(g, &how, 0, false), IL_OK); /* their track exists */
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        count_beside(r, g, other, rows[i].write, rows[i].table);
    il_guard_close(other);
    il_guard_close(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(killed_inside_a_transaction),    R_ROW(readers_see_whole_races),
        R_ROW(a_stale_fence_is_refused),       R_ROW(an_interrupted_write_leaves_nothing),
        R_ROW(rows_of_others_are_not_counted),
    };

    return cmocka_run_group_tests_name("ingest-writers", tests, NULL, NULL);
}
