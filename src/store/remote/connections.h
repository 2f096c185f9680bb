/*
 * connections.h: the write connections of a store. A caller of apply takes a free one, or waits.
 */
#ifndef IL_STORE_REMOTE_CONNECTIONS_H
#define IL_STORE_REMOTE_CONNECTIONS_H

#include <pthread.h>

#include "base/mutex.h"
#include "store/store.h"

struct il__connections {
    struct il__mutex mutex;               /* protects what follows */
    unsigned         free[IL__LANES_MAX]; /* a stack: the last one used is used next */
    unsigned         n_free;
    pthread_cond_t   freed;
};

/* n connections, numbered from 0, all free; n <= IL__LANES_MAX. */
void il__connections_init(struct il__connections *c, unsigned n);
void il__connections_release(struct il__connections *c);

/* Returns its number. There are as many as callers, but answering a verb may need one more. */
unsigned il__connections_take(struct il__connections *c) MUST_USE;
void     il__connections_give(struct il__connections *c, unsigned i);

#endif
