/*
 * due.c: which hold is overdue first: a pairing heap through the holds themselves.
 *
 * Adding one, and removing the first when few came after it, touch a few neighbours however many holds
 * there are; a binary heap would move a short lease past twenty levels of a million longer ones and back.
 * Removing the first costs, amortised, the logarithm of their number.
 *
 * due_child is the first of those below; they are chained by due_next. due_back is the one before in that
 * chain, or for the first the one above. Nobody below is due earlier.
 */
#include "store/memory/memory_internal.h"

/* Put the later one below the earlier one; both stand alone. */
static struct mem_hold *
meld(struct mem_hold *a, struct mem_hold *b)
{
    if (b->due_ms < a->due_ms) {
        struct mem_hold *later = a;
        a                      = b;
        b                      = later;
    }
    b->due_next = a->due_child;
    b->due_back = a;
    if (a->due_child != NULL)
        a->due_child->due_back = b;
    a->due_child = b;
    return a;
}

/* Make one heap of a chain: meld them in pairs from the first to the last, then the pairs backwards. */
static struct mem_hold *
meld_chain(struct mem_hold *first)
{
    struct mem_hold *pairs = NULL;
    struct mem_hold *heap  = NULL;

    while (first != NULL) {
        struct mem_hold *a = first;
        struct mem_hold *b = a->due_next;
        first              = b != NULL ? b->due_next : NULL;
        a->due_next = a->due_back = NULL;
        if (b != NULL) {
            b->due_next = b->due_back = NULL;
            a                         = meld(a, b);
        }
        a->due_next = pairs;
        pairs       = a;
    }
    while (pairs != NULL) {
        struct mem_hold *next = pairs->due_next;
        pairs->due_next       = NULL;
        heap                  = heap != NULL ? meld(heap, pairs) : pairs;
        pairs                 = next;
    }
    return heap;
}

void
il__mem_due_add(struct mem_store *m, struct mem_hold *h)
{
    h->due_child = h->due_next = h->due_back = NULL;
    m->due                                   = m->due != NULL ? meld(m->due, h) : h;
}

/* Take a hold that is not the first out of its chain; what is below it comes along. */
static void
cut(struct mem_hold *h)
{
    CHECK(h->due_back != NULL);
    if (h->due_back->due_child == h)
        h->due_back->due_child = h->due_next;
    else
        h->due_back->due_next = h->due_next;
    if (h->due_next != NULL)
        h->due_next->due_back = h->due_back;
    h->due_next = h->due_back = NULL;
}

void
il__mem_due_remove(struct mem_store *m, struct mem_hold *h)
{
    struct mem_hold *below = meld_chain(h->due_child);

    h->due_child = NULL;
    if (h == m->due) {
        m->due = below;
        return;
    }
    cut(h);
    if (below != NULL)
        m->due = meld(m->due, below);
}

void
il__mem_due_set(struct mem_store *m, struct mem_hold *h, int64_t due_ms)
{
    if (due_ms > h->due_ms) {
        il__mem_due_remove(m, h);
        h->due_ms = due_ms;
        il__mem_due_add(m, h);
        return;
    }
    h->due_ms = due_ms;
    if (h != m->due) {
        cut(h);
        m->due = meld(m->due, h);
    }
}
