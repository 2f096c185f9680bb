/*
 * values.c: single values of pages: texts, times, dates, session types, names and their matching.
 */
#include <math.h>

#include "ingest/page.h"

static void
normal(const char *text, const char *expected)
{
    AUTO_BUF struct il__buf out = { 0 };

    il__buf_init(&out, 4096);
    T_TRUE(il__liverc_normalise(text, strlen(text), &out) && !out.failed);
    T_STREQ(il__buf_str(&out), expected);
}

U_TEST(texts)
{
    normal("", "");
    normal("  a \t\r\n b  ", "a b");
    normal("a\xC2\xA0"
           "b",
           "a b");                                     /* nbsp */
    normal("\xC2\xA0 \xE3\x80\x80x\xE2\x80\xA8", "x"); /* ideographic space, line separator */
    normal("\xEF\xBC\xA1\xEF\xBC\x91", "A1");          /* full width */
    normal("\xEF\xAC\x81t", "fit");                    /* ligature */
    normal("e\xCC\x81", "\xC3\xA9");                   /* composed */
    normal("a\xE2\x80\x8B"
           "b\xC2\xAD",
           "ab"); /* zero width space, soft hyphen */
    normal("\x01 a\x7F"
           "b",
           "a b");
}

static void
upper(const char *text, const char *expected)
{
    AUTO_BUF struct il__buf out = { 0 };

    il__buf_init(&out, 4096);
    il__liverc_upper(text, &out);
    T_STREQ(il__buf_str(&out), expected);
}

U_TEST(upper_case)
{
    upper("Riley Lander 1", "RILEY LANDER 1");
    upper("Andr\xC3\xA9", "ANDR\xC3\x89");
}

static int64_t
time_ms(const char *text)
{
    int64_t ms = 0;

    return il__liverc_time_ms(text, &ms) ? ms : LIVERC_NONE;
}

U_TEST(times)
{
    T_EQ(time_ms("38.17"), 38170);
    T_EQ(time_ms("38.1"), 38100);
    T_EQ(time_ms("38"), 38000);
    T_EQ(time_ms("0.000"), 0);
    T_EQ(time_ms("1:23.45"), 83450);
    T_EQ(time_ms("1:23:45.67"), 5025670);
    T_EQ(time_ms("112.036"), 112036);
    T_EQ(time_ms("38.1234"), 38123);
    T_EQ(time_ms("38.1235"), 38124);
    T_EQ(time_ms("59.9996"), 60000);
    static const char *const bad[] = {
        "",   "-1", ".5",  "1.",  "1:",   "1:60",       "1:2:3:4", "1,5",   "12.3 s",
        " 1", "1 ", "nan", "1e3", "0x10", "9999999999", "1:2:",    "1.2.3", "1.1234567890"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (time_ms(bad[i]) != LIVERC_NONE)
            T_FAIL("'%s' is taken for a time", bad[i]);
    }
}

U_TEST(laps_and_times)
{
    int32_t laps = 0;
    int64_t ms   = 0;

    T_TRUE(il__liverc_laps_time("47/30:31.382", &laps, &ms));
    T_EQ(laps, 47);
    T_EQ(ms, 1831382);
    T_TRUE(il__liverc_laps_time("47/1:00:31.382", &laps, &ms));
    T_EQ(ms, 3631382);
    T_TRUE(il__liverc_laps_time("0", &laps, &ms));
    T_EQ(laps, 0);
    T_EQ(ms, LIVERC_NONE);
    T_TRUE(il__liverc_laps_time("0/0:00.000", &laps, &ms));
    T_EQ(ms, LIVERC_NONE);
    T_TRUE(!il__liverc_laps_time("", &laps, &ms));
    T_TRUE(!il__liverc_laps_time("-1/3.0", &laps, &ms));
    T_TRUE(!il__liverc_laps_time("47/", &laps, &ms));
    T_TRUE(!il__liverc_laps_time("47 laps", &laps, &ms));
}

U_TEST(numbers)
{
    int32_t n     = 0;
    int64_t milli = 0;

    T_TRUE(il__liverc_count("4,129", &n));
    T_EQ(n, 4129);
    T_TRUE(il__liverc_count("999999999", &n));
    T_TRUE(!il__liverc_count("9999999999", &n));
    T_TRUE(!il__liverc_count("", &n));
    T_TRUE(!il__liverc_count(",1", &n));
    T_TRUE(!il__liverc_count("1,", &n));
    T_TRUE(!il__liverc_count("1a", &n));
    T_TRUE(il__liverc_milli("92.82%", &milli));
    T_EQ(milli, 92820);
    T_TRUE(il__liverc_milli("100", &milli));
    T_EQ(milli, 100000);
    T_TRUE(!il__liverc_milli("-3%", &milli));
}

