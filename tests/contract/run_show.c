/*
 * run_show.c: get, list and log, and purging after the retention time.
 */
#include "harness/run.h"
#include "harness/suite.h"
#include "runtime/handle.h"

#define DAY_MS INT64_C(86400000)

T_TEST(get_of_what_is_not_there)
{
    const il_op *op = T_IS(t_run_get(s, "none"), IL_NOT_FOUND);

    T_EQ(op->out.n_runs, 0);
    (void)T_IS(t_run_log(s, "none", 0), IL_NOT_FOUND);
}

/* ---- listing --------------------------------------------------------------------------------- */

static void
start_many(struct t_store *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char key[16], id[16];
        (void)snprintf(key, sizeof key, "%s:%u", i % 2 == 0 ? "even" : "odd", i % 4);
        (void)snprintf(id, sizeof id, "r%u", i);
        const il_op *op = t_run_start(s, key, id, id);
        (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
        (void)T_IS(
            t_run_finish(s, id, id, op->out.fence, i % 3 == 0 ? IL_RUN_FAILED : IL_RUN_COMPLETED),
            IL_OK);
    }
}

/* Page through, with pages of `limit`: how many there are, newest first. */
static size_t
page_through(struct t_store *s, const char *key, struct t_run_args args)
{
    char     cursor[128];
    size_t   n    = 0;
    uint64_t last = UINT64_MAX;

    args.cursor = NULL;
    for (unsigned page = 0; page < 1000; page++) {
        const il_op *op =
            T_IS(t_op_run(s, NULL, t_run_op(IL_OP_RUN_LIST, key, NULL, NULL, 0, args)), IL_OK);
        T_TRUE(op->out.n_runs <= args.limit);
        T_TRUE(op->out.next == NULL || op->out.n_runs == args.limit);
        for (size_t i = 0; i < op->out.n_runs; i++, n++) {
            T_TRUE(op->out.runs[i].seq < last);
            last = op->out.runs[i].seq;
        }
        if (op->out.next == NULL)
            return n;
        (void)snprintf(cursor, sizeof cursor, "%s", op->out.next);
        args.cursor = cursor;
    }
    T_FAIL("a listing without an end");
}

T_TEST(list_newest_first)
{
    start_many(s, 25);
    const il_op *op = T_IS(t_run_list(s, NULL), IL_OK);
    T_EQ(op->out.n_runs, 25);
    T_STREQ(op->out.runs[0].id, "r24");
    T_STREQ(op->out.runs[24].id, "r0");
    T_TRUE(op->out.next == NULL);
    T_EQU(op->out.fence, 0);
    for (uint32_t limit = 1; limit <= 26; limit++) {
        T_EQ(page_through(s, NULL, T_RUN_ARGS(.limit = limit)), 25);
        T_EQ(page_through(s, "odd:1", T_RUN_ARGS(.limit = limit)), 6);
        T_EQ(page_through(s, NULL, T_RUN_ARGS(.limit = limit, .prefix = "even:")), 13);
        T_EQ(page_through(s, NULL, T_RUN_ARGS(.limit = limit, .states = 1U << IL_RUN_FAILED)), 9);
    }
    T_EQ(page_through(s, "odd", T_RUN_ARGS(.limit = 10)), 0); /* a key, not a prefix */
    T_EQ(page_through(s, NULL, T_RUN_ARGS(.limit = 10, .prefix = "odd")), 12);
    /* the key counts */
    T_EQ(page_through(s, "odd:1", T_RUN_ARGS(.limit = 10, .prefix = "even")), 6);
    T_EQ(page_through(s, "even:0", T_RUN_ARGS(.limit = 2, .states = 1U << IL_RUN_FAILED)), 3);
    T_EQ(page_through(
             s, NULL,
             T_RUN_ARGS(.limit = 4, .states = 1U << IL_RUN_COMPLETED | 1U << IL_RUN_FAILED)),
         25);
    T_EQ(page_through(s, NULL, T_RUN_ARGS(.limit = 4, .states = 1U << IL_RUN_RUNNING)), 0);
}

