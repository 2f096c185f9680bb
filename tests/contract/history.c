/*
 * history.c: what happened to a key: expiries and breaks, which the engine finds, and refusals,
 * which callers report; how they are merged, listed and forgotten.
 */
#include <stdio.h>

#include "harness/suite.h"

#define DAY_MS INT64_C(86400000)

static const il_op *
history(struct t_store *s, const char *key)
{
    il_op op = { .type = IL_OP_HISTORY, .key = key };

    return T_IS(t_op_run(s, NULL, op), IL_OK);
}

static const il_event_info *
newest(struct t_store *s, const char *key)
{
    const il_op *op = history(s, key);

    T_LESS(0, op->out.n_events);
    return &op->out.events[0];
}

static void
refuse(struct t_store *s, const char *key, const char *meta, il_refused_in in)
{
    il_op op = { .type = IL_OP_REFUSED, .key = key, .in.refused = in };

    op.in.refused.meta = meta;
    (void)T_IS(t_op_run(s, NULL, op), IL_OK);
}

static void
break_lease(struct t_store *s, uint64_t fence, const char *reason, const char *who, uint32_t flags)
{
    struct t_args a = { .reason = reason, .meta = who, .flags = flags };

    (void)T_IS(t_op_run(s, NULL, t_op(IL_OP_BREAK, "k", NULL, fence, a)), IL_OK);
}

T_TEST(a_key_without_a_past_has_no_events)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    T_EQ(history(s, "k")->out.n_events, 0);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD); /* nobody reported it */
    (void)T_IS(t_renew(s, "k", "a", fence), IL_OK);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    T_EQ(history(s, "k")->out.n_events, 0);
}

T_TEST(an_expiry_is_kept_once_with_its_holder_and_times)
{
    uint64_t fence =
        T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000, .meta = "{\"pid\":7}"), IL_OK)->out.fence;

    t_pass(s, 7000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK); /* finds it */
    for (unsigned i = 0; i < 2; i++) {
        const il_op         *op = history(s, "k");
        const il_event_info *e  = &op->out.events[0];
        T_EQ(op->out.n_events, 1);
        T_EQ(e->kind, IL_EVENT_EXPIRED);
        T_EQ(e->count, 1);
        T_EQU(e->fence, fence);
        T_STREQ(e->holder, "a");
        T_STREQ(e->meta, "{\"pid\":7}");
        T_STREQ(e->other, "");
        T_STREQ(e->reason, "");
        T_STREQ(e->key, "k");
        T_EQ(e->first_at_ms - e->since_at_ms, 5000); /* when it expired, not when it was found */
        T_EQ(e->last_at_ms, e->first_at_ms);
        (void)t_sweep_all(s, 100);
    }
}

T_TEST(an_expiry_that_nobody_has_found_yet_is_listed_too)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    t_pass(s, 4999);
    T_EQ(history(s, "k")->out.n_events, 0);
    t_pass(s, 60 * 60 * 1000);
    T_EQU(newest(s, "k")->fence, fence); /* a read: it changes nothing */
    int64_t at_ms = newest(s, "k")->last_at_ms;
    T_EQ(t_sweep_all(s, 100).n_expired, 1);
    T_EQ(history(s, "k")->out.n_events, 1);
    T_EQ(newest(s, "k")->last_at_ms, at_ms);
}

T_TEST(a_key_that_settles_has_expired_once)
{
    (void)T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000, .settle_ms = 5000), IL_OK);
    t_pass(s, 5000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_HELD);
    T_EQ(newest(s, "k")->kind, IL_EVENT_EXPIRED);
    t_pass(s, 5000);
    (void)T_IS(t_acquire(s, "k", "b"), IL_OK);
    T_EQ(history(s, "k")->out.n_events, 1);
}

