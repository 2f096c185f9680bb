/*
 * tick.c: midnight comes, and several processes notice it at the same moment, some by a sweep and
 * some by a claim: one job. They share a clock that the test moves.
 */
#include <stdio.h>

#include "race/crowd.h"

#define PROCESSES 4
#define NIGHTS 200
#define DAY_MS INT64_C(86400000)

/* A process: at each midnight, sweep or claim when the others do. */
static int
notice(struct crowd *c, unsigned i)
{
    il *h = NULL;

    for (unsigned night = 0; night < NIGHTS; night++) {
        char  claim_id[32], worker[32];
        il_op op = { .type = IL_OP_SWEEP };
        crowd_meet(c); /* the schedule is there; it is midnight */
        if (h == NULL)
            h = crowd_open(c, true);
        (void)snprintf(claim_id, sizeof claim_id, "claim-%u-%u", i, night);
        (void)snprintf(worker, sizeof worker, "worker-%u", i);
        if (i % 2 == 0) {
            op           = (il_op){ .type = IL_OP_JOB_CLAIM, .key = "nightly", .holder = worker };
            op.in.job.id = claim_id;
        }
        crowd_meet(c); /* now */
        CHECK(il_apply(h, &op, 1, NULL) == IL_OK && (op.status == IL_OK || op.status == IL_EMPTY));
        atomic_fetch_add(&c->shared->n_done, op.out.sweep.n_ticks);
        atomic_fetch_add(&c->shared->n_other, (unsigned)op.out.n_jobs);
        il_op_release(&op);
        crowd_meet(c);
    }
    il_close(h);
    return 0;
}

static void
expect_pushed(il *h, uint64_t n)
{
    il_op op = { .type = IL_OP_QUEUE_LIST };

    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    T_EQU(op.out.n_queues, 1);
    T_EQU(op.out.queues[0].pushed, n);
    il_op_release(&op);
}

U_TEST(one_job_for_a_midnight)
{
    struct crowd *c    = crowd_new(PROCESSES, notice);
    il           *h    = crowd_open(c, true);
    il_op         cron = { .type = IL_OP_CRON_SET, .key = "nightly" };

    cron.in.cron.name     = "night";
    cron.in.cron.schedule = "@daily";
    CHECK(il_apply(h, &cron, 1, NULL) == IL_OK && cron.status == IL_OK);
    t_clock_step(&c->shared->clock, cron.out.crons[0].next_at_ms - t_clock_wall(&c->shared->clock));
    il_op_release(&cron);
    for (unsigned night = 0; night < NIGHTS; night++) {
        crowd_meet(c);
        crowd_meet(c);
        crowd_meet(c);
        expect_pushed(h, night + 1);
        t_clock_step(&c->shared->clock, DAY_MS);
    }
    crowd_end(c, 0);
    print_message("# %u of %d ticks were noticed by a sweep\n", atomic_load(&c->shared->n_done),
                  NIGHTS);
    T_TRUE(atomic_load(&c->shared->n_done) <= NIGHTS);
    il_close(h);
    crowd_free(c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(one_job_for_a_midnight) };

    return cmocka_run_group_tests_name("tick", tests, NULL, NULL);
}
