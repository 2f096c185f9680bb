/*
 * job_claim.c: claims: which worker gets which job, in what order, for how long, and what happens
 * if there is none.
 */
#include "harness/job.h"
#include "harness/suite.h"

T_TEST(no_such_queue)
{
    (void)T_IS(t_claim(s, "q", "w"), IL_NOT_FOUND);
    (void)T_IS(t_queue_set(s, "q"), IL_OK);
    const il_op *op = T_IS(t_claim(s, "q", "w"), IL_EMPTY);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.remaining_ms, IL_FOREVER);
    T_EQU(op->out.n_jobs, 0);
}

T_TEST(a_claimed_job_runs)
{
    (void)T_IS(t_push(s, "q", "j", .data = "hello"), IL_OK);
    t_pass(s, 10);
    const il_op       *op = T_IS(t_claim(s, "q", "w"), IL_OK);
    const il_job_info *j  = &op->out.jobs[0];
    T_EQU(op->out.n_jobs, 1);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.remaining_ms, 30000);
    T_STREQ(j->id, "j");
    T_STREQ(j->payload, "hello");
    T_STREQ(j->worker, "w");
    T_EQ(j->state, IL_JOB_RUNNING);
    T_EQ(j->attempt, 1);
    T_TRUE(j->token > 0);
    T_EQU(j->token, op->out.fence);
    T_EQ(j->remaining_ms, 30000);
    T_EQ(j->started_at_ms, T_WALL_MS_START + 10);
    T_EQ(j->updated_at_ms, T_WALL_MS_START + 10);
    t_pass(s, 1000);
    j = t_job_is(s, "j", IL_JOB_RUNNING);
    T_EQ(j->remaining_ms, 29000);
    T_EQU(t_queue(s, "q")->claimed, 1);
    T_EQU(t_queue(s, "q")->n_running, 1);
}

/* Two workers, one job; the same on both strategies. */
static void
exactly_one(struct t_store *s, il_strategy strategy)
{
    (void)T_IS(t_queue_set(s, "q", .strategy = 1 + (int32_t)strategy), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)t_claim_is(s, "q", "w1", "j");
    t_claim_none(s, "q", "w2");
    t_claim_none(s, "q", "w1");
}

T_TEST(two_workers_one_job_pessimistic)
{
    exactly_one(s, IL_STRATEGY_PESSIMISTIC);
}

T_TEST(two_workers_one_job_optimistic)
{
    exactly_one(s, IL_STRATEGY_OPTIMISTIC);
}

/* By priority, then run_at, then seq. */
static void
in_order(struct t_store *s, il_strategy strategy)
{
    static const char *const expected[] = {
        "urgent", "early", "first", "second", "later", "least"
    };

    (void)T_IS(t_queue_set(s, "q", .strategy = 1 + (int32_t)strategy), IL_OK);
    (void)T_IS(t_push(s, "q", "least", .priority = 1000), IL_OK);
    (void)T_IS(t_push(s, "q", "later", .delay_ms = 500), IL_OK);
    (void)T_IS(t_push(s, "q", "first", .run_at_ms = T_WALL_MS_START), IL_OK);
    (void)T_IS(t_push(s, "q", "second", .run_at_ms = T_WALL_MS_START), IL_OK);
    (void)T_IS(t_push(s, "q", "early", .run_at_ms = T_WALL_MS_START - 1), IL_OK);
    (void)T_IS(t_push(s, "q", "urgent", .priority = -1000, .delay_ms = 1000), IL_OK);
    t_pass(s, 1000);
    for (unsigned i = 0; i < ARRAY_LEN(expected); i++)
        (void)t_claim_is(s, "q", "w", expected[i]);
    t_claim_none(s, "q", "w");
}

T_TEST(the_order_of_claims_pessimistic)
{
    in_order(s, IL_STRATEGY_PESSIMISTIC);
}

T_TEST(the_order_of_claims_optimistic)
{
    in_order(s, IL_STRATEGY_OPTIMISTIC);
}

