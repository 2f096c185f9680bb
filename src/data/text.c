/*
 * text.c: sanitizes texts that must be stored: truncates long ones and replaces invalid UTF-8.
 */
#include "base/arena.h"
#include "base/parse.h"
#include "data/data_internal.h"

/* Length of the UTF-8 character at s, with n bytes left; 0 if invalid. */
static size_t
character_bytes(const char *s, size_t n)
{
    for (size_t len = 1; len <= MIN(n, 4); len++) {
        if (il__utf8_valid(s, len))
            return len;
    }
    return 0;
}

/* As much of the n bytes as fits, sanitised. */
static const char *
mend(void **arena, const char *text, size_t n, size_t n_max)
{
    char  *copy   = il__arena_alloc(arena, n_max + 1);
    size_t n_copy = 0;

    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < n;) {
        size_t len = character_bytes(text + i, n - i);
        if (n_copy + MAX(len, 1) > n_max)
            break;
        if (len == 0)
            copy[n_copy++] = '?';
        else
            memcpy(copy + n_copy, text + i, len);
        n_copy += len;
        i += MAX(len, 1);
    }
    copy[n_copy] = '\0';
    return copy;
}

const char *
il__data_fit(void **arena, const char *text, size_t n_max)
{
    if (text == NULL)
        return "";
    size_t n = strnlen(text, n_max + 4); /* one more character, so that it can be checked whole */
    return n <= n_max && il__utf8_valid(text, n) ? text : mend(arena, text, n, n_max);
}

/* Drop a character that the cut splits: up to three continuation bytes. */
const char *
il__data_fit_tail(void **arena, const char *text, size_t n_max)
{
    if (text == NULL)
        return "";
    size_t n = strlen(text);
    if (n > n_max) {
        text += n - n_max;
        n = n_max;
        for (unsigned i = 0; i < 3 && n > 0 && ((unsigned char)*text & 0xc0) == 0x80; i++) {
            text++;
            n--;
        }
    }
    return il__utf8_valid(text, n) ? text : mend(arena, text, n, n_max);
}
