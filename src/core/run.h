/*
 * run.h: internals of runs; the rules are in runs.md.
 *
 * Engines store runs as they like, but a run changes its state only through il__run_step(), and
 * messages about it are built here, so that every engine returns the same ones.
 */
#ifndef IL_CORE_RUN_H
#define IL_CORE_RUN_H

#include "base/base.h"

/* What can happen to a run. */
enum il__run_event {
    IL__RUN_EV_START,     /* the key was free for it, or its turn came and it took it */
    IL__RUN_EV_QUEUE,     /* it waits, or it is a slot */
    IL__RUN_EV_CANCEL,    /* cancelled while it was pending */
    IL__RUN_EV_REPLACE,   /* a newer run took its place */
    IL__RUN_EV_DEADLINE,  /* its wait ran out */
    IL__RUN_EV_LEAVE,     /* its holder stopped waiting */
    IL__RUN_EV_CYCLE,     /* its wait closed a cycle of holders */
    IL__RUN_EV_SILENT,    /* its waiter went silent or did not take its turn */
    IL__RUN_EV_EXPIRE,    /* its lease expired */
    IL__RUN_EV_BREAK,     /* its lease was broken, and has ended */
    IL__RUN_EV_RELEASE,   /* its lease was released, but not by a finish */
    IL__RUN_EV_COMPLETE,  /* finished, as named */
    IL__RUN_EV_FAIL,      /* … */
    IL__RUN_EV_STOP,      /* … */
    IL__RUN_EV_TIME_OUT,  /* … */
    IL__RUN_EV_INTERRUPT, /* … */
    IL__RUN_EVENT_COUNT
};

/*
 * The state after `event`, or IL_RUN_NONE if no such edge exists. `cancelled`: a stop was
 * requested; then a run that would end as FAILED ends as CANCELLED.
 */
il_run_state il__run_step(il_run_state from, enum il__run_event event, bool cancelled);

/* Has a run in this state ended? PENDING and RUNNING are live. */
bool il__run_ended(il_run_state state);

/* The event of a finish with this state, which must be a final one. */
enum il__run_event il__run_finish_event(il_run_state state);

/* Why a run ended or should stop, in three parts, so that building it needs no memory. Never
 * NULL. */
struct il__run_error {
    const char *before, *text, *after;
};
#define IL__RUN_NO_ERROR ((struct il__run_error){ "", "", "" })

/*
 * End a run: the state after `event`, which must be an edge. *error is the reason of a requested
 * stop on entry, and why the run ended on return. `text` belongs to the event: the reason of a
 * cancel or break, the cycle, the error of a finish, the id of the run that replaces it; NULL if it
 * has none.
 */
il_run_state il__run_end(il_run_state from, enum il__run_event event, bool cancelled,
                         const char *text, struct il__run_error *error);

/* The reason of a stop because the lease is to be broken. */
struct il__run_error il__run_error_broken(const char *reason);
/* The reason of a stop because a newer run takes its place. */
struct il__run_error il__run_error_replaced(const char *id);

/* The three parts as one text in an arena; NULL: out of memory. */
const char *il__run_error_text(void **arena, const struct il__run_error *e);

/* A new run replaces the live runs of its key in states up to this one, and its live_max does not
 * count them. IL_RUN_NONE: none. */
il_run_state il__run_replaces(il_policy policy);
/* Is a limit reached with this count? */
bool il__run_reaches(uint64_t n, uint32_t max);
/* The start of the UTC day of wall_ms, from which day_max counts. */
int64_t il__run_midnight_ms(int64_t wall_ms);

/*
 * Rates of starts: minute_max, hour_max. Each window of a tenant's class is a ring of 60 slots that
 * count the starts admitted during each. A slot is a little longer than 1/59 of the window, so that
 * the current one and the 59 before it cover all of the window at any time: no window ever admits
 * more than the limit. The price is that a start may wait one slot longer than necessary. An
 * admitted start is counted unless another limit refuses it.
 */
#define IL__RATE_SLOTS 60
#define IL__RATE_MINUTE_MS 60000
#define IL__RATE_HOUR_MS 3600000
enum il__rate_window {
    IL__RATE_MINUTE,
    IL__RATE_HOUR,
    IL__RATE_COUNT
};
struct il__rate {
    uint32_t max;     /* of the op; 0 = no limit */
    int64_t  span_ms; /* distinguishes the windows */
    int64_t  slot_ms;
    int64_t  slot; /* the current one; its ring position is slot % IL__RATE_SLOTS */
};
static inline int64_t
il__rate_span_ms(enum il__rate_window window)
{
    return window == IL__RATE_MINUTE ? IL__RATE_MINUTE_MS : IL__RATE_HOUR_MS;
}
static inline int64_t
il__rate_slot_ms(enum il__rate_window window)
{
    return il__rate_span_ms(window) / (IL__RATE_SLOTS - 1) + 1;
}
struct il__rate il__run_rate(const il_op *op, enum il__rate_window window, int64_t now_ms);
/* Slots after this one count. */
int64_t il__rate_after(const struct il__rate *r);
/*
 * Slots of this window up to this one are deleted by sweeps. They have not counted for a whole
 * window, so a start that read its time before the sweep but checks only now misses none.
 */