static void
many_at_once(struct t_store *s, il_strategy strategy)
{
    uint64_t token = 0;

    (void)T_IS(t_queue_set(s, "q", .strategy = 1 + (int32_t)strategy), IL_OK);
    t_push_many(s, "q", "j", 25, T_JOB());
    const il_op *op = T_IS(t_claim(s, "q", "w", .limit = 22, .lease_ms = 5000), IL_OK);
    T_EQU(op->out.n_jobs, 22);
    T_EQ(op->out.flags, strategy == IL_STRATEGY_OPTIMISTIC ? IL_OUT_OPTIMISTIC : 0);
    for (unsigned i = 0; i < 22; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "j%u", i);
        T_STREQ(op->out.jobs[i].id, id);
        T_EQ(op->out.jobs[i].remaining_ms, 5000);
        T_LESS(token, op->out.jobs[i].token); /* in the order claimed */
        token = op->out.jobs[i].token;
    }
    T_EQU(op->out.fence, op->out.jobs[0].token);
    T_EQU(T_IS(t_claim(s, "q", "w2", .limit = IL_CLAIM_JOBS_MAX), IL_OK)->out.n_jobs, 3);
    T_EQU(t_queue(s, "q")->claimed, 25);
}

T_TEST(many_at_once_pessimistic)
{
    many_at_once(s, IL_STRATEGY_PESSIMISTIC);
}

T_TEST(many_at_once_optimistic)
{
    many_at_once(s, IL_STRATEGY_OPTIMISTIC);
}

T_TEST(tokens_are_never_used_again)
{
    uint64_t last = 0;

    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t token = t_claim_is(s, "q", "w", "j");
        T_LESS(last, token);
        last = token;
        t_pass(s, 30000);
    }
}

/* A claim whose answer got lost is repeated with its id. */
T_TEST(a_repeated_claim_gives_the_same_jobs)
{
    uint64_t tokens[3];

    t_push_many(s, "q", "j", 5, T_JOB(.data = "x"));
    const il_op *op = T_IS(t_claim(s, "q", "w", .claim = "c1", .limit = 3), IL_OK);
    for (unsigned i = 0; i < 3; i++)
        tokens[i] = op->out.jobs[i].token;
    t_pass(s, 1000);
    op = T_IS(t_claim(s, "q", "w", .claim = "c1", .limit = 3), IL_OK);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQU(op->out.n_jobs, 3);
    T_EQ(op->out.remaining_ms, 29000); /* nothing was extended */
    for (unsigned i = 0; i < 3; i++) {
        T_EQU(op->out.jobs[i].token, tokens[i]);
        T_STREQ(op->out.jobs[i].payload, "x");
        T_EQ(op->out.jobs[i].attempt, 1);
    }
    /* The same id of another worker is another claim. */
    T_EQ(T_IS(t_claim(s, "q", "w2", .claim = "c1"), IL_OK)->out.flags, 0);
    /* What has ended since, or was given back, is left out. */
    (void)T_IS(t_finish(s, "j0", tokens[0]), IL_OK);
    (void)T_IS(t_snooze(s, "j2", tokens[2]), IL_OK);
    (void)T_IS(t_heartbeat(s, "j1", tokens[1]), IL_OK);
    op = T_IS(t_claim(s, "q", "w", .claim = "c1", .limit = 3), IL_OK);
    T_EQU(op->out.n_jobs, 1);
    T_STREQ(op->out.jobs[0].id, "j1");
    (void)T_IS(t_finish(s, "j1", tokens[1]), IL_OK);
    op = T_IS(t_claim(s, "q", "w", .claim = "c1", .limit = 3), IL_EMPTY);
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    T_EQ(op->out.remaining_ms, IL_FOREVER);
    /* The next claim gives what is there. */
    T_EQU(T_IS(t_claim(s, "q", "w", .claim = "c2", .limit = 9), IL_OK)->out.n_jobs, 2);
    T_EQU(t_queue(s, "q")->claimed, 6);
}

T_TEST(a_repeated_claim_leaves_out_dead_claims)
{
    t_push_many(s, "q", "j", 2, T_JOB());
    const il_op *op =
        T_IS(t_claim(s, "q", "w", .claim = "c", .limit = 2, .lease_ms = 10000), IL_OK);
    (void)T_IS(t_heartbeat(s, "j1", op->out.jobs[1].token, .lease_ms = 40000), IL_OK);
    t_pass(s, 10000);
    op = T_IS(t_claim(s, "q", "w", .claim = "c", .limit = 2), IL_OK);
    T_EQU(op->out.n_jobs, 1);
    T_STREQ(op->out.jobs[0].id, "j1");
    T_EQ(op->out.remaining_ms, 30000);
    T_EQU(t_queue(s, "q")->recovered, 0); /* nothing changed */
}

