/*
 * order.c: lock order. Ranks are a list; learned edges form a small graph, searched depth-first.
 *
 * Edges connect classes, not keys, so there are few of them even with many keys;
 * IL__ORDER_EDGES_MAX bounds them per store all the same.
 */
#include "core/order.h"

#include "base/hash.h"
#include "core/key.h"
#include "core/limits.h"

bool
il__ranks_copy(const struct il__ranks *from, struct il__ranks *ret)
{
    char **names = il__calloc(from->n + 1, sizeof *names);

    *ret = (struct il__ranks){ .classes = (const char *const *)names };
    for (size_t i = 0; names != NULL && i < from->n; i++) {
        names[i] = il__strdup(from->classes[i]);
        if (names[i] == NULL)
            return false;
        ret->n++;
    }
    return names != NULL;
}

void
il__ranks_release(struct il__ranks *ranks)
{
    for (size_t i = 0; i < ranks->n; i++)
        il__free((void *)(uintptr_t)ranks->classes[i]); /* owned: see il__ranks_copy() */
    il__free((void *)(uintptr_t)ranks->classes);
    *ranks = (struct il__ranks){ 0 };
}

static bool
class_is(const char *class, const char *key, size_t key_class_bytes)
{
    return strlen(class) == key_class_bytes && memcmp(class, key, key_class_bytes) == 0;
}

static bool
same_class(const char *a, const char *b)
{
    size_t n = il__key_class_bytes(a);

    return n == il__key_class_bytes(b) && memcmp(a, b, n) == 0;
}

size_t
il__order_rank(const struct il__ranks *ranks, const char *key)
{
    size_t n_bytes = il__key_class_bytes(key);

    for (size_t i = 0; ranks != NULL && i < ranks->n; i++) {
        if (class_is(ranks->classes[i], key, n_bytes))
            return i + 1;
    }
    return 0;
}

static const char *
place_text(const char *place)
{
    return place != NULL && place[0] != '\0' ? place : "unknown place";
}

bool
il__order_rank_ok(const struct il__ranks *ranks, const struct il__order_hold *hold, const char *key,
                  const char *place, struct il__buf *why)
{
    size_t held  = il__order_rank(ranks, hold->key);
    size_t asked = il__order_rank(ranks, key);

    if (held == 0 || asked == 0 || asked >= held)
        return true;
    if (why != NULL)
        il__buf_addf(
            why,
            "'%s' (rank %zu, requested at %s) must be locked before '%s' (rank %zu, locked at %s)",
            key, asked, place_text(place), hold->key, held, place_text(hold->place));
    return false;
}

static void
edge_release(struct il__order_edge *e)
{
    il__free(e->tenant);
    il__free(e->first);
    il__free(e->then);
    il__free(e->first_place);
    il__free(e->then_place);
}

void
il__order_release(struct il__order *o)
{
    for (size_t i = 0; i < o->n; i++)
        edge_release(&o->edges[i]);
    il__free(o->edges);
    il__map_release(&o->by_first);
    *o = (struct il__order){ 0 };
}

static uint64_t
hash_class(const char *tenant, const char *class, size_t class_bytes)
{
    return il__hash_mix(il__hash_bytes(class, class_bytes), il__hash_bytes(tenant, strlen(tenant)));
}

/* The next edge from a class, at or after index position *at; NULL if none. */
static const struct il__order_edge *
next_edge(const struct il__order *o, const char *tenant, const char *first, size_t first_bytes,
          size_t *at)
{
    uint64_t hash = hash_class(tenant, first, first_bytes);
    void    *item;

    for (; (item = il__map_next(&o->by_first, hash, at)) != NULL; ++*at) {
        const struct il__order_edge *e = &o->edges[(uintptr_t)item - 1];
        if (strcmp(e->tenant, tenant) == 0 && class_is(e->first, first, first_bytes))
            return e;
    }
    return NULL;
}

#define FOR_EDGES_FROM(e, o, tenant, first, first_bytes)                                           \
    for (size_t at_ = il__map_start(&(o)->by_first, hash_class((tenant), (first), (first_bytes))); \
         ((e) = next_edge((o), (tenant), (first), (first_bytes), &at_)) != NULL; at_++)

/* A copy of the class of a key. */
static char *
class_of(const char *key)
{
    return il__strndup(key, il__key_class_bytes(key));
}

bool
il__order_add(struct il__order *o, const struct il__order_seen *e)
{
    if (!il__map_reserve(&o->by_first) ||
        !il__grow(&o->edges, o->n, &o->capacity, sizeof *o->edges))
        return false;
    struct il__order_edge copy = {
        .tenant      = il__strdup(e->tenant),
        .first       = class_of(e->first),
        .then        = class_of(e->then),
        .first_place = il__strdup(e->first_place != NULL ? e->first_place : ""),
        .then_place  = il__strdup(e->then_place != NULL ? e->then_place : ""),
        .against     = e->against,
    };
    if (copy.tenant == NULL || copy.first == NULL || copy.then == NULL ||
        copy.first_place == NULL || copy.then_place == NULL) {
        edge_release(&copy);
        return false;
    }
    o->edges[o->n++] = copy;
    il__map_add(&o->by_first, hash_class(copy.tenant, copy.first, strlen(copy.first)),
                (void *)(uintptr_t)o->n);
    return true;
}

/*
 * Is `to` (a key) reachable from class `from` along edges that follow the order? Returns the path's
 * first edge, or NULL. `seen` marks edges already followed, so each is visited once.
 */
static const struct il__order_edge *
path_from(const struct il__order *o, const char *tenant, const char *from, size_t from_bytes,
          const char *to, bool *seen)
{
    const struct il__order_edge *e;

    FOR_EDGES_FROM(e, o, tenant, from, from_bytes)
    {
        size_t i = (size_t)(e - o->edges);
        if (seen[i] || e->against)
            continue;
        seen[i] = true;
        if (class_is(e->then, to, il__key_class_bytes(to)) ||
            path_from(o, tenant, e->then, strlen(e->then), to, seen) != NULL)
            return e;
    }
    return NULL;
}

static const struct il__order_edge *
find_edge(const struct il__order *o, const char *tenant, const char *first, const char *then)
{
    const struct il__order_edge *e;

    FOR_EDGES_FROM(e, o, tenant, first, il__key_class_bytes(first))
    {
        if (class_is(e->then, then, il__key_class_bytes(then)))
            return e;
    }
    return NULL;
}

unsigned
il__order_judge(const struct il__order *o, const char *tenant, const struct il__order_hold *hold,
                const char *key, const char *place, struct il__buf *why)
{
    CHECK(o->n <= IL__ORDER_EDGES_MAX);
    if (same_class(hold->key, key))
        return 0;
    const struct il__order_edge *known = find_edge(o, tenant, hold->key, key);
    if (known != NULL && !known->against)
        return 0;
    bool   seen[IL__ORDER_EDGES_MAX];
    size_t key_class = il__key_class_bytes(key);
    memset(seen, 0, o->n);
    const struct il__order_edge *e = path_from(o, tenant, key, key_class, hold->key, seen);
    if (e != NULL)
        il__buf_addf(why,
                     "'%s' requested at %s while '%s' is held, locked at %s; but '%s' before '%s' "
                     "was learned at %s and %s",
                     key, place_text(place), hold->key, place_text(hold->place), e->first, e->then,
                     place_text(e->first_place), place_text(e->then_place));
    bool learn = known == NULL && o->n < IL__ORDER_EDGES_MAX;
    return (e != NULL ? IL__ORDER_AGAINST : 0U) | (learn ? IL__ORDER_LEARN : 0U);
}
