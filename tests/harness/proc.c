/*
 * proc.c: child processes.
 */
#include "harness/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/tmp.h"

/* In the child: stdin from in_fd, stdout and stderr to out_fd, a process group of its own, like a
 * shell's job, and no survivor when the test dies. */
static void
become_child(int in_fd, int out_fd, pid_t parent)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent ||
        sigprocmask(SIG_SETMASK, &none, NULL) != 0 || dup2(in_fd, STDIN_FILENO) < 0 ||
        dup2(out_fd, STDOUT_FILENO) < 0 || dup2(out_fd, STDERR_FILENO) < 0)
        _exit(126);
}

/* Fork with pipes; 0 in the child. */
static pid_t
fork_with_pipes(struct t_proc *p)
{
    int   in[2];
    int   out[2];
    pid_t parent = getpid();

    *p = (struct t_proc){ .in = -1, .out = -1 };
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        T_FAIL("pipe: %s", strerror(errno));
    (void)fflush(NULL);
    p->pid = fork();
    if (p->pid < 0)
        T_FAIL("fork: %s", strerror(errno));
    if (p->pid == 0) {
        become_child(in[0], out[1], parent);
        return 0;
    }
    (void)close(in[0]);
    (void)close(out[1]);
    p->in  = in[1];
    p->out = out[0];
    return p->pid;
}

void
t_proc_start(struct t_proc *p, const char *const argv[], const char *const env[])
{
    char *const *args;

    memcpy(&args, &argv, sizeof args); /* exec does not write to them */
    if (fork_with_pipes(p) != 0)
        return;
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        char *pair = strdup(env[i]);
        if (pair == NULL || putenv(pair) != 0)
            _exit(126);
    }
    (void)execvp(argv[0], args);
    (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

void
t_proc_fork(struct t_proc *p, int (*fn)(void *arg), void *arg)
{
    if (fork_with_pipes(p) != 0)
        return;
    int status = fn(arg);
    (void)fflush(NULL);
    _exit(status);
}

/* Read what there is, waiting at most wait_ms for something. False at the end of the output. */
static bool
read_more(struct t_proc *p, int64_t wait_ms)
{
    struct pollfd pfd = { .fd = p->out, .events = POLLIN };

    if (p->out < 0)
        return false;
    if (poll(&pfd, 1, (int)wait_ms) <= 0)
        return true;
    CHECK(p->n_text < sizeof p->text);
    size_t room = sizeof p->text - 1 - p->n_text;
    if (room == 0)
        T_FAIL("a child says more than %zu bytes", sizeof p->text);
    ssize_t n = read(p->out, p->text + p->n_text, room);
    if (n <= 0) {
        (void)close(p->out);
        p->out = -1;
        return false;
    }
    p->n_text += (size_t)n;
    p->text[p->n_text] = '\0';
    return true;
}

/* Take the next complete line with this prefix out of what has been read. */
static bool
take_line(struct t_proc *p, const char *prefix, char line[T_PROC_LINE_BYTES])
{
    for (;;) {
        const char *start = p->text + p->n_taken;
        const char *end   = strchr(start, '\n');
        if (end == NULL)
            return false;
        p->n_taken = (size_t)(end - p->text) + 1;
        if (strncmp(start, prefix, strlen(prefix)) == 0) {
            if (line != NULL)
                (void)snprintf(line, T_PROC_LINE_BYTES, "%.*s", (int)(end - start), start);
            return true;
        }
    }
}

bool
t_proc_line(struct t_proc *p, const char *prefix, int64_t limit_ms, char line[T_PROC_LINE_BYTES])
{
    int64_t until = t_real_ms() + limit_ms;

    for (;;) {
        if (take_line(p, prefix, line))
            return true;
        int64_t left = until - t_real_ms();
        if (left <= 0 || !read_more(p, left))
            return take_line(p, prefix, line);
    }
}

void
t_proc_say(struct t_proc *p, const char *line)
{
    if (dprintf(p->in, "%s\n", line) < 0)
        T_FAIL("a child does not listen: %s", strerror(errno));
}

void
t_proc_signal(const struct t_proc *p, int signo)
{
    CHECK(p->pid > 0);
    if (kill(p->pid, signo) != 0)
        T_FAIL("kill %d: %s", signo, strerror(errno));
}

static int
pidfd_open_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool
t_proc_end(struct t_proc *p, int64_t limit_ms)
{
    int64_t until = t_real_ms() + limit_ms;
    int     fd    = p->pid != 0 ? pidfd_open_of(p->pid) : -1;

    while (p->pid != 0) {
        struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
                                 { .fd = p->out, .events = POLLIN } };
        int64_t       left   = until - t_real_ms();
        if (waitpid(p->pid, &p->status, WNOHANG) == p->pid) {
            p->pid = 0;
            break;
        }
        if (left <= 0)
            break;
        if (poll(fds, 2, (int)left) > 0 && fds[1].revents != 0)
            (void)read_more(p, 0);
    }
    if (fd >= 0)
        (void)close(fd);
    while (p->pid == 0 && p->out >= 0) { /* what it left in the pipe */
        size_t n = p->n_text;
        if (!read_more(p, 0) || p->n_text == n)
            break;
    }
    return p->pid == 0;
}

