/*
 * generate.c: the generated site of race results without its server: the same URL gives the same
 * page, every style occurs, sizes and limits hold, revisions change what they should.
 */
#include <stdio.h>
#include <time.h>

#include "apps/ingest/site/model.h"
#include "harness/unit.h"

/* The page at a URL; the caller releases it. */
static struct il__buf
page(const struct site_options *o, const char *url, struct site_answer *answer)
{
    struct il__buf b;

    il__buf_init(&b, SITE_TRUTH_BYTES_MAX);
    T_TRUE(il__site_page(o, url, &b, answer));
    return b;
}

static void
expect_status(const struct site_options *o, const char *url, unsigned status)
{
    struct site_answer      answer;
    AUTO_BUF struct il__buf b = page(o, url, &answer);

    if (answer.status != status)
        T_FAIL("%s: status %u, not %u", url, answer.status, status);
    T_TRUE((answer.etag[0] != '\0') == (status == 200));
}

/* Do two sets of options give the same page? */
static bool
is_same(const struct site_options *a, const struct site_options *b, const char *url)
{
    struct site_answer      answer_a, answer_b;
    AUTO_BUF struct il__buf x = page(a, url, &answer_a), y = page(b, url, &answer_b);
    bool                    same = x.n_bytes == y.n_bytes && memcmp(x.data, y.data, x.n_bytes) == 0;

    T_EQ(strcmp(answer_a.etag, answer_b.etag) == 0, same);
    return same;
}

static const char *const urls[] = {
    "/hilltoprc/events",
    "/hilltoprc/results/?p=view_event&id=100000",
    "/hilltoprc/results/?p=view_entry_list&id=100000",
    "/hilltoprc/results/?p=view_race_result&id=100000001",
    "/claypit/results/?p=view_event&id=101003",
    "/truth/site.json",
    "/truth/event/100002.json",
};

U_TEST(the_same_seed_and_url_give_the_same_bytes)
{
    struct site_options one = SITE_OPTIONS_INIT, other = SITE_OPTIONS_INIT;

    other.seed = 2;
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        T_TRUE(is_same(&one, &one, urls[i]));
        T_TRUE(!is_same(&one, &other, urls[i]));
    }
    T_TRUE(is_same(&one, &other, "/robots.txt"));
}

U_TEST(every_style_occurs)
{
    struct site_options o    = SITE_OPTIONS_INIT;
    uint64_t            seen = 0;
    struct site_event   e;
    struct site_race    r;

    for (unsigned track = 0; track < SITE_TRACKS; track++) {
        for (unsigned i = 0; i < o.n_events; i++) {
            T_TRUE(il__site_event(&o, il__site_event_id(track, i), &e));
            seen |= e.styles;
            for (unsigned j = 0; j < e.n_races; j++) {
                il__site_race(&o, &e, j, &r);
                seen |= r.styles;
            }
        }
    }
    T_EQU(seen & ((UINT64_C(1) << SITE_STYLE_COUNT) - 1), (UINT64_C(1) << SITE_STYLE_COUNT) - 1);
}

