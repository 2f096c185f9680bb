/*
 * order.c: lock order. Ranks are a list; learned edges are a small graph that is searched depth first.
 *
 * Edges join classes, not keys, so there are few of them however many keys there are; they are bounded
 * by IL__ORDER_EDGES_MAX per store all the same.
 */
#include "core/order.h"

#include "core/key.h"
#include "core/limits.h"

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

/* The rank of the key's class, counted from 1; 0 when it has none. */
static size_t
rank_of(const struct il__ranks *ranks, const char *key)
{
    size_t n_bytes = il__key_class_bytes(key);

    for (size_t i = 0; i < ranks->n; i++) {
        if (class_is(ranks->classes[i], key, n_bytes))
            return i + 1;
    }
    return 0;
}

static const char *
place_text(const char *place)
{
    return place != NULL && place[0] != '\0' ? place : "an unnamed place";
}

bool
il__order_rank_ok(const struct il__ranks *ranks, const struct il__order_hold *hold, const char *key,
                  const char *place, struct il__buf *why)
{
    if (ranks == NULL || ranks->n == 0)
        return true;
    size_t held  = rank_of(ranks, hold->key);
    size_t asked = rank_of(ranks, key);
    if (held == 0 || asked == 0 || asked >= held)
        return true;
    if (why != NULL)
        il__buf_addf(
            why, "'%s' (rank %zu, asked for at %s) must be taken before '%s' (rank %zu, taken at %s)",
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
    *o = (struct il__order){ 0 };
}

bool
il__order_add(struct il__order *o, const char *tenant, const char *first, size_t first_bytes,
              const char *then, size_t then_bytes, const char *first_place, const char *then_place)
{
    if (o->n == o->capacity) {
        size_t                 capacity = o->capacity == 0 ? 16 : o->capacity * 2;
        struct il__order_edge *grown    = il__realloc(o->edges, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        o->edges    = grown;
        o->capacity = capacity;
    }
    struct il__order_edge e = {
        .tenant      = il__strdup(tenant),
        .first       = il__strndup(first, first_bytes),
        .then        = il__strndup(then, then_bytes),
        .first_place = il__strdup(first_place != NULL ? first_place : ""),
        .then_place  = il__strdup(then_place != NULL ? then_place : ""),
    };
    if (e.tenant == NULL || e.first == NULL || e.then == NULL || e.first_place == NULL ||
        e.then_place == NULL) {
        edge_release(&e);
        return false;
    }
    o->edges[o->n++] = e;
    return true;
}

/*
 * Is `to` (a key) reachable from class `from` along learned edges? Returns the index of the path's first
 * edge, or o->n. `seen` marks edges already followed, so each is looked at once.
 */
static size_t
path_from(const struct il__order *o, const char *tenant, const char *from, size_t from_bytes,
          const char *to, bool *seen)
{
    for (size_t i = 0; i < o->n; i++) {
        const struct il__order_edge *e = &o->edges[i];
        if (seen[i] || strcmp(e->tenant, tenant) != 0 || !class_is(e->first, from, from_bytes))
            continue;
        seen[i] = true;
        if (class_is(e->then, to, il__key_class_bytes(to)) ||
            path_from(o, tenant, e->then, strlen(e->then), to, seen) < o->n)
            return i;
    }
    return o->n;
}

enum il__order_verdict
il__order_judge(const struct il__order *o, const char *tenant, const struct il__order_hold *hold,
                const char *key, const char *place, struct il__buf *why)
{
    bool seen[IL__ORDER_EDGES_MAX] = { false };

    CHECK(o->n <= IL__ORDER_EDGES_MAX);
    if (same_class(hold->key, key))
        return IL__ORDER_FINE;
    for (size_t i = 0; i < o->n; i++) {
        const struct il__order_edge *e = &o->edges[i];
        if (strcmp(e->tenant, tenant) == 0 &&
            class_is(e->first, hold->key, il__key_class_bytes(hold->key)) &&
            class_is(e->then, key, il__key_class_bytes(key)))
            return IL__ORDER_FINE;
    }
    size_t i = path_from(o, tenant, key, il__key_class_bytes(key), hold->key, seen);
    if (i < o->n) {
        const struct il__order_edge *e = &o->edges[i];
        il__buf_addf(
            why,
            "'%s' asked for at %s while '%s' is held, taken at %s; but '%s' before '%s' was "
            "learned at %s and %s",
            key, place_text(place), hold->key, place_text(hold->place), e->first, e->then,
            place_text(e->first_place), place_text(e->then_place));
        return IL__ORDER_AGAINST;
    }
    return o->n < IL__ORDER_EDGES_MAX ? IL__ORDER_NEW : IL__ORDER_FINE;
}
