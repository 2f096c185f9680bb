/*
 * limit.c: twenty processes start runs of twenty different keys of one tenant at the same moment,
 * and the tenant may have five: exactly five are created, whether limited by live runs, by runs per
 * day or by rate.
 */
#include <stdio.h>

#include "race/crowd.h"

#define PROCESSES 20
#define ROUNDS 20
#define LIMIT 5

/* A process: in each round, a tenant of its own; the limits take turns. */
static int
start_runs(struct crowd *c, unsigned i)
{
    il *h = NULL;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char  tenant[32], key[32];
        il_op op = { .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT, .tenant = tenant, .key = key };
        (void)snprintf(tenant, sizeof tenant, "t%u", round);
        (void)snprintf(key, sizeof key, "pipeline:%u", i);
        op.in.run                                   = (il_run_in){ .id = key };
        *(round % 3 == 0   ? &op.in.run.live_max
          : round % 3 == 1 ? &op.in.run.day_max
                           : &op.in.run.minute_max) = LIMIT;
        crowd_meet(c); /* the round begins */
        if (h == NULL)
            h = crowd_open(c, true);
        crowd_meet(c); /* now */
        CHECK(il_apply(h, &op, 1, NULL) == IL_OK && (op.status == IL_OK || op.status == IL_LIMIT));
        atomic_fetch_add(op.status == IL_OK ? &c->shared->n_done : &c->shared->n_other, 1);
        il_op_release(&op);
        crowd_meet(c);
    }
    il_close(h);
    return 0;
}

static void
expect_runs(il *h, unsigned round)
{
    char  tenant[32];
    il_op op = { .type = IL_OP_RUN_LIST, .tenant = tenant };

    (void)snprintf(tenant, sizeof tenant, "t%u", round);
    CHECK(il_apply(h, &op, 1, NULL) == IL_OK && op.status == IL_OK);
    T_EQU(op.out.n_runs, LIMIT);
    il_op_release(&op);
}

U_TEST(exactly_as_many_as_the_limit)
{
    struct crowd *c = crowd_new(PROCESSES, start_runs);
    il           *h = crowd_open(c, true);

    for (unsigned round = 0; round < ROUNDS; round++) {
        crowd_meet(c);
        crowd_meet(c);
        crowd_meet(c);
        T_EQU(atomic_load(&c->shared->n_done), LIMIT * (round + 1));
        T_EQU(atomic_load(&c->shared->n_other), (PROCESSES - LIMIT) * (round + 1));
        expect_runs(h, round);
    }
    crowd_end(c, 0);
    il_close(h);
    crowd_free(c);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(exactly_as_many_as_the_limit) };

    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
