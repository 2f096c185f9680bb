/*
 * cache_lookup.c: each row of the lookup table in src/core/cache.md, get, early refresh, and the
 * clocks.
 */
#include "core/cache.h"
#include "harness/cache.h"
#include "harness/suite.h"

#define DAY_MS INT64_C(86400000)

T_TEST(the_first_leads)
{
    const il_op *op = T_SHOWS(t_cache_lookup(s, "k", "a"), IL_LEAD, NULL);

    T_LESS(0, op->out.fence);
    T_EQ(op->out.flags, 0);
    T_EQ(op->out.remaining_ms, IL_TTL_MS_DEFAULT);
    T_EQ(T_IS(t_cache_lookup(s, "other", "a", .lease_ms = 1500), IL_LEAD)->out.remaining_ms, 1500);
}

T_TEST(the_leader_renews)
{
    uint64_t token = T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 5000), IL_LEAD)->out.fence;

    for (unsigned i = 0; i < 3; i++) {
        t_pass(s, 4999);
        const il_op *op = T_SHOWS(t_cache_lookup(s, "k", "a", .lease_ms = 5000), IL_LEAD, NULL);
        T_EQU(op->out.fence, token);
        T_EQ(op->out.flags, IL_OUT_RENEWED);
        T_EQ(op->out.remaining_ms, 5000);
    }
    T_EQ(T_IS(t_cache_lookup(s, "k", "b"), IL_WAIT)->out.remaining_ms, 5000);
    /* Freshness counts from when it began, whatever was renewed. */
    (void)T_IS(t_cache_fill(s, "k", "a", token, "v", .ttl_ms = 20000), IL_OK);
    T_EQ(T_IS(t_cache_get(s, "k"), IL_HIT)->out.remaining_ms, 20000 - 3 * 4999);
}

T_TEST(the_others_wait)
{
    uint64_t token = T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 5000), IL_LEAD)->out.fence;

    t_pass(s, 2000);
    const il_op *ops[] = { t_cache_lookup(s, "k", "b"), t_cache_get(s, "k"),
                           t_cache_lookup(s, "k", "b", .fence = token) };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_SHOWS(ops[i], IL_WAIT, NULL);
        T_EQU(ops[i]->out.fence, token);
        T_EQ(ops[i]->out.remaining_ms, 3000);
        T_EQ(ops[i]->out.flags, 0);
    }
}

/* One rebuild, and all get its value. */
T_TEST(one_builds_for_all)
{
    il_op ops[50];
    char  names[50][8];

    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        ops[i] = t_cache_op(IL_OP_CACHE_LOOKUP, "k", names[i], 0, NULL, T_CACHE_ARGS());
    }
    t_batch(s, ops, ARRAY_LEN(ops));
    uint64_t token = ops[0].out.fence;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        T_EQ(ops[i].status, i == 0 ? IL_LEAD : IL_WAIT);
    (void)T_IS(t_cache_fill(s, "k", names[0], token, "value"), IL_OK);
    t_batch(s, ops, ARRAY_LEN(ops));
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_SHOWS(&ops[i], IL_HIT, "value");
        il_op_release(&ops[i]);
    }
}

T_TEST(the_next_takes_over_from_a_dead_leader)
{
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 5000), IL_LEAD)->out.fence;

    t_pass(s, 4999);
    T_EQ(T_IS(t_cache_lookup(s, "k", "b"), IL_WAIT)->out.remaining_ms, 1);
    t_pass(s, 1);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
    const il_op *op = T_IS(t_cache_lookup(s, "k", "b", .fence = a), IL_LEAD);
    T_LESS(a, op->out.fence);
    T_EQ(op->out.flags, 0);
    (void)T_IS(t_cache_lookup(s, "k", "a"), IL_WAIT); /* a newcomer like any other */
    (void)T_IS(t_cache_fill(s, "k", "a", a, "late"), IL_STALE);
}

T_TEST(a_dead_leader_leads_anew)
{
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 1000), IL_LEAD)->out.fence;

    t_pass(s, 1000);
    const il_op *op = T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 1000), IL_LEAD);
    T_LESS(a, op->out.fence);
    T_EQ(op->out.flags, 0);
}

/* ---- fresh, stale, gone ---------------------------------------------------------------------- */

