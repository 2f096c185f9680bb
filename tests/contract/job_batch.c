/*
 * job_batch.c: many jobs at once: a batch of finishes has the same effect as the same finishes one
 * after another, and a claim returns each of its jobs completely. Engines have fast paths for the
 * common cases; these tests mix them with the others.
 */
#include "harness/job.h"
#include "harness/suite.h"

static char large[100000];

static uint64_t
push_and_claim(struct t_store *s, const char *queue, const char *id, struct t_job_args a)
{
    il_op op = t_job_op(IL_OP_JOB_PUSH, queue, NULL, id, 0, a);

    (void)T_IS(t_op_run(s, NULL, op), IL_OK);
    return t_claim_is(s, queue, "w", id);
}

static il_op
finish(const char *id, uint64_t token, struct t_job_args a)
{
    return t_job_op(IL_OP_JOB_FINISH, NULL, NULL, id, token, a);
}

static void
release(il_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
}

static void
is_finished(const il_op *op, const char *id, const char *queue, uint64_t token)
{
    (void)T_IS(op, IL_OK);
    T_EQU(op->out.n_jobs, 1);
    T_EQU(op->out.fence, token);
    T_EQ(op->out.remaining_ms, 0);
    T_STREQ(op->out.jobs[0].id, id);
    T_STREQ(op->out.jobs[0].queue, queue);
    T_STREQ(op->out.jobs[0].worker, "w");
    T_EQ(op->out.jobs[0].state, IL_JOB_COMPLETED);
    T_EQ(op->out.jobs[0].attempt, 1);
    T_EQU(op->out.jobs[0].token, token);
    T_EQ(op->out.jobs[0].created_at_ms, T_WALL_MS_START);
    T_EQ(op->out.jobs[0].completed_at_ms, T_WALL_MS_START + 1000);
    T_EQ(op->out.jobs[0].updated_at_ms, T_WALL_MS_START + 1000);
    T_TRUE(op->out.jobs[0].payload == NULL);
    T_TRUE(op->out.jobs[0].result == NULL);
    T_EQU(op->out.jobs[0].payload_bytes, 0);
}

