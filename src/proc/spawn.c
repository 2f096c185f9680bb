/*
 * spawn.c: finding and starting the command. Watching and ending it is reaper.c and stop.c.
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

/* May we execute it? 0, or the errno that execve() would give. */
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

static int
refuse(const char *name, int error)
{
    bool missing = error == ENOENT || error == ENOTDIR;

    il__run_say("%.500s: %s", name, error == ENOENT ? "command not found" : strerror(error));
    return missing ? IL__EXIT_NOT_FOUND : IL__EXIT_NOT_EXECUTABLE;
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
        /* One that is there but may not be run counts when nothing better follows. Whether it is in a folder
         * that may not be searched, nobody can tell: as in a shell, it is not (execvp() says EACCES). */
        if (error == EACCES && faccessat(AT_FDCWD, il__buf_str(found), F_OK, AT_EACCESS) == 0)
            result = error;
        p += n_bytes;
        if (*p == '\0')
            return result;
    }
}

int
il__run_resolve(const char *name, char **ret)
{
    AUTO_BUF struct il__buf found;
    int                     error;

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
        return refuse(name, error);
    *ret = il__buf_take(&found);
    return *ret != NULL ? 0 : refuse(name, ENOMEM);
}

int
il__run_exec_failed(const char *name, const char *path, int error)
{
    /* ENOENT of a file that is there: the interpreter it names is not. */
    if (error == ENOENT && access(path, F_OK) == 0) {
        il__run_say("%.500s: its interpreter is not found", name);
        return IL__EXIT_NOT_EXECUTABLE;
    }
    return refuse(name, error);
}

bool
il__run_export(const char *key, const char *holder, uint64_t fence, int64_t deadline_ns)
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
        /* An outer `interlock run` has set them too, and somebody may have doubled them: all go. */
        if (unsetenv(pairs[i][0]) != 0 || setenv(pairs[i][0], pairs[i][1], 1) != 0)
            return false;
    }
    return true;
}

/* What execvp() does with a script that names no interpreter. */
static void
exec_with_shell(const struct il__run_spawn *s, const char *path, char *const *env)
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

/* Returns, with errno, when that was not possible. */
static void
exec_path(const struct il__run_spawn *s, const char *path, char *const *env)
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

/* As execvp(), which would take the PATH of our own environment. */
static void
exec_search(const struct il__run_spawn *s, char *const *env)
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
        denied |= errno == EACCES; /* counts when nothing better follows */
        if (errno != EACCES && errno != ENOENT && errno != ENOTDIR && errno != ESTALE &&
            errno != ENODEV && errno != ETIMEDOUT)
            return; /* it is there, and something else is wrong with it */
        p += n_bytes;
        if (*p == '\0')
            break;
    }
    errno = denied ? EACCES : ENOENT;
}

/* 0, or -1 and errno. */
static int
set_limits(const struct il__run_limits *limits)
{
    for (size_t i = 0; i < limits->n; i++) {
        if (setrlimit(limits->row[i].resource, &limits->row[i].value) != 0)
            return -1;
    }
    return 0;
}

/* The child's side: everything between fork and exec; returns why that failed. All signals are still blocked. */
static struct il__run_exec_error
become_command(const struct il__run_spawn *s, pid_t parent)
{
    char *const *env    = s->env != NULL ? s->env : environ;
    bool         in_cwd = false;
    sigset_t     none;

    /* A parent that died before the prctl() sends nothing any more: hence the look afterwards. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(IL__EXIT_NOT_EXECUTABLE);
    /*
     * Both sides call setpgid(): whoever comes first, neither signals nor runs before it is done.
     */
    (void)setpgid(0, 0);
    if (s->tty != NULL)
        (void)tcsetpgrp(s->tty->fd, getpid()); /* SIGTTOU is blocked; the terminal may have gone */
    if ((s->out_fd >= 0 && dup2(s->out_fd, STDOUT_FILENO) < 0) ||
        (s->err_fd >= 0 && dup2(s->err_fd, STDERR_FILENO) < 0))
        goto failed;
    if (s->cwd != NULL && chdir(s->cwd) != 0) {
        in_cwd = true;
        goto failed;
    }
    /*
     * An ignored SIGCHLD would make the command's own waits fail; who started us may have set it.
     */
    (void)signal(SIGCHLD, SIG_DFL);
    CHECK(sigemptyset(&none) == 0);
    CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
    if (s->limits != NULL && set_limits(s->limits) != 0)
        goto failed;
    if (s->path != NULL)
        exec_path(s, s->path, env);
    else
        exec_search(s, env);
failed:
    return (struct il__run_exec_error){ errno, in_cwd };
}

pid_t
il__run_spawn(const struct il__run_spawn *s, int *ret_exec_fd)
{
    int   exec_pipe[2];
    pid_t parent = getpid();

    if (pipe2(exec_pipe, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        struct il__run_exec_error e = become_command(s, parent);
        (void)il__run_write_all(exec_pipe[1], &e, sizeof e); /* a dead reader needs no answer */
        _exit(IL__EXIT_NOT_EXECUTABLE);
    }
    il__run_fd_close(&exec_pipe[1]);
    if (pid < 0) {
        int error = errno;
        il__run_fd_close(&exec_pipe[0]);
        errno = error;
        return -1;
    }
    (void)setpgid(pid, pid); /* fails once the child has executed: then it has done so itself */
    *ret_exec_fd = exec_pipe[0];
    return pid;
}

/* ---- without a copy of our memory -------------------------------------------------------------------------------- */

#if defined(__SANITIZE_THREAD__)
#define COPIES_ALWAYS 1 /* its clone() takes this for a fork, and breaks */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COPIES_ALWAYS 1
#endif
#endif

#ifdef COPIES_ALWAYS

pid_t
il__run_spawn_waiting(const struct il__run_spawn *s, struct il__run_exec_error *ret)
{
    AUTO_FD int exec_fd = -1;
    pid_t       pid     = il__run_spawn(s, &exec_fd);

    if (pid < 0 || read(exec_fd, ret, sizeof *ret) != (ssize_t)sizeof *ret)
        *ret = (struct il__run_exec_error){ 0 };
    return pid;
}

#else

struct guest {
    const struct il__run_spawn *s;
    pid_t                       parent;
    struct il__run_exec_error   error;
};

static int
guest_main(void *arg)
{
    struct guest *g = arg;

    g->error = become_command(g->s, g->parent);
    _exit(IL__EXIT_NOT_EXECUTABLE);
}

pid_t
il__run_spawn_waiting(const struct il__run_spawn *s, struct il__run_exec_error *ret)
{
    enum {
        STACK_BYTES = 64 << 10
    };
    static _Alignas(64) char stack[STACK_BYTES]; /* grows downwards, as everywhere that we run */
    struct guest             g = { .s = s, .parent = getpid() };

    pid_t pid = clone(guest_main, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &g);
    *ret      = g.error;
    return pid;
}

#endif
