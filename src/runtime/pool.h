/*
 * pool.h: limits the memory that results occupy: for all clients of a server, and for each tenant.
 * The maximum size of an op's results is reserved before the op is executed, and the unused part is
 * returned afterwards: so the limit holds whatever the ops return.
 */
#ifndef IL_RUNTIME_POOL_H
#define IL_RUNTIME_POOL_H

#include <stdatomic.h>

#include "base/base.h"

struct il__pool {
    struct il__pool *above; /* the pool this one is part of; NULL = none */
    size_t           n_max;
    atomic_size_t    n_bytes;
};

/* Reserve bytes in the pool and its parents. False: one of them is used up; nothing was
 * reserved. */
bool il__pool_take(struct il__pool *pool, size_t n_bytes);
/* Change a reservation from n_taken to n_bytes, up or down. NULL is fine. */
void il__pool_change(struct il__pool *pool, size_t n_taken, size_t n_bytes);

#endif