T_TEST(finishes_of_all_kinds)
{
    il_op ops[14];

    memset(large, 'r', sizeof large);
    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    (void)T_IS(t_push(s, "q", "parent", .n_children = 1, .flags = IL_PUSH_PARENT), IL_OK);
    uint64_t plain  = push_and_claim(s, "q", "plain", T_JOB(.data = "p", .priority = 7));
    uint64_t result = push_and_claim(s, "q", "result", T_JOB(.data = "p"));
    uint64_t longer = push_and_claim(s, "q", "longer", T_JOB(.data = large, .data_bytes = 600));
    uint64_t group  = push_and_claim(s, "q", "group", T_JOB(.group = "g"));
    uint64_t child  = push_and_claim(s, "q", "child", T_JOB(.parent = "parent"));
    uint64_t unique = push_and_claim(s, "q", "unique", T_JOB(.unique_key = "u"));
    uint64_t other  = push_and_claim(s, "other", "other", T_JOB(.data = "p"));
    uint64_t kept   = push_and_claim(s, "q", "kept", T_JOB(.data = "p"));
    uint64_t last   = push_and_claim(s, "q", "last", T_JOB(.data = ""));
    (void)T_IS(t_push(s, "q", "blocked", .group = "g"), IL_OK);
    t_claim_none(s, "q", "w");
    t_pass(s, 1000);

    ops[0]  = finish("plain", plain, T_JOB(.data = ""));
    ops[1]  = finish("result", result, T_JOB(.data = "r\0s", .data_bytes = 3));
    ops[2]  = finish("longer", longer, T_JOB(.data = large, .data_bytes = sizeof large));
    ops[3]  = finish("nobody", plain, T_JOB(.data = ""));
    ops[4]  = finish("group", group, T_JOB(.data = ""));
    ops[5]  = finish("plain", plain, T_JOB(.data = "")); /* repeated */
    ops[6]  = finish("child", child, T_JOB(.data = ""));
    ops[7]  = finish("kept", kept + 1, T_JOB(.data = "")); /* not its token */
    ops[8]  = finish("unique", unique, T_JOB(.data = ""));
    ops[9]  = finish("result", result, T_JOB(.data = "another"));
    ops[10] = finish("other", other, T_JOB(.data = ""));
    ops[11] = t_job_op(IL_OP_JOB_HEARTBEAT, NULL, NULL, "last", last, T_JOB(.text = "nearly"));
    ops[12] = finish("last", last, T_JOB(.data = ""));
    ops[13] = finish("parent", last, T_JOB(.data = ""));
    t_batch(s, ops, ARRAY_LEN(ops));

    is_finished(&ops[0], "plain", "q", plain);
    T_EQ(ops[0].out.jobs[0].priority, 7);
    is_finished(&ops[1], "result", "q", result);
    is_finished(&ops[2], "longer", "q", longer);
    (void)T_IS(&ops[3], IL_NOT_FOUND);
    is_finished(&ops[4], "group", "q", group);
    T_STREQ(ops[4].out.jobs[0].group, "g");
    is_finished(&ops[5], "plain", "q", plain);
    is_finished(&ops[6], "child", "q", child);
    T_STREQ(ops[6].out.jobs[0].parent, "parent");
    (void)T_IS(&ops[7], IL_STALE);
    is_finished(&ops[8], "unique", "q", unique);
    T_STREQ(ops[8].out.jobs[0].unique_key, "u");
    (void)T_IS(&ops[9], IL_MISMATCH);
    is_finished(&ops[10], "other", "other", other);
    (void)T_IS(&ops[11], IL_OK);
    is_finished(&ops[12], "last", "q", last);
    T_STREQ(ops[12].out.jobs[0].message, "nearly");
    (void)T_IS(&ops[13], IL_STALE);
    release(ops, ARRAY_LEN(ops));

    (void)t_job_is(s, "parent", IL_JOB_COMPLETED);
    (void)t_job_is(s, "kept", IL_JOB_RUNNING);
    const il_job_info *j = t_job_is(s, "result", IL_JOB_COMPLETED);
    T_EQU(j->result_bytes, 3);
    T_TRUE(memcmp(j->result, "r\0s", 3) == 0);
    T_STREQ(j->payload, "p");
    j = t_job_is(s, "longer", IL_JOB_COMPLETED);
    T_EQU(j->result_bytes, sizeof large);
    T_EQU(j->payload_bytes, 600);
    T_TRUE(memcmp(j->result, large, sizeof large) == 0);
    /* the group has room again, and the key is free */
    IGNORE(t_claim_is(s, "q", "w", "blocked") > 0);
    (void)T_IS(t_push(s, "q", "unique2", .unique_key = "u"), IL_OK);
    const il_queue_info *q = t_queue(s, "q");
    T_EQU(q->completed, 8);
    T_EQU(q->stale, 2);
    T_EQU(q->n_running, 2);
    T_EQU(t_queue(s, "other")->completed, 1);
}

#define UNIQUE_FOR_LONG T_JOB(.data = "p", .unique_key = "k", .unique_for_ms = 5000)

/* Finishes and nothing else, of jobs that were claimed here and of which each token is there once:
 * an engine may know them. */
