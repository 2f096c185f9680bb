/*
 * fault.c: killed and stopped runners, and unavailable stores.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/proxy.h"
#include "rig.h"

/* A step with a process that left its group, which says who it is and waits. */
#define HANGS                                                                                   \
    "on_conflict: queue\nsteps:\n"                                                              \
    "  - {step_id: a, type: command, shell: true, run: 'echo $INTERLOCK_RUN_ID >> %1$s/begun; " \
    "test -e %1$s/go && exit 0; setsid sh -c \"echo \\$\\$ > %1$s/far; exec sleep 1000\" & "    \
    "echo $$ > %1$s/near; wait; sleep 1000'}\n"
#define QUICK                      \
    "on_conflict: queue\nsteps:\n" \
    "  - {step_id: a, type: command, shell: true, run: 'echo $INTERLOCK_RUN_ID >> %1$s/quick'}\n"

static void
let_go(struct rig *g)
{
    char path[T_PATH_BYTES];

    t_path(path, "%s/go", g->scratch);
    t_file_write(path, "x", 1);
}

static bool
needs_processes(struct rig *g)
{
    if (strcmp(g->s->engine->name, "memory") != 0)
        return true;
    print_message("# not on memory: no other process sees it\n");
    return false;
}

/* Killed in the middle of a step: its processes are gone before the run has ended; that ends by its
 * lease, its key is free, and slots are executed by another. */
RIG_TEST(killed)
{
    char          hangs[IL_ID_BYTES_MAX + 1], next[IL_ID_BYTES_MAX + 1];
    struct t_proc p;

    if (!needs_processes(g))
        return;
    rig_pipeline(g, "p", HANGS, g->scratch);
    rig_slot(g, "p", hangs);
    rig_spawn(g, &p, (struct rig_opts){ .lease_ms = 2000, .grace_ms = 200 });
    pid_t near = (pid_t)rig_number(g, "near");
    pid_t far  = (pid_t)rig_number(g, "far");
    rig_slot(g, "p", next);
    t_proc_signal(&p, SIGKILL);
    int64_t killed_ms = t_real_ms();
    let_go(g);
    rig_open(g, (struct rig_opts){ 0 });
    struct rig_run run = rig_end(g, hangs, IL_RUN_FAILED);
    T_TRUE(t_pid_gone(near, 0) && t_pid_gone(far, 0));
    T_HAS(run.error, "worker may have crashed");
    print_message("# ended %d ms after the kill\n", (int)(t_real_ms() - killed_ms));
    (void)rig_end(g, next, IL_RUN_COMPLETED);
    T_EQ(rig_lines(g, "begun"), 2);
    rig_all_free(g);
    rig_close(g);
    rig_open(g, (struct rig_opts){ 0 }); /* looks for what is left in folders first */
    rig_no_folders(g);
    t_proc_release(&p);
}

/* Killed at any moment: each slot is begun at most once, all of them end, the key is free. */
RIG_TEST(killed_any_time)
{
    char ids[6][IL_ID_BYTES_MAX + 1];

    if (!needs_processes(g))
        return;
    rig_pipeline(g, "p", QUICK, g->scratch);
    for (int round = 0; round < 6; round++) {
        struct t_proc p;
        for (size_t i = 0; i < ARRAY_LEN(ids); i++)
            rig_slot(g, "p", ids[i]);
        rig_spawn(g, &p, (struct rig_opts){ .lease_ms = 1000, .grace_ms = 200 });
        (void)poll(NULL, 0, round * 12);
        t_proc_signal(&p, SIGKILL);
        rig_open(g, (struct rig_opts){ .lease_ms = 1000 });
        int n_failed = 0;
        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
            il_op op     = { .type = IL_OP_RUN_GET, .tenant = TENANT };
            op.in.run.id = ids[i];
            for (;;) {
                T_EQ(il_apply(g->h, &op, 1, NULL), IL_OK);
                if (op.out.runs[0].state > IL_RUN_RUNNING)
                    break;
                T_EQ(il_wait(g->h, &op, SOON_MS), IL_OK);
            }
            T_TRUE(op.out.runs[0].state == IL_RUN_COMPLETED ||
                   op.out.runs[0].state == IL_RUN_FAILED);
            n_failed += op.out.runs[0].state == IL_RUN_FAILED;
            il_op_release(&op);
        }
        T_TRUE(n_failed <= 1); /* the one that it executed */
        rig_all_free(g);
        rig_close(g);
        t_proc_release(&p);
    }
    size_t n = rig_lines(g, "quick");
    T_TRUE(n <= 6 * ARRAY_LEN(ids));
    char path[T_PATH_BYTES];
    t_path(path, "%s/quick", g->scratch);
    char *text = t_file_read(path, NULL);
    for (char *line = text; line[0] != '\0'; line = strchr(line, '\n') + 1) { /* none twice */
        char id[37];
        (void)snprintf(id, sizeof id, "%s", line);
        T_TRUE(strstr(line + 36, id) == NULL);
    }
    free(text);
}

