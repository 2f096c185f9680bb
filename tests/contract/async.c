/*
 * async.c: non-blocking calls (runtime/async.h), on the machine's clock: how soon they complete,
 * and the server's guarantees built on them. No sleeps: done() is the event.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/fault_store.h"
#include "harness/cmocka.h"
#include "harness/event.h"
#include "harness/proc.h"
#include "harness/suite.h"
#include "runtime/async.h"
#include "runtime/handle.h"

#define LIMIT_MS 20000
#define WOKEN_MS 4000 /* sooner than the 5 s of a sign of life: it was woken */

/* ---- a call under test ----------------------------------------------------------------------- */

struct one {
    struct il__call call;
    il_op           op;
    struct t_event  done;
    unsigned        n_told;
    unsigned        place; /* the how manieth of those with this counter was done */
    atomic_uint    *counter;
};

static void
told(struct il__call *call)
{
    struct one *o = container_of(call, struct one, call);

    o->n_told++;
    if (o->counter != NULL)
        o->place = atomic_fetch_add(o->counter, 1) + 1;
    t_event_add(&o->done);
}

static void
start(struct il__async *a, struct one *o, il_op op, int64_t wait_ms)
{
    *o      = (struct one){ .op = op, .counter = o->counter };
    o->call = (struct il__call){ .ops           = &o->op,
                                 .n             = 1,
                                 .wait_until_ns = wait_ms != 0 ? il__wait_until_ns(wait_ms) : 0,
                                 .done          = told };
    t_event_init(&o->done);
    il__async_submit(a, &o->call);
}

static void
end(struct one *o)
{
    T_EQ(o->n_told, 1);
    il_op_release(&o->op);
    t_event_release(&o->done);
}

/* Done within the limit, with this status; release it with end(). */
static void
is(struct one *o, il_status call, il_status op, int64_t limit_ms)
{
    T_WAIT(&o->done, 1, limit_ms);
    if (o->call.status != call)
        T_FAIL("%s: %s", il_status_name(o->call.status), o->call.error.message);
    if (call == IL_OK && o->op.status != op)
        T_FAIL("%s: %s", il_status_name(o->op.status),
               o->op.out.detail != NULL ? o->op.out.detail : "-");
}

#define IS(o, call, op, limit_ms)          \
    do {                                   \
        is((o), (call), (op), (limit_ms)); \
        end(o);                            \
    } while (0)

static il_op
acquire(const char *key, const char *holder, int64_t wait_ms)
{
    il_op op           = { .type = IL_OP_ACQUIRE, .key = key, .holder = holder };
    op.in.lock.ttl_ms  = 60000;
    op.in.lock.wait_ms = wait_ms;
    return op;
}

static il_op
release(const char *key, const char *holder, uint64_t fence)
{
    return (il_op){ .type = IL_OP_RELEASE, .key = key, .holder = holder, .fence = fence };
}

/* Apply at once, on another handle. */
static uint64_t
now(il *h, il_op op, il_status status)
{
    il_error err = { 0 };

    if (il_apply(h, &op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
    T_EQ(op.status, status);
    uint64_t fence = op.out.fence;
    il_op_release(&op);
    return fence;
}

static size_t
n_waiters(il *h, const char *prefix)
{
    il_op  op = { 0 };
    size_t n  = 0;

    T_EQ(il_list(h, prefix, NULL, IL_PAGE_ITEMS_MAX, IL_LIST_WAITERS, &op, NULL), IL_OK);
    n = op.out.n_items;
    il_op_release(&op);
    return n;
}

/* Until n calls are parked; looking is the event. */
static void
until_parked(struct il__async *a, uint64_t n)
{
    struct il__async_stats stats;
    int64_t                until = t_real_ms() + LIMIT_MS;

    do {
        il__async_stats(a, &stats);
        if (t_real_ms() > until)
            T_FAIL("%d are parked, expected %d", (int)stats.n_parked, (int)n);
        (void)poll(NULL, 0, 1); /* leave the CPU to those who park them */
    } while (stats.n_parked != n || stats.n_queued != 0);
}

struct pair {
    il               *h[2]; /* two users of the store */
    struct il__async *a[2];
};

static void
pair_open(struct t_store *s, struct pair *p)
{
    il_error err = { 0 };

    for (int i = 0; i < 2; i++) {
        p->h[i] = t_store_open_real(s);
        if (il__async_open(p->h[i], &p->a[i], &err) != IL_OK)
            T_FAIL("%s", err.message);
    }
}

static void
pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        il__async_close(p->a[i]);
        il_close(p->h[i]);
    }
}

/* ---- without a wait -------------------------------------------------------------------------- */

T_TEST(one_op)
{
    struct pair p;
    struct one  o = { 0 };

    pair_open(s, &p);
    start(p.a[0], &o, acquire("k", "a", 0), 0);
    IS(&o, IL_OK, IL_OK, LIMIT_MS);
    start(p.a[1], &o, acquire("k", "b", 0), 0);
    is(&o, IL_OK, IL_HELD, LIMIT_MS);
    T_STREQ(o.op.out.items[0].holder, "a");
    end(&o);
    start(p.a[1], &o, (il_op){ .type = IL_OP_GET, .key = "k" }, 0); /* only reads */
    is(&o, IL_OK, IL_OK, LIMIT_MS);
    T_STREQ(o.op.out.items[0].holder, "a");
    end(&o);
    start(p.a[0], &o, (il_op){ .type = IL_OP_ACQUIRE, .key = "k" }, 0); /* no holder */
    IS(&o, IL_OK, IL_INVAL, LIMIT_MS);
    start(p.a[0], &o, (il_op){ .type = (il_op_type)999 }, 0);
    IS(&o, IL_OK, IL_INVAL, LIMIT_MS);
    start(p.a[0], &o, acquire("k", "c", 60000), 0); /* it is the caller who waits */
    is(&o, IL_OK, IL_QUEUED, LIMIT_MS);
    T_EQ(o.op.in.lock.wait_ms, 60000);
    end(&o);
    pair_close(&p);
}

