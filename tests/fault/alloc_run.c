/*
 * alloc_run.c: each op on runs with the n-th allocation failing, n = 1, 2, … until none fails. An
 * op that reports IL_NOMEM has changed nothing: all runs, logs, leases and waiters are as before.
 * When repeated, it works.
 */
#include "harness/run.h"

#include <inttypes.h>

#include "base/buf.h"
#include "fault/alloc_inject.h"
#include "harness/suite.h"

#define N_MAX 10000

/* Everything that can be seen, as text. */
static char *
dump(struct t_store *s)
{
    struct il__buf text = { .n_bytes_max = 1 << 20 };

    for (unsigned i = 0; i < 2; i++) {
        const il_op *op = T_IS(t_list(s, NULL, .flags = i == 0 ? 0 : IL_LIST_WAITERS), IL_OK);
        for (size_t j = 0; j < op->out.n_items; j++) {
            const il_lease_info *l = &op->out.items[j];
            il__buf_addf(&text, "%s %s %s %" PRIu64 " %s %" PRId64 " %s %s\n", l->key, l->holder,
                         il_lease_state_name(l->state), l->fence, l->reason, l->remaining_ms,
                         l->meta, l->place);
        }
    }
    const il_op *op = T_IS(t_run_list(s, NULL), IL_OK);
    for (size_t j = 0; j < op->out.n_runs; j++) {
        const il_run_info *r   = &op->out.runs[j];
        const il_op       *log = T_IS(t_run_log(s, r->id, 0), IL_OK);
        il__buf_addf(
            &text, "%s %s %s %s '%s' '%s' %u %u %d %u %" PRIu64 " %" PRIu64 " %" PRId64 "\n", r->id,
            r->key, r->holder, il_run_state_name(r->state), r->error, r->stage, r->cancelled,
            r->n_joined, r->progress, r->position, r->fence, r->log_bytes, r->updated_at_ms);
        il__buf_addf(&text, "%.*s\n", (int)log->out.value_bytes, (const char *)log->out.value);
    }
    return il__buf_take(&text);
}

/* A running run, one that waits, a slot, a plain waiter; one that is offered a key; and one that
 * has ended. */
