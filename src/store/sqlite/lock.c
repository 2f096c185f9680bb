/*
 * lock.c: acquire, renew, release and break in the SQLite engine. The decision tables are in
 * src/core/README.md.
 *
 * Each op loads its key, expires it, decides and writes inside the batch's BEGIN IMMEDIATE
 * transaction. That admits only one writer, so what was read is still true when the op acts on it.
 */
#include "base/buf.h"
#include "core/key.h"
#include "core/lease.h"
#include "core/messages.h"
#include "core/op.h"
#include "store/sqlite/history.h"
#include "store/sqlite/run.h"

/* ---- answers --------------------------------------------------------------------------------- */

/* A lease of the key, which was expired before: none of its waiters is overdue. */
static bool
show_lease(struct sq_store *s, il_op *op, const struct sq_key *k, const struct sq_hold *h)
{
    uint32_t n_waiters;

    return il__sq_waiters_count(s, k, &n_waiters) &&
           il__sq_show(&s->conn, &s->state, op, k->key, h, n_waiters);
}

/* HELD, with the conflicting lease: the oldest conflicting one, otherwise the oldest. */
bool
il__sq_answer_held(struct sq_store *s, il_op *op, const struct sq_key *k)
{
    const struct sq_hold *in_the_way = NULL;

    for (size_t i = 0; i < k->leases.n; i++) {
        const struct sq_hold *h = &k->leases.items[i];
        if (h->gone)
            continue;
        bool conflicts =
            op->type == IL_OP_ACQUIRE &&
            il__modes_conflict(h->mode, h->permits, op->in.lock.mode, op->in.lock.permits);
        if (in_the_way == NULL || conflicts)
            in_the_way = h;
        if (conflicts || op->type != IL_OP_ACQUIRE)
            break;
    }
    op->status    = IL_HELD;
    op->out.fence = il__sq_newest_fence(k);
    return in_the_way == NULL || show_lease(s, op, k, in_the_way);
}

static bool
answer_queued(struct sq_store *s, il_op *op, const struct sq_hold *w)
{
    uint32_t n_before;

    if (!il__sq_waiters_before(s, op->tenant, op->key, w->number, &n_before))
        return false;
    op->status       = IL_QUEUED;
    op->out.ticket   = w->number;
    op->out.position = n_before + 1;
    op->out.remaining_ms =
        w->deadline_ms == IL__NEVER ? IL_FOREVER : w->deadline_ms - s->state.now_ms;
    return true;
}

static bool
answer_lease(struct sq_store *s, il_op *op, const struct sq_hold *h)
{
    op->status           = IL_OK;
    op->out.fence        = h->number;
    op->out.remaining_ms = h->due_ms - s->state.now_ms;
    return true;
}

static bool
answer(il_op *op, il_status status, const char *detail)
{
    il__op_end(op, status, detail);
    return true;
}

/* ---- acquire --------------------------------------------------------------------------------- */

/* The holder already has a lease on the key: it confirms an offer, renews, or requests something
 * else. */
static bool
acquire_own_lease(struct sq_store *s, il_op *op, struct sq_key *k, struct sq_hold *h)
{
    const il_lock_in *in = &op->in.lock;

    if (h->mode != in->mode || h->permits != in->permits)
        return answer(op, IL_MISMATCH, IL__SAY_OTHER_MODE);
    bool           offered = h->state == IL_LEASE_OFFERED;
    il_lease_state state   = il__lease_step(h->state, offered ? IL__EV_CONFIRM : IL__EV_RENEW);
    if (state == IL_LEASE_NONE) {
        il__answer_closing(op, h->reason);
        return true;
    }
    h->state      = state;
    h->ttl_ms     = in->ttl_ms;
    h->renewed_ms = s->state.now_ms;
    h->due_ms     = s->state.now_ms + in->ttl_ms;
    if (!offered)
        op->out.flags |= IL_OUT_RENEWED;
    return il__sq_lease_change(s, k, h) && (h->run == 0 || il__sq_run_held(s, op, k, h)) &&
           answer_lease(s, op, h);
}

