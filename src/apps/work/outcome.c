/*
 * outcome.c: how a run has ended: decides it, and ends the run in the store.
 *
 * The outcome is decided by whatever came first: a failure, a cancel, a timeout, a shutdown. A lost
 * lease overrides them all, because after that nothing reported about the run counts any more.
 */
#include <poll.h>
#include <stdio.h>

#include "apps/work/work_internal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

#define FINISH_AGAIN_MS 200      /* between two attempts to finish */
#define HISTORY_PATIENCE_MS 1000 /* wait at most this long for the history to be written */
#define LINE_BYTES (WORK_TEXT_BYTES + 100)

static il_run_state
state_of(const struct work_execution *e)
{
    switch (e->reason) {
    case WORK_GO: /* it returned by itself, without having done all and without a reason */
    case WORK_LOST:
        break;
    case WORK_FAILED:
        return e->failed_by_timeout ? IL_RUN_TIMEOUT : IL_RUN_FAILED;
    case WORK_CANCELLED:
        return IL_RUN_CANCELLED;
    case WORK_TIMEOUT:
        return IL_RUN_TIMEOUT;
    case WORK_SHUTDOWN:
        return IL_RUN_INTERRUPTED;
    }
    return IL_RUN_FAILED;
}

/* A run that has done everything is COMPLETED, whatever was requested meanwhile. */
static il_run_state
decide(struct work_execution *e, bool done, char text[WORK_TEXT_BYTES])
{
    il__mutex_lock(&e->mutex);
    e->executing       = false;
    e->concluded       = true; /* callbacks from now on come too late */
    il_run_state state = done ? IL_RUN_COMPLETED : state_of(e);
    (void)snprintf(text, WORK_TEXT_BYTES, "%s",
                   done                   ? ""
                   : e->reason == WORK_GO ? "failed without an error message"
                                          : e->text);
    il__mutex_unlock(&e->mutex);
    return state;
}

/*
 * Write the rest of the log and finish the run in one commit. While the store is unreachable, retry
 * until the lease has expired. Repeating is safe: the log says where it begins, and the fence who
 * writes. The keeper does not know of it: a later renewal is refused, which no longer matters
 * (concluded), and il_run_free() ends the renewals.
 */
static il_status
finish_with_log(struct work_execution *e, const struct work_live_rest *rest, il_run_state state,
                const char *text, il_error *reterr)
{
    il_op ops[2] = { { .type = IL_OP_RUN_STAGE, .flags = IL_LOG_AT },
                     { .type = IL_OP_RUN_FINISH } };

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        ops[i].tenant    = e->tenant;
        ops[i].holder    = e->holder;
        ops[i].fence     = e->pub.fence;
        ops[i].in.run.id = e->id;
    }
    ops[0].in.run.stage     = rest->stage;
    ops[0].in.run.progress  = rest->progress;
    ops[0].in.run.log       = rest->log;
    ops[0].in.run.log_bytes = rest->log_bytes;
    ops[0].in.run.offset    = rest->offset;
    ops[1].in.run.state     = state;
    ops[1].in.run.error     = text;
    for (;;) {
        il_status st = il_apply(e->w->o.h, ops, ARRAY_LEN(ops), reterr);
        if (st == IL_OK && ops[1].status != IL_OK)
            st = il__error_set(reterr, ops[1].status, "%s",
                               ops[1].out.detail != NULL ? ops[1].out.detail
                                                         : il_status_text(ops[1].status));
        bool unanswered = st == IL_STORE || st == IL_FULL || st == IL_NOMEM;
        il_op_release(&ops[0]);
        il_op_release(&ops[1]);
        if (!unanswered || il__clock_boot_ns() >= il_lease_deadline_ns(il_run_lease(e->run)))
            return st;
        (void)poll(NULL, 0, FINISH_AGAIN_MS);
    }
}

/*
 * Did the lease expire, or was it taken away? The run's row says so, or else what the callbacks
 * reported. A run that was broken may have been cancelled before, by a forced release: then its row
 * has that reason.
 */
static bool
ran_out(const char *error)
{
    return strstr(error, WORK_CRASHED) != NULL || strstr(error, WORK_LEASE_OVER) != NULL ||
           strstr(error, "(expired)") != NULL;
}

