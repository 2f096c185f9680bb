/*
 * job_parent.c: a parent completes once, after its last child; its counts match its children.
 */
#include "harness/job.h"
#include "harness/suite.h"

static void
counts_are(struct t_store *s, const char *id, uint32_t n, uint32_t n_completed, uint32_t n_failed)
{
    const il_job_info *p = &T_IS(t_job_get(s, id), IL_OK)->out.jobs[0];

    T_EQ(p->n_children, n);
    T_EQ(p->n_children_completed, n_completed);
    T_EQ(p->n_children_failed, n_failed);
}

static void
push_parent(struct t_store *s, const char *id, uint32_t n_children)
{
    (void)T_IS(t_push(s, "q", id, .flags = IL_PUSH_PARENT, .n_children = n_children), IL_OK);
}

T_TEST(a_parent_runs_but_is_never_claimed)
{
    const il_op       *op = T_IS(t_push(s, "q", "p", .flags = IL_PUSH_PARENT, .data = "x"), IL_OK);
    const il_job_info *p  = &op->out.jobs[0];

    T_EQ(p->state, IL_JOB_RUNNING);
    T_EQ(p->is_parent, 1);
    T_EQ(p->attempt, 0);
    T_EQU(p->token, 0);
    T_EQ(p->remaining_ms, 0);
    T_EQ(p->started_at_ms, T_WALL_MS_START);
    t_claim_none(s, "q", "w");
    t_pass(s, 86400000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 0); /* no claim, so nothing to recover */
    (void)t_job_is(s, "p", IL_JOB_RUNNING);
    T_EQU(t_queue(s, "q")->n_running, 1);
}

T_TEST(it_completes_with_its_last_child)
{
    push_parent(s, "p", 3);
    for (unsigned i = 0; i < 3; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "c%u", i);
        T_STREQ(T_IS(t_push(s, "q", id, .parent = "p"), IL_OK)->out.jobs[0].parent, "p");
        counts_are(s, "p", i + 1, 0, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        char id[8];
        (void)t_job_is(s, "p", IL_JOB_RUNNING);
        counts_are(s, "p", 3, i, 0);
        (void)snprintf(id, sizeof id, "c%u", i);
        t_pass(s, 10);
        (void)T_IS(t_finish(s, id, t_claim_is(s, "q", "w", id)), IL_OK);
    }
    const il_job_info *p = t_job_is(s, "p", IL_JOB_COMPLETED);
    T_EQ(p->completed_at_ms, T_WALL_MS_START + 30);
    T_STREQ(p->error, "");
    counts_are(s, "p", 3, 3, 0);
    T_EQU(t_queue(s, "q")->completed, 4);
}

