/*
 * scenario_cache.c: cached values under faults: one caller leads, and a value is complete or
 * missing.
 */
#include "fault/scenario_internal.h"

static il_op
cache_op(il_op_type type, const char *key, const char *holder, uint64_t token)
{
    il_op op = { .type = type, .key = key, .holder = holder, .fence = token };

    if (type == IL_OP_CACHE_LOOKUP)
        op.in.cache.lease_ms = 5000;
    if (type == IL_OP_CACHE_FILL)
        op.in.cache =
            (il_cache_in){ .value = "value", .value_bytes = 5, .ttl_ms = 10000, .grace_ms = 10000 };
    return op;
}

static void
expect_value(struct scenario *s, il_op_type type, const char *key, il_status status)
{
    il_op done = scenario_apply(s, cache_op(type, key, "x", 0), status, status);

    T_EQU(done.out.value_bytes, 5);
    T_STREQ(done.out.value, "value");
    il_op_release(&done);
}

/* The library's own: whatever a failed lookup leaves behind, the next one leads. */
static void
play_build(struct scenario *s)
{
    il_cache_opts opts  = IL_CACHE_OPTS_INIT;
    il_build     *build = NULL;
    il_error      err   = { 0 };
    il_op         op    = { 0 };

    opts.lease_ms = 5000;
    opts.wait_ms  = 1;
    il_status st  = il_cache_lookup(s->h, "held", &opts, &build, &op, &err);
    il_op_release(&op);
    if (scenario_failed(s, st == IL_LEAD ? IL_OK : st, IL_OK)) {
        T_TRUE(build == NULL);
        t_clock_step(s->test_clock, 5000);
        st = il_cache_lookup(s->h, "held", &opts, &build, &op, &err);
        il_op_release(&op);
    }
    if (st != IL_LEAD)
        T_FAIL("%s: il_cache_lookup: %s: %s", s->what, il_status_name(st), err.message);
    if (scenario_failed(s, il_build_fill(build, "value", 5, 10000, 0, 0, 0, &err), IL_OK))
        T_EQ(il_build_fill(build, "value", 5, 10000, 0, 0, 0, &err), IL_OK);
    il_build_free(build);
    expect_value(s, IL_OP_CACHE_GET, "held", IL_HIT);
}

void
scenario_cache(struct scenario *s)
{
    uint64_t a    = scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "a", 0), IL_LEAD, IL_LEAD);
    il_op    drop = cache_op(IL_OP_CACHE_DROP, "v", NULL, 0);

    T_EQU(scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "a", 0), IL_LEAD, IL_LEAD), a);
    (void)scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "b", 0), IL_WAIT, IL_WAIT);
    (void)scenario_step(s, cache_op(IL_OP_CACHE_FILL, "v", "a", a), IL_OK, IL_OK);
    expect_value(s, IL_OP_CACHE_LOOKUP, "v", IL_HIT);
    drop.flags = IL_DROP_STALE;
    (void)scenario_step(s, drop, IL_OK, IL_OK);
    uint64_t b = scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "b", 0), IL_LEAD, IL_LEAD);
    T_LESS(a, b);
    expect_value(s, IL_OP_CACHE_LOOKUP, "v", IL_STALE_HIT);
    (void)scenario_step(s, cache_op(IL_OP_CACHE_ABANDON, "v", "b", b), IL_OK, IL_OK);
    b          = scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "b", 0), IL_LEAD, IL_LEAD);
    drop.flags = 0;
    (void)scenario_step(s, drop, IL_OK, IL_OK);
    (void)scenario_step(s, cache_op(IL_OP_CACHE_FILL, "v", "b", b), IL_STALE, IL_STALE);
    (void)scenario_step(s, cache_op(IL_OP_CACHE_GET, "v", NULL, 0), IL_NOT_FOUND, IL_NOT_FOUND);
    a = scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "a", 0), IL_LEAD, IL_LEAD);
    t_clock_step(s->test_clock, 5000);
    T_LESS(a, scenario_step(s, cache_op(IL_OP_CACHE_LOOKUP, "v", "b", 0), IL_LEAD, IL_LEAD));
    (void)scenario_step(s, cache_op(IL_OP_CACHE_FILL, "v", "a", a), IL_STALE, IL_STALE);
    (void)scenario_step(s, (il_op){ .type = IL_OP_CACHE_STATS }, IL_OK, IL_OK);
    (void)scenario_step(s, (il_op){ .type = IL_OP_USAGE }, IL_OK, IL_OK);
    play_build(s);
}
