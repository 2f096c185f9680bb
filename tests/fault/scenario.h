/*
 * scenario.h: one history that touches every op and every way to hold something, played while something fails.
 *
 * A call that says that it failed is repeated, without further failures, until the history is at its end:
 * so each failure is seen to leave a store and a handle that still work, and the invariants are looked at.
 */
#ifndef T_SCENARIO_H
#define T_SCENARIO_H

#include "harness/store.h"

struct scenario {
    il             *h;
    struct t_clock *test_clock;
    bool            unknown_is_store; /* failures are IL_STORE (a fault store), else IL_NOMEM */
    bool            or_store;  /* … or may be STORE: an answer was there, but no memory for it */
    bool            lasting;   /* nothing works after the first failure, until healed */
    bool            short_one; /* leave out what only costs time */
    void (*healed)(void *cookie); /* called after a failure: from now on nothing fails */
    void       *cookie;
    unsigned    n_failures; /* seen by the history */
    const char *what;       /* for messages: which failure this is */
};

/* Play it on s->h, from an empty store. Fails the test when something is not as it should be. */
void scenario_play(struct scenario *s);

#endif
