/*
 * entries.c: data shared by many jobs is stored once (lua/queue_due.lua), and does not outlive
 * them.
 */
#include <stdio.h>

#include "base/clock.h"
#include "harness/redis.h"
#include "harness/unit.h"

#define N 200
#define WAIT_NS (INT64_C(30000) * IL__NS_PER_MS)
#define KEEP_MS 3600000

static const char *const plain[] = { "--save", "", "--appendonly", "no", NULL };

struct world {
    struct t_redis r;
    il            *h;
    char           ids[N][16];
    uint64_t       tokens[N];
};

static void
apply(struct world *w, il_op *ops, size_t n)
{
    il_error err = { 0 };

    if (il_apply(w->h, ops, n, &err) != IL_OK)
        T_FAIL("%s", err.message);
    for (size_t i = 0; i < n; i++)
        T_EQ(ops[i].status, IL_OK);
}

static void
is_card(struct world *w, const char *key, const char *n)
{
    char out[T_REDIS_REPLY_BYTES];

    T_STREQ(T_REDIS(&w->r, out, "ZCARD", key), n);
}

/* N jobs, claimed at once. */
static void
start(struct world *w, int64_t lease_ms)
{
    static il_op ops[N];
    char         url[T_PATH_BYTES];
    il_op        set   = { .type = IL_OP_QUEUE_SET, .key = "q", .in.queue.keep_ms = KEEP_MS };
    il_op        claim = { .type = IL_OP_JOB_CLAIM, .key = "q", .holder = "w" };

    t_redis_init(&w->r, false, false);
    t_redis_start(&w->r, plain);
    t_path(url, "redis+unix://%s", w->r.socket);
    T_EQ(il_open(url, NULL, &w->h, NULL), IL_OK);
    apply(w, &set, 1);
    il_op_release(&set);
    for (unsigned i = 0; i < N; i++) {
        (void)snprintf(w->ids[i], sizeof w->ids[i], "j%u", i);
        ops[i] = (il_op){ .type = IL_OP_JOB_PUSH, .key = "q", .in.job.id = w->ids[i] };
    }
    apply(w, ops, N);
    for (unsigned i = 0; i < N; i++)
        il_op_release(&ops[i]);
    claim.in.job = (il_job_in){ .id = "c", .limit = N, .lease_ms = lease_ms };
    apply(w, &claim, 1);
    T_EQU(claim.out.n_jobs, N);
    for (unsigned i = 0; i < N; i++)
        w->tokens[i] = claim.out.jobs[i].token;
    il_op_release(&claim);
}

static void
stop(struct world *w)
{
    il_close(w->h);
    t_redis_release(&w->r);
}

/* Jobs from `from` to `to`, `at_once` of them in a batch. */
static void
finish(struct world *w, unsigned from, unsigned to, unsigned at_once)
{
    static il_op ops[N];

    for (unsigned i = from; i < to; i += at_once) {
        unsigned n = MIN(at_once, to - i);
        for (unsigned k = 0; k < n; k++)
            ops[k] = (il_op){ .type      = IL_OP_JOB_FINISH,
                              .fence     = w->tokens[i + k],
                              .in.job.id = w->ids[i + k] };
        apply(w, ops, n);
        for (unsigned k = 0; k < n; k++)
            il_op_release(&ops[k]);
    }
}

static int64_t
purge(struct world *w, uint32_t limit)
{
    il_op op = { .type = IL_OP_JOB_PURGE, .key = "q" };

    op.in.list.states = 1U << IL_JOB_COMPLETED;
    op.in.list.limit  = limit;
    apply(w, &op, 1);
    int64_t n = op.out.sweep.n_purged;
    il_op_release(&op);
    return n;
}

/* A claim that is finished as it was given has one entry for each 128 jobs all the time, and none
 * once they are purged. */
U_TEST(one_entry_for_many_jobs)
{
    static struct world w;

    start(&w, 30000);
    is_card(&w, "{il}:j.many:", "2");
    finish(&w, 0, N, N);
    is_card(&w, "{il}:j.many:", "2");
    T_EQ(purge(&w, 50), 50);
    is_card(&w, "{il}:j.many:", "2"); /* each has jobs left */
    T_EQ(purge(&w, 1000), N - 50);
    is_card(&w, "{il}:j.many:", "0");
    is_card(&w, "{il}:j.due:", "0");
    stop(&w);
}

/* Of one that is finished otherwise the claim's entry stays until its time has come. */
U_TEST(an_entry_that_is_not_true_any_more)
{
    static struct world w;
    char                out[T_REDIS_REPLY_BYTES];

    start(&w, 3000);
    finish(&w, 0, 20, 1);
    is_card(&w, "{il}:j.due:", "20");
    finish(&w, 20, N, 90);
    is_card(&w, "{il}:j.many:", "4");
    int64_t deadline_ns = il__clock_boot_ns() + WAIT_NS;
    while (strcmp(T_REDIS(&w.r, out, "ZCOUNT", "{il}:j.many:", "-inf", "1125899906842623"), "0") !=
           0) {
        il_op sweep = { .type = IL_OP_SWEEP };
        T_TRUE(il__clock_boot_ns() < deadline_ns);
        apply(&w, &sweep, 1);
        T_EQ(sweep.out.sweep.n_jobs, 0);
        il_op_release(&sweep);
    }
    is_card(&w, "{il}:j.many:", "2");
    T_EQ(purge(&w, 1000), N);
    is_card(&w, "{il}:j.many:", "0");
    is_card(&w, "{il}:j.due:", "0");
    stop(&w);
}

/* A long claim has an entry for each job, which their ends move. */
U_TEST(a_long_claim)
{
    static struct world w;

    start(&w, 3600000);
    is_card(&w, "{il}:j.many:", "0");
    is_card(&w, "{il}:j.due:", "200");
    finish(&w, 0, N, N);
    is_card(&w, "{il}:j.many:", "0");
    is_card(&w, "{il}:j.due:", "200");
    T_EQ(purge(&w, 1000), N);
    is_card(&w, "{il}:j.due:", "0");
    stop(&w);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(one_entry_for_many_jobs),
        U_ROW(an_entry_that_is_not_true_any_more),
        U_ROW(a_long_claim),
    };

    return cmocka_run_group_tests_name("redis-entries", tests, NULL, NULL);
}
