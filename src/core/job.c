/*
 * job.c: the state machine of jobs, and every decision about a job's row. No I/O, no clock.
 */
#include "core/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/hash.h"
#include "core/lease.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/op.h"
#include "core/queue.h"

static const unsigned char next_state[IL_JOB_STATE_COUNT][IL__JOB_EVENT_COUNT] = {
#define X(from, event, to, why) [IL_JOB_##from][IL__JOB_EV_##event] = IL_JOB_##to,
#include "core/job_edges.def"
#undef X
};

_Static_assert(IL_JOB_NONE == 0, "transitions that are not in the table are invalid");

il_job_state
il__job_step(il_job_state from, enum il__job_event event)
{
    CHECK((unsigned)from < IL_JOB_STATE_COUNT);
    CHECK((unsigned)event < IL__JOB_EVENT_COUNT);
    return (il_job_state)next_state[from][event];
}

const char *const il__job_state_names[IL_JOB_STATE_COUNT + 1] = {
    [IL_JOB_NONE] = "NONE",           [IL_JOB_SCHEDULED] = "SCHEDULED", [IL_JOB_READY] = "READY",
    [IL_JOB_RUNNING] = "RUNNING",     [IL_JOB_COMPLETED] = "COMPLETED", [IL_JOB_FAILED] = "FAILED",
    [IL_JOB_CANCELLED] = "CANCELLED",
};

const char *
il_job_state_name(il_job_state state)
{
    return (unsigned)state < IL_JOB_STATE_COUNT ? il__job_state_names[state] : "UNKNOWN";
}

il_job_state
il_job_state_parse(const char *name)
{
    static const struct {
        const char  *name;
        il_job_state state;
    } others[] = {
        { "PENDING", IL_JOB_READY },
        { "PROCESSING", IL_JOB_RUNNING },
        { "EXECUTING", IL_JOB_RUNNING },
    };

    for (unsigned i = IL_JOB_NONE + 1; name != NULL && i < IL_JOB_STATE_COUNT; i++) {
        if (strcmp(name, il__job_state_names[i]) == 0)
            return (il_job_state)i;
    }
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(others); i++) {
        if (strcmp(name, others[i].name) == 0)
            return others[i].state;
    }
    return IL_JOB_NONE;
}

/* ---- queries --------------------------------------------------------------------------------- */

bool
il__job_ended(il_job_state state)
{
    return state == IL_JOB_COMPLETED || state == IL_JOB_FAILED || state == IL_JOB_CANCELLED;
}

il_job_state
il__job_view(const struct il__job *j, int64_t wall_ms)
{
    return j->state == IL_JOB_SCHEDULED && j->run_at_ms <= wall_ms ? IL_JOB_READY : j->state;
}

bool
il__job_expired(const struct il__job *j, int64_t now_ms)
{
    return j->state == IL_JOB_RUNNING && !j->is_parent && il__lease_due(j->expires_ms, now_ms);
}

bool
il__job_held(const struct il__job *j, uint64_t token)
{
#ifdef IL_MUTANT_stale_finish_accepted
    token = j->token;
#endif
    return j->state == IL_JOB_RUNNING && !j->is_parent && j->token == token;
}

bool
il__job_before(const struct il__job *a, const struct il__job *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->run_at_ms != b->run_at_ms)
        return a->run_at_ms < b->run_at_ms;
    return a->seq < b->seq;
}

bool
il__job_keeps_key(const struct il__job *j, int64_t wall_ms)
{
#ifdef IL_MUTANT_unique_not_checked
    return wall_ms < j->unique_until_ms;
#endif
    return !il__job_ended(j->state) || wall_ms < j->unique_until_ms;
}