T_TEST(shared_leases_expire_one_by_one)
{
    for (unsigned i = 0; i < 3; i++) {
        char holder[8];
        (void)snprintf(holder, sizeof holder, "h%u", i);
        (void)T_IS(t_acquire(s, "k", holder, .ttl_ms = 5000 + i * 1000, T_SHARED), IL_OK);
    }
    t_pass(s, 6500);
    (void)t_sweep_all(s, 100);
    const il_op *op = history(s, "k");
    T_EQ(op->out.n_events, 2);
    T_STREQ(op->out.events[0].holder, "h1"); /* newest first */
    T_STREQ(op->out.events[1].holder, "h0");
}

T_TEST(an_unconfirmed_offer_was_never_held)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a"), IL_OK)->out.fence;

    (void)T_IS(t_acquire(s, "k", "b", .wait_ms = 60000), IL_QUEUED);
    (void)T_IS(t_release(s, "k", "a", fence), IL_OK);
    t_pass(s, 2000);
    (void)t_sweep_all(s, 100);
    T_EQ(history(s, "k")->out.n_events, 0);
}

T_TEST(a_break_is_kept_with_its_reason_and_who_did_it)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .meta = "job"), IL_OK)->out.fence;

    t_pass(s, 1000);
    break_lease(s, fence, "stuck", "root on A", 0);
    break_lease(s, fence, "again", NULL, 0);
    break_lease(s, fence, "now", NULL, IL_BREAK_NOW);
    const il_op         *op = history(s, "k");
    const il_event_info *e  = &op->out.events[0];
    T_EQ(op->out.n_events, 1);
    T_EQ(e->kind, IL_EVENT_BROKEN);
    T_EQU(e->fence, fence);
    T_STREQ(e->holder, "a");
    T_STREQ(e->meta, "job");
    T_STREQ(e->other, "root on A");
    T_STREQ(e->reason, "stuck");
    T_EQ(e->last_at_ms - e->since_at_ms, 1000);
}

T_TEST(a_break_at_once_is_kept_and_its_end_is_not_an_expiry)
{
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .ttl_ms = 5000), IL_OK)->out.fence;

    (void)T_IS(t_break(s, "k", fence, .flags = IL_BREAK_NOW), IL_OK);
    fence = T_IS(t_acquire(s, "k", "b", .ttl_ms = 5000), IL_OK)->out.fence;
    (void)T_IS(t_break(s, "k", fence), IL_OK);
    t_pass(s, 5000);
    (void)T_IS(t_acquire(s, "k", "c"), IL_OK);
    const il_op *op = history(s, "k");
    T_EQ(op->out.n_events, 2);
    T_STREQ(op->out.events[0].holder, "b");
    T_EQ(op->out.events[0].kind, IL_EVENT_BROKEN);
    T_EQ(op->out.events[1].kind, IL_EVENT_BROKEN);
}

T_TEST(refusals_of_a_caller_are_merged)
{
    refuse(s, "k", "report.sh", (il_refused_in){ .other = "sleep", .held_ms = 500 });
    int64_t first_ms = newest(s, "k")->first_at_ms;
    t_pass(s, 20 * 60 * 1000);
    refuse(s, "k", "backup.sh", (il_refused_in){ .count = 1 });
    refuse(s, "k", "report.sh",
           (il_refused_in){ .count = 5, .span_ms = 1000, .reason = "skipped" });
    const il_op         *op = history(s, "k");
    const il_event_info *e  = &op->out.events[0];
    T_EQ(op->out.n_events, 2);
    T_EQ(e->kind, IL_EVENT_REFUSED);
    T_STREQ(e->meta, "report.sh");
    T_EQ(e->count, 6);
    T_EQ(e->first_at_ms, first_ms);
    T_EQ(e->last_at_ms - first_ms, 20 * 60 * 1000);
    T_STREQ(e->other, ""); /* of the last one */
    T_STREQ(e->reason, "skipped");
    T_EQ(e->since_at_ms, 0);
    T_STREQ(op->out.events[1].meta, "backup.sh");
}

