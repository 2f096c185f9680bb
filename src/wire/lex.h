/*
 * lex.h: the parts of a JSON text, for the files of this folder. Each says where its part ends, or NULL: there is none.
 */
#ifndef IL_WIRE_LEX_H
#define IL_WIRE_LEX_H

#include "base/base.h"

#define LEX_NUMBER_BYTES 64 /* a longer number is none of ours */

const char *il__lex_space(const char *at, const char *end); /* never NULL */
/* With its quotes; *ret_escaped: it holds a backslash. */
const char *il__lex_string(const char *at, const char *end, bool *ret_escaped);
/* *ret_whole: without '.' and 'e', and it fits an int64_t. */
const char *il__lex_number(const char *at, const char *end, bool *ret_whole);
/* The text of a number with a NUL behind it; false: it is longer. */
bool il__lex_number_copy(const char *text, const char *end, char out[LEX_NUMBER_BYTES]);

/* How many bytes can stand in a string as they are (ASCII); bytes of the UTF-8 character at s, of more than one, or 0. */
size_t il__lex_plain(const char *s, size_t n_bytes);
size_t il__lex_utf8(const char *s, size_t n_bytes);
/* Four hexadecimal digits; -1 when they are none. */
int il__lex_hex4(const char *s, const char *end);

#endif