T_TEST(a_fresh_value_is_a_hit)
{
    uint64_t token = T_IS(t_cache_lookup(s, "k", "a"), IL_LEAD)->out.fence;

    t_pass(s, 1000); /* building takes a second */
    T_EQ(T_IS(t_cache_fill(s, "k", "a", token, "v", .ttl_ms = 5000), IL_OK)->out.remaining_ms,
         4000);
    t_pass(s, 3999);
    const il_op *ops[] = { t_cache_lookup(s, "k", "b"), t_cache_lookup(s, "k", "a"),
                           t_cache_get(s, "k") };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_SHOWS(ops[i], IL_HIT, "v");
        T_EQU(ops[i]->out.fence, token);
        T_EQ(ops[i]->out.flags, 0);
        T_EQ(ops[i]->out.age_ms, 4999);
        T_EQ(ops[i]->out.remaining_ms, 1);
    }
    t_pass(s, 1);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND); /* without grace */
    (void)T_SHOWS(t_cache_lookup(s, "k", "b"), IL_LEAD, NULL);
}

T_TEST(a_stale_value_within_its_grace)
{
    uint64_t token = t_cache_put(s, "k", "v", .ttl_ms = 5000, .grace_ms = 3000);

    t_pass(s, 5000);
    const il_op *get = T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "v");
    T_EQU(get->out.fence, 0); /* nobody builds */
    T_EQ(get->out.remaining_ms, 3000);
    T_EQ(get->out.age_ms, 5000);
    /* One leads, and may use it; */
    const il_op *lead = T_SHOWS(t_cache_lookup(s, "k", "a"), IL_LEAD, "v");
    T_LESS(token, lead->out.fence);
    T_EQ(lead->out.flags, 0);
    T_EQ(lead->out.age_ms, 5000);
    T_EQ(lead->out.remaining_ms, IL_TTL_MS_DEFAULT);
    T_EQ(T_SHOWS(t_cache_lookup(s, "k", "a"), IL_LEAD, "v")->out.flags, IL_OUT_RENEWED);
    /* the others do not wait. */
    t_pass(s, 2999);
    const il_op *ops[] = { t_cache_lookup(s, "k", "b"), t_cache_get(s, "k") };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_SHOWS(ops[i], IL_STALE_HIT, "v");
        T_EQU(ops[i]->out.fence, lead->out.fence);
        T_EQ(ops[i]->out.remaining_ms, 1);
        T_EQ(ops[i]->out.age_ms, 7999);
    }
    t_pass(s, 1);
    (void)T_SHOWS(t_cache_lookup(s, "k", "b"), IL_WAIT, NULL);
    (void)T_SHOWS(t_cache_get(s, "k"), IL_WAIT, NULL);
    (void)T_SHOWS(t_cache_lookup(s, "k", "a"), IL_LEAD, NULL);
}

T_TEST(fresh_while_somebody_builds)
{
    uint64_t token = t_cache_put(s, "k", "v", .ttl_ms = 1000);

    t_pass(s, 990);
    (void)T_IS(t_cache_lookup(s, "k", "a", .chance = 1), IL_LEAD); /* earlier than anybody else */
    /* one is enough */
    const il_op *op = T_SHOWS(t_cache_lookup(s, "k", "b", .chance = 1), IL_HIT, "v");
    T_EQU(op->out.fence, token);
    T_EQ(op->out.flags, 0);
    T_EQ(T_SHOWS(t_cache_get(s, "k", .chance = 1), IL_HIT, "v")->out.flags, 0);
}

T_TEST(what_was_waited_for_is_taken_however_old)
{
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a"), IL_LEAD)->out.fence;

    T_EQU(T_IS(t_cache_lookup(s, "k", "b"), IL_WAIT)->out.fence, a);
    t_pass(s, 2000); /* longer than the value will live */
    T_EQ(T_IS(t_cache_fill(s, "k", "a", a, "v", .ttl_ms = 1), IL_OK)->out.remaining_ms, 0);
    t_pass(s, 1000);
    (void)T_IS(t_sweep(s), IL_OK);
    const il_op *ops[] = { t_cache_lookup(s, "k", "b", .fence = a),
                           t_cache_get(s, "k", .fence = a) };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        (void)T_SHOWS(ops[i], IL_HIT, "v");
        T_EQU(ops[i]->out.fence, a);
        T_EQ(ops[i]->out.remaining_ms, 0);
        T_EQ(ops[i]->out.age_ms, 3000);
    }
    (void)T_IS(t_cache_get(s, "k", .fence = a + 1), IL_NOT_FOUND); /* waited for a later one */
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);                 /* did not wait */
    t_pass(s, 58999);
    (void)T_IS(t_cache_get(s, "k", .fence = a), IL_HIT);
    t_pass(s, 1); /* a minute after the fill */
    (void)T_IS(t_cache_get(s, "k", .fence = a), IL_NOT_FOUND);
    (void)T_IS(t_cache_lookup(s, "k", "b", .fence = a), IL_LEAD);
}

