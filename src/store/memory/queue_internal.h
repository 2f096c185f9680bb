/*
 * queue_internal.h: the tables of jobs, queues and schedules in the memory engine, shared by its
 * queue_*.c files.
 *
 * The state of a job determines the containers it is in; only il__mem_job_leave() and
 * il__mem_job_enter() move it. Counts are the sizes of these containers.
 *
 *   any state  queue->in_state, by seq
 *   SCHEDULED  queue->later, by run_at
 *   READY      queue->ages, by run_at; group->ready, by priority; while the group has room and a
 *              job, it is in queue->turns, by its first job
 *   RUNNING    queue->running and all->running, by expiry; group->running (a parent is in none of
 *              these)
 *   ended      all->ended, by purge_at
 *
 * A claim therefore takes the first job of the first group, however many jobs have ended or wait
 * behind a full group.
 *
 *   queue.c         queues and their settings; dispatch; its part of a sweep
 *   queue_tables.c  queues, unique keys and workers
 *   queue_rows.c    jobs and groups: finds, creates, moves and deletes them
 *   queue_job.c     push, heartbeat, finish, fail, snooze, cancel, retry, seal; recovery
 *   queue_claim.c   claim
 *   queue_cron.c    schedules
 *   queue_show.c    get, list and purge
 */
#ifndef IL_STORE_MEMORY_QUEUE_INTERNAL_H
#define IL_STORE_MEMORY_QUEUE_INTERNAL_H

#include "base/heap.h"
#include "base/tree.h"
#include "core/cron.h"
#include "core/job.h"
#include "store/memory/queue.h"

/* A text that several jobs share. */
struct mem_text {
    unsigned n_refs;
    char     text[];
};

/* The lists a job can be in. */
enum mem_link {
    LINK_GROUP, /* running jobs of its group */
    LINK_CHILD, /* of its parent: live, completed, failed */
    LINK_BY,    /* running jobs of the last claim of a worker */
    N_LINKS
};

struct mem_job;
struct mem_jobs {
    struct mem_job *head, *tail;
    size_t          n;
};

enum mem_children {
    CHILD_LIVE,
    CHILD_COMPLETED,
    CHILD_FAILED,
    N_CHILD_LISTS
};

struct mem_group {
    struct mem_queue    *queue;
    struct mem_group    *prev, *next; /* in queue->groups */
    uint64_t             hash;
    bool                 limited;  /* false: the group of jobs without a group */
    bool                 in_turns; /* is it in queue->turns? */
    struct il__heap_node turn;
    struct il__heap      ready;   /* by priority, run_at, seq */
    struct mem_jobs      running; /* LINK_GROUP */
    size_t               n_jobs;  /* that name it, in any state */
    char                 name[];
};

struct mem_queue {
    uint64_t             hash;
    struct mem_queue    *next; /* all of the store's */
    bool                 made; /* false: only a schedule names it */
    bool                 paused;
    struct mem_text     *reason; /* NULL = none */
    il_queue_opts        opts;
    struct il__totals    totals;
    struct il__heap      turns;   /* struct mem_group */
    struct il__heap      running; /* struct mem_job, by expiry, seq */
    struct il__heap      crons;   /* struct mem_cron, by next tick, name */
    struct mem_group    *groups;
    struct mem_group    *no_group; /* of the jobs without a group; not in groups */
    struct il__heap      ages;     /* READY jobs, by run_at */
    struct il__tree      later;    /* SCHEDULED jobs, by run_at, seq */
    struct il__tree      in_state[IL_JOB_STATE_COUNT]; /* struct mem_job, by seq */
    struct il__tree      cron_names;                   /* struct mem_cron, by name */
    struct il__tree_node by_name;                      /* in all->by_name */
    int64_t             *starts; /* a ring: claims within the rate's period, oldest first */
    size_t               i_start, n_starts, starts_size;
    const char          *name; /* in tenant[], after the tenant */
    char                 tenant[];
};

struct mem_job {
    struct il__job       row;
    uint64_t             hash;
    struct mem_queue    *queue;
    struct mem_group    *group;
    struct mem_job      *parent;    /* NULL = none, or gone */
    struct mem_jobs     *children;  /* a parent's, N_CHILD_LISTS of them */
    struct mem_worker   *by;        /* whose last claim gave it */
    struct il__heap_node turn;      /* see above: in a heap of its queue or group */
    struct il__heap_node due;       /* in a heap of the store */
    struct il__heap_node age;       /* of a READY one, in queue->ages */
    struct il__tree_node by_seq;    /* in queue->in_state */
    struct il__tree_node by_run_at; /* of a SCHEDULED one, in queue->later */
    bool                 had_ended; /* when it was last removed from its lists */
    struct {
        struct mem_job *prev, *next;
    } links[N_LINKS];
    bool             has_key; /* the entry of its unique key names it */
    uint64_t         unique_hash;
    struct mem_text *worker;
    struct mem_text *message;
    struct mem_text *error_text; /* owns error; NULL = it is a constant */
    const char      *error;
    void            *result;
    size_t           result_bytes;
    char            *error_room; /* a parent's: room for its error */
    const char      *id;
    const char      *unique_key;
    const char      *parent_id;
    const void      *payload;
    size_t           payload_bytes;
    char             data[]; /* all of these */
};

