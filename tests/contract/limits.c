/*
 * limits.c: every limit of interlock.h, at and just beyond it, and batches.
 */
#include "harness/suite.h"

/* n bytes of 'x' in a buffer that lives until the next call. */
static const char *
text(size_t n)
{
    static char buf[8192];

    CHECK(n < sizeof buf);
    memset(buf, 'x', n);
    buf[n] = '\0';
    return buf;
}

static void
is_refused(const il_op *op, const char *names)
{
    (void)T_IS(op, IL_INVAL);
    T_HAS(op->out.detail, names);
    T_EQ(op->out.n_items, 0);
}

T_TEST(key)
{
    (void)T_IS(t_acquire(s, text(512), "a"), IL_OK);
    T_STREQ(t_lease_of(s, text(512), "a")->key, text(512));
    is_refused(t_acquire(s, text(513), "a"), "key");
    is_refused(t_acquire(s, "", "a"), "key");
    is_refused(t_acquire(s, NULL, "a"), "key");
    is_refused(t_acquire(s, "a\nb", "a"), "key");
    is_refused(t_acquire(s, "a\x7f", "a"), "key");
    is_refused(t_acquire(s, "a\xc2\x85", "a"), "key");        /* U+0085 */
    is_refused(t_acquire(s, "\xff", "a"), "key");             /* never in UTF-8 */
    is_refused(t_acquire(s, "\xc0\xaf", "a"), "key");         /* overlong */
    is_refused(t_acquire(s, "\xed\xa0\x80", "a"), "key");     /* a surrogate */
    is_refused(t_acquire(s, "\xf4\x90\x80\x80", "a"), "key"); /* over U+10FFFF */
    is_refused(t_acquire(s, "abc\xe2\x82", "a"), "key");      /* cut off */
    is_refused(t_renew(s, text(513), "a", 1), "key");
    is_refused(t_release(s, "", "a", 1), "key");
    is_refused(t_break(s, "\x01", 1), "key");
    is_refused(t_get(s, NULL), "key");
    is_refused(t_check(s, "", 1), "key");
    (void)T_IS(t_acquire(s, "\xe2\x82\xac \xf0\x9f\x98\x80", "a"), IL_OK);
    T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 2);
}

T_TEST(holder)
{
    uint64_t fence = T_IS(t_acquire(s, "k", text(256)), IL_OK)->out.fence;

    T_TRUE(t_lease_of(s, "k", text(256)) != NULL);
    (void)T_IS(t_renew(s, "k", text(256), fence), IL_OK);
    is_refused(t_acquire(s, "k", text(257)), "holder");
    is_refused(t_acquire(s, "k", ""), "holder");
    is_refused(t_acquire(s, "k", NULL), "holder");
    is_refused(t_acquire(s, "k", "a\tb"), "holder");
    is_refused(t_renew(s, "k", "\xff", 1), "holder");
    is_refused(t_release(s, "k", NULL, 1), "holder");
}

T_TEST(tenant)
{
    (void)T_IS(t_acquire(s, "k", "a", .tenant = text(64)), IL_OK);
    is_refused(t_acquire(s, "k", "a", .tenant = text(65)), "tenant");
    is_refused(t_acquire(s, "k", "a", .tenant = ""), "tenant");
    is_refused(t_list(s, NULL, .tenant = "\n"), "tenant");
    is_refused(t_get(s, "k", .tenant = "\xff"), "tenant");
}

