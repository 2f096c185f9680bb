/*
 * job_api.c: il_push(), il_claim() and the jobs it returns, on the machine's own clock: heartbeats,
 * long polls, cancelling, recovery, many workers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/event.h"
#include "harness/suite.h"

#define LIMIT_MS 15000
#define SOON_MS 4000 /* sooner than the 5 s after which a worker looks by itself: it was woken */

/* What the callbacks said. */
struct told {
    struct t_event lost, cancelled;
    char           reason[256];
};

static void
told_init(struct told *t)
{
    t_event_init(&t->lost);
    t_event_init(&t->cancelled);
}

static void
told_release(struct told *t)
{
    t_event_release(&t->lost);
    t_event_release(&t->cancelled);
}

static void
on_lost(void *cookie, il_job *job UNUSED, const char *why UNUSED)
{
    struct told *t = cookie;

    t_event_add(&t->lost);
}

static void
on_cancel(void *cookie, il_job *job UNUSED, const char *reason)
{
    struct told *t = cookie;

    (void)snprintf(t->reason, sizeof t->reason, "%s", reason);
    t_event_add(&t->cancelled);
}

static il_claim_opts
opts_of(struct told *t, uint32_t limit, int64_t lease_ms, int64_t wait_ms)
{
    il_claim_opts o = IL_CLAIM_OPTS_INIT;

    o.limit    = limit;
    o.lease_ms = lease_ms;
    o.wait_ms  = wait_ms;
    if (t != NULL) {
        o.on_lost   = on_lost;
        o.on_cancel = on_cancel;
        o.cookie    = t;
    }
    return o;
}

static void
push(il *h, const char *payload, const il_push_opts *o, char id[IL_ID_BYTES_MAX + 1])
{
    il_error err = { 0 };

    if (il_push(h, "q", payload, strlen(payload), o, id, &err) != IL_OK)
        T_FAIL("il_push: %s: %s", il_status_name(err.status), err.message);
}

static il_job *
claim_one(il *h, const il_claim_opts *o)
{
    il_job  *job = NULL;
    size_t   n   = 0;
    il_error err = { 0 };

    if (il_claim(h, "q", o, &job, &n, &err) != IL_OK)
        T_FAIL("il_claim: %s: %s", il_status_name(err.status), err.message);
    T_EQ(n, 1);
    return job;
}

/* Show a job; the caller releases the op. */
static const il_job_info *
look(il *h, const char *id, il_op *op)
{
    *op           = (il_op){ .type = IL_OP_JOB_GET };
    op->in.job.id = id;
    T_EQ(il_apply(h, op, 1, NULL), IL_OK);
    T_EQ(op->status, IL_OK);
    return op->out.jobs;
}

static il_job_state
state_of(il *h, const char *id)
{
    il_op        op;
    il_job_state state = look(h, id, &op)->state;

    il_op_release(&op);
    return state;
}

static void
cancel(il *h, const char *id, uint32_t flags)
{
    il_op op = { .type = IL_OP_JOB_CANCEL, .flags = flags };

    op.in.job.id   = id;
    op.in.job.text = "the day is over";
    T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
}

struct metric {
    const char *name;
    uint64_t    value;
};

static void
find_metric(void *cookie, const char *name, const char *help UNUSED, uint64_t value)
{
    struct metric *m = cookie;

    if (strcmp(m->name, name) == 0)
        m->value = value;
}

static uint64_t
metric(il *h, const char *name)
{
    struct metric m = { .name = name, .value = UINT64_MAX };

    il_metrics(h, find_metric, &m);
    T_TRUE(m.value != UINT64_MAX);
    return m.value;
}

/* ---- one job --------------------------------------------------------------------------------- */

