/*
 * run_limit.c: how many runs of a class a tenant may have at once, and start per day. Counted from
 * rows: a run that ends, in whatever way, makes room.
 */
#include "harness/run.h"
#include "harness/suite.h"
#include "runtime/handle.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define LIVE_TEXT(n) "the tenant has reached its limit of " n " live runs in class 'pipeline'"
#define DAY_TEXT(n) \
    "the tenant has reached its limit of " n " runs per day (UTC) in class 'pipeline'"

/* LIMIT for this reason alone; nothing was made. */
static void
is_limited(struct t_store *s, const il_op *op, uint32_t flag, const char *text)
{
    (void)T_IS(op, IL_LIMIT);
    T_EQ(op->out.flags, flag);
    T_STREQ(op->out.detail, text);
    T_EQ(op->out.n_runs, 0);
    T_EQ(op->out.n_items, 0);
    T_EQU(op->out.fence, 0);
    (void)T_IS(t_run_get(s, op->in.run.id), IL_NOT_FOUND);
    t_run_invariants(s, NULL);
}

/* `n` slots of keys of their own: pipeline:0, 1, …, with the ids p0, p1, … */
static void
make_slots(struct t_store *s, unsigned from, unsigned to)
{
    char key[32], id[16];

    for (unsigned i = from; i < to; i++) {
        (void)snprintf(key, sizeof key, "pipeline:%u", i);
        (void)snprintf(id, sizeof id, "p%u", i);
        (void)T_IS(t_run_start(s, key, NULL, id, T_SLOT, .live_max = to), IL_OK);
    }
}

/* ---- live runs ------------------------------------------------------------------------------- */

T_TEST(live_runs_up_to_the_limit)
{
    (void)T_IS(t_run_start(s, "pipeline:a", "h1", "r1", .live_max = 3), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:b", NULL, "r2", T_SLOT, .live_max = 3), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:a", "h3", "r3", .live_max = 3, .policy = IL_POLICY_QUEUE),
               IL_QUEUED);
    is_limited(s, t_run_start(s, "pipeline:c", "h4", "r4", .live_max = 3), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("3"));
    is_limited(s, t_run_start(s, "pipeline:c", NULL, "r4", T_SLOT, .live_max = 3),
               IL_OUT_LIVE_LIMIT, LIVE_TEXT("3"));
    is_limited(s,
               t_run_start(s, "pipeline:a", "h4", "r4", .live_max = 3, .policy = IL_POLICY_QUEUE),
               IL_OUT_LIVE_LIMIT, LIVE_TEXT("3"));
    is_limited(s, t_run_start(s, "pipeline", "h4", "r4", .live_max = 1), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("1"));
    (void)T_IS(t_run_start(s, "pipeline:c", "h4", "r4", .live_max = 4), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:d", "h5", "r5"), IL_OK); /* nobody has said a limit */
}