T_TEST(finishes_of_claimed_jobs)
{
    il_op ops[10];

    uint64_t plain     = push_and_claim(s, "q", "plain", T_JOB(.data = "p", .priority = 7));
    uint64_t result    = push_and_claim(s, "q", "result", T_JOB(.data = "p", .max_attempts = 3));
    uint64_t unique    = push_and_claim(s, "q", "unique", T_JOB(.data = "p", .unique_key = "u"));
    uint64_t kept      = push_and_claim(s, "q", "kept", UNIQUE_FOR_LONG);
    uint64_t moved     = push_and_claim(s, "q", "moved", T_JOB(.data = "p"));
    uint64_t cancelled = push_and_claim(s, "q", "cancelled", T_JOB(.data = "p"));
    uint64_t group     = push_and_claim(s, "q", "group", T_JOB(.data = "p", .group = "g"));
    uint64_t swapped   = push_and_claim(s, "q", "swapped", T_JOB(.data = "p"));
    uint64_t unnamed   = push_and_claim(s, "q", "unnamed", T_JOB(.data = "p"));
    uint64_t other     = push_and_claim(s, "other", "other", T_JOB(.data = "p"));
    (void)T_IS(t_heartbeat(s, "moved", moved, T_PROGRESS(50), .text = "half"), IL_OK);
    (void)T_IS(t_cancel(s, "cancelled", .text = "why"), IL_OK);
    t_pass(s, 1000);

    ops[0] = finish("plain", plain, T_JOB(.data = ""));
    ops[1] = finish("other", other, T_JOB(.data = "o"));
    ops[2] = finish("unique", unique, T_JOB(.data = "u"));
    ops[3] = finish("unnamed", swapped, T_JOB(.data = "")); /* another one's token */
    ops[4] = finish("nobody", unnamed, T_JOB(.data = ""));
    ops[5] = finish("moved", moved, T_JOB(.data = "m"));
    ops[6] = finish("cancelled", cancelled, T_JOB(.data = ""));
    ops[7] = finish("kept", kept, T_JOB(.data = ""));
    ops[8] = finish("group", group, T_JOB(.data = ""));
    ops[9] = finish("result", result, T_JOB(.data = "r"));
    t_batch(s, ops, ARRAY_LEN(ops));
    is_finished(&ops[0], "plain", "q", plain);
    T_EQ(ops[0].out.jobs[0].priority, 7);
    T_EQ(ops[0].out.jobs[0].started_at_ms, T_WALL_MS_START);
    T_EQ(ops[0].out.jobs[0].run_at_ms, T_WALL_MS_START);
    is_finished(&ops[1], "other", "other", other);
    is_finished(&ops[2], "unique", "q", unique);
    T_STREQ(ops[2].out.jobs[0].unique_key, "u");
    (void)T_IS(&ops[3], IL_STALE);
    (void)T_IS(&ops[4], IL_NOT_FOUND);
    is_finished(&ops[5], "moved", "q", moved);
    T_EQ(ops[5].out.jobs[0].progress, 50);
    T_STREQ(ops[5].out.jobs[0].message, "half");
    is_finished(&ops[6], "cancelled", "q", cancelled);
    T_TRUE(ops[6].out.jobs[0].cancelled);
    is_finished(&ops[7], "kept", "q", kept);
    T_STREQ(ops[7].out.jobs[0].unique_key, "k");
    is_finished(&ops[8], "group", "q", group);
    is_finished(&ops[9], "result", "q", result);
    T_EQ(ops[9].out.jobs[0].max_attempts, 3);
    release(ops, ARRAY_LEN(ops));

    (void)t_job_is(s, "swapped", IL_JOB_RUNNING);
    (void)t_job_is(s, "unnamed", IL_JOB_RUNNING);
    T_STREQ(t_job_is(s, "result", IL_JOB_COMPLETED)->result, "r");
    T_STREQ(t_job_is(s, "unique", IL_JOB_COMPLETED)->result, "u");
    T_STREQ(t_job_is(s, "other", IL_JOB_COMPLETED)->result, "o");
    T_EQU(t_job_is(s, "plain", IL_JOB_COMPLETED)->result_bytes, 0);
    (void)T_IS(t_push(s, "q", "unique2", .unique_key = "u"), IL_OK);      /* the key is free, */
    (void)T_IS(t_push(s, "q", "kept2", .unique_key = "k"), IL_DUPLICATE); /* and this one is not */
    T_EQU(t_queue(s, "q")->completed, 7);
}

