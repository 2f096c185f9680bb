/*
 * error.c: the status table, and filling in an il_error.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static const struct status_row {
    const char *wire;
    const char *text;
    int         http;
    int         exit_status;
    int         retryable;
} status_rows[] = {
#define X(name, num, wire, http, exit_status, retry, text) \
    [num] = { wire, text, http, exit_status, retry },
    IL_STATUS_MAP(X)
#undef X
};

_Static_assert(ARRAY_LEN(status_rows) == IL_STATUS_COUNT,
               "IL_STATUS_COUNT counts the status table");

static const struct status_row *
row_of(il_status status)
{
    size_t i = (size_t)status;

    return i < ARRAY_LEN(status_rows) ? &status_rows[i] : &status_rows[IL_STORE];
}

const char *
il_status_name(il_status status)
{
    return row_of(status)->wire;
}

const char *
il_status_text(il_status status)
{
    return row_of(status)->text;
}

int
il_status_http(il_status status)
{
    return row_of(status)->http;
}

int
il_status_exit(il_status status)
{
    return row_of(status)->exit_status;
}

int
il_status_retryable(il_status status)
{
    return row_of(status)->retryable;
}

il_status
il__error_set(il_error *reterr, il_status status, const char *fmt, ...)
{
    CHECK(status != IL_OK);
    if (reterr == NULL)
        return status;

    va_list ap;
    va_start(ap, fmt);
    reterr->status        = status;
    reterr->native[0]     = '\0';
    reterr->holder[0]     = '\0';
    reterr->fence         = 0;
    reterr->constraint[0] = '\0';
    (void)vsnprintf(reterr->message, sizeof reterr->message, fmt, ap); /* a long text is cut */
    va_end(ap);
    return status;
}

il_status
il__error_nomem(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory");
}