/* Live and ended ones in one order; what is overdue is listed as it will end. */
T_TEST(list_by_state)
{
    start_many(s, 4);
    (void)T_IS(t_run_start(s, "a", "h1", "running", .ttl_ms = 60000), IL_OK);
    (void)T_IS(t_run_start(s, "b", "h2", "orphan", .ttl_ms = 5000), IL_OK);
    (void)T_IS(t_run_start(s, "a", "h3", "waits", .policy = IL_POLICY_QUEUE), IL_QUEUED);
    (void)T_IS(t_run_start(s, "a", NULL, "slot", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    (void)T_IS(t_run_start(s, "a", NULL, "gone", T_SLOT, .policy = IL_POLICY_QUEUE), IL_OK);
    (void)T_IS(t_run_cancel(s, "gone", "x"), IL_OK);
    t_pass(s, 5000);
    for (unsigned round = 0; round < 2; round++) {
        const il_op *op = T_IS(t_run_list(s, NULL, .states = 1U << IL_RUN_FAILED), IL_OK);
        T_EQ(op->out.n_runs, 3);
        T_STREQ(op->out.runs[0].id, "orphan");
        T_STREQ(op->out.runs[1].id, "r3");
        op = T_IS(t_run_list(s, NULL, .states = 1U << IL_RUN_RUNNING), IL_OK);
        T_EQ(op->out.n_runs, 1);
        T_STREQ(op->out.runs[0].id, "running");
        op = T_IS(t_run_list(s, "a", .states = 1U << IL_RUN_PENDING), IL_OK);
        T_EQ(op->out.n_runs, 2);
        T_STREQ(op->out.runs[0].id, "slot");
        T_EQ(op->out.runs[0].position, 2);
        T_STREQ(op->out.runs[1].id, "waits");
        T_EQ(op->out.runs[1].position, 1);
        op =
            T_IS(t_run_list(s, NULL, .states = 1U << IL_RUN_PENDING | 1U << IL_RUN_RUNNING), IL_OK);
        T_EQ(op->out.n_runs, 3);
        T_STREQ(op->out.runs[0].id, "slot");
        T_STREQ(op->out.runs[2].id, "running");
        T_EQ(T_IS(t_run_list(s, "a"), IL_OK)->out.n_runs, 4);
        T_EQ(T_IS(t_run_list(s, "b", .states = 1U << IL_RUN_RUNNING), IL_OK)->out.n_runs, 0);
        T_EQ(page_through(
                 s, NULL,
                 T_RUN_ARGS(.limit = 1, .states = 1U << IL_RUN_PENDING | 1U << IL_RUN_FAILED)),
             5);
        t_run_invariants(s, NULL);
        (void)T_IS(t_run_start(s, "a", "h3", "waits"), IL_QUEUED);
        (void)T_IS(t_sweep(s), IL_OK); /* and the same when it has ended */
    }
}

/* Of each tenant by itself, though the keys have one name; and as they are when it is their
 * turn. */
T_TEST(positions_in_a_batch_of_two_tenants)
{
    static const char *const tenants[] = { "a", "b" };
    static const char *const ids[]     = { "r1", "r2" };
    il_op                    ops[6];

    for (unsigned i = 0; i < 2; i++) {
        (void)T_IS(t_run_start(s, "k", "h0", "r0", .tenant = tenants[i], .ttl_ms = 60000), IL_OK);
        for (unsigned k = 0; k < 2; k++) {
            (void)T_IS(t_run_start(s, "k", ids[k], ids[k], .tenant = tenants[i], .ttl_ms = 60000,
                                   .policy = IL_POLICY_QUEUE),
                       IL_QUEUED);
            ops[2 * i + k] =
                t_run_op(IL_OP_RUN_GET, NULL, NULL, ids[k], 0, T_RUN_ARGS(.tenant = tenants[i]));
        }
    }
    T_EQ(il_apply(t_handle(s), ops, 4, NULL), IL_OK);
    for (unsigned i = 0; i < 4; i++) {
        T_EQ(T_RUN(&ops[i], IL_OK, IL_RUN_PENDING)->position, i % 2 + 1);
        il_op_release(&ops[i]);
    }
    ops[4] =
        t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, "r1", 0, T_RUN_ARGS(.tenant = "a", .error = "x"));
    ops[5] = ops[1];
    T_EQ(il_apply(t_handle(s), ops + 1, 5, NULL), IL_OK);
    T_EQ(T_RUN(&ops[1], IL_OK, IL_RUN_PENDING)->position, 2);
    T_EQ(T_RUN(&ops[3], IL_OK, IL_RUN_PENDING)->position, 2);
    T_EQ(T_RUN(&ops[5], IL_OK, IL_RUN_PENDING)->position, 1);
    for (unsigned i = 1; i < 6; i++)
        il_op_release(&ops[i]);
}

T_TEST(list_of_a_damaged_cursor)
{
    (void)T_IS(t_run_list(s, NULL, .cursor = "zz"), IL_INVAL);
    (void)T_IS(t_run_list(s, NULL, .cursor = "12"), IL_INVAL);
    T_EQ(T_IS(t_run_list(s, NULL, .cursor = "12:gone"), IL_OK)->out.n_runs, 0);
}

/* ---- the log --------------------------------------------------------------------------------- */

static void
has_log(const il_op *op, uint64_t offset, const char *text, size_t n)
{
    (void)T_IS(op, IL_OK);
    T_EQ(op->out.n_runs, 1);
    T_EQU(op->out.offset, offset);
    T_EQ(op->out.value_bytes, n);
    if (n > 0)
        T_TRUE(memcmp(op->out.value, text, n) == 0);
    T_EQ(((const char *)op->out.value)[n], '\0');
}

/* Output is kept with the run, and can be followed by its offset. */
T_TEST(log_is_read_from_an_offset)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    has_log(t_run_log(s, "r1", 0), 0, "", 0);
    has_log(t_run_log(s, "r1", 7), 7, "", 0);
    (void)T_IS(t_run_stage(s, "r1", "h", fence, .log = "hello\n", .log_bytes = 6), IL_OK);
    (void)T_IS(t_run_stage(s, "r1", "h", fence), IL_OK); /* nothing to write */
    /* any bytes */
    (void)T_IS(t_run_stage(s, "r1", "h", fence, .log = "a\0\xff", .log_bytes = 3), IL_OK);
    has_log(t_run_log(s, "r1", 0), 0, "hello\na\0\xff", 9);
    has_log(t_run_log(s, "r1", 4), 4, "o\na\0\xff", 5);
    has_log(t_run_log(s, "r1", 6), 6, "a\0\xff", 3);
    has_log(t_run_log(s, "r1", 9), 9, "", 0);
    has_log(t_run_log(s, "r1", UINT64_MAX), UINT64_MAX, "", 0);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED, .log = "bye", .log_bytes = 3),
               IL_OK);
    const il_op *op = t_run_log(s, "r1", 9);
    has_log(op, 9, "bye", 3);
    T_EQ(op->out.runs[0].state, IL_RUN_COMPLETED);
    T_EQ(op->out.runs[0].log_bytes, 12);
}