/* Who is told of a run that is there makes none, and who starts a slot has made it before. */
T_TEST(only_new_runs_are_limited)
{
    (void)T_IS(t_run_start(s, "pipeline:a", "h1", "r1", .live_max = 1), IL_OK);
    (void)T_RUN(t_run_start(s, "pipeline:a", "h2", "r2", .live_max = 1), IL_DUPLICATE,
                IL_RUN_RUNNING);
    const il_op *op =
        t_run_start(s, "pipeline:a", "h2", "r2", .live_max = 1, .policy = IL_POLICY_SKIP);
    (void)T_RUN(op, IL_DUPLICATE, IL_RUN_RUNNING);
    T_EQ(op->out.flags, IL_OUT_SKIPPED);
    op = t_run_start(s, "pipeline:a", "h2", "r2", .live_max = 1, .policy = IL_POLICY_REJECT);
    (void)T_RUN(op, IL_HELD, IL_RUN_RUNNING);
    op = t_run_start(s, "pipeline:a", "h1", "r1", .live_max = 1, .day_max = 1);
    (void)T_RUN(op, IL_OK, IL_RUN_RUNNING); /* the same again */
    T_EQ(op->out.flags, IL_OUT_RENEWED);
    (void)T_IS(t_run_start(s, "pipeline:b", NULL, "r2", T_SLOT, .live_max = 2), IL_OK);
    op = t_run_start(s, "pipeline:b", NULL, "r2", T_SLOT, .live_max = 1, .day_max = 1);
    (void)T_RUN(op, IL_OK, IL_RUN_PENDING);
    (void)T_RUN(t_run_start(s, "pipeline:b", "h2", "r2", .live_max = 1, .day_max = 1), IL_OK,
                IL_RUN_RUNNING);
    /* Pending ones of the key are looked at first. */
    (void)T_IS(t_run_start(s, "pipeline:a", "h3", "r3", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    op = T_IS(t_run_start(s, "pipeline:a", "h4", "r4", .policy = IL_POLICY_QUEUE, .queue_max = 1,
                          .live_max = 1),
              IL_LIMIT);
    T_EQ(op->out.flags, 0);
    /* A key that is held by no run is held. */
    (void)T_IS(t_acquire(s, "pipeline:lock", "h"), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:lock", "h5", "r5", .live_max = 1), IL_HELD);
}

T_TEST(ended_runs_make_room)
{
    uint64_t fence = T_IS(t_run_start(s, "pipeline:a", "h", "r1", .live_max = 1), IL_OK)->out.fence;

    is_limited(s, t_run_start(s, "pipeline:b", "h2", "r2", .live_max = 1), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("1"));
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:b", NULL, "r2", T_SLOT, .live_max = 1), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:c", "h3", "r3", .live_max = 1), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("1"));
    (void)T_IS(t_run_cancel(s, "r2", "x"), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:c", "h3", "r3", .live_max = 1, .ttl_ms = 1000), IL_OK);
    /* One that is asked to stop still runs. */
    (void)T_IS(t_run_cancel(s, "r3", "x"), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:d", "h4", "r4", .live_max = 1), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("1"));
    /* Whose lease has run out is not live, though nobody has swept yet. */
    t_pass(s, 999);
    is_limited(s, t_run_start(s, "pipeline:d", "h4", "r4", .live_max = 1), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("1"));
    t_pass(s, 1);
    (void)T_IS(t_run_start(s, "pipeline:d", "h4", "r4", .live_max = 1), IL_OK);
    /* The same of one that waited, and went silent. */
    (void)T_IS(t_run_start(s, "pipeline:d", "h5", "r5", .live_max = 2, .policy = IL_POLICY_QUEUE),
               IL_QUEUED);
    is_limited(s, t_run_start(s, "pipeline:e", "h6", "r6", .live_max = 2), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("2"));
    t_pass(s, 15000);
    (void)T_IS(t_run_start(s, "pipeline:e", "h6", "r6", .live_max = 2), IL_OK);
}

T_TEST(other_classes_and_tenants_do_not_count)
{
    static const char *const others[] = { "pipeline2:a", "pipeline/:a", "pipelin:a",  "pipelines",
                                          "pipeline 1",  "PIPELINE:a",  "a:pipeline", "pipeline-1",
                                          "x",           ":pipeline:a" };
    char                     id[16];

    for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
        (void)snprintf(id, sizeof id, "o%u", i);
        (void)T_IS(t_run_start(s, others[i], NULL, id, T_SLOT), IL_OK);
    }
    (void)T_IS(t_run_start(s, "pipeline:a", "h", "r0", .tenant = "other"), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:a", "h", "r1", .live_max = 1, .day_max = 1), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:b", "h2", "r2", .live_max = 1), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("1"));
    is_limited(s, t_run_start(s, "pipeline:b", "h2", "r2", .day_max = 1), IL_OUT_DAY_LIMIT,
               DAY_TEXT("1"));
    /* A key that is a class by itself; an empty class. */
    (void)T_IS(t_run_start(s, "x", "h3", "r3", .live_max = 1), IL_DUPLICATE);
    (void)T_IS(t_run_start(s, "x:1", "h3", "r3", .live_max = 1), IL_LIMIT);
    (void)T_IS(t_run_start(s, "x:1", "h3", "r3", .live_max = 2), IL_OK);
    (void)T_IS(t_run_start(s, ":x", "h4", "r4", .live_max = 1), IL_LIMIT);
    (void)T_IS(t_run_start(s, ":x", "h4", "r4", .live_max = 2, .day_max = 2), IL_OK);
    (void)T_IS(t_run_start(s, ":y", "h4", "r5", .day_max = 2), IL_LIMIT);
}

/* What a new run replaces does not count: there are no more than before, once they are gone. */
T_TEST(replaced_runs_do_not_count)
{
    (void)T_IS(t_run_start(s, "pipeline:a", "h1", "r1"), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:a", "h2", "r2", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "pipeline:b", NULL, "r3", T_SLOT), IL_OK);
    is_limited(s,
               t_run_start(s, "pipeline:a", "h4", "r4", .policy = IL_POLICY_QUEUE, .live_max = 3),
               IL_OUT_LIVE_LIMIT, LIVE_TEXT("3"));
    is_limited(s,
               t_run_start(s, "pipeline:a", "h4", "r4", .policy = IL_POLICY_REPLACE_PENDING,
                           .live_max = 2),
               IL_OUT_LIVE_LIMIT, LIVE_TEXT("2"));
    (void)T_IS(t_run_start(s, "pipeline:a", "h4", "r4", .policy = IL_POLICY_REPLACE_PENDING,
                           .live_max = 3),
               IL_QUEUED);
    (void)T_RUN_NOW(s, "r2", IL_RUN_CANCELLED);
    is_limited(
        s,
        t_run_start(s, "pipeline:a", "h5", "r5", .policy = IL_POLICY_CANCEL_RUNNING, .live_max = 1),
        IL_OUT_LIVE_LIMIT, LIVE_TEXT("1"));
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->cancelled, 0);
    (void)T_RUN_NOW(s, "r4", IL_RUN_PENDING);
    (void)T_IS(
        t_run_start(s, "pipeline:a", "h5", "r5", .policy = IL_POLICY_CANCEL_RUNNING, .live_max = 2),
        IL_QUEUED);
    T_EQ(T_RUN_NOW(s, "r1", IL_RUN_RUNNING)->cancelled, 1);
    (void)T_RUN_NOW(s, "r4", IL_RUN_CANCELLED);
    /* Those of other keys count, whatever the policy. */
    is_limited(
        s,
        t_run_start(s, "pipeline:c", "h6", "r6", .policy = IL_POLICY_CANCEL_RUNNING, .live_max = 3),
        IL_OUT_LIVE_LIMIT, LIVE_TEXT("3"));
}

/* The limit may be lowered below what is there. */
T_TEST(more_than_the_limit_are_there)
{
    make_slots(s, 0, 50);
    is_limited(s, t_run_start(s, "pipeline:x", "h", "r", .live_max = 50), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("50"));
    is_limited(s, t_run_start(s, "pipeline:x", "h", "r", .live_max = 7, .day_max = 1),
               IL_OUT_LIVE_LIMIT, LIVE_TEXT("7"));
    (void)T_IS(t_run_start(s, "pipeline:x", "h", "r", .live_max = 51, .day_max = 51), IL_OK);
    (void)T_IS(
        t_run_start(s, "pipeline:y", "h2", "r2", .live_max = UINT32_MAX, .day_max = UINT32_MAX),
        IL_OK);
}

/* In one batch as in two. */
T_TEST(a_batch)
{
    il_op ops[4];

    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        static const char *const keys[] = { "pipeline:a", "pipeline:b", "pipeline:c",
                                            "pipeline:d" };
        ops[i] =
            t_run_op(IL_OP_RUN_START, keys[i], NULL, keys[i], 0, T_RUN_ARGS(T_SLOT, .live_max = 2));
    }
    t_batch(s, ops, ARRAY_LEN(ops));
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_IS(&ops[i], i < 2 ? IL_OK : IL_LIMIT);
        il_op_release(&ops[i]);
    }
}

