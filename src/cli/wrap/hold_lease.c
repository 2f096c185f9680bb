/* hold_lease.c: `interlock run` without --record: runs the command under a lease of the key. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/wrap/meta.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/sys.h"

#define JOIN_TRIES_MAX 16 /* holders that come and go between our acquire and our lookup */
#define RELEASE_MS 50000  /* how long a release is retried */

/* On the watchdog's thread. */
static void
on_renewed(void *cookie, il_lease *lease UNUSED, int64_t deadline_ns)
{
    wrap_publish_deadline(cookie, deadline_ns);
}

/* The reaper is told here, not by the main thread, which may be busy. */
void
wrap_on_lost(struct wrap *r, const il_lease *lease, const char *why)
{
    (void)snprintf(r->lost_why, sizeof r->lost_why, "%s", why);
    /* The watchdog reports an unrenewed lease when only the grace is left. */
    r->lost_in_silence = il_lease_remaining_ms(lease) <= r->grace_ms;
    atomic_store(&r->lost, true);
    il__reaper_order(&r->reaper, IL__ORDER_STOP, 0);
}

static void
on_lost(void *cookie, il_lease *lease, const char *why)
{
    wrap_on_lost(cookie, lease, why);
}

static il_status
acquire_now(struct wrap *r, void *cookie, il_error *reterr)
{
    il_status status = il_acquire(r->store, r->opts->key, cookie, &r->own, reterr);

    if (status == IL_OK)
        r->lease = r->own;
    return status;
}

static il_status
acquire(struct wrap *r, int64_t wait_ms, int *ret_sig, il_error *reterr)
{
    const struct wrap_opts *o = r->opts;
    il_acquire_opts         a = IL_ACQUIRE_OPTS_INIT;

    a.holder     = r->holder;
    a.ttl_ms     = r->ttl_ms;
    a.wait_ms    = wait_ms;
    a.settle_ms  = o->settle_ms;
    a.mode       = o->mode;
    a.permits    = o->permits;
    a.meta       = r->meta;
    a.place      = "interlock run";
    a.stop_ms    = r->grace_ms;
    a.on_lost    = on_lost;
    a.on_renewed = on_renewed;
    a.cookie     = r;
    return wrap_signals_take(r, wait_ms != 0, acquire_now, &a, ret_sig, reterr);
}

/*
 * Find another run that uses the same --holder at the same time: the store takes both for the same
 * holder, which has renewed its lease. They differ in the meta of the lease, which is that of the
 * first.
 */
static il_status
find_namesake(struct wrap *r, struct wrap_meta_who *ret, bool *ret_found, il_error *reterr)
{
    il_op     op     = { .type = IL_OP_NONE };
    il_status status = il_get(r->store, r->opts->key, &op, reterr);

    *ret_found = false;
    for (size_t i = 0; status == IL_OK && i < op.out.n_items; i++) {
        const il_lease_info *item = &op.out.items[i];
        if (item->fence != il_lease_fence(r->lease) || strcmp(item->meta, r->meta) == 0)
            continue;
        *ret_found = true;
        wrap_meta_who(item->meta, ret);
    }
    il_op_release(&op);
    return status;
}

/* Is the granted lease ours alone? If not, returns the exit status: we must not release it. */
static int
check_alone(struct wrap *r)
{
    struct wrap_meta_who who        = { .pid = 0 };
    char                 where[128] = "";
    bool                 found;
    il_error             error;

    if (r->opts->holder == NULL)
        return WRAP_GO_ON; /* generated here, so it is unique */
    il_status status = find_namesake(r, &who, &found, &error);
    if (status == IL_OK && !found)
        return WRAP_GO_ON;
    r->released = true; /* not true, but prevents a release: if it is ours, it expires */
    if (status != IL_OK)
        return wrap_give_up(r, &error);
    r->outcome = "held";
    if (who.pid > 0)
        (void)snprintf(where, sizeof where, " (pid %" PRId64 " on %s)", who.pid, who.host);
    wrap_tell(r, "holder '%s' is already in use for this key%s", r->holder, where);
    return r->opts->conflict_exit;
}