T_TEST(an_empty_claim_looks_again)
{
    (void)T_IS(t_queue_set(s, "q"), IL_OK);
    (void)T_IS(t_claim(s, "q", "w", .claim = "c"), IL_EMPTY);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    T_EQ(T_IS(t_claim(s, "q", "w", .claim = "c"), IL_OK)->out.flags, 0);
    T_EQ(T_IS(t_claim(s, "q", "w", .claim = "c"), IL_OK)->out.flags, IL_OUT_RENEWED);
}

T_TEST(a_claim_is_remembered_for_a_minute)
{
    t_push_many(s, "q", "j", 2, T_JOB());
    (void)T_IS(t_claim(s, "q", "w", .claim = "c", .lease_ms = 3600000), IL_OK);
    t_pass(s, 59999);
    (void)t_sweep_all(s, 0);
    T_EQ(T_IS(t_claim(s, "q", "w", .claim = "c"), IL_OK)->out.flags, IL_OUT_RENEWED);
    t_pass(s, 1);
    const il_op *op = T_IS(t_claim(s, "q", "w", .claim = "c"), IL_OK);
    T_EQ(op->out.flags, 0);
    T_STREQ(op->out.jobs[0].id, "j1");
}

T_TEST(an_earlier_claim_is_not_remembered)
{
    t_push_many(s, "q", "j", 3, T_JOB());
    (void)T_IS(t_claim(s, "q", "w", .claim = "c1"), IL_OK);
    (void)T_IS(t_claim(s, "q", "w", .claim = "c2"), IL_OK);
    T_STREQ(T_IS(t_claim(s, "q", "w", .claim = "c1"), IL_OK)->out.jobs[0].id, "j2");
}

T_TEST(empty_says_when_to_look_again)
{
    (void)T_IS(t_push(s, "q", "j", .delay_ms = 7000), IL_OK);
    (void)T_IS(t_push(s, "q", "k", .delay_ms = 5000), IL_OK);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 5000);
    t_pass(s, 4999);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 1);
    t_pass(s, 1);
    (void)t_claim_is(s, "q", "w", "k");
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, 2000);
    t_pass(s, 2000);
    (void)t_claim_is(s, "q", "w", "j");
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.remaining_ms, IL_FOREVER);
}

/* Pause a queue. */
T_TEST(a_paused_queue_gives_nothing)
{
    (void)T_IS(t_pause(s, "q", .text = "no such queue"), IL_NOT_FOUND);
    t_push_many(s, "q", "j", 3, T_JOB());
    uint64_t     token = t_claim_is(s, "q", "w", "j0");
    const il_op *op    = T_IS(t_pause(s, "q", .text = "maintenance"), IL_OK);
    T_EQU(op->out.n_queues, 1);
    T_EQ(op->out.queues[0].paused, 1);
    T_STREQ(op->out.queues[0].reason, "maintenance");
    op = T_IS(t_claim(s, "q", "w"), IL_EMPTY);
    T_EQ(op->out.flags, IL_OUT_PAUSED);
    T_EQ(op->out.remaining_ms, IL_FOREVER);
    T_STREQ(t_queue(s, "q")->reason, "maintenance");
    (void)T_IS(t_pause(s, "q", .text = "still"), IL_OK);
    T_STREQ(t_queue(s, "q")->reason, "still");
    /* What runs goes on, and jobs can be pushed. */
    (void)T_IS(t_heartbeat(s, "j0", token), IL_OK);
    (void)T_IS(t_finish(s, "j0", token), IL_OK);
    (void)T_IS(t_push(s, "q", "late"), IL_OK);
    op = T_IS(t_pause(s, "q", .flags = IL_RESUME), IL_OK);
    T_EQ(op->out.queues[0].paused, 0);
    T_STREQ(op->out.queues[0].reason, "");
    (void)t_claim_is(s, "q", "w", "j1");
}

T_TEST(a_paused_queue_still_recovers_and_promotes)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    (void)T_IS(t_push(s, "q", "k", .delay_ms = 1000), IL_OK);
    (void)t_claim_is(s, "q", "w", "j");
    (void)T_IS(t_pause(s, "q"), IL_OK);
    t_pass(s, 30000);
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_EMPTY)->out.flags, IL_OUT_PAUSED);
    (void)t_job_is(s, "j", IL_JOB_READY);
    t_clock_set_wall(&s->clock, -86400000);
    (void)t_job_is(s, "k", IL_JOB_READY); /* was made so */
}

