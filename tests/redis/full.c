/*
 * full.c: the server's memory is full. New data is refused with a clear message; ops that release
 * or renew still work; and everything works once there is memory again.
 */
#include <stdio.h>

#include "harness/redis.h"
#include "harness/unit.h"

static const char *const plain[] = { "--save", "", "--appendonly", "no", NULL };

static il_status
apply(il *h, il_op *op, char why[256])
{
    il_error err = { 0 };

    il_op_release(op);
    if (il_apply(h, op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
    (void)snprintf(why, 256, "%s", op->out.detail != NULL ? op->out.detail : "");
    return op->status;
}

static void
set_memory(struct t_redis *r, const char *bytes)
{
    char reply[T_REDIS_REPLY_BYTES];

    T_STREQ(T_REDIS(r, reply, "CONFIG", "SET", "maxmemory", bytes), "OK");
}

U_TEST(a_full_server_takes_nothing_new)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], why[256];
    il            *h = NULL, *g = NULL;

    t_redis_init(&r, false, false);
    t_redis_start(&r, plain);
    t_path(url, "redis+unix://%s", r.socket);
    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    il_op held      = { .type = IL_OP_ACQUIRE, .key = "held", .holder = "a" };
    il_op push      = { .type = IL_OP_JOB_PUSH, .key = "q" };
    il_op claim     = { .type = IL_OP_JOB_CLAIM, .key = "q", .holder = "w" };
    il_op run       = { .type = IL_OP_RUN_START, .key = "r", .holder = "x" };
    il_op begin     = { .type = IL_OP_ONCE_BEGIN, .key = "o", .holder = "y" };
    push.in.job.id  = "j";
    claim.in.job.id = "c";
    run.in.run.id   = "run";
    T_EQ(apply(h, &held, why), IL_OK);
    T_EQ(apply(h, &push, why), IL_OK);
    T_EQ(apply(h, &claim, why), IL_OK);
    T_EQ(apply(h, &run, why), IL_OK);
    T_EQ(apply(h, &begin, why), IL_OK);

    set_memory(&r, "1");
    il_op other = { .type = IL_OP_ACQUIRE, .key = "other", .holder = "b" };
    T_EQ(apply(h, &other, why), IL_FULL);
    T_HAS(why, "out of memory");
    push.in.job.id = "j2";
    T_EQ(apply(h, &push, why), IL_FULL);
    /* A process that comes now can still read and give back. */
    T_EQ(il_open(url, NULL, &g, NULL), IL_OK);
    il_op get = { .type = IL_OP_GET, .key = "held" };
    T_EQ(apply(g, &get, why), IL_OK);
    il_op renew = { .type = IL_OP_RENEW, .key = "held", .holder = "a", .fence = held.out.fence };
    T_EQ(apply(g, &renew, why), IL_OK);
    il_op beat     = { .type = IL_OP_JOB_HEARTBEAT, .fence = claim.out.jobs[0].token };
    il_op done     = { .type = IL_OP_JOB_FINISH, .fence = claim.out.jobs[0].token };
    beat.in.job.id = done.in.job.id = "j";
    beat.in.job.progress            = -1;
    T_EQ(apply(g, &beat, why), IL_OK);
    T_EQ(apply(g, &done, why), IL_OK);
    il_op finish        = { .type = IL_OP_RUN_FINISH, .holder = "x", .fence = run.out.fence };
    finish.in.run.id    = "run";
    finish.in.run.state = IL_RUN_COMPLETED;
    T_EQ(apply(g, &finish, why), IL_OK);
    il_op answer = {
        .type = IL_OP_ONCE_FINISH, .key = "o", .holder = "y", .fence = begin.out.fence
    };
    answer.in.once.response       = "yes";
    answer.in.once.response_bytes = 3;
    T_EQ(apply(g, &answer, why), IL_OK);
    /* In one batch: the acquire is refused, the release behind it is not. */
    il_op batch[3] = {
        { .type = IL_OP_ACQUIRE, .key = "k2", .holder = "b" },
        { .type = IL_OP_RELEASE, .key = "held", .holder = "a", .fence = held.out.fence },
        { .type = IL_OP_GET, .key = "held" }
    };
    T_EQ(il_apply(h, batch, 3, NULL), IL_OK);
    T_EQ(batch[0].status, IL_FULL);
    T_EQ(batch[1].status, IL_OK);
    T_EQ(batch[2].status, IL_NOT_HELD);
    il_op sweep = { .type = IL_OP_SWEEP };
    T_EQ(apply(g, &sweep, why), IL_OK);

    set_memory(&r, "0");
    T_EQ(apply(h, &other, why), IL_OK);
    T_EQ(apply(h, &push, why), IL_OK);
    il_op *all[] = { &held, &push, &claim,  &run,    &begin, &other,    &get,      &renew,
                     &beat, &done, &finish, &answer, &sweep, &batch[0], &batch[1], &batch[2] };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        il_op_release(all[i]);
    il_close(h);
    il_close(g);
    t_redis_release(&r);
}

