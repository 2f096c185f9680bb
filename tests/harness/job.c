/*
 * job.c: one-line helpers for ops on jobs.
 */
#include "harness/job.h"

#include <inttypes.h>
#include <stdio.h>

/* A new id for each claim; it must live as long as its op can be looked at. */
static const char *
new_claim_id(void)
{
    static char     ids[2 * T_RESULTS_MAX][24];
    static unsigned n;
    char           *id = ids[n % (2 * T_RESULTS_MAX)];

    (void)snprintf(id, sizeof ids[0], "claim-%u", ++n);
    return id;
}

il_op
t_job_op(il_op_type type, const char *queue, const char *worker, const char *id, uint64_t token,
         struct t_job_args a)
{
    il_op op = { .type   = type,
                 .flags  = a.flags,
                 .tenant = a.tenant,
                 .key    = queue,
                 .holder = worker,
                 .fence  = token };

    if (type == IL_OP_JOB_CLAIM)
        id = a.claim != NULL ? a.claim : new_claim_id();
    op.in.job = (il_job_in){
        .id            = id,
        .data          = a.data,
        .data_bytes    = a.data_bytes != 0 || a.data == NULL ? a.data_bytes : strlen(a.data),
        .group         = a.group,
        .unique_key    = a.unique_key,
        .unique_for_ms = a.unique_for_ms,
        .parent        = a.parent,
        .n_children    = a.n_children,
        .priority      = a.priority,
        .delay_ms      = a.delay_ms,
        .run_at_ms     = a.run_at_ms,
        .max_attempts  = a.max_attempts,
        .limit         = a.limit,
        .lease_ms      = a.lease_ms,
        .progress      = a.has_progress ? a.progress : -1,
        .text          = a.text,
    };
    return op;
}

uint64_t
t_claim_is(struct t_store *s, const char *queue, const char *worker, const char *id)
{
    const il_op *op = T_IS(t_claim(s, queue, worker), IL_OK);

    T_EQU(op->out.n_jobs, 1);
    T_STREQ(op->out.jobs[0].id, id);
    T_STREQ(op->out.jobs[0].worker, worker);
    T_EQ(op->out.jobs[0].state, IL_JOB_RUNNING);
    T_EQU(op->out.fence, op->out.jobs[0].token);
    return op->out.fence;
}

void
t_claim_none(struct t_store *s, const char *queue, const char *worker)
{
    (void)T_IS(t_claim(s, queue, worker), IL_EMPTY);
}

const il_job_info *
t_job_is(struct t_store *s, const char *id, il_job_state state)
{
    const il_op *op = T_IS(t_job_get(s, id), IL_OK);

    T_EQU(op->out.n_jobs, 1);
    T_STREQ(op->out.jobs[0].id, id);
    if (op->out.jobs[0].state != state)
        T_FAIL("job %s is %s, not %s", id, il_job_state_name(op->out.jobs[0].state),
               il_job_state_name(state));
    return &op->out.jobs[0];
}

const il_queue_info *
t_queue(struct t_store *s, const char *name)
{
    const il_op *op = T_IS(t_queue_list(s, .prefix = name, .limit = 1), IL_OK);

    if (op->out.n_queues != 1 || strcmp(op->out.queues[0].name, name) != 0)
        T_FAIL("there is no queue '%s'", name);
    return &op->out.queues[0];
}

const il_cron_info *
t_cron(struct t_store *s, const char *name)
{
    const il_op *op = T_IS(t_cron_list(s, NULL, .prefix = name, .limit = 1), IL_OK);

    if (op->out.n_crons != 1 || strcmp(op->out.crons[0].name, name) != 0)
        T_FAIL("there is no schedule '%s'", name);
    return &op->out.crons[0];
}

#define BATCH 1000

void
t_push_many(struct t_store *s, const char *queue, const char *prefix, unsigned n,
            struct t_job_args a)
{
    il_op *ops                  = calloc(BATCH, sizeof *ops);
    char(*ids)[IL_ID_BYTES_MAX] = calloc(BATCH, sizeof *ids);

    CHECK(ops != NULL && ids != NULL);
    for (unsigned done = 0; done < n;) {
        unsigned n_batch = MIN(n - done, BATCH);
        for (unsigned i = 0; i < n_batch; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "%s%u", prefix, done + i);
            ops[i] = t_job_op(IL_OP_JOB_PUSH, queue, NULL, ids[i], 0, a);
        }
        t_batch(s, ops, n_batch);
        for (unsigned i = 0; i < n_batch; i++) {
            (void)T_IS(&ops[i], IL_OK);
            il_op_release(&ops[i]);
        }
        done += n_batch;
    }
    free(ops);
    free(ids);
}
