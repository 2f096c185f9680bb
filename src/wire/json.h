/*
 * json.h: the text of JSON values, for the files of this folder; and documents that are made with jansson.
 */
#ifndef IL_WIRE_JSON_H
#define IL_WIRE_JSON_H

#include "wire/wire.h"

/* Add a number. */
void il__json_add_int(struct il__buf *b, int64_t number);
/* Add a string with quotes, escaped; what is not UTF-8 becomes U+FFFD. */
void il__json_add_string(struct il__buf *b, const char *text, size_t n_bytes);

/*
 * Add `text` without the spaces between its parts, if it is one JSON value that anybody could load: strict grammar, UTF-8, no lone surrogate, no NUL,
 * numbers that fit, no depth beyond WIRE_DEPTH_MAX; only_nested: and an object or an array. Otherwise false, and nothing is added.
 */
bool il__json_add_value(struct il__buf *b, const char *text, size_t n_bytes, bool only_nested);

/* Add the compact text of a value that was loaded. */
void il__json_add_loaded(struct il__buf *b, const json_t *value);

/* A document in the making. jansson hands NULL on: what could not be made cannot be put into anything, so one look at `failed` at the end is enough. */
struct json_maker {
    json_t *schemas; /* those that others refer to; NULL = none */
    bool    failed;
};
void il__json_set(struct json_maker *m, json_t *object, const char *name, json_t *value);
void il__json_append(struct json_maker *m, json_t *array, json_t *value);

#endif