/* The ops of a call keep their order. */
T_TEST(many_ops_of_one_call)
{
    struct pair    p;
    struct t_event done;
    static il_op   ops[1000];
    struct one     o = { 0 };
    char           keys[500][16];

    pair_open(s, &p);
    t_event_init(&done);
    for (size_t i = 0; i < 500; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k:%zu", i);
        ops[2 * i]     = acquire(keys[i], "a", 0);
        ops[2 * i + 1] = acquire(keys[i], "b", 0); /* comes second */
    }
    o.call = (struct il__call){ .ops = ops, .n = 1000, .done = told };
    t_event_init(&o.done);
    il__async_submit(p.a[0], &o.call);
    T_WAIT(&o.done, 1, LIMIT_MS);
    T_EQ(o.call.status, IL_OK);
    for (size_t i = 0; i < 1000; i++) {
        T_EQ(ops[i].status, i % 2 == 0 ? IL_OK : IL_HELD);
        il_op_release(&ops[i]);
    }
    end(&o);
    t_event_release(&done);
    pair_close(&p);
}

static void
note_metric(void *cookie, const char *name, const char *help UNUSED, uint64_t value)
{
    uint64_t *of = cookie;

    if (strcmp(name, "interlock_batches_total") == 0)
        of[0] = value;
    else if (strcmp(name, "interlock_batch_ops_total") == 0)
        of[1] = value;
}

/* What comes while a batch is being committed is the next batch. */
T_TEST(group_commit)
{
    enum {
        N = 500
    };
    struct pair       p;
    static struct one o[N];
    static char       keys[N][16];
    uint64_t          before[2] = { 0 }, after[2] = { 0 };

    pair_open(s, &p);
    il_metrics(p.h[0], note_metric, before);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k:%zu", i);
        start(p.a[0], &o[i], acquire(keys[i], "a", 0), 0);
    }
    for (size_t i = 0; i < N; i++)
        IS(&o[i], IL_OK, IL_OK, LIMIT_MS);
    il_metrics(p.h[0], note_metric, after);
    if (after[1] != before[1]) { /* the memory engine has no batches */
        T_TRUE(after[1] - before[1] >= N);
        print_message("# %d ops in %d batches\n", (int)(after[1] - before[1]),
                      (int)(after[0] - before[0]));
        T_LESS(after[0] - before[0], N / 4);
    }
    pair_close(&p);
}

/* ---- waiting --------------------------------------------------------------------------------- */

T_TEST(granted_when_released)
{
    struct pair p;
    struct one  o = { 0 };

    pair_open(s, &p);
    for (int i = 0; i < 5; i++) {
        char a[16], b[16];
        (void)snprintf(a, sizeof a, "a%d", i);
        (void)snprintf(b, sizeof b, "b%d", i);
        uint64_t fence = now(p.h[1], acquire("k", a, 0), IL_OK);
        start(p.a[0], &o, acquire("k", b, 60000), 60000);
        until_parked(p.a[0], 1);
        T_EQ(t_event_count(&o.done), 0);
        int64_t began = t_real_ms();
        now(p.h[1], release("k", a, fence), IL_OK);
        is(&o, IL_OK, IL_OK, WOKEN_MS);
        print_message("# handed over after %d ms\n", (int)(t_real_ms() - began));
        T_LESS(fence, o.op.out.fence);
        T_TRUE(o.call.waited_ns > 0);
        now(p.h[1], release("k", b, o.op.out.fence), IL_OK);
        end(&o);
    }
    pair_close(&p);
}

/* Waiting through servers: first come, first served, whichever server they came to. */
T_TEST(first_in_first_out)
{
    enum {
        N = 10
    };
    struct pair       p;
    static struct one o[N];
    atomic_uint       counter = 0;
    char              holders[N][16];

    pair_open(s, &p);
    uint64_t fence = now(p.h[0], acquire("k", "first", 0), IL_OK);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(holders[i], sizeof holders[i], "w%zu", i);
        o[i].counter = &counter;
        start(p.a[i % 2], &o[i], acquire("k", holders[i], IL_FOREVER), IL_FOREVER);
        until_parked(p.a[i % 2], i / 2 + 1); /* so they queue in this order */
    }
    now(p.h[0], release("k", "first", fence), IL_OK);
    for (size_t i = 0; i < N; i++) {
        is(&o[i], IL_OK, IL_OK, WOKEN_MS);
        T_EQ(o[i].place, i + 1);
        now(p.h[1], release("k", holders[i], o[i].op.out.fence), IL_OK);
        end(&o[i]);
    }
    pair_close(&p);
}

static il_op
push(const char *queue, const char *id)
{
    il_op op     = { .type = IL_OP_JOB_PUSH, .key = queue };
    op.in.job.id = id;
    return op;
}

static il_op
claim(const char *queue, const char *worker, const char *id)
{
    il_op op     = { .type = IL_OP_JOB_CLAIM, .key = queue, .holder = worker };
    op.in.job.id = id;
    return op;
}

T_TEST(claim_woken_by_a_push)
{
    struct pair p;
    struct one  o   = { 0 };
    il_op       set = { .type = IL_OP_QUEUE_SET, .key = "q" };

    pair_open(s, &p);
    now(p.h[1], set, IL_OK);
    start(p.a[0], &o, claim("q", "w", "c1"), 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], push("q", "j1"), IL_OK);
    is(&o, IL_OK, IL_OK, WOKEN_MS);
    T_EQ(o.op.out.n_jobs, 1);
    T_STREQ(o.op.out.jobs[0].id, "j1");
    end(&o);
    /* A delayed one comes by itself. */
    il_op later           = push("q", "j2");
    later.in.job.delay_ms = 1500;
    start(p.a[0], &o, claim("q", "w", "c2"), 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], later, IL_OK);
    IS(&o, IL_OK, IL_OK, 4500);
    pair_close(&p);
}

