/*
 * walk.h: the processes below this one, from /proc.
 */
#ifndef IL_PROC_WALK_H
#define IL_PROC_WALK_H

#include <sys/types.h>

#include "base/base.h"

struct il__run_process {
    pid_t   pid;
    int     pidfd; /* -1 on kernels that have none: then the number alone is used */
    pid_t   parent;
    pid_t   group;
    char    name[16]; /* as the process has set it: a hint, not a proof */
    char    state;    /* as in /proc/PID/stat: R, S, D, T, Z… */
    int64_t started_ticks;
};

/* true: go on with what is below it. */
typedef bool il__run_visit_fn(void *cookie, const struct il__run_process *p);

/*
 * Call `visit` for each descendant, parents before children, but for those below one where it has
 * said no. The picture moves while it is taken:
 * one that is born or changes its parent meanwhile may be missed, none that is visited is not ours.
 * Without /proc, nothing is visited. False: descriptors or memory were short, and there may be more than was visited.
 */
bool il__run_walk(il__run_visit_fn *visit, void *cookie);

/* Signal a visited process, and none that has come by its number. 0, or -1 and errno. */
int il__run_process_kill(const struct il__run_process *p, int sig);

/* A boot time in the unit of started_ticks, rounded down. */
int64_t il__run_ticks(int64_t boot_ns);

#endif
