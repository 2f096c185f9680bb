/*
 * run.c: the state machine of a run, its names, and valid inputs.
 */
#include "core/run.h"

#include "core/limits.h"
#include "core/op.h"
#include "harness/unit.h"

static const struct {
    il_run_state       from;
    enum il__run_event event;
    il_run_state       to;
    const char        *why;
} edges[] = {
#define X(from, event, to, why) { IL_RUN_##from, IL__RUN_EV_##event, IL_RUN_##to, why },
#include "core/run_edges.def"
#undef X
};

U_TEST(every_state_is_reachable)
{
    bool reached[IL_RUN_STATE_COUNT] = { [IL_RUN_NONE] = true };

    for (size_t round = 0; round < IL_RUN_STATE_COUNT; round++) {
        for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
            if (reached[edges[i].from])
                reached[edges[i].to] = true;
        }
    }
    for (unsigned s = 0; s < IL_RUN_STATE_COUNT; s++) {
        if (!reached[s])
            T_FAIL("%s cannot be reached", il_run_state_name((il_run_state)s));
    }
}

U_TEST(ended_states_have_no_exits)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        T_TRUE(!il__run_ended(edges[i].from));
        T_TRUE(edges[i].why != NULL && edges[i].why[0] != '\0');
        T_EQ(il__run_step(edges[i].from, edges[i].event, false), edges[i].to);
    }
    for (unsigned s = IL_RUN_COMPLETED; s < IL_RUN_STATE_COUNT; s++) {
        T_TRUE(il__run_ended((il_run_state)s));
        for (unsigned e = 0; e < IL__RUN_EVENT_COUNT; e++)
            T_EQ(il__run_step((il_run_state)s, (enum il__run_event)e, false), IL_RUN_NONE);
    }
    T_TRUE(!il__run_ended(IL_RUN_NONE) && !il__run_ended(IL_RUN_PENDING));
    T_TRUE(!il__run_ended(IL_RUN_RUNNING));
}

U_TEST(a_stop_turns_failed_into_cancelled)
{
    for (unsigned e = 0; e < IL__RUN_EVENT_COUNT; e++) {
        il_run_state plain   = il__run_step(IL_RUN_RUNNING, (enum il__run_event)e, false);
        il_run_state stopped = il__run_step(IL_RUN_RUNNING, (enum il__run_event)e, true);
        T_EQ(stopped, plain == IL_RUN_FAILED ? IL_RUN_CANCELLED : plain);
    }
}

/* The names of the wire, and COMPLETE as another one for COMPLETED. */
U_TEST(names_go_round)
{
    for (unsigned s = IL_RUN_PENDING; s < IL_RUN_STATE_COUNT; s++)
        T_EQ(il_run_state_parse(il_run_state_name((il_run_state)s)), s);
    T_EQ(il_run_state_parse("COMPLETE"), IL_RUN_COMPLETED);
    T_EQ(il_run_state_parse("NONE"), IL_RUN_NONE);
    T_EQ(il_run_state_parse("running"), IL_RUN_NONE);
    T_EQ(il_run_state_parse(""), IL_RUN_NONE);
    T_EQ(il_run_state_parse(NULL), IL_RUN_NONE);
    T_STREQ(il_run_state_name((il_run_state)99), "UNKNOWN");
    T_STREQ(il_policy_name(IL_POLICY_JOIN), "join");
    T_STREQ(il_policy_name(IL_POLICY_REPLACE_PENDING), "replace-pending");
    T_STREQ(il_policy_name(IL_POLICY_CANCEL_RUNNING), "cancel-running");
    T_STREQ(il_policy_name((il_policy)99), "unknown");
    T_EQ(il__run_finish_event(IL_RUN_FAILED), IL__RUN_EV_FAIL);
    for (unsigned s = IL_RUN_COMPLETED; s < IL_RUN_STATE_COUNT; s++)
        T_EQ(il__run_step(IL_RUN_RUNNING, il__run_finish_event((il_run_state)s), false), s);
}

