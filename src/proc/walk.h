/*
 * walk.h: finds the descendants of this process in /proc.
 */
#ifndef IL_PROC_WALK_H
#define IL_PROC_WALK_H

#include <sys/types.h>

#include "base/base.h"

struct proc_process {
    pid_t   pid;
    int     pidfd; /* -1 on kernels without pidfds: then only the pid is used */
    pid_t   parent;
    pid_t   group;
    char    name[16]; /* as set by the process: a hint, not proof */
    char    state;    /* as in /proc/PID/stat: R, S, D, T, Z… */
    int64_t started_ticks;
};

/* true: continue with its descendants. */
typedef bool proc_visit_fn(void *cookie, const struct proc_process *p);

/*
 * Call `visit` for each descendant, parents before children, except those below a process for which
 * it returned false. The tree changes during the walk: a process that is created or reparented
 * meanwhile may be missed, but every visited process is a descendant. Without /proc, nothing is
 * visited. False: out of descriptors or memory, so more may exist than were visited.
 */
bool il__proc_walk(proc_visit_fn *visit, void *cookie);

/* Signal a visited process, never another one that has reused its pid. 0, or -1 and errno. */
int il__proc_process_kill(const struct proc_process *p, int sig);

/* A boot time in the unit of started_ticks, rounded down. */
int64_t il__proc_ticks(int64_t boot_ns);

#endif
