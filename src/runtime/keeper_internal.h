/*
 * keeper_internal.h: what keeper.c and the threads that it starts share.
 *
 * Unless noted, h->mutex is held.
 */
#ifndef IL_RUNTIME_KEEPER_INTERNAL_H
#define IL_RUNTIME_KEEPER_INTERNAL_H

#include "runtime/handle.h"

/* Start a thread. 0, or an errno. */
int il__renewer_start(il *h) MUST_USE;
int il__sweeper_start(il *h) MUST_USE;
int il__watchdog_start(il *h) MUST_USE;

/* A deadline has moved, or a holder has to be notified. With or without the mutex. */
void il__watchdog_poke(const il *h);

/* Mark as lost; the watchdog notifies the holder. */
void il__lease_lose_locked(il_lease *lease, const char *why);
/* Record that its work should stop; the watchdog notifies the holder. */
void il__lease_cancel_locked(il_lease *lease, const char *reason);
void il__lease_unpin(il *h, il_lease *lease);
/* When its work must stop, unless it is renewed. With or without the mutex. */
int64_t il__lease_stop_ns(const il_lease *l);

#endif
