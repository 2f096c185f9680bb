/*
 * once_end.c: how a claim ends: finish and abandon, the two clocks, retention, waking, limits.
 */
#include "base/board.h"
#include "harness/once.h"
#include "harness/suite.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS INT64_C(86400000)

static uint64_t
begin(struct t_store *s, const char *key, const char *attempt)
{
    return T_IS(t_once_begin(s, key, attempt, .ttl_ms = 10000), IL_OK)->out.fence;
}

/* ---- finish and abandon ---------------------------------------------------------------------- */

T_TEST(finish_stores_the_answer)
{
    uint64_t     token = begin(s, "k", "a");
    const il_op *op    = T_IS(t_once_finish(s, "k", "a", token, "yes", .code = 1), IL_OK);

    T_EQU(op->out.fence, token);
    T_EQ(op->out.remaining_ms, DAY_MS);
    (void)T_REPLAYS(t_once_get(s, "k"), "yes", 3, 1);
}

T_TEST(finish_repeated)
{
    uint64_t token = begin(s, "k", "a");

    (void)T_IS(t_once_finish(s, "k", "a", token, "yes", .code = 1), IL_OK);
    t_pass(s, MINUTE_MS); /* also when the claim would have died */
    const il_op *op = T_IS(t_once_finish(s, "k", "a", token, "yes", .code = 1), IL_OK);
    T_EQ(op->out.remaining_ms, DAY_MS - MINUTE_MS); /* the answer lives no longer for it */
    (void)T_IS(t_once_finish(s, "k", "a", token, "yes", .code = 2), IL_MISMATCH);
    (void)T_IS(t_once_finish(s, "k", "a", token, "yet", .code = 1), IL_MISMATCH);
    (void)T_IS(t_once_finish(s, "k", "a", token, "", .code = 1), IL_MISMATCH);
    op = T_IS(t_once_finish(s, "k", "a", token, "yes!", .code = 1), IL_MISMATCH);
    T_HAS(op->out.detail, "another response");
    (void)T_IS(t_once_finish(s, "k", "a", token - 1, "yes", .code = 1), IL_STALE);
    (void)T_REPLAYS(t_once_get(s, "k"), "yes", 3, 1);
}

T_TEST(finish_of_somebody_else_is_stale)
{
    (void)T_IS(t_once_finish(s, "k", "a", 1, "x"), IL_STALE); /* there is none */
    uint64_t     token = begin(s, "k", "a");
    const il_op *op    = T_IS(t_once_finish(s, "k", "a", token + 1, "x"), IL_STALE);
    T_EQU(op->out.fence, token);
    (void)T_IS(t_once_finish(s, "k", "b", token, "x"), IL_STALE);
    (void)T_IS(t_once_get(s, "k"), IL_BUSY);
}

/* Strict: dead when now >= expires, though nobody has taken over yet. */
T_TEST(finish_too_late_is_stale)
{
    uint64_t token = begin(s, "k", "a");

    t_pass(s, 10000);
    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_STALE);
    T_EQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.remaining_ms, 0);
    token = begin(s, "k", "a");
    t_pass(s, 9999);
    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_OK);
}

T_TEST(abandon_frees_the_key)
{
    uint64_t token = begin(s, "k", "a");

    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_OK);
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_OK); /* repeated */
    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_STALE);
    /* A new key again: another request may use it. */
    const il_op *op = T_IS(t_once_begin(s, "k", "b", .print = "other"), IL_OK);
    T_EQ(op->out.flags, 0);
    T_LESS(token, op->out.fence);
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_STALE);
}

T_TEST(abandon_of_what_is_not_ones_own)
{
    uint64_t token = begin(s, "k", "a");

    T_EQU(T_IS(t_once_abandon(s, "k", "a", token + 1), IL_STALE)->out.fence, token);
    (void)T_IS(t_once_abandon(s, "k", "b", token), IL_STALE);
    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_OK);
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_STALE); /* an answer stays */
    (void)T_REPLAYS(t_once_get(s, "k"), "x", 1, 0);
}

T_TEST(abandon_of_a_dead_claim)
{
    uint64_t token = begin(s, "k", "a");

    t_pass(s, 20000);
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_OK);
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    token = begin(s, "k", "a");
    t_pass(s, 10000);
    (void)begin(s, "k", "b"); /* has taken over */
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_STALE);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