/* One push wakes a few of many claims, and as many pushes serve all of them. */
T_TEST(many_claims_of_one_queue)
{
    enum {
        N = 300
    };
    struct pair            p;
    static struct one      o[N];
    static char            names[N][3][16];
    struct il__async_stats before, after;
    unsigned               n_done = 0;
    il_op                  set    = { .type = IL_OP_QUEUE_SET, .key = "q" };

    pair_open(s, &p);
    now(p.h[1], set, IL_OK);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i][0], 16, "w%zu", i);
        (void)snprintf(names[i][1], 16, "c%zu", i);
        (void)snprintf(names[i][2], 16, "j%zu", i);
        start(p.a[i % 2], &o[i], claim("q", names[i][0], names[i][1]), 60000);
    }
    until_parked(p.a[0], N / 2);
    until_parked(p.a[1], N / 2);
    il__async_stats(p.a[0], &before);
    now(p.h[1], push("q", names[0][2]), IL_OK);
    int64_t until = t_real_ms() + WOKEN_MS;
    while (n_done == 0 && t_real_ms() < until) {
        for (size_t i = 0; i < N; i++)
            n_done += t_event_count(&o[i].done);
    }
    T_EQ(n_done, 1);
    il__async_stats(p.a[0], &after);
    print_message("# one push woke %d of %d\n", (int)(after.n_wakes - before.n_wakes), N / 2);
    T_TRUE(after.n_wakes - before.n_wakes < 50);
    for (size_t i = 1; i < N; i++)
        now(p.h[1], push("q", names[i][2]), IL_OK);
    for (size_t i = 0; i < N; i++)
        IS(&o[i], IL_OK, IL_OK, WOKEN_MS);
    pair_close(&p);
}

T_TEST(once_waits_for_the_answer)
{
    struct pair p;
    struct one  o      = { 0 };
    il_op       begin  = { .type = IL_OP_ONCE_BEGIN, .key = "k", .holder = "a" };
    il_op       second = { .type = IL_OP_ONCE_BEGIN, .key = "k", .holder = "b" };
    il_op       finish = { .type = IL_OP_ONCE_FINISH, .key = "k", .holder = "a" };

    pair_open(s, &p);
    finish.fence   = now(p.h[1], begin, IL_OK);
    finish.in.once = (il_once_in){ .response = "42", .response_bytes = 2, .code = 7 };
    start(p.a[0], &o, second, 300);
    IS(&o, IL_OK, IL_BUSY, LIMIT_MS); /* not in time */
    start(p.a[0], &o, second, 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], finish, IL_OK);
    is(&o, IL_OK, IL_REPLAY, WOKEN_MS);
    T_EQ(o.op.out.code, 7);
    end(&o);
    pair_close(&p);
}

T_TEST(cache_waits_for_the_build)
{
    struct pair p;
    struct one  o[3]   = { 0 };
    il_op       lead   = { .type = IL_OP_CACHE_LOOKUP, .key = "k", .holder = "a" };
    il_op       lookup = { .type = IL_OP_CACHE_LOOKUP, .key = "k", .holder = "b" };
    il_op       get    = { .type = IL_OP_CACHE_GET, .key = "k" };
    il_op       fill   = { .type = IL_OP_CACHE_FILL, .key = "k", .holder = "a" };

    pair_open(s, &p);
    fill.fence = now(p.h[1], lead, IL_LEAD);
    fill.in.cache =
        /* old at once: whoever waited gets it */
        (il_cache_in){ .value = "v", .value_bytes = 1, .ttl_ms = 1 };
    start(p.a[0], &o[0], lookup, 300);
    IS(&o[0], IL_OK, IL_WAIT, LIMIT_MS);
    start(p.a[0], &o[0], lookup, 60000);
    start(p.a[0], &o[1], get, 60000);
    start(p.a[1], &o[2], get, 60000);
    until_parked(p.a[0], 2);
    until_parked(p.a[1], 1);
    now(p.h[1], fill, IL_OK);
    for (size_t i = 0; i < 3; i++) {
        is(&o[i], IL_OK, IL_HIT, WOKEN_MS);
        T_EQ(o[i].op.out.value_bytes, 1);
        end(&o[i]);
    }
    pair_close(&p);
}

static il_op
run_op(il_op_type type, const char *key, const char *holder, const char *id)
{
    il_op op     = { .type = type, .key = key, .holder = holder };
    op.in.run.id = id;
    return op;
}

T_TEST(run_get_and_log_wait_for_a_change)
{
    struct pair p;
    struct one  o      = { 0 };
    il_op       stage  = run_op(IL_OP_RUN_STAGE, NULL, "a", "r");
    il_op       finish = run_op(IL_OP_RUN_FINISH, NULL, "a", "r");
    il_op       get    = run_op(IL_OP_RUN_GET, NULL, NULL, "r");
    il_op       log    = run_op(IL_OP_RUN_LOG, NULL, NULL, "r");

    pair_open(s, &p);
    stage.fence = finish.fence = now(p.h[1], run_op(IL_OP_RUN_START, "k", "a", "r"), IL_OK);
    stage.in.run.stage         = "half";
    stage.in.run.log           = "text";
    stage.in.run.log_bytes     = 4;
    finish.in.run.state        = IL_RUN_COMPLETED;
    int64_t waited_ns          = 0;
    /* news of the start may come late */
    for (int i = 0; i < 10 && waited_ns < 250 * INT64_C(1000000); i++) {
        start(p.a[0], &o, get, 300);
        is(&o, IL_OK, IL_OK, LIMIT_MS); /* as it is, when the time is over */
        waited_ns = o.call.waited_ns;
        end(&o);
    }
    T_TRUE(waited_ns >= 250 * INT64_C(1000000));
    start(p.a[0], &o, log, 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], stage, IL_OK);
    is(&o, IL_OK, IL_OK, WOKEN_MS);
    T_EQ(o.op.out.value_bytes, 4);
    end(&o);
    start(p.a[0], &o, log, 60000); /* there is some: at once */
    is(&o, IL_OK, IL_OK, WOKEN_MS);
    T_EQ(o.call.waited_ns, 0);
    end(&o);
    start(p.a[0], &o, get, 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], finish, IL_OK);
    is(&o, IL_OK, IL_OK, WOKEN_MS);
    T_EQ(o.op.out.runs->state, IL_RUN_COMPLETED);
    end(&o);
    start(p.a[0], &o, get, 60000); /* nothing more is to come */
    IS(&o, IL_OK, IL_OK, WOKEN_MS);
    start(p.a[0], &o, run_op(IL_OP_RUN_GET, NULL, NULL, "none"), 60000);
    IS(&o, IL_OK, IL_NOT_FOUND, WOKEN_MS);
    pair_close(&p);
}

