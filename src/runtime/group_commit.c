/*
 * group_commit.c: leader/follower group commit; group_commit.h describes the idea.
 *
 * Why no request is lost and no caller sleeps forever:
 *   - `leading` is true from the moment a caller leads until it finds the queue empty, both under
 *     the mutex; so a queued request always has an active leader that will see it.
 *   - a request's `state` is written by the leader before the word its owner sleeps on is bumped,
 *     and the owner reads the word before the state: either it sees the new state, or the word has
 *     changed and the futex does not sleep.
 *   - a request lives on its owner's stack; the owner returns only after it has seen DONE, and the
 *     leader does not touch it after writing DONE: the words that callers sleep on belong to the
 *     executor.
 */
#include "runtime/group_commit.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "core/op.h"

/* A leader also applies requests queued meanwhile, up to this many batches in total: waking the
 * next leader takes longer than starting the next batch. Its own caller waits that long, hence the
 * limit. */
#define LEAD_BATCHES_MAX 4

enum request_state {
    QUEUED,
    LEADS,
    DONE
};

struct il__exec_request {
    il_op *const            *ops;
    size_t                   n, n_done;
    bool                     is_keepalive; /* only renewals and heartbeats */
    struct il__exec_request *next;
    il_error                *reterr;
    il_status                status;
    unsigned                 batch;
    bool                     head;  /* was first in the queue: sleeps on lead[], others on done[] */
    _Atomic int              state; /* enum request_state */
};

void
il__group_commit_init(struct il__exec *x, struct il__store *store, il__exec_applied_fn *applied,
                      void *cookie)
{
    *x = (struct il__exec){ .store = store, .applied = applied, .cookie = cookie };
    il__mutex_init(&x->mutex, IL__MUTEX_exec);
}

void
il__group_commit_release(struct il__exec *x)
{
    CHECK(!x->leading && x->head == NULL);
    il__mutex_destroy(&x->mutex);
}

static void
futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    /* Whatever ends the sleep, the caller checks again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void
futex_wake_all(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Hand over the lead to the head of the queue, if any. */
static void
pass_lead(struct il__exec *x)
{
    struct il__exec_request *next;

    il__mutex_lock(&x->mutex);
    next = x->head;
    if (next == NULL) {
        x->leading = false;
    } else {
        /* Its owner cannot continue before we release the mutex, so `next` stays valid here. */
        atomic_store(&next->state, LEADS);
        futex_wake_all(next->head ? &x->lead[next->batch % 2] : &x->done[next->batch % 2]);
    }
    il__mutex_unlock(&x->mutex);
}

/* Where a new request queues: a keep-alive behind the other keep-alives, anything else last. */
static struct il__exec_request **
place_of(struct il__exec *x, const struct il__exec_request *r)
{
    struct il__exec_request **at = &x->head;

    if (!r->is_keepalive)
        return x->head != NULL ? &x->tail->next : at;
    while (*at != NULL && (*at)->is_keepalive)
        at = &(*at)->next;
    return at;
}

static bool
enqueue(struct il__exec *x, struct il__exec_request *r)
{
    il__mutex_lock(&x->mutex);
    bool leads = !x->leading;
    if (leads) {
        CHECK(x->head == NULL);
        x->leading = true;
    } else {
        struct il__exec_request **at = place_of(x, r);
        r->head                      = x->head == NULL;
        r->batch                     = x->batch;
        r->next                      = *at;
        *at                          = r;
        if (r->next == NULL)
            x->tail = r;
    }
    il__mutex_unlock(&x->mutex);
    return leads;
}

/* Put requests that the store had no time for back to the front, behind the keep-alives. */
static void
put_back(struct il__exec *x, struct il__exec_request *first, struct il__exec_request *last)
{
    static const struct il__exec_request keepalive = { .is_keepalive = true };

    il__mutex_lock(&x->mutex);
    struct il__exec_request **at = place_of(x, &keepalive);
    last->next                   = *at;
    *at                          = first;
    if (last->next == NULL)
        x->tail = last;
    il__mutex_unlock(&x->mutex);
}

/* Take as much of the queue as fits into a batch; the rest stays for the next. NULL if it is
 * empty. */
static struct il__exec_request *
take_batch(struct il__exec *x, size_t *ret_n_ops)
{
    size_t n_ops = 0;

    il__mutex_lock(&x->mutex);
    struct il__exec_request *first = x->head;
    struct il__exec_request *last  = NULL;
    for (struct il__exec_request *r = first; r != NULL && n_ops + r->n <= IL__COMMIT_OPS;
         r                          = r->next) {
        n_ops += r->n;
        last = r;
    }
    if (last != NULL) {
        x->head    = last->next;
        last->next = NULL;
        x->batch++;
    }
    il__mutex_unlock(&x->mutex);
    *ret_n_ops = n_ops;
    return first;
}