/* LOG_AT: whoever does not know whether it was written writes it again, and nothing is there
 * twice. */
T_TEST(what_is_there_is_not_written_again)
{
    uint64_t fence = T_RUN(t_run_start(s, "k", "h", "r1"), IL_OK, IL_RUN_RUNNING)->fence;

    (void)T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(0, "hello", 5)), IL_OK);
    const il_op *op = T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(0, "hello", 5)), IL_OK);
    T_EQU(op->out.runs[0].log_bytes, 5);
    (void)T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(3, "lo world", 8)), IL_OK);
    has_log(t_run_log(s, "r1", 0), 0, "hello world", 11);
    (void)T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(2, "XX", 2)), IL_OK); /* not compared */
    (void)T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(11, NULL, 0)), IL_OK);
    has_log(t_run_log(s, "r1", 0), 0, "hello world", 11);

    op = T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(12, "!", 1), .stage = "no", .percent = 8),
              IL_STATE);
    T_STREQ(op->out.detail, "the log has 11 bytes; cannot append at byte 12");
    T_EQU(op->out.runs[0].log_bytes, 11);
    T_EQU(op->out.fence, fence);
    (void)T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(UINT64_MAX, NULL, 0)), IL_STATE);
    op = T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED, T_LOG_AT(12, "!", 1)), IL_STATE);
    T_EQ(op->out.runs[0].state, IL_RUN_RUNNING);
    T_STREQ(op->out.runs[0].stage, "");
    T_EQ(op->out.runs[0].progress, -1);
    (void)T_IS(t_run_stage(s, "r1", "h", fence + 1, T_LOG_AT(12, "!", 1)), IL_STALE);

    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED, T_LOG_AT(10, "d!", 2)), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED, T_LOG_AT(10, "d!", 2)), IL_OK);
    has_log(t_run_log(s, "r1", 0), 0, "hello world!", 12);
}

/* Byte i of what is written. */
static char
byte_at(uint64_t i)
{
    return (char)('a' + (i * 31 + i / 1009) % 26);
}