static uint64_t
set_up(struct t_store *s)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h1", "runs"), IL_OK)->out.fence;
    uint64_t other = T_IS(t_run_start(s, "k2", "h2", "ended"), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k", "h3", "waits", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k", NULL, "slot", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    (void)T_IS(t_acquire(s, "k", "w", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_run_start(s, "k2", "h4", "offered", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_finish(s, "ended", "h2", other, IL_RUN_FAILED, .error = "e"), IL_OK);
    (void)T_IS(t_run_start(s, "free", NULL, "startable", T_SLOT), IL_OK);
    (void)T_IS(t_run_stage(s, "runs", "h1", fence, .stage = "one", .log = "log", .log_bytes = 3),
               IL_OK);
    return fence;
}

/* The i-th op that is tried, and its status when nothing fails. */
static bool
op_at(unsigned i, uint64_t fence, il_op *op, il_status *expected)
{
    static const char long_log[20000];
    il_op_type        start = IL_OP_RUN_START;
    struct t_run_args end   = { .error = "why", .log = long_log, .log_bytes = sizeof long_log };
    const struct {
        il_op     op;
        il_status expected;
    } all[] = {
        { t_run_op(start, "new", "h", "new", 0, T_RUN_ARGS(.meta = "m", .place = "p")), IL_OK },
        { t_run_op(start, "new", NULL, "new", 0, T_RUN_ARGS(T_SLOT)), IL_OK },
        { t_run_op(start, "k", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_JOIN)), IL_DUPLICATE },
        { t_run_op(start, "k", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_SKIP)), IL_DUPLICATE },
        { t_run_op(start, "k", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_REJECT)), IL_HELD },
        { t_run_op(start, "k", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_QUEUE)), IL_QUEUED },
        { t_run_op(start, "k", "h", "new", 0,
                   T_RUN_ARGS(.policy = IL_POLICY_QUEUE, .queue_max = 1)),
          IL_LIMIT },
        { t_run_op(start, "k", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_REPLACE_PENDING)),
          IL_QUEUED },
        { t_run_op(start, "k", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_CANCEL_RUNNING)),
          IL_QUEUED },
        { t_run_op(start, "k", NULL, "new", 0,
                   T_RUN_ARGS(T_SLOT, .policy = IL_POLICY_CANCEL_RUNNING)),
          IL_OK },
        { t_run_op(start, "k2", "h", "new", 0, T_RUN_ARGS(.policy = IL_POLICY_REPLACE_PENDING)),
          IL_OK },
        { t_run_op(start, "k2", "h4", "offered", 0, T_RUN_ARGS(.ttl_ms = 5000)), IL_OK },
        { t_run_op(start, "free", "h", "startable", 0, T_RUN_ARGS(.ttl_ms = 5000)), IL_OK },
        { t_run_op(start, "k", "h", "slot", 0, T_RUN_ARGS(.ttl_ms = 5000)), IL_HELD },
        { t_run_op(start, "k", "h1", "runs", 0, T_RUN_ARGS(.ttl_ms = 5000)), IL_OK },
        { t_run_op(start, "k", "h3", "waits", 0, T_RUN_ARGS(.wait_ms = 5000)), IL_QUEUED },
        { t_run_op(start, "k2", "h2", "ended", 0, T_RUN_ARGS(.ttl_ms = 0)), IL_STATE },
        { t_run_op(IL_OP_RUN_STAGE, NULL, "h1", "runs", fence,
                   T_RUN_ARGS(.stage = "two", .percent = 51, .log = long_log, .log_bytes = 20000)),
          IL_OK },
        { t_run_finish_op(t_run_op(IL_OP_RUN_FINISH, NULL, "h1", "runs", fence, end),
                          IL_RUN_FAILED),
          IL_OK },
        { t_run_finish_op(t_run_op(IL_OP_RUN_FINISH, NULL, "h1", "waits", fence, end),
                          IL_RUN_FAILED),
          IL_STALE },
        { t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "runs", 0, T_RUN_ARGS(.error = "why")), IL_OK },
        { t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "waits", 0, T_RUN_ARGS(.error = "why")), IL_OK },
        { t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "slot", 0, T_RUN_ARGS(.error = "why")), IL_OK },
        { t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "offered", 0, T_RUN_ARGS(.error = "why")), IL_OK },
        { t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "ended", 0, T_RUN_ARGS(.error = "why")), IL_OK },
        { t_op(IL_OP_BREAK, "k", NULL, fence, T_ARGS(.reason = "why")), IL_OK },
        { t_op(IL_OP_BREAK, "k", NULL, fence, T_ARGS(.reason = "why", .flags = IL_BREAK_NOW)),
          IL_OK },
        { t_op(IL_OP_RELEASE, "k", "h1", fence, T_ARGS(.ttl_ms = 0)), IL_OK },
        { t_run_op(IL_OP_RUN_LIST, NULL, NULL, NULL, 0, T_RUN_ARGS(.limit = 2)), IL_OK },
        { t_run_op(IL_OP_RUN_GET, NULL, NULL, "waits", 0, T_RUN_ARGS(.limit = 0)), IL_OK },
        { t_run_op(IL_OP_RUN_LOG, NULL, NULL, "runs", 0, T_RUN_ARGS(.limit = 0)), IL_OK },
    };

    if (i >= ARRAY_LEN(all))
        return false;
    *op       = all[i].op;
    *expected = all[i].expected;
    return true;
}

/* The i-th op with its n-th allocation failing. False: there is no such allocation. */
static bool
fail_once(const struct t_engine *engine, unsigned i, unsigned n)
{
    struct t_store *s        = t_store_new(engine);
    uint64_t        fence    = set_up(s);
    char           *before   = dump(s);
    il_op           op       = { 0 };
    il_status       expected = IL_OK;

    T_TRUE(op_at(i, fence, &op, &expected));
    alloc_inject_arm(ALLOC_INJECT_OURS, ALLOC_INJECT_ONCE, n);
    il_status st = il_apply(t_handle(s), &op, 1, NULL);
    alloc_inject_disarm();
    bool fired = alloc_inject_fired();
    if (st == IL_NOMEM || op.status == IL_NOMEM) {
        T_TRUE(fired);
        char *after = dump(s);
        if (strcmp(before, after) != 0)
            T_FAIL("op %u, allocation %u changed something:\n%s---\n%s", i, n, before, after);
        il__free(after);
        il_op_release(&op);
        T_EQ(il_apply(t_handle(s), &op, 1, NULL), IL_OK);
    }
    if (op.status != expected)
        T_FAIL("op %u, allocation %u: %s, not %s", i, n, il_status_name(op.status),
               il_status_name(expected));
    il_op_release(&op);
    t_run_invariants(s, NULL);
    il__free(before);
    t_store_free(s);
    return fired;
}

T_TEST(a_failed_op_changes_nothing)
{
    il_op     op;
    il_status expected;

    for (unsigned i = 0; op_at(i, 1, &op, &expected); i++) {
        unsigned n = 1;
        while (fail_once(s->engine, i, n))
            T_LESS(n++, N_MAX);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { T_ROW(a_failed_op_changes_nothing) };

    alloc_inject_install();
    return T_SUITE("alloc_run", tests);
}
