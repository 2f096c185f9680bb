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
 *     does not touch it after writing DONE.
 */
#include "runtime/exec.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

enum request_state { QUEUED, LEADS, DONE };

struct il__exec_request {
    il_op *const            *ops;
    size_t                   n;
    struct il__exec_request *next;
    il_error                *reterr;
    il_status                status;
    unsigned                 batch;
    _Atomic uint32_t         own_word; /* the head of the queue sleeps here, the others on done[] */
    _Atomic int              state;    /* enum request_state */
};

void
il__exec_init(struct il__exec *x, struct il__store *store)
{
    *x = (struct il__exec){ .store = store };
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
        /* Its owner may be gone once `state` says so only after DONE, so `next` stays valid here. */
        atomic_store(&next->state, LEADS);
        futex_wake(&next->own_word, 1);
        /* Left over from a batch that was full, it sleeps with the others. */
        if (next->batch != x->batch)
            futex_wake(&x->done[next->batch % 2], INT32_MAX);
    }
    il__mutex_unlock(&x->mutex);
}

static bool
enqueue(struct il__exec *x, struct il__exec_request *r, bool *ret_head)
{
    il__mutex_lock(&x->mutex);
    bool leads = !x->leading;
    if (leads) {
        CHECK(x->head == NULL);
        x->leading = true;
    } else {
        *ret_head = x->head == NULL;
        r->batch  = x->batch;
        if (x->tail != NULL && x->head != NULL)
            x->tail->next = r;
        else
            x->head = r;
        x->tail = r;
    }
    il__mutex_unlock(&x->mutex);
    return leads;
}

/* Take the queue (its head is `self`) as far as a batch allows; the rest stays for the next. */
static struct il__exec_request *
take_batch(struct il__exec *x, struct il__exec_request *self, size_t *ret_n_ops)
{
    size_t n_ops = 0;

    il__mutex_lock(&x->mutex);
    CHECK(x->head == self);
    struct il__exec_request *last = NULL;
    for (struct il__exec_request *r = self; r != NULL && n_ops + r->n <= IL_BATCH_OPS_MAX; r = r->next) {
        n_ops += r->n;
        last = r;
    }
    CHECK(last != NULL);
    x->head    = last->next;
    last->next = NULL;
    x->batch++;
    il__mutex_unlock(&x->mutex);
    *ret_n_ops = n_ops;
    return self;
}

static void
apply_batch(struct il__exec *x, struct il__exec_request *first, size_t n_ops)
{
    il_error                 err = { .status = IL_OK };
    il_op                   *few[64];
    AUTO_FREE il_op        **many  = n_ops > ARRAY_LEN(few) ? il__alloc(n_ops * sizeof *many) : NULL;
    il_op                  **ops   = n_ops > ARRAY_LEN(few) ? many : few;
    il_status                st    = IL_OK;
    bool                     sleep_on[2] = { false, false };
    struct il__exec_request *next;

    if (ops == NULL) {
        st = il__error_set(&err, IL_NOMEM, "no memory for a batch of %zu", n_ops);
    } else {
        size_t n = 0;
        for (struct il__exec_request *r = first; r != NULL; r = r->next) {
            memcpy(&ops[n], r->ops, r->n * sizeof *ops);
            n += r->n;
        }
        st = il__store_apply(x->store, ops, n, &err);
    }
    for (struct il__exec_request *r = first; r != NULL; r = next) {
        next      = r->next;
        sleep_on[r->batch % 2] = true; /* both, when a full batch left some over */
        r->status = st;
        if (st != IL_OK && r->reterr != NULL)
            *r->reterr = err;
        if (r != first) /* `first` is this thread's own */
            atomic_store(&r->state, DONE);
    }
    pass_lead(x); /* first: the next batch starts while this one's callers wake up */
    for (unsigned i = 0; i < 2; i++) {
        if (sleep_on[i])
            futex_wake(&x->done[i], INT32_MAX);
    }
}

static il_status
lead(struct il__exec *x, struct il__exec_request *self)
{
    size_t n_ops;

    take_batch(x, self, &n_ops);
    apply_batch(x, self, n_ops);
    return self->status;
}

il_status
il__exec_apply(struct il__exec *x, il_op *const *ops, size_t n, il_error *reterr)
{
    struct il__exec_request self = { .ops = ops, .n = n, .reterr = reterr };
    bool                    head = false;

    CHECK(n > 0 && n <= IL_BATCH_OPS_MAX);
    if (enqueue(x, &self, &head)) {
        il_status st = il__store_apply(x->store, ops, n, reterr);
        pass_lead(x);
        return st;
    }
    _Atomic uint32_t *word = head ? &self.own_word : &x->done[self.batch % 2];
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