struct mem_worker {
    uint64_t           hash;
    struct mem_queue  *queue;
    struct mem_worker *prev, *next;                   /* by seen_ms */
    int64_t            seen_ms;                       /* its last claim */
    char               claim_id[IL_ID_BYTES_MAX + 1]; /* "" = it gave nothing */
    struct mem_jobs    jobs;                          /* LINK_BY, by token */
    char               name[];
};

struct mem_cron {
    uint64_t             hash;
    struct mem_queue    *queue;
    struct il__cron      cron;
    struct il__heap_node due;      /* in all->crons */
    struct il__heap_node turn;     /* in queue->crons */
    struct il__tree_node by_name;  /* in all->cron_names */
    struct il__tree_node of_queue; /* in queue->cron_names */
    il_missed            missed;
    int32_t              priority;
    uint32_t             max_attempts;
    uint64_t             n_ticks;
    int64_t              next_ms, last_ms;
    const char          *schedule;
    const void          *payload;
    size_t               payload_bytes;
    char                 name[]; /* then schedule and payload */
};

/* All of a store. */
struct mem_queues {
    struct il__map     queues;     /* by tenant, name */
    struct il__map     jobs;       /* by tenant, id */
    struct il__map     groups;     /* by queue, name */
    struct il__map     uniques;    /* the job that took a key last, by queue, key */
    struct il__map     workers;    /* by queue, name */
    struct il__map     crons;      /* by tenant, name */
    struct il__tree    by_name;    /* queues, by tenant, name */
    struct il__tree    cron_names; /* by tenant, name */
    struct mem_queue  *all;        /* queues */
    struct mem_worker *oldest, *newest;
    struct il__heap    running;   /* struct mem_job, by expiry, seq */
    struct il__heap    ended;     /* struct mem_job, by purge_at, seq */
    struct il__heap    cron_heap; /* struct mem_cron, by next tick, tenant, name */
};

/* queue.c: the next node of the op's tenant whose second name has the op's prefix, after `after`
 * (NULL: the first). */
const struct il__tree_node *il__mem_next_name(const struct il__tree *t, const il_op *op,
                                              const char *after);

/* ---- queue_tables.c: queues, unique keys, workers -------------------------------------------- */

struct mem_text *il__mem_text_new(const char *text); /* NULL: no memory */
struct mem_text *il__mem_text_ref(struct mem_text *t);
void             il__mem_text_unref(struct mem_text *t); /* NULL is fine */
DEFINE_AUTO(struct mem_text, il__mem_text_unref)
#define AUTO_TEXT AUTO(il__mem_text_unrefp)

void il__mem_jobs_add(struct mem_jobs *list, struct mem_job *j, enum mem_link link);
void il__mem_jobs_remove(struct mem_jobs *list, struct mem_job *j, enum mem_link link);

/* The queue of this name, created or not; _made: only if it was created. _get creates the row, not
 * the queue. */
struct mem_queue *il__mem_queue_find(struct mem_store *m, const char *tenant, const char *name);
struct mem_queue *il__mem_queue_made(struct mem_store *m, const il_op *op);
struct mem_queue *il__mem_queue_get(struct mem_store *m, const char *tenant, const char *name);
void              il__mem_queue_wake(struct mem_store *m, const struct mem_queue *q);
/* The job that owns the key; and assign the key to this job, for which there is room. */
struct mem_job *il__mem_unique_find(struct mem_store *m, const struct mem_queue *q,
                                    const char *key);
void            il__mem_unique_take(struct mem_store *m, struct mem_job *j);
void            il__mem_unique_leave(struct mem_store *m, struct mem_job *j);
uint64_t        il__mem_unique_hash(const struct mem_queue *q, const char *key);

struct mem_worker *il__mem_worker_find(struct mem_store *m, const struct mem_queue *q,
                                       const char *name);