T_TEST(refusals_say_who_was_in_the_way)
{
    il_op op = { .type       = IL_OP_REFUSED,
                 .key        = "k",
                 .holder     = "a",
                 .fence      = 77,
                 .in.refused = {
                     .meta = "m", .other = "{\"pid\":4711}", .held_ms = 9000, .span_ms = 4000 } };

    (void)T_IS(t_op_run(s, NULL, op), IL_OK);
    const il_event_info *e = newest(s, "k");
    T_STREQ(e->holder, "a");
    T_EQU(e->fence, 77);
    T_STREQ(e->other, "{\"pid\":4711}");
    T_EQ(e->last_at_ms - e->since_at_ms, 9000);
    T_EQ(e->last_at_ms - e->first_at_ms, 4000);
    T_EQ(e->count, 1);
}

T_TEST(the_last_20_are_kept)
{
    char meta[16];

    for (unsigned i = 0; i < IL_EVENTS_MAX + 5; i++) {
        (void)snprintf(meta, sizeof meta, "caller %u", i);
        refuse(s, "k", meta, (il_refused_in){ .count = 1 });
        t_pass(s, 1000);
    }
    const il_op *op = history(s, "k");
    T_EQ(op->out.n_events, IL_EVENTS_MAX);
    T_STREQ(op->out.events[0].meta, "caller 24");
    T_STREQ(op->out.events[IL_EVENTS_MAX - 1].meta, "caller 5");
    /* One that is merged is the newest again, and pushes no other out. */
    refuse(s, "k", "caller 5", (il_refused_in){ .count = 1 });
    op = history(s, "k");
    T_EQ(op->out.n_events, IL_EVENTS_MAX);
    T_STREQ(op->out.events[0].meta, "caller 5");
    T_EQ(op->out.events[0].count, 2);
    T_STREQ(op->out.events[IL_EVENTS_MAX - 1].meta, "caller 6");
}

T_TEST(pages_go_from_new_to_old)
{
    il_op op = { .type = IL_OP_HISTORY, .key = "k", .in.list.limit = 3 };
    char  meta[16];
    char  cursor[64];
    int   i = 7;

    for (int n = 0; n < 7; n++) {
        (void)snprintf(meta, sizeof meta, "caller %d", n);
        refuse(s, "k", meta, (il_refused_in){ .count = 1 });
    }
    do {
        const il_op *page = T_IS(t_op_run(s, NULL, op), IL_OK);
        for (size_t at = 0; at < page->out.n_events; at++) {
            (void)snprintf(meta, sizeof meta, "caller %d", --i);
            T_STREQ(page->out.events[at].meta, meta);
        }
        op.in.list.cursor = NULL;
        if (page->out.next != NULL) {
            (void)snprintf(cursor, sizeof cursor, "%s", page->out.next);
            op.in.list.cursor = cursor;
        }
    } while (op.in.list.cursor != NULL);
    T_EQ(i, 0);
}

T_TEST(a_week_later_it_is_forgotten)
{
    refuse(s, "k", "old", (il_refused_in){ .count = 1 });
    t_pass(s, 3 * DAY_MS);
    refuse(s, "k", "young", (il_refused_in){ .count = 1 });
    t_pass(s, 4 * DAY_MS - 1);
    T_EQ(history(s, "k")->out.n_events, 2);
    t_pass(s, 1);
    T_EQ(history(s, "k")->out.n_events, 1);
    T_STREQ(newest(s, "k")->meta, "young");
    T_EQ(t_sweep_all(s, 100).n_purged, 0);
    t_pass(s, 3 * DAY_MS);
    T_EQ(history(s, "k")->out.n_events, 0);
    T_EQ(t_sweep_all(s, 100).n_purged, 1);
    T_EQ(t_sweep_all(s, 100).n_purged, 0);
    refuse(s, "k", "old", (il_refused_in){ .count = 1 });
    T_EQ(newest(s, "k")->count, 1);
}

