/*
 * once_begin.c: each row of the begin table in src/core/once.md, and what get shows.
 */
#include "harness/once.h"
#include "harness/suite.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS INT64_C(86400000)

T_TEST(a_new_key_is_claimed)
{
    const il_op *a = T_IS(t_once_begin(s, "k", "a"), IL_OK);
    const il_op *b = T_IS(t_once_begin(s, "other", "a"), IL_OK);

    T_LESS(0, a->out.fence);
    T_LESS(a->out.fence, b->out.fence); /* tokens are drawn from one counter */
    T_EQ(a->out.flags, 0);
    T_EQ(a->out.remaining_ms, MINUTE_MS); /* the default */
    T_EQ(a->out.age_ms, 0);
    T_STREQ(a->out.meta, "");
    T_EQ(T_IS(t_once_begin(s, "short", "a", .ttl_ms = 1500), IL_OK)->out.remaining_ms, 1500);
}

T_TEST(another_fingerprint_is_a_mismatch)
{
    uint64_t token =
        T_IS(t_once_begin(s, "k", "a", .print = "p", .meta = "id-1", .ttl_ms = 2000), IL_OK)
            ->out.fence;

    /* with the existing id; whoever asks, and also on a dead claim and after the answer. */
    for (unsigned i = 0; i < 3; i++) {
        T_STREQ(T_IS(t_once_begin(s, "k", "b", .print = "q"), IL_MISMATCH)->out.meta, "id-1");
        T_STREQ(T_IS(t_once_begin(s, "k", "a", .print = "q"), IL_MISMATCH)->out.meta, "id-1");
        (void)T_IS(t_once_begin(s, "k", "b", .print = "pp"), IL_MISMATCH);
        const il_op *op = T_IS(t_once_begin(s, "k", "b"), IL_MISMATCH); /* none is another one */
        T_EQU(op->out.fence, token);
        T_HAS(op->out.detail, "another request");
        T_TRUE(op->out.value == NULL);
        if (i == 0)
            t_pass(s, 2000);
        if (i == 1) {
            token = T_IS(t_once_begin(s, "k", "c", .print = "p"), IL_OK)->out.fence;
            (void)T_IS(t_once_finish(s, "k", "c", token, "done"), IL_OK);
        }
    }
}

T_TEST(fingerprints_are_bytes)
{
    il_op op                     = t_once_op(IL_OP_ONCE_BEGIN, "k", "a", 0, NULL, T_ONCE_ARGS());
    op.in.once.fingerprint       = "f\0x";
    op.in.once.fingerprint_bytes = 3;
    (void)T_IS(t_op_run(s, NULL, op), IL_OK);
    op.holder = "b";
    (void)T_IS(t_op_run(s, NULL, op), IL_BUSY);
    op.in.once.fingerprint = "f\0y";
    (void)T_IS(t_op_run(s, NULL, op), IL_MISMATCH);
    op.in.once.fingerprint_bytes = 1;
    (void)T_IS(t_op_run(s, NULL, op), IL_MISMATCH);
    (void)T_IS(t_once_begin(s, "none", "a"), IL_OK);
    (void)T_IS(t_once_begin(s, "none", "b", .print = ""), IL_BUSY); /* empty is none */
}

T_TEST(an_answer_is_replayed_to_everybody)
{
    uint64_t token = T_IS(t_once_begin(s, "k", "a", .meta = "id-1"), IL_OK)->out.fence;

    (void)T_IS(t_once_finish(s, "k", "a", token, "created", .code = 201), IL_OK);
    t_pass(s, 5 * MINUTE_MS); /* long after the claim would have died */
    const il_op *ops[] = { t_once_begin(s, "k", "b", .meta = "id-2"), t_once_begin(s, "k", "a"),
                           t_once_get(s, "k") };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_REPLAYS(ops[i], "created", 7, 201);
        T_STREQ(ops[i]->out.meta, "id-1");
        T_EQU(ops[i]->out.fence, token);
        T_EQ(ops[i]->out.age_ms, 5 * MINUTE_MS);
        T_EQ(ops[i]->out.remaining_ms, DAY_MS - 5 * MINUTE_MS);
    }
}

