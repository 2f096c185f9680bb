/*
 * handle.c: opens and closes a handle, applies ops, and implements the public calls that are one op
 * each.
 */
#include "runtime/handle.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "config/config.h"
#include "core/op.h"
#include "runtime/batch_split.h"

#define CALLERS_PER_LANE 48

const char *
il_version(void)
{
    return IL_VERSION;
}

static void
count_batch(void *cookie, size_t n_ops, int64_t took_ns)
{
    il__count_batch(cookie, n_ops, took_ns);
}

il_status
il__migrate(const char *url, const il_open_opts *opts, bool check, struct il__migration *ret,
            il_error *reterr)
{
    return il__store_migrate(url, opts, check, ret, reterr);
}

il_status
il__create_for(const char *url, const il_open_opts *opts, const char *group, il_error *reterr)
{
    return il__store_create_for(url, opts, group, reterr);
}

il_status
il__handle_report(il *h, const char *table, il__report_fn *each, void *cookie, il_error *reterr)
{
    return il__store_report(h->store, table, each, cookie, reterr);
}

il_status
il__handle_request(il *h, struct il__request *r, il_error *reterr)
{
    return il__store_request(h->store, r, reterr);
}

il_status
il__handle_guard_table(il *h, const struct il__table_guard *change, il__table_guard_fn *each,
                       void *cookie, il_error *reterr)
{
    return il__store_guard_table(h->store, change, each, cookie, reterr);
}

/* The tenant of a handle: the requested one, if the store has more than one. */
static const char *
tenant_of(const struct il__store *store, const il_open_opts *opts)
{
    if (opts != NULL && opts->tenant != NULL)
        return opts->tenant;
    return store->tenant != NULL ? store->tenant : "default";
}

void
il__configure_process(void)
{
    il__store_sqlite_uncounted();
}

il_status
il__handle_new(struct il__store *store, const il_open_opts *opts, il **ret, il_error *reterr)
{
    const char *tenant = tenant_of(store, opts);

    if (store->tenant != NULL && strcmp(tenant, store->tenant) != 0)
        return il__error_set(reterr, IL_INVAL, "the API key belongs to tenant '%s', not '%s'",
                             store->tenant, tenant);
    il *h = il__calloc(1, sizeof *h);
    if (h != NULL) {
        h->tenant   = il__strdup(tenant);
        h->counters = il__calloc(IL__COUNTER_SHARDS, sizeof *h->counters);
    }
    if (h == NULL || h->tenant == NULL || h->counters == NULL) {
        if (h != NULL) {
            il__free(h->tenant);
            il__free(h->counters);
        }
        il__free(h);
        return il__error_set(reterr, IL_NOMEM, "out of memory for a handle");
    }
    h->tenant_bytes = strlen(h->tenant);
    h->store        = store;
    h->sweeps       = opts == NULL || (opts->flags & IL_OPEN_NO_SWEEP) == 0;
    h->n_execs      = MAX(MIN(store->ops->n_lanes, IL__LANES_MAX), 1);
    for (unsigned i = 0; i < h->n_execs; i++)
        il__group_commit_init(&h->execs[i], store, count_batch, h);
    il__mutex_init(&h->mutex, IL__MUTEX_handle);
    il__cond_init(&h->unpinned);
    h->watch_fd = -1;
    /* before anything can be broken */
    h->break_seen = il__board_read(store->board, IL__BOARD_BREAK);
    *ret          = h;
    return IL_OK;
}

static il_status
check_open(const il_open_opts *opts, il **ret, il_error *reterr)
{
    if (ret == NULL)
        return il__error_set(reterr, IL_INVAL, "ret must not be NULL");
    if (opts == NULL)
        return IL_OK;
    if (opts->struct_size != sizeof *opts)
        return il__error_set(reterr, IL_INVAL,
                             "il_open_opts was not initialized with IL_OPEN_OPTS_INIT");
    if (opts->tenant != NULL && il_check_tenant(opts->tenant, reterr) != IL_OK)
        return IL_INVAL;
    if (opts->timeout_ms < 0)
        return il__error_set(reterr, IL_INVAL, "timeout_ms must not be negative");
    for (size_t i = 0; i < opts->n_ranks; i++) {
        if (opts->ranks == NULL || il_check_key(opts->ranks[i], NULL) != IL_OK ||
            strchr(opts->ranks[i], ':') != NULL)
            return il__error_set(reterr, IL_INVAL, "rank %zu is not a valid class name", i + 1);
    }
    return IL_OK;
}

