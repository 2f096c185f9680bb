/*
 * lock.c: acquire, renew, release and break in the memory engine. The decision tables are in
 * src/core/README.md.
 */
#include "base/buf.h"
#include "core/lease.h"
#include "core/limits.h"
#include "core/messages.h"
#include "core/op.h"
#include "store/memory/history.h"
#include "store/memory/run.h"

#define SHORT_LIST 8

/* The hold of `holder` in one of the key's lists, found through the list or, if that is long,
 * through the unit. */
struct mem_hold *
il__mem_find_holder(struct mem_store *m, const struct mem_key *k, const struct mem_list *list,
                    const char *holder)
{
    struct mem_hold *h = list->head;

    if (list->n <= SHORT_LIST) {
        while (h != NULL && strcmp(h->holder, holder) != 0)
            h = h->next;
        return h;
    }
    bool     waits = list == &k->waiters;
    uint64_t unit  = il__mem_hash_unit(m, k->tenant, holder);
    for (h = il__mem_unit_first(m, unit, k->tenant, holder); h != NULL; h = il__mem_unit_next(h)) {
        if (h->key == k && (h->state == IL_LEASE_WAITING) == waits &&
            strcmp(h->holder, holder) == 0)
            return h;
    }
    return NULL;
}

static uint64_t
newest_fence(const struct mem_key *k)
{
    return k->leases.tail != NULL ? k->leases.tail->fence : 0;
}

/* HELD, with the conflicting lease: the oldest conflicting one, otherwise the oldest. */
void
il__mem_answer_held(struct mem_store *m, il_op *op, struct mem_key *k)
{
    const struct mem_hold *in_the_way = k->leases.head;

    if (op->type == IL_OP_ACQUIRE) {
        for (const struct mem_hold *h = k->leases.head; h != NULL; h = h->next) {
            if (il__modes_conflict(h->mode, h->permits, op->in.lock.mode, op->in.lock.permits)) {
                in_the_way = h;
                break;
            }
        }
    }
    op->status    = IL_HELD;
    op->out.fence = newest_fence(k);
    if (in_the_way != NULL && !il__mem_show(m, op, in_the_way))
        op->status = IL_NOMEM;
}

const struct il__ended *
il__mem_find_ended(const struct mem_store *m, const struct mem_names *names)
{
    return il__ended_find(&m->ended, (struct il__ended_id){ names->key, names->holder }, m->now_ms);
}

static void
answer_queued(struct mem_store *m, il_op *op, const struct mem_hold *w)
{
    uint32_t position = 1;

    for (const struct mem_hold *h = w->prev; h != NULL; h = h->prev)
        position += h->verdict == NULL;
    op->status           = IL_QUEUED;
    op->out.ticket       = w->ticket;
    op->out.position     = position;
    op->out.remaining_ms = w->deadline_ms == IL__NEVER ? IL_FOREVER : w->deadline_ms - m->now_ms;
}

static void
answer_lease(struct mem_store *m, il_op *op, const struct mem_hold *h)
{
    op->status           = IL_OK;
    op->out.fence        = h->fence;
    op->out.remaining_ms = h->due.at - m->now_ms;
}

/* The holder already has a lease on the key: it confirms an offer, renews, or requests something
 * else. */
static void
acquire_own_lease(struct mem_store *m, il_op *op, struct mem_hold *h)
{
    const il_lock_in *in = &op->in.lock;

    if (h->mode != in->mode || h->permits != in->permits) {
        il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_MODE);
        return;
    }
    bool           offered = h->state == IL_LEASE_OFFERED;
    il_lease_state state   = il__lease_step(h->state, offered ? IL__EV_CONFIRM : IL__EV_RENEW);
    if (state == IL_LEASE_NONE) {
        il__answer_closing(op, h->verdict);
        return;
    }
    h->state      = state;
    h->ttl_ms     = in->ttl_ms;
    h->renewed_ms = m->now_ms;
    il__heap_move(&m->due, &h->due, m->now_ms + in->ttl_ms);
    answer_lease(m, op, h);
    if (!offered)
        op->out.flags |= IL_OUT_RENEWED;
    if (h->run != NULL)
        il__mem_run_held(m, op, h);
}

