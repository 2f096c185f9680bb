/*
 * suggest.h: "did you mean": the nearest of some names, by edit distance.
 */
#ifndef IL_BASE_SUGGEST_H
#define IL_BASE_SUGGEST_H

#include "base/base.h"

/* The name that `word` was probably meant to be, or NULL. next(cookie, 0), next(cookie, 1), …
 * return the candidates, then NULL. */
const char *il__suggest(const char *word, const char *(*next)(const void *cookie, size_t i),
                        const void *cookie);

#endif
