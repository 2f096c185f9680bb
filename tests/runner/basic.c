/*
 * basic.c: runs that end by themselves: levels, parallel steps, failures, retries, output,
 * environment.
 */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

/* A run from its trigger to its end: status, fence, steps, log, key, folder. */
RIG_TEST(one_step)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(g, "one",
                 "steps:\n  - {step_id: hello, type: command, run: [echo, hello world]}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "one", id), RUNNER_TRIGGERED);
    struct rig_run run = rig_end(g, id, IL_RUN_COMPLETED);
    T_STREQ(run.error, "");
    T_TRUE(run.fence > 0);
    T_EQ(run.progress, 100);
    rig_steps(g, id, &steps);
    T_EQ(steps.n, 1);
    T_STREQ(rig_step(&steps, "hello")->state, "COMPLETED");
    T_STREQ(rig_step(&steps, "hello")->out, "hello world\n");
    T_EQ(rig_step(&steps, "hello")->exit_code, 0);
    rig_steps_free(&steps);
    char *log = rig_log(g, id);
    T_HAS(log, "hello | hello world\n");
    T_HAS(log, "== COMPLETED\n");
    il__free(log);
    rig_all_free(g);
    rig_no_folders(g);
    T_WAIT(&g->notes.events[RUNNER_EVENT_acquired], 1, SOON_MS);
    T_WAIT(&g->notes.events[RUNNER_EVENT_released], 1, SOON_MS);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 1, SOON_MS);
}

/* Independent steps run at the same time: each waits for the other. */
RIG_TEST(parallel)
{
    char id[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "meet",
                 "steps:\n"
                 "  - {step_id: a, type: command, shell: true, run: 'touch %1$s/a; while [ ! -e "
                 "%1$s/b ]; do sleep 0.05; done'}\n"
                 "  - {step_id: b, type: command, shell: true, run: 'touch %1$s/b; while [ ! -e "
                 "%1$s/a ]; do sleep 0.05; done'}\n"
                 "  - {step_id: c, type: command, depends_on: [a, b], shell: true, run: 'test -e "
                 "%1$s/a -a -e %1$s/b'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "meet", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
}

/* More steps than may run at once: ten at a time. */
RIG_TEST(ten_at_once)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct il__buf   text = { 0 };
    struct rig_steps steps;

    il__buf_init(&text, 8000);
    il__buf_adds(&text, "steps:\n");
    for (int i = 0; i < 25; i++)
        il__buf_addf(&text, "  - {step_id: s%d, type: command, run: [sleep, '0.2']}\n", i);
    rig_pipeline(g, "many", "%s", il__buf_str(&text));
    il__buf_release(&text);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "many", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    rig_steps(g, id, &steps);
    T_EQ(steps.n, 25);
    for (size_t i = 0; i < steps.n; i++) { /* at the start of each, how many were under way? */
        size_t n = 0;
        for (size_t k = 0; k < steps.n; k++)
            n += steps.items[k].started_at_ms <= steps.items[i].started_at_ms &&
                 steps.items[k].ended_at_ms > steps.items[i].started_at_ms;
        T_TRUE(n <= PIPELINE_LEVEL_STEPS_MAX);
    }
    rig_steps_free(&steps);
}

/* The first failure stops the others of its level and skips what follows. */
RIG_TEST(failure_stops)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(
        g, "bad",
        "steps:\n"
        "  - {step_id: slow, type: command, shell: true, run: 'echo $$ > %1$s/pid; exec sleep "
        "100'}\n"
        "  - {step_id: bad, type: command, shell: true, run: 'while [ ! -s %1$s/pid ]; do sleep "
        "0.05; done; echo it broke >&2; exit 3'}\n"
        "  - {step_id: after, type: command, depends_on: [bad], run: ['touch', '%1$s/after']}\n",
        g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "bad", id), RUNNER_TRIGGERED);
    struct rig_run run = rig_end(g, id, IL_RUN_FAILED);
    T_HAS(run.error, "step 'bad': exit status 3: it broke");
    T_TRUE(t_pid_gone((pid_t)rig_number(g, "pid"), SOON_MS));
    rig_steps(g, id, &steps);
    T_STREQ(rig_step(&steps, "slow")->state, "CANCELLED");
    T_STREQ(rig_step(&steps, "bad")->state, "FAILED");
    T_EQ(rig_step(&steps, "bad")->exit_code, 3);
    T_STREQ(rig_step(&steps, "bad")->err, "it broke\n");
    T_STREQ(rig_step(&steps, "after")->state, "SKIPPED");
    rig_steps_free(&steps);
    T_EQ(rig_lines(g, "after"), 0);
    rig_all_free(g); /* release on failure */
}

