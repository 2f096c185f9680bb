/*
 * arena.h: memory that is given back all at once: a chain of growing blocks behind one pointer.
 */
#ifndef IL_BASE_ARENA_H
#define IL_BASE_ARENA_H

#include "base/base.h"

/* *chain is NULL at first. 16-byte aligned; NULL when there is no memory. */
void *il__arena_alloc(void **chain, size_t n_bytes);
char *il__arena_strdup(void **chain, const char *s);
/* Give everything back; *chain is NULL afterwards. */
void il__arena_free(void **chain);
/* Forget everything but keep the newest block for the next use. */
void il__arena_clear(void **chain);

#endif
