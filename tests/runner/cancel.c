/*
 * cancel.c: cancelling a run in each of its phases: it ends as CANCELLED, no process of it is left,
 * the key is free.
 */
#include <poll.h>
#include <stdio.h>

#include "rig.h"

#define SLOW                                                                                  \
    "steps:\n"                                                                                \
    "  - {step_id: slow, type: command, shell: true, run: 'sleep 1000 & echo $$ > %1$s/pid; " \
    "wait'}\n"                                                                                \
    "  - {step_id: after, type: command, depends_on: [slow], run: [touch, '%1$s/after']}\n"

/* As a slot that nobody executes. */
RIG_TEST(pending)
{
    char id[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p", SLOW, g->scratch);
    rig_slot(g, "p", id);
    rig_cancel(g, id);
    rig_open(g, (struct rig_opts){ 0 });
    T_HAS(rig_end(g, id, IL_RUN_CANCELLED).error, "the test wants it");
    rig_all_free(g);
}

/* As a slot behind another run of its pipeline; the one that runs goes on. */
RIG_TEST(queued)
{
    char first[IL_ID_BYTES_MAX + 1], second[IL_ID_BYTES_MAX + 1], third[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p",
                 "on_conflict: queue\nsteps:\n  - {step_id: a, type: command, shell: true, run: "
                 "'echo $$ > %1$s/pid; while [ ! -e %1$s/go ]; do sleep 0.05; done'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "p", first), RUNNER_TRIGGERED);
    rig_await(g, first, IL_RUN_RUNNING);
    T_EQ(rig_trigger(g, "p", second), RUNNER_TRIGGERED);
    T_EQ(rig_trigger(g, "p", third), RUNNER_TRIGGERED);
    rig_cancel(g, second);
    (void)rig_end(g, second, IL_RUN_CANCELLED);
    T_EQ(rig_look(g, first).state, IL_RUN_RUNNING);
    char path[T_PATH_BYTES];
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    (void)rig_end(g, first, IL_RUN_COMPLETED);
    (void)rig_end(g, third, IL_RUN_COMPLETED);
    rig_all_free(g);
}

/* During a step: its processes are gone when the run has ended. */
RIG_TEST(in_a_step)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(g, "p", SLOW, g->scratch);
    rig_open(g, (struct rig_opts){ .lease_ms = 30000 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    pid_t pid = (pid_t)rig_number(g, "pid");
    rig_cancel(g, id);
    T_HAS(rig_end(g, id, IL_RUN_CANCELLED).error, "the test wants it");
    T_TRUE(t_pid_gone(pid, 0)); /* before the run ended */
    rig_steps(g, id, &steps);
    T_STREQ(rig_step(&steps, "slow")->state, "CANCELLED");
    T_STREQ(rig_step(&steps, "after")->state, "SKIPPED");
    rig_steps_free(&steps);
    T_EQ(rig_lines(g, "after"), 0);
    rig_all_free(g);
    rig_no_folders(g);
}

/* A command that ignores TERM is killed after the grace. */
RIG_TEST(stubborn)
{
    char id[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'trap \"\" TERM INT; "
                 "echo $$ > %1$s/pid; while :; do sleep 0.1; done'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ .lease_ms = 30000 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    pid_t pid = (pid_t)rig_number(g, "pid");
    rig_cancel(g, id);
    (void)rig_end(g, id, IL_RUN_CANCELLED);
    T_TRUE(t_pid_gone(pid, 0));
}

/* While a step waits for its next attempt. */
RIG_TEST(between_attempts)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(
        g, "p",
        "steps:\n  - {step_id: a, type: command, retries: 3, retry_delay: 5m, run: ['false']}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    T_WAIT(&g->notes.events[RUNNER_EVENT_step_failed], 1, SOON_MS);
    rig_cancel(g, id);
    (void)rig_end(g, id, IL_RUN_CANCELLED);
    rig_steps(g, id, &steps);
    T_EQ(steps.n, 1);
    rig_steps_free(&steps);
    rig_all_free(g);
}

/* At any moment of a run of many short steps, from its trigger on: whatever was first counts, and
 * nothing is left behind. */
RIG_TEST(any_moment)
{
    char id[IL_ID_BYTES_MAX + 1];
    int  n_cancelled = 0, n_completed = 0;

    rig_pipeline(g, "p",
                 "steps:\n"
                 "  - {step_id: a, type: command, run: ['true']}\n"
                 "  - {step_id: b, type: command, run: ['true'], depends_on: [a]}\n"
                 "  - {step_id: b2, type: command, run: ['true'], depends_on: [a]}\n"
                 "  - {step_id: c, type: command, run: ['true'], depends_on: [b, b2]}\n");
    rig_open(g, (struct rig_opts){ 0 });
    for (int i = 0; i < 60; i++) {
        T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
        (void)poll(NULL, 0, i / 2);
        rig_cancel(g, id);
        il_op op     = { .type = IL_OP_RUN_GET, .tenant = TENANT };
        op.in.run.id = id;
        for (;;) {
            T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
            if (op.out.runs[0].state > IL_RUN_RUNNING)
                break;
            T_EQ(il_wait(g->h, &op, SOON_MS), IL_OK);
        }
        il_run_state state = op.out.runs[0].state;
        il_op_release(&op);
        if (state != IL_RUN_COMPLETED && state != IL_RUN_CANCELLED)
            T_FAIL("it is %s", il_run_state_name(state));
        n_cancelled += state == IL_RUN_CANCELLED;
        n_completed += state == IL_RUN_COMPLETED;
        rig_all_free(g);
    }
    print_message("# %d cancelled, %d completed\n", n_cancelled, n_completed);
    T_TRUE(n_cancelled > 0);
    rig_no_folders(g);
}

/* A shutdown lets runs go on for a while, then they are INTERRUPTED; slots stay. */
RIG_TEST(shutdown)
{
    char quick[IL_ID_BYTES_MAX + 1], slow[IL_ID_BYTES_MAX + 1], later[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(g, "p", SLOW, g->scratch);
    rig_pipeline(g, "quick",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'echo 1 > %1$s/q; "
                 "while [ ! -e %1$s/go ]; do sleep 0.05; done'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ .shutdown_ms = 1500 });
    T_EQ(rig_trigger(g, "p", slow), RUNNER_TRIGGERED);
    T_EQ(rig_trigger(g, "quick", quick), RUNNER_TRIGGERED);
    pid_t pid = (pid_t)rig_number(g, "pid");
    T_EQ(rig_number(g, "q"), 1);
    runner_stop(g->runner);
    rig_slot(g, "quick", later);
    char path[T_PATH_BYTES];
    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
    rig_close(g);
    (void)rig_end(g, quick, IL_RUN_COMPLETED);
    T_HAS(rig_end(g, slow, IL_RUN_INTERRUPTED).error, "shut down");
    T_TRUE(t_pid_gone(pid, 0));
    rig_steps(g, slow, &steps);
    T_STREQ(rig_step(&steps, "slow")->state, "INTERRUPTED");
    rig_steps_free(&steps);
    T_EQ(rig_look(g, later).state, IL_RUN_PENDING);
    rig_all_free(g);
    rig_open(g, (struct rig_opts){ 0 }); /* the next server executes it */
    (void)rig_end(g, later, IL_RUN_COMPLETED);
}

/* A break that asks the holder to let go is a cancel; one that does not ask takes the lease: the
 * processes are stopped in either case. */
static void
break_it(struct rig *g, const char *id, uint32_t flags)
{
    il_op op = { .type = IL_OP_BREAK, .tenant = TENANT, .key = "pipeline:p", .flags = flags };

    op.fence          = rig_look(g, id).fence;
    op.in.lock.reason = "an operator says so";
    T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
}

RIG_TEST(broken)
{
    char id[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p", SLOW, g->scratch);
    rig_open(g, (struct rig_opts){ .lease_ms = 30000 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    pid_t pid = (pid_t)rig_number(g, "pid");
    break_it(g, id, 0);
    T_HAS(rig_end(g, id, IL_RUN_CANCELLED).error, "broken: an operator says so");
    T_TRUE(t_pid_gone(pid, 0));
    T_WAIT(&g->notes.events[RUNNER_EVENT_broken], 1, SOON_MS);
    rig_all_free(g);
}

RIG_TEST(broken_now)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(g, "p", SLOW, g->scratch);
    rig_open(g, (struct rig_opts){ .lease_ms = 30000 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    pid_t pid = (pid_t)rig_number(g, "pid");
    break_it(g, id, IL_BREAK_NOW);
    T_HAS(rig_end(g, id, IL_RUN_CANCELLED).error, "broken: an operator says so");
    T_TRUE(t_pid_gone(pid, SOON_MS));
    T_WAIT(&g->notes.events[RUNNER_EVENT_broken], 1, SOON_MS);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 1, SOON_MS);
    rig_all_free(g);
    rig_close(g); /* history is complete then */
    rig_steps(g, id, &steps);
    T_STREQ(rig_step(&steps, "slow")->state, "INTERRUPTED");
    rig_steps_free(&steps);
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(pending),  T_ROW(queued),           T_ROW(in_a_step),
        T_ROW(stubborn), T_ROW(between_attempts), T_ROW(any_moment),
        T_ROW(shutdown), T_ROW(broken),           T_ROW(broken_now),
    };
    int status = rig_main(argc, argv);

    return status >= 0 ? status : T_SUITE("runner-cancel", tests);
}
