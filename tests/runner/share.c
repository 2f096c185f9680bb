/*
 * share.c: several runners on one store, and the conflict policies.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "rig.h"

#include "apps/runner/trigger_plan.h"

#define TRIGGERS 100

struct crowd {
    struct rig        *g;
    struct runner     *runner;
    pthread_barrier_t *barrier;
    enum runner_answer answer;
    char               id[IL_ID_BYTES_MAX + 1];
};

static void *
trigger_main(void *arg)
{
    struct crowd *c   = arg;
    il_error      err = { .message = "" };

    (void)pthread_barrier_wait(c->barrier);
    c->answer = rig_trigger_with(c->g, c->runner, "p", NULL, c->id, &err);
    return NULL;
}

/* A hundred triggers at once over two servers: one run. */
RIG_TEST(one_of_many)
{
    struct crowd      crowd[TRIGGERS];
    pthread_t         threads[TRIGGERS];
    pthread_barrier_t barrier;
    il               *other_h;
    size_t            n_new = 0;

    rig_pipeline(g, "p",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'echo x >> %1$s/begun; "
                 "while [ ! -e %1$s/go ]; do sleep 0.05; done'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    struct runner *other = rig_another(g, (struct rig_opts){ 0 }, &other_h);
    CHECK(pthread_barrier_init(&barrier, NULL, TRIGGERS) == 0);
    for (size_t i = 0; i < TRIGGERS; i++) {
        crowd[i] =
            (struct crowd){ .g = g, .runner = i % 2 == 0 ? g->runner : other, .barrier = &barrier };
        CHECK(pthread_create(&threads[i], NULL, trigger_main, &crowd[i]) == 0);
    }
    for (size_t i = 0; i < TRIGGERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < TRIGGERS; i++) {
        T_TRUE(crowd[i].answer == RUNNER_TRIGGERED || crowd[i].answer == RUNNER_RUNNING);
        T_STREQ(crowd[i].id, crowd[0].id);
        n_new += crowd[i].answer == RUNNER_TRIGGERED;
    }
    T_EQ(n_new, 1);
    char path[T_PATH_BYTES];
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    struct rig_run run = rig_end(g, crowd[0].id, IL_RUN_COMPLETED);
    T_EQ(run.n_joined, TRIGGERS - 1);
    T_EQ(rig_lines(g, "begun"), 1);
    rig_all_free(g);
    CHECK(pthread_barrier_destroy(&barrier) == 0);
    runner_close(other);
    il_close(other_h);
}

/* Slots that nobody was told of are executed once each, by either of two servers. */
RIG_TEST(slots_of_nobody)
{
    char ids[20][IL_ID_BYTES_MAX + 1];
    il  *other_h;

    rig_pipeline(g, "p",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'echo "
                 "$INTERLOCK_RUN_ID >> %1$s/begun'}\n",
                 g->scratch);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        rig_slot(g, "p", ids[i]);
    rig_open(g, (struct rig_opts){ 0 });
    struct runner *other = rig_another(g, (struct rig_opts){ 0 }, &other_h);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        (void)rig_end(g, ids[i], IL_RUN_COMPLETED);
    T_EQ(rig_lines(g, "begun"), ARRAY_LEN(ids));
    char path[T_PATH_BYTES];
    t_path(path, "%s/begun", g->scratch);
    char *text = t_file_read(path, NULL);
    char *at   = text;
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) { /* first in, first out */
        T_TRUE(strncmp(at, ids[i], strlen(ids[i])) == 0);
        at = strchr(at, '\n') + 1;
    }
    free(text);
    runner_close(other);
    il_close(other_h);
}

