/*
 * process.c: child processes. All are in one small table, so that on a failure or signal they can
 * be killed before their files are removed.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 16
#define END_MS_MAX INT64_C(20000)
#define NO_PROGRAM 127

/* pid 0 = free. Only the main thread starts children; any thread may kill them. */
static struct {
    _Atomic pid_t pid;
    int           end_signal;
} children[CHILDREN_MAX];

/* ---- finding --------------------------------------------------------------------------------- */

static bool
is_program(const char *dir, size_t n_dir, const char *name, char out[BENCH_PATH_BYTES])
{
    int n = snprintf(out, BENCH_PATH_BYTES, "%.*s/%s", (int)n_dir, dir, name);

    return n > 0 && n < BENCH_PATH_BYTES && access(out, X_OK) == 0;
}

bool
program_find(const char *name, char out[BENCH_PATH_BYTES])
{
    const char *path = getenv("PATH");
    char        dir[64];

    /* The newest first; those in /usr/bin are wrappers that look for a server themselves. */
    for (int version = 30; version >= 13; version--) {
        int n = snprintf(dir, sizeof dir, "/usr/lib/postgresql/%d/bin", version);
        if (is_program(dir, (size_t)n, name, out))
            return true;
    }
    for (const char *at = path != NULL ? path : ""; *at != '\0';) {
        size_t n = strcspn(at, ":");
        if (is_program(at, n, name, out))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

bool
process_user(uid_t *uid, gid_t *gid)
{
    struct passwd *p;

    if (geteuid() != 0)
        return false;
    p = getpwnam("postgres");
    if (p == NULL)
        p = getpwnam("nobody");
    if (p == NULL)
        return false;
    *uid = p->pw_uid;
    *gid = p->pw_gid;
    return true;
}

const char *
file_tail(const char *path, char *out, size_t out_bytes)
{
    FILE  *f = fopen(path, "re");
    size_t n = 0;

    if (f != NULL) {
        if (fseek(f, -(long)(out_bytes - 1), SEEK_END) != 0)
            rewind(f); /* it is shorter */
        n = fread(out, 1, out_bytes - 1, f);
        (void)fclose(f); /* was only read from */
    }
    while (n > 0 && out[n - 1] == '\n')
        n--;
    out[n] = '\0';
    return out;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Between fork() and exec: only async-signal-safe calls. */
static _Noreturn void
become(const char *const argv[], const struct process_how *how, const int fds[3], pid_t parent,
       bool has_user, uid_t uid, gid_t gid)
{
    sigset_t none;
    union {
        const char *const *in;
        char *const       *out;
    } words = { .in = argv }; /* execv() does not write to them */

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL); /* ignored signals would stay ignored */
    (void)setpgid(0, 0);            /* ^C is for us: we shut it down in order */
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            _exit(NO_PROGRAM);
    }
    if (has_user && (setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(uid) != 0))
        _exit(NO_PROGRAM);
    /* After that: changing the user resets it. */
    if (prctl(PR_SET_PDEATHSIG, how->end_signal != 0 ? how->end_signal : SIGKILL) != 0 ||
        getppid() != parent)
        _exit(NO_PROGRAM);
    if (how->dir != NULL && chdir(how->dir) != 0)
        _exit(NO_PROGRAM);
    (void)execv(argv[0], words.out);
    _exit(NO_PROGRAM);
}

static size_t
free_child(void)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (atomic_load(&children[i].pid) == 0)
            return i;
    }
    die("too many children");
}

static int
open_fd(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);

    if (fd < 0)
        die("%s: %s", path, strerror(errno));
    return fd;
}

