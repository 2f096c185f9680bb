/*
 * lanes.h: the write connections of a store. A caller of apply takes a free one, or waits.
 */
#ifndef IL_STORE_REMOTE_LANES_H
#define IL_STORE_REMOTE_LANES_H

#include <pthread.h>

#include "base/mutex.h"
#include "store/store.h"

struct il__lanes {
    struct il__mutex mutex;               /* protects what follows */
    unsigned         free[IL__LANES_MAX]; /* a stack: the last one used is used next */
    unsigned         n_free;
    pthread_cond_t   freed;
};

/* n connections, numbered from 0, all free; n <= IL__LANES_MAX. */
void il__lanes_init(struct il__lanes *l, unsigned n);
void il__lanes_release(struct il__lanes *l);

/* Returns its number. There are as many as callers, but answering a verb may need one more. */
unsigned il__lanes_take(struct il__lanes *l) MUST_USE;
void     il__lanes_give(struct il__lanes *l, unsigned i);

#endif
