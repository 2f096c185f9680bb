/*
 * invariants_run.c: checks invariants 1 to 4 of src/core/runs.md.
 */
#include <inttypes.h>

#include "harness/invariants_internal.h"

/* Invariants 1 and 3: a RUNNING run has the lease with its fence; then there is no other run of the
 * key, for there is no other exclusive lease, and no lease belongs to two. */
static bool
look_at_lease(const il_run_info *run, const il_op *leases, char why[T_WHY_BYTES])
{
    for (size_t i = 0; i < leases->out.n_items; i++) {
        const il_lease_info *it = &leases->out.items[i];
        if (strcmp(it->key, run->key) != 0 || it->fence != run->fence)
            continue;
        if (it->mode != IL_MODE_EXCLUSIVE || strcmp(it->holder, run->holder) != 0 ||
            (it->state != IL_LEASE_HELD && it->state != IL_LEASE_CLOSING))
            return t_broken(why, "run %s of %s: its lease is %s, of %s", run->id, run->holder,
                            il_lease_state_name(it->state), it->holder);
        /* Leases were listed first: on a real clock they have more left. */
        if (it->state == IL_LEASE_HELD && it->remaining_ms < run->remaining_ms)
            return t_broken(why, "run %s: %" PRId64 " ms left, its lease has %" PRId64, run->id,
                            run->remaining_ms, it->remaining_ms);
        return true;
    }
    return t_broken(why, "run %s of '%s' is RUNNING without a lease of fence %" PRIu64, run->id,
                    run->key, run->fence);
}

static bool
look_at_run(const il_run_info *run, const il_op *leases, char why[T_WHY_BYTES])
{
    bool ended = run->state > IL_RUN_RUNNING;

    if (run->state == IL_RUN_NONE || run->state >= IL_RUN_STATE_COUNT || run->seq == 0)
        return t_broken(why, "run %s is in state %d", run->id, (int)run->state);
    if (ended != (run->ended_at_ms != 0) || (ended && run->remaining_ms != 0))
        return t_broken(why, "run %s is %s, ended at %" PRId64 ", %" PRId64 " ms left", run->id,
                        il_run_state_name(run->state), run->ended_at_ms, run->remaining_ms);
    if (run->state == IL_RUN_PENDING && (run->fence != 0 || run->started_at_ms != 0))
        return t_broken(why, "run %s is PENDING with fence %" PRIu64, run->id, run->fence);
    if (run->state == IL_RUN_RUNNING && (run->fence == 0 || run->started_at_ms == 0))
        return t_broken(why, "run %s is RUNNING without a fence or a start", run->id);
    return run->state != IL_RUN_RUNNING || look_at_lease(run, leases, why);
}

/* Invariant 4: what has ended does not change. */
static bool
look_at_end(struct t_watch *w, const il_run_info *run, char why[T_WHY_BYTES])
{
    struct t_seen *s   = t_seen_find(&w->seen, T_SEEN_RUN, run->tenant, run->id);
    uint64_t       sum = 0;

    if (run->seq < s->seq)
        return t_broken(why, "run %s has an older place than before", run->id);
    if (run->seq > s->seq) { /* the one before was purged */
        s->seq = run->seq;
        s->sum = 0;
    }
    if (run->state > IL_RUN_RUNNING)
        sum = t_sum_text(t_sum_number(t_sum_number(t_sum_number(1, run->state), run->fence),
                                      (uint64_t)run->log_bytes),
                         run->error);
    if (s->sum != 0 && s->sum != sum)
        return t_broken(why, "run %s had ended, and is %s now: %s", run->id,
                        il_run_state_name(run->state), run->error);
    s->sum = sum;
    return true;
}

/* Two runs with one lease: the RUNNING ones have different fences. */
static bool
look_at_pair(const il_run_info *runs, size_t n, char why[T_WHY_BYTES])
{
    const il_run_info *last = &runs[n - 1];

    for (size_t i = 0; i + 1 < n && last->state == IL_RUN_RUNNING; i++) {
        if (runs[i].state == IL_RUN_RUNNING && strcmp(runs[i].key, last->key) == 0)
            return t_broken(why, "'%s': runs %s and %s at once", last->key, runs[i].id, last->id);
    }
    return true;
}

bool
t_watch_runs(struct t_watch *w, il *h, const char *tenant, const il_op *leases,
             char why[T_WHY_BYTES])
{
    char     cursor[IL_KEY_BYTES_MAX + 32] = "";
    uint64_t before                        = UINT64_MAX;
    bool     ok                            = true;

    for (bool more = true; ok && more;) {
        il_op op          = { .type = IL_OP_RUN_LIST, .tenant = tenant };
        op.in.list.limit  = IL_PAGE_ITEMS_MAX;
        op.in.list.cursor = cursor[0] != '\0' ? cursor : NULL;
        ok                = t_watch_page(h, &op, why);
        for (size_t i = 0; ok && i < op.out.n_runs; i++) {
            const il_run_info *run = &op.out.runs[i];
            if (run->seq >= before)
                ok = t_broken(why, "run %s stands in the wrong place", run->id);
            before = run->seq;
            ok     = ok && look_at_run(run, leases, why) && look_at_end(w, run, why) &&
                 look_at_pair(op.out.runs, i + 1, why);
        }
        more = ok && op.out.next != NULL;
        if (more)
            (void)snprintf(cursor, sizeof cursor, "%s", op.out.next);
        il_op_release(&op);
    }
    return ok;
}
