/*
 * over.h: what stores over another store have in common: they own it, have its capabilities and its board, and hand on whatever
 * they do not change.
 */
#ifndef IL_STORE_OVER_H
#define IL_STORE_OVER_H

#include "store/store.h"

struct over_store {
    struct il__store     base;
    struct il__store_ops ops; /* callbacks of its own; the others lead to the inner one */
    struct il__store    *inner;
};

/* All callbacks lead to `inner`, from now on owned; then the decorator sets its own apply and read. */
void il__over_init(struct over_store *o, const char *name, struct il__store *inner,
                   void (*free_self)(struct il__store *s));

static inline struct over_store *
il__over_from(struct il__store *s)
{
    return container_of(s, struct over_store, base);
}

#endif
