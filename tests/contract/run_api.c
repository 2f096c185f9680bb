/*
 * run_api.c: il_run_start() and the run it returns, on the machine's own clock: policies, waiting,
 * cancelling, losing, and waiting for the end of a run.
 */
#include <inttypes.h>
#include <stdio.h>

#include "harness/event.h"
#include "harness/suite.h"

#define LIMIT_MS 15000 /* for what should take milliseconds, on a machine that may be busy */
#define SOON_MS 4000   /* sooner than the 5 s after which a sleeper looks by itself: it was woken */

/* What the callbacks said. */
struct told {
    struct t_event renewed, lost, cancelled;
    char           why[256];
    char           reason[256];
};

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

static void
on_renewed(void *cookie, il_run *run UNUSED, int64_t deadline_ns UNUSED)
{
    struct told *t = cookie;

    t_event_add(&t->renewed);
}

static void
on_lost(void *cookie, il_run *run UNUSED, const char *why)
{
    struct told *t = cookie;

    (void)snprintf(t->why, sizeof t->why, "%s", why);
    t_event_add(&t->lost);
}

static void
on_cancel(void *cookie, il_run *run UNUSED, const char *reason)
{
    struct told *t = cookie;

    (void)snprintf(t->reason, sizeof t->reason, "%s", reason);
    t_event_add(&t->cancelled);
}

static il_run_opts
opts_of(struct told *t, il_policy policy, int64_t ttl_ms)
{
    il_run_opts o = IL_RUN_OPTS_INIT;

    o.policy = policy;
    o.ttl_ms = ttl_ms;
    if (t != NULL) {
        o.on_renewed = on_renewed;
        o.on_lost    = on_lost;
        o.on_cancel  = on_cancel;
        o.cookie     = t;
    }
    return o;
}

static il_run *
start(il *h, const char *key, const il_run_opts *o)
{
    il_run  *run = NULL;
    il_error err = { 0 };

    if (il_run_start(h, key, o, &run, NULL, &err) != IL_OK)
        T_FAIL("il_run_start '%s': %s: %s", key, il_status_name(err.status), err.message);
    return run;
}

static void
finish(il_run *run, il_run_state state)
{
    il_error err = { 0 };

    if (il_run_finish(run, state, NULL, &err) != IL_OK)
        T_FAIL("il_run_finish: %s: %s", il_status_name(err.status), err.message);
    il_run_free(run);
}

/* The state of a run, and how it is explained (may be NULL). */
static il_run_state
state_of(il *h, const char *id, char error[256])
{
    il_op    op  = { 0 };
    il_error err = { 0 };

    if (il_run_get(h, id, &op, &err) != IL_OK)
        T_FAIL("il_run_get '%s': %s", id, err.message);
    T_EQ(op.out.n_runs, 1);
    il_run_state state = op.out.runs->state;
    if (error != NULL)
        (void)snprintf(error, 256, "%s", op.out.runs->error);
    il_op_release(&op);
    return state;
}

/* A start in a thread. */
struct caller {
    il             *h;
    il_run_opts     opts;
    char            id[37];
    pthread_t       thread;
    struct t_event *done;
    il_run         *run;
    il_status       status;
    il_error        err;
};

static void *
caller_main(void *arg)
{
    struct caller *c = arg;

    c->status = il_run_start(c->h, "k", &c->opts, &c->run, NULL, &c->err);
    t_event_add(c->done);
    return NULL;
}

static void
caller_start(struct caller *c, il *h, il_run_opts opts, struct t_event *done)
{
    *c = (struct caller){ .h = h, .opts = opts, .done = done };
    T_EQ(il_uuid(c->id), IL_OK);
    c->opts.id = c->id;
    CHECK(pthread_create(&c->thread, NULL, caller_main, c) == 0);
}

static void
caller_join(struct caller *c, il_status status)
{
    CHECK(pthread_join(c->thread, NULL) == 0);
    if (c->status != status)
        T_FAIL("%s, expected %s: %s", il_status_name(c->status), il_status_name(status),
               c->err.message);
}

