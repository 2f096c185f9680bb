/*
 * key.h: valid names of keys, holders and tenants; the class of a key, the root of a holder.
 */
#ifndef IL_CORE_KEY_H
#define IL_CORE_KEY_H

#include "base/base.h"

/* Length of the class of `key`: the part before the first ':', or all of it without one. */
size_t il__key_class_bytes(const char *key);

/* Length of the root of `holder`: the part before the first '/'. Nested units are `parent/n`. */
size_t il__holder_root_bytes(const char *holder);

/* Do both belong to the same unit of work (have the same root)? */
bool il__holder_same_root(const char *a, const char *b);

/* Is `outer` a proper ancestor of `inner`: "job" of "job/1" and of "job/1/2", not of "job"? */
bool il__holder_is_ancestor(const char *outer, const char *inner);

/*
 * The fast check of a name: 1..n_max bytes of printable ASCII. Returns the length, or 0 if it does
 * not match: then il__check_text() decides.
 */
size_t il__plain_name_bytes(const char *text, size_t n_max);

/*
 * Check a text from a user: not NULL, n_min..n_max bytes, valid UTF-8, no control characters
 * (unless `multiline`, used for meta). IL_INVAL names `what` and the reason.
 */
il_status il__check_text(const char *what, const char *text, size_t n_min, size_t n_max,
                         bool multiline, il_error *reterr) MUST_USE;
/* The same for an optional text, which may be NULL or empty. */
il_status il__check_optional(const char *what, const char *text, size_t n_max, bool multiline,
                             il_error *reterr) MUST_USE;

#endif
