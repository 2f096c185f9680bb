/*
 * decorator.h: the common part of stores that wrap another store. A decorator owns the inner store,
 * has its capabilities and board, and forwards every callback that it does not override.
 */
#ifndef IL_STORE_DECORATOR_H
#define IL_STORE_DECORATOR_H

#include "store/store.h"

struct decorator_store {
    struct il__store     base;
    struct il__store_ops ops; /* the decorator's callbacks; the rest forward to the inner store */
    struct il__store    *inner;
};

/* Forward all callbacks to `inner`, which is owned from now on; then the decorator sets its own
 * apply and read. */
void il__decorator_init(struct decorator_store *o, const char *name, struct il__store *inner,
                        void (*free_self)(struct il__store *s));

static inline struct decorator_store *
il__decorator_from(struct il__store *s)
{
    return container_of(s, struct decorator_store, base);
}

#endif