/* Queue: in order; beyond queue_max: refused. */
RIG_TEST(queue)
{
    char ids[4][IL_ID_BYTES_MAX + 1], extra[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p",
                 "on_conflict: queue\nqueue_max: 3\nsteps:\n  - {step_id: a, type: command, shell: "
                 "true, run: 'echo $INTERLOCK_RUN_ID >> %1$s/order; while [ ! -e %1$s/go ]; do "
                 "sleep 0.05; done'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "p", ids[0]), RUNNER_TRIGGERED);
    rig_await(g, ids[0], IL_RUN_RUNNING);
    for (size_t i = 1; i < 4; i++)
        T_EQ(rig_trigger(g, "p", ids[i]), RUNNER_TRIGGERED);
    T_EQ(rig_trigger(g, "p", extra), RUNNER_QUEUE_FULL);
    char path[T_PATH_BYTES];
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    for (size_t i = 0; i < 4; i++)
        (void)rig_end(g, ids[i], IL_RUN_COMPLETED);
    t_path(path, "%s/order", g->scratch);
    char *text = t_file_read(path, NULL);
    char *at   = text;
    for (size_t i = 0; i < 4; i++) {
        T_TRUE(strncmp(at, ids[i], strlen(ids[i])) == 0);
        at = strchr(at, '\n') + 1;
    }
    free(text);
}

RIG_TEST(other_policies)
{
    char first[IL_ID_BYTES_MAX + 1], id[IL_ID_BYTES_MAX + 1], second[IL_ID_BYTES_MAX + 1];

    rig_pipeline(
        g, "skip",
        "on_conflict: skip\nsteps:\n  - {step_id: a, type: command, run: [sleep, '60']}\n");
    rig_pipeline(
        g, "reject",
        "on_conflict: reject\nlock_acquisition_retries: 1\nlock_acquisition_retry_delay_seconds: "
        "1\nsteps:\n  - {step_id: a, type: command, run: [sleep, '60']}\n");
    rig_pipeline(g, "newest",
                 "on_conflict: cancel-running\nsteps:\n  - {step_id: a, type: command, shell: "
                 "true, run: 'echo $$ > %1$s/$INTERLOCK_RUN_ID; exec sleep 60'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "skip", first), RUNNER_TRIGGERED);
    T_EQ(rig_trigger(g, "skip", id), RUNNER_SKIPPED);
    T_STREQ(id, first);
    T_EQ(rig_trigger(g, "reject", first), RUNNER_TRIGGERED);
    int64_t began = t_real_ms();
    T_EQ(rig_trigger(g, "reject", id), RUNNER_REJECTED);
    T_TRUE(t_real_ms() - began >= 950);
    T_STREQ(id, first);
    T_EQ(rig_trigger(g, "newest", first), RUNNER_TRIGGERED);
    pid_t pid = (pid_t)rig_number(g, first);
    T_EQ(rig_trigger(g, "newest", second), RUNNER_TRIGGERED);
    T_HAS(rig_end(g, first, IL_RUN_CANCELLED).error, second);
    T_TRUE(t_pid_gone(pid, 0));
    rig_await(g, second, IL_RUN_RUNNING);
}

/* Room is given to tenants in turn, and a run that waits for its key takes none. */
RIG_TEST(room)
{
    char                ids[6][IL_ID_BYTES_MAX + 1];
    char                name[8];
    struct runner_stats stats;

    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        rig_pipeline(g, name,
                     "on_conflict: queue\nsteps:\n  - {step_id: a, type: command, shell: true, "
                     "run: 'while [ ! -e %1$s/go ]; do sleep 0.05; done'}\n",
                     g->scratch);
    }
    rig_open(g, (struct rig_opts){ .runs_max = 2 });
    T_EQ(rig_trigger(g, "p0", ids[0]), RUNNER_TRIGGERED);
    rig_await(g, ids[0], IL_RUN_RUNNING);
    T_EQ(rig_trigger(g, "p0", ids[1]), RUNNER_TRIGGERED); /* waits for p0 */
    T_EQ(rig_trigger(g, "p1", ids[2]), RUNNER_TRIGGERED);
    rig_await(g, ids[2], IL_RUN_RUNNING); /* has the second place */
    T_EQ(rig_trigger(g, "p2", ids[3]), RUNNER_TRIGGERED);
    T_EQ(rig_trigger(g, "p3", ids[4]), RUNNER_TRIGGERED);
    int64_t limit = t_real_ms() + SOON_MS;
    do { /* the store knows that one runs a moment before its runner does */
        runner_stats(g->runner, &stats);
        (void)poll(NULL, 0, 1);
    } while (stats.work.n_waiting != 3 && t_real_ms() < limit);
    T_EQU(stats.work.n_running, 2);
    T_EQU(stats.work.n_waiting, 3);
    T_EQ(rig_look(g, ids[3]).state, IL_RUN_PENDING);
    char path[T_PATH_BYTES];
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    for (int i = 0; i < 5; i++)
        (void)rig_end(g, ids[i], IL_RUN_COMPLETED);
}

/* Tenants take turns: one with many runs does not keep another one out. */
RIG_TEST(turns)
{
    char  name[16], path[T_PATH_BYTES];
    char  text[1024];
    il_op ops[13];

    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        rig_pipeline(g, name,
                     "steps:\n  - {step_id: a, type: command, shell: true, run: 'echo busy >> "
                     "%1$s/order'}\n",
                     g->scratch);
    }
    (void)snprintf(text, sizeof text,
                   "pipeline_id: only\nsteps:\n  - {step_id: a, type: command, shell: true, run: "
                   "'echo other >> %s/order'}\n",
                   g->scratch);
    rig_pipeline_of(g, "other", "only", text);
    char ids[13][37], keys[13][64];
    for (int i = 0; i < 13; i++) { /* the other tenant's is the last */
        ops[i] = (il_op){ .type   = IL_OP_RUN_START,
                          .flags  = IL_RUN_SLOT,
                          .tenant = i < 12 ? TENANT : "other" };
        T_EQ(il_uuid(ids[i]), IL_OK);
        if (i < 12)
            (void)snprintf(keys[i], sizeof keys[i], "pipeline:p%d", i);
        else
            (void)snprintf(keys[i], sizeof keys[i], "pipeline:only");
        ops[i].key         = keys[i];
        ops[i].in.run.id   = ids[i];
        ops[i].in.run.meta = "{\"parameters\":{}}";
    }
    T_EQ(il_apply(g->h, ops, 13, NULL), IL_OK);
    for (int i = 0; i < 13; i++) {
        T_EQ(ops[i].status, IL_OK);
        il_op_release(&ops[i]);
    }
    rig_open(g, (struct rig_opts){ .runs_max = 1 });
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 13, SOON_MS);
    t_path(path, "%s/order", g->scratch);
    char *order = t_file_read(path, NULL);
    char *other = strstr(order, "other\n");
    T_TRUE(other != NULL && other - order <= 10); /* after two of the busy one's at most */
    free(order);
}