/* Workers that do not heartbeat. */
T_TEST(silent_claims_of_a_pessimistic_queue)
{
    (void)T_IS(t_queue_set(s, "q", .processing_timeout_ms = 50000), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    const il_op *op = T_IS(t_claim(s, "q", "w", .flags = IL_CLAIM_SILENT, .lease_ms = 1000), IL_OK);
    uint64_t     token = op->out.fence;
    T_EQ(op->out.remaining_ms, 50000);
    t_pass(s, 49999);
    /* Since the last update: a progress report is one. */
    T_EQ(T_IS(t_heartbeat(s, "j", token, T_PROGRESS(10)), IL_OK)->out.remaining_ms, 50000);
    t_pass(s, 50000);
    (void)T_IS(t_finish(s, "j", token), IL_STALE);
    T_STREQ(t_job_is(s, "j", IL_JOB_READY)->error, "Processing timeout - worker may have crashed");
}

T_TEST(silent_claims_of_an_optimistic_queue)
{
    (void)T_IS(t_queue_set(s, "q", .strategy = 2, .executing_timeout_ms = 20000), IL_OK);
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    const il_op *op    = T_IS(t_claim(s, "q", "w", .flags = IL_CLAIM_SILENT), IL_OK);
    uint64_t     token = op->out.fence;
    T_EQ(op->out.remaining_ms, 20000);
    t_pass(s, 15000);
    /* Since the start: nothing extends it. */
    op = T_IS(t_heartbeat(s, "j", token, T_PROGRESS(10), .lease_ms = 60000), IL_OK);
    T_EQ(op->out.remaining_ms, 5000);
    T_EQ(op->out.jobs[0].progress, 10);
    t_pass(s, 5000);
    (void)T_IS(t_heartbeat(s, "j", token), IL_STALE);
    T_STREQ(t_job_is(s, "j", IL_JOB_READY)->error, "Execution timeout - worker may have crashed");
}

T_TEST(default_timeouts_of_silent_claims)
{
    (void)T_IS(t_push(s, "p", "j"), IL_OK);
    (void)T_IS(t_queue_set(s, "o", .strategy = 2), IL_OK);
    (void)T_IS(t_push(s, "o", "k"), IL_OK);
    T_EQ(T_IS(t_claim(s, "p", "w", .flags = IL_CLAIM_SILENT), IL_OK)->out.remaining_ms, 300000);
    T_EQ(T_IS(t_claim(s, "o", "w", .flags = IL_CLAIM_SILENT), IL_OK)->out.remaining_ms, 120000);
}

/* A worker that has finished is forgotten at once instead of a minute later. */
T_TEST(a_worker_that_leaves_is_forgotten)
{
    t_push_many(s, "q", "j", 2, T_JOB());
    const il_op *op    = T_IS(t_claim(s, "q", "w"), IL_OK);
    uint64_t     token = op->out.fence;
    (void)T_IS(t_claim(s, "q", "other"), IL_OK);
    T_EQU(t_queue(s, "q")->n_workers, 2);
    (void)T_IS(t_claim(s, "q", "w", .flags = IL_CLAIM_LEAVE), IL_EMPTY);
    T_EQU(t_queue(s, "q")->n_workers, 1);
    T_EQU(t_queue(s, "q")->claimed, 2);                                  /* nothing was given */
    (void)T_IS(t_claim(s, "q", "w", .flags = IL_CLAIM_LEAVE), IL_EMPTY); /* again */
    (void)T_IS(t_claim(s, "q", "nobody", .flags = IL_CLAIM_LEAVE), IL_EMPTY);
    T_EQU(t_queue(s, "q")->n_workers, 1);
    (void)T_IS(t_claim(s, "nope", "w", .flags = IL_CLAIM_LEAVE), IL_NOT_FOUND);
    (void)T_IS(t_finish(s, "j0", token), IL_OK); /* its job is still its own */
    (void)T_IS(t_pause(s, "q", .text = "paused"), IL_OK);
    (void)T_IS(t_claim(s, "q", "other", .flags = IL_CLAIM_LEAVE), IL_EMPTY);
    T_EQU(t_queue(s, "q")->n_workers, 0);
    t_pass(s, 60000);
    (void)T_IS(t_sweep(s), IL_OK);
    T_EQU(t_queue(s, "q")->n_workers, 0);
}

T_TEST(the_lease_is_the_queues_unless_asked_for)
{
    (void)T_IS(t_queue_set(s, "q", .lease_ms = 12000), IL_OK);
    t_push_many(s, "q", "j", 2, T_JOB());
    T_EQ(T_IS(t_claim(s, "q", "w"), IL_OK)->out.remaining_ms, 12000);
    T_EQ(T_IS(t_claim(s, "q", "w", .lease_ms = 45000), IL_OK)->out.remaining_ms, 45000);
}

T_TEST(a_claim_promotes_a_thousand)
{
    t_push_many(s, "q", "j", 1500, T_JOB(.delay_ms = 1000));
    (void)T_IS(t_push(s, "q", "urgent", .delay_ms = 1001, .priority = -1), IL_OK);
    t_pass(s, 2000);
    T_EQU(t_queue(s, "q")->n_ready, 1000); /* as many as a claim makes ready */
    T_EQU(t_queue(s, "q")->n_scheduled, 501);
    (void)t_claim_is(s, "q", "w", "j0"); /* the urgent one is not among the first thousand due */
    (void)t_claim_is(s, "q", "w", "urgent");
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 1000), IL_OK)->out.n_jobs, 1000);
    T_EQU(T_IS(t_claim(s, "q", "w", .limit = 1000), IL_OK)->out.n_jobs, 499);
    T_EQU(t_queue(s, "q")->n_scheduled, 0); /* none is counted in a state that it has left */
    T_EQU(t_queue(s, "q")->n_running, 1501);
}