/* The first build was given up; a later one is at least as good. */
T_TEST(a_later_build_is_what_was_waited_for)
{
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a"), IL_LEAD)->out.fence;

    (void)T_IS(t_cache_abandon(s, "k", "a", a), IL_OK);
    uint64_t c = T_IS(t_cache_lookup(s, "k", "c"), IL_LEAD)->out.fence;
    T_EQU(T_IS(t_cache_lookup(s, "k", "b", .fence = a), IL_WAIT)->out.fence, c);
    (void)T_IS(t_cache_fill(s, "k", "c", c, "v", .ttl_ms = 1), IL_OK);
    t_pass(s, 10);
    (void)T_SHOWS(t_cache_lookup(s, "k", "b", .fence = a), IL_HIT, "v");
}

T_TEST(negative_values)
{
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a"), IL_LEAD)->out.fence;

    (void)T_IS(t_cache_fill(s, "k", "a", a, "no such day", .ttl_ms = 1000, .grace_ms = 1000,
                            .flags = IL_CACHE_NEGATIVE, .code = 404),
               IL_OK);
    const il_op *op = T_SHOWS(t_cache_lookup(s, "k", "b"), IL_HIT, "no such day");
    T_EQ(op->out.flags, IL_OUT_NEGATIVE);
    T_EQ(op->out.code, 404);
    t_pass(s, 990);
    T_EQ(T_IS(t_cache_lookup(s, "k", "b", .chance = 1), IL_LEAD)->out.flags,
         IL_OUT_NEGATIVE | IL_OUT_EARLY);
    t_pass(s, 10);
    op = T_SHOWS(t_cache_get(s, "k"), IL_STALE_HIT, "no such day");
    T_EQ(op->out.flags, IL_OUT_NEGATIVE);
    T_EQ(op->out.code, 404);
}

/* ---- early refresh --------------------------------------------------------------------------- */

T_TEST(early_refresh)
{
    static const uint32_t chances[] = {
        1, 1000, 1 << 20, UINT32_MAX / 3, UINT32_MAX / 2, UINT32_MAX
    };
    uint64_t first = T_IS(t_cache_lookup(s, "k", "a"), IL_LEAD)->out.fence;

    t_pass(s, 2000); /* that is what a build takes */
    (void)T_IS(t_cache_fill(s, "k", "a", first, "v", .ttl_ms = 62000), IL_OK);
    for (int64_t left_ms = 60000; left_ms > 0; left_ms -= 500) {
        (void)T_SHOWS(t_cache_lookup(s, "k", "b"), IL_HIT, "v"); /* no chance: never */
        for (size_t i = 0; i < ARRAY_LEN(chances); i++) {
            bool         early = il__cache_is_early(left_ms, 2000, chances[i]);
            const il_op *op    = T_SHOWS(t_cache_get(s, "k", .chance = chances[i]), IL_HIT, "v");
            T_EQ(op->out.remaining_ms, left_ms);
            T_EQ(op->out.flags, early ? IL_OUT_EARLY : 0);
            op = T_SHOWS(t_cache_lookup(s, "k", "b", .chance = chances[i]),
                         early ? IL_LEAD : IL_HIT, "v");
            T_EQ(op->out.flags, early ? IL_OUT_EARLY : 0);
            if (!early)
                continue;
            T_LESS(first, op->out.fence);
            T_EQ(op->out.remaining_ms, IL_TTL_MS_DEFAULT);
            T_EQ(op->out.age_ms, 62000 - left_ms);
            uint64_t token = op->out.fence;
            op             = T_SHOWS(t_cache_lookup(s, "k", "b"), IL_LEAD, "v");
            T_EQ(op->out.flags, IL_OUT_EARLY | IL_OUT_RENEWED);
            (void)T_IS(t_cache_abandon(s, "k", "b", token), IL_OK);
        }
        t_pass(s, 500);
    }
}

/* ---- clocks ---------------------------------------------------------------------------------- */

