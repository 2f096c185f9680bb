/*
 * memory.c: the memory engine: opens and frees stores, and executes batches. The other engines are
 * compared with this one as the reference model, so it puts simplicity before speed.
 *
 * Every batch runs under one mutex, at a single `now`. Waiters are woken under the same mutex, so a
 * woken waiter finds its offer in place.
 */
#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/memory/cache.h"
#include "store/memory/history.h"
#include "store/memory/once.h"
#include "store/memory/queue.h"
#include "store/memory/run.h"

static const struct il__store_ops mem_ops;

static struct mem_store *
mem_from(struct il__store *s)
{
    CHECK(s->ops == &mem_ops);
    return container_of(s, struct mem_store, base);
}

/* memory:NAME: stores of this process by name. */
static struct il__mutex  registry_mutex = { PTHREAD_MUTEX_INITIALIZER, IL__MUTEX_registry };
static struct mem_store *registry;
static uint64_t highest_fence; /* drawn by all stores of this process; under registry_mutex */

static void
carry_out_family(struct mem_store *m, il_op *op)
{
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        il__mem_run_op(m, op);
        break;
    case IL__FAMILY_ONCE:
        il__mem_once_op(m, op);
        break;
    case IL__FAMILY_QUEUE:
        il__mem_queue_op(m, op);
        break;
    case IL__FAMILY_CACHE:
        il__mem_cache_op(m, op);
        break;
    case IL__FAMILY_LOCK:
    default:
        CHECK(false); /* il__op_prepare() rejects these */
    }
}

static void
carry_out(struct mem_store *m, il_op *op, const struct mem_names *names)
{
    switch (op->type) {
    case IL_OP_ACQUIRE:
        il__mem_acquire(m, op, names);
        break;
    case IL_OP_RENEW:
        il__mem_renew(m, op);
        break;
    case IL_OP_RELEASE:
        il__mem_release(m, op);
        break;
    case IL_OP_BREAK:
        il__mem_break(m, op);
        break;
    case IL_OP_GET:
        il__mem_get(m, op);
        break;
    case IL_OP_LIST:
        il__mem_list(m, op);
        break;
    case IL_OP_CHECK_FENCE:
        il__mem_check_fence(m, op);
        break;
    case IL_OP_USAGE:
        il__mem_usage(m, op);
        break;
    case IL_OP_ORDER_LIST:
        il__order_list(&m->order, &m->ranks, op);
        break;
    case IL_OP_REFUSED:
        il__mem_refused(m, op);
        break;
    case IL_OP_HISTORY:
        il__mem_history(m, op);
        break;
    case IL_OP_SWEEP:
        il__mem_sweep(m, op);
        il__mem_run_sweep(m, op);
        il__mem_once_sweep(m, op);
        il__mem_queue_sweep(m, op);
        il__mem_cache_sweep(m, op);
        il__mem_history_sweep(m, op);
        break;
    default:
        carry_out_family(m, op);
    }
}

/* Start loading what an acquire will read while the op before it runs. */
static void
look_ahead(struct mem_store *m, const il_op *op, struct mem_names *ret_names)
{
    if (op->type == IL_OP_ACQUIRE && !il__op_refused(op))
        *ret_names = il__mem_names(m, op);
}

/*
 * Does anything in the batch use the wall clock? Leases do not, except that those of runs end them;
 * and reading the clock takes a tenth of the time of a plain acquire.
 */
static bool
looks_at_the_wall(const struct mem_store *m, il_op *const *ops, size_t n)
{
    bool looks = il__mem_run_any(m);

    for (size_t i = 0; i < n && !looks; i++)
        looks = ops[i]->type >= IL_OP_SWEEP;
    return looks;
}

/*
 * A batch yields after 2 ms: it has no commit whose cost could be shared, and others wait for the
 * mutex. The time is checked every TIMED_OPS ops, and before each list, since reading the clock
 * takes as long as a plain op.
 */
#define BATCH_MS 2
#define TIMED_OPS 8

static bool
is_time_over(int64_t began_ns, size_t n_done, const il_op *next)
{
    return (n_done % TIMED_OPS == 0 || il__op_looks(next->type)) &&
           il__clock_boot_ns() - began_ns >= BATCH_MS * IL__NS_PER_MS;
}

static il_status
mem_apply(struct il__store *s, il_op *const *ops, size_t n, size_t *ret_done,
          il_error *reterr UNUSED)
{
    struct mem_store *m = mem_from(s);
    size_t            i;
    struct mem_names  names[2]; /* of an op, and of the next */

    il__mutex_lock(&m->mutex);
    int64_t began_ns = n > 1 ? il__clock_boot_ns() : 0;
    look_ahead(m, ops[0], &names[0]);
    /* Never goes backwards, whatever the clock does. */
    m->now_ms = MAX(m->now_ms, il__clock_now_ms(m->clock));
    if (looks_at_the_wall(m, ops, n))
        m->wall_ms = m->clock->wall_ms(m->clock->cookie);
    for (i = 0; i < n && (i == 0 || !is_time_over(began_ns, i, ops[i])); i++) {
        if (i + 1 < n)
            look_ahead(m, ops[i + 1], &names[(i + 1) % 2]);
        if (!il__op_refused(ops[i]))
            carry_out(m, ops[i], &names[i % 2]);
    }
    il__mutex_unlock(&m->mutex);
    *ret_done = i;
    return IL_OK;
}

