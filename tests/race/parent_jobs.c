/*
 * parent_jobs.c: as many processes as a parent has children finish them at the same moment, again
 * and again: each time the parent completes once, with the last child.
 */
#include <stdio.h>

#include "race/crowd.h"

#define PROCESSES 8
#define ROUNDS 200
#define QUEUE "batch"

static void
child_id(unsigned round, unsigned i, char id[32])
{
    (void)snprintf(id, 32, "r%u-c%u", round, i);
}

static il_op
apply_one(il *h, il_op op)
{
    il_error  err = { 0 };
    il_status st  = il_apply(h, &op, 1, &err);

    if (st != IL_OK)
        T_FAIL("%s: %s", il_op_name(op.type), err.message);
    return op;
}

/* A process: in each round, finish its child when the others do. */
static int
finish_children(struct crowd *c, unsigned i)
{
    il *h = NULL;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char  id[32];
        il_op op = { .type = IL_OP_JOB_FINISH };
        crowd_meet(c); /* the tokens are there */
        if (h == NULL)
            h = crowd_open(c, false);
        child_id(round, i, id);
        op.fence     = c->shared->tokens[i];
        op.in.job.id = id;
        crowd_meet(c); /* now */
        CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
        if (op.out.n_jobs > 0 && op.out.jobs[0].state == IL_JOB_COMPLETED)
            atomic_fetch_add(&c->shared->n_done, 1);
        il_op_release(&op);
        crowd_meet(c); /* all are finished */
    }
    il_close(h);
    return 0;
}

/* A parent and its children, all of them claimed. */
static void
prepare(struct crowd *c, il *h, unsigned round, const char *parent)
{
    il_op push  = { .type = IL_OP_JOB_PUSH, .key = QUEUE, .flags = IL_PUSH_PARENT };
    il_op claim = { .type = IL_OP_JOB_CLAIM, .key = QUEUE, .holder = "w" };
    char  id[32];

    push.in.job.id         = parent;
    push.in.job.n_children = PROCESSES;
    push                   = apply_one(h, push);
    T_EQ(push.status, IL_OK);
    il_op_release(&push);
    for (unsigned i = 0; i < PROCESSES; i++) {
        push = (il_op){ .type = IL_OP_JOB_PUSH, .key = QUEUE };
        child_id(round, i, id);
        push.in.job.id     = id;
        push.in.job.parent = parent;
        push               = apply_one(h, push);
        T_EQ(push.status, IL_OK);
        il_op_release(&push);
    }
    claim.in.job.id    = parent; /* each claim has an id of its own */
    claim.in.job.limit = PROCESSES;
    claim              = apply_one(h, claim);
    T_EQU(claim.out.n_jobs, PROCESSES);
    for (unsigned i = 0; i < PROCESSES; i++)
        c->shared->tokens[i] = claim.out.jobs[i].token; /* in the order of pushes */
    il_op_release(&claim);
}

static void
expect_completed(il *h, const char *parent)
{
    il_op op = { .type = IL_OP_JOB_GET };

    op.in.job.id = parent;
    op           = apply_one(h, op);
    T_EQ(op.status, IL_OK);
    const il_job_info *job = &op.out.jobs[0];
    if (job->state != IL_JOB_COMPLETED || job->n_children_completed != PROCESSES)
        T_FAIL("%s is %s with %u of %u children", parent, il_job_state_name(job->state),
               job->n_children_completed, job->n_children);
    il_op_release(&op);
}

U_TEST(the_last_children_end_at_once)
{
    struct crowd *c = crowd_new(PROCESSES, finish_children);
    il           *h = race_open(&c->race);
    char          parent[32];

    for (unsigned round = 0; round < ROUNDS; round++) {
        (void)snprintf(parent, sizeof parent, "parent-%u", round);
        prepare(c, h, round, parent);
        crowd_meet(c);
        crowd_meet(c);
        crowd_meet(c);
        expect_completed(h, parent);
    }
    crowd_end(c, 0);
    T_EQU(atomic_load(&c->shared->n_done), PROCESSES * ROUNDS);
    il_op op = apply_one(h, (il_op){ .type = IL_OP_QUEUE_LIST });
    T_EQU(op.out.n_queues, 1);
    T_EQU(op.out.queues[0].completed, (PROCESSES + 1) * ROUNDS); /* no parent twice */
    il_op_release(&op);
    il_close(h);
    crowd_free(c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(the_last_children_end_at_once) };

    return cmocka_run_group_tests_name("parent_jobs", tests, NULL, NULL);
}