static void
write_log(struct t_store *s, const char *id, uint64_t fence, uint64_t *total, size_t n)
{
    static char data[IL_LOG_BYTES_MAX];

    for (size_t i = 0; i < n; i++)
        data[i] = byte_at(*total + i);
    const il_op *op = t_run_stage(s, id, "h", fence, .log = data, .log_bytes = n);
    (void)T_RUN(op, IL_OK, IL_RUN_RUNNING);
    *total += n;
    T_EQU(op->out.runs[0].log_bytes, *total);
}

/* What is left of the log, in as many reads as it takes. */
static void
check_log(struct t_store *s, const char *id, uint64_t total)
{
    uint64_t first = total > IL_LOG_BYTES_MAX ? total - IL_LOG_BYTES_MAX : 0;
    uint64_t at    = 0;

    for (;;) {
        const il_op *op = T_IS(t_run_log(s, id, at), IL_OK);
        T_EQU(op->out.offset, MAX(at, first));
        T_EQU(op->out.value_bytes, MIN(total - op->out.offset, 65536));
        for (size_t i = 0; i < op->out.value_bytes; i++) {
            if (((const char *)op->out.value)[i] != byte_at(op->out.offset + i))
                T_FAIL("byte %zu at %zu of %zu", i, (size_t)op->out.offset, (size_t)total);
        }
        if (op->out.value_bytes == 0)
            break;
        at = op->out.offset + op->out.value_bytes;
    }
    T_EQU(at, MAX(total, first));
}

T_TEST(log_keeps_the_last_megabyte)
{
    static const size_t parts[] = { 1,       100,    8192,   8000,    200, 65536,   65537,
                                    300000,  500000, 120000, 7,       3,   1048576, 5,
                                    1048575, 2,      70000,  1000000, 1 };
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 86400000), IL_OK)->out.fence;
    uint64_t total = 0;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        write_log(s, "r1", fence, &total, parts[i]);
        if (i % 3 == 0 || i + 1 == ARRAY_LEN(parts))
            check_log(s, "r1", total);
    }
    /* Another run's is its own. */
    uint64_t other = T_IS(t_run_start(s, "k2", "h", "r2"), IL_OK)->out.fence;
    (void)T_IS(t_run_stage(s, "r2", "h", other, .log = "two", .log_bytes = 3), IL_OK);
    has_log(t_run_log(s, "r2", 0), 0, "two", 3);
    check_log(s, "r1", total);
    (void)T_IS(t_run_stage(s, "r1", "h", fence, T_LOG_AT(0, "long gone", 9)), IL_OK);
    check_log(s, "r1", total);
}

T_TEST(log_of_many_small_writes)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 86400000), IL_OK)->out.fence;
    uint64_t total = 0;

    for (unsigned i = 0; i < 600; i++)
        write_log(s, "r1", fence, &total, 1 + i % 97);
    check_log(s, "r1", total);
}

/* A stage that is refused writes nothing. */
T_TEST(log_of_a_stale_worker)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 5000);
    (void)T_IS(t_run_stage(s, "r1", "h", fence, .log = "x", .log_bytes = 1), IL_STALE);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_FAILED, .log = "x", .log_bytes = 1), IL_OK);
    has_log(t_run_log(s, "r1", 0), 0, "", 0);
}

/* ---- retention ------------------------------------------------------------------------------- */

/* The wall clock decides, not the lease time of a machine that was off. */
T_TEST(what_is_old_is_purged)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .keep_ms = 10000), IL_OK)->out.fence;

    (void)T_IS(t_run_start(s, "k2", "h2", "r2", .keep_ms = 5000, .ttl_ms = 86400000), IL_OK);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED, .log = "x", .log_bytes = 1),
               IL_OK);
    t_pass(s, 9999);
    T_EQ(t_sweep_all(s, 0).n_purged, 0);
    (void)T_RUN_NOW(s, "r1", IL_RUN_COMPLETED);
    t_pass(s, 1);
    T_EQ(t_sweep_all(s, 0).n_purged, 1);
    (void)T_IS(t_run_get(s, "r1"), IL_NOT_FOUND);
    (void)T_IS(t_run_log(s, "r1", 0), IL_NOT_FOUND);
    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_NOT_FOUND);
    T_EQ(T_IS(t_run_list(s, NULL), IL_OK)->out.n_runs, 1);
    (void)T_RUN_NOW(s, "r2", IL_RUN_RUNNING); /* a live one has no age */
    T_EQ(t_sweep_all(s, 0).n_purged, 0);
    /* The id can be used again, and the log of the first is gone. */
    (void)T_RUN(t_run_start(s, "k", "h3", "r1"), IL_OK, IL_RUN_RUNNING);
    has_log(t_run_log(s, "r1", 0), 0, "", 0);
}

