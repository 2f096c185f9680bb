/*
 * async_call.c: one call of an il__async: how each attempt is prepared, and what its answer means.
 * Does the same as the loops of il_acquire(), il_run_start(), il_once_begin(), il_claim(),
 * il_cache_lookup() and il_run_wait() for blocking callers.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "core/op.h"
#include "runtime/async_internal.h"

/* ---- before an attempt ----------------------------------------------------------------------- */

/* The op's own wait; NULL = none. */
static int64_t *
own_wait(il_op *op)
{
    if (op->type == IL_OP_ACQUIRE && op->in.lock.wait_ms != 0)
        return &op->in.lock.wait_ms;
    return op->type == IL_OP_RUN_START ? &op->in.run.wait_ms : NULL;
}

static bool
is_long(const struct il__call *call)
{
    for (size_t i = 0; i < call->n; i++) {
        unsigned type = (unsigned)call->ops[i].type;
        if (type < IL_OP_COUNT && il__op_looks((il_op_type)type))
            return true;
    }
    return call->n > IL__LONG_OPS;
}

void
il__call_init(struct il__call *call)
{
    int64_t  slack_ns = IL__ASYNC_SLACK_MS * INT64_C(1000000);
    int64_t *wait_ms  = call->n == 1 && call->wait_until_ns != 0 ? own_wait(call->ops) : NULL;

    call->status       = IL_OK;
    call->waited_ns    = 0;
    call->own_until_ns = 0;
    call->shown        = 0;
    call->n_done       = 0;
    call->n_held       = 0;
    call->n_bytes_left = IL_RESULT_BYTES_MAX;
    atomic_init(&call->cancel, false);
    call->flags = call->n == 1 && call->wait_until_ns != 0 ? CALL_WAITS : 0;
    if (is_long(call))
        call->flags |= CALL_LONG;
    if (wait_ms == NULL || (*wait_ms < 0 && *wait_ms != IL_FOREVER))
        return; /* a negative one is refused later */
    call->own_until_ns = il__wait_until_ns(*wait_ms != 0 ? *wait_ms : IL_FOREVER);
    /* The caller added the same wait to the current time a moment ago. */
    if (call->own_until_ns - slack_ns < call->wait_until_ns)
        call->own_until_ns = MIN(call->own_until_ns, call->wait_until_ns);
}

/* Does the op stay in its queue when the call ends? */
static bool
stays(const struct il__call *call)
{
    return call->own_until_ns > call->wait_until_ns;
}

void
il__call_ready(const struct il__async *a, struct il__call *call, int64_t now_ns)
{
    int64_t *wait_ms = call->own_until_ns != 0 ? own_wait(call->ops) : NULL;

    if ((call->flags & CALL_WAITS) == 0 || (call->flags & CALL_LEAVES) != 0)
        return;
    bool own_is_over = call->own_until_ns != 0 && now_ns >= call->own_until_ns;
    if (atomic_load(&a->hurried) || now_ns >= call->wait_until_ns || own_is_over)
        call->flags |= CALL_LAST;
    if (wait_ms == NULL)
        return;
    bool    over    = (call->flags & CALL_LAST) != 0 || atomic_load(&call->cancel);
    bool    leaves  = over && !stays(call);
    int64_t left_ms = leaves ? 0 : il__wait_left_ms(call->own_until_ns);
    /* For a run's start 0 would mean forever. It leaves its queue by a cancel. */
    *wait_ms = call->ops->type == IL_OP_RUN_START && left_ms == 0 ? 1 : left_ms;
    if (call->ops->type == IL_OP_ACQUIRE && *wait_ms == 0)
        call->own_until_ns = 0; /* no queue from now on */
}

/* ---- after an attempt ------------------------------------------------------------------------ */

