/*
 * cursor.c: cursors of listings; see cursor.h.
 */
#include "core/cursor.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "core/op.h"

const char *
il__op_cursor(il_op *op, const char *key, uint64_t number)
{
    size_t n_bytes = strlen(key) + 18;
    char  *text    = il__op_alloc(op, n_bytes);

    if (text != NULL)
        (void)snprintf(text, n_bytes, "%" PRIx64 ":%s", number, key);
    return text;
}

bool
il__cursor_parse(const char *cursor, const char **ret_key, uint64_t *ret_number)
{
    size_t   n_digits = strspn(cursor, "0123456789abcdef");
    uint64_t number   = 0;

    if (n_digits == 0 || n_digits > 16 || cursor[n_digits] != ':')
        return false;
    for (size_t i = 0; i < n_digits; i++)
        number = number * 16 + (uint64_t)il__hex_digit(cursor[i]);
    *ret_key    = cursor + n_digits + 1;
    *ret_number = number;
    return number <= INT64_MAX && il_check_key(*ret_key, NULL) == IL_OK;
}
