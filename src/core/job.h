/*
 * job.h: the state machine of a job, and what each op does to it.
 *
 * Engines store rows, find them and put them where the next claim or sweep looks; these functions
 * decide how a row changes, so that all engines behave alike. An engine reads a row into a struct
 * il__job, calls one of the functions below, writes it back, and stores the returned text as the
 * job's error.
 */
#ifndef IL_CORE_JOB_H
#define IL_CORE_JOB_H

#include "base/base.h"

/* What can happen to a job. */
enum il__job_event {
    IL__JOB_EV_PUSH,   /* pushed, due now */
    IL__JOB_EV_DELAY,  /* pushed, due later */
    IL__JOB_EV_PARENT, /* pushed as a parent */
    IL__JOB_EV_DUE,    /* its run_at is due */
    IL__JOB_EV_CLAIM,  /* a worker takes it */
    IL__JOB_EV_FINISH, /* its worker is done, or a parent's children are */
    IL__JOB_EV_AGAIN,  /* failed with attempts left, or snoozed */
    IL__JOB_EV_DIE,    /* failed for good, or a parent's child did */
    IL__JOB_EV_EXPIRE, /* its claim expired with attempts left */
    IL__JOB_EV_CANCEL, /* cancelled */
    IL__JOB_EV_RETRY,  /* an operator wants it run again, now */
    IL__JOB_EVENT_COUNT
};

/* The state after `event`, or IL_JOB_NONE if no such edge exists. */
il_job_state il__job_step(il_job_state from, enum il__job_event event);

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

/* Where an engine with tables keeps a live job: its lane is 8 * the queue's number + one of these,
 * except that the claimed jobs of all queues share lane 0. Stored: the numbers never change. */
enum il__job_lane {
    IL__LANE_CLAIMED   = 0,
    IL__LANE_SCHEDULED = 1,
    IL__LANE_READY     = 2,
    IL__LANE_PARENT    = 3,
    IL__LANE_BLOCKED   = 4, /* READY, but its group is full */
    IL__LANE_UNDECIDED = 5, /* PostgreSQL: READY, but not known whether its group is full */
};

/* What an engine with tables keeps in one column of a job. Stored: the numbers never change. */
enum il__job_flag {
    IL__JOB_FLAG_CANCELLED = 1 << 0,
    IL__JOB_FLAG_SILENT    = 1 << 1,
    IL__JOB_FLAG_SEALED    = 1 << 2,
};

/* The numbers of a job's row. Texts (payload, error, worker …) belong to the engine. Times are
 * wall-clock times except expires_ms. */
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
    bool              cancelled;  /* a stop was requested */
    bool              silent;     /* its worker sends no heartbeats */
    uint32_t          n_children; /* of a parent: children expected; 0 = until it is sealed */
    int64_t           lease_ms;   /* of the claim */
    int64_t           expires_ms; /* of the claim, in lease time; 0 while it does not run */
    int64_t           run_at_ms;
    int64_t           unique_until_ms; /* the end of its unique period; 0 = none */
    int64_t           created_ms, started_ms, updated_ms, completed_ms;
    int64_t purge_at_ms; /* of an ended job; IL__NEVER = never purged; 0 while it is live */
};

/* Totals of a queue, as il_queue_info has them. */
struct il__totals {
#define X(name, total) uint64_t total;
#include "core/totals.def"
#undef X
};

/* The children of a parent, counted from their rows. `n_failed` are those that FAILED or were
 * CANCELLED. */
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
#define IL__SAY_CANCELLED "cancelled" /* the reason of a cancel without one */
#define IL__SAY_NO_PARENT "no such parent job"
#define IL__SAY_NOT_A_PARENT "the job is not a parent"
#define IL__SAY_PARENT_ENDED "the parent has ended"
#define IL__SAY_PARENT_SEALED "the parent is sealed: no more children are allowed"
#define IL__SAY_PARENT_FULL "the parent already has all its children"
#define IL__SAY_OTHER_JOB "the id belongs to a job with another queue or payload"
#define IL__SAY_OTHER_RESULT "the job was already finished with another result"
#define IL__SAY_NO_RETRY_RUNNING "the job is running"
#define IL__SAY_NO_RETRY_COMPLETED "the job is completed"
#define IL__SAY_NO_RETRY_PARENT "a parent cannot be retried, but its children can"

/* ---- queries --------------------------------------------------------------------------------- */

