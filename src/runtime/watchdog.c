/*
 * watchdog.c: the thread that notices that a lease has reached its local deadline, and notifies
 * holders. It never accesses the store: it only compares local deadlines with CLOCK_BOOTTIME, so
 * that expiry is noticed after a suspend.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "runtime/keeper_internal.h"

void
il__watchdog_poke(const il *h)
{
    uint64_t one = 1;

    /* If full, it has been poked already. */
    if (h->watch_fd >= 0 && write(h->watch_fd, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
}

static void
lose_late(il_lease *l)
{
    char why[sizeof l->why];

    (void)snprintf(why, sizeof why, "lease not renewed in time%s%s", /* cut when long */
                   l->trouble[0] != '\0' ? ": " : "", l->trouble);
    il__lease_lose_locked(l, why);
}

/* Mark leases that have reached their deadline; returns the earliest future deadline. h->mutex is
 * held. */
static int64_t
check_deadlines(il *h, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (il_lease *l = h->leases; l != NULL; l = l->next) {
        int64_t at_ns = il__lease_stop_ns(l);
        if (atomic_load(&l->status) != IL_OK)
            continue;
        if (now_ns >= at_ns) {
            il__count(h, IL__METRIC_watchdog, 1);
            lose_late(l);
        } else {
            next_ns = MIN(next_ns, at_ns);
        }
    }
    return next_ns;
}

/* Does its holder have to be notified? */
static bool
has_news(const il_lease *l)
{
    return (!l->told && l->why[0] != '\0') || (!l->cancel_told && l->cancel[0] != '\0');
}

/* Make one notification; false if none is due. h->mutex is held, but released during the
 * callback. */
static bool
tell_one(il *h)
{
    il_lease *l = h->leases;

    while (l != NULL && !has_news(l))
        l = l->next;
    if (l == NULL)
        return false;
    bool  cancelled                        = !l->cancel_told && l->cancel[0] != '\0';
    bool *told                             = cancelled ? &l->cancel_told : &l->told;
    void (*tell)(il_lease *, const char *) = cancelled ? l->kind->on_cancel : l->kind->on_lost;

    *told = true;
    if (tell == NULL)
        return true;
    l->n_pins++;
    il__mutex_unlock(&h->mutex);
    tell(l, cancelled ? l->cancel : l->why); /* neither changes once it is set */
    il__mutex_lock(&h->mutex);
    il__lease_unpin(h, l);
    return true;
}

static void *
watchdog_main(void *arg)
{
    il           *h      = arg;
    int           timer  = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    struct pollfd fds[2] = { { .fd = timer, .events = POLLIN },
                             { .fd = h->watch_fd, .events = POLLIN } };
    uint64_t      ignored;

    il__mutex_lock(&h->mutex);
    while (!h->closing) {
        int64_t next_ns = check_deadlines(h, il__clock_boot_ns());
        if (tell_one(h))
            continue;
        il__mutex_unlock(&h->mutex);

        struct itimerspec at = { 0 };
        if (next_ns != INT64_MAX) {
            at.it_value.tv_sec  = (time_t)(next_ns / 1000000000);
            at.it_value.tv_nsec = (long)(next_ns % 1000000000);
        }
        /* Without a timer descriptor, poll's timeout serves: late after a suspend, but not
         * forever. */
        if (timer >= 0)
            CHECK(timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL) == 0);
        (void)poll(fds, 2, timer >= 0 ? -1 : 100);
        /* The reason for the wake-up does not matter: everything is checked again. */
        IGNORE(read(h->watch_fd, &ignored, sizeof ignored) < 0);
        if (timer >= 0)
            IGNORE(read(timer, &ignored, sizeof ignored) < 0);
        il__mutex_lock(&h->mutex);
    }
    il__mutex_unlock(&h->mutex);
    if (timer >= 0)
        (void)close(timer);
    return NULL;
}

int
il__watchdog_start(il *h)
{
    h->watch_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc      = h->watch_fd < 0 ? errno : il__thread_start(&h->watchdog, watchdog_main, h);
    if (rc != 0 && h->watch_fd >= 0) {
        (void)close(h->watch_fd);
        h->watch_fd = -1;
    }
    h->watchdog_started = rc == 0;
    return rc;
}