/* Remove a hold from the queue, which may let those behind it pass. */
static void
leave_queue(struct mem_store *m, struct mem_hold *w)
{
    struct mem_key *k = w->key;

    il__mem_hold_end(m, w, il__lease_step(w->state, IL__EV_LEAVE));
    il__mem_offer_next(m, k, NULL);
}

static void
refresh_waiter(struct mem_store *m, struct mem_hold *w, int64_t wait_ms)
{
    w->renewed_ms  = m->now_ms;
    w->deadline_ms = il__wait_deadline_ms(m->now_ms, wait_ms);
    il__heap_move(&m->due, &w->due, MIN(w->deadline_ms, m->now_ms + IL__WAITER_DROP_MS));
}

static void
acquire_own_wait(struct mem_store *m, il_op *op, struct mem_hold *w)
{
    const il_lock_in *in = &op->in.lock;
    struct mem_key   *k  = w->key;

    if (w->verdict != NULL) {
        il__op_end(op, IL_DEADLOCK, w->verdict);
        leave_queue(m, w);
    } else if (w->mode != in->mode || w->permits != in->permits) {
        il__op_end(op, IL_MISMATCH, IL__SAY_WAITS_IN_OTHER_MODE);
    } else if (in->wait_ms == 0) {
        il__mem_answer_held(m, op, k);
        leave_queue(m, w);
    } else {
        refresh_waiter(m, w, in->wait_ms);
        answer_queued(m, op, w);
    }
}

void
il__mem_acquire_own(struct mem_store *m, il_op *op, struct mem_hold *h)
{
    if (h->state == IL_LEASE_WAITING)
        acquire_own_wait(m, op, h);
    else
        acquire_own_lease(m, op, h);
}

struct mem_hold *
il__mem_grant(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_names *names)
{
    il_lease_state state = il__lease_step(IL_LEASE_NONE, IL__EV_GRANT);

    il__mem_learn(m, op, names);
    struct mem_hold *h = il__mem_hold_new(m, k, op, names, state, m->now_ms + op->in.lock.ttl_ms);
    if (h == NULL) {
        op->status = IL_NOMEM;
        return NULL;
    }
#ifdef IL_MUTANT_fence_not_incremented
    h->fence = m->fence;
#else
    h->fence = il__fence_next(&m->fence);
#endif
    il__mem_list_append(&k->leases, h);
    answer_lease(m, op, h);
    return h;
}

/* A new waiter, at the end of the queue. */
struct mem_hold *
il__mem_enqueue(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_names *names)
{
    int64_t          deadline_ms = il__wait_deadline_ms(m->now_ms, op->in.lock.wait_ms);
    int64_t          due_ms      = MIN(deadline_ms, m->now_ms + IL__WAITER_DROP_MS);
    il_lease_state   state       = il__lease_step(IL_LEASE_NONE, IL__EV_QUEUE);
    struct mem_hold *w           = il__mem_hold_new(m, k, op, names, state, due_ms);

    if (w == NULL) {
        op->status = IL_NOMEM;
        return NULL;
    }
    w->deadline_ms = deadline_ms;
    il__mem_wait_begin(m, w);
    return w;
}

/* A new waiter: check whether it closes a cycle. */
void
il__mem_enqueued(struct mem_store *m, il_op *op, struct mem_hold *w, const struct mem_names *names)
{
    struct il__buf AUTO_BUF why    = { .n_bytes_max = 4096 };
    il_status               st     = IL_OK;
    uint64_t                ticket = w->ticket;
    uint64_t                victim = 0;
    bool                    stays  = w->run == NULL; /* as a victim; a run's waiter is removed */

    bool entangled = il__mem_unit_next(w) != NULL ||
                     il__mem_unit_first(m, names->unit, op->tenant, op->holder) != w;
    if (entangled && w->state == IL_LEASE_WAITING)
        st = il__mem_search_deadlock(m, op->tenant, &op->holder, 1, &victim, &why);
    if (st == IL_DEADLOCK && victim == ticket) {
        il__op_end(op, IL_DEADLOCK, il__buf_str(&why));
        if (stays)
            leave_queue(m, w);
        return;
    }
    il__mem_learn(m, op, names);
    if (w->state == IL_LEASE_OFFERED)
        acquire_own_lease(m, op, w); /* another was cancelled, so its turn has come already */
    else
        answer_queued(m, op, w);
}