static il_status
open_url(const char *url, const il_open_opts *opts, il **ret, il_error *reterr)
{
    struct il__store *store;
    struct il__store *traced;
    il_status         st = il__store_open(url, opts, &store, reterr);

    if (st != IL_OK)
        return st;
    if (opts != NULL && opts->trace != NULL) {
        st = il__store_trace_wrap(store, opts->trace, opts->trace_cookie, &traced, reterr);
        if (st == IL_OK)
            store = traced;
    }
    if (st == IL_OK)
        st = il__handle_new(store, opts, ret, reterr);
    if (st != IL_OK)
        il__store_free(store);
    return st;
}

static il_status
open_configured(const il_open_opts *opts, il **ret, il_error *reterr)
{
    AUTO(il__config_opening_release) struct il__config_opening o = { 0 };
    il_status st = il__config_opening(opts, &o, reterr);

    return st == IL_OK ? open_url(o.url, &o.opts, ret, reterr) : st;
}

il_status
il_open(const char *url, const il_open_opts *opts, il **ret, il_error *reterr)
{
    if (check_open(opts, ret, reterr) != IL_OK)
        return IL_INVAL;
    return url != NULL ? open_url(url, opts, ret, reterr) : open_configured(opts, ret, reterr);
}

void
il_close(il *h)
{
    if (h == NULL)
        return;
    CHECK(h->leases == NULL);
    CHECK(h->sleepers == NULL);
    il__keeper_stop(h);
    for (unsigned i = 0; i < h->n_execs; i++)
        il__group_commit_release(&h->execs[i]);
    il__store_free(h->store);
    il__mutex_destroy(&h->mutex);
    CHECK(pthread_cond_destroy(&h->unpinned) == 0);
    il__free(h->tenant);
    il__free(h->counters);
    il__free(h);
}

/* Also part of every plain call, so they are inlined there. */
static inline bool
prepare(il *h, il_op *ops, il_op **ptrs, size_t n)
{
    bool writes = false;

    for (size_t i = 0; i < n; i++) {
        il_op *op = &ops[i];
        ptrs[i]   = op;
        if (!il__op_prepare(op, h->tenant, h->tenant_bytes))
            continue;
        writes = writes || il__op_writes(op->type);
        il__wake_note(h, op);
    }
    return writes;
}

bool
il__op_may_block_on_tx(il_op_type type)
{
    return il__op_family(type) == IL__FAMILY_QUEUE && type != IL_OP_JOB_HEARTBEAT;
}

/*
 * Half of the lanes are for ops that may block until some caller's transaction has ended (a push
 * next to one with the same unique key), so that no renewal waits behind them. The last lane of
 * each half is for slow work: calls of many ops, one after another, and sweeps, which scan
 * everything. So a short call only waits for other short calls, and large batches wait for each
 * other here instead of in the store, on the same keys.
 *
 * A few callers are faster together, in larger batches; many are faster on several connections,
 * while one of them waits for the disk. Ops on one key use the same lane, so that they do not wait
 * for each other in the store; but correctness does not depend on it. The ops of one call stay
 * together to keep their order.
 */
unsigned
il__lane_of(const il *h, const il_op *first, size_t n, bool may_block, unsigned n_callers)
{
    unsigned    n_half  = MAX(h->n_execs / 2, 1);
    unsigned    n_short = MAX(n_half - 1, 1);
    unsigned    n_lanes = MIN(1 + n_callers / CALLERS_PER_LANE, n_short);
    unsigned    i_first = may_block ? h->n_execs - n_half : 0;
    const char *name    = first->key;

#ifdef IL_MUTANT_long_calls_anywhere
    n = 1;
#endif
    if (n > IL__LONG_OPS || first->type == IL_OP_SWEEP)
        return i_first + n_half - 1;
    if (n_lanes < 2)
        return i_first;
    if (name == NULL)
        name = il__op_id(first);
    return i_first + (name != NULL ? (unsigned)(il__hash_bytes(name, strlen(name)) % n_lanes) : 0);
}

static struct il__exec *
exec_of(il *h, il_op *const *ops, size_t n, unsigned n_applying)
{
    bool may_block = false;

    if (il__op_refused(ops[0]))
        return &h->execs[0];
    for (size_t i = 0; i < n && !may_block; i++)
        may_block = il__op_may_block_on_tx(ops[i]->type);
    return &h->execs[il__lane_of(h, ops[0], n, may_block, n_applying)];
}

static il_status
execute(il *h, il_op *const *ops, size_t n, size_t *ret_done, il_error *reterr)
{
    if (h->n_execs == 1)
        return il__group_commit_apply(&h->execs[0], ops, n, ret_done, reterr);
    unsigned  n_applying = atomic_fetch_add_explicit(&h->n_applying, 1, memory_order_relaxed);
    il_status st = il__group_commit_apply(exec_of(h, ops, n, n_applying), ops, n, ret_done, reterr);
    atomic_fetch_sub_explicit(&h->n_applying, 1, memory_order_relaxed);
    return st;
}

