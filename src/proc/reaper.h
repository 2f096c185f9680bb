/*
 * reaper.h: the reaper, a small process between wrapper and command.
 *
 * wrapper → reaper → command. The wrapper talks to the store; the reaper, forked before the store
 * is opened, knows nothing about it. The reaper owns the command: it starts it, forwards signals to
 * it, and stops it and all its descendants. It enforces the lease's deadline itself, from a page
 * shared with the wrapper, so that the command stops in time even if the wrapper is killed
 * (detected through a pidfd) or stopped (the deadline passes without having been moved; then the
 * wrapper is killed as well). It has its own process group, so that a KILL to the wrapper's group
 * does not hit both.
 *
 * If the reaper is killed, the command is killed with it (parent-death signal), and the remaining
 * processes are reparented to the wrapper, also a subreaper, which kills them
 * (cli/wrap/supervise.c).
 *
 * The commands of a server use the same reaper, but the server takes the wrapper's place, with a
 * spawner in between: see proc.h. The reaper never kills the server.
 */
#ifndef IL_PROC_REAPER_H
#define IL_PROC_REAPER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "proc/spawn.h"
#include "proc/tty.h"

#define IL__REAPER_NAME "il-reaper" /* shown by ps; identifies the reaper of another run */

/* One page, shared by wrapper and reaper. Each field has one writer. */
struct il__reaper_shared {
    _Atomic int64_t  deadline_ns; /* wrapper: CLOCK_BOOTTIME; 0 = no lease yet. Only increases. */
    _Atomic uint64_t fence;       /* wrapper: before IL__ORDER_START */
    _Atomic int      leader_pid;  /* reaper: the command, also after its end; 0 = not started */
    _Atomic int      wait_status; /* reaper: how the command ended; -1 = not ended or not reaped */
    _Atomic int      end;      /* reaper: why it ended or is being stopped, enum il__reaper_end */
    _Atomic bool     tty_lent; /* reaper */
};

/* Wrapper to reaper: one packet each. Closing the socket dismisses the reaper. */
enum il__reaper_order_type {
    IL__ORDER_START = 1,
    IL__ORDER_SIGNAL, /* arg: forward this signal to the command's group */
    IL__ORDER_STOP,   /* the lease is lost: stop everything */
    IL__ORDER_LOOK,   /* there is a deadline now; there was none before */
};

struct il__reaper_order {
    int32_t type;
    int32_t arg;
};

/* Why it is over. */
enum il__reaper_end {
    IL__END_NONE = 0,
    IL__END_EXITED,   /* the command ended by itself */
    IL__END_LOST,     /* stopped: the wrapper reported that the lease is lost */
    IL__END_DEADLINE, /* stopped: the deadline had not been moved */
    IL__END_TIMEOUT,  /* stopped: it took longer than --timeout */
    IL__END_ORPHANED, /* stopped: the wrapper died; no one reads this */
    IL__END_FAILED,   /* it could not be started; see `error` */
    /* set by the wrapper itself: the reaper died; or stopped: the spawner died */
    IL__END_REAPER,
};

/* Reaper to wrapper, once, when the reaper has no descendants left. */
struct il__reaper_report {
    int32_t end;         /* enum il__reaper_end */
    int32_t wait_status; /* of the command, as from waitpid(); -1 = unknown */
    int32_t error;       /* IL__END_FAILED: errno */
    int32_t is_exec;     /* IL__END_FAILED: in execve(), or just before it */
};

/* What a reaper needs before it has a command. */
struct il__reaper_ready {
    int sig_fd;
    int timer_fd;
    int error; /* errno: setup failed; 0 = ready */
};
/* Block all signals, become group leader and subreaper, create the descriptors. */
void il__reaper_prepare(struct il__reaper_ready *ret);

/* Differences for a server's command. */
struct il__reaper_served {
    const struct il__reaper_ready *ready; /* has been done already */
    char *const                   *env;   /* complete */
    const char                    *cwd;
    const struct proc_rlimits     *limits;
    int spawner_fd; /* a pidfd: everything stops when the spawner dies; -1 = none */
};

struct il__reaper_opts {
    const char  *path;
    char *const *argv;
    const char  *key;
    const char  *holder;
    int64_t      grace_ns;
    int64_t      timeout_ns; /* 0 = none */
    int          out_fd;     /* for the command, closed here once it has them; -1 = none */
    int          err_fd;
    int          wrapper_fds[2]; /* the other ends, only for the wrapper: closed here; -1 = none */
    bool         quiet;
    struct proc_tty *tty;
    /*
     * Not NULL: the command starts without an order, and after the report the reaper neither waits
     * for nor kills any process. `path` may be NULL (spawn.h). Messages are already non-blocking
     * (il__proc_say_never_wait()).
     */
    const struct il__reaper_served *served;
};

struct il__reaper {
    struct il__reaper_shared *shared;
    pid_t                     pid;          /* 0 = none */
    int                       ctl;          /* packets both ways; -1 = closed */
    bool                      asked_to_end; /* INT, TERM, HUP or QUIT was forwarded */
};

/* What the reaper knows about the wrapper. */
struct il__reaper_wrapper {
    pid_t pid;
    int   pidfd; /* -1 on kernels without: end of file on the socket works, too */
    int   ctl;
};

/* The reaper itself: what runs in the forked process. */
_Noreturn void il__reaper_main(const struct il__reaper_opts *opts, struct il__reaper_shared *shared,
                               const struct il__reaper_wrapper *wrapper);

/* The reaper's last act: wait until the wrapper dismisses it, or kill a stopped wrapper. */
void il__reaper_await_dismissal(const struct il__reaper_wrapper *w,
                                const struct il__reaper_shared *shared, int timer_fd);

/* Fork it. IL_OK, or IL_NOMEM if no process or memory is available. */
il_status il__reaper_start(const struct il__reaper_opts *opts, struct il__reaper *ret,
                           il_error *reterr);

/* Send an order. Any thread; never blocks. */
void il__reaper_order(const struct il__reaper *r, enum il__reaper_order_type type, int arg);

/*
 * The latest time for a KILL: shortly before the deadline, when the wrapper gives up on a live but
 * inactive reaper. IL__NEVER_NS without a lease.
 */
int64_t il__reaper_kill_by_ns(const struct il__reaper_shared *shared, int64_t grace_ns);

/* Dismiss it: it exits when it has no descendants left. */
void il__reaper_dismiss(struct il__reaper *r);
/* Kill it. The command dies with it; its other descendants are reparented to the caller. */
void il__reaper_kill(struct il__reaper *r);
/* Kill and wait for it. */
void il__reaper_reap(struct il__reaper *r);
/* The same, and no more orders: do not call while a lease callback may send some. May be called
 * again. */
void il__reaper_finish(struct il__reaper *r);

#endif