static void
queue(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_names *names)
{
    struct mem_hold *w = il__mem_enqueue(m, op, k, names);

    if (w != NULL)
        il__mem_enqueued(m, op, w, names);
}

/* Is a waiter still to be served? */
bool
il__mem_has_queue(const struct mem_key *k)
{
    const struct mem_hold *w = k->waiters.head;

    while (w != NULL && w->verdict != NULL)
        w = w->next;
    return w != NULL;
}

static void
acquire_new(struct mem_store *m, il_op *op, struct mem_key *k, const struct mem_names *names)
{
    const il_lock_in    *in   = &op->in.lock;
    struct il__occupancy live = il__mem_occupancy(k);

    if (!il__mem_rank_ok(m, op, names))
        return;
    enum il__compatibility fit = il__conflict(&live, in->mode, in->permits);
    if (fit == IL__OTHER_N)
        il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_PERMITS);
    else if (fit == IL__COMPATIBLE && !il__mem_has_queue(k))
        IGNORE(il__mem_grant(m, op, k, names) == NULL); /* the op says so */
    else if (in->wait_ms == 0)
        il__mem_answer_held(m, op, k);
    else
        queue(m, op, k, names);
}

void
il__mem_acquire(struct mem_store *m, il_op *op, const struct mem_names *names)
{
    const struct il__ended *ended = il__mem_find_ended(m, names);
    struct mem_key         *k     = il__mem_key_find(m, names->key, op->tenant, op->key);
    struct mem_hold        *own   = NULL;

    if (k != NULL) {
        il__mem_expire(m, k, NULL);
        own   = il__mem_find_holder(m, k, &k->leases, op->holder);
        ended = il__mem_find_ended(m, names); /* this holder's lease may have just expired */
    } else {
        k = il__mem_key_add(m, names->key, op);
        if (k == NULL) {
            op->status = IL_NOMEM;
            return;
        }
    }
    if (own != NULL)
        il__mem_acquire_own(m, op, own);
    else if (ended != NULL)
        il__answer_lost(op, ended, m->now_ms);
    else if ((own = il__mem_find_holder(m, k, &k->waiters, op->holder)) != NULL)
        il__mem_acquire_own(m, op, own);
    else
        acquire_new(m, op, k, names);
    il__mem_key_drop_if_idle(m, k);
}

/* renew and release of a lease that is not (or no longer) held by this holder with this fence. */
static void
answer_not_current(struct mem_store *m, il_op *op, struct mem_key *k)
{
    struct mem_names        names = il__mem_names(m, op);
    const struct il__ended *ended = il__mem_find_ended(m, &names);

    if (k != NULL)
        op->out.fence = newest_fence(k);
    if (k != NULL && il__mem_find_holder(m, k, &k->leases, op->holder) != NULL)
        il__op_end(op, IL_STALE, IL__SAY_OTHER_FENCE);
    else if (ended != NULL && ended->fence == op->fence && ended->how == IL_LEASE_RELEASED &&
             op->type == IL_OP_RELEASE)
        op->status = IL_OK;
    else if (ended != NULL)
        il__answer_lost(op, ended, m->now_ms);
    else if (k != NULL && k->leases.n > 0)
        il__mem_answer_held(m, op, k);
    else
        op->status = IL_NOT_HELD;
}

