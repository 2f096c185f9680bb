/*
 * links.c: users from CSV, and which drivers they are matched with, on each database.
 */
#include "apps/ingest/links.h"

#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "harness/event.h"
#include "harness/postgres.h"
#include "ingest/data.h"

#define N_MAX 128
#define N_USERS 4000

/* An event of one race, with these drivers. */
struct driver {
    const char *id, *name, *transponder;
};

/* All but the matching; its id is left in `id`. */
static void
write_event(il_guard *g, const char *source_id, const struct driver *drivers, size_t n,
            char id[INGEST_EVENT_ID_BYTES_MAX + 1])
{
    struct liverc_result results[N_MAX];
    struct liverc_entry  entries[N_MAX];
    char                 race_id[32];
    T_EQ(snprintf(race_id, sizeof race_id, "%s1", source_id) > 0, 1);
    struct liverc_race_link link = {
        .id = race_id, .url = "/x", .section = "", .class_name = "Junior", .label = "A", .order = 1
    };
    struct liverc_event      event = { .id        = source_id,
                                       .name      = "E",
                                       .club      = "",
                                       .meet      = "E",
                                       .first_day = "2026-01-01",
                                       .last_day  = "2026-01-01",
                                       .races     = &link,
                                       .n_races   = 1,
                                       .digest    = "d" };
    struct liverc_race       race  = { .id        = race_id,
                                       .label     = "",
                                       .round     = "",
                                       .length    = "",
                                       .length_ms = LIVERC_NONE,
                                       .results   = results,
                                       .n_results = n,
                                       .digest    = "r" };
    struct liverc_entry_list list  = { entries, n, 1 };
    struct ingest_write      w     = t_write_opts(NULL);
    il_error                 err   = { .message = "" };

    for (size_t i = 0; i < n; i++) {
        results[i] = (struct liverc_result){ .position          = (int32_t)i + 1,
                                             .car_number        = "",
                                             .name              = drivers[i].name,
                                             .upper_name        = drivers[i].name,
                                             .qualified         = LIVERC_NONE,
                                             .total_ms          = LIVERC_NONE,
                                             .behind_ms         = LIVERC_NONE,
                                             .behind_laps       = LIVERC_NONE,
                                             .fastest_ms        = LIVERC_NONE,
                                             .fastest_lap       = LIVERC_NONE,
                                             .average_ms        = LIVERC_NONE,
                                             .consistency_milli = LIVERC_NONE };
        (void)snprintf(results[i].driver_id, sizeof results[i].driver_id, "%s", drivers[i].id);
        entries[i] = (struct liverc_entry){ "Junior", "", drivers[i].name, drivers[i].name,
                                            drivers[i].transponder };
    }
    if (il__ingest_event_make(g, &w, source_id, T_SLUG, NULL, id, NULL, &err) != IL_OK ||
        il__ingest_event_write(g, &w, id, &event, &list, &err) != IL_OK ||
        il__ingest_race_write(g, &w, id, &link, &race, &err) != IL_OK ||
        il__ingest_finish(g, &w, id, INGEST_LAPS_FULL, &event, NULL, &err) != IL_OK)
        T_FAIL("event %s: %s", source_id, err.message);
}

static void
ingest(il_guard *g, const char *source_id, const struct driver *drivers, size_t n)
{
    const struct ingest_write w   = t_write_opts(NULL);
    il_error                  err = { .message = "" };
    char                      id[INGEST_EVENT_ID_BYTES_MAX + 1];

    write_event(g, source_id, drivers, n, id);
    if (il__ingest_match(g, &w, id, &err) != IL_OK)
        T_FAIL("event %s: %s", source_id, err.message);
}

