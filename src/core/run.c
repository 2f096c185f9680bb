/*
 * run.c: the state machine of a run, how a run is shown, and messages about it. No I/O, no clock.
 */
#include "core/run.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "core/key.h"
#include "core/lease.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/op.h"

static const unsigned char next_state[IL_RUN_STATE_COUNT][IL__RUN_EVENT_COUNT] = {
#define X(from, event, to, why) [IL_RUN_##from][IL__RUN_EV_##event] = IL_RUN_##to,
#include "core/run_edges.def"
#undef X
};

_Static_assert(IL_RUN_NONE == 0, "transitions that are not in the table are invalid");

il_run_state
il__run_step(il_run_state from, enum il__run_event event, bool cancelled)
{
    CHECK((unsigned)from < IL_RUN_STATE_COUNT);
    CHECK((unsigned)event < IL__RUN_EVENT_COUNT);
    il_run_state to = (il_run_state)next_state[from][event];
    return to == IL_RUN_FAILED && cancelled ? IL_RUN_CANCELLED : to;
}

const char *const il__run_state_names[IL_RUN_STATE_COUNT + 1] = {
    [IL_RUN_NONE] = "NONE",       [IL_RUN_PENDING] = "PENDING",
    [IL_RUN_RUNNING] = "RUNNING", [IL_RUN_COMPLETED] = "COMPLETED",
    [IL_RUN_FAILED] = "FAILED",   [IL_RUN_CANCELLED] = "CANCELLED",
    [IL_RUN_TIMEOUT] = "TIMEOUT", [IL_RUN_INTERRUPTED] = "INTERRUPTED",
};

const char *
il_run_state_name(il_run_state state)
{
    return (unsigned)state < IL_RUN_STATE_COUNT ? il__run_state_names[state] : "UNKNOWN";
}

il_run_state
il_run_state_parse(const char *name)
{
    if (name == NULL)
        return IL_RUN_NONE;
    for (unsigned i = IL_RUN_PENDING; i < IL_RUN_STATE_COUNT; i++) {
        if (strcmp(name, il__run_state_names[i]) == 0)
            return (il_run_state)i;
    }
    return strcmp(name, "COMPLETE") == 0 ? IL_RUN_COMPLETED : IL_RUN_NONE;
}

const char *const il__policy_names[IL_POLICY_COUNT + 1] = {
    [IL_POLICY_JOIN]            = "join",
    [IL_POLICY_REJECT]          = "reject",
    [IL_POLICY_SKIP]            = "skip",
    [IL_POLICY_QUEUE]           = "queue",
    [IL_POLICY_REPLACE_PENDING] = "replace-pending",
    [IL_POLICY_CANCEL_RUNNING]  = "cancel-running",
};

const char *
il_policy_name(il_policy policy)
{
    return (unsigned)policy < IL_POLICY_COUNT ? il__policy_names[policy] : "unknown";
}

bool
il__run_ended(il_run_state state)
{
    return state != IL_RUN_NONE && state != IL_RUN_PENDING && state != IL_RUN_RUNNING;
}

enum il__run_event
il__run_finish_event(il_run_state state)
{
    switch (state) {
    case IL_RUN_COMPLETED:
        return IL__RUN_EV_COMPLETE;
    case IL_RUN_CANCELLED:
        return IL__RUN_EV_STOP;
    case IL_RUN_TIMEOUT:
        return IL__RUN_EV_TIME_OUT;
    case IL_RUN_INTERRUPTED:
        return IL__RUN_EV_INTERRUPT;
    case IL_RUN_NONE:
    case IL_RUN_PENDING:
    case IL_RUN_RUNNING:
    case IL_RUN_FAILED:
    case IL_RUN_STATE_COUNT:
    default:
        return IL__RUN_EV_FAIL;
    }
}

enum il__run_event
il__run_lease_event(il_lease_state state, il_lease_state how)
{
    if (how == IL_LEASE_RELEASED)
        return IL__RUN_EV_RELEASE;
    if (how == IL_LEASE_BROKEN)
        return IL__RUN_EV_BREAK;
#ifdef IL_MUTANT_orphaned_run_completed
    return state == IL_LEASE_OFFERED ? IL__RUN_EV_SILENT : il__run_finish_event(IL_RUN_COMPLETED);
#endif
    return state == IL_LEASE_OFFERED ? IL__RUN_EV_SILENT : IL__RUN_EV_EXPIRE;
}