T_TEST(pushed_claimed_and_finished)
{
    il           *h = t_store_open_real(s);
    il_claim_opts o = opts_of(NULL, 0, 20000, 0);
    char          id[IL_ID_BYTES_MAX + 1];
    il_op         op;
    il_error      err = { 0 };

    push(h, "hello", NULL, id);
    T_EQ(strlen(id), 36);
    o.worker                = "worker 1";
    il_job            *job  = claim_one(h, &o);
    const il_job_info *info = il_job_look(job);
    T_STREQ(info->id, id);
    T_STREQ(info->queue, "q");
    T_STREQ(info->worker, "worker 1");
    T_EQ(info->payload_bytes, 5);
    T_STREQ(info->payload, "hello");
    T_EQ(info->attempt, 1);
    T_STREQ(il_lease_key(il_job_lease(job)), id);
    T_EQU(il_lease_fence(il_job_lease(job)), info->token);
    T_EQ(il_lease_status(il_job_lease(job)), IL_OK);
    T_TRUE(il_lease_remaining_ms(il_job_lease(job)) > 9000);
    T_EQ(il_job_progress(job, 50, "half of it", &err), IL_OK);
    T_EQ(il_job_finish(job, "result", 6, &err), IL_OK);
    T_EQ(il_job_finish(job, "result", 6, &err), IL_OK); /* repeated */
    T_EQ(il_job_finish(job, "other", 5, &err), IL_MISMATCH);
    T_EQ(il_lease_status(il_job_lease(job)), IL_NOT_HELD);
    T_EQ(il_job_progress(job, 60, NULL, &err), IL_STALE);
    T_TRUE(strstr(err.message, id) != NULL); /* the error names the job */
    il_job_free(job);

    const il_job_info *done = look(h, id, &op);
    T_EQ(done->state, IL_JOB_COMPLETED);
    T_STREQ(done->result, "result");
    T_STREQ(done->message, "half of it");
    il_op_release(&op);
    il_close(h);
}

T_TEST(a_duplicate_is_told_the_id)
{
    il          *h = t_store_open_real(s);
    il_push_opts o = IL_PUSH_OPTS_INIT;
    char         first[IL_ID_BYTES_MAX + 1], second[IL_ID_BYTES_MAX + 1];
    il_error     err = { 0 };

    o.unique_key = "customer 17";
    push(h, "a", &o, first);
    T_EQ(il_push(h, "q", "b", 1, &o, second, &err), IL_DUPLICATE);
    T_STREQ(second, first);
    T_TRUE(strstr(err.message, first) != NULL);
    T_EQU(metric(h, "interlock_job_duplicate_total"), 1);
    T_EQU(metric(h, "interlock_job_pushed_total"), 1);
    il_close(h);
}

T_TEST(failed_snoozed_and_dead)
{
    il           *h = t_store_open_real(s);
    il_claim_opts o = opts_of(NULL, 1, 20000, LIMIT_MS);
    char          id[IL_ID_BYTES_MAX + 1];
    il_op         op;

    push(h, "a", NULL, id);
    il_job *job = claim_one(h, &o);
    T_EQ(il_job_snooze(job, 1, NULL), IL_OK);
    T_EQ(il_job_snooze(job, 1, NULL), IL_OK); /* repeated */
    il_job_free(job);
    job = claim_one(h, &o);
    T_EQ(il_job_look(job)->attempt, 1); /* a snooze does not count */
    T_EQ(il_job_fail(job, "no luck", 0, 1, NULL), IL_OK);
    il_job_free(job);
    job = claim_one(h, &o);
    T_EQ(il_job_look(job)->attempt, 2);
    T_STREQ(il_job_look(job)->error, "no luck");
    T_EQ(il_job_fail(job, "hopeless", IL_FAIL_FINAL, 0, NULL), IL_OK);
    T_EQ(il_lease_status(il_job_lease(job)), IL_NOT_HELD);
    il_job_free(job);
    T_EQ(look(h, id, &op)->state, IL_JOB_FAILED);
    T_STREQ(op.out.jobs->error, "hopeless");
    il_op_release(&op);
    T_EQU(metric(h, "interlock_job_failed_attempts_total"), 2);
    T_EQU(metric(h, "interlock_job_failed_total"), 1);
    il_close(h);
}

