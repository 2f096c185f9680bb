/*
 * map.c: a hash table with open addressing; the contract is in map.h.
 */
#include "base/map.h"

void
il__map_release(struct il__map *m)
{
    il__free(m->slots);
    *m = (struct il__map){ 0 };
}

static void
place(struct il__map_slot *slots, size_t size, struct il__map_slot slot)
{
    size_t i = slot.hash & (size - 1);

    while (slots[i].item != NULL)
        i = (i + 1) & (size - 1);
    slots[i] = slot;
}

bool
il__map_reserve(struct il__map *m)
{
    if (m->n * 3 < m->size)
        return true;
    size_t               size  = m->size == 0 ? 256 : m->size * 2;
    struct il__map_slot *slots = il__calloc_table(size, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < m->size; i++) {
        if (m->slots[i].item != NULL)
            place(slots, size, m->slots[i]);
    }
    il__free(m->slots);
    m->slots = slots;
    m->size  = size;
    return true;
}

void
il__map_add(struct il__map *m, uint64_t hash, void *item)
{
    CHECK(m->n < m->size);
    CHECK(item != NULL);
    place(m->slots, m->size, (struct il__map_slot){ .hash = hash, .item = item });
    m->n++;
}

static size_t
find(const struct il__map *m, uint64_t hash, const void *item)
{
    size_t i = hash & (m->size - 1);

    while (m->slots[i].item != item) {
        CHECK(m->slots[i].item != NULL);
        i = (i + 1) & (m->size - 1);
    }
    return i;
}

void
il__map_replace(struct il__map *m, uint64_t hash, const void *item, void *by)
{
    m->slots[find(m, hash, item)].item = by;
}

void
il__map_remove(struct il__map *m, uint64_t hash, const void *item)
{
    size_t mask = m->size - 1;
    size_t i    = find(m, hash, item);

    /* Close the gap: move up every later item of the probe run that may occupy it. */
    for (size_t j = (i + 1) & mask; m->slots[j].item != NULL; j = (j + 1) & mask) {
        size_t home = m->slots[j].hash & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            m->slots[i] = m->slots[j];
            i           = j;
        }
    }
    m->slots[i] = (struct il__map_slot){ 0 };
    m->n--;
}
