/*
 * renewer.c: the thread that renews leases: at a third of the TTL, and at once when a lease was
 * broken or work was cancelled anywhere, to find out whether it was ours. It may block in the
 * store.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "runtime/keeper_internal.h"

#define RENEW_AT_ONCE 64 /* leases renewed in one batch */
#define LOOK_MS 1000     /* it checks at least this often, even without a wake-up */

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

/* Process the store's answer to one renewal; if err is not OK, there was no answer, for that
 * reason. Runs without the mutex; the lease is pinned. */
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
        il__lease_lose_locked(l, why_lost(l, op));
    if (extended && (op->out.flags & IL_OUT_CANCEL) != 0)
        il__lease_cancel_locked(l, op->out.detail);
    note_trouble(l, answered ? NULL : err);
    l->renew_at_ns = sent_ns + pause_ms * IL__NS_PER_MS;
    il__lease_unpin(h, l);
    il__mutex_unlock(&h->mutex);
    il__watchdog_poke(h); /* the deadline has moved */
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
renewer_main(void *arg)
{
    il       *h = arg;
    il_lease *due[RENEW_AT_ONCE];

    (void)il__store_attend(h->store); /* to learn of breaks; until that works, renewals do */
    il__mutex_lock(&h->mutex);
    while (!h->closing) {
        uint32_t own_seen  = atomic_load(&h->renewer_word);
        uint32_t break_now = il__board_read(h->store->board, IL__BOARD_BREAK);
        int64_t  now_ns    = il__clock_boot_ns();
        if (break_now != h->break_seen)
            all_are_due(h);
        size_t  n           = collect_due(h, now_ns, due);
        int64_t wakes_ns    = next_renewal_ns(h, now_ns + LOOK_MS * IL__NS_PER_MS);
        h->renewer_wakes_ns = wakes_ns;
        il__mutex_unlock(&h->mutex);

        h->break_seen = break_now; /* this thread's own from now on */
        if (n > 0)
            renew(h, due, n);
        else
            il__board_sleep_or(h->store->board, IL__BOARD_BREAK, break_now, &h->renewer_word,
                               own_seen, wakes_ns - now_ns);
        il__mutex_lock(&h->mutex);
    }
    il__mutex_unlock(&h->mutex);
    return NULL;
}

int
il__renewer_start(il *h)
{
    int rc             = il__thread_start(&h->renewer, renewer_main, h);
    h->renewer_started = rc == 0;
    return rc;
}
