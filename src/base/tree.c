/*
 * tree.c: a treap; the contract is in tree.h. A node's rank is a hash of its address and the number
 * of nodes, so that the shape does not depend on the order of insertion.
 */
#include "base/tree.h"

#include "base/hash.h"

static int
compare(const char *first, const char *second, uint64_t number, const struct il__tree_node *node)
{
    int c = first == node->first ? 0 : strcmp(first, node->first);

    if (c == 0 && second != node->second)
        c = strcmp(second, node->second);
    if (c != 0)
        return c;
    return number < node->number ? -1 : number > node->number;
}

/* Does the node come before the other one? */
static bool
is_before(const struct il__tree_node *node, const struct il__tree_node *other)
{
    int c = compare(node->first, node->second, node->number, other);

    return c != 0 ? c < 0 : node->tie < other->tie;
}

/* Split a subtree into the nodes before `node` and those after it. */
static void
split(struct il__tree_node *tree, struct il__tree_node *node)
{
    struct il__tree_node **before = &node->before;
    struct il__tree_node **after  = &node->after;

    while (tree != NULL) {
        if (is_before(node, tree)) {
            *after = tree;
            after  = &tree->before;
            tree   = tree->before;
        } else {
            *before = tree;
            before  = &tree->after;
            tree    = tree->after;
        }
    }
    *before = *after = NULL;
}

void
il__tree_add(struct il__tree *t, struct il__tree_node *node)
{
    struct il__tree_node **at = &t->root;

    node->rank = il__hash_mix((uint64_t)(uintptr_t)node, t->n);
    while (*at != NULL && (*at)->rank < node->rank)
        at = is_before(node, *at) ? &(*at)->before : &(*at)->after;
    split(*at, node);
    *at = node;
    t->n++;
}

void
il__tree_remove(struct il__tree *t, struct il__tree_node *node)
{
    struct il__tree_node **at     = &t->root;
    struct il__tree_node  *before = node->before;
    struct il__tree_node  *after  = node->after;

    while (*at != node) {
        CHECK(*at != NULL);
        at = is_before(node, *at) ? &(*at)->before : &(*at)->after;
    }
    while (before != NULL && after != NULL) { /* join its two subtrees */
        if (before->rank < after->rank) {
            *at    = before;
            at     = &before->after;
            before = before->after;
        } else {
            *at   = after;
            at    = &after->before;
            after = after->before;
        }
    }
    *at = before != NULL ? before : after;
    t->n--;
}

struct il__tree_node *
il__tree_first(const struct il__tree *t, const char *first, const char *second)
{
    struct il__tree_node *found = NULL;

    for (struct il__tree_node *at = t->root; at != NULL;) {
        if (compare(first, second, 0, at) <= 0) {
            found = at;
            at    = at->before;
        } else {
            at = at->after;
        }
    }
    return found;
}

struct il__tree_node *
il__tree_next(const struct il__tree *t, const struct il__tree_node *node)
{
    struct il__tree_node *found = NULL;

    for (struct il__tree_node *at = t->root; at != NULL;) {
        if (is_before(node, at)) {
            found = at;
            at    = at->before;
        } else {
            at = at->after;
        }
    }
    return found;
}

struct il__tree_node *
il__tree_after(const struct il__tree *t, const char *first, const char *second, uint64_t number)
{
    struct il__tree_node *found = NULL;

    for (struct il__tree_node *at = t->root; at != NULL;) {
        if (compare(first, second, number, at) < 0) {
            found = at;
            at    = at->before;
        } else {
            at = at->after;
        }
    }
    return found;
}

struct il__tree_node *
il__tree_before(const struct il__tree *t, const char *first, const char *second, uint64_t number)
{
    struct il__tree_node *found = NULL;

    for (struct il__tree_node *at = t->root; at != NULL;) {
        if (compare(first, second, number, at) > 0) {
            found = at;
            at    = at->after;
        } else {
            at = at->before;
        }
    }
    return found;
}