T_TEST(job_get_waits_for_the_end)
{
    struct pair p;
    struct one  o    = { 0 };
    il_op       get  = { .type = IL_OP_JOB_GET };
    il_op       stop = { .type = IL_OP_JOB_CANCEL };

    pair_open(s, &p);
    get.in.job.id = stop.in.job.id = "j";
    now(p.h[1], push("q", "j"), IL_OK);
    start(p.a[0], &o, get, 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], stop, IL_OK);
    is(&o, IL_OK, IL_OK, WOKEN_MS);
    T_EQ(o.op.out.jobs->state, IL_JOB_CANCELLED);
    end(&o);
    pair_close(&p);
}

/* ---- ends of waits --------------------------------------------------------------------------- */

T_TEST(time_is_over)
{
    struct pair p;
    struct one  o   = { 0 };
    il_op       set = { .type = IL_OP_QUEUE_SET, .key = "q" };

    pair_open(s, &p);
    now(p.h[1], set, IL_OK);
    now(p.h[1], acquire("k", "a", 0), IL_OK);
    int64_t began = t_real_ms();
    start(p.a[0], &o, acquire("k", "b", 400), 400); /* both waits end together */
    is(&o, IL_OK, IL_HELD, LIMIT_MS);
    T_TRUE(t_real_ms() - began >= 399);
    T_STREQ(o.op.out.items[0].holder, "a");
    end(&o);
    T_EQ(n_waiters(p.h[1], "k"), 0);
    start(p.a[0], &o, acquire("k", "c", 400), 60000); /* the op's own wait ends first */
    IS(&o, IL_OK, IL_HELD, WOKEN_MS);
    T_EQ(n_waiters(p.h[1], "k"), 0);
    start(p.a[0], &o, claim("q", "w", "c"), 300);
    IS(&o, IL_OK, IL_EMPTY, LIMIT_MS);
    pair_close(&p);
}

/* The op's own wait is longer: its caller comes again, and has kept its place. */
T_TEST(place_is_kept)
{
    struct pair p;
    struct one  o = { 0 };

    pair_open(s, &p);
    uint64_t fence = now(p.h[1], acquire("k", "a", 0), IL_OK);
    start(p.a[0], &o, acquire("k", "b", 60000), 300);
    is(&o, IL_OK, IL_QUEUED, LIMIT_MS);
    uint64_t ticket = o.op.out.ticket;
    T_TRUE(o.op.in.lock.wait_ms < 60000);
    end(&o);
    T_EQ(n_waiters(p.h[1], "k"), 1);
    start(p.a[1], &o, acquire("k", "b", IL_FOREVER), 300); /* to another server */
    is(&o, IL_OK, IL_QUEUED, LIMIT_MS);
    T_EQU(o.op.out.ticket, ticket);
    T_EQ(o.op.in.lock.wait_ms, IL_FOREVER);
    end(&o);
    start(p.a[1], &o, acquire("k", "b", IL_FOREVER), 60000);
    until_parked(p.a[1], 1);
    il__async_cancel(p.a[1], &o.call); /* hung up, but it may come again */
    IS(&o, IL_CANCELLED, IL_OK, WOKEN_MS);
    T_EQ(n_waiters(p.h[1], "k"), 1);
    start(p.a[0], &o, acquire("k", "b", 60000), 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], release("k", "a", fence), IL_OK);
    IS(&o, IL_OK, IL_OK, WOKEN_MS);
    pair_close(&p);
}

static il_run_state
state_of_run(il *h, const char *id)
{
    il_op op = { 0 };

    T_EQ(il_run_get(h, id, &op, NULL), IL_OK);
    il_run_state state = op.out.runs->state;
    il_op_release(&op);
    return state;
}

static il_op
queued_run(const char *id, int64_t wait_ms)
{
    il_op op          = run_op(IL_OP_RUN_START, "k", id, id);
    op.in.run.policy  = IL_POLICY_QUEUE;
    op.in.run.wait_ms = wait_ms;
    return op;
}

/* A start that queues. */
T_TEST(run_starts_wait)
{
    struct pair p;
    struct one  o      = { 0 };
    il_op       finish = run_op(IL_OP_RUN_FINISH, NULL, "a", "a");

    pair_open(s, &p);
    finish.fence        = now(p.h[1], run_op(IL_OP_RUN_START, "k", "a", "a"), IL_OK);
    finish.in.run.state = IL_RUN_COMPLETED;
    start(p.a[0], &o, queued_run("r1", 400), 400);
    is(&o, IL_OK, IL_HELD, LIMIT_MS);
    T_EQ(o.op.type, IL_OP_RUN_START);
    end(&o);
    T_EQ(state_of_run(p.h[1], "r1"), IL_RUN_CANCELLED);
    start(p.a[0], &o, queued_run("r2", 0), 400); /* for ever: it stays */
    IS(&o, IL_OK, IL_QUEUED, LIMIT_MS);
    T_EQ(state_of_run(p.h[1], "r2"), IL_RUN_PENDING);
    T_EQ(il_run_cancel(p.h[1], "r2", "test", NULL), IL_OK);
    start(p.a[0], &o, queued_run("r3", 60000), 60000);
    until_parked(p.a[0], 1);
    il__async_cancel(p.a[0], &o.call);
    IS(&o, IL_CANCELLED, IL_OK, WOKEN_MS);
    T_EQ(state_of_run(p.h[1], "r3"), IL_RUN_CANCELLED);
    start(p.a[0], &o, queued_run("r4", 60000), 60000);
    until_parked(p.a[0], 1);
    T_EQ(il_run_cancel(p.h[1], "r4", "not wanted", NULL), IL_OK);
    is(&o, IL_OK, IL_CANCELLED, WOKEN_MS);
    T_STREQ(o.op.out.detail, "not wanted");
    end(&o);
    start(p.a[0], &o, queued_run("r5", 60000), 60000);
    until_parked(p.a[0], 1);
    now(p.h[1], finish, IL_OK);
    IS(&o, IL_OK, IL_OK, WOKEN_MS);
    T_EQ(state_of_run(p.h[1], "r5"), IL_RUN_RUNNING);
    pair_close(&p);
}