U_TEST(what_came_first_counts)
{
    /* due at 1000: the deadline was 1000, or later. */
    T_EQ(il__run_waiter_event(1000, 1000, 999), IL__RUN_EV_LEAVE);
    T_EQ(il__run_waiter_event(1000, 1000, 1000), IL__RUN_EV_DEADLINE);
    T_EQ(il__run_waiter_event(1000, 1001, 5000), IL__RUN_EV_SILENT);
    T_EQ(il__run_waiter_event(1000, IL__NEVER, 5000), IL__RUN_EV_SILENT);
    T_EQ(il__run_lease_event(IL_LEASE_OFFERED, IL_LEASE_EXPIRED), IL__RUN_EV_SILENT);
    T_EQ(il__run_lease_event(IL_LEASE_HELD, IL_LEASE_EXPIRED), IL__RUN_EV_EXPIRE);
    T_EQ(il__run_lease_event(IL_LEASE_CLOSING, IL_LEASE_BROKEN), IL__RUN_EV_BREAK);
    T_EQ(il__run_lease_event(IL_LEASE_HELD, IL_LEASE_RELEASED), IL__RUN_EV_RELEASE);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static char long_text[IL_LOG_BYTES_MAX + 2];

static il_op
good(il_op_type type)
{
    il_op op = { .type = type, .holder = "h", .fence = 7 };

    if (type == IL_OP_RUN_LIST)
        return op;
    op.key    = "k";
    op.in.run = (il_run_in){ .id = "id", .progress = -1 };
    if (type == IL_OP_RUN_FINISH)
        op.in.run.state = IL_RUN_FAILED;
    if (type == IL_OP_RUN_CANCEL)
        op.in.run.error = "because";
    return op;
}

static void
accepted(il_op op)
{
    if (!il__op_prepare(&op, "t", 1))
        T_FAIL("refused: %s", op.out.detail);
    il_op_release(&op);
}

static void
refused(il_op op, const char *why)
{
    T_TRUE(!il__op_prepare(&op, "t", 1));
    T_EQ(op.status, IL_INVAL);
    T_HAS(op.out.detail, why);
    il_op_release(&op);
}

/* `n` characters. */
static const char *
text_of(size_t n)
{
    memset(long_text, 'x', n);
    long_text[n] = '\0';
    return long_text;
}

U_TEST(good_ones_pass)
{
    for (unsigned t = IL_OP_RUN_START; t <= IL_OP_RUN_LOG; t++)
        accepted(good((il_op_type)t));
    il_op op = good(IL_OP_RUN_START);
    T_TRUE(il__op_prepare(&op, "t", 1));
    T_EQ(op.in.run.ttl_ms, IL_TTL_MS_DEFAULT);
    T_EQ(op.in.run.wait_ms, IL_FOREVER);
    T_EQ(op.in.run.keep_ms, IL__RUN_KEEP_MS);
    T_EQ(op.in.run.queue_max, IL__RUN_QUEUE_MAX);
    op        = good(IL_OP_RUN_START);
    op.holder = NULL;
    refused(op, "no holder given");
    op.flags = IL_RUN_SLOT; /* whoever makes a slot does not execute it */
    accepted(op);
}

U_TEST(ids)
{
    for (unsigned t = IL_OP_RUN_START; t <= IL_OP_RUN_LOG; t++) {
        il_op op = good((il_op_type)t);
        if (t == IL_OP_RUN_LIST)
            continue;
        op.in.run.id = NULL;
        refused(op, "no id given");
        op.in.run.id = "";
        refused(op, "the id is empty");
        op.in.run.id = "a\nb";
        refused(op, "the id contains a control character");
        op.in.run.id = text_of(IL_ID_BYTES_MAX);
        accepted(op);
        op.in.run.id = text_of(IL_ID_BYTES_MAX + 1);
        refused(op, "the id is longer than 64 bytes");
    }
}

/* The largest text of a field, and one that is too long. */
#define BOUNDED(type_, member, n_max, what)       \
    do {                                          \
        il_op op_         = good(type_);          \
        op_.in.run.member = text_of(n_max);       \
        accepted(op_);                            \
        op_.in.run.member = text_of((n_max) + 1); \
        refused(op_, what);                       \
        op_.in.run.member = "\xff";               \
        refused(op_, "not valid UTF-8");          \
    } while (0)

U_TEST(texts_are_bounded)
{
    BOUNDED(IL_OP_RUN_START, trigger, IL_PLACE_BYTES_MAX, "the trigger is longer than 256 bytes");
    BOUNDED(IL_OP_RUN_START, by, IL_PLACE_BYTES_MAX,
            "the name of the initiator is longer than 256 bytes");
    BOUNDED(IL_OP_RUN_START, meta, IL_META_BYTES_MAX, "the meta is longer than 4096 bytes");
    BOUNDED(IL_OP_RUN_START, place, IL_PLACE_BYTES_MAX, "the place is longer than 256 bytes");
    BOUNDED(IL_OP_RUN_STAGE, stage, IL_TEXT_BYTES_MAX, "the stage is longer than 4096 bytes");
    BOUNDED(IL_OP_RUN_FINISH, error, IL_TEXT_BYTES_MAX, "the error is longer than 4096 bytes");
    BOUNDED(IL_OP_RUN_CANCEL, error, IL_TEXT_BYTES_MAX, "the reason is longer than 4096 bytes");
    il_op op        = good(IL_OP_RUN_CANCEL);
    op.in.run.error = NULL;
    refused(op, "no reason given");
    op.in.run.error = "";
    refused(op, "the reason is empty");
}

U_TEST(times)
{
    il_op op = good(IL_OP_RUN_START);

    op.in.run.ttl_ms = IL_TTL_MS_MIN - 1;
    refused(op, "a TTL of 999 ms is outside 1s..24h");
    op.in.run.ttl_ms = IL_TTL_MS_MAX + 1;
    refused(op, "TTL");
    op                = good(IL_OP_RUN_START);
    op.in.run.wait_ms = -2;
    refused(op, "invalid wait of -2 ms: must not be negative");
    op                  = good(IL_OP_RUN_START);
    op.in.run.settle_ms = -1;
    refused(op, "a settle time of -1 ms");
    op.in.run.settle_ms = IL_TTL_MS_MAX + 1;
    refused(op, "settle time");
    op                = good(IL_OP_RUN_START);
    op.in.run.keep_ms = -1;
    refused(op, "a keep time of -1 ms is outside 1ms..366d");
    op.in.run.keep_ms = IL_DELAY_MS_MAX;
    accepted(op);
    op.in.run.keep_ms = IL_DELAY_MS_MAX + 1;
    refused(op, "keep time");
}

U_TEST(numbers_and_states)
{
    il_op op = good(IL_OP_RUN_STAGE);

    op.in.run.progress = 100;
    accepted(op);
    op.in.run.progress = 101;
    refused(op, "a progress of 101 is outside -1..100");
    op.in.run.progress = -2;
    refused(op, "a progress of -2");
    op       = good(IL_OP_RUN_STAGE);
    op.fence = 0;
    refused(op, "invalid fence 0");
    op               = good(IL_OP_RUN_START);
    op.in.run.policy = IL_POLICY_COUNT;
    refused(op, "unknown policy 6");
    static const il_run_state live[] = { IL_RUN_NONE, IL_RUN_PENDING, IL_RUN_RUNNING,
                                         IL_RUN_STATE_COUNT };
    for (size_t i = 0; i < ARRAY_LEN(live); i++) {
        op              = good(IL_OP_RUN_FINISH);
        op.in.run.state = live[i];
        refused(op, "is not a final state of a run");
    }
}

U_TEST(logs)
{
    static const il_op_type types[] = { IL_OP_RUN_STAGE, IL_OP_RUN_FINISH };

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        il_op op            = good(types[i]);
        op.in.run.log       = long_text;
        op.in.run.log_bytes = IL_LOG_BYTES_MAX;
        accepted(op);
        op.in.run.log_bytes = IL_LOG_BYTES_MAX + 1;
        refused(op, "the log has 1048577 bytes, more than the limit of 1048576");
        op.in.run.log       = NULL;
        op.in.run.log_bytes = 3;
        refused(op, "the log is NULL but its length is 3 bytes");
    }
}

