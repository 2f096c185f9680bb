/*
 * invariants.c: checks invariants 1 to 6 of src/core/README.md, as far as visible from outside. The
 * other families are in invariants_run.c, invariants_job.c and invariants_op.c.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/conflict.h"
#include "core/limits.h"
#include "harness/invariants_internal.h"

#define LIVE_MAX 1000

struct t_watch_key {
    char     tenant[IL_TENANT_BYTES_MAX + 1];
    char     key[IL_KEY_BYTES_MAX + 1];
    uint64_t newest; /* greatest fence seen */
    uint64_t live[LIVE_MAX];
    size_t   n_live; /* fences of the last look */
};

void
t_watch_release(struct t_watch *w)
{
    free(w->keys);
    t_seen_release(&w->seen);
    *w = (struct t_watch){ 0 };
}

bool
t_broken(char why[T_WHY_BYTES], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, T_WHY_BYTES, fmt, ap);
    va_end(ap);
    return false;
}

bool
t_watch_page(il *h, il_op *op, char why[T_WHY_BYTES])
{
    il_error err = { 0 };

    if (il_apply(h, op, 1, &err) != IL_OK)
        return t_broken(why, "%s: %s", il_op_name(op->type), err.message);
    if (op->status != IL_OK)
        return t_broken(why, "%s: %s", il_op_name(op->type), il_status_name(op->status));
    return true;
}

static struct t_watch_key *
watched(struct t_watch *w, const il_lease_info *it)
{
    for (size_t i = 0; i < w->n_keys; i++) {
        if (strcmp(w->keys[i].key, it->key) == 0 && strcmp(w->keys[i].tenant, it->tenant) == 0)
            return &w->keys[i];
    }
    struct t_watch_key *keys = realloc(w->keys, (w->n_keys + 1) * sizeof *keys);
    CHECK(keys != NULL);
    w->keys                 = keys;
    struct t_watch_key *new = &keys[w->n_keys++];
    *new                    = (struct t_watch_key){ 0 };
    (void)snprintf(new->tenant, sizeof new->tenant, "%s", it->tenant);
    (void)snprintf(new->key, sizeof new->key, "%s", it->key);
    return new;
}

/* Invariants 3 and 6: one lease by itself. */
static bool
look_at_lease(const il_lease_info *it, char why[T_WHY_BYTES])
{
    int64_t most = it->state == IL_LEASE_OFFERED ? MIN(it->ttl_ms, IL__OFFER_MS) : it->ttl_ms;

    if (it->state != IL_LEASE_OFFERED && it->state != IL_LEASE_HELD &&
        it->state != IL_LEASE_CLOSING)
        return t_broken(why, "'%s': a lease is %s", it->key, il_lease_state_name(it->state));
    if (it->fence == 0)
        return t_broken(why, "'%s': a lease of %s without a fence", it->key, it->holder);
    if (it->remaining_ms <= 0)
        return t_broken(why, "'%s': a dead lease of %s is shown", it->key, it->holder);
    if (it->state != IL_LEASE_CLOSING && it->remaining_ms + it->renewed_ms > most)
        return t_broken(
            why, "'%s': %s has %" PRId64 " ms left %" PRId64 " ms after its renewal, of %" PRId64,
            it->key, it->holder, it->remaining_ms, it->renewed_ms, most);
    if (it->renewed_ms < 0 || it->renewed_ms > it->age_ms)
        return t_broken(why, "'%s': %s renewed %" PRId64 " ms ago, granted %" PRId64 " ms ago",
                        it->key, it->holder, it->renewed_ms, it->age_ms);
    return true;
}

/* Invariant 2: do the leases of one key get along? */
static bool
look_at_modes(const il_lease_info *items, size_t n, struct il__occupancy *live,
              char why[T_WHY_BYTES])
{
    *live = (struct il__occupancy){ 0 };
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && il__conflict(live, items[i].mode, items[i].permits) != IL__COMPATIBLE)
            return t_broken(why, "'%s': %s (%s, %u) beside %s (%s, %u)", items[i].key,
                            items[i].holder, il_mode_name(items[i].mode), items[i].permits,
                            items[0].holder, il_mode_name(items[0].mode), items[0].permits);
        il__occupancy_add(live, items[i].mode, items[i].permits);
    }
    return true;
}

