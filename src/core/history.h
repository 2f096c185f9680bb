/*
 * history.h: the recorded expiries, breaks and refusals of a key, for `interlock history`.
 *
 * An engine stores one row per key: a text with up to IL_EVENTS_MAX events, oldest first, which
 * only the functions below read and write. PostgreSQL and Redis have ports of them.
 */
#ifndef IL_CORE_HISTORY_H
#define IL_CORE_HISTORY_H

#include "base/buf.h"

struct il__event {
    uint64_t      seq; /* grows with each event of the key */
    il_event_kind kind;
    uint32_t      count;
    uint64_t      fence;
    int64_t       since_ms; /* wall clock, like the following; 0 = unknown */
    int64_t       first_ms;
    int64_t       last_ms;
    const char   *holder; /* NULL is "", as in the following */
    const char   *meta;
    const char   *other;
    const char   *reason;
};

/* The history of a key as it is stored. Bytes are borrowed. */
struct il__history {
    const void *data;
    size_t      n_bytes;
};

/*
 * Add an event, whose seq is ignored: *ret is the new text, for the caller to release. A refusal is
 * merged with an earlier one of the same caller; what is older than a week, and more than
 * IL_EVENTS_MAX, is dropped. False: out of memory, or the stored text is damaged (*ret_damaged).
 */
bool il__history_add(const struct il__history *h, const struct il__event *e, int64_t wall_ms,
                     struct il__buf *ret, bool *ret_damaged) MUST_USE;

/* What the event of a lease says: times are ages, in ms before now. */
struct il__lease_facts {
    const char *holder;
    const char *meta;
    uint64_t    fence;
    int64_t     held_ms; /* since the grant */
    int64_t     over_ms; /* since the expiry */
};
struct il__event il__event_expired(const struct il__lease_facts *l, int64_t wall_ms);
/* `op`: the BREAK. */
struct il__event il__event_broken(const struct il__lease_facts *l, const il_op *op,
                                  int64_t wall_ms);
/* The event that a REFUSED reports. */
struct il__event il__event_refused(const il_op *op, int64_t wall_ms);

/* Carry out a HISTORY: one page, newest first. False: out of memory, or damaged. */
bool il__history_list(const struct il__history *h, il_op *op, int64_t wall_ms, bool *ret_damaged)
    MUST_USE;
/* The same from events, oldest first. False: out of memory. */
bool il__history_page(const struct il__event *events, size_t n, il_op *op, int64_t wall_ms)
    MUST_USE;

/* Check the inputs of a REFUSED or a HISTORY; fills in the defaults. */
il_status il__history_check(il_op *op, il_error *reterr) MUST_USE;

#endif
