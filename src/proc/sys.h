/*
 * sys.h: process-related system calls that glibc lacks or that take more than one line.
 */
#ifndef IL_PROC_SYS_H
#define IL_PROC_SYS_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

#define IL__NEVER_NS INT64_MAX

/*
 * A pidfd: refers to a process even if its pid is reused; -1 if not supported.
 */
int il__proc_pidfd_open(pid_t pid);
/* Signal that process; `sig` 0 only checks whether it still exists. 0, or -1 and errno. */
int il__proc_pidfd_kill(int pidfd, int sig);

/*
 * A timer on CLOCK_BOOTTIME, and the time at which it becomes readable (IL__NEVER_NS: never).
 */
int  il__proc_timer_new(void);
void il__proc_timer_arm(int timer_fd, int64_t at_ns);
void il__proc_timer_drain(int timer_fd);

/* Write all of it, despite interruptions and short writes. false: see errno. */
bool il__proc_write_all(int fd, const void *data, size_t n_bytes);

/* Close *fd if it is open, and set it to -1. */
void il__proc_fd_close(int *fd);
#define AUTO_FD AUTO(il__proc_fd_close)
/* Move a descriptor out of a variable. */
int il__proc_fd_take(int *fd);
/* Move it to a number not below `lowest`, close-on-exec. false: see errno; it is closed. */
bool il__proc_fd_above(int *fd, int lowest);

/*
 * Open /dev/null for those of 0, 1 and 2 that are closed, so that none of our descriptors takes
 * their place and receives output meant for a terminal.
 */
void il__proc_fds_ensure(void);

/*
 * From now on drop messages that cannot be written at once. For processes whose work must not wait
 * for the reader of stderr: a full pipe, a terminal under Ctrl-S.
 */
void il__proc_say_never_wait(void);

/* Write to stderr, waiting for its reader; without a reader the text is lost, without a SIGPIPE. */
void il__proc_write_stderr(const char *text, size_t n_bytes);

/* Print one line "interlock: …" on stderr, in one write, control characters shown as '?'. */
void il__proc_say(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Does it ask a process to exit: INT, TERM, HUP, QUIT? */
bool il__proc_signal_ends(int sig);

/* Drain a signalfd. */
void il__proc_signals_drain(int sig_fd);

/* Discard the pending signals of `set`. */
void il__proc_signals_forget(const sigset_t *set);

/*
 * Exit as if killed by that signal, without a core file. Returns if that is impossible: the init
 * process of a PID namespace cannot kill itself with a signal.
 */
void il__proc_die_of(int sig);

#endif