T_TEST(meta_and_place_and_reason)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .meta = text(4096)), IL_OK)->out.fence;

    T_STREQ(t_lease_of(s, "k", "a")->meta, text(4096));
    is_refused(t_acquire(s, "m", "a", .meta = text(4097)), "meta");
    is_refused(t_acquire(s, "m", "a", .meta = "\xff"), "meta");
    (void)T_IS(t_acquire(s, "m", "a", .meta = "two\nlines\t"), IL_OK);
    (void)T_IS(t_acquire(s, "p", "a", .place = text(256)), IL_OK);
    T_STREQ(t_lease_of(s, "p", "a")->place, text(256));
    is_refused(t_acquire(s, "q", "a", .place = text(257)), "place");
    is_refused(t_acquire(s, "q", "a", .place = "a\n"), "place");
    static const char *const bad[] = { NULL, "", "a\nb", "\xff" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        is_refused(t_op_run(s, NULL, t_op(IL_OP_BREAK, "k", NULL, fence, T_ARGS(.reason = bad[i]))),
                   "reason");
    is_refused(t_op_run(s, NULL, t_op(IL_OP_BREAK, "k", NULL, fence, T_ARGS(.reason = text(257)))),
               "reason");
    (void)T_IS(t_op_run(s, NULL, t_op(IL_OP_BREAK, "k", NULL, fence, T_ARGS(.reason = text(256)))),
               IL_OK);
}

T_TEST(ttl)
{
    static const int64_t bad[] = { -1, 1, 999, IL_TTL_MS_MAX + 1, INT64_MAX, INT64_MIN };
    uint64_t             fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 1000), IL_OK)->out.fence;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        is_refused(t_acquire(s, "k2", "a", .ttl_ms = bad[i]), "TTL");
        is_refused(t_renew(s, "k", "a", fence, .ttl_ms = bad[i]), "TTL");
    }
    T_EQ(T_IS(t_renew(s, "k", "a", fence, .ttl_ms = IL_TTL_MS_MAX), IL_OK)->out.remaining_ms,
         IL_TTL_MS_MAX);
    t_pass(s, IL_TTL_MS_MAX - 1);
    (void)T_IS(t_check(s, "k", fence), IL_OK);
    t_pass(s, 1);
    (void)T_IS(t_check(s, "k", fence), IL_STALE);
}

T_TEST(wait_and_settle)
{
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    is_refused(t_acquire(s, "k", "b", .wait_ms = -2), "wait");
    is_refused(t_acquire(s, "k", "b", .wait_ms = INT64_MIN), "wait");
    is_refused(t_acquire(s, "k", "b", .settle_ms = -1), "settle");
    is_refused(t_acquire(s, "k", "b", .settle_ms = IL_TTL_MS_MAX + 1), "settle");
    (void)T_IS(t_acquire(s, "k2", "b", .settle_ms = IL_TTL_MS_MAX), IL_OK);
    /* A wait that would run over the end of time is a long one, not an overflow. */
    const il_op *op = T_IS(t_acquire(s, "k", "b", .wait_ms = INT64_MAX), IL_QUEUED);
    T_TRUE(op->out.remaining_ms > 0 || op->out.remaining_ms == IL_FOREVER);
    t_pass(s, 14999);
    T_TRUE(t_waiter_of(s, "k", "b") != NULL);
}

T_TEST(permits)
{
    is_refused(t_acquire(s, "k", "a", .mode = IL_MODE_PERMIT), "permits");
    is_refused(t_acquire(s, "k", "a", .permits = 1), "permits");
    is_refused(t_acquire(s, "k", "a", T_SHARED, .permits = 1), "permits");
    is_refused(t_acquire(s, "k", "a", T_PERMITS(IL_PERMITS_MAX + 1)), "permits");
    is_refused(t_acquire(s, "k", "a", T_PERMITS(UINT32_MAX)), "permits");
    is_refused(t_acquire(s, "k", "a", .mode = IL_MODE_COUNT), "mode");
    is_refused(t_acquire(s, "k", "a", .mode = (il_mode)-1), "mode");
    (void)T_IS(t_acquire(s, "k", "a", T_PERMITS(IL_PERMITS_MAX)), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b", T_PERMITS(IL_PERMITS_MAX)), IL_OK);
}

T_TEST(fence)
{
    static const uint64_t bad[] = { 0, UINT64_C(1) << 53, UINT64_MAX };

    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        is_refused(t_renew(s, "k", "a", bad[i]), "fence");
        is_refused(t_release(s, "k", "a", bad[i]), "fence");
        is_refused(t_break(s, "k", bad[i]), "fence");
        is_refused(t_check(s, "k", bad[i]), "fence");
    }
    (void)T_IS(t_check(s, "k", (UINT64_C(1) << 53) - 1), IL_STALE);
}