/* ---- runs of a day --------------------------------------------------------------------------- */

/* To so much before or after midnight: the clock of tests begins at eight. */
static void
go_to_midnight(struct t_store *s, int64_t and_ms)
{
    int64_t wall_ms = t_clock_wall(&s->clock);

    t_clock_set_wall(&s->clock, (wall_ms / DAY_MS + 1) * DAY_MS + and_ms - wall_ms);
}

T_TEST(runs_of_a_day)
{
    char key[32], id[16];

    for (unsigned i = 0; i < 3; i++) { /* ended ones count, however long they lasted */
        (void)snprintf(key, sizeof key, "pipeline:%u", i);
        (void)snprintf(id, sizeof id, "r%u", i);
        uint64_t fence = T_IS(t_run_start(s, key, "h", id, .day_max = 3), IL_OK)->out.fence;
        (void)T_IS(t_run_finish(s, id, "h", fence, IL_RUN_COMPLETED), IL_OK);
        t_pass(s, HOUR_MS);
    }
    is_limited(s, t_run_start(s, "pipeline:x", "h", "r", .day_max = 3), IL_OUT_DAY_LIMIT,
               DAY_TEXT("3"));
    is_limited(s, t_run_start(s, "pipeline:x", NULL, "r", T_SLOT, .day_max = 3, .live_max = 1),
               IL_OUT_DAY_LIMIT, DAY_TEXT("3"));
    (void)T_IS(t_run_start(s, "pipeline:x", "h", "r", .day_max = 4), IL_OK);
    /* The last moment of the day, and the first of the next. */
    go_to_midnight(s, -1);
    is_limited(s, t_run_start(s, "pipeline:y", "h2", "r4", .day_max = 4), IL_OUT_DAY_LIMIT,
               DAY_TEXT("4"));
    t_clock_set_wall(&s->clock, 1);
    (void)T_IS(t_run_start(s, "pipeline:y", "h2", "r4", .day_max = 1), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:z", "h3", "r5", .day_max = 1), IL_OUT_DAY_LIMIT,
               DAY_TEXT("1"));
}

