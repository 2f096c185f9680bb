/*
 * ended.c: the memory that a (key, holder) ended, for a minute.
 *
 * A ring in order of time with a hash index over it: adding appends, forgetting drops from the front, so
 * both touch memory in order and neither looks at anything else. Entries have sequence numbers; number s
 * stands in slot s % n_slots.
 */
#include "core/limits.h"
#include "store/memory/memory_internal.h"

static struct mem_ended *
slot_of(const struct mem_ended_log *e, uint64_t seq)
{
    return &e->ring[seq & (e->n_slots - 1)];
}

static uint64_t *
bucket_of(const struct mem_ended_log *e, uint64_t key_hash, uint64_t holder_hash)
{
    return &e->buckets[(key_hash ^ (holder_hash << 1)) & (2 * e->n_slots - 1)];
}

/* Is this number one that the ring still has? 0 never is. */
static bool
is_kept(const struct mem_ended_log *e, uint64_t seq)
{
    return e->n > 0 && seq != 0 && seq - e->first < e->n;
}

static void
index_entry(struct mem_ended_log *e, uint64_t seq)
{
    struct mem_ended *entry  = slot_of(e, seq);
    uint64_t         *bucket = bucket_of(e, entry->key_hash, entry->holder_hash);

    entry->older = *bucket;
    *bucket      = seq;
}

/* Room for one more than there are live holds, since each of those may end without asking for memory. */
bool
il__mem_ended_reserve(struct mem_store *m)
{
    struct mem_ended_log *e = &m->ended;

    if (e->n + m->n_due + 1 < e->n_slots)
        return true;
    struct mem_ended_log grown = { .n_slots = e->n_slots == 0 ? 256 : e->n_slots * 2,
                                   .first   = e->first,
                                   .n       = e->n };
    while (e->n + m->n_due + 1 >= grown.n_slots)
        grown.n_slots *= 2;
    grown.ring    = il__alloc(grown.n_slots * sizeof *grown.ring);
    grown.buckets = il__calloc(2 * grown.n_slots, sizeof *grown.buckets);
    if (grown.ring == NULL || grown.buckets == NULL) {
        il__free(grown.ring);
        il__free(grown.buckets);
        return false;
    }
    if (e->n == 0)
        grown.first = 1;
    for (uint64_t i = 0; i < e->n; i++) {
        *slot_of(&grown, e->first + i) = *slot_of(e, e->first + i);
        index_entry(&grown, e->first + i);
    }
    il__free(e->ring);
    il__free(e->buckets);
    *e = grown;
    return true;
}

void
il__mem_ended_add(struct mem_store *m, const struct mem_hold *h, il_lease_state how)
{
    struct mem_ended_log *e = &m->ended;

    CHECK(e->n < e->n_slots);
    uint64_t seq = e->first + e->n;
    *slot_of(e, seq) = (struct mem_ended){
        .key_hash    = h->key->hash,
        .holder_hash = h->holder_hash,
        .fence       = h->fence & (((uint64_t)1 << 56) - 1),
        .how         = (unsigned char)how,
        .ended_ms    = m->now_ms,
    };
    index_entry(e, seq);
    e->n++;
}

const struct mem_ended *
il__mem_ended_find(const struct mem_store *m, uint64_t key_hash, uint64_t holder_hash)
{
    const struct mem_ended_log *e = &m->ended;

    if (e->n == 0)
        return NULL;
    uint64_t seq = *bucket_of(e, key_hash, holder_hash);
    for (; is_kept(e, seq); seq = slot_of(e, seq)->older) {
        const struct mem_ended *entry = slot_of(e, seq);
        if (m->now_ms - entry->ended_ms >= IL__ENDED_KEEP_MS)
            return NULL; /* the chain goes from young to old */
        if (entry->key_hash == key_hash && entry->holder_hash == holder_hash)
            return entry;
    }
    return NULL;
}

/* Forget whole minutes at a time, as the SQLite engine does. */
uint32_t
il__mem_ended_purge(struct mem_store *m, uint32_t limit)
{
    struct mem_ended_log *e        = &m->ended;
    uint32_t              n_purged = 0;

    while (e->n > 0 && n_purged < limit &&
           slot_of(e, e->first)->ended_ms / IL__ENDED_KEEP_MS + 2 <= m->now_ms / IL__ENDED_KEEP_MS) {
        e->first++;
        e->n--;
        n_purged++;
    }
    return n_purged;
}
