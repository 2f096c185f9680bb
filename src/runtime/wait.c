/*
 * wait.c: sleeping until a queued acquire should be repeated.
 *
 * il_apply() notes the waiter's word of the board before the op is applied (op->wake); an offer or a verdict
 * that comes later bumps the word, so il_wait() does not sleep over it. See base/board.h.
 */
#include "base/clock.h"
#include "core/limits.h"
#include "runtime/handle.h"

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

il_status
il_wait(il *h, const il_op *op, int64_t timeout_ms)
{
    if (h == NULL || op == NULL || op->type != IL_OP_ACQUIRE || op->status != IL_QUEUED ||
        op->wake[0] < IL__BOARD_WAITER || op->wake[0] >= IL__BOARD_WORDS)
        return IL_INVAL;
    if (h->sweeps && il__keeper_start(h, false, NULL) != IL_OK)
        return IL_NOMEM;

    int64_t sleep_ms = IL__WAITER_REFRESH_MS;
    if (op->out.remaining_ms != IL_FOREVER)
        sleep_ms = MIN(sleep_ms, MAX(op->out.remaining_ms, 0));
    bool shortened = timeout_ms >= 0 && timeout_ms < sleep_ms;
    if (shortened)
        sleep_ms = timeout_ms;

    struct il__sleeper self = { .slot = op->wake[0] };
    add_sleeper(h, &self);
    /* il_interrupt() sets the flag, then wakes the listed: either it is seen here, or we are woken. */
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