il_status
il__ops_apply_on(il *h, unsigned lane, il_op *const *ops, size_t n, size_t *ret_done,
                 il_error *reterr)
{
    atomic_fetch_add_explicit(&h->n_applying, 1, memory_order_relaxed);
    il_status st = il__group_commit_apply(&h->execs[lane], ops, n, ret_done, reterr);
    atomic_fetch_sub_explicit(&h->n_applying, 1, memory_order_relaxed);
    return st;
}

static inline void
done(il *h, il_op *ops, size_t n, il_status st)
{
    if (st != IL_OK)
        il__count(h, IL__METRIC_batch_failures, 1);
    for (size_t i = 0; i < n; i++) {
        if (st == IL_OK)
            il__count_op(h, &ops[i]);
        if (ops[i].tenant == h->tenant)
            ops[i].tenant = NULL; /* an op may be used with another handle next */
    }
}

bool
il__ops_prepare(il *h, il_op *ops, il_op **ptrs, size_t n)
{
    return prepare(h, ops, ptrs, n);
}

void
il__ops_done(il *h, il_op *ops, size_t n, il_status st)
{
    done(h, ops, n, st);
}

static il_status
apply_piece(il *h, il_op *const *ops, size_t n, bool writes, size_t *ret_done, il_error *reterr)
{
    if (!writes)
        return il__store_read(h->store, ops, n, ret_done, reterr);
    if ((h->store->ops->caps & IL__STORE_DIRECT) != 0)
        return il__store_apply(h->store, ops, n, ret_done, reterr);
    return execute(h, ops, n, ret_done, reterr);
}

/* Piece by piece, so that others get a turn in between. */
static il_status
apply_pieces(il *h, il_op *ops, il_op **ptrs, size_t n, il_error *reterr)
{
    size_t    n_bytes_left = IL_RESULT_BYTES_MAX;
    size_t    n_done       = 0;
    il_status st           = IL_OK;

    for (size_t i = 0; st == IL_OK && i < n; i += n_done) {
        struct il__piece p = il__piece_next(&ops[i], n - i, n_bytes_left);
        st                 = apply_piece(h, &ptrs[i], p.n, p.writes, &n_done, reterr);
        if (st != IL_OK && i > 0 && reterr != NULL)
            reterr->native[0] = '\0'; /* not "busy", which means that nothing was changed */
        if (st != IL_OK)
            break;
        n_bytes_left = il__piece_left(n_bytes_left, il__piece_bytes(&ops[i], n_done));
        if (n_bytes_left == 0) {
            il__piece_refuse(&ops[i + n_done], n - i - n_done);
            break;
        }
    }
    for (size_t i = 0; st != IL_OK && i < n; i++) {
        if (!il__op_refused(&ops[i]))
            il__op_reset(&ops[i]); /* regardless of the answers of earlier pieces */
    }
    return st;
}

static il_status
apply_pointers(il *h, il_op *ops, il_op **ptrs, size_t n, il_error *reterr)
{
    bool      writes = prepare(h, ops, ptrs, n);
    size_t    n_done;
    il_status st;

    if (n == 1) {
        ops->bytes_left = IL_RESULT_BYTES_MAX;
        st              = apply_piece(h, ptrs, 1, writes, &n_done, reterr);
    } else {
        st = apply_pieces(h, ops, ptrs, n, reterr);
    }
    done(h, ops, n, st);
    return st;
}