/* More than one call of any engine holds. */
T_TEST(many_finishes)
{
    enum {
        N = 300
    };
    static il_op ops[N];

    t_push_many(s, "q", "j", N, T_JOB(.data = "x"));
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = N), IL_OK);
    T_EQU(op->out.n_jobs, N);
    for (unsigned i = 0; i < N; i++)
        ops[i] = finish(op->out.jobs[i].id, op->out.jobs[i].token,
                        T_JOB(.data = i % 3 == 0 ? "odd" : ""));
    t_batch(s, ops, N);
    for (unsigned i = 0; i < N; i++)
        (void)T_IS(&ops[i], IL_OK);
    release(ops, N);
    T_EQU(t_queue(s, "q")->completed, N);
    T_EQU(t_queue(s, "q")->n_running, 0);
    T_STREQ(t_job_is(s, "j0", IL_JOB_COMPLETED)->result, "odd");
    /* They go when their time has come, all of them. */
    t_pass(s, INT64_C(7) * 86400000);
    T_EQU(T_IS(t_sweep(s, .limit = 1000), IL_OK)->out.sweep.n_purged, N);
    T_EQU(T_IS(t_job_list(s, "q"), IL_OK)->out.n_jobs, 0);
}

static il_op
claim(const char *queue, struct t_job_args a)
{
    return t_job_op(IL_OP_JOB_CLAIM, queue, "w", NULL, 0, a);
}

/* As a worker does it: finish what it had, claim the next ones. An engine may do both at once. */
T_TEST(finishes_and_then_a_claim)
{
    il_op    ops[3];
    uint64_t first = push_and_claim(s, "q", "first", T_JOB(.data = "p"));

    uint64_t unique = push_and_claim(s, "q", "unique", T_JOB(.data = "p", .unique_key = "u"));
    (void)T_IS(t_push(s, "q", "third", .data = "3", .priority = 3), IL_OK);
    (void)T_IS(t_push(s, "q", "second", .data = "2", .priority = 2), IL_OK);
    (void)T_IS(t_push(s, "q", "fourth", .data = "4", .priority = 4), IL_OK);
    t_pass(s, 1000);
    ops[0] = finish("first", first, T_JOB(.data = "r"));
    ops[1] = finish("unique", unique, T_JOB(.data = ""));
    ops[2] = claim("q", T_JOB(.limit = 2, .claim = "again"));
    t_batch(s, ops, 3);
    is_finished(&ops[0], "first", "q", first);
    is_finished(&ops[1], "unique", "q", unique);
    T_STREQ(ops[1].out.jobs[0].unique_key, "u");
    (void)T_IS(&ops[2], IL_OK);
    T_EQU(ops[2].out.n_jobs, 2);
    T_STREQ(ops[2].out.jobs[0].id, "second");
    T_STREQ(ops[2].out.jobs[0].payload, "2");
    T_STREQ(ops[2].out.jobs[0].worker, "w");
    T_STREQ(ops[2].out.jobs[1].id, "third");
    T_EQ(ops[2].out.jobs[1].started_at_ms, T_WALL_MS_START + 1000);
    T_EQ(ops[2].out.remaining_ms, 30000);
    T_EQU(ops[2].out.fence, ops[2].out.jobs[0].token);
    T_EQU(ops[2].out.jobs[1].token, ops[2].out.fence + 1);
    uint64_t second = ops[2].out.jobs[0].token;
    uint64_t third  = ops[2].out.jobs[1].token;
    release(ops, 3);

    /* The claim once more, and one of its jobs is finished before it. */
    ops[0] = finish("third", third, T_JOB(.data = ""));
    ops[1] = claim("q", T_JOB(.limit = 2, .claim = "again"));
    t_batch(s, ops, 2);
    (void)T_IS(&ops[0], IL_OK);
    (void)T_IS(&ops[1], IL_OK);
    T_TRUE((ops[1].out.flags & IL_OUT_RENEWED) != 0);
    T_EQU(ops[1].out.n_jobs, 1);
    T_STREQ(ops[1].out.jobs[0].id, "second");
    release(ops, 2);

    ops[0] = finish("second", second, T_JOB(.data = ""));
    ops[1] = claim("q", T_JOB(.limit = 2));
    t_batch(s, ops, 2);
    (void)T_IS(&ops[0], IL_OK);
    T_EQU(T_IS(&ops[1], IL_OK)->out.n_jobs, 1);
    T_STREQ(ops[1].out.jobs[0].id, "fourth");
    uint64_t fourth = ops[1].out.fence;
    release(ops, 2);

    ops[0] = finish("fourth", fourth, T_JOB(.data = ""));
    ops[1] = claim("q", T_JOB(.limit = 2));
    t_batch(s, ops, 2);
    (void)T_IS(&ops[0], IL_OK);
    (void)T_IS(&ops[1], IL_EMPTY);
    release(ops, 2);
    T_STREQ(t_job_is(s, "first", IL_JOB_COMPLETED)->result, "r");
    const il_queue_info *q = t_queue(s, "q");
    T_EQU(q->completed, 5);
    T_EQU(q->claimed, 5);
    T_EQU(q->n_running, 0);
    (void)T_IS(t_push(s, "q", "unique2", .unique_key = "u"), IL_OK);
}