T_TEST(cancelled)
{
    struct pair p;
    struct one  o[3] = { 0 };
    il_op       set  = { .type = IL_OP_QUEUE_SET, .key = "q" };

    pair_open(s, &p);
    now(p.h[1], set, IL_OK);
    uint64_t fence = now(p.h[1], acquire("k", "a", 0), IL_OK);
    start(p.a[0], &o[0], acquire("k", "b", 60000), 60000);
    until_parked(p.a[0], 1);
    start(p.a[0], &o[1], acquire("k", "c", 60000), 60000);
    start(p.a[0], &o[2], claim("q", "w", "c"), 60000);
    until_parked(p.a[0], 3);
    il__async_cancel(p.a[0], &o[0].call);
    il__async_cancel(p.a[0], &o[2].call);
    is(&o[0], IL_CANCELLED, IL_OK, WOKEN_MS);
    is(&o[2], IL_CANCELLED, IL_OK, WOKEN_MS);
    il__async_cancel(p.a[0], &o[0].call); /* too late: nothing */
    end(&o[0]);
    end(&o[2]);
    T_EQ(n_waiters(p.h[1], "k"), 1); /* its place is given up */
    now(p.h[1], release("k", "a", fence), IL_OK);
    IS(&o[1], IL_OK, IL_OK, WOKEN_MS); /* the next one has it */
    pair_close(&p);
}

/* A call that is being repeated when it is cancelled: whatever it was given is given back. */
T_TEST(cancelled_at_the_last_moment)
{
    enum {
        N = 60
    };
    struct pair p;
    struct one  o    = { 0 };
    unsigned    n[2] = { 0 };

    pair_open(s, &p);
    for (int i = 0; i < N; i++) {
        char a[16], b[16];
        (void)snprintf(a, sizeof a, "a%d", i);
        (void)snprintf(b, sizeof b, "b%d", i);
        uint64_t fence = now(p.h[1], acquire("k", a, 60000), IL_OK);
        start(p.a[0], &o, acquire("k", b, 60000), 60000);
        until_parked(p.a[0], 1);
        now(p.h[1], release("k", a, fence), IL_OK);
        il__async_cancel(p.a[0], &o.call);
        T_WAIT(&o.done, 1, WOKEN_MS);
        n[o.call.status == IL_CANCELLED]++;
        if (o.call.status == IL_OK) {
            T_EQ(o.op.status, IL_OK);
            now(p.h[1], release("k", b, o.op.out.fence), IL_OK);
        } else {
            T_EQ(o.call.status, IL_CANCELLED);
        }
        end(&o);
    }
    print_message("# %u granted, %u cancelled\n", n[0], n[1]);
    now(p.h[1], acquire("k", "last", 0), IL_OK); /* nothing is left behind */
    pair_close(&p);
}

T_TEST(hurried)
{
    struct pair p;
    struct one  o[4] = { 0 };
    il_op       set  = { .type = IL_OP_QUEUE_SET, .key = "q" };

    pair_open(s, &p);
    now(p.h[1], set, IL_OK);
    now(p.h[1], acquire("k", "a", 0), IL_OK);
    start(p.a[0], &o[0], acquire("k", "b", 50000), 50000);
    start(p.a[0], &o[1], acquire("k", "c", IL_FOREVER), 50000);
    start(p.a[0], &o[2], claim("q", "w", "c"), IL_FOREVER);
    until_parked(p.a[0], 3);
    il__async_hurry(p.a[0]);
    IS(&o[0], IL_OK, IL_HELD, WOKEN_MS);
    IS(&o[1], IL_OK, IL_QUEUED, WOKEN_MS); /* it goes on waiting elsewhere */
    IS(&o[2], IL_OK, IL_EMPTY, WOKEN_MS);
    start(p.a[0], &o[3], claim("q", "w", "d"), 50000); /* from now on, too */
    IS(&o[3], IL_OK, IL_EMPTY, WOKEN_MS);
    T_EQ(n_waiters(p.h[1], "k"), 1);
    pair_close(&p);
}

/* Calls that are on their way when everything is told to hurry. */
T_TEST(hurried_on_the_way)
{
    enum {
        N = 30
    };
    il               *h = t_store_open_real(s);
    static struct one o[N];
    static char       names[N][16];
    il_op             set = { .type = IL_OP_QUEUE_SET, .key = "q" };

    now(h, set, IL_OK);
    now(h, acquire("k", "a", 0), IL_OK);
    for (int round = 0; round < 5; round++) {
        struct il__async *a = NULL;
        T_EQ(il__async_open(h, &a, NULL), IL_OK);
        for (size_t i = 0; i < N; i++) {
            (void)snprintf(names[i], sizeof names[i], "w%d-%zu", round, i);
            start(a, &o[i],
                  i % 2 == 0 ? acquire("k", names[i], 50000) : claim("q", names[i], names[i]),
                  50000);
        }
        il__async_hurry(a);
        for (size_t i = 0; i < N; i++)
            IS(&o[i], IL_OK, i % 2 == 0 ? IL_HELD : IL_EMPTY, WOKEN_MS);
        il__async_close(a);
    }
    T_EQ(n_waiters(h, "k"), 0);
    il_close(h);
}

