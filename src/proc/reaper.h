/*
 * reaper.h: the small process between wrapper and command.
 *
 * wrapper → reaper → command. The wrapper talks to the store; the reaper, forked before the store
 * is opened, knows nothing of it. It owns the command: starts it, passes signals on, ends it and
 * everything below it. It keeps the lease's deadline itself, from a page shared with the wrapper,
 * so that the command ends in time also when the wrapper is killed (seen through a pidfd) or
 * stopped (the deadline comes and nobody has moved it; the wrapper is then killed as well). It has
 * a process group of its own, so that a KILL at the wrapper's group does not take both.
 *
 * If the reaper is killed, the command is killed with it (parent-death signal) and the rest comes
 * to the wrapper, a subreaper too, which ends it (cli/run/supervise.c).
 *
 * The commands of a server have the same reaper, but a spawner is between it and the server, which takes the
 * wrapper's place: see proc.h. There it is never killed.
 */
#ifndef IL_PROC_REAPER_H
#define IL_PROC_REAPER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "proc/spawn.h"
#include "proc/tty.h"

#define IL__REAPER_NAME "il-reaper" /* what ps shows, and how another run's is recognised */

/* One page, shared by wrapper and reaper. Each field has one writer. */
struct il__reaper_shared {
    _Atomic int64_t  deadline_ns; /* wrapper: CLOCK_BOOTTIME; 0 = no lease yet. It only grows. */
    _Atomic uint64_t fence;       /* wrapper: before IL__ORDER_START */
    _Atomic int      leader_pid;  /* reaper: the command, also after its end; 0 = not started */
    _Atomic int  wait_status; /* reaper: how the command ended; -1 = it has not, or is not reaped */
    _Atomic int  end;         /* reaper: why it is over or being ended, enum il__reaper_end */
    _Atomic bool tty_lent;    /* reaper */
};

/* Wrapper to reaper: one packet each. Closing the socket dismisses the reaper. */
enum il__reaper_order_type {
    IL__ORDER_START = 1,
    IL__ORDER_SIGNAL, /* arg: pass this signal on to the command's group */
    IL__ORDER_STOP,   /* the lease is lost: stop everything */
    IL__ORDER_LOOK,   /* there is a deadline now, where there was none */
};

struct il__reaper_order {
    int32_t type;
    int32_t arg;
};

/* Why it is over. */
enum il__reaper_end {
    IL__END_NONE = 0,
    IL__END_EXITED,   /* the command ended by itself */
    IL__END_LOST,     /* stopped: the wrapper said that the lease is lost */
    IL__END_DEADLINE, /* stopped: nobody had moved the deadline */
    IL__END_TIMEOUT,  /* stopped: it took longer than --timeout */
    IL__END_ORPHANED, /* stopped: the wrapper is gone; nobody reads this */
    IL__END_FAILED,   /* it could not be started, `error` says why */
    IL__END_REAPER, /* said by the wrapper to itself: the reaper is gone; or stopped: the spawner is */
};

/* Reaper to wrapper, once, when nothing is left below the reaper. */
struct il__reaper_report {
    int32_t end;         /* enum il__reaper_end */
    int32_t wait_status; /* of the command, as waitpid() gives it; -1 = unknown */
    int32_t error;       /* IL__END_FAILED: errno */
    int32_t is_exec;     /* IL__END_FAILED: of the execve(), or what comes just before it */
    int32_t in_cwd;      /* IL__END_FAILED: of entering the folder */
};

/* What a reaper needs before it has a command. */
struct il__reaper_ready {
    int sig_fd;
    int timer_fd;
    int error; /* errno: it cannot work; 0 = it can */
};
/* Block all signals, become leader of a group and subreaper, make the descriptors. */
void il__reaper_prepare(struct il__reaper_ready *ret);

/* What is different for the command of a server. */
struct il__reaper_served {
    const struct il__reaper_ready *ready; /* has been done already */
    char *const                   *env;   /* complete */
    const char                    *cwd;
    const struct il__run_limits   *limits;
    int spawner_fd; /* a pidfd: with the spawner's end, everything ends; -1 = none */
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
    int          wrapper_fds[2]; /* the other ends, the wrapper's alone: closed here; -1 = none */
    bool         quiet;
    struct il__run_tty *tty;
    /*
     * Not NULL: the command starts without an order, and nobody is waited for or killed after the report. `path` may be
     * NULL (spawn.h). Messages never wait already (il__run_say_never_wait()).
     */
    const struct il__reaper_served *served;
};

struct il__reaper {
    struct il__reaper_shared *shared;
    pid_t                     pid;          /* 0 = none */
    int                       ctl;          /* packets both ways; -1 = closed */
    bool                      asked_to_end; /* INT, TERM, HUP or QUIT was passed on */
};

/* What the reaper knows of the wrapper. */
struct il__reaper_wrapper {
    pid_t pid;
    int   pidfd; /* -1 on kernels that have none: the end of the socket tells as well */
    int   ctl;
};

/* The reaper itself: what runs in the forked process. */
_Noreturn void il__reaper_main(const struct il__reaper_opts *opts, struct il__reaper_shared *shared,
                               const struct il__reaper_wrapper *wrapper);

/* The reaper's last act: wait until the wrapper lets it go, or kill a wrapper that is stopped. */
void il__reaper_await_dismissal(const struct il__reaper_wrapper *w,
                                const struct il__reaper_shared *shared, int timer_fd);

/* Fork it. IL_OK, or IL_NOMEM when the machine has no process or memory to give. */
il_status il__reaper_start(const struct il__reaper_opts *opts, struct il__reaper *ret,
                           il_error *reterr);

/* Give an order. Callable from any thread; never blocks. */
void il__reaper_order(const struct il__reaper *r, enum il__reaper_order_type type, int arg);

/*
 * The latest moment for a KILL: a little before the deadline, at which the wrapper loses patience
 * with a reaper that is alive but does nothing. IL__NEVER_NS when there is no lease.
 */
int64_t il__reaper_kill_by_ns(const struct il__reaper_shared *shared, int64_t grace_ns);

/* Let it go: it ends when nothing is left below it. */
void il__reaper_dismiss(struct il__reaper *r);
/* Kill it. What is below it still becomes the caller's, the command itself dies with it. */
void il__reaper_kill(struct il__reaper *r);
/* Kill and wait for it. */
void il__reaper_reap(struct il__reaper *r);
/* The same and no more orders: not while a lease has a callback that gives some. Safe to repeat. */
void il__reaper_finish(struct il__reaper *r);

#endif