T_TEST(several_jobs_in_one_claim)
{
    il           *h       = t_store_open_real(s);
    il_claim_opts o       = opts_of(NULL, 3, 20000, 0);
    il_job       *jobs[4] = { NULL };
    size_t        n       = 0;
    il_error      err     = { 0 };

    for (unsigned i = 0; i < 5; i++)
        push(h, "payload", NULL, NULL);
    T_EQ(il_claim(h, "q", &o, jobs, &n, &err), IL_OK);
    T_EQ(n, 3);
    T_EQ(il_job_finish(jobs[1], NULL, 0, &err), IL_OK);
    il_job_free(jobs[1]); /* in another order than claimed */
    il_job_free(jobs[0]);
    T_STREQ(il_job_look(jobs[2])->payload, "payload"); /* not freed with the others */
    T_EQ(il_job_finish(jobs[2], NULL, 0, &err), IL_OK);
    il_job_free(jobs[2]);
    o.limit = 4;
    T_EQ(il_claim(h, "q", &o, jobs, &n, &err), IL_OK);
    T_EQ(n, 2);
    il_job_free(jobs[0]);
    il_job_free(jobs[1]);
    T_EQU(metric(h, "interlock_job_claimed_total"), 5);
    il_close(h);
}

T_TEST(the_claim_is_extended)
{
    il         *h   = t_store_open_real(s);
    struct told t   = { 0 };
    il_error    err = { 0 };

    told_init(&t);
    il_claim_opts o = opts_of(&t, 1, 1000, 0);
    push(h, "a", NULL, NULL);
    il_job *job   = claim_one(h, &o);
    int64_t past  = il_lease_deadline_ns(il_job_lease(job)) + INT64_C(1000000000);
    int64_t until = t_real_ms() + LIMIT_MS;
    while (il_lease_deadline_ns(il_job_lease(job)) < past) {
        if (t_real_ms() > until)
            T_FAIL("no heartbeats are sent");
    }
    T_EQ(t_event_count(&t.lost), 0);
    T_EQ(il_job_finish(job, NULL, 0, &err), IL_OK); /* more than its lease after the claim */
    il_job_free(job);
    il_close(h);
    told_release(&t);
}

/* Workers that send no heartbeats have the queue's timeouts. */
T_TEST(a_silent_worker_is_told_when_its_time_is_over)
{
    il         *h   = t_store_open_real(s);
    struct told t   = { 0 };
    il_op       set = { .type = IL_OP_QUEUE_SET, .key = "q" };

    told_init(&t);
    set.in.queue.processing_timeout_ms = 1000;
    T_EQ(il_apply(h, &set, 1, NULL), IL_OK);
    T_EQ(set.status, IL_OK);
    il_op_release(&set);
    il_claim_opts o = opts_of(&t, 1, 0, 0);
    o.flags         = IL_CLAIM_SILENT;
    push(h, "a", NULL, NULL);
    il_job *job      = claim_one(h, &o);
    int64_t deadline = il_lease_deadline_ns(il_job_lease(job));
    T_WAIT(&t.lost, 1, LIMIT_MS);
    T_TRUE(il_lease_deadline_ns(il_job_lease(job)) == deadline);
    T_EQ(il_lease_status(il_job_lease(job)), IL_LOST);
    il_job_free(job);
    il_close(h);
    told_release(&t);
}

/* ---- cancelled, declared dead ---------------------------------------------------------------- */

T_TEST(a_cancel_is_told_at_once_and_once)
{
    il         *h     = t_store_open_real(s);
    il         *other = t_store_open_real(s);
    struct told t     = { 0 };
    char        id[IL_ID_BYTES_MAX + 1];

    told_init(&t);
    il_claim_opts o = opts_of(&t, 1, 30000, 0); /* the next heartbeat is 10 s away */
    push(h, "a", NULL, id);
    il_job *job = claim_one(h, &o);
    cancel(other, id, 0);
    T_WAIT(&t.cancelled, 1, SOON_MS);
    T_STREQ(t.reason, "the day is over");
    T_EQ(il_lease_status(il_job_lease(job)), IL_OK);
    T_EQ(il_job_progress(job, 10, "stopping", NULL), IL_OK);
    T_EQ(il_job_fail(job, "stopped", 0, 0, NULL), IL_OK);
    T_EQ(state_of(h, id), IL_JOB_CANCELLED);
    T_EQ(t_event_count(&t.cancelled), 1);
    il_job_free(job);
    il_close(h);
    il_close(other);
    told_release(&t);
}

