/*
 * pump.h: passing the command's output on while somebody else looks at it: a spool (--on-conflict join), a log, an
 * answer that is kept.
 *
 * A thread of its own, because writing to our stdout may block for as long as whoever reads it
 * likes, and signals, the reaper and the lease must be seen to meanwhile.
 */
#ifndef IL_CLI_RUN_PUMP_H
#define IL_CLI_RUN_PUMP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

#define IL__PUMP_BYTES 65536

/* Who looks at the output. Called on the pump's thread. */
struct il__run_sink {
    /* Output of stream 1 or 2. Returns whether it is to be passed on. */
    bool (*add)(void *cookie, uint32_t stream, const void *data, size_t n_bytes);
    /* What follows could not be passed on, and does not come here either; may be NULL. */
    void (*incomplete)(void *cookie);
};

struct il__run_pump {
    int                 read_fds[2];  /* from the command: stdout, stderr; -1 = closed */
    int                 write_fds[2]; /* for the command, until the reaper has them */
    struct il__run_sink sink;
    void               *cookie;
    char               *data;     /* IL__PUMP_BYTES */
    int                 quit_fd;  /* readable: no more will come, pass on what is there */
    int                 done_fd;  /* readable: the thread is at its end */
    int                 abort_fd; /* readable: do not even wait for whoever reads our output */
    pthread_t           thread;
    bool                running;
    _Atomic int error; /* errno of a write that failed though somebody reads; 0 = none did */
};

#define IL__RUN_PUMP_NONE                                                            \
    (struct il__run_pump)                                                            \
    {                                                                                \
        { -1, -1 }, { -1, -1 }, { NULL, NULL }, NULL, NULL, -1, -1, -1, 0, false, 0, \
    }

/* Make the pipes. Before the reaper is forked. */
bool il__run_pump_init(struct il__run_pump *p);
/* The reaper has its copies of the command's ends: close ours. */
void il__run_pump_forked(struct il__run_pump *p);
/* Start the thread. What `cookie` is is its own until il__run_pump_finish(). false: the command must not start. */
bool il__run_pump_start(struct il__run_pump *p, const struct il__run_sink *sink, void *cookie);
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
