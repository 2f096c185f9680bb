/*
 * proc_death.c: what happens to a server's commands when the server, the spawner or a reaper dies
 * or is stopped; many commands at once; and that no process is left behind.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "proc/proc.h"
#include "proc_help.h"

/* The command says its number; then one does that has left group and session. Both ignore TERM. */
#define TREE "trap '' TERM; echo $$; setsid sh -c 'echo $$; exec sleep 60' & exec sleep 60"

/* ---- a server that is killed or stopped ------------------------------------------------------ */

struct server {
    int64_t lease_ms;
};

/* A process that runs a command under a spawner, says the numbers of both, and how it ended. */
static int
server_main(void *arg)
{
    const struct server  *v    = arg;
    struct proc_spawner  *s    = c_open();
    struct proc_spec      spec = c_spec(NULL);
    static struct command c;

    if (v->lease_ms > 0)
        spec.deadline_ns = il__clock_boot_ns() + v->lease_ms * IL__NS_PER_MS;
    c_start_sh(s, &c, TREE, &spec);
    for (int i = 0; i < 2; i++)
        (void)printf("pid %d\n", (int)c_number(&c));
    (void)printf("spawner %d\n", (int)c_spawner());
    (void)fflush(stdout);
    c_end(&c);
    (void)printf("end %d\n", (int)c.report.end);
    il__proc_finish(&c.child);
    il__proc_spawner_close(s);
    return 0;
}

static pid_t
number(struct t_proc *p, const char *prefix)
{
    char line[T_PROC_LINE_BYTES];

    T_LINE(p, prefix, LIMIT_MS, line);
    return (pid_t)strtol(line + strlen(prefix), NULL, 10);
}

U_TEST(server_killed)
{
    struct server        v = { 0 }; /* no lease, even */
    static struct t_proc p;

    t_proc_fork(&p, server_main, &v);
    pid_t one     = number(&p, "pid ");
    pid_t two     = number(&p, "pid ");
    pid_t spawner = number(&p, "spawner ");
    t_proc_signal(&p, SIGKILL);
    T_EQ(t_proc_exit(&p, LIMIT_MS), 128 + SIGKILL);
    T_TRUE(t_pid_gone(one, LIMIT_MS));
    T_TRUE(t_pid_gone(two, LIMIT_MS));
    T_TRUE(t_pid_gone(spawner, LIMIT_MS));
    t_proc_release(&p);
}

/* The commands end before the deadline; the server, which may have other leases, goes on when it is
 * let. */
U_TEST(server_stopped)
{
    struct server        v = { .lease_ms = 4000 };
    static struct t_proc p;
    int64_t              began_ms = t_real_ms();

    t_proc_fork(&p, server_main, &v);
    pid_t one = number(&p, "pid ");
    pid_t two = number(&p, "pid ");
    (void)number(&p, "spawner ");
    t_proc_signal(&p, SIGSTOP);
    T_TRUE(t_pid_in_state(p.pid, 'T', LIMIT_MS));
    T_TRUE(t_pid_gone(one, LIMIT_MS));
    T_TRUE(t_pid_gone(two, LIMIT_MS));
    T_TRUE(t_real_ms() - began_ms >= 3500);
    (void)poll(NULL, 0, 500); /* past the deadline: nobody kills it */
    T_TRUE(t_pid_in_state(p.pid, 'T', 0));
    t_proc_signal(&p, SIGCONT);
    T_EQ(number(&p, "end "), PROC_END_DEADLINE);
    T_EQ(t_proc_exit(&p, LIMIT_MS), 0);
    t_proc_release(&p);
}

/* ---- a spawner or reaper that is killed or stopped ------------------------------------------- */

U_TEST(spawner_killed)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    struct command       d;

    c_start_sh(s, &c, TREE, NULL);
    pid_t one = c_number(&c);
    pid_t two = c_number(&c);
    T_EQ(kill(c_spawner(), SIGKILL), 0);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_REAPER);
    T_EQ(c.report.wait_status, -1);
    T_TRUE(t_pid_gone(one, 0) && t_pid_gone(two, 0)); /* before the report */
    c_start_sh(s, &d, "exit 7", NULL);                /* while the first is not even finished */
    c_exits(&d, 7);
    il__proc_finish(&c.child);
    c_start_sh(s, &d, "exit 8", NULL);
    c_exits(&d, 8);
    (void)c_spawner(); /* the dead one was waited for */
    il__proc_spawner_close(s);
    T_EQ(c_children(getpid(), NULL, 0), 0);
}