bool il__job_ended(il_job_state state); /* COMPLETED, FAILED, CANCELLED */
/* The state to show: SCHEDULED becomes READY once its run_at is due. */
il_job_state il__job_view(const struct il__job *j, int64_t wall_ms);
/* Has its claim expired? */
bool il__job_expired(const struct il__job *j, int64_t now_ms);
/* Is it running with this token? */
bool il__job_held(const struct il__job *j, uint64_t token);
/* Which of two READY jobs comes first: by priority, run_at, seq. */
bool il__job_before(const struct il__job *a, const struct il__job *b);
/* Does this job, which has the unique key, still block others from it? */
bool il__job_keeps_key(const struct il__job *j, int64_t wall_ms);
/* The value of `remaining_ms` for the job. */
int64_t il__job_remaining_ms(const struct il__job *j, int64_t now_ms);
/* job_show.c: the numbers of a job for display, and the totals of a queue. */
void il__job_show(const struct il__job *j, const struct il__children *children, int64_t now_ms,
                  int64_t wall_ms, il_job_info *info);
void il__totals_show(const struct il__totals *t, il_queue_info *info);

/* ---- effects of the ops ---------------------------------------------------------------------- */

/* Where a text is returned, it is the job's new error (NULL: unchanged), and lives as long as the
 * op. */

/* A new row; in->max_attempts 0 means the queue's setting. */
void il__job_push(struct il__job *j, const struct il__job_env *e, const il_op *op, uint64_t seq);
/* May `parent` (NULL: none) get one more child when it has n_now? IL_OK, or the status and
 * *ret_detail. */
il_status il__job_may_adopt(const struct il__job *parent, uint64_t n_now, const char **ret_detail);
void      il__job_promote(struct il__job *j);
void il__job_claim(struct il__job *j, const struct il__job_env *e, const il_op *op, uint64_t token);
void il__job_heartbeat(struct il__job *j, const struct il__job_env *e, const il_op *op);
void il__job_finish(struct il__job *j, const struct il__job_env *e);
const char *il__job_fail(struct il__job *j, const struct il__job_env *e, const il_op *op);
void        il__job_snooze(struct il__job *j, const struct il__job_env *e, const il_op *op);
/* Its claim has expired. */
const char *il__job_recover(struct il__job *j, const struct il__job_env *e);
/* Not for a parent. Nothing happens to one that has ended. */
const char *il__job_cancel(struct il__job *j, const struct il__job_env *e, bool now,
                           const char *reason);
/* IL_OK, or IL_STATE and *ret_detail. An ended job becomes live again and first needs its unique
 * key back: do not call this while another job keeps it. */
bool      il__job_retry_revives(const struct il__job *j);
il_status il__job_retry(struct il__job *j, const struct il__job_env *e, const char **ret_detail);

/* ---- parents --------------------------------------------------------------------------------- */

/* No more children: IL_OK, or IL_STATE and *ret_detail. Call il__job_end_parent() next. */
il_status il__job_seal(struct il__job *j, const struct il__job_env *e, const char **ret_detail);
/* The first step of cancelling a live parent; then cancel its children and call
 * il__job_end_parent(). */
const char *il__job_cancel_parent(struct il__job *j, const struct il__job_env *e,
                                  const char *reason);
#define IL__CHILDREN_TEXT_BYTES 64
/* Does the parent end now? If so its state is set, *ret_error is its new error (in `text`) or NULL,
 * and the caller sets its children's purge_at. */
bool il__job_end_parent(struct il__job *j, const struct il__job_env *e,
                        const struct il__children *c, char text[IL__CHILDREN_TEXT_BYTES],
                        const char **ret_error);
/* This ended job's parent is no longer live: the job may be purged from now on. */
void il__job_unkeep(struct il__job *j, const il_queue_opts *opts, int64_t wall_ms);

/* ---- late or repeated ------------------------------------------------------------------------ */

/*
 * A heartbeat, finish, fail or snooze of a job that is not running with its token: sets status and
 * detail, and counts totals->stale. same_result: the finish has the stored result. `worker` claimed
 * it last.
 */
void il__job_answer_late(il_op *op, const struct il__job *j, const struct il__job_env *e,
                         bool same_result, const char *worker);

/* STALE, and what happened to the claim. */
void il__job_say_stale(il_op *op, const struct il__job *j, const char *worker);

/* Backoff before the attempt after `attempt`: doubled each time, with jitter from a stable hash of
 * id and attempt. */
int64_t il__backoff_ms(const il_queue_opts *opts, const char *id, uint32_t attempt);

#endif
