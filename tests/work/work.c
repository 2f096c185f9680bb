/*
 * work.c: src/apps/work with a toy kind of work: each slot is executed once, everything that should
 * stop a run does, and schedules tick once.
 */
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "toy.h"

#include "harness/clock.h"

#define SLOTS 40

#define TOY_TEST(name)                     \
    static void name##_on(struct toys *t); \
    T_TEST(name)                           \
    {                                      \
        struct toys t;                     \
        toys_init(&t, s);                  \
        name##_on(&t);                     \
        toys_release(&t);                  \
    }                                      \
    static void name##_on(struct toys *t)

/* Two executors, in two processes where the store can be shared: each slot is executed once. */
TOY_TEST(each_slot_once)
{
    char          ids[SLOTS][IL_ID_BYTES_MAX + 1];
    struct t_proc p;
    il           *other_h = NULL;
    struct work  *other   = NULL;
    bool          spawned = t->s->engine->durable;

    for (size_t i = 0; i < SLOTS / 2; i++)
        toy_slot(t, "quick", ids[i]);
    struct work *w = toy_open(t, t->h, (struct toy_opts){ .mode = WORK_SERVE });
    if (spawned) {
        toy_spawn(t, &p);
    } else {
        other_h = t_store_open_real(t->s);
        other   = toy_open(t, other_h, (struct toy_opts){ .mode = WORK_SERVE });
    }
    for (size_t i = SLOTS / 2; i < SLOTS; i++) {
        toy_slot(t, "quick", ids[i]);
        work_slot_created(w, TENANT, ids[i], "quick"); /* this one hears of it at once */
    }
    for (size_t i = 0; i < SLOTS; i++) {
        struct toy_run run = toy_await(t, ids[i], IL_RUN_COMPLETED);
        T_EQ(run.progress, 100);
        T_EQ(toy_begun(t, "quick", ids[i]), 1);
    }
    if (spawned) {
        (void)close(p.in);
        p.in = -1;
        T_EQ(t_proc_exit(&p, SOON_MS), 0);
        t_proc_release(&p);
    } else {
        work_close(other);
        il_close(other_h);
    }
    work_close(w);
    T_EQ(toy_begun(t, "quick", NULL), SLOTS);
}

static struct work *
serve(struct toys *t)
{
    return toy_open(t, t->h, (struct toy_opts){ .mode = WORK_SERVE });
}

static void
apply(struct toys *t, il_op *op)
{
    T_EQ(il_apply(t->h, op, 1, NULL), IL_OK);
    T_EQ(op->status, IL_OK);
    il_op_release(op);
}

TOY_TEST(cancel)
{
    char  id[IL_ID_BYTES_MAX + 1];
    il_op op = { .type   = IL_OP_RUN_CANCEL,
                 .tenant = TENANT,
                 .in.run = { .id = id, .error = "not any more" } };

    struct work *w = serve(t);
    toy_slot(t, "stages", id);
    work_slot_created(w, TENANT, id, "stages");
    (void)toy_await(t, id, IL_RUN_RUNNING);
    apply(t, &op);
    struct toy_run run = toy_await(t, id, IL_RUN_CANCELLED);
    T_HAS(run.error, "not any more");
    T_EQ(run.progress, 50); /* as far as it came */
    T_STREQ(run.stage, "");
    T_EQ(t_event_count(&t->returned), 1);
    T_TRUE(t_event_count(&t->stopped) >= 1);
    work_close(w);
}

/* A slot that was cancelled before it began is never executed. */
TOY_TEST(cancelled_slot)
{
    char         id[IL_ID_BYTES_MAX + 1], next[IL_ID_BYTES_MAX + 1];
    il_op        op = { .type   = IL_OP_RUN_CANCEL,
                        .tenant = TENANT,
                        .in.run = { .id = id, .error = "no" } };
    struct work *w  = serve(t);

    work_stop(w); /* from now on it starts nothing */
    toy_slot(t, "quick", id);
    work_slot_created(w, TENANT, id, "quick");
    T_EQ(il_apply(t->h, &op, 1, NULL), IL_OK);
    work_cancelled(w, &op.out.runs[0]);
    il_op_release(&op);
    struct work_stats stats;
    work_stats(w, &stats);
    T_EQU(stats.n_waiting, 0);
    work_close(w);
    w = serve(t);
    toy_slot(t, "quick", next);
    (void)toy_await(t, next, IL_RUN_COMPLETED);
    T_EQ(toy_look(t, id).state, IL_RUN_CANCELLED);
    T_EQ(toy_begun(t, "quick", id), 0);
    work_close(w);
}

