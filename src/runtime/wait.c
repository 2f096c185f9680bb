/*
 * wait.c: sleeps until an op should be repeated: a queued acquire, a claim that found no job, a
 * lookup of a value that another holder builds.
 *
 * il_apply() records the op's word on the board before it applies the op (op->wake); any later
 * change that makes a repeat worthwhile bumps the word, so il_wait() does not miss it. See
 * base/board.h.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "runtime/handle.h"

/* ---- which ops can be waited for ------------------------------------------------------------- */

static const struct {
    bool        can;
    il_status   status; /* with this answer */
    const char *suffix; /* of the word for its key or id; NULL: for its key and holder */
} waitable[IL_OP_COUNT] = {
    [IL_OP_ACQUIRE]      = { true, IL_QUEUED, NULL },
    [IL_OP_RUN_START]    = { true, IL_QUEUED, NULL },
    [IL_OP_RUN_GET]      = { true, IL_OK, IL__WAKE_RUN },
    [IL_OP_RUN_LOG]      = { true, IL_OK, IL__WAKE_RUN },
    [IL_OP_ONCE_BEGIN]   = { true, IL_BUSY, IL__WAKE_ONCE },
    [IL_OP_JOB_CLAIM]    = { true, IL_EMPTY, IL__WAKE_QUEUE },
    [IL_OP_JOB_GET]      = { true, IL_OK, IL__WAKE_JOB },
    [IL_OP_CACHE_GET]    = { true, IL_WAIT, IL__WAKE_CACHE },
    [IL_OP_CACHE_LOOKUP] = { true, IL_WAIT, IL__WAKE_CACHE },
};

static const char *
name_of(const il_op *op)
{
    if (op->type == IL_OP_RUN_GET || op->type == IL_OP_RUN_LOG)
        return op->in.run.id;
    return op->type == IL_OP_JOB_GET ? op->in.job.id : op->key;
}

void
il__wake_note(il *h, il_op *op)
{
    if (!waitable[op->type].can || (op->type == IL_OP_ACQUIRE && op->in.lock.wait_ms == 0))
        return;
    const char *suffix = waitable[op->type].suffix;
    if (suffix == NULL && op->holder == NULL)
        return; /* a run's slot: it has no waiter */
    op->wake[0] = il__board_slot(op->tenant, name_of(op), suffix != NULL ? suffix : op->holder);
    op->wake[1] = il__board_read(h->store->board, op->wake[0]);
}

bool
il__wait_can(const il_op *op)
{
    return (unsigned)op->type < IL_OP_COUNT && waitable[op->type].can &&
           op->status == waitable[op->type].status && op->wake[0] >= IL__BOARD_WAITER &&
           op->wake[0] < IL__BOARD_WORDS;
}

/*
 * How long to sleep at most without a wake-up: a key's waiter must send keep-alives; another
 * holder's claim or build expires by itself; a job becomes due by itself; and a wake-up may be lost
 * with the process that owed it.
 */
