/*
 * scenario.h: one history that covers every op and every way to hold a key, played while faults are
 * injected.
 *
 * A failed call is repeated, without further faults, and the history is played to its end. This
 * shows that each fault leaves a working store and handle; the invariants are checked, too.
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
