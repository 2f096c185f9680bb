/*
 * postconditions.c: the postconditions that every engine must satisfy, checked after each call.
 */
#include "store/postconditions.h"

#include "core/limits.h"
#include "core/op.h"
#include "core/run.h"
#include "store/store.h"

/* A remaining time: less than a hundred years, so that it can be added to any time, also in
 * nanoseconds. */
#define LEFT_MS_MAX (INT64_C(100) * 366 * 24 * 3600 * 1000)

/* Return the condition if it does not hold. */
#define KEEPS(x)       \
    do {               \
        if (!(x))      \
            return #x; \
    } while (0)

static const char *
check_lock(const il_op *op)
{
    bool ok = op->status == IL_OK;

    switch (op->type) {
    case IL_OP_ACQUIRE:
        KEEPS(!ok || (op->out.fence > 0 && op->out.fence < IL__FENCE_END));
        KEEPS(!ok || op->out.remaining_ms == op->in.lock.ttl_ms);
        KEEPS(op->status != IL_QUEUED ||
              (op->in.lock.wait_ms != 0 && op->out.ticket > 0 && op->out.position > 0));
        break;
    case IL_OP_RENEW:
        KEEPS(!ok || op->out.fence == op->fence);
        break;
    case IL_OP_LIST:
        KEEPS(!ok || op->out.n_items <= op->in.list.limit);
        break;
    case IL_OP_ORDER_LIST:
        KEEPS(!ok || op->out.n_edges <= op->in.list.limit);
        break;
    case IL_OP_HISTORY:
        KEEPS(!ok || op->out.n_events <= op->in.list.limit);
        break;
    case IL_OP_GET:
        KEEPS(ok == (op->out.n_items > 0) || op->status == IL_NOMEM);
        break;
    default:
        break;
    }
    return NULL;
}

/* An idempotency key: a caller that may proceed has a token, and an answer has bytes. */
static const char *
check_once(const il_op *op)
{
    if (op->status == IL_OK)
        KEEPS((op->out.fence > 0 && op->out.fence < IL__FENCE_END) ||
              op->type == IL_OP_ONCE_ABANDON);
    if (op->type == IL_OP_ONCE_BEGIN && op->status == IL_OK)
        KEEPS(op->out.remaining_ms == op->in.once.lease_ms && op->out.meta != NULL);
    if (op->type == IL_OP_ONCE_FINISH && op->status == IL_OK)
        KEEPS(op->out.fence == op->fence);
    if (op->status == IL_REPLAY || op->status == IL_BUSY)
        KEEPS(op->out.meta != NULL && op->out.remaining_ms >= 0);
    KEEPS((op->status == IL_REPLAY) == (op->out.value != NULL) || op->type == IL_OP_ONCE_FINISH ||
          op->status == IL_NOMEM);
    KEEPS(op->type != IL_OP_ONCE_GET || op->status != IL_OK);
    return NULL;
}

/* A cached value: a hit has bytes, a leader has a token, and a mere get never leads. */
static const char *
check_cache(const il_op *op)
{
    if (op->status == IL_HIT || op->status == IL_STALE_HIT)
        KEEPS(op->out.value != NULL && op->out.remaining_ms >= 0 && op->out.age_ms >= 0);
    if (op->status == IL_LEAD) {
        KEEPS(op->type == IL_OP_CACHE_LOOKUP);
        KEEPS(op->out.fence > 0 && op->out.fence < IL__FENCE_END);
        KEEPS(op->out.remaining_ms == op->in.cache.lease_ms);
    }
    if (op->status == IL_WAIT)
        KEEPS(op->out.fence > 0 && op->out.remaining_ms > 0 && op->out.value == NULL);
    if (op->type == IL_OP_CACHE_FILL && op->status == IL_OK)
        KEEPS(op->out.fence == op->fence);
    if (op->type == IL_OP_CACHE_STATS)
        KEEPS(op->out.cache.n_fresh + op->out.cache.n_stale == op->out.cache.n_entries);
    return NULL;
}

