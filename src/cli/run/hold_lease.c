/*
 * hold_lease.c: `interlock run` without --record: the command is run under a lease of the key.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/run/meta.h"
#include "cli/run/run_state.h"
#include "proc/sys.h"

#define JOIN_TRIES_MAX 16 /* holders that come and go between our acquire and our look */

/* On the watchdog's thread. */
static void
on_renewed(void *cookie, il_lease *lease UNUSED, int64_t deadline_ns)
{
    il__run_publish_deadline(cookie, deadline_ns);
}

/* The reaper is told here, not by the main thread, which may be busy. */
void
il__run_lost(struct il__run_state *r, const char *why)
{
    (void)snprintf(r->lost_why, sizeof r->lost_why, "%s", why);
    atomic_store(&r->lost, true);
    il__reaper_order(&r->reaper, IL__ORDER_STOP, 0);
}

static void
on_lost(void *cookie, il_lease *lease UNUSED, const char *why)
{
    il__run_lost(cookie, why);
}

static il_status
acquire_now(struct il__run_state *r, void *cookie, il_error *reterr)
{
    il_status status = il_acquire(r->store, r->opts->key, cookie, &r->own, reterr);

    if (status == IL_OK)
        r->lease = r->own;
    return status;
}

static il_status
acquire(struct il__run_state *r, int64_t wait_ms, int *ret_sig, il_error *reterr)
{
    const struct il__run_opts *o = r->opts;
    il_acquire_opts            a = IL_ACQUIRE_OPTS_INIT;

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
    return il__run_signals_take(r, wait_ms != 0, acquire_now, &a, ret_sig, reterr);
}

/*
 * Another run that uses the same --holder at the same time: to the store it is the same one, which
 * has renewed its lease. The lease tells by its meta, that of who came first.
 */
static il_status
find_namesake(struct il__run_state *r, struct il__run_meta_who *ret, bool *ret_found, il_error *reterr)
{
    il_op     op     = { .type = IL_OP_NONE };
    il_status status = il_get(r->store, r->opts->key, &op, reterr);

    *ret_found = false;
    for (size_t i = 0; status == IL_OK && i < op.out.n_items; i++) {
        const il_lease_info *item = &op.out.items[i];
        if (item->fence != il_lease_fence(r->lease) || strcmp(item->meta, r->meta) == 0)
            continue;
        *ret_found = true;
        il__run_meta_who(item->meta, ret);
    }
    il_op_release(&op);
    return status;
}

/* Is the lease that we were given ours alone? If not, the exit status: it is not ours to release. */
static int
check_alone(struct il__run_state *r)
{
    struct il__run_meta_who who        = { .pid = 0 };
    char                    where[128] = "";
    bool                    found;
    il_error                error;

    if (r->opts->holder == NULL)
        return IL__RUN_GO_ON; /* made here, and nobody else's */
    il_status status = find_namesake(r, &who, &found, &error);
    if (status == IL_OK && !found)
        return IL__RUN_GO_ON;
    r->released = true; /* not so, but it must not be: if it is ours nevertheless, it expires */
    if (status != IL_OK)
        return il__run_give_up(r, &error);
    r->outcome = "held";
    if (who.pid > 0)
        (void)snprintf(where, sizeof where, " (pid %" PRId64 " on %s)", who.pid, who.host);
    il__run_tell(r, "holder '%s' is already in use for this key%s", r->holder, where);
    return r->opts->conflict_exit;
}

int
il__run_conflict(struct il__run_state *r, const il_error *error)
{
    bool skip = r->opts->on_conflict == IL__RUN_SKIP;

    r->outcome = skip ? "skipped" : "held";
    if (r->opts->on_conflict != IL__RUN_JOIN) /* else it has been said, with the reason */
        il__run_tell_held(r, error, skip ? "; skipped" : "");
    return skip ? 0 : r->opts->conflict_exit;
}

/* Acquire, or join who holds. */
static int
take(struct il__run_state *r)
{
    bool     join    = r->opts->on_conflict == IL__RUN_JOIN;
    int64_t  wait_ms = join ? 0 : r->opts->wait_ms; /* who can be joined is not waited for */
    il_error error;

    for (int tries = 0; tries < JOIN_TRIES_MAX; tries++) {
        int sig;
        int status;
        if (wait_ms != 0)
            il__run_say_waiting(r);
        il_status held = acquire(r, wait_ms, &sig, &error);
        if (held == IL_OK && (status = check_alone(r)) != IL__RUN_GO_ON)
            return status;
        if (sig != 0)
            return il__run_interrupted(r, sig);
        if (held == IL_OK)
            return IL__RUN_GO_ON;
        if (held != IL_HELD)
            return il__run_give_up(r, &error);
        if (!join)
            break;
        enum il__run_joined joined = il__run_join(r, &error, &status);
        if (joined == IL__JOIN_DONE)
            return status;
        if (joined == IL__JOIN_CANNOT && wait_ms == r->opts->wait_ms)
            break;
        if (joined == IL__JOIN_CANNOT)
            wait_ms = r->opts->wait_ms;
    }
    return il__run_conflict(r, &error);
}

/* After a loss this is only a courtesy to whoever is next, if the lease is still there at all. */
static int
give(struct il__run_state *r, const struct il__reaper_report *report, int status)
{
    il_error  error;
    il_status released = il_lease_release(r->own, &error);

    r->released = true;
    if (released == IL_OK || report->end == IL__END_LOST || report->end == IL__END_DEADLINE)
        return status;
    if (released == IL_LOST || released == IL_STALE || released == IL_NOT_HELD)
        return il__run_was_lost(r);
    il__run_say("%s: the lease was not released and will expire: %s", r->opts->key, error.message);
    return status;
}

static void
drop(struct il__run_state *r)
{
    if (r->own != NULL && !r->released)
        (void)il_lease_release(r->own, NULL); /* nothing was run under it; at worst it expires */
    il_lease_free(r->own);
}

bool
il__run_spool_add(void *cookie, uint32_t stream, const void *data, size_t n_bytes)
{
    struct il__run_state *r = cookie;

    il__spool_add(&r->spool, stream, data, n_bytes);
    return true;
}

void
il__run_spool_incomplete(void *cookie)
{
    struct il__run_state *r = cookie;

    il__spool_incomplete(&r->spool);
}

const struct il__run_hold il__run_hold_lease = { .take = take, .give = give, .drop = drop, .told = true };
const struct il__run_hold il__run_hold_join = {
    .take = take,
    .give = give,
    .drop = drop,
    .sink = { il__run_spool_add, il__run_spool_incomplete },
    .told = true,
};