struct mem_worker *il__mem_worker_get(struct mem_store *m, struct mem_queue *q, const char *name);
/* The worker claims now; the jobs of its last claim are forgotten. */
void il__mem_worker_note(struct mem_store *m, struct mem_worker *w);
void il__mem_worker_free(struct mem_store *m, struct mem_worker *w);

/* ---- queue_rows.c: jobs and groups ----------------------------------------------------------- */

/* The orders of the heaps of a queue and of the store. */
void              il__mem_queue_order(struct mem_queue *q);
void              il__mem_queues_order(struct mem_queues *all);
struct mem_group *il__mem_group_new(struct mem_queue *q, const char *name);
/* The limit of its groups has changed. */
void il__mem_queue_regroup(struct mem_queue *q);

struct mem_job *il__mem_job_find(struct mem_store *m, const char *tenant, const char *id);
/* A new job for a push, not yet in a table but with room reserved in each; NULL: no memory. */
struct mem_job *il__mem_job_new(struct mem_store *m, const il_op *op, struct mem_queue *q);
void il__mem_job_drop(struct mem_store *m, struct mem_job *j); /* one that was not linked */
/* Its row is complete: add it to the tables. */
void il__mem_job_link(struct mem_store *m, struct mem_job *j, struct mem_job *parent);
void il__mem_job_delete(struct mem_store *m, struct mem_job *j);
/* Around every change of a row: remove the job from the containers of its old state, add it to
 * those of the new one. */
void il__mem_job_leave(struct mem_store *m, struct mem_job *j);
void il__mem_job_enter(struct mem_store *m, struct mem_job *j);
/* Set its error; NULL: unchanged. `owner` (may be NULL) holds the text. */
void                il__mem_job_error(struct mem_job *j, const char *error, struct mem_text *owner);
void                il__mem_job_wake(struct mem_store *m, const struct mem_job *j);
struct il__job_env  il__mem_job_env(const struct mem_store *m, const struct mem_job *j);
struct il__children il__mem_job_children(const struct mem_job *j);

/* ---- queue_job.c ----------------------------------------------------------------------------- */

void il__mem_push(struct mem_store *m, il_op *op);
void il__mem_job_claimed_op(struct mem_store *m, il_op *op); /* heartbeat, finish, fail, snooze */
void il__mem_job_cancel(struct mem_store *m, il_op *op);
void il__mem_job_retry(struct mem_store *m, il_op *op);
void il__mem_job_seal(struct mem_store *m, il_op *op);
/* Its claim has expired. */
void il__mem_job_recover(struct mem_store *m, struct mem_job *j);

/* ---- queue_claim.c --------------------------------------------------------------------------- */

void il__mem_claim(struct mem_store *m, il_op *op);

/* ---- queue_show.c ---------------------------------------------------------------------------- */

/*
 * Reserve room in the op's results for a job, before anything changes, so that showing it cannot
 * fail. n_more: bytes of the texts that the op will add. False: no memory.
 */
struct mem_room {
    size_t i_slot;
    char  *at, *end;
};
enum {
    SHOW_PAYLOAD = 1 << 0,
    SHOW_RESULT  = 1 << 1,
    SHOW_SIZES   = 1 << 2, /* of both, though they are not shown */
};
bool il__mem_result_room(il_op *op, const struct mem_job *j, unsigned blobs, size_t n_more,
                         struct mem_room *ret) MUST_USE;
void il__mem_show_job(struct mem_store *m, il_op *op, const struct mem_job *j, unsigned blobs,
                      struct mem_room *room);
/* Both, and set the status; IL_NOMEM when there is no room. */
void il__mem_answer(struct mem_store *m, il_op *op, const struct mem_job *j, il_status status);

void il__mem_job_get(struct mem_store *m, il_op *op);
void il__mem_job_list(struct mem_store *m, il_op *op);
void il__mem_job_purge(struct mem_store *m, il_op *op);

/* ---- queue_cron.c ---------------------------------------------------------------------------- */

void il__mem_cron_set(struct mem_store *m, il_op *op);
void il__mem_cron_remove(struct mem_store *m, il_op *op);
void il__mem_cron_list(struct mem_store *m, il_op *op);
/* either may be NULL */
void il__mem_cron_init(struct il__heap *by_next, struct il__heap *of_queue);
void il__mem_cron_free(struct mem_store *m, struct mem_cron *c);
/* Push the jobs of the due entries of a queue, or of all (NULL), up to `budget`. False: no
 * memory. */
bool il__mem_tick(struct mem_store *m, struct mem_queue *q, uint32_t budget, uint32_t *ret_n)
    MUST_USE;
/* The next tick of a queue, or of all (NULL). */
int64_t il__mem_next_tick(const struct mem_store *m, const struct mem_queue *q);

#endif