/* A slot of another tenant. */
static void
slot_of(struct rig *g, const char *tenant, const char *key, char id[IL_ID_BYTES_MAX + 1])
{
    il_op op = { .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT, .tenant = tenant, .key = key };

    T_EQ(il_uuid(id), IL_OK);
    op.in.run.id   = id;
    op.in.run.meta = "{\"parameters\":{}}";
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
}

/* Long runs of one tenant do not take all places: half of them are left for others. */
RIG_TEST(places)
{
    char name[16], path[T_PATH_BYTES], text[1024];
    char ids[4][IL_ID_BYTES_MAX + 1], other[IL_ID_BYTES_MAX + 1];

    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        rig_pipeline(g, name,
                     "steps:\n  - {step_id: a, type: command, shell: true, run: "
                     "'while [ ! -e %1$s/go ]; do sleep 0.05; done'}\n",
                     g->scratch);
        rig_slot(g, name, ids[i]);
    }
    (void)snprintf(text, sizeof text,
                   "pipeline_id: only\nsteps:\n"
                   "  - {step_id: a, type: command, shell: true, run: "
                   "'echo $$ > %s/other'}\n",
                   g->scratch);
    rig_pipeline_of(g, "other", "only", text);
    rig_open(g, (struct rig_opts){ .runs_max = 4 });
    rig_await(g, ids[1], IL_RUN_RUNNING);
    slot_of(g, "other", PIPELINE_KEY_PREFIX "only", other);
    T_TRUE(rig_number(g, "other") > 0);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 1, SOON_MS);
    T_EQ(rig_look(g, ids[3]).state, IL_RUN_PENDING);
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    for (int i = 0; i < 4; i++)
        (void)rig_end(g, ids[i], IL_RUN_COMPLETED);
}

/* More pending runs of two tenants than a few pages hold: all of them are found, and the oldest go
 * first. */
