/*
 * async.c: opening and closing an il__async, and its lanes. The contract is in async.h, the parts are listed in async_internal.h.
 *
 * A lane is a queue with a thread, one for each executor of the handle and one for calls that only read. The thread takes what has gathered while it
 * applied the batch before: that is the next batch. It goes through the handle's executor, where the keeper's renewals and other users of
 * the handle join it. A store that is called directly has no lanes: whoever hands a call over applies it himself.
 */
#include "runtime/async_internal.h"

#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/op.h"

/* ---- lanes --------------------------------------------------------------------------------------------------------- */

static bool
only_reads(const struct il__call *call)
{
    for (size_t i = 0; i < call->n; i++) {
        unsigned type = (unsigned)call->ops[i].type;
        if (type < IL_OP_COUNT && il__op_writes((il_op_type)type))
            return false;
    }
    return true;
}

static unsigned
lane_of(const struct il__async *a, const struct il__call *call)
{
    bool may_stand = false;

    if (only_reads(call))
        return ASYNC_READS;
    for (size_t i = 0; i < call->n && !may_stand; i++)
        may_stand = il__op_may_stand(call->ops[i].type);
    return il__lane_of(a->h, call->ops, may_stand, a->n_busy);
}

void
il__async_enqueue(struct il__async *a, struct il__call *call)
{
    CHECK(il__mutex_held(&a->mutex));
    call->state = CALL_QUEUED;
    if (a->direct) {
        il__calls_add(&a->handed, call);
        return;
    }
    struct async_lane *lane = &a->lanes[lane_of(a, call)];
    il__calls_add(&lane->calls, call);
    a->n_queued++;
    a->n_busy++;
    if (lane->idle) {
        lane->idle = false; /* one signal is enough */
        CHECK(pthread_cond_signal(&lane->filled) == 0);
    }
}

/* As many calls as one batch may have; the others are left for the next. */
static size_t
take_batch(struct async_lane *lane, struct call_list *ret)
{
    size_t n_ops = 0;

    while (lane->calls.head != NULL && n_ops + lane->calls.head->n <= IL_BATCH_OPS_MAX) {
        n_ops += lane->calls.head->n;
        il__calls_add(ret, il__calls_take(&lane->calls));
        lane->a->n_queued--;
    }
    return n_ops;
}

/* ---- a batch ------------------------------------------------------------------------------------------------------- */

/* What has become of the calls of a batch. */
struct settled {
    struct call_list done, again, give_back;
    bool             poke; /* the watcher has to look */
};

/*
 * n_live counts down before done() is called: whoever waits until there are none joins the threads that tell afterwards.
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
settle_one(struct il__async *a, struct il__call *call, int64_t now_ns, struct settled *s)
{
    enum call_next next = il__call_next(a, call, now_ns);

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
        call->done(call); /* from here on it may be gone */
}

/* The ones that were given something for nobody, outside the mutex. */
static void
give_back(struct il__async *a, struct settled *s)
{
    for (struct il__call *call = s->give_back.head; call != NULL; call = call->next)
        il__call_give_back(a, call);
    il__mutex_lock(&a->mutex);
    for (struct il__call *call = s->give_back.head; call != NULL; call = call->next)
        count_done(a, call);
    il__mutex_unlock(&a->mutex);
    il__async_tell(&s->give_back);
}