T_TEST(page_and_cursor)
{
    static const char *const bad[] = {
        "",     "x",     "zz:k", "1", "1:", ":k", "fffffffffffffffff:k", "ffffffffffffffff:k",
        "1:\n", "1:\xff"
    };

    (void)T_IS(t_list(s, NULL, .limit = IL_PAGE_ITEMS_MAX), IL_OK);
    is_refused(t_list(s, NULL, .limit = IL_PAGE_ITEMS_MAX + 1), "limit");
    is_refused(t_sweep(s, .limit = IL_PAGE_ITEMS_MAX + 1), "limit");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        is_refused(t_list(s, NULL, .cursor = bad[i]), "cursor");
    is_refused(t_list(s, text(513)), "prefix");
    is_refused(t_list(s, "\xff"), "prefix");
    is_refused(t_list(s, "\n"), "prefix");
    (void)T_IS(t_list(s, text(512)), IL_OK);
}

T_TEST(not_an_operation)
{
    (void)T_IS(t_op_run(s, NULL, (il_op){ .type = IL_OP_NONE }), IL_INVAL);
    (void)T_IS(t_op_run(s, NULL, (il_op){ .type = IL_OP_COUNT }), IL_INVAL);
    (void)T_IS(t_op_run(s, NULL, (il_op){ .type = (il_op_type)-1 }), IL_INVAL);
}

T_TEST(batch_size)
{
    il_op   *ops = calloc(IL_BATCH_OPS_MAX + 1, sizeof *ops);
    il_error err = { 0 };

    T_TRUE(ops != NULL);
    for (size_t i = 0; i <= IL_BATCH_OPS_MAX; i++)
        ops[i] = t_op(IL_OP_ACQUIRE, "k", "a", 0, T_ARGS());
    T_EQ(il_apply(t_handle(s), ops, 0, &err), IL_INVAL);
    T_EQ(err.status, IL_INVAL);
    T_EQ(il_apply(t_handle(s), ops, IL_BATCH_OPS_MAX + 1, &err), IL_INVAL);
    T_EQ(il_apply(t_handle(s), NULL, 1, &err), IL_INVAL);
    (void)T_IS(t_get(s, "k"), IL_NOT_HELD); /* changed nothing */
    t_batch(s, ops, IL_BATCH_OPS_MAX);
    for (size_t i = 0; i < IL_BATCH_OPS_MAX; i++) {
        (void)T_IS(&ops[i], IL_OK);
        T_EQU(ops[i].out.fence, ops[0].out.fence);
        T_EQ(ops[i].out.flags, i == 0 ? 0 : IL_OUT_RENEWED);
    }
    for (size_t i = 0; i < IL_BATCH_OPS_MAX; i++)
        il_op_release(&ops[i]);
    free(ops);
}

/* As many ops as a batch may have, each as large as it may be: some 20 MB. */
T_TEST(largest_batch)
{
    struct large {
        char key[IL_KEY_BYTES_MAX + 1], holder[IL_HOLDER_BYTES_MAX + 1];
    };
    il_op        *ops   = calloc(IL_BATCH_OPS_MAX, sizeof *ops);
    struct large *names = calloc(IL_BATCH_OPS_MAX, sizeof *names);
    char          meta[IL_META_BYTES_MAX + 1];

    T_TRUE(ops != NULL && names != NULL);
    memset(meta, 'm', IL_META_BYTES_MAX);
    meta[IL_META_BYTES_MAX] = '\0';
    for (size_t i = 0; i < IL_BATCH_OPS_MAX; i++) {
        memset(&names[i], 'x', sizeof names[i]);
        (void)snprintf(names[i].holder, sizeof names[i].holder, "%0*zu", IL_HOLDER_BYTES_MAX, i);
        /* Scattered: each lands on another page than the one before. */
        (void)snprintf(names[i].key, sizeof names[i].key, "%0*zu", IL_KEY_BYTES_MAX,
                       i * 2654435761U % 1000003);
        ops[i] = t_op(IL_OP_ACQUIRE, names[i].key, names[i].holder, 0, T_ARGS(.meta = meta));
    }
    t_batch(s, ops, IL_BATCH_OPS_MAX);
    for (size_t i = 0; i < IL_BATCH_OPS_MAX; i++) {
        T_EQ(ops[i].status, IL_OK);
        uint64_t fence = ops[i].out.fence;
        il_op_release(&ops[i]);
        ops[i]       = t_op(IL_OP_GET, names[i].key, NULL, 0, T_ARGS());
        ops[i].fence = fence; /* GET does not look at it */
    }
    /* So many at once that their results stay below IL_RESULT_BYTES_MAX. */
    for (size_t i = 0; i < IL_BATCH_OPS_MAX; i += 512)
        t_batch(s, ops + i, 512);
    for (size_t i = 0; i < IL_BATCH_OPS_MAX; i++) {
        T_EQ(ops[i].status, IL_OK);
        T_EQU(ops[i].out.items[0].fence, ops[i].fence);
        T_STREQ(ops[i].out.items[0].holder, names[i].holder);
        T_STREQ(ops[i].out.items[0].meta, meta);
        il_op_release(&ops[i]);
    }
    free(ops);
    free(names);
}

