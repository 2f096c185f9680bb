/*
 * day.c: what is pure: dates, when a day is complete, figures, money, rates, CSV, pages.
 */
#include <stdio.h>
#include <time.h>

#include "apps/usage/range_json.h"
#include "base/parse.h"
#include "harness/unit.h"

static usage_date
date_of(const char *text)
{
    usage_date date;

    if (!usage_date_parse(text, &date))
        T_FAIL("%s is no date", text);
    return date;
}

static int64_t
time_of(const char *text)
{
    int64_t ms;

    T_TRUE(il__time_parse(text, &ms));
    return ms;
}

/* Whatever the time zone of the process is. */
static void
in_every_zone(void (*check)(void))
{
    static const char *const zones[] = { "UTC", "Pacific/Kiritimati", "America/Los_Angeles",
                                         "Asia/Kolkata" };

    for (size_t i = 0; i < ARRAY_LEN(zones); i++) {
        CHECK(setenv("TZ", zones[i], 1) == 0);
        tzset();
        check();
    }
    CHECK(unsetenv("TZ") == 0);
    tzset();
}

U_TEST(dates_of_the_calendar)
{
    static const char *const bad[] = { "",           "2025-1-15",   "2025-02-29", "2025-13-01",
                                       "2025-00-10", "2025-04-31",  "2025/01/15", "2025-01-15T",
                                       "1999-12-31", "12025-01-01", "2025-01-1x", "2100-02-29" };
    char                     text[IL__DATE_TEXT_BYTES];
    usage_date               date;

    T_EQ(date_of("2000-01-01"), 10957);
    T_EQ(date_of("2024-02-29") + 1, date_of("2024-03-01"));
    T_EQ(date_of("2000-02-29") + 1, date_of("2000-03-01"));
    T_EQ(usage_date_id(date_of("2025-01-15")), 20250115);
    T_EQ(usage_date_id(date_of("9999-12-31")), 99991231);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        T_TRUE(!usage_date_parse(bad[i], &date));
    for (usage_date d = date_of("2000-01-01"); d < date_of("2101-01-01"); d++)
        T_EQ(date_of(il__date_text(d, text)), d);
}

static void
check_midnight(void)
{
    static const struct {
        const char     *date, *started;
        int64_t         grace;
        enum usage_keep keep;
    } rows[] = {
        { "2025-01-15", "2025-01-14T23:59:59.999Z", 5, USAGE_KEEP_FUTURE },
        { "2025-01-15", "2025-01-15T00:00:00Z", 5, USAGE_KEEP_TODAY },
        { "2025-01-15", "2025-01-15T23:59:59.999Z", 5, USAGE_KEEP_TODAY },
        { "2025-01-15", "2025-01-16T00:00:00Z", 5, USAGE_KEEP_GRACE },
        { "2025-01-15", "2025-01-16T00:03:00Z", 5, USAGE_KEEP_GRACE },
        { "2025-01-15", "2025-01-16T00:05:00Z", 5, USAGE_KEEP_GRACE },
        { "2025-01-15", "2025-01-16T00:05:59.999Z", 5, USAGE_KEEP_GRACE },
        { "2025-01-15", "2025-01-16T00:06:00Z", 5, USAGE_KEEP_GOOD },
        { "2025-01-15", "2025-01-16T23:59:59.999Z", 5, USAGE_KEEP_GOOD },
        { "2025-01-15", "2025-01-17T00:00:00Z", 5, USAGE_KEEP_GOOD },
        { "2025-01-15", "2025-01-16T00:01:59.999Z", 1, USAGE_KEEP_GRACE },
        { "2025-01-15", "2025-01-16T00:02:00Z", 1, USAGE_KEEP_GOOD },
        { "2025-01-15", "2025-01-16T01:00:59.999Z", 60, USAGE_KEEP_GRACE },
        { "2025-01-15", "2025-01-16T01:01:00Z", 60, USAGE_KEEP_GOOD },
        /* the end of a year and of February, and a local date that differs from that of UTC */
        { "2024-12-31", "2025-01-01T00:05:59Z", 5, USAGE_KEEP_GRACE },
        { "2024-12-31", "2025-01-01T00:06:00Z", 5, USAGE_KEEP_GOOD },
        { "2024-02-29", "2024-03-01T00:00:00Z", 5, USAGE_KEEP_GRACE },
        { "2025-01-16", "2025-01-16T10:30:00+14:00", 5, USAGE_KEEP_FUTURE },
        { "2025-01-15", "2025-01-15T16:03:00-08:00", 5, USAGE_KEEP_GRACE },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (usage_keep(date_of(rows[i].date), time_of(rows[i].started), rows[i].grace) !=
            rows[i].keep)
            T_FAIL("%s built at %s", rows[i].date, rows[i].started);
    }
}