/* The batch was applied: tell those that are done, park those that wait, and have those applied again that must be. */
static void
settle(struct il__async *a, struct call_list *calls, il_status st, const il_error *err)
{
    struct settled   s      = { 0 };
    int64_t          now_ns = il__clock_boot_ns();
    struct il__call *call;

    for (call = calls->head; call != NULL; call = call->next) {
        il__ops_done(a->h, call->ops, call->n, st);
        call->status = st;
        if (st != IL_OK)
            call->error = *err;
    }
    il__mutex_lock(&a->mutex);
    while ((call = il__calls_take(calls)) != NULL) {
        if (!a->direct)
            a->n_busy--;
        settle_one(a, call, now_ns, &s);
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

/* Prepare all ops of these calls; true if one of them changes the store. */
static bool
prepare(struct il__async *a, const struct call_list *calls, il_op **ptrs)
{
    int64_t now_ns = il__clock_boot_ns();
    bool    writes = false;

    for (struct il__call *call = calls->head; call != NULL; call = call->next) {
        il__call_ready(a, call, now_ns);
        writes = il__ops_prepare(a->h, call->ops, ptrs, call->n) || writes;
        ptrs += call->n;
    }
    return writes;
}

static void
apply_batch(struct async_lane *lane, struct call_list *calls, size_t n_ops)
{
    struct il__async *a      = lane->a;
    il_error          err    = { .status = IL_OK };
    bool              writes = prepare(a, calls, lane->ptrs);
    il_status         st     = writes ? il__ops_apply_on(a->h, lane->i, lane->ptrs, n_ops, &err)
                                      : il__store_read(a->h->store, lane->ptrs, n_ops, &err);

    settle(a, calls, st, &err);
}

static void *
lane_main(void *arg)
{
    struct async_lane *lane = arg;
    struct il__async  *a    = lane->a;

    il__mutex_lock(&a->mutex);
    for (;;) {
        struct call_list calls = { 0 };
        while (lane->i == ASYNC_READS && a->n_outbox > 0)
            il__async_send(a); /* more may come meanwhile */
        size_t n_ops = take_batch(lane, &calls);
        if (n_ops == 0) {
            if (a->stopping)
                break;
            lane->idle = true;
            (void)il__cond_wait(&lane->filled, &a->mutex, -1);
            continue;
        }
        il__mutex_unlock(&a->mutex);
        apply_batch(lane, &calls, n_ops);
        il__mutex_lock(&a->mutex);
    }
    il__mutex_unlock(&a->mutex);
    return NULL;
}

/* ---- direct stores ------------------------------------------------------------------------------------------------- */

/* One call after the other: there is no commit to share. */
void
il__async_apply_here(struct il__async *a, struct call_list *calls)
{
    for (struct il__call *call; (call = il__calls_take(calls)) != NULL;) {
        il_op            *few[64];
        struct call_list  one  = { 0 };
        il_error          err  = { .status = IL_OK };
        AUTO_FREE il_op **many = call->n > ARRAY_LEN(few) ? il__alloc(call->n * sizeof *many) : NULL;
        il_op           **ptrs = call->n > ARRAY_LEN(few) ? many : few;
        il_status         st;

        il__calls_add(&one, call);
        if (ptrs == NULL) {
            st = il__error_set(&err, IL_NOMEM, "no memory for a batch of %zu", call->n);
        } else {
            (void)prepare(a, &one, ptrs);
            st = il__store_apply(a->h->store, ptrs, call->n, &err);
        }
        settle(a, &one, st, &err);
    }
}

void
il__async_submit(struct il__async *a, struct il__call *call)
{
    struct call_list one = { 0 };

    CHECK(call->n >= 1 && call->n <= IL_BATCH_OPS_MAX);
    il__call_init(call);
    call->state = CALL_QUEUED;
    if (a->direct && (call->flags & CALL_WAITS) == 0) {
        call->status = il_apply(a->h, call->ops, call->n, &call->error);
        call->state  = CALL_DONE;
        call->done(call);
        return;
    }
    il__mutex_lock(&a->mutex);
    CHECK(!a->closing);
    a->n_live++;
    if (!a->direct)
        il__async_enqueue(a, call);
    il__mutex_unlock(&a->mutex);
    if (!a->direct)
        return;
    il__calls_add(&one, call);
    il__async_apply_here(a, &one);
}

/* ---- opening and closing ------------------------------------------------------------------------------------------- */

/* Signals are for the caller's threads. */
static bool
start_thread(pthread_t *thread, void *(*main)(void *), void *arg)
{
    sigset_t all, before;

    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int rc = pthread_create(thread, NULL, main, arg);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return rc == 0;
}

static bool
start_lane(struct async_lane *lane)
{
    lane->ptrs    = il__alloc(IL_BATCH_OPS_MAX * sizeof *lane->ptrs);
    lane->started = lane->ptrs != NULL && start_thread(&lane->thread, lane_main, lane);
    return lane->started;
}

static bool
start_threads(struct il__async *a)
{
    a->watcher_started = start_thread(&a->watcher, il__async_watch, a);
    bool ok            = a->watcher_started;

    for (unsigned i = 0; ok && !a->direct && i < a->h->n_execs; i++)
        ok = start_lane(&a->lanes[i]);
    return ok && (a->direct || start_lane(&a->lanes[ASYNC_READS]));
}

/* All calls are done, or there never were any. */
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
        return il__error_set(reterr, IL_NOMEM, "no memory for calls that wait");
    a->h      = h;
    a->direct = (h->store->ops->caps & IL__STORE_DIRECT) != 0;
    il__mutex_init(&a->mutex, IL__MUTEX_async);
    il__cond_init(&a->drained);
    for (unsigned i = 0; i < ASYNC_LANES; i++) {
        a->lanes[i].a = a;
        a->lanes[i].i = i;
        il__cond_init(&a->lanes[i].filled);
    }
    /* Waits rely on sweeps, and on hearing what others wake. */
    il_status st = h->sweeps ? il__keeper_start(h, false, reterr) : IL_OK;
    (void)il__store_attend(h->store);
    (void)il__ring_open(h->store->board); /* without it nothing is heard */
    il__ring_reader_init(&a->reader, h->store->board);
    if (st == IL_OK && !start_threads(a))
        st = il__error_set(reterr, IL_NOMEM, "no memory for the threads of calls that wait");
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
