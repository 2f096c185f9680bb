/*
 * job_finish.c: many finishes at once. Each is answered as if it came alone, whatever the others
 * are: an engine may execute the simple ones together, using what it remembers about a claim.
 */
#include "harness/job.h"
#include "harness/suite.h"

#define N_MAX 16

struct batch {
    il_op    ops[N_MAX];
    char     ids[N_MAX][IL_ID_BYTES_MAX];
    uint64_t tokens[N_MAX];
    size_t   n;
};

/* Claim n jobs by one op, and keep their ids and tokens. */
static void
claim(struct t_store *s, const char *queue, uint32_t n, struct batch *b)
{
    const il_op *op = T_IS(t_claim(s, queue, "w", .limit = n), IL_OK);

    T_EQU(op->out.n_jobs, n);
    b->n = n;
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(b->ids[i], sizeof b->ids[i], "%s", op->out.jobs[i].id);
        b->tokens[i] = op->out.jobs[i].token;
    }
}

static void
finish(struct t_store *s, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->ops[i] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, b->ids[i], b->tokens[i], T_JOB());
    t_batch(s, b->ops, b->n);
}

static void
release(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        il_op_release(&b->ops[i]);
}

static void
set_id(struct batch *b, size_t i, const char *id)
{
    (void)snprintf(b->ids[i], sizeof b->ids[i], "%s", id);
}

T_TEST(all_that_a_job_says)
{
    struct batch b = { 0 };

    (void)T_IS(t_push(s, "q", "a", .data = "p", .priority = -3, .max_attempts = 7), IL_OK);
    (void)T_IS(t_push(s, "q", "b", .data = "p", .unique_key = "u"), IL_OK);
    (void)T_IS(t_push(s, "q", "c", .run_at_ms = T_WALL_MS_START + 5), IL_OK);
    t_pass(s, 10);
    claim(s, "q", 3, &b);
    t_pass(s, 20);
    finish(s, &b);
    for (size_t i = 0; i < b.n; i++) {
        const il_op *op = T_IS(&b.ops[i], IL_OK);
        T_EQU(op->out.n_jobs, 1);
        const il_job_info *j = &op->out.jobs[0];
        T_STREQ(j->id, b.ids[i]);
        T_STREQ(j->queue, "q");
        T_STREQ(j->worker, "w");
        T_STREQ(j->error, "");
        T_STREQ(j->message, "");
        T_STREQ(j->unique_key, strcmp(j->id, "b") == 0 ? "u" : "");
        T_EQ(j->state, IL_JOB_COMPLETED);
        T_EQ(j->priority, strcmp(j->id, "a") == 0 ? -3 : 0);
        T_EQ(j->max_attempts, strcmp(j->id, "a") == 0 ? 7 : 5);
        T_EQ(j->attempt, 1);
        T_EQ(j->progress, -1);
        T_EQ(j->remaining_ms, 0);
        T_EQU(j->token, b.tokens[i]);
        T_EQU(op->out.fence, b.tokens[i]);
        T_EQ(j->created_at_ms, T_WALL_MS_START);
        T_EQ(j->run_at_ms, T_WALL_MS_START + (strcmp(j->id, "c") == 0 ? 5 : 0));
        T_EQ(j->started_at_ms, T_WALL_MS_START + 10);
        T_EQ(j->updated_at_ms, T_WALL_MS_START + 30);
        T_EQ(j->completed_at_ms, T_WALL_MS_START + 30);
        (void)t_job_is(s, b.ids[i], IL_JOB_COMPLETED);
    }
    release(&b);
    T_EQU(t_queue(s, "q")->completed, 3);
    T_EQU(t_queue(s, "q")->n_running, 0);
    (void)T_IS(t_push(s, "q", "b2", .unique_key = "u"), IL_OK); /* the key is free */
}

