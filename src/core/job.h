/*
 * job.h: the life of a job: the table of its states, and what each op makes of it.
 *
 * Engines keep rows, find them and put them where the next claim or sweep looks; what becomes of a row is
 * decided here, so that it is the same on all of them. An engine reads a row into a struct il__job, calls one of the
 * functions below, writes it back, and keeps the text that was returned as the job's error.
 */
#ifndef IL_CORE_JOB_H
#define IL_CORE_JOB_H

#include "base/base.h"

/* What can happen to a job. */
enum il__job_event {
    IL__JOB_EV_PUSH,   /* pushed, due now */
    IL__JOB_EV_DELAY,  /* pushed, due later */
    IL__JOB_EV_PARENT, /* pushed as a parent */
    IL__JOB_EV_DUE,    /* its run_at has come */
    IL__JOB_EV_CLAIM,  /* a worker takes it */
    IL__JOB_EV_FINISH, /* its worker is done; the children of a parent are */
    IL__JOB_EV_AGAIN,  /* failed with attempts left, or snoozed */
    IL__JOB_EV_DIE,    /* failed for good; a child of a parent did */
    IL__JOB_EV_EXPIRE, /* its claim ran out with attempts left */
    IL__JOB_EV_CANCEL, /* cancelled */
    IL__JOB_EV_RETRY,  /* an operator wants it run again, now */
    IL__JOB_EVENT_COUNT
};

struct il__job_edge {
    il_job_state       from;
    enum il__job_event event;
    il_job_state       to;
    const char        *why;
};

/* The state after `event`, or IL_JOB_NONE when there is no such edge. */
il_job_state il__job_step(il_job_state from, enum il__job_event event);
/* All edges, for tests and for drawing. */
const struct il__job_edge *il__job_edges(size_t *ret_n);
const char                *il__job_event_name(enum il__job_event event);

/* How the last attempt ended. Stored: the numbers never change. */
enum il__job_last {
    IL__LAST_NONE      = 0, /* never claimed, or running */
    IL__LAST_FINISHED  = 1,
    IL__LAST_FAILED    = 2,
    IL__LAST_SNOOZED   = 3,
    IL__LAST_EXPIRED   = 4,
    IL__LAST_CANCELLED = 5, /* cancelled at once while it ran */
    IL__LAST_COUNT     = 6
};

/* The numbers of a job's row. What is a text (payload, error, worker …) is the engine's. Times are on the wall clock but for expires_ms. */
struct il__job {
    uint64_t          seq;
    il_job_state      state;
    enum il__job_last last;
    int32_t           priority;
    uint32_t          attempt;
    uint32_t          max_attempts;
    int32_t           progress; /* -1 = unknown */
    uint64_t          token;    /* of the last attempt; 0 = never claimed */
    bool              is_parent;
    bool              is_sealed;  /* a parent's: by a seal, or because it was cancelled */
    bool              cancelled;  /* a stop was asked for */
    bool              silent;     /* its worker sends no heartbeats */
    uint32_t          n_children; /* of a parent: how many will come; 0 = until it is sealed */
    int64_t           lease_ms;   /* of the claim */
    int64_t           expires_ms; /* of the claim, in lease time; 0 while it does not run */
    int64_t           run_at_ms;
    int64_t           unique_until_ms; /* the end of its unique period; 0 = none */
    int64_t           created_ms, started_ms, updated_ms, completed_ms;
    int64_t purge_at_ms; /* of an ended job; IL__NEVER = not by itself; 0 while it is live */
};

/* Totals of a queue, as il_queue_info has them. */
struct il__totals {
    uint64_t pushed, claimed, completed, failed, dead, snoozed, cancelled, recovered, duplicates, stale;
};

/* The children of a parent, counted from their rows. `n_failed` are those that FAILED or were CANCELLED. */
struct il__children {
    uint64_t n, n_completed, n_failed;
};

/* The queue of a job, and the time. */
struct il__job_env {
    const il_queue_opts *opts;
    struct il__totals   *totals; /* counted up */
    int64_t              now_ms;
    int64_t              wall_ms;
    bool kept; /* the job is a child of a live parent: ended or not, it is not purged */
};

/* What people read. */
#define IL__SAY_PROCESSING_TIMEOUT "Processing timeout - worker may have crashed"
#define IL__SAY_EXECUTION_TIMEOUT "Execution timeout - worker may have crashed"
#define IL__SAY_CANCELLED "cancelled" /* the reason of a cancel that gave none */
#define IL__SAY_NO_PARENT "there is no job with the id of the parent"
#define IL__SAY_NOT_A_PARENT "the job is not a parent"
#define IL__SAY_PARENT_ENDED "the parent has ended"
#define IL__SAY_PARENT_SEALED "the parent is sealed: no more children may come"
#define IL__SAY_PARENT_FULL "the parent has all of its children already"
#define IL__SAY_OTHER_JOB "the id belongs to a job with another queue or payload"
#define IL__SAY_OTHER_RESULT "the job was finished before with another result"
#define IL__SAY_NO_RETRY_RUNNING "the job is running"
#define IL__SAY_NO_RETRY_COMPLETED "the job is completed"
#define IL__SAY_NO_RETRY_PARENT "a parent cannot be retried, but its children can"

