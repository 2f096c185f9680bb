/*
 * tables.c: the memory engine's hash tables and pools. Nothing here knows what a lock is.
 *
 * Growing can fail for lack of memory; whoever adds something reserves first and changes afterwards, so
 * that a failed op leaves everything as it was.
 */
#include "base/hash.h"
#include "core/key.h"
#include "store/memory/memory_internal.h"

static uint64_t
hash_tenant(struct mem_store *m, const char *tenant, size_t n_bytes)
{
    if (n_bytes != m->tenant_bytes || memcmp(m->tenant, tenant, n_bytes) != 0) {
        CHECK(n_bytes < sizeof m->tenant);
        m->tenant_bytes = n_bytes;
        memcpy(m->tenant, tenant, n_bytes + 1);
        m->tenant_hash = il__hash_bytes(tenant, n_bytes);
    }
    return m->tenant_hash;
}

uint64_t
il__mem_hash_key(struct mem_store *m, const char *tenant, const char *key)
{
    return il__hash_mix(il__hash_bytes(key, strlen(key)), hash_tenant(m, tenant, strlen(tenant)));
}

uint64_t
il__mem_hash_op(struct mem_store *m, const il_op *op)
{
    return il__hash_mix(il__hash_bytes(op->key, op->n_bytes.key),
                        hash_tenant(m, op->tenant, op->n_bytes.tenant));
}

uint64_t
il__mem_hash_unit(struct mem_store *m, const char *tenant, const char *holder)
{
    return il__hash_mix(il__hash_bytes(holder, il__holder_root_bytes(holder)),
                        hash_tenant(m, tenant, strlen(tenant)));
}

struct mem_names
il__mem_names(struct mem_store *m, const il_op *op)
{
    struct mem_names names = { .key = il__mem_hash_op(m, op) };
    uint64_t         root  = il__hash_bytes(op->holder, op->n_bytes.root);

    names.holder = root;
    if (op->n_bytes.root != op->n_bytes.holder)
        names.holder = il__hash_bytes(op->holder, op->n_bytes.holder);
    names.unit   = il__hash_mix(root, m->tenant_hash);
    return names;
}

/* ---- pools: an object that was just freed is still in the cache ------------------------------------- */

#define KEY_BYTES 128 /* with its names, mostly */
#define HOLD_BYTES 256
#define POOL_MAX 1024 /* beyond that, memory is given back */

static void *
pool_take(struct mem_pool *p, size_t block_bytes, size_t n_bytes)
{
    void *block = p->free;

    if (n_bytes > block_bytes)
        return il__alloc(n_bytes);
    if (block == NULL)
        return il__alloc(block_bytes);
    memcpy(&p->free, block, sizeof p->free);
    p->n--;
    return block;
}

static void
pool_give(struct mem_pool *p, size_t block_bytes, void *block, size_t n_bytes)
{
    if (n_bytes > block_bytes || p->n >= POOL_MAX) {
        il__free(block);
        return;
    }
    memcpy(block, &p->free, sizeof p->free);
    p->free = block;
    p->n++;
}

static void
pool_release(struct mem_pool *p)
{
    while (p->free != NULL) {
        void *block = p->free;
        memcpy(&p->free, block, sizeof p->free);
        il__free(block);
    }
}

static size_t
key_bytes(const struct mem_key *k)
{
    return sizeof *k + (size_t)(k->key - k->tenant) + strlen(k->key) + 1;
}

static size_t
hold_bytes(const struct mem_hold *h)
{
    return sizeof *h + (size_t)(h->place - h->holder) + strlen(h->place) + 1;
}

/* ---- keys: open addressing with linear probing; deletion moves the run up, no tombstones -------- */

struct mem_key *
il__mem_key_find(struct mem_store *m, uint64_t hash, const char *tenant, const char *key)
{
    if (m->keys_size == 0)
        return NULL;
    for (size_t i = hash & (m->keys_size - 1);; i = (i + 1) & (m->keys_size - 1)) {
        struct mem_key *k = m->keys[i].key;
        if (k == NULL)
            return NULL;
        if (m->keys[i].hash == hash && strcmp(k->key, key) == 0 && strcmp(k->tenant, tenant) == 0)
            return k;
    }
}

