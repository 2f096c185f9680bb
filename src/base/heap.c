/*
 * heap.c: a pairing heap; the contract is in heap.h.
 */
#include "base/heap.h"

static inline bool
comes_before(const struct il__heap *h, const struct il__heap_node *a, const struct il__heap_node *b)
{
    if (a->at != b->at || h->before == NULL)
        return a->at < b->at;
    return h->before(a, b);
}

/* Make the later root a child of the earlier one; neither is in a chain. */
static struct il__heap_node *
meld(const struct il__heap *h, struct il__heap_node *a, struct il__heap_node *b)
{
    if (comes_before(h, b, a)) {
        struct il__heap_node *later = a;
        a                           = b;
        b                           = later;
    }
    b->next = a->child;
    b->back = a;
    if (a->child != NULL)
        a->child->back = b;
    a->child = b;
    return a;
}

/* Merge a chain into one heap: meld in pairs from first to last, then the pairs from last to
 * first. */
static struct il__heap_node *
meld_chain(const struct il__heap *h, struct il__heap_node *first)
{
    struct il__heap_node *pairs = NULL;
    struct il__heap_node *all   = NULL;

    while (first != NULL) {
        struct il__heap_node *a = first;
        struct il__heap_node *b = a->next;
        first                   = b != NULL ? b->next : NULL;
        a->next = a->back = NULL;
        if (b != NULL) {
            b->next = b->back = NULL;
            a                 = meld(h, a, b);
        }
        a->next = pairs;
        pairs   = a;
    }
    while (pairs != NULL) {
        struct il__heap_node *next = pairs->next;
        pairs->next                = NULL;
        all                        = all != NULL ? meld(h, all, pairs) : pairs;
        pairs                      = next;
    }
    return all;
}

void
il__heap_add(struct il__heap *h, struct il__heap_node *node)
{
    node->child = node->next = node->back = NULL;
    h->first                              = h->first != NULL ? meld(h, h->first, node) : node;
    h->n++;
}

/* Take a node other than the root out of its chain, with its subtree. */
static void
cut(struct il__heap_node *node)
{
    CHECK(node->back != NULL);
    if (node->back->child == node)
        node->back->child = node->next;
    else
        node->back->next = node->next;
    if (node->next != NULL)
        node->next->back = node->back;
    node->next = node->back = NULL;
}

void
il__heap_remove(struct il__heap *h, struct il__heap_node *node)
{
    struct il__heap_node *below = meld_chain(h, node->child);

    CHECK(h->n > 0);
    h->n--;
    node->child = NULL;
    if (node == h->first) {
        h->first = below;
        return;
    }
    cut(node);
    if (below != NULL)
        h->first = meld(h, h->first, below);
}

void
il__heap_move(struct il__heap *h, struct il__heap_node *node, int64_t at)
{
    if (at > node->at) {
        il__heap_remove(h, node);
        node->at = at;
        il__heap_add(h, node);
        return;
    }
    node->at = at; /* sooner: its subtree still comes later */
    if (node != h->first) {
        cut(node);
        h->first = meld(h, h->first, node);
    }
}
