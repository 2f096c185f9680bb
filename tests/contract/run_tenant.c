/*
 * run_tenant.c: il_run_opts.tenant: a run of another tenant than the handle's, on the machine's own
 * clock. Renewals, stages, logs, the end, a cancel and an undone start affect that tenant, and no
 * other tenant's run with the same id and key.
 */
#include <stdio.h>

#include "harness/event.h"
#include "harness/suite.h"

#define LIMIT_MS 15000
#define OTHER "other"

struct told {
    struct t_event renewed, lost, cancelled;
    char           reason[256];
};

static void
on_renewed(void *cookie, il_run *run UNUSED, int64_t deadline_ns UNUSED)
{
    struct told *t = cookie;

    t_event_add(&t->renewed);
}

static void
on_lost(void *cookie, il_run *run UNUSED, const char *why UNUSED)
{
    struct told *t = cookie;

    t_event_add(&t->lost);
}

static void
on_cancel(void *cookie, il_run *run UNUSED, const char *reason)
{
    struct told *t = cookie;

    (void)snprintf(t->reason, sizeof t->reason, "%s", reason);
    t_event_add(&t->cancelled);
}

static void
told_init(struct told *t)
{
    t_event_init(&t->renewed);
    t_event_init(&t->lost);
    t_event_init(&t->cancelled);
}

static void
told_release(struct told *t)
{
    t_event_release(&t->renewed);
    t_event_release(&t->lost);
    t_event_release(&t->cancelled);
}

static il_run *
start(il *h, const char *tenant, const char *id, int64_t ttl_ms, struct told *t)
{
    il_run_opts o   = IL_RUN_OPTS_INIT;
    il_run     *run = NULL;
    il_error    err = { 0 };

    o.id     = id;
    o.tenant = tenant;
    o.holder = tenant != NULL ? "h of other" : "h";
    o.ttl_ms = ttl_ms;
    if (t != NULL) {
        o.on_renewed = on_renewed;
        o.on_lost    = on_lost;
        o.on_cancel  = on_cancel;
        o.cookie     = t;
    }
    if (il_run_start(h, "k", &o, &run, NULL, &err) != IL_OK)
        T_FAIL("il_run_start: %s: %s", il_status_name(err.status), err.message);
    return run;
}

/* The run of this tenant; the caller releases the op. */
static il_status
look(il *h, const char *tenant, const char *id, il_op *op)
{
    *op           = (il_op){ .type = IL_OP_RUN_GET, .tenant = tenant };
    op->in.run.id = id;
    T_EQ(il_apply(h, op, 1, NULL), IL_OK);
    return op->status;
}

static void
finish(il_run *run)
{
    il_error err = { 0 };

    if (il_run_finish(run, IL_RUN_COMPLETED, NULL, &err) != IL_OK)
        T_FAIL("il_run_finish: %s: %s", il_status_name(err.status), err.message);
    il_run_free(run);
}

/* Both tenants have a run r of a key k, at the same time. */
T_TEST(run_tenant)
{
    il         *h = t_store_open_real(s);
    struct told t;
    il_op       op;
    il_error    err;

    told_init(&t);
    il_run *theirs = start(h, OTHER, "r", 1500, &t);
    T_EQ(look(h, NULL, "r", &op), IL_NOT_FOUND);
    il_op_release(&op);
    il_run *ours = start(h, NULL, "r", 30000, NULL);
    T_TRUE(il_lease_fence(il_run_lease(ours)) != il_lease_fence(il_run_lease(theirs)));
    /* Output, with a repetition that has more of it. */
    T_EQ(il_run_stage(theirs, "first", 10, "abc", 3, &err), IL_OK);
    T_EQ(il_run_stage(theirs, "second", 20, "def", 3, &err), IL_OK);
    T_EQ(il_run_stage(ours, "our own", 30, "x", 1, &err), IL_OK);
    T_EQ(look(h, OTHER, "r", &op), IL_OK);
    T_STREQ(op.out.runs->tenant, OTHER);
    T_STREQ(op.out.runs->stage, "second");
    T_STREQ(op.out.runs->holder, "h of other");
    T_EQU(op.out.runs->log_bytes, 6);
    il_op_release(&op);
    /* It lives longer than its TTL. */
    T_WAIT(&t.renewed, 4, LIMIT_MS);
    T_EQ(il_lease_status(il_run_lease(theirs)), IL_OK);
    finish(theirs);
    T_EQ(look(h, OTHER, "r", &op), IL_OK);
    T_EQ(op.out.runs->state, IL_RUN_COMPLETED);
    il_op_release(&op);
    T_EQ(look(h, NULL, "r", &op), IL_OK);
    T_EQ(op.out.runs->state, IL_RUN_RUNNING);
    T_EQU(op.out.runs->log_bytes, 1);
    il_op_release(&op);
    finish(ours);
    T_EQ(t_event_count(&t.lost), 0);
    T_EQ(t_event_count(&t.cancelled), 0);
    told_release(&t);
    il_close(h);
}

