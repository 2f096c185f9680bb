/*
 * why.h: why is a key not free? Who holds it, since when, until when, who waits: what `interlock why` and GET /locks/why say.
 */
#ifndef IL_WIRE_WHY_H
#define IL_WIRE_WHY_H

#include "wire/wire.h"

struct il__why {
    const char *key;
    const char *state;      /* of its first lease; "free" */
    int64_t     free_in_ms; /* at the latest, if no holder renews any more; 0 = it is free */
    const il_lease_info *leases;
    size_t               n_leases;
    const il_lease_info *waiters; /* of this very key, in the order of the queue */
    size_t               n_waiters;
};

extern const struct wire_object il__wire_why;

/* The two questions: GET of the key, and LIST of the waiters whose key begins with it, which has those of the key first. */
void il__why_ask(const char *key, il_op ops[2]);
/* What their answers mean. It points into them. */
void il__why_answer(const char *key, const il_op ops[2], struct il__why *ret);

#endif