/* Signals that are meant for the server, or for everything of a service, do not end it. */
U_TEST(spawner_ignores_signals)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE, SIGALRM };
    struct proc_spawner *s     = c_open();
    struct command       c;
    pid_t                reaper;

    c_start_sh(s, &c, "echo $$; sleep 60", NULL);
    reaper = c_parent(c_number(&c));
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        T_EQ(kill(c_spawner(), signals[i]), 0);
        T_EQ(kill(reaper, signals[i]), 0);
    }
    T_TRUE(getsid(c_spawner()) != getsid(0));
    struct command d;
    c_start_sh(s, &d, "exit 7", NULL);
    c_exits(&d, 7);
    T_TRUE(t_pid_in_state(reaper, 'S', LIMIT_MS));
    il__proc_stop(&c.child);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_STOPPED);
    il__proc_finish(&c.child);
    il__proc_spawner_close(s);
}

U_TEST(reaper_killed)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    struct command       other;

    c_start_sh(s, &c, TREE, NULL);
    pid_t one    = c_number(&c);
    pid_t two    = c_number(&c);
    pid_t reaper = c_parent(one);
    c_start_sh(s, &other, "echo $$; sleep 0.5; exit 9", NULL); /* stays untouched */
    (void)c_number(&other);
    T_EQ(kill(reaper, SIGKILL), 0);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_REAPER);
    T_TRUE(t_pid_gone(one, 0) && t_pid_gone(two, 0)); /* before the report */
    il__proc_finish(&c.child);
    c_exits(&other, 9);
    il__proc_spawner_close(s);
}

/* A spawner that has no descriptor to look with does not say that nothing is left. */
U_TEST(reaper_killed_no_descriptors)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    struct rlimit        many;

    c_start_sh(s, &c, TREE, NULL);
    pid_t one = c_number(&c);
    pid_t two = c_number(&c);
    T_TRUE(c_settles(c_spawner(), 2, SIZE_MAX)); /* the spare is there, too */
    T_EQ(prlimit(c_spawner(), RLIMIT_NOFILE, NULL, &many), 0);
    struct rlimit few = { 8, many.rlim_max }; /* as many as it has for itself */
    T_EQ(prlimit(c_spawner(), RLIMIT_NOFILE, &few, NULL), 0);
    T_EQ(kill(c_parent(one), SIGKILL), 0);
    T_TRUE(t_pid_gone(one, LIMIT_MS)); /* with its reaper */
    struct pollfd fd = { c.child.ctl, POLLIN, 0 };
    T_EQ(poll(&fd, 1, 500), 0);
    T_TRUE(!t_pid_gone(two, 0));
    T_EQ(prlimit(c_spawner(), RLIMIT_NOFILE, &many, NULL), 0);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_REAPER);
    T_TRUE(t_pid_gone(two, 0)); /* before the report */
    il__proc_finish(&c.child);
    il__proc_spawner_close(s);
}

U_TEST(reaper_stopped)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    pid_t                reaper;

    c_start_sh(s, &c, "echo $$; sleep 0.5; exit 9", NULL);
    reaper = c_parent(c_number(&c));
    T_EQ(kill(reaper, SIGSTOP), 0); /* the spawner lets it go on at once */
    c_exits(&c, 9);
    il__proc_spawner_close(s);
}

