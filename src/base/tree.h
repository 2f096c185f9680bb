/*
 * tree.h: objects sorted by name: an intrusive search tree (a treap). Operations never fail,
 * because the nodes are embedded in the objects. Adding, removing and finding a node are O(log n),
 * whatever the order of insertion.
 *
 * Nodes are ordered by (first, second, number, tie), texts by their bytes. The texts belong to the
 * objects; none is NULL.
 */
#ifndef IL_BASE_TREE_H
#define IL_BASE_TREE_H

#include "base/base.h"

struct il__tree_node {
    const char           *first;
    const char           *second;
    uint64_t              number;
    uint64_t              tie;            /* orders equal names; 0 where names are unique */
    uint64_t              rank;           /* random: the smallest in a subtree is its root */
    struct il__tree_node *before, *after; /* subtrees */
};

struct il__tree {
    struct il__tree_node *root;
    size_t                n;
};

/* Add a node that is in no tree; its name must be unique in this one. */
void il__tree_add(struct il__tree *t, struct il__tree_node *node);
void il__tree_remove(struct il__tree *t, struct il__tree_node *node);

/* The first node that does not come before (first, second, 0). */
struct il__tree_node *il__tree_first(const struct il__tree *t, const char *first,
                                     const char *second);
/* The node after another one of the tree. */
struct il__tree_node *il__tree_next(const struct il__tree *t, const struct il__tree_node *node);
/* The first node after a name, and the last one before it; NULL: none. For trees without ties. */
struct il__tree_node *il__tree_after(const struct il__tree *t, const char *first,
                                     const char *second, uint64_t number);
struct il__tree_node *il__tree_before(const struct il__tree *t, const char *first,
                                      const char *second, uint64_t number);

#endif