int64_t il__rate_old(enum il__rate_window window, int64_t now_ms);
/* How long until the oldest slot that counts no longer does? */
int64_t il__rate_wait_ms(const struct il__rate *r, int64_t oldest, int64_t now_ms);

/* The acquire inside a start. It uses the start's memory until its results are handed back. */
il_op il__run_acquire(const il_op *start);
void  il__run_acquired(il_op *start, const il_op *acquire);

/* The lease or waiter of a run. */
struct il__run_hold {
    il_lease_state state; /* IL_LEASE_NONE: it has none */
    int64_t        ttl_ms;
    int64_t        due_ms;      /* a lease's expiry; when a waiter is dead */
    int64_t        deadline_ms; /* a waiter's own */
    const char    *reason;      /* why it was broken, or "" */
};

/* What happens to the run of a lease that ends in this way. */
enum il__run_event il__run_lease_event(il_lease_state state, il_lease_state how);
/* What happens to the run of a waiter that leaves at now_ms. */
enum il__run_event il__run_waiter_event(int64_t due_ms, int64_t deadline_ms, int64_t now_ms);

/*
 * Show a run in op->out.runs, in its final state if its lease or waiter is overdue at now_ms.
 * `info` is as stored; its strings are copied and `error` is joined. position is only shown for a
 * pending run, the fence only for a started one. NULL: out of memory. The result may be modified
 * until the op is applied.
 */
il_run_info *il__run_show(il_op *op, il_run_info info, struct il__run_error error,
                          const struct il__run_hold *hold, int64_t now_ms, int64_t wall_ms);
/* The state that il__run_show() would show. */
il_run_state il__run_state_at(il_run_state state, bool cancelled, const struct il__run_hold *hold,
                              int64_t now_ms);

/* ---- messages of ops, the same on every engine ----------------------------------------------- */

#define IL__SAY_HAS_OTHERWISE "this holder holds the key, but not for this run"
#define IL__SAY_WAITS_OTHERWISE "this holder is waiting for the key, but not for this run"
#define IL__SAY_OLDER_PENDING "an older run of the key is pending"

/* The requested stop: flag IL_OUT_CANCEL, and the reason as detail. */
void il__run_tell_stop(il_op *op, struct il__run_error error);
/* The op is refused because of the run's state: ended, executed by another holder, or by none. The
 * run has been shown, as the last of op->out.runs. */
void il__run_refuse(il_op *op, il_status status);
/* MISMATCH: the run exists with another key; the run has been shown. */
void il__run_answer_other_key(il_op *op);
/* LIMIT: too many runs are pending. */
void il__run_answer_limit(il_op *op, uint32_t n_pending);
/* LIMIT: the tenant has live_max live runs of the key's class; it has started day_max of them
 * today. */
void il__run_answer_live_limit(il_op *op);
void il__run_answer_day_limit(il_op *op);
/* LIMIT: the window's maximum of starts of the class is reached; the next one may start after
 * wait_ms. */
void il__run_answer_rate(il_op *op, enum il__rate_window window, int64_t wait_ms);

/* A stage or finish of a run that is not RUNNING with this holder and fence. The run has been
 * shown; `finished`: it ended by a finish. */
void il__run_answer_not_current(il_op *op, bool finished);

/* The part of the log of a stage or finish that must be appended. */
struct il__log_part {
    const char *data;
    size_t      n_bytes;
};
/* `n_written` bytes are stored already. False: there would be a gap. */
bool il__run_log_part(const il_op *op, uint64_t n_written, struct il__log_part *ret) MUST_USE;
/* STATE: there would be a gap. The run has been shown. */
void il__run_answer_gap(il_op *op);

/* For a listing: may a live run be among those in these states? An overdue one is shown as FAILED
 * or CANCELLED. */
static inline bool
il__run_may_be_live(uint32_t states)
{
    return states == 0 || (states & (1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING |
                                     1U << IL_RUN_FAILED | 1U << IL_RUN_CANCELLED)) != 0;
}

/* For a listing: is the state among the requested ones? */
static inline bool
il__run_wanted(uint32_t states, il_run_state state)
{
    return states == 0 || (states >> state & 1) != 0;
}

/* run_check.c: check the inputs of an op of this family and fill in defaults; tenant is checked.
 * Lengths of names are recorded. IL_INVAL names the input and the reason. */
il_status il__run_check(il_op *op, il_error *reterr) MUST_USE;

#endif
