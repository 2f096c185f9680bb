/*
 * proc.h: child processes: start, wait for a line of output, signal, wait for exit; all with
 * timeouts.
 */
#ifndef T_PROC_H
#define T_PROC_H

#include <sys/types.h>

#include "harness/check.h"

#define T_PROC_LINE_BYTES 1024
#define T_PROC_OUT_BYTES 65536

struct t_proc {
    pid_t  pid;                    /* 0 once it was waited for */
    int    in;                     /* its stdin, -1 = /dev/null or closed */
    int    out;                    /* its stdout and stderr, read by us */
    int    status;                 /* as waitpid() gives it, once it has ended */
    char   text[T_PROC_OUT_BYTES]; /* what came out so far, NUL-terminated */
    size_t n_text;
    size_t n_taken; /* of it, by t_proc_line() */
};

/* Start argv (NULL-terminated); `env` is NAME=VALUE strings added to ours, NULL-terminated, or
 * NULL. The child is killed when this process dies. */
void t_proc_start(struct t_proc *p, const char *const argv[], const char *const env[]);
/* The same for a function of this program, without exec; its return value is the exit status. Fork
 * before any handle is open. */
void t_proc_fork(struct t_proc *p, int (*fn)(void *arg), void *arg);

/* Wait for the next line that starts with `prefix` (lines before it are passed over); a copy
 * without the newline goes to `line` (may be NULL). False when it did not come within limit_ms. */
bool t_proc_line(struct t_proc *p, const char *prefix, int64_t limit_ms,
                 char line[T_PROC_LINE_BYTES]);
#define T_LINE(p, prefix, limit_ms, line)                                                 \
    (t_proc_line((p), (prefix), (limit_ms), (line))                                       \
         ? (void)0                                                                        \
         : T_FAIL("no line '%s' within %d ms; there was:\n%s", (prefix), (int)(limit_ms), \
                  (p)->text))

/* Send a line to its stdin. */
void t_proc_say(struct t_proc *p, const char *line);
void t_proc_signal(const struct t_proc *p, int signo);
/* Stop it (SIGSTOP) outside of a transaction of the store at `url`: one that is stopped within one
 * of SQLite keeps everybody else out of the file, rightly, and is no test of what happens to its
 * leases. Fails the test when that takes over limit_ms. */
void t_proc_stop_outside(const struct t_proc *p, const char *url, int64_t limit_ms);

/* Wait for its end; false when it did not come within limit_ms. Its output is complete then, unless
 * a grandchild keeps it open. */
bool t_proc_end(struct t_proc *p, int64_t limit_ms);
/* Wait for its end and give its exit status, 128 + n for signal n; fails the test at the limit. */
int t_proc_exit(struct t_proc *p, int64_t limit_ms);
/* Kill it if it still runs, and free everything. */
void t_proc_release(struct t_proc *p);

/* Wait until the process is gone (not even a zombie of somebody else's), or in the state `state` as
 * /proc/PID/stat says ('T' = stopped). False at the limit. */
bool t_pid_gone(pid_t pid, int64_t limit_ms);
bool t_pid_in_state(pid_t pid, char state, int64_t limit_ms);

#endif
