/*
 * scenario.c: the history, and its locks. Every step has the answer of an undisturbed store; what a
 * repeated call may return instead follows from src/core/README.md.
 */
#include "fault/scenario_internal.h"

#include "harness/invariants.h"

#define N_MANY 20

bool
scenario_failed(struct scenario *s, il_status st, il_status op_status)
{
    il_status injected = s->unknown_is_store ? IL_STORE : IL_NOMEM;

    if (st == IL_OK && op_status != injected)
        return false;
    if (st != IL_OK && st != injected && !(s->or_store && st == IL_STORE))
        T_FAIL("%s: the call failed with %s", s->what, il_status_name(st));
    s->n_failures++;
    s->healed(s->cookie);
    return true;
}

/* Apply, repeated once when it failed. *ret_repeated may be NULL. */
static il_op
apply(struct scenario *s, il_op op, bool *ret_repeated)
{
    il_error  err = { 0 };
    il_status st  = il_apply(s->h, &op, 1, &err);
    bool      bad = scenario_failed(s, st, op.status);

    if (bad) {
        st = il_apply(s->h, &op, 1, &err);
        if (st != IL_OK)
            T_FAIL("%s: the call after the failure: %s", s->what, err.message);
    }
    if (ret_repeated != NULL)
        *ret_repeated = bad;
    return op;
}

il_op
scenario_apply(struct scenario *s, il_op op, il_status expected, il_status instead)
{
    bool  repeated;
    il_op done = apply(s, op, &repeated);
    char  text[T_OP_TEXT_BYTES];

    if (done.status != expected && !(repeated && done.status == instead))
        T_FAIL("%s: expected %s: %s", s->what, il_status_name(expected), t_op_text(&done, text));
    return done;
}

uint64_t
scenario_step(struct scenario *s, il_op op, il_status expected, il_status instead)
{
    il_op    done  = scenario_apply(s, op, expected, instead);
    uint64_t fence = done.out.fence;

    il_op_release(&done);
    return fence;
}