T_TEST(closed)
{
    struct pair       p;
    static struct one o[100];
    static char       names[100][16];
    il_op             set = { .type = IL_OP_QUEUE_SET, .key = "q" };

    pair_open(s, &p);
    now(p.h[1], set, IL_OK);
    now(p.h[1], acquire("k", "a", 0), IL_OK);
    now(p.h[1], run_op(IL_OP_RUN_START, "run", "a", "a"), IL_OK);
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(names[i], sizeof names[i], "w%zu", i);
        il_op run = queued_run(names[i], 60000);
        run.key   = "run";
        il_op op  = i % 3 == 0   ? acquire("k", names[i], 60000)
                    : i % 3 == 1 ? claim("q", names[i], names[i])
                                 : run;
        start(p.a[0], &o[i], op, 60000); /* the second half may be on its way still */
        if (i == 49)
            until_parked(p.a[0], 50);
    }
    il__async_close(p.a[0]);
    for (size_t i = 0; i < 100; i++) {
        T_EQ(t_event_count(&o[i].done), 1); /* each was told before */
        if (i < 50 || o[i].call.status != IL_OK)
            is(&o[i], IL_CANCELLED, IL_OK, 0);
        else
            T_EQ(o[i].op.status, IL_HELD);
        end(&o[i]);
    }
    T_EQ(n_waiters(p.h[1], "k"), 0);
    T_EQ(state_of_run(p.h[1], "w2"), IL_RUN_CANCELLED);
    il__async_close(p.a[1]);
    il_close(p.h[0]);
    il_close(p.h[1]);
}

/* ---- many ------------------------------------------------------------------------------------ */

#define N_MANY 2000
static struct one many[N_MANY];
static char       many_names[N_MANY][16], many_keys[N_MANY][16];

/* Thousands that wait for one key, and get it in turn; then for keys of their own. */
T_TEST(thousands_are_parked)
{
    struct pair            p;
    struct il__async_stats before, after;
    size_t                 n = s->engine->server != NULL ? 300 : N_MANY;
    /* a queue is read as a whole by whoever joins it */
    size_t n_one = s->engine->durable ? n / 2 : n;

    pair_open(s, &p);
    int64_t  began = t_real_ms();
    uint64_t fence = now(p.h[1], acquire("one", "first", 0), IL_OK);
    for (size_t i = 0; i < n_one; i++) {
        (void)snprintf(many_names[i], sizeof many_names[i], "m%zu", i);
        start(p.a[0], &many[i], acquire("one", many_names[i], 600000), 600000);
        if (i < 20)
            until_parked(p.a[0], i + 1); /* so these queue in this order */
    }
    until_parked(p.a[0], n_one);
    print_message("# %zu are parked after %d ms\n", n_one, (int)(t_real_ms() - began));
    il__async_stats(p.a[0], &before);
    const char *holder = "first";
    for (size_t i = 0; i < 20; i++) { /* the first ones have it one after the other */
        now(p.h[1], release("one", holder, fence), IL_OK);
        is(&many[i], IL_OK, IL_OK, WOKEN_MS);
        fence  = many[i].op.out.fence;
        holder = many_names[i];
    }
    il__async_stats(p.a[0], &after);
    T_TRUE(after.n_wakes - before.n_wakes < 60); /* and nobody else was disturbed */
    for (size_t i = 20; i < n_one; i++)
        il__async_cancel(p.a[0], &many[i].call);
    for (size_t i = 0; i < n_one; i++) {
        is(&many[i], i < 20 ? IL_OK : IL_CANCELLED, IL_OK, LIMIT_MS);
        end(&many[i]);
    }
    T_EQ(n_waiters(p.h[1], "one"), 0);

    static il_op ops[N_MANY];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(many_names[i], sizeof many_names[i], "n%zu", i);
        (void)snprintf(many_keys[i], sizeof many_keys[i], "many:%zu", i);
        ops[i] = acquire(many_keys[i], many_keys[i], 0);
    }
    T_EQ(il_apply(p.h[1], ops, n, NULL), IL_OK);
    for (size_t i = 0; i < n; i++)
        start(p.a[0], &many[i], acquire(many_keys[i], many_names[i], 600000), 600000);
    until_parked(p.a[0], n);
    for (size_t i = 0; i < n; i++) {
        T_EQ(ops[i].status, IL_OK);
        uint64_t held = ops[i].out.fence;
        il_op_release(&ops[i]);
        ops[i] = release(many_keys[i], many_keys[i], held);
    }
    T_EQ(il_apply(p.h[1], ops, n, NULL), IL_OK);
    for (size_t i = 0; i < n; i++) {
        IS(&many[i], IL_OK, IL_OK, WOKEN_MS);
        il_op_release(&ops[i]);
    }
    pair_close(&p);
}

/* Callers that take a key in turn without a thread, through two servers: one wake-up that is lost
 * would take a second, and there are many. */
#define N_TURNS 400

struct turn {
    struct il__call   call;
    il_op             op;
    struct il__async *a;
    char              holder[24];
    unsigned          i, n_done;
    uint64_t         *last_fence; /* only touched under the lease */
    struct t_event   *finished;
    const char       *wrong;
};

