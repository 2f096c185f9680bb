/*
 * normalise.c: texts, times, numbers and dates as the pages print them. Numbers are read with
 * integers only and digit by digit: a page decides neither on rounding nor on the locale.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "apps/ingest/libraries.h"
#include "apps/ingest/liverc.h"
#include "base/base.h"
#include "base/parse.h"

/* ---- text ------------------------------------------------------------------------------------ */

static bool
is_ascii(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        if ((unsigned char)text[i] >= 0x80)
            return false;
    }
    return true;
}

/* A space goes in front of the next character, so that none is left at the end. */
static void
add_collapsed(struct il__buf *out, const char *bytes, size_t n, bool is_space, bool *gap)
{
    if (is_space) {
        *gap = out->n_bytes > 0;
        return;
    }
    if (*gap)
        il__buf_addc(out, ' ');
    *gap = false;
    il__buf_add(out, bytes, n);
}

static bool
is_blank(utf8proc_category_t c)
{
    return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP ||
           c == UTF8PROC_CATEGORY_CC;
}

static bool
normalise_unicode(const char *text, size_t n_bytes, struct il__buf *out)
{
    utf8proc_uint8_t *mapped = NULL;
    bool              gap    = false;
    utf8proc_ssize_t  n      = il__utf8proc->utf8proc_map(
              (const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n_bytes, &mapped,
              UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE | UTF8PROC_IGNORE);

    if (n < 0)
        return false; /* the text is valid, so memory has run out */
    for (utf8proc_ssize_t i = 0; i < n;) {
        utf8proc_int32_t point = 0;
        utf8proc_ssize_t step  = il__utf8proc->utf8proc_iterate(mapped + i, n - i, &point);
        CHECK(step > 0);
        add_collapsed(out, (const char *)mapped + i, (size_t)step,
                      is_blank(il__utf8proc->utf8proc_category(point)), &gap);
        i += step;
    }
    free(mapped); /* utf8proc's own */
    return true;
}

bool
il__liverc_normalise(const char *text, size_t n_bytes, struct il__buf *out)
{
    bool gap = false;

    il__buf_clear(out);
    if (!is_ascii(text, n_bytes))
        return normalise_unicode(text, n_bytes, out);
    for (size_t i = 0; i < n_bytes; i++)
        add_collapsed(out, text + i, 1, text[i] <= ' ' || text[i] == 0x7F, &gap);
    return true;
}

void
il__liverc_upper(const char *text, struct il__buf *out)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;

    il__buf_clear(out);
    while (*at != '\0') {
        utf8proc_int32_t point = 0;
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t step = il__utf8proc->utf8proc_iterate(at, -1, &point);
        CHECK(step > 0);
        point              = il__utf8proc->utf8proc_toupper(point);
        utf8proc_ssize_t n = il__utf8proc->utf8proc_encode_char(point, bytes);
        il__buf_add(out, bytes, (size_t)n);
        at += step;
    }
}

/* ---- numbers and times ----------------------------------------------------------------------- */

#define DIGITS_MAX 9

