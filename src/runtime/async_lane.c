/*
 * async_lane.c: lanes. A lane is a queue with a thread: one for each executor of the handle, and
 * one for read-only calls. The calls that arrive while the thread applies a batch form the next
 * batch, with one commit. It goes through the handle's executor, where it is joined by the
 * renewer's renewals and other users of the handle.
 *
 * A call is applied piece by piece (batch_split.h) and queues again for each piece. Tenants take
 * turns in the queue (fair.h), and keep-alives go first, up to half of a batch: so a renewal waits
 * for at most one commit, however many ops others have sent, and a flood of renewals does not
 * starve the rest.
 */
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "core/op.h"
#include "runtime/async_internal.h"

#define KEEPALIVES_MAX (IL__COMMIT_OPS / 2)               /* in one batch, before the others */
#define BATCH_BYTES_MAX (2 * (size_t)IL_RESULT_BYTES_MAX) /* limit for the results of a batch */

/* ---- queueing -------------------------------------------------------------------------------- */

static bool
is_keepalive(const il_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!il__op_is_keepalive(ops[i].type))
            return false;
    }
    return true;
}

static struct async_lane *
lane_of(struct il__async *a, const struct il__call *call)
{
    const il_op *ops       = call->ops + call->n_done;
    bool         may_block = false;

    if (a->direct)
        return &a->lanes[0];
    if (!call->piece.writes)
        return &a->lanes[ASYNC_READS];
    for (size_t i = 0; i < call->piece.n && !may_block; i++)
        may_block = il__op_may_block_on_tx(ops[i].type);
    return &a->lanes[il__lane_of(a->h, call->ops, call->n, may_block, a->n_busy)];
}

/* The previous attempt is discarded, with its results. */
static void
forget_attempt(struct il__call *call)
{
    il__result_budget_change(call->budget, call->n_held, 0);
    call->n_held       = 0;
    call->n_bytes_left = IL_RESULT_BYTES_MAX;
}

void
il__async_enqueue(struct il__async *a, struct il__call *call)
{
    il_op *ops = call->ops + call->n_done;

    CHECK(il__mutex_held(&a->mutex));
    CHECK(call->n_done < call->n);
    call->state = CALL_QUEUED;
    if (call->n_done == 0)
        forget_attempt(call);
    if (!il__call_has_lane(a, call)) {
        il__calls_add(&a->handed, call);
        return;
    }
    call->piece = il__piece_next(ops, call->n - call->n_done, call->n_bytes_left);

    struct async_lane *lane   = lane_of(a, call);
    const char        *tenant = call->ops->tenant != NULL ? call->ops->tenant : a->h->tenant;
    il__fair_add(is_keepalive(ops, call->piece.n) ? &lane->keepalives : &lane->others, &call->due,
                 il__fair_share(tenant), call->piece.n);
    a->n_queued++;
    a->n_busy++;
    if (lane->idle) {
        lane->idle = false; /* one signal is enough */
        CHECK(pthread_cond_signal(&lane->filled) == 0);
    }
}

struct batch {
    struct call_list calls;
    struct call_list refused; /* results may be too large now, or it is closing */
    size_t           n_ops;
    size_t           n_bytes; /* maximum size of their results */
};

/* As many calls as fit into a batch of n_max ops; the rest is left for the next batch. */
static void
take_from(struct il__async *a, struct il__fair *queue, size_t n_max, struct batch *b)
{
    while (queue->heap.first != NULL) {
        struct il__call        *call = container_of(queue->heap.first, struct il__call, due);
        const struct il__piece *p    = &call->piece;
        if (b->n_ops > 0 && (b->n_ops + p->n > n_max || b->n_bytes + p->n_bytes > BATCH_BYTES_MAX))
            return;
        il__fair_take(queue);
        a->n_queued--;
        /* When closing, waiting calls are still applied: they leave their queues. */
        bool over = a->closing && (call->flags & CALL_WAITS) == 0;
        if (over || (p->n_bytes > 0 && !il__result_budget_take(call->budget, p->n_bytes))) {
            il__calls_add(&b->refused, call);
            continue;
        }
        call->n_held += p->n_bytes;
        b->n_ops += p->n;
        b->n_bytes += p->n_bytes;
        il__calls_add(&b->calls, call);
    }
}

