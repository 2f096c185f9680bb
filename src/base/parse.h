/*
 * parse.h: numbers, durations and times from text, hexadecimal digits, and UTF-8.
 */
#ifndef IL_BASE_PARSE_H
#define IL_BASE_PARSE_H

#include "base/base.h"

/* A whole decimal number, nothing before or after it, at most `max`. */
bool il__parse_u64(const char *text, uint64_t max, uint64_t *ret);

/* The value of a hexadecimal digit, or -1. */
int il__hex_digit(char c);
/* The byte of the escape %XX at `text`; -1: no escape. */
int il__percent_byte(const char *text);
/* Print bytes in hexadecimal, in lower case, and a NUL. */
void il__hex_print(const void *data, size_t n_bytes, char *out);

/* Is it a UUID: 8-4-4-4-12 hexadecimal digits? Such an id can be part of a file name. */
bool il__is_uuid(const char *text);

/* Is it valid UTF-8 (no overlong forms, no surrogates, at most U+10FFFF)? */
bool il__utf8_valid(const char *s, size_t n_bytes);
/* Does it hold a control character: U+0000..U+001F, U+007F..U+009F? `s` is valid UTF-8. */
bool il__utf8_has_control(const char *s, size_t n_bytes);
/* How many bytes of a text to keep: at most n_max, without cutting a character. */
size_t il__utf8_cut(const char *text, size_t n_max);

/* Replace every byte of invalid UTF-8, and NUL, by '?'. The length stays the same. */
void il__utf8_clean(char *s, size_t n_bytes);

/* A rate: how many in how long: `100/1m`, `5/s`. The duration is as of il_parse_duration(), or a
 * unit alone. */
bool il__parse_rate(const char *text, int32_t *ret_n, int64_t *ret_ms);

#define IL__DURATION_TEXT_BYTES 24
/* Print a duration as il_parse_duration() reads it: 30000 as "30s", 1500 as "1500ms". */
const char *il__duration_text(int64_t ms, char out[IL__DURATION_TEXT_BYTES]);

/* A day of UTC; month and day from 1. Days are counted from 1970-01-01. */
struct il__date {
    int year, month, day;
};
struct il__date il__date_of(int64_t days);
/* -1: no such day, or before 1970. */
int64_t il__date_days(int year, int month, int day);
bool    il__date_is_leap(int64_t year);
#define IL__DATE_TEXT_BYTES 11
/* 2026-11-15, up to the year 9999; parsed from 1970 on. */
const char *il__date_text(int64_t days, char out[IL__DATE_TEXT_BYTES]);
bool        il__date_parse(const char *text, int64_t *ret_days);

#define IL__TIME_TEXT_BYTES 32
/* RFC 3339 UTC with milliseconds: 2026-11-15T03:37:00.250Z. */
const char *il__time_text(int64_t wall_ms, char out[IL__TIME_TEXT_BYTES]);
/* RFC 3339, from 1970 on, with any offset; truncated to milliseconds. */
bool il__time_parse(const char *text, int64_t *ret_ms);

#endif
