/*
 * exec.c: group commit by leaders and followers; the idea is in exec.h.
 *
 * Why nothing is lost and nobody sleeps for ever:
 *   - `leading` is true from the moment somebody leads until he finds the queue empty, both under the
 *     mutex; so a request that is queued has a leader at work, who will see it.
 *   - a request's `state` is written by the leader before the word its owner sleeps on is bumped, and the
 *     owner reads the word before the state: either it sees the new state, or the word has changed and the
 *     futex does not sleep.
 *   - a request lives on its owner's stack; the owner returns only after it has seen DONE, and the leader
 *     does not touch it after writing DONE: the words that are slept on belong to the executor.
 */
#include "runtime/exec.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

/* A leader goes on with what has queued meanwhile, this many batches in all: waking the next leader takes
 * longer than starting the next batch. Its own caller waits for that long, so it is not for ever. */
#define LEAD_BATCHES_MAX 4

enum request_state {
    QUEUED,
    LEADS,
    DONE
};

struct il__exec_request {
    il_op *const            *ops;
    size_t                   n;
    struct il__exec_request *next;
    il_error                *reterr;
    il_status                status;
    unsigned                 batch;
    bool        head;  /* was first in its queue: sleeps on lead[], the others on done[] */
    _Atomic int state; /* enum request_state */
};

void
il__exec_init(struct il__exec *x, struct il__store *store, il__exec_applied_fn *applied, void *cookie)
{
    *x = (struct il__exec){ .store = store, .applied = applied, .cookie = cookie };
    il__mutex_init(&x->mutex, IL__MUTEX_exec);
}

void
il__exec_release(struct il__exec *x)
{
    CHECK(!x->leading && x->head == NULL);
    il__mutex_destroy(&x->mutex);
}

static void
futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    /* Whatever ends the sleep, the caller looks again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void
futex_wake(_Atomic uint32_t *word, int n)
{
    atomic_fetch_add(word, 1);
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Give the lead on: to the head of the queue, or to nobody. */
static void
pass_lead(struct il__exec *x)
{
    struct il__exec_request *next;

    il__mutex_lock(&x->mutex);
    next = x->head;
    if (next == NULL) {
        x->leading = false;
    } else {
        /* Its owner cannot get on before we give up the mutex, so `next` stays valid here. */
        atomic_store(&next->state, LEADS);
        futex_wake(next->head ? &x->lead[next->batch % 2] : &x->done[next->batch % 2], INT32_MAX);
    }
    il__mutex_unlock(&x->mutex);
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
        r->head  = x->head == NULL;
        r->batch = x->batch;
        if (x->tail != NULL && x->head != NULL)
            x->tail->next = r;
        else
            x->head = r;
        x->tail = r;
    }
    il__mutex_unlock(&x->mutex);
    return leads;
}

/* Take the queue as far as a batch allows; the rest stays for the next. NULL when it is empty. */
static struct il__exec_request *
take_batch(struct il__exec *x, size_t *ret_n_ops)
{
    size_t n_ops = 0;

    il__mutex_lock(&x->mutex);
    struct il__exec_request *first = x->head;
    struct il__exec_request *last  = NULL;
    for (struct il__exec_request *r = first; r != NULL && n_ops + r->n <= IL_BATCH_OPS_MAX;
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
apply(struct il__exec *x, il_op *const *ops, size_t n, il_error *reterr)
{
    int64_t   began_ns = il__clock_boot_ns();
    il_status st       = il__store_apply(x->store, ops, n, reterr);

    x->applied(x->cookie, n, il__clock_boot_ns() - began_ns);
    return st;
}

static il_status
apply_all(struct il__exec *x, const struct il__exec_request *first, size_t n_ops, il_error *reterr)
{
    il_op            *few[64];
    AUTO_FREE il_op **many = n_ops > ARRAY_LEN(few) ? il__alloc(n_ops * sizeof *many) : NULL;
    il_op           **ops  = n_ops > ARRAY_LEN(few) ? many : few;
    size_t            n    = 0;

    if (ops == NULL)
        return il__error_set(reterr, IL_NOMEM, "no memory for a batch of %zu", n_ops);
    for (const struct il__exec_request *r = first; r != NULL; r = r->next) {
        memcpy(&ops[n], r->ops, r->n * sizeof *ops);
        n += r->n;
    }
    return apply(x, ops, n, reterr);
}

/* Apply a batch and tell its callers; `self` is this thread's own request, or not in it. */
static void
do_batch(struct il__exec *x, struct il__exec_request *first, size_t n_ops,
         const struct il__exec_request *self)
{
    il_error                 err        = { .status = IL_OK };
    il_status                st         = apply_all(x, first, n_ops, &err);
    bool                     on_done[2] = { false, false }; /* words that somebody sleeps on */
    bool                     on_lead[2] = { false, false };
    struct il__exec_request *next;

    for (struct il__exec_request *r = first; r != NULL; r = next) {
        next      = r->next;
        r->status = st;
        if (st != IL_OK && r->reterr != NULL)
            *r->reterr = err;
        if (r == self)
            continue;
        *(r->head ? &on_lead[r->batch % 2] : &on_done[r->batch % 2]) = true;
        atomic_store(&r->state, DONE); /* from here on it may be gone */
    }
    for (unsigned i = 0; i < 2; i++) {
        if (on_done[i])
            futex_wake(&x->done[i], INT32_MAX);
        if (on_lead[i])
            futex_wake(&x->lead[i], INT32_MAX);
    }
}

static il_status
lead(struct il__exec *x, struct il__exec_request *self)
{
    size_t n_ops;

    for (unsigned i = 0; i < LEAD_BATCHES_MAX; i++) {
        struct il__exec_request *first = take_batch(x, &n_ops);
        if (first == NULL)
            break;
        do_batch(x, first, n_ops, self);
    }
    pass_lead(x);
    return self->status;
}

il_status
il__exec_apply(struct il__exec *x, il_op *const *ops, size_t n, il_error *reterr)
{
    struct il__exec_request self = { .ops = ops, .n = n, .reterr = reterr };

    CHECK(n > 0 && n <= IL_BATCH_OPS_MAX);
    if (enqueue(x, &self)) {
        il_status st = apply(x, ops, n, reterr);
        pass_lead(x);
        return st;
    }
    _Atomic uint32_t *word = self.head ? &x->lead[self.batch % 2] : &x->done[self.batch % 2];
    for (;;) {
        uint32_t seen  = atomic_load(word);
        int      state = atomic_load(&self.state);
        if (state == DONE)
            return self.status;
        if (state == LEADS)
            return lead(x, &self);
        futex_wait(word, seen);
    }
}
