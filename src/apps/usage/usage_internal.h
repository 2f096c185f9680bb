/* usage_internal.h: declarations shared by usage.c, flight.c, build.c and day_copies.c. */
#ifndef IL_APPS_USAGE_USAGE_INTERNAL_H
#define IL_APPS_USAGE_USAGE_INTERNAL_H

#include <pthread.h>

#include "apps/usage/usage.h"
#include "base/mutex.h"

#define USAGE_COPIES 1024                     /* slots; a day has one of them */
#define USAGE_COPIES_BYTES ((size_t)64 << 20) /* of all copies that are kept */

/* A day that is asked for. */
struct usage_flight {
    struct usage_flight *next; /* in order of their joins */
    char                 tenant[IL_TENANT_BYTES_MAX + 1];
    usage_date           date;
    enum usage_way       way;
    struct usage_waiter *waiters;
    bool                 active;   /* a thread makes it */
    bool                 urgent;   /* of one of its waiters */
    int64_t              asked_ms; /* wall clock of the last join before it was active */
    int64_t              until_ns; /* when it gives up waiting for others' builds; from its start */
    struct usage_copy   *old;      /* the stored day that it found, or NULL */
};

struct usage {
    struct usage_opts    o;
    atomic_uint_fast64_t counts[USAGE_COUNTER_COUNT];
    atomic_bool          stopping;
    atomic_int_fast64_t  warned_ns; /* of the last warning about contention */

    struct il__mutex     mutex; /* protects the rest */
    pthread_cond_t       work;  /* a flight was added, or it stops */
    struct usage_flight *flights;
    size_t               n_flights, n_active;
    pthread_t           *threads;
    size_t               n_threads;

    struct il__mutex   copies_mutex; /* protects the rest */
    struct usage_copy *copies[USAGE_COPIES];
    size_t             copies_bytes;
};

/* Make a flight: build.c. The result's copy is a reference. Sets f->old through
 * usage_flight_found(). */
void usage_flight_make(struct usage *u, struct usage_flight *f, struct usage_result *ret);
/* The stored day that a flight found; consumed. */
void usage_flight_found(struct usage *u, struct usage_flight *f, struct usage_copy *old);
/* How long the flight may still wait for others, in ms; 0: no longer. */
int64_t usage_flight_left_ms(struct usage *u, struct usage_flight *f);

void usage_threads_end(struct usage *u);
void usage_copies_release(struct usage *u);
void usage_note(struct usage *u, enum usage_event event, const struct usage_flight *f,
                const char *text, int64_t took_ms);

#endif