/* Replaced ones were made all the same; so was one that was made in the first moment of the day. */
T_TEST(what_counts_of_a_day)
{
    go_to_midnight(s, 0);
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r1", T_SLOT), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r2", T_SLOT, .policy = IL_POLICY_REPLACE_PENDING,
                           .day_max = 2),
               IL_OK);
    is_limited(s,
               t_run_start(s, "pipeline:a", NULL, "r3", T_SLOT, .policy = IL_POLICY_REPLACE_PENDING,
                           .day_max = 2),
               IL_OUT_DAY_LIMIT, DAY_TEXT("2"));
    (void)T_RUN_NOW(s, "r2", IL_RUN_PENDING);
    (void)T_RUN(t_run_start(s, "pipeline:a", NULL, "r3", T_SLOT, .day_max = 2), IL_DUPLICATE,
                IL_RUN_PENDING);
}

/* Rows that were purged are forgotten: whoever wants a limit of a day keeps runs for that long. */
T_TEST(purged_runs_do_not_count)
{
    uint64_t fence =
        T_IS(t_run_start(s, "pipeline:a", "h", "r1", .keep_ms = 1000), IL_OK)->out.fence;

    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    t_pass(s, 999);
    (void)T_IS(t_sweep(s), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:b", "h", "r2", .day_max = 1), IL_OUT_DAY_LIMIT,
               DAY_TEXT("1"));
    t_pass(s, 1);
    T_EQ(T_IS(t_sweep(s), IL_OK)->out.sweep.n_purged, 1);
    (void)T_IS(t_run_start(s, "pipeline:b", "h", "r2", .day_max = 1), IL_OK);
}

