/*
 * join.c: --on-conflict join: all callers get the output and the exit status of the running
 * command; if its wrapper is killed, all report that the result is unknown.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "race/race.h"

#define JOINERS 5
#define LIMIT_MS 30000

struct scene {
    struct race   r;
    char          fifo[T_PATH_BYTES];
    struct t_proc runner;
    struct t_proc joiners[JOINERS];
};

/* stdout and stderr apart, so that both can be compared whole; the status as the last line. */
static void
start(struct scene *s, struct t_proc *p, const char *name, const char *command)
{
    char script[8 * T_PATH_BYTES];

    (void)snprintf(
        script, sizeof script,
        "'%s' run -q --ttl 5s --on-conflict join join -- sh -c '%s' >'%s/%s.out' 2>'%s/%s.err'; "
        "echo status $?",
        s->r.bin, command, s->r.dir, name, s->r.dir, name);
    t_proc_start(p, (const char *const[]){ "sh", "-c", script, NULL }, NULL);
}

/*
 * A runner that says something, waits for us, and says more. The joiners must have read the first
 * part, so that they have joined for certain, before it goes on.
 */
static struct scene *
scene_new(void)
{
    struct scene *s = calloc(1, sizeof *s);
    char          command[3 * T_PATH_BYTES];
    char          path[T_PATH_BYTES];
    char          name[32];

    CHECK(s != NULL);
    race_init(&s->r);
    t_path(s->fifo, "%s/fifo", s->r.dir);
    T_EQ(mkfifo(s->fifo, 0600), 0);
    (void)snprintf(command, sizeof command,
                   "echo first; echo problem >&2; read -r _ <%s; seq 1 20000; echo last; exit 7",
                   s->fifo);
    start(s, &s->runner, "runner", command);
    t_path(path, "%s/runner.out", s->r.dir);
    race_await_lines(path, "first", 1, LIMIT_MS);
    for (unsigned i = 0; i < JOINERS; i++) {
        (void)snprintf(name, sizeof name, "joiner-%u", i);
        start(s, &s->joiners[i], name, "echo this must not run");
    }
    for (unsigned i = 0; i < JOINERS; i++) {
        t_path(path, "%s/joiner-%u.out", s->r.dir, i);
        race_await_lines(path, "first", 1, LIMIT_MS);
    }
    return s;
}

static void
scene_free(struct scene *s)
{
    for (unsigned i = 0; i < JOINERS; i++)
        t_proc_release(&s->joiners[i]);
    t_proc_release(&s->runner);
    race_release(&s->r);
    free(s);
}

static void
same_file(const struct scene *s, unsigned i, const char *suffix)
{
    char   a[T_PATH_BYTES], b[T_PATH_BYTES];
    size_t n_a, n_b;

    t_path(a, "%s/runner.%s", s->r.dir, suffix);
    t_path(b, "%s/joiner-%u.%s", s->r.dir, i, suffix);
    char *text_a = t_file_read(a, &n_a);
    char *text_b = t_file_read(b, &n_b);
    if (n_a != n_b || memcmp(text_a, text_b, n_a) != 0)
        T_FAIL("joiner %u has %zu bytes of std%s, the runner %zu: %.200s", i, n_b, suffix, n_a,
               text_b);
    free(text_a);
    free(text_b);
}

U_TEST(all_get_what_the_one_that_runs_gives)
{
    struct scene *s = scene_new();
    char          path[T_PATH_BYTES];

    t_file_write(s->fifo, "go\n", 3);
    T_LINE(&s->runner, "status 7", LIMIT_MS, NULL);
    for (unsigned i = 0; i < JOINERS; i++) {
        T_LINE(&s->joiners[i], "status 7", LIMIT_MS, NULL);
        same_file(s, i, "out");
        same_file(s, i, "err");
    }
    t_path(path, "%s/joiner-0.out", s->r.dir);
    char *text = t_file_read(path, NULL);
    T_TRUE(strncmp(text, "first\n1\n2\n", 10) == 0);
    T_HAS(text, "\n20000\nlast\n");
    free(text);
    scene_free(s);
}

/* Which process is the runner's wrapper says its lease. */
static pid_t
wrapper_pid(const struct scene *s)
{
    il      *h   = race_open(&s->r);
    il_op    op  = { 0 };
    il_error err = { 0 };

    if (il_get(h, "join", &op, &err) != IL_OK)
        T_FAIL("%s", err.message);
    const char *pid = strstr(op.out.items[0].meta, "\"pid\":");
    T_TRUE(pid != NULL);
    pid_t found = (pid_t)strtol(pid + 6, NULL, 10);
    il_op_release(&op);
    il_close(h);
    return found;
}

U_TEST(the_one_that_runs_is_killed)
{
    struct scene *s = scene_new();

    T_EQ(kill(wrapper_pid(s), SIGKILL), 0);
    T_LINE(&s->runner, "status 137", LIMIT_MS, NULL);
    for (unsigned i = 0; i < JOINERS; i++)
        T_LINE(&s->joiners[i], "status 76", LIMIT_MS, NULL);
    scene_free(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(all_get_what_the_one_that_runs_gives),
        U_ROW(the_one_that_runs_is_killed),
    };

    return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
