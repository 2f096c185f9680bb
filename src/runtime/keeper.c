/*
 * keeper.c: the three threads of a handle that holds leases or waits for some.
 *
 * Locks, runs, claims and builds are kept alike: each has a lease, and a kind that defines the op
 * that renews it. The keeper renews at a third of the TTL, and at once when a lease was broken or
 * work was cancelled anywhere, to find out whether it was ours. It may block in the store. The
 * sweeper sweeps once a second; it is a separate thread, since a sweep can take longer than a lease
 * lasts. The watchdog never accesses the store: it only compares local deadlines with
 * CLOCK_BOOTTIME (so that expiry is noticed after a suspend) and notifies the holder. The holder's
 * work cannot block any of them.
 *
 * A lease that a thread uses outside the mutex is pinned; il__keeper_remove() waits until it is
 * not, so a callback never sees a freed lease.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mapping.h"
#include "core/lease.h"
#include "core/limits.h"
#include "core/op.h"
#include "runtime/handle.h"

#define USELESS_MS 40     /* a lease that lasts no longer than this */
#define RENEW_AT_ONCE 64  /* leases renewed in one batch */
#define SWEEPS_AT_ONCE 16 /* sweeps in a row while there is more to do */
#define GIVE_WAY_MS 2     /* between them */
#define LOOK_MS 1000      /* the keeper checks at least this often, even without a wake-up */

void
il__lease_extended(il_lease *lease, int64_t sent_ns, int64_t remaining_ms)
{
    int64_t known_ns = atomic_load(&lease->deadline_ns);
    /* With so little time left (the answer to a repeated claim, long after the first) it is
     * over. */
    int64_t deadline_ns =
        remaining_ms > USELESS_MS ? il__lease_local_deadline_ns(sent_ns, remaining_ms) : sent_ns;

    /* An answer overtaken by a later one must not move the deadline back, and a late answer must
     * not revive a lease whose deadline has passed: its holder may already know. */
    if (known_ns != 0 && il__clock_boot_ns() >= known_ns)
        return;
    while (deadline_ns > known_ns &&
           !atomic_compare_exchange_weak(&lease->deadline_ns, &known_ns, deadline_ns))
        ;
}

