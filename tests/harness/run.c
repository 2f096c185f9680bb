/*
 * run.c: one-line helpers for ops on runs, and checks that hold for all runs.
 */
#include "harness/run.h"

#include <inttypes.h>

il_op
t_run_op(il_op_type type, const char *key, const char *holder, const char *id, uint64_t fence,
         struct t_run_args a)
{
    il_op op = { .type   = type,
                 .flags  = a.flags,
                 .tenant = a.tenant,
                 .key    = key,
                 .holder = holder,
                 .fence  = fence };

    if (type == IL_OP_RUN_LIST) {
        op.in.list = (il_list_in){
            .prefix = a.prefix, .cursor = a.cursor, .limit = a.limit, .states = a.states
        };
        return op;
    }
    op.in.run = (il_run_in){
        .id         = id,
        .policy     = a.policy,
        .queue_max  = a.queue_max,
        .ttl_ms     = a.ttl_ms,
        .wait_ms    = a.wait_ms,
        .settle_ms  = a.settle_ms,
        .keep_ms    = a.keep_ms,
        .trigger    = a.trigger,
        .by         = a.by,
        .meta       = a.meta,
        .place      = a.place,
        .stage      = a.stage,
        .progress   = a.percent - 1,
        .error      = a.error,
        .log        = a.log,
        .log_bytes  = a.log_bytes,
        .offset     = a.offset,
        .live_max   = a.live_max,
        .day_max    = a.day_max,
        .minute_max = a.minute_max,
        .hour_max   = a.hour_max,
    };
    return op;
}

il_op
t_run_finish_op(il_op op, il_run_state state)
{
    op.in.run.state = state;
    return op;
}

il_op
t_run_log_op(il_op op, uint64_t offset)
{
    op.in.run.offset = offset;
    return op;
}

const il_run_info *
t_run_is(const il_op *op, il_status status, il_run_state state, const char *file, int line)
{
    const il_run_info *r = NULL;

    IGNORE(t_is(op, status, file, line) == NULL); /* it is op */
    if (op->out.n_runs != 1)
        t_fail(file, line, "%s shows %zu runs", il_op_name(op->type), op->out.n_runs);
    r = &op->out.runs[0];
    if (r->state != state)
        t_fail(file, line, "run %s is %s (%s), not %s", r->id, il_run_state_name(r->state),
               r->error, il_run_state_name(state));
    return r;
}

/* The lease of a run that is RUNNING. */
static void
check_running(struct t_store *s, const char *tenant, const il_run_info *r)
{
    const il_op         *op = T_IS(t_get(s, r->key, .tenant = tenant), IL_OK);
    const il_lease_info *l  = &op->out.items[0];

    T_EQ(op->out.n_items, 1);
    T_EQU(l->fence, r->fence);
    T_STREQ(l->holder, r->holder);
    T_TRUE(l->state == IL_LEASE_HELD || l->state == IL_LEASE_CLOSING);
    T_EQ(l->remaining_ms, r->remaining_ms);
    T_EQ(l->ttl_ms, r->ttl_ms);
}

void
t_run_invariants(struct t_store *s, const char *tenant)
{
    il_op op = t_run_op(IL_OP_RUN_LIST, NULL, NULL, NULL, 0,
                        T_RUN_ARGS(.tenant = tenant, .limit = IL_PAGE_ITEMS_MAX));

    t_batch(s, &op, 1); /* not among the results that make room for others */
    (void)T_IS(&op, IL_OK);
    for (size_t i = 0; i < op.out.n_runs; i++) {
        const il_run_info *r = &op.out.runs[i];
        T_TRUE(i == 0 || r->seq < op.out.runs[i - 1].seq);
        T_EQ(r->ended_at_ms != 0, r->state != IL_RUN_PENDING && r->state != IL_RUN_RUNNING);
        T_EQ(r->position != 0, r->state == IL_RUN_PENDING);
        if (r->state == IL_RUN_RUNNING)
            check_running(s, tenant, r);
        else
            T_EQ(r->remaining_ms, 0);
        if (r->state == IL_RUN_PENDING)
            T_EQU(r->fence, 0);
    }
    il_op_release(&op);
}
