/*
 * lock_batch.c: acquires, renewals and releases of many callers at once: a batch has the same
 * effect as its ops one after another. Engines have fast paths for the common cases; these tests
 * mix them with the others, and with ops that depend on each other.
 */
#include "harness/suite.h"

#define ACQUIRE(key, holder, ...) t_op(IL_OP_ACQUIRE, key, holder, 0, T_ARGS(__VA_ARGS__))
#define RENEW(key, holder, fence, ...) t_op(IL_OP_RENEW, key, holder, fence, T_ARGS(__VA_ARGS__))
#define RELEASE(key, holder, fence) t_op(IL_OP_RELEASE, key, holder, fence, T_ARGS(.ttl_ms = 0))

static uint64_t
held(struct t_store *s, const char *key, const char *holder)
{
    return T_IS(t_acquire(s, key, holder, .ttl_ms = 9000), IL_OK)->out.fence;
}

static void
release_all(il_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
}

static void
is_granted(const il_op *op, uint64_t fence, int64_t remaining_ms)
{
    (void)T_IS(op, IL_OK);
    T_EQ(op->out.flags, 0);
    T_EQU(op->out.fence, fence);
    T_EQ(op->out.remaining_ms, remaining_ms);
    T_EQ(op->out.n_items, 0);
    T_STREQ(op->out.detail, NULL);
}

T_TEST(all_of_the_usual_kind)
{
    uint64_t renewed[3] = { held(s, "r:0", "ra"), held(s, "r:1", "rb/1"), held(s, "r:2", "rb/2") };
    uint64_t ended[2]   = { held(s, "e:0", "ea"), held(s, "e:1", "rb/3") };
    il_op    ops[]      = {
                ACQUIRE("a:0", "aa", .ttl_ms = 7000, .meta = "m\n1", .place = "x.c:1"),
                RENEW("r:0", "ra", renewed[0]),
                ACQUIRE("a:1", "ab", .ttl_ms = 8000, .settle_ms = 2000),
                RELEASE("e:0", "ea", ended[0]),
                RENEW("r:1", "rb/1", renewed[1], .ttl_ms = 20000),
                RELEASE("e:1", "rb/3", ended[1]),
                /* another key, another unit */
                ACQUIRE("a:0", "aa", .ttl_ms = 6000, .tenant = "other"),
                RENEW("r:2", "rb/2", renewed[2], .ttl_ms = 1000),
                ACQUIRE("a:2", "ac/1", .wait_ms = 5000),
    };

    t_pass(s, 1000);
    t_batch(s, ops, ARRAY_LEN(ops));
    is_granted(&ops[0], ops[0].out.fence, 7000);
    is_granted(&ops[1], renewed[0], 9000);
    is_granted(&ops[2], ops[2].out.fence, 8000);
    is_granted(&ops[3], 0, 0);
    is_granted(&ops[4], renewed[1], 20000);
    is_granted(&ops[5], 0, 0);
    is_granted(&ops[6], ops[6].out.fence, 6000);
    is_granted(&ops[7], renewed[2], 1000);
    is_granted(&ops[8], ops[8].out.fence, IL_TTL_MS_DEFAULT);
    uint64_t fences[] = { ops[0].out.fence, ops[2].out.fence, ops[6].out.fence, ops[8].out.fence };
    for (size_t i = 0; i < ARRAY_LEN(fences); i++) {
        T_LESS(ended[1], fences[i]);
        for (size_t k = 0; k < i; k++)
            T_TRUE(fences[i] != fences[k]);
    }
    release_all(ops, ARRAY_LEN(ops));

    const il_lease_info *it = &T_IS(t_acquire(s, "a:0", "x"), IL_HELD)->out.items[0];
    T_STREQ(it->holder, "aa");
    T_STREQ(it->meta, "m\n1");
    T_STREQ(it->place, "x.c:1");
    T_EQU(it->fence, fences[0]);
    T_EQ(it->acquired_at_ms, T_WALL_MS_START + 1000);
    T_EQ(it->expires_at_ms, T_WALL_MS_START + 8000);
    T_EQU(T_IS(t_acquire(s, "a:0", "x", .tenant = "other"), IL_HELD)->out.items[0].fence,
          fences[2]);
    T_EQ(T_IS(t_acquire(s, "r:1", "x"), IL_HELD)->out.items[0].ttl_ms, 20000);
    (void)T_IS(t_acquire(s, "e:0", "x"), IL_OK);
    (void)T_IS(t_acquire(s, "e:1", "rb/3"), IL_LOST); /* a late copy */
    t_pass(s, 1000);                                  /* 1 s after the renewal for 1 s */
    (void)T_IS(t_renew(s, "r:2", "rb/2", renewed[2]), IL_LOST);
    t_pass(s, 7500); /* a:1 has expired, and settles */
    (void)T_IS(t_acquire(s, "a:1", "x"), IL_HELD);
    t_pass(s, 1500);
    (void)T_IS(t_acquire(s, "a:1", "x"), IL_OK);
}