/* The clock is set: what counts is what the rows say. */
T_TEST(the_wall_clock_is_set)
{
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r1", T_SLOT), IL_OK);
    t_clock_set_wall(&s->clock, DAY_MS);
    (void)T_IS(t_run_start(s, "pipeline:b", NULL, "r2", T_SLOT, .day_max = 1), IL_OK);
    t_clock_set_wall(&s->clock, -2 * DAY_MS); /* both are of later days now, and count */
    is_limited(s, t_run_start(s, "pipeline:c", NULL, "r3", T_SLOT, .day_max = 2), IL_OUT_DAY_LIMIT,
               DAY_TEXT("2"));
    (void)T_IS(t_run_start(s, "pipeline:c", NULL, "r3", T_SLOT, .day_max = 3), IL_OK);
    t_clock_set_wall(&s->clock, DAY_MS);
    (void)T_IS(t_run_start(s, "pipeline:d", NULL, "r4", T_SLOT, .day_max = 3), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:e", NULL, "r5", T_SLOT, .day_max = 3), IL_OUT_DAY_LIMIT,
               DAY_TEXT("3"));
    t_clock_set_wall(&s->clock, DAY_MS);
    (void)T_IS(t_run_start(s, "pipeline:e", NULL, "r5", T_SLOT, .day_max = 2), IL_OK);
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* Starts that come all the time: never more than the limit in any minute, and hardly fewer. */
T_TEST(a_rate_holds_in_any_window)
{
    enum {
        RATE  = 7,
        TRIES = 500
    };
    int64_t  admitted[TRIES], now_ms = 0;
    unsigned n = 0;
    char     key[32], id[16];

    for (unsigned i = 0; i < TRIES; i++) {
        (void)snprintf(key, sizeof key, "pipeline:%u", i);
        (void)snprintf(id, sizeof id, "r%u", i);
        const il_op *op =
            t_run_start(s, key, NULL, id, T_SLOT, .minute_max = RATE, .hour_max = 1000);
        if (op->status == IL_OK)
            admitted[n++] = now_ms;
        else
            T_TRUE(op->status == IL_LIMIT && op->out.flags == IL_OUT_MINUTE_LIMIT &&
                   op->out.remaining_ms > 0 && op->out.remaining_ms <= 62 * 1000);
        t_pass(s, 487);
        now_ms += 487;
    }
    for (unsigned i = RATE; i < n; i++)
        T_TRUE(admitted[i] - admitted[i - RATE] >= 60 * 1000);
    T_TRUE(n >= (unsigned)(now_ms / (62 * 1000)) * RATE);
}

/* Whoever joins a run or finds it in the way counts; whoever is refused does not. */
T_TEST(what_counts_of_a_rate)
{
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r1", T_SLOT, .minute_max = 3), IL_OK);
    /* repeated */
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r1", T_SLOT, .minute_max = 3), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:b", NULL, "r2", T_SLOT, .minute_max = 3, .live_max = 1),
               IL_OUT_LIVE_LIMIT, LIVE_TEXT("1"));
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r2", T_SLOT, .minute_max = 3), IL_DUPLICATE);
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r3", T_SLOT, .minute_max = 3,
                           .policy = IL_POLICY_REJECT),
               IL_HELD);
    const il_op *op = t_run_start(s, "pipeline:a", NULL, "r4", T_SLOT, .minute_max = 3);
    int64_t      ms = op->out.remaining_ms;
    is_limited(s, op, IL_OUT_MINUTE_LIMIT,
               "the tenant has reached its limit of 3 starts per minute in class 'pipeline'");
    /* no limit, no count */
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r4", T_SLOT), IL_DUPLICATE);
    (void)T_IS(t_run_start(s, "other:a", NULL, "r5", T_SLOT, .minute_max = 1), IL_OK);
    (void)T_IS(t_run_start(s, "pipeline:c", NULL, "r6", T_SLOT, .hour_max = 1), IL_OK);
    is_limited(s, t_run_start(s, "pipeline:d", NULL, "r7", T_SLOT, .hour_max = 1),
               IL_OUT_HOUR_LIMIT,
               "the tenant has reached its limit of 1 starts per hour in class 'pipeline'");
    t_pass(s, ms);
    (void)T_IS(t_run_start(s, "pipeline:a", NULL, "r8", T_SLOT, .minute_max = 3), IL_DUPLICATE);
    t_pass(s, HOUR_MS + 62 * 1000);
    (void)T_IS(t_run_start(s, "pipeline:d", NULL, "r7", T_SLOT, .hour_max = 1), IL_OK);
}

