/*
 * check.h: test assertions. Every failure prints its location and both values.
 *
 * Works inside cmocka tests and in plain programs (which then exit with a failure), from the main
 * thread only.
 */
#ifndef T_CHECK_H
#define T_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define T_FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)
#define T_TRUE(x) ((x) ? (void)0 : t_fail(__FILE__, __LINE__, "not true: %s", #x))

/* Equal as numbers, as unsigned numbers, as strings (both may be NULL). */
#define T_EQ(actual, expected) \
    t_eq((int64_t)(actual), (int64_t)(expected), #actual, __FILE__, __LINE__)
#define T_EQU(actual, expected) \
    t_equ((uint64_t)(actual), (uint64_t)(expected), #actual, __FILE__, __LINE__)
#define T_STREQ(actual, expected) t_streq((actual), (expected), #actual, __FILE__, __LINE__)
/* `text` holds `part`. */
#define T_HAS(text, part) t_has((text), (part), #text, __FILE__, __LINE__)
/* a < b, as unsigned numbers. */
#define T_LESS(a, b) t_less((uint64_t)(a), (uint64_t)(b), #a " < " #b, __FILE__, __LINE__)

_Noreturn void t_fail(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);

void t_eq(int64_t actual, int64_t expected, const char *what, const char *file, int line);
void t_equ(uint64_t actual, uint64_t expected, const char *what, const char *file, int line);
void t_streq(const char *actual, const char *expected, const char *what, const char *file,
             int line);
void t_has(const char *text, const char *part, const char *what, const char *file, int line);
void t_less(uint64_t a, uint64_t b, const char *what, const char *file, int line);

#endif
