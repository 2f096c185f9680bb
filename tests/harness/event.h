/*
 * event.h: an event that a thread waits for, with a timeout. Tests never rely on sleeps.
 */
#ifndef T_EVENT_H
#define T_EVENT_H

#include <pthread.h>

#include "harness/check.h"

/* A count that only grows. */
struct t_event {
    pthread_mutex_t mutex;
    pthread_cond_t  cond;
    unsigned        n;
};

void t_event_init(struct t_event *e);
void t_event_release(struct t_event *e);
/* It happened once more. Callable from any thread. */
void t_event_add(struct t_event *e);
/* Wait until it has happened n times, at most limit_ms. */
bool     t_event_wait(struct t_event *e, unsigned n, int64_t limit_ms);
unsigned t_event_count(struct t_event *e);

/* Fails the test when it did not happen. */
#define T_WAIT(e, n, limit_ms)          \
    (t_event_wait((e), (n), (limit_ms)) \
         ? (void)0                      \
         : T_FAIL("%s: %u of %u in %d ms", #e, t_event_count(e), (unsigned)(n), (int)(limit_ms)))

#endif
