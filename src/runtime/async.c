/*
 * async.c: opens and closes an il__async, and handles stores that are called directly: these have
 * no lanes, and the submitting thread applies the call. The contract is in async.h;
 * async_internal.h lists the files.
 */
#include "runtime/async_internal.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "core/limits.h"

/* ---- direct stores --------------------------------------------------------------------------- */

/* One call after another: there is no commit to share. Each one waits, so it has one op. */
void
il__async_apply_here(struct il__async *a, struct call_list *calls)
{
    for (struct il__call *call; (call = il__calls_take(calls)) != NULL;) {
        struct call_list one    = { 0 };
        il_error         err    = { .status = IL_OK };
        size_t           n_done = 0;
        il_op           *ptr;
        il_status        st;

        CHECK(call->n == 1);
        call->piece = il__piece_next(call->ops, 1, call->n_bytes_left);
        il__calls_add(&one, call);
        if (call->piece.n_bytes > 0 && !il__result_budget_take(call->budget, call->piece.n_bytes)) {
            call->piece.n_bytes = 0;
            st                  = il__async_no_room(&err);
        } else {
            call->n_held += call->piece.n_bytes;
            il__call_ready(a, call, il__clock_boot_ns());
            (void)il__ops_prepare(a->h, call->ops, &ptr, 1);
            st = il__store_apply(a->h->store, &ptr, 1, &n_done, &err);
        }
        il__async_conclude(a, &one, n_done, st, &err);
    }
}

/* A call that does not wait: like il_apply(), with the maximum size of its results reserved
 * meanwhile. */
static void
apply_at_once(struct il__async *a, struct il__call *call)
{
    size_t n_taken = il__piece_next(call->ops, call->n, call->n_bytes_left).n_bytes;

    if (n_taken > 0 && !il__result_budget_take(call->budget, n_taken)) {
        call->status = il__async_no_room(&call->error);
    } else {
        call->status = il_apply(a->h, call->ops, call->n, &call->error);
        call->n_held = il__piece_bytes(call->ops, call->n);
        il__result_budget_change(call->budget, n_taken, call->n_held);
    }
    call->state = CALL_DONE;
    call->done(call);
}

void
il__async_submit(struct il__async *a, struct il__call *call)
{
    struct call_list one = { 0 };

    CHECK(call->n >= 1 && call->n <= IL_BATCH_OPS_MAX);
    il__call_init(call);
    call->state   = CALL_QUEUED;
    bool has_lane = il__call_has_lane(a, call);
    if (!has_lane && (call->flags & CALL_WAITS) == 0) {
        apply_at_once(a, call);
        return;
    }
    il__mutex_lock(&a->mutex);
    CHECK(!a->closing);
    a->n_live++;
    if (has_lane)
        il__async_enqueue(a, call); /* may be freed from here on */
    il__mutex_unlock(&a->mutex);
    if (has_lane)
        return;
    il__calls_add(&one, call);
    il__async_apply_here(a, &one);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool
start_lane(struct async_lane *lane)
{
    lane->ptrs = il__alloc(IL__COMMIT_OPS * sizeof *lane->ptrs);
    lane->started =
        lane->ptrs != NULL && il__thread_start(&lane->thread, il__async_lane, lane) == 0;
    return lane->started;
}

static bool
start_threads(struct il__async *a)
{
    a->watcher_started = il__thread_start(&a->watcher, il__async_watch, a) == 0;
    bool ok            = a->watcher_started;

    for (unsigned i = 0; ok && i < a->h->n_execs; i++)
        ok = start_lane(&a->lanes[i]);
    return ok && (a->direct || start_lane(&a->lanes[ASYNC_READS]));
}

/* All calls are done, or none was ever submitted. */
static void
destroy(struct il__async *a)
{
    il__mutex_lock(&a->mutex);
    CHECK(a->n_live == 0 && a->n_parked == 0 && a->n_queued == 0);
    a->stopping = true;
    for (unsigned i = 0; i < ASYNC_LANES; i++)
        CHECK(pthread_cond_signal(&a->lanes[i].filled) == 0);
    il__mutex_unlock(&a->mutex);
    il__board_poke(a->h->store->board);
    if (a->watcher_started)
        CHECK(pthread_join(a->watcher, NULL) == 0);
    for (unsigned i = 0; i < ASYNC_LANES; i++) {
        struct async_lane *lane = &a->lanes[i];
        if (lane->started)
            CHECK(pthread_join(lane->thread, NULL) == 0);
        CHECK(pthread_cond_destroy(&lane->filled) == 0);
        il__free(lane->ptrs);
    }
    for (size_t i = 0; i < a->n_outbox; i++)
        il__free(a->outbox[i]);
    il__free(a->outbox);
    CHECK(pthread_cond_destroy(&a->drained) == 0);
    il__mutex_destroy(&a->mutex);
    il__free(a);
}

il_status
il__async_open(il *h, struct il__async **ret, il_error *reterr)
{
    struct il__async *a = il__calloc(1, sizeof *a);

    if (a == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for waiting calls");
    a->h      = h;
    a->direct = (h->store->ops->caps & IL__STORE_DIRECT) != 0;
    il__mutex_init(&a->mutex, IL__MUTEX_async);
    il__cond_init(&a->drained);
    for (unsigned i = 0; i < ASYNC_LANES; i++) {
        a->lanes[i].a = a;
        a->lanes[i].i = i;
        il__cond_init(&a->lanes[i].filled);
    }
    /* Waits rely on sweeps, and on receiving wake-ups from other processes. */
    il_status st = h->sweeps ? il__keeper_start(h, false, reterr) : IL_OK;
    (void)il__store_attend(h->store);
    (void)il__ring_open(h->store->board); /* without it no messages arrive */
    il__ring_reader_init(&a->reader, h->store->board);
    if (st == IL_OK && !start_threads(a))
        st = il__error_set(reterr, IL_NOMEM, "out of memory for the threads of waiting calls");
    if (st == IL_OK)
        *ret = a;
    else
        destroy(a);
    return st;
}

void
il__async_close(struct il__async *a)
{
    if (a == NULL)
        return;
    il__mutex_lock(&a->mutex);
    a->closing = true;
    il__mutex_unlock(&a->mutex);
    il__async_hurry(a);
    il__mutex_lock(&a->mutex);
    while (a->n_live > 0)
        (void)il__cond_wait(&a->drained, &a->mutex, -1);
    il__mutex_unlock(&a->mutex);
    destroy(a);
}

void
il__async_stats(struct il__async *a, struct il__async_stats *ret)
{
    il__mutex_lock(&a->mutex);
    *ret = (struct il__async_stats){
        .n_parked  = a->n_parked,
        .n_queued  = a->n_queued,
        .n_wakes   = a->n_wakes,
        .n_repeats = a->n_repeats,
    };
    il__mutex_unlock(&a->mutex);
}
