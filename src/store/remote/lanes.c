/*
 * lanes.c: assigns write connections to callers; see lanes.h.
 */
#include "store/remote/lanes.h"

void
il__lanes_init(struct il__lanes *l, unsigned n)
{
    CHECK(n > 0 && n <= IL__LANES_MAX);
    *l = (struct il__lanes){ 0 };
    il__mutex_init(&l->mutex, IL__MUTEX_lanes);
    il__cond_init(&l->freed);
    while (n > 0)
        l->free[l->n_free++] = --n; /* the first one on top */
}

void
il__lanes_release(struct il__lanes *l)
{
    il__mutex_destroy(&l->mutex);
    CHECK(pthread_cond_destroy(&l->freed) == 0);
}

unsigned
il__lanes_take(struct il__lanes *l)
{
    il__mutex_lock(&l->mutex);
    while (l->n_free == 0)
        IGNORE(il__cond_wait(&l->freed, &l->mutex, -1));
    unsigned i = l->free[--l->n_free];
    il__mutex_unlock(&l->mutex);
    return i;
}

void
il__lanes_give(struct il__lanes *l, unsigned i)
{
    il__mutex_lock(&l->mutex);
    l->free[l->n_free++] = i;
    il__mutex_unlock(&l->mutex);
    CHECK(pthread_cond_signal(&l->freed) == 0);
}