/* Until the run waits for its turn; looking is the event, since a queue does not announce
 * itself. */
static void
until_pending(il *h, const char *id)
{
    int64_t until = t_real_ms() + LIMIT_MS;

    for (;;) {
        il_op op = { 0 };
        bool  pending =
            il_run_get(h, id, &op, NULL) == IL_OK && op.out.runs->state == IL_RUN_PENDING;
        il_op_release(&op);
        if (pending)
            return;
        if (t_real_ms() > until)
            T_FAIL("run %s does not wait", id);
    }
}

/* ---- one run --------------------------------------------------------------------------------- */

T_TEST(a_run_says_what_it_is)
{
    il         *h   = t_store_open_real(s);
    il_run_opts o   = opts_of(NULL, IL_POLICY_JOIN, 20000);
    il_op       op  = { 0 };
    il_error    err = { 0 };

    o.trigger   = "manual";
    o.by        = "somebody";
    o.meta      = "a note";
    il_run *run = start(h, "k", &o);
    T_EQ(strlen(il_run_id(run)), 36);
    T_STREQ(il_lease_key(il_run_lease(run)), "k");
    T_STREQ(il_lease_holder(il_run_lease(run)), il_run_id(run));
    T_EQ(il_lease_status(il_run_lease(run)), IL_OK);
    T_TRUE(il_lease_remaining_ms(il_run_lease(run)) > 9000);
    T_EQ(il_check_fence(h, "k", il_lease_fence(il_run_lease(run)), &err), IL_OK);
    T_EQ(il_run_stage(run, "load", 40, "hello\n", 6, &err), IL_OK);
    T_EQ(il_run_stage(run, NULL, -1, "world\n", 6, &err), IL_OK);

    T_EQ(il_run_get(h, il_run_id(run), &op, &err), IL_OK);
    const il_run_info *r = op.out.runs;
    T_EQ(r->state, IL_RUN_RUNNING);
    T_STREQ(r->key, "k");
    T_STREQ(r->trigger, "manual");
    T_STREQ(r->by, "somebody");
    T_STREQ(r->meta, "a note");
    T_STREQ(r->stage, "load");
    T_EQ(r->progress, 40);
    T_EQU(r->log_bytes, 12);
    T_EQU(r->fence, il_lease_fence(il_run_lease(run)));
    il_op_release(&op);

    T_EQ(il_run_finish(run, IL_RUN_COMPLETED, NULL, &err), IL_OK);
    T_EQ(il_run_finish(run, IL_RUN_COMPLETED, NULL, &err), IL_OK); /* repeated */
    T_EQ(il_lease_status(il_run_lease(run)), IL_NOT_HELD);
    T_EQ(il_run_stage(run, "too late", -1, NULL, 0, &err), IL_STALE);
    T_TRUE(strstr(err.message, il_run_id(run)) != NULL); /* the error names the run */
    T_EQ(state_of(h, il_run_id(run), NULL), IL_RUN_COMPLETED);
    il_run_free(run);
    il_close(h);
}

static void *
talk(void *run)
{
    for (unsigned i = 0; i < 25; i++)
        T_EQ(il_run_stage(run, NULL, -1, "one line\n", 9, NULL), IL_OK);
    return NULL;
}

/* Each output has its own place in the log, whoever comes first. */
T_TEST(several_threads_tell_the_output_of_a_run)
{
    il         *h   = t_store_open_real(s);
    il_run_opts o   = opts_of(NULL, IL_POLICY_JOIN, 20000);
    il_run     *run = start(h, "k", &o);
    pthread_t   threads[4];
    il_op       log = { .type = IL_OP_RUN_LOG };

    for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, talk, run) == 0);
    for (unsigned i = 0; i < ARRAY_LEN(threads); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    log.in.run.id = il_run_id(run);
    T_EQ(il_apply(h, &log, 1, NULL), IL_OK);
    T_EQU(log.out.value_bytes, 900);
    for (unsigned i = 0; i < 100; i++)
        T_TRUE(strncmp((const char *)log.out.value + 9 * i, "one line\n", 9) == 0);
    il_op_release(&log);
    finish(run, IL_RUN_COMPLETED);
    il_close(h);
}