T_TEST(answers_are_kept_byte_for_byte)
{
    static const char with_nul[] = "a\0b\0\0\xff\x80\n";
    char             *most       = calloc(1, IL_BLOB_BYTES_MAX + 1);

    CHECK(most != NULL);
    uint64_t token = begin(s, "nul", "a");
    (void)T_IS(
        t_once_finish(s, "nul", "a", token, with_nul, .bytes = sizeof with_nul, .code = INT32_MIN),
        IL_OK);
    (void)T_REPLAYS(t_once_begin(s, "nul", "b"), with_nul, sizeof with_nul, INT32_MIN);
    (void)T_IS(t_once_finish(s, "nul", "a", token, with_nul, .bytes = 4, .code = INT32_MIN),
               IL_MISMATCH);
    token = begin(s, "empty", "a");
    (void)T_IS(t_once_finish(s, "empty", "a", token, NULL), IL_OK);
    (void)T_IS(t_once_finish(s, "empty", "a", token, ""), IL_OK);
    (void)T_REPLAYS(t_once_get(s, "empty"), "", 0, 0);

    for (size_t i = 0; i < IL_BLOB_BYTES_MAX; i++)
        most[i] = (char)(i * 31);
    token = begin(s, "most", "a");
    (void)T_IS(t_once_finish(s, "most", "a", token, most, .bytes = IL_BLOB_BYTES_MAX), IL_OK);
    (void)T_REPLAYS(t_once_begin(s, "most", "b"), most, IL_BLOB_BYTES_MAX, 0);
    (void)T_IS(t_once_finish(s, "most", "a", token, most, .bytes = IL_BLOB_BYTES_MAX), IL_OK);
    token = begin(s, "over", "a");
    const il_op *op =
        T_IS(t_once_finish(s, "over", "a", token, most, .bytes = IL_BLOB_BYTES_MAX + 1), IL_INVAL);
    T_HAS(op->out.detail, "1048577");
    T_HAS(op->out.detail, "1048576");
    (void)T_IS(t_once_get(s, "over"), IL_BUSY);
    free(most);
}

T_TEST(answers_live_on_the_wall_clock)
{
    uint64_t token = T_IS(t_once_begin(s, "k", "a", .keep_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 30000); /* counts from the finish */
    T_EQ(T_IS(t_once_finish(s, "k", "a", token, "x"), IL_OK)->out.remaining_ms, 5000);
    t_pass(s, 4999);
    T_EQ(T_REPLAYS(t_once_begin(s, "k", "b"), "x", 1, 0)->out.remaining_ms, 1);
    t_pass(s, 1);
    /* Gone, whatever is stored. */
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_STALE);
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_OK);
    const il_op *op = T_IS(t_once_begin(s, "k", "b", .print = "other"), IL_OK);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.age_ms, 0);
}

T_TEST(the_wall_clock_is_set_under_an_answer)
{
    uint64_t token = begin(s, "k", "a");

    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_OK);
    t_clock_set_wall(&s->clock, -7 * DAY_MS);
    const il_op *op = T_REPLAYS(t_once_get(s, "k"), "x", 1, 0);
    T_EQ(op->out.age_ms, 0); /* never below */
    T_EQ(op->out.remaining_ms, 8 * DAY_MS);
    t_clock_set_wall(&s->clock, 8 * DAY_MS - 1);
    (void)T_REPLAYS(t_once_get(s, "k"), "x", 1, 0);
    t_clock_set_wall(&s->clock, 1);
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    t_clock_set_wall(&s->clock, -1); /* nothing has deleted it yet */
    (void)T_REPLAYS(t_once_get(s, "k"), "x", 1, 0);
}

/* However the wall clock is set: nobody else gets a key whose first attempt is at work. */
T_TEST(the_wall_clock_does_not_touch_a_claim)
{
    static const int64_t steps[] = { 400 * DAY_MS, -800 * DAY_MS, DAY_MS, -1 };
    uint64_t             token   = T_IS(t_once_begin(s, "k", "a", .keep_ms = 1), IL_OK)->out.fence;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        t_clock_set_wall(&s->clock, steps[i]);
        t_pass(s, 1000);
        (void)t_sweep_all(s, 0);
        const il_op *op = T_IS(t_once_begin(s, "k", "b"), IL_BUSY);
        T_EQ(op->out.remaining_ms, MINUTE_MS - 1000 * (int64_t)(i + 1));
        T_TRUE(op->out.age_ms >= 0);
    }
    (void)T_IS(t_once_finish(s, "k", "a", token, "x"), IL_OK);
}