U_TEST(complete_only_after_midnight_and_grace)
{
    in_every_zone(check_midnight);
}

U_TEST(how_long_a_day_is_fresh)
{
    const struct usage_life life = { .current_ttl_ms = 300000 }, old = { 300000, 86400000 };

    T_TRUE(usage_is_fresh(&life, false, 1000, 1000 + 299999));
    T_TRUE(!usage_is_fresh(&life, false, 1000, 1000 + 300000));
    T_TRUE(usage_is_fresh(&life, true, 0, INT64_C(1) << 50)); /* for ever */
    T_TRUE(usage_is_fresh(&old, true, 0, 86399999));
    T_TRUE(!usage_is_fresh(&old, true, 0, 86400000));
    /* clocks that differ a little; a clock that was wrong */
    T_TRUE(usage_is_fresh(&life, false, 60000, 0));
    T_TRUE(!usage_is_fresh(&life, false, 60001, 0));
    T_TRUE(!usage_is_ageing(&life, false, 0, 240000));
    T_TRUE(usage_is_ageing(&life, false, 0, 240001));
    T_TRUE(!usage_is_ageing(&life, true, 0, INT64_C(1) << 50));
    T_TRUE(usage_is_ageing(&old, true, 0, 69120001));
    T_EQ(usage_life_left(&life, false, 0, 100000), 200000);
    T_EQ(usage_life_left(&life, false, 0, 900000), 1);
    T_EQ(usage_life_left(&life, true, 0, 900000), IL_DELAY_MS_MAX);
}

/* ---- figures --------------------------------------------------------------------------------- */

static struct usage_figures
read_day(const char *text)
{
    struct usage_figures f;
    il_error             err;

    if (usage_figures_read(text, strlen(text), date_of("2025-01-15"), &f, &err) != IL_OK)
        T_FAIL("%s: %s", text, err.message);
    return f;
}

/* Beyond what a double holds exactly. */
U_TEST(large_amounts_are_exact)
{
    struct usage_figures f =
        read_day("{\"metrics\":{\"spend\":\"8999999999999.000001\"},\"by_user\":"
                 "{\"a\":{\"spend\":9e12,\"spend_micros\":8999999999999000001}}}");

    T_EQ(f.total.spend, INT64_C(8999999999999000001));
    T_EQ(f.by[USAGE_BY_USER].items[0].metrics.spend, INT64_C(8999999999999000001));
    usage_figures_release(&f);
}

U_TEST(figures_of_a_source)
{
    struct usage_figures f = read_day(
        "{\"date\":\"2025-01-15\",\"metrics\":{\"api_requests\":3,\"spend\":0.1,\"more\":[1]},"
        "\"by_user\":{\"zoe\":{\"api_requests\":1},\"ann\":{\"metrics\":{\"spend\":1e-06}}},"
        "\"by_model\":[{\"name\":\"m\",\"total_tokens\":7.0},{\"name\":\"m\",\"total_tokens\":1}],"
        "\"breakdown\":{\"providers\":{\"p\":{\"spend\":2}}}}");

    T_EQ(f.total.api_requests, 3);
    T_EQ(f.total.spend, 100000);
    T_EQ(f.total.failed_requests, 0);
    T_EQ(f.by[USAGE_BY_USER].n, 2);
    T_STREQ(f.by[USAGE_BY_USER].items[0].name, "ann");
    T_EQ(f.by[USAGE_BY_USER].items[0].metrics.spend, 1);
    T_EQ(f.by[USAGE_BY_MODEL].n, 1);
    T_EQ(f.by[USAGE_BY_MODEL].items[0].metrics.total_tokens, 8);
    T_EQ(f.by[USAGE_BY_PROVIDER].items[0].metrics.spend, 2000000);
    usage_figures_release(&f);
}

