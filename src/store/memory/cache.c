/*
 * cache.c: cached values in the memory engine. The rules are in src/core/cache.md.
 *
 * An entry holds the name of a key. Its value and its build are separate objects, each in a heap
 * ordered by its own clock. An entry with neither is deleted at once.
 */
#include "store/memory/cache.h"

#include "base/tree.h"
#include "core/cache.h"
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"

struct mem_value {
    struct il__cache_value v;
    struct il__heap_node   date; /* at v.purge_at */
    struct mem_cache      *entry;
    char                   data[];
};

struct mem_build {
    struct il__cache_build b;
    struct il__heap_node   date; /* at b.expires_ms */
    struct mem_cache      *entry;
    char                   holder[];
};

struct mem_cache {
    struct mem_value    *value; /* NULL = none */
    struct mem_build    *build; /* NULL = none */
    uint64_t             hash;
    struct il__tree_node by_name;  /* in names */
    const char          *key;      /* in tenant[], after the tenant */
    char                 tenant[]; /* then key */
};

struct mem_caches {
    struct il__map  map;    /* struct mem_cache by tenant and key */
    struct il__tree names;  /* the same in their order */
    struct il__heap values; /* on the wall clock */
    struct il__heap builds; /* in lease time */
};

static bool
value_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return const_container_of(a, struct mem_value, date)->v.filled <
           const_container_of(b, struct mem_value, date)->v.filled;
}

static bool
build_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return const_container_of(a, struct mem_build, date)->b.token <
           const_container_of(b, struct mem_build, date)->b.token;
}

bool
il__mem_cache_init(struct mem_store *m)
{
    m->caches = il__calloc(1, sizeof *m->caches);
    if (m->caches == NULL)
        return false;
    m->caches->values.before = value_before;
    m->caches->builds.before = build_before;
    return true;
}