T_TEST(the_same_attempt_renews)
{
    uint64_t token =
        T_IS(t_once_begin(s, "k", "a", .ttl_ms = 10000, .meta = "m"), IL_OK)->out.fence;

    for (unsigned i = 0; i < 3; i++) {
        t_pass(s, 9999);
        const il_op *op = T_IS(t_once_begin(s, "k", "a", .ttl_ms = 10000, .meta = "other"), IL_OK);
        T_EQU(op->out.fence, token);
        T_EQ(op->out.flags, IL_OUT_RENEWED);
        T_EQ(op->out.remaining_ms, 10000);
        T_EQ(op->out.age_ms, 9999 * (i + 1));
        T_STREQ(op->out.meta, "");
        /* of the begin that has the claim */
        T_STREQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.meta, "m");
    }
    /* A renewal may ask for another time. */
    (void)T_IS(t_once_begin(s, "k", "a", .ttl_ms = 2000), IL_OK);
    T_EQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.remaining_ms, 2000);
}

T_TEST(another_attempt_is_told_who_is_at_work)
{
    uint64_t token =
        T_IS(t_once_begin(s, "k", "a", .ttl_ms = 10000, .meta = "id-1"), IL_OK)->out.fence;

    t_pass(s, 4000);
    const il_op *ops[] = { t_once_begin(s, "k", "b", .meta = "id-2"), t_once_get(s, "k") };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_IS(ops[i], IL_BUSY);
        T_STREQ(ops[i]->out.meta, "id-1");
        T_EQ(ops[i]->out.remaining_ms, 6000);
        T_EQ(ops[i]->out.age_ms, 4000);
        T_EQU(ops[i]->out.fence, token);
        T_EQ(ops[i]->out.flags, 0);
        T_TRUE(ops[i]->out.value == NULL);
    }
    t_pass(s, 5999);
    T_EQ(T_IS(t_once_begin(s, "k", "b"), IL_BUSY)->out.remaining_ms, 1);
}

T_TEST(a_dead_claim_is_taken_over)
{
    uint64_t a = T_IS(t_once_begin(s, "k", "a", .ttl_ms = 10000, .meta = "id-1"), IL_OK)->out.fence;

    t_pass(s, 10000);
    T_EQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.remaining_ms, 0); /* get never changes anything */
    const il_op *b = T_IS(t_once_begin(s, "k", "b", .meta = "id-2"), IL_OK);
    T_LESS(a, b->out.fence);
    T_EQ(b->out.flags, IL_OUT_TAKEOVER);
    T_STREQ(b->out.meta, "id-1");
    T_EQ(b->out.age_ms, 10000); /* since the first begin */
    T_EQ(b->out.remaining_ms, MINUTE_MS);
    /* The answer of the begin may have been lost: repeated, it says the same. */
    const il_op *again = T_IS(t_once_begin(s, "k", "b", .meta = "id-2"), IL_OK);
    T_EQU(again->out.fence, b->out.fence);
    T_EQ(again->out.flags, IL_OUT_RENEWED | IL_OUT_TAKEOVER);
    T_STREQ(again->out.meta, "id-1");
    T_STREQ(T_IS(t_once_begin(s, "k", "c"), IL_BUSY)->out.meta, "id-2");
    (void)T_IS(t_once_finish(s, "k", "a", a, "late"), IL_STALE);
    (void)T_IS(t_once_finish(s, "k", "b", b->out.fence, "mine"), IL_OK);
    (void)T_REPLAYS(t_once_begin(s, "k", "a"), "mine", 4, 0);
}

T_TEST(an_attempt_takes_over_from_itself)
{
    uint64_t a = T_IS(t_once_begin(s, "k", "a", .ttl_ms = 1000, .meta = "id-1"), IL_OK)->out.fence;

    t_pass(s, 1000);
    const il_op *op = T_IS(t_once_begin(s, "k", "a", .ttl_ms = 1000), IL_OK);
    T_LESS(a, op->out.fence);
    T_EQ(op->out.flags, IL_OUT_TAKEOVER);
    T_STREQ(op->out.meta, "id-1");
    /* Without a meta of its own it has the old one, and the next one is told. */
    T_STREQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.meta, "id-1");
    t_pass(s, 1000);
    T_STREQ(T_IS(t_once_begin(s, "k", "c", .meta = ""), IL_OK)->out.meta, "id-1");
    T_STREQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.meta, "");
}

