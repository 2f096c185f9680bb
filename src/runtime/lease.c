/*
 * lease.c: il_acquire() and what can be done with the lease it gives. Renewal is in keeper.c.
 */
#include <inttypes.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/lease.h"
#include "core/op.h"
#include "runtime/handle.h"

static void
lease_destroy(il_lease *lease)
{
    if (lease == NULL)
        return;
    if (lease->fd >= 0)
        (void)close(lease->fd); /* an eventfd has nothing to lose */
    il__free(lease->key);
    il__free(lease->holder);
    il__free(lease);
}
DEFINE_AUTO(il_lease, lease_destroy)

static il_lease *
lease_new(il *h, const char *key, const il_acquire_opts *opts, const char *holder)
{
    AUTO(lease_destroyp) il_lease *lease = il__calloc(1, sizeof *lease);

    if (lease == NULL)
        return NULL;
    lease->h       = h;
    lease->fd      = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lease->key     = il__strdup(key);
    lease->holder  = il__strdup(holder);
    lease->opts    = *opts;
    lease->ttl_ms  = opts->ttl_ms != 0 ? opts->ttl_ms : IL_TTL_MS_DEFAULT;
    lease->stop_ms = opts->stop_ms;
    lease->renewed = (opts->flags & IL_NO_RENEW) == 0;
    if (lease->fd < 0 || lease->key == NULL || lease->holder == NULL)
        return NULL;
    return TAKE(lease);
}

static il_op
acquire_op(const il_lease *lease, const il_acquire_opts *opts)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = lease->key, .holder = lease->holder };

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

/* Leave the queue. If the turn has just come, give it back. The store may be out of reach: then the
 * waiter is dropped for its silence. */
static void
give_up(il *h, il_op *op)
{
    op->in.lock.wait_ms = 0;
    if (il_apply(h, op, 1, NULL) != IL_OK || op->status != IL_OK)
        return;
    il_op release = { .type = IL_OP_RELEASE, .key = op->key, .holder = op->holder, .fence = op->out.fence };
    IGNORE(il_apply(h, &release, 1, NULL)); /* else it expires */
    il_op_release(&release);
}

/* Repeat the acquire until it is granted or refused. The lease's clock starts when the acquire that was
 * granted was *sent*: the store may have carried it out at any time after that. */
static il_status
acquire_loop(il *h, il_op *op, int64_t wait_ms, int64_t *ret_sent_ns, il_error *reterr)
{
    int64_t began_ns = il__clock_boot_ns();

    for (;;) {
        *ret_sent_ns = il__clock_boot_ns();
        il_status st = il_apply(h, op, 1, reterr);
        if (st != IL_OK) {
            /* It may have happened all the same. Not when the store's lock was never had. */
            if (reterr == NULL || strcmp(reterr->native, IL__NATIVE_BUSY) != 0)
                give_up(h, op);
            return st;
        }
        if (op->status != IL_QUEUED)
            return il__error_of_op(op, reterr);
        st = il_wait(h, op, IL_FOREVER);
        if (st != IL_OK) {
            give_up(h, op);
            return il__error_set(reterr, st, "gave up waiting for '%s': %s", op->key,
                                 il_status_text(st));
        }
        if (wait_ms != IL_FOREVER) {
            int64_t waited_ms   = (il__clock_boot_ns() - began_ns) / IL__NS_PER_MS;
            op->in.lock.wait_ms = MAX(wait_ms - waited_ms, 0); /* 0: last try, then leave the queue */
        }
    }
}

static il_status
check_acquire_opts(const il_acquire_opts *opts, il_error *reterr)
{
    int64_t ttl_ms = opts->ttl_ms != 0 ? opts->ttl_ms : IL_TTL_MS_DEFAULT;

    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_acquire_opts was not made with IL_ACQUIRE_OPTS_INIT");
    if (opts->stop_ms < 0 || opts->stop_ms > ttl_ms / 3)
        return il__error_set(reterr, IL_INVAL,
                             "a stop time of %" PRId64 " ms is more than a third of the ttl",
                             opts->stop_ms);
    return IL_OK;
}

/* Take the granted lease into the keeper's care. Without that it is not given to the caller. */
static il_status
start_keeping(il *h, il_lease *lease, int64_t sent_ns, il_error *reterr)
{
    il_status st = il__keeper_start(h, true, reterr);

    if (st != IL_OK) {
        (void)il_lease_release(lease, NULL); /* else it expires */
        return st;
    }
    il__lease_renewal_sent(lease, sent_ns);
    il__keeper_add(h, lease);
    return IL_OK;
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
        return il__error_set(reterr, IL_INVAL, "no handle, or no place for the lease");
    if (check_acquire_opts(opts, reterr) != IL_OK || il_check_key(key, reterr) != IL_OK)
        return IL_INVAL;
    if (opts->holder == NULL && il_uuid(made) != IL_OK)
        return il__error_set(reterr, IL_STORE, "the machine has no randomness to give");
    AUTO(lease_destroyp)
    il_lease *lease = lease_new(h, key, opts, opts->holder != NULL ? opts->holder : made);
    if (lease == NULL)
        return il__error_set(reterr, IL_NOMEM, "no memory or descriptor for a lease");

    il_op     op = acquire_op(lease, opts);
    il_status st = acquire_loop(h, &op, opts->wait_ms, &sent_ns, reterr);
    if (st == IL_OK) {
        lease->fence = op.out.fence;
        st           = start_keeping(h, lease, sent_ns, reterr);
    }
    il_op_release(&op);
    if (st == IL_OK)
        *ret = TAKE(lease);
    return st;
}

/* ---- ending and renewing ------------------------------------------------------------------------------- */

/* Does the answer of a renew or release mean that the lease is over? */
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
        return il__error_set(reterr, IL_LOST, "'%s': the lease is not held any more", lease->key);

    il_op op = { .type = IL_OP_RENEW, .key = lease->key, .holder = lease->holder, .fence = lease->fence };
    int64_t sent_ns   = il__clock_boot_ns();
    op.in.lock.ttl_ms = lease->ttl_ms;
    il_status st      = il_apply(lease->h, &op, 1, reterr);
    if (st == IL_OK)
        st = il__error_of_op(&op, reterr);
    if (st == IL_OK)
        il__lease_renewal_sent(lease, sent_ns);
    else if (is_refused(st))
        il__lease_lost(lease, op.out.detail);
    il_op_release(&op);
    /* Refused, or the answer came after the deadline. */
    if (is_refused(st) || (st == IL_OK && il_lease_status(lease) != IL_OK))
        st = il__error_set(reterr, IL_LOST, "'%s': the lease is not held any more", lease->key);
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

    il_op op = { .type = IL_OP_RELEASE, .key = lease->key, .holder = lease->holder, .fence = lease->fence };
    il_status st = il_apply(lease->h, &op, 1, reterr);
    if (st == IL_OK)
        st = il__error_of_op(&op, reterr);
    il_op_release(&op);
    if (st == IL_OK)
        atomic_store(&lease->status, IL_NOT_HELD);
    if (!is_refused(st))
        return st;
    il__lease_lost(lease, NULL);
    return il__error_set(reterr, IL_LOST, "'%s': the lease had ended before it was released",
                         lease->key);
}

void
il_lease_free(il_lease *lease)
{
    if (lease == NULL)
        return;
    il__keeper_remove(lease->h, lease);
    lease_destroy(lease);
}

/* ---- looking at it ------------------------------------------------------------------------------------------ */

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
    /* Also without the watchdog's help: past the deadline it is lost. */
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
