/*
 * arena.h: arena allocator: a chain of growing blocks behind one pointer, freed all at once.
 */
#ifndef IL_BASE_ARENA_H
#define IL_BASE_ARENA_H

#include "base/base.h"

/* *chain starts as NULL. The result is 16-byte aligned; NULL when out of memory. */
void *il__arena_alloc(void **chain, size_t n_bytes);
char *il__arena_strdup(void **chain, const char *s);
/*
 * Append an uninitialised item to an array in the arena: `array` is the address of the pointer to
 * it, *n its count, which is incremented. The array doubles at powers of two; the old copy stays.
 * NULL: out of memory, nothing changed. Start with a count of 0, and only append with this.
 */
void *il__arena_append(void **chain, void *array, size_t *n, size_t item_bytes);
/* Total size of its blocks in bytes. */
size_t il__arena_bytes(const void *chain);
/* Free everything; *chain is NULL afterwards. */
void il__arena_free(void **chain);
/* Discard the contents but keep the newest block for reuse. */
void il__arena_clear(void **chain);

#endif