/* Sums of doubles would be 0.30000000000000004 and the like. */
U_TEST(money_is_exact)
{
    static const struct {
        const char *text;
        int64_t     micros;
    } rows[] = {
        { "0.1", 100000 },        { "0.000001", 1 },
        { "1.0000005", 1000001 }, { "123456.789", 123456789000 },
        { "1.25e-05", 13 },       { "4000000000.123456", 4000000000123456 },
        { "0.0000004", 0 },       { "9007199254.740993", 9007199254740993 },
        { "99e-8", 1 },           { "9223372036854.775807", INT64_MAX },
    };
    struct usage_metrics sum = { 0 };
    char                 text[160];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        (void)snprintf(text, sizeof text, "{\"metrics\":{\"spend\":%s}}", rows[i].text);
        struct usage_figures f = read_day(text);
        T_EQ(f.total.spend, rows[i].micros);
        usage_figures_release(&f);
    }
    for (int i = 0; i < 1000000; i++)
        T_TRUE(usage_metrics_add(&sum, &(struct usage_metrics){ .spend = 100000 }));
    T_EQ(sum.spend, INT64_C(100000) * USAGE_MONEY);
    sum.spend = INT64_MAX;
    T_TRUE(!usage_metrics_add(&sum, &(struct usage_metrics){ .api_requests = 1, .spend = 1 }));
    T_EQ(sum.api_requests, 0); /* all or nothing */
}

U_TEST(what_is_no_day)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "empty" },
        { "[]", "field 'metrics': missing" },
        { "{\"metrics\":{}} x", "" },
        { "{\"metrics\":{\"api_requests\":-1}}",
          "field 'metrics.api_requests': must not be negative" },
        { "{\"metrics\":{\"api_requests\":1.5}}", "expected a non-negative integer" },
        { "{\"metrics\":{\"api_requests\":\"1\"}}", "expected a number" },
        { "{\"metrics\":{\"spend\":\"-1\"}}", "expected an amount" },
        { "{\"metrics\":{\"spend\":1e300}}", "too large" },
        { "{\"metrics\":{\"spend\":9300000000000}}", "too large" },
        { "{\"metrics\":{\"spend\":-0.5}}", "field 'metrics.spend': must not be negative" },
        { "{\"metrics\":{\"spend\":9223372036854.7758075}}", "too large" },
        { "{\"metrics\":{\"spend_micros\":-1}}",
          "field 'metrics.spend_micros': expected a non-negative integer" },
        { "{\"metrics\":{\"spend_micros\":1.5}}", "field 'metrics.spend_micros'" },
        { "{\"metrics\":{\"spend_micros\":\"1\",\"spend\":1}}", "field 'metrics.spend_micros'" },
        { "{\"metrics\":{},\"by_user\":7}", "expected an object or a list" },
        { "{\"metrics\":{},\"by_user\":{\"\":{}}}", "must have 1 to 512 bytes" },
        { "{\"metrics\":{},\"by_user\":{\"a\":1}}", "expected an object" },
        { "{\"metrics\":{},\"by_user\":[{\"spend\":1}]}", "must have 1 to 512 bytes" },
        { "{\"metrics\":{},\"date\":\"2025-01-14\"}", "expected 2025-01-15, not 2025-01-14" },
        { "{\"metrics\":{},\"date\":20250115}", "field 'date': expected a string" },
        { "{\"metrics\":{},\"breakdown\":[{\"users\":{}}]}", "field 'breakdown': expected an" },
    };
    struct usage_figures f;
    il_error             err;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (usage_figures_read(rows[i].text, strlen(rows[i].text), date_of("2025-01-15"), &f,
                               &err) != IL_INVAL)
            T_FAIL("accepted: %s", rows[i].text);
        T_HAS(err.message, rows[i].why);
        usage_figures_release(&f);
    }
}

U_TEST(the_columns_of_a_row)
{
    struct usage_figures f = read_day("{\"metrics\":{\"spend\":1.5},\"by_user\":{\"b\\\"\":{},"
                                      "\"a\":{\"spend\":0.25,\"api_requests\":2}}}");
    struct usage_metrics m;
    struct usage_parts   parts;
    struct il__buf       total, users;
    void                *mem = NULL;
    il_error             err;

    il__buf_init(&total, 4096);
    il__buf_init(&users, 4096);
    usage_metrics_store(&total, &f.total);
    usage_parts_store(&users, &f.by[USAGE_BY_USER]);
    T_STREQ(il__buf_str(&total), "{\"api_requests\":0,\"total_tokens\":0,\"prompt_tokens\":0,"
                                 "\"completion_tokens\":0,\"spend_micros\":1500000,"
                                 "\"successful_requests\":0,\"failed_requests\":0}");
    T_EQ(usage_metrics_load(total.data, total.n_bytes, &m, &err), IL_OK);
    T_EQ(memcmp(&m, &f.total, sizeof m), 0);
    T_EQ(usage_parts_load(users.data, users.n_bytes, &parts, &mem, &err), IL_OK);
    T_EQ(parts.n, 2);
    T_STREQ(parts.items[1].name, "b\"");
    T_EQ(parts.items[0].metrics.spend, 250000);
    T_EQ(usage_metrics_load("{}", 2, &m, &err), IL_CORRUPT);
    T_EQ(usage_parts_load("{\"a\":{}}", 8, &parts, &mem, &err), IL_CORRUPT);
    T_EQ(usage_parts_load("[", 1, &parts, &mem, &err), IL_CORRUPT);
    il__arena_free(&mem);
    il__buf_release(&total);
    il__buf_release(&users);
    usage_figures_release(&f);
}