RIG_TEST(backlog)
{
    enum {
        N         = 9500,
        BATCH     = 500,
        PIPELINES = 10
    };
    static const char *const tenants[] = { TENANT, "other" };
    static il_op             ops[BATCH];
    static char              ids[BATCH][37];
    static char              keys[PIPELINES][32];
    char                     first[2][37], text[1024], path[T_PATH_BYTES];
    struct runner_stats      stats;

    if (strcmp(g->s->engine->name, "memory") != 0)
        return; /* what it does is the same on all, and takes longer */
    for (size_t i = 0; i < PIPELINES; i++)
        (void)snprintf(keys[i], sizeof keys[i], PIPELINE_KEY_PREFIX "p%zu", i);
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < PIPELINES; i++) {
            (void)snprintf(text, sizeof text,
                           "pipeline_id: p%zu\non_conflict: queue\nsteps:\n  - {step_id: a, "
                           "type: command, shell: true, run: 'while [ ! -e %s/go ]; do sleep 0.05; "
                           "done'}\n",
                           i, g->scratch);
            rig_pipeline_of(g, tenants[t], keys[i] + strlen(PIPELINE_KEY_PREFIX), text);
        }
        for (size_t i = 0; i < N; i++) {
            il_op *op = &ops[i % BATCH];
            *op       = (il_op){ .type   = IL_OP_RUN_START,
                                 .flags  = IL_RUN_SLOT,
                                 .tenant = tenants[t],
                                 .key    = keys[i % PIPELINES] };
            T_EQ(il_uuid(ids[i % BATCH]), IL_OK);
            op->in.run = (il_run_in){ .id        = ids[i % BATCH],
                                      .meta      = "{\"parameters\":{}}",
                                      .policy    = IL_POLICY_QUEUE,
                                      .queue_max = N };
            if (i == 0)
                memcpy(first[t], ids[0], sizeof first[t]);
            if (i % BATCH != BATCH - 1)
                continue;
            T_EQ(il_apply(g->h, ops, BATCH, NULL), IL_OK);
            for (size_t j = 0; j < BATCH; j++)
                il_op_release(&ops[j]);
        }
    }
    rig_open(g, (struct rig_opts){ .runs_max = 4 });
    int64_t began = t_real_ms();
    int64_t limit = began + SOON_MS;
    do {
        runner_stats(g->runner, &stats);
        (void)poll(NULL, 0, 10);
    } while (stats.work.n_waiting + stats.work.n_running != 2 * N && t_real_ms() < limit);
    print_message("# found after %d ms\n", (int)(t_real_ms() - began));
    T_EQU(stats.work.n_waiting + stats.work.n_running, 2 * N);
    rig_await(g, first[0], IL_RUN_RUNNING);
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    (void)rig_end(g, first[0], IL_RUN_COMPLETED);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 2, SOON_MS);
}

/* A schedule fires once with three servers. */
RIG_TEST(schedule)
{
    struct runner *others[2];
    il            *handles[2];

    rig_pipeline(g, "p",
                 "schedule: {cron: '* * * * *', catch_up: 2m}\nsteps:\n  - {step_id: a, type: "
                 "command, shell: true, run: 'echo $INTERLOCK_RUN_ID >> %1$s/ticks'}\n",
                 g->scratch);
    /* The minute that has begun is made up for: so it need not be waited for. A minute may end
     * meanwhile: then there are two. */
    int64_t minute = (int64_t)time(NULL) / 60;
    rig_open(g, (struct rig_opts){ .keep_ms = 1 });
    for (int i = 0; i < 2; i++)
        others[i] = rig_another(g, (struct rig_opts){ .keep_ms = 1 }, &handles[i]);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 1, SOON_MS);
    for (int i = 0; i < 2; i++) {
        runner_close(others[i]);
        il_close(handles[i]);
    }
    rig_close(g);
    /* Nor after a restart: though runs are not kept, those of ticks that may be made up for are. A
     * tick of q comes with that of p, in one commit: when its run has ended, both were looked
     * at. */
    il_op sweep = { .type = IL_OP_SWEEP };
    T_EQ(il_apply(g->h, &sweep, 1, NULL), IL_OK);
    il_op_release(&sweep);
    rig_pipeline(g, "q",
                 "schedule: {cron: '* * * * *', catch_up: 2m}\nsteps:\n  - {step_id: a, type: "
                 "command, shell: true, run: 'echo $INTERLOCK_RUN_ID >> %1$s/q'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ .keep_ms = 1 });
    for (unsigned wanted = 2; rig_lines(g, "q") == 0; wanted++)
        T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], wanted, SOON_MS);
    size_t n = (size_t)((int64_t)time(NULL) / 60 - minute) + 1;
    T_TRUE(rig_lines(g, "ticks") >= 1 && rig_lines(g, "ticks") <= n);
    T_TRUE(t_event_count(&g->notes.events[RUNNER_EVENT_tick]) <= 2 * n);
}

/* Somebody holds the key of a pipeline, or (fence) does so no more. */
static uint64_t
hold(struct rig *g, const char *pipeline, uint64_t fence)
{
    il_op op = { .type   = fence == 0 ? IL_OP_ACQUIRE : IL_OP_RELEASE,
                 .tenant = TENANT,
                 .holder = "somebody",
                 .fence  = fence };
    char  key[64];

    (void)snprintf(key, sizeof key, "%s%s", PIPELINE_KEY_PREFIX, pipeline);
    op.key = key;
    if (fence == 0)
        op.in.lock.ttl_ms = 600000;
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    fence = op.out.fence;
    il_op_release(&op);
    return fence;
}