/* Who was declared dead can do nothing, and that is counted. */
T_TEST(a_claim_that_was_taken_away)
{
    il         *h     = t_store_open_real(s);
    il         *other = t_store_open_real(s);
    struct told t     = { 0 };
    char        id[IL_ID_BYTES_MAX + 1];
    il_error    err = { 0 };

    told_init(&t);
    il_claim_opts o = opts_of(&t, 1, 30000, 0);
    push(h, "a", NULL, id);
    il_job *job = claim_one(h, &o);
    cancel(other, id, IL_CANCEL_NOW);
    T_WAIT(&t.lost, 1, SOON_MS);
    T_EQ(il_lease_status(il_job_lease(job)), IL_LOST);
    uint64_t stale = metric(h, "interlock_job_stale_total");
    T_EQ(il_job_progress(job, 10, NULL, &err), IL_STALE);
    T_EQ(il_job_fail(job, "late", 0, 0, &err), IL_STALE);
    T_EQ(il_job_finish(job, NULL, 0, &err), IL_STALE);
    T_EQU(metric(h, "interlock_job_stale_total"), stale + 3);
    T_EQ(state_of(h, id), IL_JOB_CANCELLED);
    T_EQ(t_event_count(&t.lost), 1);
    il_job_free(job);
    il_close(h);
    il_close(other);
    told_release(&t);
}

/* ---- waiting for a job ----------------------------------------------------------------------- */

struct worker {
    il             *h;
    il_claim_opts   opts;
    pthread_t       thread;
    struct t_event *done;
    il_job         *job;
    il_status       status;
};

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    size_t         n = 0;

    w->status = il_claim(w->h, "q", &w->opts, &w->job, &n, NULL);
    t_event_add(w->done);
    return NULL;
}

static void
worker_start(struct worker *w, il *h, int64_t wait_ms, struct t_event *done)
{
    *w = (struct worker){ .h = h, .opts = opts_of(NULL, 1, 20000, wait_ms), .done = done };
    CHECK(pthread_create(&w->thread, NULL, worker_main, w) == 0);
}

static void
worker_join(struct worker *w, il_status status)
{
    CHECK(pthread_join(w->thread, NULL) == 0);
    T_EQ(w->status, status);
}

static void
make_queue(il *h)
{
    il_op set = { .type = IL_OP_QUEUE_SET, .key = "q" };

    T_EQ(il_apply(h, &set, 1, NULL), IL_OK);
    T_EQ(set.status, IL_OK);
    il_op_release(&set);
}

/* Until a claim of this handle found nothing, so that the worker waits or is about to. */
static void
until_empty(il *h, uint64_t n)
{
    int64_t until = t_real_ms() + LIMIT_MS;

    while (metric(h, "interlock_job_empty_total") < n) {
        if (t_real_ms() > until)
            T_FAIL("the worker does not wait");
    }
}

T_TEST(nothing_to_do)
{
    il           *h   = t_store_open_real(s);
    il_claim_opts o   = opts_of(NULL, 1, 0, 0);
    il_job       *job = NULL;
    size_t        n   = 0;
    il_error      err = { 0 };

    T_EQ(il_claim(h, "q", &o, &job, &n, &err), IL_NOT_FOUND);
    T_TRUE(strstr(err.message, "'q'") != NULL);
    make_queue(h);
    T_EQ(il_claim(h, "q", &o, &job, &n, &err), IL_EMPTY);
    o.wait_ms     = 200;
    int64_t began = t_real_ms();
    T_EQ(il_claim(h, "q", &o, &job, &n, &err), IL_EMPTY);
    T_TRUE(t_real_ms() - began >= 200);
    T_TRUE(job == NULL);
    il_close(h);
}

T_TEST(a_push_wakes_a_worker)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    struct t_event done;
    struct worker  w;

    t_event_init(&done);
    make_queue(h);
    worker_start(&w, g, IL_FOREVER, &done);
    until_empty(g, 1);
    T_EQ(t_event_count(&done), 0);
    int64_t began = t_real_ms();
    push(h, "a", NULL, NULL);
    T_WAIT(&done, 1, SOON_MS);
    print_message("# claimed after %d ms\n", (int)(t_real_ms() - began));
    worker_join(&w, IL_OK);
    il_job_free(w.job);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

