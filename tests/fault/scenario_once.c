/*
 * scenario_once.c: idempotency keys under faults: the answer is stored once, or not at all.
 */
#include "fault/scenario_internal.h"

static il_op
once_op(il_op_type type, const char *key, const char *attempt, uint64_t token)
{
    il_op op = { .type = type, .key = key, .holder = attempt, .fence = token };

    if (type == IL_OP_ONCE_BEGIN)
        op.in.once = (il_once_in){
            .fingerprint = "print", .fingerprint_bytes = 5, .lease_ms = 5000, .meta = "meta"
        };
    if (type == IL_OP_ONCE_FINISH)
        op.in.once = (il_once_in){ .response = "answer", .response_bytes = 6, .code = 7 };
    return op;
}

static void
expect_answer(struct scenario *s, const char *key)
{
    il_op done = scenario_apply(s, once_op(IL_OP_ONCE_BEGIN, key, "x", 0), IL_REPLAY, IL_REPLAY);

    T_EQU(done.out.value_bytes, 6);
    T_STREQ(done.out.value, "answer");
    T_EQ(done.out.code, 7);
    T_STREQ(done.out.meta, "meta");
    il_op_release(&done);
}

/* The library's own: whatever a failed begin leaves behind, the next one can be had. */
static void
play_claim(struct scenario *s)
{
    il_once_opts opts = IL_ONCE_OPTS_INIT;
    il_once     *once = NULL;
    il_error     err  = { 0 };
    il_op        op   = { 0 };

    opts.lease_ms = 5000;
    il_status st  = il_once_begin(s->h, "held", &opts, &once, &op, &err);
    il_op_release(&op);
    if (scenario_failed(s, st, IL_OK)) {
        T_TRUE(once == NULL);
        t_clock_step(s->test_clock, 5000); /* if it was carried out, the claim runs out */
        st = il_once_begin(s->h, "held", &opts, &once, &op, &err);
        il_op_release(&op);
    }
    if (st != IL_OK)
        T_FAIL("%s: il_once_begin: %s", s->what, err.message);
    if (scenario_failed(s, il_once_finish(once, 7, "answer", 6, &err), IL_OK))
        T_EQ(il_once_finish(once, 7, "answer", 6, &err), IL_OK);
    il_once_free(once);
    st = il_once_begin(s->h, "held", &opts, &once, &op, &err);
    if (scenario_failed(s, st == IL_REPLAY ? IL_OK : st, IL_OK)) {
        il_op_release(&op);
        st = il_once_begin(s->h, "held", &opts, &once, &op, &err);
    }
    T_EQ(st, IL_REPLAY);
    T_EQU(op.out.value_bytes, 6);
    il_op_release(&op);
}

void
scenario_once(struct scenario *s)
{
    uint64_t a = scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o1", "a", 0), IL_OK, IL_OK);
    il_op    other;

    T_EQU(scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o1", "a", 0), IL_OK, IL_OK), a);
    (void)scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o1", "b", 0), IL_BUSY, IL_BUSY);
    other                     = once_op(IL_OP_ONCE_BEGIN, "o1", "b", 0);
    other.in.once.fingerprint = "other";
    (void)scenario_step(s, other, IL_MISMATCH, IL_MISMATCH);
    (void)scenario_step(s, once_op(IL_OP_ONCE_GET, "o1", NULL, 0), IL_BUSY, IL_BUSY);
    (void)scenario_step(s, once_op(IL_OP_ONCE_FINISH, "o1", "a", a), IL_OK, IL_OK);
    expect_answer(s, "o1");
    /* Given up, then begun by another. */
    a = scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o2", "a", 0), IL_OK, IL_OK);
    (void)scenario_step(s, once_op(IL_OP_ONCE_ABANDON, "o2", "a", a), IL_OK, IL_OK);
    T_LESS(a, scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o2", "b", 0), IL_OK, IL_OK));
    /* Taken over. */
    a = scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o3", "a", 0), IL_OK, IL_OK);
    t_clock_step(s->test_clock, 5000);
    uint64_t b = scenario_step(s, once_op(IL_OP_ONCE_BEGIN, "o3", "b", 0), IL_OK, IL_OK);
    T_LESS(a, b);
    (void)scenario_step(s, once_op(IL_OP_ONCE_FINISH, "o3", "a", a), IL_STALE, IL_STALE);
    (void)scenario_step(s, once_op(IL_OP_ONCE_FINISH, "o3", "b", b), IL_OK, IL_OK);
    expect_answer(s, "o3");
    play_claim(s);
}