int64_t
il__wait_longest_ms(const il_op *op)
{
    int64_t left_ms = op->out.remaining_ms;

    switch (op->status) {
    case IL_QUEUED:
        return left_ms == IL_FOREVER ? IL__WAITER_REFRESH_MS
                                     : MIN(IL__WAITER_REFRESH_MS, MAX(left_ms, 0));
    case IL_EMPTY: {
        bool    optimistic = (op->out.flags & IL_OUT_OPTIMISTIC) != 0;
        int64_t poll_ms    = optimistic ? IL__POLL_OPTIMISTIC_MS : IL__POLL_PESSIMISTIC_MS;
        return left_ms == IL_FOREVER ? poll_ms : MIN(poll_ms, MAX(left_ms, 1));
    }
    case IL_BUSY:
    case IL_WAIT:
        return MIN(IL__WAITER_REFRESH_MS, MAX(left_ms, 1));
    default:
        return IL__WAITER_REFRESH_MS;
    }
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static void
add_sleeper(il *h, struct il__sleeper *s)
{
    il__mutex_lock(&h->mutex);
    s->next     = h->sleepers;
    h->sleepers = s;
    il__mutex_unlock(&h->mutex);
}

static void
remove_sleeper(il *h, struct il__sleeper *s)
{
    il__mutex_lock(&h->mutex);
    for (struct il__sleeper **p = &h->sleepers; *p != NULL; p = &(*p)->next) {
        if (*p == s) {
            *p = s->next;
            break;
        }
    }
    il__mutex_unlock(&h->mutex);
}

/* The engine waits itself: there is no board that others write to. */
static il_status
wait_there(il *h, const il_op *op, int64_t sleep_ms, bool shortened)
{
    int64_t until_ns = il__clock_boot_ns() + sleep_ms * IL__NS_PER_MS;

    if (h->store->ops->wait(h->store, op, sleep_ms, &h->interrupted) == IL_NOMEM)
        return IL_NOMEM;
    if (atomic_load(&h->interrupted))
        return IL_CANCELLED;
    return shortened && il__clock_boot_ns() >= until_ns ? IL_TIMEOUT : IL_OK;
}

il_status
il_wait(il *h, const il_op *op, int64_t timeout_ms)
{
    if (h == NULL || op == NULL || !il__wait_can(op))
        return IL_INVAL;
    if (h->sweeps && il__keeper_start(h, false, NULL) != IL_OK)
        return IL_NOMEM;

    int64_t sleep_ms = il__wait_longest_ms(op);
    int64_t poll_ms  = il__store_attend(h->store);
    if (poll_ms > 0)
        sleep_ms = MIN(sleep_ms, poll_ms); /* wake-ups by others do not reach us, or not yet */
    bool shortened = timeout_ms >= 0 && timeout_ms < sleep_ms;
    if (shortened)
        sleep_ms = timeout_ms;

    if (h->store->ops->wait != NULL)
        return wait_there(h, op, sleep_ms, shortened);

    struct il__sleeper self = { .slot = op->wake[0] };
    add_sleeper(h, &self);
    /* il_interrupt() sets the flag, then wakes the listed waits: either we see the flag here, or we
     * are woken. */
    bool    woken    = false;
    int64_t left_ns  = sleep_ms * IL__NS_PER_MS;
    int64_t until_ns = il__clock_boot_ns() + left_ns;
    while (!woken && !atomic_load(&h->interrupted)) {
        woken   = il__board_sleep(h->store->board, self.slot, op->wake[1], left_ns);
        left_ns = until_ns - il__clock_boot_ns(); /* a signal may have ended it early */
        if (left_ns <= 0)
            break;
    }
    remove_sleeper(h, &self);
    if (atomic_load(&h->interrupted))
        return IL_CANCELLED;
    return woken || !shortened ? IL_OK : IL_TIMEOUT;
}

void
il_interrupt(il *h)
{
    if (h == NULL)
        return;
    atomic_store(&h->interrupted, true);
    il__mutex_lock(&h->mutex);
    for (const struct il__sleeper *s = h->sleepers; s != NULL; s = s->next)
        il__board_wake(h->store->board, s->slot);
    il__mutex_unlock(&h->mutex);
}

/* ---- the waits of the convenience calls ------------------------------------------------------ */

il_status
il__check_wait(int64_t wait_ms, il_error *reterr)
{
    if (wait_ms < 0 && wait_ms != IL_FOREVER)
        return il__error_set(reterr, IL_INVAL,
                             "invalid wait of %" PRId64 " ms: must not be negative", wait_ms);
    return IL_OK;
}

int64_t
il__wait_until_ns(int64_t wait_ms)
{
    if (wait_ms == IL_FOREVER || wait_ms > IL__WAIT_MS_MAX)
        return INT64_MAX;
    return il__clock_boot_ns() + wait_ms * IL__NS_PER_MS;
}

int64_t
il__wait_left_ms(int64_t until_ns)
{
    if (until_ns == INT64_MAX)
        return IL_FOREVER;
    int64_t left_ns = until_ns - il__clock_boot_ns();
    return left_ns > 0 ? (left_ns + IL__NS_PER_MS - 1) / IL__NS_PER_MS : 0; /* not 0 too early */
}

il_status
il__gave_up(const char *what, il_status status, il_error *reterr)
{
    return il__error_set(reterr, status, "gave up waiting for '%s': %s", what,
                         il_status_text(status));
}