static void
take_batch(struct async_lane *lane, struct batch *ret)
{
    *ret = (struct batch){ 0 };
    take_from(lane->a, &lane->keepalives, KEEPALIVES_MAX, ret);
    take_from(lane->a, &lane->others, IL__COMMIT_OPS, ret);
    take_from(lane->a, &lane->keepalives, IL__COMMIT_OPS, ret);
}

/* ---- a batch --------------------------------------------------------------------------------- */

/* The outcome of a batch for its calls. */
struct concluded {
    struct call_list done, again, give_back;
    bool             poke; /* the watcher must be poked */
};

/*
 * n_live is decremented before done() is called: a thread that waits for 0 then joins the threads
 * that call done().
 */
static void
count_done(struct il__async *a, struct il__call *call)
{
    call->state = CALL_DONE;
    if (--a->n_live == 0)
        CHECK(pthread_cond_broadcast(&a->drained) == 0);
}

void
il__async_end(struct il__async *a, struct il__call *call)
{
    CHECK(il__mutex_held(&a->mutex));
    count_done(a, call);
    il__calls_add(&a->ended, call);
}

static void
conclude_one(struct il__async *a, struct il__call *call, int64_t now_ns, struct concluded *s)
{
    if (call->status == IL_OK && call->n_done < call->n) {
        il__async_enqueue(a, call); /* its next piece */
        return;
    }
    enum call_next next = il__call_next(a, call, now_ns);
    if (next != NEXT_DONE)
        call->n_done = 0;
    if (next == NEXT_PARK && !il__call_park(a, call, now_ns, &s->poke))
        next = NEXT_AGAIN;
    if (next == NEXT_AGAIN)
        il__calls_add(&s->again, call);
    if (next != NEXT_DONE)
        return;
    il__call_pass_on(a, call, &s->again);
    if (il__call_gives_back(call)) {
        il__calls_add(&s->give_back, call);
    } else {
        count_done(a, call);
        il__calls_add(&s->done, call);
    }
}

void
il__async_tell(struct call_list *done)
{
    struct il__call *call;

    while ((call = il__calls_take(done)) != NULL)
        call->done(call); /* may be freed from here on */
}

/* Give back grants that no caller waits for, outside the mutex. */
static void
give_back(struct il__async *a, struct concluded *s)
{
    for (struct il__call *call = s->give_back.head; call != NULL; call = call->next)
        il__call_give_back(a, call);
    il__mutex_lock(&a->mutex);
    for (struct il__call *call = s->give_back.head; call != NULL; call = call->next)
        count_done(a, call);
    il__mutex_unlock(&a->mutex);
    il__async_tell(&s->give_back);
}

/* The outcome of each call's piece is known: continue with it, or complete it. */
static void
conclude_calls(struct il__async *a, struct call_list *calls)
{
    struct concluded s      = { 0 };
    int64_t          now_ns = il__clock_boot_ns();
    struct il__call *call;

    il__mutex_lock(&a->mutex);
    while ((call = il__calls_take(calls)) != NULL) {
        if (il__call_has_lane(a, call))
            a->n_busy--;
        conclude_one(a, call, now_ns, &s);
    }
    while ((call = il__calls_take(&s.again)) != NULL) {
        a->n_repeats++;
        il__async_enqueue(a, call);
        s.poke = s.poke || a->direct;
    }
    il__mutex_unlock(&a->mutex);
    if (s.poke)
        il__board_poke(a->h->store->board);
    il__async_tell(&s.done);
    if (s.give_back.head != NULL)
        give_back(a, &s);
}

