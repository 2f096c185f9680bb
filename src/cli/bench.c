/*
 * bench.c: the measurements of `interlock bench`. Leases are short-lived and not renewed, so even a
 * killed benchmark leaves nothing behind for long.
 */
#include "cli/bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"

#define LEASE_TTL_MS 10000
#define HANDOVER_WAIT_MS 2000
#define KEY_BYTES 128

/* One caller of il__cli_bench_pairs(). */
struct caller {
    struct cli_bench    *bench;
    size_t               i;
    int64_t              end_ns;
    struct cli_histogram latency;
    il_status            st;
    il_error             err;
    pthread_t            thread;
};

/* Apply one op that must succeed. */
static il_status
apply_one(il *store, il_op *op, il_error *reterr)
{
    il_status st = il_apply(store, op, 1, reterr);

    if (st == IL_OK && op->status != IL_OK) {
        const char *detail = op->out.detail != NULL ? op->out.detail : il_status_text(op->status);
        st = il__error_set(reterr, op->status, "bench: %s of %s: %s", il_op_name(op->type), op->key,
                           detail);
    }
    return st;
}

static il_status
one_pair(struct caller *c, const char *key, const char *holder)
{
    il_op op = {
        .type = IL_OP_ACQUIRE, .key = key, .holder = holder, .in.lock.ttl_ms = LEASE_TTL_MS
    };
    il_status st = apply_one(c->bench->store, &op, &c->err);

    if (st != IL_OK) {
        il_op_release(&op);
        return st;
    }
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    op = (il_op){ .type = IL_OP_RELEASE, .key = key, .holder = holder, .fence = fence };
    st = apply_one(c->bench->store, &op, &c->err);
    il_op_release(&op);
    return st;
}

static void *
call_pairs(void *cookie)
{
    struct caller *c = cookie;
    char           key[KEY_BYTES];
    int64_t        before_ns = il__clock_boot_ns();

    for (uint64_t n = 0; before_ns < c->end_ns && !atomic_load(&c->bench->stop); n++) {
        (void)snprintf(key, sizeof key, CLI_BENCH_PREFIX "%s:%u:%zu:%" PRIu64, c->bench->run_id,
                       c->bench->n_measured, c->i, n);
        c->st = one_pair(c, key, key);
        if (c->st != IL_OK) {
            atomic_store(&c->bench->stop, true);
            return NULL;
        }
        int64_t after_ns = il__clock_boot_ns();
        il__cli_histogram_add(&c->latency, (uint64_t)(after_ns - before_ns));
        before_ns = after_ns;
    }
    return NULL;
}

il_status
il__cli_bench_pairs(struct cli_bench *bench, size_t n_threads, struct cli_bench_result *ret,
                    il_error *reterr)
{
    AUTO_FREE struct caller *callers  = il__calloc(n_threads, sizeof *callers);
    int64_t                  start_ns = il__clock_boot_ns();
    il_status                st       = IL_OK;
    size_t                   n        = 0;

    if (callers == NULL)
        return il__error_set(reterr, IL_NOMEM, "bench: out of memory");
    bench->n_measured++;
    for (; n < n_threads; n++) {
        callers[n].bench  = bench;
        callers[n].i      = n;
        callers[n].end_ns = start_ns + bench->n_ns;
        if (pthread_create(&callers[n].thread, NULL, call_pairs, &callers[n]) != 0) {
            atomic_store(&bench->stop, true);
            st = il__error_set(reterr, IL_STORE, "bench: cannot start thread %zu of %zu", n + 1,
                               n_threads);
            break;
        }
    }
    *ret = (struct cli_bench_result){ 0 };
    for (size_t i = 0; i < n; i++) {
        CHECK(pthread_join(callers[i].thread, NULL) == 0);
        il__cli_histogram_merge(&ret->latency, &callers[i].latency);
        if (callers[i].st != IL_OK && st == IL_OK) {
            st      = callers[i].st;
            *reterr = callers[i].err;
        }
    }
    ret->n_pairs = ret->latency.n;
    ret->took_ns = il__clock_boot_ns() - start_ns;
    return st;
}

/*
 * Measures the hand-over: the main thread holds the key and waits until the store shows a waiter;
 * then it notes the time and releases. The waiter takes the key, notes the time, releases, and
 * queues again.
 */
