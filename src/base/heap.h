/*
 * heap.h: a priority queue: an intrusive pairing heap. Operations never fail, because the nodes are
 * embedded in the objects.
 *
 * Adding a node, and removing the first when few were added after it, touch only a few neighbours
 * whatever the size of the heap; a binary heap would move a short lease past twenty levels of a
 * million longer ones and back. Removing an arbitrary node is O(log n), amortised.
 */
#ifndef IL_BASE_HEAP_H
#define IL_BASE_HEAP_H

#include "base/base.h"

struct il__heap_node {
    int64_t               at;    /* the smallest comes first; usually a time */
    struct il__heap_node *child; /* first child */
    struct il__heap_node *next;  /* next sibling */
    struct il__heap_node *back;  /* previous sibling; of a first child: the parent */
};

/* Tie-breaker for equal `at`: does a come before b? */
typedef bool il__heap_before(const struct il__heap_node *a, const struct il__heap_node *b);

struct il__heap {
    struct il__heap_node *first;  /* NULL while empty */
    il__heap_before      *before; /* NULL: either may come first */
    size_t                n;
};

/* Add a node that is in no heap; its `at` is set. */
void il__heap_add(struct il__heap *h, struct il__heap_node *node);
/* Remove a node from the heap. Its sort key may have changed, provided that the heap has not been
 * used since. */
void il__heap_remove(struct il__heap *h, struct il__heap_node *node);
/* Change the `at` of a node in the heap. */
void il__heap_move(struct il__heap *h, struct il__heap_node *node, int64_t at);

/* Is the first node due? */
static inline bool
il__heap_due(const struct il__heap *h, int64_t now)
{
    return h->first != NULL && h->first->at <= now;
}

#endif
