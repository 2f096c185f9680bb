/*
 * job.h: one-line helpers for ops on jobs, queues and schedules, based on t_op_run().
 */
#ifndef T_JOB_H
#define T_JOB_H

#include "harness/store.h"

struct t_job_args {
    int         unused_;
    const char *data; /* a string, unless data_bytes says otherwise */
    size_t      data_bytes;
    const char *group;
    const char *unique_key;
    int64_t     unique_for_ms;
    const char *parent;
    uint32_t    n_children;
    int32_t     priority;
    int64_t     delay_ms;
    int64_t     run_at_ms;
    uint32_t    max_attempts;
    uint32_t    limit;
    int64_t     lease_ms;
    int32_t     progress; /* with T_PROGRESS(); else -1 */
    bool        has_progress;
    const char *text;
    const char *claim; /* id of a claim; a new one by default */
    const char *tenant;
    uint32_t    flags;
};

#define T_JOB(...) ((struct t_job_args){ .unused_ = 0, __VA_ARGS__ })
#define T_PROGRESS(n) .progress = (n), .has_progress = true

/* Build an op without applying it, for batches. JOB_CLAIM: `id` is not used. */
il_op t_job_op(il_op_type type, const char *queue, const char *worker, const char *id,
               uint64_t token, struct t_job_args a);

#define t_job_run_(s, type, queue, worker, id, token, ...) \
    t_op_run(s, NULL, t_job_op(type, queue, worker, id, token, T_JOB(__VA_ARGS__)))
#define t_push(s, queue, id, ...) t_job_run_(s, IL_OP_JOB_PUSH, queue, NULL, id, 0, __VA_ARGS__)
#define t_claim(s, queue, worker, ...) \
    t_job_run_(s, IL_OP_JOB_CLAIM, queue, worker, NULL, 0, __VA_ARGS__)
#define t_heartbeat(s, id, token, ...) \
    t_job_run_(s, IL_OP_JOB_HEARTBEAT, NULL, NULL, id, token, __VA_ARGS__)
#define t_finish(s, id, token, ...) \
    t_job_run_(s, IL_OP_JOB_FINISH, NULL, NULL, id, token, __VA_ARGS__)
#define t_job_fail(s, id, token, ...) \
    t_job_run_(s, IL_OP_JOB_FAIL, NULL, NULL, id, token, __VA_ARGS__)
#define t_snooze(s, id, token, ...) \
    t_job_run_(s, IL_OP_JOB_SNOOZE, NULL, NULL, id, token, __VA_ARGS__)
#define t_cancel(s, id, ...) t_job_run_(s, IL_OP_JOB_CANCEL, NULL, NULL, id, 0, __VA_ARGS__)
#define t_retry(s, id, ...) t_job_run_(s, IL_OP_JOB_RETRY, NULL, NULL, id, 0, __VA_ARGS__)
#define t_seal(s, id, ...) t_job_run_(s, IL_OP_JOB_SEAL, NULL, NULL, id, 0, __VA_ARGS__)
#define t_job_get(s, id, ...) t_job_run_(s, IL_OP_JOB_GET, NULL, NULL, id, 0, __VA_ARGS__)
#define t_pause(s, queue, ...) t_job_run_(s, IL_OP_QUEUE_PAUSE, queue, NULL, NULL, 0, __VA_ARGS__)

/* Claim one job, which must be `id`; its token. Or none. */
uint64_t t_claim_is(struct t_store *s, const char *queue, const char *worker, const char *id);
void     t_claim_none(struct t_store *s, const char *queue, const char *worker);
/* The job, which must be in this state. */
const il_job_info *t_job_is(struct t_store *s, const char *id, il_job_state state);

/* Settings: t_queue_set(s, "q", .rate_n = 5). */
#define t_queue_set(s, q_, ...) \
    t_op_run(s, NULL, (il_op){ .type = IL_OP_QUEUE_SET, .key = q_, .in.queue = { __VA_ARGS__ } })
/* The queue as it is shown; fails when there is none of exactly this name. */
const il_queue_info *t_queue(struct t_store *s, const char *name);

/* Listings: t_job_list(s, "q", .limit = 3). */
#define t_page_(s, op_type, q_, ...) \
    t_op_run(s, NULL, (il_op){ .type = op_type, .key = q_, .in.list = { __VA_ARGS__ } })
#define t_job_list(s, q_, ...) t_page_(s, IL_OP_JOB_LIST, q_, __VA_ARGS__)
#define t_purge(s, q_, ...) t_page_(s, IL_OP_JOB_PURGE, q_, __VA_ARGS__)
#define t_queue_list(s, ...) t_page_(s, IL_OP_QUEUE_LIST, NULL, __VA_ARGS__)
#define t_cron_list(s, q_, ...) t_page_(s, IL_OP_CRON_LIST, q_, __VA_ARGS__)
#define T_STATE(state) (UINT32_C(1) << IL_JOB_##state)

/* Schedules: t_cron_set(s, "q", .name = "nightly", .schedule = "@daily"). */
#define t_cron_set(s, q_, ...) \
    t_op_run(s, NULL, (il_op){ .type = IL_OP_CRON_SET, .key = q_, .in.cron = { __VA_ARGS__ } })
#define t_cron_remove(s, entry) \
    t_op_run(s, NULL, (il_op){ .type = IL_OP_CRON_REMOVE, .in.cron.name = entry })
/* The entry as it is shown; fails when there is none. */
const il_cron_info *t_cron(struct t_store *s, const char *name);

/* Push jobs PREFIX0 .. PREFIXn-1 in batches. */
void t_push_many(struct t_store *s, const char *queue, const char *prefix, unsigned n,
                 struct t_job_args a);

#endif
