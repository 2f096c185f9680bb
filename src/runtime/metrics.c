/*
 * metrics.c: counters of a handle; the table is metrics.def.
 */
#include "core/op.h"
#include "runtime/handle.h"

static const struct {
    const char *name;
    const char *help;
} rows[] = {
#define X(id, name, help) { name, help },
#include "runtime/metrics.def"
#undef X
};

unsigned
il__counter_shard(void)
{
    static atomic_uint            n_threads;
    static _Thread_local unsigned shard; /* counted from 1; 0 = not chosen yet */

    if (shard == 0) {
        unsigned n = atomic_fetch_add(&n_threads, 1) + 1;
        shard      = MIN(n, IL__COUNTER_SHARDS);
    }
    return shard - 1;
}

static uint64_t
sum_of(const il *h, enum il__metric metric)
{
    uint64_t sum = 0;

    for (size_t shard = 0; shard < IL__COUNTER_SHARDS; shard++)
        sum += atomic_load_explicit(&h->counters[shard].values[metric], memory_order_relaxed);
    return sum;
}

void
il_metrics(il *h, il_metric_fn *fn, void *cookie)
{
    if (h == NULL || fn == NULL)
        return;
    for (size_t i = 0; i < IL__METRIC_COUNT; i++)
        fn(cookie, rows[i].name, rows[i].help, sum_of(h, (enum il__metric)i));
}

/* ---- histograms: one step per batch, not per op ---------------------------------------------- */

static const double batch_bounds[IL__BATCH_BOUNDS]   = { 1,   2,   4,   8,    16,   32,  64,
                                                         128, 256, 512, 1024, 2048, 4096 };
static const double commit_bounds[IL__COMMIT_BOUNDS] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                                         0.005,  0.01,    0.025,  0.05,  0.1,
                                                         0.25,   0.5,     1,      2.5,   5 };

static size_t
bucket_of(const double *bounds, size_t n, double value)
{
    size_t i = 0;

    while (i < n && value > bounds[i])
        i++;
    return i;
}

void
il__count_batch(il *h, size_t n_ops, int64_t took_ns)
{
    unsigned             shard = il__counter_shard();
    struct il__counters *c     = &h->counters[shard];

    il__count(h, IL__METRIC_batches, 1);
    il__count(h, IL__METRIC_batch_ops, n_ops);
    il__count(h, IL__METRIC_commit_us, (uint64_t)(took_ns / 1000));
    il__count_on(shard, &c->batch_ops[bucket_of(batch_bounds, IL__BATCH_BOUNDS, (double)n_ops)], 1);
    il__count_on(
        shard, &c->commits[bucket_of(commit_bounds, IL__COMMIT_BOUNDS, (double)took_ns / 1e9)], 1);
}

void
il__histograms(il *h, il__histogram_fn *fn, void *cookie)
{
    struct il__histogram sizes = { "interlock_batch_size",
                                   "operations per committed batch",
                                   batch_bounds,
                                   IL__BATCH_BOUNDS,
                                   { 0 },
                                   (double)sum_of(h, IL__METRIC_batch_ops) };
    struct il__histogram times = { "interlock_commit_seconds",
                                   "time to commit a batch",
                                   commit_bounds,
                                   IL__COMMIT_BOUNDS,
                                   { 0 },
                                   (double)sum_of(h, IL__METRIC_commit_us) / 1e6 };

    for (size_t shard = 0; shard < IL__COUNTER_SHARDS; shard++) {
        for (size_t i = 0; i <= IL__BATCH_BOUNDS; i++)
            sizes.counts[i] +=
                atomic_load_explicit(&h->counters[shard].batch_ops[i], memory_order_relaxed);
        for (size_t i = 0; i <= IL__COMMIT_BOUNDS; i++)
            times.counts[i] +=
                atomic_load_explicit(&h->counters[shard].commits[i], memory_order_relaxed);
    }
    fn(cookie, &sizes);
    fn(cookie, &times);
}

/* ---- counters of ops ------------------------------------------------------------------------- */

static void
count_acquire(il *h, const il_op *op)
{
    if (op->status == IL_OK)
        il__count(h, IL__METRIC_acquired, 1);
    if (op->status == IL_HELD)
        il__count(h, IL__METRIC_held, 1);
    if (op->status == IL_QUEUED)
        il__count(h, IL__METRIC_queued, 1);
    if ((op->out.flags & IL_OUT_ORDER_WARNING) != 0)
        il__count(h, IL__METRIC_order_warned, 1);
}

static void
count_lock(il *h, const il_op *op)
{
    if (op->type == IL_OP_ACQUIRE)
        count_acquire(h, op);
    if (op->type == IL_OP_RENEW && op->status == IL_OK)
        il__count(h, IL__METRIC_renewed, 1);
    if (op->type == IL_OP_RELEASE && op->status == IL_OK)
        il__count(h, IL__METRIC_released, 1);
    if (op->status == IL_LOST)
        il__count(h, IL__METRIC_lost, 1);
    if (op->status == IL_STALE)
        il__count(h, IL__METRIC_stale, 1);
}

static void
count_sweep(il *h, const il_sweep_out *out)
{
    il__count(h, IL__METRIC_sweeps, 1);
    il__count(h, IL__METRIC_expired, out->n_expired);
    il__count(h, IL__METRIC_deadlocks, out->n_deadlocks);
    il__count(h, IL__METRIC_run_recovered, out->n_runs);
    il__count(h, IL__METRIC_job_recovered, out->n_jobs);
    il__count(h, IL__METRIC_job_ticks, out->n_ticks);
}

/*
 * One row per counted answer. An answer flagged RENEWED is a repetition: it was counted the first
 * time, if its caller received it.
 */