static void
keys_place(struct mem_slot *keys, size_t size, struct mem_slot slot)
{
    size_t i = slot.hash & (size - 1);

    while (keys[i].key != NULL)
        i = (i + 1) & (size - 1);
    keys[i] = slot;
}

static bool
keys_reserve(struct mem_store *m)
{
    if (m->n_keys * 2 < m->keys_size)
        return true;
    size_t           size = m->keys_size == 0 ? 256 : m->keys_size * 2;
    struct mem_slot *keys = il__calloc_table(size, sizeof *keys);
    if (keys == NULL)
        return false;
    for (size_t i = 0; i < m->keys_size; i++) {
        if (m->keys[i].key != NULL)
            keys_place(keys, size, m->keys[i]);
    }
    il__free(m->keys);
    m->keys      = keys;
    m->keys_size = size;
    return true;
}

struct mem_key *
il__mem_key_add(struct mem_store *m, uint64_t hash, const il_op *op)
{
    size_t tenant_bytes = op->n_bytes.tenant + 1U;
    size_t name_bytes   = op->n_bytes.key + 1U;

    if (!keys_reserve(m))
        return NULL;
    struct mem_key *k = pool_take(&m->key_pool, KEY_BYTES, sizeof *k + tenant_bytes + name_bytes);
    if (k == NULL)
        return NULL;
    *k = (struct mem_key){ .hash = hash, .key = k->tenant + tenant_bytes };
    memcpy(k->tenant, op->tenant, tenant_bytes);
    memcpy(k->tenant + tenant_bytes, op->key, name_bytes);
    keys_place(m->keys, m->keys_size, (struct mem_slot){ .hash = hash, .key = k });
    m->n_keys++;
    return k;
}

void
il__mem_key_drop_if_idle(struct mem_store *m, struct mem_key *k)
{
    size_t mask = m->keys_size - 1;
    size_t i    = k->hash & mask;

    if (k->leases.n > 0 || k->waiters.n > 0)
        return;
    while (m->keys[i].key != k)
        i = (i + 1) & mask;
    /* Close the gap: move up every later key of the run that may stand at the gap. */
    for (size_t j = (i + 1) & mask; m->keys[j].key != NULL; j = (j + 1) & mask) {
        size_t home = m->keys[j].hash & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            m->keys[i] = m->keys[j];
            i          = j;
        }
    }
    m->keys[i] = (struct mem_slot){ 0 };
    m->n_keys--;
    pool_give(&m->key_pool, KEY_BYTES, k, key_bytes(k));
}

/* ---- lists ---------------------------------------------------------------------------------------- */

void
il__mem_list_append(struct mem_list *list, struct mem_hold *h)
{
    h->prev = list->tail;
    h->next = NULL;
    if (list->tail != NULL)
        list->tail->next = h;
    else
        list->head = h;
    list->tail = h;
    list->n++;
}

void
il__mem_list_remove(struct mem_list *list, struct mem_hold *h)
{
    CHECK(list->n > 0);
    if (h->prev != NULL)
        h->prev->next = h->next;
    else
        list->head = h->next;
    if (h->next != NULL)
        h->next->prev = h->prev;
    else
        list->tail = h->prev;
    list->n--;
}

/* ---- units: chained buckets ------------------------------------------------------------------------ */

static void
unit_link(struct mem_hold **units, size_t size, struct mem_hold *h)
{
    struct mem_hold **bucket = &units[h->unit_hash & (size - 1)];

    h->unit_prev = NULL;
    h->unit_next = *bucket;
    if (*bucket != NULL)
        (*bucket)->unit_prev = h;
    *bucket = h;
}

static void
unit_unlink(struct mem_store *m, struct mem_hold *h)
{
    if (h->unit_prev != NULL)
        h->unit_prev->unit_next = h->unit_next;
    else
        m->units[h->unit_hash & (m->units_size - 1)] = h->unit_next;
    if (h->unit_next != NULL)
        h->unit_next->unit_prev = h->unit_prev;
}

