/*
 * lease.c: il_acquire() and operations on the lease it returns. Renewal is in renewer.c.
 */
#include <inttypes.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/lease.h"
#include "core/op.h"
#include "runtime/handle.h"

/* ---- the lease inside every object that is kept ---------------------------------------------- */

bool
il__lease_init(il_lease *lease, il *h, const struct il__lease_kind *kind, const char *key,
               const char *holder, int64_t ttl_ms)
{
    *lease = (il_lease){
        .h       = h,
        .kind    = kind,
        .key     = il__strdup(key),
        .holder  = il__strdup(holder),
        .ttl_ms  = ttl_ms,
        .renewed = true,
        .fd      = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    return lease->fd >= 0 && lease->key != NULL && lease->holder != NULL;
}

void
il__lease_release(il_lease *lease)
{
    if (lease->h == NULL)
        return; /* never initialised */
    il__keeper_remove(lease->h, lease);
    if (lease->fd >= 0)
        (void)close(lease->fd); /* closing an eventfd loses nothing */
    il__free(lease->tenant);
    il__free(lease->key);
    il__free(lease->holder);
}

il_status
il__lease_keep(il_lease *lease, const il_op *granted, int64_t sent_ns, il_error *reterr)
{
    il_status st = il__keeper_start(lease->h, true, reterr);

    if (st != IL_OK)
        return st;
    il__lease_extended(lease, sent_ns, granted->out.remaining_ms);
    il__keeper_add(lease->h, lease);
    if ((granted->out.flags & IL_OUT_CANCEL) != 0)
        il__lease_cancel(lease, granted->out.detail);
    return IL_OK;
}

il_status
il__lease_end(il_lease *lease, il_op *op, il_error *reterr)
{
    il__keeper_remove(lease->h, lease);
    il_status st = il__apply_one(lease->h, op, reterr);

    if (st == IL_OK)
        atomic_store(&lease->status, IL_NOT_HELD);
    else if (st == IL_STALE || st == IL_NOT_FOUND)
        il__lease_lost(lease, NULL);
    return st;
}

il_status
il__check_stop(int64_t stop_ms, int64_t ttl_ms, il_error *reterr)
{
    if (stop_ms < 0 || stop_ms > ttl_ms / 3)
        return il__error_set(reterr, IL_INVAL,
                             "a stop time of %" PRId64 " ms is more than a third of the TTL",
                             stop_ms);
    return IL_OK;
}

/* ---- the lease of a lock --------------------------------------------------------------------- */

/* The result of il_acquire(). */
struct lock {
    il_lease        lease;
    il_acquire_opts opts; /* the callbacks; its strings are not used */
};

static struct lock *
lock_of(il_lease *lease)
{
    return container_of(lease, struct lock, lease);
}

il_op
il__lock_renewal(il_lease *lease)
{
    il_op op = { .type   = IL_OP_RENEW,
                 .tenant = lease->tenant,
                 .key    = lease->key,
                 .holder = lease->holder,
                 .fence  = lease->fence };

    op.in.lock.ttl_ms = lease->ttl_ms;
    return op;
}

static void
lock_renewed(il_lease *lease, int64_t deadline_ns)
{
    const il_acquire_opts *o = &lock_of(lease)->opts;

    if (o->on_renewed != NULL)
        o->on_renewed(o->cookie, lease, deadline_ns);
}

static void
lock_lost(il_lease *lease, const char *why)
{
    const il_acquire_opts *o = &lock_of(lease)->opts;

    if (o->on_lost != NULL)
        o->on_lost(o->cookie, lease, why);
}

static const struct il__lease_kind lock_kind = {
    .renewal    = il__lock_renewal,
    .on_renewed = lock_renewed,
    .on_lost    = lock_lost,
};

static void
lock_free(struct lock *lock)
{
    if (lock == NULL)
        return;
    il__lease_release(&lock->lease);
    il__free(lock);
}
DEFINE_AUTO(struct lock, lock_free)

static struct lock *
lock_new(il *h, const char *key, const il_acquire_opts *opts, const char *holder)
{
    AUTO(lock_freep) struct lock *lock = il__calloc(1, sizeof *lock);

    if (lock == NULL || !il__lease_init(&lock->lease, h, &lock_kind, key, holder,
                                        opts->ttl_ms != 0 ? opts->ttl_ms : IL_TTL_MS_DEFAULT))
        return NULL;
    if (opts->tenant != NULL && (lock->lease.tenant = il__strdup(opts->tenant)) == NULL)
        return NULL;
    lock->opts          = *opts;
    lock->lease.stop_ms = opts->stop_ms;
    lock->lease.renewed = (opts->flags & IL_NO_RENEW) == 0;
    return TAKE(lock);
}

static il_op
acquire_op(const il_lease *lease, const il_acquire_opts *opts)
{
    il_op op = {
        .type = IL_OP_ACQUIRE, .tenant = lease->tenant, .key = lease->key, .holder = lease->holder
    };

    op.in.lock = (il_lock_in){
        .ttl_ms    = lease->ttl_ms,
        .wait_ms   = opts->wait_ms,
        .settle_ms = opts->settle_ms,
        .mode      = opts->mode,
        .permits   = opts->permits,
        .meta      = opts->meta,
        .place     = opts->place,
    };
    return op;
}

/* Leave the queue. If the turn has just come, give it back. If the store is unreachable, it drops
 * the silent waiter later. */
static void
give_up(il *h, il_op *op)
{
    op->in.lock.wait_ms = 0;
    if (il_apply(h, op, 1, NULL) != IL_OK || op->status != IL_OK)
        return;
    il_op release = { .type   = IL_OP_RELEASE,
                      .tenant = op->tenant,
                      .key    = op->key,
                      .holder = op->holder,
                      .fence  = op->out.fence };
    IGNORE(il_apply(h, &release, 1, NULL)); /* else it expires */
    il_op_release(&release);
}

/* Repeat the acquire until it is granted or refused. The lease's clock starts when the granted
 * acquire was *sent*: the store may have executed it at any time after that. */
static il_status
acquire_loop(il *h, il_op *op, int64_t wait_ms, int64_t *ret_sent_ns, il_error *reterr)
{
    int64_t began_ns = il__clock_boot_ns();

    for (;;) {
        *ret_sent_ns = il__clock_boot_ns();
        il_status st = il_apply(h, op, 1, reterr);
        if (st != IL_OK) {
            /* It may have been executed all the same, unless the store's lock was never
             * acquired. */
            if (reterr == NULL || strcmp(reterr->native, IL__NATIVE_BUSY) != 0)
                give_up(h, op);
            return st;
        }
        if (op->status != IL_QUEUED) {
            st = il__error_of_op(op, reterr);
            if (st == IL_STORE) /* its own answer was unreadable: as above */
                give_up(h, op);
            return st;
        }
        st = il_wait(h, op, IL_FOREVER);
        if (st != IL_OK) {
            give_up(h, op);
            return il__gave_up(op->key, st, reterr);
        }
        if (wait_ms != IL_FOREVER) {
            int64_t waited_ms = (il__clock_boot_ns() - began_ns) / IL__NS_PER_MS;
            /* 0: last try, then leave the queue */
            op->in.lock.wait_ms = MAX(wait_ms - waited_ms, 0);
        }
    }
}

static il_status
check_acquire_opts(const il_acquire_opts *opts, il_error *reterr)
{
    int64_t ttl_ms = opts->ttl_ms != 0 ? opts->ttl_ms : IL_TTL_MS_DEFAULT;

    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_acquire_opts was not initialized with IL_ACQUIRE_OPTS_INIT");
    if (opts->tenant != NULL && il_check_tenant(opts->tenant, reterr) != IL_OK)
        return IL_INVAL;
    return il__check_stop(opts->stop_ms, ttl_ms, reterr);
}

il_status
il_acquire(il *h, const char *key, const il_acquire_opts *opts, il_lease **ret, il_error *reterr)
{
    static const il_acquire_opts defaults = IL_ACQUIRE_OPTS_INIT;
    char                         made[37];
    int64_t                      sent_ns = 0;

    if (opts == NULL)
        opts = &defaults;
    if (h == NULL || ret == NULL)
        return il__error_set(reterr, IL_INVAL, "the handle and ret must not be NULL");
    if (check_acquire_opts(opts, reterr) != IL_OK || il_check_key(key, reterr) != IL_OK)
        return IL_INVAL;
    if (opts->holder == NULL && il_uuid(made) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes");
    AUTO(lock_freep)
    struct lock *lock = lock_new(h, key, opts, opts->holder != NULL ? opts->holder : made);
    if (lock == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory or descriptors for a lease");

    il_op     op = acquire_op(&lock->lease, opts);
    il_status st = acquire_loop(h, &op, opts->wait_ms, &sent_ns, reterr);
    if (st == IL_OK) {
        lock->lease.fence = op.out.fence;
        st                = il__lease_keep(&lock->lease, &op, sent_ns, reterr);
        if (st != IL_OK)
            (void)il_lease_release(&lock->lease, NULL); /* else it expires */
    }
    il_op_release(&op);
    if (st == IL_OK)
        *ret = &TAKE(lock)->lease;
    return st;
}

/* ---- ending and renewing --------------------------------------------------------------------- */

/* Does the answer to a renew or release mean that the lease is over? */
static bool
is_refused(il_status st)
{
    return st == IL_LOST || st == IL_HELD || st == IL_NOT_HELD || st == IL_STALE;
}

il_status
il_lease_renew(il_lease *lease, il_error *reterr)
{
    if (lease == NULL)
        return il__error_set(reterr, IL_INVAL, "no lease given");
    if (il_lease_status(lease) != IL_OK)
        return il__error_set(reterr, IL_LOST, "'%s': the lease is no longer held", lease->key);

    il_op     op      = il__lock_renewal(lease);
    int64_t   sent_ns = il__clock_boot_ns();
    il_status st      = il__apply_one(lease->h, &op, reterr);
    if (st == IL_OK)
        il__lease_extended(lease, sent_ns, op.out.remaining_ms);
    else if (is_refused(st))
        il__lease_lost(lease, op.out.detail);
    il_op_release(&op);
    /* Refused, or the answer came after the deadline. */
    if (is_refused(st) || (st == IL_OK && il_lease_status(lease) != IL_OK))
        st = il__error_set(reterr, IL_LOST, "'%s': the lease is no longer held", lease->key);
    return st;
}

il_status
il_lease_release(il_lease *lease, il_error *reterr)
{
    if (lease == NULL)
        return il__error_set(reterr, IL_INVAL, "no lease given");
    if ((il_status)atomic_load(&lease->status) == IL_NOT_HELD)
        return IL_OK; /* repeated, however late */
    il__keeper_remove(lease->h, lease);

    il_op     op = { .type   = IL_OP_RELEASE,
                     .tenant = lease->tenant,
                     .key    = lease->key,
                     .holder = lease->holder,
                     .fence  = lease->fence };
    il_status st = il__apply_one(lease->h, &op, reterr);
    il_op_release(&op);
    if (st == IL_OK)
        atomic_store(&lease->status, IL_NOT_HELD);
    if (!is_refused(st))
        return st;
    il__lease_lost(lease, NULL);
    return il__error_set(reterr, IL_LOST, "'%s': the lease had already ended", lease->key);
}

void
il_lease_free(il_lease *lease)
{
    if (lease == NULL)
        return;
    CHECK(lease->kind == &lock_kind); /* those of runs, claims and builds go with them */
    lock_free(lock_of(lease));
}

/* ---- queries --------------------------------------------------------------------------------- */

const char *
il_lease_key(const il_lease *lease)
{
    return lease != NULL ? lease->key : NULL;
}

const char *
il_lease_holder(const il_lease *lease)
{
    return lease != NULL ? lease->holder : NULL;
}

uint64_t
il_lease_fence(const il_lease *lease)
{
    return lease != NULL ? lease->fence : 0;
}

il_status
il_lease_status(const il_lease *lease)
{
    if (lease == NULL)
        return IL_INVAL;
    il_status st = (il_status)atomic_load(&lease->status);
    /* Does not depend on the watchdog: past the deadline it is lost. */
    if (st == IL_OK && il__clock_boot_ns() >= il_lease_deadline_ns(lease))
        return IL_LOST;
    return st;
}

int
il_lease_fd(const il_lease *lease)
{
    return lease != NULL ? lease->fd : -1;
}

int64_t
il_lease_deadline_ns(const il_lease *lease)
{
    return lease != NULL ? atomic_load(&lease->deadline_ns) : 0;
}

int64_t
il_lease_remaining_ms(const il_lease *lease)
{
    int64_t left_ns = il_lease_deadline_ns(lease) - il__clock_boot_ns();

    return left_ns > 0 ? left_ns / IL__NS_PER_MS : 0;
}
