/*
 * decimal.h: decimal numbers with a fixed number of digits after the point, kept as a scaled
 * int64_t: with 6 digits, 12.345678 is 12345678. No double is involved, so no digit is lost.
 */
#ifndef IL_BASE_DECIMAL_H
#define IL_BASE_DECIMAL_H

#include "base/base.h"

#define IL__DECIMAL_DIGITS_MAX 18 /* after the point: 10^18 fits an int64_t */
#define IL__DECIMAL_TEXT_BYTES 24 /* sign, 19 digits, point, NUL */
#define IL__DECIMAL_MAX INT64_MAX /* scaled; the lowest is its negative */

enum il__decimal {
    IL__DECIMAL_OK,
    IL__DECIMAL_INVALID, /* not a number as JSON writes it */
    IL__DECIMAL_DIGITS,  /* more than `digits` digits after the point are not zero */
    IL__DECIMAL_RANGE,   /* the scaled number exceeds IL__DECIMAL_MAX */
};

/* Parse a number as JSON writes it, with or without an exponent: 12, -0.5, 1e-06, 1.25E+2. *ret is
 * written only on OK. */
enum il__decimal il__decimal_parse(const char *text, unsigned digits, int64_t *ret) MUST_USE;
/* The same, but further digits after the point are rounded to the nearest, halves away from zero:
 * never DIGITS. */
enum il__decimal il__decimal_round(const char *text, unsigned digits, int64_t *ret) MUST_USE;

/* All digits, also trailing zeros: 12500000 with 6 digits is "12.500000". */
const char *il__decimal_text(int64_t scaled, unsigned digits, char out[IL__DECIMAL_TEXT_BYTES]);

#endif