T_TEST(early_children_do_not_end_it)
{
    push_parent(s, "p", 2);
    (void)T_IS(t_push(s, "q", "a", .parent = "p"), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_RUNNING); /* one more will come */
    (void)T_IS(t_push(s, "q", "b", .parent = "p"), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_RUNNING);
    (void)T_IS(t_finish(s, "b", t_claim_is(s, "q", "w", "b")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_COMPLETED);
}

T_TEST(seal)
{
    push_parent(s, "p", 0);
    (void)T_IS(t_push(s, "q", "a", .parent = "p"), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .parent = "p"), IL_OK);
    const il_op *op = T_IS(t_seal(s, "p"), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_RUNNING);
    T_EQ(op->out.jobs[0].n_children, 2);
    (void)T_IS(t_seal(s, "p"), IL_OK); /* repeated */
    (void)T_IS(t_finish(s, "b", t_claim_is(s, "q", "w", "b")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_COMPLETED);
    T_EQ(T_IS(t_seal(s, "p"), IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
    op = T_IS(t_seal(s, "a"), IL_STATE);
    T_HAS(op->out.detail, "not a parent");
}

T_TEST(seal_when_all_have_ended)
{
    push_parent(s, "p", 0);
    (void)T_IS(t_push(s, "q", "a", .parent = "p"), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    T_EQ(T_IS(t_seal(s, "p"), IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
}

T_TEST(seal_without_children)
{
    push_parent(s, "p", 0);
    T_EQ(T_IS(t_seal(s, "p"), IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
    counts_are(s, "p", 0, 0, 0);
}

T_TEST(seal_before_all_have_come)
{
    push_parent(s, "p", 5);
    (void)T_IS(t_push(s, "q", "a", .parent = "p"), IL_OK);
    (void)T_IS(t_seal(s, "p"), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .parent = "p"), IL_STATE);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_COMPLETED);
}

T_TEST(it_fails_if_a_child_did)
{
    push_parent(s, "p", 3);
    t_push_many(s, "q", "c", 3, T_JOB(.parent = "p"));
    (void)T_IS(t_job_fail(s, "c0", t_claim_is(s, "q", "w", "c0"), .flags = IL_FAIL_FINAL), IL_OK);
    (void)T_IS(t_cancel(s, "c1"), IL_OK);
    counts_are(s, "p", 3, 0, 2);
    (void)t_job_is(s, "p", IL_JOB_RUNNING);
    const il_op *op = T_IS(t_finish(s, "c2", t_claim_is(s, "q", "w", "c2")), IL_OK);
    T_STREQ(op->out.jobs[0].id, "c2");
    T_STREQ(t_job_is(s, "p", IL_JOB_FAILED)->error, "2 of 3 children failed");
    counts_are(s, "p", 3, 1, 2);
    const il_queue_info *q = t_queue(s, "q");
    T_EQU(q->failed, 2); /* the parent is one of them */
    T_EQU(q->n_failed, 2);
    T_EQU(q->cancelled, 1);
}

T_TEST(a_child_that_is_tried_again_is_live)
{
    push_parent(s, "p", 1);
    (void)T_IS(t_push(s, "q", "c", .parent = "p", .max_attempts = 2), IL_OK);
    (void)T_IS(t_job_fail(s, "c", t_claim_is(s, "q", "w", "c"), .delay_ms = 1), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_RUNNING);
    t_pass(s, 1);
    (void)t_claim_is(s, "q", "w", "c");
    t_pass(s, 30000);
    /* its worker died: that was the last attempt */
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 1);
    (void)t_job_is(s, "c", IL_JOB_FAILED);
    T_STREQ(t_job_is(s, "p", IL_JOB_FAILED)->error, "1 of 1 children failed");
}

T_TEST(a_dead_child_is_retried_while_the_parent_lives)
{
    push_parent(s, "p", 2);
    t_push_many(s, "q", "c", 2, T_JOB(.parent = "p"));
    (void)T_IS(t_job_fail(s, "c0", t_claim_is(s, "q", "w", "c0"), .flags = IL_FAIL_FINAL), IL_OK);
    counts_are(s, "p", 2, 0, 1);
    (void)T_IS(t_retry(s, "c0"), IL_OK);
    counts_are(s, "p", 2, 0, 0);
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 2), IL_OK);
    (void)T_IS(t_finish(s, op->out.jobs[0].id, op->out.jobs[0].token), IL_OK);
    (void)T_IS(t_finish(s, op->out.jobs[1].id, op->out.jobs[1].token), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_COMPLETED);
}

T_TEST(a_dead_child_is_retried_after_the_parent_ended)
{
    push_parent(s, "p", 1);
    (void)T_IS(t_push(s, "q", "c", .parent = "p"), IL_OK);
    (void)T_IS(t_job_fail(s, "c", t_claim_is(s, "q", "w", "c"), .flags = IL_FAIL_FINAL), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_FAILED);
    (void)T_IS(t_retry(s, "c"), IL_OK);
    (void)T_IS(t_finish(s, "c", t_claim_is(s, "q", "w", "c")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_FAILED); /* it stays as it ended */
    counts_are(s, "p", 1, 1, 0);
    T_EQU(t_queue(s, "q")->failed, 2);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

T_TEST(cancel_of_a_parent)
{
    push_parent(s, "p", 0);
    (void)T_IS(t_push(s, "q", "done", .parent = "p"), IL_OK);
    (void)T_IS(t_finish(s, "done", t_claim_is(s, "q", "w", "done")), IL_OK);
    (void)T_IS(t_push(s, "q", "runs", .parent = "p"), IL_OK);
    uint64_t token = t_claim_is(s, "q", "w", "runs");
    (void)T_IS(t_push(s, "q", "ready", .parent = "p"), IL_OK);
    (void)T_IS(t_push(s, "q", "later", .parent = "p", .delay_ms = 1000), IL_OK);
    const il_op *op = T_IS(t_cancel(s, "p", .text = "enough"), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_RUNNING); /* until the last child has ended */
    T_EQ(op->out.jobs[0].cancelled, 1);
    T_STREQ(op->out.jobs[0].error, "enough");
    T_EQ(op->out.jobs[0].n_children_failed, 2);
    (void)t_job_is(s, "done", IL_JOB_COMPLETED);
    T_STREQ(t_job_is(s, "ready", IL_JOB_CANCELLED)->error, "enough");
    T_STREQ(t_job_is(s, "later", IL_JOB_CANCELLED)->error, "enough");
    (void)T_IS(t_push(s, "q", "more", .parent = "p"), IL_STATE);
    op = T_IS(t_heartbeat(s, "runs", token), IL_OK);
    T_EQ(op->out.flags, IL_OUT_CANCEL);
    T_STREQ(op->out.detail, "enough");
    (void)T_IS(t_cancel(s, "p", .text = "again"), IL_OK);
    (void)T_IS(t_finish(s, "runs", token), IL_OK);
    T_STREQ(t_job_is(s, "p", IL_JOB_CANCELLED)->error, "enough");
    counts_are(s, "p", 4, 2, 2);
    T_EQU(t_queue(s, "q")->cancelled, 3);
    (void)T_IS(t_cancel(s, "p"), IL_OK);
    T_EQU(t_queue(s, "q")->cancelled, 3);
}

T_TEST(cancel_of_a_parent_now)
{
    push_parent(s, "p", 9);
    t_push_many(s, "q", "c", 2, T_JOB(.parent = "p"));
    uint64_t token = t_claim_is(s, "q", "w", "c0");
    (void)T_IS(t_cancel(s, "p", .text = "soon"), IL_OK);
    const il_op *op = T_IS(t_cancel(s, "p", .text = "now", .flags = IL_CANCEL_NOW), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_CANCELLED);
    T_EQ(op->out.jobs[0].n_children_failed, 2);
    T_STREQ(op->out.jobs[0].error, "soon");
    (void)t_job_is(s, "c0", IL_JOB_CANCELLED);
    (void)T_IS(t_finish(s, "c0", token), IL_STALE);
}

T_TEST(cancel_of_a_parent_without_live_children)
{
    push_parent(s, "p", 0);
    const il_op *op = T_IS(t_cancel(s, "p"), IL_OK);
    T_EQ(op->out.jobs[0].state, IL_JOB_CANCELLED);
    T_STREQ(op->out.jobs[0].error, "cancelled");
}

/* ---- batches --------------------------------------------------------------------------------- */

T_TEST(the_last_children_finish_in_one_batch)
{
    push_parent(s, "p", 3);
    t_push_many(s, "q", "c", 3, T_JOB(.parent = "p"));
    const il_op *claim  = T_IS(t_claim(s, "q", "w", .limit = 3), IL_OK);
    il_op        ops[4] = { 0 };
    for (unsigned i = 0; i < 3; i++)
        ops[i] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, claim->out.jobs[i].id,
                          claim->out.jobs[i].token, T_JOB());
    ops[3] = t_job_op(IL_OP_JOB_GET, NULL, NULL, "p", 0, T_JOB());
    t_batch(s, ops, 4);
    for (unsigned i = 0; i < 3; i++)
        T_EQ(T_IS(&ops[i], IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
    T_EQ(T_IS(&ops[3], IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
    T_EQ(ops[3].out.jobs[0].n_children_completed, 3);
    for (unsigned i = 0; i < 4; i++)
        il_op_release(&ops[i]);
    T_EQU(t_queue(s, "q")->completed, 4); /* the parent once */
}

T_TEST(parent_and_children_in_one_batch)
{
    il_op ops[4] = {
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "p", 0,
                 T_JOB(.flags = IL_PUSH_PARENT, .n_children = 2)),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "a", 0, T_JOB(.parent = "p")),
        t_job_op(IL_OP_JOB_PUSH, "other", NULL, "b", 0, T_JOB(.parent = "p")),
        t_job_op(IL_OP_JOB_PUSH, "q", NULL, "c", 0, T_JOB(.parent = "p")),
    };

    t_batch(s, ops, 4);
    (void)T_IS(&ops[2], IL_OK);
    (void)T_IS(&ops[3], IL_LIMIT);
    for (unsigned i = 0; i < 4; i++)
        il_op_release(&ops[i]);
    /* Children may be in other queues. */
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    (void)T_IS(t_finish(s, "b", t_claim_is(s, "other", "w", "b")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_COMPLETED);
}

T_TEST(a_large_family)
{
    push_parent(s, "p", 0);
    t_push_many(s, "q", "c", 2000, T_JOB(.parent = "p"));
    (void)T_IS(t_seal(s, "p"), IL_OK);
    counts_are(s, "p", 2000, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        const il_op *claim = T_IS(t_claim(s, "q", "w", .limit = 1000), IL_OK);
        il_op       *ops   = calloc(1000, sizeof *ops);
        CHECK(ops != NULL);
        for (unsigned k = 0; k < 1000; k++)
            ops[k] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, claim->out.jobs[k].id,
                              claim->out.jobs[k].token, T_JOB());
        t_batch(s, ops, 1000);
        for (unsigned k = 0; k < 1000; k++)
            il_op_release(&ops[k]);
        free(ops);
    }
    counts_are(s, "p", 2000, 2000, 0);
    (void)t_job_is(s, "p", IL_JOB_COMPLETED);
}

/* An engine may do it in steps: the op says that there is more, and goes on when it is repeated. */
T_TEST(a_large_family_is_cancelled)
{
    push_parent(s, "p", 0);
    t_push_many(s, "q", "c", 300, T_JOB(.parent = "p"));
    (void)T_IS(t_claim(s, "q", "w", .limit = 120), IL_OK);
    unsigned n = 1;
    while ((T_IS(t_cancel(s, "p"), IL_OK)->out.flags & IL_OUT_MORE) != 0)
        T_TRUE(n++ < 10);
    counts_are(s, "p", 300, 0, 180);
    (void)t_job_is(s, "p", IL_JOB_RUNNING);
    n = 1;
    while ((T_IS(t_cancel(s, "p", .flags = IL_CANCEL_NOW), IL_OK)->out.flags & IL_OUT_MORE) != 0)
        T_TRUE(n++ < 10);
    counts_are(s, "p", 300, 0, 300);
    (void)t_job_is(s, "p", IL_JOB_CANCELLED);
}

/* Nobody repeats it: sweeps do the rest, and then let go of the children, too. */
T_TEST(sweeps_cancel_a_large_family)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000, .keep_failed_ms = 1000), IL_OK);
    push_parent(s, "p", 0);
    t_push_many(s, "q", "c", 300, T_JOB(.parent = "p"));
    (void)T_IS(t_cancel(s, "p"), IL_OK);
    for (unsigned n = 1; (T_IS(t_sweep(s), IL_OK)->out.flags & IL_OUT_MORE) != 0; n++)
        T_TRUE(n < 10);
    counts_are(s, "p", 300, 0, 300);
    (void)t_job_is(s, "p", IL_JOB_CANCELLED);
    t_pass(s, 999);
    T_EQU(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 1);
    T_EQU(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 301);
}

/* ---- history --------------------------------------------------------------------------------- */

T_TEST(children_are_kept_while_the_parent_lives)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000, .keep_failed_ms = 5000), IL_OK);
    push_parent(s, "p", 2);
    (void)T_IS(t_push(s, "q", "a", .parent = "p"), IL_OK);
    (void)T_IS(t_finish(s, "a", t_claim_is(s, "q", "w", "a")), IL_OK);
    t_pass(s, 100000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(COMPLETED)), IL_OK)->out.sweep.n_purged, 0);
    (void)T_IS(t_push(s, "q", "b", .parent = "p"), IL_OK);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(READY)), IL_OK)->out.sweep.n_purged, 0);
    (void)T_IS(t_job_fail(s, "b", t_claim_is(s, "q", "w", "b"), .flags = IL_FAIL_FINAL), IL_OK);
    /* From its end on all of them are history. */
    t_pass(s, 999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 1);
    (void)T_IS(t_job_get(s, "a"), IL_NOT_FOUND);
    counts_are(s, "p", 1, 0, 1); /* of the rows that are there */
    t_pass(s, 4000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 2);
    (void)T_IS(t_job_get(s, "p"), IL_NOT_FOUND);
}