static void
poke_watchdog(const il *h)
{
    uint64_t one = 1;

    /* If full, it has been poked already. */
    if (h->watch_fd >= 0 && write(h->watch_fd, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
}

/* Mark as lost; the watchdog notifies the holder. h->mutex is held. */
static void
lose(il_lease *lease, const char *why)
{
    uint64_t one      = 1;
    int      expected = IL_OK;

    CHECK(il__mutex_held(&lease->h->mutex));
    /* reported even if there was no memory for the reason */
    if (why == NULL || why[0] == '\0')
        why = il_status_text(IL_LOST);
    if (!atomic_compare_exchange_strong(&lease->status, &expected, IL_LOST))
        return;
    (void)snprintf(lease->why, sizeof lease->why, "%s", why); /* cut when long */
    if (write(lease->fd, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
    poke_watchdog(lease->h);
}

void
il__lease_lost(il_lease *lease, const char *why)
{
    il__mutex_lock(&lease->h->mutex);
    lose(lease, why);
    il__mutex_unlock(&lease->h->mutex);
}

/* Record that its work should stop; the watchdog notifies the holder. h->mutex is held. */
static void
cancel(il_lease *lease, const char *reason)
{
    CHECK(il__mutex_held(&lease->h->mutex));
    if (lease->cancel[0] != '\0')
        return; /* the first reason stays */
    if (reason == NULL || reason[0] == '\0')
        reason = il_status_text(IL_CANCELLED);
    (void)snprintf(lease->cancel, sizeof lease->cancel, "%s", reason); /* cut when long */
    poke_watchdog(lease->h);
}

void
il__lease_cancel(il_lease *lease, const char *reason)
{
    il__mutex_lock(&lease->h->mutex);
    cancel(lease, reason);
    il__mutex_unlock(&lease->h->mutex);
}

void
il__lease_answered(il_lease *lease, il_status st, const il_op *op)
{
    if (st == IL_OK && (op->out.flags & IL_OUT_CANCEL) != 0)
        il__lease_cancel(lease, op->out.detail);
    if (st == IL_STALE || st == IL_NOT_FOUND)
        il__lease_lost(lease, op->out.detail);
}

static void
unpin(il *h, il_lease *lease)
{
    CHECK(lease->n_pins > 0);
    if (--lease->n_pins == 0)
        CHECK(pthread_cond_broadcast(&h->unpinned) == 0);
}

/* When its work must stop, unless it is renewed. */
static int64_t
stop_ns(const il_lease *l)
{
    return il_lease_deadline_ns(l) - l->stop_ms * IL__NS_PER_MS;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

/* A lease was broken or work cancelled somewhere: renew all of ours now, to find out whether it was
 * one of them. */
static void
all_are_due(il *h)
{
    for (il_lease *l = h->leases; l != NULL; l = l->next)
        l->renew_at_ns = 0;
}

/* Pin the leases to renew now, as many as fit into a batch; the rest is due in the next round. */
static size_t
collect_due(il *h, int64_t now_ns, il_lease *due[RENEW_AT_ONCE])
{
    size_t n = 0;

    for (il_lease *l = h->leases; l != NULL && n < RENEW_AT_ONCE; l = l->next) {
        if (!l->renewed || atomic_load(&l->status) != IL_OK || l->renew_at_ns > now_ns)
            continue;
        l->n_pins++;
        due[n++] = l;
    }
    return n;
}

/* Does the answer mean that the lease continues, and for how long? */
static bool
goes_on(const il_lease *l, const il_op *op)
{
    return l->kind->extended != NULL ? l->kind->extended(l, op) : op->status == IL_OK;
}

static const char *
why_lost(const il_lease *l, const il_op *op)
{
    if (op->out.detail != NULL)
        return op->out.detail;
    return l->kind->lost_text != NULL ? l->kind->lost_text : il_status_text(op->status);
}

/* Is the status a statement about the lease? Otherwise the store could not answer. */
static bool
is_answer(il_status status)
{
    switch (status) {
    case IL_NOMEM:
    case IL_STORE:
    case IL_FULL:
    case IL_CORRUPT:
    case IL_NEWER:
    case IL_LIMIT: /* it was not executed */
        return false;
    default:
        return true;
    }
}

/* Record why it cannot be renewed, to be reported if that lasts too long; err NULL: renewed.
 * h->mutex is held. */
static void
note_trouble(il_lease *l, const il_error *err)
{
    CHECK(il__mutex_held(&l->h->mutex));
    (void)snprintf(l->trouble, sizeof l->trouble, "%.*s", /* cut when long */
                   (int)sizeof l->trouble - 1, err != NULL ? err->message : "");
}

/* Process the store's answer to one renewal; err: if not OK, why there is none. Runs without the
 * mutex; the lease is pinned. */
static void
take_answer(il *h, il_lease *l, const il_op *op, const il_error *err, int64_t sent_ns)
{
    bool    answered = err->status == IL_OK;
    bool    extended = answered && goes_on(l, op);
    int64_t pause_ms = MIN(l->ttl_ms / 10, 1000); /* the store is unreachable: try again soon */

    if (extended) {
        pause_ms = op->out.remaining_ms / 3;
        il__lease_extended(l, sent_ns, op->out.remaining_ms);
        if (l->kind->on_renewed != NULL && atomic_load(&l->status) == IL_OK)
            l->kind->on_renewed(l, il_lease_deadline_ns(l));
    } else if (answered && l->kind->refused != NULL) {
        l->kind->refused(l, op);
    }
    il__mutex_lock(&h->mutex);
    if (answered && !extended)
        lose(l, why_lost(l, op));
    if (extended && (op->out.flags & IL_OUT_CANCEL) != 0)
        cancel(l, op->out.detail);
    note_trouble(l, answered ? NULL : err);
    l->renew_at_ns = sent_ns + pause_ms * IL__NS_PER_MS;
    unpin(h, l);
    il__mutex_unlock(&h->mutex);
    poke_watchdog(h); /* the deadline has moved */
}

static void
renew(il *h, il_lease *const due[RENEW_AT_ONCE], size_t n)
{
    il_op    ops[RENEW_AT_ONCE];
    il_error failed  = { .status = IL_OK };
    int64_t  sent_ns = il__clock_boot_ns();

    for (size_t i = 0; i < n; i++)
        ops[i] = due[i]->kind->renewal(due[i]);
    failed.status = il_apply(h, ops, n, &failed);
    for (size_t i = 0; i < n; i++) {
        il_error err = failed;
        if (err.status == IL_OK && !is_answer(ops[i].status))
            (void)il__error_of_op(&ops[i], &err);
        take_answer(h, due[i], &ops[i], &err, sent_ns);
        il_op_release(&ops[i]);
    }
}

static int64_t
next_renewal_ns(const il *h, int64_t latest_ns)
{
    for (const il_lease *l = h->leases; l != NULL; l = l->next) {
        if (l->renewed && atomic_load(&l->status) == IL_OK)
            latest_ns = MIN(latest_ns, l->renew_at_ns);
    }
    return latest_ns;
}

static void *
keeper_main(void *arg)
{
    il       *h = arg;
    il_lease *due[RENEW_AT_ONCE];

    (void)il__store_attend(h->store); /* to learn of breaks; until that works, renewals do */
    il__mutex_lock(&h->mutex);
    while (!h->closing) {
        uint32_t own_seen  = atomic_load(&h->keeper_word);
        uint32_t break_now = il__board_read(h->store->board, IL__BOARD_BREAK);
        int64_t  now_ns    = il__clock_boot_ns();
        if (break_now != h->break_seen)
            all_are_due(h);
        size_t  n          = collect_due(h, now_ns, due);
        int64_t wakes_ns   = next_renewal_ns(h, now_ns + LOOK_MS * IL__NS_PER_MS);
        h->keeper_wakes_ns = wakes_ns;
        il__mutex_unlock(&h->mutex);

        h->break_seen = break_now; /* this thread's own from now on */
        if (n > 0)
            renew(h, due, n);
        else
            il__board_sleep_or(h->store->board, IL__BOARD_BREAK, break_now, &h->keeper_word,
                               own_seen, wakes_ns - now_ns);
        il__mutex_lock(&h->mutex);
    }
    il__mutex_unlock(&h->mutex);
    return NULL;
}

/* ---- the sweeper ----------------------------------------------------------------------------- */

/*
 * May a sweep begin, assuming it takes as long as the last one? Where calls are serialised, a
 * renewal waits until the sweep is over, so a lease with less than twice that time left goes first.
 */
static bool
may_sweep(il *h, int64_t took_ns)
{
    int64_t until_ns = il__clock_boot_ns() + 2 * took_ns; /* by then it has been renewed */
    bool    one_lane = h->n_execs == 1 && (h->store->ops->caps & IL__STORE_DIRECT) == 0;

    il__mutex_lock(&h->mutex);
    bool may = !h->closing;
    for (const il_lease *l = h->leases; may && one_lane && l != NULL; l = l->next)
        may = !l->renewed || atomic_load(&l->status) != IL_OK || stop_ns(l) > until_ns;
    il__mutex_unlock(&h->mutex);
    return may;
}

/* Let calls that wait behind a sweep go now, instead of together with the next one. */
static void
give_way(il *h)
{
    il__mutex_lock(&h->mutex);
    if (!h->closing)
        (void)il__cond_wait(&h->stopped, &h->mutex, GIVE_WAY_MS * IL__NS_PER_MS);
    il__mutex_unlock(&h->mutex);
}

/* Sweep once, on the last lane, where it disturbs others least. True: there is more to do. */
static bool
sweep_once(il *h)
{
    il_op     op  = { .type = IL_OP_SWEEP };
    il_op    *ptr = &op;
    size_t    n_done;
    il_status st;

    (void)il__ops_prepare(h, &op, &ptr, 1);
    if ((h->store->ops->caps & IL__STORE_DIRECT) != 0)
        st = il__store_apply(h->store, &ptr, 1, &n_done, NULL);
    else
        st = il__ops_apply_on(h, h->n_execs - 1, &ptr, 1, &n_done, NULL);
    il__ops_done(h, &op, 1, st);
    /* An unreachable store is swept later, or by another process. */
    bool more = st == IL_OK && (op.out.flags & IL_OUT_MORE) != 0;
    il_op_release(&op);
    return more;
}

/* *took_ns: how long the last sweep took, 0 = not known. */
static void
sweep(il *h, int64_t *took_ns)
{
    bool more = il__store_overdue(h->store);

    for (unsigned i = 0; more && i < SWEEPS_AT_ONCE; i++) {
        int64_t began_ns = il__clock_boot_ns();
        if (!may_sweep(h, *took_ns)) {
            *took_ns /= 2; /* it may have been an exception: do not stop sweeping */
            return;
        }
        more     = sweep_once(h);
        *took_ns = il__clock_boot_ns() - began_ns;
        if (more)
            give_way(h);
    }
}

static void *
sweeper_main(void *arg)
{
    il     *h       = arg;
    int64_t took_ns = 0;
    int64_t next_ns = il__clock_boot_ns() + IL__SWEEP_MS * IL__NS_PER_MS;

    il__mutex_lock(&h->mutex);
    while (!h->closing) {
        int64_t now_ns = il__clock_boot_ns();
        if (now_ns < next_ns) {
            (void)il__cond_wait(&h->stopped, &h->mutex, next_ns - now_ns);
            continue;
        }
        il__mutex_unlock(&h->mutex);
        sweep(h, &took_ns);
        next_ns = now_ns + IL__SWEEP_MS * IL__NS_PER_MS;
        il__mutex_lock(&h->mutex);
    }
    il__mutex_unlock(&h->mutex);
    return NULL;
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static void
lose_late(il_lease *l)
{
    char why[sizeof l->why];

    (void)snprintf(why, sizeof why, "lease not renewed in time%s%s", /* cut when long */
                   l->trouble[0] != '\0' ? ": " : "", l->trouble);
    lose(l, why);
}

/* Mark leases that have reached their deadline; returns the earliest future deadline. h->mutex is
 * held. */
static int64_t
check_deadlines(il *h, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (il_lease *l = h->leases; l != NULL; l = l->next) {
        int64_t at_ns = stop_ns(l);
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
    unpin(h, l);
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

/* ---- starting, stopping, adding, removing ---------------------------------------------------- */

static int
start_watchdog(il *h)
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

static int
start_keeper(il *h)
{
    int rc            = il__thread_start(&h->keeper, keeper_main, h);
    h->keeper_started = rc == 0;
    return rc;
}

static int
start_sweeper(il *h)
{
    il__cond_init(&h->stopped);
    int rc = il__thread_start(&h->sweeper, sweeper_main, h);
    if (rc != 0)
        CHECK(pthread_cond_destroy(&h->stopped) == 0);
    h->sweeper_started = rc == 0;
    return rc;
}

il_status
il__keeper_start(il *h, bool with_leases, il_error *reterr)
{
    int rc = 0;

    il__mutex_lock(&h->mutex);
    if (with_leases && !h->watchdog_started)
        rc = start_watchdog(h);
    if (rc == 0 && with_leases && !h->keeper_started)
        rc = start_keeper(h);
    if (rc == 0 && h->sweeps && !h->sweeper_started)
        rc = start_sweeper(h);
    il__mutex_unlock(&h->mutex);
    if (rc != 0)
        return il__error_set(reterr, IL_NOMEM, "cannot start the lease threads: %s", strerror(rc));
    return IL_OK;
}

void
il__keeper_stop(il *h)
{
    il__mutex_lock(&h->mutex);
    h->closing = true;
    if (h->sweeper_started)
        CHECK(pthread_cond_signal(&h->stopped) == 0);
    il__mutex_unlock(&h->mutex);
    il__word_wake(&h->keeper_word);
    poke_watchdog(h);
    if (h->sweeper_started) {
        CHECK(pthread_join(h->sweeper, NULL) == 0);
        CHECK(pthread_cond_destroy(&h->stopped) == 0);
    }
    if (h->keeper_started)
        CHECK(pthread_join(h->keeper, NULL) == 0);
    if (h->watchdog_started)
        CHECK(pthread_join(h->watchdog, NULL) == 0);
    if (h->watch_fd >= 0)
        (void)close(h->watch_fd);
}

void
il__keeper_add(il *h, il_lease *lease)
{
    il__mutex_lock(&h->mutex);
    int64_t deadline_ns = il_lease_deadline_ns(lease);
    lease->renew_at_ns  = il__clock_boot_ns() + lease->ttl_ms / 3 * IL__NS_PER_MS;
    lease->next         = h->leases;
    h->leases           = lease;
    bool earlier        = lease->renewed && lease->renew_at_ns < h->keeper_wakes_ns;
    il__mutex_unlock(&h->mutex);
    CHECK(deadline_ns > 0);
    if (earlier)
        il__word_wake(&h->keeper_word);
    poke_watchdog(h);
}

void
il__keeper_remove(il *h, il_lease *lease)
{
    il__mutex_lock(&h->mutex);
    lease->told        = true; /* no more notifications */
    lease->cancel_told = true;
    for (il_lease **p = &h->leases; *p != NULL; p = &(*p)->next) {
        if (*p == lease) {
            *p = lease->next;
            break;
        }
    }
    while (lease->n_pins > 0)
        (void)il__cond_wait(&h->unpinned, &h->mutex, -1);
    il__mutex_unlock(&h->mutex);
}