/* A stop that crosses the report: nobody reads it, and the report is not lost by that. */
U_TEST(stop_after_the_report)
{
    struct proc_spawner *s = c_open();
    struct command       c;

    c_start_sh(s, &c, "trap 'exit 9' USR1; echo $$; while :; do sleep 0.05; done", NULL);
    pid_t pid    = c_number(&c);
    pid_t reaper = c_parent(pid);
    T_EQ(kill(c_spawner(), SIGSTOP), 0); /* it has the last end of the socket */
    T_TRUE(t_pid_in_state(c_spawner(), 'T', LIMIT_MS));
    T_EQ(kill(pid, SIGUSR1), 0);
    T_TRUE(t_pid_in_state(reaper, 'Z', LIMIT_MS));
    il__proc_stop(&c.child);
    T_EQ(kill(c_spawner(), SIGCONT), 0);
    struct pollfd fd = { c.child.ctl, 0, 0 };
    T_EQ(poll(&fd, 1, LIMIT_MS), 1); /* closed */
    c_exits(&c, 9);
    il__proc_spawner_close(s);
}

/* The spawner has seen the end of its spare: what it gives to one that is just dying is lost, and
 * reported so. */
static void
await_another(pid_t spare)
{
    int64_t until_ms = t_real_ms() + LIMIT_MS;
    pid_t   now      = spare;

    while (now == spare) {
        T_TRUE(t_real_ms() < until_ms);
        if (c_children(c_spawner(), &now, 1) != 1)
            now = spare;
    }
}

/* The reaper that waits for the next command, too. */
U_TEST(spare_killed)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    pid_t                spare;

    for (int i = 0; i < 6; i++) {
        c_start_sh(s, &c, "exit 5", NULL);
        c_exits(&c, 5);
        T_TRUE(c_settles(c_spawner(), 1, SIZE_MAX));
        T_EQ(c_children(c_spawner(), &spare, 1), 1);
        T_EQ(kill(spare, i % 2 == 0 ? SIGKILL : SIGSTOP), 0);
        if (i % 2 == 0)
            await_another(spare);
    }
    c_start_sh(s, &c, "exit 7", NULL);
    c_exits(&c, 7);
    il__proc_spawner_close(s);
}

/* A spawner that does nothing at all: what waits for it is given up, the next start has another
 * one. */
U_TEST(spawner_hangs)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    struct command       d;

    c_start_sh(s, &c, "exit 5", NULL);
    c_exits(&c, 5);
    T_EQ(kill(c_spawner(), SIGSTOP), 0);
    T_TRUE(t_pid_in_state(c_spawner(), 'T', LIMIT_MS));
    c_start_sh(s, &d, "exit 6", NULL);
    il__proc_finish(&d.child); /* after its patience */
    c_start_sh(s, &c, "exit 7", NULL);
    c_exits(&c, 7);
    il__proc_spawner_close(s);
    T_EQ(c_children(getpid(), NULL, 0), 0);
}

/* Without close_range(), as under an old kernel: the spare must not keep its own socket open, or
 * the spawner waits for it for ever. */
#define NO_FILTERS 77

static int
no_close_range_main(void *arg)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = { ARRAY_LEN(code), code };

    (void)arg;
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return NO_FILTERS;
    struct proc_spawner  *s = c_open();
    static struct command c;
    c_start_sh(s, &c, "exit 5", NULL);
    c_exits(&c, 5);
    il__proc_spawner_close(s);
    return 0;
}

U_TEST(no_close_range)
{
    static struct t_proc p;

    t_proc_fork(&p, no_close_range_main, NULL);
    int status = t_proc_exit(&p, LIMIT_MS);
    if (status == NO_FILTERS)
        print_message("# not here: the kernel has no seccomp filters\n");
    else
        T_EQ(status, 0);
    t_proc_release(&p);
}

/* ---- many ------------------------------------------------------------------------------------ */

#define N_THREADS 4
#define N_EACH_MAX 25
#define FDS_EACH 3    /* of a command: output, errors, reports */
#define FDS_OTHERS 40 /* at most, of all else in this process */

struct worker {
    struct proc_spawner *s;
    pthread_t            thread;
    unsigned             i_first, n;
    unsigned             n_right;
};

/* Of a thread; fewer where this process may have few descriptors. */
static unsigned
commands_each(void)
{
    struct rlimit files;

    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > FDS_OTHERS);
    rlim_t n = (files.rlim_cur - FDS_OTHERS) / FDS_EACH / N_THREADS;
    T_LESS(4, n);
    return (unsigned)MIN(n, N_EACH_MAX);
}

