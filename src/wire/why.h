/*
 * why.h: explains why a key is not free: holders, age, expiry, waiters, for `interlock why` and GET
 * /locks/why.
 */
#ifndef IL_WIRE_WHY_H
#define IL_WIRE_WHY_H

#include "wire/wire.h"

struct il__why {
    const char          *key;
    const char          *state;      /* of its first lease; "free" */
    int64_t              free_in_ms; /* at the latest, if no holder renews; 0 = it is free */
    const il_lease_info *leases;
    size_t               n_leases;
    const il_lease_info *waiters; /* of exactly this key, in queue order */
    size_t               n_waiters;
    const il_event_info *events; /* newest first */
    size_t               n_events;
};

extern const struct wire_object il__wire_why;

/* The ops: GET of the key; LIST of the waiters whose key starts with it, which returns those of the
 * key first; and HISTORY. */
#define IL__WHY_OPS 3
void il__why_ask(const char *key, il_op ops[IL__WHY_OPS]);
/* Interpret their answers. The result points into them. */
void il__why_answer(const char *key, const il_op ops[IL__WHY_OPS], struct il__why *ret);

#endif
