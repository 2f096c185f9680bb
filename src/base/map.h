/*
 * map.h: a hash table of pointers: open addressing with linear probing. The hash stands beside the pointer, so
 * that only an entry that is meant is ever looked at: in a large table everything else would be a
 * cache miss. Deleting closes the gap; there are no tombstones.
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

/* Room for one more. False: no memory, nothing was changed. */
bool il__map_reserve(struct il__map *m) MUST_USE;
/* Add an item, for which there is room. */
void il__map_add(struct il__map *m, uint64_t hash, void *item);
/* Remove an item that is there, or put another of the same hash in its place. */
void il__map_remove(struct il__map *m, uint64_t hash, const void *item);
void il__map_replace(struct il__map *m, uint64_t hash, const void *item, void *by);

/* The place to begin looking for a hash, and the item that has it at or after a place; NULL at the end. The
 * caller compares names and goes on with ++*i. */
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

/* Have the place fetched that will be looked at soon. */
static inline void
il__map_prefetch(const struct il__map *m, uint64_t hash)
{
    if (m->size > 0)
        __builtin_prefetch(&m->slots[hash & (m->size - 1)]);
}

#endif
