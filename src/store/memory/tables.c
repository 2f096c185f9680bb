/*
 * tables.c: keys, units of work, lists and pools of the memory engine. Nothing here knows what a
 * lock is.
 *
 * Growing a table can fail for lack of memory. Callers reserve memory before they change anything,
 * so a failed op leaves everything unchanged.
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
    names.unit = il__hash_mix(root, m->tenant_hash);
    /* Both will be read; in a large store that is two cache misses, which may as well overlap. */
    il__map_prefetch(&m->keys, names.key);
    il__map_prefetch(&m->units, names.unit);
    return names;
}

/* ---- pools: an object that was just freed is still in the cache ------------------------------ */

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

/* ---- keys ------------------------------------------------------------------------------------ */

struct mem_key *
il__mem_key_find(struct mem_store *m, uint64_t hash, const char *tenant, const char *key)
{
    struct mem_key *k;

    for (size_t i = il__map_start(&m->keys, hash); (k = il__map_next(&m->keys, hash, &i)) != NULL;
         i++) {
        if (strcmp(k->key, key) == 0 && strcmp(k->tenant, tenant) == 0)
            return k;
    }
    return NULL;
}

struct mem_key *
il__mem_key_add(struct mem_store *m, uint64_t hash, const il_op *op)
{
    size_t tenant_bytes = op->n_bytes.tenant + 1U;
    size_t name_bytes   = op->n_bytes.key + 1U;

    if (!il__map_reserve(&m->keys))
        return NULL;
    struct mem_key *k = pool_take(&m->key_pool, KEY_BYTES, sizeof *k + tenant_bytes + name_bytes);
    if (k == NULL)
        return NULL;
    *k = (struct mem_key){ .hash = hash, .key = k->tenant + tenant_bytes };
    memcpy(k->tenant, op->tenant, tenant_bytes);
    memcpy(k->tenant + tenant_bytes, op->key, name_bytes);
    il__map_add(&m->keys, hash, k);
    return k;
}

void
il__mem_key_drop_if_idle(struct mem_store *m, struct mem_key *k)
{
    if (k->leases.n > 0 || k->waiters.n > 0)
        return;
    il__map_remove(&m->keys, k->hash, k);
    pool_give(&m->key_pool, KEY_BYTES, k, key_bytes(k));
}

/* ---- lists ----------------------------------------------------------------------------------- */

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

/* Add to and remove from the queue of its key and the list of all waiters. The newest ticket comes
 * last. */
void
il__mem_wait_begin(struct mem_store *m, struct mem_hold *h)
{
    il__mem_list_append(&h->key->waiters, h);
    h->wait_next = NULL;
    h->wait_prev = m->waiting_last;
    if (m->waiting_last != NULL)
        m->waiting_last->wait_next = h;
    else
        m->waiting = h;
    m->waiting_last = h;
    m->n_waiters++;
}

void
il__mem_wait_end(struct mem_store *m, struct mem_hold *h)
{
    CHECK(m->n_waiters > 0);
    il__mem_list_remove(&h->key->waiters, h);
    if (h->wait_prev != NULL)
        h->wait_prev->wait_next = h->wait_next;
    else
        m->waiting = h->wait_next;
    if (h->wait_next != NULL)
        h->wait_next->wait_prev = h->wait_prev;
    else
        m->waiting_last = h->wait_prev;
    m->n_waiters--;
}

/* ---- units of work: a chain of holds each, the youngest first -------------------------------- */

struct mem_hold *
il__mem_unit_first(struct mem_store *m, uint64_t unit_hash, const char *tenant, const char *holder)
{
    struct mem_hold *h;

    for (size_t i = il__map_start(&m->units, unit_hash);
         (h = il__map_next(&m->units, unit_hash, &i)) != NULL; i++) {
        if (il__holder_same_root(h->holder, holder) && strcmp(h->key->tenant, tenant) == 0)
            return h;
    }
    return NULL;
}

struct mem_hold *
il__mem_unit_next(struct mem_hold *h)
{
    return h->unit_next;
}

