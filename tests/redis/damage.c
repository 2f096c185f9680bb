/*
 * damage.c: a damaged row is reported, and does not keep a sweep from processing the others.
 */
#include <poll.h>
#include <stdio.h>

#include "harness/clock.h"
#include "harness/redis.h"
#include "harness/unit.h"

#define LIMIT_MS 10000

static const char *const plain[] = { "--save", "", "--appendonly", "no", NULL };

/* Older than all others, so that it is the first that a sweep looks at. */
static const char spoil[] = "redis.call('HSET', '{il}:store', 'k\\0default\\0bad', '\\0xx') "
                            "return redis.call('ZADD', '{il}:ldue', 1, 'k\\0default\\0bad')";

static void
apply(il *h, il_op *op)
{
    il_error err = { 0 };

    if (il_apply(h, op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

U_TEST(a_damaged_lock_does_not_stop_a_sweep)
{
    struct t_redis r;
    char           url[T_PATH_BYTES], reply[T_REDIS_REPLY_BYTES];
    il_open_opts   o        = IL_OPEN_OPTS_INIT;
    il            *h        = NULL;
    il_op          lock     = { .type = IL_OP_ACQUIRE, .key = "good", .holder = "h" };
    int64_t        until_ms = t_real_ms() + LIMIT_MS;
    uint32_t       n        = 0;
    bool           told     = false;

    t_redis_init(&r, false, false);
    t_redis_start(&r, plain);
    t_path(url, "redis+unix://%s", r.socket);
    o.flags = IL_OPEN_NO_SWEEP;
    T_EQ(il_open(url, &o, &h, NULL), IL_OK);
    lock.in.lock.ttl_ms = 1000;
    apply(h, &lock);
    T_EQ(lock.status, IL_OK);
    il_op_release(&lock);
    T_STREQ(T_REDIS(&r, reply, "EVAL", spoil, "0"), "1");
    while (n == 0) { /* until the good one has expired */
        il_op op = { .type = IL_OP_SWEEP };
        T_TRUE(t_real_ms() < until_ms);
        apply(h, &op);
        if (op.status != IL_OK) {
            T_TRUE(!told); /* it was put off */
            T_STREQ(il_status_name(op.status), "STORE_CORRUPT");
            T_HAS(op.out.detail, "the lock bad of tenant default is damaged");
            told = true;
        }
        n = op.out.sweep.n_expired;
        il_op_release(&op);
        (void)poll(NULL, 0, 20);
    }
    T_TRUE(told);
    il_close(h);
    t_redis_release(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(a_damaged_lock_does_not_stop_a_sweep) };

    return cmocka_run_group_tests_name("redis-damage", tests, NULL, NULL);
}