static void
add_users(il_guard *g, const struct ingest_user *users, size_t n)
{
    struct ingest_write w = t_write_opts(NULL);
    il_error            err;

    T_EQ(il__liverc_load(&err), IL_OK);
    if (il__ingest_users_write(g, &w, users, n, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

/* The link of a driver: "email state score rival". */
static void
expect_link(il_guard *g, const char *source_driver_id, const char *expected)
{
    char sql[512], out[4096];

    (void)snprintf(sql, sizeof sql,
                   "SELECT u.email || ' ' || k.state || ' ' || k.score_milli || ' ' || "
                   "coalesce(o.email, '-') FROM user_driver_links k "
                   "JOIN drivers d ON d.tenant = k.tenant AND d.id = k.driver_id "
                   "JOIN users u ON u.tenant = k.tenant AND u.id = k.user_id "
                   "LEFT JOIN users o ON o.tenant = k.tenant AND o.id = k.rival_id "
                   "WHERE d.source_driver_id = '%s'",
                   source_driver_id);
    T_STREQ(t_sql(g, sql, out), expected);
}

/* ---- matching -------------------------------------------------------------------------------- */

R_TEST(names_and_transponders_make_links)
{
    const struct ingest_user users[]   = { { "michael@x.org", "Michael Briguglio", NULL },
                                           { "jason@x.org", "Jason Brenton", "" },
                                           { "martin@x.org", "Martin Smithe", "" },
                                           { "tom@x.org", "Tom Nobody", "777" } };
    const struct driver      drivers[] = { { "1", "BRIGUGLIO, MICHAEL", NULL },
                                           { "2", "JAYSON BRENTON", NULL },
                                           { "3", "MARTA SMITH", NULL },
                                           { "4", "SOMEBODY ELSE", "777" },
                                           { "5", "QUITE DIFFERENT", "778" } };

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    add_users(g, users, ARRAY_LEN(users));
    ingest(g, "100", drivers, ARRAY_LEN(drivers));
    expect_link(g, "1", "michael@x.org confirmed 1000 -");
    expect_link(g, "2", "jason@x.org confirmed 986 -");
    double score = il__liverc_similarity("martin smithe", "marta smith");
    T_TRUE(score >= LIVERC_SCORE_SUGGESTED && score < LIVERC_SCORE_CONFIRMED);
    char text[64];
    (void)snprintf(text, sizeof text, "martin@x.org suggested %d -", (int)(score * 1000 + 0.5));
    expect_link(g, "3", text);
    expect_link(g, "4", "tom@x.org suggested 1000 -");
    expect_link(g, "5", "");
    AUTO_FREE char *before = t_dump(g);
    T_HAS(before, "seen 100 1 michael@x.org exact 1000 -");
    T_HAS(before, "seen 100 4 tom@x.org transponder 1000 777");
    ingest(g, "100", drivers, ARRAY_LEN(drivers));
    AUTO_FREE char *after = t_dump(g);
    t_same_lines("again", after, before);
    il_guard_close(g);
}

R_TEST(a_transponder_in_two_events_confirms)
{
    const struct ingest_user users[]   = { { "martin@x.org", "Martin Smithe", "555" },
                                           { "tom@x.org", "Tom Nobody", "777" } };
    const struct driver      drivers[] = { { "3", "MARTA SMITH", "555" },
                                           { "4", "SOMEBODY ELSE", "777" } };

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    add_users(g, users, ARRAY_LEN(users));
    ingest(g, "100", drivers, ARRAY_LEN(drivers));
    expect_link(g, "3", "martin@x.org suggested 1000 -");
    ingest(g, "100", drivers, ARRAY_LEN(drivers)); /* the same event counts once */
    expect_link(g, "3", "martin@x.org suggested 1000 -");
    ingest(g, "101", drivers, ARRAY_LEN(drivers));
    expect_link(g, "3", "martin@x.org confirmed 1000 -");
    expect_link(g, "4", "tom@x.org suggested 1000 -"); /* the names have nothing in common */
    il_guard_close(g);
}

/* A second connection matches another event of the same driver, from the n-th statement of the
 * first one on. */
struct matching {
    const struct t_rig *r;
    il_guard           *g;
    char                id[INGEST_EVENT_ID_BYTES_MAX + 1];
    int                 n; /* statements of the first one until then */
    struct t_event      compared, done;
    unsigned            n_blocked; /* of all rounds: it had to wait for the first one */
    pthread_t           thread;
    il_status           status;
};

static bool
note_call(void *cookie)
{
    struct matching *m = cookie;

    t_event_add(&m->compared);
    return true;
}

static void *
match_it(void *arg)
{
    struct matching    *m = arg;
    struct ingest_write w = t_write_opts(NULL);

    w.go_on   = note_call;
    w.cookie  = m;
    m->status = il__ingest_match(m->g, &w, m->id, NULL);
    t_event_add(&m->done);
    return NULL;
}

/* Does a session that uses these tables wait for a lock? */
static bool
is_blocked(const struct t_rig *r)
{
    char sql[512], out[T_PG_TEXT_BYTES];

    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT k.pid "
                   "FROM pg_locks k JOIN pg_class c ON c.oid = k.relation "
                   "WHERE c.relnamespace = '%s_ingest'::regnamespace)",
                   r->schema);
    return strcmp(t_postgres_ask(r->server, sql, out), "0") != 0;
}

/* The second one gets as far as it can: to its end, or to a lock of the first one. On SQLite that
 * is the beginning of its transaction, right after it has compared the names. */
static bool
start_second(void *cookie)
{
    struct matching *m = cookie;

    if (--m->n != 0)
        return true;
    T_EQ(pthread_create(&m->thread, NULL, match_it, m), 0);
    if (!m->r->is_postgres) {
        T_WAIT(&m->compared, 1, R_LIMIT_MS);
        return true;
    }
    while (!t_event_wait(&m->done, 1, 5)) {
        if (is_blocked(m->r)) {
            m->n_blocked++;
            break;
        }
    }
    return true;
}

/* Of two events that are matched at once, one is evidence for the other, wherever the second one
 * begins. */
R_TEST(two_events_at_once_confirm)
{
    const struct ingest_user users[]   = { { "martin@x.org", "Martin Smithe", "555" } };
    const struct driver      drivers[] = { { "3", "MARTA SMITH", "555" } };
    struct matching          second    = { .r = r, .g = t_tables_open(r, &il__ingest_tables) };
    struct ingest_write      w         = t_write_opts(NULL);
    il_guard                *g         = t_tables_open(r, &il__ingest_tables);
    char                     id[INGEST_EVENT_ID_BYTES_MAX + 1], out[4096];
    int                      n;

    add_users(g, users, ARRAY_LEN(users));
    write_event(g, "100", drivers, ARRAY_LEN(drivers), id);
    write_event(g, "101", drivers, ARRAY_LEN(drivers), second.id);
    T_EQ(il_guard_connect(second.g, NULL), IL_OK);
    w.go_on  = start_second;
    w.cookie = &second;
    for (n = 1; second.n <= 0; n++) { /* > 0: the first one had no n-th statement */
        (void)t_sql(g, "DELETE FROM user_driver_links", out);
        (void)t_sql(g, "DELETE FROM event_driver_links", out);
        t_event_init(&second.compared);
        t_event_init(&second.done);
        second.n = n;
        T_EQ(il__ingest_match(g, &w, id, NULL), IL_OK);
        if (second.n <= 0) {
            T_EQ(pthread_join(second.thread, NULL), 0);
            T_EQ(second.status, IL_OK);
            expect_link(g, "3", "martin@x.org confirmed 1000 -");
        }
        t_event_release(&second.compared);
        t_event_release(&second.done);
    }
    T_TRUE(n > 6);
    T_TRUE(second.n_blocked > 0 || !r->is_postgres);
    il_guard_close(second.g);
    il_guard_close(g);
}

/* A name of letters that follow from a number, so that no two names are alike. */
static void
make_name(char out[16], uint64_t seed)
{
    for (size_t i = 0; i < 15; i++) {
        seed   = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (char)('a' + (seed >> 33) % 26);
    }
    out[15] = '\0';
}

/* Thousands of users with transponders: each driver finds the two who have the driver's. */
R_TEST(a_large_tenant_is_matched)
{
    struct text {
        char name[16], email[32], transponder[16];
    };
    AUTO_FREE struct text        *texts = calloc(N_USERS, sizeof *texts);
    AUTO_FREE struct ingest_user *users = calloc(N_USERS, sizeof *users);
    char                          names[N_MAX][16], ids[N_MAX][16];
    struct driver                 drivers[N_MAX];
    char                          out[4096];

    T_TRUE(texts != NULL && users != NULL);
    for (unsigned i = 0; i < N_USERS; i++) {
        struct text *t = &texts[i];
        make_name(t->name, i + 1);
        (void)snprintf(t->email, sizeof t->email, "u%u@x.org", i);
        (void)snprintf(t->transponder, sizeof t->transponder, "%u", i / 2);
        users[i] = (struct ingest_user){ t->email, t->name, t->transponder };
    }
    for (unsigned i = 0; i < N_MAX; i++) {
        make_name(names[i], 1000000 + i);
        (void)snprintf(ids[i], sizeof ids[i], "%u", i + 1);
        drivers[i] = (struct driver){ ids[i], names[i], texts[20 * i].transponder };
    }
    drivers[7].name = texts[140].name; /* this one's name is known as well */

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    add_users(g, users, N_USERS);
    ingest(g, "100", drivers, N_MAX);
    T_STREQ(t_sql(g,
                  "SELECT count(*) || ' ' || count(DISTINCT k.driver_id) FROM event_driver_links k "
                  "JOIN users u ON u.tenant = k.tenant AND u.id = k.user_id "
                  "AND u.transponder = k.transponder",
                  out),
            "256 128");
    expect_link(g, "8", "u140@x.org confirmed 1000 -");
    T_STREQ(t_sql(g, "SELECT count(*) FROM user_driver_links WHERE state = 'conflict'", out),
            "127");
    il_guard_close(g);
}

R_TEST(two_users_for_one_driver_are_a_conflict)
{
    const struct ingest_user first[]  = { { "a@x.org", "Tom Nobody", "777" },
                                          { "z@x.org", "Anna Berg", NULL } };
    const struct ingest_user second[] = { { "b@x.org", "Somebody Else", NULL },
                                          { "c@x.org", "Berg, Anna", NULL } };
    const struct ingest_user twins[]  = { { "d@x.org", "Eva Lund", NULL },
                                          { "e@x.org", "Lund Eva", NULL } };
    const struct driver drivers[] = { { "4", "SOMEBODY ELSE", "777" }, { "5", "ANNA BERG", NULL } };
    const struct driver more[]    = { { "6", "EVA LUND", NULL } };
    char                out[4096];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    add_users(g, first, ARRAY_LEN(first));
    ingest(g, "100", drivers, ARRAY_LEN(drivers));
    expect_link(g, "4", "a@x.org suggested 1000 -");
    expect_link(g, "5", "z@x.org confirmed 1000 -");
    add_users(g, second, ARRAY_LEN(second));
    ingest(g, "101", drivers, ARRAY_LEN(drivers));
    expect_link(g, "4", "a@x.org conflict 1000 b@x.org");
    expect_link(g, "5", "z@x.org confirmed 1000 -"); /* untouched */
    add_users(g, twins, ARRAY_LEN(twins));
    ingest(g, "102", more, ARRAY_LEN(more));
    T_STREQ(t_sql(g,
                  "SELECT k.state FROM user_driver_links k JOIN drivers d ON d.id = k.driver_id "
                  "WHERE d.source_driver_id = '6'",
                  out),
            "conflict");
    il_guard_close(g);
}

/* ---- decisions ------------------------------------------------------------------------------- */

struct seen {
    char     ids[N_MAX][64], states[N_MAX][16];
    unsigned n;
};

static bool
see(void *cookie, const struct ingest_link *link)
{
    struct seen *s = cookie;

    T_TRUE(s->n < N_MAX);
    (void)snprintf(s->ids[s->n], sizeof s->ids[0], "%s", link->id);
    (void)snprintf(s->states[s->n++], sizeof s->states[0], "%s", link->state);
    return true;
}

R_TEST(a_decision_stays)
{
    const struct ingest_user users[] = { { "a@x.org", "Tom Nobody", "777" },
                                         { "b@x.org", "Anna Berg", NULL } };
    const struct driver drivers[] = { { "4", "SOMEBODY ELSE", "777" }, { "5", "ANNA BERG", NULL } };
    struct ingest_write w         = t_write_opts(NULL);
    struct seen         all = { .n = 0 }, some = { .n = 0 }, set = { .n = 0 };
    il_error            err;

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    add_users(g, users, ARRAY_LEN(users));
    ingest(g, "100", drivers, ARRAY_LEN(drivers));
    T_EQ(il__ingest_links_list(g, T_TENANT, NULL, NULL, 10, see, &all, &err), IL_OK);
    T_EQ(all.n, 2);
    T_EQ(il__ingest_links_list(g, T_TENANT, "suggested", NULL, 10, see, &some, &err), IL_OK);
    T_EQ(some.n, 1);
    T_EQ(il__ingest_links_list(g, "globex", NULL, NULL, 10, see, &set, &err), IL_OK);
    T_EQ(set.n, 0);
    for (unsigned i = 0; i < all.n; i++)
        T_EQ(il__ingest_link_set(g, &w, all.ids[i], LIVERC_LINK_REJECTED, NULL, see, &set, &err),
             IL_OK);
    T_STREQ(set.states[1], "rejected");
    ingest(g, "101", drivers, ARRAY_LEN(drivers));
    ingest(g, "102", drivers, ARRAY_LEN(drivers));
    expect_link(g, "4", "a@x.org rejected 1000 -");
    expect_link(g, "5", "b@x.org rejected 1000 -");
    T_EQ(il__ingest_link_set(g, &w, some.ids[0], LIVERC_LINK_CONFIRMED, "B@X.org", see, &set, &err),
         IL_OK);
    expect_link(g, "4", "b@x.org confirmed 1000 -");
    T_EQ(il__ingest_link_set(g, &w, some.ids[0], LIVERC_LINK_CONFIRMED, "q@x.org", see, &set, &err),
         IL_NOT_FOUND);
    T_HAS(err.message, "user q@x.org not found");
    T_EQ(il__ingest_link_set(g, &w, "nobody", LIVERC_LINK_CONFIRMED, NULL, see, &set, &err),
         IL_NOT_FOUND);
    il_guard_close(g);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

struct faults {
    char text[1024];
};

static void
fault(void *cookie, size_t line, const char *text)
{
    struct faults *f = cookie;
    size_t         n = strlen(f->text);

    (void)snprintf(f->text + n, sizeof f->text - n, "%zu: %s\n", line, text);
}

R_TEST(users_from_csv)
{
    static const char    csv[] = "\xef\xbb\xbfName;Club;EMAIL;Transponder\r\n"
                                 "\"Berg, \"\"A\"\"\";x;Anna@X.org;123\r\n"
                                 "\r\n"
                                 "  Tom  Nobody ;\"two\nlines\";tom@x.org\r\n"
                                 "Eva;;eva@x.org;\r\n";
    struct ingest_user  *users = NULL;
    struct ingest_totals t     = { 0 };
    struct ingest_write  w     = t_write_opts(&t);
    size_t               n     = 0;
    void                *mem   = NULL;
    il_error             err;
    char                 out[4096];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    T_EQ(il__ingest_users_parse(csv, sizeof csv - 1, &mem, &users, &n, NULL, NULL, &err), IL_OK);
    T_EQ(n, 3);
    T_STREQ(users[0].name, "Berg, \"A\"");
    T_STREQ(users[0].transponder, "123");
    T_STREQ(users[1].name, "Tom Nobody");
    T_EQ(il__ingest_users_write(g, &w, users, n, &err), IL_OK);
    T_EQ(t.of[INGEST_USERS].n_inserted, 3);
    users[1].name = "Tom Somebody";
    t             = (struct ingest_totals){ 0 };
    T_EQ(il__ingest_users_write(g, &w, users, n, &err), IL_OK);
    T_EQ(t.of[INGEST_USERS].n_updated, 1);
    T_EQ(t.of[INGEST_USERS].n_unchanged, 2);
    T_STREQ(t_sql(g, "SELECT email || match_name FROM users WHERE transponder IS NOT NULL", out),
            "anna@x.orga berg");
    users[2].email = "TOM@x.org";
    T_EQ(il__ingest_users_write(g, &w, users, n, &err), IL_INVAL);
    T_HAS(err.message, "tom@x.org is listed twice");
    il__arena_free(&mem);
    il_guard_close(g);
}

static void
refused(const char *csv, size_t n_bytes, const char *expected)
{
    struct faults       f     = { "" };
    struct ingest_user *users = NULL;
    size_t              n     = 0;
    void               *mem   = NULL;
    il_error            err;

    T_EQ(il__ingest_users_parse(csv, n_bytes, &mem, &users, &n, fault, &f, &err), IL_INVAL);
    T_STREQ(f.text, expected);
    il__arena_free(&mem);
}
#define REFUSED(csv, expected) refused(csv, sizeof(csv) - 1, expected)

R_TEST(bad_lines_are_named)
{
    T_TRUE(r->place != NULL);
    REFUSED("", "1: the file is empty; expected a line with the columns email, name and "
                "transponder\n");
    REFUSED("mail,name\na@x,b\n", "1: the first line must name the columns email and name\n");
    REFUSED("email,name\n\nx,y\na@x.org,\n,z\n\"q\nr@x.org\",n\nok@x.org,ok\n",
            "3: 'x' is not an email address\n4: missing name\n5: missing email\n"
            "6: 'q\nr@x.org' is not an email address\n");
    REFUSED("email,name\na@x.org,\"open\nb@x.org,c\n", "2: unterminated quote\n");
    REFUSED("email,name\na@x.org,\"a\"bbb\n", "2: unexpected text after a closing quote\n");
    REFUSED("email,name\na@x.org,\xff\n", "");
    REFUSED("email,name\na@x.org,b\0c\n", "");
}

/* Texts of 2,000 bytes after a short quoted part: nothing may be sized by that part. */
R_TEST(long_quoted_fields)
{
    static const char *const heads[] = { "email,club,name\na@x.org,\"a\"\"",
                                         "email,club,name\na@x.org,\"a\"" };
    AUTO_FREE char          *csv     = malloc(4096);
    AUTO_FREE char          *tail    = malloc(2001);
    struct ingest_user      *users   = NULL;
    size_t                   n       = 0;
    void                    *mem     = NULL;
    il_error                 err;

    T_TRUE(r->place != NULL && csv != NULL && tail != NULL);
    memset(tail, 'b', 2000);
    tail[2000] = '\0';
    int length = snprintf(csv, 4096, "%s%s\",Anna", heads[0], tail);
    T_EQ(il__ingest_users_parse(csv, (size_t)length, &mem, &users, &n, NULL, NULL, &err), IL_OK);
    T_EQ(n, 1);
    T_STREQ(users[0].name, "Anna");
    il__arena_free(&mem);
    length = snprintf(csv, 4096, "%s%s,Anna", heads[1], tail);
    refused(csv, (size_t)length, "2: unexpected text after a closing quote\n");
}

/* However they came, users are stored as the pages of the site would print them. */
R_TEST(users_are_normalised)
{
    const struct ingest_user wide[] = { { "W@X.org", "\xef\xbc\xa1nna  Berg", " 1\xef\xbc\x92 " } };
    char                     long_name[341 * 3 + 1];
    const struct ingest_user grows[] = { { "g@x.org", long_name, NULL } };
    struct ingest_write      w       = t_write_opts(NULL);
    il_error                 err;
    char                     out[4096];

    il_guard *g = t_tables_open(r, &il__ingest_tables);
    add_users(g, wide, 1);
    T_STREQ(t_sql(g, "SELECT email || '|' || name || '|' || transponder FROM users", out),
            "w@x.org|Anna Berg|12");
    for (size_t i = 0; i < 341; i++)
        memcpy(long_name + 3 * i, "\xef\xb7\xba", 4); /* U+FDFA: 18 characters in NFKC */
    T_EQ(il__ingest_users_write(g, &w, grows, 1, &err), IL_INVAL);
    T_HAS(err.message, "a field is longer than 1024 bytes");
    il_guard_close(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        R_ROW(names_and_transponders_make_links),
        R_ROW(a_transponder_in_two_events_confirms),
        R_ROW(two_events_at_once_confirm),
        R_ROW(a_large_tenant_is_matched),
        R_ROW(two_users_for_one_driver_are_a_conflict),
        R_ROW(a_decision_stays),
        R_ROW(users_from_csv),
        R_ROW(bad_lines_are_named),
        R_ROW(long_quoted_fields),
        R_ROW(users_are_normalised),
    };

    return cmocka_run_group_tests_name("ingest-links", tests, NULL, NULL);
}