T_TEST(thirty_days_by_default)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1"), IL_OK)->out.fence;

    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    t_pass(s, 30 * DAY_MS - 1);
    T_EQ(t_sweep_all(s, 0).n_purged, 0);
    t_pass(s, 1);
    T_EQ(t_sweep_all(s, 0).n_purged, 1);
}

/* An orphan is kept from the moment its end was noticed. */
T_TEST(an_orphan_is_kept_too)
{
    (void)T_IS(t_run_start(s, "k", "h", "r1", .ttl_ms = 5000, .keep_ms = 1000), IL_OK);
    t_pass(s, 100000);
    il_sweep_out sum = t_sweep_all(s, 0);
    T_EQ(sum.n_runs, 1);
    T_EQ(sum.n_purged, 0);
    (void)T_RUN_NOW(s, "r1", IL_RUN_FAILED);
    t_pass(s, 1000);
    T_EQ(t_sweep_all(s, 0).n_purged, 1);
}

T_TEST(purging_is_bounded)
{
    for (unsigned i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "r%u", i);
        (void)T_IS(t_run_start(s, id, NULL, id, T_SLOT, .keep_ms = 1000 * (1 + (i * 7) % 10)),
                   IL_OK);
        (void)T_IS(t_run_cancel(s, id, "x"), IL_OK);
    }
    t_pass(s, 8000);
    const il_op *op = T_IS(t_sweep(s, .limit = 3), IL_OK);
    T_EQ(op->out.sweep.n_purged, 3);
    T_EQ(op->out.flags, IL_OUT_MORE);
    T_EQ(T_IS(t_run_list(s, NULL), IL_OK)->out.n_runs, 7);
    (void)T_IS(t_run_get(s, "r0"), IL_NOT_FOUND); /* 1 s, 2 s, 3 s: the oldest first */
    (void)T_IS(t_run_get(s, "r3"), IL_NOT_FOUND);
    (void)T_IS(t_run_get(s, "r6"), IL_NOT_FOUND);
    (void)T_IS(t_run_get(s, "r9"), IL_OK);
    T_EQ(t_sweep_all(s, 3).n_purged, 5);
    op = T_IS(t_run_list(s, NULL), IL_OK);
    T_EQ(op->out.n_runs, 2);
    T_STREQ(op->out.runs[0].id, "r7");
    T_STREQ(op->out.runs[1].id, "r4");
    T_EQ(t_sweep_all(s, 3).n_purged, 0);
}

/* An idle process looks before it sweeps. */
T_TEST(what_is_to_be_purged_is_noticed)
{
    uint64_t fence = T_IS(t_run_start(s, "k", "h", "r1", .keep_ms = 100000), IL_OK)->out.fence;

    (void)T_IS(t_run_finish(s, "r1", "h", fence, IL_RUN_COMPLETED), IL_OK);
    t_pass(s, 61000);
    for (unsigned i = 0; i < 3; i++)
        (void)t_sweep_all(s, 0); /* what else there was to do */
    T_TRUE(!il__store_overdue(t_handle(s)->store));
    t_pass(s, 38999);
    T_TRUE(!il__store_overdue(t_handle(s)->store));
    t_pass(s, 1);
    T_TRUE(il__store_overdue(t_handle(s)->store));
    T_EQ(t_sweep_all(s, 0).n_purged, 1);
    T_TRUE(!il__store_overdue(t_handle(s)->store));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(get_of_what_is_not_there),
        T_ROW(list_newest_first),
        T_ROW(list_by_state),
        T_ROW(positions_in_a_batch_of_two_tenants),
        T_ROW(list_of_a_damaged_cursor),
        T_ROW(log_is_read_from_an_offset),
        T_ROW(what_is_there_is_not_written_again),
        T_ROW(log_keeps_the_last_megabyte),
        T_ROW(log_of_many_small_writes),
        T_ROW(log_of_a_stale_worker),
        T_ROW(what_is_old_is_purged),
        T_ROW(thirty_days_by_default),
        T_ROW(an_orphan_is_kept_too),
        T_ROW(purging_is_bounded),
        T_ROW(what_is_to_be_purged_is_noticed),
    };

    return T_SUITE("run_show", tests);
}
