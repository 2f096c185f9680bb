/*
 * parse.c: numbers, durations, dates, times, hexadecimal digits, UTF-8.
 */
#include "base/parse.h"

#include <time.h>

#include "harness/rng.h"
#include "harness/unit.h"

U_TEST(numbers)
{
    static const struct {
        const char *text;
        uint64_t    max;
        bool        ok;
        uint64_t    value;
    } rows[] = {
        { "0", 10, true, 0 },
        { "10", 10, true, 10 },
        { "11", 10, false, 0 },
        { "007", 10, true, 7 },
        { "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
        { "18446744073709551616", UINT64_MAX, false, 0 },
        { "99999999999999999999999", UINT64_MAX, false, 0 },
        { "", 10, false, 0 },
        { NULL, 10, false, 0 },
        { " 1", 10, false, 0 },
        { "1 ", 10, false, 0 },
        { "+1", 10, false, 0 },
        { "-1", 10, false, 0 },
        { "0x1", 100, false, 0 },
        { "1e1", 100, false, 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t value = 42;
        T_EQ(il__parse_u64(rows[i].text, rows[i].max, &value), rows[i].ok);
        T_EQU(value, rows[i].ok ? rows[i].value : 42); /* written only on success */
    }
}

U_TEST(uuids)
{
    static const char *const bad[] = {
        "",
        "x",
        "/../x",
        "0192f0c1-7a2b-7c3d-8e4f-0123456789a",
        "0192f0c1-7a2b-7c3d-8e4f-0123456789abc",
        "0192f0c1-7a2b-7c3d-8e4f/0123456789ab",
        "0192f0c1-7a2b-7c3d-8e4f-0123456789ag",
        "0192f0c1-7a2b-7c3d-8e4f0-123456789ab",
        "../../../../../../../../../../../../",
    };
    char made[37];

    T_EQ(il_uuid(made), IL_OK);
    T_TRUE(il__is_uuid(made));
    T_TRUE(il__is_uuid("0192F0C1-7A2B-7C3D-8E4F-0123456789AB"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        T_TRUE(!il__is_uuid(bad[i]));
}

U_TEST(hexadecimal_digits)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    char              all[256], text[2 * sizeof all + 1];

    for (int c = 0; c < 256; c++) {
        const char *at = c != 0 ? strchr(digits, c) : NULL;
        T_EQ(il__hex_digit((char)c), at != NULL ? (at - digits) % 16 : -1);
        all[c] = (char)c;
    }
    il__hex_print("\x00\x0a\xff", 3, text);
    T_STREQ(text, "000aff");
    il__hex_print("", 0, text);
    T_STREQ(text, "");
    il__hex_print(all, sizeof all, text);
    for (int c = 0; c < 256; c++)
        T_EQ(il__hex_digit(text[2 * c]) * 16 + il__hex_digit(text[2 * c + 1]), c);
}

U_TEST(percent_escapes)
{
    static const struct {
        const char *text;
        int         byte;
    } rows[] = {
        { "%00", 0 },  { "%2f", '/' }, { "%2Fx", '/' }, { "%fF", 255 },
        { "", -1 },    { "%", -1 },    { "%2", -1 },    { "%g0", -1 },
        { "%0g", -1 }, { "2f", -1 },   { "x2f", -1 },   { "%%41", -1 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        T_EQ(il__percent_byte(rows[i].text), rows[i].byte);
}

U_TEST(durations)
{
    static const struct {
        const char *text;
        int64_t     ms;
    } rows[] = {
        { "0", 0 },
        { "0s", 0 },
        { "1ms", 1 },
        { "250ms", 250 },
        { "30s", 30000 },
        { "5m", 300000 },
        { "1h", 3600000 },
        { "1d", 86400000 },
        { "00030s", 30000 },
        { "366d", INT64_C(366) * 86400000 },
        { "1h30m", 5400000 },
        { "1d2h3m4s5ms", 93784005 },
        { "1m90s", 150000 },
        { "1h0m", 3600000 },
        { "0h0s", 0 },
        { "365d24h", INT64_C(366) * 86400000 },
        { "forever", IL_FOREVER },
    };
    static const char *const bad[] = { "",
                                       "s",
                                       "1",
                                       "10",
                                       "-1s",
                                       "+1s",
                                       " 1s",
                                       "1s ",
                                       "1 s",
                                       "1S",
                                       "1sec",
                                       "1.5s",
                                       "1h30",
                                       "30m1h",
                                       "1m30m",
                                       "1h 30m",
                                       "1hm",
                                       "1h-5m",
                                       "1hforever",
                                       "366d1ms",
                                       "367d",
                                       "1w",
                                       "0x1s",
                                       "Forever",
                                       "forevers",
                                       "99999999999999999999ms",
                                       "9223372036854775807s",
                                       "999999999999999999999999999999s" };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms = -7;
        T_EQ(il_parse_duration(rows[i].text, &ms, NULL), IL_OK);
        T_EQ(ms, rows[i].ms);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t  ms  = -7;
        il_error err = { 0 };
        if (il_parse_duration(bad[i], &ms, &err) != IL_INVAL)
            T_FAIL("'%s' was taken for a duration", bad[i]);
        T_EQ(ms, -7);
        T_TRUE(err.message[0] != '\0');
    }
    int64_t  ms;
    il_error err;
    T_EQ(il_parse_duration(NULL, &ms, &err), IL_INVAL);
    T_EQ(il_parse_duration("1s", NULL, &err), IL_INVAL);
}

U_TEST(rates)
{
    static const struct {
        const char *text;
        int32_t     n;
        int64_t     ms;
    } rows[] = {
        { "100/1m", 100, 60000 },
        { "5/s", 5, 1000 },
        { "1/ms", 1, 1 },
        { "7/1h30m", 7, 5400000 },
        { "2147483647/d", INT32_MAX, 86400000 },
    };
    static const char *const bad[] = { "",     "5",    "/s",        "5/",    "0/s",          "-1/s",
                                       "5/0",  "5/0s", "5/x",       "5/s/s", "2147483648/s", "5 /s",
                                       "5/ s", "5/hm", "5/forever", "5/-1s", "5/s1m" };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int32_t n  = -7;
        int64_t ms = -7;
        T_TRUE(il__parse_rate(rows[i].text, &n, &ms));
        T_EQ(n, rows[i].n);
        T_EQ(ms, rows[i].ms);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int32_t n;
        int64_t ms;
        if (il__parse_rate(bad[i], &n, &ms))
            T_FAIL("'%s' was taken for a rate", bad[i]);
    }
}

U_TEST(durations_print_and_parse)
{
    struct t_rng r;

    t_rng_init(&r, 1);
    for (unsigned i = 0; i < 20000; i++) {
        char    text[IL__DURATION_TEXT_BYTES];
        int64_t ms = (int64_t)(t_rng_next(&r) % (UINT64_C(366) * 86400000));
        int64_t back;
        if (i % 3 == 0)
            ms -= ms % 1000;
        T_EQ(il_parse_duration(il__duration_text(ms, text), &back, NULL), IL_OK);
        T_EQ(back, ms);
    }
    char text[IL__DURATION_TEXT_BYTES];
    T_STREQ(il__duration_text(30000, text), "30s");
    T_STREQ(il__duration_text(1500, text), "1500ms");
    T_STREQ(il__duration_text(0, text), "0");
    T_STREQ(il__duration_text(IL_FOREVER, text), "forever");
}

U_TEST(times)
{
    char text[IL__TIME_TEXT_BYTES];

    T_STREQ(il__time_text(0, text), "1970-01-01T00:00:00.000Z");
    T_STREQ(il__time_text(1800000000250, text), "2027-01-15T08:00:00.250Z");
    T_STREQ(il__time_text(-1, text), "1969-12-31T23:59:59.999Z");
    T_STREQ(il__time_text(-1000, text), "1969-12-31T23:59:59.000Z");
    T_STREQ(il__time_text(951782399999, text), "2000-02-28T23:59:59.999Z");
    (void)il__time_text(INT64_MAX, text); /* whatever it is, it fits */
    (void)il__time_text(INT64_MIN, text);
}

/* Every day of six centuries against the C library. */
U_TEST(dates)
{
    const int64_t first = -135140, end = 73049 + 20000; /* from 1600 on */

    for (int64_t days = first; days < end; days++) {
        time_t          at = (time_t)(days * 86400);
        struct il__date d  = il__date_of(days);
        struct tm       tm;
        char            text[IL__DATE_TEXT_BYTES], again[IL__DATE_TEXT_BYTES];
        int64_t         back = -7;
        T_TRUE(gmtime_r(&at, &tm) != NULL);
        T_TRUE(strftime(text, sizeof text, "%Y-%m-%d", &tm) > 0);
        T_EQ(d.year, tm.tm_year + 1900);
        T_EQ(d.month, tm.tm_mon + 1);
        T_EQ(d.day, tm.tm_mday);
        T_STREQ(il__date_text(days, again), text);
        T_EQ(il__date_parse(text, &back), days >= 0);
        T_EQ(back, days >= 0 ? days : -7); /* written only on success */
        T_EQ(il__date_days(d.year, d.month, d.day), MAX(days, -1));
        if (tm.tm_yday == 365)
            T_TRUE(il__date_is_leap(d.year));
    }
}

U_TEST(no_dates)
{
    static const char *const bad[] = {
        "",           "2026",       "2026-11-5",  "2026-11-15 ", " 2026-11-15", "2026-11-15T",
        "2026/11/15", "+026-11-15", "2026-02-29", "2026-00-15",  "2026-13-15",  "2026-11-00",
        "2026-11-31", "1969-12-31", "20261115",   "2026-1x-15"
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t days;
        if (il__date_parse(bad[i], &days))
            T_FAIL("'%s' was taken for a date", bad[i]);
    }
    T_EQ(il__date_days(2024, 2, 29), 19782);
    T_EQ(il__date_days(2026, 2, 29), -1);
    T_EQ(il__date_days(2026, 4, 31), -1);
    T_EQ(il__date_days(1969, 12, 31), -1);
    T_EQ(il__date_days(INT32_MAX, 0, 1), -1);
    T_TRUE(il__date_is_leap(2000) && !il__date_is_leap(1900) && !il__date_is_leap(2026));
}

U_TEST(utf8)
{
    static const struct {
        const char *text;
        bool        valid;
    } rows[] = {
        { "", true },
        { "plain", true },
        { "\x7f", true },
        { "\xc2\x80", true },
        { "\xdf\xbf", true },
        { "\xe0\xa0\x80", true },
        { "\xed\x9f\xbf", true },
        { "\xee\x80\x80", true },
        { "\xef\xbf\xbf", true },
        { "\xf0\x90\x80\x80", true },
        { "\xf4\x8f\xbf\xbf", true },
        { "\x80", false },
        { "\xbf", false },
        { "\xc0\x80", false },
        { "\xc1\xbf", false },
        { "\xc2", false },
        { "\xc2\x20", false },
        { "\xe0\x9f\xbf", false },
        { "\xed\xa0\x80", false },
        { "\xed\xbf\xbf", false },
        { "\xf0\x8f\xbf\xbf", false },
        { "\xf4\x90\x80\x80", false },
        { "\xf5\x80\x80\x80", false },
        { "\xff", false },
        { "\xfe", false },
        { "a\xe2\x82", false },
        { "\xe2\x28\xa1", false },
        { "ok\xf0\x9f\x98", false },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (il__utf8_valid(rows[i].text, strlen(rows[i].text)) != rows[i].valid)
            T_FAIL("row %zu should be %s", i, rows[i].valid ? "valid" : "invalid");
    }
    /* NUL is a code point; that it is a control is another matter */
    T_EQ(il__utf8_valid("a\0b", 3), true);
}

U_TEST(invalid_bytes_and_nul_become_question_marks)
{
    static const struct {
        const char *in, *out;
        size_t      n;
    } rows[] = {
        { "", "", 0 },
        { "a\xC3\xA4\xE2\x82\xACz", "a\xC3\xA4\xE2\x82\xACz", 7 },
        { "a\0b", "a?b", 3 },
        { "\xFF\x80x", "??x", 3 },
        { "\xC0\x80", "??", 2 },
        { "\xED\xA0\x80", "???", 3 },
        { "ok\xE2\x82", "ok??", 4 },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[16];
        memcpy(text, rows[i].in, rows[i].n);
        il__utf8_clean(text, rows[i].n);
        T_EQ(memcmp(text, rows[i].out, rows[i].n), 0);
    }
}

U_TEST(control_characters)
{
    static const char *const with[]    = { "\x01", "a\x1f",    "\x7f",     "a\nb",
                                           "\t",   "\xc2\x80", "x\xc2\x9f" };
    static const char *const without[] = {
        "", " ", "~", "\xc2\xa0", "\xc3\x80", "\xe2\x80\x83", "\xf0\x9f\x98\x80"
    };

    for (size_t i = 0; i < ARRAY_LEN(with); i++)
        T_EQ(il__utf8_has_control(with[i], strlen(with[i])), true);
    for (size_t i = 0; i < ARRAY_LEN(without); i++)
        T_EQ(il__utf8_has_control(without[i], strlen(without[i])), false);
    T_EQ(il__utf8_has_control("a\0b", 3), true);
}

/* Every code point there is, encoded by the book, is valid; cut or with a byte changed upwards it
 * is not. */
U_TEST(every_code_point)
{
    for (uint32_t c = 0x80; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 61) {
        char   s[5] = { 0 };
        size_t n    = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (c >= 0xD800 && c <= 0xDFFF)
            continue;
        for (size_t i = n; i-- > 1;)
            s[i] = (char)(0x80 | ((c >> (6 * (n - 1 - i))) & 0x3F));
        static const unsigned lead[5] = { 0, 0, 0xC0, 0xE0, 0xF0 };
        s[0]                          = (char)(lead[n] | (c >> (6 * (n - 1))));
        if (!il__utf8_valid(s, n) || il__utf8_valid(s, n - 1) || il__utf8_valid(s + 1, n - 1))
            T_FAIL("U+%04X", c);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(numbers),
        U_ROW(hexadecimal_digits),
        U_ROW(percent_escapes),
        U_ROW(durations),
        U_ROW(rates),
        U_ROW(durations_print_and_parse),
        U_ROW(times),
        U_ROW(dates),
        U_ROW(no_dates),
        U_ROW(utf8),
        U_ROW(control_characters),
        U_ROW(every_code_point),
        U_ROW(uuids),
        U_ROW(invalid_bytes_and_nul_become_question_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