il_status
il_apply(il *h, il_op *ops, size_t n, il_error *reterr)
{
    il_op *one = ops;

    if (h == NULL)
        return il__error_set(reterr, IL_INVAL, "h must not be NULL");
    if (ops == NULL || n == 0 || n > IL_BATCH_OPS_MAX)
        return il__error_set(reterr, IL_INVAL, "a batch needs 1..%d operations, not %zu",
                             IL_BATCH_OPS_MAX, n);
    if (n == 1)
        return apply_pointers(h, ops, &one, 1, reterr);
    AUTO_FREE il_op **ptrs = il__alloc(n * sizeof *ptrs);
    if (ptrs == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a batch of %zu", n);
    return apply_pointers(h, ops, ptrs, n, reterr);
}

/* ---- errors of single ops -------------------------------------------------------------------- */

static void
describe_held(const il_op *op, il_error *reterr)
{
    const il_lease_info *held = op->out.items;

    if (op->out.n_items > 0) {
        if (held->fence == 0) /* a classic client's lock: nothing more is known about it */
            il__error_set(reterr, op->status, "'%s' is held by %s", op->key, held->holder);
        else
            il__error_set(reterr, op->status,
                          "'%s' is held by %s (fence %" PRIu64 ") for %" PRId64 " ms", op->key,
                          held->holder, held->fence, held->age_ms);
        /* fits: limits agree */
        (void)snprintf(reterr->holder, sizeof reterr->holder, "%s", held->holder);
        reterr->fence = held->fence;
        return;
    }
    il__error_set(reterr, op->status, "'%s' is held", op->key);
}

/* The run or job that blocks the op or already exists. False: the op shows none. */
static bool
describe_other(const il_op *op, const char *name, il_error *reterr)
{
    if (op->out.n_runs > 0)
        il__error_set(reterr, op->status, "'%s': run %s is %s", name, op->out.runs->id,
                      il_run_state_name(op->out.runs->state));
    else if (op->out.n_jobs > 0)
        il__error_set(reterr, op->status, "'%s': job %s is %s", name, op->out.jobs->id,
                      il_job_state_name(op->out.jobs->state));
    return op->out.n_runs > 0 || op->out.n_jobs > 0;
}

il_status
il__error_of_op(const il_op *op, il_error *reterr)
{
    const char *name   = op->key != NULL ? op->key : il__op_id(op);
    const char *detail = op->out.detail != NULL ? op->out.detail : il_status_text(op->status);

    if (op->status == IL_OK || reterr == NULL)
        return op->status;
    if (op->status == IL_INVAL || name == NULL) {
        il__error_set(reterr, op->status, "%s", detail);
        return op->status;
    }
    if (op->status == IL_HELD && (op->out.n_items > 0 || op->out.n_runs == 0))
        describe_held(op, reterr);
    else if (op->out.detail != NULL || !describe_other(op, name, reterr))
        il__error_set(reterr, op->status, "'%s': %s", name, detail);
    if (op->status != IL_HELD)
        reterr->fence = op->out.fence;
    return op->status;
}

il_status
il__apply_one(il *h, il_op *op, il_error *reterr)
{
    il_status st = il_apply(h, op, 1, reterr);

    return st != IL_OK ? st : il__error_of_op(op, reterr);
}

il_status
il__apply_sure(il *h, il_op *op, il_error *reterr)
{
    il_error  err = { .status = IL_OK };
    il_status st  = il_apply(h, op, 1, &err);

    /* Not if the store's lock was never acquired: then nothing was changed, and the time is used
     * up. */
    bool unsure = st == IL_OK ? op->status == IL_STORE
                              : il_status_retryable(st) && strcmp(err.native, IL__NATIVE_BUSY) != 0;
    if (unsure)
        st = il_apply(h, op, 1, &err);
    if (st != IL_OK && reterr != NULL)
        *reterr = err;
    return st;
}

void
il__op_give(il_op *from, const char *key, il_op *to)
{
    if (to == NULL) {
        il_op_release(from);
        return;
    }
    *to        = *from;
    to->key    = key;
    to->tenant = NULL;
    to->holder = NULL;
    memset(&to->in, 0, sizeof to->in);
}

il_status
il_check_fence(il *h, const char *key, uint64_t fence, il_error *reterr)
{
    il_op     op = { .type = IL_OP_CHECK_FENCE, .key = key, .fence = fence };
    il_status st = il__apply_one(h, &op, reterr);

    il_op_release(&op);
    return st;
}

il_status
il_break(il *h, const char *key, uint64_t fence, const char *reason, uint32_t flags,
         il_error *reterr)
{
    il_op op = { .type = IL_OP_BREAK, .key = key, .fence = fence, .flags = flags };

    op.in.lock.reason = reason;
    il_status st      = il__apply_one(h, &op, reterr);
    il_op_release(&op);
    return st;
}

il_status
il_get(il *h, const char *key, il_op *op, il_error *reterr)
{
    if (op == NULL)
        return il__error_set(reterr, IL_INVAL, "op must not be NULL");
    *op = (il_op){ .type = IL_OP_GET, .key = key };
    return il__apply_one(h, op, reterr);
}

il_status
il_list(il *h, const char *prefix, const char *cursor, uint32_t limit, uint32_t flags, il_op *op,
        il_error *reterr)
{
    if (op == NULL)
        return il__error_set(reterr, IL_INVAL, "op must not be NULL");
    *op         = (il_op){ .type = IL_OP_LIST, .flags = flags };
    op->in.list = (il_list_in){ .prefix = prefix, .cursor = cursor, .limit = limit };
    return il__apply_one(h, op, reterr);
}