T_TEST(sweeps_forget_no_more_than_their_limit)
{
    char key[16];

    for (unsigned i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        refuse(s, key, "m", (il_refused_in){ .count = 1 });
    }
    t_pass(s, 7 * DAY_MS);
    const il_op *op = T_IS(t_sweep(s, .limit = 3), IL_OK);
    T_EQ(op->out.sweep.n_purged, 3);
    T_EQ(op->out.flags, IL_OUT_MORE);
    op = T_IS(t_sweep(s, .limit = 3), IL_OK);
    T_EQ(op->out.sweep.n_purged, 2);
    T_EQ(op->out.flags, 0);
}

/* 10,000 keys of a tenant: reported in batches, each key with a time of its own per batch. */
static void
report_keys(struct t_store *s, unsigned from, unsigned n)
{
    static char  keys[1000][16];
    static il_op ops[1000];

    for (unsigned done = 0; done < n;) {
        unsigned n_now = MIN(n - done, (unsigned)ARRAY_LEN(ops));
        for (unsigned i = 0; i < n_now; i++) {
            (void)snprintf(keys[i], sizeof keys[i], "k%05u", from + done + i);
            ops[i] = (il_op){ .type = IL_OP_REFUSED, .key = keys[i], .in.refused.meta = "m" };
        }
        t_batch(s, ops, n_now);
        for (unsigned i = 0; i < n_now; i++) {
            (void)T_IS(&ops[i], IL_OK);
            il_op_release(&ops[i]);
        }
        done += n_now;
        t_pass(s, 10);
    }
}

T_TEST(a_tenant_has_10000_keys_with_a_history)
{
    refuse(s, "first", "m", (il_refused_in){ .count = 1 });
    t_pass(s, 10);
    refuse(s, "second", "m", (il_refused_in){ .count = 1 });
    t_pass(s, 10);
    report_keys(s, 0, IL_EVENT_KEYS_MAX - 2);
    T_EQ(history(s, "first")->out.n_events, 1);
    refuse(s, "first", "m", (il_refused_in){ .count = 1 }); /* so it is not the oldest any more */
    t_pass(s, 10);
    il_op other = {
        .type = IL_OP_REFUSED, .tenant = "other", .key = "second", .in.refused.meta = "m"
    };
    (void)T_IS(t_op_run(s, NULL, other), IL_OK); /* of another tenant: does not count */
    T_EQ(history(s, "second")->out.n_events, 1);
    refuse(s, "one more", "m", (il_refused_in){ .count = 1 });
    T_EQ(history(s, "second")->out.n_events, 0); /* the oldest */
    T_EQ(history(s, "first")->out.n_events, 1);
    T_EQ(history(s, "k00000")->out.n_events, 1);
    t_pass(s, 10);
    report_keys(s, 20000, 1000);
    T_EQ(history(s, "k00998")->out.n_events, 0);
    T_EQ(history(s, "k01500")->out.n_events, 1);
    T_EQ(history(s, "k20999")->out.n_events, 1);
    T_EQ(history(s, "first")->out.n_events, 1);
}

T_TEST(tenants_do_not_see_each_other)
{
    il_op op = { .type = IL_OP_HISTORY, .tenant = "t2", .key = "k" };

    refuse(s, "k", "m", (il_refused_in){ .count = 1 });
    T_EQ(T_IS(t_op_run(s, NULL, op), IL_OK)->out.n_events, 0);
}