/* Stopped for longer than its lease: its processes are gone before its run has ended, another goes
 * on, and when it wakes up it does no harm. */
RIG_TEST(stopped)
{
    char          hangs[IL_ID_BYTES_MAX + 1], next[IL_ID_BYTES_MAX + 1], last[IL_ID_BYTES_MAX + 1];
    struct t_proc p;

    if (!needs_processes(g))
        return;
    rig_pipeline(g, "p", HANGS, g->scratch);
    rig_slot(g, "p", hangs);
    rig_spawn(g, &p, (struct rig_opts){ .lease_ms = 2000, .grace_ms = 200 });
    pid_t near = (pid_t)rig_number(g, "near");
    pid_t far  = (pid_t)rig_number(g, "far");
    rig_slot(g, "p", next);
    t_proc_stop_outside(&p, g->url, SOON_MS);
    let_go(g);
    rig_open(g, (struct rig_opts){ 0 });
    T_HAS(rig_end(g, hangs, IL_RUN_FAILED).error, "worker may have crashed");
    T_TRUE(t_pid_gone(near, 0) && t_pid_gone(far, 0));
    (void)rig_end(g, next, IL_RUN_COMPLETED);
    T_WAIT(&g->notes.events[RUNNER_EVENT_expired], 1, SOON_MS); /* told by who is there, once */
    t_proc_signal(&p, SIGCONT);
    T_LINE(&p, "run_ended", SOON_MS, NULL);
    T_EQ(rig_look(g, hangs).state, IL_RUN_FAILED);
    rig_close(g);
    rig_slot(g, "p", last); /* the one that was stopped executes it */
    (void)rig_end(g, last, IL_RUN_COMPLETED);
    T_EQ(rig_lines(g, "begun"), 3);
    t_proc_release(&p);
}

/* The spawner is killed: what ran below it is gone, its step has failed, and the next run has a new
 * one. */