T_TEST(a_job_that_becomes_due_wakes_a_worker)
{
    il            *h = t_store_open_real(s);
    il_push_opts   o = IL_PUSH_OPTS_INIT;
    struct t_event done;
    struct worker  w;

    t_event_init(&done);
    o.delay_ms    = 400;
    int64_t began = t_real_ms();
    push(h, "a", &o, NULL);
    worker_start(&w, h, IL_FOREVER, &done);
    T_WAIT(&done, 1, SOON_MS);
    T_TRUE(t_real_ms() - began >= 395); /* the wall clock decides; it may be off by a little */
    worker_join(&w, IL_OK);
    il_job_free(w.job);
    il_close(h);
    t_event_release(&done);
}

T_TEST(interrupted)
{
    il            *h = t_store_open_real(s);
    struct t_event done;
    struct worker  w;

    t_event_init(&done);
    make_queue(h);
    worker_start(&w, h, IL_FOREVER, &done);
    until_empty(h, 1);
    il_interrupt(h);
    T_WAIT(&done, 1, LIMIT_MS);
    worker_join(&w, IL_CANCELLED);
    il_close(h);
    t_event_release(&done);
}

/* Who waits looks every 5 s, or every 10 s for an optimistic queue; the answer says which. */
T_TEST(a_claim_tells_the_strategy)
{
    il   *h     = t_store_open_real(s);
    il_op set   = { .type = IL_OP_QUEUE_SET, .key = "q" };
    il_op claim = { .type = IL_OP_JOB_CLAIM, .key = "q", .holder = "w" };

    make_queue(h);
    claim.in.job.id = "claim-1";
    T_EQ(il_apply(h, &claim, 1, NULL), IL_OK);
    T_EQ(claim.status, IL_EMPTY);
    T_TRUE((claim.out.flags & IL_OUT_OPTIMISTIC) == 0);
    set.in.queue.strategy = 1 + IL_STRATEGY_OPTIMISTIC;
    T_EQ(il_apply(h, &set, 1, NULL), IL_OK);
    claim.in.job.id = "claim-2";
    T_EQ(il_apply(h, &claim, 1, NULL), IL_OK);
    T_EQ(claim.status, IL_EMPTY);
    T_TRUE((claim.out.flags & IL_OUT_OPTIMISTIC) != 0);
    il_op_release(&claim);
    il_op_release(&set);
    il_close(h);
}

T_TEST(who_looks_at_a_job_can_wait_for_a_change)
{
    il           *h     = t_store_open_real(s);
    il           *other = t_store_open_real(s);
    il_claim_opts o     = opts_of(NULL, 1, 20000, 0);
    char          id[IL_ID_BYTES_MAX + 1];
    il_op         op;

    push(h, "a", NULL, id);
    il_job *job = claim_one(other, &o);
    T_EQ(look(h, id, &op)->state, IL_JOB_RUNNING);
    t_quiet(h, &op);
    int64_t began = t_real_ms();
    T_EQ(il_job_progress(job, 30, "a third", NULL), IL_OK);
    /* the change came before the sleep: it does not sleep */
    T_EQ(il_wait(h, &op, LIMIT_MS), IL_OK);
    T_TRUE(t_real_ms() - began < SOON_MS);
    il_op_release(&op);
    T_STREQ(look(h, id, &op)->message, "a third");
    T_EQ(il_job_finish(job, NULL, 0, NULL), IL_OK);
    T_EQ(il_wait(h, &op, LIMIT_MS), IL_OK);
    T_TRUE(t_real_ms() - began < SOON_MS);
    il_op_release(&op);
    op.type = IL_OP_JOB_CANCEL;
    T_EQ(il_wait(h, &op, 0), IL_INVAL);
    il_job_free(job);
    il_close(h);
    il_close(other);
}

/* A schedule may say that a job comes sooner than whoever waits was told. */
T_TEST(who_waits_for_a_job_learns_of_a_schedule)
{
    il   *h     = t_store_open_real(s);
    il   *other = t_store_open_real(s);
    il_op claim = { .type = IL_OP_JOB_CLAIM, .key = "q", .holder = "w", .in.job.id = "c" };
    il_op cron  = { .type    = IL_OP_CRON_SET,
                    .key     = "q",
                    .in.cron = { .name = "c", .schedule = "* * * * *" } };

    make_queue(h);
    T_EQ(il_apply(h, &claim, 1, NULL), IL_OK);
    T_EQ(claim.status, IL_EMPTY);
    T_EQ(claim.out.remaining_ms, IL_FOREVER);
    t_quiet(h, &claim);
    int64_t began = t_real_ms();
    T_EQ(il_apply(other, &cron, 1, NULL), IL_OK);
    T_EQ(il_wait(h, &claim, LIMIT_MS), IL_OK);
    T_TRUE(t_real_ms() - began < SOON_MS);
    il_op_release(&claim);
    il_op_release(&cron);
    il_close(h);
    il_close(other);
}

