/*
 * event.c: waits for an event, with a timeout.
 */
#include "harness/event.h"

#include <time.h>

void
t_event_init(struct t_event *e)
{
    pthread_condattr_t attr;

    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_mutex_init(&e->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&e->cond, &attr) == 0);
    CHECK(pthread_condattr_destroy(&attr) == 0);
    e->n = 0;
}

void
t_event_release(struct t_event *e)
{
    CHECK(pthread_cond_destroy(&e->cond) == 0);
    CHECK(pthread_mutex_destroy(&e->mutex) == 0);
}

void
t_event_add(struct t_event *e)
{
    CHECK(pthread_mutex_lock(&e->mutex) == 0);
    e->n++;
    CHECK(pthread_cond_broadcast(&e->cond) == 0);
    CHECK(pthread_mutex_unlock(&e->mutex) == 0);
}

bool
t_event_wait(struct t_event *e, unsigned n, int64_t limit_ms)
{
    struct timespec until;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    int64_t ns = until.tv_nsec + (limit_ms % 1000) * 1000000;
    until.tv_sec += (time_t)(limit_ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    CHECK(pthread_mutex_lock(&e->mutex) == 0);
    while (e->n < n && pthread_cond_timedwait(&e->cond, &e->mutex, &until) == 0)
        ;
    bool happened = e->n >= n;
    CHECK(pthread_mutex_unlock(&e->mutex) == 0);
    return happened;
}

unsigned
t_event_count(struct t_event *e)
{
    CHECK(pthread_mutex_lock(&e->mutex) == 0);
    unsigned n = e->n;
    CHECK(pthread_mutex_unlock(&e->mutex) == 0);
    return n;
}
