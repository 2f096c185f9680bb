/*
 * spawn.c: finds and starts the command. reaper.c and stop.c watch and stop it.
 */
#include "proc/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "proc/sys.h"

#define PATH_DEFAULT "/bin:/usr/bin"
#define PATH_BYTES_MAX 8192

/* May we execute it? 0, or the errno that execve() would return. */
static int
look_at(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
        return errno;
    return 0;
}

/* Search $PATH. 0 and the path in *found, else the errno to report. */
static int
search(const char *name, struct il__buf *found)
{
    const char *dirs   = getenv("PATH");
    int         result = ENOENT;

    if (dirs == NULL)
        dirs = PATH_DEFAULT;
    for (const char *p = dirs;; p++) {
        size_t n_bytes = strcspn(p, ":");
        il__buf_clear(found);
        il__buf_add(found, p, n_bytes);
        il__buf_adds(found, n_bytes > 0 ? "/" : "./"); /* an empty entry is the current folder */
        il__buf_adds(found, name);
        int error = found->failed ? ENAMETOOLONG : look_at(il__buf_str(found));
        if (error == 0)
            return 0;
        /* A file that exists but may not be executed counts if nothing better follows. In an
         * unsearchable folder it cannot be seen, so it counts as missing, as in a shell (execvp()
         * returns EACCES). */
        if (error == EACCES && faccessat(AT_FDCWD, il__buf_str(found), F_OK, AT_EACCESS) == 0)
            result = error;
        p += n_bytes;
        if (*p == '\0')
            return result;
    }
}

int
il__proc_find(const char *name, char **ret)
{
    AUTO_BUF struct il__buf found;
    int                     error;

    *ret = NULL;
    il__buf_init(&found, PATH_BYTES_MAX);
    if (name[0] == '\0') {
        error = ENOENT;
    } else if (strchr(name, '/') != NULL) {
        il__buf_adds(&found, name);
        error = found.failed ? ENAMETOOLONG : look_at(name);
    } else {
        error = search(name, &found);
    }
    if (error != 0)
        return error;
    *ret = il__buf_take(&found);
    return *ret != NULL ? 0 : ENOMEM;
}

int
il__proc_exec_failed(const char *name, const char *path, int error)
{
    bool missing = error == ENOENT || error == ENOTDIR;

    /* ENOENT for an existing file: its interpreter does not exist. */
    if (error == ENOENT && path != NULL && access(path, F_OK) == 0) {
        il__proc_say("%.500s: interpreter not found", name);
        return IL__EXIT_NOT_EXECUTABLE;
    }
    il__proc_say("%.500s: %s", name, error == ENOENT ? "command not found" : strerror(error));
    return missing ? IL__EXIT_NOT_FOUND : IL__EXIT_NOT_EXECUTABLE;
}

bool
il__proc_export(const char *key, const char *holder, uint64_t fence, int64_t deadline_ns)
{
    char    fence_text[24];
    char    deadline_text[24];
    int64_t left_ms = (deadline_ns - il__clock_boot_ns()) / IL__NS_PER_MS;

    (void)snprintf(fence_text, sizeof fence_text, "%" PRIu64, fence);
    (void)snprintf(deadline_text, sizeof deadline_text, "%" PRId64, il__clock_wall_ms() + left_ms);
    const char *const pairs[][2] = {
        { "INTERLOCK_KEY", key },
        { "INTERLOCK_HOLDER", holder },
        { "INTERLOCK_FENCE", fence_text },
        { "INTERLOCK_DEADLINE", deadline_text },
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        /* An outer `interlock run` may have set them, too, perhaps more than once: remove all. */
        if (unsetenv(pairs[i][0]) != 0 || setenv(pairs[i][0], pairs[i][1], 1) != 0)
            return false;
    }
    return true;
}

/* What execvp() does with a script without an interpreter line. */
static void
exec_with_shell(const struct proc_spawn *s, const char *path, char *const *env)
{
    size_t n_args = 0;

    while (s->argv[n_args] != NULL)
        n_args++;
    const char **argv = il__calloc(n_args + 2, sizeof *argv);
    if (argv == NULL)
        return;
    argv[0] = "sh";
    argv[1] = path;
    for (size_t i = 1; i < n_args; i++)
        argv[i + 1] = s->argv[i];
    (void)execve("/bin/sh", (char *const *)(uintptr_t)argv, env);
    il__free(argv);
}

/* Returns, with errno, only on failure. */
static void
exec_path(const struct proc_spawn *s, const char *path, char *const *env)
{
    (void)execve(path, s->argv, env);
    if (errno == ENOEXEC)
        exec_with_shell(s, path, env);
}

static const char *
path_of(char *const *env)
{
    for (size_t i = 0; env[i] != NULL; i++) {
        if (strncmp(env[i], "PATH=", 5) == 0)
            return env[i] + 5;
    }
    return PATH_DEFAULT;
}