/* Expire the key and find the lease that a renew or release names; NULL if it is not current. */
static struct mem_hold *
find_current(struct mem_store *m, const il_op *op, struct mem_key **ret_k)
{
    *ret_k = il__mem_key_find(m, il__mem_hash_op(m, op), op->tenant, op->key);
    if (*ret_k == NULL)
        return NULL;
    il__mem_expire(m, *ret_k, NULL);
    struct mem_hold *h = il__mem_find_holder(m, *ret_k, &(*ret_k)->leases, op->holder);
#ifdef IL_MUTANT_release_without_compare
    if (op->type == IL_OP_RELEASE && h == NULL)
        return (*ret_k)->leases.head;
    return h;
#else
    return h != NULL && h->fence == op->fence ? h : NULL;
#endif
}

void
il__mem_renew(struct mem_store *m, il_op *op)
{
    struct mem_key  *k;
    struct mem_hold *h = find_current(m, op, &k);

    if (h == NULL) {
        answer_not_current(m, op, k);
    } else if (h->state == IL_LEASE_OFFERED) {
        op->out.fence = newest_fence(k);
        il__op_end(op, IL_LOST, IL__SAY_UNCONFIRMED);
    } else if (il__lease_step(h->state, IL__EV_RENEW) == IL_LEASE_NONE) {
        op->out.fence = newest_fence(k);
        il__answer_closing(op, h->verdict);
    } else {
        if (op->in.lock.ttl_ms != 0)
            h->ttl_ms = op->in.lock.ttl_ms;
        h->renewed_ms = m->now_ms;
        il__heap_move(&m->due, &h->due, m->now_ms + h->ttl_ms);
        answer_lease(m, op, h);
        if (h->run != NULL)
            il__mem_run_held(m, op, h);
    }
    if (k != NULL)
        il__mem_key_drop_if_idle(m, k);
}

void
il__mem_release(struct mem_store *m, il_op *op)
{
    struct mem_key  *k;
    struct mem_hold *h = find_current(m, op, &k);

    if (h == NULL) {
        answer_not_current(m, op, k);
    } else {
        il__mem_hold_end(m, h, il__lease_step(h->state, IL__EV_RELEASE));
        il__mem_offer_next(m, k, NULL);
        op->status    = IL_OK;
        op->out.fence = newest_fence(k);
    }
    if (k != NULL)
        il__mem_key_drop_if_idle(m, k);
}

static void
break_lease(struct mem_store *m, il_op *op, struct mem_key *k, struct mem_hold *h)
{
    bool           now   = (op->flags & IL_BREAK_NOW) != 0;
    il_lease_state state = il__lease_step(h->state, now ? IL__EV_BREAK_NOW : IL__EV_BREAK);

    CHECK(state != IL_LEASE_NONE); /* every live state can be broken */
    char *reason = il__strdup(op->in.lock.reason);
    if (reason == NULL || !il__mem_show(m, op, h) ||
        (h->run != NULL && !il__lease_ended(state) && !il__mem_run_broken(m, h, reason))) {
        il__free(reason);
        op->status = IL_NOMEM;
        return;
    }
    if (h->state == IL_LEASE_HELD)
        il__mem_history_broken(m, h, op);
    il__free(h->verdict);
    h->verdict = reason;
    il__board_wake(&m->board, IL__BOARD_BREAK); /* notify the holder */
    if (il__lease_ended(state)) {
        il__mem_hold_end(m, h, state);
        il__mem_offer_next(m, k, NULL);
    } else {
        h->state = state;
    }
    op->status    = IL_OK;
    op->out.fence = newest_fence(k);
}

void
il__mem_break(struct mem_store *m, il_op *op)
{
    struct mem_key  *k = il__mem_key_find(m, il__mem_hash_op(m, op), op->tenant, op->key);
    struct mem_hold *h = NULL;

    if (k == NULL) {
        op->status = IL_NOT_HELD;
        return;
    }
    il__mem_expire(m, k, NULL);
    for (h = k->leases.head; h != NULL && h->fence != op->fence; h = h->next)
        ;
    if (h != NULL) {
        break_lease(m, op, k, h);
    } else {
        op->out.fence = newest_fence(k);
        op->status    = k->leases.n > 0 ? IL_STALE : IL_NOT_HELD;
    }
    il__mem_key_drop_if_idle(m, k);
}