/* A cancel of the tenant's run is told at once; one of another tenant's run of the same id is
 * not. */
T_TEST(a_cancel_reaches_the_run_of_its_tenant)
{
    il         *h = t_store_open_real(s);
    struct told theirs, ours;
    il_op       op = { .type = IL_OP_RUN_CANCEL, .tenant = OTHER };

    told_init(&theirs);
    told_init(&ours);
    il_run *a       = start(h, OTHER, "r", 30000, &theirs);
    il_run *b       = start(h, NULL, "r", 30000, &ours);
    op.in.run.id    = "r";
    op.in.run.error = "enough";
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    T_WAIT(&theirs.cancelled, 1, LIMIT_MS);
    T_STREQ(theirs.reason, "enough");
    T_WAIT(&ours.renewed, 1, LIMIT_MS); /* all leases were renewed, to see whose it was */
    T_EQ(t_event_count(&ours.cancelled), 0);
    finish(a);
    finish(b);
    told_release(&theirs);
    told_release(&ours);
    il_close(h);
}

/* A start that gives up takes back its own run, not the one of the same id that another tenant
 * has. */
T_TEST(what_is_withdrawn_is_the_tenants)
{
    il         *h    = t_store_open_real(s);
    il_run     *hers = start(h, OTHER, "first", 30000, NULL);
    il_run     *ours = start(h, NULL, "second", 30000, NULL);
    il_run     *run  = NULL;
    il_run_opts o    = IL_RUN_OPTS_INIT;
    il_op       op;
    il_error    err = { 0 };

    o.id      = "second";
    o.tenant  = OTHER;
    o.policy  = IL_POLICY_QUEUE;
    o.wait_ms = 50;
    T_EQ(il_run_start(h, "k", &o, &run, &op, &err), IL_HELD);
    T_HAS(err.message, "timed out while waiting");
    il_op_release(&op);
    T_EQ(look(h, OTHER, "second", &op), IL_OK);
    T_EQ(op.out.runs->state, IL_RUN_CANCELLED);
    il_op_release(&op);
    T_EQ(look(h, NULL, "second", &op), IL_OK);
    T_EQ(op.out.runs->state, IL_RUN_RUNNING);
    il_op_release(&op);
    /* One whose lease is broken is lost, also as another tenant's. */
    op       = (il_op){ .type = IL_OP_BREAK, .flags = IL_BREAK_NOW, .tenant = OTHER, .key = "k" };
    op.fence = il_lease_fence(il_run_lease(hers));
    op.in.lock.reason = "test";
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    T_EQ(il_run_stage(hers, "late", -1, NULL, 0, &err), IL_STALE);
    T_EQ(il_run_finish(hers, IL_RUN_COMPLETED, NULL, &err), IL_STALE);
    il_run_free(hers);
    finish(ours);
    il_close(h);
}

T_TEST(a_tenant_that_is_none)
{
    il         *h   = t_store_open_real(s);
    il_run     *run = NULL;
    il_run_opts o   = IL_RUN_OPTS_INIT;
    il_error    err = { 0 };

    o.tenant = "";
    T_EQ(il_run_start(h, "k", &o, &run, NULL, &err), IL_INVAL);
    T_HAS(err.message, "tenant");
    o.tenant = "a\nb";
    T_EQ(il_run_start(h, "k", &o, &run, NULL, &err), IL_INVAL);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(run_tenant),
        T_ROW(a_cancel_reaches_the_run_of_its_tenant),
        T_ROW(what_is_withdrawn_is_the_tenants),
        T_ROW(a_tenant_that_is_none),
    };

    return T_SUITE("run_tenant", tests);
}
