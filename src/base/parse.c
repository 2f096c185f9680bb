/*
 * parse.c: strict parsing of numbers, durations and UTF-8: the whole text must match; hexadecimal
 * digits.
 */
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"

bool
il__parse_u64(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;

    if (text == NULL || text[0] == '\0')
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9')
            return false;
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    }
    if (value > max)
        return false;
    *ret = value;
    return true;
}

int
il__hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int
il__percent_byte(const char *text)
{
    int high = text[0] == '%' ? il__hex_digit(text[1]) : -1;
    int low  = high >= 0 ? il__hex_digit(text[2]) : -1;

    return low >= 0 ? high * 16 + low : -1;
}

void
il__hex_print(const void *data, size_t n_bytes, char *out)
{
    static const char    digits[] = "0123456789abcdef";
    const unsigned char *bytes    = data;

    for (size_t i = 0; i < n_bytes; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

bool
il__is_uuid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == '-' ? text[i] != '-' : il__hex_digit(text[i]) < 0)
            return false;
    }
    return true;
}

static const struct duration_unit {
    const char *suffix;
    int64_t     ms;
} duration_units[] = { { "d", 86400000 },
                       { "h", 3600000 },
                       { "m", 60000 },
                       { "s", 1000 },
                       { "ms", 1 } };

#define DURATION_MS_MAX (UINT64_C(366) * 86400000)

/* One number with its unit, such as the `30m` of `1h30m`; *p is moved behind it. NULL: not one. */
static const struct duration_unit *
parse_part(const char **p, uint64_t *ret)
{
    size_t n_digits = strspn(*p, "0123456789");
    size_t n_unit   = strspn(*p + n_digits, "dhms");
    char   digits[24];

    if (n_digits == 0 || n_digits >= sizeof digits)
        return NULL;
    memcpy(digits, *p, n_digits);
    digits[n_digits] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        const char *suffix = duration_units[i].suffix;
        if (strlen(suffix) != n_unit || memcmp(*p + n_digits, suffix, n_unit) != 0)
            continue;
        if (!il__parse_u64(digits, UINT64_MAX, ret))
            *ret = UINT64_MAX; /* too long, which the caller says */
        *p += n_digits + n_unit;
        return &duration_units[i];
    }
    return NULL;
}

il_status
il_parse_duration(const char *text, int64_t *ret_ms, il_error *reterr)
{
    const struct duration_unit *last  = NULL;
    uint64_t                    total = 0;

    if (text == NULL || ret_ms == NULL)
        return il__error_set(reterr, IL_INVAL, "text and ret_ms must not be NULL");
    if (strcmp(text, "forever") == 0) {
        *ret_ms = IL_FOREVER;
        return IL_OK;
    }
    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return IL_OK;
    }
    for (const char *p = text; p == text || *p != '\0';) {
        uint64_t                    value = 0;
        const struct duration_unit *unit  = parse_part(&p, &value);
        /* Each unit is smaller than the one before it: not 30m1h, and not 1m30m. */
        if (unit == NULL || (last != NULL && unit <= last))
            return il__error_set(reterr, IL_INVAL,
                                 "'%.40s' is not a duration (try 250ms, 30s, 1h30m, 1d)", text);
        if (__builtin_mul_overflow(value, (uint64_t)unit->ms, &value) ||
            __builtin_add_overflow(total, value, &total) || total > DURATION_MS_MAX)
            return il__error_set(reterr, IL_INVAL, "duration '%.40s' is longer than 366 days",
                                 text);
        last = unit;
    }
    *ret_ms = (int64_t)total;
    return IL_OK;
}

bool
il__parse_rate(const char *text, int32_t *ret_n, int64_t *ret_ms)
{
    const char *slash = strchr(text, '/');
    const char *unit  = slash != NULL ? slash + 1 : "";
    char        n[16], one[8];
    uint64_t    number;
    int64_t     ms = 0;

    if (slash == NULL || (size_t)(slash - text) >= sizeof n)
        return false;
    (void)snprintf(n, sizeof n, "%.*s", (int)(slash - text), text);
    (void)snprintf(one, sizeof one, "1%.6s", unit); /* `s` is `1s` */
    if (unit[0] >= 'a' && unit[0] <= 'z' && strlen(unit) < sizeof one - 1)
        unit = one;
    if (!il__parse_u64(n, INT32_MAX, &number) || number == 0 ||
        il_parse_duration(unit, &ms, NULL) != IL_OK || ms <= 0)
        return false;
    *ret_n  = (int32_t)number;
    *ret_ms = ms;
    return true;
}

const char *
il__duration_text(int64_t ms, char out[IL__DURATION_TEXT_BYTES])
{
    if (ms == 0 || ms == IL_FOREVER) {
        (void)snprintf(out, IL__DURATION_TEXT_BYTES, "%s", ms == 0 ? "0" : "forever");
        return out;
    }
    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        if (ms % duration_units[i].ms != 0)
            continue;
        (void)snprintf(out, IL__DURATION_TEXT_BYTES, "%" PRId64 "%s", ms / duration_units[i].ms,
                       duration_units[i].suffix);
        break;
    }
    return out;
}

/*
 * Decode one code point of valid or invalid UTF-8; 0 bytes means invalid. The ranges are those of
 * the Unicode standard's table 3-7: they exclude overlong forms and surrogates.
 */
static size_t
utf8_decode(const unsigned char *s, size_t n_bytes, uint32_t *ret)
{
    size_t   n_more;
    uint32_t code;
    uint32_t least;

    if (s[0] < 0x80) {
        *ret = s[0];
        return 1;
    }
    if (s[0] >= 0xC2 && s[0] <= 0xDF) {
        n_more = 1;
        code   = s[0] & 0x1FU;
        least  = 0x80;
    } else if ((s[0] & 0xF0U) == 0xE0) {
        n_more = 2;
        code   = s[0] & 0x0FU;
        least  = 0x800;
    } else if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        n_more = 3;
        code   = s[0] & 0x07U;
        least  = 0x10000;
    } else {
        return 0;
    }
    if (n_more >= n_bytes)
        return 0;
    for (size_t i = 1; i <= n_more; i++) {
        if ((s[i] & 0xC0U) != 0x80)
            return 0;
        code = (code << 6) | (s[i] & 0x3FU);
    }
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    *ret = code;
    return n_more + 1;
}

bool
il__utf8_valid(const char *s, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        uint64_t word;
        uint32_t code;
        if (n_bytes - i >= sizeof word) { /* eight at a time while they are ASCII */
            memcpy(&word, s + i, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof word;
                continue;
            }
        }
        size_t n = utf8_decode((const unsigned char *)s + i, n_bytes - i, &code);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

void
il__utf8_clean(char *s, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        uint32_t code = 0;
        size_t   n    = utf8_decode((const unsigned char *)s + i, n_bytes - i, &code);
        if (n == 0 || code == 0) {
            s[i] = '?';
            n    = 1;
        }
        i += n;
    }
}

bool
il__utf8_has_control(const char *s, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c == 0x7F)
            return true;
        /* U+0080..U+009F are the two bytes C2 80..C2 9F. */
        if (c == 0xC2 && i + 1 < n_bytes && (unsigned char)s[i + 1] <= 0x9F)
            return true;
    }
    return false;
}

size_t
il__utf8_cut(const char *text, size_t n_max)
{
    size_t n = strnlen(text, n_max + 1);

    if (n <= n_max)
        return n;
    n = n_max;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--;
    return n;
}
