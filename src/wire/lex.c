/*
 * lex.c: JSON tokens: strings, numbers, whitespace. Strict, following RFC 8259; also rejects what
 * readers cannot represent (lone surrogates, NUL, numbers beyond 64 bits).
 */
#include "wire/lex.h"

#include <errno.h>
#include <math.h>

#include "base/parse.h"

const char *
il__lex_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* Length of the UTF-8 character at s, with n bytes left; 0 if invalid. */
size_t
il__lex_utf8(const char *s, size_t n)
{
    for (size_t len = 2; len <= MIN(n, 4); len++) {
        if (il__utf8_valid(s, len))
            return len;
    }
    return 0;
}

/* Number of bytes at s that need no escape in a string. */
size_t
il__lex_plain(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x80 && s[i] != '"' &&
           s[i] != '\\')
        i++;
    return i;
}

/* Four hexadecimal digits; -1 if invalid. */
int
il__lex_hex4(const char *s, const char *end)
{
    int code = 0;

    if (end - s < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = il__hex_digit(s[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Length of the escape at s, which starts with a backslash; 0 if invalid, NUL or a lone
 * surrogate. */
static size_t
escape_bytes(const char *s, const char *end)
{
    if (end - s < 2)
        return 0;
    if (s[1] != 'u')
        return s[1] != '\0' && strchr("\"\\/bfnrt", s[1]) != NULL ? 2 : 0;
    int code = il__lex_hex4(s + 2, end);
    if (code <= 0 || (code >= 0xDC00 && code <= 0xDFFF))
        return 0;
    if (code < 0xD800 || code > 0xDFFF)
        return 6;
    if (end - s < 12 || s[6] != '\\' || s[7] != 'u')
        return 0;
    int low = il__lex_hex4(s + 8, end);
    return low >= 0xDC00 && low <= 0xDFFF ? 12 : 0;
}

const char *
il__lex_string(const char *at, const char *end, bool *ret_escaped)
{
    *ret_escaped = false;
    if (at == end || *at != '"')
        return NULL;
    for (at++; at < end && *at != '"';) {
        size_t left = (size_t)(end - at);
        size_t n    = il__lex_plain(at, left);
        if (n == 0 && *at == '\\') {
            n            = escape_bytes(at, end);
            *ret_escaped = true;
        } else if (n == 0 && (unsigned char)*at >= 0x80) {
            n = il__lex_utf8(at, left);
        }
        if (n == 0)
            return NULL;
        at += n;
    }
    return at < end ? at + 1 : NULL;
}

static size_t
digits_bytes(const char *s, const char *end)
{
    size_t n = 0;

    while (s + n < end && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

bool
il__lex_number_copy(const char *text, const char *end, char out[LEX_NUMBER_BYTES])
{
    size_t n = (size_t)(end - text);

    if (n >= LEX_NUMBER_BYTES)
        return false;
    memcpy(out, text, n);
    out[n] = '\0';
    return true;
}

/* Does the number fit a reader that uses 64 bits? */
static bool
number_fits(const char *text, const char *end, bool whole)
{
    char  number[LEX_NUMBER_BYTES];
    char *last;

    if (whole && end - text <= 18)
        return true;
    if (!il__lex_number_copy(text, end, number))
        return false;
    errno = 0;
    if (whole) {
        (void)strtoll(number, &last, 10);
        return errno == 0;
    }
    return isfinite(strtod(number, &last)) && *last == '\0';
}

const char *
il__lex_number(const char *at, const char *end, bool *ret_whole)
{
    const char *s     = at;
    bool        whole = true;

    if (s < end && *s == '-')
        s++;
    size_t n = digits_bytes(s, end);
    if (n == 0 || (n > 1 && *s == '0'))
        return NULL;
    s += n;
    if (s < end && *s == '.') {
        whole = false;
        n     = digits_bytes(s + 1, end);
        if (n == 0)
            return NULL;
        s += 1 + n;
    }
    if (s < end && (*s == 'e' || *s == 'E')) {
        whole = false;
        s++;
        if (s < end && (*s == '+' || *s == '-'))
            s++;
        n = digits_bytes(s, end);
        if (n == 0)
            return NULL;
        s += n;
    }
    *ret_whole = whole;
    return number_fits(at, s, whole) ? s : NULL;
}
