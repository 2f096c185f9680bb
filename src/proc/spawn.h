/*
 * spawn.h: finds and starts the command.
 */
#ifndef IL_PROC_SPAWN_H
#define IL_PROC_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/base.h"
#include "proc/tty.h"

#define IL__EXIT_NOT_EXECUTABLE 126
#define IL__EXIT_NOT_FOUND 127

/*
 * Search for the command like execvp(). 0: *ret is its path, owned by the caller (il__free). Else
 * the errno that execve() would return, and *ret is NULL.
 */
int il__proc_find(const char *name, char **ret);

/*
 * The exit status for an execve() of `path`, or an il__proc_find() (`path` NULL), that failed with
 * `error`; prints a message.
 */
int il__proc_exec_failed(const char *name, const char *path, int error);

/* Limits that the command gets just before it is executed. */
#define PROC_RLIMITS_MAX 4
struct proc_rlimits {
    size_t n;
    struct {
        __rlimit_resource_t resource;
        struct rlimit       value;
    } row[PROC_RLIMITS_MAX];
};

struct proc_spawn {
    /* NULL = argv[0] is searched in the PATH of `env`, like execvp(), in `cwd` */
    const char                *path;
    char *const               *argv;
    int                        out_fd; /* becomes stdout; -1 = unchanged */
    int                        err_fd; /* becomes stderr; -1 = unchanged */
    const struct proc_tty     *tty;    /* lent to the command; NULL = none */
    char *const               *env;    /* the complete environment; NULL = ours */
    const char                *cwd;    /* NULL = ours */
    const struct proc_rlimits *limits; /* NULL = ours */
};

/*
 * Start the command in its own process group, with an empty signal mask; signals that we inherited
 * as ignored stay ignored (nohup), all others get their default action. If the caller dies, it is
 * killed.
 *
 * Returns its pid, or -1 and errno. *ret_exec_fd, which the caller closes, returns end of file once
 * the command has been executed, or an int: the errno.
 */
pid_t il__proc_spawn(const struct proc_spawn *s, int *ret_exec_fd);

/*
 * The same, but faster: the child shares our memory (vfork), and we wait until it has executed the
 * command or failed to (*ret_error is the errno, or 0; the child is reaped like any other). This
 * blocks on a folder or file of an unresponsive disk, so it is only for single-threaded callers
 * that another process watches and may kill. Once per process.
 */
pid_t il__proc_spawn_waiting(const struct proc_spawn *s, int *ret_error);

/*
 * Set the variables for the command in our own environment, which it inherits: INTERLOCK_KEY,
 * INTERLOCK_HOLDER, INTERLOCK_FENCE, and INTERLOCK_DEADLINE: the local deadline of the lease at the
 * start, in milliseconds since 1970. Renewals move the deadline; a command that outlives this value
 * can ask `interlock why`. False when out of memory.
 */
bool il__proc_export(const char *key, const char *holder, uint64_t fence, int64_t deadline_ns);

#endif