T_TEST(each_is_answered_for_itself)
{
    struct batch b = { 0 };

    t_push_many(s, "q", "j", 8, T_JOB());
    claim(s, "q", 8, &b);
    (void)T_IS(t_heartbeat(s, "j1", b.tokens[1], T_PROGRESS(40), .text = "m"), IL_OK);
    (void)T_IS(t_cancel(s, "j2", .text = "why"), IL_OK);
    (void)T_IS(t_cancel(s, "j3", .flags = IL_CANCEL_NOW), IL_OK);
    (void)T_IS(t_finish(s, "j4", b.tokens[4]), IL_OK);
    set_id(&b, 5, "j6"); /* the token of another one */
    b.tokens[6]++;
    set_id(&b, 7, "nobody");
    finish(s, &b);
    (void)T_IS(&b.ops[0], IL_OK);
    T_EQ(T_IS(&b.ops[1], IL_OK)->out.jobs[0].progress, 40);
    T_STREQ(b.ops[1].out.jobs[0].message, "m");
    T_EQ(T_IS(&b.ops[2], IL_OK)->out.jobs[0].cancelled, 1);
    T_STREQ(b.ops[2].out.jobs[0].error, "why");
    (void)T_IS(&b.ops[3], IL_STALE);
    (void)T_IS(&b.ops[4], IL_OK); /* as before */
    (void)T_IS(&b.ops[5], IL_STALE);
    (void)T_IS(&b.ops[6], IL_STALE);
    (void)T_IS(&b.ops[7], IL_NOT_FOUND);
    release(&b);
    (void)t_job_is(s, "j5", IL_JOB_RUNNING);
    (void)t_job_is(s, "j6", IL_JOB_RUNNING);
    (void)t_job_is(s, "j7", IL_JOB_RUNNING);
    T_EQU(t_queue(s, "q")->completed, 4);
    T_EQU(t_queue(s, "q")->stale, 3);
}

/* The first of two that say something else of one job counts. */
T_TEST(one_job_twice)
{
    struct batch b = { 0 };

    t_push_many(s, "q", "j", 2, T_JOB());
    claim(s, "q", 2, &b);
    b.ops[0] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, "j0", b.tokens[0], T_JOB(.data = "first"));
    b.ops[1] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, "j1", b.tokens[1], T_JOB(.data = "other"));
    b.ops[2] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, "j0", b.tokens[0], T_JOB(.data = "second"));
    b.ops[3] = t_job_op(IL_OP_JOB_FINISH, NULL, NULL, "j0", b.tokens[0], T_JOB(.data = "first"));
    b.n      = 4;
    t_batch(s, b.ops, b.n);
    (void)T_IS(&b.ops[0], IL_OK);
    (void)T_IS(&b.ops[1], IL_OK);
    (void)T_IS(&b.ops[2], IL_MISMATCH);
    (void)T_IS(&b.ops[3], IL_OK);
    release(&b);
    T_STREQ(t_job_is(s, "j0", IL_JOB_COMPLETED)->result, "first");
    T_STREQ(t_job_is(s, "j1", IL_JOB_COMPLETED)->result, "other");
    T_EQU(t_queue(s, "q")->completed, 2);
}

T_TEST(groups_parents_and_other_queues)
{
    struct batch b = { 0 };
    struct batch c = { 0 };

    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    (void)T_IS(t_push(s, "q", "parent", .flags = IL_PUSH_PARENT, .n_children = 1), IL_OK);
    (void)T_IS(t_push(s, "q", "plain"), IL_OK);
    (void)T_IS(t_push(s, "q", "child", .parent = "parent"), IL_OK);
    (void)T_IS(t_push(s, "q", "g0", .group = "g"), IL_OK);
    (void)T_IS(t_push(s, "q", "g1", .group = "g"), IL_OK);
    (void)T_IS(t_push(s, "other", "there"), IL_OK);
    claim(s, "q", 3, &b);
    claim(s, "other", 1, &c);
    set_id(&b, 3, c.ids[0]);
    b.tokens[3] = c.tokens[0];
    b.n         = 4;
    finish(s, &b);
    for (size_t i = 0; i < b.n; i++)
        (void)T_IS(&b.ops[i], IL_OK);
    T_STREQ(b.ops[3].out.jobs[0].queue, "other");
    release(&b);
    (void)t_job_is(s, "parent", IL_JOB_COMPLETED); /* with its last child */
    (void)t_claim_is(s, "q", "w", "g1");           /* there is room in the group */
    T_EQU(t_queue(s, "q")->completed, 4);
    T_EQU(t_queue(s, "other")->completed, 1);
}

T_TEST(too_late_for_all)
{
    struct batch b = { 0 };

    t_push_many(s, "q", "j", 3, T_JOB());
    claim(s, "q", 3, &b);
    t_pass(s, 30000);
    finish(s, &b);
    for (size_t i = 0; i < b.n; i++)
        (void)T_IS(&b.ops[i], IL_STALE);
    release(&b);
    T_EQU(t_queue(s, "q")->n_ready, 3);
    T_EQU(t_queue(s, "q")->recovered, 3);
    T_EQU(t_queue(s, "q")->completed, 0);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(all_that_a_job_says), T_ROW(each_is_answered_for_itself),
        T_ROW(one_job_twice),       T_ROW(groups_parents_and_other_queues),
        T_ROW(too_late_for_all),
    };

    return T_SUITE("job_finish", tests);
}