/* ---- answers --------------------------------------------------------------------------------- */

U_TEST(rates_without_anything_to_divide)
{
    T_EQ(usage_rate(0, 0), 0);
    T_EQ(usage_rate(150, 10), 9375);
    T_EQ(usage_rate(1, 2), 3333);
    T_EQ(usage_rate(2, 1), 6667);
    T_EQ(usage_rate(5, 0), 10000);
}

U_TEST(cells_of_a_spreadsheet)
{
    static const struct {
        const char *text, *cell;
    } rows[] = {
        { "ann", "ann" },
        { "a,b", "\"a,b\"" },
        { "say \"hi\"", "\"say \"\"hi\"\"\"" },
        { "two\nlines", "\"two\nlines\"" },
        { "=1+1", "'=1+1" },
        { "+49", "'+49" },
        { "-2", "'-2" },
        { "@SUM(A1)", "'@SUM(A1)" },
        { "\tx", "\"'\tx\"" },
        { "\nx", "\"'\nx\"" },
        { " =1", "\"' =1\"" },
        { "\r\n +1", "\"'\r\n +1\"" },
        { "\uff1d1+1", "'\uff1d1+1" },
        { "\uff0b1", "'\uff0b1" },
        { "\uff0d1", "'\uff0d1" },
        { "\uff20SUM(A1)", "'\uff20SUM(A1)" },
        { "a;b", "\"a;b\"" },
        { "a\tb", "\"a\tb\"" },
        { "a=b", "a=b" },
        { "=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"" },
        { " x", "\" x\"" },
        { "é", "é" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct il__buf b;
        il__buf_init(&b, 256);
        usage_csv_text(&b, rows[i].text);
        T_STREQ(il__buf_str(&b), rows[i].cell);
        il__buf_release(&b);
    }
}

static json_t *
page(const struct usage_range *r, const char *cursor, size_t limit)
{
    struct il__buf b;

    il__buf_init(&b, 65536);
    usage_print_parts(&b, r, cursor, limit);
    json_t *json = json_loads(il__buf_str(&b), 0, NULL);
    T_TRUE(json != NULL);
    il__buf_release(&b);
    return json;
}

/* Every part once, in order, although the one at the cursor has gone. */
U_TEST(pages_of_parts)
{
    struct usage_part  items[] = { { "ann", { .spend = 5 } },
                                   { "bob:1", { .spend = 7 } },
                                   { "cid", { .spend = 5 } },
                                   { "dora", { .spend = 9 } } };
    struct usage_range r       = { .n = 1, .parts = { items, 4 } };
    char               cursor[128];

    usage_parts_rank(&r.parts);
    json_t *first = page(&r, NULL, 2);
    T_STREQ(json_string_value(json_object_get(first, "next")), "7:bob:1");
    (void)snprintf(cursor, sizeof cursor, "%s", json_string_value(json_object_get(first, "next")));
    json_decref(first);
    json_t *rest = page(&r, cursor, 5);
    T_EQ(json_array_size(json_object_get(rest, "items")), 2);
    T_STREQ(json_string_value(
                json_object_get(json_array_get(json_object_get(rest, "items"), 0), "name")),
            "ann");
    T_TRUE(json_is_null(json_object_get(rest, "next")));
    json_decref(rest);
    rest = page(&r, "8:gone", 5);
    T_EQ(json_array_size(json_object_get(rest, "items")), 3);
    json_decref(rest);
    T_TRUE(!usage_cursor_is_valid("x"));
    T_TRUE(!usage_cursor_is_valid("-1:x"));
    T_TRUE(usage_cursor_is_valid("1:"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(dates_of_the_calendar),
        U_ROW(complete_only_after_midnight_and_grace),
        U_ROW(how_long_a_day_is_fresh),
        U_ROW(large_amounts_are_exact),
        U_ROW(figures_of_a_source),
        U_ROW(money_is_exact),
        U_ROW(what_is_no_day),
        U_ROW(the_columns_of_a_row),
        U_ROW(rates_without_anything_to_divide),
        U_ROW(cells_of_a_spreadsheet),
        U_ROW(pages_of_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