/* Sweeps delete what no rate counts any more, a bounded number each, and nothing else. */
T_TEST(rates_are_forgotten)
{
    enum {
        CLASSES = 20,
        LIMIT   = 8,
        SWEEPS  = 2 * CLASSES / LIMIT /* each class has two windows */
    };
    char key[32], id[16];

    for (unsigned i = 0; i < CLASSES; i++) {
        (void)snprintf(key, sizeof key, "class%u:a", i);
        (void)snprintf(id, sizeof id, "r%u", i);
        (void)T_IS(t_run_start(s, key, NULL, id, T_SLOT, .minute_max = 1, .hour_max = 1), IL_OK);
    }
    T_TRUE(!il__store_overdue(t_handle(s)->store));
    t_pass(s, 3 * HOUR_MS / 2);
    (void)T_IS(t_run_start(s, "late:a", NULL, "a", T_SLOT, .hour_max = 1), IL_OK);
    t_pass(s, HOUR_MS * 5 / 6);
    T_TRUE(il__store_overdue(t_handle(s)->store));
    for (unsigned i = 0; i < SWEEPS; i++) {
        const il_op *op = T_IS(t_sweep(s, .limit = LIMIT), IL_OK);
        T_EQ(op->out.sweep.n_purged, 0);
    }
    T_TRUE(!il__store_overdue(t_handle(s)->store));
    (void)T_IS(t_run_start(s, "late:b", NULL, "b", T_SLOT, .hour_max = 1), IL_LIMIT);
    (void)T_IS(t_run_start(s, "class0:b", NULL, "c", T_SLOT, .hour_max = 1), IL_OK);
    (void)T_IS(t_run_start(s, "class0:c", NULL, "d", T_SLOT, .hour_max = 1), IL_LIMIT);
}

T_TEST(limits_survive_a_restart)
{
    T_NEEDS(s, durable);
    make_slots(s, 0, 3);
    (void)T_IS(t_run_start(s, "other:x", NULL, "o", T_SLOT, .hour_max = 1), IL_OK);
    t_store_reopen(s);
    (void)T_IS(t_run_start(s, "other:y", NULL, "p", T_SLOT, .hour_max = 1), IL_LIMIT);
    is_limited(s, t_run_start(s, "pipeline:x", "h", "r", .live_max = 3), IL_OUT_LIVE_LIMIT,
               LIVE_TEXT("3"));
    is_limited(s, t_run_start(s, "pipeline:x", "h", "r", .day_max = 3), IL_OUT_DAY_LIMIT,
               DAY_TEXT("3"));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(live_runs_up_to_the_limit),
        T_ROW(only_new_runs_are_limited),
        T_ROW(ended_runs_make_room),
        T_ROW(other_classes_and_tenants_do_not_count),
        T_ROW(replaced_runs_do_not_count),
        T_ROW(more_than_the_limit_are_there),
        T_ROW(a_batch),
        T_ROW(runs_of_a_day),
        T_ROW(what_counts_of_a_day),
        T_ROW(purged_runs_do_not_count),
        T_ROW(the_wall_clock_is_set),
        T_ROW(a_rate_holds_in_any_window),
        T_ROW(what_counts_of_a_rate),
        T_ROW(rates_are_forgotten),
        T_ROW(limits_survive_a_restart),
    };

    return T_SUITE("run_limit", tests);
}