T_TEST(values_live_on_the_wall_clock)
{
    (void)t_cache_put(s, "k", "v", .ttl_ms = 10000, .grace_ms = 10000);
    t_clock_set_wall(&s->clock, 10000);
    (void)T_IS(t_cache_get(s, "k"), IL_STALE_HIT);
    t_clock_set_wall(&s->clock, -DAY_MS);
    const il_op *op = T_IS(t_cache_get(s, "k"), IL_HIT);
    T_EQ(op->out.age_ms, 0); /* never below */
    T_EQ(op->out.remaining_ms, DAY_MS);
    t_clock_set_wall(&s->clock, DAY_MS + 10000);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
}

T_TEST(builds_live_in_lease_time)
{
    static const int64_t steps[] = { 400 * DAY_MS, -800 * DAY_MS, DAY_MS, -1 };
    uint64_t token = T_IS(t_cache_lookup(s, "k", "a", .lease_ms = 10000), IL_LEAD)->out.fence;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        t_clock_set_wall(&s->clock, steps[i]);
        t_pass(s, 1000);
        (void)t_sweep_all(s, 0);
        T_EQ(T_IS(t_cache_lookup(s, "k", "b"), IL_WAIT)->out.remaining_ms,
             10000 - 1000 * (int64_t)(i + 1));
    }
    t_clock_set_wall(&s->clock, 500 * DAY_MS);
    /* It began long ago, on the wall: whoever waited gets it all the same. */
    (void)T_IS(t_cache_fill(s, "k", "a", token, "v"), IL_OK);
    (void)T_IS(t_cache_lookup(s, "k", "b"), IL_LEAD);
    (void)T_SHOWS(t_cache_lookup(s, "k", "c", .fence = token), IL_HIT, "v");
}

T_TEST(tenants_and_namespaces_are_apart)
{
    uint64_t a = T_IS(t_cache_lookup(s, "k", "a", .tenant = "one"), IL_LEAD)->out.fence;

    (void)T_IS(t_cache_lookup(s, "k", "b", .tenant = "two"), IL_LEAD);
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v", .tenant = "two"), IL_STALE);
    (void)T_IS(t_cache_fill(s, "k", "a", a, "v", .tenant = "one"), IL_OK);
    (void)T_IS(t_cache_drop(s, "k", .tenant = "two"), IL_OK);
    (void)T_SHOWS(t_cache_get(s, "k", .tenant = "one"), IL_HIT, "v");
    (void)T_IS(t_cache_get(s, "k", .tenant = "two"), IL_NOT_FOUND);
    (void)T_IS(t_cache_get(s, "k"), IL_NOT_FOUND);
    (void)T_IS(t_acquire(s, "k", "a", .tenant = "one"), IL_OK); /* locks are elsewhere */
}

T_TEST(survives_a_close)
{
    T_NEEDS(s, durable);
    uint64_t v = t_cache_put(s, "v", "value", .grace_ms = 1000);
    uint64_t b = T_IS(t_cache_lookup(s, "b", "x", .lease_ms = 5000), IL_LEAD)->out.fence;

    t_store_reopen(s);
    T_EQU(T_SHOWS(t_cache_get(s, "v"), IL_HIT, "value")->out.fence, v);
    T_EQU(T_IS(t_cache_lookup(s, "b", "y"), IL_WAIT)->out.fence, b);
    (void)T_IS(t_cache_fill(s, "b", "x", b, "built"), IL_OK);
    t_store_reopen(s);
    (void)T_SHOWS(t_cache_get(s, "b"), IL_HIT, "built");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(the_first_leads),
        T_ROW(the_leader_renews),
        T_ROW(the_others_wait),
        T_ROW(one_builds_for_all),
        T_ROW(the_next_takes_over_from_a_dead_leader),
        T_ROW(a_dead_leader_leads_anew),
        T_ROW(a_fresh_value_is_a_hit),
        T_ROW(a_stale_value_within_its_grace),
        T_ROW(fresh_while_somebody_builds),
        T_ROW(what_was_waited_for_is_taken_however_old),
        T_ROW(a_later_build_is_what_was_waited_for),
        T_ROW(negative_values),
        T_ROW(early_refresh),
        T_ROW(values_live_on_the_wall_clock),
        T_ROW(builds_live_in_lease_time),
        T_ROW(tenants_and_namespaces_are_apart),
        T_ROW(survives_a_close),
    };

    return T_SUITE("cache_lookup", tests);
}