static bool
units_reserve(struct mem_store *m)
{
    /* Four times as many buckets as holds: most look-ups end at an empty one. */
    if (m->n_holds * 4 < m->units_size)
        return true;
    size_t            size  = m->units_size == 0 ? 256 : m->units_size * 2;
    struct mem_hold **units = il__calloc_table(size, sizeof *units);
    if (units == NULL)
        return false;
    for (size_t i = 0; i < m->units_size; i++) {
        struct mem_hold *next;
        for (struct mem_hold *h = m->units[i]; h != NULL; h = next) {
            next = h->unit_next;
            unit_link(units, size, h);
        }
    }
    il__free(m->units);
    m->units      = units;
    m->units_size = size;
    return true;
}

static struct mem_hold *
unit_match(struct mem_hold *h, uint64_t hash, const char *tenant, const char *holder)
{
    while (h != NULL && (h->unit_hash != hash || !il__holder_same_root(h->holder, holder) ||
                         strcmp(h->key->tenant, tenant) != 0))
        h = h->unit_next;
    return h;
}

struct mem_hold *
il__mem_unit_first(struct mem_store *m, uint64_t unit_hash, const char *tenant, const char *holder)
{
    if (m->units_size == 0)
        return NULL;
    return unit_match(m->units[unit_hash & (m->units_size - 1)], unit_hash, tenant, holder);
}

struct mem_hold *
il__mem_unit_next(struct mem_hold *h)
{
    return unit_match(h->unit_next, h->unit_hash, h->key->tenant, h->holder);
}

/* ---- holds ---------------------------------------------------------------------------------------------- */

/* A new hold for an acquire, in the heap and in its unit, but in neither list of the key yet. */
struct mem_hold *
il__mem_hold_new(struct mem_store *m, struct mem_key *k, const il_op *op,
                 const struct mem_names *names, int64_t due_ms)
{
    const il_lock_in *in           = &op->in.lock;
    const char       *meta         = in->meta != NULL ? in->meta : "";
    const char       *place        = in->place != NULL ? in->place : "";
    size_t            holder_bytes = op->n_bytes.holder + 1U;
    size_t            meta_bytes   = strlen(meta) + 1;
    size_t            place_bytes  = strlen(place) + 1;

    if (!units_reserve(m))
        return NULL;
    struct mem_hold *h =
        pool_take(&m->hold_pool, HOLD_BYTES, sizeof *h + holder_bytes + meta_bytes + place_bytes);
    if (h == NULL)
        return NULL;
    *h = (struct mem_hold){
        .key           = k,
        .holder_hash   = names->holder,
        .unit_hash     = names->unit,
        .mode          = in->mode,
        .permits       = in->permits,
        .ttl_ms        = in->ttl_ms,
        .settle_ms     = in->settle_ms,
        .since_ms      = m->now_ms,
        .renewed_ms    = m->now_ms,
        .due_ms        = due_ms,
        .meta          = h->holder + holder_bytes,
        .place         = h->holder + holder_bytes + meta_bytes,
    };
    memcpy(h->holder, op->holder, holder_bytes);
    memcpy(h->holder + holder_bytes, meta, meta_bytes);
    memcpy(h->holder + holder_bytes + meta_bytes, place, place_bytes);
    unit_link(m->units, m->units_size, h);
    il__mem_due_add(m, h);
    m->n_holds++;
    return h;
}

void
il__mem_hold_free(struct mem_store *m, struct mem_hold *h)
{
    il__mem_due_remove(m, h);
    unit_unlink(m, h);
    m->n_holds--;
    il__free(h->verdict);
    pool_give(&m->hold_pool, HOLD_BYTES, h, hold_bytes(h));
}

static void
free_list(struct mem_list *list)
{
    struct mem_hold *next;

    for (struct mem_hold *h = list->head; h != NULL; h = next) {
        next = h->next;
        il__free(h->verdict);
        il__free(h);
    }
}

void
il__mem_tables_release(struct mem_store *m)
{
    for (size_t i = 0; i < m->keys_size; i++) {
        struct mem_key *k = m->keys[i].key;
        if (k == NULL)
            continue;
        free_list(&k->leases);
        free_list(&k->waiters);
        il__free(k);
    }
    il__free(m->keys);
    il__free(m->units);
    pool_release(&m->key_pool);
    pool_release(&m->hold_pool);
    il__ended_release(&m->ended);
}
