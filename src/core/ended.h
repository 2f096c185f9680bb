/*
 * ended.h: remembers which (key, holder) ended less than a minute ago.
 *
 * A client may repeat an acquire whose answer was lost, and a copy of it may arrive late, after the
 * holder has released the key. Without this memory that copy would create an orphaned lease.
 *
 * It is bounded: if more than IL__ENDED_MAX end within a minute (1,000 a second), only the newest
 * are kept.
 *
 * A name is represented by a 128-bit hash. On a collision the second holder would be refused for a
 * minute; nothing could be granted by mistake.
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
 * A ring in time order with a hash index: adding appends, forgetting drops from the front, so both
 * access memory sequentially. Entries have sequence numbers; number s is in slot s % n_slots.
 */
struct il__ended_log {
    struct il__ended *ring;
    uint32_t         *buckets; /* newest of a chain: the low half of its sequence number */
    size_t            n_slots; /* of the ring, and a quarter of the buckets; a power of two */
    uint64_t          first;   /* sequence number of the oldest, counted from 1 */
    size_t            n;
    /*
     * Nearly every lookup is for a holder that never ended, and would be a cache miss in a large
     * index. So it checks two small Bloom filters first (8 bits per slot each): every entry of the
     * ring is in one of them. They alternate: when n_slots entries were added to one, the other is
     * cleared and takes over.
     */
    uint64_t *filters[2];
    size_t    n_filtered; /* entries added to filters[0], the newer one */
};

void il__ended_release(struct il__ended_log *e);

/* Reserve room for n_more entries, as far as IL__ENDED_MAX allows. False: out of memory, nothing
 * changed. */
bool il__ended_grow(struct il__ended_log *e, size_t want) MUST_USE;
static inline bool
il__ended_reserve(struct il__ended_log *e, size_t n_more)
{
    size_t want = MIN(e->n + n_more, IL__ENDED_MAX);

    return want <= e->n_slots || il__ended_grow(e, want);
}

/*
 * Add an entry; ended_ms never decreases. Forgets up to two outdated entries. Never fails: if no
 * room can be made, the oldest is forgotten.
 */
void il__ended_add(struct il__ended_log *e, struct il__ended_id id, uint64_t fence,
                   il_lease_state how, int64_t ended_ms);

/* Remove the newest n after the transaction that added them was rolled back. */
void il__ended_undo(struct il__ended_log *e, size_t n);

/* Did it end less than IL__ENDED_KEEP_MS before now? NULL when not. */
const struct il__ended *il__ended_find(const struct il__ended_log *e, struct il__ended_id id,
                                       int64_t now_ms);

/* Forget outdated entries, at most `limit`. */
void il__ended_purge(struct il__ended_log *e, int64_t now_ms, size_t limit);

#endif