/* What happened first counts, not what has happened by the time of the check. */
enum il__run_event
il__run_waiter_event(int64_t due_ms, int64_t deadline_ms, int64_t now_ms)
{
    if (!il__lease_due(due_ms, now_ms))
        return IL__RUN_EV_LEAVE;
    return due_ms >= deadline_ms ? IL__RUN_EV_DEADLINE : IL__RUN_EV_SILENT;
}

/* ---- why it ended ---------------------------------------------------------------------------- */

static struct il__run_error
say(const char *before, const char *text)
{
    return (struct il__run_error){ before, text != NULL ? text : "", "" };
}

struct il__run_error
il__run_error_broken(const char *reason)
{
    return say("broken: ", reason);
}

struct il__run_error
il__run_error_replaced(const char *id)
{
    return say("replaced by run ", id);
}

il_run_state
il__run_end(il_run_state from, enum il__run_event event, bool cancelled, const char *text,
            struct il__run_error *error)
{
    il_run_state to = il__run_step(from, event, cancelled);

    CHECK(il__run_ended(to));
    switch (event) {
    case IL__RUN_EV_EXPIRE:
        if (cancelled)
            error->after = " (worker may have crashed)";
        else
            *error = say("", "lease expired - worker may have crashed");
        break;
    case IL__RUN_EV_SILENT:
        *error = say("", "did not take its turn - worker may have crashed");
        break;
    case IL__RUN_EV_DEADLINE:
        *error = say("", "timed out while waiting");
        break;
    case IL__RUN_EV_LEAVE:
        *error = say("", "its holder stopped waiting");
        break;
    case IL__RUN_EV_RELEASE:
        if (!cancelled)
            *error = say("", "its lease was released before it was finished");
        break;
    case IL__RUN_EV_BREAK:
        *error = il__run_error_broken(text);
        break;
    case IL__RUN_EV_REPLACE:
        *error = il__run_error_replaced(text);
        break;
    case IL__RUN_EV_START:
    case IL__RUN_EV_QUEUE:
    case IL__RUN_EV_CANCEL:
    case IL__RUN_EV_CYCLE:
    case IL__RUN_EV_COMPLETE:
    case IL__RUN_EV_FAIL:
    case IL__RUN_EV_STOP:
    case IL__RUN_EV_TIME_OUT:
    case IL__RUN_EV_INTERRUPT:
    case IL__RUN_EVENT_COUNT:
    default:
        if (!cancelled || to != IL_RUN_CANCELLED)
            *error = say("", text);
    }
    return to;
}

/* ---- showing --------------------------------------------------------------------------------- */

/* Is the hold overdue, so that its run will end? */
static bool
is_overdue(const struct il__run_hold *h, int64_t now_ms, enum il__run_event *ret)
{
    if (h->state == IL_LEASE_NONE || !il__lease_due(h->due_ms, now_ms))
        return false;
    if (h->state == IL_LEASE_WAITING)
        *ret = il__run_waiter_event(h->due_ms, h->deadline_ms, now_ms);
    else
        *ret = il__run_lease_event(h->state, il__lease_step(h->state, IL__EV_EXPIRE));
    return true;
}

il_run_state
il__run_state_at(il_run_state state, bool cancelled, const struct il__run_hold *hold,
                 int64_t now_ms)
{
    enum il__run_event event;

    return !il__run_ended(state) && is_overdue(hold, now_ms, &event)
               ? il__run_step(state, event, cancelled)
               : state;
}

/* The run's state at now_ms, and the fields shown in this state. */
static void
look(il_run_info *r, struct il__run_error *error, const struct il__run_hold *hold, int64_t now_ms,
     int64_t wall_ms)
{
    enum il__run_event event;

    if (hold->state != IL_LEASE_NONE)
        r->ttl_ms = hold->ttl_ms;
    if (!il__run_ended(r->state) && is_overdue(hold, now_ms, &event)) {
        if (r->state == IL_RUN_PENDING)
            r->fence = 0;
        r->state       = il__run_end(r->state, event, r->cancelled != 0, hold->reason, error);
        r->ended_at_ms = r->updated_at_ms = wall_ms;
    }
    r->remaining_ms = r->state == IL_RUN_RUNNING ? hold->due_ms - now_ms : 0;
    if (r->state == IL_RUN_PENDING)
        r->fence = 0;
    else
        r->position = 0;
}

static bool
copy_strings(il_op *op, il_run_info *r)
{
    const char **const fields[] = { &r->tenant,  &r->id, &r->key,  &r->holder,
                                    &r->trigger, &r->by, &r->meta, &r->stage };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        *fields[i] = il__op_strdup(op, *fields[i]);
        if (*fields[i] == NULL)
            return false;
    }
    return true;
}

