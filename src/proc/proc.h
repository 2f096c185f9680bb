/*
 * proc.h: processes that a server runs: each under a reaper of its own, which ends everything below it in time, whatever becomes of the server.
 *
 * server → spawner → reaper → command. The spawner is this binary, executed once (`interlock spawner`, hidden): it is small and has one thread, so that forking a reaper from it costs
 * a fraction of what executing one costs. The reaper is that of `interlock run` (reaper.h): a child subreaper, which keeps the lease's deadline from a shared page, watches the server through a
 * pidfd, and ends what is below it (TERM, grace, KILL; grandchildren that left the group, too) when it is told to, when the time is over, when the deadline comes and nobody has moved
 * it, or when the server is gone. It never kills the server: that has other leases. If the spawner dies, its reapers end their commands, the running children report PROC_END_REAPER, and the next
 * start executes a new spawner. If a reaper dies, its command is killed with it and the rest comes to the spawner, which ends it.
 */
#ifndef IL_PROC_PROC_H
#define IL_PROC_PROC_H

#include <sys/types.h>

#include "base/base.h"

struct proc_spawner;

/* Execute it. Call it once per server; the spawner's descriptors are close-on-exec. IL_OK, IL_NOMEM (no process or memory to be had). */
il_status il__proc_spawner_open(struct proc_spawner **ret, il_error *reterr) MUST_USE;
/* Every child must have been finished. Waits for the spawner. NULL is fine. */
void il__proc_spawner_close(struct proc_spawner *s);
/* What `interlock spawner` does: the exit status. */
int il__proc_spawner_main(void);

/* 0 = as the server has it. Set with setrlimit() just before the command is executed. */
struct proc_limits {
    int64_t cpu_s;        /* RLIMIT_CPU */
    int64_t memory_bytes; /* RLIMIT_AS */
    int64_t open_files;   /* RLIMIT_NOFILE */
    int64_t processes;    /* RLIMIT_NPROC */
};

/* Everything is borrowed for the call. */
struct proc_spec {
    char *const *argv; /* argv[0] is looked up in the PATH of `env`, as execvp() does, in `cwd` */
    char *const *env;  /* the complete environment: nothing of the server's is inherited */
    const char  *cwd;
    int64_t      grace_ms;    /* between TERM and KILL */
    int64_t      timeout_ms;  /* 0 = none */
    int64_t      deadline_ns; /* of the lease (CLOCK_BOOTTIME); 0 = there is none */
    struct proc_limits limits;
};
#define PROC_SPEC_BYTES_MAX (4 << 20) /* argv and env together: more is IL_INVAL */

/* A child: the caller's storage. None of the descriptors blocks; all are close-on-exec. stdin is /dev/null. */
struct proc_child {
    int   ctl;    /* readable: il__proc_report() has something to say */
    int   out_fd; /* its stdout and stderr: end of file once nobody has them any more */
    int   err_fd;
    void *own; /* proc's */
};
#define PROC_CHILD_NONE  \
    (struct proc_child)  \
    {                    \
        -1, -1, -1, NULL \
    }

/* Start it. IL_OK: it is under way, and may still fail to be executed (PROC_END_FAILED). IL_INVAL, IL_NOMEM: nothing was started. Any thread. */
il_status il__proc_start(struct proc_spawner *s, const struct proc_spec *spec,
                         struct proc_child *ret, il_error *reterr) MUST_USE;
/* The lease lives until then: it only grows. Any thread, as long as the child is not finished. */
void il__proc_extend(struct proc_child *c, int64_t deadline_ns);
/* Stop it: TERM, grace, KILL. Repeatable; any thread; never blocks. The report says PROC_END_STOPPED unless it had ended before. */
void il__proc_stop(struct proc_child *c);

enum proc_end {
    PROC_END_NONE,     /* not yet */
    PROC_END_EXITED,   /* by itself: wait_status */
    PROC_END_STOPPED,  /* il__proc_stop() */
    PROC_END_TIMEOUT,  /* spec.timeout_ms */
    PROC_END_DEADLINE, /* nobody had moved the deadline of the lease */
    PROC_END_FAILED,   /* it could not be executed: `error` (an errno) says why */
    PROC_END_REAPER,   /* its reaper is gone, and so is it; how it ended is unknown */
};
struct proc_report {
    enum proc_end end;
    int           wait_status; /* as of waitpid(); -1 = unknown */
    int           error;
    bool          in_cwd; /* PROC_END_FAILED: it was `cwd` that could not be entered */
};
/* Has it ended, with everything below it? Does not block. */
void il__proc_report(struct proc_child *c, struct proc_report *ret);
/* Ends what is left of it, waits for that, closes everything. Safe to repeat and on PROC_CHILD_NONE. */
void il__proc_finish(struct proc_child *c);

#endif