static uint64_t
hash_of_run(const il_run_info *r)
{
    uint64_t facts[] = { (uint64_t)r->state,    (uint64_t)r->updated_at_ms,
                         (uint64_t)r->progress, r->log_bytes,
                         r->cancelled,          r->position };

    return il__hash_mix(il__hash_bytes(facts, sizeof facts),
                        il__hash_bytes(r->stage, strlen(r->stage)));
}

static uint64_t
hash_of_job(const il_job_info *j)
{
    uint64_t facts[] = { (uint64_t)j->state,    (uint64_t)j->updated_at_ms,
                         (uint64_t)j->progress, j->attempt,
                         j->cancelled,          j->n_children_completed,
                         j->n_children_failed };

    return il__hash_bytes(facts, sizeof facts);
}

/* A read that found something: is it the answer, or may more follow? */
static bool
look_is_answer(struct il__call *call)
{
    const il_op *op    = call->ops;
    bool         ended = false;
    uint64_t     shown = 0;

    if (op->out.n_runs > 0) {
        ended = op->out.runs->state > IL_RUN_RUNNING;
        shown = hash_of_run(op->out.runs);
    } else if (op->out.n_jobs > 0) {
        ended = op->out.jobs->state > IL_JOB_RUNNING;
        shown = hash_of_job(op->out.jobs);
    }
    if (op->type == IL_OP_RUN_LOG && op->out.value_bytes > 0)
        ended = true;
    bool changed = (call->flags & CALL_LOOKED) != 0 && shown != call->shown;
    call->shown  = shown;
    return ended || changed || (call->flags & CALL_WOKEN) != 0;
}

/* A pending run ended before it began: the same status for its caller as from il_run_start(). */
static void
say_ended(struct il__call *call, int64_t now_ns)
{
    il_op *op = call->ops;

    if (op->type != IL_OP_RUN_START || op->status != IL_STATE || (call->flags & CALL_QUEUES) == 0)
        return;
    if (now_ns >= call->own_until_ns)
        il__op_end(op, IL_HELD, "the run timed out while waiting for its key");
    else if (op->out.n_runs > 0 && op->out.runs->state == IL_RUN_CANCELLED)
        il__op_end(op, IL_CANCELLED, op->out.runs->error);
    else
        il__op_end(op, IL_LOST, "the run lost its place in the queue");
}

static enum call_next
cancelled(struct il__call *call)
{
    call->status = il__error_set(&call->error, IL_CANCELLED, "the call was cancelled");
    return NEXT_DONE;
}

/* A queued start leaves its queue: its run is cancelled. */
static enum call_next
leave_run(struct il__call *call)
{
    il_op *op = call->ops;

    op->type         = IL_OP_RUN_CANCEL;
    op->in.run.error = atomic_load(&call->cancel) ? "gave up waiting" : "timed out while waiting";
    call->flags |= CALL_LEAVES;
    return NEXT_AGAIN;
}

/* The cancel was applied; a run that got its turn at that moment is given back
 * (il__call_gives_back()). */
static enum call_next
left_run(struct il__call *call)
{
    il_op *op = call->ops;

    op->type         = IL_OP_RUN_START;
    op->in.run.error = NULL;
    if (atomic_load(&call->cancel))
        return cancelled(call);
    if (call->status == IL_OK)
        il__op_end(op, IL_HELD, "the run timed out while waiting for its key");
    return NEXT_DONE;
}

enum call_next
il__call_give_up(struct il__call *call)
{
    const il_op *op = call->ops;

    /* A caller that may come again keeps its place. */
    if (op->status == IL_QUEUED && !stays(call)) {
        if (op->type == IL_OP_RUN_START)
            return leave_run(call);
        if (op->type == IL_OP_ACQUIRE)
            return NEXT_AGAIN; /* il__call_ready() takes the wait away */
    }
    return cancelled(call);
}

