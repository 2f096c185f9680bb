/*
 * check.c: test assertions.
 */
#include "harness/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "harness/cmocka.h"

_Noreturn void
t_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "%s:%d: ", file, line);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    _fail(file, line); /* leaves the test, or the program when there is no test */
    abort();
}

void
t_eq(int64_t actual, int64_t expected, const char *what, const char *file, int line)
{
    if (actual != expected)
        t_fail(file, line, "%s is %" PRId64 ", expected %" PRId64, what, actual, expected);
}

void
t_equ(uint64_t actual, uint64_t expected, const char *what, const char *file, int line)
{
    if (actual != expected)
        t_fail(file, line, "%s is %" PRIu64 ", expected %" PRIu64, what, actual, expected);
}

void
t_streq(const char *actual, const char *expected, const char *what, const char *file, int line)
{
    if (actual == NULL && expected == NULL)
        return;
    if (actual == NULL || expected == NULL || strcmp(actual, expected) != 0)
        t_fail(file, line, "%s is '%s', expected '%s'", what, actual != NULL ? actual : "(NULL)",
               expected != NULL ? expected : "(NULL)");
}

void
t_has(const char *text, const char *part, const char *what, const char *file, int line)
{
    if (text == NULL || strstr(text, part) == NULL)
        t_fail(file, line, "%s is '%s', expected '%s' in it", what, text != NULL ? text : "(NULL)",
               part);
}

void
t_less(uint64_t a, uint64_t b, const char *what, const char *file, int line)
{
    if (a >= b)
        t_fail(file, line, "not %s: %" PRIu64 " and %" PRIu64, what, a, b);
}