/* Whoever holds the key of a pipeline without a run of ours runs it: join and skip report him. */
RIG_TEST(foreign_lock)
{
    static const char *const policies[] = { "join", "skip", "reject" };
    enum runner_answer       answers[]  = { RUNNER_RUNNING, RUNNER_SKIPPED, RUNNER_REJECTED };

    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        rig_pipeline(g, policies[i],
                     "on_conflict: %s\nlock_acquisition_retries: 0\nsteps:\n"
                     "  - {step_id: a, type: command, run: ['true']}\n",
                     policies[i]);
    rig_open(g, (struct rig_opts){ 0 });
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        struct pipeline *p = il__catalogue_get(runner_catalogue(g->runner), TENANT, policies[i]);
        AUTO_FREE char  *outside = NULL;
        char             id[37];
        il_error         err = { .message = "" };
        il_op            op;
        struct runner_trigger t     = { .tenant = TENANT, .pipeline = p, .id = id, .type = "api" };
        uint64_t              fence = hold(g, policies[i], 0);
        T_EQ(il_uuid(id), IL_OK);
        T_EQ(runner_trigger(g->runner, &t, &op, &outside, &err), answers[i]);
        if (answers[i] != RUNNER_REJECTED)
            T_STREQ(outside, "somebody");
        il_op_release(&op);
        (void)hold(g, policies[i], fence);
        il__pipeline_unref(p);
    }
}

/* ---- the rules of a trigger, without a store ------------------------------------------------- */

static enum trigger_do
tell(struct trigger_plan *plan, enum trigger_happened what, il_status st)
{
    return trigger_next(plan, &(struct trigger_event){ .what = what, .status = st });
}

T_TEST(plan_of_a_trigger)
{
    struct pipeline p = {
        .id = "p", .key = "pipeline:p", .on_conflict = IL_POLICY_REJECT, .lock_retries = 2
    };
    il_run_info         run = { .id = "first" };
    il_op               op  = { .in.run = { .id = "mine", .minute_max = 5 } };
    struct trigger_plan plan;

    (void)s;
    /* reject: two retries, of which the rate does not count the repetitions */
    op.status   = IL_HELD;
    op.out.runs = &run, op.out.n_runs = 1;
    T_EQ(trigger_begin(&plan, &p, &op), TRIGGER_START);
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_OK), TRIGGER_PAUSE);
    T_EQ(op.in.run.minute_max, 0);
    T_EQ(tell(&plan, TRIGGER_PAUSED, IL_OK), TRIGGER_START);
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_OK), TRIGGER_PAUSE);
    T_EQ(tell(&plan, TRIGGER_PAUSED, IL_OK), TRIGGER_START);
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_OK), TRIGGER_END);
    T_EQ(plan.answer, RUNNER_REJECTED);
    T_STREQ(plan.holder, "first");
    /* a server that stops tries once more */
    struct trigger_event stop = { .what = TRIGGER_PAUSED, .stopping = true };
    T_EQ(trigger_begin(&plan, &p, &op), TRIGGER_START);
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_OK), TRIGGER_PAUSE);
    T_EQ(trigger_next(&plan, &stop), TRIGGER_START);
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_OK), TRIGGER_END);
    /* a store that does not answer is no refusal */
    T_EQ(trigger_begin(&plan, &p, &op), TRIGGER_START);
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_STORE), TRIGGER_END);
    T_TRUE(plan.answer == RUNNER_FAILED && plan.unheard);
    /* a probe: asked only without a live run; who follows another's looks again */
    struct trigger_event live = { .what = TRIGGER_LOOKED, .live = true };
    p.preflight               = PIPELINE_PROBE_COMMAND;
    p.on_conflict             = IL_POLICY_JOIN;
    T_EQ(trigger_begin(&plan, &p, &op), TRIGGER_LOOK);
    T_EQ(trigger_next(&plan, &live), TRIGGER_START);
    T_EQ(trigger_begin(&plan, &p, &op), TRIGGER_LOOK);
    T_EQ(tell(&plan, TRIGGER_LOOKED, IL_OK), TRIGGER_PROBE);
    T_EQ(tell(&plan, TRIGGER_FOLLOWED, IL_OK), TRIGGER_LOOK);
    T_EQ(tell(&plan, TRIGGER_LOOKED, IL_OK), TRIGGER_PROBE);
    T_EQ(tell(&plan, TRIGGER_PROBED, IL_TIMEOUT), TRIGGER_END);
    T_TRUE(plan.answer == RUNNER_UNPROBED && !plan.unheard);
    struct trigger_event outside = { .what = TRIGGER_FOLLOWED, .status = IL_HELD, .outside = "77" };
    T_EQ(trigger_begin(&plan, &p, &op), TRIGGER_LOOK);
    T_EQ(trigger_next(&plan, &outside), TRIGGER_END);
    T_TRUE(plan.answer == RUNNER_RUNNING && plan.outside && plan.run == NULL);
    T_STREQ(plan.id, "77");
    /* our own trigger, repeated after its answer was lost, is executed by whoever has it */
    run.id    = "mine";
    op.status = IL_DUPLICATE;
    T_EQ(tell(&plan, TRIGGER_STARTED, IL_OK), TRIGGER_END);
    T_TRUE(plan.answer == RUNNER_TRIGGERED && !plan.execute);
}