T_TEST(the_lease_is_renewed)
{
    il         *h = t_store_open_real(s);
    struct told t = { 0 };

    told_init(&t);
    il_run_opts o        = opts_of(&t, IL_POLICY_JOIN, 1000);
    il_run     *run      = start(h, "k", &o);
    int64_t     deadline = il_lease_deadline_ns(il_run_lease(run));
    T_WAIT(&t.renewed, 4, LIMIT_MS);
    T_TRUE(il_lease_deadline_ns(il_run_lease(run)) > deadline);
    T_EQ(state_of(h, il_run_id(run), NULL), IL_RUN_RUNNING);
    T_EQ(t_event_count(&t.lost), 0);
    finish(run, IL_RUN_COMPLETED);
    il_close(h);
    told_release(&t);
}

/* The renewal of a TTL of 30 s is 10 s away: who learns it sooner was woken. */
T_TEST(a_cancel_is_told_at_once_and_once)
{
    il         *h     = t_store_open_real(s);
    il         *other = t_store_open_real(s);
    struct told t     = { 0 };
    char        error[256];

    told_init(&t);
    il_run_opts o   = opts_of(&t, IL_POLICY_JOIN, 30000);
    il_run     *run = start(h, "k", &o);
    T_EQ(il_run_cancel(other, il_run_id(run), "the day is over", NULL), IL_OK);
    T_WAIT(&t.cancelled, 1, SOON_MS);
    T_STREQ(t.reason, "the day is over");
    T_EQ(il_lease_status(il_run_lease(run)), IL_OK); /* asked to stop, not stopped */
    T_EQ(il_run_stage(run, "stopping", -1, NULL, 0, NULL), IL_OK);
    T_EQ(il_run_cancel(other, il_run_id(run), "another reason", NULL), IL_OK);
    T_EQ(il_run_finish(run, IL_RUN_FAILED, "stopped", NULL), IL_OK);
    /* a failure after a cancel is one */
    T_EQ(state_of(h, il_run_id(run), error), IL_RUN_CANCELLED);
    T_EQ(t_event_count(&t.cancelled), 1);
    T_EQ(t_event_count(&t.lost), 0);
    il_run_free(run);
    il_close(h);
    il_close(other);
    told_release(&t);
}

T_TEST(a_break_is_a_loss)
{
    il         *h     = t_store_open_real(s);
    il         *other = t_store_open_real(s);
    struct told t     = { 0 };
    il_error    err   = { 0 };

    told_init(&t);
    il_run_opts o   = opts_of(&t, IL_POLICY_JOIN, 30000);
    il_run     *run = start(h, "k", &o);
    T_EQ(il_break(other, "k", il_lease_fence(il_run_lease(run)), "it hangs", IL_BREAK_NOW, NULL),
         IL_OK);
    T_WAIT(&t.lost, 1, SOON_MS);
    T_EQ(il_lease_status(il_run_lease(run)), IL_LOST);
    T_EQ(il_run_finish(run, IL_RUN_COMPLETED, NULL, &err), IL_STALE);
    T_EQ(il_lease_status(il_run_lease(run)), IL_LOST);
    T_EQ(state_of(h, il_run_id(run), NULL), IL_RUN_CANCELLED);
    T_EQ(t_event_count(&t.lost), 1);
    il_run_free(run);
    il_close(h);
    il_close(other);
    told_release(&t);
}

/* ---- policies -------------------------------------------------------------------------------- */