/* All of them at once; each says its number and gives it as its status. Without T_…, as this is a
 * thread. */
static void *
worker_main(void *arg)
{
    struct worker    *w = arg;
    struct proc_child children[N_EACH_MAX];
    char              script[64];

    for (unsigned i = 0; i < w->n; i++) {
        char *const argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", script, NULL };
        struct proc_spec spec = c_spec(argv);
        (void)snprintf(script, sizeof script, "sleep 0.2; echo %u; exit %u", w->i_first + i,
                       w->i_first + i);
        if (il__proc_start(w->s, &spec, &children[i], NULL) != IL_OK)
            return NULL;
    }
    for (unsigned i = 0; i < w->n; i++) {
        struct proc_report report = { .end = PROC_END_NONE };
        char               text[16];
        char               expected[16];
        while (report.end == PROC_END_NONE) {
            struct pollfd fd = { children[i].ctl, POLLIN, 0 };
            if (poll(&fd, 1, LIMIT_MS) == 0)
                return NULL;
            il__proc_report(&children[i], &report);
        }
        ssize_t n       = read(children[i].out_fd, text, sizeof text - 1);
        text[MAX(n, 0)] = '\0';
        (void)snprintf(expected, sizeof expected, "%u\n", w->i_first + i);
        w->n_right += report.end == PROC_END_EXITED && WIFEXITED(report.wait_status) &&
                      (unsigned)WEXITSTATUS(report.wait_status) == w->i_first + i &&
                      strcmp(text, expected) == 0;
        il__proc_finish(&children[i]);
    }
    return NULL;
}

U_TEST(many_at_once)
{
    struct proc_spawner *s = c_open();
    struct worker        workers[N_THREADS];
    struct command       c;
    unsigned             n_each  = commands_each();
    unsigned             n_right = 0;

    c_start_sh(s, &c, "exit 0", NULL);
    c_exits(&c, 0);
    pid_t  spawner = c_spawner();
    size_t n_ours  = c_fds(getpid());
    size_t n_its   = c_fds(spawner);
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){ .s = s, .i_first = i * n_each, .n = n_each };
        CHECK(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        n_right += workers[i].n_right;
    }
    T_EQ(n_right, N_THREADS * n_each);
    /* No descriptor and no process is left, here or, but for the spare reaper, in the spawner. */
    T_EQ(c_fds(getpid()), n_ours);
    T_TRUE(c_settles(spawner, 1, n_its));
    il__proc_spawner_close(s);
    T_EQ(c_children(getpid(), NULL, 0), 0);
}

/* Failures leave nothing either. */
U_TEST(no_leaks)
{
    struct proc_spawner *s = c_open();
    struct command       c;
    char *const          argv[] = { (char *)(uintptr_t) "no-such-command", NULL };
    struct proc_spec     spec   = c_spec(argv);

    c_start_sh(s, &c, "exit 0", NULL);
    c_exits(&c, 0);
    pid_t  spawner = c_spawner();
    size_t n_ours  = c_fds(getpid());
    size_t n_its   = c_fds(spawner);
    for (int i = 0; i < 20; i++) {
        c_start(s, &c, &spec);
        c_end(&c);
        il__proc_finish(&c.child);
        c_start_sh(s, &c, "echo $$; sleep 60", NULL);
        pid_t reaper = c_parent(c_number(&c));
        if (i % 2 == 0)
            (void)kill(reaper, SIGKILL);
        il__proc_finish(&c.child);
    }
    T_EQ(c_fds(getpid()), n_ours);
    T_TRUE(c_settles(spawner, 1, n_its));
    il__proc_spawner_close(s);
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(server_killed),
        U_ROW(server_stopped),
        U_ROW(spawner_killed),
        U_ROW(spawner_ignores_signals),
        U_ROW(reaper_killed),
        U_ROW(reaper_stopped),
        U_ROW(spare_killed),
        U_ROW(spawner_hangs),
        U_ROW(reaper_killed_no_descriptors),
        U_ROW(stop_after_the_report),
        U_ROW(no_close_range),
        U_ROW(many_at_once),
        U_ROW(no_leaks),
    };
    int status = c_main(argc, argv);

    return status >= 0 ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
