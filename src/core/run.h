/*
 * run.h: runs from the inside; the rules are in runs.md.
 *
 * Engines keep runs where they like, but a run changes its state only through il__run_step(), and what is said about
 * it comes from here, so that every engine says the same.
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
    IL__RUN_EV_SILENT,    /* its waiter gave no sign of life, or did not take its turn */
    IL__RUN_EV_EXPIRE,    /* its lease expired */
    IL__RUN_EV_BREAK,     /* its lease was broken, and has ended */
    IL__RUN_EV_RELEASE,   /* its lease was given back, but not by a finish */
    IL__RUN_EV_COMPLETE,  /* finished, as the names say */
    IL__RUN_EV_FAIL,      /* … */
    IL__RUN_EV_STOP,      /* … */
    IL__RUN_EV_TIME_OUT,  /* … */
    IL__RUN_EV_INTERRUPT, /* … */
    IL__RUN_EVENT_COUNT
};

struct il__run_edge {
    il_run_state       from;
    enum il__run_event event;
    il_run_state       to;
    const char        *why;
};

/*
 * The state after `event`, or IL_RUN_NONE when there is no such edge. `cancelled`: a stop was asked for; then a run
 * that would end as FAILED ends as CANCELLED.
 */
il_run_state il__run_step(il_run_state from, enum il__run_event event, bool cancelled);

/* All edges, for tests. */
const struct il__run_edge *il__run_edges(size_t *ret_n);

/* Has a run in this state ended? PENDING and RUNNING are live. */
bool il__run_ended(il_run_state state);

/* The event of a finish that says this state, which is one of those that end a run. */
enum il__run_event il__run_finish_event(il_run_state state);

/* Why a run ended, or should stop, in three parts, so that saying it needs no memory. Never NULL. */
struct il__run_error {
    const char *before, *text, *after;
};
#define IL__RUN_NO_ERROR ((struct il__run_error){ "", "", "" })

/*
 * End a run: the state after `event`, which must be an edge. *error is the reason of the stop if one was asked for, and why
 * it ended afterwards. `text` is the event's own: the reason of a cancel or break, the cycle, the error of a finish,
 * the id of the run that replaces it; NULL when it has none.
 */
il_run_state il__run_end(il_run_state from, enum il__run_event event, bool cancelled,
                         const char *text, struct il__run_error *error);

/* The reason of a stop because the lease is to be broken. */
struct il__run_error il__run_error_broken(const char *reason);
/* The reason of a stop because a newer run takes its place. */
struct il__run_error il__run_error_replaced(const char *id);

/* The three parts as one text in an arena; NULL: no memory. */
const char *il__run_error_text(void **arena, const struct il__run_error *e);

/* Live runs of its own key that a new run replaces, and which its live_max does not count: those in a state up to this. IL_RUN_NONE: none. */
il_run_state il__run_replaces(il_policy policy);
/* Is a limit reached, when so many count against it? */
bool il__run_reaches(uint64_t n, uint32_t max);
/* When the day began, UTC, that it is at wall_ms: day_max counts from there. */
int64_t il__run_midnight_ms(int64_t wall_ms);

/* The acquire inside a start. It has the start's memory, until its results are given back. */
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
 * Show a run in op->out.runs, as it will end if its lease or waiter is overdue at now_ms. `info` is as stored; its strings
 * are copied, `error` is put together. position is only shown of a run that is still pending, the fence of one that was
 * started. NULL: no memory. The result may be changed until the op is applied.
 */
il_run_info *il__run_show(il_op *op, il_run_info info, struct il__run_error error,
                          const struct il__run_hold *hold, int64_t now_ms, int64_t wall_ms);
/* The state that il__run_show() would show. */
il_run_state il__run_state_at(il_run_state state, bool cancelled, const struct il__run_hold *hold,
                              int64_t now_ms);

/* ---- what ops are told, the same on every engine ----------------------------------------------------- */

#define IL__SAY_HAS_OTHERWISE "this holder has the key, but not for this run"
#define IL__SAY_WAITS_OTHERWISE "this holder waits for the key, but not for this run"
#define IL__SAY_OLDER_PENDING "an older run of the key is pending"

/* The stop that was asked for: flags IL_OUT_CANCEL, and the reason as detail. */
void il__run_tell_stop(il_op *op, struct il__run_error error);
/* The op is refused because of how the run is: ended, executed by somebody else, or by nobody. The run has been
 * shown, and is the last of op->out.runs. */
void il__run_refuse(il_op *op, il_status status);
/* MISMATCH: the run exists with another key, which has been shown. */
void il__run_answer_other_key(il_op *op);
/* LIMIT: so many runs are pending already. */
void il__run_answer_limit(il_op *op, uint32_t n_pending);
/* LIMIT: the tenant has live_max live runs of the key's class; it has made day_max of them today. */
void il__run_answer_live_limit(il_op *op);
void il__run_answer_day_limit(il_op *op);

/* A stage or finish of a run that is not RUNNING with this holder and fence. The run has been shown; `finished`: it ended by a
 * finish. */
void il__run_answer_not_current(il_op *op, bool finished);

/* What of the log of a stage or finish is to be appended. */
struct il__log_part {
    const char *data;
    size_t      n_bytes;
};
/* `n_written` bytes are there. False: there would be a gap. */
bool il__run_log_part(const il_op *op, uint64_t n_written, struct il__log_part *ret) MUST_USE;
/* STATE: there would be a gap. The run has been shown. */
void il__run_answer_gap(il_op *op);

/* For a listing: is the state among those that are wanted? */
static inline bool
il__run_wanted(uint32_t states, il_run_state state)
{
    return states == 0 || (states >> state & 1) != 0;
}

/* run_check.c: check the inputs of an op of this family and fill in defaults; tenant is checked. Names have their lengths
 * noted. IL_INVAL names the input and the reason. */
il_status il__run_check(il_op *op, il_error *reterr) MUST_USE;

#endif
