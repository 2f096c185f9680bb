/*
 * check.c: what every engine must have kept, whatever it is made of: checked after each call.
 */
#include "core/limits.h"
#include "core/op.h"
#include "core/run.h"
#include "store/store.h"

static void
check_lock(const il_op *op)
{
    bool ok = op->status == IL_OK;

    switch (op->type) {
    case IL_OP_ACQUIRE:
        CHECK(!ok || (op->out.fence > 0 && op->out.fence < IL__FENCE_END));
        CHECK(!ok || op->out.remaining_ms == op->in.lock.ttl_ms);
        CHECK(op->status != IL_QUEUED ||
              (op->in.lock.wait_ms != 0 && op->out.ticket > 0 && op->out.position > 0));
        break;
    case IL_OP_RENEW:
        CHECK(!ok || op->out.fence == op->fence);
        break;
    case IL_OP_LIST:
        CHECK(!ok || op->out.n_items <= op->in.list.limit);
        break;
    case IL_OP_GET:
        CHECK(ok == (op->out.n_items > 0) || op->status == IL_NOMEM);
        break;
    default:
        break;
    }
}

/* An idempotency key: who may go on has a token, and an answer has bytes. */
static void
check_once(const il_op *op)
{
    if (op->status == IL_OK)
        CHECK((op->out.fence > 0 && op->out.fence < IL__FENCE_END) || op->type == IL_OP_ONCE_ABANDON);
    if (op->type == IL_OP_ONCE_BEGIN && op->status == IL_OK)
        CHECK(op->out.remaining_ms == op->in.once.ttl_ms && op->out.meta != NULL);
    if (op->type == IL_OP_ONCE_FINISH && op->status == IL_OK)
        CHECK(op->out.fence == op->fence);
    if (op->status == IL_REPLAY || op->status == IL_BUSY)
        CHECK(op->out.meta != NULL && op->out.remaining_ms >= 0);
    CHECK((op->status == IL_REPLAY) == (op->out.value != NULL) || op->type == IL_OP_ONCE_FINISH ||
          op->status == IL_NOMEM);
    CHECK(op->type != IL_OP_ONCE_GET || op->status != IL_OK);
}

/* A cached value: a hit has bytes, who leads has a token, and a mere look never leads. */
static void
check_cache(const il_op *op)
{
    if (op->status == IL_HIT || op->status == IL_STALE_HIT)
        CHECK(op->out.value != NULL && op->out.remaining_ms >= 0 && op->out.age_ms >= 0);
    if (op->status == IL_LEAD) {
        CHECK(op->type == IL_OP_CACHE_LOOKUP);
        CHECK(op->out.fence > 0 && op->out.fence < IL__FENCE_END);
        CHECK(op->out.remaining_ms == op->in.cache.lease_ms);
    }
    if (op->status == IL_WAIT)
        CHECK(op->out.fence > 0 && op->out.remaining_ms > 0 && op->out.value == NULL);
    if (op->type == IL_OP_CACHE_FILL && op->status == IL_OK)
        CHECK(op->out.fence == op->fence);
    if (op->type == IL_OP_CACHE_STATS)
        CHECK(op->out.cache.n_fresh + op->out.cache.n_stale == op->out.cache.n_entries);
}

static void
check_run_start(const il_op *op)
{
    bool slot = (op->flags & IL_RUN_SLOT) != 0;

    switch (op->status) {
    case IL_OK:
        CHECK(op->out.n_runs == 1);
        CHECK(op->out.runs[0].state == (slot ? IL_RUN_PENDING : IL_RUN_RUNNING));
        CHECK(op->out.runs[0].fence == op->out.fence);
        CHECK(slot || (op->out.fence > 0 && op->out.fence < IL__FENCE_END));
        CHECK(slot || op->out.remaining_ms == op->in.run.ttl_ms);
        break;
    case IL_QUEUED:
        CHECK(!slot && op->out.ticket > 0 && op->out.position > 0);
        CHECK(op->out.n_runs == 1 && op->out.runs[0].state == IL_RUN_PENDING);
        break;
    case IL_DUPLICATE:
        CHECK(op->out.n_runs == 1 && !il__run_ended(op->out.runs[0].state));
        break;
    case IL_STATE:
        CHECK(op->out.n_runs == 1 && il__run_ended(op->out.runs[0].state));
        break;
    default:
        CHECK(op->out.n_runs <= 1);
    }
}