T_TEST(a_parent_of_the_same_id_is_another)
{
    push_parent(s, "p", 1);
    (void)T_IS(t_push(s, "other", "c", .parent = "p"), IL_OK);
    (void)T_IS(t_cancel(s, "c"), IL_OK);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(FAILED)), IL_OK)->out.sweep.n_purged, 1);
    T_STREQ(t_job_is(s, "c", IL_JOB_CANCELLED)->parent, "p"); /* as pushed */
    push_parent(s, "p", 1);
    counts_are(s, "p", 0, 0, 0);
    (void)T_IS(t_retry(s, "c"), IL_OK); /* an orphan */
    (void)T_IS(t_finish(s, "c", t_claim_is(s, "other", "w", "c")), IL_OK);
    (void)t_job_is(s, "p", IL_JOB_RUNNING);
    counts_are(s, "p", 0, 0, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_parent_runs_but_is_never_claimed),
        T_ROW(it_completes_with_its_last_child),
        T_ROW(early_children_do_not_end_it),
        T_ROW(seal),
        T_ROW(seal_when_all_have_ended),
        T_ROW(seal_without_children),
        T_ROW(seal_before_all_have_come),
        T_ROW(it_fails_if_a_child_did),
        T_ROW(a_child_that_is_tried_again_is_live),
        T_ROW(a_dead_child_is_retried_while_the_parent_lives),
        T_ROW(a_dead_child_is_retried_after_the_parent_ended),
        T_ROW(cancel_of_a_parent),
        T_ROW(cancel_of_a_parent_now),
        T_ROW(cancel_of_a_parent_without_live_children),
        T_ROW(the_last_children_finish_in_one_batch),
        T_ROW(parent_and_children_in_one_batch),
        T_ROW(a_large_family),
        T_ROW(a_large_family_is_cancelled),
        T_ROW(sweeps_cancel_a_large_family),
        T_ROW(children_are_kept_while_the_parent_lives),
        T_ROW(a_parent_of_the_same_id_is_another),
    };

    return T_SUITE("job_parent", tests);
}