/* Like execvp(), which would use the PATH of our own environment. */
static void
exec_search(const struct proc_spawn *s, char *const *env)
{
    const char *name   = s->argv[0];
    bool        denied = false;
    char        path[PATH_MAX];

    if (strchr(name, '/') != NULL) {
        exec_path(s, name, env);
        return;
    }
    errno = ENOENT;
    for (const char *p = path_of(env);; p++) {
        size_t n_bytes = strcspn(p, ":"); /* an empty entry is the current folder */
        int    n       = snprintf(path, sizeof path, "%.*s%s%s", (int)MIN(n_bytes, INT_MAX), p,
                         n_bytes > 0 ? "/" : "", name);
        if (n > 0 && (size_t)n < sizeof path)
            exec_path(s, path, env);
        denied |= errno == EACCES; /* counts if nothing better follows */
        if (errno != EACCES && errno != ENOENT && errno != ENOTDIR && errno != ESTALE &&
            errno != ENODEV && errno != ETIMEDOUT)
            return; /* it exists, but something else is wrong with it */
        p += n_bytes;
        if (*p == '\0')
            break;
    }
    errno = denied ? EACCES : ENOENT;
}

/* 0, or -1 and errno. */
static int
set_limits(const struct proc_rlimits *limits)
{
    for (size_t i = 0; i < limits->n; i++) {
        if (setrlimit(limits->row[i].resource, &limits->row[i].value) != 0)
            return -1;
    }
    return 0;
}

/* The child's side: everything between fork and exec; returns the errno of what failed. All signals
 * are still blocked. */
static int
become_command(const struct proc_spawn *s, pid_t parent)
{
    char *const *env = s->env != NULL ? s->env : environ;
    sigset_t     none;

    /* A parent that died before the prctl() sends no signal any more: hence the check
     * afterwards. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(IL__EXIT_NOT_EXECUTABLE);
    /*
     * Both sides call setpgid(): whichever is first, neither signals nor runs before it is done.
     */
    (void)setpgid(0, 0);
    if (s->tty != NULL)
        (void)tcsetpgrp(s->tty->fd, getpid()); /* SIGTTOU is blocked; the terminal may have gone */
    if ((s->out_fd >= 0 && dup2(s->out_fd, STDOUT_FILENO) < 0) ||
        (s->err_fd >= 0 && dup2(s->err_fd, STDERR_FILENO) < 0) ||
        (s->cwd != NULL && chdir(s->cwd) != 0))
        return errno;
    /*
     * An ignored SIGCHLD would make the command's own waits fail; our parent may have set it.
     */
    (void)signal(SIGCHLD, SIG_DFL);
    CHECK(sigemptyset(&none) == 0);
    CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
    if (s->limits != NULL && set_limits(s->limits) != 0)
        return errno;
    if (s->path != NULL)
        exec_path(s, s->path, env);
    else
        exec_search(s, env);
    return errno;
}

pid_t
il__proc_spawn(const struct proc_spawn *s, int *ret_exec_fd)
{
    int   exec_pipe[2];
    pid_t parent = getpid();

    if (pipe2(exec_pipe, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        int error = become_command(s, parent);
        (void)il__proc_write_all(exec_pipe[1], &error,
                                 sizeof error); /* a dead reader needs no answer */
        _exit(IL__EXIT_NOT_EXECUTABLE);
    }
    il__proc_fd_close(&exec_pipe[1]);
    if (pid < 0) {
        int error = errno;
        il__proc_fd_close(&exec_pipe[0]);
        errno = error;
        return -1;
    }
    (void)setpgid(pid, pid); /* fails after the child's exec: then the child has done it */
    *ret_exec_fd = exec_pipe[0];
    return pid;
}

/* ---- without a copy of our memory ------------------------------------------------------------ */

#if defined(__SANITIZE_THREAD__)
#define COPIES_ALWAYS 1 /* its clone() treats this as a fork, and breaks */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COPIES_ALWAYS 1
#endif
#endif

#ifdef COPIES_ALWAYS

pid_t
il__proc_spawn_waiting(const struct proc_spawn *s, int *ret_error)
{
    AUTO_FD int exec_fd = -1;
    pid_t       pid     = il__proc_spawn(s, &exec_fd);

    if (pid < 0 || read(exec_fd, ret_error, sizeof *ret_error) != (ssize_t)sizeof *ret_error)
        *ret_error = 0;
    return pid;
}

#else

struct guest {
    const struct proc_spawn *s;
    pid_t                    parent;
    int                      error;
};

static int
guest_main(void *arg)
{
    struct guest *g = arg;

    g->error = become_command(g->s, g->parent);
    _exit(IL__EXIT_NOT_EXECUTABLE);
}

pid_t
il__proc_spawn_waiting(const struct proc_spawn *s, int *ret_error)
{
    enum {
        STACK_BYTES = 64 << 10
    };
    static _Alignas(64) char stack[STACK_BYTES]; /* grows downwards, as everywhere that we run */
    struct guest             g = { .s = s, .parent = getpid() };

    pid_t pid  = clone(guest_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &g);
    *ret_error = g.error;
    return pid;
}

#endif