enum call_next
il__call_next(const struct il__async *a, struct il__call *call, int64_t now_ns)
{
    il_op *op    = call->ops;
    bool   first = (call->flags & CALL_LOOKED) == 0;

    if ((call->flags & CALL_WAITS) == 0)
        return NEXT_DONE;
    if (a->closing)
        atomic_store(&call->cancel, true);
    if ((call->flags & CALL_LEAVES) != 0)
        return left_run(call);
    if (call->status != IL_OK)
        return NEXT_DONE;
    bool answered = !il__wait_can(op) || (op->status == IL_OK && look_is_answer(call));
    bool gone     = atomic_load(&call->cancel);
    call->flags |= CALL_LOOKED | (op->status == IL_QUEUED ? CALL_QUEUES : 0);
    if (answered && gone && !first)
        return cancelled(call); /* its grant is given back */
    if (answered) {
        say_ended(call, now_ns);
        return NEXT_DONE;
    }
    if (gone)
        return il__call_give_up(call);
    if ((call->flags & CALL_LAST) != 0)
        return op->type == IL_OP_RUN_START && !stays(call) ? leave_run(call) : NEXT_DONE;
    if (atomic_load(&a->hurried))
        /* cancelled while the op was being applied: repeat it one last time */
        return NEXT_AGAIN;
    /* The value of the awaited build, or of a later one, will do. */
    if (op->status == IL_WAIT && op->fence == 0)
        op->fence = op->out.fence;
    return NEXT_PARK;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static bool
is_grant(const il_op *op)
{
    if ((op->out.flags & IL_OUT_RENEWED) != 0)
        return false; /* it existed before */
    switch (op->type) {
    case IL_OP_ACQUIRE:
    case IL_OP_ONCE_BEGIN:
        return op->status == IL_OK;
    case IL_OP_RUN_START: /* or its cancel: a pending run got its turn */
        return op->status == IL_OK && op->out.n_runs > 0 && op->out.runs->state == IL_RUN_RUNNING &&
               op->holder != NULL && strcmp(op->out.runs->holder, op->holder) == 0;
    case IL_OP_JOB_CLAIM:
        return op->status == IL_OK && op->out.n_jobs > 0;
    case IL_OP_CACHE_LOOKUP:
        return op->status == IL_LEAD;
    default:
        return false;
    }
}

bool
il__call_gives_back(const struct il__call *call)
{
    return call->status == IL_CANCELLED && (call->flags & CALL_WAITS) != 0 && is_grant(call->ops);
}

static void
snooze_jobs(il *h, const il_op *claim)
{
    for (size_t i = 0; i < claim->out.n_jobs; i++) {
        il_op op = { .type   = IL_OP_JOB_SNOOZE,
                     .tenant = claim->tenant,
                     .fence  = claim->out.jobs[i].token };

        op.in.job.id = claim->out.jobs[i].id;
        IGNORE(il_apply(h, &op, 1, NULL)); /* else its claim expires */
        il_op_release(&op);
    }
}

void
il__call_give_back(struct il__async *a, const struct il__call *call)
{
    const il_op *given = call->ops;
    il_op        op    = { .tenant = given->tenant,
                           .key    = given->key,
                           .holder = given->holder,
                           .fence  = given->out.fence };

    switch (given->type) {
    case IL_OP_JOB_CLAIM:
        snooze_jobs(a->h, given);
        return;
    case IL_OP_RUN_START:
        op.type   = IL_OP_RUN_FINISH;
        op.key    = NULL;
        op.fence  = given->out.runs->fence;
        op.in.run = (il_run_in){ .id    = given->in.run.id,
                                 .state = IL_RUN_CANCELLED,
                                 .error = "gave up waiting" };
        break;
    case IL_OP_ONCE_BEGIN:
        op.type = IL_OP_ONCE_ABANDON;
        break;
    case IL_OP_CACHE_LOOKUP:
        op.type = IL_OP_CACHE_ABANDON;
        break;
    default:
        op.type = IL_OP_RELEASE;
    }
    IGNORE(il_apply(a->h, &op, 1, NULL)); /* else it expires */
    il_op_release(&op);
}
