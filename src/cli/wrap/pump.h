/*
 * pump.h: passes the command's output on, with a copy to a sink: a spool (--on-conflict join), a
 * log, or an answer that is kept.
 *
 * It runs on a separate thread, because writing to our stdout may block for as long as the reader
 * likes, while signals, the reaper and the lease need attention.
 */
#ifndef IL_CLI_WRAP_PUMP_H
#define IL_CLI_WRAP_PUMP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

#define IL__PUMP_BYTES 65536

/* Receives a copy of the output. Called on the pump's thread. */
struct wrap_sink {
    /* Output of stream 1 or 2. Returns whether to pass it on. */
    bool (*add)(void *cookie, uint32_t stream, const void *data, size_t n_bytes);
    /* Later output could not be passed on, and is not delivered here either; may be NULL. */
    void (*incomplete)(void *cookie);
};

struct wrap_pump {
    int              read_fds[2];  /* from the command: stdout, stderr; -1 = closed */
    int              write_fds[2]; /* for the command, until the reaper has inherited them */
    struct wrap_sink sink;
    void            *cookie;
    char            *data;     /* IL__PUMP_BYTES */
    int              quit_fd;  /* readable: no more will come, pass on the rest */
    int              done_fd;  /* readable: the thread is finished */
    int              abort_fd; /* readable: do not even wait for the reader of our output */
    pthread_t        thread;
    bool             running;
    _Atomic int      error; /* errno of a failed write with a live reader; 0 = none */
};

#define WRAP_PUMP_NONE                                                               \
    (struct wrap_pump)                                                               \
    {                                                                                \
        { -1, -1 }, { -1, -1 }, { NULL, NULL }, NULL, NULL, -1, -1, -1, 0, false, 0, \
    }

/* Create the pipes. Before the reaper is forked. */
bool wrap_pump_init(struct wrap_pump *p);
/* The reaper has inherited the command's ends: close ours. */
void wrap_pump_forked(struct wrap_pump *p);
/* Start the thread. It owns what `cookie` points to until wrap_pump_finish(). false: the command
 * must not start. */
bool wrap_pump_start(struct wrap_pump *p, const struct wrap_sink *sink, void *cookie);
/* The command and all its descendants have ended: done_fd becomes readable once their output is
 * passed on. */
void wrap_pump_quit(struct wrap_pump *p);
/* Join the thread without passing on more; close everything. Safe to repeat. *p must be static:
 * a thread that cannot be joined is abandoned with it. */
void wrap_pump_finish(struct wrap_pump *p);

#endif