const char *
il__run_error_text(void **arena, const struct il__run_error *e)
{
    size_t n[3] = { strlen(e->before), strlen(e->text), strlen(e->after) };
    char  *text = il__arena_alloc(arena, n[0] + n[1] + n[2] + 1);

    if (text == NULL)
        return NULL;
    memcpy(text, e->before, n[0]);
    memcpy(text + n[0], e->text, n[1]);
    memcpy(text + n[0] + n[1], e->after, n[2] + 1);
    return text;
}

il_run_info *
il__run_show(il_op *op, il_run_info info, struct il__run_error error,
             const struct il__run_hold *hold, int64_t now_ms, int64_t wall_ms)
{
    look(&info, &error, hold, now_ms, wall_ms);
    info.error = il__run_error_text(&op->mem, &error);
    if (info.error == NULL || !copy_strings(op, &info))
        return NULL;
    il_run_info *slot = il__arena_append(&op->mem, &op->out.runs, &op->out.n_runs, sizeof *slot);
    if (slot != NULL)
        *slot = info;
    return slot;
}

/* ---- limits of a tenant ---------------------------------------------------------------------- */

il_run_state
il__run_replaces(il_policy policy)
{
    if (policy == IL_POLICY_CANCEL_RUNNING)
        return IL_RUN_RUNNING;
    return policy == IL_POLICY_REPLACE_PENDING ? IL_RUN_PENDING : IL_RUN_NONE;
}

bool
il__run_reaches(uint64_t n, uint32_t max)
{
#ifdef IL_MUTANT_run_limit_ignored
    return max == 0 && n > 0;
#endif
    return n >= max;
}

int64_t
il__run_midnight_ms(int64_t wall_ms)
{
    int64_t of_day_ms = wall_ms % IL__DAY_MS;

    return wall_ms - (of_day_ms < 0 ? of_day_ms + IL__DAY_MS : of_day_ms);
}

/* ---- the acquire inside a start -------------------------------------------------------------- */

il_op
il__run_acquire(const il_op *start)
{
    const il_run_in *in   = &start->in.run;
    il_op            lock = *start;

    lock.type    = IL_OP_ACQUIRE;
    lock.in.lock = (il_lock_in){
        .ttl_ms    = in->ttl_ms,
        .wait_ms   = in->wait_ms,
        .settle_ms = in->settle_ms,
        .mode      = IL_MODE_EXCLUSIVE,
        .meta      = in->meta,
        .place     = in->place,
    };
    return lock;
}

void
il__run_acquired(il_op *start, const il_op *acquire)
{
    start->status = acquire->status;
    start->out    = acquire->out;
    start->mem    = acquire->mem;
}

/* ---- answers --------------------------------------------------------------------------------- */

#define ANSWER_BYTES_MAX 8192 /* an error and a name */

void
il__run_tell_stop(il_op *op, struct il__run_error error)
{
    op->out.flags |= IL_OUT_CANCEL;
    op->out.detail = il__run_error_text(&op->mem, &error);
}

void
il__run_refuse(il_op *op, il_status status)
{
    const il_run_info      *r    = &op->out.runs[op->out.n_runs - 1];
    struct il__buf AUTO_BUF text = { .n_bytes_max = ANSWER_BYTES_MAX };

    if (r->state == IL_RUN_PENDING)
        il__buf_adds(&text, "the run has not been started yet");
    else if (r->state == IL_RUN_RUNNING)
        il__buf_addf(&text, "the run belongs to '%s'", r->holder);
    else
        il__buf_addf(&text, "the run has already ended as %s", il_run_state_name(r->state));
    if (il__run_ended(r->state) && r->error[0] != '\0')
        il__buf_addf(&text, ": %s", r->error);
    if (r->state == IL_RUN_RUNNING && op->holder != NULL && strcmp(op->holder, r->holder) == 0)
        il__buf_adds(&text, " with another fence");
    op->out.fence = r->fence;
    il__op_end(op, status, il__buf_str(&text));
}

void
il__run_answer_other_key(il_op *op)
{
    struct il__buf AUTO_BUF text = { .n_bytes_max = ANSWER_BYTES_MAX };

    il__buf_addf(&text, "the run already exists with key '%s'",
                 op->out.runs[op->out.n_runs - 1].key);
    op->out.fence = op->out.runs[op->out.n_runs - 1].fence;
    il__op_end(op, IL_MISMATCH, il__buf_str(&text));
}

void
il__run_answer_limit(il_op *op, uint32_t n_pending)
{
    struct il__buf AUTO_BUF text = { .n_bytes_max = ANSWER_BYTES_MAX };

    il__buf_addf(&text, "the queue of the key is full: %u runs are pending", n_pending);
    il__op_end(op, IL_LIMIT, il__buf_str(&text));
}