/* A dead claim is kept for as long as an answer would be, in lease time: its meta is worth
 * something. */
T_TEST(dead_claims_are_forgotten)
{
    (void)T_IS(t_once_begin(s, "k", "a", .ttl_ms = 1000, .keep_ms = 5000, .print = "p"), IL_OK);
    t_pass(s, 5999);
    (void)T_IS(t_once_get(s, "k"), IL_BUSY);
    (void)T_IS(t_once_begin(s, "k", "b", .print = "q"), IL_MISMATCH);
    t_pass(s, 1);
    (void)T_IS(t_once_get(s, "k"), IL_NOT_FOUND);
    T_EQ(T_IS(t_once_begin(s, "k", "b", .print = "q"), IL_OK)->out.flags, 0);
}

T_TEST(sweeps_are_bounded)
{
    char key[16];

    for (unsigned i = 0; i < 25; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        uint64_t token =
            T_IS(t_once_begin(s, key, "a", .ttl_ms = 1000, .keep_ms = 5000), IL_OK)->out.fence;
        if (i % 5 != 0) /* 20 answers, 5 claims that will be dead */
            (void)T_IS(t_once_finish(s, key, "a", token, "x"), IL_OK);
    }
    (void)T_IS(t_once_begin(s, "stays", "a"), IL_OK);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    t_pass(s, 5000);
    const il_op *op = T_IS(t_sweep(s, .limit = 19), IL_OK);
    T_EQ(op->out.sweep.n_purged, 19);
    T_EQ(op->out.flags, IL_OUT_MORE);
    op = T_IS(t_sweep(s, .limit = 1), IL_OK);
    T_EQ(op->out.sweep.n_purged, 1);
    T_EQ(op->out.flags, 0);
    t_pass(s, 1000);
    op = T_IS(t_sweep(s, .limit = 4), IL_OK);
    T_EQ(op->out.sweep.n_purged, 4);
    T_EQ(op->out.flags, IL_OUT_MORE);
    op = T_IS(t_sweep(s, .limit = 4), IL_OK);
    T_EQ(op->out.sweep.n_purged, 1);
    T_EQ(op->out.flags, 0);
    (void)T_IS(t_once_get(s, "stays"), IL_BUSY);
}

/* What has been taken over or renewed is not what the sweep knew of it. */
T_TEST(sweeps_spare_what_lives_again)
{
    (void)T_IS(t_once_begin(s, "renewed", "a", .ttl_ms = 2000, .keep_ms = 1000), IL_OK);
    (void)T_IS(t_once_begin(s, "taken", "a", .ttl_ms = 2000, .keep_ms = 1000), IL_OK);
    (void)T_IS(t_once_begin(s, "again", "a", .ttl_ms = 2000, .keep_ms = 1000), IL_OK);
    t_pass(s, 1999);
    (void)T_IS(t_once_begin(s, "renewed", "a", .ttl_ms = 2000, .keep_ms = 1000), IL_OK);
    t_pass(s, 1);
    (void)T_IS(t_once_begin(s, "taken", "b", .ttl_ms = 2000, .keep_ms = 1000), IL_OK);
    t_pass(s, 1000);
    (void)T_IS(t_once_begin(s, "again", "b"), IL_OK); /* was gone */
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 0);
    (void)T_IS(t_once_get(s, "renewed"), IL_BUSY);
    (void)T_IS(t_once_get(s, "taken"), IL_BUSY);
    (void)T_IS(t_once_get(s, "again"), IL_BUSY);
    t_pass(s, 10000);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 2);
}

/* ---- waking ---------------------------------------------------------------------------------- */