static void
set_waiter_times(struct sq_store *s, struct sq_hold *w, int64_t wait_ms)
{
    w->renewed_ms  = s->state.now_ms;
    w->deadline_ms = il__wait_deadline_ms(s->state.now_ms, wait_ms);
    w->due_ms      = MIN(w->deadline_ms, s->state.now_ms + IL__WAITER_DROP_MS);
}

/* Remove a waiter from the queue, which may let those behind it pass. */
static bool
leave_queue(struct sq_store *s, struct sq_key *k, struct sq_hold *w)
{
    return il__sq_waiter_leave(s, k, w) && il__sq_offer_next(s, k, NULL);
}

static bool
acquire_own_wait(struct sq_store *s, il_op *op, struct sq_key *k, struct sq_hold *w)
{
    const il_lock_in *in = &op->in.lock;

    if (w->verdict[0] != '\0')
        return answer(op, IL_DEADLOCK, w->verdict) && leave_queue(s, k, w);
    if (w->mode != in->mode || w->permits != in->permits)
        return answer(op, IL_MISMATCH, IL__SAY_WAITS_IN_OTHER_MODE);
    if (in->wait_ms == 0)
        return il__sq_answer_held(s, op, k) && leave_queue(s, k, w);
    set_waiter_times(s, w, in->wait_ms);
    return il__sq_waiter_refresh(s, w) && answer_queued(s, op, w);
}

/* A waiter polls again, and nothing else has happened to its key: answer without reading the whole
 * queue. */
static bool
acquire_again(struct sq_store *s, il_op *op, bool *ret_done)
{
    const il_lock_in *in  = &op->in.lock;
    struct sq_conn   *c   = &s->conn;
    sqlite3_stmt     *row = il__sq_use(c, SQ_waiter_again);

    *ret_done = false;
    if (!il__sq_bind_text(c, row, 1, op->tenant) || !il__sq_bind_text(c, row, 2, op->key) ||
        !il__sq_bind_text(c, row, 3, op->holder) || !il__sq_bind_int(c, row, 4, s->state.now_ms) ||
        !il__sq_bind_int(c, row, 5, (int64_t)in->mode) || !il__sq_bind_int(c, row, 6, in->permits))
        return false;
    int rc = il__sq_step(c, row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE;
    struct sq_hold w = { .number = il__sq_fence(row, 0) };
    (void)sqlite3_reset(row); /* before the row is changed */
    set_waiter_times(s, &w, in->wait_ms);
    *ret_done = true;
    return il__sq_waiter_refresh(s, &w) && answer_queued(s, op, &w);
}

bool
il__sq_acquire_own(struct sq_store *s, il_op *op, struct sq_key *k, struct sq_hold *own)
{
    return own->state == IL_LEASE_WAITING ? acquire_own_wait(s, op, k, own)
                                          : acquire_own_lease(s, op, k, own);
}

static struct sq_hold
hold_of_op(const struct sq_store *s, const il_op *op, const struct sq_key *k)
{
    const il_lock_in *in = &op->in.lock;

    return (struct sq_hold){
        .holder     = op->holder,
        .mode       = in->mode,
        .permits    = in->permits,
        .ttl_ms     = in->ttl_ms,
        .settle_ms  = in->settle_ms,
        .since_ms   = s->state.now_ms,
        .renewed_ms = s->state.now_ms,
        .meta       = in->meta != NULL ? in->meta : "",
        .place      = in->place != NULL ? in->place : "",
        .reason     = "",
        .verdict    = "",
        .run        = k->run,
    };
}

bool
il__sq_grant(struct sq_store *s, il_op *op, struct sq_key *k)
{
    struct sq_hold h = hold_of_op(s, op, k);

    h.state = il__lease_step(IL_LEASE_NONE, IL__EV_GRANT);
#ifdef IL_MUTANT_fence_not_incremented
    h.number = s->state.fence;
#else
    h.number = il__fence_next(&s->state.fence);
#endif
    h.due_ms = s->state.now_ms + h.ttl_ms;
    return il__sq_lease_add(s, k, &h) && answer_lease(s, op, &h);
}

/* Does the unit of work hold or wait for anything besides its new wait (cancelled or not)? Only
 * then can a cycle close. */
static bool
is_entangled(struct sq_store *s, const il_op *op, bool *ret)
{
    struct sq_conn *c       = &s->conn;
    size_t          n_bytes = il__holder_root_bytes(op->holder);
    sqlite3_stmt   *row     = il__sq_use(c, SQ_lease_of_unit);
    int             n       = 0;
    int             rc;

    if (!il__sq_bind_text(c, row, 1, op->tenant) ||
        !il__sq_bind_bytes(c, row, 2, op->holder, n_bytes) ||
        !il__sq_bind_int(c, row, 3, INT64_MIN))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW)
        n += 2;
    row = il__sq_use(c, SQ_waiter_of_unit);
    if (rc != SQLITE_DONE || !il__sq_bind_text(c, row, 1, op->tenant) ||
        !il__sq_bind_bytes(c, row, 2, op->holder, n_bytes))
        return false;
    while ((rc = il__sq_step(c, row)) == SQLITE_ROW)
        n += 1;
    *ret = n > 1;
    return rc == SQLITE_DONE;
}