/* The claim sees what all finishes before it have done, those too that are not the usual ones. */
T_TEST(a_claim_comes_after_all_finishes)
{
    il_op ops[4];

    (void)T_IS(t_queue_set(s, "q", .group_limit = 1), IL_OK);
    uint64_t plain = push_and_claim(s, "q", "plain", T_JOB(.data = "p"));
    uint64_t group = push_and_claim(s, "q", "group", T_JOB(.data = "p", .group = "g"));
    (void)T_IS(t_push(s, "q", "blocked", .group = "g"), IL_OK);
    t_claim_none(s, "q", "w");
    t_pass(s, 1000);
    ops[0] = finish("plain", plain, T_JOB(.data = ""));
    ops[1] = finish("plain", plain + 100, T_JOB(.data = "")); /* nobody's token */
    ops[2] = finish("group", group, T_JOB(.data = ""));
    ops[3] = claim("q", T_JOB(.limit = 5));
    t_batch(s, ops, 4);
    is_finished(&ops[0], "plain", "q", plain);
    (void)T_IS(&ops[1], IL_STALE);
    is_finished(&ops[2], "group", "q", group);
    T_EQU(T_IS(&ops[3], IL_OK)->out.n_jobs, 1);
    T_STREQ(ops[3].out.jobs[0].id, "blocked");
    release(ops, 4);
}

/* A claim of another queue, of one that is not there, of one that is paused, and of one whose
 * schedule is due. */
T_TEST(a_claim_of_another_queue)
{
    static const char *const queues[] = { "other", "none", "paused", "ticks" };
    static const il_status   wanted[] = { IL_OK, IL_NOT_FOUND, IL_EMPTY, IL_OK };
    uint64_t                 tokens[ARRAY_LEN(queues)];
    char                     id[ARRAY_LEN(queues)][8];
    il_op                    ops[2];

    (void)T_IS(t_queue_set(s, "q", .lease_ms = 120000), IL_OK);
    for (unsigned i = 0; i < ARRAY_LEN(queues); i++) {
        (void)snprintf(id[i], sizeof id[i], "j%u", i);
        tokens[i] = push_and_claim(s, "q", id[i], T_JOB(.data = "p"));
    }
    (void)T_IS(t_push(s, "other", "o"), IL_OK);
    (void)T_IS(t_push(s, "paused", "p"), IL_OK);
    (void)T_IS(t_pause(s, "paused"), IL_OK);
    (void)T_IS(t_cron_set(s, "ticks", .name = "c", .schedule = "* * * * *"), IL_OK);
    t_pass(s, 60000);
    for (unsigned i = 0; i < ARRAY_LEN(queues); i++) {
        ops[0] = finish(id[i], tokens[i], T_JOB(.data = ""));
        ops[1] = claim(queues[i], T_JOB(.limit = 5));
        t_batch(s, ops, 2);
        T_EQ(T_IS(&ops[0], IL_OK)->out.jobs[0].state, IL_JOB_COMPLETED);
        (void)T_IS(&ops[1], wanted[i]);
        T_EQU(ops[1].out.n_jobs, wanted[i] == IL_OK);
        release(ops, 2);
    }
    T_EQU(t_queue(s, "q")->completed, ARRAY_LEN(queues));
}