static bool
mem_overdue(struct il__store *s)
{
    struct mem_store *m = mem_from(s);

    il__mutex_lock(&m->mutex);
    m->now_ms  = MAX(m->now_ms, il__clock_now_ms(m->clock));
    m->wall_ms = m->clock->wall_ms(m->clock->cookie);
    bool due   = m->n_waiters > 0 || m->ended.n > 0 || il__heap_due(&m->due, m->now_ms) ||
               il__mem_run_overdue(m) || il__mem_run_rate_overdue(m) || il__mem_once_overdue(m) ||
               il__mem_queue_overdue(m) || il__mem_cache_overdue(m) || il__mem_history_overdue(m);
    il__mutex_unlock(&m->mutex);
    return due;
}

static void
mem_destroy(struct mem_store *m)
{
    il__mem_run_release(m);
    il__mem_once_release(m);
    il__mem_queue_release(m);
    il__mem_cache_release(m);
    il__mem_history_release(m);
    il__mem_tables_release(m);
    il__order_release(&m->order);
    il__board_release(&m->board);
    il__ranks_release(&m->ranks);
    il__free(m->name);
    il__mutex_destroy(&m->mutex);
    il__free(m);
}

static void
mem_free(struct il__store *s)
{
    struct mem_store *m    = mem_from(s);
    bool              last = true;

    il__mutex_lock(&registry_mutex);
    il__mutex_lock(&m->mutex);
    highest_fence = MAX(highest_fence, m->fence);
    il__mutex_unlock(&m->mutex);
    if (m->name != NULL) {
        last = --m->n_refs == 0;
        for (struct mem_store **p = &registry; last && *p != NULL; p = &(*p)->next_named) {
            if (*p == m) {
                *p = m->next_named;
                break;
            }
        }
    }
    il__mutex_unlock(&registry_mutex);
    if (last)
        mem_destroy(m);
}

static const struct il__store_ops mem_ops = {
    .name    = "memory",
    .caps    = IL__STORE_DIRECT,
    .free    = mem_free,
    .apply   = mem_apply,
    .read    = NULL,
    .overdue = mem_overdue,
};

static struct mem_store *
mem_new(const struct il__store_open *o)
{
    struct mem_store *m = il__calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->base.ops   = &mem_ops;
    m->base.board = &m->board;
    m->clock      = o->clock;
    m->due.before = il__mem_hold_before;
    m->now_ms     = il__clock_now_ms(o->clock);
    /* Also grows across restarts, and when a store is created right after another was freed. */
    m->fence = il__fence_floor(highest_fence, il__clock_wall_us());
    il__mutex_init(&m->mutex, IL__MUTEX_store);
    /* Room for the first ended leases, because ending must not fail; see il__ended_add(). */
    bool ok = il__ranks_copy(&o->ranks, &m->ranks) && il__board_init_private(&m->board) &&
              il__ended_reserve(&m->ended, 1) && il__mem_run_init(m) && il__mem_once_init(m) &&
              il__mem_queue_init(m) && il__mem_cache_init(m) && il__mem_history_init(m);
    if (!ok) {
        mem_destroy(m);
        return NULL;
    }
    return m;
}

/* Ranks and clock belong to the store: everyone who opens it must ask for the same ones. */
static il_status
check_same(const struct mem_store *m, const struct il__store_open *o, il_error *reterr)
{
    bool same = m->ranks.n == o->ranks.n;

    for (size_t i = 0; same && i < o->ranks.n; i++)
        same = strcmp(m->ranks.classes[i], o->ranks.classes[i]) == 0;
    if (!same)
        return il__error_set(reterr, IL_INVAL, "memory:%s is already open with other ranks",
                             o->path);
    if (m->clock != o->clock)
        return il__error_set(reterr, IL_INVAL, "memory:%s is already open with another clock",
                             o->path);
    return IL_OK;
}

/* Find or create a named store; the mutex keeps two openers from creating it twice. */
static il_status
open_named(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    struct mem_store *m;
    il_status         st = IL_OK;

    il__mutex_lock(&registry_mutex);
    for (m = registry; m != NULL && strcmp(m->name, o->path) != 0; m = m->next_named)
        ;
    if (m == NULL && o->existing) {
        st = il__error_set(reterr, IL_STORE, "no such memory store: '%s'", o->path);
    } else if (m == NULL) {
        m = mem_new(o);
        if (m != NULL && (m->name = il__strdup(o->path)) != NULL) {
            m->next_named = registry;
            registry      = m;
        } else {
            if (m != NULL)
                mem_destroy(m);
            st = il__error_set(reterr, IL_NOMEM, "out of memory for a store");
        }
    } else {
        st = check_same(m, o, reterr);
    }
    if (st == IL_OK && m != NULL) {
        m->n_refs++;
        *ret = &m->base;
    }
    il__mutex_unlock(&registry_mutex);
    return st;
}

il_status
il__store_memory_open(const struct il__store_open *o, struct il__store **ret, il_error *reterr)
{
    if (o->path[0] != '\0')
        return open_named(o, ret, reterr);
    if (o->existing)
        return il__error_set(reterr, IL_STORE, "an unnamed memory store cannot be reopened");
    il__mutex_lock(&registry_mutex);
    struct mem_store *m = mem_new(o);
    il__mutex_unlock(&registry_mutex);
    if (m == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a store");
    *ret = &m->base;
    return IL_OK;
}
