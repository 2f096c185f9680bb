/*
 * why.c: the explanation of a key as JSON; see why.h.
 */
#include "wire/why.h"

#include "wire/table.h"

#define STRUCT struct il__why
static const struct wire_field fields[] = {
    F("key", key, TEXT, 0, "the key"),
    F("state", state, TEXT, 0, "free, held, offered or closing"),
    F("free_in_ms", free_in_ms, INT64, WIRE_NOT_NULL,
      "time until the key is free if no holder renews; 0 if it is free"),
    OBJECTS("leases", 0, leases, n_leases, il__wire_lease, "the holders"),
    OBJECTS("waiters", 0, waiters, n_waiters, il__wire_waiter,
            "the waiters in queue order; at most 1,000"),
    OBJECTS("events", 0, events, n_events, il__wire_event,
            "what happened to the key in the last week, newest first; at most 20"),
};
OBJECT(il__wire_why, "Why", fields, WIRE_ANSWER, "Why a key is not free");
#undef STRUCT

void
il__why_ask(const char *key, il_op ops[IL__WHY_OPS])
{
    ops[0] = (il_op){ .type = IL_OP_GET, .key = key };
    ops[1] = (il_op){ .type    = IL_OP_LIST,
                      .flags   = IL_LIST_WAITERS,
                      .in.list = { .prefix = key, .limit = IL_PAGE_ITEMS_MAX } };
    ops[2] = (il_op){ .type = IL_OP_HISTORY, .key = key, .in.list.limit = IL_EVENTS_MAX };
}

void
il__why_answer(const char *key, const il_op ops[IL__WHY_OPS], struct il__why *ret)
{
    const il_op_out *held = &ops[0].out;

    *ret = (struct il__why){
        .key = key, .leases = held->items, .n_leases = held->n_items, .waiters = ops[1].out.items
    };
    ret->state = held->n_items > 0 ? il_lease_state_name(held->items[0].state) : "free";
    for (size_t i = 0; i < held->n_items; i++)
        ret->free_in_ms = MAX(ret->free_in_ms, held->items[i].remaining_ms);
    /* A key sorts before every longer one that starts with it. */
    while (ret->n_waiters < ops[1].out.n_items &&
           strcmp(ops[1].out.items[ret->n_waiters].key, key) == 0)
        ret->n_waiters++;
    ret->events   = ops[2].out.events;
    ret->n_events = ops[2].out.n_events;
}