int
t_proc_exit(struct t_proc *p, int64_t limit_ms)
{
    if (!t_proc_end(p, limit_ms))
        T_FAIL("process %d has not ended within %d ms; it said:\n%s", (int)p->pid, (int)limit_ms,
               p->text);
    return WIFSIGNALED(p->status) ? 128 + WTERMSIG(p->status) : WEXITSTATUS(p->status);
}

void
t_proc_release(struct t_proc *p)
{
    if (p->pid > 0) {
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, &p->status, 0);
        p->pid = 0;
    }
    if (p->in >= 0)
        (void)close(p->in);
    if (p->out >= 0)
        (void)close(p->out);
    p->in  = -1;
    p->out = -1;
}

/* The state letter of a process, 0 when there is none. */
static char
state_of(pid_t pid)
{
    char path[64];
    char text[512];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return '\0';
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *paren   = strrchr(text, ')'); /* the name before it may hold anything */
    return paren != NULL && paren[1] == ' ' ? paren[2] : '\0';
}

/* Processes that are not our children give no event to wait for when they stop: look every ms. */
static void
look_again_soon(void)
{
    (void)poll(NULL, 0, 1);
}

bool
t_pid_gone(pid_t pid, int64_t limit_ms)
{
    int64_t until = t_real_ms() + limit_ms;

    for (;;) {
        char state = state_of(pid);
        if (state == '\0' || state == 'Z' || state == 'X')
            return true;
        if (t_real_ms() >= until)
            return false;
        look_again_soon();
    }
}

bool
t_pid_in_state(pid_t pid, char state, int64_t limit_ms)
{
    int64_t until = t_real_ms() + limit_ms;

    while (state_of(pid) != state) {
        if (t_real_ms() >= until)
            return false;
        look_again_soon();
    }
    return true;
}

/* All of its threads are: one that was on its way to a lock must have come to it. */
static bool
is_stopped(pid_t pid)
{
    char           path[64];
    bool           stopped = true;
    struct dirent *e;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        T_FAIL("%s: %s", path, strerror(errno));
    while ((e = readdir(tasks)) != NULL)
        stopped =
            stopped && (e->d_name[0] == '.' || state_of((pid_t)strtol(e->d_name, NULL, 10)) == 'T');
    (void)closedir(tasks);
    return stopped;
}

/* Nobody is in a transaction of the store at `url`, or only somebody who comes out of it again. */
static bool
is_free(const char *url, int64_t limit_ms)
{
    int64_t until = t_real_ms() + limit_ms;
    char    path[T_PATH_BYTES];
    int     rc;

    if (strncmp(url, "sqlite:", 7) != 0)
        return true;
    t_path(path, "%s-lock", url + 7);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        T_FAIL("%s: %s", path, strerror(errno));
    while ((rc = flock(fd, LOCK_EX | LOCK_NB)) != 0 && t_real_ms() < until)
        look_again_soon();
    (void)close(fd); /* and gives the lock up */
    return rc == 0;
}

void
t_proc_stop_outside(const struct t_proc *p, const char *url, int64_t limit_ms)
{
    int64_t until = t_real_ms() + limit_ms;

    for (;;) {
        t_proc_signal(p, SIGSTOP);
        while (!is_stopped(p->pid) && t_real_ms() < until)
            look_again_soon();
        if (t_real_ms() >= until)
            T_FAIL("pid %d cannot be stopped outside of a transaction", (int)p->pid);
        if (is_free(url, 100))
            return;
        t_proc_signal(p, SIGCONT);
        look_again_soon();
    }
}
