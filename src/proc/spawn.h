/*
 * spawn.h: finding the command and starting it.
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
 * Look for the command as execvp() does, before a lease is taken for it. 0: *ret is its path, the
 * caller's (il__free). Else the exit status, and what is wrong has been said.
 */
int il__run_resolve(const char *name, char **ret);

/* The exit status for an execve() of `path` that failed with `error`; says what is wrong. */
int il__run_exec_failed(const char *name, const char *path, int error);

/* Limits that the command gets just before it is executed. */
#define IL__RUN_LIMITS_MAX 4
struct il__run_limits {
    size_t n;
    struct {
        __rlimit_resource_t resource;
        struct rlimit       value;
    } row[IL__RUN_LIMITS_MAX];
};

struct il__run_spawn {
    const char *path; /* NULL = argv[0] is looked up in the PATH of `env`, as execvp() does, in `cwd` */
    char *const                 *argv;
    int                          out_fd; /* becomes stdout; -1 = as it is */
    int                          err_fd; /* becomes stderr; -1 = as it is */
    const struct il__run_tty    *tty;    /* lent to the command; NULL = not */
    char *const                 *env;    /* the complete environment; NULL = ours */
    const char                  *cwd;    /* NULL = ours */
    const struct il__run_limits *limits; /* NULL = ours */
};

/* Why the command was not executed. */
struct il__run_exec_error {
    int32_t error;  /* errno */
    int32_t in_cwd; /* of entering `cwd` */
};

/*
 * Start the command in a process group of its own, with an empty signal mask, the signals that we
 * found ignored still ignored (nohup) and all others at their default. If the caller dies, it is
 * killed.
 *
 * Returns its pid, or -1 and errno. *ret_exec_fd, the caller's to close, gives end of file once the
 * command has been executed, or a struct il__run_exec_error.
 */
pid_t il__run_spawn(const struct il__run_spawn *s, int *ret_exec_fd);

/*
 * The same, faster: the child borrows our memory, and we wait until it is the command, or has failed to become it (*ret,
 * whose error is 0 otherwise; it is reaped like any other). A folder or a file on a disk that does not answer holds us up: for a caller without
 * threads that somebody else watches, and that may be killed then. Once per process.
 */
pid_t il__run_spawn_waiting(const struct il__run_spawn *s, struct il__run_exec_error *ret);

/*
 * Put what the command may know into our own environment, which it inherits: INTERLOCK_KEY,
 * INTERLOCK_HOLDER, INTERLOCK_FENCE, and INTERLOCK_DEADLINE: the local deadline of the lease at the
 * start, in milliseconds since 1970. Renewals move the deadline on; a command that outlives the
 * printed one asks `interlock why`. False when there is no memory.
 */
bool il__run_export(const char *key, const char *holder, uint64_t fence, int64_t deadline_ns);

#endif