T_TEST(get_shows_and_changes_nothing)
{
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    uint64_t token = T_IS(t_once_begin(s, "k", "a", .ttl_ms = 2000), IL_OK)->out.fence;
    t_pass(s, 1000);
    T_EQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.remaining_ms, 1000);
    T_EQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.remaining_ms, 1000); /* not renewed */
    t_pass(s, 999);
    (void)T_IS(t_once_finish(s, "k", "a", token, ""), IL_OK);
    (void)T_REPLAYS(t_once_get(s, "k"), "", 0, 0);
}

/* Two at once: one claim. The order in one batch is the order of the ops. */
T_TEST(many_in_one_batch)
{
    il_op ops[20];
    char  names[20][8];

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)snprintf(names[i], sizeof names[i], "a%zu", i);
        ops[i] = t_once_op(IL_OP_ONCE_BEGIN, "k", names[i], 0, NULL, T_ONCE_ARGS());
    }
    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        T_EQ(ops[i].status, i == 0 ? IL_OK : IL_BUSY);
        il_op_release(&ops[i]);
    }
}

T_TEST(tenants_and_namespaces_are_apart)
{
    uint64_t a = T_IS(t_once_begin(s, "k", "a", .tenant = "one"), IL_OK)->out.fence;
    uint64_t b = T_IS(t_once_begin(s, "k", "b", .tenant = "two"), IL_OK)->out.fence;

    (void)T_IS(t_once_finish(s, "k", "b", b, "no", .tenant = "one"), IL_STALE);
    (void)T_IS(t_once_finish(s, "k", "a", a, "1", .tenant = "one"), IL_OK);
    (void)T_IS(t_once_get(s, "k", .tenant = "two"), IL_BUSY);
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    (void)T_IS(t_once_abandon(s, "k", "b", b, .tenant = "two"), IL_OK);
    (void)T_REPLAYS(t_once_get(s, "k", .tenant = "one"), "1", 1, 0);
    /* Locks are elsewhere. */
    (void)T_IS(t_acquire(s, "k", "a"), IL_OK);
    (void)T_IS(t_once_begin(s, "k", "b"), IL_OK);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
}

T_TEST(survives_a_close)
{
    T_NEEDS(s, durable);
    uint64_t a = T_IS(t_once_begin(s, "a", "x", .print = "p", .meta = "m"), IL_OK)->out.fence;
    uint64_t b = T_IS(t_once_begin(s, "b", "x", .ttl_ms = 1000, .meta = "n"), IL_OK)->out.fence;

    (void)T_IS(t_once_finish(s, "a", "x", a, "answer", .code = -7), IL_OK);
    t_store_reopen(s);
    (void)T_REPLAYS(t_once_begin(s, "a", "y", .print = "p"), "answer", 6, -7);
    (void)T_IS(t_once_begin(s, "a", "y", .print = "q"), IL_MISMATCH);
    (void)T_IS(t_once_begin(s, "b", "y"), IL_BUSY);
    t_pass(s, 1000);
    const il_op *op = T_IS(t_once_begin(s, "b", "y"), IL_OK);
    T_STREQ(op->out.meta, "n");
    T_LESS(b, op->out.fence);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_new_key_is_claimed),
        T_ROW(another_fingerprint_is_a_mismatch),
        T_ROW(fingerprints_are_bytes),
        T_ROW(an_answer_is_replayed_to_everybody),
        T_ROW(the_same_attempt_renews),
        T_ROW(another_attempt_is_told_who_is_at_work),
        T_ROW(a_dead_claim_is_taken_over),
        T_ROW(an_attempt_takes_over_from_itself),
        T_ROW(get_shows_and_changes_nothing),
        T_ROW(many_in_one_batch),
        T_ROW(tenants_and_namespaces_are_apart),
        T_ROW(survives_a_close),
    };

    return T_SUITE("once_begin", tests);
}