/* A quarter of them depends on others; an engine may carry out the rest together. */
T_TEST(beside_what_depends_on_others)
{
    uint64_t a     = held(s, "k:0", "ua");
    uint64_t b     = held(s, "k:1", "ub/1");
    uint64_t c     = held(s, "k:2", "uc");
    il_op    ops[] = {
           RELEASE("k:0", "ua", a),
           ACQUIRE("k:0", "ux"), /* of a key that was given back just now */
           ACQUIRE("n:1", "u1"),
           ACQUIRE("n:2", "u2"),
           ACQUIRE("n:3", "u3"),
           ACQUIRE("n:4", "u4"),
           RELEASE("k:1", "ub/1", b),
           ACQUIRE("n:5", "ub/2"), /* its unit of work holds nothing any more */
           ACQUIRE("n:6", "u6"),
           ACQUIRE("n:7", "u7"),
           ACQUIRE("n:1", "u8"), /* taken before it, in the batch */
           RENEW("k:2", "uc", c),
           ACQUIRE("n:8", "uy"),
           /* of somebody who got the key just now, with a fence that is not its own */
           RELEASE("n:3", "u3", 1),
           ACQUIRE("n:9", "u9"),
           ACQUIRE("n:10", "u10"),
    };

    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        (void)T_IS(&ops[i], i == 10 ? IL_HELD : i == 13 ? IL_STALE : IL_OK);
    T_STREQ(ops[10].out.items[0].holder, "u1");
    T_LESS(a, ops[1].out.fence);
    release_all(ops, ARRAY_LEN(ops));
    T_STREQ(T_IS(t_acquire(s, "k:0", "z"), IL_HELD)->out.items[0].holder, "ux");
    /* What one unit of work takes in one batch, one key after the other, teaches an order as
     * ever. */
    il_op pair[] = { ACQUIRE("p:1", "up"), ACQUIRE("q:1", "up"), ACQUIRE("o:1", "uo1"),
                     ACQUIRE("o:2", "uo2"), ACQUIRE("o:3", "uo3") };
    t_batch(s, pair, ARRAY_LEN(pair));
    for (size_t i = 0; i < ARRAY_LEN(pair); i++)
        (void)T_IS(&pair[i], IL_OK);
    release_all(pair, ARRAY_LEN(pair));
    (void)T_IS(t_acquire(s, "q:2", "uz"), IL_OK);
    T_TRUE((T_IS(t_acquire(s, "p:2", "uz"), IL_OK)->out.flags & IL_OUT_ORDER_WARNING) != 0);
}