T_TEST(long_texts_are_cut_between_characters)
{
    char meta[IL_META_BYTES_MAX + 1];
    char cut[IL_META_BYTES_MAX + 1];

    for (unsigned i = 0; i < 2040; i++) { /* é: two bytes */
        (void)snprintf(meta + (size_t)2 * i, 3, "\xc3\xa9");
        if (i < 2000)
            (void)snprintf(cut + (size_t)2 * i, 3, "\xc3\xa9");
    }
    refuse(s, "k", meta, (il_refused_in){ .other = meta });
    T_STREQ(newest(s, "k")->meta, cut);
    T_STREQ(newest(s, "k")->other, cut);
    refuse(s, "k", meta, (il_refused_in){ .count = 1 }); /* is merged all the same */
    T_EQ(newest(s, "k")->count, 2);
    uint64_t fence = T_IS(t_acquire(s, "k", "a", .meta = meta), IL_OK)->out.fence;
    (void)T_IS(t_break(s, "k", fence), IL_OK);
    T_STREQ(newest(s, "k")->meta, cut);
}

T_TEST(counts_stop_at_a_thousand_million)
{
    for (unsigned i = 0; i < 3; i++)
        refuse(s, "k", "m", (il_refused_in){ .count = 999999999 });
    T_EQ(newest(s, "k")->count, 1000000000);
}

T_TEST(bad_reports_are_refused)
{
    const il_op bad[] = {
        { .type = IL_OP_REFUSED, .key = "k" },
        { .type = IL_OP_REFUSED, .in.refused.meta = "m" },
        { .type = IL_OP_REFUSED, .key = "k", .in.refused = { .meta = "" } },
        { .type = IL_OP_REFUSED, .key = "k", .in.refused = { .meta = "m", .count = 1000000001 } },
        { .type = IL_OP_REFUSED, .key = "k", .in.refused = { .meta = "m", .span_ms = -1 } },
        { .type = IL_OP_REFUSED, .key = "k", .in.refused = { .meta = "m", .held_ms = -1 } },
        { .type = IL_OP_REFUSED, .key = "k", .in.refused = { .meta = "m", .reason = "a\nb" } },
        { .type = IL_OP_REFUSED, .key = "k", .holder = "a\nb", .in.refused = { .meta = "m" } },
        { .type = IL_OP_REFUSED, .key = "k", .fence = UINT64_C(1) << 53, .in.refused.meta = "m" },
        { .type = IL_OP_HISTORY },
        { .type = IL_OP_HISTORY, .key = "k", .in.list.limit = 1001 },
        { .type = IL_OP_HISTORY, .key = "k", .in.list.cursor = "x" },
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        (void)T_IS(t_op_run(s, NULL, bad[i]), IL_INVAL);
    T_EQ(history(s, "k")->out.n_events, 0);
}

T_TEST(a_history_outlives_the_handle)
{
    refuse(s, "k", "m", (il_refused_in){ .count = 1 });
    t_store_reopen(s);
    T_EQ(history(s, "k")->out.n_events, s->engine->durable ? 1 : 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        T_ROW(a_key_without_a_past_has_no_events),
        T_ROW(an_expiry_is_kept_once_with_its_holder_and_times),
        T_ROW(an_expiry_that_nobody_has_found_yet_is_listed_too),
        T_ROW(a_key_that_settles_has_expired_once),
        T_ROW(shared_leases_expire_one_by_one),
        T_ROW(an_unconfirmed_offer_was_never_held),
        T_ROW(a_break_is_kept_with_its_reason_and_who_did_it),
        T_ROW(a_break_at_once_is_kept_and_its_end_is_not_an_expiry),
        T_ROW(refusals_of_a_caller_are_merged),
        T_ROW(refusals_say_who_was_in_the_way),
        T_ROW(the_last_20_are_kept),
        T_ROW(pages_go_from_new_to_old),
        T_ROW(a_week_later_it_is_forgotten),
        T_ROW(sweeps_forget_no_more_than_their_limit),
        T_ROW(a_tenant_has_10000_keys_with_a_history),
        T_ROW(tenants_do_not_see_each_other),
        T_ROW(long_texts_are_cut_between_characters),
        T_ROW(counts_stop_at_a_thousand_million),
        T_ROW(bad_reports_are_refused),
        T_ROW(a_history_outlives_the_handle),
    };

    return T_SUITE("history", tests);
}