/* Invariant 1: what is new since the last look is greater than all before. */
static bool
look_at_fences(struct t_watch *w, const il_lease_info *items, size_t n, char why[T_WHY_BYTES])
{
    struct t_watch_key *k      = watched(w, &items[0]);
    uint64_t            newest = k->newest;

    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t j = 0; j < k->n_live; j++)
            known = known || k->live[j] == items[i].fence;
        if (!known && items[i].fence <= k->newest)
            return t_broken(why, "'%s': fence %" PRIu64 " of %s came after %" PRIu64, items[i].key,
                            items[i].fence, items[i].holder, k->newest);
        if (i > 0 && items[i].fence <= items[i - 1].fence)
            return t_broken(why, "'%s': fences %" PRIu64 ", %" PRIu64 " in this order",
                            items[i].key, items[i - 1].fence, items[i].fence);
        newest = MAX(newest, items[i].fence);
    }
    k->newest = newest;
    k->n_live = MIN(n, LIVE_MAX);
    for (size_t i = 0; i < k->n_live; i++)
        k->live[i] = items[i].fence;
    return true;
}

/* The items of one key, from *i_first on: how many. */
static size_t
run_of(const il_op *op, size_t i_first)
{
    size_t n = 1;

    while (i_first + n < op->out.n_items &&
           strcmp(op->out.items[i_first + n].key, op->out.items[i_first].key) == 0)
        n++;
    return n;
}

/* Invariant 5: nobody twice. */
static bool
look_at_holders(const il_lease_info *a, size_t n_a, const il_lease_info *b, size_t n_b,
                char why[T_WHY_BYTES])
{
    for (size_t i = 0; i < n_a; i++) {
        for (size_t j = 0; j < n_b; j++) {
            if (&a[i] != &b[j] && strcmp(a[i].key, b[j].key) == 0 &&
                strcmp(a[i].holder, b[j].holder) == 0)
                return t_broken(why, "'%s': %s is there twice (%s, %s)", a[i].key, a[i].holder,
                                il_lease_state_name(a[i].state), il_lease_state_name(b[j].state));
        }
    }
    return true;
}

/* Invariant 4, and the order of tickets: the head of the queue cannot be granted. */
static bool
look_at_queue(const il_op *leases, const il_lease_info *waits, size_t n, bool settled,
              char why[T_WHY_BYTES])
{
    struct il__occupancy live = { 0 };

    for (size_t i = 0; i < n; i++) {
        if (waits[i].ticket == 0 || (i > 0 && waits[i].ticket <= waits[i - 1].ticket))
            return t_broken(why, "'%s': ticket %" PRIu64 " of %s stands wrong", waits[i].key,
                            waits[i].ticket, waits[i].holder);
        if (waits[i].state != IL_LEASE_WAITING || waits[i].fence != 0)
            return t_broken(why, "'%s': waiter %s is %s", waits[i].key, waits[i].holder,
                            il_lease_state_name(waits[i].state));
    }
    for (size_t i = 0; i < leases->out.n_items; i++) {
        if (strcmp(leases->out.items[i].key, waits[0].key) == 0)
            il__occupancy_add(&live, leases->out.items[i].mode, leases->out.items[i].permits);
    }
    if (settled && il__conflict(&live, waits[0].mode, waits[0].permits) == IL__COMPATIBLE)
        return t_broken(why, "'%s': %s waits at the head though it could be granted", waits[0].key,
                        waits[0].holder);
    return true;
}

static bool
look_at_all(struct t_watch *w, const il_op *leases, const il_op *waits, bool settled,
            char why[T_WHY_BYTES])
{
    struct il__occupancy live;

    for (size_t i = 0; i < leases->out.n_items;) {
        const il_lease_info *items = &leases->out.items[i];
        size_t               n     = run_of(leases, i);
        for (size_t j = 0; j < n; j++) {
            if (!look_at_lease(&items[j], why))
                return false;
        }
        if (!look_at_modes(items, n, &live, why) || !look_at_fences(w, items, n, why) ||
            !look_at_holders(items, n, items, n, why) ||
            !look_at_holders(items, n, waits->out.items, waits->out.n_items, why))
            return false;
        i += n;
    }
    for (size_t i = 0; i < waits->out.n_items;) {
        size_t n = run_of(waits, i);
        if (!look_at_queue(leases, &waits->out.items[i], n, settled, why))
            return false;
        i += n;
    }
    return true;
}

bool
t_watch_look(struct t_watch *w, il *h, const char *tenant, bool settled, char why[T_WHY_BYTES])
{
    struct t_args args   = { .tenant = tenant, .limit = IL_PAGE_ITEMS_MAX };
    il_op         leases = t_op(IL_OP_LIST, NULL, NULL, 0, args);

    args.flags  = IL_LIST_WAITERS;
    il_op waits = t_op(IL_OP_LIST, NULL, NULL, 0, args);
    bool  ok    = t_watch_page(h, &leases, why) && t_watch_page(h, &waits, why);
    if (ok && leases.out.next != NULL)
        ok = t_broken(why, "too many leases for this test");
    ok = ok && look_at_all(w, &leases, &waits, settled, why) &&
         t_watch_runs(w, h, tenant, &leases, why) && t_watch_jobs(w, h, tenant, why);
    il_op_release(&leases);
    il_op_release(&waits);
    return ok;
}