/* Each is of a key and a unit of its own, and most are not the usual case. */
T_TEST(of_which_none_is_usual)
{
    uint64_t a = held(s, "k:0", "ua");
    uint64_t b = held(s, "k:1", "ub");
    uint64_t c = held(s, "k:2", "uc");
    uint64_t d = T_IS(t_acquire(s, "k:3", "ud", .ttl_ms = 1000), IL_OK)->out.fence;
    uint64_t e = T_IS(t_acquire(s, "k:4", "ue", T_SHARED), IL_OK)->out.fence;
    uint64_t f = held(s, "k:5", "uf");

    (void)T_IS(t_acquire(s, "k:0", "w", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_acquire(s, "k:2", "v", .wait_ms = 500), IL_QUEUED);
    (void)T_IS(t_release(s, "k:5", "uf", f), IL_OK);
    t_pass(s, 1000);
    il_op ops[] = {
        RELEASE("k:0", "ua", a),        /* somebody waits */
        ACQUIRE("k:1", "x1"),           /* taken */
        RENEW("k:2", "uc", c),          /* who waits behind it is overdue */
        RENEW("k:3", "ud", d),          /* overdue */
        RELEASE("k:4", "ue", e),        /* shared */
        ACQUIRE("k:5", "uf"),           /* ended just now */
        RELEASE("k:6", "nobody", 7),    /* nobody's */
        ACQUIRE("k:7", "x7", T_SHARED), /* not alone */
        ACQUIRE("k:8", "ub"),           /* its unit of work holds another key */
        RELEASE("k:9", "x9", a),        /* another key's */
        RELEASE("k:5", "x5", f),        /* another's */
    };
    static const il_status wanted[] = { IL_OK, IL_HELD,     IL_OK,       IL_LOST,
                                        IL_OK, IL_LOST,     IL_NOT_HELD, IL_OK,
                                        IL_OK, IL_NOT_HELD, IL_NOT_HELD };
    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        (void)T_IS(&ops[i], wanted[i]);
    release_all(ops, ARRAY_LEN(ops));
    T_STREQ(T_IS(t_acquire(s, "k:0", "z"), IL_HELD)->out.items[0].holder,
            "w"); /* was offered to it */
    T_EQ(t_count(s, "k:2", IL_LIST_WAITERS), 0);
    (void)T_IS(t_renew(s, "k:1", "ub", b), IL_OK);
}

/* A unit of work that takes many keys, one after the other, among others who do. */
/* A fence says nothing without its key: who comes with another's is not taken for him. */
T_TEST(with_the_fence_of_another)
{
    uint64_t a     = held(s, "k:1", "h1");
    uint64_t b     = held(s, "k:2", "h2");
    il_op    ops[] = {
           RENEW("n:1", "g1", a, .tenant = "other"),
           RENEW("k:1", "h1", a),
           ACQUIRE("a:1", "u1"),
           RELEASE("n:2", "g2", b),
           RELEASE("k:2", "h2", b),
           ACQUIRE("a:2", "u2"),
           RENEW("n:3", "g3", a + b + 1),
           RELEASE("n:4", "g4", a + b),
           ACQUIRE("a:3", "u3"),
    };

    t_batch(s, ops, ARRAY_LEN(ops));
    (void)T_IS(&ops[0], IL_NOT_HELD);
    is_granted(&ops[1], a, 9000);
    (void)T_IS(&ops[2], IL_OK);
    (void)T_IS(&ops[3], IL_NOT_HELD);
    is_granted(&ops[4], 0, 0);
    (void)T_IS(&ops[5], IL_OK);
    (void)T_IS(&ops[6], IL_NOT_HELD);
    (void)T_IS(&ops[7], IL_NOT_HELD);
    (void)T_IS(&ops[8], IL_OK);
    release_all(ops, ARRAY_LEN(ops));
}

/* What a unit of work waits for may become its own by an op before its next one: that sees it. */
T_TEST(a_unit_that_is_given_something)
{
    (void)held(s, "first:1", "z");
    (void)held(s, "then:1", "z"); /* so then, and first behind it, is the wrong order */
    uint64_t fence = held(s, "then:2", "h");
    (void)T_IS(t_acquire(s, "then:2", "w", .wait_ms = 60000), IL_QUEUED);
    il_op ops[] = {
        RELEASE("then:2", "h", fence), ACQUIRE("first:2", "w"), ACQUIRE("a:1", "u1"),
        ACQUIRE("a:2", "u2"),          ACQUIRE("a:3", "u3"),
    };

    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        T_EQ(T_IS(&ops[i], IL_OK)->out.flags, i == 1 ? IL_OUT_ORDER_WARNING : 0);
    release_all(ops, ARRAY_LEN(ops));
}

T_TEST(many_keys_of_few_units)
{
    enum {
        UNITS = 12,
        KEYS  = 40
    };
    char names[UNITS][2][16];

    for (int k = 0; k < KEYS; k++) {
        il_op ops[UNITS];
        for (int i = 0; i < UNITS; i++) {
            (void)snprintf(names[i][0], sizeof names[i][0], "k:%d-%d", k, i);
            (void)snprintf(names[i][1], sizeof names[i][1], "u%d", i);
            ops[i] = ACQUIRE(names[i][0], names[i][1]);
        }
        t_batch(s, ops, UNITS);
        for (int i = 0; i < UNITS; i++) {
            uint64_t fence = T_IS(&ops[i], IL_OK)->out.fence;
            il_op_release(&ops[i]);
            ops[i] = RELEASE(names[i][0], names[i][1], fence);
        }
        t_batch(s, ops, UNITS);
        for (int i = 0; i < UNITS; i++)
            (void)T_IS(&ops[i], IL_OK);
        release_all(ops, UNITS);
    }
    /* All are remembered, also those that were put aside. */
    for (int k = 0; k < KEYS; k += KEYS - 1) {
        (void)snprintf(names[0][0], sizeof names[0][0], "k:%d-3", k);
        (void)T_IS(t_acquire(s, names[0][0], "u3"), IL_LOST);
        (void)T_IS(t_acquire(s, names[0][0], "u4"), IL_OK);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(all_of_the_usual_kind),          T_ROW(beside_what_depends_on_others),
        T_ROW(of_which_none_is_usual),         T_ROW(with_the_fence_of_another),
        T_ROW(a_unit_that_is_given_something), T_ROW(many_keys_of_few_units),
    };

    return T_SUITE("lock_batch", tests);
}
