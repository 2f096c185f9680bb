/*
 * proc.h: the commands that a server runs, each under its own reaper, which stops the command and
 * all its descendants in time, whatever happens to the server.
 *
 * server → spawner → reaper → command. The spawner is this binary, executed once (`interlock
 * spawner`, hidden): it is small and single-threaded, so that forking a reaper from it costs a
 * fraction of executing one. The reaper is that of `interlock run` (reaper.h): a child subreaper
 * that reads the lease's deadline from a shared page, watches the server through a pidfd, and stops
 * everything below it (TERM, grace, KILL; including grandchildren that left the group) on request,
 * on timeout, when the deadline passes without having been moved, or when the server dies. It never
 * kills the server, which has other leases. If the spawner dies, its reapers stop their commands,
 * the running children report PROC_END_REAPER, and the next start executes a new spawner. If a
 * reaper dies, its command is killed with it, and the remaining processes are reparented to the
 * spawner, which kills them.
 *
 * The server's side:
 *   proc.c            starts, watches and stops commands
 *   spawner_link.c    one spawner process: starts it, sends requests to it, dismisses it
 *   spawner_packet.c  requests and their descriptors, to the spawner and to a spare reaper
 *
 * The spawner and the reapers:
 *   spawner.c        the process that forks reapers
 *   served_reaper.c  a reaper of a server's command, from the fork on
 *   reaper.c         the reaper (reaper.h)
 *   reaper_link.c    the link between wrapper and reaper
 *   spawn.c          finds and starts the command
 *   stop.c           stops a process tree
 *   walk.c           finds the processes of a tree
 *
 * Other:
 *   child.c  the command of one job of `interlock queue work`, under a reaper
 *   hook.c   runs a hook
 *   tty.c    lends the terminal's foreground to a command
 *   hide.c   keeps other processes from reading the environment of this one
 *   sys.c    system calls that glibc lacks
 */
#ifndef IL_PROC_PROC_H
#define IL_PROC_PROC_H

#include <sys/types.h>

#include "base/base.h"

struct proc_spawner;

/* Execute it. Call it once per server; the spawner's descriptors are close-on-exec. IL_OK, IL_NOMEM
 * (no process or memory available). */
il_status il__proc_spawner_open(struct proc_spawner **ret, il_error *reterr) MUST_USE;
/* Every child must have been finished. Waits for the spawner. NULL is fine. */
void il__proc_spawner_close(struct proc_spawner *s);
/* The main function of `interlock spawner`; returns the exit status. */
int il__proc_spawner_main(void);

/* 0 = the server's limit. Set with setrlimit() just before the command is executed. */
struct proc_limits {
    int64_t cpu_s;        /* RLIMIT_CPU */
    int64_t memory_bytes; /* RLIMIT_AS */
    int64_t open_files;   /* RLIMIT_NOFILE */
    int64_t processes;    /* RLIMIT_NPROC */
};

/* All members are borrowed for the call. */
struct proc_spec {
    char *const       *argv; /* argv[0] is searched in the PATH of `env`, like execvp(), in `cwd` */
    char *const       *env;  /* the complete environment: nothing is inherited from the server */
    const char        *cwd;
    int64_t            grace_ms;    /* between TERM and KILL */
    int64_t            timeout_ms;  /* 0 = none */
    int64_t            deadline_ns; /* of the lease (CLOCK_BOOTTIME); 0 = none */
    struct proc_limits limits;
    const void        *input; /* what it reads from stdin; without: /dev/null */
    size_t             input_bytes;
};
#define PROC_SPEC_BYTES_MAX (4 << 20) /* argv, env and input together: more is IL_INVAL */

/* A child, in the caller's storage. All descriptors are non-blocking and close-on-exec. */
struct proc_child {
    int   ctl;    /* readable: il__proc_report() has a result */
    int   out_fd; /* its stdout and stderr: end of file once no process has them open */
    int   err_fd;
    void *own; /* proc's */
};
#define PROC_CHILD_NONE  \
    (struct proc_child)  \
    {                    \
        -1, -1, -1, NULL \
    }

/* Start it. IL_OK: it is being started, and execution may still fail (PROC_END_FAILED). IL_INVAL,
 * IL_NOMEM: nothing was started. Any thread. */
il_status il__proc_start(struct proc_spawner *s, const struct proc_spec *spec,
                         struct proc_child *ret, il_error *reterr) MUST_USE;
/* Set the lease's deadline, which only moves forward. Any thread, until the child is finished. */
void il__proc_extend(struct proc_child *c, int64_t deadline_ns);
/* Stop it: TERM, grace, KILL. May be called again; any thread; never blocks. The report is
 * PROC_END_STOPPED unless it had ended before. */
void il__proc_stop(struct proc_child *c);

enum proc_end {
    PROC_END_NONE,     /* not yet */
    PROC_END_EXITED,   /* by itself: wait_status */
    PROC_END_STOPPED,  /* il__proc_stop() */
    PROC_END_TIMEOUT,  /* spec.timeout_ms */
    PROC_END_DEADLINE, /* the deadline of the lease had not been moved */
    PROC_END_FAILED,   /* it could not be executed: `error` is the errno */
    PROC_END_REAPER,   /* its reaper died, and it with it; how it ended is unknown */
};
struct proc_report {
    enum proc_end end;
    int           wait_status; /* as from waitpid(); -1 = unknown */
    int           error;
};
/* Has it ended, with all its descendants? Does not block. */
void il__proc_report(struct proc_child *c, struct proc_report *ret);
/* Stop what is left of it, wait for that, close everything. May be called again, and on
 * PROC_CHILD_NONE. */
void il__proc_finish(struct proc_child *c);

#endif