/* One probe of a pipeline at a time; its outcome is that of followers with the same values. */
T_TEST(one_probe_at_a_time)
{
    struct pipeline        p = { .id = "p", .tenant = "t" }, q = { .id = "p", .tenant = "u" };
    struct pipeline_values ab      = { .n = 2, .items = { { "a", "1" }, { "b", "2" } } },
                           ba      = { .n = 2, .items = { { "b", "2" }, { "a", "1" } } },
                           a       = { .n = 1, .items = { { "a", "1" } } };
    struct trigger_probe *list     = NULL;
    struct trigger_probe  leader   = { .pipeline = &p, .values = &ab },
                         other     = { .pipeline = &q, .values = &ab },
                         same      = { .pipeline = &p, .values = &ba },
                         different = { .pipeline = &p, .values = &a }, gone = same, next = same;
    const il_error running = { .status = IL_HELD, .message = "running" };

    (void)s;
    T_TRUE(trigger_probe_begin(&list, &leader));
    T_TRUE(trigger_probe_begin(&list, &other)); /* of another tenant */
    T_TRUE(!trigger_probe_begin(&list, &same));
    T_TRUE(!trigger_probe_begin(&list, &gone));
    T_TRUE(!trigger_probe_begin(&list, &different));
    trigger_probe_leave(&gone);
    T_TRUE(trigger_probe_end(&list, &leader, IL_HELD, "77", &running) == &different);
    T_TRUE(different.next == &same && same.next == NULL && !gone.ended);
    T_TRUE(same.ended && different.ended);
    T_EQ(same.status, IL_HELD);
    T_STREQ(same.outside, "77");
    T_STREQ(same.error.message, "running");
    T_EQ(different.status, IL_OK); /* it looks again */
    T_TRUE(different.outside == NULL);
    il__free(same.outside);
    T_TRUE(trigger_probe_begin(&list, &leader)); /* the next one */
    T_TRUE(!trigger_probe_begin(&list, &next));
    T_TRUE(trigger_probe_end(&list, &leader, IL_OK, NULL, NULL) == &next);
    T_TRUE(next.ended && next.status == IL_OK);
    T_TRUE(trigger_probe_end(&list, &other, IL_OK, NULL, NULL) == NULL && list == NULL);
}

/*
 * More ticks wait for their keys than there are threads for that: those of others come
 * nevertheless, and none of them is lost. A tick of another tenant that may have to wait has a
 * thread, too.
 */
RIG_TEST(slow_schedules)
{
    static const char *const others[] = { "aa", "zz" }; /* before and after the busy one */
    char                     text[1024];
    enum {
        N = 17
    };
    char     name[16];
    uint64_t fences[N];

    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        rig_pipeline(g, name,
                     "on_conflict: reject\nlock_acquisition_retries: "
                     "100\nlock_acquisition_retry_delay_seconds: 1\nschedule: {cron: '* * * * *', "
                     "catch_up: 2m}\nsteps:\n  - {step_id: a, type: command, shell: true, run: "
                     "'echo $$ > %1$s/s%2$d'}\n",
                     g->scratch, i);
        fences[i] = hold(g, name, 0);
    }
    rig_pipeline(g, "quick",
                 "schedule: {cron: '* * * * *', catch_up: 2m}\nsteps:\n  - {step_id: a, type: "
                 "command, shell: true, run: 'echo $$ > %1$s/quick'}\n",
                 g->scratch);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        (void)snprintf(text, sizeof text,
                       "pipeline_id: slow\non_conflict: reject\nlock_acquisition_retries: 1\n"
                       "schedule: {cron: '* * * * *', catch_up: 2m}\nsteps:\n"
                       "  - {step_id: a, type: command, shell: true, run: 'echo $$ > %s/%s'}\n",
                       g->scratch, others[i]);
        rig_pipeline_of(g, others[i], "slow", text);
    }
    rig_open(g, (struct rig_opts){ 0 });
    (void)rig_number(g, "quick");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        (void)rig_number(g, others[i]);
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        T_EQ(rig_lines(g, name), 0);
        (void)hold(g, name, fences[i]);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        (void)rig_number(g, name);
    }
}