/* What is repeated by whoever has it already is a sign of life, and nothing new. */
U_TEST(a_full_server_keeps_what_there_is)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], why[256];
    il            *h = NULL;

    t_redis_init(&r, false, false);
    t_redis_start(&r, plain);
    t_path(url, "redis+unix://%s", r.socket);
    T_EQ(il_open(url, NULL, &h, NULL), IL_OK);
    il_op held   = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "a" };
    il_op shared = { .type = IL_OP_ACQUIRE, .key = "s", .holder = "a" }; /* not packed */
    il_op next   = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "b" };
    il_op last   = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "c" };
    il_op begin  = { .type = IL_OP_ONCE_BEGIN, .key = "o", .holder = "y" };
    il_op run    = { .type = IL_OP_RUN_START, .key = "r", .holder = "x" };
    il_op queued = { .type = IL_OP_RUN_START, .key = "r", .holder = "z" };
    il_op slot   = { .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT, .key = "slot", .holder = "x" };
    shared.in.lock.mode  = IL_MODE_SHARED;
    next.in.lock.wait_ms = last.in.lock.wait_ms = 60000;
    run.in.run.id                               = "run";
    queued.in.run.id                            = "queued";
    queued.in.run.policy                        = IL_POLICY_QUEUE;
    slot.in.run.id                              = "slot";
    T_EQ(apply(h, &held, why), IL_OK);
    T_EQ(apply(h, &shared, why), IL_OK);
    T_EQ(apply(h, &next, why), IL_QUEUED);
    T_EQ(apply(h, &last, why), IL_QUEUED);
    T_EQ(apply(h, &begin, why), IL_OK);
    T_EQ(apply(h, &run, why), IL_OK);
    T_EQ(apply(h, &queued, why), IL_QUEUED);
    T_EQ(apply(h, &slot, why), IL_OK);
    uint64_t fence = held.out.fence;

    set_memory(&r, "1");
    T_EQ(apply(h, &held, why), IL_OK);
    T_EQU(held.out.fence, fence);
    T_EQ(apply(h, &shared, why), IL_OK);
    T_EQ(apply(h, &next, why), IL_QUEUED);
    T_EQ(apply(h, &begin, why), IL_OK);
    T_EQ(apply(h, &run, why), IL_OK);
    T_EQ(apply(h, &queued, why), IL_QUEUED);
    il_op release = { .type = IL_OP_RELEASE, .key = "k", .holder = "a", .fence = fence };
    T_EQ(apply(h, &release, why), IL_OK);
    T_EQ(apply(h, &next, why), IL_OK); /* its offer is confirmed */
    last.in.lock.wait_ms = 0;
    T_EQ(apply(h, &last, why), IL_HELD); /* it leaves */
    /* By anybody else the same is new. */
    shared.holder    = "b";
    begin.key        = "o2";
    run.in.run.id    = "run2";
    run.key          = "r2";
    slot.flags       = 0; /* to be executed now */
    il_op *refused[] = { &last, &shared, &begin, &run, &slot };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        T_EQ(apply(h, refused[i], why), IL_FULL);
        T_HAS(why, "out of memory");
    }
    /* In one batch. */
    il_op batch[2] = { { .type = IL_OP_ACQUIRE, .key = "k2", .holder = "b" },
                       { .type = IL_OP_ACQUIRE, .key = "k", .holder = "b" } };
    T_EQ(il_apply(h, batch, 2, NULL), IL_OK);
    T_EQ(batch[0].status, IL_FULL);
    T_EQ(batch[1].status, IL_OK);
    il_op *all[] = { &held,   &shared, &next,    &last,     &begin,   &run,
                     &queued, &slot,   &release, &batch[0], &batch[1] };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        il_op_release(all[i]);
    il_close(h);
    t_redis_release(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(a_full_server_takes_nothing_new),
                                               U_ROW(a_full_server_keeps_what_there_is) };

    return cmocka_run_group_tests_name("redis-full", tests, NULL, NULL);
}
