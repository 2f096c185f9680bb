/*
 * json.h: printing JSON values, and building documents with jansson. Private to this folder.
 */
#ifndef IL_WIRE_JSON_H
#define IL_WIRE_JSON_H

#include "wire/wire.h"

/* Add a number. */
void il__json_add_int(struct il__buf *b, int64_t number);
/* Add a quoted, escaped string; invalid UTF-8 becomes U+FFFD. */
void il__json_add_string(struct il__buf *b, const char *text, size_t n_bytes);

/*
 * Add `text` without insignificant whitespace, if it is one JSON value that any reader can load:
 * strict grammar, UTF-8, no lone surrogate, no NUL, numbers in range, no depth beyond
 * WIRE_DEPTH_MAX; with only_nested it must be an object or an array. Otherwise false, and nothing
 * is added.
 */
bool il__json_add_value(struct il__buf *b, const char *text, size_t n_bytes, bool only_nested);

/* Add the compact text of a value that was loaded. */
void il__json_add_loaded(struct il__buf *b, const json_t *value);

/*
 * A number as it was written, for decimals: jansson has only doubles. It is a string that begins
 * with NUL, which no string of a loaded document contains. il__json_number_text() returns NULL for
 * any other value.
 */
json_t     *il__json_number(const char *text);
const char *il__json_number_text(const json_t *value);

/* A document being built. jansson propagates NULL: a value that could not be created cannot be
 * added either, so checking `failed` once at the end is enough. */
struct json_maker {
    json_t *schemas; /* schemas that others refer to; NULL = none */
    bool    failed;
};
void il__json_set(struct json_maker *m, json_t *object, const char *name, json_t *value);
void il__json_append(struct json_maker *m, json_t *array, json_t *value);

#endif
