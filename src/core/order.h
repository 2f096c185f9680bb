/*
 * order.h: lock order by class: declared ranks (violations are refused) and learned edges
 * (violations are reported). The engine supplies what a unit of work holds; the logic is shared by
 * all engines.
 */
#ifndef IL_CORE_ORDER_H
#define IL_CORE_ORDER_H

#include "base/base.h"
#include "base/buf.h"
#include "base/map.h"

/* Declared order: class i must be taken before class j > i. Borrowed strings. */
struct il__ranks {
    const char *const *classes;
    size_t             n;
};

/* A deep copy, to be released; false: out of memory, but the partial copy must be released, too. */
bool il__ranks_copy(const struct il__ranks *from, struct il__ranks *ret) MUST_USE;
void il__ranks_release(struct il__ranks *ranks);

/* One key that the unit of work holds. */
struct il__order_hold {
    const char *key;
    const char *place;
};

/*
 * May a unit of work that has `hold` now request `key`? False when both classes are ranked and
 * `key` belongs before `hold`; then `why` (may be NULL) gets a sentence that names both places.
 * Keys of one class never break the order.
 */
bool il__order_rank_ok(const struct il__ranks *ranks, const struct il__order_hold *hold,
                       const char *key, const char *place, struct il__buf *why);

/* The rank of the key's class, counted from 1; 0 if unranked. ranks may be NULL. */
size_t il__order_rank(const struct il__ranks *ranks, const char *key);

/* What is learned: `first` was held when `then` was taken. Borrowed strings. */
struct il__order_seen {
    const char *tenant;
    const char *first;
    const char *then;
    const char *first_place;
    const char *then_place;
    bool        against; /* the opposite was known then, directly or through other classes */
};

/* The same, stored. Owned strings. */
struct il__order_edge {
    char *tenant;
    char *first;
    char *then;
    char *first_place;
    char *then_place;
    bool  against;
};

/* The learned edges of a store. */
struct il__order {
    struct il__order_edge *edges;
    size_t                 n;
    size_t                 capacity;
    struct il__map         by_first; /* edge number + 1, as a pointer, by tenant and first class */
};

/* A verdict is an OR of these; 0: same class, or known and fine. */
enum il__order_verdict {
    IL__ORDER_LEARN   = 1 << 0, /* a new edge: the engine records it and adds it */
    IL__ORDER_AGAINST = 1 << 1, /* the opposite is known, directly or through other classes */
};

void il__order_release(struct il__order *o);

/*
 * What does taking `key` while holding `hold` imply? With IL__ORDER_AGAINST, `why` gets a sentence
 * that names the edge it goes against and where that was seen. Such an edge is learned too, but
 * only to be listed: the order that was seen first stays right.
 */
unsigned il__order_judge(const struct il__order *o, const char *tenant,
                         const struct il__order_hold *hold, const char *key, const char *place,
                         struct il__buf *why);

/*
 * Add an edge, a copy of `e`, whose classes may be keys: only their class counts. NULL places are
 * "". False: out of memory, nothing changed.
 */
bool il__order_add(struct il__order *o, const struct il__order_seen *e);

/* ---- order_list.c ---------------------------------------------------------------------------- */

/* Check limit, prefix and cursor of an ORDER_LIST. IL_INVAL. */
il_status il__order_list_check(il_op *op, il_error *reterr) MUST_USE;
/*
 * Carry out an ORDER_LIST: one page of the tenant's edges, by their classes, with what the graph of
 * all of them and the ranks say about each. `o` may have edges of other tenants, too.
 */
void il__order_list(const struct il__order *o, const struct il__ranks *ranks, il_op *op);

#endif