static const char *
check_run_start(const il_op *op)
{
    bool slot = (op->flags & IL_RUN_SLOT) != 0;

    switch (op->status) {
    case IL_OK:
        KEEPS(op->out.n_runs == 1);
        KEEPS(op->out.runs[0].state == (slot ? IL_RUN_PENDING : IL_RUN_RUNNING));
        KEEPS(op->out.runs[0].fence == op->out.fence);
        KEEPS(slot || (op->out.fence > 0 && op->out.fence < IL__FENCE_END));
        KEEPS(slot || op->out.remaining_ms == op->in.run.ttl_ms);
        break;
    case IL_QUEUED:
        KEEPS(!slot && op->out.ticket > 0 && op->out.position > 0);
        KEEPS(op->out.n_runs == 1 && op->out.runs[0].state == IL_RUN_PENDING);
        break;
    case IL_DUPLICATE:
        KEEPS(op->out.n_runs == 1 && !il__run_ended(op->out.runs[0].state));
        break;
    case IL_STATE:
        KEEPS(op->out.n_runs == 1 && il__run_ended(op->out.runs[0].state));
        break;
    default:
        KEEPS(op->out.n_runs <= 1);
    }
    return NULL;
}

static const char *
check_run(const il_op *op)
{
    bool ok = op->status == IL_OK;

    if (op->type == IL_OP_RUN_START)
        return check_run_start(op);
    if (op->type == IL_OP_RUN_LIST) {
        KEEPS(!ok || op->out.n_runs <= op->in.list.limit);
    } else {
        bool gap = op->status == IL_STATE && (op->flags & IL_LOG_AT) != 0;
        KEEPS((op->out.n_runs == 1) ==
                  (ok || gap || op->status == IL_STALE || op->status == IL_MISMATCH) ||
              op->status == IL_NOMEM);
        KEEPS(op->type != IL_OP_RUN_FINISH || !ok || il__run_ended(op->out.runs[0].state));
        KEEPS(op->type != IL_OP_RUN_STAGE || !ok || op->out.runs[0].state == IL_RUN_RUNNING);
        KEEPS(op->type != IL_OP_RUN_LOG || !ok ||
              (op->out.value != NULL && op->out.value_bytes <= IL__LOG_READ_BYTES &&
               op->out.offset >= op->in.run.offset));
    }
    return NULL;
}

/* Claimed jobs: at most as many as requested (if repeated: as many as before), each running under
 * its own token. */
static const char *
check_claim(const il_op *op)
{
    bool repeated = (op->out.flags & IL_OUT_RENEWED) != 0;

    KEEPS((op->status == IL_OK) == (op->out.n_jobs > 0));
    KEEPS(repeated || op->out.n_jobs <= op->in.job.limit);
    KEEPS(op->status != IL_EMPTY || op->out.remaining_ms >= IL_FOREVER);
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        const il_job_info *j = &op->out.jobs[i];
        KEEPS(j->state == IL_JOB_RUNNING && !j->is_parent && j->attempt > 0);
        KEEPS(j->token > (i > 0 ? op->out.jobs[i - 1].token : 0) && j->token < IL__FENCE_END);
    }
    return NULL;
}

/* Ops that name a job show it, and an OK says what became of it. */
static const char *
check_job(const il_op *op)
{
    bool found = op->status != IL_NOT_FOUND && op->status != IL_NOMEM && op->status != IL_INVAL;
    const il_job_info *j = op->out.jobs;

    if (op->type == IL_OP_JOB_PUSH && (op->status == IL_STATE || op->status == IL_LIMIT))
        found = false; /* it is the parent that is in the way */
    KEEPS(op->out.n_jobs == found);
    if (op->status != IL_OK)
        return NULL;
    KEEPS(strcmp(j->id, op->in.job.id) == 0 && strcmp(j->tenant, op->tenant) == 0);
    switch (op->type) {
    case IL_OP_JOB_HEARTBEAT:
        KEEPS(j->state == IL_JOB_RUNNING && j->token == op->fence);
        break;
    case IL_OP_JOB_FINISH:
        KEEPS(j->state == IL_JOB_COMPLETED && j->token == op->fence);
        break;
    case IL_OP_JOB_FAIL:
    case IL_OP_JOB_SNOOZE:
        KEEPS(j->state != IL_JOB_RUNNING && j->token == op->fence);
        break;
    case IL_OP_JOB_CANCEL:
        /* A parent may still be working on its children: IL_OUT_MORE, which not every reply can
         * express. */
        KEEPS(j->state > IL_JOB_RUNNING ||
              (j->cancelled && ((op->flags & IL_CANCEL_NOW) == 0 || j->is_parent)));
        break;
    case IL_OP_JOB_RETRY:
        KEEPS(j->state == IL_JOB_READY);
        break;
    case IL_OP_JOB_SEAL:
        KEEPS(j->is_parent);
        break;
    default:
        break;
    }
    return NULL;
}