/* A worker that waits recovers the jobs of a dead one, a second after their lease. */
T_TEST(the_job_of_a_dead_worker_is_given_to_who_waits)
{
    il            *h = t_store_open_real(s);
    il            *g = t_store_open_real(s);
    il_claim_opts  o = opts_of(NULL, 1, 1000, 0);
    struct t_event done;
    struct worker  w;

    t_event_init(&done);
    push(h, "a", NULL, NULL);
    il_job_free(claim_one(h, &o)); /* forgotten: no more heartbeats */
    worker_start(&w, g, IL_FOREVER, &done);
    T_WAIT(&done, 1, SOON_MS); /* lease and a sweep, not the look after 5 s */
    worker_join(&w, IL_OK);
    T_EQ(il_job_look(w.job)->attempt, 2);
    T_STREQ(il_job_look(w.job)->error, "Processing timeout - worker may have crashed");
    T_EQ(il_job_finish(w.job, NULL, 0, NULL), IL_OK);
    il_job_free(w.job);
    il_close(h);
    il_close(g);
    t_event_release(&done);
}

/* ---- many workers ---------------------------------------------------------------------------- */

#define N_WORKERS 6
#define N_JOBS 60

struct crew {
    il             *h;
    pthread_t       thread;
    atomic_uint    *n_left;
    struct t_event *done;
    unsigned        n_finished;
    il_status       wrong;
};

static void *
crew_main(void *arg)
{
    struct crew  *c = arg;
    il_claim_opts o = opts_of(NULL, 4, 20000, 100);

    while (atomic_load(c->n_left) > 0 && c->wrong == IL_OK) {
        il_job   *jobs[4];
        size_t    n  = 0;
        il_status st = il_claim(c->h, "q", &o, jobs, &n, NULL);
        if (st != IL_OK && st != IL_EMPTY)
            c->wrong = st;
        for (size_t i = 0; i < n; i++) {
            st = il_job_finish(jobs[i], NULL, 0, NULL);
            if (st != IL_OK)
                c->wrong = st;
            c->n_finished++;
            atomic_fetch_sub(c->n_left, 1);
            il_job_free(jobs[i]);
        }
    }
    t_event_add(c->done);
    return NULL;
}

T_TEST(many_workers_finish_each_job_once)
{
    il            *h[2]   = { t_store_open_real(s), t_store_open_real(s) };
    atomic_uint    n_left = N_JOBS;
    struct crew    crew[N_WORKERS];
    struct t_event done;
    unsigned       n_finished = 0;

    t_event_init(&done);
    for (unsigned i = 0; i < N_JOBS; i++)
        push(h[i % 2], "a", NULL, NULL);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        crew[i] = (struct crew){ .h = h[i % 2], .n_left = &n_left, .done = &done };
        CHECK(pthread_create(&crew[i].thread, NULL, crew_main, &crew[i]) == 0);
    }
    T_WAIT(&done, N_WORKERS, 4 * LIMIT_MS);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        CHECK(pthread_join(crew[i].thread, NULL) == 0);
        T_EQ(crew[i].wrong, IL_OK);
        n_finished += crew[i].n_finished;
    }
    T_EQ(n_finished, N_JOBS);
    T_EQU(metric(h[0], "interlock_job_finished_total") +
              metric(h[1], "interlock_job_finished_total"),
          N_JOBS);
    il_close(h[0]);
    il_close(h[1]);
    t_event_release(&done);
}