T_TEST(a_second_start_joins_is_refused_or_skipped)
{
    il         *h     = t_store_open_real(s);
    il_run_opts o     = opts_of(NULL, IL_POLICY_JOIN, 20000);
    il_run     *first = start(h, "k", &o);
    il_run     *run   = NULL;
    il_op       op    = { 0 };
    il_error    err   = { 0 };

    T_EQ(il_run_start(h, "k", &o, &run, &op, &err), IL_DUPLICATE);
    T_EQ(op.out.n_runs, 1);
    T_STREQ(op.out.runs->id, il_run_id(first));
    T_STREQ(op.key, "k");
    T_TRUE(strstr(err.message, il_run_id(first)) != NULL);
    il_op_release(&op);
    o.policy = IL_POLICY_SKIP;
    T_EQ(il_run_start(h, "k", &o, &run, &op, &err), IL_DUPLICATE);
    T_TRUE((op.out.flags & IL_OUT_SKIPPED) != 0);
    il_op_release(&op);
    o.policy = IL_POLICY_REJECT;
    T_EQ(il_run_start(h, "k", &o, &run, NULL, &err), IL_HELD);
    T_STREQ(err.holder, il_run_id(first));
    T_TRUE(run == NULL);
    finish(first, IL_RUN_COMPLETED);
    finish(start(h, "k", &o), IL_RUN_COMPLETED); /* the key is free again */
    il_close(h);
}

T_TEST(a_queued_start_is_granted_when_the_first_ends)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    il_run_opts o     = opts_of(NULL, IL_POLICY_QUEUE, 20000);
    il_run     *first = start(h, "k", &o);
    caller_start(&c, g, o, &done);
    until_pending(h, c.id);
    T_EQ(t_event_count(&done), 0);
    finish(first, IL_RUN_FAILED);
    T_WAIT(&done, 1, SOON_MS);
    caller_join(&c, IL_OK);
    T_STREQ(il_run_id(c.run), c.id);
    T_EQ(state_of(h, c.id, NULL), IL_RUN_RUNNING);
    finish(c.run, IL_RUN_COMPLETED);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(a_wait_that_runs_out_leaves_nothing)
{
    il            *h = t_store_open_real(s);
    struct t_event done;
    struct caller  c;
    char           error[256];

    t_event_init(&done);
    il_run_opts o     = opts_of(NULL, IL_POLICY_QUEUE, 20000);
    il_run     *first = start(h, "k", &o);
    o.wait_ms         = 300;
    int64_t began     = t_real_ms();
    caller_start(&c, h, o, &done);
    T_WAIT(&done, 1, LIMIT_MS);
    T_TRUE(t_real_ms() - began >= 300);
    caller_join(&c, IL_HELD);
    T_TRUE(c.run == NULL);
    T_EQ(state_of(h, c.id, error), IL_RUN_CANCELLED);
    T_STREQ(error, "timed out while waiting");
    finish(first, IL_RUN_COMPLETED);
    il_close(h);
    t_event_release(&done);
}

T_TEST(a_pending_run_is_cancelled)
{
    il            *h = t_store_open_real(s);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    il_run_opts o     = opts_of(NULL, IL_POLICY_QUEUE, 20000);
    il_run     *first = start(h, "k", &o);
    caller_start(&c, h, o, &done);
    until_pending(h, c.id);
    T_EQ(il_run_cancel(h, c.id, "not needed any more", NULL), IL_OK);
    T_WAIT(&done, 1, SOON_MS);
    caller_join(&c, IL_CANCELLED);
    T_TRUE(strstr(c.err.message, "not needed any more") != NULL);
    finish(first, IL_RUN_COMPLETED);
    il_close(h);
    t_event_release(&done);
}