static const char *
check_queue(const il_op *op)
{
    bool ok = op->status == IL_OK;

    switch (op->type) {
    case IL_OP_JOB_CLAIM:
        return check_claim(op);
    case IL_OP_JOB_LIST:
    case IL_OP_QUEUE_LIST:
    case IL_OP_CRON_LIST:
        KEEPS(!ok || op->out.n_jobs + op->out.n_queues + op->out.n_crons <= op->in.list.limit);
        break;
    case IL_OP_JOB_PURGE:
        KEEPS(!ok || op->out.sweep.n_purged <= op->in.list.limit);
        break;
    case IL_OP_QUEUE_SET:
    case IL_OP_QUEUE_PAUSE:
        KEEPS(!ok || op->out.n_queues == 1);
        break;
    case IL_OP_CRON_SET:
        KEEPS(!ok || op->out.n_crons == 1);
        break;
    case IL_OP_CRON_REMOVE:
        break;
    default:
        return check_job(op);
    }
    return NULL;
}

/* Further conditions on a server's reply: enums are in range, and times can be added. */
static const char *
check_answer(const il_op *op)
{
    KEEPS(op->out.remaining_ms <= LEFT_MS_MAX && op->out.remaining_ms >= -LEFT_MS_MAX);
    for (size_t i = 0; i < op->out.n_items; i++) {
        KEEPS((unsigned)op->out.items[i].state < IL_LEASE_STATE_COUNT);
        KEEPS((unsigned)op->out.items[i].mode < IL_MODE_COUNT);
    }
    for (size_t i = 0; i < op->out.n_runs; i++)
        KEEPS((unsigned)op->out.runs[i].state < IL_RUN_STATE_COUNT);
    for (size_t i = 0; i < op->out.n_jobs; i++) {
        KEEPS((unsigned)op->out.jobs[i].state < IL_JOB_STATE_COUNT);
        KEEPS(op->out.jobs[i].remaining_ms <= LEFT_MS_MAX);
        KEEPS(op->out.jobs[i].remaining_ms >= -LEFT_MS_MAX);
        KEEPS(op->out.jobs[i].state == IL_JOB_COMPLETED || op->out.jobs[i].result == NULL);
    }
    return NULL;
}

static const char *
check_family(const il_op *op)
{
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        return check_run(op);
    case IL__FAMILY_ONCE:
        return check_once(op);
    case IL__FAMILY_QUEUE:
        return check_queue(op);
    case IL__FAMILY_CACHE:
        return check_cache(op);
    case IL__FAMILY_LOCK:
    default:
        return check_lock(op);
    }
}

/* What must hold for any engine. */
static const char *
check_result(const il_op *op)
{
    KEEPS((unsigned)op->status < IL_STATUS_COUNT);
    if (il__op_refused(op))
        return NULL;
    if (op->status == IL_STORE || op->status == IL_FULL) {
        /* The server refused only this op: it has nothing but a message. */
        KEEPS(op->out.fence == 0 && op->out.n_items + op->out.n_runs + op->out.n_jobs == 0);
        return NULL;
    }
    if (op->status == IL_CORRUPT || op->status == IL_NEWER)
        return NULL; /* the same; a sweep has done what it could */
    return check_family(op);
}

const char *
il__store_violation(const il_op *op)
{
    const char *broken = check_result(op);

    return broken != NULL ? broken : check_answer(op);
}

/* A damaged file may contain any number; that is not a bug in this program either. */
void
il__store_check_result(const il_op *op)
{
    const char *broken = check_result(op);

    if (broken != NULL)
        il__check_failed(broken, __FILE__, __LINE__, il_op_name(op->type));
}