/* The lease was lost. */
static il_run_state
note_loss(struct work_execution *e, struct work_note note)
{
    il_op        op    = { .type = IL_OP_RUN_GET, .tenant = e->tenant };
    const char  *error = e->text;
    il_run_state state = IL_RUN_FAILED;

    op.in.run.id = e->id;
    if (il_apply(e->w->o.h, &op, 1, NULL) == IL_OK && op.status == IL_OK && op.out.n_runs > 0) {
        error = op.out.runs[0].error;
        state = op.out.runs[0].state;
    }
    note.event = ran_out(error) ? WORK_EVENT_expired : WORK_EVENT_broken;
    note.text  = error;
    if (note.event == WORK_EVENT_broken || work_claim_expiry_report(e->w, e->tenant, e->id))
        work_note(e->w, note);
    il_op_release(&op);
    /* still RUNNING: it will be FAILED in a moment */
    return state > IL_RUN_RUNNING ? state : IL_RUN_FAILED;
}

static void
count_end(struct work *w, il_run_state state)
{
    atomic_fetch_add(state == IL_RUN_COMPLETED     ? &w->n_completed
                     : state == IL_RUN_CANCELLED   ? &w->n_cancelled
                     : state == IL_RUN_TIMEOUT     ? &w->n_timeout
                     : state == IL_RUN_INTERRUPTED ? &w->n_interrupted
                                                   : &w->n_failed,
                     1);
}

/* "STATE" or "STATE: text" */
static const char *
describe(il_run_state state, const char *text, char out[LINE_BYTES])
{
    (void)snprintf(out, LINE_BYTES, "%s%s%s", il_run_state_name(state), text[0] != '\0' ? ": " : "",
                   text);
    return out;
}

static void
note_end(struct work_execution *e, il_run_state state, const char *text, il_status st,
         const il_error *error)
{
    struct work_note note = { .tenant  = e->tenant,
                              .name    = e->pub.plan.name,
                              .run     = e->id,
                              .fence   = e->pub.fence,
                              .wait_ms = -1 };
    char             said[LINE_BYTES];

    note.hold_ms = (il__clock_boot_ns() - e->began_ns) / IL__NS_PER_MS;
    if (st == IL_OK) {
        note.event = WORK_EVENT_released;
        /* broken but released before it ended; or renewed too late */
        if (e->reason == WORK_LOST)
            state = note_loss(e, note);
        else
            work_note(e->w, note);
    } else if (st == IL_STALE || st == IL_NOT_FOUND || st == IL_MISMATCH) {
        state = note_loss(e, note);
    } else {
        note.event = WORK_EVENT_release_failed;
        note.text  = error->message;
        work_note(e->w, note);
    }
    e->end_state = state;
    (void)snprintf(e->end_text, sizeof e->end_text, "%s", text);
    note.event = WORK_EVENT_run_ended;
    note.text  = describe(state, text, said);
    count_end(e->w, state);
    work_note(e->w, note);
}

void
work_conclude(struct work_execution *e, bool done)
{
    char                  text[WORK_TEXT_BYTES], line[LINE_BYTES];
    il_error              error = { .message = "" };
    il_run_state          state = decide(e, done, text);
    bool                  lost  = e->reason == WORK_LOST; /* it does not change any more */
    struct work_live_rest rest;

    if (!lost) {
        (void)describe(state, text, line);
        work_live_line(&e->live, NULL, 0, line, strlen(line));
        work_live_stage(&e->live, "", done ? 100 : -1);
    }
    work_live_close(&e->live, &rest);
    work_execution_record(e);
    if (!lost) /* whoever sees that the run has ended must see its history as well */
        work_record_wait(&e->w->recorder, HISTORY_PATIENCE_MS);
    il__utf8_clean(text, strlen(text));
    /* The store may still hold a lost lease; releasing it frees the key at once. One attempt is
     * enough. */
    il_status st = lost ? il_run_finish(e->run, state, text, &error)
                        : finish_with_log(e, &rest, state, text, &error);
    note_end(e, state, text, st, &error);
}