static const struct {
    il_op_type      type;
    il_status       status;
    enum il__metric metric;
} answers[] = {
    { IL_OP_RUN_START, IL_QUEUED, IL__METRIC_run_queued },
    { IL_OP_RUN_START, IL_DUPLICATE, IL__METRIC_run_joined },
    { IL_OP_RUN_START, IL_HELD, IL__METRIC_run_refused },
    { IL_OP_RUN_START, IL_LIMIT, IL__METRIC_run_refused },
    { IL_OP_RUN_STAGE, IL_STALE, IL__METRIC_run_stale },
    { IL_OP_RUN_FINISH, IL_STALE, IL__METRIC_run_stale },
    { IL_OP_ONCE_BEGIN, IL_OK, IL__METRIC_once_begun },
    { IL_OP_ONCE_BEGIN, IL_REPLAY, IL__METRIC_once_replayed },
    { IL_OP_ONCE_BEGIN, IL_BUSY, IL__METRIC_once_busy },
    { IL_OP_ONCE_BEGIN, IL_MISMATCH, IL__METRIC_once_mismatch },
    { IL_OP_ONCE_FINISH, IL_OK, IL__METRIC_once_finished },
    { IL_OP_ONCE_FINISH, IL_STALE, IL__METRIC_once_stale },
    { IL_OP_JOB_PUSH, IL_OK, IL__METRIC_job_pushed },
    { IL_OP_JOB_PUSH, IL_DUPLICATE, IL__METRIC_job_duplicate },
    { IL_OP_JOB_CLAIM, IL_EMPTY, IL__METRIC_job_empty },
    { IL_OP_JOB_FINISH, IL_OK, IL__METRIC_job_finished },
    { IL_OP_JOB_FAIL, IL_OK, IL__METRIC_job_failed_attempts },
    { IL_OP_JOB_SNOOZE, IL_OK, IL__METRIC_job_snoozed },
    { IL_OP_JOB_HEARTBEAT, IL_STALE, IL__METRIC_job_stale },
    { IL_OP_JOB_FINISH, IL_STALE, IL__METRIC_job_stale },
    { IL_OP_JOB_FAIL, IL_STALE, IL__METRIC_job_stale },
    { IL_OP_JOB_SNOOZE, IL_STALE, IL__METRIC_job_stale },
    { IL_OP_CACHE_GET, IL_HIT, IL__METRIC_cache_hits },
    { IL_OP_CACHE_LOOKUP, IL_HIT, IL__METRIC_cache_hits },
    { IL_OP_CACHE_GET, IL_STALE_HIT, IL__METRIC_cache_stale_hits },
    { IL_OP_CACHE_LOOKUP, IL_STALE_HIT, IL__METRIC_cache_stale_hits },
    { IL_OP_CACHE_LOOKUP, IL_LEAD, IL__METRIC_cache_leads },
    { IL_OP_CACHE_GET, IL_WAIT, IL__METRIC_cache_waits },
    { IL_OP_CACHE_LOOKUP, IL_WAIT, IL__METRIC_cache_waits },
    { IL_OP_CACHE_FILL, IL_OK, IL__METRIC_cache_fills },
    { IL_OP_CACHE_FILL, IL_STALE, IL__METRIC_cache_fills_refused },
    { IL_OP_CACHE_DROP, IL_OK, IL__METRIC_cache_drops },
};

/* The state in which a run started or ended. */
static void
count_run_state(il *h, const il_op *op)
{
    static const enum il__metric finished[IL_RUN_STATE_COUNT] = {
        [IL_RUN_COMPLETED]   = IL__METRIC_run_completed,
        [IL_RUN_FAILED]      = IL__METRIC_run_failed,
        [IL_RUN_CANCELLED]   = IL__METRIC_run_cancelled,
        [IL_RUN_TIMEOUT]     = IL__METRIC_run_timeout,
        [IL_RUN_INTERRUPTED] = IL__METRIC_run_interrupted,
    };
    il_run_state state = op->out.n_runs > 0 ? op->out.runs->state : IL_RUN_NONE;

    if (op->type == IL_OP_RUN_START && state == IL_RUN_RUNNING)
        il__count(h, IL__METRIC_run_started, 1);
    if (op->type == IL_OP_RUN_FINISH && (unsigned)state < IL_RUN_STATE_COUNT &&
        finished[state] != 0)
        il__count(h, finished[state], 1);
}

static void
count_answer(il *h, const il_op *op)
{
    if ((op->out.flags & IL_OUT_RENEWED) != 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        if (answers[i].type == op->type && answers[i].status == op->status)
            il__count(h, answers[i].metric, 1);
    }
    if (op->status != IL_OK)
        return;
    count_run_state(h, op);
    if (op->type == IL_OP_ONCE_BEGIN && (op->out.flags & IL_OUT_TAKEOVER) != 0)
        il__count(h, IL__METRIC_once_takeover, 1);
    if (op->type == IL_OP_JOB_CLAIM)
        il__count(h, IL__METRIC_job_claimed, op->out.n_jobs);
    if (op->type == IL_OP_JOB_FAIL && op->out.n_jobs > 0 && op->out.jobs->state == IL_JOB_FAILED)
        il__count(h, IL__METRIC_job_failed, 1);
}

void
il__count_op(il *h, const il_op *op)
{
    if (op->type == IL_OP_SWEEP)
        count_sweep(h, &op->out.sweep);
    else if (il__op_family(op->type) == IL__FAMILY_LOCK)
        count_lock(h, op);
    else
        count_answer(h, op);
    if (op->status == IL_DEADLOCK)
        il__count(h, IL__METRIC_deadlocks, 1);
    if (op->status == IL_ORDER)
        il__count(h, IL__METRIC_order_refused, 1);
}