T_TEST(an_interrupted_start_is_withdrawn)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    struct t_event done;
    struct caller  c;

    t_event_init(&done);
    il_run_opts o     = opts_of(NULL, IL_POLICY_QUEUE, 20000);
    il_run     *first = start(h, "k", &o);
    caller_start(&c, g, o, &done);
    until_pending(h, c.id);
    il_interrupt(g);
    T_WAIT(&done, 1, LIMIT_MS);
    caller_join(&c, IL_CANCELLED);
    T_EQ(state_of(h, c.id, NULL), IL_RUN_CANCELLED);
    finish(first, IL_RUN_COMPLETED);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(the_running_one_is_asked_to_stop)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    struct t_event done;
    struct told    t = { 0 };
    struct caller  c;

    t_event_init(&done);
    told_init(&t);
    il_run_opts o     = opts_of(&t, IL_POLICY_JOIN, 30000);
    il_run     *first = start(h, "k", &o);
    caller_start(&c, g, opts_of(NULL, IL_POLICY_CANCEL_RUNNING, 30000), &done);
    T_WAIT(&t.cancelled, 1, SOON_MS);
    T_TRUE(strstr(t.reason, c.id) != NULL); /* replaced by run ID */
    T_EQ(t_event_count(&done), 0);          /* it waits until the first one has stopped */
    finish(first, IL_RUN_CANCELLED);
    T_WAIT(&done, 1, SOON_MS);
    caller_join(&c, IL_OK);
    finish(c.run, IL_RUN_COMPLETED);
    il_close(h);
    il_close(g);
    told_release(&t);
    t_event_release(&done);
}

/* ---- waiting for its end --------------------------------------------------------------------- */

struct onlooker {
    il             *h;
    const char     *id;
    pthread_t       thread;
    struct t_event *done;
    il_status       status;
    il_run_state    state;
};

static void *
onlooker_main(void *arg)
{
    struct onlooker *o  = arg;
    il_op            op = { 0 };

    o->status = il_run_wait(o->h, o->id, LIMIT_MS, &op, NULL);
    if (op.out.n_runs > 0)
        o->state = op.out.runs->state;
    il_op_release(&op);
    t_event_add(o->done);
    return NULL;
}

