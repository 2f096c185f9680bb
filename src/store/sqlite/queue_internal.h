/*
 * queue_internal.h: declarations shared by the queue files of the SQLite engine.
 *
 *   queue.c         dispatch; queues as a transaction sees them
 *   job_row.c       rows of jobs: reads them, and writes their changes
 *   queue_group.c   which jobs of a group with a limit can be claimed, and which are blocked
 *   queue_parent.c  parents and children
 *   queue_push.c    push
 *   queue_claim.c   claim
 *   queue_end.c     heartbeat, finish, fail, snooze, cancel, retry, seal
 *   queue_cron.c    schedules
 *   queue_show.c    get and listings
 *   queue_sweep.c   recovery, retention, purge
 *
 * The tables are explained in schema.sql. Everything is race-free because it happens in one BEGIN
 * IMMEDIATE transaction under the lock file: what was read stays true until the commit.
 */
#ifndef IL_STORE_SQLITE_QUEUE_INTERNAL_H
#define IL_STORE_SQLITE_QUEUE_INTERNAL_H

#include "core/job.h"
#include "store/sqlite/queue.h"

/* The lane of il_live for a job that is not claimed. */
static inline int64_t
il__sq_lane(int64_t queue_no, enum il__job_lane kind)
{
    return (int64_t)(8 * (uint64_t)queue_no + (uint64_t)kind);
}

/* How many jobs of a queue are in each state; among the ended ones only FAILED is kept. */
struct sq_depth {
    uint64_t n[IL_JOB_STATE_COUNT];
};

/* A queue as this transaction sees it: read once, changed in memory, written before the commit. */
struct sq_queue {
    int64_t           no;
    const char       *tenant;
    const char       *name;
    const char       *reason; /* why it is paused, or "" */
    il_queue_opts     opts;
    struct il__totals totals;
    struct il__totals saved; /* as in the row */
    struct sq_depth   depth;
    struct sq_depth   saved_depth;
    bool              paused;
    bool              changed; /* settings or pause */
    bool              woken;   /* wake its workers after the commit */
};

/* Behind sq_store.queues. */
struct sq_queues {
    struct sq_queue **items; /* that this transaction has used */
    size_t            n, capacity;
    size_t            i_last; /* the one that was asked for last */
    void             *arena;  /* of the items; lives until the end of the transaction */
};

/* Find a queue; *ret is NULL if there is none. */
bool il__sq_queue_find(struct sq_store *s, const char *tenant, const char *name,
                       struct sq_queue **ret);
/* The queue of a job; if its number has no row, the store is damaged. */
bool il__sq_queue_of(struct sq_store *s, int64_t no, struct sq_queue **ret);
/* Find a queue, or create it with default settings. */
bool il__sq_queue_get(struct sq_store *s, const char *tenant, const char *name,
                      struct sq_queue **ret);
/* Wake the workers that wait for a job of it, after the commit. */
bool il__sq_queue_wake(struct sq_store *s, struct sq_queue *q);
/* Read a row of queue_load and the like, on either connection. */
bool il__sq_queue_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, struct sq_queue *q);

/* A job. Strings are in an arena; "" = none. */
struct sq_job {
    struct il__job j;
    int64_t        queue_no;
    int64_t        parent;  /* its seq; 0 = none */
    int64_t        ordinal; /* among the parent's children; only of a new job */
    bool           blocked; /* READY, but its group is full */
    const char    *id;
    const char    *parent_id;
    const char    *group;
    const char    *unique_key;
    const char    *worker;
    const char    *error;
    const char    *message;
};

/* Find a job, live or ended; *ret_found says whether it exists. On either connection. */
bool il__sq_job_find(struct sq_conn *c, void **arena, const char *tenant, const char *id,
                     struct sq_job *ret, bool *ret_found);
bool il__sq_job_find_seq(struct sq_conn *c, void **arena, int64_t seq, struct sq_job *ret,
                         bool *ret_found);
/* One that is live. */
bool il__sq_job_live(struct sq_conn *c, void **arena, int64_t seq, struct sq_job *ret,
                     bool *ret_found);
/* Read a row of job_live (or job_ready), or of job_done. */
bool il__sq_job_row(struct sq_conn *c, void **arena, sqlite3_stmt *row, bool live,
                    struct sq_job *job);

/* The list of seqs that a statement returns, in the scratch arena. Its parameters are bound. */
struct sq_seqs {
    int64_t *items;
    size_t   n;
};
bool il__sq_seqs(struct sq_conn *c, void **arena, sqlite3_stmt *row, struct sq_seqs *ret);

/* The time, the settings and the totals that decisions about a job of `q` need. */
bool il__sq_job_env(struct sq_store *s, struct sq_queue *q, const struct sq_job *job,
                    struct il__job_env *ret);