/* What time does to jobs that were claimed together: by expiry, then in the order of pushes,
 * whatever the order of the claim. */
static void
recover_in_turn(struct t_store *s, int64_t lease_ms)
{
    enum {
        N = 7
    };
    uint64_t tokens[N];
    char     id[16];

    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(id, sizeof id, "j%u", i);
        (void)T_IS(t_push(s, "q", id, .priority = (int)(N - i)), IL_OK);
    }
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = N, .lease_ms = lease_ms), IL_OK);
    T_EQU(op->out.n_jobs, N);
    for (unsigned i = 0; i < N; i++)
        tokens[N - 1 - i] = op->out.jobs[i].token;
    T_STREQ(op->out.jobs[0].id, "j6");
    (void)T_IS(t_heartbeat(s, "j0", tokens[0], .progress = -1), IL_OK); /* expires as before */
    t_pass(s, 10);
    (void)T_IS(t_heartbeat(s, "j1", tokens[1], .progress = -1), IL_OK);
    (void)T_IS(t_finish(s, "j2", tokens[2]), IL_OK);
    (void)T_IS(t_snooze(s, "j3", tokens[3], .delay_ms = 2 * lease_ms), IL_OK);
    t_pass(s, lease_ms - 11);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 0);
    t_pass(s, 1);
    op = T_IS(t_sweep(s, .limit = 2), IL_OK);
    T_EQ(op->out.sweep.n_jobs, 2);
    T_TRUE((op->out.flags & IL_OUT_MORE) != 0);
    (void)t_job_is(s, "j0", IL_JOB_READY);
    (void)t_job_is(s, "j4", IL_JOB_READY);
    (void)t_job_is(s, "j5", IL_JOB_RUNNING);
    op = T_IS(t_sweep(s, .limit = 2), IL_OK);
    T_EQ(op->out.sweep.n_jobs, 2);
    T_EQ(op->out.flags, 0);
    (void)t_job_is(s, "j1", IL_JOB_RUNNING);
    t_pass(s, 10);
    (void)t_claim_is(s, "q", "other", "j6"); /* which recovers j1 */
    (void)t_job_is(s, "j1", IL_JOB_READY);
    T_EQU(t_queue(s, "q")->recovered, 5);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_jobs, 0);
}

T_TEST(a_claim_of_many_that_dies)
{
    recover_in_turn(s, 30000);
}

T_TEST(a_long_claim_of_many_that_dies)
{
    recover_in_turn(s, 3600000);
}

/* All jobs of the queue are claimed, and these finished by one batch. */
static void
finish_at_once(struct t_store *s, const char *const *ids, unsigned n, int64_t lease_ms)
{
    il_op        ops[8];
    const il_op *claim = T_IS(t_claim(s, "q", "w", .limit = 8, .lease_ms = lease_ms), IL_OK);

    CHECK(n <= ARRAY_LEN(ops));
    for (unsigned i = 0; i < n; i++) {
        uint64_t token = 0;
        for (size_t k = 0; k < claim->out.n_jobs; k++) {
            if (strcmp(claim->out.jobs[k].id, ids[i]) == 0)
                token = claim->out.jobs[k].token;
        }
        ops[i] = finish(ids[i], token, T_JOB());
    }
    t_batch(s, ops, n);
    for (unsigned i = 0; i < n; i++)
        (void)T_IS(&ops[i], IL_OK);
    release(ops, n);
}