/* Another waiter was cancelled, perhaps of this key: check again; the new one's turn may have
 * come. */
static bool
answer_after_cancel(struct sq_store *s, il_op *op, const struct sq_key *k)
{
    struct sq_key fresh = { .tenant = k->tenant, .key = k->key };

    struct sq_hold *w;

    if (!il__sq_key_load(s, &fresh) || !il__sq_waiters_find(s, &fresh, op->holder, &w))
        return false;
    if (w != NULL)
        return answer_queued(s, op, w);
    struct sq_hold *lease = il__sq_find_holder(&fresh.leases, op->holder);
    CHECK(lease != NULL);
    return acquire_own_lease(s, op, &fresh, lease);
}

/* A new waiter, at the end of the queue. */
bool
il__sq_enqueue(struct sq_store *s, il_op *op, struct sq_key *k, uint64_t *ret_ticket)
{
    struct sq_hold w = hold_of_op(s, op, k);

    w.state     = il__lease_step(IL_LEASE_NONE, IL__EV_QUEUE);
    w.number    = ++s->state.ticket;
    *ret_ticket = w.number;
    set_waiter_times(s, &w, op->in.lock.wait_ms);
    return il__sq_waiter_add(s, k, &w);
}

/* A new waiter: check whether it closes a cycle. Its turn may have come already. */
bool
il__sq_enqueued(struct sq_store *s, il_op *op, struct sq_key *k, uint64_t ticket)
{
    struct il__buf AUTO_BUF why = { .n_bytes_max = 4096 };
    struct sq_hold         *w;
    uint64_t                victim    = 0;
    bool                    entangled = false;
    bool                    found     = false;

    if (!il__sq_waiters_find(s, k, op->holder, &w))
        return false;
    if (w == NULL) {
        struct sq_hold *lease = il__sq_find_holder(&k->leases, op->holder);
        CHECK(lease != NULL);
        return il__sq_learn(s, op) && acquire_own_lease(s, op, k, lease);
    }
    if (!is_entangled(s, op, &entangled))
        return false;
    if (entangled && !il__sq_search_deadlock(s, op->tenant, &op->holder, 1, &victim, &why, &found))
        return false;
    if (found && victim == ticket)
        return answer(op, IL_DEADLOCK, il__buf_str(&why)) && (k->run != 0 || leave_queue(s, k, w));
    if (!il__sq_learn(s, op))
        return false;
    return found ? answer_after_cancel(s, op, k) : answer_queued(s, op, w);
}

static bool
queue(struct sq_store *s, il_op *op, struct sq_key *k)
{
    uint64_t ticket;

    return il__sq_enqueue(s, op, k, &ticket) && il__sq_enqueued(s, op, k, ticket);
}