/* What a job was before it was changed. */
struct sq_was {
    il_job_state state; /* IL_JOB_NONE: it is new */
    bool         blocked;
};
static inline struct sq_was
il__sq_was(const struct sq_job *job)
{
    return (struct sq_was){ job->j.state, job->blocked };
}
/*
 * Write the new state of a job, and the consequences for its group, its unique key and its waiters.
 * `result` is that of a job that is COMPLETED now. The parent is not updated: see
 * il__sq_parent_try_end().
 */
bool il__sq_job_write(struct sq_store *s, struct sq_queue *q, struct sq_job *job, struct sq_was was,
                      const void *result, size_t result_bytes);
/* Recover a job whose claim is dead; does nothing to others. */
bool il__sq_job_recover(struct sq_store *s, struct sq_queue *q, struct sq_job *job, bool *ret_done);
/* Count a job of the queue that has changed its state; IL_JOB_NONE: it is new, or deleted. */
void il__sq_count_move(struct sq_queue *q, il_job_state was, il_job_state state);
/* Delete a job that is not RUNNING. */
bool il__sq_job_delete(struct sq_store *s, struct sq_queue *q, const struct sq_job *job);

/* Properties of a job, as stored in il_live.flags and il_done.flags. */
int64_t il__sq_job_flags(const struct il__job *j);

/* queue_group.c: a job becomes READY: does it wait for its group? And: a job is no longer running
 * or ready in its group. */
bool il__sq_group_enter(struct sq_store *s, const struct sq_queue *q, struct sq_job *job);
bool il__sq_group_leave(struct sq_store *s, struct sq_queue *q, const struct sq_job *job);

/* queue_parent.c */
/* A child has ended: does its parent (a seq; 0 = none) end, too? */
bool il__sq_parent_try_end(struct sq_store *s, int64_t parent);
/* The same for a parent that was loaded. */
bool il__sq_end_parent(struct sq_store *s, struct sq_queue *q, struct sq_job *parent);
bool il__sq_parent_cancel(struct sq_store *s, struct sq_queue *q, struct sq_job *parent,
                          const il_op *op);
/* How many children a live parent has. */
bool il__sq_children_pushed(struct sq_store *s, int64_t parent, uint64_t *ret_n);
bool il__sq_children_count(struct sq_conn *c, uint64_t parent, struct il__children *ret);

/* Push the job of op->in.job, which does not exist yet, into its queue; `parent` may be NULL. */
bool il__sq_push_new(struct sq_store *s, struct sq_queue *q, const il_op *op,
                     const struct sq_job *parent, struct sq_job *job, bool *ret_added);

/* Process due ticks of one queue (NULL: of all), up to n_max; returns how many jobs were pushed,
 * and whether ticks are left. */
bool il__sq_cron_tick(struct sq_store *s, const char *tenant, const char *queue, uint32_t n_max,
                      uint32_t *ret_pushed, bool *ret_more);
bool il__sq_cron_set(struct sq_store *s, il_op *op);
bool il__sq_cron_remove(struct sq_store *s, il_op *op);
bool il__sq_cron_list(struct sq_conn *c, void **arena, il_op *op);

/* queue_show.c: add a job, or a queue, to the reply. */
bool il__sq_job_show(struct sq_conn *c, const struct sq_state *st, il_op *op, const char *queue,
                     const struct sq_job *job, const void *payload, size_t payload_bytes);
/* The same as the reply to an op that names a job: with token and time left. */
bool il__sq_job_answer(struct sq_store *s, il_op *op, const struct sq_queue *q,
                       const struct sq_job *job);
bool il__sq_queue_show(struct sq_conn *c, const struct sq_state *st, il_op *op,
                       const struct sq_queue *q);
bool il__sq_job_get(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
bool il__sq_job_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);
bool il__sq_queue_list(struct sq_conn *c, const struct sq_state *st, void **arena, il_op *op);

/* The ops. */
bool il__sq_job_push(struct sq_store *s, il_op *op);
bool il__sq_job_claim(struct sq_store *s, il_op *op);
bool il__sq_job_end(struct sq_store *s, il_op *op); /* heartbeat, finish, fail, snooze */
bool il__sq_job_cancel(struct sq_store *s, il_op *op);
bool il__sq_job_retry(struct sq_store *s, il_op *op);
bool il__sq_job_seal(struct sq_store *s, il_op *op);
bool il__sq_job_purge(struct sq_store *s, il_op *op);

/* The first parameters of queue_list and cron_list: tenant, prefix and its end, the name before the
 * page, and the number of rows, one more than the page shows to detect a next page. */
bool il__sq_bind_names(struct sq_conn *c, sqlite3_stmt *row, const il_op *op);

#endif