U_TEST(styles_have_names)
{
    il_error err;
    uint64_t styles = 0;

    T_EQ(il__site_styles_parse("none", &styles, &err), IL_OK);
    T_EQU(styles, 0);
    T_EQ(il__site_styles_parse("wrapped,only-h1", &styles, &err), IL_OK);
    T_EQU(styles, UINT64_C(1) << SITE_STYLE_WRAPPED | UINT64_C(1) << SITE_STYLE_ONLY_H1);
    T_EQ(il__site_styles_parse("wrapped,", &styles, &err), IL_INVAL);
    T_EQ(il__site_styles_parse("wrapped,only-h", &styles, &err), IL_INVAL);
    T_HAS(err.message, "only-h");
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static unsigned
count_laps(const struct site_options *o, struct site_event *e)
{
    AUTO_FREE struct site_results *results = il__calloc(1, sizeof *results);
    struct site_race               r;
    unsigned                       n = 0;

    CHECK(results != NULL);
    T_TRUE(il__site_event(o, il__site_large_event(), e));
    for (unsigned i = 0; i < e->n_races; i++) {
        il__site_race(o, e, i, &r);
        il__site_results(o, e, &r, results);
        for (unsigned j = 0; j < results->n; j++) {
            T_TRUE(results->rows[j].n_laps <= o->n_laps);
            n += results->rows[j].n_laps;
        }
    }
    return n;
}

U_TEST(the_large_event_is_large)
{
    struct site_options o = SITE_OPTIONS_INIT;
    struct site_event   e;

    for (o.seed = 0; o.seed < 20; o.seed++) {
        unsigned n_laps = count_laps(&o, &e);
        T_EQ(e.n_entries, 150);
        T_EQ(e.n_races, 60);
        T_TRUE(e.n_drivers < e.n_entries && e.n_drivers > 100);
        T_TRUE(n_laps > 22000 && n_laps < 36000);
    }
}

/* Whoever starts and does not retire drives at least two thirds of the maximum. */
U_TEST(finishers_drive_many_laps)
{
    struct site_options            o       = SITE_OPTIONS_INIT;
    AUTO_FREE struct site_results *results = il__calloc(1, sizeof *results);
    struct site_event              e;
    struct site_race               r;

    CHECK(results != NULL);
    T_TRUE(il__site_event(&o, il__site_large_event(), &e));
    for (unsigned i = 0; i < e.n_races; i++) {
        il__site_race(&o, &e, i, &r);
        il__site_results(&o, &e, &r, results);
        for (unsigned j = 0; j < results->n; j++) {
            const struct site_result *row = &results->rows[j];
            if (row->total_ms >= results->length_s * 1000)
                T_TRUE(row->n_laps >= 40 || row->n_laps == 0);
            T_TRUE(row->consistency <= 10000);
        }
    }
}

/* The smallest and the largest site have all their pages, within the limits. */
U_TEST(limits)
{
    struct site_options small = {
        .n_entries = 1, .n_races = 1, .n_laps = 1, .n_events = 1, .newest_day = SITE_DAY_MIN
    };
    struct site_options large = { .seed       = UINT64_MAX,
                                  .revision   = SITE_REVISION_MAX,
                                  .n_entries  = SITE_ENTRIES_MAX,
                                  .n_races    = SITE_RACES_MAX,
                                  .n_laps     = SITE_LAPS_MAX,
                                  .n_events   = SITE_EVENTS_MAX,
                                  .newest_day = SITE_DAY_MAX,
                                  .forced     = true };
    char                url[128];

    expect_status(&small, "/results/?p=view_race_result&id=100000001", 200);
    expect_status(&small, "/results/?p=view_race_result&id=100000002", 404);
    expect_status(&small, "/truth/event/100000.json", 200);
    expect_status(&small, "/results/?p=view_event&id=100001", 404);
    expect_status(&large, "/truth/event/100000.json", 200);
    expect_status(&large, "/results/?p=view_event&id=103099", 200);
    expect_status(&large, "/results/?p=view_event&id=103100", 404);
    for (unsigned i = 1; i <= SITE_RACES_MAX; i++) {
        struct site_answer      answer;
        AUTO_BUF struct il__buf b;
        il__buf_init(&b, SITE_PAGE_BYTES_MAX);
        (void)snprintf(url, sizeof url, "/results/?p=view_race_result&id=%u", 100000000 + i);
        T_TRUE(il__site_page(&large, url, &b, &answer));
        T_EQ(answer.status, 200);
    }
}

U_TEST(a_full_buffer_is_reported)
{
    struct site_options     o = SITE_OPTIONS_INIT;
    struct site_answer      answer;
    AUTO_BUF struct il__buf b;

    il__buf_init(&b, 1000);
    T_TRUE(!il__site_page(&o, urls[1], &b, &answer));
}

/* ---- URLs ------------------------------------------------------------------------------------ */

U_TEST(urls_that_exist)
{
    static const char *const found[] = {
        "/",
        "/hilltoprc/events/",
        "/hilltoprc/events?x=1",
        "/results?p=view_event&id=100000",
        "/results/?id=100000&p=view_event",
        "/results/?p=view%5Frace%5fresult&id=100000001",
        "/thebarn/results/?p=view_entry_list&id=103000",
        "/thebarn/robots.txt",
    };
    struct site_options o = SITE_OPTIONS_INIT;

    for (size_t i = 0; i < ARRAY_LEN(found); i++)
        expect_status(&o, found[i], 200);
}

U_TEST(urls_that_do_not_exist)
{
    static const char *const missing[] = {
        "",
        "x",
        "//",
        "/hilltoprc",
        "/hilltoprc/",
        "/nowhere/events",
        "/events",
        "/claypit/results/?p=view_event&id=100000", /* of another track */
        "/results/",
        "/results/?",
        "/results/?p",
        "/results/?p=view_event",
        "/results/?p=view_event&id=",
        "/results/?p=view_event&id=1e5",
        "/results/?p=view_event&id=99999",
        "/results/?p=view_event&id=99999999999999999999",
        "/results/?p=view_event&id=100000%",
        "/results/?p=view_event&id=100000%3",
        "/results/?p=view_heat_sheet&id=100000",
        "/results/?p=view_race_result&id=100000000",
        "/results/?p=view_race_result&id=100000061",
        "/results/?p=view_race_result&id=18446744073709551615",
        "/truth/",
        "/truth/event/.json",
        "/truth/event/x.json",
        "/truth/event/100000",
        "/truth/event/99999.json",
    };
    struct site_options o = SITE_OPTIONS_INIT;
    char                url[4 * SITE_URL_BYTES_MAX];

    for (size_t i = 0; i < ARRAY_LEN(missing); i++)
        expect_status(&o, missing[i], 404);
    memset(url, 'a', sizeof url);
    url[0]              = '/';
    url[sizeof url - 1] = '\0';
    expect_status(&o, url, 404);
    (void)snprintf(url, sizeof url, "/results/?p=view_event&id=%0*d", 500, 100000);
    expect_status(&o, url, 404);
}

U_TEST(robots)
{
    struct site_options o = SITE_OPTIONS_INIT;
    struct site_answer  answer;

    o.robots                     = SITE_ROBOTS_DENY;
    AUTO_BUF struct il__buf deny = page(&o, "/robots.txt", &answer);
    T_HAS(il__buf_str(&deny), "Disallow: /\n");
    o.robots = SITE_ROBOTS_NONE;
    expect_status(&o, "/robots.txt", 404);
}

/* ---- revisions ------------------------------------------------------------------------------- */

/* Each revision changes a third of the races that were run, and the event page with them. */
U_TEST(a_revision_changes_a_third_of_the_races)
{
    struct site_options before = SITE_OPTIONS_INIT, after = SITE_OPTIONS_INIT;
    char                url[128];

    for (unsigned revision = 1; revision < 8; revision++) {
        unsigned n_changed = 0;
        before.revision    = revision - 1;
        after.revision     = revision;
        for (unsigned i = 0; i < 60; i++) {
            (void)snprintf(url, sizeof url, "/results/?p=view_race_result&id=%u", 100000001 + i);
            bool changed = !is_same(&before, &after, url);
            T_EQ(changed, i % 3 == (revision - 1) % 3);
            n_changed += changed;
        }
        T_EQ(n_changed, 20);
        T_TRUE(!is_same(&before, &after, urls[1]));
        T_TRUE(is_same(&before, &after, urls[2]));
    }
}

U_TEST(a_revision_is_modified_later)
{
    struct site_options     o = SITE_OPTIONS_INIT;
    struct site_answer      answer;
    AUTO_BUF struct il__buf first = page(&o, "/", &answer);

    T_STREQ(answer.last_modified, "Thu, 01 Jan 2026 00:00:00 GMT");
    o.revision                     = 86400 + 61;
    AUTO_BUF struct il__buf second = page(&o, "/", &answer);
    T_STREQ(answer.last_modified, "Fri, 02 Jan 2026 00:01:01 GMT");
}

/* ---- text ------------------------------------------------------------------------------------ */

U_TEST(dates_are_those_of_the_calendar)
{
    for (unsigned day = 0; day <= SITE_DAY_MAX; day++) {
        AUTO_BUF struct il__buf b;
        char                    text[32];
        time_t                  at = (time_t)day * 86400;
        struct tm               tm;

        CHECK(gmtime_r(&at, &tm) != NULL);
        (void)snprintf(text, sizeof text, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                       tm.tm_mday);
        il__buf_init(&b, 64);
        il__site_add_iso_day(&b, day);
        if (strcmp(il__buf_str(&b), text) != 0)
            T_STREQ(il__buf_str(&b), text);
    }
}

static void
expect_time(uint32_t ms, const char *text)
{
    AUTO_BUF struct il__buf b;

    il__buf_init(&b, 64);
    il__site_add_time(&b, ms);
    T_STREQ(il__buf_str(&b), text);
}

U_TEST(times)
{
    expect_time(5, "0.005");
    expect_time(59999, "59.999");
    expect_time(60000, "1:00.000");
    expect_time(1831382, "30:31.382");
    expect_time(3600000, "1:00:00.000");
    expect_time(3631382, "1:00:31.382");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(the_same_seed_and_url_give_the_same_bytes),
        U_ROW(every_style_occurs),
        U_ROW(styles_have_names),
        U_ROW(the_large_event_is_large),
        U_ROW(finishers_drive_many_laps),
        U_ROW(limits),
        U_ROW(a_full_buffer_is_reported),
        U_ROW(urls_that_exist),
        U_ROW(urls_that_do_not_exist),
        U_ROW(robots),
        U_ROW(a_revision_changes_a_third_of_the_races),
        U_ROW(a_revision_is_modified_later),
        U_ROW(dates_are_those_of_the_calendar),
        U_ROW(times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