static void
days(const char *text, const char *first, const char *last)
{
    char a[LIVERC_DATE_BYTES] = "", b[LIVERC_DATE_BYTES] = "";

    bool good = il__liverc_days(text, a, b);
    T_STREQ(good ? a : "", first);
    T_STREQ(good ? b : "", last);
}

U_TEST(dates)
{
    days("Nov 16, 2025", "2025-11-16", "2025-11-16");
    days("Mar 5, 2026 to Mar 8, 2026", "2026-03-05", "2026-03-08");
    days("Dec 30, 2025 to Jan 2, 2026", "2025-12-30", "2026-01-02");
    days("november 3, 2025", "2025-11-03", "2025-11-03");
    days("Feb 29, 2024", "2024-02-29", "2024-02-29");
    days("Feb 29, 2025", "", "");
    days("Mar 8, 2026 to Mar 5, 2026", "", "");
    days("Nov 0, 2025", "", "");
    days("16/11/2025", "", "");
    days("Nov 16, 2025 to", "", "");
    days("", "", "");
}

static void
completed(const char *text, const char *expected)
{
    char out[LIVERC_TIME_BYTES] = "";

    T_STREQ(il__liverc_completed(text, out) ? out : "", expected);
}

U_TEST(completion_times)
{
    completed("Nov 16, 2025 at 5:30pm", "2025-11-16T17:30:00");
    completed("Nov 16, 2025 at 5pm", "2025-11-16T17:00:00");
    completed("Nov 16, 2025 at 12:05am", "2025-11-16T00:05:00");
    completed("Nov 16, 2025 at 12pm", "2025-11-16T12:00:00");
    completed("Nov 16, 2025 at 9:07 AM", "2025-11-16T09:07:00");
    completed("Nov 16, 2025", "2025-11-16");
    completed("Nov 16, 2025 at 13:00pm", "");
    completed("Nov 16, 2025 at 5:60pm", "");
    completed("Nov 16, 2025 5pm", "");
    completed("soon", "");
}

static void
session(const char *section, const char *label, const char *url, const char *expected)
{
    T_STREQ(il__liverc_sessions[il__liverc_session(section, label, url)], expected);
}

U_TEST(session_types)
{
    session("Seeding Round 1", "Buggy A-Main", "", "seeding");
    session("Practice Round 2", "Buggy", "", "practice");
    session("Practice Rankings", "Buggy A-Main", "", "main");
    session("Practice Rankings", "Buggy", "", "race");
    session("Qualifier Round 3", "Buggy (Heat 1/2)", "", "qualifying");
    session("Qualifying", "Buggy", "", "qualifying");
    session("Main Events", "Buggy Practice", "", "practice");
    session("Main Events", "Buggy", "/practice/?p=view_session&id=1", "practice");
    session("", "Buggy Qualifying", "", "qualifying");
    session("", "Buggy Q1", "", "qualifying");
    session("", "Q3 Buggy", "", "qualifying");
    session("", "Buggy Q4", "", "race");
    session("", "Buggy Q12", "", "race");
    session("Main Events", "1/8 Nitro Buggy A-Main", "", "main");
    session("", "Buggy Heat 2", "", "heat");
    session("Main Events", "Buggy", "", "race");
}

U_TEST(event_names)
{
    const char *club = "Canberra Off Road Model Car Club";
    const char *meet = "Cormcc 2025 Rudi Wensing Memorial, Clay Cup";

    T_STREQ(il__liverc_event_name(club, meet), meet);
    T_STREQ(il__liverc_event_name(club, ""), club);
    T_STREQ(il__liverc_event_name("", meet), meet);
    T_STREQ(il__liverc_event_name("", ""), "");
    /* much in common, but another year: the page keeps the meet's old name */
    T_STREQ(il__liverc_event_name("Clay Cup Series 2026", "CLAY CUP series 2025"),
            "Clay Cup Series 2026");
    T_STREQ(il__liverc_event_name("Clay Cup Series 2025", "Clay Cup series 2025 Final"),
            "Clay Cup series 2025 Final");
    T_STREQ(il__liverc_event_name("Clay Cup Series", "Clay Cup series 2025"),
            "Clay Cup series 2025");
}

