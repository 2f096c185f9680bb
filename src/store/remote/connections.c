/*
 * connections.c: assigns write connections to callers; see connections.h.
 */
#include "store/remote/connections.h"

void
il__connections_init(struct il__connections *c, unsigned n)
{
    CHECK(n > 0 && n <= IL__LANES_MAX);
    *c = (struct il__connections){ 0 };
    il__mutex_init(&c->mutex, IL__MUTEX_connections);
    il__cond_init(&c->freed);
    while (n > 0)
        c->free[c->n_free++] = --n; /* the first one on top */
}

void
il__connections_release(struct il__connections *c)
{
    il__mutex_destroy(&c->mutex);
    CHECK(pthread_cond_destroy(&c->freed) == 0);
}

unsigned
il__connections_take(struct il__connections *c)
{
    il__mutex_lock(&c->mutex);
    while (c->n_free == 0)
        IGNORE(il__cond_wait(&c->freed, &c->mutex, -1));
    unsigned i = c->free[--c->n_free];
    il__mutex_unlock(&c->mutex);
    return i;
}

void
il__connections_give(struct il__connections *c, unsigned i)
{
    il__mutex_lock(&c->mutex);
    c->free[c->n_free++] = i;
    il__mutex_unlock(&c->mutex);
    CHECK(pthread_cond_signal(&c->freed) == 0);
}