T_TEST(whoever_waits_is_woken)
{
    uint64_t token = begin(s, "k", "a");
    uint32_t word  = t_word(s, "k", IL__WAKE_ONCE);

    (void)T_IS(t_once_begin(s, "k", "b"), IL_BUSY);
    (void)T_IS(t_once_get(s, "k"), IL_BUSY);
    (void)T_IS(t_once_finish(s, "k", "b", token, "x"), IL_STALE);
    (void)T_IS(t_once_abandon(s, "k", "b", token), IL_STALE);
    (void)T_IS(t_once_begin(s, "k", "a"), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_ONCE, word);
    (void)T_IS(t_once_abandon(s, "k", "a", token), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_ONCE, word + 1);
    token = begin(s, "k", "b");
    (void)T_IS(t_once_finish(s, "k", "b", token, "x"), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_ONCE, word + 2);
    (void)T_IS(t_once_finish(s, "k", "b", token, "x"), IL_OK);
    T_WORD_IS(s, "k", IL__WAKE_ONCE, word + 2);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void
is_refused(const il_op *op, const char *names)
{
    (void)T_IS(op, IL_INVAL);
    T_HAS(op->out.detail, names);
}

T_TEST(limits)
{
    static char text[8192];
    char       *cut = text + sizeof text - 1;

    memset(text, 'x', sizeof text - 1);
    (void)T_IS(t_once_begin(s, cut - 255, "a"), IL_OK);
    (void)T_IS(t_once_get(s, cut - 255), IL_BUSY);
    (void)T_IS(t_once_begin(s, "\xe2\x82\xac", cut - 256), IL_OK);
    is_refused(t_once_begin(s, cut - 256, "a"), "key");
    is_refused(t_once_begin(s, "", "a"), "key");
    is_refused(t_once_begin(s, NULL, "a"), "key");
    is_refused(t_once_begin(s, "a\nb", "a"), "key");
    is_refused(t_once_get(s, "a\x7f"), "key");
    is_refused(t_once_begin(s, "k", NULL), "holder");
    is_refused(t_once_begin(s, "k", cut - 257), "holder");
    is_refused(t_once_begin(s, "k", "a", .tenant = cut - 65), "tenant");
    (void)T_IS(t_once_begin(s, "k", "a", .meta = cut - 4096), IL_OK);
    T_STREQ(T_IS(t_once_get(s, "k"), IL_BUSY)->out.meta, cut - 4096);
    is_refused(t_once_begin(s, "k", "a", .meta = cut - 4097), "meta");
    (void)T_IS(t_once_begin(s, "print", "a", .print = cut - 64), IL_OK);
    is_refused(t_once_begin(s, "print", "a", .print = cut - 65), "fingerprint");
    is_refused(t_once_begin(s, "k", "a", .ttl_ms = 999), "TTL");
    is_refused(t_once_begin(s, "k", "a", .ttl_ms = IL_TTL_MS_MAX + 1), "TTL");
    is_refused(t_once_begin(s, "k", "a", .ttl_ms = -1), "TTL");
    (void)T_IS(t_once_begin(s, "long", "a", .ttl_ms = IL_TTL_MS_MAX, .keep_ms = IL_DELAY_MS_MAX),
               IL_OK);
    is_refused(t_once_begin(s, "k", "a", .keep_ms = IL_DELAY_MS_MAX + 1), "keep time");
    is_refused(t_once_begin(s, "k", "a", .keep_ms = -1), "keep time");
    is_refused(t_once_finish(s, "k", "a", 0, "x"), "fence");
    is_refused(t_once_finish(s, "k", "a", UINT64_MAX, "x"), "fence");
    is_refused(t_once_finish(s, "k", NULL, 1, "x"), "holder");
    is_refused(t_once_finish(s, "k", "a", 1, NULL, .bytes = 1), "response");
    is_refused(t_once_abandon(s, "k", "a", 0), "fence");
    il_op op                     = t_once_op(IL_OP_ONCE_BEGIN, "k", "a", 0, NULL, T_ONCE_ARGS());
    op.in.once.fingerprint_bytes = 1;
    is_refused(t_op_run(s, NULL, op), "fingerprint");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(finish_stores_the_answer),
        T_ROW(finish_repeated),
        T_ROW(finish_of_somebody_else_is_stale),
        T_ROW(finish_too_late_is_stale),
        T_ROW(abandon_frees_the_key),
        T_ROW(abandon_of_what_is_not_ones_own),
        T_ROW(abandon_of_a_dead_claim),
        T_ROW(answers_are_kept_byte_for_byte),
        T_ROW(answers_live_on_the_wall_clock),
        T_ROW(the_wall_clock_is_set_under_an_answer),
        T_ROW(the_wall_clock_does_not_touch_a_claim),
        T_ROW(dead_claims_are_forgotten),
        T_ROW(sweeps_are_bounded),
        T_ROW(sweeps_spare_what_lives_again),
        T_ROW(whoever_waits_is_woken),
        T_ROW(limits),
    };

    return T_SUITE("once_end", tests);
}
