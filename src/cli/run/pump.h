/*
 * pump.h: passing the command's output on while keeping a copy in the spool (--on-conflict join).
 *
 * A thread of its own, because writing to our stdout may block for as long as whoever reads it
 * likes, and signals, the reaper and the lease must be seen to meanwhile.
 */
#ifndef IL_CLI_RUN_PUMP_H
#define IL_CLI_RUN_PUMP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "cli/run/spool.h"

struct il__run_pump {
    int               read_fds[2];  /* from the command: stdout, stderr; -1 = closed */
    int               write_fds[2]; /* for the command, until the reaper has them */
    struct il__spool *spool;
    char             *data;     /* IL__SPOOL_FRAME_BYTES_MAX */
    int               quit_fd;  /* readable: no more will come, pass on what is there */
    int               done_fd;  /* readable: the thread is at its end */
    int               abort_fd; /* readable: do not even wait for whoever reads our output */
    pthread_t         thread;
    bool              running;
    _Atomic int       error; /* errno of a write that failed though somebody reads; 0 = none did */
};

#define IL__RUN_PUMP_NONE                                            \
    (struct il__run_pump)                                            \
    {                                                                \
        { -1, -1 }, { -1, -1 }, NULL, NULL, -1, -1, -1, 0, false, 0, \
    }

/* Make the pipes. Before the reaper is forked. */
bool il__run_pump_init(struct il__run_pump *p);
/* The reaper has its copies of the command's ends: close ours. */
void il__run_pump_forked(struct il__run_pump *p);
/*
 * Start the thread. `spool` is its own until il__run_pump_finish(). false: the command must not
 * start.
 */
bool il__run_pump_start(struct il__run_pump *p, struct il__spool *spool);
/*
 * The command and all below it are gone: done_fd becomes readable when their output is passed on.
 */
void il__run_pump_quit(struct il__run_pump *p);
/*
 * Join the thread, passing on no more; close everything. Safe to repeat. *p must be static: a
 * thread that cannot be joined is left behind with it.
 */
void il__run_pump_finish(struct il__run_pump *p);

#endif