TOY_TEST(broken_lease)
{
    char         id[IL_ID_BYTES_MAX + 1];
    il_op        op = { .type = IL_OP_BREAK, .tenant = TENANT, .key = CLASS ":stages" };
    struct work *w  = serve(t);

    op.in.lock.reason = "stuck";
    op.flags          = IL_BREAK_NOW;
    toy_slot(t, "stages", id);
    op.fence = toy_await(t, id, IL_RUN_RUNNING).fence;
    apply(t, &op);
    T_WAIT(&t->returned, 1, SOON_MS);
    T_WAIT(&t->events[WORK_EVENT_broken], 1, SOON_MS);
    T_TRUE(toy_look(t, id).state > IL_RUN_COMPLETED);
    work_close(w);
}

/* The total deadline stops a run that is alive, the other one a run that is not. */
TOY_TEST(deadlines)
{
    char           id[IL_ID_BYTES_MAX + 1];
    struct work   *w = serve(t);
    struct toy_run run;

    toy_slot(t, "late", id);
    run = toy_await(t, id, IL_RUN_RUNNING);
    run = toy_await(t, id, IL_RUN_TIMEOUT);
    T_STREQ(run.error, "timed out after 600ms");
    T_EQ(t_event_count(&t->returned), 1);
    toy_slot(t, "stalled", id);
    run = toy_await(t, id, IL_RUN_TIMEOUT);
    T_HAS(run.error, "stalled: no step, output or progress for 600ms");
    T_EQ(t_event_count(&t->returned), 2);
    toy_slot(t, "alive", id);
    (void)toy_await(t, id, IL_RUN_COMPLETED);
    work_close(w);
}

TOY_TEST(failures)
{
    char              id[IL_ID_BYTES_MAX + 1];
    struct work      *w = serve(t);
    struct work_stats stats;

    toy_slot(t, "fails", id);
    T_STREQ(toy_await(t, id, IL_RUN_FAILED).error, "it always does");
    toy_slot(t, "lazy", id);
    T_STREQ(toy_await(t, id, IL_RUN_FAILED).error, "failed without an error message");
    T_WAIT(&t->events[WORK_EVENT_run_ended], 2, SOON_MS);
    work_stats(w, &stats);
    T_EQU(stats.n_failed, 2);
    T_EQU(stats.n_started, 2);
    work_close(w);
}

/* A shutdown interrupts what runs, and leaves the slots to others. */
TOY_TEST(shutdown)
{
    char         id[IL_ID_BYTES_MAX + 1], next[IL_ID_BYTES_MAX + 1];
    struct work *w = toy_open(t, t->h, (struct toy_opts){ .mode = WORK_SERVE, .shutdown_ms = 100 });

    toy_slot(t, "stages", id);
    (void)toy_await(t, id, IL_RUN_RUNNING);
    work_stop(w);
    T_TRUE(work_is_stopping(w));
    T_TRUE(!work_pause(w, SOON_MS));
    toy_slot(t, "quick", next);
    work_slot_created(w, TENANT, next, "quick");
    work_close(w);
    T_STREQ(toy_look(t, id).error, "the server was shut down");
    T_EQ(toy_look(t, id).state, IL_RUN_INTERRUPTED);
    T_EQ(toy_look(t, next).state, IL_RUN_PENDING);
    w = serve(t);
    (void)toy_await(t, next, IL_RUN_COMPLETED);
    work_close(w);
    T_EQ(toy_begun(t, "stages", id), 1); /* not repeated */
}