static void
turn_next(struct il__call *call)
{
    struct turn *t = container_of(call, struct turn, call);

    if (call->status != IL_OK || t->op.status != IL_OK) {
        t->wrong = "not granted or not released";
    } else if (t->op.type == IL_OP_ACQUIRE) {
        uint64_t fence = t->op.out.fence;
        if (fence <= *t->last_fence)
            t->wrong = "a fence did not grow";
        *t->last_fence = fence;
        il_op_release(&t->op);
        t->op               = release("k", t->holder, fence);
        call->wait_until_ns = 0;
        il__async_submit(t->a, call);
        return;
    }
    il_op_release(&t->op);
    if (t->wrong != NULL || ++t->n_done == N_TURNS) {
        t_event_add(t->finished);
        return;
    }
    (void)snprintf(t->holder, sizeof t->holder, "t%u-%u", t->i, t->n_done);
    t->op               = acquire("k", t->holder, IL_FOREVER);
    call->wait_until_ns = INT64_MAX;
    il__async_submit(t->a, call);
}

T_TEST(no_wake_up_is_lost)
{
    struct pair    p;
    struct turn    t[6];
    struct t_event finished;
    uint64_t       last_fence = 0;
    unsigned       n_turns    = s->engine->server != NULL ? 40 : N_TURNS;

    pair_open(s, &p);
    t_event_init(&finished);
    for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
        t[i] = (struct turn){
            .a = p.a[i % 2], .i = i, .last_fence = &last_fence, .finished = &finished
        };
        t[i].n_done = N_TURNS - n_turns;
        (void)snprintf(t[i].holder, sizeof t[i].holder, "t%u", i);
        t[i].op   = acquire("k", t[i].holder, IL_FOREVER);
        t[i].call = (struct il__call){
            .ops = &t[i].op, .n = 1, .wait_until_ns = INT64_MAX, .done = turn_next
        };
    }
    uint64_t fence = now(p.h[0], acquire("k", "first", 0), IL_OK);
    for (unsigned i = 0; i < ARRAY_LEN(t); i++)
        il__async_submit(t[i].a, &t[i].call);
    until_parked(p.a[0], ARRAY_LEN(t) / 2);
    until_parked(p.a[1], ARRAY_LEN(t) / 2);
    int64_t began = t_real_ms();
    now(p.h[0], release("k", "first", fence), IL_OK);
    T_WAIT(&finished, ARRAY_LEN(t), 60000);
    int64_t took = t_real_ms() - began;
    print_message("# %d turns in %d ms\n", (int)(ARRAY_LEN(t) * n_turns), (int)took);
    for (unsigned i = 0; i < ARRAY_LEN(t); i++)
        T_STREQ(t[i].wrong, NULL);
    t_event_release(&finished);
    pair_close(&p);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* The n-th call of the store fails: everybody is told, once, and what is repeated then works. */
T_TEST(store_fails)
{
    for (unsigned n = 1; n <= 6; n++) {
        for (int kind = T_FAULT_BEFORE; kind <= T_FAULT_AFTER; kind++) {
            struct il__store *inner = NULL, *faulty = NULL;
            il_error          err  = { 0 };
            il               *h    = NULL;
            struct il__async *a    = NULL;
            struct one        o[3] = { 0 };
            il_open_opts      opts = IL_OPEN_OPTS_INIT;
            opts.flags             = IL_OPEN_NO_SWEEP;
            T_EQ(il__store_open(s->real_url, &opts, &inner, &err), IL_OK);
            T_EQ(t_fault_wrap(inner, n, (enum t_fault_kind)kind, &faulty, &err), IL_OK);
            T_EQ(il__handle_new(faulty, &opts, &h, &err), IL_OK);
            T_EQ(il__async_open(h, &a, &err), IL_OK);
            char holder[3][24];
            for (int i = 0; i < 3; i++)
                (void)snprintf(holder[i], sizeof holder[i], "h%u-%d-%d", n, kind, i);
            /* One has it, two wait, of which one gives up. */
            start(a, &o[0], acquire("k", holder[0], 150), 150);
            start(a, &o[1], acquire("k", holder[1], 150), 150);
            start(a, &o[2], acquire("k", holder[2], 60000), 60000);
            T_WAIT(&o[0].done, 1, LIMIT_MS);
            T_WAIT(&o[1].done, 1, LIMIT_MS);
            il__async_cancel(a, &o[2].call);
            T_WAIT(&o[2].done, 1, LIMIT_MS);
            for (int i = 0; i < 3; i++) {
                T_TRUE(o[i].call.status == IL_OK || o[i].call.status == IL_STORE ||
                       o[i].call.status == IL_CANCELLED);
                if (o[i].call.status == IL_STORE)
                    T_HAS(o[i].call.error.message, "injected fault");
                end(&o[i]);
            }
            il__async_close(a);
            il_close(h);
            /* Whoever has it gives it back, so that the next round finds it free. */
            h        = t_store_open_real(s);
            il_op op = { 0 };
            while (il_get(h, "k", &op, NULL) == IL_OK) {
                T_EQ(il_break(h, "k", op.out.items[0].fence, "test", IL_BREAK_NOW, NULL), IL_OK);
                il_op_release(&op);
            }
            il_op_release(&op);
            il_close(h);
        }
    }
}

/* ---- announcements --------------------------------------------------------------------------- */

struct heard {
    struct t_event  texts, gaps;
    pthread_mutex_t mutex;
    char            last[IL__ANNOUNCE_BYTES_MAX + 1];
};

static void
hear(void *cookie, const char *text)
{
    struct heard *h = cookie;

    if (text == NULL) {
        t_event_add(&h->gaps);
        return;
    }
    CHECK(pthread_mutex_lock(&h->mutex) == 0);
    (void)snprintf(h->last, sizeof h->last, "%s", text);
    CHECK(pthread_mutex_unlock(&h->mutex) == 0);
    t_event_add(&h->texts);
}

static void
heard_init(struct heard *h)
{
    t_event_init(&h->texts);
    t_event_init(&h->gaps);
    CHECK(pthread_mutex_init(&h->mutex, NULL) == 0);
}

static void
heard_release(struct heard *h)
{
    t_event_release(&h->texts);
    t_event_release(&h->gaps);
    CHECK(pthread_mutex_destroy(&h->mutex) == 0);
}

static void
last_is(struct heard *h, const char *text)
{
    CHECK(pthread_mutex_lock(&h->mutex) == 0);
    T_STREQ(h->last, text);
    CHECK(pthread_mutex_unlock(&h->mutex) == 0);
}