int64_t
il__job_remaining_ms(const struct il__job *j, int64_t now_ms)
{
    return j->state == IL_JOB_RUNNING && !j->is_parent ? MAX(j->expires_ms - now_ms, 0) : 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static void
move(struct il__job *j, enum il__job_event event)
{
    il_job_state to = il__job_step(j->state, event);

    CHECK(to != IL_JOB_NONE); /* checked by the caller */
    j->state = to;
    if (to != IL_JOB_RUNNING)
        j->expires_ms = 0;
}

/* Kept for the queue's retention time, and at least as long as it keeps its unique key. */
void
il__job_unkeep(struct il__job *j, const il_queue_opts *opts, int64_t wall_ms)
{
    int64_t keep_ms = j->state == IL_JOB_FAILED ? opts->keep_failed_ms : opts->keep_ms;

    j->purge_at_ms = keep_ms == IL_FOREVER ? IL__NEVER : MAX(wall_ms + keep_ms, j->unique_until_ms);
}

static void
end(struct il__job *j, const struct il__job_env *e, enum il__job_event event)
{
    move(j, event);
    j->completed_ms = j->updated_ms = e->wall_ms;
    if (e->kept)
        j->purge_at_ms = IL__NEVER;
    else
        il__job_unkeep(j, e->opts, e->wall_ms);
    e->totals->completed += j->state == IL_JOB_COMPLETED;
    e->totals->failed += j->state == IL_JOB_FAILED;
    e->totals->cancelled += j->state == IL_JOB_CANCELLED;
}

static bool
has_attempts_left(const struct il__job *j)
{
    return j->attempt < j->max_attempts;
}

void
il__job_push(struct il__job *j, const struct il__job_env *e, const il_op *op, uint64_t seq)
{
    const il_job_in *in     = &op->in.job;
    bool             parent = (op->flags & IL_PUSH_PARENT) != 0;

    *j = (struct il__job){
        .seq          = seq,
        .priority     = in->priority,
        .max_attempts = in->max_attempts != 0 ? in->max_attempts : (uint32_t)e->opts->max_attempts,
        .progress     = -1,
        .is_parent    = parent,
        .n_children   = in->n_children,
        .run_at_ms    = in->run_at_ms != 0 ? in->run_at_ms : e->wall_ms + in->delay_ms,
        .unique_until_ms = in->unique_for_ms > 0 ? e->wall_ms + in->unique_for_ms : 0,
        .created_ms      = e->wall_ms,
        .updated_ms      = e->wall_ms,
    };
    if (parent) {
        move(j, IL__JOB_EV_PARENT);
        j->started_ms = e->wall_ms;
    } else {
        move(j, j->run_at_ms > e->wall_ms ? IL__JOB_EV_DELAY : IL__JOB_EV_PUSH);
    }
    e->totals->pushed++;
}

il_status
il__job_may_adopt(const struct il__job *parent, uint64_t n_now, const char **ret_detail)
{
    il_status st = IL_STATE;

    if (parent == NULL) {
        *ret_detail = IL__SAY_NO_PARENT;
        st          = IL_NOT_FOUND;
    } else if (!parent->is_parent) {
        *ret_detail = IL__SAY_NOT_A_PARENT;
    } else if (il__job_ended(parent->state)) {
        *ret_detail = IL__SAY_PARENT_ENDED;
    } else if (parent->is_sealed) {
        *ret_detail = IL__SAY_PARENT_SEALED;
    } else if (parent->n_children > 0 && n_now >= parent->n_children) {
        *ret_detail = IL__SAY_PARENT_FULL;
        st          = IL_LIMIT;
    } else {
        st = IL_OK;
    }
    return st;
}

void
il__job_promote(struct il__job *j)
{
    move(j, IL__JOB_EV_DUE);
}

static int64_t
claim_lease_ms(const il_queue_opts *opts, const il_op *op)
{
    if ((op->flags & IL_CLAIM_SILENT) != 0)
        return il__queue_optimistic(opts) ? opts->executing_timeout_ms
                                          : opts->processing_timeout_ms;
    return op->in.job.lease_ms != 0 ? op->in.job.lease_ms : opts->lease_ms;
}

void
il__job_claim(struct il__job *j, const struct il__job_env *e, const il_op *op, uint64_t token)
{
#ifdef IL_MUTANT_token_not_renewed
    token = j->token != 0 ? j->token : token;
#endif
    move(j, IL__JOB_EV_CLAIM);
    j->attempt++;
    j->token      = token;
    j->last       = IL__LAST_NONE;
    j->silent     = (op->flags & IL_CLAIM_SILENT) != 0;
    j->lease_ms   = claim_lease_ms(e->opts, op);
    j->expires_ms = e->now_ms + j->lease_ms;
    j->progress   = -1;
    j->started_ms = j->updated_ms = e->wall_ms;
    e->totals->claimed++;
}

void
il__job_heartbeat(struct il__job *j, const struct il__job_env *e, const il_op *op)
{
    const il_job_in *in = &op->in.job;

    /* The execution timeout counts from the start, regardless of heartbeats. */
    if (!(j->silent && il__queue_optimistic(e->opts))) {
        if (in->lease_ms != 0)
            j->lease_ms = in->lease_ms;
        j->expires_ms = e->now_ms + j->lease_ms;
    }
    if (in->progress >= 0)
        j->progress = in->progress;
    j->updated_ms = e->wall_ms;
}

void
il__job_finish(struct il__job *j, const struct il__job_env *e)
{
    j->last = IL__LAST_FINISHED;
    end(j, e, IL__JOB_EV_FINISH);
}

const char *
il__job_fail(struct il__job *j, const struct il__job_env *e, const il_op *op)
{
    const il_job_in *in    = &op->in.job;
    const char      *error = in->text != NULL ? in->text : "";

    j->last = IL__LAST_FAILED;
    e->totals->failed_attempts++;
    if (j->cancelled) {
        end(j, e, IL__JOB_EV_CANCEL);
        return NULL; /* the reason of the cancel stays */
    }
    if ((op->flags & IL_FAIL_FINAL) != 0 || !has_attempts_left(j)) {
        end(j, e, IL__JOB_EV_DIE);
        return error;
    }
    move(j, IL__JOB_EV_AGAIN);
    j->run_at_ms = e->wall_ms +
                   (in->delay_ms > 0 ? in->delay_ms : il__backoff_ms(e->opts, in->id, j->attempt));
    j->updated_ms = e->wall_ms;
    return error;
}

void
il__job_snooze(struct il__job *j, const struct il__job_env *e, const il_op *op)
{
    j->last = IL__LAST_SNOOZED;
    e->totals->snoozed++;
    if (j->cancelled) {
        end(j, e, IL__JOB_EV_CANCEL);
        return;
    }
    move(j, IL__JOB_EV_AGAIN);
    j->attempt -= j->attempt > 0;
    j->run_at_ms  = e->wall_ms + op->in.job.delay_ms;
    j->updated_ms = e->wall_ms;
}

const char *
il__job_recover(struct il__job *j, const struct il__job_env *e)
{
    j->last = IL__LAST_EXPIRED;
    e->totals->recovered++;
    if (j->cancelled) {
        end(j, e, IL__JOB_EV_CANCEL);
        return NULL;
    }
    if (has_attempts_left(j)) {
        move(j, IL__JOB_EV_EXPIRE);
        j->updated_ms = e->wall_ms;
    } else {
        end(j, e, IL__JOB_EV_DIE);
    }
    return il__queue_optimistic(e->opts) ? IL__SAY_EXECUTION_TIMEOUT : IL__SAY_PROCESSING_TIMEOUT;
}

const char *
il__job_cancel(struct il__job *j, const struct il__job_env *e, bool now, const char *reason)
{
    bool asked = j->cancelled;

    CHECK(!j->is_parent);
    if (il__job_ended(j->state) || (j->state == IL_JOB_RUNNING && asked && !now))
        return NULL;
    j->cancelled = true;
    if (j->state != IL_JOB_RUNNING || now) {
        if (j->state == IL_JOB_RUNNING)
            j->last = IL__LAST_CANCELLED;
        end(j, e, IL__JOB_EV_CANCEL);
    }
    j->updated_ms = e->wall_ms;
    if (asked)
        return NULL; /* the first reason stays */
    return reason != NULL && reason[0] != '\0' ? reason : IL__SAY_CANCELLED;
}

bool
il__job_retry_revives(const struct il__job *j)
{
    return !j->is_parent && (j->state == IL_JOB_FAILED || j->state == IL_JOB_CANCELLED);
}

il_status
il__job_retry(struct il__job *j, const struct il__job_env *e, const char **ret_detail)
{
    il_job_state seen = il__job_view(j, e->wall_ms);

    *ret_detail = NULL;
    if (j->is_parent)
        *ret_detail = IL__SAY_NO_RETRY_PARENT;
    else if (seen == IL_JOB_RUNNING)
        *ret_detail = IL__SAY_NO_RETRY_RUNNING;
    else if (seen == IL_JOB_COMPLETED)
        *ret_detail = IL__SAY_NO_RETRY_COMPLETED;
    if (*ret_detail != NULL)
        return IL_STATE;
    if (seen == IL_JOB_READY)
        return IL_OK;
    if (il__job_ended(seen)) {
        j->attempt      = 0;
        j->cancelled    = false;
        j->completed_ms = j->purge_at_ms = 0;
    }
    move(j, IL__JOB_EV_RETRY);
    j->run_at_ms = j->updated_ms = e->wall_ms;
    return IL_OK;
}

/* ---- parents --------------------------------------------------------------------------------- */

il_status
il__job_seal(struct il__job *j, const struct il__job_env *e, const char **ret_detail)
{
    *ret_detail = NULL;
    if (!j->is_parent) {
        *ret_detail = IL__SAY_NOT_A_PARENT;
        return IL_STATE;
    }
    if (!il__job_ended(j->state) && !j->is_sealed) {
        j->is_sealed  = true;
        j->updated_ms = e->wall_ms;
    }
    return IL_OK;
}

const char *
il__job_cancel_parent(struct il__job *j, const struct il__job_env *e, const char *reason)
{
    CHECK(j->is_parent);
    if (il__job_ended(j->state) || j->cancelled)
        return NULL;
    j->cancelled = j->is_sealed = true;
    j->updated_ms               = e->wall_ms;
    return reason != NULL && reason[0] != '\0' ? reason : IL__SAY_CANCELLED;
}

bool
il__job_end_parent(struct il__job *j, const struct il__job_env *e, const struct il__children *c,
                   char text[IL__CHILDREN_TEXT_BYTES], const char **ret_error)
{
    bool all_came = j->is_sealed || (j->n_children > 0 && c->n >= j->n_children);

    CHECK(j->is_parent);
    *ret_error = NULL;
#ifdef IL_MUTANT_parent_completed_early
    all_came = all_came && c->n_completed + c->n_failed + 1 == c->n;
    c        = all_came ? &(struct il__children){ c->n - 1, c->n_completed, c->n_failed } : c;
#endif
    if (il__job_ended(j->state) || !all_came || c->n_completed + c->n_failed < c->n)
        return false;
    if (j->cancelled) {
        end(j, e, IL__JOB_EV_CANCEL);
    } else if (c->n_failed > 0) {
        (void)snprintf(text, IL__CHILDREN_TEXT_BYTES, "%" PRIu64 " of %" PRIu64 " children failed",
                       c->n_failed, c->n);
        *ret_error = text;
        end(j, e, IL__JOB_EV_DIE);
    } else {
        end(j, e, IL__JOB_EV_FINISH);
    }
    return true;
}

/* ---- late or repeated ------------------------------------------------------------------------ */

void
il__job_say_stale(il_op *op, const struct il__job *j, const char *worker)
{
    static const char *const ends[IL__LAST_COUNT] = {
        [IL__LAST_NONE] = "returned",   [IL__LAST_FINISHED] = "finished",
        [IL__LAST_FAILED] = "failed",   [IL__LAST_SNOOZED] = "snoozed",
        [IL__LAST_EXPIRED] = "expired", [IL__LAST_CANCELLED] = "cancelled",
    };
    struct il__buf AUTO_BUF text = { .n_bytes_max = 1024 };

    if (j->token == 0)
        il__buf_addf(&text, "the job is %s and was never claimed", il_job_state_name(j->state));
    else if (j->token != op->fence && j->state == IL_JOB_RUNNING)
        il__buf_addf(&text, "worker '%s' has since claimed the job, which is RUNNING", worker);
    else if (j->token != op->fence)
        il__buf_addf(&text, "worker '%s' has since claimed the job, which is %s", worker,
                     il_job_state_name(j->state));
    else
        il__buf_addf(&text, "the claim has ended (%s); the job is %s",
                     ends[(unsigned)j->last < IL__LAST_COUNT ? j->last : IL__LAST_NONE],
                     il_job_state_name(j->state));
    il__op_end(op, IL_STALE, il__buf_str(&text));
}

/* Was this same op carried out already? */
static bool
is_repeated(const il_op *op, const struct il__job *j)
{
    if (j->token != op->fence || j->state == IL_JOB_RUNNING)
        return false;
    return (op->type == IL_OP_JOB_FAIL && j->last == IL__LAST_FAILED) ||
           (op->type == IL_OP_JOB_SNOOZE && j->last == IL__LAST_SNOOZED);
}

void
il__job_answer_late(il_op *op, const struct il__job *j, const struct il__job_env *e,
                    bool same_result, const char *worker)
{
    if (op->type == IL_OP_JOB_FINISH && j->state == IL_JOB_COMPLETED && !j->is_parent &&
        j->token == op->fence) {
        if (same_result)
            op->status = IL_OK;
        else
            il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_RESULT);
    } else if (is_repeated(op, j)) {
        op->status = IL_OK;
    } else {
        il__job_say_stale(op, j, worker);
        e->totals->stale++;
    }
}

/* A small hash that SQL and Lua compute identically, for engines whose verbs run in a server. */
static uint32_t
spread_of(const char *id, uint32_t attempt)
{
    const uint64_t prime = 16777213;
    uint64_t       h     = attempt % prime;

    for (const char *at = id; *at != '\0'; at++)
        h = (h * 257 + (unsigned char)*at) % prime;
    return (uint32_t)(h % 501);
}

int64_t
il__backoff_ms(const il_queue_opts *opts, const char *id, uint32_t attempt)
{
    int64_t  base_ms = opts->backoff_ms;
    uint32_t spread  = spread_of(id, attempt);

    for (uint32_t i = 1; i < attempt && base_ms < opts->backoff_max_ms; i++)
        base_ms *= 2;
    base_ms = MIN(base_ms, opts->backoff_max_ms);
    return MAX(base_ms * (int64_t)(750 + spread) / 1000, 1);
}