/* An executor of a command executes what it is told to, and nothing else. */
TOY_TEST(here)
{
    char         id[IL_ID_BYTES_MAX + 1], other[IL_ID_BYTES_MAX + 1];
    struct work *w = toy_open(t, t->h, (struct toy_opts){ .mode = WORK_HERE });

    toy_slot(t, "lazy", other);
    toy_slot(t, "quick", id);
    work_slot_created(w, TENANT, id, "quick");
    (void)toy_await(t, id, IL_RUN_COMPLETED);
    work_rescan(w);
    T_EQ(toy_look(t, other).state, IL_RUN_PENDING);
    work_close(w);
    T_EQ(toy_begun(t, "lazy", NULL), 0);
    w = toy_open(t, t->h, (struct toy_opts){ .mode = WORK_ASK });
    work_slot_created(w, TENANT, other, "lazy");
    work_close(w);
    T_EQ(toy_look(t, other).state, IL_RUN_PENDING);
}

static void
take_detail(void *cookie, const struct il__data_detail *d)
{
    size_t *n = cookie;

    T_STREQ(d->pipeline, "stages");
    T_STREQ(d->version, "1");
    T_STREQ(d->parameters, "{\"who\":\"Kilroy\"}");
    ++*n;
}

/* What a run shows: its stage, its log, its history. */
TOY_TEST(shown)
{
    char         id[IL_ID_BYTES_MAX + 1];
    struct work *w     = serve(t);
    size_t       n     = 0;
    int64_t      limit = t_real_ms() + SOON_MS;
    il_op        log   = { .type = IL_OP_RUN_LOG, .tenant = TENANT, .in.run = { .id = id } };

    toy_slot(t, "stages", id);
    (void)toy_await(t, id, IL_RUN_RUNNING);
    while (strcmp(toy_look(t, id).stage, "halfway") != 0) {
        if (t_real_ms() > limit)
            T_FAIL("the stage of %s is not shown", id);
        (void)poll(NULL, 0, 5);
    }
    work_stop(w);
    work_close(w);
    T_EQ(il_apply(t->h, &log, 1, NULL), IL_OK);
    T_EQ(log.status, IL_OK);
    T_TRUE(log.out.value_bytes > 0);
    T_HAS((const char *)log.out.value, "== Kilroy is here\n");
    T_HAS((const char *)log.out.value, "== INTERRUPTED: the server was shut down\n");
    il_op_release(&log);
    T_EQ(il__data_history_detail(t->data, TENANT, id, take_detail, &n, NULL), IL_OK);
    T_EQ(n, 1);
}

/* A tick is executed once by two executors. */
TOY_TEST(tick_once)
{
    /* The minute that has begun is made up for. A minute may end meanwhile: then there are two. */
    int64_t minute = (int64_t)time(NULL) / 60;
    il     *h      = t_store_open_real(t->s);

    t->with_ticks  = true;
    struct work *w = serve(t), *other = toy_open(t, h, (struct toy_opts){ .mode = WORK_SERVE });
    T_WAIT(&t->events[WORK_EVENT_tick], 1, SOON_MS);
    T_WAIT(&t->events[WORK_EVENT_run_ended], 1, SOON_MS);
    work_close(other);
    work_close(w);
    il_close(h);
    size_t n = (size_t)((int64_t)time(NULL) / 60 - minute) + 1;
    T_TRUE(toy_begun(t, "tick", NULL) >= 1 && toy_begun(t, "tick", NULL) <= n);
    T_TRUE(t_event_count(&t->events[WORK_EVENT_tick]) <= n);
    /* of the second minute, if the run of the first has not ended: each executor is told so */
    T_TRUE(t_event_count(&t->events[WORK_EVENT_tick_skipped]) <= 2 * (n - 1));
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(each_slot_once), T_ROW(cancel),    T_ROW(cancelled_slot), T_ROW(broken_lease),
        T_ROW(deadlines),      T_ROW(failures),  T_ROW(shutdown),       T_ROW(here),
        T_ROW(shown),          T_ROW(tick_once),
    };
    int status = toy_main(argc, argv);

    return status >= 0 ? status : T_SUITE("work", tests);
}
