/*
 * ended.c: the ring of ended leases and its index; the contract is in ended.h.
 */
#include "core/ended.h"

_Static_assert((IL__ENDED_MAX & (IL__ENDED_MAX - 1)) == 0, "the ring's size is a power of two");

static struct il__ended *
slot_of(const struct il__ended_log *e, uint64_t seq)
{
    return &e->ring[seq & (e->n_slots - 1)];
}

#define BUCKETS_PER_SLOT 1

static uint32_t *
bucket_of(const struct il__ended_log *e, struct il__ended_id id)
{
    return &e->buckets[(id.key ^ (id.holder << 1)) & (BUCKETS_PER_SLOT * e->n_slots - 1)];
}

/* Three bits of one word represent an entry. */
static uint64_t
filter_bits(struct il__ended_id id)
{
    return UINT64_C(1) << (id.holder >> 58) | UINT64_C(1) << ((id.holder >> 52) & 63) |
           UINT64_C(1) << ((id.holder >> 46) & 63);
}

static size_t
filter_word(const struct il__ended_log *e, struct il__ended_id id)
{
    return (id.key ^ id.holder) & (e->n_slots / 8 - 1);
}

static void
filter_add(struct il__ended_log *e, struct il__ended_id id)
{
    if (e->n_filtered == e->n_slots) {
        uint64_t *older = e->filters[1];
        e->filters[1]   = e->filters[0];
        e->filters[0]   = older;
        e->n_filtered   = 0;
        memset(older, 0, e->n_slots);
    }
    e->filters[0][filter_word(e, id)] |= filter_bits(id);
    e->n_filtered++;
}

/* False: it is certainly not in the ring. */
static bool
filter_has(const struct il__ended_log *e, struct il__ended_id id)
{
    uint64_t bits = filter_bits(id);
    size_t   word = filter_word(e, id);

    return (e->filters[0][word] & bits) == bits || (e->filters[1][word] & bits) == bits;
}

static void
index_entry(struct il__ended_log *e, uint64_t seq)
{
    struct il__ended *entry  = slot_of(e, seq);
    uint32_t         *bucket = bucket_of(e, entry->id);

    entry->older = *bucket;
    *bucket      = (uint32_t)seq;
    filter_add(e, entry->id);
}

void
il__ended_release(struct il__ended_log *e)
{
    il__free(e->ring);
    il__free(e->buckets);
    il__free(e->filters[0]);
    il__free(e->filters[1]);
    *e = (struct il__ended_log){ 0 };
}

bool
il__ended_grow(struct il__ended_log *e, size_t want)
{
    struct il__ended_log grown = { .n_slots = e->n_slots == 0 ? 256 : e->n_slots * 2,
                                   .first   = MAX(e->first, 1),
                                   .n       = e->n };
    while (want > grown.n_slots)
        grown.n_slots *= 2;
    grown.ring       = il__alloc(grown.n_slots * sizeof *grown.ring);
    grown.buckets    = il__calloc_table(BUCKETS_PER_SLOT * grown.n_slots, sizeof *grown.buckets);
    grown.filters[0] = il__calloc(grown.n_slots, 1);
    grown.filters[1] = il__calloc(grown.n_slots, 1);
    if (grown.ring == NULL || grown.buckets == NULL || grown.filters[0] == NULL ||
        grown.filters[1] == NULL) {
        il__ended_release(&grown);
        return false;
    }
    for (uint64_t i = 0; i < e->n; i++) {
        *slot_of(&grown, e->first + i) = *slot_of(e, e->first + i);
        index_entry(&grown, e->first + i);
    }
    il__ended_release(e);
    *e = grown;
    return true;
}

void
il__ended_add(struct il__ended_log *e, struct il__ended_id id, uint64_t fence, il_lease_state how,
              int64_t ended_ms)
{
    CHECK(fence < IL__FENCE_END);
    il__ended_purge(e, ended_ms, 2);
    if (e->n == e->n_slots && (e->n == IL__ENDED_MAX || !il__ended_reserve(e, 1))) {
        if (e->n == 0)
            return; /* not even space for one */
        e->first++;
        e->n--;
    }
    uint64_t seq     = e->first + e->n;
    *slot_of(e, seq) = (struct il__ended){
        .id       = id,
        .fence    = fence & ((UINT64_C(1) << 56) - 1),
        .how      = (unsigned char)how,
        .ended_ms = ended_ms,
    };
    index_entry(e, seq);
    e->n++;
}

void
il__ended_undo(struct il__ended_log *e, size_t n)
{
    e->n_filtered -=
        MIN(e->n_filtered, n); /* else undone entries would push live ones out of the filters */
    /* The newest entry is at the head of its chain, so chains are undone from the newest on. */
    for (; n > 0 && e->n > 0; n--) {
        const struct il__ended *entry = slot_of(e, e->first + e->n - 1);
        *bucket_of(e, entry->id)      = entry->older;
        e->n--;
    }
}

const struct il__ended *
il__ended_find(const struct il__ended_log *e, struct il__ended_id id, int64_t now_ms)
{
    if (e->n == 0 || !filter_has(e, id))
        return NULL;
    /*
     * i is the position in the ring, counted from the oldest, that the low half of a sequence
     * number denotes. Along a chain it only decreases. A half left over from long ago may denote
     * any position, but everything after it in its chain is even older and long forgotten, so the
     * search may stop there: names are compared.
     */
    size_t   end = e->n;
    uint32_t i   = *bucket_of(e, id) - (uint32_t)e->first;
    while (i < end) {
        const struct il__ended *entry = slot_of(e, e->first + i);
        if (now_ms - entry->ended_ms >= IL__ENDED_KEEP_MS)
            return NULL; /* chains run from newest to oldest */
        if (entry->id.key == id.key && entry->id.holder == id.holder)
            return entry;
        end = i;
        i   = entry->older - (uint32_t)e->first;
    }
    return NULL;
}

void
il__ended_purge(struct il__ended_log *e, int64_t now_ms, size_t limit)
{
    for (; limit > 0 && e->n > 0; limit--) {
        if (now_ms - slot_of(e, e->first)->ended_ms < IL__ENDED_KEEP_MS)
            return;
        e->first++;
        e->n--;
    }
}
