/*
 * takeover.c: however a run ends, all its descendants have exited before the next holder starts.
 * The command, its child and a daemon of another session write their fence into one file, again and
 * again; after the first line of a newer fence there must be none of an older one.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "race/race.h"

#define LIMIT_MS 30000

struct victim {
    pid_t wrapper;
    pid_t reaper;
    pid_t command;
};

struct way {
    const char *name;
    void (*end)(const struct race *r, const struct victim *v);
    int status; /* of the wrapper */
};

static void
kill_or_fail(pid_t pid, int sig)
{
    if (kill(pid, sig) != 0)
        T_FAIL("kill %d %d", (int)pid, sig);
}

static void
kill_wrapper(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->wrapper, SIGKILL);
}

static void
kill_command(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->command, SIGKILL);
}

static void
kill_both(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->wrapper, SIGKILL);
    if (kill(v->command, SIGKILL) != 0) /* the reaper may have been faster */
        T_EQ(errno, ESRCH);
}

static void
kill_reaper(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->reaper, SIGKILL);
}

static void
kill_group_of_wrapper(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(-v->wrapper, SIGKILL);
}

static void
stop_wrapper(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->wrapper, SIGSTOP);
    T_TRUE(t_pid_in_state(v->wrapper, 'T', LIMIT_MS));
}

/* The wrapper lets it go on, and the command ends by the TERM that follows. */
static void
stop_reaper(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->reaper, SIGSTOP);
    kill_or_fail(v->wrapper, SIGTERM);
}

static void
terminate(const struct race *r UNUSED, const struct victim *v)
{
    kill_or_fail(v->wrapper, SIGTERM);
}

static void
break_it(const struct race *r, const struct victim *v UNUSED)
{
    struct t_proc p;

    t_proc_start(&p, (const char *const[]){ r->bin, "break", "tree", "--reason", "a test", NULL },
                 NULL);
    T_EQ(t_proc_exit(&p, LIMIT_MS), 0);
    t_proc_release(&p);
}

static const struct way ways[] = {
    { "kill -9 of the wrapper", kill_wrapper, 128 + SIGKILL },
    { "kill -9 of the command", kill_command, 128 + SIGKILL },
    { "kill -9 of both", kill_both, 128 + SIGKILL },
    { "kill -9 of the wrapper's group", kill_group_of_wrapper, 128 + SIGKILL },
    { "kill -9 of the reaper", kill_reaper, 128 + SIGKILL },
    { "SIGSTOP of the wrapper", stop_wrapper, 128 + SIGKILL },
    { "SIGSTOP of the reaper", stop_reaper, 128 + SIGTERM },
    { "SIGTERM of the wrapper", terminate, 128 + SIGTERM },
    { "break", break_it, 76 },
};

/* Start a run whose three processes write. */
static void
start(const struct race *r, struct t_proc *p)
{
    static const char *const options[] = { "run",   "--ttl",  "1500ms", "--grace",
                                           "300ms", "--wait", "60s",    NULL };

    RACE_RUN(r, p, options, "tree", "tree", r->log);
}

static uint64_t
await_tree(struct t_proc *p, il *h, const char *log, struct victim *v)
{
    char     line[T_PROC_LINE_BYTES];
    char     prefix[64];
    int      command, reaper;
    il_op    op  = { 0 };
    il_error err = { 0 };

    T_LINE(p, "tree ", LIMIT_MS, line);
    if (sscanf(line, "tree %d %d", &command, &reaper) != 2)
        T_FAIL("%s", line);
    *v = (struct victim){ p->pid, reaper, command };
    T_EQ(il_get(h, "tree", &op, &err), IL_OK);
    uint64_t fence = op.out.items[0].fence;
    il_op_release(&op);
    static const char *const roles[] = { "command", "child", "daemon" };
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        (void)snprintf(prefix, sizeof prefix, "%" PRIu64 " %s ", fence, roles[i]);
        race_await_lines(log, prefix, 3, LIMIT_MS);
    }
    return fence;
}

/* In the order of the file: fences never fall. */
static void
judge(const char *way, const char *path)
{
    char    *log    = t_file_read(path, NULL);
    uint64_t newest = 0;

    for (char *line = log, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        uint64_t fence = strtoull(line, NULL, 10);
        *end           = '\0';
        if (fence < newest)
            T_FAIL("%s: '%s' after a line of fence %" PRIu64, way, line, newest);
        newest = fence;
    }
    free(log);
}

static void
take_over(const struct way *way)
{
    struct race   r;
    struct t_proc first, second;
    struct victim v, w;
    char          prefix[64];

    race_init(&r);
    start(&r, &first);
    il      *h      = race_open(&r);
    uint64_t fence1 = await_tree(&first, h, r.log, &v);
    start(&r, &second);
    race_await_count(h, "tree", IL_LIST_WAITERS, 1, LIMIT_MS);

    int64_t began = t_real_ms();
    way->end(&r, &v);
    uint64_t fence2 = await_tree(&second, h, r.log, &w);
    print_message("# %s: the next one runs after %d ms\n", way->name, (int)(t_real_ms() - began));
    T_LESS(fence1, fence2);
    (void)snprintf(prefix, sizeof prefix, "%" PRIu64 " command ", fence2);
    race_await_lines(r.log, prefix, 100, LIMIT_MS); /* time enough for a line that must not come */
    int status = t_proc_exit(&first, LIMIT_MS);
    if (status != way->status)
        T_FAIL("%s: status %d, expected %d: %s", way->name, status, way->status, first.text);
    T_TRUE(t_pid_gone(v.command, LIMIT_MS));
    T_TRUE(t_pid_gone(v.reaper, LIMIT_MS));

    t_proc_signal(&second, SIGTERM);
    T_EQ(t_proc_exit(&second, LIMIT_MS), 128 + SIGTERM);
    race_await_count(h, "tree", 0, 0, LIMIT_MS);
    judge(way->name, r.log);
    il_close(h);
    t_proc_release(&first);
    t_proc_release(&second);
    race_release(&r);
}

/* Every n-th way, so that two processes can share the work: RACE_PART=0 or 1. */
U_TEST(nobody_works_after_the_next_has_begun)
{
    const char *part = getenv("RACE_PART");

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (part == NULL || i % 2 == (size_t)(part[0] - '0'))
            take_over(&ways[i]);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(nobody_works_after_the_next_has_begun) };

    return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