/* There is room in the map. */
static void
unit_link(struct mem_store *m, struct mem_hold *h)
{
    struct mem_hold *first = il__mem_unit_first(m, h->unit_hash, h->key->tenant, h->holder);

    h->unit_prev = NULL;
    h->unit_next = first;
    if (first != NULL) {
        first->unit_prev = h;
        il__map_replace(&m->units, h->unit_hash, first, h);
    } else {
        il__map_add(&m->units, h->unit_hash, h);
    }
}

static void
unit_unlink(struct mem_store *m, struct mem_hold *h)
{
    if (h->unit_next != NULL)
        h->unit_next->unit_prev = h->unit_prev;
    if (h->unit_prev != NULL)
        h->unit_prev->unit_next = h->unit_next;
    else if (h->unit_next != NULL)
        il__map_replace(&m->units, h->unit_hash, h, h->unit_next);
    else
        il__map_remove(&m->units, h->unit_hash, h);
}

/* ---- holds ----------------------------------------------------------------------------------- */

/* Ties in due time: leases by key, then waiters by ticket. So every engine sweeps in the same
 * order. */
bool
il__mem_hold_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    const struct mem_hold *x       = const_container_of(a, struct mem_hold, due);
    const struct mem_hold *y       = const_container_of(b, struct mem_hold, due);
    bool                   x_waits = x->state == IL_LEASE_WAITING;
    bool                   y_waits = y->state == IL_LEASE_WAITING;

    if (x_waits || y_waits)
        return y_waits && (!x_waits || x->ticket < y->ticket);
    int by_tenant = strcmp(x->key->tenant, y->key->tenant);
    return by_tenant != 0 ? by_tenant < 0 : strcmp(x->key->key, y->key->key) < 0;
}

/* A new lease or waiter for an acquire, in the heap and in its unit, but not yet in a list of the
 * key. */
struct mem_hold *
il__mem_hold_new(struct mem_store *m, struct mem_key *k, const il_op *op,
                 const struct mem_names *names, il_lease_state state, int64_t due_ms)
{
    const il_lock_in *in           = &op->in.lock;
    const char       *meta         = in->meta != NULL ? in->meta : "";
    const char       *place        = in->place != NULL ? in->place : "";
    size_t            holder_bytes = op->n_bytes.holder + 1U;
    size_t            meta_bytes   = strlen(meta) + 1;
    size_t            place_bytes  = strlen(place) + 1;

    if (!il__map_reserve(&m->units))
        return NULL;
    struct mem_hold *h =
        pool_take(&m->hold_pool, HOLD_BYTES, sizeof *h + holder_bytes + meta_bytes + place_bytes);
    if (h == NULL)
        return NULL;
    *h = (struct mem_hold){
        .key         = k,
        .state       = state,
        .ticket      = state == IL_LEASE_WAITING ? ++m->ticket : 0,
        .holder_hash = names->holder,
        .unit_hash   = names->unit,
        .mode        = in->mode,
        .permits     = in->permits,
        .ttl_ms      = in->ttl_ms,
        .settle_ms   = in->settle_ms,
        .since_ms    = m->now_ms,
        .renewed_ms  = m->now_ms,
        .due.at      = due_ms,
        .meta        = h->holder + holder_bytes,
        .place       = h->holder + holder_bytes + meta_bytes,
    };
    memcpy(h->holder, op->holder, holder_bytes);
    memcpy(h->holder + holder_bytes, meta, meta_bytes);
    memcpy(h->holder + holder_bytes + meta_bytes, place, place_bytes);
    unit_link(m, h);
    il__heap_add(&m->due, &h->due);
    m->n_holds++;
    return h;
}

void
il__mem_hold_free(struct mem_store *m, struct mem_hold *h)
{
    il__heap_remove(&m->due, &h->due);
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
    for (size_t i = 0; i < m->keys.size; i++) {
        struct mem_key *k = m->keys.slots[i].item;
        if (k == NULL)
            continue;
        free_list(&k->leases);
        free_list(&k->waiters);
        il__free(k);
    }
    il__map_release(&m->keys);
    il__map_release(&m->units);
    pool_release(&m->key_pool);
    pool_release(&m->hold_pool);
    il__ended_release(&m->ended);
}