struct process
process_start(const char *const argv[], const struct process_how *how)
{
    struct process p        = { .in = -1, .out = -1 };
    int            to[2]    = { -1, -1 };
    int            from[2]  = { -1, -1 };
    int            fds[3]   = { -1, -1, -1 };
    uid_t          uid      = 0;
    gid_t          gid      = 0;
    bool           has_user = how->unprivileged && process_user(&uid, &gid);
    pid_t          parent   = getpid();
    size_t         i        = free_child();

    if (how->log != NULL) {
        fds[0] = open_fd("/dev/null", O_RDONLY);
        fds[1] = open_fd(how->log, O_WRONLY | O_CREAT | O_APPEND);
    } else {
        if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
            die("no pipe: %s", strerror(errno));
        fds[0] = to[0];
        fds[1] = from[1];
    }
    if (how->log != NULL || how->errors_too)
        fds[2] = fds[1];
    (void)fflush(NULL); /* nothing is printed twice */
    pid_t pid = fork();
    if (pid < 0)
        die("fork: %s", strerror(errno));
    if (pid == 0)
        become(argv, how, fds, parent, has_user, uid, gid);
    (void)setpgid(pid, pid); /* whichever comes first */
    children[i].end_signal = how->end_signal != 0 ? how->end_signal : SIGKILL;
    atomic_store(&children[i].pid, pid);
    p.pid = pid;
    p.in  = to[1];
    p.out = from[0];
    (void)close(fds[0]);
    (void)close(fds[1]);
    return p;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void
forget(pid_t pid)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (atomic_load(&children[i].pid) == pid)
            atomic_store(&children[i].pid, 0);
    }
}

bool
process_ended(struct process *p)
{
    if (p->pid == 0)
        return true;
    pid_t ended = waitpid(p->pid, NULL, WNOHANG);
    if (ended == 0)
        return false;
    forget(p->pid);
    p->pid = 0;
    return true;
}

/* Wait for its exit, and kill it if that takes too long. */
static void
end(pid_t pid, int signo)
{
    int64_t until_ns = il__clock_boot_ns() + END_MS_MAX * IL__NS_PER_MS;

    (void)kill(-pid, signo); /* it may have exited by itself */
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (il__clock_boot_ns() > until_ns)
            (void)kill(-pid, SIGKILL);
        (void)usleep(2000);
    }
}

static void
close_fds(struct process *p)
{
    if (p->in >= 0)
        (void)close(p->in);
    if (p->out >= 0)
        (void)close(p->out);
    p->in  = -1;
    p->out = -1;
}

void
process_stop(struct process *p)
{
    int signo = SIGKILL;

    for (size_t i = 0; p->pid != 0 && i < CHILDREN_MAX; i++) {
        if (atomic_load(&children[i].pid) == p->pid)
            signo = children[i].end_signal;
    }
    if (p->pid != 0) {
        end(p->pid, signo);
        forget(p->pid);
    }
    p->pid = 0;
    close_fds(p);
}

void
processes_end(void)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        pid_t pid = atomic_load(&children[i].pid);
        if (pid != 0)
            end(pid, children[i].end_signal);
    }
}

/* ---- talking --------------------------------------------------------------------------------- */

bool
process_run(const char *const argv[], const struct process_how *how, char *out, size_t out_bytes)
{
    struct process_how both   = *how;
    size_t             n      = 0;
    int                status = 0;
    char               chunk[512];
    ssize_t            n_read;

    CHECK(how->log == NULL && out_bytes > 2 * sizeof chunk);
    both.errors_too  = true;
    struct process p = process_start(argv, &both);
    (void)close(p.in);
    p.in = -1;
    while ((n_read = read(p.out, chunk, sizeof chunk)) > 0 || (n_read < 0 && errno == EINTR)) {
        if (n_read <= 0)
            continue;
        if (n + (size_t)n_read >= out_bytes) { /* the end matters: make room */
            memmove(out, out + n / 2, n - n / 2);
            n -= n / 2;
        }
        memcpy(out + n, chunk, (size_t)n_read);
        n += (size_t)n_read;
    }
    out[n] = '\0';
    while (waitpid(p.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    forget(p.pid);
    close_fds(&p);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void
process_send_line(struct process *p, const char *line)
{
    if (dprintf(p->in, "%s\n", line) < 0)
        die("a child does not listen: %s", strerror(errno));
}

/* A line is short, and there is one per round: byte by byte is fast enough. */
void
process_read_line(struct process *p, char *out, size_t out_bytes)
{
    size_t n = 0;
    char   c = '\0';

    while (c != '\n') {
        ssize_t n_read = read(p->out, &c, 1);
        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read <= 0)
            die("a child has ended too early");
        if (c != '\n' && n < out_bytes - 1)
            out[n++] = c;
    }
    out[n] = '\0';
}