/* How many pipelines are locked? */
static size_t
count_locks(struct rig *g)
{
    size_t n = 0;
    char   cursor[IL_KEY_BYTES_MAX + 64];
    bool   more = false;

    do {
        il_op op          = { .type = IL_OP_LIST, .tenant = TENANT };
        op.in.list.prefix = PIPELINE_KEY_PREFIX;
        op.in.list.limit  = IL_PAGE_ITEMS_MAX;
        op.in.list.cursor = more ? cursor : NULL;
        T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
        n += op.out.n_items;
        more = op.out.next != NULL;
        (void)snprintf(cursor, sizeof cursor, "%s", more ? op.out.next : "");
        il_op_release(&op);
    } while (more);
    return n;
}

/* A thousand pipelines: a thousand locks, then none. (Their steps are short: what is counted are
 * locks, not processes.) */
RIG_TEST(thousand)
{
    enum {
        N = 1000
    };
    static char   ids[N][IL_ID_BYTES_MAX + 1];
    char          name[16];
    struct rlimit files;

    T_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    T_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    for (int i = 0; i < N; i++) { /* its first attempt fails at once, and the second is far away */
        (void)snprintf(name, sizeof name, "p%d", i);
        rig_pipeline(g, name,
                     "steps:\n  - {step_id: a, type: command, retries: 1, retry_delay: 5m, run: "
                     "['false']}\n");
    }
    rig_open(g, (struct rig_opts){ .runs_max = N, .lease_ms = 60000 });
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        T_EQ(rig_trigger(g, name, ids[i]), RUNNER_TRIGGERED);
    }
    T_WAIT(&g->notes.events[RUNNER_EVENT_step_failed], N, 6 * SOON_MS);
    T_EQ(count_locks(g), N);
    for (int i = 0; i < N; i++)
        rig_cancel(g, ids[i]);
    for (int i = 0; i < N; i++)
        (void)rig_end(g, ids[i], IL_RUN_CANCELLED);
    T_EQ(count_locks(g), 0);
    rig_no_folders(g);
}

/* Limits of a tenant count for schedules, too. */
static void
two_at_most(void *cookie, const char *tenant, uint32_t *live_max, uint32_t *day_max)
{
    (void)cookie;
    (void)tenant;
    *live_max = 2;
    *day_max  = 0;
}

RIG_TEST(limited_schedules)
{
    char name[16];

    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        rig_pipeline(g, name,
                     "schedule: {cron: '* * * * *', catch_up: 2m}\nsteps:\n  - {step_id: a, type: "
                     "command, run: [sleep, '100']}\n");
    }
    rig_open(g, (struct rig_opts){ .limits = two_at_most });
    T_WAIT(&g->notes.events[RUNNER_EVENT_tick_skipped], 3, SOON_MS);
    T_EQ(t_event_count(&g->notes.events[RUNNER_EVENT_tick]), 2);
    T_HAS(g->notes.last[RUNNER_EVENT_tick_skipped], "2");
}

/* What has ended before, and need not be kept, is purged: as this run is, which ended after it. */
static void
purge(struct rig *g)
{
    il_op slot = { .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT, .tenant = TENANT };
    char  id[37];

    T_EQ(il_uuid(id), IL_OK);
    slot.key            = "witness:1";
    slot.in.run.id      = id;
    slot.in.run.keep_ms = 1;
    T_EQ(il_apply(g->h, &slot, 1, NULL), IL_OK);
    T_EQ(slot.status, IL_OK);
    il_op_release(&slot);
    rig_cancel(g, id);
    for (bool there = true; there;) { /* whoever sweeps */
        il_op ops[]      = { { .type = IL_OP_SWEEP }, { .type = IL_OP_RUN_GET, .tenant = TENANT } };
        ops[1].in.run.id = id;
        T_EQ(il_apply(g->h, ops, 2, NULL), IL_OK);
        there = ops[1].status == IL_OK;
        for (int i = 0; i < 2; i++)
            il_op_release(&ops[i]);
    }
}

/* Its run need not be kept. */
static enum runner_answer
trigger_unkept(struct rig *g, const char *pipeline, uint32_t day_max, char id[37])
{
    il_error              err     = { 0 };
    char                 *outside = NULL;
    il_op                 op;
    struct pipeline      *p = il__catalogue_get(runner_catalogue(g->runner), TENANT, pipeline);
    struct runner_trigger t = { .tenant   = TENANT,
                                .pipeline = p,
                                .id       = id,
                                .by       = "test",
                                .type     = "api",
                                .day_max  = day_max,
                                .keep_ms  = 1 };

    T_EQ(il_uuid(id), IL_OK);
    enum runner_answer answer = runner_trigger(g->runner, &t, &op, &outside, &err);
    il_op_release(&op);
    il__free(outside);
    il__pipeline_unref(p);
    return answer;
}