U_TEST(synthetic_ids)
{
    char id[LIVERC_DRIVER_ID_BYTES], other[LIVERC_DRIVER_ID_BYTES];

    T_EQ(il__liverc_load(&t_error), IL_OK);
    il__liverc_synthetic_id("canberraoffroad", "RILEY LANDER", NULL, id);
    T_STREQ(id, "synthetic-44bc992c73330dc6");
    il__liverc_synthetic_id("canberraoffroad", "RILEY LANDER", "7", other);
    T_TRUE(strcmp(id, other) != 0);
}

/* ---- matching -------------------------------------------------------------------------------- */

static void
match_name(const char *name, const char *expected)
{
    AUTO_BUF struct il__buf out = { 0 };

    il__buf_init(&out, 4096);
    il__liverc_match_name(name, &out);
    T_TRUE(!out.failed);
    T_STREQ(il__buf_str(&out), expected);
}

U_TEST(match_names)
{
    match_name("BRIGUGLIO, MICHAEL", "briguglio michael");
    match_name("Michael Briguglio", "briguglio michael");
    match_name("O'LOUGHLIN, MATTHEW", "matthew oloughlin");
    match_name("  12   Jayson   BRENTON ", "brenton jayson");
    match_name("Smith & Sons", "and smith sons");
    match_name("Smith&Sons", "and smith sons");
    match_name("Smith RC Raceway Inc.", "smith");
    match_name("Team Smith", "smith team");
    match_name("Club", "club");
    match_name("42", "42");
    match_name("ann ann lee", "ann lee");
    match_name("ANDR\xC3\x89 M\xC3\x9CLLER", "andr\xC3\xA9 m\xC3\xBCller");
    match_name("", "");
    match_name("...", "");
}

static void
similar(const char *a, const char *b, double expected)
{
    double score = il__liverc_similarity(a, b);

    if (fabs(score - expected) > 0.00005 || score != il__liverc_similarity(b, a))
        T_FAIL("'%s' and '%s': %.6f, not %.4f", a, b, score, expected);
}

U_TEST(similarities)
{
    similar("martha", "marhta", 0.9611);
    similar("brenton jayson", "brenton jason", 0.9857); /* as match_names() gives them */
    similar("dwayne", "duane", 0.84);
    similar("dixon", "dicksonx", 0.8133);
    similar("same", "same", 1);
    similar("abc", "xyz", 0);
    similar("", "", 1);
    similar("a", "", 0);
    similar("abcd", "aefg", 0.5); /* below 0.7: no bonus for the common prefix */
}

static const char *
link_state(const struct liverc_likeness *l)
{
    double score;

    return il__liverc_links[il__liverc_link(l, &score)];
}

U_TEST(links)
{
    struct liverc_likeness exact       = { .same_name = true, .score = 1 };
    struct liverc_likeness close       = { .score = 0.95 };
    struct liverc_likeness near        = { .score = 0.85 };
    struct liverc_likeness far         = { .score = 0.8499 };
    struct liverc_likeness transponder = { .same_transponder     = true,
                                           .n_transponder_events = 1,
                                           .score                = 0.5 };
    struct liverc_likeness twice       = { .same_transponder     = true,
                                           .n_transponder_events = 2,
                                           .score                = 0.85 };
    double                 score;

    T_STREQ(link_state(&exact), "confirmed");
    T_STREQ(link_state(&close), "confirmed");
    T_STREQ(link_state(&near), "suggested");
    T_STREQ(link_state(&far), "none");
    T_STREQ(link_state(&transponder), "suggested");
    T_EQ(il__liverc_link(&transponder, &score), LIVERC_LINK_SUGGESTED);
    T_TRUE(score == 1);
    T_STREQ(link_state(&twice), "confirmed");
    twice.score = 0.84;
    T_STREQ(link_state(&twice), "suggested");
}

U_TEST(comparisons)
{
    struct liverc_likeness l =
        il__liverc_compare("briguglio michael", "123", "briguglio michael", "123");

    T_TRUE(l.same_name && l.same_transponder && l.n_transponder_events == 1);
    l = il__liverc_compare("a b", "", "a c", "");
    T_TRUE(!l.same_name && !l.same_transponder);
    l = il__liverc_compare("", NULL, "", NULL);
    T_TRUE(!l.same_name && l.score == 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(texts),
        U_ROW(upper_case),
        U_ROW(times),
        U_ROW(laps_and_times),
        U_ROW(numbers),
        U_ROW(dates),
        U_ROW(completion_times),
        U_ROW(session_types),
        U_ROW(event_names),
        U_ROW(synthetic_ids),
        U_ROW(match_names),
        U_ROW(similarities),
        U_ROW(links),
        U_ROW(comparisons),
    };

    T_EQ(il__liverc_load(&t_error), IL_OK);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
