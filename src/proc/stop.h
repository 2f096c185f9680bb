/*
 * stop.h: stops all descendants of this process: TERM, a grace period, KILL, until none is left.
 *
 * The process is a child subreaper: every orphaned descendant becomes its child, even if it left
 * the process group or the session (setsid, daemons that forked twice). So "none is left" is
 * exactly waitpid() returning ECHILD, and the caller's loop is: reap on SIGCHLD, report it to the
 * stop, tick when il__stop_next_ns() says so. Nothing here blocks or sleeps.
 *
 * Out of reach: processes that are not descendants (a container started through a daemon),
 * processes that the user may not signal (sudo: reported once, then waited for), and
 * uninterruptible sleep.
 */
#ifndef IL_PROC_STOP_H
#define IL_PROC_STOP_H

#include <sys/types.h>

#include "base/base.h"

struct il__stop {
    int64_t  began_ns; /* 0 = not stopping */
    int64_t  kill_at_ns;
    int64_t  again_ns; /* while killing: when to walk again */
    pid_t    group;    /* the command's; 0 once its leader was reaped: may be reused */
    unsigned n_found;  /* live descendants when the stop began */
    bool     killing;
    bool     denied; /* a process that cannot be signalled was reported */
};

/*
 * Send TERM (and CONT, so that stopped processes can act on it) to all, and KILL no later than
 * kill_at_ns.
 */
void il__stop_begin(struct il__stop *s, pid_t group, int64_t now_ns, int64_t kill_at_ns);

/* The leader of the group was reaped. */
void il__stop_leader_reaped(struct il__stop *s);

/* Children were reaped: while killing, search for the processes they have left. */
void il__stop_child_reaped(struct il__stop *s);

/* Do what is due. `latest_ns`: another upper bound for the KILL (the lease's deadline). */
void il__stop_tick(struct il__stop *s, int64_t now_ns, int64_t latest_ns);

/* When the next tick is due; IL__NEVER_NS while not stopping. */
int64_t il__stop_next_ns(const struct il__stop *s, int64_t latest_ns);

#endif