/* Jobs that cannot be kept are given back as if they had not been claimed. */
T_TEST(without_descriptors)
{
    il           *h = t_store_open_real(s);
    il_claim_opts o = opts_of(NULL, 5, 20000, 0);
    il_job       *jobs[5];
    size_t        n      = 0;
    size_t        n_kept = 0;
    struct rlimit before, few;

    push(h, "first", NULL, NULL);
    /* the threads of the handle have their descriptors, all but one */
    il_job *first = claim_one(h, &o);
    for (unsigned i = 0; i < 5; i++)
        push(h, "a", NULL, NULL);
    int next = dup(STDOUT_FILENO);
    T_TRUE(next >= 0);
    T_EQ(close(next), 0);
    T_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    few          = before;
    few.rlim_cur = (rlim_t)next + 2;
    T_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    il_status st = il_claim(h, "q", &o, jobs, &n_kept, NULL);
    T_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    T_EQ(st, IL_OK);
    T_TRUE(n_kept == 2 || n_kept == 1); /* the watchdog's timer may have taken one */
    for (size_t i = 0; i < n_kept; i++)
        il_job_free(jobs[i]);
    o.wait_ms = LIMIT_MS;
    T_EQ(il_claim(h, "q", &o, jobs, &n, NULL), IL_OK);
    T_EQ(n, 5 - n_kept);
    for (size_t i = 0; i < n; i++) {
        T_EQ(il_job_look(jobs[i])->attempt, 1);
        il_job_free(jobs[i]);
    }
    il_job_free(first);
    il_close(h);
}

T_TEST(what_is_not_acceptable)
{
    il           *h   = t_store_open_real(s);
    il_job       *job = NULL;
    size_t        n   = 0;
    il_error      err = { 0 };
    il_claim_opts o   = opts_of(NULL, IL_CLAIM_JOBS_MAX + 1, 0, 0);
    il_push_opts  p   = IL_PUSH_OPTS_INIT;

    T_EQ(il_claim(h, "q", &o, &job, &n, &err), IL_INVAL);
    T_EQ(il_claim(h, NULL, NULL, &job, &n, &err), IL_INVAL);
    T_EQ(il_claim(h, "q", NULL, NULL, &n, &err), IL_INVAL);
    T_EQ(il_claim(h, "q", NULL, &job, NULL, &err), IL_INVAL);
    o = opts_of(NULL, 1, 0, -2);
    T_EQ(il_claim(h, "q", &o, &job, &n, &err), IL_INVAL);
    o.struct_size = 1;
    T_EQ(il_claim(h, "q", &o, &job, &n, &err), IL_INVAL);
    T_TRUE(strstr(err.message, "IL_CLAIM_OPTS_INIT") != NULL);
    p.struct_size = 1;
    T_EQ(il_push(h, "q", NULL, 0, &p, NULL, &err), IL_INVAL);
    T_TRUE(strstr(err.message, "IL_PUSH_OPTS_INIT") != NULL);
    T_EQ(il_push(h, NULL, NULL, 0, NULL, NULL, &err), IL_INVAL);
    T_EQ(il_job_progress(NULL, 0, NULL, &err), IL_INVAL);
    T_EQ(il_job_finish(NULL, NULL, 0, &err), IL_INVAL);
    T_EQ(il_job_fail(NULL, NULL, 0, 0, &err), IL_INVAL);
    T_EQ(il_job_snooze(NULL, 0, &err), IL_INVAL);
    T_TRUE(il_job_look(NULL) == NULL && il_job_lease(NULL) == NULL && job == NULL);
    il_job_free(NULL);
    il_close(h);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(pushed_claimed_and_finished),
        T_ROW(a_duplicate_is_told_the_id),
        T_ROW(failed_snoozed_and_dead),
        T_ROW(several_jobs_in_one_claim),
        T_ROW(the_claim_is_extended),
        T_ROW(a_silent_worker_is_told_when_its_time_is_over),
        T_ROW(a_cancel_is_told_at_once_and_once),
        T_ROW(a_claim_that_was_taken_away),
        T_ROW(nothing_to_do),
        T_ROW(a_push_wakes_a_worker),
        T_ROW(a_job_that_becomes_due_wakes_a_worker),
        T_ROW(interrupted),
        T_ROW(a_claim_tells_the_strategy),
        T_ROW(who_looks_at_a_job_can_wait_for_a_change),
        T_ROW(who_waits_for_a_job_learns_of_a_schedule),
        T_ROW(the_job_of_a_dead_worker_is_given_to_who_waits),
        T_ROW(many_workers_finish_each_job_once),
        T_ROW(without_descriptors),
        T_ROW(what_is_not_acceptable),
    };

    return T_SUITE("job_api", tests);
}