T_TEST(announced)
{
    struct pair         p;
    static struct heard heard[2];
    static char         longest[IL__ANNOUNCE_BYTES_MAX + 2];

    for (int i = 0; i < 2; i++)
        heard_init(&heard[i]);
    pair_open(s, &p);
    for (int i = 0; i < 2; i++)
        il__async_listen(p.a[i], hear, &heard[i]);
    il__async_announce(p.a[0], "{\"n\":1}");
    for (int i = 0; i < 2; i++) {
        T_WAIT(&heard[i].texts, 1, WOKEN_MS);
        last_is(&heard[i], "{\"n\":1}");
    }
    memset(longest, 'x', IL__ANNOUNCE_BYTES_MAX);
    il__async_announce(p.a[1], longest);
    for (int i = 0; i < 2; i++) {
        T_WAIT(&heard[i].texts, 2, WOKEN_MS);
        last_is(&heard[i], longest);
    }
    longest[IL__ANNOUNCE_BYTES_MAX] = 'x';
    il__async_announce(p.a[1], longest);      /* too long */
    il__async_announce(p.a[1], "two\nlines"); /* not one */
    il__async_announce(p.a[1], "");
    il__async_announce(p.a[1], "{\"n\":2}");
    for (int i = 0; i < 2; i++) {
        T_WAIT(&heard[i].texts, 3, WOKEN_MS);
        last_is(&heard[i], "{\"n\":2}");
    }
    /* A flood: each is heard, or it is said that something was missed. */
    for (int i = 0; i < 500; i++)
        il__async_announce(p.a[0], "{\"n\":3}");
    for (int i = 0; i < 2; i++) {
        int64_t until = t_real_ms() + WOKEN_MS;
        while (t_event_count(&heard[i].texts) < 503 && t_event_count(&heard[i].gaps) == 0) {
            if (t_real_ms() > until)
                T_FAIL("%u texts and no gap", t_event_count(&heard[i].texts));
        }
    }
    pair_close(&p);
    for (int i = 0; i < 2; i++)
        heard_release(&heard[i]);
}

/* This program as another process: it hears and says, takes a key that we have, and gives it
 * back. */
static int
other_process(const char *url)
{
    static struct heard heard;
    il                 *h   = NULL;
    struct il__async   *a   = NULL;
    il_error            err = { 0 };
    struct one          o   = { 0 };

    heard_init(&heard);
    if (il_open(url, NULL, &h, &err) != IL_OK || il__async_open(h, &a, &err) != IL_OK)
        T_FAIL("%s", err.message);
    t_attend(h);
    il__async_listen(a, hear, &heard);
    printf("listening\n");
    (void)fflush(stdout);
    T_WAIT(&heard.texts, 1, LIMIT_MS);
    last_is(&heard, "{\"to\":\"you\"}");
    il__async_announce(a, "{\"to\":\"me\"}");
    start(a, &o, acquire("k", "other", 60000), 60000);
    until_parked(a, 1);
    printf("waiting\n");
    (void)fflush(stdout);
    is(&o, IL_OK, IL_OK, WOKEN_MS);
    now(h, release("k", "other", o.op.out.fence), IL_OK);
    end(&o);
    il__async_close(a);
    il_close(h);
    heard_release(&heard);
    return 0;
}

T_TEST(between_processes)
{
    struct pair         p;
    struct t_proc       other;
    struct one          o = { 0 };
    static struct heard heard;
    const char         *argv[] = { "/proc/self/exe", "--other", s->real_url, NULL };

    T_NEEDS(s, durable);
    heard_init(&heard);
    pair_open(s, &p);
    il__async_listen(p.a[0], hear, &heard);
    t_proc_start(&other, argv, NULL);
    T_LINE(&other, "listening", LIMIT_MS, NULL);
    uint64_t fence = now(p.h[0], acquire("k", "ours", 0), IL_OK);
    il__async_announce(p.a[0], "{\"to\":\"you\"}");
    T_WAIT(&heard.texts, 2, WOKEN_MS); /* our own, and the answer */
    last_is(&heard, "{\"to\":\"me\"}");
    T_LINE(&other, "waiting", LIMIT_MS, NULL);
    start(p.a[0], &o, acquire("k", "again", 60000), 60000);
    until_parked(p.a[0], 1);
    now(p.h[0], release("k", "ours", fence), IL_OK);
    is(&o, IL_OK, IL_OK, 2 * WOKEN_MS); /* after the other one has had it */
    T_TRUE(o.op.out.fence > fence + 1);
    end(&o);
    T_EQ(t_proc_exit(&other, LIMIT_MS), 0);
    t_proc_release(&other);
    pair_close(&p);
    heard_release(&heard);
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(one_op),
        T_ROW(many_ops_of_one_call),
        T_ROW(group_commit),
        T_ROW(granted_when_released),
        T_ROW(first_in_first_out),
        T_ROW(claim_woken_by_a_push),
        T_ROW(many_claims_of_one_queue),
        T_ROW(once_waits_for_the_answer),
        T_ROW(cache_waits_for_the_build),
        T_ROW(run_get_and_log_wait_for_a_change),
        T_ROW(job_get_waits_for_the_end),
        T_ROW(time_is_over),
        T_ROW(place_is_kept),
        T_ROW(run_starts_wait),
        T_ROW(cancelled),
        T_ROW(cancelled_at_the_last_moment),
        T_ROW(hurried),
        T_ROW(hurried_on_the_way),
        T_ROW(closed),
        T_ROW(thousands_are_parked),
        T_ROW(no_wake_up_is_lost),
        T_ROW(store_fails),
        T_ROW(announced),
        T_ROW(between_processes),
    };

    if (argc == 3 && strcmp(argv[1], "--other") == 0)
        return other_process(argv[2]);
    return t_suite("async", tests, ARRAY_LEN(tests));
}
