/*
 * child.h: runs the command of one job under a reaper.
 *
 * The reaper is that of `interlock run` (reaper.h), with one difference: since the store is already
 * open and threads are running, it is not just forked but executed: `interlock reaper`, a hidden
 * command, which gets the socket, the shared page and the command's pipes as descriptors with fixed
 * numbers. If the worker is killed, each reaper stops its command in time; if a reaper is killed,
 * its descendants are reparented to the worker and killed here.
 */
#ifndef IL_PROC_CHILD_H
#define IL_PROC_CHILD_H

#include "base/base.h"
#include "proc/reaper.h"

/* Descriptors of `interlock reaper` besides the standard ones. */
enum il__child_fd {
    IL__CHILD_CTL_FD    = 3,
    IL__CHILD_SHARED_FD = 4,
    IL__CHILD_OUT_FD    = 5,
    IL__CHILD_ERR_FD    = 6,
    IL__CHILD_FD_END    = 7,
};

struct il__child_opts {
    const char  *path;
    char *const *argv;
    const char  *queue;
    const char  *job;
    uint64_t     token;
    uint32_t     attempt;
    int64_t      grace_ms;
    int64_t      timeout_ms; /* 0 = none */
    int64_t      deadline_ns;
    bool         quiet;
};

struct il__child {
    struct il__reaper reaper;
    int in_fd; /* of the command: we write to it; -1 = closed. All three are non-blocking */
    int out_fd;
    int err_fd;
};

#define IL__CHILD_NONE                     \
    (struct il__child)                     \
    {                                      \
        { NULL, 0, -1, false }, -1, -1, -1 \
    }

/* Start reaper and command. IL_OK, or IL_NOMEM if no process or memory is available. */
MUST_USE il_status il__child_start(const struct il__child_opts *opts, struct il__child *ret,
                                   il_error *reterr);

/* Tell the reaper the deadline of the claim; it only moves forward. */
void il__child_publish(struct il__child *c, int64_t deadline_ns);

/* Dismiss the reaper, wait for it, close everything. May be called again. */
void il__child_finish(struct il__child *c);

/*
 * A reaper has died without a report: kill and reap the processes it left behind.
 * `is_reaper(cookie, pid)` identifies the reapers of other jobs, which are left alone.
 */
void il__child_end_orphans(bool (*is_reaper)(const void *cookie, pid_t pid), const void *cookie);

#endif
