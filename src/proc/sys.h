/*
 * sys.h: the few system calls around processes that glibc lacks or that take more than one line.
 */
#ifndef IL_PROC_SYS_H
#define IL_PROC_SYS_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

#define IL__NEVER_NS INT64_MAX

/*
 * A descriptor that stands for a process, whatever becomes of its number; -1 where there is none.
 */
int il__run_pidfd_open(pid_t pid);
/* Signal that process; `sig` 0 only asks whether it is still there. 0, or -1 and errno. */
int il__run_pidfd_kill(int pidfd, int sig);

/*
 * A timer on CLOCK_BOOTTIME, and the moment at which it is to become readable (IL__NEVER_NS: not).
 */
int  il__run_timer_new(void);
void il__run_timer_arm(int timer_fd, int64_t at_ns);
void il__run_timer_drain(int timer_fd);

/* Write all of it, through interruptions and short writes. false: errno says why. */
bool il__run_write_all(int fd, const void *data, size_t n_bytes);

/* Close *fd if it is open, and remember that it is closed. */
void il__run_fd_close(int *fd);
#define AUTO_FD AUTO(il__run_fd_close)
/* Move a descriptor out of a variable. */
int il__run_fd_take(int *fd);
/* Give it a number not below `lowest`, close-on-exec. false: errno says why, and it is closed. */
bool il__run_fd_above(int *fd, int lowest);

/*
 * Open what is closed of 0, 1 and 2 on /dev/null, so that no descriptor of ours ends up in their
 * place and gets what was meant for a terminal.
 */
void il__run_fds_ensure(void);

/*
 * From now on a message that cannot be written at once is dropped. For those who have something to
 * do that must not wait for whoever reads stderr: a full pipe, a terminal under Ctrl-S.
 */
void il__run_say_never_wait(void);

/* Write to stderr, waiting for who reads it; if that is nobody, it is lost, without a SIGPIPE. */
void il__run_write_stderr(const char *text, size_t n_bytes);

/* Print one line "interlock: …" on stderr, in one write, control characters shown as '?'. */
void il__run_say(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Does it ask a process to end: INT, TERM, HUP, QUIT? */
bool il__run_signal_ends(int sig);

/* Read what a signalfd has, and forget it. */
void il__run_signals_drain(int sig_fd);

/* Take back those signals of `set` that are pending, as if they had not come. */
void il__run_signals_forget(const sigset_t *set);

/*
 * End as if by that signal, without a core file of ours. Returns when that is not possible: the
 * first process of a PID namespace is not ended by a signal of its own.
 */
void il__run_die_of(int sig);

#endif