/* Two batches end at the same time: their jobs go in the order of pushes. */
static void
purge_in_turn(struct t_store *s, int64_t lease_ms)
{
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000), IL_OK);
    t_push_many(s, "q", "j", 3, T_JOB());
    finish_at_once(s, (const char *const[]){ "j2", "j0", "j1" }, 3, lease_ms);
    (void)T_IS(t_push(s, "q", "k"), IL_OK);
    (void)T_IS(t_push(s, "q", "l"), IL_OK);
    /* all of a claim, in its order */
    finish_at_once(s, (const char *const[]){ "k", "l" }, 2, lease_ms);
    t_pass(s, 999);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 1);
    const il_op *op = T_IS(t_sweep(s, .limit = 2), IL_OK);
    T_EQ(op->out.sweep.n_purged, 2);
    T_TRUE((op->out.flags & IL_OUT_MORE) != 0);
    (void)T_IS(t_job_get(s, "j1"), IL_NOT_FOUND);
    (void)t_job_is(s, "j2", IL_JOB_COMPLETED);
    T_EQ(T_IS(t_sweep(s, .limit = 2), IL_OK)->out.sweep.n_purged, 2);
    (void)t_job_is(s, "l", IL_JOB_COMPLETED);
    op = T_IS(t_sweep(s, .limit = 2), IL_OK);
    T_EQ(op->out.sweep.n_purged, 1);
    T_EQ(op->out.flags, 0);
    t_pass(s, lease_ms);
    op = T_IS(t_sweep(s), IL_OK); /* nothing comes back */
    T_EQ(op->out.sweep.n_purged, 0);
    T_EQ(op->out.sweep.n_jobs, 0);
    T_EQU(t_queue(s, "q")->completed, 5);
}

T_TEST(a_batch_that_was_kept_long_enough)
{
    purge_in_turn(s, 30000);
}

T_TEST(a_batch_of_long_claims_that_was_kept_long_enough)
{
    purge_in_turn(s, 3600000);
}

/* The same ids a second time: they are other jobs. */
T_TEST(ids_that_come_again_are_not_purged_with_the_first_ones)
{
    static const char *const ids[] = { "j0", "j1" };

    (void)T_IS(t_queue_set(s, "q", .keep_ms = 1000), IL_OK);
    t_push_many(s, "q", "j", 2, T_JOB());
    finish_at_once(s, ids, 2, 30000);
    T_EQ(T_IS(t_purge(s, "q", .states = T_STATE(COMPLETED)), IL_OK)->out.sweep.n_purged, 2);
    (void)T_IS(t_queue_set(s, "q", .keep_ms = 5000), IL_OK);
    t_push_many(s, "q", "j", 2, T_JOB());
    finish_at_once(s, ids, 2, 30000); /* at the same time */
    t_pass(s, 1000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)t_job_is(s, "j0", IL_JOB_COMPLETED);
    t_pass(s, 4000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 2);
}

/* A dead claim behind many that are over: it is found, though engines look at so many at once
 * only. */
T_TEST(a_dead_claim_behind_many_others)
{
    enum {
        N_CLAIMS = 11,
        N        = IL_CLAIM_JOBS_MAX
    };
    il_op *ops = calloc(N, sizeof *ops);

    CHECK(ops != NULL);
    t_push_many(s, "q", "j", N_CLAIMS * N, T_JOB());
    for (unsigned i = 0; i < N_CLAIMS; i++) {
        const il_op *claim  = T_IS(t_claim(s, "q", "w", .limit = N), IL_OK);
        size_t       n_kept = i + 1 == N_CLAIMS ? 1 : 0;
        T_EQU(claim->out.n_jobs, N);
        for (size_t k = 0; k < N - n_kept; k++) {
            const il_job_info *job = &claim->out.jobs[N - n_kept - 1 - k]; /* the last first */
            ops[k]                 = finish(job->id, job->token, T_JOB());
        }
        t_batch(s, ops, N - n_kept);
        release(ops, N - n_kept);
    }
    free(ops);
    T_EQU(t_queue(s, "q")->completed, N_CLAIMS * N - 1);
    t_pass(s, 30000);
    T_EQ(t_sweep_all(s, 1000).n_jobs, 1);
    (void)t_job_is(s, "j10999", IL_JOB_READY);
    t_pass(s, INT64_C(7) * 86400000);
    T_EQ(t_sweep_all(s, 1000).n_purged, N_CLAIMS * N - 1);
}