static void
answer_class_limit(il_op *op, uint32_t flag, uint32_t max, const char *what)
{
    struct il__buf AUTO_BUF text = { .n_bytes_max = ANSWER_BYTES_MAX };

    il__buf_addf(&text, "the tenant has reached its limit of %u %s in class '%.*s'", max, what,
                 (int)il__key_class_bytes(op->key), op->key);
    op->out.flags |= flag;
    il__op_end(op, IL_LIMIT, il__buf_str(&text));
}

void
il__run_answer_live_limit(il_op *op)
{
    answer_class_limit(op, IL_OUT_LIVE_LIMIT, op->in.run.live_max, "live runs");
}

void
il__run_answer_day_limit(il_op *op)
{
    answer_class_limit(op, IL_OUT_DAY_LIMIT, op->in.run.day_max, "runs per day (UTC)");
}

void
il__run_answer_rate(il_op *op, enum il__rate_window window, int64_t wait_ms)
{
    bool minute = window == IL__RATE_MINUTE;

    op->out.remaining_ms = wait_ms;
    answer_class_limit(op, minute ? IL_OUT_MINUTE_LIMIT : IL_OUT_HOUR_LIMIT,
                       minute ? op->in.run.minute_max : op->in.run.hour_max,
                       minute ? "starts per minute" : "starts per hour");
}

static struct il__rate
rate_at(enum il__rate_window window, int64_t now_ms)
{
    struct il__rate r = { .span_ms = il__rate_span_ms(window) };

    r.slot_ms = il__rate_slot_ms(window);
    r.slot    = now_ms / r.slot_ms;
    return r;
}

struct il__rate
il__run_rate(const il_op *op, enum il__rate_window window, int64_t now_ms)
{
    struct il__rate r = rate_at(window, now_ms);

    r.max = window == IL__RATE_MINUTE ? op->in.run.minute_max : op->in.run.hour_max;
    return r;
}

int64_t
il__rate_old(enum il__rate_window window, int64_t now_ms)
{
    return rate_at(window, now_ms).slot - 2 * IL__RATE_SLOTS;
}

int64_t
il__rate_after(const struct il__rate *r)
{
#ifdef IL_MUTANT_rate_window_short
    return r->slot - IL__RATE_SLOTS / 2;
#endif
    return r->slot - IL__RATE_SLOTS;
}

int64_t
il__rate_wait_ms(const struct il__rate *r, int64_t oldest, int64_t now_ms)
{
    return MAX((oldest + IL__RATE_SLOTS) * r->slot_ms - now_ms, 1);
}

void
il__run_answer_not_current(il_op *op, bool finished)
{
    const il_run_info *r = &op->out.runs[op->out.n_runs - 1];

    if (op->type != IL_OP_RUN_FINISH || !il__run_ended(r->state) || r->fence != op->fence) {
        il__run_refuse(op, IL_STALE);
        return;
    }
    /* A repeated finish is OK; one that contradicts how the run ended is refused. A run that was
     * asked to stop and failed counts as cancelled. */
    enum il__run_event event = il__run_finish_event(op->in.run.state);
    if (il__run_step(IL_RUN_RUNNING, event, r->cancelled != 0) == r->state) {
        op->out.fence = r->fence;
        op->status    = IL_OK;
    } else {
        il__run_refuse(op, finished ? IL_MISMATCH : IL_STALE);
    }
}

/* ---- logs ------------------------------------------------------------------------------------ */

bool
il__run_log_part(const il_op *op, uint64_t n_written, struct il__log_part *ret)
{
    const il_run_in *in    = &op->in.run;
    size_t           known = 0;

    if ((op->flags & IL_LOG_AT) != 0) {
        if (in->offset > n_written)
            return false;
        known = (size_t)MIN(n_written - in->offset, (uint64_t)in->log_bytes);
    }
    *ret = (struct il__log_part){ "", in->log_bytes - known };
    if (ret->n_bytes > 0)
        ret->data = (const char *)in->log + known;
    return true;
}

void
il__run_answer_gap(il_op *op)
{
    const il_run_info      *r    = &op->out.runs[op->out.n_runs - 1];
    struct il__buf AUTO_BUF text = { .n_bytes_max = ANSWER_BYTES_MAX };

    il__buf_addf(&text, "the log has %" PRIu64 " bytes; cannot append at byte %" PRIu64,
                 r->log_bytes, op->in.run.offset);
    op->out.fence = r->fence;
    il__op_end(op, IL_STATE, il__buf_str(&text));
}
