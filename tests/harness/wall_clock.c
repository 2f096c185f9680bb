/*
 * wall_clock.c: an LD_PRELOAD library that shifts the wall clock by $WALL_CLOCK_SHIFT seconds, and
 * no other clock.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PRELOADED __attribute__((visibility("default")))

static time_t
shift(void)
{
    const char *text = getenv("WALL_CLOCK_SHIFT");

    return text != NULL ? (time_t)strtol(text, NULL, 10) : 0;
}

PRELOADED int clock_gettime(clockid_t clock, struct timespec *ret);
int
clock_gettime(clockid_t clock, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ret->tv_sec += shift();
    return rc;
}

PRELOADED int gettimeofday(struct timeval *restrict ret, void *restrict zone);
int
gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;

    (void)zone; /* obsolete */
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    ret->tv_sec  = now.tv_sec;
    ret->tv_usec = (suseconds_t)(now.tv_nsec / 1000);
    return 0;
}

PRELOADED time_t time(time_t *ret);
time_t
time(time_t *ret)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (ret != NULL)
        *ret = now.tv_sec;
    return now.tv_sec;
}