static pid_t
find_spawner(void)
{
    DIR                 *d = opendir("/proc");
    const struct dirent *entry;
    pid_t                found = 0;

    while ((entry = readdir(d)) != NULL) {
        char path[T_PATH_BYTES], stat[512] = "", line[512] = "";
        t_path(path, "/proc/%.20s/stat", entry->d_name);
        FILE *f = fopen(path, "re");
        if (f == NULL)
            continue;
        IGNORE(fread(stat, 1, sizeof stat - 1, f) == 0);
        (void)fclose(f);
        const char *end = strrchr(stat, ')');
        if (end == NULL || strtol(end + 4, NULL, 10) != (long)getpid())
            continue;
        t_path(path, "/proc/%.20s/cmdline", entry->d_name);
        f = fopen(path, "re");
        if (f == NULL)
            continue;
        size_t n = fread(line, 1, sizeof line - 1, f);
        (void)fclose(f);
        if (n > 8 && strcmp(line + n - 8, "spawner") == 0)
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    (void)closedir(d);
    return found;
}

RIG_TEST(spawner_killed)
{
    char id[IL_ID_BYTES_MAX + 1], next[IL_ID_BYTES_MAX + 1];

    rig_pipeline(g, "p", HANGS, g->scratch);
    rig_open(g, (struct rig_opts){ 0 });
    T_EQ(rig_trigger(g, "p", id), RUNNER_TRIGGERED);
    pid_t near    = (pid_t)rig_number(g, "near");
    pid_t far     = (pid_t)rig_number(g, "far");
    pid_t spawner = find_spawner();
    T_TRUE(spawner > 0);
    T_EQ(kill(spawner, SIGKILL), 0);
    T_HAS(rig_end(g, id, IL_RUN_FAILED).error, "was killed");
    T_TRUE(t_pid_gone(near, SOON_MS) && t_pid_gone(far, SOON_MS));
    let_go(g);
    T_EQ(rig_trigger(g, "p", next), RUNNER_TRIGGERED);
    (void)rig_end(g, next, IL_RUN_COMPLETED);
    rig_all_free(g);
}

/* ---- a store behind a network that can be cut ------------------------------------------------ */

static struct t_proxy *
open_far_store(struct rig *g, il **ret_h)
{
    char         through[T_PATH_BYTES];
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_error     err  = { 0 };

    if (g->s->engine->server == NULL) {
        print_message("# not on %s: there is no network\n", g->s->engine->name);
        return NULL;
    }
    struct t_proxy *proxy = t_proxy_to_store(g->url, through);
    /* Short, as the tests wait for it; but a busy machine must answer within it: a start whose
     * answer comes too late is withdrawn. */
    opts.timeout_ms = 1500;
    if (il_open(through, &opts, ret_h, &err) != IL_OK)
        T_FAIL("%s: %s", through, err.message);
    return proxy;
}

static struct t_proxy *
open_far(struct rig *g, il **ret_h, struct runner **ret, struct rig_opts o)
{
    struct t_proxy *proxy = open_far_store(g, ret_h);

    if (proxy != NULL)
        *ret = rig_runner_on(g, *ret_h, o);
    return proxy;
}

/* The store is gone for longer than the lease: everything is stopped before that is over, and noted
 * before; then the runner goes on. */
RIG_TEST(store_lost)
{
    char           id[IL_ID_BYTES_MAX + 1], next[IL_ID_BYTES_MAX + 1];
    il            *h;
    struct runner *r;

    rig_pipeline(g, "p", HANGS, g->scratch);
    struct t_proxy *proxy =
        open_far(g, &h, &r, (struct rig_opts){ .lease_ms = 5000, .grace_ms = 200 });
    if (proxy == NULL)
        return;
    rig_slot(g, "p", id);
    pid_t near = (pid_t)rig_number(g, "near");
    pid_t far  = (pid_t)rig_number(g, "far");
    t_proxy_cut(proxy, true);
    /* as the store sees it */
    T_HAS(rig_end(g, id, IL_RUN_FAILED).error, "worker may have crashed");
    T_TRUE(t_pid_gone(near, 0) && t_pid_gone(far, 0));
    T_WAIT(&g->notes.events[RUNNER_EVENT_unrenewed], 1, SOON_MS);
    T_WAIT(&g->notes.events[RUNNER_EVENT_run_ended], 1, SOON_MS);
    let_go(g);
    rig_slot(g, "p", next);
    t_proxy_cut(proxy, false);
    (void)rig_end(g, next, IL_RUN_COMPLETED);
    runner_close(r);
    il_close(h);
    t_proxy_free(proxy);
}

/* The store is gone when the run ends, and comes back before its lease is over: it has ended as it
 * did. */
RIG_TEST(store_lost_at_the_end)
{
    char           id[IL_ID_BYTES_MAX + 1];
    il            *h;
    struct runner *r;

    rig_pipeline(g, "p",
                 "steps:\n  - {step_id: a, type: command, shell: true, run: 'echo $$ > %1$s/near; "
                 "while [ ! -e %1$s/go ]; do sleep 0.05; done'}\n",
                 g->scratch);
    struct t_proxy *proxy =
        open_far(g, &h, &r, (struct rig_opts){ .lease_ms = 20000, .grace_ms = 200 });
    if (proxy == NULL)
        return;
    rig_slot(g, "p", id);
    pid_t near = (pid_t)rig_number(g, "near");
    t_proxy_cut(proxy, true);
    let_go(g);
    T_TRUE(t_pid_gone(near, SOON_MS));
    (void)poll(NULL, 0, 1500); /* it tries to say so */
    T_EQ(rig_look(g, id).state, IL_RUN_RUNNING);
    t_proxy_cut(proxy, false);
    (void)rig_end(g, id, IL_RUN_COMPLETED);
    rig_all_free(g);
    runner_close(r);
    il_close(h);
    t_proxy_free(proxy);
}

/* The store is gone when a tick comes whose trigger may wait, and comes back: the tick is made up
 * for. */
RIG_TEST(store_lost_at_a_tick)
{
    il *h;

    rig_pipeline(
        g, "p",
        "on_conflict: reject\nlock_acquisition_retries: 1\nschedule: {cron: '* * * * *', catch_up: "
        "10m}\nsteps:\n  - {step_id: a, type: command, shell: true, run: 'echo $$ > %1$s/tick'}\n",
        g->scratch);
    struct t_proxy *proxy = open_far_store(g, &h);
    if (proxy == NULL)
        return;
    t_proxy_cut(proxy, true);
    struct runner *r = rig_runner_on(g, h, (struct rig_opts){ 0 }); /* the minute that has begun */
    T_WAIT(&g->notes.events[RUNNER_EVENT_trouble], 4, SOON_MS);     /* at most one a second */
    T_EQ(t_event_count(&g->notes.events[RUNNER_EVENT_tick_skipped]), 0);
    t_proxy_cut(proxy, false);
    (void)rig_number(g, "tick"); /* by a trigger of its own, or by one that was under way */
    runner_close(r);
    il_close(h);
    t_proxy_free(proxy);
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        T_ROW(killed),
        T_ROW(killed_any_time),
        T_ROW(stopped),
        T_ROW(spawner_killed),
        T_ROW(store_lost),
        T_ROW(store_lost_at_the_end),
        T_ROW(store_lost_at_a_tick),
    };
    int status = rig_main(argc, argv);

    return status >= 0 ? status : T_SUITE("runner-fault", tests);
}
