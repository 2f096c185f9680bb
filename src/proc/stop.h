/*
 * stop.h: ending everything below this process: TERM, a time of grace, KILL, until nothing is left.
 *
 * The process is a child subreaper: whatever loses its parent becomes its child, also what left the
 * process group or the session (setsid, daemons that forked twice). So "nothing is left" is exactly
 * waitpid() saying ECHILD, and the caller's loop is: reap on SIGCHLD, tell the stop about it, tick
 * when il__stop_next_ns() says so. Nothing here blocks or sleeps.
 *
 * Out of reach: what is not a descendant (a container started through a daemon), what the user may
 * not signal (sudo: said once, then waited for), and uninterruptible sleep.
 */
#ifndef IL_PROC_STOP_H
#define IL_PROC_STOP_H

#include <sys/types.h>

#include "base/base.h"

struct il__stop {
    int64_t  began_ns; /* 0 = not stopping */
    int64_t  kill_at_ns;
    int64_t  again_ns; /* while killing: when to look again */
    pid_t    group;    /* the command's; 0 once its leader was reaped: the number may be reused */
    unsigned n_found;  /* live processes below us when the stop began */
    bool     killing;
    bool     denied; /* it has been said that somebody cannot be signalled */
};

/*
 * TERM (and CONT, so that a stopped one can act on it) to all, and KILL not later than kill_at_ns.
 */
void il__stop_begin(struct il__stop *s, pid_t group, int64_t now_ns, int64_t kill_at_ns);

/* The leader of the group was reaped. */
void il__stop_leader_reaped(struct il__stop *s);

/* Children were reaped: while killing, look for those they have left. */
void il__stop_child_reaped(struct il__stop *s);

/* Do what is due. `latest_ns`: the KILL comes not later than this either (the lease's deadline). */
void il__stop_tick(struct il__stop *s, int64_t now_ns, int64_t latest_ns);

/* When the next tick is due; IL__NEVER_NS while not stopping. */
int64_t il__stop_next_ns(const struct il__stop *s, int64_t latest_ns);

#endif