/* ---- looking ------------------------------------------------------------------------------------------- */

bool il__job_ended(il_job_state state); /* COMPLETED, FAILED, CANCELLED */
/* The state that is shown: SCHEDULED is READY once its run_at has come. */
il_job_state il__job_view(const struct il__job *j, int64_t wall_ms);
/* Has its claim run out? */
bool il__job_expired(const struct il__job *j, int64_t now_ms);
/* Is it running with this token? */
bool il__job_held(const struct il__job *j, uint64_t token);
/* Which of two READY jobs comes first: by priority, run_at, seq. */
bool il__job_before(const struct il__job *a, const struct il__job *b);
/* Does this job, which has the unique key, still keep others from it? */
bool il__job_keeps_key(const struct il__job *j, int64_t wall_ms);
/* What `remaining_ms` of the job shows. */
int64_t il__job_remaining_ms(const struct il__job *j, int64_t now_ms);
/* job_show.c: the numbers of a job as it is shown, and the totals of a queue. */
void il__job_show(const struct il__job *j, const struct il__children *children, int64_t now_ms,
                  int64_t wall_ms, il_job_info *info);
void il__totals_show(const struct il__totals *t, il_queue_info *info);

/* ---- what the ops make of it -----------------------------------------------------------------------------
 * Where a text is returned, it is the job's error from now on (NULL: as it was), and lives as long as the op. */

/* A new row; in->max_attempts 0 is the queue's. */
void il__job_push(struct il__job *j, const struct il__job_env *e, const il_op *op, uint64_t seq);
/* May `parent` (NULL: there is none) get one more child, when n_now have come? IL_OK, or the status and *ret_detail. */
il_status il__job_adopt(const struct il__job *parent, uint64_t n_now, const char **ret_detail);
void      il__job_promote(struct il__job *j);
void il__job_claim(struct il__job *j, const struct il__job_env *e, const il_op *op, uint64_t token);
void il__job_heartbeat(struct il__job *j, const struct il__job_env *e, const il_op *op);
void il__job_finish(struct il__job *j, const struct il__job_env *e);
const char *il__job_fail(struct il__job *j, const struct il__job_env *e, const il_op *op);
void        il__job_snooze(struct il__job *j, const struct il__job_env *e, const il_op *op);
/* Its claim has run out. */
const char *il__job_recover(struct il__job *j, const struct il__job_env *e);
/* Not for a parent. Nothing happens to one that has ended. */
const char *il__job_cancel(struct il__job *j, const struct il__job_env *e, bool now,
                           const char *reason);
/* IL_OK, or IL_STATE and *ret_detail. One that had ended is live again, and needs its unique key back first: if somebody
 * else keeps it, do not call this. */
bool      il__job_retry_revives(const struct il__job *j);
il_status il__job_retry(struct il__job *j, const struct il__job_env *e, const char **ret_detail);

/* ---- parents ----------------------------------------------------------------------------------------------- */

/* No more children: IL_OK, or IL_STATE and *ret_detail. Then see il__job_settle(). */
il_status il__job_seal(struct il__job *j, const struct il__job_env *e, const char **ret_detail);
/* The first part of cancelling a live parent; its children are cancelled next, then see il__job_settle(). */
const char *il__job_cancel_parent(struct il__job *j, const struct il__job_env *e, const char *reason);
#define IL__CHILDREN_TEXT_BYTES 64
/* Does the parent end now? Then it has, *ret_error is its new error (in `text`) or NULL, and its children get their purge_at. */
bool il__job_settle(struct il__job *j, const struct il__job_env *e, const struct il__children *c,
                    char text[IL__CHILDREN_TEXT_BYTES], const char **ret_error);
/* The parent of this job, which has ended, is live no longer: from now on it may be purged. */
void il__job_unkeep(struct il__job *j, const il_queue_opts *opts, int64_t wall_ms);

/* ---- late or repeated ---------------------------------------------------------------------------------------- */

/*
 * A heartbeat, finish, fail or snooze of a job that is not running with its token: sets status and detail, and counts
 * totals->stale. same_result: a finish has the result that is stored. `worker` is who claimed it last.
 */
void il__job_answer_late(il_op *op, const struct il__job *j, const struct il__job_env *e,
                         bool same_result, const char *worker);

/* STALE, and what became of the claim. */
void il__job_say_stale(il_op *op, const struct il__job *j, const char *worker);

/* Backoff before the attempt after `attempt`: doubled each time, spread by a stable hash of id and attempt. */
int64_t il__backoff_ms(const il_queue_opts *opts, const char *id, uint32_t attempt);

#endif