/* n ops of the call's piece were executed; or the batch failed, and their outcome is unknown. */
static void
piece_done(struct il__async *a, struct il__call *call, size_t n, il_status st, const il_error *err)
{
    il_op *ops     = call->ops + call->n_done;
    size_t n_taken = call->piece.n_bytes;
    size_t n_bytes = 0;

    il__ops_done(a->h, ops, n, st);
    call->status = st;
    if (st != IL_OK) {
        call->error = *err;
    } else {
        n_bytes            = il__piece_bytes(ops, n);
        call->n_bytes_left = il__piece_left(call->n_bytes_left, n_bytes);
        call->n_done += n;
        if (call->n_bytes_left == 0) {
            il__piece_refuse(call->ops + call->n_done, call->n - call->n_done);
            call->n_done = call->n;
        }
    }
    il__result_budget_change(call->budget, n_taken, n_bytes);
    call->n_held += n_bytes - n_taken;
}

void
il__async_conclude(struct il__async *a, struct call_list *calls, size_t n_done, il_status st,
                   const il_error *err)
{
    for (struct il__call *call = calls->head; call != NULL; call = call->next) {
        size_t n = st == IL_OK ? MIN(call->piece.n, n_done) : call->piece.n;
        n_done -= MIN(n, n_done);
        piece_done(a, call, n, st, err);
    }
    conclude_calls(a, calls);
}

il_status
il__async_no_room(il_error *reterr)
{
    return il__error_set(reterr, IL_LIMIT, "too many bytes of unread results");
}

/* No room for their results, or closing. Pieces done before stay done. */
static void
refuse(struct il__async *a, struct call_list *calls, bool closing)
{
    for (struct il__call *call = calls->head; call != NULL; call = call->next) {
        il__piece_refuse(call->ops + call->n_done, call->n - call->n_done);
        if (closing && (call->flags & CALL_WAITS) == 0)
            call->status = il__error_set(&call->error, IL_CANCELLED, "the call was cancelled");
        else if (call->n_done == 0)
            call->status = il__async_no_room(&call->error);
        call->n_done = call->n;
    }
    conclude_calls(a, calls);
}

/* Prepare the ops of these pieces; true if one of them changes the store. */
static bool
prepare(struct il__async *a, const struct call_list *calls, il_op **ptrs)
{
    int64_t now_ns = il__clock_boot_ns();
    bool    writes = false;

    for (struct il__call *call = calls->head; call != NULL; call = call->next) {
        il__call_ready(a, call, now_ns);
        writes = il__ops_prepare(a->h, call->ops + call->n_done, ptrs, call->piece.n) || writes;
        ptrs += call->piece.n;
    }
    return writes;
}

static void
apply_batch(struct async_lane *lane, struct batch *b)
{
    struct il__async *a      = lane->a;
    il_error          err    = { .status = IL_OK };
    size_t            n_done = 0;
    bool              writes = prepare(a, &b->calls, lane->ptrs);
    il_status         st;

    if (a->direct)
        st = il__store_apply(a->h->store, lane->ptrs, b->n_ops, &n_done, &err);
    else if (writes)
        st = il__ops_apply_on(a->h, lane->i, lane->ptrs, b->n_ops, &n_done, &err);
    else
        st = il__store_read(a->h->store, lane->ptrs, b->n_ops, &n_done, &err);
    il__async_conclude(a, &b->calls, n_done, st, &err);
}

/* The mutex of a direct store is not fair: let other waiting threads in. */
static void
give_way(void)
{
    static const struct timespec moment = { .tv_nsec = 200000 };

    (void)nanosleep(&moment, NULL);
}

void *
il__async_lane(void *arg)
{
    struct async_lane *lane = arg;
    struct il__async  *a    = lane->a;
    struct batch       b;

    il__mutex_lock(&a->mutex);
    for (;;) {
        while (lane->i == ASYNC_READS && a->n_outbox > 0)
            il__async_send(a); /* more may come meanwhile */
        take_batch(lane, &b);
        if (b.n_ops == 0 && b.refused.head == NULL) {
            if (a->stopping)
                break;
            lane->idle = true;
            (void)il__cond_wait(&lane->filled, &a->mutex, -1);
            continue;
        }
        bool closing = a->closing;
        il__mutex_unlock(&a->mutex);
        if (b.refused.head != NULL)
            refuse(a, &b.refused, closing);
        if (b.n_ops > 0)
            apply_batch(lane, &b);
        if (a->direct)
            give_way();
        il__mutex_lock(&a->mutex);
    }
    il__mutex_unlock(&a->mutex);
    return NULL;
}
