/*
 * map.h: a hash table of pointers: open addressing with linear probing. The hash is stored beside
 * the pointer, so that a lookup only dereferences entries with the right hash: in a large table
 * every other one would be a cache miss. Deleting closes the gap; no tombstones.
 */
#ifndef IL_BASE_MAP_H
#define IL_BASE_MAP_H

#include "base/base.h"

struct il__map_slot {
    uint64_t hash;
    void    *item; /* NULL = free */
};

struct il__map {
    struct il__map_slot *slots;
    size_t               size; /* a power of two, at least three times n; 0 while empty */
    size_t               n;
};

void il__map_release(struct il__map *m); /* the table, not the items */

/* Reserve room for one more item. False: out of memory, nothing changed. */
bool il__map_reserve(struct il__map *m) MUST_USE;
/* Add an item; room must have been reserved. */
void il__map_add(struct il__map *m, uint64_t hash, void *item);
/* Remove an item of the table, or replace it by another one with the same hash. */
void il__map_remove(struct il__map *m, uint64_t hash, const void *item);
void il__map_replace(struct il__map *m, uint64_t hash, const void *item, void *by);

/* The index to start searching for a hash, and the first item with that hash at or after an index;
 * NULL at the end. The caller compares names and continues with ++*i. */
static inline size_t
il__map_start(const struct il__map *m, uint64_t hash)
{
    return m->size > 0 ? hash & (m->size - 1) : 0;
}

static inline void *
il__map_next(const struct il__map *m, uint64_t hash, size_t *i)
{
    if (m->size == 0)
        return NULL;
    for (;; ++*i) {
        const struct il__map_slot *slot = &m->slots[*i & (m->size - 1)];
        if (slot->item == NULL || slot->hash == hash)
            return slot->item;
    }
}

/* Prefetch the slot of a hash that will be looked up soon. */
static inline void
il__map_prefetch(const struct il__map *m, uint64_t hash)
{
    if (m->size > 0)
        __builtin_prefetch(&m->slots[hash & (m->size - 1)]);
}

#endif