T_TEST(a_batch_keeps_its_order)
{
    il_op ops[] = {
        t_op(IL_OP_ACQUIRE, "k", "a", 0, T_ARGS()),
        t_op(IL_OP_ACQUIRE, "k", "b", 0, T_ARGS()),
        t_op(IL_OP_ACQUIRE, "k", "b", 0, T_ARGS(.wait_ms = 60000)),
        t_op(IL_OP_GET, "k", NULL, 0, T_ARGS()),
        t_op(IL_OP_ACQUIRE, "other", "b", 0, T_ARGS()),
        t_op(IL_OP_LIST, NULL, NULL, 0, T_ARGS()),
    };
    static const il_status expected[] = { IL_OK, IL_HELD, IL_QUEUED, IL_OK, IL_OK, IL_OK };

    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        (void)T_IS(&ops[i], expected[i]);
    T_EQ(ops[3].out.items[0].n_waiters, 1);
    T_EQ(ops[5].out.n_items, 2);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        il_op_release(&ops[i]);
}

T_TEST(a_bad_op_does_not_disturb_the_others)
{
    il_op ops[] = {
        t_op(IL_OP_ACQUIRE, "k1", "a", 0, T_ARGS()),
        t_op(IL_OP_ACQUIRE, "", "a", 0, T_ARGS()),
        t_op(IL_OP_ACQUIRE, "k2", "a", 0, T_ARGS(.ttl_ms = 1)),
        t_op(IL_OP_NONE, "k2", "a", 0, T_ARGS()),
        t_op(IL_OP_ACQUIRE, "k3", "a", 0, T_ARGS()),
    };
    static const il_status expected[] = { IL_OK, IL_INVAL, IL_INVAL, IL_INVAL, IL_OK };

    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_IS(&ops[i], expected[i]);
        il_op_release(&ops[i]);
    }
    T_EQ(T_IS(t_list(s, NULL), IL_OK)->out.n_items, 2);
}

T_TEST(only_bad_ops)
{
    il_op ops[] = { t_op(IL_OP_ACQUIRE, "", "a", 0, T_ARGS()),
                    t_op(IL_OP_GET, "", NULL, 0, T_ARGS()) };

    t_batch(s, ops, 2);
    (void)T_IS(&ops[0], IL_INVAL);
    (void)T_IS(&ops[1], IL_INVAL);
    il_op_release(&ops[0]);
    il_op_release(&ops[1]);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(key),
        T_ROW(holder),
        T_ROW(tenant),
        T_ROW(meta_and_place_and_reason),
        T_ROW(ttl),
        T_ROW(wait_and_settle),
        T_ROW(permits),
        T_ROW(fence),
        T_ROW(page_and_cursor),
        T_ROW(not_an_operation),
        T_ROW(batch_size),
        T_ROW(largest_batch),
        T_ROW(a_batch_keeps_its_order),
        T_ROW(a_bad_op_does_not_disturb_the_others),
        T_ROW(only_bad_ops),
    };

    return T_SUITE("limits", tests);
}
