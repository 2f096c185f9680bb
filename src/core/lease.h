/*
 * lease.h: the state machine of a lease.
 *
 * Engines store leases as they like, but change a lease's state only through il__lease_step(). The
 * diagram in docs/contributing/ARCHITECTURE.md is generated from the same table.
 */
#ifndef IL_CORE_LEASE_H
#define IL_CORE_LEASE_H

#include "base/base.h"

/* What can happen to a lease. */
enum il__lease_event {
    IL__EV_GRANT,     /* the key was free for it */
    IL__EV_QUEUE,     /* the key was not free, and the caller wants to wait */
    IL__EV_OFFER,     /* the first waiter's turn */
    IL__EV_CONFIRM,   /* the waiter repeated its acquire in time */
    IL__EV_RENEW,     /* the holder renewed it */
    IL__EV_RELEASE,   /* the holder released it */
    IL__EV_EXPIRE,    /* now >= expires */
    IL__EV_SETTLE,    /* now >= expires, and the key stays closed for a while */
    IL__EV_BREAK,     /* an operator broke it; the holder still has to let go */
    IL__EV_BREAK_NOW, /* an operator broke it at once */
    IL__EV_LEAVE,     /* the waiter's deadline passed, it went silent, or it gave up */
    IL__LEASE_EVENT_COUNT
};

/* The state after `event`, or IL_LEASE_NONE if no such edge exists: then the op is refused. */
il_lease_state il__lease_step(il_lease_state from, enum il__lease_event event);

/* Has a lease in this state ended? (RELEASED, EXPIRED, BROKEN) */
bool il__lease_ended(il_lease_state state);

/* Expiry is strict: dead as soon as now reaches expires. */
bool il__lease_due(int64_t expires_ms, int64_t now_ms);

/*
 * How to show a stored lease at now, without changing it: false if it is over. A HELD lease past
 * its expiry whose key still settles shows as CLOSING, which the next op on the key will make it.
 */
bool il__lease_view(int64_t now_ms, int64_t settle_ms, il_lease_state *state, int64_t *expires_ms);

/* Is it live, and can its holder keep it? A closing lease ends by itself. */
bool il__lease_lasts(int64_t now_ms, int64_t settle_ms, il_lease_state state, int64_t expires_ms);

/* When an offer made now must be confirmed. */
int64_t il__offer_expires_ms(int64_t now_ms, int64_t ttl_ms);

/* When a wait that begins now times out; IL__NEVER for IL_FOREVER and for more than
 * IL__WAIT_MS_MAX. */
int64_t il__wait_deadline_ms(int64_t now_ms, int64_t wait_ms);

/*
 * The local deadline after a grant or renewal *sent* at sent_ns (CLOCK_BOOTTIME): sent_ns plus the
 * TTL, minus a margin for clock drift of 5 %, at least 20 ms and at most 1 s.
 */
int64_t il__lease_local_deadline_ns(int64_t sent_ns, int64_t ttl_ms);

#endif