/* Is a waiter still to be served? */
static bool
has_queue(struct sq_store *s, struct sq_key *k, bool *ret)
{
    *ret = false;
    for (size_t i = 0; !*ret; i++) {
        if (i == k->waiters.n && k->more && !il__sq_waiters_next(s, k))
            return false;
        if (i == k->waiters.n)
            return true;
        *ret = !k->waiters.items[i].gone && k->waiters.items[i].verdict[0] == '\0';
    }
    return true;
}

bool
il__sq_is_free(struct sq_store *s, struct sq_key *k, bool *ret)
{
    bool queue;

    if (!has_queue(s, k, &queue))
        return false;
    *ret = il__sq_newest_fence(k) == 0 && !queue;
    return true;
}

static bool
acquire_new(struct sq_store *s, il_op *op, struct sq_key *k)
{
    const il_lock_in    *in   = &op->in.lock;
    struct il__occupancy live = il__sq_occupancy(k);
    bool                 others;

    if (!il__sq_rank(s, op) || !has_queue(s, k, &others))
        return false;
    if (op->status != IL_OK)
        return true;
    enum il__compatibility fit = il__conflict(&live, in->mode, in->permits);
    if (fit == IL__OTHER_N)
        return answer(op, IL_MISMATCH, IL__SAY_OTHER_PERMITS);
    if (fit == IL__COMPATIBLE && !others)
        return il__sq_learn(s, op) && il__sq_grant(s, op, k);
    if (in->wait_ms == 0)
        return il__sq_answer_held(s, op, k);
    return queue(s, op, k);
}

bool
il__sq_acquire(struct sq_store *s, il_op *op)
{
    struct sq_key           k     = { .tenant = op->tenant, .key = op->key };
    const struct il__ended *ended = il__sq_ended_find(s, op->tenant, op->key, op->holder);
    bool                    busy  = true;
    bool                    again = false;

    /* The usual case first: no waiters anywhere, the key is free, the unit of work holds nothing
     * else. */
    if (ended == NULL && !s->has_waiters && !il__sq_lease_busy(s, &k, op->holder, &busy))
        return false;
    if (!busy)
        return il__sq_grant(s, op, &k);
    if (ended == NULL && s->has_waiters && op->in.lock.wait_ms != 0 &&
        !acquire_again(s, op, &again))
        return false;
    if (again)
        return true;
    if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, NULL))
        return false;
    struct sq_hold *own = il__sq_find_holder(&k.leases, op->holder);
    if (own != NULL)
        return il__sq_acquire_own(s, op, &k, own);
    /* Looked up again: this holder's lease may have just expired. */
    ended = il__sq_ended_find(s, op->tenant, op->key, op->holder);
    if (ended != NULL) {
        il__answer_lost(op, ended, s->state.now_ms);
        return true;
    }
    if (!il__sq_waiters_find(s, &k, op->holder, &own))
        return false;
    if (own != NULL)
        return il__sq_acquire_own(s, op, &k, own);
    return acquire_new(s, op, &k);
}

/* ---- renew, release, break ------------------------------------------------------------------- */

/* renew and release of a lease that is not (or no longer) held by this holder with this fence. */
static bool
answer_not_current(struct sq_store *s, il_op *op, const struct sq_key *k)
{
    const struct il__ended *ended = il__sq_ended_find(s, op->tenant, op->key, op->holder);

    op->out.fence = il__sq_newest_fence(k);
    if (il__sq_find_holder(&k->leases, op->holder) != NULL)
        return answer(op, IL_STALE, IL__SAY_OTHER_FENCE);
    if (ended != NULL && ended->fence == op->fence && ended->how == IL_LEASE_RELEASED &&
        op->type == IL_OP_RELEASE)
        return answer(op, IL_OK, NULL);
    if (ended != NULL) {
        il__answer_lost(op, ended, s->state.now_ms);
        return true;
    }
    if (op->out.fence != 0)
        return il__sq_answer_held(s, op, k);
    return answer(op, IL_NOT_HELD, NULL);
}

/* The lease that a renew or release names, of a loaded and expired key; NULL if it is not
 * current. */