static il_status
apply(struct il__exec *x, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    int64_t   began_ns = il__clock_boot_ns();
    il_status st       = il__store_apply(x->store, ops, n, ret_done, reterr);

    x->applied(x->cookie, st == IL_OK ? *ret_done : n, il__clock_boot_ns() - began_ns);
    return st;
}

static il_status
apply_all(struct il__exec *x, const struct il__exec_request *first, size_t n_ops, size_t *ret_done,
          il_error *reterr)
{
    il_op            *few[64];
    AUTO_FREE il_op **many = n_ops > ARRAY_LEN(few) ? il__alloc(n_ops * sizeof *many) : NULL;
    il_op           **ops  = n_ops > ARRAY_LEN(few) ? many : few;
    size_t            n    = 0;

    if (ops == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch of %zu", n_ops);
    for (const struct il__exec_request *r = first; r != NULL; r = r->next) {
        memcpy(&ops[n], r->ops, r->n * sizeof *ops);
        n += r->n;
    }
    return apply(x, ops, n, ret_done, reterr);
}

/*
 * What n_done ops of a batch mean to its requests. Returns the first request of which nothing was
 * done: it and those behind it queue again. NULL: none.
 */
static struct il__exec_request *
share_out(struct il__exec_request *first, size_t n_done)
{
    for (struct il__exec_request *r = first; r != NULL; r = r->next) {
        if (n_done == 0)
            return r;
        r->n_done = MIN(r->n, n_done);
        n_done -= r->n_done;
    }
    return NULL;
}

/* Apply a batch and notify the callers whose ops were done; `self` is this thread's own request. */
static void
do_batch(struct il__exec *x, struct il__exec_request *first, size_t n_ops,
         const struct il__exec_request *self)
{
    il_error                 err        = { .status = IL_OK };
    size_t                   n_done     = 0;
    il_status                st         = apply_all(x, first, n_ops, &n_done, &err);
    struct il__exec_request *left       = share_out(first, st == IL_OK ? n_done : n_ops);
    bool                     on_done[2] = { false, false }; /* words with sleepers */
    bool                     on_lead[2] = { false, false };
    struct il__exec_request *next;

    if (left != NULL) {
        struct il__exec_request *last = left;
        while (last->next != NULL)
            last = last->next;
        put_back(x, left, last);
    }
    for (struct il__exec_request *r = first; r != left; r = next) {
        next      = r->next;
        r->status = st;
        if (st != IL_OK && r->reterr != NULL)
            *r->reterr = err;
        if (r != self)
            *(r->head ? &on_lead[r->batch % 2] : &on_done[r->batch % 2]) = true;
        atomic_store(&r->state, DONE); /* may be freed from here on */
    }
    for (unsigned i = 0; i < 2; i++) {
        if (on_done[i])
            futex_wake_all(&x->done[i]);
        if (on_lead[i])
            futex_wake_all(&x->lead[i]);
    }
}

static void
lead(struct il__exec *x, const struct il__exec_request *self)
{
    size_t n_ops;

    for (unsigned i = 0; i < LEAD_BATCHES_MAX; i++) {
        struct il__exec_request *first = take_batch(x, &n_ops);
        if (first == NULL)
            break;
        do_batch(x, first, n_ops, self);
    }
    pass_lead(x);
}

static bool
are_keepalives(il_op *const *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!il__op_is_keepalive(ops[i]->type))
            return false;
    }
    return true;
}

il_status
il__group_commit_apply(struct il__exec *x, il_op *const *ops, size_t n, size_t *ret_done,
                       il_error *reterr)
{
    struct il__exec_request self = {
        .ops = ops, .n = n, .is_keepalive = are_keepalives(ops, n), .reterr = reterr
    };

    CHECK(n > 0 && n <= IL__COMMIT_OPS);
    if (enqueue(x, &self)) {
        il_status st = apply(x, ops, n, ret_done, reterr);
        pass_lead(x);
        return st;
    }
    _Atomic uint32_t *word = self.head ? &x->lead[self.batch % 2] : &x->done[self.batch % 2];
    for (;;) {
        uint32_t seen  = atomic_load(word);
        int      state = atomic_load(&self.state);
        if (state == DONE) {
            *ret_done = self.n_done;
            return self.status;
        }
        if (state == LEADS) {
            /* Its own request is in the queue, and may be put back into it: then it keeps
             * waiting. */
            atomic_store(&self.state, QUEUED);
            lead(x, &self);
            continue;
        }
        futex_wait(word, seen);
    }
}
