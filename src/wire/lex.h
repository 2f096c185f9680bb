/*
 * lex.h: JSON tokens. Each function returns the end of its token, or NULL if there is none. Private
 * to this folder.
 */
#ifndef IL_WIRE_LEX_H
#define IL_WIRE_LEX_H

#include "base/base.h"

#define LEX_NUMBER_BYTES 64 /* longer numbers are rejected */

const char *il__lex_space(const char *at, const char *end); /* never NULL */
/* With its quotes; *ret_escaped: it contains a backslash. */
const char *il__lex_string(const char *at, const char *end, bool *ret_escaped);
/* *ret_whole: without '.' and 'e', and it fits an int64_t. */
const char *il__lex_number(const char *at, const char *end, bool *ret_whole);
/* Copy a number and append a NUL; false: too long. */
bool il__lex_number_copy(const char *text, const char *end, char out[LEX_NUMBER_BYTES]);

/* Number of bytes that need no escape in a string (ASCII); length of the multi-byte UTF-8 character
 * at s, or 0. */
size_t il__lex_plain(const char *s, size_t n_bytes);
size_t il__lex_utf8(const char *s, size_t n_bytes);
/* Four hexadecimal digits; -1 when they are none. */
int il__lex_hex4(const char *s, const char *end);

#endif