U_TEST(listings)
{
    il_op op = good(IL_OP_RUN_LIST);

    op.in.list.states = 1U << IL_RUN_RUNNING | 1U << IL_RUN_INTERRUPTED;
    accepted(op);
    op.in.list.states = 1;
    refused(op, "unknown run states 0x1");
    op.in.list.states = 1U << IL_RUN_STATE_COUNT;
    refused(op, "unknown run states 0x100");
    op               = good(IL_OP_RUN_LIST);
    op.in.list.limit = IL_PAGE_ITEMS_MAX + 1;
    refused(op, "limit 1001 exceeds the maximum of 1000");
    op                = good(IL_OP_RUN_LIST);
    op.in.list.cursor = "nonsense";
    refused(op, "invalid cursor");
    op     = good(IL_OP_RUN_LIST);
    op.key = "";
    refused(op, "the key is empty");
    op                = good(IL_OP_RUN_LIST);
    op.in.list.prefix = text_of(IL_KEY_BYTES_MAX + 1);
    refused(op, "the prefix is longer than 512 bytes");
}

/* ---- limits of a tenant ---------------------------------------------------------------------- */

U_TEST(days_begin_at_midnight)
{
    T_EQ(il__run_midnight_ms(0), 0);
    T_EQ(il__run_midnight_ms(1), 0);
    T_EQ(il__run_midnight_ms(IL__DAY_MS - 1), 0);
    T_EQ(il__run_midnight_ms(IL__DAY_MS), IL__DAY_MS);
    T_EQ(il__run_midnight_ms(1800000000000), 1799971200000); /* 2027-01-15T08:00:00Z */
    T_EQ(il__run_midnight_ms(-1), -IL__DAY_MS);
    T_EQ(il__run_midnight_ms(-IL__DAY_MS), -IL__DAY_MS);
}

U_TEST(what_a_policy_replaces)
{
    for (unsigned p = 0; p < IL_POLICY_COUNT; p++)
        T_EQ(il__run_replaces((il_policy)p), p == IL_POLICY_CANCEL_RUNNING    ? IL_RUN_RUNNING
                                             : p == IL_POLICY_REPLACE_PENDING ? IL_RUN_PENDING
                                                                              : IL_RUN_NONE);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_state_is_reachable),
        U_ROW(ended_states_have_no_exits),
        U_ROW(a_stop_turns_failed_into_cancelled),
        U_ROW(names_go_round),
        U_ROW(what_came_first_counts),
        U_ROW(good_ones_pass),
        U_ROW(ids),
        U_ROW(texts_are_bounded),
        U_ROW(times),
        U_ROW(numbers_and_states),
        U_ROW(logs),
        U_ROW(listings),
        U_ROW(days_begin_at_midnight),
        U_ROW(what_a_policy_replaces),
    };

    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
