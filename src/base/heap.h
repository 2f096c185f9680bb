/*
 * heap.h: what comes first: a pairing heap through the objects themselves. Never fails: the nodes are in the objects.
 *
 * Adding one, and removing the first when few came after it, touch a few neighbours however many there are; a binary heap
 * would move a short lease past twenty levels of a million longer ones and back. Removing any object costs, amortised, the
 * logarithm of their number.
 */
#ifndef IL_BASE_HEAP_H
#define IL_BASE_HEAP_H

#include "base/base.h"

struct il__heap_node {
    int64_t               at;    /* the smallest comes first: mostly a time */
    struct il__heap_node *child; /* the first of those below */
    struct il__heap_node *next;  /* in the chain of those below the same one */
    struct il__heap_node *back;  /* the one before in that chain, or for its first the one above */
};

/* Of two with the same `at`: does a come before b? */
typedef bool il__heap_before(const struct il__heap_node *a, const struct il__heap_node *b);

struct il__heap {
    struct il__heap_node *first;  /* NULL while empty */
    il__heap_before      *before; /* NULL: either may come first */
    size_t                n;
};

/* Add a node that is in no heap; its `at` is set. */
void il__heap_add(struct il__heap *h, struct il__heap_node *node);
/* Take out a node that is in the heap. What it is compared by may have changed, if nothing else happened to the heap since. */
void il__heap_remove(struct il__heap *h, struct il__heap_node *node);
/* Move a node that is in the heap. */
void il__heap_move(struct il__heap *h, struct il__heap_node *node, int64_t at);

/* Has the time of the first come? */
static inline bool
il__heap_due(const struct il__heap *h, int64_t now)
{
    return h->first != NULL && h->first->at <= now;
}

#endif