T_TEST(queues_are_apart)
{
    (void)T_IS(t_push(s, "a", "ja"), IL_OK);
    (void)T_IS(t_push(s, "b", "jb"), IL_OK);
    (void)t_claim_is(s, "b", "w", "jb");
    t_claim_none(s, "b", "w");
    (void)t_claim_is(s, "a", "w", "ja");
}

static void
refused(const il_op *op, const char *why)
{
    T_HAS(T_IS(op, IL_INVAL)->out.detail, why);
}

T_TEST(what_is_refused)
{
    (void)T_IS(t_push(s, "q", "j"), IL_OK);
    refused(t_claim(s, NULL, "w"), "no queue");
    refused(t_claim(s, "q", NULL), "no worker");
    refused(t_claim(s, "q", ""), "worker is empty");
    refused(t_claim(s, "q", "w", .claim = ""), "id of the claim");
    refused(t_claim(s, "q", "w", .limit = IL_CLAIM_JOBS_MAX + 1),
            "limit must be between 1 and 1000, not 1001");
    refused(t_claim(s, "q", "w", .lease_ms = 999),
            "lease_ms must be between 1000 and 86400000, not 999");
    refused(t_claim(s, "q", "w", .lease_ms = IL_TTL_MS_MAX + 1), "lease_ms");
    refused(t_claim(s, "q", "w", .lease_ms = -1), "lease_ms");
    refused(t_pause(s, "", .text = "x"), "queue is empty");
    refused(t_pause(s, "q", .text = "a\nb"), "reason contains a control");
    (void)t_job_is(s, "j", IL_JOB_READY);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(no_such_queue),
        T_ROW(a_claimed_job_runs),
        T_ROW(two_workers_one_job_pessimistic),
        T_ROW(two_workers_one_job_optimistic),
        T_ROW(the_order_of_claims_pessimistic),
        T_ROW(the_order_of_claims_optimistic),
        T_ROW(many_at_once_pessimistic),
        T_ROW(many_at_once_optimistic),
        T_ROW(tokens_are_never_used_again),
        T_ROW(a_repeated_claim_gives_the_same_jobs),
        T_ROW(a_repeated_claim_leaves_out_dead_claims),
        T_ROW(an_empty_claim_looks_again),
        T_ROW(a_claim_is_remembered_for_a_minute),
        T_ROW(an_earlier_claim_is_not_remembered),
        T_ROW(empty_says_when_to_look_again),
        T_ROW(a_paused_queue_gives_nothing),
        T_ROW(a_paused_queue_still_recovers_and_promotes),
        T_ROW(silent_claims_of_a_pessimistic_queue),
        T_ROW(silent_claims_of_an_optimistic_queue),
        T_ROW(default_timeouts_of_silent_claims),
        T_ROW(a_worker_that_leaves_is_forgotten),
        T_ROW(the_lease_is_the_queues_unless_asked_for),
        T_ROW(a_claim_promotes_a_thousand),
        T_ROW(queues_are_apart),
        T_ROW(what_is_refused),
    };

    return T_SUITE("job_claim", tests);
}
