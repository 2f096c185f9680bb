/* decimal.c: decimal numbers as scaled integers; see decimal.h. */
#include "base/decimal.h"

#include <inttypes.h>
#include <stdio.h>

#define EXPONENT_MAX 100000 /* larger ones have the same effect */

/* A number as written: digits * 10^exponent. */
struct written {
    bool        negative;
    const char *whole, *fraction;
    size_t      n_whole, n_fraction;
    int         exponent;
};

static size_t
n_digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* The grammar of JSON numbers. */
static bool
read_written(const char *s, struct written *w)
{
    *w = (struct written){ .negative = *s == '-' };
    s += w->negative;
    w->whole   = s;
    w->n_whole = n_digits(s);
    if (w->n_whole == 0 || (w->n_whole > 1 && *s == '0'))
        return false;
    s += w->n_whole;
    w->fraction = s;
    if (*s == '.') {
        w->fraction   = ++s;
        w->n_fraction = n_digits(s);
        if (w->n_fraction == 0)
            return false;
        s += w->n_fraction;
    }
    if (*s == 'e' || *s == 'E') {
        bool negative = s[1] == '-';
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        size_t n = n_digits(s);
        if (n == 0)
            return false;
        for (size_t i = 0; i < n; i++)
            w->exponent = MIN(w->exponent * 10 + (s[i] - '0'), EXPONENT_MAX);
        if (negative)
            w->exponent = -w->exponent;
        s += n;
    }
    return *s == '\0';
}

static char
digit_at(const struct written *w, size_t i)
{
    return i < w->n_whole ? w->whole[i] : w->fraction[i - w->n_whole];
}

static bool
append_digit(uint64_t *number, unsigned digit)
{
    if (*number > ((uint64_t)IL__DECIMAL_MAX - digit) / 10)
        return false;
    *number = *number * 10 + digit;
    return true;
}

static enum il__decimal
parse(const char *text, unsigned digits, bool round, int64_t *ret)
{
    struct written w;
    uint64_t       number = 0;
    bool           up     = false;

    CHECK(digits <= IL__DECIMAL_DIGITS_MAX);
    if (!read_written(text, &w))
        return IL__DECIMAL_INVALID;
    /* Zeros at the end say nothing: without them, a digit that does not fit is a digit too many. */
    size_t n = w.n_whole + w.n_fraction;
    while (n > 0 && digit_at(&w, n - 1) == '0')
        n--;
    if (n == 0) {
        *ret = 0;
        return IL__DECIMAL_OK;
    }
    /* How many zeros follow the digits in the scaled number. */
    int64_t n_zeros = (int64_t)digits + w.exponent + (int64_t)w.n_whole - (int64_t)n;
    if (n_zeros < 0 && !round)
        return IL__DECIMAL_DIGITS;
    if (n_zeros < 0) { /* the last digits are dropped */
        int64_t n_kept = (int64_t)n + n_zeros;
        up             = n_kept >= 0 && digit_at(&w, (size_t)n_kept) >= '5';
        n              = (size_t)MAX(n_kept, 0);
    }
    for (size_t i = 0; i < n; i++) {
        if (!append_digit(&number, (unsigned)(digit_at(&w, i) - '0')))
            return IL__DECIMAL_RANGE;
    }
    for (; n_zeros > 0; n_zeros--) {
        if (!append_digit(&number, 0)) /* after 19 of them at the latest: number is not 0 */
            return IL__DECIMAL_RANGE;
    }
    number += up;
    if (number > (uint64_t)IL__DECIMAL_MAX)
        return IL__DECIMAL_RANGE;
    *ret = w.negative ? -(int64_t)number : (int64_t)number;
    return IL__DECIMAL_OK;
}

enum il__decimal
il__decimal_parse(const char *text, unsigned digits, int64_t *ret)
{
    return parse(text, digits, false, ret);
}

enum il__decimal
il__decimal_round(const char *text, unsigned digits, int64_t *ret)
{
    return parse(text, digits, true, ret);
}

const char *
il__decimal_text(int64_t scaled, unsigned digits, char out[IL__DECIMAL_TEXT_BYTES])
{
    uint64_t number = scaled < 0 ? 0 - (uint64_t)scaled : (uint64_t)scaled;
    uint64_t unit   = 1;

    CHECK(digits <= IL__DECIMAL_DIGITS_MAX);
    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    int n =
        snprintf(out, IL__DECIMAL_TEXT_BYTES, "%s%" PRIu64, scaled < 0 ? "-" : "", number / unit);
    if (digits > 0)
        n += snprintf(out + n, IL__DECIMAL_TEXT_BYTES - (size_t)n, ".%0*" PRIu64, (int)digits,
                      number % unit);
    CHECK(n < IL__DECIMAL_TEXT_BYTES);
    return out;
}
