/*
 * child.h: the command of one job, and the reaper above it.
 *
 * The reaper is that of `interlock run` (reaper.h), with one difference: the store is open and there are threads
 * when it starts, so it is not forked but executed: `interlock reaper`, a hidden command, which gets the socket, the
 * shared page and the command's pipes as descriptors of fixed numbers. If the worker is killed, each reaper ends its
 * command in time; if a reaper is killed, what was below it comes to the worker and is ended here.
 */
#ifndef IL_PROC_CHILD_H
#define IL_PROC_CHILD_H

#include "base/base.h"
#include "proc/reaper.h"

/* What `interlock reaper` has open besides the usual. */
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
    int in_fd; /* of the command: for us to write; -1 = closed. None of the three blocks */
    int out_fd;
    int err_fd;
};

#define IL__CHILD_NONE                     \
    (struct il__child)                     \
    {                                      \
        { NULL, 0, -1, false }, -1, -1, -1 \
    }

/* Start reaper and command. IL_OK, or IL_NOMEM when the machine has no process or memory to give. */
MUST_USE il_status il__child_start(const struct il__child_opts *opts, struct il__child *ret,
                                   il_error *reterr);

/* The deadline of the claim, for the reaper; it only grows. */
void il__child_publish(struct il__child *c, int64_t deadline_ns);

/* Let the reaper go, wait for it, close everything. Safe to repeat. */
void il__child_finish(struct il__child *c);

/*
 * A reaper has died without a report: kill what it left to this process and reap it. `is_reaper(cookie, pid)` tells the
 * reapers of other jobs, which are left alone.
 */
void il__child_end_orphans(bool (*is_reaper)(const void *cookie, pid_t pid), const void *cookie);

#endif
