/*
 * scenario_job.c: queues under faults: repeated calls take effect once, as the queue's totals show.
 */
#include "fault/scenario_internal.h"

#define QUEUE "jobs"

static il_op
push(const char *id, const char *parent)
{
    il_op op = { .type = IL_OP_JOB_PUSH, .key = QUEUE };

    op.in.job = (il_job_in){ .id = id, .data = "work", .data_bytes = 4, .parent = parent };
    return op;
}

static il_op
by_id(il_op_type type, const char *id, uint64_t token)
{
    il_op op = { .type = type, .fence = token };

    op.in.job = (il_job_in){ .id = id, .progress = -1, .text = "text" };
    return op;
}

/* Claim one; its token. */
static uint64_t
claim(struct scenario *s, const char *claim_id, const char *expected)
{
    il_op op = { .type = IL_OP_JOB_CLAIM, .key = QUEUE, .holder = "worker" };

    op.in.job  = (il_job_in){ .id = claim_id, .limit = 1, .lease_ms = 5000 };
    il_op done = scenario_apply(s, op, IL_OK, IL_OK);
    T_EQU(done.out.n_jobs, 1);
    T_STREQ(done.out.jobs[0].id, expected);
    uint64_t token = done.out.jobs[0].token;
    il_op_release(&done);
    return token;
}

static void
expect(struct scenario *s, const char *id, il_job_state state, unsigned attempt)
{
    il_op done = scenario_apply(s, by_id(IL_OP_JOB_GET, id, 0), IL_OK, IL_OK);

    T_EQU(done.out.n_jobs, 1);
    if (done.out.jobs[0].state != state || done.out.jobs[0].attempt != attempt)
        T_FAIL("%s: job %s is %s at attempt %u", s->what, id,
               il_job_state_name(done.out.jobs[0].state), done.out.jobs[0].attempt);
    il_op_release(&done);
}

static void
play_one(struct scenario *s)
{
    il_op unique = push("j2", NULL);

    (void)scenario_step(s, push("j1", NULL), IL_OK, IL_OK);
    unique.in.job.unique_key = "u";
    unique.in.job.group      = "g";
    (void)scenario_step(s, unique, IL_OK, IL_OK);
    unique.in.job.id = "j3";
    (void)scenario_step(s, unique, IL_DUPLICATE, IL_DUPLICATE);
    uint64_t t = claim(s, "c1", "j1");
    T_EQU(claim(s, "c1", "j1"), t); /* the same claim again */
    (void)scenario_step(s, by_id(IL_OP_JOB_HEARTBEAT, "j1", t), IL_OK, IL_OK);
    (void)scenario_step(s, by_id(IL_OP_JOB_FAIL, "j1", t), IL_OK, IL_OK);
    expect(s, "j1", IL_JOB_SCHEDULED, 1); /* counted once */
    t_clock_step(s->test_clock, 1);       /* due now, behind j2 */
    (void)scenario_step(s, by_id(IL_OP_JOB_RETRY, "j1", 0), IL_OK, IL_OK);
    t = claim(s, "c2", "j2");
    (void)scenario_step(s, by_id(IL_OP_JOB_SNOOZE, "j2", t), IL_OK, IL_OK);
    expect(s, "j2", IL_JOB_READY, 0);
    t = claim(s, "c3", "j1");
    (void)scenario_step(s, by_id(IL_OP_JOB_FINISH, "j1", t), IL_OK, IL_OK);
    expect(s, "j1", IL_JOB_COMPLETED, 2);
    t = claim(s, "c4", "j2");
    t_clock_step(s->test_clock, 5000);
    (void)scenario_step(s, (il_op){ .type = IL_OP_SWEEP }, IL_OK, IL_OK);
    (void)scenario_step(s, by_id(IL_OP_JOB_FINISH, "j2", t), IL_STALE, IL_STALE);
    expect(s, "j2", IL_JOB_READY, 1);
    (void)scenario_step(s, by_id(IL_OP_JOB_CANCEL, "j2", 0), IL_OK, IL_OK);
    expect(s, "j2", IL_JOB_CANCELLED, 1);
    scenario_look(s);
}

static void
play_parent(struct scenario *s)
{
    il_op parent = push("p", NULL);

    parent.flags = IL_PUSH_PARENT;
    (void)scenario_step(s, parent, IL_OK, IL_OK);
    (void)scenario_step(s, push("p1", "p"), IL_OK, IL_OK);
    (void)scenario_step(s, push("p2", "p"), IL_OK, IL_OK);
    uint64_t t1 = claim(s, "c5", "p1");
    uint64_t t2 = claim(s, "c6", "p2");
    (void)scenario_step(s, by_id(IL_OP_JOB_SEAL, "p", 0), IL_OK, IL_OK);
    (void)scenario_step(s, by_id(IL_OP_JOB_FINISH, "p1", t1), IL_OK, IL_OK);
    expect(s, "p", IL_JOB_RUNNING, 0);
    (void)scenario_step(s, by_id(IL_OP_JOB_FINISH, "p2", t2), IL_OK, IL_OK);
    expect(s, "p", IL_JOB_COMPLETED, 0);
    scenario_look(s);
}