void
il__mem_cache_release(struct mem_store *m)
{
    struct mem_caches *all = m->caches;

    if (all == NULL)
        return;
    for (size_t i = 0; i < all->map.size; i++) {
        struct mem_cache *k = all->map.slots[i].item;
        if (k == NULL)
            continue;
        il__free(k->value);
        il__free(k->build);
        il__free(k);
    }
    il__map_release(&all->map);
    il__free(all);
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct mem_cache *
find(const struct mem_caches *all, uint64_t hash, const il_op *op)
{
    struct mem_cache *k;

    for (size_t i = il__map_start(&all->map, hash); (k = il__map_next(&all->map, hash, &i)) != NULL;
         i++) {
        if (strcmp(k->key, op->key) == 0 && strcmp(k->tenant, op->tenant) == 0)
            return k;
    }
    return NULL;
}

static struct mem_cache *
add(struct mem_caches *all, uint64_t hash, const il_op *op)
{
    size_t tenant_bytes = op->n_bytes.tenant + 1U;
    size_t key_bytes    = op->n_bytes.key + 1U;

    if (!il__map_reserve(&all->map))
        return NULL;
    struct mem_cache *k = il__alloc(sizeof *k + tenant_bytes + key_bytes);
    if (k == NULL)
        return NULL;
    *k = (struct mem_cache){ .hash = hash, .key = k->tenant + tenant_bytes };
    memcpy(k->tenant, op->tenant, tenant_bytes);
    memcpy(k->tenant + tenant_bytes, op->key, key_bytes);
    il__map_add(&all->map, hash, k);
    k->by_name = (struct il__tree_node){ .first = k->tenant, .second = k->key };
    il__tree_add(&all->names, &k->by_name);
    return k;
}

static void
delete_if_empty(struct mem_caches *all, struct mem_cache *k)
{
    if (k->value != NULL || k->build != NULL)
        return;
    il__map_remove(&all->map, k->hash, k);
    il__tree_remove(&all->names, &k->by_name);
    il__free(k);
}

static void
value_delete(struct mem_caches *all, struct mem_cache *k)
{
    if (k->value != NULL)
        il__heap_remove(&all->values, &k->value->date);
    il__free(k->value);
    k->value = NULL;
}

static void
build_delete(struct mem_caches *all, struct mem_cache *k)
{
    if (k->build != NULL)
        il__heap_remove(&all->builds, &k->build->date);
    il__free(k->build);
    k->build = NULL;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

static bool
give_value(il_op *op, const struct mem_cache *k)
{
    op->out.value_bytes = k->value->v.data_bytes;
    op->out.value       = il__op_blob(op, k->value->data, k->value->v.data_bytes);
    return op->out.value != NULL;
}

/* Store a new build in place of a dead one. False: no memory, and nothing was changed. */
static bool
build_add(struct mem_store *m, il_op *op, uint64_t hash, struct mem_cache *k)
{
    struct mem_caches *all   = m->caches;
    size_t             bytes = op->n_bytes.holder + 1U;
    struct mem_build  *b     = il__alloc(sizeof *b + bytes);

    if (b == NULL)
        return false;
    if (k == NULL)
        k = add(all, hash, op);
    if (k == NULL) {
        il__free(b);
        return false;
    }
    memcpy(b->holder, op->holder, bytes);
    b->entry = k;
    b->b     = (struct il__cache_build){
            .holder     = b->holder,
            .token      = il__fence_next(&m->fence),
            .expires_ms = m->now_ms + op->in.cache.lease_ms,
            .began_ms   = m->now_ms,
            .began_at   = m->wall_ms,
    };
    build_delete(all, k);
    k->build   = b;
    b->date.at = b->b.expires_ms;
    il__heap_add(&all->builds, &b->date);
    op->out.fence = b->b.token;
    return true;
}

static struct il__cache
stored(const struct mem_store *m, const struct mem_cache *k)
{
    return (struct il__cache){
        .value   = k != NULL && k->value != NULL ? &k->value->v : NULL,
        .build   = k != NULL && k->build != NULL ? &k->build->b : NULL,
        .now_ms  = m->now_ms,
        .wall_ms = m->wall_ms,
    };
}

static void
no_memory(il_op *op)
{
    il__op_reset(op);
    op->status = IL_NOMEM;
}

static void
look_up(struct mem_store *m, il_op *op, uint64_t hash, struct mem_cache *k)
{
    struct il__cache c     = stored(m, k);
    unsigned         steps = il__cache_lookup(op, &c);

    if (((steps & IL__CACHE_SHOW) != 0 && !give_value(op, k)) ||
        ((steps & IL__CACHE_LEAD) != 0 && !build_add(m, op, hash, k))) {
        no_memory(op);
        return;
    }
    if ((steps & IL__CACHE_RENEW) != 0) {
        k->build->b.expires_ms = m->now_ms + op->in.cache.lease_ms;
        il__heap_move(&m->caches->builds, &k->build->date, k->build->b.expires_ms);
    }
}

/* ---- changes --------------------------------------------------------------------------------- */

static void
wake(struct mem_store *m, const il_op *op)
{
    il__board_wake(&m->board, il__board_slot(op->tenant, op->key, IL__WAKE_CACHE));
}

static void
fill(struct mem_store *m, il_op *op, struct mem_cache *k)
{
    struct il__cache       c = stored(m, k);
    struct il__cache_value made;

    if (!il__cache_fill(op, &c, &made))
        return;
    struct mem_value *v = il__alloc(sizeof *v + made.data_bytes);
    if (v == NULL) {
        no_memory(op);
        return;
    }
    if (made.data_bytes > 0)
        memcpy(v->data, made.data, made.data_bytes);
    made.data = v->data;
    v->v      = made;
    v->entry  = k;
    value_delete(m->caches, k);
    build_delete(m->caches, k);
    k->value   = v;
    v->date.at = v->v.purge_at;
    il__heap_add(&m->caches->values, &v->date);
    wake(m, op);
}

static void
drop(struct mem_store *m, il_op *op, struct mem_cache *k)
{
    struct il__cache       c = stored(m, k);
    struct il__cache_value rest;

    op->status = IL_OK;
    if (k == NULL)
        return;
    if (il__cache_drop(op, &c, &rest)) {
        k->value->v = rest;
        il__heap_move(&m->caches->values, &k->value->date, rest.purge_at);
    } else {
        value_delete(m->caches, k);
    }
    if (k->build != NULL) {
        wake(m, op);
        il__board_wake(&m->board, IL__BOARD_BREAK); /* notify its builder */
    }
#ifndef IL_MUTANT_fill_after_drop_accepted
    build_delete(m->caches, k);
#endif
    delete_if_empty(m->caches, k);
}

static void
abandon(struct mem_store *m, il_op *op, struct mem_cache *k)
{
    struct il__cache c = stored(m, k);

    if (!il__cache_abandon(op, &c))
        return;
    build_delete(m->caches, k);
    delete_if_empty(m->caches, k);
    wake(m, op);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void
count_value(il_cache_info *info, const struct il__cache_value *v, int64_t wall_ms)
{
    bool fresh = il__cache_is_fresh(v, wall_ms);

    if (!fresh && !il__cache_is_stale(v, wall_ms))
        return;
    info->n_entries++;
    info->n_bytes += v->data_bytes;
    info->n_fresh += fresh;
    info->n_stale += !fresh;
    info->n_negative += v->negative;
}

/* The next entry of the op's tenant and prefix after `after`; NULL: none. */
static const struct mem_cache *
next_entry(const struct mem_store *m, const il_op *op, const char *after)
{
    const char                 *prefix = op->in.list.prefix != NULL ? op->in.list.prefix : "";
    const struct il__tree      *names  = &m->caches->names;
    const struct il__tree_node *node   = after != NULL && strcmp(after, prefix) >= 0
                                             ? il__tree_after(names, op->tenant, after, 0)
                                             : il__tree_first(names, op->tenant, prefix);

    if (node == NULL || strcmp(node->first, op->tenant) != 0 ||
        strncmp(node->second, prefix, strlen(prefix)) != 0)
        return NULL;
    return const_container_of(node, struct mem_cache, by_name);
}

/* A page of keys that have a value or a build. */
static void
count(struct mem_store *m, il_op *op)
{
    const char *after = NULL;
    uint64_t    number;
    uint32_t    n = 0;

    op->status = IL_OK;
    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after, &number));
    const struct mem_cache *k = next_entry(m, op, after);
    for (; k != NULL && n < op->in.list.limit; k = next_entry(m, op, after), n++) {
        if (k->value != NULL)
            count_value(&op->out.cache, &k->value->v, m->wall_ms);
        op->out.cache.n_building += k->build != NULL && m->now_ms < k->build->b.expires_ms;
        after = k->key;
    }
    if (k != NULL && (op->out.next = il__op_cursor(op, after, 0)) == NULL)
        no_memory(op);
}

uint32_t
il__mem_cache_usage(const struct mem_store *m, il_op *op, struct il__usage_place *place, uint32_t n)
{
    uint32_t i = 0;

    for (const struct mem_cache *k; i < n && (k = next_entry(m, op, place->name)) != NULL; i++) {
        if (k->value != NULL) {
            op->out.usage.n_rows++;
            op->out.usage.n_bytes += strlen(k->key) + k->value->v.data_bytes;
        }
        place->name = k->key;
    }
    return i;
}

void
il__mem_cache_op(struct mem_store *m, il_op *op)
{
    if (op->type == IL_OP_CACHE_STATS) {
        count(m, op);
        return;
    }
    uint64_t          hash = il__mem_hash_op(m, op);
    struct mem_cache *k    = find(m->caches, hash, op);
    switch (op->type) {
    case IL_OP_CACHE_GET:
    case IL_OP_CACHE_LOOKUP:
        look_up(m, op, hash, k);
        break;
    case IL_OP_CACHE_FILL:
        fill(m, op, k);
        break;
    case IL_OP_CACHE_ABANDON:
        abandon(m, op, k);
        break;
    default:
        CHECK(op->type == IL_OP_CACHE_DROP);
        drop(m, op, k);
    }
}

/* ---- retention ------------------------------------------------------------------------------- */

/* Expired values and dead builds, which are no longer visible. Only values count as purged. */
void
il__mem_cache_sweep(struct mem_store *m, il_op *op)
{
    struct mem_caches *all   = m->caches;
    uint32_t           limit = op->in.list.limit;

    for (uint32_t n = 0; n < limit && il__heap_due(&all->values, m->wall_ms); n++) {
        struct mem_cache *k = container_of(all->values.first, struct mem_value, date)->entry;
        value_delete(all, k);
        delete_if_empty(all, k);
        op->out.sweep.n_purged++;
    }
    for (uint32_t n = 0; n < limit && il__heap_due(&all->builds, m->now_ms); n++) {
        struct mem_cache *k = container_of(all->builds.first, struct mem_build, date)->entry;
        build_delete(all, k);
        delete_if_empty(all, k);
    }
    if (il__mem_cache_overdue(m))
        op->out.flags |= IL_OUT_MORE;
}

bool
il__mem_cache_overdue(const struct mem_store *m)
{
    return il__heap_due(&m->caches->values, m->wall_ms) ||
           il__heap_due(&m->caches->builds, m->now_ms);
}