/* On_failure: continue and alert. */
RIG_TEST(failure_goes_on)
{
    char                id[IL_ID_BYTES_MAX + 1];
    struct rig_steps    steps;
    struct runner_stats stats;

    rig_pipeline(
        g, "soft",
        "steps:\n"
        "  - {step_id: a, type: command, run: ['false'], on_failure: continue}\n"
        "  - {step_id: b, type: command, run: ['false'], on_failure: alert, depends_on: [a]}\n"
        "  - {step_id: c, type: command, run: ['true'], depends_on: [b]}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "soft", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    rig_steps(g, id, &steps);
    T_STREQ(rig_step(&steps, "a")->state, "WARNING");
    T_STREQ(rig_step(&steps, "b")->state, "WARNING");
    T_STREQ(rig_step(&steps, "c")->state, "COMPLETED");
    rig_steps_free(&steps);
    T_WAIT(&g->notes.events[RUNNER_EVENT_step_alert], 1, SOON_MS);
    runner_stats(g->runner, &stats);
    T_EQU(stats.n_alerts, 1);
    T_EQU(stats.n_steps_failed, 2);
}

/* Retries, with a delay that doubles; each attempt is kept. */
RIG_TEST(retries)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(
        g, "flaky",
        "steps:\n"
        "  - {step_id: try, type: command, shell: true, retries: 3, retry_delay: 100ms,\n"
        "     run: 'echo $INTERLOCK_ATTEMPT >> %1$s/tries; test $INTERLOCK_ATTEMPT -ge 3'}\n",
        g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "flaky", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    T_EQ(rig_lines(g, "tries"), 3);
    rig_steps(g, id, &steps);
    T_EQ(steps.n, 3);
    T_STREQ(steps.items[0].state, "FAILED");
    T_STREQ(steps.items[1].state, "FAILED");
    T_STREQ(steps.items[2].state, "COMPLETED");
    T_TRUE(steps.items[1].started_at_ms - steps.items[0].ended_at_ms >= 95);
    T_TRUE(steps.items[2].started_at_ms - steps.items[1].ended_at_ms >= 195);
    rig_steps_free(&steps);
}

/* A step's timeout ends its group and what left it; its run ends as TIMEOUT. */
RIG_TEST(step_timeout)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(g, "late",
                 "steps:\n"
                 "  - {step_id: late, type: command, shell: true, timeout: 700ms,\n"
                 "     run: 'setsid sh -c \"echo \\$\\$ > %1$s/grandchild; exec sleep 100\" & echo "
                 "$$ > %1$s/pid; trap \"\" TERM; while :; do sleep 0.1; done'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "late", id), RUNNER_TRIGGERED);
    struct rig_run run = rig_end(g, id, IL_RUN_TIMEOUT);
    T_HAS(run.error, "step 'late': timed out after 700ms");
    T_TRUE(t_pid_gone((pid_t)rig_number(g, "pid"), SOON_MS));
    T_TRUE(t_pid_gone((pid_t)rig_number(g, "grandchild"), SOON_MS));
    rig_steps(g, id, &steps);
    T_STREQ(rig_step(&steps, "late")->state, "TIMEOUT");
    rig_steps_free(&steps);
    rig_all_free(g);
}

/* The pipeline's timeout. */
RIG_TEST(pipeline_timeout)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(g, "late",
                 "timeout: 1s\n"
                 "steps:\n"
                 "  - {step_id: late, type: command, shell: true, retries: 5, run: 'echo $$ > "
                 "%1$s/pid; exec sleep 100'}\n"
                 "  - {step_id: next, type: command, depends_on: [late], run: ['true']}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "late", id), RUNNER_TRIGGERED);
    struct rig_run run = rig_end(g, id, IL_RUN_TIMEOUT);
    T_STREQ(run.error, "timed out after 1s");
    T_TRUE(t_pid_gone((pid_t)rig_number(g, "pid"), SOON_MS));
    rig_steps(g, id, &steps);
    T_EQ(steps.n, 2); /* no second attempt */
    T_STREQ(rig_step(&steps, "late")->state, "TIMEOUT");
    T_STREQ(rig_step(&steps, "next")->state, "SKIPPED");
    rig_steps_free(&steps);
}

/* A run without a sign of life is stopped; one that prints goes on, though it ends no line. */
RIG_TEST(stall_timeout)
{
    char id[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "silent",
                 "stall_timeout_seconds: 1\n"
                 "steps:\n"
                 "  - {step_id: one, type: command, shell: true, run: 'echo $$ > %1$s/pid; exec "
                 "sleep 100'}\n",
                 g->scratch);
    rig_pipeline(g, "talks",
                 "stall_timeout_seconds: 3\n"
                 "steps:\n"
                 "  - {step_id: one, type: command, shell: true, run: 'for i in 1 2 3 4 5 6 7; do "
                 "printf .; sleep 0.5; done'}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "silent", id), RUNNER_TRIGGERED);
    struct rig_run run = rig_end(g, id, IL_RUN_TIMEOUT);
    T_STREQ(run.error, "stalled: no step, output or progress for 1s");
    T_TRUE(t_pid_gone((pid_t)rig_number(g, "pid"), SOON_MS));
    T_EQ(rig_trigger(g, "talks", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
}

/* Much output, and output that is no text: the tail is kept, the step is not held up. */
RIG_TEST(output)
{
    char             id[IL_ID_BYTES_MAX + 1];
    struct rig_steps steps;

    rig_pipeline(
        g, "loud",
        "steps:\n"
        "  - {step_id: much, type: command, shell: true, run: 'head -c 50000000 /dev/zero | tr "
        "\"\\000\" x; echo; echo the end; echo oops >&2'}\n"
        "  - {step_id: odd, type: command, depends_on: [much], shell: true, run: 'printf "
        "\"a\\000b\\377\\303\\251\\n\"; head -c 200000 /dev/urandom'}\n"
        "  - {step_id: open, type: command, depends_on: [odd], run: [printf, no newline]}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "loud", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    rig_steps(g, id, &steps);
    const struct rig_step *much = rig_step(&steps, "much");
    T_EQ(much->out_bytes, 50000000 + 1 + 8);
    T_EQ(strlen(much->out), DATA_OUTPUT_BYTES_MAX);
    T_STREQ(much->out + strlen(much->out) - 9, "\nthe end\n");
    T_STREQ(much->err, "oops\n");
    const struct rig_step *odd = rig_step(&steps, "odd");
    T_EQ(odd->out_bytes, 200000 + 7);
    T_TRUE(strlen(odd->out) > DATA_OUTPUT_BYTES_MAX - 4);
    T_STREQ(rig_step(&steps, "open")->out, "no newline");
    rig_steps_free(&steps);
    char *log = rig_log(g, id);
    T_TRUE(strstr(log, "open | no newline\n") != NULL); /* the newest is kept */
    T_TRUE(strstr(log, "bytes of output omitted\n") != NULL);
    il__free(log);
}

/* What a command finds in its environment, and what it does not. */
RIG_TEST(environment)
{
    char             id[IL_ID_BYTES_MAX + 1];
    char             text[200];
    struct rig_steps steps;
    il_error         err = { .message = "" };

    T_EQ(setenv("RIG_SECRET", "hidden", 1), 0);
    rig_pipeline(g, "env",
                 "version: '7'\n"
                 "parameters: {date: '2026-01-01', region: eu}\n"
                 "steps:\n"
                 "  - {step_id: show, type: command, run: [env], env: {WHAT: '{region}/{date}', "
                 "HOME: /nowhere}}\n"
                 "  - {step_id: args, type: command, run: [printf, '%%s|', '{date}', 'x{region}y', "
                 "'$(id)', '{run_id}'], depends_on: [show]}\n"
                 "  - {step_id: here, type: command, shell: true, run: 'pwd; touch left-behind; "
                 "mkdir -p d/e; ln -s / d/root; chmod 000 d/e', depends_on: [show]}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger_with(g, g->runner, "env", "{\"date\":\"a b;c\",\"extra\":12,\"flag\":true}",
                          id, &err),
         RUNNER_TRIGGERED);
    struct rig_run run = rig_end(g, id, IL_RUN_COMPLETED);
    rig_steps(g, id, &steps);
    const char *env = rig_step(&steps, "show")->out;
    T_HAS(env, "INTERLOCK_PARAM_date=a b;c\n");
    T_HAS(env, "INTERLOCK_PARAM_region=eu\n");
    T_HAS(env, "INTERLOCK_PARAM_extra=12\n");
    T_HAS(env, "INTERLOCK_PARAM_flag=true\n");
    T_HAS(env, "INTERLOCK_TENANT=" TENANT "\n");
    T_HAS(env, "INTERLOCK_PIPELINE=env\n");
    T_HAS(env, "INTERLOCK_STEP=show\n");
    T_HAS(env, "INTERLOCK_ATTEMPT=1\n");
    T_HAS(env, "INTERLOCK_KEY=pipeline:env\n");
    T_HAS(env, "WHAT=eu/a b;c\n");
    T_HAS(env, "HOME=/nowhere\n");
    T_HAS(env, "PATH=");
    (void)snprintf(text, sizeof text, "INTERLOCK_RUN_ID=%s\n", id);
    T_HAS(env, text);
    (void)snprintf(text, sizeof text, "INTERLOCK_FENCE=%llu\n", (unsigned long long)run.fence);
    T_HAS(env, text);
    T_TRUE(strstr(env, "RIG_SECRET") == NULL);
    (void)snprintf(text, sizeof text, "a b;c|xeuy|$(id)|%s|", id);
    T_STREQ(rig_step(&steps, "args")->out, text);
    T_HAS(rig_step(&steps, "here")->out, "/interlock-runs/");
    rig_steps_free(&steps);
    rig_no_folders(g);
    T_TRUE(t_file_exists("/etc/passwd")); /* the link was not followed */
}

/* Triggers that are refused before anything happens. */
RIG_TEST(bad_triggers)
{
    char     id[IL_ID_BYTES_MAX + 1];
    il_error err = { .message = "" };
    char     long_text[6000];

    rig_pipeline(
        g, "p",
        "parameters: {must: null}\nsteps:\n  - {step_id: a, type: command, run: ['true']}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger_with(g, g->runner, "p", NULL, id, &err), RUNNER_FAILED);
    T_EQ(err.status, IL_INVAL);
    T_HAS(err.message, "'must'");
    T_EQ(rig_trigger_with(g, g->runner, "p", "{\"must\":[1]}", id, &err), RUNNER_FAILED);
    T_HAS(err.message, "is an array");
    T_EQ(rig_trigger_with(g, g->runner, "p", "{\"must\":1,\"a b\":2}", id, &err), RUNNER_FAILED);
    T_HAS(err.message, "invalid parameter name 'a b'");
    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text, "{\"must\":\"", 9);
    memcpy(long_text + sizeof long_text - 3, "\"}", 3);
    T_EQ(rig_trigger_with(g, g->runner, "p", long_text, id, &err), RUNNER_FAILED);
    T_EQ(err.status, IL_LIMIT);
}

/* A command that is not there. */
RIG_TEST(no_such_command)
{
    char id[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p",
                 "steps:\n  - {step_id: a, type: command, retries: 5, run: ['/no/such/thing']}\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    T_HAS(rig_end(g, id, IL_RUN_FAILED).error,
          "step 'a': cannot execute '/no/such/thing': No such file");
}

/* A pipeline that runs for several times its lease is not doubled: it is renewed. */
RIG_TEST(longer_than_lease)
{
    char id[IL_ID_BYTES_MAX + 1], other[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "long",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'echo x >> %1$s/begun; "
                 "sleep 10'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ .lease_ms = 1000 });
    T_EQ(rig_trigger(g, "long", id), RUNNER_TRIGGERED);
    rig_await(g, id, IL_RUN_RUNNING);
    while (rig_look(g, id).state == IL_RUN_RUNNING) {
        enum runner_answer answer = rig_trigger(g, "long", other);
        if (answer == RUNNER_TRIGGERED)
            break; /* it has just ended */
        T_EQ(answer, RUNNER_RUNNING);
        T_STREQ(other, id);
        (void)poll(NULL, 0, 100);
    }
    struct rig_run run = rig_end(g, id, IL_RUN_COMPLETED);
    T_TRUE(run.ended_at_ms - run.started_at_ms >= 10000);
    T_TRUE(run.n_joined > 10);
    T_TRUE(rig_lines(g, "begun") <= 2);
}

/* A bad file is refused, the others load; a reload brings new ones. */
RIG_TEST(reload)
{
    char                id[IL_ID_BYTES_MAX + 1];
    struct runner_stats stats;

    rig_pipeline(g, "good", "steps:\n  - {step_id: a, type: command, run: ['true']}\n");
    rig_pipeline(g, "bad", "steps: 17\n");
    rig_open(g, (struct rig_opts){ 0 });
    T_WAIT(&g->notes.events[RUNNER_EVENT_file_refused], 1, SOON_MS);
    T_HAS(g->notes.last[RUNNER_EVENT_file_refused], "bad.yml:");
    T_EQ(rig_trigger(g, "good", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    rig_pipeline(g, "bad", "steps:\n  - {step_id: a, type: command, run: ['true']}\n");
    rig_slot(g, "bad", id); /* nobody knows it yet */
    rig_reload(g);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 2, SOON_MS);
    runner_stats(g->runner, &stats);
    T_EQU(stats.n_pipelines, 2);
    T_EQU(stats.n_bad_files, 0);
    T_EQU(stats.work.n_completed, 2);
}

/*
 * An id that was written to the store by somebody else never becomes a path: the run fails, and
 * nothing is created. Without the check, the folder TAG.acme.x makes the path of this id lead out
 * of the runner's folder.
 */
RIG_TEST(forged_id)
{
    char           id[IL_ID_BYTES_MAX + 1], path[T_PATH_BYTES], *tail;
    const char    *forged = "x/../../y";
    FILE          *file;
    struct rig_run run;

    rig_pipeline(g, "where",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'pwd >>%s/pwd'}\n",
                 g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "where", id), RUNNER_TRIGGERED);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    t_path(path, "%s/pwd", g->scratch);
    file = fopen(path, "re");
    T_TRUE(file != NULL && fgets(path, sizeof path, file) != NULL);
    T_EQ(fclose(file), 0);
    tail = strstr(path, id); /* WORK/interlock-runs/TAG.TENANT.ID.XXXXXX */
    T_TRUE(tail != NULL);
    memcpy(tail, "x", sizeof "x");
    rig_no_folders(g);
    T_EQ(mkdir(path, 0700), 0);
    rig_slot_as(g, "where", forged);
    rig_reload(g); /* it looks for slots */
    run = rig_end(g, forged, IL_RUN_FAILED);
    T_HAS(run.error, "run id 'x/../../y' is not a UUID");
    T_EQ(rig_lines(g, "pwd"), 1);
    T_EQ(rmdir(path), 0);
    t_path(path, "%s", g->work);
    DIR                 *d = opendir(path);
    const struct dirent *entry;
    T_TRUE(d != NULL);
    while ((entry = readdir(d)) != NULL)
        T_TRUE(entry->d_name[0] == '.' || strcmp(entry->d_name, "interlock-runs") == 0);
    (void)closedir(d);
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(one_step),        T_ROW(parallel),          T_ROW(ten_at_once),
        T_ROW(failure_stops),   T_ROW(failure_goes_on),   T_ROW(retries),
        T_ROW(step_timeout),    T_ROW(pipeline_timeout),  T_ROW(stall_timeout),
        T_ROW(output),          T_ROW(environment),       T_ROW(bad_triggers),
        T_ROW(no_such_command), T_ROW(longer_than_lease), T_ROW(reload),
        T_ROW(forged_id),
    };
    int status = rig_main(argc, argv);

    return status >= 0 ? status : T_SUITE("runner-basic", tests);
}