static void
play_queue(struct scenario *s)
{
    il_op set   = { .type = IL_OP_QUEUE_SET, .key = QUEUE };
    il_op pause = { .type = IL_OP_QUEUE_PAUSE, .key = QUEUE };
    il_op cron  = { .type = IL_OP_CRON_SET, .key = QUEUE };
    il_op list  = { .type = IL_OP_JOB_LIST, .key = QUEUE };
    il_op purge = { .type = IL_OP_JOB_PURGE, .key = QUEUE };

    set.in.queue.rate_n = 100;
    (void)scenario_step(s, set, IL_OK, IL_OK);
    pause.in.job.text = "repairs";
    (void)scenario_step(s, pause, IL_OK, IL_OK);
    pause.flags = IL_RESUME;
    (void)scenario_step(s, pause, IL_OK, IL_OK);
    cron.in.cron =
        (il_cron_in){ .name = "tick", .schedule = "@hourly", .data = "t", .data_bytes = 1 };
    il_op done = scenario_apply(s, cron, IL_OK, IL_OK);
    T_EQU(done.out.n_crons, 1);
    t_clock_step(s->test_clock, done.out.crons[0].next_at_ms - t_clock_wall(s->test_clock));
    il_op_release(&done);
    (void)scenario_step(s, (il_op){ .type = IL_OP_CRON_LIST }, IL_OK, IL_OK);
    (void)scenario_step(s, (il_op){ .type = IL_OP_SWEEP }, IL_OK, IL_OK);
    (void)scenario_step(s, list, IL_OK, IL_OK);
    /* A sweep that finds no memory for a tick leaves it to the next one. */
    (void)scenario_step(s, (il_op){ .type = IL_OP_SWEEP }, IL_OK, IL_OK);
    cron.type = IL_OP_CRON_REMOVE;
    cron.key  = NULL;
    (void)scenario_step(s, cron, IL_OK, IL_NOT_FOUND);
    purge.in.list.states = 1 << IL_JOB_COMPLETED;
    (void)scenario_step(s, purge, IL_OK, IL_OK);
    scenario_look(s);
}

/* Pushed, claimed, failed, snoozed, finished: each as often as it was meant. */
static void
expect_totals(struct scenario *s)
{
    il_op done = scenario_apply(s, (il_op){ .type = IL_OP_QUEUE_LIST }, IL_OK, IL_OK);

    T_EQU(done.out.n_queues, 1);
    const il_queue_info *q = &done.out.queues[0];
    if (q->pushed != 6 || q->claimed != 6 || q->failed_attempts != 1 || q->snoozed != 1 ||
        q->completed != 4 || q->recovered != 1 || q->cancelled != 1)
        T_FAIL("%s: %u pushed, %u claimed, %u failed, %u snoozed, %u completed, %u recovered, %u "
               "cancelled",
               s->what, (unsigned)q->pushed, (unsigned)q->claimed, (unsigned)q->failed_attempts,
               (unsigned)q->snoozed, (unsigned)q->completed, (unsigned)q->recovered,
               (unsigned)q->cancelled);
    il_op_release(&done);
}

/* The library's own: a job whose claim failed can be claimed in the end, and is finished once. */
static void
play_held_job(struct scenario *s)
{
    il_claim_opts opts = IL_CLAIM_OPTS_INIT;
    il_job       *job  = NULL;
    size_t        n    = 0;
    char          id[IL_ID_BYTES_MAX + 1];
    il_error      err = { 0 };

    if (scenario_failed(s, il_push(s->h, "held jobs", "x", 1, NULL, id, &err), IL_OK) &&
        il_push(s->h, "held jobs", "x", 1, NULL, id, &err) != IL_OK)
        T_FAIL("%s: il_push: %s", s->what, err.message);
    opts.lease_ms = 5000;
    il_status st  = il_claim(s->h, "held jobs", &opts, &job, &n, &err);
    if (scenario_failed(s, st, IL_OK)) {
        t_clock_step(s->test_clock, 5000); /* if it was carried out, the claim runs out */
        st = il_claim(s->h, "held jobs", &opts, &job, &n, &err);
    }
    if (st != IL_OK)
        T_FAIL("%s: il_claim: %s", s->what, err.message);
    if (scenario_failed(s, il_job_progress(job, 50, "half", &err), IL_OK))
        T_EQ(il_job_progress(job, 50, "half", &err), IL_OK);
    if (scenario_failed(s, il_job_finish(job, "done", 4, &err), IL_OK))
        T_EQ(il_job_finish(job, "done", 4, &err), IL_OK);
    il_job_free(job);
}

void
scenario_job(struct scenario *s)
{
    play_one(s);
    play_parent(s);
    play_queue(s);
    expect_totals(s);
    play_held_job(s);
    scenario_look(s);
}