#define STEP(expected, type, key, holder, fence, ...)                                            \
    scenario_step(s, t_op(IL_OP_##type, key, holder, fence, T_ARGS(__VA_ARGS__)), IL_##expected, \
                  IL_##expected)

void
scenario_look(struct scenario *s)
{
    struct t_watch w = { 0 };
    char           why[T_WHY_BYTES];

    if (s->n_failures == 0)
        return; /* nothing has happened yet, and looking would meet the failure */
    /* Twice: the first look may be what fails. */
    if (!t_watch_look(&w, s->h, "default", false, why) &&
        !t_watch_look(&w, s->h, "default", false, why))
        T_FAIL("%s: %s", s->what, why);
    t_watch_release(&w);
}

static void
play_exclusive(struct scenario *s)
{
    uint64_t a = STEP(OK, ACQUIRE, "k", "a", 0, .meta = "meta", .place = "here");
    uint64_t b;

    T_EQU(STEP(OK, ACQUIRE, "k", "a", 0), a); /* renews, the same fence */
    (void)STEP(HELD, ACQUIRE, "k", "x", 0);
    (void)STEP(QUEUED, ACQUIRE, "k", "b", 0, .wait_ms = 60000);
    (void)STEP(QUEUED, ACQUIRE, "k", "c", 0, .wait_ms = 60000);
    T_EQU(STEP(OK, RENEW, "k", "a", a), a);
    (void)STEP(OK, GET, "k", NULL, 0);
    (void)STEP(OK, CHECK_FENCE, "k", NULL, a);
    (void)STEP(OK, RELEASE, "k", "a", a);
    (void)STEP(OK, RELEASE, "k", "a", a);
    (void)STEP(LOST, ACQUIRE, "k", "a", 0); /* the late copy */
    b = STEP(OK, ACQUIRE, "k", "b", 0, .wait_ms = 60000);
    T_LESS(a, b);
    (void)STEP(STALE, CHECK_FENCE, "k", NULL, a);
    (void)STEP(OK, BREAK, "k", NULL, b, .reason = "test");
    (void)STEP(LOST, RENEW, "k", "b", b);
    (void)STEP(OK, RELEASE, "k", "b", b); /* lets go: c is offered */
    T_LESS(b, STEP(OK, ACQUIRE, "k", "c", 0, .wait_ms = 60000));
    scenario_look(s);
}

static void
play_modes(struct scenario *s)
{
    uint64_t p;

    (void)STEP(OK, ACQUIRE, "s", "a", 0, T_SHARED);
    (void)STEP(OK, ACQUIRE, "s", "b", 0, T_SHARED);
    (void)STEP(QUEUED, ACQUIRE, "s", "c", 0, .wait_ms = 1000);
    p = STEP(OK, ACQUIRE, "p", "a", 0, T_PERMITS(2));
    (void)STEP(OK, ACQUIRE, "p", "b", 0, T_PERMITS(2));
    (void)STEP(HELD, ACQUIRE, "p", "c", 0, T_PERMITS(2));
    (void)STEP(MISMATCH, ACQUIRE, "p", "d", 0, T_PERMITS(3));
    /* At once; repeated, there is nothing left to break, or only the other permit. */
    (void)scenario_step(
        s, t_op(IL_OP_BREAK, "p", NULL, p, T_ARGS(.reason = "t", .flags = IL_BREAK_NOW)), IL_OK,
        IL_STALE);
    (void)STEP(OK, ACQUIRE, "p", "c", 0, T_PERMITS(2));
    scenario_look(s);
}

/* x and y each hold what the other wants; the younger wait is refused. */
static void
play_deadlock(struct scenario *s)
{
    il_op op = t_op(IL_OP_ACQUIRE, "dead:1", "y", 0, T_ARGS(.wait_ms = 60000));

    (void)STEP(OK, ACQUIRE, "dead:1", "x", 0);
    (void)STEP(OK, ACQUIRE, "dead:2", "y", 0);
    (void)STEP(QUEUED, ACQUIRE, "dead:2", "x", 0, .wait_ms = 60000);
    bool  repeated;
    il_op done = apply(s, op, &repeated);
    if (done.status == IL_QUEUED) { /* no memory to search: a sweep finds it */
        T_TRUE(s->n_failures > 0 || !s->unknown_is_store);
        s->healed(s->cookie);
        il_op_release(&done);
        (void)STEP(OK, SWEEP, NULL, NULL, 0);
        done = apply(s, op, NULL);
    }
    /* Refused and gone, the repetition is a new request: it closes the same cycle. */
    (void)T_IS(&done, IL_DEADLOCK);
    il_op_release(&done);
    scenario_look(s);
}

static void
play_order(struct scenario *s)
{
    (void)STEP(OK, ACQUIRE, "b:1", "o1", 0, .place = "one");
    (void)STEP(ORDER, ACQUIRE, "a:1", "o1", 0, .place = "two"); /* declared: a before b */
    (void)STEP(OK, ACQUIRE, "c:1", "o1", 0, .place = "three");  /* learned: b before c */
    (void)STEP(OK, ACQUIRE, "c:2", "o2", 0, .place = "four");
    (void)STEP(OK, ACQUIRE, "b:2", "o2", 0, .place = "five"); /* only reported */
    (void)STEP(OK, ORDER_LIST, NULL, NULL, 0);
}

/* A report that is repeated after a failure counts twice, so the count is checked without one. */
static void
play_history(struct scenario *s)
{
    il_op report = { .type       = IL_OP_REFUSED,
                     .key        = "past",
                     .in.refused = { .meta = "caller", .other = "other", .held_ms = 5 } };
    il_op list   = { .type = IL_OP_HISTORY, .key = "past" };

    (void)scenario_step(s, report, IL_OK, IL_OK);
    (void)scenario_step(s, report, IL_OK, IL_OK);
    uint64_t fence = STEP(OK, ACQUIRE, "past", "a", 0);
    (void)scenario_step(
        s, t_op(IL_OP_BREAK, "past", NULL, fence, T_ARGS(.reason = "t", .flags = IL_BREAK_NOW)),
        IL_OK, IL_NOT_HELD);
    il_op done = scenario_apply(s, list, IL_OK, IL_OK);
    T_LESS(done.out.n_events, 3);
    if (s->n_failures == 0) {
        /* In memory, the event of a break for which there is no memory is left out. */
        T_TRUE(done.out.n_events > 0);
        T_EQ(done.out.events[done.out.n_events - 1].count, 2);
    }
    il_op_release(&done);
}

/* More ops than a handle keeps room for; each of them must be done once, whatever fails. */
static void
play_many(struct scenario *s)
{
    il_op    ops[N_MANY];
    char     keys[N_MANY][16];
    uint64_t fences[N_MANY];

    for (size_t i = 0; i < N_MANY; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "many:%zu", i);
        ops[i] = t_op(IL_OP_ACQUIRE, keys[i], "m", 0, T_ARGS());
    }
    for (int tries = 0; tries < 3; tries++) {
        il_status st  = il_apply(s->h, ops, N_MANY, NULL);
        bool      bad = scenario_failed(s, st, IL_OK);
        for (size_t i = 0; !bad && i < N_MANY; i++)
            bad = scenario_failed(s, IL_OK, ops[i].status);
        if (!bad)
            break;
    }
    for (size_t i = 0; i < N_MANY; i++) {
        (void)T_IS(&ops[i], IL_OK);
        fences[i] = ops[i].out.fence;
        il_op_release(&ops[i]);
        T_EQU(STEP(OK, CHECK_FENCE, keys[i], NULL, fences[i]), fences[i]);
    }
    (void)STEP(OK, LIST, "many", NULL, 0, .limit = 7);
    (void)STEP(OK, LIST, NULL, NULL, 0, .limit = 7, .flags = IL_LIST_WAITERS);
    scenario_look(s);
}

static void
play_time(struct scenario *s)
{
    uint64_t a = STEP(OK, ACQUIRE, "t", "a", 0, .ttl_ms = 1000, .settle_ms = 1000);

    (void)STEP(QUEUED, ACQUIRE, "t", "b", 0, .wait_ms = 60000);
    t_clock_step(s->test_clock, 1500);
    (void)STEP(OK, SWEEP, NULL, NULL, 0);
    (void)STEP(LOST, RENEW, "t", "a", a); /* closing */
    t_clock_step(s->test_clock, 1000);
    (void)STEP(OK, SWEEP, NULL, NULL, 0);
    (void)STEP(OK, ACQUIRE, "t", "b", 0, .wait_ms = 60000);
    t_clock_step(s->test_clock, 100000);
    for (unsigned i = 0; i < 4; i++)
        (void)STEP(OK, SWEEP, NULL, NULL, 0, .limit = 20);
    scenario_look(s);
}

/* Whatever il_acquire() says after a failure, it leaves nothing behind that the next one could
 * meet. */
static void
play_lease(struct scenario *s)
{
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
    il_lease       *l    = NULL;
    il_error        err  = { 0 };

    opts.holder  = "lease-1";
    opts.wait_ms = 60000;
    il_status st = il_acquire(s->h, "lease", &opts, &l, &err);
    if (scenario_failed(s, st, IL_OK)) {
        T_TRUE(l == NULL);
        T_TRUE(err.message[0] != '\0');
        if (s->lasting) /* it could not clean up, either: in the end that expires */
            t_clock_step(s->test_clock, IL_TTL_MS_DEFAULT);
        (void)STEP(NOT_HELD, GET, "lease", NULL, 0);
        opts.holder = "lease-2";
        st          = il_acquire(s->h, "lease", &opts, &l, &err);
    }
    if (st != IL_OK)
        T_FAIL("%s: il_acquire: %s", s->what, err.message);
    if (scenario_failed(s, il_lease_renew(l, &err), IL_OK))
        T_EQ(il_lease_renew(l, &err), IL_OK);
    T_EQ(il_lease_status(l), IL_OK);
    if (scenario_failed(s, il_lease_release(l, &err), IL_OK))
        T_EQ(il_lease_release(l, &err), IL_OK);
    il_lease_free(l);
    (void)STEP(NOT_HELD, GET, "lease", NULL, 0);
}

/* The same for one that waited in vain: nobody may stay in the queue. */
static void
play_waiting_lease(struct scenario *s)
{
    il_acquire_opts opts = IL_ACQUIRE_OPTS_INIT;
    il_lease       *l    = NULL;
    il_error        err  = { 0 };

    (void)STEP(OK, ACQUIRE, "taken", "other", 0);
    opts.wait_ms = 5;
    il_status st = il_acquire(s->h, "taken", &opts, &l, &err);
    if (!scenario_failed(s, st == IL_HELD ? IL_OK : st, IL_OK))
        T_EQ(st, IL_HELD);
    il_op op = apply(s, t_op(IL_OP_LIST, "taken", NULL, 0, T_ARGS(.flags = IL_LIST_WAITERS)), NULL);
    (void)T_IS(&op, IL_OK);
    if (op.out.n_items != 0 && !s->lasting)
        T_FAIL("%s: il_acquire left %zu in the queue", s->what, op.out.n_items);
    il_op_release(&op);
}

void
scenario_play(struct scenario *s)
{
    play_exclusive(s);
    play_modes(s);
    play_deadlock(s);
    play_lease(s);
    play_waiting_lease(s);
    scenario_run(s);
    scenario_once(s);
    scenario_job(s);
    scenario_cache(s);
    if (!s->short_one) {
        play_order(s);
        play_history(s);
        play_many(s);
        play_time(s);
    }
    /* Also after a failure that nobody was told of, such as a detail that was left out. */
    s->healed(s->cookie);
    s->n_failures++;
    scenario_look(s);
}