static struct sq_hold *
find_current(const il_op *op, const struct sq_key *k)
{
    struct sq_hold *h = il__sq_find_holder(&k->leases, op->holder);

#ifdef IL_MUTANT_release_without_compare
    if (op->type == IL_OP_RELEASE && h == NULL && k->leases.n > 0 && !k->leases.items[0].gone)
        return &k->leases.items[0];
    return h;
#else
    return h != NULL && h->number == op->fence ? h : NULL;
#endif
}

bool
il__sq_renew(struct sq_store *s, il_op *op)
{
    struct sq_key k = { .tenant = op->tenant, .key = op->key };

    if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, NULL))
        return false;
    struct sq_hold *h = find_current(op, &k);
    if (h == NULL)
        return answer_not_current(s, op, &k);
    if (il__lease_step(h->state, IL__EV_RENEW) == IL_LEASE_NONE) {
        op->out.fence = il__sq_newest_fence(&k);
        if (h->state == IL_LEASE_OFFERED)
            return answer(op, IL_LOST, IL__SAY_UNCONFIRMED);
        il__answer_closing(op, h->reason);
        return true;
    }
    if (op->in.lock.ttl_ms != 0)
        h->ttl_ms = op->in.lock.ttl_ms;
    h->renewed_ms = s->state.now_ms;
    h->due_ms     = s->state.now_ms + h->ttl_ms;
    return il__sq_lease_change(s, &k, h) && (h->run == 0 || il__sq_run_held(s, op, &k, h)) &&
           answer_lease(s, op, h);
}

bool
il__sq_release(struct sq_store *s, il_op *op)
{
    struct sq_key k    = { .tenant = op->tenant, .key = op->key };
    bool          done = false;

    if (!s->has_waiters && !il__sq_lease_release(s, op, &done))
        return false;
    if (done)
        return answer(op, IL_OK, NULL);
    if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, NULL))
        return false;
    struct sq_hold *h = find_current(op, &k);
    if (h == NULL)
        return answer_not_current(s, op, &k);
    if (!il__sq_lease_end(s, &k, h, il__lease_step(h->state, IL__EV_RELEASE)) ||
        !il__sq_offer_next(s, &k, NULL))
        return false;
    op->out.fence = il__sq_newest_fence(&k);
    return answer(op, IL_OK, NULL);
}

static bool
break_lease(struct sq_store *s, il_op *op, struct sq_key *k, struct sq_hold *h)
{
    bool           now   = (op->flags & IL_BREAK_NOW) != 0;
    il_lease_state state = il__lease_step(h->state, now ? IL__EV_BREAK_NOW : IL__EV_BREAK);

    CHECK(state != IL_LEASE_NONE); /* every live state can be broken */
    if (!show_lease(s, op, k, h) || !il__sq_wake(s, IL__BOARD_BREAK)) /* notify the holder */
        return false;
    if (h->state == IL_LEASE_HELD && !il__sq_history_broken(s, k, h, op))
        return false;
    h->reason = op->in.lock.reason;
    if (il__lease_ended(state)) {
        if (!il__sq_lease_end(s, k, h, state) || !il__sq_offer_next(s, k, NULL))
            return false;
    } else {
        h->state = state;
        if (!il__sq_lease_change(s, k, h) || (h->run != 0 && !il__sq_run_broken(s, k, h)))
            return false;
    }
    op->out.fence = il__sq_newest_fence(k);
    return answer(op, IL_OK, NULL);
}

bool
il__sq_break(struct sq_store *s, il_op *op)
{
    struct sq_key k = { .tenant = op->tenant, .key = op->key };

    if (!il__sq_key_load(s, &k) || !il__sq_expire(s, &k, NULL))
        return false;
    for (size_t i = 0; i < k.leases.n; i++) {
        if (!k.leases.items[i].gone && k.leases.items[i].number == op->fence)
            return break_lease(s, op, &k, &k.leases.items[i]);
    }
    op->out.fence = il__sq_newest_fence(&k);
    return answer(op, op->out.fence != 0 ? IL_STALE : IL_NOT_HELD, NULL);
}