/* Digits, at most DIGITS_MAX; advances *at. False: none, or too many. */
static bool
read_number(const char **at, int64_t *ret)
{
    size_t  n     = 0;
    int64_t value = 0;

    for (; **at >= '0' && **at <= '9'; ++*at, n++) {
        if (n == DIGITS_MAX)
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret = value;
    return n > 0;
}

/* What may follow a number: .5, .38, .3825; in thousandths, rounded. */
static bool
read_fraction(const char **at, int64_t *ret_milli)
{
    int64_t milli = 0;

    *ret_milli = 0;
    if (**at != '.')
        return true;
    ++*at;
    size_t n = strspn(*at, "0123456789");
    if (n == 0 || n > DIGITS_MAX)
        return false;
    for (size_t i = 0; i < 3; i++)
        milli = milli * 10 + (i < n ? (*at)[i] - '0' : 0);
    if (n > 3 && (*at)[3] >= '5')
        milli++;
    *at += n;
    *ret_milli = milli;
    return true;
}

bool
il__liverc_milli(const char *text, int64_t *ret)
{
    const char *at = text;
    int64_t     whole, milli;

    if (!read_number(&at, &whole) || !read_fraction(&at, &milli))
        return false;
    if (*at == '%')
        at++;
    if (*at != '\0')
        return false;
    *ret = whole * 1000 + milli;
    return true;
}

bool
il__liverc_time_ms(const char *text, int64_t *ret_ms)
{
    const char *at    = text;
    int64_t     total = 0, part, milli;

    for (unsigned n_parts = 1;; n_parts++) {
        if (!read_number(&at, &part) || (n_parts > 1 && part > 59))
            return false;
        total = total * 60 + part;
        if (*at != ':')
            break;
        at++;
        if (n_parts == 3)
            return false;
    }
    if (!read_fraction(&at, &milli) || *at != '\0')
        return false;
    *ret_ms = total * 1000 + milli;
    return true;
}

bool
il__liverc_laps_time(const char *text, int32_t *ret_laps, int64_t *ret_ms)
{
    const char *at = text;
    int64_t     laps, ms = LIVERC_NONE;

    if (!read_number(&at, &laps))
        return false;
    if (*at == '/') {
        for (at++; *at == ' ';)
            at++;
        if (!il__liverc_time_ms(at, &ms))
            return false;
    } else if (*at != '\0') {
        return false;
    }
    *ret_laps = (int32_t)laps;
    *ret_ms   = laps > 0 ? ms : LIVERC_NONE;
    return true;
}

bool
il__liverc_count(const char *text, int32_t *ret)
{
    size_t  n     = 0;
    int64_t value = 0;

    for (; *text != '\0'; text++) {
        if (*text == ',' && n > 0 && text[1] != '\0')
            continue;
        if (*text < '0' || *text > '9' || ++n > DIGITS_MAX)
            return false;
        value = value * 10 + (*text - '0');
    }
    *ret = (int32_t)value;
    return n > 0;
}

/* ---- dates ----------------------------------------------------------------------------------- */

static void
skip_blanks(const char **at)
{
    while (**at == ' ')
        ++*at;
}

/* Nov 16, 2025 or November 16, 2025; advances *at. */
static bool
read_day(const char **at, char out[LIVERC_DATE_BYTES])
{
    static const char months[]  = "janfebmaraprmayjunjulaugsepoctnovdec";
    int               month     = 0;
    size_t            n_letters = 0;
    int64_t           day, year;

    while (((*at)[n_letters] | 0x20) >= 'a' && ((*at)[n_letters] | 0x20) <= 'z')
        n_letters++;
    for (int m = 0; n_letters >= 3 && m < 12 && month == 0; m++)
        month = strncasecmp(*at, months + (size_t)m * 3, 3) == 0 ? m + 1 : 0;
    if (month == 0)
        return false;
    *at += n_letters;
    if (**at == '.')
        ++*at;
    skip_blanks(at);
    if (!read_number(at, &day))
        return false;
    if (**at == ',')
        ++*at;
    skip_blanks(at);
    if (!read_number(at, &year) || year > 9999)
        return false;
    int64_t days = il__date_days((int)year, month, (int)day); /* of nine digits */
    if (days < 0)
        return false;
    (void)il__date_text(days, out);
    return true;
}

bool
il__liverc_days(const char *text, char first[LIVERC_DATE_BYTES], char last[LIVERC_DATE_BYTES])
{
    const char *at = text;
    char        from[LIVERC_DATE_BYTES], to[LIVERC_DATE_BYTES];

    if (!read_day(&at, from))
        return false;
    memcpy(to, from, sizeof to);
    skip_blanks(&at);
    if (*at != '\0') {
        if (strncasecmp(at, "to ", 3) == 0)
            at += 3;
        else if (*at == '-')
            at++;
        else
            return false;
        skip_blanks(&at);
        if (!read_day(&at, to) || *at != '\0' || strcmp(to, from) < 0)
            return false;
    }
    memcpy(first, from, sizeof from);
    memcpy(last, to, sizeof to);
    return true;
}

/* 5:30pm, 5pm, 5:30 PM, or 17:30. */
static bool
read_clock(const char *at, unsigned *ret_hour, unsigned *ret_minute)
{
    int64_t hour, minute = 0;

    if (!read_number(&at, &hour))
        return false;
    if (*at == ':') {
        at++;
        if (!read_number(&at, &minute) || minute > 59)
            return false;
    }
    skip_blanks(&at);
    if (*at == '\0') {
        if (hour > 23)
            return false;
    } else {
        bool is_pm = strcasecmp(at, "pm") == 0;
        if ((!is_pm && strcasecmp(at, "am") != 0) || hour < 1 || hour > 12)
            return false;
        hour = hour % 12 + (is_pm ? 12 : 0);
    }
    *ret_hour   = (unsigned)hour;
    *ret_minute = (unsigned)minute;
    return true;
}

bool
il__liverc_completed(const char *text, char out[LIVERC_TIME_BYTES])
{
    const char *at = text;
    char        day[LIVERC_DATE_BYTES];
    unsigned    hour, minute;

    if (!read_day(&at, day))
        return false;
    skip_blanks(&at);
    if (*at == '\0') {
        memcpy(out, day, sizeof day);
        return true;
    }
    if (strncasecmp(at, "at ", 3) != 0)
        return false;
    at += 3;
    skip_blanks(&at);
    if (!read_clock(at, &hour, &minute))
        return false;
    (void)snprintf(out, LIVERC_TIME_BYTES, "%sT%02u:%02u:00", day, hour % 24, minute % 60);
    return true;
}
