/*
 * ended.h: the memory that a (key, holder) ended less than a minute ago.
 *
 * Why it is kept: an acquire whose answer was lost may be repeated, and a copy of it may arrive late, after its
 * holder has released. Without this memory that copy would create a lease that nobody knows of.
 *
 * It is bounded: of more than IL__ENDED_MAX that ended within a minute (1,000 a second), the newest are kept.
 *
 * A name is represented by 128 bits of hash. Should two names ever share them, the second holder would be
 * refused for a minute; nothing could be granted by mistake.
 */
#ifndef IL_CORE_ENDED_H
#define IL_CORE_ENDED_H

#include "base/base.h"
#include "core/limits.h"

struct il__ended_id {
    uint64_t key;    /* hash of tenant and key */
    uint64_t holder; /* hash of the holder */
};

struct il__ended {
    struct il__ended_id id;
    uint64_t            fence : 56;
    uint64_t            how   : 8; /* il_lease_state */
    int64_t             ended_ms;
    uint32_t            older; /* the next of the bucket's chain, see below */
};

/*
 * A ring in order of time with a hash index over it: adding appends, forgetting drops from the front, so
 * both touch memory in order. Entries have sequence numbers; number s stands in slot s % n_slots.
 */
struct il__ended_log {
    struct il__ended *ring;
    uint32_t         *buckets; /* the youngest of a chain: the low half of its sequence number */
    size_t            n_slots; /* of the ring, and a quarter of the buckets; a power of two */
    uint64_t          first;   /* sequence number of the oldest, counted from 1 */
    size_t            n;
    /*
     * Nearly every look-up is for a holder that never ended, and would miss the cache in a large index. So
     * it asks two small bit fields first (Bloom filters, 8 bits per slot each): what is in the ring is in one
     * of them. They take turns: when n_slots entries went into one, the other is cleared and goes on.
     */
    uint64_t *filters[2];
    size_t    n_filtered; /* entries that went into filters[0], the younger one */
};

void il__ended_release(struct il__ended_log *e);

/* Room for n_more entries, as far as IL__ENDED_MAX allows. False: no memory, nothing was changed. */
bool il__ended_grow(struct il__ended_log *e, size_t want) MUST_USE;
static inline bool
il__ended_reserve(struct il__ended_log *e, size_t n_more)
{
    size_t want = MIN(e->n + n_more, IL__ENDED_MAX);

    return want <= e->n_slots || il__ended_grow(e, want);
}

/*
 * Add an entry; ended_ms never falls. Forgets up to two that are over. Never fails: when there is no room and
 * none to be had, the oldest is forgotten.
 */
void il__ended_add(struct il__ended_log *e, struct il__ended_id id, uint64_t fence,
                   il_lease_state how, int64_t ended_ms);

/* Take the newest n back, when the transaction that added them was undone. */
void il__ended_undo(struct il__ended_log *e, size_t n);

/* Did it end less than IL__ENDED_KEEP_MS before now? NULL when not. */
const struct il__ended *il__ended_find(const struct il__ended_log *e, struct il__ended_id id,
                                       int64_t now_ms);

/* Forget what is over, at most `limit`. */
void il__ended_purge(struct il__ended_log *e, int64_t now_ms, size_t limit);

#endif