struct waiter {
    struct cli_bench    *bench;
    char                 key[KEY_BYTES];
    atomic_int_fast64_t  released_ns;
    struct cli_histogram latency;
    il_status            st;
    il_error             err;
    atomic_bool          done;
};

static void *
wait_for_key(void *cookie)
{
    struct waiter  *w    = cookie;
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease;

    opts.ttl_ms  = LEASE_TTL_MS;
    opts.wait_ms = HANDOVER_WAIT_MS;
    opts.flags   = IL_NO_RENEW;
    w->st        = il_acquire(w->bench->other, w->key, &opts, &lease, &w->err);
    if (w->st == IL_OK) {
        int64_t now_ns = il__clock_boot_ns();
        il__cli_histogram_add(&w->latency, (uint64_t)(now_ns - atomic_load(&w->released_ns)));
        w->st = il_lease_release(lease, &w->err);
        il_lease_free(lease);
    }
    atomic_store(&w->done, true);
    return NULL;
}

/* Wait until the store shows a waiter for the key, or the waiter has ended by itself. */
static il_status
see_waiter(struct waiter *w, il_error *reterr)
{
    while (!atomic_load(&w->done)) {
        il_op     op     = { 0 };
        il_status st     = il_list(w->bench->store, w->key, NULL, 1, IL_LIST_WAITERS, &op, reterr);
        bool      queued = st == IL_OK && op.out.n_items > 0;
        il_op_release(&op);
        if (st != IL_OK || queued)
            return st;
    }
    return IL_OK;
}

static il_status
hand_over_once(struct waiter *w, il_error *reterr)
{
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
    il_lease       *lease;
    pthread_t       thread;

    opts.ttl_ms  = LEASE_TTL_MS;
    opts.flags   = IL_NO_RENEW;
    il_status st = il_acquire(w->bench->store, w->key, &opts, &lease, reterr);
    if (st != IL_OK)
        return st;
    atomic_store(&w->done, false);
    if (pthread_create(&thread, NULL, wait_for_key, w) != 0) {
        st = il__error_set(reterr, IL_STORE, "bench: cannot start a thread");
    } else {
        st = see_waiter(w, reterr);
        atomic_store(&w->released_ns, il__clock_boot_ns());
        il_status released = il_lease_release(lease, st == IL_OK ? reterr : NULL);
        st                 = st == IL_OK ? released : st;
        CHECK(pthread_join(thread, NULL) == 0);
        if (st == IL_OK && w->st != IL_OK) {
            st      = w->st;
            *reterr = w->err;
        }
    }
    il_lease_free(lease);
    return st;
}

il_status
il__cli_bench_handover(struct cli_bench *bench, struct cli_bench_result *ret, il_error *reterr)
{
    AUTO_FREE struct waiter *w        = il__calloc(1, sizeof *w);
    int64_t                  start_ns = il__clock_boot_ns();
    il_status                st       = IL_OK;

    if (w == NULL)
        return il__error_set(reterr, IL_NOMEM, "bench: out of memory");
    w->bench = bench;
    (void)snprintf(w->key, sizeof w->key, CLI_BENCH_PREFIX "%s:handover", bench->run_id);
    while (st == IL_OK && il__clock_boot_ns() - start_ns < bench->n_ns &&
           !atomic_load(&bench->stop))
        st = hand_over_once(w, reterr);
    *ret = (struct cli_bench_result){ .n_pairs = w->latency.n,
                                      .took_ns = il__clock_boot_ns() - start_ns,
                                      .latency = w->latency };
    return st;
}

il_status
il__cli_bench_clean(struct cli_bench *bench, il_error *reterr)
{
    char prefix[KEY_BYTES];

    (void)snprintf(prefix, sizeof prefix, CLI_BENCH_PREFIX "%s:", bench->run_id);
    for (;;) {
        il_op     op = { 0 };
        il_status st = il_list(bench->store, prefix, NULL, IL_PAGE_ITEMS_MAX, 0, &op, reterr);
        size_t    n  = st == IL_OK ? op.out.n_items : 0;
        for (size_t i = 0; st == IL_OK && i < n; i++) {
            st = il_break(bench->store, op.out.items[i].key, op.out.items[i].fence,
                          "left by a benchmark", IL_BREAK_NOW, reterr);
            if (st == IL_NOT_HELD || st == IL_STALE)
                st = IL_OK; /* it ended by itself */
        }
        il_op_release(&op);
        if (st != IL_OK || n == 0)
            return st;
    }
}