int
wrap_conflict(struct wrap *r, const il_error *error)
{
    bool skip = r->opts->on_conflict == WRAP_SKIP;

    r->outcome = skip ? "skipped" : "held";
    if (r->opts->on_conflict != WRAP_JOIN) /* otherwise reported already, with the reason */
        wrap_tell_held(r, error, skip ? "; skipped" : "");
    wrap_report_refusal(r, error);
    return skip ? 0 : r->opts->conflict_exit;
}

/* Acquire, or join the holder. */
static int
take(struct wrap *r)
{
    bool     join    = r->opts->on_conflict == WRAP_JOIN;
    int64_t  wait_ms = join ? 0 : r->opts->wait_ms; /* a joinable run is not waited for */
    il_error error;

    for (int tries = 0; tries < JOIN_TRIES_MAX; tries++) {
        int sig;
        int status;
        if (wait_ms != 0)
            wrap_say_waiting(r);
        il_status held = acquire(r, wait_ms, &sig, &error);
        if (held == IL_OK && (status = check_alone(r)) != WRAP_GO_ON)
            return status;
        if (sig != 0)
            return wrap_interrupted(r, sig);
        if (held == IL_OK)
            return WRAP_GO_ON;
        if (held != IL_HELD)
            return wrap_give_up(r, &error);
        if (!join)
            break;
        enum wrap_joined joined = wrap_join(r, &error, &status);
        if (joined == IL__JOIN_DONE)
            return status;
        if (joined == IL__JOIN_CANNOT && wait_ms == r->opts->wait_ms)
            break;
        if (joined == IL__JOIN_CANNOT)
            wait_ms = r->opts->wait_ms;
    }
    return wrap_conflict(r, &error);
}

static il_status
release_now(struct wrap *r, void *cookie UNUSED, il_error *reterr)
{
    return il_lease_release(r->own, reterr);
}

/* Retry on a busy store, within the minute during which it remembers that it released the lease. */
static il_status
release(struct wrap *r, il_error *reterr)
{
    int64_t   until_ns = il__clock_boot_ns() + (int64_t)RELEASE_MS * IL__NS_PER_MS;
    il_status status;

    do
        status = wrap_bounded_call(r, release_now, NULL, reterr);
    while (il__clock_boot_ns() < until_ns && wrap_try_again(r, status, reterr));
    r->released = true;
    return status;
}

/* After a loss this only helps the next holder, if the lease still exists at all. */
static int
give(struct wrap *r, const struct il__reaper_report *report, int status)
{
    il_error  error;
    il_status released = release(r, &error);

    if (released == IL_OK || report->end == IL__END_LOST || report->end == IL__END_DEADLINE)
        return status;
    if (released == IL_LOST || released == IL_STALE || released == IL_NOT_HELD)
        return wrap_report_lost(r);
    il__proc_say("%s: cannot release the lease, it will expire: %s", r->opts->key, error.message);
    return status;
}

static void
drop(struct wrap *r)
{
    if (r->own != NULL && !r->released)
        (void)il_lease_release(r->own, NULL); /* nothing was run under it; at worst it expires */
    il_lease_free(r->own);
}

bool
wrap_spool_add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct wrap *r = cookie;

    il__spool_add(&r->spool, stream, data, n_bytes);
    return true;
}

void
wrap_spool_mark_incomplete(void *cookie)
{
    struct wrap *r = cookie;

    il__spool_mark_incomplete(&r->spool);
}

const struct wrap_hold wrap_hold_lease = { .take = take, .give = give, .drop = drop, .told = true };
const struct wrap_hold wrap_hold_join  = {
     .take = take,
     .give = give,
     .drop = drop,
     .sink = { wrap_spool_add, wrap_spool_mark_incomplete },
     .told = true,
};