/* Runs count for their day, however short they are kept. */
RIG_TEST(limit_of_a_day)
{
    char    id[37], next[37];
    int64_t day;

    rig_pipeline(g, "p", "steps:\n  - {step_id: a, type: command, run: ['true']}\n");
    rig_open(g, (struct rig_opts){ .keep_ms = 1 });
    do { /* once more if midnight comes in between */
        day = (int64_t)time(NULL) / 86400;
        if (trigger_unkept(g, "p", 1, id) == RUNNER_TRIGGERED)
            (void)rig_end(g, id, IL_RUN_COMPLETED);
        purge(g);
        T_TRUE(trigger_unkept(g, "p", 1, next) == RUNNER_DAY_OVER ||
               (int64_t)time(NULL) / 86400 > day);
    } while ((int64_t)time(NULL) / 86400 > day);
}

static bool
is_there(struct rig *g, const char *id)
{
    il_op op = { .type = IL_OP_RUN_GET, .tenant = TENANT };

    op.in.run.id = id;
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    bool there = op.status == IL_OK;
    il_op_release(&op);
    return there;
}

/* A slot that was cancelled and purged while it waited does not come back. Without listings
 * (WORK_HERE) it is still wanted when its turn comes. */
static void
cancelled_slot_is_gone(struct rig *g, enum work_mode mode, const char *name)
{
    char                ids[3][IL_ID_BYTES_MAX + 1], path[T_PATH_BYTES];
    uint64_t            n_waiting = mode == WORK_SERVE ? 0 : 1;
    struct runner_stats stats;

    rig_pipeline(
        g, name,
        "on_conflict: queue\nsteps:\n  - {step_id: a, type: command, shell: true, run: 'echo "
        "$INTERLOCK_RUN_ID >> %1$s/%2$s; while [ ! -e %1$s/%2$s.go ]; do sleep 0.05; done'}\n",
        g->scratch, name);
    rig_open(g, (struct rig_opts){ .mode = mode });
    T_EQ(rig_trigger(g, name, ids[0]), RUNNER_TRIGGERED);
    rig_await(g, ids[0], IL_RUN_RUNNING);
    T_EQ(trigger_unkept(g, name, 0, ids[1]), RUNNER_TRIGGERED);
    rig_cancel(g, ids[1]);
    purge(g);
    T_TRUE(!is_there(g, ids[1]));
    int64_t limit = t_real_ms() + SOON_MS;
    do { /* a listing does not show it: it is forgotten while the other one runs */
        runner_stats(g->runner, &stats);
        (void)poll(NULL, 0, 1);
    } while (stats.work.n_waiting != n_waiting && t_real_ms() < limit);
    T_EQU(stats.work.n_waiting, n_waiting);
    T_EQ(rig_trigger(g, name, ids[2]), RUNNER_TRIGGERED);
    t_path(path, "%s/%s.go", g->scratch, name);
    t_file_write(path, "x", 1);
    (void)rig_end(g, ids[0], IL_RUN_COMPLETED);
    (void)rig_end(g, ids[2], IL_RUN_COMPLETED);
    T_TRUE(!is_there(g, ids[1]));
    T_EQ(rig_lines(g, name), 2);
    runner_stats(g->runner, &stats);
    T_EQU(stats.work.n_started, 2);
    rig_close(g);
}

RIG_TEST(gone)
{
    cancelled_slot_is_gone(g, WORK_SERVE, "listed");
    cancelled_slot_is_gone(g, WORK_HERE, "told");
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(one_of_many),
        T_ROW(slots_of_nobody),
        T_ROW(queue),
        T_ROW(other_policies),
        T_ROW(room),
        T_ROW(turns),
        T_ROW(places),
        T_ROW(backlog),
        T_ROW(foreign_lock),
        T_ROW(plan_of_a_trigger),
        T_ROW(one_probe_at_a_time),
        T_ROW(schedule),
        T_ROW(slow_schedules),
        T_ROW(thousand),
        T_ROW(limited_schedules),
        T_ROW(limit_of_a_day),
        T_ROW(gone),
    };
    int status = rig_main(argc, argv);

    return status >= 0 ? status : T_SUITE("runner-share", tests);
}