/* Payloads of any size, names that need escapes, jobs with a past. */
T_TEST(a_claim_gives_whole_jobs)
{
    static const size_t sizes[] = { 0, 1, 512, 513, sizeof large };
    char                id[16];

    memset(large, 'p', sizeof large);
    uint64_t token = push_and_claim(s, "q\\\"", "past\\\"", T_JOB(.data = "again"));
    (void)T_IS(t_heartbeat(s, "past\\\"", token, T_PROGRESS(9), .text = "half"), IL_OK);
    (void)T_IS(t_job_fail(s, "past\\\"", token, .text = "why", .delay_ms = 1), IL_OK);
    t_pass(s, 10);
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        (void)snprintf(id, sizeof id, "size%u", i);
        (void)T_IS(t_push(s, "q\\\"", id, .data = sizes[i] > 0 ? large : "", .data_bytes = sizes[i],
                          .max_attempts = i + 1),
                   IL_OK);
    }
    const il_op *op = T_IS(t_claim(s, "q\\\"", "other", .limit = 10, .lease_ms = 5000), IL_OK);
    T_EQU(op->out.n_jobs, ARRAY_LEN(sizes) + 1);
    T_EQ(op->out.remaining_ms, 5000);
    T_EQU(op->out.fence, op->out.jobs[0].token);
    const il_job_info *j = &op->out.jobs[0];
    T_STREQ(j->id, "past\\\"");
    T_STREQ(j->queue, "q\\\"");
    T_STREQ(j->error, "why");
    T_STREQ(j->message, "");
    T_STREQ(j->worker, "other");
    T_STREQ(j->payload, "again");
    T_EQ(j->progress, -1);
    T_EQ(j->attempt, 2);
    T_EQ(j->created_at_ms, T_WALL_MS_START);
    T_EQ(j->run_at_ms, T_WALL_MS_START + 1);
    T_EQ(j->started_at_ms, T_WALL_MS_START + 10);
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        j = &op->out.jobs[i + 1];
        T_EQ(j->state, IL_JOB_RUNNING);
        T_EQ(j->attempt, 1);
        T_EQ(j->max_attempts, i + 1);
        T_EQU(j->payload_bytes, sizes[i]);
        T_TRUE(j->payload != NULL && memcmp(j->payload, large, sizes[i]) == 0);
        T_EQU(j->token, op->out.fence + i + 1);
        T_EQ(j->remaining_ms, 5000);
        T_EQU(j->result_bytes, 0);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(finishes_of_all_kinds),
        T_ROW(finishes_of_claimed_jobs),
        T_ROW(many_finishes),
        T_ROW(finishes_and_then_a_claim),
        T_ROW(a_claim_comes_after_all_finishes),
        T_ROW(a_claim_of_another_queue),
        T_ROW(a_claim_of_many_that_dies),
        T_ROW(a_long_claim_of_many_that_dies),
        T_ROW(a_batch_that_was_kept_long_enough),
        T_ROW(a_batch_of_long_claims_that_was_kept_long_enough),
        T_ROW(ids_that_come_again_are_not_purged_with_the_first_ones),
        T_ROW(a_dead_claim_behind_many_others),
        T_ROW(a_claim_gives_whole_jobs),
    };

    return T_SUITE("job_batch", tests);
}
