/*
 * key.h: names. Which are acceptable, the class of a key, the root of a holder.
 */
#ifndef IL_CORE_KEY_H
#define IL_CORE_KEY_H

#include "base/base.h"

/* Bytes of the class of `key`: the part before the first ':', all of it when there is none. */
size_t il__key_class_bytes(const char *key);

/* Bytes of the root of `holder`: the part before the first '/'. Nested units are `parent/n`. */
size_t il__holder_root_bytes(const char *holder);

/* Do both belong to one unit of work: is the root the same? */
bool il__holder_same_root(const char *a, const char *b);

/* Is `outer` a proper ancestor of `inner`: "job" of "job/1" and of "job/1/2", not of "job"? */
bool il__holder_is_ancestor(const char *outer, const char *inner);

/*
 * The quick check of a name: 1..n_max bytes of printable ASCII. The length, or 0 when it is not that: then
 * il__check_text() decides.
 */
size_t il__plain_name_bytes(const char *text, size_t n_max);

/*
 * Check a text that a user gave: not NULL, n_min..n_max bytes, valid UTF-8, no control characters
 * (unless `multiline`, which also allows them for meta). IL_INVAL names `what` and the reason.
 */
il_status il__check_text(const char *what, const char *text, size_t n_min, size_t n_max,
                         bool multiline, il_error *reterr) MUST_USE;
/* The same for one that may be left out or empty. */
il_status il__check_optional(const char *what, const char *text, size_t n_max, bool multiline,
                             il_error *reterr) MUST_USE;

#endif