T_TEST(who_waits_for_a_run_is_told_its_end)
{
    il             *h    = t_store_open_real(s);
    il             *g    = t_store_open_real(s);
    il_run_opts     o    = opts_of(NULL, IL_POLICY_JOIN, 30000);
    il_run         *run  = start(h, "k", &o);
    struct onlooker look = { .h = g, .id = il_run_id(run) };
    struct t_event  done;
    il_op           op  = { 0 };
    il_error        err = { 0 };

    t_event_init(&done);
    look.done = &done;
    T_EQ(il_run_wait(g, il_run_id(run), 50, &op, &err), IL_TIMEOUT);
    T_EQ(op.out.runs->state, IL_RUN_RUNNING); /* as it was seen last */
    il_op_release(&op);
    T_EQ(il_run_wait(g, "no-such-run", 50, &op, &err), IL_NOT_FOUND);
    T_TRUE(strstr(err.message, "no-such-run") != NULL);
    il_op_release(&op);
    CHECK(pthread_create(&look.thread, NULL, onlooker_main, &look) == 0);
    T_EQ(il_run_finish(run, IL_RUN_TIMEOUT, "too slow", NULL), IL_OK);
    T_WAIT(&done, 1, SOON_MS);
    CHECK(pthread_join(look.thread, NULL) == 0);
    T_EQ(look.status, IL_OK);
    T_EQ(look.state, IL_RUN_TIMEOUT);
    il_run_free(run);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(who_reads_a_log_can_wait_for_more)
{
    il         *h   = t_store_open_real(s);
    il         *g   = t_store_open_real(s);
    il_run_opts o   = opts_of(NULL, IL_POLICY_JOIN, 30000);
    il_run     *run = start(h, "k", &o);
    il_op       op  = { .type = IL_OP_RUN_LOG };

    op.in.run.id = il_run_id(run);
    T_EQ(il_apply(g, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    T_EQ(op.out.value_bytes, 0);
    t_quiet(g, &op);
    int64_t began = t_real_ms();
    T_EQ(il_run_stage(run, NULL, -1, "a line\n", 7, NULL), IL_OK);
    /* the change came before the sleep: it does not sleep */
    T_EQ(il_wait(g, &op, LIMIT_MS), IL_OK);
    T_TRUE(t_real_ms() - began < SOON_MS);
    T_EQ(il_apply(g, &op, 1, NULL), IL_OK);
    T_STREQ(op.out.value, "a line\n");
    il_op_release(&op);
    finish(run, IL_RUN_COMPLETED);
    il_close(h);
    il_close(g);
}

T_TEST(a_run_whose_worker_is_gone_fails)
{
    il         *h   = t_store_open_real(s);
    il_run_opts o   = opts_of(NULL, IL_POLICY_JOIN, 1000);
    il_run     *run = start(h, "k", &o);
    char        id[37], error[256];
    il_op       op = { 0 };

    (void)snprintf(id, sizeof id, "%s", il_run_id(run));
    il_run_free(run); /* forgotten: nothing is finished */
    T_EQ(il_run_wait(h, id, LIMIT_MS, &op, NULL), IL_OK);
    il_op_release(&op);
    T_EQ(state_of(h, id, error), IL_RUN_FAILED);
    T_STREQ(error, "lease expired - worker may have crashed");
    il_close(h);
}

T_TEST(what_is_not_acceptable)
{
    il         *h   = t_store_open_real(s);
    il_run     *run = NULL;
    il_op       op  = { 0 };
    il_error    err = { 0 };
    il_run_opts o   = opts_of(NULL, IL_POLICY_JOIN, 3000);

    T_EQ(il_run_start(NULL, "k", &o, &run, NULL, &err), IL_INVAL);
    T_EQ(il_run_start(h, NULL, &o, &run, NULL, &err), IL_INVAL);
    T_EQ(il_run_start(h, "k", &o, NULL, NULL, &err), IL_INVAL);
    o.struct_size = 1;
    T_EQ(il_run_start(h, "k", &o, &run, NULL, &err), IL_INVAL);
    T_TRUE(strstr(err.message, "IL_RUN_OPTS_INIT") != NULL);
    o         = opts_of(NULL, IL_POLICY_JOIN, 3000);
    o.stop_ms = 1001;
    T_EQ(il_run_start(h, "k", &o, &run, NULL, &err), IL_INVAL);
    o.stop_ms = 0;
    o.wait_ms = -2;
    T_EQ(il_run_start(h, "k", &o, &run, NULL, &err), IL_INVAL);
    o.wait_ms = 0;
    o.policy  = IL_POLICY_COUNT;
    T_EQ(il_run_start(h, "k", &o, &run, &op, &err), IL_INVAL);
    il_op_release(&op);
    T_TRUE(run == NULL);
    T_EQ(il_run_stage(NULL, NULL, -1, NULL, 0, &err), IL_INVAL);
    T_EQ(il_run_finish(NULL, IL_RUN_COMPLETED, NULL, &err), IL_INVAL);
    T_EQ(il_run_get(h, "k", NULL, &err), IL_INVAL);
    T_EQ(il_run_cancel(h, "no-such-run", "why not", &err), IL_NOT_FOUND);
    T_TRUE(il_run_id(NULL) == NULL && il_run_lease(NULL) == NULL);
    il_run_free(NULL);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(a_run_says_what_it_is),
        T_ROW(several_threads_tell_the_output_of_a_run),
        T_ROW(the_lease_is_renewed),
        T_ROW(a_cancel_is_told_at_once_and_once),
        T_ROW(a_break_is_a_loss),
        T_ROW(a_second_start_joins_is_refused_or_skipped),
        T_ROW(a_queued_start_is_granted_when_the_first_ends),
        T_ROW(a_wait_that_runs_out_leaves_nothing),
        T_ROW(a_pending_run_is_cancelled),
        T_ROW(an_interrupted_start_is_withdrawn),
        T_ROW(the_running_one_is_asked_to_stop),
        T_ROW(who_waits_for_a_run_is_told_its_end),
        T_ROW(who_reads_a_log_can_wait_for_more),
        T_ROW(a_run_whose_worker_is_gone_fails),
        T_ROW(what_is_not_acceptable),
    };

    return T_SUITE("run_api", tests);
}