static void
check_run(const il_op *op)
{
    bool ok = op->status == IL_OK;

    if (op->type == IL_OP_RUN_START) {
        check_run_start(op);
    } else if (op->type == IL_OP_RUN_LIST) {
        CHECK(!ok || op->out.n_runs <= op->in.list.limit);
    } else {
        bool gap = op->status == IL_STATE && (op->flags & IL_LOG_AT) != 0;
        CHECK((op->out.n_runs == 1) ==
                  (ok || gap || op->status == IL_STALE || op->status == IL_MISMATCH) ||
              op->status == IL_NOMEM);
        CHECK(op->type != IL_OP_RUN_FINISH || !ok || il__run_ended(op->out.runs[0].state));
        CHECK(op->type != IL_OP_RUN_STAGE || !ok || op->out.runs[0].state == IL_RUN_RUNNING);
        CHECK(op->type != IL_OP_RUN_LOG || !ok ||
              (op->out.value != NULL && op->out.value_bytes <= IL__LOG_READ_BYTES &&
               op->out.offset >= op->in.run.offset));
    }
}

/* Claimed jobs: as many as asked for (repeated: as many as were), each running under a token of its own. */
static void
check_claim(const il_op *op)
{
    bool repeated = (op->out.flags & IL_OUT_RENEWED) != 0;

    CHECK((op->status == IL_OK) == (op->out.n_jobs > 0));
    CHECK(repeated || op->out.n_jobs <= op->in.job.limit);
    CHECK(op->status != IL_EMPTY || op->out.remaining_ms >= IL_FOREVER);
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        const il_job_info *j = &op->out.jobs[i];
        CHECK(j->state == IL_JOB_RUNNING && !j->is_parent && j->attempt > 0);
        CHECK(j->token > (i > 0 ? op->out.jobs[i - 1].token : 0) && j->token < IL__FENCE_END);
    }
}

/* The ops that name a job show it, and an OK says what has become of it. */
static void
check_job(const il_op *op)
{
    bool found = op->status != IL_NOT_FOUND && op->status != IL_NOMEM && op->status != IL_INVAL;
    const il_job_info *j = op->out.jobs;

    if (op->type == IL_OP_JOB_PUSH && (op->status == IL_STATE || op->status == IL_LIMIT))
        found = false; /* it is the parent that is in the way */
    CHECK(op->out.n_jobs == found);
    if (op->status != IL_OK)
        return;
    CHECK(strcmp(j->id, op->in.job.id) == 0 && strcmp(j->tenant, op->tenant) == 0);
    switch (op->type) {
    case IL_OP_JOB_HEARTBEAT:
        CHECK(j->state == IL_JOB_RUNNING && j->token == op->fence);
        break;
    case IL_OP_JOB_FINISH:
        CHECK(j->state == IL_JOB_COMPLETED && j->token == op->fence);
        break;
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
        CHECK(j->state != IL_JOB_RUNNING && j->token == op->fence);
        break;
    case IL_OP_JOB_CANCEL:
        CHECK(j->state > IL_JOB_RUNNING || (j->cancelled && (op->flags & IL_CANCEL_NOW) == 0));
        break;
    case IL_OP_JOB_RETRY:
        CHECK(j->state == IL_JOB_READY);
        break;
    case IL_OP_JOB_SEAL:
        CHECK(j->is_parent);
        break;
    default:
        break;
    }
}

static void
check_queue(const il_op *op)
{
    bool ok = op->status == IL_OK;

    switch (op->type) {
    case IL_OP_JOB_CLAIM:
        check_claim(op);
        break;
    case IL_OP_JOB_LIST:
    case IL_OP_QUEUE_LIST:
    case IL_OP_CRON_LIST:
        CHECK(!ok || op->out.n_jobs + op->out.n_queues + op->out.n_crons <= op->in.list.limit);
        break;
    case IL_OP_JOB_PURGE:
        CHECK(!ok || op->out.sweep.n_purged <= op->in.list.limit);
        break;
    case IL_OP_QUEUE_SET:
    case IL_OP_QUEUE_PAUSE:
        CHECK(!ok || op->out.n_queues == 1);
        break;
    case IL_OP_CRON_SET:
        CHECK(!ok || op->out.n_crons == 1);
        break;
    case IL_OP_CRON_REMOVE:
        break;
    default:
        check_job(op);
    }
}

void
il__store_check_result(const il_op *op)
{
    CHECK((unsigned)op->status < IL_STATUS_COUNT);
    if (il__op_refused(op))
        return;
    if (op->status == IL_STORE || op->status == IL_FULL) {
        /* The server refused this one alone: there is nothing but a sentence. */
        CHECK(op->out.fence == 0 && op->out.n_items + op->out.n_runs + op->out.n_jobs == 0);
        return;
    }
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        check_run(op);
        break;
    case IL__FAMILY_ONCE:
        check_once(op);
        break;
    case IL__FAMILY_QUEUE:
        check_queue(op);
        break;
    case IL__FAMILY_CACHE:
        check_cache(op);
        break;
    case IL__FAMILY_LOCK:
    default:
        check_lock(op);
    }
}
